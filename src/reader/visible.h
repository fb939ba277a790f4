/*-------------------------------------------------------------------------
 *
 * visible.h
 *	  What a scan's snapshot sees of the rows that its entries lead to.
 *
 * The visibility map answers for most rows without a visit to the heap.  It may be wrong
 * for an entry whose row was dead when the scan began: VACUUM removes the row between probe and
 * look at the map, and calls the page all-visible thereafter.  nbtree keeps VACUUM waiting for the
 * scan's pin on a leaf.  Here nobody waits.  VACUUM counts: the counter of bulk deletes moves
 * when the row's tombstone has been appended, or the epoch raised, and before the page can become
 * all-visible.
 * A scan reads the counter before its barrier, looks at the map itself, and reads the counter
 * again:
 *
 *	  I1	If the map calls a page all-visible after the entry was read, and then the counter
 *			is what it was before the barrier, then the entry's row is visible to all.
 *
 *			Else the row is gone or dead, or so new that the snapshot does not see it.  A page
 *			with a new row is not all-visible, and cannot become so while the snapshot lives, not
 *			by a query either (since 19 queries set pages all-visible that they prune).
 *			A page with a dead row, or with what VACUUM's first pass leaves of it, is not
 *			all-visible; so VACUUM has been through with it.  Its bulk delete either counted
 *			after the barrier, which the second reading shows, or before the barrier, and then
 *			the entry's tombstone was there for the scan to find.
 *
 * A device that counts entries itself has a copy of the map that was made before:
 *
 *	  I2	If all pages that the copy calls all-visible still are, by a look at the map after the entries
 *			were read, and then the counter is what it was before the barrier, then I1 holds for
 *			what the device has counted.
 *
 *			If it calls none so, nothing is counted by it, and neither look matters: what has been counted
 *			has been by what is known of pages (K1).
 *
 *	I3	If the copy calls all pages of the heap all-visible, and the heap has not grown by the time of
 *			that look, then I2 holds for all entries that were read.
 *
 *			An entry is made when its row has a page, so none of them leads to another page.
 *
 * A graph is begun before it is made (device/device.h), and so it may be known of what version of a tree:
 *
 *	I5	If what the device has counted is of a version that was there before the copy was made, and then the
 *			counter is what it was before the barrier, then I1 holds for it.
 *
 *			All entries of the version were there to be read before that look at the map, and a version does
 *			not change.  Neither what becomes of the map afterwards matters, nor that the heap grows.
 *
 * All other rows are looked up with the scan's snapshot, which must be an MVCC snapshot: by the states of
 * their pages (known_rows.h), or in the heap.  A look at the map that core takes later can do no harm: a row
 * that such a snapshot sees is not removed, and its TID not given away, while the snapshot lives.
 *
 * For SERIALIZABLE, rows that are not looked up have no predicate locks of their own.  So an answer without
 * rows looks up its first rows one by one, where core locks them, and has the table locked if there are more:
 *
 *	  I4	Before the map or a page's state is asked about a row for such an answer, the table is locked.
 *
 *			When the entry was read does not matter.  A writer that has found no lock changes the page before
 *			it lets the page's lock go: its LSN says so, and the map, but for the moment between the writer's
 *			look for locks and its change of the map, which core's index-only scans do not see, either.
 *
 * On a standby nobody counts, and entries of the journal (mirror/fallback.c) may be older than
 * the barrier: there every row is looked up.  So it is where snapshots expire, and VACUUM removes
 * rows that they see.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_VISIBLE_H
#define GPUDS_VISIBLE_H

#include "access/genam.h"
#include "access/relscan.h"
#include "executor/tuptable.h"
#include "storage/buf.h"

#include "memtable/memtable.h"
#include "reader/known_rows.h"
#include "reader/reader.h"

/* Pages of the visibility map that are kept pinned: each is of 255 MB of the heap. */
#define GPUDS_MAP_PAGES 64

typedef struct GpudsMapPage
{
	uint32 number; /* of the page; valid if buffer is */
	Buffer buffer;
	const unsigned char *bits; /* two a heap page; the lower one says that all is visible */
} GpudsMapPage;

