/*-------------------------------------------------------------------------
 *
 * btree_apply_leaf.h
 *	  Applying a batch of operations to the leaves: what is done for one operation,
 *	  one run, and one new leaf.
 *
 * In order, each for all before the next begins:
 *
 *	  btree_apply_set			operation; takes the sorted operations (btree_apply_steps.h)
 *	  btree_apply_find			operation; takes the view
 *	  btree_apply_head			operation, and one more; then head and sum become
 *								exclusive sums
 *	  btree_apply_list_run		operation
 *	  btree_apply_plan			run, and one more; then taken becomes an exclusive sum
 *	  btree_apply_list_parts	operation; makes the changes and lists the parts
 *	  btree_apply_part			new leaf; takes the free leaves
 *	  btree_apply_leaf			thread of a new leaf; takes the old leaves
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_LEAF_H
#define BTREE_APPLY_LEAF_H

#include "kernels/btree/btree_apply_steps.h"

/*
 * The child of an inner node in which x is or would be.  Loads at once all that
 * may be wanted, because the caller waits for memory and nothing else.
 */
KERNEL_INLINE int
btree_apply_step(const uint64_t *node, const GpudsEntry *x, BtreeRef *ref, int *n, const int nw)
{
	uint64_t word[2 * BTREE_FANOUT];
	int at = 0;

	for (int i = 0; i < 2 * BTREE_FANOUT; i++)
		word[i] = node[i];
	*n = btree_header_n(word[0]);
	*ref = btree_link_ref(word[BTREE_LINKS]);
	for (int i = 1; i < BTREE_FANOUT; i++)
	{
		if (word[i] < x->w0 || (word[i] == x->w0 && btree_inner_tie(node, i, x, nw)))
		{
			at = i;
			*ref = btree_link_ref(word[BTREE_LINKS + i]);
		}
	}
	return at;
}

/* The place of x in a leaf, and the number of its entries; true: x is there. */
KERNEL_INLINE bool
btree_apply_leaf_place(const uint64_t *leaf, const GpudsEntry *x, int *place, int *n, const int nw)
{
	bool there = false;

	*place = *n = 0;
	for (int i = 0; i < BTREE_FANOUT; i++)
	{
		GpudsEntry e = btree_leaf_entry(leaf, i, nw);

		*n += e.t != UINT64_MAX;
		*place += entry_less(&e, x);
		there = there || entry_equal(&e, x);
	}
	return there;
}

/* Finds the leaf of operation j, and what the operation does to it. */
KERNEL_INLINE void
btree_apply_find(const GpudsView *view, const BtreeBatch *batch, const BtreePath *path, int64_t j,
				 const int nw)
{
	GpudsEntry e = btree_batch_entry(batch, j, nw);
	BtreeRef ref = view->root;
	BtreeRef parent = 0;
	uint64_t effect = 0;
	bool last = true;
	bool there = false;
	int at = 0;
	int n = 0;
	int place = 0;

	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = btree_node(view->base, ref);
		int children;

		parent = ref;
		if (path->parent)
		{
			at = btree_apply_step(node, &e, &ref, &children, nw);
		}
		else
		{
			uint64_t link;

			/* neighbouring threads read the same nodes, so instructions count more than loads */
			at = btree_inner_rank(node, &e, nw);
			children = btree_inner_n(node);
			link = btree_inner_link(node, at);
			ref = btree_link_ref(link);
			if (level == 1 && at + 1 < children)
				n = (int) (btree_link_before(btree_inner_link(node, at + 1)) - btree_link_before(link));
		}
		if (at + 1 < children)
			last = false;
		if (path->parent)
		{
			path->parent[(level - 1) * batch->n + j] = parent;
			path->place[(level - 1) * batch->n + j] = btree_place(at, children, false);
		}
	}
	if (view->height > 0 && path->parent)
	{
		there = btree_apply_leaf_place(btree_node(view->base, ref), &e, &place, &n, nw);
	}
	else if (view->height > 0)
	{
		const uint64_t *leaf = btree_node(view->base, ref);

		if (n == 0)
			n = btree_leaf_n(leaf, nw);
		place = btree_leaf_rank(leaf, &e, nw);
		if (place < n)
		{
			GpudsEntry found = btree_leaf_entry(leaf, place, nw);

			there = entry_equal(&found, &e);
		}
	}
	if (btree_apply_overruled(batch, j, nw))
	{
		/* it is placed behind its entry, whether that stays or not */
		place += there ? 1 : 0;
		there = false;
	}
	else if (batch->deletes[j])
	{
		effect = there ? BTREE_DELETED : 0;
	}
	else
	{
		effect = there ? 0 : BTREE_INSERTED;
	}
	batch->leaf[j] = ref;
	batch->parent[j] = parent;
	batch->place[j] = btree_place(at, n, last);
	batch->order[j] = (uint8_t) (2 * place + (there ? 1 : 0));
	batch->sum[j] = effect;
}

