/*-------------------------------------------------------------------------
 *
 * skiplist_chunk_gpu.h
 *	  The skip list in device memory: the layout of its chunks, and how a thread reads it.
 *
 * It follows GFSL (Moscovici, Cohen and Petrank, "A GPU-friendly skiplist algorithm", PACT 2017): a level
 * is a chain of chunks, the lowest level, 0, has the entries, and each higher one is an index of the
 * level below, of whose chunks it has the low bounds and the references.  Every chunk is raised.  A chunk
 * has no link to the next one of its level, which would have to change with that: the way there leads
 * over the index.
 *
 * A chunk has GPU_SKIPLIST_PLACES slots, and two pairs of an order word and its version:
 *
 *	  word 0, 1		order word, version
 *	  word 2, 3		another order word, version; 0: there is none
 *	  words 4..15	w0 of the slots: with the pairs, one line of 128 bytes
 *
 *	  of level 0, 256 bytes, with two key words 384:
 *	  words 16..27	t of the slots
 *	  word 28		the applier's
 *	  words 32..43	if nw is 2: w1 of the slots
 *
 *	  of an index, 384 bytes:
 *	  words 16..21	references of the slots, 32 bits each
 *	  word 22		the applier's
 *	  words 24..35	t of the slots
 *	  words 36..47	if nw is 2: w1 of the slots
 *
 *	order word	bits 4 i .. 4 i + 3: the slot of the i-th entry in ascending order, 15 behind the last;
 *				bits 48..59: the slots that have entries, a bit each
 *
 * What readers may rely on.  A reader has a version.  Of the two pairs it takes the one with the highest
 * version that is not above its own: that order word says which entries the chunk has in its version.
 * A change writes the other pair and slots that no order word has which anybody may read; so nothing
 * is written that a reader looks at, but for the pair that it does not take:
 *
 *	  - That pair was older than the one it takes, and is now newer than its version.  Whatever a reader
 *		sees of it while it is being written, it is one or the other for it.
 *	  - A pair may be overwritten if no reader can need it: no version before that of the other pair is
 *		pinned.  If it may not, or if the free slots do not suffice, new chunks take the chunk's place in
 *		the index of the new version.  The chunk itself stays as it is, until no older version is
 *		pinned.
 *
 * So a reader sees its version as it was, compares nothing, repeats nothing and waits for nobody, and needs
 * no order among its loads: all that it uses was complete when its version was published.
 *
 * The key of an index' first entry is not looked at.  Any other is not above any entry of its chunk, and
 * above all entries of the chunks before it.
 *
 * What a version consists of is a GpuSkiplistTable, in a node of an index chunk's size; the view's root is
 * its place.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_CHUNK_GPU_H
#define SKIPLIST_CHUNK_GPU_H

#include "kernels/runtime/pool.h"
#include "kernels/skiplist/skiplist_size.h"

static_assert(GPU_SKIPLIST_UNIT_BYTES == GPU_UNIT_BYTES, "units are the pool's");

/* Levels, at most: a level has a fifth of the chunks below it, about, if it has least. */
#define GPU_SKIPLIST_MAX_HEIGHT 24

/* Places of words in a chunk. */
#define GPU_SKIPLIST_W0 4
#define GPU_SKIPLIST_REFS 16

/* The order word of no entries. */
#define GPU_SKIPLIST_EMPTY UINT64_C(0x0000FFFFFFFFFFFF)
#define GPU_SKIPLIST_SLOTS_MASK ((1u << GPU_SKIPLIST_PLACES) - 1)

struct alignas(16) GpuSkiplistTable
{
	uint64_t version;
	GpuRef root;
	int32_t height; /* 1: the root has entries; 0: there are none */
};

/* One version, as threads see it. */
struct GpuSkiplistView
{
	const unsigned char *base;
	uint64_t version;
	GpuRef root;
	int height;
};

/*
 * Layout
 */

GPU_FN uint64_t *
gpu_skiplist_chunk(const unsigned char *base, GpuRef ref)
{
	return (uint64_t *) (base + (size_t) ref * GPU_UNIT_BYTES);
}

/* The word at which the column t begins. */
GPU_FN int
gpu_skiplist_t(const bool index)
{
	return index ? 24 : 16;
}

GPU_FN int
gpu_skiplist_w1(const bool index)
{
	return index ? 36 : 32;
}

/*
 * What an applier notes in a chunk; all 0 between two applies.
 */
