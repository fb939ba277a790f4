/*-------------------------------------------------------------------------
 *
 * drain.c
 *	  The drainer's side of memtables: what to do next about each of them.
 *
 * A memtable goes round: its newest generation has become large or old, and the next
 * one is begun; when all appends are over that had begun before, the older one is frozen,
 * and the caller applies it to the mirrors; it is dropped, and when no reader has it
 * pinned any more its memory is given back.
 *
 * Grace periods.  A period is over when every append is over that was under way when it
 * began.  The drainer has one at a time, for all memtables together.
 *
 * All state is in shared memory, so that another process may go on where the drainer
 * has ended.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "memtable/internal.h"

/* A generation that is not large is drained when it is so old. */
#define DRAIN_AGE_MS 200

/* The period under way: what appenders had counted when it began. */
static uint64 *began_with = NULL;
static bool in_period = false;
static uint64 periods_over = 0;

void
gpuds_drainer_begin(void)
{
	if (began_with == NULL)
		began_with = MemoryContextAllocZero(TopMemoryContext, MaxBackends * sizeof(uint64));
	/* a period that another process has begun does not count */
	in_period = false;
	periods_over = 0;
	pg_atomic_fetch_add_u64(&gpuds_memtables.shared->period, 1);
	gpuds_memtables.shared->drainer = MyLatch;
}

void
gpuds_drainer_end(void)
{
	gpuds_memtables.shared->drainer = NULL;
}

void
gpuds_drainer_wake(void)
{
	Latch *latch = gpuds_memtables.shared->drainer;

	if (latch)
		SetLatch(latch);
}

/* Is a period over?  Begins one if it has not begun. */
static bool
is_over(uint64 period)
{
	if (periods_over >= period)
		return true;
	if (!in_period)
	{
		in_period = true;
		pg_atomic_fetch_add_u64(&gpuds_memtables.shared->period, 1);
		for (int i = 0; i < MaxBackends; i++)
			began_with[i] = pg_atomic_read_u64(&gpuds_memtables.appenders[i].count);
	}
	for (int i = 0; i < MaxBackends; i++)
	{
		if (began_with[i] % 2 != 0)
		{
			if (pg_atomic_read_u64(&gpuds_memtables.appenders[i].count) == began_with[i])
				return false;
			began_with[i] = 0;
		}
	}
	in_period = false;
	periods_over = pg_atomic_read_u64(&gpuds_memtables.shared->period);
	return periods_over >= period;
}

/* Has no reader a version pinned that is older than the one at which something left? */
static bool
is_let_go(const GpudsMemtable *memtable)
{
	return pin_oldest(gpuds_memtables.pins, MaxBackends, memtable - gpuds_memtables.slots + 1) >=
		   memtable->leaves_at;
}

/* Is it time for a new generation? */
static bool
is_due(GpudsMemtable *memtable, uint64 entries)
{
	if (entries >= GPUDS_DRAIN_ENTRIES || pg_atomic_read_u32(&memtable->full) != 0)
		return true;
	return TimestampDifferenceExceeds(memtable->begun, GetCurrentTimestamp(), DRAIN_AGE_MS);
}

/* Begins a new generation; false: no memory. */
static bool
begin_generation(GpudsMemtable *memtable)
{
	uint64 next = pg_atomic_read_u64(&memtable->newest) + 1;

	if (generation_begin(gpuds_memtables.arena, gpuds_memtable_generation(memtable, next)) != KERNEL_OK)
		return false;
	/* The block first: it must not be behind the end. */
	for (int lane = 0; lane < GPUDS_LANES; lane++)
	{
		memtable->end_block[lane] = pg_atomic_read_u32(&memtable->block[lane]);
		pg_read_barrier();
		memtable->end[lane] = pg_atomic_read_u64(&memtable->appended[lane]);
	}
	pg_memory_barrier();
	pg_atomic_write_u64(&memtable->newest, next);
	memtable->begun = GetCurrentTimestamp();
	memtable->period = gpuds_memtable_next_period();
	return true;
}

static void
describe(GpudsMemtable *memtable, GpudsFrozen *frozen)
{
	frozen->serial = pg_atomic_read_u64(&memtable->serial);
	frozen->generation = pg_atomic_read_u64(&memtable->oldest);
	frozen->file = memtable->file;
	for (int lane = 0; lane < GPUDS_LANES; lane++)
	{
		frozen->end[lane] = memtable->end[lane];
		frozen->block[lane] = memtable->end_block[lane];
	}
	frozen->n = generation_entries(gpuds_memtable_generation(memtable, frozen->generation));
}