/* Does a run begin with operation j?  j is one of 0 .. n. */
KERNEL_INLINE void
btree_apply_head(const BtreeBatch *batch, int64_t j)
{
	if (j < batch->n)
	{
		batch->head[j] = j == 0 || batch->leaf[j - 1] != batch->leaf[j] ? 1 : 0;
	}
	else
	{
		batch->head[j] = 0;
		batch->sum[j] = 0;
	}
}

/* Lists the run that begins with operation j.  head is an exclusive sum. */
KERNEL_INLINE void
btree_apply_list_run(const BtreeBatch *batch, int64_t j)
{
	if (batch->head[j + 1] != batch->head[j])
		batch->run[batch->head[j]] = (uint32_t) j;
	if (j == batch->n - 1)
		batch->run[batch->head[j + 1]] = (uint32_t) batch->n;
}

/* Entries that the leaf of run r has afterwards; -1: nothing changes. */
KERNEL_INLINE int64_t
btree_apply_after(const BtreeBatch *batch, int64_t r)
{
	uint32_t from = batch->run[r];
	uint32_t to = batch->run[r + 1];

	if (batch->sum[from] == batch->sum[to])
		return -1;
	return btree_place_n(batch->place[from]) + btree_apply_net(batch, from, to);
}

/* What run r takes.  sum is an exclusive sum; r is one of 0 .. n. */
KERNEL_INLINE void
btree_apply_plan(const BtreeBatch *batch, int64_t r)
{
	int64_t after = r < (int64_t) batch->head[batch->n] ? btree_apply_after(batch, r) : -1;

	batch->taken[r] = after >= 0 ? (uint64_t) btree_nodes(after) << 32 | 1 : 0;
}

/*
 * Lists what operation j stands for.  The first operation of a run lists the change
 * and part 0, and operation number q lists part q + 1, since a run has at most one
 * part more than operations.  taken is an exclusive sum.
 */
KERNEL_INLINE void
btree_apply_list_parts(const BtreeLevel *l, int64_t j)
{
	const BtreeBatch *batch = &l->batch;
	const BtreeChanges *here = &l->here;
	int64_t r = (int64_t) batch->head[j + 1] - 1;
	uint32_t from = batch->run[r];
	uint32_t change = (uint32_t) batch->taken[r];
	uint32_t first = (uint32_t) (batch->taken[r] >> 32);
	uint32_t end = (uint32_t) (batch->taken[r + 1] >> 32);
	uint32_t q = (uint32_t) (j - from) + 1;

	if (j == 0)
	{
		uint64_t all = batch->taken[batch->head[batch->n]];

		l->counts->changes[0] = (uint32_t) all;
		l->counts->parts[0] = (uint32_t) (all >> 32);
		l->counts->sum = batch->sum[batch->n];
		here->op[(uint32_t) all] = (uint32_t) batch->n;
		here->first[(uint32_t) all] = (uint32_t) (all >> 32);
	}
	if (batch->sum[from] == batch->sum[batch->run[r + 1]])
		return;
	if (j == from)
	{
		here->op[change] = from;
		here->to[change] = batch->run[r + 1];
		here->first[change] = first;
		here->after[change] = (uint32_t) btree_apply_after(batch, r);
		here->node[change] = batch->leaf[from];
		here->parent[change] = batch->parent[from];
		here->place[change] = batch->place[from];
		l->retired_leaves[change] = batch->leaf[from];
		if (first < end)
			l->parts.change[first] = change;
	}
	if (first + q < end)
		l->parts.change[first + q] = change;
}

