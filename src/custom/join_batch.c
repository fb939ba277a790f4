/*-------------------------------------------------------------------------
 *
 * join_batch.c
 *	  Batches of a GpudsJoin: outer rows and their probes.
 *
 * A batch of outer rows is kept, and what they are joined by becomes probes: entries with the row's
 * number in place of a TID.  Sorted, they fall into groups of equal probes.  The index is
 * asked for all groups at once.
 *
 * If nothing is wanted of the outer rows but their keys, the rows are not kept, only their probes.
 *
 * A right semijoin reads all outer rows, and sorts their probes without numbers, so that equal ones
 * become one (sort/sorter.h).  A batch is a part of these, so no inner row has a match in two batches.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "custom/join_state.h"
#include "kernels/core/sort.h"
#include "reader/reader.h"

/* The values that an outer row is joined by. */
static void
evaluate_keys(GpudsJoinState *state, TupleTableSlot *slot, Datum *values, bool *isnull)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	ListCell *lc;

	gpuds_join_set_outer(state, slot);
	ResetExprContext(context);
	context->ecxt_scantuple = gpuds_join_scan_tuple(state);
	foreach (lc, state->keys)
	{
		int i = foreach_current_index(lc);

		values[i] = ExecEvalExprSwitchContext(lfirst(lc), context, &isnull[i]);
	}
}

/*
 * The next outer row, or an empty slot or NULL.  Core begins the table scan of a plan of all rows of a table,
 * or begins it anew, and gives its first row; the others come from that table scan, without what the plan
 * would do with each: it has nothing to do (find_outer_scan).  They are rows of the table then.
 */
static inline TupleTableSlot *
next_outer(GpudsJoinState *state)
{
	PlanState *outer = gpuds_join_outer_of(state);
	SeqScanState *scan = state->outer_scan;
	TupleTableSlot *slot;

	if (scan && scan->ss.ss_currentScanDesc && outer->chgParam == NULL)
	{
		slot = scan->ss.ss_ScanTupleSlot;
		return table_scan_getnextslot(scan->ss.ss_currentScanDesc, ForwardScanDirection, slot) ? slot : NULL;
	}
	slot = ExecProcNode(outer);
	return scan && !TupIsNull(slot) ? scan->ss.ss_ScanTupleSlot : slot;
}

/*
 * The probe of an outer row; false: nothing is equal to its keys.
 */
static bool
make_probe(GpudsJoinState *state, TupleTableSlot *slot, uint64 number, GpudsEntry *probe)
{
	Datum values
		[GPUDS_KEY_MAX_COLUMNS]; /* of keys, of which there is one for each column of the index at most */
	bool isnull[GPUDS_KEY_MAX_COLUMNS];
	MemoryContext old;
	bool known;

	if (state->key_columns == NULL)
		evaluate_keys(state, slot, values, isnull);
	else
	{
		slot_getsomeattrs(slot, state->last_key_column);
		if (state->probe.integer_bytes > 0)
		{
			const int at = state->key_columns[0] - 1;

			return !slot->tts_isnull[at] &&
				   gpuds_key_probe_integer(&state->probe,
										   gpuds_key_probe_value(&state->probe, slot->tts_values[at]), number,
										   probe);
		}
		for (int i = 0; i < state->probe.ncolumns; i++)
		{
			values[i] = slot->tts_values[state->key_columns[i] - 1];
			isnull[i] = slot->tts_isnull[state->key_columns[i] - 1];
		}
	}
	old = gpuds_key_scratch_enter(&state->hashes, &state->layout);
	known = gpuds_key_probe(&state->probe, values, isnull, number, probe);
	MemoryContextSwitchTo(old);
	return known;
}

/* The same of a row that is joined by a shape, which is added to those of the batch. */
static bool
add_shape(GpudsJoinState *state, TupleTableSlot *slot, uint64 number, GpudsEntry *probe)
{
	Datum value;
	bool isnull = true;

	if (state->key_columns == NULL)
		evaluate_keys(state, slot, &value, &isnull);
	else
		value = slot_getattr(slot, state->key_columns[0], &isnull);
	probe->t = number;
	return !isnull && gpuds_shapes_add(state->shapes, state->shape_function, value);
}

/* Memory that a row takes, beside what is kept of it: also to sort the probe, its interval and group. */
#define ROW_BYTES (sizeof(bool) + 4 * sizeof(GpudsEntry))

