/*-------------------------------------------------------------------------
 *
 * covering.c
 *	  Index scans whose conditions are all that a query asks of a table.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "custom/custom.h"
#include "custom/filter.h"
#include "index/index.h"
#include "key/key.h"
#include "reader/visible.h"

/*
 * Counting an entry, in units of cpu_operator_cost: 11 ns on a CPU device, a twelfth of what core takes
 * for a row.
 */
#define COUNT_OPERATORS 0.4

/* In the same units, coming to a page of the heap for rows that are looked up there: waits for its memory. */
#define PAGE_OPERATORS 100

/* The same of a page that is looked at once, for its state, and of a row that the state decides about. */
#define STATE_PAGE_OPERATORS 20
#define STATE_ROW_OPERATORS 2

/* Rows that are looked up in the order of the heap at a time, about (row_count.c, entry_agg.c). */
#define ROUND_ROWS (GPUDS_PIECE_ENTRIES / 2.0)

/* Is an index one of gpuds, and can the query use it? */
bool
gpuds_covering_is_ours(const IndexOptInfo *index)
{
	return (void *) index->amcostestimate == (void *) gpuds_cost_estimate && !index->hypothetical &&
		   (index->indpred == NIL || index->predOK);
}

/*
 * Is it one whose entries are in the order of rows?  Those of texts are not, so core's scan would go on
 * elsewhere than where entries were passed over, even if the query's order is by other columns, or by none.
 */
bool
gpuds_covering_is_in_order(const IndexOptInfo *index)
{
	return gpuds_covering_is_ours(index) && gpuds_index_orders(index) && !gpuds_index_has_lossy(index);
}

/*
 * Is a relation of a query one table, without children?  False also for a relation that core has
 * proved empty: core has not matched its indexes with conditions.
 */
bool
gpuds_covering_is_table(PlannerInfo *root, RelOptInfo *rel)
{
	const RangeTblEntry *rte;

	if (!IS_SIMPLE_REL(rel) || rel->rtekind != RTE_RELATION || !bms_is_empty(rel->lateral_relids) ||
		is_dummy_rel(rel))
		return false;
	rte = planner_rt_fetch(rel->relid, root);
	return !rte->inh && rte->tablesample == NULL &&
		   (rte->relkind == RELKIND_RELATION || rte->relkind == RELKIND_MATVIEW);
}

/*
 * Is a value equal to one key at most, or on one side of it, whatever the TimeZone?  Or does it say where
 * points are?
 */
static bool
is_exact(const IndexOptInfo *index, const IndexClause *clause)
{
	ListCell *lc;

	foreach (lc, clause->indexquals)
	{
		const Node *condition = (const Node *) lfirst_node(RestrictInfo, lc)->clause;
		Oid op;
		int strategy;
		Oid left;
		Oid right;

		if (IsA(condition, OpExpr))
			op = ((const OpExpr *) condition)->opno;
		else if (IsA(condition, ScalarArrayOpExpr))
			op = ((const ScalarArrayOpExpr *) condition)->opno;
		else if (IsA(condition, NullTest))
			continue;
		else
			return false;
		if (gpuds_index_is_lossy(index, clause->indexcol))
			return false;
		get_op_opfamily_properties(op, index->opfamily[clause->indexcol], false, &strategy, &left, &right);
		if (!gpuds_key_probe_is_exact(index->opcintype[clause->indexcol], right) &&
			!(index->opcintype[clause->indexcol] == POINTOID &&
			  OidIsValid(gpuds_point_function(strategy, right))))
			return false;
	}
	return true;
}

/* Is a table's clause one of a scan's conditions, and exact there? */
static bool
has_condition(const IndexPath *path, const RestrictInfo *rinfo)
{
	ListCell *lc;

	foreach (lc, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, lc);

		if (!clause->lossy && clause->rinfo == rinfo && is_exact(path->indexinfo, clause))
			return true;
	}
	return false;
}

/*
 * Are all clauses of the table conditions of the scan, or implied by the index's predicate, or such as can be
 * tested in entries?  Adds the columns of the index that are tested to a list.
 */
