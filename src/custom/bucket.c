/*-------------------------------------------------------------------------
 *
 * bucket.c
 *	  Finds the groups of keys that a function has one value for.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "custom/bucket.h"

/* Does a function ascend with this argument, if the others are constants? */
static int
ascending_argument(Oid function)
{
	switch (function)
	{
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP:
		case F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ:
			return 1;
		case F_DATE_TIMESTAMP:
		case F_DATE_TIMESTAMPTZ:
		case F_INT2DIV:
		case F_INT24DIV:
		case F_INT28DIV:
		case F_INT4DIV:
		case F_INT42DIV:
		case F_INT48DIV:
		case F_INT8DIV:
		case F_INT82DIV:
		case F_INT84DIV:
			return 0;
		default:
			return -1;
	}
}

static bool
depends_on_zone(Oid function)
{
	return function == F_DATE_TRUNC_TEXT_TIMESTAMPTZ || function == F_DATE_TIMESTAMPTZ;
}

static bool
is_division(Oid function)
{
	return ascending_argument(function) == 0 && function != F_DATE_TIMESTAMP &&
		   function != F_DATE_TIMESTAMPTZ;
}

/* Is a constant what it takes for a function to ascend? */
static bool
is_fit(Oid function, const Const *constant)
{
	if (!IsA(constant, Const) || constant->constisnull)
		return false;
	if (!is_division(function))
		return true;
	switch (constant->consttype)
	{
		case INT2OID:
			return DatumGetInt16(constant->constvalue) > 0;
		case INT4OID:
			return DatumGetInt32(constant->constvalue) > 0;
		default:
			return DatumGetInt64(constant->constvalue) > 0;
	}
}

/* The function of an expression, and its arguments. */
static Oid
function_of(const Expr *expr, List **args)
{
	if (IsA(expr, FuncExpr))
	{
		*args = ((const FuncExpr *) expr)->args;
		return ((const FuncExpr *) expr)->funcid;
	}
	if (IsA(expr, OpExpr))
	{
		*args = ((const OpExpr *) expr)->args;
		return get_opcode(((const OpExpr *) expr)->opno);
	}
	*args = NIL;
	return InvalidOid;
}

/* The column that an expression is an ascending function of; NULL: it is none that is known here. */
const Var *
gpuds_bucket_column(const Expr *expr)
{
	List *args;
	Oid function = function_of(expr, &args);
	int at = ascending_argument(function);

	if (at < 0 || at >= list_length(args))
		return NULL;
	for (int i = 0; i < list_length(args); i++)
	{
		if (i != at && !is_fit(function, list_nth(args, i)))
			return NULL;
	}
	return IsA(list_nth(args, at), Var) ? list_nth(args, at) : NULL;
}

/* The expression with the value that is at hand in place of the column. */
static Node *
as_function(Node *node, void *column)
{
	if (node == NULL)
		return NULL;
	if (equal(node, column))
	{
		const Var *var = column;
		CaseTestExpr *value = makeNode(CaseTestExpr);

		value->typeId = var->vartype;
		value->typeMod = var->vartypmod;
		value->collation = var->varcollid;
		return (Node *) value;
	}
	return expression_tree_mutator(node, as_function, column);
}

static int64
most_of(Oid type)
{
	switch (type)
	{
		case INT2OID:
			return PG_INT16_MAX;
		case INT4OID:
			return PG_INT32_MAX;
		case INT8OID:
			return PG_INT64_MAX;
		default:
			return END_TIMESTAMP - 1;
	}
}

/* date_bin subtracts its origin, its last argument, from values: most is then the highest that it can. */
static int64
most_of_function(Oid function, const List *args, int64 most)
{
	int64 origin;

	if (function != F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP &&
		function != F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ)
		return most;
	origin = DatumGetInt64(llast_node(Const, args)->constvalue);
	return origin < 0 ? Min(most, PG_INT64_MAX + origin) : most;
}

