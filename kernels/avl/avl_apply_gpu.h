/*-------------------------------------------------------------------------
 *
 * avl_apply_gpu.h
 *	  Applying a batch of operations to a tree in device memory: what the host does.
 *
 * A small batch is one launch of a cluster, which does all steps (avl_change_gpu.h); the host knows how many
 * tasks it may have at most.  A large one takes a launch for each step, and the host waits in between, to
 * learn how many there are.
 *
 * How many nodes are copied to be rotated is not known before.  If more are needed than were reserved, what
 * was made is forgotten, no version has it, and the batch is done again with twice as many.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_APPLY_GPU_H
#define AVL_APPLY_GPU_H

#include "kernels/avl/avl_change_gpu.h"

/* Operations of a small batch, at most. */
#define GPU_AVL_SMALL 1024

/* Nodes that are reserved beside one for each insert and task, at first; of so many operations and tasks. */
#ifndef GPU_AVL_SPARE
#define GPU_AVL_SPARE(operations, tasks) (64 + (operations) / 2 + (tasks) / 8)
#endif

enum GpuAvlStep
{
	GPU_AVL_FIND,
	GPU_AVL_GATHER,
	GPU_AVL_SHARE,
	GPU_AVL_PLAN,
	GPU_AVL_ATTACH,
	GPU_AVL_RISE
};

/* A step of a large batch; what it is for may be fewer than the host has threads for. */
template <int step> struct GpuAvlLaunch
{
	GpuAvlBatch batch;

	GPU_FN void operator()(int64_t i) const
	{
		if (step == GPU_AVL_FIND)
			batch.find(i);
		else if (step == GPU_AVL_GATHER)
			batch.gather(i);
		else if (step == GPU_AVL_SHARE)
			batch.share(i);
		else if (step == GPU_AVL_PLAN)
			batch.plan(i);
		else if (step == GPU_AVL_ATTACH)
			batch.attach(i);
		else
			batch.rise(i);
	}
};

template <int step>
static inline void
gpu_avl_step(GpuChange *c, const GpuAvlBatch &batch, int64_t n)
{
	gpu_launch(&c->stream, n, GpuAvlLaunch<step>{ batch });
}

/* All steps, and what comes before them, of a small batch. */
struct GpuAvlSmall
{
	GpuAvlBatch batch;
	GpudsOp *ops; /* a copy of those that the host has */
	uint32_t *number;
	uint64_t *sum; /* n + 1 */
	GpuAvlReport *report;

	/* Fetches an operation; nothing is counted yet. */
	GPU_FN void fetch(int64_t i) const
	{
		ops[i] = batch.ops[i];
		if (i == 0)
			*batch.totals = GpuAvlTotals();
	}

	/* Where an operation is in order. */
	GPU_FN void sort(int64_t i) const
	{
		int64_t before = 0;

		for (int64_t k = 0; k < batch.n; k++)
			before += gpu_op_less(&ops[k], &ops[i]) || (k < i && !gpu_op_less(&ops[i], &ops[k]));
		number[before] = (uint32_t) i;
	}

	/* What is before i. */
	static GPU_FN uint64_t sum_before(const uint64_t *of, int64_t i)
	{
		uint64_t before = 0;

		for (int64_t k = 0; k < i; k++)
			before += of[k];
		return before;
	}

	/* Makes the new version; first: the tasks of each operation have been summed up. */
	GPU_FN void make(GpuCluster &cluster, const GpuAvlBatch &b) const
	{
		const int64_t m = b.count();

		cluster.each(m, [&](int64_t j) { b.clear(j); });
		cluster.each(m, [&](int64_t j) { b.plan(j); });
		cluster.each(m, [&](int64_t j) { b.attach(j); });
		cluster.each(m, [&](int64_t j) { b.rise(j); });
	}

