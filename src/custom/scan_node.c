/*-------------------------------------------------------------------------
 *
 * scan_node.c
 *	  GpudsScan: rows of a table by an index scan, in the order of the heap.
 *
 * The index is asked for TIDs in pieces (reader/tids.c), and the heap is visited for each piece in the
 * order of its pages (reader/fetch.c).  The index's conditions are looked at again in two cases: the scan
 * says that they are not exact (xs_recheck), or a statement looks at a changed row once more
 * (EvalPlanQual).
 *
 * The quals of the index scan below are tested in entries before there are TIDs of them (filter.c).
 *
 * Rows are given in a slot of the table's own kind, so they have their system columns, and may be
 * locked, updated and deleted.
 *
 * In a parallel plan one process asks the index for all TIDs, and all visit the heap for chunks of them
 * (reader/shared_tids.h).
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

#include "custom/custom.h"
#include "custom/filter.h"
#include "index/index.h"
#include "reader/fetch.h"
#include "reader/reader.h"
#include "reader/shared_tids.h"

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
	bool recheck;                 /* conditions are not exact, and core looks at them */
	bool checks;                  /* it is known whether there is something to look at, which is ... */
	GpudsRecheck *check;          /* ... arrays that the index has looked up by hashes; NULL: none */
	GpudsKeyLayout layout;        /* of the index */
	MemoryContext filter_context; /* NULL: nothing is tested in entries */
	GpudsTidList list;
	uint64 pieces; /* for EXPLAIN */
	GpudsFetch fetch;

	GpudsTidShare share;
	IndexScanDesc visitor; /* to visit shared TIDs with; NULL: none has been visited */
	GpudsNodeCounters counters;
} GpudsScanNode;

static PlanState *
child_scan_of(CustomScanState *css)
{
	return linitial(css->custom_ps);
}

/* What is tested in entries, with the parameters as they are; NULL: nothing. */
static GpudsRowFilter *
make_filter(GpudsScanNode *node, PlanState *child, Relation index)
{
	GpudsRowFilter *filter;
	MemoryContext old;

	if (node->filter_context == NULL)
		return NULL;
	MemoryContextReset(node->filter_context);
	old = MemoryContextSwitchTo(node->filter_context);
	node->layout = gpuds_index_info(index)->layout;
	filter = gpuds_filter_make((const Node *) child->plan->qual, &node->layout, index, child);
	MemoryContextSwitchTo(old);
	return filter;
}

/* Begins to ask the index for pieces of so many TIDs. */
static void
begin_pieces(GpudsScanNode *node, PlanState *child, int64 most)
{
	IndexScanDesc scan = gpuds_child_scan_begin(child);

	if (!IsMVCCSnapshot(scan->xs_snapshot))
		elog(ERROR, "index \"%s\" is scanned in batches with a snapshot that is not an MVCC snapshot",
			 RelationGetRelationName(scan->indexRelation));
	node->recheck = scan->xs_recheck;
	gpuds_tids_begin(&node->list, scan, most, make_filter(node, child, scan->indexRelation), &node->layout);
}

/* Gets the next piece of what has begun so; false: there is none. */
static bool
collect_piece(GpudsScanNode *node, PlanState *child)
{
	const bool more = gpuds_tids_next(&node->list);

	InstrCountFiltered1(child, node->list.filtered);
	node->pieces += more;
	return more;
}

/* Asks the index for all TIDs, for all processes. */
static void
ask_for_all(GpudsScanNode *node, dsa_area *area)
{
	PlanState *child = child_scan_of(&node->css);
	int64 n = 0;

	gpuds_child_scan_start(child);
	begin_pieces(node, child, gpuds_shared_tids_most(&node->share));
	while (collect_piece(node, child))
	{
		gpuds_shared_tids_add(&node->share, area, &node->list);
		n += node->list.n;
	}
	gpuds_shared_tids_added(&node->share);
	gpuds_tids_end(&node->list);
	gpuds_child_scan_stop(child, n, 0);
}

/* What looks at the values of rows; NULL: nothing does. */
static GpudsRecheck *
check_of(GpudsScanNode *node)
{
	if (!node->checks)
	{
		MemoryContext old = MemoryContextSwitchTo(node->css.ss.ps.state->es_query_cxt);

		node->check = gpuds_child_scan_recheck(child_scan_of(&node->css));
		node->checks = true;
		MemoryContextSwitchTo(old);
	}
	return node->check;
}

