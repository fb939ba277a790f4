/*-------------------------------------------------------------------------
 *
 * btree_apply_gpu_levels.h
 *	  What batches of all sizes are made of: the phases of a level, working
 *	  memory, free nodes, and publishing.
 *
 * What one thread does in a phase is in btree_apply_leaf.h and btree_apply_level.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_GPU_LEVELS_H
#define BTREE_APPLY_GPU_LEVELS_H

#include "kernels/btree/btree_tree_gpu.h"
#include "kernels/btree/btree_apply_leaf.h"
#include "kernels/btree/btree_apply_level.h"

/* One block makes a level of no more nodes. */
#define GPU_SMALL_LEVEL 1024

/*
 * The phases of a level.  All of one phase are done before the next begins.
 */
enum GpuPhase
{
	GPU_FIND,       /* for each operation */
	GPU_HEAD,       /* for each operation, and one more; then head and sum become exclusive sums */
	GPU_RUN,        /* for each operation */
	GPU_PLAN,       /* for each operation, and one more; then taken becomes an exclusive sum */
	GPU_LIST,       /* for each operation */
	GPU_LEAF,       /* for each thread of each new leaf */
	GPU_LEVEL_HEAD, /* for each change below, and one more; then head becomes an exclusive sum */
	GPU_LEVEL_RUN,  /* for each change below */
	GPU_LEVEL_PLAN, /* for each change, and one more; then first becomes an exclusive sum */
	GPU_LEVEL_LIST, /* for each change and each part below */
	GPU_LEVEL_NODE  /* for each thread of each new node */
};

template <int nw>
GPU_FN void
gpu_make_inner(const BtreeLevel &l, uint32_t part, int thread)
{
	unsigned char *base = (unsigned char *) (uintptr_t) l.view.base;
	int n;
	unsigned details = gpu_tile_or(btree_level_inner(&l, base, part, thread, &n, nw));

	if (thread == 0)
		btree_inner_set_header(btree_node(base, btree_free_take(&l.inners, l.counts->made[l.level] + part)),
							   n, details);
}

template <int nw, GpuPhase phase>
GPU_FN void
gpu_phase(const BtreeLevel &l, int64_t i)
{
	unsigned char *base = (unsigned char *) (uintptr_t) l.view.base;

	if (phase == GPU_FIND)
		btree_apply_find(&l.view, &l.batch, &l.path, i, nw);
	if (phase == GPU_HEAD)
		btree_apply_head(&l.batch, i);
	if (phase == GPU_RUN)
		btree_apply_list_run(&l.batch, i);
	if (phase == GPU_PLAN)
	{
		btree_apply_plan(&l.batch, i);
		if (l.batch.taken[i] == 1)
			gpu_atomic_count(&l.counts->gone);
	}
	if (phase == GPU_LIST)
		btree_apply_list_parts(&l, i);
	if (phase == GPU_LEAF && i / BTREE_LEAF_THREADS < l.counts->parts[0])
	{
		if (i % BTREE_LEAF_THREADS == 0)
			btree_apply_part(&l, (uint32_t) (i / BTREE_LEAF_THREADS), nw);
		btree_apply_leaf(&l, base, (uint32_t) (i / BTREE_LEAF_THREADS), (int) (i % BTREE_LEAF_THREADS), nw);
	}
	if (phase == GPU_LEVEL_HEAD)
		btree_level_head(&l, i);
	if (phase == GPU_LEVEL_RUN)
		btree_level_list_run(&l, i);
	if (phase == GPU_LEVEL_PLAN)
		btree_level_plan(&l, i, nw);
	if (phase == GPU_LEVEL_LIST)
		btree_level_list_parts(&l, i);
	if (phase == GPU_LEVEL_NODE && i / BTREE_INNER_THREADS < l.counts->parts[l.level])
	{
		if (i % BTREE_INNER_THREADS == 0)
			btree_level_part(&l, (uint32_t) (i / BTREE_INNER_THREADS), nw);
		gpu_make_inner<nw>(l, (uint32_t) (i / BTREE_INNER_THREADS), (int) (i % BTREE_INNER_THREADS));
	}
}

template <int nw, GpuPhase phase> struct GpuLaunchPhase
{
	BtreeLevel l;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_phase<nw, phase>(l, i);
	}
};

template <int nw, GpuPhase phase>
static inline void
gpu_launch_phase(GpuStream *s, const BtreeLevel &l, int64_t n)
{
	gpu_launch(s, n, GpuLaunchPhase<nw, phase>{ l });
}

