/*-------------------------------------------------------------------------
 *
 * arena.h
 *	  Memory that many structures share, in chunks and units.
 *
 * An arena is one piece of memory, mapped by every process that uses it; its
 * header lies at its start.  It is cut into chunks of 8 kB, and these into
 * units of 64 bytes.  An ArenaRef is the number of a unit, counted from the
 * arena's start; the header's own units make 0 a reference that never occurs.
 *
 * Chunks are handed to spaces.  A space is the memory of one structure: only
 * one process at a time allocates from it or frees into it (the caller holds
 * a lock), while the arena's own operations are lock-free.  A space keeps its
 * chunks until it is released as a whole.  A chunk is as small as it is so that a
 * structure of a few entries takes no more; a large one takes a chunk for every
 * few hundred entries, which costs nothing beside filling it.  A piece is of up to
 * ARENA_MAX_UNITS units, or a whole chunk.
 *
 * The links of free chunks, and of a space's chunks, lie in a table behind the
 * header, so that memory never used is never touched.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_ARENA_H
#define KERNELS_ARENA_H

#include "kernels/core/entry.h"

#define ARENA_UNIT_BYTES 64
#define ARENA_CHUNK_BYTES 8192
#define ARENA_CHUNK_UNITS (ARENA_CHUNK_BYTES / ARENA_UNIT_BYTES)
#define ARENA_MAX_UNITS 8                    /* the largest piece that is less than a chunk */
#define ARENA_MAX_CHUNKS (UINT64_C(1) << 25) /* 256 GB: more has no ArenaRef */

typedef uint32_t ArenaRef;

typedef struct Arena
{
	uint64_t nchunks; /* all chunks, the header's too */
	uint64_t first;   /* first chunk behind the header and the table */
	uint64_t fresh;   /* atomic: first chunk that nobody ever had */
	uint64_t stack;   /* atomic: change counter << 32 | top free chunk, 0: none */
	uint64_t inuse;   /* atomic: chunks that spaces hold */
	uint64_t reserved[3];
} Arena;

typedef struct ArenaSpace
{
	uint32_t chunks;                    /* newest chunk of the list, 0: none */
	uint32_t nchunks;                   /* atomic: others look at it */
	ArenaRef bump;                      /* units of the newest chunk not handed out yet ... */
	ArenaRef bump_end;                  /* ... end here */
	ArenaRef free[ARENA_MAX_UNITS + 1]; /* by units; free[0]: whole chunks */
} ArenaSpace;

/* The memory of a reference. */
KERNEL_FN void *
arena_at(const void *base, ArenaRef ref)
{
	return (void *) ((unsigned char *) base + (size_t) ref * ARENA_UNIT_BYTES);
}

/* The table of links, one a chunk. */
HOST_FN uint32_t *
arena_links(const Arena *arena)
{
	return (uint32_t *) (arena + 1);
}

/*
 * Make an arena of bytes at arena, which must be aligned to 64 bytes.  Only
 * the header is written.
 */
HOST_FN void
arena_init(Arena *arena, size_t bytes)
{
	uint64_t nchunks = bytes / ARENA_CHUNK_BYTES;

	if (nchunks > ARENA_MAX_CHUNKS)
		nchunks = ARENA_MAX_CHUNKS;
	arena->nchunks = nchunks;
	arena->first = (sizeof(Arena) + nchunks * sizeof(uint32_t) + ARENA_CHUNK_BYTES - 1) / ARENA_CHUNK_BYTES;
	arena->fresh = arena->first;
	arena->stack = 0;
	arena->inuse = 0;
	arena->reserved[0] = arena->reserved[1] = arena->reserved[2] = 0;
}

/* Bytes that spaces can get in all. */
HOST_FN size_t
arena_size(const Arena *arena)
{
	return arena->nchunks > arena->first ? (size_t) (arena->nchunks - arena->first) * ARENA_CHUNK_BYTES : 0;
}

