/*-------------------------------------------------------------------------
 *
 * merge.c
 *	  GpudsMerge: joins the groups of two GpudsAggregates, of which each has the rows of one index that have
 *	  equal keys.
 *
 * Nothing is made of a pair of rows: a key that n rows of one table have, and m of the other, has n * m of
 * them.  One side drives.  The other gives its groups beside it, in the same order; or it is asked for those
 * only that the driving side has, for a batch of its groups at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "common/int.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "utils/builtins.h"

#include "custom/aggregate.h"
#include "custom/custom.h"
#include "custom/merge.h"
#include "key/join_key.h"

/* Groups of a first batch, for callers that want a few rows only, and of others, at most. */
#define FIRST_BATCH 1024
#define MOST_OF_BATCH (32 * 1024)

typedef unsigned __int128 Wide;

/* Rows of one side that have equal keys. */
typedef struct MergeGroup
{
	GpudsJoinValue value;
	GpudsEntry first; /* one of their entries */
	int64 rows;
	bool has_null; /* a row with it is joined with none */
} MergeGroup;

typedef struct MergeSide
{
	PlanState *node;
	GpudsAggregateState *agg; /* that node, or what is below it */
	GpudsJoinKey key;
	bool ended; /* there are no more groups; of a side that is probed, for the batch at hand */
	bool has;   /* a group is at hand */
	MergeGroup group;
	const PartialAgg *partial; /* of this group */
	int64 groups;              /* for EXPLAIN */
	int64 rows;

	/* what has been added up, each row as often as it is joined */
	int64 total_rows;
	PartialAgg *total;
	bool *is_wide; /* of each aggregated column: its sum has no room there */
	bool shows;    /* the values of a group are wanted */

	GpudsKeyBytes bytes[GPUDS_KEY_MAX_COLUMNS]; /* of a group's values, each in its column's place */
} MergeSide;

typedef struct GpudsMergeState
{
	CustomScanState css;
	GpudsMergeType type;
	bool plan_probes;
	bool probes;  /* as planned, or because a device has joined the rest */
	bool asks;    /* a device may join the sides */
	bool grouped; /* each key has a row of its own */
	List *of;     /* MERGE_OF, MERGE_COLUMNS */
	List *columns;
	MergeSide sides[MERGE_SIDES];
	MergeSide *driver;
	MergeSide *other;
	bool begun;
	bool done;
	int64 total_rows;
	int64 repeats; /* times that the row at hand is to be returned again */

	/* if the other side is probed: groups of the driving one, from at on not yet taken */
	GpudsKeyProbe probe;
	MergeGroup *batch;
	PartialAgg *batch_partial;
	GpudsEntry *probes_of;
	int64 batch_size;
	int64 nbatch;
	int64 at;

	/* if a device has joined the sides: rows of the result, and groups of the driving side that are left */
	bool joined;
	int64 joined_rows;
	MergeGroup *left_groups; /* ascending, all different; from next_left on not yet taken */
	int64 nleft;
	int64 next_left;
} GpudsMergeState;

/* The GpudsAggregate that a node is, or has below it. */
static GpudsAggregateState *
aggregate_of(PlanState *node)
{
	if (IsA(node, SubqueryScanState))
		node = ((SubqueryScanState *) node)->subplan;
	return (GpudsAggregateState *) castNode(CustomScanState, node);
}

static void
clear_totals(GpudsMergeState *state)
{
	state->total_rows = 0;
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		MergeSide *side = &state->sides[i];

		side->total_rows = 0;
		for (int k = 0; k < side->agg->nagg; k++)
		{
			side->total[k] = partial_agg_empty();
			side->is_wide[k] = false;
		}
	}
}

