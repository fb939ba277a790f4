/*-------------------------------------------------------------------------
 *
 * space.h
 *	  The device memory of one structure: nodes of a few kinds, in chunks.
 *
 * A structure numbers its kinds of nodes from 0.  Nodes of one kind have one size,
 * and chunks of their own.  A kind has two arrays of refs in device memory: a
 * stack of free nodes, and the nodes that versions have replaced (retired), oldest
 * version first.  Kernels read and write the arrays; the host only knows how many
 * refs are in them.  Each node of a chunk is at any time either live, which means
 * part of the current version, or free, or retired.
 *
 * A change reserves what it may take and retire, runs, takes and retires what it
 * did, and notes its version.  When no reader pins a version as old as that any
 * more, what it has retired becomes free.  Chunks go back to the pool when the
 * space is closed.
 *
 * One thread at a time uses a space, with its GpuChange.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SPACE_H
#define GPU_SPACE_H

#include "kernels/runtime/pool.h"

/* Kinds of nodes, at most. */
#define GPU_SPACE_KINDS 2

/* Refs that an array holds before it needs a span of its own. */
#define GPU_FEW_REFS ((uint32_t) (GPU_CHUNK_BYTES / sizeof(GpuRef) / (2 * GPU_SPACE_KINDS)))

/* What the thread that changes structures works with. */
struct GpuChange
{
	GpuStream stream;
	GpuPool *pool;
	uint32_t *host_chunks;   /* numbers of GPU_MAX_CHUNKS chunks, in host memory ... */
	uint32_t *device_chunks; /* ... and in device memory */
	/* What the device reports to the host: host memory, as the host and as the device sees it. */
	void *report;
	void *device_report;
	/* Device memory for small changes. */
	unsigned char *memory;
	size_t memory_bytes;
	/* Device memory that is all 0 between two changes: who counts there leaves it so. */
	void *zeroes;
};

#define GPU_ZEROES_BYTES 512

/* Refs in device memory. */
struct GpuRefs
{
	GpuRef *at = NULL;
	uint32_t capacity = 0;
	GpuSpan span; /* if they are not in the space's chunk for small arrays */
};

/* The nodes of one kind. */
struct GpuNodes
{
	uint32_t node_units = 0;
	std::vector<uint32_t> chunks;
	uint32_t nlive = 0;
	GpuRefs free;
	uint32_t nfree = 0;
	GpuRefs retired; /* from number retired_from to retired_to - 1 */
	uint32_t retired_from = 0;
	uint32_t retired_to = 0;
};

/* Where the nodes of each kind end that a version has retired. */
struct GpuRetired
{
	uint64_t version;
	uint32_t to[GPU_SPACE_KINDS];
};

struct GpuSpace
{
	int nkinds = 0; /* 0: the space is closed */
	GpuNodes nodes[GPU_SPACE_KINDS];
	GpuSpan small_arrays;            /* a chunk that small arrays of refs share */
	std::vector<GpuRetired> retired; /* oldest version first */
};

/* Nodes of one kind that a change may take and retire, at most. */
struct GpuDemand
{
	uint64_t take;
	uint64_t retire;
};

/*
 * The changing thread.
 */

/* Frees all that gpu_change_open took, also if it failed. */
static inline void
gpu_change_close(GpuChange *c)
{
	gpu_host_free(c->report);
	gpu_host_free(c->host_chunks);
	gpu_free(c->device_chunks, GPU_MAX_CHUNKS * sizeof(uint32_t));
	gpu_free(c->memory, c->memory_bytes);
	gpu_free(c->zeroes, GPU_ZEROES_BYTES);
	gpu_stream_close(&c->stream);
	memset((void *) c, 0, sizeof(*c));
}

/*
 * report_bytes and memory_bytes are the most that a structure of the thread's
 * needs.  False: there is not so much memory; gpu_change_close must follow all the
 * same.
 */
