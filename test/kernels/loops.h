/*-------------------------------------------------------------------------
 *
 * loops.h
 *	  The CPU device's loops for a view of a B+tree, which may be of a version
 *	  that its tree no longer has, or of nodes that no arena has.
 *
 * The loops take an arena and a tree, so they get a tree whose only version is the
 * view's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KERNELS_LOOPS_H
#define TEST_KERNELS_LOOPS_H

#include "common.h"

#include "device/cpu_dispatch.h"

/* One of the instruction sets of this machine, another at every call. */
static inline const GpudsCpuKernels *
test_kernels(void)
{
	int n;
	const GpudsCpuKernels *const *variants = gpuds_cpu_variants(&n);

	return variants[test_below((uint64_t) n)];
}

static inline CpuTree
test_tree_of_view(const GpudsView *view)
{
	CpuTree tree = { .head = head_make(view->nwords, view->height, view->root),
					 .nwords = (uint32_t) view->nwords,
					 .count = { view->entries, view->entries } };

	return tree;
}

/* As CpuScan. */
static inline int64_t
test_scan(const GpudsCpuKernels *kernels, const GpudsView *view, GpudsScan *scan, bool forward,
		  GpudsEntry *out, int64_t cap)
{
	CpuTree tree = test_tree_of_view(view);

	return kernels->scan[GPUDS_STRUCTURE_BTREE]((const Arena *) view->base, (const CpuTree *) &tree, scan,
												forward, out, cap);
}

/* As CpuCounter. */
static inline void
test_count(const GpudsCpuKernels *kernels, const GpudsView *view, GpudsScan *scan, int64_t most,
		   CpuCount *count)
{
	CpuTree tree = test_tree_of_view(view);

	CHECK(kernels->count[GPUDS_STRUCTURE_BTREE]((const Arena *) view->base, (const CpuTree *) &tree, scan,
												most, count));
}

#endif /* TEST_KERNELS_LOOPS_H */
