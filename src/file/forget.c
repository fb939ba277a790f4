/*-------------------------------------------------------------------------
 *
 * forget.c
 *	  Giving up what files have in shared memory: files that go, are gone, or are
 *	  others than before.
 *
 * Mirrors go first: with them, a memtable is of no more use.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <sys/stat.h>

#include "miscadmin.h"

#include "file/file_internal.h"

/* Gives up all that an entry names; false: somebody is at some of it. */
bool
gpuds_file_give_up(const GpudsFileEntry *entry, bool wait)
{
	bool done = true;

	for (int facet = 0; facet < GPUDS_FACETS; facet++)
	{
		if (entry->facet[facet] != 0)
			done &= gpuds_facet_keepers[facet].give_up(entry->facet[facet], wait);
	}
	return done;
}

static bool
is_of_another(const GpudsFileEntry *entry, const GpudsFile *file)
{
	for (int facet = 0; facet < GPUDS_FACETS; facet++)
	{
		if (entry->facet[facet] != 0)
			return !gpuds_file_is_same(&entry->file, file);
	}
	return false;
}

/*
 * Before a file is given a facet: gives up what another file of its number has; waits, interruptibly, until
 * nobody is at that, or does not.  Where sessions do not agree on the database's incarnation, which ends
 * soon, yet another one may come before the facet does: then gpuds_file_attach says so.
 */
void
gpuds_file_claim(const GpudsFile *file, bool wait)
{
	for (;;)
	{
		const GpudsFileEntry entry = *gpuds_file_entry(&file->locator);

		if (!is_of_another(&entry, file))
			return;
		(void) gpuds_file_give_up(&entry, wait);
		if (!wait)
			return;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Gives up all that a file has, which is about to go or to be rebuilt.  Harmless if it stays after all: it is
 * made again.  Nobody uses the file any more but the flusher, perhaps, which is waited for.  Others are not:
 * a loader in a database that is to be dropped has to be told first.  What is not left in time is for
 * gpuds_files_forget_gone.
 */
void
gpuds_file_forget(const RelFileLocator *locator)
{
	const GpudsFileEntry entry = *gpuds_file_entry(locator);

	(void) gpuds_file_give_up(&entry, true);
}

/*
 * Gives up all that files of a database have, which is about to go.  Only to have the memory back soon: a
 * database that is made again does not take it for its own (incarnation.c).
 */
void
gpuds_files_forget_database(Oid database)
{
	GpudsFileEntry entry;
	int number = 0;

	while (gpuds_file_next(&number, &entry))
	{
		if (entry.file.locator.dbOid == database)
			(void) gpuds_file_give_up(&entry, true);
	}
}

/* Is a file unlinked, or empty, which it is from the end of its transaction until a checkpoint unlinks it? */
static bool
is_gone(const RelFileLocator *locator)
{
	char path[MAXPGPATH];
	struct stat file;

	gpuds_file_path(*locator, path);
	return stat(path, &file) == 0 ? file.st_size == 0 : errno == ENOENT;
}

/*
 * Gives up what files have that are gone: of transactions that were rolled back, of indexes that got another
 * file and were not scanned since, and what nobody could give up in time.  What others are at is left to the
 * next call.
 */
void
gpuds_files_forget_gone(void)
{
	GpudsFileEntry entry;
	int number = 0;

	while (gpuds_file_next(&number, &entry))
	{
		if (is_gone(&entry.file.locator))
			(void) gpuds_file_give_up(&entry, false);
	}
}
