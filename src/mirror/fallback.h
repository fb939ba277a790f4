/*-------------------------------------------------------------------------
 *
 * fallback.h
 *	  What the files that scan the journal share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_FALLBACK_H
#define GPUDS_FALLBACK_H

#include "mirror/mirror.h"
#include "mirror/sorted.h"

/* Operations sorted at a time: a moment's work. */
#define GPUDS_MAX_RUN_OPS (1024 * 1024)

/* fallback_sort.c */
extern Size gpuds_fallback_memory_bytes(void);
extern bool gpuds_fallback_sort(const GpudsMirrorSource *source, const GpudsScan *only, GpudsSorted *sorted);

/* fallback_near.c */
extern bool gpuds_fallback_near(const GpudsMirrorSource *source, const GpudsScan *scan, bool forward,
								GpudsSorted *sorted);

#endif /* GPUDS_FALLBACK_H */
