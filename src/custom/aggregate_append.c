/*-------------------------------------------------------------------------
 *
 * aggregate_append.c
 *	  Paths of aggregates in parts: of groups that are hashed, and of the children of a table, which are
 *	  partitions, or tables that inherit from it.
 *
 * Each child has a GpudsAggregate, and core puts their parts together:
 *
 *	Finalize Aggregate
 *	  -> Append
 *	       -> Custom Scan (GpudsAggregate), of PARTIAL aggregates
 *	            -> Index Only Scan of a child
 *
 * The Append is one of the table, not of the grouped relation.  So core prunes partitions at run time, too.
 * Of a single table with hashed groups there is the GpudsAggregate in its place.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "optimizer/appendinfo.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/selfuncs.h"

#include "custom/aggregate_path.h"
#include "custom/custom.h"

/* Is a relation of a query a table with its children? */
bool
gpuds_aggregate_is_parent(PlannerInfo *root, RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL && rel->rtekind == RTE_RELATION &&
		   planner_rt_fetch(rel->relid, root)->inh && bms_is_empty(rel->lateral_relids) && !is_dummy_rel(rel);
}

/*
 * Adds the tables below a parent that may have rows of the query's, and their children's; false: one of
 * them is no table that may have a GpudsAggregate.
 */
bool
gpuds_collect_children(PlannerInfo *root, Index parent, List **children)
{
	ListCell *lc;

	foreach (lc, root->append_rel_list)
	{
		const AppendRelInfo *child = lfirst_node(AppendRelInfo, lc);
		RelOptInfo *rel;

		if (child->parent_relid != parent)
			continue;
		rel = find_base_rel(root, child->child_relid);
		if (is_dummy_rel(rel))
			continue;
		if (planner_rt_fetch(rel->relid, root)->inh)
		{
			if (!gpuds_collect_children(root, rel->relid, children))
				return false;
		}
		else if (gpuds_covering_is_table(root, rel))
			*children = lappend(*children, rel);
		else
			return false;
	}
	return true;
}

/* An aggregate of a part of the rows. */
Expr *
gpuds_aggregate_part_of(const Aggref *aggref)
{
	Aggref *part = makeNode(Aggref);

	*part = *aggref;
	mark_partial_aggref(part, AGGSPLIT_INITIAL_SERIAL);
	return (Expr *) part;
}

/* What the children are to give: what rows are grouped by, and parts of the aggregates. */
static PathTarget *
make_target(const GpudsWanted *wanted)
{
	PlannerInfo *root = wanted->root;
	PathTarget *target = create_empty_pathtarget();
	ListCell *lc;

	foreach (lc, GpudsGroupClause(root))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Node *expr = GpudsBelowGrouping(root, get_sortgroupclause_expr(clause, root->processed_tlist));

		add_column_to_pathtarget(target, (Expr *) expr, clause->tleSortGroupRef);
	}
	foreach (lc, wanted->exprs)
	{
		Expr *expr = lfirst(lc);

		add_new_column_to_pathtarget(target, IsA(expr, Aggref)
												 ? gpuds_aggregate_part_of((const Aggref *) expr)
												 : expr);
	}
	return set_pathtarget_cost_width(root, target);
}

/*
 * The path of a table for parts; NULL: no index has what is wanted.  Groups are hashed if they do not follow
 * each other, or if that costs less, as the conditions may bound a scan of another index; hashed: in any
 * case.
 */
static Path *
parts_path(const GpudsWanted *wanted, PathTarget *target, bool hashed)
{
	GpudsWanted of = *wanted;
	CustomPath *ordered = NULL;
	CustomPath *by_hash;

	if (!hashed)
		ordered = gpuds_wanted_path(&of, of.rel, target, NULL);
	if (of.groups == NIL ||
		(ordered != NULL && gpuds_covering_is_bounded(of.root, linitial(ordered->custom_paths))))
		return (Path *) ordered;
	of.hashed = true;
	by_hash = gpuds_wanted_path(&of, of.rel, target, NULL);
	if (ordered == NULL || (by_hash != NULL && by_hash->path.total_cost < ordered->path.total_cost))
		return (Path *) by_hash;
	return (Path *) ordered;
}

/* The path of a child; NULL: no index has what is wanted. */
static Path *
child_path(const GpudsWanted *wanted, const PathTarget *target, RelOptInfo *child)
{
	List *all = list_make4(target->exprs, wanted->groups, wanted->bucket, wanted->bucket_column);
	List *of_child = (List *) GpudsTranslate(wanted->root, (Node *) all, child, wanted->rel);
	PathTarget *child_target = copy_pathtarget((PathTarget *) target);
	GpudsWanted of = { .root = wanted->root,
					   .rel = child,
					   .exprs = linitial(of_child),
					   .groups = lsecond(of_child),
					   .operators = wanted->operators,
					   .distinct = wanted->distinct,
					   .values = wanted->values,
					   .bucket = lthird(of_child),
					   .bucket_column = lfourth(of_child) };

	child_target->exprs = of.exprs;
	return parts_path(&of, child_target, false);
}

/* The paths of all children for parts, one behind the other; NULL: one of them has none. */
static Path *
append_parts(const GpudsWanted *wanted, PathTarget *target)
{
	List *children = NIL;
	List *paths = NIL;
	AppendPath *path;
	ListCell *lc;

	if (!gpuds_collect_children(wanted->root, wanted->rel->relid, &children) || children == NIL)
		return NULL;
	foreach (lc, children)
	{
		Path *of_child = child_path(wanted, target, lfirst(lc));

		if (of_child == NULL)
			return NULL;
		paths = lappend(paths, of_child);
	}
	path = GpudsAppendPath(wanted->root, wanted->rel, paths);
	path->path.pathtarget = target;
	return &path->path;
}

/*
 * The cheapest path for parts of a table, or of its children: what rows are grouped by, and aggregates of a
 * part of the rows each.  NULL: no index has what is wanted.
 */
Path *
gpuds_wanted_parts_path(const GpudsWanted *wanted, PathTarget *target)
{
	return gpuds_aggregate_is_parent(wanted->root, wanted->rel) ? append_parts(wanted, target)
																: parts_path(wanted, target, false);
}

/*
 * The same with what the query groups by and parts of what is wanted as columns.  hashed: groups of a single
 * table are hashed in any case.
 */
Path *
gpuds_wanted_groups_path(const GpudsWanted *wanted, bool hashed)
{
	GpudsWanted of = *wanted;
	PathTarget *target;

	if (of.rel->reloptkind != RELOPT_BASEREL)
		return NULL;
	target = make_target(wanted);
	of.exprs = target->exprs;
	return gpuds_aggregate_is_parent(of.root, of.rel) ? append_parts(&of, target)
													  : parts_path(&of, target, hashed);
}

/*
 * What core takes to put parts together; if the query has aggregates that cannot be put together, and which
 * another plan has, what it takes for whole ones.
 */
void
gpuds_final_costs(PlannerInfo *root, AggClauseCosts *costs)
{
	const bool has_others = root->hasNonPartialAggs || root->hasNonSerialAggs;

	get_agg_clause_costs(root, has_others ? AGGSPLIT_SIMPLE : AGGSPLIT_FINAL_DESERIAL, costs);
}
