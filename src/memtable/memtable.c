/*-------------------------------------------------------------------------
 *
 * memtable.c
 *	  Which file has which memtable, and their memory.
 *
 * A slot is in the directory, or retired, or on the free list.  Appenders find the
 * memtable of a file in the directory, by chains under the lock, and remember what they
 * have found: a chain's count of moves tells them whether that is still so.  A
 * memtable that is of no more use is retired: it leaves the directory, and the flusher
 * frees it when nobody inserts into it or reads it any more.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"

#define NCHAINS 8192 /* a power of two */
#define NO_SLOT (-1)

GpudsMemtables gpuds_memtables;

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
	size = add_size(size, mul_size(NCHAINS, sizeof(pg_atomic_uint64) + sizeof(int)));
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
	for (int i = 0; i < NCHAINS; i++)
	{
		pg_atomic_init_u64(&all->moves[i], 1);
		all->chains[i] = NO_SLOT;
	}
	all->shared->flusher = NULL;
	pg_atomic_init_u64(&all->shared->flushed, 0);
	pg_atomic_init_u64(&all->shared->overflows, 0);
	pg_atomic_init_u32(&all->shared->nused, 0);
	pg_atomic_init_u64(&all->shared->period, 0);
	all->shared->last_incarnation = 0;
	all->shared->free = NO_SLOT;
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
	all->moves = (pg_atomic_uint64 *) at;
	at += NCHAINS * sizeof(pg_atomic_uint64);
	all->chains = (int *) at;
	at += NCHAINS * sizeof(int);
	all->shared = (GpudsMemtableShared *) at;
	at += MAXALIGN(sizeof(GpudsMemtableShared));
	all->slots = (GpudsMemtable *) CACHELINEALIGN(at);
	all->lock = &GetNamedLWLockTranche("gpuds_memtable")[0].lock;
	if (!found)
		init_shared();
}

uint32
gpuds_memtable_hash(const RelFileLocator *locator)
{
	return murmurhash32((uint32) locator->relNumber ^ murmurhash32((uint32) locator->dbOid));
}

