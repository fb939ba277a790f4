/*-------------------------------------------------------------------------
 *
 * build.h
 *	  What the files of CREATE INDEX share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_BUILD_H
#define GPUDS_BUILD_H

#include "access/parallel.h"
#include "access/relscan.h"
#include "storage/buffile.h"
#include "nodes/execnodes.h"
#include "storage/sharedfileset.h"

#include "index/index.h"
#include "build/base_parts.h"

/* Phases in pg_stat_progress_create_index; 1 is PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE. */
#define GPUDS_PHASE_SCAN 2
#define GPUDS_PHASE_SORT 3
#define GPUDS_PHASE_WRITE 4

/* What one participant collects. */
typedef struct GpudsCollector
{
	GpudsKeyLayout layout;
	GpudsEntry *entries;
	GpudsEntry *scratch;
	GpudsKeyScratch hashes;
	int64 n;
	int64 capacity;
	int64 full;             /* spill when there are so many */
	BlockNumber block;      /* of the last entry's row */
	BufFile *file;          /* NULL: nothing was spilled yet */
	SharedFileSet *fileset; /* where it is made, NULL: private */
	int participant;        /* whose runs these are, if others read them */
	int64 spilled;          /* entries */
	int nruns;
	int64 *run_records; /* of each run */
} GpudsCollector;

/* build.c */
extern IndexBuildResult *gpuds_build(Relation heap, Relation index, IndexInfo *indexInfo, uint8 structure);
extern void gpuds_build_empty(Relation index, uint8 structure);
extern char *gpuds_build_phase_name(int64 phase);

/* build_worker.c */
extern void gpuds_collector_init(GpudsCollector *collector, Relation heap, Relation index, int64 kilobytes);
extern double gpuds_collect(GpudsCollector *collector, Relation heap, Relation index, IndexInfo *indexInfo,
							bool progress, ParallelTableScanDesc pscan);
extern void gpuds_collector_export(GpudsCollector *collector);
extern void gpuds_collector_free(GpudsCollector *collector);
extern void gpuds_run_file_name(char *name, int participant);

/* parallel.c */
extern bool gpuds_parallel_build(Relation heap, Relation index, IndexInfo *indexInfo, int nworkers,
								 IndexBuildResult *result);
extern PGDLLEXPORT void gpuds_build_worker(dsm_segment *seg, shm_toc *toc);

#endif /* GPUDS_BUILD_H */
