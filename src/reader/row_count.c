/*-------------------------------------------------------------------------
 *
 * row_count.c
 *	  How many rows a scan's snapshot sees, counted in batches.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"

#include "reader/reader.h"
#include "reader/row_count.h"
#include "reader/visible.h"

/* Attempts at a count on a device while other sessions change rows of all-visible pages. */
#define DEVICE_ATTEMPTS 3

/*
 * Heap pages whose part of the visibility map takes about as long to copy, and to look at once more, as
 * fetching an entry does: 16 bytes.  An estimate: the map of 1 GB of heap is 32 kB, and an entry takes
 * 11 ns.
 */
#define PAGES_OF_ENTRY 64

/* How many times as many keys as there were may still be asked about for a look at all pages to be made. */
#define KEYS_AHEAD 16

/* Makes room for a batch, of which none may be visible to all. */
static void
ensure_capacity(GpudsRowCount *count, int64 n)
{
	if (count->n + n > count->size)
	{
		count->size = Max(count->n + n, Min(2 * count->size, GPUDS_PIECE_ENTRIES));
		count->entries = count->entries ? repalloc(count->entries, count->size * sizeof(GpudsEntry))
										: palloc(count->size * sizeof(GpudsEntry));
	}
	if (n > count->batch_size)
	{
		if (count->to_all)
			pfree(count->to_all);
		count->batch_size = n;
		count->to_all = palloc(n * sizeof(bool));
	}
}

/*
 * Before the barrier of a scan whose keys have been set.  The scan's snapshot must be an MVCC snapshot.
 */
void
gpuds_row_count_begin(GpudsRowCount *count, IndexScanDesc scan)
{
	Assert(IsMVCCSnapshot(scan->xs_snapshot));
	gpuds_visible_begin(&count->visible, scan);
	gpuds_visible_lock(&count->visible);
	gpuds_visible_before_barrier(&count->visible);
	gpuds_visible_begin_piece(&count->visible);
	count->entries = NULL;
	count->to_all = NULL;
	count->n = count->size = count->batch_size = 0;
}

/* How many rows of a batch are seen for sure; the others are put on the piece's list. */
int64
gpuds_row_count_batch(GpudsRowCount *count, const GpudsScanBatch *batch)
{
	GpudsVisible *visible = &count->visible;
	GpudsEntry *others;
	int64 nothers = 0;

	ensure_capacity(count, batch->n);
	others = count->entries + count->n;
	gpuds_visible_add_to_piece(visible, batch);
	gpuds_visible_mark(visible, batch, count->to_all);
	for (int64 i = 0; i < batch->n; i++)
	{
		if (!count->to_all[i])
			others[nothers++] = batch->entries[i];
	}
	count->n += nothers;
	gpuds_scan_note_matches(visible->scan, batch->n, batch->n - nothers);
	return batch->n - nothers;
}

/* Looks up the piece's list, of which it returns how many are seen, and begins another piece. */
int64
gpuds_row_count_in_heap(GpudsRowCount *count)
{
	GpudsVisible *visible = &count->visible;
	int64 seen = 0;

	for (int64 i = 0; i < count->n; i++)
		gpuds_visible_order(visible, count->entries[i].t & ENTRY_TID_MASK, i);
	gpuds_visible_sort_order(visible);
	for (int64 i = 0; i < count->n; i++)
		seen += gpuds_visible_sees(visible, i, &count->entries[gpuds_visible_at(visible, i)]);
	gpuds_visible_end_piece(visible);
	gpuds_visible_begin_piece(visible);
	count->n = 0;
	return seen;
}

/* Frees what *count has, and returns how many rows were looked up in the heap. */
int64
gpuds_row_count_end(GpudsRowCount *count)
{
	const int64 fetches = count->visible.fetches;

	gpuds_scan_counters(count->visible.scan)->fetches += fetches;
	gpuds_visible_end(&count->visible);
	if (count->entries)
		pfree(count->entries);
	if (count->to_all)
		pfree(count->to_all);
	return fetches;
}

