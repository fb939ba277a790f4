/*-------------------------------------------------------------------------
 *
 * apply.h
 *	  Applying operations to a tree in device memory.
 *
 * A batch is sorted, each operation finds its leaf, and leaves that change are
 * replaced by new ones (wbt_apply.h).  The inner levels are built anew above the
 * list of all leaves; leaves without changes are part of both versions.
 *
 * The host waits for the device three times: to learn how the operations are to
 * be sorted, to learn how many nodes the new version takes, and for the end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_APPLY_H
#define GPU_APPLY_H

#include "kernels/gpu/load.h"
#include "kernels/gpu/tree.h"
#include "kernels/wbt_apply.h"

/*
 * Sorting.
 */

/* What is known of a batch before it is sorted. */
struct GpuFindShape
{
	const GkOp *ops;
	int64_t n;
	GpuShape *shape;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t varying[4] = { 0, 0, 0, 0 };
		uint32_t unsorted = 0;
		uint32_t disordered = 0;
		GkOp first = ops[0];

		for (; i < n; i += GPU_SHAPE_THREADS)
		{
			GkOp op = ops[i];

			varying[0] |= op.e.w0 ^ first.e.w0;
			varying[1] |= op.e.w1 ^ first.e.w1;
			varying[2] |= op.e.t ^ first.e.t;
			varying[3] |= op.order ^ first.order;
			if (i > 0)
			{
				GkOp before = ops[i - 1];

				unsorted |= gk_less(&before.e, &op.e) ? 0 : 1;
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
gpu_op_word(const GkOp *op, int word)
{
	/* of several operations on one entry the one with the highest order comes first */
	return word == 0 ? op->e.w0 : word == 1 ? op->e.w1 : word == 2 ? op->e.t : ~op->order;
}

/* Numbers to sort, and the word to sort by; backward: the last operation first. */
struct GpuSortFirst
{
	const GkOp *ops;
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
	const GkOp *ops;
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
	const GkOp *ops;
	int64_t n;
	const uint64_t *key;
	int shift;
	uint32_t *number;
	GpuShape *shape;

	GPU_FN bool less(uint32_t a, uint32_t b) const
	{
		GkOp x = ops[a];
		GkOp y = ops[b];

		return gk_less(&x.e, &y.e) || (gk_equal(&x.e, &y.e) && x.order > y.order);
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
	const GkOp *ops;
	const uint32_t *number;
	WbtBatch batch;

	GPU_FN void operator()(int64_t i) const
	{
		GkOp op = ops[number ? number[i] : i];

		wbt_apply_gather(&batch, i, &op, nw);
	}
};

/*
 * Finding leaves.
 */

struct GpuCountChildren
{
	const unsigned char *base;
	WbtList list;
	uint32_t *start;

	GPU_FN void operator()(int64_t i) const
	{
		start[i] = i < list.n ? (uint32_t) wbt_inner_n(wbt_node(base, list.ref[i])) : 0;
	}
};

template <int nw> struct GpuOpenInner
{
	const unsigned char *base;
	WbtList parents;
	const uint32_t *start;
	WbtList children;

	GPU_FN void operator()(int64_t i) const
	{
		wbt_open_inner(base, &parents, start, &children, i / WBT_FANOUT, (int) (i % WBT_FANOUT), nw);
	}
};

/* The list of the root's level. */
struct GpuListRoot
{
	WbtList list;
	WbtRef root;
	uint32_t entries;

	GPU_FN void operator()(int64_t) const
	{
		list.w0[0] = list.t[0] = 0;
		if (list.w1)
			list.w1[0] = 0;
		list.ref[0] = root;
		list.before[0] = 0;
		list.before[1] = entries;
	}
};

template <int nw> struct GpuFindLeaf
{
	WbtView view;
	WbtStarts starts;
	WbtBatch batch;

	GPU_FN void operator()(int64_t i) const
	{
		wbt_apply_find(&view, &starts, &batch, i, nw);
	}
};

struct GpuFindHeads
{
	WbtBatch batch;

	GPU_FN void operator()(int64_t i) const
	{
		if (i == batch.n)
			batch.head[i] = batch.sum[i] = 0;
		else
			batch.head[i] = i == 0 || batch.leaf[i - 1] != batch.leaf[i] ? 1 : 0;
	}
};

struct GpuListRuns
{
	WbtBatch batch;

	GPU_FN void operator()(int64_t i) const
	{
		if (batch.head[i + 1] != batch.head[i])
			batch.run[batch.head[i]] = (uint32_t) i;
	}
};

/*
 * Planning: how many pieces each leaf becomes.
 */
struct GpuPlan
{
	WbtBatch batch;
	WbtList leaves;
	uint32_t *pieces; /* of each leaf, 1 before this; leaves.n + 1 */
	uint8_t *touched; /* is the leaf replaced?  0 before this */
	uint64_t *taken;  /* of each run: new leaves << 32 | leaves replaced; batch.n + 1 */

	GPU_FN void operator()(int64_t r) const
	{
		uint64_t here = 0;

		if (r < (int64_t) batch.head[batch.n])
		{
			WbtRun run = wbt_apply_run(&batch, &leaves, r);

			/* an empty tree has one leaf, of no memory */
			if (run.changes || leaves.ref[run.leaf] == 0)
			{
				here = (uint64_t) run.pieces << 32 | (leaves.ref[run.leaf] != 0 ? 1 : 0);
				pieces[run.leaf] = (uint32_t) run.pieces;
				touched[run.leaf] = 1;
			}
		}
		taken[r] = here;
		if (r == 0)
		{
			pieces[leaves.n] = 0;
			taken[batch.n] = 0;
		}
	}
};

struct GpuSetOne
{
	uint32_t *at;

	GPU_FN void operator()(int64_t i) const
	{
		at[i] = 1;
	}
};

struct GpuSumUp
{
	WbtBatch batch;
	WbtList leaves;
	const uint32_t *pieces;
	const uint64_t *taken;
	GpuTotals *totals;

	GPU_FN void operator()(int64_t) const
	{
		totals->sum = batch.sum[batch.n];
		totals->pieces = taken[batch.n];
		totals->runs = batch.head[batch.n];
		totals->leaves = pieces[leaves.n];
	}
};

/*
 * Writing the new leaves and their list.
 */

struct GpuWrite
{
	unsigned char *base;
	WbtBatch batch;
	WbtList leaves;        /* of the tree as it was */
	WbtList to;            /* of the new one; before has entries, to be summed up */
	const uint32_t *place; /* of each old leaf's first piece in the new list */
	const uint64_t *taken; /* before each run, see GpuPlan */
	const uint8_t *touched;
	WbtFree free;
	WbtRef *retired;
	uint32_t *piece_at; /* of each new leaf: place in the list << 1 | not the first of its run */

	/* Entry number at of a run. */
	template <int nw> GPU_FN void put(const WbtRun &run, int64_t r, int64_t at, const GkEntry &e) const
	{
		uint32_t first = (uint32_t) (taken[r] >> 32);
		int64_t piece = wbt_apply_put(base, &run, at, &e, &free, first, nw);

		if (piece >= 0)
		{
			uint32_t number = first + (uint32_t) piece;
			uint32_t y = place[run.leaf] + (uint32_t) piece;

			to.ref[y] = wbt_free_take(&free, number);
			to.before[y] = (uint32_t) (wbt_piece_start(&run, piece + 1) - wbt_piece_start(&run, piece));
			piece_at[number] = y << 1 | (piece > 0 ? 1 : 0);
			if (piece == 0)
			{
				GkEntry separator = wbt_list_separator(&leaves, run.leaf, nw);

				wbt_list_set_separator(&to, y, &separator, nw);
			}
		}
	}
};

/* Entries of leaves that are replaced. */
template <int nw> struct GpuWriteOld
{
	GpuWrite write;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t r = i / WBT_FANOUT;
		int p = (int) (i % WBT_FANOUT);
		WbtRun run = wbt_apply_run(&write.batch, &write.leaves, r);
		WbtRef ref = write.leaves.ref[run.leaf];

		if (!run.changes || ref == 0)
			return;
		if (p == 0)
			write.retired[(uint32_t) write.taken[r]] = ref;
		if (p < run.before)
		{
			int64_t at = wbt_apply_place_old(&write.batch, &run, p);

			if (at >= 0)
				write.put<nw>(run, r, at, wbt_leaf_entry(wbt_node(write.base, ref), p, nw));
		}
	}
};

/* Entries that are inserted. */
template <int nw> struct GpuWriteNew
{
	GpuWrite write;

	GPU_FN void operator()(int64_t j) const
	{
		int64_t r = (int64_t) write.batch.head[j + 1] - 1;
		WbtRun run = wbt_apply_run(&write.batch, &write.leaves, r);
		int64_t at = wbt_apply_place_new(&write.batch, &run, j);

		if (at >= 0)
			write.put<nw>(run, r, at, wbt_batch_entry(&write.batch, j, nw));
	}
};

/* Separators of the new leaves that have none yet. */
template <int nw> struct GpuWriteSeparator
{
	GpuWrite write;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t y = write.piece_at[i] >> 1;

		if (write.piece_at[i] & 1)
		{
			GkEntry separator = wbt_leaf_separator(write.base, write.to.ref[y - 1], write.to.ref[y], nw);

			wbt_list_set_separator(&write.to, y, &separator, nw);
		}
	}
};

/* Leaves that stay. */
template <int nw> struct GpuWriteSame
{
	GpuWrite write;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t y = write.place[i];

		if (i == 0)
			write.to.before[write.to.n] = 0;
		if (!write.touched[i])
		{
			GkEntry separator = wbt_list_separator(&write.leaves, i, nw);

			wbt_list_set_separator(&write.to, y, &separator, nw);
			write.to.ref[y] = write.leaves.ref[i];
			write.to.before[y] = write.leaves.before[i + 1] - write.leaves.before[i];
		}
	}
};

/*
 * The whole.
 */

/* Working memory until it is known how large the new version is. */
struct GpuApply
{
	GpuSort sort;
	GpuTotals *totals;
	WbtBatch batch;
	WbtList levels[WBT_MAX_HEIGHT]; /* of the tree as it was */
	uint32_t *start[WBT_MAX_HEIGHT];
	uint32_t *pieces;
	uint8_t *touched;
	uint64_t *taken;
};

static inline void
gpu_apply_layout(GpuScratch *scratch, GpuApply *a, GpuChange *c, const GpuTree *tree, int64_t n)
{
	int64_t leaves = tree->height > 0 ? tree->level_n[0] : 1;
	int height = tree->height > 0 ? tree->height : 1;

	gpu_sort_layout(scratch, &a->sort, n);
	gpu_scratch_temp(scratch, &c->stream, (n > leaves ? n : leaves) + 1);
	a->totals = gpu_scratch<GpuTotals>(scratch, 1);
	a->batch.n = n;
	a->batch.w0 = gpu_scratch<uint64_t>(scratch, n);
	a->batch.w1 = tree->nwords == 2 ? gpu_scratch<uint64_t>(scratch, n) : NULL;
	a->batch.t = gpu_scratch<uint64_t>(scratch, n);
	a->batch.kind = gpu_scratch<uint8_t>(scratch, n);
	a->batch.leaf = gpu_scratch<uint32_t>(scratch, n);
	a->batch.order = gpu_scratch<uint8_t>(scratch, n);
	a->batch.head = gpu_scratch<uint32_t>(scratch, n + 1);
	a->batch.sum = gpu_scratch<uint64_t>(scratch, n + 1);
	a->batch.run = gpu_scratch<uint32_t>(scratch, n);
	for (int level = 0; level < height; level++)
	{
		int64_t nodes = level > 0 ? tree->level_n[level] : leaves;

		gpu_scratch_list(scratch, &a->levels[level], nodes, tree->nwords);
		a->start[level] = gpu_scratch<uint32_t>(scratch, nodes + 1);
	}
	a->pieces = gpu_scratch<uint32_t>(scratch, leaves + 1);
	a->touched = gpu_scratch<uint8_t>(scratch, leaves);
	a->taken = gpu_scratch<uint64_t>(scratch, n + 1);
}

/*
 * Sort by all words that vary.  Operations of ascending order are numbered
 * backward, so that of those on one entry the last comes first.
 */
static inline void
gpu_apply_sort_words(GpuStream *s, GpuSort *sort, const GkOp *ops, int64_t n, const GpuShape *shape)
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

/* Bring the operations in order, into a->batch. */
static inline void
gpu_apply_sort(GpuChange *c, GpuApply *a, const GkOp *ops, int64_t n, uint32_t nwords)
{
	GpuStream *s = &c->stream;
	GpuSort *sort = &a->sort;
	GpuShape *shape = &c->page->shape;
	const uint32_t *number = NULL;

	gpu_fill(s, sort->shape, 0, sizeof(GpuShape));
	gpu_launch(s, n < GPU_SHAPE_THREADS ? n : GPU_SHAPE_THREADS, GpuFindShape{ ops, n, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (!gpu_finish(s))
		return;
	if (shape->unsorted)
	{
		int low, high;

		gpu_bit_range(shape->varying[0], &low, &high);
		if (low < high)
		{
			/* the highest bits of w0 are mostly enough */
			int enough = gpu_enough_bits(n, low, high);

			gpu_launch(s, n, GpuSortFirst{ ops, n, sort->key, sort->number, 0, !shape->disordered });
			gpu_sort_by(s, sort, n, enough, high);
			gpu_launch(s, n, GpuSortTies{ ops, n, sort->key, enough, sort->number, sort->shape });
			gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
			if (!gpu_finish(s))
				return;
		}
		if (low == high || shape->long_tie)
			gpu_apply_sort_words(s, sort, ops, n, shape);
		number = sort->number;
	}
	if (nwords == 1)
		gpu_launch(s, n, GpuGather<1>{ ops, number, a->batch });
	else
		gpu_launch(s, n, GpuGather<2>{ ops, number, a->batch });
}

/* List the nodes of all levels, from the root down. */
static inline void
gpu_apply_list(GpuChange *c, GpuApply *a, const GpuTree *tree)
{
	GpuStream *s = &c->stream;
	int top = tree->height > 0 ? tree->height - 1 : 0;

	gpu_launch(s, 1, GpuListRoot{ a->levels[top], tree->root, (uint32_t) tree->entries.load() });
	for (int level = top; level > 0; level--)
	{
		const WbtList &list = a->levels[level];

		gpu_launch(s, list.n + 1, GpuCountChildren{ c->pool->base, list, a->start[level] });
		gpu_scan(s, a->start[level], a->start[level], list.n + 1);
		if (tree->nwords == 1)
			gpu_launch(s, list.n * WBT_FANOUT,
					   GpuOpenInner<1>{ c->pool->base, list, a->start[level], a->levels[level - 1] });
		else
			gpu_launch(s, list.n * WBT_FANOUT,
					   GpuOpenInner<2>{ c->pool->base, list, a->start[level], a->levels[level - 1] });
	}
}

/* Find the leaves, the runs, and what becomes of them; the totals come into the page. */
static inline void
gpu_apply_plan(GpuChange *c, GpuApply *a, const GpuTree *tree)
{
	GpuStream *s = &c->stream;
	const WbtList &leaves = a->levels[0];
	int64_t n = a->batch.n;
	WbtView view = { c->pool->base, tree->entries.load(), tree->root, tree->height, (int) tree->nwords };
	WbtStarts starts = {};

	for (int level = 1; level < tree->height; level++)
		starts.level[level] = a->start[level];
	if (tree->nwords == 1)
		gpu_launch(s, n, GpuFindLeaf<1>{ view, starts, a->batch });
	else
		gpu_launch(s, n, GpuFindLeaf<2>{ view, starts, a->batch });
	gpu_launch(s, n + 1, GpuFindHeads{ a->batch });
	gpu_scan(s, a->batch.head, a->batch.head, n + 1);
	gpu_scan(s, a->batch.sum, a->batch.sum, n + 1);
	gpu_launch(s, n, GpuListRuns{ a->batch });
	gpu_launch(s, leaves.n, GpuSetOne{ a->pieces });
	gpu_fill(s, a->touched, 0, (size_t) leaves.n);
	gpu_launch(s, n, GpuPlan{ a->batch, leaves, a->pieces, a->touched, a->taken });
	gpu_scan(s, a->pieces, a->pieces, leaves.n + 1);
	gpu_scan(s, a->taken, a->taken, n + 1);
	gpu_launch(s, 1, GpuSumUp{ a->batch, leaves, a->pieces, a->taken, a->totals });
	gpu_copy_bus(s, &c->page->totals, a->totals, sizeof(GpuTotals));
	gpu_finish(s);
}

/* Working memory of the new version. */
struct GpuApplied
{
	WbtList levels[WBT_MAX_HEIGHT];
	uint32_t *piece_at;
	int height;
};

static inline void
gpu_applied_layout(GpuScratch *scratch, GpuApplied *to, const GpuTree *tree, const GpuTotals *totals)
{
	gpu_scratch_list(scratch, &to->levels[0], totals->leaves, tree->nwords);
	to->height = gpu_scratch_levels(scratch, to->levels, totals->leaves, tree->nwords);
	to->piece_at = gpu_scratch<uint32_t>(scratch, (int64_t) (totals->pieces >> 32));
}

template <int nw>
static inline void
gpu_apply_write(GpuStream *s, const GpuWrite &write, const GpuTotals *totals)
{
	gpu_launch(s, (int64_t) totals->runs * WBT_FANOUT, GpuWriteOld<nw>{ write });
	gpu_launch(s, write.batch.n, GpuWriteNew<nw>{ write });
	gpu_launch(s, (int64_t) (totals->pieces >> 32), GpuWriteSeparator<nw>{ write });
	gpu_launch(s, write.leaves.n, GpuWriteSame<nw>{ write });
	gpu_scan(s, write.to.before, write.to.before, write.to.n + 1);
}

/* Make the new version's nodes, note which ones it replaces, and publish it. */
static inline void
gpu_apply_make(GpuChange *c, GpuTree *tree, GpuApply *a, GpuApplied *to, uint64_t entries)
{
	GpuStream *s = &c->stream;
	GpuTotals totals = c->page->totals;
	GpuWrite write = { c->pool->base,
					   a->batch,
					   a->levels[0],
					   to->levels[0],
					   a->pieces,
					   a->taken,
					   a->touched,
					   gpu_nodes_free(&tree->leaves),
					   tree->leaves.retired.at + tree->leaves.retired_to,
					   to->piece_at };
	uint32_t inners = 0;

	if (tree->nwords == 1)
		gpu_apply_write<1>(s, write, &totals);
	else
		gpu_apply_write<2>(s, write, &totals);
	for (int level = 1; level < tree->height; level++)
	{
		gpu_copy(s, tree->inners.retired.at + tree->inners.retired_to + inners, a->levels[level].ref,
				 tree->level_n[level] * sizeof(WbtRef));
		inners += tree->level_n[level];
	}
	tree->leaves.nfree -= (uint32_t) (totals.pieces >> 32);
	tree->leaves.retired_to += (uint32_t) totals.pieces;
	tree->inners.retired_to += inners;
	if (totals.leaves > 0)
	{
		gpu_build_inner(c, tree, to->levels, to->height);
		gpu_finish(s);
		tree->root = c->page->root;
	}
	else
	{
		gpu_finish(s);
		memset(tree->level_n, 0, sizeof(tree->level_n));
		tree->leaves.live = tree->inners.live = 0;
		tree->height = 0;
		tree->root = 0;
	}
	gpu_tree_publish(tree, entries);
	tree->retired.push_back({ tree->version, tree->leaves.retired_to, tree->inners.retired_to });
}

/* A batch of any size, planned already. */
static inline GpuStatus
gpu_apply_planned(GpuChange *c, GpuTree *tree, GpuApply *a)
{
	const GpuTotals totals = c->page->totals;
	uint64_t entries = tree->entries.load() + (totals.sum >> 32) - (uint32_t) totals.sum;
	GpuScratch scratch = { NULL, 0 };
	GpuApplied to;
	GpuRun run;

	/* nothing to do? */
	if (totals.sum == 0)
		return gpu_change_status(c);
	if (entries >= WBT_MAX_ENTRIES ||
		!gpu_tree_reserve(c, tree, totals.pieces >> 32, (uint64_t) gpu_inner_nodes(totals.leaves),
						  (uint32_t) totals.pieces, tree->inners.live))
		return GPU_NO_MEMORY;
	gpu_applied_layout(&scratch, &to, tree, &totals);
	if (scratch.used > 0 && !gpu_scratch_take(c->pool, &run, &scratch))
		return GPU_NO_MEMORY;
	gpu_applied_layout(&scratch, &to, tree, &totals);
	gpu_apply_make(c, tree, a, &to, entries);
	gpu_run_give(c->pool, &run);
	return gpu_change_status(c);
}

/*
 * Apply operations that lie in device memory, in any order: of several on one
 * entry the one of the highest order counts.  GPU_NO_MEMORY: nothing was changed.
 */
static inline GpuStatus
gpu_tree_apply_large(GpuChange *c, GpuTree *tree, const GkOp *ops, int64_t n, int64_t *inserted,
					 int64_t *deleted)
{
	GpuScratch scratch = { NULL, 0 };
	GpuApply a;
	GpuRun run;
	GpuStatus status;

	gpu_apply_layout(&scratch, &a, c, tree, n);
	if (!gpu_scratch_take(c->pool, &run, &scratch))
		return GPU_NO_MEMORY;
	gpu_apply_layout(&scratch, &a, c, tree, n);
	gpu_apply_sort(c, &a, ops, n, tree->nwords);
	gpu_apply_list(c, &a, tree);
	gpu_apply_plan(c, &a, tree);
	status = gpu_change_ok(c) ? gpu_apply_planned(c, tree, &a) : gpu_change_status(c);
	gpu_run_give(c->pool, &run);
	if (status == GPU_OK)
	{
		*inserted = (int64_t) (c->page->totals.sum >> 32);
		*deleted = (int64_t) (uint32_t) c->page->totals.sum;
	}
	return status;
}

/* The same for operations in host memory that the device can use. */
static inline GpuStatus
gpu_tree_apply(GpuChange *c, GpuTree *tree, const GkOp *ops, int64_t n, int64_t *inserted, int64_t *deleted)
{
	GpuStatus status;
	GpuRun run;

	*inserted = *deleted = 0;
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	if (!gpu_run_take(c->pool, &run, (size_t) n * sizeof(GkOp)))
		return GPU_NO_MEMORY;
	gpu_copy_bus(&c->stream, run.at, ops, (size_t) n * sizeof(GkOp));
	status = gpu_tree_apply_large(c, tree, (const GkOp *) run.at, n, inserted, deleted);
	gpu_run_give(c->pool, &run);
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
			 n * sizeof(WbtRef));
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

#endif /* GPU_APPLY_H */
