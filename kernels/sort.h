/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  Radix sort of entries, operations and words.
 *
 * An element is an array of words, compared from the first to the last.  A
 * pass over the input finds out whether it is sorted already and which bits
 * vary at all.  Then it is sorted by the highest varying bits, just enough of
 * them to tell most elements apart, by counting sort from the lowest digit to
 * the highest.  What these bits do not tell apart is left in its order of
 * arrival, and each such run is sorted in the same way by the bits that vary
 * within it.  So time is linear in the input for any distribution: each round
 * uses up varying bits, of which there are few.
 *
 * Words can also be split in place, for sorting them in pieces.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GK_SORT_H
#define GK_SORT_H

#include <string.h>

#include "kernels/gk.h"

#define GK_SORT_SMALL 24     /* insertion sort up to this many */
#define GK_SORT_DIGIT 10     /* most bits of a digit */
#define GK_SORT_DIGITS 3     /* most digits of a round */
#define GK_SORT_SPARE_BITS 3 /* bits beyond the logarithm of the number */

typedef struct GkDigit
{
	int word;
	int shift;
	int bits;
} GkDigit;

/* Counts, and then positions, of all digits' values. */
typedef struct GkSortCounts
{
	uint64_t count[GK_SORT_DIGITS][1 << GK_SORT_DIGIT];
} GkSortCounts;

GK_INLINE bool
gk_words_less(const uint64_t *a, const uint64_t *b, const int words)
{
	for (int i = 0; i < words - 1; i++)
	{
		if (a[i] != b[i])
			return a[i] < b[i];
	}
	return a[words - 1] < b[words - 1];
}

GK_INLINE void
gk_words_copy(uint64_t *to, const uint64_t *from, const int words)
{
	for (int i = 0; i < words; i++)
		to[i] = from[i];
}

GK_INLINE void
gk_insertion_sort(uint64_t *a, int64_t n, const int words)
{
	for (int64_t i = 1; i < n; i++)
	{
		uint64_t x[4];
		int64_t j = i;

		if (!gk_words_less(a + i * words, a + (i - 1) * words, words))
			continue;
		gk_words_copy(x, a + i * words, words);
		do
		{
			gk_words_copy(a + j * words, a + (j - 1) * words, words);
			j--;
		} while (j > 0 && gk_words_less(x, a + (j - 1) * words, words));
		gk_words_copy(a + j * words, x, words);
	}
}

/*
 * Digits for the highest varying bits, from the highest down, at least bits of
 * them if there are that many.  A digit is as wide as it needs to be for an
 * equal share.  covered gets all bits down to the lowest of the digits.
 */
GK_INLINE int
gk_choose_digits(const uint64_t *varying, int bits, GkDigit *digits, uint64_t *covered, const int words)
{
	int ndigits = (bits + GK_SORT_DIGIT - 1) / GK_SORT_DIGIT;
	int width = (bits + ndigits - 1) / ndigits;
	int n = 0;

	for (int w = 0; w < words; w++)
	{
		uint64_t rest = varying[w];

		covered[w] = 0;
		while (rest != 0 && n < ndigits)
		{
			int top = 63 - __builtin_clzll(rest);
			int take = top + 1 < width ? top + 1 : width;

			digits[n].word = w;
			digits[n].shift = top + 1 - take;
			digits[n].bits = take;
			covered[w] = ~UINT64_C(0) << digits[n].shift;
			rest &= ~covered[w];
			n++;
		}
		if (rest == 0)
			covered[w] = ~UINT64_C(0);
		else
			for (w++; w < words; w++)
				covered[w] = 0;
	}
	return n;
}

/* One round: sort by the highest varying bits; false: it is sorted. */
GK_INLINE bool
gk_sort_round(uint64_t *a, uint64_t *scratch, int64_t n, GkSortCounts *counts, uint64_t *covered,
			  const int words)
{
	uint64_t varying[4] = { 0, 0, 0, 0 };
	GkDigit digits[GK_SORT_DIGITS];
	bool sorted = true;
	uint64_t *from = a;
	uint64_t *to = scratch;
	int bits = 64 - __builtin_clzll((uint64_t) n) + GK_SORT_SPARE_BITS;
	int ndigits;

	for (int64_t i = 1; i < n; i++)
	{
		const uint64_t *x = a + i * words;

		if (sorted && gk_words_less(x, x - words, words))
			sorted = false;
		for (int w = 0; w < words; w++)
			varying[w] |= x[w] ^ a[w];
	}
	if (sorted)
		return false;
	if (bits > GK_SORT_DIGIT * GK_SORT_DIGITS)
		bits = GK_SORT_DIGIT * GK_SORT_DIGITS;
	ndigits = gk_choose_digits(varying, bits, digits, covered, words);
	for (int d = 0; d < ndigits; d++)
		memset(counts->count[d], 0, sizeof(uint64_t) << digits[d].bits);
	for (int64_t i = 0; i < n; i++)
	{
		for (int d = 0; d < ndigits; d++)
			counts
				->count[d][a[i * words + digits[d].word] >> digits[d].shift & ((1u << digits[d].bits) - 1)]++;
	}
	for (int d = ndigits - 1; d >= 0; d--)
	{
		uint64_t *count = counts->count[d];
		const int word = digits[d].word;
		const int shift = digits[d].shift;
		const unsigned mask = (1u << digits[d].bits) - 1;
		uint64_t sum = 0;
		uint64_t *other;

		for (unsigned i = 0; i <= mask; i++)
		{
			uint64_t c = count[i];

			count[i] = sum;
			sum += c;
		}
		for (int64_t i = 0; i < n; i++)
		{
			const uint64_t *x = from + i * words;

			gk_words_copy(to + (int64_t) count[x[word] >> shift & mask]++ * words, x, words);
		}
		other = from;
		from = to;
		to = other;
	}
	if (from != a)
		memcpy(a, from, (size_t) n * (size_t) words * sizeof(uint64_t));
	return true;
}

