/*-------------------------------------------------------------------------
 *
 * recheck.c
 *	  The values of rows that an index has found.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "reader/recheck.h"

/* A condition on a lossy column, or on any. */
typedef struct Condition
{
	int column;           /* of the index */
	AttrNumber attribute; /* of the table; 0: it is an expression */
	ExprState *expression;
	ScanKeyData key;
	GpudsElements *elements; /* of an array; NULL: the constant is none */
} Condition;

struct GpudsRecheck
{
	MemoryContext context; /* of this, and all that belongs to it */
	Relation index;
	GpudsKeyLayout layout;
	int nconditions;
	Condition *conditions; /* there is room for as many as the scan has keys: a query may have any number */

	/* to evaluate expressions that are asked for */
	EState *estate;

	/* to visit the heap; NULL: it has not been visited */
	Relation heap;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
};

/* Are there arrays among the keys that the index finds candidates by? */
bool
gpuds_recheck_is_needed(const GpudsKeyLayout *layout, const ScanKeyData *keys, int nkeys)
{
	for (int i = 0; layout->lossy && i < nkeys; i++)
	{
		if ((keys[i].sk_flags & SK_SEARCHARRAY) && gpuds_key_finds_candidates(layout, &keys[i]))
			return true;
	}
	return false;
}

/* Are the index unique or NULLs asked for, and could all keys be looked at (all)? */
bool
gpuds_recheck_can_all(Relation index, const ScanKeyData *keys, int nkeys)
{
	bool wanted = index->rd_index->indisunique;

	for (int i = 0; i < nkeys; i++)
	{
		if (keys[i].sk_flags & (SK_SEARCHARRAY | SK_ROW_HEADER | SK_SEARCHNOTNULL))
			return false;
		wanted |= (keys[i].sk_flags & SK_SEARCHNULL) != 0;
	}
	return wanted && nkeys > 0;
}

/*
 * Prepares for the values of a condition's column.  Other columns are not evaluated: the query does not ask
 * for them, and the user may not be allowed to.
 */
static void
prepare_value(GpudsRecheck *recheck, Condition *condition)
{
	const int2vector *columns = &recheck->index->rd_index->indkey;
	int expression = 0;

	condition->attribute = columns->values[condition->column];
	if (condition->attribute != 0)
		return;
	for (int i = 0; i < condition->column; i++)
		expression += columns->values[i] == 0;
	condition->expression = ExecPrepareExpr(list_nth(RelationGetIndexExpressions(recheck->index), expression),
											recheck->estate);
}

/*
 * For rows of an index's scan with these keys, whose arguments must stay where they are; NULL: nothing is to
 * be looked at, or the executor does.  all: all keys are to be looked at, as gpuds_recheck_can_all allows.
 * The index must stay open.  Memory is the current context's.
 */
GpudsRecheck *
gpuds_recheck_begin(Relation index, const GpudsKeyLayout *layout, const ScanKeyData *keys, int nkeys,
					bool all)
{
	MemoryContext context;
	MemoryContext old;
	GpudsRecheck *recheck;

	if (!all && !gpuds_recheck_is_needed(layout, keys, nkeys))
		return NULL;
	context = AllocSetContextCreate(CurrentMemoryContext, "gpuds recheck", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	recheck = palloc0(sizeof(GpudsRecheck));
	recheck->context = context;
	recheck->index = index;
	recheck->layout = *layout;
	recheck->estate = CreateExecutorState();
	recheck->conditions = palloc(nkeys * sizeof(Condition));
	for (int i = 0; i < nkeys; i++)
	{
		Condition *condition = &recheck->conditions[recheck->nconditions];

		if (!all && (!gpuds_key_finds_candidates(layout, &keys[i]) || (keys[i].sk_flags & SK_ISNULL)))
			continue;
		*condition = (Condition){ .column = keys[i].sk_attno - 1, .key = keys[i] };
		/* what the function remembers belongs here, and not to the scan */
		if ((keys[i].sk_flags & SK_ISNULL) == 0)
			fmgr_info_copy(&condition->key.sk_func, &((ScanKeyData *) keys)[i].sk_func, CurrentMemoryContext);
		prepare_value(recheck, condition);
		if (keys[i].sk_flags & SK_SEARCHARRAY)
			condition->elements = gpuds_elements_read(&recheck->layout.column[condition->column],
													  &condition->key);
		recheck->nconditions++;
	}
	MemoryContextSwitchTo(old);
	return recheck;
}

/* Is a value equal to a condition's constant, or to an element of its array? */
static bool
meets(Condition *condition, Datum value)
{
	if (condition->elements)
		return gpuds_elements_have(condition->elements, value);
	return gpuds_elements_equal(&condition->key.sk_func, condition->key.sk_collation, value,
								condition->key.sk_argument);
}

/* The value of a condition's column in a row, in memory of the row. */
static Datum
value_of(GpudsRecheck *recheck, const Condition *condition, TupleTableSlot *slot, bool *isnull)
{
	ExprContext *context = GetPerTupleExprContext(recheck->estate);

	if (condition->attribute != 0)
		return slot_getattr(slot, condition->attribute, isnull);
	context->ecxt_scantuple = slot;
	return ExecEvalExpr(condition->expression, context, isnull);
}

/* Has a row of the table what was asked for, in all columns that are looked at? */
bool
gpuds_recheck_row(GpudsRecheck *recheck, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(recheck->estate));
	bool all = true;

	for (int i = 0; i < recheck->nconditions && all; i++)
	{
		Condition *condition = &recheck->conditions[i];
		bool isnull;
		Datum value = value_of(recheck, condition, slot, &isnull);

		if (condition->key.sk_flags & SK_ISNULL)
			all = isnull && (condition->key.sk_flags & SK_SEARCHNULL);
		else
			all = !isnull && meets(condition, value);
	}
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(recheck->estate);
	return all;
}

