/*-------------------------------------------------------------------------
 *
 * percentile_value.c
 *	  PostgreSQL's percentile functions: the ranks that they ask for, and what they make of the values there.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/typcache.h"

#include "custom/percentile.h"

typedef struct PercentileFunction
{
	Oid oid;
	GpudsPercentileKind kind;
} PercentileFunction;

static const PercentileFunction functions[] = {
	{ F_PERCENTILE_DISC_FLOAT8_ANYELEMENT, GPUDS_PERCENTILE_DISC },
	{ F_PERCENTILE_DISC__FLOAT8_ANYELEMENT, GPUDS_PERCENTILE_DISC },
	{ F_PERCENTILE_CONT_FLOAT8_FLOAT8, GPUDS_PERCENTILE_FLOAT8 },
	{ F_PERCENTILE_CONT__FLOAT8_FLOAT8, GPUDS_PERCENTILE_FLOAT8 },
	{ F_PERCENTILE_CONT_FLOAT8_INTERVAL, GPUDS_PERCENTILE_INTERVAL },
	{ F_PERCENTILE_CONT__FLOAT8_INTERVAL, GPUDS_PERCENTILE_INTERVAL },
};

/* The kind of an aggregate, if it is one of percentiles of all rows; else that of others. */
GpudsPercentileKind
gpuds_percentile_kind(const Aggref *aggref)
{
	if (aggref->aggfilter != NULL || aggref->agglevelsup != 0 || aggref->aggsplit != AGGSPLIT_SIMPLE)
		return GPUDS_PERCENTILE_OTHER;
	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		if (functions[i].oid == aggref->aggfnoid)
			return functions[i].kind;
	}
	return GPUDS_PERCENTILE_OTHER;
}

/* Is it of the rows in its type's descending order? */
bool
gpuds_percentile_descends(const Aggref *aggref)
{
	const Node *arg = (const Node *) linitial_node(TargetEntry, aggref->args)->expr;
	const Oid greater = lookup_type_cache(exprType(arg), TYPECACHE_GT_OPR)->gt_opr;

	return OidIsValid(greater) && linitial_node(SortGroupClause, aggref->aggorder)->sortop == greater;
}

/* What one fraction of so many rows asks for; there are rows.  Raises ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE. */
static void
pick(const GpudsPercentile *percentile, double fraction, int64 rows, GpudsPick *pick)
{
	const double steps = (double) (rows - 1);

	if (fraction < 0 || fraction > 1 || isnan(fraction))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("percentile value %g is not between 0 and 1", fraction)));
	pick->isnull = false;
	if (rows == 0)
		return;
	if (percentile->kind == GPUDS_PERCENTILE_DISC)
	{
		/* The least rank that has the fraction of the rows up to it. */
		pick->first = Max((int64) ceil(fraction * (double) rows), 1) - 1;
		pick->second = pick->first;
	}
	else
	{
		pick->first = (int64) floor(fraction * steps);
		pick->second = (int64) ceil(fraction * steps);
		pick->proportion = (fraction * steps) - (double) pick->first;
	}
	if (percentile->descends)
	{
		pick->first = rows - 1 - pick->first;
		pick->second = rows - 1 - pick->second;
	}
}

/* The same of an array of fractions. */
static void
pick_array(ArrayType *array, int64 rows, GpudsPercentile *percentile)
{
	Datum *fractions;
	bool *isnull;

	percentile->array = array;
	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &fractions, &isnull,
					  &percentile->n);
	percentile->picks = palloc0(Max(percentile->n, 1) * sizeof(GpudsPick));
	for (int i = 0; i < percentile->n; i++)
	{
		percentile->picks[i].isnull = isnull[i];
		if (!isnull[i])
			pick(percentile, DatumGetFloat8(fractions[i]), rows, &percentile->picks[i]);
	}
}

/*
 * What an aggregate of percentile->kind with this fraction, or array of fractions, asks for of so many rows,
 * in the current memory context.  PostgreSQL looks at one fraction even if there are no rows, and at those
 * of an array only if there are.  Raises ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE.
 */
void
gpuds_percentile_pick(Datum fraction, bool isnull, bool is_array, int64 rows, GpudsPercentile *percentile)
{
	percentile->array = NULL;
	percentile->isnull = isnull || rows == 0;
	if (isnull)
		return;
	if (!is_array)
	{
		percentile->n = 1;
		percentile->picks = palloc0(sizeof(GpudsPick));
		pick(percentile, DatumGetFloat8(fraction), rows, percentile->picks);
	}
	else if (rows > 0)
		pick_array(DatumGetArrayTypeP(fraction), rows, percentile);
}

