/*-------------------------------------------------------------------------
 *
 * open.c
 *	  Opens an index of gpuds that the caller of an SQL function has named.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/am.h"

/* Is the relation, which the caller has open, an index of gpuds? */
bool
gpuds_is_ours(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_indam && rel->rd_indam->aminsert == gpuds_insert;
}

/* Is an access method one of gpuds? */
bool
gpuds_is_our_method(Oid method)
{
	const IndexAmRoutine *routine = GetIndexAmRoutineByAmId(method, true);

	return routine && routine->aminsert == gpuds_insert;
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
