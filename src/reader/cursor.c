/*-------------------------------------------------------------------------
 *
 * cursor.c
 *	  The steps of an index scan (see cursor.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "access/relscan.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "insert/insert.h"
#include "journal/journal.h"
#include "reader/cursor.h"
#include "reader/reader.h"

/* Is the row of an entry one that was asked for, as far as the executor will not look?  tid: the entry's. */
bool
gpuds_cursor_passes_check(IndexScanDesc scan, GpudsCursor *cursor, uint64 tid)
{
	if (!cursor->checks)
		return true;
	if (cursor->recheck == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(cursor->key_context);

		cursor->recheck = gpuds_recheck_begin(scan->indexRelation, &cursor->info.layout, scan->keyData,
											  scan->numberOfKeys, !IsMVCCSnapshot(scan->xs_snapshot));
		MemoryContextSwitchTo(old);
	}
	return gpuds_recheck_tid(cursor->recheck, scan->xs_snapshot, tid);
}

/* Hands on what is known of the chunk's dead entries. */
void
gpuds_cursor_hand_on_killed(GpudsCursor *cursor)
{
	gpuds_probe_kill(&cursor->ref, cursor->killed, cursor->nkilled);
	cursor->nkilled = 0;
}

/* Gives back what belongs to the keys. */
void
gpuds_cursor_forget_keys(GpudsCursor *cursor)
{
	if (cursor->recheck)
		gpuds_recheck_end(cursor->recheck);
	cursor->recheck = NULL;
	cursor->checks = false;
	MemoryContextReset(cursor->key_context);
}

/* Nothing has been read of the scan's set. */
void
gpuds_cursor_restart(GpudsCursor *cursor, bool mvcc)
{
	if (mvcc)
		gpuds_fallback_next_keys(cursor->fallback);
	else
		gpuds_fallback_reset(cursor->fallback);
	cursor->synced = false;
	cursor->place = GPUDS_PLACE_START;
	cursor->nchunk = cursor->at = 0;
	cursor->mark.place = GPUDS_PLACE_START;
	cursor->orders = false;
	cursor->reads_all = false;
}

/*
 * Does the planner ask where the index ends?  Only the planner, since 18, wants rows with a snapshot that is
 * not an MVCC snapshot.  It looks at the heap itself, and what it gets is a hint.
 */
bool
gpuds_is_planners(IndexScanDesc scan)
{
	return scan->xs_want_itup && !IsMVCCSnapshot(scan->xs_snapshot);
}

/* Can the mirror's device sort the TIDs that the scan wants? */
bool
gpuds_cursor_device_sorts(const GpudsCursor *cursor)
{
	return cursor->set.filter == NULL && gpuds_probe_sorts_tids(&cursor->ref);
}

/*
 * Locks what the scan is about to read (index/predicate.c).  What was read of the journal before, for a hint
 * or for other keys, is not asked, but read once more, with a lock on the whole index.
 */
static void
lock_keys(IndexScanDesc scan, GpudsCursor *cursor)
{
	if (!cursor->index_locked && gpuds_fallback_has_some(cursor->fallback))
	{
		gpuds_fallback_reset(cursor->fallback);
		PredicateLockRelation(scan->indexRelation, scan->xs_snapshot);
		cursor->index_locked = true;
	}
	if (!cursor->index_locked)
		cursor->index_locked = gpuds_index_lock_keys(scan->indexRelation, &cursor->info.layout, &cursor->set,
													 scan->xs_snapshot);
}

/*
 * Locks the scan's keys for SERIALIZABLE, and makes sure that all that the snapshot may see is in the mirror,
 * or says that the journal answers.  A scan that has all of the journal's entries at hand needs
 * neither, and leaves them only for a mirror that others have loaded.
 */
