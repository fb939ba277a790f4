/*-------------------------------------------------------------------------
 *
 * join_explain.c
 *	  What EXPLAIN shows of a GpudsJoin.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "commands/explain.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "custom/join_state.h"
#include "reader/reader.h"

static const char *
name_of(const GpudsJoinState *state)
{
	switch (state->type)
	{
		case JOIN_LEFT:
			return "Left";
		case JOIN_SEMI:
			return "Semi";
		case JOIN_ANTI:
			return "Anti";
		default:
			return state->right_semi ? "Right Semi" : "Inner";
	}
}

static void
explain_exprs(GpudsJoinState *state, int which, const char *label, List *ancestors, ExplainState *es)
{
	CustomScan *plan = (CustomScan *) state->css.ss.ps.plan;
	List *exprs = list_nth(plan->custom_exprs, which);
	List *context;

	if (exprs == NIL)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);
	ExplainPropertyText(
		label, deparse_expression((Node *) make_ands_explicit(copyObject(exprs)), context, true, false), es);
}

/* What the scan has done so far. */
GpudsScanCounters
gpuds_join_own_counters(const GpudsJoinState *state)
{
	GpudsScanCounters counters = { 0 };

	/* Not every node of a plan is executed, and auto_explain may ask about a plan that was not at all. */
	if (state->scan)
	{
		counters = *gpuds_scan_counters(state->scan);
		counters.fetches = state->visible.fetches + (int64) state->fetch.searched;
	}
	return counters;
}

/*
 * ExplainCustomScan.  Shows the index, the conditions that became its keys apart from the join's others, and
 * whether inner columns come from the index; with ANALYZE also the counters, of workers too.
 */
void
gpuds_join_explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GpudsJoinState *state = (GpudsJoinState *) css;
	const NodeInstrumentation *instrument = css->ss.ps.instrument;

	ExplainPropertyText("Join Type", name_of(state), es);
	ExplainPropertyText("Index Name", get_rel_name(state->index_oid), es);
	explain_exprs(state, JOIN_CONDITIONS, "Index Cond", ancestors, es);
	explain_exprs(state, JOIN_TESTED, "Index Filter", ancestors, es);
	if (es->analyze && state->tested != NIL && instrument)
		ExplainPropertyFloat("Rows Removed by Index Filter", NULL,
							 instrument->nfiltered2 / Max(instrument->nloops, 1), 0, es);
	explain_exprs(state, JOIN_QUALS, "Join Filter", ancestors, es);
	ExplainPropertyText("Inner Columns From", state->heap_free ? "Index" : "Heap", es);
	if (state->counts)
		ExplainPropertyBool("Rows Counted", true, es);
	if (es->analyze)
	{
		const GpudsScanCounters own = gpuds_join_own_counters(state);

		gpuds_explain_counters(&state->counters, &own, &css->ss.ps, es);
	}
}
