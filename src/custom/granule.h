/*-------------------------------------------------------------------------
 *
 * granule.h
 *	  What an expression of a column is constant on: the buckets of an ascending function of the column.
 *
 * The hour of a day comes again and again, but is the same within each hour.  So the expression need be
 * evaluated once for each hour that there are rows of.  The hours are the buckets of date_trunc, which
 * ascends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_GRANULE_H
#define GPUDS_CUSTOM_GRANULE_H

#include "nodes/primnodes.h"
#include "pgtime.h"

typedef struct GpudsGranule
{
	const Expr *function; /* that ascends; NULL: each value of the column is a granule */
	bool zoned;           /* it does so only as long as a zone's offset from UTC stays the same */
	pg_tz *zone;          /* this zone; NULL: the session's */
	int64 least;          /* the function is defined for column values from this one ... */
	int64 most;           /* ... to this one */
	bool whole;           /* the expression is what has the granules, not something made of it */
	int values;           /* that the expression has at most, if that is known; else 0 */
} GpudsGranule;

extern const Var *gpuds_granule_column(const Expr *expr);
extern Node *gpuds_granule_replace(const Node *expr, const Var *column, const Node *by);
extern void gpuds_granule_find(const Expr *expr, const Var *column, GpudsGranule *granule);

#endif /* GPUDS_CUSTOM_GRANULE_H */
