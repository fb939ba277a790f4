/*-------------------------------------------------------------------------
 *
 * btree_structure_cpu.h
 *	  The B+tree as a structure of the CPU device: copy-on-write over GpudsEntry, changed in batches.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_STRUCTURE_CPU_H
#define BTREE_STRUCTURE_CPU_H

#include "kernels/btree/btree_apply_cpu.h"
#include "kernels/btree/btree_build_cpu.h"
#include "kernels/btree/btree_count_cpu.h"
#include "kernels/btree/btree_pack_cpu.h"
#include "kernels/btree/btree_probe_cpu.h"
#include "kernels/btree/btree_rank_cpu.h"
#include "kernels/btree/btree_tree_cpu.h"
#include "kernels/btree/btree_verify_cpu.h"

typedef CpuTree btree_cpu_tree;
typedef CpuBtreeBuild btree_cpu_build;

#define btree_cpu_reclaim cpu_tree_reclaim
#define btree_cpu_release cpu_tree_release

/* Separators between entries of one key need the inner node's second line. */
HOST_FN double
btree_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	double target = cpu_btree_target(fill_percent);
	double leaf_bytes = btree_leaf_units(nwords) * BTREE_UNIT_BYTES;
	double inner_bytes = equal_keys || on_gpu ? btree_inner_units() * BTREE_UNIT_BYTES : BTREE_LINE_BYTES;

	/* of all levels: 1 / target^2 + 1 / target^3 + ... inner nodes an entry */
	return leaf_bytes / target + inner_bytes / (target * (target - 1));
}

HOST_FN KernelStatus
btree_cpu_build_begin(Arena *arena, CpuTree *tree, void *build, int nwords, int fill_percent)
{
	cpu_tree_begin(tree, nwords);
	return cpu_btree_build_begin(arena, tree, build, fill_percent);
}

HOST_FN KernelStatus
btree_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	return cpu_btree_apply(arena, tree, ops, n, NULL, NULL);
}

HOST_FN int64_t
btree_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
			   int64_t cap)
{
	GpudsView view;

	if (!cpu_tree_view(arena, tree, &view))
		return -1;
	return cpu_btree_scan(&view, scan, forward, out, cap);
}

HOST_FN bool
btree_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	GpudsView view;

	if (!cpu_tree_view(arena, tree, &view))
		return false;
	cpu_btree_count(&view, scan, most, count);
	return true;
}

HOST_FN bool
btree_cpu_rank(const Arena *arena, const CpuTree *tree, const GpudsInterval *intervals, const uint64_t *ranks,
			   int64_t n, EntryRanked *ranked)
{
	GpudsView view;

	if (!cpu_tree_view(arena, tree, &view))
		return false;
	cpu_btree_rank(&view, intervals, ranks, n, ranked);
	return true;
}

#endif /* BTREE_STRUCTURE_CPU_H */