static void
begin_chunk(GpudsScanNode *node, const GpudsTidChunk *chunk)
{
	PlanState *child = child_scan_of(&node->css);

	if (node->visitor == NULL)
		node->visitor = gpuds_child_scan_visitor(child);
	node->recheck = chunk->recheck;
	if (node->recheck)
		gpuds_child_scan_refresh(child);
	gpuds_fetch_begin(&node->fetch, node->visitor, check_of(node), chunk->tids, chunk->n);
}

/* Gets the next chunk of shared TIDs; false: there is none. */
static bool
next_chunk(GpudsScanNode *node)
{
	dsa_area *area = node->css.ss.ps.state->es_query_dsa;
	GpudsTidChunk chunk;

	for (;;)
	{
		switch (gpuds_shared_tids_next(&node->share, area, &chunk))
		{
			case GPUDS_SHARE_ASK:
				ask_for_all(node, area);
				break;
			case GPUDS_SHARE_CHUNK:
				begin_chunk(node, &chunk);
				return true;
			case GPUDS_SHARE_END:
				return false;
		}
	}
}

/* Gets the next piece of TIDs; false: there is none. */
static bool
next_piece(GpudsScanNode *node)
{
	PlanState *child = child_scan_of(&node->css);
	bool more;

	gpuds_child_scan_start(child);
	if (node->stage == STAGE_BEGIN)
		begin_pieces(node, child, gpuds_tids_most());
	more = collect_piece(node, child);
	gpuds_child_scan_stop(child, node->list.n, 0);
	if (!more)
		return false;
	gpuds_fetch_begin(&node->fetch, node->list.scan, check_of(node), node->list.tids, node->list.n);
	return true;
}

/* Do the index's conditions hold for a row? */
static bool
meets_conditions(GpudsScanNode *node, TupleTableSlot *slot)
{
	ExprContext *context = node->css.ss.ps.ps_ExprContext;

	context->ecxt_scantuple = slot;
	return ExecQualAndReset(castNode(IndexScanState, child_scan_of(&node->css))->indexqualorig, context);
}

/* Gets the next row of the piece that is one that was asked for; false: there is none. */
static bool
next_row(GpudsScanNode *node, TupleTableSlot *slot)
{
	for (;;)
	{
		const bool found = gpuds_fetch_next(&node->fetch, slot);

		InstrCountFiltered2(node, node->fetch.removed);
		node->fetch.removed = 0;
		if (!found || !node->recheck || meets_conditions(node, slot))
			return found;
		InstrCountFiltered2(node, 1);
	}
}

static void
forget_check(GpudsScanNode *node)
{
	if (node->check)
		gpuds_recheck_end(node->check);
	node->check = NULL;
	node->checks = false;
}

static TupleTableSlot *
next(ScanState *ss)
{
	GpudsScanNode *node = (GpudsScanNode *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	while (node->stage != STAGE_END)
	{
		if (node->stage == STAGE_PIECES && next_row(node, slot))
			return slot;
		if (node->share.shared ? next_chunk(node) : next_piece(node))
			node->stage = STAGE_PIECES;
		else
			node->stage = STAGE_END;
	}
	return ExecClearTuple(slot);
}

/*
 * A statement looks at a changed row once more (EvalPlanQual): is it still one of the scan's, and would its
 * entry pass?
 */
static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	GpudsScanNode *node = (GpudsScanNode *) ss;
	ExprState *tested = child_scan_of(&node->css)->qual;

	return meets_conditions(node, slot) && ExecQualAndReset(tested, ss->ps.ps_ExprContext);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	return ExecScan(&css->ss, next, recheck);
}

/*
 * Makes the scan slot one of the table's own kind, and what core has made for the one that it made
 * anew: expressions know what kind of slot they read.
 */
