/*-------------------------------------------------------------------------
 *
 * entry_join.h
 *	  How entries of one structure lead to those of another that they are joined with.
 *
 * Entries of the driving structure are joined with those of the other that have equal values in some
 * columns, which lead the other's key.  The columns may lie elsewhere in the two keys, so their bits are
 * moved from the place in one to the place in the other.
 *
 * What is counted is a sum over the driving entries.  So it does not matter in which parts they are gone
 * through, nor in which order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_ENTRY_JOIN_H
#define KERNELS_ENTRY_JOIN_H

#include "kernels/core/partial_agg.h"

/* Rows of the result that a driving row has, if the other side has m rows of its key. */
typedef enum EntryJoinKind
{
	ENTRY_JOIN_INNER, /* m */
	ENTRY_JOIN_LEFT,  /* m, but 1 at least */
	ENTRY_JOIN_SEMI,  /* 1 if there are any */
	ENTRY_JOIN_ANTI   /* 1 if there are none */
} EntryJoinKind;

/* Pieces of keys that are moved, at most. */
#define ENTRY_JOIN_MOVES 8

/* A piece of a key, of 64 bits at most; places as of agg_column_bits. */
typedef struct EntryJoinMove
{
	int32_t from;
	int32_t bits;
	int32_t to;
} EntryJoinMove;

typedef struct EntryJoin
{
	uint32_t kind; /* EntryJoinKind */
	uint32_t nmoves;
	GpudsEntry bits;      /* ones where driving entries of a key agree */
	GpudsEntry null_bits; /* ones where they have NULL bits ... */
	GpudsEntry not_null;  /* ... and what is there if no column is NULL; else they are joined with none */
	GpudsEntry key;       /* of the other side, but for what is moved there */
	GpudsEntry rest;      /* ones where its entries of a key may differ */
	uint64_t bias;        /* what the first move's bits are changed by, if it is alone ... */
	uint64_t most;        /* ... and the highest that there may be then; others are joined with none */
	EntryJoinMove moves[ENTRY_JOIN_MOVES];
} EntryJoin;

/* Driving rows of one key of which the device does not know what they are joined with. */
typedef struct EntryJoinKey
{
	GpudsEntry first; /* one of their entries */
	uint64_t rows;
} EntryJoinKey;

/* Puts bits where an entry has zeros: the reverse of agg_column_bits. */
KERNEL_INLINE void
entry_put_bits(GpudsEntry *e, const int nw, int place, uint64_t bits)
{
	int at = place - ENTRY_SPILL_BITS; /* in the words */
	uint64_t *last = nw == 2 ? &e->w1 : &e->w0;

	if (at < 0)
	{
		*last |= bits >> -at;
		e->t |= bits << place << ENTRY_SPILL_SHIFT;
	}
	else if (nw == 1)
		e->w0 |= bits << at;
	else if (at >= 64)
		e->w0 |= bits << (at - 64);
	else
	{
		e->w1 |= bits << at;
		e->w0 |= at == 0 ? 0 : bits >> (64 - at);
	}
}

/*
 * The key of the other structure, of other_nw words, that a driving entry, of nw words, is joined with;
 * false: there is none.
 */
KERNEL_INLINE bool
entry_join_key(const EntryJoin *join, const GpudsEntry *e, const int nw, const int other_nw, GpudsEntry *key)
{
	GpudsEntry null_bits = entry_first_alike(e, &join->null_bits);

	if (!entry_equal(&null_bits, &join->not_null))
		return false;
	*key = join->key;
	for (uint32_t i = 0; i < join->nmoves; i++)
	{
		const EntryJoinMove *move = &join->moves[i];
		uint64_t bits = agg_column_bits(e, nw, move->from, move->bits);

		if (i == 0)
		{
			bits += join->bias;
			if (bits > join->most)
				return false;
		}
		entry_put_bits(key, other_nw, move->to, bits);
	}
	return true;
}

/* Rows of the result that n driving rows have if the other side has m of their key. */
KERNEL_INLINE uint64_t
entry_join_rows(uint32_t kind, uint64_t n, uint64_t m)
{
	switch (kind)
	{
		case ENTRY_JOIN_INNER:
			return n * m;
		case ENTRY_JOIN_LEFT:
			return m > 0 ? n * m : n;
		case ENTRY_JOIN_SEMI:
			return m > 0 ? n : 0;
		default:
			return m > 0 ? 0 : n;
	}
}

/* Does it only matter whether there are rows? */
KERNEL_INLINE bool
entry_join_tests(uint32_t kind)
{
	return kind == ENTRY_JOIN_SEMI || kind == ENTRY_JOIN_ANTI;
}

#endif /* KERNELS_ENTRY_JOIN_H */
