/*-------------------------------------------------------------------------
 *
 * sort.c
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
 * What has a parameter words is inlined into versions for 1, 3 and 4 words, so that
 * loops over an element's words are unrolled.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "kernels/core/sort.h"

#define SORT_SMALL 24      /* insertion sort up to this many */
#define SORT_DIGIT_BITS 10 /* most bits of a digit */
#define SORT_DIGITS 3      /* most digits of a round */
#define SORT_SPARE_BITS 3  /* bits beyond the logarithm of the number */

typedef struct SortDigit
{
	int word;
	int shift;
	int bits;
} SortDigit;

/* Counts, and then positions, of all digits' values. */
typedef struct SortCounts
{
	uint64_t count[SORT_DIGITS][1 << SORT_DIGIT_BITS];
} SortCounts;

HOST_INLINE bool
sort_less(const uint64_t *a, const uint64_t *b, const int words)
{
	for (int i = 0; i < words - 1; i++)
	{
		if (a[i] != b[i])
			return a[i] < b[i];
	}
	return a[words - 1] < b[words - 1];
}

HOST_INLINE void
sort_copy_words(uint64_t *to, const uint64_t *from, const int words)
{
	for (int i = 0; i < words; i++)
		to[i] = from[i];
}

HOST_INLINE void
sort_insertion(uint64_t *a, int64_t n, const int words)
{
	for (int64_t i = 1; i < n; i++)
	{
		uint64_t x[4];
		int64_t j = i;

		if (!sort_less(a + i * words, a + (i - 1) * words, words))
			continue;
		sort_copy_words(x, a + i * words, words);
		do
		{
			sort_copy_words(a + j * words, a + (j - 1) * words, words);
			j--;
		} while (j > 0 && sort_less(x, a + (j - 1) * words, words));
		sort_copy_words(a + j * words, x, words);
	}
}

/*
 * Digits for the highest varying bits, from the highest down, at least bits of
 * them if there are that many.  A digit is as wide as it needs to be for an
 * equal share.  covered gets all bits down to the lowest of the digits.
 */
HOST_INLINE int
sort_choose_digits(const uint64_t *varying, int bits, SortDigit *digits, uint64_t *covered, const int words)
{
	int ndigits = (bits + SORT_DIGIT_BITS - 1) / SORT_DIGIT_BITS;
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
HOST_INLINE bool
sort_round(uint64_t *a, uint64_t *scratch, int64_t n, SortCounts *counts, uint64_t *covered, const int words)
{
	uint64_t varying[4] = { 0, 0, 0, 0 };
	SortDigit digits[SORT_DIGITS];
	bool sorted = true;
	uint64_t *from = a;
	uint64_t *to = scratch;
	int bits = 64 - __builtin_clzll((uint64_t) n) + SORT_SPARE_BITS;
	int ndigits;

	for (int64_t i = 1; i < n; i++)
	{
		const uint64_t *x = a + i * words;

		if (sorted && sort_less(x, x - words, words))
			sorted = false;
		for (int w = 0; w < words; w++)
			varying[w] |= x[w] ^ a[w];
	}
	if (sorted)
		return false;
	if (bits > SORT_DIGIT_BITS * SORT_DIGITS)
		bits = SORT_DIGIT_BITS * SORT_DIGITS;
	ndigits = sort_choose_digits(varying, bits, digits, covered, words);
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

			sort_copy_words(to + (int64_t) count[x[word] >> shift & mask]++ * words, x, words);
		}
		other = from;
		from = to;
		to = other;
	}
	if (from != a)
		memcpy(a, from, (size_t) n * (size_t) words * sizeof(uint64_t));
	return true;
}

HOST_INLINE bool
sort_same_bits(const uint64_t *a, const uint64_t *b, const uint64_t *mask, const int words)
{
	for (int i = 0; i < words; i++)
	{
		if ((a[i] ^ b[i]) & mask[i])
			return false;
	}
	return true;
}

/*
 * Sort n elements of a; scratch has room for as many.  Large runs of elements
 * that a round has not told apart wait for their own round: the recursion ends
 * because every round uses up bits that vary.
 */
#define SORT_DEFINE(name, words)                                                                  \
	static void name(uint64_t *a, uint64_t *scratch, int64_t n, SortCounts *counts)               \
	{                                                                                             \
		uint64_t covered[words];                                                                  \
		int64_t start = 0;                                                                        \
                                                                                                  \
		if (n <= SORT_SMALL)                                                                      \
		{                                                                                         \
			sort_insertion(a, n, words);                                                          \
			return;                                                                               \
		}                                                                                         \
		if (!sort_round(a, scratch, n, counts, covered, words))                                   \
			return;                                                                               \
		while (start < n)                                                                         \
		{                                                                                         \
			int64_t end = start + 1;                                                              \
                                                                                                  \
			while (end < n && sort_same_bits(a + start * words, a + end * words, covered, words)) \
				end++;                                                                            \
			if (end - start > 1)                                                                  \
				name(a + start * words, scratch + start * words, end - start, counts);            \
			start = end;                                                                          \
		}                                                                                         \
	}

SORT_DEFINE(sort_1, 1)
SORT_DEFINE(sort_3, 3)
SORT_DEFINE(sort_4, 4)

void
sort_entries(GpudsEntry *a, GpudsEntry *scratch, int64_t n)
{
	SortCounts counts;

	/* without entries there may be no array */
	if (n > 0)
		sort_3(&a->w0, &scratch->w0, n, &counts);
}

void
sort_ops(GpudsOp *a, GpudsOp *scratch, int64_t n)
{
	SortCounts counts;

	if (n > 0)
		sort_4(&a->e.w0, &scratch->e.w0, n, &counts);
}

void
sort_u64(uint64_t *a, uint64_t *scratch, int64_t n)
{
	SortCounts counts;

	sort_1(a, scratch, n, &counts);
}

bool
sort_split_words(uint64_t *a, int64_t n, int64_t start[SORT_SPLIT + 1])
{
	int64_t at[SORT_SPLIT];
	uint64_t varying = 0;
	int shift;

	for (int64_t i = 1; i < n; i++)
		varying |= a[i] ^ a[0];
	if (varying == 0)
		return false;
	shift = 64 - __builtin_clzll(varying) - SORT_SPLIT_BITS;
	if (shift < 0)
		shift = 0;

	memset(at, 0, sizeof(at));
	for (int64_t i = 0; i < n; i++)
		at[a[i] >> shift & (SORT_SPLIT - 1)]++;
	start[0] = 0;
	for (int b = 0; b < SORT_SPLIT; b++)
	{
		start[b + 1] = start[b] + at[b];
		at[b] = start[b];
	}

	/* every word that is out of place takes another one's place, until one belongs here */
	for (unsigned b = 0; b < SORT_SPLIT; b++)
	{
		while (at[b] < start[b + 1])
		{
			uint64_t x = a[at[b]];
			unsigned own;

			while ((own = (unsigned) (x >> shift & (SORT_SPLIT - 1))) != b)
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

int64_t
sort_unique_entries(GpudsEntry *a, int64_t n)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (kept == 0 || !entry_equal(&a[kept - 1], &a[i]))
			a[kept++] = a[i];
	}
	return kept;
}

int64_t
sort_last_ops(GpudsOp *a, int64_t n)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (i + 1 < n && entry_equal(&a[i].e, &a[i + 1].e))
			continue;
		a[kept++] = a[i];
	}
	return kept;
}
