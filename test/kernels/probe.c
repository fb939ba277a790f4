/*-------------------------------------------------------------------------
 *
 * btree_probe.c
 *	  Reading the GPU's tree, against a sorted array: positions, ranks, steps
 *	  both ways, counts, and scans that stop and go on anywhere.
 *
 *	  usage: btree_probe [rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include "tree.h"

#define CAP 100

static void
check_positions(const BtreeView *view, const Model *m, int kind, uint64_t range)
{
	const int nw = view->nwords;

	for (int i = 0; i < 300; i++)
	{
		GpudsEntry x = test_bound(m, kind, nw, range);
		int64_t rank = model_rank(m, &x);
		BtreePosition p;

		CHECK(btree_rank(view, &x, nw) == (uint64_t) rank);
		btree_lower_bound(view, &x, &p, nw);
		CHECK(p.rank + (uint64_t) p.place == (uint64_t) rank);
		CHECK((p.leaf == 0) == (m->n == 0));
	}
	for (int i = 0; i < 100 && m->n > 0; i++)
	{
		uint64_t rank = test_below((uint64_t) m->n);
		BtreePosition p, back;
		GpudsEntry e;
		int n;

		btree_select(view, rank, &p);
		CHECK(p.rank + (uint64_t) p.place == rank);
		e = btree_leaf_entry(btree_node(view->base, p.leaf), p.place, nw);
		CHECK(entry_equal(&e, &m->e[rank]));
		n = btree_leaf_n(btree_node(view->base, p.leaf), nw);
		back = p;
		if (btree_next_leaf(view, &p, n))
		{
			CHECK(p.rank == back.rank + (uint64_t) n && p.place == 0);
			e = btree_leaf_entry(btree_node(view->base, p.leaf), 0, nw);
			CHECK(entry_equal(&e, &m->e[p.rank]));
			CHECK(btree_previous_leaf(view, &p));
			CHECK(p.leaf == back.leaf && p.rank == back.rank && p.place == n && p.at == back.at);
		}
		else
			CHECK(back.rank + (uint64_t) n == (uint64_t) m->n);
		p = back;
		CHECK(btree_previous_leaf(view, &p) == (back.rank > 0));
		if (back.rank > 0)
			CHECK(p.rank + (uint64_t) p.place == back.rank);
	}
}

/* All intervals, in steps of random size, forward and backward. */
static void
check_scan(const BtreeView *view, const Model *m, const GpudsInterval *intervals, int64_t n,
		   const GpudsInterval *frame, const uint64_t *words)
{
	GpudsEntry out[CAP];

	for (int forward = 0; forward < 2; forward++)
	{
		GpudsScan scan = { words ? frame : intervals, n, forward ? 0 : n, false, { 0, 0, 0 }, words };
		int64_t cap = 1 + (int64_t) test_below(CAP);
		int64_t got = 0;
		int64_t at = 0;

		for (int64_t i = 0; i < n; i++)
		{
			int64_t from;
			int64_t inside = test_inside(m, &intervals[forward ? i : n - 1 - i], &from);

			for (int64_t k = 0; k < inside; k++)
			{
				if (at == got)
				{
					got = test_wbt_scan(view, &scan, forward, out, cap);
					at = 0;
					CHECK(got > 0);
				}
				CHECK(entry_equal(&out[at], &m->e[forward ? from + k : from + inside - 1 - k]));
				at++;
				if (at == got && test_below(10) == 0)
				{
					cap = 1 + (int64_t) test_below(CAP);
					got = at = 0;
				}
			}
		}
		CHECK(at == got);
		CHECK(test_wbt_scan(view, &scan, forward, out, cap) == 0);
		CHECK(scan.next == (forward ? n : 0) && !scan.inside);
	}
}

static void
check_intervals(const BtreeView *view, const Model *m, int kind, uint64_t range)
{
	GpudsInterval intervals[300];
	int64_t n = test_intervals(m, intervals, 1 + (int64_t) test_below(150), kind, view->nwords, range);

	check_scan(view, m, intervals, n, NULL, NULL);
	for (int64_t i = 0; i < n; i++)
	{
		int64_t first;
		int64_t inside = test_inside(m, &intervals[i], &first);
		BtreePosition p;

		CHECK(test_wbt_count(view, &intervals[i], view->nwords) == (uint64_t) inside);
		CHECK(btree_locate(view, &intervals[i], &p, view->nwords) == (uint64_t) inside);
		if (inside > 0)
			CHECK(p.rank + (uint64_t) p.place == (uint64_t) first);
	}
}

static int
compare_words(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a;
	uint64_t y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Equality with many first words, of entries that are there and others. */
static void
check_words(const BtreeView *view, const Model *m, int kind, uint64_t range)
{
	GpudsInterval frame = { { 0, 0, test_below(2) ? 0 : test_random() },
						 { 0, view->nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };
	GpudsInterval intervals[150];
	uint64_t words[150];
	int64_t kept = 0;

	for (int64_t i = 0; i < 150; i++)
		words[i] = test_bound(m, kind, view->nwords, range).w0;
	qsort(words, 150, sizeof(uint64_t), compare_words);
	for (int64_t i = 0; i < 150; i++)
	{
		if (kept > 0 && words[i] == words[kept - 1])
			continue;
		words[kept] = words[i];
		intervals[kept] = frame;
		intervals[kept].lo.w0 = intervals[kept].hi.w0 = words[i];
		kept++;
	}
	check_scan(view, m, intervals, kept, &frame, words);
}

static void
run(int kind, int nwords, int64_t size, bool full)
{
	uint64_t range = (uint64_t) size * 2 + 10;
	BtreeView view;
	Model m;

	model_fill(&m, size, kind, nwords, range);
	test_wbt(&view, &m, nwords, full);
	check_positions(&view, &m, kind, range);
	check_intervals(&view, &m, kind, range);
	check_words(&view, &m, kind, range);
	free((void *) view.base);
	free(m.e);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (int r = 0; r < rounds; r++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			for (int nwords = 1; nwords <= 2; nwords++)
			{
				for (int64_t size = 0; size < 40; size++)
					run(kind, nwords, size, test_below(2));
				for (int i = 0; i < 10; i++)
					run(kind, nwords, 40 + (int64_t) test_below(1000), test_below(2));
				run(kind, nwords, 20000, false);
			}
		}
	}
	printf("btree_probe: ok\n");
	return 0;
}
