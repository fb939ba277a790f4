/*-------------------------------------------------------------------------
 *
 * histogram.c
 *	  The histogram of a column, as the column is now.
 *
 * ANALYZE has seen where the values of a column ended then.  Of a column that grows with time, the rows that
 * came since lie behind the last bound of the histogram, where core expects next to none.  Of btree indexes
 * core asks for the end, and lets the last part of the histogram reach to it; of others it does so since 18,
 * if they return the column.
 *
 * An index of gpuds whose structure has ranks also knows how many rows are there.  So the column gets a
 * histogram that has as many parts behind each of the old ends as rows are there, and none where there are
 * no rows any more.  Parts behind an end are of equal width.  What core estimates of the column, for scans
 * and for joins, then rests on that.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "custom/custom.h"
#include "index/index.h"
#include "key/key.h"

/* The histogram has so many bounds at most, and so many of those that ANALYZE has made are read. */
#define MOST_BOUNDS 2000
#define MOST_READ 1000

/* Rows behind an end that lie before its last part, which leads to the last row, however far away that is. */
#define NEAR_SHARE 0.98

/* Rows that are behind the ends are taken to be at most this share: the rest of the histogram must stay. */
#define MOST_BEHIND 0.95

static get_relation_stats_hook_type prev_relation_stats = NULL;

/*
 * A histogram, by codes (kernels/core/partial_agg.h).  It is about the rows that have neither NULL nor one of
 * the common values, which may lie behind its ends.
 */
typedef struct Histogram
{
	uint64 *bounds; /* ascending */
	int n;          /* 2 at least */
	uint64 *common; /* codes of the common values */
	AttStatsSlot of_common;
	double share; /* of the rows that ANALYZE has seen */
	double below; /* rows below the first bound, and later their share of the rows that it is about; ... */
	double above; /* ... and above the last one */
	double seen;  /* share of the table's rows that are not behind the ends */
} Histogram;

/*
 * The index that knows a column: ordered, of all rows, and with values that can be partial; NULL: none.  A
 * number's bounds are left as ANALYZE has seen them.
 */
static IndexOptInfo *
index_of(const RelOptInfo *rel, AttrNumber attnum)
{
	ListCell *lc;

	foreach (lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (index->indexkeys[0] == attnum && index->indpred == NIL && gpuds_covering_is_ours(index) &&
			gpuds_index_orders(index) && index->opcintype[0] != NUMERICOID &&
			gpuds_key_can_aggregate(index->opcintype[0]))
			return index;
	}
	return NULL;
}

/* The table that a query names: of a child the topmost parent that is one. */
static Index
named_table(const PlannerInfo *root, Index relid)
{
	while (root->append_rel_array && root->append_rel_array[relid] &&
		   root->simple_rte_array[root->append_rel_array[relid]->parent_relid]->rtekind == RTE_RELATION)
		relid = root->append_rel_array[relid]->parent_relid;
	return relid;
}

/*
 * May the user see all rows of the table that the query names, and so what ANALYZE has seen of it and its
 * children?  As core, but for privileges on columns, with which core's statistics are left as they are.
 */
static bool
may_see_all(PlannerInfo *root, const RelOptInfo *rel, const RangeTblEntry *rte)
{
	const Index named = named_table(root, rel->relid);
	const RangeTblEntry *named_rte = root->simple_rte_array[named];
	const Oid userid = find_base_rel(root, named)->userid;
	const Oid user = OidIsValid(userid) ? userid : GetUserId();

	return rte->securityQuals == NIL && named_rte->securityQuals == NIL &&
		   pg_class_aclcheck(named_rte->relid, user, ACL_SELECT) == ACLCHECK_OK;
}

/*
 * The codes of n of the values that ANALYZE has seen, from the first to the last; NULL: they are not of the
 * column as it is in the index.
 */
