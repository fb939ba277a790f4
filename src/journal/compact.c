/*-------------------------------------------------------------------------
 *
 * compact.c
 *	  VACUUM's cleanup: compaction of the journal and the sweep of its pages.
 *
 * Compaction takes four steps, while inserts and scans continue:
 *
 *	1. Seal the stripes: each continues on a fresh page.
 *	2. Write a new base, of the next generation, from everything before that.
 *	3. Switch the metapage in one record: new base, stripes begin at the fresh pages.
 *	4. Sweep: every block that can no longer be reached becomes free.
 *
 * All pages that this takes are there before it begins (space.c).  If they are not to be had, there is no
 * compaction: it makes scans faster and the index smaller in the long run, but nothing needs it.
 *
 * A crash or an error before step 3 leaves longer stripes and some pages of a base that
 * nothing refers to; after step 3 it leaves old pages.  Before step 1 the metapage is
 * marked, in a record of its own, and the mark stays until a sweep has finished.  A VACUUM
 * that finds the mark sweeps before it compacts, so the generation number of orphaned pages
 * can be used again.  A VACUUM that does not find it need not sweep.
 *
 * A page alone tells whether it can be reached: base pages of the metapage's generation
 * can, and stripe pages numbered from the stripe's first record on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "postmaster/autovacuum.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"

#include "journal/journal_internal.h"
#include "sort/runs.h"
#include "kernels/core/sort.h"

/* When compaction pays: share of garbage in all records, and pages' worth of it. */
#define COMPACT_GARBAGE_SHARE 0.4
#define COMPACT_GARBAGE_PAGES 4

/*
 * Or stripes that have grown to this share of the base, and are worth this many pages.
 * Loading a record from a stripe costs some twenty times as much as from the
 * base, so stripes are kept a fraction of it; and since a base only gets written
 * again when so much has come that it grows by that share, a record is written
 * five times in the long run, whatever the size of the index.
 */
#define COMPACT_STRIPES_SHARE 0.25
#define COMPACT_STRIPES_PAGES 64

/* Records that are sorted at a time at most: nobody can interrupt that. */
#define MAX_SORT_RECORDS (4 * 1024 * 1024)

#define OUT_ENTRIES 2048

/* The base that is being replaced, as a source of the merge. */
typedef struct OldBase
{
	Relation index;
	GpudsJournalReader *reader;
	GpudsEntry entries[GPUDS_MAX_RECORDS_PER_PAGE];
} OldBase;

/* Stripe records, sorted in memory; what does not fit goes to runs in a file. */
typedef struct StripeSort
{
	int nwords;
	GpudsOp *ops;
	GpudsOp *scratch;
	int64 n;
	int64 capacity;
	GpudsEntry *entries; /* the sorted operations, deletions marked */
	int64 nentries;
} StripeSort;

/* Memory for sorting and merging, in bytes. */
static int64
memory_limit(void)
{
	int kilobytes = GpudsIsAutovacuum() && autovacuum_work_mem != -1 ? autovacuum_work_mem
																	 : maintenance_work_mem;

	return (int64) kilobytes * 1024;
}

pg_noreturn static void
compacted_under_us(Relation index)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("index \"%s\" was compacted by another process", RelationGetRelationName(index))));
}

/* GpudsSourceNext of the old base: its next live entries. */
static int
old_base_next(void *arg, const GpudsEntry **entries)
{
	OldBase *base = arg;
	GpudsJournalPage page;
	int n = 0;

	while (n == 0)
	{
		GpudsRecordIterator record = { .page = &page };

		gpuds_vacuum_delay();
		switch (gpuds_reader_next(base->reader, &page))
		{
			case GPUDS_READ_PAGE:
				break;
			case GPUDS_READ_END:
				return 0;
			case GPUDS_READ_STALE:
				compacted_under_us(base->index);
		}
		if (page.kind != GPUDS_PAGE_BASE)
			return 0;
		while (gpuds_record_next(&record))
		{
			if (record.flags == 0)
				base->entries[n++] = record.entry;
		}
	}
	*entries = base->entries;
	return n;
}

/* Sorts what is in memory; of operations on one entry the last stays. */
static void
sort_stripes(StripeSort *sort)
{
	if (sort->n == 0)
		return;
	if (sort->scratch == NULL)
		sort->scratch = MemoryContextAllocHuge(CurrentMemoryContext, sort->capacity * sizeof(GpudsOp));
	sort_ops(sort->ops, sort->scratch, sort->n);
	sort->n = sort_last_ops(sort->ops, sort->n);

	/* an entry is shorter than an operation: they fit in the scratch memory */
	sort->entries = (GpudsEntry *) sort->scratch;
	for (int64 i = 0; i < sort->n; i++)
	{
		sort->entries[i] = sort->ops[i].e;
		if (sort->ops[i].order & GPUDS_OP_DELETE)
			sort->entries[i].t |= GPUDS_RUN_DELETED;
	}
	sort->nentries = sort->n;
	sort->n = 0;
}

