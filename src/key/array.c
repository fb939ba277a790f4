/*-------------------------------------------------------------------------
 *
 * array.c
 *	  Arrays of constants.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/array.h"
#include "utils/expandeddatum.h"

#include "key/key.h"

/*
 * An array in one piece.  Expanded ones, such as variables of PL/pgSQL are, mostly have such a piece, which
 * is theirs and must not be changed; else the array is detoasted.  *copied: in palloc'd memory.
 */
ArrayType *
gpuds_key_array(Datum value, bool *copied)
{
	ArrayType *array;

	*copied = false;
	if (VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
	{
		const ExpandedArrayHeader *expanded = (const ExpandedArrayHeader *) DatumGetEOHP(value);

		if (expanded->ea_magic == EA_MAGIC && expanded->fvalue)
			return expanded->fvalue;
	}
	array = DatumGetArrayTypeP(value);
	*copied = (Pointer) array != DatumGetPointer(value);
	return array;
}
