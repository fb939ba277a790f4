/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  Index scans: scan keys to intervals, intervals to chunks of entries.
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
 * Intervals come in batches (key.h), in the scan's direction; the entries of a chunk belong
 * to one batch.  If there is no mirror, the journal answers (fallback.c), and what was read
 * of it is kept from one rescan to the next.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "access/relscan.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/am.h"
#include "am/recheck.h"
#include "am/shared_scan.h"
#include "am/visible.h"
#include "journal/journal.h"
#include "kernels/core/sort.h"
#include "mirror/mirror.h"

/* Entries that a chunk has room for to begin with. */
#define FIRST_CHUNK_SIZE 64

/* Entries that a bitmap's first chunk has at most where there are many keys. */
#define MAX_FIRST_CHUNK 4096

/* TIDs sorted at a time for a bitmap. */
#define BITMAP_PIECE_TIDS (1024 * 1024)

/* Keys of a bitmap whose memory is worth keeping for the next one, at least. */
#define MANY_KEYS (64 * 1024)

/* Entries that a device counts, adds up or gives in the time that it finds a key. */
#define ENTRIES_OF_KEY 16

typedef enum ScanPlace
{
	PLACE_FRESH,  /* nothing fetched yet */
	PLACE_BEFORE, /* before the first entry */
	PLACE_ON,     /* on the current entry */
	PLACE_AFTER   /* behind the last entry */
} ScanPlace;

typedef struct ScanMark
{
	ScanPlace place;
	GpudsEntry current;
	uint64 chunk_serial;
	int64 at;
} ScanMark;

typedef struct GpudsScanState
{
	GpudsIndexInfo info;
	GpudsMirrorSource source;
	GpudsMirrorRef ref;
	GpudsFallback *fallback;

	MemoryContext key_context; /* of set and recheck */
	GpudsKeySet set;
	bool checks;           /* rows are looked at before they are given (recheck.h) */
	GpudsRecheck *recheck; /* what looks at them; NULL: none has been */
	bool synced;           /* barrier passed since the last rescan */

	ScanPlace place;
	GpudsEntry current; /* if place is PLACE_ON */

	GpudsScan scan; /* of the set's batch; goes on behind the chunk */
	bool forward;   /* direction of chunk and scan */
	bool end;       /* nothing of the batch behind the chunk */
	GpudsEntry *chunk;
	int64 chunk_size;
	int64 nchunk;
	int64 at;            /* next entry of the chunk to return */
	int64 fetch;         /* entries to fetch next time */
	uint64 chunk_serial; /* names the chunk's contents */
	ScanMark mark;

	GpudsEntry *killed; /* entries of the chunk whose rows are dead for everybody */
	int nkilled;

	GpudsIndexOnly *only; /* of a scan that returns rows, or NULL */

	GpudsScanFigures figures;
} GpudsScanState;

IndexScanDesc
gpuds_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	GpudsScanState *state = palloc0(sizeof(GpudsScanState));

	state->info = *gpuds_index_info(index);
	state->source.index = index;
	state->source.layout = &state->info.layout;
	state->source.file_id = state->info.file_id;
	state->source.fillfactor = GpudsGetFillfactor(index);
	state->key_context = AllocSetContextCreate(CurrentMemoryContext, "gpuds scan keys", ALLOCSET_SMALL_SIZES);
	state->fallback = gpuds_fallback_begin();
	state->ref.fresh.context = CurrentMemoryContext;
	state->chunk_size = FIRST_CHUNK_SIZE;
	state->chunk = palloc(state->chunk_size * sizeof(GpudsEntry));
	scan->opaque = state;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

/* Hands on what is known of the chunk's dead entries. */
static void
hand_on_killed(GpudsScanState *state)
{
	gpuds_probe_kill(&state->ref, state->killed, state->nkilled);
	state->nkilled = 0;
}

/* The row of the entry that the scan stands on is dead for everybody. */
static void
kill_current(GpudsScanState *state)
{
	if (state->killed == NULL)
		state->killed = MemoryContextAlloc(state->ref.fresh.context, GPUDS_MAX_KILLED * sizeof(GpudsEntry));
	if (state->nkilled == GPUDS_MAX_KILLED)
		hand_on_killed(state);
	state->killed[state->nkilled++] = state->current;
}

