/*-------------------------------------------------------------------------
 *
 * group_agg.c
 *	  Groups of rows added up by a device, each an interval of keys.
 *
 * The caller asks for the range of what there is, makes intervals of it, and asks for the sums of each.
 * Between the two, nothing new comes that the snapshot sees.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "utils/rel.h"

#include "reader/entry_agg.h"
#include "reader/reader.h"

/* Rows that are worth two round trips. */
#define WORTH_ROWS 4096

/* May the device do it, and is it worth its round trips?  The scan must be of one interval. */
bool
gpuds_entry_agg_may_use_device(const GpudsEntryAgg *agg)
{
	GpudsInterval interval;

	return agg->nagg <= GPUDS_AGG_COLUMNS && gpuds_entry_agg_may_have_side(agg) && agg->visible.counts &&
		   agg->expected >= WORTH_ROWS && gpuds_scan_all_intervals(agg->scan, 1, &interval) == 1;
}

static GpudsCountedSum *
sum_of(const GpudsCounted *others, const GpudsScan *intervals, const GpudsEntry *entry)
{
	return &others->sums[entry_scan_find(intervals, entry)];
}

/* Adds the rows of entries that the device was not sure of. */
static void
add_others(GpudsEntryAgg *agg, const GpudsCounted *others, const GpudsScan *intervals)
{
	for (int64 first = 0; first < others->n; first += GPUDS_PIECE_ENTRIES)
	{
		gpuds_entry_agg_look_up(agg, others->entries + first, Min(others->n - first, GPUDS_PIECE_ENTRIES));
		for (int64 i = 0; i < agg->n; i++)
			sum_of(others, intervals, &agg->entries[i])->rows++;
		for (int k = 0; k < agg->nagg; k++)
		{
			const bool *passes = gpuds_entry_agg_passing(agg, k, 0, agg->n);

			for (int64 i = 0; i < agg->n; i++)
				gpuds_entry_agg_add(agg, k, i, passes ? &passes[i] : NULL,
									&sum_of(others, intervals, &agg->entries[i])->partial[k]);
		}
		agg->n = 0;
	}
}

/*
 * The lowest and highest codes of a column that the entries of each of n intervals of the scan have, more or
 * less: rows that the snapshot does not see may be among them.  The intervals ascend.  False: the device does
 * not aggregate.
 */
bool
gpuds_entry_agg_ranges(GpudsEntryAgg *agg, const AggColumn *by, const GpudsInterval *intervals, int64 n,
					   PartialAgg *ranges)
{
	const GpudsScan parts = { .intervals = intervals, .n = n };
	GpudsCountSpec spec = { .partial = true, .agg_columns = by, .nagg = 1, .each = n > 1 };
	GpudsCounted counted = { .sums = palloc0(n * sizeof(GpudsCountedSum)) };
	bool done;

	gpuds_visible_tell_device(&agg->visible, agg->expected, &spec);
	done = gpuds_scan_count_intervals(agg->scan, intervals, n, &spec, &counted);
	for (int64 i = 0; i < n; i++)
		ranges[i] = counted.sums[i].partial[0];
	for (int64 i = 0; done && i < counted.n; i++)
		partial_agg_add(&ranges[entry_scan_find(&parts, &counted.entries[i])], by, &counted.entries[i],
						agg->nwords);
	gpuds_probe_free_counted(&counted);
	pfree(counted.sums);
	pfree((void *) spec.map);
	return done;
}

/*
 * Adds up the rows of n intervals, ascending and disjoint, which together are the scan's: sums[i] of
 * the i-th.  False: the device does not, or rows change so fast that its answer does not hold.  The
 * scan does not move in any case.
 */
bool
gpuds_entry_agg_intervals(GpudsEntryAgg *agg, const GpudsInterval *intervals, int64 n, GpudsEntryAggSum *sums)
{
	const GpudsScan parts = { .intervals = intervals, .n = n };
	GpudsCountSpec spec = {
		.partial = true, .agg_columns = agg->agg_columns, .nagg = agg->nagg, .each = true
	};
	GpudsCounted counted = { .sums = sums };
	bool holds;

	if (agg->has_filters || agg->has_side)
		holds = gpuds_entry_agg_group_intervals(agg, intervals, n, &counted);
	else
		holds = gpuds_scan_ask_intervals(agg->scan, &agg->visible, agg->expected, intervals, n, &spec,
										 &counted);
	if (holds)
	{
		add_others(agg, &counted, &parts);
		agg->answered = counted.counted + counted.n;
		agg->answered_filtered = counted.filtered;
		gpuds_scan_note_matches(agg->scan, agg->answered, counted.counted);
	}
	gpuds_probe_free_counted(&counted);
	return holds;
}

/* Moves behind all rows of the scan, which gpuds_entry_agg_intervals has added up. */
void
gpuds_entry_agg_skip(GpudsEntryAgg *agg)
{
	agg->filtered += agg->answered_filtered;
	gpuds_scan_skip_rest(agg->scan, agg->answered + agg->answered_filtered);
}