static bool
covers(const IndexPath *path, List **tested)
{
	ListCell *lc;

	foreach (lc, path->indexinfo->indrestrictinfo)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (has_condition(path, rinfo))
			continue;
		if (rinfo->pseudoconstant ||
			!gpuds_filter_can_test(path->indexinfo, path->path.parent->relid, rinfo->clause, tested))
			return false;
	}
	return true;
}

/*
 * The columns of the index that the conditions of a scan of gpuds_covering_path test in entries, one of each
 * test; core leaves these conditions to the plan's quals.
 */
List *
gpuds_covering_filter(const IndexPath *path)
{
	List *tested = NIL;

	(void) covers(path, &tested);
	return tested;
}

/* Do all conditions of a scan of gpuds_covering_path bound the entries that it goes through? */
bool
gpuds_covering_is_bounded(PlannerInfo *root, IndexPath *path)
{
	int nfilters;

	(void) gpuds_scan_entries(root, path, &nfilters);
	return nfilters == 0 && gpuds_covering_filter(path) == NIL;
}

/* An index of the table that a number in the range table stands for. */
typedef struct IndexOf
{
	const IndexOptInfo *index;
	int relid;
} IndexOf;

/* Has an expression a column of the table that the index does not have? */
static bool
needs_other_column(Node *node, void *arg)
{
	const IndexOf *of = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Var) && ((const Var *) node)->varno == of->relid && ((const Var *) node)->varlevelsup == 0)
	{
		for (int i = 0; i < of->index->ncolumns; i++)
		{
			if (of->index->indexkeys[i] == ((const Var *) node)->varattno)
				return false;
		}
		return true;
	}
	return expression_tree_walker(node, needs_other_column, arg);
}

/*
 * May a scan of the index cover all clauses of the table?  A clause of a column that the index does not have
 * is neither a condition of the scan nor tested in entries, so core need not make paths to find that out.
 */
static bool
may_cover(const RelOptInfo *rel, const IndexOptInfo *index)
{
	IndexOf of = { index, (int) rel->relid };
	ListCell *lc;

	if (index->indexprs != NIL)
		return true;
	foreach (lc, index->indrestrictinfo)
	{
		if (needs_other_column((Node *) lfirst_node(RestrictInfo, lc)->clause, &of))
			return false;
	}
	return true;
}

/* A copy of a table that has no other index than one. */
static RelOptInfo *
copy_with_index(const RelOptInfo *rel, const IndexOptInfo *index)
{
	RelOptInfo *table = makeNode(RelOptInfo);
	IndexOptInfo *only = makeNode(IndexOptInfo);

	*table = *rel;
	*only = *index;
	only->rel = table;
	only->amhasgetbitmap = false;
	table->indexlist = list_make1(only);
	table->pathlist = NIL;
	table->partial_pathlist = NIL;
	table->joininfo = NIL;
	table->has_eclass_joins = false;
	table->consider_parallel = false;
	return table;
}

/* Core's scan of such a copy in an order; NULL: none covers the table's clauses. */
static IndexPath *
path_of_copy(PlannerInfo *root, RelOptInfo *table, List *pathkeys)
{
	List *tested = NIL;
	ListCell *lc;

	create_index_paths(root, table);
	foreach (lc, table->pathlist)
	{
		IndexPath *path = (IndexPath *) lfirst(lc);

		/* They differ in direction only. */
		if (IsA(path, IndexPath) && path->path.param_info == NULL &&
			pathkeys_contained_in(pathkeys, path->path.pathkeys) && covers(path, &tested))
			return path;
	}
	return NULL;
}

/*
 * Core's scan of an index for a table's clauses, in an order that it has to have; NULL: it has none that
 * covers them.  Core has made such scans before, but has forgotten those that seemed to cost more than others
 * do.  So it makes them again, for a copy of the table that has no other index.
 */
IndexPath *
gpuds_covering_path_of(PlannerInfo *root, const RelOptInfo *rel, const IndexOptInfo *index, List *pathkeys)
{
	return may_cover(rel, index) ? path_of_copy(root, copy_with_index(rel, index), pathkeys) : NULL;
}

/*
 * Core's scan of an index by the table's clauses that it has conditions of, be they few or none; NULL: the
 * index is not scanned without any.
 */