/* For buckets by an expression of gpuds_bucket_column in a column of the index, in the current memory context. */
void
gpuds_bucket_begin(GpudsBucket *bucket, PlanState *parent, Expr *expr, const GpudsKeyLayout *layout,
				   int column)
{
	const Var *var = gpuds_bucket_column(expr);
	TypeCacheEntry *type = lookup_type_cache(exprType((Node *) expr), TYPECACHE_CMP_PROC_FINFO);
	List *args;
	Oid function;

	memset(bucket, 0, sizeof(*bucket));
	bucket->layout = layout;
	bucket->column = column;
	bucket->type = layout->column[column].type;
	function = function_of(expr, &args);
	bucket->most = most_of_function(function, args, most_of(bucket->type));
	bucket->zoned = depends_on_zone(function);
	gpuds_key_measure(layout, column, &bucket->measure);
	bucket->function = ExecInitExpr((Expr *) as_function((Node *) expr, (void *) var), parent);
	bucket->context = CreateExprContext(parent->state);
	bucket->compare = type->cmp_proc_finfo;
	bucket->collation = exprCollation((Node *) expr);
	bucket->isnull = true;
}

/* The column's value in an entry. */
static int64
value_of(const GpudsBucket *bucket, const GpudsEntry *entry)
{
	uint64 code = measure_code(&bucket->measure, measure_bits(entry, bucket->layout->nwords,
															  bucket->measure.place, bucket->measure.bits));

	return (int64) (code - (UINT64CONST(1) << (bucket->measure.bits - 1)));
}

/* Gives the column of an entry a value. */
static void
set_value(const GpudsBucket *bucket, int64 value, GpudsEntry *entry)
{
	gpuds_key_set_measured(&bucket->measure, bucket->layout->nwords,
						   (uint64) value + (UINT64CONST(1) << (bucket->measure.bits - 1)), entry);
}

