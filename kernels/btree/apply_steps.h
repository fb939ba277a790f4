/*-------------------------------------------------------------------------
 *
 * btree_apply.h
 *	  Applying a batch of changes to the GPU's tree by path copying: the parts
 *	  of one operation, one changed node, one new node.
 *
 * Operations are sorted by entry; of several on one entry only the first counts.
 * Those that fall into the same leaf are a run.  What of a run has an effect
 * makes a change: the leaf is replaced by pieces, as many as its entries then
 * take, none if none is left.  From there on level by level: changes of
 * children of one node are a run, and that node's change.  Whatever is not above
 * a change is part of both versions.
 *
 * What lies at a given place of a piece follows from prefix sums, so every place
 * of every new node is found for itself, however long a run is.  The entries
 * before a child follow from what the operations before it have added: so
 * nothing has to be known of its neighbours.
 *
 * Things are spread over pieces evenly, but at the right edge of the tree all
 * pieces but the last are full, so that ascending inserts leave full nodes behind.
 *
 * The separator of the first piece is the one that its node had: what remains
 * of a change's range may begin higher, but nobody has to know.
 *
 * Levels from the tree's height on have one node that is not there (ref 0), the
 * parent of a root that has been replaced by several pieces.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_APPLY_STEPS_H
#define BTREE_APPLY_STEPS_H

#include "kernels/btree/build.h"

/* Threads that make a leaf or an inner node together, each some neighbouring places. */
#ifdef __CUDACC__
#define BTREE_LEAF_LANES 4
#define BTREE_INNER_LANES 8
#else
#define BTREE_LEAF_LANES 1
#define BTREE_INNER_LANES 1
#endif
#define BTREE_LEAF_PLACES (BTREE_FANOUT / BTREE_LEAF_LANES)
#define BTREE_INNER_PLACES (BTREE_FANOUT / BTREE_INNER_LANES)

#define BTREE_LEVELS (BTREE_MAX_HEIGHT + 1)

/* So few things are looked at one by one. */
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
	uint64_t *taken;  /* n + 1: pieces << 32 | changes of the runs before this one */
} BtreeBatch;

/* The nodes of one level that are replaced, from left to right. */
typedef struct BtreeChanges
{
	uint32_t *op;    /* first operation, one more: all operations */
	uint32_t *to;    /* leaves: end of the run's operations */
	uint32_t *first; /* first piece, one more: all pieces */
	uint32_t *after; /* entries or children of all its pieces */
	BtreeRef *node;
	BtreeRef *parent;
	uint8_t *place; /* btree_place */
} BtreeChanges;

/* The nodes that replace them. */
typedef struct BtreePieces
{
	uint64_t *w0; /* separators; not for the first piece of a change */
	uint64_t *w1;
	uint64_t *t;
	BtreeRef *ref;
	uint32_t *before; /* entries in the pieces before it of the same change */
	uint32_t *change;
} BtreePieces;

/* How many there are of a level, and what comes of it all. */
typedef struct BtreeCounts
{
	uint32_t changes[BTREE_LEVELS];
	uint32_t pieces[BTREE_LEVELS];
	uint32_t retired[BTREE_LEVELS + 1]; /* inner nodes of lower levels: replaced ... */
	uint32_t made[BTREE_LEVELS + 1];    /* ... and made */
	uint64_t sum;                       /* inserted << 32 | deleted */
	BtreeRef root;
	uint32_t height;
	uint32_t single; /* roots of one child, made and given up */
	uint32_t gone;   /* leaves replaced by none */
} BtreeCounts;

/*
 * The path of each operation: from level 1 on the node, the place of the one
 * below it, and the number of all below it; NULL: it is looked up again.
 */
typedef struct BtreePath
{
	BtreeRef *parent; /* (level - 1) * n + operation */
	uint8_t *place;   /* btree_place */
} BtreePath;

