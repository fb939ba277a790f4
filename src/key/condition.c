/*-------------------------------------------------------------------------
 *
 * condition.c
 *	  What a scan key asks of its column, as a set of codes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "key/set.h"

/*
 * The codes whose values are in the strategy's relation to the constant at the
 * cut; false if there are none.  If the cut is fuzzy, a superset of them.
 */
static bool
cut_range(const GpudsCut *cut, StrategyNumber strategy, GpudsCode max, GpudsCodeRange *range)
{
	range->lo = 0;
	range->hi = max;

	switch (strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			if (cut->above)
				return true;
			if (cut->fuzzy)
				range->hi = cut->last;
			else if (cut->exact && strategy == BTLessEqualStrategyNumber)
				range->hi = cut->code;
			else if (cut->code == 0)
				return false;
			else
				range->hi = cut->code - 1;
			return true;
		case BTEqualStrategyNumber:
			if (!cut->exact && !cut->fuzzy)
				return false;
			range->lo = cut->hashed ? cut->equal : cut->code;
			range->hi = cut->hashed ? cut->equal : cut->fuzzy ? cut->last : cut->code;
			return true;
		case BTGreaterEqualStrategyNumber:
		case BTGreaterStrategyNumber:
			if (cut->above)
				return false;
			range->lo = cut->code;
			if (cut->exact && strategy == BTGreaterStrategyNumber)
			{
				if (cut->code == max)
					return false;
				range->lo++;
			}
			return true;
		default:
			elog(ERROR, "unrecognized strategy number: %d", strategy);
			return false;
	}
}

/* Adds one element's codes to an array's set, of points or of ranges. */
static inline void
add_element(GpudsCodeSet *set, bool points, const GpudsCut *cut, StrategyNumber strategy, GpudsCode max)
{
	GpudsCodeRange range;

	if (points)
	{
		if (cut->exact || cut->hashed)
			set->points[set->n++] = (uint64) (cut->exact ? cut->code : cut->equal);
	}
	else if (!cut_range(cut, strategy, max, &range))
		return;
	else if (strategy == BTEqualStrategyNumber)
		set->ranges[set->n++] = range;
	else if (set->n == 0)
		gpuds_set_single(set, &range);
	else
	{
		/* these all begin or all end at the same end: the widest is the union */
		set->single.lo = Min(set->single.lo, range.lo);
		set->single.hi = Max(set->single.hi, range.hi);
	}
}

/*
 * Points of an array of integers without NULLs, for columns whose codes are
 * such integers plus a bias; those that the column cannot hold are left out.
 * This is what big arrays mostly are.  False: the array is not of that sort.
 */
static bool
add_integers(const GpudsKeyColumn *column, GpudsKeyKind constant, const char *data, int64 n,
			 GpudsCodeSet *set)
{
	const int64 max = (int64) gpuds_ones(column->bits - 1);
	const int64 min = -max - 1;
	const uint64 bias = UINT64_C(1) << (column->bits - 1);
	uint64 *points = set->points;
	int64 kept = 0;

	/* Where the column holds all integers of the constant's type, no place depends on the one before. */
#define ADD_INTEGERS(type)                                              \
	if (column->bits >= (int) sizeof(type) * BITS_PER_BYTE)             \
	{                                                                   \
		for (; kept < n; kept++)                                        \
			points[kept] = (uint64) ((const type *) data)[kept] + bias; \
	}                                                                   \
	else                                                                \
	{                                                                   \
		for (int64 i = 0; i < n; i++)                                   \
		{                                                               \
			int64 value = ((const type *) data)[i];                     \
                                                                        \
			points[kept] = (uint64) value + bias;                       \
			kept += value >= min && value <= max;                       \
		}                                                               \
	}

	switch (gpuds_integer_bytes(column, constant))
	{
		case sizeof(int16):
			ADD_INTEGERS(int16);
			break;
		case sizeof(int32):
			ADD_INTEGERS(int32);
			break;
		case sizeof(int64):
			ADD_INTEGERS(int64);
			break;
		default:
			return false;
	}
#undef ADD_INTEGERS
	set->n = kept;
	return true;
}

