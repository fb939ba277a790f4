/*-------------------------------------------------------------------------
 *
 * text_run.c
 *	  Which entries of texts are of one run (text.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/text.h"

/*
 * The first column from one on whose value an entry does not tell, because it is a text that is longer than
 * its code; -1: there is none.
 */
int
gpuds_key_next_run(const GpudsKeyLayout *layout, const GpudsEntry *entry, int from)
{
	GpudsKeyString key;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	for (int i = from; i < layout->nkeys; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];
		GpudsCode code;

		if (!gpuds_is_text(column->kind) ||
			gpuds_key_get(&key, column->null_shift, 1) == gpuds_null_bit(column))
			continue;
		code = gpuds_key_get(&key, column->shift, column->bits);
		if (column->descending)
			code ^= gpuds_ones(column->bits);
		if (!gpuds_text_is_whole(column, code))
			return i;
	}
	return -1;
}

/*
 * Ones in the bits that entries of a run by a column have in common: those of the columns before, and of the
 * leading bytes.
 */
void
gpuds_key_run_bits(const GpudsKeyLayout *layout, int i, GpudsEntry *bits)
{
	const GpudsKeyColumn *column = &layout->column[i];
	GpudsKeyString key = { 0, 0 };
	GpudsEntry before;

	gpuds_key_prefix_bits(layout, i, &before);
	if (column->null_shift > column->shift)
		gpuds_key_put(&key, 1, column->null_shift);
	gpuds_key_put(&key, gpuds_ones(column->bits - GPUDS_TEXT_TAIL_BITS),
				  column->shift + GPUDS_TEXT_TAIL_BITS);
	gpuds_key_to_entry(&key, layout->nwords, 0, bits);
	bits->w0 |= before.w0;
	bits->w1 |= before.w1;
	bits->t |= before.t;
}

/*
 * What an entry has of a column, so that the codes of two entries that are no NULLs have the column's order
 * in the index; false: it is a NULL.
 */
bool
gpuds_key_stored_code(const GpudsKeyLayout *layout, int i, const GpudsEntry *entry, GpudsCode *code)
{
	const GpudsKeyColumn *column = &layout->column[i];
	GpudsKeyString key;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	*code = gpuds_key_get(&key, column->shift, column->bits);
	return gpuds_key_get(&key, column->null_shift, 1) != gpuds_null_bit(column);
}
