/*-------------------------------------------------------------------------
 *
 * btree_probe.h
 *	  Reading a version of a tree on a CPU and on a GPU: descents, ranks, steps along
 *	  the leaves, and where an interval's entries are.
 *
 * A position is a place between entries: rank entries are before it.  It knows
 * its leaf and that leaf's parent, so that a step to a neighbour is a link in
 * seven of eight cases, and a selection by rank otherwise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_PROBE_H
#define BTREE_PROBE_H

#include "kernels/btree/btree_node.h"

typedef struct BtreePosition
{
	uint64_t rank;   /* of the leaf's first entry */
	BtreeRef leaf;   /* 0: the tree is empty */
	BtreeRef parent; /* 0: the leaf is the root */
	int at;          /* the leaf's place in its parent */
	int place;       /* 0 .. entries of the leaf, which is behind its last */
} BtreePosition;

/* The leaf in which x is or would be, without the place in it. */
KERNEL_INLINE void
btree_descend(const GpudsView *view, const GpudsEntry *x, BtreePosition *p, const int nw)
{
	p->rank = 0;
	p->leaf = view->root;
	p->parent = 0;
	p->at = 0;
	p->place = 0;
	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = btree_node(view->base, p->leaf);
		uint64_t link;

		p->at = btree_inner_rank(node, x, nw);
		p->parent = p->leaf;
		link = btree_inner_link(node, p->at);
		p->leaf = btree_link_ref(link);
		p->rank += btree_link_before(link);
	}
}

/* Before the first entry that is not before x. */
KERNEL_INLINE void
btree_lower_bound(const GpudsView *view, const GpudsEntry *x, BtreePosition *p, const int nw)
{
	btree_descend(view, x, p, nw);
	if (view->height > 0)
		p->place = btree_leaf_rank(btree_node(view->base, p->leaf), x, nw);
}

/* How many entries are before x. */
KERNEL_INLINE uint64_t
btree_rank(const GpudsView *view, const GpudsEntry *x, const int nw)
{
	BtreePosition p;

	btree_lower_bound(view, x, &p, nw);
	return p.rank + (uint64_t) p.place;
}

/* Before the entry of this rank, which must be there. */
KERNEL_INLINE void
btree_select(const GpudsView *view, uint64_t rank, BtreePosition *p)
{
	p->rank = 0;
	p->leaf = view->root;
	p->parent = 0;
	p->at = 0;
	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = btree_node(view->base, p->leaf);
		uint64_t link;

		p->at = btree_inner_select(node, rank - p->rank);
		p->parent = p->leaf;
		link = btree_inner_link(node, p->at);
		p->leaf = btree_link_ref(link);
		p->rank += btree_link_before(link);
	}
	p->place = (int) (rank - p->rank);
}

/* From a leaf of n entries to the start of the next; false: it is the last. */
KERNEL_INLINE bool
btree_next_leaf(const GpudsView *view, BtreePosition *p, int n)
{
	p->place = 0;
	if (p->rank + (uint64_t) n >= view->entries)
		return false;
	if (p->at + 1 < BTREE_FANOUT)
	{
		/* links that are not used are 0 */
		BtreeRef next = btree_link_ref(btree_inner_link(btree_node(view->base, p->parent), p->at + 1));

		if (next != 0)
		{
			p->at++;
			p->leaf = next;
			p->rank += (uint64_t) n;
			return true;
		}
	}
	btree_select(view, p->rank + (uint64_t) n, p);
	return true;
}

/* To the end of the leaf before; false: this one is the first. */
KERNEL_INLINE bool
btree_previous_leaf(const GpudsView *view, BtreePosition *p)
{
	if (p->rank == 0)
		return false;
	if (p->at > 0)
	{
		const uint64_t *parent = btree_node(view->base, p->parent);
		uint64_t link = btree_inner_link(parent, p->at - 1);

		p->place = (int) (btree_link_before(btree_inner_link(parent, p->at)) - btree_link_before(link));
		p->at--;
		p->leaf = btree_link_ref(link);
		p->rank -= (uint64_t) p->place;
	}
	else
	{
		btree_select(view, p->rank - 1, p);
		p->place++;
	}
	return true;
}

/*
 * Where an interval begins, and how many entries it has.  An interval that ends
 * in the leaf in which it begins takes one descent, another two.
 */
KERNEL_INLINE uint64_t
btree_locate(const GpudsView *view, const GpudsInterval *interval, BtreePosition *p, const int nw)
{
	GpudsEntry hi = entry_after(&interval->hi);
	const uint64_t *leaf;
	int to;

	if (view->height == 0 || entry_less(&interval->hi, &interval->lo))
	{
		p->leaf = 0;
		return 0;
	}
	btree_lower_bound(view, &interval->lo, p, nw);
	leaf = btree_node(view->base, p->leaf);
	to = btree_leaf_rank(leaf, &hi, nw);
	if (to == BTREE_FANOUT || leaf[nw * BTREE_FANOUT + to] == UINT64_MAX)
		return btree_rank(view, &hi, nw) - p->rank - (uint64_t) p->place;
	return (uint64_t) (to - p->place);
}

#endif /* BTREE_PROBE_H */
