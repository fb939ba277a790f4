/*-------------------------------------------------------------------------
 *
 * apply.h
 *	  Applying operations to a tree in device memory, and using nodes again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_GPU_H
#define BTREE_APPLY_GPU_H

#include "kernels/btree/apply_gpu_large.h"
#include "kernels/btree/apply_gpu_small.h"

/*
 * Apply operations that lie in host memory that the device can use, at ops, or
 * as the device sees them at there, in any order: of several on one entry the
 * one of the highest order counts.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing was changed.
 */
static inline GpuStatus
gpu_tree_apply(GpuChange *c, GpuTree *tree, const GpudsOp *ops, const GpudsOp *there, int64_t n,
			   int64_t *inserted, int64_t *deleted)
{
	GpuStatus status;
	GpuSpan run;

	*inserted = *deleted = 0;
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	/* a large batch counts before it makes anything */
	if (n <= GPU_SMALL_OPS && tree->entries.load() + (uint64_t) n <= GPU_MAX_ENTRIES)
		return gpu_tree_apply_small(c, tree, there, (int) n, inserted, deleted);
	if (!gpu_span_take(c->pool, &run, (size_t) n * sizeof(GpudsOp)))
		return GPU_NO_MEMORY;
	gpu_copy_bus(&c->stream, run.at, ops, (size_t) n * sizeof(GpudsOp));
	status = gpu_tree_apply_large(c, tree, (const GpudsOp *) run.at, n, inserted, deleted);
	gpu_span_give(c->pool, &run);
	return status;
}

/*
 * Use the nodes again that versions have replaced, if no version older than
 * oldest is pinned (UINT64_MAX: none at all).
 */
static inline void
gpu_nodes_reclaim(GpuChange *c, GpuNodes *nodes, uint32_t to)
{
	uint32_t n = to - nodes->retired_from;

	gpu_copy(&c->stream, nodes->free.at + nodes->nfree, nodes->retired.at + nodes->retired_from,
			 n * sizeof(BtreeRef));
	nodes->nfree += n;
	nodes->retired_from = to;
}

static inline void
gpu_tree_reclaim(GpuChange *c, GpuTree *tree, uint64_t oldest)
{
	size_t n = 0;

	while (n < tree->retired.size() && tree->retired[n].version <= oldest)
		n++;
	if (n == 0)
		return;
	gpu_nodes_reclaim(c, &tree->leaves, tree->retired[n - 1].leaves);
	gpu_nodes_reclaim(c, &tree->inners, tree->retired[n - 1].inners);
	tree->retired.erase(tree->retired.begin(), tree->retired.begin() + (ptrdiff_t) n);
	if (tree->retired.empty())
	{
		tree->leaves.retired_from = tree->leaves.retired_to = 0;
		tree->inners.retired_from = tree->inners.retired_to = 0;
	}
}

/*
 * The changing thread.
 */

static inline bool
gpu_change_open(GpuChange *c, GpuPool *pool)
{
	GpuScratch scratch = { NULL, 0 };
	GpuSmall small;

	memset((void *) c, 0, sizeof(*c));
	c->pool = pool;
	if (!gpu_stream_open(&c->stream, false))
		return false;
	gpu_separators_layout(&scratch, &small.levels.pieces, (int64_t) BTREE_LEVELS * 2 * GPU_SMALL_OPS, 2);
	gpu_small_layout(&scratch, &small, gpu_small_most());
	c->page = (GpuPage *) gpu_host_alloc(sizeof(GpuPage));
	c->device_page = c->page ? (GpuPage *) gpu_device_address(c->page) : NULL;
	c->chunks = (uint32_t *) gpu_alloc(sizeof(c->page->chunks));
	c->small = (unsigned char *) gpu_alloc(scratch.used);
	c->small_bytes = scratch.used;
	return c->device_page != NULL && c->chunks != NULL && c->small != NULL;
}

#endif /* BTREE_APPLY_GPU_H */
