/*-------------------------------------------------------------------------
 *
 * build.c
 *	  CREATE INDEX: scans the heap, sorts the entries, writes them as a base.
 *
 * A sorter collects the entries in maintenance_work_mem (build_worker.c).  With workers all of that is
 * shared (parallel.c).
 *
 * A build without workers has its last run in memory.  Its pages are not WAL-logged while
 * they are written, but all together at the end (gpuds_journal_finish_build).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "pgstat.h"

#include "build/build.h"
#include "insert/insert.h"
#include "journal/journal.h"
#include "mirror/mirror.h"
#include "structure.h"
#include "unique/unique.h"

/* A serial build's writing; returns the number of entries.  unique: checks them, or NULL. */
static uint64
write_base(Relation index, GpudsCollector *own, GpudsUniqueBuild *unique)
{
	GpudsBaseWriter *writer = gpuds_base_begin(index, own->layout.nwords, 1, false, NULL);
	const GpudsEntry *entries;
	BlockNumber head;
	BlockNumber pages;
	uint64 records;
	int64 done = 0;
	int64 n;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, gpuds_sorter_total(own->sorter));
	while ((n = gpuds_sorter_block(own->sorter, &entries)) > 0)
	{
		if (unique)
			gpuds_unique_build_add(unique, entries, n);
		gpuds_base_add(writer, entries, n);
		done += n;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
	}
	gpuds_base_end(writer, &head, &pages, &records);
	gpuds_journal_finish_build(index, head, pages, records, false);
	return records;
}

/* A build without workers. */
static void
build_alone(Relation heap, Relation index, IndexInfo *indexInfo, IndexBuildResult *result)
{
	GpudsUniqueBuild *unique = NULL;
	GpudsCollector collector;

	gpuds_collector_init(&collector, heap, index, maintenance_work_mem);
	result->heap_tuples = gpuds_collect(&collector, heap, index, indexInfo, true, NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, GPUDS_PHASE_WRITE);
	if (indexInfo->ii_Unique)
		unique = gpuds_unique_build_begin(heap, index, indexInfo);
	result->index_tuples = write_base(index, &collector, unique);
	if (unique)
		gpuds_unique_build_end(unique);
	gpuds_collector_free(&collector);
}

/* How many workers a build should ask for: none where somebody must see all entries in order. */
static int
planned_workers(Relation heap, Relation index, IndexInfo *indexInfo)
{
	if (indexInfo->ii_Unique)
		return 0;
	if (GPUDS_CORE_PLANS_BUILDS)
		return indexInfo->ii_ParallelWorkers;
	if (!IsNormalProcessingMode() || IsInParallelMode())
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
}

/*
 * ambuild, of an access method whose new indexes have this structure.  The caller holds what CREATE
 * INDEX, REINDEX or TRUNCATE hold; the index has no blocks yet.  Raises what encoding a key may raise.
 */
IndexBuildResult *
gpuds_build(Relation heap, Relation index, IndexInfo *indexInfo, uint8 structure)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	GpudsKeyLayout layout;
	StringInfoData stems;
	int nworkers;

	gpuds_require_preload();
	gpuds_key_layout(index, &layout);
	initStringInfo(&stems);
	gpuds_choose_stems(heap, index, indexInfo, &layout, &stems);
	gpuds_insert_discard(index);
	/* as of ON COMMIT DELETE ROWS: what the file held before is no more */
	gpuds_mirror_forget(index);
	gpuds_journal_create(index, MAIN_FORKNUM, gpuds_structure_of_new_index(structure), layout.nwords,
						 layout.nbits, stems.data, stems.len);
	pfree(stems.data);

	/* a table truncated in the transaction that made it keeps its file numbers: forget the former file */
	gpuds_index_forget_info(index);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, GPUDS_PHASE_SCAN);
	nworkers = planned_workers(heap, index, indexInfo);
	if (nworkers == 0 || !gpuds_parallel_build(heap, index, indexInfo, nworkers, result))
		build_alone(heap, index, indexInfo, result);
	return result;
}

/* ambuildempty: the init fork of an unlogged index. */
void
gpuds_build_empty(Relation index, uint8 structure)
{
	GpudsKeyLayout layout;

	gpuds_require_preload();
	gpuds_key_layout(index, &layout);
	gpuds_journal_create(index, INIT_FORKNUM, gpuds_structure_of_new_index(structure), layout.nwords,
						 layout.nbits, NULL, 0);
}

/* ambuildphasename */
char *
gpuds_build_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case GPUDS_PHASE_SCAN:
			return "scanning table";
		case GPUDS_PHASE_SORT:
			return "sorting entries";
		case GPUDS_PHASE_WRITE:
			return "writing index pages";
		default:
			return NULL;
	}
}
