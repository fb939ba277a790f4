/*-------------------------------------------------------------------------
 *
 * join_path.c
 *	  Paths of GpudsJoin: joins whose inner side is a table with an index on what it is joined by.
 *
 * A join condition becomes a key if it says that an index column equals an expression of the outer
 * side, or of neither side; or that a point is in a shape of the outer side.  The keys are for the leading
 * columns of one index.  What else the inner table is
 * asked for is tested in entries if it can be (filter.c); all other conditions are looked at for each pair of
 * rows.
 *
 * Where rows are locked or changed, core may have to make the join anew for single rows (EvalPlanQual).  Then
 * the path has a scan of the inner table as well, which gives that table's row.
 *
 * There are no such paths where conditions of different security levels meet.
 *
 * For k IN (SELECT k FROM o) with the index on the other table, core plans an inner join with o made
 * unique.  The node needs only o's keys and makes them unique itself: a right semijoin.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "am/am.h"
#include "custom/aggregate_path.h"
#include "custom/custom.h"
#include "custom/filter.h"
#include "custom/join.h"
#include "custom/join_plan.h"
#include "index/index.h"
#include "key/key.h"

/* Can an operator that is an index column's, of a type on the right, be a key: an equality that is exact? */
static bool
is_key(const IndexOptInfo *index, int column, Oid op, Oid type)
{
	return gpuds_index_has_equality(index, column, op) &&
		   (gpuds_index_is_lossy(index, column) || gpuds_key_probe_is_exact(index->opcintype[column], type));
}

/* The function of an operator that says whether a point, a column of the index, is in a shape; or none. */
static Oid
shape_of(const IndexOptInfo *index, int column, int strategy, Oid type)
{
	return index->opcintype[column] == POINTOID ? gpuds_point_function(strategy, type) : InvalidOid;
}

/*
 * Does a condition say that an index column equals an expression without the inner side, or that a point is
 * in the shape that it gives?  The expression then; *type: the type that it is compared as; *shape: the
 * function that says so of a shape.
 */
static Node *
key_of(PlannerInfo *root, const RestrictInfo *rinfo, IndexOptInfo *index, int column, Relids outer, Oid *type,
	   Oid *shape)
{
	OpExpr *clause = (OpExpr *) rinfo->clause;
	Relids varnos;
	Node *key;
	Oid op;
	int strategy;
	Oid left;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
		return NULL;
	if (match_index_to_operand(linitial(clause->args), column, index))
	{
		key = lsecond(clause->args);
		op = clause->opno;
	}
	else if (match_index_to_operand(lsecond(clause->args), column, index))
	{
		key = linitial(clause->args);
		op = get_commutator(clause->opno);
	}
	else
		return NULL;
	if (!OidIsValid(op) || get_op_opfamily_strategy(op, index->opfamily[column]) == 0 ||
		(OidIsValid(index->indexcollations[column]) && index->indexcollations[column] != clause->inputcollid))
		return NULL;
	get_op_opfamily_properties(op, index->opfamily[column], false, &strategy, &left, type);
	*shape = shape_of(index, column, strategy, *type);
	if (!OidIsValid(*shape) && !is_key(index, column, op, *type))
		return NULL;
	if (contain_volatile_functions(key) || contain_subplans(key))
		return NULL;
	varnos = pull_varnos(root, key);
	return bms_is_subset(varnos, outer) ? key : NULL;
}

/*
 * The first of some conditions that makes a key for a column; adds it to the plan.  So a plan has one key
 * for a column, however many conditions there are; the others are quals.
 */
static bool
add_key(PlannerInfo *root, GpudsJoinPlan *plan, int column, List *conditions, Relids outer)
{
	ListCell *lc;

	foreach (lc, conditions)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Oid type;
		Oid shape;
		Node *key = key_of(root, rinfo, plan->index, column, outer, &type, &shape);

		if (key == NULL)
			continue;
		/* Points are the only column of a key. */
		plan->shape = shape;
		plan->keys = lappend(plan->keys, key);
		plan->types = lappend_oid(plan->types, type);
		plan->conditions = lappend(plan->conditions, rinfo);
		/* What has a key's hash is only a candidate. */
		if (!gpuds_index_is_lossy(plan->index, column))
			plan->exact = lappend(plan->exact, rinfo);
		return true;
	}
	return false;
}