/* Can the rows of a page be looked at together?  One array is to be compared with a column of the table. */
bool
gpuds_recheck_takes_pages(const GpudsRecheck *recheck)
{
	return recheck->nconditions == 1 && recheck->conditions[0].elements &&
		   recheck->conditions[0].attribute > 0;
}

/* What is looked at together. */
typedef struct Candidates
{
	GpudsElements *elements;
	int n;
	OffsetNumber rows[MaxHeapTuplesPerPage];
	Datum values[MaxHeapTuplesPerPage]; /* where they are not passed by value, in the page */
	uint64 hashes[MaxHeapTuplesPerPage];
} Candidates;

/* Adds a row of a page whose value is not NULL. */
static void
add_candidate(GpudsRecheck *recheck, Candidates *candidates, TupleDesc desc, Page page, OffsetNumber row)
{
	ItemId id = PageGetItemId(page, row);
	HeapTupleData tuple = { .t_len = ItemIdGetLength(id), .t_data = (HeapTupleHeader) PageGetItem(page, id) };
	bool isnull;
	Datum value = heap_getattr(&tuple, recheck->conditions[0].attribute, desc, &isnull);

	if (isnull)
		return;
	candidates->rows[candidates->n] = row;
	candidates->values[candidates->n] = value;
	candidates->hashes[candidates->n++] = gpuds_elements_ask(candidates->elements, value);
	ResetPerTupleExprContext(recheck->estate);
}

/*
 * gpuds_recheck_row of rows of the heap, given by their places in a page, which is pinned.  Leaves the places
 * of those that have what was asked for; returns how many.  The recheck must take pages.
 */
int
gpuds_recheck_page(GpudsRecheck *recheck, TupleDesc desc, Page page, OffsetNumber *rows, int n)
{
	MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(recheck->estate));
	Candidates all;
	int kept = 0;

	all.elements = recheck->conditions[0].elements;
	all.n = 0;
	for (int i = 0; i < n; i++)
		add_candidate(recheck, &all, desc, page, rows[i]);
	for (int i = 0; i < all.n; i++)
		gpuds_elements_ask_place(all.elements, all.hashes[i]);
	for (int i = 0; i < all.n; i++)
		gpuds_elements_ask_value(all.elements, all.hashes[i]);
	for (int i = 0; i < all.n; i++)
	{
		if (gpuds_elements_have_hash(all.elements, all.hashes[i], all.values[i]))
			rows[kept++] = all.rows[i];
		ResetPerTupleExprContext(recheck->estate);
	}
	MemoryContextSwitchTo(old);
	return kept;
}

/*
 * Calls found with the number of each element, from 0 on, that a row's value is equal to; once: unless it has
 * been called for the element before.  The first condition must be an array.
 */
void
gpuds_recheck_find(GpudsRecheck *recheck, TupleTableSlot *slot, bool once, GpudsElementFound found, void *to)
{
	const Condition *condition = &recheck->conditions[0];
	MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(recheck->estate));
	bool isnull;
	Datum value = value_of(recheck, condition, slot, &isnull);

	Assert(condition->elements);
	if (!isnull)
		gpuds_elements_find(condition->elements, value, once, found, to);
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(recheck->estate);
}

/*
 * gpuds_recheck_row of what the snapshot sees at a TID; false also if that is nothing.  Until the next call,
 * gpuds_recheck_unpin or gpuds_recheck_end, the row's page stays pinned: nobody prunes it, and no other row
 * gets the TID.
 */
bool
gpuds_recheck_tid(GpudsRecheck *recheck, Snapshot snapshot, uint64 tid)
{
	ItemPointerData at;
	bool again = false;
	bool has;

	CHECK_FOR_INTERRUPTS();
	if (recheck->heap == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(recheck->context);

		recheck->heap = table_open(recheck->index->rd_index->indrelid, NoLock);
		recheck->fetch = GpudsIndexFetchBegin(recheck->heap);
		recheck->slot = table_slot_create(recheck->heap, NULL);
		MemoryContextSwitchTo(old);
	}
	ItemPointerSet(&at, (BlockNumber) (tid >> 16), (OffsetNumber) (tid & 0xFFFF));
	if (!table_index_fetch_tuple(recheck->fetch, &at, snapshot, recheck->slot, &again, NULL))
		return false;
	has = gpuds_recheck_row(recheck, recheck->slot);
	ExecClearTuple(recheck->slot);
	return has;
}

/* Lets go of the page that gpuds_recheck_tid has pinned. */
void
gpuds_recheck_unpin(GpudsRecheck *recheck)
{
	if (recheck->heap)
		table_index_fetch_reset(recheck->fetch);
}

/*
 * Frees all that gpuds_recheck_begin and later calls made, and closes the table, whose lock is the query's.
 */
void
gpuds_recheck_end(GpudsRecheck *recheck)
{
	if (recheck->heap)
	{
		ExecDropSingleTupleTableSlot(recheck->slot);
		table_index_fetch_end(recheck->fetch);
		table_close(recheck->heap, NoLock);
	}
	FreeExecutorState(recheck->estate);
	MemoryContextDelete(recheck->context);
}
