/*-------------------------------------------------------------------------
 *
 * aggregate_separate.c
 *	  Paths of aggregates that are not made together: of the distinct values of several columns, or of some
 *	  and of all rows.
 *
 * Aggregates of one column's distinct values are a class, those without DISTINCT another.  Each class has a
 * plan of its own, all of the same groups in the same order, and a GpudsCombine puts their rows side by side:
 *
 *	Custom Scan (GpudsCombine)
 *	  -> Aggregate of a column's distinct values (aggregate_distinct.c)
 *	  -> GpudsAggregate, or what puts its parts together
 *
 * If values have a FILTER, there is one more count of each group and value: how many rows have passed it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/transam.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "custom/aggregate_path.h"
#include "custom/combine.h"
#include "custom/custom.h"

/* Aggregates that one plan has. */
typedef struct Class
{
	const Var *column; /* whose distinct values they are of; NULL: they are without DISTINCT */
	Oid equality;      /* that values are equal by */
	List *aggrefs;     /* of the query */
} Class;

/* A query that has several classes. */
typedef struct Separate
{
	PlannerInfo *root;
	RelOptInfo *input;
	RelOptInfo *output;
	const GroupPathExtraData *extra;
	GpudsAddPaths *plain_paths; /* adds those of aggregates without DISTINCT */
	List *groups;               /* what rows are grouped by */
	List *classes;
} Separate;

/* Is a function one that need not keep its promise to have the same result all through a statement? */
static bool
is_changeable(Oid function, void *arg)
{
	return function >= FirstNormalObjectId && func_volatile(function) != PROVOLATILE_IMMUTABLE;
}

/*
 * Does a condition call one?  Each plan asks for itself which rows it is about: by another answer, it has
 * other groups.  What a subquery of its own asks is a parameter by now, the same for all plans.
 */
static bool
calls_changeable(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, RestrictInfo))
		return calls_changeable((Node *) ((const RestrictInfo *) node)->clause, arg);
	return check_functions_in_node(node, is_changeable, NULL) ||
		   expression_tree_walker(node, calls_changeable, arg);
}

/* Adds an aggregate to a class; false: it is of something that is none. */
static bool
add_aggregate(Separate *separate, Aggref *aggref)
{
	const Var *column = NULL;
	Oid equality = InvalidOid;
	Class *found = NULL;
	ListCell *lc;

	if (aggref->aggdistinct != NIL && !gpuds_is_distinct_column(separate->input, aggref, &column, &equality))
		return false;
	foreach (lc, separate->classes)
	{
		Class *class = lfirst(lc);

		if (class->equality == equality && equal(class->column, column))
			found = class;
	}
	if (found == NULL)
	{
		found = palloc0(sizeof(Class));
		found->column = column;
		found->equality = equality;
		separate->classes = lappend(separate->classes, found);
	}
	found->aggrefs = list_append_unique(found->aggrefs, aggref);
	return true;
}

/* Finds the aggregates in an expression; true: it has something else that groups have not. */
static bool
collect(Node *node, void *arg)
{
	Separate *separate = arg;

	if (node == NULL || list_member(separate->groups, node))
		return false;
	if (IsA(node, Aggref))
		return !add_aggregate(separate, (Aggref *) node);
	if (IsA(node, Var) || IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect, arg);
}

/* An aggregate as a plan has it that has no others than its class. */
static Aggref *
copy_aggregate(const Aggref *aggref, int number)
{
	Aggref *copy = copyObject((Aggref *) aggref);

	copy->aggno = copy->aggtransno = number;
	GpudsSetUnsorted(copy);
	return copy;
}

/* How many rows of a group have passed a filter. */
static Aggref *
make_count(Expr *filter)
{
	Aggref *count = makeNode(Aggref);

	count->aggfnoid = F_COUNT_;
	count->aggtype = count->aggtranstype = INT8OID;
	count->aggstar = true;
	count->aggkind = 'n';
	count->aggfilter = filter;
	count->location = -1;
	return count;
}

/* Has a part of a group a row that has passed a filter?  Adds the count to what is wanted. */
static Expr *
make_passed(GpudsWanted *wanted, Expr *filter)
{
	Aggref *count = make_count(filter);
	Const *zero = makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(0), false, FLOAT8PASSBYVAL);
	OpExpr *passed = (OpExpr *) make_opclause(Int8LessOperator, BOOLOID, false, (Expr *) zero,
											  gpuds_aggregate_part_of(count), InvalidOid, InvalidOid);

	passed->opfuncid = F_INT8LT;
	wanted->exprs = list_append_unique(wanted->exprs, count);
	return (Expr *) passed;
}

/* May the user call what is called for filters of values, if there are any?  The query need not name it. */
static bool
may_have_filters(const List *aggrefs)
{
	const ListCell *lc;

	foreach (lc, aggrefs)
	{
		if (lfirst_node(Aggref, lc)->aggfilter)
			return GpudsMayExecute(F_COUNT_) && GpudsMayExecute(F_INT8LT);
	}
	return true;
}