/* Making the pieces of a level. */
typedef struct BtreeLevel
{
	BtreeView view;
	BtreeBatch batch;
	BtreePath path;
	BtreeFree leaves; /* unused nodes */
	BtreeFree inners;
	BtreeRef *retired_leaves; /* where the replaced nodes go */
	BtreeRef *retired_inners;
	BtreeCounts *counts;
	BtreeChanges below; /* level - 1 */
	BtreePieces children;
	uint32_t *head; /* one more than changes below: how many runs begin before */
	uint32_t *run;  /* first change below of each run; one more */
	BtreeChanges here;
	BtreePieces pieces;
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

/* Set operation j of the sorted batch. */
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

/* How many entries operations from .. to - 1 add, when sum has been summed up. */
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

/* First of n things in piece q of k. */
KERNEL_INLINE int64_t
btree_piece_start(int64_t q, int64_t n, int64_t k, bool last)
{
	if (q == 0 || q == k)
		return q == 0 ? 0 : n;
	if (last)
		return q * BTREE_FANOUT;
	return btree_spread(q, n, k);
}

/*
 * Leaves, from operations.
 */

/*
 * The child of an inner node in which x is or would be, for a search that waits
 * for memory and nothing else: all that may be wanted is loaded at once.
 */
KERNEL_INLINE int
btree_apply_step(const uint64_t *node, const GpudsEntry *x, BtreeRef *ref, int *n, const int nw)
{
	uint64_t word[2 * BTREE_FANOUT];
	int at = 0;

	for (int i = 0; i < 2 * BTREE_FANOUT; i++)
		word[i] = node[i];
	*n = btree_header_n(word[0]);
	*ref = btree_link_ref(word[BTREE_LINKS]);
	for (int i = 1; i < BTREE_FANOUT; i++)
	{
		if (word[i] < x->w0 || (word[i] == x->w0 && btree_inner_tie(node, i, x, nw)))
		{
			at = i;
			*ref = btree_link_ref(word[BTREE_LINKS + i]);
		}
	}
	return at;
}

/* The place of x in a leaf, and the number of its entries; true: x is there. */
KERNEL_INLINE bool
btree_apply_leaf_place(const uint64_t *leaf, const GpudsEntry *x, int *place, int *n, const int nw)
{
	bool there = false;

	*place = *n = 0;
	for (int i = 0; i < BTREE_FANOUT; i++)
	{
		GpudsEntry e = btree_leaf_entry(leaf, i, nw);

		*n += e.t != UINT64_MAX;
		*place += entry_less(&e, x);
		there = there || entry_equal(&e, x);
	}
	return there;
}

/* Find the leaf of operation j, and what the operation does to it. */
KERNEL_INLINE void
btree_apply_find(const BtreeView *view, const BtreeBatch *batch, const BtreePath *path, int64_t j,
				 const int nw)
{
	GpudsEntry e = btree_batch_entry(batch, j, nw);
	BtreeRef ref = view->root;
	BtreeRef parent = 0;
	uint64_t effect = 0;
	bool last = true;
	bool there = false;
	int at = 0;
	int n = 0;
	int place = 0;

	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = btree_node(view->base, ref);
		int children;

		parent = ref;
		if (path->parent)
		{
			at = btree_apply_step(node, &e, &ref, &children, nw);
		}
		else
		{
			uint64_t link;

			/* neighbours read the same nodes: it takes fewer instructions */
			at = btree_inner_rank(node, &e, nw);
			children = btree_inner_n(node);
			link = btree_inner_link(node, at);
			ref = btree_link_ref(link);
			if (level == 1 && at + 1 < children)
				n = (int) (btree_link_before(btree_inner_link(node, at + 1)) - btree_link_before(link));
		}
		if (at + 1 < children)
			last = false;
		if (path->parent)
		{
			path->parent[(level - 1) * batch->n + j] = parent;
			path->place[(level - 1) * batch->n + j] = btree_place(at, children, false);
		}
	}
	if (view->height > 0 && path->parent)
	{
		there = btree_apply_leaf_place(btree_node(view->base, ref), &e, &place, &n, nw);
	}
	else if (view->height > 0)
	{
		const uint64_t *leaf = btree_node(view->base, ref);

		if (n == 0)
			n = btree_leaf_n(leaf, nw);
		place = btree_leaf_rank(leaf, &e, nw);
		if (place < n)
		{
			GpudsEntry found = btree_leaf_entry(leaf, place, nw);

			there = entry_equal(&found, &e);
		}
	}
	if (btree_apply_overruled(batch, j, nw))
	{
		/* it comes behind its entry, whether that stays or not */
		place += there ? 1 : 0;
		there = false;
	}
	else if (batch->deletes[j])
	{
		effect = there ? BTREE_DELETED : 0;
	}
	else
	{
		effect = there ? 0 : BTREE_INSERTED;
	}
	batch->leaf[j] = ref;
	batch->parent[j] = parent;
	batch->place[j] = btree_place(at, n, last);
	batch->order[j] = (uint8_t) (2 * place + (there ? 1 : 0));
	batch->sum[j] = effect;
}

