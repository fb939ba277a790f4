/*-------------------------------------------------------------------------
 *
 * join.c
 *	  GpudsJoin: joins rows in batches with a table that has an index on what they are joined by.
 *
 * A batch of outer rows is kept, and what they are joined by becomes probes: entries with the row's
 * number in place of a TID.  Sorted, they fall into groups of equal probes.  The index is
 * asked for all groups at once, and its entries come in the order of the groups.  An entry and its
 * group are a match: of one inner row with all outer rows of the group.
 *
 * Matches are resolved in pieces, so that no number of them takes more memory.  If the index has
 * all that is wanted of the inner table, the visibility map answers for most (am/visible.h), and the
 * heap for the others.  Else the heap is visited for all of a piece in the order of its pages.
 *
 * Rows come out in no particular order.  The first batches are small, for LIMIT.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "storage/predicate.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "am/am.h"
#include "am/visible.h"
#include "custom/custom.h"
#include "custom/join.h"
#include "kernels/core/sort.h"

/* Outer rows of the first batch; then so many times as many, up to the most. */
#define FIRST_ROWS 64
#define ROWS_GROWTH 8
#define MOST_ROWS (1024 * 1024)

/* Matches that are resolved at a time, about. */
#define MATCH_PIECE (GPUDS_PIECE / 4 * 3)

typedef enum JoinStage
{
	STAGE_LOAD,    /* get the next batch of outer rows */
	STAGE_MATCHES, /* get the next piece of the batch's matches */
	STAGE_PAIRS,   /* give the pairs of each match */
	STAGE_REST,    /* give outer rows by whether they have a match */
	STAGE_END
} JoinStage;

/*
 * Equal probes: probes[first] to probes[end - 1].  Where one match is enough for a row, those of rows that have
 * had it go behind the end.
 */
typedef struct ProbeGroup
{
	int64 first;
	int64 end;
	bool settled; /* no further match is wanted */
} ProbeGroup;

typedef struct Match
{
	GpudsEntry entry;
	uint32 group;
	bool visible; /* the snapshot sees the row; unknown if the heap is to be visited anyway */
} Match;

typedef struct GpudsJoinState
{
	CustomScanState css;
	JoinType type;
	bool heap_free;
	int nouter;          /* columns of the scan tuple that are the outer plan's */
	int ninner;          /* and those behind them, */
	AttrNumber *columns; /* of the inner table, or of the index if that is enough; 0: none */
	int last_column;     /* highest of them */
	bool only_marks;     /* see below */
	List *keys;          /* ExprStates */
	ExprState *quals;    /* or NULL */
	Datum *inner_values; /* of these */
	bool *inner_isnull;
	TupleTableSlot *outer_slot; /* an outer row that was kept */
	Oid index_oid;
	Index inner; /* number of the inner table */

	/* For EvalPlanQual, which joins single rows anew; NULL: it does not */
	PlanState *inner_plan; /* the inner table's row: the inner columns of the scan tuple */
	ExprState *conditions; /* that became keys */

	Relation index; /* NULL: nothing will be executed, or EvalPlanQual's rows are */
	IndexScanDesc scan;
	GpudsVisible visible;
	GpudsKeyLayout layout;
	GpudsKeyProbe probe;
	GpudsKeyRoom rooms[GPUDS_KEY_MAX_COLUMNS];

	JoinStage stage;
	bool outer_end;
	int64 target; /* rows of the next batch */

	MemoryContext batch; /* of all that follows */
	MinimalTuple *rows;
	bool *matched; /* of each */
	int64 nrows;
	GpudsEntry *probes; /* sorted, with numbers of rows */
	int64 nprobes;
	ProbeGroup *groups;
	GpudsEntry *keys_of_groups;
	int64 ngroups;
	int64 group; /* of the last entry */

	Match *matches; /* the piece at hand */
	int64 nmatches;
	int64 matches_size;
	int64 at;     /* match to give pairs of */
	int64 member; /* probe of its group, -1: the match has not been looked at */
	int64 rest;   /* outer row */

	GpudsNodeFigures figures;
} GpudsJoinState;

static PlanState *
outer_of(GpudsJoinState *state)
{
	return linitial(state->css.custom_ps);
}

static bool
wants_one_match(const GpudsJoinState *state)
{
	return state->type == JOIN_SEMI || state->type == JOIN_ANTI;
}

