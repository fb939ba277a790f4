/*-------------------------------------------------------------------------
 *
 * cpu_dispatch.h
 *	  The loops of the CPU device, one set for each instruction set.
 *
 * Plain C: the kernel tests use it without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CPU_H
#define GPUDS_CPU_H

#define STRUCTURES_ON_CPU
#include "kernels/cpu/structure.h"
#include "kernels/structures.h"

/*
 * What is compiled for one instruction set: the scans of all structures, by number;
 * cpu_btree_scan and cpu_btree_count, which only tests call.
 */
typedef struct GpudsCpuKernels
{
	const char *name;
	CpuScan scan[STRUCTURE_NUMBERS];
	int64_t (*btree_scan)(const BtreeView *view, GpudsScan *scan, bool forward, GpudsEntry *out, int64_t cap);
	uint64_t (*btree_count)(const BtreeView *view, const GpudsInterval *intervals, int64_t n);
} GpudsCpuKernels;

/* Sets that the compiler could not make have no functions. */
extern const GpudsCpuKernels gpuds_cpu_plain;
extern const GpudsCpuKernels gpuds_cpu_sse42;
extern const GpudsCpuKernels gpuds_cpu_avx2;
extern const GpudsCpuKernels gpuds_cpu_avx512;
extern const GpudsCpuKernels gpuds_cpu_neon;

/* The sets that this machine can run, the best one first; n of them. */
extern const GpudsCpuKernels *const *gpuds_cpu_variants(int *n);

/* The best set for this machine; chosen at the first call. */
extern const GpudsCpuKernels *gpuds_cpu_kernels(void);

#endif /* GPUDS_CPU_H */
