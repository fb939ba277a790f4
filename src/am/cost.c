/*-------------------------------------------------------------------------
 *
 * cost.c
 *	  Cost estimates.
 *
 * A scan costs a fixed amount to start, a little for each probed interval, and a little
 * for each entry.  A mirror has no pages to read.  The fixed amount is that of one random
 * page, which nbtree is charged for its leaf: a scan for one key then costs slightly more
 * than nbtree's, and a scan for several keys much less.  Repeated scans (a nested loop)
 * pay the fixed amount once, because the mirror is in memory after the first.  On a GPU
 * each of them also pays for the round trip.  Selectivities and correlation come from
 * core's statistics.
 *
 * If no mirror is to be had, scans read the whole journal (mirror/fallback.c), and that
 * is what they cost.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "index/index.h"
#include "index/index_stems.h"
#include "mirror/mirror.h"
#include "reader/reader.h"
#include "side/side.h"

/* In units of cpu_operator_cost: about 2 us for a scan's set-up, 0.1 us a probe. */
#define SETUP_OPERATORS 200
#define PROBE_OPERATORS 10

/* In the same units: there and back between a backend and a GPU, some 8 us. */
#define ROUND_TRIP_OPERATORS 1500

/* Reading a record of the journal and seeing that it is not wanted. */
#define RECORD_OPERATORS 4

/* Comparisons of a sort, and of a search in what was sorted, in a file perhaps. */
#define SORT_OPERATORS 0.5
#define SEARCH_OPERATORS 20

/* Finding the side values of a row (side/side.h): two waits for memory, taken to be 80 ns together. */
#define SIDE_OPERATORS 8

/* The same if rows come in the order of the heap: they are in the cache by then. */
#define NEAR_SIDE_OPERATORS 2

/* The same if a GPU that has a copy of them adds them up. */
#define DEVICE_SIDE_OPERATORS 0.1

/* Rows that are worth a GPU's round trip (reader/device_groups.c). */
#define DEVICE_SIDE_ROWS 4096

/*
 * Looking a row up by its TID where the visibility map does not vouch for it: a lock, and a search of its
 * chain.
 */
#define LOOK_UP_OPERATORS 15

/*
 * Putting an entry of a run of texts in the order of its value, beside looking its row up, for each halving
 * of the run; the entries that a run has at least; and the share that begins like the first one, where it is
 * not known.
 */
#define ORDER_OPERATORS 2
#define LEAST_RUN 4
#define FIRST_RUN_SHARE 0.01

/*
 * Passes over the journal that a scan for one set of keys after the other makes: the last one keeps all of
 * it.
 */
#define JOURNAL_PASSES 2

/*
 * A returned entry costs this share of nbtree's cpu_index_tuple_cost; more if a row is made of
 * it.
 */
#define ENTRY_SHARE 0.5
#define ROW_SHARE 2.0

/* What ANALYZE has seen of a column of an index, to be released; no valid tuple: nothing. */
static HeapTuple
column_statistics(PlannerInfo *root, const IndexOptInfo *index, int column)
{
	const RangeTblEntry *rte = planner_rt_fetch(index->rel->relid, root);

	/* An expression's statistics are the index's own. */
	if (index->indexkeys[column] == 0)
		return SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(index->indexoid), Int16GetDatum(column + 1),
							   BoolGetDatum(false));
	return SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid),
						   Int16GetDatum(index->indexkeys[column]), BoolGetDatum(rte->inh));
}

/*
 * The heap's correlation with the leading column, from ANALYZE; 0 if unknown.
 */
