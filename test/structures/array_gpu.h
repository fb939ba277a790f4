/*-------------------------------------------------------------------------
 *
 * array_gpu.h
 *	  A sorted array as a structure of the GPU: for tests only.
 *
 * The array lies in one span of the pool.  Every batch of operations makes a new one,
 * and the host does the merging.  A view's root is where the array begins, in
 * units of ARRAY_UNIT_BYTES.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_ARRAY_GPU_H
#define TEST_ARRAY_GPU_H

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "kernels/runtime/space.h"
#include "kernels/runtime/gpu_structure.h"
#include "kernels/runtime/view.h"

#define ARRAY_UNIT_BYTES GPU_UNIT_BYTES

struct ArrayProbe
{
	struct View
	{
		const GpudsEntry *at;
		uint64_t entries;
	};
	typedef uint64_t Position; /* rank */

	static constexpr bool has_ranks = true;
	static constexpr bool by_tiles = true;

	static GPU_FN View open(const GpudsView &view)
	{
		View v = { (const GpudsEntry *) (view.base + (size_t) view.root * GPU_UNIT_BYTES), view.entries };

		return v;
	}

	/* How many entries are before e; with or_equal, also e itself. */
	static GPU_FN uint64_t rank(const View &view, const GpudsEntry &e, bool or_equal)
	{
		uint64_t lo = 0;
		uint64_t hi = view.entries;

		while (lo < hi)
		{
			uint64_t middle = lo + (hi - lo) / 2;

			if (or_equal ? !entry_less(&e, &view.at[middle]) : entry_less(&view.at[middle], &e))
				lo = middle + 1;
			else
				hi = middle;
		}
		return lo;
	}

	static GPU_FN uint64_t locate(const View &view, const GpudsInterval *interval, bool forward,
								  GpuStart *start)
	{
		uint64_t from = rank(view, interval->lo, false);
		uint64_t to = rank(view, interval->hi, true);

		*start = 0;
		if (from >= to)
			return 0;
		*start = forward ? from : to - 1;
		return to - from;
	}

	static GPU_FN void position(const View &, GpuStart start, uint64_t k, bool forward, Position *p)
	{
		*p = forward ? start + k : start - k;
	}

	static GPU_FN void step(const View &, Position *p, bool forward)
	{
		*p += forward ? 1 : UINT64_MAX;
	}

	/* As many as a leaf of a B+tree has */
	static GPU_FN int together(const View &view, const Position &p)
	{
		const uint64_t left = view.entries - p;

		return left < GPU_TIDS ? (int) left : GPU_TIDS;
	}

	static GPU_FN void next(Position *p)
	{
		++*p;
	}

	static GPU_FN GpudsEntry entry(const View &view, const Position &p)
	{
		return view.at[p];
	}

	static GPU_FN uint64_t tid(const View &view, const Position &p)
	{
		return view.at[p].t & ENTRY_TID_MASK;
	}

	static GPU_FN int tids(const View &view, Position *p, int64_t n, uint64_t *tids)
	{
		int found = n < GPU_TIDS ? (int) n : GPU_TIDS;

		for (int k = 0; k < GPU_TIDS; k++)
			tids[k] = k < found ? view.at[*p + k].t & ENTRY_TID_MASK : GPU_NO_TID;
		*p += found;
		return found;
	}

	static GPU_FN GpuStart start(const GpuBound *bounds, uint64_t skip)
	{
		return bounds[0].rank + skip;
	}

#ifndef GPU_EMULATED
	static __device__ __forceinline__ GpuBound tile_bound(const View &view, const GpudsInterval &interval,
														  bool end)
	{
		GpuBound bound = { rank(view, end ? interval.hi : interval.lo, end), 0, 0 };

		return bound;
	}
#endif
};

struct ArrayOnGpu : GpuStructure
{
	typedef ArrayProbe Probe;

	struct Retired
	{
		uint64_t version;
		GpuSpan span;
	};

	mutable std::mutex mutex; /* of what readers look at */
	bool published = false;
	uint64_t serial = 0; /* of the view */
	uint64_t entries = 0;
	GpuSpan span;

	uint64_t current = 0; /* atomic: the version */
	uint32_t nwords = 0;  /* 0: there is no tree */
	bool loading = false;
	uint64_t loaded = 0; /* entries in span, during a load */
	std::vector<Retired> retired;