/* Gives back what belongs to the keys. */
static void
forget_keys(GpudsScanState *state)
{
	if (state->recheck)
		gpuds_recheck_end(state->recheck);
	state->recheck = NULL;
	state->checks = false;
	MemoryContextReset(state->key_context);
}

/* Nothing has been read of the scan's set. */
static void
restart(GpudsScanState *state, bool mvcc)
{
	if (mvcc)
		gpuds_fallback_next_keys(state->fallback);
	else
		gpuds_fallback_reset(state->fallback);
	state->synced = false;
	state->place = PLACE_FRESH;
	state->nchunk = state->at = 0;
	state->mark.place = PLACE_FRESH;
}

/*
 * Does the planner ask where the index ends?  Only the planner, since 18, wants rows with a snapshot that is
 * not an MVCC snapshot.  It looks at the heap itself, and what it gets is a hint.
 */
static bool
is_planners(IndexScanDesc scan)
{
	return scan->xs_want_itup && !IsMVCCSnapshot(scan->xs_snapshot);
}

void
gpuds_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	GpudsScanState *state = scan->opaque;
	const bool mvcc = IsMVCCSnapshot(scan->xs_snapshot);
	MemoryContext old;

	if (keys && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));

	hand_on_killed(state);
	if (state->only)
		gpuds_index_only_reset(state->only);
	forget_keys(state);
	old = MemoryContextSwitchTo(state->key_context);
	gpuds_key_set(scan->indexRelation, &state->info.layout, scan->keyData, scan->numberOfKeys, &state->set);
	MemoryContextSwitchTo(old);
	restart(state, mvcc);
	state->checks = mvcc && gpuds_recheck_is_needed(&state->info.layout, scan->keyData, scan->numberOfKeys);
	scan->xs_recheck = state->set.recheck || (state->set.hashed && !state->checks) ||
					   (scan->numberOfKeys > 0 && !mvcc && !is_planners(scan));
}

/* Is the row of an entry one that was asked for, as far as the executor will not look?  tid: the entry's. */
static bool
passes_check(IndexScanDesc scan, GpudsScanState *state, uint64 tid)
{
	if (!state->checks)
		return true;
	if (state->recheck == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->key_context);

		state->recheck = gpuds_recheck_begin(scan->indexRelation, &state->info.layout, scan->keyData,
											 scan->numberOfKeys);
		MemoryContextSwitchTo(old);
	}
	return gpuds_recheck_tid(state->recheck, scan->xs_snapshot, tid);
}

/* Can the mirror's device sort the TIDs that the scan wants? */
static bool
device_sorts(const GpudsScanState *state)
{
	return state->set.filter == NULL && gpuds_probe_sorts_tids(&state->ref);
}

/*
 * Makes sure that all that the snapshot may see is in the mirror, or says that
 * the journal answers.  A scan that has all of the journal's entries at hand needs
 * neither, and leaves them only for a mirror that others have loaded.
 */
static void
barrier(IndexScanDesc scan, GpudsScanState *state, int64 weight)
{
	pgstat_count_index_scan(scan->indexRelation);
	GpudsCountSearch(scan);
	state->figures.scans++;
	state->figures.probes += state->set.total;
	gpuds_insert_flush(scan->indexRelation);
	if (!is_planners(scan))
		gpuds_injection_point("scan-before-probe");
	if (gpuds_fallback_has_all(state->fallback) && !gpuds_mirror_present(&state->source))
		state->ref.mirror = NULL;
	else
	{
		state->ref.intervals = weight;
		gpuds_mirror_sync(&state->source, &state->ref);
	}
	gpuds_mirror_count(&state->ref, 1, 0, state->set.total, 0);
	state->fetch = gpuds_probe_sizes(&state->ref)->first;
	state->synced = true;
}

static void
scan_from_start(GpudsScanState *state, bool forward)
{
	gpuds_probe_forget(&state->ref);
	state->scan.intervals = state->set.intervals;
	state->scan.points = state->set.points;
	state->scan.n = state->set.nintervals;
	state->scan.next = forward ? 0 : state->set.nintervals;
	state->scan.inside = false;
}

/* Turns to the batch of intervals that has the one of a number. */
static bool
turn_to(GpudsScanState *state, int64 number)
{
	if (!gpuds_key_set_turn(&state->set, number))
		return false;
	gpuds_fallback_next_keys(state->fallback);
	return true;
}

