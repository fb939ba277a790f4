/*-------------------------------------------------------------------------
 *
 * side_values.c
 *	  The values of side columns, which entries have no room for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupmacs.h"

#include "key/code.h"

/*
 * Puts the value of a side column in its place among a row's side values.  Raises nothing: a page of the
 * table may have versions that no entry leads to, as the row of an INSERT that was refused.
 */
void
gpuds_key_side_put(const GpudsKeyColumn *column, Datum value, bool isnull, uint8 *side)
{
	GpudsKeyBytes kept;
	const void *bytes = &kept;

	if (isnull)
	{
		memset(side + column->side_offset, 0, column->bytes);
		return;
	}
	if (gpuds_is_scaled(column->values))
	{
		uint64 code;

		(void) gpuds_numeric_cut(gpuds_scale(column->values), value, &code);
		memcpy(&kept, &code, sizeof(code));
	}
	else if (column->by_value)
		store_att_byval(&kept, value, column->bytes);
	else
		bytes = DatumGetPointer(value);
	memcpy(side + column->side_offset, bytes, column->bytes);
}

/* The value of a side column that is not NULL, in *bytes if it is passed by reference. */
Datum
gpuds_key_side_get(const GpudsKeyColumn *column, const uint8 *side, GpudsKeyBytes *bytes)
{
	uint64 code;

	if (gpuds_is_scaled(column->values))
	{
		memcpy(&code, side + column->side_offset, sizeof(code));
		return gpuds_numeric_value(gpuds_scale(column->values), code, bytes);
	}
	if (column->by_value && column->bytes == sizeof(code))
	{
		/* by far the most of them: no call */
		memcpy(&code, side + column->side_offset, sizeof(code));
		return (Datum) code;
	}
	memcpy(bytes->bytes, side + column->side_offset, column->bytes);
	return fetch_att(bytes->bytes, column->by_value, column->bytes);
}

/* The side values of a row, layout->side_bytes bytes, of the values of all columns of the index. */
void
gpuds_key_side_encode(const GpudsKeyLayout *layout, const Datum *values, const bool *isnull, uint8 *side)
{
	memset(side, 0, layout->side_bytes);
	for (int i = layout->nkeys; i < layout->ncolumns; i++)
	{
		if (gpuds_key_is_side(&layout->column[i]))
			gpuds_key_side_put(&layout->column[i], values[i], isnull[i], side);
	}
}
