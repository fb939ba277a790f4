/*-------------------------------------------------------------------------
 *
 * new_index.c
 *	  What is checked of an index that core makes, whether it is then built or gets another's file.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_index.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

#include "index/index.h"

/* Columns of an index's key, of which only its catalog rows tell. */
static int
key_columns(Oid index)
{
	Relation indexes = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	int nkeys = 0;

	ScanKeyInit(&key, Anum_pg_index_indexrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(index));
	scan = systable_beginscan(indexes, IndexRelidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		nkeys = ((Form_pg_index) GETSTRUCT(tuple))->indnkeyatts;
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
	return nkeys;
}

/*
 * To be called when core has made an index's catalog rows, which this command does not see yet.  Raises
 * ERRCODE_FEATURE_NOT_SUPPORTED if it could not be read.
 */
void
gpuds_index_check_new(Relation index)
{
	const bool ordered = GetIndexAmRoutineByAmId(index->rd_rel->relam, false)->amcanorder;
	const int nkeys = key_columns(RelationGetRelid(index));

	gpuds_key_check_numbers(index, ordered ? 0 : nkeys, nkeys);
}
