/*-------------------------------------------------------------------------
 *
 * quads.h
 *	  Rectangles as intervals of Z-order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_QUADS_H
#define GPUDS_KEY_QUADS_H

#include "key/code.h"

/* The most intervals that a rectangle becomes. */
#define GPUDS_MAX_QUADS 64

/* A part of a rectangle, or of a shape with a number, in the smallest square of Z-order that has it. */
typedef struct GpudsQuad
{
	GpudsCodeRange codes; /* from the part's lowest to its highest */
	uint32 shape;
	uint8 bits; /* the lowest ones, in which codes of the square differ */
} GpudsQuad;

extern int gpuds_quads(const GpudsRectangle *rectangle, int most, double enough, GpudsQuad *quads);

#endif /* GPUDS_KEY_QUADS_H */
