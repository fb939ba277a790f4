/*-------------------------------------------------------------------------
 *
 * count.c
 *	  Counters of what scans have asked of a mirror, and what a device did for it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

/* Counts not yet added to a mirror's shared counters. */
static struct
{
	GpudsMirrorRef ref;
	uint64 scans;
	uint64 batches;
	uint64 probes;
	uint64 entries;
	GpudsDeviceWork work;
} pending;

/* What the device had done for this backend when that was looked at last. */
static GpudsDeviceWork known_work;

/* Adds what the device has done since then. */
static void
add_work(GpudsDeviceWork *work)
{
	work->small += gpuds_device_work.small - known_work.small;
	work->small_shares += gpuds_device_work.small_shares - known_work.small_shares;
	work->launches += gpuds_device_work.launches - known_work.launches;
	work->device_ns += gpuds_device_work.device_ns - known_work.device_ns;
	work->bus_bytes += gpuds_device_work.bus_bytes - known_work.bus_bytes;
	known_work = gpuds_device_work;
}

/*
 * Counts work of a scan, and what the device did for this backend since the last
 * call, which must have been for this mirror.  The backend keeps counts until it turns
 * to another mirror or ends its transaction.
 */
void
gpuds_mirror_count(GpudsMirrorRef *ref, uint64 scans, uint64 batches, uint64 probes, uint64 entries)
{
	if (pending.ref.mirror != ref->mirror || pending.ref.serial != ref->serial)
	{
		gpuds_mirror_count_flush();
		pending.ref = *ref;
	}
	pending.scans += scans;
	pending.batches += batches;
	pending.probes += probes;
	pending.entries += entries;
	add_work(&pending.work);
}

/*
 * Adds what is pending to the mirror's counters, if it is still the same mirror.
 */
void
gpuds_mirror_count_flush(void)
{
	GpudsMirror *mirror = pending.ref.mirror;

	if (mirror && pg_atomic_read_u64(&mirror->serial) == pending.ref.serial)
	{
		pg_atomic_fetch_add_u64(&mirror->stats.scans, pending.scans);
		pg_atomic_fetch_add_u64(&mirror->stats.batches, pending.batches);
		pg_atomic_fetch_add_u64(&mirror->stats.probes, pending.probes);
		pg_atomic_fetch_add_u64(&mirror->stats.entries, pending.entries);
		if (gpuds_device_is_remote(mirror->tree.kind))
		{
			pg_atomic_fetch_add_u64(&mirror->stats.small, pending.work.small);
			pg_atomic_fetch_add_u64(&mirror->stats.small_shares, pending.work.small_shares);
			pg_atomic_fetch_add_u64(&mirror->stats.launches, pending.work.launches);
			pg_atomic_fetch_add_u64(&mirror->stats.device_ns, pending.work.device_ns);
			pg_atomic_fetch_add_u64(&mirror->stats.bus_bytes, pending.work.bus_bytes);
		}
	}
	memset(&pending, 0, sizeof(pending));
}