/*
 * The arrays of all levels.  Those of level i begin i strides behind those of the
 * leaves.  If in_turn, all even levels share one array, and all odd ones; then the
 * nodes of a level are made as soon as its parts are known.
 */
struct GpuLevels
{
	BtreeLevel common;
	BtreeChanges changes;
	BtreeParts parts;
	uint32_t change_stride;
	uint32_t part_stride;
	bool in_turn;

	GPU_FN BtreeChanges changes_at(int level) const
	{
		int64_t at = (int64_t) (in_turn ? level & 1 : level) * change_stride;
		BtreeChanges c = { changes.op + at,   changes.to + at,     changes.first + at, changes.after + at,
						   changes.node + at, changes.parent + at, changes.place + at };

		return c;
	}

	GPU_FN BtreeParts parts_at(int level) const
	{
		int64_t at = (int64_t) (in_turn ? level & 1 : level) * part_stride;
		BtreeParts p = { parts.w0 + at,     parts.w1 ? parts.w1 + at : NULL,
						 parts.t + at,      parts.ref + at,
						 parts.before + at, parts.change + at };

		return p;
	}

	GPU_FN BtreeLevel at(int level) const
	{
		BtreeLevel l = common;
		int64_t run = in_turn ? 0 : (int64_t) level * change_stride;

		l.here = changes_at(level);
		l.parts = parts_at(level);
		if (level > 0)
		{
			l.below = changes_at(level - 1);
			l.children = parts_at(level - 1);
		}
		l.head = common.head + run;
		l.run = common.run + run;
		l.level = level;
		return l;
	}
};

/* Is the level below this one the top? */
GPU_FN bool
gpu_levels_done(const GpuLevels &levels, int level)
{
	const BtreeLevel *l = &levels.common;

	return level >= l->view.height && l->counts->parts[level - 1] <= 1;
}

/* One thread plans a level with one change below. */
template <int nw>
GPU_FN void
gpu_one_change(const GpuLevels &levels, int level)
{
	BtreeLevel l = levels.at(level);
	uint32_t children = l.counts->parts[level - 1];

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
		for (uint32_t i = 0; i < l.counts->parts[level]; i++)
			btree_level_part(&l, i, nw);
	}
}

/* A block plans any level. */
template <int nw>
GPU_FN void
gpu_block_level(GpuBlock &block, const GpuLevels &levels, int level)
{
	BtreeLevel l = levels.at(level);
	int64_t below = l.counts->changes[level - 1];
	int64_t children = l.counts->parts[level - 1];
	int64_t n;

	block.each(below + 1, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_HEAD>(l, i); });
	block.exclusive_sum(l.head, below + 1);
	block.each(below, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_RUN>(l, i); });
	n = l.counts->changes[level];
	block.each(n + 1, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_PLAN>(l, i); });
	block.exclusive_sum(l.here.first, n + 1);
	block.each(n + children, [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_LIST>(l, i); });
	if (!levels.in_turn)
		block.each(l.counts->parts[level], [&](int64_t i) { btree_level_part(&l, (uint32_t) i, nw); });
}

/* A block plans all levels from this one on, if only one node changes on each. */
template <int nw>
GPU_FN int
gpu_single_levels(GpuBlock &block, const GpuLevels &levels, int level)
{
	BtreeLevel first = levels.at(level);
	uint32_t op = first.below.op[0];
	uint32_t retired = first.counts->retired[level];
	uint32_t made = first.counts->made[level];
	int height = levels.common.view.height;

	block.each(height - level,
			   [&](int64_t i)
			   {
				   BtreeLevel l = levels.at(level + (int) i);

				   btree_level_single(&l, op, retired + (uint32_t) i, made + (uint32_t) i, nw);
			   });
	return height;
}

/* A block plans, or makes in turn, the inner levels from this one on; returns the level above the top. */
template <int nw>
GPU_FN int
gpu_block_levels(GpuBlock &block, const GpuLevels &levels, int level)
{
	const BtreeCounts *counts = levels.common.counts;

	for (; !gpu_levels_done(levels, level); level++)
	{
		if (!levels.in_turn && level < levels.common.view.height && counts->changes[level - 1] == 1 &&
			counts->parts[level - 1] == 1)
			return gpu_single_levels<nw>(block, levels, level);
		if (counts->changes[level - 1] == 1 && counts->parts[level - 1] <= 4)
			block.each(1, [&](int64_t) { gpu_one_change<nw>(levels, level); });
		else
			gpu_block_level<nw>(block, levels, level);
		if (levels.in_turn)
		{
			BtreeLevel l = levels.at(level);

			block.each((int64_t) counts->parts[level] * BTREE_INNER_THREADS,
					   [&](int64_t i) { gpu_phase<nw, GPU_LEVEL_NODE>(l, i); });
		}
	}
	return level;
}

