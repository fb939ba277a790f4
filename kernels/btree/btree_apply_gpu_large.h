/*-------------------------------------------------------------------------
 *
 * btree_apply_gpu_large.h
 *	  Large batches of operations: their leaves and large levels are made by the
 *	  whole device.
 *
 * The leaves, and each level of many nodes, take a few launches; one block makes
 * the levels above.  The host waits for the device three times: to learn which bits
 * the operations are to be sorted by, to learn how many leaves they take, and for
 * the end.  In between the host only knows the largest sizes that things may have,
 * and launches that many threads; those that have nothing to do end at once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_GPU_LARGE_H
#define BTREE_APPLY_GPU_LARGE_H

#include "kernels/btree/btree_apply_gpu_levels.h"

/* Copies operations into the batch's arrays, by numbers or (NULL) as they are. */
template <int nw> struct GpuGather
{
	const GpudsOp *ops;
	const uint32_t *number;
	BtreeBatch batch;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsOp op = ops[number ? number[i] : i];

		btree_apply_set(&batch, i, &op, nw);
	}
};

/* Working memory until it is known what the batch takes. */
struct GpuApply
{
	GpuSort sort;
	BtreeBatch batch;
	BtreeCounts *counts;
};

static inline void
gpu_apply_layout(GpuScratch *scratch, GpuApply *a, GpuChange *c, const GpuTree *tree, int64_t n)
{
	gpu_sort_layout(scratch, &a->sort, n);
	gpu_batch_layout(scratch, &a->batch, n, tree->nwords);
	a->counts = gpu_scratch<BtreeCounts>(scratch, 1);
	gpu_scratch_temp(scratch, &c->stream, n + 1);
}

/* Finds out what the sorted batch takes; it comes into the report. */
template <int nw>
static inline void
gpu_apply_plan(GpuChange *c, GpuApply *a, const BtreeLevel &l, GpuTotals *totals)
{
	GpuBtreeReport *report = gpu_btree_report(c);
	GpuStream *s = &c->stream;
	int64_t n = a->batch.n;

	gpu_launch_phase<nw, GPU_FIND>(s, l, n);
	gpu_launch_phase<nw, GPU_HEAD>(s, l, n + 1);
	gpu_exclusive_sum(s, a->batch.head, a->batch.head, n + 1);
	gpu_exclusive_sum(s, a->batch.sum, a->batch.sum, n + 1);
	gpu_launch_phase<nw, GPU_RUN>(s, l, n);
	gpu_fill(s, a->counts, 0, sizeof(BtreeCounts));
	gpu_launch_phase<nw, GPU_PLAN>(s, l, n + 1);
	gpu_exclusive_sum(s, a->batch.taken, a->batch.taken, n + 1);
	gpu_copy_bus(s, &report->totals.sum, a->batch.sum + n, sizeof(uint64_t));
	gpu_copy_bus(s, &report->totals.taken, a->batch.taken + n, sizeof(uint64_t));
	gpu_copy_bus(s, &report->totals.gone, &a->counts->gone, sizeof(uint32_t));
	gpu_copy_bus(s, &report->shape, a->sort.shape, sizeof(GpuShape));
	gpu_finish(s);
	*totals = report->totals;
}

/* Makes the new version; its counts come into the report. */
template <int nw>
static inline void
gpu_apply_make(GpuChange *c, const GpuLevels &levels, const GpuBounds *b)
{
	GpuStream *s = &c->stream;
	BtreeLevel l = levels.at(0);
	int level = 1;

	gpu_fill(s, l.counts, 0, sizeof(BtreeCounts));
	gpu_launch_phase<nw, GPU_LIST>(s, l, l.batch.n);
	gpu_launch_phase<nw, GPU_LEAF>(s, l, b->parts[0] * BTREE_LEAF_THREADS);
	for (; level < b->levels &&
		   (b->changes[level - 1] > GPU_SMALL_LEVEL || b->parts[level - 1] > GPU_SMALL_LEVEL);
		 level++)
	{
		int64_t below = b->changes[level - 1];

		l = levels.at(level);
		gpu_launch_phase<nw, GPU_LEVEL_HEAD>(s, l, below + 1);
		gpu_exclusive_sum(s, l.head, l.head, below + 1);
		gpu_launch_phase<nw, GPU_LEVEL_RUN>(s, l, below);
		gpu_launch_phase<nw, GPU_LEVEL_PLAN>(s, l, b->changes[level] + 1);
		gpu_exclusive_sum(s, l.here.first, l.here.first, b->changes[level] + 1);
		gpu_launch_phase<nw, GPU_LEVEL_LIST>(s, l, b->changes[level] + b->parts[level - 1]);
		gpu_launch_phase<nw, GPU_LEVEL_NODE>(s, l, b->parts[level] * BTREE_INNER_THREADS);
	}
	gpu_launch_block(s, GpuTopLevels<nw>{ levels, level }, GPU_BLOCK_THREADS, 0);
	gpu_copy_bus(s, &gpu_btree_report(c)->counts, l.counts, sizeof(BtreeCounts));
	gpu_finish(s);
}

