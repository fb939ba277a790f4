/*-------------------------------------------------------------------------
 *
 * registry.c
 *	  Which file has which mirror: slots.
 *
 * A slot is assigned to a file (it has a serial, and is in the chains by which
 * files and indexes are looked up), or on the free list, or in the hands of its
 * applier, which is about to put it into one of the two.  A slot is taken from its
 * file in three steps: it is detached, under the registry lock and as applier;
 * then, without the lock, its structure is discarded, which may have to wait for
 * readers or a device; then it gets on the free list, under the lock again.  So
 * no process finds a slot that is half dropped, and none waits for a drop that it
 * has not asked for.  A slot on the free list holds no memory, or none that is still
 * its concern: what a device does not give back in time it gives back later.
 *
 * Slots are initialized when they are taken for the first time: memory that was
 * never needed is never touched.
 *
 * Locking order: being applier of a mirror, then the registry lock.  Nobody
 * waits to become applier while holding the registry lock, nor for anything else.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <sys/stat.h>

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "mirror/mirror_internal.h"
#include "side/side.h"

/* Slots looked at for one to reuse before the best of them is taken. */
#define VICTIM_SAMPLE 64

/* Earlier files of an index that are forgotten at a time. */
#define MAX_EARLIER 16

#define NO_SLOT (-1)

/* How often, and after how long each time, to look whether the flusher is done with a mirror. */
#define FLUSHER_LOOKS 500
#define FLUSHER_LOOK_US 1000

typedef struct Registry
{
	pg_atomic_uint64 clock; /* moves with every load; orders last uses */
	pg_atomic_uint32 nused; /* slots that were ever taken; grows under the lock */

	/* under the registry lock */
	uint64 last_serial;
	int first_free; /* of the free list */
	int hand;       /* where the next look for a slot to reuse begins */
	GpudsMirror slot[FLEXIBLE_ARRAY_MEMBER];
} Registry;

static Registry *registry = NULL;
static LWLock *registry_lock = NULL;

/* Heads of the chains of assigned slots, in shared memory, under the registry lock. */
static int *file_chains = NULL;  /* by RelFileLocator */
static int *index_chains = NULL; /* by database and index OID */

/* A power of two. */
static uint32
nchains(void)
{
	return pg_nextpower2_32(gpuds_max_mirrors);
}

static Size
slots_size(void)
{
	return MAXALIGN(add_size(offsetof(Registry, slot), mul_size(gpuds_max_mirrors, sizeof(GpudsMirror))));
}

/* Shared memory that the registry needs, in bytes. */
Size
gpuds_mirror_shmem_size(void)
{
	return add_size(slots_size(), mul_size(nchains(), 2 * sizeof(int)));
}

/* Creates or finds the registry.  The caller holds AddinShmemInitLock. */
void
gpuds_mirror_shmem_init(void)
{
	bool found;

	registry = ShmemInitStruct("gpuds mirrors", gpuds_mirror_shmem_size(), &found);
	file_chains = (int *) ((char *) registry + slots_size());
	index_chains = file_chains + nchains();
	if (!found)
	{
		pg_atomic_init_u64(&registry->clock, 1);
		pg_atomic_init_u32(&registry->nused, 0);
		registry->last_serial = 0;
		registry->first_free = NO_SLOT;
		registry->hand = 0;
		for (uint32 i = 0; i < 2 * nchains(); i++)
			file_chains[i] = NO_SLOT;
	}
	registry_lock = &GetNamedLWLockTranche("gpuds_registry")[0].lock;
}

/*
 * The slots of the shared registry that were ever taken, numbered from 0 on; NULL
 * behind the last one.  Unassigned ones are among them, and only for its applier does
 * what a slot is assigned to stay as it is.
 */
GpudsMirror *
gpuds_mirror_slot(int number)
{
	if (number >= (int) pg_atomic_read_u32(&registry->nused))
		return NULL;
	pg_read_barrier();
	return &registry->slot[number];
}

/*
 * Chains.  The caller holds the registry lock, exclusively if he changes them.
 */

