/*-------------------------------------------------------------------------
 *
 * row_key.c
 *	  Keys of rows, and whether two of them are the same.
 *
 * Codes do not decide: several values have one code where codes are hashes, and a row that an entry led to
 * may have gone, and another one have its TID.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/index.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "unique/unique.h"

/*
 * The equality of an index's operator classes.  Allocates in the current memory context.  Raises an error if
 * a class has none.
 */
void
gpuds_unique_key(Relation index, GpudsUniqueKey *key)
{
	key->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	key->strategy = index->rd_indam->amcanorder ? BTEqualStrategyNumber : HTEqualStrategyNumber;
	for (int i = 0; i < key->nkeys; i++)
	{
		const Oid type = index->rd_opcintype[i];
		const Oid op = get_opfamily_member(index->rd_opfamily[i], type, type, key->strategy);

		if (!OidIsValid(op))
			elog(ERROR, "missing operator %d(%u,%u) in opfamily %u", key->strategy, type, type,
				 index->rd_opfamily[i]);
		fmgr_info(get_opcode(op), &key->equal[i]);
	}
}

/* Are two keys the same?  NULLs are. */
bool
gpuds_unique_same(const GpudsUniqueKey *key, Relation index, const Datum *a, const bool *a_null,
				  const Datum *b, const bool *b_null)
{
	for (int i = 0; i < key->nkeys; i++)
	{
		if (a_null[i] != b_null[i])
			return false;
		if (!a_null[i] && !DatumGetBool(FunctionCall2Coll(unconstify(FmgrInfo *, &key->equal[i]),
														  index->rd_indcollation[i], a[i], b[i])))
			return false;
	}
	return true;
}

/* Prepares for gpuds_row_key_of.  Allocates in the current memory context, until gpuds_row_key_end. */
void
gpuds_row_key_begin(GpudsRowKey *row, Relation index)
{
	row->info = BuildIndexInfo(index);
	row->estate = CreateExecutorState();
	row->predicate = ExecPrepareQual(row->info->ii_Predicate, row->estate);
}

/*
 * Computes the values that an index has of a row, which last as long as the slot has the row, or until the
 * next call.  False: it has none, because its predicate is not true of it.  Calls the functions of the
 * index's expressions, which may raise any error.
 */
bool
gpuds_row_key_of(GpudsRowKey *row, TupleTableSlot *slot)
{
	ExprContext *context = GetPerTupleExprContext(row->estate);

	ResetPerTupleExprContext(row->estate);
	context->ecxt_scantuple = slot;
	if (!ExecQual(row->predicate, context))
		return false;
	FormIndexDatum(row->info, slot, row->estate, row->values, row->isnull);
	return true;
}

/* Frees what gpuds_row_key_begin has allocated. */
void
gpuds_row_key_end(GpudsRowKey *row)
{
	FreeExecutorState(row->estate);
	pfree(row->info);
}

/* The values of a key. */
typedef struct KnownKey
{
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];
} KnownKey;

/* Begins with no keys.  What is added takes memory of the current memory context until they are forgotten. */
void
gpuds_known_keys_begin(GpudsKnownKeys *known)
{
	known->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds known keys", ALLOCSET_SMALL_SIZES);
	known->keys = NIL;
}

/* Is a row's key one of them? */
bool
gpuds_known_keys_have(const GpudsKnownKeys *known, const GpudsUniqueKey *key, Relation index,
					  const GpudsRowKey *row)
{
	ListCell *lc;

	foreach (lc, known->keys)
	{
		const KnownKey *other = lfirst(lc);

		if (gpuds_unique_same(key, index, other->values, other->isnull, row->values, row->isnull))
			return true;
	}
	return false;
}

/* Adds a row's key. */
void
gpuds_known_keys_add(GpudsKnownKeys *known, const GpudsUniqueKey *key, Relation index, const GpudsRowKey *row)
{
	const TupleDesc desc = RelationGetDescr(index);
	MemoryContext old = MemoryContextSwitchTo(known->context);
	KnownKey *add = palloc0(sizeof(KnownKey));

	for (int i = 0; i < key->nkeys; i++)
	{
		const FormData_pg_attribute *column = TupleDescAttr(desc, i);

		add->isnull[i] = row->isnull[i];
		if (!add->isnull[i])
			add->values[i] = datumCopy(row->values[i], column->attbyval, column->attlen);
	}
	known->keys = lappend(known->keys, add);
	MemoryContextSwitchTo(old);
}

/* Forgets them, and gives their memory back. */
void
gpuds_known_keys_forget(GpudsKnownKeys *known)
{
	MemoryContextReset(known->context);
	known->keys = NIL;
}