static uint64 *
read_codes(const GpudsEstimate *estimate, const GpudsColumnEnds *ends, const AttStatsSlot *slot, int n)
{
	const GpudsKeyLayout *layout = &estimate->layout;
	const Oid type = layout->column[0].type;
	const bool isnull = false;
	uint64 *codes = palloc(Max(n, 1) * sizeof(uint64));
	GpudsKeyProbe probe;

	if (slot->nvalues > 0 && getBaseType(slot->valuetype) != getBaseType(type))
		return NULL;
	gpuds_key_probe_init(&probe, layout, 1, &type);
	for (int i = 0; i < n; i++)
	{
		const int at = n > 1 ? (int) ((int64) i * (slot->nvalues - 1) / (n - 1)) : 0;
		GpudsEntry entry;

		if (!gpuds_key_probe(&probe, &slot->values[at], &isnull, 0, &entry))
			return NULL;
		codes[i] = agg_column_code(&ends->agg_column,
								   agg_column_bits(&entry, layout->nwords, ends->agg_column.place,
												   ends->agg_column.bits));
	}
	return codes;
}

/* Takes the parts away that lie outside the column's ends. */
static bool
cut_off(const GpudsColumnEnds *ends, Histogram *histogram)
{
	uint64 *bounds = histogram->bounds;
	int first = 0;
	int last = histogram->n - 1;

	if (bounds[0] >= ends->least && bounds[last] <= ends->greatest)
		return false;
	while (first < last - 1 && bounds[first + 1] <= ends->least)
		first++;
	while (last > first + 1 && bounds[last - 1] >= ends->greatest)
		last--;
	memmove(bounds, bounds + first, (last - first + 1) * sizeof(uint64));
	histogram->n = last - first + 1;
	bounds[0] = Max(bounds[0], ends->least);
	bounds[histogram->n - 1] = Min(bounds[histogram->n - 1], ends->greatest);
	/* No row is left that ANALYZE has seen. */
	if (bounds[0] >= bounds[histogram->n - 1])
	{
		histogram->n = 2;
		bounds[0] = ends->least;
		bounds[1] = ends->greatest;
	}
	return true;
}

/* How many rows lie between two codes, beside those of common values; -1: it cannot be said. */
static double
count_between(GpudsEstimate *estimate, const GpudsColumnEnds *ends, const Histogram *histogram, double seen,
			  uint64 from, uint64 to)
{
	double rows = gpuds_estimate_between(estimate, ends, from, to);

	if (rows < 0)
		return -1;
	for (int i = 0; i < histogram->of_common.nvalues; i++)
	{
		if (histogram->common[i] >= from && histogram->common[i] <= to)
			rows -= histogram->of_common.numbers[i] * seen;
	}
	return Max(rows, 0);
}

/*
 * Finds out how many of so many rows are behind the ends; false: too few to matter, or it cannot be said.
 */
static bool
count_behind(GpudsEstimate *estimate, const GpudsColumnEnds *ends, Histogram *histogram, double rows)
{
	const uint64 first = histogram->bounds[0];
	const uint64 last = histogram->bounds[histogram->n - 1];
	double below = 0;
	double above = 0;
	double about;
	double scale;

	if (first > ends->least)
		below = count_between(estimate, ends, histogram, rows, ends->least, first - 1);
	if (last < ends->greatest)
		above = count_between(estimate, ends, histogram, rows, last + 1, ends->greatest);
	if (below < 0 || above < 0)
		return false;
	histogram->seen = Max(rows - below - above, 0) / rows;
	about = Max(rows * histogram->seen * histogram->share + below + above, 1);
	scale = Min(1, MOST_BEHIND * about / Max(below + above, 1)) / about;
	histogram->below = below * scale;
	histogram->above = above * scale;
	/* Half of a part. */
	return (histogram->below + histogram->above) * 2 * (histogram->n - 1) >= 1;
}

/* Writes n bounds from one on, evenly, of which the last is to. */
static uint64 *
spread(uint64 from, uint64 to, int n, uint64 *out)
{
	for (int i = 1; i <= n; i++)
		*out++ = from + (uint64) ((unsigned __int128) (to - from) * i / n);
	return out;
}

/*
 * The code before which most of the rows behind an end lie, as seen from there: one row far away, or one
 * that is infinite, does not make all parts wide.
 */
static uint64
near_end(GpudsEstimate *estimate, const GpudsColumnEnds *ends, uint64 end, bool above)
{
	const uint64 far = above ? ends->greatest : ends->least;
	const double all = above ? gpuds_estimate_between(estimate, ends, end + 1, far)
							 : gpuds_estimate_between(estimate, ends, far, end - 1);
	uint64 low = 0;
	uint64 high = above ? far - end : end - far;

	while (low + 1 < high)
	{
		const uint64 middle = low + (high - low) / 2;
		const double near = above ? gpuds_estimate_between(estimate, ends, end + 1, end + middle)
								  : gpuds_estimate_between(estimate, ends, end - middle, end - 1);

		if (near < NEAR_SHARE * all)
			low = middle;
		else
			high = middle;
	}
	return above ? end + high : end - high;
}