/*
 * Has the mirror's device count n intervals, or what is left of those at hand if there are none, by a copy of
 * the visibility map (I2) and what is known of other pages, which are set in *spec meanwhile.  False: the
 * device cannot, or the map changed in every attempt; *counted has no arrays then.
 */
static bool
ask(IndexScanDesc scan, GpudsVisible *visible, double expected, const GpudsInterval *intervals, int64 n,
	GpudsCountSpec *spec, GpudsCounted *counted)
{
	/* Where nobody counts bulk deletes, no map is trusted, and each piece of entries is looked up. */
	bool counts = visible->counts;

	for (int i = 0; i < DEVICE_ATTEMPTS && counts; i++)
	{
		bool holds;

		gpuds_visible_tell_device(visible, expected, spec);
		spec->unsorted = !intervals && !counted->hits && !gpuds_scan_in_order(scan);
		counts = intervals ? gpuds_scan_count_intervals(scan, intervals, n, spec, counted)
						   : gpuds_scan_count_rest(scan, spec, counted);
		gpuds_injection_point("scan-probed");
		holds = counts && gpuds_visible_map_holds(visible, spec->map, spec->map_bytes, spec->full);
		pfree((void *) spec->map);
		if (holds)
			return true;
		gpuds_probe_free_counted(counted);
	}
	return false;
}

/*
 * Counts what is left of the intervals at hand on the mirror's device, about so many rows.  On success the
 * caller frees *counted's arrays.  The caller sets sums or hits beforehand, or zeroes *counted
 * (gpuds_probe_count).  False: it does not (ask).  The scan does not move.
 */
bool
gpuds_scan_ask_device(IndexScanDesc scan, GpudsVisible *visible, double expected, GpudsCountSpec *spec,
					  GpudsCounted *counted)
{
	return gpuds_scan_counts(scan) && ask(scan, visible, expected, NULL, 0, spec, counted);
}

/* The same for n intervals, ascending and disjoint, which together are those of the scan. */
bool
gpuds_scan_ask_intervals(IndexScanDesc scan, GpudsVisible *visible, double expected,
						 const GpudsInterval *intervals, int64 n, GpudsCountSpec *spec, GpudsCounted *counted)
{
	return ask(scan, visible, expected, intervals, n, spec, counted);
}

/*
 * Moves a scan behind what gpuds_scan_ask_device has counted.  Matches are noted, except for
 * hits, of which the device has counted entries that nobody wants.
 */
void
gpuds_scan_take_count(IndexScanDesc scan, const GpudsCounted *counted)
{
	/* For hits, what the device is not sure of is searched for. */
	gpuds_scan_skip_to(scan, &counted->rest,
					   counted->counted + counted->filtered + counted->left_out +
						   (counted->hits ? 0 : counted->n));
	if (counted->hits == NULL)
		gpuds_scan_note_matches(scan, counted->counted + counted->n, counted->counted);
}

/*
 * Both; false as gpuds_scan_ask_device.  Keys that are in no order (gpuds_scan_begin_sums) are put in order
 * if the device cannot, and it is asked once more.
 */
bool
gpuds_scan_count_on_device(IndexScanDesc scan, GpudsVisible *visible, double expected, GpudsCountSpec *spec,
						   GpudsCounted *counted)
{
	bool done = gpuds_scan_ask_device(scan, visible, expected, spec, counted);

	if (!done && !gpuds_scan_in_order(scan))
	{
		gpuds_scan_put_in_order(scan);
		done = gpuds_scan_ask_device(scan, visible, expected, spec, counted);
	}
	if (done)
		gpuds_scan_take_count(scan, counted);
	return done;
}

/*
 * Has the device say which of n intervals of a scan that gpuds_scan_begin_membership has begun have entries.
 * The caller frees hits->others.  False: as gpuds_scan_ask_device.
 *
 * Batch by batch, the device is asked about more keys.  When all that are expected are worth a look at all
 * pages, that is made: later batches find what it has learnt.  But a caller may want no more than its first
 * batches, so not many more keys are expected than there were.
 */