void
gpuds_use_slot_of_table(CustomScanState *css, EState *estate)
{
	ScanState *ss = &css->ss;
	const Plan *plan = ss->ps.plan;

	ss->ps.subPlan = NIL;
	GpudsInitScanSlot(estate, ss, RelationGetDescr(ss->ss_currentRelation),
					  table_slot_callbacks(ss->ss_currentRelation));
	ExecAssignScanProjectionInfo(ss);
	ss->ps.qual = ExecInitQual(plan->qual, &ss->ps);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsScanNode *node = (GpudsScanNode *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;

	gpuds_use_slot_of_table(css, estate);
	css->custom_ps = list_make1(ExecInitNode(linitial(plan->custom_plans), estate, eflags & ~EXEC_FLAG_MARK));
	if (child_scan_of(css)->plan->qual != NIL)
		node->filter_context = AllocSetContextCreate(CurrentMemoryContext, "gpuds filters",
													 ALLOCSET_SMALL_SIZES);
	gpuds_tids_init(&node->list);
	gpuds_fetch_init(&node->fetch);
}

static void
end(CustomScanState *css)
{
	GpudsScanNode *node = (GpudsScanNode *) css;

	forget_check(node);
	gpuds_fetch_reset(&node->fetch);
	gpuds_shared_tids_leave(&node->share);
	if (node->visitor)
		index_endscan(node->visitor);
	ExecEndNode(child_scan_of(css));
}

static void
rescan(CustomScanState *css)
{
	GpudsScanNode *node = (GpudsScanNode *) css;

	forget_check(node);
	gpuds_fetch_reset(&node->fetch);
	gpuds_shared_tids_leave(&node->share);
	node->stage = STAGE_BEGIN;
	gpuds_child_scan_rescan(child_scan_of(css), css->ss.ps.chgParam);
	ExecScanReScan(&css->ss);
}

/* Shared memory has the TIDs, and behind them what workers hand in for EXPLAIN. */
static void *
shared_counters_of(void *shared)
{
	return (char *) shared + MAXALIGN(gpuds_shared_tids_size());
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *context)
{
	return MAXALIGN(gpuds_shared_tids_size()) + gpuds_explain_size(context);
}

static void
initialize_shared(CustomScanState *css, ParallelContext *context, void *shared)
{
	GpudsScanNode *node = (GpudsScanNode *) css;

	gpuds_explain_share(&node->counters, context, shared_counters_of(shared));
	gpuds_shared_tids_create(&node->share, context, shared);
}

static void
reinitialize_shared(CustomScanState *css, ParallelContext *context, void *shared)
{
	GpudsScanNode *node = (GpudsScanNode *) css;

	gpuds_explain_share_again(&node->counters);
	gpuds_shared_tids_renew(&node->share, css->ss.ps.state->es_query_dsa);
}

static void
initialize_worker(CustomScanState *css, shm_toc *toc, void *shared)
{
	GpudsScanNode *node = (GpudsScanNode *) css;

	gpuds_explain_attach(&node->counters, shared_counters_of(shared));
	gpuds_shared_tids_attach(&node->share, shared);
}

/* What this process has done. */
static GpudsScanCounters
own_counters(GpudsScanNode *node)
{
	GpudsScanCounters counters = gpuds_child_scan_counters(child_scan_of(&node->css));

	counters.batches = node->pieces;
	counters.fetches = node->fetch.visited;
	return counters;
}

/* In the leader, the shared memory goes now. */
static void
shut_down(CustomScanState *css)
{
	GpudsScanNode *node = (GpudsScanNode *) css;
	const GpudsScanCounters own = own_counters(node);

	gpuds_explain_hand_in(&node->counters, &own);
	if (!IsParallelWorker())
		node->share.shared = NULL;
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GpudsScanNode *node = (GpudsScanNode *) css;
	const NodeInstrumentation *instrument = css->ss.ps.instrument;
	const GpudsScanCounters own = own_counters(node);
	GpudsScanCounters counters;

	if (!gpuds_explain_sum(&node->counters, &own, &css->ss.ps, es, &counters))
		return;
	if (node->recheck || node->check)
		ExplainPropertyFloat("Rows Removed by Index Recheck", NULL,
							 instrument->nfiltered2 / Max(instrument->nloops, 1), 0, es);
	ExplainPropertyUInteger("Batches", NULL, counters.batches, es);
	ExplainPropertyUInteger("Heap Blocks", NULL, counters.fetches, es);
	if (es->verbose)
		gpuds_explain_device(&counters, es);
	gpuds_explain_option(&counters, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsScan",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
	.ShutdownCustomScan = shut_down,
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