/* Goes on with the next batch in the scan's direction; false: this was the last one. */
static bool
next_batch(GpudsScanState *state)
{
	if (!turn_to(state, state->forward ? state->set.first + state->set.nintervals : state->set.first - 1))
		return false;
	scan_from_start(state, state->forward);
	state->nchunk = state->at = 0;
	state->end = false;
	return true;
}

/* Sets the scan up to go on behind the entry that it stands on, which the interval of a number has. */
static void
scan_behind_current(GpudsScanState *state, int64 number)
{
	state->scan.inside = true;
	state->scan.at = state->current;
	state->scan.next = number - state->set.first + (state->forward ? 0 : 1);
}

/*
 * Sets the scan up to go on from its place in a direction, without a chunk.
 */
static void
scan_from_place(GpudsScanState *state, bool forward)
{
	int64 number = 0; /* of the interval to go on with */

	state->forward = forward;
	state->nchunk = state->at = 0;
	state->end = false;
	switch (state->place)
	{
		case PLACE_FRESH:
			number = forward ? 0 : state->set.total - 1;
			break;
		case PLACE_BEFORE:
			state->end = !forward;
			break;
		case PLACE_AFTER:
			number = state->set.total - 1;
			state->end = forward;
			break;
		case PLACE_ON:
			number = gpuds_key_set_find(&state->set, &state->current);
			break;
	}
	(void) turn_to(state, number);
	scan_from_start(state, forward);
	if (state->place == PLACE_ON)
		scan_behind_current(state, number);
}

/*
 * Where snapshots expire, a bulk delete may have removed entries that an old one should have
 * found: an error then.  To be called when entries have been read.
 */
static void
check_snapshot(IndexScanDesc scan)
{
	Snapshot snapshot = scan->xs_snapshot;

	if (GpudsSnapshotsExpire() && IsMVCCSnapshot(snapshot) &&
		!XLogRecPtrIsInvalid(GpudsSnapshotLSN(snapshot)) &&
		gpuds_journal_bulk_deleted_since(scan->indexRelation, GpudsSnapshotLSN(snapshot)))
		GpudsRejectOldSnapshot(snapshot, scan->indexRelation);
}

/* Notes who answered with how many entries, and what a device has done for it. */
static void
note_answer(GpudsScanState *state, const GpudsDeviceWork *before, int64 n)
{
	GpudsScanFigures *figures = &state->figures;

	figures->calls++;
	figures->entries += n;
	figures->answered_by |= state->ref.mirror ? GpudsAnsweredBy(state->ref.mirror->tree.kind)
											  : GPUDS_ANSWERED_BY_JOURNAL;
	figures->bus_bytes += gpuds_device_work.bus_bytes - before->bus_bytes;
	figures->device_ns += gpuds_device_work.device_ns - before->device_ns;
}

static void
fetch_chunk(IndexScanDesc scan, GpudsScanState *state)
{
	const GpudsDeviceWork before = gpuds_device_work;
	const GpudsProbeSizes *sizes;

	hand_on_killed(state);
	if (state->chunk_size < state->fetch)
	{
		state->chunk = repalloc(state->chunk, state->fetch * sizeof(GpudsEntry));
		state->chunk_size = state->fetch;
	}
	state->nchunk = gpuds_probe(&state->source, &state->ref, state->fallback, &state->scan, state->forward,
								state->chunk, state->fetch, &state->end);
	note_answer(state, &before, state->nchunk);
	check_snapshot(scan);
	state->at = 0;
	state->chunk_serial++;
	sizes = gpuds_probe_sizes(&state->ref);
	if (state->fetch < sizes->small)
		state->fetch = sizes->small;
	else
		state->fetch = Min(state->fetch * sizes->growth, sizes->most);
	if (!is_planners(scan))
		gpuds_injection_point("scan-probed");
}

/* The scan is to return rows: before its barrier. */
static void
prepare_rows(IndexScanDesc scan, GpudsScanState *state)
{
	if (state->only == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->ref.fresh.context);

		state->only = gpuds_index_only_begin(scan, &state->info.layout);
		MemoryContextSwitchTo(old);
	}
	gpuds_index_only_before_barrier(state->only);
}

/*
 * Makes the row of the entry that the scan stands on; false: the snapshot does not see it.  Such an entry is
 * counted as read, too; core counts those that it gets.
 */
