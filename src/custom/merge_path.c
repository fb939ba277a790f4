/*-------------------------------------------------------------------------
 *
 * merge_path.c
 *	  Paths of GpudsMerge: aggregates of the rows of two tables that are joined by columns that lead an index
 *	  of each.
 *
 *	Custom Scan (GpudsMerge)
 *	  -> Custom Scan (GpudsAggregate), of what the left table is joined by
 *	       -> Index Only Scan
 *	  -> Custom Scan (GpudsAggregate), of what the right table is joined by
 *	       -> Index Only Scan
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "am/am.h"
#include "custom/aggregate_path.h"
#include "custom/custom.h"
#include "custom/merge.h"
#include "custom/merge_path.h"
#include "key/join_key.h"

/*
 * In units of cpu_operator_cost: taking a group and comparing it; asking an index for a group's key, and
 * keeping the group meanwhile; adding up an aggregate of a group; and an entry that a device probes for.
 */
#define GROUP_OPERATORS 0.7
#define PROBE_OPERATORS 3
#define AGG_OPERATORS 0.3
#define DEVICE_OPERATORS 0.4

/* A join that sums are wanted of has fewer rows, so that they have room (merge.c). */
#define MOST_ROWS_OF_SUMS 1e9

static IndexPath *
scan_of(const CustomPath *path)
{
	return linitial(path->custom_paths);
}

/* The column of a side that one of the two arguments of a clause is; NULL: none. */
static Var *
column_of(const GpudsMerge *merge, int side, const OpExpr *clause)
{
	const RelOptInfo *rel = merge->wanted[side].rel;
	const Var *column = gpuds_wanted_column(rel, linitial(clause->args));

	if (column == NULL)
		column = gpuds_wanted_column(rel, lsecond(clause->args));
	return (Var *) column;
}

/* Groups a side by a column, by its type's equality; false: it is already. */
static bool
add_column(GpudsWanted *wanted, Var *column)
{
	const TypeCacheEntry *type = lookup_type_cache(column->vartype, TYPECACHE_EQ_OPR);

	if (list_member(wanted->groups, column) || !OidIsValid(type->eq_opr))
		return false;
	wanted->groups = lappend(wanted->groups, column);
	wanted->operators = lappend_oid(wanted->operators, type->eq_opr);
	wanted->exprs = lappend(wanted->exprs, column);
	return true;
}

/* Takes a condition of the join; false: it is not the equality of columns. */
static bool
take_clause(GpudsMerge *merge, const RestrictInfo *rinfo)
{
	const OpExpr *clause = (const OpExpr *) rinfo->clause;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2 || GpudsHasClones(rinfo) ||
		rinfo->pseudoconstant)
		return false;
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		Var *column = column_of(merge, i, clause);
		Oid family;

		if (column == NULL)
			return false;
		family = lookup_type_cache(column->vartype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
		if (!list_member_oid(rinfo->mergeopfamilies, family) || !add_column(&merge->wanted[i], column))
			return false;
	}
	merge->clauses = lappend(merge->clauses, (void *) clause);
	return true;
}

static bool
take_clauses(GpudsMerge *merge, List *clauses, Relids joined)
{
	ListCell *lc;

	foreach (lc, clauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if ((merge->type == GPUDS_MERGE_LEFT || merge->type == GPUDS_MERGE_ANTI) &&
			RINFO_IS_PUSHED_DOWN(rinfo, joined))
			return false;
		if (!take_clause(merge, rinfo))
			return false;
	}
	return merge->clauses != NIL;
}

/*
 * The side that an expression is of, be its columns those above an outer join: the left one if it has none.
 * MERGE_BOTH: it is of both, as count(*) is.
 */
static int
side_of(const GpudsMerge *merge, Node *expr)
{
	const Relids relids = pull_varnos(merge->root, expr);
	const bool left = bms_overlap(relids, merge->wanted[MERGE_LEFT].rel->relids);
	const bool right = bms_overlap(relids, merge->wanted[MERGE_RIGHT].rel->relids);

	if ((left && right) || (!left && !right && IsA(expr, Aggref) && ((const Aggref *) expr)->aggstar))
		return MERGE_BOTH;
	return right ? MERGE_RIGHT : MERGE_LEFT;
}

