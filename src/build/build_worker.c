/*-------------------------------------------------------------------------
 *
 * build_worker.c
 *	  A build's participant: collects the entries of the table's rows, sorts them,
 *	  spills them as runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "utils/memutils.h"

#include "build/build.h"
#include "kernels/core/sort.h"

/* Name of the file with a participant's runs, in their file set. */
void
gpuds_run_file_name(char *name, int participant)
{
	snprintf(name, MAXPGPATH, "gpuds.%d", participant);
}

/* Prepares for collecting entries in so many kilobytes. */
void
gpuds_collector_init(GpudsCollector *collector, Relation heap, Relation index, int64 kilobytes)
{
	uint64 most = (uint64) RelationGetNumberOfBlocks(heap) * MaxHeapTuplesPerPage + 1024;

	memset(collector, 0, sizeof(*collector));
	gpuds_key_layout(index, &collector->layout);
	collector->capacity = kilobytes * 1024 / (2 * sizeof(GpudsEntry));
	collector->capacity = Max(Min(collector->capacity, most), 1024);
	collector->full = collector->capacity - MaxHeapTuplesPerPage;
	collector->block = InvalidBlockNumber;
	collector->entries = MemoryContextAllocHuge(CurrentMemoryContext,
												collector->capacity * sizeof(GpudsEntry));
}

static void
collector_sort(GpudsCollector *collector)
{
	if (collector->scratch == NULL && collector->n > 0)
		collector->scratch = MemoryContextAllocHuge(CurrentMemoryContext,
													(collector->spilled > 0 ? collector->capacity
																			: collector->n) *
														sizeof(GpudsEntry));
	sort_entries(collector->entries, collector->scratch, collector->n);
	collector->n = sort_unique_entries(collector->entries, collector->n);
}

/* Writes what was collected and sorted as a run. */
static void
collector_spill(GpudsCollector *collector)
{
	if (collector->file == NULL)
	{
		if (collector->fileset)
		{
			char name[MAXPGPATH];

			gpuds_run_file_name(name, collector->participant);
			collector->file = BufFileCreateFileSet(&collector->fileset->fs, name);
		}
		else
			collector->file = BufFileCreateTemp(false);
	}

	gpuds_run_write(collector->file, collector->entries, collector->n, collector->layout.nwords);
	if (collector->run_records == NULL)
		collector->run_records = palloc(sizeof(int64));
	else
		collector->run_records = repalloc_huge(collector->run_records,
											   (collector->nruns + 1) * sizeof(int64));
	collector->run_records[collector->nruns++] = collector->n;
	collector->spilled += collector->n;
	collector->n = 0;
}

/* Spills what is left, and leaves the file to the other participants. */
void
gpuds_collector_export(GpudsCollector *collector)
{
	if (collector->n > 0)
		collector_spill(collector);
	if (collector->file == NULL)
		return;
	BufFileWrite(collector->file, collector->run_records, collector->nruns * sizeof(int64));
	BufFileExportFileSet(collector->file);
	BufFileClose(collector->file);
	collector->file = NULL;
}

/*
 * Makes room.  Entries of one page of the table stay together in a run: tuples of
 * one HOT chain may give the same entry, which must not be in two runs.
 */
static void
collector_full(GpudsCollector *collector, ItemPointer tid)
{
	if (ItemPointerGetBlockNumber(tid) == collector->block)
	{
		if (collector->n < collector->capacity)
			return;
		collector->capacity += MaxHeapTuplesPerPage;
		collector->entries = repalloc_huge(collector->entries, collector->capacity * sizeof(GpudsEntry));
		if (collector->scratch)
			pfree(collector->scratch);
		collector->scratch = NULL;
		return;
	}
	if (collector->scratch == NULL)
		collector->scratch = MemoryContextAllocHuge(CurrentMemoryContext,
													collector->capacity * sizeof(GpudsEntry));
	collector_sort(collector);
	collector_spill(collector);
}

/* Takes one heap tuple. */
static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool tuple_is_alive, void *arg)
{
	GpudsCollector *collector = arg;
	MemoryContext old;

	if (collector->n >= collector->full)
		collector_full(collector, tid);
	old = gpuds_key_scratch_enter(&collector->hashes, &collector->layout);
	gpuds_key_encode(&collector->layout, values, isnull, tid, &collector->entries[collector->n++]);
	MemoryContextSwitchTo(old);
	collector->block = ItemPointerGetBlockNumber(tid);
}

/* Frees what the collector has, all but itself. */
void
gpuds_collector_free(GpudsCollector *collector)
{
	if (collector->file)
		BufFileClose(collector->file);
	if (collector->scratch)
		pfree(collector->scratch);
	if (collector->run_records)
		pfree(collector->run_records);
	pfree(collector->entries);
}

/* Scans the heap, or a participant's part of it, and sorts. */
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
	collector_sort(collector);
	return heap_tuples;
}
