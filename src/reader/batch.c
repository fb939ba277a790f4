/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  A scan's entries in batches, counted on the device, or as TIDs: what plan nodes and
 *	  functions ask a cursor for.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"

#include "reader/cursor.h"
#include "reader/fetch.h"
#include "reader/reader.h"

/* Begins to set what a scan asks for in place of what it did; returns the context to go back to. */
static MemoryContext
begin_set(GpudsCursor *cursor)
{
	gpuds_cursor_hand_on_killed(cursor);
	gpuds_cursor_forget_keys(cursor);
	cursor->hint = false;
	return MemoryContextSwitchTo(cursor->key_context);
}

/* Ends what begin_set began. */
static void
end_set(IndexScanDesc scan, MemoryContext old)
{
	MemoryContextSwitchTo(old);
	gpuds_cursor_restart(scan->opaque, true);
	scan->xs_recheck = false;
}

/*
 * In place of keys, sets what probes ask for: ascending, all different.  With a snapshot that is not an MVCC
 * snapshot, a scan does so once.
 */
void
gpuds_scan_set_probes(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries, int64 n)
{
	GpudsCursor *cursor = scan->opaque;
	MemoryContext old = begin_set(cursor);

	gpuds_key_set_of_probes(probe, entries, n, &cursor->set);
	end_set(scan, old);
}

/* The same of shapes, which points are in; the layout and they must live as long as that is asked for. */
void
gpuds_scan_set_shapes(IndexScanDesc scan, const GpudsKeyLayout *layout, GpudsShapes *shapes)
{
	GpudsCursor *cursor = scan->opaque;
	MemoryContext old = begin_set(cursor);

	gpuds_key_set_of_shapes(layout, shapes, &cursor->set);
	end_set(scan, old);
}

/* The same of a part of the points of an index, as gpuds_scan_set_shapes. */
void
gpuds_scan_set_near(IndexScanDesc scan, const GpudsKeyLayout *layout, const GpudsNear *near)
{
	GpudsCursor *cursor = scan->opaque;
	MemoryContext old = begin_set(cursor);

	gpuds_key_set_of_near(layout, near, &cursor->set);
	cursor->hint = near->hint;
	end_set(scan, old);
}

/* Have all entries that a scan finds by its keys values that were asked for? */
bool
gpuds_scan_is_exact(IndexScanDesc scan)
{
	const GpudsCursor *cursor = scan->opaque;

	return !scan->xs_recheck && !cursor->set.candidates;
}

/* Begins with a scan's first interval, or backward with its last: the scan passes its barrier. */
static void
begin_batches(IndexScanDesc scan, GpudsCursor *cursor, int64 weight, bool forward)
{
	cursor->counters.batches++;
	gpuds_cursor_barrier(scan, cursor, Max(weight, cursor->set.total));
	gpuds_cursor_from_place(cursor, forward);
}

/*
 * Begins to give a scan's entries in batches, forward, from its first interval on: the
 * scan passes its barrier.  weight: of how many keys the scan is worth the work, which says what device
 * is best.
 */
void
gpuds_scan_begin_batches(IndexScanDesc scan, int64 weight)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_key_set_sort(&cursor->set);
	begin_batches(scan, cursor, weight, true);
}

/*
 * Is it worth while to begin with n probes or keys as they come (gpuds_scan_begin_membership,
 * gpuds_scan_begin_sums)?  Says what device such a scan would have, without a look at the index.
 */
bool
gpuds_scan_may_test_membership(IndexScanDesc scan, int64 n, int64 weight)
{
	return gpuds_device_sends_large(n, weight) &&
		   gpuds_device_is_remote(gpuds_mirror_wanted(scan->indexRelation, PG_INT64_MAX));
}

/*
 * Sets what probes in any order ask for, equal ones among them, and begins: the scan passes its
 * barrier.  It can only be counted, with hits (gpuds_scan_test_membership), before other probes or keys
 * are set.
 */
