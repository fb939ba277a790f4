/*-------------------------------------------------------------------------
 *
 * btree_node.h
 *	  The tree of the GPU: its view, the layout of its nodes, and the search in
 *	  one node.
 *
 * A tree is of one or two key words (nw).  Nodes never change once a version
 * that contains them is published; all leaves are at the same depth.  What
 * limits lookups on a GPU is the number of 128-byte lines that each of them
 * brings in from memory: so what a descent reads of a node is one line.
 *
 * Memory is counted in units of 64 bytes; a BtreeRef is the number of a unit
 * from the pool's base, 0: none.  Nodes begin at a multiple of their line:
 * leaves and inner nodes come from chunks of their own.
 *
 *	  leaf, 64 * (1 + nw) bytes:
 *				8 words w0, [8 words w1,] 8 words t; entries ascending, unused
 *				places all ones.
 *	  inner node, 256 bytes:
 *		line 0	header, 7 words w0 of separators 1..7; 8 links
 *		line 1	8 words w1 of separators (nw 2 only), 8 words t of separators;
 *				place 0 of both is unused
 *
 * Separator i (1 .. n - 1) is above all entries of child i - 1 and not above any
 * of child i.  It is no more of child i's first entry than that takes: w1 and t
 * are 0 unless the words before them are equal at both sides.  The header says
 * for which separators they are not (details), so that line 1 is read for
 * duplicates only.  Unused separators have w0 all ones, unused links are 0.
 *
 * A link has the child's ref in its low half; the high half is the number of
 * entries in the children before that one, so a rank is one addition a level.
 * A tree has fewer than 2^32 entries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_NODE_H
#define BTREE_NODE_H

#include "kernels/core/entry.h"

#define BTREE_FANOUT 8
#define BTREE_UNIT_BYTES 64
#define BTREE_LINE_BYTES 128
#define BTREE_MAX_HEIGHT 32
#define BTREE_MAX_ENTRIES (UINT64_C(0xFFFFFFFF))

typedef uint32_t BtreeRef;

/* One version of a tree.  height 0: no entries; 1: the root is a leaf. */
typedef struct BtreeView
{
	const unsigned char *base; /* the pool */
	uint64_t entries;
	BtreeRef root;
	int height;
	int nwords;
} BtreeView;

/* Places of words in a node. */
#define BTREE_LINKS BTREE_FANOUT
#define BTREE_INNER_W1 (2 * BTREE_FANOUT)
#define BTREE_INNER_T (3 * BTREE_FANOUT)

KERNEL_INLINE int
btree_leaf_units(const int nw)
{
	return 1 + nw;
}

KERNEL_INLINE int
btree_inner_units(void)
{
	return 4;
}

KERNEL_INLINE uint64_t *
btree_node(const void *base, BtreeRef ref)
{
	return (uint64_t *) ((unsigned char *) base + (size_t) ref * BTREE_UNIT_BYTES);
}

/* x as the lowest number above it; entries never have the highest t. */
KERNEL_INLINE GpudsEntry
btree_after(const GpudsEntry *x)
{
	GpudsEntry after = *x;

	if (after.t != UINT64_MAX)
		after.t++;
	return after;
}

/* What separates two neighbours: no more of the right one than it takes. */
KERNEL_INLINE GpudsEntry
btree_between(const GpudsEntry *left, const GpudsEntry *right)
{
	GpudsEntry e = *right;

	if (left->w0 != right->w0)
		e.w1 = 0;
	if (left->w0 != right->w0 || left->w1 != right->w1)
		e.t = 0;
	return e;
}

/* Entry i of a leaf. */
KERNEL_INLINE GpudsEntry
btree_leaf_entry(const uint64_t *leaf, int i, const int nw)
{
	GpudsEntry e;

	e.w0 = leaf[i];
	e.w1 = nw == 2 ? leaf[BTREE_FANOUT + i] : 0;
	e.t = leaf[nw * BTREE_FANOUT + i];
	return e;
}

KERNEL_INLINE void
btree_leaf_set(uint64_t *leaf, int i, const GpudsEntry *e, const int nw)
{
	leaf[i] = e->w0;
	if (nw == 2)
		leaf[BTREE_FANOUT + i] = e->w1;
	leaf[nw * BTREE_FANOUT + i] = e->t;
}

/* Make place i of a leaf unused. */
KERNEL_INLINE void
btree_leaf_clear(uint64_t *leaf, int i, const int nw)
{
	leaf[i] = leaf[nw * BTREE_FANOUT + i] = UINT64_MAX;
	if (nw == 2)
		leaf[BTREE_FANOUT + i] = UINT64_MAX;
}

/* Is entry i of a leaf before x?  Unused places are not before anything. */
KERNEL_INLINE bool
btree_leaf_before(const uint64_t *leaf, int i, const GpudsEntry *x, const int nw)
{
	uint64_t w = leaf[i];

	if (w != x->w0)
		return w < x->w0;
	if (nw == 2)
	{
		w = leaf[BTREE_FANOUT + i];
		if (w != x->w1)
			return w < x->w1;
	}
	return leaf[nw * BTREE_FANOUT + i] < x->t;
}