/*
 * Adds all records of the stripes before *sealed to the merge: runs of *file, in
 * the order in which they were appended, and what is last from memory.
 */
static void
read_stripes(Relation index, const GpudsMetaData *meta, const GpudsJournalPos *sealed, StripeSort *sort,
			 GpudsMerge *merge, BufFile **file)
{
	GpudsJournalReader *reader;
	GpudsJournalPos start;
	GpudsJournalPage page;
	GpudsReadResult result;
	int64 total = 0;
	int64 spilled = 0;

	gpuds_journal_start(meta, &start);
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		total += sealed->count[stripe] - Min(sealed->count[stripe], meta->stripe[stripe].first);

	sort->nwords = meta->nwords;
	sort->capacity = memory_limit() / (2 * sizeof(GpudsOp));
	sort->capacity = Max(Min(Min(sort->capacity, total), MAX_SORT_RECORDS), GPUDS_MAX_RECORDS_PER_PAGE);
	sort->ops = MemoryContextAllocHuge(CurrentMemoryContext, sort->capacity * sizeof(GpudsOp));

	reader = gpuds_reader_open_after(index, &start);
	gpuds_reader_stop_at(reader, sealed);
	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		GpudsRecordIterator record = { .page = &page };

		gpuds_vacuum_delay();
		if (sort->n + page.nrecords > sort->capacity)
		{
			GpudsSortedRun run;

			if (*file == NULL)
				*file = BufFileCreateTemp(false);
			sort_stripes(sort);
			gpuds_run_write(*file, sort->entries, sort->nentries, sort->nwords);
			run.file = *file;
			run.first = spilled;
			run.count = sort->nentries;
			gpuds_merge_run(merge, &run);
			spilled += sort->nentries;
			sort->nentries = 0;
		}
		while (gpuds_record_next(&record))
		{
			GpudsOp *op = &sort->ops[sort->n];

			if (record.flags & GPUDS_RECORD_DEAD)
				continue;
			op->e = record.entry;
			op->order = (uint64) sort->n << 1 |
						(record.flags & GPUDS_RECORD_TOMBSTONE ? GPUDS_OP_DELETE : GPUDS_OP_INSERT);
			sort->n++;
		}
	}
	if (result == GPUDS_READ_STALE)
		compacted_under_us(index);
	gpuds_reader_close(reader);

	sort_stripes(sort);
	gpuds_merge_array(merge, sort->entries, sort->nentries);
}

/* Makes the metapage refer to the new base and to the stripes' fresh pages. */
static void
switch_meta(Relation index, const GpudsMetaData *before, const GpudsStripeMeta *fresh, BlockNumber head,
			BlockNumber pages, uint64 records)
{
	Buffer buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	GenericXLogState *state;
	GpudsMetaData *meta;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	gpuds_meta_check(index, buffer);
	state = GenericXLogStart(index);
	meta = GpudsPageGetMeta(GenericXLogRegisterBuffer(state, buffer, 0));
	if (meta->generation != before->generation)
		compacted_under_us(index);

	meta->generation = before->generation + 1;
	meta->base_head = head;
	meta->base_pages = pages;
	meta->base_records = records;
	meta->live_records = records;
	meta->garbage = 0;
	meta->sweep_due = 1;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		/* a stripe that was empty then may have begun since: it stays as it is */
		if (fresh[stripe].head == InvalidBlockNumber)
			continue;
		meta->stripe[stripe].head = fresh[stripe].head;
		meta->stripe[stripe].first = fresh[stripe].first;

		/* a hint given since the stripes were sealed is behind the fresh page */
		if (meta->stripe[stripe].tail_hint == before->stripe[stripe].tail_hint)
			meta->stripe[stripe].tail_hint = fresh[stripe].tail_hint;
	}
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/* Pages of a base of what is not garbage in the old one and in so many records of the stripes. */
static int64
base_pages(const GpudsMetaData *meta, uint64 in_stripes)
{
	const int capacity = GpudsPageCapacity(meta->nwords);
	const uint64 total = meta->base_records + in_stripes;

	return (total - Min(meta->garbage, total) + capacity - 1) / capacity;
}

/* Stripes that have pages, each of which takes one more when it is sealed. */
static int64
stripes_in_use(const GpudsMetaData *meta)
{
	int64 n = 0;

	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		n += meta->stripe[stripe].head != InvalidBlockNumber;
	return n;
}