void
gpuds_scan_begin_membership(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries,
							int64 n, int64 weight)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_scan_set_probes(scan, probe, entries, n);
	cursor->set.sorted = false;
	begin_batches(scan, cursor, weight, true);
}

/* Memory of the scan for n points (gpuds_scan_begin_points), until other probes or keys are set. */
uint64 *
gpuds_scan_alloc_points(IndexScanDesc scan, int64 n)
{
	GpudsCursor *cursor = scan->opaque;

	if (n >= GPUDS_MANY_KEYS)
		gpuds_keep_freed_memory();
	gpuds_cursor_hand_on_killed(cursor);
	gpuds_cursor_forget_keys(cursor);
	return MemoryContextAllocHuge(cursor->key_context, Max(n, 1) * sizeof(uint64));
}

/*
 * The same as gpuds_scan_begin_membership for probes that differ in w0 only, of which that is given, in
 * memory that gpuds_scan_alloc_points has returned.
 */
void
gpuds_scan_begin_points(IndexScanDesc scan, const GpudsKeyProbe *probe, uint64 *points, int64 n, int64 weight)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_key_set_of_points(probe, points, n, &cursor->set);
	gpuds_cursor_restart(cursor, true);
	scan->xs_recheck = false;
	cursor->set.sorted = false;
	begin_batches(scan, cursor, weight, true);
}

/* Of how many keys a scan of about so many rows is worth the work. */
static int64
weight_of_rows(double expected)
{
	return (int64) Min(expected / GPUDS_ENTRIES_OF_KEY, PG_INT32_MAX);
}

/* How many rows a scan looks at, which is about so many: the planner does not see into parameters. */
static double
expected_rows(const GpudsCursor *cursor, double expected)
{
	return Max(expected, (double) cursor->set.total);
}

/* The first batch of a scan is for so many rows, or as many as there can be. */
static void
begin_large(GpudsCursor *cursor, double expected)
{
	const int64 most = gpuds_probe_sizes(&cursor->ref)->most;

	cursor->fetch = Max(cursor->fetch, (int64) Min(expected, (double) most));
}

/*
 * The same of a scan that is read to its end.  In a SERIALIZABLE transaction, rows are locked one by one as
 * long as there are few, whatever is expected (I4): so batches begin small there.
 */
static void
begin_whole(GpudsCursor *cursor, double expected)
{
	if (!IsolationIsSerializable())
		begin_large(cursor, expected);
}

/*
 * The same for a scan of about so many rows, be they of few keys or of many.  Returns how many rows are
 * expected now that the keys are known.
 */
double
gpuds_scan_begin_rows(IndexScanDesc scan, double expected)
{
	gpuds_scan_begin_batches(scan, weight_of_rows(expected));
	begin_whole(scan->opaque, expected);
	return expected_rows(scan->opaque, expected);
}

/*
 * The same for a scan that gpuds_scan_count_on_device is asked about first, without a sum for each interval
 * and without groups.  A device that sorts may get keys as they came.
 */
double
gpuds_scan_begin_sums(IndexScanDesc scan, double expected)
{
	GpudsCursor *cursor = scan->opaque;
	const int64 weight = Max(weight_of_rows(expected), cursor->set.total);

	if (!gpuds_scan_may_test_membership(scan, cursor->set.total, weight))
		gpuds_key_set_sort(&cursor->set);
	cursor->counters.batches++;
	gpuds_cursor_barrier(scan, cursor, weight);
	if (!gpuds_cursor_device_sorts(cursor) || !gpuds_probe_counts(&cursor->ref))
		gpuds_key_set_sort(&cursor->set);
	gpuds_cursor_from_place(cursor, true);
	begin_whole(cursor, expected);
	return expected_rows(cursor, expected);
}

/*
 * The same for a scan that gives so many rows in batches, in one of the directions, and then others one by
 * one.  It goes on behind the row that it has given last, if it has given any.
 */
