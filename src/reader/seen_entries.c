/*-------------------------------------------------------------------------
 *
 * seen_entries.c
 *	  The entries of a scan whose rows its snapshot sees, a piece at a time, with side values.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "storage/predicate.h"

#include "reader/seen_entries.h"

/* Entries of a first piece, and how many times as many the next has, up to GPUDS_PIECE_ENTRIES. */
#define FIRST_PIECE 1024
#define PIECE_GROWTH 8

/*
 * For a scan with an MVCC snapshot, whose keys or probes are set before each gpuds_seen_start.  side: values
 * of side columns are wanted.  Memory is the current context's.
 *
 * Rows that are not looked up have no predicate locks of their own, so for SERIALIZABLE the whole
 * table is locked, as the whole index is.
 */
void
gpuds_seen_begin(GpudsSeenEntries *seen, IndexScanDesc scan, const GpudsKeyLayout *layout, bool side)
{
	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	PredicateLockRelation(scan->heapRelation, scan->xs_snapshot);
	seen->scan = scan;
	gpuds_visible_begin(&seen->visible, scan);
	gpuds_side_reader_begin(&seen->reader, &seen->visible, layout);
	seen->side_bytes = side ? layout->side_bytes : 0;
	seen->context = CurrentMemoryContext;
	seen->entries = NULL;
	seen->seen = NULL;
	seen->side = NULL;
	seen->n = seen->size = 0;
	seen->full = true;
}

/* Passes the scan's barrier.  weight: of how many keys the scan is worth the work. */
void
gpuds_seen_start(GpudsSeenEntries *seen, int64 weight)
{
	gpuds_visible_before_barrier(&seen->visible);
	gpuds_scan_begin_batches(seen->scan, weight);
}

static void
free_arrays(GpudsSeenEntries *seen)
{
	if (seen->size == 0)
		return;
	pfree(seen->entries);
	pfree(seen->seen);
	if (seen->side)
		pfree(seen->side);
}

/* Makes room for a piece that is larger than the one before, whose entries nobody wants any more. */
static void
grow(GpudsSeenEntries *seen)
{
	const int64 size = Min(Max(FIRST_PIECE, seen->size * PIECE_GROWTH), GPUDS_PIECE_ENTRIES);

	if (!seen->full || size == seen->size)
		return;
	free_arrays(seen);
	seen->entries = MemoryContextAlloc(seen->context, size * sizeof(GpudsEntry));
	seen->seen = MemoryContextAlloc(seen->context, size * sizeof(bool));
	if (seen->side_bytes > 0)
		seen->side = MemoryContextAlloc(seen->context, size * seen->side_bytes);
	seen->size = size;
}

/* Fetches entries until the piece is full, or at least half full, or the scan has no more. */
static void
fetch_piece(GpudsSeenEntries *seen)
{
	seen->n = 0;
	gpuds_visible_begin_piece(&seen->visible);
	while (seen->n <= seen->size / 2 && gpuds_scan_has_more(seen->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(seen->scan, seen->size - seen->n, &batch);
		memcpy(seen->entries + seen->n, batch.entries, batch.n * sizeof(GpudsEntry));
		gpuds_visible_add_to_piece(&seen->visible, &batch);
		gpuds_visible_mark(&seen->visible, &batch, seen->seen + seen->n);
		seen->n += batch.n;
	}
	seen->full = seen->n > seen->size / 2;
}

/* Looks up the rows that the visibility map is not enough for, in the order of the heap. */
static void
look_up(GpudsSeenEntries *seen)
{
	GpudsVisible *visible = &seen->visible;

	for (int64 i = 0; i < seen->n; i++)
	{
		if (!seen->seen[i])
			gpuds_visible_order(visible, seen->entries[i].t & ENTRY_TID_MASK, i);
	}
	gpuds_scan_note_matches(seen->scan, seen->n, seen->n - visible->norder);
	gpuds_visible_sort_order(visible);
	for (int64 place = 0; place < visible->norder; place++)
	{
		const int64 i = gpuds_visible_at(visible, place);

		seen->seen[i] = gpuds_visible_sees(visible, place, &seen->entries[i]);
	}
	gpuds_visible_end_piece(visible);
}

/* Leaves in the piece the entries whose rows are seen. */
static void
keep_seen(GpudsSeenEntries *seen)
{
	int64 kept = 0;

	for (int64 i = 0; i < seen->n; i++)
	{
		seen->entries[kept] = seen->entries[i];
		kept += seen->seen[i];
	}
	seen->n = kept;
}

/* Goes on to the next piece that has entries; false: there is none. */
bool
gpuds_seen_next(GpudsSeenEntries *seen)
{
	do
	{
		if (!gpuds_scan_has_more(seen->scan))
			return false;
		grow(seen);
		fetch_piece(seen);
		look_up(seen);
		keep_seen(seen);
	} while (seen->n == 0);
	if (seen->side)
		gpuds_side_reader_piece(&seen->reader, seen->entries, seen->n, seen->side);
	return true;
}

/* Frees what *seen has, pins included, but not the scan. */
void
gpuds_seen_end(GpudsSeenEntries *seen)
{
	gpuds_scan_counters(seen->scan)->fetches += seen->visible.fetches;
	gpuds_visible_end(&seen->visible);
	free_arrays(seen);
}
