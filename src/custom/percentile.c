/*-------------------------------------------------------------------------
 *
 * percentile.c
 *	  GpudsPercentile: values at ranks of the rows of index scans.
 *
 * The node has an index scan of core's making below it for each order that percentiles are of, or one for
 * each child of a table.  It counts
 * the scan's rows, none of which is NULL there, and so knows the ranks.  It moves the scan behind the rows
 * before a rank, as GpudsOffset does, and has core give the row there.  Ranks are visited in ascending
 * order, so a scan goes through its rows once at most.
 *
 * All other aggregates of the query are another plan's below, of which the node has the columns as they are.
 * Rows are grouped by that plan, too, if they are: then groups follow each other in the scan as they come,
 * and the plan has their counts.  The rows of all ranks, of
 * many groups or of one scan, are found at once if they can be (percentile_ahead.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "custom/child_rows.h"
#include "custom/custom.h"
#include "custom/percentile.h"
#include "custom/percentile_ahead.h"

/* Rows in an order. */
typedef struct PercentileScan
{
	GpudsChildRows below;
	double expected; /* rows, about */
	int64 rows;      /* that have ranks */
	int64 first;     /* of the scan's rows, the one of rank 0 */
	int64 position;  /* rows that have been given or skipped */
	int ncolumns;
	GpudsRankedType *types; /* of its columns */
	GpudsRanks wanted;
	GpudsGroupsAhead ahead;
} PercentileScan;

/* A column of the scan tuple. */
typedef struct PercentileColumn
{
	PercentileScan *scan; /* NULL: it is the other plan's */
	int column;           /* of the scan, or of the other plan */
	ExprState *fraction;  /* NULL: it has none */
	bool is_array;
	GpudsPercentile percentile;
} PercentileColumn;

typedef struct GpudsPercentileState
{
	CustomScanState css;
	int ncolumns;
	PercentileColumn *columns;
	int nscans;
	PercentileScan *scans;
	PlanState *others; /* NULL: there are none */
	bool grouped;
	int groups[PERCENTILE_NULLS_FIRST + 1]; /* GpudsPercentileGroups */
	int64 behind;                           /* rows of the groups that have been given */
	bool done;
	int64 counted; /* rows that were counted or skipped, over rescans */
	GpudsNodeCounters counters;
} GpudsPercentileState;

/* Counts the rows of all scans. */
static void
count_rows(GpudsPercentileState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	for (int i = 0; i < state->nscans; i++)
	{
		PercentileScan *scan = &state->scans[i];

		scan->rows = gpuds_child_rows_count(&scan->below, scan->expected);
		scan->first = scan->position = 0;
		scan->wanted = (GpudsRanks){ 0 };
		state->counted += scan->rows;
	}
	MemoryContextSwitchTo(old);
}

static int64
count_of(TupleTableSlot *slot, int column)
{
	bool isnull;

	return DatumGetInt64(slot_getattr(slot, column + 1, &isnull));
}

/* Turns to the rows of a group, which the other plan has counted. */
static void
begin_group(GpudsPercentileState *state, TupleTableSlot *others)
{
	PercentileScan *scan = &state->scans[0];
	const int64 rows = count_of(others, state->groups[PERCENTILE_GROUP_ROWS]);

	scan->rows = count_of(others, state->groups[PERCENTILE_GROUP_NOT_NULL]);
	scan->first = state->behind + (state->groups[PERCENTILE_NULLS_FIRST] ? rows - scan->rows : 0);
	if (state->behind == 0)
		scan->position = 0;
	scan->wanted = (GpudsRanks){ 0 };
	state->behind += rows;
}

/* Finds out which ranks are wanted. */
static void
pick_ranks(GpudsPercentileState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;

	for (int i = 0; i < state->ncolumns; i++)
	{
		PercentileColumn *column = &state->columns[i];
		Datum fraction;
		bool isnull;

		if (column->scan == NULL || column->percentile.kind == GPUDS_PERCENTILE_COUNT)
			continue;
		if (column->fraction == NULL)
			gpuds_percentile_pick_end(column->scan->rows, &column->percentile);
		else
		{
			fraction = ExecEvalExpr(column->fraction, context, &isnull);
			gpuds_percentile_pick(fraction, isnull, column->is_array, column->scan->rows,
								  &column->percentile);
		}
		gpuds_percentile_collect(&column->percentile, &column->scan->wanted);
	}
}