/* Does a run begin with operation j?  j is one of 0 .. n. */
KERNEL_INLINE void
btree_apply_head(const BtreeBatch *batch, int64_t j)
{
	if (j < batch->n)
	{
		batch->head[j] = j == 0 || batch->leaf[j - 1] != batch->leaf[j] ? 1 : 0;
	}
	else
	{
		batch->head[j] = 0;
		batch->sum[j] = 0;
	}
}

/* When head has been summed up: list the run that begins with operation j. */
KERNEL_INLINE void
btree_apply_list_run(const BtreeBatch *batch, int64_t j)
{
	if (batch->head[j + 1] != batch->head[j])
		batch->run[batch->head[j]] = (uint32_t) j;
	if (j == batch->n - 1)
		batch->run[batch->head[j + 1]] = (uint32_t) batch->n;
}

/* Entries that the leaf of run r has afterwards; -1: nothing changes. */
KERNEL_INLINE int64_t
btree_apply_after(const BtreeBatch *batch, int64_t r)
{
	uint32_t from = batch->run[r];
	uint32_t to = batch->run[r + 1];

	if (batch->sum[from] == batch->sum[to])
		return -1;
	return btree_place_n(batch->place[from]) + btree_apply_net(batch, from, to);
}

/* When sum has been summed up: what run r takes.  r is one of 0 .. n. */
KERNEL_INLINE void
btree_apply_plan(const BtreeBatch *batch, int64_t r)
{
	int64_t after = r < (int64_t) batch->head[batch->n] ? btree_apply_after(batch, r) : -1;

	batch->taken[r] = after >= 0 ? (uint64_t) btree_nodes(after) << 32 | 1 : 0;
}

/*
 * When taken has been summed up: operation j lists a piece of its run, the first
 * one also the change.  A run has at most one piece more than operations.
 */
KERNEL_INLINE void
btree_apply_list_pieces(const BtreeLevel *l, int64_t j)
{
	const BtreeBatch *batch = &l->batch;
	const BtreeChanges *here = &l->here;
	int64_t r = (int64_t) batch->head[j + 1] - 1;
	uint32_t from = batch->run[r];
	uint32_t change = (uint32_t) batch->taken[r];
	uint32_t first = (uint32_t) (batch->taken[r] >> 32);
	uint32_t end = (uint32_t) (batch->taken[r + 1] >> 32);
	uint32_t q = (uint32_t) (j - from) + 1;

	if (j == 0)
	{
		uint64_t all = batch->taken[batch->head[batch->n]];

		l->counts->changes[0] = (uint32_t) all;
		l->counts->pieces[0] = (uint32_t) (all >> 32);
		l->counts->sum = batch->sum[batch->n];
		here->op[(uint32_t) all] = (uint32_t) batch->n;
		here->first[(uint32_t) all] = (uint32_t) (all >> 32);
	}
	if (batch->sum[from] == batch->sum[batch->run[r + 1]])
		return;
	if (j == from)
	{
		here->op[change] = from;
		here->to[change] = batch->run[r + 1];
		here->first[change] = first;
		here->after[change] = (uint32_t) btree_apply_after(batch, r);
		here->node[change] = batch->leaf[from];
		here->parent[change] = batch->parent[from];
		here->place[change] = batch->place[from];
		l->retired_leaves[change] = batch->leaf[from];
		if (first < end)
			l->pieces.change[first] = change;
	}
	if (first + q < end)
		l->pieces.change[first + q] = change;
}

/* How many entries of a change's pieces are before operation j. */
KERNEL_INLINE uint32_t
btree_apply_before(const BtreeBatch *batch, uint32_t from, uint32_t j)
{
	return batch->order[j] / 2 + btree_apply_net32(batch, from, j);
}