/*
 * Sort n elements of a; scratch has room for as many.  Large runs of elements
 * that a round has not told apart wait for their own round: the recursion ends
 * because every round uses up bits that vary.
 */
#define GK_DEFINE_SORT(name, words)                                                             \
	GK_HOST_FN void name(uint64_t *a, uint64_t *scratch, int64_t n, GkSortCounts *counts)       \
	{                                                                                           \
		uint64_t covered[words];                                                                \
		int64_t start = 0;                                                                      \
                                                                                                \
		if (n <= GK_SORT_SMALL)                                                                 \
		{                                                                                       \
			gk_insertion_sort(a, n, words);                                                     \
			return;                                                                             \
		}                                                                                       \
		if (!gk_sort_round(a, scratch, n, counts, covered, words))                              \
			return;                                                                             \
		while (start < n)                                                                       \
		{                                                                                       \
			int64_t end = start + 1;                                                            \
                                                                                                \
			while (end < n && gk_same_bits(a + start * words, a + end * words, covered, words)) \
				end++;                                                                          \
			if (end - start > 1)                                                                \
				name(a + start * words, scratch + start * words, end - start, counts);          \
			start = end;                                                                        \
		}                                                                                       \
	}

GK_INLINE bool
gk_same_bits(const uint64_t *a, const uint64_t *b, const uint64_t *mask, const int words)
{
	for (int i = 0; i < words; i++)
	{
		if ((a[i] ^ b[i]) & mask[i])
			return false;
	}
	return true;
}

GK_DEFINE_SORT(gk_sort_1, 1)
GK_DEFINE_SORT(gk_sort_3, 3)
GK_DEFINE_SORT(gk_sort_4, 4)

/* Sort entries; scratch has room for n. */
GK_HOST_FN void
gk_sort_entries(GkEntry *a, GkEntry *scratch, int64_t n)
{
	GkSortCounts counts;

	gk_sort_3(&a->w0, &scratch->w0, n, &counts);
}

/* Sort operations by entry, those of one entry by order; scratch has room for n. */
GK_HOST_FN void
gk_sort_ops(GkOp *a, GkOp *scratch, int64_t n)
{
	GkSortCounts counts;

	gk_sort_4(&a->e.w0, &scratch->e.w0, n, &counts);
}

/* Sort words, TIDs for instance; scratch has room for n. */
GK_HOST_FN void
gk_sort_u64(uint64_t *a, uint64_t *scratch, int64_t n)
{
	GkSortCounts counts;

	gk_sort_1(a, scratch, n, &counts);
}

#define GK_SPLIT_BITS 8
#define GK_SPLIT (1 << GK_SPLIT_BITS)

/*
 * Put words in the order of their highest bits that vary, in place: bucket b is
 * from start[b] to start[b + 1].  For who sorts more words than he has scratch
 * memory or patience for.  False: all words are equal.
 */
GK_HOST_FN bool
gk_split_u64(uint64_t *a, int64_t n, int64_t start[GK_SPLIT + 1])
{
	int64_t at[GK_SPLIT];
	uint64_t varying = 0;
	int shift;

	for (int64_t i = 1; i < n; i++)
		varying |= a[i] ^ a[0];
	if (varying == 0)
		return false;
	shift = 64 - __builtin_clzll(varying) - GK_SPLIT_BITS;
	if (shift < 0)
		shift = 0;

	memset(at, 0, sizeof(at));
	for (int64_t i = 0; i < n; i++)
		at[a[i] >> shift & (GK_SPLIT - 1)]++;
	start[0] = 0;
	for (int b = 0; b < GK_SPLIT; b++)
	{
		start[b + 1] = start[b] + at[b];
		at[b] = start[b];
	}

	/* every word that is out of place takes another one's place, until one belongs here */
	for (unsigned b = 0; b < GK_SPLIT; b++)
	{
		while (at[b] < start[b + 1])
		{
			uint64_t x = a[at[b]];
			unsigned own;

			while ((own = (unsigned) (x >> shift & (GK_SPLIT - 1))) != b)
			{
				uint64_t other = a[at[own]];

				a[at[own]++] = x;
				x = other;
			}
			a[at[b]++] = x;
		}
	}
	return true;
}

/* Of sorted entries keep one of each; returns how many. */
GK_HOST_FN int64_t
gk_unique_entries(GkEntry *a, int64_t n)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (kept == 0 || !gk_equal(&a[kept - 1], &a[i]))
			a[kept++] = a[i];
	}
	return kept;
}

/* Of sorted operations keep the last on each entry; returns how many. */
GK_HOST_FN int64_t
gk_last_ops(GkOp *a, int64_t n)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (i + 1 < n && gk_equal(&a[i].e, &a[i + 1].e))
			continue;
		a[kept++] = a[i];
	}
	return kept;
}

#endif /* GK_SORT_H */
