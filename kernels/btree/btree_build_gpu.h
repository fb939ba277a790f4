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

#include "kernels/btree/btree_tree_gpu.h"
#include "kernels/btree/btree_build.h"

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
	BtreeFree free = gpu_tree_free(tree, GPU_TREE_INNERS);
	uint32_t taken = 0;

	tree->level_n[0] = (uint32_t) levels[0].n;
	for (int level = 1; level < height; level++)
	{
		int64_t n = levels[level].n;

		if (tree->nwords == 1)
		{
			GpuBuildInner<1> build = { c->pool->base, levels[level - 1], levels[level], free, taken };

			gpu_launch(&c->stream, n * BTREE_FANOUT, build);
		}
		else
		{
			GpuBuildInner<2> build = { c->pool->base, levels[level - 1], levels[level], free, taken };

			gpu_launch(&c->stream, n * BTREE_FANOUT, build);
		}
		tree->level_n[level] = (uint32_t) n;
		taken += (uint32_t) n;
	}
	for (int level = height; level < BTREE_MAX_HEIGHT; level++)
		tree->level_n[level] = 0;
	gpu_nodes_take(&tree->space.nodes[GPU_TREE_INNERS], taken);
	tree->height = height;
	gpu_copy_bus(&c->stream, &gpu_tree_report(c)->root, levels[height - 1].ref, sizeof(BtreeRef));
}

/*
 * Leaves.
 */

/*
 * Entries of leaves, ascending: some that were left over, then the input.  A source
 * has a function entry, which returns entry number i from the first leaf's on.
 */
struct GpuSource
{
	const GpudsEntry *carry;
	uint64_t ncarry;
	const GpudsEntry *input;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		return i < ncarry ? carry[i] : input[i - ncarry];
	}
};

/* The leaves of a load. */
struct GpuLeaves
{
	const uint32_t *chunks; /* from the one that has leaf first on */
	uint64_t first;
	uint64_t total; /* entries so far */
	uint32_t fill_percent;
	uint32_t per_chunk;
	uint32_t units;

