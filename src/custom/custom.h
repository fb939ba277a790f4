/*-------------------------------------------------------------------------
 *
 * custom.h
 *	  Custom scans: plan nodes that use an index in batches.
 *
 * GpudsAggregate has an index scan of core's making below it: core plans it, and makes its scan keys
 * and parameters.  The node runs the scan itself, in batches, and never asks the state below for a row.
 * GpudsScan does so for the rows of the scan.  GpudsJoin makes the probes of its scan from the rows of
 * its outer plan.  GpudsCombine has core's aggregates below it.  GpudsOffset moves the scan behind rows
 * that it counts, and has core go on with it, as GpudsPercentile does from one rank to the next.
 * GpudsNearest asks an index for points itself.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_H
#define GPUDS_CUSTOM_H

#include "access/genam.h"
#include "access/parallel.h"
#include "commands/explain.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

#include "reader/reader.h"
#include "reader/recheck.h"
#include "gpuds.h"

/* covering.c */
extern bool gpuds_covering_is_ours(const IndexOptInfo *index);
extern bool gpuds_covering_is_in_order(const IndexOptInfo *index);
extern bool gpuds_covering_is_table(PlannerInfo *root, RelOptInfo *rel);
extern IndexPath *gpuds_covering_path(PlannerInfo *root, RelOptInfo *rel,
									  bool (*suits)(const IndexPath *path, void *arg, Cost *more), void *arg);
extern IndexPath *gpuds_covering_path_of(PlannerInfo *root, const RelOptInfo *rel, const IndexOptInfo *index,
										 List *pathkeys);
extern IndexPath *gpuds_covering_path_in_order(PlannerInfo *root, const RelOptInfo *rel,
											   const IndexOptInfo *index, List *pathkeys, List *more,
											   PathTarget *target);
extern IndexPath *gpuds_covering_any_path(PlannerInfo *root, const RelOptInfo *rel,
										  const IndexOptInfo *index);
extern List *gpuds_covering_filter(const IndexPath *path);
extern bool gpuds_covering_is_bounded(PlannerInfo *root, IndexPath *path);
extern Cost gpuds_covering_heap_cost(PlannerInfo *root, const RelOptInfo *rel, double rows, double rounds);
extern Cost gpuds_covering_range_cost(const RelOptInfo *rel, double share);
extern double gpuds_covering_unmapped(const IndexOptInfo *index, const RelOptInfo *rel);
extern Cost gpuds_covering_recount_cost(PlannerInfo *root, IndexPath *path);
extern Cost gpuds_covering_count_cost(PlannerInfo *root, IndexPath *path);
extern bool gpuds_covering_not_null(const IndexPath *path, Expr *expr, PlannerInfo *root);

/* child_scan.c: the index scan below a node */
extern IndexScanDesc gpuds_child_scan_begin(PlanState *child);
extern IndexScanDesc gpuds_child_scan_visitor(PlanState *child);
extern GpudsRecheck *gpuds_child_scan_recheck(PlanState *child);
extern void gpuds_child_scan_refresh(PlanState *child);
extern void gpuds_child_scan_rescan(PlanState *child, Bitmapset *changed);
extern void gpuds_child_scan_start(PlanState *child);
extern void gpuds_child_scan_stop(PlanState *child, int64 rows, int64 fetches);
extern bool gpuds_child_scan_is_forward(const PlanState *child);
extern int64 gpuds_child_scan_count(PlanState *child, double expected);
extern int64 gpuds_child_scan_skip(PlanState *child, int64 n);
extern void gpuds_child_scan_restart(PlanState *child);
extern void gpuds_child_scan_check_alike(PlanState **children, int n, int ncolumns);
extern int64 gpuds_child_scan_skip_merged(PlanState **children, int n, int ncolumns, int64 rows);
extern GpudsEntry gpuds_child_scan_key(PlanState *child, int ncolumns);
extern IndexScanDesc gpuds_child_scan_like(PlanState *child);
extern TupleTableSlot *gpuds_child_scan_row(PlanState *child, const GpudsEntry *entry,
											const GpudsKeyLayout *layout, GpudsKeyBytes *bytes);
