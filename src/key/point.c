/*-------------------------------------------------------------------------
 *
 * point.c
 *	  Conditions on points, as intervals of Z-order and a test of entries.
 *
 * A condition is a set of shapes (shape.h), of which a point has to be in one (shapes.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "key/set.h"

struct GpudsPointTest
{
	GpudsPointTest *next;
	GpudsShapes *shapes;
	int64 near; /* the code that was tried last: they come in order, mostly */
};

/* The shapes of an array's elements.  NULL elements have none. */
static GpudsShapes *
shapes_of_array(Oid function, Datum value)
{
	bool copied;
	ArrayType *array = gpuds_key_array(value, &copied);
	const int64 n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const uint8 *bitmap = ARR_NULLBITMAP(array);
	GpudsShapes *shapes = gpuds_shapes_begin(n);
	char *at = ARR_DATA_PTR(array);
	int16 typlen;
	bool typbyval;
	char typalign;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
	for (int64 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (bitmap != NULL && (bitmap[i / 8] & (1 << (i % 8))) == 0)
			continue;
		(void) gpuds_shapes_add(shapes, function, fetch_att(at, typbyval, typlen));
		at = att_addlength_pointer(at, typlen, at);
		at = (char *) att_align_nominal(at, typalign);
	}
	if (copied)
		pfree(array);
	return shapes;
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
		test->shapes = shapes_of_array(function, key->sk_argument);
	else
	{
		test->shapes = gpuds_shapes_begin(1);
		(void) gpuds_shapes_add(test->shapes, function, key->sk_argument);
	}
	gpuds_shapes_codes(test->shapes, &narrower);
	test->next = set->tests;
	gpuds_set_intersect(set, &narrower);
	set->tests = test;
}

/*
 * Does the point that has a code, ascending, pass a test and those before it?  Raises what core's operators
 * raise of distances.  Allocates nothing.
 */
bool
gpuds_point_passes(GpudsPointTest *test, GpudsCode code)
{
	/* of many shapes all may have to be looked at */
	CHECK_FOR_INTERRUPTS();
	for (; test; test = test->next)
	{
		GpudsShapesAt at;

		gpuds_shapes_find(test->shapes, code, test->near, &at);
		test->near = at.near;
		if (gpuds_shapes_next(test->shapes, &at) < 0)
			return false;
	}
	return true;
}
