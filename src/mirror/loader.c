/*-------------------------------------------------------------------------
 *
 * loader.c
 *	  The loader: a process that brings one mirror up, whether a session waits for it or not.
 *
 * An applier that finds more to do than a query should wait for starts a loader
 * and offers it its place (applier.c).  From then on the query waits like all
 * others, and if it is cancelled the work goes on.  If there is no loader to be
 * had, or if the loader cannot see the index, the applier does the work itself:
 * a loader is never needed.
 *
 * A loader waits for no lock: the session that it works for may hold one that
 * conflicts.  It has AccessShareLock on table and index, so that the file stays,
 * and makes way for others (loader_yield.c).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/timestamp.h"

#include "mirror/mirror_internal.h"

/* How often an applier looks what has become of the loader that it has started. */
#define LOOK_MS 50

/* A loader that has not begun after so long is not waited for any more. */
#define START_TIMEOUT_US (10 * USECS_PER_SEC)

/* What a loader is told. */
typedef struct LoaderOrder
{
	Oid database;
	Oid index;
	RelFileLocator locator;
	int number; /* of the mirror */
	int how;
	int nwords;
	int fillfactor;
	uint64 file_id;
} LoaderOrder;

StaticAssertDecl(sizeof(LoaderOrder) <= BGW_EXTRALEN, "an order fits");

/*
 * Can other sessions open the index and find the same file?
 */
static bool
is_visible_to_all(Relation index)
{
	return !RelationUsesLocalBuffers(index) && index->rd_createSubid == InvalidSubTransactionId &&
		   !GpudsHasNewFile(index);
}