	GPU_FN void operator()(GpuCluster &cluster) const
	{
		const int64_t n = batch.n;
		GpuAvlBatch b = batch;

		cluster.each(n, [&](int64_t i) { fetch(i); });
		cluster.each(n, [&](int64_t i) { sort(i); });
		b.ops = ops;
		b.number = number;
		cluster.each(n + 1, [&](int64_t i) { b.find(i); });
		cluster.each(n + 1, [&](int64_t i) { sum[i] = sum_before(b.effective, i); });
		b.effective = sum;
		cluster.each(n + 1, [&](int64_t i) { b.gather(i); });
		cluster.each(n + 1, [&](int64_t j) { b.share(j); });
		/* the array of what was summed up first is free for these sums */
		cluster.each(n + 1, [&](int64_t j) { batch.effective[j] = sum_before(b.first, j); });
		b.first = batch.effective;
		cluster.each(1, [&](int64_t) { b.totals->tasks = b.first[n]; });
		make(cluster, b);
		cluster.each(1,
					 [&](int64_t)
					 {
						 report->totals = *b.totals;
						 gpu_release_system(&report->done, 1);
					 });
	}
};

/* The arrays of a batch of n operations. */
static inline void
gpu_avl_layout(GpuScratch *scratch, GpuAvlBatch *b, int64_t n)
{
	b->n = n;
	b->totals = gpu_scratch<GpuAvlTotals>(scratch, 1);
	b->effective = gpu_scratch<uint64_t>(scratch, n + 1);
	b->gap = gpu_scratch<uint64_t>(scratch, n);
	b->op = gpu_scratch<GpudsOp>(scratch, n);
	b->op_gap = gpu_scratch<uint64_t>(scratch, n);
	b->fresh = gpu_scratch<uint32_t>(scratch, n);
	b->first = gpu_scratch<uint64_t>(scratch, n + 1);
	b->shared = gpu_scratch<uint32_t>(scratch, n);
	b->end = gpu_scratch<uint32_t>(scratch, n);
}

/* Those of a small one in a tree of so many levels. */
static inline void
gpu_avl_small_layout(GpuScratch *scratch, GpuAvlSmall *small, int64_t n, int levels)
{
	gpu_avl_layout(scratch, &small->batch, n);
	small->batch.task = gpu_scratch<GpuAvlTask>(scratch, n * levels);
	small->ops = gpu_scratch<GpudsOp>(scratch, n);
	small->number = gpu_scratch<uint32_t>(scratch, n);
	small->sum = gpu_scratch<uint64_t>(scratch, n + 1);
}

/* Device memory that a small batch works in. */
static inline size_t
gpu_avl_small_bytes()
{
	GpuScratch scratch = { NULL, 0 };
	GpuAvlSmall small;

	gpu_avl_small_layout(&scratch, &small, GPU_AVL_SMALL, GPU_AVL_LEVELS);
	return scratch.used_bytes;
}

/* What the batch is to be done to. */
static inline void
gpu_avl_begin(GpuChange *c, const GpuTree *tree, GpuAvlBatch *b)
{
	b->base = c->pool->base;
	b->root = tree->root;
	b->version = tree->version + 1;
}

/*
 * Reserves what a batch may take and retire at most: of so many inserts, deletes and tasks, and spare nodes.
 * False: there is no memory.
 */
static inline bool
gpu_avl_reserve(GpuChange *c, GpuTree *tree, GpuAvlBatch *b, uint64_t inserts, uint64_t deletes,
				uint64_t tasks, uint64_t spare)
{
	const GpuNodes *nodes = gpu_avl_nodes(tree);
	const GpuDemand demand = { inserts + tasks + spare, tasks + spare + deletes };

	if (demand.take > GPU_MAX_ENTRIES || !gpu_space_reserve(c, &tree->space, &demand))
		return false;
	b->free = nodes->free.at + nodes->nfree - 1;
	b->nfree = (uint32_t) demand.take;
	b->retired = nodes->retired.at + nodes->retired_to;
	return true;
}

/* Did a batch have too few spare nodes, that so many were reserved of?  It wants to have *spare now. */
static inline bool
gpu_avl_short(const GpuAvlTotals *totals, uint64_t *spare)
{
	if (totals->spare <= *spare)
		return false;
	*spare = 2 * (totals->spare > *spare ? totals->spare : *spare);
	return true;
}

/* Publishes what a batch has made. */
static inline void
gpu_avl_publish(GpuTree *tree, const GpuAvlTotals *totals)
{
	GpuNodes *nodes = gpu_avl_nodes(tree);
	const uint64_t inserts = totals->effective >> 32;
	const uint64_t deletes = (uint32_t) totals->effective - inserts;

	gpu_nodes_take(nodes, (uint32_t) (inserts + totals->tasks + totals->spare));
	gpu_nodes_retire(nodes, (uint32_t) (totals->tasks + totals->retired));
	tree->root = totals->root;
	tree->height = (int) totals->height;
	gpu_tree_publish(tree, tree->entries.load() + inserts - deletes);
	gpu_space_note(&tree->space, tree->version);
}

