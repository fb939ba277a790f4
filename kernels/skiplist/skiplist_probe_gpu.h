/*-------------------------------------------------------------------------
 *
 * skiplist_probe_gpu.h
 *	  The skip list's probe: intervals that a thread goes through alone.
 *
 * A list has no ranks, so a thread counts an interval chunk by chunk, and finds its k-th entry in the same
 * way.  It gives up on an interval of more than GPU_SKIPLIST_NEAR entries (GPU_TOO_FAR); a scan that has one
 * is answered from a list of chunks (skiplist_pieces_gpu.h).  For small scans that many are enough.
 *
 * The start of an interval's entries is the reference of the first one's parent << 32 | the number of its
 * chunk there << 8 | its place in the chunk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_PROBE_GPU_H
#define SKIPLIST_PROBE_GPU_H

#include "kernels/runtime/scan.h"
#include "kernels/skiplist/skiplist_chunk_gpu.h"

/* Entries that a thread counts. */
#define GPU_SKIPLIST_NEAR GPU_SMALL_ENTRIES

struct SkiplistProbe
{
	struct View
	{
		const unsigned char *base;
		const GpuSkiplistTable *table;
		int nwords;
	};
	typedef GpuSkiplistPosition Position;

	static constexpr bool has_ranks = false;
	static constexpr bool by_tiles = false;

	static GPU_FN View open(const GpudsView &view)
	{
		View v = { view.base, (const GpuSkiplistTable *) gpu_skiplist_chunk(view.base, view.root),
				   view.nwords };

		return v;
	}

	static GPU_FN GpuSkiplistView version(const View &view)
	{
		GpuSkiplistView v = { view.base, view.table->version, view.table->root, view.table->height };

		return v;
	}

	/* The first entry of an interval in a direction; false: there is nothing from its beginning on. */
	static GPU_FN bool seek(const GpuSkiplistView &v, const GpudsInterval &interval, bool forward,
							Position *p, const int nw)
	{
		const uint64_t *chunk;

		gpu_skiplist_descend(v, forward ? interval.lo : interval.hi, p, nw);
		chunk = gpu_skiplist_chunk(v.base, p->ref);
		if (forward)
			p->place = gpu_skiplist_rank(chunk, p->order, interval.lo, false, false, nw);
		else
			p->place = gpu_skiplist_rank(chunk, p->order, interval.hi, true, false, nw) - 1;
		if (p->place >= 0 && p->place < gpu_skiplist_n(p->order))
			return true;
		return gpu_skiplist_neighbour(v, p, forward, nw);
	}

	/* How many entries of the position's chunk, from it on, an interval has; *ends: no other has more. */
	static GPU_FN int count_chunk(const GpuSkiplistView &v, const GpudsInterval &interval, bool forward,
								  const Position &p, bool *ends, const int nw)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(v.base, p.ref);
		int edge;