/* Writes so many parts from one code on, the last of which leads from near to far. */
static uint64 *
write_parts(uint64 from, uint64 near, uint64 far, int parts, uint64 *out)
{
	if (parts < 2 || near == far)
		return spread(from, far, parts, out);
	out = spread(from, near, parts - 1, out);
	*out++ = far;
	return out;
}

/* Adds the parts behind the ends; what was there becomes fewer parts if there would be too many. */
static void
add_behind(GpudsEstimate *estimate, const GpudsColumnEnds *ends, Histogram *histogram)
{
	const uint64 first = histogram->bounds[0];
	const uint64 last = histogram->bounds[histogram->n - 1];
	const double inside = 1 - histogram->below - histogram->above;
	const int kept = Max(Min(histogram->n - 1, (int) (MOST_BOUNDS * inside)), 1);
	const int below = (int) rint(kept / inside * histogram->below);
	const int above = (int) rint(kept / inside * histogram->above);
	uint64 *bounds = palloc((below + kept + above + 1) * sizeof(uint64));
	uint64 *out = bounds;

	if (below > 0)
	{
		const uint64 near = near_end(estimate, ends, first, false);

		*out++ = ends->least;
		if (below > 1 && near != ends->least)
		{
			*out++ = near;
			out = spread(near, first, below - 1, out);
		}
		else
			out = spread(ends->least, first, below, out);
	}
	else
		*out++ = first;
	for (int i = 1; i <= kept; i++)
		*out++ = histogram->bounds[(int64) i * (histogram->n - 1) / kept];
	if (above > 0)
		out = write_parts(last, near_end(estimate, ends, last, true), ends->greatest, above, out);
	histogram->bounds = bounds;
	histogram->n = (int) (out - bounds);
}

/* An array of the histogram's bounds. */
static Datum
array_of_bounds(const Histogram *histogram, const GpudsColumnEnds *ends, Oid column, Oid type)
{
	Datum *bounds = palloc(histogram->n * sizeof(Datum));
	int16 length;
	bool by_value;
	char alignment;

	for (int i = 0; i < histogram->n; i++)
		bounds[i] = gpuds_key_partial_agg_value(gpuds_key_kind(column), &ends->agg_column,
												histogram->bounds[i]);
	get_typlenbyvalalign(type, &length, &by_value, &alignment);
	return PointerGetDatum(construct_array(bounds, histogram->n, type, length, by_value, alignment));
}

/* An array of the common values' frequencies, which are those of fewer rows than there are. */
static Datum
array_of_frequencies(const Histogram *histogram)
{
	const AttStatsSlot *common = &histogram->of_common;
	Datum *numbers = palloc(Max(common->nnumbers, 1) * sizeof(Datum));

	for (int i = 0; i < common->nnumbers; i++)
		numbers[i] = Float4GetDatum((float4) (common->numbers[i] * histogram->seen));
	return PointerGetDatum(
		construct_array(numbers, common->nnumbers, FLOAT4OID, sizeof(float4), true, TYPALIGN_INT));
}

/* The slot of a row of pg_statistic that has a kind; -1: none. */
static int
slot_of(HeapTuple tuple, int kind)
{
	const FormData_pg_statistic *statistics = (Form_pg_statistic) GETSTRUCT(tuple);
	const int16 kinds[STATISTIC_NUM_SLOTS] = { statistics->stakind1, statistics->stakind2,
											   statistics->stakind3, statistics->stakind4,
											   statistics->stakind5 };

	for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
	{
		if (kinds[i] == kind)
			return i;
	}
	return -1;
}