static bool
keeps_unmatched(const GpudsJoinState *state)
{
	return state->type == JOIN_LEFT || state->type == JOIN_ANTI;
}

/*
 * Is it enough to know of each outer row whether it has a match?  Then rows are given in their order, at the end.
 * Rows of a semijoin may have to show what they match with, for EvalPlanQual.
 */
static bool
find_only_marks(const GpudsJoinState *state)
{
	for (int i = 0; i < state->ninner; i++)
	{
		if (state->type == JOIN_SEMI && state->columns[i] != 0)
			return false;
	}
	return wants_one_match(state) && state->quals == NULL;
}

/*
 * The scan tuple as its columns have been set.  Whoever gets it may make it a tuple of its own, and free that, so
 * the inner columns, which serve several pairs, are kept apart.
 */
static TupleTableSlot *
scan_tuple(GpudsJoinState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	memcpy(slot->tts_values + state->nouter, state->inner_values, state->ninner * sizeof(Datum));
	memcpy(slot->tts_isnull + state->nouter, state->inner_isnull, state->ninner * sizeof(bool));
	return TTS_EMPTY(slot) ? ExecStoreVirtualTuple(slot) : slot;
}

/* Sets the outer columns of the scan tuple. */
static void
set_outer(GpudsJoinState *state, TupleTableSlot *from)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	slot_getallattrs(from);
	memcpy(slot->tts_values, from->tts_values, state->nouter * sizeof(Datum));
	memcpy(slot->tts_isnull, from->tts_isnull, state->nouter * sizeof(bool));
}

static void
set_outer_row(GpudsJoinState *state, int64 row)
{
	ExecStoreMinimalTuple(state->rows[row], state->outer_slot, false);
	set_outer(state, state->outer_slot);
}

/* Sets the inner columns of the scan tuple; NULL: to NULL. */
static void
set_inner(GpudsJoinState *state, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < state->ninner; i++)
	{
		int column = state->columns[i];
		bool none = values == NULL || column == 0;

		/* A row's system columns are not among them. */
		if (column < 0 && !none)
			continue;
		state->inner_isnull[i] = none || isnull[column - 1];
		state->inner_values[i] = none ? (Datum) 0 : values[column - 1];
	}
}

static void
set_inner_row(GpudsJoinState *state)
{
	TupleTableSlot *slot = state->visible.slot;

	slot_getsomeattrs(slot, state->last_column);
	set_inner(state, slot->tts_values, slot->tts_isnull);
	for (int i = 0; i < state->ninner; i++)
	{
		if (state->columns[i] < 0)
			state->inner_values[i] = slot_getsysattr(slot, state->columns[i], &state->inner_isnull[i]);
	}
}

static void
set_inner_entry(GpudsJoinState *state, const GpudsEntry *entry)
{
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];

	if (state->last_column == 0)
		return;
	(void) gpuds_key_decode(&state->layout, entry, state->rooms, values, isnull);
	set_inner(state, values, isnull);
}

/*
 * The probe of the outer row that the scan tuple has; false: nothing is equal to its keys.
 */
static bool
make_probe(GpudsJoinState *state, uint64 number, GpudsEntry *probe)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];
	ListCell *lc;

	ResetExprContext(context);
	context->ecxt_scantuple = scan_tuple(state);
	foreach (lc, state->keys)
	{
		int i = foreach_current_index(lc);

		values[i] = ExecEvalExprSwitchContext(lfirst(lc), context, &isnull[i]);
	}
	return gpuds_key_probe(&state->probe, values, isnull, number, probe);
}

/* Opens the index; the plan holds it from its start, as core's plans do. */
static void
open_index(GpudsJoinState *state)
{
	EState *estate = state->css.ss.ps.state;
	Relation heap = GpudsGetRangeTableRelation(estate, state->inner);
	Oid types[GPUDS_KEY_MAX_COLUMNS];
	List *oids = list_nth(((CustomScan *) state->css.ss.ps.plan)->custom_private, JOIN_OIDS);

	state->index = index_open(state->index_oid, exec_rt_fetch(state->inner, estate)->rellockmode);
	state->layout = gpuds_index_info(state->index)->layout;
	for (int i = 1; i < list_length(oids); i++)
		types[i - 1] = list_nth_oid(oids, i);
	gpuds_key_probe_init(&state->probe, &state->layout, list_length(oids) - 1, types);
	state->scan = GpudsIndexBeginscan(heap, state->index, estate->es_snapshot, 0);
	gpuds_visible_begin(&state->visible, state->scan);
	/* Rows that are not looked up have no predicate locks of their own. */
	if (state->heap_free)
		PredicateLockRelation(heap, estate->es_snapshot);

	if (!state->heap_free)
		return;
	for (int i = 0; i < state->ninner; i++)
	{
		for (int c = 0; c < state->layout.ncolumns && state->columns[i] != 0; c++)
		{
			if (state->index->rd_index->indkey.values[c] == state->columns[i] &&
				gpuds_can_return(state->index, c + 1))
			{
				state->columns[i] = c + 1;
				break;
			}
		}
	}
}

