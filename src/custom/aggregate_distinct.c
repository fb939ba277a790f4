/*-------------------------------------------------------------------------
 *
 * aggregate_distinct.c
 *	  Paths of aggregates of a column's distinct values, as count(DISTINCT column).
 *
 * Core aggregates, and has of each group the column's values once, or not often:
 *
 *	Aggregate
 *	  -> Sort
 *	       -> Custom Scan (GpudsAggregate), by what the query groups by and the column
 *
 * All aggregates are of the one column, and do not depend on how often it has a value.
 *
 * And paths of SELECT DISTINCT, which are groups without aggregates.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_aggregate.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "custom/aggregate.h"
#include "custom/aggregate_path.h"
#include "custom/custom.h"

/* What a query's aggregates are of. */
typedef struct Distinct
{
	GpudsWanted *wanted;
	const Var *column; /* NULL: no aggregate has been seen */
	Oid equality;      /* that its values are equal by */
} Distinct;

/* Has an aggregate without DISTINCT the same result with it? */
static bool
is_extreme(const Aggref *aggref, const Var *column)
{
	GpudsAggregateKind kind;

	return gpuds_aggregate_kind(aggref->aggfnoid, getBaseType(column->vartype), &kind) &&
		   (kind == GPUDS_MIN || kind == GPUDS_MAX);
}

/* Is an aggregate with DISTINCT one of a column's values, by whatever filter? */
bool
gpuds_is_distinct_column(const RelOptInfo *rel, const Aggref *aggref, const Var **column, Oid *equality)
{
	if (aggref->aggkind != AGGKIND_NORMAL || aggref->aggorder != NIL || aggref->agglevelsup != 0 ||
		aggref->aggsplit != AGGSPLIT_SIMPLE || list_length(aggref->args) != 1)
		return false;
	*column = gpuds_wanted_column(rel, linitial_node(TargetEntry, aggref->args)->expr);
	if (aggref->aggdistinct != NIL)
		*equality = linitial_node(SortGroupClause, aggref->aggdistinct)->eqop;
	else if (*column != NULL)
		*equality = lookup_type_cache((*column)->vartype, TYPECACHE_EQ_OPR)->eq_opr;
	return *column != NULL;
}

/* Is an aggregate of the distinct values of a column, the one that others are of? */
static bool
take_aggregate(Distinct *distinct, const Aggref *aggref)
{
	const Var *column;
	Oid equality;

	if (aggref->aggfilter != NULL ||
		!gpuds_is_distinct_column(distinct->wanted->rel, aggref, &column, &equality) ||
		(aggref->aggdistinct == NIL && !is_extreme(aggref, column)))
		return false;
	if (distinct->column != NULL)
		return equal(column, distinct->column) && equality == distinct->equality;
	distinct->column = column;
	distinct->equality = equality;
	return true;
}

static bool
collect(Node *node, void *arg)
{
	Distinct *distinct = arg;
	GpudsWanted *wanted = distinct->wanted;

	if (node == NULL || (wanted->bucket && equal(node, wanted->bucket)))
		return false;
	if (IsA(node, Aggref))
		return !take_aggregate(distinct, (const Aggref *) node);
	if (IsA(node, Var))
	{
		wanted->exprs = list_append_unique(wanted->exprs, node);
		return false;
	}
	if (IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect, arg);
}

/* Groups rows by a column, too, whose distinct values are wanted; returns how many groups there are else. */
double
gpuds_wanted_add_distinct(GpudsWanted *wanted, const Var *column, Oid equality)
{
	const double ngroups = wanted->groups != NIL ? gpuds_wanted_groups(wanted, wanted->rel->rows) : 1;

	wanted->distinct = true;
	wanted->exprs = list_append_unique(wanted->exprs, (void *) column);
	if (!list_member(wanted->groups, column))
	{
		/* The column of a bucket stays the last. */
		wanted->groups = lcons((void *) column, wanted->groups);
		wanted->operators = lcons_oid(equality, wanted->operators);
		wanted->values = true;
	}
	return ngroups;
}

/*
 * Finds out what the grouped relation wants of wanted->rel, if its aggregates are of one column's distinct
 * values: groups of what the query groups by and that column.  *ngroups: those of the query, about.  False:
 * it wants something else.
 */
