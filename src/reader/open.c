/*-------------------------------------------------------------------------
 *
 * open.c
 *	  Opens tables and indexes that are read in place of core's nodes, and begins to scan them.
 *
 * Core's nodes make checks when they open a table and when they begin a scan.  So what reads rows in place
 * of such a node opens and begins here, where the same checks are made (src/reader/README.md has them all).
 * Where a node has an index scan of core's making below it, core has opened both.  test/floors finds those
 * that open or begin elsewhere.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "insert/insert.h"
#include "reader/reader.h"

/* Is the relation, which the caller has open, an index of gpuds? */
bool
gpuds_is_ours(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_indam &&
		   rel->rd_indam->amcanreturn == gpuds_can_return;
}

/* Is an access method one of gpuds? */
bool
gpuds_is_our_method(Oid method)
{
	const IndexAmRoutine *routine = GetIndexAmRoutineByAmId(method, true);

	return routine && routine->amcanreturn == gpuds_can_return;
}

/* Raises an error if there is no relation of that number, or if it is not an index. */
void
gpuds_check_is_index(Oid indexid)
{
	char relkind = get_rel_relkind(indexid);

	if (relkind == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", indexid)));
	if (relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not an index", get_rel_name(indexid))));
}

static void
check_opened(Relation index)
{
	if (!gpuds_is_ours(index))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("index \"%s\" is not an index of gpuds", RelationGetRelationName(index)),
						errdetail("Its access method is \"%s\".", get_am_name(index->rd_rel->relam))));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot access temporary indexes of other sessions")));
	if (ReindexIsProcessingIndex(RelationGetRelid(index)))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot access index \"%s\" while it is being reindexed",
							   RelationGetRelationName(index))));
	if (!index->rd_index->indisvalid)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
						errhint("REINDEX or drop the index.")));
}

/*
 * Opens an index, after gpuds_check_is_index, and its table.  Takes AccessShareLock on both, the table
 * first.  Raises an error if it is no valid index of gpuds that this session can read.
 */
Relation
gpuds_open_index(Oid indexid, Relation *heap)
{
	Oid heapid;
	Relation index;

	if (get_rel_relkind(indexid) == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("index \"%s\" is partitioned", get_rel_name(indexid)),
						errhint("Name the indexes of its partitions.")));
	heapid = IndexGetRelation(indexid, true);
	if (!OidIsValid(heapid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("index with OID %u does not exist", indexid)));
	*heap = table_open(heapid, AccessShareLock);
	index = index_open(indexid, AccessShareLock);

	/* Dropped, and its number given to another one, before we had the locks? */
	if (IndexGetRelation(indexid, false) != heapid)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("could not open the table of index \"%s\"", RelationGetRelationName(index))));
	check_opened(index);
	return index;
}

/*
 * Opens the table of a number in a plan's range table, and an index of it, for the start of a node with these
 * executor flags.  The plan has the table's lock, and closes the table.  The index gets the same lock, and is
 * the caller's to close; *index is NULL if nothing will be executed.
 *
 * Raises an error if the table is a materialized view without data that the query would read.
 */
Relation
gpuds_open_for_node(EState *estate, Index relid, Oid indexid, int eflags, Relation *index)
{
	Relation heap = ExecOpenScanRelation(estate, relid, eflags);

	*index = NULL;
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		*index = index_open(indexid, exec_rt_fetch(relid, estate)->rellockmode);
	return heap;
}

/* Raises an error if a query may not read the table's rows, as ExecOpenScanRelation does. */
static void
check_scannable(Relation heap)
{
	if (!RelationIsScannable(heap))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("materialized view \"%s\" has not been populated", RelationGetRelationName(heap)),
				 errhint("Use the REFRESH MATERIALIZED VIEW command.")));
}

/*
 * Begins a scan of an index that has been opened here, by nkeys keys or by probes.  The caller ends it.  The
 * snapshot stays the caller's.  reads_only: the query does not change the table, as far as the caller knows,
 * which is a hint.
 *
 * Raises an error if the table is a materialized view without data, or if the index is being built anew.
 */
IndexScanDesc
gpuds_begin_scan(Relation heap, Relation index, Snapshot snapshot, int nkeys, bool reads_only)
{
	if (!IsMVCCSnapshot(snapshot))
		elog(ERROR, "index \"%s\" is scanned in batches with a snapshot that is not an MVCC snapshot",
			 RelationGetRelationName(index));
	check_scannable(heap);
	return GpudsIndexBeginscan(heap, index, snapshot, nkeys, reads_only);
}

/* Begins a sequential scan of a table that has been opened here.  Raises an error as gpuds_begin_scan. */
TableScanDesc
gpuds_begin_table_scan(Relation heap, Snapshot snapshot)
{
	check_scannable(heap);
	return table_beginscan_strat(heap, snapshot, 0, NULL, true, true);
}
