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

#define CPU_NAME_(set) gpuds_cpu_##set
#define CPU_NAME(set) CPU_NAME_(set)
#define CPU_STRING_(set) #set
#define CPU_STRING(set) CPU_STRING_(set)

static int64_t
btree_scan(const BtreeView *view, GpudsScan *scan, bool forward, GpudsEntry *out, int64_t cap)
{
	return cpu_btree_scan(view, scan, forward, out, cap);
}

static uint64_t
btree_count(const BtreeView *view, const GpudsInterval *intervals, int64_t n)
{
	return cpu_btree_count(view, intervals, n);
}

#define STRUCTURE_SCAN(number, NAME, name, Name, capabilities) [number] = name##_cpu_scan,

const GpudsCpuKernels CPU_NAME(CPU_SET) = {
	.name = CPU_STRING(CPU_SET),
	.scan = { STRUCTURE_ROWS(STRUCTURE_SCAN) },
	.btree_scan = btree_scan,
	.btree_count = btree_count,
};
