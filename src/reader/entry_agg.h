/*-------------------------------------------------------------------------
 *
 * entry_agg.h
 *	  Rows of a scan, added up by groups without being made.
 *
 * A group's rows have neighbouring keys: they agree in some leading columns, or the caller says where a group
 * ends.  Of a group nothing is kept but its partial aggregates.
 *
 * The rows' visibility is as in visible.h.  Entries are resolved in pieces, and a piece's
 * entries are added up when it is known of all of them whether the snapshot sees their rows.
 * If there are no groups, a device may do it, and leave the entries that it is not sure of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ENTRY_AGG_H
#define GPUDS_ENTRY_AGG_H

#include "kernels/core/partial_agg.h"
#include "reader/visible.h"

/* What makes rows a group. */
typedef struct GpudsEntryAggGroups
{
	int ncolumns; /* that agree; 0: all rows are one group */
	/* NULL, or sets *last to the last entry that may be in a group, for its first one */
	void (*find)(void *arg, const GpudsEntry *first, GpudsEntry *last);
	void *arg;
} GpudsEntryAggGroups;

typedef struct GpudsEntryAgg
{
	IndexScanDesc scan;
	int nwords;
	const GpudsKeyLayout *layout;
	const AggColumn *agg_columns;
	const int *columns; /* of each aggregated column */
	int nagg;
	bool has_side; /* some of these are side columns */
	GpudsSideReader reader;
	GpudsEntryAggGroups groups;
	GpudsEntry group_bits; /* ones where entries of one group agree */
	GpudsEntry group_last; /* last entry that may be in the group at hand */
	GpudsVisible visible;
	bool grouped;
	double expected;         /* rows, about */
	bool device_agg_columns; /* as long as it does */
	MemoryContext context;   /* of what follows */

	GpudsCountedSum sum; /* what the device has added up */
	GpudsCounted others; /* of its last answer, those from next_other on are not in a piece yet */
	int64 next_other;
	int64 answered; /* entries of the intervals that it has added up */

	/* a piece: entries whose rows are seen, from at on not yet added up */
	GpudsEntry *entries;
	bool *seen;
	uint8 *side; /* side values of those that are seen, if any are wanted */
	int64 size;
	int64 n;
	int64 at;
} GpudsEntryAgg;

/* The rows of an interval, and what has been aggregated of them. */
typedef GpudsCountedSum GpudsEntryAggSum;

/* A group of rows. */
typedef struct GpudsEntryAggGroup
{
	GpudsEntry first; /* one of its entries, if there are rows */
	int64 rows;
	PartialAgg *partial; /* of each aggregated column; the caller's */
} GpudsEntryAggGroup;

extern void gpuds_entry_agg_begin(GpudsEntryAgg *agg, IndexScanDesc scan, const GpudsKeyLayout *layout,
								  const AggColumn *agg_columns, const int *columns, int nagg,
								  const GpudsEntryAggGroups *groups, double expected);
extern bool gpuds_entry_agg_next(GpudsEntryAgg *agg, GpudsEntryAggGroup *group);
extern void gpuds_entry_agg_end(GpudsEntryAgg *agg);

/* group_agg.c */
extern bool gpuds_entry_agg_may_use_device(const GpudsEntryAgg *agg);
extern void gpuds_entry_agg_skip(GpudsEntryAgg *agg);
extern bool gpuds_entry_agg_range(GpudsEntryAgg *agg, const AggColumn *by, GpudsInterval *interval,
								  PartialAgg *range);
extern bool gpuds_entry_agg_intervals(GpudsEntryAgg *agg, const GpudsInterval *intervals, int64 n,
									  GpudsEntryAggSum *sums);
extern void gpuds_entry_agg_look_up(GpudsEntryAgg *agg, const GpudsEntry *entries, int64 n);

#endif /* GPUDS_ENTRY_AGG_H */
