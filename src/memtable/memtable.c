/*-------------------------------------------------------------------------
 *
 * memtable.c
 *	  Memtables come and go, and their memory.
 *
 * A memtable is a facet of its file (file/file.h), or retired, or its slot is free.  A
 * memtable that is of no more use is retired: it leaves the directory, and the flusher
 * frees it when nobody inserts into it or reads it any more.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"

GpudsMemtables gpuds_memtables;

static bool give_up(uint64 serial, bool wait);
static const GpudsFacetKeeper keeper = { give_up };

/* Room for the arena's header, at least. */
static size_t
arena_bytes(void)
{
	return Max((size_t) gpuds_memtable_memory_mb * 1024 * 1024, ARENA_CHUNK_BYTES);
}

/* Shared memory that memtables need, in bytes. */
Size
gpuds_memtable_shmem_size(void)
{
	Size size = add_size(arena_bytes(), ARENA_CHUNK_BYTES); /* to align it */

	size = add_size(size, mul_size(MaxBackends, sizeof(GpudsAppender) + sizeof(PinSlot)));
	size = add_size(size, gpuds_slots_size(gpuds_max_mirrors));
	size = add_size(size, PG_CACHE_LINE_SIZE); /* to align the slots */
	size = add_size(size, mul_size(gpuds_max_mirrors, sizeof(GpudsMemtable)));
	return add_size(size, MAXALIGN(sizeof(GpudsMemtableShared)));
}

static void
init_shared(void)
{
	GpudsMemtables *all = &gpuds_memtables;

	arena_init(all->arena, arena_bytes());
	memset(all->pins, 0, MaxBackends * sizeof(PinSlot));
	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u64(&all->appenders[i].count, 0);
	gpuds_slots_init(all->slots, gpuds_max_mirrors);
	all->shared->flusher = NULL;
	pg_atomic_init_u64(&all->shared->flushed, 0);
	pg_atomic_init_u64(&all->shared->overflows, 0);
	pg_atomic_init_u64(&all->shared->period, 0);
}

/* Creates or finds the memtables.  The caller holds AddinShmemInitLock. */
void
gpuds_memtable_shmem_init(void)
{
	GpudsMemtables *all = &gpuds_memtables;
	bool found;
	char *at = ShmemInitStruct("gpuds memtables", gpuds_memtable_shmem_size(), &found);

	at = (char *) TYPEALIGN(ARENA_CHUNK_BYTES, at);
	all->arena = (Arena *) at;
	at += arena_bytes();
	all->pins = (PinSlot *) at;
	at += MaxBackends * sizeof(PinSlot);
	all->appenders = (GpudsAppender *) at;
	at += MaxBackends * sizeof(GpudsAppender);
	all->slots = (GpudsSlots *) at;
	at += gpuds_slots_size(gpuds_max_mirrors);
	all->shared = (GpudsMemtableShared *) at;
	at += MAXALIGN(sizeof(GpudsMemtableShared));
	all->memtable = (GpudsMemtable *) CACHELINEALIGN(at);
	gpuds_file_set_keeper(GPUDS_FACET_MEMTABLE, &keeper);
	if (!found)
		init_shared();
}

/*
 * The first grace period that begins after this: when it is over, every append is over
 * that had begun before the call.
 */
uint64
gpuds_memtable_next_period(void)
{
	pg_memory_barrier();
	return pg_atomic_read_u64(&gpuds_memtables.shared->period) + 1;
}

/* The memtable of a file's number, or NULL.  The caller holds the directory's lock. */
GpudsMemtable *
gpuds_memtable_find(const RelFileLocator *locator)
{
	const uint64 serial = gpuds_file_entry(locator)->facet[GPUDS_FACET_MEMTABLE];

	return serial == 0 ? NULL : gpuds_memtable_slot(serial);
}

/* The slot of a memtable, which may be another one's by now. */
GpudsMemtable *
gpuds_memtable_slot(uint64 serial)
{
	return &gpuds_memtables.memtable[gpuds_serial_slot(serial)];
}

