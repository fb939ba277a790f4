/*-------------------------------------------------------------------------
 *
 * unique_build.c
 *	  The check of a unique index that is being built.
 *
 * The build's entries come in order.  Where two or more have the same code, their rows are looked at:
 *
 *	  U5	Two rows that are not deleted and have equal values are an error.  A row whose deletion is in
 *			progress counts as not deleted, as it does with btree.
 *
 *			Without CONCURRENTLY nobody else changes the table, and core has waited for those who had.  With
 *			it, the rows are those of one snapshot.  What is inserted or updated after it is inserted into the
 *			index later, and is then checked as any other (unique_insert.c).
 *
 * Nobody gives the TID of a row that is looked at to another one: the build's lock on the table keeps VACUUM
 * out.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "index/index.h"
#include "unique/unique.h"

struct GpudsUniqueBuild
{
	Relation heap;
	Relation index;
	GpudsKeyLayout layout;
	GpudsEntry ones; /* in the bits that are no part of the key */
	bool nulls_distinct;
	GpudsUniqueKey key;
	GpudsRowKey row;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	GpudsEntry last;      /* that had a key; t is UINT64_MAX: there was none */
	GpudsKnownKeys known; /* of live rows of the last entry's code, if more than one entry has it */
	bool looking;
};

/* Begins the check; the build calls gpuds_unique_build_add with all entries in order. */
GpudsUniqueBuild *
gpuds_unique_build_begin(Relation heap, Relation index, const IndexInfo *indexInfo)
{
	GpudsUniqueBuild *build = palloc0(sizeof(GpudsUniqueBuild));

	build->heap = heap;
	build->index = index;
	build->layout = gpuds_index_info(index)->layout;
	build->ones = gpuds_key_ones_behind(&build->layout, build->layout.nkeys);
	build->nulls_distinct = !indexInfo->ii_NullsNotDistinct;
	gpuds_unique_key(index, &build->key);
	gpuds_row_key_begin(&build->row, index);
	build->fetch = GpudsIndexFetchBegin(heap);
	build->slot = table_slot_create(heap, NULL);
	build->last.t = UINT64_MAX;
	gpuds_known_keys_begin(&build->known);
	return build;
}

static bool
has_same_code(const GpudsUniqueBuild *build, const GpudsEntry *a, const GpudsEntry *b)
{
	return ((a->w0 ^ b->w0) & ~build->ones.w0) == 0 && ((a->w1 ^ b->w1) & ~build->ones.w1) == 0 &&
		   ((a->t ^ b->t) & ~build->ones.t) == 0;
}

static void
report(GpudsUniqueBuild *build)
{
	char *description = BuildIndexValueDescription(build->index, build->row.values, build->row.isnull);

	ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
					errmsg("could not create unique index \"%s\"", RelationGetRelationName(build->index)),
					description ? errdetail("Key %s is duplicated.", description)
								: errdetail("Duplicate keys exist."),
					errtableconstraint(build->heap, RelationGetRelationName(build->index))));
}

/* Looks at an entry's row; an error if it is alive and has the key of another one that is. */
static void
look_at(GpudsUniqueBuild *build, const GpudsEntry *entry)
{
	ItemPointerData tid;
	bool again = false;

	gpuds_entry_tid(entry, &tid);
	if (!table_index_fetch_tuple(build->fetch, &tid, SnapshotSelf, build->slot, &again, NULL))
		return;
	if (!gpuds_row_key_of(&build->row, build->slot))
		return;
	if (gpuds_known_keys_have(&build->known, &build->key, build->index, &build->row))
		report(build);
	gpuds_known_keys_add(&build->known, &build->key, build->index, &build->row);
}

/* Takes the next entries, which come in order.  Raises an error if a key is not unique. */
void
gpuds_unique_build_add(GpudsUniqueBuild *build, const GpudsEntry *entries, int64 n)
{
	for (int64 i = 0; i < n; i++)
	{
		const GpudsEntry *entry = &entries[i];

		if (build->last.t == UINT64_MAX || !has_same_code(build, &build->last, entry))
		{
			if (build->looking)
				gpuds_known_keys_forget(&build->known);
			build->looking = false;
		}
		else if (!build->nulls_distinct || !gpuds_key_has_null(&build->layout, entry))
		{
			CHECK_FOR_INTERRUPTS();
			if (!build->looking)
				look_at(build, &build->last);
			build->looking = true;
			look_at(build, entry);
		}
		build->last = *entry;
	}
}

/* Ends the check. */
void
gpuds_unique_build_end(GpudsUniqueBuild *build)
{
	ExecDropSingleTupleTableSlot(build->slot);
	table_index_fetch_end(build->fetch);
	gpuds_row_key_end(&build->row);
	MemoryContextDelete(build->known.context);
	pfree(build);
}
