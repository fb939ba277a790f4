/*-------------------------------------------------------------------------
 *
 * check.c
 *	  gpuds_index_check: is everything about an index as it should be?
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "admin/admin.h"
#include "index/index.h"
#include "insert/insert.h"

PG_FUNCTION_INFO_V1(gpuds_index_check);

/*
 * A snapshot whose visible rows must all have entries, and entries of their own
 * keys only.  It is a new one in READ COMMITTED; otherwise it may be older than
 * the index allows.
 */
static Snapshot
take_snapshot(Relation index)
{
	Snapshot snapshot = RegisterSnapshot(GetTransactionSnapshot());

	if (IsolationUsesXactSnapshot() && index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), snapshot->xmin))
		ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						errmsg("index \"%s\" cannot be checked with this transaction's snapshot",
							   RelationGetRelationName(index)),
						errhint("The snapshot is older than the index. Check it in a new transaction.")));
	return snapshot;
}

static void
check(Relation heap, Relation index, bool heapallindexed)
{
	/* A copy: the relation cache may rebuild its own meanwhile. */
	GpudsIndexInfo info = *gpuds_index_info(index);
	GpudsMirrorSource source;
	Snapshot snapshot = NULL;

	source.index = index;
	source.layout = &info.layout;
	source.file_id = info.file_id;
	source.fillfactor = GpudsGetFillfactor(index);

	gpuds_insert_flush(index);
	if (heapallindexed)
		snapshot = take_snapshot(index);

	gpuds_check_journal(index, &info.layout);
	gpuds_check_mirror(heap, &source);
	if (heapallindexed)
	{
		gpuds_check_heap(heap, &source, snapshot);
		gpuds_check_entries(heap, &source, snapshot);
		gpuds_check_hashes(heap, &source, snapshot);
		UnregisterSnapshot(snapshot);
	}
}

/*
 * gpuds_index_check(index regclass, heapallindexed boolean)
 *
 * Checks the journal's pages, the mirror against the journal and, if heapallindexed, that every row visible
 * now has its entry, every entry a row with its key, or none, and that equal values have equal hashes.
 * Raises ERRCODE_INDEX_CORRUPTED for the first violation.
 *
 * Takes AccessShareLock on table and index: reading and writing go on, also
 * VACUUM, and it works on a standby.  The owner's functions in the index's
 * expressions run as the owner.
 */
Datum
gpuds_index_check(PG_FUNCTION_ARGS)
{
	Oid indexid = PG_GETARG_OID(0);
	bool heapallindexed = PG_GETARG_BOOL(1);
	MemoryContext context;
	MemoryContext old_context;
	Relation heap;
	Relation index;
	Oid userid;
	int security_context;
	int guc_level;

	index = gpuds_admin_open(indexid, &heap);

	GetUserIdAndSecContext(&userid, &security_context);
	SetUserIdAndSecContext(heap->rd_rel->relowner, security_context | SECURITY_RESTRICTED_OPERATION);
	guc_level = NewGUCNestLevel();
	GpudsRestrictSearchPath();
	context = AllocSetContextCreate(CurrentMemoryContext, "gpuds check", ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);

	if (gpuds_admin_has_file(index))
		check(heap, index, heapallindexed);
	else
		ereport(DEBUG1, (errmsg_internal("unlogged index \"%s\" has no file during recovery",
										 RelationGetRelationName(index))));

	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	AtEOXact_GUC(false, guc_level);
	SetUserIdAndSecContext(userid, security_context);
	gpuds_admin_close(index, heap);

	PG_RETURN_VOID();
}
