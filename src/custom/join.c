/*-------------------------------------------------------------------------
 *
 * join.c
 *	  GpudsJoin: joins rows in batches with a table that has an index on what they are joined by.
 *
 * A batch of outer rows becomes probes (join_batch.c), the index is asked for all of them at once, and
 * its entries are matches with outer rows (join_match.c).  This file is the node: its stages, its start
 * and end, and EvalPlanQual.
 *
 * A right semijoin gives each inner row once that has a match.
 *
 * Rows come out in no particular order.  The first batches are small, for LIMIT.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "custom/filter.h"
#include "custom/join_state.h"
#include "index/index.h"
#include "reader/reader.h"

/*
 * Is it enough to know of each outer row whether it has a match?  Then rows are given in their order,
 * at the end.  Rows of a semijoin may have to show what they match with, for EvalPlanQual.
 */
static bool
find_only_marks(const GpudsJoinState *state)
{
	for (int i = 0; i < state->ninner; i++)
	{
		if (state->type == JOIN_SEMI && state->columns[i] != 0)
			return false;
	}
	return gpuds_join_wants_one_match(state) && state->quals == NULL;
}

/* Where the index's entries have the inner columns, if they are not read from the heap. */
static void
find_columns_of_index(GpudsJoinState *state)
{
	for (int i = 0; i < state->ninner; i++)
	{
		for (int c = 0; c < state->layout.ncolumns && state->columns[i] != 0; c++)
		{
			if (state->index->rd_index->indkey.values[c] == state->columns[i] &&
				gpuds_can_return(state->index, c + 1))
			{
				state->columns[i] = c + 1;
				state->wants_side |= gpuds_key_is_side(&state->layout.column[c]);
				break;
			}
		}
	}
}

/* Opens table and index; the plan holds them from its start, as core's plans do. */
static void
open_inner(GpudsJoinState *state, int eflags)
{
	EState *estate = state->css.ss.ps.state;
	Oid types[GPUDS_KEY_MAX_COLUMNS]; /* a key for each column of the index, at most (join_path.c) */
	List *oids = list_nth(((CustomScan *) state->css.ss.ps.plan)->custom_private, JOIN_OIDS);

	state->heap = gpuds_open_for_node(estate, state->inner, state->index_oid, eflags, &state->index);
	if (state->index == NULL)
		return;
	state->layout = gpuds_index_info(state->index)->layout;
	if (state->layout.lossy)
		state->hashes.context = AllocSetContextCreate(estate->es_query_cxt, "gpuds hashes",
													  ALLOCSET_SMALL_SIZES);
	for (int i = 2; i < list_length(oids); i++)
		types[i - 2] = list_nth_oid(oids, i);
	if (!OidIsValid(state->shape_function))
		gpuds_key_probe_init(&state->probe, &state->layout, list_length(oids) - 2, types);
	if (state->heap_free)
		find_columns_of_index(state);
	/* Where one match is enough, not all are looked up. */
	state->by_pages = !state->heap_free && !gpuds_join_wants_one_match(state) &&
					  gpuds_fetch_by_pages(state->heap);
}

/* Makes the filter, with the parameters as they are, if there is something to test and nobody has. */
static void
make_filter(GpudsJoinState *state)
{
	const CustomScan *plan = (const CustomScan *) state->css.ss.ps.plan;
	MemoryContext old;

	if (state->tested == NIL || state->filter)
		return;
	MemoryContextReset(state->filter_context);
	old = MemoryContextSwitchTo(state->filter_context);
	state->filter = gpuds_filter_make_of_tuple((const Node *) state->tested, plan->custom_scan_tlist,
											   &state->layout, state->index, &state->css.ss.ps);
	MemoryContextSwitchTo(old);
}

/* Begins the scan, if nobody has.  Only then, as in core's nodes, there are locks for SERIALIZABLE. */
static void
begin_scan(GpudsJoinState *state)
{
	EState *estate = state->css.ss.ps.state;
	MemoryContext old;

	if (state->scan)
		return;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	state->scan = gpuds_begin_scan(state->heap, state->index, estate->es_snapshot, 0,
								   GpudsQueryReadsOnly(estate, state->inner));
	gpuds_visible_begin(&state->visible, state->scan);
	state->visible.keys = gpuds_join_outer_of(state)->plan->plan_rows;
	gpuds_side_reader_begin(&state->side, &state->visible, &state->layout);
	if (state->heap_free)
		gpuds_visible_lock(&state->visible);
	MemoryContextSwitchTo(old);
}

