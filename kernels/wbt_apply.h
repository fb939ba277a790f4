/*-------------------------------------------------------------------------
 *
 * wbt_apply.h
 *	  Applying a large batch of changes to the GPU's tree: the parts of one
 *	  operation, one run and one leaf.
 *
 * Operations are sorted by entry; of several on one entry only the first counts.
 * Those that fall into the same leaf are a run.  Where an entry of the leaf or of
 * the run comes to lie among the entries of the leaf's successors follows from
 * its place in the leaf and from how many operations before it in the run have
 * an effect: so all entries are put in their places independently of each
 * other, however long a run is.
 *
 * A leaf that changes is replaced by pieces: as many leaves as its entries
 * take, none if none is left.  Entries are spread over them evenly, but in the
 * last leaf of the tree all pieces but the last are full, so that ascending
 * inserts leave full leaves behind.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WBT_APPLY_H
#define WBT_APPLY_H

#include "kernels/wbt_build.h"

/* Bits of WbtBatch.kind. */
#define WBT_DELETES 1
#define WBT_OVERRULED 2 /* not the first on its entry */

/* What an operation adds to WbtBatch.sum. */
#define WBT_INSERTED (UINT64_C(1) << 32)
#define WBT_DELETED UINT64_C(1)

typedef struct WbtBatch
{
	uint64_t *w0;
	uint64_t *w1; /* trees of two key words only */
	uint64_t *t;
	uint8_t *kind;
	uint32_t *leaf; /* number of the leaf in the tree, from the left */
	uint8_t *order; /* 2 * entries of the leaf before the operation's, + 1 if it is there */
	uint32_t *head; /* n + 1: how many runs begin before this operation */
	uint64_t *sum;  /* n + 1: what the operations before this one have inserted and deleted */
	uint32_t *run;  /* first operation of each run */
	int64_t n;
} WbtBatch;

/* Number of the first child of each node of a level, counted in the level below. */
typedef struct WbtStarts
{
	const uint32_t *level[WBT_MAX_HEIGHT]; /* from level 1 */
} WbtStarts;

/* A run and what becomes of its leaf. */
typedef struct WbtRun
{
	int64_t from; /* operations */
	int64_t to;
	uint32_t leaf;
	bool changes;
	bool last;      /* the leaf is the last of the tree */
	int64_t before; /* entries of the leaf */
	int64_t after;  /* ... and of its pieces */
	int64_t pieces;
} WbtRun;

GK_INLINE GkEntry
wbt_batch_entry(const WbtBatch *batch, int64_t j, const int nw)
{
	GkEntry e;

	e.w0 = batch->w0[j];
	e.w1 = nw == 2 ? batch->w1[j] : 0;
	e.t = batch->t[j];
	return e;
}

/* Take operation j out of the order that it was sorted into. */
GK_INLINE void
wbt_apply_gather(const WbtBatch *batch, int64_t j, const GkOp *op, const int nw)
{
	batch->w0[j] = op->e.w0;
	if (nw == 2)
		batch->w1[j] = op->e.w1;
	batch->t[j] = op->e.t;
	batch->kind[j] = (uint8_t) (op->order & 1);
}

/* Is operation j on the same entry as the one before it? */
GK_INLINE bool
wbt_apply_overruled(const WbtBatch *batch, int64_t j, const int nw)
{
	return j > 0 && batch->t[j] == batch->t[j - 1] && batch->w0[j] == batch->w0[j - 1] &&
		   (nw == 1 || batch->w1[j] == batch->w1[j - 1]);
}

/* Find the leaf of operation j, and what the operation does to it. */
GK_INLINE void
wbt_apply_find(const WbtView *view, const WbtStarts *starts, const WbtBatch *batch, int64_t j, const int nw)
{
	GkEntry e = wbt_batch_entry(batch, j, nw);
	WbtRef ref = view->root;
	uint32_t number = 0;
	uint64_t effect = 0;
	bool there = false;
	int place = 0;

	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = wbt_node(view->base, ref);
		int i = wbt_inner_rank(node, &e, nw);

		number = starts->level[level][number] + (uint32_t) i;
		ref = wbt_link_ref(wbt_inner_link(node, i));
	}
	if (view->height > 0)
	{
		const uint64_t *leaf = wbt_node(view->base, ref);

		place = wbt_leaf_rank(leaf, &e, nw);
		if (place < WBT_FANOUT)
		{
			GkEntry at = wbt_leaf_entry(leaf, place, nw);

			there = gk_equal(&at, &e);
		}
	}
	if (!wbt_apply_overruled(batch, j, nw))
	{
		if (batch->kind[j] & WBT_DELETES)
			effect = there ? WBT_DELETED : 0;
		else
			effect = there ? 0 : WBT_INSERTED;
	}
	batch->leaf[j] = number;
	batch->order[j] = (uint8_t) (2 * place + (there ? 1 : 0));
	batch->sum[j] = effect;
}

