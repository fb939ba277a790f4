/*-------------------------------------------------------------------------
 *
 * point.c
 *	  Conditions on points, as intervals of Z-order and a test of entries.
 *
 * A condition is a set of shapes (boxes, circles, points that others are near enough to be the same), of
 * which a point has to be in one.  Each has bounds for the codes of both coordinates.  Those of a box decide.
 * Those of another shape are wide enough for all that core's operator finds, and the operator decides.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#include "key/quads.h"
#include "key/set.h"

/* Intervals of all shapes of an array, at most. */
#define MAX_ARRAY_QUADS (1024 * 1024)

/* More than what subtractions and roots round off, of the numbers that they are of. */
#define ROUNDING (64 * DBL_EPSILON)

typedef struct Shape
{
	GpudsRectangle bounds;
	PGFunction decides; /* of a point and the value; NULL: the bounds do */
	union
	{
		Point point;
		CIRCLE circle;
	} value;
} Shape;

struct GpudsPointTest
{
	const GpudsPointTest *next;
	int64 n;       /* of shapes */
	int along;     /* the coordinate that shapes are shorter along, 0 or 1 */
	Shape *shapes; /* by their lower bounds of it */
	uint64 *reach; /* the highest upper bound of it among the shapes so far */
};

#define ST_SORT sort_shapes
#define ST_ELEMENT_TYPE Shape
#define ST_COMPARE_ARG_TYPE const int
#define ST_COMPARE(a, b, i) \
	((a)->bounds.lo[*(i)] < (b)->bounds.lo[*(i)] ? -1 : (a)->bounds.lo[*(i)] > (b)->bounds.lo[*(i)])
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Bounds of a coordinate from one number to another; none if either is no number. */
static void
set_bounds(Shape *shape, int i, double lo, double hi)
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
set_unbounded(Shape *shape, int i)
{
	shape->bounds.lo[i] = 0;
	shape->bounds.hi[i] = UINT64_MAX;
}

/* Bounds of a coordinate of what is no farther from a number than another says, but for rounding. */
static void
set_near(Shape *shape, int i, double middle, double distance)
{
	const double more = distance + (fabs(middle) + distance) * ROUNDING;

	set_bounds(shape, i, middle - more, middle + more);
}

/* Points in a circle.  Where distances may be infinite, or no numbers, the operator decides of all points. */
static void
set_circle(Shape *shape, const CIRCLE *circle)
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
set_same(Shape *shape, const Point *point)
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

/* The shape of a constant; false: no point is in it. */
static bool
set_shape(Shape *shape, Oid function, Datum value)
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

/* Adds the shapes of an array's elements to a test.  NULL elements have none. */
static void
add_array(GpudsPointTest *test, Oid function, Datum value)
{
	bool copied;
	ArrayType *array = gpuds_key_array(value, &copied);
	const int64 n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const uint8 *bitmap = ARR_NULLBITMAP(array);
	char *at = ARR_DATA_PTR(array);
	int16 typlen;
	bool typbyval;
	char typalign;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
	test->shapes = gpuds_alloc_array(n, sizeof(Shape));
	for (int64 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (bitmap != NULL && (bitmap[i / 8] & (1 << (i % 8))) == 0)
			continue;
		test->n += set_shape(&test->shapes[test->n], function, fetch_att(at, typbyval, typlen));
		at = att_addlength_pointer(at, typlen, at);
		at = (char *) att_align_nominal(at, typalign);
	}
	if (copied)
		pfree(array);
}

/* The codes between the bounds of all shapes of a test, about. */
static double
lengths(const GpudsPointTest *test, int along)
{
	double sum = 0;

	for (int64 i = 0; i < test->n; i++)
		sum += (double) (test->shapes[i].bounds.hi[along] - test->shapes[i].bounds.lo[along]);
	return sum;
}

