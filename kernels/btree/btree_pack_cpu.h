/*-------------------------------------------------------------------------
 *
 * btree_pack_cpu.h
 *	  Packing a stretch of a tree on a CPU: its nodes are made anew, as a load would have made them.
 *
 * Inserts in no order leave nodes half full after a split, and two thirds full in the long run.  The writer
 * (btree_build_cpu.h) is given all entries of a stretch, and keeps no boundary of theirs; other subtrees
 * become items of the new tree as they are, as in an apply (btree_apply_cpu.h).  The new nodes are there
 * before the old ones are free, so a stretch takes memory for a moment; one that is short enough finds it
 * where a batch of operations does not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_PACK_CPU_H
#define BTREE_PACK_CPU_H

#include "kernels/btree/btree_apply_cpu.h"
#include "kernels/btree/btree_probe.h"

/*
 * How full packed nodes are, in percent: as loaded ones by default.  Full ones would be split by the next
 * insert.
 */
#define CPU_BTREE_PACKED 90

/* A stretch of a tree, by ranks. */
typedef struct CpuBtreeStretch
{
	uint64_t from;
	uint64_t to; /* not part of it */
} CpuBtreeStretch;

/* Take a node that has entries of the stretch apart into the writer.  start: rank of its first entry. */
HOST_FN bool
cpu_btree_pack_node(CpuBtreeWriter *w, const CpuBtreeItem *item, int level, uint64_t start,
					const CpuBtreeStretch *stretch)
{
	if (level == 0)
	{
		GpudsEntry entry[BTREE_FANOUT];
		int n = cpu_btree_open_leaf(w, item->ref, entry);

		if (w->nentries == 0)
			w->low = item->low;
		for (int i = 0; i < n; i++)
		{
			if (!cpu_btree_push_entry(w, &entry[i]))
				return false;
		}
	}
	else
	{
		CpuBtreeItem child[BTREE_FANOUT];
		int n = cpu_btree_open_inner(w, item, child);

		for (int i = 0; i < n; i++)
		{
			const bool packed = start < stretch->to && start + child[i].count > stretch->from;

			if (packed || cpu_btree_must_open(w, level - 1))
			{
				if (!cpu_btree_pack_node(w, &child[i], level - 1, start, stretch))
					return false;
			}
			else if (!cpu_btree_close_below(w, level) || !cpu_btree_push_item(w, level, &child[i]))
				return false;
			start += child[i].count;
		}
	}
	return cpu_btree_retire(w, item->ref, level);
}

/*
 * Packs about most entries from *at on, and publishes that as a new version if it takes less memory.  *at
 * becomes where to go on, the lowest entry at the end.  *units: what will be free, as soon as the caller
 * has called cpu_tree_reclaim, less what was taken.  KERNEL_NO_MEMORY: the tree is as it was, and so is
 * *at.  The caller is the only one that changes the tree.
 */
HOST_FN KernelStatus
btree_cpu_pack(Arena *arena, CpuTree *tree, GpudsEntry *at, int64_t most, int64_t *units)
{
	const GpudsEntry lowest = { 0, 0, 0 };
	CpuBtreeItem whole = { head_root(tree->head), cpu_tree_entries(tree), { 0, 0, 0 } };
	int height = head_height(tree->head);
	GpudsView view;
	BtreePosition position;
	CpuBtreeStretch stretch;
	CpuBtreeWriter w;
	BtreeRef root;

	*units = 0;
	if (height < 2 || !cpu_tree_view(arena, tree, &view))
	{
		*at = lowest;
		return KERNEL_OK;
	}
	if (tree->nwords == 1)
		btree_descend(&view, at, &position, 1);
	else
		btree_descend(&view, at, &position, 2);
	stretch.from = position.rank;
	stretch.to = position.rank + (uint64_t) most;
	cpu_btree_writer_init(&w, arena, tree, cpu_btree_target(CPU_BTREE_PACKED), true);
	if (!cpu_btree_pack_node(&w, &whole, height - 1, 0, &stretch) ||
		!cpu_btree_change_finish(&w, &root, &height))
	{
		cpu_btree_change_undo(&w);
		return KERNEL_NO_MEMORY;
	}
	if (stretch.to < whole.count)
	{
		btree_select(&view, stretch.to, &position);
		*at = btree_leaf_entry(btree_node(arena, position.leaf), position.place, w.nw);
	}
	else
		*at = lowest;
	if (w.units < 0)
	{
		*units = -w.units;
		cpu_btree_change_publish(&w, root, height, whole.count);
	}
	else
		cpu_btree_change_undo(&w);
	return KERNEL_OK;
}

#endif /* BTREE_PACK_CPU_H */
