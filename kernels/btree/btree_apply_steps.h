/*-------------------------------------------------------------------------
 *
 * btree_apply_steps.h
 *	  Applying a batch of operations to a tree by path copying: what
 *	  btree_apply_leaf.h and btree_apply_level.h share.
 *
 * Operations are sorted by entry; of several on one entry only the first counts.
 * A run is the operations that fall into one leaf.  A run that has an effect makes
 * a change: new leaves, its parts, replace the leaf, as many as its entries then
 * take, and none if no entry is left.  The levels above go the same way: a run is
 * the changes of children of one node, and makes that node's change.  Whatever is
 * not above a change belongs to both versions.
 *
 * Each thread makes some places of one new node on its own, however long the run
 * is.  What belongs at a place follows from exclusive sums; the number of entries
 * before a child follows from what the operations before it have added.  So no
 * thread has to know what its neighbours find.
 *
 * Things are spread over parts evenly.  At the right edge of the tree all parts
 * but the last are full instead, so that ascending inserts leave full nodes behind.
 *
 * The first part keeps the separator of the node that it replaces.  What is left
 * of the range may begin higher, but a lower separator is right, too.
 *
 * Levels from the tree's height on have one node that is not there (ref 0): the
 * parent of a root that several parts have replaced.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_STEPS_H
#define BTREE_APPLY_STEPS_H

#include "kernels/btree/btree_build.h"

/* Threads that make a leaf or an inner node together: each makes some neighbouring places. */
#ifdef __CUDACC__
#define BTREE_LEAF_THREADS 4
#define BTREE_INNER_THREADS 8
#else
#define BTREE_LEAF_THREADS 1
#define BTREE_INNER_THREADS 1
#endif
#define BTREE_LEAF_PLACES (BTREE_FANOUT / BTREE_LEAF_THREADS)
#define BTREE_INNER_PLACES (BTREE_FANOUT / BTREE_INNER_THREADS)

#define BTREE_LEVELS (BTREE_MAX_HEIGHT + 1)

/* A binary search looks at the last few things one by one. */
#define BTREE_NEAR 3

/* What an operation adds to BtreeBatch.sum. */
#define BTREE_INSERTED (UINT64_C(1) << 32)
#define BTREE_DELETED UINT64_C(1)

/*
 * A node's place in its parent (3 bits), how many entries or children it has (4
 * bits), and whether it is the last of its level, in a byte.
 */
#define BTREE_LAST 0x80

KERNEL_INLINE uint8_t
btree_place(int place, int n, bool last)
{
	return (uint8_t) (place | n << 3 | (last ? BTREE_LAST : 0));
}

KERNEL_INLINE int
btree_place_of(uint8_t byte)
{
	return byte & 7;
}

KERNEL_INLINE int
btree_place_n(uint8_t byte)
{
	return byte >> 3 & 15;
}

typedef struct BtreeBatch
{
	int64_t n;
	uint64_t *w0;
	uint64_t *w1; /* trees of two key words only */
	uint64_t *t;
	uint8_t *deletes; /* not an insert? */
	BtreeRef *leaf;
	BtreeRef *parent; /* of the leaf */
	uint8_t *place;   /* of the leaf in its parent, BTREE_LAST */
	uint8_t *order;   /* 2 * entries of the leaf before the operation's, + 1 if it is there */
	uint32_t *head;   /* n + 1: how many runs begin before this operation */
	uint64_t *sum;    /* n + 1: what the operations before this one have inserted and deleted */
	uint32_t *run;    /* first operation of each run; one more */
	uint64_t *taken;  /* n + 1: parts << 32 | changes of the runs before this one */
} BtreeBatch;

/* The nodes of one level that are replaced, from left to right. */
typedef struct BtreeChanges
{
	uint32_t *op;    /* first operation, one more: all operations */
	uint32_t *to;    /* leaves: end of the run's operations */
	uint32_t *first; /* first part, one more: all parts */
	uint32_t *after; /* entries or children of all its parts */
	BtreeRef *node;
	BtreeRef *parent;
	uint8_t *place; /* btree_place */
} BtreeChanges;

/* The nodes that replace them: their parts. */
typedef struct BtreeParts
{
	uint64_t *w0; /* separators; not for the first part of a change */
	uint64_t *w1;
	uint64_t *t;
	BtreeRef *ref;
	uint32_t *before; /* entries in the parts before it of the same change */
	uint32_t *change;
} BtreeParts;