/* The first operation of a change that more than at entries of its pieces are before. */
KERNEL_INLINE uint32_t
btree_apply_seek(const BtreeBatch *batch, uint32_t from, uint32_t to, uint32_t at)
{
	uint32_t lo = from;

	while (lo + BTREE_NEAR < to)
	{
		uint32_t middle = lo + (to - lo) / 2;

		if (btree_apply_before(batch, from, middle) > at)
			to = middle;
		else
			lo = middle + 1;
	}
	while (lo < to && btree_apply_before(batch, from, lo) <= at)
		lo++;
	return lo;
}

/* Entry number at of a change's pieces; op is what btree_apply_seek finds. */
KERNEL_INLINE GpudsEntry
btree_apply_entry(const BtreeLevel *l, const uint64_t *leaf, uint32_t from, uint32_t op, uint32_t at,
				  const int nw)
{
	const BtreeBatch *batch = &l->batch;

	if (op > from && batch->sum[op] - batch->sum[op - 1] == BTREE_INSERTED &&
		btree_apply_before(batch, from, op - 1) == at)
		return btree_batch_entry(batch, op - 1, nw);
	return btree_leaf_entry(leaf, (int) (at - btree_apply_net32(batch, from, op)), nw);
}

/* Where a piece of its change begins and ends. */
KERNEL_INLINE uint32_t
btree_piece_range(const BtreeLevel *l, uint32_t piece, int64_t *start, int64_t *end)
{
	uint32_t change = l->pieces.change[piece];
	uint32_t first = l->here.first[change];
	int64_t k = l->here.first[change + 1] - first;
	int64_t after = l->here.after[change];
	bool last = (l->here.place[change] & BTREE_LAST) != 0;

	*start = btree_piece_start(piece - first, after, k, last);
	*end = btree_piece_start(piece - first + 1, after, k, last);
	return change;
}

KERNEL_INLINE void
btree_piece_set_separator(const BtreePieces *pieces, uint32_t piece, const GpudsEntry *e, const int nw)
{
	pieces->w0[piece] = e->w0;
	if (nw == 2)
		pieces->w1[piece] = e->w1;
	pieces->t[piece] = e->t;
}

/* What the level above has to know of a new leaf. */
KERNEL_INLINE void
btree_apply_piece(const BtreeLevel *l, uint32_t piece, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_piece_range(l, piece, &start, &end);

	if (start > 0)
	{
		const uint64_t *leaf = btree_node(l->view.base, l->here.node[change]);
		uint32_t from = l->here.op[change];
		uint32_t to = l->here.to[change];
		uint32_t at = (uint32_t) start;
		GpudsEntry left = btree_apply_entry(l, leaf, from, btree_apply_seek(&l->batch, from, to, at - 1),
											at - 1, nw);
		GpudsEntry right = btree_apply_entry(l, leaf, from, btree_apply_seek(&l->batch, from, to, at), at,
											 nw);
		GpudsEntry separator = btree_between(&left, &right);

		btree_piece_set_separator(&l->pieces, piece, &separator, nw);
	}
	l->pieces.ref[piece] = btree_free_take(&l->leaves, piece);
	l->pieces.before[piece] = (uint32_t) start;
}

/* Make a lane's places of a leaf. */
KERNEL_INLINE void
btree_apply_leaf(const BtreeLevel *l, unsigned char *base, uint32_t piece, int lane, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_piece_range(l, piece, &start, &end);
	uint64_t *leaf = btree_node(base, btree_free_take(&l->leaves, piece));
	const uint64_t *old = btree_node(base, l->here.node[change]);
	uint32_t from = l->here.op[change];
	uint32_t to = l->here.to[change];
	uint32_t op = btree_apply_seek(&l->batch, from, to,
								   (uint32_t) start + (uint32_t) (lane * BTREE_LEAF_PLACES));

	for (int p = lane * BTREE_LEAF_PLACES; p < (lane + 1) * BTREE_LEAF_PLACES; p++)
	{
		uint32_t at = (uint32_t) (start + p);

		if (at < end)
		{
			GpudsEntry e;

			while (op < to && btree_apply_before(&l->batch, from, op) <= at)
				op++;
			e = btree_apply_entry(l, old, from, op, at, nw);
			btree_leaf_set(leaf, p, &e, nw);
		}
		else
		{
			btree_leaf_clear(leaf, p, nw);
		}
	}
}