IndexPath *
gpuds_covering_any_path(PlannerInfo *root, const RelOptInfo *rel, const IndexOptInfo *index)
{
	RelOptInfo *table = copy_with_index(rel, index);
	IndexOptInfo *only = linitial(table->indexlist);
	ListCell *lc;

	create_index_paths(root, table);
	foreach (lc, table->pathlist)
	{
		IndexPath *path = (IndexPath *) lfirst(lc);

		if (IsA(path, IndexPath) && path->path.param_info == NULL)
			return path;
	}
	return only->amoptionalkey ? create_index_path(root, only, NIL, NIL, NIL, NIL, ForwardScanDirection,
												   false, NULL, 1, false)
							   : NULL;
}

/*
 * The same for more clauses than the table's, in an order that the query has no other use for, and with a
 * target of its own.
 */
IndexPath *
gpuds_covering_path_in_order(PlannerInfo *root, const RelOptInfo *rel, const IndexOptInfo *index,
							 List *pathkeys, List *more, PathTarget *target)
{
	List *of_query = root->query_pathkeys;
	List *of_sort = root->sort_pathkeys;
	RelOptInfo *table;
	IndexOptInfo *only;
	IndexPath *path;

	if (!may_cover(rel, index))
		return NULL;
	table = copy_with_index(rel, index);
	only = linitial(table->indexlist);
	table->baserestrictinfo = list_concat_copy(rel->baserestrictinfo, more);
	only->indrestrictinfo = list_concat_copy(index->indrestrictinfo, more);
	table->reltarget = target;
	if (more != NIL)
		table->rows = clamp_row_est(rel->rows * clauselist_selectivity(root, more, 0, JOIN_INNER, NULL));
	/* Core keeps the order that one of them asks for: PostgreSQL 19 looks at sort_pathkeys. */
	root->query_pathkeys = root->sort_pathkeys = pathkeys;
	path = path_of_copy(root, table, pathkeys);
	root->query_pathkeys = of_query;
	root->sort_pathkeys = of_sort;
	return path;
}

/*
 * What the visits of so many rows in the heap cost, in so many rounds through it.  A round visits its
 * pages in their order; what is in the cache by then need not be read again.
 */
Cost
gpuds_covering_heap_cost(PlannerInfo *root, const RelOptInfo *rel, double rows, double rounds)
{
	double pages = Max(rel->pages, 1);
	double of_round = Min(ceil(2 * pages * rows / rounds / (2 * pages + rows / rounds)), pages);
	double random_cost;
	double seq_cost;
	Cost page_cost;

	if (rows <= 0)
		return 0;
	get_tablespace_page_costs(rel->reltablespace, &random_cost, &seq_cost);
	page_cost = random_cost - (random_cost - seq_cost) * sqrt(of_round / pages);
	return index_pages_fetched(rows, rel->pages, 0, root) * page_cost + rows * cpu_tuple_cost;
}

/* What it costs to read a share of a table's pages that lie together. */
Cost
gpuds_covering_range_cost(const RelOptInfo *rel, double share)
{
	double pages = ceil(share * Max(rel->pages, 1));
	double random_cost;
	double seq_cost;

	get_tablespace_page_costs(rel->reltablespace, &random_cost, &seq_cost);
	return random_cost + (Max(pages, 1) - 1) * seq_cost;
}

/* The share of a table's rows that the visibility map is not enough for (reader/visible.h). */
double
gpuds_covering_unmapped(const IndexOptInfo *index, const RelOptInfo *rel)
{
	return gpuds_scan_uses_map(index) ? 1 - rel->allvisfrac : 1;
}

/*
 * What looking up so many rows of a scan takes beyond reading their pages.  If the index's order has so much
 * to do with the heap's, there are few pages.  Where pages have no states, each round comes to its pages
 * anew.
 */
static Cost
look_up_cost(const IndexOptInfo *index, const RelOptInfo *rel, double rows, double correlation)
{
	const bool states = gpuds_scan_uses_states(index);
	const double pages = Max(rel->pages, 1);
	const double rounds = states ? Min(rows, 1) : ceil(rows / ROUND_ROWS);
	const double scattered = -rounds * pages * expm1(-rows / Max(rounds, 1) / pages);
	const double together = pages * Min(rows / Max(rel->tuples, 1), 1);
	const double visits = scattered + correlation * correlation * (Min(together, scattered) - scattered);

	if (states)
		return (rows * STATE_ROW_OPERATORS + visits * STATE_PAGE_OPERATORS) * cpu_operator_cost;
	return gpuds_scan_look_up_cost(rows) + visits * PAGE_OPERATORS * cpu_operator_cost;
}

