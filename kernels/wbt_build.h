/*-------------------------------------------------------------------------
 *
 * wbt_build.h
 *	  Making nodes of the GPU's tree: leaves of sorted entries, and the inner
 *	  levels above a list of nodes.
 *
 * The functions do the part of one place of one node, so that neighbouring
 * threads write neighbouring words.  n things are spread over k nodes evenly:
 * node i begins with thing i * n / k.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WBT_BUILD_H
#define WBT_BUILD_H

#include "kernels/wbt_node.h"

/*
 * The nodes of a level, from left to right, as arrays.  Node i holds the
 * entries numbered before[i] .. before[i + 1] - 1 (before has n + 1 elements),
 * and its separator is (w0, w1, t)[i]; that of node 0 may be anything.
 */
typedef struct WbtList
{
	uint64_t *w0;
	uint64_t *w1; /* trees of two key words only */
	uint64_t *t;
	WbtRef *ref;
	uint32_t *before;
	int64_t n;
} WbtList;

/* Unused nodes of one kind: a stack of refs. */
typedef struct WbtFree
{
	const WbtRef *at;
	uint32_t n;
} WbtFree;

GK_INLINE GkEntry
wbt_list_separator(const WbtList *list, int64_t i, const int nw)
{
	GkEntry e;

	e.w0 = list->w0[i];
	e.w1 = nw == 2 ? list->w1[i] : 0;
	e.t = list->t[i];
	return e;
}

GK_INLINE void
wbt_list_set_separator(const WbtList *list, int64_t i, const GkEntry *e, const int nw)
{
	list->w0[i] = e->w0;
	if (nw == 2)
		list->w1[i] = e->w1;
	list->t[i] = e->t;
}

/* The node taken as number i, counting from 0, from a stack. */
GK_INLINE WbtRef
wbt_free_take(const WbtFree *free, uint32_t i)
{
	return free->at[free->n - 1 - i];
}

/* First of n things that node i of k gets. */
GK_INLINE int64_t
wbt_spread(int64_t i, int64_t n, int64_t k)
{
	uint64_t product = (uint64_t) i * (uint64_t) n;

	/* a short division is several times cheaper on a GPU */
	if (product >> 32 == 0)
		return (uint32_t) product / (uint32_t) k;
	return (int64_t) (product / (uint64_t) k);
}

/* First entry of leaf i of a load of so much fill. */
GK_INLINE uint64_t
wbt_fill_start(uint64_t i, uint32_t fill_percent)
{
	return i * WBT_FANOUT * fill_percent / 100;
}

/* Nodes that n things take. */
GK_INLINE int64_t
wbt_nodes(int64_t n)
{
	return (n + WBT_FANOUT - 1) / WBT_FANOUT;
}

/*
 * Place p of node i of the k nodes above a list.  The node's memory is ref; what
 * its own parent has to know goes into parents.
 */
GK_INLINE void
wbt_build_inner(unsigned char *base, const WbtList *children, const WbtList *parents, int64_t i, int p,
				WbtRef ref, const int nw)
{
	uint64_t *node = wbt_node(base, ref);
	int64_t first = wbt_spread(i, children->n, parents->n);
	int n = (int) (wbt_spread(i + 1, children->n, parents->n) - first);

	if (p < n)
	{
		GkEntry separator = wbt_list_separator(children, first + p, nw);

		wbt_inner_set(node, p, &separator, children->ref[first + p],
					  children->before[first + p] - children->before[first], nw);
	}
	else
	{
		wbt_inner_clear(node, p);
	}
	if (p == 0)
	{
		GkEntry separator = wbt_list_separator(children, first, nw);
		unsigned details = 0;

		for (int j = 1; j < n; j++)
		{
			if (((nw == 2 ? children->w1[first + j] : 0) | children->t[first + j]) != 0)
				details |= 1u << j;
		}
		wbt_inner_set_header(node, n, details);
		wbt_list_set_separator(parents, i, &separator, nw);
		parents->ref[i] = ref;
		parents->before[i] = children->before[first];
		if (i == parents->n - 1)
			parents->before[i + 1] = children->before[children->n];
	}
}

/* The separator between two neighbouring leaves. */
GK_INLINE GkEntry
wbt_leaf_separator(const unsigned char *base, WbtRef left, WbtRef right, const int nw)
{
	const uint64_t *leaf = wbt_node(base, left);
	GkEntry last = wbt_leaf_entry(leaf, wbt_leaf_n(leaf, nw) - 1, nw);
	GkEntry first = wbt_leaf_entry(wbt_node(base, right), 0, nw);

	return wbt_between(&last, &first);
}

#endif /* WBT_BUILD_H */
