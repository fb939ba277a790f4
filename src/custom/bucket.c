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
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "custom/ascending.h"
#include "custom/bucket.h"

/* An expression of a column as one of the value that is at hand. */
static ExprState *
as_function(const Node *expr, const Var *column)
{
	const Var *of_slot = makeVar(1, 1, column->vartype, column->vartypmod, column->varcollid, 0);

	return ExecInitExpr((Expr *) gpuds_granule_replace(expr, column, (const Node *) of_slot), NULL);
}

/* The slot that has the value at hand. */
static TupleTableSlot *
make_slot(const Var *column)
{
	TupleDesc desc = CreateTemplateTupleDesc(1);

	TupleDescInitEntry(desc, 1, NULL, column->vartype, column->vartypmod, 0);
	TupleDescInitEntryCollation(desc, 1, column->varcollid);
	GpudsTupleDescFinalize(desc);
	return MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
}

/* Evaluates an expression for a value of the column; its own value lasts until the next one. */
static Datum
evaluate_for(GpudsBucket *bucket, ExprState *expr, Datum value, bool column_null, bool *isnull)
{
	ResetExprContext(bucket->context);
	ExecClearTuple(bucket->slot);
	bucket->slot->tts_values[0] = value;
	bucket->slot->tts_isnull[0] = column_null;
	bucket->context->ecxt_scantuple = ExecStoreVirtualTuple(bucket->slot);
	return ExecEvalExprSwitchContext(expr, bucket->context, isnull);
}

/* The ascending function whose buckets are wanted. */
static void
set_function(GpudsBucket *bucket, const GpudsGranule *granule, const Var *var)
{
	const Node *function = (const Node *) granule->function;
	TypeCacheEntry *type = lookup_type_cache(exprType(function), TYPECACHE_CMP_PROC_FINFO);

	gpuds_key_agg_column(bucket->layout, bucket->column, &bucket->agg_column);
	bucket->least = granule->least;
	bucket->most = granule->most;
	bucket->zoned = granule->zoned;
	bucket->zone = granule->zone;
	bucket->function = as_function(function, var);
	fmgr_info(type->cmp_proc_finfo.fn_oid, &bucket->compare);
	bucket->collation = exprCollation(function);
	bucket->length = type->typlen;
	bucket->by_value = type->typbyval;
	bucket->fixed_width = type->typbyval ? gpuds_ascending_width(granule->function) : 0;
	if (!type->typbyval)
		bucket->values = AllocSetContextCreate(CurrentMemoryContext, "gpuds buckets", ALLOCSET_SMALL_SIZES);
}

/* What is evaluated for each of them. */
static void
set_result(GpudsBucket *bucket, const Expr *expr, const Var *var)
{
	TypeCacheEntry *type = lookup_type_cache(exprType((const Node *) expr),
											 TYPECACHE_CMP_PROC_FINFO | TYPECACHE_HASH_PROC_FINFO);

	bucket->result.expr = as_function((const Node *) expr, var);
	fmgr_info(type->cmp_proc_finfo.fn_oid, &bucket->result.compare);
	if (OidIsValid(type->hash_proc_finfo.fn_oid))
		fmgr_info(type->hash_proc_finfo.fn_oid, &bucket->result.hash);
	bucket->result.collation = exprCollation((const Node *) expr);
	bucket->result.length = type->typlen;
	bucket->result.by_value = type->typbyval;
	if (!type->typbyval && bucket->values == NULL)
		bucket->values = AllocSetContextCreate(CurrentMemoryContext, "gpuds buckets", ALLOCSET_SMALL_SIZES);
}

/*
 * For buckets by an expression of a column of the index, in the current memory context.  hashed: only its
 * results are wanted of a bucket, so buckets may be finer.
 */
void
gpuds_bucket_begin(GpudsBucket *bucket, PlanState *parent, Expr *expr, const GpudsKeyLayout *layout,
				   int column, bool hashed)
{
	const Var *var = gpuds_granule_column(expr);
	GpudsGranule granule;

	gpuds_granule_find(expr, var, &granule);
	memset(bucket, 0, sizeof(*bucket));
	bucket->layout = layout;
	bucket->column = column;
	bucket->type = layout->column[column].type;
	bucket->hashed = hashed;
	bucket->total = granule.whole;
	bucket->slot = make_slot(var);
	bucket->context = CreateExprContext(parent->state);
	if (granule.function)
		set_function(bucket, &granule, var);
	set_result(bucket, expr, var);
	bucket->isnull = true;
}

