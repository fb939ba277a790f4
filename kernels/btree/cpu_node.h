/*-------------------------------------------------------------------------
 *
 * btree_node.h
 *	  The tree's types, the layout of its nodes, and the search in one node.
 *
 * A tree is of one or two key words (nw).  Its nodes are of CPU_BTREE_FANOUT 8 and
 * never change once a version that contains them is published.  All leaves
 * are at level 0 and at the same depth.
 *
 *	  leaf, 64 * (1 + nw) bytes: 8 words w0, [8 words w1,] 8 words t; entries
 *		ascending, unused places all ones.
 *	  inner node, 64 * (1 + nw) bytes: a word of header, 7 words w0 of
 *		separators, [one word unused, 7 words w1,] 8 children, 8 numbers of
 *		entries below each child (both 32 bits).
 *
 * Separator i (0 .. n - 2) of an inner node is above all entries of child i
 * and not above any of child i + 1.  It is the number (w0, w1, 0), unless the
 * entries at both sides have the same key words: then bit i of the header's
 * ties is set, and its t is word i + 1 of the node's extension (one unit,
 * which only nodes with a tie have).  So a separator costs no more than its
 * key words in a tree of unique keys, and duplicates are no special case.
 *
 * Nodes are at least half full, except the root and those at the right edge,
 * where ascending inserts leave full nodes behind.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CPU_BTREE_NODE_H
#define CPU_BTREE_NODE_H

#include "kernels/cpu/arena.h"
#include "kernels/core/entry.h"
#include "kernels/cpu/simd.h"

#define CPU_BTREE_FANOUT 8
#define CPU_BTREE_MIN (CPU_BTREE_FANOUT / 2)
#define CPU_BTREE_MAX_HEIGHT 24

/*
 * Nodes that a version has replaced, oldest first: a chain of units of
 * CpuBtreeQueueUnit.
 */
typedef struct CpuBtreeQueue
{
	ArenaRef head;
	ArenaRef tail;
} CpuBtreeQueue;

#define CPU_BTREE_QUEUE_ITEMS 6

typedef struct CpuBtreeQueueUnit
{
	uint64_t version; /* the version that replaced the items */
	ArenaRef next;
	uint32_t n;
	uint64_t item[CPU_BTREE_QUEUE_ITEMS]; /* units << 32 | reference */
} CpuBtreeQueueUnit;

/*
 * A tree.  head is one word, so that a reader gets root, height and width of
 * one and the same version: bit 63 set (else there is no tree), bits 47..40
 * key words, 39..32 height, 31..0 root.  The version only ever rises, over all
 * lives of the struct.
 */
typedef struct CpuBtree
{
	uint64_t head;    /* atomic, published before version */
	uint64_t version; /* atomic */
	uint64_t count;   /* atomic: entries */
	uint32_t nwords;
	uint32_t reserved;
	ArenaSpace space;
	CpuBtreeQueue retired;
} CpuBtree;

#define CPU_BTREE_HEAD_VALID (UINT64_C(1) << 63)

/* One version of a tree, as a reader sees it.  height 0: no entries. */
typedef struct CpuBtreeView
{
	const unsigned char *base; /* the arena */
	ArenaRef root;
	int height;
	int nwords;
} CpuBtreeView;

/* The header word of an inner node. */
KERNEL_INLINE int
cpu_btree_header_n(uint64_t header)
{
	return (int) (header & 0xFF);
}

KERNEL_INLINE int
cpu_btree_header_level(uint64_t header)
{
	return (int) (header >> 8 & 0xFF);
}

KERNEL_INLINE unsigned
cpu_btree_header_ties(uint64_t header)
{
	return (unsigned) (header >> 16 & 0xFF);
}

KERNEL_INLINE ArenaRef
cpu_btree_header_ext(uint64_t header)
{
	return (ArenaRef) (header >> 32);
}

KERNEL_INLINE const uint64_t *
cpu_btree_node(const void *base, ArenaRef ref)
{
	return (const uint64_t *) arena_at(base, ref);
}

KERNEL_INLINE const uint32_t *
cpu_btree_children(const uint64_t *node, const int nw)
{
	return (const uint32_t *) (node + 8 * nw);
}

KERNEL_INLINE const uint32_t *
cpu_btree_counts(const uint64_t *node, const int nw)
{
	return (const uint32_t *) (node + 8 * nw) + CPU_BTREE_FANOUT;
}

