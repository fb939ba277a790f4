/*-------------------------------------------------------------------------
 *
 * tids.c
 *	  The TIDs of a scan in pieces: ascending and all different (fetch.h).
 *
 * A piece has about as many TIDs as work_mem holds twice, once to sort from and once to sort into.
 * Usually it is all of them.  In a parallel plan it has more (shared_tids.c).
 *
 * A device that sorts gives TIDs; any other gives entries in the order of keys, and so does each if there is
 * a filter.  Behind the first chunk, a device that aggregates gives those only that pass.  An entry may be
 * found twice in two cases:
 *
 *	  - Points that are left as they came (key/key.h) may be there twice.  So if all that they lead to does
 *		not fit into the first piece, the points are put in order, which leaves one of each, and the scan
 *		begins again.
 *	  - What the memtable said first, the device may have by now.  So what the memtable said is kept for the
 *		rest of a batch of intervals, and left out of all that comes later.
 *
 * Neither is needed beyond a batch of intervals: batches are disjoint (F2).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "key/set.h"
#include "reader/cursor.h"
#include "reader/fetch.h"
#include "reader/reader.h"

/* TIDs of a piece, however little work_mem there is. */
#define LEAST_PIECE_TIDS 4096

/* TIDs that there is room for at first. */
#define FIRST_TIDS_CAPACITY 1024

/* TIDs that a device is asked for at a time, at most. */
#define MOST_TIDS (1024 * 1024)

/* Entries that the filter is run for at a time. */
#define FILTER_ENTRIES 1024

/* For a scan to come; arrays are the current memory context's. */
void
gpuds_tids_init(GpudsTidList *list)
{
	memset(list, 0, sizeof(GpudsTidList));
	list->context = CurrentMemoryContext;
}

static void
forget_delta(GpudsTidList *list)
{
	if (list->delta)
		pfree(list->delta);
	list->delta = NULL;
	list->ndelta = 0;
	list->turn = -1;
}

/* How many TIDs a piece may have. */
int64
gpuds_tids_most(void)
{
	return (int64) work_mem * 1024 / (int64) (2 * sizeof(uint64));
}

/*
 * Begins with a scan whose keys have been set, from its first interval on: the scan passes its
 * barrier.  Its snapshot must be an MVCC snapshot.  most: TIDs of a piece, about.  filter: what entries must
 * pass, without side values; NULL: nothing.  It and the layout must live until the last piece.
 */
void
gpuds_tids_begin(GpudsTidList *list, IndexScanDesc scan, int64 most, GpudsRowFilter *filter,
				 const GpudsKeyLayout *layout)
{
	forget_delta(list);
	list->scan = scan;
	list->n = 0;
	list->most = Max(most, LEAST_PIECE_TIDS);
	list->filter = filter;
	list->layout = layout;
	gpuds_scan_begin_tids(scan, list->most);
	/* A device that sorts gives TIDs without their entries. */
	list->sorts = filter == NULL;
	list->tests = false;
	if (filter && !gpuds_scan_in_order(scan))
		gpuds_scan_put_in_order(scan);
}

/* Room for n more TIDs. */
static uint64 *
ensure_capacity(GpudsTidList *list, int64 n)
{
	if (list->n + n > list->size)
	{
		list->size = Max(list->n + n, Max(2 * list->size, FIRST_TIDS_CAPACITY));
		if (list->tids)
			list->tids = repalloc_huge(list->tids, list->size * sizeof(uint64));
		else
			list->tids = MemoryContextAllocHuge(list->context, list->size * sizeof(uint64));
	}
	return list->tids + list->n;
}

