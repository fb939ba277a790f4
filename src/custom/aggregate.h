/*-------------------------------------------------------------------------
 *
 * aggregate.h
 *	  Inside GpudsAggregate: what its columns are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_AGGREGATE_H
#define GPUDS_CUSTOM_AGGREGATE_H

#include "gpuds.h"

#include "kernels/core/measure.h"

typedef enum GpudsAggregateKind
{
	GPUDS_GROUP_COLUMN, /* the value that all rows of a group have */
	GPUDS_GROUP_BUCKET, /* the value of a function of it (bucket.h) */
	GPUDS_COUNT_ROWS,
	GPUDS_COUNT,       /* of what is not NULL */
	GPUDS_SUM_INT8,    /* of integers */
	GPUDS_SUM_NUMERIC, /* of integers */
	GPUDS_SUM_FLOAT8,
	GPUDS_AVG_NUMERIC, /* of integers */
	GPUDS_AVG_FLOAT8,
	GPUDS_MIN, /* bool_and, too */
	GPUDS_MAX  /* bool_or, too */
} GpudsAggregateKind;

/* CustomScan.custom_private of the plan. */
enum
{
	AGGREGATE_KINDS,   /* GpudsAggregateKind of each column of the scan tuple */
	AGGREGATE_COLUMNS, /* of the index, from 0 on; -1: none */
	AGGREGATE_GROUPS,  /* leading columns of the index that are the same in a group; -1: all rows are one */
	AGGREGATE_NPRIVATE
};

/* aggregate_value.c */
extern bool gpuds_aggregate_kind(Oid function, Oid input, GpudsAggregateKind *kind);
extern Datum gpuds_aggregate_value(GpudsAggregateKind kind, Oid type, const Measure *measure,
								   const Measured *measured, bool *isnull);

#endif /* GPUDS_CUSTOM_AGGREGATE_H */
