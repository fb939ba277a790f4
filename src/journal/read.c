/*-------------------------------------------------------------------------
 *
 * read.c
 *	  Reads the journal: the base, then the stripes, a page at a time.
 *
 * The reader copies a page's records out under a share lock and holds no lock and no pin
 * between pages.  Compaction may replace chains under it.  A page belongs to the chain being
 * read exactly if its kind, its stripe or generation, and the number of its first record are
 * the expected ones.  If they are not, the metapage tells why: another generation means that
 * a compaction was at work (GPUDS_READ_STALE); the same generation means that the chain is
 * damaged.  Numbers grow with each page, so no reader walks in circles.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"

#include "journal/journal_internal.h"

#define PHASE_BASE (-1) /* 0 to GPUDS_STRIPES - 1: that stripe */

struct GpudsJournalReader
{
	Relation index;
	BufferAccessStrategy strategy;
	bool own_strategy;
	GpudsMetaData meta;
	BlockNumber nblocks; /* size of the file, as last seen */
	bool stale;          /* was so when it was opened */
	bool has_end;
	GpudsJournalPos end;
	GpudsJournalPos pos; /* what was read so far */
	int phase;           /* PHASE_BASE, a stripe, GPUDS_STRIPES at the end */
	BlockNumber blkno;   /* next page to read, or invalid */
	uint64 expect;       /* number of its first record, if known */
	/* blkno comes from a caller's position and may be anything by now */
	bool by_position;
	bool exact; /* expect is known */
	PGAlignedBlock records;
};

static void begin_stripe(GpudsJournalReader *reader, int stripe);

