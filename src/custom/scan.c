/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  GpudsScan: rows of a table by an index scan, in the order of the heap.
 *
 * The index is asked for TIDs in pieces (am/tids.c), and the heap is visited for each piece in the order of its
 * pages (am/fetch.c).  The index's conditions are looked at again in two cases: the scan says that they are not exact
 * (xs_recheck), or a statement looks at a changed row once more (EvalPlanQual).
 *
 * Rows are given in a slot of the table's own kind, so they have their system columns, and may be
 * locked, updated and deleted.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/extensible.h"
#include "utils/rel.h"

#include "am/am.h"
#include "am/fetch.h"
#include "custom/custom.h"

typedef enum ScanStage
{
	STAGE_BEGIN,  /* the index has not been asked */
	STAGE_PIECES, /* rows of the piece at hand, then the next piece */
	STAGE_END
} ScanStage;

typedef struct GpudsScanNode
{
	CustomScanState css;
	ScanStage stage;
	bool recheck; /* conditions are not exact */
	GpudsTidList list;
	uint64 pieces; /* for EXPLAIN */
	GpudsFetch fetch;
} GpudsScanNode;

static PlanState *
below_of(CustomScanState *css)
{
	return linitial(css->custom_ps);
}

/* Begins to ask the index. */
static void
begin_pieces(GpudsScanNode *node, PlanState *below)
{
	IndexScanDesc scan = gpuds_below_begin(below);

	if (!IsMVCCSnapshot(scan->xs_snapshot))
		elog(ERROR, "index \"%s\" is scanned in batches with a snapshot that is not an MVCC snapshot",
			 RelationGetRelationName(scan->indexRelation));
	node->recheck = scan->xs_recheck;
	gpuds_tids_begin(&node->list, scan);
}

/* Gets the next piece of TIDs; false: there is none. */
static bool
next_piece(GpudsScanNode *node)
{
	PlanState *below = below_of(&node->css);
	bool more;

	gpuds_below_start(below);
	if (node->stage == STAGE_BEGIN)
		begin_pieces(node, below);
	more = gpuds_tids_next(&node->list);
	gpuds_below_stop(below, node->list.n, 0);
	if (!more)
		return false;
	node->pieces++;
	gpuds_fetch_begin(&node->fetch, node->list.scan, node->list.tids, node->list.n);
	return true;
}

/* Do the index's conditions hold for a row? */
static bool
meets_conditions(GpudsScanNode *node, TupleTableSlot *slot)
{
	ExprContext *context = node->css.ss.ps.ps_ExprContext;

	context->ecxt_scantuple = slot;
	return ExecQualAndReset(castNode(IndexScanState, below_of(&node->css))->indexqualorig, context);
}

static TupleTableSlot *
next(ScanState *ss)
{
	GpudsScanNode *node = (GpudsScanNode *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	while (node->stage != STAGE_END)
	{
		while (node->stage == STAGE_PIECES && gpuds_fetch_next(&node->fetch, slot))
		{
			if (!node->recheck || meets_conditions(node, slot))
				return slot;
			InstrCountFiltered2(node, 1);
		}
		node->stage = next_piece(node) ? STAGE_PIECES : STAGE_END;
	}
	return ExecClearTuple(slot);
}

/* A statement looks at a changed row once more (EvalPlanQual): is it still one of the scan's? */
static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	return meets_conditions((GpudsScanNode *) ss, slot);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	return ExecScan(&css->ss, next, recheck);
}

/*
 * Makes the scan slot one of the table's own kind, and what core has made for the one that it made anew: expressions
 * know what kind of slot they read.
 */
static void
use_slot_of_table(CustomScanState *css, EState *estate)
{
	ScanState *ss = &css->ss;
	const Plan *plan = ss->ps.plan;

	ss->ps.subPlan = NIL;
	ExecInitScanTupleSlot(estate, ss, RelationGetDescr(ss->ss_currentRelation),
						  table_slot_callbacks(ss->ss_currentRelation));
	ExecAssignScanProjectionInfo(ss);
	ss->ps.qual = ExecInitQual(plan->qual, &ss->ps);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsScanNode *node = (GpudsScanNode *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	use_slot_of_table(css, estate);
	css->custom_ps = list_make1(ExecInitNode(linitial(plan->custom_plans), estate, eflags & ~EXEC_FLAG_MARK));
	gpuds_tids_init(&node->list);
	gpuds_fetch_init(&node->fetch);
}

static void
end(CustomScanState *css)
{
	gpuds_fetch_reset(&((GpudsScanNode *) css)->fetch);
	ExecEndNode(below_of(css));
}

static void
rescan(CustomScanState *css)
{
	GpudsScanNode *node = (GpudsScanNode *) css;

	gpuds_fetch_reset(&node->fetch);
	node->stage = STAGE_BEGIN;
	gpuds_below_rescan(below_of(css), css->ss.ps.chgParam);
	ExecScanReScan(&css->ss);
}

/* What workers have done, only their state knows. */
static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GpudsScanNode *node = (GpudsScanNode *) css;
	const Instrumentation *instrument = css->ss.ps.instrument;

	if (!es->analyze || (node->pieces == 0 && css->ss.ps.worker_instrument))
		return;
	if (node->recheck)
		ExplainPropertyFloat("Rows Removed by Index Recheck", NULL,
							 instrument->nfiltered2 / Max(instrument->nloops, 1), 0, es);
	ExplainPropertyUInteger("Batches", NULL, node->pieces, es);
	ExplainPropertyUInteger("Heap Blocks", NULL, node->fetch.visited, es);
	if (es->verbose)
	{
		GpudsScanFigures figures = gpuds_below_figures(below_of(css));

		gpuds_explain_device(&figures, es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsScan",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsScanNode *node = (GpudsScanNode *) newNode(sizeof(GpudsScanNode), T_CustomScanState);

	node->css.methods = &exec_methods;
	return (Node *) node;
}

const CustomScanMethods gpuds_scan_methods = {
	.CustomName = "GpudsScan",
	.CreateCustomScanState = create_state,
};
