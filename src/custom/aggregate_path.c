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

#include <math.h>

#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
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
#include "custom/bucket.h"
#include "custom/custom.h"
#include "custom/filter.h"
#include "custom/granule.h"
#include "custom/percentile.h"
#include "index/index.h"
#include "reader/hash_groups.h"
#include "key/key.h"

/* Adding up what an entry has in a column, in units of cpu_operator_cost. */
#define AGG_COLUMN_OPERATORS 0.2

/*
 * In the same units: testing a column of an entry; finding an entry's group by hash, making a group, and its
 * parts being put together; and adding to a group that is not in the processor's cache.
 */
#define TEST_OPERATORS 0.4
#define HASH_OPERATORS 1.0
#define GROUP_OPERATORS 30
#define SCATTERED_OPERATORS 1.5
#define CACHE_BYTES (1024 * 1024)

/* A value that core goes on with, in the same units, if its rows follow each other: often it has but one. */
#define VALUE_ROW_OPERATORS 5

/* Columns that are added up for a variance, about: one, and one of squares, or of bigints three. */
#define VARIANCE_COLUMNS 3

/* The table of groups, and its memory. */
#define TABLE_OPERATORS 4000

/* What a value of an expression takes beside its evaluation. */
#define VALUE_OPERATORS 6

/* Evaluations for a bucket that comes with another value of the columns before. */
#define BUCKET_EVALUATIONS 4

/* The column of the table that an expression is; NULL: it is none. */
const Var *
gpuds_wanted_column(const RelOptInfo *rel, const Expr *expr)
{
	const Var *var = (const Var *) gpuds_below_domain(expr);

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
	return aggref->aggdistinct == NIL && aggref->aggorder == NIL && aggref->agglevelsup == 0 &&
		   aggref->aggsplit == AGGSPLIT_SIMPLE;
}

/* Makes the kind that of a part, if an aggregate's parts are wanted; false: it has only parts. */
static bool
set_split(const Aggref *aggref, Oid type, GpudsAggregateKind *kind)
{
	if (DO_AGGSPLIT_SKIPFINAL(aggref->aggsplit))
		*kind = gpuds_aggregate_part(*kind, type);
	return gpuds_aggregate_has_result(*kind);
}

/* The same of an aggregate of a CASE with a constant of a type. */
static bool
match_constant(const Aggref *aggref, Oid type, GpudsAggregateKind *kind)
{
	*kind = GPUDS_COUNT;
	if (aggref->aggfnoid == F_COUNT_ANY)
		return true;
	if (!gpuds_aggregate_kind(aggref->aggfnoid, type, kind))
		return false;
	return set_split(aggref, type, kind);
}

/* How an aggregate's result comes of a scan; false: it does not. */
static bool
match_aggregate(const GpudsWanted *wanted, const IndexPath *path, const Aggref *aggref,
				GpudsAggregateKind *kind, int *column)
{
	GpudsAggregateCase parts;
	Expr *arg;
	const Var *var;

	*column = -1;
	*kind = GPUDS_COUNT_ROWS;
	if (aggref->aggfnoid == F_COUNT_)
		return true;
	if (list_length(aggref->args) != 1)
		return false;
	arg = linitial_node(TargetEntry, aggref->args)->expr;
	if (gpuds_aggregate_case(aggref, &parts))
	{
		if (parts.value)
			return match_constant(aggref, parts.type, kind);
		arg = (Expr *) parts.column;
	}
	if (aggref->aggfnoid == F_COUNT_ANY && gpuds_covering_not_null(path, arg, wanted->root))
		return true;
	var = gpuds_wanted_column(wanted->rel, arg);
	if (var == NULL)
		return false;
	if (aggref->aggfnoid == F_COUNT_ANY)
		*kind = GPUDS_COUNT;
	else if (!gpuds_aggregate_kind(aggref->aggfnoid, getBaseType(var->vartype), kind) ||
			 !gpuds_key_can_aggregate(var->vartype))
		return false;
	if (!set_split(aggref, getBaseType(var->vartype), kind))
		return false;
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
	if (!list_member(wanted->groups, var) || (wanted->bucket && equal(var, wanted->bucket_column)))
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
	if (wanted->bucket == NULL)
		return false;
	*column = index_column(path->indexinfo, wanted->bucket_column, true);
	return *column >= 0 && *column < path->indexinfo->nkeycolumns &&
		   !(path->indexinfo->reverse_sort && path->indexinfo->reverse_sort[*column]);
}

