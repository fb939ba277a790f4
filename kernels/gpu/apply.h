/*-------------------------------------------------------------------------
 *
 * apply.h
 *	  Applying operations to a tree in device memory.
 *
 * Batches of up to GPU_SMALL_OPS operations are read from host memory by the
 * device, which says there when it is done.  They take one launch of one block if
 * what is planned fits into the block's own memory (about 100 operations), else
 * four launches.  The host sees to it before that there are as many unused nodes
 * as the batch may take.
 *
 * Larger ones take a few launches for the leaves and for each level of many
 * nodes; one block makes the rest.  The host waits for the device three times:
 * to learn which bits the operations are to be sorted by, to learn how many
 * leaves they take, and for the end.  All in between is of the sizes that they
 * may have at most; the device knows better and does no more than it must.
 *
 * The functions of one item are in wbt_apply.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_APPLY_H
#define GPU_APPLY_H

#include "kernels/gpu/load.h"
#include "kernels/gpu/tree.h"
#include "kernels/wbt_apply.h"

/* Batches of so many operations take one launch. */
#define GPU_SMALL_OPS 1024

/* Threads that make the nodes of a small batch. */
#define GPU_SMALL_MAKERS 32768

/* A level of so many nodes at most is made by one block. */
#define GPU_SMALL_LEVEL 1024

/*
 * Sorting.
 */

/* What is known of a batch before it is sorted; and its keys, to sort by w0. */
struct GpuFindShape
{
	const GkOp *ops;
	int64_t n;
	uint64_t *key;
	uint32_t *number;
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

			key[i] = op.e.w0;
			number[i] = (uint32_t) i;
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

		wbt_apply_set(&batch, i, &op, nw);
	}
};

/*
 * The phases of a level.  All of one phase are done before the next begins.
 */
enum GpuPhase
{
	GPU_FIND, /* from here for each operation ... */
	GPU_HEAD, /* ... and one more; then head and sum are summed up */
	GPU_RUN,
	GPU_PLAN, /* one more; then taken is summed up */
	GPU_LIST,
	GPU_LEAF,       /* for each lane of each new leaf */
	GPU_LEVEL_HEAD, /* for each change below, and one more; then head is summed up */
	GPU_LEVEL_RUN,
	GPU_LEVEL_PLAN, /* for each change, and one more; then first is summed up */
	GPU_LEVEL_LIST, /* for each change and each piece below */
	GPU_LEVEL_NODE  /* for each lane of each new node */
};

template <int nw>
GPU_FN void
gpu_make_inner(const WbtLevel &l, uint32_t piece, int lane)
{
	unsigned char *base = (unsigned char *) (uintptr_t) l.view.base;
	int n;
	unsigned details = gpu_tile_or(wbt_level_inner(&l, base, piece, lane, &n, nw));

	if (lane == 0)
		wbt_inner_set_header(wbt_node(base, wbt_free_take(&l.inners, l.counts->made[l.level] + piece)), n,
							 details);
}

template <int nw, GpuPhase phase>
GPU_FN void
gpu_phase(const WbtLevel &l, int64_t i)
{
	unsigned char *base = (unsigned char *) (uintptr_t) l.view.base;

	if (phase == GPU_FIND)
		wbt_apply_find(&l.view, &l.batch, &l.path, i, nw);
	if (phase == GPU_HEAD)
		wbt_apply_head(&l.batch, i);
	if (phase == GPU_RUN)
		wbt_apply_list_run(&l.batch, i);
	if (phase == GPU_PLAN)
	{
		wbt_apply_plan(&l.batch, i);
		if (l.batch.taken[i] == 1)
			gpu_atomic_count(&l.counts->gone);
	}
	if (phase == GPU_LIST)
		wbt_apply_list_pieces(&l, i);
	if (phase == GPU_LEAF && i / WBT_LEAF_LANES < l.counts->pieces[0])
	{
		if (i % WBT_LEAF_LANES == 0)
			wbt_apply_piece(&l, (uint32_t) (i / WBT_LEAF_LANES), nw);
		wbt_apply_leaf(&l, base, (uint32_t) (i / WBT_LEAF_LANES), (int) (i % WBT_LEAF_LANES), nw);
	}
	if (phase == GPU_LEVEL_HEAD)
		wbt_level_head(&l, i);
	if (phase == GPU_LEVEL_RUN)
		wbt_level_list_run(&l, i);
	if (phase == GPU_LEVEL_PLAN)
		wbt_level_plan(&l, i, nw);
	if (phase == GPU_LEVEL_LIST)
		wbt_level_list_pieces(&l, i);
	if (phase == GPU_LEVEL_NODE && i / WBT_INNER_LANES < l.counts->pieces[l.level])
	{
		if (i % WBT_INNER_LANES == 0)
			wbt_level_piece(&l, (uint32_t) (i / WBT_INNER_LANES), nw);
		gpu_make_inner<nw>(l, (uint32_t) (i / WBT_INNER_LANES), (int) (i % WBT_INNER_LANES));
	}
}

template <int nw, GpuPhase phase> struct GpuLaunchPhase
{
	WbtLevel l;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_phase<nw, phase>(l, i);
	}
};