/* The expression's value for a bucket, of its first entry; until the next one. */
Datum
gpuds_bucket_result(GpudsBucket *bucket, const GpudsEntry *first, bool *isnull)
{
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool nulls[GPUDS_KEY_MAX_COLUMNS];

	(void) gpuds_key_decode(bucket->layout, first, NULL, bucket->bytes, values, nulls);
	return evaluate_for(bucket, bucket->result.expr, values[bucket->column], nulls[bucket->column], isnull);
}

/* The same, until gpuds_bucket_restart. */
Datum
gpuds_bucket_keep(const GpudsBucket *bucket, Datum value, bool isnull)
{
	MemoryContext old;

	if (isnull || bucket->result.by_value)
		return value;
	old = MemoryContextSwitchTo(bucket->values);
	value = datumCopy(value, false, bucket->result.length);
	MemoryContextSwitchTo(old);
	return value;
}

/* As btree compares, NULLs last. */
int
gpuds_bucket_compare_results(GpudsBucket *bucket, Datum a, bool a_null, Datum b, bool b_null)
{
	if (a_null || b_null)
		return a_null - b_null;
	return DatumGetInt32(FunctionCall2Coll(&bucket->result.compare, bucket->result.collation, a, b));
}

/* A hash of the expression's value, whose type has hashes if groups are hashed. */
uint32
gpuds_bucket_hash(GpudsBucket *bucket, Datum value, bool isnull)
{
	if (isnull)
		return 0;
	return DatumGetUInt32(FunctionCall1Coll(&bucket->result.hash, bucket->result.collation, value));
}

/* Forgets the buckets that were found, and their values. */
void
gpuds_bucket_restart(GpudsBucket *bucket)
{
	bucket->isnull = true;
	bucket->has_value = false;
	bucket->has_end = false;
	bucket->has_first = false;
	if (bucket->values)
		MemoryContextReset(bucket->values);
}

/* A value of the function that lasts until gpuds_bucket_restart. */
static Datum
keep(const GpudsBucket *bucket, Datum value, bool isnull)
{
	MemoryContext old;

	if (bucket->by_value || isnull)
		return value;
	old = MemoryContextSwitchTo(bucket->values);
	value = datumCopy(value, false, bucket->length);
	MemoryContextSwitchTo(old);
	return value;
}

/* The column's value in an entry. */
static int64
value_of(const GpudsBucket *bucket, const GpudsEntry *entry)
{
	uint64 code = agg_column_code(&bucket->agg_column,
								  agg_column_bits(entry, bucket->layout->nwords, bucket->agg_column.place,
												  bucket->agg_column.bits));

	return (int64) (code - (UINT64CONST(1) << (bucket->agg_column.bits - 1)));
}

/* Gives the column of an entry a value. */
static void
set_value(const GpudsBucket *bucket, int64 value, GpudsEntry *entry)
{
	gpuds_key_set_partial_agg(&bucket->agg_column, bucket->layout->nwords,
							  (uint64) value + (UINT64CONST(1) << (bucket->agg_column.bits - 1)), entry);
}

