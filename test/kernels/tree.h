/*-------------------------------------------------------------------------
 *
 * tree.h
 *	  Trees made of a model, entry by entry, with nodes of random sizes, as
 *	  neither device makes them; and random intervals.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KERNELS_TREE_H
#define TEST_KERNELS_TREE_H

#include "common.h"

#include "kernels/btree/btree_probe.h"

/* What a level's parent has to know of a node. */
typedef struct TestNode
{
	GpudsEntry separator;
	BtreeRef ref;
	uint64_t entries;
} TestNode;

static inline int64_t
test_node_size(int64_t left, bool full)
{
	int64_t n = full ? BTREE_FANOUT : 1 + (int64_t) test_below(BTREE_FANOUT);

	return n < left ? n : left;
}

/* The header of a node of n children, and the places behind them. */
static inline void
test_inner_finish(uint64_t *node, int n)
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

/*
 * A tree of the model's entries in memory from malloc, view->base; nodes are full
 * or of random sizes.  Memory that no node has is filled with rubbish.
 */
static inline void
test_tree(GpudsView *view, const Model *m, int nwords, bool full)
{
	size_t units = (size_t) (m->n * 10 + 64) * 4;
	unsigned char *base = (unsigned char *) aligned_alloc(256, units * BTREE_UNIT_BYTES);
	TestNode *nodes = (TestNode *) malloc((size_t) (m->n + 1) * sizeof(TestNode));
	BtreeRef next = 4;
	int64_t n = 0;

	CHECK(base != NULL && nodes != NULL);
	memset(base, 0x5A, units * BTREE_UNIT_BYTES);
	view->base = base;
	view->entries = (uint64_t) m->n;
	view->nwords = nwords;
	view->root = 0;
	view->height = 0;
	for (int64_t i = 0; i < m->n;)
	{
		int64_t size = test_node_size(m->n - i, full);
		uint64_t *leaf = btree_node(base, next);

		if (i > 0)
			nodes[n].separator = entry_between(&m->e[i - 1], &m->e[i]);
		nodes[n].ref = next;
		nodes[n++].entries = (uint64_t) size;
		for (int k = 0; k < BTREE_FANOUT; k++)
		{
			if (k < size)
				btree_leaf_set(leaf, k, &m->e[i + k], nwords);
			else
				btree_leaf_clear(leaf, k, nwords);
		}
		next += 4;
		i += size;
		view->height = 1;
	}
	while (n > 1)
	{
		int64_t to = 0;

		for (int64_t i = 0; i < n;)
		{
			int64_t size = test_node_size(n - i, full || view->height > 20);
			uint64_t *node = btree_node(base, next);
			TestNode parent = { nodes[i].separator, next, 0 };

			for (int64_t k = 0; k < size; k++)
			{
				btree_inner_set(node, (int) k, &nodes[i + k].separator, nodes[i + k].ref, parent.entries,
								nwords);
				parent.entries += nodes[i + k].entries;
			}
			test_inner_finish(node, (int) size);
			nodes[to++] = parent;
			next += 4;
			i += size;
			CHECK(next < units);
		}
		n = to;
		view->height++;
	}
	if (n > 0)
		view->root = nodes[0].ref;
	free(nodes);
}

/* An entry of the model, one near it, or any. */
static inline GpudsEntry
test_bound(const Model *m, int kind, int nwords, uint64_t range)
{
	GpudsEntry e = m->n > 0 && test_below(2) ? m->e[test_below((uint64_t) m->n)]
											 : test_entry(kind, nwords, range);

	switch (test_below(12))
	{
		case 0:
			e.t = 0;
			break;
		case 1:
			e.t = UINT64_MAX;
			break;
		case 2:
			e.t = UINT64_MAX - 1;
			break;
		case 3:
			e.t++;
			break;
		case 4:
			e.t--;
			break;
		default:
			break;
	}
	return e;
}

/* Up to 2 * n random disjoint ascending intervals, some of them empty; returns their number. */
static inline int64_t
test_intervals(const Model *m, GpudsInterval *intervals, int64_t n, int kind, int nwords, uint64_t range)
{
	GpudsEntry *ends = (GpudsEntry *) malloc((size_t) n * 2 * sizeof(GpudsEntry) + 1);
	int64_t kept = 0;

	CHECK(ends != NULL);
	for (int64_t i = 0; i < 2 * n; i++)
		ends[i] = test_bound(m, kind, nwords, range);
	qsort(ends, (size_t) n * 2, sizeof(GpudsEntry), test_compare);
	for (int64_t i = 0; i + 1 < 2 * n;)
	{
		GpudsEntry lo = ends[i];
		GpudsEntry hi = test_below(3) ? lo : ends[i + 1];

		if (test_below(50) == 0)
			hi = lo, hi.t = lo.t == 0 ? 0 : lo.t - 1; /* empty */
		if (kept == 0 || entry_less(&intervals[kept - 1].hi, &lo))
		{
			intervals[kept].lo = lo;
			intervals[kept].hi = hi;
			kept++;
		}
		i += entry_equal(&lo, &hi) ? 1 : 2;
	}
	free(ends);
	return kept;
}

/* Entries of the model that are in an interval: first and number. */
static inline int64_t
test_inside(const Model *m, const GpudsInterval *interval, int64_t *first)
{
	int64_t to = model_rank(m, &interval->hi);

	*first = model_rank(m, &interval->lo);
	if (to < m->n && entry_equal(&m->e[to], &interval->hi))
		to++;
	return to > *first ? to - *first : 0;
}

#endif /* TEST_KERNELS_TREE_H */
