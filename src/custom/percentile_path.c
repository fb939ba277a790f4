/*-------------------------------------------------------------------------
 *
 * percentile_path.c
 *	  Paths of GpudsPercentile: percentiles of the rows of a table, by scans in the order that they are of.
 *
 *	Custom Scan (GpudsPercentile)
 *	  -> Index Only Scan, for each order; of a table with children, an Append of one for each child
 *	  -> Custom Scan (GpudsAggregate), if there are other aggregates
 *
 * All conditions of the table must be exact conditions of each scan.  So the ranks of its rows can be
 * counted.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "custom/aggregate.h"
#include "custom/aggregate_path.h"
#include "custom/child_rows.h"
#include "custom/custom.h"
#include "custom/filter.h"
#include "custom/percentile.h"
#include "index/index.h"

/* What it takes to come to the row of a rank, in units of cpu_operator_cost. */
#define RANK_OPERATORS 400

/* Ranks of an aggregate whose fractions the planner does not know. */
#define UNKNOWN_RANKS 2

/* Rows that percentiles are of, ascending by a column. */
typedef struct Order
{
	Expr *column;
	Oid sortop;
	List *exprs; /* that are wanted of its rows: the column, and casts of it */
	GpudsOrderedPath rows;
	bool not_null; /* no row of the table that is asked for is NULL */
} Order;

/* What a query wants of a table, and how it comes of scans. */
typedef struct Percentiles
{
	GpudsWanted wanted; /* the others of its aggregates are what other plans would have, too */
	List *orders;
	List *exprs; /* aggregates and columns of groups, as columns of the scan tuple; and of each: */
	List *kinds;
	List *scans;
	List *columns;
	CustomPath *others;
	List *groups; /* PERCENTILE_GROUPS */
	double nranks;
	bool parent; /* the table has children */
} Percentiles;

/*
 * Casts that never change the order of two values, though they may make them equal; those of numbers with a
 * precision raise no errors.
 */
static bool
keeps_order(Oid function)
{
	switch (function)
	{
		case F_FLOAT8_INT2:
		case F_FLOAT8_INT4:
		case F_FLOAT8_INT8:
		case F_FLOAT8_FLOAT4:
		case F_FLOAT8_NUMERIC:
		case F_INTERVAL_TIME:
			return true;
		default:
			return false;
	}
}

/*
 * The column whose order an expression's rows have, too: it is the column, or a cast of it; NULL: it is
 * none.
 */
static Expr *
ordered_column(const RelOptInfo *rel, Expr *expr)
{
	const FuncExpr *function = (const FuncExpr *) gpuds_below_domain(expr);

	if (IsA(function, FuncExpr) && keeps_order(function->funcid))
		expr = linitial(function->args);
	return gpuds_wanted_column(rel, expr) ? expr : NULL;
}

