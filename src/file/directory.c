/*-------------------------------------------------------------------------
 *
 * directory.c
 *	  Which index file has what in shared memory (see file.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "common/hashfn.h"
#include "storage/shmem.h"

#include "file/file_internal.h"

#define NCHAINS 8192 /* a power of two */

/* Files that a backend remembers; those of one hash value push each other out. */
#define NREMEMBERED 128

GpudsFacetKeeper gpuds_facet_keepers[GPUDS_FACETS];

static GpudsFileDirectory *directory = NULL;
static GpudsSlots *slots = NULL;
static GpudsFileSlot *files = NULL;
static LWLock *lock = NULL;

/* Entries, or that there are none; moves 0: nothing is remembered. */
static GpudsFileEntry remembered[NREMEMBERED];

/* Each entry has a facet, so there are no more entries than facets can be. */
static int
most_files(void)
{
	return 2 * gpuds_max_mirrors + GPUDS_SIDE_STORES;
}

/* Shared memory that the directory needs, in bytes. */
Size
gpuds_file_shmem_size(void)
{
	Size size = MAXALIGN(add_size(sizeof(GpudsFileDirectory), mul_size(NCHAINS, sizeof(GpudsFileChain))));

	size = add_size(size, gpuds_slots_size(most_files()));
	return add_size(size, mul_size(most_files(), sizeof(GpudsFileSlot)));
}

/* Creates or finds the directory.  The caller holds AddinShmemInitLock. */
void
gpuds_file_shmem_init(void)
{
	bool found;
	char *at = ShmemInitStruct("gpuds files", gpuds_file_shmem_size(), &found);

	directory = (GpudsFileDirectory *) at;
	at += MAXALIGN(sizeof(GpudsFileDirectory) + NCHAINS * sizeof(GpudsFileChain));
	slots = (GpudsSlots *) at;
	at += gpuds_slots_size(most_files());
	files = (GpudsFileSlot *) at;
	lock = &GetNamedLWLockTranche("gpuds_files")[0].lock;
	if (found)
		return;
	gpuds_slots_init(slots, most_files());
	directory->last_count = 0;
	for (int i = 0; i < NCHAINS; i++)
	{
		pg_atomic_init_u64(&directory->chain[i].moves, 1);
		directory->chain[i].first = GPUDS_NO_SLOT;
	}
}

/* Each process says who keeps a kind of facet, when it attaches to shared memory. */
void
gpuds_file_set_keeper(GpudsFacet facet, const GpudsFacetKeeper *keeper)
{
	gpuds_facet_keepers[facet] = *keeper;
}

/*
 * Takes the directory's LWLock.  Shared mode is for reading entries, exclusive mode for changing them.  The
 * order of locks is in src/README.md.
 */
void
gpuds_files_lock(LWLockMode mode)
{
	LWLockAcquire(lock, mode);
}

/* Releases the directory's lock, which the caller holds. */
void
gpuds_files_unlock(void)
{
	LWLockRelease(lock);
}

static uint32
file_hash(const RelFileLocator *locator)
{
	return murmurhash32((uint32) locator->relNumber ^ murmurhash32((uint32) locator->dbOid));
}

static GpudsFileChain *
chain_of(const RelFileLocator *locator)
{
	return &directory->chain[file_hash(locator) & (NCHAINS - 1)];
}

/* The count of moves of a file's chain (D2).  Needs no lock; what is read later, is read after it. */
uint64
gpuds_file_moves(const RelFileLocator *locator)
{
	uint64 moves = pg_atomic_read_u64(&chain_of(locator)->moves);

	pg_read_barrier();
	return moves;
}

/* Where the link to a file's slot is, or would be.  The caller holds the lock. */
static int *
find_link(const RelFileLocator *locator)
{
	int *link = &chain_of(locator)->first;

	while (*link != GPUDS_NO_SLOT && !RelFileLocatorEquals(files[*link].file.locator, *locator))
		link = &files[*link].next;
	return link;
}