static bool
return_row(IndexScanDesc scan, GpudsScanState *state)
{
	bool dead;

	if (is_planners(scan) || gpuds_index_only_sees(state->only, scan, state->ref.mirror != NULL, &dead))
	{
		gpuds_index_only_return(state->only, scan, &state->info.layout, &state->current, !is_planners(scan));
		return true;
	}
	pgstat_count_index_tuples(scan->indexRelation, 1);
	if (dead && !scan->xactStartedInRecovery)
		kill_current(state);
	return false;
}

/* Fetches the chunk behind the one at hand; false: there are no more entries. */
static bool
next_chunk(IndexScanDesc scan, GpudsScanState *state)
{
	if ((state->end || state->scan.n == 0) && !next_batch(state))
		return false;
	CHECK_FOR_INTERRUPTS();
	fetch_chunk(scan, state);
	return true;
}

/*
 * Moves a scan that has begun on to an entry in its direction.  What the memtable has said serves all that
 * is ahead in the same batch of intervals.
 */
static void
move_to_current(GpudsScanState *state)
{
	const int64 number = gpuds_key_set_find(&state->set, &state->current);

	if (turn_to(state, number))
		scan_from_start(state, state->forward);
	state->end = false;
	scan_behind_current(state, number);
}

/*
 * Fetches the chunk behind the last entry that any participant of a parallel scan has read
 * (shared_scan.h); false: there are no more entries.
 */
static bool
next_shared_chunk(IndexScanDesc scan, GpudsScanState *state)
{
	const GpudsSharedPlace place = gpuds_shared_scan_take(scan, &state->current);

	state->nchunk = state->at = 0;
	if (place == GPUDS_SHARED_END)
		return false;
	if (place == GPUDS_SHARED_ON)
		move_to_current(state);
	state->fetch = Min(state->fetch, GPUDS_SHARED_CHUNK);
	while (state->nchunk == 0)
	{
		if (!next_chunk(scan, state))
		{
			gpuds_shared_scan_put(scan, GPUDS_SHARED_END, NULL);
			return false;
		}
	}
	gpuds_shared_scan_put(scan, GPUDS_SHARED_ON, &state->chunk[state->nchunk - 1]);
	return true;
}

bool
gpuds_gettuple(IndexScanDesc scan, ScanDirection dir)
{
	GpudsScanState *state = scan->opaque;
	bool forward = !ScanDirectionIsBackward(dir);

	if (!state->synced)
	{
		/* Nothing is loaded, and nothing evicted, for a hint. */
		if (is_planners(scan) && !gpuds_mirror_present(&state->source))
			return false;
		gpuds_key_set_sort(&state->set);
		if (scan->xs_want_itup)
			prepare_rows(scan, state);
		barrier(scan, state, state->set.total);
	}
	if (scan->kill_prior_tuple && state->place == PLACE_ON)
		kill_current(state);
	if (state->place == PLACE_FRESH || state->forward != forward)
		scan_from_place(state, forward);

	for (;;)
	{
		while (state->at < state->nchunk)
		{
			const GpudsEntry *entry = &state->chunk[state->at++];

			if (state->set.filter && !gpuds_key_filter_pass(state->set.filter, entry))
				continue;
			state->current = *entry;
			state->place = PLACE_ON;
			gpuds_entry_tid(entry, &scan->xs_heaptid);
			if (!passes_check(scan, state, entry->t & ENTRY_TID_MASK))
				continue;
			if (!scan->xs_want_itup || return_row(scan, state))
				return true;
		}
		if (!(scan->parallel_scan ? next_shared_chunk : next_chunk)(scan, state))
		{
			state->place = forward ? PLACE_AFTER : PLACE_BEFORE;
			return false;
		}
	}
}

/* In place of keys, sets what probes ask for: ascending, all different.  The snapshot is an MVCC snapshot. */
void
gpuds_scan_set_probes(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries, int64 n)
{
	GpudsScanState *state = scan->opaque;
	MemoryContext old;

	hand_on_killed(state);
	forget_keys(state);
	old = MemoryContextSwitchTo(state->key_context);
	gpuds_key_set_of_probes(probe, entries, n, &state->set);
	MemoryContextSwitchTo(old);
	restart(state, true);
	scan->xs_recheck = false;
}

/* Begins with a scan's first interval, forward: the scan passes its barrier. */
static void
begin_batches(IndexScanDesc scan, GpudsScanState *state, int64 weight)
{
	state->figures.batches++;
	barrier(scan, state, Max(weight, state->set.total));
	scan_from_place(state, true);
}

