/*-------------------------------------------------------------------------
 *
 * aggregate_bucket.c
 *	  Groups of a GpudsAggregate by buckets (bucket.h).
 *
 * Groups are held until it is certain that no more rows of them come.  If a device adds them up,
 * all of them are held: it is asked for what it has of each bucket in the range of the keys.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/nodeHash.h"
#include "miscadmin.h"

#include "custom/aggregate.h"
#include "reader/reader.h"

/* Buckets that a device is asked for at most, and intervals that these are in. */
#define DEVICE_BUCKETS 65536
#define DEVICE_INTERVALS 256

/* What an interval has beside its buckets, at most: NULLs, what is before the first, and behind the last. */
#define BESIDE_BUCKETS 3

/* All of that together. */
#define MOST_PARTS (DEVICE_BUCKETS + (DEVICE_INTERVALS * BESIDE_BUCKETS))

/* Buckets after which it is estimated how many there are. */
#define FIRST_BUCKETS 64

/* Gets ready for the node's bucket, once the index is known. */
void
gpuds_aggregate_set_bucket(GpudsAggregateState *state)
{
	const CustomScan *plan = (const CustomScan *) state->css.ss.ps.plan;
	TargetEntry *entry = list_nth(plan->custom_scan_tlist, state->bucket_at);

	gpuds_bucket_begin(&state->bucket, &state->css.ss.ps, entry->expr, &state->layout,
					   state->columns[state->bucket_at].column, state->hashed);
}

/* Is there a group of the bucket's value among those held?  NULL: no. */
static GpudsHeldGroup *
find_held(GpudsAggregateState *state)
{
	GpudsBucket *bucket = &state->bucket;
	int64 first = Max(state->next_held, state->nheld - GPUDS_BUCKETS_HELD);

	for (int64 i = state->nheld - 1; i >= first; i--)
	{
		GpudsHeldGroup *held = &state->held[i];

		if (gpuds_bucket_compare(bucket, held->value, held->isnull, bucket->value, bucket->isnull) == 0)
			return held;
	}
	return NULL;
}

/* What has been returned cannot be added to. */
static void
check_order(GpudsAggregateState *state)
{
	const GpudsHeldGroup *returned = state->next_held > 0 ? &state->held[state->next_held - 1] : NULL;

	if (returned && !returned->isnull && !state->bucket.isnull &&
		gpuds_bucket_compare(&state->bucket, state->bucket.value, false, returned->value, false) <= 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("found more rows of a group that has already been returned"),
						errdetail("TimeZone may have been changed while a cursor was open."),
						errhint("Close the cursor first, or open it with gpuds.enable_aggregate = off.")));
}

/* Makes room for one more. */
static void
ensure_capacity(GpudsAggregateState *state)
{
	int64 old_size = state->held_size;

	if (state->nheld < state->held_size)
		return;
	state->held_size = Max(2 * GPUDS_BUCKETS_HELD, 2 * old_size);
	state->held = state->held ? repalloc_huge(state->held, state->held_size * sizeof(GpudsHeldGroup))
							  : palloc(state->held_size * sizeof(GpudsHeldGroup));
	for (int64 i = old_size; i < state->held_size; i++)
		state->held[i].partial = palloc(Max(state->nagg, 1) * sizeof(PartialAgg));
}

/* Forgets groups that have been returned, but for the last of them. */
static void
forget_returned(GpudsAggregateState *state)
{
	const int64 gone = state->next_held - 1;

	if (gone < Max(GPUDS_BUCKETS_HELD, state->nheld - gone))
		return;
	for (int64 i = 0; i + gone < state->nheld; i++)
	{
		GpudsHeldGroup held = state->held[i];

		state->held[i] = state->held[i + gone];
		state->held[i + gone] = held;
	}
	state->nheld -= gone;
	state->next_held = 1;
}

/* Adds rows of the bucket to the group of its value, or makes it one behind all others. */
static void
hold_group(GpudsAggregateState *state, int64 rows, const PartialAgg *partial)
{
	GpudsHeldGroup *held = find_held(state);

	if (held)
	{
		held->rows += rows;
		for (int k = 0; k < state->nagg; k++)
			partial_agg_merge(&held->partial[k], &partial[k]);
		return;
	}
	check_order(state);
	ensure_capacity(state);
	held = &state->held[state->nheld++];
	held->value = state->bucket.value;
	held->isnull = state->bucket.isnull;
	held->rows = rows;
	memcpy(held->partial, partial, state->nagg * sizeof(PartialAgg));
}

/* Buckets as intervals, ascending. */
typedef struct Intervals
{
	GpudsInterval *intervals;
	Datum *values; /* of the buckets */
	bool *nulls;
	bool *outside; /* not a bucket: nothing is expected there */
	int64 n;
} Intervals;

