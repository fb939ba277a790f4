/*-------------------------------------------------------------------------
 *
 * read.c
 *	  Reads the journal: the base, then the stripes, a page at a time.
 *
 * The reader walks the base and the stripes one after the other (chain.h), and keeps the position to which it
 * has come.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"

#include "journal/chain.h"

struct GpudsJournalReader
{
	Relation index;
	GpudsMetaData meta;
	bool own_strategy; /* the chain's, made by the reader */
	bool stale;
	bool has_end;
	GpudsJournalPos end;
	GpudsJournalPos pos; /* what was read so far */
	int phase;           /* GPUDS_CHAIN_BASE, a stripe, GPUDS_STRIPES at the end */
	GpudsChain chain;    /* of the phase */
};

static GpudsJournalReader *
reader_make(Relation index)
{
	GpudsJournalReader *reader = palloc(sizeof(GpudsJournalReader));

	memset(reader, 0, offsetof(GpudsJournalReader, chain));
	reader->index = index;
	gpuds_journal_read_meta(index, &reader->meta);
	gpuds_chain_init(&reader->chain, index, &reader->meta, NULL);
	return reader;
}

/* Sets the reader on a stripe's first page of interest. */
static void
begin_stripe(GpudsJournalReader *reader, int stripe)
{
	reader->phase = stripe;
	if (stripe >= GPUDS_STRIPES)
		return;
	gpuds_chain_begin_at(&reader->chain, stripe, reader->pos.count[stripe], reader->pos.block[stripe]);

	/* with nothing to read before the end the stripe need not be looked at */
	if (reader->has_end && reader->pos.count[stripe] >= reader->end.count[stripe])
		reader->chain.next = InvalidBlockNumber;
}

/*
 * Starts reading everything: the base and all stripes.  Allocates in the current
 * memory context.  Raises ERRCODE_INDEX_CORRUPTED as every function here does.
 */
GpudsJournalReader *
gpuds_reader_open(Relation index)
{
	GpudsJournalReader *reader = reader_make(index);

	gpuds_journal_start(&reader->meta, &reader->pos);
	reader->phase = GPUDS_CHAIN_BASE;
	gpuds_chain_begin_base(&reader->chain);
	if (reader->chain.nblocks > (BlockNumber) NBuffers / 4)
	{
		reader->chain.strategy = GetAccessStrategy(BAS_BULKREAD);
		reader->own_strategy = true;
	}
	return reader;
}

/*
 * Starts reading the stripe records behind a position.  If some of them have been
 * compacted into the base, or if the epoch has been raised since, the first gpuds_reader_next says
 * GPUDS_READ_STALE.
 */
GpudsJournalReader *
gpuds_reader_open_after(Relation index, const GpudsJournalPos *pos)
{
	GpudsJournalReader *reader = reader_make(index);

	reader->pos = *pos;
	reader->stale = reader->meta.epoch != pos->epoch;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		const GpudsStripeMeta *meta = &reader->meta.stripe[stripe];

		if (meta->head == InvalidBlockNumber ? pos->count[stripe] > 0 : meta->first > pos->count[stripe])
			reader->stale = true;
	}
	begin_stripe(reader, 0);
	return reader;
}

/* Leaves out stripe records numbered end->count or higher.  To be called before the first page is read. */
void
gpuds_reader_stop_at(GpudsJournalReader *reader, const GpudsJournalPos *end)
{
	reader->end = *end;
	reader->has_end = true;
	if (reader->phase != GPUDS_CHAIN_BASE)
		begin_stripe(reader, reader->phase);
}

/* Reads through the caller's ring of buffers. */
void
gpuds_reader_set_strategy(GpudsJournalReader *reader, BufferAccessStrategy strategy)
{
	if (reader->own_strategy)
		FreeAccessStrategy(reader->chain.strategy);
	reader->own_strategy = false;
	reader->chain.strategy = strategy;
}

/* The metapage as it was when the reader was opened. */
const GpudsMetaData *
gpuds_reader_meta(GpudsJournalReader *reader)
{
	return &reader->meta;
}

/* How far the reader has come; final after GPUDS_READ_END. */
void
gpuds_reader_position(GpudsJournalReader *reader, GpudsJournalPos *pos)
{
	*pos = reader->pos;
}

/* Frees the reader. */
void
gpuds_reader_close(GpudsJournalReader *reader)
{
	if (reader->own_strategy)
		FreeAccessStrategy(reader->chain.strategy);
	pfree(reader);
}

/* Raises ERRCODE_INDEX_CORRUPTED if a record's TID cannot be one. */
static void
check_tids(GpudsJournalReader *reader, const GpudsJournalPage *page)
{
	const int size = GpudsRecordSize(reader->meta.nwords);
	const char *at = page->records;

	for (int i = 0; i < page->nrecords; i++, at += size)
	{
		const GpudsRecord *record = (const GpudsRecord *) at;

		if (record->offset < FirstOffsetNumber || record->offset > MaxHeapTuplesPerPage)
			gpuds_corrupted(reader->index, page->blkno, "Record " UINT64_FORMAT " has TID (%u,%u).",
							page->first + i, record->block, record->offset);
	}
}

/*
 * Moves the position of the present stripe behind the chain's page.  Returns how many of the records that the
 * chain has copied are before the reader's end, and ends the walk there.
 */
static int
advance(GpudsJournalReader *reader)
{
	GpudsChain *chain = &reader->chain;
	const int stripe = chain->stripe;
	uint64 *want = &reader->pos.count[stripe];
	uint64 end = chain->expect;
	int n;

	if (reader->has_end && end >= reader->end.count[stripe])
	{
		end = reader->end.count[stripe];
		chain->next = InvalidBlockNumber;
	}
	n = end > *want ? (int) (end - *want) : 0;
	reader->pos.block[stripe] = chain->blkno;
	*want += n;
	return n;
}

/*
 * Reads the next page that has records of interest.  *page, with the records it
 * points to, is valid until the next call.  May be called again after
 * GPUDS_READ_END, but does not look for newer records then.  Takes a share lock on one page at a time.
 */
GpudsReadResult
gpuds_reader_next(GpudsJournalReader *reader, GpudsJournalPage *page)
{
	GpudsChain *chain = &reader->chain;

	while (!reader->stale && reader->phase < GPUDS_STRIPES)
	{
		int n;

		CHECK_FOR_INTERRUPTS();
		switch (gpuds_chain_next(chain))
		{
			case GPUDS_READ_END:
				begin_stripe(reader, reader->phase + 1);
				continue;
			case GPUDS_READ_STALE:
				reader->stale = true;
				continue;
			case GPUDS_READ_PAGE:
				break;
		}
		n = reader->phase == GPUDS_CHAIN_BASE ? chain->count : advance(reader);
		if (n == 0)
			continue;
		page->blkno = chain->blkno;
		page->kind = chain->opaque.kind;
		page->stripe = chain->opaque.stripe;
		page->first = chain->opaque.first + chain->skipped;
		page->nrecords = n;
		page->nwords = reader->meta.nwords;
		page->records = chain->records.data;
		check_tids(reader, page);
		return GPUDS_READ_PAGE;
	}
	return reader->stale ? GPUDS_READ_STALE : GPUDS_READ_END;
}