static inline bool
gpu_change_open(GpuChange *c, GpuPool *pool, size_t report_bytes, size_t memory_bytes)
{
	memset((void *) c, 0, sizeof(*c));
	c->pool = pool;
	if (!gpu_stream_open(&c->stream, false))
		return false;
	c->report = gpu_host_alloc(report_bytes);
	c->device_report = c->report ? gpu_device_address(c->report) : NULL;
	c->host_chunks = (uint32_t *) gpu_host_alloc(GPU_MAX_CHUNKS * sizeof(uint32_t));
	c->device_chunks = (uint32_t *) gpu_alloc(GPU_MAX_CHUNKS * sizeof(uint32_t));
	c->memory = (unsigned char *) gpu_alloc(memory_bytes);
	c->memory_bytes = memory_bytes;
	c->zeroes = gpu_alloc(GPU_ZEROES_BYTES);
	if (c->zeroes == NULL)
		return false;
	gpu_fill(&c->stream, c->zeroes, 0, GPU_ZEROES_BYTES);
	return gpu_ok(&c->stream) && c->device_report != NULL && c->host_chunks != NULL &&
		   c->device_chunks != NULL && c->memory != NULL;
}

/* False: the thread's stream has met an error, and does nothing any more. */
static inline bool
gpu_change_ok(const GpuChange *c)
{
	return gpu_ok(&c->stream);
}

/* What a call returns when it is at its end. */
static inline GpuStatus
gpu_change_status(const GpuChange *c)
{
	return (GpuStatus) c->stream.status;
}

/*
 * Gives a span back that the thread's stream may still be using: a change that finds no memory may have left
 * work on the stream, and other streams take memory from the pool, too.
 */
static inline void
gpu_change_give(GpuChange *c, GpuSpan *span)
{
	if (span->at != NULL)
		gpu_finish(&c->stream);
	gpu_span_give(c->pool, span);
}

/*
 * Nodes of one kind.
 */

/* Nodes of this kind that a chunk has. */
static inline uint32_t
gpu_nodes_per_chunk(const GpuNodes *nodes)
{
	return GPU_CHUNK_UNITS / nodes->node_units;
}

/* Chunks that so many nodes fill. */
static inline uint64_t
gpu_nodes_chunks(const GpuNodes *nodes, uint64_t n)
{
	return (n + gpu_nodes_per_chunk(nodes) - 1) / gpu_nodes_per_chunk(nodes);
}

/* A change has taken n nodes from the top of the stack. */
static inline void
gpu_nodes_take(GpuNodes *nodes, uint32_t n)
{
	nodes->nfree -= n;
	nodes->nlive += n;
}

/* A change has written n nodes behind the retired ones. */
static inline void
gpu_nodes_retire(GpuNodes *nodes, uint32_t n)
{
	nodes->retired_to += n;
	nodes->nlive -= n;
}

/* Pushes the nodes of chunks, so that they are taken in ascending order. */
struct GpuPushChunks
{
	GpuRef *at; /* where the stack ends */
	const uint32_t *chunks;
	uint32_t nchunks;
	uint32_t node_units;
	uint32_t per_chunk;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t n = nchunks * per_chunk;
		uint32_t node = n - 1 - (uint32_t) i;

		at[i] = chunks[node / per_chunk] * GPU_CHUNK_UNITS + node % per_chunk * node_units;
	}
};

/* Pushes the last count nodes of n chunks, the numbers of which begin at host_chunks[first]. */
static inline void
gpu_nodes_push(GpuChange *c, GpuNodes *nodes, uint32_t first, uint32_t n, uint32_t count)
{
	GpuPushChunks push = { nodes->free.at + nodes->nfree, c->device_chunks + first, n, nodes->node_units,
						   gpu_nodes_per_chunk(nodes) };

	gpu_copy_bus(&c->stream, c->device_chunks + first, c->host_chunks + first, n * sizeof(uint32_t));
	gpu_launch(&c->stream, count, push);
	nodes->nfree += count;
}

/*
 * Takes chunks until the nodes have so many; the caller fills them in order, and
 * gpu_nodes_filled must follow.  False: out of memory, and none was taken.
 */
static inline bool
gpu_nodes_extend(GpuChange *c, GpuNodes *nodes, uint64_t nchunks)
{
	std::vector<uint32_t> &chunks = nodes->chunks;
	size_t had = chunks.size();

	if (nchunks >= c->pool->nchunks || (nchunks > had && !gpu_pool_list(c->pool, &chunks, nchunks - had)))
		return false;
	while (chunks.size() < nchunks)
	{
		uint32_t chunk = gpu_pool_take(c->pool);

		if (chunk == 0)
		{
			while (chunks.size() > had)
			{
				gpu_pool_give(c->pool, chunks.back(), 1);
				chunks.pop_back();
			}
			return false;
		}
		chunks.push_back(chunk);
	}
	return true;
}

