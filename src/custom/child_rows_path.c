/*-------------------------------------------------------------------------
 *
 * child_rows_path.c
 *	  Paths of the rows of a table's children in an order, of which some are to be skipped.
 *
 *	Append
 *	  -> Index Scan of a child
 *
 * The Append is one of the table.  So core prunes partitions at run time, too.  The node above takes rows
 * from the scans by itself (child_rows.c), so all must have the order's columns in the same bits of keys.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/tlist.h"
#include "partitioning/partbounds.h"

#include "am/am.h"
#include "custom/aggregate_path.h"
#include "custom/child_rows.h"
#include "index/index.h"

/* What it takes to find a place among the rows of several scans, of each, in units of cpu_operator_cost. */
#define SEARCH_OPERATORS 4000

/* The same to count the rows of a scan. */
#define BEGIN_OPERATORS 400

/* A search for scans of all children whose rows can be merged. */
typedef struct Search
{
	PlannerInfo *root;
	RelOptInfo *parent;
	PathTarget *target; /* of the parent's rows */
	GpudsScanInOrder *find;
	void *arg;
	GpudsKeyLayout layout; /* that the first child's index has */
	int ncolumns;
	ScanDirection direction;
} Search;

/* Can rows of an index's scan be merged with the first child's? */
static bool
is_alike(const Search *search, const IndexOptInfo *index)
{
	GpudsKeyLayout layout;

	if (!gpuds_covering_is_in_order(index))
		return false;
	gpuds_scan_layout(index, &layout);
	return gpuds_key_orders_alike(&layout, &search->layout, search->ncolumns);
}

/* A child's cheapest scan whose rows can be merged with the first child's; NULL: there is none. */
static IndexPath *
find_alike(const Search *search, RelOptInfo *child)
{
	IndexPath *best = NULL;
	Cost least = 0;
	ListCell *lc;

	foreach (lc, child->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		IndexPath *path;
		int ncolumns;
		Cost cost;

		if (!is_alike(search, index))
			continue;
		path = search->find(search->root, child, index, search->arg, &ncolumns);
		if (path == NULL || ncolumns != search->ncolumns || path->indexscandir != search->direction)
			continue;
		cost = gpuds_covering_count_cost(search->root, path);
		if (best == NULL || cost < least)
		{
			best = path;
			least = cost;
		}
	}
	return best;
}

/* The scans of all children if an index of the first one is taken; NIL: another child has none like it. */
static List *
find_scans(Search *search, List *children, IndexOptInfo *first)
{
	List *scans = NIL;
	IndexPath *path;
	ListCell *lc;

	if (!gpuds_covering_is_in_order(first))
		return NIL;
	path = search->find(search->root, linitial(children), first, search->arg, &search->ncolumns);
	if (path == NULL)
		return NIL;
	gpuds_scan_layout(first, &search->layout);
	search->direction = path->indexscandir;
	foreach (lc, children)
	{
		IndexPath *of_child = foreach_current_index(lc) == 0 ? path : find_alike(search, lfirst(lc));

		if (of_child == NULL)
			return NIL;
		scans = lappend(scans, of_child);
	}
	return scans;
}

/*
 * The children in the order of rows, if they are the partitions of a table that are not pruned, and their
 * rows follow each other in it; else NIL.
 */
static List *
in_turn(PlannerInfo *root, RelOptInfo *rel, List *pathkeys, const List *children)
{
	List *ascending = NIL;
	List *descending = NIL;
	int i = -1;

	if (rel->part_scheme == NULL || rel->boundinfo == NULL ||
		!partitions_are_ordered(rel->boundinfo, rel->live_parts))
		return NIL;
	while ((i = bms_next_member(rel->live_parts, i)) >= 0)
	{
		RelOptInfo *part = rel->part_rels[i];

		if (part == NULL || !list_member_ptr(children, part))
			continue;
		ascending = lappend(ascending, part);
		descending = lcons(part, descending);
	}
	if (list_length(ascending) != list_length(children))
		return NIL;
	for (int backward = 0; backward < 2; backward++)
	{
		bool partial;
		List *of_parts = build_partition_pathkeys(root, rel,
												  backward ? BackwardScanDirection : ForwardScanDirection,
												  &partial);

		if (pathkeys_contained_in(pathkeys, of_parts) ||
			(!partial && pathkeys_contained_in(of_parts, pathkeys)))
			return backward ? descending : ascending;
	}
	return NIL;
}

/* An Append of scans. */
static void
make_append(const Search *search, List *scans, bool turn, GpudsOrderedPath *ordered)
{
	AppendPath *append = GpudsAppendPath(search->root, search->parent, list_copy(scans));

	append->path.pathtarget = search->target;
	*ordered = (GpudsOrderedPath){ .path = &append->path,
								   .scans = scans,
								   .merging = list_make2_int(search->ncolumns, turn) };
}

static Cost
sum_costs(PlannerInfo *root, const List *scans, Cost (*cost)(PlannerInfo *root, IndexPath *path))
{
	Cost sum = 0;
	ListCell *lc;

	foreach (lc, scans)
		sum += cost(root, lfirst_node(IndexPath, lc));
	return sum;
}

/*
 * The cheapest scans of all children of a table by which find has rows in an order, with targets of its
 * own, as a path with the given target; false: a child has none.  pathkeys: the order of the parent's rows.
 */
bool
gpuds_children_in_order(PlannerInfo *root, RelOptInfo *rel, List *pathkeys, PathTarget *target,
						GpudsScanInOrder *find, void *arg, GpudsOrderedPath *ordered)
{
	Search search = { .root = root, .parent = rel, .target = target, .find = find, .arg = arg };
	List *children = NIL;
	List *turns;
	bool found = false;
	Cost least = 0;
	ListCell *lc;

	if (!gpuds_collect_children(root, rel->relid, &children) || children == NIL)
		return false;
	turns = in_turn(root, rel, pathkeys, children);
	if (turns != NIL)
		children = turns;
	foreach (lc, ((RelOptInfo *) linitial(children))->indexlist)
	{
		List *scans = find_scans(&search, children, lfirst_node(IndexOptInfo, lc));
		const Cost cost = sum_costs(root, scans, gpuds_covering_count_cost);

		if (scans == NIL || (found && cost >= least))
			continue;
		make_append(&search, scans, turns != NIL, ordered);
		found = true;
		least = cost;
	}
	return found;
}

/* What it costs to count all rows. */
Cost
gpuds_ordered_count_cost(PlannerInfo *root, const GpudsOrderedPath *ordered)
{
	return sum_costs(root, ordered->scans, gpuds_covering_count_cost);
}

/* The same once more. */
Cost
gpuds_ordered_recount_cost(PlannerInfo *root, const GpudsOrderedPath *ordered)
{
	return sum_costs(root, ordered->scans, gpuds_covering_recount_cost);
}

/* Are rows of several scans merged? */
static bool
is_merged(const GpudsOrderedPath *ordered)
{
	return ordered->merging != NIL && list_nth_int(ordered->merging, ROWS_IN_TURN) == 0;
}

/* Rows that are not worth counting, and have to be read. */
int64
gpuds_ordered_few_rows(const GpudsOrderedPath *ordered)
{
	return is_merged(ordered) ? GPUDS_SKIP_FEW_MERGED : GPUDS_SKIP_FEW;
}

/* What it costs to come to a row, beyond counting those before it. */
Cost
gpuds_ordered_begin_cost(const GpudsOrderedPath *ordered)
{
	return list_length(ordered->scans) * (is_merged(ordered) ? SEARCH_OPERATORS : BEGIN_OPERATORS) *
		   cpu_operator_cost;
}
