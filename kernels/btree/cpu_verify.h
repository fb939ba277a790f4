/*-------------------------------------------------------------------------
 *
 * btree_verify.h
 *	  Checking everything that a tree promises.
 *
 * Order, separators, occupancy, levels and counts are checked by walking the
 * tree; that memory is neither lost nor used twice, by marking every unit that
 * the tree, its queue of replaced nodes and its free lists hold, and comparing
 * with the chunks of its space.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CPU_BTREE_VERIFY_H
#define CPU_BTREE_VERIFY_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/btree/cpu_node.h"

typedef struct CpuBtreeVerify
{
	const Arena *arena;
	const CpuBtree *tree;
	uint64_t *owned;  /* a bit a unit: belongs to the tree's chunks */
	uint64_t *marked; /* a bit a unit: found in use or free */
	uint64_t nmarked;
	char *why;
	size_t whylen;
} CpuBtreeVerify;

/* Say what is wrong; returns false. */
__attribute__((format(printf, 2, 3))) HOST_FN bool
cpu_btree_wrong(CpuBtreeVerify *v, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(v->why, v->whylen, format, args);
	va_end(args);
	return false;
}

/* Note that units are used, for the first time and inside the tree's memory. */
HOST_FN bool
cpu_btree_mark(CpuBtreeVerify *v, ArenaRef ref, int units, const char *what)
{
	uint64_t limit = v->arena->nchunks * ARENA_CHUNK_UNITS;

	for (int i = 0; i < units; i++)
	{
		uint64_t unit = (uint64_t) ref + (uint64_t) i;

		if (unit >= limit || (v->owned[unit / 64] >> (unit % 64) & 1) == 0)
			return cpu_btree_wrong(v, "%s at unit %llu is outside the tree's memory", what,
								   (unsigned long long) unit);
		if (v->marked[unit / 64] >> (unit % 64) & 1)
			return cpu_btree_wrong(v, "%s at unit %llu is used twice", what, (unsigned long long) unit);
		v->marked[unit / 64] |= UINT64_C(1) << (unit % 64);
		v->nmarked++;
	}
	return true;
}

/* A leaf whose entries must be in [low, high); high NULL: no limit. */
HOST_FN bool
cpu_btree_verify_leaf(CpuBtreeVerify *v, ArenaRef ref, const GpudsEntry *low, const GpudsEntry *high,
					  bool may_be_small, uint64_t *count)
{
	const int nw = (int) v->tree->nwords;
	const uint64_t *leaf = cpu_btree_node(v->arena, ref);
	int n = cpu_btree_leaf_n(leaf, nw);
	GpudsEntry previous = { 0, 0, 0 };

	if (n < (may_be_small ? 1 : CPU_BTREE_MIN))
		return cpu_btree_wrong(v, "leaf at unit %u has only %d entries", ref, n);
	for (int i = 0; i < CPU_BTREE_FANOUT; i++)
	{
		GpudsEntry e;

		cpu_btree_leaf_entry(leaf, i, nw, &e);
		if (i >= n)
		{
			if (e.w0 != UINT64_MAX || (nw == 2 && e.w1 != UINT64_MAX) || e.t != UINT64_MAX)
				return cpu_btree_wrong(v, "unused place %d of leaf at unit %u is not all ones", i, ref);
			continue;
		}
		if (i > 0 && !entry_less(&previous, &e))
			return cpu_btree_wrong(v, "entries %d and %d of leaf at unit %u are out of order", i - 1, i, ref);
		if (entry_less(&e, low))
			return cpu_btree_wrong(v, "entry %d of leaf at unit %u is below the separator before it", i, ref);
		if (high != NULL && !entry_less(&e, high))
			return cpu_btree_wrong(v, "entry %d of leaf at unit %u is not below the separator after it", i,
								   ref);
		previous = e;
	}
	*count = (uint64_t) n;
	return true;
}

