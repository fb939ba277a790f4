/*-------------------------------------------------------------------------
 *
 * hash_line.h
 *	  The lines of a hash table: their layout, and how one of them is read while it is changed.
 *
 * The key of an entry is w0, w1 and the spill bits of t; its hash says in which segment of the
 * table and in which line of the segment it is at home.  A segment is HASH_LINES lines of 128 bytes
 * in a circle:
 *
 *	  word 0	the home word
 *	  words 1.. slots of 1 + nw words: w0, [w1,] t; 7 with one key word, 5 with two.  With one
 *				key word the last word of a line is not used.
 *
 * This is hopscotch hashing with a line for a bucket: an entry is in its home line or in one of
 * the HASH_REACH - 1 lines that follow it.  The home word says in which slots of these lines the
 * entries of this home are, and it alone says so: a slot that no home word has is free, whatever is
 * in it.
 *
 *	  bits 0..29	bit i: slot i, counted from the home line's first, has an entry of this home
 *	  bit 31		HASH_OPEN: entries of this home may also be in the overflow tree
 *	  bits 32..63	count of the word's changes
 *
 * A slot whose t has HASH_MARKER is no entry: it says that all entries of its key are in the
 * overflow tree.  No entry has that bit (entry.h: bits 55..48 of t are zero).
 *
 * Reading.  A slot is written while no home word has it, but for one word: t becomes a marker.
 * A change of a home (an entry comes, goes, or moves to another slot) is one store of its home
 * word, which also counts.  So a reader that finds the same home word after it has read the
 * slots has read all entries of the home as they were at one moment.  If the word has changed it
 * starts again, and a change has been completed meanwhile: it never waits for a writer.  The stores
 * of slots and home words are releases and the loads acquisitions.  A reader that sees a word of a
 * slot's next entry therefore sees that the home word has changed.  (It would not if the word
 * changed 2^32 times between its two looks.)
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_LINE_H
#define HASH_LINE_H

#include "kernels/core/entry.h"
#include "kernels/cpu/simd.h"

#define HASH_LINE_WORDS 16
#define HASH_LINES 64 /* of a segment */
#define HASH_REACH 4  /* lines that an entry may be in */
#define HASH_SEGMENT_BYTES (HASH_LINES * HASH_LINE_WORDS * sizeof(uint64_t))

/* Entries of one key that the table has at most; those of a key with more are in the overflow tree. */
#define HASH_FEW 4

#define HASH_SLOTS_MASK UINT64_C(0x3FFFFFFF)
#define HASH_OPEN (UINT64_C(1) << 31)
#define HASH_CHANGE (UINT64_C(1) << 32)

#define HASH_MARKER (UINT64_C(1) << 55)
#define HASH_SPILL_MASK (UINT64_MAX << ENTRY_SPILL_SHIFT)

/* Slots of a line. */
HOST_INLINE int
hash_slots(const int nw)
{
	return nw == 1 ? 7 : 5;
}

/*
 * Loads and stores of words that others may look at.  Tests define HASH_LOADED and HASH_STORED to do
 * something between two of them.
 */
HOST_INLINE uint64_t
hash_load(const uint64_t *word)
{
	uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

#ifdef HASH_LOADED
	HASH_LOADED();
#endif
	return value;
}

HOST_INLINE void
hash_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
#ifdef HASH_STORED
	HASH_STORED();
#endif
}

