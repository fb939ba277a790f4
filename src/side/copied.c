/*-------------------------------------------------------------------------
 *
 * copied.c
 *	  Which pages of a store a device has a copy of (S3).
 *
 * One session at a time copies: it has the right to.  The others scan with what is marked.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "side/side_internal.h"

/* Pages that are looked at before the side lock is let go. */
#define PAGES_UNDER_LOCK 16384

/* Nobody copies for so long after there was no memory. */
#define COPY_REST_MS 5000

/* Takes the side lock, until gpuds_side_leave; returns the store, or NULL: it is gone. */
static SideStore *
enter_store(const GpudsSideRef *ref)
{
	gpuds_side_enter();
	return gpuds_side_store(ref);
}

/* The name of the copy that a store's marks are of; 0: there is none. */
uint64
gpuds_side_copy_name(const GpudsSideRef *ref)
{
	SideStore *store = gpuds_side_store(ref);

	return store ? pg_atomic_read_u64(&store->copied.name) : 0;
}

/* Has the store pages that a copy of that name, which the device has, has not?  Not while copying rests. */
bool
gpuds_side_wants_copy(const GpudsSideRef *ref, uint64 name)
{
	SideStore *store = gpuds_side_store(ref);

	if (store == NULL || pg_atomic_read_u32(&store->copied.present) == 0)
		return false;
	if (name != 0 && pg_atomic_read_u64(&store->copied.name) == name &&
		pg_atomic_read_u64(&store->copied.changes) == pg_atomic_read_u64(&store->copied.seen))
		return false;
	return gpuds_side_now_ms() >= pg_atomic_read_u64(&store->copied.rest);
}

/* What a copy must have room for; false: the store is gone. */
bool
gpuds_side_copy_shape(const GpudsSideRef *ref, GpudsSideShape *shape)
{
	SideStore *store = gpuds_side_store(ref);

	if (store == NULL)
		return false;
	shape->rows = store->per_page;
	shape->row_bytes = store->bytes;
	shape->pages = pg_atomic_read_u32(&store->copied.present);
	return true;
}

/* Takes the right to copy; false: another has it, or the store is gone. */
bool
gpuds_side_copy_begin(const GpudsSideRef *ref)
{
	SideStore *store = enter_store(ref);
	uint32 nobody = 0;
	bool taken = store && pg_atomic_compare_exchange_u32(&store->copied.copier, &nobody, 1);

	gpuds_side_leave();
	return taken;
}

/* Gives it back.  Raises nothing. */
void
gpuds_side_copy_end(const GpudsSideRef *ref)
{
	SideStore *store = enter_store(ref);

	if (store)
	{
		pg_memory_barrier();
		pg_atomic_write_u32(&store->copied.copier, 0);
	}
	gpuds_side_leave();
}

/*
 * Takes all marks away, for a copy without pages; its name, for gpuds_side_set_copy when the device has it.
 * The caller has the right to copy.
 */
uint64
gpuds_side_copy_new(const GpudsSideRef *ref)
{
	SideStore *store = enter_store(ref);

	if (store)
	{
		uint32 directory = pg_atomic_read_u32(&store->copied.marks);

		pg_atomic_write_u64(&store->copied.name, 0);
		/* pairs with those of gpuds_side_copied_map: whoever sees a mark gone sees the name gone */
		pg_memory_barrier();
		for (uint32 i = 0; directory != 0 && i < SIDE_CHUNK_REFS; i++)
		{
			uint32 chunk = pg_atomic_read_u32(&side_refs(directory)[i]);

			for (uint32 k = 0; chunk != 0 && k < SIDE_CHUNK_REFS; k++)
				pg_atomic_write_u32(&side_refs(chunk)[k], 0);
		}
	}
	gpuds_side_leave();
	return gpuds_side_name_copy();
}