/* Does it depend on conditions what a row adds to an aggregate? */
static bool
has_conditions(const Aggref *aggref)
{
	GpudsAggregateCase parts;

	return aggref->aggfilter || gpuds_aggregate_case(aggref, &parts);
}

/* Can these be tested in entries?  Adds the columns that are tested to a list. */
static bool
can_test_conditions(const GpudsWanted *wanted, const IndexOptInfo *index, const Aggref *aggref,
					List **columns)
{
	GpudsAggregateCase parts;

	if (aggref->aggfilter && !gpuds_filter_can_test(index, wanted->rel->relid, aggref->aggfilter, columns))
		return false;
	return !gpuds_aggregate_case(aggref, &parts) ||
		   gpuds_filter_can_test(index, wanted->rel->relid, parts.condition, columns);
}

/* Can an aggregate's conditions be tested?  With them, rows are counted as what is not NULL. */
static bool
match_filter(const GpudsWanted *wanted, const IndexPath *path, const Aggref *aggref, GpudsAggregateKind *kind)
{
	List *columns = NIL;

	if (!has_conditions(aggref))
		return true;
	if (*kind == GPUDS_COUNT_ROWS)
		*kind = GPUDS_COUNT;
	return can_test_conditions(wanted, path->indexinfo, aggref, &columns);
}

/* The scan's columns as AGGREGATE_KINDS and AGGREGATE_COLUMNS; false: it has not all that is wanted. */
static bool
match(const GpudsWanted *wanted, const IndexPath *path, List **kinds, List **columns)
{
	ListCell *lc;

	*kinds = *columns = NIL;
	foreach (lc, wanted->exprs)
	{
		const Node *expr = lfirst(lc);
		GpudsAggregateKind kind = GPUDS_GROUP_COLUMN;
		int column;
		bool matches;

		if (IsA(expr, Aggref))
			matches = match_aggregate(wanted, path, (const Aggref *) expr, &kind, &column) &&
					  match_filter(wanted, path, (const Aggref *) expr, &kind);
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
bool
gpuds_is_fixed_column(const IndexPath *path, int column)
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

	/* Rows of a group follow each other only if there is an order, and a function of a column ascends. */
	if (!gpuds_index_orders(index) ||
		(wanted->bucket && (list_length(wanted->groups) > 1 || !gpuds_ascending_column(wanted->bucket))))
		return -1;
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
		else if (!gpuds_is_fixed_column(path, i))
			return -1;
	}
	return bms_num_members(found) == list_length(wanted->groups) ? index->nkeycolumns : -1;
}

/* Can groups be hashed: are they of columns whose values are equal by their bytes? */
static bool
can_hash(const GpudsWanted *wanted, const IndexPath *path)
{
	ListCell *lc;
	ListCell *lc2;

	/* The runs of an expression's values are found by their hashes. */
	if (wanted->bucket &&
		(!gpuds_index_orders(path->indexinfo) ||
		 !OidIsValid(
			 lookup_type_cache(exprType((const Node *) wanted->bucket), TYPECACHE_HASH_PROC)->hash_proc)))
		return false;
	forboth(lc, wanted->groups, lc2, wanted->operators)
	{
		const Var *var = lfirst(lc);

		if (wanted->bucket && equal(var, wanted->bucket_column))
			continue;
		if (!gpuds_key_is_bytes(var->vartype) ||
			lookup_type_cache(var->vartype, TYPECACHE_EQ_OPR)->eq_opr != lfirst_oid(lc2))
			return false;
	}
	return true;
}