/* How many entries operations from .. to - 1 add, when sum has been summed up. */
GK_INLINE int64_t
wbt_apply_net(const WbtBatch *batch, int64_t from, int64_t to)
{
	uint64_t sum = batch->sum[to] - batch->sum[from];

	return (int64_t) (sum >> 32) - (int64_t) (uint32_t) sum;
}

/* Run r; leaves are those of the tree before the change. */
GK_INLINE WbtRun
wbt_apply_run(const WbtBatch *batch, const WbtList *leaves, int64_t r)
{
	WbtRun run;

	run.from = batch->run[r];
	run.to = r + 1 < batch->head[batch->n] ? batch->run[r + 1] : batch->n;
	run.leaf = batch->leaf[run.from];
	run.changes = batch->sum[run.to] != batch->sum[run.from];
	run.last = run.leaf == leaves->n - 1;
	run.before = leaves->before[run.leaf + 1] - leaves->before[run.leaf];
	run.after = run.before + wbt_apply_net(batch, run.from, run.to);
	run.pieces = wbt_nodes(run.after);
	return run;
}

/* First of a run's entries in piece q. */
GK_INLINE int64_t
wbt_piece_start(const WbtRun *run, int64_t q)
{
	if (run->last)
		return q < run->pieces ? q * WBT_FANOUT : run->after;
	return wbt_spread(q, run->after, run->pieces);
}

/* The piece that a run's entry number at comes to lie in. */
GK_INLINE int64_t
wbt_piece_of(const WbtRun *run, int64_t at)
{
	return run->last ? at / WBT_FANOUT : wbt_spread_node(at, run->after, run->pieces);
}

/*
 * Where entry i of the run's leaf comes to lie among the entries of the
 * pieces, -1: it is deleted.
 */
GK_INLINE int64_t
wbt_apply_place_old(const WbtBatch *batch, const WbtRun *run, int i)
{
	int64_t lo = run->from;
	int64_t hi = run->to;

	/* the first operation that is not on an entry before it */
	while (lo < hi)
	{
		int64_t middle = lo + (hi - lo) / 2;

		if (batch->order[middle] < 2 * i + 1)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo < run->to && batch->order[lo] == 2 * i + 1 &&
		(uint32_t) (batch->sum[lo + 1] - batch->sum[lo]) != 0)
		return -1;
	return i + wbt_apply_net(batch, run->from, lo);
}

/* Where the entry of operation j comes to lie, -1: it is not inserted. */
GK_INLINE int64_t
wbt_apply_place_new(const WbtBatch *batch, const WbtRun *run, int64_t j)
{
	if (batch->sum[j + 1] - batch->sum[j] != WBT_INSERTED)
		return -1;
	return batch->order[j] / 2 + wbt_apply_net(batch, run->from, j);
}

/*
 * Put the run's entry number at into its piece; refs are taken from a stack,
 * from number first on.  Returns the piece, if the entry is its first, else -1.
 */
GK_INLINE int64_t
wbt_apply_put(unsigned char *base, const WbtRun *run, int64_t at, const GkEntry *e, const WbtFree *free,
			  uint32_t first, const int nw)
{
	int64_t piece = wbt_piece_of(run, at);
	int64_t start = wbt_piece_start(run, piece);
	int64_t end = wbt_piece_start(run, piece + 1);
	uint64_t *leaf = wbt_node(base, wbt_free_take(free, first + (uint32_t) piece));

	wbt_leaf_set(leaf, (int) (at - start), e, nw);
	if (at == end - 1)
	{
		for (int i = (int) (end - start); i < WBT_FANOUT; i++)
			wbt_leaf_clear(leaf, i, nw);
	}
	return at == start ? piece : -1;
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

#endif /* WBT_APPLY_H */