double
gpuds_scan_correlation(PlannerInfo *root, IndexOptInfo *index)
{
	double correlation = 0;
	HeapTuple tuple;
	AttStatsSlot slot;
	Oid less;

	if (!gpuds_index_orders(index))
		return 0;
	tuple = column_statistics(root, index, 0);
	if (!HeapTupleIsValid(tuple))
		return 0;
	less = get_opfamily_member(index->opfamily[0], index->opcintype[0], index->opcintype[0],
							   BTLessStrategyNumber);
	if (OidIsValid(less) &&
		get_attstatsslot(&slot, tuple, STATISTIC_KIND_CORRELATION, less, ATTSTATSSLOT_NUMBERS))
	{
		correlation = slot.numbers[0];
		if (index->reverse_sort && index->reverse_sort[0])
			correlation = -correlation;
		if (index->nkeycolumns > 1)
			correlation *= 0.75;
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(tuple);
	return correlation;
}

/* Does the condition leave one value of its column, or some single ones? */
static bool
is_equality(IndexOptInfo *index, int column, Expr *clause)
{
	Oid op;

	if (IsA(clause, NullTest))
		return ((NullTest *) clause)->nulltesttype == IS_NULL;
	if (IsA(clause, OpExpr))
		op = ((OpExpr *) clause)->opno;
	else if (IsA(clause, ScalarArrayOpExpr))
		op = ((ScalarArrayOpExpr *) clause)->opno;
	else
		return false;
	return gpuds_index_has_equality(index, column, op);
}

/*
 * The conditions that bound the scan: those on the leading columns, up to the
 * first that has no equality.  Conditions on other columns are filters; their
 * number is added to *nfilters.
 */
static List *
bounding_quals(IndexPath *path, int *nfilters)
{
	List *quals = NIL;
	int column = 0;
	bool equality = false;
	ListCell *lc;

	foreach (lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		ListCell *lq;

		if (clause->indexcol == column + 1 && equality)
		{
			column++;
			equality = false;
		}
		foreach (lq, clause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lq);

			if (clause->indexcol != column)
				(*nfilters)++;
			else
			{
				quals = lappend(quals, rinfo);
				equality |= is_equality(path->indexinfo, column, rinfo->clause);
			}
		}
	}
	return quals;
}

/*
 * gpuds_scan_entries for a scan whose share of the table's entries is known if all of its conditions bound
 * it.
 */
static double
entries_of_share(PlannerInfo *root, IndexPath *path, Selectivity share, int *nfilters)
{
	*nfilters = 0;
	(void) bounding_quals(path, nfilters);
	if (*nfilters > 0)
		return gpuds_scan_entries(root, path, nfilters);
	return Min(share * path->indexinfo->rel->tuples, path->indexinfo->tuples);
}

/* Will a scan read the journal? */
static bool
reads_journal(const IndexOptInfo *index)
{
	Relation rel;
	bool reads;

	if (index->hypothetical)
		return false;
	rel = index_open(index->indexoid, NoLock);
	reads = !gpuds_mirror_expected(rel, index->tuples);
	index_close(rel, NoLock);
	return reads;
}

/*
 * What reading the journal adds to each of so many scans for a number of intervals
 * and entries.  The first pass sorts what the first scan wants, the second one sorts all.
 */
static Cost
journal_cost(IndexOptInfo *index, double loop_count, double intervals, double entries)
{
	double records = Max(index->tuples, 2);
	double depth = log(records) / log(2);
	double passes = Min(loop_count, JOURNAL_PASSES);
	double page_cost;
	Cost cost;

	get_tablespace_page_costs(index->reltablespace, NULL, &page_cost);
	cost = passes * (index->pages * page_cost + records * RECORD_OPERATORS * cpu_operator_cost);
	cost += (loop_count >= JOURNAL_PASSES ? records : entries) * depth * SORT_OPERATORS * cpu_operator_cost;
	return cost / Max(loop_count, 1) + intervals * depth * SEARCH_OPERATORS * cpu_operator_cost;
}

/*
 * Do scans trust the visibility map (reader/visible.h)?  On a standby they do not, nor if the journal
 * answers.
 */
bool
gpuds_scan_uses_map(const IndexOptInfo *index)
{
	return !RecoveryInProgress() && !reads_journal(index);
}