/* Has the memtable said that a TID is of the batch of intervals at hand?  Then it has been given. */
static bool
is_delta(const GpudsTidList *list, uint64 tid)
{
	int64 lo = 0;
	int64 hi = list->ndelta;

	while (lo < hi)
	{
		int64 middle = lo + (hi - lo) / 2;

		if (list->delta[middle] < tid)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < list->ndelta && list->delta[lo] == tid;
}

/* Adds n TIDs that have been put behind the others, without those that have been given. */
static void
add(GpudsTidList *list, int64 n)
{
	uint64 *tids = list->tids + list->n;
	int64 kept = 0;

	if (list->ndelta == 0 || list->turn != gpuds_scan_turn(list->scan))
		kept = n;
	else
	{
		for (int64 i = 0; i < n; i++)
		{
			if (!is_delta(list, tids[i]))
				tids[kept++] = tids[i];
		}
	}
	list->n += kept;
}

/* Copies the TIDs of those of n entries that pass the filter; returns how many. */
static int64
copy_passing(const GpudsTidList *list, const GpudsEntry *entries, int64 n, uint64 *to)
{
	bool passes[FILTER_ENTRIES];
	int64 kept = 0;

	for (int64 first = 0; first < n; first += FILTER_ENTRIES)
	{
		const int64 some = Min(n - first, FILTER_ENTRIES);

		gpuds_row_filter_run(list->filter, list->layout, entries + first, NULL, some, passes);
		for (int64 i = 0; i < some; i++)
		{
			to[kept] = entries[first + i].t & ENTRY_TID_MASK;
			kept += passes[i];
		}
	}
	return kept;
}

/* Adds the TIDs of those of n entries that pass the filter. */
static void
add_passing(GpudsTidList *list, const GpudsEntry *entries, int64 n)
{
	const int64 kept = copy_passing(list, entries, n, ensure_capacity(list, n));

	list->filtered += n - kept;
	add(list, kept);
}

/* Adds a chunk of entries. */
static void
add_entries(GpudsTidList *list)
{
	GpudsScanBatch batch;
	uint64 *to;

	gpuds_scan_next_batch(list->scan, Max(list->most - list->n, 1), &batch);
	if (list->filter)
	{
		list->tests |= batch.n > 0;
		add_passing(list, batch.entries, batch.n);
		return;
	}
	to = ensure_capacity(list, batch.n);
	for (int64 i = 0; i < batch.n; i++)
		to[i] = batch.entries[i].t & ENTRY_TID_MASK;
	add(list, batch.n);
}

/*
 * Adds those of all that is left of the intervals at hand of which a device says that they pass the filter:
 * they come back from a count of rows that are nowhere known to be seen.  What the memtable has added to them
 * has yet to pass.  False: it cannot say it.
 */
static bool
add_filtered(GpudsTidList *list)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds filter spec",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GpudsCountGroups groups = { .spec = gpuds_row_filter_spec(list->filter) };
	GpudsCountSpec spec = { .partial = true, .groups = &groups };
	GpudsCounted counted = { 0 };
	bool done;

	MemoryContextSwitchTo(old);
	done = groups.spec != NULL && gpuds_scan_count_rest(list->scan, &spec, &counted);
	if (done)
	{
		Assert(counted.counted == 0);
		gpuds_scan_skip_to(list->scan, &counted.rest, counted.filtered + counted.n);
		list->filtered += counted.filtered;
		add_passing(list, counted.entries, counted.n);
	}
	gpuds_probe_free_counted(&counted);
	MemoryContextDelete(context);
	return done;
}

/* Adds what the memtable says of the batch of intervals at hand; false: only entries are to be had. */
static bool
add_delta(GpudsTidList *list)
{
	MemoryContext old = MemoryContextSwitchTo(list->context);
	bool had;

	forget_delta(list);
	had = gpuds_scan_delta_tids(list->scan, &list->delta, &list->ndelta);
	MemoryContextSwitchTo(old);
	if (!had)
	{
		forget_delta(list);
		return false;
	}
	list->ndelta = gpuds_sort_unique_words(list->delta, list->ndelta);
	if (list->ndelta > 0)
		memcpy(ensure_capacity(list, list->ndelta), list->delta, list->ndelta * sizeof(uint64));
	list->n += list->ndelta;
	list->turn = gpuds_scan_turn(list->scan);
	return true;
}

/* Adds TIDs that the device has sorted, *cap at most; false: it does not, or does not any more. */
static bool
add_sorted(GpudsTidList *list, int64 *cap)
{
	int64 n;
	int64 capacity;

	if (list->turn != gpuds_scan_turn(list->scan) && !add_delta(list))
		return false;
	capacity = Min(*cap, Max(list->most - list->n, 1));
	n = gpuds_scan_next_tids(list->scan, ensure_capacity(list, capacity), capacity);
	if (n < 0)
		return false;
	add(list, n);
	if (n == *cap)
		*cap = Min(*cap * GPUDS_TIDS_GROWTH, MOST_TIDS);
	return true;
}

/* Fills the piece. */
static void
collect(GpudsTidList *list)
{
	/* A little more than there are keys, so that the end is seen to be one. */
	int64 cap = Min(Max(GPUDS_FIRST_TIDS, gpuds_scan_intervals(list->scan) + 1), MOST_TIDS);

	while (list->n < list->most && gpuds_scan_has_more(list->scan))
	{
		CHECK_FOR_INTERRUPTS();
		if (list->sorts && gpuds_scan_gives_tids(list->scan))
			list->sorts = add_sorted(list, &cap);
		else if (list->tests && gpuds_scan_aggregates(list->scan))
			list->tests = add_filtered(list);
		else if (gpuds_scan_in_order(list->scan))
			add_entries(list);
		else
			break;
	}
}

/* Gets the next piece; false: there are no more TIDs. */
bool
gpuds_tids_next(GpudsTidList *list)
{
	list->n = list->filtered = 0;
	collect(list);
	if (!gpuds_scan_in_order(list->scan) && gpuds_scan_has_more(list->scan))
	{
		forget_delta(list);
		list->n = 0;
		gpuds_scan_put_in_order(list->scan);
		collect(list);
	}
	list->n = gpuds_sort_unique_words(list->tids, list->n);
	return list->n > 0;
}

/* Gives the memory of pieces back. */
void
gpuds_tids_end(GpudsTidList *list)
{
	forget_delta(list);
	if (list->tids)
		pfree(list->tids);
	list->tids = NULL;
	list->n = list->size = 0;
}
