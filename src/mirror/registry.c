/*-------------------------------------------------------------------------
 *
 * registry.c
 *	  Which file has which mirror: slots.
 *
 * Locking order: being applier of a mirror, then the registry lock.  Nobody
 * waits to become applier while holding the registry lock.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "mirror/mirror.h"

typedef struct RegistryKey
{
	RelFileLocator locator;
	uint32 kind;
} RegistryKey;

typedef struct RegistryEntry
{
	RegistryKey key;
	int slot;
} RegistryEntry;

StaticAssertDecl(sizeof(RegistryKey) == sizeof(RelFileLocator) + sizeof(uint32), "a key has no padding");
StaticAssertDecl(GPUDS_MAX_MIRRORS <= GPU_MAX_TREES, "a slot's number is a tree's");

typedef struct PrivateEntry
{
	RelFileLocator locator; /* hash key */
	GpudsMirror *mirror;
} PrivateEntry;

typedef struct Registry
{
	pg_atomic_uint64 clock; /* moves with every load; orders last uses */
	uint64 last_serial;     /* under the registry lock */
	GpudsMirror slot[GPUDS_MAX_MIRRORS];
} Registry;

static Registry *registry = NULL;
static HTAB *registry_hash = NULL;
static LWLock *registry_lock = NULL;

/* Mirrors of this backend's temporary indexes. */
static HTAB *private_hash = NULL;
static uint64 private_serial = 0;

/* Counts not yet added to a mirror's shared counters. */
static struct
{
	GpudsMirrorRef ref;
	uint64 scans;
	uint64 batches;
	uint64 probes;
	uint64 entries;
	GpudsDeviceWork work;
} pending;

Size
gpuds_mirror_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(Registry)), hash_estimate_size(GPUDS_MAX_MIRRORS, sizeof(RegistryEntry)));
}

static void
mirror_init(GpudsMirror *mirror, GpudsDeviceKind kind, uint64 owner)
{
	memset(mirror, 0, sizeof(GpudsMirror));
	pg_atomic_init_u64(&mirror->serial, 0);
	pg_atomic_init_u64(&mirror->readable, 0);
	pg_atomic_init_u64(&mirror->synced, 0);
	pg_atomic_init_u64(&mirror->last_use, 0);
	SpinLockInit(&mirror->mutex);
	ConditionVariableInit(&mirror->applier_left);
	pg_atomic_init_u32(&mirror->waiters, 0);
	gpuds_room_init(&mirror->room);
	for (int i = 0; i < GPUDS_NSTATS; i++)
		pg_atomic_init_u64((pg_atomic_uint64 *) &mirror->stats + i, 0);
	gpuds_device_init(&mirror->tree, kind, owner);
}

void
gpuds_mirror_shmem_init(void)
{
	bool found;
	HASHCTL info;

	registry = ShmemInitStruct("gpuds mirrors", sizeof(Registry), &found);
	if (!found)
	{
		pg_atomic_init_u64(&registry->clock, 1);
		registry->last_serial = 0;
		for (int i = 0; i < GPUDS_MAX_MIRRORS; i++)
			mirror_init(&registry->slot[i], GPUDS_ON_CPU, i + 1);
	}
	info.keysize = sizeof(RegistryKey);
	info.entrysize = sizeof(RegistryEntry);
	registry_hash = ShmemInitHash("gpuds mirror names", GPUDS_MAX_MIRRORS, GPUDS_MAX_MIRRORS, &info,
								  HASH_ELEM | HASH_BLOBS);
	registry_lock = &GetNamedLWLockTranche("gpuds_registry")[0].lock;
	gpuds_room_shmem_init();
}

/*
 * The applier has brought the mirror up to here.
 */
void
gpuds_mirror_set_position(GpudsMirror *mirror, const GpudsJournalPos *pos)
{
	SpinLockAcquire(&mirror->mutex);
	mirror->pos = *pos;
	mirror->ahead = false;
	mirror->loaded = true;
	SpinLockRelease(&mirror->mutex);
}

/*
 * How far a mirror has been brought up; false: it is not loaded.
 */
bool
gpuds_mirror_get_position(GpudsMirror *mirror, GpudsJournalPos *pos)
{
	bool loaded;

	SpinLockAcquire(&mirror->mutex);
	loaded = mirror->loaded;
	*pos = mirror->pos;
	SpinLockRelease(&mirror->mutex);
	return loaded;
}

