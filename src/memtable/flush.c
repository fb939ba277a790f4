/*-------------------------------------------------------------------------
 *
 * flush.c
 *	  The flusher's side of memtables: what to do next about each of them.
 *
 * A memtable goes round: its newest generation has become large or old, and the next
 * one is begun; when all appends are over that had begun before, the older one is frozen,
 * and the caller applies it to the mirrors; it is dropped, and when no reader has it
 * pinned any more its memory is given back.
 *
 * A memtable that is full is not flushed: a record of it may be missing below the ends,
 * which an append of the time has not found room for.  It is retired, which needs no
 * memory.  An appender that finds no room says so before its append is over, so it is enough to
 * look after the grace period.
 *
 * Grace periods.  A period is over when every append is over that was under way when it
 * began.  The flusher has one at a time, for all memtables together.
 *
 * All state is in shared memory, so that another process may go on where the flusher
 * has ended.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"

/* A generation that is not large is flushed when it is so old. */
#define FLUSH_AGE_MS 200

/* The period under way: what appenders had counted when it began. */
static uint64 *began_with = NULL;
static bool in_period = false;
static uint64 periods_over = 0;

void
gpuds_flusher_begin(void)
{
	if (began_with == NULL)
		began_with = MemoryContextAllocZero(TopMemoryContext, MaxBackends * sizeof(uint64));
	/* a period that another process has begun does not count */
	in_period = false;
	periods_over = 0;
	pg_atomic_fetch_add_u64(&gpuds_memtables.shared->period, 1);
	gpuds_memtables.shared->flusher = MyLatch;
}

/* The calling process is no longer the flusher.  No memtable is made until another one begins. */
void
gpuds_flusher_end(void)
{
	gpuds_memtables.shared->flusher = NULL;
}

static void
begin_period(void)
{
	in_period = true;
	/* A full barrier; pairs with that of gpuds_memtable_begin. */
	pg_atomic_fetch_add_u64(&gpuds_memtables.shared->period, 1);
	for (int i = 0; i < MaxBackends; i++)
		began_with[i] = pg_atomic_read_u64(&gpuds_memtables.appenders[i].count);
}

/* Is the period under way over? */
static bool
period_ends(void)
{
	for (int i = 0; i < MaxBackends; i++)
	{
		if (began_with[i] % 2 == 0)
			continue;
		if (pg_atomic_read_u64(&gpuds_memtables.appenders[i].count) == began_with[i])
			return false;
		began_with[i] = 0;
	}
	return true;
}

/* Is a period over?  Begins one if it has not begun.  What was appended before it is seen after it. */
static bool
is_over(uint64 period)
{
	if (periods_over < period)
	{
		if (!in_period)
			begin_period();
		if (!period_ends())
			return false;
		in_period = false;
		periods_over = pg_atomic_read_u64(&gpuds_memtables.shared->period);
	}
	pg_memory_barrier();
	return periods_over >= period;
}

/* Has no reader a version pinned that is older than the one at which something left? */
static bool
is_let_go(const GpudsMemtable *memtable)
{
	return pin_oldest(gpuds_memtables.pins, MaxBackends, memtable - gpuds_memtables.memtable + 1) >=
		   memtable->leaves_at;
}

/* Begins a new generation; false: no memory. */
static bool
begin_generation(GpudsMemtable *memtable)
{
	uint64 next = pg_atomic_read_u64(&memtable->newest) + 1;

	if (generation_begin(gpuds_memtables.arena, gpuds_memtable_generation(memtable, next)) != KERNEL_OK)
		return false;
	/*
	 * The block first, so that it is mostly not behind the end.  It may be, because an append of several
	 * pages notes the last of them with each record: then a reader starts from the stripe's beginning.
	 */
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		memtable->end_block[stripe] = pg_atomic_read_u32(&memtable->appended[stripe].block);
		pg_read_barrier();
		memtable->end[stripe] = pg_atomic_read_u64(&memtable->appended[stripe].number);
	}
	/* pairs with gpuds_memtable_newest */
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
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		frozen->end[stripe] = memtable->end[stripe];
		frozen->block[stripe] = memtable->end_block[stripe];
	}
	frozen->n = generation_entries(gpuds_memtable_generation(memtable, frozen->generation));
	frozen->nkills = __atomic_load_n(&gpuds_memtable_generation(memtable, frozen->generation)->nkills,
									 __ATOMIC_RELAXED);
}

/* Operations and kills of the newest generation. */
static uint64
count_newest(GpudsMemtable *memtable)
{
	const Generation *generation = gpuds_memtable_newest(memtable);

	return generation_entries(generation) + __atomic_load_n(&generation->nkills, __ATOMIC_RELAXED);
}

/* Is there anything for the mirrors in the newest generation, or was a mirror detached? */
static bool
has_work(GpudsMemtable *memtable)
{
	return count_newest(memtable) > 0 || pg_atomic_read_u32(&memtable->left) != 0;
}

/* Is it time for a new generation? */
static bool
is_due(GpudsMemtable *memtable)
{
	return count_newest(memtable) >= GPUDS_FLUSH_ENTRIES ||
		   TimestampDifferenceExceeds(memtable->begun, GetCurrentTimestamp(), FLUSH_AGE_MS);
}