/* The value of a type that has a number, and the other way. */
Datum
gpuds_bucket_datum(Oid type, int64 value)
{
	switch (type)
	{
		case INT2OID:
			return Int16GetDatum((int16) value);
		case INT4OID:
		case DATEOID:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

int64
gpuds_bucket_number(Oid type, Datum value)
{
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
		case DATEOID:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

static bool
has_neighbours(const GpudsBucket *bucket, int64 value)
{
	return value >= bucket->least && value <= bucket->most;
}

/* The function's value, until the next one. */
static Datum
evaluate(GpudsBucket *bucket, int64 value, bool *isnull)
{
	return evaluate_for(bucket, bucket->function, gpuds_bucket_datum(bucket->type, value), false, isnull);
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
find_end_of_offset(const GpudsBucket *bucket, pg_tz *zone, int64 value)
{
	/* rounded down to a second, before 2000 as well */
	pg_time_t time = timestamptz_to_time_t(value - (value % USECS_PER_SEC + USECS_PER_SEC) % USECS_PER_SEC);
	pg_time_t boundary;
	long before;
	long after;
	int before_dst;
	int after_dst;
	int64 end;

	if (pg_next_dst_boundary(&time, &before, &before_dst, &boundary, &after, &after_dst, zone) != 1)
		return bucket->most;
	end = time_t_to_timestamptz(boundary) - 1;
	return end < value ? value : Min(end, bucket->most);
}

/* The zone that the function depends on, as it is now; NULL: none. */
static pg_tz *
zone_at_hand(const GpudsBucket *bucket)
{
	if (!bucket->zoned)
		return NULL;
	return bucket->zone ? bucket->zone : session_timezone;
}

/* The same, without a search if the zone has been searched for a value with the same offset. */
static int64
end_of_offset(GpudsBucket *bucket, int64 value)
{
	pg_tz *zone = zone_at_hand(bucket);

	if (zone == NULL)
		return bucket->most;
	if (zone != bucket->offset_zone || value < bucket->offset_first || value > bucket->offset_last)
	{
		bucket->offset_last = find_end_of_offset(bucket, zone, value);
		bucket->offset_first = value;
		bucket->offset_zone = zone;
	}
	return bucket->offset_last;
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
	int64 behind; /* may be before it, where an earlier column has another value */
	int64 buckets;

	if (bucket->width <= 0 || pg_sub_s64_overflow(value, bucket->end, &behind) ||
		behind > most - bucket->width)
		return false;
	buckets = behind / bucket->width + (behind % bucket->width > 0);
	if (pg_mul_s64_overflow(buckets, bucket->width, end) || pg_add_s64_overflow(*end, bucket->end, end) ||
		*end < value || *end >= most)
		return false;
	return contains(bucket, *end) && !contains(bucket, *end + 1);
}

/* Frees the value of the bucket that was found last, unless the caller holds groups by such values. */
static void
forget_value(GpudsBucket *bucket)
{
	if (bucket->hashed && bucket->has_value && !bucket->isnull && !bucket->by_value)
		pfree(DatumGetPointer(bucket->value));
	bucket->has_value = false;
}

/* The bucket found begins with its own value, and has the width that all have. */
static void
set_first(GpudsBucket *bucket, int64 first, int64 *end)
{
	bucket->has_first = true;
	bucket->first = first;
	bucket->first_zone = zone_at_hand(bucket);
	bucket->width = bucket->fixed_width;
	*end = first + bucket->fixed_width - 1;
}

/*
 * Is the end known by the function's value, the first value of the bucket?  PostgreSQL takes one of two
 * offsets for a midnight that clocks miss or have twice, so the offset must be the same for a day before it,
 * and for a bucket behind the end.
 */
static bool
ends_by_width(GpudsBucket *bucket, int64 value, int64 most, int64 *end)
{
	int64 first;

	if (bucket->fixed_width == 0 || bucket->isnull)
		return false;
	first = DatumGetInt64(bucket->value);
	if (first < bucket->least || first > value || value - first >= bucket->fixed_width ||
		first > most - 2 * bucket->fixed_width || end_of_offset(bucket, first - USECS_PER_DAY) != most)
		return false;
	set_first(bucket, first, end);
	return true;
}

/* The same of a value behind such a bucket, before the offset changes: its bucket is some widths behind. */
static bool
follows_by_width(GpudsBucket *bucket, int64 value, int64 *end)
{
	int64 first = bucket->first;
	int64 most;

	if (!bucket->has_first || bucket->first_zone != zone_at_hand(bucket) || value < first)
		return false;
	most = end_of_offset(bucket, first);
	if (value > most - 2 * bucket->fixed_width)
		return false;
	first += (value - first) / bucket->fixed_width * bucket->fixed_width;
	forget_value(bucket);
	bucket->value = Int64GetDatum(first);
	bucket->isnull = false;
	bucket->has_value = true;
	set_first(bucket, first, end);
	return true;
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

/* The first bucket with a known end that is not below a value. */
static int64
find_known(const GpudsBucket *bucket, int64 value)
{
	int64 lo = 0;
	int64 hi = bucket->nknown;

	while (lo < hi)
	{
		const int64 middle = lo + (hi - lo) / 2;

		if (bucket->known[middle].end < value)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Is the end of a value's bucket known, because it was searched for? */
static bool
is_end_known(const GpudsBucket *bucket, int64 value, int64 *end)
{
	const int64 at = find_known(bucket, value);

	if (at == bucket->nknown || value < bucket->known[at].first)
		return false;
	*end = bucket->known[at].end;
	return true;
}

/* Remembers the end of a value's bucket, which was not known. */
static void
remember_end(GpudsBucket *bucket, int64 value, int64 end)
{
	const int64 at = find_known(bucket, value);

	if (at < bucket->nknown && bucket->known[at].end == end)
	{
		bucket->known[at].first = value;
		return;
	}
	if (bucket->nknown == bucket->known_size)
	{
		bucket->known_size = Max(2 * bucket->known_size, 64);
		bucket->known = bucket->known
							? repalloc_huge(bucket->known, bucket->known_size * sizeof(GpudsBucketRange))
							: palloc(bucket->known_size * sizeof(GpudsBucketRange));
	}
	memmove(&bucket->known[at + 1], &bucket->known[at], (bucket->nknown - at) * sizeof(GpudsBucketRange));
	bucket->known[at] = (GpudsBucketRange){ value, end };
	bucket->nknown++;
}

/*
 * All ends are wanted now, of the same buckets again and again perhaps: those that took a search are kept
 * until gpuds_bucket_end_ends, in the current memory context.
 */
void
gpuds_bucket_begin_ends(GpudsBucket *bucket)
{
	bucket->all_ends = true;
	bucket->nknown = bucket->known_size = 0;
	bucket->known = NULL;
}

void
gpuds_bucket_end_ends(GpudsBucket *bucket)
{
	if (bucket->known)
		pfree(bucket->known);
	bucket->known = NULL;
	bucket->nknown = bucket->known_size = 0;
	bucket->all_ends = false;
}

/*
 * Evaluates the function at a value.  True if the result equals the one before, so the value is not
 * the first of its bucket.
 */
static bool
take_value(GpudsBucket *bucket, int64 value)
{
	bool isnull;
	Datum result = evaluate(bucket, value, &isnull);
	bool same = bucket->has_value &&
				gpuds_bucket_compare(bucket, result, isnull, bucket->value, bucket->isnull) == 0;

	if (!same)
	{
		forget_value(bucket);
		bucket->value = keep(bucket, result, isnull);
	}
	bucket->isnull = isnull;
	bucket->has_value = true;
	return same;
}

/*
 * Finds the bucket of a value that has neighbours, and its end; false: the end is not worth a search.
 *
 * That takes dozens of evaluations, so it waits for a bucket's second value.  Before that, only the width
 * of other buckets is tried.
 */
static bool
find_end(GpudsBucket *bucket, int64 value, int64 *end)
{
	int64 most;
	bool second;

	if (follows_by_width(bucket, value, end))
		return true;
	second = take_value(bucket, value);
	if (bucket->all_ends && is_end_known(bucket, value, end))
	{
		bucket->width = 0;
		return true;
	}
	most = end_of_offset(bucket, value);
	if (ends_by_width(bucket, value, most, end) || ends_as_before(bucket, value, most, end))
		return true;
	if (!second && !bucket->all_ends)
		return false;
	*end = search_end(bucket, value, most);
	if (!bucket->has_end || pg_sub_s64_overflow(*end, bucket->end, &bucket->width))
		bucket->width = 0;
	if (bucket->all_ends)
		remember_end(bucket, value, *end);
	return true;
}

/*
 * Finds the bucket of an entry, or what of it begins with the entry: *last is the last one that there
 * may be, with the same values in the columns before the bucket's.
 */
void
gpuds_bucket_find(void *arg, const GpudsEntry *first, GpudsEntry *last)
{
	GpudsBucket *bucket = arg;
	GpudsEntry end_of_value = *first;
	GpudsEntry bits;
	int64 value;
	int64 end;

	gpuds_key_prefix_bits(bucket->layout, bucket->column + 1, &bits);
	*last = entry_last_alike(first, &bits);
	if (bucket->function == NULL)
		return;
	if (agg_column_is_null(&bucket->agg_column, first, bucket->layout->nwords))
	{
		forget_value(bucket);
		bucket->isnull = true;
		return;
	}
	value = value_of(bucket, first);
	if (!has_neighbours(bucket, value))
	{
		/* There the expression may be defined where the function is not. */
		if (!bucket->hashed)
			(void) take_value(bucket, value);
		return;
	}
	if (!find_end(bucket, value, &end))
		return;
	bucket->end = end;
	bucket->has_end = true;
	set_value(bucket, end, &end_of_value);
	*last = entry_last_alike(&end_of_value, &bits);
}

/* Does the index have NULLs of the bucket's column before other values? */
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
 * The first entry that the column may have for a code, and its value, in an interval whose entries
 * agree in the columns before.  False: the value has no neighbours.
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
	gpuds_key_set_partial_agg(&bucket->agg_column, bucket->layout->nwords, code, &not_null);
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
	next = entry_first_alike(first, &bits);
	set_value(bucket, bucket->end + 1, &next);
	return next;
}