/* A copy of a row of pg_statistic with another histogram, and the frequencies that go with it. */
static HeapTuple
with_histogram(HeapTuple tuple, Oid type, const GpudsColumnEnds *ends, Oid column, const Histogram *histogram)
{
	Relation statistics = table_open(StatisticRelationId, AccessShareLock);
	Datum values[Natts_pg_statistic] = { 0 };
	bool isnull[Natts_pg_statistic] = { false };
	bool replace[Natts_pg_statistic] = { false };
	const int bounds = Anum_pg_statistic_stavalues1 - 1 + slot_of(tuple, STATISTIC_KIND_HISTOGRAM);
	HeapTuple copy;

	values[bounds] = array_of_bounds(histogram, ends, column, type);
	replace[bounds] = true;
	if (histogram->of_common.nnumbers > 0)
	{
		const int numbers = Anum_pg_statistic_stanumbers1 - 1 + slot_of(tuple, STATISTIC_KIND_MCV);

		values[numbers] = array_of_frequencies(histogram);
		replace[numbers] = true;
	}
	copy = heap_modify_tuple(tuple, RelationGetDescr(statistics), values, isnull, replace);
	table_close(statistics, AccessShareLock);
	return copy;
}

/* Changes a histogram to what the index says of so many rows; false: it is good as it is. */
static bool
renew(GpudsEstimate *estimate, const GpudsColumnEnds *ends, Histogram *histogram, double rows)
{
	const bool cut = estimate->peek.current && cut_off(ends, histogram);

	histogram->seen = 1;
	if (!count_behind(estimate, ends, histogram, Max(rows, 1)))
		return cut;
	add_behind(estimate, ends, histogram);
	return true;
}

/*
 * May the index say anything else than a histogram of n bounds?  False if not even with all rows behind its
 * ends, those of common values among them, it would: so two values need to be looked at only.
 */
static bool
may_renew(GpudsEstimate *estimate, const GpudsColumnEnds *ends, const AttStatsSlot *slot,
		  const Histogram *histogram, double rows)
{
	Histogram without_common = *histogram;
	const uint64 *outer = read_codes(estimate, ends, slot, 2);

	if (outer == NULL)
		return false;
	if (estimate->peek.current && (outer[0] < ends->least || outer[1] > ends->greatest))
		return true;
	memset(&without_common.of_common, 0, sizeof(without_common.of_common));
	without_common.bounds = palloc(histogram->n * sizeof(uint64));
	without_common.bounds[0] = outer[0];
	without_common.bounds[histogram->n - 1] = outer[1];
	return count_behind(estimate, ends, &without_common, Max(rows, 1));
}

