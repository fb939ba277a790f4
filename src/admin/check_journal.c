/*-------------------------------------------------------------------------
 *
 * check_journal.c
 *	  gpuds_index_check's first part: the journal's pages.
 *
 * Walks the base and the stripes as every reader does (journal/chain.h), looks at what the walk does not
 * need, and then at all blocks that no chain led to.  Appends and VACUUM go on meanwhile.  If a compaction
 * has replaced a chain under the walk, the check starts again.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "admin/admin.h"
#include "journal/chain.h"
#include "structure.h"

typedef struct JournalCheck
{
	Relation index;
	const GpudsKeyLayout *layout;
	GpudsEntry unused; /* bits that no entry has */
	BufferAccessStrategy strategy;
	GpudsMetaData meta;
	BlockNumber nblocks;       /* of the file, as last seen */
	BlockNumber size;          /* blocks that there is room for in reached */
	bool *reached;             /* by block: in a chain */
	uint64 records;            /* in all chains */
	uint64 end[GPUDS_STRIPES]; /* number of the record behind each stripe's last one */
	GpudsChain chain;          /* that is being walked */
	PGAlignedBlock page;       /* a copy of a page outside of the walk */
} JournalCheck;

/* The bits of an entry that stand behind the key: below its last bit, above the TID. */
static void
find_unused_bits(const GpudsKeyLayout *layout, GpudsEntry *unused)
{
	int bits = 64 * layout->nwords + ENTRY_SPILL_BITS - layout->nbits;
	int of_spill = Min(bits, ENTRY_SPILL_BITS);
	uint64 word = (UINT64CONST(1) << (bits - of_spill)) - 1;

	unused->w0 = layout->nwords == 1 ? word : 0;
	unused->w1 = layout->nwords == 1 ? 0 : word;
	unused->t = ((UINT64CONST(1) << of_spill) - 1) << ENTRY_SPILL_SHIFT;
}

/* Sees how long the file is now. */
static void
see_length(JournalCheck *check)
{
	check->nblocks = RelationGetNumberOfBlocks(check->index);
	if (check->nblocks <= check->size)
		return;
	if (check->reached == NULL)
		check->reached = MemoryContextAllocHuge(CurrentMemoryContext, check->nblocks);
	else
		check->reached = repalloc_huge(check->reached, check->nblocks);
	memset(check->reached + check->size, 0, check->nblocks - check->size);
	check->size = check->nblocks;
}

/* Checks what a page says of itself and nobody needs. */
static void
check_opaque(JournalCheck *check, BlockNumber blkno, const GpudsPageOpaqueData *opaque)
{
	if (opaque->spare != 0 || opaque->spare2[0] != 0 || opaque->spare2[1] != 0 || opaque->spare2[2] != 0)
		gpuds_corrupted(check->index, blkno, "The page has spare fields that are not zero.");
	if (opaque->kind != GPUDS_PAGE_STRIPE && opaque->stripe != 0)
		gpuds_corrupted(check->index, blkno, "A page of kind %u belongs to stripe %u.", opaque->kind,
						opaque->stripe);
}

/* Copies a page outside of the walk.  Returns false if it is all zeros and may be. */
static bool
copy_page(JournalCheck *check, BlockNumber blkno, bool may_be_new)
{
	Page page = (Page) check->page.data;
	Buffer buffer;

	CHECK_FOR_INTERRUPTS();

	buffer = ReadBufferExtended(check->index, MAIN_FORKNUM, blkno, RBM_NORMAL, check->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (may_be_new && PageIsNew(BufferGetPage(buffer)))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	gpuds_page_check(check->index, buffer, check->layout->nwords);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);
	check_opaque(check, blkno, GpudsPageGetOpaque(page));
	return true;
}

/* Checks one record of the chain's present page; its place there counts from 0. */
static void
check_record(JournalCheck *check, int place, GpudsEntry *entry)
{
	const GpudsChain *chain = &check->chain;
	const int nwords = check->layout->nwords;
	const GpudsRecord *record = (const GpudsRecord *) (chain->records.data + place * GpudsRecordSize(nwords));
	bool base = chain->stripe == GPUDS_CHAIN_BASE;

	if (record->flags != 0 && record->flags != GPUDS_RECORD_DEAD &&
		(base || record->flags != GPUDS_RECORD_TOMBSTONE))
		gpuds_corrupted(check->index, chain->blkno, "Record %d has the flags 0x%02X.", place, record->flags);
	if (!OffsetNumberIsValid(record->offset) || !BlockNumberIsValid(record->block))
		gpuds_corrupted(check->index, chain->blkno, "Record %d refers to row (%u,%u).", place, record->block,
						record->offset);
	gpuds_record_entry(record, nwords, entry);
	if (!base && gpuds_stripe_of(entry) != chain->stripe)
		gpuds_corrupted(check->index, chain->blkno,
						"Record %d refers to row (%u,%u), which is not stripe %d's.", place, record->block,
						record->offset, chain->stripe);
	if ((entry->w0 & check->unused.w0) | (entry->w1 & check->unused.w1) | (entry->t & check->unused.t))
		gpuds_corrupted(check->index, chain->blkno, "Record %d has bits behind its key.", place);
}

