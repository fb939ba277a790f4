/*-------------------------------------------------------------------------
 *
 * tree.h
 *	  Trees in device memory as the host sees them, and their memory.
 *
 * A tree's memory: chunks of leaves, chunks of inner nodes, and per kind of node
 * two arrays of refs: nodes that are free, a stack, and nodes that versions have
 * replaced, oldest version first.  Chunks go back to the pool when the tree is
 * dropped.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_TREE_GPU_H
#define BTREE_TREE_GPU_H

#include <sched.h>

#include "kernels/gpu/pool.h"
#include "kernels/gpu/primitives.h"
#include "kernels/btree/apply_steps.h"

/* Refs that an array holds before it needs a run of its own. */
#define GPU_FEW_REFS ((uint32_t) (GPU_CHUNK_BYTES / sizeof(BtreeRef) / 4))

/* What the device finds out about a batch of operations. */
struct GpuShape
{
	uint64_t varying[4]; /* bits of w0, w1, t, order that are not the same in all */
	uint32_t unsorted;   /* entries are not strictly ascending */
	uint32_t disordered; /* order is not ascending */
	uint32_t long_tie;   /* sorted by w0: more are equal than can be put in order at once */
};

/* ... and what the batch takes. */
struct GpuTotals
{
	uint64_t sum;   /* inserted << 32 | deleted */
	uint64_t taken; /* new leaves << 32 | leaves replaced */
	uint32_t gone;  /* leaves replaced by none */
};

/* What a check has found. */
struct GpuFinding
{
	uint32_t faults;
	uint32_t fault; /* the first: BtreeFault ... */
	BtreeRef ref;   /* ... of this node */
};

/* Host memory that the device can use. */
struct GpuPage
{
	GpuShape shape;
	GpuTotals totals;
	BtreeCounts counts;
	GpuFinding finding;
	uint32_t done; /* a small batch is done */
	BtreeRef root;
	uint32_t chunks[GPU_MAX_CHUNKS];
};

/* What the thread that changes trees has. */
struct GpuChange
{
	GpuStream stream;
	GpuPool *pool;
	GpuPage *page;        /* as the host sees it */
	GpuPage *device_page; /* ... and the device */
	uint32_t *chunks;     /* device memory for as many as the page has */
	unsigned char *small; /* ... and for small batches */
	size_t small_bytes;
};

/* Refs in device memory. */
struct GpuRefs
{
	BtreeRef *at = NULL;
	uint32_t capacity = 0;
	GpuSpan run; /* if it is not in the tree's first chunk */
};

/* The nodes of one kind. */
struct GpuNodes
{
	uint32_t units = 0;
	std::vector<uint32_t> chunks;
	uint32_t live = 0; /* in the current version */
	GpuRefs free;
	uint32_t nfree = 0;
	GpuRefs retired; /* from number retired_from to retired_to - 1 */
	uint32_t retired_from = 0;
	uint32_t retired_to = 0;
};

/* Where the nodes end that a version has replaced. */
struct GpuRetired
{
	uint64_t version;
	uint32_t leaves;
	uint32_t inners;
};

/* A load under way. */
struct GpuLoad
{
	uint32_t fill_percent = 0;
	uint64_t entries = 0;         /* added */
	uint64_t leaves = 0;          /* complete */
	std::vector<uint32_t> chunks; /* of leaves, in order */
	GpuSpan carry;                /* entries that do not make a leaf yet */
	GpuSpan piece;                /* entries copied from the host, and the chunks they go to */
};

struct GpuTree
{
	/* What readers look at: sequence is odd while it changes. */
	std::atomic<uint64_t> sequence{ 0 };
	std::atomic<uint64_t> head{ 0 };
	std::atomic<uint64_t> entries{ 0 };
	uint64_t version = 0; /* atomic, for pin_version; only ever rises */

	uint32_t nwords = 0; /* 0: there is no tree */
	bool loading = false;
	int height = 0;
	BtreeRef root = 0;
	uint32_t level_n[BTREE_MAX_HEIGHT] = {}; /* nodes of each level */
	GpuNodes leaves;
	GpuNodes inners;
	GpuSpan first; /* chunk that small arrays of refs share */
	std::vector<GpuRetired> retired;
	GpuLoad load;
};

static_assert(GPU_MAX_ENTRIES == BTREE_MAX_ENTRIES - 1, "what a tree can have is what engine.h says");

/* bit 63: there is a tree; bits 47..40 key words, 39..32 height, 31..0 root. */
#define GPU_HEAD_VALID (UINT64_C(1) << 63)

