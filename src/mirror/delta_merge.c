/*-------------------------------------------------------------------------
 *
 * delta_merge.c
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

	while (n < cap && (i < merge->nold || merge->old_end) && (j < merge->ndelta || merge->delta_end))
	{
		const GpudsEntry *old = i < merge->nold ? &merge->old[i] : NULL;
		const GpudsOp *delta = j < merge->ndelta ? &merge->delta[j] : NULL;
		bool delta_next;

		if (old == NULL && delta == NULL)
			break;
		delta_next = delta && (old == NULL || entry_equal(old, &delta->e) ||
							   (forward ? entry_less(&delta->e, old) : entry_less(old, &delta->e)));
		last = delta_next ? &delta->e : old;
		if (old && entry_equal(old, last))
			i++;
		if (delta_next)
			j++;
		if (!delta_next || (delta->order & GPUDS_OP_DELETE) == 0)
			out[n++] = *last;
	}
	*end = i == merge->nold && merge->old_end && j == merge->ndelta && merge->delta_end;
	if (last)
		stand_on(scan, forward, last);
	return n;
}
