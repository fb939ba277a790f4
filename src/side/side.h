/*-------------------------------------------------------------------------
 *
 * side.h
 *	  Side values: what rows have in included columns that entries have no room for.
 *
 * The truth about side values is the table.  An index may have a store: a copy of the side values of some
 * pages of its table, in shared memory, found by TID.  It saves visits to the heap, may lack any page, and
 * may be lost at any time.
 *
 * A page of the table is present in a store or absent from it.  A reader that finds it absent reads the page
 * and makes it present (fill.c).  Whoever inserts an entry puts its row's side values in if the page is
 * present (gpuds_side_put), after the row is in the heap and before anybody can find the entry.
 *
 *	  S1	If a page is present, the store has the side values of each row of it that has an entry and
 *			that some snapshot sees or may come to see.
 *
 *			A page becomes present under its buffer's lock.  A row that is in it by then was read with it;
 *			the inserter of a later one finds it present.  A row keeps its TID, and as long as it has an
 *			entry its values: an update of an included column is no HOT update.  The TID of a row that a
 *			snapshot sees is not given away.
 *
 *	  S2	What a chain of HOT updates that is older than the index has at its beginning may not be what
 *			the index was built of.  So a page with a chain whose versions differ in side columns stays
 *			absent.
 *
 *	  S3	A device may have a copy of what the store has of some pages.  The store has a mark for each
 *			page of which the copy is up to date.  If a page is marked after a scan's barrier, the copy
 *			has the side values of each row of it that the scan's snapshot sees.
 *
 *			Who copies marks the page as one that is being copied, and then reads it.  Who puts values in
 *			does that first, and then takes the page's marks away.  So the copy has the values, or the
 *			page loses its mark before the row's entry can be found.  When the device has the page, a
 *			mark that is still there becomes that of a page that is up to date.  A mark belongs to the
 *			copy whose name the store has; a name is given once.
 *
 * What a store has of other TIDs means nothing.  On a standby nobody puts values in, so there are no stores
 * there, nor for temporary tables; their side values are read from the heap.
 *
 * A store is of an index file (file/file.h), and a file has one at most.  Sessions may not agree on the
 * incarnation of their database for a while.  So a reader that finds a store of another incarnation drops it,
 * and whoever inserts puts values into whatever store there is of the locator and file_id.
 *
 * Its memory is in chunks:
 *
 *	  root		one chunk of references to directories
 *	  directory	a chunk of references to parts
 *	  part		the side values of as many pages as fit: for each page a word that says whether it is
 *				present, and the values of offsets 1 to per_page
 *
 * Marks of copies have a directory of their own, which leads to chunks of marks.
 *
 * Rows at higher offsets, and pages behind what a root reaches, are never stored.  If the table's pages have
 * become fuller since (as its statistics say), the store is made anew.
 *
 * Locks.  Who reads or writes a store's memory holds one of the side locks in shared mode, from before the
 * store was found (gpuds_side_enter) until it is through (gpuds_side_leave): a few memory accesses for each
 * row, no I/O, no error.  Who drops a store takes it out of the directory (file/file.h), and then takes and
 * releases each of the side locks in exclusive mode, so that nobody is left who has found it.  A buffer's
 * lock may be held when a side lock is taken, and never the other way round.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SIDE_H
#define GPUDS_SIDE_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "port/atomics.h"
#include "storage/block.h"
#include "utils/rel.h"

#include "file/file.h"
#include "gpuds.h"
#include "key/key.h"

/* store.c */

/*
 * Rows of a page that a store has room for, if pages have so many on the average: updates and deletes leave
 * line pointers behind.
 */
#define GpudsSideRows(rows) (1.25 * (rows) + 16)

/* LWLocks, for RequestNamedLWLockTranche */
#define GPUDS_SIDE_LOCKS 16

extern Size gpuds_side_shmem_size(void);
extern void gpuds_side_shmem_init(void);

/* A store that was found: good for what it says until gpuds_side_leave, a hint thereafter. */
typedef struct GpudsSideRef
{
	int slot; /* negative: there is none */
	uint64 serial;
} GpudsSideRef;

extern void gpuds_side_enter(void);
extern void gpuds_side_leave(void);