/* What to do about a memtable that is in use. */
static GpudsDrainStep
next_step(GpudsMemtable *memtable, GpudsFrozen *frozen)
{
	uint64 newest = pg_atomic_read_u64(&memtable->newest);

	if (memtable->leaving)
	{
		if (!is_let_go(memtable))
			return GPUDS_DRAIN_LATER;
		generation_drop(gpuds_memtables.arena,
						gpuds_memtable_generation(memtable, pg_atomic_read_u64(&memtable->oldest) - 1));
		memtable->leaving = false;
	}
	if (pg_atomic_read_u64(&memtable->oldest) == newest)
	{
		uint64 entries = generation_entries(gpuds_memtable_generation(memtable, newest));

		if (entries == 0 && pg_atomic_read_u32(&memtable->left) == 0)
			return GPUDS_DRAIN_IDLE;
		if (!is_due(memtable, entries) || !is_over(memtable->period) || !begin_generation(memtable))
			return GPUDS_DRAIN_LATER;
	}
	if (!is_over(memtable->period))
		return GPUDS_DRAIN_LATER;
	pg_atomic_write_u32(&memtable->left, 0);
	describe(memtable, frozen);
	return GPUDS_DRAIN_APPLY;
}

GpudsDrainStep
gpuds_drain_step(int number, GpudsFrozen *frozen)
{
	GpudsMemtable *memtable = &gpuds_memtables.slots[number];
	GpudsDrainStep step = GPUDS_DRAIN_IDLE;

	if (number >= (int) pg_atomic_read_u32(&gpuds_memtables.shared->nused))
		return GPUDS_DRAIN_NONE;
	pg_read_barrier();
	if (memtable->retired)
	{
		if (!is_over(memtable->period) || !is_let_go(memtable))
			return GPUDS_DRAIN_LATER;
		gpuds_memtable_free(memtable);
		return GPUDS_DRAIN_IDLE;
	}
	/* Others make and retire memtables: not while we decide. */
	LWLockAcquire(gpuds_memtables.lock, LW_SHARED);
	if (pg_atomic_read_u64(&memtable->serial) != 0)
		step = next_step(memtable, frozen);
	LWLockRelease(gpuds_memtables.lock);
	return step;
}

/* Has a mirror at position got a record? */
static bool
is_below(const uint64 *position, const GpudsEntry *entry, uint64 order)
{
	return order >> 1 < position[(entry->t >> 16) % GPUDS_LANES];
}

int64
gpuds_drain_read(const GpudsFrozen *frozen, const uint64 *position, GpudsOp *ops, bool *beyond)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(frozen->serial);
	const Generation *generation = gpuds_memtable_generation(memtable, frozen->generation);
	const GenerationNode *last = NULL;
	int64 n = 0;

	*beyond = false;
	for (uint32 link = generation_first(generation); link != 0;
		 link = generation_next(gpuds_memtables.arena, link))
	{
		const GenerationNode *node = generation_node(gpuds_memtables.arena, link);
		bool overruled = last && entry_equal(&node->entry, &last->entry);

		last = node;
		if (!is_below(frozen->end, &node->entry, node->order))
			*beyond = true;
		if (overruled || is_below(position, &node->entry, node->order))
			continue;
		ops[n].e = node->entry;
		ops[n].order = node->order;
		n++;
	}
	Assert(n <= frozen->n);
	return n;
}

void
gpuds_drain_drop(const GpudsFrozen *frozen, GpudsDrainCheck check)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(frozen->serial);
	int joined;

	LWLockAcquire(gpuds_memtables.lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&memtable->serial) == frozen->serial && (joined = check(frozen)) >= 0)
	{
		if (joined == 0)
			gpuds_memtable_retire(memtable);
		else
		{
			pg_atomic_write_u64(&memtable->oldest, frozen->generation + 1);
			memtable->leaves_at = __atomic_add_fetch(&memtable->version, 1, __ATOMIC_SEQ_CST);
			memtable->leaving = true;
		}
	}
	LWLockRelease(gpuds_memtables.lock);
}
