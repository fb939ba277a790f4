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
 * All pages that this takes are there before it begins (new_pages.c).  If they are not to be had, there is no
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
#include "journal/journal_sort.h"

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

#define OUT_ENTRIES 2048

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

/* gpuds_vacuum_delay is a macro. */
static void
delay(void)
{
	gpuds_vacuum_delay();
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

/* Records in the stripes at present. */
static uint64
count_stripes(Relation index, const GpudsMetaData *meta)
{
	GpudsJournalPos end;

	gpuds_journal_end(index, meta, &end);
	return gpuds_journal_count_before(meta, &end);
}

/* Replaces base and stripes, which have been sealed, by a new base, on pages of the reserve. */
static void
replace_base(Relation index, const GpudsMetaData *before, const GpudsJournalPos *sealed,
			 const GpudsStripeMeta *fresh, GpudsReserve *reserve)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds compaction",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	const GpudsJournalSelect select = { .end = sealed, .between_pages = delay };
	GpudsJournalSort *sort = gpuds_journal_sort_begin(index, memory_limit(), &select);
	GpudsEntry *out = palloc(OUT_ENTRIES * sizeof(GpudsEntry));
	GpudsBaseWriter *writer;
	BlockNumber head;
	BlockNumber pages;
	uint64 records;
	int64 n;

	if (!gpuds_journal_sort_stripes(sort, NULL))
		compacted_under_us(index);
	writer = gpuds_base_begin(index, before->nwords, before->generation + 1, true, reserve);
	while ((n = gpuds_journal_sort_next(sort, out, OUT_ENTRIES)) > 0)
	{
		gpuds_vacuum_delay();
		gpuds_base_add(writer, out, n);
	}
	if (n < 0)
		compacted_under_us(index);
	gpuds_base_end(writer, &head, &pages, &records);
	gpuds_injection_point("compact-written");

	switch_meta(index, before, fresh, head, pages, records);
	gpuds_injection_point("compact-switched");

	gpuds_journal_sort_end(sort);
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
		enough = reserve_pages(index, &reserve,
							   base_pages(&before, gpuds_journal_count_before(&before, &sealed)));
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