/* Of a scan's rows, those that the visibility map is not enough for. */
static double
visited_rows(const IndexPath *path)
{
	const RelOptInfo *rel = path->path.parent;

	return path->indexselectivity * rel->tuples * gpuds_covering_unmapped(path->indexinfo, rel);
}

/* What it costs to count a scan's rows once more: the pages of the heap have been read. */
Cost
gpuds_covering_recount_cost(PlannerInfo *root, IndexPath *path)
{
	int nfilters;
	double entries = gpuds_scan_entries(root, path, &nfilters);

	return path->path.startup_cost + entries * (COUNT_OPERATORS + nfilters) * cpu_operator_cost +
		   look_up_cost(path->indexinfo, path->path.parent, visited_rows(path),
						gpuds_scan_correlation(root, path->indexinfo));
}

/* What it costs to count a scan's rows. */
Cost
gpuds_covering_count_cost(PlannerInfo *root, IndexPath *path)
{
	return gpuds_covering_recount_cost(root, path) +
		   gpuds_covering_heap_cost(root, path->path.parent, visited_rows(path), 1);
}

/*
 * The scan to aggregate the rows of a table by: of those by an index of gpuds that covers all of the table's
 * clauses, and that suit the caller, the cheapest one; or NULL.  suits adds to *more what the caller would do
 * beyond counting, as far as it depends on the index.  It takes the place of an index-only scan,
 * so enable_indexonlyscan = off turns it off, too.
 */
IndexPath *
gpuds_covering_path(PlannerInfo *root, RelOptInfo *rel,
					bool (*suits)(const IndexPath *path, void *arg, Cost *more), void *arg)
{
	IndexPath *best = NULL;
	Cost best_cost = 0;
	ListCell *lc;

	if (!enable_indexonlyscan || !gpuds_covering_is_table(root, rel))
		return NULL;
	foreach (lc, rel->indexlist)
	{
		const IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);
		IndexPath *path;
		Cost cost = 0;

		if (!gpuds_covering_is_ours(index))
			continue;
		path = gpuds_covering_path_of(root, rel, index, NIL);
		if (path == NULL || !suits(path, arg, &cost))
			continue;
		cost += gpuds_covering_count_cost(root, path);
		if (best == NULL || cost < best_cost)
		{
			best = path;
			best_cost = cost;
		}
	}
	return best;
}

static bool
declared_not_null(PlannerInfo *root, const RelOptInfo *rel, AttrNumber attno)
{
	HeapTuple tuple;
	bool not_null;

	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(planner_rt_fetch(rel->relid, root)->relid),
							Int16GetDatum(attno));
	if (!HeapTupleIsValid(tuple))
		return false;
	not_null = ((Form_pg_attribute) GETSTRUCT(tuple))->attnotnull;
	ReleaseSysCache(tuple);
	return not_null && GpudsNotNullIsValid(rel, attno);
}

/*
 * Is an expression's value never NULL in the rows of the scan: a constant, a column that is declared
 * so, or one that a condition of the scan holds for?
 */
bool
gpuds_covering_not_null(const IndexPath *path, Expr *expr, PlannerInfo *root)
{
	const RelOptInfo *rel = path->path.parent;
	const Var *var = (const Var *) expr;
	ListCell *lc;

	if (IsA(expr, Const))
		return !((Const *) expr)->constisnull;
	if (!IsA(var, Var) || var->varno != rel->relid || var->varlevelsup != 0)
		return false;
	if (var->varattno <= 0 || declared_not_null(root, rel, var->varattno))
		return var->varattno != 0;
	foreach (lc, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, lc);
		const Node *condition = (const Node *) clause->rinfo->clause;

		/* All operators of an index are strict. */
		if (path->indexinfo->indexkeys[clause->indexcol] == var->varattno &&
			(IsA(condition, OpExpr) || IsA(condition, ScalarArrayOpExpr) ||
			 (IsA(condition, NullTest) && ((const NullTest *) condition)->nulltesttype == IS_NOT_NULL)))
			return true;
	}
	return false;
}
