/*-------------------------------------------------------------------------
 *
 * wbt_probe.h
 *	  Reading a version of the GPU's tree: descents, ranks, steps along the
 *	  leaves, and where an interval's entries are.
 *
 * A position is a place between entries: rank entries are before it.  It knows
 * its leaf and that leaf's parent, so that a step to a neighbour is a link in
 * seven of eight cases, and a selection by rank otherwise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef WBT_PROBE_H
#define WBT_PROBE_H

#include "kernels/wbt_node.h"

typedef struct WbtPosition
{
	uint64_t rank; /* of the leaf's first entry */
	WbtRef leaf;   /* 0: the tree is empty */
	WbtRef parent; /* 0: the leaf is the root */
	int at;        /* the leaf's place in its parent */
	int place;     /* 0 .. entries of the leaf, which is behind its last */
} WbtPosition;

/* The leaf in which x is or would be, without the place in it. */
GK_INLINE void
wbt_descend(const WbtView *view, const GkEntry *x, WbtPosition *p, const int nw)
{
	p->rank = 0;
	p->leaf = view->root;
	p->parent = 0;
	p->at = 0;
	p->place = 0;
	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = wbt_node(view->base, p->leaf);
		uint64_t link;

		p->at = wbt_inner_rank(node, x, nw);
		p->parent = p->leaf;
		link = wbt_inner_link(node, p->at);
		p->leaf = wbt_link_ref(link);
		p->rank += wbt_link_before(link);
	}
}

/* Before the first entry that is not before x. */
GK_INLINE void
wbt_lower_bound(const WbtView *view, const GkEntry *x, WbtPosition *p, const int nw)
{
	wbt_descend(view, x, p, nw);
	if (view->height > 0)
		p->place = wbt_leaf_rank(wbt_node(view->base, p->leaf), x, nw);
}

/* How many entries are before x. */
GK_INLINE uint64_t
wbt_rank(const WbtView *view, const GkEntry *x, const int nw)
{
	WbtPosition p;

	wbt_lower_bound(view, x, &p, nw);
	return p.rank + (uint64_t) p.place;
}

/* Before the entry of this rank, which must be there. */
GK_INLINE void
wbt_select(const WbtView *view, uint64_t rank, WbtPosition *p)
{
	p->rank = 0;
	p->leaf = view->root;
	p->parent = 0;
	p->at = 0;
	for (int level = view->height - 1; level > 0; level--)
	{
		const uint64_t *node = wbt_node(view->base, p->leaf);
		uint64_t link;

		p->at = wbt_inner_select(node, rank - p->rank);
		p->parent = p->leaf;
		link = wbt_inner_link(node, p->at);
		p->leaf = wbt_link_ref(link);
		p->rank += wbt_link_before(link);
	}
	p->place = (int) (rank - p->rank);
}

/* From a leaf of n entries to the start of the next; false: it is the last. */
GK_INLINE bool
wbt_next_leaf(const WbtView *view, WbtPosition *p, int n)
{
	p->place = 0;
	if (p->rank + (uint64_t) n >= view->entries)
		return false;
	if (p->at + 1 < WBT_FANOUT)
	{
		/* links that are not used are 0 */
		WbtRef next = wbt_link_ref(wbt_inner_link(wbt_node(view->base, p->parent), p->at + 1));

		if (next != 0)
		{
			p->at++;
			p->leaf = next;
			p->rank += (uint64_t) n;
			return true;
		}
	}
	wbt_select(view, p->rank + (uint64_t) n, p);
	return true;
}

/* To the end of the leaf before; false: this one is the first. */
GK_INLINE bool
wbt_previous_leaf(const WbtView *view, WbtPosition *p)
{
	if (p->rank == 0)
		return false;
	if (p->at > 0)
	{
		const uint64_t *parent = wbt_node(view->base, p->parent);
		uint64_t link = wbt_inner_link(parent, p->at - 1);

		p->place = (int) (wbt_link_before(wbt_inner_link(parent, p->at)) - wbt_link_before(link));
		p->at--;
		p->leaf = wbt_link_ref(link);
		p->rank -= (uint64_t) p->place;
	}
	else
	{
		wbt_select(view, p->rank - 1, p);
		p->place++;
	}
	return true;
}

/*
 * Where an interval begins, and how many entries it has.  An interval that ends
 * in the leaf in which it begins takes one descent, another two.
 */
GK_INLINE uint64_t
wbt_locate(const WbtView *view, const GkInterval *interval, WbtPosition *p, const int nw)
{
	GkEntry hi = wbt_after(&interval->hi);
	const uint64_t *leaf;
	int to;

	if (view->height == 0 || gk_less(&interval->hi, &interval->lo))
	{
		p->leaf = 0;
		return 0;
	}
	wbt_lower_bound(view, &interval->lo, p, nw);
	leaf = wbt_node(view->base, p->leaf);
	to = wbt_leaf_rank(leaf, &hi, nw);
	if (to == WBT_FANOUT || leaf[nw * WBT_FANOUT + to] == UINT64_MAX)
		return wbt_rank(view, &hi, nw) - p->rank - (uint64_t) p->place;
	return (uint64_t) (to - p->place);
}

/*
 * Interval i of a scan, less what the scan has been through of it already;
 * false: nothing is left of it.  first is the interval that the scan enters
 * first: next forward, next - 1 backward.
 */
GK_INLINE bool
wbt_scan_interval(const GkScan *scan, int64_t i, bool forward, GkInterval *interval)
{
	*interval = gk_scan_interval(scan, i);
	if (scan->inside && i == (forward ? scan->next : scan->next - 1))
	{
		if (forward)
		{
			interval->lo = wbt_after(&scan->at);
		}
		else
		{
			/* one less than at, which may borrow from the key words */
			interval->hi = scan->at;
			if (interval->hi.t-- == 0 && interval->hi.w1-- == 0 && interval->hi.w0-- == 0)
				return false;
		}
	}
	return !gk_less(&interval->hi, &interval->lo);
}

#endif /* WBT_PROBE_H */
