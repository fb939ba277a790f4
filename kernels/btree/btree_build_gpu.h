/*-------------------------------------------------------------------------
 *
 * btree_build_gpu.h
 *	  Loading trees into device memory, from sorted entries that are added in batches.
 *
 * Leaf i of a load begins with entry btree_fill_start(i), and is at place i of the
 * tree's chunks of leaves.  So nothing is noted about leaves until all are there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_BUILD_GPU_H
#define BTREE_BUILD_GPU_H

#include "kernels/runtime/gpu_load.h"
#include "kernels/btree/btree_build.h"
#include "kernels/btree/btree_tree_gpu.h"

/*
 * Inner levels.
 */

template <int nw> struct GpuBuildInner
{
	unsigned char *base;
	BtreeList children;
	BtreeList parents;
	BtreeFree free;
	uint32_t first; /* number of the level's first node among those taken */

	GPU_FN void operator()(int64_t i) const
	{
		int64_t node = i / BTREE_FANOUT;

		btree_build_inner(base, &children, &parents, node, (int) (i % BTREE_FANOUT),
						  btree_free_take(&free, first + (uint32_t) node), nw);
	}
};

/* Nodes of the inner levels above so many leaves. */
static inline int64_t
gpu_inner_nodes(int64_t leaves)
{
	int64_t sum = 0;

	while (leaves > 1)
		sum += leaves = btree_nodes(leaves);
	return sum;
}

/* Lists of the levels above n leaves. */
static inline int
gpu_scratch_levels(GpuScratch *scratch, BtreeList *levels, int64_t n, uint32_t nwords)
{
	int height = 1;

	while (n > 1)
	{
		n = btree_nodes(n);
		gpu_scratch_list(scratch, &levels[height++], n, nwords);
	}
	return height;
}

/*
 * Builds the inner levels above levels[0], which is not empty; the nodes must be
 * free.  Sets the tree's height and numbers of nodes, not its view; the root comes
 * into the report.
 */
static inline void
gpu_build_inner(GpuChange *c, GpuTree *tree, BtreeList *levels, int height)
{
	BtreeFree free = gpu_btree_free(tree, GPU_BTREE_INNERS);
	uint32_t taken = 0;

	tree->level_n[0] = (uint32_t) levels[0].n;
	for (int level = 1; level < height; level++)
	{
		int64_t n = levels[level].n;

		if (tree->nwords == 1)
			gpu_launch(&c->stream, n * BTREE_FANOUT,
					   GpuBuildInner<1>{ c->pool->base, levels[level - 1], levels[level], free, taken });
		else
			gpu_launch(&c->stream, n * BTREE_FANOUT,
					   GpuBuildInner<2>{ c->pool->base, levels[level - 1], levels[level], free, taken });
		tree->level_n[level] = (uint32_t) n;
		taken += (uint32_t) n;
	}
	for (int level = height; level < BTREE_MAX_HEIGHT; level++)
		tree->level_n[level] = 0;
	gpu_nodes_take(&tree->space.nodes[GPU_BTREE_INNERS], taken);
	tree->height = height;
	gpu_copy_bus(&c->stream, &gpu_btree_report(c)->root, levels[height - 1].ref, sizeof(BtreeRef));
}

/*
 * Leaves.
 */

/* The leaves of a load. */
struct GpuLeaves : GpuLoaded
{
	uint64_t total; /* entries so far */
	uint32_t fill_percent;

	GpuLeaves(const GpuTree *tree, const GpuLoaded &loaded, uint64_t entries)
		: GpuLoaded(loaded), total(entries), fill_percent(tree->load.fill_percent)
	{
	}

	GPU_FN uint64_t start(uint64_t leaf) const
	{
		uint64_t at = btree_fill_start(leaf, fill_percent);

		return at < total ? at : total;
	}
};

template <int nw, typename Source> struct GpuBuildLeaf
{
	unsigned char *base;
	GpuLeaves leaves;
	Source source;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t leaf = leaves.first + (uint64_t) i / BTREE_FANOUT;
		int p = (int) (i % BTREE_FANOUT);
		uint64_t start = leaves.start(leaf);
		uint64_t *node = btree_node(base, leaves.ref(leaf));

		if (start + (uint64_t) p < leaves.start(leaf + 1))
		{
			GpudsEntry e = source.template entry<nw>(start - leaves.start(leaves.first) + (uint64_t) p);

			btree_leaf_set(node, p, &e, nw);
		}
		else
		{
			btree_leaf_clear(node, p, nw);
		}
	}
};

