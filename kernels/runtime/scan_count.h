/*-------------------------------------------------------------------------
 *
 * scan_count.h
 *	  Scans that count the entries on all-visible heap pages; part of scan.h.
 *
 * Intervals are located as in any large scan, which says how many entries there are.
 * Then all entries are looked up in the map, each thread taking some neighbours.
 * Those that are not on all-visible pages are expected to be few: only they are
 * added up and written, in no order, by one addition a warp; what is counted is the
 * difference.
 *
 * The map lies behind the input in the stream's memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_COUNT_H
#define GPU_SCAN_COUNT_H

/* Entries that a thread looks up if intervals are long: some leaves of a descent. */
#define GPU_COUNT_STRETCH 16

/* Entries i * stretch and what follows.  Whole warps call it, some threads have no entries. */
template <class Probe, int stretch> struct GpuScanCount
{
	typename Probe::View view;
	const GpuStart *starts;
	const uint64_t *offsets;
	int64_t n;
	int64_t total;
	const unsigned char *map;
	uint64_t map_bytes;
	uint32_t *others; /* number of entries not on all-visible pages ... */
	uint64_t *tids;   /* ... and as many of their TIDs as there is room for */
	int64_t cap;

	/* Which of some TIDs are not on all-visible pages, as bits.  All loads come first. */
	GPU_FN unsigned others_of(const uint64_t *some) const
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
			unsigned visible = byte[k] >> (some[k] >> 16 & 3) * 2 & 1;

			bits |= (some[k] == GPU_NO_TID ? 0 : visible ^ 1) << k;
		}
		return bits;
	}

	GPU_FN void operator()(int64_t i) const
	{
		int64_t o = i * stretch;
		int64_t end = o + stretch < total ? o + stretch : total;
		uint64_t list[stretch];
		uint32_t listed = 0;
		int64_t first;

		while (o < end)
		{
			int64_t at = gpu_scan_find(offsets, n, (uint64_t) o);
			int64_t stop = (int64_t) offsets[at + 1] < end ? (int64_t) offsets[at + 1] : end;
			typename Probe::Position p;

			Probe::position(view, starts[at], (uint64_t) o - offsets[at], true, &p);
			while (o < stop)
			{
				uint64_t some[GPU_TIDS];
				unsigned bits;

				o += Probe::tids(view, &p, stop - o, some);
				bits = others_of(some);
				for (int k = 0; k < GPU_TIDS; k++)
				{
					if (bits >> k & 1)
						list[listed++] = some[k];
				}
			}
		}
		first = gpu_warp_add(others, listed);
		for (uint32_t k = 0; k < listed && first + k < cap; k++)
			tids[first + k] = list[k];
	}
};

template <class Probe, int stretch>
static inline void
gpu_scan_count_stretches(GpuScanStream *stream, const GpudsView *view, const GpuRequest *r, int64_t n,
						 int64_t total, const unsigned char *map)
{
	int64_t threads = (total + stretch - 1) / stretch;
	GpuScanCount<Probe, stretch> count;

	count.view = Probe::open(*view);
	count.starts = stream->starts;
	count.offsets = stream->offsets;
	count.n = n;
	count.total = total;
	count.map = map;
	count.map_bytes = r->map_bytes;
	count.others = stream->others;
	count.tids = (uint64_t *) stream->output;
	count.cap = r->cap;
	gpu_launch(&stream->stream, (threads + GPU_LAUNCH_THREADS - 1) / GPU_LAUNCH_THREADS * GPU_LAUNCH_THREADS,
			   count);
}

/*
 * Counts the entries of n intervals, and writes the TIDs of the others to staging memory
 * if there is room for them.  Returns how many others there are, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_count(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, GpuRequest *r, int64_t n)
{
	GpuStream *s = &stream->stream;
	unsigned char *map = stream->input + gpu_scan_input_bytes(r);
	int64_t others = 0;
	int64_t total;

	gpu_copy_bus(s, map, staging + r->map, r->map_bytes);
	gpu_fill(s, stream->others, 0, sizeof(uint32_t));
	total = gpu_scan_locate<Probe>(stream, view, staging, r, n);
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		if (total < 2 * n)
			gpu_scan_count_stretches<Probe, 1>(stream, view, r, n, total, map);
		else
			gpu_scan_count_stretches<Probe, GPU_COUNT_STRETCH>(stream, view, r, n, total, map);
		gpu_copy_bus(s, &stream->summary->others, stream->others, sizeof(uint32_t));
		if (gpu_finish(s))
			others = stream->summary->others;
	}
	r->counted = total - others;
	if (others > 0 && others <= r->cap)
	{
		uint64_t *sorted = (uint64_t *) stream->output;
		uint64_t *other = (uint64_t *) stream->other;

		gpu_sort_keys(s, &sorted, &other, others, 0, 48);
		gpu_copy_bus(s, staging + r->output, sorted, (size_t) others * sizeof(uint64_t));
	}
	return others;
}

#endif /* GPU_SCAN_COUNT_H */