/*
 * The changing thread.
 */

static inline void
gpu_change_close(GpuChange *c)
{
	gpu_host_free(c->page);
	gpu_free(c->chunks, sizeof(c->page->chunks));
	gpu_free(c->small, c->small_bytes);
	gpu_stream_close(&c->stream);
	c->page = NULL;
	c->chunks = NULL;
	c->small = NULL;
}

static inline bool
gpu_change_ok(const GpuChange *c)
{
	return gpu_ok(&c->stream);
}

/* What a call returns when it is at its end. */
static inline GpuStatus
gpu_change_status(GpuChange *c)
{
	return (GpuStatus) c->stream.status;
}

/*
 * What readers see.
 */

/* What a reader pins, with pin_version and a number of the tree's as owner. */
static inline const uint64_t *
gpu_tree_version(const GpuTree *tree)
{
	return &tree->version;
}

/* The current view; false: there is no tree. */
static inline bool
gpu_tree_view(const GpuTree *tree, const GpuPool *pool, BtreeView *view)
{
	uint64_t sequence;
	uint64_t head;

	do
	{
		while ((sequence = tree->sequence.load(std::memory_order_acquire)) & 1)
			sched_yield();
		head = tree->head.load(std::memory_order_relaxed);
		view->entries = tree->entries.load(std::memory_order_relaxed);
		std::atomic_thread_fence(std::memory_order_acquire);
	} while (tree->sequence.load(std::memory_order_relaxed) != sequence);
	view->base = pool->base;
	view->root = (BtreeRef) head;
	view->height = (int) (head >> 32 & 0xFF);
	view->nwords = (int) (head >> 40 & 0xFF);
	return (head & GPU_HEAD_VALID) != 0;
}

static inline void
gpu_tree_set_head(GpuTree *tree, uint64_t head, uint64_t entries)
{
	uint64_t sequence = tree->sequence.load(std::memory_order_relaxed);

	tree->sequence.store(sequence + 1, std::memory_order_relaxed);
	std::atomic_thread_fence(std::memory_order_release);
	tree->head.store(head, std::memory_order_relaxed);
	tree->entries.store(entries, std::memory_order_relaxed);
	tree->sequence.store(sequence + 2, std::memory_order_release);
	/* whoever pins has either seen this or is seen: see pins.h */
	__atomic_store_n(&tree->version, tree->version + 1, __ATOMIC_SEQ_CST);
}

/* Show readers the tree's new root. */
static inline void
gpu_tree_publish(GpuTree *tree, uint64_t entries)
{
	gpu_tree_set_head(tree,
					  GPU_HEAD_VALID | (uint64_t) tree->nwords << 40 | (uint64_t) tree->height << 32 |
						  tree->root,
					  entries);
}

/* Device memory that a tree holds. */
static inline uint64_t
gpu_tree_bytes(const GpuTree *tree)
{
	uint64_t bytes = (tree->leaves.chunks.size() + tree->inners.chunks.size()) * GPU_CHUNK_BYTES;

	bytes += tree->load.chunks.size() * GPU_CHUNK_BYTES;
	bytes += gpu_span_bytes(&tree->first);
	bytes += gpu_span_bytes(&tree->leaves.free.run) + gpu_span_bytes(&tree->leaves.retired.run);
	bytes += gpu_span_bytes(&tree->inners.free.run) + gpu_span_bytes(&tree->inners.retired.run);
	bytes += gpu_span_bytes(&tree->load.carry) + gpu_span_bytes(&tree->load.piece);
	return bytes;
}

/*
 * Working memory: the function that hands it out is called twice, first with
 * at NULL to learn how much it is.
 */
struct GpuScratch
{
	unsigned char *at;
	size_t used;
};

template <typename T>
GPU_FN T *
gpu_scratch(GpuScratch *scratch, int64_t n)
{
	size_t at = scratch->used;

	scratch->used += ((size_t) n * sizeof(T) + 15) / 16 * 16;
	return scratch->at ? (T *) (scratch->at + at) : NULL;
}

static inline void
gpu_scratch_list(GpuScratch *scratch, BtreeList *list, int64_t n, uint32_t nwords)
{
	list->n = n;
	list->w0 = gpu_scratch<uint64_t>(scratch, n);
	list->w1 = nwords == 2 ? gpu_scratch<uint64_t>(scratch, n) : NULL;
	list->t = gpu_scratch<uint64_t>(scratch, n);
	list->ref = gpu_scratch<BtreeRef>(scratch, n);
	list->before = gpu_scratch<uint32_t>(scratch, n + 1);
}

