/*-------------------------------------------------------------------------
 *
 * scan_edges.h
 *	  Scans whose entries are edges of a graph, which stays in device memory; part of scan.h.
 *
 * An entry whose row is known to be seen, and of whose vertices neither is NULL, adds an edge: two codes, in
 * no order.  The others are handed back as by any scan that adds up.  Where there are more of them than the
 * request has room for, nothing has been added.  A list without memory is added nothing to: it is only asked
 * whether each entry would be one of its edges.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_EDGES_H
#define GPU_SCAN_EDGES_H

/* Adds the edges of a thread's entries. */
template <class Probe> struct GpuScanEdgesAdd
{
	GpuScanEntries<Probe> in;
	AggColumn vertex[2];
	uint64_t *pairs; /* where the first one goes; NULL: they are not wanted */
	int64_t room;

	GPU_FN bool code(const AggColumn &column, const GpudsEntry &e, uint64_t *code) const
	{
		const int nw = in.nwords == 1 ? 1 : 2;

		*code = agg_column_code(&column, agg_column_bits(&e, nw, column.place, column.bits));
		return !agg_column_is_null(&column, &e, nw);
	}

	GPU_FN void add(const GpudsEntry &e) const
	{
		uint64_t source;
		uint64_t target;
		uint32_t at;

		if (!code(vertex[0], e, &source) || !code(vertex[1], e, &target))
			return;
		at = gpu_atomic_next(&in.uncounted->edges);
		if (at >= room)
			return;
		pairs[(int64_t) at * 2] = source;
		pairs[(int64_t) at * 2 + 1] = target;
	}

	GPU_FN void operator()(int64_t i) const
	{
		in.of_thread(i,
					 [&](const GpudsEntry &e, int64_t, int64_t)
					 {
						 if (in.is_seen(e) && pairs != NULL)
							 add(e);
						 return true;
					 });
	}
};

/* Does what a request says of its edges lie in the staging memory, and is there room for what comes back? */
static inline bool
gpu_edges_fit(const GpuScanStream *stream, size_t staging_bytes, const GpuRequest *r)
{
	return gpu_staging_has(staging_bytes, r->edges, sizeof(GpuEdges)) &&
		   r->cap <= (int64_t) (stream->piece_bytes / sizeof(GpudsEntry));
}

/*
 * Adds the edges of n intervals to stream->edges, and writes the others to staging memory if there is room
 * for them.  Returns how many others there are, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_edges(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, GpuRequest *r, int64_t n)
{
	GpuStream *s = &stream->stream;
	GpuEdgeList *list = stream->edges;
	const GpuEdges *edges = (const GpuEdges *) (staging + r->edges);
	const GpuVisible visible = gpu_visible_copy_in(stream, staging, r);
	GpuUncounted uncounted = {};
	int64_t total;

	gpu_fill(s, stream->uncounted, 0, sizeof(GpuUncounted));
	total = n > 0 && view->height > 0 ? gpu_scan_locate<Probe>(stream, view, staging, r, n) : 0;
	if (total == GPU_SCAN_UNKNOWN)
		return total;
	if (total > 0)
	{
		GpuScanEntries<Probe> in(stream, view, r, n, total, visible);
		GpuScanEdgesAdd<Probe> add = { in,
									   { edges->vertex[0], edges->vertex[1] },
									   list->pairs ? list->pairs + list->n * 2 : NULL,
									   list->room - list->n };

		gpu_launch(s, in.threads(), add);
		uncounted = gpu_scan_uncounted(stream);
	}
	r->counted = total - uncounted.others - uncounted.unseen;
	r->filtered = uncounted.unseen;
	if (uncounted.others <= r->cap)
	{
		list->full |= uncounted.edges > list->room - list->n;
		list->n += list->full ? 0 : uncounted.edges;
		gpu_copy_bus(s, staging + r->output, stream->output, (size_t) uncounted.others * sizeof(GpudsEntry));
	}
	return uncounted.others;
}

#endif /* GPU_SCAN_EDGES_H */
