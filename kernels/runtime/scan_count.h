/*-------------------------------------------------------------------------
 *
 * scan_count.h
 *	  Scans that count the entries whose rows are known to be seen; part of scan.h.
 *
 * Intervals are located as in any large scan, which says how many entries there are.
 * Then all entries are looked up in the map, each thread taking some neighbours.
 * Those that are not on all-visible pages are expected to be few.  Only of them it is
 * asked what is known of their rows.  The others, and those that are unseen, are added up by
 * one addition a warp, and the others are written, in no order; what is counted is the difference.
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
	GpuVisible visible;
	GpuUncounted *uncounted;
	uint64_t *tids; /* of the others, as many as there is room for */
	int64_t cap;

	/*
	 * Leaves those of a list of TIDs in it of whose rows nothing is known, and adds up those that are unseen;
	 * how many are left.  This comes behind the loop that makes the list: in it, it would take registers from
	 * scans without rows.
	 */
	GPU_FN uint32_t unknown_of(uint64_t *list, uint32_t listed) const
	{
		uint32_t left = 0;
		uint32_t unseen = 0;

		for (uint32_t k = 0; k < listed; k++)
		{
			PageRow row = page_rows_find(&visible.rows, list[k]);

			unseen += page_row_is_unseen(row);
			if (row == PAGE_ROW_UNKNOWN)
				list[left++] = list[k];
		}
		gpu_warp_add(&uncounted->unseen, unseen);
		return left;
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
				bits = visible.unmapped_of(some);
				for (int k = 0; k < GPU_TIDS; k++)
				{
					if (bits >> k & 1)
						list[listed++] = some[k];
				}
			}
		}
		if (visible.rows.slots > 0)
			listed = unknown_of(list, listed);
		first = gpu_warp_add(&uncounted->others, listed);
		for (uint32_t k = 0; k < listed && first + k < cap; k++)
			tids[first + k] = list[k];
	}
};

template <class Probe, int stretch>
static inline void
gpu_scan_count_stretches(GpuScanStream *stream, const GpudsView *view, const GpuRequest *r, int64_t n,
						 int64_t total, const GpuVisible &visible)
{
	int64_t threads = (total + stretch - 1) / stretch;
	GpuScanCount<Probe, stretch> count;

	count.view = Probe::open(*view);
	count.starts = stream->starts;
	count.offsets = stream->offsets;
	count.n = n;
	count.total = total;
	count.visible = visible;
	count.uncounted = stream->uncounted;
	count.tids = (uint64_t *) stream->output;
	count.cap = r->cap;
	gpu_launch(&stream->stream, gpu_whole_blocks(threads), count);
}

/* The entries that were not counted, once the stream is through; none after an error. */
static inline GpuUncounted
gpu_scan_uncounted(GpuScanStream *stream)
{
	GpuUncounted uncounted = {};

	gpu_copy_bus(&stream->stream, &stream->summary->uncounted, stream->uncounted, sizeof(GpuUncounted));
	if (gpu_finish(&stream->stream))
		uncounted = stream->summary->uncounted;
	return uncounted;
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
	GpuVisible visible = gpu_visible_copy_in(stream, staging, r);
	GpuUncounted uncounted = {};
	int64_t total;

	gpu_fill(s, stream->uncounted, 0, sizeof(GpuUncounted));
	total = gpu_scan_locate<Probe>(stream, view, staging, r, n);
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		if (total < 2 * n)
			gpu_scan_count_stretches<Probe, 1>(stream, view, r, n, total, visible);
		else
			gpu_scan_count_stretches<Probe, GPU_COUNT_STRETCH>(stream, view, r, n, total, visible);
		uncounted = gpu_scan_uncounted(stream);
	}
	r->counted = total - uncounted.others - uncounted.unseen;
	if (uncounted.others > 0 && uncounted.others <= r->cap)
	{
		uint64_t *sorted = (uint64_t *) stream->output;
		uint64_t *other = (uint64_t *) stream->other;

		gpu_sort_keys(s, &sorted, &other, uncounted.others, 0, 48);
		gpu_copy_bus(s, staging + r->output, sorted, (size_t) uncounted.others * sizeof(uint64_t));
	}
	return uncounted.others;
}

#endif /* GPU_SCAN_COUNT_H */