/* A row's columns, in the current memory context. */
static Datum *
copy_values(const PercentileScan *scan, TupleTableSlot *slot)
{
	Datum *values = palloc(scan->ncolumns * sizeof(Datum));

	for (int i = 0; i < scan->ncolumns; i++)
	{
		bool isnull;

		values[i] = slot_getattr(slot, i + 1, &isnull);
		if (isnull)
			elog(ERROR, "row of a rank has no value");
		values[i] = datumCopy(values[i], scan->types[i].by_value, scan->types[i].length);
	}
	return values;
}

/* A scan's row of a rank that it has not come to yet. */
static TupleTableSlot *
row_at(GpudsPercentileState *state, PercentileScan *scan, int64 rank)
{
	const int64 row = scan->first + rank;
	TupleTableSlot *slot;

	if (row > scan->position)
	{
		const int64 skipped = gpuds_child_rows_skip(&scan->below, row - scan->position);

		scan->position += skipped;
		state->counted += skipped;
	}
	do
	{
		slot = gpuds_child_rows_next(&scan->below);
		if (TupIsNull(slot))
			elog(ERROR, "missing row of rank " INT64_FORMAT, rank);
	} while (scan->position++ < row);
	return slot;
}

/*
 * Its columns, of the i-th rank that is wanted, in the current memory context.  What the scan makes as it
 * begins outlives that.
 */
static Datum *
values_at(GpudsPercentileState *state, PercentileScan *scan, int64 i)
{
	TupleTableSlot *slot = gpuds_ahead_row(&scan->ahead, i);
	MemoryContext old;

	if (slot == NULL)
	{
		old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
		slot = row_at(state, scan, scan->wanted.ranks[i].rank);
		MemoryContextSwitchTo(old);
	}
	return copy_values(scan, slot);
}

/* Has scans give the values of all ranks that are wanted. */
static void
fetch_values(GpudsPercentileState *state)
{
	for (int i = 0; i < state->nscans; i++)
	{
		PercentileScan *scan = &state->scans[i];

		gpuds_percentile_sort(&scan->wanted);
		if (!state->grouped)
			gpuds_ahead_find_of_all(&scan->ahead, scan->rows, &scan->wanted);
		for (int64 j = 0; j < scan->wanted.n; j++)
			scan->wanted.ranks[j].values = values_at(state, scan, j);
	}
}

/* The value of a column of the scan tuple.  others: the other plan's row. */
static Datum
value_of(const PercentileColumn *column, TupleTableSlot *others, bool *isnull)
{
	const PercentileScan *scan = column->scan;

	if (scan == NULL)
		return slot_getattr(others, column->column + 1, isnull);
	*isnull = false;
	if (column->percentile.kind == GPUDS_PERCENTILE_COUNT)
		return Int64GetDatum(scan->rows);
	*isnull = column->percentile.isnull;
	return *isnull ? (Datum) 0
				   : gpuds_percentile_value(&column->percentile, &scan->wanted, column->column,
											&scan->types[column->column]);
}

/* The other plan's next row, if there is such a plan; state->done: this is the last one, or there is none. */
static TupleTableSlot *
next_others(GpudsPercentileState *state)
{
	TupleTableSlot *others;

	state->done = !state->grouped;
	if (state->others == NULL)
		return NULL;
	others = ExecProcNode(state->others);
	if (!TupIsNull(others))
		return others;
	if (!state->grouped)
		elog(ERROR, "missing row of aggregates");
	state->done = true;
	return NULL;
}

