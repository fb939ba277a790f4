/*-------------------------------------------------------------------------
 *
 * hash_build_cpu.h
 *	  Building a hash table on a CPU from ascending entries.
 *
 * Entries of one key follow each other.  The first HASH_FEW are held; if the key ends with them they
 * go into the table, else all of the key's go to the overflow tree, which is built from left to
 * right beside it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_BUILD_CPU_H
#define HASH_BUILD_CPU_H

#include "kernels/hash/hash_place_cpu.h"

/* Entries that are loaded for ahead of the one that is added. */
#define HASH_BUILD_AHEAD 16

typedef struct hash_cpu_build
{
	Arena *arena;
	hash_cpu_tree *tree;
	uint64_t entries;
	bool to_tree; /* entries of the key go to the tree */
	int nheld;
	GpudsEntry held[HASH_FEW]; /* of the key, if they do not */
	GpudsEntry key;
	_Alignas(uint64_t) unsigned char overflow[HASH_OVERFLOW_BUILD_BYTES];
} hash_cpu_build;

/* A directory of one segment without entries; false: no memory. */
HOST_FN bool
hash_build_root(Arena *arena, hash_cpu_tree *tree)
{
	ArenaRef segment = arena_alloc(arena, &tree->overflow.space, ARENA_CHUNK_UNITS);
	uint64_t *words;

	tree->root = segment != 0 ? arena_alloc(arena, &tree->overflow.space, hash_node_units(HASH_NODE_BITS))
							  : 0;
	if (tree->root == 0)
		return false;
	memset(arena_at(arena, segment), 0, HASH_SEGMENT_BYTES);
	words = (uint64_t *) arena_at(arena, tree->root);
	for (int i = 0; i < 1 << HASH_NODE_BITS; i++)
		words[i] = hash_make_link(segment, 0);
	return true;
}

/* Begins to build a table that was withdrawn and has no memory. */
HOST_FN KernelStatus
hash_cpu_build_begin(Arena *arena, CpuTree *common, void *state, int nwords, int fill_percent)
{
	hash_cpu_tree *tree = (hash_cpu_tree *) common;
	hash_cpu_build *build = (hash_cpu_build *) state;

	tree->common.nwords = (uint32_t) nwords;
	cpu_tree_begin(&tree->overflow, nwords);
	build->arena = arena;
	build->tree = tree;
	build->entries = 0;
	build->to_tree = false;
	build->nheld = 0;
	if (!hash_build_root(arena, tree))
	{
		hash_cpu_release(arena, common);
		return KERNEL_NO_MEMORY;
	}
	hash_show_space(tree);
	return hash_overflow.build_begin(arena, &tree->overflow, build->overflow, fill_percent);
}

/* Is the home of a key open? */
HOST_FN bool
hash_home_is_open(const Arena *arena, const hash_cpu_tree *tree, uint64_t hash)
{
	const uint64_t *segment = hash_segment(arena, hash_locate(arena, tree->root, hash));

	return (*hash_home_word(segment, hash_home(hash)) & HASH_OPEN) != 0;
}

/*
 * Puts an entry, or the marker of a key, into the table.  If its home is open, an entry goes to the
 * tree, and nobody needs the marker.
 */
HOST_FN KernelStatus
hash_build_place(hash_cpu_build *build, const GpudsEntry *e, int nw)
{
	const uint64_t hash = hash_of(e);
	HashPlaced placed = HASH_PLACED_NOT;

	if (!hash_home_is_open(build->arena, build->tree, hash))
		placed = hash_place(build->arena, build->tree, hash, e, nw);
	if (placed == HASH_PLACED_NO_MEMORY)
		return KERNEL_NO_MEMORY;
	if (placed == HASH_PLACED_NOT && (e->t & HASH_MARKER) == 0)
		return hash_overflow.build_add(build->overflow, e, 1);
	return KERNEL_OK;
}

/* The key has no more entries. */
HOST_FN KernelStatus
hash_build_end_key(hash_cpu_build *build, int nw)
{
	KernelStatus status = KERNEL_OK;

	for (int i = 0; status == KERNEL_OK && i < build->nheld; i++)
		status = hash_build_place(build, &build->held[i], nw);
	build->nheld = 0;
	build->to_tree = false;
	return status;
}

/* The key has more entries than the table takes. */
HOST_FN KernelStatus
hash_build_turn_to_tree(hash_cpu_build *build, int nw)
{
	GpudsEntry marker = build->key;
	KernelStatus status;

	marker.t = (marker.t & HASH_SPILL_MASK) | HASH_MARKER;
	status = hash_build_place(build, &marker, nw);
	if (status == KERNEL_OK)
		status = hash_overflow.build_add(build->overflow, build->held, build->nheld);
	build->nheld = 0;
	build->to_tree = true;
	return status;
}

HOST_FN KernelStatus
hash_build_add_entry(hash_cpu_build *build, const GpudsEntry *e, int nw)
{
	KernelStatus status = KERNEL_OK;

	if (build->entries++ == 0 || !hash_same_key(e, &build->key))
	{
		status = hash_build_end_key(build, nw);
		build->key = *e;
	}
	else if (build->nheld == HASH_FEW)
		status = hash_build_turn_to_tree(build, nw);
	if (status == KERNEL_OK && build->to_tree)
		status = hash_overflow.build_add(build->overflow, e, 1);
	else
		build->held[build->nheld++] = *e;
	return status;
}

/* Adds entries, strictly ascending over all calls. */
HOST_FN KernelStatus
hash_cpu_build_add(void *state, const GpudsEntry *entries, int64_t n)
{
	hash_cpu_build *build = (hash_cpu_build *) state;
	const int nw = (int) build->tree->common.nwords;
	KernelStatus status = KERNEL_OK;

	for (int64_t i = 0; status == KERNEL_OK && i < n; i++)
	{
		if (i + HASH_BUILD_AHEAD < n)
		{
			uint64_t hash = hash_of(&entries[i + HASH_BUILD_AHEAD]);

			hash_prefetch_home(hash_segment(build->arena, hash_locate(build->arena, build->tree->root, hash)),
							   hash_home(hash));
		}
		status = hash_build_add_entry(build, &entries[i], nw);
	}
	hash_show_space(build->tree);
	return status;
}

/* Publishes what was added. */
HOST_FN KernelStatus
hash_cpu_build_finish(void *state)
{
	hash_cpu_build *build = (hash_cpu_build *) state;
	KernelStatus status = hash_build_end_key(build, (int) build->tree->common.nwords);

	if (status == KERNEL_OK)
		status = hash_overflow.build_finish(build->overflow);
	if (status == KERNEL_OK)
		hash_publish(build->tree, build->entries);
	hash_show_space(build->tree);
	return status;
}

HOST_FN void
hash_cpu_build_cancel(void *state)
{
	hash_cpu_build *build = (hash_cpu_build *) state;

	hash_cpu_release(build->arena, &build->tree->common);
}

#endif /* HASH_BUILD_CPU_H */
