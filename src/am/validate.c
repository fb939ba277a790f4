/*-------------------------------------------------------------------------
 *
 * validate.c
 *	  Checks of operator classes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "am/am.h"
#include "key/code.h"

#define ALL_STRATEGIES (((1 << GPUDS_NSTRATEGIES) - 1) << 1)

/* Reports a fault and notes it in the variable. */
#define COMPLAIN(valid, ...)                                                              \
	do                                                                                    \
	{                                                                                     \
		(valid) = false;                                                                  \
		ereport(INFO, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION), errmsg(__VA_ARGS__))); \
	} while (0)

static bool
validate_operator(const char *family, Form_pg_amop op)
{
	char *name = format_operator(op->amopopr);
	bool valid = true;

	if (op->amopstrategy < 1 || op->amopstrategy > GPUDS_NSTRATEGIES)
		COMPLAIN(valid, "operator family \"%s\" contains operator %s with invalid strategy number %d", family,
				 name, op->amopstrategy);
	if (op->amoppurpose != AMOP_SEARCH || OidIsValid(op->amopsortfamily))
		COMPLAIN(valid, "operator family \"%s\" contains invalid ORDER BY specification for operator %s",
				 family, name);
	if (!check_amop_signature(op->amopopr, BOOLOID, op->amoplefttype, op->amoprighttype))
		COMPLAIN(valid, "operator family \"%s\" contains operator %s with wrong signature", family, name);
	if (!gpuds_kinds_compare(gpuds_key_kind(op->amoplefttype), gpuds_key_kind(op->amoprighttype)))
		COMPLAIN(valid, "operator family \"%s\" contains operator %s of types that cannot be keys", family,
				 name);
	return valid;
}

/*
 * Validates an operator class and its family: types that make keys, all five
 * comparisons for each pair of types, no support functions.  Faults come as
 * INFO; returns whether there were none.
 */
bool
gpuds_validate(Oid opclassoid)
{
	HeapTuple class_tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	HeapTuple family_tuple;
	Form_pg_opclass class;
	CatCList *operators;
	CatCList *procs;
	List *groups;
	ListCell *cell;
	const char *family;
	bool valid = true;
	bool own_pair = false;

	if (!HeapTupleIsValid(class_tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class = (Form_pg_opclass) GETSTRUCT(class_tuple);
	family_tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(class->opcfamily));
	if (!HeapTupleIsValid(family_tuple))
		elog(ERROR, "cache lookup failed for operator family %u", class->opcfamily);
	family = NameStr(((Form_pg_opfamily) GETSTRUCT(family_tuple))->opfname);

	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(class->opcfamily));
	procs = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(class->opcfamily));

	for (int i = 0; i < operators->n_members; i++)
		valid &= validate_operator(family, (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple));

	for (int i = 0; i < procs->n_members; i++)
	{
		Form_pg_amproc proc = (Form_pg_amproc) GETSTRUCT(&procs->members[i]->tuple);

		COMPLAIN(valid, "operator family \"%s\" contains support function %s, but there are none to have",
				 family, format_procedure(proc->amproc));
	}

	groups = identify_opfamily_groups(operators, procs);
	foreach (cell, groups)
	{
		OpFamilyOpFuncGroup *group = lfirst(cell);

		if (group->operatorset != ALL_STRATEGIES)
			COMPLAIN(valid, "operator family \"%s\" is missing operators for types %s and %s", family,
					 format_type_be(group->lefttype), format_type_be(group->righttype));
		own_pair |= group->lefttype == class->opcintype && group->righttype == class->opcintype;
	}
	if (!own_pair)
		COMPLAIN(valid, "operator class \"%s\" is missing its operators", NameStr(class->opcname));

	ReleaseCatCacheList(procs);
	ReleaseCatCacheList(operators);
	ReleaseSysCache(family_tuple);
	ReleaseSysCache(class_tuple);
	return valid;
}
