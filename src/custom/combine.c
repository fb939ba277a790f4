/*-------------------------------------------------------------------------
 *
 * combine.c
 *	  GpudsCombine: rows of several plans side by side.
 *
 * All plans have rows of the same groups in the same order; if there is only one, it is for the columns to be
 * called otherwise than below.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"

#include "custom/combine.h"
#include "custom/custom.h"

/* Where a column of the scan tuple is. */
typedef struct Place
{
	int plan;
	int column;
} Place;

typedef struct GpudsCombineState
{
	CustomScanState css;
	int ncolumns;
	Place *places;
	int nplans;
	TupleTableSlot **slots; /* the plans' current rows */
} GpudsCombineState;

/* Gets the next row of each plan; false: there is none. */
static bool
next_rows(GpudsCombineState *state)
{
	int nfound = 0;
	ListCell *lc;

	foreach (lc, state->css.custom_ps)
	{
		TupleTableSlot *slot = ExecProcNode((PlanState *) lfirst(lc));

		if (TupIsNull(slot))
			continue;
		state->slots[nfound++] = slot;
		slot_getallattrs(slot);
	}
	if (nfound != 0 && nfound != state->nplans)
		elog(ERROR, "plans of the same groups have not the same number of rows");
	return nfound != 0;
}

/* The next row, with the columns of all plans. */
static TupleTableSlot *
next(GpudsCombineState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	if (!next_rows(state))
		return slot;
	for (int i = 0; i < state->ncolumns; i++)
	{
		const Place *place = &state->places[i];

		slot->tts_values[i] = state->slots[place->plan]->tts_values[place->column];
		slot->tts_isnull[i] = state->slots[place->plan]->tts_isnull[place->column];
	}
	return ExecStoreVirtualTuple(slot);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	GpudsCombineState *state = (GpudsCombineState *) css;
	ExprContext *context = css->ss.ps.ps_ExprContext;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(context);
		context->ecxt_scantuple = next(state);
		if (TupIsNull(context->ecxt_scantuple))
			return NULL;
		if (ExecQual(css->ss.ps.qual, context))
			break;
		InstrCountFiltered1(css, 1);
	}
	return css->ss.ps.ps_ProjInfo ? ExecProject(css->ss.ps.ps_ProjInfo) : context->ecxt_scantuple;
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsCombineState *state = (GpudsCombineState *) css;
	const CustomScan *plan = (const CustomScan *) css->ss.ps.plan;
	const List *plans = list_nth(plan->custom_private, COMBINE_PLANS);
	const List *columns = list_nth(plan->custom_private, COMBINE_COLUMNS);
	ListCell *lc;

	foreach (lc, plan->custom_plans)
		css->custom_ps = lappend(css->custom_ps, ExecInitNode(lfirst(lc), estate, eflags));
	state->nplans = list_length(css->custom_ps);
	state->slots = palloc(state->nplans * sizeof(TupleTableSlot *));
	state->ncolumns = list_length(plans);
	state->places = palloc(Max(state->ncolumns, 1) * sizeof(Place));
	for (int i = 0; i < state->ncolumns; i++)
	{
		state->places[i].plan = list_nth_int(plans, i);
		state->places[i].column = list_nth_int(columns, i);
	}
}

static void
end(CustomScanState *css)
{
	ListCell *lc;

	foreach (lc, css->custom_ps)
		ExecEndNode(lfirst(lc));
}

static void
rescan(CustomScanState *css)
{
	ListCell *lc;

	foreach (lc, css->custom_ps)
		gpuds_child_scan_rescan(lfirst(lc), css->ss.ps.chgParam);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsCombine",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsCombineState *state = (GpudsCombineState *) newNode(sizeof(GpudsCombineState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_combine_methods = {
	.CustomName = "GpudsCombine",
	.CreateCustomScanState = create_state,
};