static int *
file_chain(const RelFileLocator *locator)
{
	uint32 hash = murmurhash32((uint32) locator->relNumber ^ murmurhash32((uint32) locator->dbOid));

	return &file_chains[hash & (nchains() - 1)];
}

static int *
index_chain(Oid database, Oid index)
{
	return &index_chains[murmurhash32(index ^ murmurhash32(database)) & (nchains() - 1)];
}

/* The mirror of a file on a device, whatever its file_id and its database's incarnation, or NULL. */
static GpudsMirror *
find_file(const RelFileLocator *locator, GpudsDeviceKind kind)
{
	for (int i = *file_chain(locator); i != NO_SLOT; i = registry->slot[i].next_of_file)
	{
		GpudsMirror *mirror = &registry->slot[i];

		if (mirror->tree.kind == kind && RelFileLocatorEquals(mirror->locator, *locator))
			return mirror;
	}
	return NULL;
}

static void
link_slot(GpudsMirror *mirror)
{
	int *file = file_chain(&mirror->locator);
	int *index = index_chain(mirror->locator.dbOid, mirror->index_oid);

	mirror->next_of_file = *file;
	mirror->next_of_index = *index;
	*file = *index = mirror - registry->slot;
}

static void
unlink_slot(GpudsMirror *mirror)
{
	int self = mirror - registry->slot;
	int *link;

	for (link = file_chain(&mirror->locator); *link != self; link = &registry->slot[*link].next_of_file)
		;
	*link = mirror->next_of_file;
	for (link = index_chain(mirror->locator.dbOid, mirror->index_oid); *link != self;
		 link = &registry->slot[*link].next_of_index)
		;
	*link = mirror->next_of_index;
}

/*
 * Taking slots and giving them up
 */

/*
 * Takes an assigned slot from its file, if nobody is applying to it.  True: the
 * caller is its applier, and to discard it after letting the lock go (see
 * dispose).  The caller holds the registry lock exclusively.
 */
static bool
detach(GpudsMirror *mirror)
{
	if (!gpuds_mirror_acquire(mirror, false))
		return false;
	Assert(pg_atomic_read_u64(&mirror->serial) != 0);
	/* From here on the flusher does not find it, so that no scan may rely on it any more. */
	pg_atomic_write_u64(&mirror->guard, 0);
	gpuds_memtable_leave(&mirror->joined);
	pg_atomic_write_u64(&mirror->serial, 0);
	unlink_slot(mirror);
	return true;
}

/*
 * Puts a slot on the free list.  The caller is its applier and holds the registry
 * lock exclusively.
 */
static void
put_free(GpudsMirror *mirror)
{
	mirror->next_of_file = registry->first_free;
	registry->first_free = mirror - registry->slot;
}

/*
 * Discards a detached mirror and puts its slot on the free list.  The caller is its
 * applier, until the end, and does not hold the registry lock.  Raises no error.
 */
static void
dispose(GpudsMirror *mirror)
{
	(void) gpuds_mirror_discard(mirror);
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	put_free(mirror);
	LWLockRelease(registry_lock);
	gpuds_mirror_release(mirror);
}

/* A slot of the free list, its applier being us, or NULL.  The lock is held exclusively. */
static GpudsMirror *
take_free(void)
{
	int before = NO_SLOT;

	/* A process that waited for the slot's last mirror may just be noticing: then another one. */
	for (int i = registry->first_free; i != NO_SLOT; before = i, i = registry->slot[i].next_of_file)
	{
		GpudsMirror *mirror = &registry->slot[i];

		if (!gpuds_mirror_acquire(mirror, false))
			continue;
		if (before == NO_SLOT)
			registry->first_free = mirror->next_of_file;
		else
			registry->slot[before].next_of_file = mirror->next_of_file;
		return mirror;
	}
	return NULL;
}

