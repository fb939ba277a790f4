/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  Merges what a mirror and a memtable say to a scan.
 *
 * The memtable has the last word on an entry: it says whether the entry is there.
 * Either side may have been cut off where its room ended; nothing is known behind
 * that, so the merge ends there, and the scan goes on by value behind it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "mirror/mirror_internal.h"

/* Sets a scan that has ascending intervals on an entry of one of them. */
static void
stand_on(GpudsScan *scan, bool forward, const GpudsEntry *entry)
{
	scan->next = entry_scan_find(scan, entry) + (forward ? 0 : 1);
	scan->inside = true;
	scan->at = *entry;
}

/*
 * The next entries of a scan, at most cap, in its direction.  The scan, which is where it was
 * before the mirror was asked, moves behind them.  *end: there are no more.
 */
int64
gpuds_merge(const GpudsMerge *merge, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap, bool *end)
{
	const GpudsEntry *last = NULL;
	int64 i = 0;
	int64 j = 0;
	int64 n = 0;

	while (n < cap && (i < merge->nold || merge->old_end) && (j < merge->nfresh || merge->fresh_end))
	{
		const GpudsEntry *old = i < merge->nold ? &merge->old[i] : NULL;
		const GpudsOp *fresh = j < merge->nfresh ? &merge->fresh[j] : NULL;
		bool fresh_next;

		if (old == NULL && fresh == NULL)
			break;
		fresh_next = fresh && (old == NULL || entry_equal(old, &fresh->e) ||
							   (forward ? entry_less(&fresh->e, old) : entry_less(old, &fresh->e)));
		last = fresh_next ? &fresh->e : old;
		if (old && entry_equal(old, last))
			i++;
		if (fresh_next)
			j++;
		if (!fresh_next || (fresh->order & GPUDS_OP_DELETE) == 0)
			out[n++] = *last;
	}
	*end = i == merge->nold && merge->old_end && j == merge->nfresh && merge->fresh_end;
	if (last)
		stand_on(scan, forward, last);
	return n;
}