/*
 * Inner levels, from the level below.
 */

/* Note how many nodes of this level are replaced, and how many are made. */
KERNEL_INLINE void
btree_level_set_changes(const BtreeLevel *l, uint32_t n)
{
	l->counts->changes[l->level] = n;
	l->counts->retired[l->level + 1] = l->counts->retired[l->level] +
									   (l->level > 0 && l->level < l->view.height ? n : 0);
}

KERNEL_INLINE void
btree_level_set_pieces(const BtreeLevel *l, uint32_t n)
{
	l->counts->pieces[l->level] = n;
	l->counts->made[l->level + 1] = l->counts->made[l->level] + (l->level > 0 ? n : 0);
}

/* Does a run begin with change c below?  c goes up to the number of changes, at least. */
KERNEL_INLINE void
btree_level_head(const BtreeLevel *l, int64_t c)
{
	l->head[c] = c < l->counts->changes[l->level - 1] &&
						 (c == 0 || l->below.parent[c - 1] != l->below.parent[c])
					 ? 1
					 : 0;
}

/* When head has been summed up: list the run that begins with change c below. */
KERNEL_INLINE void
btree_level_list_run(const BtreeLevel *l, int64_t c)
{
	uint32_t n = l->counts->changes[l->level - 1];

	if (c >= n)
		return;
	if (l->head[c + 1] != l->head[c])
		l->run[l->head[c]] = (uint32_t) c;
	if (c == n - 1)
	{
		l->run[l->head[n]] = n;
		btree_level_set_changes(l, l->head[n]);
	}
}

/* The parent of the node of this level in which operation j is, and its place there. */
KERNEL_INLINE BtreeRef
btree_level_parent(const BtreeLevel *l, int64_t j, int *place, const int nw)
{
	BtreeRef ref = l->view.root;
	BtreeRef parent = 0;

	*place = 0;
	if (l->level >= l->view.height - 1)
		return 0;
	if (l->path.parent)
	{
		*place = btree_place_of(l->path.place[l->level * l->batch.n + j]);
		return l->path.parent[l->level * l->batch.n + j];
	}

	GpudsEntry e = btree_batch_entry(&l->batch, j, nw);

	for (int level = l->view.height - 1; level > l->level; level--)
	{
		const uint64_t *node = btree_node(l->view.base, ref);
		int i = btree_inner_rank(node, &e, nw);

		*place = i;
		parent = ref;
		ref = btree_link_ref(btree_inner_link(node, i));
	}
	return parent;
}

/* The change of run r: what it takes.  r goes up to the number of runs, at least. */
KERNEL_INLINE void
btree_level_plan(const BtreeLevel *l, int64_t r, const int nw)
{
	const BtreeChanges *below = &l->below;
	const BtreeChanges *here = &l->here;
	uint32_t n = l->counts->changes[l->level];
	int place;

	here->first[r] = 0;
	if (r == n)
		here->op[r] = (uint32_t) l->batch.n;
	if (r < n)
	{
		uint32_t from = l->run[r];
		uint32_t to = l->run[r + 1];
		uint32_t j = below->op[from];
		BtreeRef node = below->parent[from];
		int64_t after = 1;

		if (node != 0 && l->path.parent)
			after = btree_place_n(l->path.place[(l->level - 1) * l->batch.n + j]);
		else if (node != 0)
			after = btree_inner_n(btree_node(l->view.base, node));
		after += (int64_t) (below->first[to] - below->first[from]) - (int64_t) (to - from);
		here->op[r] = j;
		here->first[r] = (uint32_t) btree_nodes(after);
		here->after[r] = (uint32_t) after;
		here->node[r] = node;
		here->parent[r] = btree_level_parent(l, j, &place, nw);
		here->place[r] = btree_place(place, 0, (below->place[to - 1] & BTREE_LAST) != 0);
		if (node != 0)
			l->retired_inners[l->counts->retired[l->level] + (uint32_t) r] = node;
	}
}

/*
 * When first has been summed up: number i lists a piece; for i < changes the
 * first one of change i, then for piece i - changes below one of the others.  A
 * run has at most one piece more than there are pieces below.
 */
