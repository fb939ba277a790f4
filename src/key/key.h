/*-------------------------------------------------------------------------
 *
 * key.h
 *	  Order-preserving encodings of index keys, and scan keys as intervals.
 *
 * Every column's value becomes a code of a fixed number of bits, compared as
 * unsigned, that orders and equals exactly as the type's btree operator class
 * does (bits complemented for DESC).  The key is a bit string: for each column
 * one NULL bit and the code, most significant first; the last column's NULL
 * bit stands after its code instead of before it, so that a single-column key
 * fills its words and has its NULL bit in the spill (see kernels/gk.h).  A
 * NULL's code is all zeros if it sorts first in the index, else all ones.
 *
 * Limits: 8 columns and 16 bytes of codes.  Keys of up to 72 bits take one
 * word, up to 136 bits two.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_H
#define GPUDS_KEY_H

#include "access/skey.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "kernels/gk.h"

#define GPUDS_KEY_MAX_COLUMNS	8
#define GPUDS_KEY_MAX_BITS		136

/* A code of up to 128 bits, right-aligned. */
typedef unsigned __int128 GpudsCode;

typedef struct GpudsKeyColumn
{
	Oid			type;			/* base type of the column (opclass input) */
	uint8		kind;			/* which encoding, see encode.c */
	uint8		bits;			/* length of the code, 1..128 */
	uint8		shift;			/* code's lowest bit in the key, counted from
								 * the key's end */
	uint8		null_shift;		/* NULL bit's place, counted likewise */
	bool		descending;
	bool		nulls_first;
} GpudsKeyColumn;

typedef struct GpudsKeyLayout
{
	int			ncolumns;
	int			nwords;			/* 1 or 2 */
	int			nbits;			/* codes and NULL bits */
	GpudsKeyColumn column[GPUDS_KEY_MAX_COLUMNS];
} GpudsKeyLayout;

/*
 * A condition on a column that the intervals do not express: the entry's code
 * must be in one of the ranges.
 */
typedef struct GpudsKeyFilter GpudsKeyFilter;

/*
 * What a set of scan keys asks for: entries in the disjoint, ascending
 * intervals that pass the filter (NULL: all do).  recheck: the answer may hold
 * more than was asked for, the executor must look again.
 */
typedef struct GpudsKeySet
{
	GkInterval *intervals;
	int64		nintervals;
	GpudsKeyFilter *filter;
	bool		recheck;
} GpudsKeySet;

/* layout.c: ERRCODE_FEATURE_NOT_SUPPORTED naming column and limit */
extern void gpuds_key_layout(Relation index, GpudsKeyLayout *layout);

/* encode.c */
extern void gpuds_key_encode(const GpudsKeyLayout *layout, const Datum *values,
							 const bool *isnull, ItemPointer tid, GkEntry *entry);

/* bounds.c: allocates in the current memory context */
extern void gpuds_key_set(Relation index, const GpudsKeyLayout *layout, ScanKey keys, int nkeys,
						  GpudsKeySet *set);
extern bool gpuds_key_filter_pass(const GpudsKeyFilter *filter, const GkEntry *entry);

static inline void
gpuds_entry_tid(const GkEntry *entry, ItemPointer tid)
{
	uint64		bits = entry->t & GK_TID_MASK;

	ItemPointerSet(tid, (BlockNumber) (bits >> 16), (OffsetNumber) (bits & 0xFFFF));
}

static inline uint64
gpuds_tid_bits(ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumber(tid) << 16 | ItemPointerGetOffsetNumber(tid);
}

#endif							/* GPUDS_KEY_H */