/* The operators that an expression's type is ordered by. */
static const TypeCacheEntry *
operators_of(const Expr *expr)
{
	return lookup_type_cache(exprType((const Node *) expr), TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
}

/* The column of an order's rows that an expression is. */
static int
column_of_order(Order *order, Expr *expr)
{
	order->exprs = list_append_unique(order->exprs, expr);
	for (int i = 0; i < list_length(order->exprs); i++)
	{
		if (equal(list_nth(order->exprs, i), expr))
			return i;
	}
	pg_unreachable();
}

/* The number of the order of a column's rows; -1: there is none yet. */
static int
find_order(const Percentiles *percentiles, const Expr *column)
{
	ListCell *lc;

	foreach (lc, percentiles->orders)
	{
		if (equal(((const Order *) lfirst(lc))->column, column))
			return foreach_current_index(lc);
	}
	return -1;
}

/* The same of what an aggregate's rows are ordered by; -1: it is no order that an index may have. */
static int
order_of(Percentiles *percentiles, const Aggref *aggref)
{
	Expr *expr = linitial_node(TargetEntry, aggref->args)->expr;
	Expr *column = ordered_column(percentiles->wanted.rel, expr);
	const Oid sortop = linitial_node(SortGroupClause, aggref->aggorder)->sortop;
	Order *order;
	int number;

	/* There is no row of a group yet when fractions are evaluated. */
	if (column == NULL || contain_var_clause((Node *) aggref->aggdirectargs) ||
		(sortop != operators_of(expr)->lt_opr && !gpuds_percentile_descends(aggref)))
		return -1;
	number = find_order(percentiles, column);
	if (number >= 0)
		return number;
	order = palloc0(sizeof(Order));
	order->column = column;
	order->sortop = operators_of(column)->lt_opr;
	percentiles->orders = lappend(percentiles->orders, order);
	return list_length(percentiles->orders) - 1;
}

/* Adds a column to the scan tuple. */
static void
add_column(Percentiles *percentiles, void *expr, GpudsPercentileKind kind, int scan, int column)
{
	percentiles->exprs = lappend(percentiles->exprs, expr);
	percentiles->kinds = lappend_int(percentiles->kinds, kind);
	percentiles->scans = lappend_int(percentiles->scans, scan);
	percentiles->columns = lappend_int(percentiles->columns, column);
}

/* How many ranks an aggregate asks for, about. */
static double
ranks_of(const Aggref *aggref)
{
	const Const *fraction = linitial(aggref->aggdirectargs);

	if (exprType((const Node *) fraction) != FLOAT8ARRAYOID)
		return 1;
	if (!IsA(fraction, Const) || fraction->constisnull)
		return UNKNOWN_RANKS;
	return ArrayGetNItems(ARR_NDIM(DatumGetArrayTypeP(fraction->constvalue)),
						  ARR_DIMS(DatumGetArrayTypeP(fraction->constvalue)));
}

/* Finds the orders of all percentiles; false: one is not of an index's. */
static bool
collect_orders(Percentiles *percentiles)
{
	ListCell *lc;

	foreach (lc, percentiles->wanted.percentiles)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		const int scan = order_of(percentiles, aggref);

		if (scan < 0)
			return false;
		add_column(percentiles, aggref, gpuds_percentile_kind(aggref), scan,
				   column_of_order(list_nth(percentiles->orders, scan),
								   linitial_node(TargetEntry, aggref->args)->expr));
		percentiles->nranks += ranks_of(aggref);
	}
	return true;
}

/* Is an aggregate that is no percentile one of a column that has an order?  Then it is one of the ends. */
static bool
take_end(Percentiles *percentiles, Aggref *aggref)
{
	GpudsAggregateKind kind;
	Order *order;
	Expr *arg;
	int scan;

	if (aggref->aggfilter || list_length(aggref->args) != 1)
		return false;
	arg = linitial_node(TargetEntry, aggref->args)->expr;
	scan = find_order(percentiles, arg);
	if (scan < 0)
		return false;
	order = list_nth(percentiles->orders, scan);
	if (aggref->aggfnoid == F_COUNT_ANY)
	{
		add_column(percentiles, aggref, GPUDS_PERCENTILE_COUNT, scan, 0);
		return true;
	}
	if (!gpuds_aggregate_kind(aggref->aggfnoid, getBaseType(exprType((const Node *) arg)), &kind) ||
		(kind != GPUDS_MIN && kind != GPUDS_MAX))
		return false;
	add_column(percentiles, aggref, kind == GPUDS_MIN ? GPUDS_PERCENTILE_FIRST : GPUDS_PERCENTILE_LAST, scan,
			   column_of_order(order, arg));
	percentiles->nranks++;
	return true;
}

/* Takes what else there is of columns that have an order; what is left is for another plan. */
static void
take_ends(Percentiles *percentiles)
{
	List *others = NIL;
	ListCell *lc;

	foreach (lc, percentiles->wanted.exprs)
	{
		if (!take_end(percentiles, lfirst_node(Aggref, lc)))
			others = lappend(others, lfirst(lc));
	}
	percentiles->wanted.exprs = others;
}

/* That a column is not NULL, as a clause of the table's. */
static List *
not_null_clause(PlannerInfo *root, Expr *column)
{
	NullTest *test = makeNode(NullTest);

	test->arg = column;
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return list_make1(make_simple_restrictinfo(root, (Expr *) test));
}

