/*-------------------------------------------------------------------------
 *
 * hash_place_cpu.h
 *	  Where the applier puts an entry: a free slot, one that becomes free by moving others, or a
 *	  segment that is split.
 *
 * If none of an entry's lines has a free slot, the nearest one behind them is brought closer: an
 * entry that is nearer to the entry's home, and whose own lines have the free slot, moves there. Its
 * home word changes from the one slot to the other in one store (hash_line.h), so readers find
 * it in one of them.
 *
 * An entry of a segment stays in the same line and slot when the segment is split, because the home
 * line has nothing to do with the bits of the hash that choose the segment.  So the new segments are
 * two copies, whose home words have lost what went to the other.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_PLACE_CPU_H
#define HASH_PLACE_CPU_H

#include <string.h>

#include "kernels/hash/hash_table_cpu.h"

/* A segment with less than one of so many slots in use is not split: its hashes are alike. */
#define HASH_LEAST_USE 4

/* The slots of a line that are free: a bit each. */
HOST_INLINE unsigned
hash_free_slots(const uint64_t *segment, int line, const int nw)
{
	uint64_t used = 0;

	for (int l = 0; l < HASH_REACH; l++)
		used |= (*hash_home_word(segment, line + HASH_LINES - l) & HASH_SLOTS_MASK) >> l * hash_slots(nw);
	return (unsigned) (~used & hash_line_bits(0, nw));
}

/* Changes a home's slots, and its other bits if they are among these. */
HOST_INLINE void
hash_change_home(uint64_t *segment, int home, uint64_t clear, uint64_t set)
{
	uint64_t *word = hash_home_word(segment, home);

	hash_store(word, ((*word & ~clear) | set) + HASH_CHANGE);
}

/* Puts an entry into free slot i of a home. */
HOST_INLINE void
hash_fill_slot(uint64_t *segment, int home, int i, const GpudsEntry *e, const int nw)
{
	uint64_t *slot = hash_slot(segment, home, i, nw);

	hash_store(slot, e->w0);
	if (nw == 2)
		hash_store(slot + 1, e->w1);
	hash_store(slot + nw, e->t);
	hash_change_home(segment, home, 0, UINT64_C(1) << i);
}

/* Moves an entry of a home from one of its slots to a free one. */
HOST_INLINE void
hash_move_slot(uint64_t *segment, int home, int from, int to, const int nw)
{
	const uint64_t *old = hash_slot(segment, home, from, nw);
	uint64_t *slot = hash_slot(segment, home, to, nw);

	for (int w = 0; w <= nw; w++)
		hash_store(slot + w, old[w]);
	hash_change_home(segment, home, UINT64_C(1) << from, UINT64_C(1) << to);
}

/*
 * A line at some distance behind a home has a free slot.  Moves one entry from a line before it into
 * that slot.  Returns the distance of the line that has a free slot then; 0: nothing can move.
 */
HOST_INLINE int
hash_bring_closer(uint64_t *segment, int home, int distance, const int nw)
{
	const int hole = __builtin_ctz(hash_free_slots(segment, home + distance, nw));

	for (int back = HASH_REACH - 1; back > 0; back--)
	{
		int other = home + distance - back;
		uint64_t nearer = *hash_home_word(segment, other) & HASH_SLOTS_MASK;

		nearer &= (UINT64_C(1) << back * hash_slots(nw)) - 1;
		if (nearer != 0)
		{
			int from = __builtin_ctzll(nearer);

			hash_move_slot(segment, other, from, back * hash_slots(nw) + hole, nw);
			return distance - back + from / hash_slots(nw);
		}
	}
	return 0;
}

HOST_INLINE bool
hash_place_here_any(uint64_t *segment, int home, const GpudsEntry *e, const int nw)
{
	int distance = 0;

	while (distance < HASH_LINES && hash_free_slots(segment, home + distance, nw) == 0)
		distance++;
	if (distance == HASH_LINES)
		return false;
	while (distance >= HASH_REACH)
	{
		distance = hash_bring_closer(segment, home, distance, nw);
		if (distance == 0)
			return false;
	}
	hash_fill_slot(segment, home,
				   distance * hash_slots(nw) + __builtin_ctz(hash_free_slots(segment, home + distance, nw)),
				   e, nw);
	return true;
}

