/*-------------------------------------------------------------------------
 *
 * partial_agg.h
 *	  What entries have in one column, added up.
 *
 * An entry's key is a bit string of 64 * nw + 8 bits: w0, w1 if nw is 2, and the top byte of
 * t.  Places in it are counted from its right end.  A column has up to 64 bits there, and a
 * bit that says whether it is NULL.
 *
 * A value's code is a number that orders as the values do.  An integer's code is the
 * integer itself, a signed one's is 2^(bits - 1) more.  Codes of integers are added up in
 * halves of 32 bits, which do not overflow: a structure has less than 2^32 entries.
 * Floating-point values are added up as doubles, in whatever order entries come.
 *
 * Squares, for variances, are added up as integers: of a column of up to 32 bits the square is one.  A value
 * of 64 bits is 2^32 * high + low, and its square the sum of high^2 * 2^64, high * low * 2^33, and low^2,
 * which are columns of their own.
 *
 * Of a side column (src/side/side.h) the key has the NULL bit only.  Its values are among the side values of
 * the entry's row, as the table has them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_PARTIAL_AGG_H
#define KERNELS_PARTIAL_AGG_H

#include <string.h>

#include "kernels/core/entry.h"

typedef enum AggColumnKind
{
	AGG_COLUMN_INTEGER,
	AGG_COLUMN_FLOAT4, /* the column has the bits of a float */
	AGG_COLUMN_FLOAT8, /* ... of a double */

	/* Of a signed integer, in place of its code: */
	AGG_COLUMN_SQUARE,      /* the square of at most 32 bits */
	AGG_COLUMN_HIGH_SQUARE, /* the square of the high 32 of 64 bits, which are signed ... */
	AGG_COLUMN_LOW_SQUARE,  /* ... of the low ones, which are not ... */
	AGG_COLUMN_PRODUCT      /* ... and 2^63 more than the product of both */
} AggColumnKind;

typedef struct AggColumn
{
	uint8_t kind;  /* AggColumnKind */
	uint8_t place; /* of the column's lowest bit */
	uint8_t bits;  /* 1..64 */
	uint8_t null_place;
	uint8_t null_bit; /* what is at null_place if the column is NULL */
	/* of a side column, whose values are where agg_column_side_entry puts them: */
	uint8_t side_bytes;  /* 1, 2, 4 or 8; 0: it is none */
	uint8_t side_offset; /* among the row's side values */
	uint8_t side_null;   /* place of its NULL bit in the row's entry */
	uint64_t flip;       /* makes codes of the bits of integers, by exclusive or */
} AggColumn;

/* What entries have, NULLs left out. */
typedef struct PartialAgg
{
	uint64_t n;
	uint64_t low;  /* sum of the codes' low 32 bits ... */
	uint64_t high; /* ... and of the high ones; not of floating-point values */
	double sum;    /* of these */
	uint64_t min;  /* codes; n 0: UINT64_MAX and 0 */
	uint64_t max;
} PartialAgg;

/* Nothing has been added.  -0 is what changes no sum, not even that of -0 alone. */
KERNEL_INLINE PartialAgg
partial_agg_empty(void)
{
	PartialAgg nothing = { 0, 0, 0, -0.0, UINT64_MAX, 0 };

	return nothing;
}

/* bits (1 to 64) bits of an entry's key, from a place on. */
KERNEL_INLINE uint64_t
agg_column_bits(const GpudsEntry *e, const int nw, int place, int bits)
{
	int at = place - ENTRY_SPILL_BITS; /* in the words */
	uint64_t last = nw == 2 ? e->w1 : e->w0;
	uint64_t value;

	if (at < 0)
		value = last << -at | e->t >> ENTRY_SPILL_SHIFT >> place;
	else if (nw == 1)
		value = e->w0 >> at;
	else if (at >= 64)
		value = e->w0 >> (at - 64);
	else
		value = at == 0 ? e->w1 : e->w1 >> at | e->w0 << (64 - at);
	return bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1);
}

/* Is the column NULL? */
KERNEL_INLINE bool
agg_column_is_null(const AggColumn *m, const GpudsEntry *e, const int nw)
{
	return agg_column_bits(e, nw, m->null_place, 1) == m->null_bit;
}

