/*-------------------------------------------------------------------------
 *
 * btree_apply_cpu.h
 *	  Applying a batch of changes on a CPU: one thread, from left to right.
 *
 * The old tree is walked from left to right, but only where there are
 * operations: other subtrees become items of the new tree as they are.  A
 * touched node is taken apart into the writer's level (btree_build_cpu.h), and put
 * together again there.
 *
 * What a level holds when the next subtree is to be added as it is must be
 * written first.  Less than half a node is then joined with its left
 * neighbour, which is always at hand: either as the last item of the level
 * above, or inside the last item of some level further up.  Only the first
 * contents of a tree have no left neighbour; for them the next subtree is
 * opened.  So the cost is linear in the nodes touched, plus a neighbour each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_CPU_H
#define BTREE_APPLY_CPU_H

#include "kernels/btree/btree_build_cpu.h"

#define CPU_BTREE_AHEAD 16

/* Note a node of the old tree (or one written too early) as replaced. */
HOST_FN bool
cpu_btree_retire(CpuBtreeWriter *w, BtreeRef ref, int level)
{
	int units = level > 0 ? cpu_btree_inner_units(btree_node(w->arena, ref)[0]) : btree_leaf_units(w->nw);

	w->units -= units;
	return cpu_queue_push(w->arena, w->tree, &w->retired, w->version, ref, units);
}

/* Take a leaf apart. */
HOST_FN int
cpu_btree_open_leaf(const CpuBtreeWriter *w, BtreeRef ref, GpudsEntry *out)
{
	const uint64_t *leaf = btree_node(w->arena, ref);
	int n = btree_leaf_n(leaf, w->nw);

	for (int i = 0; i < n; i++)
		out[i] = btree_leaf_entry(leaf, i, w->nw);
	return n;
}

/* Take an inner node apart. */
HOST_FN int
cpu_btree_open_inner(const CpuBtreeWriter *w, const CpuBtreeItem *item, CpuBtreeItem *out)
{
	const uint64_t *node = btree_node(w->arena, item->ref);
	int n = btree_inner_n(node);

	for (int i = 0; i < n; i++)
	{
		uint64_t link = btree_inner_link(node, i);
		uint64_t end = i < n - 1 ? btree_link_before(btree_inner_link(node, i + 1)) : item->count;

		out[i].ref = btree_link_ref(link);
		out[i].count = end - btree_link_before(link);
		out[i].low = i == 0 ? item->low : btree_inner_separator(node, i, w->nw);
	}
	return n;
}

HOST_FN int
cpu_btree_level_size(const CpuBtreeWriter *w, int level)
{
	return level == 0 ? w->nentries : w->level[level].n;
}

/* Write all that a level holds, as one node or two of equal size. */
HOST_FN bool
cpu_btree_put_all(CpuBtreeWriter *w, int level)
{
	int n = cpu_btree_level_size(w, level);
	int k = n > BTREE_FANOUT ? (n + 1) / 2 : n;

	while (n > 0)
	{
		if (!(level == 0 ? cpu_btree_put_leaf(w, k) : cpu_btree_put_inner(w, level, k)))
			return false;
		n -= k;
		k = n;
	}
	return true;
}

/*
 * A level holds less than half a node: put the contents of its left neighbour
 * before it, if there is one.
 */
HOST_FN bool
cpu_btree_join_left(CpuBtreeWriter *w, int level)
{
	int from = cpu_btree_writer_next(w, level + 1);

	if (from < 0)
		return true;
	for (; from > level; from--)
	{
		CpuBtreeLevel *above = &w->level[from];
		CpuBtreeItem last = above->item[--above->n];

		if (from == 1)
		{
			GpudsEntry left[BTREE_FANOUT];
			int n = cpu_btree_open_leaf(w, last.ref, left);

			memmove(&w->entry[n], w->entry, (size_t) w->nentries * sizeof(GpudsEntry));
			memcpy(w->entry, left, (size_t) n * sizeof(GpudsEntry));
			w->nentries += n;
			w->low = last.low;
		}
		else
		{
			CpuBtreeLevel *below = &w->level[from - 1];
			CpuBtreeItem left[BTREE_FANOUT];
			int n = cpu_btree_open_inner(w, &last, left);

			memmove(&below->item[n], below->item, (size_t) below->n * sizeof(CpuBtreeItem));
			memcpy(below->item, left, (size_t) n * sizeof(CpuBtreeItem));
			below->n += n;
		}
		if (!cpu_btree_retire(w, last.ref, from - 1))
			return false;
	}
	return true;
}

/* Write what all levels below this one hold. */
HOST_FN bool
cpu_btree_close_below(CpuBtreeWriter *w, int level)
{
	for (int l = 0; l < level; l++)
	{
		int n = cpu_btree_level_size(w, l);

		if (n > 0 && n < CPU_BTREE_MIN && !cpu_btree_join_left(w, l))
			return false;
		if (!cpu_btree_put_all(w, l))
			return false;
	}
	return true;
}

