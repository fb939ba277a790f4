/*-------------------------------------------------------------------------
 *
 * build.c
 *	  CREATE INDEX: scan the heap, sort the entries, write them as a base.
 *
 * The participants of a parallel build scan the heap together.  Each collects
 * entries in its share of maintenance_work_mem, and sorts and spills them as runs
 * when it is full and in the end.  Then the leader cuts the merge of all runs into
 * as many parts as there are participants, and each writes one of them (parts.c).
 *
 * A serial build has its last run in memory, and its index's pages are not
 * WAL-logged while they are written but all together at the end
 * (gpuds_meta_finish_build).
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
#include "storage/smgr.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "am/am.h"
#include "am/parts.h"
#include "journal/internal.h"
#include "journal/runs.h"
#include "kernels/core/sort.h"
#include "mirror/mirror.h"
#include "structure.h"

/* Phases in pg_stat_progress_create_index; 1 is PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE. */
#define PHASE_SCAN 2
#define PHASE_SORT 3
#define PHASE_WRITE 4

/* Keys of the build's DSM segment. */
#define KEY_SHARED UINT64CONST(0x6755000000000001)
#define KEY_QUERY_TEXT UINT64CONST(0x6755000000000002)
#define KEY_WAL_USAGE UINT64CONST(0x6755000000000003)
#define KEY_BUFFER_USAGE UINT64CONST(0x6755000000000004)

/* Entries that a serial build hands from the merge to the base writer at a time. */
#define MERGE_ENTRIES 2048

/*
 * A participant of a parallel build.  Its runs lie in a file of its own, and behind
 * them their lengths.
 */
typedef struct Participant
{
	int64 records;  /* in all its runs; 0: there is no file */
	int nruns;      /* of them; set, with records, when it has scanned and sorted */
	GpudsPart part; /* that it is to write */
} Participant;

/*
 * State of a parallel build in shared memory; the parallel table scan's
 * description follows it.  Participant i is worker i; the leader comes behind the
 * workers that were launched.
 */
typedef struct BuildShared
{
	Oid heap;
	Oid index;
	bool concurrent;
	bool log_pages;        /* the index needs WAL */
	int planned;           /* participants */
	SharedFileSet fileset; /* of the run files */
	ConditionVariable changed_cv;
	pg_atomic_uint64 written; /* entries */
	slock_t mutex;            /* protects what follows */
	int nparticipants;        /* 0: there are no parts yet */
	int nsorted;
	int nwritten;
	double heap_tuples;
	bool broken_hot_chain;
	Participant participant[FLEXIBLE_ARRAY_MEMBER]; /* and one for the end */
} BuildShared;

#define SharedTableScan(shared, planned) \
	((ParallelTableScanDesc) ((char *) (shared) + shared_scan_offset(planned)))

/* What one participant collects. */
typedef struct Collector
{
	GpudsKeyLayout layout;
	GpudsEntry *entries;
	GpudsEntry *scratch;
	int64 n;
	int64 capacity;
	int64 full;             /* spill when there are so many */
	BlockNumber block;      /* of the last entry's row */
	BufFile *file;          /* NULL: nothing was spilled yet */
	SharedFileSet *fileset; /* where it is made, NULL: private */
	int participant;
	int64 spilled; /* entries */
	int nruns;
	int64 *run_records; /* of each run */
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
shared_scan_offset(int planned)
{
	return BUFFERALIGN(
		add_size(offsetof(BuildShared, participant), mul_size(sizeof(Participant), planned + 1)));
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
	collector->capacity = kilobytes * 1024 / (2 * sizeof(GpudsEntry));
	collector->capacity = Max(Min(collector->capacity, most), 1024);
	collector->full = collector->capacity - MaxHeapTuplesPerPage;
	collector->block = InvalidBlockNumber;
	collector->entries = MemoryContextAllocHuge(CurrentMemoryContext,
												collector->capacity * sizeof(GpudsEntry));
}

static void
collector_sort(Collector *collector)
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
static void
collector_export(Collector *collector)
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
collector_full(Collector *collector, ItemPointer tid)
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
	Collector *collector = arg;

	if (collector->n >= collector->full)
		collector_full(collector, tid);
	gpuds_key_encode(&collector->layout, values, isnull, tid, &collector->entries[collector->n++]);
	collector->block = ItemPointerGetBlockNumber(tid);
}

static void
collector_free(Collector *collector)
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

/* Tells the leader that a participant has scanned and sorted. */
static void
report_sorted(BuildShared *shared, Collector *collector, double heap_tuples, IndexInfo *indexInfo)
{
	Participant *participant = &shared->participant[collector->participant];

	SpinLockAcquire(&shared->mutex);
	shared->nsorted++;
	shared->heap_tuples += heap_tuples;
	if (indexInfo->ii_BrokenHotChain)
		shared->broken_hot_chain = true;
	participant->records = collector->spilled;
	participant->nruns = collector->nruns;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed_cv);
}

