/*-------------------------------------------------------------------------
 *
 * point.h
 *	  Points as codes in Z-order.
 *
 * A coordinate's code has all bits of the number, so that -0 is next below 0, and numbers that are none are
 * at both ends.  The bits of both codes alternate, those of x first: a point's code tells its bytes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_POINT_H
#define GPUDS_KEY_POINT_H

#include "postgres.h"

#include <float.h>
#include <math.h>

#include "utils/geo_decls.h"

#include "key/key.h"

/* A condition on points, and those before it: what an entry is tried by. */
typedef struct GpudsPointTest GpudsPointTest;

/* A rectangle of codes of coordinates, x and y, ends included. */
typedef struct GpudsRectangle
{
	uint64 lo[2];
	uint64 hi[2];
} GpudsRectangle;

/* The code of a coordinate. */
static inline uint64
gpuds_coordinate_code(float8 value)
{
	uint64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline float8
gpuds_coordinate_value(uint64 code)
{
	const uint64 bits = code >> 63 ? code ^ UINT64_C(1) << 63 : ~code;
	float8 value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* A coordinate in the plane, near the ends what is neither finite nor a number. */
static inline float8
gpuds_place_of_coordinate(uint64 code)
{
	const float8 value = gpuds_coordinate_value(code);

	if (isnan(value) || isinf(value))
		return code >> 63 ? DBL_MAX : -DBL_MAX;
	return value;
}

/* Puts a zero before each bit. */
static inline uint64
gpuds_spread_bits(uint32 bits)
{
	uint64 spread = bits;

	spread = (spread | spread << 16) & UINT64_C(0x0000FFFF0000FFFF);
	spread = (spread | spread << 8) & UINT64_C(0x00FF00FF00FF00FF);
	spread = (spread | spread << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	spread = (spread | spread << 2) & UINT64_C(0x3333333333333333);
	return (spread | spread << 1) & UINT64_C(0x5555555555555555);
}

/* Every other bit, from the lowest on. */
static inline uint32
gpuds_gather_bits(uint64 bits)
{
	bits &= UINT64_C(0x5555555555555555);
	bits = (bits | bits >> 1) & UINT64_C(0x3333333333333333);
	bits = (bits | bits >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	bits = (bits | bits >> 4) & UINT64_C(0x00FF00FF00FF00FF);
	bits = (bits | bits >> 8) & UINT64_C(0x0000FFFF0000FFFF);
	return (uint32) (bits | bits >> 16);
}

/* The code of a point whose coordinates have these codes. */
static inline GpudsCode
gpuds_zorder(uint64 x, uint64 y)
{
	const uint64 high = gpuds_spread_bits((uint32) (x >> 32)) << 1 | gpuds_spread_bits((uint32) (y >> 32));
	const uint64 low = gpuds_spread_bits((uint32) x) << 1 | gpuds_spread_bits((uint32) y);

	return (GpudsCode) high << 64 | low;
}

/* The inverse. */
static inline void
gpuds_zorder_coordinates(GpudsCode code, uint64 *x, uint64 *y)
{
	const uint64 high = (uint64) (code >> 64);
	const uint64 low = (uint64) code;

	*x = (uint64) gpuds_gather_bits(high >> 1) << 32 | gpuds_gather_bits(low >> 1);
	*y = (uint64) gpuds_gather_bits(high) << 32 | gpuds_gather_bits(low);
}

static inline GpudsCode
gpuds_point_code(const Point *point)
{
	return gpuds_zorder(gpuds_coordinate_code(point->x), gpuds_coordinate_code(point->y));
}

static inline void
gpuds_point_value(GpudsCode code, Point *point)
{
	uint64 x;
	uint64 y;

	gpuds_zorder_coordinates(code, &x, &y);
	point->x = gpuds_coordinate_value(x);
	point->y = gpuds_coordinate_value(y);
}

/* point.c */
extern bool gpuds_point_passes(GpudsPointTest *test, GpudsCode code);

#endif /* GPUDS_KEY_POINT_H */
