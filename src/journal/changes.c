/*-------------------------------------------------------------------------
 *
 * changes.c
 *	  The change counters: has anything been appended to an index?
 *
 * The counters are a fixed array in shared memory.  An index file's counter is found by
 * hashing its RelFileLocator.  Files that share a counter see each other's changes, which
 * costs them a look at their tail pages and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/atomics.h"
#include "storage/shmem.h"

#include "journal/internal.h"

#define NCOUNTERS 8192 /* a power of two */

static pg_atomic_uint64 *counters = NULL;

/* Shared memory that the counters need, in bytes. */
Size
gpuds_journal_shmem_size(void)
{
	return mul_size(NCOUNTERS, sizeof(pg_atomic_uint64));
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
			pg_atomic_init_u64(&counters[i], 0);
	}
}

static inline pg_atomic_uint64 *
counter_of(Relation index)
{
	const RelFileLocator *locator = &RelationLocator(index);
	uint32 h;

	Assert(counters != NULL);
	h = murmurhash32((uint32) locator->relNumber ^ murmurhash32((uint32) locator->dbOid));
	return &counters[h & (NCOUNTERS - 1)];
}

/*
 * The present value of an index's change counter.  Takes no lock.  Whoever has
 * seen the effects of a transaction (its snapshot says so) gets a value that
 * includes that transaction's appends: the appender counted before it committed.
 */
uint64
gpuds_journal_changes(Relation index)
{
	uint64 value = pg_atomic_read_u64(counter_of(index));

	pg_read_barrier();
	return value;
}

/* Counts an append, after its pages were changed. */
void
gpuds_journal_count_change(Relation index)
{
	pg_atomic_fetch_add_u64(counter_of(index), 1);
}
