/*-------------------------------------------------------------------------
 *
 * flusher.c
 *	  The flusher: a background process that moves operations from memtables into
 *	  mirrors.
 *
 * It works for all databases, and needs neither relations nor journals: what it
 * applies, and the position that a mirror has then, are in the memtable.  It waits for
 * a device and for nothing else: a memtable whose mirror has another applier has to wait.
 *
 * Beside that it gives up the mirrors of files that are gone.
 *
 * A mirror that does not take a generation, because there is no memory or its device is
 * lost, is detached, and the next scan brings it up from the journal.  No mirror is
 * evicted for one that may have no scans.
 *
 * If the flusher fails it is started again, and goes on; what it has applied twice does
 * no harm.  While there is none, memtables fill up, and scans bring mirrors up
 * themselves.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/sinval.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "kernels/core/sort.h"
#include "mirror/mirror_internal.h"

/* A flusher that failed is started again after so long. */
#define RESTART_SECONDS 1

/* When to look again at what somebody else is at, or is not old enough. */
#define LOOK_MS 5

/* Time between two looks for mirrors whose files are gone. */
#define GONE_MS 10000

/* Operations that are flushed into a mirror without anybody scanning it. */
#define MOST_UNREAD (512 * 1024)

/*
 * Registers the flusher, unless gpuds.memtable_memory is 0.  To be called when the library is preloaded.  It
 * starts when recovery has ended, because standbys have no memtables.
 */
void
gpuds_flusher_register(void)
{
	BackgroundWorker worker;

	if (gpuds_memtable_memory_mb == 0)
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_SECONDS;
	strlcpy(worker.bgw_library_name, "gpuds", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "gpuds_flusher_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "gpuds flusher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "gpuds flusher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/* Is a mirror attached to a frozen generation's memtable? */
static bool
is_attached(GpudsMirror *mirror, const GpudsFrozen *frozen)
{
	return pg_atomic_read_u64(&mirror->attached) == frozen->serial;
}

/*
 * Nobody has scanned the mirror for so long that the next scan may as well bring it up: until
 * then its file is written to as if it had no mirror.
 */
static bool
is_unread(GpudsMirror *mirror, int64 n)
{
	uint64 used = pg_atomic_read_u64(&mirror->claim.used_at);

	mirror->unread = used == mirror->used ? mirror->unread + n : 0;
	mirror->used = used;
	return mirror->unread > MOST_UNREAD;
}

/* The mirror has a frozen generation: so far it has been brought up now, at least. */
static void
advance(GpudsMirror *mirror, const GpudsFrozen *frozen, bool beyond)
{
	GpudsJournalPos pos = mirror->pos;

	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (pos.count[stripe] < frozen->end[stripe])
		{
			pos.count[stripe] = frozen->end[stripe];
			pos.block[stripe] = frozen->block[stripe];
		}
	}
	gpuds_mirror_set_position(mirror, &pos);
	mirror->ahead = beyond;
	mirror->flushed = frozen->generation + 1;
}

/*
 * Deletes what has been killed.  If there is no room for that, the entries stay.  Not noted in
 * the mirror's position: the journal has these entries.
 */
static void
apply_kills(GpudsMirror *mirror, const GpudsFrozen *frozen, GpudsOp *ops, int64 *size)
{
	int64 n = gpuds_flush_read_kills(frozen, ops);

	if (n == 0)
		return;
	if (!gpuds_device_sorts(&mirror->tree))
	{
		GpudsOp *scratch = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(GpudsOp));

		sort_ops(ops, scratch, n);
		n = sort_last_ops(ops, n);
		pfree(scratch);
	}
	mirror->killed += n;
	(void) gpuds_mirror_apply(mirror, ops, n, GPUDS_NO_EVICT, size);
}