/* Adds an outer row to the batch; returns the memory it takes. */
static Size
keep_row(GpudsJoinState *state, TupleTableSlot *slot, int64 *size)
{
	GpudsEntry probe;
	MinimalTuple tuple;
	bool has_probe;

	set_outer(state, slot);
	has_probe = make_probe(state, state->nrows, &probe);
	if (!has_probe && !keeps_unmatched(state))
		return 0;
	if (state->nrows == *size)
	{
		*size *= 2;
		state->rows = repalloc_huge(state->rows, *size * sizeof(MinimalTuple));
		state->matched = repalloc_huge(state->matched, *size * sizeof(bool));
		state->probes = repalloc_huge(state->probes, *size * sizeof(GpudsEntry));
	}
	tuple = ExecCopySlotMinimalTuple(slot);
	state->rows[state->nrows] = tuple;
	state->matched[state->nrows++] = false;
	if (has_probe)
		state->probes[state->nprobes++] = probe;
	/* with the sorting of the probe, its interval and group */
	return GetMemoryChunkSpace(tuple) + sizeof(MinimalTuple) + sizeof(bool) + 4 * sizeof(GpudsEntry);
}

/* Sorts the batch's probes into groups. */
static void
group_probes(GpudsJoinState *state)
{
	const int64 n = state->nprobes;
	GpudsEntry *scratch = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(GpudsEntry));

	sort_entries(state->probes, scratch, n);
	state->keys_of_groups = scratch;
	state->groups = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(ProbeGroup));
	state->ngroups = 0;
	for (int64 i = 0; i < n; i++)
	{
		GpudsEntry key = state->probes[i];

		key.t &= ~ENTRY_TID_MASK;
		if (state->ngroups == 0 || !entry_equal(&state->keys_of_groups[state->ngroups - 1], &key))
		{
			state->groups[state->ngroups].first = i;
			state->groups[state->ngroups].settled = false;
			state->keys_of_groups[state->ngroups++] = key;
		}
		state->groups[state->ngroups - 1].end = i + 1;
	}
	state->group = 0;
}

/* Gets a batch of outer rows and asks the index about them; false: there are none. */
static bool
load_batch(GpudsJoinState *state)
{
	const Size most = (Size) work_mem * 1024;
	PlanState *outer = outer_of(state);
	MemoryContext old;
	int64 size = FIRST_ROWS;
	Size bytes = 0;

	MemoryContextReset(state->batch);
	old = MemoryContextSwitchTo(state->batch);
	state->rows = palloc(size * sizeof(MinimalTuple));
	state->matched = palloc(size * sizeof(bool));
	state->probes = palloc(size * sizeof(GpudsEntry));
	state->nrows = state->nprobes = 0;
	while (!state->outer_end && state->nrows < state->target && bytes < most)
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(old);
		slot = ExecProcNode(outer);
		MemoryContextSwitchTo(state->batch);
		if (TupIsNull(slot))
			state->outer_end = true;
		else
			bytes += keep_row(state, slot, &size);
	}
	if (state->target < MOST_ROWS)
		state->target *= ROWS_GROWTH;
	group_probes(state);
	MemoryContextSwitchTo(old);
	if (state->ngroups > 0)
	{
		gpuds_scan_set_probes(state->scan, &state->probe, state->keys_of_groups, state->ngroups);
		gpuds_visible_before_barrier(&state->visible);
		gpuds_scan_begin_batches(state->scan, 0);
	}
	return state->nrows > 0;
}

