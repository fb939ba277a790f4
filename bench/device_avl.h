/*-------------------------------------------------------------------------
 *
 * device_avl.h
 *	  The AVL tree for device_structure.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_AVL_H
#define BENCH_DEVICE_AVL_H

#include "bench/device_structure.h"
#include "kernels/avl/avl_structure_gpu.h"

static inline void
bench_lookups(GpuStream *s, const GpuPool *pool, const AvlOnGpu *tree, const uint64_t *probes,
			  uint64_t *answers, int64_t n, bool)
{
	GpudsView view;

	BENCH_CHECK(tree->view(pool, &view) && view.height > 0);
	gpu_launch(s, n, BenchThreads<AvlProbe>{ AvlProbe::open(view), probes, answers });
}

static inline int64_t
bench_apply_there(Bench *b, AvlOnGpu *tree, const GpudsOp *ops, int64_t n)
{
	GpuAvlTotals totals = {};

	BENCH_CHECK(gpu_avl_apply_large(&b->change, &tree->tree, ops, n, &totals) == GPU_OK);
	gpu_avl_publish(&tree->tree, &totals);
	return (uint32_t) totals.effective;
}

static const BenchStructure bench_avl = { "AVL tree", GPUDS_STRUCTURE_AVL, false, 0, 0, 0, 0, 0 };

#endif /* BENCH_DEVICE_AVL_H */