/* The caller is the mirror's applier, and the mirror is attached and lacks the generation. */
static void
apply_to(GpudsMirror *mirror, const GpudsFrozen *frozen)
{
	int64 most = Max(Max(frozen->n, frozen->nkills), 1);
	GpudsOp *ops = MemoryContextAllocHuge(CurrentMemoryContext, most * sizeof(GpudsOp));
	int64 size = gpuds_device_apply_ops(&mirror->tree);
	bool beyond;
	int64 n = gpuds_flush_read(frozen, mirror->pos.count, ops, &beyond);

	gpuds_injection_point_of("flush-apply", frozen->file.locator.dbOid);
	if (n > 0)
		mirror->ahead = true;
	if (gpuds_memtable_is_complete(frozen->serial) && gpuds_mirror_is_loaded(mirror) &&
		gpuds_mirror_apply(mirror, ops, n, GPUDS_NO_EVICT, &size) == GPUDS_UP)
	{
		advance(mirror, frozen, beyond);
		apply_kills(mirror, frozen, ops, &size);
		if (is_unread(mirror, n))
			gpuds_memtable_detach(&mirror->attached);
		gpuds_injection_point_of("flush-applied", frozen->file.locator.dbOid);
	}
	else
		gpuds_memtable_detach(&mirror->attached);
	pfree(ops);
}

/* Applies a frozen generation to the file's mirror of a number; false: not now. */
static bool
flush_into(const GpudsFrozen *frozen, int number)
{
	GpudsMirrorRef ref;

	if (!gpuds_mirror_of_file(&frozen->file, number, &ref) || !is_attached(ref.mirror, frozen))
		return true;
	if (!gpuds_mirror_acquire(ref.mirror, false))
		return false;
	PG_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref.mirror));
	{
		if (is_attached(ref.mirror, frozen) && ref.mirror->flushed <= frozen->generation)
			apply_to(ref.mirror, frozen);
		gpuds_mirror_count(&ref, 0, 0, 0, 0);
	}
	PG_END_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref.mirror));
	gpuds_mirror_release(ref.mirror);
	return true;
}

/* Have all mirrors that are attached got a frozen generation (GpudsFlushCheck)? */
static int
count_attached(const GpudsFrozen *frozen)
{
	int attached = 0;
	bool attaching = false;

	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
	{
		GpudsMirrorRef ref;

		if (!gpuds_mirror_of_file(&frozen->file, number, &ref))
			continue;
		if (is_attached(ref.mirror, frozen))
		{
			if (ref.mirror->flushed <= frozen->generation)
				return -1;
			attached++;
		}
		else if (ref.mirror->applier != 0 && ref.mirror->attaching == frozen->serial)
			attaching = true;
	}
	return attached == 0 && attaching ? -1 : attached;
}

static bool
flush(const GpudsFrozen *frozen)
{
	bool done = true;

	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
		done &= flush_into(frozen, number);
	if (done)
		gpuds_flush_drop(frozen, count_attached);
	return done;
}

static void
flusher_exit(int code, Datum arg)
{
	gpuds_flusher_end();
}

/* Looks at all memtables; false: there is nothing to do until somebody wakes us. */
static bool
go_round(MemoryContext context)
{
	bool later = false;
	GpudsFrozen frozen;
	GpudsFlushStep step;

	for (int i = 0; (step = gpuds_flush_step(i, &frozen)) != GPUDS_FLUSH_NONE; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (step == GPUDS_FLUSH_APPLY)
		{
			(void) flush(&frozen);
			MemoryContextReset(context);
		}
		later |= step != GPUDS_FLUSH_IDLE;
	}
	gpuds_mirror_count_flush();
	return later;
}

/*
 * The flusher's main function.  The process has no database, so it serves all of them, and opens no
 * relation.  It sleeps until somebody wakes it or some time has passed.  Requests to cancel do nothing.
 * When terminated it ends with status 1, so that the postmaster starts it again; no memtable is made until
 * then.
 */
void
gpuds_flusher_main(Datum arg)
{
	TimestampTz looked = GetCurrentTimestamp();
	MemoryContext context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGINT, PG_SIG_IGN);
	BackgroundWorkerUnblockSignals();
	/* of no database, but a backend, as devices want it */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	context = AllocSetContextCreate(TopMemoryContext, "gpuds flusher", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(context);
	before_shmem_exit(flusher_exit, (Datum) 0);
	gpuds_flusher_begin();

	for (;;)
	{
		bool later;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(1); /* to be started again, unless the server stops */
		if (catchupInterruptPending)
			ProcessCatchupInterrupt();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		later = go_round(context);
		if (TimestampDifferenceExceeds(looked, GetCurrentTimestamp(), GONE_MS))
		{
			gpuds_files_forget_gone();
			looked = GetCurrentTimestamp();
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_TIMEOUT, later ? LOOK_MS : GONE_MS,
						 GpudsWaitEvent("GpudsFlusherMain"));
	}
}
