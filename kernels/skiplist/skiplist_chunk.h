/*-------------------------------------------------------------------------
 *
 * skiplist_chunk.h
 *	  The chunks of a skip list: their layout, the search in one, and what one operation does to one.
 *
 * A level of the list is a chain of chunks.  A chunk has the entries from its low bound, which is the
 * high bound of the chunk before it (the lowest number of all, if there is none), up to but without
 * its high bound.  It has SKIPLIST_PLACES slots.  The lowest level, 0, has the entries of the list; a
 * higher one is an index of the level below: its entries are low bounds of chunks there, each
 * with that chunk's reference.
 *
 *	  word 0		the order word
 *	  word 1		the link word
 *	  word 2		w0 of the high bound; a chunk that is the last of its level has no high bound
 *	  words 3..16	w0 of the slots
 *	  7 words		of an index: references of the slots, 32 bits each
 *	  14 words		if nw is 2: w1 of the slots
 *	  14 words		t of the slots
 *	  nw words		of the high bound: [w1,] t
 *
 * So a search reads three lines of 64 bytes, with the references, and more only among equal w0.
 *
 *	order word	bits 4 i .. 4 i + 3: the slot of the i-th entry in ascending order, SKIPLIST_NO_SLOT
 *				behind the last; bits 56..59: entries; bits 60..63: slots that were ever used
 *	link word	bits 0..31: the next chunk of the level; bits 32..63: the one before, 0: none.
 *				SKIPLIST_REPLACED instead of the one before: others have taken this chunk's place,
 *				and bits 0..31 are the first of those.
 *
 * What readers may rely on.  Only the order word says which entries a chunk has.  A slot is written
 * once, before an order word has it; an entry that leaves the order word leaves its slot behind,
 * unused.  So whoever loads the order word has all entries of the chunk at that moment: there is
 * nothing to compare or to repeat afterwards, and nothing to wait for.  (References in an index do
 * change, each by one store: the old one leads to a chunk that says where it went.)  Bounds
 * never change.  When the slots are used up, or few entries are left, new chunks with the same
 * entries, or with those that come, take the chunk's place by one store of its link word; from
 * that store on it never changes.  Order and link words are stored with release semantics, and
 * loaded with acquire semantics, the link word first: then a chunk that was not replaced
 * yet when its link word was loaded has, by the order word loaded afterwards, what was there at a
 * moment in between or later.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_CHUNK_H
#define SKIPLIST_CHUNK_H

#include "kernels/core/entry.h"
#include "kernels/cpu/simd.h"

#define SKIPLIST_PLACES 14
#define SKIPLIST_NO_SLOT 15

/* Places of words in a chunk. */
#define SKIPLIST_ORDER 0
#define SKIPLIST_LINK 1
#define SKIPLIST_HIGH 2
#define SKIPLIST_W0 3
#define SKIPLIST_REFS (SKIPLIST_W0 + SKIPLIST_PLACES)

#define SKIPLIST_REPLACED UINT32_MAX

#define SKIPLIST_SLOTS_MASK ((1u << SKIPLIST_PLACES) - 1)
#define SKIPLIST_ORDER_MASK ((UINT64_C(1) << 4 * SKIPLIST_PLACES) - 1)
#define SKIPLIST_ONE_ENTRY (UINT64_C(1) << 56)
#define SKIPLIST_ONE_USED (UINT64_C(1) << 60)

/*
 * Loads and stores of words that others may look at.  Tests define SKIPLIST_LOADED and SKIPLIST_STORED
 * to do something between two of them.
 */
KERNEL_INLINE uint64_t
skiplist_load(const uint64_t *word)
{
	uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

#ifdef SKIPLIST_LOADED
	SKIPLIST_LOADED();
#endif
	return value;
}

KERNEL_INLINE void
skiplist_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#ifdef SKIPLIST_STORED
	SKIPLIST_STORED();
#endif
}

/*
 * Layout
 */

/* The word of a chunk at which the columns begin that a search seldom reads: w1, t. */
KERNEL_INLINE int
skiplist_rest(const bool index)
{
	return SKIPLIST_REFS + (index ? SKIPLIST_PLACES / 2 : 0);
}

