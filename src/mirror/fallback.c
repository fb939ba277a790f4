/*-------------------------------------------------------------------------
 *
 * fallback.c
 *	  Answers a scan from the journal alone: sorts the entries that it wants, and keeps the result for as
 *	  long as the scan may ask again.
 *
 * The first time that a scan asks, one pass over the journal sorts all that is in its intervals
 * (journal/journal_sort.h).  If it asks again for other keys (the inner side of a nested loop, or many keys
 * in batches), the second pass sorts all entries of the index, and there is no other after that.
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

#include "journal/journal_sort.h"
#include "mirror/mirror.h"
#include "mirror/sorted.h"

/* A sort takes at least this much memory, whatever work_mem says. */
#define LEAST_MEMORY_BYTES (512 * 1024)

/* Intervals that are remembered, at most, to see whether a rescan has the same. */
#define MOST_KEPT_INTERVALS 1024

/* Which entries are at hand. */
typedef enum Extent
{
	EXTENT_NOTHING,
	EXTENT_KEYS, /* those in the intervals of keys */
	EXTENT_ALL   /* all of the index */
} Extent;

struct GpudsFallback
{
	MemoryContext parent;
	MemoryContext context; /* of all that is at hand; NULL: not needed so far */
	Extent extent;
	GpudsScan keys;    /* the intervals of EXTENT_KEYS; n is -1 if they are too many to be remembered */
	bool keys_changed; /* perhaps, since they were sorted */
	bool repeated;     /* a pass was made for this scan */
	GpudsSorted sorted;
	int64 place; /* in sorted, where the scan left */
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

/* The scan may ask for other intervals from now on. */
void
gpuds_fallback_next_keys(GpudsFallback *fallback)
{
	fallback->keys_changed = true;
}

/* The scan begins anew and has to see what is in the journal now. */
void
gpuds_fallback_reset(GpudsFallback *fallback)
{
	if (fallback->extent != EXTENT_NOTHING)
		drop_sorted(fallback);
	fallback->repeated = false;
}

/* Are entries at hand that an earlier pass has read? */
bool
gpuds_fallback_has_some(const GpudsFallback *fallback)
{
	return fallback->extent != EXTENT_NOTHING;
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
	return n;
}

/*
 * Having them at hand
 */

/* Intervals that a scan spells out (GpudsScan.points). */
static int64
spelled_out(const GpudsScan *scan)
{
	return scan->points ? 1 : scan->n;
}

/* Notes the intervals that are being sorted, if they are not too many. */
static void
remember_keys(GpudsFallback *fallback, const GpudsScan *scan)
{
	const Size intervals = spelled_out(scan) * sizeof(GpudsInterval);
	const Size points = scan->n * sizeof(uint64);

	memset(&fallback->keys, 0, sizeof(GpudsScan));
	fallback->keys.n = scan->n <= MOST_KEPT_INTERVALS ? scan->n : -1;
	if (fallback->keys.n <= 0)
		return;
	fallback->keys.intervals = memcpy(palloc(intervals), scan->intervals, intervals);
	if (scan->points)
		fallback->keys.points = memcpy(palloc(points), scan->points, points);
}

/* Has a scan the intervals that were remembered? */
static bool
has_same_keys(const GpudsFallback *fallback, const GpudsScan *scan)
{
	const GpudsScan *keys = &fallback->keys;

	if (keys->n != scan->n || (keys->points == NULL) != (scan->points == NULL))
		return false;
	if (keys->n == 0)
		return true;
	if (memcmp(keys->intervals, scan->intervals, spelled_out(scan) * sizeof(GpudsInterval)) != 0)
		return false;
	return scan->points == NULL || memcmp(keys->points, scan->points, scan->n * sizeof(uint64)) == 0;
}

/*
 * Sorts the entries in the scan's intervals (NULL: all) in one pass over the journal.  Half of the memory is
 * for the sort and half for the result.  False: a compaction was in the way.
 */
static bool
sort_once(GpudsSorted *sorted, const GpudsMirrorSource *source, const GpudsScan *only)
{
	const Size memory = Max((Size) work_mem * 1024, LEAST_MEMORY_BYTES) / 2;
	const GpudsJournalSelect select = { .only = only };
	GpudsJournalSort *sort = gpuds_journal_sort_begin(source->index, memory, &select);
	GpudsEntry *block = palloc(GPUDS_SORTED_BLOCK * sizeof(GpudsEntry));
	bool fresh = gpuds_journal_sort_stripes(sort, NULL);
	int64 n;

	sorted->nwords = source->layout->nwords;
	gpuds_injection_point("journal-scan-stripes");
	while (fresh && (n = gpuds_journal_sort_next(sort, block, GPUDS_SORTED_BLOCK)) != 0)
	{
		fresh = n > 0;
		if (fresh)
			gpuds_sorted_add(sorted, block, n, memory);
	}
	gpuds_journal_sort_end(sort);
	pfree(block);
	return fresh;
}

/* Makes what the scan wants available: its keys' entries the first time, all entries if it asks again. */
static void
sort_for(GpudsFallback *fallback, const GpudsMirrorSource *source, const GpudsScan *scan)
{
	const GpudsScan *only = fallback->repeated ? NULL : scan;

	do
		drop_sorted(fallback);
	while (!sort_once(&fallback->sorted, source, only));
	if (only)
		remember_keys(fallback, only);
	fallback->extent = only ? EXTENT_KEYS : EXTENT_ALL;
	fallback->repeated = true;
}

/*
 * Fetches the next entries of a scan into out[cap] and moves the scan behind
 * them, as gpuds_device_scan does; fewer than cap do not mean the end.  *end:
 * there are no more.  The index must be the same in every call, and the intervals as long as
 * gpuds_fallback_next_keys is not called.
 *
 * Interruptible; raises what reading the journal and temporary files do.  Holds no lock or pin between calls.
 */
int64
gpuds_fallback_scan(GpudsFallback *fallback, const GpudsMirrorSource *source, GpudsScan *scan, bool forward,
					GpudsEntry *out, int64 cap, bool *end)
{
	MemoryContext old;
	int64 n;

	if (fallback->context == NULL)
		fallback->context = AllocSetContextCreate(fallback->parent, "gpuds journal scan",
												  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(fallback->context);
	if (fallback->extent == EXTENT_NOTHING ||
		(fallback->extent == EXTENT_KEYS && fallback->keys_changed && !has_same_keys(fallback, scan)))
		sort_for(fallback, source, scan);
	fallback->keys_changed = false;
	n = take_entries(fallback, scan, forward, out, cap);
	*end = n < cap;
	MemoryContextSwitchTo(old);
	return n;
}