/* A slot that was never taken, its applier being us, or NULL.  The lock is held exclusively. */
static GpudsMirror *
take_delta(void)
{
	int n = (int) pg_atomic_read_u32(&registry->nused);
	GpudsMirror *mirror = &registry->slot[n];

	if (n == gpuds_max_mirrors)
		return NULL;
	gpuds_mirror_init(mirror, GPUDS_ON_CPU, n + 1);
	(void) gpuds_mirror_acquire(mirror, false);
	pg_write_barrier();
	pg_atomic_write_u32(&registry->nused, n + 1);
	return mirror;
}

/*
 * An assigned slot that has not been used for long, detached, or NULL if all are
 * busy.  Looks at some of them only, going round: what was used longest ago of all
 * is not worth a look at all.  The lock is held exclusively.
 */
static GpudsMirror *
take_victim(void)
{
	int looked = 0;

	while (looked < gpuds_max_mirrors)
	{
		GpudsMirror *victim = NULL;
		uint64 oldest = PG_UINT64_MAX;

		for (int i = 0; i < VICTIM_SAMPLE && looked < gpuds_max_mirrors; i++, looked++)
		{
			GpudsMirror *mirror = &registry->slot[registry->hand];
			uint64 last_use = pg_atomic_read_u64(&mirror->last_use);

			registry->hand = (registry->hand + 1) % gpuds_max_mirrors;
			if (pg_atomic_read_u64(&mirror->serial) != 0 && mirror->applier == 0 && last_use < oldest)
			{
				victim = mirror;
				oldest = last_use;
			}
		}
		if (victim && detach(victim))
			return victim;
	}
	return NULL;
}

/*
 * A slot for a new assignment, discarded, its applier being us; NULL if all are
 * busy.  The caller does not hold the registry lock.
 */
static GpudsMirror *
take_slot(void)
{
	GpudsMirror *victim = NULL;
	GpudsMirror *mirror;

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	mirror = take_free();
	if (mirror == NULL)
		mirror = take_delta();
	if (mirror == NULL)
		mirror = victim = take_victim();
	LWLockRelease(registry_lock);
	if (victim)
		(void) gpuds_mirror_discard(victim);
	return mirror;
}

/*
 * Gives up the mirrors that an index's earlier files had, if nobody is at them.
 */
static void
forget_earlier_files(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);
	GpudsMirror *earlier[MAX_EARLIER];
	int n = 0;
	int next;

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	for (int i = *index_chain(locator->dbOid, RelationGetRelid(index)); i != NO_SLOT && n < MAX_EARLIER;
		 i = next)
	{
		GpudsMirror *mirror = &registry->slot[i];

		next = mirror->next_of_index;
		if (mirror->index_oid == RelationGetRelid(index) && mirror->locator.dbOid == locator->dbOid &&
			!RelFileLocatorEquals(mirror->locator, *locator) && detach(mirror))
			earlier[n++] = mirror;
	}
	LWLockRelease(registry_lock);
	for (int i = 0; i < n; i++)
		dispose(earlier[i]);
}

/*
 * Lookups
 */

/* The mirror of just this file.  The caller holds the registry lock. */
static bool
lookup_shared(const RelFileLocator *locator, uint64 file_id, TransactionId incarnation, GpudsDeviceKind kind,
			  GpudsMirrorRef *ref)
{
	GpudsMirror *mirror = find_file(locator, kind);

	if (mirror == NULL || mirror->file_id != file_id || mirror->incarnation != incarnation)
		return false;
	ref->mirror = mirror;
	ref->serial = pg_atomic_read_u64(&mirror->serial);
	ref->memtable = 0;
	return true;
}

/*
 * Makes or finds the mirror of a file.  False: every slot is busy.
 */
