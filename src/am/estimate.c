/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  What an index itself says of its rows, for the planner's estimates.
 *
 * Statistics are as old as the last ANALYZE, and know nothing of which keys of one table are in another.
 * The structure of an index counts the entries of a key, or of a range, in a fraction of a microsecond.
 * Entries of rows that are dead or that others are inserting count as well, and what came since the structure
 * was last brought up does not; so counts are put in proportion to the number of rows that the planner
 * expects.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "am/am.h"
#include "index/index.h"

/*
 * Of the rows that the planner expects: so many entries has a structure that is asked though it may be old.
 */
#define LEAST_SHARE 0.8
#define MOST_SHARE 2.0

/*
 * Is what the structure has about what the table has?  Of one that has not been brought up, only that says
 * whether much was appended since.
 */
static bool
is_plausible(const IndexOptInfo *index, const GpudsPeek *peek)
{
	if (peek->entries < 1)
		return false;
	return peek->current ||
		   (peek->entries >= LEAST_SHARE * index->tuples && peek->entries <= MOST_SHARE * index->tuples);
}

/*
 * Begins to ask an index, which the planner has locked; false: it has nothing to say, because its structure
 * is not on the CPU device.  If true, gpuds_estimate_end is to be called.
 */
bool
gpuds_estimate_begin(const IndexOptInfo *index, GpudsEstimate *estimate)
{
	if (index->hypothetical)
		return false;
	estimate->index = index_open(index->indexoid, NoLock);
	if (!gpuds_peek_begin(estimate->index, &estimate->peek) || !is_plausible(index, &estimate->peek) ||
		!gpuds_index_planned_layout(estimate->index, &estimate->layout))
	{
		index_close(estimate->index, NoLock);
		return false;
	}
	estimate->scale = Max(index->tuples, 1) / estimate->peek.entries;
	return true;
}

/* Closes the index that gpuds_estimate_begin opened.  The planner's lock on it stays. */
void
gpuds_estimate_end(GpudsEstimate *estimate)
{
	index_close(estimate->index, NoLock);
}

/* How many rows have a key that a probe of this index is equal to; -1: it cannot be said. */
double
gpuds_estimate_probe(GpudsEstimate *estimate, const GpudsKeyProbe *probe, const GpudsEntry *key)
{
	const GpudsInterval interval = gpuds_key_probe_interval(probe, key);
	const int64 n = gpuds_peek_count(&estimate->peek, &interval);

	return n < 0 ? -1 : n * estimate->scale;
}

/*
 * All entries whose codes in the first column are from one to another, in whichever order the index has
 * them.
 */
static GpudsInterval
codes_between(const GpudsKeyLayout *layout, const AggColumn *agg_column, const GpudsEntry *some, uint64 from,
			  uint64 to)
{
	const bool descending = layout->column[0].descending;
	GpudsInterval interval = { *some, *some };
	GpudsEntry ones;

	gpuds_key_set_partial_agg(agg_column, layout->nwords, descending ? to : from, &interval.lo);
	gpuds_key_set_partial_agg(agg_column, layout->nwords, descending ? from : to, &interval.hi);
	gpuds_key_prefix_bits(layout, 1, &ones);
	interval.lo = entry_first_alike(&interval.lo, &ones);
	interval.hi = entry_last_alike(&interval.hi, &ones);
	return interval;
}

/* All entries that have a value in the first column. */
static GpudsInterval
not_null(const GpudsKeyLayout *layout)
{
	static const GpudsEntry lowest = { 0, 0, 0 };
	GpudsInterval all = { lowest, { UINT64_MAX, layout->nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };
	GpudsInterval nulls;

	gpuds_key_null_interval(layout, 0, &lowest, &nulls);
	if (layout->column[0].nulls_first)
		all.lo = entry_behind(nulls.hi, layout->nwords);
	else
		all.hi = entry_before(nulls.lo);
	return all;
}

/*
 * Where the index's first column, whose values can be aggregated, begins and ends: codes of its least and
 * greatest value.  False: it has none, or the structure is gone.
 */
bool
gpuds_estimate_ends(GpudsEstimate *estimate, GpudsColumnEnds *ends)
{
	const GpudsKeyLayout *layout = &estimate->layout;
	const GpudsInterval all = not_null(layout);
	GpudsEntry last;
	uint64 codes[2];

	gpuds_key_agg_column(layout, 0, &ends->agg_column);
	if (!gpuds_peek_end_of(&estimate->peek, &all, false, &ends->first) ||
		!gpuds_peek_end_of(&estimate->peek, &all, true, &last))
		return false;
	codes[0] = agg_column_code(&ends->agg_column,
							   agg_column_bits(&ends->first, layout->nwords, ends->agg_column.place,
											   ends->agg_column.bits));
	codes[1] = agg_column_code(&ends->agg_column,
							   agg_column_bits(&last, layout->nwords, ends->agg_column.place,
											   ends->agg_column.bits));
	ends->least = Min(codes[0], codes[1]);
	ends->greatest = Max(codes[0], codes[1]);
	return true;
}

/* How many rows have a value in the first column whose code is from one to another; -1: it cannot be said. */
double
gpuds_estimate_between(GpudsEstimate *estimate, const GpudsColumnEnds *ends, uint64 from, uint64 to)
{
	const GpudsInterval interval = codes_between(&estimate->layout, &ends->agg_column, &ends->first, from,
												 to);
	const int64 n = gpuds_peek_count(&estimate->peek, &interval);

	return n < 0 ? -1 : n * estimate->scale;
}
