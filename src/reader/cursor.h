/*-------------------------------------------------------------------------
 *
 * cursor.h
 *	  The state of an index scan: its keys as intervals, its place among the entries, and
 *	  the chunk of entries at hand.
 *
 * Between calls, a scan holds only the entries of its current chunk and the entry it
 * stands on.  It continues behind that entry in whatever version of the mirror is current
 * then.  With an MVCC snapshot that is enough: what the snapshot sees was in the mirror at
 * the barrier and stays there while the snapshot lives; the heap rejects whatever else
 * appears.
 *
 * Other snapshots do not forgive a TID that was vacuumed and reused between probe and heap
 * visit, so scans with them ask for a recheck.
 *
 * Intervals come in batches (key/key.h), in the scan's direction; the entries of a chunk belong
 * to one batch.  If there is no mirror, the journal answers (mirror/fallback.c), and what was read
 * of it is kept from one rescan to the next.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CURSOR_H
#define GPUDS_CURSOR_H

#include "index/index.h"
#include "mirror/mirror.h"
#include "reader/reader.h"
#include "reader/recheck.h"

/* Entries that a chunk has room for to begin with. */
#define GPUDS_FIRST_CHUNK_SIZE 64

/* Entries that a first chunk has at most where there are many keys. */
#define GPUDS_MAX_FIRST_CHUNK 4096

/* Keys of a scan whose memory is worth keeping for the next one, at least. */
#define GPUDS_MANY_KEYS (64 * 1024)

typedef enum GpudsPlace
{
	GPUDS_PLACE_START,  /* nothing fetched yet */
	GPUDS_PLACE_BEFORE, /* before the first entry */
	GPUDS_PLACE_ON,     /* on the current entry */
	GPUDS_PLACE_AFTER   /* behind the last entry */
} GpudsPlace;

typedef struct GpudsMark
{
	GpudsPlace place;
	GpudsEntry current;
	uint64 chunk_serial;
	int64 at;
} GpudsMark;

typedef struct GpudsValueOrder GpudsValueOrder;

typedef struct GpudsCursor
{
	GpudsIndexInfo info;
	GpudsMirrorSource source;
	GpudsMirrorRef ref;
	GpudsFallback *fallback;

	MemoryContext key_context; /* of set and recheck */
	GpudsKeySet set;
	GpudsRecheck *recheck; /* what looks at rows before they are given; NULL: nothing does yet */
	bool checks;           /* rows are looked at so (recheck.h) */
	bool orders;           /* entries may not tell the order of rows, which order has then (value_order.h) */
	bool reads_all;        /* a parallel scan that orders: no other participant reads */
	bool synced;           /* barrier passed since the last rescan */
	bool index_locked;     /* for SERIALIZABLE, as a whole */
	bool hint;             /* no answer depends on what is read: it needs no locks */

	GpudsPlace place;
	GpudsEntry current; /* if place is GPUDS_PLACE_ON */

	GpudsScan scan; /* of the set's batch; goes on behind the chunk */
	bool forward;   /* direction of chunk and scan */
	bool end;       /* nothing of the batch behind the chunk */
	GpudsEntry *chunk;
	int64 chunk_size;
	int64 nchunk;
	int64 at;            /* next entry of the chunk to return */
	int64 fetch;         /* entries to fetch next time */
	uint64 chunk_serial; /* names the chunk's contents */
	GpudsMark mark;

	GpudsEntry *killed; /* entries of the chunk whose rows are dead for everybody */
	int nkilled;

	GpudsIndexOnly *only;   /* of a scan that returns rows, or NULL */
	GpudsValueOrder *order; /* of one that puts rows in order, or NULL */

	GpudsScanCounters counters;
} GpudsCursor;

extern bool gpuds_cursor_passes_check(IndexScanDesc scan, GpudsCursor *cursor, uint64 tid);
extern void gpuds_cursor_hand_on_killed(GpudsCursor *cursor);
extern void gpuds_cursor_forget_keys(GpudsCursor *cursor);
extern void gpuds_cursor_restart(GpudsCursor *cursor, bool mvcc);
extern bool gpuds_is_planners(IndexScanDesc scan);
extern bool gpuds_cursor_device_sorts(const GpudsCursor *cursor);
extern void gpuds_cursor_barrier(IndexScanDesc scan, GpudsCursor *cursor, int64 weight);
extern bool gpuds_cursor_next_batch(GpudsCursor *cursor);
extern void gpuds_cursor_from_place(GpudsCursor *cursor, bool forward);
extern void gpuds_cursor_check_snapshot(IndexScanDesc scan);
extern void gpuds_cursor_note_answer(GpudsCursor *cursor, const GpudsDeviceWork *before, int64 n);
extern void gpuds_cursor_fetch(IndexScanDesc scan, GpudsCursor *cursor);
extern bool gpuds_cursor_next_chunk(IndexScanDesc scan, GpudsCursor *cursor);
extern void gpuds_cursor_move_to_current(GpudsCursor *cursor);
extern void gpuds_keep_freed_memory(void);

#endif /* GPUDS_CURSOR_H */