/*
 * Are a table's columns all that an expression has of it, and does the index return them?  *columns: the
 * index's columns, by number, that it has of it.
 */
static bool
index_returns(const IndexOptInfo *index, Index relid, List *exprs, List **columns)
{
	List *vars = pull_var_clause((Node *) exprs,
								 PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell *lc;

	*columns = NIL;
	foreach (lc, vars)
	{
		const Var *var = lfirst_node(Var, lc);
		bool found = var->varno != relid;

		for (int i = 0; !found && i < index->ncolumns; i++)
		{
			found = index->indexkeys[i] == var->varattno && var->varattno > 0 && index->canreturn[i];
			if (found)
				*columns = lappend_int(*columns, i);
		}
		if (!found)
			return false;
	}
	return true;
}

/* What is wanted of the join's rows.  Those of an antijoin have nothing of the inner table but NULLs. */
static List *
wanted_above(const GpudsJoinPlan *plan, const RelOptInfo *joinrel)
{
	if (plan->type == JOIN_ANTI)
		return NIL;
	return list_concat_copy(joinrel->reltarget->exprs, extract_actual_clauses(plan->others, false));
}

/*
 * Is anything wanted of some relations, for each pair of rows or above the join?  Placeholders, and
 * what identifies rows that are changed, count as such.
 */
static bool
is_wanted(const GpudsJoinPlan *plan, const RelOptInfo *joinrel, Relids relids)
{
	List *exprs = list_concat_copy(joinrel->reltarget->exprs, extract_actual_clauses(plan->others, false));
	List *vars;
	ListCell *lc;

	exprs = list_concat(exprs, extract_actual_clauses(plan->quals, false));
	vars = pull_var_clause((Node *) exprs,
						   PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
	foreach (lc, vars)
	{
		const Var *var = lfirst(lc);

		if (!IsA(var, Var) || IS_SPECIAL_VARNO(var->varno) || bms_is_member(var->varno, relids))
			return true;
	}
	return false;
}

/* The plan of a join by an index, or NULL. */
static GpudsJoinPlan *
plan_of(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, IndexOptInfo *index, JoinType type,
		List *restrictlist)
{
	GpudsJoinPlan *plan = palloc0(sizeof(GpudsJoinPlan));
	List *conditions = NIL; /* that pairs must meet */
	List *rest;             /* of the inner table's own */
	List *columns;
	int of_join;
	ListCell *lc;

	plan->type = type;
	plan->inner = index->rel;
	plan->index = index;
	foreach (lc, restrictlist)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(rinfo, joinrel->relids))
			plan->others = lappend(plan->others, rinfo);
		else
			conditions = lappend(conditions, rinfo);
	}
	of_join = 0;
	for (int column = 0; column < index->nkeycolumns; column++)
	{
		if (add_key(root, plan, column, conditions, outer->relids))
			of_join++;
		else if (!add_key(root, plan, column, index->indrestrictinfo, NULL))
			break;
	}
	if (of_join == 0)
		return NULL;
	rest = list_difference_ptr(index->indrestrictinfo, plan->exact);
	plan->tested = gpuds_filter_of_entries(index, rest, &plan->ntests);
	plan->quals = list_concat(list_difference_ptr(rest, plan->tested),
							  list_difference_ptr(conditions, plan->exact));
	plan->keeps = is_wanted(plan, joinrel, outer->relids);
	plan->heap_free = enable_indexonlyscan &&
					  index_returns(index, index->rel->relid,
									list_concat(wanted_above(plan, joinrel),
												extract_actual_clauses(plan->quals, false)),
									&columns);
	plan->side_bytes = plan->heap_free ? gpuds_scan_side_bytes(index, columns) : 0;
	return plan;
}

/* Variables and placeholders as they are above the join. */
typedef struct Above
{
	List *vars;
	List *placeholders;
} Above;

static Var *
var_above(const Above *above, const Var *var)
{
	ListCell *lc;

	foreach (lc, above->vars)
	{
		Var *other = lfirst_node(Var, lc);

		if (other->varno == var->varno && other->varattno == var->varattno)
			return other;
	}
	return NULL;
}

