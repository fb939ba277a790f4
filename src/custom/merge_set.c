/*-------------------------------------------------------------------------
 *
 * merge_set.c
 *	  Paths of GpudsMerge for INTERSECT and EXCEPT: of two queries that select columns of a table each, which
 *	  lead an index.
 *
 * Core plans each of the two as a subquery.  What is below the node are scans of the subqueries, which it
 * never runs: it takes the groups of the GpudsAggregates in them.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "utils/typcache.h"

#include "custom/custom.h"
#include "custom/merge_path.h"

/* The operation of a tree whose two sides are these two subqueries; NULL: there is none. */
static SetOperationStmt *
find_operation(Node *node, Relids relids)
{
	SetOperationStmt *op = (SetOperationStmt *) node;
	SetOperationStmt *found;

	if (node == NULL || !IsA(op, SetOperationStmt))
		return NULL;
	if (IsA(op->larg, RangeTblRef) && IsA(op->rarg, RangeTblRef))
	{
		const int left = castNode(RangeTblRef, op->larg)->rtindex;
		const int right = castNode(RangeTblRef, op->rarg)->rtindex;

		return bms_num_members(relids) == 2 && bms_is_member(left, relids) && bms_is_member(right, relids)
				   ? op
				   : NULL;
	}
	found = find_operation(op->larg, relids);
	return found ? found : find_operation(op->rarg, relids);
}

/* The only table of a subquery that does nothing but select rows of it; NULL: it does more. */
static RelOptInfo *
only_table(PlannerInfo *subroot)
{
	const Query *parse = subroot->parse;
	int relid;

	if (parse->commandType != CMD_SELECT || parse->hasAggs || parse->hasWindowFuncs || parse->hasTargetSRFs ||
		parse->groupClause != NIL || parse->groupingSets != NIL || parse->havingQual != NULL ||
		parse->distinctClause != NIL || parse->setOperations != NULL || parse->limitCount != NULL ||
		parse->limitOffset != NULL || parse->rowMarks != NIL || subroot->hasPseudoConstantQuals ||
		!bms_get_singleton_member(subroot->all_baserels, &relid))
		return NULL;
	return find_base_rel(subroot, relid);
}

/*
 * Finds out what a side's rows are compared by; false: not by columns of a table, each of them once, and by
 * their types' equality.
 */
static bool
take_side(GpudsMerge *merge, int side, const SetOperationStmt *op, int rtindex)
{
	GpudsWanted *wanted = &merge->wanted[side];
	PlannerInfo *subroot = find_base_rel(merge->root, rtindex)->subroot;
	ListCell *lc;
	ListCell *lc2;
	ListCell *lc3;

	*wanted = (GpudsWanted){ .root = subroot, .rel = subroot ? only_table(subroot) : NULL };
	if (wanted->rel == NULL || list_length(subroot->processed_tlist) != list_length(op->colTypes) ||
		list_length(op->groupClauses) != list_length(op->colTypes))
		return false;
	forthree(lc, subroot->processed_tlist, lc2, op->colTypes, lc3, op->groupClauses)
	{
		const TargetEntry *entry = lfirst_node(TargetEntry, lc);
		const Oid equality = lookup_type_cache(lfirst_oid(lc2), TYPECACHE_EQ_OPR)->eq_opr;

		if (entry->resjunk || !IsA(entry->expr, Var) ||
			gpuds_wanted_column(wanted->rel, entry->expr) == NULL ||
			list_member(wanted->groups, entry->expr) || exprType((Node *) entry->expr) != lfirst_oid(lc2) ||
			lfirst_node(SortGroupClause, lc3)->eqop != equality)
			return false;
		wanted->groups = lappend(wanted->groups, entry->expr);
		wanted->operators = lappend_oid(wanted->operators, equality);
	}
	wanted->exprs = list_copy(wanted->groups);
	return wanted->groups != NIL;
}

/* Notes what core would compare the columns by, of which both sides have the same types. */
static void
add_equalities(GpudsMerge *merge)
{
	const GpudsWanted *left = &merge->wanted[MERGE_LEFT];
	ListCell *lc;
	ListCell *lc2;

	forboth(lc, left->groups, lc2, left->operators)
		gpuds_merge_add_equality(merge, lfirst(lc), lfirst_oid(lc2));
}

/* The columns of a side, as the query with both has them. */
static List *
columns_of(const GpudsMerge *merge, int side, int rtindex)
{
	List *columns = NIL;
	ListCell *lc;

	foreach (lc, merge->wanted[side].groups)
	{
		const Var *var = lfirst_node(Var, lc);

		columns = lappend(columns, makeVar(rtindex, foreach_current_index(lc) + 1, var->vartype,
										   var->vartypmod, var->varcollid, 0));
	}
	return columns;
}

