/*-------------------------------------------------------------------------
 *
 * mirror_slots.c
 *	  The slots of shared mirrors, and which of them is whose.
 *
 * A slot is assigned to a file (it has a serial, and is a facet of that file, file/file.h),
 * or free, or in the hands of its applier, which is about to make it one of the two.  Who
 * detaches a mirror is its applier, until the slot is free.  A free slot holds no memory, or
 * none that is still its concern: what a device does not give back in time it gives back
 * later.
 *
 * Nobody waits to become applier while holding the directory's lock.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/shmem.h"

#include "mirror/mirror_internal.h"

/* Slots looked at for one to reuse before the best of them is taken. */
#define VICTIM_SAMPLE 64

/*
 * How often, and after how long each time, to look whether an applier, the flusher say, is done with a
 * mirror.
 */
#define APPLIER_LOOKS 500
#define APPLIER_LOOK_US 1000

StaticAssertDecl(GPUDS_FILE_MIRRORS == 1 + GPUDS_MOST_CARDS, "a file may have a mirror on each card");

typedef struct MirrorSlots
{
	pg_atomic_uint64 clock; /* moves with every load; orders last uses */
	int hand;               /* where the next look for a slot to reuse begins; under the directory's lock */
} MirrorSlots;

static MirrorSlots *shared = NULL;
static GpudsSlots *slots = NULL;
static GpudsMirror *mirrors = NULL; /* in them */

static bool give_up(uint64 serial, bool wait);
static const GpudsFacetKeeper keeper = { give_up };

/* Shared memory that mirrors need, in bytes. */
Size
gpuds_mirror_shmem_size(void)
{
	Size size = add_size(MAXALIGN(sizeof(MirrorSlots)), gpuds_slots_size(gpuds_max_mirrors));

	return add_size(size, mul_size(gpuds_max_mirrors, sizeof(GpudsMirror)));
}

/* The facet of a file's mirror of that number. */
static GpudsFacet
facet_of(int number)
{
	return (GpudsFacet) (GPUDS_FACET_MIRROR + number);
}

/* Creates or finds the slots.  The caller holds AddinShmemInitLock. */
void
gpuds_mirror_shmem_init(void)
{
	bool found;
	char *at = ShmemInitStruct("gpuds mirrors", gpuds_mirror_shmem_size(), &found);

	shared = (MirrorSlots *) at;
	at += MAXALIGN(sizeof(MirrorSlots));
	slots = (GpudsSlots *) at;
	at += gpuds_slots_size(gpuds_max_mirrors);
	mirrors = (GpudsMirror *) at;
	for (int number = 0; number < GPUDS_FILE_MIRRORS; number++)
		gpuds_file_set_keeper(facet_of(number), &keeper);
	if (found)
		return;
	pg_atomic_init_u64(&shared->clock, 1);
	shared->hand = 0;
	gpuds_slots_init(slots, gpuds_max_mirrors);
}

/*
 * The slots of shared mirrors that were ever taken, numbered from 0 on; NULL behind the last one.  Unassigned
 * ones are among them, and only for its applier does what a slot is assigned to stay as it is.
 */
GpudsMirror *
gpuds_mirror_slot(int number)
{
	return number < gpuds_slots_count(slots) ? &mirrors[number] : NULL;
}

/*
 * Taking slots and giving them up
 */

/*
 * Takes an assigned slot from its file, if nobody is applying to it.  True: the caller is its applier, and to
 * discard it after letting the lock go (see dispose).  The caller holds the directory's lock exclusively.
 */
static bool
detach(GpudsMirror *mirror)
{
	if (!gpuds_mirror_acquire(mirror, false))
		return false;
	Assert(pg_atomic_read_u64(&mirror->serial) != 0);
	/* From here on the flusher does not find it, so that no scan may rely on it any more. */
	pg_atomic_write_u64(&mirror->guard, 0);
	gpuds_memtable_detach(&mirror->attached);
	pg_atomic_write_u64(&mirror->serial, 0);
	gpuds_file_detach(&mirror->file.locator, facet_of(mirror->number));
	return true;
}

/* Makes a slot free whose applier the caller is, and ceases to be that. */
static void
set_free(GpudsMirror *mirror)
{
	gpuds_files_lock(LW_EXCLUSIVE);
	gpuds_slots_give(slots, (int) (mirror - mirrors));
	gpuds_files_unlock();
	gpuds_mirror_release(mirror);
}

