/*-------------------------------------------------------------------------
 *
 * row_filter.h
 *	  Conditions on columns of an index, tested in entries: before their rows are looked up, and without any
 *	  expression being evaluated for a row.
 *
 * A filter is a tree of tests, joined by AND and OR.  Whoever makes one has pushed each NOT down to tests,
 * where it leaves the codes that were not in.  So it is enough to know of each test whether an entry passes:
 * under AND and OR alone, NULL and false make no difference to what is true.
 *
 * A filter is run for some entries at a time, each test for all of them.  A test is made when an entry first
 * needs it: what its column is compared with may raise an error, which core would not if no row came so far.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ROW_FILTER_H
#define GPUDS_ROW_FILTER_H

#include "kernels/core/entry_filter.h"
#include "key/key.h"

typedef enum GpudsRowFilterKind
{
	GPUDS_FILTER_TEST,
	GPUDS_FILTER_AND, /* of nothing: all entries pass */
	GPUDS_FILTER_OR   /* of nothing: none does */
} GpudsRowFilterKind;

typedef struct GpudsRowFilter
{
	GpudsRowFilterKind kind;
	bool side; /* a test below is of side values */

	/* a test */
	ColumnTest test;
	int column;                                  /* of the index */
	void (*make)(struct GpudsRowFilter *filter); /* the test; NULL: it has been made */
	void *arg;
	bool prompt; /* what it takes to make the test is at hand: nothing is evaluated that may raise an error */

	/* AND, OR */
	List *filters; /* GpudsRowFilter */
	bool *part;    /* what one of them says of some entries; NULL: has not been needed */
} GpudsRowFilter;

extern GpudsRowFilter *gpuds_row_filter_test(int column, bool side, bool prompt,
											 void (*make)(GpudsRowFilter *filter), void *arg);
extern GpudsRowFilter *gpuds_row_filter_join(GpudsRowFilterKind kind, List *filters);
extern void gpuds_row_filter_split(GpudsRowFilter *filter, GpudsRowFilter **entries, GpudsRowFilter **side);

/* Filters as lists of steps (kernels/core/entry_filter.h). */
typedef struct GpudsFilterSteps
{
	EntryFilterStep *steps;
	int64 nsteps;
	int64 steps_size;
	uint64 *codes;
	int64 ncodes;
	int64 codes_size;
	bool side; /* tests of side values may be among them */
} GpudsFilterSteps;

extern bool gpuds_row_filter_add_steps(GpudsRowFilter *filter, GpudsFilterSteps *to);
extern void gpuds_row_filter_run(GpudsRowFilter *filter, const GpudsKeyLayout *layout,
								 const GpudsEntry *entries, const uint8 *side, int64 n, bool *passes);

/* device_groups.c */
extern struct GroupSpec *gpuds_row_filter_spec(GpudsRowFilter *filter);

#endif /* GPUDS_ROW_FILTER_H */
