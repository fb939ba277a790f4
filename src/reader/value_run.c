/*-------------------------------------------------------------------------
 *
 * value_run.c
 *	  A run of entries, put in the order of the values of their rows (value_run.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "key/code.h"
#include "key/text.h"
#include "reader/short_run.h"
#include "reader/value_run.h"

/* Rows that are looked up at a time, in the order of the heap: as many as there are, but for these bounds. */
#define FIRST_BATCH 512
#define MOST_ROWS_OF_BATCH (64 * 1024)

/* Columns of what is sorted that have an entry: its words, of which the last decides among equal rows. */
#define ENTRY_COLUMNS 3

#define MAX_COLUMNS (GPUDS_KEY_MAX_COLUMNS + ENTRY_COLUMNS)

/* Looks rows of an index's scan up. */
struct GpudsRunRows
{
	IndexScanDesc scan;
	const GpudsKeyLayout *layout;
	MemoryContext context; /* of this, and of the contexts of runs */
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	EState *estate;                               /* for expressions; NULL: there are none */
	ExprState *expression[GPUDS_KEY_MAX_COLUMNS]; /* of texts; NULL: a column of the table */
	int nbatch;
	int batch_size; /* capacity */
	GpudsEntry *batch;
};

struct GpudsValueRun
{
	GpudsRunRows *rows;
	MemoryContext context; /* of this, and of what it sorts */
	int column;
	GpudsEntry bits; /* that entries of a run by the column have in common */
	GpudsEntry like; /* an entry of the run */
	GpudsEntry first;
	GpudsEntry last;
	int64 n;              /* rows that are sorted */
	bool is_short;        /* it is in memory, not in the sort */
	GpudsShortRun *small; /* NULL: runs by the column cannot be short */
	/* of longer ones; NULL: there has been none */
	TupleDesc desc;
	TupleTableSlot *unsorted;
	TupleTableSlot *sorted;
	Tuplesortstate *sort;
};

/* Is a value of a column compared as such?  Else its code is. */
static bool
compares_values(const GpudsKeyColumn *column)
{
	return gpuds_is_text(column->kind);
}

/* What is an expression in the index, of its texts, by columns of the key; else NULL. */
static void
find_expressions(Relation index, const GpudsKeyLayout *layout, Node **expressions)
{
	const int2vector *columns = &index->rd_index->indkey;
	List *all = RelationGetIndexExpressions(index);
	int next = 0;

	for (int i = 0; i < layout->nkeys; i++)
	{
		Node *expression = columns->values[i] == 0 ? list_nth(all, next++) : NULL;

		expressions[i] = compares_values(&layout->column[i]) ? expression : NULL;
	}
}

/* For the runs of a scan, in the current memory context.  The layout must stay where it is. */
GpudsRunRows *
gpuds_run_rows_begin(IndexScanDesc scan, const GpudsKeyLayout *layout)
{
	GpudsRunRows *rows = palloc0(sizeof(GpudsRunRows));
	Node *expressions[GPUDS_KEY_MAX_COLUMNS];

	rows->scan = scan;
	rows->layout = layout;
	rows->context = CurrentMemoryContext;
	rows->fetch = GpudsIndexFetchBegin(scan->heapRelation);
	rows->slot = table_slot_create(scan->heapRelation, NULL);
	rows->batch_size = FIRST_BATCH;
	rows->batch = palloc(FIRST_BATCH * sizeof(GpudsEntry));
	find_expressions(scan->indexRelation, layout, expressions);
	for (int i = 0; i < layout->nkeys; i++)
	{
		if (expressions[i] && rows->estate == NULL)
			rows->estate = CreateExecutorState();
	}
	return rows;
}

/* Frees what is not memory. */
void
gpuds_run_rows_end(GpudsRunRows *rows)
{
	ExecDropSingleTupleTableSlot(rows->slot);
	table_index_fetch_end(rows->fetch);
	if (rows->estate)
		FreeExecutorState(rows->estate);
}

/* Makes expressions ready, as the table's owner. */
static void
prepare_expressions(GpudsRunRows *rows)
{
	Node *expressions[GPUDS_KEY_MAX_COLUMNS];
	MemoryContext old = MemoryContextSwitchTo(rows->context);

	find_expressions(rows->scan->indexRelation, rows->layout, expressions);
	for (int i = 0; i < rows->layout->nkeys; i++)
	{
		if (expressions[i] && rows->expression[i] == NULL)
			rows->expression[i] = ExecPrepareExpr((Expr *) expressions[i], rows->estate);
	}
	MemoryContextSwitchTo(old);
}

