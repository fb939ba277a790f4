/*-------------------------------------------------------------------------
 *
 * btree_compact_gpu.h
 *	  Building a tree in device memory anew when deletes have left its nodes thin.
 *
 * An applier makes each changed node without looking at its neighbours, so it
 * joins none, and the memory of nodes that become empty stays with the tree.
 * Instead, a tree that wastes too much is built a second time, packed, in a space of
 * its own.  That is one new version.  The space before it goes back to the pool as
 * a whole when no reader pins an older version.
 *
 * A tree is built anew if both are true:
 *	  - Less than 3 of 8 places are used of the leaves, or of the nodes above the
 *		leaves; or the tree has memory for more leaves than it has entries.
 *	  - It will have fewer chunks of leaves than now.  A tree whose leaves fit one
 *		chunk is left alone.
 *
 * Loads fill at least 4 of 8 places, as a tree built anew is filled too, and splits
 * leave no less.  So at least a quarter of the entries must be deleted before the
 * next time.  Memory that no leaf of the newest version uses counts only if there is
 * much of it: a batch that replaces every leaf needs twice the memory for leaves,
 * and readers that pin versions keep more.
 *
 * The host knows the counts after each apply: a tree that is not built anew costs no
 * launch.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_COMPACT_GPU_H
#define BTREE_COMPACT_GPU_H

#include "kernels/btree/btree_build_gpu.h"
#include "kernels/btree/btree_probe.h"

/* All entries of a version; a source as gpu_load_write wants it. */
struct GpuVersionSource
{
	GpudsView view;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		BtreePosition p;

		btree_select(&view, i, &p);
		return btree_leaf_entry(btree_node(view.base, p.leaf), p.place, nw);
	}
};

/* Leaves that the tree has memory for. */
static inline uint64_t
gpu_btree_leaf_nodes(const GpuTree *tree)
{
	const GpuNodes *leaves = &tree->space.nodes[GPU_BTREE_LEAVES];

	return leaves->chunks.size() * gpu_nodes_per_chunk(leaves);
}

/* Is so much wasted that the tree is to be built anew? */
static inline bool
gpu_btree_wasteful(const GpuTree *tree)
{
	const GpuNodes *leaves = &tree->space.nodes[GPU_BTREE_LEAVES];
	uint64_t entries = tree->entries.load();

	if (!gpu_nodes_thin(entries, tree->level_n[0], BTREE_FANOUT) &&
		!gpu_nodes_thin(tree->level_n[0], tree->level_n[1], BTREE_FANOUT) &&
		entries >= gpu_btree_leaf_nodes(tree))
		return false;
	/* one leaf more, so that an empty tree keeps a chunk */
	return gpu_nodes_chunks(leaves, gpu_load_all_leaves(&tree->load, entries) + 1) < leaves->chunks.size();
}

/*
 * Builds the tree's newest version a second time, filled as a load fills it.  False:
 * out of memory; gpu_tree_close of the packed one must follow.
 */
static inline bool
gpu_btree_pack(GpuChange *c, const GpuTree *tree, GpuTree *packed)
{
	GpuVersionSource source = {};
	GpuLoadEnd end;
	GpuSpan span;
	uint64_t n;

	if (!gpu_space_open(c, &packed->space, GPU_BTREE_KINDS, GpuBtreeUnits(tree->nwords).of))
		return false;
	packed->nwords = tree->nwords;
	(void) gpu_tree_view(tree, c->pool, &source.view);
	packed->load.fill_percent = tree->load.fill_percent;
	n = gpu_load_all_leaves(&packed->load, source.view.entries);
	if (n == 0)
		return true;
	if (!gpu_load_end_take(c, packed, n, &end, &span))
		return false;

	GpuLeaves leaves(packed, GpuLoaded(packed, end.chunks, 0), source.view.entries);

	gpu_load_write(c, packed, leaves, n, source);
	gpu_load_finish(c, packed, &end, leaves);
	gpu_span_give(c->pool, &span);
	return true;
}

/*
 * Builds the tree anew if it wastes enough, and publishes that as a version.  True: it
 * did, and gpu_tree_reclaim gives the memory back as soon as no older version is
 * pinned.  False: nothing was changed.
 *
 * Nothing happens while a pin still keeps what was built anew before.  If there is no
 * memory for a second copy, it is tried again when some operations have been applied.
 * A lost device shows in the stream's status.
 */
static inline bool
gpu_btree_compact(GpuChange *c, GpuTree *tree)
{
	GpuTree packed;

	if (!gpu_btree_wasteful(tree) || !gpu_tree_rested(tree))
		return false;
	if (!gpu_btree_pack(c, tree, &packed) || !gpu_change_ok(c))
	{
		gpu_tree_close(c, &packed);
		tree->compact_rest = gpu_btree_leaf_nodes(tree) / GPU_COMPACT_REST;
		return false;
	}
	gpu_tree_replace(tree, &packed);
	gpu_tree_publish(tree, tree->entries.load());
	return true;
}

#endif /* BTREE_COMPACT_GPU_H */
