/*-------------------------------------------------------------------------
 *
 * side_marks.c
 *	  Marks of the pages of a store: of which of them a device has a copy (S3).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "side/side_internal.h"

/* There is no copy of a store that is set up. */
void
gpuds_side_init_copied(SideStore *store)
{
	SideCopied *copied = &store->copied;

	pg_atomic_init_u64(&copied->name, 0);
	pg_atomic_init_u32(&copied->copier, 0);
	pg_atomic_init_u32(&copied->marks, 0);
	pg_atomic_init_u32(&copied->pages, 0);
	pg_atomic_init_u32(&copied->present, 0);
	pg_atomic_init_u64(&copied->changes, 0);
	pg_atomic_init_u64(&copied->seen, 0);
	pg_atomic_init_u64(&copied->rest, 0);
}

/*
 * The word that has a page's marks; NULL: there is none.  made: it is made then, if there is memory.  The
 * caller has entered.
 */
pg_atomic_uint32 *
gpuds_side_marks(SideStore *store, BlockNumber block, bool made)
{
	const uint32 chunk = block / SIDE_MARKS_OF_CHUNK;
	uint32 ref = chunk < SIDE_CHUNK_REFS ? gpuds_side_follow(&store->copied.marks, made) : 0;

	if (ref != 0)
		ref = gpuds_side_follow(&side_refs(ref)[chunk], made);
	return ref == 0 ? NULL : &side_refs(ref)[block % SIDE_MARKS_OF_CHUNK / SIDE_MARKS_OF_WORD];
}

/*
 * Makes room for a page's marks; false: there is no memory.  That comes before the page is present: a store
 * that has all memory could not be copied else.  The caller has entered.
 */
bool
gpuds_side_make_marks(SideStore *store, BlockNumber block)
{
	return gpuds_side_marks(store, block, true) != NULL;
}

/* Values have been put into a page: a copy may not have them any more.  The caller has entered. */
void
gpuds_side_unmark(SideStore *store, BlockNumber block)
{
	const uint32 marks = side_mark(block, SIDE_COPIED | SIDE_BEING_COPIED);
	pg_atomic_uint32 *word;

	/* pairs with the mark of gpuds_side_copy_pages, which reads the values after it */
	pg_memory_barrier();
	word = gpuds_side_marks(store, block, false);
	if (word == NULL || (pg_atomic_read_u32(word) & marks) == 0)
		return;
	pg_atomic_fetch_and_u32(word, ~marks);
	pg_atomic_fetch_add_u64(&store->copied.changes, 1);
}