void
gpuds_scan_begin_skip(IndexScanDesc scan, double expected, bool forward)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_cursor_hand_on_killed(cursor);
	gpuds_key_set_sort(&cursor->set);
	begin_batches(scan, cursor, weight_of_rows(expected), forward);
	begin_large(cursor, expected);
}

/*
 * The intervals at hand, or the first of them, most at most, as far as they have not been given, in the
 * scan's direction; returns how many, or 0 if they cannot be counted.  *aggregates: the device does, so that
 * gpuds_scan_count_intervals may have sums of each.
 */
int64
gpuds_scan_rest(IndexScanDesc scan, int64 most, GpudsInterval *intervals, bool *aggregates)
{
	const GpudsCursor *cursor = scan->opaque;
	const bool forward = cursor->forward;
	const int64 left = forward ? cursor->scan.n - cursor->scan.next : cursor->scan.next;
	int64 n = 0;

	*aggregates = gpuds_probe_aggregates(&cursor->ref);
	if (cursor->set.filter || cursor->end || !gpuds_probe_counts(&cursor->ref))
		return 0;
	for (int64 i = 0; i < Min(left, most); i++)
	{
		const int64 number = forward ? cursor->scan.next + i : cursor->scan.next - 1 - i;

		if (entry_scan_rest(&cursor->scan, number, forward, &intervals[n]))
			n++;
	}
	return n;
}

/* Are the intervals at hand all that the scan has? */
bool
gpuds_scan_has_all(IndexScanDesc scan)
{
	const GpudsCursor *cursor = scan->opaque;

	return cursor->set.total == cursor->set.nintervals;
}

/* The entry of the row that the scan has given last. */
const GpudsEntry *
gpuds_scan_current(IndexScanDesc scan)
{
	const GpudsCursor *cursor = scan->opaque;

	Assert(cursor->place == GPUDS_PLACE_ON);
	return &cursor->current;
}

/*
 * Moves a scan on to an entry of its intervals, or to where one would be, behind n entries that have been
 * counted.
 */
void
gpuds_scan_move_to(IndexScanDesc scan, const GpudsEntry *entry, int64 n)
{
	GpudsCursor *cursor = scan->opaque;

	cursor->current = *entry;
	/* Entries never have the highest t, and the scan goes on with the one above. */
	cursor->current.t = Min(entry->t, UINT64_MAX - 1);
	cursor->place = GPUDS_PLACE_ON;
	gpuds_cursor_from_place(cursor, cursor->forward);
	pgstat_count_index_tuples(scan->indexRelation, n);
}

/* What the scan has done. */
GpudsScanCounters *
gpuds_scan_counters(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	cursor->counters.notes = cursor->ref.notes;
	return &cursor->counters;
}

/* So many of the scan's entries are looked at; the visibility map vouches for the rows of some. */
void
gpuds_scan_note_matches(IndexScanDesc scan, int64 n, int64 all_visible)
{
	GpudsScanCounters *counters = gpuds_scan_counters(scan);

	counters->matches += n;
	counters->all_visible += all_visible;
}

/* Are there intervals left?  Goes on to those that batches come from next. */
bool
gpuds_scan_has_more(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	while (cursor->end || cursor->scan.n == 0)
	{
		if (!gpuds_cursor_next_batch(cursor))
			return false;
	}
	return true;
}

/*
 * Ends batches: what is behind the last of them is given one by one.  If that was empty, or had no entry that
 * passed the filter, the scan either is at its end, or has not moved.
 */
void
gpuds_scan_end_skip(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	if (cursor->nchunk > 0)
	{
		cursor->current = cursor->chunk[cursor->nchunk - 1];
		cursor->place = GPUDS_PLACE_ON;
	}
	else if (!gpuds_scan_has_more(scan))
		cursor->place = cursor->forward ? GPUDS_PLACE_AFTER : GPUDS_PLACE_BEFORE;
	cursor->nchunk = cursor->at = 0;
	cursor->fetch = gpuds_probe_sizes(&cursor->ref)->first;
}

