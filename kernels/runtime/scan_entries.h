/*-------------------------------------------------------------------------
 *
 * scan_entries.h
 *	  What scans that add up have in common: how entries are shared out, and which of them count; part of
 *	  scan.h.
 *
 * Intervals are located as in any large scan.  Then each thread goes through some neighbouring entries.  It
 * adds up in registers what they have, and only its sums to those in memory.  So threads have many entries
 * where there are many: the additions of all threads to one place come one after the other.
 *
 * Entries of whose rows nothing is known, or which are dead, are expected to be few, and are written in no
 * order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_ENTRIES_H
#define GPU_SCAN_ENTRIES_H

/* Entries of a thread: enough to make about GPU_AGGREGATE_THREADS threads, within these limits. */
#define GPU_AGGREGATE_LEAST 8
#define GPU_AGGREGATE_MOST 512
#define GPU_AGGREGATE_THREADS (128 * 1024)

/* Entries of a thread, of so many together. */
static inline int64_t
gpu_aggregate_stretch(int64_t total)
{
	int64_t stretch = total / GPU_AGGREGATE_THREADS;

	if (stretch < GPU_AGGREGATE_LEAST)
		return GPU_AGGREGATE_LEAST;
	return stretch > GPU_AGGREGATE_MOST ? GPU_AGGREGATE_MOST : stretch;
}

/* The entries of n intervals, of which the i-th thread has entries i * stretch and what follows. */
template <class Probe> struct GpuScanEntries
{
	typename Probe::View view;
	int nwords;
	const GpuStart *starts;
	const uint64_t *offsets;
	int64_t n;
	int64_t total;
	int64_t stretch;
	GpuVisible visible;
	GpuUncounted *uncounted;
	GpudsEntry *entries; /* that are handed back, as many as there is room for */
	int64_t cap;

	GpuScanEntries(const GpuScanStream *stream, const GpudsView *of, const GpuRequest *r, int64_t intervals,
				   int64_t found, const GpuVisible &known)
		: view(Probe::open(*of)), nwords(of->nwords), starts(stream->starts), offsets(stream->offsets),
		  n(intervals), total(found), stretch(gpu_aggregate_stretch(found)), visible(known),
		  uncounted(stream->uncounted), entries((GpudsEntry *) stream->output), cap(r->cap)
	{
	}

	int64_t threads(void) const
	{
		return (total + stretch - 1) / stretch;
	}

	/*
	 * Calls each(entry, its interval, its number) of entries from o to end - 1, until that is false.  The
	 * inner loop is of entries that lie together, so that the threads of a warp go on to the next such place,
	 * which takes a wait for memory, at the same time.
	 */
	template <class F> GPU_FN void go_through(int64_t o, int64_t end, const F &each) const
	{
		if (end > total)
			end = total;
		while (o < end)
		{
			int64_t at = gpu_scan_find(offsets, n, (uint64_t) o);
			int64_t stop = (int64_t) offsets[at + 1] < end ? (int64_t) offsets[at + 1] : end;
			typename Probe::Position p;

			Probe::position(view, starts[at], (uint64_t) o - offsets[at], true, &p);
			for (;;)
			{
				int64_t left = Probe::together(view, p);

				if (left > stop - o)
					left = stop - o;
				for (;;)
				{
					if (!each(Probe::entry(view, p), at, o++))
						return;
					if (--left == 0)
						break;
					Probe::next(&p);
				}
				if (o == stop)
					break;
				Probe::step(view, &p, true);
			}
		}
	}

	/* The same of a thread's entries. */
	template <class F> GPU_FN void of_thread(int64_t i, const F &each) const
	{
		go_through(i * stretch, (i + 1) * stretch, each);
	}

	GPU_FN void hand_back(const GpudsEntry &e) const
	{
		uint32_t at = gpu_atomic_add(&uncounted->others, 1);

		if (at < cap)
			entries[at] = e;
	}

	/* Is an entry's row known to be seen?  If not, the entry is handed back, or noted as unseen. */
	GPU_FN bool is_seen(const GpudsEntry &e) const
	{
		PageRow row = visible.row(e.t & ENTRY_TID_MASK);

		if (row == PAGE_ROW_SEEN)
			return true;
		if (page_row_goes_back(row))
			hand_back(e);
		else
			gpu_atomic_count(&uncounted->unseen);
		return false;
	}
};

#endif /* GPU_SCAN_ENTRIES_H */
