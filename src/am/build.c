/*-------------------------------------------------------------------------
 *
 * build.c
 *	  CREATE INDEX: scan the heap, sort the entries, write them as a base.
 *
 * The participants of a parallel build scan the heap together.  Each collects
 * entries in its share of maintenance_work_mem, sorts and spills them as runs
 * when it is full, and in the end leaves the rest sorted: workers as a last run,
 * the leader in memory.  The leader merges all of that into the base.  A serial
 * build is a build whose only participant is the leader.
 *
 * The index's pages are not WAL-logged while they are written but all together
 * at the end (gpuds_meta_finish_build).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "am/am.h"
#include "journal/internal.h"
#include "journal/runs.h"
#include "kernels/sort.h"

/* Phases in pg_stat_progress_create_index; 1 is PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE. */
#define PHASE_SCAN 2
#define PHASE_SORT 3
#define PHASE_WRITE 4

/* Keys of the build's DSM segment. */
#define KEY_SHARED UINT64CONST(0x6755000000000001)
#define KEY_QUERY_TEXT UINT64CONST(0x6755000000000002)
#define KEY_WAL_USAGE UINT64CONST(0x6755000000000003)
#define KEY_BUFFER_USAGE UINT64CONST(0x6755000000000004)

/* Entries that the leader hands from the merge to the base writer at a time. */
#define MERGE_ENTRIES 2048

/* What a participant has left behind in its run file. */
typedef struct ParticipantRuns
{
	int64 records;     /* in all its runs; 0: there is no file */
	int64 run_records; /* in each run but the last */
} ParticipantRuns;

/*
 * State of a parallel build in shared memory; the parallel table scan's
 * description follows it.  Participant i < nworkers is a worker, the last is
 * the leader.
 */
typedef struct BuildShared
{
	Oid heap;
	Oid index;
	bool concurrent;
	int nparticipants;     /* planned */
	SharedFileSet fileset; /* of the workers' run files */
	ConditionVariable done_cv;
	slock_t mutex; /* protects what follows */
	int ndone;
	double heap_tuples;
	bool broken_hot_chain;
	ParticipantRuns runs[FLEXIBLE_ARRAY_MEMBER];
} BuildShared;

#define SharedTableScan(shared, nparticipants) \
	((ParallelTableScanDesc) ((char *) (shared) + shared_scan_offset(nparticipants)))

/* What one participant collects. */
typedef struct Collector
{
	GpudsKeyLayout layout;
	GkEntry *entries;
	GkEntry *scratch;
	int64 n;
	int64 capacity;
	BufFile *file;          /* NULL: nothing was spilled yet */
	SharedFileSet *fileset; /* where a worker makes it, NULL: private */
	int participant;
	ParticipantRuns runs;
} Collector;

/* The leader's side of a parallel build. */
typedef struct BuildLeader
{
	ParallelContext *pcxt;
	BuildShared *shared;
	Snapshot snapshot;
	WalUsage *wal_usage;
	BufferUsage *buffer_usage;
} BuildLeader;

static Size
shared_scan_offset(int nparticipants)
{
	return BUFFERALIGN(
		add_size(offsetof(BuildShared, runs), mul_size(sizeof(ParticipantRuns), nparticipants)));
}

static void
run_file_name(char *name, int participant)
{
	snprintf(name, MAXPGPATH, "gpuds.%d", participant);
}

/* Prepares for collecting entries in so many kilobytes. */
static void
collector_init(Collector *collector, Relation heap, Relation index, int64 kilobytes)
{
	uint64 most = (uint64) RelationGetNumberOfBlocks(heap) * MaxHeapTuplesPerPage + 1024;

	memset(collector, 0, sizeof(*collector));
	gpuds_key_layout(index, &collector->layout);
	collector->capacity = kilobytes * 1024 / (2 * sizeof(GkEntry));
	collector->capacity = Max(Min(collector->capacity, most), 1024);
	collector->entries = MemoryContextAllocHuge(CurrentMemoryContext, collector->capacity * sizeof(GkEntry));
}

static void
collector_sort(Collector *collector)
{
	if (collector->scratch == NULL && collector->n > 0)
		collector->scratch = MemoryContextAllocHuge(CurrentMemoryContext,
													(collector->runs.records > 0 ? collector->capacity
																				 : collector->n) *
														sizeof(GkEntry));
	gk_sort_entries(collector->entries, collector->scratch, collector->n);
	collector->n = gk_unique_entries(collector->entries, collector->n);
}