static bool
create_shared(Relation index, uint64 file_id, TransactionId incarnation, GpudsDeviceKind kind,
			  GpudsMirrorRef *ref)
{
	const RelFileLocator *locator = &RelationLocator(index);

	forget_earlier_files(index);
	for (;;)
	{
		GpudsMirror *mirror = take_slot();
		GpudsMirror *former;

		if (mirror == NULL)
			return false;
		LWLockAcquire(registry_lock, LW_EXCLUSIVE);
		if (lookup_shared(locator, file_id, incarnation, kind, ref))
		{
			/* somebody else was faster */
			put_free(mirror);
			LWLockRelease(registry_lock);
			gpuds_mirror_release(mirror);
			return true;
		}

		/* the file number was recycled: the file that had it is gone */
		former = find_file(locator, kind);
		if (former == NULL || detach(former))
		{
			ref->mirror = mirror;
			ref->serial = ++registry->last_serial;
			ref->memtable = 0;
			mirror->incarnation = incarnation;
			pg_atomic_write_u64(&mirror->last_use, pg_atomic_read_u64(&registry->clock));
			gpuds_mirror_assign(mirror, index, file_id, kind, ref->serial);
			link_slot(mirror);
			LWLockRelease(registry_lock);
			gpuds_mirror_release(mirror);
			if (former)
				dispose(former);
			return true;
		}
		put_free(mirror);
		LWLockRelease(registry_lock);
		gpuds_mirror_release(mirror);

		/* somebody is at it, evicting it most likely */
		gpuds_mirror_acquire(former, true);
		gpuds_mirror_release(former);
	}
}

/*
 * The file of a reference's mirror has become another index's: ALTER TABLE makes an index anew and keeps the
 * file where that will do.
 */
static void
set_index(const GpudsMirrorRef *ref)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&ref->mirror->serial) == ref->serial)
	{
		unlink_slot(ref->mirror);
		ref->mirror->index_oid = ref->index;
		link_slot(ref->mirror);
	}
	LWLockRelease(registry_lock);
}

/*
 * Finds the mirror of an index file on a kind of device (a temporary index has
 * one only).  False, and ref->mirror is NULL: without create if the file has
 * none, with create if every slot is busy right now.
 *
 * Called in a transaction, without locks but those on relations.
 */
bool
gpuds_mirror_lookup(Relation index, uint64 file_id, GpudsDeviceKind kind, bool create, GpudsMirrorRef *ref)
{
	TransactionId incarnation = gpuds_database_incarnation();
	bool found;
	bool moved;

	ref->mirror = NULL;
	ref->serial = 0;
	ref->database = MyDatabaseId;
	ref->index = RelationGetRelid(index);
	ref->memtable = 0;
	if (RelationUsesLocalBuffers(index))
		return gpuds_private_lookup(index, file_id, create, ref);

	LWLockAcquire(registry_lock, LW_SHARED);
	found = lookup_shared(&RelationLocator(index), file_id, incarnation, kind, ref);
	moved = found && ref->mirror->index_oid != ref->index;
	LWLockRelease(registry_lock);
	if (moved)
		set_index(ref);
	if (found || !create)
		return found;
	return create_shared(index, file_id, incarnation, kind, ref);
}

/*
 * The shared mirror of a file of this database on a kind of device, whatever its
 * file_id, or NULL.
 */
GpudsMirror *
gpuds_mirror_find(RelFileLocator locator, GpudsDeviceKind kind)
{
	TransactionId incarnation = gpuds_database_incarnation();
	GpudsMirror *mirror;

	LWLockAcquire(registry_lock, LW_SHARED);
	mirror = find_file(&locator, kind);
	if (mirror && mirror->incarnation != incarnation)
		mirror = NULL;
	LWLockRelease(registry_lock);
	return mirror;
}

/*
 * The mirror of a file, of any database, on a kind of device.  False: there is none.
 */
bool
gpuds_mirror_of_file(const GpudsFile *file, GpudsDeviceKind kind, GpudsMirrorRef *ref)
{
	bool found;

	LWLockAcquire(registry_lock, LW_SHARED);
	found = lookup_shared(&file->locator, file->file_id, file->incarnation, kind, ref);
	if (found)
	{
		ref->database = file->locator.dbOid;
		ref->index = ref->mirror->index_oid;
	}
	LWLockRelease(registry_lock);
	return found;
}

/*
 * Gives up the mirror of a file on a kind of device.  Nobody uses the file any more but
 * the flusher, perhaps, which is waited for.  Others are not: a loader in a database that
 * is to be dropped has to be told first.  Who does not leave in time leaves the mirror to
 * gpuds_mirror_forget_gone.
 */
