/*-------------------------------------------------------------------------
 *
 * cpu_structure.h
 *	  What a structure is on a CPU device.
 *
 * Of a structure called name there are two types, whose sizes are all that others
 * know of them: name_cpu_tree, which begins as CpuTree does, and name_cpu_build.
 * And there are its functions, name_cpu_build_begin and so on: those of
 * CpuStructure, of whose members each has the name and the type, and name_cpu_scan and
 * name_cpu_count, which are compiled once for each instruction set.
 *
 * One process at a time, the applier, calls what changes a tree; readers, which pin
 * its version (pins.h), are beside it at any time.  The memory behind CpuTree is
 * zero when a build begins.  No function raises errors.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_CPU_STRUCTURE_H
#define KERNELS_CPU_STRUCTURE_H

#include "kernels/core/page_rows.h"
#include "kernels/cpu/cpu_versioned.h"

/* A name_cpu_tree and a name_cpu_build take no more bytes; src/structure.c checks it. */
#define CPU_TREE_BYTES 256
#define CPU_BUILD_BYTES (17 * 1024)

/*
 * Finds the entries of n intervals that have ranks in these.  False: the tree was withdrawn.  The caller has
 * pinned the version.
 */
typedef bool (*CpuRank)(const Arena *arena, const CpuTree *tree, const GpudsInterval *intervals,
						const uint64_t *ranks, int64_t n, EntryRanked *ranked);

typedef struct CpuStructure
{
	/*
	 * NULL: it does not know how many entries are before another, so that it counts an interval without
	 * going through it
	 */
	CpuRank rank;
	/*
	 * Bytes that an entry of a large tree takes when it was just built.  equal_keys: there
	 * are entries of one key all over it; else all keys differ.  on_gpu: what it takes there.
	 * For a first guess.
	 */
	double (*entry_bytes)(int nwords, int fill_percent, bool equal_keys, bool on_gpu);
	/* Begins to build a tree that was withdrawn and holds no memory. */
	KernelStatus (*build_begin)(Arena *arena, CpuTree *tree, void *build, int nwords, int fill_percent);
	/* Adds entries, strictly ascending over all calls.  After KERNEL_NO_MEMORY comes build_cancel. */
	KernelStatus (*build_add)(void *build, const GpudsEntry *entries, int64_t n);
	/* Publishes what was added; after KERNEL_NO_MEMORY comes build_cancel. */
	KernelStatus (*build_finish)(void *build);
	/* Gives all memory back; the tree stays withdrawn. */
	void (*build_cancel)(void *build);
	/*
	 * Applies operations, strictly ascending by entry, and publishes a version.  KERNEL_NO_MEMORY:
	 * nothing was changed; or, by a structure that is changed in place, some operations were applied.
	 */
	KernelStatus (*apply)(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n);
	/*
	 * Packs what changes have left partly filled, about most entries of it from *at on, and publishes a
	 * version; *at becomes where to go on, the lowest entry at the end.  *units: what reclaim will free of
	 * it, less what was taken.  KERNEL_NO_MEMORY: nothing was changed.
	 */
	KernelStatus (*pack)(Arena *arena, CpuTree *tree, GpudsEntry *at, int64_t most, int64_t *units);
	/* Frees what no pin can reach; oldest_pin is pin_oldest's answer. */
	void (*reclaim)(Arena *arena, CpuTree *tree, uint64_t oldest_pin);
	/* Gives all memory of a withdrawn tree back that nobody pins. */
	void (*release)(Arena *arena, CpuTree *tree);
	/* Checks all that the structure promises; false: why says what is wrong. */
	bool (*verify)(const Arena *arena, const CpuTree *tree, char *why, size_t whylen);
} CpuStructure;