/*
 * Must the next subtree, whose root is of this level, be opened, because what
 * the writer holds makes no node of that level and has no left neighbour?
 */
HOST_FN bool
cpu_btree_must_open(const CpuBtreeWriter *w, int level)
{
	int top = -1;

	if (cpu_btree_writer_next(w, level + 1) >= 0)
		return false;
	for (int l = 0; l <= level; l++)
	{
		if (cpu_btree_level_size(w, l) > 0)
			top = l;
	}
	return top >= 0 && (top < level || cpu_btree_level_size(w, level) < CPU_BTREE_MIN);
}

/* How many of the operations come before e. */
HOST_FN int64_t
cpu_btree_ops_before(const GpudsOp *ops, int64_t n, const GpudsEntry *e)
{
	int64_t lo = 0;
	int64_t step = 1;
	int64_t hi;

	while (step <= n && entry_less(&ops[step - 1].e, e))
	{
		lo = step;
		step *= 2;
	}
	hi = step <= n ? step - 1 : n;
	while (lo < hi)
	{
		int64_t mid = lo + (hi - lo) / 2;

		if (entry_less(&ops[mid].e, e))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Merge a leaf's entries with operations. */
HOST_FN bool
cpu_btree_apply_leaf(CpuBtreeWriter *w, BtreeRef ref, const GpudsOp *ops, int64_t nops, int64_t *inserted,
					 int64_t *deleted)
{
	GpudsEntry old[BTREE_FANOUT];
	int n = cpu_btree_open_leaf(w, ref, old);
	int i = 0;

	for (int64_t o = 0; o < nops; o++)
	{
		bool there;

		while (i < n && entry_less(&old[i], &ops[o].e))
		{
			if (!cpu_btree_push_entry(w, &old[i++]))
				return false;
		}
		there = i < n && entry_equal(&old[i], &ops[o].e);
		if ((ops[o].order & 1) == GPUDS_OP_DELETE)
		{
			if (there)
			{
				i++;
				(*deleted)++;
			}
		}
		else if (!there)
		{
			if (!cpu_btree_push_entry(w, &ops[o].e))
				return false;
			(*inserted)++;
		}
	}
	while (i < n)
	{
		if (!cpu_btree_push_entry(w, &old[i++]))
			return false;
	}
	return true;
}

/*
 * Start loading what the next operations will want, by descending the old tree
 * with CPU_BTREE_AHEAD of them together: one at a time each would wait for memory.
 * Where they mostly meet in the same leaves there is nothing to win, and a
 * longer stretch of operations is passed over.
 */
HOST_INLINE void
cpu_btree_apply_ahead(CpuBtreeWriter *w, const GpudsOp *ops, const int nw)
{
	BtreeRef refs[CPU_BTREE_AHEAD];
	int n = w->ops_end - ops < CPU_BTREE_AHEAD ? (int) (w->ops_end - ops) : CPU_BTREE_AHEAD;
	int leaves = 1;

	for (int i = 0; i < n; i++)
		refs[i] = head_root(w->tree->head);
	for (int level = head_height(w->tree->head) - 1; level > 0; level--)
	{
		for (int i = 0; i < n; i++)
		{
			const uint64_t *node = btree_node(w->arena, refs[i]);

			refs[i] = btree_link_ref(btree_inner_link(node, btree_inner_rank(node, &ops[i].e, nw)));
			cpu_btree_prefetch(w->arena, refs[i], level == 1, nw);
		}
	}
	for (int i = 1; i < n; i++)
		leaves += refs[i] != refs[i - 1];
	w->ahead = ops + n;
	if (leaves < CPU_BTREE_AHEAD / 2)
		w->ahead += w->ops_end - w->ahead < 16 * CPU_BTREE_AHEAD ? w->ops_end - w->ahead
																 : 16 * CPU_BTREE_AHEAD;
}

/*
 * Take a node apart into the writer, changed by the operations that fall into
 * it.  last: it is at the tree's right edge.  Recursion is as deep as the tree.
 */
HOST_FN bool
cpu_btree_apply_node(CpuBtreeWriter *w, const CpuBtreeItem *item, int level, bool last, const GpudsOp *ops,
					 int64_t nops, int64_t *inserted, int64_t *deleted)
{
	if (level == 0)
	{
		if (w->nentries == 0)
			w->low = item->low;
		if (!cpu_btree_apply_leaf(w, item->ref, ops, nops, inserted, deleted))
			return false;
	}
	else
	{
		CpuBtreeItem child[BTREE_FANOUT];
		int64_t end[BTREE_FANOUT];
		int n = cpu_btree_open_inner(w, item, child);
		int64_t start = 0;

		for (int i = 0; i < n; i++)
		{
			end[i] = nops;
			if (i < n - 1)
				end[i] = start + cpu_btree_ops_before(ops + start, nops - start, &child[i + 1].low);
			start = end[i];
		}
		start = 0;
		for (int i = 0; i < n; i++)
		{
			if (end[i] > start || cpu_btree_must_open(w, level - 1))
			{
				if (end[i] > start && ops + start >= w->ahead)
				{
					if (w->nw == 1)
						cpu_btree_apply_ahead(w, ops + start, 1);
					else
						cpu_btree_apply_ahead(w, ops + start, 2);
				}
				if (!cpu_btree_apply_node(w, &child[i], level - 1, last && i == n - 1, ops + start,
										  end[i] - start, inserted, deleted))
					return false;
			}
			else if (!cpu_btree_close_below(w, level) || !cpu_btree_push_item(w, level, &child[i]))
				return false;
			start = end[i];
		}
	}
	/* keep the boundary after this node where it makes sense */
	if (!last && cpu_btree_level_size(w, level) >= CPU_BTREE_MIN && !cpu_btree_put_all(w, level))
		return false;
	return cpu_btree_retire(w, item->ref, level);
}

/*
 * What the writer holds at the end of the input becomes the tree's right edge: the root of the new version
 * and its height.  False: out of memory.
 */
HOST_FN bool
cpu_btree_change_finish(CpuBtreeWriter *w, BtreeRef *root, int *height)
{
	if (!cpu_btree_writer_finish(w, root, height))
		return false;
	while (*height > 1 && btree_inner_n(btree_node(w->arena, *root)) == 1)
	{
		BtreeRef child = btree_link_ref(btree_inner_link(btree_node(w->arena, *root), 0));

		if (!cpu_btree_retire(w, *root, *height - 1))
			return false;
		*root = child;
		(*height)--;
	}
	return true;
}

/* Gives a change's new nodes back, the tree stays as it is. */
HOST_FN void
cpu_btree_change_undo(CpuBtreeWriter *w)
{
	cpu_queue_free(w->arena, w->tree, &w->fresh, true, UINT64_MAX);
	cpu_queue_free(w->arena, w->tree, &w->retired, false, UINT64_MAX);
}

/* Publishes a change as a new version; the nodes that it replaces are queued. */
HOST_FN void
cpu_btree_change_publish(CpuBtreeWriter *w, BtreeRef root, int height, uint64_t entries)
{
	cpu_queue_free(w->arena, w->tree, &w->fresh, false, UINT64_MAX);
	cpu_queue_join(w->arena, w->tree, &w->retired);
	cpu_tree_publish(w->tree, head_make(w->nw, height, root), entries);
}

/*
 * Apply a batch of operations, strictly ascending by entry, and publish the
 * result as a new version (none if nothing changed).  Inserting what is there
 * and deleting what is not change nothing.  *inserted and *deleted get the
 * numbers of entries that came and went; they may be NULL.  Replaced nodes are queued for
 * cpu_tree_reclaim.  KERNEL_NO_MEMORY: the tree is as it was, the new nodes are given
 * back.  The caller is the only one that changes the tree.
 */
HOST_FN KernelStatus
cpu_btree_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n, int64_t *inserted,
				int64_t *deleted)
{
	CpuBtreeWriter w;
	CpuBtreeItem whole = { head_root(tree->head), cpu_tree_entries(tree), { 0, 0, 0 } };
	int height = head_height(tree->head);
	BtreeRef root = whole.ref;
	int64_t came = 0;
	int64_t went = 0;
	bool ok = true;

	if (inserted != NULL)
		*inserted = 0;
	if (deleted != NULL)
		*deleted = 0;
	if (n <= 0)
		return KERNEL_OK;
	cpu_btree_writer_init(&w, arena, tree, BTREE_FANOUT, true);
	w.ops_end = ops + n;
	w.ahead = n > 1 ? ops : w.ops_end;
	if (height > 0)
		ok = cpu_btree_apply_node(&w, &whole, height - 1, true, ops, n, &came, &went);
	else
	{
		w.low = whole.low;
		for (int64_t o = 0; ok && o < n; o++)
		{
			if ((ops[o].order & 1) == GPUDS_OP_DELETE)
				continue;
			ok = cpu_btree_push_entry(&w, &ops[o].e);
			came++;
		}
	}
	if (ok && came + went > 0)
		ok = cpu_btree_change_finish(&w, &root, &height);
	if (!ok || came + went == 0)
	{
		cpu_btree_change_undo(&w);
		return ok ? KERNEL_OK : KERNEL_NO_MEMORY;
	}
	cpu_btree_change_publish(&w, root, height, whole.count + (uint64_t) came - (uint64_t) went);
	if (inserted != NULL)
		*inserted = came;
	if (deleted != NULL)
		*deleted = went;
	return KERNEL_OK;
}

#endif /* BTREE_APPLY_CPU_H */
