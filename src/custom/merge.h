/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  What the planner tells the executor of a GpudsMerge: two GpudsAggregates below it give groups in the
 *	  order of what they are joined by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_MERGE_H
#define GPUDS_CUSTOM_MERGE_H

#include "nodes/pathnodes.h"

#include "gpuds.h"

typedef enum GpudsMergeType
{
	GPUDS_MERGE_INNER,
	GPUDS_MERGE_LEFT,
	GPUDS_MERGE_SEMI,
	GPUDS_MERGE_ANTI,
	GPUDS_MERGE_INTERSECT,
	GPUDS_MERGE_INTERSECT_ALL,
	GPUDS_MERGE_EXCEPT,
	GPUDS_MERGE_EXCEPT_ALL
} GpudsMergeType;

/* Does it set rows against each other, of which NULLs are equal? */
static inline bool
gpuds_merge_is_set(GpudsMergeType type)
{
	return type >= GPUDS_MERGE_INTERSECT;
}

/* Are there rows for a group of the left side that the right side has none for? */
static inline bool
gpuds_merge_keeps_left(GpudsMergeType type)
{
	return type == GPUDS_MERGE_LEFT || type == GPUDS_MERGE_ANTI || type == GPUDS_MERGE_EXCEPT ||
		   type == GPUDS_MERGE_EXCEPT_ALL;
}

/* The sides, in the order of custom_paths and custom_plans. */
enum
{
	MERGE_LEFT,
	MERGE_RIGHT,
	MERGE_SIDES,
	MERGE_BOTH = MERGE_SIDES /* of a column: rows are counted */
};

/* How the groups of a side that does not drive are found. */
typedef enum GpudsMergeMethod
{
	GPUDS_MERGE_ALL,  /* all are looked at */
	GPUDS_MERGE_PROBE /* its index is asked for what the other side has */
} GpudsMergeMethod;

/* CustomScan.custom_private of the plan. */
enum
{
	/* GpudsMergeType, side that drives, GpudsMergeMethod, are there groups, may a device join? */
	MERGE_HOW,
	MERGE_KEYS,    /* for each side, the columns of its index that it is joined by: a list of lists */
	MERGE_OF,      /* the side of each column of the scan tuple ... */
	MERGE_COLUMNS, /* ... and its place in the scan tuple of that side */
	MERGE_CLAUSES  /* conditions of the join, and equalities; the user must be allowed to call them */
};

/* merge_path.c */
extern void gpuds_merge_paths(PlannerInfo *root, RelOptInfo *left, RelOptInfo *right,
							  const SpecialJoinInfo *sjinfo, List *clauses, double rows, RelOptInfo *output,
							  const GroupPathExtraData *extra);

#endif /* GPUDS_CUSTOM_MERGE_H */
