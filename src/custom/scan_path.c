/*-------------------------------------------------------------------------
 *
 * scan_path.c
 *	  Paths of GpudsScan: rows of a table by an index, in the order of the heap.
 *
 * Core has made index paths of the table, as scans and for bitmaps.  Any of an index of gpuds that
 * core still remembers will do: its index conditions stay with it, and core plans it below the node.
 * What else the table is asked for is tested in entries if it can be (filter.c), and stays with the index
 * scan; the rest becomes the node's quals, in the order that core gives them, which heeds security levels.
 *
 * Core forgets index paths that would visit more rows than others.  So an index whose entries can be tested
 * has a path of its own, also if no condition bounds its scan.
 *
 * The node takes the place of a bitmap heap scan, and enable_bitmapscan = off turns both off.  Partial
 * paths cost what core's cost: workers share what processors do in the heap, but neither what the index
 * is asked nor what pages cost to read.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "nodes/extensible.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

#include "am/am.h"
#include "custom/custom.h"
#include "custom/filter.h"

/* Fewer rows stay with index scans, and the planner loses no time with them. */
#define FEW_ROWS 16

/*
 * Keys of an array whose length is not known, at least, if there are as many rows.  With a few, an index scan
 * is faster by some microseconds; with a million, this one is by seconds.
 */
#define UNKNOWN_KEYS 100000

/*
 * The node's index scan, as core planned it; a plan above it would look at what is looked at above the
 * node, too.
 */
static IndexScan *
scan_of(Plan *plan)
{
	while (IsA(plan, Result))
		plan = outerPlan(plan);
	return castNode(IndexScan, plan);
}

/* The quals of a scan that are among clauses, or those that are not. */
static List *
quals_among(const List *quals, List *clauses, bool among)
{
	List *some = NIL;
	ListCell *lc;

	foreach (lc, quals)
	{
		if (list_member(clauses, lfirst(lc)) == among)
			some = lappend(some, lfirst(lc));
	}
	return some;
}

static Plan *
plan_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *custom_plans)
{
	const IndexPath *index_path = linitial(path->custom_paths);
	IndexScan *child = scan_of(linitial(custom_plans));
	List *tested = extract_actual_clauses(path->custom_private, false);
	CustomScan *scan = makeNode(CustomScan);

	scan->methods = &gpuds_scan_methods;
	scan->flags = path->flags;
	scan->scan.scanrelid = rel->relid;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = quals_among(child->scan.plan.qual, tested, false);
	scan->custom_plans = list_make1(child);
	/* It gives TIDs, as a bitmap's scan. */
	child->scan.plan.targetlist = NIL;
	child->scan.plan.qual = quals_among(child->scan.plan.qual, tested, true);
	child->scan.plan.startup_cost = 0;
	child->scan.plan.total_cost = index_path->indextotalcost;
	child->scan.plan.plan_rows = index_path->path.rows;
	child->scan.plan.plan_width = 0;
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsScan",
	.PlanCustomPath = plan_scan,
};

/* Has a scan an array whose length is not known? */
static bool
has_unknown_array(const IndexPath *path)
{
	ListCell *lc;
	ListCell *lq;

	foreach (lc, path->indexclauses)
	{
		foreach (lq, lfirst_node(IndexClause, lc)->indexquals)
		{
			const ScalarArrayOpExpr *array = (const ScalarArrayOpExpr *) lfirst_node(RestrictInfo, lq)
												 ->clause;

			if (IsA(array, ScalarArrayOpExpr) && !IsA(lsecond(array->args), Const) &&
				!IsA(lsecond(array->args), ArrayExpr))
				return true;
		}
	}
	return false;
}

/* The clauses of the table that are not the scan's conditions. */
static List *
other_clauses(const IndexPath *path)
{
	List *others = NIL;
	ListCell *lc;
	ListCell *lr;

	foreach (lr, path->indexinfo->indrestrictinfo)
	{
		bool found = false;

		foreach (lc, path->indexclauses)
		{
			const IndexClause *clause = lfirst_node(IndexClause, lc);

			found |= !clause->lossy && clause->rinfo == lfirst(lr);
		}
		if (!found)
			others = lappend(others, lfirst(lr));
	}
	return others;
}

/* The visits of the heap that a scan makes. */
typedef struct Visits
{
	double entries;     /* that the scan goes through */
	double rows;        /* of those that pass what is tested in them */
	double correlation; /* of the index's order with the heap's */
	bool unknown;       /* there may be many more */
} Visits;

/* The part of a table in which the entries' rows are if the index's order is the heap's. */
static RelOptInfo
part_of(const RelOptInfo *rel, const Visits *visits)
{
	RelOptInfo part = *rel;

	part.pages = (BlockNumber) ceil(rel->pages * Min(visits->entries / Max(rel->tuples, 1), 1));
	return part;
}

