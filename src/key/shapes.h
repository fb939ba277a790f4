/*-------------------------------------------------------------------------
 *
 * shapes.h
 *	  Many shapes, and which of them a point is in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_SHAPES_H
#define GPUDS_KEY_SHAPES_H

#include "key/key.h"

/* A collection of shapes: values on the right of an operator that points are searched by. */
typedef struct GpudsShapes GpudsShapes;

/* What is left to look at for a point. */
typedef struct GpudsShapesAt
{
	GpudsCode code;
	uint64 at[2]; /* codes of its coordinates */
	int64 square; /* -1: nothing */
} GpudsShapesAt;

/* shapes.c */
extern GpudsShapes *gpuds_shapes_begin(int64 expected);
extern bool gpuds_shapes_add(GpudsShapes *shapes, Oid function, Datum value);
extern void gpuds_shapes_find(GpudsShapes *shapes, GpudsCode code, GpudsShapesAt *at);
extern int64 gpuds_shapes_next(const GpudsShapes *shapes, GpudsShapesAt *at);

#endif /* GPUDS_KEY_SHAPES_H */
