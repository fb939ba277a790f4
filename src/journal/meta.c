/*-------------------------------------------------------------------------
 *
 * meta.c
 *	  The metapage: block 0 of every index.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/lmgr.h"

#include "journal/journal_internal.h"
#include "structure.h"

/*
 * Writes the metapage of an empty index as block 0 of a fork that has no block
 * yet.  In the init fork it is WAL-logged at once, in the main fork it is not:
 * the build logs all pages when it ends (gpuds_journal_finish_build).  stems: what follows it, in the main
 * fork only; size 0: nothing.
 */
void
gpuds_journal_create(Relation index, ForkNumber fork, uint8 structure, int nwords, int key_bits,
					 const char *stems, Size stems_size)
{
	Buffer buffer;
	Page page;
	GpudsMetaData *meta;
	uint64 file_id;

	if (!pg_strong_random(&file_id, sizeof(file_id)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random values")));

	/* a table truncated in the transaction that made it keeps its file numbers */
	gpuds_tails_forget(RelationGetRelid(index));

	buffer = gpuds_extend_fork(index, fork);
	if (BufferGetBlockNumber(buffer) != GPUDS_META_BLKNO)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));

	START_CRIT_SECTION();
	page = BufferGetPage(buffer);
	gpuds_page_init(page, GPUDS_PAGE_META, 0, 0, 0);
	meta = GpudsPageGetMeta(page);
	memset(meta, 0, sizeof(*meta));
	meta->magic = GPUDS_MAGIC;
	meta->version = GPUDS_FORMAT_VERSION;
	meta->structure = structure;
	meta->nwords = nwords;
	meta->file_id = file_id;
	meta->generation = 1;
	meta->base_head = InvalidBlockNumber;
	meta->key_bits = key_bits;
	meta->stem_pages = gpuds_stem_pages(stems_size);
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		meta->stripe[stripe].head = InvalidBlockNumber;
		meta->stripe[stripe].tail_hint = InvalidBlockNumber;
	}
	((PageHeader) page)->pd_lower += MAXALIGN(sizeof(*meta));
	MarkBufferDirty(buffer);
	if (fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();

	UnlockReleaseBuffer(buffer);
	if (fork == MAIN_FORKNUM)
	{
		gpuds_journal_write_stems(index, stems, stems_size);
		gpuds_journal_count_change(index);
	}
}

/* Is the page a metapage of another format than this library's? */
static bool
is_of_other_format(Page page)
{
	const GpudsMetaData *meta = GpudsPageGetMeta(page);

	return meta->magic == GPUDS_MAGIC && meta->version != GPUDS_FORMAT_VERSION;
}

/*
 * Raises ERRCODE_INDEX_CORRUPTED unless the buffer, which the caller has locked,
 * holds a metapage that this library can work with.  Of another format nothing is looked at
 * but magic and version, which are where they are in every format.
 */
void
gpuds_meta_check(Relation index, Buffer buffer)
{
	GpudsMetaData *meta = GpudsPageGetMeta(BufferGetPage(buffer));

	if (is_of_other_format(BufferGetPage(buffer)))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\" has format version %u, but this version of gpuds reads only %u",
						RelationGetRelationName(index), meta->version, GPUDS_FORMAT_VERSION),
				 meta->version < GPUDS_FORMAT_VERSION ? errdetail("An older version of gpuds has made it.")
													  : errdetail("A newer version of gpuds has made it."),
				 errhint("Please REINDEX it.")));
	gpuds_page_check(index, buffer, 0);
	if (((PageHeader) BufferGetPage(buffer))->pd_lower < MAXALIGN(SizeOfPageHeaderData) + GPUDS_META_LEAST)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The metapage is too short.");
	if (meta->magic != GPUDS_MAGIC)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The magic number is 0x%08X instead of 0x%08X.", meta->magic,
						GPUDS_MAGIC);
	if (gpuds_structure(meta->structure) == NULL)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The structure is of unknown kind %u.", meta->structure);
	if (meta->stem_pages > GPUDS_MOST_STEM_PAGES)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "It has %u pages of stems.", meta->stem_pages);
	if (meta->nwords < 1 || meta->nwords > 2)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The number of key words is %u.", meta->nwords);
}

/*
 * Copies the metapage's data.  Takes and releases a share lock on block 0;
 * raises ERRCODE_INDEX_CORRUPTED if it is not a metapage of this version.  What a file that was made
 * before does not have is in the hole of its page, which is all zeros.
 */