static void
forget_file(const RelFileLocator *locator, GpudsDeviceKind kind)
{
	for (int i = 0; i < FLUSHER_LOOKS; i++)
	{
		GpudsMirror *mirror;
		bool detached;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(registry_lock, LW_EXCLUSIVE);
		mirror = find_file(locator, kind);
		detached = mirror && detach(mirror);
		LWLockRelease(registry_lock);
		if (detached)
			dispose(mirror);
		if (mirror == NULL || detached)
			break;
		pg_usleep(FLUSHER_LOOK_US);
	}
}

/*
 * Gives up the mirrors of an index's file, which is about to go or to be rebuilt.
 * Harmless if it stays after all: the next scan loads it again.
 */
void
gpuds_mirror_forget(Relation index)
{
	if (RelationUsesLocalBuffers(index))
	{
		gpuds_private_forget(RelationGetRelid(index));
		return;
	}
	for (int kind = 0; kind < GPUDS_SHARED_KINDS; kind++)
		forget_file(&RelationLocator(index), kind);
}

/*
 * Gives up all mirrors of a database that is about to go.  Only to have the memory
 * back soon: a database made again does not take them for its own (database_incarnation.c).
 */
void
gpuds_mirror_forget_database(Oid database)
{
	GpudsMirror *mirror;

	for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
	{
		RelFileLocator locator;

		/* looked at without the lock, then with it */
		if (pg_atomic_read_u64(&mirror->serial) == 0 || mirror->locator.dbOid != database)
			continue;
		LWLockAcquire(registry_lock, LW_SHARED);
		locator = mirror->locator;
		LWLockRelease(registry_lock);
		if (locator.dbOid == database)
			forget_file(&locator, mirror->tree.kind);
	}
}

/* Is a file unlinked, or empty, which it is from the end of its transaction until a checkpoint unlinks it? */
static bool
is_file_gone(const RelFileLocator *locator)
{
	char path[MAXPGPATH];
	struct stat file;

	gpuds_file_path(*locator, path);
	return stat(path, &file) == 0 ? file.st_size == 0 : errno == ENOENT;
}

/*
 * Gives up the mirrors, and the side values, of files that are gone: of transactions that were rolled back,
 * of indexes that got another file and were not scanned since, and those that nobody could give up in time.
 * Others are at a mirror: it is left to the next call.  Takes the registry lock, one mirror at a time.
 */
void
gpuds_mirror_forget_gone(void)
{
	GpudsMirror *mirror;

	for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
	{
		RelFileLocator locator;
		uint64 serial;
		bool detached;

		/* looked at without the lock, then with it */
		if (pg_atomic_read_u64(&mirror->serial) == 0)
			continue;
		LWLockAcquire(registry_lock, LW_SHARED);
		serial = pg_atomic_read_u64(&mirror->serial);
		locator = mirror->locator;
		LWLockRelease(registry_lock);
		if (serial == 0 || !is_file_gone(&locator))
			continue;
		LWLockAcquire(registry_lock, LW_EXCLUSIVE);
		detached = pg_atomic_read_u64(&mirror->serial) == serial && detach(mirror);
		LWLockRelease(registry_lock);
		if (detached)
			dispose(mirror);
	}
	gpuds_side_forget_gone(is_file_gone);
}

/*
 * Notes that a mirror is in use.  The clock only moves with loads, so that
 * scans share the cache line of last_use.
 */
void
gpuds_mirror_touch(GpudsMirror *mirror)
{
	uint64 now = pg_atomic_read_u64(&registry->clock);

	if (pg_atomic_read_u64(&mirror->last_use) != now)
		pg_atomic_write_u64(&mirror->last_use, now);
	gpuds_memory_used(mirror);
}

/*
 * Tells the clock that a mirror was loaded.
 */
void
gpuds_mirror_tick(void)
{
	pg_atomic_fetch_add_u64(&registry->clock, 1);
}