/* Takes the next group of what is below a side; false: there is none. */
static bool
fetch_group(MergeSide *side, MergeGroup *group)
{
	GpudsEntryAggGroup *from = &side->agg->group;

	if (!gpuds_entry_agg_next_of_piece(&side->agg->agg, from) && !gpuds_entry_agg_next(&side->agg->agg, from))
		return false;
	group->first = from->first;
	group->rows = from->rows;
	group->has_null = !gpuds_join_key_value(&side->key, &from->first, &group->value);
	side->groups++;
	side->rows += from->rows;
	return true;
}

/* The same of the driving side, or of what a device has left of it. */
static bool
fetch_driving_group(GpudsMergeState *state, MergeGroup *group)
{
	if (!state->joined)
		return fetch_group(state->driver, group);
	if (state->next_left == state->nleft)
		return false;
	*group = state->left_groups[state->next_left++];
	return true;
}

/* Begins to give the groups of the other side that a batch has: the first of n. */
static void
probe_other(GpudsMergeState *state, int64 n)
{
	MergeSide *other = state->other;
	int64 nprobes = 0;

	gpuds_aggregate_end(other->agg);
	other->has = false;
	for (int64 i = 0; i < n; i++)
	{
		if (!state->batch[i].has_null &&
			gpuds_join_key_probe(&other->key, &state->batch[i].value, &state->probes_of[nprobes]))
			nprobes++;
	}
	other->ended = nprobes == 0;
	if (nprobes > 0)
		gpuds_aggregate_begin(other->agg, &state->probe, state->probes_of, nprobes);
}

/* Makes a batch of the driving side's next groups; false: there are none. */
static bool
fill_batch(GpudsMergeState *state)
{
	MergeSide *driver = state->driver;
	const int nagg = driver->agg->nagg;

	state->at = state->nbatch = 0;
	if (state->batch_size < MOST_OF_BATCH)
	{
		const int64 size = state->batch_size > 0 ? MOST_OF_BATCH : FIRST_BATCH;

		if (state->batch)
		{
			pfree(state->batch);
			pfree(state->batch_partial);
			pfree(state->probes_of);
		}
		state->batch = palloc(size * sizeof(MergeGroup));
		state->batch_partial = palloc(size * Max(nagg, 1) * sizeof(PartialAgg));
		state->probes_of = palloc(size * sizeof(GpudsEntry));
		state->batch_size = size;
	}
	while (state->nbatch < state->batch_size && fetch_driving_group(state, &state->batch[state->nbatch]))
	{
		if (nagg > 0)
			memcpy(state->batch_partial + state->nbatch * nagg, driver->agg->group.partial,
				   nagg * sizeof(PartialAgg));
		state->nbatch++;
	}
	probe_other(state, state->nbatch);
	return state->nbatch > 0;
}

/* Has the driving side a group at hand, or another one?  By batches. */
static bool
take_of_batch(GpudsMergeState *state)
{
	MergeSide *driver = state->driver;

	if (state->at == state->nbatch && !fill_batch(state))
		return false;
	driver->group = state->batch[state->at];
	driver->partial = state->batch_partial + state->at * driver->agg->nagg;
	state->at++;
	return true;
}

/* Has a side a group at hand, or another one? */
static bool
take(GpudsMergeState *state, MergeSide *side)
{
	if (side->has)
		return true;
	if (side->ended)
		return false;
	if (state->probes && side == state->driver)
		side->has = take_of_batch(state);
	else
	{
		side->has = fetch_group(side, &side->group);
		side->partial = side->agg->group.partial;
	}
	side->ended = !side->has;
	return side->has;
}

/* Goes on to the other side's group that is equal to the driving one's; false: there is none. */
static bool
find_equal(GpudsMergeState *state)
{
	const MergeSide *driver = state->driver;
	MergeSide *other = state->other;
	const bool nulls_equal = gpuds_merge_is_set(state->type);

	if (driver->group.has_null && !nulls_equal)
		return false;
	while (take(state, other))
	{
		int order = other->group.has_null && !nulls_equal
						? -1
						: gpuds_join_value_compare(&other->group.value, &driver->group.value);

		if (order == 0)
			return true;
		if (order > 0)
			return false;
		other->has = false;
	}
	return false;
}