/* How what is sorted is ordered by a column. */
typedef struct Order
{
	AttrNumber columns[MAX_COLUMNS];
	Oid operators[MAX_COLUMNS];
	Oid collations[MAX_COLUMNS];
	bool nulls_first[MAX_COLUMNS];
	int n;
} Order;

/* Adds a column to what is sorted, and to the order. */
static void
add_column(Order *order, TupleDesc desc, Oid type, Oid operator, Oid collation, bool nulls_first)
{
	const AttrNumber number = (AttrNumber) (order->n + 1);

	TupleDescInitEntry(desc, number, NULL, type, -1, 0);
	if (OidIsValid(collation))
		TupleDescInitEntryCollation(desc, number, collation);
	order->columns[order->n] = number;
	order->operators[order->n] = operator;
	order->collations[order->n] = collation;
	order->nulls_first[order->n++] = nulls_first;
}

/* Adds a column of the key. */
static void
add_key_column(Order *order, TupleDesc desc, const GpudsKeyColumn *column)
{
	const TypeCacheEntry *type = lookup_type_cache(compares_values(column) ? column->type : UUIDOID,
												   TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);

	/* codes are those of the index, which ascend in any case */
	if (compares_values(column))
		add_column(order, desc, column->type, column->descending ? type->gt_opr : type->lt_opr,
				   column->kind == GPUDS_KIND_BYTEA ? InvalidOid : column->collation, column->nulls_first);
	else
		add_column(order, desc, UUIDOID, type->lt_opr, InvalidOid, column->nulls_first);
}

/* Are runs by a column told by its text and their entries?  Not if a text comes behind it. */
static bool
can_be_short(const GpudsKeyLayout *layout, int column)
{
	for (int i = column + 1; i < layout->nkeys; i++)
	{
		if (compares_values(&layout->column[i]))
			return false;
	}
	return layout->column[column].kind != GPUDS_KIND_NAME;
}

/* Makes a run by a column, which is to be cleared before it is used. */
GpudsValueRun *
gpuds_value_run_begin(GpudsRunRows *rows, int column)
{
	MemoryContext context = AllocSetContextCreate(rows->context, "gpuds run", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GpudsValueRun *run = palloc0(sizeof(GpudsValueRun));

	run->rows = rows;
	run->context = context;
	run->column = column;
	gpuds_key_run_bits(rows->layout, column, &run->bits);
	if (can_be_short(rows->layout, column))
		run->small = gpuds_short_run_begin(&rows->layout->column[column]);
	MemoryContextSwitchTo(old);
	return run;
}

/* Sees to it that there is a sort, which is empty. */
static void
begin_sort(GpudsValueRun *run)
{
	const GpudsKeyLayout *layout = run->rows->layout;
	Order order = { .n = 0 };
	MemoryContext old;

	if (run->sort)
		return;
	old = MemoryContextSwitchTo(run->context);
	run->desc = CreateTemplateTupleDesc(layout->nkeys - run->column + ENTRY_COLUMNS);
	for (int i = run->column; i < layout->nkeys; i++)
		add_key_column(&order, run->desc, &layout->column[i]);
	for (int i = 0; i < ENTRY_COLUMNS; i++)
		add_column(&order, run->desc, INT8OID, Int8LessOperator, InvalidOid, false);
	GpudsTupleDescFinalize(run->desc);
	run->unsorted = MakeSingleTupleTableSlot(run->desc, &TTSOpsVirtual);
	run->sorted = MakeSingleTupleTableSlot(run->desc, &TTSOpsMinimalTuple);
	run->sort = tuplesort_begin_heap(run->desc, order.n, order.columns, order.operators, order.collations,
									 order.nulls_first, work_mem, NULL, TUPLESORT_RANDOMACCESS);
	MemoryContextSwitchTo(old);
}

int
gpuds_value_run_column(const GpudsValueRun *run)
{
	return run->column;
}

/* Begins anew, with the entries that have what one has. */
void
gpuds_value_run_clear(GpudsValueRun *run, const GpudsEntry *entry)
{
	if (run->sort && !run->is_short)
	{
		ExecClearTuple(run->sorted);
		tuplesort_reset(run->sort);
	}
	run->rows->nbatch = 0;
	run->n = 0;
	run->is_short = false;
	run->like = run->first = run->last = *entry;
}

/* Is an entry, whose value is not told by its code either, of the run? */
bool
gpuds_value_run_has(const GpudsValueRun *run, const GpudsEntry *entry)
{
	return ((entry->w0 ^ run->like.w0) & run->bits.w0) == 0 &&
		   ((entry->w1 ^ run->like.w1) & run->bits.w1) == 0 && ((entry->t ^ run->like.t) & run->bits.t) == 0;
}

static int
compare_tids(const void *a, const void *b)
{
	const uint64 one = ((const GpudsEntry *) a)->t & ENTRY_TID_MASK;
	const uint64 other = ((const GpudsEntry *) b)->t & ENTRY_TID_MASK;

	return one < other ? -1 : one > other;
}

/* The value of a text in the row at hand. */
static Datum
value_of(GpudsRunRows *rows, int i, bool *isnull)
{
	ExprContext *context;

	if (rows->estate == NULL || rows->expression[i] == NULL)
		return slot_getattr(rows->slot, rows->scan->indexRelation->rd_index->indkey.values[i], isnull);
	context = GetPerTupleExprContext(rows->estate);
	context->ecxt_scantuple = rows->slot;
	return ExecEvalExprSwitchContext(rows->expression[i], context, isnull);
}

/* A code as a uuid. */
static Datum
code_datum(GpudsCode code, pg_uuid_t *uuid)
{
	const uint64 words[2] = { pg_hton64((uint64) (code >> 64)), pg_hton64((uint64) code) };

	memcpy(uuid->data, words, sizeof(words));
	return UUIDPGetDatum(uuid);
}

/* Is a value of a column, a text, not what the scan's keys ask for?  Arrays are left to the executor. */
static bool
is_unwanted(const GpudsRunRows *rows, int column, Datum value)
{
	for (int i = 0; i < rows->scan->numberOfKeys; i++)
	{
		ScanKey key = &rows->scan->keyData[i];

		if (key->sk_attno != column + 1 || (key->sk_flags & (SK_SEARCHARRAY | SK_ISNULL | SK_ROW_HEADER)))
			continue;
		if (!DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, value, key->sk_argument)))
			return true;
	}
	return false;
}

