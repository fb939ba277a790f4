/*-------------------------------------------------------------------------
 *
 * sorter.h
 *	  Entries, or operations on them, in; entries out, ascending and all different.
 *
 * A sorter of operations keeps the last one on each entry, in the order in which they were added.  An
 * entry that was deleted last does not come out.  An entry that comes out carries no mark but
 * GPUDS_RUN_DEAD.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SORTER_H
#define GPUDS_SORTER_H

#include "storage/sharedfileset.h"

#include "kernels/core/entry.h"
#include "sort/runs.h"

/* The longest run that is sorted in a moment.  Nothing can interrupt the sort of a run. */
#define GPUDS_SORTER_MOMENT (INT64CONST(4) * 1024 * 1024)

typedef struct GpudsSorter GpudsSorter;

extern GpudsSorter *gpuds_sorter_begin(int nwords, Size memory, int64 longest);
extern GpudsSorter *gpuds_sorter_begin_ops(int nwords, Size memory, int64 longest);
extern void gpuds_sorter_share(GpudsSorter *sorter, SharedFileSet *fileset, const char *name);
extern void gpuds_sorter_older(GpudsSorter *sorter, GpudsSourceNext next, void *arg);

extern void gpuds_sorter_reserve(GpudsSorter *sorter, int64 n);
extern GpudsEntry *gpuds_sorter_slot(GpudsSorter *sorter);
extern void gpuds_sorter_add(GpudsSorter *sorter, const GpudsEntry *entry);
extern void gpuds_sorter_add_op(GpudsSorter *sorter, const GpudsEntry *entry, uint8 flags);
extern int64 gpuds_sorter_held(const GpudsSorter *sorter);

extern void gpuds_sorter_sort(GpudsSorter *sorter);
extern int64 gpuds_sorter_total(const GpudsSorter *sorter);
extern int64 gpuds_sorter_next(GpudsSorter *sorter, GpudsEntry *out, int64 cap);
extern int64 gpuds_sorter_block(GpudsSorter *sorter, const GpudsEntry **entries);

extern GpudsOp *gpuds_sorter_ops(GpudsSorter *sorter, bool sorted, int64 *n);
extern void gpuds_sorter_clear(GpudsSorter *sorter);

extern int gpuds_sorter_export(GpudsSorter *sorter);
extern void gpuds_sorter_end(GpudsSorter *sorter);

#endif /* GPUDS_SORTER_H */
