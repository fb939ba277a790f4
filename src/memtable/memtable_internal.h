/*-------------------------------------------------------------------------
 *
 * memtable_internal.h
 *	  What a memtable is in shared memory, for the files of this directory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_MEMTABLE_INTERNAL_H
#define GPUDS_MEMTABLE_INTERNAL_H

#include "storage/latch.h"
#include "storage/lwlock.h"

#include "kernels/core/pins.h"
#include "kernels/memtable/collect.h"
#include "memtable/memtable.h"

/* Operations of a generation at which the flusher begins the next one. */
#define GPUDS_FLUSH_ENTRIES 16384

/* How far a stripe has been put in: a cache line of its own, because each append changes it. */
typedef struct GpudsStripeEnd
{
	pg_atomic_uint64 number; /* one above the highest record number */
	pg_atomic_uint32 block;  /* page of that record */
	char padding[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64) - sizeof(pg_atomic_uint32)];
} GpudsStripeEnd;

typedef struct GpudsMemtable
{
	pg_atomic_uint64 serial; /* 0: not in the directory; changes under its lock */
	GpudsFile file;          /* while serial stays the same */

	uint64 version; /* atomic, for pins: moves when readers are to let go of something */

	/* Numbers of generations; of number g is generation[g % MEMTABLE_GENERATIONS]. */
	pg_atomic_uint64 newest; /* only ever rises, over all lives of the slot */
	pg_atomic_uint64 oldest; /* changes under the lock */

	pg_atomic_uint32 full; /* operations are missing */
	pg_atomic_uint32 left; /* a mirror was detached from it */

	pg_atomic_uint64 deletes; /* bulk deletes that have ended; only ever rises, too */

	/* the flusher's, but for what is set when it is made and when it is retired */
	bool retired;              /* is to be freed */
	bool leaving;              /* the generation before the oldest is to be dropped ... */
	uint64 leaves_at;          /* ... when no pin is older than this version */
	uint64 period;             /* grace period that has to be over before anything more is done */
	TimestampTz begun;         /* when the newest generation was begun */
	uint64 end[GPUDS_STRIPES]; /* appended, as of then */
	BlockNumber end_block[GPUDS_STRIPES];

	/* what appends change, in lines of its own */
	GpudsStripeEnd appended[GPUDS_STRIPES] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	Generation generation[MEMTABLE_GENERATIONS] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} GpudsMemtable;

StaticAssertDecl(sizeof(GpudsStripeEnd) == PG_CACHE_LINE_SIZE, "a stripe's end has a cache line");
StaticAssertDecl(sizeof(Generation) % PG_CACHE_LINE_SIZE == 0, "generations do not share cache lines");
StaticAssertDecl(sizeof(GpudsMemtable) % PG_CACHE_LINE_SIZE == 0, "nor do memtables");

/* Whether a backend appends: a cache line of its own. */
typedef struct GpudsAppender
{
	pg_atomic_uint64 count; /* of its appends begun and ended: odd while it appends */
	char padding[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint64)];
} GpudsAppender;

typedef struct GpudsMemtables
{
	Arena *arena;
	GpudsAppender *appenders; /* MaxBackends */
	PinSlot *pins;            /* MaxBackends */
	struct GpudsMemtableShared *shared;
	GpudsSlots *slots;
	GpudsMemtable *memtable; /* in them */
} GpudsMemtables;

typedef struct GpudsMemtableShared
{
	Latch *volatile flusher; /* its latch, NULL: there is none */
	pg_atomic_uint64 period; /* grace periods begun; the flusher's */

	/* for GpudsMemtableReport */
	pg_atomic_uint64 flushed;
	pg_atomic_uint64 overflows;
} GpudsMemtableShared;

/* Where it all is, in this process. */
extern GpudsMemtables gpuds_memtables;

extern GpudsMemtable *gpuds_memtable_find(const RelFileLocator *locator);
extern GpudsMemtable *gpuds_memtable_slot(uint64 serial);
extern void gpuds_memtable_retire(GpudsMemtable *memtable);
extern void gpuds_memtable_free(GpudsMemtable *memtable);
extern uint64 gpuds_memtable_next_period(void);

static inline Generation *
gpuds_memtable_generation(GpudsMemtable *memtable, uint64 number)
{
	return &memtable->generation[number % MEMTABLE_GENERATIONS];
}

/* The newest generation.  Pairs with the barrier before its number (begin_generation): it is complete. */
static inline Generation *
gpuds_memtable_newest(GpudsMemtable *memtable)
{
	uint64 number = pg_atomic_read_u64(&memtable->newest);

	pg_read_barrier();
	return gpuds_memtable_generation(memtable, number);
}

#endif /* GPUDS_MEMTABLE_INTERNAL_H */