/* Writes what was collected as a run.  Only a participant's last run may be shorter than others. */
static void
collector_spill(Collector *collector)
{
	if (collector->file == NULL)
	{
		if (collector->fileset)
		{
			char name[MAXPGPATH];

			run_file_name(name, collector->participant);
			collector->file = BufFileCreateFileSet(&collector->fileset->fs, name);
		}
		else
			collector->file = BufFileCreateTemp(false);
	}

	gpuds_run_write(collector->file, collector->entries, collector->n, collector->layout.nwords);
	collector->runs.records += collector->n;
	collector->n = 0;
}

/* Takes one heap tuple. */
static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool tuple_is_alive, void *arg)
{
	Collector *collector = arg;

	if (collector->n == collector->capacity)
	{
		if (collector->scratch == NULL)
			collector->scratch = MemoryContextAllocHuge(CurrentMemoryContext,
														collector->capacity * sizeof(GkEntry));
		gk_sort_entries(collector->entries, collector->scratch, collector->n);
		collector->runs.run_records = collector->n;
		collector_spill(collector);
	}
	gpuds_key_encode(&collector->layout, values, isnull, tid, &collector->entries[collector->n++]);
}

static void
collector_free(Collector *collector)
{
	if (collector->file)
		BufFileClose(collector->file);
	if (collector->scratch)
		pfree(collector->scratch);
	pfree(collector->entries);
}

/* Scans the heap, or a participant's part of it, and sorts. */
static double
collect(Collector *collector, Relation heap, Relation index, IndexInfo *indexInfo, bool progress,
		ParallelTableScanDesc pscan)
{
	TableScanDesc scan = pscan ? table_beginscan_parallel(heap, pscan) : NULL;
	double heap_tuples;

	heap_tuples = table_index_build_scan(heap, index, indexInfo, true, progress, build_callback, collector,
										 scan);
	if (progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	collector_sort(collector);
	return heap_tuples;
}

/* Tells the leader that a participant is done. */
static void
report_done(BuildShared *shared, Collector *collector, double heap_tuples, IndexInfo *indexInfo)
{
	SpinLockAcquire(&shared->mutex);
	shared->ndone++;
	shared->heap_tuples += heap_tuples;
	if (indexInfo->ii_BrokenHotChain)
		shared->broken_hot_chain = true;
	shared->runs[collector->participant] = collector->runs;
	SpinLockRelease(&shared->mutex);
	ConditionVariableSignal(&shared->done_cv);
}

/*
 * Ends parallel mode, after the workers have.  Their use of WAL and buffers
 * becomes ours.
 */
static void
end_parallel(BuildLeader *leader)
{
	WaitForParallelWorkersToFinish(leader->pcxt);
	for (int i = 0; i < leader->pcxt->nworkers_launched; i++)
		InstrAccumParallelQuery(&leader->buffer_usage[i], &leader->wal_usage[i]);
	if (IsMVCCSnapshot(leader->snapshot))
		UnregisterSnapshot(leader->snapshot);
	DestroyParallelContext(leader->pcxt);
	ExitParallelMode();
}

/*
 * Starts up to nworkers workers.  Returns NULL, with nothing left to clean up,
 * if there is none to be had.
 */
static BuildLeader *
begin_parallel(Relation heap, Relation index, bool concurrent, int nworkers)
{
	BuildLeader *leader = palloc0(sizeof(BuildLeader));
	ParallelContext *pcxt;
	BuildShared *shared;
	Size shared_size;
	Size query_size = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	int nparticipants = nworkers + 1;

	EnterParallelMode();
	pcxt = CreateParallelContext("gpuds", "gpuds_build_worker", nworkers);
	leader->pcxt = pcxt;

	/* every tuple version that somebody may still see, or what is visible now and nothing else */
	leader->snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;

	shared_size = add_size(shared_scan_offset(nparticipants),
						   table_parallelscan_estimate(heap, leader->snapshot));
	shm_toc_estimate_chunk(&pcxt->estimator, shared_size);
	shm_toc_estimate_chunk(&pcxt->estimator, mul_size(sizeof(WalUsage), nworkers));
	shm_toc_estimate_chunk(&pcxt->estimator, mul_size(sizeof(BufferUsage), nworkers));
	shm_toc_estimate_keys(&pcxt->estimator, 3);
	if (query_size > 0)
	{
		shm_toc_estimate_chunk(&pcxt->estimator, query_size);
		shm_toc_estimate_keys(&pcxt->estimator, 1);
	}
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		if (IsMVCCSnapshot(leader->snapshot))
			UnregisterSnapshot(leader->snapshot);
		DestroyParallelContext(pcxt);
		ExitParallelMode();
		return NULL;
	}

	shared = shm_toc_allocate(pcxt->toc, shared_size);
	memset(shared, 0, shared_scan_offset(nparticipants));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = concurrent;
	shared->nparticipants = nparticipants;
	SharedFileSetInit(&shared->fileset, pcxt->seg);
	ConditionVariableInit(&shared->done_cv);
	SpinLockInit(&shared->mutex);
	table_parallelscan_initialize(heap, SharedTableScan(shared, nparticipants), leader->snapshot);
	shm_toc_insert(pcxt->toc, KEY_SHARED, shared);
	leader->shared = shared;

	leader->wal_usage = shm_toc_allocate(pcxt->toc, mul_size(sizeof(WalUsage), nworkers));
	shm_toc_insert(pcxt->toc, KEY_WAL_USAGE, leader->wal_usage);
	leader->buffer_usage = shm_toc_allocate(pcxt->toc, mul_size(sizeof(BufferUsage), nworkers));
	shm_toc_insert(pcxt->toc, KEY_BUFFER_USAGE, leader->buffer_usage);
	if (query_size > 0)
	{
		char *query = shm_toc_allocate(pcxt->toc, query_size);

		memcpy(query, debug_query_string, query_size);
		shm_toc_insert(pcxt->toc, KEY_QUERY_TEXT, query);
	}

	LaunchParallelWorkers(pcxt);
	if (pcxt->nworkers_launched == 0)
	{
		end_parallel(leader);
		return NULL;
	}
	return leader;
}