/* The scan of an index that gives an order's rows, those that are not NULL; NULL: it has none. */
static IndexPath *
scan_of_index(PlannerInfo *root, RelOptInfo *rel, const IndexOptInfo *index, const Order *order,
			  List *pathkeys, bool *not_null)
{
	PathTarget *target = create_empty_pathtarget();
	IndexPath *path;

	add_new_columns_to_pathtarget(target, order->exprs);
	set_pathtarget_cost_width(root, target);
	path = gpuds_covering_path_in_order(root, rel, index, pathkeys, NIL, target);
	*not_null = path != NULL &&
				gpuds_covering_not_null(path, (Expr *) gpuds_below_domain(order->column), root);
	if (path != NULL && !*not_null)
		path = gpuds_covering_path_in_order(root, rel, index, pathkeys, not_null_clause(root, order->column),
											target);
	return path != NULL && gpuds_covering_filter(path) == NIL ? path : NULL;
}

/* The query's way of writing an order, with NULLs, of which there are none, first or last. */
static List *
pathkeys_of(PlannerInfo *root, const Order *order, bool nulls_first)
{
	SortGroupClause *clause = makeNode(SortGroupClause);
	TargetEntry *entry = makeTargetEntry(order->column, 1, NULL, false);

	entry->ressortgroupref = clause->tleSortGroupRef = 1;
	clause->sortop = order->sortop;
	clause->eqop = get_equality_op_for_ordering_op(order->sortop, NULL);
	clause->nulls_first = nulls_first;
	return make_pathkeys_for_sortclauses(root, list_make1(clause), list_make1(entry));
}

/* Finds the cheapest scan of an order; false: there is none. */
static bool
find_scan(PlannerInfo *root, RelOptInfo *rel, Order *order)
{
	Cost least = 0;

	for (int nulls_first = 0; nulls_first < 2; nulls_first++)
	{
		List *pathkeys = pathkeys_of(root, order, nulls_first);
		ListCell *lc;

		foreach (lc, rel->indexlist)
		{
			const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
			IndexPath *path;
			Cost cost;
			bool not_null;

			if (!gpuds_covering_is_in_order(index))
				continue;
			path = scan_of_index(root, rel, index, order, pathkeys, &not_null);
			if (path == NULL)
				continue;
			cost = gpuds_covering_count_cost(root, path);
			if (order->rows.path != NULL && cost >= least)
				continue;
			order->rows = (GpudsOrderedPath){ .path = &path->path, .scans = list_make1(path) };
			order->not_null = not_null;
			least = cost;
		}
	}
	return order->rows.path != NULL;
}

/* Does a column of the key have an order? */
static bool
is_key_column(const IndexOptInfo *index, int column, const Order *order)
{
	const Var *var = (const Var *) gpuds_below_domain(order->column);

	return column < index->nkeycolumns && index->indexkeys[column] == var->varattno &&
		   !index->reverse_sort[column] && op_in_opfamily(order->sortop, index->opfamily[column]) &&
		   index->indexcollations[column] == exprCollation((const Node *) order->column);
}

/* A parent's order, for its children's scans. */
typedef struct OrderOfParent
{
	RelOptInfo *rel;
	const Order *order;
} OrderOfParent;

/* The scan of a child's index that gives an order's rows, those that are not NULL; NULL: it has none. */
static IndexPath *
scan_of_child(PlannerInfo *root, RelOptInfo *child, IndexOptInfo *index, void *arg, int *ncolumns)
{
	const OrderOfParent *of = arg;
	PathTarget *target = create_empty_pathtarget();
	Order order = *of->order;
	IndexPath *path;

	order.exprs = (List *) GpudsTranslate(root, (Node *) order.exprs, child, of->rel);
	order.column = (Expr *) GpudsTranslate(root, (Node *) order.column, child, of->rel);
	add_new_columns_to_pathtarget(target, order.exprs);
	set_pathtarget_cost_width(root, target);
	path = gpuds_covering_path_in_order(root, child, index, NIL, NIL, target);
	if (path == NULL || !gpuds_covering_not_null(path, (Expr *) gpuds_below_domain(order.column), root))
		path = gpuds_covering_path_in_order(root, child, index, NIL, not_null_clause(root, order.column),
											target);
	if (path == NULL || gpuds_covering_filter(path) != NIL || path->indexscandir != ForwardScanDirection)
		return NULL;
	for (*ncolumns = 1; *ncolumns <= index->nkeycolumns; (*ncolumns)++)
	{
		if (is_key_column(index, *ncolumns - 1, &order))
			return path;
		if (!gpuds_is_fixed_column(path, *ncolumns - 1))
			break;
	}
	return NULL;
}