/* The hash of an entry's key: its highest bits choose the segment, its lowest the home line. */
HOST_INLINE uint64_t
hash_of(const GpudsEntry *e)
{
	uint64_t h = (e->w0 ^ (e->t >> ENTRY_SPILL_SHIFT) * UINT64_C(0x9E3779B97F4A7C15)) +
				 e->w1 * UINT64_C(0xC2B2AE3D27D4EB4F);

	/* each step can be undone, so keys of one word have different hashes */
	h = (h ^ h >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	h = (h ^ h >> 29 ^ (e->w1 >> 32)) * UINT64_C(0xA0761D6478BD642F);
	return h ^ h >> 32;
}

HOST_INLINE int
hash_home(uint64_t hash)
{
	return (int) (hash % HASH_LINES);
}

/* Have two entries the same key? */
HOST_INLINE bool
hash_same_key(const GpudsEntry *a, const GpudsEntry *b)
{
	return a->w0 == b->w0 && a->w1 == b->w1 && ((a->t ^ b->t) & HASH_SPILL_MASK) == 0;
}

/* The home word of a line of a segment. */
HOST_INLINE uint64_t *
hash_home_word(const uint64_t *segment, int line)
{
	return (uint64_t *) segment + (size_t) (line % HASH_LINES) * HASH_LINE_WORDS;
}

/* Slot i of a home, from bit i of its home word. */
HOST_INLINE uint64_t *
hash_slot(const uint64_t *segment, int home, int i, const int nw)
{
	return hash_home_word(segment, home + i / hash_slots(nw)) + 1 + i % hash_slots(nw) * (1 + nw);
}

/* What is in a slot, which may change meanwhile. */
HOST_INLINE GpudsEntry
hash_slot_entry(const uint64_t *slot, const int nw)
{
	GpudsEntry e;

	e.w0 = hash_load(slot);
	e.w1 = nw == 2 ? hash_load(slot + 1) : 0;
	e.t = hash_load(slot + nw);
	return e;
}

/* Bits of a home word for all slots of its line number l, counted from the home line. */
HOST_INLINE uint64_t
hash_line_bits(int l, const int nw)
{
	return ((UINT64_C(1) << hash_slots(nw)) - 1) << l * hash_slots(nw);
}

/* Start loading a line. */
HOST_INLINE void
hash_prefetch_line(const uint64_t *segment, int line)
{
	const uint64_t *word = hash_home_word(segment, line);

	SIMD_PREFETCH(word);
	SIMD_PREFETCH(word + HASH_LINE_WORDS / 2);
}

/* The same of what the applier looks at to put an entry into a home. */
HOST_INLINE void
hash_prefetch_home(const uint64_t *segment, int home)
{
	hash_prefetch_line(segment, home);
	for (int l = 1; l < HASH_REACH; l++)
		SIMD_PREFETCH(hash_home_word(segment, home + HASH_LINES - l));
}

/* What a home has of a key. */
typedef struct HashFound
{
	uint64_t word;  /* the home word at that moment */
	uint64_t slots; /* bits of the slots with the key's entries ... */
	uint64_t marks; /* ... and with its marker */
	int n;
	uint64_t t[32]; /* of the entries, in no order */
} HashFound;

/* Must the overflow tree be asked, too? */
HOST_INLINE bool
hash_found_overflow(const HashFound *found)
{
	return found->marks != 0 || (found->word & HASH_OPEN) != 0;
}

/* The slots of a line whose first words are a key's: a bit each, used or not. */
HOST_INLINE uint64_t
hash_line_matches(const uint64_t *segment, int line, uint64_t w0, const int nw)
{
	const uint64_t *word = hash_home_word(segment, line) + 1;
	uint64_t matches = 0;

	for (int i = 0; i < hash_slots(nw); i++)
		matches |= (uint64_t) (hash_load(word + i * (1 + nw)) == w0) << i;
	return matches;
}

/* All that a home has of the key of *key at one moment. */
HOST_INLINE void
hash_find(const uint64_t *segment, int home, const GpudsEntry *key, HashFound *found, const int nw)
{
	const uint64_t *word = hash_home_word(segment, home);

	do
	{
		uint64_t matches = 0;

		found->word = hash_load(word);
		found->slots = found->marks = 0;
		found->n = 0;
		for (int l = 0; l < HASH_REACH; l++)
		{
			if (found->word & hash_line_bits(l, nw))
				matches |= hash_line_matches(segment, home + l, key->w0, nw) << l * hash_slots(nw);
		}
		for (uint64_t bits = found->word & HASH_SLOTS_MASK & matches; bits != 0; bits &= bits - 1)
		{
			const uint64_t *slot = hash_slot(segment, home, __builtin_ctzll(bits), nw);
			uint64_t t = hash_load(slot + nw);

			if ((nw == 2 && hash_load(slot + 1) != key->w1) || ((t ^ key->t) & HASH_SPILL_MASK) != 0)
				continue;
			if (t & HASH_MARKER)
				found->marks |= bits & -bits;
			else
			{
				found->slots |= bits & -bits;
				found->t[found->n++] = t;
			}
		}
	} while (hash_load(word) != found->word);
}

/* Adds an entry to n sorted ones, of which there are cap at most, unless it is there or has no room. */
HOST_INLINE int64_t
hash_merge_entry(GpudsEntry *out, int64_t n, int64_t cap, const GpudsEntry *e, const bool forward)
{
	int64_t at = n;

	while (at > 0 && (forward ? entry_less(e, &out[at - 1]) : entry_less(&out[at - 1], e)))
		at--;
	if (at == cap || (at > 0 && entry_equal(e, &out[at - 1])))
		return n;
	if (n < cap)
		n++;
	for (int64_t i = n - 1; i > at; i--)
		out[i] = out[i - 1];
	out[at] = *e;
	return n;
}

#endif /* HASH_LINE_H */
