/*-------------------------------------------------------------------------
 *
 * hash.c
 *	  Hashes of values, where they are the codes of an index that knows equality only.
 *
 * Operator classes have the support functions of hash's: 1, a hash of 32 bits, and 2, one of 64 bits
 * with a seed.  Only the second is ever called: if one or the other were, a function that is added to a
 * family would change the codes of indexes that are there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

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

/*
 * The hash function for values of a type that a column is compared with; in the current memory context, if it
 * is not the column's own.  Raises an error if the operator family has none.
 */
FmgrInfo *
gpuds_key_hash_for(const GpudsKeyColumn *column, Oid type)
{
	FmgrInfo *hash;
	Oid proc;

	if (type == column->type)
		return column->hash;
	proc = get_opfamily_proc(column->family, type, type, GPUDS_LONG_HASH_PROC);
	if (!OidIsValid(proc))
		elog(ERROR, "operator family %u has no hash function for type %u", column->family, type);
	hash = palloc(sizeof(FmgrInfo));
	fmgr_info(proc, hash);
	return hash;
}