/*
 * Throws the mirror's structure away.  The caller is the applier.  False: the
 * memory is not back yet.
 */
bool
gpuds_mirror_discard(GpudsMirror *mirror)
{
	/* Scans that still have it pinned are waited for when the tree is dropped. */
	pg_atomic_write_u64(&mirror->readable, 0);
	pg_atomic_write_u64(&mirror->synced, 0);
	SpinLockAcquire(&mirror->mutex);
	mirror->loaded = false;
	mirror->news = true;
	memset(&mirror->pos, 0, sizeof(mirror->pos));
	SpinLockRelease(&mirror->mutex);
	return gpuds_device_drop(&mirror->tree);
}

/*
 * Makes an unassigned or discarded mirror the one of a file.  The caller is
 * the applier or the only one to know the mirror.
 */
static void
assign(GpudsMirror *mirror, Relation index, uint64 file_id, GpudsDeviceKind kind, uint64 serial)
{
	mirror->tree.kind = kind;
	mirror->locator = RelationLocator(index);
	mirror->file_id = file_id;
	mirror->index_oid = RelationGetRelid(index);
	gpuds_room_init(&mirror->room);
	for (int i = 0; i < GPUDS_NSTATS; i++)
		pg_atomic_write_u64((pg_atomic_uint64 *) &mirror->stats + i, 0);
	pg_atomic_write_u64(&mirror->last_use, pg_atomic_read_u64(&registry->clock));
	pg_write_barrier();
	pg_atomic_write_u64(&mirror->serial, serial);
}

/* The entry of a file's mirror on a device.  The caller holds the registry lock. */
static RegistryEntry *
find_entry(const RelFileLocator *locator, GpudsDeviceKind kind, HASHACTION action)
{
	RegistryKey key;

	key.locator = *locator;
	key.kind = kind;
	return hash_search(registry_hash, &key, action, NULL);
}

/*
 * Takes a slot from its file.  The caller is its applier and holds the registry
 * lock exclusively.
 */
static bool
unassign(GpudsMirror *mirror)
{
	pg_atomic_write_u64(&mirror->serial, 0);
	(void) find_entry(&mirror->locator, mirror->tree.kind, HASH_REMOVE);
	return gpuds_mirror_discard(mirror);
}

