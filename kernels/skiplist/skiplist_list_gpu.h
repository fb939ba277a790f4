/*-------------------------------------------------------------------------
 *
 * skiplist_list_gpu.h
 *	  A skip list in device memory as the host sees it: its memory and its versions.
 *
 * Chunks are in a space (kernels/runtime/space.h) with two kinds of nodes: chunks of level 0, and those of
 * indexes.  The nodes that say what a version consists of are of the second kind.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_LIST_GPU_H
#define SKIPLIST_LIST_GPU_H

#include "kernels/runtime/gpu_load.h"
#include "kernels/runtime/scan.h"
#include "kernels/skiplist/skiplist_chunk_gpu.h"

/* The kinds of nodes. */
enum GpuSkiplistKind
{
	GPU_SKIPLIST_CHUNKS,
	GPU_SKIPLIST_INDEXES,
	GPU_SKIPLIST_KINDS
};

/* Its root is the place of the version's GpuSkiplistTable, its height 1; level_n: chunks of each level. */
struct GpuSkiplist : GpuTree
{
	GpuRef top = 0; /* the root of the newest version, which the table has */
	int levels = 0;
	bool draft = false;  /* it is not published yet: of the next version */
	uint64_t oldest = 0; /* no version before this one is pinned, nor will one be */
	/* entries loaded, inserted and deleted since it was built anew, or ever (skiplist_compact_gpu.h) */
	uint64_t changes = 0;
};

/* What a round of an apply has come to (skiplist_change_gpu.h). */
struct GpuSkiplistCounts
{
	uint32_t taken[GPU_SKIPLIST_KINDS];    /* nodes of each kind, or more ... */
	uint32_t short_at[GPU_SKIPLIST_KINDS]; /* ... but those from ~ this one on were not there; 0: all were */
	uint32_t retired[GPU_SKIPLIST_KINDS];  /* nodes of each kind */
	uint32_t touched[GPU_SKIPLIST_MAX_HEIGHT];   /* chunks of each level that something is to be done about */
	uint32_t level_add[GPU_SKIPLIST_MAX_HEIGHT]; /* to the number of chunks of each level, modulo 2^32 */
	uint32_t inserted;                           /* entries */
	uint32_t deleted;
	uint32_t waiting; /* chunks whose operations have to wait */
	uint32_t failed;  /* an index found no node, which cannot be */
};

/* What the device reports about a list. */
struct GpuSkiplistReport : GpuReport
{
	GpuSkiplistCounts counts;
	GpuRef root; /* of the new version */
	int32_t height;
	GpuRef table;
	uint32_t n[2]; /* of what was counted */
	GpuScanSummary listed;
};

static inline GpuSkiplistReport *
gpu_skiplist_report(const GpuChange *c)
{
	return (GpuSkiplistReport *) c->report;
}

static inline GpuNodes *
gpu_skiplist_nodes(GpuSkiplist *s, int kind)
{
	return &s->space.nodes[kind];
}

/* The newest version, for the thread that changes the list. */
static inline GpuSkiplistView
gpu_skiplist_newest(const GpuChange *c, const GpuSkiplist *s)
{
	GpuSkiplistView view = { c->pool->base, s->version + s->draft, s->top, s->levels };

	return view;
}

/* Shows readers a version that is complete. */
static inline void
gpu_skiplist_publish(GpuSkiplist *s, uint64_t entries)
{
	s->draft = false;
	s->height = entries > 0;
	gpu_tree_publish(s, entries);
}

/* Uses nodes again that versions up to oldest have replaced. */
static inline void
gpu_skiplist_reclaim(GpuChange *c, GpuSkiplist *s, uint64_t oldest)
{
	s->oldest = oldest < s->version ? oldest : s->version;
	gpu_tree_reclaim(c, s, oldest);
}

/* Gives all memory back; the version stays. */
static inline void
gpu_skiplist_close(GpuChange *c, GpuSkiplist *s)
{
	gpu_tree_close(c, s);
	gpu_tree_set_head(s, 0, 0);
	s->top = 0;
	s->levels = 0;
	s->draft = false;
	s->oldest = 0;
	s->changes = 0;
}

/* Begins to load a list, which must not be there.  GPU_NO_MEMORY: it is still not. */
static inline GpuStatus
gpu_skiplist_load_begin(GpuChange *c, GpuSkiplist *s, uint32_t nwords, uint32_t fill_percent)
{
	const uint32_t units[GPU_SKIPLIST_KINDS] = { gpu_skiplist_units(false, (int) nwords),
												 gpu_skiplist_units(true, (int) nwords) };

	return gpu_load_begin(c, s, GPU_SKIPLIST_KINDS, units, GPU_SKIPLIST_PLACES, nwords, fill_percent);
}

/* How many index chunks of so many places the levels above n chunks have. */
static inline uint64_t
gpu_skiplist_index_chunks(uint64_t n, uint64_t places)
{
	uint64_t sum = 0;

	while (n > 1)
		sum += n = (n + places - 1) / places;
	return sum;
}

/* Makes a chunk of the first n slots, which are written, or will be before a reader comes. */
GPU_FN void
gpu_skiplist_make(uint64_t *chunk, int n, uint64_t version, const bool index)
{
	GpuSkiplistNotes *notes = gpu_skiplist_notes(chunk, index);

	gpu_store_pair(chunk, gpu_skiplist_ascending(n), version);
	gpu_store_pair(chunk + 2, GPU_SKIPLIST_EMPTY, 0);
	notes->head = notes->waits = 0;
}

#endif /* SKIPLIST_LIST_GPU_H */
