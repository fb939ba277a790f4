/*-------------------------------------------------------------------------
 *
 * build_worker.c
 *	  A build's participant: scans the table and hands the entries of its rows to a sorter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "pgstat.h"

#include "build/build.h"

/*
 * Prepares for collecting the entries of the table's rows, or of a part of them, in so many kilobytes.
 * Allocates in the current memory context.
 */
void
gpuds_collector_init(GpudsCollector *collector, Relation heap, Relation index, int64 kilobytes)
{
	int64 most = (int64) RelationGetNumberOfBlocks(heap) * MaxHeapTuplesPerPage + 1024;
	Size memory = (Size) kilobytes * 1024;

	memset(collector, 0, sizeof(*collector));
	collector->layout = gpuds_index_info(index)->layout;
	collector->block = InvalidBlockNumber;
	collector->sorter = gpuds_sorter_begin(collector->layout.nwords, memory, most);
	gpuds_sorter_reserve(collector->sorter, Min(most, (int64) (memory / (2 * sizeof(GpudsEntry)))));
}

/*
 * Takes one heap tuple.  Entries of one page of the table go into one run: tuples of one HOT chain may give
 * the same entry, which must not be in two runs.
 */
static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool tuple_is_alive, void *arg)
{
	GpudsCollector *collector = arg;
	MemoryContext old;

	if (ItemPointerGetBlockNumber(tid) != collector->block)
	{
		collector->block = ItemPointerGetBlockNumber(tid);
		gpuds_sorter_reserve(collector->sorter, MaxHeapTuplesPerPage);
	}
	old = gpuds_key_scratch_enter(&collector->hashes, &collector->layout);
	gpuds_key_encode(&collector->layout, values, isnull, tid, gpuds_sorter_slot(collector->sorter));
	MemoryContextSwitchTo(old);
}

/* Frees what the collector has, all but itself. */
void
gpuds_collector_free(GpudsCollector *collector)
{
	gpuds_sorter_end(collector->sorter);
}

/*
 * Scans the heap, or with pscan (not NULL) a participant's part of it, collects the entries and sorts what is
 * in memory.  Returns the number of rows.  Raises what encoding a key does, and what writing temporary files
 * does.  The caller holds CREATE INDEX's locks.
 */
double
gpuds_collect(GpudsCollector *collector, Relation heap, Relation index, IndexInfo *indexInfo, bool progress,
			  ParallelTableScanDesc pscan)
{
	TableScanDesc scan = pscan ? GpudsBeginscanParallel(heap, pscan) : NULL;
	double heap_tuples;

	heap_tuples = table_index_build_scan(heap, index, indexInfo, true, progress, build_callback, collector,
										 scan);
	if (progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, GPUDS_PHASE_SORT);
	gpuds_sorter_sort(collector->sorter);
	return heap_tuples;
}