/*
 * The scan's next entries, most at most, perhaps none; what they lead to, the caller must look at with
 * the scan's snapshot.  gpuds_scan_has_more must have said that there are intervals left.
 */
void
gpuds_scan_next_batch(IndexScanDesc scan, int64 most, GpudsScanBatch *batch)
{
	GpudsCursor *cursor = scan->opaque;

	CHECK_FOR_INTERRUPTS();
	Assert(cursor->set.sorted);
	cursor->fetch = Min(cursor->fetch, most);
	gpuds_cursor_fetch(scan, cursor);
	if (cursor->set.filter)
	{
		int64 passed = 0;

		for (int64 i = 0; i < cursor->nchunk; i++)
		{
			if (gpuds_key_filter_pass(cursor->set.filter, &cursor->chunk[i]))
				cursor->chunk[passed++] = cursor->chunk[i];
		}
		cursor->nchunk = passed;
	}
	batch->entries = cursor->chunk;
	batch->n = cursor->nchunk;
	batch->from_mirror = cursor->ref.mirror != NULL;
	batch->kill_mark = cursor->ref.kill_mark;
	pgstat_count_index_tuples(scan->indexRelation, cursor->nchunk);
}

/* The rows of n entries of the last batch are dead for everybody. */
void
gpuds_scan_kill(IndexScanDesc scan, const GpudsEntry *entries, int n)
{
	gpuds_probe_kill(&((GpudsCursor *) scan->opaque)->ref, entries, n);
}

/* Is there more than a small batch left of the intervals at hand? */
static bool
has_many_left(const GpudsCursor *cursor)
{
	const GpudsProbeSizes *sizes = gpuds_probe_sizes(&cursor->ref);

	return cursor->set.nintervals > sizes->small_intervals || cursor->fetch > sizes->small;
}

/* May gpuds_scan_count_rest have an answer now? */
bool
gpuds_scan_counts(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	return cursor->set.filter == NULL && !cursor->end && cursor->scan.n > 0 && has_many_left(cursor) &&
		   gpuds_probe_counts(&cursor->ref);
}

/* May the whole scan, of which nothing has been fetched, be counted and joined with another by the device? */
bool
gpuds_scan_joins(IndexScanDesc scan)
{
	const GpudsCursor *cursor = scan->opaque;

	return cursor->set.filter == NULL && cursor->set.total == cursor->scan.n && cursor->scan.n > 0 &&
		   cursor->place == GPUDS_PLACE_START && gpuds_probe_aggregates(&cursor->ref);
}

/* The same of an aggregate, for more than the entries of the others. */
bool
gpuds_scan_aggregates(IndexScanDesc scan)
{
	return gpuds_scan_counts(scan) && gpuds_probe_aggregates(&((GpudsCursor *) scan->opaque)->ref);
}

/* Entries of the scan's mirror, about; 0: it has none. */
int64
gpuds_scan_mirror_entries(IndexScanDesc scan)
{
	const GpudsMirrorRef *ref = &((GpudsCursor *) scan->opaque)->ref;

	return ref->mirror ? (int64) gpuds_device_entries(&ref->mirror->tree) : 0;
}

/* Where the scan's mirror counts what searches for paths have followed; NULL: it has none. */
pg_atomic_uint64 *
gpuds_scan_followed(IndexScanDesc scan)
{
	const GpudsMirrorRef *ref = &((GpudsCursor *) scan->opaque)->ref;

	return ref->mirror ? &ref->mirror->followed : NULL;
}

/* May a GPU have the mirror that this scan would have for many keys, now or once it is loaded? */
bool
gpuds_scan_may_be_on_gpu(IndexScanDesc scan)
{
	return gpuds_mirror_may_be_on_gpu(&((GpudsCursor *) scan->opaque)->source);
}