template <int nw, GpuPhase phase>
static inline void
gpu_launch_phase(GpuStream *s, const WbtLevel &l, int64_t n)
{
	gpu_launch(s, n, GpuLaunchPhase<nw, phase>{ l });
}

/*
 * The arrays of all levels.  Those of level i begin i strides behind those of the
 * leaves; if in_turn, even and odd levels share theirs, and each is made as
 * soon as its pieces are known.
 */
struct GpuLevels
{
	WbtLevel common;
	WbtChanges changes;
	WbtPieces pieces;
	uint32_t change_stride;
	uint32_t piece_stride;
	bool in_turn;

	GPU_FN WbtChanges changes_at(int level) const
	{
		int64_t at = (int64_t) (in_turn ? level & 1 : level) * change_stride;
		WbtChanges c = { changes.op + at,   changes.to + at,     changes.first + at, changes.after + at,
						 changes.node + at, changes.parent + at, changes.place + at };

		return c;
	}

	GPU_FN WbtPieces pieces_at(int level) const
	{
		int64_t at = (int64_t) (in_turn ? level & 1 : level) * piece_stride;
		WbtPieces p = { pieces.w0 + at,     pieces.w1 ? pieces.w1 + at : NULL,
						pieces.t + at,      pieces.ref + at,
						pieces.before + at, pieces.change + at };

		return p;
	}

	GPU_FN WbtLevel at(int level) const
	{
		WbtLevel l = common;
		int64_t run = in_turn ? 0 : (int64_t) level * change_stride;

		l.here = changes_at(level);
		l.pieces = pieces_at(level);
		if (level > 0)
		{
			l.below = changes_at(level - 1);
			l.children = pieces_at(level - 1);
		}
		l.head = common.head + run;
		l.run = common.run + run;
		l.level = level;
		return l;
	}
};

/* Is the level below this one the last? */
GPU_FN bool
gpu_levels_done(const GpuLevels &levels, int level)
{
	const WbtLevel *l = &levels.common;

	return level >= l->view.height && l->counts->pieces[level - 1] <= 1;
}

/* A level with one change below: by one thread. */
template <int nw>
GPU_FN void
gpu_one_change(const GpuLevels &levels, int level)
{
	WbtLevel l = levels.at(level);
	uint32_t children = l.counts->pieces[level - 1];

	l.head[0] = 0;
	l.head[1] = 1;
	gpu_phase<nw, GPU_LEVEL_RUN>(l, 0);
	gpu_phase<nw, GPU_LEVEL_PLAN>(l, 0);
	gpu_phase<nw, GPU_LEVEL_PLAN>(l, 1);
	l.here.first[1] = l.here.first[0];
	l.here.first[0] = 0;
	for (uint32_t i = 0; i < 1 + children; i++)
		gpu_phase<nw, GPU_LEVEL_LIST>(l, i);
	if (!levels.in_turn)
	{
		for (uint32_t i = 0; i < l.counts->pieces[level]; i++)
			wbt_level_piece(&l, i, nw);
	}
}

/* Any level. */
template <int nw>
GPU_FN void
gpu_block_level(GpuBlock &block, const GpuLevels &levels, int level)
{
	WbtLevel l = levels.at(level);
	int64_t below = l.counts->changes[level - 1];
	int64_t children = l.counts->pieces[level - 1];
	int64_t n;

	block.each(below + 1, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_HEAD>(l, i); });
	block.scan(l.head, below + 1);
	block.each(below, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_RUN>(l, i); });
	n = l.counts->changes[level];
	block.each(n + 1, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_PLAN>(l, i); });
	block.scan(l.here.first, n + 1);
	block.each(n + children, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_LIST>(l, i); });
	if (!levels.in_turn)
		block.each(l.counts->pieces[level], [&](int64_t i) { wbt_level_piece(&l, (uint32_t) i, nw); });
}

/* All levels from this one on, if but one node changes on each. */
template <int nw>
GPU_FN int
gpu_single_levels(GpuBlock &block, const GpuLevels &levels, int level)
{
	WbtLevel first = levels.at(level);
	uint32_t op = first.below.op[0];
	uint32_t retired = first.counts->retired[level];
	uint32_t made = first.counts->made[level];
	int height = levels.common.view.height;

	block.each(height - level,
			   [&](int64_t i)
			   {
				   WbtLevel l = levels.at(level + (int) i);

				   wbt_level_single(&l, op, retired + (uint32_t) i, made + (uint32_t) i, nw);
			   });
	return height;
}

/* The inner levels from this one on; returns the first that there is not. */
template <int nw>
GPU_FN int
gpu_block_levels(GpuBlock &block, const GpuLevels &levels, int level)
{
	const WbtCounts *counts = levels.common.counts;

	for (; !gpu_levels_done(levels, level); level++)
	{
		if (!levels.in_turn && level < levels.common.view.height && counts->changes[level - 1] == 1 &&
			counts->pieces[level - 1] == 1)
			return gpu_single_levels<nw>(block, levels, level);
		if (counts->changes[level - 1] == 1 && counts->pieces[level - 1] <= 4)
			block.each(1, [&](int64_t) { gpu_one_change<nw>(levels, level); });
		else
			gpu_block_level<nw>(block, levels, level);
		if (levels.in_turn)
		{
			WbtLevel l = levels.at(level);

			block.each((int64_t) counts->pieces[level] * WBT_INNER_LANES,
					   [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_NODE>(l, i); });
		}
	}
	return level;
}