/* Elements after which the memory is given back that hash functions have left. */
#define HASHES_OF_SCRATCH 1024

/* What finds the codes of constants of one type in a column. */
typedef struct Finder
{
	const GpudsKeyColumn *column;
	GpudsKeyKind constant; /* of constants */
	FmgrInfo *hash;        /* of the same; NULL: the column's codes are no hashes */
	MemoryContext scratch; /* for the hash function, and for long texts; NULL: there are none */
	int hashes;            /* since that was reset */
} Finder;

/* Where a constant falls among the codes. */
static void
find_cut(Finder *finder, Datum value, GpudsCut *cut)
{
	MemoryContext old;

	if (finder->scratch == NULL)
	{
		gpuds_column_cut(finder->column, finder->constant, value, cut);
		return;
	}
	if (finder->hashes++ % HASHES_OF_SCRATCH == 0)
		MemoryContextReset(finder->scratch);
	old = MemoryContextSwitchTo(finder->scratch);
	if (finder->hash == NULL)
		gpuds_column_cut(finder->column, finder->constant, value, cut);
	else
	{
		memset(cut, 0, sizeof(*cut));
		cut->code = gpuds_hashed_code(finder->column, finder->hash, value);
		cut->exact = true;
	}
	MemoryContextSwitchTo(old);
}

/*
 * The codes in the strategy's relation to any element of the array.  NULL
 * elements have none.  Sets *fuzzy if the set is too large.
 */
static void
set_of_array(Finder *finder, StrategyNumber strategy, Datum value, GpudsCodeSet *set, bool *fuzzy)
{
	const GpudsKeyColumn *column = finder->column;
	const GpudsKeyKind constant = finder->constant;
	bool copied;
	ArrayType *array = gpuds_key_array(value, &copied);
	int64 n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const uint8 *bitmap = ARR_NULLBITMAP(array);
	char *at = ARR_DATA_PTR(array);
	GpudsCode max = gpuds_ones(column->bits);
	int16 typlen;
	bool typbyval;
	char typalign;
	bool points = false;

	memset(set, 0, sizeof(*set));
	set->constrained = true;
	if (n == 0)
		return;
	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);

	if (strategy == BTEqualStrategyNumber)
	{
		points = column->bits <= 64 && (constant != GPUDS_KIND_TIMESTAMPTZ || constant == column->kind);
		if (points)
			set->points = gpuds_alloc_array(n, sizeof(uint64));
		else
			set->ranges = gpuds_alloc_array(n, sizeof(GpudsCodeRange));
	}

	if (points && bitmap == NULL && add_integers(column, constant, at, n, set))
		n = 0;
	for (int64 i = 0; i < n; i++)
	{
		GpudsCut cut;

		CHECK_FOR_INTERRUPTS();
		if (bitmap != NULL && (bitmap[i / 8] & (1 << (i % 8))) == 0)
			continue;
		find_cut(finder, fetch_att(at, typbyval, typlen), &cut);
		add_element(set, points, &cut, strategy, max);
		*fuzzy |= cut.fuzzy;
		at = att_addlength_pointer(at, typlen, at);
		at = (char *) att_align_nominal(at, typalign);
	}

	if (points)
		set->arrived = true;
	else
		gpuds_set_merge_ranges(set);
	if (copied)
		pfree(array);
}