static bool
start_loader(const GpudsMirrorSource *source, int number, int how, BackgroundWorkerHandle **handle)
{
	LoaderOrder order;
	BackgroundWorker worker;

	memset(&order, 0, sizeof(order));
	order.database = MyDatabaseId;
	order.index = RelationGetRelid(source->index);
	order.locator = RelationLocator(source->index);
	order.number = number;
	order.how = how;
	order.nwords = source->layout->nwords;
	order.fillfactor = source->fillfactor;
	order.file_id = source->file_id;

	memset(&worker, 0, sizeof(worker));
	snprintf(worker.bgw_name, BGW_MAXLEN, "gpuds loader for index %u of database %u", order.index,
			 order.database);
	snprintf(worker.bgw_type, BGW_MAXLEN, "gpuds loader");
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(worker.bgw_library_name, sizeof(worker.bgw_library_name), "gpuds");
	snprintf(worker.bgw_function_name, sizeof(worker.bgw_function_name), "gpuds_loader_main");
	memcpy(worker.bgw_extra, &order, sizeof(order));
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

/*
 * Starts a loader for a mirror of the index that has no applier, and does not wait for it.  False: there is
 * none to be had.
 */
bool
gpuds_loader_start(const GpudsMirrorSource *source, int number, int how)
{
	BackgroundWorkerHandle *handle;

	if (!is_visible_to_all(source->index) || !start_loader(source, number, how, &handle))
		return false;
	pfree(handle);
	return true;
}

/*
 * Has a loader take the caller's place as the mirror's applier.  False: there is
 * no loader to be had, the caller still is the applier.  May be interrupted.
 */
bool
gpuds_loader_hand_over(const GpudsMirrorSource *source, GpudsMirrorRef *ref, int how)
{
	GpudsMirror *mirror = ref->mirror;
	BackgroundWorkerHandle *handle;
	TimestampTz give_up;
	bool handed_over;

	if (!is_visible_to_all(source->index))
		return false;
	(void) gpuds_mirror_set_offer(mirror, true);
	if (!start_loader(source, mirror->number, how, &handle))
	{
		(void) gpuds_mirror_set_offer(mirror, false);
		return false;
	}

	give_up = GetCurrentTimestamp() + START_TIMEOUT_US;
	while (gpuds_mirror_is_offered(mirror))
	{
		BgwHandleStatus status;
		pid_t pid;

		(void) ConditionVariableTimedSleep(&mirror->applier_left, LOOK_MS,
										   GpudsWaitEvent("GpudsLoaderStart"));
		status = GetBackgroundWorkerPid(handle, &pid);
		if (status == BGWH_STOPPED || status == BGWH_POSTMASTER_DIED)
			break;
		/* It waits to be started, or for a lock on a catalog, perhaps one of ours. */
		if (GetCurrentTimestamp() >= give_up)
		{
			TerminateBackgroundWorker(handle);
			break;
		}
	}
	ConditionVariableCancelSleep();
	handed_over = !gpuds_mirror_set_offer(mirror, false);
	pfree(handle);
	return handed_over;
}

/*
 * Opens the index of an order with its table, if that is possible at once and it
 * has the file that was meant, else returns NULL.  *heap: the table.
 */
static Relation
open_index(const LoaderOrder *order, Oid *heap)
{
	Relation index;
	GpudsMetaData meta;

	*heap = IndexGetRelation(order->index, true);
	if (!OidIsValid(*heap) || !ConditionalLockRelationOid(*heap, AccessShareLock))
		return NULL;
	if (!ConditionalLockRelationOid(order->index, AccessShareLock))
		return NULL;
	index = try_relation_open(order->index, NoLock);
	if (index == NULL)
		return NULL;
	/* The table that we have locked is the index's, and the file the mirror's. */
	if (IndexGetRelation(order->index, true) == *heap &&
		RelFileLocatorEquals(RelationLocator(index), order->locator))
	{
		gpuds_journal_read_meta(index, &meta);
		if (meta.file_id == order->file_id)
			return index;
	}
	relation_close(index, NoLock);
	return NULL;
}

/*
 * Is the mirror, whose applier the caller is, still one that the index is to have?  Who wants fewer copies
 * says so first, and then waits for their appliers.
 */
static bool
is_wanted(const LoaderOrder *order, Relation index)
{
	GpudsMirrorRef first;

	return !(order->how & GPUDS_NO_EVICT) ||
		   (gpuds_mirror_lookup(index, order->file_id, GPUDS_MIRROR_ON_GPU(0), false, &first) &&
			order->number < GPUDS_MIRROR_ON_GPU((int) pg_atomic_read_u32(&first.mirror->copies)));
}

/*
 * Brings the mirror up, if nobody else is at it.
 */
static void
carry_out(const LoaderOrder *order, Oid heap, Relation index)
{
	GpudsKeyLayout layout;
	GpudsMirrorSource source;
	GpudsMirrorRef ref;

	/* All that bringing up asks of the layout. */
	memset(&layout, 0, sizeof(layout));
	layout.nwords = order->nwords;
	source.index = index;
	source.layout = &layout;
	source.file_id = order->file_id;
	source.fillfactor = order->fillfactor;
	/* What is offered is meant for one who may evict others. */
	if (!gpuds_mirror_lookup(index, order->file_id, order->number, false, &ref) ||
		!((order->how & GPUDS_NO_EVICT) ? gpuds_mirror_acquire(ref.mirror, false)
										: gpuds_mirror_take(ref.mirror)))
		return;
	gpuds_make_way_begin(ref.mirror, heap, index);
	PG_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref.mirror));
	{
		if (pg_atomic_read_u64(&ref.mirror->serial) == ref.serial && is_wanted(order, index))
			(void) gpuds_mirror_bring_up(&source, &ref, order->how | GPUDS_ALONE | GPUDS_LOADER);
	}
	PG_END_ENSURE_ERROR_CLEANUP(gpuds_mirror_release_on_error, PointerGetDatum(ref.mirror));
	gpuds_mirror_release(ref.mirror);
	gpuds_make_way_end();
}

/*
 * A loader's main function: brings up the mirror that bgw_extra names, in one transaction, if nobody else
 * does.  Takes AccessShareLock on table and index only if both are free at once, or else declines: whoever
 * waits for the mirror may hold what conflicts.  Then makes way for any process that waits for these locks
 * (loader_yield.c).
 */
void
gpuds_loader_main(Datum arg)
{
	LoaderOrder order;
	Relation index;
	Oid heap;

	memcpy(&order, MyBgworkerEntry->bgw_extra, sizeof(order));
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(order.database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);

	StartTransactionCommand();
	index = open_index(&order, &heap);
	if (index)
	{
		char *activity = psprintf("loading index %s", RelationGetRelationName(index));

		pgstat_report_activity(STATE_RUNNING, activity);
		carry_out(&order, heap, index);
	}
	else
	{
		GpudsMirror *mirror = gpuds_mirror_find(order.locator, order.number);

		/* Our locks first: a process that waits for us may want to change the table. */
		CommitTransactionCommand();
		if (mirror)
			gpuds_mirror_decline(mirror);
		return;
	}
	relation_close(index, NoLock);
	CommitTransactionCommand();
}