static void
init_slot(int slot)
{
	GpudsMemtable *memtable = &gpuds_memtables.memtable[slot];

	memset(memtable, 0, sizeof(*memtable));
	pg_atomic_init_u64(&memtable->serial, 0);
	pg_atomic_init_u64(&memtable->newest, 0);
	pg_atomic_init_u64(&memtable->oldest, 1);
	pg_atomic_init_u32(&memtable->full, 0);
	pg_atomic_init_u32(&memtable->left, 0);
	pg_atomic_init_u64(&memtable->deletes, 0);
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		pg_atomic_init_u64(&memtable->appended[stripe].number, 0);
		pg_atomic_init_u32(&memtable->appended[stripe].block, InvalidBlockNumber);
	}
	memtable->version = 1;
}

void
gpuds_flusher_wake(void)
{
	Latch *latch;

	/* Pairs with the flusher's, which says that it is there, resets its latch and looks for work. */
	pg_memory_barrier();
	latch = gpuds_memtables.shared->flusher;
	if (latch)
		SetLatch(latch);
}

/*
 * Makes a slot's memtable, one of a file; false: no memory, or another file of the number has something.  The
 * caller holds the directory's lock exclusively.
 */
static bool
make(int slot, const GpudsFile *file)
{
	GpudsMemtable *memtable = &gpuds_memtables.memtable[slot];
	const uint64 serial = gpuds_file_new_serial(slot);
	uint64 number = pg_atomic_read_u64(&memtable->newest) + 1;

	if (generation_begin(gpuds_memtables.arena, gpuds_memtable_generation(memtable, number)) != KERNEL_OK)
		return false;
	memtable->file = *file;
	pg_atomic_write_u64(&memtable->newest, number);
	pg_atomic_write_u64(&memtable->oldest, number);
	pg_atomic_write_u32(&memtable->full, 0);
	/* the flusher looks whether a mirror is attached at all */
	pg_atomic_write_u32(&memtable->left, 1);
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		pg_atomic_write_u64(&memtable->appended[stripe].number, 0);
		pg_atomic_write_u32(&memtable->appended[stripe].block, InvalidBlockNumber);
	}
	memtable->leaving = memtable->retired = false;
	memtable->begun = GetCurrentTimestamp();
	pg_write_barrier();
	pg_atomic_write_u64(&memtable->serial, serial);
	/* a full barrier (D2): later appenders see it, what was appended before is in the pages */
	if (!gpuds_file_attach(file, GPUDS_FACET_MEMTABLE, serial))
	{
		pg_atomic_write_u64(&memtable->serial, 0);
		generation_drop(gpuds_memtables.arena, gpuds_memtable_generation(memtable, number));
		return false;
	}
	memtable->period = gpuds_memtable_next_period();
	gpuds_flusher_wake();
	return true;
}

/*
 * Takes a memtable out of the directory.  The caller holds its lock exclusively.
 */
void
gpuds_memtable_retire(GpudsMemtable *memtable)
{
	pg_atomic_write_u64(&memtable->serial, 0);
	gpuds_file_detach(&memtable->file.locator, GPUDS_FACET_MEMTABLE);
	memtable->leaves_at = __atomic_add_fetch(&memtable->version, 1, __ATOMIC_SEQ_CST);
	memtable->period = gpuds_memtable_next_period();
	memtable->retired = true;
	gpuds_flusher_wake();
}

/* Gives a retired memtable's memory and slot back; nobody uses it.  Takes the lock. */
void
gpuds_memtable_free(GpudsMemtable *memtable)
{
	for (int i = 0; i < MEMTABLE_GENERATIONS; i++)
	{
		if (memtable->generation[i].chunks != 0)
			generation_drop(gpuds_memtables.arena, &memtable->generation[i]);
	}
	gpuds_files_lock(LW_EXCLUSIVE);
	memtable->retired = false;
	gpuds_slots_give(gpuds_memtables.slots, (int) (memtable - gpuds_memtables.memtable));
	gpuds_files_unlock();
}

/* For the directory: retires a memtable. */
static bool
give_up(uint64 serial, bool wait)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);

	gpuds_files_lock(LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&memtable->serial) == serial)
		gpuds_memtable_retire(memtable);
	gpuds_files_unlock();
	return true;
}

/* A new memtable of a file that has none; 0: there is no memory.  As make. */
static uint64
make_any(const GpudsFile *file)
{
	int slot = gpuds_slots_take(gpuds_memtables.slots, init_slot);

	if (slot == GPUDS_NO_SLOT)
		return 0;
	if (make(slot, file))
		return pg_atomic_read_u64(&gpuds_memtables.memtable[slot].serial);
	gpuds_slots_give(gpuds_memtables.slots, slot);
	pg_atomic_fetch_add_u64(&gpuds_memtables.shared->overflows, 1);
	return 0;
}

