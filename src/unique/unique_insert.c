/*-------------------------------------------------------------------------
 *
 * unique_insert.c
 *	  Inserts into unique indexes: the check, and then the entry.
 *
 * An entry of a unique index is not collected.  It is appended when its row comes, after a search for others
 * of its key:
 *
 *	  U1	From before the search until the entry has been appended, the session holds the lock on the key:
 *			a page lock of the lock manager's on the index, whose block number is a hash of the key's code.
 *			Equal keys have equal codes.
 *
 *			So of two sessions that insert one key, one gets the lock later.  Its search passes the barrier
 *			after the other's append has returned, and finds the other's entry (J1 in memtable/memtable.h, or
 *			the change counter).  The other's row was in the table before.
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
 * The lock is the lock manager's: waits for it can be cancelled, deadlocks are detected, and the end of the
 * (sub)transaction releases it after an error.  A session has one such lock at a time and waits for no
 * transaction while it has it.  It is no part of a prepared transaction: the row's xmin does its work.
 *
 * ON CONFLICT, and deferrable constraints if core had any of ours, only ask whether there may be a conflict
 * (UNIQUE_CHECK_PARTIAL).  The answer is given without waiting, and the entry is appended whatever it is.
 * By U1, of two speculative rows of one key only the later one is told of the other.
 *
 * A key with a NULL conflicts with none, unless NULLs are not distinct.  Its entry is collected as those of
 * other indexes are (insert/insert.c).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "catalog/index.h"
#include "common/hashfn.h"
#include "storage/lmgr.h"
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
	TupleTableSlot *slot; /* NULL: none has been needed */
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
	TransactionId xwait; /* a transaction to be waited for */
	uint32 token;        /* of its speculative insertion; 0: there is none */
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
		ExecDropSingleTupleTableSlot(state->slot);
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

/* The number of the lock on an entry's key (U1), which included columns and the TID are no part of. */
static BlockNumber
lock_of(const GpudsKeyLayout *layout, const GpudsEntry *entry)
{
	const GpudsEntry ones = gpuds_key_ones_behind(layout, layout->nkeys);
	const uint64 words[] = { entry->w0 & ~ones.w0, entry->w1 & ~ones.w1, entry->t & ~ones.t };

	return hash_bytes((const unsigned char *) words, sizeof(words));
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

/* U4: has the row in the slot the new row's key? */
static bool
has_key(const GpudsUniqueState *state, const NewRow *row)
{
	GpudsRowKey found;
	bool same;

	gpuds_row_key_begin(&found, row->index);
	same = gpuds_row_key_of(&found, state->slot) &&
		   gpuds_unique_same(&state->key, row->index, found.values, found.isnull, row->values, row->isnull);
	gpuds_row_key_end(&found);
	return same;
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
	row->xwait = TransactionIdIsValid(state->dirty.xmin) ? state->dirty.xmin : state->dirty.xmax;
	row->token = state->dirty.speculativeToken;
	if (TransactionIdIsValid(row->xwait))
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
		if (state->slot == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(state));

			state->slot = table_slot_create(row->heap, NULL);
			MemoryContextSwitchTo(old);
		}
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

/* Raises the error.  A serialization failure comes first, which the error would hide. */
static void
report(const NewRow *row, const GpudsKeyLayout *layout, const GpudsEntry *entry)
{
	char *description;

	gpuds_index_check_keys(row->index, layout, entry, 1);
	description = BuildIndexValueDescription(row->index, row->values, row->isnull);
	ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
					errmsg("duplicate key value violates unique constraint \"%s\"",
						   RelationGetRelationName(row->index)),
					description ? errdetail("Key %s already exists.", description) : 0,
					errtableconstraint(row->heap, RelationGetRelationName(row->index))));
}

/* U2: waits for whoever has inserted, updated or deleted a row of the key. */
static void
wait_for(const NewRow *row)
{
	if (row->token)
		SpeculativeInsertionWait(row->xwait, row->token);
	else
		XactLockTableWait(row->xwait, row->index, row->tid, XLTW_InsertIndex);
}

/* Looks until nothing is in progress; returns with the lock on the key. */
static Verdict
look_under_lock(GpudsUniqueState *state, NewRow *row, BlockNumber lock)
{
	Verdict verdict;

	for (;;)
	{
		LockPage(row->index, lock, ExclusiveLock);
		verdict = look(state, row);
		if (verdict != IN_PROGRESS)
			return verdict;
		UnlockPage(row->index, lock, ExclusiveLock);
		wait_for(row);
	}
}

/*
 * aminsert.  Returns false only if there may be a conflict of a row that is to be checked later.  Raises an
 * error at another row of the same key if the row is to be checked now, after having waited for transactions
 * that may have made or removed it.
 */
bool
gpuds_unique_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
					IndexUniqueCheck checkUnique, bool indexUnchanged, IndexInfo *indexInfo)
{
	NewRow row = {
		.heap = heap, .index = index, .tid = tid, .values = values, .isnull = isnull, .check = checkUnique
	};
	GpudsUniqueState *state;
	GpudsKeyLayout layout;
	GpudsEntry entry;
	Verdict verdict;
	BlockNumber lock;

	if (checkUnique == UNIQUE_CHECK_NO)
		return gpuds_insert(index, values, isnull, tid, heap, indexInfo);
	if (!indexInfo->ii_NullsNotDistinct && has_null(isnull, indexInfo->ii_NumIndexKeyAttrs))
	{
		if (checkUnique != UNIQUE_CHECK_EXISTING)
			(void) gpuds_insert(index, values, isnull, tid, heap, indexInfo);
		return true;
	}

	state = state_of(heap, index, indexInfo);
	gpuds_insert_encode(index, values, isnull, tid, &layout, &entry);
	lock = lock_of(&layout, &entry);
	verdict = look_under_lock(state, &row, lock);
	gpuds_injection_point("unique-looked");
	if (verdict == CONFLICT && checkUnique != UNIQUE_CHECK_PARTIAL)
	{
		UnlockPage(index, lock, ExclusiveLock);
		report(&row, &layout, &entry);
	}
	if (checkUnique != UNIQUE_CHECK_EXISTING)
		gpuds_insert_now(index, &layout, values, isnull, &entry);
	UnlockPage(index, lock, ExclusiveLock);
	return verdict == NO_CONFLICT;
}