/* Reads all of a histogram that may be renewed; the rest as renewed. */
static HeapTuple
renew_slot(HeapTuple tuple, GpudsEstimate *estimate, const IndexOptInfo *index, const GpudsColumnEnds *ends,
		   const AttStatsSlot *slot, Histogram *histogram)
{
	AttStatsSlot *common = &histogram->of_common;

	free_attstatsslot(common);
	(void) get_attstatsslot(common, tuple, STATISTIC_KIND_MCV, InvalidOid,
							ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	histogram->bounds = read_codes(estimate, ends, slot, histogram->n);
	histogram->common = read_codes(estimate, ends, common, common->nvalues);
	if (histogram->bounds == NULL || histogram->common == NULL || common->nvalues != common->nnumbers ||
		!renew(estimate, ends, histogram, index->rel->tuples))
		return NULL;
	return with_histogram(tuple, slot->valuetype, ends, index->opcintype[0], histogram);
}

/* A column's row of pg_statistic with the histogram that the index makes of it; NULL: it is good as it is. */
static HeapTuple
renewed(HeapTuple tuple, GpudsEstimate *estimate, const IndexOptInfo *index)
{
	Histogram histogram = { .share = 1 - ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac };
	GpudsColumnEnds ends;
	AttStatsSlot slot;
	HeapTuple copy = NULL;

	if (!gpuds_estimate_ends(estimate, &ends) || ends.agg_column.kind != AGG_COLUMN_INTEGER ||
		!get_attstatsslot(&slot, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
		return NULL;
	(void) get_attstatsslot(&histogram.of_common, tuple, STATISTIC_KIND_MCV, InvalidOid,
							ATTSTATSSLOT_NUMBERS);
	for (int i = 0; i < histogram.of_common.nnumbers; i++)
		histogram.share -= histogram.of_common.numbers[i];
	histogram.share = Max(histogram.share, 0);
	histogram.n = Min(slot.nvalues, MOST_READ);
	if (histogram.n >= 2 && may_renew(estimate, &ends, &slot, &histogram, index->rel->tuples))
		copy = renew_slot(tuple, estimate, index, &ends, &slot, &histogram);
	free_attstatsslot(&slot);
	free_attstatsslot(&histogram.of_common);
	return copy;
}

/* What was made of a column's statistics, kept in the planner's memory context. */
typedef struct Renewed
{
	const PlannerInfo *root;
	Index relid;
	AttrNumber attnum;
	HeapTuple tuple; /* NULL: they are good as they are */
} Renewed;

/* Those of the planner run in progress, whose memory context this is. */
static MemoryContext renewed_context = NULL;
static List *all_renewed = NIL;

static void
forget_renewed(void *context)
{
	if (renewed_context == context)
	{
		renewed_context = NULL;
		all_renewed = NIL;
	}
}

/* Those of this planner run; a run that interrupts another begins anew, and so does the other then. */
static List *
known_renewed(const PlannerInfo *root)
{
	if (renewed_context != root->planner_cxt)
	{
		MemoryContextCallback *callback = MemoryContextAlloc(root->planner_cxt, sizeof(*callback));

		callback->func = forget_renewed;
		callback->arg = root->planner_cxt;
		MemoryContextRegisterResetCallback(root->planner_cxt, callback);
		renewed_context = root->planner_cxt;
		all_renewed = NIL;
	}
	return all_renewed;
}

/* Makes what is kept of a column's statistics. */
static HeapTuple
make_renewed(const IndexOptInfo *index, const RangeTblEntry *rte, AttrNumber attnum)
{
	MemoryContext scratch;
	MemoryContext old;
	GpudsEstimate estimate;
	HeapTuple tuple;
	HeapTuple copy = NULL;

	if (!gpuds_estimate_begin(index, &estimate))
		return NULL;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuds histogram", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(scratch);
	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid), Int16GetDatum(attnum),
							BoolGetDatum(false));
	if (HeapTupleIsValid(tuple))
	{
		copy = renewed(tuple, &estimate, index);
		ReleaseSysCache(tuple);
	}
	MemoryContextSwitchTo(old);
	if (copy)
		copy = heap_copytuple(copy);
	MemoryContextDelete(scratch);
	gpuds_estimate_end(&estimate);
	return copy;
}

/*
 * The statistics of a column that the index knows better, until the end of planning; NULL: core's are good.
 */
static HeapTuple
renewed_of(PlannerInfo *root, const RelOptInfo *rel, const RangeTblEntry *rte, AttrNumber attnum)
{
	const IndexOptInfo *index = index_of(rel, attnum);
	MemoryContext old;
	Renewed *known;
	ListCell *lc;

	if (index == NULL || !may_see_all(root, rel, rte))
		return NULL;
	foreach (lc, known_renewed(root))
	{
		known = lfirst(lc);
		if (known->root == root && known->relid == rel->relid && known->attnum == attnum)
			return known->tuple;
	}
	old = MemoryContextSwitchTo(renewed_context);
	known = palloc0(sizeof(Renewed));
	known->root = root;
	known->relid = rel->relid;
	known->attnum = attnum;
	known->tuple = make_renewed(index, rte, attnum);
	all_renewed = lappend(all_renewed, known);
	MemoryContextSwitchTo(old);
	return known->tuple;
}

/* The planner run keeps it. */
static void
keep(HeapTuple tuple)
{
}

/* get_relation_stats_hook: has the column a histogram that the index knows better? */
static bool
relation_stats(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attnum, VariableStatData *variable)
{
	const RelOptInfo *rel = variable->rel;
	HeapTuple tuple;

	if (prev_relation_stats && prev_relation_stats(root, rte, attnum, variable))
		return true;
	/* The relation is not the table's if core is looking into a subquery, with that one's planner info. */
	if (rel == NULL || rte->rtekind != RTE_RELATION || rte->inh || rel->rtekind != RTE_RELATION ||
		!IS_SIMPLE_REL(rel) || (int) rel->relid >= root->simple_rel_array_size ||
		root->simple_rel_array[rel->relid] != rel || planner_rt_fetch(rel->relid, root) != rte)
		return false;
	tuple = renewed_of(root, rel, rte, attnum);
	if (tuple == NULL)
		return false;
	variable->statsTuple = tuple;
	variable->freefunc = keep;
	variable->acl_ok = true;
	return true;
}

/*
 * Sets get_relation_stats_hook, keeping the one that was set before.  To be called once, when the library is
 * preloaded.
 */
void
gpuds_histogram_init(void)
{
	prev_relation_stats = get_relation_stats_hook;
	get_relation_stats_hook = relation_stats;
}
