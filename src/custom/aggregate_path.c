/*-------------------------------------------------------------------------
 *
 * aggregate_path.c
 *	  Paths of GpudsAggregate: aggregates of the rows of a table, of which an index has all conditions, all
 *	  arguments, and the groups in its order.
 *
 * Tables with children are aggregate_append.c's.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "am/am.h"
#include "custom/aggregate.h"
#include "custom/aggregate_path.h"
#include "custom/ascending.h"
#include "custom/custom.h"
#include "index/index.h"
#include "key/key.h"

/* Adding up what an entry has in a column, in units of cpu_operator_cost. */
#define AGG_COLUMN_OPERATORS 0.2

/* The column of the table that an expression is; NULL: it is none. */
static const Var *
column_of(const RelOptInfo *rel, const Expr *expr)
{
	const Var *var;

	/* a domain's value, seen as one of the type below */
	while (IsA(expr, RelabelType) &&
		   getBaseType(exprType((const Node *) ((const RelabelType *) expr)->arg)) ==
			   getBaseType(((const RelabelType *) expr)->resulttype))
		expr = ((const RelabelType *) expr)->arg;
	var = (const Var *) expr;
	return IsA(var, Var) && (Index) var->varno == rel->relid && var->varlevelsup == 0 && var->varattno > 0
			   ? var
			   : NULL;
}

/* The index's column that a column of the table is; -1: none.  returned: the index must have its values. */
static int
index_column(const IndexOptInfo *index, const Var *var, bool returned)
{
	for (int i = 0; i < index->ncolumns; i++)
	{
		if (index->indexkeys[i] == var->varattno && (!returned || index->canreturn[i]))
			return i;
	}
	return -1;
}

static bool
is_simple(const Aggref *aggref)
{
	return aggref->aggdistinct == NIL && aggref->aggorder == NIL && aggref->aggfilter == NULL &&
		   aggref->agglevelsup == 0 && aggref->aggsplit == AGGSPLIT_SIMPLE;
}

/* How an aggregate's result comes of a scan; false: it does not. */
static bool
match_aggregate(const GpudsWanted *wanted, const IndexPath *path, const Aggref *aggref,
				GpudsAggregateKind *kind, int *column)
{
	Expr *arg;
	const Var *var;

	*column = -1;
	*kind = GPUDS_COUNT_ROWS;
	if (aggref->aggfnoid == F_COUNT_)
		return true;
	if (list_length(aggref->args) != 1)
		return false;
	arg = linitial_node(TargetEntry, aggref->args)->expr;
	if (aggref->aggfnoid == F_COUNT_ANY && gpuds_covering_not_null(path, arg, wanted->root))
		return true;
	var = column_of(wanted->rel, arg);
	if (var == NULL)
		return false;
	if (aggref->aggfnoid == F_COUNT_ANY)
		*kind = GPUDS_COUNT;
	else if (!gpuds_aggregate_kind(aggref->aggfnoid, getBaseType(var->vartype), kind) ||
			 !gpuds_key_can_aggregate(var->vartype))
		return false;
	if (DO_AGGSPLIT_SKIPFINAL(aggref->aggsplit))
		*kind = gpuds_aggregate_part(*kind, getBaseType(var->vartype));
	*column = index_column(path->indexinfo, var, *kind != GPUDS_COUNT);
	return *column >= 0;
}

/*
 * The same for a column that is wanted, which must be one that rows are grouped by, and not by a
 * function of it.
 */
static bool
match_column(const GpudsWanted *wanted, const IndexPath *path, const Var *var, int *column)
{
	*column = -1;
	if (wanted->bucket != NULL || !list_member(wanted->groups, var))
		return false;
	*column = index_column(path->indexinfo, var, true);
	return *column >= 0;
}

/* The same for what rows are grouped by, if that is a function of a column. */
static bool
match_bucket(const GpudsWanted *wanted, const IndexPath *path, GpudsAggregateKind *kind, int *column)
{
	*kind = GPUDS_GROUP_BUCKET;
	*column = -1;
	if (wanted->bucket == NULL || wanted->groups == NIL)
		return false;
	*column = index_column(path->indexinfo, linitial(wanted->groups), true);
	return *column >= 0 && *column < path->indexinfo->nkeycolumns && !path->indexinfo->reverse_sort[*column];
}

