/*-------------------------------------------------------------------------
 *
 * changes.c
 *	  Counters of changes and of bulk deletes: has anything been appended to an index, may
 *	  the heap have given TIDs away?
 *
 * The counters are a fixed array in shared memory.  An index file's counter is found by
 * hashing its RelFileLocator.  Files that share a counter see each other's changes, which
 * costs them a look at their tail pages, and each other's bulk deletes, which cost index-only scans
 * visits to the heap, and old snapshots, where these expire, an error that is not due.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "port/atomics.h"
#include "storage/shmem.h"

#include "journal/journal_internal.h"

#define NCOUNTERS 8192 /* a power of two */

typedef struct Counters
{
	pg_atomic_uint64 changes[NCOUNTERS];
	pg_atomic_uint64 bulk_deletes[NCOUNTERS];
	pg_atomic_uint64 bulk_delete_lsn[NCOUNTERS]; /* end of WAL when the last one began */
} Counters;

static Counters *counters = NULL;

/* Shared memory that the counters need, in bytes. */
Size
gpuds_journal_shmem_size(void)
{
	return sizeof(Counters);
}

/* Creates or finds the counters.  The caller holds AddinShmemInitLock. */
void
gpuds_journal_shmem_init(void)
{
	bool found;

	counters = ShmemInitStruct("gpuds change counters", gpuds_journal_shmem_size(), &found);
	if (!found)
	{
		for (int i = 0; i < NCOUNTERS; i++)
		{
			pg_atomic_init_u64(&counters->changes[i], 0);
			pg_atomic_init_u64(&counters->bulk_deletes[i], 0);
			pg_atomic_init_u64(&counters->bulk_delete_lsn[i], InvalidXLogRecPtr);
		}
	}
}

/* Which counters are an index file's. */
static inline uint32
place_of(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);

	Assert(counters != NULL);
	return murmurhash32((uint32) locator->relNumber ^ murmurhash32((uint32) locator->dbOid)) &
		   (NCOUNTERS - 1);
}

/*
 * The present value of an index's change counter.  Takes no lock.  A caller that
 * sees the effects of a transaction (its snapshot says so) gets a value that
 * includes that transaction's appends: the appender counted before it committed.
 */
uint64
gpuds_journal_changes(Relation index)
{
	uint64 value = pg_atomic_read_u64(&counters->changes[place_of(index)]);

	pg_read_barrier();
	return value;
}

/* Counts an append, after its pages were changed. */
void
gpuds_journal_count_change(Relation index)
{
	pg_atomic_fetch_add_u64(&counters->changes[place_of(index)], 1);
}

/*
 * Bulk deletes of an index that have ended.  Takes no lock.  What the caller has read before, it
 * has read before the value; what it reads afterwards, after it.
 */
uint64
gpuds_journal_bulk_deletes(Relation index)
{
	uint64 value;

	pg_read_barrier();
	value = pg_atomic_read_u64(&counters->bulk_deletes[place_of(index)]);
	pg_read_barrier();
	return value;
}

/* Counts a bulk delete that is about to return, after its tombstones were appended. */
void
gpuds_journal_count_bulk_delete(Relation index)
{
	pg_atomic_fetch_add_u64(&counters->bulk_deletes[place_of(index)], 1);
}

/* Notes that a bulk delete begins, before its first tombstone. */
void
gpuds_journal_bulk_delete_begins(Relation index)
{
	pg_atomic_uint64 *lsn = &counters->bulk_delete_lsn[place_of(index)];
	uint64 now = GetXLogInsertRecPtr();
	uint64 old = pg_atomic_read_u64(lsn);

	while (old < now && !pg_atomic_compare_exchange_u64(lsn, &old, now))
		;
}

/*
 * Has a bulk delete of an index begun since WAL ended there?  What the caller has read
 * before, it has read before the answer.
 */
bool
gpuds_journal_bulk_deleted_since(Relation index, XLogRecPtr lsn)
{
	pg_read_barrier();
	return pg_atomic_read_u64(&counters->bulk_delete_lsn[place_of(index)]) >= lsn;
}
