/*-------------------------------------------------------------------------
 *
 * runs.h
 *	  Sorting more entries than fit in memory: runs in temporary files, and the
 *	  merge of runs, arrays and other sorted sources.
 *
 * A source may say that an entry is deleted (GPUDS_RUN_DELETED).  Of equal entries, the one
 * from the source with the highest number counts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_RUNS_H
#define GPUDS_RUNS_H

#include "storage/buffile.h"

#include "gpuds.h"

/* A bit of GpudsEntry.t that entries leave zero.  Does not count in comparisons. */
#define GPUDS_RUN_DELETED (UINT64CONST(1) << 48)

typedef struct GpudsMerge GpudsMerge;

/*
 * Gives the next entries of a source: points *entries at them, valid until the
 * next call, and returns how many there are, 0 at the end.
 */
typedef int (*GpudsSourceNext)(void *arg, const GpudsEntry **entries);

/* A sorted run: count records of a file, behind first others. */
typedef struct GpudsSortedRun
{
	BufFile *file;
	int64 first;
	int64 count;
} GpudsSortedRun;

extern void gpuds_run_write(BufFile *file, const GpudsEntry *entries, int64 n, int nwords);

extern void gpuds_run_entry(const GpudsSortedRun *run, int64 i, int nwords, GpudsEntry *entry);
extern int64 gpuds_run_below(const GpudsSortedRun *run, int nwords, const GpudsEntry *bound);

extern GpudsMerge *gpuds_merge_begin(int nwords, Size memory);
extern void gpuds_merge_source(GpudsMerge *merge, GpudsSourceNext next, void *arg);
extern void gpuds_merge_array(GpudsMerge *merge, const GpudsEntry *entries, int64 n);
extern void gpuds_merge_run(GpudsMerge *merge, const GpudsSortedRun *run);
extern void gpuds_merge_runs(GpudsMerge *merge, BufFile *file, int64 records, int64 run_records);
extern int64 gpuds_merge_next(GpudsMerge *merge, GpudsEntry *out, int64 cap);
extern void gpuds_merge_end(GpudsMerge *merge);

#endif /* GPUDS_RUNS_H */
