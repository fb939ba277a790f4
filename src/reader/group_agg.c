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
		   agg->expected >= WORTH_ROWS && gpuds_scan_is_interval(agg->scan, &interval);
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
 * The interval of the scan, and the lowest and highest codes of a column that its entries have, more or
 * less: rows that the snapshot does not see may be among them.  False: the device does not agg_column.
 */
bool
gpuds_entry_agg_range(GpudsEntryAgg *agg, const AggColumn *by, GpudsInterval *interval, PartialAgg *range)
{
	GpudsCountSpec spec = { .partial = true, .agg_columns = by, .nagg = 1 };
	GpudsCountedSum sum = { 0 };
	GpudsCounted counted = { .sums = &sum };
	bool done;

	if (!gpuds_scan_is_interval(agg->scan, interval))
		return false;
	gpuds_visible_tell_device(&agg->visible, agg->expected, &spec);
	done = gpuds_scan_count_intervals(agg->scan, interval, 1, &spec, &counted);
	*range = sum.partial[0];
	for (int64 i = 0; done && i < counted.n; i++)
		partial_agg_add(range, by, &counted.entries[i], agg->nwords);
	gpuds_probe_free_counted(&counted);
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