/* A subtree; recursion is as deep as the tree. */
HOST_FN bool
cpu_btree_verify_node(CpuBtreeVerify *v, ArenaRef ref, int level, const GpudsEntry *low,
					  const GpudsEntry *high, bool root, bool right, uint64_t *count)
{
	const int nw = (int) v->tree->nwords;
	const uint64_t *node;
	const uint32_t *children;
	const uint32_t *counts;
	unsigned ties;
	int n;

	if (!cpu_btree_mark(v, ref, cpu_btree_node_units(nw), level > 0 ? "inner node" : "leaf"))
		return false;
	if (level == 0)
		return cpu_btree_verify_leaf(v, ref, low, high, root || right, count);

	node = cpu_btree_node(v->arena, ref);
	children = cpu_btree_children(node, nw);
	counts = cpu_btree_counts(node, nw);
	n = cpu_btree_header_n(node[0]);
	ties = cpu_btree_header_ties(node[0]);
	if (cpu_btree_header_level(node[0]) != level)
		return cpu_btree_wrong(v, "inner node at unit %u says level %d instead of %d", ref,
							   cpu_btree_header_level(node[0]), level);
	if (n > CPU_BTREE_FANOUT || n < (root ? 2 : right ? 1 : CPU_BTREE_MIN))
		return cpu_btree_wrong(v, "inner node at unit %u has %d children", ref, n);
	if (ties >> (n - 1) != 0)
		return cpu_btree_wrong(v, "inner node at unit %u marks a tie that it has no separator for", ref);
	if ((ties != 0) != (cpu_btree_header_ext(node[0]) != 0))
		return cpu_btree_wrong(v, "inner node at unit %u has an extension without ties or ties without one",
							   ref);
	if (ties != 0 && !cpu_btree_mark(v, cpu_btree_header_ext(node[0]), 1, "extension"))
		return false;
	*count = 0;
	for (int i = 0; i < CPU_BTREE_FANOUT; i++)
	{
		GpudsEntry child_low = *low;
		GpudsEntry child_high;
		uint64_t child_count = 0;

		if (i >= n)
		{
			if (children[i] != 0 || counts[i] != 0 || node[i] != UINT64_MAX ||
				(nw == 2 && node[8 + i] != UINT64_MAX))
				return cpu_btree_wrong(v, "unused place %d of inner node at unit %u is not clean", i, ref);
			continue;
		}
		if (i > 0)
			cpu_btree_separator(v->arena, node, i - 1, nw, &child_low);
		if (i < n - 1)
			cpu_btree_separator(v->arena, node, i, nw, &child_high);
		else if (high != NULL)
			child_high = *high;
		if (i < n - 1 && (ties >> i & 1) != 0 && child_high.t == 0)
			return cpu_btree_wrong(v, "separator %d of inner node at unit %u is a tie without a tie word", i,
								   ref);
		if (entry_less(&child_low, low) || (i < n - 1 && !entry_less(&child_low, &child_high)) ||
			(i < n - 1 && high != NULL && !entry_less(&child_high, high)))
			return cpu_btree_wrong(v, "separator %d of inner node at unit %u is out of order", i, ref);
		if (!cpu_btree_verify_node(v, children[i], level - 1, &child_low,
								   i < n - 1 || high != NULL ? &child_high : NULL, false, right && i == n - 1,
								   &child_count))
			return false;
		if (child_count != counts[i])
			return cpu_btree_wrong(v, "inner node at unit %u counts %u entries below child %d that has %llu",
								   ref, counts[i], i, (unsigned long long) child_count);
		*count += child_count;
	}
	return true;
}

/* The pieces of memory that wait to be freed, and those that are free. */
HOST_FN bool
cpu_btree_verify_free(CpuBtreeVerify *v)
{
	const ArenaSpace *space = &v->tree->space;
	uint64_t version = 0;
	ArenaRef tail = 0;

	for (ArenaRef ref = v->tree->retired.head; ref != 0;)
	{
		const CpuBtreeQueueUnit *unit = (const CpuBtreeQueueUnit *) arena_at(v->arena, ref);

		if (!cpu_btree_mark(v, ref, 1, "queue"))
			return false;
		if (unit->version < version || unit->version > v->tree->version)
			return cpu_btree_wrong(v, "queue at unit %u is of version %llu, out of order", ref,
								   (unsigned long long) unit->version);
		if (unit->n > CPU_BTREE_QUEUE_ITEMS)
			return cpu_btree_wrong(v, "queue at unit %u has %u items", ref, unit->n);
		version = unit->version;
		for (uint32_t i = 0; i < unit->n; i++)
		{
			uint64_t units = unit->item[i] >> 32;

			if (units < 1 || units > ARENA_MAX_UNITS ||
				!cpu_btree_mark(v, (ArenaRef) unit->item[i], (int) units, "replaced node"))
				return units < 1 || units > ARENA_MAX_UNITS
						   ? cpu_btree_wrong(v, "queue at unit %u holds a piece of %u units", ref,
											 (unsigned) units)
						   : false;
		}
		tail = ref;
		ref = unit->next;
	}
	if (tail != v->tree->retired.tail)
		return cpu_btree_wrong(v, "the queue's end is at unit %u, not at %u", tail, v->tree->retired.tail);
	for (int units = 1; units <= ARENA_MAX_UNITS; units++)
	{
		for (ArenaRef ref = space->free[units]; ref != 0; ref = *(const ArenaRef *) arena_at(v->arena, ref))
		{
			if (!cpu_btree_mark(v, ref, units, "free piece"))
				return false;
		}
	}
	if (space->bump < space->bump_end &&
		!cpu_btree_mark(v, space->bump, (int) (space->bump_end - space->bump), "unused rest of a chunk"))
		return false;
	return true;
}

