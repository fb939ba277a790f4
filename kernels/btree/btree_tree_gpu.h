/*-------------------------------------------------------------------------
 *
 * btree_tree_gpu.h
 *	  A B+tree in device memory as the host sees it.
 *
 * It is a GpuTree (kernels/runtime/gpu_versioned.h) with two kinds of nodes: leaves and inner
 * nodes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_TREE_GPU_H
#define BTREE_TREE_GPU_H

#include "kernels/runtime/gpu_versioned.h"
#include "kernels/btree/btree_apply_steps.h"

static_assert(GPU_UNIT_BYTES == BTREE_UNIT_BYTES && sizeof(GpuRef) == sizeof(BtreeRef),
			  "refs are the pool's");
static_assert(GPU_MAX_ENTRIES == BTREE_MAX_ENTRIES - 1, "what a tree can have is what engine.h says");
static_assert(BTREE_MAX_HEIGHT <= GPU_TREE_LEVELS, "all levels are counted");

/* The kinds of nodes of a tree's space. */
enum GpuBtreeKind
{
	GPU_BTREE_LEAVES,
	GPU_BTREE_INNERS,
	GPU_BTREE_KINDS
};

/* What a sorted batch takes. */
struct GpuTotals
{
	uint64_t sum;   /* inserted << 32 | deleted */
	uint64_t taken; /* new leaves << 32 | leaves replaced */
	uint32_t gone;  /* leaves replaced by none */
};

/* What the device reports about a tree. */
struct GpuBtreeReport : GpuReport
{
	GpuTotals totals;
	BtreeCounts counts;
	BtreeRef root; /* of a load */
};

/* The report, as the host sees it. */
static inline GpuBtreeReport *
gpu_btree_report(const GpuChange *c)
{
	return (GpuBtreeReport *) c->report;
}

/* The nodes of a kind that can be taken. */
static inline BtreeFree
gpu_btree_free(const GpuTree *tree, GpuBtreeKind kind)
{
	const GpuNodes *nodes = &tree->space.nodes[kind];
	BtreeFree free = { nodes->free.at, nodes->nfree };

	return free;
}

/* Units of the nodes of each kind. */
struct GpuBtreeUnits
{
	uint32_t of[GPU_BTREE_KINDS];

	explicit GpuBtreeUnits(uint32_t nwords)
		: of{ (uint32_t) btree_leaf_units((int) nwords), (uint32_t) btree_inner_units() }
	{
	}
};

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
