/*-------------------------------------------------------------------------
 *
 * recheck.c
 *	  The values of rows that an index has found by hashes.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/tupmacs.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/arrayaccess.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "am/recheck.h"

/* An element of an array; its place among them is its number. */
typedef struct Element
{
	uint64 hash;
	Datum value; /* in the array */
	int32 next;  /* other element with the same place in the table; -1: none */
	int32 twin;  /* element of the same bytes, which is not in the table; -1: none */
} Element;

/* A condition on a column whose codes are hashes. */
typedef struct Condition
{
	int column;           /* of the index */
	AttrNumber attribute; /* of the table; 0: it is an expression */
	ExprState *expression;
	ScanKeyData key;

	/* of an array: its elements */
	bool is_array;
	Element *elements;
	int32 *places; /* first elements; as many as a power of two */
	int bits;      /* of a place's number */
} Condition;

struct GpudsRecheck
{
	MemoryContext context; /* of this, and all that belongs to it */
	Relation index;
	GpudsKeyLayout layout;
	int nconditions;
	Condition conditions[INDEX_MAX_KEYS];

	/* to evaluate expressions that are asked for */
	EState *estate;

	/* to visit the heap; NULL: it has not been visited */
	Relation heap;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
};

/* Are there arrays among the keys that the index compares by hashes? */
bool
gpuds_recheck_is_needed(const GpudsKeyLayout *layout, const ScanKeyData *keys, int nkeys)
{
	for (int i = 0; layout->hashed && i < nkeys; i++)
	{
		if ((keys[i].sk_flags & SK_SEARCHARRAY) && gpuds_key_compares_hashes(layout, &keys[i]))
			return true;
	}
	return false;
}

static inline int32 *
place_of(const Condition *condition, uint64 hash)
{
	return &condition->places[hash >> (64 - condition->bits)];
}

/* The element in the table that has the same bytes, or NULL. */
static Element *
find_twin(const Condition *condition, uint64 hash, Datum value, bool by_value, int length)
{
	for (int32 i = *place_of(condition, hash); i >= 0; i = condition->elements[i].next)
	{
		Element *element = &condition->elements[i];

		if (element->hash == hash && datumIsEqual(element->value, value, by_value, length))
			return element;
	}
	return NULL;
}

/* Adds an element: to the table, or to the twins of one that is there, so that no list becomes long. */
static void
add_element(Condition *condition, int32 number, uint64 hash, Datum value, bool by_value, int length)
{
	Element *twin = find_twin(condition, hash, value, by_value, length);
	int32 *list = twin ? &twin->twin : place_of(condition, hash);
	Element *element = &condition->elements[number];

	*element = (Element){ .hash = hash, .value = value, .next = -1, .twin = -1 };
	if (twin)
		element->twin = *list;
	else
		element->next = *list;
	*list = number;
}

/* Makes room for n elements, in twice as many places at least. */
static void
make_table(Condition *condition, int64 n)
{
	for (condition->bits = 4; INT64CONST(1) << condition->bits < 2 * n;)
		condition->bits++;
	condition->places = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(int32) << condition->bits);
	memset(condition->places, 0xFF, sizeof(int32) << condition->bits);
	condition->elements = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(Element));
}

/* Reads the array of a condition. */
static void
read_array(const GpudsRecheck *recheck, Condition *condition)
{
	const GpudsKeyColumn *column = &recheck->layout.column[condition->column];
	ArrayType *array = DatumGetArrayTypeP(condition->key.sk_argument);
	const Oid type = OidIsValid(condition->key.sk_subtype) ? condition->key.sk_subtype : column->type;
	FmgrInfo *hash_function = gpuds_key_hash_for(column, type);
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuds hashes", ALLOCSET_SMALL_SIZES);
	int16 length;
	bool by_value;
	char align;
	array_iter it;
	const int n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &align);
	make_table(condition, n);
	GpudsArrayBegin(&it, array, length, by_value, align);
	for (int i = 0; i < n; i++)
	{
		bool isnull;
		Datum value = GpudsArrayNext(&it, &isnull, i, length, by_value, align);
		MemoryContext old;
		uint64 hash;

		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		old = MemoryContextSwitchTo(scratch);
		hash = gpuds_key_hash(hash_function, column->collation, value);
		MemoryContextSwitchTo(old);
		if (i % 1024 == 1023)
			MemoryContextReset(scratch);
		add_element(condition, i, hash, value, by_value, length);
	}
	MemoryContextDelete(scratch);
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
 * be looked at, or the executor does.  The index must stay open.  Memory is the current context's.
 */