/* What to do about a memtable that is in use.  The caller holds the lock exclusively. */
static GpudsFlushStep
next_step(GpudsMemtable *memtable, GpudsFrozen *frozen)
{
	if (memtable->leaving)
	{
		if (!is_let_go(memtable))
			return GPUDS_FLUSH_LATER;
		generation_drop(gpuds_memtables.arena,
						gpuds_memtable_generation(memtable, pg_atomic_read_u64(&memtable->oldest) - 1));
		memtable->leaving = false;
	}
	if (!is_over(memtable->period))
		return GPUDS_FLUSH_LATER;
	if (pg_atomic_read_u32(&memtable->full) != 0)
	{
		gpuds_memtable_retire(memtable);
		return GPUDS_FLUSH_LATER;
	}
	if (pg_atomic_read_u64(&memtable->oldest) == pg_atomic_read_u64(&memtable->newest))
	{
		if (!has_work(memtable))
			return GPUDS_FLUSH_IDLE;
		/* without memory for another generation it is as good as full */
		if (is_due(memtable) && !begin_generation(memtable))
		{
			pg_atomic_fetch_add_u64(&gpuds_memtables.shared->overflows, 1);
			gpuds_memtable_retire(memtable);
		}
		return GPUDS_FLUSH_LATER;
	}
	pg_atomic_write_u32(&memtable->left, 0);
	/* pairs with that of gpuds_memtable_detach */
	pg_memory_barrier();
	describe(memtable, frozen);
	return GPUDS_FLUSH_APPLY;
}

/* A look without the lock, at each of many: a process that changes what it sees wakes us afterwards. */
static bool
is_worth_a_look(GpudsMemtable *memtable)
{
	pg_read_barrier();
	if (pg_atomic_read_u64(&memtable->serial) == 0)
		return memtable->retired;
	return memtable->leaving || pg_atomic_read_u32(&memtable->full) != 0 ||
		   pg_atomic_read_u64(&memtable->oldest) != pg_atomic_read_u64(&memtable->newest) ||
		   has_work(memtable);
}

GpudsFlushStep
gpuds_flush_step(int number, GpudsFrozen *frozen)
{
	GpudsMemtable *memtable = &gpuds_memtables.memtable[number];
	GpudsFlushStep step = GPUDS_FLUSH_IDLE;
	bool free = false;

	if (number >= gpuds_slots_count(gpuds_memtables.slots))
		return GPUDS_FLUSH_NONE;
	if (!is_worth_a_look(memtable))
		return GPUDS_FLUSH_IDLE;
	/* Others make and retire memtables: not while we decide. */
	gpuds_files_lock(LW_EXCLUSIVE);
	if (memtable->retired)
	{
		free = is_over(memtable->period) && is_let_go(memtable);
		step = free ? GPUDS_FLUSH_IDLE : GPUDS_FLUSH_LATER;
	}
	else if (pg_atomic_read_u64(&memtable->serial) != 0)
		step = next_step(memtable, frozen);
	gpuds_files_unlock();
	if (free)
		gpuds_memtable_free(memtable);
	return step;
}

/* Has a mirror at position got a record? */
static bool
is_below(const uint64 *position, const GpudsEntry *entry, uint64 order)
{
	return order >> 1 < position[gpuds_stripe_of(entry)];
}

int64
gpuds_flush_read(const GpudsFrozen *frozen, const uint64 *position, GpudsOp *ops, bool *beyond)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(frozen->serial);
	const Generation *generation = gpuds_memtable_generation(memtable, frozen->generation);
	const GenerationNode *last = NULL;
	int64 n = 0;

	*beyond = false;
	for (uint32 link = generation_first(generation); link != 0 && n < frozen->n;
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
	return n;
}

int64
gpuds_flush_read_kills(const GpudsFrozen *frozen, GpudsOp *ops)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(frozen->serial);
	uint64 stamp = pg_atomic_read_u64(&memtable->deletes);
	const GenerationKill *kill;
	int64 n = 0;

	/* one that was retired hears of no bulk delete */
	pg_read_barrier();
	if (!gpuds_memtable_is_complete(frozen->serial))
		return 0;
	for (uint32 link = generation_kills(gpuds_memtable_generation(memtable, frozen->generation));
		 link != 0 && n < frozen->nkills; link = kill->next)
	{
		kill = generation_kill_at(gpuds_memtables.arena, link);
		if (kill->stamp != stamp)
			continue;
		ops[n].e = kill->entry;
		ops[n].order = (uint64) n << 1 | GPUDS_OP_DELETE;
		n++;
	}
	return n;
}

void
gpuds_flush_drop(const GpudsFrozen *frozen, GpudsFlushCheck check)
{
	GpudsMemtable *memtable = gpuds_memtable_slot(frozen->serial);
	int attached;

	gpuds_files_lock(LW_EXCLUSIVE);
	if (pg_atomic_read_u64(&memtable->serial) == frozen->serial && (attached = check(frozen)) >= 0)
	{
		if (attached == 0)
			gpuds_memtable_retire(memtable);
		else
		{
			pg_atomic_write_u64(&memtable->oldest, frozen->generation + 1);
			pg_atomic_fetch_add_u64(&gpuds_memtables.shared->flushed, frozen->n);
			memtable->leaves_at = __atomic_add_fetch(&memtable->version, 1, __ATOMIC_SEQ_CST);
			memtable->leaving = true;
		}
	}
	gpuds_files_unlock();
}