/* The word at which the column t begins. */
KERNEL_INLINE int
skiplist_t(const bool index, const int nw)
{
	return skiplist_rest(index) + (nw - 1) * SKIPLIST_PLACES;
}

KERNEL_INLINE int
skiplist_words(const bool index, const int nw)
{
	return skiplist_t(index, nw) + SKIPLIST_PLACES + nw;
}

/* Units of 64 bytes that a chunk takes. */
KERNEL_INLINE int
skiplist_units(const bool index, const int nw)
{
	return (skiplist_words(index, nw) + 7) / 8;
}

/* The entry in a slot. */
KERNEL_INLINE GpudsEntry
skiplist_entry(const uint64_t *chunk, int slot, const bool index, const int nw)
{
	GpudsEntry e;

	e.w0 = chunk[SKIPLIST_W0 + slot];
	e.w1 = nw == 2 ? chunk[skiplist_rest(index) + slot] : 0;
	e.t = chunk[skiplist_t(index, nw) + slot];
#ifdef SKIPLIST_LOADED
	SKIPLIST_LOADED();
#endif
	return e;
}

/* A chunk's high bound; it has one. */
KERNEL_INLINE GpudsEntry
skiplist_high(const uint64_t *chunk, const bool index, const int nw)
{
	const uint64_t *rest = chunk + skiplist_t(index, nw) + SKIPLIST_PLACES;
	GpudsEntry high = { chunk[SKIPLIST_HIGH], nw == 2 ? rest[0] : 0, rest[nw - 1] };

	return high;
}

KERNEL_INLINE void
skiplist_set_high(uint64_t *chunk, const GpudsEntry *high, const bool index, const int nw)
{
	uint64_t *rest = chunk + skiplist_t(index, nw) + SKIPLIST_PLACES;

	chunk[SKIPLIST_HIGH] = high->w0;
	if (nw == 2)
		rest[0] = high->w1;
	rest[nw - 1] = high->t;
}

/* Is an entry behind a chunk, which has a high bound? */
KERNEL_INLINE bool
skiplist_is_behind(const uint64_t *chunk, const GpudsEntry *e, const bool index, const int nw)
{
	GpudsEntry high;

	if (e->w0 != chunk[SKIPLIST_HIGH])
		return e->w0 > chunk[SKIPLIST_HIGH];
	high = skiplist_high(chunk, index, nw);
	return !entry_less(e, &high);
}

/* The references of an index. */
KERNEL_INLINE uint32_t *
skiplist_refs(const uint64_t *chunk)
{
	return (uint32_t *) (chunk + SKIPLIST_REFS);
}

KERNEL_INLINE uint32_t
skiplist_ref(const uint64_t *chunk, int slot)
{
	uint32_t ref = __atomic_load_n(skiplist_refs(chunk) + slot, __ATOMIC_ACQUIRE);

#ifdef SKIPLIST_LOADED
	SKIPLIST_LOADED();
#endif
	return ref;
}

KERNEL_INLINE void
skiplist_set_ref(uint64_t *chunk, int slot, uint32_t ref)
{
	__atomic_store_n(skiplist_refs(chunk) + slot, ref, __ATOMIC_RELEASE);
#ifdef SKIPLIST_STORED
	SKIPLIST_STORED();
#endif
}

/*
 * Link words
 */

KERNEL_INLINE uint64_t
skiplist_make_link(uint32_t next, uint32_t before)
{
	return (uint64_t) before << 32 | next;
}

/* The next chunk of the level, 0: none; or the one that has taken the chunk's place. */
KERNEL_INLINE uint32_t
skiplist_next(uint64_t link)
{
	return (uint32_t) link;
}

KERNEL_INLINE uint32_t
skiplist_before(uint64_t link)
{
	return (uint32_t) (link >> 32);
}

KERNEL_INLINE bool
skiplist_is_replaced(uint64_t link)
{
	return skiplist_before(link) == SKIPLIST_REPLACED;
}

/*
 * Order words
 */

