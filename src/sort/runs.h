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
#include "storage/sharedfileset.h"

#include "gpuds.h"

/*
 * Marks of an entry, in bits of GpudsEntry.t that entries leave zero.  They do not count in comparisons, and
 * are the flags of its record in a file (sort/record.h).
 */
#define GPUDS_RUN_DELETED (UINT64CONST(1) << 48)
#define GPUDS_RUN_DEAD (UINT64CONST(1) << 49)
#define GPUDS_RUN_MARKS (GPUDS_RUN_DELETED | GPUDS_RUN_DEAD)

/* What a merge takes to read a run, at least. */
#define GPUDS_RUN_READ_ENTRIES 128
#define GPUDS_RUN_READ_BYTES (GPUDS_RUN_READ_ENTRIES * sizeof(GpudsEntry))

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

extern void gpuds_runs_export(BufFile *file, const GpudsSortedRun *runs, int64 n);
extern BufFile *gpuds_runs_open(SharedFileSet *fileset, const char *name, int nwords, int64 records,
								GpudsSortedRun *runs, int64 n);

extern GpudsMerge *gpuds_merge_begin(int nwords, Size memory, bool keep_deleted);
extern void gpuds_merge_source(GpudsMerge *merge, GpudsSourceNext next, void *arg);
extern void gpuds_merge_array(GpudsMerge *merge, const GpudsEntry *entries, int64 n);
extern void gpuds_merge_run(GpudsMerge *merge, const GpudsSortedRun *run);
extern int64 gpuds_merge_next(GpudsMerge *merge, GpudsEntry *out, int64 cap);
extern void gpuds_merge_end(GpudsMerge *merge);

#endif /* GPUDS_RUNS_H */
