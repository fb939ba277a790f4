/*-------------------------------------------------------------------------
 *
 * offset_path.c
 *	  Paths of GpudsOffset, in the place of core's Limit above an index scan.
 *
 *	Custom Scan (GpudsOffset)
 *	  -> Index Scan
 *
 * The query must be one of rows of a table in the index's order, all conditions of which are exact conditions
 * of the index scan: rows that are skipped are counted by their entries.  Of a table with children there is
 * an Append of an index scan for each:
 *
 *	Result, if expressions are wanted
 *	  -> Custom Scan (GpudsOffset)
 *	       -> Append
 *	            -> Index Scan of a child
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"

#include "custom/aggregate_path.h"
#include "custom/child_rows.h"
#include "custom/custom.h"
#include "index/index.h"
#include "reader/reader.h"

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
	scan->custom_exprs = list_make2(root->parse->limitOffset, root->parse->limitCount);
	scan->custom_private = path->custom_private;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsOffset",
	.PlanCustomPath = plan_offset,
};

/* How many rows are skipped, about; what the planner does not know, it takes for a tenth of them all. */
static double
skipped_rows(const Path *below, const FinalPathExtraData *extra)
{
	return extra->offset_est < 0 ? clamp_row_est(below->rows * 0.10)
								 : Min((double) extra->offset_est, below->rows);
}

/* Sets rows and costs: what core skips has core's price, and what is counted that of a count. */
static void
set_cost(PlannerInfo *root, const GpudsOrderedPath *ordered, const FinalPathExtraData *extra, Path *path)
{
	const Path *below = ordered->path;
	const double rows = Max(below->rows, 1);
	const double skipped = skipped_rows(below, extra);
	const double of_core = Min(skipped, (double) gpuds_ordered_few_rows(ordered));
	const Cost of_row = (below->total_cost - below->startup_cost) / rows;
	const Cost of_count = Max(gpuds_ordered_count_cost(root, ordered) - below->startup_cost, 0) / rows;
	Cost startup = below->startup_cost;
	Cost total = below->total_cost;

	path->rows = below->rows;
	adjust_limit_rows_costs(&path->rows, &startup, &total, extra->offset_est, extra->count_est);
	path->startup_cost = below->startup_cost + of_core * of_row + (skipped - of_core) * of_count +
						 gpuds_ordered_begin_cost(ordered);
	path->total_cost = path->startup_cost + path->rows * of_row;
	GpudsAddDisabledNodes(path, below);
}

/* The path above one that gives rows in the query's order. */
static CustomPath *
make_path(PlannerInfo *root, const GpudsOrderedPath *ordered, RelOptInfo *output,
		  const FinalPathExtraData *extra)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = ordered->path->pathtarget;
	path->path.pathkeys = root->sort_pathkeys;
	set_cost(root, ordered, extra, &path->path);
	path->custom_paths = list_make1(ordered->path);
	path->custom_private = ordered->merging;
	path->methods = &path_methods;
	return path;
}

/* Adds the path by an index of a table, if that has the rows. */
static void
add_path_of_index(PlannerInfo *root, RelOptInfo *rel, const IndexOptInfo *index, RelOptInfo *output,
				  const FinalPathExtraData *extra)
{
	IndexPath *scan = gpuds_covering_path_of(root, rel, index, root->sort_pathkeys);
	GpudsOrderedPath ordered = { 0 };
	CustomPath *path;

	if (scan == NULL || gpuds_covering_filter(scan) != NIL)
		return;
	ordered.path = apply_projection_to_path(root, rel, &scan->path, root->upper_targets[UPPERREL_FINAL]);
	Assert(ordered.path == &scan->path);
	ordered.scans = list_make1(scan);
	path = make_path(root, &ordered, output, extra);
	path->path.pathkeys = scan->path.pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
	add_path(output, &path->path);
}

/* How many of an index's first columns give the query's order, if a scan in some direction has it. */
static int
columns_of_order(PlannerInfo *root, const IndexOptInfo *index, ScanDirection direction)
{
	IndexOptInfo first = *index;

	for (first.nkeycolumns = 1; first.nkeycolumns < index->nkeycolumns; first.nkeycolumns++)
	{
		if (pathkeys_contained_in(root->sort_pathkeys, build_index_pathkeys(root, &first, direction)))
			break;
	}
	return first.nkeycolumns;
}

/* What a child's scan is to give. */
typedef struct ChildTarget
{
	RelOptInfo *parent;
	PathTarget *target;
} ChildTarget;

/* A child's scan by an index in the query's order; NULL: it has none. */
static IndexPath *
scan_of_child(PlannerInfo *root, RelOptInfo *child, IndexOptInfo *index, void *arg, int *ncolumns)
{
	const ChildTarget *of = arg;
	PathTarget *target = copy_pathtarget(of->target);
	IndexPath *path;

	target->exprs = (List *) GpudsTranslate(root, (Node *) target->exprs, child, of->parent);
	path = gpuds_covering_path_in_order(root, child, index, root->sort_pathkeys, NIL, target);
	if (path == NULL || gpuds_covering_filter(path) != NIL)
		return NULL;
	*ncolumns = columns_of_order(root, index, path->indexscandir);
	return path;
}

/* Adds the path of a table with children, if each has an index that has its rows in the query's order. */
static void
add_path_of_children(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *output, const FinalPathExtraData *extra)
{
	PathTarget *target = root->upper_targets[UPPERREL_FINAL];
	ChildTarget of = { .parent = rel, .target = create_empty_pathtarget() };
	GpudsOrderedPath ordered;
	CustomPath *path;

	add_new_columns_to_pathtarget(of.target, pull_var_clause((Node *) target->exprs, 0));
	set_pathtarget_cost_width(root, of.target);
	if (root->sort_pathkeys == NIL ||
		!gpuds_children_in_order(root, rel, root->sort_pathkeys, of.target, scan_of_child, &of, &ordered))
		return;
	if (extra->offset_est >= 0 && extra->offset_est <= gpuds_ordered_few_rows(&ordered))
		return;
	path = make_path(root, &ordered, output, extra);
	add_path(output, (Path *) create_projection_path(root, output, &path->path, target));
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
	if (gpuds_aggregate_is_parent(root, rel))
		add_path_of_children(root, rel, output, extra);
	if (!gpuds_covering_is_table(root, rel))
		return;
	foreach (lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (gpuds_covering_is_in_order(index))
			add_path_of_index(root, rel, index, output, extra);
	}
}