template <int nw> struct GpuListLeaf
{
	unsigned char *base;
	GpuLeaves leaves;
	BtreeList list;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsEntry separator = { 0, 0, 0 };
		BtreeRef ref = leaves.ref((uint64_t) i);

		if (i > 0)
			separator = btree_leaf_separator(base, leaves.ref((uint64_t) i - 1), ref, nw);
		btree_list_set_separator(&list, i, &separator, nw);
		list.ref[i] = ref;
		list.before[i] = (uint32_t) leaves.start((uint64_t) i);
		if (i == list.n - 1)
			list.before[i + 1] = (uint32_t) leaves.total;
	}
};

/* Leaves that the first total entries fill. */
static inline uint64_t
gpu_load_full_leaves(uint64_t total, uint32_t fill_percent)
{
	uint64_t leaves = total * 100 / (BTREE_FANOUT * fill_percent);

	while (btree_fill_start(leaves + 1, fill_percent) <= total)
		leaves++;
	while (btree_fill_start(leaves, fill_percent) > total)
		leaves--;
	return leaves;
}

/* ... and with one for what is left over. */
static inline uint64_t
gpu_load_all_leaves(const GpuLoad *load, uint64_t total)
{
	uint64_t leaves = gpu_load_full_leaves(total, load->fill_percent);

	return btree_fill_start(leaves, load->fill_percent) < total ? leaves + 1 : leaves;
}

/* Chunks for so many leaves in all; false: out of memory. */
static inline bool
gpu_load_reserve(GpuChange *c, GpuTree *tree, uint64_t leaves)
{
	GpuNodes *nodes = &tree->space.nodes[GPU_BTREE_LEAVES];

	return gpu_nodes_extend(c, nodes, gpu_nodes_chunks(nodes, leaves));
}

/* Inner nodes above so many leaves; false: out of memory. */
static inline bool
gpu_load_reserve_inners(GpuChange *c, GpuTree *tree, uint64_t leaves)
{
	GpuDemand demand[GPU_BTREE_KINDS] = {};

	demand[GPU_BTREE_INNERS].take = (uint64_t) gpu_inner_nodes((int64_t) leaves);
	return gpu_space_reserve(c, &tree->space, demand);
}

/* Writes n leaves. */
template <typename Source>
static inline void
gpu_load_write(GpuChange *c, const GpuTree *tree, const GpuLeaves &leaves, uint64_t n, const Source &source)
{
	if (tree->nwords == 1)
		gpu_launch(&c->stream, (int64_t) n * BTREE_FANOUT,
				   GpuBuildLeaf<1, Source>{ c->pool->base, leaves, source });
	else
		gpu_launch(&c->stream, (int64_t) n * BTREE_FANOUT,
				   GpuBuildLeaf<2, Source>{ c->pool->base, leaves, source });
}

/* As gpu_load_add wants to know it. */
struct GpuBtreeLayout
{
	static uint64_t start(uint64_t leaf, uint32_t fill_percent)
	{
		return btree_fill_start(leaf, fill_percent);
	}

	static uint64_t full(uint64_t total, uint32_t fill_percent)
	{
		return gpu_load_full_leaves(total, fill_percent);
	}

	static void write(GpuChange *c, const GpuTree *tree, const GpuLoaded &loaded, uint64_t n, uint64_t total,
					  const GpuSource &source)
	{
		gpu_load_write(c, tree, GpuLeaves(tree, loaded, total), n, source);
	}
};

/* Begins to load a tree, which must not be there.  GPU_NO_MEMORY: it is still not. */
static inline GpuStatus
gpu_btree_load_begin(GpuChange *c, GpuTree *tree, uint32_t nwords, uint32_t fill_percent)
{
	return gpu_load_begin(c, tree, GPU_BTREE_KINDS, GpuBtreeUnits(nwords).of, BTREE_FANOUT, nwords,
						  fill_percent);
}

/* Adds entries, as gpu_load_add. */
static inline GpuStatus
gpu_btree_load_add(GpuChange *c, GpuTree *tree, const GpudsEntry *entries, int64_t n)
{
	return gpu_load_add<GpuBtreeLayout>(c, tree, entries, n);
}

