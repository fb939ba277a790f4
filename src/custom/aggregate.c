/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  GpudsAggregate: counts the rows of an index scan without returning any.
 *
 * All of the node's aggregates count all rows of the scan below, so they have the same value.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "utils/rel.h"

#include "am/am.h"
#include "custom/custom.h"

typedef struct GpudsAggregateState
{
	CustomScanState css;
	bool done; /* the row has been returned */
	GpudsNodeFigures figures;
} GpudsAggregateState;

static PlanState *
below_of(CustomScanState *css)
{
	return linitial(css->custom_ps);
}

static int64
count(PlanState *below)
{
	IndexScanDesc scan;
	int64 rows;
	int64 fetches;

	gpuds_below_start(below);
	scan = gpuds_below_begin(below);
	if (scan->xs_recheck)
		elog(ERROR, "conditions of index \"%s\" are not exact", RelationGetRelationName(scan->indexRelation));
	rows = gpuds_scan_count(scan, below->plan->plan_rows, &fetches);
	gpuds_below_stop(below, rows, fetches);
	return rows;
}

/* The node's only row. */
static TupleTableSlot *
next(ScanState *ss)
{
	GpudsAggregateState *state = (GpudsAggregateState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	int64 rows;

	ExecClearTuple(slot);
	if (state->done)
		return slot;
	rows = count(below_of(&state->css));
	for (int i = 0; i < slot->tts_tupleDescriptor->natts; i++)
	{
		slot->tts_values[i] = Int64GetDatum(rows);
		slot->tts_isnull[i] = false;
	}
	state->done = true;
	return ExecStoreVirtualTuple(slot);
}

/*
 * Core asks for this when a statement looks at a changed row once more (EvalPlanQual); in some minor releases for
 * counts in its subqueries, too.
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

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	css->custom_ps = list_make1(ExecInitNode(linitial(plan->custom_plans), estate, eflags));
}

static void
end(CustomScanState *css)
{
	ExecEndNode(below_of(css));
}

static void
rescan(CustomScanState *css)
{
	((GpudsAggregateState *) css)->done = false;
	gpuds_below_rescan(below_of(css), css->ss.ps.chgParam);
	ExecScanReScan(&css->ss);
}

/* Rows and heap fetches are shown at the scan below. */
static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GpudsScanFigures own = gpuds_below_figures(below_of(css));

	if (es->verbose)
		gpuds_explain_figures(&((GpudsAggregateState *) css)->figures, &own, &css->ss.ps, es);
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