/* Is a group's operator the equality that bucket.c compares the values of its function by? */
static bool
is_default_equality(const SortGroupClause *clause, const Expr *expr)
{
	const TypeCacheEntry *type = lookup_type_cache(exprType((const Node *) expr),
												   TYPECACHE_EQ_OPR | TYPECACHE_CMP_PROC_FINFO);

	return clause->eqop == type->eq_opr && OidIsValid(type->cmp_proc_finfo.fn_oid);
}

/* What a group's clause is of the table, which may be a child of the one that the query names. */
static Expr *
group_expr(const GpudsWanted *wanted, SortGroupClause *clause)
{
	Node *expr = GpudsBelowGrouping(wanted->root,
									get_sortgroupclause_expr(clause, wanted->root->processed_tlist));
	RelOptInfo *rel = wanted->rel;

	if (rel->reloptkind != RELOPT_OTHER_MEMBER_REL)
		return (Expr *) expr;
	return (Expr *) GpudsTranslate(wanted->root, expr, rel,
								   find_base_rel(wanted->root, bms_singleton_member(rel->top_parent_relids)));
}

/* Are rows grouped by an expression, as far as is known? */
static bool
is_group(const GpudsWanted *wanted, const Expr *expr)
{
	return (wanted->bucket && equal(expr, wanted->bucket)) || list_member(wanted->groups, expr);
}

/*
 * What rows are grouped by, of the query's clauses; false: it is something else than columns of the table, or
 * a function of one.
 */
bool
gpuds_wanted_collect_groups(GpudsWanted *wanted, List *clauses)
{
	Oid bucket_operator = InvalidOid;
	ListCell *lc;

	foreach (lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Expr *expr = group_expr(wanted, clause);
		const Var *column = IsA(expr, Var) ? (const Var *) expr : gpuds_granule_column(expr);

		if (column == NULL || gpuds_wanted_column(wanted->rel, (const Expr *) column) == NULL)
			return false;
		if (is_group(wanted, expr))
		{
			/* A set may have one of two equal columns, but nodes above find columns by their expressions. */
			if (wanted->root->parse->groupingSets != NIL)
				return false;
			continue;
		}
		if (!IsA(expr, Var))
		{
			if (wanted->bucket || !is_default_equality(clause, expr))
				return false;
			wanted->bucket = expr;
			wanted->bucket_column = (Var *) column;
			wanted->exprs = list_make1(expr);
			bucket_operator = clause->eqop;
			continue;
		}
		wanted->groups = lappend(wanted->groups, (void *) column);
		wanted->operators = lappend_oid(wanted->operators, clause->eqop);
	}
	if (wanted->bucket == NULL)
		return true;
	if (list_member(wanted->groups, wanted->bucket_column))
		return false;
	wanted->groups = lappend(wanted->groups, wanted->bucket_column);
	wanted->operators = lappend_oid(wanted->operators, bucket_operator);
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
		if (wanted->apart && IsA(node, Aggref) &&
			gpuds_percentile_kind((const Aggref *) node) != GPUDS_PERCENTILE_OTHER)
		{
			wanted->percentiles = list_append_unique(wanted->percentiles, node);
			return false;
		}
		if (IsA(node, Aggref) && !is_simple((const Aggref *) node))
			return true;
		wanted->exprs = list_append_unique(wanted->exprs, node);
		return false;
	}
	/* Core's node that has the grouping sets knows which of them a row is of. */
	if (IsA(node, GroupingFunc))
		return wanted->root->parse->groupingSets == NIL;
	if (IsA(node, PlaceHolderVar) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect_expr, arg);
}

/* Is any of the aggregates one that core makes of parts only? */
bool
gpuds_wanted_needs_parts(const GpudsWanted *wanted)
{
	ListCell *lc;

	foreach (lc, wanted->exprs)
	{
		const Aggref *aggref = lfirst(lc);
		GpudsAggregateKind kind;

		if (IsA(aggref, Aggref) && list_length(aggref->aggargtypes) == 1 &&
			gpuds_aggregate_kind(aggref->aggfnoid, linitial_oid(aggref->aggargtypes), &kind) &&
			!gpuds_aggregate_has_result(kind))
			return true;
	}
	return false;
}