GpudsRecheck *
gpuds_recheck_begin(Relation index, const GpudsKeyLayout *layout, const ScanKeyData *keys, int nkeys)
{
	MemoryContext context;
	MemoryContext old;
	GpudsRecheck *recheck;

	if (!gpuds_recheck_is_needed(layout, keys, nkeys))
		return NULL;
	context = AllocSetContextCreate(CurrentMemoryContext, "gpuds recheck", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	recheck = palloc0(sizeof(GpudsRecheck));
	recheck->context = context;
	recheck->index = index;
	recheck->layout = *layout;
	recheck->estate = CreateExecutorState();
	for (int i = 0; i < nkeys; i++)
	{
		Condition *condition = &recheck->conditions[recheck->nconditions];

		if (!gpuds_key_compares_hashes(layout, &keys[i]) || (keys[i].sk_flags & SK_ISNULL))
			continue;
		condition->column = keys[i].sk_attno - 1;
		condition->key = keys[i];
		/* what the function remembers belongs here, and not to the scan */
		fmgr_info_copy(&condition->key.sk_func, &((ScanKeyData *) keys)[i].sk_func, CurrentMemoryContext);
		prepare_value(recheck, condition);
		condition->is_array = (keys[i].sk_flags & SK_SEARCHARRAY) != 0;
		if (condition->is_array)
			read_array(recheck, condition);
		recheck->nconditions++;
	}
	MemoryContextSwitchTo(old);
	return recheck;
}

/* Are a value and a constant equal?  As in a condition, NULL is no. */
static bool
compare(Condition *condition, Datum value, Datum constant)
{
	LOCAL_FCINFO(call, 2);
	Datum equal;

	InitFunctionCallInfoData(*call, &condition->key.sk_func, 2, condition->key.sk_collation, NULL, NULL);
	call->args[0].value = value;
	call->args[0].isnull = false;
	call->args[1].value = constant;
	call->args[1].isnull = false;
	equal = FunctionCallInvoke(call);
	return !call->isnull && DatumGetBool(equal);
}

/* The element from one on, in its list, that a value with such a hash is equal to; -1: none is. */
static int32
find_equal(Condition *condition, int32 from, Datum value, uint64 hash)
{
	for (int32 i = from; i >= 0; i = condition->elements[i].next)
	{
		if (condition->elements[i].hash == hash && compare(condition, value, condition->elements[i].value))
			return i;
	}
	return -1;
}

static uint64
value_hash(const GpudsRecheck *recheck, const Condition *condition, Datum value)
{
	const GpudsKeyColumn *column = &recheck->layout.column[condition->column];

	return gpuds_key_hash(column->hash, column->collation, value);
}

/* Is a value equal to a condition's constant, or to an element of its array? */
static bool
meets(const GpudsRecheck *recheck, Condition *condition, Datum value)
{
	uint64 hash;

	if (!condition->is_array)
		return compare(condition, value, condition->key.sk_argument);
	hash = value_hash(recheck, condition, value);
	return find_equal(condition, *place_of(condition, hash), value, hash) >= 0;
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

/* Has a row of the table what was asked for, in all columns whose codes are hashes? */
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

		all = !isnull && meets(recheck, condition, value);
	}
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(recheck->estate);
	return all;
}

/*
 * Calls found with the number of each element, from 0 on, that a row's value is equal to; the first condition
 * must be an array.
 */
void
gpuds_recheck_find(GpudsRecheck *recheck, TupleTableSlot *slot, void (*found)(void *to, int64 number),
				   void *to)
{
	Condition *condition = &recheck->conditions[0];
	MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(recheck->estate));
	bool isnull;
	Datum value = value_of(recheck, condition, slot, &isnull);
	uint64 hash;
	int32 at;

	Assert(condition->is_array);
	if (!isnull)
	{
		hash = value_hash(recheck, condition, value);
		at = *place_of(condition, hash);
		while ((at = find_equal(condition, at, value, hash)) >= 0)
		{
			for (int32 i = at; i >= 0; i = condition->elements[i].twin)
			{
				CHECK_FOR_INTERRUPTS();
				found(to, i);
			}
			at = condition->elements[at].next;
		}
	}
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(recheck->estate);
}

/* The same of the row at a TID that the snapshot, an MVCC snapshot, sees; false also if it sees none. */
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
