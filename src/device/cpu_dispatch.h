/*-------------------------------------------------------------------------
 *
 * cpu_dispatch.h
 *	  The loops of the CPU device, one set for each instruction set.
 *
 * Plain C: the kernel tests use it without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CPU_DISPATCH_H
#define GPUDS_CPU_DISPATCH_H

#include "kernels/cpu/column_test_cpu.h"
#include "kernels/cpu/cpu_structure.h"
#include "kernels/structures.h"

/* Entries whose column is tested at a time, at most. */
#define GPUDS_TEST_ENTRIES CPU_TEST_ENTRIES

/*
 * What is compiled for one instruction set: the scans and counts of all structures, by number, and tests of
 * columns.
 */
typedef struct GpudsCpuKernels
{
	const char *name;
	CpuScan scan[STRUCTURE_NUMBERS];
	CpuCounter count[STRUCTURE_NUMBERS];
	CpuColumnTest test;
} GpudsCpuKernels;

/* A set for another kind of machine has no name and no functions. */
extern const GpudsCpuKernels gpuds_cpu_plain;
extern const GpudsCpuKernels gpuds_cpu_sse42;
extern const GpudsCpuKernels gpuds_cpu_avx2;
extern const GpudsCpuKernels gpuds_cpu_avx512;
extern const GpudsCpuKernels gpuds_cpu_neon;

/* The sets that this machine can run, the best one first; n of them. */
extern const GpudsCpuKernels *const *gpuds_cpu_variants(int *n);

/* The best set for this machine; chosen at the first call. */
extern const GpudsCpuKernels *gpuds_cpu_kernels(void);

#endif /* GPUDS_CPU_DISPATCH_H */
