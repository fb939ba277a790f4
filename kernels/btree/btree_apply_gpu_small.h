/*-------------------------------------------------------------------------
 *
 * btree_apply_gpu_small.h
 *	  Small batches of operations: the host waits for the device only once.
 *
 * The device reads the operations from host memory, and says there when it is
 * done.  A batch takes one launch of one block if the plan fits into the block's own
 * memory (about 100 operations), else four launches.  The host has reserved before
 * as many free nodes as the batch may take.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_GPU_SMALL_H
#define BTREE_APPLY_GPU_SMALL_H

#include "kernels/btree/btree_apply_gpu_levels.h"

/* Operations of a small batch, at most. */
#define GPU_SMALL_OPS 1024

/* Threads that make the nodes of a small batch. */
#define GPU_SMALL_MAKERS 32768

/* Working memory of a small batch. */
struct GpuSmall
{
	GpuLevels levels;
	GpudsOp *ops;
	uint64_t *key; /* for sorting */
	uint16_t *place;
	BtreeRef *leaves; /* copies of the free refs that come next */
	BtreeRef *inners;
	uint32_t *flags; /* unsorted; threads that are done; the level above the top */
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

/* The arrays that sorting takes. */
GPU_FN void
gpu_small_sort_layout(GpuScratch *scratch, GpuSmall *small, int n)
{
	small->ops = gpu_scratch<GpudsOp>(scratch, n);
	small->key = gpu_scratch<uint64_t>(scratch, 2 * (int64_t) n);
	small->place = gpu_scratch<uint16_t>(scratch, 2 * (int64_t) n);
}

/* The arrays that are best in the block's own memory. */
GPU_FN void
gpu_small_layout(GpuScratch *scratch, GpuSmall *small, const GpuSmallSize &size)
{
	BtreeLevel *l = &small->levels.common;
	int64_t n = size.n;

	gpu_batch_layout(scratch, &l->batch, n, size.nwords);
	gpu_small_sort_layout(scratch, small, size.n);
	small->leaves = gpu_scratch<BtreeRef>(scratch, size.leaves);
	small->inners = gpu_scratch<BtreeRef>(scratch, size.inners);
	small->flags = gpu_scratch<uint32_t>(scratch, 3);
	small->levels.in_turn = false;
	small->levels.change_stride = (uint32_t) n + 1;
	small->levels.part_stride = 2 * (uint32_t) n;
	gpu_changes_layout(scratch, &small->levels.changes, size.levels * (n + 1));
	gpu_parts_layout(scratch, &small->levels.parts, size.levels * 2 * n);
	l->head = gpu_scratch<uint32_t>(scratch, size.levels * (n + 1));
	l->run = gpu_scratch<uint32_t>(scratch, size.levels * (n + 1));
	l->path.parent = gpu_scratch<BtreeRef>(scratch, size.height * n);
	l->path.place = gpu_scratch<uint8_t>(scratch, size.height * n);
	l->counts = gpu_scratch<BtreeCounts>(scratch, 1);
}

/* The most that a small batch takes. */
static inline GpuSmallSize
gpu_small_most(void)
{
	GpuSmallSize size = { GPU_SMALL_OPS, BTREE_MAX_HEIGHT, BTREE_LEVELS, 2, 0, 0 };

	return size;
}

/* What the kernels of a small batch are given. */
struct GpuSmallBatch
{
	GpuSmall small; /* working memory: in device memory, or (NULL) the block's own */
	GpuSmallSize size;
	const GpudsOp *from; /* host memory, as the device sees it */
	GpuBtreeReport *report;

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

/* A step of the sort (gpu_block_sort) of n operations: puts the places a and b in order. */
GPU_FN void
gpu_small_put(const GpuSmall &small, int n, int a, int b, bool ascending)
{
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
	if (swap == ascending)
	{
		small.key[a] = key_b;
		small.key[b] = key_a;
		small.place[a] = place_b;
		small.place[b] = place_a;
	}
}

/* Reads the operations, and sorts them into the batch. */
template <int nw>
GPU_FN void
gpu_small_sort(GpuBlock &block, const GpuSmall &small, const GpudsOp *from, int n)
{
	const BtreeBatch *batch = &small.levels.common.batch;
	volatile uint32_t *unsorted = small.flags;
	int size = 1;

	while (size < n)
		size *= 2;
	block.each(sizeof(BtreeCounts) / sizeof(uint32_t) + 3,
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
		gpu_block_sort(size, [&](int a, int b, bool ascending) { gpu_small_put(small, n, a, b, ascending); });
	block.each(n, [&](int64_t i) { btree_apply_set(batch, i, &small.ops[small.place[i]], nw); });
}

/* Plans the leaves and the levels above; returns the level above the top. */
template <int nw>
GPU_FN int
gpu_small_plan(GpuBlock &block, const GpuLevels &levels, int n)
{
	BtreeLevel l = levels.at(0);
	const BtreeBatch *batch = &l.batch;

	block.each(n + 1, [&](int64_t i) { gpu_phase<nw, GPU_HEAD>(l, i); });
	block.exclusive_sum(batch->head, n + 1);
	block.exclusive_sum(batch->sum, n + 1);
	block.each(n, [&](int64_t i) { gpu_phase<nw, GPU_RUN>(l, i); });
	block.each(n + 1, [&](int64_t i) { gpu_phase<nw, GPU_PLAN>(l, i); });
	block.exclusive_sum(batch->taken, n + 1);
	block.each(n, [&](int64_t i) { gpu_phase<nw, GPU_LIST>(l, i); });
	if (l.counts->changes[0] == 0)
		return 1;
	block.each(l.counts->parts[0], [&](int64_t i) { btree_apply_part(&l, (uint32_t) i, nw); });
	return gpu_block_levels<nw>(block, levels, 1);
}

/*
 * How many shares all nodes have.  A share is what one of the threads makes that make a
 * node together.
 */
GPU_FN int64_t
gpu_small_shares(const GpuLevels &levels, int end)
{
	const BtreeCounts *counts = levels.common.counts;

	return (int64_t) counts->parts[0] * BTREE_LEAF_THREADS +
		   (int64_t) counts->made[end] * BTREE_INNER_THREADS;
}

/* Makes share i of all nodes: first those of inner nodes, from level 1 up. */
template <int nw>
GPU_FN void
gpu_small_make(const GpuLevels &levels, int end, int64_t i)
{
	const BtreeCounts *counts = levels.common.counts;
	int64_t inners = (int64_t) counts->made[end] * BTREE_INNER_THREADS;
	int level = 1;

	if (i < inners)
	{
		while (i >= (int64_t) counts->made[level + 1] * BTREE_INNER_THREADS)
			level++;
		i -= (int64_t) counts->made[level] * BTREE_INNER_THREADS;

		BtreeLevel l = levels.at(level);

		gpu_make_inner<nw>(l, (uint32_t) (i / BTREE_INNER_THREADS), (int) (i % BTREE_INNER_THREADS));
	}
	else
	{
		BtreeLevel l = levels.at(0);

		i -= inners;
		btree_apply_leaf(&l, (unsigned char *) (uintptr_t) l.view.base, (uint32_t) (i / BTREE_LEAF_THREADS),
						 (int) (i % BTREE_LEAF_THREADS), nw);
	}
}

/* All nodes are made: finds the root. */
GPU_FN void
gpu_small_root(const GpuLevels &levels, int end)
{
	BtreeLevel top = levels.at(end - 1);

	if (levels.common.counts->changes[0] > 0)
		btree_level_finish(&top);
}

/* Copies the refs of the free nodes that come next. */
GPU_FN void
gpu_small_refs(GpuBlock &block, GpuSmall *small, const GpuSmallSize &size)
{
	BtreeLevel *l = &small->levels.common;
	BtreeFree leaves = { small->leaves, size.leaves };
	BtreeFree inners = { small->inners, size.inners };

	block.each((int64_t) size.leaves + size.inners,
			   [&](int64_t i)
			   {
				   uint32_t inner = (uint32_t) i - size.leaves;

				   if (i < size.leaves)
					   small->leaves[size.leaves - 1 - i] = btree_free_take(&l->leaves, (uint32_t) i);
				   else
					   small->inners[size.inners - 1 - inner] = btree_free_take(&l->inners, inner);
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
		BtreeLevel l;
		int end;

		gpu_small_refs(block, &small, batch.size);
		gpu_small_sort<nw>(block, small, batch.from, batch.size.n);
		l = small.levels.at(0);
		block.each(batch.size.n, [&](int64_t i) { gpu_phase<nw, GPU_FIND>(l, i); });
		end = gpu_small_plan<nw>(block, small.levels, batch.size.n);
		block.each(gpu_small_shares(small.levels, end),
				   [&](int64_t i) { gpu_small_make<nw>(small.levels, end, i); });
		block.each(1, [&](int64_t) { gpu_small_root(small.levels, end); });
		block.each(sizeof(BtreeCounts) / sizeof(uint32_t),
				   [&](int64_t i) {
					   ((uint32_t *) &batch.report->counts)[i] = ((uint32_t *) small.levels.common.counts)[i];
				   });
		block.each(1, [&](int64_t) { gpu_release_system(&batch.report->done, 1); });
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
		int64_t n = gpu_small_shares(batch.small.levels, end);

		for (int64_t at = i; at < n; at += threads)
			gpu_small_make<nw>(batch.small.levels, end, at);
		if (gpu_last_of(&batch.small.flags[1], (uint32_t) threads))
		{
			gpu_small_root(batch.small.levels, end);
			batch.report->counts = *batch.small.levels.common.counts;
			gpu_release_system(&batch.report->done, 1);
		}
	}
};

/* Launches what a small batch takes. */
template <int nw>
static inline void
gpu_small_launch(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int n, const GpuBounds *b)
{
	GpuStream *s = &c->stream;
	GpuScratch scratch = { NULL, 0 };
	GpuScratch separators = { c->memory, 0 };
	GpuScratch sort = { NULL, 0 };
	GpuSmallBatch batch = {};
	GpuLevels *levels = &batch.small.levels;
	int64_t shares = (b->parts[0] + b->inner_parts) * BTREE_INNER_THREADS;
	int64_t threads = shares < GPU_SMALL_MAKERS ? shares : GPU_SMALL_MAKERS;
	GpuSmall own;

	batch.from = ops;
	batch.report = (GpuBtreeReport *) c->device_report;
	batch.size = {
		n, tree->height, b->levels, tree->nwords, (uint32_t) b->parts[0], (uint32_t) b->inner_parts
	};
	gpu_separators_layout(&separators, &levels->parts, b->levels * 2 * (int64_t) n, tree->nwords);
	own.levels.parts = levels->parts;
	gpu_small_layout(&scratch, &own, batch.size);
	levels->common.batch.n = n;
	gpu_levels_init(c, tree, &levels->common);
	gpu_levels_nodes(tree, &levels->common);
	if (scratch.used_bytes <= GPU_BLOCK_SHARED_BYTES)
	{
		int block = (n * BTREE_FANOUT + 31) / 32 * 32;

		block = block < 64 ? 64 : block < GPU_BLOCK_THREADS ? block : GPU_BLOCK_THREADS;
		gpu_launch_block(s, GpuApplySmallest<nw>{ batch }, block, scratch.used_bytes);
		return;
	}
	batch.size.leaves = batch.size.inners = 0;
	gpu_small_layout(&separators, &batch.small, batch.size);
	gpu_small_sort_layout(&sort, &own, n);
	gpu_launch_block(s, GpuSmallSort<nw>{ batch }, GPU_BLOCK_THREADS, sort.used_bytes);
	gpu_launch<32>(s, n, GpuLaunchPhase<nw, GPU_FIND>{ levels->at(0) });
	gpu_launch_block(s, GpuSmallPlan<nw>{ batch }, GPU_BLOCK_THREADS, 0);
	gpu_launch<64>(s, threads, GpuSmallMake<nw>{ batch, threads });
}

/*
 * Applies up to GPU_SMALL_OPS operations, which the device sees at ops in host
 * memory, to a tree that can have so many more entries.
 */
static inline GpuStatus
gpu_btree_apply_small(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int n, int64_t *inserted,
					  int64_t *deleted)
{
	GpuBounds bounds = gpu_apply_bounds(tree, n, n);
	BtreeCounts *counts = &gpu_btree_report(c)->counts;

	if (!gpu_apply_reserve(c, tree, &bounds))
		return GPU_NO_MEMORY;
	gpu_report(c)->done = 0;
	if (tree->nwords == 1)
		gpu_small_launch<1>(c, tree, ops, n, &bounds);
	else
		gpu_small_launch<2>(c, tree, ops, n, &bounds);
	c->stream.bus_bytes += (uint64_t) n * sizeof(GpudsOp);
	if (gpu_change_ok(c))
		gpu_report_wait(c);
	if (gpu_change_ok(c))
	{
		*inserted = (int64_t) (counts->sum >> 32);
		*deleted = (int64_t) (uint32_t) counts->sum;
		if (counts->sum != 0)
			gpu_apply_publish(c, tree);
	}
	return gpu_change_status(c);
}

#endif /* BTREE_APPLY_GPU_SMALL_H */
