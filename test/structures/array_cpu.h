/*-------------------------------------------------------------------------
 *
 * array_cpu.h
 *	  A sorted array as a structure of the CPU device: for tests only.
 *
 * It shows that a structure needs no more than its own files and its row, and does
 * everything in the simplest way: every batch of operations makes a new array.
 *
 * The arena has no pieces larger than ARENA_MAX_UNITS, so an array consists of pages
 * of entries, below three levels of pages of references: entry i is found by
 * arithmetic alone.  The tree's head is the reference of a header; the arrays that
 * versions have replaced are a chain of headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_ARRAY_CPU_H
#define TEST_ARRAY_CPU_H

#include <stdio.h>
#include <string.h>

#include "kernels/cpu/cpu_structure.h"

#define ARRAY_PAGE_BYTES ((size_t) ARENA_MAX_UNITS * ARENA_UNIT_BYTES)
#define ARRAY_PAGE_ENTRIES ((uint64_t) (ARRAY_PAGE_BYTES / sizeof(GpudsEntry)))
#define ARRAY_PAGE_REFS ((uint64_t) (ARRAY_PAGE_BYTES / sizeof(ArenaRef)))
#define ARRAY_LEVELS 3 /* of references */

typedef struct ArrayHeader
{
	uint64_t entries;
	uint64_t replaced; /* by this version */
	ArenaRef next;     /* the array that was replaced after it */
	ArenaRef root;     /* page of references, 0: there are no entries */
} ArrayHeader;

typedef struct array_cpu_tree
{
	CpuTree common;
	ArenaRef oldest; /* of the replaced arrays, 0: none */
	ArenaRef newest;
} array_cpu_tree;

/* An array that is being written. */
typedef struct array_cpu_build
{
	Arena *arena;
	array_cpu_tree *tree;
	ArrayHeader header;
} array_cpu_build;

HOST_FN ArenaRef *
array_refs(const Arena *arena, ArenaRef page)
{
	return (ArenaRef *) arena_at(arena, page);
}

/* The array of a tree, NULL: it was withdrawn. */
HOST_FN ArrayHeader *
array_of(const Arena *arena, const CpuTree *tree)
{
	uint64_t head = __atomic_load_n(&tree->head, __ATOMIC_ACQUIRE);

	return head != 0 ? (ArrayHeader *) arena_at(arena, (ArenaRef) head) : NULL;
}

/* Pages of entries below a reference of this level; level 0 is the root's. */
HOST_FN uint64_t
array_pages_below(int level)
{
	uint64_t pages = 1;

	for (int l = level + 1; l < ARRAY_LEVELS; l++)
		pages *= ARRAY_PAGE_REFS;
	return pages;
}

HOST_FN GpudsEntry *
array_entry(const Arena *arena, const ArrayHeader *array, uint64_t i)
{
	uint64_t page = i / ARRAY_PAGE_ENTRIES;
	ArenaRef ref = array->root;

	for (int level = 0; level < ARRAY_LEVELS; level++)
		ref = array_refs(arena, ref)[page / array_pages_below(level) % ARRAY_PAGE_REFS];
	return (GpudsEntry *) arena_at(arena, ref) + i % ARRAY_PAGE_ENTRIES;
}

