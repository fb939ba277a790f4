/*-------------------------------------------------------------------------
 *
 * join_match.c
 *	  Matches of a GpudsJoin: entries that the index has given, and the pairs of rows they make.
 *
 * The index gives entries in the order of the batch's groups.  An entry and its group are a match: of
 * one inner row with all outer rows of the group.
 *
 * Matches are resolved in pieces, so that no number of them takes more memory.  If the index has
 * all that is wanted of the inner table, the visibility map answers for most (reader/visible.h), and the
 * heap for the others.  Else the heap is visited for all of a piece in the order of its pages.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "custom/join_state.h"
#include "reader/reader.h"

/* Matches whose side values are on their way to the processor by then. */
#define SIDES_AHEAD 12

/* Matches that are resolved at a time, of the entries that a piece may have, about. */
#define MATCHES_OF_PIECE(entries) ((entries) / 4 * 3)

/* Outer rows that are noted of a match, at most, and of a piece for each entry that it may have. */
#define MOST_NOTED 64
#define NOTED_OF_ENTRY 4

/* Nobody looks at the outer columns. */
static void
set_no_outer(GpudsJoinState *state)
{
	TupleTableSlot *slot = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, state->nouter * sizeof(bool));
}

static void
set_outer_row(GpudsJoinState *state, int64 row)
{
	if (!state->keeps)
		set_no_outer(state);
	else
	{
		ExecStoreMinimalTuple(state->rows[row], state->outer_slot, false);
		gpuds_join_set_outer(state, state->outer_slot);
	}
}

static void
set_inner_row(GpudsJoinState *state)
{
	TupleTableSlot *slot = state->visible.slot;

	slot_getsomeattrs(slot, state->last_column);
	gpuds_join_set_inner(state, slot->tts_values, slot->tts_isnull);
	for (int i = 0; i < state->ninner; i++)
	{
		if (state->columns[i] < 0)
			state->inner_values[i] = slot_getsysattr(slot, state->columns[i], &state->inner_isnull[i]);
	}
}

/* The entry whose side values will be asked for a little later; NULL: the piece has none. */
static const GpudsEntry *
entry_ahead(const GpudsJoinState *state)
{
	const int64 at = state->at + SIDES_AHEAD;

	return at < state->nmatches ? &state->matches[at].entry : NULL;
}

static void
set_inner_entry(GpudsJoinState *state, const GpudsEntry *entry)
{
	const uint8 *side = NULL;
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];

	if (state->last_column == 0)
		return;
	if (state->wants_side)
		side = gpuds_side_reader_row(&state->side, entry, entry_ahead(state));
	(void) gpuds_key_decode(&state->layout, entry, side, state->bytes, values, isnull);
	gpuds_join_set_inner(state, values, isnull);
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

/*
 * The next outer row whose shape has the point of the match at hand, and for which a match that it has had is
 * not enough; -1: there is none.
 */
static int64
next_in_shape(GpudsJoinState *state)
{
	int64 number;

	while ((number = gpuds_shapes_next(state->shapes, &state->shaped)) >= 0)
	{
		const int64 row = (int64) (state->probes[number].t & ENTRY_TID_MASK);

		if (!state->matched[row] || !gpuds_join_wants_one_match(state))
			return row;
		CHECK_FOR_INTERRUPTS();
	}
	return -1;
}

/* Begins with the rows whose shapes have an entry's point, which is near what another one was. */
static void
find_shapes(GpudsJoinState *state, const GpudsEntry *entry, int64 near)
{
	gpuds_shapes_find_entry(state->shapes, &state->layout, entry, near, &state->shaped);
}

/* Makes room for the outer rows of another match; false: there are too many. */
static bool
ensure_noted(GpudsJoinState *state)
{
	const int64 most = state->piece * NOTED_OF_ENTRY;

	if (state->noted_size - state->nnoted >= MOST_NOTED)
		return true;
	/* Not by the size: a piece may be a little larger than the one before, if work_mem has been changed. */
	if (most - state->nnoted < MOST_NOTED)
		return false;
	state->noted_size = Min(most, Max(2 * state->noted_size, 16 * MOST_NOTED));
	if (state->noted)
		state->noted = repalloc_huge(state->noted, state->noted_size * sizeof(uint32));
	else
		state->noted = MemoryContextAllocHuge(state->css.ss.ps.state->es_query_cxt,
											  state->noted_size * sizeof(uint32));
	return true;
}