/* The top levels of a large batch. */
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
					   BtreeLevel top = levels.at(end - 1);

					   btree_level_finish(&top);
				   });
	}
};

/*
 * Working memory.
 */

GPU_FN void
gpu_batch_layout(GpuScratch *scratch, BtreeBatch *batch, int64_t n, uint32_t nwords)
{
	batch->n = n;
	batch->w0 = gpu_scratch<uint64_t>(scratch, n);
	batch->w1 = nwords == 2 ? gpu_scratch<uint64_t>(scratch, n) : NULL;
	batch->t = gpu_scratch<uint64_t>(scratch, n);
	batch->deletes = gpu_scratch<uint8_t>(scratch, n);
	batch->leaf = gpu_scratch<BtreeRef>(scratch, n);
	batch->parent = gpu_scratch<BtreeRef>(scratch, n);
	batch->place = gpu_scratch<uint8_t>(scratch, n);
	batch->order = gpu_scratch<uint8_t>(scratch, n);
	batch->head = gpu_scratch<uint32_t>(scratch, n + 1);
	batch->sum = gpu_scratch<uint64_t>(scratch, n + 1);
	batch->run = gpu_scratch<uint32_t>(scratch, n + 1);
	batch->taken = gpu_scratch<uint64_t>(scratch, n + 1);
}

GPU_FN void
gpu_changes_layout(GpuScratch *scratch, BtreeChanges *changes, int64_t n)
{
	changes->op = gpu_scratch<uint32_t>(scratch, n + 1);
	changes->to = gpu_scratch<uint32_t>(scratch, n);
	changes->first = gpu_scratch<uint32_t>(scratch, n + 1);
	changes->after = gpu_scratch<uint32_t>(scratch, n);
	changes->node = gpu_scratch<BtreeRef>(scratch, n);
	changes->parent = gpu_scratch<BtreeRef>(scratch, n);
	changes->place = gpu_scratch<uint8_t>(scratch, n);
}

GPU_FN void
gpu_parts_layout(GpuScratch *scratch, BtreeParts *parts, int64_t n)
{
	parts->ref = gpu_scratch<BtreeRef>(scratch, n);
	parts->before = gpu_scratch<uint32_t>(scratch, n);
	parts->change = gpu_scratch<uint32_t>(scratch, n);
}

/* ... and their separators, which need not be in fast memory: few parts have one. */
GPU_FN void
gpu_separators_layout(GpuScratch *scratch, BtreeParts *parts, int64_t n, uint32_t nwords)
{
	parts->w0 = gpu_scratch<uint64_t>(scratch, n);
	parts->w1 = nwords == 2 ? gpu_scratch<uint64_t>(scratch, n) : NULL;
	parts->t = gpu_scratch<uint64_t>(scratch, n);
}

/* What a batch may change at most. */
struct GpuBounds
{
	int64_t changes[BTREE_LEVELS];
	int64_t parts[BTREE_LEVELS];
	int64_t inner_changes; /* in all */
	int64_t inner_parts;
	int levels;
};

/* The bounds if it changes so many leaves, and makes so many more than that. */
static inline GpuBounds
gpu_apply_bounds(const GpuTree *tree, int64_t changes, int64_t more)
{
	GpuBounds b = {};

	b.changes[0] = changes;
	b.parts[0] = changes + more;
	b.levels = 1;
	while (b.levels < tree->height || more > 0)
	{
		if (b.levels < tree->height)
		{
			if (changes > tree->level_n[b.levels])
				changes = tree->level_n[b.levels];
			if (more > (more + (BTREE_FANOUT - 1) * changes) / BTREE_FANOUT)
				more = (more + (BTREE_FANOUT - 1) * changes) / BTREE_FANOUT;
		}
		else
		{
			changes = 1;
			more = btree_nodes(1 + more) - 1;
		}
		b.changes[b.levels] = changes;
		b.parts[b.levels] = changes + more;
		b.inner_changes += changes;
		b.inner_parts += changes + more;
		b.levels++;
	}
	return b;
}