bool
gpuds_scan_test_membership(IndexScanDesc scan, GpudsVisible *visible, int64 n, GpudsMembership *hits)
{
	GpudsCountSpec spec = { .partial = true, .each = true, .bits = true };
	GpudsCounted counted = { .hits = hits->hits };
	double asked;

	visible->asked += n;
	asked = (double) visible->asked;
	if (!gpuds_scan_ask_device(scan, visible, Max(asked, Min(visible->keys, asked * KEYS_AHEAD)), &spec,
							   &counted))
		return false;
	gpuds_scan_take_count(scan, &counted);
	hits->others = counted.entries;
	hits->nothers = counted.n;
	hits->ndelta = counted.ndelta;
	return true;
}

/* Looks up what a device has called the others, in pieces: some of them, and some are put on the list. */
int64
gpuds_row_count_others(GpudsRowCount *count, const GpudsCounted *counted)
{
	GpudsScanBatch batch = { .kill_mark = gpuds_scan_kill_mark(count->visible.scan) };
	int64 seen = 0;

	for (int64 i = 0; i < counted->n; i += batch.n)
	{
		batch.n = Min(counted->n - i, gpuds_row_count_room(count));
		ensure_capacity(count, batch.n);
		memcpy(count->entries + count->n, counted->entries + i, batch.n * sizeof(GpudsEntry));
		count->n += batch.n;
		gpuds_visible_add_to_piece(&count->visible, &batch);
		if (gpuds_row_count_is_half_full(count))
			seen += gpuds_row_count_in_heap(count);
	}
	return seen;
}

/* Is it worth a copy of the visibility map to count the entries that are expected? */
bool
gpuds_scan_is_worth_a_map(IndexScanDesc scan, double expected)
{
	return expected * PAGES_OF_ENTRY >= RelationGetNumberOfBlocks(scan->heapRelation);
}

/*
 * Counts what is left of the intervals at hand by the device, and what it is not sure of in the heap.
 * A device hands back entries, so that dead ones can be killed.  From one that is not near, TIDs come sooner:
 * they do where the states of pages save visits to dead rows.
 */
static bool
count_on_device(IndexScanDesc scan, GpudsRowCount *count, double expected, int64 *seen)
{
	GpudsVisible *visible = &count->visible;
	GpudsCountedSum sum;
	GpudsCounted counted = { .sums = &sum };
	const bool near = !gpuds_scan_aggregates(scan);
	GpudsCountSpec spec = { .partial = near || !visible->known.usable };

	if (near && !gpuds_scan_is_worth_a_map(scan, expected))
		return false;
	if (!gpuds_scan_count_on_device(scan, visible, expected, &spec, &counted))
		return false;
	*seen += counted.counted;
	if (spec.partial)
		*seen += gpuds_row_count_others(count, &counted);
	else
		*seen += gpuds_visible_count_in_heap(visible, counted.tids, counted.n);
	gpuds_probe_free_counted(&counted);
	return true;
}

/*
 * Counts the rows of a scan whose keys have been set, from its beginning.  The scan's snapshot must be
 * an MVCC snapshot.  expected: the result, about.  *fetches: rows that were looked up in the heap.
 */
int64
gpuds_scan_count(IndexScanDesc scan, double expected, int64 *fetches)
{
	GpudsRowCount count;
	bool device_counts = true;
	int64 seen = 0;

	gpuds_row_count_begin(&count, scan);
	expected = gpuds_scan_begin_sums(scan, expected);
	while (gpuds_scan_has_more(scan))
	{
		GpudsScanBatch batch;

		if (device_counts && gpuds_scan_counts(scan))
		{
			device_counts = count_on_device(scan, &count, expected, &seen);
			continue;
		}
		gpuds_scan_next_batch(scan, gpuds_row_count_room(&count), &batch);
		seen += gpuds_row_count_batch(&count, &batch);
		if (gpuds_row_count_is_half_full(&count))
			seen += gpuds_row_count_in_heap(&count);
	}
	seen += gpuds_row_count_in_heap(&count);
	*fetches = gpuds_row_count_end(&count);
	return seen;
}