/* A grouped relation of groups and aggregates. */
static RelOptInfo *
make_part(const Separate *separate, List *aggrefs)
{
	PlannerInfo *root = separate->root;
	RelOptInfo *part = makeNode(RelOptInfo);
	ListCell *lc;

	*part = *separate->output;
	part->pathlist = part->partial_pathlist = part->ppilist = NIL;
	part->cheapest_startup_path = part->cheapest_total_path = NULL;
	part->cheapest_parameterized_paths = NIL;
	part->reltarget = create_empty_pathtarget();
	foreach (lc, root->parse->groupClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = get_sortgroupclause_expr(clause, root->processed_tlist);

		add_column_to_pathtarget(part->reltarget, (Expr *) expr, clause->tleSortGroupRef);
	}
	foreach (lc, aggrefs)
		add_column_to_pathtarget(part->reltarget, lfirst(lc), 0);
	set_pathtarget_cost_width(root, part->reltarget);
	return part;
}

/* Adds paths of the aggregates without DISTINCT to their relation. */
static void
add_plain_paths(const Separate *separate, RelOptInfo *part)
{
	const List *clauses = separate->root->parse->groupClause;
	GroupPathExtraData extra = *separate->extra;

	/* Core has the flags of all aggregates; those that a node of ours makes can be put together. */
	extra.flags |= GROUPING_CAN_PARTIAL_AGG;
	if (clauses != NIL && grouping_is_hashable((List *) clauses))
		extra.flags |= GROUPING_CAN_USE_HASH;
	extra.havingQual = NULL;
	separate->plain_paths(separate->root, separate->input, part, &extra);
}

/* Adds a path of aggregates of a column's distinct values to their relation, and replaces their filters. */
static void
add_values_path(const Separate *separate, const Class *class, RelOptInfo *part, List *aggrefs)
{
	PlannerInfo *root = separate->root;
	GpudsWanted wanted = { .root = root, .rel = separate->input };
	double ngroups;
	Path *values;
	ListCell *lc;

	if (!may_have_filters(aggrefs) || !gpuds_wanted_collect_groups(&wanted, root->parse->groupClause))
		return;
	ngroups = gpuds_wanted_add_distinct(&wanted, class->column, class->equality);
	/* Also those that core does not group by, because they are the same in all rows. */
	wanted.exprs = list_concat_unique(wanted.exprs, separate->groups);
	foreach (lc, aggrefs)
	{
		Aggref *aggref = lfirst_node(Aggref, lc);

		if (aggref->aggfilter)
			aggref->aggfilter = make_passed(&wanted, aggref->aggfilter);
	}
	values = gpuds_wanted_groups_path(&wanted, false);
	if (values != NULL)
		gpuds_add_distinct_path(root, part, values, GpudsGroupPathkeys(root), NULL, ngroups);
}

/* The path of a class, in the order of groups; NULL: there is none. */
static Path *
class_path(const Separate *separate, const Class *class)
{
	List *keys = GpudsGroupPathkeys(separate->root);
	List *aggrefs = NIL;
	RelOptInfo *part;
	Path *path;
	ListCell *lc;

	foreach (lc, class->aggrefs)
		aggrefs = lappend(aggrefs, copy_aggregate(lfirst(lc), foreach_current_index(lc)));
	part = make_part(separate, aggrefs);
	if (class->column == NULL)
		add_plain_paths(separate, part);
	else
		add_values_path(separate, class, part, aggrefs);
	if (part->pathlist == NIL)
		return NULL;
	set_cheapest(part);
	path = part->cheapest_total_path;
	return pathkeys_contained_in(keys, path->pathkeys)
			   ? path
			   : (Path *) create_sort_path(separate->root, part, path, keys, -1.0);
}

/* Adds columns of the combined rows: expressions that a plan has one behind the other. */
static void
add_columns(GpudsCombined *combined, List *exprs, int plan, int column)
{
	combined->exprs = list_concat(combined->exprs, exprs);
	for (int i = 0; i < list_length(exprs); i++)
	{
		combined->plans = lappend_int(combined->plans, plan);
		combined->columns = lappend_int(combined->columns, column + i);
	}
}

/* Have all aggregates one path: are they of one class, without a filter of values? */
static bool
is_one(const Separate *separate)
{
	const Class *class = linitial(separate->classes);
	ListCell *lc;

	foreach (lc, class->aggrefs)
	{
		if (class->column && lfirst_node(Aggref, lc)->aggfilter)
			return false;
	}
	return list_length(separate->classes) == 1;
}

/*
 * Adds a path to the grouped relation output of a table if its aggregates are of several classes.
 * plain_paths: adds paths to one whose aggregates are without DISTINCT.
 */
void
gpuds_add_separate_path(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, GpudsAddPaths *plain_paths,
						const GroupPathExtraData *extra)
{
	Separate separate = {
		.root = root, .input = input, .output = output, .extra = extra, .plain_paths = plain_paths
	};
	GpudsCombined combined = { .having = extra->havingQual };
	ListCell *lc;

	separate.groups = get_sortgrouplist_exprs(root->parse->groupClause, root->processed_tlist);
	if (input->reloptkind != RELOPT_BASEREL || calls_changeable((Node *) input->baserestrictinfo, NULL) ||
		collect((Node *) output->reltarget->exprs, &separate) || collect(extra->havingQual, &separate) ||
		separate.classes == NIL || is_one(&separate))
		return;
	add_columns(&combined, separate.groups, 0, 0);
	foreach (lc, separate.classes)
	{
		const Class *class = lfirst(lc);
		Path *path = class_path(&separate, class);

		if (path == NULL)
			return;
		combined.paths = lappend(combined.paths, path);
		add_columns(&combined, class->aggrefs, foreach_current_index(lc), list_length(separate.groups));
	}
	add_path(output, gpuds_combine_path(&combined, output));
}
