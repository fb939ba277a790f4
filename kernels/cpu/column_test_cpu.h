/*-------------------------------------------------------------------------
 *
 * column_test_cpu.h
 *	  Tests of a column of many entries (core/column_test.h), compiled once for each instruction set.
 *
 * The codes of all entries come first, then what each range says of them, then NULLs: each is a loop
 * without branches, of which a compiler makes vector instructions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_COLUMN_TEST_CPU_H
#define KERNELS_COLUMN_TEST_CPU_H

#include "kernels/core/column_test.h"

/* Entries that are tested at a time, at most: their codes stay in the first cache. */
#define CPU_TEST_ENTRIES 1024

/* Ranges that are tried one after the other, at most; of more, each entry's is searched for. */
#define CPU_TEST_RANGES 8

/* Words of an entry. */
#define CPU_ENTRY_WORDS 3

/*
 * Which of n entries, CPU_TEST_ENTRIES at most, pass a test.  side: NULL, or side values of the first entry
 * if the test is of a side column; those of the next one are side_bytes behind.
 */
typedef void (*CpuColumnTest)(const ColumnTest *test, const GpudsEntry *entries, const uint8_t *side,
							  int side_bytes, int n, int nwords, bool *passes);

/* Which word of an entry a place of its key is in, and where there. */
HOST_INLINE int
cpu_place_word(int place, const int nw, int *shift)
{
	const int at = place - ENTRY_SPILL_BITS;

	*shift = at < 0 ? ENTRY_SPILL_SHIFT + place : at % 64;
	if (at < 0)
		return CPU_ENTRY_WORDS - 1;
	return at < 64 ? nw - 1 : 0;
}

HOST_INLINE uint64_t
cpu_column_ones(const AggColumn *column)
{
	return column->bits == 64 ? UINT64_MAX : (UINT64_C(1) << column->bits) - 1;
}

/* The bits that entries have in a column, which may lie in two words. */
HOST_INLINE void
cpu_column_bits(const AggColumn *column, const GpudsEntry *entries, size_t n, const int nw, uint64_t *bits)
{
	const uint64_t ones = cpu_column_ones(column);
	int shift;
	const int word = cpu_place_word(column->place, nw, &shift);
	const uint64_t *low = &entries->w0 + word;
	const uint64_t *high = &entries->w0 + (word == CPU_ENTRY_WORDS - 1 ? nw - 1 : 0);

	if (shift + column->bits <= 64)
	{
		for (size_t i = 0; i < n; i++)
			bits[i] = low[i * CPU_ENTRY_WORDS] >> shift & ones;
		return;
	}
	for (size_t i = 0; i < n; i++)
		bits[i] = (low[i * CPU_ENTRY_WORDS] >> shift | high[i * CPU_ENTRY_WORDS] << (64 - shift)) & ones;
}

/* The same of a side column of so many bytes. */
HOST_INLINE void
cpu_side_bits(const AggColumn *column, const int bytes, const uint8_t *side, int side_bytes, size_t n,
			  uint64_t *bits)
{
	const uint64_t ones = cpu_column_ones(column);
	AggColumn sized = *column;

	sized.side_bytes = (uint8_t) bytes;
	for (size_t i = 0; i < n; i++)
		bits[i] = agg_column_side_bits(&sized, side + i * side_bytes) & ones;
}

HOST_INLINE void
cpu_any_side_bits(const AggColumn *column, const uint8_t *side, int side_bytes, size_t n, uint64_t *bits)
{
	switch (column->side_bytes)
	{
		case 8:
			cpu_side_bits(column, 8, side, side_bytes, n, bits);
			return;
		case 4:
			cpu_side_bits(column, 4, side, side_bytes, n, bits);
			return;
		case 2:
			cpu_side_bits(column, 2, side, side_bytes, n, bits);
			return;
		default:
			cpu_side_bits(column, 1, side, side_bytes, n, bits);
	}
}

