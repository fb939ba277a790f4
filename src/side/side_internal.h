/*-------------------------------------------------------------------------
 *
 * side_internal.h
 *	  What the files here share: a store's memory, and how a page is found in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SIDE_INTERNAL_H
#define GPUDS_SIDE_INTERNAL_H

#include "side/side.h"
#include "side/side_chunks.h"

/* What a page takes in a part beside its values: the word that says whether it is present. */
#define SIDE_PRESENT_BYTES MAXIMUM_ALIGNOF

/* A copy of a store on a device (S3). */
typedef struct SideCopied
{
	pg_atomic_uint64 name;    /* 0: there is none */
	pg_atomic_uint32 copier;  /* 1: somebody has the right to copy */
	pg_atomic_uint32 marks;   /* reference to a directory of chunks of marks, two bits a page */
	pg_atomic_uint32 pages;   /* the highest page that was ever copied, and one */
	pg_atomic_uint32 present; /* pages of the store that are present */
	pg_atomic_uint64
		changes;           /* pages that have become present, or whose copies are not up to date any more */
	pg_atomic_uint64 seen; /* ... by the time when all were copied last */
	pg_atomic_uint64 rest; /* there was no memory: nobody copies before then, ms */
} SideCopied;

typedef struct SideStore
{
	pg_atomic_uint64 serial; /* 0: not in the directory */
	GpudsFile file;
	uint32 root;
	uint16 bytes;      /* of the side values of a row */
	uint16 per_page;   /* rows of a page that there is room for */
	uint16 page_bytes; /* of a part, for a page: SIDE_PRESENT_BYTES and the values */
	uint16 pages_of_part;
	uint64 inverse;        /* of pages_of_part: see side_position */
	pg_atomic_uint64 used; /* when it was read last, ms */
	SideCopied copied;
} SideStore;

/* store.c */
extern SideStore *gpuds_side_store(const GpudsSideRef *ref);
extern uint64 gpuds_side_now_ms(void);
extern uint64 gpuds_side_name_copy(void);

/* side_marks.c */
extern void gpuds_side_init_copied(SideStore *store);
extern pg_atomic_uint32 *gpuds_side_marks(SideStore *store, BlockNumber block, bool made);
extern bool gpuds_side_make_marks(SideStore *store, BlockNumber block);
extern void gpuds_side_unmark(SideStore *store, BlockNumber block);

/*
 * Marks of a page, two bits in words of 16 pages: the lower one as a device wants it (request.h).
 */
#define SIDE_COPIED 1u
#define SIDE_BEING_COPIED 2u
#define SIDE_MARKS_OF_WORD 16
#define SIDE_MARKS_OF_CHUNK (SIDE_CHUNK_REFS * SIDE_MARKS_OF_WORD)

/* A mark in its place. */
static inline uint32
side_mark(BlockNumber block, uint32 mark)
{
	return mark << (block % SIDE_MARKS_OF_WORD * 2);
}

static inline pg_atomic_uint32 *
side_refs(uint32 ref)
{
	return (pg_atomic_uint32 *) gpuds_side_chunk(ref);
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
side_position(const SideStore *store, BlockNumber block)
{
	SidePosition at;

	at.part = store->pages_of_part == 1 ? block
										: (uint32) (((unsigned __int128) store->inverse * block) >> 64);
	at.page = block - at.part * store->pages_of_part;
	return at;
}

static inline bool
side_is_in_reach(const SidePosition *at)
{
	return at->part / SIDE_CHUNK_REFS < SIDE_CHUNK_REFS;
}

/* The part, or NULL. */
static inline char *
side_part(const SideStore *store, const SidePosition *at, bool made)
{
	uint32 ref;

	if (!side_is_in_reach(at))
		return NULL;
	ref = gpuds_side_follow(&side_refs(store->root)[at->part / SIDE_CHUNK_REFS], made);
	if (ref != 0)
		ref = gpuds_side_follow(&side_refs(ref)[at->part % SIDE_CHUNK_REFS], made);
	return ref == 0 ? NULL : gpuds_side_chunk(ref);
}

static inline pg_atomic_uint32 *
side_present(const SideStore *store, char *part, const SidePosition *at)
{
	return (pg_atomic_uint32 *) (part + (size_t) at->page * store->page_bytes);
}

/* Behind that word, so that looking at both takes one translation of an address, as a rule. */
static inline uint8 *
side_values(const SideStore *store, char *part, const SidePosition *at)
{
	return (uint8 *) side_present(store, part, at) + SIDE_PRESENT_BYTES;
}

#endif /* GPUDS_SIDE_INTERNAL_H */
