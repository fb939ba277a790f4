/*-------------------------------------------------------------------------
 *
 * fallback.c
 *	  Answers a scan from the journal alone: reads it, sorts, and keeps the
 *	  result for as long as the scan may ask again.
 *
 * The first time that a scan asks, one pass over the journal keeps the wanted
 * entries nearest to the scan's position (fallback_near.c), as many as fit in
 * work_mem: all of them mostly, and enough for a LIMIT.  If the scan goes on behind these, turns
 * around or goes back, the next pass sorts all that it wants (fallback_sort.c), in
 * either direction.  A scan that was started again and again (the inner side of a
 * nested loop) gets all entries of the index sorted, and no pass after that.
 * So a scan never takes more than a few passes.
 *
 * What is sorted stays right while the scan lives.  With an MVCC snapshot the
 * journal held all that the snapshot may see when it was read, at any time after
 * the snapshot was taken; for other snapshots nothing is kept over a rescan.
 * Positions are entries, not places: a scan may come here from a mirror.
 *
 * Memory is bounded by work_mem.  The result lies in memory or in a temporary file
 * (sorted.c).  Files belong to the resource owner of the scan's portal, everything
 * else to the context in which the scan was begun.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "mirror/fallback.h"

/* Passes after which the next one sorts all of the index, if that may be kept. */
#define PASSES_BEFORE_ALL 2

/* Which entries are at hand. */
typedef enum Extent
{
	EXTENT_NOTHING,
	EXTENT_NEAR, /* some of the scan's, ahead of where it left */
	EXTENT_SCAN, /* all of the scan's present intervals */
	EXTENT_ALL   /* all of the index */
} Extent;

struct GpudsFallback
{
	MemoryContext parent;
	MemoryContext context; /* of all that is at hand; NULL: not needed so far */
	Extent extent;
	GpudsSorted sorted;
	int64 place;    /* in sorted, where the scan left */
	bool forward;   /* direction of the last call */
	GpudsScan left; /* the scan as that call left it */
	bool near_end;  /* EXTENT_NEAR: nothing is behind these in that direction */
	int passes;     /* over the journal for this scan */
};

/*
 * Prepares for a scan, at next to no cost.  All memory comes from the current
 * memory context or children of it, files belong to the resource owner of the
 * call of gpuds_fallback_scan that makes them.
 */
GpudsFallback *
gpuds_fallback_begin(void)
{
	GpudsFallback *fallback = palloc0(sizeof(GpudsFallback));

	fallback->parent = CurrentMemoryContext;
	return fallback;
}

static void
drop_sorted(GpudsFallback *fallback)
{
	if (fallback->sorted.file)
		BufFileClose(fallback->sorted.file);
	memset(&fallback->sorted, 0, sizeof(GpudsSorted));
	fallback->extent = EXTENT_NOTHING;
	fallback->place = 0;
	if (fallback->context)
		MemoryContextReset(fallback->context);
}

/* The scan asks for other intervals from now on. */
void
gpuds_fallback_next_keys(GpudsFallback *fallback)
{
	if (fallback->extent == EXTENT_NEAR || fallback->extent == EXTENT_SCAN)
		drop_sorted(fallback);
}

/* The scan begins anew and has to see what is in the journal now. */
void
gpuds_fallback_reset(GpudsFallback *fallback)
{
	if (fallback->extent != EXTENT_NOTHING)
		drop_sorted(fallback);
	fallback->passes = 0;
}

/* Are all entries of the index at hand, whatever the scan asks for? */
bool
gpuds_fallback_has_all(const GpudsFallback *fallback)
{
	return fallback->extent == EXTENT_ALL;
}

/* Frees what the scan has taken. */
void
gpuds_fallback_end(GpudsFallback *fallback)
{
	drop_sorted(fallback);
	if (fallback->context)
		MemoryContextDelete(fallback->context);
	pfree(fallback);
}

/*
 * Giving entries that are at hand
 */

/* Where the scan goes on: the place of the next entry that it may want, or -1 or n. */
static int64
next_place(GpudsSorted *sorted, int64 near, const GpudsScan *scan, bool forward)
{
	GpudsInterval interval;

	if (scan->inside)
		return forward ? gpuds_sorted_find(sorted, near, &scan->at, true)
					   : gpuds_sorted_find(sorted, near, &scan->at, false) - 1;
	if (forward ? scan->next >= scan->n : scan->next <= 0)
		return forward ? sorted->n : -1;
	interval = entry_scan_interval(scan, forward ? scan->next : scan->next - 1);
	return forward ? gpuds_sorted_find(sorted, near, &interval.lo, false)
				   : gpuds_sorted_find(sorted, near, &interval.hi, true) - 1;
}

/* Number of the first interval that does not end before the entry, hint being likely. */
static int64
find_interval(const GpudsScan *scan, int64 hint, const GpudsEntry *entry)
{
	if (hint >= 0 && hint < scan->n)
	{
		GpudsInterval interval = entry_scan_interval(scan, hint);

		if (!entry_less(entry, &interval.lo) && !entry_less(&interval.hi, entry))
			return hint;
	}
	return entry_scan_find(scan, entry);
}

