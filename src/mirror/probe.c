/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  Answers a scan from the mirror, or from the journal if there is none.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror.h"

/* A mirror may be evicted between sync and scan; how often to try again. */
#define PROBE_ATTEMPTS 3

/*
 * Fetches the next entries of a scan into out[cap], in order.  *end: there are
 * no more behind them.  ref comes from gpuds_mirror_sync; it is synced again if
 * the mirror went away meanwhile.
 */
int64
gpuds_probe(const GpudsMirrorSource *source, GpudsMirrorRef *ref, GkScan *scan, bool forward, GkEntry *out,
			int64 cap, bool *end)
{
	for (int i = 0; ref->mirror && i < PROBE_ATTEMPTS; i++)
	{
		GpudsMirror *mirror = ref->mirror;
		int64 n = gpuds_device_scan(&mirror->tree, &mirror->readable, ref->serial, scan, forward, out, cap);

		if (n >= 0)
		{
			gpuds_mirror_count(ref, 0, 1, 0, n);
			gpuds_mirror_touch(mirror);
			*end = n < cap;
			return n;
		}
		gpuds_mirror_sync(source, ref);
	}
	return gpuds_journal_scan(source, scan, forward, out, cap, end);
}

/*
 * The TIDs of a piece of a forward scan, ascending, from a device that sorts;
 * *end: that was the last piece.  False: not to be had, the scan has not moved,
 * and gpuds_probe will do.  What is in *tids is to be freed.
 */
bool
gpuds_probe_tids(GpudsMirrorRef *ref, GkScan *scan, int64 cap, GpudsTids *tids, bool *end)
{
	GpudsMirror *mirror = ref->mirror;

	if (mirror == NULL || !gpuds_device_sorts(&mirror->tree) ||
		!gpuds_device_scan_tids(&mirror->tree, &mirror->readable, ref->serial, scan, cap, tids))
		return false;
	gpuds_mirror_count(ref, 0, 1, 0, tids->n);
	gpuds_mirror_touch(mirror);
	*end = scan->next >= scan->n;
	return true;
}