/* The functions of the structure called name. */
#define CPU_STRUCTURE(name)                                                                \
	{                                                                                      \
		.rank = name##_cpu_rank, .entry_bytes = name##_cpu_entry_bytes,                    \
		.build_begin = name##_cpu_build_begin, .build_add = name##_cpu_build_add,          \
		.build_finish = name##_cpu_build_finish, .build_cancel = name##_cpu_build_cancel,  \
		.apply = name##_cpu_apply, .pack = name##_cpu_pack, .reclaim = name##_cpu_reclaim, \
		.release = name##_cpu_release, .verify = name##_cpu_verify                         \
	}

/*
 * The next entries of a scan, in its order, at most cap; fewer: the scan is at its
 * end.  -1: the tree was withdrawn.  The caller has pinned the version.
 */
typedef int64_t (*CpuScan)(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward,
						   GpudsEntry *out, int64_t cap);

/*
 * An interval of a scan has given its entries, done of at most cap in out with those before.  True: the
 * output is full, and the scan stands on its last entry; else it goes on to the next interval.
 */
HOST_INLINE bool
cpu_scan_is_full(GpudsScan *scan, const GpudsEntry *out, int64_t done, int64_t cap, bool forward)
{
	scan->inside = done == cap;
	if (scan->inside)
		scan->at = out[done - 1];
	else
		scan->next += forward ? 1 : -1;
	return scan->inside;
}

/*
 * What any(view, scan, out, cap, forward, nw) returns, which is compiled for each direction and number of key
 * words.
 */
#define CPU_SCAN_EACH(any, view, scan, out, cap, forward)                                       \
	((view)->nwords == 1                                                                        \
		 ? (forward) ? any(view, scan, out, cap, true, 1) : any(view, scan, out, cap, false, 1) \
	 : (forward) ? any(view, scan, out, cap, true, 2)                                           \
				 : any(view, scan, out, cap, false, 2))

/*
 * What is counted of a scan: entries of rows that a visibility map vouches for, or that are known to
 * be seen.  Rows that are known to be unseen are left out.  The others are handed back, and those that are
 * dead.
 */
typedef struct CpuCount
{
	/*
	 * Two bits a heap page, the lower one of which vouches for its rows.  There are none of pages
	 * behind its end.
	 */
	const unsigned char *map;
	uint64_t map_bytes;
	PageRows rows; /* where the map does not vouch for the page */
	bool full;     /* the map vouches for all rows that entries lead to */
	int64_t counted;
	GpudsEntry *others;
	int64_t nothers;
	int64_t others_size; /* CPU_COUNT_ROOM at least */
} CpuCount;

/* Others that there is room for whenever a structure goes on counting. */
#define CPU_COUNT_ROOM 8

/*
 * Counts the next entries of a forward scan, about most, fewer if there are many others.  At the
 * end of the scan, scan->next is scan->n.  False: the tree was withdrawn.  The caller has pinned
 * the version.
 */
typedef bool (*CpuCounter)(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most,
						   CpuCount *count);

/* Is the map not enough for the row that an entry of tie word t leads to? */
HOST_INLINE unsigned
cpu_count_is_unmapped(const CpuCount *count, uint64_t t)
{
	uint64_t block = (t & ENTRY_TID_MASK) >> 16;
	unsigned bits = block / 4 < count->map_bytes ? count->map[block / 4] : 0;

	return ~(bits >> block % 4 * 2) & 1;
}

/* What is known of the row that an entry of tie word t leads to, by the map or else by itself. */
HOST_INLINE PageRow
cpu_count_row(const CpuCount *count, uint64_t t)
{
	return cpu_count_is_unmapped(count, t) ? page_rows_find(&count->rows, t & ENTRY_TID_MASK) : PAGE_ROW_SEEN;
}

/* pack of a structure that does not pack: it is at its end at once. */
HOST_FN KernelStatus
cpu_tree_pack_nothing(Arena *arena, CpuTree *tree, GpudsEntry *at, int64_t most, int64_t *units)
{
	(void) arena;
	(void) tree;
	(void) most;
	*at = (GpudsEntry){ 0, 0, 0 };
	*units = 0;
	return KERNEL_OK;
}

#endif /* KERNELS_CPU_STRUCTURE_H */