/*
 * Discards a detached mirror and makes its slot free.  The caller is its applier, until the end, and does not
 * hold the directory's lock.  Raises no error.
 */
static void
dispose(GpudsMirror *mirror)
{
	(void) gpuds_mirror_discard(mirror);
	set_free(mirror);
}

static void
init_slot(int slot)
{
	gpuds_mirror_init(&mirrors[slot], GPUDS_ON_CPU, slot + 1);
}

/*
 * A slot that is free, its applier being us, or GPUDS_NO_SLOT.  The caller holds the directory's lock
 * exclusively.  A process that waited for the last mirror of a slot may just be noticing that it is gone:
 * then it is the next slot, and this one comes back.
 */
static int
take_free(void)
{
	const int slot = gpuds_slots_take(slots, init_slot);
	int next;

	if (slot == GPUDS_NO_SLOT || gpuds_mirror_acquire(&mirrors[slot], false))
		return slot;
	next = take_free();
	gpuds_slots_give(slots, slot);
	return next;
}

/*
 * An assigned slot that has not been used for long, detached, or NULL if all are busy.  Looks at some of them
 * only, going round: what was used longest ago of all is not worth a look at all.  The caller holds the
 * directory's lock exclusively.
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
			GpudsMirror *mirror = &mirrors[shared->hand];
			uint64 last_use = pg_atomic_read_u64(&mirror->last_use);

			shared->hand = (shared->hand + 1) % gpuds_max_mirrors;
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

/* A slot for a new assignment, discarded, its applier being us; NULL if all are busy.  Takes the lock. */
static GpudsMirror *
take_slot(void)
{
	GpudsMirror *victim = NULL;
	int slot;

	gpuds_files_lock(LW_EXCLUSIVE);
	slot = take_free();
	if (slot == GPUDS_NO_SLOT)
		victim = take_victim();
	gpuds_files_unlock();
	if (slot != GPUDS_NO_SLOT)
		return &mirrors[slot];
	if (victim)
		(void) gpuds_mirror_discard(victim);
	return victim;
}

/* Gives up the mirror of a serial, if it is still there and nobody is at it; false: somebody is. */
static bool
try_to_give_up(uint64 serial)
{
	GpudsMirror *mirror = &mirrors[gpuds_serial_slot(serial)];
	bool is_it;
	bool detached;

	gpuds_files_lock(LW_EXCLUSIVE);
	is_it = pg_atomic_read_u64(&mirror->serial) == serial;
	detached = is_it && detach(mirror);
	gpuds_files_unlock();
	if (detached)
		dispose(mirror);
	return detached || !is_it;
}

/* For the directory. */
static bool
give_up(uint64 serial, bool wait)
{
	bool done = try_to_give_up(serial);

	for (int i = 0; wait && !done && i < APPLIER_LOOKS; i++)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(APPLIER_LOOK_US);
		done = try_to_give_up(serial);
	}
	return done;
}

/* Gives up what an index's earlier files had, if nobody is at it. */
static void
forget_earlier_files(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);
	GpudsMirror *mirror;

	for (int i = 0; (mirror = gpuds_mirror_slot(i)) != NULL; i++)
	{
		const uint64 serial = pg_atomic_read_u64(&mirror->serial);

		/* looked at without the lock: by its serial, only this mirror is given up */
		if (serial != 0 && mirror->index_oid == RelationGetRelid(index) &&
			mirror->file.locator.dbOid == locator->dbOid &&
			!RelFileLocatorEquals(mirror->file.locator, *locator))
			(void) try_to_give_up(serial);
	}
}

/*
 * Lookups
 */

/* Sets a reference to the mirror of just this file, of that number; false: it has none. */
static bool
refer(const GpudsFile *file, int number, GpudsMirrorRef *ref)
{
	const uint64 serial = gpuds_file_facet(file, facet_of(number));

	if (serial == 0)
		return false;
	ref->mirror = &mirrors[gpuds_serial_slot(serial)];
	ref->serial = serial;
	ref->memtable = 0;
	return true;
}

/*
 * Assigns a slot, whose applier the caller is, to a file that has no mirror of that number; false: it has
 * one, or another file of its locator has something.  Takes the lock.
 */
