/*-------------------------------------------------------------------------
 *
 * cpu_loops.h
 *	  The body of one set of the CPU device's loops.
 *
 * A file that includes it has set the target of the functions that follow,
 * SIMD_..., and CPU_SET, the set's name.
 *
 *-------------------------------------------------------------------------
 */
#include "device/cpu_dispatch.h"
#define STRUCTURES_ON_CPU
#include "kernels/structures.h"

#define CPU_NAME_(set) gpuds_cpu_##set
#define CPU_NAME(set) CPU_NAME_(set)
#define CPU_STRING_(set) #set
#define CPU_STRING(set) CPU_STRING_(set)

#define STRUCTURE_SCAN(number, NAME, name, Name, title) [number] = name##_cpu_scan,
#define STRUCTURE_COUNT(number, NAME, name, Name, title) [number] = name##_cpu_count,

const GpudsCpuKernels CPU_NAME(CPU_SET) = {
	.name = CPU_STRING(CPU_SET),
	.scan = { STRUCTURE_ROWS(STRUCTURE_SCAN) },
	.count = { STRUCTURE_ROWS(STRUCTURE_COUNT) },
	.test = cpu_test_column,
};