/* The last levels of a large batch. */
template <int nw> struct GpuTopLevels
{
	GpuLevels levels;
	int level;

	GPU_FN void operator()(GpuBlock &block) const
	{
		int end = gpu_block_levels<nw>(block, levels, level);

		block.each(1,
				   [&](int64_t)
				   {
					   WbtLevel top = levels.at(end - 1);

					   wbt_level_finish(&top);
				   });
	}
};

/*
 * Working memory.
 */

GPU_FN void
gpu_batch_layout(GpuScratch *scratch, WbtBatch *batch, int64_t n, uint32_t nwords)
{
	batch->n = n;
	batch->w0 = gpu_scratch<uint64_t>(scratch, n);
	batch->w1 = nwords == 2 ? gpu_scratch<uint64_t>(scratch, n) : NULL;
	batch->t = gpu_scratch<uint64_t>(scratch, n);
	batch->deletes = gpu_scratch<uint8_t>(scratch, n);
	batch->leaf = gpu_scratch<WbtRef>(scratch, n);
	batch->parent = gpu_scratch<WbtRef>(scratch, n);
	batch->place = gpu_scratch<uint8_t>(scratch, n);
	batch->order = gpu_scratch<uint8_t>(scratch, n);
	batch->head = gpu_scratch<uint32_t>(scratch, n + 1);
	batch->sum = gpu_scratch<uint64_t>(scratch, n + 1);
	batch->run = gpu_scratch<uint32_t>(scratch, n + 1);
	batch->taken = gpu_scratch<uint64_t>(scratch, n + 1);
}

GPU_FN void
gpu_changes_layout(GpuScratch *scratch, WbtChanges *changes, int64_t n)
{
	changes->op = gpu_scratch<uint32_t>(scratch, n + 1);
	changes->to = gpu_scratch<uint32_t>(scratch, n);
	changes->first = gpu_scratch<uint32_t>(scratch, n + 1);
	changes->after = gpu_scratch<uint32_t>(scratch, n);
	changes->node = gpu_scratch<WbtRef>(scratch, n);
	changes->parent = gpu_scratch<WbtRef>(scratch, n);
	changes->place = gpu_scratch<uint8_t>(scratch, n);
}

GPU_FN void
gpu_pieces_layout(GpuScratch *scratch, WbtPieces *pieces, int64_t n)
{
	pieces->ref = gpu_scratch<WbtRef>(scratch, n);
	pieces->before = gpu_scratch<uint32_t>(scratch, n);
	pieces->change = gpu_scratch<uint32_t>(scratch, n);
}

/* ... and separators, which not many pieces have. */
GPU_FN void
gpu_separators_layout(GpuScratch *scratch, WbtPieces *pieces, int64_t n, uint32_t nwords)
{
	pieces->w0 = gpu_scratch<uint64_t>(scratch, n);
	pieces->w1 = nwords == 2 ? gpu_scratch<uint64_t>(scratch, n) : NULL;
	pieces->t = gpu_scratch<uint64_t>(scratch, n);
}

/* What a batch may change at most. */
struct GpuBounds
{
	int64_t changes[WBT_LEVELS];
	int64_t pieces[WBT_LEVELS];
	int64_t inner_changes; /* in all */
	int64_t inner_pieces;
	int levels;
};

/* ... if it changes so many leaves and makes so many more of them. */
static inline GpuBounds
gpu_apply_bounds(const GpuTree *tree, int64_t changes, int64_t more)
{
	GpuBounds b = {};

	b.changes[0] = changes;
	b.pieces[0] = changes + more;
	b.levels = 1;
	while (b.levels < tree->height || more > 0)
	{
		if (b.levels < tree->height)
		{
			if (changes > tree->level_n[b.levels])
				changes = tree->level_n[b.levels];
			if (more > (more + (WBT_FANOUT - 1) * changes) / WBT_FANOUT)
				more = (more + (WBT_FANOUT - 1) * changes) / WBT_FANOUT;
		}
		else
		{
			changes = 1;
			more = wbt_nodes(1 + more) - 1;
		}
		b.changes[b.levels] = changes;
		b.pieces[b.levels] = changes + more;
		b.inner_changes += changes;
		b.inner_pieces += changes + more;
		b.levels++;
	}
	return b;
}

/* Arrays of all levels: even and odd ones share theirs. */
static inline void
gpu_levels_layout(GpuScratch *scratch, GpuLevels *levels, const GpuBounds *b, uint32_t nwords)
{
	int64_t changes = 0;
	int64_t pieces = 0;

	for (int level = 0; level < b->levels; level++)
	{
		changes = b->changes[level] > changes ? b->changes[level] : changes;
		pieces = b->pieces[level] > pieces ? b->pieces[level] : pieces;
	}
	levels->in_turn = true;
	levels->change_stride = (uint32_t) changes + 1;
	levels->piece_stride = (uint32_t) pieces;
	gpu_changes_layout(scratch, &levels->changes, 2 * (changes + 1));
	gpu_pieces_layout(scratch, &levels->pieces, 2 * pieces);
	gpu_separators_layout(scratch, &levels->pieces, 2 * pieces, nwords);
	levels->common.head = gpu_scratch<uint32_t>(scratch, changes + 1);
	levels->common.run = gpu_scratch<uint32_t>(scratch, changes + 1);
}