KERNEL_INLINE int
skiplist_n(uint64_t order)
{
	return (int) (order >> 56 & 15);
}

/* Slots that were ever used: those before this one. */
KERNEL_INLINE int
skiplist_used(uint64_t order)
{
	return (int) (order >> 60);
}

/* The slot of entry i. */
KERNEL_INLINE int
skiplist_slot(uint64_t order, int i)
{
	return (int) (order >> 4 * i & 15);
}

/* The order word of a chunk whose n entries were written in ascending order. */
KERNEL_INLINE uint64_t
skiplist_ascending(int n)
{
	const uint64_t slots = UINT64_C(0x00DCBA9876543210);
	uint64_t unused = SKIPLIST_ORDER_MASK & ~((UINT64_C(1) << 4 * n) - 1);

	return (slots & ~unused) | unused | (uint64_t) n * (SKIPLIST_ONE_ENTRY + SKIPLIST_ONE_USED);
}

/* The order word after the next slot has become that of entry i. */
KERNEL_INLINE uint64_t
skiplist_order_insert(uint64_t order, int i)
{
	const uint64_t low = (UINT64_C(1) << 4 * i) - 1;
	uint64_t slots = (order & low) | (uint64_t) skiplist_used(order) << 4 * i |
					 ((order & SKIPLIST_ORDER_MASK & ~low) << 4 & SKIPLIST_ORDER_MASK);

	return (order & ~SKIPLIST_ORDER_MASK) + SKIPLIST_ONE_ENTRY + SKIPLIST_ONE_USED + slots;
}

/* The order word after entry i has left. */
KERNEL_INLINE uint64_t
skiplist_order_remove(uint64_t order, int i)
{
	const uint64_t low = (UINT64_C(1) << 4 * i) - 1;
	uint64_t slots = (order & low) | ((order & SKIPLIST_ORDER_MASK) >> 4 & ~low) |
					 (uint64_t) SKIPLIST_NO_SLOT << 4 * (SKIPLIST_PLACES - 1);

	return ((order & ~SKIPLIST_ORDER_MASK) - SKIPLIST_ONE_ENTRY) | slots;
}

/*
 * Search
 */

/* Bit i of *lt: word i of the column that begins at word at is less than x; bit i of *eq: it is the same. */
KERNEL_INLINE void
skiplist_compare(const uint64_t *chunk, const int at, uint64_t x, unsigned *lt, unsigned *eq)
{
#if defined(SIMD_PLAIN) || defined(__SANITIZE_THREAD__)
	unsigned l = 0;
	unsigned e = 0;

#pragma GCC unroll 14
	for (int i = 0; i < SKIPLIST_PLACES; i++)
	{
		uint64_t word = __atomic_load_n(chunk + at + i, __ATOMIC_RELAXED);

		l |= (unsigned) (word < x) << i;
		e |= (unsigned) (word == x) << i;
	}
	*lt = l;
	*eq = e;
#else
	uint64_t l = 0;
	uint64_t e = 0;

	/* lines of eight words; what is read of a slot that is just being written is not used */
	for (int line = at / 8; line * 8 < at + SKIPLIST_PLACES; line++)
	{
		unsigned line_lt;
		unsigned line_eq;

		simd_compare8(chunk + line * 8, x, &line_lt, &line_eq);
		l |= (uint64_t) line_lt << 8 * (line - at / 8);
		e |= (uint64_t) line_eq << 8 * (line - at / 8);
	}
	*lt = (unsigned) (l >> at % 8) & SKIPLIST_SLOTS_MASK;
	*eq = (unsigned) (e >> at % 8) & SKIPLIST_SLOTS_MASK;
#endif
}

/* The slots before x, or_equal: or equal to it, a bit each; of those that are not used, any. */
KERNEL_INLINE unsigned
skiplist_slots_before(const uint64_t *chunk, const GpudsEntry *x, const bool or_equal, const bool index,
					  const int nw)
{
	unsigned before;
	unsigned equal;
	unsigned lt;
	unsigned eq;

	skiplist_compare(chunk, SKIPLIST_W0, x->w0, &before, &equal);
	if (equal != 0 && nw == 2)
	{
		skiplist_compare(chunk, skiplist_rest(index), x->w1, &lt, &eq);
		before |= equal & lt;
		equal &= eq;
	}
	if (equal != 0)
	{
		skiplist_compare(chunk, skiplist_t(index, nw), x->t, &lt, &eq);
		before |= equal & (or_equal ? lt | eq : lt);
	}
	return before;
}

