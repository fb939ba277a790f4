/*-------------------------------------------------------------------------
 *
 * nearest_path.c
 *	  Paths of GpudsNearest: rows of a table by the distances of their points from one.
 *
 * A query's first order must be by the distance of an index's first column, a point, from an expression
 * without the table's columns, ascending, with NULLs at the end.  Core sorts what has the same distance, if
 * there is a further order, and merges the rows of a table's children, which have paths of their own.
 *
 * All conditions of the table are quals of the node, in core's order.  The distances of rows that a user may
 * not see raise no errors.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "nodes/extensible.h"
#include "optimizer/appendinfo.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "am/am.h"
#include "custom/custom.h"
#include "custom/nearest.h"
#include "index/index.h"

/* In units of cpu_operator_cost: an entry, whose distance is computed and compared. */
#define ENTRY_OPERATORS 4

/* Requests, and entries that are looked at for each point that is wanted, before the first row. */
#define FIRST_REQUESTS 3
#define FIRST_ENTRIES 8

/* What a path knows. */
typedef struct NearestPlan
{
	IndexOptInfo *index;
	Node *center;
	Expr *distance;
	double wanted;
} NearestPlan;

static Plan *
plan_nearest(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			 List *custom_plans)
{
	const NearestPlan *plan = linitial(path->custom_private);
	CustomScan *scan = makeNode(CustomScan);

	scan->methods = &gpuds_nearest_methods;
	scan->flags = path->flags;
	scan->scan.scanrelid = rel->relid;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->custom_exprs = list_make2(plan->center, plan->distance);
	scan->custom_private = list_make2(list_make1_oid(plan->index->indexoid),
									  list_make1_int((int) plan->wanted));
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsNearest",
	.PlanCustomPath = plan_nearest,
};

/* Is an order that of numbers that ascend, with NULLs at the end? */
static bool
ascends(const PathKey *key)
{
	return GpudsPathKeyAscends(key) && !key->pk_nulls_first &&
		   get_opfamily_member(key->pk_opfamily, FLOAT8OID, FLOAT8OID, BTLessStrategyNumber) ==
			   Float8LessOperator;
}

/* The table, or the parent that the query names of it, whose expressions orders have. */
static RelOptInfo *
named_of(PlannerInfo *root, RelOptInfo *rel)
{
	int relid;

	if (rel->reloptkind != RELOPT_OTHER_MEMBER_REL)
		return rel;
	return bms_get_singleton_member(rel->top_parent_relids, &relid) ? find_base_rel(root, relid) : NULL;
}

/* The expression that the first order of the query is of, as it is of the table's columns; or NULL. */
static Expr *
ordered_by(PlannerInfo *root, RelOptInfo *rel, const PathKey *key)
{
	RelOptInfo *named = named_of(root, rel);
	ListCell *lc;

	if (named == NULL || key->pk_eclass->ec_has_volatile)
		return NULL;
	foreach (lc, key->pk_eclass->ec_members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);

		if (member->em_is_child || !bms_equal(member->em_relids, named->relids))
			continue;
		return named == rel ? member->em_expr
							: (Expr *) GpudsTranslate(root, (Node *) member->em_expr, rel, named);
	}
	return NULL;
}

/* What an index's first column has its distance from, if that is what a distance is; or NULL. */
static Node *
center_of(PlannerInfo *root, const Expr *distance, IndexOptInfo *index)
{
	const OpExpr *op = (const OpExpr *) distance;

	if (op == NULL || !IsA(op, OpExpr) || get_opcode(op->opno) != F_POINT_DISTANCE)
		return NULL;
	for (int i = 0; i < 2; i++)
	{
		Node *center = list_nth(op->args, 1 - i);

		if (match_index_to_operand(list_nth(op->args, i), 0, index) &&
			bms_is_empty(pull_varnos(root, center)) && !contain_volatile_functions(center) &&
			!contain_subplans(center))
			return center;
	}
	return NULL;
}

/* How many entries are likely to be wanted for the rows that the query limits itself to. */
static double
likely_wanted(const PlannerInfo *root, const RelOptInfo *rel)
{
	double rows = GPUDS_NEAREST_UNKNOWN;

	if (root->limit_tuples >= 0)
		rows = root->limit_tuples;
	else if (root->tuple_fraction >= 1)
		rows = root->tuple_fraction;
	rows *= Max(rel->tuples, 1) / Max(rel->rows, 1);
	return Max(GPUDS_NEAREST_FEW, Min(rows, GPUDS_NEAREST_MOST));
}

/* Sets what a path costs if all rows are wanted; false: the index would be read from its journal. */
static bool
set_cost(PlannerInfo *root, CustomPath *path, const NearestPlan *plan)
{
	const RelOptInfo *rel = path->path.parent;
	const PathTarget *target = path->path.pathtarget;
	const double entries = Max(plan->index->tuples, 1);
	const double pages = index_pages_fetched(entries, rel->pages, plan->index->pages, root);
	const Cost start = gpuds_scan_start_cost(plan->index, plan->wanted);
	QualCost quals;

	if (start < 0)
		return false;
	cost_qual_eval(&quals, rel->baserestrictinfo, root);
	path->path.rows = rel->rows;
	path->path.startup_cost = FIRST_REQUESTS * start + quals.startup + target->cost.startup +
							  FIRST_ENTRIES * plan->wanted * ENTRY_OPERATORS * cpu_operator_cost;
	path->path.total_cost = path->path.startup_cost + pages * random_page_cost +
							entries * (cpu_tuple_cost + quals.per_tuple +
									   (ENTRY_OPERATORS + 2 * log2(entries + 1)) * cpu_operator_cost) +
							rel->rows * target->cost.per_tuple;
	return true;
}

static void
add_path_of(PlannerInfo *root, RelOptInfo *rel, PathKey *key, const NearestPlan *of)
{
	CustomPath *path = makeNode(CustomPath);
	NearestPlan *plan = palloc(sizeof(NearestPlan));

	*plan = *of;
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.parallel_safe = rel->consider_parallel && is_parallel_safe(root, plan->center);
	path->path.pathkeys = list_make1(key);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_private = list_make1(plan);
	path->methods = &path_methods;
	if (set_cost(root, path, plan))
		add_path(rel, &path->path);
}

/*
 * Adds paths to a table whose rows the query wants in the order of the distances of points: one for each
 * index of them.
 */
void
gpuds_nearest_paths(PlannerInfo *root, RelOptInfo *rel)
{
	NearestPlan plan = { .wanted = likely_wanted(root, rel) };
	PathKey *key;
	ListCell *lc;

	if (!enable_indexscan || root->query_pathkeys == NIL || rel->indexlist == NIL ||
		!gpuds_covering_is_table(root, rel) || gpuds_is_current_of(rel))
		return;
	key = linitial_node(PathKey, root->query_pathkeys);
	if (!ascends(key) || (plan.distance = ordered_by(root, rel, key)) == NULL)
		return;
	foreach (lc, rel->indexlist)
	{
		plan.index = lfirst_node(IndexOptInfo, lc);
		if (!gpuds_covering_is_ours(plan.index) || !gpuds_index_orders(plan.index) ||
			plan.index->opcintype[0] != POINTOID)
			continue;
		plan.center = center_of(root, plan.distance, plan.index);
		if (plan.center != NULL)
			add_path_of(root, rel, key, &plan);
	}
}
