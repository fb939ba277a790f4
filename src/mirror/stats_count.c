/*-------------------------------------------------------------------------
 *
 * stats_count.c
 *	  Counters of what scans have asked of a mirror, and what a device did for it.
 *
 * They stay in the backend until it turns to another mirror or ends a transaction (stats.h, S2).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

/* Counts not yet handed over. */
static struct
{
	GpudsMirrorRef ref;
	bool any;
	GpudsIndexStats counts;
} pending;

/* What the device had done for this backend when that was looked at last. */
static GpudsDeviceWork known_work;

/* Turns to a mirror.  True: there is one. */
static bool
turn_to(const GpudsMirrorRef *ref)
{
	if (pending.ref.mirror != ref->mirror || pending.ref.serial != ref->serial)
	{
		gpuds_mirror_count_flush();
		pending.ref = *ref;
	}
	return ref->mirror != NULL;
}

/* Counts what the device has done since it was looked at last, for the mirror at hand or for none. */
static void
count_work(bool remote)
{
	if (remote)
	{
		pending.counts.small += gpuds_device_work.small - known_work.small;
		pending.counts.small_shares += gpuds_device_work.small_shares - known_work.small_shares;
		pending.counts.launches += gpuds_device_work.launches - known_work.launches;
		pending.counts.device_ns += gpuds_device_work.device_ns - known_work.device_ns;
		pending.counts.bus_bytes += gpuds_device_work.bus_bytes - known_work.bus_bytes;
	}
	known_work = gpuds_device_work;
}

/*
 * Counts work of a scan, and what the device did for this backend since the last
 * call, which must have been for this mirror.  If there is none, nothing is counted.
 */
void
gpuds_mirror_count(GpudsMirrorRef *ref, uint64 scans, uint64 batches, uint64 probes, uint64 entries)
{
	const bool counts = turn_to(ref);

	count_work(counts && gpuds_device_is_remote(ref->mirror->tree.kind));
	if (!counts)
		return;
	pending.any = true;
	pending.counts.scans += scans;
	pending.counts.batches += batches;
	pending.counts.probes += probes;
	pending.counts.entries += entries;
}

/* Counts a scan that has to do without the mirror; there is one. */
void
gpuds_mirror_count_fallback(GpudsMirrorRef *ref, GpudsWithout why)
{
	gpuds_mirror_count(ref, 0, 0, 0, 0);
	pending.counts.fallbacks++;
	ref->notes.fallbacks++;
	ref->notes.without |= GpudsWithoutBit(ref->mirror->tree.kind, why);
}

/* Hands over what is pending. */
void
gpuds_mirror_count_flush(void)
{
	if (pending.any)
		gpuds_stats_count(&pending.ref, &pending.counts);
	memset(&pending, 0, sizeof(pending));
}
