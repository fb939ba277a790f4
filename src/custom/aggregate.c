/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  GpudsAggregate: aggregates of the rows of an index scan, without returning any of them.
 *
 * A row of the node is a group of rows of the scan below.  Groups come in the order of the index, or in none
 * if they are hashed.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "access/stratnum.h"
#include "catalog/pg_opfamily_d.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "custom/aggregate.h"
#include "custom/custom.h"
#include "index/index.h"
#include "reader/reader.h"

static PlanState *
child_scan_of(CustomScanState *css)
{
	return linitial(css->custom_ps);
}

static bool
has_groups(const GpudsAggregateState *state)
{
	return state->ngroup_columns >= 0;
}

/* The aggregated column that a column of the scan tuple has in common with one before it; -1: with none. */
static int
agg_column_like(const GpudsAggregateState *state, int i)
{
	const GpudsAggregateColumn *column = &state->columns[i];

	for (int j = 0; j < i; j++)
	{
		const GpudsAggregateColumn *other = &state->columns[j];

		/* A sum will do with what a variance has, but not the other way round. */
		if (other->agg_column >= 0 && other->column == column->column &&
			(other->kind == GPUDS_COUNT) == (column->kind == GPUDS_COUNT) &&
			(other->kind == GPUDS_PART_VARIANCE || column->kind != GPUDS_PART_VARIANCE) &&
			equal(other->filter, column->filter) && equal(other->parts.value, column->parts.value) &&
			equal(other->parts.other, column->parts.other))
			return other->agg_column;
	}
	return -1;
}

/* Aggregated columns that a column of the scan tuple has at most. */
#define MOST_OF_ONE (1 + GPUDS_KEY_SQUARES)

/*
 * What is added up of a column of the scan tuple, and squares of it, or ones of the rows that have a CASE's
 * constant.
 */
static int
make_agg_columns(const GpudsAggregateState *state, const GpudsAggregateColumn *column, AggColumn *made)
{
	const bool counts = column->kind == GPUDS_COUNT;

	if (gpuds_aggregate_adds_case(column->kind, &column->parts))
	{
		const int values = column->column >= 0;

		if (values)
			gpuds_key_agg_column(&state->layout, column->column, made);
		gpuds_key_agg_column_integers(sizeof(int16), &made[values]);
		return values + 1;
	}
	if (column->column < 0 && !counts)
		gpuds_key_agg_column_integers(get_typlen(column->parts.type), made);
	else if (column->column < 0)
		gpuds_key_agg_column_rows(made);
	else if (counts)
		gpuds_key_agg_column_nulls(&state->layout, column->column, made);
	else
		gpuds_key_agg_column(&state->layout, column->column, made);
	return column->kind == GPUDS_PART_VARIANCE ? 1 + gpuds_key_agg_column_squares(made, made + 1) : 1;
}

/* What is to be aggregated, now that the index is known. */
static void
set_agg_columns(GpudsAggregateState *state, Relation index)
{
	const int most = MOST_OF_ONE * state->ncolumns;

	state->layout = state->decoded = gpuds_index_info(index)->layout;
	state->decoded.ncolumns = 0;
	state->agg_columns = palloc(most * sizeof(AggColumn));
	state->agg_columns_of = palloc(most * sizeof(int));
	for (int i = 0; i < state->ncolumns; i++)
	{
		GpudsAggregateColumn *column = &state->columns[i];
		int made;

		if (column->kind == GPUDS_GROUP_COLUMN)
			state->decoded.ncolumns = Max(state->decoded.ncolumns, column->column + 1);
		if (column->kind == GPUDS_GROUP_COLUMN || column->kind == GPUDS_GROUP_BUCKET ||
			column->kind == GPUDS_COUNT_ROWS)
			continue;
		column->agg_column = agg_column_like(state, i);
		if (column->agg_column >= 0)
			continue;
		column->agg_column = state->nagg;
		made = make_agg_columns(state, column, &state->agg_columns[state->nagg]);
		while (made-- > 0)
			state->agg_columns_of[state->nagg++] = column->column;
		/* how many rows have a CASE's constant */
		if (gpuds_aggregate_adds_case(column->kind, &column->parts))
			state->agg_columns_of[state->nagg - 1] = -1;
	}
	state->group.partial = palloc(Max(state->nagg, 1) * sizeof(PartialAgg));
}

