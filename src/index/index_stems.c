/*-------------------------------------------------------------------------
 *
 * index_stems.c
 *	  The stems of an index's texts (key/stems.h), as a backend has read them from its file.
 *
 * They are kept by the file's number: a file never changes its stems.  Layouts refer to them, and copies of
 * layouts live as long as the statements that have them.  So nothing goes before the end of a transaction,
 * and then all goes if it has become too much.  What outlives a transaction remembers in which age it was
 * made.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xact.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "index/index.h"
#include "index/index_stems.h"

/* Bytes of stems that are kept from one transaction to the next. */
#define MOST_BYTES (8 * 1024 * 1024)

typedef struct FileStems
{
	uint64 file_id;
	const GpudsStems *stems[GPUDS_KEY_MAX_COLUMNS];
} FileStems;

static MemoryContext kept; /* all of them; NULL: there are none */
static HTAB *files;        /* in it */
static uint64 age = 1;

/* The age that layouts with stems are of: those of another one have lost theirs. */
uint64
gpuds_index_stems_age(void)
{
	return age;
}

/* At the end of a transaction. */
static void
end_of_transaction(XactEvent event, void *arg)
{
	if ((event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE) ||
		kept == NULL || MemoryContextMemAllocated(kept, true) <= MOST_BYTES)
		return;
	MemoryContextDelete(kept);
	kept = NULL;
	files = NULL;
	age++;
}

/* Sees to it that there is a place for stems. */
static void
prepare(void)
{
	static bool registered = false;
	HASHCTL control = { .keysize = sizeof(uint64), .entrysize = sizeof(FileStems) };

	if (!registered)
		RegisterXactCallback(end_of_transaction, NULL);
	registered = true;
	if (files)
		return;
	if (kept == NULL)
		kept = AllocSetContextCreate(TopMemoryContext, "gpuds stems", ALLOCSET_DEFAULT_SIZES);
	control.hcxt = kept;
	files = hash_create("gpuds stems", 16, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Reads the stems of a file; false: they are damaged. */
static bool
read_stems(Relation index, const GpudsKeyLayout *layout, const GpudsMetaData *meta, FileStems *stems)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds stems of an index",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	Size size;
	char *stored = gpuds_journal_read_stems(index, meta, &size);
	bool sound;

	MemoryContextSwitchTo(old);
	sound = stored && gpuds_stems_load(layout, stored, size, context, stems->stems);
	if (sound)
	{
		pfree(stored);
		MemoryContextSetParent(context, kept);
	}
	else
		MemoryContextDelete(context);
	return sound;
}

/*
 * Gives a layout the stems of its index, whose metapage has been read; false: they are damaged.  They are
 * good until the transaction ends.
 */
bool
gpuds_index_set_stems(Relation index, const GpudsMetaData *meta, GpudsKeyLayout *layout)
{
	static const GpudsStems *const none[GPUDS_KEY_MAX_COLUMNS] = {
		&gpuds_no_stems, &gpuds_no_stems, &gpuds_no_stems, &gpuds_no_stems,
		&gpuds_no_stems, &gpuds_no_stems, &gpuds_no_stems, &gpuds_no_stems,
	};
	FileStems read = { .file_id = meta->file_id };
	FileStems *stems;

	if (meta->stem_pages == 0)
	{
		gpuds_key_set_stems(layout, none);
		return true;
	}
	prepare();
	stems = hash_search(files, &meta->file_id, HASH_FIND, NULL);
	if (stems == NULL)
	{
		if (!read_stems(index, layout, meta, &read))
			return false;
		stems = hash_search(files, &meta->file_id, HASH_ENTER, NULL);
		*stems = read;
	}
	gpuds_key_set_stems(layout, stems->stems);
	return true;
}
