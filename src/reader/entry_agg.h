/*-------------------------------------------------------------------------
 *
 * entry_agg.h
 *	  Rows of a scan, added up by groups without being made.
 *
 * A group's rows have neighbouring keys: they agree in some leading columns, or the caller says where a group
 * ends.  Of a group nothing is kept but its measures.
 *
 * The rows' visibility is as in visible.h.  Entries are resolved in pieces, and a piece's
 * entries are added up when it is known of all of them whether the snapshot sees their rows.
 * If there are no groups, a device may do it, and leave the entries that it is not sure of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_AM_FOLD_H
#define GPUDS_AM_FOLD_H

#include "kernels/core/partial_agg.h"
#include "reader/visible.h"

/* What makes rows a group. */
typedef struct GpudsFoldGroups
{
	int ncolumns; /* that agree; 0: all rows are one group */
	/* NULL, or sets *last to the last entry that may be in a group, for its first one */
	void (*find)(void *arg, const GpudsEntry *first, GpudsEntry *last);
	void *arg;
} GpudsFoldGroups;

typedef struct GpudsFold
{
	IndexScanDesc scan;
	int nwords;
	const GpudsKeyLayout *layout;
	const Measure *measures;
	const int *columns; /* that the measures are of */
	int nmeasures;
	bool has_side; /* some of these are side columns */
	GpudsSideReader reader;
	GpudsFoldGroups groups;
	GpudsEntry group_bits; /* ones where entries of one group agree */
	GpudsEntry group_last; /* last entry that may be in the group at hand */
	GpudsVisible visible;
	bool grouped;
	double expected;       /* rows, about */
	bool device_measures;  /* as long as it does */
	MemoryContext context; /* of what follows */

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
} GpudsFold;

/* The rows of an interval, and what has been measured of them. */
typedef GpudsCountedSum GpudsFoldSum;

/* A group of rows. */
typedef struct GpudsFoldGroup
{
	GpudsEntry first; /* one of its entries, if there are rows */
	int64 rows;
	Measured *measured; /* of each measure; the caller's */
} GpudsFoldGroup;

extern void gpuds_fold_begin(GpudsFold *fold, IndexScanDesc scan, const GpudsKeyLayout *layout,
							 const Measure *measures, const int *columns, int nmeasures,
							 const GpudsFoldGroups *groups, double expected);
extern bool gpuds_fold_next(GpudsFold *fold, GpudsFoldGroup *group);
extern void gpuds_fold_end(GpudsFold *fold);

/* group_agg.c */
extern bool gpuds_fold_may_measure(const GpudsFold *fold);
extern void gpuds_fold_skip(GpudsFold *fold);
extern bool gpuds_fold_range(GpudsFold *fold, const Measure *by, GpudsInterval *interval, Measured *range);
extern bool gpuds_fold_intervals(GpudsFold *fold, const GpudsInterval *intervals, int64 n,
								 GpudsFoldSum *sums);
extern void gpuds_fold_look_up(GpudsFold *fold, const GpudsEntry *entries, int64 n);

#endif /* GPUDS_AM_FOLD_H */
