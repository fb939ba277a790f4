/*-------------------------------------------------------------------------
 *
 * sorter.h
 *	  Entries in, in any order; the same entries out, ascending and all different.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SORTER_H
#define GPUDS_SORTER_H

#include "kernels/core/entry.h"

typedef struct GpudsSorter GpudsSorter;

extern GpudsSorter *gpuds_sorter_begin(int nwords, int kilobytes);
extern void gpuds_sorter_add(GpudsSorter *sorter, const GpudsEntry *entry);
extern int64 gpuds_sorter_next(GpudsSorter *sorter, GpudsEntry *out, int64 cap);
extern void gpuds_sorter_end(GpudsSorter *sorter);

#endif /* GPUDS_SORTER_H */
