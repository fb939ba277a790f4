/*-------------------------------------------------------------------------
 *
 * ascending.h
 *	  Functions of a column that never descend as the column ascends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_ASCENDING_H
#define GPUDS_CUSTOM_ASCENDING_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "nodes/primnodes.h"

/* Longer than the longest unit that date_trunc knows, in microseconds. */
#define GPUDS_LONGEST_UNIT (INT64CONST(1001) * 366 * USECS_PER_DAY)

extern int gpuds_ascending_unit(const List *args);
extern bool gpuds_ascending_is_unit(const List *args);
extern const Var *gpuds_ascending_column(const Expr *expr);
extern bool gpuds_ascending_is_zoned(const Expr *expr);
extern int64 gpuds_ascending_width(const Expr *expr);
extern void gpuds_ascending_limits(const Expr *expr, Oid type, int64 *least, int64 *most);

#endif /* GPUDS_CUSTOM_ASCENDING_H */