/*
 * Do scans know by page states (reader/known_rows.h) what the map does not say?  Those of the standby's own,
 * too; the states of pages that have none yet are made by the first scan.
 */
bool
gpuds_scan_uses_states(const IndexOptInfo *index)
{
	return gpuds_visibility_memory_kb > 0 && !GpudsSnapshotsExpire() &&
		   get_rel_persistence(index->indexoid) == RELPERSISTENCE_PERMANENT;
}

/* What it takes to look so many rows up, beside visiting their pages (reader/visible.h). */
Cost
gpuds_scan_look_up_cost(double rows)
{
	return rows * LOOK_UP_OPERATORS * cpu_operator_cost;
}

/*
 * What an index-only scan adds: it looks up itself what core will visit; and where it visits all rows, core
 * counts on the visibility map.
 */
static Cost
unmapped_cost(PlannerInfo *root, const IndexPath *path, double loop_count, double entries)
{
	RelOptInfo *rel = path->indexinfo->rel;
	double page_cost;
	double pages;

	if (path->path.pathtype != T_IndexOnlyScan)
		return 0;
	if (gpuds_scan_uses_map(path->indexinfo))
		return gpuds_scan_look_up_cost(entries * (1 - rel->allvisfrac));
	get_tablespace_page_costs(rel->reltablespace, &page_cost, NULL);
	loop_count = Max(loop_count, 1);
	pages = index_pages_fetched(entries * loop_count, rel->pages, path->indexinfo->pages, root);
	return pages * rel->allvisfrac * page_cost / loop_count + gpuds_scan_look_up_cost(entries);
}

/* Where the columns of an index, which must not be hypothetical, lie in its key. */
void
gpuds_scan_layout(const IndexOptInfo *index, GpudsKeyLayout *layout)
{
	Relation rel = index_open(index->indexoid, NoLock);

	gpuds_key_layout(rel, layout);
	index_close(rel, NoLock);
}

/*
 * Bytes of the side values of a row, if any of the columns of an index, given by their numbers from 0 on, is
 * a side column; else 0.  Numbers may be negative.
 */
int
gpuds_scan_side_bytes(const IndexOptInfo *index, const List *columns)
{
	GpudsKeyLayout layout;
	ListCell *lc;

	if (index->hypothetical || index->ncolumns == index->nkeycolumns)
		return 0;
	gpuds_scan_layout(index, &layout);
	foreach (lc, columns)
	{
		if (lfirst_int(lc) >= layout.nkeys && gpuds_key_is_side(&layout.column[lfirst_int(lc)]))
			return layout.side_bytes;
	}
	return 0;
}

/* The share of a table's rows whose side values there is memory for. */
static double
stored_share(const IndexOptInfo *index, int bytes)
{
	const double memory = gpuds_include_memory_mb * 1024.0 * 1024.0;
	const double pages = Max(index->rel->pages, 1);
	const double rows = pages * GpudsSideRows(index->rel->tuples / pages);

	if (RecoveryInProgress() || get_rel_persistence(index->indexoid) == RELPERSISTENCE_TEMP)
		return 0;
	return Min(memory / (rows * bytes), 1);
}

/* Is a GPU to look up so many intervals in an index?  Not in one of a temporary table's. */
static bool
asks_gpu(const IndexOptInfo *index, int64 intervals)
{
	return gpuds_device_is_remote(gpuds_device_wanted(intervals)) &&
		   get_rel_persistence(index->indexoid) != RELPERSISTENCE_TEMP;
}

/*
 * Will a GPU add up the side values of so many rows?  If there is memory for all of them, it has a copy, or
 * the query's next run will find one.
 */
static bool
device_has_side(const IndexOptInfo *index, int bytes, double rows)
{
	const double pages = Max(index->rel->pages, 1);
	const double all = pages * GpudsSideRows(index->rel->tuples / pages);

	return rows >= DEVICE_SIDE_ROWS && stored_share(index, bytes) >= 1 &&
		   asks_gpu(index, (int64) Min(rows, PG_INT32_MAX)) &&
		   all * bytes < (double) gpuds_device_largest(GPUDS_ON_CUDA);
}

