/*-------------------------------------------------------------------------
 *
 * btree_build.h
 *	  Levels as lists of nodes, and making the inner level above a list.
 *
 * The functions that make nodes make one place of one node, so that neighbouring
 * threads of a GPU write neighbouring words; a CPU makes a node at a time
 * (btree_build_cpu.h).  n things are spread over k nodes evenly: node i begins with thing
 * i * n / k.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_BUILD_H
#define BTREE_BUILD_H

#include "kernels/btree/btree_node.h"

/*
 * The nodes of a level, from left to right, as arrays.  Node i holds the
 * entries numbered before[i] .. before[i + 1] - 1 (before has n + 1 elements),
 * and its separator is (w0, w1, t)[i]; that of node 0 may be anything.
 */
typedef struct BtreeList
{
	uint64_t *w0;
	uint64_t *w1; /* trees of two key words only */
	uint64_t *t;
	BtreeRef *ref;
	uint32_t *before;
	int64_t n;
} BtreeList;

/* Unused nodes of one kind: a stack of refs. */
typedef struct BtreeFree
{
	const BtreeRef *at;
	uint32_t n;
} BtreeFree;

KERNEL_INLINE GpudsEntry
btree_list_separator(const BtreeList *list, int64_t i, const int nw)
{
	GpudsEntry e;

	e.w0 = list->w0[i];
	e.w1 = nw == 2 ? list->w1[i] : 0;
	e.t = list->t[i];
	return e;
}

KERNEL_INLINE void
btree_list_set_separator(const BtreeList *list, int64_t i, const GpudsEntry *e, const int nw)
{
	list->w0[i] = e->w0;
	if (nw == 2)
		list->w1[i] = e->w1;
	list->t[i] = e->t;
}

/* The node taken as number i, counting from 0, from a stack. */
KERNEL_INLINE BtreeRef
btree_free_take(const BtreeFree *free, uint32_t i)
{
	return free->at[free->n - 1 - i];
}

/* First of n things that node i of k gets. */
KERNEL_INLINE int64_t
btree_spread(int64_t i, int64_t n, int64_t k)
{
	uint64_t product = (uint64_t) i * (uint64_t) n;

	/* a short division is several times cheaper on a GPU */
	if (product >> 32 == 0)
		return (uint32_t) product / (uint32_t) k;
	return (int64_t) (product / (uint64_t) k);
}

/* First entry of leaf i of a load of so much fill. */
KERNEL_INLINE uint64_t
btree_fill_start(uint64_t i, uint32_t fill_percent)
{
	return i * BTREE_FANOUT * fill_percent / 100;
}

/* Nodes that n things take. */
KERNEL_INLINE int64_t
btree_nodes(int64_t n)
{
	return (n + BTREE_FANOUT - 1) / BTREE_FANOUT;
}

/*
 * Place p of node i of the k nodes above a list.  The node's memory is ref; what
 * its own parent has to know goes into parents.
 */
KERNEL_INLINE void
btree_build_inner(unsigned char *base, const BtreeList *children, const BtreeList *parents, int64_t i, int p,
				  BtreeRef ref, const int nw)
{
	uint64_t *node = btree_node(base, ref);
	int64_t first = btree_spread(i, children->n, parents->n);
	int n = (int) (btree_spread(i + 1, children->n, parents->n) - first);

	if (p < n)
	{
		GpudsEntry separator = btree_list_separator(children, first + p, nw);

		btree_inner_set(node, p, &separator, children->ref[first + p],
						children->before[first + p] - children->before[first], nw);
	}
	else
	{
		btree_inner_clear(node, p);
	}
	if (p == 0)
	{
		GpudsEntry separator = btree_list_separator(children, first, nw);
		unsigned details = 0;

		for (int j = 1; j < n; j++)
		{
			if (((nw == 2 ? children->w1[first + j] : 0) | children->t[first + j]) != 0)
				details |= 1u << j;
		}
		btree_inner_set_header(node, n, details);
		btree_list_set_separator(parents, i, &separator, nw);
		parents->ref[i] = ref;
		parents->before[i] = children->before[first];
		if (i == parents->n - 1)
			parents->before[i + 1] = children->before[children->n];
	}
}

/* The separator between two neighbouring leaves. */
KERNEL_INLINE GpudsEntry
btree_leaf_separator(const unsigned char *base, BtreeRef left, BtreeRef right, const int nw)
{
	const uint64_t *leaf = btree_node(base, left);
	GpudsEntry last = btree_leaf_entry(leaf, btree_leaf_n(leaf, nw) - 1, nw);
	GpudsEntry first = btree_leaf_entry(btree_node(base, right), 0, nw);

	return entry_between(&last, &first);
}

#endif /* BTREE_BUILD_H */
