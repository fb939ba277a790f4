/*-------------------------------------------------------------------------
 *
 * btree_tree_cpu.h
 *	  A B+tree in an arena.
 *
 * It is a CpuTree (cpu_versioned.h).  Its root is a node, 0 if there are no entries.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_TREE_CPU_H
#define BTREE_TREE_CPU_H

#include "kernels/btree/btree_node.h"
#include "kernels/cpu/cpu_versioned.h"

#if BTREE_UNIT_BYTES != ARENA_UNIT_BYTES
#error "a BtreeRef must be an ArenaRef"
#endif

/* Nodes are at least half full: so high a tree has more entries than a link can count. */
#define CPU_BTREE_MAX_HEIGHT 24

/*
 * Makes an empty tree of one or two key words.  The struct is either memory of
 * zeros (the version is 1 then) or a tree that was released (the version goes
 * on).
 */
HOST_FN void
cpu_btree_init(CpuTree *tree, int nwords)
{
	cpu_tree_begin(tree, nwords);
	cpu_tree_publish(tree, head_make((uint32_t) nwords, 0, 0), 0);
}

/* Units of an inner node with this header. */
HOST_FN int
cpu_btree_inner_units(uint64_t header)
{
	return btree_header_details_mask(header) != 0 ? btree_inner_units() : BTREE_LINE_BYTES / BTREE_UNIT_BYTES;
}

/* Start loading a node: a leaf, or the line of an inner node that every descent reads. */
HOST_INLINE void
cpu_btree_prefetch(const void *base, BtreeRef ref, const bool leaf, const int nw)
{
	const unsigned char *p = (const unsigned char *) btree_node(base, ref);

	SIMD_PREFETCH(p);
	SIMD_PREFETCH(p + 64);
	if (nw == 2 && leaf)
		SIMD_PREFETCH(p + 128);
}

#endif /* BTREE_TREE_CPU_H */
