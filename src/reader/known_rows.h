/*-------------------------------------------------------------------------
 *
 * known_rows.h
 *	  What a scan knows of rows by the states of their pages (states/states.h).
 *
 * A scan that must look at rows has a list of them, in the order of the heap.  For some of the next pages at
 * a time it looks whether the page still has the LSN of its state.  If so, the state says what a visit
 * would.  If not, or if there is no state, one is made, if that is worth while: if more than one row of the
 * page is wanted, or if the page was visited before at the same LSN.  A state that holds is made again when
 * all transactions that it has are before the horizon, if it takes long to resolve.
 *
 *	  K1	If a page has the LSN of its state at a moment after the scan's snapshot was taken, then the state
 *			says of each row what a visit to it would find, whenever that is made.
 *
 *			The LSN is looked at without the page's lock, so somebody may have changed the page and not yet
 *			set its LSN.  His transaction is not over then, so the snapshot does not see what he writes, and
 *			sees what he deletes; and a state of the page as it was says so.  Pruning and VACUUM take away
 *			only what no snapshot sees.  All changes of transactions that the snapshot sees were made before
 *			it was taken, and so were their pages' LSNs.
 *
 *			What a snapshot sees does not change while it lives, so what is known is known for the rest of
 *			the scan.  A row that has taken over a TID since is one that the snapshot does not see.
 *
 *	  K2	So I1 to I3 (visible.h) are not needed: what is known is as good as a visit, on a standby as well,
 *			and for entries that are older than the barrier.
 *
 *			That the row which the snapshot sees at a TID has the entry's key is F1 (fetch.h).
 *
 *	  K3	An LSN is two words to PostgreSQL until 18, which a writer may store one after the other.  It is
 *			read as one here.  What is read may have its high word from before and its low word from after the
 *			change; that is another page's LSN only if WAL has passed a multiple of 4 GB in between.  So a
 *			state that is older than that is looked at under the page's lock.
 *
 *	  K4	For SERIALIZABLE, the LSN is looked at under the page's share lock, after the table's predicate
 *			lock has been taken.  A writer looks for such locks while it has the page's exclusive lock:
 *			either it finds ours, or we find its LSN.
 *
 *	  K5	"Dead for everybody" is said only by a state that was looked at after the entry had been read,
 *			that is for the list at hand: else the TID might have a new row.  Such a page is looked at again.
 *
 *	  K6	An LSN is looked at without a pin while the buffer's header is locked: meanwhile no other page can
 *			come into the buffer.  What is read of the page that is there is what K1 to K3 need.
 *
 * What is known is kept in a table of pages, which a device gets with the visibility map
 * (kernels/core/page_rows.h).  Its memory is what a hash table may have; where it does not hold all pages,
 * one that comes later takes the place of another.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KNOWN_ROWS_H
#define GPUDS_KNOWN_ROWS_H

#include "access/relscan.h"
#include "access/visibilitymap.h"

#include "kernels/core/page_rows.h"
#include "states/states.h"

typedef struct GpudsKnownRows
{
	IndexScanDesc scan;
	MemoryContext context; /* of the table */
	bool usable;           /* the table's pages have states */
	bool serializable;
	uint32 now;    /* in seconds, for the cache of states */
	PageRows rows; /* what is known; its arrays are the next two */
	uint32 *places;
	uint32 *pages;
	uint32 *lists;    /* of each page: number of the list that it was looked at for */
	uint32 size;      /* pages that there is room for */
	uint32 next_lost; /* the page that makes room if there may be no more */
	uint32 max_pages;
	uint32 max_slots;
	uint64 least_slots; /* a power of two */
	uint64 least_pages;
	uint32 list;   /* at hand; they are counted from 1 on */
	bool waits;    /* if a device looked at more rows, all pages would be learnt of for it */
	int at_a_time; /* pages that are looked at together next; doubles while no rows are passed over */
	GpudsStateUse use;
} GpudsKnownRows;

extern void gpuds_known_begin(GpudsKnownRows *known, IndexScanDesc scan);
extern void gpuds_known_begin_list(GpudsKnownRows *known);
extern void gpuds_known_pass_over(GpudsKnownRows *known);
extern int64 gpuds_known_learn(GpudsKnownRows *known, const uint64 *words, int64 n, int shift);
extern void gpuds_known_look_again(GpudsKnownRows *known, uint64 word, int shift);
extern bool gpuds_known_is_of_list(const GpudsKnownRows *known, uint64 tid);
extern bool gpuds_known_may_learn_all(const GpudsKnownRows *known, BlockNumber blocks, double rows,
									  size_t bytes);
extern void gpuds_known_learn_pages(GpudsKnownRows *known, const unsigned char *map, BlockNumber blocks,
									double rows, size_t bytes);
extern uint64 gpuds_known_count_others(const unsigned char *map, BlockNumber blocks);
extern void gpuds_known_end(GpudsKnownRows *known);

/*
 * Does a part of the visibility map, if there is one, call a page all-visible, whose number it counts from 0?
 */
static inline bool
gpuds_map_is_set(const unsigned char *bits, BlockNumber block)
{
	return bits && (((const volatile unsigned char *) bits)[block / 4] >> (block % 4 * 2)) &
					   VISIBILITYMAP_ALL_VISIBLE;
}

/* What is known of the row at a TID. */
static inline PageRow
gpuds_known_row(const GpudsKnownRows *known, uint64 tid)
{
	return page_rows_find(&known->rows, tid);
}

#endif /* GPUDS_KNOWN_ROWS_H */
