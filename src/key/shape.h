/*-------------------------------------------------------------------------
 *
 * shape.h
 *	  Shapes that points are in.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_SHAPE_H
#define GPUDS_KEY_SHAPE_H

#include <float.h>

#include "fmgr.h"

#include "key/point.h"

/* More than what subtractions and roots round off, of the numbers that they are of. */
#define GPUDS_POINT_ROUNDING (64 * DBL_EPSILON)

typedef struct GpudsShape
{
	GpudsRectangle bounds;
	PGFunction decides; /* of a point and the value; NULL: the bounds do */
	union
	{
		Point point;
		CIRCLE circle;
	} value;
} GpudsShape;

/* shape.c */
extern bool gpuds_shape_set(GpudsShape *shape, Oid function, Datum value);
extern bool gpuds_shape_decides(const GpudsShape *shape, GpudsCode code);

/* Is the point in a shape that has a code, and these codes of its coordinates? */
static inline bool
gpuds_shape_has(const GpudsShape *shape, const uint64 *at, GpudsCode code)
{
	for (int i = 0; i < 2; i++)
	{
		if (at[i] < shape->bounds.lo[i] || at[i] > shape->bounds.hi[i])
			return false;
	}
	return shape->decides == NULL || gpuds_shape_decides(shape, code);
}

#endif /* GPUDS_KEY_SHAPE_H */
