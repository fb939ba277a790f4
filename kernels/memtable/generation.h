/*-------------------------------------------------------------------------
 *
 * generation.h
 *	  A generation of a memtable: recent operations, ordered, for many writers.
 *
 * A generation is a skip list (Pugh 1990) that only grows, as a whole is read, and as a
 * whole is dropped.  Any number of threads or processes insert and search at once,
 * without locks: a node is complete before it is linked, links change by
 * compare-and-swap from the lowest level up, and no node is ever unlinked.  So a
 * search needs no retries, and a writer that dies in between leaves a list
 * that is whole.
 *
 * Nodes are ordered by entry, and those of one entry by descending order: the
 * first node of an entry has the last word on it.
 *
 * Memory comes from an arena, in chunks that the generation keeps until it is
 * dropped.  Nodes are placed one behind the other; a link is the number of an 8-byte
 * unit from the arena's start, 0 for none.
 *
 * The filter tells most keys that no node has: two bits for each value of w0, in
 * one chunk.  It is set before the node is linked.
 *
 * The caller that drops a generation sees to it that no process uses it (pins.h for readers,
 * the caller's own means for writers).
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_GENERATION_H
#define KERNELS_GENERATION_H

#include <string.h>

#include "kernels/cpu/arena.h"

/* Every level has a quarter of the nodes of the one below. */
#define GENERATION_LEVELS 10

#define GENERATION_UNIT_BYTES 8
#define GENERATION_CHUNK_UNITS (ARENA_CHUNK_BYTES / GENERATION_UNIT_BYTES)
#define GENERATION_MAX_CHUNKS (UINT64_C(1) << 22) /* of an arena, 32 GB: more has no link */

#define GENERATION_FILTER_BITS (ARENA_CHUNK_BYTES * 8)

typedef struct GenerationNode
{
	GpudsEntry entry;
	uint64_t order;                   /* as GpudsOp's */
	uint32_t next[GENERATION_LEVELS]; /* atomic; as many as the node's height */
} GenerationNode;

/*
 * An entry that a scan found to be of no use, with the scan's stamp.  A generation
 * only keeps kills in a list for the flusher; scans do not see them.
 */
typedef struct GenerationKill
{
	GpudsEntry entry;
	uint64_t stamp;
	uint32_t next; /* link, 0: the last one */
	uint32_t reserved;
} GenerationKill;

/*
 * What every search reads is in one cache line, what every insert changes in another: else
 * each insert would take the head away from all searches.
 */
typedef struct Generation
{
	uint32_t head[GENERATION_LEVELS]; /* atomic */
	uint32_t filter;                  /* its chunk */
	uint32_t reserved[5];

	uint64_t bump;    /* atomic: end << 32 | first unit of the newest chunk not handed out */
	uint64_t entries; /* atomic: nodes */
	uint32_t chunks;  /* atomic: newest chunk, 0: the generation has no memory */
	uint32_t nchunks; /* atomic */
	uint64_t nkills;  /* atomic */
	uint32_t kills;   /* atomic: the newest kill, 0: none */
	uint32_t reserved2[7];
} Generation;

/* The node at a link, which is not 0. */
HOST_FN const GenerationNode *
generation_node(const Arena *arena, uint32_t link)
{
	return (const GenerationNode *) ((const char *) arena + (size_t) link * GENERATION_UNIT_BYTES);
}

/* The links that lead on from a node; from the generation's head if link is 0. */
HOST_FN uint32_t *
generation_links(const Arena *arena, const Generation *generation, uint32_t link)
{
	return link == 0 ? (uint32_t *) generation->head : (uint32_t *) generation_node(arena, link)->next;
}

HOST_FN uint64_t
generation_hash(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xFF51AFD7ED558CCD);
	x ^= x >> 33;
	x *= UINT64_C(0xC4CEB9FE1A85EC53);
	return x ^ x >> 33;
}

/* Links of a node that is yet to be made: all threads agree on it, so it needs no generator. */
HOST_FN int
generation_height(const GpudsEntry *entry, uint64_t order)
{
	uint64_t random = generation_hash(entry->w0 ^
									  generation_hash(entry->w1 ^ generation_hash(entry->t + order)));
	int height = 1;

	while (height < GENERATION_LEVELS && (random & 3) == 0)
	{
		height++;
		random >>= 2;
	}
	return height;
}

HOST_FN bool
generation_before(const GenerationNode *node, const GpudsEntry *entry, uint64_t order)
{
	if (entry_equal(&node->entry, entry))
		return node->order > order;
	return entry_less(&node->entry, entry);
}

/*
 * Memory
 */