/* Notes the outer rows of a match, of which one has been found, if all are wanted, and there is room. */
static void
note_rows(GpudsJoinState *state, GpudsJoinMatch *match, int64 row)
{
	uint32 *noted;
	int n = 0;

	match->group = (uint32) state->group;
	match->noted = 0;
	if (gpuds_join_wants_one_match(state) || !ensure_noted(state))
		return;
	noted = &state->noted[state->nnoted];
	do
		noted[n++] = (uint32) row;
	while (n < MOST_NOTED && (row = next_in_shape(state)) >= 0);
	if (n == MOST_NOTED)
		return;
	match->noted = (uint8) n;
	match->group = n == 1 ? noted[0] : (uint32) state->nnoted;
	state->nnoted += n == 1 ? 0 : n;
}

/* Finds where the shapes of a match are; false: no outer row wants it. */
static bool
find_wanting_shape(GpudsJoinState *state, const GpudsEntry *entry, GpudsJoinMatch *match)
{
	int64 row;

	find_shapes(state, entry, state->group);
	state->group = state->shaped.near;
	row = next_in_shape(state);
	if (row < 0)
		return false;
	note_rows(state, match, row);
	return true;
}

/* Finds an entry's group, or where its shapes are; false: no outer row wants it. */
static bool
find_wanting(GpudsJoinState *state, const GpudsEntry *entry, GpudsJoinMatch *match)
{
	if (state->shapes)
		return find_wanting_shape(state, entry, match);
	find_group(state, entry);
	match->group = (uint32) state->group;
	match->noted = 0;
	return state->right_semi || !state->groups[state->group].settled;
}

/* Has a match become one that no outer row wants any more? */
static bool
is_settled(GpudsJoinState *state, const GpudsJoinMatch *match)
{
	if (state->shapes)
	{
		if (!gpuds_join_wants_one_match(state))
			return false;
		find_shapes(state, &match->entry, match->group);
		return next_in_shape(state) < 0;
	}
	return !state->right_semi && state->groups[match->group].settled;
}

/* All outer rows whose shapes have an entry's point have a match. */
static void
mark_shapes(GpudsJoinState *state, const GpudsEntry *entry, int64 near)
{
	int64 row;

	find_shapes(state, entry, near);
	while ((row = next_in_shape(state)) >= 0)
		state->matched[row] = true;
}

/* All outer rows of a group have a match. */
static void
mark_group(GpudsJoinState *state, GpudsJoinGroup *group)
{
	for (int64 i = group->first; i < group->end; i++)
		state->matched[state->probes[i].t & ENTRY_TID_MASK] = true;
	group->end = group->first;
	group->settled = true;
}

/* All outer rows that an entry matches with have a match. */
static void
mark_rows(GpudsJoinState *state, const GpudsEntry *entry, int64 group)
{
	if (state->shapes)
		mark_shapes(state, entry, group);
	else
		mark_group(state, &state->groups[group]);
}

/* No further match is wanted of the rows that one makes marks of, which are set later. */
static void
settle(GpudsJoinState *state, const GpudsJoinMatch *match)
{
	if (state->shapes)
		mark_shapes(state, &match->entry, match->group);
	else
		state->groups[match->group].settled = true;
}

/* Leaves in a batch the entries that pass the filter, which are put into an array of the caller's. */
static void
keep_passing(GpudsJoinState *state, GpudsScanBatch *batch, GpudsEntry *entries)
{
	bool *passes = palloc(Max(batch->n, 1) * sizeof(bool));
	int64 kept = 0;

	gpuds_row_filter_run(state->filter, &state->layout, batch->entries, NULL, batch->n, passes);
	for (int64 i = 0; i < batch->n; i++)
	{
		if (passes[i])
			entries[kept++] = batch->entries[i];
	}
	pfree(passes);
	InstrCountFiltered2(state, batch->n - kept);
	batch->entries = entries;
	batch->n = kept;
}

