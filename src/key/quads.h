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

extern int gpuds_quads(const GpudsRectangle *rectangle, int most, GpudsCodeRange *ranges);

#endif /* GPUDS_KEY_QUADS_H */