/* Dead entries that are remembered before they are handed on. */
#define GPUDS_MAX_KILLED 128

/* Pages of the heap that have been asked for ahead of their visit. */
typedef struct GpudsReadAhead
{
	bool begun;   /* for the list at hand */
	int distance; /* pages, at most */
	int pages;    /* from the current one on */
	int64 next;   /* row to look at */
	int64 last;   /* row that was visited last */
} GpudsReadAhead;

typedef struct GpudsVisible
{
	IndexScanDesc scan;
	bool counts;         /* the counter means something */
	uint64 bulk_deletes; /* as of the barrier */
	BlockNumber blocks;  /* of the heap, when the map was copied */
	bool map_changed;    /* under a device that had a copy of it */
	bool no_map;         /* the last copy calls no page all-visible (I2) */
	GpudsMapPage map[GPUDS_MAP_PAGES];
	bool locks_rows;      /* I4: the table is not locked yet */
	int64 locked;         /* rows that are locked one by one, at most */
	TupleTableSlot *slot; /* NULL: not needed yet */
	int64 fetches;        /* rows that were looked up */
	int64 asked;          /* keys that a device was asked about (membership.c) ... */
	double keys;          /* ... and that it will be, as the caller expects; 0: nobody knows */
	GpudsKnownRows known; /* by the states of their pages */
	int64 learned;        /* rows of the list at hand whose pages have been looked at */
	MemoryContext context;

	/* rows to be looked up in the order of the heap: TIDs and numbers of entries */
	uint64 *order;
	int64 norder;
	int64 order_size;
	GpudsReadAhead ahead;

	/* what it takes to kill the entries of the piece at hand; no memtable if it came by several marks */
	GpudsKillMark kill_mark;
	bool has_mark;
	int nkilled;
	GpudsEntry killed[GPUDS_MAX_KILLED]; /* last, because it is not initialized */
} GpudsVisible;

/* Entries of a piece, at most: their numbers have this many bits. */
#define GPUDS_PIECE_BITS 16
#define GPUDS_PIECE_ENTRIES (1 << GPUDS_PIECE_BITS)

extern void gpuds_visible_begin(GpudsVisible *visible, IndexScanDesc scan);
extern void gpuds_visible_lock(GpudsVisible *visible);
extern void gpuds_visible_before_barrier(GpudsVisible *visible);
extern bool gpuds_visible_to_all(GpudsVisible *visible, uint64 tid);
extern void gpuds_visible_mark(GpudsVisible *visible, const GpudsScanBatch *batch, bool *to_all);
extern void gpuds_visible_tell_device(GpudsVisible *visible, double rows, GpudsCountSpec *spec);
extern bool gpuds_visible_map_holds(GpudsVisible *visible, const unsigned char *map, size_t bytes, bool full);
extern bool gpuds_visible_version_holds(const GpudsVisible *visible);
extern bool gpuds_visible_in_heap(GpudsVisible *visible, uint64 tid, bool *dead);
extern bool gpuds_visible_is_known(GpudsVisible *visible, uint64 tid, bool *seen, bool *dead);

/*
 * A piece of a scan, whose entries the caller keeps.  begin_piece; add_to_piece for each batch that it has
 * entries of; then order and, for each place in that order, look_up, or sees where the row itself is not
 * wanted; end_piece.
 */
extern void gpuds_visible_begin_piece(GpudsVisible *visible);
extern void gpuds_visible_add_to_piece(GpudsVisible *visible, const GpudsScanBatch *batch);
extern void gpuds_visible_order(GpudsVisible *visible, uint64 tid, int64 number);
extern void gpuds_visible_sort_order(GpudsVisible *visible);
extern void gpuds_visible_read_ahead(GpudsVisible *visible, int64 place);
extern bool gpuds_visible_look_up(GpudsVisible *visible, int64 place, const GpudsEntry *entry);
extern void gpuds_visible_note_dead(GpudsVisible *visible, const GpudsEntry *entry);
extern bool gpuds_visible_sees(GpudsVisible *visible, int64 place, const GpudsEntry *entry);
extern void gpuds_visible_end_piece(GpudsVisible *visible);

