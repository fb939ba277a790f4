/*-------------------------------------------------------------------------
 *
 * avl_compact_gpu.h
 *	  Building a tree in device memory anew when it has much more memory than its entries need.
 *
 * Nodes that are not used any more are used again by the next changes, but their chunks stay with the tree.
 * A tree is built a second time, in a space of its own, if less than 3 of 8 of its nodes have entries, and if
 * it will have GPU_AVL_CHUNKS chunks fewer; a small batch may reserve so many and not need them.  So more
 * nodes were made since it was built than it takes to build it.  That is a new version.  The space before it
 * goes back to the pool when no reader pins an older one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_COMPACT_GPU_H
#define AVL_COMPACT_GPU_H

#include "kernels/avl/avl_build_gpu.h"

#define GPU_AVL_CHUNKS 4

/* The entries of a version; a source as gpu_avl_load_write wants it. */
struct GpuAvlVersionSource
{
	const unsigned char *base;
	GpuRef root;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		uint32_t rank = (uint32_t) i;
		GpuRef ref = root;

		while (gpu_avl_select(gpu_avl_at(base, ref), &rank, &ref))
			continue;
		return gpu_avl_at(base, ref)->e;
	}
};

/* Nodes that the tree has memory for. */
static inline uint64_t
gpu_avl_places(const GpuTree *tree)
{
	const GpuNodes *nodes = &tree->space.nodes[0];

	return nodes->chunks.size() * gpu_nodes_per_chunk(nodes);
}

/* Is so much wasted that the tree is to be built anew? */
static inline bool
gpu_avl_wasteful(const GpuTree *tree)
{
	const GpuNodes *nodes = &tree->space.nodes[0];
	const uint64_t entries = tree->entries.load();

	return gpu_nodes_thin(entries, gpu_avl_places(tree), 1) &&
		   gpu_nodes_chunks(nodes, entries) + GPU_AVL_CHUNKS <= nodes->chunks.size();
}

/* Builds the newest version a second time.  False: out of memory; gpu_tree_close of it must follow. */
static inline bool
gpu_avl_pack(GpuChange *c, const GpuTree *tree, GpuTree *packed)
{
	const uint64_t n = tree->entries.load();
	const GpuAvlVersionSource source = { c->pool->base, tree->root };
	const uint32_t units = 1;
	GpuNodes *nodes = gpu_avl_nodes(packed);

	if (!gpu_space_open(c, &packed->space, 1, &units))
		return false;
	packed->version = tree->version;
	if (n == 0)
		return true;
	if (!gpu_nodes_extend(c, nodes, gpu_nodes_chunks(nodes, n)))
		return false;
	gpu_nodes_filled(c, nodes, (uint32_t) n);
	gpu_avl_load_write(c, GpuLoaded(packed, c->device_chunks, 0), n, source);
	gpu_avl_load_shape(c, packed, n);
	return gpu_finish(&c->stream);
}

/*
 * Builds the tree anew if it wastes enough, and publishes that as a version.  False: nothing was changed.  If
 * there is no memory for a second copy, it is tried again when some operations have been applied.
 */
static inline bool
gpu_avl_compact(GpuChange *c, GpuTree *tree)
{
	GpuTree packed;

	if (!gpu_avl_wasteful(tree) || !gpu_tree_rested(tree))
		return false;
	if (!gpu_avl_pack(c, tree, &packed) || !gpu_change_ok(c))
	{
		gpu_tree_close(c, &packed);
		tree->compact_rest = gpu_avl_places(tree) / GPU_COMPACT_REST;
		return false;
	}
	gpu_tree_replace(tree, &packed);
	gpu_tree_publish(tree, tree->entries.load());
	return true;
}

#endif /* AVL_COMPACT_GPU_H */