/* Puts an entry into a slot of its home; false: there is none. */
HOST_FN bool
hash_place_here(uint64_t *segment, int home, const GpudsEntry *e, int nw)
{
	if (nw == 1)
		return hash_place_here_any(segment, home, e, 1);
	return hash_place_here_any(segment, home, e, 2);
}

/* Slots of a segment that are in use. */
HOST_FN int
hash_segment_used(const uint64_t *segment)
{
	int n = 0;

	for (int line = 0; line < HASH_LINES; line++)
		n += __builtin_popcountll(*hash_home_word(segment, line) & HASH_SLOTS_MASK);
	return n;
}

/* The entries of one half of a segment: those whose hashes have a bit, in a new segment. */
HOST_INLINE void
hash_copy_half(uint64_t *to, const uint64_t *from, uint64_t bit, bool set, const int nw)
{
	memcpy(to, from, HASH_SEGMENT_BYTES);
	for (int home = 0; home < HASH_LINES; home++)
	{
		uint64_t *word = hash_home_word(to, home);

		for (uint64_t bits = *word & HASH_SLOTS_MASK; bits != 0; bits &= bits - 1)
		{
			GpudsEntry e = hash_slot_entry(hash_slot(from, home, __builtin_ctzll(bits), nw), nw);

			if (((hash_of(&e) & bit) != 0) != set)
				*word &= ~(bits & -bits);
		}
	}
}

/* Brings entries of a segment that nobody reads into lines nearer to their homes. */
HOST_INLINE void
hash_pull_home(uint64_t *segment, const int nw)
{
	for (int home = 0; home < HASH_LINES; home++)
	{
		uint64_t far = *hash_home_word(segment, home) & HASH_SLOTS_MASK & ~hash_line_bits(0, nw);

		for (; far != 0; far &= far - 1)
		{
			unsigned free = hash_free_slots(segment, home, nw);

			if (free == 0)
				break;
			hash_move_slot(segment, home, __builtin_ctzll(far), __builtin_ctz(free), nw);
		}
	}
}

/* Makes one half of a segment, as hash_copy_half. */
HOST_FN void
hash_make_half(uint64_t *to, const uint64_t *from, uint64_t bit, bool set, int nw)
{
	if (nw == 1)
	{
		hash_copy_half(to, from, bit, set, 1);
		hash_pull_home(to, 1);
	}
	else
	{
		hash_copy_half(to, from, bit, set, 2);
		hash_pull_home(to, 2);
	}
}

/* What became of an attempt to split a segment. */
typedef enum HashSplit
{
	HASH_SPLIT,
	HASH_SPLIT_USELESS,
	HASH_SPLIT_NO_MEMORY
} HashSplit;

/*
 * Gives memory back that is about to be replaced, and was copied: at once while the table is built,
 * else when no reader is left that may look at it.  False: out of memory.
 */
HOST_FN bool
hash_give_up(Arena *arena, hash_cpu_tree *tree, uint64_t link, int units)
{
	CpuTree *overflow = &tree->overflow;

	if (tree->common.head != 0)
		return cpu_queue_push(arena, overflow, &overflow->retired, tree->common.version + 1, (ArenaRef) link,
							  units);
	arena_free(arena, &overflow->space, (ArenaRef) link, units);
	return true;
}

/* Replaces a node by one of twice the size; false: out of memory. */
HOST_FN bool
hash_widen_node(Arena *arena, hash_cpu_tree *tree, const HashWay *way)
{
	const int bits = hash_link_bits(way->node);
	const uint64_t *old = hash_node_words(arena, way->node);
	const int units = hash_node_units(bits + 1);
	ArenaRef node = arena_alloc(arena, &tree->overflow.space, units);
	uint64_t *words = (uint64_t *) arena_at(arena, node);

	if (node == 0)
		return false;
	for (int i = 0; i < 2 << bits; i++)
		words[i] = old[i / 2];
	if (!hash_give_up(arena, tree, way->node, hash_node_units(bits)))
	{
		arena_free(arena, &tree->overflow.space, node, units);
		return false;
	}
	hash_store(way->parent, HASH_NODE | hash_make_link(node, bits + 1));
	return true;
}

