/*-------------------------------------------------------------------------
 *
 * btree_rank_cpu.h
 *	  Finds entries by their ranks in intervals, on a CPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_RANK_CPU_H
#define BTREE_RANK_CPU_H

#include "kernels/btree/btree_probe.h"

HOST_INLINE void
cpu_btree_rank_any(const GpudsView *view, const GpudsInterval *intervals, const uint64_t *ranks, int64_t n,
				   EntryRanked *ranked, const int nw)
{
	for (int64_t i = 0; i < n; i++)
	{
		BtreePosition p;

		ranked[i].entries = btree_locate(view, &intervals[i], &p, nw);
		if (ranks[i] >= ranked[i].entries)
			continue;
		btree_select(view, p.rank + (uint64_t) p.place + ranks[i], &p);
		ranked[i].entry = btree_leaf_entry(btree_node(view->base, p.leaf), p.place, nw);
	}
}

/* As CpuRank. */
HOST_FN void
cpu_btree_rank(const GpudsView *view, const GpudsInterval *intervals, const uint64_t *ranks, int64_t n,
			   EntryRanked *ranked)
{
	if (view->nwords == 1)
		cpu_btree_rank_any(view, intervals, ranks, n, ranked, 1);
	else
		cpu_btree_rank_any(view, intervals, ranks, n, ranked, 2);
}

#endif /* BTREE_RANK_CPU_H */