/* How many entries are before e; with or_equal, also e itself. */
HOST_FN uint64_t
array_rank(const Arena *arena, const ArrayHeader *array, const GpudsEntry *e, bool or_equal)
{
	uint64_t lo = 0;
	uint64_t hi = array->entries;

	while (lo < hi)
	{
		uint64_t middle = lo + (hi - lo) / 2;
		const GpudsEntry *x = array_entry(arena, array, middle);

		if (or_equal ? !entry_less(e, x) : entry_less(x, e))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

HOST_FN bool
array_cpu_rank(const Arena *arena, const CpuTree *tree, const GpudsInterval *intervals, const uint64_t *ranks,
			   int64_t n, EntryRanked *ranked)
{
	const ArrayHeader *array = array_of(arena, tree);

	for (int64_t i = 0; array && i < n; i++)
	{
		const uint64_t first = array_rank(arena, array, &intervals[i].lo, false);
		const uint64_t end = array_rank(arena, array, &intervals[i].hi, true);

		ranked[i].entries = end > first ? end - first : 0;
		if (ranks[i] < ranked[i].entries)
			ranked[i].entry = *array_entry(arena, array, first + ranks[i]);
	}
	return array != NULL;
}

/*
 * Writing
 */

/* A page of zeros, 0: out of memory. */
HOST_FN ArenaRef
array_new_page(array_cpu_build *build)
{
	ArenaRef page = arena_alloc(build->arena, &build->tree->common.space, ARENA_MAX_UNITS);

	if (page != 0)
		memset(arena_at(build->arena, page), 0, ARRAY_PAGE_BYTES);
	return page;
}

HOST_FN void
array_free_pages(Arena *arena, array_cpu_tree *tree, ArenaRef page, int level)
{
	if (page == 0)
		return;
	for (uint64_t i = 0; level < ARRAY_LEVELS && i < ARRAY_PAGE_REFS; i++)
		array_free_pages(arena, tree, array_refs(arena, page)[i], level + 1);
	arena_free(arena, &tree->common.space, page, ARENA_MAX_UNITS);
}

#define array_cpu_pack cpu_tree_pack_nothing

/* Pages are full, and one of references has many. */
HOST_FN double
array_cpu_entry_bytes(int nwords, int fill_percent, bool equal_keys, bool on_gpu)
{
	(void) nwords;
	(void) fill_percent;
	(void) equal_keys;
	(void) on_gpu;
	return (double) (ARRAY_PAGE_BYTES + 2 * sizeof(ArenaRef)) / (double) ARRAY_PAGE_ENTRIES;
}

HOST_FN void
array_begin(array_cpu_build *build, Arena *arena, CpuTree *tree)
{
	memset(build, 0, sizeof(*build));
	build->arena = arena;
	build->tree = (array_cpu_tree *) tree;
}

/* Makes the pages on the way to the next entry that are not there yet. */
HOST_FN bool
array_make_way(array_cpu_build *build)
{
	uint64_t page = build->header.entries / ARRAY_PAGE_ENTRIES;
	ArenaRef *at = &build->header.root;

	for (int level = 0; level <= ARRAY_LEVELS; level++)
	{
		if (*at == 0)
			*at = array_new_page(build);
		if (*at == 0)
			return false;
		if (level < ARRAY_LEVELS)
			at = array_refs(build->arena, *at) + page / array_pages_below(level) % ARRAY_PAGE_REFS;
	}
	return true;
}

HOST_FN bool
array_push(array_cpu_build *build, const GpudsEntry *e)
{
	if (build->header.entries % ARRAY_PAGE_ENTRIES == 0)
	{
		if (build->header.entries / ARRAY_PAGE_ENTRIES >= array_pages_below(-1) || !array_make_way(build))
			return false;
	}
	build->header.entries++;
	*array_entry(build->arena, &build->header, build->header.entries - 1) = *e;
	return true;
}

/* Gives back what was written. */
HOST_FN void
array_give_up(array_cpu_build *build)
{
	array_free_pages(build->arena, build->tree, build->header.root, 0);
}

/* Publishes what was written; false: out of memory. */
HOST_FN bool
array_publish(array_cpu_build *build)
{
	CpuTree *tree = &build->tree->common;
	ArenaRef ref = arena_alloc(build->arena, &tree->space, 1);

	if (ref == 0)
		return false;
	*(ArrayHeader *) arena_at(build->arena, ref) = build->header;
	cpu_tree_publish(tree, ref, build->header.entries);
	return true;
}

HOST_FN KernelStatus
array_cpu_build_begin(Arena *arena, CpuTree *tree, void *build, int nwords, int fill_percent)
{
	(void) fill_percent;
	tree->nwords = (uint32_t) nwords;
	array_begin((array_cpu_build *) build, arena, tree);
	return KERNEL_OK;
}

HOST_FN KernelStatus
array_cpu_build_add(void *build, const GpudsEntry *entries, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
	{
		if (!array_push((array_cpu_build *) build, &entries[i]))
			return KERNEL_NO_MEMORY;
	}
	return KERNEL_OK;
}

HOST_FN KernelStatus
array_cpu_build_finish(void *build)
{
	return array_publish((array_cpu_build *) build) ? KERNEL_OK : KERNEL_NO_MEMORY;
}

HOST_FN void
array_cpu_build_cancel(void *build)
{
	array_cpu_build *b = (array_cpu_build *) build;

	arena_space_release(b->arena, &b->tree->common.space);
}

/* Notes that the newest version has replaced an array. */
HOST_FN void
array_retire(Arena *arena, array_cpu_tree *tree, ArenaRef ref)
{
	ArrayHeader *array = (ArrayHeader *) arena_at(arena, ref);

	array->replaced = tree->common.version;
	if (tree->newest != 0)
		((ArrayHeader *) arena_at(arena, tree->newest))->next = ref;
	else
		tree->oldest = ref;
	tree->newest = ref;
}

HOST_FN KernelStatus
array_cpu_apply(Arena *arena, CpuTree *tree, const GpudsOp *ops, int64_t n)
{
	const ArrayHeader *old = array_of(arena, tree);
	ArenaRef old_ref = (ArenaRef) tree->head;
	array_cpu_build build;
	uint64_t i = 0;
	bool fits = true;

	array_begin(&build, arena, tree);
	for (int64_t o = 0; o < n && fits; o++)
	{
		for (; fits && i < old->entries && entry_less(array_entry(arena, old, i), &ops[o].e); i++)
			fits = array_push(&build, array_entry(arena, old, i));
		if (i < old->entries && entry_equal(array_entry(arena, old, i), &ops[o].e))
			i++;
		if (fits && (ops[o].order & GPUDS_OP_DELETE) == 0)
			fits = array_push(&build, &ops[o].e);
	}
	for (; fits && i < old->entries; i++)
		fits = array_push(&build, array_entry(arena, old, i));
	if (!fits || !array_publish(&build))
	{
		array_give_up(&build);
		return KERNEL_NO_MEMORY;
	}
	array_retire(arena, (array_cpu_tree *) tree, old_ref);
	return KERNEL_OK;
}

HOST_FN void
array_cpu_reclaim(Arena *arena, CpuTree *tree, uint64_t oldest_pin)
{
	array_cpu_tree *t = (array_cpu_tree *) tree;

	while (t->oldest != 0)
	{
		ArenaRef ref = t->oldest;
		ArrayHeader array = *(ArrayHeader *) arena_at(arena, ref);

		if (array.replaced > oldest_pin)
			return;
		t->oldest = array.next;
		if (t->oldest == 0)
			t->newest = 0;
		array_free_pages(arena, t, array.root, 0);
		arena_free(arena, &tree->space, ref, 1);
	}
}

HOST_FN void
array_cpu_release(Arena *arena, CpuTree *tree)
{
	array_cpu_tree *t = (array_cpu_tree *) tree;

	arena_space_release(arena, &tree->space);
	t->oldest = t->newest = 0;
}

HOST_FN bool
array_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	const ArrayHeader *array = array_of(arena, tree);

	if (array == NULL)
		return true;
	if (array->entries != tree->entries)
	{
		snprintf(why, whylen, "the array has another number of entries than the tree");
		return false;
	}
	for (uint64_t i = 1; i < array->entries; i++)
	{
		if (!entry_less(array_entry(arena, array, i - 1), array_entry(arena, array, i)))
		{
			snprintf(why, whylen, "entry %llu of the array is out of order", (unsigned long long) i);
			return false;
		}
	}
	return true;
}

/*
 * Scans
 */

/* The entries from number *from to *to - 1 of an interval are still to come. */
HOST_FN void
array_locate(const Arena *arena, const ArrayHeader *array, const GpudsScan *scan, int64_t i, bool forward,
			 uint64_t *from, uint64_t *to)
{
	GpudsInterval interval = entry_scan_interval(scan, i);

	*from = array_rank(arena, array, &interval.lo, false);
	*to = array_rank(arena, array, &interval.hi, true);
	if (scan->inside)
	{
		uint64_t at = array_rank(arena, array, &scan->at, forward);

		if (forward && at > *from)
			*from = at;
		else if (!forward && at < *to)
			*to = at;
	}
}

HOST_FN int64_t
array_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
			   int64_t cap)
{
	const ArrayHeader *array = array_of(arena, tree);
	int64_t done = 0;

	if (array == NULL)
		return -1;
	while (done < cap && (forward ? scan->next < scan->n : scan->next > 0))
	{
		uint64_t from;
		uint64_t to;

		array_locate(arena, array, scan, forward ? scan->next : scan->next - 1, forward, &from, &to);
		for (; from < to && done < cap; done++)
			out[done] = *array_entry(arena, array, forward ? from++ : --to);
		if (cpu_scan_is_full(scan, out, done, cap, forward))
			break;
	}
	return done;
}

HOST_FN bool
array_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	GpudsEntry entry;
	int64_t n = 1;

	while (n == 1 && most-- > 0 && count->nothers < count->others_size)
	{
		n = array_cpu_scan(arena, tree, scan, true, &entry, 1);
		if (n == 1)
		{
			PageRow row = count->full ? PAGE_ROW_SEEN : cpu_count_row(count, entry.t);

			count->counted += row == PAGE_ROW_SEEN;
			if (row == PAGE_ROW_UNKNOWN)
				count->others[count->nothers++] = entry;
		}
	}
	return n >= 0;
}

#endif /* TEST_ARRAY_CPU_H */