/* Applies a small batch, which the device can read. */
static inline GpuStatus
gpu_avl_apply_small(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int64_t n, GpuAvlTotals *totals)
{
	const uint64_t operations = (uint64_t) n;
	const uint64_t tasks = operations * (uint64_t) tree->height;
	uint64_t spare = GPU_AVL_SPARE(operations, tasks);
	GpuScratch scratch = { c->memory, 0 };
	GpuAvlSmall small = {};

	gpu_avl_small_layout(&scratch, &small, n, tree->height);
	gpu_avl_begin(c, tree, &small.batch);
	small.batch.ops = ops;
	small.report = (GpuAvlReport *) c->device_report;
	do
	{
		if (!gpu_avl_reserve(c, tree, &small.batch, operations, operations, tasks, spare))
			return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
		gpu_report(c)->done = 0;
		gpu_launch_cluster(&c->stream, n + 1, small);
		if (gpu_change_ok(c))
			gpu_report_wait(c);
		if (!gpu_change_ok(c))
			return gpu_change_status(c);
		*totals = gpu_avl_report(c)->totals;
	} while (gpu_avl_short(totals, &spare));
	return GPU_OK;
}

/* Working memory of a large batch until its tasks are known. */
struct GpuAvlLarge
{
	GpuSort sort;
	GpuAvlBatch batch;
};

static inline void
gpu_avl_large_layout(GpuScratch *scratch, GpuAvlLarge *large, GpuChange *c, int64_t n)
{
	gpu_sort_layout(scratch, &large->sort, n);
	gpu_avl_layout(scratch, &large->batch, n);
	gpu_scratch_temp(scratch, &c->stream, n + 1);
}

/* Finds out which operations of a sorted batch change something, and how many tasks that takes. */
static inline void
gpu_avl_find(GpuChange *c, const GpuAvlLarge *large)
{
	const GpuAvlBatch *b = &large->batch;
	GpuAvlReport *report = gpu_avl_report(c);
	GpuStream *s = &c->stream;

	gpu_avl_step<GPU_AVL_FIND>(c, *b, b->n + 1);
	gpu_exclusive_sum(s, b->effective, b->effective, b->n + 1);
	gpu_avl_step<GPU_AVL_GATHER>(c, *b, b->n + 1);
	gpu_avl_step<GPU_AVL_SHARE>(c, *b, b->n + 1);
	gpu_exclusive_sum(s, b->first, b->first, b->n + 1);
	gpu_copy_bus(s, &report->totals.effective, b->effective + b->n, sizeof(uint64_t));
	gpu_copy_bus(s, &report->totals.tasks, b->first + b->n, sizeof(uint64_t));
	gpu_copy_bus(s, &report->shape, large->sort.shape, sizeof(GpuShape));
	gpu_finish(s);
}

/* Makes the new version, with tasks in memory of their own. */
static inline void
gpu_avl_make(GpuChange *c, const GpuAvlBatch &b, const GpuAvlTotals *totals)
{
	GpuAvlTotals *report = &gpu_avl_report(c)->totals;
	const int64_t m = (uint32_t) totals->effective;

	report->effective = totals->effective;
	report->tasks = totals->tasks;
	report->spare = report->retired = 0;
	gpu_copy_bus(&c->stream, b.totals, report, sizeof(*report));
	gpu_fill(&c->stream, b.task, 0, totals->tasks * sizeof(GpuAvlTask));
	gpu_avl_step<GPU_AVL_PLAN>(c, b, m);
	gpu_avl_step<GPU_AVL_ATTACH>(c, b, m);
	gpu_avl_step<GPU_AVL_RISE>(c, b, m);
	gpu_copy_bus(&c->stream, report, b.totals, sizeof(*report));
	gpu_finish(&c->stream);
}

