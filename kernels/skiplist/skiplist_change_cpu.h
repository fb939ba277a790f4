/*-------------------------------------------------------------------------
 *
 * skiplist_change_cpu.h
 *	  Changing the chunks of a level: operations, splits, joins, and what they mean for the level above.
 *
 * A chunk whose slots are used up, or one with few entries together with a neighbour, is replaced by
 * one or several.  Then the level above is changed: it gets the references of the new chunks, by
 * the same operations that entries are inserted and deleted by, so that its chunks may be replaced in
 * turn.
 *
 * Raised low bounds.  Every entry of an index is the low bound of the chunk that it leads to, and the
 * first entry of an index's chunk is that chunk's low bound, so that nothing is ever looked for left of
 * all entries.  Therefore chunks are joined only if their low bounds are in one chunk of the level above:
 * the second one's is deleted there, and it is not the first entry.
 *
 * Memory.  What must be done above (the new reference of a low bound that is there, the deletion of
 * another) takes no memory.  If there is none to raise a chunk, it stays as it is, and is found
 * from the left.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_CHANGE_CPU_H
#define SKIPLIST_CHANGE_CPU_H

#include "kernels/skiplist/skiplist_replace_cpu.h"

HOST_FN KernelStatus skiplist_apply_above(SkiplistApply *a, int level, SkiplistWay *way, const GpudsOp *ops,
										  int n);

/* Lets the level above know what has changed. */
HOST_FN void
skiplist_raise(SkiplistApply *a, const SkiplistChange *c, SkiplistWay *way)
{
	GpudsOp ops[SKIPLIST_PIECES];

	if (c->level + 1 == skiplist_height(a))
	{
		if (c->pieces > 1)
			skiplist_grow(a, c);
		return;
	}
	/* what takes no memory first */
	if (c->old[1] != 0)
	{
		ops[0].e = c->middle;
		ops[0].order = GPUDS_OP_DELETE;
		(void) skiplist_apply_above(a, c->level + 1, way, ops, 1);
	}
	for (int i = 0; i < c->pieces; i++)
	{
		ops[i].e = c->lows[i];
		ops[i].order = (uint64_t) c->new[i] << 1 | GPUDS_OP_INSERT;
	}
	(void) skiplist_apply_above(a, c->level + 1, way, ops, c->pieces);
}

/*
 * Replaces a chunk, by which its way comes down, by as many as it takes to do operations on it, or if
 * there are none, to join it with a neighbour.  KERNEL_NO_MEMORY: nothing was changed.
 */
HOST_FN KernelStatus
skiplist_replace(SkiplistApply *a, int level, SkiplistWay *way, const GpudsOp *ops, int n)
{
	const int nw = (int) a->tree->nwords;
	const uint64_t *chunk = skiplist_at(a->arena, way->at[level]);
	SkiplistItem before[SKIPLIST_PLACES];
	SkiplistChange c;
	int nbefore = skiplist_take(chunk, before, level > 0, nw);
	int change;
	bool full = false;

	c.level = level;
	c.old[0] = way->at[level];
	c.old[1] = 0;
	c.link = chunk[SKIPLIST_LINK];
	c.low = skiplist_low(a, way->at[level], level);
	c.n = skiplist_merge(before, nbefore, ops, n, c.items);
	change = c.n - nbefore;
	/* at the right end full ones are left behind: there will be more */
	if (skiplist_next(c.link) == 0 && n > 0 && c.n > 0 && nbefore > 0)
		full = entry_less(&before[nbefore - 1].e, &ops[0].e);
	if (n == 0)
	{
		skiplist_join(a, &c, way);
		if (c.old[1] == 0)
			return KERNEL_OK;
	}
	if (!skiplist_make_pieces(a, &c, full))
		return KERNEL_NO_MEMORY;
	if (level == 0)
		a->entries += change;
	skiplist_exchange(a, &c);
	skiplist_raise(a, &c, way);
	if (n > 0 && c.n <= SKIPLIST_FEW)
	{
		way->at[level] = c.new[0];
		(void) skiplist_replace(a, level, way, NULL, 0);
	}
	return KERNEL_OK;
}

/*
 * Does operations, ascending and at most SKIPLIST_RUN, on the chunk of a level that a way has come to.
 * KERNEL_NO_MEMORY: some may have been done.
 */
HOST_INLINE KernelStatus
skiplist_apply_run(SkiplistApply *a, int level, SkiplistWay *way, const GpudsOp *ops, int n, const bool index,
				   const int nw)
{
	uint64_t *chunk = skiplist_at(a->arena, way->at[level]);
	const uint64_t before = chunk[SKIPLIST_ORDER];
	uint64_t order = before;
	bool thinned = false;
	int done = 0;

	for (; done < n; done++)
	{
		int change;

		if (!skiplist_do(chunk, &order, &ops[done], &change, index, nw))
			break;
		thinned |= change < 0;
		if (!index)
			a->entries += change;
	}
	if (order != before)
		skiplist_store(chunk + SKIPLIST_ORDER, order);
	if (done < n)
		return skiplist_replace(a, level, way, ops + done, n - done);
	if (thinned && skiplist_n(order) <= SKIPLIST_FEW)
		(void) skiplist_replace(a, level, way, NULL, 0);
	return KERNEL_OK;
}

/* How many of the next operations, the first of which is on a chunk, are on it, too; most: at most. */
HOST_INLINE int
skiplist_run(const uint64_t *chunk, const GpudsOp *ops, int64_t most, const bool index, const int nw)
{
	const bool last = skiplist_next(chunk[SKIPLIST_LINK]) == 0;
	int n = 1;

	while (n < most && n < SKIPLIST_RUN && (last || !skiplist_is_behind(chunk, &ops[n].e, index, nw)))
		n++;
	return n;
}

/* Does operations on an index; its chunks are found from the way by which a change below was come to. */
HOST_FN KernelStatus
skiplist_apply_above(SkiplistApply *a, int level, SkiplistWay *way, const GpudsOp *ops, int n)
{
	const int nw = (int) a->tree->nwords;
	KernelStatus status = KERNEL_OK;

	for (int i = 0; status == KERNEL_OK && i < n;)
	{
		const uint64_t *chunk = skiplist_way_seek(a, way, level, &ops[i].e);
		int run = skiplist_run(chunk, ops + i, n - i, true, nw);

		if (nw == 1)
			status = skiplist_apply_run(a, level, way, ops + i, run, true, 1);
		else
			status = skiplist_apply_run(a, level, way, ops + i, run, true, 2);
		i += run;
	}
	return status;
}

#endif /* SKIPLIST_CHANGE_CPU_H */