static PlaceHolderVar *
placeholder_above(const Above *above, const PlaceHolderVar *placeholder)
{
	ListCell *lc;

	foreach (lc, above->placeholders)
	{
		PlaceHolderVar *other = lfirst_node(PlaceHolderVar, lc);

		if (other->phid == placeholder->phid)
			return other;
	}
	return NULL;
}

/*
 * An expression with its variables as they are above the join.  Core finds them in the scan tuple only
 * if they are the same in all respects, but an outer join changes them on their way through it.
 */
static Node *
as_above(Node *node, Above *above)
{
	Node *copy;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var *from = var_above(above, (Var *) node);

		copy = copyObject(node);
		if (from)
			GpudsCopyNulling((Var *) copy, from);
		return copy;
	}
	copy = expression_tree_mutator(node, as_above, above);
	if (IsA(node, PlaceHolderVar))
	{
		PlaceHolderVar *from = placeholder_above(above, (PlaceHolderVar *) node);

		if (from)
			GpudsCopyPlaceholderNulling((PlaceHolderVar *) copy, from);
	}
	return copy;
}

/*
 * The variables and placeholders of what is wanted of the join, and of quals of its rows.  Behind them
 * those of the outer side, for what is wanted within the join only.
 */
static void
look_above(const RelOptInfo *joinrel, const List *quals, const Path *outer, Above *above)
{
	List *exprs = list_concat(list_concat_copy(joinrel->reltarget->exprs, quals), outer->pathtarget->exprs);
	List *both = pull_var_clause((Node *) exprs,
								 PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS);
	ListCell *lc;

	above->placeholders = NIL;
	foreach (lc, both)
	{
		if (IsA(lfirst(lc), PlaceHolderVar))
			above->placeholders = lappend(above->placeholders, lfirst(lc));
	}
	above->vars = pull_var_clause((Node *) exprs, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
													  PVC_RECURSE_PLACEHOLDERS);
}

/*
 * Entries of the scan tuple for the inner table's columns that expressions have, added to *tlist, and their
 * numbers to *columns; or 0 if they are only shown.
 */
static void
add_columns(Index relid, List *exprs, bool shown, List **tlist, List **columns)
{
	List *vars = pull_var_clause((Node *) exprs,
								 PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_RECURSE_PLACEHOLDERS);
	ListCell *lc;

	foreach (lc, vars)
	{
		Var *var = lfirst_node(Var, lc);

		if (var->varno != relid || tlist_member((Expr *) var, *tlist))
			continue;
		*tlist = lappend(*tlist,
						 makeTargetEntry((Expr *) copyObject(var), list_length(*tlist) + 1, NULL, false));
		*columns = lappend_int(*columns, shown ? 0 : var->varattno);
	}
}

/* The conditions that became keys, one for each leading column of the index, with the column in front. */
static List *
index_conditions(const GpudsJoinPlan *plan)
{
	List *conditions = copyObject(extract_actual_clauses(plan->conditions, false));
	ListCell *lc;

	foreach (lc, conditions)
	{
		OpExpr *condition = lfirst_node(OpExpr, lc);

		if (!match_index_to_operand(linitial(condition->args), foreach_current_index(lc), plan->index))
			CommuteOpExpr(condition);
	}
	return conditions;
}

/* Has the scan for EvalPlanQual return the scan tuple's columns behind those of the outer plan. */
static void
set_scan_columns(Plan *scan, List *scan_tlist, int nouter)
{
	List *tlist = NIL;

	for (int i = nouter; i < list_length(scan_tlist); i++)
	{
		const TargetEntry *entry = list_nth_node(TargetEntry, scan_tlist, i);

		tlist = lappend(tlist, makeTargetEntry(copyObject(entry->expr), i - nouter + 1, NULL, false));
	}
	Assert(IsA(scan, SeqScan));
	scan->targetlist = tlist;
}

/* A relation's place among others, which stays the same when their numbers are moved. */
static int
place_among(Relids relids, Index relid)
{
	int place = 0;

	for (int i = -1; (i = bms_next_member(relids, i)) >= 0 && i != relid;)
		place++;
	return place;
}

/* Entries of the scan tuple for the parts of count(*) that a path gives, added to *tlist. */
static void
add_counts(const CustomPath *path, List **tlist)
{
	ListCell *lc;

	foreach (lc, path->path.pathtarget->exprs)
		*tlist = lappend(*tlist, makeTargetEntry(lfirst(lc), list_length(*tlist) + 1, NULL, false));
}

