/*-------------------------------------------------------------------------
 *
 * hash_overflow_cpu.h
 *	  What a hash table on a CPU wants of its overflow tree.
 *
 * The tree is a CpuTree of a structure that keeps entries in order and is not changed in place.  The table
 * takes memory from the tree's space, and what it replaces waits in the tree's queue.  Which structure it is,
 * the table of structures says (kernels/structures.h): it has the value of hash_overflow, a constant, so that
 * calls are those of known functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_OVERFLOW_CPU_H
#define HASH_OVERFLOW_CPU_H

#include "kernels/cpu/cpu_structure.h"
#include "kernels/cpu/cpu_verify.h"

/* What a load of the tree takes, at most. */
#define HASH_OVERFLOW_BUILD_BYTES (CPU_BUILD_BYTES - 256)

/* Of CpuStructure, if nothing else is said. */
typedef struct HashOverflow
{
	double (*entry_bytes)(int nwords, int fill_percent, bool equal_keys, bool on_gpu);
	/* The tree has its number of key words, and may have memory. */
	KernelStatus (*build_begin)(Arena *arena, CpuTree *tree, void *build, int fill_percent);
	KernelStatus (*build_add)(void *build, const GpudsEntry *entries, int64_t n);
	KernelStatus (*build_finish)(void *build);
	/* Says what was inserted and deleted. */
	KernelStatus (*apply)(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n, int64_t *inserted,
						  int64_t *deleted);
	CpuScan scan;
	/* What cpu_verify asks a structure for. */
	bool (*verify)(CpuVerify *v);
} HashOverflow;

static const HashOverflow hash_overflow;

#endif /* HASH_OVERFLOW_CPU_H */
