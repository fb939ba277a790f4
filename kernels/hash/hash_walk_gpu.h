/*-------------------------------------------------------------------------
 *
 * hash_walk_gpu.h
 *	  Intervals of several keys: all threads go through the whole table.
 *
 * A table has no order among its keys.  The entries between the lowest beginning and the highest end of a
 * scan's intervals are collected and sorted, and the scan is answered from the array that they are
 * then.  That takes one walk, and 72 bytes of the pool an entry, for each piece of a scan.  The intervals
 * need not be in order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_WALK_GPU_H
#define HASH_WALK_GPU_H

#include "kernels/runtime/array_probe.h"
#include "kernels/runtime/scan.h"
#include "kernels/runtime/scratch.h"
#include "kernels/hash/hash_probe_gpu.h"

/* Threads of a walk. */
#define GPU_HASH_WALKERS (1 << 17)

/* Counts what a version has of an interval, and collects it in any order if there is where. */
template <typename Probe> struct GpuHashWalk
{
	GpuHashView view;
	GpudsInterval interval;
	uint32_t *found;
	GpudsEntry *out;

	GPU_FN void take(const GpudsEntry &hidden) const
	{
		GpudsEntry e = gpu_hash_show(hidden);
		uint32_t at;

		if (entry_less(&e, &interval.lo) || entry_less(&interval.hi, &e))
			return;
		at = gpu_atomic_add(found, 1);
		if (out)
			out[at] = e;
	}

	template <int nw> GPU_FN void walk(int64_t i) const
	{
		GpuHashTable table = *view.table;
		GpudsView tree = gpu_hash_overflow(view.base, table, nw);

		for (int64_t b = i; b < INT64_C(1) << table.bits; b += GPU_HASH_WALKERS)
		{
			GpuRef ref = gpu_hash_first(view.base, table, (uint64_t) b);

			if (ref != 0 && gpu_hash_in_tree(gpu_hash_line(view.base, ref)))
				continue;
			for (GpuHashCursor<nw> at(view.base, ref); at.left > 0; at.next())
				take(at.entry());
		}
		for (uint64_t rank = (uint64_t) i; rank < table.entries; rank += GPU_HASH_WALKERS)
		{
			typename Probe::Position p;

			Probe::select(tree, rank, &p);
			take(Probe::entry(tree, p));
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		if (view.nwords == 1)
			walk<1>(i);
		else
			walk<2>(i);
	}
};

/* Keys for sorting by word 0 .. 2 of entries; the first time they are numbered. */
struct GpuHashSortWord
{
	const GpudsEntry *entries;
	uint64_t *key;
	uint32_t *number;
	int word;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsEntry e;

		if (word == 2)
			number[i] = (uint32_t) i;
		e = entries[number[i]];
		key[i] = word == 0 ? e.w0 : word == 1 ? e.w1 : e.t;
	}
};

struct GpuHashSortGather
{
	const GpudsEntry *entries;
	const uint32_t *number;
	GpudsEntry *sorted;

	GPU_FN void operator()(int64_t i) const
	{
		sorted[i] = entries[number[i]];
	}
};

/* Working memory; what is sorted comes first, where a unit begins. */
struct GpuHashSort
{
	GpudsEntry *sorted;
	GpudsEntry *entries;
	uint64_t *key;
	uint64_t *other_key;
	uint32_t *number;
	uint32_t *other_number;
	unsigned char *temp;
};

static inline void
gpu_hash_sort_layout(GpuScratch *scratch, GpuHashSort *sort, int64_t n, size_t temp_bytes)
{
	sort->sorted = gpu_scratch<GpudsEntry>(scratch, n);
	sort->entries = gpu_scratch<GpudsEntry>(scratch, n);
	sort->key = gpu_scratch<uint64_t>(scratch, n);
	sort->other_key = gpu_scratch<uint64_t>(scratch, n);
	sort->number = gpu_scratch<uint32_t>(scratch, n);
	sort->other_number = gpu_scratch<uint32_t>(scratch, n);
	sort->temp = gpu_scratch<unsigned char>(scratch, (int64_t) temp_bytes);
}

/* Sorts n collected entries; temp is for this alone. */
static inline void
gpu_hash_sort(GpuStream *s, GpuHashSort *sort, int64_t n, size_t temp_bytes, int nwords)
{
	void *temp = s->temp;
	size_t bytes = s->temp_bytes;

	s->temp = sort->temp;
	s->temp_bytes = temp_bytes;
	for (int word = 2; word >= 0; word--)
	{
		if (word == 1 && nwords == 1)
			continue;
		gpu_launch(s, n, GpuHashSortWord{ sort->entries, sort->key, sort->number, word });
		gpu_sort_pairs(s, &sort->key, &sort->other_key, &sort->number, &sort->other_number, n, 0, 64);
	}
	gpu_launch(s, n, GpuHashSortGather{ sort->entries, sort->number, sort->sorted });
	s->temp = temp;
	s->temp_bytes = bytes;
}

