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

/* Entries that a device counts in the time that it finds a key. */
#define ENTRIES_OF_KEY 16

/* Attempts at a count on a device while other sessions change rows of all-visible pages. */
#define DEVICE_ATTEMPTS 3

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
 * Counts what is left of the intervals at hand on the mirror's device, by a copy of the visibility map (I2).
 * False: it does not, or rows change so fast that the copy does not hold.
 */
static bool
count_on_device(IndexScanDesc scan, GpudsVisible *visible, int64 *seen)
{
	bool counts = visible->counts && gpuds_scan_counts(scan);
	bool holds = false;

	for (int i = 0; i < DEVICE_ATTEMPTS && counts && !holds; i++)
	{
		GpudsCounted counted;
		size_t bytes;
		unsigned char *map = gpuds_visible_copy_map(visible, &bytes);

		counts = gpuds_scan_count_rest(scan, map, bytes, &counted);
		gpuds_injection_point("scan-probed");
		holds = counts && gpuds_visible_map_holds(visible, map, bytes);
		if (holds)
		{
			gpuds_scan_skip_rest(scan, counted.counted + counted.n);
			*seen += counted.counted + gpuds_visible_count_in_heap(visible, counted.tids, counted.n);
		}
		if (counted.tids)
			pfree(counted.tids);
		pfree(map);
	}
	return holds;
}

/*
 * Counts the rows of a scan whose keys have been set, from its beginning.  The scan's snapshot must be
 * an MVCC snapshot.  expected: about so many.  *fetches: rows that were looked up in the heap.
 *
 * Rows that are not looked up have no predicate locks of their own, so for SERIALIZABLE the whole
 * table is locked, as the whole index is.
 */
int64
gpuds_scan_count(IndexScanDesc scan, double expected, int64 *fetches)
{
	GpudsVisible visible;
	Unsure unsure = { 0 };
	bool device_counts = true;
	int64 seen = 0;

	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	PredicateLockRelation(scan->heapRelation, scan->xs_snapshot);
	gpuds_visible_begin(&visible, scan);
	gpuds_visible_before_barrier(&visible);
	gpuds_scan_begin_batches(scan, (int64) Min(expected / ENTRIES_OF_KEY, PG_INT32_MAX));
	while (gpuds_scan_has_more(scan))
	{
		const GpudsEntry *entries;
		int64 n;
		bool from_mirror;

		if (device_counts && gpuds_scan_counts(scan))
		{
			device_counts = count_on_device(scan, &visible, &seen);
			continue;
		}
		gpuds_scan_next_batch(scan, HEAP_PIECE, &entries, &n, &from_mirror);
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