uint64
gpuds_memtable_open(const GpudsFile *file)
{
	const GpudsFileEntry *entry;
	uint64 serial;

	if (gpuds_memtable_memory_mb == 0)
		return 0;
	gpuds_files_lock(LW_EXCLUSIVE);
	entry = gpuds_file_entry(&file->locator);
	serial = entry->facet[GPUDS_FACET_MEMTABLE];
	if (serial != 0 && (!gpuds_file_is_same(&entry->file, file) ||
						pg_atomic_read_u32(&gpuds_memtable_slot(serial)->full) != 0))
	{
		gpuds_memtable_retire(gpuds_memtable_slot(serial));
		serial = 0;
	}
	if (serial == 0 && gpuds_memtables.shared->flusher != NULL)
		serial = make_any(file);
	gpuds_files_unlock();
	return serial;
}

bool
gpuds_memtable_is_complete(uint64 serial)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);

	return serial != 0 && pg_atomic_read_u64(&memtable->serial) == serial &&
		   pg_atomic_read_u32(&memtable->full) == 0;
}

/* Operations in a memtable; the caller holds the lock. */
static int64
count_operations(GpudsMemtable *memtable)
{
	uint64 newest = pg_atomic_read_u64(&memtable->newest);
	int64 operations = 0;

	for (uint64 number = pg_atomic_read_u64(&memtable->oldest); number <= newest; number++)
		operations += generation_entries(gpuds_memtable_generation(memtable, number));
	return operations;
}

void
gpuds_memtable_report(GpudsMemtableReport *report)
{
	GpudsMemtableShared *shared = gpuds_memtables.shared;
	Latch *flusher = shared->flusher;
	const int n = gpuds_slots_count(gpuds_memtables.slots);

	memset(report, 0, sizeof(*report));
	report->flusher_pid = flusher ? flusher->owner_pid : 0;
	report->memory_total = (size_t) gpuds_memtable_memory_mb * 1024 * 1024;
	report->memory_used = report->memory_total > 0 ? arena_used(gpuds_memtables.arena) : 0;
	report->flushed = pg_atomic_read_u64(&shared->flushed);
	report->overflows = pg_atomic_read_u64(&shared->overflows);
	gpuds_files_lock(LW_SHARED);
	for (int i = 0; i < n; i++)
	{
		GpudsMemtable *memtable = &gpuds_memtables.memtable[i];

		if (pg_atomic_read_u64(&memtable->serial) == 0)
			continue;
		report->memtables++;
		report->operations += count_operations(memtable);
	}
	gpuds_files_unlock();
}

uint64
gpuds_memtable_oldest(uint64 serial)
{
	uint64 oldest = pg_atomic_read_u64(&gpuds_memtable_slot(serial)->oldest);

	/* before anything of the journal is read */
	pg_read_barrier();
	return oldest;
}

/*
 * Attaches a mirror, whose applier the caller is, by setting *attached to the memtable's serial.  False: the
 * memtable is gone, or operations have left it since oldest was read; then *attached is unchanged.  Takes
 * the directory's lock in exclusive mode.
 */
bool
gpuds_memtable_attach(uint64 serial, uint64 oldest, pg_atomic_uint64 *attached)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);
	bool attach;

	gpuds_files_lock(LW_EXCLUSIVE);
	attach = pg_atomic_read_u64(&memtable->serial) == serial &&
			 pg_atomic_read_u64(&memtable->oldest) == oldest;
	if (attach)
		pg_atomic_write_u64(attached, serial);
	gpuds_files_unlock();
	return attach;
}

/*
 * Detaches a mirror, whose applier the caller is, and wakes the flusher.  Does nothing if the mirror is not
 * attached.  Takes no lock.
 */
void
gpuds_memtable_detach(pg_atomic_uint64 *attached)
{
	uint64 serial = pg_atomic_exchange_u64(attached, 0);

	if (serial == 0)
		return;
	/* the flusher, which takes left back and then looks who is attached, finds that we are not */
	pg_write_barrier();
	pg_atomic_write_u32(&gpuds_memtable_slot(serial)->left, 1);
	gpuds_flusher_wake();
}