static GpudsMergeType
type_of(const SetOperationStmt *op)
{
	if (op->op == SETOP_INTERSECT)
		return op->all ? GPUDS_MERGE_INTERSECT_ALL : GPUDS_MERGE_INTERSECT;
	return op->all ? GPUDS_MERGE_EXCEPT_ALL : GPUDS_MERGE_EXCEPT;
}

/*
 * What core's paths of the result give, of the left side's columns: there columns have no table, and before
 * 18 there is a flag for each row, which only core's own nodes look at.  NULL: they give something else.
 */
static PathTarget *
make_target(const GpudsMerge *merge, const PathTarget *wanted)
{
	PathTarget *target = create_empty_pathtarget();
	ListCell *lc;

	foreach (lc, wanted->exprs)
	{
		const Var *var = lfirst(lc);
		const void *expr = var;

		if (IsA(var, Var) && var->varattno <= list_length(merge->exprs))
			expr = list_nth(merge->exprs, var->varattno - 1);
		else if (IsA(var, Var))
			expr = makeNullConst(var->vartype, var->vartypmod, var->varcollid);
		else if (!IsA(var, Const))
			return NULL;
		add_column_to_pathtarget(target, (Expr *) expr, 0);
	}
	return set_pathtarget_cost_width(merge->root, target);
}

/*
 * Adds a path that a side drives to a relation that core has paths of already, which give what is wanted;
 * target: that, of the left side's columns.
 */
static void
add_set_path(const GpudsMerge *merge, int driver, GpudsMergeMethod method, RelOptInfo *output,
			 PathTarget *wanted, PathTarget *target)
{
	CustomPath *path = gpuds_merge_path(merge, driver, method, output->rows, output, target, NIL);
	/* An Append has columns without a table, and disappears when the plan is complete. */
	AppendPath *append = GpudsAppendPath(merge->root, output, list_make1(path));

	append->path.pathtarget = wanted;
	append->path.pathkeys = NIL;
	add_path(output, &append->path);
}

/* Has a side a value in a column, counted from 0, of all of its rows? */
static bool
has_no_null(const GpudsMerge *merge, int side, int column)
{
	const GpudsWanted *wanted = &merge->wanted[side];

	return gpuds_covering_not_null(gpuds_merge_scan(merge, side), list_nth(wanted->groups, column),
								   wanted->root);
}

/* Is there no key with NULLs that both sides have? */
static bool
shares_no_nulls(const GpudsMerge *merge)
{
	for (int i = 0; i < list_length(merge->wanted[MERGE_LEFT].groups); i++)
	{
		if (!has_no_null(merge, MERGE_LEFT, i) && !has_no_null(merge, MERGE_RIGHT, i))
			return false;
	}
	return true;
}

/*
 * May a side drive, and the other one be asked for its keys?  NULLs are equal here, but are not asked for, so
 * the other one must have none where this one may.  A key that the left side has and the right one has not is
 * found by going through the left side only.
 */
static bool
may_drive(const GpudsMerge *merge, int side)
{
	return (side == MERGE_LEFT || !gpuds_merge_keeps_left(merge->type)) && shares_no_nulls(merge) &&
		   gpuds_merge_may_probe(merge, MERGE_SIDES - 1 - side);
}

static void
add_set_paths(const GpudsMerge *merge, RelOptInfo *output)
{
	PathTarget *wanted = ((Path *) linitial(output->pathlist))->pathtarget;
	PathTarget *target = make_target(merge, wanted);

	if (target == NULL)
		return;
	add_set_path(merge, MERGE_LEFT, GPUDS_MERGE_ALL, output, wanted, target);
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		if (may_drive(merge, i))
			add_set_path(merge, i, GPUDS_MERGE_PROBE, output, wanted, target);
	}
}

/* Adds paths to the relation output of a set operation, if both sides are columns that lead an index. */
void
gpuds_merge_set_paths(PlannerInfo *root, RelOptInfo *output)
{
	const SetOperationStmt *op = find_operation(root->parse->setOperations, output->relids);
	GpudsMerge merge = { .root = root, .grouped = true };
	int rtindex[MERGE_SIDES];

	if (op == NULL || op->op == SETOP_UNION || output->pathlist == NIL)
		return;
	merge.type = type_of(op);
	rtindex[MERGE_LEFT] = castNode(RangeTblRef, op->larg)->rtindex;
	rtindex[MERGE_RIGHT] = castNode(RangeTblRef, op->rarg)->rtindex;
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		if (!take_side(&merge, i, op, rtindex[i]))
			return;
	}
	if (!gpuds_merge_find_sides(&merge))
		return;
	add_equalities(&merge);
	for (int i = 0; i < MERGE_SIDES; i++)
		merge.below[i] = (Path *) GpudsSubqueryScanPath(root, find_base_rel(root, rtindex[i]),
														merge.below[i]);
	merge.exprs = columns_of(&merge, MERGE_LEFT, rtindex[MERGE_LEFT]);
	add_set_paths(&merge, output);
}