struct GpuSkiplistNotes
{
	uint32_t head;  /* of a list of operations, or of changes below; number + 1 */
	uint32_t waits; /* its operations have to wait */
};

GPU_FN GpuSkiplistNotes *
gpu_skiplist_notes(uint64_t *chunk, const bool index)
{
	return (GpuSkiplistNotes *) (chunk + (index ? 22 : 28));
}

GPU_FN GpudsEntry
gpu_skiplist_entry(const uint64_t *chunk, int slot, const bool index, const int nw)
{
	GpudsEntry e = { chunk[GPU_SKIPLIST_W0 + slot], nw == 2 ? chunk[gpu_skiplist_w1(index) + slot] : 0,
					 chunk[gpu_skiplist_t(index) + slot] };

	return e;
}

GPU_FN void
gpu_skiplist_set_entry(uint64_t *chunk, int slot, const GpudsEntry &e, const bool index, const int nw)
{
	chunk[GPU_SKIPLIST_W0 + slot] = e.w0;
	chunk[gpu_skiplist_t(index) + slot] = e.t;
	if (nw == 2)
		chunk[gpu_skiplist_w1(index) + slot] = e.w1;
}

/* The reference in a slot of an index. */
GPU_FN GpuRef
gpu_skiplist_ref(const uint64_t *chunk, int slot)
{
	return ((const GpuRef *) (chunk + GPU_SKIPLIST_REFS))[slot];
}

GPU_FN void
gpu_skiplist_set_ref(uint64_t *chunk, int slot, GpuRef ref)
{
	((GpuRef *) (chunk + GPU_SKIPLIST_REFS))[slot] = ref;
}

/*
 * Order words
 */

GPU_FN unsigned
gpu_skiplist_used(uint64_t order)
{
	return (unsigned) (order >> 48) & GPU_SKIPLIST_SLOTS_MASK;
}

GPU_FN int
gpu_skiplist_n(uint64_t order)
{
	return gpu_popcount(gpu_skiplist_used(order));
}

/* The slot of entry i. */
GPU_FN int
gpu_skiplist_slot(uint64_t order, int i)
{
	return (int) (order >> 4 * i & 15);
}

/* The order word with one more entry, the i-th, behind all others. */
GPU_FN uint64_t
gpu_skiplist_append(uint64_t order, int i, int slot)
{
	return ((order & ~(UINT64_C(15) << 4 * i)) | (uint64_t) slot << 4 * i) | UINT64_C(1) << (48 + slot);
}

/* The order word with an entry more, in a free slot, in front of the i-th. */
GPU_FN uint64_t
gpu_skiplist_with(uint64_t order, int i, int slot)
{
	const uint64_t before = (UINT64_C(1) << 4 * i) - 1;
	const uint64_t places = GPU_SKIPLIST_EMPTY;

	return (order & before) | (uint64_t) slot << 4 * i | ((order & places & ~before) << 4 & places) |
		   (order & ~places) | UINT64_C(1) << (48 + slot);
}

/* ... and without the i-th entry. */
GPU_FN uint64_t
gpu_skiplist_without(uint64_t order, int i)
{
	const uint64_t before = (UINT64_C(1) << 4 * i) - 1;
	const uint64_t places = GPU_SKIPLIST_EMPTY;

	return ((order & before) | ((order & places) >> 4 & ~before) | UINT64_C(15) << 44 | (order & ~places)) &
		   ~(UINT64_C(1) << (48 + gpu_skiplist_slot(order, i)));
}

/* The order word of n entries in the first slots, ascending. */
GPU_FN uint64_t
gpu_skiplist_ascending(int n)
{
	const uint64_t slots = UINT64_C(0xBA9876543210);
	const uint64_t used = (UINT64_C(1) << 4 * n) - 1;

	return (slots & used) | (GPU_SKIPLIST_EMPTY & ~used) | ((UINT64_C(1) << n) - 1) << 48;
}

/* Of two pairs of an order word and its version, the order word that a version has. */
GPU_FN uint64_t
gpu_skiplist_pick(const uint64_t a[2], const uint64_t b[2], uint64_t version)
{
	return b[1] <= version && (a[1] > version || b[1] > a[1]) ? b[0] : a[0];
}

/* The order word that a chunk has in a version. */
GPU_FN uint64_t
gpu_skiplist_order(const uint64_t *chunk, uint64_t version)
{
	uint64_t a[2];
	uint64_t b[2];

	gpu_load_pair(chunk, a);
	gpu_load_pair(chunk + 2, b);
	return gpu_skiplist_pick(a, b, version);
}

