/*-------------------------------------------------------------------------
 *
 * skiplist_build_gpu.h
 *	  Loading skip lists into device memory, from sorted entries that are added in batches.
 *
 * Chunk i of a load begins with entry gpu_skiplist_start(i), and is at place i of the chunks of level 0.
 * So nothing is noted about chunks until all are there; then the indexes are made, level by level.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_BUILD_GPU_H
#define SKIPLIST_BUILD_GPU_H

#include "kernels/skiplist/skiplist_list_gpu.h"

/* The entry at which chunk i begins. */
GPU_FN uint64_t
gpu_skiplist_start(uint64_t i, uint32_t fill_percent)
{
	return i * (GPU_SKIPLIST_PLACES * fill_percent) / 100;
}

/* Chunks that so many entries fill. */
static inline uint64_t
gpu_skiplist_full_chunks(uint64_t entries, uint32_t fill_percent)
{
	return ((entries + 1) * 100 - 1) / (GPU_SKIPLIST_PLACES * fill_percent);
}

/* Writes chunks, a thread a place.  A source has entry<nw>(i). */
template <int nw, typename Source> struct GpuSkiplistLoadChunk
{
	unsigned char *base;
	GpuLoaded loaded;
	uint64_t first;
	uint64_t total; /* entries so far */
	uint32_t fill_percent;
	uint64_t version;
	Source source; /* from chunk first on */

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t number = first + (uint64_t) i / GPU_SKIPLIST_PLACES;
		const uint64_t place = (uint64_t) i % GPU_SKIPLIST_PLACES;
		uint64_t *chunk = gpu_skiplist_chunk(base, loaded.ref(number));
		uint64_t from = gpu_skiplist_start(number, fill_percent);
		uint64_t to = gpu_skiplist_start(number + 1, fill_percent);

		to = to < total ? to : total;
		if (place < to - from)
			gpu_skiplist_set_entry(chunk, (int) place,
								   source.template entry<nw>(from + place -
															 gpu_skiplist_start(first, fill_percent)),
								   false, nw);
		if (place == 0)
			gpu_skiplist_make(chunk, (int) (to - from), version, false);
	}
};

/* Makes the index chunks of a level, a thread a place. */
template <int nw> struct GpuSkiplistBuildIndex
{
	unsigned char *base;
	GpuLoaded loaded;
	bool lowest;         /* the level below is level 0 */
	const GpuRef *below; /* else: the first chunk there, on the stack of free nodes; others are before it */
	int64_t children;
	const GpuRef *here;
	int64_t chunks;
	uint64_t version;

	GPU_FN const uint64_t *child(int64_t i, GpuRef *ref) const
	{
		*ref = lowest ? loaded.ref((uint64_t) i) : below[-i];
		return gpu_skiplist_chunk(base, *ref);
	}

	/* Chunks are written, with all entries in the first slots. */
	GPU_FN GpudsEntry key(int64_t i, const uint64_t *chunk) const
	{
		GpudsEntry first = gpu_skiplist_entry(chunk, 0, !lowest, nw);
		GpudsEntry last = { 0, 0, 0 };
		const uint64_t *before;
		GpuRef ref;

		if (!lowest || i == 0)
			return lowest ? last : first;
		before = child(i - 1, &ref);
		last = gpu_skiplist_entry(before, gpu_skiplist_n(gpu_skiplist_order(before, version)) - 1, false, nw);
		return entry_between(&last, &first);
	}

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t number = i / GPU_SKIPLIST_PLACES;
		const int place = (int) (i % GPU_SKIPLIST_PLACES);
		const int64_t from = children * number / chunks;
		const int64_t to = children * (number + 1) / chunks;
		uint64_t *chunk = gpu_skiplist_chunk(base, here[-number]);

		if (place < to - from)
		{
			GpuRef ref;
			const uint64_t *below_chunk = child(from + place, &ref);

			gpu_skiplist_set_entry(chunk, place, key(from + place, below_chunk), true, nw);
			gpu_skiplist_set_ref(chunk, place, ref);
		}
		if (place == 0)
			gpu_skiplist_make(chunk, (int) (to - from), version, true);
	}
};

/* Writes what a version consists of into the node at ref. */
struct GpuSkiplistMakeTable
{
	unsigned char *base;
	const GpuRef *ref;
	GpuSkiplistTable table;
	const GpuRef *root;
	GpuSkiplistReport *report;

	GPU_FN void operator()(int64_t) const
	{
		GpuSkiplistTable *to = (GpuSkiplistTable *) gpu_skiplist_chunk(base, *ref);

		*to = table;
		to->root = root ? *root : table.root;
		report->table = *ref;
		report->root = to->root;
	}
};

/* Writes n chunks from first on. */
template <typename Source>
static inline void
gpu_skiplist_load_write(GpuChange *c, const GpuTree *s, const GpuLoaded &loaded, uint64_t first, uint64_t n,
						uint64_t total, const Source &source)
{
	const int64_t places = (int64_t) n * GPU_SKIPLIST_PLACES;
	const uint32_t fill = s->load.fill_percent;
	const uint64_t version = s->version + 1;
	unsigned char *base = c->pool->base;

	if (s->nwords == 1)
		gpu_launch(&c->stream, places,
				   GpuSkiplistLoadChunk<1, Source>{ base, loaded, first, total, fill, version, source });
	else
		gpu_launch(&c->stream, places,
				   GpuSkiplistLoadChunk<2, Source>{ base, loaded, first, total, fill, version, source });
}