/* A word of an entry as a number that orders as it does, and the other way round. */
static inline int64
ordered_word(uint64 word)
{
	return (int64) (word ^ UINT64CONST(1) << 63);
}

/* Sorts in the row at hand, which is an entry's and has a text. */
static void
put_row(GpudsValueRun *run, const GpudsEntry *entry, Datum text)
{
	GpudsRunRows *rows = run->rows;
	const GpudsKeyLayout *layout = rows->layout;
	const uint64 words[ENTRY_COLUMNS] = { entry->w0, entry->w1, entry->t };
	TupleTableSlot *slot = run->unsorted;
	pg_uuid_t uuids[GPUDS_KEY_MAX_COLUMNS];
	int n = 0;

	ExecClearTuple(slot);
	for (int i = run->column; i < layout->nkeys; i++, n++)
	{
		GpudsCode code;

		if (i == run->column)
		{
			slot->tts_values[n] = text;
			slot->tts_isnull[n] = false;
		}
		else if (compares_values(&layout->column[i]))
			slot->tts_values[n] = value_of(rows, i, &slot->tts_isnull[n]);
		else
		{
			slot->tts_isnull[n] = !gpuds_key_stored_code(layout, i, entry, &code);
			slot->tts_values[n] = code_datum(code, &uuids[i]);
		}
	}
	for (int i = 0; i < ENTRY_COLUMNS; i++, n++)
	{
		slot->tts_values[n] = Int64GetDatum(ordered_word(words[i]));
		slot->tts_isnull[n] = false;
	}
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(run->sort, slot);
	run->n++;
}

/* Adds the row at hand, which is an entry's, if it is wanted; false: a short run has no room for it. */
static bool
add_row(GpudsValueRun *run, const GpudsEntry *entry)
{
	bool isnull;
	Datum text = value_of(run->rows, run->column, &isnull);

	if (isnull || is_unwanted(run->rows, run->column, text))
		return true;
	if (run->is_short)
		return gpuds_short_run_add(run->small, entry, text);
	put_row(run, entry, text);
	return true;
}

/* Looks the rows of the batch up, and adds those that the snapshot sees; false: a short run has no room. */
static bool
look_up(GpudsValueRun *run)
{
	GpudsRunRows *rows = run->rows;
	bool fits = true;

	for (int i = 0; i < rows->nbatch && fits; i++)
	{
		const GpudsEntry *entry = &rows->batch[i];
		ItemPointerData tid;
		bool again = false;

		CHECK_FOR_INTERRUPTS();
		gpuds_entry_tid(entry, &tid);
		if (table_index_fetch_tuple(rows->fetch, &tid, rows->scan->xs_snapshot, rows->slot, &again, NULL))
			fits = add_row(run, entry);
		if (rows->estate)
			ResetPerTupleExprContext(rows->estate);
	}
	ExecClearTuple(rows->slot);
	table_index_fetch_reset(rows->fetch);
	return fits;
}

