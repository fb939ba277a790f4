/*-------------------------------------------------------------------------
 *
 * device_join.c
 *	  Has a device join the entries of two scans, and count the rows of the result.
 *
 * The device goes through the entries of one scan, and probes the structure of the other's index for their
 * keys.  For each side it has a copy of the visibility map, and what is known of single rows, and I2 and I3
 * (visible.h) must hold for both afterwards.  What it is not sure of it hands back: entries of the one scan
 * whose rows must be looked up, and keys of which the other side has such entries, or the memtable any.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"

#include "reader/cursor.h"
#include "reader/entry_agg.h"

/* Attempts while other sessions change rows of all-visible pages. */
#define JOIN_ATTEMPTS 3

static GpudsMirrorRef *
ref_of(const GpudsEntryAgg *agg)
{
	return &((GpudsCursor *) agg->scan->opaque)->ref;
}

/*
 * Might a device join what an aggregate, which has just begun, has below it with what another one has?  It
 * adds up nothing.
 */
bool
gpuds_entry_agg_may_join(const GpudsEntryAgg *agg)
{
	return agg->visible.counts && agg->nagg == 0 && agg->entry_filter == NULL && agg->side_filter == NULL &&
		   gpuds_scan_joins(agg->scan);
}

/*
 * Tells the device what is known of both sides' rows, and has it count; false: it cannot.  *holds: the answer
 * does.
 */
static bool
ask(GpudsEntryAgg *agg, GpudsEntryAgg *other, GpudsCountSpec *spec, GpudsCountJoin *join,
	GpudsCounted *counted, bool *holds)
{
	GpudsCountSpec known = { .partial = true };

	gpuds_visible_tell_device(&agg->visible, agg->expected, spec);
	gpuds_visible_tell_device(&other->visible, other->expected, &known);
	join->map = known.map;
	join->map_bytes = known.map_bytes;
	join->rows = known.rows;
	join->full = known.full;
	if (!gpuds_probe_begin_join(ref_of(agg), ref_of(other), join) ||
		!gpuds_scan_count_rest(agg->scan, spec, counted) || !gpuds_probe_join_holds(ref_of(other)))
		return false;
	gpuds_injection_point("scan-probed");
	*holds = gpuds_visible_map_holds(&agg->visible, spec->map, spec->map_bytes, spec->full);
	*holds &= gpuds_visible_map_holds(&other->visible, join->map, join->map_bytes, join->full);
	return true;
}

/* Moves the scan behind what has been counted, and notes what it has done. */
static void
take_count(GpudsEntryAgg *agg, GpudsEntryAgg *other, const GpudsCounted *counted)
{
	gpuds_scan_take_count(agg->scan, counted);
	gpuds_scan_counters(other->scan)->answered_by |= gpuds_scan_counters(agg->scan)->answered_by;
	gpuds_cursor_check_snapshot(other->scan);
}

/* Collects what is left: keys, and entries whose rows are seen. */
static void
collect_left(GpudsEntryAgg *agg, const GpudsCounted *counted, GpudsJoined *joined)
{
	const int64 nkeys = counted->groups.n;

	joined->left = MemoryContextAllocHuge(CurrentMemoryContext,
										  Max(nkeys + counted->n, 1) * sizeof(EntryJoinKey));
	joined->nleft = nkeys;
	if (nkeys > 0)
		memcpy(joined->left, counted->groups.words, nkeys * sizeof(EntryJoinKey));
	for (int64 from = 0; from < counted->n; from += GPUDS_PIECE_ENTRIES)
	{
		gpuds_entry_agg_look_up(agg, counted->entries + from, Min(counted->n - from, GPUDS_PIECE_ENTRIES));
		for (int64 i = 0; i < agg->n; i++)
			joined->left[joined->nleft++] = (EntryJoinKey){ .first = agg->entries[i], .rows = 1 };
		agg->n = 0;
	}
}

/*
 * Has a device join all entries of a scan with the rows of another, which is of a whole index.  Both
 * aggregates have just begun, and add up nothing.  *joined says what has been counted, and what is left; its
 * array is the caller's to free.  False: the device cannot, or the maps changed in every attempt; then
 * nothing is set, and the scans have not moved.
 */
bool
gpuds_entry_agg_join(GpudsEntryAgg *agg, GpudsEntryAgg *other, const EntryJoin *how, GpudsJoined *joined)
{
	bool tries = gpuds_entry_agg_may_join(agg) && gpuds_entry_agg_may_join(other);
	bool holds = false;

	for (int i = 0; i < JOIN_ATTEMPTS && tries && !holds; i++)
	{
		GpudsCountJoin join = { .join = *how };
		GpudsCountSpec spec = { .partial = true, .join = &join };
		GpudsCounted counted = { 0 };

		tries = ask(agg, other, &spec, &join, &counted, &holds);
		pfree((void *) spec.map);
		pfree((void *) join.map);
		if (join.touched)
			pfree((void *) join.touched);
		if (holds)
		{
			take_count(agg, other, &counted);
			joined->rows = counted.joined;
			joined->seen = counted.counted;
			collect_left(agg, &counted, joined);
		}
		gpuds_probe_free_counted(&counted);
	}
	return holds;
}