/* Makes codes of bits. */
HOST_INLINE void
cpu_column_codes(const AggColumn *column, size_t n, uint64_t *bits)
{
	const AggColumn m = *column;

	if (m.kind == AGG_COLUMN_INTEGER)
	{
		for (size_t i = 0; i < n; i++)
			bits[i] ^= m.flip;
		return;
	}
	for (size_t i = 0; i < n; i++)
		bits[i] = agg_column_code(&m, bits[i]);
}

/* Which codes are in one of a few ranges? */
HOST_INLINE void
cpu_test_ranges(const ColumnTest *test, const uint64_t *restrict codes, size_t n, bool *restrict passes)
{
	memset(passes, false, n * sizeof(bool));
	for (int range = 0; range < test->n; range++)
	{
		const uint64_t lo = test->lo[range];
		const uint64_t width = test->hi[range] - lo;

		for (size_t i = 0; i < n; i++)
			passes[i] = codes[i] - lo <= width ? true : passes[i];
	}
}

/* The same of ranges of 64 neighbours, as bits of a word. */
HOST_INLINE void
cpu_test_set(const ColumnTest *test, const uint64_t *restrict codes, size_t n, bool *restrict passes)
{
	const uint64_t lo = test->lo[0];
	uint64_t set = 0;

	for (int64_t range = 0; range < test->n; range++)
	{
		for (uint64_t code = test->lo[range] - lo; code <= test->hi[range] - lo; code++)
			set |= UINT64_C(1) << code;
	}
	for (size_t i = 0; i < n; i++)
	{
		const uint64_t code = codes[i] - lo;

		passes[i] = (code < 64 ? set >> (code & 63) & 1 : 0) != 0;
	}
}

/* Lets NULLs pass, or keeps them from it. */
HOST_INLINE void
cpu_test_nulls(const ColumnTest *test, const GpudsEntry *entries, size_t n, int place, const int nw,
			   bool *restrict passes)
{
	const uint64_t null_bit = test->column.null_bit;
	const bool null = test->null;
	int shift;
	const uint64_t *words = &entries->w0 + cpu_place_word(place, nw, &shift);

	for (size_t i = 0; i < n; i++)
		passes[i] = (words[i * CPU_ENTRY_WORDS] >> shift & 1) == null_bit ? null : passes[i];
}

HOST_INLINE void
cpu_test_codes(const ColumnTest *test, const uint64_t *codes, size_t n, bool *passes)
{
	if (test->n > 1 && test->hi[test->n - 1] - test->lo[0] < 64)
		cpu_test_set(test, codes, n, passes);
	else if (test->n <= CPU_TEST_RANGES)
		cpu_test_ranges(test, codes, n, passes);
	else
	{
		for (size_t i = 0; i < n; i++)
			passes[i] = column_test_has(test, codes[i]);
	}
}

HOST_INLINE void
cpu_test_column_any(const ColumnTest *test, const GpudsEntry *entries, const uint8_t *side, int side_bytes,
					size_t n, bool *passes, const int nw)
{
	const AggColumn *column = &test->column;
	uint64_t codes[CPU_TEST_ENTRIES];

	if (test->n > 0 && side)
		cpu_any_side_bits(column, side, side_bytes, n, codes);
	else if (test->n > 0)
		cpu_column_bits(column, entries, n, nw, codes);
	if (test->n > 0)
		cpu_column_codes(column, n, codes);
	cpu_test_codes(test, codes, n, passes);
	cpu_test_nulls(test, entries, n, side ? column->side_null : column->null_place, nw, passes);
}

/* As CpuColumnTest. */
HOST_FN void
cpu_test_column(const ColumnTest *test, const GpudsEntry *entries, const uint8_t *side, int side_bytes, int n,
				int nwords, bool *passes)
{
	if (nwords == 1)
		cpu_test_column_any(test, entries, side, side_bytes, n, passes, 1);
	else
		cpu_test_column_any(test, entries, side, side_bytes, n, passes, 2);
}

#endif /* KERNELS_COLUMN_TEST_CPU_H */