/* Sees to it that there are so many pages for a compaction; false: there is no space for them. */
static bool
reserve_pages(Relation index, GpudsReserve *reserve, int64 n)
{
	if (gpuds_reserve_pages(index, reserve, n))
		return true;
	ereport(WARNING,
			(errcode(reserve->why_code),
			 errmsg("index \"%s\" cannot grow, VACUUM does not compact it", RelationGetRelationName(index)),
			 errdetail("%s. Of " INT64_FORMAT " pages for a compaction, there are " INT64_FORMAT ".",
					   reserve->why, n, reserve->n),
			 errhint("Free space in the index's tablespace.")));
	return false;
}

/* Records that stripes have between where they begin and a position. */
static uint64
count_before(const GpudsMetaData *meta, const GpudsJournalPos *end)
{
	uint64 n = 0;

	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		n += end->count[stripe] - Min(end->count[stripe], meta->stripe[stripe].first);
	return n;
}

/* Records in the stripes at present. */
static uint64
count_stripes(Relation index, const GpudsMetaData *meta)
{
	GpudsJournalPos end;

	gpuds_journal_end(index, meta, &end);
	return count_before(meta, &end);
}

/* Replaces base and stripes, which have been sealed, by a new base, on pages of the reserve. */
static void
replace_base(Relation index, const GpudsMetaData *before, const GpudsJournalPos *sealed,
			 const GpudsStripeMeta *fresh, GpudsReserve *reserve)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds compaction",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	const int nwords = before->nwords;
	GpudsBaseWriter *writer;
	GpudsMerge *merge;
	OldBase *base = palloc(sizeof(OldBase));
	StripeSort *sort = palloc0(sizeof(StripeSort));
	GpudsEntry *out = palloc(OUT_ENTRIES * sizeof(GpudsEntry));
	BufFile *file = NULL;
	BlockNumber head;
	BlockNumber pages;
	uint64 records;
	int64 n;

	merge = gpuds_merge_begin(nwords, memory_limit() / 4);
	base->index = index;
	base->reader = gpuds_reader_open(index);
	gpuds_merge_source(merge, old_base_next, base);
	read_stripes(index, before, sealed, sort, merge, &file);

	writer = gpuds_base_begin(index, nwords, before->generation + 1, true, reserve);
	while ((n = gpuds_merge_next(merge, out, OUT_ENTRIES)) > 0)
	{
		gpuds_vacuum_delay();
		gpuds_base_add(writer, out, n);
	}
	gpuds_base_end(writer, &head, &pages, &records);
	gpuds_injection_point("compact-written");

	switch_meta(index, before, fresh, head, pages, records);
	gpuds_injection_point("compact-switched");

	if (file)
		BufFileClose(file);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
}

/*
 * Compacts, if there is the space for it: replaces base and stripes by a new base.  False: there is not; a
 * sweep is due all the same.
 */
static bool
compact(Relation index, int nwords)
{
	GpudsJournalPos sealed;
	GpudsStripeMeta fresh[GPUDS_STRIPES];
	GpudsMetaData before;
	GpudsReserve reserve;
	bool enough;

	gpuds_meta_sweep_due(index);
	gpuds_reserve_init(&reserve);

	/* read before sealing: a tail hint that differs at the switch is newer than the seal, or of no harm */
	gpuds_journal_read_meta(index, &before);
	gpuds_injection_point("compact-begun");
	enough = reserve_pages(index, &reserve,
						   base_pages(&before, count_stripes(index, &before)) + stripes_in_use(&before));
	if (enough)
	{
		gpuds_journal_seal(index, nwords, &reserve, &sealed, fresh);
		gpuds_injection_point("compact-sealed");

		/* others have appended meanwhile; from here on we know how much there is */
		enough = reserve_pages(index, &reserve, base_pages(&before, count_before(&before, &sealed)));
	}
	if (enough)
		replace_base(index, &before, &sealed, fresh, &reserve);
	gpuds_reserve_release(index, &reserve);
	return enough;
}

/* Can nothing reach this page, and is it not free yet? */
static bool
unreachable(const GpudsMetaData *meta, Page page)
{
	GpudsPageOpaque opaque;

	if (PageIsNew(page))
		return true;
	opaque = GpudsPageGetOpaque(page);
	if (opaque->kind == GPUDS_PAGE_BASE)
		return opaque->generation != meta->generation;
	return opaque->kind == GPUDS_PAGE_STRIPE && opaque->first < meta->stripe[opaque->stripe].first;
}

/*
 * Frees all blocks that cannot be reached, and tells the free space map of all
 * free ones, since it is not WAL-logged.  Returns how many are free now; adds to
 * *newly how many were not before.
 */
