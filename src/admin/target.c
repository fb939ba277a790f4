/*-------------------------------------------------------------------------
 *
 * target.c
 *	  Opens the index that an administrative function is called for, after checking
 *	  that it is one of ours and that the caller may do that; and who may see an index's figures.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"

#include "admin/admin.h"

/* Unlogged indexes have no file on a standby.  The caller has the index open. */
bool
gpuds_admin_has_file(Relation index)
{
	return index->rd_rel->relpersistence != RELPERSISTENCE_UNLOGGED || !RecoveryInProgress();
}

/* May the user query a table, and see all of its rows? */
static bool
may_query(Oid table, Oid schema)
{
	if (!SearchSysCacheExists1(NAMESPACEOID, ObjectIdGetDatum(schema)) || !GpudsMayUseSchema(schema))
		return false;
	if (!GpudsMaySelect(table) &&
		pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ANY) != ACLCHECK_OK)
		return false;
	return check_enable_rls(table, InvalidOid, true) != RLS_ENABLED;
}

/*
 * May the user see how large an index is, and what has been done with it?  Those may who monitor the
 * server, own the table, or may read a column of it in all rows.  Takes no lock, so the table may be dropped
 * meanwhile; then the answer is no.
 */
bool
gpuds_admin_may_see(Oid indexid)
{
	HeapTuple tuple;
	Form_pg_class form;
	Oid table;
	bool may;

	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		return true;
	table = IndexGetRelation(indexid, true);
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	may = has_privs_of_role(GetUserId(), form->relowner) || may_query(table, form->relnamespace);
	ReleaseSysCache(tuple);
	return may;
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