/* Finds out what the grouped relation wants of wanted->rel; false: something that no node of ours has. */
bool
gpuds_wanted_collect(GpudsWanted *wanted, const RelOptInfo *output, Node *having)
{
	Node *exprs = GpudsBelowGrouping(wanted->root, (Node *) output->reltarget->exprs);

	return gpuds_wanted_collect_groups(wanted, wanted->root->parse->groupClause) &&
		   !collect_expr(exprs, wanted) && !collect_expr(GpudsBelowGrouping(wanted->root, having), wanted) &&
		   (wanted->exprs != NIL || wanted->percentiles != NIL);
}

static Plan *
plan_aggregate(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
			   List *custom_plans)
{
	CustomScan *scan = gpuds_plan_of_path(root, path, &gpuds_aggregate_methods, tlist, custom_plans);
	ListCell *lc;

	/* Core does not look for parameters in custom_scan_tlist. */
	foreach (lc, (List *) linitial(path->custom_private))
	{
		if (IsA(lfirst(lc), Aggref))
			scan->custom_exprs = list_concat(scan->custom_exprs, gpuds_filter_params(lfirst(lc)));
	}
	return &scan->scan.plan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "GpudsAggregate",
	.PlanCustomPath = plan_aggregate,
};

/* Rows that a scan gives before its filter, about. */
static double
rows_before_filter(const IndexPath *child)
{
	return Max(child->indexselectivity * child->path.parent->tuples, child->path.rows);
}

/*
 * What the filters of a scan's rows and of aggregates cost, which test columns of entries.  Adds the columns
 * that they test to a list.
 */
static Cost
filter_cost(const GpudsWanted *wanted, const IndexPath *child, List **columns)
{
	List *of_rows = gpuds_covering_filter(child);
	List *of_aggs = NIL;
	ListCell *lc;

	foreach (lc, wanted->exprs)
	{
		const Aggref *aggref = lfirst(lc);

		if (IsA(aggref, Aggref))
			(void) can_test_conditions(wanted, child->indexinfo, aggref, &of_aggs);
	}
	*columns = list_concat(list_concat(*columns, of_rows), of_aggs);
	return TEST_OPERATORS * cpu_operator_cost *
		   (list_length(of_rows) * rows_before_filter(child) + list_length(of_aggs) * child->path.rows);
}

/* The range of values that a column's statistics say that it has; false: they say nothing. */
static bool
range_of_column(const GpudsWanted *wanted, int64 *lowest, int64 *highest)
{
	const Oid type = getBaseType(wanted->bucket_column->vartype);
	VariableStatData data;
	AttStatsSlot slot;
	bool found = false;

	examine_variable(wanted->root, (Node *) wanted->bucket_column, 0, &data);
	if (HeapTupleIsValid(data.statsTuple) &&
		get_attstatsslot(&slot, data.statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		found = slot.nvalues > 1;
		if (found)
		{
			*lowest = gpuds_bucket_number(type, slot.values[0]);
			*highest = gpuds_bucket_number(type, slot.values[slot.nvalues - 1]);
		}
		free_attstatsslot(&slot);
	}
	ReleaseVariableStats(data);
	return found;
}

/* The share of a table's rows that conditions on the bucket's column leave. */
static double
share_of_range(const GpudsWanted *wanted)
{
	List *clauses = NIL;
	ListCell *lc;

	foreach (lc, wanted->rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		const Var *column = gpuds_granule_column(rinfo->clause);

		if (column && equal(column, wanted->bucket_column))
			clauses = lappend(clauses, rinfo);
	}
	return clauselist_selectivity(wanted->root, clauses, 0, JOIN_INNER, NULL);
}

/* How many buckets there are, about; -1: it is not known. */
static double
buckets_of(const GpudsWanted *wanted, const GpudsGranule *granule)
{
	int64 lowest;
	int64 highest;
	double width;

	if (granule->function == NULL || !range_of_column(wanted, &lowest, &highest))
		return -1;
	width = gpuds_bucket_width(wanted->root, granule, wanted->bucket_column, lowest, highest);
	return width < 0
			   ? -1
			   : clamp_row_est(((double) highest - (double) lowest) * share_of_range(wanted) / width + 1);
}

/* The columns of the key before the bucket's, as far as they differ among a scan's rows. */
static List *
columns_before_bucket(const GpudsWanted *wanted, const IndexPath *child)
{
	const IndexOptInfo *index = child->indexinfo;
	const int column = index_column(index, wanted->bucket_column, true);
	List *before = NIL;

	for (int i = 0; i < column; i++)
	{
		if (!gpuds_is_fixed_column(child, i) && index->indexkeys[i] != 0)
			before = lappend(before, list_nth_node(TargetEntry, index->indextlist, i)->expr);
	}
	return before;
}

/*
 * How many values a column of the key has among a scan's rows, at most, by conditions on it: as many as an
 * array has elements, or a share of all values as large as that of the rows.
 */
static double
values_of_column(const GpudsWanted *wanted, const IndexPath *child, const Expr *column)
{
	const RelOptInfo *rel = child->path.parent;
	double most = child->path.rows;
	ListCell *lc;

	foreach (lc, child->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, lc);
		const Expr *condition = clause->rinfo->clause;
		const TargetEntry *entry = list_nth_node(TargetEntry, child->indexinfo->indextlist, clause->indexcol);

		if (!equal(entry->expr, column))
			continue;
		if (IsA(condition, ScalarArrayOpExpr))
			most = Min(most,
					   GpudsArrayLength(wanted->root, lsecond(((ScalarArrayOpExpr *) condition)->args)));
		else
			most = Min(most, ceil(estimate_num_groups(wanted->root, list_make1((void *) column), rel->tuples,
													  NULL, NULL) *
								  child->path.rows / Max(rel->tuples, 1)));
	}
	return Max(most, 1);
}