/* Applies a batch that is in order and planned. */
template <int nw>
static inline GpuStatus
gpu_apply_planned(GpuChange *c, GpuTree *tree, const BtreeLevel &common, const GpuTotals *totals)
{
	uint64_t entries = tree->entries.load() + (totals->sum >> 32) - (uint32_t) totals->sum;
	int64_t changes = (uint32_t) totals->taken;
	GpuBounds bounds = gpu_apply_bounds(tree, changes,
										(int64_t) (totals->taken >> 32) - changes + totals->gone);
	GpuScratch scratch = { NULL, 0 };
	GpuLevels levels;
	GpuSpan span;

	levels.common = common;
	gpu_levels_layout(&scratch, &levels, &bounds, tree->nwords);
	if (entries > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	if (!gpu_apply_reserve(c, tree, &bounds) || !gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_levels_layout(&scratch, &levels, &bounds, tree->nwords);
	gpu_levels_nodes(tree, &levels.common);
	gpu_apply_make<nw>(c, levels, &bounds);
	gpu_change_give(c, &span);
	if (gpu_change_ok(c))
		gpu_apply_publish(c, tree);
	return gpu_change_status(c);
}

template <int nw>
static inline GpuStatus
gpu_apply_large(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int64_t n, GpuTotals *totals)
{
	GpuShape *shape = &gpu_btree_report(c)->shape;
	GpuStream *s = &c->stream;
	GpuScratch scratch = { NULL, 0 };
	BtreeLevel l = {};
	const uint32_t *number;
	GpuStatus status;
	GpuApply a;
	GpuSpan span;

	gpu_apply_layout(&scratch, &a, c, tree, n);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_apply_layout(&scratch, &a, c, tree, n);
	gpu_levels_init(c, tree, &l);
	l.batch = a.batch;
	l.counts = a.counts;
	number = gpu_sort_batch(s, &a.sort, ops, n, shape);
	gpu_launch(s, n, GpuGather<nw>{ ops, number, a.batch });
	gpu_apply_plan<nw>(c, &a, l, totals);
	if (gpu_change_ok(c) && shape->long_tie)
	{
		number = gpu_sort_batch_by_words(s, &a.sort, ops, n, shape);
		gpu_launch(s, n, GpuGather<nw>{ ops, number, a.batch });
		gpu_apply_plan<nw>(c, &a, l, totals);
	}
	status = gpu_change_status(c);
	if (status == GPU_OK && totals->sum != 0)
		status = gpu_apply_planned<nw>(c, tree, l, totals);
	gpu_change_give(c, &span);
	return status;
}

/*
 * Applies operations that are in device memory, in any order: of several on one
 * entry the one of the highest order counts.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing
 * was changed.
 */
static inline GpuStatus
gpu_btree_apply_large(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int64_t n, int64_t *inserted,
					  int64_t *deleted)
{
	GpuTotals totals = {};
	GpuStatus status;

	*inserted = *deleted = 0;
	if (n >= GPU_MAX_ITEMS)
		return GPU_NO_MEMORY;
	status = tree->nwords == 1 ? gpu_apply_large<1>(c, tree, ops, n, &totals)
							   : gpu_apply_large<2>(c, tree, ops, n, &totals);
	if (status == GPU_OK)
	{
		*inserted = (int64_t) (totals.sum >> 32);
		*deleted = (int64_t) (uint32_t) totals.sum;
	}
	return status;
}

#endif /* BTREE_APPLY_GPU_LARGE_H */