/* How many of a leaf's entries are before x. */
KERNEL_INLINE int
btree_leaf_rank(const uint64_t *leaf, const GpudsEntry *x, const int nw)
{
	int i = 0;

	for (int step = BTREE_FANOUT / 2; step > 0; step /= 2)
	{
		if (btree_leaf_before(leaf, i + step - 1, x, nw))
			i += step;
	}
	return i + (btree_leaf_before(leaf, i, x, nw) ? 1 : 0);
}

/* Entries of a leaf. */
KERNEL_INLINE int
btree_leaf_n(const uint64_t *leaf, const int nw)
{
	const uint64_t *t = leaf + nw * BTREE_FANOUT;
	int i = 0;

	for (int step = BTREE_FANOUT / 2; step > 0; step /= 2)
	{
		if (t[i + step - 1] != UINT64_MAX)
			i += step;
	}
	return i + (t[i] != UINT64_MAX ? 1 : 0);
}

/* Children of an inner node, from its header. */
KERNEL_INLINE int
btree_header_n(uint64_t header)
{
	return (int) (header & 0xFF);
}

/* Does separator i have more than w0? */
KERNEL_INLINE bool
btree_header_details(uint64_t header, int i)
{
	return (header >> (8 + i) & 1) != 0;
}

KERNEL_INLINE int
btree_inner_n(const uint64_t *node)
{
	return btree_header_n(node[0]);
}

KERNEL_INLINE uint64_t
btree_link(BtreeRef ref, uint64_t before)
{
	return before << 32 | ref;
}

KERNEL_INLINE BtreeRef
btree_link_ref(uint64_t link)
{
	return (BtreeRef) link;
}

KERNEL_INLINE uint64_t
btree_link_before(uint64_t link)
{
	return link >> 32;
}

KERNEL_INLINE uint64_t
btree_inner_link(const uint64_t *node, int i)
{
	return node[BTREE_LINKS + i];
}

/* Separator i; 0: the lowest number. */
KERNEL_INLINE GpudsEntry
btree_inner_separator(const uint64_t *node, int i, const int nw)
{
	GpudsEntry e = { 0, 0, 0 };

	if (i > 0)
	{
		e.w0 = node[i];
		if (btree_header_details(node[0], i))
		{
			e.w1 = nw == 2 ? node[BTREE_INNER_W1 + i] : 0;
			e.t = node[BTREE_INNER_T + i];
		}
	}
	return e;
}

/*
 * Set child i; the separator of child 0 is not stored.  btree_inner_finish must
 * follow when all children are there; different threads may set different ones.
 */
KERNEL_INLINE void
btree_inner_set(uint64_t *node, int i, const GpudsEntry *separator, BtreeRef ref, uint64_t before,
				const int nw)
{
	if (i > 0)
		node[i] = separator->w0;
	node[BTREE_LINKS + i] = btree_link(ref, before);
	node[BTREE_INNER_W1 + i] = i > 0 && nw == 2 ? separator->w1 : 0;
	node[BTREE_INNER_T + i] = i > 0 ? separator->t : 0;
}

/* Make place i, which no child has, unused. */
KERNEL_INLINE void
btree_inner_clear(uint64_t *node, int i)
{
	node[i] = UINT64_MAX;
	node[BTREE_LINKS + i] = 0;
	node[BTREE_INNER_W1 + i] = node[BTREE_INNER_T + i] = 0;
}

/* Set the header of a node of n children; bit i of details: separator i has more than w0. */
KERNEL_INLINE void
btree_inner_set_header(uint64_t *node, int n, unsigned details)
{
	node[0] = (uint64_t) details << 8 | (uint64_t) n;
}

/* Make the header of a node of n children and pad what is behind them. */
KERNEL_INLINE void
btree_inner_finish(uint64_t *node, int n)
{
	unsigned details = 0;

	for (int i = 1; i < n; i++)
	{
		if ((node[BTREE_INNER_W1 + i] | node[BTREE_INNER_T + i]) != 0)
			details |= 1u << i;
	}
	for (int i = n; i < BTREE_FANOUT; i++)
		btree_inner_clear(node, i);
	btree_inner_set_header(node, n, details);
}

/* Is separator i, whose w0 is that of x, not above x? */
KERNEL_FN bool
btree_inner_tie(const uint64_t *node, int i, const GpudsEntry *x, const int nw)
{
	uint64_t header = node[0];

	if (i >= btree_header_n(header))
		return false;
	if (!btree_header_details(header, i))
		return true;
	if (nw == 2 && node[BTREE_INNER_W1 + i] != x->w1)
		return node[BTREE_INNER_W1 + i] < x->w1;
	return node[BTREE_INNER_T + i] <= x->t;
}

/* The child in which x is or would be. */
KERNEL_INLINE int
btree_inner_rank(const uint64_t *node, const GpudsEntry *x, const int nw)
{
	int i = 0;

	for (int step = BTREE_FANOUT / 2; step > 0; step /= 2)
	{
		uint64_t w = node[i + step];

		if (w < x->w0 || (w == x->w0 && btree_inner_tie(node, i + step, x, nw)))
			i += step;
	}
	return i;
}

/* The child with the entry of this rank among the node's entries. */
KERNEL_INLINE int
btree_inner_select(const uint64_t *node, uint64_t rank)
{
	int i = 0;

	for (int step = BTREE_FANOUT / 2; step > 0; step /= 2)
	{
		uint64_t link = node[BTREE_LINKS + i + step];

		if (link != 0 && btree_link_before(link) <= rank)
			i += step;
	}
	return i;
}

#endif /* BTREE_NODE_H */
