/*-------------------------------------------------------------------------
 *
 * side_chunks.c
 *	  The memory of the stores of side values, in chunks.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "storage/spin.h"

#include "side/side_chunks.h"

typedef struct SideChunks
{
	slock_t lock; /* of what follows */
	uint32 free;  /* first free chunk, of those that were used before */
	uint32 fresh; /* chunks used so far */
	uint32 taken;
} SideChunks;

static SideChunks *shared;
static char *chunks;
static uint32 nchunks;

static size_t
memory_bytes(void)
{
	return (size_t) gpuds_include_memory_mb * 1024 * 1024;
}

/* Shared memory that they need, in bytes. */
Size
gpuds_side_chunks_size(void)
{
	return add_size(MAXALIGN(sizeof(SideChunks)) + PG_CACHE_LINE_SIZE, memory_bytes());
}

/* Attaches to it; found: it has been set up. */
void
gpuds_side_chunks_init(char *at, bool found)
{
	shared = (SideChunks *) at;
	chunks = (char *) CACHELINEALIGN(at + MAXALIGN(sizeof(SideChunks)));
	nchunks = (uint32) (memory_bytes() / SIDE_CHUNK_BYTES);
	if (found)
		return;
	SpinLockInit(&shared->lock);
	shared->free = shared->fresh = shared->taken = 0;
}

/* How many there are. */
uint32
gpuds_side_chunks(void)
{
	return nchunks;
}

/* How many are taken. */
uint32
gpuds_side_chunks_taken(void)
{
	uint32 taken;

	SpinLockAcquire(&shared->lock);
	taken = shared->taken;
	SpinLockRelease(&shared->lock);
	return taken;
}

/* The memory of a chunk, by its number. */
char *
gpuds_side_chunk(uint32 ref)
{
	return chunks + (size_t) (ref - 1) * SIDE_CHUNK_BYTES;
}

/* A chunk of zeros; 0: there is none. */
uint32
gpuds_side_take_chunk(void)
{
	uint32 ref = 0;

	SpinLockAcquire(&shared->lock);
	if (shared->free != 0)
	{
		ref = shared->free;
		memcpy(&shared->free, gpuds_side_chunk(ref), sizeof(shared->free));
	}
	else if (shared->fresh < nchunks)
		ref = ++shared->fresh;
	shared->taken += ref != 0;
	SpinLockRelease(&shared->lock);
	if (ref != 0)
		memset(gpuds_side_chunk(ref), 0, SIDE_CHUNK_BYTES);
	return ref;
}

/* Gives a chunk back that nobody refers to. */
void
gpuds_side_give_chunk(uint32 ref)
{
	SpinLockAcquire(&shared->lock);
	memcpy(gpuds_side_chunk(ref), &shared->free, sizeof(shared->free));
	shared->free = ref;
	shared->taken--;
	SpinLockRelease(&shared->lock);
}

/*
 * What a place of a root or directory leads to; made: if it leads nowhere, to a new chunk; 0: nowhere.  The
 * caller has entered.
 */
uint32
gpuds_side_follow(pg_atomic_uint32 *place, bool made)
{
	uint32 ref = pg_atomic_read_u32(place);
	uint32 mine;

	if (ref != 0 || !made)
	{
		pg_read_barrier();
		return ref;
	}
	mine = gpuds_side_take_chunk();
	if (mine == 0)
		return 0;
	if (pg_atomic_compare_exchange_u32(place, &ref, mine))
		return mine;
	gpuds_side_give_chunk(mine);
	return ref;
}