/* How many entries of a change's parts are before operation j. */
KERNEL_INLINE uint32_t
btree_apply_before(const BtreeBatch *batch, uint32_t from, uint32_t j)
{
	return batch->order[j] / 2 + btree_apply_net32(batch, from, j);
}

/* The first operation of a change that has more than at entries of its parts before it. */
KERNEL_INLINE uint32_t
btree_apply_seek(const BtreeBatch *batch, uint32_t from, uint32_t to, uint32_t at)
{
	uint32_t lo = from;

	while (lo + BTREE_NEAR < to)
	{
		uint32_t middle = lo + (to - lo) / 2;

		if (btree_apply_before(batch, from, middle) > at)
			to = middle;
		else
			lo = middle + 1;
	}
	while (lo < to && btree_apply_before(batch, from, lo) <= at)
		lo++;
	return lo;
}

/* Entry number at of a change's parts; op is what btree_apply_seek finds. */
KERNEL_INLINE GpudsEntry
btree_apply_entry(const BtreeLevel *l, const uint64_t *leaf, uint32_t from, uint32_t op, uint32_t at,
				  const int nw)
{
	const BtreeBatch *batch = &l->batch;

	if (op > from && batch->sum[op] - batch->sum[op - 1] == BTREE_INSERTED &&
		btree_apply_before(batch, from, op - 1) == at)
		return btree_batch_entry(batch, op - 1, nw);
	return btree_leaf_entry(leaf, (int) (at - btree_apply_net32(batch, from, op)), nw);
}

/* What the level above has to know of a new leaf. */
KERNEL_INLINE void
btree_apply_part(const BtreeLevel *l, uint32_t part, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_part_range(l, part, &start, &end);

	if (start > 0)
	{
		const uint64_t *leaf = btree_node(l->view.base, l->here.node[change]);
		uint32_t from = l->here.op[change];
		uint32_t to = l->here.to[change];
		uint32_t at = (uint32_t) start;
		GpudsEntry left = btree_apply_entry(l, leaf, from, btree_apply_seek(&l->batch, from, to, at - 1),
											at - 1, nw);
		GpudsEntry right = btree_apply_entry(l, leaf, from, btree_apply_seek(&l->batch, from, to, at), at,
											 nw);
		GpudsEntry separator = entry_between(&left, &right);

		btree_part_set_separator(&l->parts, part, &separator, nw);
	}
	l->parts.ref[part] = btree_free_take(&l->leaves, part);
	l->parts.before[part] = (uint32_t) start;
}

/* Makes a thread's places of a leaf. */
KERNEL_INLINE void
btree_apply_leaf(const BtreeLevel *l, unsigned char *base, uint32_t part, int thread, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_part_range(l, part, &start, &end);
	uint64_t *leaf = btree_node(base, btree_free_take(&l->leaves, part));
	const uint64_t *old = btree_node(base, l->here.node[change]);
	uint32_t from = l->here.op[change];
	uint32_t to = l->here.to[change];
	uint32_t op = btree_apply_seek(&l->batch, from, to,
								   (uint32_t) start + (uint32_t) (thread * BTREE_LEAF_PLACES));

	for (int p = thread * BTREE_LEAF_PLACES; p < (thread + 1) * BTREE_LEAF_PLACES; p++)
	{
		uint32_t at = (uint32_t) (start + p);

		if (at < end)
		{
			GpudsEntry e;

			while (op < to && btree_apply_before(&l->batch, from, op) <= at)
				op++;
			e = btree_apply_entry(l, old, from, op, at, nw);
			btree_leaf_set(leaf, p, &e, nw);
		}
		else
		{
			btree_leaf_clear(leaf, p, nw);
		}
	}
}

#endif /* BTREE_APPLY_LEAF_H */