	explicit ArrayOnGpu(uint32_t structure) : GpuStructure(structure)
	{
	}

	static GpuChangeNeeds change_needs()
	{
		return { 0, 0 };
	}

	const uint64_t *version() const override
	{
		return &current;
	}

	bool view(const GpuPool *pool, GpudsView *view) const override
	{
		std::lock_guard<std::mutex> guard(mutex);

		/* what a load does to the span is nobody else's business */
		if (!published)
			return false;
		view->base = pool->base;
		view->entries = entries;
		view->structure = number;
		view->root = span.at
						 ? (uint32_t) ((size_t) ((unsigned char *) span.at - pool->base) / ARRAY_UNIT_BYTES)
						 : 0;
		view->height = entries > 0;
		view->nwords = (int) nwords;
		view->serial = serial;
		return true;
	}

	uint32_t scan(GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
				  unsigned char *device_staging, GpuRequest *request) const override
	{
		return gpu_scan_large<Probe>(stream, view, staging, device_staging, request);
	}

	void join(GpuScanStream *stream, const GpudsView *view, const GpuJoinKeys &keys) const override
	{
		gpu_scan_join_probe<Probe>(stream, view, keys);
	}

	uint64_t bytes() const override
	{
		uint64_t sum = gpu_span_bytes(&span);

		for (const Retired &r : retired)
			sum += gpu_span_bytes(&r.span);
		return sum;
	}

	/* Shows readers an array, or that there is none. */
	void publish(bool there, const GpuSpan &array, uint64_t n)
	{
		{
			std::lock_guard<std::mutex> guard(mutex);

			published = there;
			serial++;
			span = array;
			entries = n;
		}
		__atomic_store_n(&current, current + 1, __ATOMIC_SEQ_CST);
	}

	GpuStatus load_begin(GpuChange *c, uint32_t words, uint32_t) override
	{
		if (nwords != 0)
			return GPU_WITHDRAWN;
		if (!gpu_span_take(c->pool, &span, GPU_CHUNK_BYTES))
			return GPU_NO_MEMORY;
		std::lock_guard<std::mutex> guard(mutex);
		nwords = words;
		loading = true;
		loaded = 0;
		return gpu_change_status(c);
	}

	/* Makes room for so many entries in the span, which nobody reads yet. */
	bool grow(GpuChange *c, uint64_t n)
	{
		size_t need = (size_t) n * sizeof(GpudsEntry);
		GpuSpan larger;

		if (need <= gpu_span_bytes(&span))
			return true;
		if (!gpu_span_take(c->pool, &larger, std::max(need, (size_t) 2 * gpu_span_bytes(&span))))
			return false;
		gpu_copy(&c->stream, larger.at, span.at, (size_t) loaded * sizeof(GpudsEntry));
		gpu_finish(&c->stream);
		gpu_span_give(c->pool, &span);
		span = larger;
		return true;
	}

	GpuStatus load_add(GpuChange *c, const GpudsEntry *added, int64_t n) override
	{
		if (!loading)
			return GPU_WITHDRAWN;
		if (loaded + (uint64_t) n > GPU_MAX_ENTRIES)
			return GPU_TOO_LARGE;
		if (!grow(c, loaded + (uint64_t) n))
			return GPU_NO_MEMORY;
		gpu_copy_bus(&c->stream, (GpudsEntry *) span.at + loaded, added, (size_t) n * sizeof(GpudsEntry));
		gpu_finish(&c->stream);
		loaded += (uint64_t) n;
		return gpu_change_status(c);
	}

	GpuStatus load_end(GpuChange *c) override
	{
		if (!loading)
			return GPU_WITHDRAWN;
		loading = false;
		publish(true, span, loaded);
		return gpu_change_status(c);
	}