KERNEL_INLINE void
btree_level_list_pieces(const BtreeLevel *l, int64_t i)
{
	const BtreeChanges *here = &l->here;
	uint32_t n = l->counts->changes[l->level];
	uint32_t change;
	uint32_t q = 0;

	if (i == 0)
		btree_level_set_pieces(l, here->first[n]);
	if (i < n)
	{
		change = (uint32_t) i;
	}
	else
	{
		uint32_t child = (uint32_t) (i - n);

		if (child >= l->counts->pieces[l->level - 1])
			return;
		change = l->head[l->children.change[child] + 1] - 1;
		q = child - l->below.first[l->run[change]] + 1;
	}
	if (here->first[change] + q < here->first[change + 1])
		l->pieces.change[here->first[change] + q] = change;
}

/* A child of a change's pieces. */
typedef struct BtreeChild
{
	GpudsEntry separator;
	BtreeRef ref;
	uint32_t before; /* entries in the children of the change's pieces before it */
} BtreeChild;

/* Number of the first child of the pieces of change c below, counted from its run's start. */
KERNEL_INLINE uint32_t
btree_level_place(const BtreeChanges *below, uint32_t c, uint32_t from, uint32_t first)
{
	return (uint32_t) btree_place_of(below->place[c]) + (below->first[c] - first) - (c - from);
}

/* The first change below of a run whose pieces are all behind child number at. */
KERNEL_INLINE uint32_t
btree_level_seek(const BtreeChanges *below, uint32_t from, uint32_t to, uint32_t at)
{
	uint32_t first = below->first[from];
	uint32_t lo = from;

	while (lo + BTREE_NEAR < to)
	{
		uint32_t middle = lo + (to - lo) / 2;

		if (btree_level_place(below, middle, from, first) > at)
			to = middle;
		else
			lo = middle + 1;
	}
	while (lo < to && btree_level_place(below, lo, from, first) <= at)
		lo++;
	return lo;
}

/* Child number at of the pieces of a change; lo is what btree_level_seek finds. */
KERNEL_INLINE BtreeChild
btree_level_child(const BtreeLevel *l, uint32_t change, uint32_t lo, uint32_t at, const int nw)
{
	const BtreeChanges *below = &l->below;
	uint32_t from = l->run[change];
	uint32_t first = below->first[from];
	const uint64_t *node = btree_node(l->view.base, l->here.node[change]);
	uint32_t place = at;
	BtreeChild child;

	if (lo > from)
	{
		uint32_t c = lo - 1;
		int old = btree_place_of(below->place[c]);
		uint32_t q = at - btree_level_place(below, c, from, first);
		uint32_t k = below->first[c + 1] - below->first[c];

		if (q < k)
		{
			uint32_t piece = below->first[c] + q;

			if (q == 0)
			{
				child.separator.w0 = child.separator.w1 = child.separator.t = 0;
				if (old > 0)
					child.separator = btree_inner_separator(node, old, nw);
			}
			else
			{
				child.separator.w0 = l->children.w0[piece];
				child.separator.w1 = nw == 2 ? l->children.w1[piece] : 0;
				child.separator.t = l->children.t[piece];
			}
			child.ref = l->children.ref[piece];
			child.before = l->children.before[piece] +
						   btree_apply_net32(&l->batch, below->op[from], below->op[c]);
			if (old > 0)
				child.before += (uint32_t) btree_link_before(btree_inner_link(node, old));
			return child;
		}
		place = (uint32_t) old + 1 + (q - k);
	}

	uint64_t link = btree_inner_link(node, (int) place);

	child.separator = btree_inner_separator(node, (int) place, nw);
	child.ref = btree_link_ref(link);
	child.before = (uint32_t) btree_link_before(link) +
				   btree_apply_net32(&l->batch, below->op[from], below->op[lo]);
	return child;
}

KERNEL_INLINE BtreeChild
btree_level_front(const BtreeLevel *l, uint32_t change, uint32_t at, const int nw)
{
	uint32_t lo = btree_level_seek(&l->below, l->run[change], l->run[change + 1], at);

	return btree_level_child(l, change, lo, at, nw);
}