/* The group that an entry belongs to. */
static void
find_group(GpudsJoinState *state, const GpudsEntry *entry)
{
	state->group = gpuds_key_probe_find(&state->probe, state->keys_of_groups, state->ngroups, state->group,
										entry);
	if (state->group == state->ngroups)
		elog(ERROR, "index \"%s\" returned a key that was not asked for",
			 RelationGetRelationName(state->index));
}

static void
add_matches(GpudsJoinState *state, const GpudsScanBatch *batch)
{
	const int64 n = batch->n;
	const int64 before = state->nmatches;
	bool *to_all = palloc(Max(n, 1) * sizeof(bool));
	int64 all_visible = 0;

	gpuds_visible_add_to_piece(&state->visible, batch);
	if (state->heap_free)
		gpuds_visible_mark(&state->visible, batch, to_all);
	if (state->nmatches + n > state->matches_size)
	{
		state->matches_size = Max(state->nmatches + n, 2 * state->matches_size);
		state->matches = repalloc(state->matches, state->matches_size * sizeof(Match));
	}
	for (int64 i = 0; i < n; i++)
	{
		Match *match = &state->matches[state->nmatches];

		find_group(state, &batch->entries[i]);
		if (state->groups[state->group].settled)
			continue;
		match->entry = batch->entries[i];
		match->group = (uint32) state->group;
		match->visible = state->heap_free && to_all[i];
		all_visible += match->visible;
		/* A row that is visible to all is all that a semijoin wants. */
		if (match->visible && state->only_marks)
			state->groups[state->group].settled = true;
		state->nmatches++;
	}
	gpuds_scan_note_matches(state->scan, state->nmatches - before, all_visible);
	pfree(to_all);
}

/* Puts the matches whose rows are to be looked up in the order of the heap. */
static void
order_matches(GpudsJoinState *state)
{
	for (int64 i = 0; i < state->nmatches; i++)
	{
		const Match *match = &state->matches[i];

		if (!match->visible && !state->groups[match->group].settled)
			gpuds_visible_order(&state->visible, match->entry.t & ENTRY_TID_MASK, i);
	}
	gpuds_visible_sort_order(&state->visible);
}

static Match *
ordered_match(GpudsJoinState *state, int64 i)
{
	return &state->matches[gpuds_visible_at(&state->visible, i)];
}

/* Looks up all rows of the piece that the visibility map is not enough for. */
static void
look_all_up(GpudsJoinState *state)
{
	for (int64 i = 0; i < state->visible.norder; i++)
	{
		Match *match = ordered_match(state, i);

		if (state->groups[match->group].settled)
			continue;
		match->visible = gpuds_visible_look_up(&state->visible, i, &match->entry);
		if (match->visible && state->only_marks)
			state->groups[match->group].settled = true;
	}
}

/* Gets the next piece of the batch's matches; false: there are no more. */
static bool
collect_matches(GpudsJoinState *state)
{
	gpuds_visible_end_piece(&state->visible);
	gpuds_visible_begin_piece(&state->visible);
	state->nmatches = 0;
	state->at = 0;
	state->member = -1;
	if (state->ngroups == 0)
		return false;
	while (state->nmatches < MATCH_PIECE && gpuds_scan_has_more(state->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(state->scan, GPUDS_PIECE - state->nmatches, &batch);
		add_matches(state, &batch);
	}
	order_matches(state);
	if (state->heap_free)
		look_all_up(state);
	return state->nmatches > 0;
}

/* The match that pairs are wanted of next; NULL: the piece has no more. */
static const Match *
current_match(GpudsJoinState *state)
{
	if (state->heap_free)
		return state->at < state->nmatches ? &state->matches[state->at] : NULL;
	return state->at < state->visible.norder ? ordered_match(state, state->at) : NULL;
}

/* Sets the inner columns of a match; false: it is none. */
static bool
begin_match(GpudsJoinState *state, const Match *match)
{
	if (state->heap_free)
	{
		if (match->visible)
			set_inner_entry(state, &match->entry);
		return match->visible;
	}
	if (state->groups[match->group].settled ||
		!gpuds_visible_look_up(&state->visible, state->at, &match->entry))
		return false;
	set_inner_row(state);
	return true;
}

/* Do an outer row and the current inner one match?  Sets the outer columns. */
static bool
is_pair(GpudsJoinState *state, int64 row)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;

	set_outer_row(state, row);
	if (state->quals == NULL)
		return true;
	ResetExprContext(context);
	context->ecxt_scantuple = scan_tuple(state);
	return ExecQual(state->quals, context);
}

