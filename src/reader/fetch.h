/*-------------------------------------------------------------------------
 *
 * fetch.h
 *	  Rows by lists of TIDs, in the order of the heap.
 *
 * A list comes in pieces (tids.c), each ascending and without duplicates.  The rows that the scan's snapshot
 * sees at its TIDs come out once each (fetch.c):
 *
 *	  F1	The snapshot is an MVCC snapshot.  It sees one row at most of those that a TID leads to, and
 *			that row has the key of the entry that the TID is from.
 *
 *			A HOT update changes no column that an index has anything of, and any other update gives the new
 *			version a TID and entries of its own.  So all rows of one chain have the same key.  A TID is given
 *			away only when VACUUM has appended the tombstone of its entry, or raised the epoch.  If that was
 *			before the barrier, the scan does not find the entry.  If it was later, the row that has the TID
 *			now is so new that the snapshot does not see it, and the row before was not seen either, else
 *			VACUUM would have left it.  Where snapshots expire (old_snapshot_threshold), VACUUM may not
 *			have; cursor.c looks for that when entries are read.
 *
 *	  F2	Two entries with different keys and one TID give one row at most.
 *
 *			By F1 a row that is seen has both keys, or one of the entries is not found.  Entries of two
 *			barriers may have one TID: it was given away in between, and no row is seen there.
 *
 * So nothing has to be remembered from one piece to the next but entries that are found twice, which
 * tids.c sorts out.  Conditions are looked at again only where the scan says so (xs_recheck).  All this
 * is about the barrier of the process that asked for the TIDs and about the snapshot, not about the
 * process that visits the heap: in a parallel plan that is another (shared_tids.h).
 *
 * For SERIALIZABLE, the scan's keys are locked at its barrier, and rows are locked one by one
 * when the heap is searched for them, as in core's scans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_FETCH_H
#define GPUDS_FETCH_H

#include "access/htup_details.h"
#include "access/relscan.h"
#include "executor/tuptable.h"
#include "storage/buf.h"

#include "reader/recheck.h"
#include "reader/row_filter.h"

/* The TIDs of a scan, in pieces. */
typedef struct GpudsTidList
{
	IndexScanDesc scan;
	MemoryContext context; /* of the arrays */
	uint64 *tids;          /* the piece: ascending, all different */
	int64 n;
	int64 size; /* capacity */
	int64 most; /* TIDs of a piece, about */
	bool sorts; /* the device sorts, and lasts */

	GpudsRowFilter *filter; /* that entries must pass, without side values; NULL: none */
	const GpudsKeyLayout *layout;
	bool tests;     /* the device may test what is left: the host has tested some entries */
	int64 filtered; /* entries of the piece that did not pass */

	/* what the memtable said of the batch of intervals that begins with a number, in order; given already */
	int64 turn; /* -1: none */
	uint64 *delta;
	int64 ndelta;
} GpudsTidList;

/* tids.c */
extern void gpuds_tids_init(GpudsTidList *list);
extern int64 gpuds_tids_most(void);
extern void gpuds_tids_begin(GpudsTidList *list, IndexScanDesc scan, int64 most, GpudsRowFilter *filter,
							 const GpudsKeyLayout *layout);
extern bool gpuds_tids_next(GpudsTidList *list);
extern void gpuds_tids_end(GpudsTidList *list);

/* Pages that are pinned before their turn, at most. */
#define GPUDS_PAGES_AHEAD 4

typedef struct GpudsHeapPage
{
	Buffer buffer;
	int64 first; /* its TIDs */
	int64 end;
} GpudsHeapPage;

typedef struct GpudsFetch
{
	IndexScanDesc scan;
	GpudsRecheck *recheck;                     /* that rows must pass; NULL: all do */
	bool is_heap;                              /* else rows are looked up one by one */
	void (*tell_dead)(void *arg, int64 place); /* of TIDs whose rows are dead for everybody; or NULL */
	void *tell_arg;
	const uint64 *tids; /* the piece */
	int64 n;
	int64 next; /* TID behind those of the pages below */

	/* the page whose rows are given, then those that are pinned ahead, in a circle */
	GpudsHeapPage pages[GPUDS_PAGES_AHEAD + 1];
	int page;   /* place of the first one */
	int npages; /* with it */
	int ahead;  /* pages that may be pinned ahead */

	/* pages that the system reads ahead of these */
	int64 read_ahead; /* TID to look at */
	int reading;      /* pages */
	int distance;     /* at most */
	int cached;       /* pages in a row that were in the cache */

	/* of the first page */
	bool checked; /* its rows have passed */
	int nrows;
	int row; /* to give next */
	OffsetNumber rows[MaxHeapTuplesPerPage];
	int64 places[MaxHeapTuplesPerPage]; /* of their TIDs in the list, if there is no recheck */

	uint64 searched; /* TIDs of pages */
	uint64 visited;  /* pages, or rows if they are looked up one by one */
	uint64 removed;  /* rows that have not passed */
} GpudsFetch;

/* fetch.c */
extern bool gpuds_fetch_by_pages(Relation heap);
extern int gpuds_fetch_pins(Relation heap, int most);
extern void gpuds_fetch_init(GpudsFetch *fetch);
extern void gpuds_fetch_begin(GpudsFetch *fetch, IndexScanDesc scan, GpudsRecheck *recheck,
							  const uint64 *tids, int64 n);
extern bool gpuds_fetch_next(GpudsFetch *fetch, TupleTableSlot *slot);
extern void gpuds_fetch_reset(GpudsFetch *fetch);

/* The place in the list of the row of a page that was given last, if there is no recheck. */
static inline int64
gpuds_fetch_place(const GpudsFetch *fetch)
{
	return fetch->places[fetch->row - 1];
}

#endif /* GPUDS_FETCH_H */