/* What entries of a hashed group agree in: the bits of columns, NULL bits, and side values. */
static void
set_group_key(GpudsAggregateState *state)
{
	memset(&state->group_key, 0, sizeof(state->group_key));
	for (int i = 0; i < state->ncolumns; i++)
	{
		if (state->columns[i].kind == GPUDS_GROUP_COLUMN)
			gpuds_key_column_bits_of(&state->layout, state->columns[i].column, &state->group_key.entry,
									 (uint8 *) state->group_key.side);
	}
}

/* What is added in the place of an aggregated column; last: it is the last one of several. */
static void
make_agg_case(const GpudsAggregateColumn *column, const AggColumn *agg_column, bool last,
			  GpudsEntryAggCase *of)
{
	const GpudsAggregateCase *parts = &column->parts;

	if (gpuds_aggregate_adds_case(column->kind, parts))
	{
		of->has_value = last;
		of->has_other = last && parts->other != NULL;
		of->other = 1;
		return;
	}
	/* A count needs no more than the filter. */
	of->has_value = parts->value != NULL && column->kind != GPUDS_COUNT;
	if (of->has_value)
		of->value = gpuds_aggregate_bits(agg_column, parts->value);
	of->has_other = parts->other != NULL;
	if (of->has_other)
		of->other = gpuds_aggregate_bits(agg_column, parts->other);
}

/* Makes the filter of an aggregate, which all of its columns have. */
static void
make_agg_filter(GpudsAggregateState *state, const GpudsAggregateColumn *column, Relation index)
{
	const int first = column->agg_column;
	GpudsRowFilter *filter;
	AggColumn made[MOST_OF_ONE];
	int last;

	if (state->agg_filters[first] != NULL)
		return;
	filter = gpuds_filter_make((const Node *) column->filter, &state->layout, index, &state->css.ss.ps);
	last = first + make_agg_columns(state, column, made) - 1;
	for (int i = first; i <= last; i++)
	{
		state->agg_filters[i] = filter;
		make_agg_case(column, &state->agg_columns[i], i == last, &state->agg_cases[i]);
	}
}