/* Takes groups ahead, and has the rows of their ranks found. */
static void
take_ahead(GpudsPercentileState *state)
{
	const int64 behind = state->behind;
	PercentileScan *scan = &state->scans[0];
	GpudsGroupsAhead *ahead = &scan->ahead;
	TupleTableSlot *others;

	while (gpuds_ahead_more(ahead) && (others = next_others(state)) != NULL)
	{
		const int64 before = state->behind;
		MemoryContext old;

		begin_group(state, others);
		old = MemoryContextSwitchTo(state->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);
		pick_ranks(state);
		gpuds_percentile_sort(&scan->wanted);
		MemoryContextSwitchTo(old);
		gpuds_ahead_add(ahead, others, state->behind - before, scan->first - before, &scan->wanted);
	}
	gpuds_ahead_find(ahead);
	ahead->end = state->done;
	state->done = false;
	state->behind = behind;
}

/* Turns to the next group, and returns the other plan's row of it; NULL: there is none. */
static TupleTableSlot *
next_group(GpudsPercentileState *state)
{
	GpudsGroupsAhead *ahead = &state->scans[0].ahead;
	TupleTableSlot *others = gpuds_ahead_next(ahead);

	if (others == NULL && !ahead->end)
	{
		if (gpuds_ahead_more(ahead))
			take_ahead(state);
		others = gpuds_ahead_next(ahead);
		if (others == NULL && !ahead->end)
			others = next_others(state);
	}
	if (others)
		begin_group(state, others);
	else
		state->done = true;
	return others;
}