/* A store's marks are of a copy from now on, or of none (0).  The caller has the right to copy. */
void
gpuds_side_set_copy(const GpudsSideRef *ref, uint64 name)
{
	SideStore *store = enter_store(ref);

	if (store)
	{
		pg_atomic_write_u64(&store->copied.seen, 0);
		pg_atomic_fetch_add_u64(&store->copied.changes, 1);
		pg_write_barrier();
		pg_atomic_write_u64(&store->copied.name, name);
	}
	gpuds_side_leave();
}

/* There is no memory for the copy: nobody is to try again for a while. */
void
gpuds_side_copy_rest(const GpudsSideRef *ref)
{
	SideStore *store = enter_store(ref);

	if (store)
		pg_atomic_write_u64(&store->copied.rest, gpuds_side_now_ms() + COPY_REST_MS);
	gpuds_side_leave();
}

/* What gpuds_side_all_copied is to be told, before the first page is looked for. */
uint64
gpuds_side_changes(const GpudsSideRef *ref)
{
	SideStore *store = enter_store(ref);
	uint64 changes = 0;

	if (store)
		changes = pg_atomic_read_u64(&store->copied.changes);
	pg_memory_barrier();
	gpuds_side_leave();
	return changes;
}

/* Is a page present, and its copy not up to date? */
static bool
is_uncopied(SideStore *store, char *part, const SidePosition *at, BlockNumber block)
{
	pg_atomic_uint32 *word = gpuds_side_marks(store, block, false);

	return (word == NULL || (pg_atomic_read_u32(word) & side_mark(block, SIDE_COPIED)) == 0) &&
		   pg_atomic_read_u32(side_present(store, part, at)) != 0;
}

/*
 * Goes on from page *next to the next one that may be present: over parts that are not there.  False: there
 * are no more.
 */
static bool
skip_absent(SideStore *store, BlockNumber *next, SidePosition *at, char **part)
{
	for (;;)
	{
		uint64 parts = 1;

		*at = side_position(store, *next);
		if (!side_is_in_reach(at))
			return false;
		*part = side_part(store, at, false);
		if (*part)
			return true;
		if (pg_atomic_read_u32(&side_refs(store->root)[at->part / SIDE_CHUNK_REFS]) == 0)
			parts = SIDE_CHUNK_REFS - at->part % SIDE_CHUNK_REFS;
		if ((at->part + parts) * store->pages_of_part > MaxBlockNumber)
			return false;
		*next = (BlockNumber) ((at->part + parts) * store->pages_of_part);
	}
}

/*
 * The next pages, from *next on, that are present and whose copies are not up to date: *n, most at most.
 * False: there are no more behind these.
 */
bool
gpuds_side_next_uncopied(const GpudsSideRef *ref, BlockNumber *next, uint32 *blocks, int most, int *n)
{
	SideStore *store;
	SidePosition at;
	char *part;
	bool more = true;

	*n = 0;
	while (more && *n < most)
	{
		CHECK_FOR_INTERRUPTS();
		store = enter_store(ref);
		more = store != NULL;
		for (int i = 0; more && i < PAGES_UNDER_LOCK && *n < most; i++)
		{
			more = skip_absent(store, next, &at, &part) && *next < MaxBlockNumber;
			if (more && is_uncopied(store, part, &at, *next))
				blocks[(*n)++] = *next;
			*next += more;
		}
		gpuds_side_leave();
	}
	return more;
}

/*
 * Marks n pages that are present as such that are being copied, and copies their values, one page behind the
 * other.  False: the store is gone, and what has been copied means nothing.  The caller has the right to
 * copy.
 */
