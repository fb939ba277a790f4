/*-------------------------------------------------------------------------
 *
 * text.h
 *	  Codes of texts: their first bytes, and what tells most of them apart.
 *
 * A code begins with the number of the text's stem (stems.h) if the column has stems: 8 or 16 bits.  Behind
 * the stem it has as many of the text's bytes as the key has room for, 1 to 13, padded with zeros, and then
 * 24 bits, the tail.  The tail of a text that has no more bytes than that is the length of what is behind
 * the stem.  So its code is its own, and the codes of such texts are in the order of bytes: where the padded
 * bytes are the same, the shorter text is the beginning of the longer one.  That holds for bytes that are
 * zero, too.
 *
 * The tail of a longer text is a hash of it, greater than any length.  Texts that have the same stem and
 * leading bytes, and are longer than these, are neighbours, in the order of their hashes: a run, which the
 * value must put in order (reader/value_order.h).  A text that is not longer comes before the run that
 * begins with it. An equality asks for one code of the run, and a bound that falls into a run takes in all
 * of it.
 *
 * The hash is of the first 1,024 bytes at most, so no more of a value that its table keeps elsewhere is
 * fetched.  Stems are shorter, so a text that is longer than that is always longer than its code.
 *
 * All that holds for collations that compare bytes (gpuds_text_collates), for bytea, and for character(n),
 * whose blanks at the end do not count.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_TEXT_H
#define GPUDS_KEY_TEXT_H

#include "key/code.h"
#include "key/stems.h"

#define GPUDS_TEXT_TAIL_BITS 24

/* Bits of a code, with one leading byte at least. */
#define GPUDS_TEXT_MIN_BITS (GPUDS_TEXT_TAIL_BITS + 8)
#define GPUDS_TEXT_MAX_BITS 128

/* The stems of a column.  A layout without them is of no use for codes: they would be another index's. */
static inline const GpudsStems *
gpuds_text_stems(const GpudsKeyColumn *column)
{
	if (unlikely(column->stems == NULL))
		elog(ERROR, "the layout of an index lacks the stems of its texts");
	return column->stems;
}

/* How many leading bytes a column's codes have. */
static inline int
gpuds_text_leading_bytes(const GpudsKeyColumn *column)
{
	return (column->bits - GPUDS_TEXT_TAIL_BITS - gpuds_text_stems(column)->bits) / 8;
}

/* Is a value told by its code, which is ascending? */
static inline bool
gpuds_text_is_whole(const GpudsKeyColumn *column, GpudsCode code)
{
	return (code & gpuds_ones(GPUDS_TEXT_TAIL_BITS)) <= (GpudsCode) gpuds_text_leading_bytes(column);
}

/* text.c */
extern bool gpuds_text_collates(Oid collation);
extern const uint8 *gpuds_text_bytes(GpudsKeyKind kind, Datum value, int *n);
extern const uint8 *gpuds_text_run_bytes(const GpudsKeyColumn *column, GpudsKeyKind kind, Datum value,
										 int *n);
extern uint64 gpuds_text_hash(GpudsKeyKind kind, Datum value);
extern GpudsCode gpuds_text_code(const GpudsKeyColumn *column, Datum value);
extern void gpuds_text_cut(const GpudsKeyColumn *column, GpudsKeyKind constant, Datum value, GpudsCut *cut);

#endif /* GPUDS_KEY_TEXT_H */
