/*-------------------------------------------------------------------------
 *
 * target.c
 *	  Opens the index that an administrative function is called for, after checking
 *	  that it is one of ours and that the caller may do that.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/table.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "admin/admin.h"

/* Is the relation, which the caller has open, an index of gpuds? */
bool
gpuds_admin_is_ours(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_INDEX && rel->rd_indam && rel->rd_indam->aminsert == gpuds_insert;
}

/* Unlogged indexes have no file on a standby.  The caller has the index open. */
bool
gpuds_admin_has_file(Relation index)
{
	return index->rd_rel->relpersistence != RELPERSISTENCE_UNLOGGED || !RecoveryInProgress();
}

/*
 * Opens an index of gpuds, and its table, for its owner.  Takes AccessShareLock
 * on both, the table first.  Raises an error if the caller does not own the
 * table, or if it is no valid index of gpuds that this session can read.
 */
Relation
gpuds_admin_open(Oid indexid, Relation *heap)
{
	char relkind = get_rel_relkind(indexid);
	Oid heapid;
	Relation index;

	gpuds_require_preload();

	if (relkind == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", indexid)));
	if (relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not an index", get_rel_name(indexid))));
	if (!GpudsOwnsRelation(indexid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexid));
	if (relkind == RELKIND_PARTITIONED_INDEX)
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

	if (!gpuds_admin_is_ours(index))
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
	return index;
}

/* Closes what gpuds_admin_open opened; nothing was changed, so the locks go, too. */
void
gpuds_admin_close(Relation index, Relation heap)
{
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
}
