/*-------------------------------------------------------------------------
 *
 * index_access.c
 *	  Opens the index that a function looks keys up in, if a query of the caller might use it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_namespace.h"
#include "catalog/objectaddress.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "functions/functions.h"
#include "index/index.h"
#include "reader/reader.h"

/*
 * What the index's first column is, as the user has written it; NULL: a column of the table.  The relation
 * cache would give the expression as it was simplified for the first user that opened the index: without
 * columns that have no effect, and with the bodies of SQL functions in their place.
 */
static Node *
expression_of_key(Relation index)
{
	bool isnull;
	Datum stored;

	if (index->rd_index->indkey.values[0] != InvalidAttrNumber)
		return NULL;
	stored = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, Anum_pg_index_indexprs, &isnull);
	Assert(!isnull);
	return linitial(castNode(List, stringToNode(TextDatumGetCString(stored))));
}

/* What the index's first column is made of: columns of the table, numbered as in core's permission checks. */
static Bitmapset *
columns_of_key(Relation index, Node *expression)
{
	Bitmapset *columns = NULL;

	if (expression == NULL)
		return bms_make_singleton(index->rd_index->indkey.values[0] - FirstLowInvalidHeapAttributeNumber);
	pull_varattnos(expression, 1, &columns);
	return columns;
}

/* May the user read a column, or all of them if it is a whole row that the index has an expression of? */
static bool
may_read_column(Oid table, AttrNumber column)
{
	AclResult result;

	if (column == InvalidAttrNumber)
		result = pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ALL);
	else
		result = pg_attribute_aclcheck(table, column, GetUserId(), ACL_SELECT);
	return result == ACLCHECK_OK;
}

/* As core's ExecCheckRTPerms for a query that has these columns. */
static bool
may_read(Oid table, const Bitmapset *columns)
{
	int column = -1;

	if (pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
		return true;
	if (bms_is_empty(columns))
		return pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK;
	while ((column = bms_next_member(columns, column)) >= 0)
	{
		if (!may_read_column(table, column + FirstLowInvalidHeapAttributeNumber))
			return false;
	}
	return true;
}

/* Raises an error if a query of the user could not see the keys, or the TIDs, of all rows. */
static void
check_privileges(Relation heap, Relation index, bool wants_ctid)
{
	const Oid table = RelationGetRelid(heap);
	Node *expression = expression_of_key(index);
	Bitmapset *columns = columns_of_key(index, expression);

	if (wants_ctid)
		columns = bms_add_member(columns,
								 SelfItemPointerAttributeNumber - FirstLowInvalidHeapAttributeNumber);
	if (!GpudsMayUseSchema(RelationGetNamespace(heap)))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(RelationGetNamespace(heap)));
	if (!may_read(table, columns))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(heap->rd_rel->relkind),
					   RelationGetRelationName(heap));
	if (expression)
	{
		gpuds_check_execute(expression);
		/* SQL functions that are inlined call others as the user. */
		gpuds_check_execute(eval_const_expressions(NULL, expression));
	}
	if (check_enable_rls(table, InvalidOid, false) == RLS_ENABLED)
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						errmsg("row-level security of table \"%s\" applies to the user",
							   RelationGetRelationName(heap)),
						errdetail("A function that reads an index does not apply policies."),
						errhint("Query the table instead.")));
}

/* Raises an error where core's planner would not read the table, or not use the index. */
static void
check_usable(Relation heap, Relation index)
{
	if (!RelationIsPermanent(heap) && RecoveryInProgress())
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot access temporary or unlogged relations during recovery")));
	if (RelationGetIndexPredicate(index) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is partial", RelationGetRelationName(index)),
				 errdetail("It does not have all rows of table \"%s\".", RelationGetRelationName(heap)),
				 errhint("Name an index without a WHERE clause.")));
	if (index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), TransactionXmin))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" cannot be used yet", RelationGetRelationName(index)),
				 errdetail("It does not have all old versions of rows, which the transaction might see."),
				 errhint("Try again when all transactions have ended that are older than the index.")));
}

