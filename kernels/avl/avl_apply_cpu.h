/*-------------------------------------------------------------------------
 *
 * avl_apply_cpu.h
 *	  Applying a batch of operations to an AVL tree on a CPU, beside its readers.
 *
 * The ways down to the next few operations are interleaved.  Inserts that go to one place go there
 * together.  What they leave unbalanced is balanced before the next ones.
 *
 * Several threads may share a batch: each has a worker and a share of the operations, and spare nodes enough,
 * because one thread only may allocate from a space.  No share has an entry of another's.
 *
 * If memory runs out, what was done stays; the same operations may be applied again, because those that
 * were done change nothing the second time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_APPLY_CPU_H
#define AVL_APPLY_CPU_H

#include "kernels/avl/avl_tree_cpu.h"

/*
 * What a worker does before another try.  Those that share processors define something that lets others
 * run.
 */
#ifndef AVL_WAIT
#define AVL_WAIT() ((void) 0)
#endif

/* Spare nodes that an apply takes at a time, at most. */
#define AVL_SPARE 64

HOST_FN void
avl_worker_init(AvlWorker *w, Arena *arena, const CpuTree *tree)
{
	memset(w, 0, sizeof(*w));
	w->base = arena;
	w->top = head_root(tree->head);
}

/* Takes spare nodes for a worker, n at most.  False: there is no memory for any. */
HOST_FN bool
avl_worker_take(AvlWorker *w, Arena *arena, CpuTree *tree, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
	{
		ArenaRef ref = arena_alloc(arena, &tree->space, 1);

		if (ref == 0)
			break;
		avl_at(arena, ref)->next = w->spare;
		w->spare = ref;
	}
	return w->spare != 0;
}

/*
 * Gives a worker's spare nodes back, and what it has removed to the queue of the version that comes next.
 * All workers of the batch are done, because one may have a node in its queue that another has removed.
 */
HOST_FN void
avl_worker_end(AvlWorker *w, Arena *arena, avl_cpu_tree *tree)
{
	while (w->spare != 0)
	{
		ArenaRef ref = w->spare;

		w->spare = avl_at(arena, ref)->next;
		arena_free(arena, &tree->common.space, ref, 1);
	}
	while (w->removed != 0)
	{
		ArenaRef ref = w->removed;
		AvlNode *node = avl_at(arena, ref);

		w->removed = (ArenaRef) node->version;
		node->version = tree->common.version + 1;
		node->next = 0;
		if (tree->newest != 0)
			avl_at(arena, tree->newest)->next = ref;
		else
			tree->oldest = ref;
		tree->newest = ref;
	}
}

/* Visits all nodes of a worker's queue. */
HOST_FN void
avl_worker_balance(AvlWorker *w)
{
	while (w->front != 0)
	{
		if (!avl_visit_next(w))
			AVL_WAIT();
	}
}

/*
 * Does the first of n operations, from a node near it on, and those that go with it; *done: so many,
 * maybe 0.
 */
HOST_FN void
avl_worker_do(AvlWorker *w, uint32_t *at, const GpudsOp *ops, int64_t n, int64_t *done)
{
	while (!avl_try(w, at, ops, n, done))
		AVL_WAIT();
	avl_worker_balance(w);
}

/*
 * Does n operations, strictly ascending by entry, with spare nodes of a tree's, or without a tree only with
 * those that the worker has.  Returns how many were done: all, unless there are no spare nodes.
 */
HOST_FN int64_t
avl_worker_apply(AvlWorker *w, Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	const GpudsView view = { .base = (const unsigned char *) arena, .root = w->top };
	const GpudsEntry *x[AVL_INTERLEAVED];
	uint32_t at[AVL_INTERLEAVED];
	uint32_t last = avl_bottom(w->top);
	int64_t i = 0;

	while (i < n)
	{
		const int64_t begun = i;
		const int together = n - i < AVL_INTERLEAVED ? (int) (n - i) : AVL_INTERLEAVED;

		for (int k = 0; k < together; k++)
			x[k] = &ops[i + k].e;
		avl_descend_all(&view, x, at, together);
		while (i < begun + together)
		{
			uint32_t *near = &at[i - begun];
			int64_t done;

			/* what was inserted since */
			if (last != avl_bottom(w->top) && entry_less(&avl_at(arena, *near)->e, &avl_at(arena, last)->e))
				*near = last;
			avl_worker_do(w, near, ops + i, n - i, &done);
			if (done == 0 &&
				(tree == NULL || !avl_worker_take(w, arena, tree, n - i < AVL_SPARE ? n - i : AVL_SPARE)))
				return i;
			last = *near;
			i += done;
		}
	}
	return n;
}

/*
 * Applies a batch of operations, strictly ascending by entry.  KERNEL_NO_MEMORY: some of them were
 * applied.  The caller is the only one that changes the tree.
 */
HOST_FN KernelStatus
avl_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	AvlWorker w;
	int64_t done;

	avl_worker_init(&w, arena, tree);
	done = avl_worker_apply(&w, arena, tree, ops, n);
	avl_worker_end(&w, arena, (avl_cpu_tree *) tree);
	cpu_tree_publish(tree, tree->head, (uint64_t) ((int64_t) tree->entries + w.change));
	return done == n ? KERNEL_OK : KERNEL_NO_MEMORY;
}

#endif /* AVL_APPLY_CPU_H */
