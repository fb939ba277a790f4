/*-------------------------------------------------------------------------
 *
 * store.c
 *	  The stores of side values, and their memory.
 *
 * A store is a facet of its file (file/file.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "side/side.h"

#define CHUNK_BYTES (16 * 1024)
#define CHUNK_REFS (CHUNK_BYTES / sizeof(pg_atomic_uint32))

/* What a page takes in a part beside its values: the word that says whether it is present. */
#define PRESENT_BYTES MAXIMUM_ALIGNOF

/* Chunks that a store has at least: root, directory, part. */
#define LEAST_CHUNKS 3

/* A store that was read so lately keeps its memory. */
#define STORE_REST_MS 10000

/* References are numbers of chunks, from 1 on; 0: there is none. */
typedef struct SideStore
{
	pg_atomic_uint64 serial; /* 0: not in the directory */
	GpudsFile file;
	uint32 root;
	uint16 bytes;      /* of the side values of a row */
	uint16 per_page;   /* rows of a page that there is room for */
	uint16 page_bytes; /* of a part, for a page: PRESENT_BYTES and the values */
	uint16 pages_of_part;
	uint64 inverse;        /* of pages_of_part: see position_of */
	pg_atomic_uint64 used; /* when it was read last, ms */
} SideStore;

typedef struct SideShared
{
	slock_t lock; /* of the free list */
	uint32 free;  /* first free chunk, of those that were used before */
	uint32 fresh; /* chunks used so far */
	uint32 taken;
	pg_atomic_uint32 nstores;
	SideStore stores[GPUDS_SIDE_STORES];
} SideShared;

static SideShared *shared;
static GpudsSlots *slots;
static char *chunks;
static uint32 nchunks;
static LWLockPadded *locks;

static bool give_up(uint64 serial, bool wait);
static const GpudsFacetKeeper keeper = { give_up };

static LWLock *
my_side_lock(void)
{
	return &locks[MyProcPid % GPUDS_SIDE_LOCKS].lock;
}

static size_t
memory_bytes(void)
{
	return (size_t) gpuds_include_memory_mb * 1024 * 1024;
}

/* Shared memory that stores need, in bytes. */
Size
gpuds_side_shmem_size(void)
{
	Size size = add_size(MAXALIGN(sizeof(SideShared)), gpuds_slots_size(GPUDS_SIDE_STORES));

	return add_size(add_size(size, PG_CACHE_LINE_SIZE), memory_bytes());
}

/* Creates or finds it.  The caller holds AddinShmemInitLock. */
void
gpuds_side_shmem_init(void)
{
	bool found;
	char *at = ShmemInitStruct("gpuds side values", gpuds_side_shmem_size(), &found);

	shared = (SideShared *) at;
	at += MAXALIGN(sizeof(SideShared));
	slots = (GpudsSlots *) at;
	at += gpuds_slots_size(GPUDS_SIDE_STORES);
	chunks = (char *) CACHELINEALIGN(at);
	nchunks = (uint32) (memory_bytes() / CHUNK_BYTES);
	locks = GetNamedLWLockTranche("gpuds_side");
	gpuds_file_set_keeper(GPUDS_FACET_SIDE, &keeper);
	if (found)
		return;
	SpinLockInit(&shared->lock);
	shared->free = shared->fresh = shared->taken = 0;
	pg_atomic_init_u32(&shared->nstores, 0);
	gpuds_slots_init(slots, GPUDS_SIDE_STORES);
}

/*
 * Chunks
 */

static char *
chunk_at(uint32 ref)
{
	return chunks + (size_t) (ref - 1) * CHUNK_BYTES;
}

/* A chunk of zeros, or 0. */
static uint32
take_chunk(void)
{
	uint32 ref = 0;

	SpinLockAcquire(&shared->lock);
	if (shared->free != 0)
	{
		ref = shared->free;
		memcpy(&shared->free, chunk_at(ref), sizeof(shared->free));
	}
	else if (shared->fresh < nchunks)
		ref = ++shared->fresh;
	shared->taken += ref != 0;
	SpinLockRelease(&shared->lock);
	if (ref != 0)
		memset(chunk_at(ref), 0, CHUNK_BYTES);
	return ref;
}