/* Puts a test's shapes in order. */
static void
sort_test(GpudsPointTest *test)
{
	uint64 reach = 0;

	test->along = lengths(test, 1) < lengths(test, 0);
	sort_shapes(test->shapes, test->n, &test->along);
	test->reach = gpuds_alloc_array(test->n, sizeof(uint64));
	for (int64 i = 0; i < test->n; i++)
	{
		reach = Max(reach, test->shapes[i].bounds.hi[test->along]);
		test->reach[i] = reach;
	}
}

/* The codes of all shapes of a test, and of points near them. */
static void
set_of_test(const GpudsPointTest *test, GpudsCodeSet *set)
{
	const int most = (int) Max(1, Min(GPUDS_MAX_QUADS, MAX_ARRAY_QUADS / Max(test->n, 1)));

	memset(set, 0, sizeof(*set));
	set->constrained = true;
	set->ranges = gpuds_alloc_array(test->n * most, sizeof(GpudsCodeRange));
	for (int64 i = 0; i < test->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		set->n += gpuds_quads(&test->shapes[i].bounds, most, set->ranges + set->n);
	}
	if (test->n > 1)
		gpuds_set_merge_ranges(set);
}

/*
 * Narrows a set of points by a key, whose argument is not NULL, and adds the test that decides.  Both are of
 * the current memory context.
 */
void
gpuds_point_narrow(ScanKey key, GpudsCodeSet *set)
{
	const Oid type = OidIsValid(key->sk_subtype) ? key->sk_subtype : POINTOID;
	const Oid function = gpuds_point_function(key->sk_strategy, type);
	GpudsPointTest *test = palloc0(sizeof(GpudsPointTest));
	GpudsCodeSet narrower;

	if (!OidIsValid(function))
		elog(ERROR, "points have no strategy %d for type %u", key->sk_strategy, type);
	if (key->sk_flags & SK_SEARCHARRAY)
		add_array(test, function, key->sk_argument);
	else
	{
		test->shapes = palloc(sizeof(Shape));
		test->n = set_shape(test->shapes, function, key->sk_argument);
	}
	sort_test(test);
	set_of_test(test, &narrower);
	test->next = set->tests;
	gpuds_set_intersect(set, &narrower);
	set->tests = test;
}

/* Is a point in a shape? */
static inline bool
is_in(const Shape *shape, const uint64 *at, GpudsCode code)
{
	Point point;

	for (int i = 0; i < 2; i++)
	{
		if (at[i] < shape->bounds.lo[i] || at[i] > shape->bounds.hi[i])
			return false;
	}
	if (shape->decides == NULL)
		return true;
	gpuds_point_value(code, &point);
	return DatumGetBool(
		DirectFunctionCall2(shape->decides, PointPGetDatum(&point), PointerGetDatum(&shape->value)));
}

/* How many shapes begin at a place, of the coordinate that they are sorted by, or before it. */
static int64
begun(const GpudsPointTest *test, uint64 place)
{
	int64 lo = 0;
	int64 hi = test->n;

	while (lo < hi)
	{
		const int64 middle = (lo + hi) / 2;

		if (test->shapes[middle].bounds.lo[test->along] <= place)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/*
 * Does the point that has a code, ascending, pass a test and those before it?  Raises what core's operators
 * raise of distances.  Allocates nothing.
 */
bool
gpuds_point_passes(const GpudsPointTest *test, GpudsCode code)
{
	uint64 at[2];

	/* of many shapes all may have to be looked at */
	CHECK_FOR_INTERRUPTS();
	gpuds_zorder_coordinates(code, &at[0], &at[1]);
	for (; test; test = test->next)
	{
		const uint64 place = at[test->along];
		int64 i = begun(test, place) - 1;

		while (i >= 0 && test->reach[i] >= place && !is_in(&test->shapes[i], at, code))
			i--;
		if (i < 0 || test->reach[i] < place)
			return false;
	}
	return true;
}