/* What the level above has to know of a new inner node. */
KERNEL_INLINE void
btree_level_piece(const BtreeLevel *l, uint32_t piece, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_piece_range(l, piece, &start, &end);

	l->pieces.before[piece] = 0;
	if (start > 0)
	{
		BtreeChild front = btree_level_front(l, change, (uint32_t) start, nw);

		btree_piece_set_separator(&l->pieces, piece, &front.separator, nw);
		l->pieces.before[piece] = front.before;
	}
	l->pieces.ref[piece] = btree_free_take(&l->inners, l->counts->made[l->level] + piece);
}

/*
 * Make a lane's places of an inner node; returns the details of their
 * separators.  The header is to be set with those of all lanes.
 */
KERNEL_INLINE unsigned
btree_level_inner(const BtreeLevel *l, unsigned char *base, uint32_t piece, int lane, int *n, const int nw)
{
	int64_t start, end;
	uint32_t change = btree_piece_range(l, piece, &start, &end);
	uint64_t *node = btree_node(base, btree_free_take(&l->inners, l->counts->made[l->level] + piece));
	uint32_t before = start > 0 ? btree_level_front(l, change, (uint32_t) start, nw).before : 0;
	uint32_t from = l->run[change];
	uint32_t to = l->run[change + 1];
	uint32_t first = l->below.first[from];
	uint32_t lo = btree_level_seek(&l->below, from, to,
								   (uint32_t) start + (uint32_t) (lane * BTREE_INNER_PLACES));
	unsigned details = 0;

	*n = (int) (end - start);
	for (int p = lane * BTREE_INNER_PLACES; p < (lane + 1) * BTREE_INNER_PLACES; p++)
	{
		uint32_t at = (uint32_t) (start + p);

		if (p < *n)
		{
			BtreeChild child;

			while (lo < to && btree_level_place(&l->below, lo, from, first) <= at)
				lo++;
			child = btree_level_child(l, change, lo, at, nw);
			btree_inner_set(node, p, &child.separator, child.ref, child.before - before, nw);
			if (p > 0 && (child.separator.w1 | child.separator.t) != 0)
				details |= 1u << p;
		}
		else
		{
			btree_inner_clear(node, p);
		}
	}
	return details;
}

/*
 * All that is to be known of this level if only the node on the path of
 * operation j changes, by one child that is replaced by one: it gets one piece.
 * So it is on all levels above it, which can be done at the same time; retired
 * and made are what the levels below this one have replaced and made.
 */
KERNEL_INLINE void
btree_level_single(const BtreeLevel *l, uint32_t j, uint32_t retired, uint32_t made, const int nw)
{
	const BtreeChanges *here = &l->here;
	int64_t path = (l->level - 1) * l->batch.n + j;
	int place;

	l->head[0] = 0;
	l->head[1] = 1;
	l->run[0] = 0;
	l->run[1] = 1;
	here->op[0] = j;
	here->op[1] = (uint32_t) l->batch.n;
	here->first[0] = 0;
	here->first[1] = 1;
	here->after[0] = (uint32_t) btree_place_n(l->path.place[path]);
	here->node[0] = l->path.parent[path];
	here->parent[0] = btree_level_parent(l, j, &place, nw);
	here->place[0] = btree_place(place, 0, false);
	l->pieces.change[0] = 0;
	l->pieces.before[0] = 0;
	l->pieces.ref[0] = btree_free_take(&l->inners, made);
	l->retired_inners[retired] = here->node[0];
	l->counts->changes[l->level] = 1;
	l->counts->pieces[l->level] = 1;
	l->counts->retired[l->level + 1] = retired + 1;
	l->counts->made[l->level + 1] = made + 1;
}

/* The pieces of the top level are there: what is the root? */
KERNEL_INLINE void
btree_level_finish(const BtreeLevel *l)
{
	BtreeCounts *counts = l->counts;
	BtreeRef root = 0;
	uint32_t height = 0;
	uint32_t single = 0;

	if (counts->pieces[l->level] > 0)
	{
		root = l->pieces.ref[0];
		height = (uint32_t) l->level + 1;
	}
	while (height > 1 && btree_inner_n(btree_node(l->view.base, root)) == 1)
	{
		uint32_t at = counts->retired[l->level + 1] + single++;

		l->retired_inners[at] = root;
		root = btree_link_ref(btree_inner_link(btree_node(l->view.base, root), 0));
		height--;
	}
	counts->root = root;
	counts->height = height;
	counts->single = single;
}

#endif /* BTREE_APPLY_STEPS_H */
