/*-------------------------------------------------------------------------
 *
 * nearest.h
 *	  What the planner tells the executor of a GpudsNearest.
 *
 * custom_exprs has the point that others are near, and the distance that rows are ordered by.  custom_private
 * has a list of the index's OID, and one of an integer: how many points are likely to be wanted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_NEAREST_H
#define GPUDS_CUSTOM_NEAREST_H

/* Numbers of custom_exprs ... */
enum
{
	NEAREST_CENTER,
	NEAREST_DISTANCE
};

/* ... and of the lists of custom_private. */
enum
{
	NEAREST_INDEX,
	NEAREST_WANTED
};

/* Points that are taken to be wanted, at least, at most, and where nobody knows. */
#define GPUDS_NEAREST_FEW 8
#define GPUDS_NEAREST_MOST 10000
#define GPUDS_NEAREST_UNKNOWN 100

#endif /* GPUDS_CUSTOM_NEAREST_H */
