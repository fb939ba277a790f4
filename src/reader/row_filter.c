/*-------------------------------------------------------------------------
 *
 * row_filter.c
 *	  Conditions on columns of an index, tested in entries.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"

#include "reader/row_filter.h"

/* Entries that a filter is run for at a time: what each test says of them stays in the first cache. */
#define VECTOR_ENTRIES 1024

/*
 * A filter of a test of a column of an index, in the current memory context.  side: it may be of a side
 * value. make sets the test, in that context.
 */
GpudsRowFilter *
gpuds_row_filter_test(int column, bool side, void (*make)(GpudsRowFilter *filter), void *arg)
{
	GpudsRowFilter *filter = palloc0(sizeof(GpudsRowFilter));

	filter->kind = GPUDS_FILTER_TEST;
	filter->column = column;
	filter->side = side;
	filter->make = make;
	filter->arg = arg;
	return filter;
}

/* AND or OR of filters, in the current memory context. */
GpudsRowFilter *
gpuds_row_filter_join(GpudsRowFilterKind kind, List *filters)
{
	GpudsRowFilter *filter = palloc0(sizeof(GpudsRowFilter));
	ListCell *lc;

	filter->kind = kind;
	filter->filters = filters;
	foreach (lc, filters)
		filter->side |= ((const GpudsRowFilter *) lfirst(lc))->side;
	return filter;
}

/*
 * Splits a filter into one that needs entries only, and one that needs side values; either may be NULL.  Both
 * are to be passed.
 */
void
gpuds_row_filter_split(GpudsRowFilter *filter, GpudsRowFilter **entries, GpudsRowFilter **side)
{
	List *of_entries = NIL;
	List *of_side = NIL;
	ListCell *lc;

	*entries = filter->side ? NULL : filter;
	*side = filter->side ? filter : NULL;
	if (filter->kind != GPUDS_FILTER_AND || !filter->side)
		return;
	foreach (lc, filter->filters)
	{
		GpudsRowFilter *part = lfirst(lc);

		if (part->side)
			of_side = lappend(of_side, part);
		else
			of_entries = lappend(of_entries, part);
	}
	if (of_entries != NIL)
		*entries = gpuds_row_filter_join(GPUDS_FILTER_AND, of_entries);
	*side = gpuds_row_filter_join(GPUDS_FILTER_AND, of_side);
}

/* Tests entries; made for each number of key words. */
static pg_attribute_always_inline void
test_entries(const ColumnTest *test, const GpudsEntry *entries, int n, const int nwords, bool *passes)
{
	const ColumnTest t = *test;

	for (int i = 0; i < n; i++)
		passes[i] = column_test_passes(&t, &entries[i], nwords);
}

/* The same of a side column. */
static void
test_side(const GpudsRowFilter *filter, const GpudsKeyLayout *layout, const GpudsEntry *entries,
		  const uint8 *side, int n, bool *passes)
{
	const GpudsKeyColumn column = layout->column[filter->column];
	const int bytes = layout->side_bytes;

	if (side == NULL)
		elog(ERROR, "there are no side values to be tested");
	for (int i = 0; i < n; i++)
	{
		GpudsEntry value;

		gpuds_key_side_entry(&column, layout->nwords, &entries[i], side + (size_t) i * bytes, &value);
		passes[i] = column_test_passes(&filter->test, &value, 1);
	}
}

/* Makes a test. */
static void
make_test(GpudsRowFilter *filter)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(filter));

	filter->make(filter);
	filter->make = NULL;
	MemoryContextSwitchTo(old);
	/* NULL bits are in entries. */
	filter->side &= filter->test.column.place != filter->test.column.null_place;
}

/* Runs a filter for VECTOR_ENTRIES at most. */
static void
run_vector(GpudsRowFilter *filter, const GpudsKeyLayout *layout, const GpudsEntry *entries, const uint8 *side,
		   int n, bool *passes)
{
	const bool all = filter->kind == GPUDS_FILTER_AND;
	ListCell *lc;

	check_stack_depth();
	if (filter->kind == GPUDS_FILTER_TEST)
	{
		if (filter->make)
			make_test(filter);
		if (filter->side)
			test_side(filter, layout, entries, side, n, passes);
		else if (layout->nwords == 1)
			test_entries(&filter->test, entries, n, 1, passes);
		else
			test_entries(&filter->test, entries, n, 2, passes);
		return;
	}
	memset(passes, all, n);
	/* Not on the stack, because nests may be deep. */
	if (filter->part == NULL)
		filter->part = MemoryContextAlloc(GetMemoryChunkContext(filter), VECTOR_ENTRIES * sizeof(bool));
	foreach (lc, filter->filters)
	{
		/* Is it decided for all entries? */
		if (memchr(passes, all, n) == NULL)
			return;
		run_vector(lfirst(lc), layout, entries, side, n, filter->part);
		for (int i = 0; i < n; i++)
			passes[i] = all ? passes[i] & filter->part[i] : passes[i] | filter->part[i];
	}
}

/*
 * Which of n entries pass a filter?  side: the side values of each, layout->side_bytes apart; may be NULL if
 * the filter needs none.
 */
void
gpuds_row_filter_run(GpudsRowFilter *filter, const GpudsKeyLayout *layout, const GpudsEntry *entries,
					 const uint8 *side, int64 n, bool *passes)
{
	for (int64 first = 0; first < n; first += VECTOR_ENTRIES)
	{
		const int64 bytes = first * layout->side_bytes;

		CHECK_FOR_INTERRUPTS();
		run_vector(filter, layout, entries + first, side ? side + bytes : NULL,
				   (int) Min(n - first, VECTOR_ENTRIES), passes + first);
	}
}
