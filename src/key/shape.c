/*-------------------------------------------------------------------------
 *
 * shape.c
 *	  Shapes that points are in: boxes, circles, points that others are near enough to be the same.
 *
 * A shape has bounds for the codes of both coordinates.  Those of a box decide.  Those of another shape are
 * wide enough for all that core's operator finds, and the operator decides.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"

#include "key/shape.h"

/* Bounds of a coordinate from one number to another; none if either is no number. */
static void
set_bounds(GpudsShape *shape, int i, double lo, double hi)
{
	/* -0 and 0 are equal: the lower bound is the lower code, the upper one the upper code */
	shape->bounds.lo[i] = gpuds_coordinate_code(lo == 0 ? -0.0 : lo);
	shape->bounds.hi[i] = gpuds_coordinate_code(hi == 0 ? 0.0 : hi);
	if (isnan(lo) || isnan(hi))
	{
		shape->bounds.lo[i] = UINT64_MAX;
		shape->bounds.hi[i] = 0;
	}
}

/* Bounds of a coordinate that no code is outside of. */
static void
set_unbounded(GpudsShape *shape, int i)
{
	shape->bounds.lo[i] = 0;
	shape->bounds.hi[i] = UINT64_MAX;
}

/* Bounds of a coordinate of what is no farther from a number than another says, but for rounding. */
static void
set_near(GpudsShape *shape, int i, double middle, double distance)
{
	const double more = distance + (fabs(middle) + distance) * GPUDS_POINT_ROUNDING;

	set_bounds(shape, i, middle - more, middle + more);
}

/* Points in a circle.  Where distances may be infinite, or no numbers, the operator decides of all points. */
static void
set_circle(GpudsShape *shape, const CIRCLE *circle)
{
	const double middle[] = { circle->center.x, circle->center.y };
	const bool finite = isfinite(middle[0]) && isfinite(middle[1]) && isfinite(circle->radius);

	shape->decides = pt_contained_circle;
	shape->value.circle = *circle;
	for (int i = 0; i < 2; i++)
	{
		if (finite)
			set_near(shape, i, middle[i], circle->radius);
		else
			set_unbounded(shape, i);
	}
}

/* Points that are the same as one.  To one that has a coordinate that is no number the operator decides. */
static void
set_same(GpudsShape *shape, const Point *point)
{
	const double middle[] = { point->x, point->y };

	shape->decides = point_eq;
	shape->value.point = *point;
	for (int i = 0; i < 2; i++)
	{
		if (isnan(middle[i]))
			set_unbounded(shape, i);
		else if (isinf(middle[i]))
			set_bounds(shape, i, middle[i], middle[i]);
		else
			set_near(shape, i, middle[i], EPSILON);
	}
}

/*
 * Sets the shape of a value on the right of an operator, by its function (gpuds_point_function); false: no
 * point is in it.  Refers to none of the value's memory.
 */
bool
gpuds_shape_set(GpudsShape *shape, Oid function, Datum value)
{
	const BOX *box;

	memset(shape, 0, sizeof(*shape));
	switch (function)
	{
		case F_ON_PB:
			box = DatumGetBoxP(value);
			set_bounds(shape, 0, box->low.x, box->high.x);
			set_bounds(shape, 1, box->low.y, box->high.y);
			break;
		case F_PT_CONTAINED_CIRCLE:
			set_circle(shape, DatumGetCircleP(value));
			break;
		default:
			set_same(shape, DatumGetPointP(value));
			break;
	}
	return shape->bounds.lo[0] <= shape->bounds.hi[0] && shape->bounds.lo[1] <= shape->bounds.hi[1];
}

/* Does core's operator find a point, whose code lies within a shape's bounds, in the shape? */
bool
gpuds_shape_decides(const GpudsShape *shape, GpudsCode code)
{
	Point point;

	gpuds_point_value(code, &point);
	return DatumGetBool(
		DirectFunctionCall2(shape->decides, PointPGetDatum(&point), PointerGetDatum(&shape->value)));
}
