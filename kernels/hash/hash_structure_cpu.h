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

#include "kernels/cpu/cpu_structure.h"
#include "kernels/hash/hash_apply_cpu.h"
#include "kernels/hash/hash_build_cpu.h"
#include "kernels/hash/hash_scan_cpu.h"
#include "kernels/hash/hash_verify_cpu.h"

/* Slots that are in use, at least, on the average: when most segments of a table were just split. */
#define HASH_LEAST_LOAD 0.52

#define hash_cpu_pack cpu_tree_pack_nothing
#define hash_cpu_rank NULL

/* A table of few entries a key has what its emptiest state takes; one of many is an overflow tree. */
HOST_FN double
hash_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	if (equal_keys)
		return hash_overflow.entry_bytes(nwords, fill_percent, true, on_gpu);
	return HASH_LINE_WORDS * sizeof(uint64_t) / (hash_slots(nwords) * HASH_LEAST_LOAD);
}

HOST_FN void
hash_cpu_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	cpu_tree_reclaim(arena, &((hash_cpu_tree *) tree)->overflow, oldest_pin);
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