/* Has it? */
bool
gpuds_scan_is_on_gpu(IndexScanDesc scan)
{
	return gpuds_mirror_is_on_gpu(&((GpudsCursor *) scan->opaque)->source);
}

/*
 * Does a GPU keep a graph of the mirror that this scan would have for many keys (gpuds_mirror_keeps_graph)?
 * It may be another one, or none, when the scan begins.
 */
bool
gpuds_scan_keeps_graph(IndexScanDesc scan, bool both, GpudsDeviceGraph *graph)
{
	return gpuds_mirror_keeps_graph(&((GpudsCursor *) scan->opaque)->source, both, graph);
}

/* What its device may be told of side values (gpuds_mirror_copy_side); false: nothing. */
bool
gpuds_scan_copy_side(IndexScanDesc scan, const GpudsFile *file, GpudsCountSide *side)
{
	return gpuds_mirror_copy_side(&((GpudsCursor *) scan->opaque)->ref, file, side);
}

/*
 * Instead of fetching batches, counts all that is left of the intervals at hand, or of groups in order as
 * many as come at once (gpuds_probe_count).  False: it has to be fetched.  The scan does not move.
 */
bool
gpuds_scan_count_rest(IndexScanDesc scan, const GpudsCountSpec *spec, GpudsCounted *counted)
{
	GpudsCursor *cursor = scan->opaque;
	const GpudsDeviceWork before = gpuds_device_work;

	if (!gpuds_probe_count(&cursor->ref, &cursor->scan, spec, counted))
		return false;
	gpuds_cursor_note_answer(cursor, &before,
							 counted->counted + counted->filtered + counted->left_out + counted->n);
	gpuds_cursor_check_snapshot(scan);
	return true;
}

/*
 * All intervals that a scan asks for, ascending; returns how many.  0: there are more than most, or something
 * has been fetched, or the device does not aggregate.  Else gpuds_scan_count_intervals may have sums of parts
 * of them.
 */
int64
gpuds_scan_all_intervals(IndexScanDesc scan, int64 most, GpudsInterval *intervals)
{
	const GpudsCursor *cursor = scan->opaque;
	const int64 total = cursor->set.total;
	bool aggregates;

	return total <= most && total == cursor->set.nintervals && !cursor->scan.inside &&
				   gpuds_scan_rest(scan, total, intervals, &aggregates) == total && aggregates
			   ? total
			   : 0;
}

/* What it takes to kill entries that the scan's device has given since the barrier. */
GpudsKillMark
gpuds_scan_kill_mark(IndexScanDesc scan)
{
	return ((GpudsCursor *) scan->opaque)->ref.kill_mark;
}

/*
 * As gpuds_scan_count_rest for other intervals than the scan's own, parts of them, ascending and disjoint.
 */
bool
gpuds_scan_count_intervals(IndexScanDesc scan, const GpudsInterval *intervals, int64 n,
						   const GpudsCountSpec *spec, GpudsCounted *counted)
{
	GpudsCursor *cursor = scan->opaque;
	const GpudsScan parts = { .intervals = intervals, .n = n };
	const GpudsDeviceWork before = gpuds_device_work;
	bool done;

	gpuds_probe_forget(&cursor->ref);
	done = gpuds_probe_count(&cursor->ref, &parts, spec, counted);
	gpuds_probe_forget(&cursor->ref);
	if (done)
	{
		gpuds_cursor_note_answer(cursor, &before,
								 counted->counted + counted->filtered + counted->left_out + counted->n);
		gpuds_cursor_check_snapshot(scan);
	}
	return done;
}

/* Moves behind the intervals at hand, which n entries were left of. */
void
gpuds_scan_skip_rest(IndexScanDesc scan, int64 n)
{
	GpudsCursor *cursor = scan->opaque;

	cursor->end = true;
	cursor->nchunk = cursor->at = 0;
	pgstat_count_index_tuples(scan->indexRelation, n);
}

