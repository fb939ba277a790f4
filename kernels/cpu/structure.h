/*-------------------------------------------------------------------------
 *
 * structure.h
 *	  What a structure is on a CPU device.
 *
 * Of a structure called name there are two types, whose sizes are all that others
 * know of them: name_cpu_tree, which begins as CpuTree does, and name_cpu_build.
 * And there are its functions, name_cpu_build_begin and so on: those of
 * CpuStructure, of whose members each has the name and the type, and name_cpu_scan,
 * which is compiled once for each instruction set.
 *
 * One process at a time, the applier, calls what changes a tree; readers, which pin
 * its version (pins.h), are beside it at any time.  The memory behind CpuTree is
 * zero when a build begins.  No function raises errors.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_CPU_STRUCTURE_H
#define KERNELS_CPU_STRUCTURE_H

#include "kernels/cpu/arena.h"
#include "kernels/core/entry.h"

/*
 * What the trees of all structures begin with.  A place for trees serves one
 * structure after the other, and a reader that is late may still look at it: so
 * these are the same for all.
 */
typedef struct CpuTree
{
	uint64_t head;    /* atomic, published before version; 0: there is no tree */
	uint64_t version; /* atomic; only ever rises, over all lives of the struct */
	uint64_t entries; /* atomic */
	uint32_t nwords;  /* key words */
	uint32_t reserved;
	ArenaSpace space; /* all memory of the tree */
} CpuTree;

typedef struct CpuStructure
{
	/*
	 * Bytes that an entry of a large tree takes when it was just built.  equal_keys: there
	 * are entries of one key all over it; else all keys differ.  For a first guess, also
	 * of what it takes on a GPU.
	 */
	double (*entry_bytes)(int nwords, int fill_percent, bool equal_keys);
	/* Begins to build a tree that was withdrawn and holds no memory. */
	KernelStatus (*build_begin)(Arena *arena, CpuTree *tree, void *build, int nwords, int fill_percent);
	/* Adds entries, strictly ascending over all calls.  After KERNEL_NO_MEMORY comes build_cancel. */
	KernelStatus (*build_add)(void *build, const GpudsEntry *entries, int64_t n);
	/* Publishes what was added; after KERNEL_NO_MEMORY comes build_cancel. */
	KernelStatus (*build_finish)(void *build);
	/* Gives all memory back; the tree stays withdrawn. */
	void (*build_cancel)(void *build);
	/* Applies operations, strictly ascending by entry, and publishes a version.  KERNEL_NO_MEMORY:
	 * nothing was changed. */
	KernelStatus (*apply)(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n);
	/* Frees what no pin can reach; oldest_pin is pin_oldest's answer. */
	void (*reclaim)(Arena *arena, CpuTree *tree, uint64_t oldest_pin);
	/* Gives all memory of a withdrawn tree back that nobody pins. */
	void (*release)(Arena *arena, CpuTree *tree);
	/* Checks all that the structure promises; false: why says what is wrong. */
	bool (*verify)(const Arena *arena, const CpuTree *tree, char *why, size_t whylen);
} CpuStructure;

/*
 * The next entries of a scan, in its order, at most cap; fewer: the scan is at its
 * end.  -1: the tree was withdrawn.  The caller has pinned the version.
 */
typedef int64_t (*CpuScan)(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward,
						   GpudsEntry *out, int64_t cap);

/* Publishes what the tree is from now on. */
HOST_FN void
cpu_tree_publish(CpuTree *tree, uint64_t head, uint64_t entries)
{
	__atomic_store_n(&tree->head, head, __ATOMIC_RELEASE);
	__atomic_store_n(&tree->entries, entries, __ATOMIC_RELAXED);
	/* whoever pins has either seen this or is seen: see pins.h */
	__atomic_store_n(&tree->version, tree->version + 1, __ATOMIC_SEQ_CST);
}

/* Publishes that there is no tree any more; its memory stays until it is released. */
HOST_FN void
cpu_tree_withdraw(CpuTree *tree)
{
	cpu_tree_publish(tree, 0, 0);
}

#endif /* KERNELS_CPU_STRUCTURE_H */