static bool
assign(GpudsMirror *mirror, Relation index, const GpudsFile *file, int number)
{
	bool done;

	gpuds_files_lock(LW_EXCLUSIVE);
	done = gpuds_file_facet(file, facet_of(number)) == 0;
	if (done)
	{
		const uint64 serial = gpuds_file_new_serial((int) (mirror - mirrors));

		done = gpuds_file_attach(file, facet_of(number), serial);
		if (done)
		{
			pg_atomic_write_u64(&mirror->last_use, pg_atomic_read_u64(&shared->clock));
			gpuds_mirror_assign(mirror, index, file, gpuds_mirror_kind(number), number, serial);
		}
	}
	gpuds_files_unlock();
	return done;
}

/* Makes or finds the mirror of a file.  False: every slot is busy. */
static bool
create_shared(Relation index, const GpudsFile *file, int number, GpudsMirrorRef *ref)
{
	forget_earlier_files(index);
	for (;;)
	{
		GpudsMirror *mirror;

		/* the number was recycled: the file that had it is gone */
		gpuds_file_claim(file, true);
		mirror = take_slot();
		if (mirror == NULL)
			return false;
		if (assign(mirror, index, file, number))
			gpuds_mirror_release(mirror);
		else
			set_free(mirror); /* somebody else was faster */
		if (refer(file, number, ref))
			return true;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Finds an index file's mirror of a number (a temporary index has one only).  False, and ref->mirror is
 * NULL: without create if the file has none, with create if every slot is busy right now.
 *
 * Called in a transaction, without locks but those on relations.
 */
bool
gpuds_mirror_lookup(Relation index, uint64 file_id, int number, bool create, GpudsMirrorRef *ref)
{
	const GpudsFile file = { RelationLocator(index), file_id, gpuds_database_incarnation() };

	ref->mirror = NULL;
	ref->serial = 0;
	ref->database = MyDatabaseId;
	ref->index = RelationGetRelid(index);
	ref->memtable = 0;
	if (RelationUsesLocalBuffers(index))
		return gpuds_private_lookup(index, &file, create, ref);
	if (!refer(&file, number, ref))
		return create && create_shared(index, &file, number, ref);
	if (ref->mirror->index_oid != ref->index)
	{
		/* ALTER TABLE makes an index anew, and keeps the file where that will do. */
		gpuds_files_lock(LW_EXCLUSIVE);
		if (pg_atomic_read_u64(&ref->mirror->serial) == ref->serial)
			ref->mirror->index_oid = ref->index;
		gpuds_files_unlock();
	}
	return true;
}

/*
 * The shared mirror of a file of this database, of that number, whatever its file_id, or NULL.
 */
GpudsMirror *
gpuds_mirror_find(RelFileLocator locator, int number)
{
	const TransactionId incarnation = gpuds_database_incarnation();
	const GpudsFileEntry *entry = gpuds_file_entry(&locator);
	const uint64 serial = entry->file.incarnation == incarnation ? entry->facet[facet_of(number)] : 0;

	return serial == 0 ? NULL : &mirrors[gpuds_serial_slot(serial)];
}

/*
 * The mirror of a file, of any database, of that number.  False: there is none.
 */
bool
gpuds_mirror_of_file(const GpudsFile *file, int number, GpudsMirrorRef *ref)
{
	if (!refer(file, number, ref))
		return false;
	ref->database = file->locator.dbOid;
	ref->index = ref->mirror->index_oid;
	return true;
}

/*
 * Gives up all that an index's file has in memory, which is about to go or to be rebuilt.
 * Harmless if it stays after all: the next scan loads it again.
 */
void
gpuds_mirror_forget(Relation index)
{
	if (RelationUsesLocalBuffers(index))
		gpuds_private_forget(RelationGetRelid(index));
	else
		gpuds_file_forget(&RelationLocator(index));
}

/*
 * Notes that a mirror is in use.  The clock only moves with loads, so that
 * scans share the cache line of last_use.
 */
void
gpuds_mirror_touch(GpudsMirror *mirror)
{
	uint64 now = pg_atomic_read_u64(&shared->clock);

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
	pg_atomic_fetch_add_u64(&shared->clock, 1);
}