/* Copies a file's entry.  The caller holds the lock. */
static void
copy_entry(const RelFileLocator *locator, GpudsFileEntry *entry)
{
	const RelFileLocator its = *locator; /* which may lie in *entry */
	const int slot = *find_link(&its);

	memset(entry, 0, sizeof(*entry));
	if (slot != GPUDS_NO_SLOT)
	{
		entry->file = files[slot].file;
		memcpy(entry->facet, files[slot].facet, sizeof(entry->facet));
	}
	entry->file.locator = its;
	entry->moves = pg_atomic_read_u64(&chain_of(&its)->moves);
}

/*
 * What a file has; without facets if it has nothing.  The answer is good until the next call.  Takes the lock
 * in shared mode, unless the caller holds it or the backend remembers the answer.
 */
const GpudsFileEntry *
gpuds_file_entry(const RelFileLocator *locator)
{
	GpudsFileEntry *entry = &remembered[file_hash(locator) % NREMEMBERED];

	if (entry->moves != gpuds_file_moves(locator) || !RelFileLocatorEquals(entry->file.locator, *locator))
	{
		const bool held = LWLockHeldByMe(lock);

		if (!held)
			LWLockAcquire(lock, LW_SHARED);
		copy_entry(locator, entry);
		if (!held)
			LWLockRelease(lock);
	}
	return entry;
}

/* The serial of a facet of just this file, or 0.  Locks as gpuds_file_entry. */
uint64
gpuds_file_facet(const GpudsFile *file, GpudsFacet facet)
{
	const GpudsFileEntry *entry = gpuds_file_entry(&file->locator);

	return gpuds_file_is_same(&entry->file, file) ? entry->facet[facet] : 0;
}

/* A serial for a facet that lies in a slot of its keeper.  The caller holds the lock exclusively. */
uint64
gpuds_file_new_serial(int slot)
{
	Assert(slot >= 0 && slot < (1 << GPUDS_SLOT_BITS));
	return ++directory->last_count << GPUDS_SLOT_BITS | (uint64) slot;
}

static void
init_file(int slot)
{
	memset(&files[slot], 0, sizeof(GpudsFileSlot));
}

static bool
has_facets(const GpudsFileSlot *file)
{
	for (int facet = 0; facet < GPUDS_FACETS; facet++)
	{
		if (file->facet[facet] != 0)
			return true;
	}
	return false;
}

/*
 * Gives a file a facet that it does not have.  False: another file of its number has something (to be given
 * up by gpuds_file_claim), and nothing is changed.  All that a finder of the facet looks at is to be in its
 * place before.  The caller holds the lock exclusively.
 */
bool
gpuds_file_attach(const GpudsFile *file, GpudsFacet facet, uint64 serial)
{
	int *link = find_link(&file->locator);

	if (*link == GPUDS_NO_SLOT)
	{
		int slot = gpuds_slots_take(slots, init_file);

		Assert(slot != GPUDS_NO_SLOT);
		files[slot].file = *file;
		files[slot].next = GPUDS_NO_SLOT;
		*link = slot;
	}
	else if (!gpuds_file_is_same(&files[*link].file, file))
		return false;
	Assert(files[*link].facet[facet] == 0);
	files[*link].facet[facet] = serial;
	pg_atomic_fetch_add_u64(&chain_of(&file->locator)->moves, 1);
	return true;
}

/* Takes a facet from the file that has it.  The caller holds the lock exclusively. */
void
gpuds_file_detach(const RelFileLocator *locator, GpudsFacet facet)
{
	int *link = find_link(locator);
	const int slot = *link;

	Assert(slot != GPUDS_NO_SLOT && files[slot].facet[facet] != 0);
	files[slot].facet[facet] = 0;
	if (!has_facets(&files[slot]))
	{
		*link = files[slot].next;
		gpuds_slots_give(slots, slot);
	}
	pg_atomic_fetch_add_u64(&chain_of(locator)->moves, 1);
}

/*
 * Goes through the entries: copies the next one from *number on, which begins at 0; false: there are no more.
 * Takes the lock in shared mode.
 */
bool
gpuds_file_next(int *number, GpudsFileEntry *entry)
{
	while (*number < gpuds_slots_count(slots))
	{
		const GpudsFileSlot *file = &files[(*number)++];
		bool found;

		LWLockAcquire(lock, LW_SHARED);
		found = has_facets(file);
		if (found)
			copy_entry(&file->file.locator, entry);
		LWLockRelease(lock);
		if (found)
			return true;
	}
	return false;
}