	/* What the array will be, in the host's memory. */
	bool merge(GpuChange *c, const GpudsOp *ops, int64_t n, std::vector<GpudsEntry> *merged,
			   int64_t *inserted, int64_t *deleted) const
	{
		std::vector<GpudsEntry> old(entries);
		std::vector<GpudsOp> sorted(ops, ops + n);
		size_t i = 0;

		gpu_copy_bus(&c->stream, old.data(), span.at, old.size() * sizeof(GpudsEntry));
		if (!gpu_finish(&c->stream))
			return false;
		std::sort(sorted.begin(), sorted.end(),
				  [](const GpudsOp &a, const GpudsOp &b)
				  { return entry_equal(&a.e, &b.e) ? a.order < b.order : entry_less(&a.e, &b.e); });
		merged->reserve(old.size() + sorted.size());
		for (size_t o = 0; o < sorted.size(); o++)
		{
			bool was_there;
			bool is_there = (sorted[o].order & GPUDS_OP_DELETE) == 0;

			/* the last word on an entry counts */
			if (o + 1 < sorted.size() && entry_equal(&sorted[o].e, &sorted[o + 1].e))
				continue;
			while (i < old.size() && entry_less(&old[i], &sorted[o].e))
				merged->push_back(old[i++]);
			was_there = i < old.size() && entry_equal(&old[i], &sorted[o].e);
			i += was_there;
			if (is_there)
				merged->push_back(sorted[o].e);
			*inserted += is_there && !was_there;
			*deleted += was_there && !is_there;
		}
		merged->insert(merged->end(), old.begin() + (ptrdiff_t) i, old.end());
		return true;
	}

	GpuStatus replace(GpuChange *c, const std::vector<GpudsEntry> &merged)
	{
		GpuSpan array;
		Retired old = { 0, span };

		if (merged.size() > GPU_MAX_ENTRIES)
			return GPU_TOO_LARGE;
		if (!gpu_pool_list(c->pool, &retired, 1) ||
			!gpu_span_take(c->pool, &array, std::max(merged.size() * sizeof(GpudsEntry), (size_t) 1)))
			return GPU_NO_MEMORY;
		gpu_copy_bus(&c->stream, array.at, merged.data(), merged.size() * sizeof(GpudsEntry));
		if (!gpu_finish(&c->stream))
			return gpu_change_status(c);
		publish(true, array, merged.size());
		old.version = current;
		retired.push_back(old);
		return GPU_OK;
	}

	GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *, int64_t n, int64_t *inserted,
					int64_t *deleted) override
	{
		std::vector<GpudsEntry> merged;

		*inserted = *deleted = 0;
		if (nwords == 0 || loading)
			return GPU_WITHDRAWN;
		try
		{
			if (!merge(c, ops, n, &merged, inserted, deleted))
				return gpu_change_status(c);
			return replace(c, merged);
		}
		catch (const std::bad_alloc &)
		{
			return GPU_NO_MEMORY;
		}
	}

	void reclaim(GpuChange *c, uint64_t oldest) override
	{
		size_t n = 0;

		for (; n < retired.size() && retired[n].version <= oldest; n++)
			gpu_span_give(c->pool, &retired[n].span);
		retired.erase(retired.begin(), retired.begin() + (ptrdiff_t) n);
	}

	void withdraw() override
	{
		publish(false, span, 0);
	}

	GpuStatus drop(GpuChange *c) override
	{
		gpu_finish(&c->stream);
		reclaim(c, UINT64_MAX);
		std::lock_guard<std::mutex> guard(mutex);
		gpu_span_give(c->pool, &span);
		nwords = 0;
		loading = false;
		return gpu_change_status(c);
	}

	GpuStatus verify(GpuChange *c, char *why, size_t whylen) override
	{
		std::vector<GpudsEntry> all;

		snprintf(why, whylen, "%s", "");
		if (nwords == 0 || loading)
			return GPU_WITHDRAWN;
		try
		{
			all.resize(entries);
		}
		catch (const std::bad_alloc &)
		{
			return GPU_NO_MEMORY;
		}
		gpu_copy_bus(&c->stream, all.data(), span.at, all.size() * sizeof(GpudsEntry));
		if (!gpu_finish(&c->stream))
			return gpu_change_status(c);
		for (size_t i = 1; i < all.size(); i++)
		{
			if (entry_less(&all[i - 1], &all[i]))
				continue;
			snprintf(why, whylen, "entry %zu of the array is out of order", i);
			return GPU_DAMAGED;
		}
		return GPU_OK;
	}
};

#endif /* TEST_ARRAY_GPU_H */