static void
give_chunk(uint32 ref)
{
	SpinLockAcquire(&shared->lock);
	memcpy(chunk_at(ref), &shared->free, sizeof(shared->free));
	shared->free = ref;
	shared->taken--;
	SpinLockRelease(&shared->lock);
}

static pg_atomic_uint32 *
refs_of(uint32 ref)
{
	return (pg_atomic_uint32 *) chunk_at(ref);
}

/* What a place of a root or directory leads to; made: if it leads nowhere, to a new chunk; 0: nowhere. */
static uint32
follow(pg_atomic_uint32 *place, bool made)
{
	uint32 ref = pg_atomic_read_u32(place);
	uint32 mine;

	if (ref != 0 || !made)
	{
		pg_read_barrier();
		return ref;
	}
	mine = take_chunk();
	if (mine == 0)
		return 0;
	if (pg_atomic_compare_exchange_u32(place, &ref, mine))
		return mine;
	give_chunk(mine);
	return ref;
}

/* Where a page of the table is: in which part, as which of its pages. */
typedef struct SidePosition
{
	uint32 part;
	uint32 page;
} SidePosition;

/*
 * Divides a block's number by pages_of_part, once for each row, so by a multiplication: inverse is 2^64 /
 * divisor rounded up, whose product with a number of 32 bits has the quotient above bit 64.  (1 has no such
 * inverse.)
 */
static inline SidePosition
position_of(const SideStore *store, BlockNumber block)
{
	SidePosition at;

	at.part = store->pages_of_part == 1 ? block
										: (uint32) (((unsigned __int128) store->inverse * block) >> 64);
	at.page = block - at.part * store->pages_of_part;
	return at;
}

static bool
is_in_reach(const SidePosition *at)
{
	return at->part / CHUNK_REFS < CHUNK_REFS;
}

/* The part, or NULL. */
static inline char *
find_part(const SideStore *store, const SidePosition *at, bool made)
{
	uint32 ref;

	if (!is_in_reach(at))
		return NULL;
	ref = follow(&refs_of(store->root)[at->part / CHUNK_REFS], made);
	if (ref != 0)
		ref = follow(&refs_of(ref)[at->part % CHUNK_REFS], made);
	return ref == 0 ? NULL : chunk_at(ref);
}

static inline pg_atomic_uint32 *
present_of(const SideStore *store, char *part, const SidePosition *at)
{
	return (pg_atomic_uint32 *) (part + (size_t) at->page * store->page_bytes);
}

/* Behind that word, so that looking at both takes one translation of an address, as a rule. */
static inline uint8 *
values_of(const SideStore *store, char *part, const SidePosition *at)
{
	return (uint8 *) present_of(store, part, at) + PRESENT_BYTES;
}

/*
 * Stores
 */

/* Nobody drops a store until gpuds_side_leave.  Interrupts are held. */
void
gpuds_side_enter(void)
{
	LWLockAcquire(my_side_lock(), LW_SHARED);
}

/* Releases this backend's side lock.  Stores that were found since gpuds_side_enter are hints from now on. */
void
gpuds_side_leave(void)
{
	LWLockRelease(my_side_lock());
}

/* Is there any store? */
bool
gpuds_side_is_used(void)
{
	return pg_atomic_read_u32(&shared->nstores) > 0;
}

/*
 * The store of a file, for one who puts values in (writes) or for one who reads; false: it has none.  Takes
 * the directory's lock in shared mode, unless nothing has changed since it was asked last.
 */
