/*-------------------------------------------------------------------------
 *
 * encode.c
 *	  Entries from the column values of heap rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/code.h"
#include "key/text.h"

/*
 * Makes the entry of a row.  Raises ERRCODE_FEATURE_NOT_SUPPORTED for an enum label that does not sort by its
 * OID, what gpuds_numeric_code does, and whatever a hash function raises.  Allocates nothing, but what hash
 * functions leave in the current memory context.
 */
void
gpuds_key_encode(const GpudsKeyLayout *layout, const Datum *values, const bool *isnull, ItemPointer tid,
				 GpudsEntry *entry)
{
	GpudsKeyString key = { 0, 0 };

	for (int i = 0; i < layout->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];

		if (isnull[i])
			gpuds_key_put_null(&key, column);
		else if (gpuds_key_is_side(column))
		{
			/* no row gets an entry whose side values could not be given back */
			if (gpuds_is_scaled(column->values))
				(void) gpuds_numeric_code(gpuds_scale(column->values), values[i]);
			gpuds_key_put_code(&key, column, 0);
		}
		else if (i >= layout->nkeys)
			gpuds_key_put_code(&key, column, gpuds_included_code(column, values[i]));
		else if (column->kind == GPUDS_KIND_HASHED)
			gpuds_key_put_code(&key, column, gpuds_hashed_code(column, column->hash, values[i]));
		else
		{
			GpudsCode code = gpuds_is_text(column->kind) ? gpuds_text_code(column, values[i])
														 : gpuds_code(column->kind, values[i]);

			if (column->descending)
				code ^= gpuds_ones(column->bits);
			gpuds_key_put_code(&key, column, code);
		}
	}
	gpuds_key_to_entry(&key, layout->nwords, gpuds_tid_bits(tid), entry);
}
