/*-------------------------------------------------------------------------
 *
 * mark.c
 *	  VACUUM's bulk delete: finds dead TIDs, appends tombstones, marks records dead.
 *
 * It works on batches of whole pages.  For each batch the tombstones are appended first, and
 * the records are marked afterwards.  A crash between the two leaves records that the next
 * VACUUM asks about and marks again.  A mark without a tombstone would leave a mirror with
 * an entry that is never removed.
 *
 * Where there is no space for tombstones, records are marked without them, and all mirrors are loaded
 * anew: the metapage's epoch is raised, so that positions from before are stale.  It is raised after the
 * marks, because a mirror that is loaded before them has what they delete.  The note that it is due comes
 * before them, so that it is raised even if the server crashes in between.
 *
 * Pages cannot move meanwhile: compaction belongs to VACUUM, too, and VACUUM's lock on the
 * table excludes another one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/vacuum.h"
#include "miscadmin.h"

#include "journal/journal_internal.h"
#include "kernels/core/sort.h"

/* Records of a batch: their places in it must fit the 16 bits that TIDs leave in a word. */
#define BATCH_RECORDS 65536
#define BATCH_PAGES (BATCH_RECORDS / 128)

typedef struct BatchPage
{
	BlockNumber blkno;
	uint8 kind;
	uint8 stripe;
	uint64 first; /* number of its first record */
	int start;    /* place of its first record in the batch */
	int nrecords;
	bool any_dead;
} BatchPage;

typedef struct BulkDelete
{
	Relation index;
	int nwords;
	IndexBulkDeleteCallback callback;
	void *state;
	BufferAccessStrategy strategy;

	/* the batch */
	int npages;
	int nrecords;
	int64 nkeys;
	BatchPage pages[BATCH_PAGES]; /* a full batch is finished before the next page is taken */
	uint64 *keys;                 /* of live records: TID << 16 | place */
	uint64 *scratch;
	char *records;        /* copies of all records, in place order */
	bool *dead;           /* by place */
	GpudsReserve reserve; /* of pages for tombstones */
	bool without;         /* tombstones: there is no space for them */
	GpudsEntry *entries;  /* of the dead ones */

	/*
	 * Blocks of the file when we began that are in a chain, and the page of each
	 * stripe that was read last.
	 */
	BlockNumber nblocks;
	BlockNumber reached;
	BlockNumber last[GPUDS_STRIPES];

	/* counted so far */
	uint64 live;
	uint64 removed;
	uint64 garbage;
} BulkDelete;

/* Sets the dead mark on the batch's dead records of one page. */
static void
mark_page(BulkDelete *bulk, const BatchPage *batch)
{
	const int nwords = bulk->nwords;
	const int size = GpudsRecordSize(nwords);
	Buffer buffer;
	Page page;
	GpudsPageOpaque opaque;
	GpudsPageDelta delta;

	buffer = ReadBufferExtended(bulk->index, MAIN_FORKNUM, batch->blkno, RBM_NORMAL, bulk->strategy);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	gpuds_page_check(bulk->index, buffer, nwords);
	page = BufferGetPage(buffer);
	opaque = GpudsPageGetOpaque(page);
	if (opaque->kind != batch->kind || opaque->stripe != batch->stripe || opaque->first != batch->first ||
		GpudsPageCount(page, nwords) < batch->nrecords)
		gpuds_corrupted(bulk->index, batch->blkno, "The page changed while VACUUM was working on it.");

	for (int i = 0; i < batch->nrecords; i++)
	{
		GpudsRecord *record = GpudsPageRecord(page, i, nwords);

		if (bulk->dead[batch->start + i] &&
			(record->flags != 0 ||
			 memcmp(record, bulk->records + (Size) (batch->start + i) * size, size) != 0))
			gpuds_corrupted(bulk->index, batch->blkno, "A record changed while VACUUM was working on it.");
	}

	delta.length = 0;
	START_CRIT_SECTION();
	for (int i = 0; i < batch->nrecords; i++)
	{
		GpudsRecord *record = GpudsPageRecord(page, i, nwords);

		if (!bulk->dead[batch->start + i])
			continue;
		record->flags |= GPUDS_RECORD_DEAD;
		gpuds_page_delta_add(&delta, page, (char *) &record->flags - (char *) page, sizeof(record->flags));
	}
	gpuds_log_pages(bulk->index, buffer, &delta, NULL, 0);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}