/* The next row of the join; an empty slot: there is none. */
static TupleTableSlot *
next_row(GpudsJoinState *state)
{
	for (;;)
	{
		switch (state->stage)
		{
			case GPUDS_JOIN_LOAD:
				if (state->outer_end || !gpuds_join_load_batch(state))
					state->stage = state->outer_end ? GPUDS_JOIN_END : GPUDS_JOIN_LOAD;
				else
					state->stage = GPUDS_JOIN_MATCHES;
				break;
			case GPUDS_JOIN_MATCHES:
				if (gpuds_join_collect_matches(state))
					state->stage = GPUDS_JOIN_PAIRS;
				else
				{
					state->stage = gpuds_join_keeps_unmatched(state) || state->only_marks ? GPUDS_JOIN_REST
																						  : GPUDS_JOIN_LOAD;
					state->rest = 0;
					gpuds_join_set_inner(state, NULL, NULL);
				}
				break;
			case GPUDS_JOIN_PAIRS:
				if (gpuds_join_next_pair(state))
					return gpuds_join_scan_tuple(state);
				state->stage = GPUDS_JOIN_MATCHES;
				break;
			case GPUDS_JOIN_REST:
				if (gpuds_join_next_of_rest(state))
					return gpuds_join_scan_tuple(state);
				state->stage = GPUDS_JOIN_LOAD;
				break;
			case GPUDS_JOIN_END:
				return ExecClearTuple(state->css.ss.ss_ScanTupleSlot);
		}
	}
}