HOST_FN void
generation_push_chunk(Arena *arena, Generation *generation, uint32_t chunk)
{
	uint32_t newest = __atomic_load_n(&generation->chunks, __ATOMIC_RELAXED);

	do
		__atomic_store_n(&arena_links(arena)[chunk], newest, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&generation->chunks, &newest, chunk, false, __ATOMIC_RELEASE,
										__ATOMIC_RELAXED));
	__atomic_fetch_add(&generation->nchunks, 1, __ATOMIC_RELAXED);
}

/*
 * Begins an empty generation in a struct that has no memory, which nobody else uses
 * yet.  KERNEL_NO_MEMORY: it still has none.
 */
HOST_FN KernelStatus
generation_begin(Arena *arena, Generation *generation)
{
	uint32_t filter = arena_chunk_take(arena);

	memset(generation, 0, sizeof(*generation));
	if (filter == 0)
		return KERNEL_NO_MEMORY;
	memset(arena_at(arena, filter * ARENA_CHUNK_UNITS), 0, ARENA_CHUNK_BYTES);
	generation->filter = filter;
	generation_push_chunk(arena, generation, filter);
	return KERNEL_OK;
}

/* Gives all memory back.  Nobody uses the generation any more. */
HOST_FN void
generation_drop(Arena *arena, Generation *generation)
{
	ArenaSpace space;

	arena_space_init(&space);
	space.chunks = generation->chunks;
	space.nchunks = generation->nchunks;
	arena_space_release(arena, &space);
	memset(generation, 0, sizeof(*generation));
}

/* How many nodes the generation has; writers may be adding some. */
HOST_FN uint64_t
generation_entries(const Generation *generation)
{
	return __atomic_load_n(&generation->entries, __ATOMIC_RELAXED);
}