/* Is no row of a table NULL that has a scan as scan_of_child makes it? */
static bool
has_all_rows(PlannerInfo *root, const IndexPath *scan)
{
	const RelOptInfo *rel = scan->path.parent;

	return list_length(rel->baserestrictinfo) ==
		   list_length(find_base_rel(root, (int) rel->relid)->baserestrictinfo);
}

/* As find_scan, of the children of a table. */
static bool
find_children(PlannerInfo *root, RelOptInfo *rel, Order *order)
{
	OrderOfParent of = { .rel = rel, .order = order };
	PathTarget *target = create_empty_pathtarget();
	ListCell *lc;

	add_new_columns_to_pathtarget(target, order->exprs);
	set_pathtarget_cost_width(root, target);
	if (!gpuds_children_in_order(root, rel, pathkeys_of(root, order, false), target, scan_of_child, &of,
								 &order->rows))
		return false;
	order->not_null = true;
	foreach (lc, order->rows.scans)
		order->not_null &= has_all_rows(root, lfirst_node(IndexPath, lc));
	return true;
}

static bool
find_scans(Percentiles *percentiles)
{
	ListCell *lc;

	foreach (lc, percentiles->orders)
	{
		const GpudsWanted *wanted = &percentiles->wanted;

		if (!(percentiles->parent ? find_children : find_scan)(wanted->root, wanted->rel, lfirst(lc)))
			return false;
	}
	return true;
}

/* Takes count(*), if the rows of an order are all. */
static void
take_count(Percentiles *percentiles)
{
	ListCell *lc;

	foreach (lc, percentiles->wanted.exprs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);
		ListCell *lc2;

		if (aggref->aggfnoid != F_COUNT_ || aggref->aggfilter)
			continue;
		foreach (lc2, percentiles->orders)
		{
			if (!((const Order *) lfirst(lc2))->not_null)
				continue;
			add_column(percentiles, aggref, GPUDS_PERCENTILE_COUNT, foreach_current_index(lc2), 0);
			percentiles->wanted.exprs = foreach_delete_current(percentiles->wanted.exprs, lc);
			break;
		}
	}
}

/*
 * A relation of the columns that some expressions want: an index that has these is enough for an index-only
 * scan.
 */
static RelOptInfo *
relation_for(PlannerInfo *root, const RelOptInfo *rel, List *exprs)
{
	RelOptInfo *copy = makeNode(RelOptInfo);

	*copy = *rel;
	copy->reltarget = create_empty_pathtarget();
	add_new_columns_to_pathtarget(copy->reltarget, pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES));
	set_pathtarget_cost_width(root, copy->reltarget);
	return copy;
}

/* A path of a relation for what else is wanted; NULL: there is none. */
static CustomPath *
make_others(Percentiles *percentiles, RelOptInfo *rel, RelOptInfo *output)
{
	GpudsWanted wanted = percentiles->wanted;
	PathTarget *target = create_empty_pathtarget();

	add_new_columns_to_pathtarget(target, wanted.exprs);
	set_pathtarget_cost_width(wanted.root, target);
	wanted.rel = rel;
	return gpuds_wanted_path(&wanted, output, target, NULL);
}

/* Adds the columns of the other plan to the scan tuple. */
static void
add_others(Percentiles *percentiles)
{
	ListCell *lc;

	foreach (lc, percentiles->wanted.exprs)
		add_column(percentiles, lfirst(lc), GPUDS_PERCENTILE_OTHER, -1, foreach_current_index(lc));
}