/* Entry point of a parallel worker. */
void
gpuds_build_worker(dsm_segment *seg, shm_toc *toc)
{
	BuildShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	WalUsage *wal_usage;
	BufferUsage *buffer_usage;
	LOCKMODE heap_lock;
	LOCKMODE index_lock;
	Relation heap;
	Relation index;
	IndexInfo *indexInfo;
	Collector collector;
	double heap_tuples;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY_TEXT, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* the lock modes that the leader holds */
	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);

	InstrStartParallelQuery();

	SharedFileSetAttach(&shared->fileset, seg);
	collector_init(&collector, heap, index, maintenance_work_mem / shared->nparticipants);
	collector.fileset = &shared->fileset;
	collector.participant = ParallelWorkerNumber;
	indexInfo = BuildIndexInfo(index);
	indexInfo->ii_Concurrent = shared->concurrent;
	heap_tuples = collect(&collector, heap, index, indexInfo, false,
						  SharedTableScan(shared, shared->nparticipants));
	if (collector.runs.run_records == 0)
		collector.runs.run_records = collector.n;
	if (collector.n > 0)
		collector_spill(&collector);
	if (collector.file)
		BufFileExportFileSet(collector.file);
	report_done(shared, &collector, heap_tuples, indexInfo);
	collector_free(&collector);

	wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);

	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/* Waits until all participants have scanned and sorted. */
