/*-------------------------------------------------------------------------
 *
 * pool.h
 *	  Device memory for all structures: one range, cut into chunks of 2 MB.
 *
 * The range is counted in units of 64 bytes.  A GpuRef names a node by the unit
 * that it begins at; chunk 0 is never handed out, so that no node is number 0.
 *
 * Single chunks, for nodes, come from the low end.  Spans of neighbouring chunks,
 * for arrays, come from the high end: they come and go, and so find the room again
 * that other spans have left.
 *
 * Only the host knows which chunks are taken.  A caller that gives chunks back has
 * made sure that the device no longer uses them.  Safe with threads.
 *
 * Chunks may be held for what could be made again (spare).  They are given back before a caller is told that
 * there are none.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_POOL_H
#define GPU_POOL_H

#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "kernels/runtime/runtime.h"

#define GPU_CHUNK_BYTES ((size_t) 2 << 20)
#define GPU_UNIT_BYTES 64
#define GPU_CHUNK_UNITS ((uint32_t) (GPU_CHUNK_BYTES / GPU_UNIT_BYTES))

/* More have no unit numbers. */
#define GPU_MAX_CHUNKS ((size_t) (UINT64_C(0x100000000) / GPU_CHUNK_UNITS))

/* Number of a unit from the pool's base, at which a node begins; 0: none. */
typedef uint32_t GpuRef;

struct GpuPool
{
	unsigned char *base = NULL; /* in device memory */
	size_t bytes = 0;
	uint32_t nchunks = 0; /* with chunk 0 */
	std::atomic<uint32_t> used_chunks{ 0 };
	/* For tests: so many allocations succeed, and the next one fails; < 0: none fails. */
	std::atomic<int64_t> fail_after{ -1 };
	std::atomic<int64_t> fail_list{ -1 }; /* likewise, of lists in the process's memory */
	/* Gives back some of what could be made again; false: there is nothing.  NULL: there never is. */
	bool (*spare)(void *arg) = NULL;
	void *spare_arg = NULL;
	std::mutex lock;
	std::vector<bool> taken;
	uint32_t lowest = 1; /* no chunk before it is free */
};

/* Is this the allocation that is to fail? */
static inline bool
gpu_pool_fails(std::atomic<int64_t> *fail_after)
{
	if (*fail_after < 0)
		return false;
	return (*fail_after)-- == 0;
}

/* Takes the range from the card; false: it has not so much. */
static inline bool
gpu_pool_open(GpuPool *pool, size_t bytes)
{
	size_t nchunks = bytes / GPU_CHUNK_BYTES;

	if (nchunks > GPU_MAX_CHUNKS)
		nchunks = GPU_MAX_CHUNKS;
	if (nchunks < 2)
		return false;
	try
	{
		pool->taken.assign(nchunks, false);
	}
	catch (const std::bad_alloc &)
	{
		return false;
	}
	pool->bytes = nchunks * GPU_CHUNK_BYTES;
	pool->base = (unsigned char *) gpu_alloc(pool->bytes);
	if (pool->base == NULL)
		return false;
	pool->nchunks = (uint32_t) nchunks;
	pool->used_chunks = 0;
	pool->lowest = 1;
	return true;
}

/*
 * Makes room for n more items of a list in the process's memory; false: there is
 * none.  Called before anything is changed: no list grows otherwise.
 */
template <typename T>
static inline bool
gpu_pool_list(GpuPool *pool, std::vector<T> *list, size_t n)
{
	size_t size = list->size() + n;

	if (gpu_pool_fails(&pool->fail_list))
		return false;
	if (size <= list->capacity())
		return true;
	try
	{
		list->reserve(size > 2 * list->capacity() ? size : 2 * list->capacity());
	}
	catch (const std::bad_alloc &)
	{
		return false;
	}
	return true;
}

/* Frees the pool's memory, of which nothing is in use any more. */
static inline void
gpu_pool_close(GpuPool *pool)
{
	gpu_free(pool->base, pool->bytes);
	pool->base = NULL;
	pool->nchunks = 0;
}

/* How many bytes can be taken in all, and how many are taken. */
static inline size_t
gpu_pool_total(const GpuPool *pool)
{
	return pool->nchunks > 0 ? (size_t) (pool->nchunks - 1) * GPU_CHUNK_BYTES : 0;
}

