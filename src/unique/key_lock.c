/*-------------------------------------------------------------------------
 *
 * key_lock.c
 *	  What sessions that insert one key do about each other: locks, waits, errors.
 *
 *	  U1	From before the search for others of a key until the key's entry has been appended, the session
 *			holds a lock on the key: a page lock of the lock manager's on the index, whose block number is a
 *			hash of the key's code.  Equal keys have equal codes.  Beside it, it has a lock on a page that
 *			stands for all keys, in a mode that others may have, too.  In place of many locks it has that one
 *			alone, in a mode that excludes them.
 *
 *			So of two sessions that insert one key, one gets its locks later.  Its search passes the barrier
 *			after the other's append has returned, and finds the other's entry (J1 in memtable/memtable.h, or
 *			the change counter).  The other's row was in the table before.
 *
 * The lock on all keys comes first, and those on keys follow in ascending order, so no two sessions wait for
 * each other because of them.  The locks are the lock manager's: waits for them can be cancelled, deadlocks
 * are detected, and the end of the (sub)transaction releases them after an error.  A session waits for no
 * transaction while it has them.  They are no part of a prepared transaction: the row's xmin does their work.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "common/hashfn.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "index/index.h"
#include "unique/unique.h"

/* The page that stands for all keys, and the numbers that keys have: no index has so many pages. */
#define ALL_KEYS ((BlockNumber) 0x80000000)
#define KEY_MASK ((BlockNumber) 0x7FFFFFFF)

/* The number of the lock on an entry's key, which included columns and the TID are no part of. */
BlockNumber
gpuds_key_lock_of(const GpudsKeyLayout *layout, const GpudsEntry *entry)
{
	const GpudsEntry ones = gpuds_key_ones_behind(layout, layout->nkeys);
	const uint64 words[] = { entry->w0 & ~ones.w0, entry->w1 & ~ones.w1, entry->t & ~ones.t };

	return hash_bytes((const unsigned char *) words, sizeof(words)) & KEY_MASK;
}

/* Locks keys of an index.  The caller has none of its keys locked. */
void
gpuds_lock_keys(Relation index, const GpudsKeyLocks *locks)
{
	LockPage(index, ALL_KEYS, locks->n == 0 ? ExclusiveLock : RowExclusiveLock);
	for (int i = 0; i < locks->n; i++)
		LockPage(index, locks->lock[i], ExclusiveLock);
}

/* Releases what gpuds_lock_keys has locked. */
void
gpuds_unlock_keys(Relation index, const GpudsKeyLocks *locks)
{
	for (int i = 0; i < locks->n; i++)
		UnlockPage(index, locks->lock[i], ExclusiveLock);
	UnlockPage(index, ALL_KEYS, locks->n == 0 ? ExclusiveLock : RowExclusiveLock);
}

/*
 * The transaction in progress that a row depends on, which the dirty snapshot has just seen; its key is that
 * of the new row at a TID.
 */
GpudsUniqueWait
gpuds_unique_in_progress(const SnapshotData *dirty, const ItemPointerData *tid)
{
	return (GpudsUniqueWait){ .xid = TransactionIdIsValid(dirty->xmin) ? dirty->xmin : dirty->xmax,
							  .token = dirty->speculativeToken,
							  .tid = *tid };
}

/* U2: waits for whoever has inserted, updated or deleted a row of the key.  The caller has locked none. */
void
gpuds_unique_wait(Relation index, const GpudsUniqueWait *wait)
{
	ItemPointerData tid = wait->tid;

	if (wait->token)
		SpeculativeInsertionWait(wait->xid, wait->token);
	else
		XactLockTableWait(wait->xid, index, &tid, XLTW_InsertIndex);
}

/* Raises the error.  A serialization failure comes first, which the error would hide. */
void
gpuds_unique_report(Relation heap, Relation index, const GpudsEntry *entry, Datum *values, bool *isnull)
{
	char *description;

	gpuds_index_check_keys(index, &gpuds_index_info(index)->layout, entry, 1);
	description = BuildIndexValueDescription(index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"", RelationGetRelationName(index)),
			 description ? errdetail("Key %s already exists.", description) : 0,
			 errtableconstraint(heap, RelationGetRelationName(index))));
}
