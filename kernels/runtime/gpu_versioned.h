/*-------------------------------------------------------------------------
 *
 * gpu_versioned.h
 *	  A tree in device memory: what all structures have in common on a GPU, and its life.
 *
 * A tree has a space (space.h), what readers look at, and the space of versions from before it was built
 * anew.  Its life: load, publish, view, reclaim, withdraw, close.  What the nodes are, and what root and
 * height mean, is the structure's affair.
 *
 * Invariants:
 *
 *	  - One thread changes a tree, with its GpuChange.  Readers are beside it: they pin the version (pins.h),
 *		take the view, and may use what it shows until they give up the pin.
 *	  - What readers look at changes while sequence is odd.  The version rises after that, and never falls,
 *		over all loads and drops.
 *	  - A node that version v replaces is noted under v (gpu_space_note), and becomes free when no version
 *		before v is pinned.
 *	  - A tree has at most one space of older versions, and is not built anew before that has been closed.
 *	  - nwords is 0 where there is no tree; readers see none either, from the withdrawal on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_VERSIONED_H
#define GPU_VERSIONED_H

#include <sched.h>

#include <utility>

#include "kernels/runtime/batch_sort.h"
#include "kernels/runtime/gpu_structure.h"
#include "kernels/runtime/space.h"

/* Levels that are counted. */
#define GPU_TREE_LEVELS 32

/* If memory is short, a tree is built anew only after one operation for so many nodes, used or not. */
#define GPU_COMPACT_REST 8

/* What a check has found. */
struct GpuFinding
{
	uint32_t faults;
	uint32_t fault; /* the first (gpu_verify.h) ... */
	GpuRef ref;     /* ... of this node */
};

/* What the reports of all structures (GpuChange) begin with. */
struct GpuReport
{
	GpuShape shape;
	GpuFinding finding;
	uint32_t done; /* what is waited for by gpu_report_wait */
};

/* A load under way (gpu_load.h). */
struct GpuLoad
{
	uint32_t fill_percent = 0;
	uint64_t entries = 0; /* added */
	uint64_t nodes = 0;   /* of the first kind, complete */
	GpuSpan carry;        /* entries that do not make a node yet */
	GpuSpan input;        /* entries that are added, copied from the host, and the chunks they go to */
};

struct GpuTree
{
	/* What readers look at: sequence is odd while it changes. */
	std::atomic<uint64_t> sequence{ 0 };
	std::atomic<uint64_t> head{ 0 }; /* kernels/core/version.h */
	std::atomic<uint64_t> entries{ 0 };
	uint64_t version = 0; /* atomic, for pin_version; only ever rises */

	uint32_t nwords = 0; /* 0: there is no tree */
	bool loading = false;
	int height = 0;
	GpuRef root = 0;
	uint32_t level_n[GPU_TREE_LEVELS] = {}; /* nodes of each level */
	GpuSpace space;
	GpuSpace replaced;         /* the space of versions before replaced_by; closed: there is none */
	uint64_t replaced_by = 0;  /* version */
	uint64_t compact_rest = 0; /* operations to apply before it may be built anew again */
	GpuLoad load;
};

/* The report, as the host sees it. */
static inline GpuReport *
gpu_report(const GpuChange *c)
{
	return (GpuReport *) c->report;
}

/* Waits for the device to say in the report that it is done; it may also have failed. */
static inline void
gpu_report_wait(GpuChange *c)
{
	for (unsigned turn = 1; gpu_acquire_system(&gpu_report(c)->done) == 0; turn++)
	{
		if (turn % 4096 == 0 && gpu_finished(&c->stream) && gpu_acquire_system(&gpu_report(c)->done) == 0)
		{
			gpu_fail(&c->stream, "kernel", "no answer");
			return;
		}
	}
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
gpu_tree_view(const GpuTree *tree, const GpuPool *pool, GpudsView *view)
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
	view->serial = sequence;
	return head_view(head, view);
}

/*
 * Shows readers another head, and the number of entries with it, as a new version.  Only the tree's changer
 * calls it.
 */
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
	gpu_tree_set_head(tree, head_make(tree->nwords, tree->height, tree->root), entries);
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
 * Building it anew.
 */

/* So many operations fewer are to be applied. */
static inline void
gpu_rest(uint64_t *rest, uint64_t operations)
{
	*rest -= operations < *rest ? operations : *rest;
}

/*
 * May it be built anew?  Not while a pin keeps what was built anew before, nor soon after memory was short.
 */
static inline bool
gpu_tree_rested(const GpuTree *tree)
{
	return tree->compact_rest == 0 && tree->replaced.nkinds == 0;
}

/* Are less than 3 of 8 places used of so many nodes? */
static inline bool
gpu_nodes_thin(uint64_t things, uint64_t nodes, uint64_t places)
{
	return 8 * things < 3 * places * nodes;
}

/* The tree becomes what was built anew, and keeps its old space; the next version is to be published. */
static inline void
gpu_tree_replace(GpuTree *tree, GpuTree *anew)
{
	tree->replaced = std::move(tree->space);
	tree->space = std::move(anew->space);
	tree->height = anew->height;
	tree->root = anew->root;
	memcpy(tree->level_n, anew->level_n, sizeof(tree->level_n));
	/* a later version than all that have the old space */
	tree->replaced_by = tree->version + 1;
}

/*
 * The functions of a structure that are the same for all.  Tree is a GpuTree, or derived from it.
 */
template <typename Tree> struct GpuVersionedStructure : GpuStructure
{
	Tree tree;

	explicit GpuVersionedStructure(uint32_t structure) : GpuStructure(structure)
	{
	}

	const uint64_t *version() const override
	{
		return gpu_tree_version(&tree);
	}

	bool view(const GpuPool *from, GpudsView *view) const override
	{
		view->structure = number;
		return gpu_tree_view(&tree, from, view);
	}

	uint64_t bytes() const override
	{
		return gpu_tree_bytes(&tree);
	}

	void reclaim(GpuChange *c, uint64_t oldest) override
	{
		gpu_tree_reclaim(c, &tree, oldest);
	}

	void withdraw() override
	{
		gpu_tree_withdraw(&tree);
	}

	GpuStatus drop(GpuChange *c) override
	{
		return gpu_tree_drop(c, &tree);
	}
};

#endif /* GPU_VERSIONED_H */
