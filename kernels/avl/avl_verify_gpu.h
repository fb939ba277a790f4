/*-------------------------------------------------------------------------
 *
 * avl_verify_gpu.h
 *	  Checking everything that an AVL tree in device memory promises.
 *
 * A thread a rank goes down to the entry of that rank and checks its node; so each node is checked by one
 * thread, if the counts lead there, which each checks of its own node.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_VERIFY_GPU_H
#define AVL_VERIFY_GPU_H

#include "kernels/avl/avl_build_gpu.h"
#include "kernels/runtime/gpu_verify.h"

enum GpuAvlFault
{
	GPU_AVL_BAD_ORDER = GPU_USED_TWICE + 1,
	GPU_AVL_BAD_ENTRY,
	GPU_AVL_BAD_COUNT,
	GPU_AVL_BAD_HEIGHT,
	GPU_AVL_BAD_BALANCE,
	GPU_AVL_BAD_VERSION
};

static inline const char *
gpu_avl_fault_words(uint32_t fault)
{
	switch (fault)
	{
		case GPU_AVL_BAD_ORDER:
			return "has an entry out of order";
		case GPU_AVL_BAD_ENTRY:
			return "has an entry that cannot be";
		case GPU_AVL_BAD_COUNT:
			return "counts its entries wrong";
		case GPU_AVL_BAD_HEIGHT:
			return "has a wrong height";
		case GPU_AVL_BAD_BALANCE:
			return "is not balanced";
		default:
			return "is newer than its tree";
	}
}

struct GpuAvlCheck
{
	const unsigned char *base;
	GpuRef root;
	uint32_t n;
	uint64_t version;
	uint32_t nwords;
	GpuOwned owned;
	GpuFinding *finding;

	/* The node's neighbours among those above it; NULL: it has none. */
	GPU_FN uint32_t check_entry(const GpuAvlNode *node, const GpuAvlNode *low, const GpuAvlNode *high) const
	{
		if (node->e.t == UINT64_MAX || (nwords == 1 && node->e.w1 != 0))
			return GPU_AVL_BAD_ENTRY;
		if ((low && !entry_less(&low->e, &node->e)) || (high && !entry_less(&node->e, &high->e)))
			return GPU_AVL_BAD_ORDER;
		return GPU_SOUND;
	}

	/* What a node says of the tree below. */
	GPU_FN uint32_t check_below(const GpuAvlNode *node) const
	{
		uint32_t height[2];
		uint32_t n[2];

		for (int side = 0; side < 2; side++)
		{
			GpuRef child = node->child[side];

			if (child != 0 && owned.node(child) < 0)
				return GPU_BAD_REF;
			height[side] = gpu_avl_height(base, child);
			n[side] = gpu_avl_n(base, child);
		}
		if (node->before != n[0] || node->n != (uint64_t) n[0] + 1 + n[1])
			return GPU_AVL_BAD_COUNT;
		if (node->height != 1 + (height[0] > height[1] ? height[0] : height[1]))
			return GPU_AVL_BAD_HEIGHT;
		if (height[0] > height[1] + 1 || height[1] > height[0] + 1)
			return GPU_AVL_BAD_BALANCE;
		if (node->version > version)
			return GPU_AVL_BAD_VERSION;
		return GPU_SOUND;
	}

	GPU_FN uint32_t check(const GpuAvlNode *node, int64_t number, const GpuAvlNode *low,
						  const GpuAvlNode *high) const
	{
		uint32_t fault = check_entry(node, low, high);

		if (fault == GPU_SOUND)
			fault = check_below(node);
		if (fault == GPU_SOUND && !owned.mark(number))
			fault = GPU_USED_TWICE;
		return fault;
	}

	GPU_FN void operator()(int64_t i) const
	{
		const GpuAvlNode *low = NULL;
		const GpuAvlNode *high = NULL;
		uint32_t rank = (uint32_t) i;
		GpuRef ref = root;

		if (i == 0 && owned.node(root) >= 0 && gpu_avl_n(base, root) != n)
			gpu_note_fault(finding, GPU_AVL_BAD_COUNT, root);
		for (int depth = 0;; depth++)
		{
			const int64_t number = depth < GPU_AVL_LEVELS ? owned.node(ref) : -1;
			const GpuAvlNode *node = gpu_avl_at(base, ref);
			const uint32_t was = rank;

			if (number < 0)
			{
				gpu_note_fault(finding, GPU_BAD_REF, ref);
				return;
			}
			if (!gpu_avl_select(node, &rank, &ref))
			{
				gpu_note_fault(finding, check(node, number, low, high), ref);
				return;
			}
			if (was < node->before)
				high = node;
			else
				low = node;
		}
	}
};

/*
 * Checks a tree's newest version and its memory.  GPU_DAMAGED: why says what is wrong.  Takes a bit a node of
 * working memory from the pool.
 */
static inline GpuStatus
gpu_avl_verify(GpuChange *c, const GpuTree *tree, char *why, size_t whylen)
{
	static const char *const kinds[] = { "nodes" };
	const uint32_t n = (uint32_t) tree->entries.load();
	GpuScratch scratch = { NULL, 0 };
	GpuVerify v;
	GpuSpan span;
	bool sound;

	snprintf(why, whylen, "%s", "");
	if (tree->nwords == 0 || tree->loading)
		return GPU_WITHDRAWN;
	gpu_verify_layout(&scratch, &v, c, tree);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_verify_layout(&scratch, &v, c, tree);
	gpu_verify_begin(c, &v, tree);
	gpu_launch(&c->stream, n,
			   GpuAvlCheck{ c->pool->base, tree->root, n, tree->version, tree->nwords, v.owned[0],
							v.finding });
	sound = gpu_verify_look(c, &v);
	if (sound && tree->space.nodes[0].nlive != n)
	{
		snprintf(why, whylen, "%u nodes are in use for %u entries", tree->space.nodes[0].nlive, n);
		sound = false;
	}
	sound = sound && gpu_verify_rest(c, tree, &v, kinds, why, whylen);
	return gpu_verify_end(c, &span, sound, "node at unit", gpu_avl_fault_words, why, whylen);
}

#endif /* AVL_VERIFY_GPU_H */
