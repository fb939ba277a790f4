/*-------------------------------------------------------------------------
 *
 * btree_apply_gpu.h
 *	  Applying operations to a tree in device memory: a batch of any size.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_GPU_H
#define BTREE_APPLY_GPU_H

#include "kernels/btree/btree_apply_gpu_large.h"
#include "kernels/btree/btree_apply_gpu_small.h"

/*
 * Applies operations in any order: of several on one entry the one of the highest
 * order counts.  They are in host memory that the device can use, at ops, which the
 * device sees at there.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing was changed.
 */
static inline GpuStatus
gpu_btree_apply(GpuChange *c, GpuTree *tree, const GpudsOp *ops, const GpudsOp *there, int64_t n,
				int64_t *inserted, int64_t *deleted)
{
	GpuStatus status;
	GpuSpan span;

	*inserted = *deleted = 0;
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	/* a large batch counts before it makes anything */
	if (n <= GPU_SMALL_OPS && tree->entries.load() + (uint64_t) n <= GPU_MAX_ENTRIES)
		return gpu_btree_apply_small(c, tree, there, (int) n, inserted, deleted);
	if (!gpu_span_take(c->pool, &span, (size_t) n * sizeof(GpudsOp)))
		return GPU_NO_MEMORY;
	gpu_copy_bus(&c->stream, span.at, ops, (size_t) n * sizeof(GpudsOp));
	status = gpu_btree_apply_large(c, tree, (const GpudsOp *) span.at, n, inserted, deleted);
	gpu_change_give(c, &span);
	return status;
}

/*
 * The changing thread.
 */

/* Device memory that a small batch works in. */
static inline size_t
gpu_btree_small_bytes()
{
	GpuScratch scratch = { NULL, 0 };
	GpuSmall small;

	gpu_separators_layout(&scratch, &small.levels.parts, (int64_t) BTREE_LEVELS * 2 * GPU_SMALL_OPS, 2);
	gpu_small_layout(&scratch, &small, gpu_small_most());
	return scratch.used_bytes;
}

/* gpu_change_open with as much memory as trees need. */
static inline bool
gpu_btree_change_open(GpuChange *c, GpuPool *pool)
{
	return gpu_change_open(c, pool, sizeof(GpuBtreeReport), gpu_btree_small_bytes());
}

#endif /* BTREE_APPLY_GPU_H */