/* Arrays of all levels, in turn. */
static inline void
gpu_levels_layout(GpuScratch *scratch, GpuLevels *levels, const GpuBounds *b, uint32_t nwords)
{
	int64_t changes = 0;
	int64_t parts = 0;

	for (int level = 0; level < b->levels; level++)
	{
		changes = b->changes[level] > changes ? b->changes[level] : changes;
		parts = b->parts[level] > parts ? b->parts[level] : parts;
	}
	levels->in_turn = true;
	levels->change_stride = (uint32_t) changes + 1;
	levels->part_stride = (uint32_t) parts;
	gpu_changes_layout(scratch, &levels->changes, 2 * (changes + 1));
	gpu_parts_layout(scratch, &levels->parts, 2 * parts);
	gpu_separators_layout(scratch, &levels->parts, 2 * parts, nwords);
	levels->common.head = gpu_scratch<uint32_t>(scratch, changes + 1);
	levels->common.run = gpu_scratch<uint32_t>(scratch, changes + 1);
}

/* What all levels of a batch have in common, but for arrays. */
static inline void
gpu_levels_init(GpuChange *c, const GpuTree *tree, BtreeLevel *l)
{
	l->view.base = c->pool->base;
	l->view.entries = tree->entries.load();
	l->view.root = tree->root;
	l->view.height = tree->height;
	l->view.nwords = (int) tree->nwords;
}

/* Where new nodes come from, and where replaced ones go, after gpu_apply_reserve. */
static inline void
gpu_levels_nodes(const GpuTree *tree, BtreeLevel *l)
{
	const GpuNodes *leaves = &tree->space.nodes[GPU_BTREE_LEAVES];
	const GpuNodes *inners = &tree->space.nodes[GPU_BTREE_INNERS];

	l->leaves = gpu_btree_free(tree, GPU_BTREE_LEAVES);
	l->inners = gpu_btree_free(tree, GPU_BTREE_INNERS);
	l->retired_leaves = leaves->retired.at + leaves->retired_to;
	l->retired_inners = inners->retired.at + inners->retired_to;
}

/* Nodes to be taken, and room for replaced ones and to note the version; false: out of memory. */
static inline bool
gpu_apply_reserve(GpuChange *c, GpuTree *tree, const GpuBounds *b)
{
	GpuDemand demand[GPU_BTREE_KINDS] = {};

	demand[GPU_BTREE_LEAVES] = { (uint64_t) b->parts[0], (uint64_t) b->changes[0] };
	demand[GPU_BTREE_INNERS] = { (uint64_t) b->inner_parts, (uint64_t) b->inner_changes + BTREE_LEVELS };
	return gpu_space_reserve(c, &tree->space, demand);
}

/* The new version is there, and the report has its counts: publishes it. */
static inline void
gpu_apply_publish(GpuChange *c, GpuTree *tree)
{
	const BtreeCounts *counts = &gpu_btree_report(c)->counts;
	uint64_t inserted = counts->sum >> 32;
	uint64_t deleted = (uint32_t) counts->sum;
	GpuNodes *leaves = &tree->space.nodes[GPU_BTREE_LEAVES];
	GpuNodes *inners = &tree->space.nodes[GPU_BTREE_INNERS];
	uint32_t made = 0;
	uint32_t retired = counts->single;

	for (int level = 0; level < BTREE_MAX_HEIGHT; level++)
	{
		if (level > 0)
			made += counts->parts[level];
		if (level > 0 && level < tree->height)
			retired += counts->changes[level];
		if (level < tree->height)
			tree->level_n[level] += counts->parts[level] - counts->changes[level];
		else
			tree->level_n[level] = counts->parts[level];
		if (level >= (int) counts->height)
			tree->level_n[level] = 0;
	}
	gpu_nodes_take(leaves, counts->parts[0]);
	gpu_nodes_retire(leaves, tree->height > 0 ? counts->changes[0] : 0);
	gpu_nodes_take(inners, made);
	gpu_nodes_retire(inners, retired);
	tree->root = counts->root;
	tree->height = (int) counts->height;
	gpu_rest(&tree->compact_rest, inserted + deleted);
	gpu_tree_publish(tree, tree->entries.load() + inserted - deleted);
	gpu_space_note(&tree->space, tree->version);
}

#endif /* BTREE_APPLY_GPU_LEVELS_H */
