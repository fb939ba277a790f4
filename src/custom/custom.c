/*-------------------------------------------------------------------------
 *
 * custom.c
 *	  Makes the planner consider custom scans.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"

#include "custom/custom.h"

static create_upper_paths_hook_type prev_upper_paths = NULL;
static set_join_pathlist_hook_type prev_join_paths = NULL;
static set_rel_pathlist_hook_type prev_rel_paths = NULL;

static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input, RelOptInfo *output, void *extra)
{
	if (prev_upper_paths)
		prev_upper_paths(root, stage, input, output, extra);
	if (stage == UPPERREL_GROUP_AGG && gpuds_enable_aggregate)
	{
		gpuds_aggregate_paths(root, input, output, extra);
		gpuds_aggregate_join_paths(root, input, output, extra);
		gpuds_percentile_paths(root, input, output, extra);
	}
	if (stage == UPPERREL_GROUP_AGG && gpuds_enable_join)
		gpuds_join_count_paths(root, input, output, extra);
	if (stage == UPPERREL_SETOP && gpuds_enable_aggregate)
		gpuds_merge_set_paths(root, output);
	if (stage == UPPERREL_DISTINCT && gpuds_enable_aggregate)
		gpuds_select_distinct_paths(root, input, output);
	if (stage == UPPERREL_FINAL && gpuds_enable_aggregate)
		gpuds_offset_paths(root, output, extra);
}

static void
join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
		   JoinPathExtraData *extra)
{
	if (prev_join_paths)
		prev_join_paths(root, joinrel, outer, inner, type, extra);
	/* What joins groups, and not rows, is no relation of the query's. */
	if (gpuds_enable_join &&
		(joinrel->reloptkind != RELOPT_JOINREL || find_join_rel(root, joinrel->relids) == joinrel))
		gpuds_join_paths(root, joinrel, outer, inner, type, extra);
}

static void
rel_paths(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (prev_rel_paths)
		prev_rel_paths(root, rel, rti, rte);
	if (gpuds_enable_scan)
		gpuds_scan_paths(root, rel);
	if (gpuds_enable_nearest)
		gpuds_nearest_paths(root, rel);
}

/*
 * Registers the nodes and sets the planner's hooks, each of which first calls the one that was set before.
 * To be called once, when the library is preloaded.
 */
void
gpuds_custom_init(void)
{
	RegisterCustomScanMethods(&gpuds_aggregate_methods);
	RegisterCustomScanMethods(&gpuds_scan_methods);
	RegisterCustomScanMethods(&gpuds_join_methods);
	RegisterCustomScanMethods(&gpuds_nearest_methods);
	RegisterCustomScanMethods(&gpuds_merge_methods);
	RegisterCustomScanMethods(&gpuds_offset_methods);
	RegisterCustomScanMethods(&gpuds_percentile_methods);
	RegisterCustomScanMethods(&gpuds_combine_methods);
	gpuds_explain_option_init();
	gpuds_histogram_init();
	prev_rel_paths = set_rel_pathlist_hook;
	set_rel_pathlist_hook = rel_paths;
	prev_join_paths = set_join_pathlist_hook;
	set_join_pathlist_hook = join_paths;
	prev_upper_paths = create_upper_paths_hook;
	create_upper_paths_hook = upper_paths;
}
