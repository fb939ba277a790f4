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
gpuds_fold_may_measure(const GpudsFold *fold)
{
	GpudsInterval interval;

	return fold->nmeasures <= GPUDS_MEASURES && !fold->has_side && fold->visible.counts &&
		   fold->expected >= WORTH_ROWS && gpuds_scan_is_interval(fold->scan, &interval);
}

/* Adds the rows of entries that the device was not sure of. */
static void
add_others(GpudsFold *fold, const GpudsCounted *others, const GpudsScan *intervals)
{
	for (int64 first = 0; first < others->n; first += GPUDS_PIECE_ENTRIES)
	{
		gpuds_fold_look_up(fold, others->entries + first, Min(others->n - first, GPUDS_PIECE_ENTRIES));
		for (int64 i = 0; i < fold->n; i++)
		{
			const GpudsEntry *entry = &fold->entries[i];
			GpudsCountedSum *sum = &others->sums[entry_scan_find(intervals, entry)];

			sum->rows++;
			for (int k = 0; k < fold->nmeasures; k++)
				measure_add(&sum->measured[k], &fold->measures[k], entry, fold->nwords);
		}
		fold->n = 0;
	}
}

/*
 * The interval of the scan, and the lowest and highest codes of a column that its entries have, more or
 * less: rows that the snapshot does not see may be among them.  False: the device does not measure.
 */
bool
gpuds_fold_range(GpudsFold *fold, const Measure *by, GpudsInterval *interval, Measured *range)
{
	GpudsCountSpec spec = { .measured = true, .measures = by, .nmeasures = 1 };
	GpudsCountedSum sum = { 0 };
	GpudsCounted counted = { .sums = &sum };
	bool done;

	if (!gpuds_scan_is_interval(fold->scan, interval))
		return false;
	spec.map = gpuds_visible_copy_map(&fold->visible, &spec.map_bytes, &spec.full);
	done = gpuds_scan_count_intervals(fold->scan, interval, 1, &spec, &counted);
	*range = sum.measured[0];
	for (int64 i = 0; done && i < counted.n; i++)
		measure_add(range, by, &counted.entries[i], fold->nwords);
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
gpuds_fold_intervals(GpudsFold *fold, const GpudsInterval *intervals, int64 n, GpudsFoldSum *sums)
{
	const GpudsScan parts = { .intervals = intervals, .n = n };
	GpudsCountSpec spec = {
		.measured = true, .measures = fold->measures, .nmeasures = fold->nmeasures, .each = true
	};
	GpudsCounted counted = { .sums = sums };
	unsigned char *map = gpuds_visible_copy_map(&fold->visible, &spec.map_bytes, &spec.full);
	bool holds;

	spec.map = map;
	holds = gpuds_scan_count_intervals(fold->scan, intervals, n, &spec, &counted);
	gpuds_injection_point("scan-probed");
	holds = holds && gpuds_visible_map_holds(&fold->visible, map, spec.map_bytes, spec.full);
	pfree(map);
	if (holds)
	{
		add_others(fold, &counted, &parts);
		fold->answered = counted.counted + counted.n;
		gpuds_scan_note_matches(fold->scan, fold->answered, counted.counted);
	}
	gpuds_probe_free_counted(&counted);
	return holds;
}

/* Moves behind all rows of the scan, which gpuds_fold_intervals has added up. */
void
gpuds_fold_skip(GpudsFold *fold)
{
	gpuds_scan_skip_rest(fold->scan, fold->answered);
}