/* Bytes that spaces hold. */
HOST_FN size_t
arena_used(const Arena *arena)
{
	return (size_t) __atomic_load_n(&arena->inuse, __ATOMIC_RELAXED) * ARENA_CHUNK_BYTES;
}

/*
 * Take a chunk; 0: there is none.  The counter in the stack's upper half keeps
 * a compare-and-swap from mistaking a chunk that went and came back for one
 * that stayed.
 */
HOST_FN uint32_t
arena_chunk_take(Arena *arena)
{
	uint32_t *links = arena_links(arena);
	uint64_t top = __atomic_load_n(&arena->stack, __ATOMIC_ACQUIRE);
	uint64_t fresh;

	while ((uint32_t) top != 0)
	{
		uint64_t next = __atomic_load_n(&links[(uint32_t) top], __ATOMIC_RELAXED);

		if (__atomic_compare_exchange_n(&arena->stack, &top, ((top >> 32) + 1) << 32 | next, false,
										__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		{
			__atomic_fetch_add(&arena->inuse, 1, __ATOMIC_RELAXED);
			return (uint32_t) top;
		}
	}
	fresh = __atomic_load_n(&arena->fresh, __ATOMIC_RELAXED);
	while (fresh < arena->nchunks)
	{
		if (__atomic_compare_exchange_n(&arena->fresh, &fresh, fresh + 1, false, __ATOMIC_RELAXED,
										__ATOMIC_RELAXED))
		{
			__atomic_fetch_add(&arena->inuse, 1, __ATOMIC_RELAXED);
			return (uint32_t) fresh;
		}
	}
	return 0;
}

/* Give a chunk back that is in no space. */
HOST_FN void
arena_chunk_give(Arena *arena, uint32_t chunk)
{
	uint64_t top = __atomic_load_n(&arena->stack, __ATOMIC_RELAXED);

	do
		__atomic_store_n(&arena_links(arena)[chunk], (uint32_t) top, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&arena->stack, &top, ((top >> 32) + 1) << 32 | chunk, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	__atomic_fetch_sub(&arena->inuse, 1, __ATOMIC_RELAXED);
}

/* Makes an empty space, which holds no chunk.  What it held before is not given back. */
HOST_FN void
arena_space_init(ArenaSpace *space)
{
	space->chunks = 0;
	__atomic_store_n(&space->nchunks, 0, __ATOMIC_RELAXED);
	space->bump = space->bump_end = 0;
	for (int i = 0; i <= ARENA_MAX_UNITS; i++)
		space->free[i] = 0;
}

/*
 * Give all chunks back at once; the space is empty then.  The oldest is taken first
 * next time, so that chunks which followed each other in memory do so again.
 */
HOST_FN void
arena_space_release(Arena *arena, ArenaSpace *space)
{
	if (space->chunks != 0)
	{
		uint32_t *links = arena_links(arena);
		uint64_t top = __atomic_load_n(&arena->stack, __ATOMIC_RELAXED);
		uint32_t newest = space->chunks;
		uint32_t oldest = newest;
		uint32_t next = __atomic_load_n(&links[newest], __ATOMIC_RELAXED);
		uint64_t n = space->nchunks;

		while (next != 0)
		{
			uint32_t after = __atomic_load_n(&links[next], __ATOMIC_RELAXED);

			__atomic_store_n(&links[next], oldest, __ATOMIC_RELAXED);
			oldest = next;
			next = after;
		}
		do
			__atomic_store_n(&links[newest], (uint32_t) top, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&arena->stack, &top, ((top >> 32) + 1) << 32 | oldest, false,
											__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
		__atomic_fetch_sub(&arena->inuse, n, __ATOMIC_RELAXED);
	}
	arena_space_init(space);
}

/* Bytes of the chunks that the space holds. */
HOST_FN size_t
arena_space_bytes(const ArenaSpace *space)
{
	return (size_t) __atomic_load_n(&space->nchunks, __ATOMIC_RELAXED) * ARENA_CHUNK_BYTES;
}

/*
 * Chunks of a space that lie beside each other, the next ones of its list from *at
 * on, which begins as space->chunks.  Returns how many, 0 at the end; *first is the
 * one at the lowest address.
 */
HOST_FN uint32_t
arena_space_stretch(const Arena *arena, uint32_t *at, uint32_t *first)
{
	const uint32_t *links = arena_links(arena);
	uint32_t low = *at;
	uint32_t high = *at;
	uint32_t next = *at;

	if (next == 0)
		return 0;
	for (;;)
	{
		next = __atomic_load_n(&links[next], __ATOMIC_RELAXED);
		if (next != 0 && next == low - 1)
			low = next;
		else if (next == high + 1)
			high = next;
		else
			break;
	}
	*at = next;
	*first = low;
	return high - low + 1;
}

/* Which of a space's lists has free pieces of this size. */
HOST_FN ArenaRef *
arena_free_list(ArenaSpace *space, int units)
{
	return &space->free[units == ARENA_CHUNK_UNITS ? 0 : units];
}

/* Give a piece of this many units back to its space. */
HOST_FN void
arena_free(Arena *arena, ArenaSpace *space, ArenaRef ref, int units)
{
	ArenaRef *list = arena_free_list(space, units);

	*(ArenaRef *) arena_at(arena, ref) = *list;
	*list = ref;
}

/* A chunk for a space, one that it has or another; 0: out of memory. */
HOST_FN ArenaRef
arena_space_chunk(Arena *arena, ArenaSpace *space)
{
	ArenaRef ref = space->free[0];
	uint32_t chunk;

	if (ref != 0)
	{
		space->free[0] = *(ArenaRef *) arena_at(arena, ref);
		return ref;
	}
	chunk = arena_chunk_take(arena);
	if (chunk != 0)
	{
		__atomic_store_n(&arena_links(arena)[chunk], space->chunks, __ATOMIC_RELAXED);
		space->chunks = chunk;
		__atomic_store_n(&space->nchunks, space->nchunks + 1, __ATOMIC_RELAXED);
	}
	return (ArenaRef) chunk * ARENA_CHUNK_UNITS;
}

/*
 * A piece of 1 .. ARENA_MAX_UNITS units, or of ARENA_CHUNK_UNITS, which is a chunk; contents
 * undefined.  0: out of memory.  What was freed before is used first, and the rest of a larger
 * piece when there is no other way.  Tests define ARENA_ALLOC_FAILS to make it fail at will.
 */
HOST_FN ArenaRef
arena_alloc(Arena *arena, ArenaSpace *space, int units)
{
	ArenaRef *list = arena_free_list(space, units);
	ArenaRef ref = *list;

#ifdef ARENA_ALLOC_FAILS
	if (ARENA_ALLOC_FAILS())
		return 0;
#endif
	if (units == ARENA_CHUNK_UNITS)
		return arena_space_chunk(arena, space);
	if (ref != 0)
	{
		*list = *(ArenaRef *) arena_at(arena, ref);
		return ref;
	}
	if (space->bump_end - space->bump >= (ArenaRef) units)
	{
		ref = space->bump;
		space->bump += units;
		return ref;
	}
	ref = arena_space_chunk(arena, space);
	if (ref != 0)
	{
		/* the end of the last chunk is not large enough: it becomes free space */
		if (space->bump < space->bump_end)
			arena_free(arena, space, space->bump, space->bump_end - space->bump);
		space->bump = ref + units;
		space->bump_end = ref + ARENA_CHUNK_UNITS;
		return ref;
	}
	for (int larger = units + 1; larger <= ARENA_MAX_UNITS; larger++)
	{
		ref = space->free[larger];
		if (ref != 0)
		{
			space->free[larger] = *(ArenaRef *) arena_at(arena, ref);
			arena_free(arena, space, ref + units, larger - units);
			return ref;
		}
	}
	return 0;
}

#endif /* KERNELS_ARENA_H */
