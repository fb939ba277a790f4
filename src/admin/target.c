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
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "admin/admin.h"

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
	gpuds_require_preload();
	gpuds_check_is_index(indexid);
	if (!GpudsOwnsRelation(indexid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexid));
	return gpuds_open_index(indexid, heap);
}

/* Closes what gpuds_admin_open opened; nothing was changed, so the locks go, too. */
void
gpuds_admin_close(Relation index, Relation heap)
{
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
}
