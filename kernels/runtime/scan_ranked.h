/*-------------------------------------------------------------------------
 *
 * scan_ranked.h
 *	  Scans that say how many entries each interval has, and which one has a rank; part of scan.h.
 *
 * A thread locates an interval as in any large scan, and goes to the entry of its rank from there.  Nothing
 * depends on other intervals.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_RANKED_H
#define GPU_SCAN_RANKED_H

template <class Probe> struct GpuScanRanked
{
	GpuScanLocate<Probe> intervals;
	const uint64_t *ranks;
	EntryRanked *ranked;

	GPU_FN void operator()(int64_t i) const
	{
		EntryRanked is = {};
		GpuStart start;

		is.entries = intervals.locate(i, &start);
		if (is.entries >= GPU_TOO_FAR)
			is.entries = UINT64_MAX;
		else if (ranks[i] < is.entries)
		{
			typename Probe::Position p;

			Probe::position(intervals.view, start, ranks[i], true, &p);
			is.entry = Probe::entry(intervals.view, p);
		}
		ranked[i] = is;
	}
};

/* Bytes of a request's ranks. */
static inline size_t
gpu_ranked_rank_bytes(const GpuRequest *r)
{
	return (size_t) r->n * sizeof(uint64_t);
}

/* Do a request's intervals, ranks and answers lie in the staging memory, and fit into the stream's memory? */
static inline bool
gpu_ranked_fits(const GpuScanStream *stream, size_t staging_bytes, const GpuRequest *r)
{
	const size_t input = (size_t) r->n * sizeof(GpudsInterval);

	return r->forward && !r->points && r->next == 0 && !r->inside && r->n >= 0 && r->cap > r->n &&
		   r->n <= (int64_t) (stream->piece_bytes / sizeof(GpudsInterval)) &&
		   gpu_staging_has(staging_bytes, r->input, input + gpu_ranked_rank_bytes(r)) &&
		   gpu_staging_has(staging_bytes, r->output, (size_t) r->n * sizeof(EntryRanked));
}

/* Answers for all intervals of a request that fits; how many these are. */
template <class Probe>
static inline int64_t
gpu_scan_ranked(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, const GpuRequest *r)
{
	GpuStream *s = &stream->stream;
	const size_t bytes = (size_t) r->n * sizeof(EntryRanked);
	GpuScanRanked<Probe> ranked = { { Probe::open(*view), GpudsScan(), true, NULL, NULL, r->n, false },
									(const uint64_t *) stream->other,
									(EntryRanked *) stream->output };

	if (r->n == 0)
		return 0;
	if (view->height > 0)
	{
		gpu_scan_copy_in(stream, staging, r, &ranked.intervals.scan);
		gpu_copy_bus(s, stream->other, staging + r->input + gpu_scan_input_bytes(r),
					 gpu_ranked_rank_bytes(r));
		gpu_launch(s, r->n, ranked);
	}
	else
		gpu_fill(s, stream->output, 0, bytes);
	gpu_copy_bus(s, staging + r->output, stream->output, bytes);
	return r->n;
}

#endif /* GPU_SCAN_RANKED_H */