void
gpuds_journal_read_meta(Relation index, GpudsMetaData *meta)
{
	Buffer buffer;

	if (RelationGetNumberOfBlocks(index) == 0)
		gpuds_corrupted(index, GPUDS_META_BLKNO, "The index has no metapage.");

	buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	gpuds_meta_check(index, buffer);
	*meta = *GpudsPageGetMeta(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
}

/*
 * Can this library read the index's format?  Takes and releases a share lock on block 0.  Damage
 * is not looked for: a reader of the index finds it.
 */
bool
gpuds_journal_has_our_format(Relation index)
{
	Buffer buffer;
	bool ours;

	if (RelationGetNumberOfBlocks(index) == 0)
		return true;

	buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	ours = !is_of_other_format(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return ours;
}

/*
 * Copies the metapage's data as far as it can be used; false: it cannot.  Takes and releases a share lock on
 * block 0.  For the planner, which does not complain.
 */
bool
gpuds_journal_peek_meta(Relation index, GpudsMetaData *meta)
{
	Buffer buffer;
	Page page;
	bool sound;

	if (RelationGetNumberOfBlocks(index) == 0)
		return false;
	buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	*meta = *GpudsPageGetMeta(page);
	sound = !PageIsNew(page) && PageGetSpecialSize(page) == MAXALIGN(sizeof(GpudsPageOpaqueData)) &&
			meta->magic == GPUDS_MAGIC && meta->version == GPUDS_FORMAT_VERSION &&
			meta->stem_pages <= GPUDS_MOST_STEM_PAGES;
	UnlockReleaseBuffer(buffer);
	return sound;
}

/*
 * Notes in the metapage what VACUUM's bulk delete counted.  Free pages only become
 * fewer between two sweeps, so if more blocks than before are unreached some
 * of them were lost, and a sweep is due.  One generic WAL record.
 */
void
gpuds_meta_set_counts(Relation index, uint64 live, uint64 garbage, BlockNumber unreached)
{
	Buffer buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	GpudsMetaData *meta;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	gpuds_meta_check(index, buffer);
	meta = GpudsPageGetMeta(BufferGetPage(buffer));
	if (meta->live_records != live || meta->garbage != garbage || meta->unreached != unreached)
	{
		GenericXLogState *state = GenericXLogStart(index);

		meta = GpudsPageGetMeta(GenericXLogRegisterBuffer(state, buffer, 0));
		meta->live_records = live;
		meta->garbage = garbage;
		if (unreached > meta->unreached)
			meta->sweep_due = 1;
		meta->unreached = unreached;
		GenericXLogFinish(state);
	}
	UnlockReleaseBuffer(buffer);
}

static void
set_sweep(Relation index, uint16 due, BlockNumber unreached)
{
	Buffer buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	GenericXLogState *state;
	GpudsMetaData *meta;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	gpuds_meta_check(index, buffer);
	state = GenericXLogStart(index);
	meta = GpudsPageGetMeta(GenericXLogRegisterBuffer(state, buffer, 0));
	meta->sweep_due = due;
	if (!due)
		meta->unreached = unreached;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/* Makes the epoch due, or raises it.  One generic WAL record. */
static void
set_epoch(Relation index, bool due)
{
	Buffer buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	GenericXLogState *state;
	Page page;
	GpudsMetaData *meta;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	gpuds_meta_check(index, buffer);
	state = GenericXLogStart(index);
	page = GenericXLogRegisterBuffer(state, buffer, 0);
	meta = GpudsPageGetMeta(page);
	meta->epoch_due = due;
	if (!due)
		meta->epoch++;
	/* the page may be of a file that was made without it */
	((PageHeader) page)->pd_lower = (char *) meta + MAXALIGN(sizeof(*meta)) - (char *) page;
	GenericXLogFinish(state);
	UnlockReleaseBuffer(buffer);
}

/*
 * Notes that from now on pages may be orphaned: a process that is about to make such
 * pages calls it first, so that the record is before theirs.
 */
void
gpuds_meta_sweep_due(Relation index)
{
	set_sweep(index, 1, 0);
}

/* Notes that every page is reachable or free, and how many are free. */
void
gpuds_meta_swept(Relation index, BlockNumber nfree)
{
	set_sweep(index, 0, nfree);
}

/*
 * Notes that records are about to be marked dead without tombstones: a bulk delete calls it before the first
 * mark, so that the record is before that.
 */
void
gpuds_meta_epoch_due(Relation index)
{
	set_epoch(index, true);
}

/* Raises the epoch: all positions up to now are stale. */
void
gpuds_meta_next_epoch(Relation index)
{
	set_epoch(index, false);
}

/* Where the stripes begin. */
void
gpuds_journal_start(const GpudsMetaData *meta, GpudsJournalPos *start)
{
	start->epoch = meta->epoch;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		start->count[stripe] = meta->stripe[stripe].first;
		start->block[stripe] = meta->stripe[stripe].head;
	}
}

/*
 * Ends a build: hangs the base into the metapage and, if the index needs WAL, logs
 * the metapage and all pages that were not logged before.  Nobody else can see the
 * relation file yet.
 */
void
gpuds_journal_finish_build(Relation index, BlockNumber head, BlockNumber pages, uint64 records, bool logged)
{
	Buffer buffer = ReadBuffer(index, GPUDS_META_BLKNO);
	GpudsMetaData *meta;
	BlockNumber written; /* when the file was made */

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	meta = GpudsPageGetMeta(BufferGetPage(buffer));
	written = GPUDS_META_BLKNO + 1 + meta->stem_pages;
	meta->base_head = head;
	meta->base_pages = pages;
	meta->base_records = records;
	meta->live_records = records;
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);

	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0, logged ? written : RelationGetNumberOfBlocks(index), true);
}