static void
add_interval(Intervals *to, const GpudsBucket *bucket, const GpudsEntry *lo, const GpudsEntry *hi)
{
	if (entry_less(hi, lo))
		return;
	to->intervals[to->n].lo = *lo;
	to->intervals[to->n].hi = *hi;
	to->outside[to->n] = bucket == NULL;
	to->values[to->n] = bucket ? bucket->value : (Datum) 0;
	to->nulls[to->n++] = bucket && bucket->isnull;
}

static GpudsEntry
lower_of(const GpudsEntry *a, const GpudsEntry *b)
{
	return entry_less(a, b) ? *a : *b;
}

/* Cuts NULLs, which are at one end, off what is left; false: there are none. */
static bool
cut_nulls(const GpudsBucket *bucket, GpudsInterval *left, GpudsInterval *nulls)
{
	gpuds_bucket_nulls(bucket, &left->lo, nulls);
	if (entry_less(&nulls->hi, &left->lo) || entry_less(&left->hi, &nulls->lo))
		return false;
	if (entry_less(&nulls->lo, &left->lo))
		nulls->lo = left->lo;
	nulls->hi = lower_of(&nulls->hi, &left->hi);
	if (gpuds_bucket_nulls_first(bucket))
		left->lo = entry_behind(nulls->hi, bucket->layout->nwords);
	else
		left->hi = entry_before(nulls->lo);
	return true;
}

static void
add_nulls(GpudsBucket *bucket, const GpudsInterval *nulls, Intervals *to)
{
	bucket->isnull = true;
	add_interval(to, bucket, &nulls->lo, &nulls->hi);
}

/* Are many more buckets to be expected between two values than a device is asked for? */
static bool
is_hopeless(const GpudsBucket *bucket, int64 least, int64 most)
{
	double found = (double) bucket->end - least;

	return FIRST_BUCKETS * ((double) most - least) / Max(found, 1) > 4.0 * DEVICE_BUCKETS;
}

/* The buckets of a range of values, from the first one's entry on; false: there are too many. */
static bool
add_buckets(GpudsBucket *bucket, GpudsEntry first, int64 least, int64 most, GpudsInterval *left,
			Intervals *to)
{
	const int64 before = to->n;

	for (;;)
	{
		GpudsEntry last;

		if (to->n >= DEVICE_BUCKETS || (to->n - before == FIRST_BUCKETS && is_hopeless(bucket, least, most)))
			return false;
		CHECK_FOR_INTERRUPTS();
		gpuds_bucket_find(bucket, &first, &last);
		last = lower_of(&last, &left->hi);
		add_interval(to, bucket, &first, &last);
		left->lo = entry_behind(last, bucket->layout->nwords);
		if (bucket->end >= most || entry_less(&left->hi, &left->lo))
			return true;
		/* the entry behind may be one of a NULL, whose bit comes after the value */
		first = gpuds_bucket_next(bucket, &first);
	}
}

/* The buckets of a range of codes, and what is before them; false: too many, or values without neighbours. */
static bool
add_range(GpudsBucket *bucket, const PartialAgg *range, GpudsInterval *left, Intervals *to)
{
	GpudsEntry first;
	GpudsEntry end;
	int64 value;
	int64 most;

	if (!gpuds_bucket_first(bucket, left, range->min, &first, &value) ||
		!gpuds_bucket_first(bucket, left, range->max, &end, &most))
		return false;
	if (entry_less(&left->lo, &first))
	{
		GpudsEntry last = entry_before(first);

		add_interval(to, NULL, &left->lo, &last);
	}
	else
		first = left->lo;
	return add_buckets(bucket, first, value, most, left, to);
}

/*
 * All of an interval: its buckets, if its codes are in a range, NULLs, and what is outside; false as
 * above.
 */
static bool
make_intervals(GpudsBucket *bucket, const GpudsInterval *whole, const PartialAgg *range, Intervals *to)
{
	GpudsInterval left = *whole;
	GpudsInterval nulls;
	bool has_nulls = cut_nulls(bucket, &left, &nulls);

	if (has_nulls && gpuds_bucket_nulls_first(bucket))
		add_nulls(bucket, &nulls, to);
	if (range->n > 0 && !add_range(bucket, range, &left, to))
		return false;
	add_interval(to, NULL, &left.lo, &left.hi);
	if (has_nulls && !gpuds_bucket_nulls_first(bucket))
		add_nulls(bucket, &nulls, to);
	return true;
}

static void
begin_intervals(Intervals *intervals)
{
	const int64 size = MOST_PARTS;

	intervals->intervals = palloc(size * sizeof(GpudsInterval));
	intervals->values = palloc(size * sizeof(Datum));
	intervals->nulls = palloc(size * sizeof(bool));
	intervals->outside = palloc(size * sizeof(bool));
	intervals->n = 0;
}

