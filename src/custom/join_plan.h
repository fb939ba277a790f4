/*-------------------------------------------------------------------------
 *
 * join_plan.h
 *	  What the planner knows of a GpudsJoin: for join_path.c, join_keys.c and join_cost.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_JOIN_PLAN_H
#define GPUDS_CUSTOM_JOIN_PLAN_H

#include "nodes/pathnodes.h"

/* What a path knows of its join. */
typedef struct GpudsJoinPlan
{
	JoinType type;
	RelOptInfo *inner;
	IndexOptInfo *index;
	List *keys;       /* expressions of the outer side, for each leading column */
	List *types;      /* OIDs: what each is compared as */
	Oid shape;        /* the function that says whether a point is in the key, a shape; or none */
	List *conditions; /* RestrictInfos that became keys, in the same order */
	List *exact;      /* those of them that no pair has to be looked at for */
	List *tested;     /* RestrictInfos that are tested in the inner table's entries, ... */
	int ntests;       /* ... by so many tests of a column */
	List *quals;      /* RestrictInfos that hold for each pair of rows */
	List *others;     /* RestrictInfos that hold for each row of the join */
	bool heap_free;   /* the index has all columns that are wanted of the inner side */
	int side_bytes;   /* of side values, if some of them are side columns */
	bool keeps;       /* more is wanted of the outer side than the keys */
	bool right_semi;  /* inner rows are given that have a match */
	bool unique;      /* the outer rows have been made unique by their keys */
	bool counts;      /* rows are only counted: the path's target is parts of count(*) */
} GpudsJoinPlan;

/* A key that many outer rows have. */
typedef struct GpudsJoinCommonKey
{
	double share;   /* of the outer rows */
	double matches; /* inner rows that have it */
} GpudsJoinCommonKey;

/* What inner rows the keys of the outer rows find, whatever other conditions say of them. */
typedef struct GpudsJoinKeys
{
	double rows; /* of the outer side */
	int ncommon;
	const GpudsJoinCommonKey *common;
	double share;    /* of the outer rows: that have another key, ... */
	double distinct; /* ... of so many, ... */
	double found;    /* ... of which the inner table has this share, ... */
	double matches;  /* ... and so many rows of each on average, of those that it has not, too */
	double by_core;  /* matches of all outer rows, as core estimates them */
	bool known;      /* the index has said so; else all but by_core is guessed of that */
} GpudsJoinKeys;

/* join_keys.c */
extern void gpuds_join_keys(PlannerInfo *root, const GpudsJoinPlan *plan, const RelOptInfo *outer,
							double rows, GpudsJoinKeys *keys);

/* join_cost.c */
extern bool gpuds_join_cost(PlannerInfo *root, CustomPath *path, const GpudsJoinPlan *plan,
							const Path *outer);

#endif /* GPUDS_CUSTOM_JOIN_PLAN_H */