		if (forward)
		{
			edge = gpu_skiplist_rank(chunk, p.order, interval.hi, true, false, nw);
			*ends = edge < gpu_skiplist_n(p.order);
			return edge - p.place;
		}
		edge = gpu_skiplist_rank(chunk, p.order, interval.lo, false, false, nw);
		*ends = edge > 0;
		return p.place + 1 - edge;
	}

	static GPU_FN uint64_t locate_any(const View &view, const GpudsInterval &interval, bool forward,
									  GpuStart *start, const int nw)
	{
		const GpuSkiplistView v = version(view);
		uint64_t count = 0;
		bool ends = false;
		Position p;

		*start = 0;
		if (entry_less(&interval.hi, &interval.lo) || !seek(v, interval, forward, &p, nw))
			return 0;
		*start = (uint64_t) p.parent << 32 | (uint64_t) p.at << 8 | (uint64_t) p.place;
		for (;;)
		{
			int n = count_chunk(v, interval, forward, p, &ends, nw);

			count += n > 0 ? (uint64_t) n : 0;
			if (n <= 0 || ends)
				return count;
			if (count > GPU_SKIPLIST_NEAR)
				return GPU_TOO_FAR;
			if (!gpu_skiplist_neighbour(v, &p, forward, nw))
				return count;
		}
	}

	static GPU_FN uint64_t locate(const View &view, const GpudsInterval *interval, bool forward,
								  GpuStart *start)
	{
		if (view.nwords == 1)
			return locate_any(view, *interval, forward, start, 1);
		return locate_any(view, *interval, forward, start, 2);
	}

	static GPU_FN bool neighbour(const GpuSkiplistView &v, const View &view, Position *p, bool forward)
	{
		return view.nwords == 1 ? gpu_skiplist_neighbour(v, p, forward, 1)
								: gpu_skiplist_neighbour(v, p, forward, 2);
	}

	static GPU_FN void position(const View &view, GpuStart start, uint64_t k, bool forward, Position *p)
	{
		const GpuSkiplistView v = version(view);
		uint64_t left;

		p->parent = (GpuRef) (start >> 32);
		p->at = (int) (start >> 8 & 15);
		p->parent_order = 0;
		if (p->parent != 0)
		{
			p->parent_order = gpu_skiplist_order(gpu_skiplist_chunk(v.base, p->parent), v.version);
			gpu_skiplist_enter(v, p);
		}
		else
		{
			p->ref = v.root;
			p->order = gpu_skiplist_order(gpu_skiplist_chunk(v.base, p->ref), v.version);
		}
		p->place = (int) (start & 15);
		for (;;)
		{
			/* behind the position, in its chunk */
			left = (uint64_t) (forward ? gpu_skiplist_n(p->order) - 1 - p->place : p->place);
			if (k <= left || !neighbour(v, view, p, forward))
				break;
			k -= left + 1;
		}
		k = k < left ? k : left;
		p->place += forward ? (int) k : -(int) k;
	}

	static GPU_FN void step(const View &view, Position *p, bool forward)
	{
		if (forward ? p->place + 1 < gpu_skiplist_n(p->order) : p->place > 0)
			p->place += forward ? 1 : -1;
		else
			(void) neighbour(version(view), view, p, forward);
	}

	/* In a chunk. */
	static GPU_FN int together(const View &, const Position &p)
	{
		return gpu_skiplist_n(p.order) - p.place;
	}

	static GPU_FN void next(Position *p)
	{
		p->place++;
	}

	static GPU_FN GpudsEntry entry(const View &view, const Position &p)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(view.base, p.ref);
		int slot = gpu_skiplist_slot(p.order, p.place);

		return view.nwords == 1 ? gpu_skiplist_entry(chunk, slot, false, 1)
								: gpu_skiplist_entry(chunk, slot, false, 2);
	}

	static GPU_FN uint64_t tid(const View &view, const Position &p)
	{
		return gpu_skiplist_chunk(view.base,
								  p.ref)[gpu_skiplist_t(false) + gpu_skiplist_slot(p.order, p.place)] &
			   ENTRY_TID_MASK;
	}

	/* Those in one chunk. */
	static GPU_FN int tids(const View &view, Position *p, int64_t n, uint64_t *tids)
	{
		const uint64_t *t = gpu_skiplist_chunk(view.base, p->ref) + gpu_skiplist_t(false);
		int left = gpu_skiplist_n(p->order) - p->place;
		int found = left < GPU_TIDS ? left : GPU_TIDS;

		found = n < found ? (int) n : found;
		for (int i = 0; i < GPU_TIDS; i++)
		{
			tids[i] = GPU_NO_TID;
			if (i < found)
				tids[i] = t[gpu_skiplist_slot(p->order, p->place + i)] & ENTRY_TID_MASK;
		}
		if (found < n)
		{
			p->place += found - 1;
			step(view, p, true);
		}
		return found;
	}
};

#endif /* SKIPLIST_PROBE_GPU_H */
