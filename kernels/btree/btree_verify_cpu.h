/*-------------------------------------------------------------------------
 *
 * btree_verify_cpu.h
 *	  Checking everything that a tree in an arena promises.
 *
 * The nodes are checked by walking the tree (btree_verify.h).  That memory is neither
 * lost nor used twice is checked by marking every unit that the tree, its queue
 * of replaced nodes and its free lists hold, and comparing with the chunks of its
 * space.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_VERIFY_CPU_H
#define BTREE_VERIFY_CPU_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/btree/btree_build_cpu.h"
#include "kernels/btree/btree_verify.h"

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

/* Nodes side by side: what their parents promise of them, in a BtreeList. */
typedef struct CpuBtreeSiblings
{
	uint64_t w0[BTREE_FANOUT + 2];
	uint64_t w1[BTREE_FANOUT + 2];
	uint64_t t[BTREE_FANOUT + 2];
	BtreeRef ref[BTREE_FANOUT + 2];
	uint32_t before[BTREE_FANOUT + 3];
	BtreeList list;
} CpuBtreeSiblings;

/* n places, none of which is a node yet. */
HOST_FN void
cpu_btree_siblings_init(CpuBtreeSiblings *siblings, int64_t n)
{
	memset(siblings, 0, sizeof(*siblings));
	siblings->list.w0 = siblings->w0;
	siblings->list.w1 = siblings->w1;
	siblings->list.t = siblings->t;
	siblings->list.ref = siblings->ref;
	siblings->list.before = siblings->before;
	siblings->list.n = n;
}

/*
 * The children of sound inner node i of a list, the first of them at place
 * *first.  At either side is a place for the neighbour, if there is one, of which
 * only the separators and the numbers of entries are used.
 */
HOST_FN void
cpu_btree_siblings_open(CpuBtreeSiblings *children, const Arena *arena, const BtreeList *list, int64_t i,
						int64_t *first, const int nw)
{
	const unsigned char *base = (const unsigned char *) arena;
	int n = btree_inner_n(btree_node(base, list->ref[i]));
	bool last = i + 1 == list->n;
	uint32_t start[BTREE_FANOUT + 2];

	*first = i > 0 ? 1 : 0;
	start[i] = (uint32_t) *first;
	cpu_btree_siblings_init(children, *first + n + (last ? 0 : 1));
	for (int p = 0; p < n; p++)
		btree_verify_open(base, list, start, &children->list, i, p, nw);
	children->before[*first + n] = list->before[i + 1];
	if (!last)
	{
		GpudsEntry high = btree_list_separator(list, i + 1, nw);

		btree_list_set_separator(&children->list, *first + n, &high, nw);
	}
}

/*
 * Node i of a list and what is below it; right: at the tree's right edge.  Recursion is as deep as the
 * tree.
 */
HOST_FN bool
cpu_btree_verify_node(CpuBtreeVerify *v, const BtreeList *list, int64_t i, int level, bool right)
{
	const int nw = (int) v->tree->nwords;
	const unsigned char *base = (const unsigned char *) v->arena;
	const char *kind = level > 0 ? "inner node" : "leaf";
	BtreeRef ref = list->ref[i];
	const uint64_t *node = btree_node(base, ref);
	CpuBtreeSiblings children;
	BtreeFault fault;
	int64_t first;
	int n;

	/* the first unit before the rest: it says how many there are */
	if (!cpu_btree_mark(v, ref, 1, kind) ||
		!cpu_btree_mark(v, ref + 1, (level > 0 ? cpu_btree_inner_units(node[0]) : btree_leaf_units(nw)) - 1,
						kind))
		return false;
	if (level == 0)
		fault = btree_verify_leaf(base, list, i, nw);
	else if (btree_header_details_mask(node[0]) != 0)
		fault = btree_verify_inner(base, list, i, nw);
	else
		fault = btree_verify_children(base, list, i, nw);
	if (fault != BTREE_SOUND)
		return cpu_btree_wrong(v, "%s at unit %u %s", kind, ref, btree_fault_words(fault));
	n = level > 0 ? btree_inner_n(node) : btree_leaf_n(node, nw);
	if (n < CPU_BTREE_MIN && !right)
		return cpu_btree_wrong(v, "%s at unit %u is less than half full", kind, ref);
	if (level == 0)
		return true;
	cpu_btree_siblings_open(&children, v->arena, list, i, &first, nw);
	for (int p = 0; p < n; p++)
	{
		if (!cpu_btree_verify_node(v, &children.list, first + p, level - 1, right && p == n - 1))
			return false;
	}
	return true;
}

