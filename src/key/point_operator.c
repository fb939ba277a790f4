/*-------------------------------------------------------------------------
 *
 * point_operator.c
 *	  The operators that points are searched by.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/fmgroids.h"

#include "key/key.h"

/* The function of core's that a strategy stands for with a type on the right; InvalidOid: none. */
Oid
gpuds_point_function(StrategyNumber strategy, Oid type)
{
	if (strategy == GPUDS_SAME_STRATEGY && type == POINTOID)
		return F_POINT_EQ;
	if (strategy == GPUDS_WITHIN_STRATEGY && type == BOXOID)
		return F_ON_PB;
	if (strategy == GPUDS_WITHIN_STRATEGY && type == CIRCLEOID)
		return F_PT_CONTAINED_CIRCLE;
	return InvalidOid;
}