/* Everything, with memory for the marks at hand. */
HOST_FN bool
cpu_btree_verify_all(CpuBtreeVerify *v)
{
	const ArenaSpace *space = &v->tree->space;
	uint64_t head = v->tree->head;
	int height = (int) (head >> 32 & 0xFF);
	GpudsEntry lowest = { 0, 0, 0 };
	uint64_t count = 0;
	uint32_t nchunks = 0;

	for (uint64_t chunk = space->chunks; chunk != 0; nchunks++)
	{
		if (chunk < v->arena->first || chunk >= v->arena->nchunks || nchunks >= space->nchunks)
			return cpu_btree_wrong(v, "the list of chunks is broken at chunk %llu",
								   (unsigned long long) chunk);
		if (v->owned[chunk * (ARENA_CHUNK_UNITS / 64)] != 0)
			return cpu_btree_wrong(v, "chunk %llu is twice in the list of chunks",
								   (unsigned long long) chunk);
		memset(&v->owned[chunk * (ARENA_CHUNK_UNITS / 64)], 0xFF, ARENA_CHUNK_UNITS / 8);
		chunk = arena_links(v->arena)[chunk];
	}
	if (nchunks != space->nchunks)
		return cpu_btree_wrong(v, "%u chunks instead of %u", nchunks, space->nchunks);
	if (head & CPU_BTREE_HEAD_VALID)
	{
		if ((head >> 40 & 0xFF) != v->tree->nwords || v->tree->nwords < 1 || v->tree->nwords > 2)
			return cpu_btree_wrong(v, "%u key words, but the head says %u", v->tree->nwords,
								   (unsigned) (head >> 40 & 0xFF));
		if (height > CPU_BTREE_MAX_HEIGHT || (height == 0) != ((ArenaRef) head == 0))
			return cpu_btree_wrong(v, "height %d with root at unit %u", height, (ArenaRef) head);
		if (height > 0 &&
			!cpu_btree_verify_node(v, (ArenaRef) head, height - 1, &lowest, NULL, true, true, &count))
			return false;
		if (count != v->tree->count)
			return cpu_btree_wrong(v, "%llu entries instead of %llu", (unsigned long long) count,
								   (unsigned long long) v->tree->count);
	}
	if (!cpu_btree_verify_free(v))
		return false;
	if ((head & CPU_BTREE_HEAD_VALID) && v->nmarked != (uint64_t) nchunks * ARENA_CHUNK_UNITS)
		return cpu_btree_wrong(v, "%llu units are lost",
							   (unsigned long long) ((uint64_t) nchunks * ARENA_CHUNK_UNITS - v->nmarked));
	return true;
}

/*
 * Check a tree; the caller keeps others from changing it.  false: why says
 * what is wrong.  Takes two bits of process memory for every unit of the arena.
 */
HOST_FN bool
cpu_btree_verify(const Arena *arena, const CpuBtree *tree, char *why, size_t whylen)
{
	size_t words = (size_t) arena->nchunks * (ARENA_CHUNK_UNITS / 64);
	CpuBtreeVerify v;
	bool ok;

	v.arena = arena;
	v.tree = tree;
	v.nmarked = 0;
	v.why = why;
	v.whylen = whylen;
	v.owned = (uint64_t *) calloc(words, sizeof(uint64_t));
	v.marked = (uint64_t *) calloc(words, sizeof(uint64_t));
	if (v.owned == NULL || v.marked == NULL)
		ok = cpu_btree_wrong(&v, "out of memory while checking");
	else
		ok = cpu_btree_verify_all(&v);
	free(v.owned);
	free(v.marked);
	return ok;
}

#endif /* CPU_BTREE_VERIFY_H */