bool
gpuds_side_find(const GpudsFile *file, bool writes, GpudsSideRef *ref)
{
	const GpudsFileEntry *entry = gpuds_file_entry(&file->locator);
	const uint64 serial = entry->facet[GPUDS_FACET_SIDE];

	ref->serial = 0;
	ref->slot = -1;
	if (serial != 0 && entry->file.file_id == file->file_id &&
		(writes || entry->file.incarnation == file->incarnation))
	{
		ref->serial = serial;
		ref->slot = gpuds_serial_slot(serial);
	}
	return ref->slot >= 0;
}

/* The store that a reference names, if it is still there. */
static SideStore *
store_of(const GpudsSideRef *ref)
{
	SideStore *store;

	if (ref->slot < 0)
		return NULL;
	store = &shared->stores[ref->slot];
	return pg_atomic_read_u64(&store->serial) == ref->serial ? store : NULL;
}

static uint64
now_ms(void)
{
	return (uint64) (GetCurrentTimestamp() / 1000);
}

/* Gives back the memory of a store that nobody can find. */
static void
free_store(const SideStore *store)
{
	pg_atomic_uint32 *root = refs_of(store->root);

	for (uint32 i = 0; i < CHUNK_REFS; i++)
	{
		uint32 directory = pg_atomic_read_u32(&root[i]);

		if (directory == 0)
			continue;
		for (uint32 k = 0; k < CHUNK_REFS; k++)
		{
			uint32 part = pg_atomic_read_u32(&refs_of(directory)[k]);

			if (part != 0)
				give_chunk(part);
		}
		give_chunk(directory);
	}
	give_chunk(store->root);
}

/*
 * Drops a store; false: it is gone already.  The caller has not entered, and does not hold the directory's
 * lock.
 */
static bool
drop(uint64 serial)
{
	const int slot = gpuds_serial_slot(serial);
	SideStore *store = &shared->stores[slot];

	gpuds_files_lock(LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&store->serial) != serial)
	{
		gpuds_files_unlock();
		return false;
	}
	pg_atomic_write_u64(&store->serial, 0);
	gpuds_file_detach(&store->file.locator, GPUDS_FACET_SIDE);
	gpuds_files_unlock();
	/* Whoever holds a side lock may take the directory's, so this is no moment to hold that. */
	for (int i = 0; i < GPUDS_SIDE_LOCKS; i++)
	{
		LWLockAcquire(&locks[i].lock, LW_EXCLUSIVE);
		LWLockRelease(&locks[i].lock);
	}
	free_store(store);
	gpuds_files_lock(LW_EXCLUSIVE);
	gpuds_slots_give(slots, slot);
	gpuds_files_unlock();
	pg_atomic_fetch_sub_u32(&shared->nstores, 1);
	return true;
}

/* For the directory. */
static bool
give_up(uint64 serial, bool wait)
{
	(void) drop(serial);
	return true;
}

/*
 * Drops the store that was not read for longest, but for one, if any was not read for a while; false: none
 * was.
 */
static bool
drop_oldest(const GpudsSideRef *but)
{
	uint64 oldest = now_ms() - STORE_REST_MS;
	uint64 serial = 0;

	for (int i = 0; i < gpuds_slots_count(slots); i++)
	{
		SideStore *store = &shared->stores[i];
		uint64 its = pg_atomic_read_u64(&store->serial);

		if (its != 0 && its != but->serial && pg_atomic_read_u64(&store->used) < oldest)
		{
			oldest = pg_atomic_read_u64(&store->used);
			serial = its;
		}
	}
	return serial != 0 && drop(serial);
}

/* Makes room for a store that found none; false: others need theirs.  The caller has not entered. */
bool
gpuds_side_free_memory(const GpudsSideRef *ref)
{
	return drop_oldest(ref);
}

/* Drops the store of a file; false: it has none. */
bool
gpuds_side_drop(const GpudsFile *file)
{
	GpudsSideRef ref;

	return gpuds_side_find(file, true, &ref) && drop(ref.serial);
}