/* The slot of the rows that are looked up. */
extern TupleTableSlot *gpuds_visible_slot(GpudsVisible *visible);

/* The number of the entry at a place in the order of the heap. */
static inline int64
gpuds_visible_at(const GpudsVisible *visible, int64 place)
{
	return (int64) (visible->order[place] & (GPUDS_PIECE_ENTRIES - 1));
}

/* Lets the row that was looked up last go. */
static inline void
gpuds_visible_forget_row(GpudsVisible *visible)
{
	if (visible->slot)
		ExecClearTuple(visible->slot);
}

/* row_count.c */
extern bool gpuds_scan_is_worth_a_map(IndexScanDesc scan, double expected);
extern bool gpuds_scan_ask_device(IndexScanDesc scan, GpudsVisible *visible, double expected,
								  GpudsCountSpec *spec, GpudsCounted *counted);
extern bool gpuds_scan_ask_intervals(IndexScanDesc scan, GpudsVisible *visible, double expected,
									 const GpudsInterval *intervals, int64 n, GpudsCountSpec *spec,
									 GpudsCounted *counted);
extern void gpuds_scan_take_count(IndexScanDesc scan, const GpudsCounted *counted);
extern bool gpuds_scan_count_on_device(IndexScanDesc scan, GpudsVisible *visible, double expected,
									   GpudsCountSpec *spec, GpudsCounted *counted);

/*
 * Which of a scan's intervals have entries whose rows are visible to all.  hits[i] = true is reliable
 * unless one of the delta lies in interval i; false is reliable unless any of the others does.
 */
typedef struct GpudsMembership
{
	bool *hits;         /* of each interval; the caller's array */
	GpudsEntry *others; /* entries that the device is not sure of, in no order; NULL: none */
	int64 nothers;
	int64 ndelta; /* of these, which come first, are of the delta: the memtable has the last word on them */
} GpudsMembership;

extern bool gpuds_scan_test_membership(IndexScanDesc scan, GpudsVisible *visible, int64 n,
									   GpudsMembership *hits);

/* membership.c */
extern bool gpuds_membership_find(IndexScanDesc scan, GpudsVisible *visible, const GpudsKeyProbe *probe,
								  GpudsEntry *probes, int64 *n, int64 weight, bool *answers);
extern bool gpuds_membership_find_words(IndexScanDesc scan, GpudsVisible *visible, const GpudsKeyProbe *probe,
										const uint64 *words, int64 n, int64 weight, bool *answers,
										uint32 *left, int64 *nleft);

/*
 * side_reader.c: the side values (side/side.h) of rows that the scan's snapshot sees.
 */
typedef struct GpudsSideReader
{
	GpudsVisible *visible;
	const GpudsKeyLayout *layout;
	GpudsFile file;
	bool stored;                    /* the index may have a store */
	BlockNumber absent;             /* page that stayed absent last */
	int without_memory;             /* rows that are read from the heap before memory is asked for again */
	uint32 asked;                   /* rows that were asked for one by one */
	uint8 values[GPUDS_SIDE_BYTES]; /* of the row that was asked for last */
} GpudsSideReader;

extern void gpuds_side_reader_begin(GpudsSideReader *reader, GpudsVisible *visible,
									const GpudsKeyLayout *layout);
extern const uint8 *gpuds_side_reader_row(GpudsSideReader *reader, const GpudsEntry *entry,
										  const GpudsEntry *ahead);
extern void gpuds_side_reader_piece(GpudsSideReader *reader, const GpudsEntry *entries, int64 n,
									uint8 *values);

extern int64 gpuds_visible_count_in_heap(GpudsVisible *visible, uint64 *tids, int64 n);
extern void gpuds_visible_reset(GpudsVisible *visible);
extern void gpuds_visible_end(GpudsVisible *visible);

#endif /* GPUDS_VISIBLE_H */
