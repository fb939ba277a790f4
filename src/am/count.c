/*-------------------------------------------------------------------------
 *
 * count.c
 *	  How many rows a scan's snapshot sees, counted in batches.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "am/visible.h"

/* Rows that are looked up in the heap at a time, in its order. */
#define HEAP_PIECE (256 * 1024)

/* TIDs of rows to be looked up. */
typedef struct Unsure
{
	uint64 *tids;
	int64 n;
	int64 size;
	bool *to_all; /* of the batch at hand, as many as there is room for */
} Unsure;

static void
make_room(Unsure *unsure, int64 n)
{
	if (unsure->n + n <= unsure->size)
		return;
	if (unsure->tids)
	{
		pfree(unsure->tids);
		pfree(unsure->to_all);
	}
	unsure->size = HEAP_PIECE + n;
	unsure->tids = MemoryContextAllocHuge(CurrentMemoryContext, unsure->size * sizeof(uint64));
	unsure->to_all = MemoryContextAllocHuge(CurrentMemoryContext, unsure->size * sizeof(bool));
}

/* Adds a batch to what has been counted, or to what is to be looked up. */
static int64
count_batch(GpudsVisible *visible, const GpudsEntry *entries, int64 n, bool from_mirror, Unsure *unsure)
{
	uint64 *tids = unsure->tids + unsure->n;
	int64 others = 0;

	gpuds_visible_mark(visible, entries, n, from_mirror, unsure->to_all);
	for (int64 i = 0; i < n; i++)
	{
		tids[others] = entries[i].t & ENTRY_TID_MASK;
		others += !unsure->to_all[i];
	}
	unsure->n += others;
	return n - others;
}

/*
 * Counts the rows of a scan whose keys have been set, from its beginning.  The scan's snapshot must be
 * an MVCC snapshot.  *fetches: rows that were looked up in the heap.
 *
 * Rows that are not looked up have no predicate locks of their own, so for SERIALIZABLE the whole
 * table is locked, as the whole index is.
 */
int64
gpuds_scan_count(IndexScanDesc scan, int64 *fetches)
{
	GpudsVisible visible;
	Unsure unsure = { 0 };
	const GpudsEntry *entries;
	int64 n;
	bool from_mirror;
	int64 seen = 0;

	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	PredicateLockRelation(scan->heapRelation, scan->xs_snapshot);
	gpuds_visible_begin(&visible, scan);
	gpuds_visible_before_barrier(&visible);
	gpuds_scan_begin_batches(scan);
	while (gpuds_scan_next_batch(scan, HEAP_PIECE, &entries, &n, &from_mirror))
	{
		if (unsure.n + n > unsure.size)
		{
			seen += gpuds_visible_count_in_heap(&visible, unsure.tids, unsure.n);
			unsure.n = 0;
			make_room(&unsure, n);
		}
		seen += count_batch(&visible, entries, n, from_mirror, &unsure);
	}
	seen += gpuds_visible_count_in_heap(&visible, unsure.tids, unsure.n);
	*fetches = visible.fetches;
	gpuds_visible_end(&visible);
	if (unsure.tids)
	{
		pfree(unsure.tids);
		pfree(unsure.to_all);
	}
	return seen;
}