bool
gpuds_side_copy_pages(const GpudsSideRef *ref, const uint32 *blocks, int n, uint8 *to)
{
	SideStore *store = gpuds_side_store(ref);

	if (store == NULL)
		return false;
	for (int i = 0; i < n; i++)
	{
		const SidePosition at = side_position(store, blocks[i]);
		const size_t bytes = (size_t) store->per_page * store->bytes;
		pg_atomic_uint32 *word = gpuds_side_marks(store, blocks[i], false);
		char *part = side_part(store, &at, false);

		/* they were there when the page was found */
		if (word == NULL || part == NULL)
			return false;
		/* a full barrier, which pairs with that of gpuds_side_unmark */
		pg_atomic_fetch_or_u32(word, side_mark(blocks[i], SIDE_BEING_COPIED));
		memcpy(to + i * bytes, side_values(store, part, &at), bytes);
	}
	return true;
}

/* Marks a page as copied, if values have not been put into it since it was read. */
static void
set_copied(SideStore *store, BlockNumber block)
{
	pg_atomic_uint32 *word = gpuds_side_marks(store, block, false);
	uint32 old = word ? pg_atomic_read_u32(word) : 0;

	while ((old & side_mark(block, SIDE_BEING_COPIED)) != 0)
	{
		uint32 new = (old & ~side_mark(block, SIDE_BEING_COPIED)) | side_mark(block, SIDE_COPIED);

		if (pg_atomic_compare_exchange_u32(word, &old, new))
			break;
	}
}

/* The device has n pages that gpuds_side_copy_pages has copied.  The caller has the right to copy. */
void
gpuds_side_set_copied(const GpudsSideRef *ref, const uint32 *blocks, int n)
{
	SideStore *store = enter_store(ref);

	for (int i = 0; store && i < n; i++)
	{
		set_copied(store, blocks[i]);
		if (blocks[i] >= pg_atomic_read_u32(&store->copied.pages))
			pg_atomic_write_u32(&store->copied.pages, blocks[i] + 1);
	}
	gpuds_side_leave();
}

/* All pages that were present at a time of gpuds_side_changes have been copied. */
void
gpuds_side_all_copied(const GpudsSideRef *ref, uint64 changes)
{
	SideStore *store = enter_store(ref);

	if (store)
		pg_atomic_write_u64(&store->copied.seen, changes);
	gpuds_side_leave();
}

/* Copies a store's marks of pages from 0 on, of so many bytes. */
static void
copy_marks(SideStore *store, uint8 *map, size_t bytes)
{
	const uint32 directory = gpuds_side_follow(&store->copied.marks, false);

	for (size_t at = 0; at < bytes; at += SIDE_CHUNK_BYTES)
	{
		const size_t n = Min(bytes - at, SIDE_CHUNK_BYTES);
		const uint32 chunk = directory == 0
								 ? 0
								 : gpuds_side_follow(&side_refs(directory)[at / SIDE_CHUNK_BYTES], false);

		if (chunk != 0)
			memcpy(map + at, gpuds_side_chunk(chunk), n);
		else
			memset(map + at, 0, n);
	}
}

/*
 * The marks of a store's copy, if that has the name, in the current memory context; returns their bytes, most
 * at most, or 0: there are none.
 */
size_t
gpuds_side_copied_map(const GpudsSideRef *ref, uint64 name, size_t most, uint8 **map)
{
	SideStore *store = enter_store(ref);
	size_t bytes = 0;

	*map = NULL;
	if (store)
		bytes = Min(((size_t) pg_atomic_read_u32(&store->copied.pages) + 3) / 4, most);
	gpuds_side_leave();
	if (bytes == 0)
		return 0;
	*map = MemoryContextAllocHuge(CurrentMemoryContext, bytes);
	store = enter_store(ref);
	if (gpuds_side_copy_name(ref) != name)
		bytes = 0;
	pg_read_barrier();
	if (bytes > 0)
		copy_marks(store, *map, bytes);
	/* pairs with that of gpuds_side_copy_new */
	pg_read_barrier();
	if (bytes > 0 && gpuds_side_copy_name(ref) != name)
		bytes = 0;
	gpuds_side_leave();
	return bytes;
}
