/*-------------------------------------------------------------------------
 *
 * near.h
 *	  Points by how near they are to one: parts of an index whose first column they are.
 *
 * A distance is core's (point <-> point).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_NEAR_H
#define GPUDS_KEY_NEAR_H

#include "utils/geo_decls.h"

#include "key/key.h"

typedef enum GpudsNearPart
{
	GPUDS_NEAR_FROM,  /* points whose codes are the center's or higher */
	GPUDS_NEAR_UP_TO, /* ... or lower */
	GPUDS_NEAR_RING,  /* all points whose distances are neither up to inner nor beyond outer, and others */
	GPUDS_NEAR_SQUARE,
	GPUDS_NEAR_NULL /* NULLs */
} GpudsNearPart;

/* A square of Z-order: points whose coordinates' codes are its lowest ones but for the lowest bits. */
typedef struct GpudsNearSquare
{
	uint64 lo[2]; /* of x and y, with zeros in these bits */
	int bits;     /* how many, of each; 0 to 64 */
} GpudsNearSquare;

/* Squares that a larger one is made of. */
#define GPUDS_NEAR_QUARTERS 4

typedef struct GpudsNear
{
	GpudsNearPart part;
	Point center;
	double inner; /* below 0: no point is as near */
	double outer; /* infinity: all points are in the ring that are not nearer, NaNs among them */
	GpudsNearSquare square;
	bool hint; /* no answer depends on what is read: it needs no locks for SERIALIZABLE */
} GpudsNear;

/* near.c */
extern void gpuds_key_set_of_near(const GpudsKeyLayout *layout, const GpudsNear *near, GpudsKeySet *set);
extern double gpuds_near_distance(const GpudsNear *near, const GpudsKeyLayout *layout,
								  const GpudsEntry *entry);
extern void gpuds_near_quarter(const GpudsNearSquare *square, int number, GpudsNearSquare *quarter);
extern double gpuds_near_square_distance(const Point *center, const GpudsNearSquare *square);

#endif /* GPUDS_KEY_NEAR_H */