/* The scan's columns as AGGREGATE_KINDS and AGGREGATE_COLUMNS; false: it has not all that is wanted. */
static bool
match(const GpudsWanted *wanted, const IndexPath *path, List **kinds, List **columns)
{
	ListCell *lc;

	*kinds = *columns = NIL;
	/* Rows of a group follow each other only if there is an order. */
	if (wanted->groups != NIL && !gpuds_index_orders(path->indexinfo))
		return false;
	foreach (lc, wanted->exprs)
	{
		const Node *expr = lfirst(lc);
		GpudsAggregateKind kind = GPUDS_GROUP_COLUMN;
		int column;
		bool matches;

		if (IsA(expr, Aggref))
			matches = match_aggregate(wanted, path, (const Aggref *) expr, &kind, &column);
		else if (IsA(expr, Var))
			matches = match_column(wanted, path, (const Var *) expr, &column);
		else
			matches = match_bucket(wanted, path, &kind, &column);
		if (!matches)
			return false;
		*kinds = lappend_int(*kinds, kind);
		*columns = lappend_int(*columns, column);
	}
	return true;
}

/* Do all rows of a scan have one value in a column of the key? */
static bool
is_constant(const IndexPath *path, int column)
{
	ListCell *lc;

	foreach (lc, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, lc);
		const OpExpr *condition = (const OpExpr *) clause->rinfo->clause;

		if (clause->indexcol == column && IsA(condition, OpExpr) && list_length(clause->indexquals) == 1 &&
			gpuds_index_has_equality(
				path->indexinfo, column,
				((const OpExpr *) linitial_node(RestrictInfo, clause->indexquals)->clause)->opno))
			return true;
	}
	return false;
}

/* The place in wanted->groups of a column of the key; -1: rows are not grouped by it. */
static int
group_of_column(const GpudsWanted *wanted, const IndexOptInfo *index, int column)
{
	ListCell *lc;

	foreach (lc, wanted->groups)
	{
		if (((const Var *) lfirst(lc))->varattno == index->indexkeys[column])
			return foreach_current_index(lc);
	}
	return -1;
}

/*
 * How many leading columns of the index make rows a group: those that rows are grouped by, and among
 * them such as are the same in all rows.  -1: groups' entries do not follow each other.
 */
static int
group_prefix(const GpudsWanted *wanted, const IndexPath *path)
{
	const IndexOptInfo *index = path->indexinfo;
	Bitmapset *found = NULL;

	for (int i = 0; i < index->nkeycolumns; i++)
	{
		int group;

		if (bms_num_members(found) == list_length(wanted->groups))
			return i;
		group = group_of_column(wanted, index, i);
		if (group >= 0)
		{
			if (!index->canreturn[i] ||
				(wanted->bucket == NULL &&
				 !op_in_opfamily(list_nth_oid(wanted->operators, group), index->opfamily[i])))
				return -1;
			found = bms_add_member(found, group);
		}
		else if (!is_constant(path, i))
			return -1;
	}
	return bms_num_members(found) == list_length(wanted->groups) ? index->nkeycolumns : -1;
}

/* Has a scan all that is wanted? */
static bool
suits(const IndexPath *path, void *arg)
{
	const GpudsWanted *wanted = arg;
	List *kinds;
	List *columns;

	return match(wanted, path, &kinds, &columns) &&
		   (wanted->groups == NIL || group_prefix(wanted, path) >= 0);
}

/* Is a group's operator the equality that bucket.c compares the values of its function by? */
static bool
is_default_equality(const SortGroupClause *clause, const Expr *expr)
{
	return clause->eqop == lookup_type_cache(exprType((const Node *) expr), TYPECACHE_EQ_OPR)->eq_opr;
}

/* What a group's clause is of the table, which may be a child of the one that the query names. */
static Expr *
group_expr(const GpudsWanted *wanted, SortGroupClause *clause)
{
	Node *expr = get_sortgroupclause_expr(clause, wanted->root->processed_tlist);
	RelOptInfo *rel = wanted->rel;

	if (rel->reloptkind != RELOPT_OTHER_MEMBER_REL)
		return (Expr *) expr;
	return (Expr *) GpudsTranslate(wanted->root, expr, rel,
								   find_base_rel(wanted->root, bms_singleton_member(rel->top_parent_relids)));
}

/* What rows are grouped by; false: it is something else than columns of the table, or a function of one. */
static bool
collect_groups(GpudsWanted *wanted)
{
	const Query *parse = wanted->root->parse;
	ListCell *lc;

	foreach (lc, parse->groupClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Expr *expr = group_expr(wanted, clause);
		const Var *column = IsA(expr, Var) ? (const Var *) expr : gpuds_ascending_column(expr);

		if (column == NULL || column_of(wanted->rel, (const Expr *) column) == NULL)
			return false;
		if (!IsA(expr, Var))
		{
			if (list_length(parse->groupClause) > 1 || !is_default_equality(clause, expr))
				return false;
			wanted->bucket = expr;
			wanted->exprs = list_make1(expr);
		}
		if (list_member(wanted->groups, column))
			continue;
		wanted->groups = lappend(wanted->groups, (void *) column);
		wanted->operators = lappend_oid(wanted->operators, clause->eqop);
	}
	return true;
}