static void
wait_for_participants(BuildLeader *leader)
{
	BuildShared *shared = leader->shared;
	int expected = leader->pcxt->nworkers_launched + 1;

	for (;;)
	{
		int ndone;

		SpinLockAcquire(&shared->mutex);
		ndone = shared->ndone;
		SpinLockRelease(&shared->mutex);
		if (ndone == expected)
			break;
		ConditionVariableSleep(&shared->done_cv, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
}

/* Merges what the participants have left into the base; returns the number of entries. */
static uint64
write_base(Relation index, Collector *own, BuildLeader *leader)
{
	const int nwords = own->layout.nwords;
	GpudsBaseWriter *writer;
	BlockNumber head;
	BlockNumber pages;
	uint64 records;
	int64 total = own->runs.records + own->n;
	int64 done = 0;
	bool merged = own->runs.records > 0;

	if (leader)
	{
		for (int i = 0; i < leader->pcxt->nworkers_launched; i++)
		{
			total += leader->shared->runs[i].records;
			merged = merged || leader->shared->runs[i].records > 0;
		}
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, total);

	writer = gpuds_base_begin(index, nwords, 1, false);
	if (!merged)
		gpuds_base_add(writer, own->entries, own->n);
	else
	{
		GpudsMerge *merge = gpuds_merge_begin(nwords, (Size) maintenance_work_mem * 1024 / 4);
		GkEntry *entries = palloc(MERGE_ENTRIES * sizeof(GkEntry));
		int nfiles = leader ? leader->pcxt->nworkers_launched : 0;
		BufFile **files = palloc0((nfiles + 1) * sizeof(BufFile *));
		int64 n;

		gpuds_merge_runs(merge, own->file, own->runs.records, own->runs.run_records);
		gpuds_merge_array(merge, own->entries, own->n);
		for (int i = 0; i < nfiles; i++)
		{
			ParticipantRuns *runs = &leader->shared->runs[i];
			char name[MAXPGPATH];

			if (runs->records == 0)
				continue;
			run_file_name(name, i);
			files[i] = BufFileOpenFileSet(&leader->shared->fileset.fs, name, O_RDONLY, false);
			gpuds_merge_runs(merge, files[i], runs->records, runs->run_records);
		}
		while ((n = gpuds_merge_next(merge, entries, MERGE_ENTRIES)) > 0)
		{
			gpuds_base_add(writer, entries, n);
			done += n;
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
		}
		gpuds_merge_end(merge);
		for (int i = 0; i < nfiles; i++)
		{
			if (files[i])
				BufFileClose(files[i]);
		}
		pfree(files);
		pfree(entries);
	}
	gpuds_base_end(writer, &head, &pages, &records);
	gpuds_meta_finish_build(index, head, pages, records);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, records);
	return records;
}

/* How many workers a build should ask for. */
static int
planned_workers(Relation heap, Relation index, IndexInfo *indexInfo)
{
#if PG_VERSION_NUM >= 170000
	return indexInfo->ii_ParallelWorkers;
#else
	/* core asks the planner for btree only */
	if (!IsNormalProcessingMode() || IsInParallelMode())
		return 0;
	return plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index));
#endif
}

/*
 * ambuild.  The caller holds what CREATE INDEX, REINDEX or TRUNCATE hold; the
 * index has no blocks yet.  Raises what encoding a key may raise.
 */
IndexBuildResult *
gpuds_build(Relation heap, Relation index, IndexInfo *indexInfo)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	BuildLeader *leader = NULL;
	Collector collector;
	GpudsKeyLayout layout;
	int nworkers;

	gpuds_require_preload();
	gpuds_key_layout(index, &layout);
	gpuds_journal_create(index, MAIN_FORKNUM, GPUDS_STRUCTURE_BTREE, layout.nwords, layout.nbits);

	/* a table truncated in the transaction that made it keeps its file numbers: forget the former file */
	if (index->rd_amcache)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	nworkers = planned_workers(heap, index, indexInfo);
	if (nworkers > 0)
		leader = begin_parallel(heap, index, indexInfo->ii_Concurrent, nworkers);

	collector_init(&collector, heap, index,
				   maintenance_work_mem / (leader ? leader->pcxt->nworkers_launched + 1 : 1));
	if (leader)
	{
		BuildShared *shared = leader->shared;
		IndexInfo *own_info = BuildIndexInfo(index);
		double heap_tuples;

		own_info->ii_Concurrent = indexInfo->ii_Concurrent;
		collector.participant = shared->nparticipants - 1;
		heap_tuples = collect(&collector, heap, index, own_info, true,
							  SharedTableScan(shared, shared->nparticipants));
		report_done(shared, &collector, heap_tuples, own_info);

		/* a worker that never started must not be waited for */
		WaitForParallelWorkersToAttach(leader->pcxt);
		wait_for_participants(leader);
		result->heap_tuples = shared->heap_tuples;
		if (shared->broken_hot_chain)
			indexInfo->ii_BrokenHotChain = true;
	}
	else
		result->heap_tuples = collect(&collector, heap, index, indexInfo, true, NULL);

	result->index_tuples = write_base(index, &collector, leader);
	collector_free(&collector);
	if (leader)
		end_parallel(leader);
	return result;
}

/* ambuildempty: the init fork of an unlogged index. */
void
gpuds_build_empty(Relation index)
{
	GpudsKeyLayout layout;

	gpuds_require_preload();
	gpuds_key_layout(index, &layout);
	gpuds_journal_create(index, INIT_FORKNUM, GPUDS_STRUCTURE_BTREE, layout.nwords, layout.nbits);
}

/* ambuildphasename */
char *
gpuds_build_phase_name(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "scanning table";
		case PHASE_SORT:
			return "sorting entries";
		case PHASE_WRITE:
			return "writing journal";
		default:
			return NULL;
	}
}
