/*-------------------------------------------------------------------------
 *
 * near.c
 *	  Points by how near they are to one: parts of an index whose first column they are.
 *
 * A ring is searched as the rectangles between two squares: one that has all points of the outer circle, and
 * one that has no points but those of the inner circle.  Both allow for what core rounds off.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "utils/float.h"
#include "utils/fmgrprotos.h"

#include "key/set.h"
#include "key/shape.h"

#include "key/near.h"

/* Half of the side of a square within a circle, for its radius; a little less. */
#define HALF_OF_RADIUS 0.7071

/* Of coordinates that differ no more than this, core raises no error. */
#define NEVER_TOO_LARGE (DBL_MAX / 2)

/* The square of codes of what is no farther from a point, along both coordinates, than half a side. */
static GpudsRectangle
square_around(const Point *center, double half)
{
	const double middle[] = { center->x, center->y };
	GpudsRectangle square;

	for (int i = 0; i < 2; i++)
	{
		const double lo = middle[i] - half;
		const double hi = middle[i] + half;

		/* -0 and 0 are equal */
		square.lo[i] = gpuds_coordinate_code(lo == 0 ? -0.0 : lo);
		square.hi[i] = gpuds_coordinate_code(hi == 0 ? 0.0 : hi);
	}
	return square;
}

/* What rounding may make of coordinates and distances about a point. */
static double
margin(const Point *center, double distance)
{
	return (fabs(center->x) + fabs(center->y) + distance) * GPUDS_POINT_ROUNDING;
}

/* The square that has all points whose distances are not beyond the ring. */
static GpudsRectangle
outer_square(const GpudsNear *near)
{
	static const GpudsRectangle all = { { 0, 0 }, { UINT64_MAX, UINT64_MAX } };

	if (isinf(near->outer))
		return all;
	return square_around(&near->center, near->outer + margin(&near->center, near->outer));
}

/* The square that has no others than points whose distances are up to the ring's inner one; false: none. */
static bool
inner_square(const GpudsNear *near, GpudsRectangle *square)
{
	const double half = near->inner * HALF_OF_RADIUS - margin(&near->center, near->inner) - DBL_MIN;

	if (!(half > 0) || isinf(half))
		return false;
	*square = square_around(&near->center, half);
	return true;
}

/* Adds what is between two squares, of which one is in the other. */
static void
add_between(GpudsShapes *shapes, const GpudsRectangle *outer, const GpudsRectangle *inner)
{
	GpudsRectangle rest = *outer;

	for (int i = 0; i < 2; i++)
	{
		GpudsRectangle part = rest;

		if (inner->lo[i] > rest.lo[i])
		{
			part.hi[i] = inner->lo[i] - 1;
			gpuds_shapes_add_rectangle(shapes, &part);
		}
		part = rest;
		if (inner->hi[i] < rest.hi[i])
		{
			part.lo[i] = inner->hi[i] + 1;
			gpuds_shapes_add_rectangle(shapes, &part);
		}
		rest.lo[i] = Max(rest.lo[i], inner->lo[i]);
		rest.hi[i] = Min(rest.hi[i], inner->hi[i]);
	}
}

/* The codes of a ring, and others. */
static void
set_ring(const GpudsNear *near, GpudsCodeSet *set)
{
	GpudsShapes *shapes = gpuds_shapes_begin(4);
	const GpudsRectangle outer = outer_square(near);
	GpudsRectangle inner;

	if (inner_square(near, &inner))
		add_between(shapes, &outer, &inner);
	else
		gpuds_shapes_add_rectangle(shapes, &outer);
	gpuds_shapes_codes(shapes, set);
}

/* The highest code of a coordinate of a square. */
static uint64
square_end(const GpudsNearSquare *square, int i)
{
	return square->lo[i] | (square->bits == 64 ? UINT64_MAX : (UINT64_C(1) << square->bits) - 1);
}

/* Sets one of the squares that a square of more than one code is made of. */
void
gpuds_near_quarter(const GpudsNearSquare *square, int number, GpudsNearSquare *quarter)
{
	*quarter = *square;
	quarter->bits--;
	for (int i = 0; i < 2; i++)
		quarter->lo[i] |= (uint64) (number >> i & 1) << quarter->bits;
}

/* The set of a part of an index's points, in the current memory context, otherwise as gpuds_key_set. */
void
gpuds_key_set_of_near(const GpudsKeyLayout *layout, const GpudsNear *near, GpudsKeySet *set)
{
	GpudsCodeRange range = { 0, gpuds_ones(layout->column[0].bits) };
	GpudsCodeSet codes = { .constrained = true };

	switch (near->part)
	{
		case GPUDS_NEAR_FROM:
			range.lo = gpuds_point_code(&near->center);
			gpuds_set_single(&codes, &range);
			break;
		case GPUDS_NEAR_UP_TO:
			range.hi = gpuds_point_code(&near->center);
			gpuds_set_single(&codes, &range);
			break;
		case GPUDS_NEAR_RING:
			set_ring(near, &codes);
			break;
		case GPUDS_NEAR_SQUARE:
			range.lo = gpuds_zorder(near->square.lo[0], near->square.lo[1]);
			range.hi = gpuds_zorder(square_end(&near->square, 0), square_end(&near->square, 1));
			gpuds_set_single(&codes, &range);
			break;
		case GPUDS_NEAR_NULL:
			codes.null = true;
			break;
	}
	gpuds_key_set_of_codes(layout, &codes, set);
}

/* The root of the sum of the squares of a number and of one that is not larger, as core computes it. */
static double
hypotenuse(double larger, double smaller)
{
	const double ratio = smaller / larger;

	return larger * sqrt(1.0 + ratio * ratio);
}

/*
 * The distance of the point of an entry, whose first column it is and not NULL.  It is infinity where core
 * raises an error, as nobody has asked for the row yet.
 */
double
gpuds_near_distance(const GpudsNear *near, const GpudsKeyLayout *layout, const GpudsEntry *entry)
{
	Point point;
	double x;
	double y;

	gpuds_point_value(gpuds_first_code(layout, entry), &point);
	x = fabs(point.x - near->center.x);
	y = fabs(point.y - near->center.y);
	if (x <= NEVER_TOO_LARGE && y <= NEVER_TOO_LARGE)
		return DatumGetFloat8(
			DirectFunctionCall2(point_distance, PointPGetDatum(&point), PointPGetDatum(&near->center)));
	if (isinf(x) || isinf(y))
		return get_float8_infinity();
	if (isnan(x) || isnan(y))
		return get_float8_nan();
	return hypotenuse(Max(x, y), Min(x, y));
}

/* How far a coordinate is from those of a square, as core subtracts them. */
static double
gap(double middle, uint64 lo, uint64 hi)
{
	const double least = gpuds_place_of_coordinate(lo);
	const double most = gpuds_place_of_coordinate(hi);

	if (middle < least)
		return least - middle;
	return middle > most ? middle - most : 0;
}

/*
 * A distance that no point of a square is nearer at, from a center that is finite.  Each difference is one by
 * itself, because core's function multiplies the larger one by 1 or more.
 */
double
gpuds_near_square_distance(const Point *center, const GpudsNearSquare *square)
{
	const double x = gap(center->x, square->lo[0], square_end(square, 0));
	const double y = gap(center->y, square->lo[1], square_end(square, 1));
	const double larger = Max(x, y);
	double both;

	if (larger == 0 || isinf(larger))
		return larger;
	both = Min(hypotenuse(larger, Min(x, y)), DBL_MAX);
	return Max(larger, both - margin(center, both) - DBL_MIN);
}
