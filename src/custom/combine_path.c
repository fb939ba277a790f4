/*-------------------------------------------------------------------------
 *
 * combine_path.c
 *	  Paths of GpudsCombine: aggregates that core would not plan as they are planned here.
 *
 * Core's nodes below it aggregate.  Above it, their columns are the aggregates that the query has.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

#include "custom/combine.h"
#include "custom/custom.h"

/*
 * Core's executor puts parts of aggregates together for grouping sets as well, but core makes no such plans.
 * Aggregates will be set up for that when core sets references of the plan, as it looks at the same field.
 */
static void
finalize(Plan *plan)
{
	Agg *agg = castNode(Agg, plan);
	ListCell *lc;

	agg->aggsplit = AGGSPLIT_FINAL_DESERIAL;
	foreach (lc, agg->chain)
		lfirst_node(Agg, lc)->aggsplit = AGGSPLIT_FINAL_DESERIAL;
}

static Plan *
plan_combine(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			 List *custom_plans)
{
	const bool finalizes = linitial_int(lfourth(path->custom_private));

	if (finalizes)
		finalize(linitial(custom_plans));
	return &gpuds_plan_of_path(root, path, &gpuds_combine_methods, tlist, custom_plans)->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsCombine",
	.PlanCustomPath = plan_combine,
};

/* The costs are those of what is below, and of rows. */
static void
set_cost(const GpudsCombined *combined, Path *path)
{
	ListCell *lc;

	foreach (lc, combined->paths)
	{
		const Path *below = lfirst(lc);

		path->rows = Max(path->rows, below->rows);
		path->startup_cost += below->startup_cost;
		path->total_cost += below->total_cost;
		GpudsAddDisabledNodes(path, below);
	}
	path->total_cost += path->rows * list_length(combined->paths) * cpu_operator_cost;
}

/* A path of the grouped relation output that has the columns of others. */
Path *
gpuds_combine_path(const GpudsCombined *combined, RelOptInfo *output)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	set_cost(combined, &path->path);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = combined->paths;
	path->custom_private = list_make4(combined->exprs, combined->having,
									  list_make2(combined->plans, combined->columns),
									  list_make1_int(combined->finalize));
	path->methods = &path_methods;
	return &path->path;
}
