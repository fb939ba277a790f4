/*-------------------------------------------------------------------------
 *
 * check_heap.c
 *	  gpuds_index_check's third part: every visible row has its entry.
 *
 * The entries that the rows should have are sorted, in maintenance_work_mem and
 * in temporary files, and looked for in the journal's, both in one pass.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "admin/admin.h"
#include "journal/internal.h"
#include "journal/runs.h"
#include "kernels/sort.h"

/* Entries taken from the merge at a time. */
#define CHUNK 4096

typedef struct HeapEntries
{
	const GpudsKeyLayout *layout;
	GkEntry *entries;
	GkEntry *scratch;
	int64 n;
	int64 capacity;
	BufFile *file; /* NULL: all of them fit in memory */
	int64 spilled; /* in runs of capacity */
} HeapEntries;

/* Takes the entry of a row. */
static void
take_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	HeapEntries *rows = arg;

	if (rows->n == rows->capacity)
	{
		if (rows->file == NULL)
			rows->file = BufFileCreateTemp(false);
		gk_sort_entries(rows->entries, rows->scratch, rows->n);
		gpuds_run_write(rows->file, rows->entries, rows->n, rows->layout->nwords);
		rows->spilled += rows->n;
		rows->n = 0;
	}
	gpuds_key_encode(rows->layout, values, isnull, tid, &rows->entries[rows->n++]);
}

/* Collects the entries of all rows that the snapshot sees. */
static void
collect(HeapEntries *rows, Relation heap, Relation index, Snapshot snapshot)
{
	IndexInfo *info = BuildIndexInfo(index);
	int64 most = (int64) RelationGetNumberOfBlocks(heap) * MaxHeapTuplesPerPage;
	TableScanDesc scan;

	rows->capacity = (int64) maintenance_work_mem * 1024 / (2 * sizeof(GkEntry));
	rows->capacity = Max(Min(rows->capacity, most), CHUNK);
	rows->entries = MemoryContextAllocHuge(CurrentMemoryContext, rows->capacity * sizeof(GkEntry));
	rows->scratch = MemoryContextAllocHuge(CurrentMemoryContext, rows->capacity * sizeof(GkEntry));

	/*
	 * As the first scan of CREATE INDEX CONCURRENTLY: with a snapshot of ours,
	 * and without waiting for anybody.
	 */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, true);
	table_index_build_scan(heap, index, info, true, false, take_row, rows, scan);
	gk_sort_entries(rows->entries, rows->scratch, rows->n);
}

/* The journal's entries, with the one that the stream has come to. */
typedef struct Journal
{
	Relation index;
	GpudsEntries *stream;
	bool end;
	GkEntry entry; /* unless end */
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
look_for(Journal *journal, Relation heap, const GkEntry *entry)
{
	ItemPointerData tid;

	while (!journal->end && gk_less(&journal->entry, entry))
		journal_next(journal);
	if (!journal->end && gk_equal(&journal->entry, entry))
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
 * has not.  The caller has appended what its transaction buffered, before it
 * took the snapshot, and keeps the snapshot registered.
 */
void
gpuds_check_heap(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot)
{
	HeapEntries rows;
	Journal journal;
	GpudsMerge *merge;
	GkEntry *chunk = palloc(CHUNK * sizeof(GkEntry));
	int64 n;

	memset(&rows, 0, sizeof(rows));
	rows.layout = source->layout;
	collect(&rows, heap, source->index, snapshot);

	memset(&journal, 0, sizeof(journal));
	journal.index = source->index;
	journal_next(&journal);

	merge = gpuds_merge_begin(source->layout->nwords, (Size) maintenance_work_mem * 1024 / 4);
	if (rows.file)
		gpuds_merge_runs(merge, rows.file, rows.spilled, rows.capacity);
	gpuds_merge_array(merge, rows.entries, rows.n);
	while ((n = gpuds_merge_next(merge, chunk, CHUNK)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (int64 i = 0; i < n; i++)
			look_for(&journal, heap, &chunk[i]);
	}
	gpuds_merge_end(merge);

	gpuds_entries_close(journal.stream);
	if (rows.file)
		BufFileClose(rows.file);
	pfree(rows.entries);
	pfree(rows.scratch);
	pfree(chunk);
}
