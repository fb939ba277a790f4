/*-------------------------------------------------------------------------
 *
 * skiplist_structure_cpu.h
 *	  The skip list as a structure of the CPU device.
 *
 * It is changed in place, so a reader may see some of a batch's operations and others not.  What it
 * promises: a scan returns, in order, each entry of its intervals that is there from the beginning of the
 * call to its end, and none that was not there at any moment of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_STRUCTURE_CPU_H
#define SKIPLIST_STRUCTURE_CPU_H

#include "kernels/cpu/cpu_structure.h"
#include "kernels/skiplist/skiplist_apply_cpu.h"
#include "kernels/skiplist/skiplist_build_cpu.h"
#include "kernels/skiplist/skiplist_scan_cpu.h"
#include "kernels/skiplist/skiplist_size.h"
#include "kernels/skiplist/skiplist_verify_cpu.h"

enum
{
	skiplist_cpu_has_ranks = false
};

/* Entries of one key take no more than others. */
HOST_FN double
skiplist_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	double target = skiplist_target(fill_percent);

	(void) equal_keys;
	if (on_gpu)
		return gpu_skiplist_entry_bytes(nwords, fill_percent);
	/* of all levels: 1 / target^2 + 1 / target^3 + ... index chunks an entry */
	return ARENA_UNIT_BYTES *
		   (skiplist_units(false, nwords) / target + skiplist_units(true, nwords) / (target * (target - 1)));
}

HOST_FN KernelStatus
skiplist_cpu_build_begin(Arena *arena, CpuTree *tree, void *build, int nwords, int fill_percent)
{
	return skiplist_build_begin(arena, &((skiplist_cpu_tree *) tree)->base, (skiplist_cpu_build *) build,
								nwords, fill_percent);
}

HOST_FN KernelStatus
skiplist_cpu_build_add(void *build, const GpudsEntry *entries, int64_t n)
{
	return skiplist_build_add((skiplist_cpu_build *) build, entries, n);
}

HOST_FN KernelStatus
skiplist_cpu_build_finish(void *build)
{
	skiplist_build_finish((skiplist_cpu_build *) build);
	return KERNEL_OK;
}

HOST_FN void
skiplist_cpu_build_cancel(void *build)
{
	skiplist_cpu_build *b = (skiplist_cpu_build *) build;

	skiplist_release(b->arena, b->tree);
}

HOST_FN KernelStatus
skiplist_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	return skiplist_apply(arena, &((skiplist_cpu_tree *) tree)->base, ops, n);
}

HOST_FN KernelStatus
skiplist_cpu_pack(Arena *arena, CpuTree *tree, GpudsEntry *at, int64_t most, int64_t *units)
{
	(void) arena;
	(void) tree;
	(void) most;
	return cpu_tree_pack_nothing(at, units);
}

HOST_FN void
skiplist_cpu_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	cpu_btree_reclaim(arena, &((skiplist_cpu_tree *) tree)->base, oldest_pin);
}

HOST_FN void
skiplist_cpu_release(Arena *arena, CpuTree *tree)
{
	skiplist_release(arena, &((skiplist_cpu_tree *) tree)->base);
}

HOST_FN bool
skiplist_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	return skiplist_verify(arena, &((const skiplist_cpu_tree *) tree)->base, why, whylen);
}

HOST_FN int64_t
skiplist_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
				  int64_t cap)
{
	SkiplistView view;

	if (!skiplist_view(arena, tree, &view))
		return -1;
	return skiplist_scan(&view, scan, forward, out, cap);
}

HOST_FN bool
skiplist_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	SkiplistView view;

	if (!skiplist_view(arena, tree, &view))
		return false;
	skiplist_count(&view, scan, most, count);
	return true;
}

#endif /* SKIPLIST_STRUCTURE_CPU_H */
