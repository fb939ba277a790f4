/*-------------------------------------------------------------------------
 *
 * scan_visible.h
 *	  What a counting scan is told of the rows that entries point to; part of scan.h.
 *
 * That is a visibility map, and what is known of single rows of other pages (page_rows.h).
 * Both lie behind the input in the stream's memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_VISIBLE_H
#define GPU_SCAN_VISIBLE_H

#include "kernels/core/page_rows.h"

/* In device memory. */
struct GpuVisible
{
	const unsigned char *map;
	uint64_t map_bytes;
	PageRows rows;

	/* What is known of the row of a TID, by the map or else by itself. */
	GPU_FN PageRow row(uint64_t tid) const
	{
		uint32_t at = (uint32_t) (tid >> 18);
		unsigned byte = at < map_bytes ? map[at] : 0;

		return byte >> (tid >> 16 & 3) * 2 & 1 ? PAGE_ROW_SEEN : page_rows_find(&rows, tid);
	}

	/* Which of GPU_TIDS TIDs are not on all-visible pages, as bits.  All loads come first. */
	GPU_FN unsigned unmapped_of(const uint64_t *some) const
	{
		unsigned byte[GPU_TIDS];
		unsigned bits = 0;

		for (int k = 0; k < GPU_TIDS; k++)
		{
			uint32_t at = (uint32_t) (some[k] >> 18);

			byte[k] = at < map_bytes ? map[at] : 0;
		}
		for (int k = 0; k < GPU_TIDS; k++)
		{
			unsigned shows = byte[k] >> (some[k] >> 16 & 3) * 2 & 1;

			bits |= (some[k] == GPU_NO_TID ? 0 : shows ^ 1) << k;
		}
		return bits;
	}
};

/*
 * Known is a GpuRequest, or a GpuJoin for the other side.
 */

/* Bytes that a map takes in front of the rows. */
template <class Known>
static inline size_t
gpu_visible_map_bytes(const Known *r)
{
	return ((size_t) r->map_bytes + 7) / 8 * 8;
}

/* Bytes that the rows take. */
template <class Known>
static inline size_t
gpu_rows_bytes(const Known *r)
{
	return page_rows_bytes(r->row_slots, r->row_npages, r->row_words);
}

/* Bytes that map and rows take together, a multiple of 8. */
template <class Known>
static inline size_t
gpu_visible_bytes(const Known *r)
{
	return gpu_visible_map_bytes(r) + (gpu_rows_bytes(r) + 7) / 8 * 8;
}

/* Does staging memory of so many bytes have the piece of that length at an offset? */
static inline bool
gpu_staging_has(size_t staging_bytes, uint64_t at, uint64_t bytes)
{
	return bytes <= staging_bytes && at <= staging_bytes - bytes;
}

/* Do map and rows lie in the staging memory, and is neither longer than a piece of the stream's? */
template <class Known>
static inline bool
gpu_visible_is_there(size_t piece_bytes, size_t staging_bytes, const Known *r)
{
	size_t places = (size_t) r->row_slots * sizeof(uint32_t);
	size_t rows = gpu_rows_bytes(r);

	if ((r->row_slots & (r->row_slots - 1)) != 0 || r->row_words > PAGE_ROWS_MAX_WORDS ||
		r->map_bytes > piece_bytes || rows > piece_bytes)
		return false;
	return gpu_staging_has(staging_bytes, r->map, r->map_bytes) &&
		   (rows == 0 || (gpu_staging_has(staging_bytes, r->row_places, places) &&
						  gpu_staging_has(staging_bytes, r->row_pages, rows - places)));
}

/*
 * Do map and rows of a counting scan lie in the staging memory, and fit with the groups into the piece behind
 * that of its input?
 */
static inline bool
gpu_visible_fits(const GpuScanStream *stream, size_t staging_bytes, const GpuRequest *r)
{
	size_t piece = stream->piece_bytes;
	size_t input = gpu_scan_input_bytes(r);
	size_t groups = r->form == GPU_GROUPS ? r->groups_bytes : 0;

	return gpu_visible_is_there(piece, staging_bytes, r) && input <= piece && groups <= piece &&
		   gpu_visible_bytes(r) + groups <= piece;
}

/* Copies map and rows, which fit, to device memory. */
template <class Known>
static inline GpuVisible
gpu_visible_copy_to(GpuScanStream *stream, const unsigned char *staging, const Known *r, unsigned char *map)
{
	uint32_t *places = (uint32_t *) (map + gpu_visible_map_bytes(r));
	uint32_t *pages = places + r->row_slots;
	size_t places_bytes = (size_t) r->row_slots * sizeof(uint32_t);
	GpuVisible visible;

	gpu_copy_bus(&stream->stream, map, staging + r->map, r->map_bytes);
	if (r->row_slots > 0)
	{
		gpu_copy_bus(&stream->stream, places, staging + r->row_places, places_bytes);
		gpu_copy_bus(&stream->stream, pages, staging + r->row_pages, gpu_rows_bytes(r) - places_bytes);
	}
	visible.map = map;
	visible.map_bytes = r->map_bytes;
	visible.rows.places = places;
	visible.rows.pages = pages;
	visible.rows.slots = r->row_slots;
	visible.rows.words = r->row_words;
	visible.rows.npages = r->row_npages;
	return visible;
}

/* Copies those of a request behind its input. */
static inline GpuVisible
gpu_visible_copy_in(GpuScanStream *stream, const unsigned char *staging, const GpuRequest *r)
{
	return gpu_visible_copy_to(stream, staging, r, stream->input + gpu_scan_input_bytes(r));
}

#endif /* GPU_SCAN_VISIBLE_H */