/* Memory for n elements, in which the first kept ones stay. */
static void *
grown(void *array, int64 n, int64 kept, size_t size, MemoryContext context)
{
	if (array && kept > 0)
		return repalloc_huge(array, n * size);
	/* without copying what nobody wants */
	if (array)
		pfree(array);
	return MemoryContextAllocHuge(context, n * size);
}

/* Makes room for n rows in the batch. */
static void
ensure_capacity(GpudsJoinState *state, int64 n)
{
	MemoryContext context = state->css.ss.ps.state->es_query_cxt;

	if (n <= state->size)
		return;
	n = Max(n, Max(2 * state->size, GPUDS_JOIN_FIRST_ROWS));
	state->matched = grown(state->matched, n, state->nrows, sizeof(bool), context);
	state->probes = grown(state->probes, n, state->nrows, sizeof(GpudsEntry), context);
	if (state->keeps)
		state->rows = grown(state->rows, n, state->nrows, sizeof(MinimalTuple), context);
	state->size = n;
}

/* Makes room for n groups, in place of those of the batch before. */
static void
ensure_group_capacity(GpudsJoinState *state, int64 n)
{
	MemoryContext context = state->css.ss.ps.state->es_query_cxt;

	if (n <= state->groups_size)
		return;
	state->keys_of_groups = grown(state->keys_of_groups, n, 0, sizeof(GpudsEntry), context);
	if (!state->right_semi)
		state->groups = grown(state->groups, n, 0, sizeof(GpudsJoinGroup), context);
	state->groups_size = n;
}

/* May a GPU mark the rows of a batch? */
static bool
may_be_marked(const GpudsJoinState *state)
{
	return state->asks_for_marks &&
		   gpuds_scan_may_test_membership(state->scan, GPUDS_JOIN_MOST_ROWS, GPUDS_JOIN_MOST_ROWS);
}

/*
 * Rows that the next batch has, at most.  Of rows that are only counted all are wanted, so there need not be
 * few at first.
 */
static int64
rows_of_batch(GpudsJoinState *state)
{
	const bool marked = may_be_marked(state);

	if (marked && state->counts)
		return GPUDS_JOIN_MOST_MARKED_ROWS;
	return Min(state->target, marked ? GPUDS_JOIN_MOST_MARKED_ROWS : GPUDS_JOIN_MOST_ROWS);
}

/* Makes room for n rows of the next batch, if there is memory for them and the planner expects so many. */
static void
expect_rows(GpudsJoinState *state, int64 n, Size most)
{
	const double expected = gpuds_join_outer_of(state)->plan->plan_rows;
	/* The row with which a batch has its memory is the last one. */
	int64 rows = Min(n, (int64) (most / ROW_BYTES) + 1);

	if (expected < (double) rows)
		rows = Max((int64) expected, 1);
	ensure_capacity(state, rows);
}

/* Adds an outer row to the batch; returns the memory it takes. */
static Size
keep_row(GpudsJoinState *state, TupleTableSlot *slot)
{
	Size bytes = ROW_BYTES;
	GpudsEntry probe;
	const Size before = state->shapes ? gpuds_shapes_bytes(state->shapes) : 0;
	const bool has_probe = state->shapes ? add_shape(state, slot, state->nrows, &probe)
										 : make_probe(state, slot, state->nrows, &probe);

	if (!has_probe && !gpuds_join_keeps_unmatched(state))
		return 0;
	ensure_capacity(state, state->nrows + 1);
	if (state->keeps)
	{
		MemoryContext old = MemoryContextSwitchTo(state->batch);
		MinimalTuple tuple = ExecCopySlotMinimalTuple(slot);

		MemoryContextSwitchTo(old);
		state->rows[state->nrows] = tuple;
		bytes += GetMemoryChunkSpace(tuple) + sizeof(MinimalTuple);
	}
	state->matched[state->nrows++] = false;
	if (has_probe)
		state->probes[state->nprobes++] = probe;
	if (state->shapes)
		bytes += gpuds_shapes_bytes(state->shapes) - before;
	return bytes;
}

/* Sorts the batch's probes into groups. */
static void
group_probes(GpudsJoinState *state)
{
	const int64 n = state->nprobes;

	ensure_group_capacity(state, Max(n, 1));
	sort_entries(state->probes, state->keys_of_groups, n);
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
}

