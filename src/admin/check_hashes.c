/*-------------------------------------------------------------------------
 *
 * check_hashes.c
 *	  gpuds_index_check's fifth part: values that are equal have equal hashes.
 *
 * The other parts make the code of a row's value by the function that the index was made with, so they find
 * nothing if this function does not agree with the operator class's equality.  Here the values of all rows
 * are sorted by the btree operator family that has the equality, in maintenance_work_mem and temporary
 * files, and neighbours are compared.
 *
 * That is left out where values are only equal if all their bytes are, as the family says itself: then any
 * function agrees.  It cannot be done where no btree family has the equality.  And what no two rows of the
 * table show, a constant of a query may.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "admin/admin.h"
#include "reader/elements.h"

/* What is sorted of a row. */
enum
{
	SORTED_VALUE,
	SORTED_HASH,
	SORTED_TID,
	SORTED_COLUMNS
};

typedef struct HashesCheck
{
	const GpudsKeyLayout *layout;
	int column; /* of the key */
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	GpudsKeyScratch scratch;
} HashesCheck;

/* Are values of a column only equal by a btree operator family if all their bytes are? */
static bool
is_image_equality(Oid family, const GpudsKeyColumn *column)
{
	const Oid function = get_opfamily_proc(family, column->type, column->type, BTEQUALIMAGE_PROC);

	/* The family says so of character(n), too, whose values differ in blanks at the end. */
	return column->type != BPCHAROID && OidIsValid(function) &&
		   DatumGetBool(OidFunctionCall1Coll(function, column->collation, ObjectIdGetDatum(column->type)));
}

/*
 * The operator that sorts a column's values, whose type in the index is given, so that equal ones are
 * neighbours; InvalidOid: there is none, or there is nothing to be found.
 */
static Oid
find_order(const GpudsKeyColumn *column, Oid type)
{
	const Oid equal = get_opfamily_member(column->family, column->type, column->type, HTEqualStrategyNumber);
	const Oid family = OidIsValid(equal) ? gpuds_elements_family(equal, column->type, type) : InvalidOid;

	if (!OidIsValid(family) || is_image_equality(family, column))
		return InvalidOid;
	return get_opfamily_member(family, column->type, column->type, BTLessStrategyNumber);
}

/* Takes the value of a row. */
static void
take_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	HashesCheck *check = arg;
	const GpudsKeyColumn *column = &check->layout->column[check->column];
	TupleTableSlot *slot = check->slot;
	MemoryContext old;

	if (isnull[check->column])
		return;
	ExecClearTuple(slot);
	memset(slot->tts_isnull, false, SORTED_COLUMNS * sizeof(bool));
	slot->tts_values[SORTED_VALUE] = values[check->column];
	old = gpuds_key_scratch_enter(&check->scratch, check->layout);
	slot->tts_values[SORTED_HASH] = Int64GetDatum(
		(int64) gpuds_key_hash(column->hash, column->collation, values[check->column]));
	MemoryContextSwitchTo(old);
	slot->tts_values[SORTED_TID] = PointerGetDatum(tid);
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(check->sort, slot);
}

pg_noreturn static void
report(Relation heap, Relation index, int column, TupleTableSlot *a, TupleTableSlot *b)
{
	const ItemPointer one = (ItemPointer) DatumGetPointer(a->tts_values[SORTED_TID]);
	const ItemPointer other = (ItemPointer) DatumGetPointer(b->tts_values[SORTED_TID]);

	ereport(
		ERROR,
		(errcode(ERRCODE_INDEX_CORRUPTED),
		 errmsg("rows (%u,%u) and (%u,%u) of table \"%s\" have equal values with different hashes in index "
				"\"%s\"",
				ItemPointerGetBlockNumber(one), ItemPointerGetOffsetNumber(one),
				ItemPointerGetBlockNumber(other), ItemPointerGetOffsetNumber(other),
				RelationGetRelationName(heap), RelationGetRelationName(index)),
		 errdetail(
			 "The hash function of column \"%s\" does not agree with the equality of its operator class.",
			 NameStr(TupleDescAttr(RelationGetDescr(index), column)->attname)),
		 errhint("Queries by this index miss rows. Drop it, or correct the operator class and REINDEX.")));
}

