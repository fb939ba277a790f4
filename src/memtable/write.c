/*-------------------------------------------------------------------------
 *
 * write.c
 *	  Puts into memtables what is appended to journals.
 *
 * An append goes like this: count it as begun, look for the file's memtable and its
 * newest generation; append to pages; look whether the directory has changed; insert;
 * count it as ended.  It may be to several files, each of which has a memtable of its own.
 *
 * The second look is for a memtable that is made while we append.  Either we see it, or
 * our pages had changed before it was made, and the mirror that is attached to it reads them.  Such an
 * append is over before the flusher begins a second generation, so that what it inserts
 * is in the first (gpuds_memtable_next_period).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "memtable/memtable_internal.h"

/* An append of more records than this would only fill the memtable: it is for the journal alone. */
#define MOST_RECORDS 8192

/* Operations of a generation that the flusher has left for too long. */
#define FULL_ENTRIES (16 * GPUDS_FLUSH_ENTRIES)

/* A file that is appended to. */
typedef struct AppendFile
{
	RelFileLocator locator;
	uint64 moves;           /* of the file's chain, when serial was looked up */
	uint64 serial;          /* memtable to insert into, or 0 */
	Generation *generation; /* of it */
} AppendFile;

/* The append under way. */
static struct
{
	bool active;
	bool many; /* records */
	AppendFile file[GPUDS_APPEND_FILES];
} append;

/* The memtable of a file, or 0; *moves: its chain's, as of then (file/file.h). */
static uint64
look_up(const RelFileLocator *locator, uint64 *moves)
{
	const GpudsFileEntry *entry = gpuds_file_entry(locator);

	*moves = entry->moves;
	return entry->facet[GPUDS_FACET_MEMTABLE];
}

/* What the append inserts a file's records into. */
static void
choose(AppendFile *file, uint64 serial)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);

	file->serial = serial;
	file->generation = NULL;
	if (serial != 0)
		file->generation = gpuds_memtable_newest(memtable);
}

/*
 * Operations will be missing: scans that begin from now on hear of it.  overflow: because there is no
 * room.
 */
static void
set_full(GpudsMemtable *memtable, bool overflow)
{
	if (pg_atomic_read_u32(&memtable->full) != 0)
		return;
	if (pg_atomic_exchange_u32(&memtable->full, 1) == 0 && overflow)
		pg_atomic_fetch_add_u64(&gpuds_memtables.shared->overflows, 1);
}

/* Callers append to one file, or to those of a group, of which there are no more (journal/append_group.c). */
void
gpuds_memtable_begin(const RelFileLocator *locators, int nfiles, int64 n)
{
	pg_atomic_uint64 *count;

	Assert(nfiles > 0 && nfiles <= GPUDS_APPEND_FILES);

	/* what an append left behind that somebody has caught the error of */
	gpuds_memtable_end();
	/*
	 * Odd from now on, whatever a process that had our place has left.  Pairs with the barrier of
	 * begin_period (flush.c): a process that waits for appenders sees us, or we see what it has done
	 * before.  A barrier of its own, because an exchange does not order its store before later loads on
	 * every machine.
	 */
	count = &gpuds_memtables.appenders[GpudsMyBackendIndex()].count;
	pg_atomic_write_u64(count, (pg_atomic_read_u64(count) + 1) | 1);
	pg_memory_barrier();
	append.active = true;
	append.many = n > MOST_RECORDS || gpuds_without_memtables;
	for (int i = 0; i < nfiles; i++)
	{
		append.file[i].locator = locators[i];
		choose(&append.file[i], look_up(&locators[i], &append.file[i].moves));
	}
}

/* Looks again, after pages have changed. */
static void
look_again(AppendFile *file)
{
	uint64 serial;

	pg_memory_barrier();
	if (gpuds_file_moves(&file->locator) == file->moves)
		return;
	serial = look_up(&file->locator, &file->moves);
	if (serial != file->serial)
		choose(file, serial);
}

static void
note_end(GpudsMemtable *memtable, int stripe, uint64 end, BlockNumber block)
{
	GpudsStripeEnd *stripe_end = &memtable->appended[stripe];
	uint64 before = pg_atomic_read_u64(&stripe_end->number);

	while (before < end)
	{
		if (pg_atomic_compare_exchange_u64(&stripe_end->number, &before, end))
		{
			pg_atomic_write_u32(&stripe_end->block, block);
			break;
		}
	}
}

bool
gpuds_memtable_add(int file, int stripe, uint64 number, BlockNumber block, const GpudsEntry *entry,
				   bool is_delete)
{
	AppendFile *to = &append.file[file];
	GpudsMemtable *memtable;
	uint64 before;

	look_again(to);
	if (to->serial == 0)
		return false;
	memtable = gpuds_memtable_slot(to->serial);
	if (append.many || generation_entries(to->generation) >= FULL_ENTRIES)
		set_full(memtable, !append.many);
	if (pg_atomic_read_u32(&memtable->full) != 0)
		return false;
	if (generation_insert(gpuds_memtables.arena, to->generation, entry,
						  number << 1 | (is_delete ? GPUDS_OP_DELETE : GPUDS_OP_INSERT),
						  &before) != KERNEL_OK)
	{
		set_full(memtable, true);
		return false;
	}
	note_end(memtable, stripe, number + 1, block);
	if (before == 0 || before + 1 == GPUDS_FLUSH_ENTRIES)
		gpuds_flusher_wake();
	return true;
}

/*
 * A memtable that is made later is none of our business: the mirror that is attached to it reads the pages
 * after it was made (mirror/catchup.c), hence after they changed.
 */
void
gpuds_memtable_overrule(const RelFileLocator *locator)
{
	GpudsMemtable *memtable;

	gpuds_files_lock(LW_SHARED);
	memtable = gpuds_memtable_find(locator);
	if (memtable)
		set_full(memtable, false);
	gpuds_files_unlock();
	gpuds_flusher_wake();
}

/*
 * Ends the append that gpuds_memtable_begin announced.  Does nothing if none is under way, so cleanup of
 * errors may call it.  Raises no error.
 */
void
gpuds_memtable_end(void)
{
	if (!append.active)
		return;
	append.active = false;
	(void) pg_atomic_fetch_add_u64(&gpuds_memtables.appenders[GpudsMyBackendIndex()].count, 1);
}