/* Finds a plan for what is left; false: there is none. */
static bool
find_others(Percentiles *percentiles, RelOptInfo *output)
{
	GpudsWanted *wanted = &percentiles->wanted;

	if (wanted->exprs == NIL)
		return true;
	if (percentiles->parent || gpuds_wanted_needs_parts(wanted))
		return false;
	percentiles->others = make_others(percentiles, relation_for(wanted->root, wanted->rel, wanted->exprs),
									  output);
	add_others(percentiles);
	return percentiles->others != NULL;
}

/* count(*), or the count of a column. */
static Aggref *
make_count(Expr *column)
{
	Aggref *aggref = makeNode(Aggref);

	aggref->aggfnoid = column ? F_COUNT_ANY : F_COUNT_;
	aggref->aggtype = aggref->aggtranstype = INT8OID;
	aggref->aggstar = column == NULL;
	aggref->aggkind = AGGKIND_NORMAL;
	aggref->aggsplit = AGGSPLIT_SIMPLE;
	aggref->aggno = aggref->aggtransno = -1;
	aggref->location = -1;
	if (column)
	{
		aggref->args = list_make1(makeTargetEntry(column, 1, NULL, false));
		aggref->aggargtypes = list_make1_oid(exprType((const Node *) column));
	}
	return aggref;
}

/*
 * Finds a plan for the groups, and a scan for the only order, both of one index: its entries are ordered by
 * what rows are grouped by, and then by what percentiles are of.  False: the index has none.
 */
static bool
find_groups_of(Percentiles *percentiles, IndexOptInfo *index, RelOptInfo *output)
{
	GpudsWanted *wanted = &percentiles->wanted;
	RelOptInfo *rel = relation_for(wanted->root, wanted->rel, wanted->exprs);
	Order *order = linitial(percentiles->orders);
	PathTarget *target = create_empty_pathtarget();
	IndexPath *scan;
	int prefix;

	rel->indexlist = list_make1(index);
	percentiles->others = make_others(percentiles, rel, output);
	if (percentiles->others == NULL || gpuds_covering_filter(linitial(percentiles->others->custom_paths)))
		return false;
	prefix = linitial_int(list_nth(lthird(percentiles->others->custom_private), AGGREGATE_GROUPS));
	if (!is_key_column(index, prefix, order))
		return false;
	add_new_columns_to_pathtarget(target, order->exprs);
	set_pathtarget_cost_width(wanted->root, target);
	scan = gpuds_covering_path_in_order(wanted->root, wanted->rel, index,
										build_index_pathkeys(wanted->root, index, ForwardScanDirection), NIL,
										target);
	percentiles->groups = list_make3_int(list_length(wanted->exprs) - 2, list_length(wanted->exprs) - 1,
										 index->nulls_first[prefix]);
	if (scan == NULL || scan->indexscandir != ForwardScanDirection)
		return false;
	order->rows = (GpudsOrderedPath){ .path = &scan->path, .scans = list_make1(scan) };
	return true;
}

/* The same by any index. */
static bool
find_groups(Percentiles *percentiles, RelOptInfo *output)
{
	GpudsWanted *wanted = &percentiles->wanted;
	const Order *order = linitial(percentiles->orders);
	ListCell *lc;

	if (list_length(percentiles->orders) != 1 || wanted->bucket || gpuds_wanted_needs_parts(wanted))
		return false;
	add_others(percentiles);
	wanted->exprs = lappend(lappend(wanted->exprs, make_count(NULL)), make_count(order->column));
	foreach (lc, wanted->rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (gpuds_covering_is_in_order(index) && find_groups_of(percentiles, index, output))
			return true;
	}
	return false;
}

static Plan *
plan_percentile(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
				List *custom_plans)
{
	CustomScan *scan = gpuds_plan_of_path(root, path, &gpuds_percentile_methods, tlist, custom_plans);
	List *kinds = linitial(scan->custom_private);
	ListCell *lc;

	foreach (lc, (List *) linitial(path->custom_private))
	{
		if (gpuds_percentile_has_fraction(list_nth_int(kinds, foreach_current_index(lc))))
			scan->custom_exprs = lappend(scan->custom_exprs,
										 linitial(lfirst_node(Aggref, lc)->aggdirectargs));
	}
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsPercentile",
	.PlanCustomPath = plan_percentile,
};

