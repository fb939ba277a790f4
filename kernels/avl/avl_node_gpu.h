/*-------------------------------------------------------------------------
 *
 * avl_node_gpu.h
 *	  A node of an AVL tree in device memory, and how a thread reads it.
 *
 * Each entry has a node of one unit of the pool.  Nodes do not change once a version that contains them is
 * published, so they know no parent and no neighbour, either of which may be another one in another version:
 * the order is that of the tree, and the way to the next entry leads over it.  In return nodes count their
 * entries, so the tree has ranks.
 *
 * What a search compares is in the first half of a node, which is what memory is read by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_NODE_GPU_H
#define AVL_NODE_GPU_H

#include "kernels/core/version.h"
#include "kernels/runtime/pool.h"

/* Levels of a tree, at most: one of 46 has more than GPU_MAX_ENTRIES; a join may have one more. */
#define GPU_AVL_LEVELS 48

enum GpuAvlSide
{
	GPU_AVL_LEFT,
	GPU_AVL_RIGHT
};

struct alignas(GPU_UNIT_BYTES) GpuAvlNode
{
	GpudsEntry e;
	GpuRef child[2];  /* 0: there is none */
	uint32_t before;  /* entries below the left child */
	uint32_t n;       /* entries of the tree below, with the node's */
	uint32_t height;  /* of that tree: a leaf's is 1 */
	uint64_t version; /* that it was made for */
};

static_assert(sizeof(GpuAvlNode) == GPU_UNIT_BYTES, "a node takes a unit");

GPU_FN GpuAvlNode *
gpu_avl_at(const unsigned char *base, GpuRef ref)
{
	return (GpuAvlNode *) (base + (size_t) ref * GPU_UNIT_BYTES);
}

GPU_FN uint32_t
gpu_avl_n(const unsigned char *base, GpuRef ref)
{
	return ref != 0 ? gpu_avl_at(base, ref)->n : 0;
}

GPU_FN uint32_t
gpu_avl_height(const unsigned char *base, GpuRef ref)
{
	return ref != 0 ? gpu_avl_at(base, ref)->height : 0;
}

/* Where x is, seen from a node: on which side of it; false: it is the node's entry. */
GPU_FN bool
gpu_avl_side(const GpuAvlNode *node, const GpudsEntry *x, int *side)
{
	*side = entry_less(&node->e, x) ? GPU_AVL_RIGHT : GPU_AVL_LEFT;
	return *side == GPU_AVL_RIGHT || entry_less(x, &node->e);
}

/* A step towards the entry of a rank below a node; false: it is the node's.  *rank: below the next node. */
GPU_FN bool
gpu_avl_select(const GpuAvlNode *node, uint32_t *rank, GpuRef *ref)
{
	if (*rank == node->before)
		return false;
	*ref = node->child[*rank < node->before ? GPU_AVL_LEFT : GPU_AVL_RIGHT];
	if (*rank > node->before)
		*rank -= node->before + 1;
	return true;
}

/*
 * A tree of n entries as it is when made at once: the left of two halves has the odd one.
 */

/* Of entries from .. from + n - 1, the number of the one at the root. */
GPU_FN uint64_t
gpu_avl_middle(uint64_t from, uint64_t n)
{
	return from + n / 2;
}

/* The entries *from .. *from + *n - 1 of such a tree's that are below entry number i, with it. */
GPU_FN void
gpu_avl_below(uint64_t i, uint64_t *from, uint64_t *n)
{
	for (uint64_t middle = gpu_avl_middle(*from, *n); middle != i; middle = gpu_avl_middle(*from, *n))
	{
		if (i < middle)
			*n /= 2;
		else
		{
			*n -= *n / 2 + 1;
			*from = middle + 1;
		}
	}
}

/*
 * Sets everything but the entry of the node that is number i of the entries from .. from + n - 1.  Refs has a
 * function ref, which returns where a number's node is.
 */
template <typename Refs>
GPU_FN void
gpu_avl_shape(GpuAvlNode *node, uint64_t i, uint64_t from, uint64_t n, uint64_t version, const Refs &refs)
{
	gpu_avl_below(i, &from, &n);

	const uint64_t left = n / 2;
	const uint64_t right = n - left - 1;

	node->child[GPU_AVL_LEFT] = left > 0 ? refs.ref(gpu_avl_middle(from, left)) : 0;
	node->child[GPU_AVL_RIGHT] = right > 0 ? refs.ref(gpu_avl_middle(i + 1, right)) : 0;
	node->before = (uint32_t) left;
	node->n = (uint32_t) n;
	node->height = 0;
	for (; n > 0; n /= 2)
		node->height++;
	node->version = version;
}

#endif /* AVL_NODE_GPU_H */