static Plan *
plan_join(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *custom_plans)
{
	const GpudsJoinPlan *plan = linitial(path->custom_private);
	const Path *outer = linitial(path->custom_paths);
	const Index relid = plan->inner->relid;
	CustomScan *scan = makeNode(CustomScan);
	List *others = extract_actual_clauses(plan->others, false);
	List *columns = NIL;
	List *quals;
	List *conditions;
	List *tested;
	List *facts;
	Above above;
	ListCell *lc;

	/* The target list may not be the plan's last one. */
	look_above(rel, others, outer, &above);
	quals = (List *) as_above((Node *) extract_actual_clauses(plan->quals, false), &above);
	conditions = (List *) as_above((Node *) index_conditions(plan), &above);
	tested = (List *) as_above((Node *) extract_actual_clauses(plan->tested, false), &above);

	scan->methods = &gpuds_join_methods;
	scan->flags = path->flags;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = others;
	scan->custom_plans = custom_plans;
	foreach (lc, outer->pathtarget->exprs)
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry((Expr *) as_above(lfirst(lc), &above),
														  foreach_current_index(lc) + 1, NULL, false));
	add_columns(relid, quals, false, &scan->custom_scan_tlist, &columns);
	add_columns(relid, wanted_above(plan, rel), false, &scan->custom_scan_tlist, &columns);
	add_columns(relid, list_concat_copy(rel->reltarget->exprs, others), true, &scan->custom_scan_tlist,
				&columns);
	add_columns(relid, list_concat_copy(conditions, tested), true, &scan->custom_scan_tlist, &columns);
	if (list_length(custom_plans) > 1)
		set_scan_columns(lsecond(custom_plans), scan->custom_scan_tlist,
						 list_length(outer->pathtarget->exprs));
	scan->custom_exprs = list_make4(as_above((Node *) plan->keys, &above), quals, conditions, tested);
	facts = list_make4_int(plan->type, place_among(rel->relids, relid), list_length(outer->pathtarget->exprs),
						   plan->heap_free);
	facts = list_concat(facts, list_make3_int(plan->keeps, plan->right_semi, plan->counts));
	if (plan->counts)
		add_counts(path, &scan->custom_scan_tlist);
	scan->custom_private = list_make3(facts, columns,
									  lcons_oid(plan->index->indexoid, lcons_oid(plan->shape, plan->types)));
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsJoin",
	.PlanCustomPath = plan_join,
};

/* May EvalPlanQual have to make the query's joins anew? */
static bool
is_rechecked(const PlannerInfo *root)
{
	const CmdType command = root->parse->commandType;

	return root->rowMarks != NIL || (command != CMD_SELECT && command != CMD_INSERT);
}

/* The rows that core expects of a join whose outer side is a path: all, or a worker's. */
static double
core_rows(const RelOptInfo *joinrel, const Path *outer)
{
	return clamp_row_est(joinrel->rows * outer->rows / Max(outer->parent->rows, 1));
}

static CustomPath *
path_of(PlannerInfo *root, RelOptInfo *joinrel, const GpudsJoinPlan *plan, Path *outer)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = joinrel;
	path->path.pathtarget = joinrel->reltarget;
	path->path.parallel_safe = joinrel->consider_parallel && outer->parallel_safe;
	path->path.parallel_workers = outer->parallel_workers;
	path->path.rows = joinrel->rows;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(outer);
	if (is_rechecked(root))
		path->custom_paths = lappend(path->custom_paths, create_seqscan_path(root, plan->inner, NULL, 0));
	path->custom_private = list_make1((void *) plan);
	path->methods = &path_methods;
	return path;
}

/* Can the node give all that is wanted of the inner table: no whole rows? */
static bool
can_give(const RelOptInfo *inner, const JoinPathExtraData *extra)
{
	Bitmapset *columns = NULL; /* from the lowest number of a system column on */
	ListCell *lc;

	foreach (lc, inner->reltarget->exprs)
	{
		if (!IsA(lfirst(lc), Var))
			return false;
	}
	pull_varattnos((Node *) inner->reltarget->exprs, inner->relid, &columns);
	pull_varattnos((Node *) extract_actual_clauses(inner->baserestrictinfo, false), inner->relid, &columns);
	pull_varattnos((Node *) extract_actual_clauses(extra->restrictlist, false), inner->relid, &columns);
	return !bms_is_member(-FirstLowInvalidHeapAttributeNumber, columns);
}

