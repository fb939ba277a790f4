/*-------------------------------------------------------------------------
 *
 * probe_rank.c
 *	  Finds entries by their ranks in intervals, many at a time, on the mirror's device.
 *
 * Where the memtable has something to say of an interval, nothing is known of it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "mirror/mirror_internal.h"

/* May gpuds_probe_rank find entries? */
bool
gpuds_probe_ranks(const GpudsMirrorRef *ref)
{
	return ref->mirror && gpuds_device_has_ranks(&ref->mirror->tree);
}

/* Has the memtable, which has been asked, anything to say of an interval? */
static bool
is_touched(const GpudsDelta *delta, const GpudsInterval *interval)
{
	int64 lo = 0;
	int64 hi = delta->n;

	while (lo < hi)
	{
		const int64 middle = lo + (hi - lo) / 2;

		if (entry_less(&delta->ops[middle].e, &interval->lo))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < delta->n && !entry_less(&interval->hi, &delta->ops[lo].e);
}

static void
know_nothing(GpudsRanked *ranked, int64 n)
{
	for (int64 i = 0; i < n; i++)
		ranked[i].entries = UINT64_MAX;
}

/* What the mirror has of all intervals; false: the device does not say. */
static bool
rank_in_mirror(GpudsMirrorRef *ref, const GpudsInterval *intervals, const uint64 *ranks, int64 n,
			   GpudsRanked *ranked)
{
	GpudsMirror *mirror = ref->mirror;

	for (int64 i = 0; i < n; i += GPUDS_MOST_RANKED)
	{
		const int64 some = Min(n - i, GPUDS_MOST_RANKED);

		CHECK_FOR_INTERRUPTS();
		if (!gpuds_device_rank(&mirror->tree, &mirror->guard, ref->serial, intervals + i, ranks + i, some,
							   ranked + i))
			return false;
		gpuds_mirror_count(ref, 0, 1, 0, some);
	}
	gpuds_mirror_touch(mirror);
	return true;
}

/*
 * Finds the entry of a rank, from 0 on, in each of n intervals, one at least, which ascend or are equal.  The
 * barrier has been passed, and gpuds_probe_ranks has said yes.  Entries and their number come of one version
 * of the mirror, which has all that the scan must see of the interval; the number is UINT64_MAX if nothing is
 * known.
 */
void
gpuds_probe_rank(GpudsMirrorRef *ref, const GpudsInterval *intervals, const uint64 *ranks, int64 n,
				 GpudsRanked *ranked)
{
	const GpudsInterval span = { intervals[0].lo, intervals[n - 1].hi };
	const GpudsScan scan = { .intervals = &span, .n = 1 };
	const bool attached = ref->memtable != 0;

	gpuds_probe_forget(ref);
	if ((attached && !(gpuds_probe_ask_memtable(ref, &scan, true, true) && ref->delta.all)) ||
		!rank_in_mirror(ref, intervals, ranks, n, ranked) || (attached && !gpuds_probe_still_attached(ref)))
		know_nothing(ranked, n);
	for (int64 i = 0; attached && i < n; i++)
	{
		if (is_touched(&ref->delta, &intervals[i]))
			ranked[i].entries = UINT64_MAX;
	}
	gpuds_probe_forget(ref);
}