/* Are a side's rows joined with others, so that something of them may be wanted? */
static bool
shows_side(GpudsMergeType type, int side)
{
	return side == MERGE_LEFT || type == GPUDS_MERGE_INNER || type == GPUDS_MERGE_LEFT;
}

/*
 * Does an aggregate of a left join's right side leave out a row of NULLs, which is all that the side has for
 * a row of the left one that is joined with none?
 */
static bool
leaves_out_nulls(const GpudsMerge *merge, const Aggref *aggref)
{
	const Relids relids = merge->wanted[MERGE_RIGHT].rel->relids;
	Node *args = (Node *) aggref->args;

	/* Conditions by columns, of which none says yes to NULLs; and a value that is NULL if a column is. */
	return bms_overlap(find_nonnullable_rels((Node *) aggref->aggfilter), relids) ||
		   (bms_overlap(pull_varnos(merge->root, args), relids) && !contain_nonstrict_functions(args));
}

/* Takes an aggregate or a column that is wanted of the result; false: there is no way to it. */
static bool
take_expr(GpudsMerge *merge, Node *expr)
{
	const int side = side_of(merge, expr);
	const Aggref *aggref = (const Aggref *) expr;

	if (IsA(expr, Aggref) &&
		(aggref->aggdistinct != NIL || aggref->aggorder != NIL || aggref->agglevelsup != 0))
		return false;
	merge->exprs = list_append_unique(merge->exprs, expr);
	if (side == MERGE_BOTH)
		return IsA(expr, Aggref) && aggref->aggstar && aggref->aggfilter == NULL;
	if (!shows_side(merge->type, side))
		return false;
	/* A column of a left join's right side may be NULL where its rows have a value. */
	if (IsA(expr, Var))
		return merge->grouped && list_member(merge->wanted[side].groups, expr) &&
			   (side == MERGE_LEFT || merge->type == GPUDS_MERGE_INNER);
	if (side == MERGE_RIGHT && merge->type == GPUDS_MERGE_LEFT && !leaves_out_nulls(merge, aggref))
		return false;
	merge->wanted[side].exprs = list_append_unique(merge->wanted[side].exprs, expr);
	return true;
}

static bool
collect_expr(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Aggref) || IsA(node, Var))
		return !take_expr(arg, node);
	if (IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect_expr, arg);
}

/* The place of an expression in a list; -1: it is not there. */
static int
place_in(const List *exprs, const Node *expr)
{
	ListCell *lc;

	foreach (lc, exprs)
	{
		if (equal(lfirst(lc), expr))
			return foreach_current_index(lc);
	}
	return -1;
}

/* The place of a column among those that the sides are joined by; -1: it is none. */
static int
place_of(const GpudsMerge *merge, const Node *expr)
{
	int place = -1;

	for (int i = 0; i < MERGE_SIDES && place < 0; i++)
	{
		if (shows_side(merge->type, i))
			place = place_in(merge->wanted[i].groups, expr);
	}
	return place;
}

/* Notes what core would compare a column of groups by. */
void
gpuds_merge_add_equality(GpudsMerge *merge, Expr *expr, Oid operator)
{
	merge->equalities = lappend(merge->equalities, make_opclause(operator, BOOLOID, false, expr, expr,
																 InvalidOid, exprCollation((Node *) expr)));
}

/* Is the query grouped by all that the sides are joined by, and nothing else, or not at all? */
static bool
take_groups(GpudsMerge *merge)
{
	PlannerInfo *root = merge->root;
	Bitmapset *places = NULL;
	ListCell *lc;

	merge->grouped = root->parse->groupClause != NIL;
	foreach (lc, root->parse->groupClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = get_sortgroupclause_expr(clause, root->processed_tlist);
		const int place = place_of(merge, expr);

		if (place < 0 || lookup_type_cache(exprType(expr), TYPECACHE_EQ_OPR)->eq_opr != clause->eqop)
			return false;
		places = bms_add_member(places, place);
		gpuds_merge_add_equality(merge, (Expr *) expr, clause->eqop);
	}
	return !merge->grouped || bms_num_members(places) == list_length(merge->clauses);
}

