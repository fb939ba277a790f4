/*-------------------------------------------------------------------------
 *
 * wbt_verify.h
 *	  Checking the GPU's tree: the parts of one node and of one ref.
 *
 * The levels are gone through from the root down.  The list of a level says what
 * its nodes' parents promise of them: separators, and the numbers of entries
 * before them.  Every node that the tree uses, has unused or has replaced is
 * marked; as many as its chunks have must be, none twice.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WBT_VERIFY_H
#define WBT_VERIFY_H

#include "kernels/wbt_build.h"

/* What may be wrong. */
typedef enum WbtFault
{
	WBT_SOUND,
	WBT_BAD_REF, /* not the place of a node of its kind */
	WBT_USED_TWICE,
	WBT_BAD_SIZE,  /* number of children or entries */
	WBT_BAD_COUNT, /* entries, against the parent's count */
	WBT_BAD_ORDER, /* entries or separators among themselves */
	WBT_BELOW_SEPARATOR,
	WBT_ABOVE_SEPARATOR,
	WBT_BAD_BEFORE,  /* numbers of entries before the children */
	WBT_BAD_DETAILS, /* a separator's words against the header */
	WBT_NOT_CLEAR,   /* unused places */
	WBT_BAD_LEVEL    /* number of nodes of the level */
} WbtFault;

/* The nodes of one kind: which of the pool's chunks are theirs, and a bit a node. */
typedef struct WbtOwned
{
	const uint32_t *number; /* of each chunk of the pool: number among the kind's, + 1, or 0 */
	uint32_t nchunks;       /* of the pool */
	uint32_t chunk_units;
	uint32_t units; /* of a node */
	uint32_t *marked;
} WbtOwned;

/* Number of the node with this ref; -1: no node has it. */
GK_INLINE int64_t
wbt_owned_number(const WbtOwned *owned, WbtRef ref)
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
GK_INLINE WbtFault
wbt_verify_leaf(const unsigned char *base, const WbtList *list, int64_t i, const int nw)
{
	const uint64_t *leaf = wbt_node(base, list->ref[i]);
	uint32_t n = list->before[i + 1] - list->before[i];
	GkEntry low = wbt_list_separator(list, i, nw);
	GkEntry last = { 0, 0, 0 };

	if (n < 1 || n > WBT_FANOUT)
		return WBT_BAD_COUNT;
	for (int p = 0; p < WBT_FANOUT; p++)
	{
		GkEntry e = wbt_leaf_entry(leaf, p, nw);

		if (p >= (int) n)
		{
			if (e.t == UINT64_MAX && e.w0 == UINT64_MAX && (nw == 1 || e.w1 == UINT64_MAX))
				continue;
			return e.t == UINT64_MAX ? WBT_NOT_CLEAR : WBT_BAD_COUNT;
		}
		if (e.t == UINT64_MAX)
			return WBT_BAD_COUNT;
		if (p > 0 && !gk_less(&last, &e))
			return WBT_BAD_ORDER;
		if (i > 0 && gk_less(&e, &low))
			return WBT_BELOW_SEPARATOR;
		last = e;
	}
	if (i + 1 < list->n)
	{
		GkEntry high = wbt_list_separator(list, i + 1, nw);

		if (!gk_less(&last, &high))
			return WBT_ABOVE_SEPARATOR;
	}
	return WBT_SOUND;
}

/* Is separator p of an inner node what the header says, and between its neighbours? */
GK_INLINE WbtFault
wbt_verify_separator(const uint64_t *node, const WbtList *list, int64_t i, int p, const int nw)
{
	GkEntry e = wbt_inner_separator(node, p, nw);
	GkEntry before = p > 1 ? wbt_inner_separator(node, p - 1, nw) : wbt_list_separator(list, i, nw);
	uint64_t details = (nw == 2 ? node[WBT_INNER_W1 + p] : 0) | node[WBT_INNER_T + p];

	if (wbt_header_details(node[0], p) != (details != 0))
		return WBT_BAD_DETAILS;
	if ((p > 1 || i > 0) && !gk_less(&before, &e))
		return WBT_BAD_ORDER;
	if (i + 1 < list->n)
	{
		GkEntry high = wbt_list_separator(list, i + 1, nw);

		if (!gk_less(&e, &high))
			return WBT_ABOVE_SEPARATOR;
	}
	return WBT_SOUND;
}

/* Inner node i of the list of its level. */
GK_INLINE WbtFault
wbt_verify_inner(const unsigned char *base, const WbtList *list, int64_t i, const int nw)
{
	const uint64_t *node = wbt_node(base, list->ref[i]);
	uint32_t entries = list->before[i + 1] - list->before[i];
	int n = wbt_inner_n(node);

	if (n < (list->n == 1 ? 2 : 1) || n > WBT_FANOUT)
		return WBT_BAD_SIZE;
	for (int p = 0; p < WBT_FANOUT; p++)
	{
		uint64_t link = wbt_inner_link(node, p);
		uint64_t before = wbt_link_before(link);

		if (p >= n)
		{
			if (node[p] != UINT64_MAX || link != 0 || node[WBT_INNER_W1 + p] != 0 ||
				node[WBT_INNER_T + p] != 0)
				return WBT_NOT_CLEAR;
			continue;
		}
		if (before >= entries ||
			(p == 0 ? before != 0 : before <= wbt_link_before(wbt_inner_link(node, p - 1))))
			return WBT_BAD_BEFORE;
		if (p > 0)
		{
			WbtFault fault = wbt_verify_separator(node, list, i, p, nw);

			if (fault != WBT_SOUND)
				return fault;
		}
	}
	return WBT_SOUND;
}

/*
 * Place p of node i of a list of sound inner nodes: its child there, if there is
 * one, goes into the list of the level below, whose nodes from start[i] on are
 * the children.
 */
GK_INLINE void
wbt_verify_open(const unsigned char *base, const WbtList *list, const uint32_t *start,
				const WbtList *children, int64_t i, int p, const int nw)
{
	const uint64_t *node = wbt_node(base, list->ref[i]);

	if (p < wbt_inner_n(node))
	{
		uint64_t link = wbt_inner_link(node, p);
		GkEntry separator = p > 0 ? wbt_inner_separator(node, p, nw) : wbt_list_separator(list, i, nw);

		wbt_list_set_separator(children, start[i] + p, &separator, nw);
		children->ref[start[i] + p] = wbt_link_ref(link);
		children->before[start[i] + p] = list->before[i] + (uint32_t) wbt_link_before(link);
	}
	if (i == list->n - 1 && p == 0)
		children->before[children->n] = list->before[list->n];
}

#endif /* WBT_VERIFY_H */