/*
 * What the side values of so many rows cost, of so many bytes each, whose order has so much to do with the
 * heap's; visited of them are looked up in the heap anyway.  So are those that there is no memory for.
 */
Cost
gpuds_scan_side_cost(PlannerInfo *root, const IndexOptInfo *index, int bytes, double rows, double visited,
					 double correlation)
{
	const double of_row = SIDE_OPERATORS + correlation * correlation * (NEAR_SIDE_OPERATORS - SIDE_OPERATORS);
	const double share = stored_share(index, bytes);
	const double others = Max((1 - share) * (rows - visited), 0);
	Cost cost = share * rows * of_row * cpu_operator_cost;
	double page_cost;

	if (others < 1)
		return cost;
	get_tablespace_page_costs(index->rel->reltablespace, &page_cost, NULL);
	return cost + index_pages_fetched(others, index->rel->pages, index->pages, root) * page_cost +
		   others * cpu_tuple_cost;
}

/* The same of rows whose values are added up, tested, or grouped by, and do not leave the index. */
Cost
gpuds_scan_added_side_cost(PlannerInfo *root, const IndexOptInfo *index, int bytes, double rows,
						   double visited, double correlation)
{
	if (device_has_side(index, bytes, rows))
		return DEVICE_SIDE_OPERATORS * rows * cpu_operator_cost;
	return gpuds_scan_side_cost(root, index, bytes, rows, visited, correlation);
}

/* Of an index-only scan, which returns all columns, row by row. */
static Cost
returned_side_cost(PlannerInfo *root, const IndexPath *path, double entries)
{
	const IndexOptInfo *index = path->indexinfo;
	List *columns = NIL;
	int bytes;

	if (path->path.pathtype != T_IndexOnlyScan || index->ncolumns == index->nkeycolumns)
		return 0;
	for (int i = index->nkeycolumns; i < index->ncolumns; i++)
		columns = lappend_int(columns, i);
	bytes = gpuds_scan_side_bytes(index, columns);
	return bytes > 0 ? gpuds_scan_side_cost(root, index, bytes, entries, 0, 0) : 0;
}

/*
 * What it costs to ask an index about so many keys at once, but for the keys; -1: it will read the
 * journal.
 */
Cost
gpuds_scan_start_cost(const IndexOptInfo *index, double keys)
{
	Cost cost = SETUP_OPERATORS * cpu_operator_cost;

	if (reads_journal(index))
		return -1;
	if (asks_gpu(index, (int64) Min(keys, PG_INT32_MAX)))
		cost += ROUND_TRIP_OPERATORS * cpu_operator_cost;
	return cost;
}

/* Is a GPU expected to answer a scan of an index that has about so many rows? */
bool
gpuds_scan_is_remote(const IndexOptInfo *index, double rows)
{
	const int64 weight = (int64) Min(rows / GPUDS_ENTRIES_OF_KEY, PG_INT32_MAX);

	return asks_gpu(index, weight) && !reads_journal(index);
}

/* What ANALYZE has seen of a column of an index, a text. */
typedef struct Statistics
{
	HeapTuple tuple;
	AttStatsSlot common;
	AttStatsSlot bounds;
	GpudsKeyColumn column;
	GpudsSample sample;
} Statistics;

/* How a column's texts are encoded; false: the index's file does not say it. */
static bool
find_text_column(const IndexOptInfo *index, int i, GpudsKeyColumn *column)
{
	Relation rel = index_open(index->indexoid, NoLock);
	GpudsKeyLayout layout;
	const bool found = gpuds_index_planned_layout(rel, &layout);

	index_close(rel, NoLock);
	*column = layout.column[i];
	return found;
}