/* There was no space for a tombstone: there are none from now on. */
static void
do_without_tombstones(BulkDelete *bulk)
{
	ereport(WARNING, (errcode(bulk->reserve.why_code),
					  errmsg("index \"%s\" cannot grow, VACUUM marks its entries in place",
							 RelationGetRelationName(bulk->index)),
					  errdetail("%s. Nothing is lost, but what the devices have of the index is loaded anew.",
								bulk->reserve.why),
					  errhint("Free space in the index's tablespace.")));
	gpuds_meta_epoch_due(bulk->index);
	bulk->without = true;
}

/* Appends the tombstones of the batch's dead records, unless there is no space for them. */
static void
append_tombstones(BulkDelete *bulk, int64 ndead)
{
	if (!bulk->without &&
		!gpuds_journal_append_tombstones(bulk->index, bulk->nwords, bulk->entries, ndead, &bulk->reserve))
		do_without_tombstones(bulk);
	if (!bulk->without)
		bulk->garbage += ndead;
}

/*
 * Ends what a bulk delete has begun that marked records without tombstones, be it one that did not come to
 * its end: raises the epoch, if that is due.  The order is that of an append: pages, memtable, change
 * counter.  Only VACUUM calls it.
 */
void
gpuds_journal_settle_epoch(Relation index)
{
	GpudsMetaData meta;

	gpuds_journal_read_meta(index, &meta);
	if (!meta.epoch_due)
		return;
	gpuds_injection_point("epoch-due");
	gpuds_meta_next_epoch(index);
	if (!RelationUsesLocalBuffers(index))
		gpuds_memtable_overrule(&RelationLocator(index));
	gpuds_journal_count_change(index);
}

/* Asks for the batch's TIDs, in TID order, and removes what is dead. */
static void
finish_batch(BulkDelete *bulk)
{
	int64 ndead = 0;

	sort_u64(bulk->keys, bulk->scratch, bulk->nkeys);
	memset(bulk->dead, 0, bulk->nrecords);
	for (int64 i = 0; i < bulk->nkeys; i++)
	{
		uint64 key = bulk->keys[i];
		ItemPointerData tid;

		ItemPointerSet(&tid, (BlockNumber) (key >> 32), (OffsetNumber) (key >> 16));
		if (bulk->callback(&tid, bulk->state))
		{
			bulk->dead[key & 0xFFFF] = true;
			ndead++;
		}
	}

	bulk->live += bulk->nkeys - ndead;
	bulk->removed += ndead;
	bulk->garbage += ndead;

	if (ndead > 0)
	{
		GpudsEntry *entry = bulk->entries;

		for (int p = 0; p < bulk->npages; p++)
		{
			BatchPage *page = &bulk->pages[p];

			for (int i = page->start; i < page->start + page->nrecords; i++)
			{
				if (!bulk->dead[i])
					continue;
				gpuds_record_entry((GpudsRecord *) (bulk->records + (Size) i * GpudsRecordSize(bulk->nwords)),
								   bulk->nwords, entry++);
				page->any_dead = true;
			}
		}
		append_tombstones(bulk, ndead);

		gpuds_injection_point("bulk-delete-tombstoned");

		for (int p = 0; p < bulk->npages; p++)
		{
			if (bulk->pages[p].any_dead)
			{
				gpuds_vacuum_delay();
				mark_page(bulk, &bulk->pages[p]);
			}
		}
	}

	bulk->npages = 0;
	bulk->nrecords = 0;
	bulk->nkeys = 0;
}

/* Takes a page's records into the batch. */
static void
take_page(BulkDelete *bulk, const GpudsJournalPage *page)
{
	const int nwords = bulk->nwords;
	BatchPage *batch = &bulk->pages[bulk->npages++];
	GpudsRecordIterator record = { .page = page };
	int place = bulk->nrecords;

	batch->blkno = page->blkno;
	batch->kind = page->kind;
	batch->stripe = page->stripe;
	batch->first = page->first;
	batch->start = place;
	batch->nrecords = page->nrecords;
	batch->any_dead = false;
	memcpy(bulk->records + (Size) place * GpudsRecordSize(nwords), page->records,
		   page->nrecords * GpudsRecordSize(nwords));

	for (; gpuds_record_next(&record); place++)
	{
		if (record.flags == 0)
			bulk->keys[bulk->nkeys++] = (record.entry.t & ENTRY_TID_MASK) << 16 | place;
		else
			bulk->garbage++;
	}
	bulk->nrecords = place;
}

