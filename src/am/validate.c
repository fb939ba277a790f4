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
#include "index/index.h"
#include "key/code.h"

/* What a family has: of an access method that orders, or of one that only knows equality. */
typedef struct Expected
{
	bool ordered;
	int strategies;
	int procs;
	const char *name;
} Expected;

/* Reports a fault and notes it in the variable. */
#define COMPLAIN(valid, ...)                                                              \
	do                                                                                    \
	{                                                                                     \
		(valid) = false;                                                                  \
		ereport(INFO, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION), errmsg(__VA_ARGS__))); \
	} while (0)

/* Have points, on the left, no order that this strategy would be of, but an operator of their own? */
static bool
is_of_points(const Expected *expected, Form_pg_amop op)
{
	return expected->ordered && op->amoplefttype == POINTOID &&
		   OidIsValid(gpuds_point_function(op->amopstrategy, op->amoprighttype));
}

static bool
validate_operator(const Expected *expected, Form_pg_amop op)
{
	const char *family = expected->name;
	char *name = format_operator(op->amopopr);
	bool valid = true;

	if (is_of_points(expected, op))
	{
		if (get_opcode(op->amopopr) != gpuds_point_function(op->amopstrategy, op->amoprighttype))
			COMPLAIN(valid,
					 "operator family \"%s\" contains operator %s, which does not compare as type %s does",
					 family, name, format_type_be(POINTOID));
		return valid;
	}
	if (op->amopstrategy < 1 || op->amopstrategy > expected->strategies)
		COMPLAIN(valid, "operator family \"%s\" contains operator %s with invalid strategy number %d", family,
				 name, op->amopstrategy);
	if (op->amoppurpose != AMOP_SEARCH || OidIsValid(op->amopsortfamily))
		COMPLAIN(valid, "operator family \"%s\" contains invalid ORDER BY specification for operator %s",
				 family, name);
	if (!check_amop_signature(op->amopopr, BOOLOID, op->amoplefttype, op->amoprighttype))
		COMPLAIN(valid, "operator family \"%s\" contains operator %s with wrong signature", family, name);
	if (expected->ordered &&
		!gpuds_kinds_compare(gpuds_key_kind(op->amoplefttype), gpuds_key_kind(op->amoprighttype)))
		COMPLAIN(valid, "operator family \"%s\" contains operator %s of types that cannot be keys", family,
				 name);
	return valid;
}

/* Hash functions of PostgreSQL serve several types of a length, so the first argument may be of any type. */
static bool
has_hash_signature(Oid function, int number)
{
	const bool is_long = number == GPUDS_LONG_HASH_PROC;
	Oid *types;
	int nargs;
	Oid result = get_func_signature(function, &types, &nargs);

	if (is_long)
		return result == INT8OID && nargs == 2 && types[1] == INT8OID;
	return result == INT4OID && nargs == 1;
}

static bool
validate_proc(const Expected *expected, Form_pg_amproc proc)
{
	const char *family = expected->name;
	char *name = format_procedure(proc->amproc);
	bool valid = true;

	if (proc->amprocnum < 1 || proc->amprocnum > expected->procs)
		COMPLAIN(valid, "operator family \"%s\" contains function %s with invalid support number %d", family,
				 name, proc->amprocnum);
	else if (proc->amproclefttype != proc->amprocrighttype ||
			 !(expected->ordered ? gpuds_alike_of(proc->amproc, proc->amproclefttype) != NULL
								 : has_hash_signature(proc->amproc, proc->amprocnum)))
		COMPLAIN(valid,
				 "operator family \"%s\" contains function %s with wrong signature for support number %d",
				 family, name, proc->amprocnum);
	return valid;
}

/* Has the family a hash function for each type whose values are no keys, or that another is compared with? */
static bool
validate_hashes(const Expected *expected, Oid family, CatCList *operators)
{
	bool valid = true;

	for (int i = 0; i < operators->n_members; i++)
	{
		Form_pg_amop op = (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple);
		Oid types[] = { op->amoplefttype, op->amoprighttype };

		if (types[0] == types[1] && gpuds_key_core_kind(types[0]) != GPUDS_KIND_NONE &&
			gpuds_key_core_kind(types[0]) != GPUDS_KIND_NUMERIC &&
			gpuds_key_core_kind(types[0]) != GPUDS_KIND_POINT && !gpuds_key_is_text(types[0]))
			continue;
		for (int k = types[0] == types[1]; k < 2; k++)
		{
			if (!OidIsValid(get_opfamily_proc(family, types[k], types[k], GPUDS_LONG_HASH_PROC)))
				COMPLAIN(valid, "operator family \"%s\" is missing a hash function of 64 bits for type %s",
						 expected->name, format_type_be(types[k]));
		}
	}
	return valid;
}

/* Has a family all operators for two types?  Of points it may have any. */
static bool
has_all_operators(const Expected *expected, const OpFamilyOpFuncGroup *group)
{
	return (expected->ordered && group->lefttype == POINTOID) ||
		   group->operatorset == ((UINT64CONST(1) << expected->strategies) - 1) << 1;
}

/*
 * Validates an operator class and its family.  Of an access method that orders: types that make keys, all
 * five comparisons for each pair of types, or what points have, and no support functions but the comparison
 * of a type that another is like.  Of another: equality, and hash functions for types whose values are no
 * keys.  Faults come as INFO; returns whether there were none.
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
	Expected expected;
	bool valid = true;
	bool own_pair = false;

	if (!HeapTupleIsValid(class_tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class = (Form_pg_opclass) GETSTRUCT(class_tuple);
	family_tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(class->opcfamily));
	if (!HeapTupleIsValid(family_tuple))
		elog(ERROR, "cache lookup failed for operator family %u", class->opcfamily);
	family = NameStr(((Form_pg_opfamily) GETSTRUCT(family_tuple))->opfname);
	expected.name = family;
	expected.ordered = GetIndexAmRoutineByAmId(class->opcmethod, false)->amcanorder;
	expected.strategies = expected.ordered ? GPUDS_NSTRATEGIES : GPUDS_NHASH_STRATEGIES;
	expected.procs = expected.ordered ? GPUDS_NORDER_PROCS : GPUDS_NPROCS;

	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(class->opcfamily));
	procs = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(class->opcfamily));

	for (int i = 0; i < operators->n_members; i++)
		valid &= validate_operator(&expected, (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple));

	for (int i = 0; i < procs->n_members; i++)
		valid &= validate_proc(&expected, (Form_pg_amproc) GETSTRUCT(&procs->members[i]->tuple));

	groups = identify_opfamily_groups(operators, procs);
	foreach (cell, groups)
	{
		OpFamilyOpFuncGroup *group = lfirst(cell);

		/* Functions of types of which the family has no operators. */
		if (group->operatorset == 0)
			continue;
		if (!has_all_operators(&expected, group))
			COMPLAIN(valid, "operator family \"%s\" is missing operators for types %s and %s", family,
					 format_type_be(group->lefttype), format_type_be(group->righttype));
		own_pair |= group->lefttype == class->opcintype && group->righttype == class->opcintype;
	}
	if (!own_pair)
		COMPLAIN(valid, "operator class \"%s\" is missing its operators", NameStr(class->opcname));
	if (!expected.ordered)
		valid &= validate_hashes(&expected, class->opcfamily, operators);

	ReleaseCatCacheList(procs);
	ReleaseCatCacheList(operators);
	ReleaseSysCache(family_tuple);
	ReleaseSysCache(class_tuple);
	return valid;
}
