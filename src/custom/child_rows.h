/*-------------------------------------------------------------------------
 *
 * child_rows.h
 *	  The rows below a custom scan in an order, of which some are skipped: those of an index scan, or of one
 *	  for each child of a table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_CHILD_ROWS_H
#define GPUDS_CUSTOM_CHILD_ROWS_H

#include "lib/binaryheap.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

#include "custom/custom.h"

/*
 * What the planner tells the executor of the rows below: NIL if they are those of one index scan, else an
 * integer list of these.
 */
enum
{
	ROWS_COLUMNS, /* of the scans' keys, the first ones, which give the order */
	ROWS_IN_TURN  /* 1: the scans' rows follow each other */
};

/* What the planner finds out of them. */
typedef struct GpudsOrderedPath
{
	Path *path;    /* an index scan, or core's Append of one for each child */
	List *scans;   /* IndexPath */
	List *merging; /* for the executor */
} GpudsOrderedPath;

/*
 * The scan by an index of a table that gives rows in the order; NULL: there is none.  *ncolumns: see above.
 */
typedef IndexPath *GpudsScanInOrder(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index, void *arg,
									int *ncolumns);

typedef struct GpudsChildRows
{
	PlanState *below;
	int nscans;
	PlanState **scans;
	int ncolumns;
	bool in_turn;
	int64 position; /* rows that were given or skipped since the beginning */

	/* rows of one scan after the other: */
	int at;        /* the scan */
	int64 of_scan; /* rows of it that were given or skipped */
	int64 *counts; /* rows of each; -1: they have not been counted */

	/* rows that are merged: */
	binaryheap *heap; /* of the scans that have a row; empty before the first */
	bool merges;      /* it is not, unless all rows were given */
	TupleTableSlot **slots;
	GpudsEntry *keys; /* of these rows */
} GpudsChildRows;

/* child_rows_path.c */
extern bool gpuds_children_in_order(PlannerInfo *root, RelOptInfo *rel, List *pathkeys, PathTarget *target,
									GpudsScanInOrder *find, void *arg, GpudsOrderedPath *ordered);
extern int64 gpuds_ordered_few_rows(const GpudsOrderedPath *ordered);
extern Cost gpuds_ordered_count_cost(PlannerInfo *root, const GpudsOrderedPath *ordered);
extern Cost gpuds_ordered_recount_cost(PlannerInfo *root, const GpudsOrderedPath *ordered);
extern Cost gpuds_ordered_begin_cost(const GpudsOrderedPath *ordered);

/* child_rows.c */
extern void gpuds_child_rows_begin(GpudsChildRows *rows, PlanState *below, const List *merging);
extern TupleTableSlot *gpuds_child_rows_next(GpudsChildRows *rows);
extern int64 gpuds_child_rows_skip(GpudsChildRows *rows, int64 n);
extern int64 gpuds_child_rows_count(GpudsChildRows *rows, double expected);
extern void gpuds_child_rows_rescan(GpudsChildRows *rows, Bitmapset *changed);
extern GpudsScanCounters gpuds_child_rows_counters(const GpudsChildRows *rows);

#endif /* GPUDS_CUSTOM_CHILD_ROWS_H */