static void
add_matches(GpudsJoinState *state, const GpudsScanBatch *batch)
{
	const int64 n = batch->n;
	const int64 before = state->nmatches;
	int64 marks = 0;
	bool *to_all = palloc(Max(n, 1) * sizeof(bool));
	int64 all_visible = 0;

	if (state->heap_free)
		gpuds_visible_mark(&state->visible, batch, to_all);
	if (state->nmatches + n > state->matches_size)
	{
		state->matches_size = Max(state->nmatches + n, 2 * state->matches_size);
		state->matches = repalloc(state->matches, state->matches_size * sizeof(GpudsJoinMatch));
	}
	for (int64 i = 0; i < n; i++)
	{
		GpudsJoinMatch *match = &state->matches[state->nmatches];

		if (!find_wanting(state, &batch->entries[i], match))
			continue;
		/* Marks take only rows that are visible to all. */
		if (state->only_marks && state->heap_free && to_all[i])
		{
			mark_rows(state, &batch->entries[i], state->group);
			marks++;
			continue;
		}
		match->entry = batch->entries[i];
		match->visible = state->heap_free && to_all[i];
		all_visible += match->visible;
		state->nmatches++;
	}
	gpuds_scan_note_matches(state->scan, state->nmatches - before + marks, all_visible + marks);
	pfree(to_all);
}

/* Adds those of a batch's entries that pass the filter, if there is one. */
static void
add_passing(GpudsJoinState *state, GpudsScanBatch *batch)
{
	GpudsEntry *entries = NULL;

	gpuds_visible_add_to_piece(&state->visible, batch);
	if (state->filter)
	{
		entries = palloc(Max(batch->n, 1) * sizeof(GpudsEntry));
		keep_passing(state, batch, entries);
	}
	add_matches(state, batch);
	if (entries)
		pfree(entries);
}

/* Puts the matches whose rows are to be looked up in the order of the heap. */
static void
order_matches(GpudsJoinState *state)
{
	for (int64 i = 0; i < state->nmatches; i++)
	{
		const GpudsJoinMatch *match = &state->matches[i];

		if (!match->visible && !is_settled(state, match))
			gpuds_visible_order(&state->visible, match->entry.t & ENTRY_TID_MASK, i);
	}
	gpuds_visible_sort_order(&state->visible);
}

static GpudsJoinMatch *
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
		GpudsJoinMatch *match = ordered_match(state, i);

		if (is_settled(state, match))
			continue;
		match->visible = gpuds_visible_sees(&state->visible, i, &match->entry);
		if (match->visible && state->only_marks)
			settle(state, match);
	}
}