static Datum
datum_of(const GpudsBucket *bucket, int64 value)
{
	switch (bucket->type)
	{
		case INT2OID:
			return Int16GetDatum((int16) value);
		case INT4OID:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

/* -infinity and infinity have none; nor has, for simplicity, the lowest number. */
static bool
has_neighbours(const GpudsBucket *bucket, int64 value)
{
	return value <= bucket->most && value != PG_INT64_MIN;
}

/* The function's value; it is passed by value. */
static Datum
evaluate(GpudsBucket *bucket, int64 value, bool *isnull)
{
	ResetExprContext(bucket->context);
	bucket->context->caseValue_datum = datum_of(bucket, value);
	bucket->context->caseValue_isNull = false;
	return ExecEvalExprSwitchContext(bucket->function, bucket->context, isnull);
}

/* Is a value of the column in the bucket? */
static bool
contains(GpudsBucket *bucket, int64 value)
{
	bool isnull;
	Datum result = evaluate(bucket, value, &isnull);

	return gpuds_bucket_compare(bucket, result, isnull, bucket->value, bucket->isnull) == 0;
}

/* As btree compares, NULLs last. */
int
gpuds_bucket_compare(GpudsBucket *bucket, Datum a, bool a_null, Datum b, bool b_null)
{
	if (a_null || b_null)
		return a_null - b_null;
	return DatumGetInt32(FunctionCall2Coll(&bucket->compare, bucket->collation, a, b));
}

/* The last value before the zone's offset changes, or most. */
static int64
end_of_offset(const GpudsBucket *bucket, int64 value)
{
	/* rounded down to a second, before 2000 as well */
	pg_time_t time = timestamptz_to_time_t(value - (value % USECS_PER_SEC + USECS_PER_SEC) % USECS_PER_SEC);
	pg_time_t boundary;
	long before;
	long after;
	int before_dst;
	int after_dst;
	int64 end;

	if (pg_next_dst_boundary(&time, &before, &before_dst, &boundary, &after, &after_dst, session_timezone) !=
		1)
		return bucket->most;
	end = time_t_to_timestamptz(boundary) - 1;
	return end < value ? value : Min(end, bucket->most);
}

/* The sum of what is not negative, or most. */
static int64
sum_up_to(int64 value, int64 step, int64 most)
{
	return value > most - step ? most : value + step;
}

/* Does the bucket end where buckets of one width do? */
static bool
ends_as_before(GpudsBucket *bucket, int64 value, int64 most, int64 *end)
{
	int64 behind;

	if (bucket->width <= 0 || pg_sub_s64_overflow(value, bucket->end, &behind) || behind <= 0 ||
		behind > most - bucket->width)
		return false;
	*end = bucket->end;
	if (pg_add_s64_overflow(*end, (behind + bucket->width - 1) / bucket->width * bucket->width, end) ||
		*end >= most)
		return false;
	return contains(bucket, *end) && !contains(bucket, *end + 1);
}

/* The last value in the bucket of one that is in it, at most most. */
static int64
search_end(GpudsBucket *bucket, int64 value, int64 most)
{
	int64 last = value;
	int64 step = 1;
	int64 beyond;

	for (;;)
	{
		beyond = sum_up_to(last, step, most);
		if (!contains(bucket, beyond))
			break;
		last = beyond;
		if (last == most)
			return most;
		step = step > PG_INT64_MAX / 2 ? step : 2 * step;
	}
	while (beyond - last > 1)
	{
		int64 middle = last + (beyond - last) / 2;

		if (contains(bucket, middle))
			last = middle;
		else
			beyond = middle;
	}
	return last;
}

/* The last entry of those that agree with one in the columns up to the bucket's. */
static void
last_alike(const GpudsBucket *bucket, const GpudsEntry *entry, GpudsEntry *last)
{
	GpudsEntry bits;

	gpuds_key_prefix_bits(bucket->layout, bucket->column + 1, &bits);
	last->w0 = entry->w0 | ~bits.w0;
	last->w1 = entry->w1 | ~bits.w1;
	last->t = entry->t | ~bits.t;
}

/*
 * Finds the bucket of an entry, or what of it begins with the entry: *last is the last one that there may be.  The
 * entry's columns before the bucket's are the same in all rows.
 */
void
gpuds_bucket_find(void *arg, const GpudsEntry *first, GpudsEntry *last)
{
	GpudsBucket *bucket = arg;
	GpudsEntry end_of_value = *first;
	int64 value;
	int64 most;
	int64 end;

	last_alike(bucket, first, last);
	if (measure_is_null(&bucket->measure, first, bucket->layout->nwords))
	{
		bucket->isnull = true;
		return;
	}
	value = value_of(bucket, first);
	bucket->value = evaluate(bucket, value, &bucket->isnull);
	if (!has_neighbours(bucket, value))
		return;
	most = bucket->zoned ? end_of_offset(bucket, value) : bucket->most;
	if (!ends_as_before(bucket, value, most, &end))
	{
		end = search_end(bucket, value, most);
		if (!bucket->has_end || pg_sub_s64_overflow(end, bucket->end, &bucket->width))
			bucket->width = 0;
	}
	bucket->end = end;
	bucket->has_end = true;
	set_value(bucket, end, &end_of_value);
	last_alike(bucket, &end_of_value, last);
}

bool
gpuds_bucket_nulls_first(const GpudsBucket *bucket)
{
	return bucket->layout->column[bucket->column].nulls_first;
}

/* The entries whose column is NULL, of those that agree with one in the columns before. */
void
gpuds_bucket_nulls(const GpudsBucket *bucket, const GpudsEntry *alike, GpudsInterval *nulls)
{
	gpuds_key_null_interval(bucket->layout, bucket->column, alike, nulls);
}

/*
 * The first entry that the column may have for a code, and its value, in an interval whose entries agree in the columns
 * before.  False: the value has no neighbours.
 */
bool
gpuds_bucket_first(const GpudsBucket *bucket, const GpudsInterval *whole, uint64 code, GpudsEntry *entry,
				   int64 *value)
{
	GpudsInterval nulls;
	GpudsEntry not_null;

	/* what is not NULL has the opposite bit, and zeros behind the code */
	gpuds_bucket_nulls(bucket, &whole->lo, &nulls);
	gpuds_key_not_null(bucket->layout, bucket->column, &nulls.lo, &not_null);
	gpuds_key_set_measured(&bucket->measure, bucket->layout->nwords, code, &not_null);
	*entry = not_null;
	*value = value_of(bucket, entry);
	return has_neighbours(bucket, *value);
}

/* The first entry that there may be behind the bucket that was found last, whose first entry is this. */
GpudsEntry
gpuds_bucket_next(const GpudsBucket *bucket, const GpudsEntry *first)
{
	GpudsEntry bits;
	GpudsEntry next;

	gpuds_key_prefix_bits(bucket->layout, bucket->column + 1, &bits);
	next.w0 = first->w0 & bits.w0;
	next.w1 = first->w1 & bits.w1;
	next.t = first->t & bits.t;
	set_value(bucket, bucket->end + 1, &next);
	return next;
}
