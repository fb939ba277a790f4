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
#include "nodes/execnodes.h"

#include "index/index.h"
#include "build/base_parts.h"
#include "sort/sorter.h"

/* Phases in pg_stat_progress_create_index; 1 is PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE. */
#define GPUDS_PHASE_SCAN 2
#define GPUDS_PHASE_SORT 3
#define GPUDS_PHASE_WRITE 4

/* What one participant collects. */
typedef struct GpudsCollector
{
	GpudsKeyLayout layout;
	GpudsSorter *sorter;
	GpudsKeyScratch hashes;
	BlockNumber block; /* of the last entry's row */
} GpudsCollector;

/* build.c */
extern IndexBuildResult *gpuds_build(Relation heap, Relation index, IndexInfo *indexInfo, uint8 structure);
extern void gpuds_build_empty(Relation index, uint8 structure);
extern char *gpuds_build_phase_name(int64 phase);

/* build_sample.c */
extern void gpuds_choose_stems(Relation heap, Relation index, const IndexInfo *indexInfo,
							   const GpudsKeyLayout *layout, StringInfo stems);

/* build_worker.c */
extern void gpuds_collector_init(GpudsCollector *collector, Relation heap, Relation index, int64 kilobytes);
extern double gpuds_collect(GpudsCollector *collector, Relation heap, Relation index, IndexInfo *indexInfo,
							bool progress, ParallelTableScanDesc pscan);
extern void gpuds_collector_free(GpudsCollector *collector);

/* parallel.c */
extern bool gpuds_parallel_build(Relation heap, Relation index, IndexInfo *indexInfo, int nworkers,
								 IndexBuildResult *result);
extern PGDLLEXPORT void gpuds_build_worker(dsm_segment *seg, shm_toc *toc);

#endif /* GPUDS_BUILD_H */
