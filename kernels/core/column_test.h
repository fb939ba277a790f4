/*-------------------------------------------------------------------------
 *
 * column_test.h
 *	  What a condition asks of an entry's column: that its code is in one of some ranges.
 *
 * Codes are those of partial_agg.h.  Equality, order, lists and what is left of them under NOT are
 * all ranges of codes.  Whether a NULL passes is said apart, since it has no code.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_COLUMN_TEST_H
#define KERNELS_COLUMN_TEST_H

#include "kernels/core/partial_agg.h"

typedef struct ColumnTest
{
	AggColumn column;
	bool null;          /* a NULL passes */
	int64_t n;          /* ranges, ascending and disjoint */
	const uint64_t *lo; /* of each range, the lowest code ... */
	const uint64_t *hi; /* ... and the highest one */
} ColumnTest;

/* Is a code in one of the ranges? */
KERNEL_INLINE bool
column_test_has(const ColumnTest *test, uint64_t code)
{
	int64_t from = 0;
	int64_t to = test->n;

	if (test->n == 1)
		return code - test->lo[0] <= test->hi[0] - test->lo[0];
	/* the first range that does not end below the code */
	while (from < to)
	{
		int64_t middle = from + (to - from) / 2;

		if (test->hi[middle] < code)
			from = middle + 1;
		else
			to = middle;
	}
	return from < test->n && test->lo[from] <= code;
}

/* Does an entry pass? */
KERNEL_INLINE bool
column_test_passes(const ColumnTest *test, const GpudsEntry *e, const int nw)
{
	const AggColumn *column = &test->column;

	if (agg_column_is_null(column, e, nw))
		return test->null;
	return column_test_has(test,
						   agg_column_code(column, agg_column_bits(e, nw, column->place, column->bits)));
}

#endif /* KERNELS_COLUMN_TEST_H */