	GPU_FN BtreeRef ref(uint64_t leaf) const
	{
		return chunks[leaf / per_chunk - first / per_chunk] * GPU_CHUNK_UNITS +
			   (uint32_t) (leaf % per_chunk) * units;
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
gpu_load_full_leaves(const GpuLoad *load, uint64_t total)
{
	uint64_t leaves = total * 100 / (BTREE_FANOUT * load->fill_percent);

	while (btree_fill_start(leaves + 1, load->fill_percent) <= total)
		leaves++;
	while (btree_fill_start(leaves, load->fill_percent) > total)
		leaves--;
	return leaves;
}

/* ... and with one for what is left over. */
static inline uint64_t
gpu_load_all_leaves(const GpuLoad *load, uint64_t total)
{
	uint64_t leaves = gpu_load_full_leaves(load, total);

	return btree_fill_start(leaves, load->fill_percent) < total ? leaves + 1 : leaves;
}

/* Leaves from number first on; chunks begin with its chunk. */
static inline GpuLeaves
gpu_load_leaves(const GpuTree *tree, const uint32_t *chunks, uint64_t first, uint64_t total)
{
	const GpuNodes *nodes = &tree->space.nodes[GPU_TREE_LEAVES];
	GpuLeaves leaves = { chunks,           first, total, tree->load.fill_percent, gpu_nodes_per_chunk(nodes),
						 nodes->node_units };

	return leaves;
}

/* Chunks for so many leaves in all; false: out of memory. */
static inline bool
gpu_load_reserve(GpuChange *c, GpuTree *tree, uint64_t leaves)
{
	GpuNodes *nodes = &tree->space.nodes[GPU_TREE_LEAVES];

	return gpu_nodes_extend(c, nodes, gpu_nodes_chunks(nodes, leaves));
}

/* Inner nodes above so many leaves; false: out of memory. */
static inline bool
gpu_load_reserve_inners(GpuChange *c, GpuTree *tree, uint64_t leaves)
{
	GpuDemand demand[GPU_TREE_KINDS] = {};

	demand[GPU_TREE_INNERS].take = (uint64_t) gpu_inner_nodes((int64_t) leaves);
	return gpu_space_reserve(c, &tree->space, demand);
}

/* Sends the numbers of the chunks of leaves, from chunk first on, to the device. */
static inline void
gpu_load_send_chunks(GpuChange *c, const GpuTree *tree, uint32_t *to, size_t first)
{
	const std::vector<uint32_t> &chunks = tree->space.nodes[GPU_TREE_LEAVES].chunks;
	size_t n = chunks.size() - first;

	if (n == 0)
		return;
	memcpy(c->host_chunks, &chunks[first], n * sizeof(uint32_t));
	gpu_copy_bus(&c->stream, to, c->host_chunks, n * sizeof(uint32_t));
}

/* Writes n leaves. */
template <typename Source>
static inline void
gpu_load_write(GpuChange *c, const GpuTree *tree, const GpuLeaves &leaves, uint64_t n, const Source &source)
{
	if (tree->nwords == 1)
	{
		GpuBuildLeaf<1, Source> build = { c->pool->base, leaves, source };

		gpu_launch(&c->stream, (int64_t) n * BTREE_FANOUT, build);
	}
	else
	{
		GpuBuildLeaf<2, Source> build = { c->pool->base, leaves, source };

		gpu_launch(&c->stream, (int64_t) n * BTREE_FANOUT, build);
	}
}

/*
 * Begins to load a tree, which must not be there.  GPU_NO_MEMORY: it is still not.
 */
static inline GpuStatus
gpu_tree_load_begin(GpuChange *c, GpuTree *tree, uint32_t nwords, uint32_t fill_percent)
{
	if (tree->nwords != 0)
		return GPU_WITHDRAWN;
	if (!gpu_tree_open(c, tree, nwords) ||
		!gpu_span_take(c->pool, &tree->load.carry, BTREE_FANOUT * sizeof(GpudsEntry)))
	{
		gpu_tree_close(c, tree);
		return GPU_NO_MEMORY;
	}
	tree->loading = true;
	tree->load.fill_percent = fill_percent;
	return gpu_change_status(c);
}

/*
 * Adds n entries, which are in host memory that the device can use; all entries
 * of a load are strictly ascending.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing was added.
 */
static inline GpuStatus
gpu_tree_load_add(GpuChange *c, GpuTree *tree, const GpudsEntry *entries, int64_t n)
{
	GpuLoad *load = &tree->load;
	uint64_t total = load->entries + (uint64_t) n;
	uint64_t first = load->leaves;
	uint64_t ncarry = load->entries - btree_fill_start(first, load->fill_percent);
	size_t bytes = (size_t) n * sizeof(GpudsEntry);
	GpuNodes *nodes = &tree->space.nodes[GPU_TREE_LEAVES];
	uint64_t leaves;
	uint64_t left;
	size_t chunk;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	if (total > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	leaves = gpu_load_full_leaves(load, total);
	left = total - btree_fill_start(leaves, load->fill_percent);
	chunk = (size_t) first / gpu_nodes_per_chunk(nodes);
	if (!gpu_load_reserve(c, tree, leaves))
		return GPU_NO_MEMORY;
	bytes += (nodes->chunks.size() - chunk) * sizeof(uint32_t);
	if (bytes > gpu_span_bytes(&load->input))
	{
		gpu_span_give(c->pool, &load->input);
		if (!gpu_span_take(c->pool, &load->input, bytes))
			return GPU_NO_MEMORY;
	}

	GpudsEntry *input = (GpudsEntry *) load->input.at;
	uint32_t *chunks = (uint32_t *) (input + n);
	GpudsEntry *carry = (GpudsEntry *) load->carry.at;
	GpuSource source = { carry, ncarry, input };

	gpu_load_send_chunks(c, tree, chunks, chunk);
	gpu_copy_bus(&c->stream, input, entries, (size_t) n * sizeof(GpudsEntry));
	gpu_load_write(c, tree, gpu_load_leaves(tree, chunks, first, total), leaves - first, source);
	if (leaves == first)
		gpu_copy(&c->stream, carry + ncarry, input, (size_t) n * sizeof(GpudsEntry));
	else
		gpu_copy(&c->stream, carry, input + ((uint64_t) n - left), left * sizeof(GpudsEntry));
	gpu_finish(&c->stream);
	load->entries = total;
	load->leaves = leaves;
	return gpu_change_status(c);
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
	size_t nchunks = tree->space.nodes[GPU_TREE_LEAVES].chunks.size();

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
	{
		GpuListLeaf<1> list = { c->pool->base, leaves, end->levels[0] };

		gpu_launch(&c->stream, n, list);
	}
	else
	{
		GpuListLeaf<2> list = { c->pool->base, leaves, end->levels[0] };

		gpu_launch(&c->stream, n, list);
	}
	gpu_build_inner(c, tree, end->levels, end->height);
	gpu_nodes_filled(c, &tree->space.nodes[GPU_TREE_LEAVES], n);
	gpu_finish(&c->stream);
	tree->root = gpu_tree_report(c)->root;
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
gpu_tree_load_end(GpuChange *c, GpuTree *tree)
{
	GpuLoad *load = &tree->load;
	uint64_t total = load->entries;
	uint64_t leaves;
	uint64_t ncarry;
	GpuSpan span;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	leaves = gpu_load_all_leaves(load, total);
	ncarry = total - btree_fill_start(load->leaves, load->fill_percent);
	gpu_span_give(c->pool, &load->input);
	if (leaves > 0)
	{
		GpuSource source = { (const GpudsEntry *) load->carry.at, ncarry, NULL };
		GpuLoadEnd end;

		if (!gpu_load_end_take(c, tree, leaves, &end, &span))
			return GPU_NO_MEMORY;
		if (ncarry > 0)
		{
			const GpuNodes *nodes = &tree->space.nodes[GPU_TREE_LEAVES];
			size_t chunk = (size_t) load->leaves / gpu_nodes_per_chunk(nodes);

			gpu_load_write(c, tree, gpu_load_leaves(tree, end.chunks + chunk, load->leaves, total), 1,
						   source);
		}
		gpu_load_finish(c, tree, &end, gpu_load_leaves(tree, end.chunks, 0, total));
		gpu_span_give(c->pool, &span);
	}
	if (!gpu_change_ok(c))
		return gpu_change_status(c);
	gpu_load_publish(c, tree);
	return GPU_OK;
}

#endif /* BTREE_BUILD_GPU_H */
