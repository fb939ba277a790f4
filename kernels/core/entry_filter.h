/*-------------------------------------------------------------------------
 *
 * entry_filter.h
 *	  Conditions on columns of an entry, joined by AND and OR, as a list of steps.
 *
 * A step is a test of a column, or joins what the steps before it have said: so a step comes behind those
 * that it joins.  What steps have said and none has joined yet are the bits of a word, the last one lowest.
 * The last step says whether the entry passes.  Tests of side columns need the row's side values.
 *
 * Ranges of tests lie in one array of codes: of each test the lowest codes of its ranges, then the
 * highest ones.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_ENTRY_FILTER_H
#define KERNELS_ENTRY_FILTER_H

#include "kernels/core/column_test.h"

/* Results that wait to be joined, at most; also those that a step joins. */
#define ENTRY_FILTER_DEPTH 60

typedef enum EntryFilterOp
{
	ENTRY_FILTER_TEST,
	ENTRY_FILTER_AND, /* of none: true */
	ENTRY_FILTER_OR   /* of none: false */
} EntryFilterOp;

typedef struct EntryFilterStep
{
	uint32_t op;      /* EntryFilterOp */
	uint32_t n;       /* ranges of a test; else: results that are joined */
	uint64_t codes;   /* of a test: where its first code is */
	AggColumn column; /* ... and its column */
	uint64_t null;    /* ... not 0: a NULL passes */
} EntryFilterStep;

/* What waits after a step, and what waited before it.  side: NULL, or the row's side values. */
KERNEL_INLINE uint64_t
entry_filter_step(const EntryFilterStep *step, const uint64_t *codes, uint64_t waiting, const GpudsEntry *e,
				  const uint8_t *side, const int nw)
{
	ColumnTest test;

	if (step->op != ENTRY_FILTER_TEST)
	{
		const uint64_t joined = (UINT64_C(1) << step->n) - 1;
		const bool all = (waiting & joined) == joined;
		const bool any = (waiting & joined) != 0;

		return waiting >> step->n << 1 | (step->op == ENTRY_FILTER_AND ? all : any);
	}
	test.column = step->column;
	test.null = step->null != 0;
	test.n = step->n;
	test.lo = codes + step->codes;
	test.hi = test.lo + step->n;
	if (side != NULL && test.column.side_bytes != 0)
	{
		const GpudsEntry value = agg_column_side_entry(&test.column, e, nw, side);

		return waiting << 1 | column_test_passes(&test, &value, 1);
	}
	return waiting << 1 | column_test_passes(&test, e, nw);
}

/* Does an entry pass n steps, of which there is at least one? */
KERNEL_INLINE bool
entry_filter_passes(const EntryFilterStep *steps, uint32_t n, const uint64_t *codes, const GpudsEntry *e,
					const uint8_t *side, const int nw)
{
	uint64_t waiting = 0;

	for (uint32_t i = 0; i < n; i++)
		waiting = entry_filter_step(&steps[i], codes, waiting, e, side, nw);
	return waiting & 1;
}

#endif /* KERNELS_ENTRY_FILTER_H */