KERNEL_INLINE int
cpu_btree_node_units(const int nw)
{
	return 1 + nw;
}

/* Start loading a node. */
KERNEL_INLINE void
cpu_btree_prefetch(const void *base, ArenaRef ref, const int nw)
{
	const unsigned char *p = (const unsigned char *) arena_at(base, ref);

	SIMD_PREFETCH(p);
	SIMD_PREFETCH(p + 64);
	if (nw == 2)
		SIMD_PREFETCH(p + 128);
}

/* Which of a leaf's places are before x, and which of them equal it. */
KERNEL_INLINE void
cpu_btree_leaf_compare(const uint64_t *leaf, const GpudsEntry *x, const int nw, unsigned *lt, unsigned *eq)
{
	unsigned lt0, eq0, lt1, eq1;

	simd_compare8(leaf + 8 * nw, x->t, &lt1, &eq1);
	if (nw == 2)
	{
		simd_compare8(leaf + 8, x->w1, &lt0, &eq0);
		lt1 = lt0 | (eq0 & lt1);
		eq1 &= eq0;
	}
	simd_compare8(leaf, x->w0, &lt0, &eq0);
	*lt = lt0 | (eq0 & lt1);
	*eq = eq0 & eq1;
}

/* Entries of a leaf: its unused places are the highest number there is. */
KERNEL_INLINE int
cpu_btree_leaf_n(const uint64_t *leaf, const int nw)
{
	unsigned lt, eq;

	simd_compare8(leaf + 8 * nw, UINT64_MAX, &lt, &eq);
	return SIMD_LOW_ONES(lt);
}

/* How many of a leaf's entries are before x; with or_equal also x itself. */
KERNEL_INLINE int
cpu_btree_leaf_rank(const uint64_t *leaf, const GpudsEntry *x, const int nw, const bool or_equal)
{
	unsigned lt, eq;

	cpu_btree_leaf_compare(leaf, x, nw, &lt, &eq);
	if (or_equal && x->t != UINT64_MAX)
		lt |= eq;
	return SIMD_LOW_ONES(lt);
}

/* The child of an inner node in which x is or would be. */
KERNEL_INLINE int
cpu_btree_inner_rank(const void *base, const uint64_t *node, const GpudsEntry *x, const int nw)
{
	uint64_t header = node[0];
	unsigned lt, eq, le;

	simd_compare8(node, x->w0, &lt, &eq);
	if (nw == 2)
	{
		unsigned lt1, eq1;

		simd_compare8(node + 8, x->w1, &lt1, &eq1);
		lt |= eq & lt1;
		eq &= eq1;
	}
	le = lt | eq;
	eq &= cpu_btree_header_ties(header) << 1;
	if (eq != 0)
	{
		unsigned tlt, teq;

		simd_compare8(cpu_btree_node(base, cpu_btree_header_ext(header)), x->t, &tlt, &teq);
		le &= ~(eq & ~(tlt | teq));
	}
	/* place 0 is the header; separators that are not there count as higher */
	return SIMD_LOW_ONES(le >> 1 & ((1u << (cpu_btree_header_n(header) - 1)) - 1));
}

/* Entry i of a leaf. */
KERNEL_INLINE void
cpu_btree_leaf_entry(const uint64_t *leaf, int i, const int nw, GpudsEntry *e)
{
	e->w0 = leaf[i];
	e->w1 = nw == 2 ? leaf[8 + i] : 0;
	e->t = leaf[8 * nw + i];
}

/* Separator i of an inner node. */
KERNEL_INLINE void
cpu_btree_separator(const void *base, const uint64_t *node, int i, const int nw, GpudsEntry *e)
{
	uint64_t header = node[0];

	e->w0 = node[1 + i];
	e->w1 = nw == 2 ? node[9 + i] : 0;
	e->t = 0;
	if (cpu_btree_header_ties(header) >> i & 1)
		e->t = cpu_btree_node(base, cpu_btree_header_ext(header))[1 + i];
}

/* What separates two neighbours: no more of the right one than it takes. */
KERNEL_INLINE GpudsEntry
cpu_btree_between(const GpudsEntry *left, const GpudsEntry *right)
{
	GpudsEntry e = *right;

	if (left->w0 != right->w0 || left->w1 != right->w1)
		e.t = 0;
	return e;
}

#endif /* CPU_BTREE_NODE_H */
