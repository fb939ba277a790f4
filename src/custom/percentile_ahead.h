/*-------------------------------------------------------------------------
 *
 * percentile_ahead.h
 *	  Groups that are taken ahead, so that rows of many of them are found at once.
 *
 * begin, and allow; then, again and again: more, with add for each group that is taken; find; and next for
 * each of them in turn.  reset forgets those that are left, and what was allowed.
 *
 * Of rows in no groups: begin, and find_of_all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_PERCENTILE_AHEAD_H
#define GPUDS_CUSTOM_PERCENTILE_AHEAD_H

#include "gpuds.h"

#include "custom/custom.h"
#include "custom/percentile.h"

/* A group, and the first of its ranks among those of all groups. */
typedef struct GpudsGroupAhead
{
	MinimalTuple row; /* of the node that groups; NULL: there is none */
	int64 first;
} GpudsGroupAhead;

typedef struct GpudsGroupsAhead
{
	bool possible;
	PlanState *groups_of; /* a GpudsAggregate; NULL: there are no groups */
	PlanState *rows_of;   /* an index-only scan of the same rows */
	double expected;      /* of them, about */
	TupleTableSlot *slot;
	IndexScanDesc scan; /* that is asked for ranks; NULL: it has not begun */
	GpudsScanCounters counters;
	int64 found; /* rows, over rescans */

	/* once the scan has begun */
	GpudsKeyLayout layout; /* of the index's columns, or those up to the one whose values are wanted */
	GpudsEntry ones;       /* of what is behind the columns of groups */
	GpudsKeyBytes bytes[GPUDS_KEY_MAX_COLUMNS];

	MemoryContext context; /* of what follows */
	bool end;              /* there are no groups behind these */
	int64 most;            /* groups that are taken the next time; 0: none may be */
	int64 n;
	int64 size;
	int64 next;
	GpudsGroupAhead *groups;
	Size bytes_of_rows;
	int64 nranks;
	int64 ranks_size;
	GpudsRowRank *ranks; /* of all groups */
} GpudsGroupsAhead;

extern void gpuds_ahead_begin(GpudsGroupsAhead *ahead, PlanState *groups_of, PlanState *rows_of,
							  double expected);
extern void gpuds_ahead_allow(GpudsGroupsAhead *ahead);
extern bool gpuds_ahead_more(GpudsGroupsAhead *ahead);
extern void gpuds_ahead_add(GpudsGroupsAhead *ahead, TupleTableSlot *row, int64 rows, int64 offset,
							const GpudsRanks *ranks);
extern void gpuds_ahead_find(GpudsGroupsAhead *ahead);
extern void gpuds_ahead_find_of_all(GpudsGroupsAhead *ahead, int64 rows, const GpudsRanks *ranks);
extern TupleTableSlot *gpuds_ahead_next(GpudsGroupsAhead *ahead);
extern TupleTableSlot *gpuds_ahead_row(GpudsGroupsAhead *ahead, int64 i);
extern void gpuds_ahead_reset(GpudsGroupsAhead *ahead);

#endif /* GPUDS_CUSTOM_PERCENTILE_AHEAD_H */