/*
 * Goes on to the driving side's next group that there are rows of; *matched: the other side has a group that
 * is equal.  False: there is none.
 */
static bool
next_key(GpudsMergeState *state, bool *matched)
{
	MergeSide *driver = state->driver;
	const bool keeps = gpuds_merge_keeps_left(state->type);

	while (take(state, driver))
	{
		*matched = find_equal(state);
		driver->has = false;
		if (*matched)
		{
			state->other->has = false;
			return true;
		}
		if (keeps)
			return true;
		if (state->other->ended && !state->probes)
			return false;
	}
	return false;
}

static int64
times(int64 a, int64 b)
{
	int64 product;

	if (pg_mul_s64_overflow(a, b, &product))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	return product;
}

/* How many rows a key has in the result. */
static int64
rows_of(GpudsMergeType type, int64 left, int64 right)
{
	switch (type)
	{
		case GPUDS_MERGE_INNER:
			return times(left, right);
		case GPUDS_MERGE_LEFT:
			return times(left, Max(right, 1));
		case GPUDS_MERGE_SEMI:
			return right > 0 ? left : 0;
		case GPUDS_MERGE_ANTI:
			return right > 0 ? 0 : left;
		case GPUDS_MERGE_INTERSECT:
			return right > 0;
		case GPUDS_MERGE_INTERSECT_ALL:
			return Min(left, right);
		case GPUDS_MERGE_EXCEPT:
			return right == 0;
		case GPUDS_MERGE_EXCEPT_ALL:
			return Max(left - right, 0);
	}
	pg_unreachable();
}

/* Adds what the rows of a group have, each so many times. */
static void
add_partial(MergeSide *side, int64 each)
{
	side->total_rows += side->group.rows * each;
	for (int i = 0; i < side->agg->nagg; i++)
	{
		const PartialAgg *from = &side->partial[i];
		PartialAgg *to = &side->total[i];
		const Wide sum = (((Wide) from->high << 32) + from->low) * (Wide) each + ((Wide) to->high << 32) +
						 to->low;

		if (from->n == 0)
			continue;
		side->is_wide[i] |= sum >> 96 != 0;
		to->n += from->n * (uint64) each;
		to->low = (uint32) sum;
		to->high = (uint64) (sum >> 32);
		to->sum += from->sum * (double) each;
		to->min = Min(to->min, from->min);
		to->max = Max(to->max, from->max);
	}
}

/* Adds up the rows of a key. */
static void
add_key(GpudsMergeState *state, bool matched)
{
	MergeSide *left = &state->sides[MERGE_LEFT];
	MergeSide *right = &state->sides[MERGE_RIGHT];
	const int64 n = left->group.rows;
	const int64 m = matched ? right->group.rows : 0;
	const int64 rows = rows_of(state->type, n, m);

	if (rows == 0)
		return;
	if (pg_add_s64_overflow(state->total_rows, rows, &state->total_rows))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	if (gpuds_merge_is_set(state->type))
		return;
	add_partial(left, rows / n);
	if (m > 0 && state->type != GPUDS_MERGE_SEMI)
		add_partial(right, n);
}

/* Goes on to the next row of the result; false: there is none.  Without groups there is one. */
static bool
next_row(GpudsMergeState *state)
{
	bool matched;

	clear_totals(state);
	if (state->grouped)
	{
		while (state->total_rows == 0)
		{
			if (!next_key(state, &matched))
				return false;
			add_key(state, matched);
		}
		return true;
	}
	state->total_rows = state->joined_rows;
	while (next_key(state, &matched))
		add_key(state, matched);
	state->done = true;
	return true;
}

