/*-------------------------------------------------------------------------
 *
 * join_key.h
 *	  What entries of two indexes are joined by: some columns of either key, whatever else the keys have.
 *
 * The columns' codes lie elsewhere in each key.  A value has them, and their NULL bits, as one number, which
 * ascends as both indexes do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_JOIN_KEY_H
#define GPUDS_KEY_JOIN_KEY_H

#include "kernels/core/entry_join.h"
#include "key/key.h"

typedef struct GpudsJoinKey
{
	const GpudsKeyLayout *layout;
	int ncolumns;
	int columns[GPUDS_KEY_MAX_COLUMNS]; /* of the key, ascending */

	/* one column, whose code fits into a word */
	bool word;
	GpudsKeyColumn first;
	uint64 null_bit; /* of its NULLs */
	uint64 bias;     /* from its codes to those of bigints, if it is an integer */
} GpudsJoinKey;

typedef struct GpudsJoinValue
{
	GpudsCode high;
	uint64 low;
} GpudsJoinValue;

extern bool gpuds_join_key_agrees(const GpudsKeyLayout *a, const int *a_columns, const GpudsKeyLayout *b,
								  const int *b_columns, int n);
extern void gpuds_join_key_init(GpudsJoinKey *key, const GpudsKeyLayout *layout, const int *columns, int n);
extern bool gpuds_join_key_string(const GpudsJoinKey *key, const GpudsEntry *entry, GpudsJoinValue *value);
extern bool gpuds_join_key_probe_init(const GpudsJoinKey *key, GpudsKeyProbe *probe);
extern bool gpuds_join_key_moves(const GpudsJoinKey *key, const GpudsJoinKey *other, EntryJoin *join);
extern bool gpuds_join_key_probe(const GpudsJoinKey *key, const GpudsJoinValue *value, GpudsEntry *probe);

/* The value that an entry has; false: one of the columns is NULL. */
static inline bool
gpuds_join_key_value(const GpudsJoinKey *key, const GpudsEntry *entry, GpudsJoinValue *value)
{
	const int nwords = key->layout->nwords;
	uint64 null_bit;

	if (!key->word)
		return gpuds_join_key_string(key, entry, value);
	null_bit = agg_column_bits(entry, nwords, key->first.null_shift, 1);
	value->high = (GpudsCode) null_bit << 64 |
				  (agg_column_bits(entry, nwords, key->first.shift, key->first.bits) + key->bias);
	value->low = 0;
	return null_bit != key->null_bit;
}

/* Negative, 0 or positive, as values are in order. */
static inline int
gpuds_join_value_compare(const GpudsJoinValue *a, const GpudsJoinValue *b)
{
	if (a->high != b->high)
		return a->high < b->high ? -1 : 1;
	return (a->low > b->low) - (a->low < b->low);
}

#endif /* GPUDS_KEY_JOIN_KEY_H */