/*
 * Sets rows and costs: each scan's rows are counted, and then skipped once at most, and for each rank some
 * rows are read.
 */
static void
set_cost(const Percentiles *percentiles, Path *path)
{
	PlannerInfo *root = percentiles->wanted.root;
	Cost first_group = 0;
	Cost cost = 0;
	ListCell *lc;

	path->rows = 1;
	if (percentiles->others)
	{
		path->rows = percentiles->others->path.rows;
		first_group = percentiles->others->path.startup_cost;
		cost += percentiles->others->path.total_cost;
		GpudsAddDisabledNodes(path, &percentiles->others->path);
	}
	cost += path->rows * percentiles->nranks * RANK_OPERATORS * cpu_operator_cost;
	foreach (lc, percentiles->orders)
	{
		const GpudsOrderedPath *rows = &((const Order *) lfirst(lc))->rows;
		const Path *scan = rows->path;
		const double read = Min(path->rows * percentiles->nranks * (double) gpuds_ordered_few_rows(rows) / 2,
								scan->rows);

		cost += read * (scan->total_cost - scan->startup_cost) / Max(scan->rows, 1);
		cost += gpuds_ordered_recount_cost(root, rows);
		if (percentiles->groups == NIL)
			cost += gpuds_ordered_count_cost(root, rows);
		if (rows->merging != NIL)
			cost += percentiles->nranks * gpuds_ordered_begin_cost(rows);
		GpudsAddDisabledNodes(path, scan);
	}
	path->startup_cost = percentiles->groups ? first_group : cost;
	path->total_cost = cost + path->rows * cpu_tuple_cost;
}

static CustomPath *
make_path(const Percentiles *percentiles, RelOptInfo *output, Node *having)
{
	CustomPath *path = makeNode(CustomPath);
	List *expected = NIL;
	List *merging = NIL;
	ListCell *lc;

	path->path.pathtype = T_CustomScan;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	set_cost(percentiles, &path->path);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	foreach (lc, percentiles->orders)
	{
		const GpudsOrderedPath *rows = &((const Order *) lfirst(lc))->rows;

		path->custom_paths = lappend(path->custom_paths, rows->path);
		expected = lappend(expected, makeFloat(psprintf("%.0f", rows->path->rows)));
		merging = lappend(merging, rows->merging);
	}
	if (percentiles->others)
		path->custom_paths = lappend(path->custom_paths, percentiles->others);
	path->custom_private = list_make3(percentiles->exprs, having,
									  lappend(list_make5(percentiles->kinds, percentiles->scans,
														 percentiles->columns, expected, percentiles->groups),
											  merging));
	path->methods = &path_methods;
	return path;
}

/* Finds what has all that is wanted; false: there is no such thing. */
static bool
find_all(Percentiles *percentiles, RelOptInfo *output)
{
	if (!collect_orders(percentiles))
		return false;
	if (percentiles->wanted.groups != NIL)
		return !percentiles->parent && find_groups(percentiles, output);
	take_ends(percentiles);
	if (!find_scans(percentiles))
		return false;
	take_count(percentiles);
	return find_others(percentiles, output);
}

/*
 * Adds a path to the grouped relation output if input is a table, or one with children, and indexes have the
 * orders of all percentiles, and what else is wanted of its rows.
 */
void
gpuds_percentile_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
					   const GroupPathExtraData *extra)
{
	Percentiles percentiles = { .wanted = { .root = root, .rel = input, .apart = true } };

	if (root->parse->groupingSets != NIL || !enable_indexonlyscan || input->reloptkind != RELOPT_BASEREL ||
		(!gpuds_covering_is_table(root, input) && !gpuds_aggregate_is_parent(root, input)) ||
		!gpuds_wanted_collect(&percentiles.wanted, output, extra->havingQual) ||
		percentiles.wanted.percentiles == NIL)
		return;
	percentiles.parent = !gpuds_covering_is_table(root, input);
	if (find_all(&percentiles, output))
		add_path(output, &make_path(&percentiles, output, extra->havingQual)->path);
}
