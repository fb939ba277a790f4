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
	GPUDS_NEAR_NULL   /* NULLs */
} GpudsNearPart;

typedef struct GpudsNear
{
	GpudsNearPart part;
	Point center;
	double inner; /* below 0: no point is as near */
	double outer; /* infinity: all points are in the ring that are not nearer, NaNs among them */
} GpudsNear;

/* near.c */
extern void gpuds_key_set_of_near(const GpudsKeyLayout *layout, const GpudsNear *near, GpudsKeySet *set);
extern double gpuds_near_distance(const GpudsNear *near, const GpudsKeyLayout *layout,
								  const GpudsEntry *entry);

#endif /* GPUDS_KEY_NEAR_H */