/* False: it has seen nothing, or the column is no such text; else end_statistics is to be called. */
static bool
begin_statistics(PlannerInfo *root, const IndexOptInfo *index, int i, Statistics *statistics)
{
	memset(statistics, 0, sizeof(*statistics));
	if (index->hypothetical || !gpuds_index_is_lossy(index, i))
		return false;
	statistics->tuple = column_statistics(root, index, i);
	if (!HeapTupleIsValid(statistics->tuple))
		return false;
	if (!find_text_column(index, i, &statistics->column))
	{
		ReleaseSysCache(statistics->tuple);
		return false;
	}
	return true;
}

/* Reads the sample of statistics. */
static void
read_sample(Statistics *statistics)
{
	GpudsSample *sample = &statistics->sample;

	sample->bucket = 1 - ((Form_pg_statistic) GETSTRUCT(statistics->tuple))->stanullfrac;
	if (get_attstatsslot(&statistics->common, statistics->tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		for (int value = 0; value < statistics->common.nvalues; value++)
			sample->bucket -= statistics->common.numbers[value];
	}
	(void) get_attstatsslot(&statistics->bounds, statistics->tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
							ATTSTATSSLOT_VALUES);
	sample->common = statistics->common.values;
	sample->shares = statistics->common.numbers;
	sample->ncommon = statistics->common.nvalues;
	sample->bounds = statistics->bounds.values;
	sample->nbounds = statistics->bounds.nvalues;
	sample->bucket = Max(sample->bucket, 0) / Max(sample->nbounds - 1, 1);
}

static void
end_statistics(Statistics *statistics)
{
	free_attstatsslot(&statistics->common);
	free_attstatsslot(&statistics->bounds);
	ReleaseSysCache(statistics->tuple);
}

/* The constant that the planner takes for the bound of a range of an index's column; NULL: none. */
static const Const *
bound_of(PlannerInfo *root, const IndexOptInfo *index, int column, const OpExpr *clause)
{
	const Node *value;

	if (!IsA(clause, OpExpr) || gpuds_index_has_equality(index, column, clause->opno))
		return NULL;
	value = estimate_expression_value(root, lsecond(clause->args));
	return IsA(value, Const) && !((const Const *) value)->constisnull ? (const Const *) value : NULL;
}

/* The share of rows that are in the largest run that any bound among a column's conditions falls into. */
static double
share_of_bounds(PlannerInfo *root, const IndexOptInfo *index, int column, const List *quals)
{
	Statistics statistics;
	double share = 0;
	ListCell *lc;

	if (quals == NIL || !begin_statistics(root, index, column, &statistics))
		return 0;
	read_sample(&statistics);
	foreach (lc, quals)
	{
		const OpExpr *clause = (const OpExpr *) lfirst_node(RestrictInfo, lc)->clause;
		const Const *bound = bound_of(root, index, column, clause);
		Oid left;
		Oid right;

		if (bound == NULL)
			continue;
		op_input_types(clause->opno, &left, &right);
		share = Max(share,
					gpuds_key_bound_share(&statistics.column, &statistics.sample, right, bound->constvalue));
	}
	end_statistics(&statistics);
	return Min(share, 1);
}

/* The conditions of a path on a column, of those that are among the given ones. */
static List *
quals_of_column(const IndexPath *path, int column, const List *among)
{
	List *quals = NIL;
	ListCell *lc;
	ListCell *lq;

	foreach (lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);

		foreach (lq, clause->indexquals)
		{
			if (clause->indexcol == column && list_member_ptr(among, lfirst(lq)))
				quals = lappend(quals, lfirst(lq));
		}
	}
	return quals;
}

/*
 * The share of an index's entries that conditions leave.  Of texts whose range has bounds in runs of those
 * that begin alike (key/text.h), these runs are left as a whole.
 */