/* Goes to the chain's next page and notes it. */
static GpudsReadResult
next_page(JournalCheck *check)
{
	GpudsChain *chain = &check->chain;
	GpudsReadResult result = gpuds_chain_next(chain);

	if (result != GPUDS_READ_PAGE)
		return result;
	if (chain->blkno >= check->nblocks)
		see_length(check);
	check_opaque(check, chain->blkno, &chain->opaque);
	check->reached[chain->blkno] = true;
	check->records += chain->count;
	return result;
}

/* Checks the base.  GPUDS_READ_STALE: a compaction came. */
static GpudsReadResult
check_base(JournalCheck *check)
{
	const GpudsMetaData *meta = &check->meta;
	GpudsReadResult result;
	BlockNumber pages = 0;
	bool first = true;
	GpudsEntry previous = { 0, 0, 0 };

	gpuds_chain_begin_base(&check->chain);
	while ((result = next_page(check)) == GPUDS_READ_PAGE)
	{
		for (int i = 0; i < check->chain.count; i++)
		{
			GpudsEntry entry;

			check_record(check, i, &entry);
			if (!first && !entry_less(&previous, &entry))
				gpuds_corrupted(check->index, check->chain.blkno, "Record %d is not above the one before it.",
								i);
			first = false;
			previous = entry;
		}
		pages++;
	}
	if (result == GPUDS_READ_END && pages != meta->base_pages)
		return gpuds_stale_or_corrupted(check->index, meta, GPUDS_META_BLKNO,
										"The base has %u pages instead of %u.", pages, meta->base_pages);
	return result;
}

/*
 * Checks that the tail hint of a stripe leads to the stripe's end: appends that
 * start there must not end up elsewhere.  The hint may be of no use, if the page
 * became another's; appends notice that.
 */
static GpudsReadResult
check_tail_hint(JournalCheck *check, int stripe)
{
	const GpudsMetaData *meta = &check->meta;
	BlockNumber from = GPUDS_META_BLKNO;
	BlockNumber blkno = meta->stripe[stripe].tail_hint;
	uint64 expect = 0;

	if (meta->stripe[stripe].head == InvalidBlockNumber)
		return GPUDS_READ_END;
	for (;;)
	{
		GpudsPageOpaque opaque;

		if (BlockNumberIsValid(blkno) && blkno >= check->nblocks)
			see_length(check);
		if (blkno == GPUDS_META_BLKNO || blkno >= check->nblocks)
			return gpuds_stale_or_corrupted(check->index, meta, from,
											"A tail hint of stripe %d does not lead to the stripe's end.",
											stripe);
		if (check->reached[blkno])
			return GPUDS_READ_END;
		copy_page(check, blkno, false);
		opaque = GpudsPageGetOpaque((Page) check->page.data);
		if (opaque->kind != GPUDS_PAGE_STRIPE || opaque->stripe != stripe ||
			(from != GPUDS_META_BLKNO && opaque->first < expect))
			return GPUDS_READ_END;

		/* a freed page that the hint still named, and that the stripe got again after we read it */
		if (opaque->first >= check->end[stripe])
			return GPUDS_READ_END;
		expect = opaque->first + 1;
		from = blkno;
		blkno = opaque->next;
	}
}

/* Checks a stripe up to its present end, but for its tail hint.  GPUDS_READ_STALE: a compaction came. */
static GpudsReadResult
check_stripe(JournalCheck *check, int stripe)
{
	const GpudsMetaData *meta = &check->meta;
	GpudsReadResult result;

	if (meta->stripe[stripe].head == InvalidBlockNumber &&
		(meta->stripe[stripe].first != 0 || meta->stripe[stripe].tail_hint != InvalidBlockNumber))
		return gpuds_stale_or_corrupted(check->index, meta, GPUDS_META_BLKNO,
										"Stripe %d has a tail but no head.", stripe);

	gpuds_chain_begin_stripe(&check->chain, stripe, 0);
	while ((result = next_page(check)) == GPUDS_READ_PAGE)
	{
		if (check->chain.opaque.generation > meta->generation + 1)
			return gpuds_stale_or_corrupted(check->index, meta, check->chain.blkno,
											"The page is of generation " UINT64_FORMAT
											", the index of " UINT64_FORMAT ".",
											check->chain.opaque.generation, meta->generation);
		for (int i = 0; i < check->chain.count; i++)
		{
			GpudsEntry entry;

			check_record(check, i, &entry);
		}
	}
	check->end[stripe] = check->chain.expect;
	return result;
}

