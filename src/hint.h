/*-------------------------------------------------------------------------
 *
 * hint.h
 *	  What hooks.c tells hint.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_HINT_H
#define GPUDS_HINT_H

#include "utils/palloc.h"

extern void gpuds_hint_rethrow(MemoryContext context);

#endif /* GPUDS_HINT_H */
