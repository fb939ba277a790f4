/*-------------------------------------------------------------------------
 *
 * btree_tree_gpu.h
 *	  A tree in device memory as the host sees it, and its life: open, publish,
 *	  reclaim, withdraw, drop.
 *
 * The nodes are in a space (kernels/runtime/space.h) with two kinds: leaves and inner
 * nodes.  A tree that was built anew (btree_compact_gpu.h) also keeps the space before
 * it as long as versions in that are pinned.
 *
 * One thread changes a tree.  Readers are beside it: they pin the version
 * (kernels/core/pins.h), take the view, and may use what it shows until they give
 * up the pin.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_TREE_GPU_H
#define BTREE_TREE_GPU_H

#include <sched.h>

#include "kernels/runtime/batch_sort.h"
#include "kernels/runtime/space.h"
#include "kernels/btree/btree_apply_steps.h"

static_assert(GPU_UNIT_BYTES == BTREE_UNIT_BYTES && sizeof(GpuRef) == sizeof(BtreeRef),
			  "refs are the pool's");
static_assert(GPU_MAX_ENTRIES == BTREE_MAX_ENTRIES - 1, "what a tree can have is what engine.h says");

/* The kinds of nodes of a tree's space. */
enum GpuTreeKind
{
	GPU_TREE_LEAVES,
	GPU_TREE_INNERS,
	GPU_TREE_KINDS
};

/* What a sorted batch takes. */
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

/* What the device reports about a tree (GpuChange). */
struct GpuTreeReport
{
	GpuShape shape;
	GpuTotals totals;
	BtreeCounts counts;
	GpuFinding finding;
	uint32_t done; /* a small batch is done */
	BtreeRef root; /* of a load */
};

/* A load under way. */
struct GpuLoad
{
	uint32_t fill_percent = 0;
	uint64_t entries = 0; /* added */
	uint64_t leaves = 0;  /* complete */
	GpuSpan carry;        /* entries that do not make a leaf yet */
	GpuSpan input;        /* entries that are added, copied from the host, and the chunks they go to */
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
	GpuSpace space;
	GpuSpace replaced;         /* the space of versions before replaced_by; closed: there is none */
	uint64_t replaced_by = 0;  /* version */
	uint64_t compact_rest = 0; /* operations to apply before gpu_tree_compact tries again */
	GpuLoad load;
};

/* bit 63: there is a tree; bits 47..40 key words, 39..32 height, 31..0 root. */
#define GPU_HEAD_VALID (UINT64_C(1) << 63)

/* The report, as the host sees it. */
static inline GpuTreeReport *
gpu_tree_report(const GpuChange *c)
{
	return (GpuTreeReport *) c->report;
}

/* The nodes of a kind that can be taken. */
static inline BtreeFree
gpu_tree_free(const GpuTree *tree, GpuTreeKind kind)
{
	const GpuNodes *nodes = &tree->space.nodes[kind];
	BtreeFree free = { nodes->free.at, nodes->nfree };

	return free;
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
	/* a reader that pins has either seen this or is seen: see pins.h */
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
	return gpu_space_bytes(&tree->space) + gpu_space_bytes(&tree->replaced) +
		   gpu_span_bytes(&tree->load.carry) + gpu_span_bytes(&tree->load.input);
}

/*
 * Its life.
 */

/* Gives all memory back; the version stays. */
static inline void
gpu_tree_close(GpuChange *c, GpuTree *tree)
{
	gpu_space_close(c, &tree->space);
	gpu_space_close(c, &tree->replaced);
	tree->compact_rest = 0;
	gpu_span_give(c->pool, &tree->load.carry);
	gpu_span_give(c->pool, &tree->load.input);
	tree->load = GpuLoad();
	tree->nwords = 0;
	tree->loading = false;
	tree->height = 0;
	tree->root = 0;
	memset(tree->level_n, 0, sizeof(tree->level_n));
}

/* An empty tree's memory, which gpu_tree_close gives back; false: there is none. */
static inline bool
gpu_tree_open(GpuChange *c, GpuTree *tree, uint32_t nwords)
{
	const uint32_t node_units[GPU_TREE_KINDS] = { (uint32_t) btree_leaf_units((int) nwords),
												  (uint32_t) btree_inner_units() };

	if (!gpu_space_open(c, &tree->space, GPU_TREE_KINDS, node_units))
		return false;
	tree->nwords = nwords;
	return true;
}

/* So many operations fewer are to be applied. */
static inline void
gpu_rest(uint64_t *rest, uint64_t operations)
{
	*rest -= operations < *rest ? operations : *rest;
}

/*
 * Uses the nodes again that versions up to oldest have replaced, and gives the space back
 * that one of them has.  UINT64_MAX: no version is pinned.
 */
static inline void
gpu_tree_reclaim(GpuChange *c, GpuTree *tree, uint64_t oldest)
{
	gpu_space_reclaim(c, &tree->space, oldest);
	if (tree->replaced.nkinds > 0 && tree->replaced_by <= oldest)
		gpu_space_close(c, &tree->replaced);
}

/* Readers find no tree any more; those that pinned it go on. */
static inline void
gpu_tree_withdraw(GpuTree *tree)
{
	gpu_tree_set_head(tree, 0, 0);
}

/* Gives all memory of a tree back that was withdrawn or is being loaded, and that no reader pins. */
static inline GpuStatus
gpu_tree_drop(GpuChange *c, GpuTree *tree)
{
	gpu_tree_close(c, tree);
	return gpu_change_status(c);
}

/*
 * Working memory.
 */

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

#endif /* BTREE_TREE_GPU_H */
