/*-------------------------------------------------------------------------
 *
 * btree_verify.h
 *	  Checking the GPU's tree: the parts of one node and of one ref.
 *
 * The levels are gone through from the root down.  The list of a level says what
 * its nodes' parents promise of them: separators, and the numbers of entries
 * before them.  Every node that the tree uses, has unused or has replaced is
 * marked; as many as its chunks have must be, none twice.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_VERIFY_H
#define BTREE_VERIFY_H

#include "kernels/btree/build.h"

/* What may be wrong. */
typedef enum BtreeFault
{
	BTREE_SOUND,
	BTREE_BAD_REF, /* not the place of a node of its kind */
	BTREE_USED_TWICE,
	BTREE_BAD_SIZE,  /* number of children or entries */
	BTREE_BAD_COUNT, /* entries, against the parent's count */
	BTREE_BAD_ORDER, /* entries or separators among themselves */
	BTREE_BELOW_SEPARATOR,
	BTREE_ABOVE_SEPARATOR,
	BTREE_BAD_BEFORE,  /* numbers of entries before the children */
	BTREE_BAD_DETAILS, /* a separator's words against the header */
	BTREE_NOT_CLEAR,   /* unused places */
	BTREE_BAD_LEVEL    /* number of nodes of the level */
} BtreeFault;

/* The nodes of one kind: which of the pool's chunks are theirs, and a bit a node. */
typedef struct BtreeOwned
{
	const uint32_t *number; /* of each chunk of the pool: number among the kind's, + 1, or 0 */
	uint32_t nchunks;       /* of the pool */
	uint32_t chunk_units;
	uint32_t units; /* of a node */
	uint32_t *marked;
} BtreeOwned;

/* Number of the node with this ref; -1: no node has it. */
KERNEL_INLINE int64_t
btree_owned_number(const BtreeOwned *owned, BtreeRef ref)
{
	uint32_t chunk = ref / owned->chunk_units;
	uint32_t unit = ref % owned->chunk_units;
	uint32_t per_chunk = owned->chunk_units / owned->units;

	if (ref == 0 || chunk >= owned->nchunks || owned->number[chunk] == 0 || unit % owned->units != 0 ||
		unit / owned->units >= per_chunk)
		return -1;
	return (int64_t) (owned->number[chunk] - 1) * per_chunk + unit / owned->units;
}

/* Leaf i of the list of all leaves. */
KERNEL_INLINE BtreeFault
btree_verify_leaf(const unsigned char *base, const BtreeList *list, int64_t i, const int nw)
{
	const uint64_t *leaf = btree_node(base, list->ref[i]);
	uint32_t n = list->before[i + 1] - list->before[i];
	GpudsEntry low = btree_list_separator(list, i, nw);
	GpudsEntry last = { 0, 0, 0 };

	if (n < 1 || n > BTREE_FANOUT)
		return BTREE_BAD_COUNT;
	for (int p = 0; p < BTREE_FANOUT; p++)
	{
		GpudsEntry e = btree_leaf_entry(leaf, p, nw);

		if (p >= (int) n)
		{
			if (e.t == UINT64_MAX && e.w0 == UINT64_MAX && (nw == 1 || e.w1 == UINT64_MAX))
				continue;
			return e.t == UINT64_MAX ? BTREE_NOT_CLEAR : BTREE_BAD_COUNT;
		}
		if (e.t == UINT64_MAX)
			return BTREE_BAD_COUNT;
		if (p > 0 && !entry_less(&last, &e))
			return BTREE_BAD_ORDER;
		if (i > 0 && entry_less(&e, &low))
			return BTREE_BELOW_SEPARATOR;
		last = e;
	}
	if (i + 1 < list->n)
	{
		GpudsEntry high = btree_list_separator(list, i + 1, nw);

		if (!entry_less(&last, &high))
			return BTREE_ABOVE_SEPARATOR;
	}
	return BTREE_SOUND;
}

/* Is separator p of an inner node what the header says, and between its neighbours? */
KERNEL_INLINE BtreeFault
btree_verify_separator(const uint64_t *node, const BtreeList *list, int64_t i, int p, const int nw)
{
	GpudsEntry e = btree_inner_separator(node, p, nw);
	GpudsEntry before = p > 1 ? btree_inner_separator(node, p - 1, nw) : btree_list_separator(list, i, nw);
	uint64_t details = (nw == 2 ? node[BTREE_INNER_W1 + p] : 0) | node[BTREE_INNER_T + p];

	if (btree_header_details(node[0], p) != (details != 0))
		return BTREE_BAD_DETAILS;
	if ((p > 1 || i > 0) && !entry_less(&before, &e))
		return BTREE_BAD_ORDER;
	if (i + 1 < list->n)
	{
		GpudsEntry high = btree_list_separator(list, i + 1, nw);

		if (!entry_less(&e, &high))
			return BTREE_ABOVE_SEPARATOR;
	}
	return BTREE_SOUND;
}

/* Inner node i of the list of its level. */
KERNEL_INLINE BtreeFault
btree_verify_inner(const unsigned char *base, const BtreeList *list, int64_t i, const int nw)
{
	const uint64_t *node = btree_node(base, list->ref[i]);
	uint32_t entries = list->before[i + 1] - list->before[i];
	int n = btree_inner_n(node);

	if (n < (list->n == 1 ? 2 : 1) || n > BTREE_FANOUT)
		return BTREE_BAD_SIZE;
	for (int p = 0; p < BTREE_FANOUT; p++)
	{
		uint64_t link = btree_inner_link(node, p);
		uint64_t before = btree_link_before(link);

		if (p >= n)
		{
			if (node[p] != UINT64_MAX || link != 0 || node[BTREE_INNER_W1 + p] != 0 ||
				node[BTREE_INNER_T + p] != 0)
				return BTREE_NOT_CLEAR;
			continue;
		}
		if (before >= entries ||
			(p == 0 ? before != 0 : before <= btree_link_before(btree_inner_link(node, p - 1))))
			return BTREE_BAD_BEFORE;
		if (p > 0)
		{
			BtreeFault fault = btree_verify_separator(node, list, i, p, nw);

			if (fault != BTREE_SOUND)
				return fault;
		}
	}
	return BTREE_SOUND;
}

/*
 * Place p of node i of a list of sound inner nodes: its child there, if there is
 * one, goes into the list of the level below, whose nodes from start[i] on are
 * the children.
 */
KERNEL_INLINE void
btree_verify_open(const unsigned char *base, const BtreeList *list, const uint32_t *start,
				  const BtreeList *children, int64_t i, int p, const int nw)
{
	const uint64_t *node = btree_node(base, list->ref[i]);

	if (p < btree_inner_n(node))
	{
		uint64_t link = btree_inner_link(node, p);
		GpudsEntry separator = p > 0 ? btree_inner_separator(node, p, nw) : btree_list_separator(list, i, nw);

		btree_list_set_separator(children, start[i] + p, &separator, nw);
		children->ref[start[i] + p] = btree_link_ref(link);
		children->before[start[i] + p] = list->before[i] + (uint32_t) btree_link_before(link);
	}
	if (i == list->n - 1 && p == 0)
		children->before[children->n] = list->before[list->n];
}

#endif /* BTREE_VERIFY_H */