/* The first n nodes of all chunks are live now, the others are free. */
static inline void
gpu_nodes_filled(GpuChange *c, GpuNodes *nodes, uint32_t n)
{
	uint32_t nchunks = (uint32_t) nodes->chunks.size();

	/* an earlier copy may still be reading the numbers of other chunks */
	gpu_finish(&c->stream);
	memcpy(c->host_chunks, nodes->chunks.data(), nchunks * sizeof(uint32_t));
	gpu_nodes_push(c, nodes, 0, nchunks, nchunks * gpu_nodes_per_chunk(nodes) - n);
	nodes->nlive = n;
}

/* Makes room for so many refs; those in use, from .. to - 1, move to the start. */
static inline bool
gpu_refs_grow(GpuChange *c, GpuRefs *refs, uint64_t need, uint32_t from, uint32_t to)
{
	GpuSpan span;

	if (need < 2 * (uint64_t) refs->capacity)
		need = 2 * (uint64_t) refs->capacity;
	if (!gpu_span_take(c->pool, &span, need * sizeof(GpuRef)))
		return false;
	gpu_copy(&c->stream, span.at, refs->at + from, (size_t) (to - from) * sizeof(GpuRef));
	gpu_finish(&c->stream);
	gpu_span_give(c->pool, &refs->span);
	refs->span = span;
	refs->at = (GpuRef *) span.at;
	refs->capacity = (uint32_t) (gpu_span_bytes(&span) / sizeof(GpuRef));
	return true;
}

/* Chunks to be taken for so many free nodes. */
static inline uint64_t
gpu_nodes_missing_chunks(const GpuNodes *nodes, uint64_t need)
{
	return gpu_nodes_chunks(nodes, need > nodes->nfree ? need - nodes->nfree : 0);
}

/*
 * Spaces.
 */

/* An empty space with nodes of so many units; false: out of memory. */
static inline bool
gpu_space_open(GpuChange *c, GpuSpace *space, int nkinds, const uint32_t *node_units)
{
	GpuRef *at;

	if (!gpu_span_take(c->pool, &space->small_arrays, GPU_CHUNK_BYTES))
		return false;
	at = (GpuRef *) space->small_arrays.at;
	space->nkinds = nkinds;
	for (int kind = 0; kind < nkinds; kind++)
	{
		GpuNodes *nodes = &space->nodes[kind];

		nodes->node_units = node_units[kind];
		nodes->free.at = at + (size_t) (2 * kind) * GPU_FEW_REFS;
		nodes->retired.at = at + (size_t) (2 * kind + 1) * GPU_FEW_REFS;
		nodes->free.capacity = nodes->retired.capacity = GPU_FEW_REFS;
	}
	return true;
}

/* Gives all memory back. */
static inline void
gpu_space_close(GpuChange *c, GpuSpace *space)
{
	gpu_finish(&c->stream);
	for (GpuNodes &nodes : space->nodes)
	{
		for (uint32_t chunk : nodes.chunks)
			gpu_pool_give(c->pool, chunk, 1);
		gpu_span_give(c->pool, &nodes.free.span);
		gpu_span_give(c->pool, &nodes.retired.span);
		nodes = GpuNodes();
	}
	gpu_span_give(c->pool, &space->small_arrays);
	space->retired.clear();
	space->nkinds = 0;
}

/* Device memory that a space holds. */
static inline uint64_t
gpu_space_bytes(const GpuSpace *space)
{
	uint64_t bytes = gpu_span_bytes(&space->small_arrays);

	for (const GpuNodes &nodes : space->nodes)
		bytes += nodes.chunks.size() * GPU_CHUNK_BYTES + gpu_span_bytes(&nodes.free.span) +
				 gpu_span_bytes(&nodes.retired.span);
	return bytes;
}

/*
 * Makes sure that the arrays of a kind hold added more free nodes and retire more
 * retired ones; all retired ones must find room among the free ones one day.
 */
