/*-------------------------------------------------------------------------
 *
 * array_probe.h
 *	  Probes of a sorted array of entries.
 *
 * A view's root is where the array begins, in units of the pool.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ARRAY_PROBE_H
#define GPU_ARRAY_PROBE_H

#include "kernels/runtime/pool.h"
#include "kernels/runtime/view.h"

struct GpuArrayProbe
{
	struct View
	{
		const GpudsEntry *at;
		uint64_t entries;
	};
	typedef uint64_t Position; /* rank */

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

#endif /* GPU_ARRAY_PROBE_H */