/* Waits until a counter has reached what is expected; returns its value. */
static int
wait_for(BuildShared *shared, const int *counter, int expected)
{
	int value;

	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		value = *counter;
		SpinLockRelease(&shared->mutex);
		if (value >= expected)
			break;
		ConditionVariableSleep(&shared->changed_cv, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
	return value;
}

/*
 * All runs of all participants.  files gets an open file, or NULL, of each
 * participant.
 */
static GpudsSortedRun *
open_runs(BuildShared *shared, int nparticipants, int nwords, BufFile **files, int *nruns)
{
	GpudsSortedRun *runs;
	int n = 0;

	for (int i = 0; i < nparticipants; i++)
		n += shared->participant[i].nruns;
	runs = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(GpudsSortedRun));
	*nruns = n;
	n = 0;
	for (int i = 0; i < nparticipants; i++)
	{
		const Participant *participant = &shared->participant[i];
		char name[MAXPGPATH];
		int64 first = 0;

		files[i] = NULL;
		if (participant->records == 0)
			continue;
		run_file_name(name, i);
		files[i] = BufFileOpenFileSet(&shared->fileset.fs, name, O_RDONLY, false);
		if (BufFileSeek(files[i], 0, participant->records * GpudsRecordSize(nwords), SEEK_SET) != 0)
			ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in a temporary file: %m")));
		for (int r = 0; r < participant->nruns; r++, n++)
		{
			runs[n].file = files[i];
			runs[n].first = first;
			gpuds_buffile_read(files[i], &runs[n].count, sizeof(int64));
			first += runs[n].count;
		}
	}
	return runs;
}

/* A participant's share of the writing. */
static void
write_part(BuildShared *shared, Relation index, int nwords, int nparticipants, int i)
{
	BufFile **files = palloc(nparticipants * sizeof(BufFile *));
	GpudsPart *parts = palloc((nparticipants + 1) * sizeof(GpudsPart));
	int nruns;
	GpudsSortedRun *runs = open_runs(shared, nparticipants, nwords, files, &nruns);

	for (int p = 0; p <= nparticipants; p++)
		parts[p] = shared->participant[p].part;
	gpuds_part_write(index, runs, nruns, nwords, parts, nparticipants, i, shared->log_pages,
					 (Size) maintenance_work_mem * 1024 / Max(nparticipants, 1) / 2, &shared->written);
	for (int p = 0; p < nparticipants; p++)
	{
		if (files[p])
			BufFileClose(files[p]);
	}
	pfree(runs);
	pfree(parts);
	pfree(files);

	SpinLockAcquire(&shared->mutex);
	shared->nwritten++;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed_cv);
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
	int planned = nworkers + 1;

	EnterParallelMode();
	pcxt = CreateParallelContext("gpuds", "gpuds_build_worker", nworkers);
	leader->pcxt = pcxt;

	/* every tuple version that somebody may still see, or what is visible now and nothing else */
	leader->snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;

	shared_size = add_size(shared_scan_offset(planned), table_parallelscan_estimate(heap, leader->snapshot));
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
	memset(shared, 0, shared_scan_offset(planned));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(index);
	shared->concurrent = concurrent;
	shared->log_pages = RelationNeedsWAL(index);
	shared->planned = planned;
	SharedFileSetInit(&shared->fileset, pcxt->seg);
	ConditionVariableInit(&shared->changed_cv);
	pg_atomic_init_u64(&shared->written, 0);
	SpinLockInit(&shared->mutex);
	table_parallelscan_initialize(heap, SharedTableScan(shared, planned), leader->snapshot);
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
	int nparticipants;

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY_TEXT, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* the lock modes that the leader holds */
	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);

	InstrStartParallelQuery();

	SharedFileSetAttach(&shared->fileset, seg);
	collector_init(&collector, heap, index, maintenance_work_mem / shared->planned);
	collector.fileset = &shared->fileset;
	collector.participant = ParallelWorkerNumber;
	indexInfo = BuildIndexInfo(index);
	indexInfo->ii_Concurrent = shared->concurrent;
	heap_tuples = collect(&collector, heap, index, indexInfo, false,
						  SharedTableScan(shared, shared->planned));
	collector_export(&collector);
	report_sorted(shared, &collector, heap_tuples, indexInfo);
	collector_free(&collector);

	nparticipants = wait_for(shared, &shared->nparticipants, 1);
	write_part(shared, index, collector.layout.nwords, nparticipants, ParallelWorkerNumber);

	wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);

	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/*
 * The leader's side of the writing: says who writes what, writes its own part, waits
 * for the others.  Returns the number of entries.
 */
