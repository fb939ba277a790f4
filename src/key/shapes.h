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
	int64 square; /* to look at next; -1: none */
	int64 near;   /* the first of them */
} GpudsShapesAt;

/* Memory that a shape takes with the intervals that it becomes, most often. */
#define GPUDS_SHAPE_BYTES 1536

/* shapes.c */
extern GpudsShapes *gpuds_shapes_begin(int64 expected);
extern bool gpuds_shapes_add(GpudsShapes *shapes, Oid function, Datum value);
extern Size gpuds_shapes_bytes(const GpudsShapes *shapes);
extern void gpuds_shapes_find(const GpudsShapes *shapes, GpudsCode code, int64 near, GpudsShapesAt *at);
extern void gpuds_shapes_find_entry(const GpudsShapes *shapes, const GpudsKeyLayout *layout,
									const GpudsEntry *entry, int64 near, GpudsShapesAt *at);
extern int64 gpuds_shapes_next(const GpudsShapes *shapes, GpudsShapesAt *at);

/* bounds.c */
extern void gpuds_key_set_of_shapes(const GpudsKeyLayout *layout, GpudsShapes *shapes, GpudsKeySet *set);

#endif /* GPUDS_KEY_SHAPES_H */
