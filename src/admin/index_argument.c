/*-------------------------------------------------------------------------
 *
 * index_argument.c
 *	  Opens the index that an administrative function is called for, after checking
 *	  that it is one of ours and that the caller may do that; and who may see an index's counters.
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
#include "index/index.h"
#include "reader/reader.h"

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

/* Raises an error if a relation is no table that could have an index of gpuds. */
static void
check_table(Oid relid)
{
	switch (get_rel_relkind(relid))
	{
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
			break;
		case RELKIND_PARTITIONED_TABLE:
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("table \"%s\" is partitioned", get_rel_name(relid)),
							errhint("Name its partitions; pg_partition_tree shows them.")));
			break;
		case '\0':
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation with OID %u does not exist", relid)));
			break;
		default:
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("\"%s\" is not a table or materialized view", get_rel_name(relid))));
	}
}

/* Raises an error if the user may not see statistics of a table's columns: the rule of pg_stats. */
static void
check_statistics(Relation table, const AttrNumber *columns, int ncolumns)
{
	const Oid relid = RelationGetRelid(table);
	bool may = true;

	if (!GpudsMayUseSchema(RelationGetNamespace(table)))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(RelationGetNamespace(table)));
	for (int i = 0; i < ncolumns && may; i++)
		may = GpudsMaySelect(relid) ||
			  pg_attribute_aclcheck(relid, columns[i], GetUserId(), ACL_SELECT) == ACLCHECK_OK;
	if (!may)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(table->rd_rel->relkind),
					   RelationGetRelationName(table));
	if (check_enable_rls(relid, InvalidOid, false) == RLS_ENABLED)
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("row-level security of table \"%s\" applies to the user",
							   RelationGetRelationName(table)),
						errdetail("Statistics are of all rows.")));
}

/*
 * Opens a table for somebody that may see the statistics of columns, whose names are given; sets their
 * numbers.  Takes AccessShareLock.  Raises an error if there is no such table or column, or the
 * user may not see its statistics.
 */
Relation
gpuds_admin_open_table(Oid relid, const List *names, AttrNumber *columns)
{
	Relation table;
	const ListCell *lc;

	check_table(relid);
	table = table_open(relid, AccessShareLock);
	if (!RelationIsPermanent(table) && RecoveryInProgress())
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot access temporary or unlogged relations during recovery")));
	foreach (lc, names)
	{
		AttrNumber column = get_attnum(relid, lfirst(lc));

		if (column == InvalidAttrNumber)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
							errmsg("column \"%s\" of relation \"%s\" does not exist", (char *) lfirst(lc),
								   RelationGetRelationName(table))));
		columns[foreach_current_index(lc)] = column;
	}
	check_statistics(table, columns, list_length(names));
	return table;
}

/* Closes what gpuds_admin_open opened; nothing was changed, so the locks go, too. */
void
gpuds_admin_close(Relation index, Relation heap)
{
	/* while the lock is held (mirror/stats.h, S1) */
	gpuds_mirror_count_flush();
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
}