/* How many values columns have together among a scan's rows. */
static double
values_of_columns(const GpudsWanted *wanted, const IndexPath *child, List *columns)
{
	double most = 1;
	ListCell *lc;

	foreach (lc, columns)
		most *= values_of_column(wanted, child, lfirst(lc));
	return Min(most, estimate_num_groups(wanted->root, columns, child->path.rows, NULL, NULL));
}

/*
 * What it costs to evaluate a function of a column for each of its buckets in a scan's rows.  They come anew
 * for each value of the columns before; and where a bucket's end is not where the one before leads to expect
 * it, it takes some evaluations more.
 */
static Cost
bucket_cost(const GpudsWanted *wanted, const IndexPath *child)
{
	const double rows = child->path.rows;
	List *before;
	GpudsGranule granule;
	QualCost each;
	double buckets;
	double evaluations;

	if (wanted->bucket == NULL || !wanted->hashed)
		return 0;
	gpuds_granule_find(wanted->bucket, wanted->bucket_column, &granule);
	before = columns_before_bucket(wanted, child);
	buckets = buckets_of(wanted, &granule);
	if (buckets < 0)
		buckets = estimate_num_groups(wanted->root, list_make1(wanted->bucket_column), rows, NULL, NULL);
	if (before != NIL)
		buckets *= values_of_columns(wanted, child, before);
	evaluations = Min(buckets, rows) * (before != NIL && granule.function ? BUCKET_EVALUATIONS : 1);
	cost_qual_eval_node(&each, (Node *) wanted->bucket, wanted->root);
	return each.startup + (each.per_tuple + VALUE_OPERATORS * cpu_operator_cost) * evaluations;
}

/*
 * How many groups there are in so many rows, about, if a column's distinct values are wanted of each: as many
 * as are drawn of all pairs of a group and a value.  Core's estimate of several columns together is at most a
 * tenth of the rows if there are no statistics of them; it does not sort by less than all rows for that.
 */
static double
pairs_of(const GpudsWanted *wanted, double rows)
{
	GpudsWanted groups = *wanted;
	double pairs = estimate_num_groups(wanted->root, list_make1(linitial(wanted->groups)), rows, NULL, NULL);

	groups.values = false;
	groups.groups = list_copy_tail(wanted->groups, 1);
	if (groups.groups == NIL)
		return pairs;
	pairs *= gpuds_wanted_groups(&groups, rows);
	return clamp_row_est(Min(pairs * (1 - exp(-rows / pairs)), rows));
}