/* The second half of a large batch, of which is known what it takes. */
static inline GpuStatus
gpu_avl_apply_found(GpuChange *c, GpuTree *tree, GpuAvlBatch *b, GpuAvlTotals *totals)
{
	const uint64_t inserts = totals->effective >> 32;
	const uint64_t operations = (uint32_t) totals->effective;
	const uint64_t tasks = totals->tasks;
	uint64_t spare = GPU_AVL_SPARE(operations, tasks);
	GpuStatus status = GPU_OK;
	GpuSpan span;

	if (tree->entries.load() + 2 * inserts - operations > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	if (!gpu_span_take(c->pool, &span, (tasks + 1) * sizeof(GpuAvlTask)))
		return GPU_NO_MEMORY;
	b->task = (GpuAvlTask *) span.at;
	do
	{
		if (!gpu_avl_reserve(c, tree, b, inserts, operations - inserts, tasks, spare))
			status = GPU_NO_MEMORY;
		else
			gpu_avl_make(c, *b, totals);
		*totals = gpu_avl_report(c)->totals;
	} while (status == GPU_OK && gpu_change_ok(c) && gpu_avl_short(totals, &spare));
	gpu_change_give(c, &span);
	return gpu_change_ok(c) ? status : gpu_change_status(c);
}

/* Applies a batch of any size that is in device memory. */
static inline GpuStatus
gpu_avl_apply_large(GpuChange *c, GpuTree *tree, const GpudsOp *ops, int64_t n, GpuAvlTotals *totals)
{
	GpuShape *shape = &gpu_report(c)->shape;
	GpuScratch scratch = { NULL, 0 };
	GpuStatus status = GPU_OK;
	GpuAvlLarge large = {};
	GpuSpan span;

	gpu_avl_large_layout(&scratch, &large, c, n);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_avl_large_layout(&scratch, &large, c, n);
	gpu_avl_begin(c, tree, &large.batch);
	large.batch.ops = ops;
	large.batch.number = gpu_sort_batch(&c->stream, &large.sort, ops, n, shape);
	gpu_avl_find(c, &large);
	if (gpu_change_ok(c) && shape->long_tie)
	{
		large.batch.number = gpu_sort_batch_by_words(&c->stream, &large.sort, ops, n, shape);
		gpu_avl_find(c, &large);
	}
	*totals = gpu_avl_report(c)->totals;
	if (gpu_change_ok(c) && totals->effective != 0)
		status = gpu_avl_apply_found(c, tree, &large.batch, totals);
	gpu_change_give(c, &span);
	return gpu_change_ok(c) ? status : gpu_change_status(c);
}

/* Applies operations in host memory that the device can use, and sees at there. */
static inline GpuStatus
gpu_avl_apply_any(GpuChange *c, GpuTree *tree, const GpudsOp *ops, const GpudsOp *there, int64_t n,
				  GpuAvlTotals *totals)
{
	GpuStatus status;
	GpuSpan span;

	/* a large batch counts before it makes anything */
	if (n <= GPU_AVL_SMALL && tree->entries.load() + (uint64_t) n <= GPU_MAX_ENTRIES)
	{
		c->stream.bus_bytes += (uint64_t) n * sizeof(GpudsOp);
		return gpu_avl_apply_small(c, tree, there, n, totals);
	}
	if (!gpu_span_take(c->pool, &span, (size_t) n * sizeof(GpudsOp)))
		return GPU_NO_MEMORY;
	gpu_copy_bus(&c->stream, span.at, ops, (size_t) n * sizeof(GpudsOp));
	status = gpu_avl_apply_large(c, tree, (const GpudsOp *) span.at, n, totals);
	gpu_change_give(c, &span);
	return status;
}

/*
 * Applies operations in any order: of several on one entry the one of the highest order counts.
 * GPU_NO_MEMORY, GPU_TOO_LARGE: nothing was changed.
 */
static inline GpuStatus
gpu_avl_apply(GpuChange *c, GpuTree *tree, const GpudsOp *ops, const GpudsOp *there, int64_t n,
			  int64_t *inserted, int64_t *deleted)
{
	GpuAvlTotals totals = {};
	GpuStatus status;

	*inserted = *deleted = 0;
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	if (n >= GPU_MAX_ITEMS)
		return GPU_NO_MEMORY;
	status = gpu_avl_apply_any(c, tree, ops, there, n, &totals);
	if (status != GPU_OK || totals.effective == 0)
		return status;
	gpu_avl_publish(tree, &totals);
	*inserted = (int64_t) (totals.effective >> 32);
	*deleted = (int64_t) (uint32_t) totals.effective - *inserted;
	gpu_rest(&tree->compact_rest, (uint32_t) totals.effective);
	return GPU_OK;
}

#endif /* AVL_APPLY_GPU_H */
