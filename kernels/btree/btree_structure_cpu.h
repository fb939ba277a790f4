/*-------------------------------------------------------------------------
 *
 * btree_structure_cpu.h
 *	  The B+tree as a structure of the CPU device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_STRUCTURE_CPU_H
#define BTREE_STRUCTURE_CPU_H

#include "kernels/btree/btree_cpu.h"
#include "kernels/cpu/cpu_structure.h"

typedef CpuBtree btree_cpu_tree;
typedef CpuBtreeBuild btree_cpu_build;

_Static_assert(offsetof(CpuBtree, head) == offsetof(CpuTree, head) &&
				   offsetof(CpuBtree, version) == offsetof(CpuTree, version) &&
				   offsetof(CpuBtree, entries) == offsetof(CpuTree, entries) &&
				   offsetof(CpuBtree, nwords) == offsetof(CpuTree, nwords) &&
				   offsetof(CpuBtree, space) == offsetof(CpuTree, space) &&
				   offsetof(CpuBtree, retired) == sizeof(CpuTree),
			   "a CpuBtree begins as a CpuTree does");

enum
{
	btree_cpu_has_ranks = true
};

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
	/* Not cpu_btree_init: that would show readers an empty tree. */
	tree->nwords = (uint32_t) nwords;
	return cpu_btree_build_begin(arena, (CpuBtree *) tree, (CpuBtreeBuild *) build, fill_percent);
}

HOST_FN KernelStatus
btree_cpu_build_add(void *build, const GpudsEntry *entries, int64_t n)
{
	return cpu_btree_build_add((CpuBtreeBuild *) build, entries, n);
}

HOST_FN KernelStatus
btree_cpu_build_finish(void *build)
{
	return cpu_btree_build_finish((CpuBtreeBuild *) build);
}

HOST_FN void
btree_cpu_build_cancel(void *build)
{
	cpu_btree_build_cancel((CpuBtreeBuild *) build);
}

HOST_FN KernelStatus
btree_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	return cpu_btree_apply(arena, (CpuBtree *) tree, ops, n, NULL, NULL);
}

HOST_FN KernelStatus
btree_cpu_pack(Arena *arena, CpuTree *tree, GpudsEntry *at, int64_t most, int64_t *units)
{
	return cpu_btree_pack(arena, (CpuBtree *) tree, at, most, units);
}

HOST_FN void
btree_cpu_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	cpu_btree_reclaim(arena, (CpuBtree *) tree, oldest_pin);
}

HOST_FN void
btree_cpu_release(Arena *arena, CpuTree *tree)
{
	cpu_btree_release(arena, (CpuBtree *) tree);
}

HOST_FN bool
btree_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	return cpu_btree_verify(arena, (const CpuBtree *) tree, why, whylen);
}

HOST_FN int64_t
btree_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
			   int64_t cap)
{
	BtreeView view;

	if (!cpu_btree_view(arena, (const CpuBtree *) tree, &view))
		return -1;
	return cpu_btree_scan(&view, scan, forward, out, cap);
}

HOST_FN bool
btree_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	BtreeView view;

	if (!cpu_btree_view(arena, (const CpuBtree *) tree, &view))
		return false;
	cpu_btree_count(&view, scan, most, count);
	return true;
}

#endif /* BTREE_STRUCTURE_CPU_H */