/* What the levels of a batch have in common; arrays follow. */
static inline void
gpu_levels_init(GpuChange *c, const GpuTree *tree, WbtLevel *l)
{
	l->view.base = c->pool->base;
	l->view.entries = tree->entries.load();
	l->view.root = tree->root;
	l->view.height = tree->height;
	l->view.nwords = (int) tree->nwords;
}

/* Where nodes come from and go to, when there are enough. */
static inline void
gpu_levels_nodes(const GpuTree *tree, WbtLevel *l)
{
	l->leaves = gpu_nodes_free(&tree->leaves);
	l->inners = gpu_nodes_free(&tree->inners);
	l->retired_leaves = tree->leaves.retired.at + tree->leaves.retired_to;
	l->retired_inners = tree->inners.retired.at + tree->inners.retired_to;
}

/* Unused nodes, and room for replaced ones. */
static inline bool
gpu_apply_reserve(GpuChange *c, GpuTree *tree, const GpuBounds *b)
{
	return gpu_tree_reserve(c, tree, (uint64_t) b->pieces[0], (uint64_t) b->inner_pieces,
							(uint64_t) b->changes[0], (uint64_t) b->inner_changes + WBT_LEVELS);
}

/* The new version is there, and the page has its counts: publish it. */
static inline void
gpu_apply_publish(GpuChange *c, GpuTree *tree)
{
	const WbtCounts *counts = &c->page->counts;
	uint64_t entries = tree->entries.load() + (counts->sum >> 32) - (uint32_t) counts->sum;
	uint32_t made = 0;
	uint32_t retired = counts->single;

	tree->leaves.nfree -= counts->pieces[0];
	tree->leaves.retired_to += tree->height > 0 ? counts->changes[0] : 0;
	for (int level = 0; level < WBT_MAX_HEIGHT; level++)
	{
		if (level > 0)
			made += counts->pieces[level];
		if (level > 0 && level < tree->height)
			retired += counts->changes[level];
		if (level < tree->height)
			tree->level_n[level] += counts->pieces[level] - counts->changes[level];
		else
			tree->level_n[level] = counts->pieces[level];
		if (level >= (int) counts->height)
			tree->level_n[level] = 0;
	}
	tree->inners.nfree -= made;
	tree->inners.retired_to += retired;
	tree->inners.live += made - retired;
	tree->leaves.live = tree->level_n[0];
	tree->root = counts->root;
	tree->height = (int) counts->height;
	gpu_tree_publish(tree, entries);
	tree->retired.push_back({ tree->version, tree->leaves.retired_to, tree->inners.retired_to });
}

/*
 * Large batches.
 */

/* Working memory until it is known what the batch takes. */
struct GpuApply
{
	GpuSort sort;
	WbtBatch batch;
	WbtCounts *counts;
};