/* Bits of a side column's value, of the row's side values. */
KERNEL_INLINE uint64_t
agg_column_side_bits(const AggColumn *m, const uint8_t *side)
{
	uint64_t eight;
	uint32_t four;
	uint16_t two;

	side += m->side_offset;
	switch (m->side_bytes)
	{
		case sizeof(eight):
			memcpy(&eight, side, sizeof(eight));
			return eight;
		case sizeof(four):
			memcpy(&four, side, sizeof(four));
			return four;
		case sizeof(two):
			memcpy(&two, side, sizeof(two));
			return two;
		default:
			return *side;
	}
}

/*
 * Makes an entry of one key word that has a side column's value where the column says, of the entry of a row
 * and the row's side values.
 */
KERNEL_INLINE GpudsEntry
agg_column_side_entry(const AggColumn *m, const GpudsEntry *e, const int nw, const uint8_t *side)
{
	GpudsEntry value;

	value.w0 = agg_column_side_bits(m, side);
	value.w1 = 0;
	value.t = agg_column_bits(e, nw, m->side_null, 1) << ENTRY_SPILL_SHIFT;
	return value;
}

/* Are the values floating-point numbers? */
KERNEL_INLINE bool
agg_column_is_float(const AggColumn *m)
{
	return m->kind == AGG_COLUMN_FLOAT4 || m->kind == AGG_COLUMN_FLOAT8;
}

/* A floating-point value from its bits. */
KERNEL_INLINE double
agg_column_value(const AggColumn *m, uint64_t bits)
{
	union
	{
		uint64_t bits;
		double value;
	} f8;
	union
	{
		uint32_t bits;
		float value;
	} f4;

	if (m->kind == AGG_COLUMN_FLOAT8)
	{
		f8.bits = bits;
		return f8.value;
	}
	f4.bits = (uint32_t) bits;
	return (double) f4.value;
}

/* What is added up in place of an integer's code. */
KERNEL_INLINE uint64_t
agg_column_square(const AggColumn *m, uint64_t code)
{
	const uint64_t value = code - (UINT64_C(1) << (m->bits - 1));
	const uint64_t low = (uint32_t) value;
	const uint64_t high = (uint64_t) ((int64_t) value >> 32);

	switch (m->kind)
	{
		case AGG_COLUMN_SQUARE:
			return value * value;
		case AGG_COLUMN_HIGH_SQUARE:
			return high * high;
		case AGG_COLUMN_LOW_SQUARE:
			return low * low;
		default:
			return high * low + (UINT64_C(1) << 63);
	}
}

/* The code of a column's bits; all NaNs have the highest. */
KERNEL_INLINE uint64_t
agg_column_code(const AggColumn *m, uint64_t bits)
{
	uint64_t sign = UINT64_C(1) << (m->bits - 1);

	if (m->kind == AGG_COLUMN_INTEGER)
		return bits ^ m->flip;
	if (!agg_column_is_float(m))
		return agg_column_square(m, bits ^ m->flip);
	if (agg_column_value(m, bits) != agg_column_value(m, bits))
		return UINT64_MAX;
	return bits & sign ? ~bits & (sign | (sign - 1)) : bits | sign;
}

/* The bits of a floating-point value that has this code. */
KERNEL_INLINE uint64_t
agg_column_code_bits(const AggColumn *m, uint64_t code)
{
	uint64_t sign = UINT64_C(1) << (m->bits - 1);

	return code & sign ? code & ~sign : ~code & (sign | (sign - 1));
}

/* Adds what has a column's bits. */
KERNEL_INLINE void
partial_agg_add_bits(PartialAgg *sum, const AggColumn *m, uint64_t bits)
{
	uint64_t code = agg_column_code(m, bits);

	sum->n++;
	if (!agg_column_is_float(m))
	{
		sum->low += (uint32_t) code;
		sum->high += code >> 32;
	}
	else
		sum->sum += agg_column_value(m, bits);
	if (code < sum->min)
		sum->min = code;
	if (code > sum->max)
		sum->max = code;
}

/* Adds what an entry has. */
KERNEL_INLINE void
partial_agg_add(PartialAgg *sum, const AggColumn *m, const GpudsEntry *e, const int nw)
{
	if (!agg_column_is_null(m, e, nw))
		partial_agg_add_bits(sum, m, agg_column_bits(e, nw, m->place, m->bits));
}

/* Adds what other entries have. */
KERNEL_INLINE void
partial_agg_merge(PartialAgg *sum, const PartialAgg *other)
{
	sum->n += other->n;
	sum->low += other->low;
	sum->high += other->high;
	sum->sum += other->sum;
	if (other->min < sum->min)
		sum->min = other->min;
	if (other->max > sum->max)
		sum->max = other->max;
}

#endif /* KERNELS_PARTIAL_AGG_H */