/* Notes that a page is in a chain. */
static void
reach(BulkDelete *bulk, BlockNumber blkno)
{
	if (blkno < bulk->nblocks)
		bulk->reached++;
}

/*
 * Bulk delete as indexam.sgml has it: calls the callback for every entry that
 * was in the journal when the call began, once for each, and removes those that
 * it says are dead.  When it returns the tombstones of all of them are in the
 * journal, or all positions from before are stale.  A callback that never says so just gets to see every TID.
 *
 * Fills in num_pages, num_index_tuples and adds to tuples_removed; notes the
 * counts in the metapage.  Locks one page at a time.
 */
void
gpuds_journal_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, int nwords,
						  IndexBulkDeleteCallback callback, void *state)
{
	Relation index = info->index;
	BulkDelete *bulk = palloc0(sizeof(BulkDelete));
	GpudsJournalReader *reader;
	GpudsJournalPos end;
	GpudsJournalPage page;
	GpudsReadResult result;

	gpuds_journal_bulk_delete_begins(index);
	bulk->index = index;
	bulk->nwords = nwords;
	bulk->callback = callback;
	bulk->state = state;
	bulk->strategy = info->strategy;
	bulk->keys = palloc(BATCH_RECORDS * sizeof(uint64));
	bulk->scratch = palloc(BATCH_RECORDS * sizeof(uint64));
	bulk->records = palloc((Size) BATCH_RECORDS * GpudsRecordSize(nwords));
	bulk->dead = palloc(BATCH_RECORDS);
	bulk->entries = palloc(BATCH_RECORDS * sizeof(GpudsEntry));
	gpuds_reserve_init(&bulk->reserve);

	/*
	 * The length first: a process that has extended the file by then holds the metapage
	 * or a tail until the block is linked, so by the time that we have seen where
	 * the stripes end it is in a chain, or lost.
	 */
	bulk->nblocks = RelationGetNumberOfBlocks(index);
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		bulk->last[stripe] = InvalidBlockNumber;
	reader = gpuds_reader_open(index);
	gpuds_reader_set_strategy(reader, info->strategy);
	if (gpuds_reader_meta(reader)->nwords != nwords)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The index has %u key words, its definition %d.",
						gpuds_reader_meta(reader)->nwords, nwords);
	gpuds_journal_end(index, gpuds_reader_meta(reader), &end);
	gpuds_reader_stop_at(reader, &end);

	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		gpuds_vacuum_delay();
		if (bulk->npages == BATCH_PAGES || bulk->nrecords + page.nrecords > BATCH_RECORDS)
			finish_batch(bulk);
		take_page(bulk, &page);
		reach(bulk, page.blkno);
		if (page.kind == GPUDS_PAGE_STRIPE)
			bulk->last[page.stripe] = page.blkno;
	}
	if (result == GPUDS_READ_STALE)
		elog(ERROR, "index \"%s\" was compacted during VACUUM", RelationGetRelationName(index));
	gpuds_reader_close(reader);
	finish_batch(bulk);
	gpuds_journal_settle_epoch(index);
	gpuds_reserve_release(index, &bulk->reserve);

	/* an empty tail is a page of its stripe, too */
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		if (end.block[stripe] != InvalidBlockNumber && end.block[stripe] != bulk->last[stripe])
			reach(bulk, end.block[stripe]);
	}

	gpuds_journal_count_bulk_delete(index);
	if (!RelationUsesLocalBuffers(index))
		gpuds_memtable_bulk_deleted(&RelationLocator(index));
	gpuds_injection_point("bulk-delete-done");

	stats->num_pages = RelationGetNumberOfBlocks(index);
	stats->estimated_count = false;
	stats->num_index_tuples = bulk->live;
	stats->tuples_removed += bulk->removed;
	gpuds_meta_set_counts(index, bulk->live, bulk->garbage, bulk->nblocks - 1 - bulk->reached);

	pfree(bulk->keys);
	pfree(bulk->scratch);
	pfree(bulk->records);
	pfree(bulk->dead);
	pfree(bulk->entries);
	pfree(bulk);
}