/* Does any aggregate have a sum, of values that may be so many that it has no room? */
static bool
has_room(const GpudsMerge *merge, double rows)
{
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		if (gpuds_wanted_needs_parts(&merge->wanted[i]) ||
			(list_length(merge->wanted[i].exprs) > list_length(merge->wanted[i].groups) &&
			 rows > MOST_ROWS_OF_SUMS))
			return false;
	}
	return true;
}

/* The column of an index that a column of its table is. */
static int
index_column(const IndexOptInfo *index, const Var *column)
{
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (index->indexkeys[i] == column->varattno)
			return i;
	}
	return -1;
}

/*
 * Sets the columns of both indexes that they are joined by, in the left one's order; false: it is not the
 * right one's.
 */
static bool
set_keys(GpudsMerge *merge)
{
	const IndexOptInfo *left = scan_of(merge->paths[MERGE_LEFT])->indexinfo;
	const IndexOptInfo *right = scan_of(merge->paths[MERGE_RIGHT])->indexinfo;
	int last = -1;

	merge->keys[MERGE_LEFT] = merge->keys[MERGE_RIGHT] = NIL;
	for (int i = 0; i < left->nkeycolumns; i++)
	{
		ListCell *lc;
		ListCell *lc2;

		forboth(lc, merge->wanted[MERGE_LEFT].groups, lc2, merge->wanted[MERGE_RIGHT].groups)
		{
			if (index_column(left, lfirst_node(Var, lc)) != i)
				continue;
			if (index_column(right, lfirst_node(Var, lc2)) <= last)
				return false;
			last = index_column(right, lfirst_node(Var, lc2));
			merge->keys[MERGE_LEFT] = lappend_int(merge->keys[MERGE_LEFT], i);
			merge->keys[MERGE_RIGHT] = lappend_int(merge->keys[MERGE_RIGHT], last);
		}
	}
	return list_length(merge->keys[MERGE_LEFT]) == list_length(merge->wanted[MERGE_LEFT].groups);
}

/* Do equal values of the sides have equal codes? */
static bool
keys_agree(const GpudsMerge *merge)
{
	GpudsKeyLayout layouts[MERGE_SIDES];
	int columns[MERGE_SIDES][GPUDS_KEY_MAX_COLUMNS]; /* as many as differ, of an index */
	ListCell *lc;

	for (int i = 0; i < MERGE_SIDES; i++)
	{
		gpuds_scan_layout(scan_of(merge->paths[i])->indexinfo, &layouts[i]);
		foreach (lc, merge->keys[i])
			columns[i][foreach_current_index(lc)] = lfirst_int(lc);
	}
	return gpuds_join_key_agrees(&layouts[MERGE_LEFT], columns[MERGE_LEFT], &layouts[MERGE_RIGHT],
								 columns[MERGE_RIGHT], list_length(merge->keys[MERGE_LEFT]));
}

/* Finds the paths of both sides' groups; false: there are none that can be merged. */
bool
gpuds_merge_find_sides(GpudsMerge *merge)
{
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		GpudsWanted *wanted = &merge->wanted[i];
		PathTarget *target = create_empty_pathtarget();

		add_new_columns_to_pathtarget(target, wanted->exprs);
		set_pathtarget_cost_width(wanted->root, target);
		merge->paths[i] = gpuds_wanted_path(wanted, wanted->rel, target, NULL);
		if (merge->paths[i] == NULL)
			return false;
		merge->below[i] = &merge->paths[i]->path;
	}
	return set_keys(merge) && keys_agree(merge);
}

/* The scan below a side's groups. */
const IndexPath *
gpuds_merge_scan(const GpudsMerge *merge, int side)
{
	return scan_of(merge->paths[side]);
}

/* May an index be asked for keys: has the scan no conditions of its own, and do the keys lead it? */
bool
gpuds_merge_may_probe(const GpudsMerge *merge, int side)
{
	ListCell *lc;

	foreach (lc, merge->keys[side])
	{
		if (lfirst_int(lc) != foreach_current_index(lc))
			return false;
	}
	return scan_of(merge->paths[side])->indexclauses == NIL;
}

/* What the groups of a side cost, without their being returned. */
static Cost
side_cost(const CustomPath *path)
{
	return path->path.total_cost - path->path.rows * cpu_tuple_cost;
}

/* Aggregates of a side. */
static int
count_aggs(const GpudsMerge *merge, int side)
{
	return list_length(merge->wanted[side].exprs) - list_length(merge->wanted[side].groups);
}

