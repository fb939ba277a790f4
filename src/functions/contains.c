/*-------------------------------------------------------------------------
 *
 * contains.c
 *	  gpuds_contains: which keys does an index have rows of?
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/memutils.h"

#include "functions/functions.h"

PG_FUNCTION_INFO_V1(gpuds_contains);

/*
 * An array of n booleans, all false, with the header of another one: dimensions, and which
 * elements are NULL.
 */
static ArrayType *
make_answer(const ArrayType *keys, int64 n)
{
	const Size header = ARR_DATA_OFFSET(keys);
	ArrayType *answer = palloc(header + n);

	memcpy(answer, keys, header);
	memset((char *) answer + header, false, n);
	SET_VARSIZE(answer, header + n);
	answer->elemtype = BOOLOID;
	return answer;
}

/* Leaves out what NULL elements have: an array has nothing in their places. */
static void
close_gaps(ArrayType *answer, int64 n)
{
	const uint8 *nulls = ARR_NULLBITMAP(answer);
	char *data = ARR_DATA_PTR(answer);
	int64 kept = 0;

	if (nulls == NULL)
		return;
	for (int64 i = 0; i < n; i++)
	{
		if (nulls[i / 8] & (1 << (i % 8)))
			data[kept++] = data[i];
	}
	SET_VARSIZE(answer, ARR_DATA_OFFSET(answer) + kept);
}

/*
 * gpuds_contains(index regclass, keys anyarray) returns boolean[]
 *
 * For each key, whether there is a row that the snapshot sees with that key in the index's first column;
 * for NULL, NULL.
 */
Datum
gpuds_contains(PG_FUNCTION_ARGS)
{
	bool copied;
	ArrayType *keys = gpuds_key_array(PG_GETARG_DATUM(1), &copied);
	const int64 n = ArrayGetNItems(ARR_NDIM(keys), ARR_DIMS(keys));
	ArrayType *answer = n > 0 ? make_answer(keys, n) : construct_empty_array(BOOLOID);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds_contains",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	GpudsTarget target;
	Oid type;

	gpuds_target_open(PG_GETARG_OID(0), false, &target);
	type = gpuds_target_key_type(&target, ARR_ELEMTYPE(keys));
	gpuds_search_any(&target, type, keys, (bool *) ARR_DATA_PTR(answer));
	gpuds_target_close(&target);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	close_gaps(answer, n);
	PG_RETURN_ARRAYTYPE_P(answer);
}