/* Finds out what the sides are joined by, when their indexes are known. */
static void
set_keys(GpudsMergeState *state)
{
	const CustomScan *plan = (const CustomScan *) state->css.ss.ps.plan;
	List *keys = list_nth(plan->custom_private, MERGE_KEYS);
	int columns[MERGE_SIDES][GPUDS_KEY_MAX_COLUMNS]; /* as many as differ, of an index */
	const int n = list_length(linitial(keys));

	for (int i = 0; i < MERGE_SIDES; i++)
	{
		MergeSide *side = &state->sides[i];

		for (int k = 0; k < n; k++)
			columns[i][k] = list_nth_int(list_nth(keys, i), k);
		gpuds_join_key_init(&side->key, gpuds_aggregate_layout(side->agg), columns[i], n);
		side->total = palloc(Max(side->agg->nagg, 1) * sizeof(PartialAgg));
		side->is_wide = palloc(Max(side->agg->nagg, 1) * sizeof(bool));
	}
	if (!gpuds_join_key_agrees(state->sides[MERGE_LEFT].key.layout, columns[MERGE_LEFT],
							   state->sides[MERGE_RIGHT].key.layout, columns[MERGE_RIGHT], n))
		elog(ERROR, "keys of indexes differ");
	if (state->probes && !gpuds_join_key_probe_init(&state->other->key, &state->probe))
		elog(ERROR, "join columns do not lead an index");
}

/* What a device is to count for a key. */
static EntryJoinKind
join_kind(GpudsMergeType type)
{
	switch (type)
	{
		case GPUDS_MERGE_LEFT:
			return ENTRY_JOIN_LEFT;
		case GPUDS_MERGE_SEMI:
			return ENTRY_JOIN_SEMI;
		case GPUDS_MERGE_ANTI:
			return ENTRY_JOIN_ANTI;
		default:
			return ENTRY_JOIN_INNER;
	}
}

static int
compare_groups(const void *a, const void *b)
{
	return gpuds_join_value_compare(&((const MergeGroup *) a)->value, &((const MergeGroup *) b)->value);
}

/* Makes groups of what a device has left, in order, each key once. */
static void
group_left(GpudsMergeState *state, const GpudsJoined *joined)
{
	MergeSide *driver = state->driver;
	MergeGroup *groups = MemoryContextAllocHuge(CurrentMemoryContext,
												Max(joined->nleft, 1) * sizeof(MergeGroup));
	int64 n = 0;

	driver->rows += joined->seen;
	for (int64 i = 0; i < joined->nleft; i++)
	{
		groups[i].first = joined->left[i].first;
		groups[i].rows = (int64) joined->left[i].rows;
		groups[i].has_null = !gpuds_join_key_value(&driver->key, &groups[i].first, &groups[i].value);
	}
	if (joined->nleft > 1)
		qsort(groups, joined->nleft, sizeof(MergeGroup), compare_groups);
	for (int64 i = 0; i < joined->nleft; i++)
	{
		if (n > 0 && compare_groups(&groups[n - 1], &groups[i]) == 0)
			groups[n - 1].rows += groups[i].rows;
		else
			groups[n++] = groups[i];
	}
	state->left_groups = groups;
	state->nleft = n;
	driver->groups += n;
}

/* Begins with all that the other side has, unless it has begun. */
static void
begin_other(GpudsMergeState *state)
{
	if (!state->other->agg->aggregating)
		gpuds_aggregate_begin(state->other->agg, NULL, NULL, 0);
}

/*
 * Has a device join the sides, of which the driving one has begun, but for a few groups; false: it does not.
 */
static bool
join_on_device(GpudsMergeState *state)
{
	GpudsAggregateState *driver = state->driver->agg;
	GpudsAggregateState *other = state->other->agg;
	GpudsJoined joined;
	EntryJoin join;

	if (!state->asks || !gpuds_entry_agg_may_join(&driver->agg) ||
		!gpuds_join_key_moves(&state->driver->key, &state->other->key, &join))
		return false;
	join.kind = join_kind(state->type);
	begin_other(state);
	if (!gpuds_entry_agg_join(&driver->agg, &other->agg, &join, &joined))
		return false;
	if (joined.rows > PG_INT64_MAX)
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	state->joined_rows = (int64) joined.rows;
	group_left(state, &joined);
	pfree(joined.left);
	(void) gpuds_join_key_probe_init(&state->other->key, &state->probe);
	state->joined = state->probes = true;
	return true;
}

