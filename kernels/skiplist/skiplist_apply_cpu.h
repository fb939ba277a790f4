/*-------------------------------------------------------------------------
 *
 * skiplist_apply_cpu.h
 *	  Applying a batch of operations to a skip list on a CPU, beside its readers.
 *
 * Operations come in the order of entries.  The ways down to the next few are interleaved.  All
 * operations on one chunk are done together: if its slots suffice, by one store of its order word, else
 * by replacing it (skiplist_change_cpu.h).  Either is one store that readers see, of all these operations
 * or of those before the one that found no slot.
 *
 * If memory runs out, what was done stays; the same operations may be applied again, because those that
 * were done change nothing the second time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_APPLY_CPU_H
#define SKIPLIST_APPLY_CPU_H

#include "kernels/skiplist/skiplist_change_cpu.h"

/* Gives a list back the levels that it does not need any more. */
HOST_FN void
skiplist_shrink(SkiplistApply *a)
{
	while (skiplist_height(a) > 1)
	{
		ArenaRef ref = skiplist_root(a);
		const uint64_t *root = skiplist_at(a->arena, ref);
		uint64_t order = root[SKIPLIST_ORDER];
		ArenaRef below = skiplist_ref(root, skiplist_slot(order, 0));

		if (skiplist_next(root[SKIPLIST_LINK]) != 0 || skiplist_n(order) > 1 ||
			skiplist_next(skiplist_at(a->arena, below)[SKIPLIST_LINK]) != 0 ||
			!skiplist_retire(a, ref, skiplist_height(a) - 1))
			return;
		skiplist_set_root(a, below, skiplist_height(a) - 1);
	}
}

/* Does the first operations of a batch, *done of them. */
HOST_INLINE KernelStatus
skiplist_apply_some(SkiplistApply *a, const GpudsOp *ops, int64_t n, int64_t *done, const int nw)
{
	const GpudsView view = { .base = (const unsigned char *) a->arena,
							 .root = skiplist_root(a),
							 .height = skiplist_height(a),
							 .nwords = nw };
	const GpudsEntry *x[SKIPLIST_INTERLEAVED];
	SkiplistWay ways[SKIPLIST_INTERLEAVED];
	KernelStatus status = KERNEL_OK;
	int together = n < SKIPLIST_INTERLEAVED ? (int) n : SKIPLIST_INTERLEAVED;

	memset(ways, 0, (size_t) together * sizeof(ways[0]));
	for (int i = 0; i < together; i++)
		x[i] = &ops[i].e;
	skiplist_descend(&view, x, ways, together, nw);
	for (*done = 0; status == KERNEL_OK && *done < together;)
	{
		SkiplistWay *way = &ways[*done];
		uint64_t link;
		const uint64_t *chunk = skiplist_seek(a->arena, &way->at[0], &ops[*done].e, &link, false, nw);
		int run = skiplist_run(chunk, ops + *done, n - *done, false, nw);

		status = skiplist_apply_run(a, 0, way, ops + *done, run, false, nw);
		*done += run;
	}
	return status;
}

/*
 * Applies a batch of operations, strictly ascending by entry.  KERNEL_NO_MEMORY: some of them were
 * applied.  The caller is the only one that changes the list.
 */
HOST_FN KernelStatus
skiplist_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	SkiplistApply a = { arena, tree, { 0, 0 }, (int64_t) tree->entries };
	KernelStatus status = KERNEL_OK;

	for (int64_t i = 0, done; status == KERNEL_OK && i < n; i += done)
	{
		if (tree->nwords == 1)
			status = skiplist_apply_some(&a, ops + i, n - i, &done, 1);
		else
			status = skiplist_apply_some(&a, ops + i, n - i, &done, 2);
	}
	skiplist_shrink(&a);
	cpu_queue_join(arena, tree, &a.replaced);
	/* whatever was done: chunks that were replaced wait for this version */
	cpu_tree_publish(tree, tree->head, (uint64_t) a.entries);
	return status;
}

#endif /* SKIPLIST_APPLY_CPU_H */