/* How many of a mask's slots an order word has.  If it has all that were used, the bits are counted. */
KERNEL_INLINE int
skiplist_count_slots(uint64_t order, uint64_t slots)
{
	uint64_t n = 0;

	if (skiplist_n(order) == skiplist_used(order))
	{
		slots &= (UINT64_C(1) << skiplist_used(order)) - 1;
		/* four copies, of each of which every fourth bit is taken, and the sum of these bits */
		slots = slots * UINT64_C(0x0000200040008001) & UINT64_C(0x0111111111111111);
		return (int) (slots * UINT64_C(0x1111111111111111) >> 60);
	}
	for (int i = 0; i < SKIPLIST_PLACES; i++)
		n += slots >> (order >> 4 * i & 15) & 1;
	return (int) n;
}

/* How many entries of an order word are before x, or_equal: or equal to it. */
KERNEL_INLINE int
skiplist_rank(const uint64_t *chunk, uint64_t order, const GpudsEntry *x, const bool or_equal,
			  const bool index, const int nw)
{
	return skiplist_count_slots(order, skiplist_slots_before(chunk, x, or_equal, index, nw));
}

/* Where an interval of one w0 begins and ends among the entries of an order word of a chunk of level 0. */
KERNEL_INLINE void
skiplist_ranks(const uint64_t *chunk, uint64_t order, const GpudsInterval *interval, int *from, int *to,
			   const int nw)
{
	unsigned before;
	unsigned equal;
	unsigned lt;
	unsigned eq;

	if (nw == 2)
	{
		*from = skiplist_rank(chunk, order, &interval->lo, false, false, nw);
		*to = skiplist_rank(chunk, order, &interval->hi, true, false, nw);
		return;
	}
	skiplist_compare(chunk, SKIPLIST_W0, interval->lo.w0, &before, &equal);
	*from = *to = skiplist_count_slots(order, before);
	if (equal != 0)
	{
		skiplist_compare(chunk, skiplist_t(false, nw), interval->lo.t, &lt, &eq);
		*from += skiplist_count_slots(order, equal & lt);
		skiplist_compare(chunk, skiplist_t(false, nw), interval->hi.t, &lt, &eq);
		*to += skiplist_count_slots(order, equal & (lt | eq));
	}
}

/* Is entry i of an order word the entry e? */
KERNEL_INLINE bool
skiplist_has_at(const uint64_t *chunk, uint64_t order, int i, const GpudsEntry *e, const bool index,
				const int nw)
{
	GpudsEntry there;

	if (i >= skiplist_n(order))
		return false;
	there = skiplist_entry(chunk, skiplist_slot(order, i), index, nw);
	return entry_equal(&there, e);
}

/* The reference that an index has for x, which is in the chunk: that of the last entry not behind x. */
KERNEL_INLINE uint32_t
skiplist_child(const uint64_t *chunk, const GpudsEntry *x, const int nw)
{
	uint64_t order = skiplist_load(chunk + SKIPLIST_ORDER);

	return skiplist_ref(chunk, skiplist_slot(order, skiplist_rank(chunk, order, x, true, true, nw) - 1));
}

/*
 * Changes
 */

/* Writes a slot of a chunk that no reader sees. */
KERNEL_INLINE void
skiplist_fill(uint64_t *chunk, int slot, const GpudsEntry *e, const bool index, const int nw)
{
	chunk[SKIPLIST_W0 + slot] = e->w0;
	if (nw == 2)
		chunk[skiplist_rest(index) + slot] = e->w1;
	chunk[skiplist_t(index, nw) + slot] = e->t;
}