static Selectivity
share_left(PlannerInfo *root, const IndexPath *path, List *quals, Selectivity selectivity)
{
	IndexOptInfo *index = path->indexinfo;
	List *others = NIL;
	double share = 1;
	bool runs = false;

	if (!gpuds_index_orders(index) || !gpuds_index_has_lossy(index))
		return selectivity;
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		List *of_column = quals_of_column(path, i, quals);
		const double of_bounds = share_of_bounds(root, index, i, of_column);

		if (of_bounds == 0)
			others = list_concat(others, of_column);
		else
			share *= of_bounds;
		runs |= of_bounds > 0;
	}
	if (!runs)
		return selectivity;
	share *= clauselist_selectivity(root, add_predicate_to_index_quals(index, others), index->rel->relid,
									JOIN_INNER, NULL);
	return Max(selectivity, share);
}

/*
 * Entries that a scan goes through: those that its bounds leave.  *nfilters: conditions that each is
 * tried by.
 */
double
gpuds_scan_entries(PlannerInfo *root, IndexPath *path, int *nfilters)
{
	IndexOptInfo *index = path->indexinfo;
	Selectivity selectivity;
	List *bounding;

	*nfilters = 0;
	bounding = bounding_quals(path, nfilters);
	selectivity = clauselist_selectivity(root, add_predicate_to_index_quals(index, bounding),
										 index->rel->relid, JOIN_INNER, NULL);
	return Min(share_left(root, path, bounding, selectivity) * index->rel->tuples, index->tuples);
}

/* Does a scan give rows in an order that is wanted, of which entries of texts do not tell all? */
static bool
orders_texts(const IndexPath *path)
{
	return path->path.pathkeys != NIL && path->path.pathtype != T_IndexOnlyScan &&
		   gpuds_index_orders(path->indexinfo) && gpuds_index_has_lossy(path->indexinfo);
}

/* Is a column compared with one value by equality?  Then its order is not wanted. */
static bool
is_fixed(const IndexPath *path, int column)
{
	ListCell *lc;
	ListCell *lq;

	foreach (lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);

		foreach (lq, clause->indexquals)
		{
			Expr *expr = lfirst_node(RestrictInfo, lq)->clause;

			if (clause->indexcol == column && IsA(expr, OpExpr) && is_equality(path->indexinfo, column, expr))
				return true;
		}
	}
	return false;
}

/* Runs of a column as statistics had them, which are a row of a catalog. */
typedef struct KnownRuns
{
	Oid index;
	int column;
	const GpudsStems *stems;
	uint64 age; /* of the stems, which may have been freed since then */
	ItemPointerData row;
	TransactionId xmin; /* of the row */
	GpudsRunShares shares;
} KnownRuns;

/* Columns whose runs are remembered: a plan has many paths, and each would encode all texts of a sample. */
#define KNOWN_RUNS 16

/* The runs of a column by its statistics. */
static GpudsRunShares
runs_of_statistics(const IndexOptInfo *index, int column, Statistics *statistics)
{
	static KnownRuns known[KNOWN_RUNS];
	KnownRuns *runs = &known[(index->indexoid + column) % KNOWN_RUNS];
	const TransactionId xmin = HeapTupleHeaderGetRawXmin(statistics->tuple->t_data);
	GpudsRunShares shares;

	if (runs->index == index->indexoid && runs->column == column && runs->stems == statistics->column.stems &&
		runs->age == gpuds_index_stems_age() && runs->xmin == xmin &&
		ItemPointerEquals(&runs->row, &statistics->tuple->t_self))
		return runs->shares;
	read_sample(statistics);
	shares = gpuds_key_run_shares(&statistics->column, &statistics->sample);
	*runs = (KnownRuns){ .index = index->indexoid,
						 .column = column,
						 .stems = statistics->column.stems,
						 .age = gpuds_index_stems_age(),
						 .row = statistics->tuple->t_self,
						 .xmin = xmin,
						 .shares = shares };
	return shares;
}

/*
 * What is known of the runs that a scan of texts puts in order (reader/value_order.h): the shares of the
 * column that has most rows in runs.
 */
