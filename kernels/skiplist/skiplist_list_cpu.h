/*-------------------------------------------------------------------------
 *
 * skiplist_list_cpu.h
 *	  A skip list in an arena, and the way down to where an entry is.
 *
 * The levels lie one above the other, each a chain of chunks (skiplist_chunk.h).  All chunks of a level are
 * raised: the level above has their low bounds.  That is a hint.  A chunk that is not raised, because
 * it is new or there was no memory, is found from the one at its left.  So every way is down and to
 * the right:
 *
 *	  - A reference, a next chunk, and a chunk that has taken another's place have no higher low bound
 *		than what led to them.
 *	  - A search that is at a chunk whose high bound is not above what it looks for goes to the next.
 *		At one that was replaced it goes to the one that took its place.
 *
 * Changes.  There is one applier.  Chunks are replaced thus: the new ones are written, then the link
 * word of the old one leads to the first of them.  This store makes the change, and from then on
 * whoever comes to the old chunk finds the new ones.  What follows is needed for memory and speed only:
 * the neighbours and the level above get references of the new chunks.  So the list is right
 * between any two stores, and a reader that meets a change halfway waits for nothing.  Two neighbours
 * that are replaced together have the same entries as the new chunks, so that it does not
 * matter between the stores of their link words which of them a reader finds.
 *
 * Bounds.  A chunk before another has the other's low bound as its high bound, also when it
 * was replaced; so readers going backward learn the low bound of a chunk.  A reader that comes to
 * a chunk which was joined with its neighbour since takes no entries from it but those that it
 * still wants.
 *
 * Memory.  When a version is published no live chunk leads to a replaced one any more.  Chunks that
 * it has replaced wait in a queue until no pin is older.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_LIST_CPU_H
#define SKIPLIST_LIST_CPU_H

#include "kernels/cpu/cpu_structure.h"
#include "kernels/cpu/simd.h"
#include "kernels/skiplist/skiplist_chunk.h"

/* Higher lists do not get another level, but are as right: 2^32 entries, six in a chunk, need 13. */
#define SKIPLIST_MAX_HEIGHT 16

/* Entries that a chunk has to have, else it is joined with a neighbour. */
#define SKIPLIST_FEW 4

/* Entries of each of several new chunks, at most, unless the next entries are likely to go elsewhere. */
#define SKIPLIST_ROOMY 12

/* Ways down that are interleaved: while one waits for memory, the others go on. */
#define SKIPLIST_INTERLEAVED 16

/* A list.  Its root is the first chunk of the highest level. */
typedef CpuTree skiplist_cpu_tree;

/* The chunks by which a search has come down; [0]: where it is. */
typedef struct SkiplistWay
{
	ArenaRef at[SKIPLIST_MAX_HEIGHT];
} SkiplistWay;

HOST_INLINE uint64_t *
skiplist_at(const void *base, ArenaRef ref)
{
	return (uint64_t *) arena_at(base, ref);
}

/* Start loading what a search reads of a chunk. */
HOST_INLINE void
skiplist_prefetch(const void *base, ArenaRef ref, const bool index, const int nw)
{
	const uint64_t *chunk = skiplist_at(base, ref);
	const int words = index ? skiplist_rest(true) : skiplist_words(false, nw);

	for (int line = 0; line * 8 < words; line++)
		SIMD_PREFETCH(chunk + line * 8);
}

/* From *ref to the chunk of x, which is not left of it; *link: its link word. */
HOST_INLINE uint64_t *
skiplist_seek(const void *base, ArenaRef *ref, const GpudsEntry *x, uint64_t *link, const bool index,
			  const int nw)
{
	for (;;)
	{
		uint64_t *chunk = skiplist_at(base, *ref);

		*link = skiplist_load(chunk + SKIPLIST_LINK);
		if (!skiplist_is_replaced(*link) &&
			(skiplist_next(*link) == 0 || !skiplist_is_behind(chunk, x, index, nw)))
			return chunk;
		*ref = skiplist_next(*link);
	}
}

/* A step down: *ref, a chunk of an index, becomes the one of x there; returns the one below. */
HOST_INLINE ArenaRef
skiplist_step(const void *base, ArenaRef *ref, const GpudsEntry *x, const int nw)
{
	uint64_t link;

	return skiplist_child(skiplist_seek(base, ref, x, &link, true, nw), x, nw);
}

/*
 * Goes down for n entries at once, ascending or descending.  Each way gets the chunks of its entry
 * in the indexes, and one of level 0 from which skiplist_seek goes on.
 */
HOST_INLINE void
skiplist_descend(const GpudsView *view, const GpudsEntry *const *x, SkiplistWay *ways, int n, const int nw)
{
	ArenaRef ref = view->root;
	int level = view->height - 1;

	/* together, as far as the first and the last of them go the same way */
	while (level > 0 && n > 1)
	{
		ArenaRef first = ref;
		ArenaRef last = ref;
		ArenaRef below = skiplist_step(view->base, &first, x[0], nw);

		if (skiplist_step(view->base, &last, x[n - 1], nw) != below || first != last)
			break;
		for (int i = 0; i < n; i++)
			ways[i].at[level] = first;
		ref = below;
		level--;
		skiplist_prefetch(view->base, ref, level > 0, nw);
	}
	for (int i = 0; i < n; i++)
		ways[i].at[level] = ref;
	for (; level > 0; level--)
	{
		for (int i = 0; i < n; i++)
		{
			ways[i].at[level - 1] = skiplist_step(view->base, &ways[i].at[level], x[i], nw);
			skiplist_prefetch(view->base, ways[i].at[level - 1], level > 1, nw);
		}
	}
}

#endif /* SKIPLIST_LIST_CPU_H */
