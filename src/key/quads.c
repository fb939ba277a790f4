/*-------------------------------------------------------------------------
 *
 * quads.c
 *	  Rectangles as intervals of Z-order.
 *
 * A rectangle is cut at the bits of its codes, where the intervals that have its parts leave the most outside
 * of it out.  A part is in the smallest square of codes with a power of two as its side that has it, and the
 * codes of a square follow each other.  What a part has too many is measured in the plane, not in codes: half
 * of these are of numbers between -1 and 1.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "port/pg_bitutils.h"

#include "key/quads.h"

/* Sides of squares, in those of the rectangle, are cut off at this and its inverse. */
#define LONGEST 1e100

/* A part of the rectangle. */
typedef struct Part
{
	GpudsRectangle rectangle;
	uint64 bit;  /* the highest in which codes of a coordinate differ; 0: it is one code */
	double more; /* area of its square outside of it */
} Part;

/* What the rectangle is as the unit of lengths, along both coordinates. */
typedef struct Unit
{
	double scale[2];
} Unit;

/* Half of the distance of two coordinates. */
static double
half_length(uint64 lo, uint64 hi)
{
	return gpuds_place_of_coordinate(hi) / 2 - gpuds_place_of_coordinate(lo) / 2;
}

/* The area of a rectangle in so many of the first one, which is finite and not 0. */
static double
area(const Unit *unit, const uint64 *lo, const uint64 *hi)
{
	double product = 1;

	for (int i = 0; i < 2; i++)
		product *= Max(1 / LONGEST, Min(LONGEST, half_length(lo[i], hi[i]) * unit->scale[i]));
	return product;
}

/* Finds a part's square. */
static void
set_square(const Unit *unit, Part *part)
{
	const GpudsRectangle *rectangle = &part->rectangle;
	const uint64 differ = (rectangle->lo[0] ^ rectangle->hi[0]) | (rectangle->lo[1] ^ rectangle->hi[1]);
	GpudsRectangle square;
	uint64 ones;

	part->more = 0;
	part->bit = 0;
	if (differ == 0)
		return;
	part->bit = UINT64_C(1) << pg_leftmost_one_pos64(differ);
	ones = part->bit | (part->bit - 1);
	for (int i = 0; i < 2; i++)
	{
		square.lo[i] = rectangle->lo[i] & ~ones;
		square.hi[i] = rectangle->hi[i] | ones;
	}
	if (memcmp(&square, rectangle, sizeof(square)) != 0)
		part->more = Max(area(unit, square.lo, square.hi) - area(unit, rectangle->lo, rectangle->hi), 0);
}

/* Cuts a part along a coordinate at its square's middle; false: it is on one side. */
static bool
cut(Part *part, int i, Part *upper)
{
	const uint64 bit = part->bit;

	if (((part->rectangle.lo[i] ^ part->rectangle.hi[i]) & bit) == 0)
		return false;
	*upper = *part;
	upper->rectangle.lo[i] = part->rectangle.hi[i] & ~(bit - 1);
	part->rectangle.hi[i] = upper->rectangle.lo[i] - 1;
	return true;
}

/* Cuts a part into two or four; returns how many are new, behind n others. */
static int
split(const Unit *unit, Part *parts, int n, int number)
{
	Part *part = &parts[number];
	int added = 0;

	added += cut(part, 0, &parts[n]);
	for (int k = added; k >= 0; k--)
		added += cut(k == 0 ? part : &parts[n], 1, &parts[n + added]);
	set_square(unit, part);
	for (int k = 0; k < added; k++)
		set_square(unit, &parts[n + k]);
	return added;
}

/* The part that has the most area too many; *all: what all have together. */
static int
find_worst(const Part *parts, int n, double *all)
{
	int worst = 0;

	*all = 0;
	for (int i = 0; i < n; i++)
	{
		*all += parts[i].more;
		if (parts[i].more > parts[worst].more)
			worst = i;
	}
	return worst;
}

/*
 * Writes quads that together have all points of a rectangle, and others, in disjoint squares: from 1 to so
 * many, GPUDS_MAX_QUADS at most, and no more than are needed to have so many times its area too much.
 * Returns how many there are.
 */
int
gpuds_quads(const GpudsRectangle *rectangle, int most, double enough, GpudsQuad *quads)
{
	Part parts[GPUDS_MAX_QUADS];
	Unit unit;
	int n = 1;

	for (int i = 0; i < 2; i++)
	{
		const double length = half_length(rectangle->lo[i], rectangle->hi[i]);

		unit.scale[i] = 1 / Max(length, DBL_MIN);
	}
	parts[0].rectangle = *rectangle;
	set_square(&unit, &parts[0]);
	while (n + 3 <= most)
	{
		double all;
		const int worst = find_worst(parts, n, &all);

		if (all <= enough)
			break;
		n += split(&unit, parts, n, worst);
	}
	for (int i = 0; i < n; i++)
	{
		quads[i].codes.lo = gpuds_zorder(parts[i].rectangle.lo[0], parts[i].rectangle.lo[1]);
		quads[i].codes.hi = gpuds_zorder(parts[i].rectangle.hi[0], parts[i].rectangle.hi[1]);
		quads[i].bits = parts[i].bit == 0 ? 0 : 2 * (pg_leftmost_one_pos64(parts[i].bit) + 1);
	}
	return n;
}