/* Working memory of the end of a load. */
struct GpuLoadEnd
{
	uint32_t *chunks;
	BtreeList levels[BTREE_MAX_HEIGHT];
	int height;
};

static inline void
gpu_load_end_layout(GpuScratch *scratch, GpuLoadEnd *end, const GpuTree *tree, int64_t leaves)
{
	size_t nchunks = tree->space.nodes[GPU_BTREE_LEAVES].chunks.size();

	end->chunks = gpu_scratch<uint32_t>(scratch, (int64_t) nchunks);
	gpu_scratch_list(scratch, &end->levels[0], leaves, tree->nwords);
	end->height = gpu_scratch_levels(scratch, end->levels, leaves, tree->nwords);
}

/*
 * Takes chunks for so many leaves in all, nodes for the levels above, and working
 * memory in a span, and sends the numbers of the chunks to the device.  False: out of
 * memory; chunks that were taken are the tree's.
 */
static inline bool
gpu_load_end_take(GpuChange *c, GpuTree *tree, uint64_t leaves, GpuLoadEnd *end, GpuSpan *span)
{
	GpuScratch scratch = { NULL, 0 };

	if (!gpu_load_reserve(c, tree, leaves) || !gpu_load_reserve_inners(c, tree, leaves))
		return false;
	gpu_load_end_layout(&scratch, end, tree, (int64_t) leaves);
	if (!gpu_scratch_take(c->pool, span, &scratch))
		return false;
	gpu_load_end_layout(&scratch, end, tree, (int64_t) leaves);
	/* an earlier copy may still be reading host_chunks */
	gpu_finish(&c->stream);
	gpu_load_send_chunks(c, tree, end->chunks, 0);
	return true;
}

/* The levels above leaves that are all written; what remains of their chunks is free. */
static inline void
gpu_load_finish(GpuChange *c, GpuTree *tree, GpuLoadEnd *end, const GpuLeaves &leaves)
{
	uint32_t n = (uint32_t) end->levels[0].n;

	if (tree->nwords == 1)
		gpu_launch(&c->stream, n, GpuListLeaf<1>{ c->pool->base, leaves, end->levels[0] });
	else
		gpu_launch(&c->stream, n, GpuListLeaf<2>{ c->pool->base, leaves, end->levels[0] });
	gpu_build_inner(c, tree, end->levels, end->height);
	gpu_nodes_filled(c, &tree->space.nodes[GPU_BTREE_LEAVES], n);
	gpu_finish(&c->stream);
	tree->root = gpu_btree_report(c)->root;
}

static inline void
gpu_load_publish(GpuChange *c, GpuTree *tree)
{
	gpu_span_give(c->pool, &tree->load.carry);
	tree->loading = false;
	gpu_tree_publish(tree, tree->load.entries);
}

/* All entries are there: publishes the tree.  GPU_NO_MEMORY: the load can go on, or be given up. */
static inline GpuStatus
gpu_btree_load_end(GpuChange *c, GpuTree *tree)
{
	GpuLoad *load = &tree->load;
	const uint64_t total = load->entries;
	GpuSource rest;
	uint64_t leaves;
	GpuSpan span;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	leaves = gpu_load_all_leaves(load, total);
	rest = gpu_load_rest<GpuBtreeLayout>(c, tree);
	if (leaves > 0)
	{
		GpuLoadEnd end;

		if (!gpu_load_end_take(c, tree, leaves, &end, &span))
			return GPU_NO_MEMORY;
		if (rest.ncarry > 0)
		{
			size_t chunk = (size_t) load->nodes / gpu_nodes_per_chunk(&tree->space.nodes[GPU_BTREE_LEAVES]);

			GpuBtreeLayout::write(c, tree, GpuLoaded(tree, end.chunks + chunk, load->nodes), 1, total, rest);
		}
		gpu_load_finish(c, tree, &end, GpuLeaves(tree, GpuLoaded(tree, end.chunks, 0), total));
		gpu_span_give(c->pool, &span);
	}
	if (!gpu_change_ok(c))
		return gpu_change_status(c);
	gpu_load_publish(c, tree);
	return GPU_OK;
}

#endif /* BTREE_BUILD_GPU_H */