void
gpuds_cursor_barrier(IndexScanDesc scan, GpudsCursor *cursor, int64 weight)
{
	pgstat_count_index_scan(scan->indexRelation);
	GpudsCountSearch(scan);
	cursor->counters.scans++;
	cursor->counters.probes += cursor->set.total;
	if (IsolationIsSerializable() && !cursor->hint)
		lock_keys(scan, cursor);
	/* for the planner, which is given a hint, no row is checked before its statement ends */
	if (!gpuds_is_planners(scan) || !scan->indexRelation->rd_index->indisunique)
		gpuds_insert_before_search(scan->indexRelation, scan->xs_snapshot);
	if (!gpuds_is_planners(scan))
		gpuds_injection_point("scan-before-probe");
	if (gpuds_fallback_has_all(cursor->fallback) && !gpuds_mirror_present(&cursor->source))
		cursor->ref.mirror = NULL;
	else
	{
		cursor->ref.intervals = weight;
		gpuds_mirror_sync(&cursor->source, &cursor->ref);
	}
	gpuds_mirror_count(&cursor->ref, 1, 0, cursor->set.total, 0);
	cursor->fetch = gpuds_probe_sizes(&cursor->ref)->first;
	cursor->synced = true;
}

static void
scan_from_start(GpudsCursor *cursor, bool forward)
{
	gpuds_probe_forget(&cursor->ref);
	cursor->scan.intervals = cursor->set.intervals;
	cursor->scan.points = cursor->set.points;
	cursor->scan.n = cursor->set.nintervals;
	cursor->scan.next = forward ? 0 : cursor->set.nintervals;
	cursor->scan.inside = false;
}

/* Turns to the batch of intervals that has the one of a number. */
static bool
turn_to(GpudsCursor *cursor, int64 number)
{
	if (!gpuds_key_set_turn(&cursor->set, number))
		return false;
	gpuds_fallback_next_keys(cursor->fallback);
	return true;
}

/* Goes on with the next batch in the scan's direction; false: this was the last one. */
bool
gpuds_cursor_next_batch(GpudsCursor *cursor)
{
	if (!turn_to(cursor,
				 cursor->forward ? cursor->set.first + cursor->set.nintervals : cursor->set.first - 1))
		return false;
	scan_from_start(cursor, cursor->forward);
	cursor->nchunk = cursor->at = 0;
	cursor->end = false;
	return true;
}

/* Sets the scan up to go on behind the entry that it stands on, which the interval of a number has. */
static void
scan_behind_current(GpudsCursor *cursor, int64 number)
{
	cursor->scan.inside = true;
	cursor->scan.at = cursor->current;
	cursor->scan.next = number - cursor->set.first + (cursor->forward ? 0 : 1);
}

/*
 * Sets the scan up to go on from its place in a direction, without a chunk.
 */
void
gpuds_cursor_from_place(GpudsCursor *cursor, bool forward)
{
	int64 number = 0; /* of the interval to go on with */

	cursor->forward = forward;
	cursor->nchunk = cursor->at = 0;
	cursor->end = false;
	switch (cursor->place)
	{
		case GPUDS_PLACE_START:
			number = forward ? 0 : cursor->set.total - 1;
			break;
		case GPUDS_PLACE_BEFORE:
			cursor->end = !forward;
			break;
		case GPUDS_PLACE_AFTER:
			number = cursor->set.total - 1;
			cursor->end = forward;
			break;
		case GPUDS_PLACE_ON:
			number = gpuds_key_set_find(&cursor->set, &cursor->current);
			break;
	}
	(void) turn_to(cursor, number);
	scan_from_start(cursor, forward);
	if (cursor->place == GPUDS_PLACE_ON)
		scan_behind_current(cursor, number);
}

/*
 * Where snapshots expire, a bulk delete may have removed entries that an old one should have
 * found: an error then.  To be called when entries have been read.
 */
void
gpuds_cursor_check_snapshot(IndexScanDesc scan)
{
	Snapshot snapshot = scan->xs_snapshot;

	if (GpudsSnapshotsExpire() && IsMVCCSnapshot(snapshot) &&
		!XLogRecPtrIsInvalid(GpudsSnapshotLSN(snapshot)) &&
		gpuds_journal_bulk_deleted_since(scan->indexRelation, GpudsSnapshotLSN(snapshot)))
		GpudsRejectOldSnapshot(snapshot, scan->indexRelation);
}