/* What it costs to take so many groups of a side, and to add them up. */
static Cost
groups_cost(const GpudsMerge *merge, int side, double groups)
{
	return groups * (GROUP_OPERATORS + AGG_OPERATORS * count_aggs(merge, side)) * cpu_operator_cost;
}

/*
 * May a device join the sides: are only rows counted, which come of all groups together, by rows of the side
 * that drives, and may the other one be asked for keys?
 */
static bool
may_join_on_device(const GpudsMerge *merge, int driver)
{
	ListCell *lc;

	if (merge->grouped || gpuds_merge_is_set(merge->type) ||
		(driver == MERGE_RIGHT && merge->type != GPUDS_MERGE_INNER) ||
		!gpuds_merge_may_probe(merge, MERGE_SIDES - 1 - driver))
		return false;
	foreach (lc, merge->exprs)
	{
		if (side_of(merge, lfirst(lc)) != MERGE_BOTH)
			return false;
	}
	return true;
}

/* What a merge costs that a side drives, and that no device helps with. */
static Cost
host_cost(const GpudsMerge *merge, int driver, GpudsMergeMethod method)
{
	const int other = MERGE_SIDES - 1 - driver;
	const double asked = merge->paths[driver]->path.rows;
	const double groups = Max(merge->paths[other]->path.rows, 1);
	const double found = Min(asked / groups, 1);
	Cost cost = side_cost(merge->paths[driver]) + groups_cost(merge, driver, asked);

	if (method == GPUDS_MERGE_ALL)
		return cost + side_cost(merge->paths[other]) + groups_cost(merge, other, groups);
	return cost + asked * PROBE_OPERATORS * cpu_operator_cost +
		   found * (side_cost(merge->paths[other]) + groups_cost(merge, other, groups));
}

/* Is a GPU expected to have both sides? */
static bool
is_remote(const GpudsMerge *merge)
{
	for (int i = 0; i < MERGE_SIDES; i++)
	{
		const IndexPath *scan = scan_of(merge->paths[i]);

		if (!gpuds_scan_is_remote(scan->indexinfo, scan->path.rows))
			return false;
	}
	return true;
}

/*
 * What a merge costs that a side drives.  A device that joins the sides goes through the entries of the
 * driving one, and leaves keys whose rows it does not know in the other.
 */
static Cost
merge_cost(const GpudsMerge *merge, int driver, GpudsMergeMethod method)
{
	const Cost cost = host_cost(merge, driver, method);
	const CustomPath *path = merge->paths[driver];
	const RelOptInfo *other = merge->wanted[MERGE_SIDES - 1 - driver].rel;
	Cost device_cost;

	if (!may_join_on_device(merge, driver) || !is_remote(merge))
		return cost;
	device_cost = side_cost(path) + scan_of(path)->path.rows * DEVICE_OPERATORS * cpu_operator_cost;
	return Min(cost, device_cost + (1 - other->allvisfrac) * cost);
}

static Plan *
plan_merge(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		   List *custom_plans)
{
	return &gpuds_plan_of_path(root, path, &gpuds_merge_methods, tlist, custom_plans)->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsMerge",
	.PlanCustomPath = plan_merge,
};

/* The sides and places of the scan tuple's columns. */
static void
find_columns(const GpudsMerge *merge, List **of, List **columns)
{
	ListCell *lc;

	*of = *columns = NIL;
	foreach (lc, merge->exprs)
	{
		/* Those of a set are the left side's, in their order. */
		const int place = foreach_current_index(lc);
		const int side = gpuds_merge_is_set(merge->type) ? MERGE_LEFT : side_of(merge, lfirst(lc));

		*of = lappend_int(*of, side);
		if (gpuds_merge_is_set(merge->type))
			*columns = lappend_int(*columns, place);
		else
			*columns = lappend_int(*columns,
								   side == MERGE_BOTH ? 0 : place_in(merge->wanted[side].exprs, lfirst(lc)));
	}
}

