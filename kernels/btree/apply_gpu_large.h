/*-------------------------------------------------------------------------
 *
 * apply_large.h
 *	  Large batches of operations.
 *
 * They take a few launches for the leaves and for each level of many nodes; one
 * block makes the rest.  The host waits for the device three times: to learn which
 * bits the operations are to be sorted by, to learn how many leaves they take,
 * and for the end.  All in between is of the sizes that they may have at most; the
 * device knows better and does no more than it must.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_GPU_LARGE_H
#define BTREE_APPLY_GPU_LARGE_H

#include "kernels/btree/apply_gpu_levels.h"

/*
 * Sorting.
 */

/* What is known of a batch before it is sorted; and its keys, to sort by w0. */
struct GpuFindShape
{
	const GpudsOp *ops;
	int64_t n;
	uint64_t *key;
	uint32_t *number;
	GpuShape *shape;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t varying[4] = { 0, 0, 0, 0 };
		uint32_t unsorted = 0;
		uint32_t disordered = 0;
		GpudsOp first = ops[0];

		for (; i < n; i += GPU_SHAPE_THREADS)
		{
			GpudsOp op = ops[i];

			key[i] = op.e.w0;
			number[i] = (uint32_t) i;
			varying[0] |= op.e.w0 ^ first.e.w0;
			varying[1] |= op.e.w1 ^ first.e.w1;
			varying[2] |= op.e.t ^ first.e.t;
			varying[3] |= op.order ^ first.order;
			if (i > 0)
			{
				GpudsOp before = ops[i - 1];

				unsorted |= entry_less(&before.e, &op.e) ? 0 : 1;
				disordered |= before.order < op.order ? 0 : 1;
			}
		}
		for (int w = 0; w < 4; w++)
			gpu_shape_add(&shape->varying[w], varying[w]);
		if (unsorted)
			shape->unsorted = 1;
		if (disordered)
			shape->disordered = 1;
	}
};

GPU_FN uint64_t
gpu_op_word(const GpudsOp *op, int word)
{
	/* of several operations on one entry the one with the highest order comes first */
	return word == 0 ? op->e.w0 : word == 1 ? op->e.w1 : word == 2 ? op->e.t : ~op->order;
}

/* Numbers to sort, and the word to sort by; backward: the last operation first. */
struct GpuSortFirst
{
	const GpudsOp *ops;
	int64_t n;
	uint64_t *key;
	uint32_t *number;
	int word;
	bool backward;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t j = backward ? n - 1 - i : i;

		number[i] = (uint32_t) j;
		key[i] = gpu_op_word(&ops[j], word);
	}
};

/* The next word to sort by. */
struct GpuSortNext
{
	const GpudsOp *ops;
	uint64_t *key;
	const uint32_t *number;
	int word;

	GPU_FN void operator()(int64_t i) const
	{
		key[i] = gpu_op_word(&ops[number[i]], word);
	}
};

/* Put operations in order whose w0 are equal from bit shift on, where they are few. */
struct GpuSortTies
{
	const GpudsOp *ops;
	int64_t n;
	const uint64_t *key;
	int shift;
	uint32_t *number;
	GpuShape *shape;

	GPU_FN bool less(uint32_t a, uint32_t b) const
	{
		GpudsOp x = ops[a];
		GpudsOp y = ops[b];

		return entry_less(&x.e, &y.e) || (entry_equal(&x.e, &y.e) && x.order > y.order);
	}

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t high = key[i] >> shift;
		int64_t end = i + 1;

		if (i > 0 && key[i - 1] >> shift == high)
			return;
		while (end < n && key[end] >> shift == high)
		{
			if (end - i == GPU_SHORT_TIE)
			{
				shape->long_tie = 1;
				return;
			}
			end++;
		}
		for (int64_t j = i + 1; j < end; j++)
		{
			uint32_t x = number[j];
			int64_t k = j;

			for (; k > i && less(x, number[k - 1]); k--)
				number[k] = number[k - 1];
			number[k] = x;
		}
	}
};

/* Operations into arrays, by numbers or (NULL) as they are. */
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

/*
 * Large batches.
 */

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

/*
 * Sort by all words that vary.  Operations of ascending order are numbered
 * backward, so that of those on one entry the last comes first.
 */
static inline void
gpu_apply_sort_words(GpuStream *s, GpuSort *sort, const GpudsOp *ops, int64_t n, const GpuShape *shape)
{
	bool first = true;

	for (int word = shape->disordered ? 3 : 2; word >= 0; word--)
	{
		int low, high;

		if (shape->varying[word] == 0 && word > 0)
			continue;
		if (first)
			gpu_launch(s, n, GpuSortFirst{ ops, n, sort->key, sort->number, word, !shape->disordered });
		else
			gpu_launch(s, n, GpuSortNext{ ops, sort->key, sort->number, word });
		first = false;
		gpu_bit_range(shape->varying[word], &low, &high);
		gpu_sort_by(s, sort, n, low, high);
	}
}

