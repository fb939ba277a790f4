/*-------------------------------------------------------------------------
 *
 * search_hashes.c
 *	  The same as search.c in an index whose first column is lossy.
 *
 * The index gives candidates.  Their rows are fetched in the order of the heap, and each row's value is
 * looked up among the elements.  An element that has had a row is not left out of the search, as it is where
 * the entries say which element they are of.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"

#include "functions/functions.h"
#include "index/index.h"
#include "reader/fetch.h"
#include "reader/reader.h"
#include "reader/recheck.h"

/* The elements of which a row is, and where they go. */
typedef struct Finding
{
	GpudsFound found;
	void *to;
	ItemPointer tid;
} Finding;

static void
find_element(void *to, int64 number)
{
	const Finding *finding = to;

	finding->found(finding->to, number, finding->tid);
}

/* first column = ANY (array) */
static ScanKeyData
make_key(const GpudsTarget *target, Oid type, ArrayType *array)
{
	const StrategyNumber strategy = target->layout.ordered ? BTEqualStrategyNumber : HTEqualStrategyNumber;
	const Oid equal = get_opfamily_member(target->index->rd_opfamily[0], target->index->rd_opcintype[0], type,
										  strategy);
	const Oid function = get_opcode(equal);
	ScanKeyData key;

	if (!OidIsValid(function))
		elog(ERROR, "operator family %u has no equality with type %u", target->index->rd_opfamily[0], type);
	if (!GpudsMayExecute(function))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
	ScanKeyEntryInitialize(&key, SK_SEARCHARRAY, 1, strategy, type, target->index->rd_indcollation[0],
						   function, PointerGetDatum(array));
	return key;
}

/*
 * Calls found for each row that the snapshot sees and each element of an array that its key is equal to;
 * once: for one row of each element.  type is what gpuds_target_key_type says of the array's.  Memory is the
 * current context's.
 */
void
gpuds_search_hashes(const GpudsTarget *target, Oid type, ArrayType *array, bool once, GpudsFound found,
					void *to)
{
	ScanKeyData key = make_key(target, type, array);
	IndexScanDesc scan = gpuds_begin_scan(target->heap, target->index, target->snapshot, 1, true);
	GpudsRecheck *recheck = gpuds_recheck_begin(target->index, &target->layout, &key, 1, false);
	TupleTableSlot *slot = table_slot_create(target->heap, NULL);
	Finding finding = { .found = found, .to = to, .tid = &slot->tts_tid };
	GpudsTidList list;
	GpudsFetch fetch;

	index_rescan(scan, &key, 1, NULL, 0);
	gpuds_tids_init(&list);
	gpuds_fetch_init(&fetch);
	gpuds_tids_begin(&list, scan, gpuds_tids_most(), NULL, NULL);
	while (gpuds_tids_next(&list))
	{
		gpuds_fetch_begin(&fetch, scan, list.tids, list.n);
		while (gpuds_fetch_next(&fetch, slot))
			gpuds_recheck_find(recheck, slot, once, find_element, &finding);
	}
	gpuds_fetch_reset(&fetch);
	gpuds_tids_end(&list);
	ExecDropSingleTupleTableSlot(slot);
	gpuds_recheck_end(recheck);
	index_endscan(scan);
}
