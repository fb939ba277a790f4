/*-------------------------------------------------------------------------
 *
 * skiplist_replace_cpu.h
 *	  Replacing chunks of a skip list by others: what splits and joins are made of.
 *
 * New chunks are made of the entries of one or of two neighbours, and take their place
 * (skiplist_list_cpu.h).  skiplist_change_cpu.h says when, and what the level above has to know.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_REPLACE_CPU_H
#define SKIPLIST_REPLACE_CPU_H

#include "kernels/skiplist/skiplist_build_cpu.h"

/* Operations on one chunk that are done together. */
#define SKIPLIST_RUN 42

/* Entries of two chunks and of a run, and chunks that these make. */
#define SKIPLIST_ITEMS (2 * SKIPLIST_PLACES + SKIPLIST_RUN)
#define SKIPLIST_PIECES (SKIPLIST_ITEMS / SKIPLIST_ROOMY + 1)

/* An apply that is under way. */
typedef struct SkiplistApply
{
	Arena *arena;
	CpuTree *tree;
	CpuQueue replaced; /* chunks that the next version does not have */
	int64_t entries;
} SkiplistApply;

/* Chunks that are about to be replaced, and what by. */
typedef struct SkiplistChange
{
	int level;
	ArenaRef old[2]; /* neighbours; [1] 0: one chunk only */
	uint64_t link;   /* of both: next and before */
	GpudsEntry low;  /* their low bound */
	GpudsEntry middle;
	int n; /* entries */
	SkiplistItem items[SKIPLIST_ITEMS];
	int pieces;
	ArenaRef new[SKIPLIST_PIECES];
	GpudsEntry lows[SKIPLIST_PIECES]; /* low bounds of the new ones */
} SkiplistChange;

HOST_INLINE int
skiplist_height(const SkiplistApply *a)
{
	return head_height(a->tree->head);
}

HOST_INLINE ArenaRef
skiplist_root(const SkiplistApply *a)
{
	return head_root(a->tree->head);
}

/* Gives a list another root. */
HOST_FN void
skiplist_set_root(SkiplistApply *a, ArenaRef root, int height)
{
	skiplist_store(&a->tree->head,
				   head_make(a->tree->nwords, height, root) | (a->tree->head & CPU_HEAD_COUNT));
}

/* Notes that the next version does not have a chunk; false: out of memory. */
HOST_FN bool
skiplist_retire(SkiplistApply *a, ArenaRef ref, int level)
{
	return cpu_queue_push(a->arena, a->tree, &a->replaced, a->tree->version + 1, ref,
						  skiplist_units(level > 0, (int) a->tree->nwords));
}

/* Takes back the last of these notes. */
HOST_FN void
skiplist_unretire(SkiplistApply *a)
{
	((CpuQueueUnit *) arena_at(a->arena, a->replaced.tail))->n--;
}

/* A live chunk's low bound. */
HOST_FN GpudsEntry
skiplist_low(const SkiplistApply *a, ArenaRef ref, int level)
{
	ArenaRef before = skiplist_before(skiplist_at(a->arena, ref)[SKIPLIST_LINK]);
	GpudsEntry low = { 0, 0, 0 };

	if (before != 0)
		low = skiplist_high(skiplist_at(a->arena, before), level > 0, (int) a->tree->nwords);
	return low;
}

/* The chunk of x in a level, from where a way has come down, or from the root if it has not. */
HOST_FN uint64_t *
skiplist_way_seek(SkiplistApply *a, SkiplistWay *way, int level, const GpudsEntry *x)
{
	const int nw = (int) a->tree->nwords;
	uint64_t link;

	if (way->at[level] == 0)
	{
		ArenaRef ref = skiplist_root(a);

		for (int above = skiplist_height(a) - 1; above > level; above--)
			ref = skiplist_step(a->arena, &ref, x, nw);
		way->at[level] = ref;
	}
	return skiplist_seek(a->arena, &way->at[level], x, &link, level > 0, nw);
}

/*
 * Adds the neighbour of a chunk that has few entries, if there is one whose low bound is in the same
 * chunk of the level above.
 */
HOST_FN void
skiplist_join(SkiplistApply *a, SkiplistChange *c, SkiplistWay *way)
{
	const int nw = (int) a->tree->nwords;
	const bool index = c->level > 0;
	const bool top = c->level + 1 == skiplist_height(a);
	const uint64_t *chunk = skiplist_at(a->arena, c->old[0]);
	const uint64_t *parent = top ? NULL : skiplist_way_seek(a, way, c->level + 1, &c->low);
	ArenaRef next = skiplist_next(c->link);
	ArenaRef before = skiplist_before(c->link);
	uint64_t link;

	if (next != 0)
	{
		c->middle = skiplist_high(chunk, index, nw);
		if (top || skiplist_next(parent[SKIPLIST_LINK]) == 0 ||
			!skiplist_is_behind(parent, &c->middle, true, nw))
		{
			link = skiplist_at(a->arena, next)[SKIPLIST_LINK];
			c->old[1] = next;
			c->link = skiplist_make_link(skiplist_next(link), before);
			c->n += skiplist_take(skiplist_at(a->arena, next), c->items + c->n, index, nw);
			return;
		}
	}
	if (before != 0)
	{
		GpudsEntry first = { 0, 0, 0 };

		if (!top)
			first = skiplist_entry(parent, skiplist_slot(parent[SKIPLIST_ORDER], 0), true, nw);
		if (entry_less(&first, &c->low))
		{
			SkiplistItem items[SKIPLIST_FEW];
			int n = c->n;

			memcpy(items, c->items, (size_t) n * sizeof(SkiplistItem));
			link = skiplist_at(a->arena, before)[SKIPLIST_LINK];
			c->middle = c->low;
			c->low = skiplist_low(a, before, c->level);
			c->old[1] = c->old[0];
			c->old[0] = before;
			c->link = skiplist_make_link(next, skiplist_before(link));
			c->n = skiplist_take(skiplist_at(a->arena, before), c->items, index, nw);
			memcpy(c->items + c->n, items, (size_t) n * sizeof(SkiplistItem));
			c->n += n;
		}
	}
}