static inline bool
gpu_space_capacity(GpuChange *c, GpuSpace *space, int kind, uint64_t added, uint64_t retire)
{
	GpuNodes *nodes = &space->nodes[kind];
	uint32_t from = nodes->retired_from;
	uint32_t retired = nodes->retired_to - from;
	uint64_t free = nodes->nfree + added + retired + retire;

	if (free > nodes->free.capacity && !gpu_refs_grow(c, &nodes->free, free, 0, nodes->nfree))
		return false;
	if (nodes->retired_to + retire <= nodes->retired.capacity)
		return true;
	if (!gpu_refs_grow(c, &nodes->retired, retired + retire, from, nodes->retired_to))
		return false;
	nodes->retired_to = retired;
	nodes->retired_from = 0;
	for (GpuRetired &r : space->retired)
		r.to[kind] -= from;
	return true;
}

/*
 * Makes sure that a change can take and retire what it demands of each kind, and
 * note its version.  False: out of memory, and no chunk was taken.
 */
static inline bool
gpu_space_reserve(GpuChange *c, GpuSpace *space, const GpuDemand *demand)
{
	uint64_t nchunks[GPU_SPACE_KINDS] = {};
	uint64_t all = 0;
	uint32_t taken = 0;
	bool room;

	for (int kind = 0; kind < space->nkinds; kind++)
		all += nchunks[kind] = gpu_nodes_missing_chunks(&space->nodes[kind], demand[kind].take);
	if (all >= c->pool->nchunks || !gpu_pool_list(c->pool, &space->retired, 1))
		return false;
	for (int kind = 0; kind < space->nkinds; kind++)
	{
		if (!gpu_pool_list(c->pool, &space->nodes[kind].chunks, nchunks[kind]))
			return false;
	}
	/* an earlier copy may still be reading host_chunks */
	if (all > 0)
		gpu_finish(&c->stream);
	while (taken < all && (c->host_chunks[taken] = gpu_pool_take(c->pool)) != 0)
		taken++;
	room = taken == all;
	for (int kind = 0; kind < space->nkinds && room; kind++)
		room = gpu_space_capacity(c, space, kind, nchunks[kind] * gpu_nodes_per_chunk(&space->nodes[kind]),
								  demand[kind].retire);
	if (!room)
	{
		while (taken > 0)
			gpu_pool_give(c->pool, c->host_chunks[--taken], 1);
		return false;
	}
	for (int kind = 0, first = 0; kind < space->nkinds; kind++)
	{
		GpuNodes *nodes = &space->nodes[kind];
		uint32_t n = (uint32_t) nchunks[kind];
		const uint32_t *chunks = c->host_chunks + first;

		nodes->chunks.insert(nodes->chunks.end(), chunks, chunks + n);
		gpu_nodes_push(c, nodes, (uint32_t) first, n, n * gpu_nodes_per_chunk(nodes));
		first += (int) n;
	}
	return true;
}

/* What has been retired since the last version belongs to this one; gpu_space_reserve has made room. */
static inline void
gpu_space_note(GpuSpace *space, uint64_t version)
{
	GpuRetired retired = { version, {} };

	for (int kind = 0; kind < space->nkinds; kind++)
		retired.to[kind] = space->nodes[kind].retired_to;
	space->retired.push_back(retired);
}

/* Makes the nodes free that versions up to oldest have retired: no older version is pinned. */
static inline void
gpu_space_reclaim(GpuChange *c, GpuSpace *space, uint64_t oldest)
{
	size_t n = 0;

	while (n < space->retired.size() && space->retired[n].version <= oldest)
		n++;
	if (n == 0)
		return;
	for (int kind = 0; kind < space->nkinds; kind++)
	{
		GpuNodes *nodes = &space->nodes[kind];
		uint32_t to = space->retired[n - 1].to[kind];
		uint32_t count = to - nodes->retired_from;

		gpu_copy(&c->stream, nodes->free.at + nodes->nfree, nodes->retired.at + nodes->retired_from,
				 count * sizeof(GpuRef));
		nodes->nfree += count;
		nodes->retired_from = to;
		if (n == space->retired.size())
			nodes->retired_from = nodes->retired_to = 0;
	}
	space->retired.erase(space->retired.begin(), space->retired.begin() + (ptrdiff_t) n);
}

#endif /* GPU_SPACE_H */