/* The next pair of the current match that the join gives. */
static bool
next_of_match(GpudsJoinState *state, ProbeGroup *group)
{
	while (state->member < group->end)
	{
		GpudsEntry *probe = &state->probes[state->member];
		int64 row = (int64) (probe->t & ENTRY_TID_MASK);

		CHECK_FOR_INTERRUPTS();
		if (!is_pair(state, row))
			state->member++;
		else
		{
			state->matched[row] = true;
			if (wants_one_match(state))
				*probe = state->probes[--group->end];
			else
				state->member++;
			if (state->type != JOIN_ANTI)
				return true;
		}
	}
	if (group->first == group->end)
		group->settled = true;
	return false;
}

/* All outer rows of a group have a match. */
static void
mark_group(GpudsJoinState *state, ProbeGroup *group)
{
	for (int64 i = group->first; i < group->end; i++)
		state->matched[state->probes[i].t & ENTRY_TID_MASK] = true;
	group->end = group->first;
	group->settled = true;
}

/* The next pair of the piece. */
static bool
next_pair(GpudsJoinState *state)
{
	const Match *match;

	while ((match = current_match(state)) != NULL)
	{
		ProbeGroup *group = &state->groups[match->group];

		if (state->member < 0)
			state->member = begin_match(state, match) ? group->first : group->end;
		if (state->only_marks)
		{
			if (state->member < group->end)
				mark_group(state, group);
		}
		else if (next_of_match(state, group))
			return true;
		state->at++;
		state->member = -1;
	}
	return false;
}

/* The next outer row without a match; with one if the join gives these. */
static bool
next_of_rest(GpudsJoinState *state)
{
	const bool wanted = state->type == JOIN_SEMI;

	while (state->rest < state->nrows)
	{
		int64 row = state->rest++;

		if (state->matched[row] != wanted)
			continue;
		set_outer_row(state, row);
		return true;
	}
	return false;
}

static TupleTableSlot *
next(ScanState *ss)
{
	GpudsJoinState *state = (GpudsJoinState *) ss;

	for (;;)
	{
		switch (state->stage)
		{
			case STAGE_LOAD:
				if (state->outer_end || !load_batch(state))
					state->stage = state->outer_end ? STAGE_END : STAGE_LOAD;
				else
					state->stage = STAGE_MATCHES;
				break;
			case STAGE_MATCHES:
				if (collect_matches(state))
					state->stage = STAGE_PAIRS;
				else
				{
					state->stage = keeps_unmatched(state) || state->only_marks ? STAGE_REST : STAGE_LOAD;
					state->rest = 0;
					set_inner(state, NULL, NULL);
				}
				break;
			case STAGE_PAIRS:
				if (next_pair(state))
					return scan_tuple(state);
				state->stage = STAGE_MATCHES;
				break;
			case STAGE_REST:
				if (next_of_rest(state))
					return scan_tuple(state);
				state->stage = STAGE_LOAD;
				break;
			case STAGE_END:
				return ExecClearTuple(ss->ss_ScanTupleSlot);
		}
	}
}