/*
 * What the visits cost: from each page once in random places, as a bitmap scan's, to neighbouring pages, the
 * more the index's order has to do with the heap's.
 */
static Cost
heap_cost(PlannerInfo *root, const RelOptInfo *rel, const Visits *visits)
{
	const double rows = visits->rows;
	double of_unknown = visits->unknown ? Max(rows, Min(UNKNOWN_KEYS, rel->tuples)) : rows;
	Cost scattered = gpuds_covering_heap_cost(root, rel, of_unknown, 1) * rows / of_unknown;
	double share = Min(visits->entries / Max(rel->tuples, 1), 1);
	Cost together = gpuds_covering_range_cost(rel, share) + rows * cpu_tuple_cost;

	if (rows < visits->entries)
	{
		const RelOptInfo part = part_of(rel, visits);

		together = Min(together, gpuds_covering_heap_cost(root, &part, rows, 1));
	}
	return scattered + visits->correlation * visits->correlation * (Min(together, scattered) - scattered);
}

/* The pages of these visits. */
static double
heap_pages(PlannerInfo *root, const RelOptInfo *rel, const Visits *visits)
{
	const RelOptInfo part = part_of(rel, visits);
	double scattered = index_pages_fetched(visits->rows, rel->pages, 0, root);
	double together = rel->pages * Min(visits->entries / Max(rel->tuples, 1), 1);

	if (visits->rows < visits->entries)
		together = Min(together, index_pages_fetched(visits->rows, part.pages, 0, root));
	return scattered + visits->correlation * visits->correlation * (Min(together, scattered) - scattered);
}

/* How many processes the work is divided by: the leader has less time for it the more workers it serves. */
static double
parallel_divisor(int workers)
{
	double leader = parallel_leader_participation ? 1.0 - 0.3 * workers : 0;

	return Max(workers, 1) + (workers > 0 ? Max(leader, 0) : 0);
}

/*
 * Sets the path's costs, recomputed because its scan is not an index-only scan, and because of the clauses
 * that are tested in entries, by so many tests.  Returns how many pages it visits.
 */
static double
cost_scan(PlannerInfo *root, CustomPath *path, IndexPath *child, int ntests)
{
	const double divisor = parallel_divisor(path->path.parallel_workers);
	RelOptInfo *rel = path->path.parent;
	List *tested = path->custom_private;
	const PathTarget *target = path->path.pathtarget;
	Visits visits = { .unknown = has_unknown_array(child) };
	QualCost quals;
	Cost index_start;
	double pages;
	Cost start;
	Cost reads;
	Cost rest;

	gpuds_cost_estimate(root, child, 1, &index_start, &child->indextotalcost, &child->indexselectivity,
						&visits.correlation, &pages);
	visits.entries = visits.rows = clamp_row_est(child->indexselectivity * rel->tuples);
	if (tested != NIL)
	{
		visits.rows *= clauselist_selectivity(root, tested, rel->relid, JOIN_INNER, NULL);
		visits.rows = clamp_row_est(Min(Max(visits.rows, rel->rows), visits.entries));
		child->indextotalcost += visits.entries * ntests * cpu_operator_cost;
	}
	child->path.rows = visits.rows;
	cost_qual_eval(&quals, list_difference_ptr(other_clauses(child), tested), root);
	start = child->indextotalcost + quals.startup + target->cost.startup;
	rest = visits.rows * cpu_tuple_cost;
	reads = heap_cost(root, rel, &visits) - rest;
	rest += visits.rows * quals.per_tuple + rel->rows * target->cost.per_tuple;
	path->path.startup_cost = start;
	path->path.total_cost = start + reads + rest / divisor;
	path->path.rows = clamp_row_est(rel->rows / divisor);
	return heap_pages(root, rel, &visits);
}

/* The path of an index path's scan, partial if there are workers.  *pages: how many it visits. */
static CustomPath *
path_of(PlannerInfo *root, RelOptInfo *rel, const IndexPath *of, int workers, double *pages)
{
	CustomPath *path = makeNode(CustomPath);
	IndexPath *child = makeNode(IndexPath);
	int ntests;

	*child = *of;
	child->path.pathtype = T_IndexScan;
	child->path.pathkeys = NIL;
	child->indexscandir = ForwardScanDirection;
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	/* A path of a copy of the table does not know it; all that it has are clauses of the table. */
	path->path.parallel_safe = rel->consider_parallel;
	path->path.parallel_aware = workers > 0;
	path->path.parallel_workers = workers;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(child);
	path->custom_private = gpuds_filter_of_entries(child->indexinfo, other_clauses(child), &ntests);
	path->methods = &path_methods;
	*pages = cost_scan(root, path, child, ntests);
	return path;
}