static inline void
gpu_apply_layout(GpuScratch *scratch, GpuApply *a, GpuChange *c, const GpuTree *tree, int64_t n)
{
	gpu_sort_layout(scratch, &a->sort, n);
	gpu_batch_layout(scratch, &a->batch, n, tree->nwords);
	a->counts = gpu_scratch<WbtCounts>(scratch, 1);
	gpu_scratch_temp(scratch, &c->stream, n + 1);
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

/* Bring the operations in order, into the batch; sort->shape is to be looked at for long ties. */
template <int nw>
static inline void
gpu_apply_sort(GpuChange *c, GpuApply *a, const GkOp *ops)
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
gpu_apply_plan(GpuChange *c, GpuApply *a, const WbtLevel &l, GpuTotals *totals)
{
	GpuStream *s = &c->stream;
	int64_t n = a->batch.n;

	gpu_launch_phase<nw, GPU_FIND>(s, l, n);
	gpu_launch_phase<nw, GPU_HEAD>(s, l, n + 1);
	gpu_scan(s, a->batch.head, a->batch.head, n + 1);
	gpu_scan(s, a->batch.sum, a->batch.sum, n + 1);
	gpu_launch_phase<nw, GPU_RUN>(s, l, n);
	gpu_fill(s, a->counts, 0, sizeof(WbtCounts));
	gpu_launch_phase<nw, GPU_PLAN>(s, l, n + 1);
	gpu_scan(s, a->batch.taken, a->batch.taken, n + 1);
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
	WbtLevel l = levels.at(0);
	int level = 1;

	gpu_fill(s, l.counts, 0, sizeof(WbtCounts));
	gpu_launch_phase<nw, GPU_LIST>(s, l, l.batch.n);
	gpu_launch_phase<nw, GPU_LEAF>(s, l, b->pieces[0] * WBT_LEAF_LANES);
	for (; level < b->levels &&
		   (b->changes[level - 1] > GPU_SMALL_LEVEL || b->pieces[level - 1] > GPU_SMALL_LEVEL);
		 level++)
	{
		int64_t below = b->changes[level - 1];

		l = levels.at(level);
		gpu_launch_phase<nw, GPU_LEVEL_HEAD>(s, l, below + 1);
		gpu_scan(s, l.head, l.head, below + 1);
		gpu_launch_phase<nw, GPU_LEVEL_RUN>(s, l, below);
		gpu_launch_phase<nw, GPU_LEVEL_PLAN>(s, l, b->changes[level] + 1);
		gpu_scan(s, l.here.first, l.here.first, b->changes[level] + 1);
		gpu_launch_phase<nw, GPU_LEVEL_LIST>(s, l, b->changes[level] + b->pieces[level - 1]);
		gpu_launch_phase<nw, GPU_LEVEL_NODE>(s, l, b->pieces[level] * WBT_INNER_LANES);
	}
	gpu_launch_block(s, GpuTopLevels<nw>{ levels, level }, GPU_BLOCK_THREADS, 0);
	gpu_copy_bus(s, &c->page->counts, l.counts, sizeof(WbtCounts));
	gpu_finish(s);
}

/* A batch that is in order and planned. */
template <int nw>
static inline GpuStatus
gpu_apply_planned(GpuChange *c, GpuTree *tree, const WbtLevel &common, const GpuTotals *totals)
{
	uint64_t entries = tree->entries.load() + (totals->sum >> 32) - (uint32_t) totals->sum;
	int64_t changes = (uint32_t) totals->taken;
	GpuBounds bounds = gpu_apply_bounds(tree, changes,
										(int64_t) (totals->taken >> 32) - changes + totals->gone);
	GpuScratch scratch = { NULL, 0 };
	GpuLevels levels;
	GpuRun run;

	levels.common = common;
	gpu_levels_layout(&scratch, &levels, &bounds, tree->nwords);
	if (entries >= WBT_MAX_ENTRIES || !gpu_apply_reserve(c, tree, &bounds) ||
		!gpu_scratch_take(c->pool, &run, &scratch))
		return GPU_NO_MEMORY;
	gpu_levels_layout(&scratch, &levels, &bounds, tree->nwords);
	gpu_levels_nodes(tree, &levels.common);
	gpu_apply_make<nw>(c, levels, &bounds);
	gpu_run_give(c->pool, &run);
	if (gpu_change_ok(c))
		gpu_apply_publish(c, tree);
	return gpu_change_status(c);
}

template <int nw>
static inline GpuStatus
gpu_apply_large(GpuChange *c, GpuTree *tree, const GkOp *ops, int64_t n, GpuTotals *totals)
{
	GpuScratch scratch = { NULL, 0 };
	WbtLevel l = {};
	GpuStatus status;
	GpuApply a;
	GpuRun run;

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
	gpu_run_give(c->pool, &run);
	return status;
}

/*
 * Apply operations that lie in device memory, in any order: of several on one
 * entry the one of the highest order counts.  GPU_NO_MEMORY: nothing was changed.
 */
static inline GpuStatus
gpu_tree_apply_large(GpuChange *c, GpuTree *tree, const GkOp *ops, int64_t n, int64_t *inserted,
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

/*
 * Small batches.
 */

/* Working memory of a small batch. */
struct GpuSmall
{
	GpuLevels levels;
	GkOp *ops;
	uint64_t *key; /* for sorting */
	uint16_t *place;
	WbtRef *leaves; /* copies of the stacks' ends */
	WbtRef *inners;
	uint32_t *flags; /* unsorted; blocks that are done; first level that there is not */
};

/* ... and how much of it there is. */
struct GpuSmallSize
{
	int n; /* operations */
	int height;
	int levels; /* that may be made */
	uint32_t nwords;
	uint32_t leaves; /* that may be taken */
	uint32_t inners;
};

/* The part that sorting takes. */
GPU_FN void
gpu_small_sort_layout(GpuScratch *scratch, GpuSmall *small, int n)
{
	small->ops = gpu_scratch<GkOp>(scratch, n);
	small->key = gpu_scratch<uint64_t>(scratch, 2 * (int64_t) n);
	small->place = gpu_scratch<uint16_t>(scratch, 2 * (int64_t) n);
}

/* The part that is best in the block's own memory. */
GPU_FN void
gpu_small_layout(GpuScratch *scratch, GpuSmall *small, const GpuSmallSize &size)
{
	WbtLevel *l = &small->levels.common;
	int64_t n = size.n;

	gpu_batch_layout(scratch, &l->batch, n, size.nwords);
	gpu_small_sort_layout(scratch, small, size.n);
	small->leaves = gpu_scratch<WbtRef>(scratch, size.leaves);
	small->inners = gpu_scratch<WbtRef>(scratch, size.inners);
	small->flags = gpu_scratch<uint32_t>(scratch, 3);
	small->levels.in_turn = false;
	small->levels.change_stride = (uint32_t) n + 1;
	small->levels.piece_stride = 2 * (uint32_t) n;
	gpu_changes_layout(scratch, &small->levels.changes, size.levels * (n + 1));
	gpu_pieces_layout(scratch, &small->levels.pieces, size.levels * 2 * n);
	l->head = gpu_scratch<uint32_t>(scratch, size.levels * (n + 1));
	l->run = gpu_scratch<uint32_t>(scratch, size.levels * (n + 1));
	l->path.parent = gpu_scratch<WbtRef>(scratch, size.height * n);
	l->path.place = gpu_scratch<uint8_t>(scratch, size.height * n);
	l->counts = gpu_scratch<WbtCounts>(scratch, 1);
}

/* The most that a small batch takes. */
static inline GpuSmallSize
gpu_small_most(void)
{
	GpuSmallSize size = { GPU_SMALL_OPS, WBT_MAX_HEIGHT, WBT_LEVELS, 2, 0, 0 };

	return size;
}

/* What the kernels of a small batch are given. */
struct GpuSmallBatch
{
	GpuSmall small; /* working memory: in device memory, or (NULL) the block's own */
	GpuSmallSize size;
	const GkOp *from; /* host memory */
	GpuPage *page;

	/* The working memory. */
	GPU_FN GpuSmall memory(unsigned char *shared) const
	{
		GpuScratch scratch = { shared, 0 };
		GpuSmall own = small;

		if (small.ops == NULL)
			gpu_small_layout(&scratch, &own, size);
		return own;
	}
};

/* Is operation x before y?  Of operations on one entry the one of the highest order is. */
GPU_FN bool
gpu_op_less(const GkOp *x, const GkOp *y)
{
	return gk_less(&x->e, &y->e) || (gk_equal(&x->e, &y->e) && x->order > y->order);
}

/* One step of a bitonic network. */
GPU_FN void
gpu_bitonic_step(const GpuSmall &small, int n, int64_t i, int j, int k)
{
	unsigned low = (unsigned) i & (unsigned) (j - 1); /* j and k are powers of 2 */
	unsigned a = ((unsigned) i - low) * 2 + low;
	unsigned b = a + (unsigned) j;
	uint64_t key_a = small.key[a];
	uint64_t key_b = small.key[b];
	uint16_t place_a = small.place[a];
	uint16_t place_b = small.place[b];
	bool swap;

	/* places from n on are the highest */
	if (key_a != key_b)
		swap = key_b < key_a;
	else if (place_a >= n || place_b >= n)
		swap = place_a >= n && place_b < n;
	else
		swap = gpu_op_less(&small.ops[place_b], &small.ops[place_a]);
	if (swap == ((a & (unsigned) k) == 0))
	{
		small.key[a] = key_b;
		small.key[b] = key_a;
		small.place[a] = place_b;
		small.place[b] = place_a;
	}
}

/* Read the operations, and sort them into the batch. */
template <int nw>
GPU_FN void
gpu_small_sort(GpuBlock &block, const GpuSmall &small, const GkOp *from, int n)
{
	const WbtBatch *batch = &small.levels.common.batch;
	volatile uint32_t *unsorted = small.flags;
	int size = 1;

	while (size < n)
		size *= 2;
	block.each(sizeof(WbtCounts) / sizeof(uint32_t) + 3,
			   [&](int64_t i)
			   {
				   if (i < 3)
					   small.flags[i] = 0;
				   else
					   ((uint32_t *) small.levels.common.counts)[i - 3] = 0;
			   });
	block.each(n,
			   [&](int64_t i)
			   {
				   small.ops[i] = from[i];
				   small.key[i] = small.ops[i].e.w0;
				   small.place[i] = (uint16_t) i;
			   });
	block.each(size,
			   [&](int64_t i)
			   {
				   if (i >= n)
				   {
					   small.key[i] = UINT64_MAX;
					   small.place[i] = (uint16_t) i;
				   }
				   else if (i > 0 && !gpu_op_less(&small.ops[i - 1], &small.ops[i]))
				   {
					   *unsorted = 1;
				   }
			   });
	if (*unsorted)
	{
		for (int k = 2; k <= size; k *= 2)
		{
			for (int j = k / 2; j > 0; j /= 2)
				block.each(size / 2, [&](int64_t i) { gpu_bitonic_step(small, n, i, j, k); });
		}
	}
	block.each(n, [&](int64_t i) { wbt_apply_set(batch, i, &small.ops[small.place[i]], nw); });
}

/* What becomes of the leaves and of the levels above; returns the first that there is not. */
template <int nw>
GPU_FN int
gpu_small_plan(GpuBlock &block, const GpuLevels &levels, int n)
{
	WbtLevel l = levels.at(0);
	const WbtBatch *batch = &l.batch;

	block.each(n + 1, [&](int64_t i) { gpu_phase<nw, GPU_HEAD>(l, i); });
	block.scan(batch->head, n + 1);
	block.scan(batch->sum, n + 1);
	block.each(n, [&](int64_t i) { gpu_phase<nw, GPU_RUN>(l, i); });
	block.each(n + 1, [&](int64_t i) { gpu_phase<nw, GPU_PLAN>(l, i); });
	block.scan(batch->taken, n + 1);
	block.each(n, [&](int64_t i) { gpu_phase<nw, GPU_LIST>(l, i); });
	if (l.counts->changes[0] == 0)
		return 1;
	block.each(l.counts->pieces[0], [&](int64_t i) { wbt_apply_piece(&l, (uint32_t) i, nw); });
	return gpu_block_levels<nw>(block, levels, 1);
}

/* Lanes of all nodes to be made. */
GPU_FN int64_t
gpu_small_lanes(const GpuLevels &levels, int end)
{
	const WbtCounts *counts = levels.common.counts;

	return (int64_t) counts->pieces[0] * WBT_LEAF_LANES + (int64_t) counts->made[end] * WBT_INNER_LANES;
}

/* Make what lane i of all nodes makes: first those of inner nodes, from level 1 up. */
template <int nw>
GPU_FN void
gpu_small_make(const GpuLevels &levels, int end, int64_t i)
{
	const WbtCounts *counts = levels.common.counts;
	int64_t inners = (int64_t) counts->made[end] * WBT_INNER_LANES;
	int level = 1;

	if (i < inners)
	{
		while (i >= (int64_t) counts->made[level + 1] * WBT_INNER_LANES)
			level++;
		i -= (int64_t) counts->made[level] * WBT_INNER_LANES;

		WbtLevel l = levels.at(level);

		gpu_make_inner<nw>(l, (uint32_t) (i / WBT_INNER_LANES), (int) (i % WBT_INNER_LANES));
	}
	else
	{
		WbtLevel l = levels.at(0);

		i -= inners;
		wbt_apply_leaf(&l, (unsigned char *) (uintptr_t) l.view.base, (uint32_t) (i / WBT_LEAF_LANES),
					   (int) (i % WBT_LEAF_LANES), nw);
	}
}

/* All nodes are made: find the root. */
GPU_FN void
gpu_small_root(const GpuLevels &levels, int end)
{
	WbtLevel top = levels.at(end - 1);

	if (levels.common.counts->changes[0] > 0)
		wbt_level_finish(&top);
}

/* Copy the unused nodes that come next. */
GPU_FN void
gpu_small_refs(GpuBlock &block, GpuSmall *small, const GpuSmallSize &size)
{
	WbtLevel *l = &small->levels.common;
	WbtFree leaves = { small->leaves, size.leaves };
	WbtFree inners = { small->inners, size.inners };

	block.each((int64_t) size.leaves + size.inners,
			   [&](int64_t i)
			   {
				   uint32_t inner = (uint32_t) i - size.leaves;

				   if (i < size.leaves)
					   small->leaves[size.leaves - 1 - i] = wbt_free_take(&l->leaves, (uint32_t) i);
				   else
					   small->inners[size.inners - 1 - inner] = wbt_free_take(&l->inners, inner);
			   });
	l->leaves = leaves;
	l->inners = inners;
}

/* All of a very small batch: one launch. */
template <int nw> struct GpuApplySmallest
{
	GpuSmallBatch batch;

	GPU_FN void operator()(GpuBlock &block) const
	{
		GpuSmall small = batch.memory(block.shared);
		WbtLevel l;
		int end;

		gpu_small_refs(block, &small, batch.size);
		gpu_small_sort<nw>(block, small, batch.from, batch.size.n);
		l = small.levels.at(0);
		block.each(batch.size.n, [&](int64_t i) { gpu_phase<nw, GPU_FIND>(l, i); });
		end = gpu_small_plan<nw>(block, small.levels, batch.size.n);
		block.each(gpu_small_lanes(small.levels, end),
				   [&](int64_t i) { gpu_small_make<nw>(small.levels, end, i); });
		block.each(1, [&](int64_t) { gpu_small_root(small.levels, end); });
		block.each(sizeof(WbtCounts) / sizeof(uint32_t), [&](int64_t i)
				   { ((uint32_t *) &batch.page->counts)[i] = ((uint32_t *) small.levels.common.counts)[i]; });
		block.each(1, [&](int64_t) { gpu_release_system(&batch.page->done, 1); });
	}
};

/* The same in four launches: sort, */
template <int nw> struct GpuSmallSort
{
	GpuSmallBatch batch;

	GPU_FN void operator()(GpuBlock &block) const
	{
		GpuScratch scratch = { block.shared, 0 };
		GpuSmall small = batch.small;

		gpu_small_sort_layout(&scratch, &small, batch.size.n);
		gpu_small_sort<nw>(block, small, batch.from, batch.size.n);
	}
};

/* ... find (GpuLaunchPhase), plan, */
template <int nw> struct GpuSmallPlan
{
	GpuSmallBatch batch;

	GPU_FN void operator()(GpuBlock &block) const
	{
		int end = gpu_small_plan<nw>(block, batch.small.levels, batch.size.n);

		block.each(1, [&](int64_t) { batch.small.flags[2] = (uint32_t) end; });
	}
};

/* ... make; the last thread of all tells the host. */
template <int nw> struct GpuSmallMake
{
	GpuSmallBatch batch;
	int64_t threads;

	GPU_FN void operator()(int64_t i) const
	{
		int end = (int) batch.small.flags[2];
		int64_t n = gpu_small_lanes(batch.small.levels, end);

		for (int64_t at = i; at < n; at += threads)
			gpu_small_make<nw>(batch.small.levels, end, at);
		if (gpu_last_of(&batch.small.flags[1], (uint32_t) threads))
		{
			gpu_small_root(batch.small.levels, end);
			batch.page->counts = *batch.small.levels.common.counts;
			gpu_release_system(&batch.page->done, 1);
		}
	}
};

/* Wait for the block to say that it is done; it may also have failed. */
static inline void
gpu_small_wait(GpuChange *c)
{
	for (unsigned turn = 1; gpu_acquire_system(&c->page->done) == 0; turn++)
	{
		if (turn % 4096 == 0 && gpu_finished(&c->stream) && gpu_acquire_system(&c->page->done) == 0)
		{
			gpu_fail(&c->stream, "kernel", "no answer");
			return;
		}
	}
}

/* Launch what a small batch takes. */
template <int nw>
static inline void
gpu_small_launch(GpuChange *c, GpuTree *tree, const GkOp *ops, int n, const GpuBounds *b)
{
	GpuStream *s = &c->stream;
	GpuScratch scratch = { NULL, 0 };
	GpuScratch separators = { c->small, 0 };
	GpuScratch sort = { NULL, 0 };
	GpuSmallBatch batch = {};
	GpuLevels *levels = &batch.small.levels;
	int64_t lanes = (b->pieces[0] + b->inner_pieces) * WBT_INNER_LANES;
	int64_t threads = lanes < GPU_SMALL_MAKERS ? lanes : GPU_SMALL_MAKERS;
	GpuSmall own;

	batch.from = ops;
	batch.page = c->device_page;
	batch.size = {
		n, tree->height, b->levels, tree->nwords, (uint32_t) b->pieces[0], (uint32_t) b->inner_pieces
	};
	gpu_separators_layout(&separators, &levels->pieces, b->levels * 2 * (int64_t) n, tree->nwords);
	own.levels.pieces = levels->pieces;
	gpu_small_layout(&scratch, &own, batch.size);
	levels->common.batch.n = n;
	gpu_levels_init(c, tree, &levels->common);
	gpu_levels_nodes(tree, &levels->common);
	if (scratch.used <= GPU_BLOCK_SHARED)
	{
		int block = (n * WBT_FANOUT + 31) / 32 * 32;

		block = block < 64 ? 64 : block < GPU_BLOCK_THREADS ? block : GPU_BLOCK_THREADS;
		gpu_launch_block(s, GpuApplySmallest<nw>{ batch }, block, scratch.used);
		return;
	}
	batch.size.leaves = batch.size.inners = 0;
	gpu_small_layout(&separators, &batch.small, batch.size);
	gpu_small_sort_layout(&sort, &own, n);
	gpu_launch_block(s, GpuSmallSort<nw>{ batch }, GPU_BLOCK_THREADS, sort.used);
	gpu_launch<32>(s, n, GpuLaunchPhase<nw, GPU_FIND>{ levels->at(0) });
	gpu_launch_block(s, GpuSmallPlan<nw>{ batch }, GPU_BLOCK_THREADS, 0);
	gpu_launch<64>(s, threads, GpuSmallMake<nw>{ batch, threads });
}

/* Up to GPU_SMALL_OPS operations, which lie in host memory that the device can use. */
static inline GpuStatus
gpu_tree_apply_small(GpuChange *c, GpuTree *tree, const GkOp *ops, int n, int64_t *inserted, int64_t *deleted)
{
	GpuBounds bounds = gpu_apply_bounds(tree, n, n);
	WbtCounts *counts = &c->page->counts;

	if (tree->entries.load() + (uint64_t) n >= WBT_MAX_ENTRIES || !gpu_apply_reserve(c, tree, &bounds))
		return GPU_NO_MEMORY;
	c->page->done = 0;
	if (tree->nwords == 1)
		gpu_small_launch<1>(c, tree, ops, n, &bounds);
	else
		gpu_small_launch<2>(c, tree, ops, n, &bounds);
	c->stream.bus_bytes += (uint64_t) n * sizeof(GkOp);
	if (gpu_change_ok(c))
		gpu_small_wait(c);
	if (gpu_change_ok(c))
	{
		*inserted = (int64_t) (counts->sum >> 32);
		*deleted = (int64_t) (uint32_t) counts->sum;
		if (counts->sum != 0)
			gpu_apply_publish(c, tree);
	}
	return gpu_change_status(c);
}

/*
 * Apply operations that lie in host memory that the device can use, in any
 * order: of several on one entry the one of the highest order counts.
 * GPU_NO_MEMORY: nothing was changed.
 */
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
	if (n <= GPU_SMALL_OPS)
		return gpu_tree_apply_small(c, tree, ops, (int) n, inserted, deleted);
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
	gpu_separators_layout(&scratch, &small.levels.pieces, (int64_t) WBT_LEVELS * 2 * GPU_SMALL_OPS, 2);
	gpu_small_layout(&scratch, &small, gpu_small_most());
	c->page = (GpuPage *) gpu_host_alloc(sizeof(GpuPage));
	c->device_page = c->page ? (GpuPage *) gpu_device_address(c->page) : NULL;
	c->chunks = (uint32_t *) gpu_alloc(sizeof(c->page->chunks));
	c->small = (unsigned char *) gpu_alloc(scratch.used);
	c->small_bytes = scratch.used;
	return c->device_page != NULL && c->chunks != NULL && c->small != NULL;
}

#endif /* GPU_APPLY_H */