/*
 * Does the row of the inner table that EvalPlanQual gives match the outer one that has been set?  Sets the inner
 * columns, to NULL if it does not.
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
		context->ecxt_scantuple = scan_tuple(state);
		if (ExecQual(state->conditions, context) && ExecQual(state->quals, context))
			return true;
	}
	set_inner(state, NULL, NULL);
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
		TupleTableSlot *outer = ExecProcNode(outer_of(state));
		bool matches;

		if (TupIsNull(outer))
			return false;
		set_outer(state, outer);
		matches = recheck_inner(state);
		if (matches ? state->type != JOIN_ANTI : keeps_unmatched(state))
		{
			(void) scan_tuple(state);
			return true;
		}
	}
}

/*
 * Core asks for this when a statement looks at a changed row once more (EvalPlanQual); some minor releases also where
 * the join is of a subquery, whose rows are not those that have changed.
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
	state->stage = STAGE_LOAD;
	state->outer_end = false;
	state->target = FIRST_ROWS;
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

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsJoinState *state = (GpudsJoinState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List *facts = list_nth(plan->custom_private, JOIN_FACTS);
	List *columns = list_nth(plan->custom_private, JOIN_COLUMNS);
	PlanState *outer = ExecInitNode(linitial(plan->custom_plans), estate, eflags & ~EXEC_FLAG_MARK);
	ListCell *lc;

	css->custom_ps = list_make1(outer);
	state->type = list_nth_int(facts, FACT_TYPE);
	state->inner = relation_at(plan->custom_relids, list_nth_int(facts, FACT_INNER));
	state->nouter = list_nth_int(facts, FACT_OUTER);
	state->heap_free = list_nth_int(facts, FACT_HEAP_FREE);
	state->index_oid = linitial_oid(list_nth(plan->custom_private, JOIN_OIDS));
	state->ninner = list_length(columns);
	state->columns = palloc(Max(state->ninner, 1) * sizeof(AttrNumber));
	foreach (lc, columns)
	{
		state->columns[foreach_current_index(lc)] = lfirst_int(lc);
		state->last_column = Max(state->last_column, lfirst_int(lc));
	}
	state->keys = ExecInitExprList(list_nth(plan->custom_exprs, JOIN_KEYS), &css->ss.ps);
	state->quals = ExecInitQual(list_nth(plan->custom_exprs, JOIN_QUALS), &css->ss.ps);
	state->outer_slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(outer), &TTSOpsMinimalTuple);
	state->batch = AllocSetContextCreate(CurrentMemoryContext, "GpudsJoin batch", ALLOCSET_DEFAULT_SIZES);
	state->inner_values = palloc0(Max(state->ninner, 1) * sizeof(Datum));
	state->inner_isnull = palloc0(Max(state->ninner, 1) * sizeof(bool));
	state->matches_size = 1;
	state->matches = palloc(sizeof(Match));
	state->only_marks = find_only_marks(state);
	restart(state);
	if (is_rechecked(plan, estate))
		begin_recheck(state);
	else if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		open_index(state);
}

static void
end(CustomScanState *css)
{
	GpudsJoinState *state = (GpudsJoinState *) css;
	ListCell *lc;

	if (state->index)
	{
		gpuds_visible_end(&state->visible);
		index_endscan(state->scan);
		index_close(state->index, NoLock);
	}
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

static const char *
name_of(JoinType type)
{
	switch (type)
	{
		case JOIN_LEFT:
			return "Left";
		case JOIN_SEMI:
			return "Semi";
		case JOIN_ANTI:
			return "Anti";
		default:
			return "Inner";
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
static GpudsScanFigures
own_figures(const GpudsJoinState *state)
{
	GpudsScanFigures figures = { 0 };

	/* auto_explain may ask for those of a plan that was not executed. */
	if (state->index)
	{
		figures = *gpuds_scan_figures(state->scan);
		figures.fetches = state->visible.fetches;
	}
	return figures;
}

static Size
estimate_shared(CustomScanState *css, ParallelContext *context)
{
	return gpuds_explain_size(context);
}

static void
initialize_shared(CustomScanState *css, ParallelContext *context, void *shared)
{
	gpuds_explain_share(&((GpudsJoinState *) css)->figures, context, shared);
}

static void
reinitialize_shared(CustomScanState *css, ParallelContext *context, void *shared)
{
	gpuds_explain_share_again(&((GpudsJoinState *) css)->figures);
}

static void
initialize_worker(CustomScanState *css, shm_toc *toc, void *shared)
{
	gpuds_explain_attach(&((GpudsJoinState *) css)->figures, shared);
}

static void
shut_down(CustomScanState *css)
{
	GpudsJoinState *state = (GpudsJoinState *) css;

	if (state->index)
	{
		const GpudsScanFigures own = own_figures(state);

		gpuds_explain_hand_in(&state->figures, &own);
	}
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	GpudsJoinState *state = (GpudsJoinState *) css;

	ExplainPropertyText("Join Type", name_of(state->type), es);
	ExplainPropertyText("Index Name", get_rel_name(state->index_oid), es);
	explain_exprs(state, JOIN_CONDITIONS, "Index Cond", ancestors, es);
	explain_exprs(state, JOIN_QUALS, "Join Filter", ancestors, es);
	ExplainPropertyText("Inner Columns From", state->heap_free ? "Index" : "Heap", es);
	if (es->analyze)
	{
		const GpudsScanFigures own = own_figures(state);

		gpuds_explain_figures(&state->figures, &own, &css->ss.ps, es);
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
	.ExplainCustomScan = explain,
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