/* Puts a node between a node and its segment; false: out of memory. */
HOST_FN bool
hash_add_node(Arena *arena, hash_cpu_tree *tree, const HashWay *way, uint64_t hash)
{
	ArenaRef node = arena_alloc(arena, &tree->overflow.space, hash_node_units(HASH_NODE_LEAST_BITS));
	uint64_t *words = (uint64_t *) arena_at(arena, node);

	if (node == 0)
		return false;
	for (int i = 0; i < 1 << HASH_NODE_LEAST_BITS; i++)
		words[i] = way->link;
	hash_store(hash_node_words(arena, way->node) + hash_node_place(hash, way->above, HASH_NODE_BITS),
			   HASH_NODE | hash_make_link(node, HASH_NODE_LEAST_BITS));
	return true;
}

/* Lets the directory lead to two segments instead of one, which has more than one word of its node. */
HOST_FN void
hash_put_halves(const Arena *arena, const HashWay *way, uint64_t hash, const ArenaRef half[2])
{
	const int bits = hash_link_bits(way->node);
	const int depth = hash_link_bits(way->link);
	const int n = 1 << (way->above + bits - depth);
	uint64_t *words = hash_node_words(arena, way->node) +
					  hash_node_place(hash, way->above, bits) / (unsigned) n * (unsigned) n;

	for (int i = 0; i < n; i++)
		hash_store(&words[i], hash_make_link(half[i >= n / 2], depth + 1));
}

/*
 * Splits the segment of a hash, unless the hashes of the segment are too much alike.  Readers that
 * have come to the old one find there what it had.
 */
HOST_FN HashSplit
hash_split(Arena *arena, hash_cpu_tree *tree, uint64_t hash, int nw)
{
	ArenaSpace *space = &tree->overflow.space;
	HashWay way = hash_way(arena, tree->root, hash);
	const uint64_t *segment = hash_segment(arena, way.link);
	const int depth = hash_link_bits(way.link);
	ArenaRef half[2];

	if (depth >= HASH_MAX_DEPTH || hash_segment_used(segment) < HASH_LINES * hash_slots(nw) / HASH_LEAST_USE)
		return HASH_SPLIT_USELESS;
	if (depth == way.above + hash_link_bits(way.node))
	{
		if (!(hash_link_bits(way.node) < HASH_NODE_BITS ? hash_widen_node(arena, tree, &way)
														: hash_add_node(arena, tree, &way, hash)))
			return HASH_SPLIT_NO_MEMORY;
		way = hash_way(arena, tree->root, hash);
	}
	half[0] = arena_alloc(arena, space, ARENA_CHUNK_UNITS);
	half[1] = half[0] != 0 ? arena_alloc(arena, space, ARENA_CHUNK_UNITS) : 0;
	for (int i = 0; half[1] != 0 && i < 2; i++)
		hash_make_half((uint64_t *) arena_at(arena, half[i]), segment, UINT64_C(1) << (63 - depth), i == 1,
					   nw);
	if (half[1] != 0 && hash_give_up(arena, tree, way.link, ARENA_CHUNK_UNITS))
	{
		hash_put_halves(arena, &way, hash, half);
		return HASH_SPLIT;
	}
	for (int i = 0; i < 2; i++)
	{
		if (half[i] != 0)
			arena_free(arena, space, half[i], ARENA_CHUNK_UNITS);
	}
	return HASH_SPLIT_NO_MEMORY;
}

/* How an entry was placed. */
typedef enum HashPlaced
{
	HASH_PLACED,
	HASH_PLACED_NOT, /* its home is HASH_OPEN now: it belongs into the overflow tree */
	HASH_PLACED_NO_MEMORY
} HashPlaced;

/* Puts an entry, which the table has not, into it.  The home of the entry is not HASH_OPEN. */
HOST_FN HashPlaced
hash_place(Arena *arena, hash_cpu_tree *tree, uint64_t hash, const GpudsEntry *e, int nw)
{
	const int home = hash_home(hash);

	for (;;)
	{
		uint64_t *segment = hash_segment(arena, hash_locate(arena, tree->root, hash));

		if (hash_place_here(segment, home, e, nw))
			return HASH_PLACED;
		switch (hash_split(arena, tree, hash, nw))
		{
			case HASH_SPLIT_USELESS:
				hash_change_home(segment, home, 0, HASH_OPEN);
				return HASH_PLACED_NOT;
			case HASH_SPLIT_NO_MEMORY:
				return HASH_PLACED_NO_MEMORY;
			case HASH_SPLIT:
				break;
		}
	}
}

#endif /* HASH_PLACE_CPU_H */
