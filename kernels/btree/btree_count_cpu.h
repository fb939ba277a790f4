/*-------------------------------------------------------------------------
 *
 * btree_count_cpu.h
 *	  Counting the entries of a scan on a CPU, many intervals at a time.
 *
 * A visibility map vouches for the rows of most entries; of the others some are known, and the rest
 * is handed back (CpuCount).  So each leaf is looked at, without making entries of it.
 *
 * If the map vouches for all rows, leaves need not be looked at.  An interval that ends in the leaf
 * in which it begins is the difference of two places there, and any other of two ranks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_COUNT_CPU_H
#define BTREE_COUNT_CPU_H

#include "kernels/cpu/cpu_structure.h"
#include "kernels/btree/btree_probe_cpu.h"

#if CPU_COUNT_ROOM < BTREE_FANOUT
#error "the others of a leaf must fit"
#endif

/*
 * Counts the entries of a leaf from place from to place to - 1.  Looks up all places in the map, so that
 * the number of rounds is a constant.  What is known of single rows is asked only where the map is not
 * enough.
 */
HOST_INLINE void
cpu_btree_count_leaf(const uint64_t *leaf, int from, int to, CpuCount *count, const int nw)
{
	const uint64_t *t = leaf + nw * BTREE_FANOUT;
	unsigned unmapped = 0;

	if (to <= from)
		return;
	for (int i = 0; i < BTREE_FANOUT; i++)
		unmapped |= cpu_count_is_unmapped(count, t[i]) << i;
	unmapped = unmapped >> from << from & ((1u << to) - 1);
	count->counted += to - from;
	for (; unmapped != 0; unmapped &= unmapped - 1)
	{
		int i = __builtin_ctz(unmapped);
		PageRow row = page_rows_find(&count->rows, t[i] & ENTRY_TID_MASK);

		count->counted -= row != PAGE_ROW_SEEN;
		if (page_row_goes_back(row))
			count->others[count->nothers++] = btree_leaf_entry(leaf, i, nw);
	}
}

/* May another leaf be counted?  left: entries left to count, about. */
HOST_INLINE bool
cpu_btree_count_goes_on(const CpuCount *count, int64_t left)
{
	return left > 0 && count->others_size - count->nothers >= BTREE_FANOUT;
}

/*
 * Counts the entries of an interval from the leaf that its probe has come to.  Subtracts from *left
 * the entries counted, and one for each leaf.  False: *left was used up before the interval's end;
 * counting resumes behind *at.
 */
HOST_INLINE bool
cpu_btree_probe_count(CpuBtreeProbe *p, const GpudsView *view, CpuCount *count, int64_t *left, GpudsEntry *at,
					  const int nw)
{
	const GpudsEntry lo = p->interval.lo;
	const GpudsEntry hi = entry_after(&p->interval.hi);
	CpuBtreeLeaf leaves[CPU_BTREE_LEAVES_AHEAD];
	unsigned end = 0;
	bool more = true;

	for (unsigned first = 0; more || first < end; first++)
	{
		const CpuBtreeLeaf *leaf = &leaves[first % CPU_BTREE_LEAVES_AHEAD];
		int from;
		int to;

		if (more)
			more = cpu_btree_leaves_ahead(p, view, leaves, first, &end, *left > 0 ? *left : 1, true, nw);
		from = leaf->lo_bound ? btree_leaf_rank(leaf->words, &lo, nw) : 0;
		to = leaf->hi_bound ? btree_leaf_rank(leaf->words, &hi, nw) : btree_leaf_n(leaf->words, nw);
		cpu_btree_count_leaf(leaf->words, from, to, count, nw);
		*left -= 1 + (to > from ? to - from : 0);
		if (to > from && !cpu_btree_count_goes_on(count, *left))
		{
			*at = btree_leaf_entry(leaf->words, to - 1, nw);
			return false;
		}
	}
	return true;
}

/* How many entries an interval has whose probe has come to its first leaf. */
HOST_INLINE int64_t
cpu_btree_probe_extent(const CpuBtreeProbe *p, const GpudsView *view, const int nw)
{
	const uint64_t *leaf = btree_node(view->base, p->ref);
	GpudsEntry hi = entry_after(&p->interval.hi);
	int from;
	int to;

	if (!p->far_bound)
		return (int64_t) (btree_rank(view, &hi, nw) - btree_rank(view, &p->interval.lo, nw));
	from = btree_leaf_rank(leaf, &p->interval.lo, nw);
	to = btree_leaf_rank(leaf, &hi, nw);
	return to > from ? to - from : 0;
}

HOST_INLINE void
cpu_btree_count_any(const GpudsView *view, GpudsScan *scan, int64_t most, CpuCount *count, const int nw)
{
	CpuBtreeProbe probes[CPU_BTREE_INTERLEAVED];
	int64_t left = most;

	while (scan->next < scan->n && cpu_btree_count_goes_on(count, left))
	{
		int together = cpu_btree_together(scan->n - scan->next);

		cpu_btree_probes_down(probes, together, view, scan, true, nw);
		for (int i = 0; i < together && cpu_btree_count_goes_on(count, left); i++)
		{
			left--;
			if (probes[i].empty || view->height == 0)
				;
			else if (count->full)
				count->counted += cpu_btree_probe_extent(&probes[i], view, nw);
			else if (!cpu_btree_probe_count(&probes[i], view, count, &left, &scan->at, nw))
			{
				scan->inside = true;
				return;
			}
			scan->inside = false;
			scan->next++;
		}
	}
}

/* As CpuCounter. */
HOST_FN void
cpu_btree_count(const GpudsView *view, GpudsScan *scan, int64_t most, CpuCount *count)
{
	if (view->nwords == 1)
		cpu_btree_count_any(view, scan, most, count, 1);
	else
		cpu_btree_count_any(view, scan, most, count, 2);
}

#endif /* BTREE_COUNT_CPU_H */
