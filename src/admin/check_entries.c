/*-------------------------------------------------------------------------
 *
 * check_entries.c
 *	  gpuds_index_check's fourth part: every entry belongs to a row that has its key.
 *
 * The journal's entries are sorted by TID and looked up in the table.  An entry may find
 * one of these there:
 *
 *	- A row that the snapshot sees, perhaps behind others of a HOT chain.  The entry must
 *	  be the one that the index makes of this row.
 *	- Only rows that the snapshot does not see.  Some row of the chain must have the
 *	  entry's key.  Not every row needs to: when the index was made, the chain may have
 *	  had older members with other keys.  Expressions and the predicate must not be
 *	  evaluated for rows that no snapshot sees, because what such a row refers to may be
 *	  gone.  So the predicate is left out, and with expressions nothing is compared, nor
 *	  with a value of a lossy column that lies in the TOAST table, which is pruned by itself.
 *	- Nothing: a line pointer that is dead or unused, or no block.
 *
 * Other sessions go on meanwhile.  A row that the snapshot sees stays.  Any other row may
 * be removed by VACUUM after its entry was read, and a row with another key may get its
 * TID.  The entry's tombstone was in the journal before that, or the epoch was raised, and
 * the check starts again.  So an entry that disagrees is only suspect at first.  If no
 * tombstone of it was appended between reading it and a moment after looking at the table,
 * it was there all the time, and is wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"

#include "admin/admin.h"
#include "kernels/core/sort.h"
#include "sort/sorter.h"

/* Entries taken from the sorter at a time. */
#define CHUNK_ENTRIES 4096

/* Suspects that are collected before the journal is read for their tombstones. */
#define MAX_SUSPECTS 16384

typedef struct EntriesCheck
{
	Relation heap;
	const GpudsMirrorSource *source;
	Snapshot snapshot;
	GpudsJournalPos as_of; /* the entries are those of this position */

	/* the table */
	BlockNumber nblocks; /* as last seen */
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;

	/* the index's expressions and predicate */
	IndexInfo *info;
	EState *estate;
	ExprContext *context;
	ExprState *predicate;

	int nsuspects;
	GpudsEntry suspects[MAX_SUSPECTS]; /* tried when they are as many */
} EntriesCheck;

/*
 * An entry as another one that sorts by TID first: the TID is moved before the key.
 * It is one of two words, whatever the index's entries are.
 */
static GpudsEntry
by_tid(const GpudsEntry *entry)
{
	GpudsEntry moved;

	moved.w0 = (entry->t & ENTRY_TID_MASK) << 16 | entry->w0 >> 48;
	moved.w1 = entry->w0 << 16 | entry->w1 >> 48;
	moved.t = (entry->t & ~ENTRY_TID_MASK) | (entry->w1 & ENTRY_TID_MASK);
	return moved;
}

/* Puts the TID back to its place. */
static GpudsEntry
by_key(const GpudsEntry *moved)
{
	GpudsEntry entry;

	entry.w0 = moved->w0 << 48 | moved->w1 >> 16;
	entry.w1 = moved->w1 << 48 | (moved->t & ENTRY_TID_MASK);
	entry.t = (moved->t & ~ENTRY_TID_MASK) | moved->w0 >> 16;
	return entry;
}

/* Collects the journal's entries as of check->as_of.  False: a compaction came. */
static bool
collect(EntriesCheck *check, GpudsSorter *sorter)
{
	Relation index = check->source->index;
	GpudsEntries *stream;
	GpudsEntriesResult result;
	GpudsMetaData meta;
	GpudsEntry entry;
	bool doubtful;

	gpuds_journal_read_meta(index, &meta);
	gpuds_journal_end(index, &meta, &check->as_of);
	stream = gpuds_entries_open(index, &check->as_of);
	while ((result = gpuds_entries_next(stream, &entry, &doubtful)) == GPUDS_ENTRIES_NEXT)
	{
		GpudsEntry moved = by_tid(&entry);

		if (!doubtful)
			gpuds_sorter_add(sorter, &moved);
	}
	gpuds_entries_close(stream);
	return result == GPUDS_ENTRIES_END;
}

/*
 * Has a row a value in a lossy column that its table keeps elsewhere?  The entry could only be made if it
 * were fetched from there.
 */
static bool
is_out_of_line(const EntriesCheck *check, const Datum *values, const bool *isnull)
{
	const GpudsKeyLayout *layout = check->source->layout;

	for (int i = 0; i < layout->nkeys; i++)
	{
		if (layout->column[i].hash && !isnull[i] &&
			TupleDescAttr(RelationGetDescr(check->source->index), i)->attlen == -1 &&
			VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(values[i])))
			return true;
	}
	return false;
}

/* Would the row in the slot, if it had the entry's TID, have this entry?  visible: the snapshot sees it. */
static bool
row_has_entry(EntriesCheck *check, const GpudsEntry *entry, bool visible)
{
	Datum values[INDEX_MAX_KEYS]; /* of the index's columns */
	bool isnull[INDEX_MAX_KEYS];
	ItemPointerData tid;
	GpudsEntry own;
	MemoryContext old;

	ResetExprContext(check->context);
	check->context->ecxt_scantuple = check->slot;
	if (visible && check->predicate && !ExecQual(check->predicate, check->context))
		return false;
	FormIndexDatum(check->info, check->slot, check->estate, values, isnull);
	if (!visible && is_out_of_line(check, values, isnull))
		return true;
	gpuds_entry_tid(entry, &tid);
	old = MemoryContextSwitchTo(check->context->ecxt_per_tuple_memory);
	gpuds_key_encode(check->source->layout, values, isnull, &tid, &own);
	MemoryContextSwitchTo(old);
	return entry_equal(&own, entry);
}