/* Gets the next piece of the batch's matches; false: there are no more. */
bool
gpuds_join_collect_matches(GpudsJoinState *state)
{
	gpuds_join_end_pages(state);
	gpuds_visible_end_piece(&state->visible);
	gpuds_visible_begin_piece(&state->visible);
	state->nmatches = state->nnoted = 0;
	state->at = 0;
	state->member = -1;
	if (!gpuds_join_asks(state))
		return false;
	while (state->nmatches < MATCHES_OF_PIECE(state->piece) && gpuds_scan_has_more(state->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(state->scan, Min(state->piece - state->nmatches, GPUDS_PIECE_ENTRIES), &batch);
		add_passing(state, &batch);
	}
	if (state->by_pages)
		gpuds_join_begin_pages(state);
	else
		order_matches(state);
	if (state->heap_free)
		look_all_up(state);
	return state->nmatches > 0;
}

/* The match that pairs are wanted of next; NULL: the piece has no more. */
static const GpudsJoinMatch *
current_match(GpudsJoinState *state)
{
	if (state->heap_free)
		return state->at < state->nmatches ? &state->matches[state->at] : NULL;
	if (state->by_pages)
		return state->member < 0 ? gpuds_join_next_of_pages(state) : &state->matches[state->at];
	return state->at < state->visible.norder ? ordered_match(state, state->at) : NULL;
}

/* Sets the inner columns of a match; false: it is none. */
static bool
begin_match(GpudsJoinState *state, const GpudsJoinMatch *match)
{
	if (state->heap_free)
	{
		if (match->visible)
			set_inner_entry(state, &match->entry);
		return match->visible;
	}
	if (!state->by_pages &&
		(is_settled(state, match) || !gpuds_visible_look_up(&state->visible, state->at, &match->entry)))
		return false;
	set_inner_row(state);
	return true;
}

/* Does the scan tuple, as its columns have been set, pass the quals? */
static bool
passes_quals(GpudsJoinState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;

	if (state->quals == NULL)
		return true;
	ResetExprContext(context);
	context->ecxt_scantuple = gpuds_join_scan_tuple(state);
	return ExecQual(state->quals, context);
}

/* Do an outer row and the current inner one match?  Sets the outer columns. */
static bool
is_pair(GpudsJoinState *state, int64 row)
{
	set_outer_row(state, row);
	return passes_quals(state);
}

/* Does a right semijoin give the inner row of a match?  Sets all columns then. */
static bool
is_wanted(GpudsJoinState *state, const GpudsJoinMatch *match)
{
	CHECK_FOR_INTERRUPTS();
	if (!begin_match(state, match))
		return false;
	set_no_outer(state);
	return passes_quals(state);
}

/* The next pair of the current match that the join gives. */
static bool
next_of_match(GpudsJoinState *state, GpudsJoinGroup *group)
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
			if (gpuds_join_wants_one_match(state))
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

/* Begins with the outer rows of a match by a shape. */
static void
begin_shape_rows(GpudsJoinState *state, const GpudsJoinMatch *match)
{
	state->row_at = NULL;
	if (match->noted == 0)
		find_shapes(state, &match->entry, match->group);
	else
	{
		state->row_at = match->noted == 1 ? &match->group : &state->noted[match->group];
		state->row_end = state->row_at + match->noted;
	}
}

/* The next of them; -1: there is none. */
static int64
next_shape_row(GpudsJoinState *state)
{
	if (state->row_at == NULL)
		return next_in_shape(state);
	return state->row_at < state->row_end ? (int64) *state->row_at++ : -1;
}

/* The same as next_of_match of a match by a shape. */
static bool
next_in_shapes(GpudsJoinState *state)
{
	int64 row;

	while ((row = next_shape_row(state)) >= 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (!is_pair(state, row))
			continue;
		state->matched[row] = true;
		if (state->type != JOIN_ANTI)
			return true;
	}
	return false;
}

/* The next pair of the piece, of rows that are joined by shapes. */
static bool
next_shape_pair(GpudsJoinState *state)
{
	const GpudsJoinMatch *match;

	while ((match = current_match(state)) != NULL)
	{
		if (state->member < 0)
		{
			state->member = begin_match(state, match);
			if (state->member > 0)
				begin_shape_rows(state, match);
		}
		if (state->member > 0 && state->only_marks)
			mark_shapes(state, &match->entry, match->group);
		else if (state->member > 0 && next_in_shapes(state))
			return true;
		state->at++;
		state->member = -1;
	}
	return false;
}

/* The next inner row of the piece that a right semijoin gives. */
static bool
next_inner(GpudsJoinState *state)
{
	const GpudsJoinMatch *match;

	while ((match = current_match(state)) != NULL)
	{
		const bool wanted = is_wanted(state, match);

		state->at++;
		if (wanted)
			return true;
	}
	return false;
}

/* The next pair of the piece. */
bool
gpuds_join_next_pair(GpudsJoinState *state)
{
	const GpudsJoinMatch *match;

	if (state->right_semi)
		return next_inner(state);
	if (state->shapes)
		return next_shape_pair(state);
	while ((match = current_match(state)) != NULL)
	{
		GpudsJoinGroup *group = &state->groups[match->group];

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
bool
gpuds_join_next_of_rest(GpudsJoinState *state)
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

/* How many outer rows gpuds_join_next_of_rest would give; it gives none then. */
int64
gpuds_join_count_rest(GpudsJoinState *state)
{
	const bool wanted = state->type == JOIN_SEMI;
	int64 n = 0;

	for (int64 row = state->rest; row < state->nrows; row++)
		n += state->matched[row] == wanted;
	state->rest = state->nrows;
	return n;
}