/*
 * How many groups there are in so many rows, about.  Core takes a function's values for as many as its
 * column's; but a bucket has a width.
 */
double
gpuds_wanted_groups(const GpudsWanted *wanted, double rows)
{
	List *columns = wanted->bucket ? list_delete(list_copy(wanted->groups), wanted->bucket_column)
								   : wanted->groups;
	GpudsGranule granule;
	double buckets;

	if (wanted->values && wanted->rel->statlist == NIL)
		return pairs_of(wanted, rows);
	if (wanted->bucket == NULL)
		return estimate_num_groups(wanted->root, columns, rows, NULL, NULL);
	gpuds_granule_find(wanted->bucket, wanted->bucket_column, &granule);
	buckets = buckets_of(wanted, &granule);
	if (buckets < 0)
		return estimate_num_groups(wanted->root, lappend(columns, wanted->bucket), rows, NULL, NULL);
	if (granule.values > 0)
		buckets = Min(buckets, granule.values);
	if (columns != NIL)
		buckets *= estimate_num_groups(wanted->root, columns, rows, NULL, NULL);
	return clamp_row_est(Min(buckets, rows));
}

/* What it costs to find the groups of so many rows by hash, and to keep so many aggregates of each. */
static Cost
hash_cost(const GpudsWanted *wanted, double rows, int nagg)
{
	const double groups = gpuds_wanted_groups(wanted, rows);
	const double bytes = groups * (sizeof(GpudsHashGroup) + nagg * sizeof(PartialAgg));
	double operators = TABLE_OPERATORS + rows * HASH_OPERATORS + groups * GROUP_OPERATORS;

	if (bytes > CACHE_BYTES)
		operators += rows * (1 + nagg) * SCATTERED_OPERATORS;
	return operators * cpu_operator_cost;
}

/* How many columns are added up, about. */
static int
count_agg_columns(List *kinds, List *columns)
{
	int nagg = 0;
	ListCell *lc;
	ListCell *lc2;

	forboth(lc, kinds, lc2, columns)
	{
		if (lfirst_int(lc2) >= 0)
			nagg += lfirst_int(lc) == GPUDS_PART_VARIANCE ? VARIANCE_COLUMNS : 1;
	}
	return nagg;
}

/* What an aggregate of a scan's entries costs beyond counting them. */
static Cost
extra_cost(const GpudsWanted *wanted, const IndexPath *child, List *kinds, List *columns)
{
	const double before = rows_before_filter(child);
	List *all = list_copy(columns);
	Cost cost = filter_cost(wanted, child, &all) + bucket_cost(wanted, child);
	const int side_bytes = gpuds_scan_side_bytes(child->indexinfo, all);
	const int nagg = count_agg_columns(kinds, columns);

	cost += nagg * AGG_COLUMN_OPERATORS * cpu_operator_cost * child->path.rows;
	if (wanted->hashed && wanted->groups != NIL)
		cost += hash_cost(wanted, child->path.rows, nagg);
	if (side_bytes > 0)
		cost += gpuds_scan_added_side_cost(wanted->root, child->indexinfo, side_bytes, before,
										   before *
											   gpuds_covering_unmapped(child->indexinfo, child->path.parent),
										   gpuds_scan_correlation(wanted->root, child->indexinfo));
	return cost;
}

/* Sets rows and costs of a path whose scan below has been found. */
static void
set_cost(const GpudsWanted *wanted, IndexPath *child, Path *path, List *kinds, List *columns)
{
	const Cost count_cost = gpuds_covering_count_cost(wanted->root, child) +
							extra_cost(wanted, child, kinds, columns);

	path->rows = 1;
	path->startup_cost = count_cost;
	if (wanted->groups != NIL)
	{
		path->rows = gpuds_wanted_groups(wanted, child->path.rows);
		/*
		 * The first group is there when its rows have been added up; but a device adds up all buckets
		 * at once, and what is hashed is complete with the last row.
		 */
		if (wanted->bucket == NULL && !wanted->hashed)
			path->startup_cost = child->path.startup_cost +
								 (count_cost - child->path.startup_cost) / Max(path->rows, 1);
	}
	path->total_cost = count_cost + path->rows * cpu_tuple_cost;
	if (wanted->distinct && !wanted->hashed)
		path->total_cost += path->rows * VALUE_ROW_OPERATORS * cpu_operator_cost;
	GpudsAddDisabledNodes(path, &child->path);
}

