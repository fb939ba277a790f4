/*-------------------------------------------------------------------------
 *
 * btree_verify.h
 *	  Checking a tree on a CPU and on a GPU: the parts of one node and of one ref.
 *
 * A tree is gone through from the root down.  A list of nodes of a level says what
 * their parents promise of them: separators, and the numbers of entries before
 * them.  The memory's side differs: gpu_verify.h marks nodes, cpu_verify.h units.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_VERIFY_H
#define BTREE_VERIFY_H

#include "kernels/btree/btree_build.h"

/* What may be wrong. */
typedef enum BtreeFault
{
	BTREE_SOUND,
	BTREE_BAD_SIZE = 100, /* number of children or entries */
	BTREE_BAD_COUNT,      /* entries, against the parent's count */
	BTREE_BAD_ORDER,      /* entries or separators among themselves */
	BTREE_BELOW_SEPARATOR,
	BTREE_ABOVE_SEPARATOR,
	BTREE_BAD_BEFORE,  /* numbers of entries before the children */
	BTREE_BAD_DETAILS, /* a separator's words against the header */
	BTREE_NOT_CLEAR,   /* unused places */
	BTREE_BAD_LEVEL    /* number of nodes of the level */
} BtreeFault;

/* What is wrong with a node, to follow its name. */
HOST_FN const char *
btree_fault_words(uint32_t fault)
{
	switch ((BtreeFault) fault)
	{
		case BTREE_SOUND:
			break;
		case BTREE_BAD_SIZE:
			return "has a wrong number of children";
		case BTREE_BAD_COUNT:
			return "has not as many entries as its parent says";
		case BTREE_BAD_ORDER:
			return "is out of order";
		case BTREE_BELOW_SEPARATOR:
			return "has an entry below the separator before it";
		case BTREE_ABOVE_SEPARATOR:
			return "is not below the separator after it";
		case BTREE_BAD_BEFORE:
			return "has wrong numbers of entries before its children";
		case BTREE_BAD_DETAILS:
			return "has a header that does not fit its separators";
		case BTREE_NOT_CLEAR:
			return "has unused places that are not clear";
		case BTREE_BAD_LEVEL:
			return "has siblings that no parent links to";
	}
	return "is sound";
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

/* Is separator p of an inner node between its neighbours? */
KERNEL_INLINE BtreeFault
btree_verify_separator(const uint64_t *node, const BtreeList *list, int64_t i, int p, const int nw)
{
	GpudsEntry e = btree_inner_separator(node, p, nw);
	GpudsEntry before = p > 1 ? btree_inner_separator(node, p - 1, nw) : btree_list_separator(list, i, nw);

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

/* The children of inner node i of the list of its level. */
KERNEL_INLINE BtreeFault
btree_verify_children(const unsigned char *base, const BtreeList *list, int64_t i, const int nw)
{
	const uint64_t *node = btree_node(base, list->ref[i]);
	uint32_t entries = list->before[i + 1] - list->before[i];
	unsigned details = btree_header_details_mask(node[0]);
	int n = btree_inner_n(node);

	if (n < (list->n == 1 ? 2 : 1) || n > BTREE_FANOUT)
		return BTREE_BAD_SIZE;
	if (details >> n != 0 || (details & 1) != 0)
		return BTREE_BAD_DETAILS;
	for (int p = 0; p < BTREE_FANOUT; p++)
	{
		uint64_t link = btree_inner_link(node, p);
		uint64_t before = btree_link_before(link);

		if (p >= n)
		{
			if (node[p] != UINT64_MAX || link != 0)
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

/* Line 1 of an inner node whose children are sound, against the header. */
KERNEL_INLINE BtreeFault
btree_verify_details(const uint64_t *node, const int nw)
{
	int n = btree_inner_n(node);

	for (int p = 0; p < BTREE_FANOUT; p++)
	{
		uint64_t words = (nw == 2 ? node[BTREE_INNER_W1 + p] : 0) | node[BTREE_INNER_T + p];

		if (p >= n && (node[BTREE_INNER_W1 + p] | node[BTREE_INNER_T + p]) != 0)
			return BTREE_NOT_CLEAR;
		if (p > 0 && p < n && btree_header_details(node[0], p) != (words != 0))
			return BTREE_BAD_DETAILS;
	}
	return BTREE_SOUND;
}

/* Inner node i of the list of its level, with line 1. */
KERNEL_INLINE BtreeFault
btree_verify_inner(const unsigned char *base, const BtreeList *list, int64_t i, const int nw)
{
	BtreeFault fault = btree_verify_children(base, list, i, nw);

	return fault != BTREE_SOUND ? fault : btree_verify_details(btree_node(base, list->ref[i]), nw);
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
