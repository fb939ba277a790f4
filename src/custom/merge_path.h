/*-------------------------------------------------------------------------
 *
 * merge_path.h
 *	  What a query wants of two tables whose rows are joined, or set against each other, by columns of an
 *	  index of each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_MERGE_PATH_H
#define GPUDS_CUSTOM_MERGE_PATH_H

#include "custom/aggregate_path.h"
#include "custom/merge.h"

typedef struct GpudsMerge
{
	PlannerInfo *root;
	GpudsMergeType type;
	List *clauses;                   /* of the join: Expr */
	List *equalities;                /* of groups: Expr */
	GpudsWanted wanted[MERGE_SIDES]; /* groups are what the sides are joined by, in one order */
	List *exprs;                     /* of the scan tuple */
	bool grouped;
	CustomPath *paths[MERGE_SIDES];
	Path *below[MERGE_SIDES]; /* these, or scans of subqueries that have them */
	List *keys[MERGE_SIDES];  /* columns of the paths' indexes, in their order */
} GpudsMerge;

extern void gpuds_merge_add_equality(GpudsMerge *merge, Expr *expr, Oid operator);
extern bool gpuds_merge_find_sides(GpudsMerge *merge);
extern const IndexPath *gpuds_merge_scan(const GpudsMerge *merge, int side);
extern bool gpuds_merge_may_probe(const GpudsMerge *merge, int side);
extern CustomPath *gpuds_merge_path(const GpudsMerge *merge, int driver, GpudsMergeMethod method, double rows,
									RelOptInfo *parent, PathTarget *target, List *having);

#endif /* GPUDS_CUSTOM_MERGE_PATH_H */
