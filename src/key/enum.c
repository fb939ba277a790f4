/*-------------------------------------------------------------------------
 *
 * enum.c
 *	  Keeps indexed enums sortable by the OIDs of their labels.
 *
 * Core gives a label an even OID if its place by OID, among the labels with even OIDs, is
 * its place in the enum's order; otherwise it gives an odd one.  So even OIDs serve as
 * codes.  Labels of CREATE TYPE are even, and so is a label that ADD VALUE puts last.  One
 * that is put BEFORE or AFTER others mostly is odd.  Indexes on types with odd labels are
 * refused, and so are odd labels for types that are indexed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "key/enum.h"
#include "methods.h"

/* Raises the error of a label that does not sort by its OID. */
void
gpuds_enum_reject_label(Oid label)
{
	HeapTuple tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(label));
	Form_pg_enum form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid internal value for enum: %u", label)));
	form = (Form_pg_enum) GETSTRUCT(tuple);
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("label \"%s\" of enum type %s cannot be a key", NameStr(form->enumlabel),
					format_type_be(form->enumtypid)),
			 errdetail("Labels that were added with BEFORE or AFTER do not sort by their internal number."),
			 errhint("Use a btree index, or drop and create the type with its labels in order.")));
}

/* The first label in OID order that does not sort by its OID, or InvalidOid. */
static Oid
odd_label(Oid type)
{
	Relation rel = table_open(EnumRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	Oid found = InvalidOid;

	ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(type));
	scan = systable_beginscan(rel, EnumTypIdLabelIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid label = ((Form_pg_enum) GETSTRUCT(tuple))->oid;

		if (!GPUDS_ENUM_LABEL_SORTS(label) && (!OidIsValid(found) || label < found))
			found = label;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* Raises an error if the enum type has labels that do not sort by OID. */
void
gpuds_enum_check_labels(Oid type)
{
	Oid label = odd_label(type);

	if (OidIsValid(label))
		gpuds_enum_reject_label(label);
}

/* The same, and locks the type against new labels until the transaction ends. */
void
gpuds_enum_check_type(Oid type)
{
	LockDatabaseObject(TypeRelationId, type, 0, ShareLock);
	gpuds_enum_check_labels(type);
}

/* Does an access method order enums, as their labels sort? */
static bool
orders_labels(Oid am)
{
	for (const GpudsMethod *method = gpuds_methods; method->name; method++)
	{
		if (method->ordered && get_am_oid(method->name, true) == am)
			return true;
	}
	return false;
}

/* An index of gpuds that orders its keys, with a column of the enum type, or InvalidOid. */
static Oid
find_index_on(Oid type)
{
	Relation rel;
	SysScanDesc scan;
	HeapTuple tuple;
	Oid found = InvalidOid;

	rel = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if ((form->relkind != RELKIND_INDEX && form->relkind != RELKIND_PARTITIONED_INDEX) ||
			!orders_labels(form->relam))
			continue;
		for (AttrNumber attno = 1; attno <= form->relnatts; attno++)
		{
			if (getBaseType(get_atttype(form->oid, attno)) == type)
				found = form->oid;
		}
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * To be called after an ALTER TYPE of an enum has been carried out: raises
 * ERRCODE_FEATURE_NOT_SUPPORTED if the type now has a label that does not sort
 * by OID and is a key of an index of ours, also through a domain.  ADD VALUE
 * and CREATE INDEX hold conflicting locks on the type, so neither overlooks
 * the other.
 */
void
gpuds_key_after_alter_enum(AlterEnumStmt *stmt)
{
	Oid type;
	Oid label;
	Oid index;

	/* RENAME VALUE moves nothing */
	if (stmt->oldVal != NULL)
		return;

	CommandCounterIncrement();
	type = typenameTypeId(NULL, makeTypeNameFromNameList(stmt->typeName));
	label = odd_label(type);
	if (!OidIsValid(label))
		return;
	index = find_index_on(type);
	if (!OidIsValid(index))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot add label \"%s\" to enum type %s inside its order", stmt->newVal,
					format_type_be(type)),
			 errdetail(
				 "The type is a key of index \"%s\", which needs labels that sort by their internal number.",
				 get_rel_name(index)),
			 errhint("Add the label at the end, or make the index a btree one.")));
}