/*
 * Search
 */

/* How many entries of an order word are before x; or_equal: or equal to it. */
GPU_FN int
gpu_skiplist_rank(const uint64_t *chunk, uint64_t order, const GpudsEntry &x, const bool or_equal,
				  const bool index, const int nw)
{
	int lo = 0;
	int hi = gpu_skiplist_n(order);

	while (lo < hi)
	{
		int middle = (lo + hi) / 2;
		int slot = gpu_skiplist_slot(order, middle);
		uint64_t w0 = chunk[GPU_SKIPLIST_W0 + slot];
		bool before = w0 < x.w0;

		if (w0 == x.w0)
		{
			GpudsEntry e = gpu_skiplist_entry(chunk, slot, index, nw);

			before = or_equal ? !entry_less(&x, &e) : entry_less(&e, &x);
		}
		if (before)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Which child of an index has x: the last one whose key is not above x, or the first. */
GPU_FN int
gpu_skiplist_child(const uint64_t *chunk, uint64_t order, const GpudsEntry &x, const int nw)
{
	int rank = gpu_skiplist_rank(chunk, order, x, true, true, nw);

	return rank > 0 ? rank - 1 : 0;
}

/*
 * From an index chunk to the child that has x: *order, the chunk's order word in a version, and *child, its
 * number there.  All that may be looked at is loaded at once, where gpu_skiplist_child loads half as much in
 * four waits.
 */
GPU_FN GpuRef
gpu_skiplist_down(const uint64_t *chunk, uint64_t version, const GpudsEntry &x, uint64_t *order, int *child,
				  const int nw)
{
	uint64_t word[GPU_SKIPLIST_REFS + GPU_SKIPLIST_PLACES / 2];
	unsigned others;
	int before = 0;
	int slot;
	bool tie = false;
	GpuRef ref = 0;

	GPU_UNROLL
	for (int i = 0; i < GPU_SKIPLIST_REFS + GPU_SKIPLIST_PLACES / 2; i += 2)
		gpu_load_pair(chunk + i, word + i);
	*order = gpu_skiplist_pick(word, word + 2, version);
	others = gpu_skiplist_used(*order) & ~(1u << gpu_skiplist_slot(*order, 0));
	GPU_UNROLL
	for (int i = 0; i < GPU_SKIPLIST_PLACES; i++)
	{
		uint64_t w0 = word[GPU_SKIPLIST_W0 + i];

		before += (others >> i & 1) != 0 && w0 < x.w0;
		tie = tie || ((others >> i & 1) != 0 && w0 == x.w0);
	}
	*child = tie ? gpu_skiplist_child(chunk, *order, x, nw) : before;
	slot = gpu_skiplist_slot(*order, *child);
	GPU_UNROLL
	for (int i = 0; i < GPU_SKIPLIST_PLACES; i++)
		ref = i == slot ? (GpuRef) (word[GPU_SKIPLIST_REFS + i / 2] >> i % 2 * 32) : ref;
	return ref;
}

/* Where an entry is in a chunk of level 0, or would be. */
struct GpuSkiplistPlace
{
	int rank;   /* entries before it */
	bool there; /* it is there */
};

/* The place of x by an order word, likewise with all that may be looked at loaded at once. */
GPU_FN GpuSkiplistPlace
gpu_skiplist_place(const uint64_t *chunk, uint64_t order, const GpudsEntry &x, const int nw)
{
	uint64_t w0[GPU_SKIPLIST_PLACES];
	uint64_t w1[GPU_SKIPLIST_PLACES];
	uint64_t t[GPU_SKIPLIST_PLACES];
	GpuSkiplistPlace place = { 0, false };

	GPU_UNROLL
	for (int i = 0; i < GPU_SKIPLIST_PLACES; i += 2)
	{
		gpu_load_pair(chunk + GPU_SKIPLIST_W0 + i, w0 + i);
		gpu_load_pair(chunk + gpu_skiplist_t(false) + i, t + i);
		if (nw == 2)
			gpu_load_pair(chunk + gpu_skiplist_w1(false) + i, w1 + i);
	}
	GPU_UNROLL
	for (int i = 0; i < GPU_SKIPLIST_PLACES; i++)
	{
		GpudsEntry e = { w0[i], nw == 2 ? w1[i] : 0, t[i] };
		bool used = (gpu_skiplist_used(order) >> i & 1) != 0;

		place.rank += used && entry_less(&e, &x);
		place.there = place.there || (used && entry_equal(&e, &x));
	}
	return place;
}

/*
 * A place in level 0.
 */
struct GpuSkiplistPosition
{
	GpuRef parent; /* 0: the root has the entries */
	GpuRef ref;
	uint64_t parent_order;
	uint64_t order;
	int at;    /* of the chunk in its parent */
	int place; /* of the entry in its chunk */
};

/* Takes a position to child at of its parent. */
GPU_FN void
gpu_skiplist_enter(const GpuSkiplistView &view, GpuSkiplistPosition *p)
{
	p->ref = gpu_skiplist_ref(gpu_skiplist_chunk(view.base, p->parent),
							  gpu_skiplist_slot(p->parent_order, p->at));
	p->order = gpu_skiplist_order(gpu_skiplist_chunk(view.base, p->ref), view.version);
}

/* From the root to the chunk that has x. */
GPU_FN void
gpu_skiplist_descend(const GpuSkiplistView &view, const GpudsEntry &x, GpuSkiplistPosition *p, const int nw)
{
	p->parent = 0;
	p->parent_order = 0;
	p->at = p->place = 0;
	p->ref = view.root;
	p->order = gpu_skiplist_order(gpu_skiplist_chunk(view.base, p->ref), view.version);
	for (int level = view.height - 1; level > 0; level--)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(view.base, p->ref);

		p->parent = p->ref;
		p->parent_order = p->order;
		p->at = gpu_skiplist_child(chunk, p->order, x, nw);
		gpu_skiplist_enter(view, p);
	}
}

/* Takes a position to the first or last chunk below a child of an index of a level. */
GPU_FN void
gpu_skiplist_edge(const GpuSkiplistView &view, GpuRef ref, int at, int level, bool first,
				  GpuSkiplistPosition *p)
{
	p->parent = ref;
	p->parent_order = gpu_skiplist_order(gpu_skiplist_chunk(view.base, ref), view.version);
	p->at = at;
	for (;;)
	{
		gpu_skiplist_enter(view, p);
		if (--level == 0)
			return;
		p->parent = p->ref;
		p->parent_order = p->order;
		p->at = first ? 0 : gpu_skiplist_n(p->order) - 1;
	}
}

/* Takes a position to the chunk behind, or before, the parent of the chunk that has x; false: none. */
GPU_FN bool
gpu_skiplist_beside(const GpuSkiplistView &view, const GpudsEntry &x, bool forward, GpuSkiplistPosition *p,
					const int nw)
{
	GpuRef ref = view.root;
	GpuRef turn = 0; /* the lowest index that has a child on that side */
	int turn_at = 0;
	int turn_level = 0;

	for (int level = view.height - 1; level > 1; level--)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(view.base, ref);
		uint64_t order = gpu_skiplist_order(chunk, view.version);
		int at = gpu_skiplist_child(chunk, order, x, nw);

		if (forward ? at + 1 < gpu_skiplist_n(order) : at > 0)
		{
			turn = ref;
			turn_at = forward ? at + 1 : at - 1;
			turn_level = level;
		}
		ref = gpu_skiplist_ref(chunk, gpu_skiplist_slot(order, at));
	}
	if (turn == 0)
		return false;
	gpu_skiplist_edge(view, turn, turn_at, turn_level, forward, p);
	return true;
}

/* Takes a position to its chunk's neighbour, whose first or last entry it is then; false: none. */
GPU_FN bool
gpu_skiplist_neighbour(const GpuSkiplistView &view, GpuSkiplistPosition *p, bool forward, const int nw)
{
	if (p->parent == 0)
		return false;
	if (forward ? p->at + 1 < gpu_skiplist_n(p->parent_order) : p->at > 0)
	{
		p->at += forward ? 1 : -1;
		gpu_skiplist_enter(view, p);
	}
	else
	{
		/* the chunks of an index' children are not empty */
		GpudsEntry x = gpu_skiplist_entry(gpu_skiplist_chunk(view.base, p->ref),
										  gpu_skiplist_slot(p->order, 0), false, nw);

		if (!gpu_skiplist_beside(view, x, forward, p, nw))
			return false;
	}
	p->place = forward ? 0 : gpu_skiplist_n(p->order) - 1;
	return true;
}

#endif /* SKIPLIST_CHUNK_GPU_H */
