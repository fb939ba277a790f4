/*-------------------------------------------------------------------------
 *
 * hash.c
 *	  Hashes of values, where they are the codes of an index that knows equality only.
 *
 * Operator classes have the support functions of hash's: 1, a hash of 32 bits, and 2, one of 64 bits
 * with a seed.  Only the second is ever called: if one or the other were, a function that is added to a
 * family would change the codes of indexes that are there.
 *
 * Equal values must have equal hashes.  Two functions of PostgreSQL's have not, where a collation calls
 * strings equal that differ (a nondeterministic one): hashbpcharextended before PostgreSQL 16 looks at the
 * blanks at the end, and hashnameextended does not look at the collation.  So others stand in for them
 * there.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "key/key.h"

/*
 * Other than the seeds of PostgreSQL's own: rows of a partition by hash, or of a batch of a hash join, have
 * much in common by those.  Part of the format of an index.
 */
#define HASH_SEED INT64CONST(0x67707564735f6b31)

/* The hash of a value that is not NULL, all of whose bits are good.  Raises what the function raises. */
uint64
gpuds_key_hash(FmgrInfo *hash, Oid collation, Datum value)
{
	return DatumGetUInt64(FunctionCall2Coll(hash, collation, value, Int64GetDatum(HASH_SEED)));
}

/* hashbpcharextended of a character(n) without the blanks at its end: what it gives since PostgreSQL 16. */
static Datum
hash_trimmed(PG_FUNCTION_ARGS)
{
	BpChar *value = PG_GETARG_BPCHAR_PP(0);
	const int length = bpchartruelen(VARDATA_ANY(value), (int) VARSIZE_ANY_EXHDR(value));

	return DirectFunctionCall2Coll(hashbpcharextended, PG_GET_COLLATION(),
								   PointerGetDatum(cstring_to_text_with_len(VARDATA_ANY(value), length)),
								   PG_GETARG_DATUM(1));
}

/* The hash of a name as a text, which looks at the collation. */
static Datum
hash_name_text(PG_FUNCTION_ARGS)
{
	return DirectFunctionCall2Coll(hashtextextended, PG_GET_COLLATION(),
								   PointerGetDatum(cstring_to_text(NameStr(*PG_GETARG_NAME(0)))),
								   PG_GETARG_DATUM(1));
}

static FmgrInfo trimmed = {
	.fn_addr = hash_trimmed,
	.fn_oid = F_HASHBPCHAREXTENDED,
	.fn_nargs = 2,
	.fn_strict = true,
};

static FmgrInfo name_as_text = {
	.fn_addr = hash_name_text,
	.fn_oid = F_HASHNAMEEXTENDED,
	.fn_nargs = 2,
	.fn_strict = true,
};

/* Can strings be equal by a collation that differ? */
static bool
is_nondeterministic(Oid collation)
{
	return OidIsValid(collation) && !get_collation_isdeterministic(collation);
}

/* A hash function, or what stands in for it with a collation. */
FmgrInfo *
gpuds_key_sound_hash(FmgrInfo *hash, Oid collation)
{
	if (hash->fn_oid == F_HASHBPCHAREXTENDED && is_nondeterministic(collation))
		return &trimmed;
	if (hash->fn_oid == F_HASHNAMEEXTENDED && is_nondeterministic(collation))
		return &name_as_text;
	return hash;
}

/*
 * The hash function for values of a type that a column is compared with; in the current memory context, if it
 * is not the column's own.  Raises an error if the operator family has none.
 */
FmgrInfo *
gpuds_key_hash_for(const GpudsKeyColumn *column, Oid type)
{
	FmgrInfo *hash;
	Oid proc;

	/* those of texts are one function of their bytes */
	if (column->kind != GPUDS_KIND_HASHED)
	{
		hash = &lookup_type_cache(type, TYPECACHE_HASH_EXTENDED_PROC_FINFO)->hash_extended_proc_finfo;
		return gpuds_key_sound_hash(hash, column->collation);
	}
	if (type == column->type)
		return column->hash;
	proc = get_opfamily_proc(column->family, type, type, GPUDS_LONG_HASH_PROC);
	if (!OidIsValid(proc))
		elog(ERROR, "operator family %u has no hash function for type %u", column->family, type);
	hash = palloc(sizeof(FmgrInfo));
	fmgr_info(proc, hash);
	return gpuds_key_sound_hash(hash, column->collation);
}

/* gpuds_key_unsound_part of the columns of a composite type. */
static Oid
unsound_column(Oid type)
{
	TupleDesc columns = lookup_rowtype_tupdesc(type, -1);
	Oid part = InvalidOid;

	for (int i = 0; i < columns->natts && !OidIsValid(part); i++)
	{
		Form_pg_attribute column = TupleDescAttr(columns, i);

		if (!column->attisdropped)
			part = gpuds_key_unsound_part(column->atttypid, column->attcollation);
	}
	ReleaseTupleDesc(columns);
	return part;
}

/*
 * The hash of an array, a range or a row is made by PostgreSQL of those of its parts, where nothing can stand
 * in.  Which type among them, with a collation, has a hash function that does not agree with its equality;
 * InvalidOid: none.
 */
Oid
gpuds_key_unsound_part(Oid type, Oid collation)
{
	check_stack_depth();
	type = getBaseType(type);
	if (type == NAMEOID || (type == BPCHAROID && GPUDS_CORE_HASHES_BLANKS))
		return is_nondeterministic(collation) ? type : InvalidOid;
	if (OidIsValid(get_element_type(type)))
		return gpuds_key_unsound_part(get_element_type(type), collation);
	if (type_is_multirange(type))
		type = get_multirange_range(type);
	if (type_is_range(type))
		return gpuds_key_unsound_part(get_range_subtype(type), get_range_collation(type));
	return get_typtype(type) == TYPTYPE_COMPOSITE ? unsound_column(type) : InvalidOid;
}
