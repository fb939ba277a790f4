/*-------------------------------------------------------------------------
 *
 * unique_insert.c
 *	  Inserts into unique indexes.
 *
 * A statement's rows are checked together before it ends (unique_batch.c).  A row that comes alone is checked
 * by itself, and its entry appended after a search for others of its key under the key's lock (key_lock.c):
 * the first row of a statement, or since the index was searched last; rows of ON CONFLICT; and all where
 * nothing is collected (insert/insert.c).
 *
 *	  U2	The search uses a dirty snapshot: it sees rows that have been committed, rows of its own
 *			transaction and rows of transactions in progress.  What is in progress is waited for, without the
 *			lock and before the session's own entry has been appended.  Then all begins anew.
 *
 *			So who waits has no entry that others would wait for, and no two sessions wait for each other
 *			because of one key.  Who has an entry has it because no live row had its key under the lock.
 *			An entry that was appended is a live row's, or that of a row which is dead for good.
 *
 *	  U3	A row that another session updates keeps its key covered.  If the update is HOT, the entry leads
 *			to the new version.  Else the new version needs an entry, which comes under the lock, too.  If it
 *			has come before our search, we find it; if not, the update's transaction is not over, and the
 *			search sees the old version as in progress.
 *
 *	  U4	A row that the search finds counts only if its own values are equal to the key's.  VACUUM may have
 *			removed the row of an entry, and the table given its TID to another row, between the search and
 *			the look at the row.  A live row's entry is not removed, so nothing is missed by that.
 *
 * A row whose entries are collected and whose key another live row has is no error yet: its entry is
 * collected, too, and decided with the others.
 *
 * ON CONFLICT, and deferrable constraints if core had any of ours, only ask whether there may be a conflict
 * (UNIQUE_CHECK_PARTIAL).  The answer is given without waiting, and the entry is appended whatever it is.
 * By U1, of two speculative rows of one key only the later one is told of the other.
 *
 * A key with a NULL conflicts with none, unless NULLs are not distinct.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "catalog/index.h"
#include "utils/snapmgr.h"

#include "index/index.h"
#include "insert/insert.h"
#include "unique/unique.h"

/* What a statement's checks of an index share.  It lasts until core says that there are no more inserts. */
struct GpudsUniqueState
{
	GpudsUniqueKey key;
	SnapshotData dirty; /* of the scan */
	IndexScanDesc scan;

	/* to look at rows that were found; NULL: none has been */
	TupleTableSlot *slot;
	GpudsRowKey found;
};

/* A row that is being inserted, and what is known of others of its key. */
typedef struct NewRow
{
	Relation heap;
	Relation index;
	ItemPointer tid;
	Datum *values;
	bool *isnull;
	IndexUniqueCheck check;
	GpudsUniqueWait wait; /* what is in progress */
} NewRow;

typedef enum Verdict
{
	NO_CONFLICT,
	CONFLICT,
	IN_PROGRESS
} Verdict;

static GpudsUniqueState *
state_of(Relation heap, Relation index, IndexInfo *indexInfo)
{
	GpudsInsertCache *cache = gpuds_insert_cache(indexInfo);
	GpudsUniqueState *state = cache->unique;
	MemoryContext old;

	if (state)
		return state;
	old = MemoryContextSwitchTo(indexInfo->ii_Context);
	state = palloc0(sizeof(GpudsUniqueState));
	gpuds_unique_key(index, &state->key);
	InitDirtySnapshot(state->dirty);
	state->scan = GpudsIndexBeginscan(heap, index, &state->dirty, state->key.nkeys, false);
	MemoryContextSwitchTo(old);
	return cache->unique = state;
}

/* aminsertcleanup: ends what gpuds_unique_insert has kept for the statement's next row. */
void
gpuds_unique_cleanup(Relation index, IndexInfo *indexInfo)
{
	GpudsInsertCache *cache = indexInfo->ii_AmCache;
	GpudsUniqueState *state = cache ? cache->unique : NULL;

	if (state == NULL)
		return;
	if (state->slot)
	{
		gpuds_row_key_end(&state->found);
		ExecDropSingleTupleTableSlot(state->slot);
	}
	index_endscan(state->scan);
	cache->unique = NULL;
}

static bool
has_null(const bool *isnull, int nkeys)
{
	for (int i = 0; i < nkeys; i++)
	{
		if (isnull[i])
			return true;
	}
	return false;
}

static void
search_for(GpudsUniqueState *state, const NewRow *row)
{
	ScanKeyData keys[GPUDS_KEY_MAX_COLUMNS];

	for (int i = 0; i < state->key.nkeys; i++)
		ScanKeyEntryInitializeWithInfo(&keys[i], row->isnull[i] ? SK_ISNULL | SK_SEARCHNULL : 0, i + 1,
									   state->key.strategy, InvalidOid, row->index->rd_indcollation[i],
									   &state->key.equal[i], row->values[i]);
	index_rescan(state->scan, keys, state->key.nkeys, NULL, 0);
}

/* Prepares to look at rows. */
static void
begin_reading(GpudsUniqueState *state, const NewRow *row)
{
	MemoryContext old;

	if (state->slot)
		return;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(state));
	gpuds_row_key_begin(&state->found, row->index);
	state->slot = table_slot_create(row->heap, NULL);
	MemoryContextSwitchTo(old);
}

/* U4: has the row in the slot the new row's key? */
static bool
has_key(GpudsUniqueState *state, const NewRow *row)
{
	return gpuds_row_key_of(&state->found, state->slot) &&
		   gpuds_unique_same(&state->key, row->index, state->found.values, state->found.isnull, row->values,
							 row->isnull);
}

/*
 * Does the table have a version of the new row that is not deleted?  CREATE INDEX CONCURRENTLY inserts
 * others, too.
 */