/* Looks up an entry in the table. */
static bool
entry_agrees(EntriesCheck *check, const GpudsEntry *entry)
{
	ItemPointerData tid;
	bool more = false;
	bool agrees = true;

	gpuds_entry_tid(entry, &tid);
	if (ItemPointerGetBlockNumberNoCheck(&tid) >= check->nblocks)
	{
		check->nblocks = RelationGetNumberOfBlocks(check->heap);
		if (ItemPointerGetBlockNumberNoCheck(&tid) >= check->nblocks)
			return true;
	}

	if (table_index_fetch_tuple(check->fetch, &tid, check->snapshot, check->slot, &more, NULL))
		return row_has_entry(check, entry, true);
	if (check->info->ii_Expressions != NIL)
		return true;

	gpuds_entry_tid(entry, &tid);
	more = false;
	while (table_index_fetch_tuple(check->fetch, &tid, SnapshotAny, check->slot, &more, NULL))
	{
		agrees = row_has_entry(check, entry, false);
		if (agrees || !more)
			break;
	}
	return agrees;
}

pg_noreturn static void
report(EntriesCheck *check, const GpudsEntry *entry)
{
	ItemPointerData tid;

	gpuds_entry_tid(entry, &tid);
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has an entry for row (%u,%u) of table \"%s\" that is not of this row",
					RelationGetRelationName(check->source->index), ItemPointerGetBlockNumberNoCheck(&tid),
					ItemPointerGetOffsetNumberNoCheck(&tid), RelationGetRelationName(check->heap)),
			 check->predicate ? errdetail("The row has another key, or does not satisfy the predicate.")
							  : errdetail("The row has another key."),
			 errhint("Please REINDEX it.")));
}

/*
 * Acquits the suspects whose tombstones have come, and raises
 * ERRCODE_INDEX_CORRUPTED if one is left.  False: a compaction came, and nobody
 * knows.
 */
static bool
try_suspects(EntriesCheck *check)
{
	GpudsEntry *suspects = check->suspects;
	GpudsEntry *scratch;
	bool *acquitted;
	GpudsJournalReader *reader;
	GpudsJournalPage page;
	GpudsReadResult result;

	if (check->nsuspects == 0)
		return true;

	scratch = palloc(check->nsuspects * sizeof(GpudsEntry));
	sort_entries(suspects, scratch, check->nsuspects);
	pfree(scratch);
	acquitted = palloc0(check->nsuspects);

	reader = gpuds_reader_open_after(check->source->index, &check->as_of);
	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		GpudsRecordIterator record = { .page = &page };

		while (gpuds_record_next(&record))
		{
			int lo = 0;
			int hi = check->nsuspects;

			if (!(record.flags & GPUDS_RECORD_TOMBSTONE))
				continue;
			while (lo < hi)
			{
				int middle = (lo + hi) / 2;

				if (entry_less(&suspects[middle], &record.entry))
					lo = middle + 1;
				else
					hi = middle;
			}
			if (lo < check->nsuspects && entry_equal(&suspects[lo], &record.entry))
				acquitted[lo] = true;
		}
	}
	gpuds_reader_close(reader);

	if (result == GPUDS_READ_END)
	{
		for (int i = 0; i < check->nsuspects; i++)
		{
			if (!acquitted[i])
				report(check, &suspects[i]);
		}
	}
	pfree(acquitted);
	check->nsuspects = 0;
	return result == GPUDS_READ_END;
}

/* False: a compaction came, start again. */
static bool
check_once(EntriesCheck *check)
{
	GpudsSorter *sorter = gpuds_sorter_begin(2, (Size) maintenance_work_mem * 1024, GPUDS_SORTER_MOMENT);
	GpudsEntry *chunk = palloc(CHUNK_ENTRIES * sizeof(GpudsEntry));
	bool known;
	int64 n;

	check->nsuspects = 0;
	known = collect(check, sorter);
	gpuds_injection_point("check-entries-read");
	while (known && (n = gpuds_sorter_next(sorter, chunk, CHUNK_ENTRIES)) > 0)
	{
		for (int64 i = 0; known && i < n; i++)
		{
			GpudsEntry entry = by_key(&chunk[i]);

			CHECK_FOR_INTERRUPTS();
			if (entry_agrees(check, &entry))
				continue;
			check->suspects[check->nsuspects++] = entry;
			if (check->nsuspects == MAX_SUSPECTS)
				known = try_suspects(check);
		}
	}
	known = known && try_suspects(check);
	pfree(chunk);
	gpuds_sorter_end(sorter);
	return known;
}

/*
 * Checks that every entry of the journal is of a row that has its key, or of none.
 * Raises ERRCODE_INDEX_CORRUPTED for one that is not.  The snapshot is one that
 * was taken before the call, for which the index may be used, and stays registered.
 * Locks one page at a time, shared.
 */
void
gpuds_check_entries(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot)
{
	EntriesCheck *check = palloc0(sizeof(EntriesCheck));

	check->heap = heap;
	check->source = source;
	check->snapshot = snapshot;
	check->fetch = GpudsIndexFetchBegin(heap);
	check->slot = table_slot_create(heap, NULL);
	check->info = BuildIndexInfo(source->index);
	check->estate = CreateExecutorState();
	check->context = GetPerTupleExprContext(check->estate);
	check->context->ecxt_scantuple = check->slot;
	check->predicate = ExecPrepareQual(check->info->ii_Predicate, check->estate);

	while (!check_once(check))
		CHECK_FOR_INTERRUPTS();

	table_index_fetch_end(check->fetch);
	ExecDropSingleTupleTableSlot(check->slot);
	FreeExecutorState(check->estate);
	pfree(check);
}