/* Begins with the first groups. */
static void
begin_merge(GpudsMergeState *state)
{
	if (state->sides[MERGE_LEFT].total == NULL)
		set_keys(state);
	gpuds_aggregate_begin(state->driver->agg, NULL, NULL, 0);
	if (!join_on_device(state) && !state->probes)
		begin_other(state);
	state->begun = true;
}

/* Frees what the sides have, with all groups taken or not. */
static void
end_merge(GpudsMergeState *state)
{
	for (int i = 0; i < MERGE_SIDES; i++)
		gpuds_aggregate_end(state->sides[i].agg);
}

static void
start_sides(GpudsMergeState *state)
{
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		MergeSide *side = &state->sides[i];

		if (side->node->chgParam != NULL)
			ExecReScan(side->node);
		gpuds_aggregate_start(side->agg);
		side->groups = side->rows = 0;
	}
}

static void
stop_sides(GpudsMergeState *state)
{
	for (int i = MERGE_SIDES - 1; i >= 0; i--)
		gpuds_aggregate_stop(state->sides[i].agg, state->sides[i].groups, state->sides[i].rows);
}

/* The value of a side's column in the row at hand, in the current memory context. */
static Datum
value_of(MergeSide *side, int at, const Datum *values, const bool *isnull, bool *is_null)
{
	const GpudsAggregateColumn *column = &side->agg->columns[at];

	*is_null = false;
	if (column->kind == GPUDS_COUNT_ROWS)
		return Int64GetDatum(side->total_rows);
	if (column->kind == GPUDS_GROUP_COLUMN)
	{
		*is_null = isnull[column->column];
		return values[column->column];
	}
	if (side->is_wide[column->agg_column] && column->kind != GPUDS_COUNT && column->kind != GPUDS_MIN &&
		column->kind != GPUDS_MAX)
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("sum is out of range"),
						errdetail("So many rows of a join cannot be added up from an index."),
						errhint("Turn gpuds.enable_aggregate off for this query.")));
	return gpuds_aggregate_result(side->agg, column, side->total, is_null);
}