static GpudsRunShares
find_runs(PlannerInfo *root, const IndexPath *path)
{
	static const GpudsRunShares unknown = { FIRST_RUN_SHARE, 1 };
	const IndexOptInfo *index = path->indexinfo;
	GpudsRunShares most = { 0, 0 };

	for (int i = 0; i < index->nkeycolumns; i++)
	{
		GpudsRunShares shares = unknown;
		Statistics statistics;

		if (!gpuds_index_is_lossy(index, i) || is_fixed(path, i))
			continue;
		if (begin_statistics(root, index, i, &statistics))
		{
			shares = runs_of_statistics(index, i, &statistics);
			end_statistics(&statistics);
		}
		/* of columns behind the first one a run is a part only */
		most.of_one = i == 0 ? Min(shares.of_one, 1) : most.of_one;
		most.of_all = Max(most.of_all, Min(shares.of_all, 1));
	}
	return most;
}

/* What it costs to look so many rows of runs up, and to put them in order. */
static Cost
order_cost(double rows, double run)
{
	return gpuds_scan_look_up_cost(rows) +
		   rows * ORDER_OPERATORS * log(Max(run, LEAST_RUN)) / log(2) * cpu_operator_cost;
}

/*
 * Adds what it costs that a scan of texts gives so many entries in order.  Rows that begin like the first one
 * are looked up before it.
 */
static void
add_order_cost(PlannerInfo *root, const IndexPath *path, double entries, Cost *startup, Cost *total)
{
	const GpudsRunShares runs = find_runs(root, path);
	const double run = Min(entries, runs.of_one * path->indexinfo->tuples);
	const Cost first = order_cost(run, run);

	*startup += first;
	*total += Max(first, order_cost(entries * runs.of_all, run));
}

/*
 * amcostestimate.  A mirror has no pages: what is charged is a start, of which repetitions share one random
 * page, each key and each entry, and for an index-only scan the rows that need the heap.  If no mirror is to
 * be expected, the start includes reading the journal, and *pages is 0, so that core plans no workers.
 * Waits for nothing and loads nothing.
 */
void
gpuds_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
					Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	const bool from_journal = reads_journal(index);
	GenericCosts costs;
	QualCost qual_cost;
	double entries;
	double share;
	int nfilters;

	MemSet(&costs, 0, sizeof(costs));
	genericcostestimate(root, path, loop_count, &costs);
	costs.indexSelectivity = share_left(root, path, get_quals_from_indexclauses(path->indexclauses),
										costs.indexSelectivity);
	cost_qual_eval(&qual_cost, get_quals_from_indexclauses(path->indexclauses), root);

	entries = entries_of_share(root, path, costs.indexSelectivity, &nfilters);
	*startup = costs.spc_random_page_cost / Max(loop_count, 1) + SETUP_OPERATORS * cpu_operator_cost +
			   qual_cost.startup + costs.num_sa_scans * PROBE_OPERATORS * cpu_operator_cost;
	if (asks_gpu(index, costs.num_sa_scans))
		*startup += ROUND_TRIP_OPERATORS * cpu_operator_cost;
	share = path->path.pathtype == T_IndexOnlyScan ? ROW_SHARE : ENTRY_SHARE;
	*total = *startup + entries * (cpu_index_tuple_cost * share + nfilters * cpu_operator_cost);

	*total += unmapped_cost(root, path, loop_count, entries);
	*total += returned_side_cost(root, path, entries);
	if (orders_texts(path))
		add_order_cost(root, path, entries, startup, total);
	if (from_journal)
	{
		Cost cost = journal_cost(index, loop_count, costs.num_sa_scans, entries);

		*startup += cost;
		*total += cost;
	}

	*selectivity = costs.indexSelectivity;
	*correlation = gpuds_scan_correlation(root, index);
	/* Core plans workers by it; where each process would read the journal for itself, none. */
	*pages = from_journal ? 0 : costs.numIndexPages;
}