/* Writes the next slot of a chunk, which readers see, but not as an entry: the order word comes next. */
KERNEL_INLINE void
skiplist_write(uint64_t *chunk, int slot, const GpudsEntry *e, uint32_t ref, const bool index, const int nw)
{
	skiplist_store(&chunk[SKIPLIST_W0 + slot], e->w0);
	if (nw == 2)
		skiplist_store(&chunk[skiplist_rest(index) + slot], e->w1);
	skiplist_store(&chunk[skiplist_t(index, nw) + slot], e->t);
	if (index)
		skiplist_set_ref(chunk, slot, ref);
}

/*
 * Does an operation on an entry of this chunk, but for the store of the order word.  In an index an
 * operation's order has the reference where others have a sequence number, and an entry that is
 * there gets it.  *change is what it adds to the number of entries.  False: there is no slot for
 * the entry.
 */
KERNEL_INLINE bool
skiplist_do(uint64_t *chunk, uint64_t *order, const GpudsOp *op, int *change, const bool index, const int nw)
{
	const uint32_t ref = (uint32_t) (op->order >> 1);
	int at = skiplist_rank(chunk, *order, &op->e, false, index, nw);
	bool there = skiplist_has_at(chunk, *order, at, &op->e, index, nw);

	*change = 0;
	if (op->order & GPUDS_OP_DELETE)
	{
		if (there)
		{
			*order = skiplist_order_remove(*order, at);
			*change = -1;
		}
		return true;
	}
	if (there)
	{
		if (index)
			skiplist_set_ref(chunk, skiplist_slot(*order, at), ref);
		return true;
	}
	if (skiplist_used(*order) == SKIPLIST_PLACES)
		return false;
	skiplist_write(chunk, skiplist_used(*order), &op->e, ref, index, nw);
	*order = skiplist_order_insert(*order, at);
	*change = 1;
	return true;
}

/* An entry on its way from one chunk to another; ref: of an index. */
typedef struct SkiplistItem
{
	GpudsEntry e;
	uint32_t ref;
} SkiplistItem;

/* Takes the entries of a chunk, ascending; returns how many. */
KERNEL_INLINE int
skiplist_take(const uint64_t *chunk, SkiplistItem *items, const bool index, const int nw)
{
	uint64_t order = chunk[SKIPLIST_ORDER];
	int n = skiplist_n(order);

	for (int i = 0; i < n; i++)
	{
		int slot = skiplist_slot(order, i);

		items[i].e = skiplist_entry(chunk, slot, index, nw);
		items[i].ref = index ? skiplist_ref(chunk, slot) : 0;
	}
	return n;
}

/* Makes a chunk that no reader sees of ascending entries, but for its link and its high bound. */
KERNEL_INLINE void
skiplist_make(uint64_t *chunk, const SkiplistItem *items, int n, const bool index, const int nw)
{
	for (int i = 0; i < skiplist_units(index, nw) * 8; i++)
		chunk[i] = UINT64_MAX;
	chunk[SKIPLIST_ORDER] = skiplist_ascending(n);
	for (int i = 0; i < n; i++)
	{
		skiplist_fill(chunk, i, &items[i].e, index, nw);
		if (index)
			skiplist_refs(chunk)[i] = items[i].ref;
	}
}

/* Does operations, ascending, to entries that are on their way; returns how many come out. */
KERNEL_INLINE int
skiplist_merge(const SkiplistItem *items, int n, const GpudsOp *ops, int nops, SkiplistItem *out)
{
	int at = 0;
	int m = 0;

	for (int o = 0; o < nops; o++)
	{
		while (at < n && entry_less(&items[at].e, &ops[o].e))
			out[m++] = items[at++];
		if (at < n && entry_equal(&items[at].e, &ops[o].e))
			at++;
		else if (ops[o].order & GPUDS_OP_DELETE)
			continue;
		if ((ops[o].order & GPUDS_OP_DELETE) == 0)
		{
			out[m].e = ops[o].e;
			out[m++].ref = (uint32_t) (ops[o].order >> 1);
		}
	}
	while (at < n)
		out[m++] = items[at++];
	return m;
}

#endif /* SKIPLIST_CHUNK_H */