static inline size_t
gpu_pool_used(const GpuPool *pool)
{
	return (size_t) pool->used_chunks.load(std::memory_order_relaxed) * GPU_CHUNK_BYTES;
}

/* Has some of what could be made again given back; false: there is nothing.  The caller holds no lock. */
static inline bool
gpu_pool_give_spare(GpuPool *pool)
{
	return pool->spare != NULL && pool->spare(pool->spare_arg);
}

static inline void *
gpu_pool_at(const GpuPool *pool, uint32_t chunk)
{
	return pool->base + (size_t) chunk * GPU_CHUNK_BYTES;
}

/* Takes a chunk that is free by now; 0: there is none. */
static inline uint32_t
gpu_pool_take_free(GpuPool *pool)
{
	std::lock_guard<std::mutex> guard(pool->lock);

	if (gpu_pool_fails(&pool->fail_after))
		return 0;
	for (uint32_t chunk = pool->lowest; chunk < pool->nchunks; chunk++)
	{
		if (!pool->taken[chunk])
		{
			pool->taken[chunk] = true;
			pool->lowest = chunk + 1;
			pool->used_chunks++;
			return chunk;
		}
	}
	pool->lowest = pool->nchunks;
	return 0;
}

/* Takes a chunk; 0: there is none. */
static inline uint32_t
gpu_pool_take(GpuPool *pool)
{
	uint32_t chunk;

	do
		chunk = gpu_pool_take_free(pool);
	while (chunk == 0 && gpu_pool_give_spare(pool));
	return chunk;
}

/* Takes n neighbouring chunks that are free by now, and returns the first; 0: there are none. */
static inline uint32_t
gpu_pool_take_free_span(GpuPool *pool, uint32_t n)
{
	std::lock_guard<std::mutex> guard(pool->lock);
	uint32_t found = 0;

	if (gpu_pool_fails(&pool->fail_after))
		return 0;
	for (uint32_t chunk = pool->nchunks; chunk-- > 1;)
	{
		found = pool->taken[chunk] ? 0 : found + 1;
		if (found == n)
		{
			for (uint32_t i = 0; i < n; i++)
				pool->taken[chunk + i] = true;
			pool->used_chunks += n;
			return chunk;
		}
	}
	return 0;
}

/* Takes n neighbouring chunks, and returns the first; 0: there are none. */
static inline uint32_t
gpu_pool_take_span(GpuPool *pool, uint32_t n)
{
	uint32_t chunk;

	do
		chunk = gpu_pool_take_free_span(pool, n);
	while (chunk == 0 && gpu_pool_give_spare(pool));
	return chunk;
}

/* Gives n neighbouring chunks back. */
static inline void
gpu_pool_give(GpuPool *pool, uint32_t chunk, uint32_t n)
{
	std::lock_guard<std::mutex> guard(pool->lock);

	for (uint32_t i = 0; i < n; i++)
		pool->taken[chunk + i] = false;
	if (chunk < pool->lowest)
		pool->lowest = chunk;
	pool->used_chunks -= n;
}

/*
 * An array in neighbouring chunks of its own.
 */
struct GpuSpan
{
	void *at = NULL; /* device memory, NULL: none */
	uint32_t chunk = 0;
	uint32_t nchunks = 0;
};

/* Takes chunks for so many bytes; false: there are none. */
static inline bool
gpu_span_take(GpuPool *pool, GpuSpan *span, size_t bytes)
{
	size_t nchunks = (bytes + GPU_CHUNK_BYTES - 1) / GPU_CHUNK_BYTES;

	*span = GpuSpan();
	if (nchunks == 0 || nchunks >= pool->nchunks)
		return false;
	span->chunk = gpu_pool_take_span(pool, (uint32_t) nchunks);
	if (span->chunk == 0)
		return false;
	span->nchunks = (uint32_t) nchunks;
	span->at = gpu_pool_at(pool, span->chunk);
	return true;
}

/* Gives the chunks back, if there are any. */
static inline void
gpu_span_give(GpuPool *pool, GpuSpan *span)
{
	if (span->at != NULL)
		gpu_pool_give(pool, span->chunk, span->nchunks);
	*span = GpuSpan();
}

/* Bytes of the span's chunks, which may be more than were asked for. */
static inline size_t
gpu_span_bytes(const GpuSpan *span)
{
	return (size_t) span->nchunks * GPU_CHUNK_BYTES;
}

#endif /* GPU_POOL_H */