/*
 * Begins to give a scan's entries in batches, forward, from its first interval on: the
 * scan passes its barrier.  weight: of how many keys the scan is worth the work, which says what device
 * is best.
 */
void
gpuds_scan_begin_batches(IndexScanDesc scan, int64 weight)
{
	GpudsScanState *state = scan->opaque;

	gpuds_key_set_sort(&state->set);
	begin_batches(scan, state, weight);
}

/*
 * Is it worth while to begin with n probes as they come (gpuds_scan_begin_hits)?  Says what device such
 * a scan would have, without a look at the index.
 */
bool
gpuds_scan_may_find_hits(IndexScanDesc scan, int64 n, int64 weight)
{
	return !RelationUsesLocalBuffers(scan->indexRelation) && gpuds_device_sends_large(n, weight);
}

/*
 * Sets what probes in any order ask for, equal ones among them, and begins: the scan passes its
 * barrier.  It can only be counted, with hits (gpuds_scan_count_on_device), before other probes or keys
 * are set.
 */
void
gpuds_scan_begin_hits(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries, int64 n,
					  int64 weight)
{
	GpudsScanState *state = scan->opaque;

	gpuds_scan_set_probes(scan, probe, entries, n);
	state->set.sorted = false;
	begin_batches(scan, state, weight);
}

/* The same for a scan of about so many rows, be they of few keys or of many. */
void
gpuds_scan_begin_rows(IndexScanDesc scan, double expected)
{
	gpuds_scan_begin_batches(scan, (int64) Min(expected / ENTRIES_OF_KEY, PG_INT32_MAX));
}

/* What the scan has done. */
GpudsScanFigures *
gpuds_scan_figures(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	state->figures.notes = state->ref.notes;
	return &state->figures;
}

/* So many of the scan's entries are looked at; the visibility map vouches for the rows of some. */
void
gpuds_scan_note_matches(IndexScanDesc scan, int64 n, int64 all_visible)
{
	GpudsScanFigures *figures = gpuds_scan_figures(scan);

	figures->matches += n;
	figures->all_visible += all_visible;
}

/* Are there intervals left?  Goes on to those that batches come from next. */
bool
gpuds_scan_has_more(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	while (state->end || state->scan.n == 0)
	{
		if (!next_batch(state))
			return false;
	}
	return true;
}

/*
 * The scan's next entries, most at most, perhaps none; what they lead to, the caller must look at with
 * the scan's snapshot.  gpuds_scan_has_more must have said that there are intervals left.
 */
void
gpuds_scan_next_batch(IndexScanDesc scan, int64 most, GpudsScanBatch *batch)
{
	GpudsScanState *state = scan->opaque;

	CHECK_FOR_INTERRUPTS();
	state->fetch = Min(state->fetch, most);
	fetch_chunk(scan, state);
	if (state->set.filter)
	{
		int64 passed = 0;

		for (int64 i = 0; i < state->nchunk; i++)
		{
			if (gpuds_key_filter_pass(state->set.filter, &state->chunk[i]))
				state->chunk[passed++] = state->chunk[i];
		}
		state->nchunk = passed;
	}
	batch->entries = state->chunk;
	batch->n = state->nchunk;
	batch->from_mirror = state->ref.mirror != NULL;
	batch->kill_mark = state->ref.kill_mark;
	pgstat_count_index_tuples(scan->indexRelation, state->nchunk);
}

/* Is there more than a small batch left of the intervals at hand? */
static bool
has_many_left(const GpudsScanState *state)
{
	const GpudsProbeSizes *sizes = gpuds_probe_sizes(&state->ref);

	return state->set.nintervals > sizes->small_intervals || state->fetch > sizes->small;
}

/* May gpuds_scan_count_rest have an answer now? */
bool
gpuds_scan_counts(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	return state->set.filter == NULL && !state->end && state->scan.n > 0 && has_many_left(state) &&
		   gpuds_probe_counts(&state->ref);
}

/* The same of a count that is measured, for more than the entries of the others. */
bool
gpuds_scan_measures(IndexScanDesc scan)
{
	return gpuds_scan_counts(scan) && gpuds_probe_measures(&((GpudsScanState *) scan->opaque)->ref);
}