static void
free_intervals(Intervals *intervals)
{
	pfree(intervals->intervals);
	pfree(intervals->values);
	pfree(intervals->nulls);
	pfree(intervals->outside);
}

/*
 * What buckets there are in the n intervals of the scan, one at least, as intervals; false: the device is of
 * no use.
 */
static bool
find_intervals(GpudsAggregateState *state, const GpudsInterval *whole, int64 n, Intervals *to)
{
	PartialAgg ranges[DEVICE_INTERVALS];
	bool found;

	Assert(n <= DEVICE_INTERVALS);
	gpuds_bucket_begin_ends(&state->bucket);
	found = gpuds_entry_agg_ranges(&state->agg, &state->bucket.agg_column, whole, n, ranges);
	for (int64 i = 0; found && i < n; i++)
		found = make_intervals(&state->bucket, &whole[i], &ranges[i], to);
	gpuds_bucket_end_ends(&state->bucket);
	return found;
}

/* Takes a device's sums; false: there are rows where none should be. */
static bool
take_sums(GpudsAggregateState *state, const Intervals *intervals, const GpudsEntryAggSum *sums)
{
	for (int64 i = 0; i < intervals->n; i++)
	{
		if (intervals->outside[i] && sums[i].rows > 0)
			return false;
	}
	for (int64 i = 0; i < intervals->n; i++)
	{
		state->bucket.value = intervals->values[i];
		state->bucket.isnull = intervals->nulls[i];
		if (sums[i].rows > 0)
			hold_group(state, sums[i].rows, sums[i].partial);
	}
	return true;
}

/* Adds up all groups on the device, if it can. */
static void
hold_all(GpudsAggregateState *state)
{
	GpudsInterval whole;
	Intervals intervals;
	GpudsEntryAggSum *sums;

	if (!gpuds_entry_agg_may_use_device(&state->agg) ||
		gpuds_scan_all_intervals(state->agg.scan, 1, &whole) != 1)
		return;
	begin_intervals(&intervals);
	if (find_intervals(state, &whole, 1, &intervals))
	{
		sums = MemoryContextAllocHuge(CurrentMemoryContext, Max(intervals.n, 1) * sizeof(GpudsEntryAggSum));
		if (gpuds_entry_agg_intervals(&state->agg, intervals.intervals, intervals.n, sums) &&
			take_sums(state, &intervals, sums))
			gpuds_entry_agg_skip(&state->agg);
		pfree(sums);
	}
	free_intervals(&intervals);
}

/* Does each of n intervals have one value in each column of the key before the bucket's? */
static bool
are_of_one_prefix(const GpudsBucket *bucket, const GpudsInterval *intervals, int64 n)
{
	GpudsEntry bits;

	gpuds_key_prefix_bits(bucket->layout, bucket->column, &bits);
	for (int64 i = 0; i < n; i++)
	{
		const GpudsEntry lo = entry_first_alike(&intervals[i].lo, &bits);
		const GpudsEntry hi = entry_first_alike(&intervals[i].hi, &bits);

		if (!entry_equal(&lo, &hi))
			return false;
	}
	return true;
}

/* Do the values of runs take as much memory as they may?  That is a quarter of what groups may have. */
static bool
has_no_room(const GpudsAggregateState *state)
{
	size_t bytes = state->nruns * (sizeof(GpudsBucketRun) + 2 * sizeof(uint32));

	if (state->bucket.values)
		bytes += MemoryContextMemAllocated(state->bucket.values, false);
	return state->nruns > 0 && bytes > get_hash_memory_limit() / 4;
}

/* The place of a value in the table of runs: that of its run, or one where there is none. */
static uint32 *
place_of_run(GpudsAggregateState *state, Datum value, bool isnull, uint32 hash)
{
	int64 at = hash & (state->run_places - 1);

	while (state->run_table[at] > 0)
	{
		const GpudsBucketRun *run = &state->runs[state->run_table[at] - 1];

		if (run->hash == hash &&
			gpuds_bucket_compare_results(&state->bucket, run->value, run->isnull, value, isnull) == 0)
			break;
		at = (at + 1) & (state->run_places - 1);
	}
	return &state->run_table[at];
}