static uint32
chain_of(const RelFileLocator *locator)
{
	return gpuds_memtable_hash(locator) & (NCHAINS - 1);
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

/* What moves when there is something new about the file's memtable. */
pg_atomic_uint64 *
gpuds_memtable_moves(const RelFileLocator *locator)
{
	return &gpuds_memtables.moves[chain_of(locator)];
}

/* The memtable of a file, or NULL.  The caller holds the lock. */
GpudsMemtable *
gpuds_memtable_find(const RelFileLocator *locator)
{
	for (int i = gpuds_memtables.chains[chain_of(locator)]; i != NO_SLOT; i = gpuds_memtables.slots[i].next)
	{
		if (RelFileLocatorEquals(gpuds_memtables.slots[i].file.locator, *locator))
			return &gpuds_memtables.slots[i];
	}
	return NULL;
}

/* The slot of a memtable, which may be another one's by now. */
GpudsMemtable *
gpuds_memtable_slot(uint64 serial)
{
	return &gpuds_memtables.slots[serial & ((1 << GPUDS_MEMTABLE_SLOT_BITS) - 1)];
}

static void
init_slot(GpudsMemtable *memtable)
{
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

/* A slot that is nobody's, or NULL.  The caller holds the lock exclusively. */
static GpudsMemtable *
take_slot(void)
{
	GpudsMemtableShared *shared = gpuds_memtables.shared;
	int n = (int) pg_atomic_read_u32(&shared->nused);
	GpudsMemtable *memtable;

	if (shared->free != NO_SLOT)
	{
		memtable = &gpuds_memtables.slots[shared->free];
		shared->free = memtable->next;
		return memtable;
	}
	if (n == gpuds_max_mirrors)
		return NULL;
	memtable = &gpuds_memtables.slots[n];
	init_slot(memtable);
	pg_write_barrier();
	pg_atomic_write_u32(&shared->nused, n + 1);
	return memtable;
}

/* The caller holds the lock exclusively. */
static void
give_slot(GpudsMemtable *memtable)
{
	memtable->next = gpuds_memtables.shared->free;
	gpuds_memtables.shared->free = memtable - gpuds_memtables.slots;
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

/* Makes a slot's memtable; false: no memory.  The caller holds the lock exclusively. */
static bool
make(GpudsMemtable *memtable, const GpudsFile *file)
{
	uint32 chain = chain_of(&file->locator);
	uint64 number = pg_atomic_read_u64(&memtable->newest) + 1;
	int slot = memtable - gpuds_memtables.slots;

	if (generation_begin(gpuds_memtables.arena, gpuds_memtable_generation(memtable, number)) != KERNEL_OK)
		return false;
	memtable->file = *file;
	pg_atomic_write_u64(&memtable->newest, number);
	pg_atomic_write_u64(&memtable->oldest, number);
	pg_atomic_write_u32(&memtable->full, 0);
	/* the flusher looks whether anybody joins at all */
	pg_atomic_write_u32(&memtable->left, 1);
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		pg_atomic_write_u64(&memtable->appended[stripe].number, 0);
		pg_atomic_write_u32(&memtable->appended[stripe].block, InvalidBlockNumber);
	}
	memtable->leaving = memtable->retired = false;
	memtable->begun = GetCurrentTimestamp();
	memtable->next = gpuds_memtables.chains[chain];
	gpuds_memtables.chains[chain] = slot;
	pg_write_barrier();
	pg_atomic_write_u64(&memtable->serial,
						++gpuds_memtables.shared->last_incarnation << GPUDS_MEMTABLE_SLOT_BITS |
							(uint64) slot);
	/* a full barrier: later appenders see it, what was appended before is in the pages */
	pg_atomic_fetch_add_u64(&gpuds_memtables.moves[chain], 1);
	memtable->period = gpuds_memtable_next_period();
	gpuds_flusher_wake();
	return true;
}

/*
 * Takes a memtable out of the directory.  The caller holds the lock exclusively.
 */
void
gpuds_memtable_retire(GpudsMemtable *memtable)
{
	uint32 chain = chain_of(&memtable->file.locator);
	int self = memtable - gpuds_memtables.slots;
	int *link = &gpuds_memtables.chains[chain];

	while (*link != self)
		link = &gpuds_memtables.slots[*link].next;
	*link = memtable->next;
	pg_atomic_write_u64(&memtable->serial, 0);
	pg_atomic_fetch_add_u64(&gpuds_memtables.moves[chain], 1);
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
	LWLockAcquire(gpuds_memtables.lock, LW_EXCLUSIVE);
	memtable->retired = false;
	give_slot(memtable);
	LWLockRelease(gpuds_memtables.lock);
}

static bool
is_of(const GpudsMemtable *memtable, const GpudsFile *file)
{
	return memtable->file.file_id == file->file_id && memtable->file.incarnation == file->incarnation;
}

uint64
gpuds_memtable_open(const GpudsFile *file)
{
	GpudsMemtable *memtable;
	uint64 serial = 0;

	if (gpuds_memtable_memory_mb == 0)
		return 0;
	LWLockAcquire(gpuds_memtables.lock, LW_EXCLUSIVE);
	memtable = gpuds_memtable_find(&file->locator);
	if (memtable && is_of(memtable, file) && pg_atomic_read_u32(&memtable->full) == 0)
		serial = pg_atomic_read_u64(&memtable->serial);
	else
	{
		if (memtable)
			gpuds_memtable_retire(memtable);
		if (gpuds_memtables.shared->flusher != NULL && (memtable = take_slot()) != NULL)
		{
			if (make(memtable, file))
				serial = pg_atomic_read_u64(&memtable->serial);
			else
			{
				give_slot(memtable);
				pg_atomic_fetch_add_u64(&gpuds_memtables.shared->overflows, 1);
			}
		}
	}
	LWLockRelease(gpuds_memtables.lock);
	return serial;
}

bool
gpuds_memtable_is_whole(uint64 serial)
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
	int n = (int) pg_atomic_read_u32(&shared->nused);

	memset(report, 0, sizeof(*report));
	report->flusher_pid = flusher ? flusher->owner_pid : 0;
	report->memory_total = (size_t) gpuds_memtable_memory_mb * 1024 * 1024;
	report->memory_used = report->memory_total > 0 ? arena_used(gpuds_memtables.arena) : 0;
	report->flushed = pg_atomic_read_u64(&shared->flushed);
	report->overflows = pg_atomic_read_u64(&shared->overflows);
	LWLockAcquire(gpuds_memtables.lock, LW_SHARED);
	for (int i = 0; i < n; i++)
	{
		GpudsMemtable *memtable = &gpuds_memtables.slots[i];

		if (pg_atomic_read_u64(&memtable->serial) == 0)
			continue;
		report->memtables++;
		report->operations += count_operations(memtable);
	}
	LWLockRelease(gpuds_memtables.lock);
}

uint64
gpuds_memtable_oldest(uint64 serial)
{
	uint64 oldest = pg_atomic_read_u64(&gpuds_memtable_slot(serial)->oldest);

	/* before anything of the journal is read */
	pg_read_barrier();
	return oldest;
}

bool
gpuds_memtable_join(uint64 serial, uint64 oldest, pg_atomic_uint64 *joined)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(serial);
	bool join;

	LWLockAcquire(gpuds_memtables.lock, LW_EXCLUSIVE);
	join = pg_atomic_read_u64(&memtable->serial) == serial && pg_atomic_read_u64(&memtable->oldest) == oldest;
	if (join)
		pg_atomic_write_u64(joined, serial);
	LWLockRelease(gpuds_memtables.lock);
	return join;
}

void
gpuds_memtable_leave(pg_atomic_uint64 *joined)
{
	uint64 serial = pg_atomic_exchange_u64(joined, 0);

	if (serial == 0)
		return;
	/* the flusher, which takes left back and then looks who is joined, finds that we are not */
	pg_write_barrier();
	pg_atomic_write_u32(&gpuds_memtable_slot(serial)->left, 1);
	gpuds_flusher_wake();
}