/*
 * Instead of fetching batches, counts all that is left of the intervals at hand (gpuds_probe_count).
 * False: it has to be fetched.  The scan does not move.
 */
bool
gpuds_scan_count_rest(IndexScanDesc scan, const GpudsCountSpec *spec, GpudsCounted *counted)
{
	GpudsScanState *state = scan->opaque;
	const GpudsDeviceWork before = gpuds_device_work;

	if (!gpuds_probe_count(&state->ref, &state->scan, spec, counted))
		return false;
	note_answer(state, &before, counted->counted + counted->n);
	check_snapshot(scan);
	return true;
}

/*
 * Is all that the scan asks for one interval, of which nothing has been fetched, and does the device
 * measure?  Then gpuds_scan_count_intervals may have an answer.
 */
bool
gpuds_scan_is_interval(IndexScanDesc scan, GpudsInterval *interval)
{
	const GpudsScanState *state = scan->opaque;

	if (state->set.total != 1 || state->set.filter || state->scan.next != 0 || state->scan.inside ||
		state->end || !gpuds_probe_measures(&state->ref))
		return false;
	*interval = entry_scan_interval(&state->scan, 0);
	return true;
}

/* What it takes to kill entries that the scan's device has given since the barrier. */
GpudsKillMark
gpuds_scan_kill_mark(IndexScanDesc scan)
{
	return ((GpudsScanState *) scan->opaque)->ref.kill_mark;
}

/*
 * As gpuds_scan_count_rest for other intervals than the scan's own, parts of them, ascending and disjoint.
 */
bool
gpuds_scan_count_intervals(IndexScanDesc scan, const GpudsInterval *intervals, int64 n,
						   const GpudsCountSpec *spec, GpudsCounted *counted)
{
	GpudsScanState *state = scan->opaque;
	const GpudsScan parts = { .intervals = intervals, .n = n };
	const GpudsDeviceWork before = gpuds_device_work;
	bool done;

	gpuds_probe_forget(&state->ref);
	done = gpuds_probe_count(&state->ref, &parts, spec, counted);
	gpuds_probe_forget(&state->ref);
	if (done)
	{
		note_answer(state, &before, counted->counted + counted->n);
		check_snapshot(scan);
	}
	return done;
}

/* Moves behind the intervals at hand, which n entries were left of. */
void
gpuds_scan_skip_rest(IndexScanDesc scan, int64 n)
{
	GpudsScanState *state = scan->opaque;

	state->end = true;
	state->nchunk = state->at = 0;
	pgstat_count_index_tuples(scan->indexRelation, n);
}

/*
 * Adds TIDs to the bitmap; ascending ones are cheapest.
 */
static void
add_to_bitmap(IndexScanDesc scan, TIDBitmap *tbm, const uint64 *tids, int64 n)
{
	GpudsScanState *state = scan->opaque;
	ItemPointerData pointers[256];
	int npointers = 0;

	for (int64 i = 0; i < n; i++)
	{
		if (!passes_check(scan, state, tids[i]))
			continue;
		ItemPointerSet(&pointers[npointers], (BlockNumber) (tids[i] >> 16),
					   (OffsetNumber) (tids[i] & 0xFFFF));
		if (++npointers == lengthof(pointers))
		{
			tbm_add_tuples(tbm, pointers, npointers, scan->xs_recheck);
			npointers = 0;
		}
	}
	if (npointers > 0)
		tbm_add_tuples(tbm, pointers, npointers, scan->xs_recheck);
}

static void
sort_into_bitmap(IndexScanDesc scan, TIDBitmap *tbm, uint64 *tids, int64 n)
{
	uint64 *scratch = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint64));

	sort_u64(tids, scratch, n);
	pfree(scratch);
	add_to_bitmap(scan, tbm, tids, n);
}

/*
 * A query's bitmap and keys take some ten megabytes.  By default glibc's malloc
 * gives them back at the end, and half of the time that the next query's bitmap
 * takes goes into getting new pages.  Its own dynamic thresholds would end at
 * these values.
 */
static void
keep_freed_memory(void)
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

static void
free_tids(int code, Datum arg)
{
	gpuds_device_free_tids((GpudsTids *) DatumGetPointer(arg));
}

/*
 * The bitmap from a device that sorts TIDs itself.  Gets as far as that device
 * lasts; returns how many there were.
 */