/* Makes room for one more run. */
static void
ensure_run_capacity(GpudsAggregateState *state)
{
	if (state->nruns < state->runs_size)
		return;
	state->runs_size = Max(2 * state->runs_size, FIRST_BUCKETS);
	state->run_places = 2 * state->runs_size;
	if (state->runs)
	{
		state->runs = repalloc_huge(state->runs, state->runs_size * sizeof(GpudsBucketRun));
		pfree(state->run_table);
	}
	else
		state->runs = palloc(state->runs_size * sizeof(GpudsBucketRun));
	state->run_table = MemoryContextAllocExtended(CurrentMemoryContext, state->run_places * sizeof(uint32),
												  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int64 i = 0; i < state->nruns; i++)
	{
		const GpudsBucketRun *run = &state->runs[i];

		*place_of_run(state, run->value, run->isnull, run->hash) = (uint32) i + 1;
	}
}

/* The run of an entry that is the first of its bucket.  -1: there is no memory for another run. */
static int64
run_of_bucket(GpudsAggregateState *state, const GpudsEntry *first)
{
	GpudsBucket *bucket = &state->bucket;
	GpudsBucketRun run;
	uint32 *place;

	if (has_no_room(state))
		return -1;
	run.value = gpuds_bucket_result(bucket, first, &run.isnull);
	run.hash = gpuds_bucket_hash(bucket, run.value, run.isnull);
	ensure_run_capacity(state);
	place = place_of_run(state, run.value, run.isnull, run.hash);
	if (*place == 0)
	{
		run.value = gpuds_bucket_keep(bucket, run.value, run.isnull);
		state->runs[state->nruns] = run;
		*place = (uint32) ++state->nruns;
	}
	return *place - 1;
}

/* The runs of intervals; false: there is no memory for them. */
static bool
set_labels(GpudsAggregateState *state, const Intervals *intervals, uint32 *labels)
{
	for (int64 i = 0; i < intervals->n; i++)
	{
		int64 run = GPUDS_LABEL_OUTSIDE;

		CHECK_FOR_INTERRUPTS();
		if (!intervals->outside[i])
			run = run_of_bucket(state, &intervals->intervals[i].lo);
		if (run < 0)
			return false;
		labels[i] = (uint32) run;
	}
	return true;
}

/*
 * Parts of the scan's intervals for a device that hashes groups: their buckets, with the run of each.  The
 * expression is evaluated for buckets that may have no rows, so it has to be such that no error can come of
 * that.  False: there are no such intervals, or there are too many of them, or buckets.
 */
bool
gpuds_aggregate_bucket_parts(void *arg, GpudsEntryAggParts *parts)
{
	GpudsAggregateState *state = arg;
	GpudsInterval whole[DEVICE_INTERVALS];
	const int64 n = state->bucket.total ? gpuds_scan_all_intervals(state->agg.scan, DEVICE_INTERVALS, whole)
										: 0;
	Intervals intervals;
	bool done;

	if (n == 0 || !are_of_one_prefix(&state->bucket, whole, n))
		return false;
	begin_intervals(&intervals);
	parts->labels = palloc(MOST_PARTS * sizeof(uint32));
	done = find_intervals(state, whole, n, &intervals) && set_labels(state, &intervals, parts->labels);
	parts->intervals = intervals.intervals;
	parts->n = intervals.n;
	pfree(intervals.values);
	pfree(intervals.nulls);
	pfree(intervals.outside);
	if (!done)
	{
		pfree(parts->intervals);
		pfree(parts->labels);
	}
	return done;
}

/*
 * The run of an entry, with hashed groups: that of the value for its bucket.  *last is the last entry that
 * may be of the bucket.  -1: there is no memory for another run.
 */
int64
gpuds_aggregate_bucket_run(void *arg, const GpudsEntry *first, GpudsEntry *last)
{
	GpudsAggregateState *state = arg;

	CHECK_FOR_INTERRUPTS();
	gpuds_bucket_find(&state->bucket, first, last);
	return run_of_bucket(state, first);
}

/* Forgets the runs, and what their buckets have in memory. */
void
gpuds_aggregate_restart_runs(void *arg)
{
	GpudsAggregateState *state = arg;

	state->nruns = 0;
	if (state->run_table)
		memset(state->run_table, 0, state->run_places * sizeof(uint32));
	gpuds_bucket_restart(&state->bucket);
}

/*
 * Sets state->group to the next one, whose value is that of state->held before next_held; false: there
 * is none.
 */
bool
gpuds_aggregate_next_bucket(GpudsAggregateState *state)
{
	const GpudsHeldGroup *held;

	if (!state->asked_device)
		hold_all(state);
	state->asked_device = true;
	forget_returned(state);
	while (state->nheld - state->next_held < GPUDS_BUCKETS_HELD &&
		   gpuds_entry_agg_next(&state->agg, &state->group))
		hold_group(state, state->group.rows, state->group.partial);
	if (state->next_held == state->nheld)
		return false;
	held = &state->held[state->next_held++];
	state->group.rows = held->rows;
	memcpy(state->group.partial, held->partial, state->nagg * sizeof(PartialAgg));
	return true;
}
