/*-------------------------------------------------------------------------
 *
 * hash_structure_cpu.h
 *	  The hash table as a structure of the CPU device.
 *
 * It is changed in place, so a reader may see some of a batch's operations and others not.  What it
 * promises: a scan returns each entry of its intervals that is there from the beginning of the call
 * to its end, and none that was not there at any moment of it.  Within one key they come in
 * the order of TIDs, and the keys in that of the scan's intervals.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_STRUCTURE_CPU_H
#define HASH_STRUCTURE_CPU_H

#include "kernels/btree/btree_structure_cpu.h"
#include "kernels/cpu/cpu_structure.h"
#include "kernels/hash/hash_apply_cpu.h"
#include "kernels/hash/hash_build_cpu.h"
#include "kernels/hash/hash_scan_cpu.h"
#include "kernels/hash/hash_verify_cpu.h"

/* Slots that are in use, at least, on the average: when most segments of a table were just split. */
#define HASH_LEAST_LOAD 0.52

enum
{
	hash_cpu_has_ranks = false
};

/* A table of few entries a key has what its emptiest state takes; one of many is a B+tree. */
HOST_FN double
hash_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	if (equal_keys)
		return btree_cpu_entry_bytes(nwords, fill_percent, true, on_gpu);
	return HASH_LINE_WORDS * sizeof(uint64_t) / (hash_slots(nwords) * HASH_LEAST_LOAD);
}

HOST_FN KernelStatus
hash_cpu_build_begin(Arena *arena, CpuTree *tree, void *build, int nwords, int fill_percent)
{
	return hash_build_begin(arena, (hash_cpu_tree *) tree, (hash_cpu_build *) build, nwords, fill_percent);
}

HOST_FN KernelStatus
hash_cpu_build_add(void *build, const GpudsEntry *entries, int64_t n)
{
	return hash_build_add((hash_cpu_build *) build, entries, n);
}

HOST_FN KernelStatus
hash_cpu_build_finish(void *build)
{
	return hash_build_finish((hash_cpu_build *) build);
}

HOST_FN void
hash_cpu_build_cancel(void *build)
{
	hash_cpu_build *b = (hash_cpu_build *) build;

	hash_release(b->arena, b->tree);
}

HOST_FN KernelStatus
hash_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	return hash_apply(arena, (hash_cpu_tree *) tree, ops, n);
}

HOST_FN KernelStatus
hash_cpu_pack(Arena *arena, CpuTree *tree, GpudsEntry *at, int64_t most, int64_t *units)
{
	(void) arena;
	(void) tree;
	(void) most;
	return cpu_tree_pack_nothing(at, units);
}

HOST_FN void
hash_cpu_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	cpu_btree_reclaim(arena, &((hash_cpu_tree *) tree)->overflow, oldest_pin);
}

HOST_FN void
hash_cpu_release(Arena *arena, CpuTree *tree)
{
	hash_release(arena, (hash_cpu_tree *) tree);
}

HOST_FN bool
hash_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	return hash_verify(arena, (const hash_cpu_tree *) tree, why, whylen);
}

HOST_FN int64_t
hash_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
			  int64_t cap)
{
	HashView view;

	if (!hash_view(arena, tree, &view))
		return -1;
	return hash_scan(&view, scan, forward, out, cap);
}

HOST_FN bool
hash_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	HashView view;

	if (!hash_view(arena, tree, &view))
		return false;
	hash_count(&view, scan, most, count);
	return true;
}

#endif /* HASH_STRUCTURE_CPU_H */