static bool
is_alive(const NewRow *row)
{
	ItemPointerData tid = *row->tid;

	return table_index_fetch_tuple_check(row->heap, &tid, SnapshotSelf, NULL);
}

/* What a live row of the same key, which the dirty snapshot has looked at, means for the new one. */
static Verdict
judge(const GpudsUniqueState *state, NewRow *row)
{
	if (row->check == UNIQUE_CHECK_PARTIAL)
		return CONFLICT;
	row->wait = gpuds_unique_in_progress(&state->dirty, row->tid);
	if (TransactionIdIsValid(row->wait.xid))
		return IN_PROGRESS;
	return is_alive(row) ? CONFLICT : NO_CONFLICT;
}

/* Looks for another row of the key.  The caller holds the key's lock. */
static Verdict
look(GpudsUniqueState *state, NewRow *row)
{
	Verdict verdict = NO_CONFLICT;
	ItemPointer found;

	search_for(state, row);
	while ((found = index_getnext_tid(state->scan, ForwardScanDirection)) != NULL)
	{
		if (ItemPointerEquals(found, row->tid))
			continue;
		begin_reading(state, row);
		if (!index_fetch_heap(state->scan, state->slot))
			continue;
		if (!has_key(state, row))
			continue;
		verdict = judge(state, row);
		break;
	}
	/* no pin is kept, nor one of the scan's own, which it has unless it has come to its end */
	if (state->slot)
		ExecClearTuple(state->slot);
	if (found)
		index_rescan(state->scan, NULL, state->key.nkeys, NULL, 0);
	else
		table_index_fetch_reset(state->scan->xs_heapfetch);
	return verdict;
}

/* Looks until nothing is in progress; returns with the lock on the key. */
static Verdict
look_under_lock(GpudsUniqueState *state, NewRow *row, const GpudsKeyLocks *lock)
{
	Verdict verdict;

	for (;;)
	{
		gpuds_lock_keys(row->index, lock);
		verdict = look(state, row);
		if (verdict != IN_PROGRESS)
			return verdict;
		gpuds_unlock_keys(row->index, lock);
		gpuds_unique_wait(row->index, &row->wait);
	}
}

/*
 * Checks a row and inserts its entry.  No conflict: all is done.  Else it was PARTIAL, and the entry has been
 * inserted, or nothing has been done.
 */
static Verdict
insert_alone(NewRow *row, IndexInfo *indexInfo)
{
	GpudsUniqueState *state = state_of(row->heap, row->index, indexInfo);
	GpudsKeyLocks lock = { .n = 1 };
	GpudsKeyLayout layout;
	GpudsEntry entry;
	Verdict verdict;

	gpuds_insert_encode(row->index, row->values, row->isnull, row->tid, &layout, &entry);
	lock.lock[0] = gpuds_key_lock_of(&layout, &entry);
	verdict = look_under_lock(state, row, &lock);
	gpuds_injection_point("unique-looked");
	if (row->check == UNIQUE_CHECK_PARTIAL || (row->check == UNIQUE_CHECK_YES && verdict == NO_CONFLICT))
		gpuds_insert_now(row->index, &layout, row->values, row->isnull, &entry);
	gpuds_unlock_keys(row->index, &lock);
	return verdict;
}

/* The same while the search appends nothing: what has been collected was, before the lock. */
static Verdict
hold_and_insert(NewRow *row, IndexInfo *indexInfo)
{
	bool outer;
	Verdict verdict;

	gpuds_insert_flush(row->index);
	outer = gpuds_insert_hold(true);
	PG_TRY();
	{
		verdict = insert_alone(row, indexInfo);
	}
	PG_FINALLY();
	{
		(void) gpuds_insert_hold(outer);
	}
	PG_END_TRY();
	return verdict;
}

static void
report(const NewRow *row)
{
	GpudsKeyLayout layout;
	GpudsEntry entry;

	gpuds_insert_encode(row->index, row->values, row->isnull, row->tid, &layout, &entry);
	gpuds_unique_report(row->heap, row->index, &entry, row->values, row->isnull);
}

/*
 * aminsert.  Returns false only if there may be a conflict of a row that is to be checked later.  Raises an
 * error at another row of the same key if the row is to be checked now and its entry cannot be collected,
 * after having waited for transactions that may have made or removed it.
 */
bool
gpuds_unique_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
					IndexUniqueCheck checkUnique, bool indexUnchanged, IndexInfo *indexInfo)
{
	NewRow row = {
		.heap = heap, .index = index, .tid = tid, .values = values, .isnull = isnull, .check = checkUnique
	};
	const GpudsInsertCheck *check = index->rd_index->indisunique ? &gpuds_unique_check : NULL;
	bool collects;
	Verdict verdict;

	if (checkUnique == UNIQUE_CHECK_NO)
		return gpuds_insert(index, values, isnull, tid, heap, indexInfo, check);
	if (!indexInfo->ii_NullsNotDistinct && has_null(isnull, indexInfo->ii_NumIndexKeyAttrs))
	{
		if (checkUnique != UNIQUE_CHECK_EXISTING)
			(void) gpuds_insert(index, values, isnull, tid, heap, indexInfo, check);
		return true;
	}

	collects = checkUnique == UNIQUE_CHECK_YES && gpuds_insert_collects(heap, indexInfo);
	if (!collects || gpuds_insert_is_first(index, indexInfo))
	{
		verdict = hold_and_insert(&row, indexInfo);
		if (verdict == NO_CONFLICT || checkUnique == UNIQUE_CHECK_PARTIAL)
			return verdict == NO_CONFLICT;
		if (!collects)
			report(&row);
	}
	(void) gpuds_insert(index, values, isnull, tid, heap, indexInfo, check);
	return true;
}
