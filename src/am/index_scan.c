/*-------------------------------------------------------------------------
 *
 * index_scan.c
 *	  Core's index scans: a cursor (reader/cursor.h) gives its entries one by one.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "pgstat.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/shared_scan.h"
#include "index/index.h"
#include "reader/cursor.h"
#include "reader/reader.h"
#include "reader/value_order.h"
#include "reader/visible.h"
#include "warm_memory.h"

/*
 * ambeginscan.  Only allocates, in the current memory context, and reads the metapage if the relcache does
 * not have it.  Neither the mirror nor the device is asked before entries are wanted.  There are no ordering
 * operators.
 */
IndexScanDesc
gpuds_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	GpudsCursor *cursor = palloc0(sizeof(GpudsCursor));

	gpuds_keep_warm_memory();
	cursor->info = *gpuds_index_info(index);
	cursor->source.index = index;
	cursor->source.layout = &cursor->info.layout;
	cursor->source.file_id = cursor->info.file_id;
	cursor->source.fillfactor = GpudsGetFillfactor(index);
	cursor->key_context = AllocSetContextCreate(CurrentMemoryContext, "gpuds scan keys",
												ALLOCSET_SMALL_SIZES);
	cursor->fallback = gpuds_fallback_begin();
	cursor->ref.delta.context = CurrentMemoryContext;
	cursor->chunk_size = GPUDS_FIRST_CHUNK_SIZE;
	cursor->chunk = palloc(cursor->chunk_size * sizeof(GpudsEntry));
	scan->opaque = cursor;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

/* The row of the entry that the scan stands on is dead for everybody. */
static void
kill_current(GpudsCursor *cursor)
{
	if (cursor->killed == NULL)
		cursor->killed = MemoryContextAlloc(cursor->ref.delta.context, GPUDS_MAX_KILLED * sizeof(GpudsEntry));
	if (cursor->nkilled == GPUDS_MAX_KILLED)
		gpuds_cursor_hand_on_killed(cursor);
	cursor->killed[cursor->nkilled++] = cursor->current;
}

/*
 * amrescan.  Makes intervals of the keys, or of those set before if keys is NULL; the barrier is passed
 * later.  With an MVCC snapshot, what was sorted of the journal stays for the new keys.  With any other one
 * it is dropped, and rows are rechecked unless the planner asks: a TID may be reused between probe and
 * visit.  Rows are also rechecked where codes do not decide, unless the scan itself compares the values, as
 * it does for a snapshot that is none where core would not look (reader/recheck.h).
 */
void
gpuds_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	GpudsCursor *cursor = scan->opaque;
	const bool mvcc = IsMVCCSnapshot(scan->xs_snapshot);
	MemoryContext old;

	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));

	gpuds_cursor_hand_on_killed(cursor);
	if (cursor->only)
		gpuds_index_only_reset(cursor->only);
	gpuds_cursor_forget_keys(cursor);
	old = MemoryContextSwitchTo(cursor->key_context);
	gpuds_key_set(scan->indexRelation, &cursor->info.layout, scan->keyData, scan->numberOfKeys, &cursor->set);
	MemoryContextSwitchTo(old);
	gpuds_cursor_restart(cursor, mvcc);
	gpuds_value_order_restart(scan);
	cursor->checks = mvcc ? cursor->set.candidates &&
								gpuds_recheck_is_needed(&cursor->info.layout, scan->keyData,
														scan->numberOfKeys)
						  : gpuds_recheck_can_all(scan->indexRelation, scan->keyData, scan->numberOfKeys) &&
								!gpuds_is_planners(scan);
	scan->xs_recheck = cursor->set.recheck || (cursor->set.candidates && !cursor->checks) ||
					   (scan->numberOfKeys > 0 && !mvcc && !cursor->checks && !gpuds_is_planners(scan));
}

/*
 * Makes the row of the entry that the scan stands on; false: the snapshot does not see it.  Such an entry is
 * counted as read, too; core counts those that it gets.
 */
static bool
return_row(IndexScanDesc scan, GpudsCursor *cursor)
{
	bool dead;

	if (gpuds_is_planners(scan) ||
		gpuds_index_only_sees(cursor->only, scan, cursor->ref.mirror != NULL, &dead))
	{
		gpuds_index_only_return(cursor->only, scan, &cursor->info.layout, &cursor->current,
								!gpuds_is_planners(scan));
		return true;
	}
	pgstat_count_index_tuples(scan->indexRelation, 1);
	if (dead && !scan->xactStartedInRecovery)
		kill_current(cursor);
	return false;
}

/*
 * Fetches the chunk behind the last entry that any participant of a parallel scan has read
 * (shared_scan.h); false: there are no more entries.
 */
static bool
next_shared_chunk(IndexScanDesc scan, GpudsCursor *cursor)
{
	const GpudsSharedPlace place = gpuds_shared_scan_take(scan, &cursor->current);

	cursor->nchunk = cursor->at = 0;
	if (place == GPUDS_SHARED_END)
		return false;
	if (place == GPUDS_SHARED_ON)
		gpuds_cursor_move_to_current(cursor);
	cursor->fetch = Min(cursor->fetch, GPUDS_SHARED_CHUNK);
	while (cursor->nchunk == 0)
	{
		if (!gpuds_cursor_next_chunk(scan, cursor))
		{
			gpuds_shared_scan_put(scan, GPUDS_SHARED_END, NULL);
			return false;
		}
	}
	gpuds_shared_scan_put(scan, GPUDS_SHARED_ON, &cursor->chunk[cursor->nchunk - 1]);
	return true;
}