/* Makes the filters, with the parameters as they are. */
static void
make_filters(GpudsAggregateState *state, Relation index)
{
	PlanState *child = child_scan_of(&state->css);
	MemoryContext old;

	if (state->filter_context)
		MemoryContextReset(state->filter_context);
	else
		state->filter_context = AllocSetContextCreate(CurrentMemoryContext, "gpuds filters",
													  ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(state->filter_context);
	state->entry_filter = state->side_filter = NULL;
	state->agg_filters = NULL;
	state->agg_cases = NULL;
	if (child->plan->qual != NIL)
		gpuds_row_filter_split(gpuds_filter_make((const Node *) child->plan->qual, &state->layout, index,
												 child),
							   &state->entry_filter, &state->side_filter);
	for (int i = 0; i < state->ncolumns; i++)
	{
		const GpudsAggregateColumn *column = &state->columns[i];

		if (column->filter == NIL)
			continue;
		if (state->agg_filters == NULL)
		{
			state->agg_filters = palloc0(state->nagg * sizeof(GpudsRowFilter *));
			state->agg_cases = palloc0(state->nagg * sizeof(GpudsEntryAggCase));
		}
		make_agg_filter(state, column, index);
	}
	MemoryContextSwitchTo(old);
}

/* The scan below, at its beginning. */
static IndexScanDesc
begin_scan(GpudsAggregateState *state)
{
	IndexScanDesc scan = gpuds_child_scan_begin(child_scan_of(&state->css));

	if (!gpuds_scan_is_exact(scan))
		elog(ERROR, "conditions of index \"%s\" are not exact", RelationGetRelationName(scan->indexRelation));
	if (state->agg_columns == NULL)
	{
		set_agg_columns(state, scan->indexRelation);
		if (state->bucket_at >= 0)
			gpuds_aggregate_set_bucket(state);
		if (state->hashed)
			set_group_key(state);
	}
	if (!state->aggregating)
		make_filters(state, scan->indexRelation);
	return scan;
}

static void
begin_agg(GpudsAggregateState *state, IndexScanDesc scan, double expected)
{
	GpudsEntryAggSpec spec = { .layout = &state->layout,
							   .nagg = state->nagg,
							   .agg_columns = state->agg_columns,
							   .columns = state->agg_columns_of,
							   .filters = state->agg_filters,
							   .cases = state->agg_cases,
							   .entry_filter = state->entry_filter,
							   .side_filter = state->side_filter };

	spec.groups.expected = state->expected_groups;
	if (state->hashed)
	{
		spec.groups.hashed = &state->group_key;
		spec.groups.whole = state->hashed == GPUDS_HASHED_WHOLE;
		spec.groups.arg = state;
		if (state->bucket_at >= 0)
		{
			spec.groups.run = gpuds_aggregate_bucket_run;
			spec.groups.restart = gpuds_aggregate_restart_runs;
			spec.groups.parts = gpuds_aggregate_bucket_parts;
		}
	}
	else
	{
		spec.groups.ncolumns = Max(state->ngroup_columns, 0);
		spec.groups.find = state->bucket_at >= 0 ? gpuds_bucket_find : NULL;
		spec.groups.arg = &state->bucket;
	}
	spec.least = state->least_rows;
	gpuds_entry_agg_begin(&state->agg, scan, &spec, expected);
	state->aggregating = true;
}

static void
end_agg(GpudsAggregateState *state)
{
	if (state->aggregating)
	{
		InstrCountFiltered1(child_scan_of(&state->css), state->agg.filtered);
		gpuds_entry_agg_end(&state->agg);
	}
	state->aggregating = false;
}

/* Counts the rows, which are one group that nothing else is wanted of. */
static int64
count_rows(GpudsAggregateState *state, IndexScanDesc scan)
{
	int64 fetches;

	state->group.rows = gpuds_scan_count(scan, state->expected, &fetches);
	state->done = true;
	return fetches;
}

/* Adds up the next group; *found: there is one.  Returns how many rows were looked up. */
static int64
aggregate_group(GpudsAggregateState *state, IndexScanDesc scan, bool *found)
{
	int64 fetches = 0;

	if (!state->aggregating)
		begin_agg(state, scan, state->expected);
	else
		fetches = -state->agg.visible.fetches;
	if (state->bucket_at >= 0 && !state->hashed)
		*found = gpuds_aggregate_next_bucket(state);
	else
		*found = gpuds_entry_agg_next(&state->agg, &state->group) || !has_groups(state);
	fetches += state->agg.visible.fetches;
	gpuds_scan_counters(scan)->fetches += fetches;
	if (!*found || !has_groups(state))
	{
		end_agg(state);
		state->done = true;
	}
	return fetches;
}

/* Sets state->group to the next one, if a device has given it; false: there is more to do. */
static inline bool
next_given(GpudsAggregateState *state)
{
	return state->aggregating && state->bucket_at < 0 && child_scan_of(&state->css)->instrument == NULL &&
		   gpuds_entry_agg_next_whole(&state->agg, &state->group);
}

/* Passes groups at hand that are too small for HAVING; returns how many rows they have. */
static int64
skip_small_groups(GpudsAggregateState *state)
{
	int64 rows;
	const int64 groups = gpuds_entry_agg_skip_small(&state->agg, state->least_rows, &rows);

	InstrCountFiltered1(&state->css, groups);
	return rows;
}

/* The same of what a device has left out meanwhile. */
static int64
take_left_out(GpudsAggregateState *state)
{
	const int64 rows = state->agg.left_out;

	InstrCountFiltered1(&state->css, rows);
	state->agg.left_out = 0;
	return rows;
}

/* Sets state->group to the next one; false: there is none. */
static bool
next_group(GpudsAggregateState *state)
{
	PlanState *child = child_scan_of(&state->css);
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	IndexScanDesc scan;
	bool found = true;
	int64 skipped = 0;
	int64 fetches;

	gpuds_child_scan_start(child);
	scan = begin_scan(state);
	if (state->aggregating && state->least_rows > 1)
		skipped = skip_small_groups(state);
	if (state->nagg == 0 && !has_groups(state) && !state->entry_filter && !state->side_filter)
		fetches = count_rows(state, scan);
	else
	{
		fetches = aggregate_group(state, scan, &found);
		skipped += take_left_out(state);
	}
	gpuds_child_scan_stop(child, skipped + (found ? state->group.rows : 0), fetches);
	MemoryContextSwitchTo(old);
	return found;
}

/*
 * Around the work of a node that takes the groups of this one itself, by gpuds_entry_agg_next.  Between the
 * two, the node begins and ends to aggregate.
 */
void
gpuds_aggregate_start(GpudsAggregateState *state)
{
	PlanState *node = &state->css.ss.ps;

	if (node->chgParam != NULL)
		ExecReScan(node);
	gpuds_child_scan_start(child_scan_of(&state->css));
	if (node->instrument)
		InstrStartNode(node->instrument);
}

/* Ends what gpuds_aggregate_start began: for EXPLAIN, so many groups of so many rows have been taken. */
void
gpuds_aggregate_stop(GpudsAggregateState *state, int64 groups, int64 rows)
{
	PlanState *node = &state->css.ss.ps;

	if (node->instrument)
		InstrStopNode(node->instrument, (double) groups);
	gpuds_child_scan_stop(child_scan_of(&state->css), rows, state->stopped_fetches);
	state->stopped_fetches = 0;
}

/*
 * Begins to aggregate the scan below, in a memory context that lives until it ends; probe: in place of its
 * keys, n probes, ascending and different.
 */
void
gpuds_aggregate_begin(GpudsAggregateState *state, const GpudsKeyProbe *probe, const GpudsEntry *probes,
					  int64 n)
{
	IndexScanDesc scan = begin_scan(state);

	if (probe)
		gpuds_scan_set_probes(scan, probe, probes, n);
	begin_agg(state, scan, probe ? (double) n : state->expected);
}

/* Ends it, with all groups taken or not. */
void
gpuds_aggregate_end(GpudsAggregateState *state)
{
	if (!state->aggregating)
		return;
	gpuds_scan_counters(state->agg.scan)->fetches += state->agg.visible.fetches;
	state->stopped_fetches += state->agg.visible.fetches;
	end_agg(state);
}

/* The layout of the index below, once it has been opened. */
const GpudsKeyLayout *
gpuds_aggregate_layout(GpudsAggregateState *state)
{
	(void) begin_scan(state);
	return &state->layout;
}

/* The kind of what is added up or compared in a column of the scan tuple; none, if rows are counted. */
static GpudsKeyKind
kind_of_values(const GpudsAggregateState *state, const GpudsAggregateColumn *column)
{
	if (column->column >= 0)
		return (GpudsKeyKind) state->layout.column[column->column].values;
	return column->parts.value ? gpuds_key_kind(column->parts.type) : GPUDS_KIND_NONE;
}

/* What an aggregate of the scan tuple is of partial aggregates of rows, in the current memory context. */
Datum
gpuds_aggregate_result(const GpudsAggregateState *state, const GpudsAggregateColumn *column,
					   const PartialAgg *partial, bool *isnull)
{
	const GpudsKeyKind values = kind_of_values(state, column);
	const AggColumn *agg_column = &state->agg_columns[column->agg_column];

	partial += column->agg_column;
	if (gpuds_aggregate_adds_case(column->kind, &column->parts))
		return gpuds_aggregate_case_value(column->kind, &column->parts, values, agg_column, partial, isnull);
	return gpuds_aggregate_value(column->kind, values, agg_column, partial, isnull);
}

/* The value of a column of the scan tuple, in the current memory context. */
static Datum
value_of(GpudsAggregateState *state, const GpudsAggregateColumn *column, bool *isnull)
{
	*isnull = false;
	if (column->kind == GPUDS_COUNT_ROWS)
		return Int64GetDatum(state->group.rows);
	return gpuds_aggregate_result(state, column, state->group.partial, isnull);
}

/* Sets state->group to the next one that is not too small for HAVING; false: there is none. */
static bool
next_wanted(GpudsAggregateState *state)
{
	while (!state->done && (next_given(state) || next_group(state)))
	{
		if (state->group.rows >= state->least_rows)
			return true;
		InstrCountFiltered1(&state->css, 1);
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* The node's next row. */
static TupleTableSlot *
next(ScanState *ss)
{
	GpudsAggregateState *state = (GpudsAggregateState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	MemoryContext old;
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];

	ExecClearTuple(slot);
	if (!next_wanted(state))
		return slot;
	old = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);
	if (has_groups(state) && (state->bucket_at < 0 || state->hashed))
		(void) gpuds_key_decode(&state->decoded, &state->group.first, state->group.side, state->bytes, values,
								isnull);
	for (int i = 0; i < state->ncolumns; i++)
	{
		const GpudsAggregateColumn *column = &state->columns[i];

		if (column->kind == GPUDS_GROUP_BUCKET && state->hashed)
		{
			slot->tts_values[i] = state->runs[state->group.run].value;
			slot->tts_isnull[i] = state->runs[state->group.run].isnull;
		}
		else if (column->kind == GPUDS_GROUP_BUCKET)
		{
			slot->tts_values[i] = state->held[state->next_held - 1].value;
			slot->tts_isnull[i] = state->held[state->next_held - 1].isnull;
		}
		else if (column->kind != GPUDS_GROUP_COLUMN)
			slot->tts_values[i] = value_of(state, column, &slot->tts_isnull[i]);
		else
		{
			slot->tts_values[i] = values[column->column];
			slot->tts_isnull[i] = isnull[column->column];
		}
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/*
 * Core asks for this when a statement looks at a changed row once more (EvalPlanQual); in some minor
 * releases for counts in its subqueries, too.
 */
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

/* Finds out what of a column of the scan tuple depends on conditions: FILTER, or a CASE. */
static void
set_conditions(const TargetEntry *entry, GpudsAggregateColumn *column)
{
	const Aggref *aggref = (const Aggref *) entry->expr;
	GpudsAggregateCase parts;

	column->filter = NIL;
	memset(&column->parts, 0, sizeof(column->parts));
	if (!IsA(aggref, Aggref))
		return;
	if (aggref->aggfilter)
		column->filter = list_make1(aggref->aggfilter);
	if (gpuds_aggregate_case(aggref, &parts))
	{
		column->parts = parts;
		column->filter = lappend(column->filter, (void *) parts.condition);
	}
}

/*
 * How many rows a group has at least if it passes a condition of the node's, a comparison of count(*) with a
 * constant; 0: any number.
 */
static int64
least_rows_of(const GpudsAggregateState *state, const OpExpr *condition)
{
	const Var *count;
	const Const *constant;
	int64 number;

	if (!IsA(condition, OpExpr) || list_length(condition->args) != 2)
		return 0;
	count = linitial(condition->args);
	constant = lsecond(condition->args);
	if (!IsA(count, Var) || count->varno != INDEX_VAR || !IsA(constant, Const) || constant->constisnull ||
		state->columns[count->varattno - 1].kind != GPUDS_COUNT_ROWS)
		return 0;
	switch (get_op_opfamily_strategy(condition->opno, INTEGER_BTREE_FAM_OID))
	{
		case BTGreaterStrategyNumber:
			number = gpuds_bucket_number(constant->consttype, constant->constvalue);
			return number == PG_INT64_MAX ? number : number + 1;
		case BTGreaterEqualStrategyNumber:
		case BTEqualStrategyNumber:
			return gpuds_bucket_number(constant->consttype, constant->constvalue);
		default:
			return 0;
	}
}

/*
 * The same for HAVING.  Core comes to evaluate a condition of rows that pass those before it, so no other
 * may be before the comparisons.
 */
static int64
least_rows(const GpudsAggregateState *state, const List *having)
{
	int64 least = 0;
	ListCell *lc;

	foreach (lc, having)
	{
		const int64 of_condition = least_rows_of(state, lfirst(lc));

		if (of_condition == 0)
			break;
		least = Max(least, of_condition);
	}
	return least;
}

/* Core would call these, and ask first: what is below its Agg, what groups are compared by, aggregates. */
static void
check_execute(const CustomScan *plan)
{
	List *groups = NIL;
	ListCell *lc;

	foreach (lc, plan->custom_scan_tlist)
	{
		Expr *expr = lfirst_node(TargetEntry, lc)->expr;

		if (!IsA(expr, Aggref))
			groups = lappend(groups, expr);
	}
	gpuds_check_execute(groups);
	gpuds_check_execute(list_nth(plan->custom_private, AGGREGATE_EQUALITIES));
	gpuds_check_execute(plan->custom_scan_tlist);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsAggregateState *state = (GpudsAggregateState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List *kinds = list_nth(plan->custom_private, AGGREGATE_KINDS);
	List *columns = list_nth(plan->custom_private, AGGREGATE_COLUMNS);
	List *expected = list_nth(plan->custom_private, AGGREGATE_EXPECTED);

	check_execute(plan);
	css->custom_ps = list_make1(ExecInitNode(linitial(plan->custom_plans), estate, eflags));
	state->ngroup_columns = linitial_int(list_nth(plan->custom_private, AGGREGATE_GROUPS));
	state->hashed = (GpudsHashed) linitial_int(list_nth(plan->custom_private, AGGREGATE_HASHED));
	state->expected = floatVal(linitial(expected));
	state->expected_groups = floatVal(lsecond(expected));
	state->ncolumns = list_length(kinds);
	state->bucket_at = -1;
	state->columns = palloc(state->ncolumns * sizeof(GpudsAggregateColumn));
	for (int i = 0; i < state->ncolumns; i++)
	{
		state->columns[i].kind = list_nth_int(kinds, i);
		state->columns[i].column = list_nth_int(columns, i);
		state->columns[i].agg_column = -1;
		set_conditions(list_nth(plan->custom_scan_tlist, i), &state->columns[i]);
		if (state->columns[i].kind == GPUDS_GROUP_BUCKET)
			state->bucket_at = i;
	}
	state->least_rows = least_rows(state, plan->scan.plan.qual);
}

static void
end(CustomScanState *css)
{
	end_agg((GpudsAggregateState *) css);
	ExecEndNode(child_scan_of(css));
}

static void
rescan(CustomScanState *css)
{
	GpudsAggregateState *state = (GpudsAggregateState *) css;

	end_agg(state);
	state->done = false;
	state->nruns = 0;
	state->nheld = state->next_held = 0;
	state->asked_device = false;
	gpuds_bucket_restart(&state->bucket);
	gpuds_child_scan_rescan(child_scan_of(css), css->ss.ps.chgParam);
	ExecScanReScan(&css->ss);
}

/* Rows and heap fetches are shown at the scan below. */
static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GpudsNodeCounters *counters = &((GpudsAggregateState *) css)->counters;
	const GpudsScanCounters own = gpuds_child_scan_counters(child_scan_of(css));

	gpuds_explain_above_scan(counters, &own, &css->ss.ps, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsAggregate",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsAggregateState *state = (GpudsAggregateState *) newNode(sizeof(GpudsAggregateState),
																 T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_aggregate_methods = {
	.CustomName = "GpudsAggregate",
	.CreateCustomScanState = create_state,
};

/*
 * The leading columns of the index that rows of a group agree in, if the node is a GpudsAggregate whose
 * groups come in the order of its index; else 0.
 */
int
gpuds_aggregate_leading_columns(const PlanState *node)
{
	const GpudsAggregateState *state = (const GpudsAggregateState *) node;

	if (!IsA(node, CustomScanState) || state->css.methods != &exec_methods || state->hashed ||
		state->bucket_at >= 0)
		return 0;
	return Max(state->ngroup_columns, 0);
}

/* An entry that has these columns of the group that such a node has returned last. */
const GpudsEntry *
gpuds_aggregate_group_entry(const PlanState *node)
{
	return &((const GpudsAggregateState *) node)->group.first;
}