/*
 * Looks at the blocks that no chain led to.  They are free, or pages appended
 * since, or what a crash left behind for VACUUM to free.
 */
static void
check_other_blocks(JournalCheck *check)
{
	BlockNumber nblocks = check->nblocks;
	BlockNumber orphans = 0;

	for (BlockNumber blkno = GPUDS_META_BLKNO + 1; blkno < nblocks; blkno++)
	{
		Page page = (Page) check->page.data;

		if (check->reached[blkno])
			continue;
		if (!copy_page(check, blkno, true) || GpudsPageGetOpaque(page)->kind != GPUDS_PAGE_FREE)
			orphans++;
		else if (GpudsPageCount(page, check->layout->nwords) > 0 ||
				 BlockNumberIsValid(GpudsPageGetOpaque(page)->next))
			gpuds_corrupted(check->index, blkno, "A free page is not empty.");
	}
	if (orphans > 0)
		ereport(DEBUG1, (errmsg_internal("index \"%s\" has %u blocks that are neither free nor in a chain",
										 RelationGetRelationName(check->index), orphans)));
}

/* Checks that pages of stems follow the metapage, as many as it says; what is on them has been read. */
static void
check_stem_pages(JournalCheck *check)
{
	for (BlockNumber blkno = GPUDS_META_BLKNO + 1; blkno <= GPUDS_META_BLKNO + check->meta.stem_pages;
		 blkno++)
	{
		copy_page(check, blkno, false);
		if (GpudsPageGetOpaque((Page) check->page.data)->kind != GPUDS_PAGE_STEMS)
			gpuds_corrupted(check->index, blkno, "A page of stems is of kind %u.",
							GpudsPageGetOpaque((Page) check->page.data)->kind);
		check->reached[blkno] = true;
	}
}

/* Checks what the metapage says by itself. */
static void
check_meta(JournalCheck *check)
{
	const GpudsMetaData *meta = &check->meta;

	if (gpuds_structure(meta->structure) == NULL)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO, "The structure is of unknown kind %u.",
						meta->structure);
	if (meta->nwords != check->layout->nwords || meta->key_bits != check->layout->nbits)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO,
						"Keys have %u bits in %u words here, %d in %d by the definition.", meta->key_bits,
						meta->nwords, check->layout->nbits, check->layout->nwords);
	if (meta->sweep_due > 1)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO, "The metapage's mark for a sweep is %u.",
						meta->sweep_due);
	if (meta->epoch_due > 1 || meta->spare[0] != 0 || meta->spare[1] != 0)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO,
						"The metapage's mark for an epoch is %u, or spare fields are not zero.",
						meta->epoch_due);
	if (meta->generation == 0)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO, "The generation is 0.");
}

/* Checks the journal.  GPUDS_READ_STALE: a compaction came. */
static GpudsReadResult
check_once(JournalCheck *check)
{
	const GpudsMetaData *meta = &check->meta;

	check->records = 0;
	check->size = 0;
	if (check->reached)
		pfree(check->reached);
	check->reached = NULL;

	gpuds_journal_read_meta(check->index, &check->meta);
	see_length(check);
	check_meta(check);
	check_stem_pages(check);
	gpuds_chain_init(&check->chain, check->index, meta, check->strategy);
	if (check_base(check) == GPUDS_READ_STALE)
		return GPUDS_READ_STALE;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (check_stripe(check, stripe) == GPUDS_READ_STALE)
			return GPUDS_READ_STALE;
	}
	gpuds_injection_point("check-stripes-read");
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (check_tail_hint(check, stripe) == GPUDS_READ_STALE)
			return GPUDS_READ_STALE;
	}
	if (meta->live_records > check->records || meta->garbage > check->records - meta->live_records)
		return gpuds_stale_or_corrupted(check->index, meta, GPUDS_META_BLKNO,
										"The metapage counts " UINT64_FORMAT " live and " UINT64_FORMAT
										" other records, there are " UINT64_FORMAT ".",
										meta->live_records, meta->garbage, check->records);
	check_other_blocks(check);
	return GPUDS_READ_END;
}

/*
 * Checks all pages of an index's journal.  Raises ERRCODE_INDEX_CORRUPTED for
 * the first violation, with its block.  Locks one page at a time, shared.
 */
void
gpuds_check_journal(Relation index, const GpudsKeyLayout *layout)
{
	JournalCheck *check = palloc0(sizeof(JournalCheck));

	check->index = index;
	check->layout = layout;
	check->strategy = GetAccessStrategy(BAS_BULKREAD);
	find_unused_bits(layout, &check->unused);
	while (check_once(check) == GPUDS_READ_STALE)
		CHECK_FOR_INTERRUPTS();
	FreeAccessStrategy(check->strategy);
	pfree(check->reached);
	pfree(check);
}