/*
 * Fetches the next entries of the scan from those at hand and moves the scan
 * behind them.
 */
static int64
take_entries(GpudsFallback *fallback, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap)
{
	GpudsSorted *sorted = &fallback->sorted;
	int64 place = next_place(sorted, Min(fallback->place, sorted->n), scan, forward);
	int64 current = -1; /* interval that was looked at last */
	int64 last = 0;     /* interval of the last entry taken */
	int64 n = 0;
	GpudsInterval interval = { { 0 } };

	while (n < cap && place >= 0 && place < sorted->n)
	{
		const GpudsEntry *entry = gpuds_sorted_entry(sorted, place);

		if (current < 0 || entry_less(entry, &interval.lo) || entry_less(&interval.hi, entry))
		{
			int64 found = find_interval(scan, current < 0 ? -1 : current + (forward ? 1 : -1), entry);
			bool within = found < scan->n;

			CHECK_FOR_INTERRUPTS();
			if (within)
			{
				interval = entry_scan_interval(scan, found);
				within = !entry_less(entry, &interval.lo);
			}
			if (!within)
			{
				/* on to where the next interval begins */
				if (!forward)
					found--;
				if (found < 0 || found >= scan->n)
				{
					place = forward ? sorted->n : -1;
					break;
				}
				interval = entry_scan_interval(scan, found);
				place = forward ? gpuds_sorted_find(sorted, place, &interval.lo, false)
								: gpuds_sorted_find(sorted, place, &interval.hi, true) - 1;
				current = found;
				continue;
			}
			current = found;
		}
		out[n++] = *entry;
		last = current;
		place += forward ? 1 : -1;
	}
	if (n > 0)
	{
		scan->inside = true;
		scan->at = out[n - 1];
		scan->next = last + (forward ? 0 : 1);
	}
	fallback->place = Max(place, 0);
	fallback->forward = forward;
	fallback->left = *scan;
	return n;
}

/*
 * Having them at hand
 */

static void
sort_all(GpudsFallback *fallback, const GpudsMirrorSource *source, const GpudsScan *only)
{
	do
		drop_sorted(fallback);
	while (!gpuds_fallback_sort(source, only, &fallback->sorted));
	fallback->extent = only ? EXTENT_SCAN : EXTENT_ALL;
	fallback->passes++;
}

/*
 * Fetches what comes next in the scan, as far as it fits.  All that the scan wants
 * is at hand then if it came fresh and nothing was cut.
 */
static void
sort_near(GpudsFallback *fallback, const GpudsMirrorSource *source, const GpudsScan *scan, bool forward)
{
	bool fresh = !scan->inside && scan->next == (forward ? 0 : scan->n);
	bool all;

	drop_sorted(fallback);
	all = gpuds_fallback_near(source, scan, forward, &fallback->sorted);
	fallback->forward = forward;
	fallback->left = *scan;
	fallback->place = forward ? 0 : fallback->sorted.n;
	fallback->extent = fresh && all ? EXTENT_SCAN : EXTENT_NEAR;
	fallback->near_end = all;
	fallback->passes++;
}

/* Is the scan where the last call for it left it? */
static bool
is_where_left(const GpudsFallback *fallback, const GpudsScan *scan, bool forward)
{
	const GpudsScan *left = &fallback->left;

	return forward == fallback->forward && scan->next == left->next && scan->inside == left->inside &&
		   (!scan->inside || entry_equal(&scan->at, &left->at));
}

/*
 * Fetches the next entries of a scan into out[cap] and moves the scan behind
 * them, as gpuds_device_scan does; fewer than cap do not mean the end.  *end:
 * there are no more.  The index must be the same in every call.
 *
 * Interruptible; raises what reading the journal and temporary files do.  Holds no lock or pin between calls.
 */
int64
gpuds_fallback_scan(GpudsFallback *fallback, const GpudsMirrorSource *source, GpudsScan *scan, bool forward,
					GpudsEntry *out, int64 cap, bool *end)
{
	MemoryContext old;
	int64 n = 0;

	if (fallback->context == NULL)
		fallback->context = AllocSetContextCreate(fallback->parent, "gpuds journal scan",
												  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(fallback->context);
	if (fallback->extent == EXTENT_NOTHING)
	{
		if (fallback->passes < PASSES_BEFORE_ALL)
			sort_near(fallback, source, scan, forward);
		else
			sort_all(fallback, source, NULL);
	}
	if (fallback->extent == EXTENT_NEAR && is_where_left(fallback, scan, forward))
		n = take_entries(fallback, scan, forward, out, cap);
	if (fallback->extent == EXTENT_NEAR && n == 0 &&
		!(fallback->near_end && is_where_left(fallback, scan, forward)))
		sort_all(fallback, source, fallback->passes < PASSES_BEFORE_ALL ? scan : NULL);
	if (fallback->extent > EXTENT_NEAR)
		n = take_entries(fallback, scan, forward, out, cap);
	*end = n < cap && (fallback->extent > EXTENT_NEAR || fallback->near_end);
	MemoryContextSwitchTo(old);
	return n;
}