/*
 * Opens an index of gpuds, and its table, for a search with the active snapshot.  wants_ctid: the
 * caller is to see where rows are.  Takes AccessShareLock on both, the table first; the locks stay until the
 * transaction ends, as a query's.
 *
 * Raises an error if there is no such index, or it cannot be used, or the user may not see its first column.
 */
void
gpuds_target_open(Oid indexid, bool wants_ctid, GpudsTarget *target)
{
	gpuds_require_preload();
	if (!ActiveSnapshotSet() || !IsMVCCSnapshot(GetActiveSnapshot()))
		elog(ERROR, "no snapshot to search index %u with", indexid);
	target->snapshot = GetActiveSnapshot();
	gpuds_check_is_index(indexid);
	target->index = gpuds_open_index(indexid, &target->heap);
	check_privileges(target->heap, target->index, wants_ctid);
	check_usable(target->heap, target->index);
	target->layout = gpuds_index_info(target->index)->layout;
}

/*
 * Raises an error if the user may not see another column of the index, counted from 0, which is a column of
 * the table.
 */
void
gpuds_target_check_column(const GpudsTarget *target, int column)
{
	const AttrNumber of_table = target->index->rd_index->indkey.values[column];
	Bitmapset *columns = bms_make_singleton(of_table - FirstLowInvalidHeapAttributeNumber);

	if (!may_read(RelationGetRelid(target->heap), columns))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(target->heap->rd_rel->relkind),
					   RelationGetRelationName(target->heap));
	bms_free(columns);
}

/* Closes what gpuds_target_open opened.  The locks stay until the transaction ends. */
void
gpuds_target_close(GpudsTarget *target)
{
	index_close(target->index, NoLock);
	table_close(target->heap, NoLock);
}

static void
reject_key_type(const GpudsTarget *target, Oid type, Oid column)
{
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("keys of type %s cannot be looked up in index \"%s\"", format_type_be(type),
						   RelationGetRelationName(target->index)),
					errdetail("Its first column is of type %s.", format_type_be(column)),
					errhint("Cast the keys to type %s.", format_type_be(column))));
}

/* The type that the operator family compares the first column with, which is lossy. */
static Oid
hashed_key_type(const GpudsTarget *target, Oid type)
{
	const Oid base = getBaseType(type);
	const Oid family = target->index->rd_opfamily[0];
	const Oid input = target->index->rd_opcintype[0];
	const Oid column = getBaseType(TupleDescAttr(RelationGetDescr(target->index), 0)->atttypid);

	if (IsPolymorphicType(input) ? base == column : IsBinaryCoercible(base, input))
		return input;
	if (IsPolymorphicType(input) ||
		!OidIsValid(
			get_opfamily_member(family, input, base,
								target->layout.ordered ? BTEqualStrategyNumber : HTEqualStrategyNumber)))
		reject_key_type(target, type, column);
	return base;
}

/*
 * May values of a type be compared with those of another, if they are at all, otherwise than by their codes?
 * The operators of enums are for two of one type, those of an accepted type are its own.
 */
static bool
is_compared_otherwise(Oid type)
{
	const GpudsKeyKind kind = gpuds_key_core_kind(type);

	return kind == GPUDS_KIND_ENUM || kind == GPUDS_KIND_NONE;
}

/*
 * The type below a type of keys, a domain perhaps.  Raises an error if its values are not compared with the
 * index's first column, or not exactly so.
 */
Oid
gpuds_target_key_type(const GpudsTarget *target, Oid type)
{
	const Oid base = getBaseType(type);
	const Oid column = target->layout.column[0].type;

	if (target->layout.column[0].hash)
		return hashed_key_type(target, type);
	if (target->layout.column[0].kind == GPUDS_KIND_POINT)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("points cannot be looked up in index \"%s\"", RelationGetRelationName(target->index)),
				 errdetail("No equality of points is exact."),
				 errhint("Search for points in a box or a circle by a query.")));
	if (!gpuds_key_probe_is_exact(column, base) ||
		(base != column && (is_compared_otherwise(base) || is_compared_otherwise(column))))
		reject_key_type(target, type, column);
	return base;
}