/* Prepares for constants of the type that a key compares its column with. */
static void
begin_finder(Relation index, const GpudsKeyColumn *column, ScanKey key, Finder *finder)
{
	const Oid input = index->rd_opcintype[key->sk_attno - 1];
	const Oid type = OidIsValid(key->sk_subtype) ? key->sk_subtype : input;

	memset(finder, 0, sizeof(*finder));
	finder->column = column;
	if (column->hash)
		finder->scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuds hashes", ALLOCSET_SMALL_SIZES);
	if (column->kind == GPUDS_KIND_HASHED)
	{
		finder->constant = GPUDS_KIND_HASHED;
		finder->hash = gpuds_key_hash_for(column, type);
		return;
	}
	finder->constant = type == input ? (GpudsKeyKind) column->kind : gpuds_key_kind(type);
	if (!gpuds_kinds_compare(column->kind, finder->constant))
		elog(ERROR, "cannot search column %d of index \"%s\" for type %u", key->sk_attno,
			 RelationGetRelationName(index), type);
}

/* Narrows a column's set by the constants of a key. */
static void
narrow_by_constants(Finder *finder, ScanKey key, StrategyNumber strategy, GpudsCodeSet *set, bool *recheck)
{
	const GpudsCode max = gpuds_ones(finder->column->bits);
	GpudsCodeRange range;
	GpudsCut cut;

	if (key->sk_flags & SK_SEARCHARRAY)
	{
		GpudsCodeSet array;

		set_of_array(finder, strategy, key->sk_argument, &array, recheck);
		gpuds_set_intersect(set, &array);
		return;
	}

	find_cut(finder, key->sk_argument, &cut);
	*recheck |= cut.fuzzy;
	if (cut_range(&cut, strategy, max, &range))
		gpuds_set_intersect_range(set, &range);
	else
	{
		set->constrained = true;
		set->null = false;
		set->n = 0;
	}
}

/*
 * Narrows the set of a column whose codes are no hashes by a key that is exact, on constants of a type.
 * Heeds the column's kind and bits, the key's argument and strategy, which is btree's, and SK_SEARCHARRAY.
 */
void
gpuds_key_narrow_column(const GpudsKeyColumn *column, Oid type, ScanKey key, GpudsCodeSet *set)
{
	Finder finder = { .column = column, .constant = gpuds_key_kind(type) };
	bool fuzzy = false;

	if (!gpuds_kinds_compare(column->kind, finder.constant))
		elog(ERROR, "cannot test a column of kind %d for type %u", (int) column->kind, type);
	narrow_by_constants(&finder, key, key->sk_strategy, set, &fuzzy);
	if (fuzzy)
		elog(ERROR, "a test of a column of kind %d for type %u is not exact", (int) column->kind, type);
}

/*
 * Narrows a column's set by a key.  An access method that does not order has one strategy, equality.  Sets
 * *recheck if codes of the set have values that are not asked for, beside those that hashes have.
 */
void
gpuds_key_narrow(Relation index, const GpudsKeyLayout *layout, ScanKey key, GpudsCodeSet *sets, bool *recheck)
{
	int i = key->sk_attno - 1;
	const GpudsKeyColumn *column;
	GpudsCodeSet *set = &sets[i];
	GpudsCode max;
	GpudsCodeRange range;
	Finder finder;

	Assert(i >= 0 && i < layout->nkeys);
	Assert((key->sk_flags & (SK_ROW_HEADER | SK_ROW_MEMBER | SK_ORDER_BY)) == 0);
	column = &layout->column[i];
	max = gpuds_ones(column->bits);

	if (key->sk_flags & SK_SEARCHNULL)
	{
		gpuds_set_intersect_null(set);
		return;
	}
	if (key->sk_flags & SK_SEARCHNOTNULL)
	{
		range.lo = 0;
		range.hi = max;
		gpuds_set_intersect_range(set, &range);
		return;
	}
	if (key->sk_flags & SK_ISNULL)
	{
		/* the operators are strict */
		set->constrained = true;
		set->null = false;
		set->n = 0;
		return;
	}

	if (column->kind == GPUDS_KIND_POINT)
	{
		gpuds_point_narrow(key, set);
		return;
	}
	begin_finder(index, column, key, &finder);
	narrow_by_constants(&finder, key, layout->ordered ? key->sk_strategy : BTEqualStrategyNumber, set,
						recheck);
	if (finder.scratch)
		MemoryContextDelete(finder.scratch);
}