/* Working memory of a layout. */
static inline bool
gpu_scratch_take(GpuPool *pool, GpuSpan *run, GpuScratch *scratch)
{
	if (!gpu_span_take(pool, run, scratch->used))
		return false;
	scratch->at = (unsigned char *) run->at;
	scratch->used = 0;
	return true;
}

/* Memory for the stream's sorts and scans of up to n items. */
static inline void
gpu_scratch_temp(GpuScratch *scratch, GpuStream *s, int64_t n)
{
	if (s->temp_items != n)
		s->temp_bytes = gpu_temp_bytes(n);
	s->temp_items = n;
	s->temp = gpu_scratch<unsigned char>(scratch, (int64_t) s->temp_bytes);
}

/*
 * Nodes.
 */

/* Push the nodes of chunks, so that they are taken in ascending order. */
struct GpuPushChunks
{
	BtreeRef *at; /* where the stack ends */
	const uint32_t *chunks;
	uint32_t nchunks;
	uint32_t units;
	uint32_t per_chunk;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t n = nchunks * per_chunk;
		uint32_t node = n - 1 - (uint32_t) i;

		at[i] = chunks[node / per_chunk] * GPU_CHUNK_UNITS + node % per_chunk * units;
	}
};

static inline uint32_t
gpu_nodes_per_chunk(const GpuNodes *nodes)
{
	return GPU_CHUNK_UNITS / nodes->units;
}

static inline BtreeFree
gpu_nodes_free(const GpuNodes *nodes)
{
	BtreeFree free = { nodes->free.at, nodes->nfree };

	return free;
}

/* Make room for so many refs, of which from .. to - 1 are in use: they come to lie at the start. */
static inline bool
gpu_refs_grow(GpuChange *c, GpuRefs *refs, uint64_t need, uint32_t from, uint32_t to)
{
	GpuSpan run;

	if (need < 2 * (uint64_t) refs->capacity)
		need = 2 * (uint64_t) refs->capacity;
	if (!gpu_span_take(c->pool, &run, need * sizeof(BtreeRef)))
		return false;
	gpu_copy(&c->stream, run.at, refs->at + from, (size_t) (to - from) * sizeof(BtreeRef));
	gpu_finish(&c->stream);
	gpu_span_give(c->pool, &refs->run);
	refs->run = run;
	refs->at = (BtreeRef *) run.at;
	refs->capacity = (uint32_t) (gpu_span_bytes(&run) / sizeof(BtreeRef));
	return true;
}

/*
 * See to it that the arrays hold added more free nodes and retire more retired
 * ones; all retired ones must find room among the free ones one day.
 */
static inline bool
gpu_nodes_room(GpuChange *c, GpuNodes *nodes, uint64_t added, uint64_t retire)
{
	uint32_t retired = nodes->retired_to - nodes->retired_from;

	if (nodes->nfree + added + retired + retire > nodes->free.capacity &&
		!gpu_refs_grow(c, &nodes->free, nodes->nfree + added + retired + retire, 0, nodes->nfree))
		return false;
	if (nodes->retired_to + retire > nodes->retired.capacity)
	{
		if (!gpu_refs_grow(c, &nodes->retired, retired + retire, nodes->retired_from, nodes->retired_to))
			return false;
		nodes->retired_to = retired;
		nodes->retired_from = 0;
	}
	return true;
}

/* Chunks to take for so many free nodes. */
static inline uint32_t
gpu_nodes_missing(const GpuNodes *nodes, uint64_t need)
{
	uint64_t missing = need > nodes->nfree ? need - nodes->nfree : 0;

	return (uint32_t) ((missing + gpu_nodes_per_chunk(nodes) - 1) / gpu_nodes_per_chunk(nodes));
}

/* Push the last count nodes of n chunks that lie at place first of the page. */
static inline void
gpu_nodes_push(GpuChange *c, GpuNodes *nodes, uint32_t first, uint32_t n, uint32_t count)
{
	GpuPushChunks push = { nodes->free.at + nodes->nfree, c->chunks + first, n, nodes->units,
						   gpu_nodes_per_chunk(nodes) };

	gpu_copy_bus(&c->stream, c->chunks + first, c->page->chunks + first, n * sizeof(uint32_t));
	gpu_launch(&c->stream, count, push);
	nodes->nfree += count;
}

/* Where the ends of retired nodes are counted from has moved down. */
static inline void
gpu_tree_shift_retired(GpuTree *tree, uint32_t leaves, uint32_t inners)
{
	for (GpuRetired &r : tree->retired)
	{
		r.leaves -= leaves;
		r.inners -= inners;
	}
}

