/*-------------------------------------------------------------------------
 *
 * check_journal.c
 *	  gpuds_index_check's first part: the journal's pages.
 *
 * Walks the base and the stripes from the metapage, copies each page under a share lock, and
 * then looks at all blocks that no chain led to.  Appends and VACUUM go on meanwhile.  A
 * violation may come from a compaction that freed the chain under the walk: if the
 * metapage's generation has changed, the check starts again.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "admin/admin.h"
#include "journal/journal_internal.h"
#include "structure.h"

typedef struct JournalCheck
{
	Relation index;
	const GpudsKeyLayout *layout;
	GpudsEntry unused; /* bits that no entry has */
	BufferAccessStrategy strategy;
	bool stale;
	GpudsMetaData meta;
	BlockNumber nblocks;       /* of the file, as last seen */
	BlockNumber size;          /* blocks that there is room for in reached */
	bool *reached;             /* by block: in a chain */
	uint64 records;            /* in all chains */
	uint64 end[GPUDS_STRIPES]; /* number of the record behind each stripe's last one */
	PGAlignedBlock page;       /* the present page's copy */
} JournalCheck;

/*
 * Raises ERRCODE_INDEX_CORRUPTED, unless a compaction explains what was found.
 * Returns false then.
 */
static bool pg_attribute_printf(3, 4) violated(JournalCheck *check, BlockNumber blkno, const char *fmt, ...)
{
	GpudsMetaData meta;
	char detail[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(detail, sizeof(detail), fmt, args);
	va_end(args);

	gpuds_journal_read_meta(check->index, &meta);
	if (meta.generation == check->meta.generation && meta.file_id == check->meta.file_id)
		gpuds_corrupted(check->index, blkno, "%s", detail);
	check->stale = true;
	return false;
}

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

/*
 * Copies a page, after the checks that are the same for all pages but the
 * metapage.  Returns false if it is all zeros and may be.
 */
static bool
copy_page(JournalCheck *check, BlockNumber blkno, bool may_be_new)
{
	Relation index = check->index;
	Page page = (Page) check->page.data;
	Buffer buffer;
	GpudsPageOpaque opaque;

	CHECK_FOR_INTERRUPTS();

	buffer = ReadBufferExtended(index, MAIN_FORKNUM, blkno, RBM_NORMAL, check->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	if (may_be_new && PageIsNew(BufferGetPage(buffer)))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	gpuds_page_check(index, buffer, check->layout->nwords);
	memcpy(page, BufferGetPage(buffer), BLCKSZ);
	UnlockReleaseBuffer(buffer);

	opaque = GpudsPageGetOpaque(page);
	if (opaque->spare != 0 || opaque->spare2[0] != 0 || opaque->spare2[1] != 0 || opaque->spare2[2] != 0)
		gpuds_corrupted(index, blkno, "The page has spare fields that are not zero.");
	if (opaque->kind != GPUDS_PAGE_STRIPE && opaque->stripe != 0)
		gpuds_corrupted(index, blkno, "A page of kind %u belongs to stripe %u.", opaque->kind,
						opaque->stripe);
	return true;
}

/*
 * Goes to a chain's next page, to which another one links.  Returns false if it
 * is not there because of a compaction.
 */
static bool
next_page(JournalCheck *check, BlockNumber from, BlockNumber blkno)
{
	if (blkno >= check->nblocks)
		see_length(check);
	if (blkno == GPUDS_META_BLKNO || blkno >= check->nblocks)
		return violated(check, from, "It links to block %u, but the index has %u blocks.", blkno,
						check->nblocks);
	copy_page(check, blkno, false);
	return true;
}

/* Checks one record of the present page; its place there counts from 0. */
static void
check_record(JournalCheck *check, BlockNumber blkno, int place, GpudsEntry *entry)
{
	Page page = (Page) check->page.data;
	GpudsPageOpaque opaque = GpudsPageGetOpaque(page);
	const GpudsRecord *record = GpudsPageRecord(page, place, check->layout->nwords);
	bool base = opaque->kind == GPUDS_PAGE_BASE;

	if (record->flags != 0 && record->flags != GPUDS_RECORD_DEAD &&
		(base || record->flags != GPUDS_RECORD_TOMBSTONE))
		gpuds_corrupted(check->index, blkno, "Record %d has the flags 0x%02X.", place, record->flags);
	if (!OffsetNumberIsValid(record->offset) || !BlockNumberIsValid(record->block))
		gpuds_corrupted(check->index, blkno, "Record %d refers to row (%u,%u).", place, record->block,
						record->offset);
	gpuds_record_entry(record, check->layout->nwords, entry);
	if (!base && gpuds_stripe_of(entry) != opaque->stripe)
		gpuds_corrupted(check->index, blkno, "Record %d refers to row (%u,%u), which is not stripe %u's.",
						place, record->block, record->offset, opaque->stripe);
	if ((entry->w0 & check->unused.w0) | (entry->w1 & check->unused.w1) | (entry->t & check->unused.t))
		gpuds_corrupted(check->index, blkno, "Record %d has bits behind its key.", place);
}

/* Checks the base.  False: a compaction came. */
static bool
check_base(JournalCheck *check)
{
	const GpudsMetaData *meta = &check->meta;
	Page page = (Page) check->page.data;
	BlockNumber from = GPUDS_META_BLKNO;
	BlockNumber blkno = meta->base_head;
	BlockNumber pages = 0;
	uint64 records = 0;
	GpudsEntry previous = { 0, 0, 0 };

	while (blkno != InvalidBlockNumber)
	{
		GpudsPageOpaque opaque;
		int n;

		if (!next_page(check, from, blkno))
			return false;
		opaque = GpudsPageGetOpaque(page);
		if (opaque->kind != GPUDS_PAGE_BASE || opaque->generation != meta->generation ||
			opaque->first != records)
			return violated(check, blkno, "The page is not the one that the base goes on with.");
		n = GpudsPageCount(page, meta->nwords);
		if (n == 0)
			return violated(check, blkno, "A page of the base is empty.");
		for (int i = 0; i < n; i++)
		{
			GpudsEntry entry;

			check_record(check, blkno, i, &entry);
			if (records + i > 0 && !entry_less(&previous, &entry))
				gpuds_corrupted(check->index, blkno, "Record %d is not above the one before it.", i);
			previous = entry;
		}
		check->reached[blkno] = true;
		records += n;
		pages++;
		from = blkno;
		blkno = opaque->next;
	}
	if (records != meta->base_records || pages != meta->base_pages)
		return violated(check, GPUDS_META_BLKNO,
						"The base has " UINT64_FORMAT " records in %u pages instead of " UINT64_FORMAT
						" in %u.",
						records, pages, meta->base_records, meta->base_pages);
	check->records += records;
	return true;
}

/*
 * Checks that the tail hint of a stripe leads to the stripe's end: appends that
 * start there must not end up elsewhere.  The hint may be of no use, if the page
 * became another's; appends notice that.
 */
static bool
check_tail_hint(JournalCheck *check, int stripe)
{
	const GpudsMetaData *meta = &check->meta;
	BlockNumber from = GPUDS_META_BLKNO;
	BlockNumber blkno = meta->stripe[stripe].tail_hint;
	uint64 expect = 0;

	if (meta->stripe[stripe].head == InvalidBlockNumber)
		return true;
	for (;;)
	{
		GpudsPageOpaque opaque;

		if (!BlockNumberIsValid(blkno))
			return violated(check, from, "A tail hint of stripe %d does not lead to the stripe's end.",
							stripe);
		if (blkno < check->nblocks && check->reached[blkno])
			return true;
		if (!next_page(check, from, blkno))
			return false;
		opaque = GpudsPageGetOpaque((Page) check->page.data);
		if (opaque->kind != GPUDS_PAGE_STRIPE || opaque->stripe != stripe ||
			(from != GPUDS_META_BLKNO && opaque->first < expect))
			return true;

		/* a freed page that the hint still named, and that the stripe got again after we read it */
		if (opaque->first >= check->end[stripe])
			return true;
		expect = opaque->first + 1;
		from = blkno;
		blkno = opaque->next;
	}
}

/* Checks a stripe up to its present end, but for its tail hint.  False: a compaction came. */
static bool
check_stripe(JournalCheck *check, int stripe)
{
	const GpudsMetaData *meta = &check->meta;
	Page page = (Page) check->page.data;
	BlockNumber from = GPUDS_META_BLKNO;
	BlockNumber blkno = meta->stripe[stripe].head;
	uint64 expect = meta->stripe[stripe].first;

	if (blkno == InvalidBlockNumber)
	{
		if (expect != 0 || meta->stripe[stripe].tail_hint != InvalidBlockNumber)
			return violated(check, GPUDS_META_BLKNO, "Stripe %d has a tail but no head.", stripe);
		return true;
	}

	while (blkno != InvalidBlockNumber)
	{
		GpudsPageOpaque opaque;
		int n;

		if (!next_page(check, from, blkno))
			return false;
		opaque = GpudsPageGetOpaque(page);
		if (opaque->kind != GPUDS_PAGE_STRIPE || opaque->stripe != stripe || opaque->first != expect)
			return violated(check, blkno, "The page is not the one that stripe %d goes on with.", stripe);
		if (opaque->generation > meta->generation + 1)
			return violated(check, blkno,
							"The page is of generation " UINT64_FORMAT ", the index of " UINT64_FORMAT ".",
							opaque->generation, meta->generation);
		n = GpudsPageCount(page, meta->nwords);
		if (n == 0 && opaque->next != InvalidBlockNumber)
			return violated(check, blkno, "The page is empty but not the last of its stripe.");
		for (int i = 0; i < n; i++)
		{
			GpudsEntry entry;

			check_record(check, blkno, i, &entry);
		}
		check->reached[blkno] = true;
		expect += n;
		from = blkno;
		blkno = opaque->next;
	}
	check->records += expect - meta->stripe[stripe].first;
	check->end[stripe] = expect;
	return true;
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
	if (meta->epoch_due > 1 || meta->spare[0] != 0 || meta->spare[1] != 0 || meta->spare[2] != 0)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO,
						"The metapage's mark for an epoch is %u, or spare fields are not zero.",
						meta->epoch_due);
	if (meta->generation == 0)
		gpuds_corrupted(check->index, GPUDS_META_BLKNO, "The generation is 0.");
}

static bool
check_once(JournalCheck *check)
{
	const GpudsMetaData *meta = &check->meta;

	check->stale = false;
	check->records = 0;
	check->size = 0;
	if (check->reached)
		pfree(check->reached);
	check->reached = NULL;

	gpuds_journal_read_meta(check->index, &check->meta);
	see_length(check);
	check_meta(check);
	if (!check_base(check))
		return false;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (!check_stripe(check, stripe))
			return false;
	}
	gpuds_injection_point("check-stripes-read");
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (!check_tail_hint(check, stripe))
			return false;
	}
	if (meta->live_records > check->records || meta->garbage > check->records - meta->live_records)
		return violated(check, GPUDS_META_BLKNO,
						"The metapage counts " UINT64_FORMAT " live and " UINT64_FORMAT
						" other records, there are " UINT64_FORMAT ".",
						meta->live_records, meta->garbage, check->records);
	check_other_blocks(check);
	return true;
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
	while (!check_once(check))
		CHECK_FOR_INTERRUPTS();
	FreeAccessStrategy(check->strategy);
	pfree(check->reached);
	pfree(check);
}