/* How many rows the join has. */
static int64
count_rows(GpudsJoinState *state)
{
	int64 n = 0;

	for (;;)
	{
		const TupleTableSlot *slot = next_row(state);

		if (TupIsNull(slot))
			return n;
		n++;
		/* The others of the batch are only to be counted. */
		if (state->stage == GPUDS_JOIN_REST)
			n += gpuds_join_count_rest(state);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Gives the number of rows, once. */
static TupleTableSlot *
give_count(GpudsJoinState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;
	int64 n;

	if (state->counted)
		return ExecClearTuple(slot);
	n = count_rows(state);
	state->counted = true;
	memset(slot->tts_isnull, true, (state->nouter + state->ninner) * sizeof(bool));
	for (int i = state->nouter + state->ninner; i < slot->tts_tupleDescriptor->natts; i++)
	{
		slot->tts_values[i] = Int64GetDatum(n);
		slot->tts_isnull[i] = false;
	}
	return ExecStoreVirtualTuple(slot);
}

static TupleTableSlot *
next(ScanState *ss)
{
	GpudsJoinState *state = (GpudsJoinState *) ss;

	begin_scan(state);
	make_filter(state);
	return state->counts ? give_count(state) : next_row(state);
}

/*
 * Does the row of the inner table that EvalPlanQual gives match the outer one that has been set?  Sets
 * the inner columns, to NULL if it does not.
 */
static bool
recheck_inner(GpudsJoinState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	TupleTableSlot *slot;

	ExecReScan(state->inner_plan);
	slot = ExecProcNode(state->inner_plan);
	if (!TupIsNull(slot))
	{
		slot_getallattrs(slot);
		memcpy(state->inner_values, slot->tts_values, state->ninner * sizeof(Datum));
		memcpy(state->inner_isnull, slot->tts_isnull, state->ninner * sizeof(bool));
		ResetExprContext(context);
		context->ecxt_scantuple = gpuds_join_scan_tuple(state);
		if (ExecQual(state->conditions, context) && ExecQual(state->quals, context))
			return true;
	}
	gpuds_join_set_inner(state, NULL, NULL);
	return false;
}

/*
 * Makes the join anew for EvalPlanQual, which gives one row of each table at most, those that the scans
 * below return.  False: these rows do not make one of the join, any more.
 */
static bool
recheck_rows(GpudsJoinState *state)
{
	for (;;)
	{
		TupleTableSlot *outer = ExecProcNode(gpuds_join_outer_of(state));
		bool matches;

		if (TupIsNull(outer))
			return false;
		gpuds_join_set_outer(state, outer);
		matches = recheck_inner(state);
		if (matches ? state->type != JOIN_ANTI : gpuds_join_keeps_unmatched(state))
		{
			(void) gpuds_join_scan_tuple(state);
			return true;
		}
	}
}

/*
 * Core asks for this when a statement looks at a changed row once more (EvalPlanQual); some minor
 * releases also where the join is of a subquery, whose rows are not those that have changed.
 */
static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	GpudsJoinState *state = (GpudsJoinState *) ss;

	if (state->inner_plan)
		return recheck_rows(state);
	slot = next(ss);
	return !TupIsNull(slot);
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	return ExecScan(&css->ss, next, recheck);
}

static void
restart(GpudsJoinState *state)
{
	gpuds_join_end_sorter(state);
	gpuds_join_end_pages(state);
	state->piece = GPUDS_PIECE_ENTRIES;
	state->stage = GPUDS_JOIN_LOAD;
	state->outer_end = state->counted = false;
	state->target = GPUDS_JOIN_FIRST_ROWS;
	/* It knows nothing of filters. */
	state->asks_for_marks = state->only_marks && state->heap_free && state->tested == NIL &&
							!OidIsValid(state->shape_function);
	state->filter = NULL;
	state->shapes = NULL;
}

/* Number of a plan's relation from its place among all. */
static Index
relation_at(Bitmapset *relids, int place)
{
	int relid = bms_next_member(relids, -1);

	while (place-- > 0)
		relid = bms_next_member(relids, relid);
	return (Index) relid;
}

/* Is the plan part of what EvalPlanQual makes anew? */
static bool
is_rechecked(const CustomScan *plan, const EState *estate)
{
	return estate->es_epq_active && list_length(plan->custom_plans) > 1 &&
		   bms_is_member(estate->es_epq_active->epqParam, plan->scan.plan.extParam);
}

static void
begin_recheck(GpudsJoinState *state)
{
	PlanState *ps = &state->css.ss.ps;
	CustomScan *plan = (CustomScan *) ps->plan;

	state->inner_plan = ExecInitNode(lsecond(plan->custom_plans), ps->state, 0);
	state->css.custom_ps = lappend(state->css.custom_ps, state->inner_plan);
	state->conditions = ExecInitQual(list_nth(plan->custom_exprs, JOIN_CONDITIONS), ps);
}

/* Finds out whether the keys are columns of the outer plan. */
static void
find_key_columns(GpudsJoinState *state, const List *keys)
{
	AttrNumber columns[GPUDS_KEY_MAX_COLUMNS]; /* as many as keys, as in open_index */
	int last = 0;
	ListCell *lc;

	foreach (lc, keys)
	{
		const Node *key = lfirst(lc);

		while (IsA(key, RelabelType))
			key = (Node *) ((const RelabelType *) key)->arg;
		if (!IsA(key, Var) || ((const Var *) key)->varno != INDEX_VAR ||
			((const Var *) key)->varattno > state->nouter)
			return;
		columns[foreach_current_index(lc)] = ((const Var *) key)->varattno;
		last = Max(last, ((const Var *) key)->varattno);
	}
	state->key_columns = palloc(sizeof(columns));
	memcpy(state->key_columns, columns, list_length(keys) * sizeof(AttrNumber));
	state->last_key_column = last;
}

/*
 * Finds out whether outer rows may come from the table scan that core has begun for the outer plan: only keys
 * are wanted of them, which are columns of the table, all of its rows are wanted, and nobody counts what the
 * plan gives.  The keys are columns of the table then.
 */
static void
find_outer_scan(GpudsJoinState *state, PlanState *outer)
{
	AttrNumber columns[GPUDS_KEY_MAX_COLUMNS];
	AttrNumber last = 0;

	if (!IsA(outer, SeqScanState) || outer->qual || outer->instrument || outer->state->es_epq_active ||
		state->keeps || state->key_columns == NULL)
		return;
	for (int i = 0; i < list_length(state->keys); i++)
	{
		const TargetEntry *entry = list_nth_node(TargetEntry, outer->plan->targetlist,
												 state->key_columns[i] - 1);

		if (!IsA(entry->expr, Var) || ((const Var *) entry->expr)->varattno <= 0)
			return;
		columns[i] = ((const Var *) entry->expr)->varattno;
		last = Max(last, columns[i]);
	}
	memcpy(state->key_columns, columns, list_length(state->keys) * sizeof(AttrNumber));
	state->last_key_column = last;
	state->outer_scan = (SeqScanState *) outer;
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsJoinState *state = (GpudsJoinState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List *facts = list_nth(plan->custom_private, JOIN_FACTS);
	List *columns = list_nth(plan->custom_private, JOIN_COLUMNS);
	PlanState *outer = ExecInitNode(linitial(plan->custom_plans), estate, eflags & ~EXEC_FLAG_MARK);
	ListCell *lc;

	/* Core would evaluate these, and ask first. */
	state->tested = list_nth(plan->custom_exprs, JOIN_TESTED);
	gpuds_check_execute(list_nth(plan->custom_exprs, JOIN_CONDITIONS));
	gpuds_check_execute(state->tested);
	css->custom_ps = list_make1(outer);
	state->type = list_nth_int(facts, FACT_TYPE);
	state->inner = relation_at(plan->custom_relids, list_nth_int(facts, FACT_INNER));
	state->nouter = list_nth_int(facts, FACT_OUTER);
	state->heap_free = list_nth_int(facts, FACT_HEAP_FREE);
	state->keeps = list_nth_int(facts, FACT_KEEPS);
	state->right_semi = list_nth_int(facts, FACT_RIGHT_SEMI);
	state->counts = list_nth_int(facts, FACT_COUNTS);
	state->index_oid = linitial_oid(list_nth(plan->custom_private, JOIN_OIDS));
	state->shape_function = lsecond_oid(list_nth(plan->custom_private, JOIN_OIDS));
	state->ninner = list_length(columns);
	state->columns = palloc(Max(state->ninner, 1) * sizeof(AttrNumber));
	foreach (lc, columns)
	{
		state->columns[foreach_current_index(lc)] = lfirst_int(lc);
		state->last_column = Max(state->last_column, lfirst_int(lc));
	}
	state->keys = ExecInitExprList(list_nth(plan->custom_exprs, JOIN_KEYS), &css->ss.ps);
	find_key_columns(state, list_nth(plan->custom_exprs, JOIN_KEYS));
	find_outer_scan(state, outer);
	state->quals = ExecInitQual(list_nth(plan->custom_exprs, JOIN_QUALS), &css->ss.ps);
	state->outer_slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(outer), &TTSOpsMinimalTuple);
	state->batch = AllocSetContextCreate(CurrentMemoryContext, "GpudsJoin batch", ALLOCSET_DEFAULT_SIZES);
	state->filter_context = AllocSetContextCreate(CurrentMemoryContext, "gpuds filters",
												  ALLOCSET_SMALL_SIZES);
	state->inner_values = palloc0(Max(state->ninner, 1) * sizeof(Datum));
	state->inner_isnull = palloc0(Max(state->ninner, 1) * sizeof(bool));
	state->matches_size = 1;
	state->matches = palloc(sizeof(GpudsJoinMatch));
	state->only_marks = find_only_marks(state);
	restart(state);
	if (is_rechecked(plan, estate))
		begin_recheck(state);
	else
		open_inner(state, eflags);
}

static void
end(CustomScanState *css)
{
	GpudsJoinState *state = (GpudsJoinState *) css;
	ListCell *lc;

	gpuds_join_end_sorter(state);
	gpuds_join_end_pages(state);
	if (state->scan)
	{
		gpuds_visible_end(&state->visible);
		index_endscan(state->scan);
	}
	if (state->index)
		index_close(state->index, NoLock);
	foreach (lc, css->custom_ps)
		ExecEndNode(lfirst(lc));
}

static void
rescan(CustomScanState *css)
{
	GpudsJoinState *state = (GpudsJoinState *) css;
	ListCell *lc;

	foreach (lc, css->custom_ps)
	{
		PlanState *child = lfirst(lc);

		if (css->ss.ps.chgParam != NULL)
			UpdateChangedParamSet(child, css->ss.ps.chgParam);
		if (child->chgParam == NULL)
			ExecReScan(child);
	}
	ExecClearTuple(state->outer_slot);
	MemoryContextReset(state->batch);
	restart(state);
	ExecScanReScan(&css->ss);
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *context)
{
	return gpuds_explain_size(context);
}

static void
initialize_shared(CustomScanState *css, ParallelContext *context, void *shared)
{
	gpuds_explain_share(&((GpudsJoinState *) css)->counters, context, shared);
}

static void
reinitialize_shared(CustomScanState *css, ParallelContext *context, void *shared)
{
	gpuds_explain_share_again(&((GpudsJoinState *) css)->counters);
}

static void
initialize_worker(CustomScanState *css, shm_toc *toc, void *shared)
{
	gpuds_explain_attach(&((GpudsJoinState *) css)->counters, shared);
}

static void
shut_down(CustomScanState *css)
{
	GpudsJoinState *state = (GpudsJoinState *) css;

	if (state->scan)
	{
		const GpudsScanCounters own = gpuds_join_own_counters(state);

		gpuds_explain_hand_in(&state->counters, &own);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsJoin",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
	.ShutdownCustomScan = shut_down,
	.ExplainCustomScan = gpuds_join_explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsJoinState *state = (GpudsJoinState *) newNode(sizeof(GpudsJoinState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_join_methods = {
	.CustomName = "GpudsJoin",
	.CreateCustomScanState = create_state,
};
