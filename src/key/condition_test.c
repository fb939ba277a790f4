/*-------------------------------------------------------------------------
 *
 * condition_test.c
 *	  Conditions on a column as tests of its codes in entries (kernels/core/column_test.h).
 *
 * Unlike scan keys these may be conditions on included columns, and negated ones.  Of key columns a test has
 * the codes by which the index orders.  Included columns have the bytes of values, of which the codes of
 * partial_agg.h are made; these order as key codes do, but -0 has one of its own, next below that of 0.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/array.h"
#include "utils/lsyscache.h"

#include "key/set.h"

/* Bits that a test's codes have at most. */
#define MAX_TEST_BITS 64

/* The kind of a column's values. */
static GpudsKeyKind
kind_of_values(const GpudsKeyLayout *layout, int i)
{
	const GpudsKeyColumn *column = &layout->column[i];

	return (GpudsKeyKind) (i < layout->nkeys ? column->kind : column->values);
}

/*
 * Can a column of a type be tested against constants of another?  Not if the result depends on more than the
 * two values, and not where a label of an enum has no place in the order.
 */
bool
gpuds_key_can_test(Oid column, bool included, Oid constant)
{
	const GpudsKeyKind kind = gpuds_key_kind(column);

	if (kind == GPUDS_KIND_NONE || kind == GPUDS_KIND_ENUM || gpuds_kind_bits(kind) > MAX_TEST_BITS)
		return false;
	/* an accepted type may be like one that it is compared with otherwise than by its bits */
	if (column != getBaseType(constant) &&
		(gpuds_key_core_kind(column) == GPUDS_KIND_NONE || gpuds_key_core_kind(constant) == GPUDS_KIND_NONE))
		return false;
	return (!included || gpuds_key_can_aggregate(column)) && gpuds_key_probe_is_exact(column, constant);
}

/* Where a column's codes are. */
static void
place_column(const GpudsKeyLayout *layout, int i, AggColumn *place)
{
	const GpudsKeyColumn *column = &layout->column[i];

	if (i >= layout->nkeys)
	{
		gpuds_key_agg_column(layout, i, place);
		return;
	}
	place->kind = AGG_COLUMN_INTEGER;
	place->place = column->shift;
	place->bits = column->bits;
	place->null_place = column->null_shift;
	place->null_bit = (uint8) gpuds_null_bit(column);
	place->flip = column->descending ? (uint64) gpuds_ones(column->bits) : 0;
}

/* A test that no value passes, nor a NULL. */
static void
pass_nothing(const GpudsKeyLayout *layout, int i, ColumnTest *test)
{
	memset(test, 0, sizeof(*test));
	place_column(layout, i, &test->column);
}

/* Lets all values pass, or a NULL, or both. */
void
gpuds_key_test_null(const GpudsKeyLayout *layout, int i, bool values, bool null, ColumnTest *test)
{
	static const uint64 lowest = 0;
	static const uint64 highest = UINT64_MAX;

	memset(test, 0, sizeof(*test));
	gpuds_key_agg_column_nulls(layout, i, &test->column);
	test->null = null;
	test->n = values;
	test->lo = &lowest;
	test->hi = &highest;
}

/*
 * Does an array have no elements, or one that is NULL?  It is that of a condition whose column is compared
 * with any of them.
 */
static void
look_at_array(Datum value, bool *empty, bool *has_null)
{
	ArrayType *array = DatumGetArrayTypeP(value);

	*empty = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) == 0;
	*has_null = array_contains_nulls(array);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}

/* Is a code of an included column 0, which -0 equals? */
static bool
is_zero(const AggColumn *column, uint64 code)
{
	return column->kind != AGG_COLUMN_INTEGER && code == UINT64CONST(1) << (column->bits - 1);
}

/* The lowest code that a range has which begins with a value's. */
static uint64
lowest_of(const AggColumn *column, uint64 code)
{
	return is_zero(column, code) ? code - 1 : code;
}

/* The highest code that a range has which ends with a value's. */
static uint64
highest_of(const AggColumn *column, uint64 code)
{
	if (column->kind == AGG_COLUMN_INTEGER)
		return code;
	/* all NaNs have the highest code of 64 bits */
	if (code == (uint64) gpuds_ones(column->bits))
		return UINT64_MAX;
	return is_zero(column, code + 1) ? code - 1 : code;
}

/* Adds a range to a test that has room for it. */
static void
add_range(ColumnTest *test, uint64 *lo, uint64 *hi, GpudsCode first, GpudsCode last)
{
	lo[test->n] = lowest_of(&test->column, (uint64) first);
	hi[test->n++] = highest_of(&test->column, (uint64) last);
}

/* Makes ranges of a sorted set of codes, or of those that are not in it, of so many bits. */
static void
set_ranges(ColumnTest *test, const GpudsCodeSet *set, bool negated, int bits)
{
	const GpudsCode most = gpuds_ones(bits);
	GpudsCode next = 0; /* behind the last range of the set */
	uint64 *lo = gpuds_alloc_array(set->n + 1, sizeof(uint64));
	uint64 *hi = gpuds_alloc_array(set->n + 1, sizeof(uint64));

	for (int64 i = 0; i < set->n; i++)
	{
		const GpudsCodeRange range = gpuds_set_item(set, i);

		if (!negated)
			add_range(test, lo, hi, range.lo, range.hi);
		else if (range.lo > next)
			add_range(test, lo, hi, next, range.lo - 1);
		next = range.hi + 1;
	}
	if (negated && next <= most)
		add_range(test, lo, hi, next, most);
	test->lo = lo;
	test->hi = hi;
}

/*
 * Tests a column against a constant, or against the elements of an array, any of which may be in the
 * strategy's relation to the column's value.  negated: under NOT.  Allocates ranges in the current memory
 * context.  gpuds_key_can_test must allow it.
 */
void
gpuds_key_test_compare(const GpudsKeyLayout *layout, int i, const GpudsKeyCondition *condition,
					   ColumnTest *test)
{
	ScanKeyData key = { .sk_strategy = condition->strategy, .sk_argument = condition->value };
	GpudsKeyColumn column = layout->column[i];
	GpudsCodeSet set = { 0 };

	pass_nothing(layout, i, test);
	if (condition->isnull)
		return;
	if (condition->array)
	{
		bool empty;
		bool has_null;

		key.sk_flags = SK_SEARCHARRAY;
		look_at_array(condition->value, &empty, &has_null);
		if (empty)
		{
			gpuds_key_test_null(layout, i, condition->negated, condition->negated, test);
			return;
		}
		if (condition->negated && has_null)
			return;
	}
	column.kind = kind_of_values(layout, i);
	column.bits = gpuds_kind_bits(column.kind);
	column.descending = false;
	gpuds_key_narrow_column(&column, condition->type, &key, &set);
	gpuds_set_sort(&set);
	set_ranges(test, &set, condition->negated, column.bits);
}
