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

#include "device/cpu_dispatch.h"
#include "reader/row_filter.h"

/*
 * A filter of a test of a column of an index, in the current memory context.  side: it may be of a side
 * value.  make sets the test, in that context; prompt: it raises no errors.
 */
GpudsRowFilter *
gpuds_row_filter_test(int column, bool side, bool prompt, void (*make)(GpudsRowFilter *filter), void *arg)
{
	GpudsRowFilter *filter = palloc0(sizeof(GpudsRowFilter));

	filter->kind = GPUDS_FILTER_TEST;
	filter->column = column;
	filter->side = side;
	filter->prompt = prompt;
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

/* Makes a test. */
static void
make_test(GpudsRowFilter *filter)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(filter));

	filter->make(filter);
	filter->make = NULL;
	MemoryContextSwitchTo(old);
	/* NULL bits are in entries. */
	filter->side &= filter->test.column.side_bytes != 0;
}

/* Makes an array larger, if it has no room for n more elements of that many bytes. */
static void *
ensure_capacity(void *array, int64 used, int64 n, int64 *size, size_t bytes)
{
	if (used + n <= *size)
		return array;
	*size = Max(used + n, 2 * *size);
	return array ? repalloc_huge(array, *size * bytes)
				 : MemoryContextAllocHuge(CurrentMemoryContext, *size * bytes);
}

static void
add_step(GpudsFilterSteps *to, EntryFilterOp op, int64 n)
{
	const EntryFilterStep step = { .op = op, .n = (uint32) n, .codes = to->ncodes };

	to->steps = ensure_capacity(to->steps, to->nsteps, 1, &to->steps_size, sizeof(EntryFilterStep));
	to->steps[to->nsteps++] = step;
}

/* Adds a test, which is made if it has not been; false: it cannot be a step. */
static bool
add_test(GpudsRowFilter *filter, GpudsFilterSteps *to)
{
	const ColumnTest *test = &filter->test;

	if (filter->make && !filter->prompt)
		return false;
	if (filter->make)
		make_test(filter);
	if ((filter->side && !to->side) || test->n > PG_INT32_MAX)
		return false;
	add_step(to, ENTRY_FILTER_TEST, test->n);
	to->steps[to->nsteps - 1].column = test->column;
	to->steps[to->nsteps - 1].null = test->null;
	to->codes = ensure_capacity(to->codes, to->ncodes, 2 * test->n, &to->codes_size, sizeof(uint64));
	if (test->n > 0)
	{
		memcpy(to->codes + to->ncodes, test->lo, test->n * sizeof(uint64));
		memcpy(to->codes + to->ncodes + test->n, test->hi, test->n * sizeof(uint64));
	}
	to->ncodes += 2 * test->n;
	return true;
}

/* Adds a filter below others, of whose results one waits for each. */
static bool
add_filter(GpudsRowFilter *filter, GpudsFilterSteps *to, int waiting)
{
	const EntryFilterOp op = filter->kind == GPUDS_FILTER_AND ? ENTRY_FILTER_AND : ENTRY_FILTER_OR;
	int64 joined = 0;
	ListCell *lc;

	check_stack_depth();
	if (waiting >= ENTRY_FILTER_DEPTH)
		return false;
	if (filter->kind == GPUDS_FILTER_TEST)
		return add_test(filter, to);
	if (filter->filters == NIL)
		add_step(to, op, 0);
	/* Each is joined with those before it at once, so that one result of theirs waits. */
	foreach (lc, filter->filters)
	{
		if (!add_filter(lfirst(lc), to, waiting + (joined > 0)))
			return false;
		if (joined++ > 0)
			add_step(to, op, 2);
	}
	return true;
}

/*
 * Adds a filter's steps to a list, whose memory is in the current context.  False: it needs side values of
 * which no test may be, or
 * what an expression is yet to be evaluated for, or is too deep; what has been added is of no use then.
 */
bool
gpuds_row_filter_add_steps(GpudsRowFilter *filter, GpudsFilterSteps *to)
{
	return add_filter(filter, to, 0);
}

/* Which entries pass a test, GPUDS_TEST_ENTRIES at most? */
static void
run_test(GpudsRowFilter *filter, const GpudsKeyLayout *layout, const GpudsEntry *entries, const uint8 *side,
		 int n, bool *passes)
{
	if (filter->make)
		make_test(filter);
	if (filter->side && side == NULL)
		elog(ERROR, "there are no side values to be tested");
	gpuds_cpu_kernels()->test(&filter->test, entries, filter->side ? side : NULL, layout->side_bytes, n,
							  layout->nwords, passes);
}

/* The same of any filter. */
static void
run_vector(GpudsRowFilter *filter, const GpudsKeyLayout *layout, const GpudsEntry *entries, const uint8 *side,
		   int n, bool *passes)
{
	const bool all = filter->kind == GPUDS_FILTER_AND;
	ListCell *lc;

	check_stack_depth();
	if (filter->kind == GPUDS_FILTER_TEST)
	{
		run_test(filter, layout, entries, side, n, passes);
		return;
	}
	if (filter->filters == NIL)
	{
		memset(passes, all, n);
		return;
	}
	run_vector(linitial(filter->filters), layout, entries, side, n, passes);
	/* Not on the stack, because nests may be deep. */
	if (filter->part == NULL)
		filter->part = MemoryContextAlloc(GetMemoryChunkContext(filter), GPUDS_TEST_ENTRIES * sizeof(bool));
	for_each_from(lc, filter->filters, 1)
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
	for (int64 first = 0; first < n; first += GPUDS_TEST_ENTRIES)
	{
		const int64 bytes = first * layout->side_bytes;

		CHECK_FOR_INTERRUPTS();
		run_vector(filter, layout, entries + first, side ? side + bytes : NULL,
				   (int) Min(n - first, GPUDS_TEST_ENTRIES), passes + first);
	}
}
