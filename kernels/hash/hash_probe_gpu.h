/*-------------------------------------------------------------------------
 *
 * hash_probe_gpu.h
 *	  Probes of a hash table in device memory: intervals of one key.
 *
 * The entries of a key are neighbours in their bucket, so an interval of one key is two places in the
 * bucket's lines, or in the overflow tree.  Intervals of several keys have nothing here;
 * hash_walk_gpu.h answers them.
 *
 * Tree is the probe of the overflow tree (HashStructure).  The start of an interval's entries is that of its
 * probe, which is less than 2^32 or has a lower half less than GPU_HASH_PLACE, or the bucket's first line <<
 * 32 | GPU_HASH_PLACE | place in the bucket.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_PROBE_GPU_H
#define HASH_PROBE_GPU_H

#include "kernels/hash/hash_line_gpu.h"

/* In the lower half of a start: it is a place in lines.  Places in leaves are lower numbers. */
#define GPU_HASH_PLACE 0x100u

/* A version, as the probe sees it. */
struct GpuHashView
{
	const unsigned char *base;
	const GpuHashTable *table;
	int nwords;
};

GPU_FN GpuHashView
gpu_hash_open(const GpudsView &view)
{
	return { view.base, (const GpuHashTable *) gpu_hash_line(view.base, view.root), view.nwords };
}

