/*-------------------------------------------------------------------------
 *
 * side_pages.h
 *	  A copy of the side values (src/side/side.h) of a table's pages, in device memory.
 *
 * A page's values are those of its rows at offsets 1 to rows, one after the other.  Pages have their places
 * in chunks of the pool by their numbers; a chunk is taken when the first of its pages comes.  Which pages
 * are there, and up to date, is the host's knowledge: a scan comes with a map of them.
 *
 * One thread changes a copy.  Scans may read it meanwhile.  They read values of rows that their snapshots
 * see, which are the same before and after the change.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SIDE_PAGES_H
#define GPU_SIDE_PAGES_H

#include "kernels/runtime/pool.h"

/* Chunks that a copy may have: as many as one chunk has room for the numbers of, for 1 TB of values. */
#define GPU_SIDE_CHUNKS (GPU_CHUNK_BYTES / sizeof(uint32_t))

/* What kernels know of a copy. */
struct GpuSide
{
	const unsigned char *values; /* of the pool's chunk 0; NULL: there is no copy */
	const uint32_t *chunks;      /* of the copy, by the numbers of their pages */
	const unsigned char *map;    /* pages that are up to date: two bits each, of which the lower one counts */
	uint64_t map_bytes;
	uint32_t rows;      /* of a page */
	uint32_t row_bytes; /* of the side values of a row */
	uint32_t page_bytes;
	uint32_t pages; /* of a chunk */

	/* The place of a page in the copy. */
	GPU_FN unsigned char *page(uint32_t block) const
	{
		return (unsigned char *) values + (size_t) chunks[block / pages] * GPU_CHUNK_BYTES +
			   (size_t) (block % pages) * page_bytes;
	}

	/* The side values of the row of a TID; NULL: they are not there. */
	GPU_FN const uint8_t *row(uint64_t tid) const
	{
		const uint32_t block = (uint32_t) (tid >> 16);
		const uint32_t number = (uint32_t) (tid & 0xFFFF) - 1;

		if (block / 4 >= map_bytes || number >= rows || !(map[block / 4] >> block % 4 * 2 & 1))
			return NULL;
		return page(block) + (size_t) number * row_bytes;
	}
};

/* A copy as the host has it. */
struct GpuSideCopy
{
	uint64_t name;
	GpuSide side = {};            /* without map */
	GpuSpan table;                /* side.chunks */
	std::vector<uint32_t> chunks; /* the same for the host; 0: there is none */
	uint32_t taken = 0;           /* chunks of the pool that it has, without the table */
};

/* Writes the number of a chunk into the table. */
struct GpuSideLink
{
	uint32_t *place;
	uint32_t chunk;

	GPU_FN void operator()(int64_t) const
	{
		*place = chunk;
	}
};

/* Puts word i of some pages, which lie one behind the other, in its place. */
struct GpuSidePut
{
	GpuSide side;
	const uint32_t *blocks; /* numbers of the pages */
	const uint64_t *from;

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t words = side.page_bytes / sizeof(uint64_t);

		((uint64_t *) side.page(blocks[i / words]))[i % words] = from[i];
	}
};

/* Bytes that the numbers of n pages take in front of their values. */
static inline size_t
gpu_side_blocks_bytes(int64_t n)
{
	return ((size_t) n * sizeof(uint32_t) + 7) / 8 * 8;
}

/* Gives a copy's memory back, which nobody reads any more. */
static inline void
gpu_side_copy_close(GpuPool *pool, GpuSideCopy *copy)
{
	for (uint32_t chunk : copy->chunks)
	{
		if (chunk != 0)
			gpu_pool_give(pool, chunk, 1);
	}
	gpu_span_give(pool, &copy->table);
	delete copy;
}

/* A copy without pages, for so many rows of a page with so many bytes; NULL: no memory. */
static inline GpuSideCopy *
gpu_side_copy_open(GpuPool *pool, uint64_t name, uint32_t rows, uint32_t row_bytes)
{
	GpuSideCopy *copy = gpu_pool_fails(&pool->fail_list) ? NULL : new (std::nothrow) GpuSideCopy();

	if (copy == NULL)
		return NULL;
	if (!gpu_span_take(pool, &copy->table, GPU_CHUNK_BYTES))
	{
		delete copy;
		return NULL;
	}
	copy->name = name;
	copy->side.values = pool->base;
	copy->side.chunks = (const uint32_t *) copy->table.at;
	copy->side.rows = rows;
	copy->side.row_bytes = row_bytes;
	copy->side.page_bytes = rows * row_bytes;
	copy->side.pages = (uint32_t) (GPU_CHUNK_BYTES / copy->side.page_bytes);
	return copy;
}

/* Bytes of device memory that a copy has. */
static inline uint64_t
gpu_side_copy_bytes(const GpuSideCopy *copy)
{
	return gpu_span_bytes(&copy->table) + (uint64_t) copy->taken * GPU_CHUNK_BYTES;
}

/* Makes sure that the chunk of a page is there; false: no memory, or the page is out of reach. */
static inline bool
gpu_side_copy_chunk(GpuStream *s, GpuPool *pool, GpuSideCopy *copy, uint32_t block)
{
	const size_t at = block / copy->side.pages;
	const size_t n = copy->chunks.size();

	if (at >= GPU_SIDE_CHUNKS)
		return false;
	if (at >= n)
	{
		if (!gpu_pool_list(pool, &copy->chunks, at + 1 - n))
			return false;
		copy->chunks.resize(at + 1, 0);
	}
	if (copy->chunks[at] != 0)
		return true;
	copy->chunks[at] = gpu_pool_take(pool);
	if (copy->chunks[at] == 0)
		return false;
	copy->taken++;
	gpu_launch(s, 1, GpuSideLink{ (uint32_t *) copy->table.at + at, copy->chunks[at] });
	return true;
}

/*
 * Puts the values of n pages in their places.  blocks: their numbers, as the host sees them; there: the same
 * for the device, and then their values.  False: no memory, and no page has changed.
 */
static inline bool
gpu_side_copy_put(GpuStream *s, GpuPool *pool, GpuSideCopy *copy, const uint32_t *blocks,
				  const unsigned char *there, int64_t n)
{
	const int64_t words = copy->side.page_bytes / sizeof(uint64_t);

	for (int64_t i = 0; i < n; i++)
	{
		if (!gpu_side_copy_chunk(s, pool, copy, blocks[i]))
			return false;
	}
	gpu_launch(s, n * words,
			   GpuSidePut{ copy->side, (const uint32_t *) there,
						   (const uint64_t *) (there + gpu_side_blocks_bytes(n)) });
	s->bus_bytes += (uint64_t) n * (sizeof(uint32_t) + copy->side.page_bytes);
	return true;
}

#endif /* GPU_SIDE_PAGES_H */
