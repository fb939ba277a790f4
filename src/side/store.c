/*-------------------------------------------------------------------------
 *
 * store.c
 *	  The stores of side values.
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
#include "utils/timestamp.h"

#include "side/side_internal.h"

/* Chunks that a store has at least: root, directory, part, and two of marks. */
#define LEAST_CHUNKS 5

/* A store that was read so lately keeps its memory. */
#define STORE_REST_MS 10000

typedef struct SideShared
{
	pg_atomic_uint32 nstores;
	pg_atomic_uint64 copies; /* that have been named */
	SideStore stores[GPUDS_SIDE_STORES];
} SideShared;

static SideShared *shared;
static GpudsSlots *slots;
static LWLockPadded *locks;

static bool give_up(uint64 serial, bool wait);
static const GpudsFacetKeeper keeper = { give_up };

static LWLock *
my_side_lock(void)
{
	return &locks[MyProcPid % GPUDS_SIDE_LOCKS].lock;
}

/* Shared memory that stores need, in bytes. */
Size
gpuds_side_shmem_size(void)
{
	Size size = add_size(MAXALIGN(sizeof(SideShared)), gpuds_slots_size(GPUDS_SIDE_STORES));

	return add_size(size, gpuds_side_chunks_size());
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
	gpuds_side_chunks_init(at, found);
	locks = GetNamedLWLockTranche("gpuds_side");
	gpuds_file_set_keeper(GPUDS_FACET_SIDE, &keeper);
	if (found)
		return;
	pg_atomic_init_u32(&shared->nstores, 0);
	pg_atomic_init_u64(&shared->copies, 0);
	gpuds_slots_init(slots, GPUDS_SIDE_STORES);
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

/* The store that a reference names; NULL: it is gone.  The caller has entered. */
SideStore *
gpuds_side_store(const GpudsSideRef *ref)
{
	SideStore *store;

	if (ref->slot < 0)
		return NULL;
	store = &shared->stores[ref->slot];
	return pg_atomic_read_u64(&store->serial) == ref->serial ? store : NULL;
}

/* The time, ms. */
uint64
gpuds_side_now_ms(void)
{
	return (uint64) (GetCurrentTimestamp() / 1000);
}

/* Gives a directory back, if there is one, and the chunks that it leads to. */
static void
free_directory(uint32 directory)
{
	if (directory == 0)
		return;
	for (uint32 k = 0; k < SIDE_CHUNK_REFS; k++)
	{
		uint32 part = pg_atomic_read_u32(&side_refs(directory)[k]);

		if (part != 0)
			gpuds_side_give_chunk(part);
	}
	gpuds_side_give_chunk(directory);
}

/* Gives back the memory of a store that nobody can find. */
static void
free_store(SideStore *store)
{
	pg_atomic_uint32 *root = side_refs(store->root);

	free_directory(pg_atomic_read_u32(&store->copied.marks));
	for (uint32 i = 0; i < SIDE_CHUNK_REFS; i++)
		free_directory(pg_atomic_read_u32(&root[i]));
	gpuds_side_give_chunk(store->root);
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
	uint64 oldest = gpuds_side_now_ms() - STORE_REST_MS;
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
	return Min((int) rows, (SIDE_CHUNK_BYTES - SIDE_PRESENT_BYTES) / bytes);
}

/* Would a store of the table that is made now have room for more rows of a page? */
bool
gpuds_side_is_outgrown(const GpudsSideRef *ref, Relation heap)
{
	const SideStore *store;
	bool outgrown;

	gpuds_side_enter();
	store = gpuds_side_store(ref);
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
	store->page_bytes = (uint16) (SIDE_PRESENT_BYTES + per_page * bytes);
	store->pages_of_part = (uint16) (SIDE_CHUNK_BYTES / store->page_bytes);
	store->inverse = PG_UINT64_MAX / store->pages_of_part + 1;
	gpuds_side_init_copied(store);
	pg_atomic_write_u64(&store->used, gpuds_side_now_ms());
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

	store->root = gpuds_side_take_chunk();
	if (store->root == 0)
		return false;
	set_up(store, file, heap, bytes);
	pg_write_barrier();
	pg_atomic_write_u64(&store->serial, serial);
	/* a full barrier (D2): see S1 */
	if (!gpuds_file_attach(file, GPUDS_FACET_SIDE, serial))
	{
		pg_atomic_write_u64(&store->serial, 0);
		gpuds_side_give_chunk(store->root);
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
	if (gpuds_side_chunks() < LEAST_CHUNKS)
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
	SideStore *store = gpuds_side_store(ref);
	uint64 now = gpuds_side_now_ms();

	/* seldom, because readers share the cache line */
	if (store && now - pg_atomic_read_u64(&store->used) > STORE_REST_MS / 4)
		pg_atomic_write_u64(&store->used, now);
}

/*
 * The side values of a page's rows, from the first offset on, or NULL: they are not there.  *rows: how many
 * there is room for.  Those of rows that a snapshot of the caller's sees are right until gpuds_side_leave.
 */
const uint8 *
gpuds_side_page(const GpudsSideRef *ref, BlockNumber block, int *rows)
{
	SideStore *store = gpuds_side_store(ref);
	SidePosition at;
	char *part;

	*rows = 0;
	if (store == NULL)
		return NULL;
	at = side_position(store, block);
	part = side_part(store, &at, false);
	if (part == NULL || pg_atomic_read_u32(side_present(store, part, &at)) == 0)
		return NULL;
	pg_read_barrier();
	*rows = store->per_page;
	return side_values(store, part, &at);
}

/* The same of the row at a TID. */
const uint8 *
gpuds_side_get(const GpudsSideRef *ref, uint64 tid)
{
	const int offset = (int) (tid & 0xFFFF);
	int rows;
	const uint8 *page = gpuds_side_page(ref, (BlockNumber) (tid >> 16), &rows);

	return offset <= rows ? page + (offset - 1) * shared->stores[ref->slot].bytes : NULL;
}

/* Is there a place for the row at a TID, if its page is made present? */
bool
gpuds_side_has_place(const GpudsSideRef *ref, uint64 tid)
{
	const SideStore *store = gpuds_side_store(ref);
	SidePosition at;

	if (store == NULL)
		return false;
	at = side_position(store, (BlockNumber) (tid >> 16));
	return (int) (tid & 0xFFFF) <= store->per_page && side_is_in_reach(&at);
}

/* Has the processor fetch what gpuds_side_get will look at. */
void
gpuds_side_prefetch(const GpudsSideRef *ref, uint64 tid)
{
	const SideStore *store = gpuds_side_store(ref);
	SidePosition at;
	char *part;

	if (store == NULL)
		return;
	at = side_position(store, (BlockNumber) (tid >> 16));
	part = side_part(store, &at, false);
	if (part == NULL)
		return;
	__builtin_prefetch(side_present(store, part, &at));
	__builtin_prefetch(side_values(store, part, &at) + ((tid & 0xFFFF) - 1) * store->bytes);
}

/* Puts the side values of a row in whose page is present; false: it is not. */
bool
gpuds_side_put(const GpudsSideRef *ref, uint64 tid, const uint8 *values)
{
	uint8 *place = (uint8 *) gpuds_side_get(ref, tid);

	if (place == NULL)
		return false;
	memcpy(place, values, shared->stores[ref->slot].bytes);
	gpuds_side_unmark(&shared->stores[ref->slot], (BlockNumber) (tid >> 16));
	return true;
}

/* Finds the place of a page, or makes room for it; GPUDS_SIDE_FILLED: *place says where. */
GpudsSideFill
gpuds_side_make_page(const GpudsSideRef *ref, BlockNumber block, GpudsSidePlace *place)
{
	SideStore *store = gpuds_side_store(ref);
	SidePosition at;
	char *part;

	if (store == NULL)
		return GPUDS_SIDE_GONE;
	at = side_position(store, block);
	if (!side_is_in_reach(&at))
		return GPUDS_SIDE_ABSENT;
	part = side_part(store, &at, true);
	if (part == NULL || !gpuds_side_make_marks(store, block))
		return GPUDS_SIDE_NO_MEMORY;
	place->values = side_values(store, part, &at);
	place->per_page = store->per_page;
	place->present = side_present(store, part, &at);
	place->npresent = &store->copied.present;
	place->changes = &store->copied.changes;
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
	if (pg_atomic_exchange_u32(place->present, 1) == 0)
		pg_atomic_fetch_add_u32(place->npresent, 1);
	pg_atomic_fetch_add_u64(place->changes, 1);
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

/* A name for a copy, which no other has had. */
uint64
gpuds_side_name_copy(void)
{
	return pg_atomic_fetch_add_u64(&shared->copies, 1) + 1;
}

/* Fills in *report.  Takes a spinlock; the numbers may be of different moments. */
void
gpuds_side_report(GpudsSideReport *report)
{
	report->stores = pg_atomic_read_u32(&shared->nstores);
	report->memory_total = (size_t) gpuds_side_chunks() * SIDE_CHUNK_BYTES;
	report->memory_used = (size_t) gpuds_side_chunks_taken() * SIDE_CHUNK_BYTES;
}
