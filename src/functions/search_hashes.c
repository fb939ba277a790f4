/*-------------------------------------------------------------------------
 *
 * search_hashes.c
 *	  The same as search.c in an index whose first column is lossy, and counts there.
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

/* A condition on the first column, which may compare rows' values. */
ScanKeyData
gpuds_search_key(const GpudsTarget *target, StrategyNumber strategy, Oid type, int flags, Datum argument)
{
	const Relation index = target->index;
	const Oid function = get_opcode(
		get_opfamily_member(index->rd_opfamily[0], index->rd_opcintype[0], type, strategy));
	ScanKeyData key;

	if (!OidIsValid(function))
		elog(ERROR, "operator family %u has no operator %d with type %u", index->rd_opfamily[0], strategy,
			 type);
	if (!GpudsMayExecute(function))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
	ScanKeyEntryInitialize(&key, flags, 1, strategy, type, index->rd_indcollation[0], function, argument);
	return key;
}

/* first column = ANY (array) */
static ScanKeyData
make_key(const GpudsTarget *target, Oid type, ArrayType *array)
{
	return gpuds_search_key(target, target->layout.ordered ? BTEqualStrategyNumber : HTEqualStrategyNumber,
							type, SK_SEARCHARRAY, PointerGetDatum(array));
}

/* A scan's candidates, whose rows are fetched in the order of the heap. */
typedef struct Candidates
{
	IndexScanDesc scan;
	TupleTableSlot *slot;
	GpudsTidList list;
	GpudsFetch fetch;
} Candidates;

static void
begin_candidates(Candidates *candidates, const GpudsTarget *target, IndexScanDesc scan)
{
	candidates->scan = scan;
	candidates->slot = table_slot_create(target->heap, NULL);
	gpuds_tids_init(&candidates->list);
	gpuds_fetch_init(&candidates->fetch);
	gpuds_tids_begin(&candidates->list, scan, gpuds_tids_most(), NULL, NULL);
}

/* Puts the next row into the slot; false: there are no more. */
static bool
next_candidate(Candidates *candidates)
{
	while (candidates->fetch.tids == NULL || !gpuds_fetch_next(&candidates->fetch, candidates->slot))
	{
		if (!gpuds_tids_next(&candidates->list))
			return false;
		gpuds_fetch_begin(&candidates->fetch, candidates->scan, NULL, candidates->list.tids,
						  candidates->list.n);
	}
	return true;
}

static void
end_candidates(Candidates *candidates)
{
	gpuds_fetch_reset(&candidates->fetch);
	gpuds_tids_end(&candidates->list);
	ExecDropSingleTupleTableSlot(candidates->slot);
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
	Finding finding = { .found = found, .to = to };
	Candidates candidates;

	index_rescan(scan, &key, 1, NULL, 0);
	begin_candidates(&candidates, target, scan);
	finding.tid = &candidates.slot->tts_tid;
	while (next_candidate(&candidates))
		gpuds_recheck_find(recheck, candidates.slot, once, find_element, &finding);
	end_candidates(&candidates);
	gpuds_recheck_end(recheck);
	index_endscan(scan);
}

/* How many rows of a scan that has been given keys of gpuds_search_key meet them all. */
int64
gpuds_count_candidates(const GpudsTarget *target, IndexScanDesc scan, const ScanKeyData *keys, int nkeys)
{
	GpudsRecheck *recheck = gpuds_recheck_begin(target->index, &target->layout, keys, nkeys, true);
	Candidates candidates;
	int64 rows = 0;

	begin_candidates(&candidates, target, scan);
	while (next_candidate(&candidates))
		rows += gpuds_recheck_row(recheck, candidates.slot);
	end_candidates(&candidates);
	gpuds_recheck_end(recheck);
	return rows;
}