/*
 * Where it is enough to know which outer rows have a match, and the visibility map says of most inner rows
 * that they are seen, a GPU marks the rows of a batch by probes that nobody has sorted
 * (reader/membership.c).  What it is not sure of remains among the probes.
 */
static void
ask_device_for_marks(GpudsJoinState *state)
{
	state->weight = state->nprobes;
	if (state->asks_for_marks && state->nprobes > 0)
		state->asks_for_marks = gpuds_membership_find(state->scan, &state->visible, &state->probe,
													  state->probes, &state->nprobes, state->weight,
													  state->matched);
}

/* Begins to collect the shapes of so many rows. */
static void
begin_shapes(GpudsJoinState *state, int64 n)
{
	MemoryContext old = MemoryContextSwitchTo(state->batch);

	state->shapes = gpuds_shapes_begin(n);
	MemoryContextSwitchTo(old);
}

/* Gets a batch of outer rows; false: there are none. */
static bool
load_rows(GpudsJoinState *state)
{
	const Size most = (Size) work_mem * 1024;
	int64 n = rows_of_batch(state);
	Size bytes = 0;

	MemoryContextReset(state->batch);
	state->nrows = state->nprobes = 0;
	if (OidIsValid(state->shape_function))
	{
		n = Min(n, (int64) (most / GPUDS_SHAPE_BYTES) + 1);
		begin_shapes(state, n);
	}
	expect_rows(state, n, most);
	while (!state->outer_end && state->nrows < n && bytes < most)
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		slot = next_outer(state);
		if (TupIsNull(slot))
			state->outer_end = true;
		else
			bytes += keep_row(state, slot);
	}
	ask_device_for_marks(state);
	if (state->shapes == NULL)
		group_probes(state);
	return state->nrows > 0;
}

/* Sorts the probes of all outer rows. */
static void
sort_all_probes(GpudsJoinState *state)
{
	MemoryContext old = MemoryContextSwitchTo(state->css.ss.ps.state->es_query_cxt);

	state->sorter = gpuds_sorter_begin(state->layout.nwords, (Size) work_mem * 1024, GPUDS_SORTER_MOMENT);
	MemoryContextSwitchTo(old);
	for (;;)
	{
		TupleTableSlot *slot;
		GpudsEntry probe;

		CHECK_FOR_INTERRUPTS();
		slot = next_outer(state);
		if (TupIsNull(slot))
			break;
		if (make_probe(state, slot, 0, &probe))
			gpuds_sorter_add(state->sorter, &probe);
	}
}

/* Gets a batch of different probes; false: there are none. */
static bool
load_probes(GpudsJoinState *state)
{
	int64 most = (int64) work_mem * 1024 / (2 * (int64) sizeof(GpudsEntry));

	if (state->sorter == NULL)
		sort_all_probes(state);
	most = Max(Min(most, Min(state->target, GPUDS_JOIN_MOST_ROWS)), GPUDS_JOIN_FIRST_ROWS);
	ensure_group_capacity(state, most);
	state->ngroups = gpuds_sorter_next(state->sorter, state->keys_of_groups, most);
	state->outer_end = state->ngroups == 0;
	return !state->outer_end;
}

/* Gets a batch and asks the index about it; false: there is none. */
bool
gpuds_join_load_batch(GpudsJoinState *state)
{
	const bool some = state->right_semi ? load_probes(state) : load_rows(state);

	if (state->target < GPUDS_JOIN_MOST_MARKED_ROWS)
		state->target *= GPUDS_JOIN_ROWS_GROWTH;
	state->group = 0;
	if (some && state->shapes && state->nprobes > 0)
		gpuds_scan_set_shapes(state->scan, &state->layout, state->shapes);
	else if (some && state->ngroups > 0)
		gpuds_scan_set_probes(state->scan, &state->probe, state->keys_of_groups, state->ngroups);
	if (some && gpuds_join_asks(state))
	{
		gpuds_visible_before_barrier(&state->visible);
		gpuds_scan_begin_batches(state->scan, state->weight);
	}
	return some;
}

/* Frees the sorter of a right semijoin with its files, if there is one. */
void
gpuds_join_end_sorter(GpudsJoinState *state)
{
	if (state->sorter)
		gpuds_sorter_end(state->sorter);
	state->sorter = NULL;
}