/* How many changes and parts each level has, and what comes of it all. */
typedef struct BtreeCounts
{
	uint32_t changes[BTREE_LEVELS];
	uint32_t parts[BTREE_LEVELS];
	uint32_t retired[BTREE_LEVELS + 1]; /* inner nodes of lower levels that are replaced */
	uint32_t made[BTREE_LEVELS + 1];    /* inner nodes of lower levels that are made */
	uint64_t sum;                       /* inserted << 32 | deleted */
	BtreeRef root;
	uint32_t height;
	uint32_t single; /* roots of one child: made, but retired at once */
	uint32_t gone;   /* leaves that no leaf replaces */
} BtreeCounts;

/*
 * The path of each operation, from level 1 on: the node, the place of the child,
 * and the number of children.  If the arrays are NULL, paths are looked up again.
 */
typedef struct BtreePath
{
	BtreeRef *parent; /* (level - 1) * n + operation */
	uint8_t *place;   /* btree_place */
} BtreePath;

/* Making the parts of a level. */
typedef struct BtreeLevel
{
	GpudsView view;
	BtreeBatch batch;
	BtreePath path;
	BtreeFree leaves; /* free nodes */
	BtreeFree inners;
	BtreeRef *retired_leaves; /* where the replaced nodes go */
	BtreeRef *retired_inners;
	BtreeCounts *counts;
	BtreeChanges below; /* level - 1 */
	BtreeParts children;
	uint32_t *head; /* changes below, and one more: how many runs begin before it */
	uint32_t *run;  /* first change below of each run; one more */
	BtreeChanges here;
	BtreeParts parts;
	int level;
} BtreeLevel;

KERNEL_INLINE GpudsEntry
btree_batch_entry(const BtreeBatch *batch, int64_t j, const int nw)
{
	GpudsEntry e;

	e.w0 = batch->w0[j];
	e.w1 = nw == 2 ? batch->w1[j] : 0;
	e.t = batch->t[j];
	return e;
}

/* Sets operation j of the sorted batch. */
KERNEL_INLINE void
btree_apply_set(const BtreeBatch *batch, int64_t j, const GpudsOp *op, const int nw)
{
	batch->w0[j] = op->e.w0;
	if (nw == 2)
		batch->w1[j] = op->e.w1;
	batch->t[j] = op->e.t;
	batch->deletes[j] = (uint8_t) (op->order & 1);
}

/* Is operation j on the same entry as the one before it? */
KERNEL_INLINE bool
btree_apply_overruled(const BtreeBatch *batch, int64_t j, const int nw)
{
	return j > 0 && batch->t[j] == batch->t[j - 1] && batch->w0[j] == batch->w0[j - 1] &&
		   (nw == 1 || batch->w1[j] == batch->w1[j - 1]);
}

/* How many entries operations from .. to - 1 add, when sum has become an exclusive sum. */
KERNEL_INLINE int64_t
btree_apply_net(const BtreeBatch *batch, int64_t from, int64_t to)
{
	uint64_t sum = batch->sum[to] - batch->sum[from];

	return (int64_t) (sum >> 32) - (int64_t) (uint32_t) sum;
}

/* The same modulo 2^32. */
KERNEL_INLINE uint32_t
btree_apply_net32(const BtreeBatch *batch, uint32_t from, uint32_t to)
{
	uint64_t sum = batch->sum[to] - batch->sum[from];

	return (uint32_t) (sum >> 32) - (uint32_t) sum;
}

/* First of n things in part q of k. */
KERNEL_INLINE int64_t
btree_part_start(int64_t q, int64_t n, int64_t k, bool last)
{
	if (q == 0 || q == k)
		return q == 0 ? 0 : n;
	if (last)
		return q * BTREE_FANOUT;
	return btree_spread(q, n, k);
}

/* Where a part of its change begins and ends. */
KERNEL_INLINE uint32_t
btree_part_range(const BtreeLevel *l, uint32_t part, int64_t *start, int64_t *end)
{
	uint32_t change = l->parts.change[part];
	uint32_t first = l->here.first[change];
	int64_t k = l->here.first[change + 1] - first;
	int64_t after = l->here.after[change];
	bool last = (l->here.place[change] & BTREE_LAST) != 0;

	*start = btree_part_start(part - first, after, k, last);
	*end = btree_part_start(part - first + 1, after, k, last);
	return change;
}

KERNEL_INLINE void
btree_part_set_separator(const BtreeParts *parts, uint32_t part, const GpudsEntry *e, const int nw)
{
	parts->w0[part] = e->w0;
	if (nw == 2)
		parts->w1[part] = e->w1;
	parts->t[part] = e->t;
}

#endif /* BTREE_APPLY_STEPS_H */
