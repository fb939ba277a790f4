/*-------------------------------------------------------------------------
 *
 * count_range.c
 *	  gpuds_count: how many rows have a key between two bounds?
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/skey.h"
#include "fmgr.h"
#include "storage/bufmgr.h"

#include "functions/functions.h"
#include "index/index.h"
#include "reader/reader.h"

PG_FUNCTION_INFO_V1(gpuds_count);

/* Entries of a page of an index at most. */
#define PAGE_ENTRIES ((int64) (BLCKSZ / (2 * sizeof(uint64))))

/* A condition on the index's first column.  Its function is called only where codes do not decide. */
static ScanKeyData
make_key(const GpudsTarget *target, StrategyNumber strategy, Oid type, Datum bound)
{
	ScanKeyData key;

	if (target->layout.column[0].hash)
		return gpuds_search_key(target, strategy, type, 0, bound);
	memset(&key, 0, sizeof(key));
	key.sk_attno = 1;
	key.sk_strategy = strategy;
	key.sk_subtype = type;
	key.sk_argument = bound;
	return key;
}

/* The conditions for the bounds that are given; for none, that the key is not NULL.  Returns how many. */
static int
make_keys(const GpudsTarget *target, FunctionCallInfo fcinfo, ScanKey keys)
{
	Oid type;
	int n = 0;

	if (PG_ARGISNULL(1) && PG_ARGISNULL(2))
	{
		keys[0] = (ScanKeyData){ .sk_attno = 1 };
		keys[0].sk_flags = SK_ISNULL | SK_SEARCHNOTNULL;
		return 1;
	}
	type = gpuds_target_key_type(target, get_fn_expr_argtype(fcinfo->flinfo, 1));
	if (!PG_ARGISNULL(1))
		keys[n++] = make_key(target, BTGreaterEqualStrategyNumber, type, PG_GETARG_DATUM(1));
	if (!PG_ARGISNULL(2))
		keys[n++] = make_key(target, BTLessEqualStrategyNumber, type, PG_GETARG_DATUM(2));
	return n;
}

/*
 * gpuds_count(index regclass, lo anycompatible, hi anycompatible) returns bigint
 *
 * How many rows that the snapshot sees have lo <= key <= hi in the index's first column.  A NULL bound
 * is none; keys that are NULL are never counted.
 */
Datum
gpuds_count(PG_FUNCTION_ARGS)
{
	GpudsTarget target;
	ScanKeyData keys[2];
	IndexScanDesc scan;
	int64 most;
	int64 rows;
	int64 fetches;
	int n;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	gpuds_target_open(PG_GETARG_OID(0), false, &target);
	if (!target.layout.ordered)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("index \"%s\" does not order its keys", RelationGetRelationName(target.index)),
						errhint("Name an index of gpu_btree.")));
	n = make_keys(&target, fcinfo, keys);
	scan = gpuds_begin_scan(target.heap, target.index, target.snapshot, n, true);
	index_rescan(scan, keys, n, NULL, 0);
	/*
	 * Of a large index a device had better count; if the range is short, that is known after the first
	 * batch.
	 */
	most = RelationGetNumberOfBlocks(target.index) * PAGE_ENTRIES;
	if (gpuds_scan_is_exact(scan))
		rows = gpuds_scan_count(scan, (double) most, &fetches);
	else
		rows = gpuds_count_candidates(&target, scan, keys, n);
	index_endscan(scan);
	gpuds_target_close(&target);
	PG_RETURN_INT64(rows);
}
