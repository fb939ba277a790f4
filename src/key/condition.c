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
			range->lo = cut->code;
			range->hi = cut->fuzzy ? cut->last : cut->code;
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
		if (cut->exact)
			set->points[set->n++] = (uint64) cut->code;
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

#define ADD_INTEGERS(type)                      \
	for (int64 i = 0; i < n; i++)               \
	{                                           \
		int64 value = ((const type *) data)[i]; \
                                                \
		points[kept] = (uint64) value + bias;   \
		kept += value >= min && value <= max;   \
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

/*
 * The codes in the strategy's relation to any element of the array.  NULL
 * elements have none.  Sets *fuzzy if the set is too large.
 */
static void
set_of_array(const GpudsKeyColumn *column, GpudsKeyKind constant, StrategyNumber strategy, Datum value,
			 GpudsCodeSet *set, bool *fuzzy)
{
	ArrayType *array = DatumGetArrayTypeP(value);
	int64 n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const bits8 *bitmap = ARR_NULLBITMAP(array);
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
		gpuds_cut(column->kind, constant, fetch_att(at, typbyval, typlen), &cut);
		add_element(set, points, &cut, strategy, max);
		*fuzzy |= cut.fuzzy;
		at = att_addlength_pointer(at, typlen, at);
		at = (char *) att_align_nominal(at, typalign);
	}

	if (points)
		set->arrived = true;
	else
		gpuds_set_merge_ranges(set);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}

/* Narrows a column's set by a key. */
void
gpuds_key_narrow(Relation index, const GpudsKeyLayout *layout, ScanKey key, GpudsCodeSet *sets, bool *recheck)
{
	int i = key->sk_attno - 1;
	const GpudsKeyColumn *column;
	GpudsCodeSet *set = &sets[i];
	GpudsKeyKind constant;
	GpudsCode max;
	GpudsCodeRange range;
	GpudsCut cut;

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

	if (!OidIsValid(key->sk_subtype) || key->sk_subtype == index->rd_opcintype[i])
		constant = column->kind;
	else
	{
		constant = gpuds_key_kind(key->sk_subtype);
		if (!gpuds_kinds_compare(column->kind, constant))
			elog(ERROR, "cannot search column %d of index \"%s\" for type %u", i + 1,
				 RelationGetRelationName(index), key->sk_subtype);
	}

	if (key->sk_flags & SK_SEARCHARRAY)
	{
		GpudsCodeSet array;

		set_of_array(column, constant, key->sk_strategy, key->sk_argument, &array, recheck);
		gpuds_set_intersect(set, &array);
		return;
	}

	gpuds_cut(column->kind, constant, key->sk_argument, &cut);
	*recheck |= cut.fuzzy;
	if (cut_range(&cut, key->sk_strategy, max, &range))
		gpuds_set_intersect_range(set, &range);
	else
	{
		set->constrained = true;
		set->null = false;
		set->n = 0;
	}
}