/*
 * The same for rows that are put in order: whoever asks first has all of them, since a run of entries would
 * not end where a chunk does.
 */
static bool
next_chunk_of_all(IndexScanDesc scan, GpudsCursor *cursor)
{
	GpudsEntry at;

	if (!cursor->reads_all)
	{
		if (gpuds_shared_scan_take(scan, &at) == GPUDS_SHARED_END)
			return false;
		gpuds_shared_scan_put(scan, GPUDS_SHARED_END, NULL);
		cursor->reads_all = true;
	}
	return gpuds_cursor_next_chunk(scan, cursor);
}

static bool
next_chunk(IndexScanDesc scan, GpudsCursor *cursor)
{
	if (scan->parallel_scan == NULL)
		return gpuds_cursor_next_chunk(scan, cursor);
	return cursor->orders ? next_chunk_of_all(scan, cursor) : next_shared_chunk(scan, cursor);
}

/* Moves to the next entry that passes the filter; false: there is none. */
static bool
next_entry(IndexScanDesc scan, GpudsCursor *cursor)
{
	for (;;)
	{
		while (cursor->at < cursor->nchunk)
		{
			const GpudsEntry *entry = &cursor->chunk[cursor->at++];

			if (cursor->set.filter && !gpuds_key_filter_pass(cursor->set.filter, entry))
				continue;
			cursor->current = *entry;
			cursor->place = GPUDS_PLACE_ON;
			return true;
		}
		if (!next_chunk(scan, cursor))
		{
			cursor->place = cursor->forward ? GPUDS_PLACE_AFTER : GPUDS_PLACE_BEFORE;
			return false;
		}
	}
}

/*
 * amgettuple.  The first call after amrescan passes the barrier.  A change of direction fetches a new chunk,
 * from the current entry on.  If xs_want_itup is set, the scan itself leaves out rows that the snapshot does
 * not see.  What core says is dead is collected, and killed in memory only (memtable/kill.c).  The planner's
 * scan finds nothing unless a mirror is loaded.
 */
bool
gpuds_gettuple(IndexScanDesc scan, ScanDirection dir)
{
	GpudsCursor *cursor = scan->opaque;
	bool forward = !ScanDirectionIsBackward(dir);

	if (!cursor->synced)
	{
		/* Nothing is loaded, and nothing evicted, for a hint. */
		if (gpuds_is_planners(scan) && !gpuds_mirror_present(&cursor->source))
			return false;
		gpuds_key_set_sort(&cursor->set);
		gpuds_index_only_prepare(scan);
		gpuds_cursor_barrier(scan, cursor, cursor->set.total);
	}
	if (scan->kill_prior_tuple && cursor->place == GPUDS_PLACE_ON)
		kill_current(cursor);
	if (cursor->place == GPUDS_PLACE_START ||
		(cursor->forward != forward && !gpuds_value_order_in_run(cursor)))
		gpuds_cursor_from_place(cursor, forward);

	while (cursor->orders ? gpuds_value_order_next(scan, forward, next_entry) : next_entry(scan, cursor))
	{
		gpuds_entry_tid(&cursor->current, &scan->xs_heaptid);
		if (!gpuds_cursor_passes_check(scan, cursor, cursor->current.t & ENTRY_TID_MASK))
			continue;
		if (!scan->xs_want_itup || return_row(scan, cursor))
			return true;
	}
	if (cursor->recheck)
		gpuds_recheck_unpin(cursor->recheck);
	return false;
}

/*
 * ammarkpos.  Remembers the current entry, which can be found again in any version of the mirror, and its
 * place in the chunk, which serves as long as the chunk is at hand.
 */
void
gpuds_markpos(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	cursor->mark.place = cursor->place;
	cursor->mark.current = cursor->current;
	cursor->mark.chunk_serial = cursor->chunk_serial;
	cursor->mark.at = cursor->at;
	gpuds_value_order_mark(cursor);
}

/*
 * amrestrpos.  Goes back to the mark, at no cost if its chunk is still at hand, as in merge joins over short
 * runs of equal keys.
 */
void
gpuds_restrpos(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	cursor->place = cursor->mark.place;
	cursor->current = cursor->mark.current;
	if (gpuds_value_order_restore(cursor))
		return;
	if (cursor->mark.chunk_serial == cursor->chunk_serial && cursor->place == GPUDS_PLACE_ON &&
		cursor->nchunk > 0)
		cursor->at = cursor->mark.at;
	else if (cursor->place != GPUDS_PLACE_START)
		gpuds_cursor_from_place(cursor, cursor->forward);
}

/* amendscan.  Hands on what is known of dead entries before it frees all that the scan has. */
void
gpuds_endscan(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	gpuds_cursor_hand_on_killed(cursor);
	gpuds_value_order_end(cursor);
	gpuds_fallback_end(cursor->fallback);
	gpuds_cursor_forget_keys(cursor);
	MemoryContextDelete(cursor->key_context);
	pfree(cursor->chunk);
	if (cursor->ref.delta.ops)
		pfree(cursor->ref.delta.ops);
	if (cursor->killed)
		pfree(cursor->killed);
	if (cursor->only)
		gpuds_index_only_end(cursor->only);
	pfree(cursor);
}
