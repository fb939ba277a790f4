/*-------------------------------------------------------------------------
 *
 * skiplist_compact_gpu.h
 *	  Building a skip list in device memory anew when deletes have left its chunks thin, or batches have left
 *	  it much more memory than it needs.
 *
 * The newest version is built a second time, packed,
 * in a space of its own, and gpu_skiplist_reclaim gives the space before it back to the pool when no reader
 * pins an older version.  A list is built anew if one of these is true, and if it will have fewer chunks of
 * the pool than now:
 *	  - Less than 3 of 8 places are used of the chunks of level 0, or of those of level 1.
 *	  - It has at least GPU_SKIPLIST_SPARE times the memory that it needs.  A batch reserves what it might
 *		take, which can be several chunks an operation, and deletes reserve, too.
 *
 * Building takes time for each entry.  For the first rule, at least a quarter of the entries must be deleted
 * before the next time.  The next batch may reserve again what the second one gives back; so that one counts
 * again only when a quarter as many entries as there are have been inserted and deleted since.  Those that
 * there are now count, not those that were built: deletes that make a list small make it cheap to build, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_COMPACT_GPU_H
#define SKIPLIST_COMPACT_GPU_H

#include "kernels/skiplist/skiplist_build_gpu.h"
#include "kernels/skiplist/skiplist_pieces_gpu.h"

#define GPU_SKIPLIST_SPARE 3

/* Entries that a change pays the building of. */
#define GPU_SKIPLIST_PAID 4

/* The entries of listed chunks; a source as gpu_skiplist_load_write wants it. */
struct GpuSkiplistListSource
{
	GpuSkiplistPieces pieces;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		GpuSkiplistPiecesProbe::Position p;

		GpuSkiplistPiecesProbe::position(pieces, 0, i, true, &p);
		return GpuSkiplistPiecesProbe::entry(pieces, p);
	}
};

/* Chunks of the pool that a list has ... */
static inline uint64_t
gpu_skiplist_pool_chunks(const GpuSkiplist *s)
{
	const GpuNodes *nodes = s->space.nodes;

	return nodes[GPU_SKIPLIST_CHUNKS].chunks.size() + nodes[GPU_SKIPLIST_INDEXES].chunks.size();
}

/* ... and that it would have if it were built anew.  One chunk of level 0 more: it may have few entries. */
static inline uint64_t
gpu_skiplist_packed_chunks(const GpuSkiplist *s)
{
	const GpuNodes *nodes = s->space.nodes;
	const uint32_t fill = s->load.fill_percent;
	const uint64_t n = gpu_skiplist_full_chunks(s->entries.load(), fill) + 1;
	const uint64_t indexes = gpu_skiplist_index_chunks(n, GPU_SKIPLIST_PLACES * fill / 100) + 1;

	return gpu_nodes_chunks(&nodes[GPU_SKIPLIST_CHUNKS], n) +
		   gpu_nodes_chunks(&nodes[GPU_SKIPLIST_INDEXES], indexes);
}

/* Is so much wasted that the list is to be built anew? */
static inline bool
gpu_skiplist_wasteful(const GpuSkiplist *s)
{
	const uint64_t has = gpu_skiplist_pool_chunks(s);
	const uint64_t packed = gpu_skiplist_packed_chunks(s);
	const bool thin = gpu_nodes_thin(s->entries.load(), s->level_n[0], GPU_SKIPLIST_PLACES) ||
					  gpu_nodes_thin(s->level_n[0], s->level_n[1], GPU_SKIPLIST_PLACES);

	const bool paid = GPU_SKIPLIST_PAID * s->changes >= s->entries.load();

	return packed < has && (thin || (paid && has >= GPU_SKIPLIST_SPARE * packed));
}

/*
 * Builds the list's newest version a second time, filled as a load fills it.  False: out of memory, or
 * the device is lost.
 */
static inline bool
gpu_skiplist_pack(GpuChange *c, const GpuSkiplist *s, GpuSkiplist *packed)
{
	GpuSkiplistReport *report = (GpuSkiplistReport *) c->device_report;
	const uint64_t entries = s->entries.load();
	GpuSkiplistListing l = {};
	GpudsView view = {};
	bool done;

	if (gpu_skiplist_load_begin(c, packed, s->nwords, s->load.fill_percent) != GPU_OK)
		return false;
	packed->version = s->version;
	if (entries == 0)
		return true;
	view.base = c->pool->base;
	view.root = s->root;
	view.nwords = (int) s->nwords;
	l.pool = c->pool;
	l.s = &c->stream;
	l.summary = &gpu_skiplist_report(c)->listed;
	l.device_summary = &report->listed;
	l.interval.hi = { UINT64_MAX, s->nwords == 2 ? UINT64_MAX : 0, UINT64_MAX };
	l.forward = true;
	l.most = INT64_MAX;
	done = gpu_skiplist_list_make(&l, &view) &&
		   gpu_skiplist_load_complete(c, packed, entries, GpuSkiplistListSource{ l.pieces });
	gpu_skiplist_list_close(&l);
	return done;
}

/*
 * Builds the list anew if it wastes enough, and publishes that as a version.  True: it did, and
 * gpu_skiplist_reclaim gives the memory back as soon as no older version is pinned.  False: nothing was
 * changed.
 *
 * Nothing happens while a pin still keeps what was built anew before.  If there is no memory for a second
 * copy, it is tried again when some operations have been applied.  A lost device shows in the stream's
 * status.
 */
static inline bool
gpu_skiplist_compact(GpuChange *c, GpuSkiplist *s)
{
	GpuSkiplist packed;

	if (!gpu_tree_rested(s) || !gpu_skiplist_wasteful(s))
		return false;
	if (!gpu_skiplist_pack(c, s, &packed) || !gpu_change_ok(c))
	{
		gpu_skiplist_close(c, &packed);
		s->compact_rest = s->entries.load() / GPU_COMPACT_REST + 1;
		return false;
	}
	gpu_span_give(c->pool, &packed.load.carry);
	gpu_tree_replace(s, &packed);
	s->top = packed.top;
	s->levels = packed.levels;
	s->changes = 0;
	gpu_skiplist_publish(s, s->entries.load());
	return true;
}

#endif /* SKIPLIST_COMPACT_GPU_H */
