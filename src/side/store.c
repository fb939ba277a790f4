/*-------------------------------------------------------------------------
 *
 * store.c
 *	  The stores of side values: which index file has one, and their memory.
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

/* Stores that there can be at a time. */
#define NSTORES 1024

/* Side locks; one more lock is the list's. */
#define NLOCKS (GPUDS_SIDE_LOCKS - 1)

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
	pg_atomic_uint64 serial; /* 0: the slot is free, unless it is being dropped */
	bool dropping;           /* with serial 0: its memory is being given back; under the list's lock */
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
	uint64 last_serial;
	pg_atomic_uint64 moves; /* changes of the list of stores */
	pg_atomic_uint32 nstores;
	SideStore stores[NSTORES];
} SideShared;

static SideShared *shared;
static char *chunks;
static uint32 nchunks;
static LWLockPadded *locks; /* NLOCKS side locks, then that of the list */

static LWLock *
list_lock(void)
{
	return &locks[NLOCKS].lock;
}

static LWLock *
my_side_lock(void)
{
	return &locks[MyProcPid % NLOCKS].lock;
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
	return add_size(add_size(MAXALIGN(sizeof(SideShared)), PG_CACHE_LINE_SIZE), memory_bytes());
}

/* Creates or finds it.  The caller holds AddinShmemInitLock. */
void
gpuds_side_shmem_init(void)
{
	bool found;

	shared = ShmemInitStruct("gpuds side values", gpuds_side_shmem_size(), &found);
	chunks = (char *) CACHELINEALIGN((char *) shared + MAXALIGN(sizeof(SideShared)));
	nchunks = (uint32) (memory_bytes() / CHUNK_BYTES);
	locks = GetNamedLWLockTranche("gpuds_side");
	if (found)
		return;
	SpinLockInit(&shared->lock);
	shared->free = shared->fresh = shared->taken = 0;
	shared->last_serial = 0;
	pg_atomic_init_u64(&shared->moves, 1);
	pg_atomic_init_u32(&shared->nstores, 0);
	for (int i = 0; i < NSTORES; i++)
	{
		pg_atomic_init_u64(&shared->stores[i].serial, 0);
		shared->stores[i].dropping = false;
		pg_atomic_init_u64(&shared->stores[i].used, 0);
	}
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
 * The list
 */

/* Nobody drops a store until gpuds_side_leave.  Interrupts are held. */
void
gpuds_side_enter(void)
{
	LWLockAcquire(my_side_lock(), LW_SHARED);
}

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

static bool
is_same_file(const GpudsFile *a, const GpudsFile *b)
{
	return RelFileLocatorEquals(a->locator, b->locator) && a->file_id == b->file_id &&
		   a->incarnation == b->incarnation;
}

/* Stores that this backend has found or missed lately, by file. */
#define NREMEMBERED 64
static struct
{
	GpudsFile file;
	uint64 moves; /* as of the search; 0: nothing is remembered */
	GpudsSideRef ref;
	TransactionId incarnation; /* of the database, as the store's maker knew it */
} remembered[NREMEMBERED];

/* The same but for the life of their database, of which sessions may not agree for a while. */
static bool
is_like_file(const GpudsFile *a, const GpudsFile *b)
{
	return RelFileLocatorEquals(a->locator, b->locator) && a->file_id == b->file_id;
}

/*
 * Looks through the list, whose lock the caller holds.  A file has one store at most, whatever *incarnation.
 */
static void
search(const GpudsFile *file, GpudsSideRef *ref, TransactionId *incarnation)
{
	ref->slot = -1;
	ref->serial = 0;
	for (int i = 0; i < NSTORES; i++)
	{
		uint64 serial = pg_atomic_read_u64(&shared->stores[i].serial);

		if (serial != 0 && is_like_file(&shared->stores[i].file, file))
		{
			*incarnation = shared->stores[i].file.incarnation;
			ref->slot = i;
			ref->serial = serial;
			return;
		}
	}
}

/*
 * The store of a file, for one who puts values in (writes) or for one who reads; false: it has none.  Takes
 * the list's lock in shared mode, unless nothing has changed since it was asked last.
 */
bool
gpuds_side_find(const GpudsFile *file, bool writes, GpudsSideRef *ref)
{
	const int at = (int) (file->locator.relNumber % NREMEMBERED);
	uint64 moves = pg_atomic_read_u64(&shared->moves);

	pg_read_barrier();
	if (remembered[at].moves != moves || !is_like_file(&remembered[at].file, file))
	{
		LWLockAcquire(list_lock(), LW_SHARED);
		remembered[at].moves = pg_atomic_read_u64(&shared->moves);
		remembered[at].file = *file;
		search(file, &remembered[at].ref, &remembered[at].incarnation);
		LWLockRelease(list_lock());
	}
	*ref = remembered[at].ref;
	if (ref->slot >= 0 && !writes && remembered[at].incarnation != file->incarnation)
		ref->slot = -1;
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

/* Drops a store; false: it is gone already.  The caller has not entered. */
static bool
drop(int slot, uint64 serial)
{
	SideStore *store = &shared->stores[slot];

	LWLockAcquire(list_lock(), LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&store->serial) != serial)
	{
		LWLockRelease(list_lock());
		return false;
	}
	store->dropping = true;
	pg_atomic_write_u64(&store->serial, 0);
	pg_atomic_fetch_add_u64(&shared->moves, 1);
	LWLockRelease(list_lock());
	/* Whoever holds a side lock may take the list's, so this is no moment to hold that. */
	for (int i = 0; i < NLOCKS; i++)
	{
		LWLockAcquire(&locks[i].lock, LW_EXCLUSIVE);
		LWLockRelease(&locks[i].lock);
	}
	free_store(store);
	LWLockAcquire(list_lock(), LW_EXCLUSIVE);
	store->dropping = false;
	pg_atomic_fetch_sub_u32(&shared->nstores, 1);
	LWLockRelease(list_lock());
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
	int slot = -1;

	for (int i = 0; i < NSTORES; i++)
	{
		SideStore *store = &shared->stores[i];
		uint64 its = pg_atomic_read_u64(&store->serial);

		if (its != 0 && (i != but->slot || its != but->serial) && pg_atomic_read_u64(&store->used) < oldest)
		{
			oldest = pg_atomic_read_u64(&store->used);
			serial = its;
			slot = i;
		}
	}
	if (slot < 0)
		return false;
	return drop(slot, serial);
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
	TransactionId incarnation;

	LWLockAcquire(list_lock(), LW_SHARED);
	search(file, &ref, &incarnation);
	LWLockRelease(list_lock());
	return ref.slot >= 0 && drop(ref.slot, ref.serial);
}

/* Stores of other files that had the same number. */
static void
drop_namesakes(const GpudsFile *file)
{
	for (int i = 0; i < NSTORES; i++)
	{
		SideStore *store = &shared->stores[i];
		uint64 serial = pg_atomic_read_u64(&store->serial);
		bool namesake;

		/* looked at without the lock, then with it */
		if (serial == 0 || !RelFileLocatorEquals(store->file.locator, file->locator))
			continue;
		LWLockAcquire(list_lock(), LW_SHARED);
		namesake = pg_atomic_read_u64(&store->serial) == serial &&
				   RelFileLocatorEquals(store->file.locator, file->locator) &&
				   !is_same_file(&store->file, file);
		LWLockRelease(list_lock());
		if (namesake)
			(void) drop(i, serial);
	}
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

/*
 * The store of a file, for rows of a table with so many bytes (a multiple of 8); it is made if there is none.
 * False: there is no memory.
 */
bool
gpuds_side_make(const GpudsFile *file, Relation heap, int bytes, GpudsSideRef *ref)
{
	SideStore *store = NULL;
	TransactionId incarnation;
	int per_page;

	if (nchunks < LEAST_CHUNKS)
		return false;
	drop_namesakes(file);
	LWLockAcquire(list_lock(), LW_EXCLUSIVE);
	search(file, ref, &incarnation);
	/* Another session has just made one, in what it takes for the database's incarnation. */
	if (ref->slot >= 0 && incarnation != file->incarnation)
	{
		LWLockRelease(list_lock());
		ref->slot = -1;
		return false;
	}
	for (int i = 0; i < NSTORES && ref->slot < 0 && store == NULL; i++)
	{
		if (pg_atomic_read_u64(&shared->stores[i].serial) == 0 && !shared->stores[i].dropping)
			store = &shared->stores[i];
	}
	if (store)
		store->root = take_chunk();
	if (store && store->root != 0)
	{
		per_page = rows_for(heap, bytes);
		store->file = *file;
		store->bytes = (uint16) bytes;
		store->per_page = (uint16) per_page;
		store->page_bytes = (uint16) (PRESENT_BYTES + per_page * bytes);
		store->pages_of_part = (uint16) (CHUNK_BYTES / store->page_bytes);
		store->inverse = PG_UINT64_MAX / store->pages_of_part + 1;
		pg_atomic_write_u64(&store->used, now_ms());
		ref->slot = (int) (store - shared->stores);
		ref->serial = ++shared->last_serial;
		pg_atomic_fetch_add_u32(&shared->nstores, 1);
		pg_write_barrier();
		pg_atomic_write_u64(&store->serial, ref->serial);
		/* a full barrier: see S1 */
		pg_atomic_fetch_add_u64(&shared->moves, 1);
	}
	LWLockRelease(list_lock());
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

/* Drops the stores of files that are gone. */
void
gpuds_side_forget_gone(bool (*is_gone)(const RelFileLocator *locator))
{
	if (!gpuds_side_is_used())
		return;
	for (int i = 0; i < NSTORES; i++)
	{
		SideStore *store = &shared->stores[i];
		RelFileLocator locator;
		uint64 serial;

		if (pg_atomic_read_u64(&store->serial) == 0)
			continue;
		LWLockAcquire(list_lock(), LW_SHARED);
		serial = pg_atomic_read_u64(&store->serial);
		locator = store->file.locator;
		LWLockRelease(list_lock());
		if (serial != 0 && is_gone(&locator))
			(void) drop(i, serial);
	}
}

void
gpuds_side_report(GpudsSideReport *report)
{
	report->stores = pg_atomic_read_u32(&shared->nstores);
	report->memory_total = (size_t) nchunks * CHUNK_BYTES;
	SpinLockAcquire(&shared->lock);
	report->memory_used = (size_t) shared->taken * CHUNK_BYTES;
	SpinLockRelease(&shared->lock);
}
