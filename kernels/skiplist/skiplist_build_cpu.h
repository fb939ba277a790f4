/*-------------------------------------------------------------------------
 *
 * skiplist_build_cpu.h
 *	  Building a skip list on a CPU from ascending entries, all levels at once from left to right.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_BUILD_CPU_H
#define SKIPLIST_BUILD_CPU_H

#include <string.h>

#include "kernels/skiplist/skiplist_list_cpu.h"

/* The chunk of a level that is being filled, 0: the level has none yet. */
typedef struct SkiplistOpen
{
	ArenaRef ref;
	ArenaRef first; /* the first chunk of the level */
	int n;
} SkiplistOpen;

typedef struct skiplist_cpu_build
{
	Arena *arena;
	CpuTree *tree;
	uint64_t entries;
	int target; /* entries of a chunk */
	int height;
	SkiplistOpen open[SKIPLIST_MAX_HEIGHT];
} skiplist_cpu_build;

/* How many entries a build puts into a chunk. */
HOST_FN int
skiplist_target(int fill_percent)
{
	int target = (SKIPLIST_PLACES * fill_percent + 50) / 100;

	return target < SKIPLIST_PLACES / 2 ? SKIPLIST_PLACES / 2
		   : target > SKIPLIST_PLACES   ? SKIPLIST_PLACES
										: target;
}

/* Begins a chunk of a level behind the one that is being filled, which ends before an entry. */
HOST_FN bool
skiplist_build_open(skiplist_cpu_build *build, int level, const GpudsEntry *e)
{
	const int nw = (int) build->tree->nwords;
	SkiplistOpen *open = &build->open[level];
	ArenaRef ref = arena_alloc(build->arena, &build->tree->space, skiplist_units(level > 0, nw));
	uint64_t *chunk = skiplist_at(build->arena, ref);

	if (ref == 0)
		return false;
	skiplist_make(chunk, NULL, 0, level > 0, nw);
	chunk[SKIPLIST_LINK] = skiplist_make_link(0, open->ref);
	if (open->ref != 0)
	{
		uint64_t *before = skiplist_at(build->arena, open->ref);

		before[SKIPLIST_LINK] = skiplist_make_link(ref, skiplist_before(before[SKIPLIST_LINK]));
		skiplist_set_high(before, e, level > 0, nw);
	}
	else
		open->first = ref;
	open->ref = ref;
	open->n = 0;
	return true;
}

/* Adds an entry to the open chunk of a level, which has room. */
HOST_FN void
skiplist_build_put(skiplist_cpu_build *build, int level, const GpudsEntry *e, ArenaRef ref)
{
	const int nw = (int) build->tree->nwords;
	SkiplistOpen *open = &build->open[level];
	uint64_t *chunk = skiplist_at(build->arena, open->ref);

	skiplist_fill(chunk, open->n, e, level > 0, nw);
	if (level > 0)
		skiplist_refs(chunk)[open->n] = ref;
	chunk[SKIPLIST_ORDER] = skiplist_ascending(++open->n);
}

/* Raises the chunk that was just begun in a level, whose low bound is low, as far up as chunks are full. */
HOST_FN bool
skiplist_build_raise(skiplist_cpu_build *build, int level, const GpudsEntry *low)
{
	for (; level + 1 < SKIPLIST_MAX_HEIGHT; level++)
	{
		const GpudsEntry lowest = { 0, 0, 0 };
		SkiplistOpen *above = &build->open[level + 1];
		bool opened = above->n == build->target;

		if (above->ref == 0)
		{
			/* the level begins with the first chunk below */
			if (!skiplist_build_open(build, level + 1, &lowest))
				return false;
			skiplist_build_put(build, level + 1, &lowest, build->open[level].first);
			build->height = level + 2;
		}
		else if (opened && !skiplist_build_open(build, level + 1, low))
			return false;
		skiplist_build_put(build, level + 1, low, build->open[level].ref);
		if (!opened)
			break;
	}
	return true;
}

/* Begins to build a list that was withdrawn and has no memory. */
HOST_FN KernelStatus
skiplist_cpu_build_begin(Arena *arena, CpuTree *tree, void *state, int nwords, int fill_percent)
{
	skiplist_cpu_build *build = (skiplist_cpu_build *) state;
	const GpudsEntry lowest = { 0, 0, 0 };

	cpu_tree_begin(tree, nwords);
	memset(build, 0, sizeof(*build));
	build->arena = arena;
	build->tree = tree;
	build->target = skiplist_target(fill_percent);
	build->height = 1;
	if (skiplist_build_open(build, 0, &lowest))
		return KERNEL_OK;
	cpu_tree_release(arena, tree);
	return KERNEL_NO_MEMORY;
}

/* Adds entries, strictly ascending over all calls. */
HOST_FN KernelStatus
skiplist_cpu_build_add(void *state, const GpudsEntry *entries, int64_t n)
{
	skiplist_cpu_build *build = (skiplist_cpu_build *) state;
	const int nw = (int) build->tree->nwords;

	for (int64_t i = 0; i < n; i++)
	{
		const SkiplistOpen *open = &build->open[0];

		if (open->n == build->target)
		{
			GpudsEntry last = skiplist_entry(skiplist_at(build->arena, open->ref), open->n - 1, false, nw);
			GpudsEntry low = entry_between(&last, &entries[i]);

			if (!skiplist_build_open(build, 0, &low) || !skiplist_build_raise(build, 0, &low))
				return KERNEL_NO_MEMORY;
		}
		skiplist_build_put(build, 0, &entries[i], 0);
	}
	build->entries += (uint64_t) n;
	return KERNEL_OK;
}

/* Publishes what was added. */
HOST_FN KernelStatus
skiplist_cpu_build_finish(void *state)
{
	skiplist_cpu_build *build = (skiplist_cpu_build *) state;
	ArenaRef root = build->open[build->height - 1].first;

	cpu_tree_publish(build->tree, head_make(build->tree->nwords, build->height, root), build->entries);
	return KERNEL_OK;
}

HOST_FN void
skiplist_cpu_build_cancel(void *state)
{
	skiplist_cpu_build *build = (skiplist_cpu_build *) state;

	cpu_tree_release(build->arena, build->tree);
}

#endif /* SKIPLIST_BUILD_CPU_H */