/* Compares neighbours. */
static void
compare(HashesCheck *check, Relation heap, Relation index, TupleTableSlot *slot, TupleTableSlot *before)
{
	const GpudsKeyColumn *column = &check->layout->column[check->column];
	FmgrInfo equal;

	fmgr_info(get_opcode(
				  get_opfamily_member(column->family, column->type, column->type, HTEqualStrategyNumber)),
			  &equal);
	while (tuplesort_gettupleslot(check->sort, true, true, slot, NULL))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (!TTS_EMPTY(before) &&
			DatumGetInt64(before->tts_values[SORTED_HASH]) != DatumGetInt64(slot->tts_values[SORTED_HASH]))
		{
			MemoryContext old = gpuds_key_scratch_enter(&check->scratch, check->layout);
			const bool are_equal = gpuds_elements_equal(&equal, column->collation,
														before->tts_values[SORTED_VALUE],
														slot->tts_values[SORTED_VALUE]);

			MemoryContextSwitchTo(old);
			if (are_equal)
				report(heap, index, check->column, before, slot);
		}
		ExecCopySlot(before, slot);
		slot_getallattrs(before);
	}
}

/* Checks a column, whose values an operator sorts. */
static void
check_column(HashesCheck *check, Relation heap, Relation index, Snapshot snapshot, Oid less)
{
	AttrNumber columns[] = { SORTED_VALUE + 1, SORTED_HASH + 1 };
	Oid operators[] = { less, Int8LessOperator };
	Oid collations[] = { check->layout->column[check->column].collation, InvalidOid };
	bool nulls_first[] = { false, false };
	TupleDesc desc = CreateTemplateTupleDesc(SORTED_COLUMNS);
	TupleTableSlot *slot;
	TupleTableSlot *before;

	TupleDescInitEntry(desc, SORTED_VALUE + 1, "value",
					   TupleDescAttr(RelationGetDescr(index), check->column)->atttypid, -1, 0);
	TupleDescInitEntry(desc, SORTED_HASH + 1, "hash", INT8OID, -1, 0);
	TupleDescInitEntry(desc, SORTED_TID + 1, "tid", TIDOID, -1, 0);
	GpudsTupleDescFinalize(desc);
	check->slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	before = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	check->sort = tuplesort_begin_heap(desc, lengthof(columns), columns, operators, collations, nulls_first,
									   maintenance_work_mem, NULL, TUPLESORT_NONE);
	gpuds_check_scan(heap, index, snapshot, take_row, check);
	tuplesort_performsort(check->sort);
	compare(check, heap, index, slot, before);
	tuplesort_end(check->sort);
	ExecDropSingleTupleTableSlot(check->slot);
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(before);
}

/*
 * Checks that values of the rows that the snapshot sees have equal hashes if they are equal, in each
 * column whose codes are hashes.  Raises ERRCODE_INDEX_CORRUPTED for the first two that have not.  The
 * snapshot stays registered.
 */
void
gpuds_check_hashes(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot)
{
	HashesCheck check = { .layout = source->layout };

	for (; check.column < source->layout->nkeys; check.column++)
	{
		const GpudsKeyColumn *column = &source->layout->column[check.column];
		Oid less;

		if (column->kind != GPUDS_KIND_HASHED)
			continue;
		less = find_order(column, TupleDescAttr(RelationGetDescr(source->index), check.column)->atttypid);
		if (OidIsValid(less))
			check_column(&check, heap, source->index, snapshot, less);
	}
	gpuds_key_scratch_end(&check.scratch);
}
