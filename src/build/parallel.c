/*-------------------------------------------------------------------------
 *
 * parallel.c
 *	  CREATE INDEX with parallel workers.
 *
 * The participants are the workers and the leader.  They scan the heap together.  Each
 * collects entries in its share of maintenance_work_mem, and sorts and spills them as a run
 * when its share is full, and at the end.  Then the leader cuts the merge of all runs into
 * as many parts as there are participants.  Each participant writes one part (base_parts.c) and
 * WAL-logs its pages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/smgr.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "build/build.h"
#include "journal/journal.h"

/* Keys of the build's DSM segment. */
#define KEY_SHARED UINT64CONST(0x6755000000000001)
#define KEY_QUERY_TEXT UINT64CONST(0x6755000000000002)
#define KEY_WAL_USAGE UINT64CONST(0x6755000000000003)
#define KEY_BUFFER_USAGE UINT64CONST(0x6755000000000004)

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

/* Name of the file with a participant's runs, in the file set. */
static void
run_file_name(char *name, int number)
{
	snprintf(name, MAXPGPATH, "gpuds.%d", number);
}

/*
 * Collects a participant's entries, in its share of memory, leaves them to the others as runs and tells the
 * leader.
 */
static void
collect_runs(BuildShared *shared, Relation heap, Relation index, IndexInfo *indexInfo, int64 kilobytes,
			 int number)
{
	Participant *participant = &shared->participant[number];
	GpudsCollector collector;
	char name[MAXPGPATH];
	double heap_tuples;
	int64 records;
	int nruns;

	run_file_name(name, number);
	gpuds_collector_init(&collector, heap, index, kilobytes);
	gpuds_sorter_share(collector.sorter, &shared->fileset, name);
	heap_tuples = gpuds_collect(&collector, heap, index, indexInfo, !IsParallelWorker(),
								SharedTableScan(shared, shared->planned));
	nruns = gpuds_sorter_export(collector.sorter);
	records = gpuds_sorter_total(collector.sorter);
	gpuds_collector_free(&collector);

	SpinLockAcquire(&shared->mutex);
	shared->nsorted++;
	shared->heap_tuples += heap_tuples;
	if (indexInfo->ii_BrokenHotChain)
		shared->broken_hot_chain = true;
	participant->records = records;
	participant->nruns = nruns;
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

		files[i] = NULL;
		if (participant->records == 0)
			continue;
		run_file_name(name, i);
		files[i] = gpuds_runs_open(&shared->fileset, name, nwords, participant->records, runs + n,
								   participant->nruns);
		n += participant->nruns;
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
	GpudsKeyLayout layout;
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
	gpuds_key_layout(index, &layout);
	indexInfo = BuildIndexInfo(index);
	indexInfo->ii_Concurrent = shared->concurrent;
	collect_runs(shared, heap, index, indexInfo, maintenance_work_mem / shared->planned,
				 ParallelWorkerNumber);

	nparticipants = wait_for(shared, &shared->nparticipants, 1);
	write_part(shared, index, layout.nwords, nparticipants, ParallelWorkerNumber);

	wal_usage = shm_toc_lookup(toc, KEY_WAL_USAGE, false);
	buffer_usage = shm_toc_lookup(toc, KEY_BUFFER_USAGE, false);
	InstrEndParallelQuery(&buffer_usage[ParallelWorkerNumber], &wal_usage[ParallelWorkerNumber]);

	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/*
 * The leader's side of the writing: says which worker writes what, writes its own part, waits
 * for the others.  Returns the number of entries.
 */
static uint64
write_parts(Relation index, int nwords, BuildShared *shared, int nparticipants)
{
	BufFile **files = palloc(nparticipants * sizeof(BufFile *));
	GpudsPart *parts = palloc((nparticipants + 1) * sizeof(GpudsPart));
	int nruns;
	GpudsSortedRun *runs = open_runs(shared, nparticipants, nwords, files, &nruns);
	const BlockNumber first = RelationGetNumberOfBlocks(index); /* behind the metapage and the stems */
	BlockNumber end;
	uint64 entries;

	gpuds_base_parts_plan(runs, nruns, nwords, first, parts, nparticipants);
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
	gpuds_journal_finish_build(index, entries > 0 ? first : InvalidBlockNumber, end - first, entries, true);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, entries);
	return entries;
}

/*
 * Builds the index, up to nworkers workers taking part; the caller is the leader.
 * False: there is no worker to be had, and nothing was done.
 */
bool
gpuds_parallel_build(Relation heap, Relation index, IndexInfo *indexInfo, int nworkers,
					 IndexBuildResult *result)
{
	BuildLeader *leader = begin_parallel(heap, index, indexInfo->ii_Concurrent, nworkers);
	BuildShared *shared;
	IndexInfo *own_info;
	GpudsKeyLayout layout;
	int nparticipants;

	if (leader == NULL)
		return false;
	shared = leader->shared;
	nparticipants = leader->pcxt->nworkers_launched + 1;
	own_info = BuildIndexInfo(index);
	own_info->ii_Concurrent = indexInfo->ii_Concurrent;
	gpuds_key_layout(index, &layout);
	collect_runs(shared, heap, index, own_info, maintenance_work_mem / nparticipants, nparticipants - 1);

	/* a worker that never started must not be waited for */
	WaitForParallelWorkersToAttach(leader->pcxt);
	wait_for(shared, &shared->nsorted, nparticipants);
	result->heap_tuples = shared->heap_tuples;
	if (shared->broken_hot_chain)
		indexInfo->ii_BrokenHotChain = true;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, GPUDS_PHASE_WRITE);
	result->index_tuples = write_parts(index, layout.nwords, shared, nparticipants);
	end_parallel(leader);
	return true;
}