static bool
collect_expr(Node *node, void *arg)
{
	GpudsWanted *wanted = arg;

	if (node == NULL)
		return false;
	if (wanted->bucket && equal(node, wanted->bucket))
		return false;
	if (IsA(node, Aggref) || IsA(node, Var))
	{
		if (IsA(node, Aggref) && !is_simple((const Aggref *) node))
			return true;
		wanted->exprs = list_append_unique(wanted->exprs, node);
		return false;
	}
	if (IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect_expr, arg);
}

/* Finds out what the grouped relation wants of wanted->rel; false: something that no node of ours has. */
bool
gpuds_wanted_collect(GpudsWanted *wanted, const RelOptInfo *output, Node *having)
{
	return collect_groups(wanted) && !collect_expr((Node *) output->reltarget->exprs, wanted) &&
		   !collect_expr(having, wanted) && wanted->exprs != NIL;
}

static Plan *
plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell *lc;

	scan->methods = &gpuds_aggregate_methods;
	scan->flags = path->flags;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = lsecond(path->custom_private);
	scan->custom_plans = custom_plans;
	scan->custom_private = lthird(path->custom_private);
	foreach (lc, (List *) linitial(path->custom_private))
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1, NULL,
														  false));
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsAggregate",
	.PlanCustomPath = plan_aggregate,
};

/* Sets rows and costs of a path whose scan below has been found. */
static void
set_cost(const GpudsWanted *wanted, IndexPath *child, Path *path, List *columns)
{
	Cost count_cost = gpuds_covering_count_cost(wanted->root, child);
	const int side_bytes = gpuds_scan_side_bytes(child->indexinfo, columns);
	int nagg = 0;
	ListCell *lc;

	foreach (lc, columns)
		nagg += lfirst_int(lc) >= 0;
	count_cost += nagg * AGG_COLUMN_OPERATORS * cpu_operator_cost * child->path.rows;
	if (side_bytes > 0)
		count_cost += gpuds_scan_side_cost(wanted->root, child->indexinfo, side_bytes, child->path.rows,
										   child->path.rows *
											   gpuds_covering_unmapped(child->indexinfo, child->path.parent));
	path->rows = 1;
	path->startup_cost = count_cost;
	if (wanted->groups != NIL)
	{
		List *groups = wanted->bucket ? list_make1(wanted->bucket) : wanted->groups;

		path->rows = estimate_num_groups(wanted->root, groups, child->path.rows, NULL, NULL);
		/*
		 * The first group is there when its rows have been added up; but a device adds up all buckets
		 * at once.
		 */
		if (wanted->bucket == NULL)
			path->startup_cost = child->path.startup_cost +
								 (count_cost - child->path.startup_cost) / Max(path->rows, 1);
	}
	path->total_cost = count_cost + path->rows * cpu_tuple_cost;
	GpudsAddDisabledNodes(path, &child->path);
}

static CustomPath *
make_path(const GpudsWanted *wanted, IndexPath *child, RelOptInfo *parent, PathTarget *target, Node *having)
{
	CustomPath *path = makeNode(CustomPath);
	List *kinds;
	List *columns;
	int groups = wanted->groups == NIL ? -1 : group_prefix(wanted, child);

	(void) match(wanted, child, &kinds, &columns);
	path->path.pathtype = T_CustomScan;
	path->path.parent = parent;
	path->path.pathtarget = target;
	set_cost(wanted, child, &path->path, columns);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(child);
	path->custom_private = list_make3(wanted->exprs, having,
									  list_make3(kinds, columns, list_make1_int(groups)));
	path->methods = &path_methods;
	return path;
}

/* A path of a relation for what is wanted of a table; NULL: no index has it. */
CustomPath *
gpuds_wanted_path(const GpudsWanted *wanted, RelOptInfo *parent, PathTarget *target, Node *having)
{
	IndexPath *child = gpuds_covering_path(wanted->root, wanted->rel, suits, (void *) wanted);

	return child ? make_path(wanted, child, parent, target, having) : NULL;
}

/*
 * Adds a path to the grouped relation output if input is a table and an index has all that is wanted of
 * its rows.
 */
void
gpuds_aggregate_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
					  const GroupPathExtraData *extra)
{
	GpudsWanted wanted = { .root = root, .rel = input };
	CustomPath *path;

	if (root->parse->groupingSets != NIL || extra->patype == PARTITIONWISE_AGGREGATE_PARTIAL ||
		!gpuds_covering_is_table(root, input))
		return;
	if (!gpuds_wanted_collect(&wanted, output, extra->havingQual))
		return;
	path = gpuds_wanted_path(&wanted, output, output->reltarget, extra->havingQual);
	if (path != NULL)
		add_path(output, &path->path);
}