/*
 * The same with expressions, which are evaluated as VACUUM does: by the table's owner.  The query may not ask
 * for them, so the user need not trust the owner's functions.
 */
static bool
look_up_as_owner(GpudsValueRun *run)
{
	Oid user;
	int security;
	int level;
	bool fits;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(run->rows->scan->heapRelation->rd_rel->relowner,
						   security | SECURITY_RESTRICTED_OPERATION);
	level = NewGUCNestLevel();
	GpudsRestrictSearchPath();
	prepare_expressions(run->rows);
	fits = look_up(run);
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, security);
	return fits;
}

/* Adds the rows of the batch, which goes. */
static void
flush(GpudsValueRun *run)
{
	GpudsRunRows *rows = run->rows;
	bool (*const add_all)(GpudsValueRun *) = rows->estate ? look_up_as_owner : look_up;

	qsort(rows->batch, rows->nbatch, sizeof(GpudsEntry), compare_tids);
	if (run->is_short)
	{
		gpuds_short_run_clear(run->small);
		run->is_short = add_all(run);
	}
	if (!run->is_short)
	{
		begin_sort(run);
		(void) add_all(run);
	}
	rows->nbatch = 0;
}

/* Makes room for one more entry. */
static void
make_room(GpudsValueRun *run)
{
	GpudsRunRows *rows = run->rows;

	if (rows->nbatch < rows->batch_size)
		return;
	if (rows->batch_size == MOST_ROWS_OF_BATCH)
		flush(run);
	else
	{
		rows->batch_size *= 2;
		rows->batch = repalloc(rows->batch, rows->batch_size * sizeof(GpudsEntry));
	}
}

/* Adds an entry.  The entries of a run come in the index's order or the other way round. */
void
gpuds_value_run_add(GpudsValueRun *run, const GpudsEntry *entry)
{
	GpudsRunRows *rows = run->rows;

	if (entry_less(entry, &run->first))
		run->first = *entry;
	if (entry_less(&run->last, entry))
		run->last = *entry;
	make_room(run);
	rows->batch[rows->nbatch++] = *entry;
}

/* All entries have been added. */
void
gpuds_value_run_sort(GpudsValueRun *run)
{
	run->is_short = run->small && run->n == 0 && run->rows->nbatch <= GPUDS_SHORT_ROWS;
	flush(run);
	if (run->is_short)
		gpuds_short_run_sort(run->small);
	else
		tuplesort_performsort(run->sort);
}

/* Goes before the first row, or behind the last one, so that the next in this direction is the first one. */
void
gpuds_value_run_rewind(GpudsValueRun *run, bool forward)
{
	if (run->is_short)
	{
		gpuds_short_run_rewind(run->small, forward);
		return;
	}
	tuplesort_rescan(run->sort);
	if (!forward)
		(void) tuplesort_skiptuples(run->sort, run->n + 1, true);
}

/* Goes on to the next entry in a direction; false: that was the last one. */
bool
gpuds_value_run_next(GpudsValueRun *run, bool forward, GpudsEntry *entry)
{
	uint64 words[ENTRY_COLUMNS];

	if (run->is_short)
		return gpuds_short_run_next(run->small, forward, entry);
	if (!tuplesort_gettupleslot(run->sort, forward, false, run->sorted, NULL))
		return false;
	slot_getallattrs(run->sorted);
	for (int i = 0; i < ENTRY_COLUMNS; i++)
		words[i] = (uint64) ordered_word(
			(uint64) DatumGetInt64(run->sorted->tts_values[run->desc->natts - ENTRY_COLUMNS + i]));
	*entry = (GpudsEntry){ .w0 = words[0], .w1 = words[1], .t = words[2] };
	return true;
}

void
gpuds_value_run_mark(GpudsValueRun *run)
{
	if (run->is_short)
		gpuds_short_run_mark(run->small);
	else
		tuplesort_markpos(run->sort);
}

void
gpuds_value_run_restore(GpudsValueRun *run)
{
	if (run->is_short)
		gpuds_short_run_restore(run->small);
	else
		tuplesort_restorepos(run->sort);
}

/* The entry of the run that the index has last in a direction. */
GpudsEntry
gpuds_value_run_end_of(const GpudsValueRun *run, bool forward)
{
	return forward ? run->last : run->first;
}

/* Frees a run; a scan that meets runs by several columns makes many. */
void
gpuds_value_run_end(GpudsValueRun *run)
{
	if (run->sort)
	{
		ExecDropSingleTupleTableSlot(run->unsorted);
		ExecDropSingleTupleTableSlot(run->sorted);
		tuplesort_end(run->sort);
	}
	MemoryContextDelete(run->context);
}
