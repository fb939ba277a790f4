/*-------------------------------------------------------------------------
 *
 * shared_scan.c
 *	  The place that participants of a parallel index scan share (shared_scan.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/wait_event.h"

#include "am/shared_scan.h"

typedef struct SharedScan
{
	ConditionVariable changed;
	slock_t mutex; /* protects what follows */
	bool taken;    /* a participant has the place */
	GpudsSharedPlace place;
	GpudsEntry at; /* if place is GPUDS_SHARED_ON */
} SharedScan;

/* Core aligns it as MAXALIGN does, which may be less than entries want. */
static SharedScan *
shared_of(void *target)
{
	return (SharedScan *) TYPEALIGN(__alignof__(SharedScan), target);
}

static SharedScan *
shared_scan(IndexScanDesc scan)
{
	return shared_of(OffsetToPointer(scan->parallel_scan, GpudsParallelScanOffset(scan->parallel_scan)));
}

/* amestimateparallelscan: shared memory that a scan wants. */
Size
gpuds_shared_scan_size(GpudsEstimateParallelScanParams)
{
	return sizeof(SharedScan) + __alignof__(SharedScan);
}

/* aminitparallelscan: in the leader, before workers start. */
void
gpuds_shared_scan_init(void *target)
{
	SharedScan *shared = shared_of(target);

	ConditionVariableInit(&shared->changed);
	SpinLockInit(&shared->mutex);
	shared->taken = false;
	shared->place = GPUDS_SHARED_START;
}

/* amparallelrescan: in the leader, when all workers have ended, and before others start. */
void
gpuds_shared_scan_rescan(IndexScanDesc scan)
{
	SharedScan *shared = shared_scan(scan);

	/* A participant that was stopped by a LIMIT has put its place back before it gave a row. */
	Assert(!shared->taken);
	shared->place = GPUDS_SHARED_START;
}

/* Takes the place if it is free, or if it is the end, where nobody keeps it. */
static bool
try_take(SharedScan *shared, GpudsSharedPlace *place, GpudsEntry *at)
{
	bool free;

	SpinLockAcquire(&shared->mutex);
	free = !shared->taken;
	if (free)
	{
		*place = shared->place;
		*at = shared->at;
		shared->taken = *place != GPUDS_SHARED_END;
	}
	SpinLockRelease(&shared->mutex);
	return free;
}

/*
 * Takes the scan's place, and says where it is; waits, interruptibly, while another participant has it.
 * The caller must put a place back (gpuds_shared_scan_put), except at the end.
 */
GpudsSharedPlace
gpuds_shared_scan_take(IndexScanDesc scan, GpudsEntry *at)
{
	SharedScan *shared = shared_scan(scan);
	GpudsSharedPlace place;

	while (!try_take(shared, &place, at))
		ConditionVariableSleep(&shared->changed, GpudsWaitEvent("GpudsSharedScan"));
	ConditionVariableCancelSleep();
	return place;
}

/* Puts the place where the scan has got to; at: the entry, if there is one. */
void
gpuds_shared_scan_put(IndexScanDesc scan, GpudsSharedPlace place, const GpudsEntry *at)
{
	SharedScan *shared = shared_scan(scan);

	SpinLockAcquire(&shared->mutex);
	shared->taken = false;
	shared->place = place;
	if (place == GPUDS_SHARED_ON)
		shared->at = *at;
	SpinLockRelease(&shared->mutex);
	if (place == GPUDS_SHARED_END)
		ConditionVariableBroadcast(&shared->changed);
	else
		ConditionVariableSignal(&shared->changed);
}