/* All nodes of a tree that has some. */
HOST_FN bool
cpu_btree_verify_root(CpuBtreeVerify *v)
{
	GpudsEntry lowest = { 0, 0, 0 };
	CpuBtreeSiblings root;

	cpu_btree_siblings_init(&root, 1);
	btree_list_set_separator(&root.list, 0, &lowest, (int) v->tree->nwords);
	root.ref[0] = cpu_btree_head_root(v->tree->head);
	root.before[0] = 0;
	root.before[1] = (uint32_t) cpu_btree_entries(v->tree);
	return cpu_btree_verify_node(v, &root.list, 0, cpu_btree_head_height(v->tree->head) - 1, true);
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

			if (units < 1 || (units > ARENA_MAX_UNITS && units != ARENA_CHUNK_UNITS))
				return cpu_btree_wrong(v, "queue at unit %u holds a piece of %u units", ref,
									   (unsigned) units);
			if (!cpu_btree_mark(v, (ArenaRef) unit->item[i], (int) units, "replaced node"))
				return false;
		}
		tail = ref;
		ref = unit->next;
	}
	if (tail != v->tree->retired.tail)
		return cpu_btree_wrong(v, "the queue's end is at unit %u, not at %u", tail, v->tree->retired.tail);
	for (int list = 0; list <= ARENA_MAX_UNITS; list++)
	{
		for (ArenaRef ref = space->free[list]; ref != 0; ref = *(const ArenaRef *) arena_at(v->arena, ref))
		{
			if (!cpu_btree_mark(v, ref, list > 0 ? list : ARENA_CHUNK_UNITS, "free piece"))
				return false;
		}
	}
	if (space->bump < space->bump_end &&
		!cpu_btree_mark(v, space->bump, (int) (space->bump_end - space->bump), "unused rest of a chunk"))
		return false;
	return true;
}

/* The chunks that the tree's space has. */
HOST_FN bool
cpu_btree_verify_chunks(CpuBtreeVerify *v)
{
	const ArenaSpace *space = &v->tree->space;
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
	return true;
}

/* The head of a tree that was not withdrawn, and all nodes. */
HOST_FN bool
cpu_btree_verify_tree(CpuBtreeVerify *v)
{
	uint64_t head = v->tree->head;
	int height = cpu_btree_head_height(head);
	uint64_t count = cpu_btree_entries(v->tree);

	if ((uint32_t) cpu_btree_head_nwords(head) != v->tree->nwords || v->tree->nwords < 1 ||
		v->tree->nwords > 2)
		return cpu_btree_wrong(v, "%u key words, but the head says %d", v->tree->nwords,
							   cpu_btree_head_nwords(head));
	if (height > CPU_BTREE_MAX_HEIGHT || (height == 0) != (cpu_btree_head_root(head) == 0))
		return cpu_btree_wrong(v, "height %d with root at unit %u", height, cpu_btree_head_root(head));
	if (count > BTREE_MAX_ENTRIES || (height == 0 && count != 0))
		return cpu_btree_wrong(v, "height %d with %llu entries", height, (unsigned long long) count);
	if (v->tree->count[cpu_btree_head_count(head)] != count)
		return cpu_btree_wrong(v, "%llu entries, but the head's count says %llu", (unsigned long long) count,
							   (unsigned long long) v->tree->count[cpu_btree_head_count(head)]);
	return height == 0 || cpu_btree_verify_root(v);
}

/* Every unit of the chunks was found. */
HOST_FN bool
cpu_btree_verify_found(CpuBtreeVerify *v)
{
	uint64_t units = (uint64_t) v->tree->space.nchunks * ARENA_CHUNK_UNITS;

	if (v->nmarked != units)
		return cpu_btree_wrong(v, "%llu units are lost", (unsigned long long) (units - v->nmarked));
	return true;
}

/* Memory for the marks.  False: there is none. */
HOST_FN bool
cpu_btree_verify_begin(CpuBtreeVerify *v, const Arena *arena, const CpuBtree *tree, char *why, size_t whylen)
{
	size_t words = (size_t) arena->nchunks * (ARENA_CHUNK_UNITS / 64);

	v->arena = arena;
	v->tree = tree;
	v->nmarked = 0;
	v->why = why;
	v->whylen = whylen;
	v->owned = (uint64_t *) calloc(words, sizeof(uint64_t));
	v->marked = (uint64_t *) calloc(words, sizeof(uint64_t));
	if (v->owned == NULL || v->marked == NULL)
		return cpu_btree_wrong(v, "out of memory while checking");
	return true;
}

HOST_FN void
cpu_btree_verify_end(CpuBtreeVerify *v)
{
	free(v->owned);
	free(v->marked);
}

/*
 * Check a tree; the caller keeps others from changing it.  false: why says
 * what is wrong.  Takes two bits of process memory for every unit of the arena.
 */
HOST_FN bool
cpu_btree_verify(const Arena *arena, const CpuBtree *tree, char *why, size_t whylen)
{
	const bool valid = (tree->head & CPU_BTREE_HEAD_VALID) != 0;
	CpuBtreeVerify v;
	bool ok = cpu_btree_verify_begin(&v, arena, tree, why, whylen);

	ok = ok && cpu_btree_verify_chunks(&v);
	ok = ok && (!valid || cpu_btree_verify_tree(&v));
	ok = ok && cpu_btree_verify_free(&v);
	ok = ok && (!valid || cpu_btree_verify_found(&v));
	cpu_btree_verify_end(&v);
	return ok;
}

#endif /* BTREE_VERIFY_CPU_H */