/* Bring the operations in order, into the batch; sort->shape is to be looked at for long ties. */
template <int nw>
static inline void
gpu_apply_sort(GpuChange *c, GpuApply *a, const GpudsOp *ops)
{
	GpuStream *s = &c->stream;
	GpuSort *sort = &a->sort;
	GpuShape *shape = &c->page->shape;
	int64_t n = a->batch.n;
	const uint32_t *number = NULL;
	int low, high;

	gpu_fill(s, sort->shape, 0, sizeof(GpuShape));
	gpu_launch(s, n < GPU_SHAPE_THREADS ? n : GPU_SHAPE_THREADS,
			   GpuFindShape{ ops, n, sort->key, sort->number, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (!gpu_finish(s))
		return;
	if (shape->unsorted)
	{
		gpu_bit_range(shape->varying[0], &low, &high);
		if (low < high)
		{
			/* the highest bits of w0 are mostly enough */
			int enough = gpu_enough_bits(n, low, high);

			gpu_sort_by(s, sort, n, enough, high);
			gpu_launch(s, n, GpuSortTies{ ops, n, sort->key, enough, sort->number, sort->shape });
		}
		else
		{
			gpu_apply_sort_words(s, sort, ops, n, shape);
		}
		number = sort->number;
	}
	gpu_launch(s, n, GpuGather<nw>{ ops, number, a->batch });
}

/* Find out what the sorted batch takes; it comes into the page. */
template <int nw>
static inline void
gpu_apply_plan(GpuChange *c, GpuApply *a, const BtreeLevel &l, GpuTotals *totals)
{
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
	gpu_copy_bus(s, &c->page->totals.sum, a->batch.sum + n, sizeof(uint64_t));
	gpu_copy_bus(s, &c->page->totals.taken, a->batch.taken + n, sizeof(uint64_t));
	gpu_copy_bus(s, &c->page->totals.gone, &a->counts->gone, sizeof(uint32_t));
	gpu_copy_bus(s, &c->page->shape, a->sort.shape, sizeof(GpuShape));
	gpu_finish(s);
	*totals = c->page->totals;
}

/* Make the new version; its counts come into the page. */
template <int nw>
static inline void
gpu_apply_make(GpuChange *c, const GpuLevels &levels, const GpuBounds *b)
{
	GpuStream *s = &c->stream;
	BtreeLevel l = levels.at(0);
	int level = 1;

	gpu_fill(s, l.counts, 0, sizeof(BtreeCounts));
	gpu_launch_phase<nw, GPU_LIST>(s, l, l.batch.n);
	gpu_launch_phase<nw, GPU_LEAF>(s, l, b->pieces[0] * BTREE_LEAF_LANES);
	for (; level < b->levels &&
		   (b->changes[level - 1] > GPU_SMALL_LEVEL || b->pieces[level - 1] > GPU_SMALL_LEVEL);
		 level++)
	{
		int64_t below = b->changes[level - 1];

		l = levels.at(level);
		gpu_launch_phase<nw, GPU_LEVEL_HEAD>(s, l, below + 1);
		gpu_exclusive_sum(s, l.head, l.head, below + 1);
		gpu_launch_phase<nw, GPU_LEVEL_RUN>(s, l, below);
		gpu_launch_phase<nw, GPU_LEVEL_PLAN>(s, l, b->changes[level] + 1);
		gpu_exclusive_sum(s, l.here.first, l.here.first, b->changes[level] + 1);
		gpu_launch_phase<nw, GPU_LEVEL_LIST>(s, l, b->changes[level] + b->pieces[level - 1]);
		gpu_launch_phase<nw, GPU_LEVEL_NODE>(s, l, b->pieces[level] * BTREE_INNER_LANES);
	}
	gpu_launch_block(s, GpuTopLevels<nw>{ levels, level }, GPU_BLOCK_THREADS, 0);
	gpu_copy_bus(s, &c->page->counts, l.counts, sizeof(BtreeCounts));
	gpu_finish(s);
}

/* A batch that is in order and planned. */
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
	GpuSpan run;

	levels.common = common;
	gpu_levels_layout(&scratch, &levels, &bounds, tree->nwords);
	if (entries > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	if (!gpu_apply_reserve(c, tree, &bounds) || !gpu_scratch_take(c->pool, &run, &scratch))
		return GPU_NO_MEMORY;
	gpu_levels_layout(&scratch, &levels, &bounds, tree->nwords);
	gpu_levels_nodes(tree, &levels.common);
	gpu_apply_make<nw>(c, levels, &bounds);
	gpu_span_give(c->pool, &run);
	if (gpu_change_ok(c))
		gpu_apply_publish(c, tree);
	return gpu_change_status(c);
}

template <int nw>
static inline GpuStatus
gpu_apply_large(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int64_t n, GpuTotals *totals)
{
	GpuScratch scratch = { NULL, 0 };
	BtreeLevel l = {};
	GpuStatus status;
	GpuApply a;
	GpuSpan run;

	gpu_apply_layout(&scratch, &a, c, tree, n);
	if (!gpu_scratch_take(c->pool, &run, &scratch))
		return GPU_NO_MEMORY;
	gpu_apply_layout(&scratch, &a, c, tree, n);
	gpu_levels_init(c, tree, &l);
	l.batch = a.batch;
	l.counts = a.counts;
	gpu_apply_sort<nw>(c, &a, ops);
	gpu_apply_plan<nw>(c, &a, l, totals);
	if (gpu_change_ok(c) && c->page->shape.long_tie)
	{
		gpu_apply_sort_words(&c->stream, &a.sort, ops, n, &c->page->shape);
		gpu_launch(&c->stream, n, GpuGather<nw>{ ops, a.sort.number, a.batch });
		gpu_apply_plan<nw>(c, &a, l, totals);
	}
	status = gpu_change_status(c);
	if (status == GPU_OK && totals->sum != 0)
		status = gpu_apply_planned<nw>(c, tree, l, totals);
	gpu_span_give(c->pool, &run);
	return status;
}

/*
 * Apply operations that lie in device memory, in any order: of several on one
 * entry the one of the highest order counts.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing
 * was changed.
 */
static inline GpuStatus
gpu_tree_apply_large(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int64_t n, int64_t *inserted,
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
