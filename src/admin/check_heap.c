/*-------------------------------------------------------------------------
 *
 * check_heap.c
 *	  gpuds_index_check's third part: every visible row has its entry, and what is kept of its side values
 *	  is right.
 *
 * The entries that the rows should have are sorted, in maintenance_work_mem and temporary
 * files, and compared with the journal's entries in one pass over both.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "admin/admin.h"
#include "index/index.h"
#include "reader/reader.h"
#include "side/side.h"
#include "sort/sorter.h"

/* Entries taken from the sorter at a time. */
#define CHUNK_ENTRIES 4096

typedef struct HeapEntries
{
	const GpudsKeyLayout *layout;
	GpudsSorter *sorter;
	GpudsKeyScratch hashes;
	bool stored;    /* the index may have a store of side values */
	GpudsFile file; /* as it knows it */
} HeapEntries;

/* Raises an error if the store has other side values of a row than the table. */
static void
check_side_values(const HeapEntries *rows, Relation index, ItemPointer tid, const Datum *values,
				  const bool *isnull)
{
	const GpudsKeyLayout *layout = rows->layout;
	const uint8 *stored = NULL;
	uint8 side[GPUDS_SIDE_BYTES];
	GpudsSideRef ref;
	bool differ;

	gpuds_key_side_encode(layout, values, isnull, side);
	gpuds_side_enter();
	if (gpuds_side_find(&rows->file, false, &ref))
		stored = gpuds_side_get(&ref, gpuds_tid_bits(tid));
	differ = stored && memcmp(stored, side, layout->side_bytes) != 0;
	gpuds_side_leave();
	if (differ)
		ereport(
			ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg(
				 "index \"%s\" has other values of included columns in memory than row (%u,%u) of its table",
				 RelationGetRelationName(index), ItemPointerGetBlockNumber(tid),
				 ItemPointerGetOffsetNumber(tid)),
			 errhint("Please report this error. gpuds_index_evict drops what is in memory.")));
}

/* Takes the entry of a row. */
static void
take_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	HeapEntries *rows = arg;
	MemoryContext old = gpuds_key_scratch_enter(&rows->hashes, rows->layout);
	GpudsEntry entry;

	gpuds_key_encode(rows->layout, values, isnull, tid, &entry);
	MemoryContextSwitchTo(old);
	gpuds_sorter_add(rows->sorter, &entry);
	if (rows->stored)
		check_side_values(rows, index, tid, values, isnull);
}

/* Calls take with what the index would have of each row that the snapshot sees. */
void
gpuds_check_scan(Relation heap, Relation index, Snapshot snapshot, IndexBuildCallback take, void *arg)
{
	IndexInfo *info = BuildIndexInfo(index);
	TableScanDesc scan;

	/*
	 * As the first scan of CREATE INDEX CONCURRENTLY: with a snapshot of ours,
	 * and without waiting for anybody.
	 */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	scan = gpuds_begin_table_scan(heap, snapshot);
	table_index_build_scan(heap, index, info, true, false, take, arg, scan);
}

/* The journal's entries, with the one that the stream has come to. */
typedef struct Journal
{
	Relation index;
	GpudsEntries *stream;
	bool end;
	GpudsEntry entry; /* unless end */
} Journal;

/* Moves on to the next entry that is no doubtful one. */
static void
journal_next(Journal *journal)
{
	bool doubtful;

	for (;;)
	{
		if (journal->stream == NULL)
			journal->stream = gpuds_entries_open(journal->index, NULL);
		switch (gpuds_entries_next(journal->stream, &journal->entry, &doubtful))
		{
			case GPUDS_ENTRIES_NEXT:
				if (!doubtful)
					return;
				break;
			case GPUDS_ENTRIES_END:
				journal->end = true;
				return;
			case GPUDS_ENTRIES_STALE:
				/* From the beginning; what was passed is passed again. */
				gpuds_entries_close(journal->stream);
				journal->stream = NULL;
				break;
		}
	}
}

static void
look_for(Journal *journal, Relation heap, const GpudsEntry *entry)
{
	ItemPointerData tid;

	while (!journal->end && entry_less(&journal->entry, entry))
		journal_next(journal);
	if (!journal->end && entry_equal(&journal->entry, entry))
		return;

	gpuds_entry_tid(entry, &tid);
	ereport(ERROR, (errcode(ERRCODE_INDEX_CORRUPTED),
					errmsg("row (%u,%u) of table \"%s\" has no entry in index \"%s\"",
						   ItemPointerGetBlockNumber(&tid), ItemPointerGetOffsetNumber(&tid),
						   RelationGetRelationName(heap), RelationGetRelationName(journal->index)),
					errhint("Please REINDEX it.")));
}

/*
 * Checks that all rows that the snapshot sees have their entries in the journal.
 * Raises ERRCODE_INDEX_CORRUPTED for the first one, in the index's order, that
 * has not, or ERRCODE_DATA_CORRUPTED for one whose side values in memory are wrong.  The
 * caller has appended what its transaction buffered, before it took the snapshot, and
 * keeps the snapshot registered.
 */
void
gpuds_check_heap(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot)
{
	HeapEntries rows;
	Journal journal;
	GpudsEntry *chunk = palloc(CHUNK_ENTRIES * sizeof(GpudsEntry));
	int64 n;

	memset(&rows, 0, sizeof(rows));
	rows.layout = source->layout;
	rows.stored = source->layout->side_bytes > 0 && gpuds_side_file(source->index, &rows.file);
	rows.sorter = gpuds_sorter_begin(source->layout->nwords, (Size) maintenance_work_mem * 1024,
									 GPUDS_SORTER_MOMENT);
	gpuds_check_scan(heap, source->index, snapshot, take_row, &rows);

	memset(&journal, 0, sizeof(journal));
	journal.index = source->index;
	journal_next(&journal);

	while ((n = gpuds_sorter_next(rows.sorter, chunk, CHUNK_ENTRIES)) > 0)
	{
		for (int64 i = 0; i < n; i++)
			look_for(&journal, heap, &chunk[i]);
	}

	gpuds_entries_close(journal.stream);
	gpuds_sorter_end(rows.sorter);
	gpuds_key_scratch_end(&rows.hashes);
	pfree(chunk);
}