/* Adds index paths of gpuds that a path consists of, and whose rows include all of the path's. */
static List *
add_index_paths(Path *path, List *paths)
{
	ListCell *lc;

	if (path->param_info != NULL)
		return paths;
	if (IsA(path, IndexPath))
	{
		if (gpuds_covering_is_ours(((IndexPath *) path)->indexinfo) &&
			((IndexPath *) path)->indexorderbys == NIL)
			paths = list_append_unique_ptr(paths, path);
	}
	else if (IsA(path, BitmapHeapPath))
		paths = add_index_paths(((BitmapHeapPath *) path)->bitmapqual, paths);
	else if (IsA(path, BitmapAndPath))
	{
		foreach (lc, ((BitmapAndPath *) path)->bitmapquals)
			paths = add_index_paths(lfirst(lc), paths);
	}
	return paths;
}

/* Is a table's row that of a cursor? */
bool
gpuds_is_current_of(const RelOptInfo *rel)
{
	ListCell *lc;

	foreach (lc, rel->baserestrictinfo)
	{
		if (IsA(lfirst_node(RestrictInfo, lc)->clause, CurrentOfExpr))
			return true;
	}
	return false;
}

/*
 * Is a scan of more than few rows, as far as is known?  One that leaves out no rows of the table has
 * its order for a purpose.
 */
static bool
is_batch(const RelOptInfo *rel, const IndexPath *path)
{
	int ntests;

	if (path->indexclauses == NIL && path->indexinfo->indpred == NIL &&
		gpuds_filter_of_entries(path->indexinfo, other_clauses(path), &ntests) == NIL)
		return false;
	return path->indexselectivity * rel->tuples >= FEW_ROWS || !enable_indexscan || has_unknown_array(path);
}

/* Is there a scan of an index among paths? */
static bool
has_scan_of(const List *paths, const IndexOptInfo *index)
{
	ListCell *lc;

	foreach (lc, paths)
	{
		if (lfirst_node(IndexPath, lc)->indexinfo->indexoid == index->indexoid)
			return true;
	}
	return false;
}

/* Has a table a path that costs no more than to visit few rows?  To look for others would take longer. */
static bool
has_cheap_path(const RelOptInfo *rel)
{
	ListCell *lc;

	foreach (lc, rel->pathlist)
	{
		const Path *path = lfirst(lc);

		if (path->param_info == NULL && path->total_cost <= FEW_ROWS * random_page_cost)
			return true;
	}
	return false;
}

/* Adds scans that core has forgotten or has not made: those of indexes whose entries can be tested. */
static List *
add_tested_paths(PlannerInfo *root, const RelOptInfo *rel, List *paths)
{
	ListCell *lc;

	if (has_cheap_path(rel))
		return paths;
	foreach (lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		IndexPath *path;
		int ntests;

		if (!gpuds_covering_is_ours(index) || has_scan_of(paths, index) ||
			gpuds_filter_of_entries(index, index->indrestrictinfo, &ntests) == NIL)
			continue;
		path = gpuds_covering_any_path(root, rel, index);
		if (path && gpuds_filter_of_entries(path->indexinfo, other_clauses(path), &ntests) != NIL)
			paths = lappend(paths, path);
	}
	return paths;
}

/* Adds the paths of an index path's scan. */
static void
add_paths(PlannerInfo *root, RelOptInfo *rel, const IndexPath *of)
{
	double pages;
	CustomPath *path = path_of(root, rel, of, 0, &pages);
	const bool safe = path->path.parallel_safe;
	int workers;

	add_path(rel, &path->path);
	workers = safe ? compute_parallel_worker(rel, pages, -1, max_parallel_workers_per_gather) : 0;
	if (workers > 0)
		add_partial_path(rel, &path_of(root, rel, of, workers, &pages)->path);
}

/*
 * Adds paths to a table: for each index path of gpuds that it has, one, and one in parallel.
 */
void
gpuds_scan_paths(PlannerInfo *root, RelOptInfo *rel)
{
	List *paths = NIL;
	ListCell *lc;

	if (!enable_bitmapscan || rel->indexlist == NIL || !gpuds_covering_is_table(root, rel) ||
		gpuds_is_current_of(rel))
		return;
	foreach (lc, rel->pathlist)
		paths = add_index_paths(lfirst(lc), paths);
	paths = add_tested_paths(root, rel, paths);
	foreach (lc, paths)
	{
		if (is_batch(rel, lfirst(lc)))
			add_paths(root, rel, lfirst(lc));
	}
}
