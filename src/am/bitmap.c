/*-------------------------------------------------------------------------
 *
 * bitmap.c
 *	  Core's bitmap scans: the TIDs of all entries of a cursor, sorted piece by piece.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "storage/ipc.h"

#include "am/am.h"
#include "kernels/core/sort.h"
#include "reader/cursor.h"
#include "reader/fetch.h"
#include "reader/reader.h"

/* TIDs sorted at a time for a bitmap. */
#define BITMAP_PIECE_TIDS (1024 * 1024)

/*
 * Adds TIDs to the bitmap; ascending ones are cheapest.
 */
static void
add_to_bitmap(IndexScanDesc scan, TIDBitmap *tbm, const uint64 *tids, int64 n)
{
	GpudsCursor *cursor = scan->opaque;
	ItemPointerData pointers[256];
	int npointers = 0;

	for (int64 i = 0; i < n; i++)
	{
		if (!gpuds_cursor_passes_check(scan, cursor, tids[i]))
			continue;
		ItemPointerSet(&pointers[npointers], (BlockNumber) (tids[i] >> 16),
					   (OffsetNumber) (tids[i] & 0xFFFF));
		if (++npointers == lengthof(pointers))
		{
			tbm_add_tuples(tbm, pointers, npointers, scan->xs_recheck);
			npointers = 0;
		}
	}
	if (npointers > 0)
		tbm_add_tuples(tbm, pointers, npointers, scan->xs_recheck);
}

static void
sort_into_bitmap(IndexScanDesc scan, TIDBitmap *tbm, uint64 *tids, int64 n)
{
	uint64 *scratch = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint64));

	sort_u64(tids, scratch, n);
	pfree(scratch);
	add_to_bitmap(scan, tbm, tids, n);
}

static void
free_tids(int code, Datum arg)
{
	gpuds_device_free_tids((GpudsTids *) DatumGetPointer(arg));
}

/*
 * The bitmap from a device that sorts TIDs itself.  Gets as far as that device
 * lasts; returns how many there were.
 */
static int64
sorted_bitmap(IndexScanDesc scan, GpudsCursor *cursor, TIDBitmap *tbm)
{
	int64 total = 0;
	uint64 *delta;
	int64 ndelta;
	/* A little more than there are keys, so that the end is seen to be one. */
	int64 cap = Min(Max(GPUDS_FIRST_TIDS, cursor->set.nintervals + 1), BITMAP_PIECE_TIDS);

	if (cursor->set.nintervals >= GPUDS_MANY_KEYS)
		gpuds_keep_freed_memory();
	if (!gpuds_probe_delta_tids(&cursor->ref, &cursor->scan, &delta, &ndelta))
		ndelta = -1;
	if (ndelta > 0)
		sort_into_bitmap(scan, tbm, delta, ndelta);
	if (delta)
		pfree(delta);
	if (ndelta < 0)
		return 0;
	total += ndelta;
	while (!cursor->end && cursor->scan.n > 0)
	{
		const GpudsDeviceWork before = gpuds_device_work;
		GpudsTids tids;

		CHECK_FOR_INTERRUPTS();
		if (!gpuds_probe_tids(&cursor->ref, &cursor->scan, cap, &tids, &cursor->end))
			break;
		gpuds_cursor_note_answer(cursor, &before, tids.n);
		PG_ENSURE_ERROR_CLEANUP(free_tids, PointerGetDatum(&tids));
		{
			add_to_bitmap(scan, tbm, tids.tids, tids.n);
		}
		PG_END_ENSURE_ERROR_CLEANUP(free_tids, PointerGetDatum(&tids));
		gpuds_device_free_tids(&tids);
		total += tids.n;
		if (tids.n == cap)
			cap = Min(cap * GPUDS_TIDS_GROWTH, BITMAP_PIECE_TIDS);
	}
	return total;
}

/*
 * The bitmap from chunks of entries.  Goes on from where the scan is.
 */
static int64
collected_bitmap(IndexScanDesc scan, GpudsCursor *cursor, TIDBitmap *tbm)
{
	const GpudsProbeSizes *sizes = gpuds_probe_sizes(&cursor->ref);
	bool sorts = gpuds_cursor_device_sorts(cursor);
	int64 size = Max(GPUDS_FIRST_CHUNK_SIZE, Min(cursor->set.nintervals, BITMAP_PIECE_TIDS));
	int64 ntids = 0;
	int64 total = 0;
	uint64 *tids = palloc(size * sizeof(uint64));

	cursor->fetch = sorts ? sizes->small
						  : Max(cursor->fetch, Min(cursor->set.nintervals, GPUDS_MAX_FIRST_CHUNK));
	while (!cursor->end && cursor->scan.n > 0)
	{
		CHECK_FOR_INTERRUPTS();
		gpuds_cursor_fetch(scan, cursor);
		if (ntids + cursor->nchunk > size)
		{
			size = Max(size * 2, ntids + cursor->nchunk);
			tids = repalloc_huge(tids, size * sizeof(uint64));
		}
		for (int64 i = 0; i < cursor->nchunk; i++)
		{
			if (cursor->set.filter && !gpuds_key_filter_pass(cursor->set.filter, &cursor->chunk[i]))
				continue;
			tids[ntids++] = cursor->chunk[i].t & ENTRY_TID_MASK;
		}
		if (ntids >= BITMAP_PIECE_TIDS || cursor->end)
		{
			sort_into_bitmap(scan, tbm, tids, ntids);
			total += ntids;
			ntids = 0;
		}
		/* More than a small scan gives: the rest by larger ones. */
		else if (sorts)
			total += sorted_bitmap(scan, cursor, tbm);
	}
	if (ntids > 0)
		sort_into_bitmap(scan, tbm, tids, ntids);
	pfree(tids);
	return total + ntids;
}

/*
 * amgetbitmap.  Passes the barrier here, not in amrescan.  The order of keys does not matter, so a device
 * that sorts TIDs gives them sorted; what it cannot give comes as entries.  Rows are rechecked where
 * scan->xs_recheck says so.  Raises an error if the snapshot may have expired.  Returns how many TIDs were
 * found, about.
 */
int64
gpuds_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	GpudsCursor *cursor = scan->opaque;
	int64 total = 0;

	gpuds_cursor_barrier(scan, cursor, cursor->set.total);
	gpuds_cursor_from_place(cursor, true);
	do
	{
		/* Here the order of the keys does not matter. */
		if (gpuds_cursor_device_sorts(cursor) &&
			cursor->set.nintervals > gpuds_probe_sizes(&cursor->ref)->small_intervals)
			total += sorted_bitmap(scan, cursor, tbm);
		if (!cursor->end && !cursor->set.sorted)
		{
			/* From the beginning, in order: what is in the bitmap already may stay. */
			gpuds_key_set_sort(&cursor->set);
			gpuds_cursor_from_place(cursor, true);
			total = 0;
		}
		if (!cursor->end)
			total += collected_bitmap(scan, cursor, tbm);
	} while (gpuds_cursor_next_batch(cursor));
	gpuds_cursor_check_snapshot(scan);
	return total;
}