/*
 * Are there columns that say which row of which partition is to be changed?  Core numbers them apart from
 * those of tables (ROWID_VAR), and does not take them for columns of a scan tuple.
 */
static bool
has_row_identity(const RelOptInfo *rel)
{
	ListCell *lc;

	foreach (lc, rel->reltarget->exprs)
	{
		if (IsA(lfirst(lc), Var) && lfirst_node(Var, lc)->varno == ROWID_VAR)
			return true;
	}
	return false;
}

static bool
has_pseudoconstant(List *restrictlist)
{
	ListCell *lc;

	foreach (lc, restrictlist)
	{
		if (lfirst_node(RestrictInfo, lc)->pseudoconstant)
			return true;
	}
	return false;
}

static bool
is_possible(PlannerInfo *root, const RelOptInfo *joinrel, const RelOptInfo *outer, RelOptInfo *inner,
			JoinType type, const JoinPathExtraData *extra)
{
	if (type != JOIN_INNER && type != JOIN_LEFT && type != JOIN_SEMI && type != JOIN_ANTI &&
		type != JOIN_UNIQUE_OUTER)
		return false;
	if (root->qual_security_level != 0 || !bms_is_empty(joinrel->lateral_relids) ||
		outer->cheapest_total_path->param_info != NULL || has_row_identity(outer) ||
		has_pseudoconstant(extra->restrictlist) || has_pseudoconstant(inner->baserestrictinfo))
		return false;
	return gpuds_covering_is_table(root, inner) && can_give(inner, extra);
}

/*
 * Is a join of unique outer rows the semijoin itself, of which nothing is wanted but the inner rows?
 * Else other relations of its left-hand side are missing, and the outer rows' columns are wanted to
 * join these.
 */
static bool
is_right_semi(PlannerInfo *root, const GpudsJoinPlan *plan, const RelOptInfo *inner,
			  const SpecialJoinInfo *sjinfo)
{
	return sjinfo->jointype == JOIN_SEMI && bms_is_subset(sjinfo->min_lefthand, inner->relids) &&
		   !plan->keeps && !is_rechecked(root);
}

/*
 * Adds a right semijoin in place of a join of outer rows that core has made unique; false: it is none.
 *
 * In parallel, each process would have to know the keys of all outer rows, so there is no partial path.
 */
static bool
add_right_semi(PlannerInfo *root, RelOptInfo *joinrel, GpudsJoinPlan *plan, Path *outer,
			   const JoinPathExtraData *extra)
{
	CustomPath *path;

	if (!is_right_semi(root, plan, plan->inner, extra->sjinfo))
		return false;
	plan->right_semi = true;
	path = path_of(root, joinrel, plan, outer);
	if (gpuds_join_cost(root, path, plan, outer))
		add_path(joinrel, &path->path);
	return true;
}

/*
 * Adds paths to a join relation: one for each index of the inner table that has a key, and for each its equal
 * in parallel.
 */
void
gpuds_join_paths(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
				 JoinPathExtraData *extra)
{
	Path *outer_path = outer->cheapest_total_path;
	const bool unique = type == JOIN_UNIQUE_OUTER;
	ListCell *lc;

	if (!is_possible(root, joinrel, outer, inner, type, extra))
		return;
	if (unique)
	{
		outer_path = GpudsUniquePath(root, outer, extra->sjinfo);
		outer = GpudsAllRows(root, outer);
		type = JOIN_INNER;
		if (outer_path == NULL)
			return;
	}
	foreach (lc, inner->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		GpudsJoinPlan *plan;
		CustomPath *path;
		Path *partial;

		if (!gpuds_covering_is_ours(index) ||
			(plan = plan_of(root, joinrel, outer, index, type, extra->restrictlist)) == NULL)
			continue;
		plan->unique = unique;
		if (unique && !OidIsValid(plan->shape) &&
			add_right_semi(root, joinrel, plan, outer->cheapest_total_path, extra))
			continue;
		path = path_of(root, joinrel, plan, outer_path);
		if (!gpuds_join_cost(root, path, plan, outer_path))
			continue;
		add_path(joinrel, &path->path);
		if (!joinrel->consider_parallel || outer->partial_pathlist == NIL ||
			outer_path != outer->cheapest_total_path)
			continue;
		partial = linitial(outer->partial_pathlist);
		path = path_of(root, joinrel, plan, partial);
		/* Workers share only what EXPLAIN shows of their work (explain.c). */
		path->path.parallel_aware = true;
		path->path.rows = core_rows(joinrel, partial);
		if (gpuds_join_cost(root, path, plan, partial))
			add_partial_path(joinrel, &path->path);
	}
}