/* Moves to where a count has left the intervals at hand, behind n entries. */
void
gpuds_scan_skip_to(IndexScanDesc scan, const GpudsScan *rest, int64 n)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_scan_skip_rest(scan, n);
	cursor->scan = *rest;
	cursor->end = rest->next == rest->n;
}

/*
 * Begins to give a scan's TIDs, from its first interval on: the scan passes its barrier.  The keys are
 * put in order, except for a device that does not need that, and where there are no more of them than
 * most.
 */
void
gpuds_scan_begin_tids(IndexScanDesc scan, int64 most)
{
	GpudsCursor *cursor = scan->opaque;
	const GpudsProbeSizes *sizes;

	gpuds_cursor_barrier(scan, cursor, cursor->set.total);
	sizes = gpuds_probe_sizes(&cursor->ref);
	if (cursor->set.nintervals >= GPUDS_MANY_KEYS)
		gpuds_keep_freed_memory();
	if (!gpuds_cursor_device_sorts(cursor) || cursor->set.nintervals <= sizes->small_intervals ||
		cursor->set.total > most)
		gpuds_key_set_sort(&cursor->set);
	gpuds_cursor_from_place(cursor, true);
	cursor->fetch = Max(sizes->small, Min(cursor->set.nintervals, GPUDS_MAX_FIRST_CHUNK));
}

/* Are the keys in order?  Else only gpuds_scan_next_tids or gpuds_scan_count_on_device may be asked. */
bool
gpuds_scan_in_order(IndexScanDesc scan)
{
	return ((GpudsCursor *) scan->opaque)->set.sorted;
}

/* Puts them in order, and begins again from the first interval on. */
void
gpuds_scan_put_in_order(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_key_set_sort(&cursor->set);
	gpuds_cursor_from_place(cursor, true);
}

/* Number of the first interval of the batch at hand, which names it, ... */
int64
gpuds_scan_turn(IndexScanDesc scan)
{
	return ((GpudsCursor *) scan->opaque)->set.first;
}

/* ... and how many it has. */
int64
gpuds_scan_intervals(IndexScanDesc scan)
{
	return ((GpudsCursor *) scan->opaque)->set.nintervals;
}

/* May gpuds_scan_next_tids have an answer now? */
bool
gpuds_scan_gives_tids(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	return gpuds_cursor_device_sorts(cursor) && !cursor->end && cursor->scan.n > 0 && has_many_left(cursor);
}

/*
 * What the memtable adds to the rest of the batch of intervals at hand, as gpuds_probe_delta_tids; before
 * gpuds_scan_next_tids is asked about that.
 */
bool
gpuds_scan_delta_tids(IndexScanDesc scan, uint64 **tids, int64 *n)
{
	GpudsCursor *cursor = scan->opaque;
	const bool had = gpuds_probe_delta_tids(&cursor->ref, &cursor->scan, tids, n);

	if (had)
		pgstat_count_index_tuples(scan->indexRelation, *n);
	return had;
}

/*
 * The next TIDs of the batch of intervals at hand, ascending, put into tids[most]; -1: only
 * gpuds_scan_next_batch has them.
 */
int64
gpuds_scan_next_tids(IndexScanDesc scan, uint64 *tids, int64 most)
{
	GpudsCursor *cursor = scan->opaque;
	const GpudsDeviceWork before = gpuds_device_work;
	GpudsTids found;

	CHECK_FOR_INTERRUPTS();
	if (!gpuds_probe_tids(&cursor->ref, &cursor->scan, most, &found, &cursor->end))
		return -1;
	gpuds_cursor_note_answer(cursor, &before, found.n);
	memcpy(tids, found.tids, found.n * sizeof(uint64));
	gpuds_device_free_tids(&found);
	gpuds_cursor_check_snapshot(scan);
	pgstat_count_index_tuples(scan->indexRelation, found.n);
	gpuds_injection_point("scan-probed");
	return found.n;
}