/* Rows of a page of a table that a store has room for. */
static int
rows_for(Relation heap, int bytes)
{
	const Form_pg_class table = heap->rd_rel;
	double rows = MaxHeapTuplesPerPage;

	if (table->relpages > 0 && table->reltuples >= 0)
		rows = GpudsSideRows(table->reltuples / table->relpages);
	rows = Min(rows, MaxHeapTuplesPerPage);
	return Min((int) rows, (CHUNK_BYTES - PRESENT_BYTES) / bytes);
}

/* Would a store of the table that is made now have room for more rows of a page? */
bool
gpuds_side_is_outgrown(const GpudsSideRef *ref, Relation heap)
{
	const SideStore *store;
	bool outgrown;

	gpuds_side_enter();
	store = store_of(ref);
	outgrown = store && rows_for(heap, store->bytes) > store->per_page;
	gpuds_side_leave();
	return outgrown;
}

static void
init_store(int slot)
{
	pg_atomic_init_u64(&shared->stores[slot].serial, 0);
	pg_atomic_init_u64(&shared->stores[slot].used, 0);
}

/* Sets a store up that has its root, for rows with so many bytes. */
static void
set_up(SideStore *store, const GpudsFile *file, Relation heap, int bytes)
{
	const int per_page = rows_for(heap, bytes);

	store->file = *file;
	store->bytes = (uint16) bytes;
	store->per_page = (uint16) per_page;
	store->page_bytes = (uint16) (PRESENT_BYTES + per_page * bytes);
	store->pages_of_part = (uint16) (CHUNK_BYTES / store->page_bytes);
	store->inverse = PG_UINT64_MAX / store->pages_of_part + 1;
	pg_atomic_write_u64(&store->used, now_ms());
}

/*
 * Makes a slot the store of a file; false: there is no memory, or another file of the number has something.
 * The caller holds the directory's lock exclusively.
 */
static bool
make(int slot, const GpudsFile *file, Relation heap, int bytes)
{
	SideStore *store = &shared->stores[slot];
	const uint64 serial = gpuds_file_new_serial(slot);

	store->root = take_chunk();
	if (store->root == 0)
		return false;
	set_up(store, file, heap, bytes);
	pg_write_barrier();
	pg_atomic_write_u64(&store->serial, serial);
	/* a full barrier (D2): see S1 */
	if (!gpuds_file_attach(file, GPUDS_FACET_SIDE, serial))
	{
		pg_atomic_write_u64(&store->serial, 0);
		give_chunk(store->root);
		return false;
	}
	pg_atomic_fetch_add_u32(&shared->nstores, 1);
	return true;
}

/*
 * The store of a file, for rows of a table with so many bytes (a multiple of 8); it is made if there is none.
 * False: there is no memory, or sessions do not agree on the incarnation of the database.
 */
bool
gpuds_side_make(const GpudsFile *file, Relation heap, int bytes, GpudsSideRef *ref)
{
	ref->serial = 0;
	ref->slot = -1;
	if (nchunks < LEAST_CHUNKS)
		return false;
	gpuds_file_claim(file, false);
	gpuds_files_lock(LW_EXCLUSIVE);
	if (gpuds_file_facet(file, GPUDS_FACET_SIDE) == 0)
	{
		const int slot = gpuds_slots_take(slots, init_store);

		if (slot != GPUDS_NO_SLOT && !make(slot, file, heap, bytes))
			gpuds_slots_give(slots, slot);
	}
	(void) gpuds_side_find(file, false, ref);
	gpuds_files_unlock();
	return ref->slot >= 0;
}

/* Notes that a store is read. */
void
gpuds_side_touch(const GpudsSideRef *ref)
{
	SideStore *store = store_of(ref);
	uint64 now = now_ms();

	/* seldom, because readers share the cache line */
	if (store && now - pg_atomic_read_u64(&store->used) > STORE_REST_MS / 4)
		pg_atomic_write_u64(&store->used, now);
}

/*
 * The side values of the row at a TID, or NULL: they are not there.  They are right if a snapshot that the
 * caller holds sees the row.
 */
