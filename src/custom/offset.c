/*-------------------------------------------------------------------------
 *
 * offset.c
 *	  GpudsOffset: rows of an index scan behind others that are counted, and not given.
 *
 * The node has an index scan of core's making below it, or one for each child of a table, moves that behind
 * the rows that OFFSET skips, as far as that is worth while, and has core go on with it.  So all that is
 * given comes from core's nodes, be it from the heap or from the index.  Up to there the node does what
 * core's Limit does.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "executor/executor.h"
#include "nodes/extensible.h"

#include "custom/child_rows.h"
#include "custom/custom.h"
#include "reader/reader.h"

/* Where the node stands. */
typedef enum OffsetPlace
{
	OFFSET_START,  /* nothing has been evaluated */
	OFFSET_EMPTY,  /* there are no rows */
	OFFSET_BEFORE, /* before the first row; so is the scan below, or it stands on that row */
	OFFSET_ON,     /* on a row */
	OFFSET_BEHIND, /* behind the last that the count allows, on which the scan below stands */
	OFFSET_END     /* behind the scan's last row */
} OffsetPlace;

typedef struct GpudsOffsetState
{
	CustomScanState css;
	ExprState *offset; /* NULL: none */
	ExprState *count;  /* the same */
	GpudsChildRows rows;
	OffsetPlace place;
	bool limited;         /* by the count: */
	int64 most;           /* rows that may be given */
	int64 at;             /* rows up to the one that the scan below stands on */
	TupleTableSlot *slot; /* the row that the scan below has given last */
	int64 skipped;        /* rows that were counted, over rescans */
	GpudsNodeCounters counters;
} GpudsOffsetState;

/* The value of OFFSET or LIMIT; false: there is none, or it is NULL. */
static bool
evaluate(const GpudsOffsetState *state, ExprState *expr, int64 *value)
{
	Datum datum;
	bool isnull;

	*value = 0;
	if (expr == NULL)
		return false;
	datum = ExecEvalExprSwitchContext(expr, state->css.ss.ps.ps_ExprContext, &isnull);
	if (!isnull)
		*value = DatumGetInt64(datum);
	return !isnull;
}

/* Evaluates OFFSET and LIMIT in core's order, with its errors; returns the rows to skip. */
static int64
evaluate_limits(GpudsOffsetState *state)
{
	int64 offset;

	if (evaluate(state, state->offset, &offset) && offset < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE),
						errmsg("OFFSET must not be negative")));
	state->limited = evaluate(state, state->count, &state->most);
	if (state->limited && state->most < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE), errmsg("LIMIT must not be negative")));
	return offset;
}

/* Moves the scan below behind some of so many rows, about all of them; returns how many. */
static int64
skip(GpudsOffsetState *state, int64 n)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);
	const int64 skipped = gpuds_child_rows_skip(&state->rows, n);

	MemoryContextSwitchTo(old);
	state->skipped += skipped;
	return skipped;
}

/* Comes to the first row that is to be given; false: there is none. */
static bool
start(GpudsOffsetState *state)
{
	int64 offset = evaluate_limits(state);

	if (state->limited && state->most == 0)
		return false;
	if (offset > 0)
		offset -= skip(state, offset);
	for (; offset > 0; offset--)
	{
		TupleTableSlot *slot = gpuds_child_rows_next(&state->rows);

		if (TupIsNull(slot))
			return false;
	}
	return true;
}

/* The scan's next row in the query's direction, and how many rows there are up to it then. */
static TupleTableSlot *
move(GpudsOffsetState *state, int64 at)
{
	TupleTableSlot *slot = gpuds_child_rows_next(&state->rows);

	if (TupIsNull(slot))
	{
		state->place = state->at == 0 ? OFFSET_EMPTY : OFFSET_END;
		return NULL;
	}
	state->at = at;
	state->slot = slot;
	state->place = OFFSET_ON;
	return slot;
}

/* Gives the row once more that the scan below stands on. */
static TupleTableSlot *
give_again(GpudsOffsetState *state)
{
	state->place = OFFSET_ON;
	return state->slot;
}

static TupleTableSlot *
next(GpudsOffsetState *state)
{
	if (state->place == OFFSET_BEFORE && state->at > 0)
		return give_again(state);
	if (state->place != OFFSET_BEFORE && state->place != OFFSET_ON)
		return NULL;
	if (state->limited && state->at == state->most)
	{
		state->place = OFFSET_BEHIND;
		return NULL;
	}
	return move(state, state->at + 1);
}

static TupleTableSlot *
previous(GpudsOffsetState *state)
{
	if (state->place == OFFSET_BEHIND)
		return give_again(state);
	if (state->place == OFFSET_END)
		return move(state, state->at);
	if (state->place != OFFSET_ON)
		return NULL;
	if (state->at == 1)
	{
		state->place = OFFSET_BEFORE;
		return NULL;
	}
	return move(state, state->at - 1);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	GpudsOffsetState *state = (GpudsOffsetState *) css;
	const bool backward = ScanDirectionIsBackward(css->ss.ps.state->es_direction);

	if (state->place == OFFSET_START)
	{
		if (backward)
			return NULL;
		state->at = 0;
		state->place = start(state) ? OFFSET_BEFORE : OFFSET_EMPTY;
	}
	return backward ? previous(state) : next(state);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsOffsetState *state = (GpudsOffsetState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	PlanState *child = ExecInitNode(linitial(plan->custom_plans), estate, eflags);

	css->custom_ps = list_make1(child);
	gpuds_child_rows_begin(&state->rows, child, plan->custom_private);
	state->offset = ExecInitExpr(linitial(plan->custom_exprs), &css->ss.ps);
	state->count = ExecInitExpr(lsecond(plan->custom_exprs), &css->ss.ps);
	/* What the node gives are slots of the scan below. */
	css->ss.ps.resultops = ExecGetResultSlotOps(child, &css->ss.ps.resultopsfixed);
	css->ss.ps.resultopsset = true;
}

static void
end(CustomScanState *css)
{
	ExecEndNode(linitial(css->custom_ps));
}

static void
rescan(CustomScanState *css)
{
	((GpudsOffsetState *) css)->place = OFFSET_START;
	gpuds_child_rows_rescan(&((GpudsOffsetState *) css)->rows, css->ss.ps.chgParam);
}

/* Heap fetches are shown at the scan below, and the rows that it has given. */
static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GpudsOffsetState *state = (GpudsOffsetState *) css;
	const GpudsScanCounters own = gpuds_child_rows_counters(&state->rows);

	if (es->analyze)
		ExplainPropertyInteger("Rows Counted", NULL, state->skipped, es);
	gpuds_explain_above_scan(&state->counters, &own, &css->ss.ps, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsOffset",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsOffsetState *state = (GpudsOffsetState *) newNode(sizeof(GpudsOffsetState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_offset_methods = {
	.CustomName = "GpudsOffset",
	.CreateCustomScanState = create_state,
};