/* What answers a scan: the bits of answered_by. */
static uint32
answers_by(const GpudsMirrorRef *ref)
{
	GpudsDeviceKind kind;

	if (ref->mirror == NULL)
		return GPUDS_ANSWERED_BY_JOURNAL;
	kind = ref->mirror->tree.kind;
	if (gpuds_device_cards(kind) == 1)
		return GpudsAnsweredBy(kind);
	return GpudsAnsweredBy(kind) | GpudsAnsweredByCards(gpuds_device_places(&ref->mirror->tree));
}

/* Notes who answered with how many entries, and what a device has done for it. */
void
gpuds_cursor_note_answer(GpudsCursor *cursor, const GpudsDeviceWork *before, int64 n)
{
	GpudsScanCounters *counters = &cursor->counters;

	counters->calls++;
	counters->entries += n;
	counters->answered_by |= answers_by(&cursor->ref);
	counters->bus_bytes += gpuds_device_work.bus_bytes - before->bus_bytes;
	counters->device_ns += gpuds_device_work.device_ns - before->device_ns;
}

/*
 * Replaces the chunk by the next entries of the batch, cursor->fetch at most, and sets cursor->end if there
 * are no more; cursor->fetch grows.  The barrier has been passed.  Hands on the former chunk's dead entries
 * first.  Raises an error if the snapshot may have expired.
 */
void
gpuds_cursor_fetch(IndexScanDesc scan, GpudsCursor *cursor)
{
	const GpudsDeviceWork before = gpuds_device_work;
	const GpudsProbeSizes *sizes;

	gpuds_cursor_hand_on_killed(cursor);
	if (cursor->chunk_size < cursor->fetch)
	{
		cursor->chunk = repalloc(cursor->chunk, cursor->fetch * sizeof(GpudsEntry));
		cursor->chunk_size = cursor->fetch;
	}
	cursor->nchunk = gpuds_probe(&cursor->source, &cursor->ref, cursor->fallback, &cursor->scan,
								 cursor->forward, cursor->chunk, cursor->fetch, &cursor->end);
	gpuds_cursor_note_answer(cursor, &before, cursor->nchunk);
	gpuds_cursor_check_snapshot(scan);
	cursor->at = 0;
	cursor->chunk_serial++;
	sizes = gpuds_probe_sizes(&cursor->ref);
	if (cursor->fetch < sizes->small)
		cursor->fetch = sizes->small;
	else
		cursor->fetch = Min(cursor->fetch * sizes->growth, sizes->most);
	if (!gpuds_is_planners(scan))
		gpuds_injection_point("scan-probed");
}

/* Fetches the chunk behind the one at hand; false: there are no more entries. */
bool
gpuds_cursor_next_chunk(IndexScanDesc scan, GpudsCursor *cursor)
{
	if ((cursor->end || cursor->scan.n == 0) && !gpuds_cursor_next_batch(cursor))
		return false;
	CHECK_FOR_INTERRUPTS();
	gpuds_cursor_fetch(scan, cursor);
	return true;
}

/*
 * Moves a scan that has begun on to an entry in its direction.  What the memtable has said serves all that
 * is ahead in the same batch of intervals.
 */
void
gpuds_cursor_move_to_current(GpudsCursor *cursor)
{
	const int64 number = gpuds_key_set_find(&cursor->set, &cursor->current);

	if (turn_to(cursor, number))
		scan_from_start(cursor, cursor->forward);
	cursor->end = false;
	scan_behind_current(cursor, number);
}

/*
 * A query's bitmap and keys take some ten megabytes.  By default glibc's malloc
 * gives them back at the end, and half of the time that the next query's bitmap
 * takes goes into getting new pages.  Its own dynamic thresholds would end at
 * these values.
 */
void
gpuds_keep_freed_memory(void)
{
#ifdef __GLIBC__
	static bool done = false;

	if (!done)
	{
		done = true;
		mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
		mallopt(M_TRIM_THRESHOLD, 64 * 1024 * 1024);
	}
#endif
}