/* The node's next row. */
static TupleTableSlot *
next(ScanState *ss)
{
	GpudsPercentileState *state = (GpudsPercentileState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	TupleTableSlot *others;
	MemoryContext old;

	ExecClearTuple(slot);
	if (state->done)
		return slot;
	others = state->grouped ? next_group(state) : next_others(state);
	if (state->grouped && others == NULL)
		return slot;
	if (!state->grouped)
		count_rows(state);
	old = MemoryContextSwitchTo(ss->ps.ps_ExprContext->ecxt_per_tuple_memory);
	pick_ranks(state);
	fetch_values(state);
	for (int i = 0; i < state->ncolumns; i++)
		slot->tts_values[i] = value_of(&state->columns[i], others, &slot->tts_isnull[i]);
	MemoryContextSwitchTo(old);
	/* Fractions are right that have been looked at: those of other groups raise no errors. */
	if (state->grouped && state->scans[0].rows > 0)
		gpuds_ahead_allow(&state->scans[0].ahead);
	return ExecStoreVirtualTuple(slot);
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
begin_scan(PercentileScan *scan, PlanState *child, const List *merging, double expected)
{
	ListCell *lc;

	gpuds_child_rows_begin(&scan->below, child, merging);
	scan->expected = expected;
	scan->ncolumns = list_length(child->plan->targetlist);
	scan->types = palloc(scan->ncolumns * sizeof(GpudsRankedType));
	foreach (lc, child->plan->targetlist)
	{
		GpudsRankedType *type = &scan->types[foreach_current_index(lc)];

		type->oid = exprType((const Node *) lfirst_node(TargetEntry, lc)->expr);
		get_typlenbyvalalign(type->oid, &type->length, &type->by_value, &type->align);
	}
}

static void
begin_columns(GpudsPercentileState *state, const CustomScan *plan)
{
	List *kinds = list_nth(plan->custom_private, PERCENTILE_KINDS);
	List *scans = list_nth(plan->custom_private, PERCENTILE_SCANS);
	List *columns = list_nth(plan->custom_private, PERCENTILE_COLUMNS);
	int nfractions = 0;

	state->ncolumns = list_length(kinds);
	state->columns = palloc0(state->ncolumns * sizeof(PercentileColumn));
	for (int i = 0; i < state->ncolumns; i++)
	{
		PercentileColumn *column = &state->columns[i];

		column->percentile.kind = list_nth_int(kinds, i);
		column->column = list_nth_int(columns, i);
		if (column->percentile.kind != GPUDS_PERCENTILE_OTHER)
			column->scan = &state->scans[list_nth_int(scans, i)];
		if (gpuds_percentile_has_fraction(column->percentile.kind))
		{
			Expr *fraction = list_nth(plan->custom_exprs, nfractions++);

			column->fraction = ExecInitExpr(fraction, &state->css.ss.ps);
			column->percentile.descends = gpuds_percentile_descends(
				castNode(Aggref, list_nth_node(TargetEntry, plan->custom_scan_tlist, i)->expr));
			column->is_array = exprType((const Node *) fraction) == FLOAT8ARRAYOID;
		}
	}
}

/* Prepares to find the rows of ranks, as far as these are known before rows come. */
static void
begin_ahead(GpudsPercentileState *state, const CustomScan *plan)
{
	/* Of groups ahead, the fractions are evaluated twice. */
	if (state->grouped && (contain_volatile_functions((Node *) plan->custom_exprs) ||
						   contain_subplans((Node *) plan->custom_exprs)))
		return;
	for (int i = 0; i < state->nscans; i++)
	{
		PercentileScan *scan = &state->scans[i];

		gpuds_ahead_begin(&scan->ahead, state->grouped ? state->others : NULL, scan->below.below,
						  scan->expected);
	}
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsPercentileState *state = (GpudsPercentileState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List *expected = list_nth(plan->custom_private, PERCENTILE_EXPECTED);
	List *merging = list_nth(plan->custom_private, PERCENTILE_MERGING);
	ListCell *lc;

	/* Core would call these, and ask first. */
	gpuds_check_execute(plan->custom_scan_tlist);
	state->nscans = list_length(expected);
	state->scans = palloc0(state->nscans * sizeof(PercentileScan));
	foreach (lc, plan->custom_plans)
	{
		const int i = foreach_current_index(lc);
		PlanState *child = ExecInitNode(lfirst(lc), estate, eflags);

		css->custom_ps = lappend(css->custom_ps, child);
		if (i < state->nscans)
			begin_scan(&state->scans[i], child, list_nth(merging, i), floatVal(list_nth(expected, i)));
		else
			state->others = child;
	}
	begin_columns(state, plan);
	foreach (lc, (List *) list_nth(plan->custom_private, PERCENTILE_GROUPS))
		state->groups[foreach_current_index(lc)] = lfirst_int(lc);
	state->grouped = list_nth(plan->custom_private, PERCENTILE_GROUPS) != NIL;
	begin_ahead(state, plan);
}

static void
end(CustomScanState *css)
{
	GpudsPercentileState *state = (GpudsPercentileState *) css;
	ListCell *lc;

	for (int i = 0; i < state->nscans; i++)
		gpuds_ahead_reset(&state->scans[i].ahead);
	foreach (lc, css->custom_ps)
		ExecEndNode(lfirst(lc));
}

static void
rescan(CustomScanState *css)
{
	GpudsPercentileState *state = (GpudsPercentileState *) css;

	state->done = false;
	state->behind = 0;
	for (int i = 0; i < state->nscans; i++)
	{
		gpuds_ahead_reset(&state->scans[i].ahead);
		gpuds_child_rows_rescan(&state->scans[i].below, css->ss.ps.chgParam);
	}
	if (state->others)
		gpuds_child_scan_rescan(state->others, css->ss.ps.chgParam);
	ExecScanReScan(&css->ss);
}

/* Heap fetches are shown at the scans below, and the rows that they have given. */
static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GpudsPercentileState *state = (GpudsPercentileState *) css;
	GpudsScanCounters own = { 0 };
	int64 found = 0;

	for (int i = 0; i < state->nscans; i++)
	{
		const PercentileScan *scan = &state->scans[i];
		const GpudsScanCounters of_scan = gpuds_child_rows_counters(&scan->below);

		gpuds_counters_add(&own, &of_scan);
		gpuds_counters_add(&own, &scan->ahead.counters);
		if (scan->ahead.scan)
			gpuds_counters_add(&own, gpuds_scan_counters(scan->ahead.scan));
		found += scan->ahead.found;
	}
	if (es->analyze)
		ExplainPropertyInteger("Rows Counted", NULL, state->counted, es);
	if (es->analyze && found > 0)
		ExplainPropertyInteger("Rows Found by Rank", NULL, found, es);
	gpuds_explain_above_scan(&state->counters, &own, &css->ss.ps, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsPercentile",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsPercentileState *state = (GpudsPercentileState *) newNode(sizeof(GpudsPercentileState),
																   T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_percentile_methods = {
	.CustomName = "GpudsPercentile",
	.CreateCustomScanState = create_state,
};
