/*-------------------------------------------------------------------------
 *
 * aggregate_path.c
 *	  Paths of GpudsAggregate: counts of the rows of a table that an index has all conditions of.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/fmgroids.h"

#include "custom/custom.h"

/* Does an aggregate count all rows of a scan? */
static bool
counts_rows(PlannerInfo *root, const IndexPath *path, const Aggref *aggref)
{
	if (aggref->aggdistinct != NIL || aggref->aggorder != NIL || aggref->aggfilter != NULL ||
		aggref->agglevelsup != 0 || aggref->aggsplit != AGGSPLIT_SIMPLE)
		return false;
	if (aggref->aggfnoid == F_COUNT_)
		return true;
	return aggref->aggfnoid == F_COUNT_ANY &&
		   (path == NULL ||
			gpuds_covering_not_null(path, ((TargetEntry *) linitial(aggref->args))->expr, root));
}

/* Are there aggregates, and do all of them count rows, of a scan if there is one yet? */
static bool
all_count_rows(PlannerInfo *root, const IndexPath *path, List *aggregates)
{
	ListCell *lc;

	foreach (lc, aggregates)
	{
		const Aggref *aggref = (const Aggref *) lfirst(lc);

		if (!IsA(aggref, Aggref) || !counts_rows(root, path, aggref))
			return false;
	}
	return aggregates != NIL;
}

static Plan *
plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	List *aggregates = linitial(path->custom_private);
	ListCell *lc;

	scan->methods = &gpuds_aggregate_methods;
	scan->flags = path->flags;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = lsecond(path->custom_private);
	scan->custom_plans = custom_plans;
	foreach (lc, aggregates)
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1, NULL,
														  false));
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsAggregate",
	.PlanCustomPath = plan_aggregate,
};

/*
 * Adds a path to the grouped relation output if all that is wanted are counts of input's rows, in one group.
 */
void
gpuds_aggregate_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
					  const GroupPathExtraData *extra)
{
	const Query *parse = root->parse;
	CustomPath *path;
	IndexPath *below;
	List *aggregates;

	if (parse->groupClause != NIL || parse->groupingSets != NIL || !parse->hasAggs ||
		extra->patype == PARTITIONWISE_AGGREGATE_PARTIAL)
		return;
	aggregates = list_concat(pull_var_clause((Node *) output->reltarget->exprs, PVC_INCLUDE_AGGREGATES),
							 pull_var_clause(extra->havingQual, PVC_INCLUDE_AGGREGATES));
	/* What costs little to see comes first. */
	if (!all_count_rows(root, NULL, aggregates) || (below = gpuds_covering_path(root, input)) == NULL ||
		!all_count_rows(root, below, aggregates))
		return;

	path = makeNode(CustomPath);
	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	path->path.rows = 1;
	path->path.startup_cost = gpuds_covering_count_cost(root, below);
	path->path.total_cost = path->path.startup_cost + cpu_tuple_cost;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(below);
	path->custom_private = list_make2(aggregates, extra->havingQual);
	path->methods = &path_methods;
	add_path(output, &path->path);
}