static BlockNumber
sweep(IndexVacuumInfo *info, int nwords, BlockNumber *newly)
{
	Relation index = info->index;
	GpudsMetaData meta;
	GpudsMapReach reach = { 0, false };
	BlockNumber nblocks;
	BlockNumber nfree = 0;

	gpuds_journal_read_meta(index, &meta);

	/*
	 * Under the extension lock, because a process that extends the file holds it until
	 * it has locked the new block; so every block we look at has been linked by
	 * the time we get its lock, or never will be.
	 */
	if (!RELATION_IS_LOCAL(index))
		LockRelationForExtension(index, ExclusiveLock);
	nblocks = RelationGetNumberOfBlocks(index);
	if (!RELATION_IS_LOCAL(index))
		UnlockRelationForExtension(index, ExclusiveLock);

	for (BlockNumber blkno = GPUDS_META_BLKNO + 1; blkno < nblocks; blkno++)
	{
		Buffer buffer;
		bool is_free;
		bool garbage;

		gpuds_vacuum_delay();
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, blkno, RBM_NORMAL, info->strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (!PageIsNew(BufferGetPage(buffer)))
			gpuds_page_check(index, buffer, nwords);
		garbage = unreachable(&meta, BufferGetPage(buffer));
		if (garbage)
		{
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
			LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
			garbage = unreachable(&meta, BufferGetPage(buffer));
			if (garbage)
			{
				START_CRIT_SECTION();
				gpuds_page_init(BufferGetPage(buffer), GPUDS_PAGE_FREE, 0, meta.generation, 0);
				gpuds_log_pages(index, InvalidBuffer, NULL, &buffer, 1);
				END_CRIT_SECTION();
				(*newly)++;
			}
		}
		is_free = !PageIsNew(BufferGetPage(buffer)) &&
				  GpudsPageGetOpaque(BufferGetPage(buffer))->kind == GPUDS_PAGE_FREE;
		UnlockReleaseBuffer(buffer);
		if (is_free)
		{
			gpuds_record_free_page(index, blkno, &reach);
			nfree++;
		}
	}
	IndexFreeSpaceMapVacuum(index);
	if (meta.sweep_due || meta.unreached != nfree)
		gpuds_meta_swept(index, nfree);
	return nfree;
}

/*
 * Does compaction pay?  Either much of the journal is garbage, or the stripes are long
 * for a base of that size, garbage or not.
 */
static bool
compaction_pays(const GpudsMetaData *meta, uint64 in_stripes)
{
	const uint64 page = GpudsPageCapacity(meta->nwords);
	uint64 total = meta->base_records + in_stripes;

	if (meta->garbage > total * COMPACT_GARBAGE_SHARE && meta->garbage > COMPACT_GARBAGE_PAGES * page)
		return true;
	return in_stripes > meta->base_records * COMPACT_STRIPES_SHARE &&
		   in_stripes > COMPACT_STRIPES_PAGES * page;
}

/*
 * May there be pages that are neither reachable nor free, or free ones that
 * nobody finds?  The free space map is not WAL-logged: after a crash, and on a
 * server that was a standby, it may be empty.
 */
static bool
sweep_pays(Relation index, const GpudsMetaData *meta)
{
	if (meta->sweep_due)
		return true;
	return meta->unreached > 0 && GetPageWithFreeSpace(index, BLCKSZ / 2) == InvalidBlockNumber;
}

/*
 * Cleanup after the bulk deletes of a VACUUM, or without any (estimated_count
 * is set then).  Compacts if that pays, frees pages that nothing refers to if there
 * may be any, and fills in num_pages, pages_newly_deleted, pages_deleted,
 * pages_free and the number of entries.
 */
void
gpuds_journal_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, int nwords)
{
	Relation index = info->index;
	GpudsMetaData meta;
	BlockNumber newly = 0;
	BlockNumber nfree;
	uint64 in_stripes;

	/* a compaction takes records marked without tombstones away for good */
	gpuds_journal_settle_epoch(index);
	gpuds_journal_read_meta(index, &meta);
	if (meta.nwords != nwords)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The index has %u key words, its definition %d.",
						meta.nwords, nwords);

	nfree = meta.unreached;
	if (sweep_pays(index, &meta))
		nfree = sweep(info, nwords, &newly);
	in_stripes = count_stripes(index, &meta);
	if (compaction_pays(&meta, in_stripes) && compact(index, nwords))
	{
		nfree = sweep(info, nwords, &newly);
		gpuds_journal_read_meta(index, &meta);
		in_stripes = count_stripes(index, &meta);
	}
	stats->pages_newly_deleted += newly;
	stats->pages_deleted = nfree;
	stats->pages_free = nfree;
	stats->num_pages = RelationGetNumberOfBlocks(index);

	/* the metapage knows of no garbage that came since the last bulk delete */
	if (stats->estimated_count)
		stats->num_index_tuples = meta.base_records + in_stripes -
								  Min(meta.garbage, in_stripes + meta.base_records);
}
