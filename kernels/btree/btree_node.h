/*-------------------------------------------------------------------------
 *
 * btree_node.h
 *	  A B+tree on a CPU and on a GPU: its view, the layout of its nodes, and the
 *	  search in one node.
 *
 * A tree is of one or two key words (nw).  Nodes never change once a version
 * that contains them is published; all leaves are at the same depth.  A lookup
 * costs what it brings in from memory, on a GPU in lines of 128 bytes: so what a
 * descent reads of a node is one line.
 *
 * Memory is counted in units of 64 bytes; a BtreeRef is the number of a unit
 * from the base, 0: none.  On a GPU nodes begin at a multiple of their line:
 * leaves and inner nodes come from chunks of their own.  On a CPU they begin at
 * any unit.
 *
 *	  leaf, 64 * (1 + nw) bytes:
 *				8 words w0, [8 words w1,] 8 words t; entries ascending, unused
 *				places all ones.
 *	  inner node, 256 or 128 bytes:
 *		line 0	header, 7 words w0 of separators 1..7; 8 links
 *		line 1	8 words w1 of separators (nw 2 only), 8 words t of separators;
 *				place 0 of both is unused
 *
 * Separator i (1 .. n - 1) is above all entries of child i - 1 and not above any
 * of child i.  It is no more of child i's first entry than that takes: w1 and t
 * are 0 unless the words before them are equal at both sides.  The header says
 * for which separators they are not (details), so that line 1 is read for
 * duplicates only.  Unused separators have w0 all ones, unused links are 0.  On a
 * CPU a node without details has no line 1.
 *
 * A link has the child's ref in its low half; the high half is the number of
 * entries in the children before that one, so a rank is one addition a level.
 * A tree has fewer than 2^32 entries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_NODE_H
#define BTREE_NODE_H

#include "kernels/core/version.h"
#include "kernels/cpu/simd.h"

#define BTREE_FANOUT 8
#define BTREE_UNIT_BYTES 64
#define BTREE_LINE_BYTES 128
#define BTREE_MAX_HEIGHT 32
#define BTREE_MAX_ENTRIES (UINT64_C(0xFFFFFFFF))

typedef uint32_t BtreeRef;

/* Places of words in a node. */
#define BTREE_LINKS BTREE_FANOUT
#define BTREE_INNER_W1 (2 * BTREE_FANOUT)
#define BTREE_INNER_T (3 * BTREE_FANOUT)

KERNEL_INLINE int
btree_leaf_units(const int nw)
{
	return 1 + nw;
}

/* Units of an inner node with line 1; on a GPU all have it. */
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

/* Children of an inner node, from its header. */
KERNEL_INLINE int
btree_header_n(uint64_t header)
{
	return (int) (header & 0xFF);
}

/* Which separators have more than w0: bit i for separator i. */
KERNEL_INLINE unsigned
btree_header_details_mask(uint64_t header)
{
	return (unsigned) (header >> 8 & 0xFF);
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

/* Line 0 of child i, whose separator begins with w0; that of child 0 is not stored. */
KERNEL_INLINE void
btree_inner_set_child(uint64_t *node, int i, uint64_t w0, BtreeRef ref, uint64_t before)
{
	if (i > 0)
		node[i] = w0;
	node[BTREE_LINKS + i] = btree_link(ref, before);
}

/* Line 1 of child i. */
KERNEL_INLINE void
btree_inner_set_details(uint64_t *node, int i, const GpudsEntry *separator, const int nw)
{
	node[BTREE_INNER_W1 + i] = i > 0 && nw == 2 ? separator->w1 : 0;
	node[BTREE_INNER_T + i] = i > 0 ? separator->t : 0;
}

/*
 * Set child i; different threads may set different ones.  Places that no child
 * has must be cleared, and btree_inner_set_header must follow.
 */
KERNEL_INLINE void
btree_inner_set(uint64_t *node, int i, const GpudsEntry *separator, BtreeRef ref, uint64_t before,
				const int nw)
{
	btree_inner_set_child(node, i, separator->w0, ref, before);
	btree_inner_set_details(node, i, separator, nw);
}

/* Line 0 of place i, which no child has. */
KERNEL_INLINE void
btree_inner_clear_child(uint64_t *node, int i)
{
	node[i] = UINT64_MAX;
	node[BTREE_LINKS + i] = 0;
}

/* Line 1 of place i, which no child has. */
KERNEL_INLINE void
btree_inner_clear_details(uint64_t *node, int i)
{
	node[BTREE_INNER_W1 + i] = node[BTREE_INNER_T + i] = 0;
}

/* Make place i, which no child has, unused. */
KERNEL_INLINE void
btree_inner_clear(uint64_t *node, int i)
{
	btree_inner_clear_child(node, i);
	btree_inner_clear_details(node, i);
}

/* Set the header of a node of n children; bit i of details: separator i has more than w0. */
KERNEL_INLINE void
btree_inner_set_header(uint64_t *node, int n, unsigned details)
{
	node[0] = (uint64_t) details << 8 | (uint64_t) n;
}

/*
 * The search in one node.  A thread of a GPU goes by halves, a CPU compares
 * eight words at once.  The emulated GPU runs what a GPU does.
 */
#if defined(__CUDACC__) || defined(GPU_EMULATED)

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

#else

/* How many of a leaf's entries are before x. */
KERNEL_INLINE int
btree_leaf_rank(const uint64_t *leaf, const GpudsEntry *x, const int nw)
{
	unsigned lt, eq, lt_before, eq_before;

	simd_compare8(leaf + nw * BTREE_FANOUT, x->t, &lt, &eq);
	if (nw == 2)
	{
		simd_compare8(leaf + BTREE_FANOUT, x->w1, &lt_before, &eq_before);
		lt = lt_before | (eq_before & lt);
	}
	simd_compare8(leaf, x->w0, &lt_before, &eq_before);
	lt = lt_before | (eq_before & lt);
	return SIMD_LOW_ONES(lt);
}

/* Entries of a leaf. */
KERNEL_INLINE int
btree_leaf_n(const uint64_t *leaf, const int nw)
{
	unsigned lt, eq;

	simd_compare8(leaf + nw * BTREE_FANOUT, UINT64_MAX, &lt, &eq);
	return SIMD_LOW_ONES(lt);
}

/* Separators, as bits, that are above x by the words behind w0. */
KERNEL_INLINE unsigned
btree_inner_above(const uint64_t *node, const GpudsEntry *x, const int nw)
{
	unsigned lt, eq, lt_before, eq_before;

	simd_compare8(node + BTREE_INNER_T, x->t, &lt, &eq);
	lt |= eq;
	if (nw == 2)
	{
		simd_compare8(node + BTREE_INNER_W1, x->w1, &lt_before, &eq_before);
		lt = lt_before | (eq_before & lt);
	}
	return ~lt;
}

/* The child in which x is or would be. */
KERNEL_INLINE int
btree_inner_rank(const uint64_t *node, const GpudsEntry *x, const int nw)
{
	uint64_t header = node[0];
	unsigned lt, eq, ties;

	simd_compare8(node, x->w0, &lt, &eq);
	lt |= eq;
	ties = eq & btree_header_details_mask(header);
	if (ties != 0)
		lt &= ~(ties & btree_inner_above(node, x, nw));
	/* place 0 is the header; separators that are not there count as higher */
	return SIMD_LOW_ONES(lt >> 1 & ((1u << (btree_header_n(header) - 1)) - 1));
}

#endif

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