/* Is an aggregate count(*) of all rows? */
static bool
is_plain_count(const Aggref *aggref)
{
	return aggref->aggfnoid == F_COUNT_ && aggref->aggfilter == NULL && aggref->agglevelsup == 0;
}

/* Parts of what a grouped relation without groups wants of its rows; NULL: more than their number. */
static PathTarget *
count_target(PlannerInfo *root, const RelOptInfo *output, Node *having)
{
	PathTarget *target = create_empty_pathtarget();
	List *exprs = list_concat(
		pull_var_clause((Node *) output->reltarget->exprs,
						PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS),
		pull_var_clause(having, PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS | PVC_INCLUDE_PLACEHOLDERS));
	ListCell *lc;

	foreach (lc, exprs)
	{
		if (!IsA(lfirst(lc), Aggref) || !is_plain_count(lfirst_node(Aggref, lc)))
			return NULL;
		add_new_column_to_pathtarget(target, gpuds_aggregate_part_of(lfirst_node(Aggref, lc)));
	}
	return exprs != NIL ? set_pathtarget_cost_width(root, target) : NULL;
}

/*
 * A path that counts the rows of another one, which costs less by what it takes to give each (join_cost.c);
 * NULL: it is no semi- or antijoin of which no row is wanted.
 */
static Path *
counting_path(const Path *path, PathTarget *target)
{
	CustomPath *counting;
	GpudsJoinPlan *plan;

	if (!IsA(path, CustomPath) || ((const CustomPath *) path)->methods != &path_methods)
		return NULL;
	counting = makeNode(CustomPath);
	*counting = *(const CustomPath *) path;
	plan = palloc(sizeof(GpudsJoinPlan));
	*plan = *(const GpudsJoinPlan *) linitial(counting->custom_private);
	if ((plan->type != JOIN_SEMI && plan->type != JOIN_ANTI) || plan->keeps || plan->others != NIL)
		return NULL;
	plan->counts = true;
	counting->path.total_cost -= core_rows(path->parent, linitial(counting->custom_paths)) * cpu_tuple_cost;
	counting->custom_private = list_make1(plan);
	counting->path.pathtarget = target;
	counting->path.startup_cost = counting->path.total_cost = Max(counting->path.total_cost,
																  counting->path.startup_cost);
	counting->path.rows = 1;
	return &counting->path;
}

/*
 * Adds paths to the grouped relation output if input is a join whose rows are only counted: core puts the
 * counts together that its processes have.
 */
void
gpuds_join_count_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
					   const GroupPathExtraData *extra)
{
	PathTarget *target;
	ListCell *lc;

	if (input->reloptkind != RELOPT_JOINREL || extra->patype != PARTITIONWISE_AGGREGATE_NONE ||
		root->parse->groupClause != NIL || root->parse->groupingSets != NIL || is_rechecked(root) ||
		!gpuds_may_take_parts(root, extra) ||
		(target = count_target(root, output, extra->havingQual)) == NULL)
		return;
	foreach (lc, input->pathlist)
	{
		Path *path = counting_path(lfirst(lc), target);

		if (path != NULL)
			gpuds_add_final_paths(root, output, path, 1, extra);
	}
	foreach (lc, output->consider_parallel ? input->partial_pathlist : NIL)
	{
		Path *path = counting_path(lfirst(lc), target);
		double rows;

		if (path == NULL)
			continue;
		rows = path->parallel_workers;
		path = (Path *) create_gather_path(root, input, path, target, NULL, &rows);
		gpuds_add_final_paths(root, output, path, 1, extra);
	}
}