template <typename Tree> struct GpuHashProbe
{
	typedef GpuHashView View;

	struct Position
	{
		GpuRef first = 0;               /* of the bucket's lines; 0: the position is in the overflow tree */
		uint32_t place = 0;             /* in the bucket */
		typename Tree::Position p = {}; /* in the tree */
	};

	/* Two words of a line, which are one load. */
	struct alignas(16) Pair
	{
		uint64_t word[2];
	};

	static constexpr bool by_tiles = true;

	static GPU_FN View open(const GpudsView &view)
	{
		return gpu_hash_open(view);
	}

	/* Loads a line at once; its head is loaded freshly where the array may have led to it. */
	static GPU_FN void load(const unsigned char *base, GpuRef ref, bool fresh, uint64_t line[])
	{
		const uint64_t *there = gpu_hash_line(base, ref);
		const Pair *pairs = (const Pair *) there;

		if (fresh)
			gpu_fresh_pair(there, line);
		for (int i = fresh ? 1 : 0; i < GPU_HASH_LINE_WORDS / 2; i++)
		{
			Pair pair = pairs[i];

			line[2 * i] = pair.word[0];
			line[2 * i + 1] = pair.word[1];
		}
	}

	/*
	 * How many entries of an interval's bucket are before lo, and how many not behind hi, which are
	 * hidden; *first: its first line.  False: they are in the overflow tree.
	 */
	static GPU_FN bool ranks(const unsigned char *base, const GpuHashTable &table, const GpudsEntry &lo,
							 const GpudsEntry &hi, GpuRef *first, uint32_t *below, uint32_t *upto,
							 const int nw)
	{
		GpuRef ref = gpu_fresh(gpu_hash_array(base, table, gpu_hash_bucket(lo, table.bits)));
		uint64_t line[GPU_HASH_LINE_WORDS];

		*below = *upto = 0;
		/* A line that is newer than this version is rare: all of it is on its way with its head. */
		for (; ref != 0; ref = (GpuRef) line[1])
		{
			load(base, ref, true, line);
			if (line[0] >> GPU_HASH_VERSION_SHIFT <= table.version)
				break;
		}
		*first = ref;
		if (ref != 0 && gpu_hash_in_tree(line))
			return false;
		while (ref != 0)
		{
			const uint32_t n = gpu_hash_n(line);

			for (int i = 0; i < gpu_hash_slots(nw); i++)
			{
				GpudsEntry e = gpu_hash_slot(line, i, nw);

				*below += (uint32_t) i < n && entry_less(&e, &lo);
				*upto += (uint32_t) i < n && !entry_less(&hi, &e);
			}
			ref = gpu_hash_next(line);
			if (ref != 0)
				load(base, ref, false, line);
		}
		return true;
	}

	/* ranks, of either number of words. */
	static GPU_FN bool in_lines(const View &view, const GpuHashTable &table, const GpudsEntry &lo,
								const GpudsEntry &hi, GpuRef *first, uint32_t *below, uint32_t *upto)
	{
		if (view.nwords == 1)
			return ranks(view.base, table, lo, hi, first, below, upto, 1);
		return ranks(view.base, table, lo, hi, first, below, upto, 2);
	}

	static GPU_FN uint64_t locate(const View &view, const GpudsInterval *interval, bool forward,
								  GpuStart *start)
	{
		GpuHashTable table = *view.table;
		GpudsInterval hidden = { gpu_hash_hide(interval->lo), gpu_hash_hide(interval->hi) };
		uint32_t below;
		uint32_t upto;
		GpuRef first;

		if (!in_lines(view, table, hidden.lo, hidden.hi, &first, &below, &upto))
			return Tree::locate(gpu_hash_overflow(view.base, table, view.nwords), &hidden, forward, start);
		*start = 0;
		if (upto <= below)
			return 0;
		*start = (uint64_t) first << 32 | GPU_HASH_PLACE | (forward ? below : upto - 1);
		return upto - below;
	}

	static GPU_FN void position(const View &view, GpuStart start, uint64_t k, bool forward, Position *p)
	{
		*p = Position();
		if (start >> 32 == 0 || ((uint32_t) start & GPU_HASH_PLACE) == 0)
		{
			Tree::position(gpu_hash_overflow(view.base, *view.table, view.nwords), start, k, forward, &p->p);
			return;
		}
		p->first = (GpuRef) (start >> 32);
		p->place = (uint32_t) start - GPU_HASH_PLACE;
		p->place = forward ? p->place + (uint32_t) k : p->place - (uint32_t) k;
	}

	static GPU_FN void step(const View &view, Position *p, bool forward)
	{
		if (p->first == 0)
			Tree::step(gpu_hash_overflow(view.base, *view.table, view.nwords), &p->p, forward);
		else
			p->place += forward ? 1 : UINT32_MAX;
	}

	/* The line with a position's entry, and its place there. */
	static GPU_FN const uint64_t *line(const View &view, const Position &p, int *at)
	{
		const uint64_t *line = gpu_hash_line(view.base, p.first);

		*at = (int) p.place;
		for (; *at >= gpu_hash_slots(view.nwords); *at -= gpu_hash_slots(view.nwords))
			line = gpu_hash_line(view.base, gpu_hash_next(line));
		return line;
	}

	static GPU_FN GpudsEntry entry(const View &view, const Position &p)
	{
		const uint64_t *there;
		int at;

		if (p.first == 0)
			return gpu_hash_show(Tree::entry(gpu_hash_overflow(view.base, *view.table, view.nwords), p.p));
		there = line(view, p, &at);
		return gpu_hash_show(gpu_hash_slot(there, at, view.nwords));
	}

	static GPU_FN uint64_t tid(const View &view, const Position &p)
	{
		const uint64_t *there;
		int at;

		if (p.first == 0)
			return Tree::tid(gpu_hash_overflow(view.base, *view.table, view.nwords), p.p);
		there = line(view, p, &at);
		return gpu_hash_slot(there, at, view.nwords).t & ENTRY_TID_MASK;
	}

	/* Those in one line. */
	static GPU_FN int tids(const View &view, Position *p, int64_t n, uint64_t *tids)
	{
		const uint64_t *there;
		int found = 0;
		int at;

		if (p->first == 0)
			return Tree::tids(gpu_hash_overflow(view.base, *view.table, view.nwords), &p->p, n, tids);
		there = line(view, *p, &at);
		for (int i = 0; i < GPU_TIDS; i++)
		{
			tids[i] = GPU_NO_TID;
			if (i >= at && i < gpu_hash_slots(view.nwords) && i - at < n)
			{
				tids[i] = gpu_hash_slot(there, i, view.nwords).t & ENTRY_TID_MASK;
				found++;
			}
		}
		p->place += (uint32_t) found;
		return found;
	}

	static GPU_FN GpuStart start(const GpuBound *bounds, uint64_t skip)
	{
		if (bounds[0].place & (int) GPU_HASH_PLACE)
			return (uint64_t) bounds[0].node << 32 | ((uint64_t) bounds[0].place + skip);
		return Tree::start(bounds, skip);
	}

#ifndef GPU_EMULATED
	/* The lanes do the same, so their loads are one. */
	static __device__ __forceinline__ GpuBound tile_bound(const View &view, const GpudsInterval &interval,
														  bool end)
	{
		GpuHashTable table = *view.table;
		GpudsEntry lo = gpu_hash_hide(interval.lo);
		GpudsEntry hi = gpu_hash_hide(interval.hi);
		GpuBound bound;
		uint32_t below;
		uint32_t upto;
		GpuRef first;

		if (!in_lines(view, table, lo, hi, &first, &below, &upto))
		{
			bound = Tree::bound(gpu_hash_overflow(view.base, table, view.nwords),
								end ? entry_after(&hi) : lo);
		}
		else
		{
			bound.rank = end ? upto : below;
			bound.node = first;
			bound.place = (int) (GPU_HASH_PLACE | (end ? upto : below));
		}
		return bound;
	}
#endif
};

#endif /* HASH_PROBE_GPU_H */