const uint8 *
gpuds_side_get(const GpudsSideRef *ref, uint64 tid)
{
	const int offset = (int) (tid & 0xFFFF);
	SideStore *store = store_of(ref);
	SidePosition at;
	char *part;

	if (store == NULL || offset > store->per_page)
		return NULL;
	at = position_of(store, (BlockNumber) (tid >> 16));
	part = find_part(store, &at, false);
	if (part == NULL || pg_atomic_read_u32(present_of(store, part, &at)) == 0)
		return NULL;
	pg_read_barrier();
	return values_of(store, part, &at) + (offset - 1) * store->bytes;
}

/* Is there a place for the row at a TID, if its page is made present? */
bool
gpuds_side_has_place(const GpudsSideRef *ref, uint64 tid)
{
	const SideStore *store = store_of(ref);
	SidePosition at;

	if (store == NULL)
		return false;
	at = position_of(store, (BlockNumber) (tid >> 16));
	return (int) (tid & 0xFFFF) <= store->per_page && is_in_reach(&at);
}

/* Has the processor fetch what gpuds_side_get will look at. */
void
gpuds_side_prefetch(const GpudsSideRef *ref, uint64 tid)
{
	const SideStore *store = store_of(ref);
	SidePosition at;
	char *part;

	if (store == NULL)
		return;
	at = position_of(store, (BlockNumber) (tid >> 16));
	part = find_part(store, &at, false);
	if (part == NULL)
		return;
	__builtin_prefetch(present_of(store, part, &at));
	__builtin_prefetch(values_of(store, part, &at) + ((tid & 0xFFFF) - 1) * store->bytes);
}

/* Puts the side values of a row in whose page is present; false: it is not. */
bool
gpuds_side_put(const GpudsSideRef *ref, uint64 tid, const uint8 *values)
{
	uint8 *place = (uint8 *) gpuds_side_get(ref, tid);

	if (place == NULL)
		return false;
	memcpy(place, values, shared->stores[ref->slot].bytes);
	return true;
}

/* Finds the place of a page, or makes room for it; GPUDS_SIDE_FILLED: *place says where. */
GpudsSideFill
gpuds_side_make_page(const GpudsSideRef *ref, BlockNumber block, GpudsSidePlace *place)
{
	SideStore *store = store_of(ref);
	SidePosition at;
	char *part;

	if (store == NULL)
		return GPUDS_SIDE_GONE;
	at = position_of(store, block);
	if (!is_in_reach(&at))
		return GPUDS_SIDE_ABSENT;
	part = find_part(store, &at, true);
	if (part == NULL)
		return GPUDS_SIDE_NO_MEMORY;
	place->values = values_of(store, part, &at);
	place->per_page = store->per_page;
	place->present = present_of(store, part, &at);
	return GPUDS_SIDE_FILLED;
}

/*
 * The page's values are there.  The caller holds its buffer's lock, and has not left since it made the page:
 * the store may have been withdrawn meanwhile, but its memory stays until then.
 */
void
gpuds_side_set_present(const GpudsSidePlace *place)
{
	pg_write_barrier();
	pg_atomic_write_u32(place->present, 1);
}

/* Is a page present? */
bool
gpuds_side_has(const GpudsSideRef *ref, BlockNumber block)
{
	bool has;

	gpuds_side_enter();
	has = gpuds_side_get(ref, (uint64) block << 16 | FirstOffsetNumber) != NULL;
	gpuds_side_leave();
	return has;
}

/* Fills in *report.  Takes a spinlock; the numbers may be of different moments. */
void
gpuds_side_report(GpudsSideReport *report)
{
	report->stores = pg_atomic_read_u32(&shared->nstores);
	report->memory_total = (size_t) nchunks * CHUNK_BYTES;
	SpinLockAcquire(&shared->lock);
	report->memory_used = (size_t) shared->taken * CHUNK_BYTES;
	SpinLockRelease(&shared->lock);
}