static GpudsJournalReader *
reader_make(Relation index)
{
	GpudsJournalReader *reader = palloc(sizeof(GpudsJournalReader));

	memset(reader, 0, offsetof(GpudsJournalReader, records));
	reader->index = index;
	gpuds_journal_read_meta(index, &reader->meta);
	reader->nblocks = RelationGetNumberOfBlocks(index);
	return reader;
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
	reader->phase = PHASE_BASE;
	reader->blkno = reader->meta.base_head;
	reader->exact = true;
	if (reader->nblocks > (BlockNumber) NBuffers / 4)
	{
		reader->strategy = GetAccessStrategy(BAS_BULKREAD);
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

/* Leaves out stripe records numbered end->count or higher. */
void
gpuds_reader_stop_at(GpudsJournalReader *reader, const GpudsJournalPos *end)
{
	reader->end = *end;
	reader->has_end = true;
}

/* Reads through the caller's ring of buffers. */
void
gpuds_reader_set_strategy(GpudsJournalReader *reader, BufferAccessStrategy strategy)
{
	if (reader->own_strategy)
		FreeAccessStrategy(reader->strategy);
	reader->own_strategy = false;
	reader->strategy = strategy;
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

void
gpuds_reader_close(GpudsJournalReader *reader)
{
	if (reader->own_strategy)
		FreeAccessStrategy(reader->strategy);
	pfree(reader);
}

/* Sets the reader on a stripe's first page of interest. */
static void
begin_stripe(GpudsJournalReader *reader, int stripe)
{
	reader->phase = stripe;
	reader->blkno = InvalidBlockNumber;
	if (stripe >= GPUDS_STRIPES)
		return;

	reader->by_position = reader->pos.block[stripe] < reader->nblocks &&
						  reader->pos.block[stripe] != reader->meta.stripe[stripe].head;
	reader->blkno = reader->by_position ? reader->pos.block[stripe] : reader->meta.stripe[stripe].head;
	reader->exact = !reader->by_position;
	reader->expect = reader->meta.stripe[stripe].first;

	/* with nothing to read before the end the stripe need not be looked at */
	if (reader->has_end && reader->pos.count[stripe] >= reader->end.count[stripe])
		reader->blkno = InvalidBlockNumber;
}

/*
 * A page is not what it should be.  Stale if a compaction has changed the
 * metapage meanwhile, otherwise ERRCODE_INDEX_CORRUPTED.
 */
static GpudsReadResult
stale_or_corrupted(GpudsJournalReader *reader, BlockNumber blkno, const char *why)
{
	GpudsMetaData meta;

	gpuds_journal_read_meta(reader->index, &meta);
	if (meta.generation == reader->meta.generation && meta.file_id == reader->meta.file_id)
		gpuds_corrupted(reader->index, blkno, "%s", why);
	reader->stale = true;
	return GPUDS_READ_STALE;
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

/* Reads the next page of the base.  *done: there is none. */
static GpudsReadResult
next_base(GpudsJournalReader *reader, GpudsJournalPage *page, bool *done)
{
	const int nwords = reader->meta.nwords;
	BlockNumber blkno = reader->blkno;
	GpudsPageOpaqueData opaque;
	Buffer buffer;
	int n;

	*done = false;
	if (blkno == InvalidBlockNumber)
	{
		if (reader->expect != reader->meta.base_records)
			return stale_or_corrupted(reader, GPUDS_META_BLKNO,
									  "The base ends before all of its records were found.");
		*done = true;
		return GPUDS_READ_END;
	}

	buffer = ReadBufferExtended(reader->index, MAIN_FORKNUM, blkno, RBM_NORMAL, reader->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	gpuds_page_check(reader->index, buffer, nwords);
	opaque = *GpudsPageGetOpaque(BufferGetPage(buffer));
	n = GpudsPageCount(BufferGetPage(buffer), nwords);
	memcpy(reader->records.data, PageGetContents(BufferGetPage(buffer)), n * GpudsRecordSize(nwords));
	UnlockReleaseBuffer(buffer);

	if (opaque.kind != GPUDS_PAGE_BASE || opaque.generation != reader->meta.generation ||
		opaque.first != reader->expect)
		return stale_or_corrupted(reader, blkno, "The page is not the one that the base goes on with.");
	if (n == 0 || opaque.first + n > reader->meta.base_records)
		return stale_or_corrupted(reader, blkno, "The page has a wrong number of records.");

	page->blkno = blkno;
	page->kind = GPUDS_PAGE_BASE;
	page->stripe = 0;
	page->first = opaque.first;
	page->nrecords = n;
	page->nwords = nwords;
	page->records = reader->records.data;
	check_tids(reader, page);
	reader->expect += n;
	reader->blkno = opaque.next;
	return GPUDS_READ_PAGE;
}

/* Reads the next page of the present stripe.  *done: there is none. */
static GpudsReadResult
next_stripe(GpudsJournalReader *reader, GpudsJournalPage *page, bool *done)
{
	const int stripe = reader->phase;
	const int nwords = reader->meta.nwords;
	const int size = GpudsRecordSize(nwords);
	uint64 *want = &reader->pos.count[stripe];

	*done = false;
	while (reader->blkno != InvalidBlockNumber)
	{
		BlockNumber blkno = reader->blkno;
		GpudsPageOpaqueData opaque;
		Buffer buffer;
		int n;
		int skip = 0;
		int take = 0;
		bool wrong;

		CHECK_FOR_INTERRUPTS();

		buffer = ReadBufferExtended(reader->index, MAIN_FORKNUM, blkno, RBM_NORMAL, reader->strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		gpuds_page_check(reader->index, buffer, nwords);
		opaque = *GpudsPageGetOpaque(BufferGetPage(buffer));
		n = GpudsPageCount(BufferGetPage(buffer), nwords);
		wrong = opaque.kind != GPUDS_PAGE_STRIPE || opaque.stripe != stripe ||
				(reader->exact ? opaque.first != reader->expect : opaque.first > *want);

		/* a position may not be the end of a page's records and a page not the last one */
		if (!wrong && opaque.next == InvalidBlockNumber && opaque.first + n < *want)
			wrong = true;

		if (!wrong && opaque.first + n > *want)
		{
			skip = *want - opaque.first;
			take = n - skip;
			if (reader->has_end && *want + take > reader->end.count[stripe])
				take = *want < reader->end.count[stripe] ? reader->end.count[stripe] - *want : 0;
			memcpy(reader->records.data, PageGetContents(BufferGetPage(buffer)) + skip * size, take * size);
		}
		UnlockReleaseBuffer(buffer);

		if (wrong && reader->by_position)
		{
			/* the position's page is gone: from the head on, then */
			reader->by_position = false;
			reader->exact = true;
			reader->expect = reader->meta.stripe[stripe].first;
			reader->blkno = reader->meta.stripe[stripe].head;
			continue;
		}
		if (wrong && opaque.kind == GPUDS_PAGE_STRIPE && opaque.stripe == stripe &&
			opaque.next == InvalidBlockNumber && opaque.first == reader->expect)
		{
			/* the position lies behind the stripe's end: it was another file's */
			reader->stale = true;
			return GPUDS_READ_STALE;
		}
		if (wrong)
			return stale_or_corrupted(reader, blkno, "The page is not the one that the stripe goes on with.");
		if (n == 0 && opaque.next != InvalidBlockNumber)
			return stale_or_corrupted(reader, blkno, "The page is empty but not the last of its stripe.");

		reader->by_position = false;
		reader->exact = true;
		reader->expect = opaque.first + n;
		reader->blkno = opaque.next;
		reader->pos.block[stripe] = blkno;
		if (opaque.next != InvalidBlockNumber && opaque.next >= reader->nblocks)
		{
			reader->nblocks = RelationGetNumberOfBlocks(reader->index);
			if (opaque.next >= reader->nblocks)
				return stale_or_corrupted(reader, blkno,
										  "The next page of the chain is outside of the file.");
		}
		if (reader->has_end && reader->expect >= reader->end.count[stripe])
			reader->blkno = InvalidBlockNumber;

		if (take > 0)
		{
			page->blkno = blkno;
			page->kind = GPUDS_PAGE_STRIPE;
			page->stripe = stripe;
			page->first = *want;
			page->nrecords = take;
			page->nwords = nwords;
			page->records = reader->records.data;
			check_tids(reader, page);
			*want += take;
			return GPUDS_READ_PAGE;
		}
	}

	*done = true;
	return GPUDS_READ_END;
}

/*
 * Reads the next page that has records of interest.  *page, with the records it
 * points to, is valid until the next call.  May be called again after
 * GPUDS_READ_END, but does not look for newer records then.
 */
GpudsReadResult
gpuds_reader_next(GpudsJournalReader *reader, GpudsJournalPage *page)
{
	if (reader->stale)
		return GPUDS_READ_STALE;

	while (reader->phase < GPUDS_STRIPES)
	{
		GpudsReadResult result;
		bool done;

		CHECK_FOR_INTERRUPTS();

		if (reader->blkno != InvalidBlockNumber && reader->blkno >= reader->nblocks)
		{
			reader->nblocks = RelationGetNumberOfBlocks(reader->index);
			if (reader->blkno >= reader->nblocks)
				return stale_or_corrupted(reader, reader->blkno,
										  "A chain leads to this block outside of the file.");
		}

		if (reader->phase == PHASE_BASE)
			result = next_base(reader, page, &done);
		else
			result = next_stripe(reader, page, &done);
		if (!done)
			return result;
		begin_stripe(reader, reader->phase + 1);
	}
	return GPUDS_READ_END;
}
