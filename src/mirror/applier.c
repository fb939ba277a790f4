/*-------------------------------------------------------------------------
 *
 * applier.c
 *	  The right to change a mirror, which one process has at a time.
 *
 * An applier that has much to do can offer its place to a loader (loader.c): the
 * loader takes it over without anybody coming between the two, and the process
 * that made the offer waits like all others from then on.  If it is cancelled
 * before, the offer is gone and the place free.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "pgstat.h"

#include "mirror/mirror.h"

/*
 * Becomes the mirror's applier.  Without wait, returns false if there is one.
 * Waiting can be interrupted.  The caller must release also on error.
 */
bool
gpuds_mirror_acquire(GpudsMirror *mirror, bool wait)
{
	bool got;

	for (;;)
	{
		SpinLockAcquire(&mirror->mutex);
		got = mirror->applier == 0;
		if (got)
			mirror->applier = GpudsMyBackendIndex() + 1;
		SpinLockRelease(&mirror->mutex);
		if (got || !wait)
			break;
		/* The process that was woken in our place may have been cancelled: look again. */
		(void) ConditionVariableTimedSleep(&mirror->applier_left, 1000, PG_WAIT_EXTENSION);
	}
	if (wait)
		ConditionVariableCancelSleep();
	return got;
}

/*
 * Stops being the applier; nothing happens if we are not, because a loader has
 * taken our place.  What is reserved for the mirror goes with its applier.  All
 * who wait look again if there is news, else one of them becomes the next
 * applier.
 */
void
gpuds_mirror_release(GpudsMirror *mirror)
{
	bool news;

	SpinLockAcquire(&mirror->mutex);
	if (mirror->applier != GpudsMyBackendIndex() + 1)
	{
		SpinLockRelease(&mirror->mutex);
		return;
	}
	pg_atomic_write_u64(&mirror->claim.reserved_bytes, 0);
	news = mirror->news;
	mirror->news = false;
	mirror->offered = false;
	mirror->applier = 0;
	SpinLockRelease(&mirror->mutex);
	if (news)
		ConditionVariableBroadcast(&mirror->applier_left);
	else
		ConditionVariableSignal(&mirror->applier_left);
}

/*
 * gpuds_mirror_release for PG_ENSURE_ERROR_CLEANUP: the mirror is the argument.
 */
void
gpuds_mirror_release_on_error(int code, Datum mirror)
{
	gpuds_mirror_release((GpudsMirror *) DatumGetPointer(mirror));
}

/*
 * Makes or withdraws the applier's offer.  False: somebody has accepted it, we are
 * not the applier any more.
 */
bool
gpuds_mirror_set_offer(GpudsMirror *mirror, bool offered)
{
	bool mine;

	SpinLockAcquire(&mirror->mutex);
	mine = mirror->applier == GpudsMyBackendIndex() + 1;
	if (mine)
		mirror->offered = offered;
	SpinLockRelease(&mirror->mutex);
	return mine;
}

/* Does our offer stand: neither accepted nor declined? */
bool
gpuds_mirror_is_offered(GpudsMirror *mirror)
{
	bool offered;

	SpinLockAcquire(&mirror->mutex);
	offered = mirror->offered && mirror->applier == GpudsMyBackendIndex() + 1;
	SpinLockRelease(&mirror->mutex);
	return offered;
}

/*
 * Becomes the mirror's applier if there is none, or if it offers its place.
 */
bool
gpuds_mirror_take(GpudsMirror *mirror)
{
	bool got;

	SpinLockAcquire(&mirror->mutex);
	got = mirror->applier == 0 || mirror->offered;
	if (got)
	{
		mirror->applier = GpudsMyBackendIndex() + 1;
		mirror->offered = false;
	}
	SpinLockRelease(&mirror->mutex);
	/* Among the waiting processes is the one that made the offer. */
	if (got)
		ConditionVariableBroadcast(&mirror->applier_left);
	return got;
}

/*
 * Tells the applier that offers its place that there will be no loader.
 */
void
gpuds_mirror_decline(GpudsMirror *mirror)
{
	SpinLockAcquire(&mirror->mutex);
	mirror->offered = false;
	SpinLockRelease(&mirror->mutex);
	ConditionVariableBroadcast(&mirror->applier_left);
}