/* A path of a relation that a side drives, for so many rows. */
CustomPath *
gpuds_merge_path(const GpudsMerge *merge, int driver, GpudsMergeMethod method, double rows,
				 RelOptInfo *parent, PathTarget *target, List *having)
{
	CustomPath *path = makeNode(CustomPath);
	List *of;
	List *columns;

	find_columns(merge, &of, &columns);
	path->path.pathtype = T_CustomScan;
	path->path.parent = parent;
	path->path.pathtarget = target;
	path->path.rows = rows;
	path->path.total_cost = merge_cost(merge, driver, method) + rows * cpu_tuple_cost;
	path->path.startup_cost = merge->grouped ? merge->paths[driver]->path.startup_cost
											 : path->path.total_cost;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make2(merge->below[MERGE_LEFT], merge->below[MERGE_RIGHT]);
	path->custom_private = list_make3(
		merge->exprs, having,
		list_make5(list_make5_int(merge->type, driver, method, merge->grouped,
								  may_join_on_device(merge, driver)),
				   list_make2(merge->keys[MERGE_LEFT], merge->keys[MERGE_RIGHT]), of, columns,
				   list_concat_copy(merge->clauses, merge->equalities)));
	path->methods = &path_methods;
	for (int i = 0; i < MERGE_SIDES; i++)
		GpudsAddDisabledNodes(&path->path, &merge->paths[i]->path);
	return path;
}

/* Adds the paths of a join. */
static void
add_paths(const GpudsMerge *merge, double rows, RelOptInfo *output, List *having)
{
	PathTarget *target = output->reltarget;
	const bool may_turn = !gpuds_merge_keeps_left(merge->type);

	add_path(output,
			 &gpuds_merge_path(merge, MERGE_LEFT, GPUDS_MERGE_ALL, rows, output, target, having)->path);
	if (gpuds_merge_may_probe(merge, MERGE_RIGHT))
		add_path(output,
				 &gpuds_merge_path(merge, MERGE_LEFT, GPUDS_MERGE_PROBE, rows, output, target, having)->path);
	if (may_turn && gpuds_merge_may_probe(merge, MERGE_LEFT))
		add_path(
			output,
			&gpuds_merge_path(merge, MERGE_RIGHT, GPUDS_MERGE_PROBE, rows, output, target, having)->path);
}

/* How many rows the result has, if the join has so many. */
static double
rows_of_result(const GpudsMerge *merge, double joined)
{
	const double left = merge->paths[MERGE_LEFT]->path.rows;
	const double right = merge->paths[MERGE_RIGHT]->path.rows;

	if (!merge->grouped)
		return 1;
	return clamp_row_est(Min(merge->type == GPUDS_MERGE_INNER ? Min(left, right) : left, joined));
}

static GpudsMergeType
type_of(const SpecialJoinInfo *sjinfo)
{
	if (sjinfo == NULL)
		return GPUDS_MERGE_INNER;
	switch (sjinfo->jointype)
	{
		case JOIN_LEFT:
			return GPUDS_MERGE_LEFT;
		case JOIN_SEMI:
			return GPUDS_MERGE_SEMI;
		default:
			return GPUDS_MERGE_ANTI;
	}
}

/*
 * Adds paths to the grouped relation output if its input is a join of two tables, and all that is wanted of
 * them are aggregates that come of their indexes.  sjinfo: an outer join, semijoin or antijoin, or NULL.
 * rows: of the join, about.
 */
void
gpuds_merge_paths(PlannerInfo *root, RelOptInfo *left, RelOptInfo *right, const SpecialJoinInfo *sjinfo,
				  List *clauses, double rows, RelOptInfo *output, const GroupPathExtraData *extra)
{
	GpudsMerge merge = { .root = root, .type = type_of(sjinfo) };
	Relids joined = bms_union(left->relids, right->relids);

	merge.wanted[MERGE_LEFT] = (GpudsWanted){ .root = root, .rel = left };
	merge.wanted[MERGE_RIGHT] = (GpudsWanted){ .root = root, .rel = right };
	if (!IS_SIMPLE_REL(right) || !take_clauses(&merge, clauses, joined) || !take_groups(&merge) ||
		collect_expr((Node *) output->reltarget->exprs, &merge) || collect_expr(extra->havingQual, &merge) ||
		!has_room(&merge, rows) || !gpuds_merge_find_sides(&merge))
		return;
	add_paths(&merge, rows_of_result(&merge, rows), output, (List *) extra->havingQual);
}