static uint64
write_parts(Relation index, int nwords, BuildShared *shared, int nparticipants)
{
	BufFile **files = palloc(nparticipants * sizeof(BufFile *));
	GpudsPart *parts = palloc((nparticipants + 1) * sizeof(GpudsPart));
	int nruns;
	GpudsSortedRun *runs = open_runs(shared, nparticipants, nwords, files, &nruns);
	BlockNumber end;
	uint64 entries;

	gpuds_parts_plan(runs, nruns, nwords, parts, nparticipants);
	entries = parts[nparticipants].before;
	end = parts[nparticipants].block;
	for (int p = 0; p < nparticipants; p++)
	{
		if (files[p])
			BufFileClose(files[p]);
	}
	pfree(runs);
	pfree(files);

	/* the last block first, so that the file has all its blocks */
	if (entries > 0)
	{
		static GpudsIOBlock zeros;

		smgrextend(RelationGetSmgr(index), MAIN_FORKNUM, end - 1, zeros.data, true);
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, entries);

	SpinLockAcquire(&shared->mutex);
	for (int p = 0; p <= nparticipants; p++)
		shared->participant[p].part = parts[p];
	shared->nparticipants = nparticipants;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->changed_cv);
	pfree(parts);

	write_part(shared, index, nwords, nparticipants, nparticipants - 1);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, pg_atomic_read_u64(&shared->written));
	wait_for(shared, &shared->nwritten, nparticipants);
	gpuds_meta_finish_build(index, entries > 0 ? GPUDS_META_BLKNO + 1 : InvalidBlockNumber,
							end - GPUDS_META_BLKNO - 1, entries, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, entries);
	return entries;
}

/* A serial build's writing; returns the number of entries. */
static uint64
write_base(Relation index, Collector *own)
{
	const int nwords = own->layout.nwords;
	GpudsBaseWriter *writer;
	BlockNumber head;
	BlockNumber pages;
	uint64 records;
	int64 done = 0;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, own->spilled + own->n);
	writer = gpuds_base_begin(index, nwords, 1, false);
	if (own->spilled == 0)
		gpuds_base_add(writer, own->entries, own->n);
	else
	{
		GpudsMerge *merge = gpuds_merge_begin(nwords, (Size) maintenance_work_mem * 1024 / 4);
		GpudsEntry *entries = palloc(MERGE_ENTRIES * sizeof(GpudsEntry));
		GpudsSortedRun run = { .file = own->file };
		int64 n;

		for (int r = 0; r < own->nruns; r++)
		{
			run.count = own->run_records[r];
			gpuds_merge_run(merge, &run);
			run.first += run.count;
		}
		gpuds_merge_array(merge, own->entries, own->n);
		while ((n = gpuds_merge_next(merge, entries, MERGE_ENTRIES)) > 0)
		{
			gpuds_base_add(writer, entries, n);
			done += n;
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
		}
		gpuds_merge_end(merge);
		pfree(entries);
	}
	gpuds_base_end(writer, &head, &pages, &records);
	gpuds_meta_finish_build(index, head, pages, records, false);
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
	gpuds_insert_discard(index);
	/* as of ON COMMIT DELETE ROWS: what the file held before is no more */
	gpuds_mirror_forget(index);
	gpuds_journal_create(index, MAIN_FORKNUM, gpuds_structure_of_new_index(GPUDS_STRUCTURE_BTREE),
						 layout.nwords, layout.nbits);

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
		int nparticipants = leader->pcxt->nworkers_launched + 1;
		double heap_tuples;

		own_info->ii_Concurrent = indexInfo->ii_Concurrent;
		collector.fileset = &shared->fileset;
		collector.participant = nparticipants - 1;
		heap_tuples = collect(&collector, heap, index, own_info, true,
							  SharedTableScan(shared, shared->planned));
		collector_export(&collector);
		report_sorted(shared, &collector, heap_tuples, own_info);

		/* a worker that never started must not be waited for */
		WaitForParallelWorkersToAttach(leader->pcxt);
		wait_for(shared, &shared->nsorted, nparticipants);
		result->heap_tuples = shared->heap_tuples;
		if (shared->broken_hot_chain)
			indexInfo->ii_BrokenHotChain = true;
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
		result->index_tuples = write_parts(index, layout.nwords, shared, nparticipants);
		collector_free(&collector);
		end_parallel(leader);
	}
	else
	{
		result->heap_tuples = collect(&collector, heap, index, indexInfo, true, NULL);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_WRITE);
		result->index_tuples = write_base(index, &collector);
		collector_free(&collector);
	}
	return result;
}

/* ambuildempty: the init fork of an unlogged index. */
void
gpuds_build_empty(Relation index)
{
	GpudsKeyLayout layout;

	gpuds_require_preload();
	gpuds_key_layout(index, &layout);
	gpuds_journal_create(index, INIT_FORKNUM, gpuds_structure_of_new_index(GPUDS_STRUCTURE_BTREE),
						 layout.nwords, layout.nbits);
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