static int64
sorted_bitmap(IndexScanDesc scan, GpudsScanState *state, TIDBitmap *tbm)
{
	int64 total = 0;
	uint64 *fresh;
	int64 nfresh;
	/* A little more than there are keys, so that the end is seen to be one. */
	int64 cap = Min(Max(GPUDS_FIRST_TIDS, state->set.nintervals + 1), BITMAP_PIECE_TIDS);

	if (state->set.nintervals >= MANY_KEYS)
		keep_freed_memory();
	if (!gpuds_probe_fresh_tids(&state->ref, &state->scan, &fresh, &nfresh))
		nfresh = -1;
	if (nfresh > 0)
		sort_into_bitmap(scan, tbm, fresh, nfresh);
	if (fresh)
		pfree(fresh);
	if (nfresh < 0)
		return 0;
	total += nfresh;
	while (!state->end && state->scan.n > 0)
	{
		const GpudsDeviceWork before = gpuds_device_work;
		GpudsTids tids;

		CHECK_FOR_INTERRUPTS();
		if (!gpuds_probe_tids(&state->ref, &state->scan, cap, &tids, &state->end))
			break;
		note_answer(state, &before, tids.n);
		PG_ENSURE_ERROR_CLEANUP(free_tids, PointerGetDatum(&tids));
		{
			add_to_bitmap(scan, tbm, tids.tids, tids.n);
		}
		PG_END_ENSURE_ERROR_CLEANUP(free_tids, PointerGetDatum(&tids));
		gpuds_device_free_tids(&tids);
		total += tids.n;
		if (tids.n == cap)
			cap = Min(cap * GPUDS_TIDS_GROWTH, BITMAP_PIECE_TIDS);
	}
	return total;
}

/*
 * The bitmap from chunks of entries.  Goes on from where the scan is.
 */
static int64
collected_bitmap(IndexScanDesc scan, GpudsScanState *state, TIDBitmap *tbm)
{
	const GpudsProbeSizes *sizes = gpuds_probe_sizes(&state->ref);
	bool sorts = device_sorts(state);
	int64 size = Max(FIRST_CHUNK_SIZE, Min(state->set.nintervals, BITMAP_PIECE_TIDS));
	int64 ntids = 0;
	int64 total = 0;
	uint64 *tids = palloc(size * sizeof(uint64));

	state->fetch = sorts ? sizes->small : Max(state->fetch, Min(state->set.nintervals, MAX_FIRST_CHUNK));
	while (!state->end && state->scan.n > 0)
	{
		CHECK_FOR_INTERRUPTS();
		fetch_chunk(scan, state);
		if (ntids + state->nchunk > size)
		{
			size = Max(size * 2, ntids + state->nchunk);
			tids = repalloc_huge(tids, size * sizeof(uint64));
		}
		for (int64 i = 0; i < state->nchunk; i++)
		{
			if (state->set.filter && !gpuds_key_filter_pass(state->set.filter, &state->chunk[i]))
				continue;
			tids[ntids++] = state->chunk[i].t & ENTRY_TID_MASK;
		}
		if (ntids >= BITMAP_PIECE_TIDS || state->end)
		{
			sort_into_bitmap(scan, tbm, tids, ntids);
			total += ntids;
			ntids = 0;
		}
		/* More than a small scan gives: the rest by larger ones. */
		else if (sorts)
			total += sorted_bitmap(scan, state, tbm);
	}
	if (ntids > 0)
		sort_into_bitmap(scan, tbm, tids, ntids);
	pfree(tids);
	return total + ntids;
}

/*
 * Begins to give a scan's TIDs, from its first interval on: the scan passes its barrier.  The keys are
 * put in order, except for a device that does not need that, and where there are no more of them than
 * most.
 */
void
gpuds_scan_begin_tids(IndexScanDesc scan, int64 most)
{
	GpudsScanState *state = scan->opaque;
	const GpudsProbeSizes *sizes;

	barrier(scan, state, state->set.total);
	sizes = gpuds_probe_sizes(&state->ref);
	if (state->set.nintervals >= MANY_KEYS)
		keep_freed_memory();
	if (!device_sorts(state) || state->set.nintervals <= sizes->small_intervals || state->set.total > most)
		gpuds_key_set_sort(&state->set);
	scan_from_place(state, true);
	state->fetch = Max(sizes->small, Min(state->set.nintervals, MAX_FIRST_CHUNK));
}

