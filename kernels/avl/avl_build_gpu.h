/*-------------------------------------------------------------------------
 *
 * avl_build_gpu.h
 *	  Loading AVL trees into device memory, from sorted entries that are added in batches.
 *
 * Node i of a load has entry i.  Entries are written as they come; how many there are decides who is below
 * whom, so that follows when all are there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_BUILD_GPU_H
#define AVL_BUILD_GPU_H

#include "kernels/avl/avl_node_gpu.h"
#include "kernels/runtime/gpu_load.h"

/* What a batch of operations comes to (avl_change_gpu.h). */
struct GpuAvlTotals
{
	uint64_t effective; /* inserts << 32 | inserts and deletes that change something */
	uint64_t tasks;     /* nodes above them, which are replaced */
	uint32_t spare;     /* nodes that were asked for beside one for each insert and task */
	uint32_t retired;   /* nodes that were replaced, or not needed, beside one for each task */
	GpuRef root;        /* of the new version */
	uint32_t height;
};

/* What the device reports about a tree. */
struct GpuAvlReport : GpuReport
{
	GpuAvlTotals totals;
};

static inline GpuAvlReport *
gpu_avl_report(const GpuChange *c)
{
	return (GpuAvlReport *) c->report;
}

static inline GpuNodes *
gpu_avl_nodes(GpuTree *tree)
{
	return &tree->space.nodes[0];
}

/* Writes the entries of nodes from the first one of a batch on.  A source has entry<nw>(i). */
template <typename Source> struct GpuAvlLoadEntry
{
	unsigned char *base;
	GpuLoaded loaded;
	uint64_t first;
	Source source;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_avl_at(base, loaded.ref(first + (uint64_t) i))->e = source.template entry<2>((uint64_t) i);
	}
};

/* Writes all else. */
struct GpuAvlLoadShape
{
	unsigned char *base;
	GpuLoaded loaded;
	uint64_t n;
	uint64_t version;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_avl_shape(gpu_avl_at(base, loaded.ref((uint64_t) i)), (uint64_t) i, 0, n, version, loaded);
	}
};

template <typename Source>
static inline void
gpu_avl_load_write(GpuChange *c, const GpuLoaded &loaded, uint64_t n, const Source &source)
{
	gpu_launch(&c->stream, (int64_t) n,
			   GpuAvlLoadEntry<Source>{ c->pool->base, loaded, loaded.first, source });
}

/* As gpu_load_add wants to know it. */
struct GpuAvlLayout
{
	static uint64_t start(uint64_t node, uint32_t)
	{
		return node;
	}

	static uint64_t full(uint64_t total, uint32_t)
	{
		return total;
	}

	static void write(GpuChange *c, const GpuTree *, const GpuLoaded &loaded, uint64_t n, uint64_t,
					  const GpuSource &source)
	{
		gpu_avl_load_write(c, loaded, n, source);
	}
};

/* Begins to load a tree, which must not be there.  GPU_NO_MEMORY: it is still not. */
static inline GpuStatus
gpu_avl_load_begin(GpuChange *c, GpuTree *tree, uint32_t nwords, uint32_t fill_percent)
{
	const uint32_t units = 1;

	return gpu_load_begin(c, tree, 1, &units, 1, nwords, fill_percent);
}

/*
 * Makes a tree, the next version, of n nodes that have their entries and are the first ones of the tree's
 * chunks, the numbers of which are in device_chunks.
 */
static inline void
gpu_avl_load_shape(GpuChange *c, GpuTree *tree, uint64_t n)
{
	const GpuLoaded loaded(tree, c->device_chunks, 0);
	const uint64_t root = gpu_avl_middle(0, n);
	const GpuNodes *nodes = gpu_avl_nodes(tree);
	const uint32_t per_chunk = gpu_nodes_per_chunk(nodes);

	gpu_launch(&c->stream, (int64_t) n, GpuAvlLoadShape{ c->pool->base, loaded, n, tree->version + 1 });
	tree->root = nodes->chunks[root / per_chunk] * GPU_CHUNK_UNITS + (uint32_t) (root % per_chunk);
	tree->height = 64 - __builtin_clzll(n);
}

/* All entries are there: publishes the tree. */
static inline GpuStatus
gpu_avl_load_end(GpuChange *c, GpuTree *tree)
{
	const uint64_t n = tree->load.entries;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	(void) gpu_load_rest<GpuAvlLayout>(c, tree);
	if (n > 0)
	{
		/* leaves the numbers of all chunks in device_chunks */
		gpu_nodes_filled(c, gpu_avl_nodes(tree), (uint32_t) n);
		gpu_avl_load_shape(c, tree, n);
	}
	if (!gpu_finish(&c->stream))
		return gpu_change_status(c);
	gpu_span_give(c->pool, &tree->load.carry);
	tree->loading = false;
	gpu_tree_publish(tree, n);
	return gpu_change_status(c);
}

#endif /* AVL_BUILD_GPU_H */