/* The intervals that a request has left. */
static inline GpudsScan
gpu_hash_scan_of(const unsigned char *staging, const GpuRequest *r)
{
	const GpudsInterval *intervals = (const GpudsInterval *) (staging + r->input);
	const uint64_t *points = r->points ? (const uint64_t *) (intervals + 1) : NULL;
	GpudsScan scan = { intervals, r->n, r->next, r->inside, r->at, points };

	return scan;
}

/* Has each of the intervals that a request has left one key only? */
static inline bool
gpu_hash_single_keys(const GpudsView *view, const unsigned char *staging, const GpuRequest *r)
{
	GpudsScan scan = gpu_hash_scan_of(staging, r);
	int64_t end = r->forward ? r->n : r->next;

	for (int64_t i = r->forward ? r->next : 0; i < end; i++)
	{
		const GpudsInterval *interval = &scan.intervals[r->points ? 0 : i];

		if (interval->lo.w0 != interval->hi.w0 || (view->nwords == 2 && interval->lo.w1 != interval->hi.w1))
			return false;
		if (r->points)
			break;
	}
	return true;
}

/* From the lowest beginning to the highest end of the intervals that a request has left, one at least. */
static inline GpudsInterval
gpu_hash_span_of(const unsigned char *staging, const GpuRequest *r)
{
	GpudsScan scan = gpu_hash_scan_of(staging, r);
	const int64_t first = r->forward ? r->next : 0;
	const int64_t end = r->forward ? r->n : r->next;
	GpudsInterval span = entry_scan_interval(&scan, first);

	for (int64_t i = first + 1; i < end; i++)
	{
		GpudsInterval interval = entry_scan_interval(&scan, i);

		if (entry_less(&interval.lo, &span.lo))
			span.lo = interval.lo;
		if (entry_less(&span.hi, &interval.hi))
			span.hi = interval.hi;
	}
	return span;
}

/* Answers a scan by a walk.  GPU_NO_MEMORY: nothing of the request is set. */
template <typename Probe>
static inline uint32_t
gpu_hash_scan_walk(GpuPool *pool, GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
				   unsigned char *device_staging, GpuRequest *r)
{
	GpuStream *s = &stream->stream;
	GpuScratch scratch = { NULL, 0 };
	GpudsView array = *view;
	GpuHashWalk<Probe> walk;
	GpuHashSort sort;
	GpuSpan span;
	size_t temp_bytes;
	uint32_t status;
	int64_t total;

	walk.view = gpu_hash_open(*view);
	walk.interval = gpu_hash_span_of(staging, r);
	walk.found = &stream->uncounted->others;
	walk.out = NULL;
	gpu_fill(s, walk.found, 0, sizeof(uint32_t));
	gpu_launch(s, GPU_HASH_WALKERS, walk);
	gpu_copy_bus(s, &stream->summary->uncounted.others, walk.found, sizeof(uint32_t));
	if (!gpu_finish(s))
		return s->status;
	total = stream->summary->uncounted.others;
	array.entries = (uint64_t) total;
	array.height = total > 0;
	if (total == 0)
		return gpu_scan_large<GpuArrayProbe>(stream, &array, staging, device_staging, r);
	if (total > GPU_MAX_ITEMS)
		return GPU_NO_MEMORY;
	temp_bytes = gpu_temp_bytes(total);
	gpu_hash_sort_layout(&scratch, &sort, total, temp_bytes);
	if (!gpu_scratch_take(pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_hash_sort_layout(&scratch, &sort, total, temp_bytes);
	array.root = gpu_hash_span_ref(&span);
	walk.out = sort.entries;
	gpu_fill(s, walk.found, 0, sizeof(uint32_t));
	gpu_launch(s, GPU_HASH_WALKERS, walk);
	gpu_hash_sort(s, &sort, total, temp_bytes, view->nwords);
	status = gpu_scan_large<GpuArrayProbe>(stream, &array, staging, device_staging, r);
	gpu_span_give(pool, &span);
	return status;
}

/* Answers a scan, by a walk if it has to be; as gpu_scan_large, but see gpu_hash_scan_walk. */
template <typename Probe>
static inline uint32_t
gpu_hash_scan(GpuPool *pool, GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
			  unsigned char *device_staging, GpuRequest *r)
{
	if (view->height == 0 || gpu_hash_single_keys(view, staging, r))
		return gpu_scan_large<GpuHashProbe<Probe>>(stream, view, staging, device_staging, r);
	return gpu_hash_scan_walk<Probe>(pool, stream, view, staging, device_staging, r);
}

#endif /* HASH_WALK_GPU_H */