static bool
lookup_private(Relation index, uint64 file_id, bool create, GpudsMirrorRef *ref)
{
	PrivateEntry *entry;
	GpudsMirror *mirror;
	bool found;

	if (private_hash == NULL)
	{
		HASHCTL info;

		info.keysize = sizeof(RelFileLocator);
		info.entrysize = sizeof(PrivateEntry);
		info.hcxt = TopMemoryContext;
		private_hash = hash_create("gpuds private mirrors", 16, &info, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(private_hash, &RelationLocator(index), HASH_FIND, NULL);
	if (entry == NULL && !create)
		return false;
	if (entry == NULL)
	{
		mirror = MemoryContextAlloc(TopMemoryContext, sizeof(GpudsMirror));
		mirror_init(mirror, GPUDS_ON_CPU_PRIVATE, ++private_serial);
		entry = hash_search(private_hash, &RelationLocator(index), HASH_ENTER, &found);
		entry->mirror = mirror;
		assign(mirror, index, file_id, GPUDS_ON_CPU_PRIVATE, private_serial);
	}
	else if (entry->mirror->file_id != file_id)
	{
		(void) gpuds_mirror_discard(entry->mirror);
		assign(entry->mirror, index, file_id, GPUDS_ON_CPU_PRIVATE, ++private_serial);
	}
	ref->mirror = entry->mirror;
	ref->serial = pg_atomic_read_u64(&entry->mirror->serial);
	return true;
}

/*
 * A slot for a new assignment, its applier being us; -1 if all are busy.  The
 * caller holds the registry lock exclusively.
 */
static int
take_slot(void)
{
	int victim = -1;
	uint64 oldest = PG_UINT64_MAX;
	bool dropped = true;

	for (int i = 0; i < GPUDS_MAX_MIRRORS; i++)
	{
		GpudsMirror *mirror = &registry->slot[i];
		uint64 last_use = pg_atomic_read_u64(&mirror->last_use);

		/* Free slots first; of those, the ones that a device is done with. */
		if (pg_atomic_read_u64(&mirror->serial) == 0)
			last_use = gpuds_device_holds(&mirror->tree) ? 1 : 0;
		if (mirror->applier == 0 && last_use < oldest)
		{
			victim = i;
			oldest = last_use;
			if (last_use == 0)
				break;
		}
	}
	if (victim < 0 || !gpuds_mirror_acquire(&registry->slot[victim], false))
		return -1;
	if (pg_atomic_read_u64(&registry->slot[victim].serial) != 0)
		dropped = unassign(&registry->slot[victim]);
	else if (gpuds_device_holds(&registry->slot[victim].tree))
		dropped = gpuds_mirror_discard(&registry->slot[victim]);
	if (!dropped)
	{
		gpuds_mirror_release(&registry->slot[victim]);
		return -1;
	}
	return victim;
}

/*
 * Gives up the mirrors that an index's earlier files had, if nobody is at
 * them.  The caller holds the registry lock exclusively.
 */
static void
forget_earlier_files(Relation index)
{
	RelFileLocator *locator = &RelationLocator(index);

	for (int i = 0; i < GPUDS_MAX_MIRRORS; i++)
	{
		GpudsMirror *mirror = &registry->slot[i];

		if (pg_atomic_read_u64(&mirror->serial) != 0 && mirror->index_oid == RelationGetRelid(index) &&
			mirror->locator.dbOid == locator->dbOid && !RelFileLocatorEquals(mirror->locator, *locator) &&
			gpuds_mirror_acquire(mirror, false))
		{
			(void) unassign(mirror);
			gpuds_mirror_release(mirror);
		}
	}
}

/* The caller holds the registry lock. */
static bool
lookup_shared(RelFileLocator *locator, uint64 file_id, GpudsDeviceKind kind, GpudsMirrorRef *ref)
{
	RegistryEntry *entry = find_entry(locator, kind, HASH_FIND);

	if (entry == NULL || registry->slot[entry->slot].file_id != file_id)
		return false;
	ref->mirror = &registry->slot[entry->slot];
	ref->serial = pg_atomic_read_u64(&ref->mirror->serial);
	return true;
}

/*
 * Finds the mirror of an index file on a kind of device (a temporary index has
 * one only).  False, and ref->mirror is NULL: without create if the file has
 * none, with create if every slot is busy right now.
 */
bool
gpuds_mirror_lookup(Relation index, uint64 file_id, GpudsDeviceKind kind, bool create, GpudsMirrorRef *ref)
{
	RegistryEntry *entry;
	bool found;
	int slot;

	ref->mirror = NULL;
	ref->serial = 0;
	if (RelationUsesLocalBuffers(index))
		return lookup_private(index, file_id, create, ref);

	LWLockAcquire(registry_lock, LW_SHARED);
	found = lookup_shared(&RelationLocator(index), file_id, kind, ref);
	LWLockRelease(registry_lock);
	if (found || !create)
		return found;

	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	if (lookup_shared(&RelationLocator(index), file_id, kind, ref))
	{
		LWLockRelease(registry_lock);
		return true;
	}
	entry = find_entry(&RelationLocator(index), kind, HASH_FIND);
	if (entry)
	{
		/* The file number was recycled; so is the slot, if nobody is at it. */
		slot = entry->slot;
		if (!gpuds_mirror_acquire(&registry->slot[slot], false))
			slot = -1;
		else
		{
			pg_atomic_write_u64(&registry->slot[slot].serial, 0);
			/* What a device does not give back in time, the next load drops. */
			(void) gpuds_mirror_discard(&registry->slot[slot]);
		}
	}
	else
	{
		forget_earlier_files(index);
		slot = take_slot();
		if (slot >= 0)
		{
			entry = find_entry(&RelationLocator(index), kind, HASH_ENTER);
			entry->slot = slot;
		}
	}
	if (slot >= 0)
	{
		ref->mirror = &registry->slot[slot];
		ref->serial = ++registry->last_serial;
		assign(ref->mirror, index, file_id, kind, ref->serial);
		gpuds_mirror_release(ref->mirror);
	}
	LWLockRelease(registry_lock);
	return slot >= 0;
}

/*
 * The shared mirror of a file on a kind of device, whatever its file_id, or NULL.
 */
GpudsMirror *
gpuds_mirror_find(RelFileLocator locator, GpudsDeviceKind kind)
{
	RegistryEntry *entry;
	GpudsMirror *mirror = NULL;

	LWLockAcquire(registry_lock, LW_SHARED);
	entry = find_entry(&locator, kind, HASH_FIND);
	if (entry)
		mirror = &registry->slot[entry->slot];
	LWLockRelease(registry_lock);
	return mirror;
}

/*
 * Gives up the mirrors of a file that is about to go.  Harmless if the file
 * stays after all: the next scan loads it again.
 */
void
gpuds_mirror_forget(RelFileLocator locator)
{
	LWLockAcquire(registry_lock, LW_EXCLUSIVE);
	for (int kind = 0; kind < GPUDS_SHARED_KINDS; kind++)
	{
		RegistryEntry *entry = find_entry(&locator, kind, HASH_FIND);

		if (entry && gpuds_mirror_acquire(&registry->slot[entry->slot], false))
		{
			GpudsMirror *mirror = &registry->slot[entry->slot];

			(void) unassign(mirror);
			gpuds_mirror_release(mirror);
		}
	}
	LWLockRelease(registry_lock);

	if (private_hash)
	{
		PrivateEntry *private = hash_search(private_hash, &locator, HASH_FIND, NULL);

		if (private)
		{
			gpuds_mirror_count_flush();
			(void) gpuds_mirror_discard(private->mirror);
			pfree(private->mirror);
			hash_search(private_hash, &locator, HASH_REMOVE, NULL);
		}
	}
}

/*
 * The shared mirrors, numbered from 0 on, whether assigned or not; NULL behind the
 * last one.
 */
GpudsMirror *
gpuds_mirror_slot(int number)
{
	return number < GPUDS_MAX_MIRRORS ? &registry->slot[number] : NULL;
}

/* A loaded private mirror of this backend other than keep, or NULL. */
GpudsMirror *
gpuds_mirror_private_loaded(GpudsMirror *keep)
{
	HASH_SEQ_STATUS status;
	PrivateEntry *entry;

	if (private_hash == NULL)
		return NULL;
	hash_seq_init(&status, private_hash);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->mirror != keep && entry->mirror->loaded)
		{
			hash_seq_term(&status);
			return entry->mirror;
		}
	}
	return NULL;
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
	gpuds_room_used(mirror);
}

