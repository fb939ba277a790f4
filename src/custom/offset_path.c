/*-------------------------------------------------------------------------
 *
 * offset_path.c
 *	  Paths of GpudsOffset, in the place of core's Limit above an index scan.
 *
 *	Custom Scan (GpudsOffset)
 *	  -> Index Scan
 *
 * The query must be one of rows of a table in the index's order, all conditions of which are exact conditions
 * of the index scan: rows that are skipped are counted by their entries.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

#include "custom/custom.h"
#include "index/index.h"
#include "reader/reader.h"

/* What it takes to begin a count, in units of cpu_operator_cost. */
#define BEGIN_OPERATORS 400

/* Are rows of one table all that a query wants, in an order, and not locked? */
static bool
is_page_of_table(const PlannerInfo *root)
{
	const Query *parse = root->parse;

	return parse->commandType == CMD_SELECT && parse->limitOffset != NULL &&
		   parse->limitOption == LIMIT_OPTION_COUNT && parse->sortClause != NIL && parse->rowMarks == NIL &&
		   parse->setOperations == NULL && parse->distinctClause == NIL && parse->groupClause == NIL &&
		   parse->groupingSets == NIL && parse->havingQual == NULL && !parse->hasAggs &&
		   !parse->hasWindowFuncs && !parse->hasTargetSRFs && root->placeholder_list == NIL;
}

/*
 * Does an expression have a part that is one of a list?  Core takes what a custom scan's own expressions have
 * in common with its rows from its row, as it does above other nodes.  But OFFSET and LIMIT are evaluated
 * before there is a row.  Constants are left alone.
 */
static bool
has_one_of(Node *node, List *exprs)
{
	if (node == NULL || IsA(node, Const))
		return false;
	return list_member(exprs, node) || expression_tree_walker(node, has_one_of, exprs);
}

/* Does an expression call volatile functions, or a subquery in it, which core does not look into? */
static bool
calls_volatile(Node *node, PlannerGlobal *glob)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
	{
		const PlannerInfo *sub = list_nth(glob->subroots, ((const SubPlan *) node)->plan_id - 1);

		/* What does not depend on its rows is not in it anymore. */
		if (calls_volatile((Node *) sub->parse, glob) || calls_volatile((Node *) sub->init_plans, glob))
			return true;
	}
	if (IsA(node, Query))
		return contain_volatile_functions(node) || query_tree_walker((Query *) node, calls_volatile, glob, 0);
	return expression_tree_walker(node, calls_volatile, glob);
}

static Plan *
plan_offset(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	const Plan *child = linitial(custom_plans);

	/* A row of the node is one of the scan below. */
	scan->methods = &gpuds_offset_methods;
	scan->flags = path->flags;
	scan->scan.plan.targetlist = tlist;
	scan->custom_plans = custom_plans;
	scan->custom_scan_tlist = copyObject(child->targetlist);
	scan->custom_exprs = list_copy(path->custom_private);
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsOffset",
	.PlanCustomPath = plan_offset,
};

/* How many rows are skipped, about; what the planner does not know, it takes for a tenth of them all. */
static double
skipped_rows(const IndexPath *child, const FinalPathExtraData *extra)
{
	const double rows = child->path.rows;

	return extra->offset_est < 0 ? clamp_row_est(rows * 0.10) : Min((double) extra->offset_est, rows);
}

/* Sets rows and costs: what core skips has core's price, and what is counted that of a count. */
static void
set_cost(PlannerInfo *root, IndexPath *child, const FinalPathExtraData *extra, Path *path)
{
	const double rows = Max(child->path.rows, 1);
	const double skipped = skipped_rows(child, extra);
	const double of_core = Min(skipped, GPUDS_SKIP_FEW);
	const Cost of_row = (child->path.total_cost - child->path.startup_cost) / rows;
	const Cost of_count = (gpuds_covering_count_cost(root, child) - child->path.startup_cost) / rows;
	Cost startup = child->path.startup_cost;
	Cost total = child->path.total_cost;

	path->rows = child->path.rows;
	adjust_limit_rows_costs(&path->rows, &startup, &total, extra->offset_est, extra->count_est);
	path->startup_cost = child->path.startup_cost + of_core * of_row + (skipped - of_core) * of_count +
						 BEGIN_OPERATORS * cpu_operator_cost;
	path->total_cost = path->startup_cost + path->rows * of_row;
	GpudsAddDisabledNodes(path, &child->path);
}

/* The path by an index's scan that gives the rows in the query's order. */
static CustomPath *
make_path(PlannerInfo *root, RelOptInfo *rel, IndexPath *child, RelOptInfo *output,
		  const FinalPathExtraData *extra)
{
	CustomPath *path = makeNode(CustomPath);
	PathTarget *target = root->upper_targets[UPPERREL_FINAL];
	Path *below = apply_projection_to_path(root, rel, &child->path, target);

	Assert(below == &child->path);
	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = target;
	path->path.pathkeys = child->path.pathkeys;
	set_cost(root, child, extra, &path->path);
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	path->custom_paths = list_make1(below);
	path->custom_private = list_make2(root->parse->limitOffset, root->parse->limitCount);
	path->methods = &path_methods;
	return path;
}

/*
 * Adds paths to the final relation output of a query that skips rows of a table in an index's order.
 * Functions that are volatile are to be called for rows that are skipped, too.
 */
void
gpuds_offset_paths(PlannerInfo *root, RelOptInfo *output, const FinalPathExtraData *extra)
{
	List *exprs;
	RelOptInfo *rel;
	int relid;
	ListCell *lc;

	if (!is_page_of_table(root) || (extra->offset_est >= 0 && extra->offset_est <= GPUDS_SKIP_FEW) ||
		!enable_indexonlyscan || !bms_get_singleton_member(root->all_baserels, &relid))
		return;
	/* A set operation has no such target. */
	exprs = root->upper_targets[UPPERREL_FINAL]->exprs;
	if (contain_volatile_functions((Node *) exprs) || calls_volatile((Node *) exprs, root->glob) ||
		has_one_of(root->parse->limitOffset, exprs) || has_one_of(root->parse->limitCount, exprs))
		return;
	rel = find_base_rel(root, relid);
	if (!gpuds_covering_is_table(root, rel))
		return;
	foreach (lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		IndexPath *child;

		if (!gpuds_covering_is_ours(index) || !gpuds_index_orders(index))
			continue;
		child = gpuds_covering_path_of(root, rel, index, root->sort_pathkeys);
		if (child != NULL && gpuds_covering_filter(child) == NIL)
			add_path(output, &make_path(root, rel, child, output, extra)->path);
	}
}
