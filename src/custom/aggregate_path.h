/*-------------------------------------------------------------------------
 *
 * aggregate_path.h
 *	  What a query wants of the rows of a table, and the path that has it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_AGGREGATE_PATH_H
#define GPUDS_CUSTOM_AGGREGATE_PATH_H

#include "nodes/pathnodes.h"

/* What is wanted of a table. */
typedef struct GpudsWanted
{
	PlannerInfo *root;
	RelOptInfo *rel;
	List *exprs;       /* columns of groups, and aggregates: results, or parts of them for core to combine */
	List *groups;      /* columns that rows are grouped by ... */
	List *operators;   /* ... and what they are equal by */
	List *percentiles; /* aggregates of percentiles, if they are wanted apart */
	bool apart;
	Expr *bucket;       /* NULL, or what they are grouped by is a function of one of the columns ... */
	Var *bucket_column; /* ... this one, which is the last in groups */
	bool distinct;      /* groups are what core goes on with: often each has but one row */
	bool values;        /* of each group, the distinct values of the first column are wanted */
	bool hashed;        /* groups may come in any order, and one in parts ... */
	bool whole;         /* ... unless this is set */
} GpudsWanted;

/* Adds paths to the grouped relation output. */
typedef void GpudsAddPaths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
						   const GroupPathExtraData *extra);

/* aggregate_path.c */
extern const Var *gpuds_wanted_column(const RelOptInfo *rel, const Expr *expr);
extern bool gpuds_wanted_collect_groups(GpudsWanted *wanted, List *clauses);
extern bool gpuds_wanted_collect(GpudsWanted *wanted, const RelOptInfo *output, Node *having);
extern bool gpuds_wanted_needs_parts(const GpudsWanted *wanted);
extern bool gpuds_is_fixed_column(const IndexPath *path, int column);
extern double gpuds_wanted_groups(const GpudsWanted *wanted, double rows);
extern CustomPath *gpuds_wanted_path(const GpudsWanted *wanted, RelOptInfo *parent, PathTarget *target,
									 Node *having);
extern CustomPath *gpuds_wanted_hashed_path(const GpudsWanted *wanted, RelOptInfo *parent, PathTarget *target,
											Node *having);

/* aggregate_append.c */
extern bool gpuds_aggregate_is_parent(PlannerInfo *root, RelOptInfo *rel);
extern bool gpuds_collect_children(PlannerInfo *root, Index parent, List **children);
extern Path *gpuds_wanted_groups_path(const GpudsWanted *wanted, bool hashed);
extern Expr *gpuds_aggregate_part_of(const Aggref *aggref);
extern Path *gpuds_wanted_parts_path(const GpudsWanted *wanted, PathTarget *target);
extern void gpuds_final_costs(PlannerInfo *root, AggClauseCosts *costs);

/* aggregate_distinct.c */
extern bool gpuds_wanted_collect_distinct(GpudsWanted *wanted, const RelOptInfo *output, Node *having,
										  double *ngroups);
extern bool gpuds_is_distinct_column(const RelOptInfo *rel, const Aggref *aggref, const Var **column,
									 Oid *equality);
extern double gpuds_wanted_add_distinct(GpudsWanted *wanted, const Var *column, Oid equality);
extern void gpuds_add_distinct_path(PlannerInfo *root, RelOptInfo *output, Path *values, List *pathkeys,
									Node *having, double ngroups);

/* aggregate_separate.c */
extern void gpuds_add_separate_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
									GpudsAddPaths *plain_paths, const GroupPathExtraData *extra);

/* aggregate_group.c */
extern void gpuds_add_final_paths(PlannerInfo *root, RelOptInfo *output, Path *parts, double ngroups,
								  const GroupPathExtraData *extra);

/* aggregate_sets.c */
extern bool gpuds_may_take_parts(const PlannerInfo *root, const GroupPathExtraData *extra);
extern void gpuds_add_sets_path(PlannerInfo *root, RelOptInfo *output, Path *parts, Node *having);

#endif /* GPUDS_CUSTOM_AGGREGATE_PATH_H */