/* A number of units in a row; 0: there is no memory. */
HOST_FN uint32_t
generation_alloc(Arena *arena, Generation *generation, uint32_t units)
{
	/* a writer that places a node in a chunk comes after those that had the chunk before */
	uint64_t bump = __atomic_load_n(&generation->bump, __ATOMIC_ACQUIRE);
	uint32_t chunk = 0;

	for (;;)
	{
		uint32_t first = (uint32_t) bump;
		uint32_t end = (uint32_t) (bump >> 32);
		bool fits = end - first >= units;

		if (!fits)
		{
			if (chunk == 0)
				chunk = arena_chunk_take(arena);
			if (chunk == 0)
				return 0;
			first = chunk * GENERATION_CHUNK_UNITS;
			end = first + GENERATION_CHUNK_UNITS;
		}
		if (!__atomic_compare_exchange_n(&generation->bump, &bump, (uint64_t) end << 32 | (first + units),
										 false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		if (!fits)
			generation_push_chunk(arena, generation, chunk);
		else if (chunk != 0)
			arena_chunk_give(arena, chunk); /* another thread was faster */
		return first;
	}
}

/*
 * The filter
 */

/* The words and the bits in them of a value of w0. */
HOST_FN uint64_t *
generation_filter_bit(const Arena *arena, const Generation *generation, uint64_t hash, uint64_t *bit)
{
	uint64_t *words = arena_at(arena, generation->filter * ARENA_CHUNK_UNITS);
	uint64_t number = hash % GENERATION_FILTER_BITS;

	*bit = UINT64_C(1) << (number % 64);
	return &words[number / 64];
}

HOST_FN void
generation_filter_add(const Arena *arena, const Generation *generation, uint64_t w0)
{
	uint64_t hash = generation_hash(w0);

	for (int i = 0; i < 2; i++, hash >>= 32)
	{
		uint64_t bit;
		uint64_t *word = generation_filter_bit(arena, generation, hash, &bit);

		if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0)
			__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	}
}

/* May there be nodes with this w0? */
HOST_FN bool
generation_filter_pass(const Arena *arena, const Generation *generation, uint64_t w0)
{
	uint64_t hash = generation_hash(w0);

	for (int i = 0; i < 2; i++, hash >>= 32)
	{
		uint64_t bit;
		const uint64_t *word = generation_filter_bit(arena, generation, hash, &bit);

		if ((__atomic_load_n(word, __ATOMIC_RELAXED) & bit) == 0)
			return false;
	}
	return true;
}

/*
 * Searching and inserting
 */

/*
 * On one level, from a node (0: the head) on: the last node that is before an entry
 * and order.  *next: the link behind it.
 */
HOST_FN uint32_t
generation_walk(const Arena *arena, const Generation *generation, uint32_t from, int level,
				const GpudsEntry *entry, uint64_t order, uint32_t *next)
{
	*next = __atomic_load_n(&generation_links(arena, generation, from)[level], __ATOMIC_ACQUIRE);
	while (*next != 0 && generation_before(generation_node(arena, *next), entry, order))
	{
		from = *next;
		*next = __atomic_load_n(&generation_node(arena, from)->next[level], __ATOMIC_ACQUIRE);
	}
	return from;
}

/*
 * Inserts an operation; orders of one entry differ.  *others: how many were there.
 * KERNEL_NO_MEMORY: nothing was changed.
 */
HOST_FN KernelStatus
generation_insert(Arena *arena, Generation *generation, const GpudsEntry *entry, uint64_t order,
				  uint64_t *others)
{
	int height = generation_height(entry, order);
	size_t bytes = offsetof(GenerationNode, next) + (size_t) height * sizeof(uint32_t);
	uint32_t self = generation_alloc(arena, generation,
									 (uint32_t) ((bytes + GENERATION_UNIT_BYTES - 1) /
												 GENERATION_UNIT_BYTES));
	uint32_t before[GENERATION_LEVELS];
	uint32_t next[GENERATION_LEVELS];
	GenerationNode *node;
	uint32_t at = 0;

	if (self == 0)
		return KERNEL_NO_MEMORY;
	node = (GenerationNode *) generation_node(arena, self);
	node->entry = *entry;
	node->order = order;
	generation_filter_add(arena, generation, entry->w0);
	for (int level = GENERATION_LEVELS - 1; level >= 0; level--)
		before[level] = at = generation_walk(arena, generation, at, level, entry, order, &next[level]);
	for (int level = 0; level < height; level++)
	{
		for (;;)
		{
			uint32_t *link = &generation_links(arena, generation, before[level])[level];

			__atomic_store_n(&node->next[level], next[level], __ATOMIC_RELAXED);
			if (__atomic_compare_exchange_n(link, &next[level], self, false, __ATOMIC_RELEASE,
											__ATOMIC_RELAXED))
				break;
			before[level] = generation_walk(arena, generation, before[level], level, entry, order,
											&next[level]);
		}
	}
	*others = __atomic_fetch_add(&generation->entries, 1, __ATOMIC_RELAXED);
	return KERNEL_OK;
}

/* The first node, or 0. */
HOST_FN uint32_t
generation_first(const Generation *generation)
{
	return __atomic_load_n(&generation->head[0], __ATOMIC_ACQUIRE);
}

/* The node behind a node, or 0. */
HOST_FN uint32_t
generation_next(const Arena *arena, uint32_t link)
{
	return __atomic_load_n(&generation_node(arena, link)->next[0], __ATOMIC_ACQUIRE);
}

/* The last node before an entry (0: none), and the first one that is not (*next, 0: none). */
HOST_FN uint32_t
generation_find(const Arena *arena, const Generation *generation, const GpudsEntry *entry, uint32_t *next)
{
	uint32_t at = 0;

	for (int level = GENERATION_LEVELS - 1; level >= 0; level--)
		at = generation_walk(arena, generation, at, level, entry, UINT64_MAX, next);
	return at;
}

/* The kill at a link, which is not 0. */
HOST_FN const GenerationKill *
generation_kill_at(const Arena *arena, uint32_t link)
{
	return (const GenerationKill *) ((const char *) arena + (size_t) link * GENERATION_UNIT_BYTES);
}

/* The newest kill, or 0; those before it follow by next. */
HOST_FN uint32_t
generation_kills(const Generation *generation)
{
	return __atomic_load_n(&generation->kills, __ATOMIC_ACQUIRE);
}

/* Adds a kill.  *others: how many there were.  KERNEL_NO_MEMORY: nothing was changed. */
HOST_FN KernelStatus
generation_add_kill(Arena *arena, Generation *generation, const GpudsEntry *entry, uint64_t stamp,
					uint64_t *others)
{
	uint32_t self = generation_alloc(arena, generation, sizeof(GenerationKill) / GENERATION_UNIT_BYTES);
	GenerationKill *kill;
	uint32_t newest;

	if (self == 0)
		return KERNEL_NO_MEMORY;
	kill = (GenerationKill *) generation_kill_at(arena, self);
	kill->entry = *entry;
	kill->stamp = stamp;
	newest = __atomic_load_n(&generation->kills, __ATOMIC_RELAXED);
	do
		kill->next = newest;
	while (!__atomic_compare_exchange_n(&generation->kills, &newest, self, false, __ATOMIC_RELEASE,
										__ATOMIC_RELAXED));
	*others = __atomic_fetch_add(&generation->nkills, 1, __ATOMIC_RELAXED);
	return KERNEL_OK;
}

#endif /* KERNELS_GENERATION_H */
