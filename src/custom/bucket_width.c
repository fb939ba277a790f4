/*-------------------------------------------------------------------------
 *
 * bucket_width.c
 *	  How wide buckets are, about, for the planner.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "custom/ascending.h"
#include "custom/bucket.h"

/* An ascending function's value of a number; NULL: the planner cannot know it. */
static const Const *
value_of(PlannerInfo *root, const Expr *expr, const Var *column, int64 number)
{
	const Oid type = getBaseType(column->vartype);
	Const *constant;
	Node *value;

	constant = makeConst(column->vartype, column->vartypmod, column->varcollid, get_typlen(type),
						 gpuds_bucket_datum(type, number), false, get_typbyval(type));
	value = estimate_expression_value(root, gpuds_granule_replace((const Node *) expr, column,
																  (const Node *) constant));
	return IsA(value, Const) ? (const Const *) value : NULL;
}

/*
 * The width of the bucket in the middle of a range of numbers, within a third or so.  -1: it is not known.
 * Halves a step until it does not lead out of the bucket, which takes as many evaluations as there are bits
 * in the number of buckets.
 */
double
gpuds_bucket_width(PlannerInfo *root, const GpudsGranule *granule, const Var *column, int64 lowest,
				   int64 highest)
{
	const Const *of_middle;
	int64 middle;
	int64 step;

	lowest = Max(lowest, granule->least);
	highest = Min(highest, granule->most);
	if (granule->function == NULL || lowest >= highest)
		return -1;
	if (gpuds_ascending_width(granule->function) > 0)
		return (double) gpuds_ascending_width(granule->function);
	step = highest / 2 - lowest / 2;
	middle = lowest + step;
	of_middle = value_of(root, granule->function, column, middle);
	for (; of_middle && step > 0; step /= 2)
	{
		const Const *behind = value_of(root, granule->function, column, middle + step);

		if (behind == NULL)
			return -1;
		if (equal(of_middle, behind))
			return 1.5 * step;
	}
	return of_middle ? 1 : -1;
}