/* Makes the new chunks, of about as many entries each, or full but for the last; false: out of memory. */
HOST_FN bool
skiplist_make_pieces(SkiplistApply *a, SkiplistChange *c, bool full)
{
	const int nw = (int) a->tree->nwords;
	const bool index = c->level > 0;
	const int most = full ? SKIPLIST_PLACES : SKIPLIST_ROOMY;
	const int pieces = c->n > SKIPLIST_PLACES ? (c->n + most - 1) / most : 1;
	bool made = true;

	for (c->pieces = 0; c->pieces < pieces; c->pieces++)
	{
		c->new[c->pieces] = arena_alloc(a->arena, &a->tree->space, skiplist_units(index, nw));
		if (c->new[c->pieces] == 0)
			break;
	}
	made = c->pieces == pieces && skiplist_retire(a, c->old[0], c->level);
	if (made && c->old[1] != 0 && !skiplist_retire(a, c->old[1], c->level))
	{
		skiplist_unretire(a);
		made = false;
	}
	for (int i = 0, from = 0; made && i < pieces; i++)
	{
		int to = full ? from + most : c->n * (i + 1) / pieces;
		uint64_t *chunk = skiplist_at(a->arena, c->new[i]);

		if (to > c->n)
			to = c->n;
		skiplist_make(chunk, c->items + from, to - from, index, nw);
		if (i + 1 < pieces)
		{
			c->lows[i + 1] = index ? c->items[to].e : entry_between(&c->items[to - 1].e, &c->items[to].e);
			skiplist_set_high(chunk, &c->lows[i + 1], index, nw);
		}
		chunk[SKIPLIST_LINK] = skiplist_make_link(i + 1 < pieces ? c->new[i + 1] : skiplist_next(c->link),
												  i > 0 ? c->new[i - 1] : skiplist_before(c->link));
		from = to;
	}
	c->lows[0] = c->low;
	for (int i = 0; !made && i < c->pieces; i++)
		arena_free(a->arena, &a->tree->space, c->new[i], skiplist_units(index, nw));
	return made;
}

/* Lets the new chunks take the place of the old ones, and the neighbours know them. */
HOST_FN void
skiplist_exchange(SkiplistApply *a, SkiplistChange *c)
{
	const int nw = (int) a->tree->nwords;
	const uint64_t *last = skiplist_at(a->arena, c->old[c->old[1] != 0]);
	ArenaRef next = skiplist_next(c->link);
	ArenaRef before = skiplist_before(c->link);

	if (next != 0)
	{
		GpudsEntry high = skiplist_high(last, c->level > 0, nw);

		skiplist_set_high(skiplist_at(a->arena, c->new[c->pieces - 1]), &high, c->level > 0, nw);
	}
	for (int i = 0; i < 2 && c->old[i] != 0; i++)
		skiplist_store(skiplist_at(a->arena, c->old[i]) + SKIPLIST_LINK,
					   skiplist_make_link(c->new[0], SKIPLIST_REPLACED));
	if (before != 0)
	{
		uint64_t *link = skiplist_at(a->arena, before) + SKIPLIST_LINK;

		skiplist_store(link, skiplist_make_link(c->new[0], skiplist_before(*link)));
	}
	else if (c->level + 1 == skiplist_height(a))
		skiplist_set_root(a, c->new[0], c->level + 1);
	if (next != 0)
	{
		uint64_t *link = skiplist_at(a->arena, next) + SKIPLIST_LINK;

		skiplist_store(link, skiplist_make_link(skiplist_next(*link), c->new[c->pieces - 1]));
	}
}

/* Puts a level above the highest one, which has more than one chunk; without memory it does not. */
HOST_FN void
skiplist_grow(SkiplistApply *a, const SkiplistChange *c)
{
	const int nw = (int) a->tree->nwords;
	SkiplistItem items[SKIPLIST_PIECES + 1] = { { { 0, 0, 0 }, skiplist_root(a) } };
	ArenaRef ref;
	int n = 1;

	if (c->level + 1 == SKIPLIST_MAX_HEIGHT)
		return;
	for (int i = 0; i < c->pieces; i++)
	{
		if (c->new[i] != skiplist_root(a))
		{
			items[n].e = c->lows[i];
			items[n++].ref = c->new[i];
		}
	}
	ref = arena_alloc(a->arena, &a->tree->space, skiplist_units(true, nw));
	if (ref == 0)
		return;
	skiplist_make(skiplist_at(a->arena, ref), items, n, true, nw);
	skiplist_at(a->arena, ref)[SKIPLIST_LINK] = 0;
	skiplist_set_root(a, ref, c->level + 2);
}

#endif /* SKIPLIST_REPLACE_CPU_H */