/* The caller has entered. */
extern bool gpuds_side_find(const GpudsFile *file, bool writes, GpudsSideRef *ref);
extern void gpuds_side_touch(const GpudsSideRef *ref);
extern void gpuds_side_prefetch(const GpudsSideRef *ref, uint64 tid);
extern const uint8 *gpuds_side_page(const GpudsSideRef *ref, BlockNumber block, int *rows);
extern const uint8 *gpuds_side_get(const GpudsSideRef *ref, uint64 tid);
extern bool gpuds_side_put(const GpudsSideRef *ref, uint64 tid, const uint8 *values);
extern bool gpuds_side_has_place(const GpudsSideRef *ref, uint64 tid);

/* What came of making a page present, or room for it. */
typedef enum GpudsSideFill
{
	GPUDS_SIDE_FILLED,
	GPUDS_SIDE_NO_MEMORY, /* there is no memory */
	GPUDS_SIDE_ABSENT,    /* the page stays absent, by S2 or because it is out of reach */
	GPUDS_SIDE_GONE       /* the store is */
} GpudsSideFill;

/* Where the values of a page's rows belong. */
typedef struct GpudsSidePlace
{
	uint8 *values; /* of offsets 1 to per_page, one after the other */
	int per_page;
	pg_atomic_uint32 *present;
	pg_atomic_uint32 *npresent; /* of the store */
	pg_atomic_uint64 *changes;
} GpudsSidePlace;

extern GpudsSideFill gpuds_side_make_page(const GpudsSideRef *ref, BlockNumber block, GpudsSidePlace *place);
extern void gpuds_side_set_present(const GpudsSidePlace *place);

/* The caller has not. */
extern bool gpuds_side_make(const GpudsFile *file, Relation heap, int bytes, GpudsSideRef *ref);
extern bool gpuds_side_has(const GpudsSideRef *ref, BlockNumber block);
extern bool gpuds_side_free_memory(const GpudsSideRef *ref);
extern bool gpuds_side_is_outgrown(const GpudsSideRef *ref, Relation heap);
extern bool gpuds_side_drop(const GpudsFile *file);
extern bool gpuds_side_is_used(void);

/* What there is to tell of all stores. */
typedef struct GpudsSideReport
{
	int64 stores;
	size_t memory_total; /* bytes */
	size_t memory_used;
} GpudsSideReport;

extern void gpuds_side_report(GpudsSideReport *report);

/* copied.c: copies on devices (S3) */

/* What a copy has room for. */
typedef struct GpudsSideShape
{
	int rows;      /* of a page */
	int row_bytes; /* of a row */
	int64 pages;   /* that are present */
} GpudsSideShape;

/* The caller has entered. */
extern uint64 gpuds_side_copy_name(const GpudsSideRef *ref);
extern bool gpuds_side_wants_copy(const GpudsSideRef *ref, uint64 name);
extern bool gpuds_side_copy_shape(const GpudsSideRef *ref, GpudsSideShape *shape);
extern bool gpuds_side_copy_pages(const GpudsSideRef *ref, const uint32 *blocks, int n, uint8 *to);

/* The caller has not. */
extern bool gpuds_side_copy_begin(const GpudsSideRef *ref);
extern void gpuds_side_copy_end(const GpudsSideRef *ref);
extern uint64 gpuds_side_copy_new(const GpudsSideRef *ref);
extern void gpuds_side_set_copy(const GpudsSideRef *ref, uint64 name);
extern void gpuds_side_copy_rest(const GpudsSideRef *ref);
extern uint64 gpuds_side_changes(const GpudsSideRef *ref);
extern bool gpuds_side_next_uncopied(const GpudsSideRef *ref, BlockNumber *next, uint32 *blocks, int most,
									 int *n);
extern void gpuds_side_set_copied(const GpudsSideRef *ref, const uint32 *blocks, int n);
extern void gpuds_side_all_copied(const GpudsSideRef *ref, uint64 changes);
extern size_t gpuds_side_copied_map(const GpudsSideRef *ref, uint64 name, size_t most, uint8 **map);

/* fill.c */
extern void gpuds_side_of_tuple(HeapTuple tuple, TupleDesc desc, Relation index, const GpudsKeyLayout *layout,
								uint8 *values);
extern GpudsSideFill gpuds_side_fill(const GpudsSideRef *ref, Relation heap, BlockNumber block,
									 Relation index, const GpudsKeyLayout *layout);

#endif /* GPUDS_SIDE_H */