/*
 * See to it that so many nodes are free and so many more can be retired; false:
 * out of memory, and no chunk has been taken.
 */
static inline bool
gpu_tree_reserve(GpuChange *c, GpuTree *tree, uint64_t leaves, uint64_t inners, uint64_t retired_leaves,
				 uint64_t retired_inners)
{
	uint32_t nleaves = gpu_nodes_missing(&tree->leaves, leaves);
	uint32_t ninners = gpu_nodes_missing(&tree->inners, inners);
	uint32_t leaf_from = tree->leaves.retired_from;
	uint32_t inner_from = tree->inners.retired_from;
	uint32_t taken = 0;
	bool room;

	if ((uint64_t) nleaves + ninners >= c->pool->nchunks ||
		!gpu_pool_list(c->pool, &tree->leaves.chunks, nleaves) ||
		!gpu_pool_list(c->pool, &tree->inners.chunks, ninners))
		return false;
	/* an earlier launch may still be reading the page */
	if (nleaves + ninners > 0)
		gpu_finish(&c->stream);
	while (taken < nleaves + ninners && (c->page->chunks[taken] = gpu_pool_take(c->pool)) != 0)
		taken++;
	room = taken == nleaves + ninners &&
		   gpu_nodes_room(c, &tree->leaves, (uint64_t) nleaves * gpu_nodes_per_chunk(&tree->leaves),
						  retired_leaves) &&
		   gpu_nodes_room(c, &tree->inners, (uint64_t) ninners * gpu_nodes_per_chunk(&tree->inners),
						  retired_inners);
	gpu_tree_shift_retired(tree, leaf_from - tree->leaves.retired_from,
						   inner_from - tree->inners.retired_from);
	if (!room)
	{
		while (taken > 0)
			gpu_pool_give(c->pool, c->page->chunks[--taken], 1);
		return false;
	}
	tree->leaves.chunks.insert(tree->leaves.chunks.end(), c->page->chunks, c->page->chunks + nleaves);
	tree->inners.chunks.insert(tree->inners.chunks.end(), c->page->chunks + nleaves, c->page->chunks + taken);
	gpu_nodes_push(c, &tree->leaves, 0, nleaves, nleaves * gpu_nodes_per_chunk(&tree->leaves));
	gpu_nodes_push(c, &tree->inners, nleaves, ninners, ninners * gpu_nodes_per_chunk(&tree->inners));
	return true;
}

/* Give all memory back; the version stays. */
static inline void
gpu_tree_release(GpuChange *c, GpuTree *tree)
{
	gpu_finish(&c->stream);
	for (uint32_t chunk : tree->leaves.chunks)
		gpu_pool_give(c->pool, chunk, 1);
	for (uint32_t chunk : tree->inners.chunks)
		gpu_pool_give(c->pool, chunk, 1);
	for (uint32_t chunk : tree->load.chunks)
		gpu_pool_give(c->pool, chunk, 1);
	gpu_span_give(c->pool, &tree->first);
	gpu_span_give(c->pool, &tree->leaves.free.run);
	gpu_span_give(c->pool, &tree->leaves.retired.run);
	gpu_span_give(c->pool, &tree->inners.free.run);
	gpu_span_give(c->pool, &tree->inners.retired.run);
	gpu_span_give(c->pool, &tree->load.carry);
	gpu_span_give(c->pool, &tree->load.piece);
	tree->retired.clear();
	tree->leaves = GpuNodes();
	tree->inners = GpuNodes();
	tree->load = GpuLoad();
	tree->nwords = 0;
	tree->loading = false;
	tree->height = 0;
	tree->root = 0;
	memset(tree->level_n, 0, sizeof(tree->level_n));
}

/* An empty tree's memory. */
static inline bool
gpu_tree_init(GpuChange *c, GpuTree *tree, uint32_t nwords)
{
	GpuRefs *refs[] = { &tree->leaves.free, &tree->leaves.retired, &tree->inners.free,
						&tree->inners.retired };

	if (!gpu_span_take(c->pool, &tree->first, GPU_CHUNK_BYTES))
		return false;
	for (uint32_t i = 0; i < 4; i++)
	{
		refs[i]->at = (BtreeRef *) tree->first.at + i * GPU_FEW_REFS;
		refs[i]->capacity = GPU_FEW_REFS;
	}
	tree->nwords = nwords;
	tree->leaves.units = (uint32_t) btree_leaf_units((int) nwords);
	tree->inners.units = (uint32_t) btree_inner_units();
	return true;
}

#endif /* BTREE_TREE_GPU_H */
