/*-------------------------------------------------------------------------
 *
 * lookup.c
 *	  gpuds_lookup: where are the rows that have these keys?
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "functions/functions.h"

PG_FUNCTION_INFO_V1(gpuds_lookup);

static void
put_row(void *to, int64 number, ItemPointer tid)
{
	ReturnSetInfo *result = to;
	bool isnull[2] = { false, false };
	Datum values[2];

	values[0] = Int64GetDatum(number + 1);
	values[1] = PointerGetDatum(tid);
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

/*
 * gpuds_lookup(index regclass, keys anyarray) returns table (ordinality bigint, ctid tid)
 *
 * For each key the TIDs of the rows that the snapshot sees with that key in the index's first column;
 * ordinality is the key's place in the array, counted from 1 in its order of storage, whatever its
 * dimensions.
 */
Datum
gpuds_lookup(PG_FUNCTION_ARGS)
{
	bool copied;
	ArrayType *keys = gpuds_key_array(PG_GETARG_DATUM(1), &copied);
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds_lookup",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	GpudsTarget target;
	Oid type;

	InitMaterializedSRF(fcinfo, 0);
	old = MemoryContextSwitchTo(context);
	gpuds_target_open(PG_GETARG_OID(0), true, &target);
	type = gpuds_target_key_type(&target, ARR_ELEMTYPE(keys));
	gpuds_search(&target, type, keys, put_row, fcinfo->resultinfo);
	gpuds_target_close(&target);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}