/* Are the keys in order?  Else only gpuds_scan_next_tids may be asked. */
bool
gpuds_scan_in_order(IndexScanDesc scan)
{
	return ((GpudsScanState *) scan->opaque)->set.sorted;
}

/* Puts them in order, and begins again from the first interval on. */
void
gpuds_scan_put_in_order(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	gpuds_key_set_sort(&state->set);
	scan_from_place(state, true);
}

/* Number of the first interval of the batch at hand, which names it, ... */
int64
gpuds_scan_turn(IndexScanDesc scan)
{
	return ((GpudsScanState *) scan->opaque)->set.first;
}

/* ... and how many it has. */
int64
gpuds_scan_intervals(IndexScanDesc scan)
{
	return ((GpudsScanState *) scan->opaque)->set.nintervals;
}

/* May gpuds_scan_next_tids have an answer now? */
bool
gpuds_scan_gives_tids(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	return device_sorts(state) && !state->end && state->scan.n > 0 && has_many_left(state);
}

/*
 * What the memtable adds to the rest of the batch of intervals at hand, as gpuds_probe_fresh_tids; before
 * gpuds_scan_next_tids is asked about that.
 */
bool
gpuds_scan_fresh_tids(IndexScanDesc scan, uint64 **tids, int64 *n)
{
	GpudsScanState *state = scan->opaque;
	const bool had = gpuds_probe_fresh_tids(&state->ref, &state->scan, tids, n);

	if (had)
		pgstat_count_index_tuples(scan->indexRelation, *n);
	return had;
}

/*
 * The next TIDs of the batch of intervals at hand, ascending, put into tids[most]; -1: only
 * gpuds_scan_next_batch has them.
 */
int64
gpuds_scan_next_tids(IndexScanDesc scan, uint64 *tids, int64 most)
{
	GpudsScanState *state = scan->opaque;
	const GpudsDeviceWork before = gpuds_device_work;
	GpudsTids found;

	CHECK_FOR_INTERRUPTS();
	if (!gpuds_probe_tids(&state->ref, &state->scan, most, &found, &state->end))
		return -1;
	note_answer(state, &before, found.n);
	memcpy(tids, found.tids, found.n * sizeof(uint64));
	gpuds_device_free_tids(&found);
	check_snapshot(scan);
	pgstat_count_index_tuples(scan->indexRelation, found.n);
	gpuds_injection_point("scan-probed");
	return found.n;
}

int64
gpuds_getbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	GpudsScanState *state = scan->opaque;
	int64 total = 0;

	barrier(scan, state, state->set.total);
	scan_from_place(state, true);
	do
	{
		/* Here the order of the keys does not matter. */
		if (device_sorts(state) && state->set.nintervals > gpuds_probe_sizes(&state->ref)->small_intervals)
			total += sorted_bitmap(scan, state, tbm);
		if (!state->end && !state->set.sorted)
		{
			/* From the beginning, in order: what is in the bitmap already may stay. */
			gpuds_key_set_sort(&state->set);
			scan_from_place(state, true);
			total = 0;
		}
		if (!state->end)
			total += collected_bitmap(scan, state, tbm);
	} while (next_batch(state));
	check_snapshot(scan);
	return total;
}

void
gpuds_markpos(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	state->mark.place = state->place;
	state->mark.current = state->current;
	state->mark.chunk_serial = state->chunk_serial;
	state->mark.at = state->at;
}

/*
 * Back to the mark; at no cost if its chunk is still at hand, as in merge
 * joins over short runs of equal keys.
 */
void
gpuds_restrpos(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	state->place = state->mark.place;
	state->current = state->mark.current;
	if (state->mark.chunk_serial == state->chunk_serial && state->place == PLACE_ON && state->nchunk > 0)
		state->at = state->mark.at;
	else if (state->place != PLACE_FRESH)
		scan_from_place(state, state->forward);
}

void
gpuds_endscan(IndexScanDesc scan)
{
	GpudsScanState *state = scan->opaque;

	hand_on_killed(state);
	gpuds_fallback_end(state->fallback);
	forget_keys(state);
	MemoryContextDelete(state->key_context);
	pfree(state->chunk);
	if (state->ref.fresh.ops)
		pfree(state->ref.fresh.ops);
	if (state->killed)
		pfree(state->killed);
	if (state->only)
		gpuds_index_only_end(state->only);
	pfree(state);
}
