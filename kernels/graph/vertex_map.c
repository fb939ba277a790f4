/*-------------------------------------------------------------------------
 *
 * vertex_map.c
 *	  Numbers for the vertices that a search of a graph comes to.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "kernels/graph/vertex_map.h"

#define EMPTY UINT64_MAX

/* Vertices whose slots are on their way to the processor while others are looked up. */
#define AHEAD 16

/* A bijection of 32 bits that spreads them (the finalizer of MurmurHash3). */
static inline uint32_t
mix_32(uint32_t x)
{
	x ^= x >> 16;
	x *= UINT32_C(0x85ebca6b);
	x ^= x >> 13;
	x *= UINT32_C(0xc2b2ae35);
	return x ^ x >> 16;
}

/* The bits of a code beside its low 32, as one number. */
static inline uint64_t
code_rest(const uint64_t *code, const int words)
{
	const uint64_t high = code[words - 1] >> 32;

	return words == 1 ? high : code[0] * UINT64_C(0x9e3779b97f4a7c15) + high;
}

static inline uint32_t
code_hash(const uint64_t *code, const int words)
{
	const uint64_t rest = code_rest(code, words) * UINT64_C(0xff51afd7ed558ccd);

	return mix_32((uint32_t) code[words - 1]) ^ mix_32((uint32_t) (rest >> 32));
}

/* Are two codes alike, but for their low 32 bits? */
static inline bool
alike(const uint64_t *a, const uint64_t *b, const int words)
{
	return a[words - 1] >> 32 == b[words - 1] >> 32 && (words == 1 || a[0] == b[0]);
}

static inline bool
equal(const uint64_t *a, const uint64_t *b, const int words)
{
	return a[0] == b[0] && (words == 1 || a[1] == b[1]);
}

/* Where the search for a hash begins. */
static inline uint64_t
first_slot(const VertexMap *map, uint32_t hash)
{
	return hash * map->nslots >> 32;
}

static inline uint64_t
next_slot(const VertexMap *map, uint64_t slot)
{
	return slot + 1 == map->nslots ? 0 : slot + 1;
}

/* The slot that a code has, or the empty one that it would have. */
static inline uint64_t
slot_of(const VertexMap *map, const uint64_t *code, uint32_t hash, const int words)
{
	uint64_t slot = first_slot(map, hash);

	while (map->slots[slot] != EMPTY)
	{
		if (map->slots[slot] >> 32 == hash &&
			(map->narrow || equal(map->codes + (uint32_t) map->slots[slot] * (size_t) words, code, words)))
			break;
		slot = next_slot(map, slot);
	}
	return slot;
}

/* Makes the table anew for the vertices that there are; the slots have been set, and are more. */
void
vertex_map_rebuild(VertexMap *map)
{
	memset(map->slots, 0xFF, map->nslots * sizeof(uint64_t));
	for (uint32_t i = 0; i < map->n; i++)
	{
		const uint32_t hash = code_hash(map->codes + i * (size_t) map->words, map->words);
		uint64_t slot = first_slot(map, hash);

		while (map->slots[slot] != EMPTY)
			slot = next_slot(map, slot);
		map->slots[slot] = (uint64_t) hash << 32 | i;
	}
}

/* Adds a vertex that is not there. */
static inline uint32_t
add(VertexMap *map, const uint64_t *code, uint32_t hash, uint64_t slot, const int words)
{
	map->slots[slot] = (uint64_t) hash << 32 | map->n;
	memcpy(map->codes + map->n * (size_t) words, code, words * sizeof(uint64_t));
	return map->n++;
}

/* Takes notice of a code that may be added. */
static inline void
widen(VertexMap *map, const uint64_t *code, const int words)
{
	if (map->n == 0)
		map->narrow = true;
	else if (map->narrow && !alike(code, map->codes, words))
		map->narrow = false;
}

/* Hashes up to AHEAD codes, and sends for their slots. */
static inline void
look_ahead(const VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *hashes, const int words)
{
	for (int64_t i = 0; i < n; i++)
	{
		hashes[i] = code_hash(codes + i * words, words);
		__builtin_prefetch(&map->slots[first_slot(map, hashes[i])]);
	}
}

static inline int64_t
add_all(VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *numbers, const int words)
{
	uint32_t hashes[AHEAD];

	for (int64_t first = 0; first < n; first += AHEAD)
	{
		const int64_t end = n - first < AHEAD ? n : first + AHEAD;

		look_ahead(map, codes + first * words, end - first, hashes, words);
		for (int64_t i = first; i < end; i++)
		{
			const uint64_t *code = codes + i * words;
			uint64_t slot;

			widen(map, code, words);
			slot = slot_of(map, code, hashes[i - first], words);
			if (map->slots[slot] != EMPTY)
				numbers[i] = (uint32_t) map->slots[slot];
			else if (map->n == map->most)
				return i;
			else
				numbers[i] = add(map, code, hashes[i - first], slot, words);
		}
	}
	return n;
}

/*
 * Sets the numbers of n vertices, and adds those that are not there: they get the next numbers, in order.
 * Returns how many it has done; less than n: there is no room for the next one.
 */
int64_t
vertex_map_add(VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *numbers)
{
	return map->words == 1 ? add_all(map, codes, n, numbers, 1) : add_all(map, codes, n, numbers, 2);
}

/* A table with fewer vertices for its slots is cleared vertex by vertex. */
#define FEW_OF_SLOTS 16

/* Forgets all vertices. */
void
vertex_map_clear(VertexMap *map)
{
	if (map->n >= map->nslots / FEW_OF_SLOTS)
	{
		memset(map->slots, 0xFF, map->nslots * sizeof(uint64_t));
		map->n = 0;
	}
	/* The last one was added when all others were there, and is found as long as they are. */
	while (map->n > 0)
	{
		const uint64_t *code = map->codes + --map->n * (size_t) map->words;

		map->slots[slot_of(map, code, code_hash(code, map->words), map->words)] = EMPTY;
	}
}

static inline void
find_all(const VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *numbers, const int words)
{
	uint32_t hashes[AHEAD];

	for (int64_t first = 0; first < n; first += AHEAD)
	{
		const int64_t end = n - first < AHEAD ? n : first + AHEAD;

		look_ahead(map, codes + first * words, end - first, hashes, words);
		for (int64_t i = first; i < end; i++)
		{
			const uint64_t *code = codes + i * words;

			numbers[i] = VERTEX_NONE;
			/* A code that is not like the others has another one's hash perhaps. */
			if (map->n > 0 && (!map->narrow || alike(code, map->codes, words)))
				numbers[i] = (uint32_t) map->slots[slot_of(map, code, hashes[i - first], words)];
		}
	}
}

/* Sets the numbers of n vertices; VERTEX_NONE: it is not there. */
void
vertex_map_find(const VertexMap *map, const uint64_t *codes, int64_t n, uint32_t *numbers)
{
	if (map->words == 1)
		find_all(map, codes, n, numbers, 1);
	else
		find_all(map, codes, n, numbers, 2);
}