/* Stores the row at hand. */
static TupleTableSlot *
store_row(GpudsMergeState *state, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
	Datum values[MERGE_SIDES][GPUDS_KEY_MAX_COLUMNS];
	bool isnull[MERGE_SIDES][GPUDS_KEY_MAX_COLUMNS];

	for (int i = 0; i < MERGE_SIDES; i++)
	{
		MergeSide *side = &state->sides[i];

		if (side->shows)
			(void) gpuds_key_decode(side->key.layout, &side->group.first, NULL, side->bytes, values[i],
									isnull[i]);
	}
	for (int i = 0; i < list_length(state->of); i++)
	{
		const int of = list_nth_int(state->of, i);

		slot->tts_isnull[i] = false;
		if (of == MERGE_BOTH)
			slot->tts_values[i] = Int64GetDatum(state->total_rows);
		else
			slot->tts_values[i] = value_of(&state->sides[of], list_nth_int(state->columns, i), values[of],
										   isnull[of], &slot->tts_isnull[i]);
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/* The node's next row. */
static TupleTableSlot *
next(ScanState *ss)
{
	GpudsMergeState *state = (GpudsMergeState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	MemoryContext old;
	bool found;
	bool noted; /* what the sides do now is, or may be, theirs in EXPLAIN */

	ExecClearTuple(slot);
	if (state->repeats > 0)
	{
		state->repeats--;
		return store_row(state, slot);
	}
	if (state->done)
		return slot;
	old = MemoryContextSwitchTo(ss->ps.state->es_query_cxt);
	noted = !state->begun || ss->ps.instrument != NULL;
	if (noted)
		start_sides(state);
	if (!state->begun)
		begin_merge(state);
	found = next_row(state);
	if (!found || state->done)
	{
		state->done = true;
		end_merge(state);
	}
	if (noted)
		stop_sides(state);
	MemoryContextSwitchTo(old);
	if (!found)
		return slot;
	if (gpuds_merge_is_set(state->type))
		state->repeats = state->total_rows - 1;
	return store_row(state, slot);
}

/* Core asks for this when a statement looks at a changed row once more (EvalPlanQual). */
static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	slot = next(ss);
	return !TupIsNull(slot);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	return ExecScan(&css->ss, next, recheck);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsMergeState *state = (GpudsMergeState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List *how = list_nth(plan->custom_private, MERGE_HOW);
	const int driver = lsecond_int(how);

	/* Core would call these, and ask first. */
	gpuds_check_execute(plan->custom_scan_tlist);
	gpuds_check_execute(list_nth(plan->custom_private, MERGE_CLAUSES));
	state->type = (GpudsMergeType) linitial_int(how);
	state->plan_probes = state->probes = lthird_int(how) == GPUDS_MERGE_PROBE;
	state->grouped = lfourth_int(how);
	state->asks = list_nth_int(how, 4);
	state->of = list_nth(plan->custom_private, MERGE_OF);
	state->columns = list_nth(plan->custom_private, MERGE_COLUMNS);
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		MergeSide *side = &state->sides[i];

		side->node = ExecInitNode(list_nth(plan->custom_plans, i), estate, eflags);
		css->custom_ps = lappend(css->custom_ps, side->node);
		side->agg = aggregate_of(side->node);
		side->shows = state->grouped && list_member_int(state->of, i);
	}
	state->driver = &state->sides[driver];
	state->other = &state->sides[MERGE_SIDES - 1 - driver];
}

static void
end(CustomScanState *css)
{
	GpudsMergeState *state = (GpudsMergeState *) css;

	for (int i = 0; i < MERGE_SIDES; i++)
		ExecEndNode(state->sides[i].node);
}

static void
rescan(CustomScanState *css)
{
	GpudsMergeState *state = (GpudsMergeState *) css;

	end_merge(state);
	state->begun = state->done = false;
	state->repeats = 0;
	state->at = state->nbatch = 0;
	state->probes = state->plan_probes;
	if (state->left_groups)
		pfree(state->left_groups);
	state->left_groups = NULL;
	state->joined = false;
	state->joined_rows = state->nleft = state->next_left = 0;
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		state->sides[i].has = state->sides[i].ended = false;
		gpuds_child_scan_rescan(state->sides[i].node, css->ss.ps.chgParam);
	}
	ExecScanReScan(&css->ss);
}

static const char *
name_of(GpudsMergeType type)
{
	static const char *const names[] = { "Inner",     "Left",          "Semi",   "Anti",
										 "Intersect", "Intersect All", "Except", "Except All" };

	return names[type];
}

/* Rows and heap fetches are shown at the scans below. */
static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GpudsMergeState *state = (const GpudsMergeState *) css;

	ExplainPropertyText(gpuds_merge_is_set(state->type) ? "Command" : "Join Type", name_of(state->type), es);
	if (state->plan_probes)
		ExplainPropertyText("Probes", state->other == &state->sides[MERGE_LEFT] ? "Outer" : "Inner", es);
	if (es->analyze && state->joined)
		ExplainPropertyInteger("Keys Left by Device", NULL, state->nleft, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsMerge",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsMergeState *state = (GpudsMergeState *) newNode(sizeof(GpudsMergeState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_merge_methods = {
	.CustomName = "GpudsMerge",
	.CreateCustomScanState = create_state,
};
