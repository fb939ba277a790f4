/*-------------------------------------------------------------------------
 *
 * nearest_squares.h
 *	  Points by their distances from one, found in squares of Z-order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_NEAREST_SQUARES_H
#define GPUDS_CUSTOM_NEAREST_SQUARES_H

#include "access/relscan.h"

#include "key/near.h"

/* A point whose row has not been looked up. */
typedef struct GpudsNearPoint
{
	double distance;
	uint64 tid;
} GpudsNearPoint;

typedef struct GpudsSquares GpudsSquares;

/* nearest_squares.c */
extern void gpuds_near_points_sort(GpudsNearPoint *points, size_t n);
extern GpudsSquares *gpuds_squares_begin(IndexScanDesc scan, const GpudsKeyLayout *layout,
										 const GpudsNear *near, MemoryContext context);
extern int64 gpuds_squares_next(GpudsSquares *squares, const GpudsNearPoint **points);
extern void gpuds_squares_end(GpudsSquares *squares);

#endif /* GPUDS_CUSTOM_NEAREST_SQUARES_H */