extern GpudsScanCounters gpuds_child_scan_counters(PlanState *child);

/* explain.c: counters of a node for EXPLAIN ANALYZE; zeroed when the node is made */
typedef struct GpudsSharedCounters GpudsSharedCounters;

typedef struct GpudsNodeCounters
{
	GpudsScanCounters of_workers; /* that have ended */
	GpudsSharedCounters *shared;  /* NULL: workers share none */
} GpudsNodeCounters;

extern Size gpuds_explain_size(const ParallelContext *context);
extern void gpuds_explain_share(GpudsNodeCounters *counters, const ParallelContext *context, void *shared);
extern void gpuds_explain_share_again(GpudsNodeCounters *counters);
extern void gpuds_explain_attach(GpudsNodeCounters *counters, void *shared);
extern void gpuds_explain_hand_in(GpudsNodeCounters *counters, const GpudsScanCounters *own);
extern bool gpuds_explain_sum(const GpudsNodeCounters *counters, const GpudsScanCounters *own,
							  const PlanState *node, const ExplainState *es, GpudsScanCounters *sum);
extern void gpuds_explain_device(const GpudsScanCounters *counters, ExplainState *es);
extern void gpuds_explain_counters(const GpudsNodeCounters *counters, const GpudsScanCounters *own,
								   const PlanState *node, ExplainState *es);
extern void gpuds_explain_above_scan(const GpudsNodeCounters *counters, const GpudsScanCounters *own,
									 const PlanState *node, ExplainState *es);

/* explain_option.c */
extern void gpuds_explain_option(const GpudsScanCounters *counters, ExplainState *es);
extern void gpuds_explain_option_init(void);

/* plan.c */
extern CustomScan *gpuds_plan_of_path(PlannerInfo *root, const CustomPath *path,
									  const struct CustomScanMethods *methods, List *tlist,
									  List *custom_plans);

/* aggregate_group.c, aggregate_join.c, aggregate_distinct.c, aggregate.c */
extern void gpuds_aggregate_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
								  const GroupPathExtraData *extra);
extern void gpuds_aggregate_join_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
									   const GroupPathExtraData *extra);
extern void gpuds_select_distinct_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output);
extern const struct CustomScanMethods gpuds_aggregate_methods;

/* merge_set.c, merge.c */
extern void gpuds_merge_set_paths(PlannerInfo *root, RelOptInfo *output);
extern const struct CustomScanMethods gpuds_merge_methods;

/* combine.c */
extern const struct CustomScanMethods gpuds_combine_methods;

/* offset_path.c, offset.c */
extern void gpuds_offset_paths(PlannerInfo *root, RelOptInfo *output, const FinalPathExtraData *extra);
extern const struct CustomScanMethods gpuds_offset_methods;

/* percentile_path.c, percentile.c */
extern void gpuds_percentile_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
								   const GroupPathExtraData *extra);
extern const struct CustomScanMethods gpuds_percentile_methods;

/* histogram.c */
extern void gpuds_histogram_init(void);

/* scan_path.c, scan_node.c */
extern void gpuds_scan_paths(PlannerInfo *root, RelOptInfo *rel);
extern const struct CustomScanMethods gpuds_scan_methods;

extern bool gpuds_is_current_of(const RelOptInfo *rel);
extern void gpuds_use_slot_of_table(CustomScanState *css, EState *estate);

/* nearest_path.c, nearest.c */
extern void gpuds_nearest_paths(PlannerInfo *root, RelOptInfo *rel);
extern const struct CustomScanMethods gpuds_nearest_methods;

/* join_path.c, join.c */
extern void gpuds_join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner,
							 JoinType type, JoinPathExtraData *extra);
extern void gpuds_join_count_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
								   const GroupPathExtraData *extra);
extern const struct CustomScanMethods gpuds_join_methods;

/* custom.c */
extern void gpuds_custom_init(void);

#endif /* GPUDS_CUSTOM_H */