/* The same of an aggregate that has no fraction, but asks for one of the ends. */
void
gpuds_percentile_pick_end(int64 rows, GpudsPercentile *percentile)
{
	percentile->array = NULL;
	percentile->isnull = rows == 0;
	percentile->n = 1;
	percentile->picks = palloc0(sizeof(GpudsPick));
	/* Without rows it is not looked at. */
	if (percentile->kind == GPUDS_PERCENTILE_LAST)
		percentile->picks->first = percentile->picks->second = rows - 1;
}

static void
add_rank(GpudsRanks *ranks, int64 rank)
{
	if (ranks->n == ranks->size)
	{
		ranks->size = Max(2 * ranks->size, 8);
		ranks->ranks = ranks->ranks ? repalloc(ranks->ranks, ranks->size * sizeof(GpudsRank))
									: palloc(ranks->size * sizeof(GpudsRank));
	}
	ranks->ranks[ranks->n++].rank = rank;
}

/* Adds the ranks that an aggregate asks for. */
void
gpuds_percentile_collect(const GpudsPercentile *percentile, GpudsRanks *ranks)
{
	for (int i = 0; !percentile->isnull && i < percentile->n; i++)
	{
		const GpudsPick *pick = &percentile->picks[i];

		if (pick->isnull)
			continue;
		add_rank(ranks, pick->first);
		if (pick->second != pick->first)
			add_rank(ranks, pick->second);
	}
}

static int
compare_ranks(const void *a, const void *b)
{
	const int64 left = ((const GpudsRank *) a)->rank;
	const int64 right = ((const GpudsRank *) b)->rank;

	return (left > right) - (left < right);
}

/* Ascending, each once. */
void
gpuds_percentile_sort(GpudsRanks *ranks)
{
	int64 n = 0;

	if (ranks->n == 0)
		return;
	qsort(ranks->ranks, ranks->n, sizeof(GpudsRank), compare_ranks);
	for (int64 i = 1; i < ranks->n; i++)
	{
		if (ranks->ranks[i].rank != ranks->ranks[n].rank)
			ranks->ranks[++n] = ranks->ranks[i];
	}
	ranks->n = n + 1;
}

static Datum
value_at(const GpudsRanks *ranks, int64 rank, int column)
{
	const GpudsRank wanted = { .rank = rank };
	const GpudsRank *found = bsearch(&wanted, ranks->ranks, ranks->n, sizeof(GpudsRank), compare_ranks);

	Assert(found);
	return found->values[column];
}

/* Between two intervals, as PostgreSQL computes it. */
static Datum
between_intervals(Datum first, Datum second, double proportion)
{
	Datum difference = DirectFunctionCall2(interval_mi, second, first);
	Datum part = DirectFunctionCall2(interval_mul, difference, Float8GetDatum(proportion));

	return DirectFunctionCall2(interval_pl, part, first);
}

static Datum
between_numbers(Datum first, Datum second, double proportion)
{
	const double low = DatumGetFloat8(first);
	const double high = DatumGetFloat8(second);

	return Float8GetDatum(low + (proportion * (high - low)));
}

static Datum
value_of(GpudsPercentileKind kind, const GpudsPick *pick, const GpudsRanks *ranks, int column)
{
	const Datum first = value_at(ranks, pick->first, column);

	if (pick->second == pick->first)
		return first;
	return (kind == GPUDS_PERCENTILE_INTERVAL
				? between_intervals
				: between_numbers)(first, value_at(ranks, pick->second, column), pick->proportion);
}

/*
 * The result of an aggregate that is not NULL, of the values that a scan's column has at the ranks that it
 * has asked for.  Allocated in the current memory context, but for single values that are given as they are.
 */
Datum
gpuds_percentile_value(const GpudsPercentile *percentile, const GpudsRanks *ranks, int column,
					   const GpudsRankedType *type)
{
	Datum *values;
	bool *isnull;

	if (percentile->array == NULL)
		return value_of(percentile->kind, percentile->picks, ranks, column);
	if (percentile->n == 0)
		return PointerGetDatum(construct_empty_array(type->oid));
	values = palloc(percentile->n * sizeof(Datum));
	isnull = palloc(percentile->n * sizeof(bool));
	for (int i = 0; i < percentile->n; i++)
	{
		isnull[i] = percentile->picks[i].isnull;
		values[i] = isnull[i] ? (Datum) 0 : value_of(percentile->kind, &percentile->picks[i], ranks, column);
	}
	return PointerGetDatum(construct_md_array(values, isnull, ARR_NDIM(percentile->array),
											  ARR_DIMS(percentile->array), ARR_LBOUND(percentile->array),
											  type->oid, type->length, type->by_value, type->align));
}