bool
gpuds_wanted_collect_distinct(GpudsWanted *wanted, const RelOptInfo *output, Node *having, double *ngroups)
{
	Distinct distinct = { .wanted = wanted };

	if (!gpuds_wanted_collect_groups(wanted, wanted->root->parse->groupClause) ||
		collect((Node *) output->reltarget->exprs, &distinct) || collect(having, &distinct) ||
		distinct.column == NULL)
		return false;
	*ngroups = gpuds_wanted_add_distinct(wanted, distinct.column, distinct.equality);
	return true;
}

/*
 * Adds a path that aggregates what a path gives, which has the column's values in each group, in an order.
 */
void
gpuds_add_distinct_path(PlannerInfo *root, RelOptInfo *output, Path *values, List *pathkeys, Node *having,
						double ngroups)
{
	const bool grouped = root->parse->groupClause != NIL;
	AggClauseCosts costs = { 0 };

	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	if (pathkeys != NIL)
		values = (Path *) create_sort_path(root, output, values, pathkeys, -1.0);
	add_path(output, (Path *) create_agg_path(root, output, values, output->reltarget,
											  grouped ? AGG_SORTED : AGG_PLAIN, AGGSPLIT_SIMPLE,
											  GpudsGroupClause(root), (List *) having, &costs, ngroups));
}

/* Is SELECT DISTINCT all that a query does with the rows of a table? */
static bool
is_select_distinct(const Query *parse)
{
	return parse->distinctClause != NIL && !parse->hasDistinctOn && !parse->hasAggs &&
		   !parse->hasWindowFuncs && !parse->hasTargetSRFs && parse->groupClause == NIL &&
		   parse->groupingSets == NIL && parse->havingQual == NULL && parse->setOperations == NULL;
}

/* What SELECT DISTINCT wants of wanted->rel; false: something that no node of ours has. */
static bool
collect_select(GpudsWanted *wanted, const PathTarget *target)
{
	ListCell *lc;

	if (!gpuds_wanted_collect_groups(wanted, wanted->root->parse->distinctClause))
		return false;
	foreach (lc, target->exprs)
	{
		Expr *expr = lfirst(lc);

		if (!(wanted->bucket && equal(expr, wanted->bucket)) && !list_member(wanted->groups, expr))
			return false;
		wanted->exprs = list_append_unique(wanted->exprs, expr);
	}
	wanted->distinct = true;
	return true;
}

/*
 * Adds a path that makes rows distinct which a path gives, in whatever order.  They may come several times:
 * if groups are hashed, and of several children of a table.
 */
static void
add_hashed_path(PlannerInfo *root, RelOptInfo *output, const GpudsWanted *wanted, Path *values)
{
	if (values != NULL && grouping_is_hashable(root->parse->distinctClause))
		add_path(output, (Path *) create_agg_path(root, output, values, values->pathtarget, AGG_HASHED,
												  AGGSPLIT_SIMPLE, root->parse->distinctClause, NIL, NULL,
												  gpuds_wanted_groups(wanted, wanted->rel->rows)));
}

/* Adds a path to the relation output of distinct rows if an index has all that is selected of input. */
void
gpuds_select_distinct_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output)
{
	GpudsWanted wanted = { .root = root, .rel = input };
	PathTarget *target;
	CustomPath *path;

	if (!is_select_distinct(root->parse) || input->reloptkind != RELOPT_BASEREL)
		return;
	target = input->cheapest_total_path->pathtarget;
	if (!collect_select(&wanted, target))
		return;
	if (!gpuds_covering_is_table(root, input))
	{
		add_hashed_path(root, output, &wanted, gpuds_wanted_parts_path(&wanted, target));
		return;
	}
	path = gpuds_wanted_path(&wanted, output, target, NULL);
	if (path != NULL)
	{
		const bool bounded = gpuds_covering_is_bounded(root, linitial(path->custom_paths));

		/* Frees the path if others are better. */
		add_path(output, &path->path);
		if (bounded)
			return;
	}
	/* By another index, conditions that this one tests may bound the scan. */
	path = gpuds_wanted_hashed_path(&wanted, output, target, NULL);
	if (path != NULL)
	{
		add_path(output, &path->path);
		return;
	}
	wanted.hashed = true;
	add_hashed_path(root, output, &wanted, (Path *) gpuds_wanted_path(&wanted, input, target, NULL));
}