/* As gpu_load_add wants to know it. */
struct GpuSkiplistLayout
{
	static uint64_t start(uint64_t chunk, uint32_t fill_percent)
	{
		return gpu_skiplist_start(chunk, fill_percent);
	}

	static uint64_t full(uint64_t total, uint32_t fill_percent)
	{
		return gpu_skiplist_full_chunks(total, fill_percent);
	}

	static void write(GpuChange *c, const GpuTree *tree, const GpuLoaded &loaded, uint64_t n, uint64_t total,
					  const GpuSource &source)
	{
		gpu_skiplist_load_write(c, tree, loaded, loaded.first, n, total, source);
	}
};

/* Adds entries, as gpu_load_add. */
static inline GpuStatus
gpu_skiplist_load_add(GpuChange *c, GpuSkiplist *s, const GpudsEntry *entries, int64_t n)
{
	return gpu_load_add<GpuSkiplistLayout>(c, s, entries, n);
}

/* Makes the indexes above n chunks of level 0, and what the first version consists of. */
template <int nw>
static inline void
gpu_skiplist_load_indexes(GpuChange *c, GpuSkiplist *s, const GpuLoaded &loaded, uint64_t n, uint64_t places)
{
	GpuNodes *nodes = gpu_skiplist_nodes(s, GPU_SKIPLIST_INDEXES);
	const GpuRef *here = nodes->free.at + nodes->nfree - 1;
	const GpuRef *below = NULL;
	GpuSkiplistMakeTable table;
	int height = 1;

	s->level_n[0] = (uint32_t) n;
	while (n > 1)
	{
		uint64_t chunks = (n + places - 1) / places;

		const GpuSkiplistBuildIndex<nw> build = { c->pool->base, loaded, height == 1,      below,
												  (int64_t) n,   here,   (int64_t) chunks, s->version + 1 };
		gpu_launch(&c->stream, (int64_t) chunks * GPU_SKIPLIST_PLACES, build);
		s->level_n[height++] = (uint32_t) chunks;
		below = here;
		here -= chunks;
		n = chunks;
	}
	table.base = c->pool->base;
	table.ref = here;
	table.table = { s->version + 1, s->top, height };
	table.root = below;
	table.report = (GpuSkiplistReport *) c->device_report;
	gpu_launch(&c->stream, 1, table);
	gpu_nodes_take(nodes, (uint32_t) (nodes->free.at + nodes->nfree - here));
	s->levels = height;
}

/*
 * Completes a list of so many entries in all, the next version: writes the chunks that are not there yet,
 * from number load.nodes on, and the indexes.  False: there is no memory for them, or the device is lost.
 */
template <typename Source>
static inline bool
gpu_skiplist_load_complete(GpuChange *c, GpuSkiplist *s, uint64_t total, const Source &source)
{
	GpuLoad *load = &s->load;
	GpuNodes *nodes = gpu_skiplist_nodes(s, GPU_SKIPLIST_CHUNKS);
	const uint64_t places = GPU_SKIPLIST_PLACES * load->fill_percent / 100;
	const uint64_t full = gpu_skiplist_full_chunks(total, load->fill_percent);
	const uint64_t n = full + (total > gpu_skiplist_start(full, load->fill_percent));
	GpuDemand demand[GPU_SKIPLIST_KINDS] = { { 0, 0 }, { gpu_skiplist_index_chunks(n, places) + 1, 0 } };
	const GpuLoaded loaded(s, c->device_chunks, 0);

	if (n == 0)
		return gpu_change_ok(c);
	if (!gpu_nodes_extend(c, nodes, gpu_nodes_chunks(nodes, n)) || !gpu_space_reserve(c, &s->space, demand))
		return false;
	/* leaves the numbers of all chunks of the pool in device_chunks */
	gpu_nodes_filled(c, nodes, (uint32_t) n);
	gpu_skiplist_load_write(c, s, loaded, load->nodes, n - load->nodes, total, source);
	s->top = nodes->chunks[0] * GPU_CHUNK_UNITS;
	if (s->nwords == 1)
		gpu_skiplist_load_indexes<1>(c, s, loaded, n, places);
	else
		gpu_skiplist_load_indexes<2>(c, s, loaded, n, places);
	if (!gpu_finish(&c->stream))
		return false;
	s->top = gpu_skiplist_report(c)->root;
	s->root = gpu_skiplist_report(c)->table;
	return true;
}

/* All entries are there: publishes the list.  GPU_NO_MEMORY: the load can go on, or be given up. */
static inline GpuStatus
gpu_skiplist_load_end(GpuChange *c, GpuSkiplist *s)
{
	const uint64_t total = s->load.entries;

	if (!s->loading)
		return GPU_WITHDRAWN;
	if (!gpu_skiplist_load_complete(c, s, total, gpu_load_rest<GpuSkiplistLayout>(c, s)))
		return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
	gpu_span_give(c->pool, &s->load.carry);
	s->loading = false;
	s->changes = total;
	gpu_skiplist_publish(s, total);
	s->oldest = s->version;
	return gpu_change_status(c);
}

#endif /* SKIPLIST_BUILD_GPU_H */