/*
 * Tells the clock that a mirror was loaded.
 */
void
gpuds_mirror_tick(void)
{
	pg_atomic_fetch_add_u64(&registry->clock, 1);
}

/*
 * Counts work of a scan, and what the device did for this backend since the last
 * call, which must have been for this mirror.  Counts are kept in the backend and handed over when
 * it turns to another mirror or ends its transaction.
 */
void
gpuds_mirror_count(GpudsMirrorRef *ref, uint64 scans, uint64 batches, uint64 probes, uint64 entries)
{
	if (pending.ref.mirror != ref->mirror || pending.ref.serial != ref->serial)
	{
		gpuds_mirror_count_flush();
		pending.ref = *ref;
	}
	pending.scans += scans;
	pending.batches += batches;
	pending.probes += probes;
	pending.entries += entries;
	pending.work.small += gpuds_device_work.small;
	pending.work.small_part += gpuds_device_work.small_part;
	pending.work.launches += gpuds_device_work.launches;
	pending.work.device_ns += gpuds_device_work.device_ns;
	pending.work.bus_bytes += gpuds_device_work.bus_bytes;
	memset(&gpuds_device_work, 0, sizeof(gpuds_device_work));
}

void
gpuds_mirror_count_flush(void)
{
	GpudsMirror *mirror = pending.ref.mirror;

	if (mirror && pg_atomic_read_u64(&mirror->serial) == pending.ref.serial)
	{
		pg_atomic_fetch_add_u64(&mirror->stats.scans, pending.scans);
		pg_atomic_fetch_add_u64(&mirror->stats.batches, pending.batches);
		pg_atomic_fetch_add_u64(&mirror->stats.probes, pending.probes);
		pg_atomic_fetch_add_u64(&mirror->stats.entries, pending.entries);
		if (mirror->tree.kind == GPUDS_ON_CUDA)
		{
			pg_atomic_fetch_add_u64(&mirror->stats.small, pending.work.small);
			pg_atomic_fetch_add_u64(&mirror->stats.small_part, pending.work.small_part);
			pg_atomic_fetch_add_u64(&mirror->stats.launches, pending.work.launches);
			pg_atomic_fetch_add_u64(&mirror->stats.device_ns, pending.work.device_ns);
			pg_atomic_fetch_add_u64(&mirror->stats.bus_bytes, pending.work.bus_bytes);
		}
	}
	memset(&pending, 0, sizeof(pending));
}