/* A number that a plan has. */
static Float *
float_of(double number)
{
	return makeFloat(psprintf("%.0f", number));
}

/*
 * What core's nodes would compare groups by that no node above puts together; of a function of a column, as
 * if it were of the column.
 */
static List *
equalities_of(const GpudsWanted *wanted, const RelOptInfo *parent)
{
	List *equalities = NIL;
	ListCell *lc;
	ListCell *lc2;

	if (parent == wanted->rel)
		return NIL;
	forboth(lc, wanted->groups, lc2, wanted->operators)
	{
		Expr *column = lfirst(lc);

		equalities = lappend(equalities, make_opclause(lfirst_oid(lc2), BOOLOID, false, column, column,
													   InvalidOid, exprCollation((Node *) column)));
	}
	return equalities;
}

static GpudsHashed
hashed_of(const GpudsWanted *wanted)
{
	if (wanted->groups == NIL || !wanted->hashed)
		return GPUDS_NOT_HASHED;
	return wanted->whole ? GPUDS_HASHED_WHOLE : GPUDS_HASHED_PARTS;
}

static CustomPath *
make_path(const GpudsWanted *wanted, IndexPath *child, RelOptInfo *parent, PathTarget *target, Node *having)
{
	CustomPath *path = makeNode(CustomPath);
	List *kinds;
	List *columns;
	int groups = -1;

	if (wanted->groups != NIL)
		groups = wanted->hashed ? 0 : group_prefix(wanted, child);
	(void) match(wanted, child, &kinds, &columns);
	path->path.pathtype = T_CustomScan;
	path->path.parent = parent;
	path->path.pathtarget = target;
	set_cost(wanted, child, &path->path, kinds, columns);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->custom_paths = list_make1(child);
	path->custom_private = list_make3(
		wanted->exprs, having,
		list_make5(kinds, columns, list_make1_int(groups), list_make1_int(hashed_of(wanted)),
				   list_make2(float_of(rows_before_filter(child)), float_of(path->path.rows))));
	lthird(path->custom_private) = lappend(lthird(path->custom_private), equalities_of(wanted, parent));
	path->methods = &path_methods;
	return path;
}

/* Has a scan all that is wanted, and what does that cost beyond its entries? */
static bool
suits(const IndexPath *path, void *arg, Cost *more)
{
	const GpudsWanted *wanted = arg;
	List *kinds;
	List *columns;

	if (!match(wanted, path, &kinds, &columns))
		return false;
	if (wanted->groups != NIL && !(wanted->hashed ? can_hash(wanted, path) : group_prefix(wanted, path) >= 0))
		return false;
	*more += extra_cost(wanted, path, kinds, columns);
	return true;
}

/* A path of a relation for what is wanted of a table; NULL: no index has it. */
CustomPath *
gpuds_wanted_path(const GpudsWanted *wanted, RelOptInfo *parent, PathTarget *target, Node *having)
{
	IndexPath *child = gpuds_covering_path(wanted->root, wanted->rel, suits, (void *) wanted);

	return child ? make_path(wanted, child, parent, target, having) : NULL;
}

/*
 * The same with groups that are hashed, and none in parts; NULL also if they are of an expression's values,
 * or seem to be more than there is memory for, so that they would have to be sorted.
 */
CustomPath *
gpuds_wanted_hashed_path(const GpudsWanted *wanted, RelOptInfo *parent, PathTarget *target, Node *having)
{
	GpudsWanted of = *wanted;
	const double groups = gpuds_wanted_groups(wanted, wanted->rel->rows);

	of.hashed = of.whole = true;
	if (wanted->bucket || groups > (double) gpuds_hash_groups_most(list_length(wanted->exprs)))
		return NULL;
	return gpuds_wanted_path(&of, parent, target, having);
}
