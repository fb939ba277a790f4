/*-------------------------------------------------------------------------
 *
 * scan_edges.h
 *	  Scans whose entries are edges of a graph, which stays in device memory; part of scan.h.
 *
 * An entry whose row is known to be seen, and of whose vertices neither is NULL, adds an edge: two codes, in
 * no order.  The others are handed back as by any scan that adds up.  Where there are more of them than the
 * request has room for, nothing has been added.
 *
 * An edge that a known graph has is marked there, and not added.  Edges mostly come in the order of the
 * graph's rows, so each is looked for behind the one before.
 *
 * Entries that add no edge because their rows are not known to be seen, or the scan does not go through them,
 * are noted (GpuHidden).  If the known graph was made by a scan of the same structure, it may be known which
 * edges can differ, and only these are looked for (scan_edge_changes.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_EDGES_H
#define GPU_SCAN_EDGES_H

/* The first place in ascending words whose word is not less; n: there is none. */
GPU_FN int64_t
gpu_graph_find(const uint64_t *words, int64_t n, uint64_t word)
{
	int64_t lo = 0;
	int64_t hi = n;

	while (lo < hi)
	{
		int64_t middle = lo + (hi - lo) / 2;

		if (words[middle] < word)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* The row of a known graph that edges are looked for in, which ends before it begins if there is none yet. */
struct GpuKnownRow
{
	uint64_t source = 0;
	uint64_t begin = 1;
	uint64_t end = 0;
	uint64_t next = 1; /* where the next edge is expected */
};

/* Looks for edges in a known graph; the others are put on a list. */
struct GpuEdgeAdder
{
	GpuKnownEdges known;
	uint64_t *pairs;   /* where the list's next one goes */
	uint64_t *weights; /* likewise; NULL: edges have none, and any weight is passed for theirs */
	int64_t room;
	uint32_t *count; /* of those that were put on the list, or for which there was no room */

	GpuEdgeAdder(const GpuScanStream *stream, const GpuEdgeList *list)
		: known(list->known), pairs(list->pairs + list->n * 2),
		  weights(list->weights == NULL ? NULL : list->weights + list->n), room(list->room - list->n),
		  count(&stream->uncounted->edges)
	{
	}

	GPU_FN void open(uint64_t source, GpuKnownRow *row) const
	{
		const int64_t v = gpu_graph_find(known.codes, known.n, source);
		const bool is = v < known.n && known.codes[v] == source;

		row->source = source;
		row->begin = row->next = is ? known.offsets[v] : 0;
		row->end = is ? known.offsets[v + 1] : 0;
	}

	/* Are the edges at two places of a row equal? */
	GPU_FN bool are_equal(uint64_t a, uint64_t b) const
	{
		return known.members[a] == known.members[b] &&
			   (known.weights == NULL || known.weights[a] == known.weights[b]);
	}

	/* Is an edge at a place of a row, and none that is equal before it? */
	GPU_FN bool is_at(const GpuKnownRow &row, uint64_t place, uint64_t target, uint64_t weight) const
	{
		return place < row.end && known.codes[known.members[place]] == target &&
			   (known.weights == NULL || known.weights[place] == weight) &&
			   (place == row.begin || !are_equal(place - 1, place));
	}

	/* Is the edge at a place of a row less than another one of the row? */
	GPU_FN bool is_less(uint64_t place, uint64_t target, uint64_t weight) const
	{
		const uint64_t its = known.codes[known.members[place]];

		return its < target || (its == target && known.weights != NULL && known.weights[place] < weight);
	}

	/* The first place of a row whose edge is not less. */
	GPU_FN uint64_t bisect(const GpuKnownRow &row, uint64_t target, uint64_t weight) const
	{
		uint64_t lo = row.begin;
		uint64_t hi = row.end;

		while (lo < hi)
		{
			const uint64_t middle = lo + (hi - lo) / 2;

			if (is_less(middle, target, weight))
				lo = middle + 1;
			else
				hi = middle;
		}
		return lo;
	}

	/*
	 * Finds an edge: row->next is the place of the first of equal ones then.  row: that of the edge before.
	 * False: the graph does not have it.
	 */
	GPU_FN bool find(uint64_t source, uint64_t target, uint64_t weight, GpuKnownRow *row) const
	{
		if (row->end < row->begin || row->source != source)
			open(source, row);
		if (!is_at(*row, row->next, target, weight))
			row->next = bisect(*row, target, weight);
		return is_at(*row, row->next, target, weight);
	}

	/* Marks an edge, the first of equal ones; false: the graph does not have it. */
	GPU_FN bool mark(uint64_t source, uint64_t target, uint64_t weight, GpuKnownRow *row) const
	{
		if (!find(source, target, weight, row))
			return false;
		gpu_atomic_exchange(&known.marks[row->next++], 1);
		return true;
	}

	/* Puts an edge on the list. */
	GPU_FN void put(uint64_t source, uint64_t target, uint64_t weight) const
	{
		const uint32_t at = gpu_atomic_next(count);

		if (at >= room)
			return;
		pairs[(int64_t) at * 2] = source;
		pairs[(int64_t) at * 2 + 1] = target;
		if (weights != NULL)
			weights[at] = weight;
	}

	/* Marks an edge, or adds it; row: that of the edge before. */
	GPU_FN void add(uint64_t source, uint64_t target, uint64_t weight, GpuKnownRow *row) const
	{
		GpuKnownRow back;

		if (known.marks == NULL || !mark(source, target, weight, row))
			put(source, target, weight);
		else if (known.both)
			(void) mark(target, source, weight, &back);
	}
};

/* Adds edges that the host has. */
struct GpuEdgesAdd
{
	GpuEdgeAdder to;
	const uint64_t *from;

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t *edge = from + (to.weights != NULL ? 3 : 2) * i;
		GpuKnownRow row;

		to.add(edge[0], edge[1], to.weights != NULL ? edge[2] : 0, &row);
	}
};

/* Entries that are no edges: those of a scan are handed back, or counted, and all are noted. */
template <class Probe> struct GpuScanHidden
{
	GpuScanEntries<Probe> in;
	GpudsEntry *entries;
	int64_t room;

	GpuScanHidden(const GpuScanEntries<Probe> &of, const GpuHidden &hidden)
		: in(of), entries(hidden.entries), room(hidden.room)
	{
	}

	GPU_FN void note(const GpudsEntry &e) const
	{
		const uint32_t at = gpu_atomic_next(&in.uncounted->taken);

		if (at < room)
			entries[at] = e;
	}

	GPU_FN bool is_seen(const GpudsEntry &e) const
	{
		if (in.is_seen(e))
			return true;
		note(e);
		return false;
	}
};

/* What vertex an entry has in a column; false: NULL. */
GPU_FN bool
gpu_edge_code(const AggColumn &column, const GpudsEntry &e, const int nw, uint64_t *code)
{
	*code = agg_column_code(&column, agg_column_bits(&e, nw, column.place, column.bits));
	return !agg_column_is_null(&column, &e, nw);
}

/* The weight that an entry has, as a number from 0 on, or GPU_NO_WEIGHT; 0 if edges have none. */
GPU_FN uint64_t
gpu_edge_weight(const GpuEdges &edges, const GpudsEntry &e, const int nw)
{
	uint64_t code;

	if (!edges.weighted)
		return 0;
	if (!gpu_edge_code(edges.weight, e, nw, &code) || code < edges.zero || code == UINT64_MAX)
		return GPU_NO_WEIGHT;
	return code - edges.zero;
}

/* Adds the edges of a thread's entries. */
template <class Probe> struct GpuScanEdgesAdd
{
	GpuScanHidden<Probe> look;
	GpuEdges edges;
	GpuEdgeAdder to;

	GPU_FN void operator()(int64_t i) const
	{
		const int nw = look.in.nwords == 1 ? 1 : 2;
		GpuKnownRow row;

		look.in.of_thread(i,
						  [&](const GpudsEntry &e, int64_t, int64_t)
						  {
							  uint64_t source;
							  uint64_t target;

							  if (look.is_seen(e) && gpu_edge_code(edges.vertex[0], e, nw, &source) &&
								  gpu_edge_code(edges.vertex[1], e, nw, &target))
								  to.add(source, target, gpu_edge_weight(edges, e, nw), &row);
							  return true;
						  });
	}
};

/* Notes what the structure has between a scan's intervals: before interval i, or behind the last one. */
template <class Probe> struct GpuScanGaps
{
	GpuScanHidden<Probe> look;
	const GpudsInterval *intervals; /* in order */
	int64_t n;

	/* What is between intervals i - 1 and i; false: nothing can be. */
	GPU_FN bool gap(int64_t i, GpudsInterval *gap) const
	{
		gap->lo = { 0, 0, 0 };
		gap->hi = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
		if (i > 0)
			gap->lo = entry_after(&intervals[i - 1].hi);
		if (i < n && entry_equal(&intervals[i].lo, &gap->lo))
			return false;
		if (i < n)
			gap->hi = entry_before(intervals[i].lo);
		return !entry_less(&gap->hi, &gap->lo);
	}

	GPU_FN void operator()(int64_t i) const
	{
		GpudsInterval between;
		GpuStart start;
		uint64_t found = gap(i, &between) ? Probe::locate(look.in.view, &between, true, &start) : 0;
		typename Probe::Position p;

		if (found > (uint64_t) look.room)
			gpu_atomic_add(&look.in.uncounted->taken, (uint32_t) look.room + 1);
		else if (found > 0)
		{
			Probe::position(look.in.view, start, 0, true, &p);
			look.note(Probe::entry(look.in.view, p));
			for (; --found > 0; look.note(Probe::entry(look.in.view, p)))
				Probe::step(look.in.view, &p, true);
		}
	}
};

/* Does what a request says of its edges lie in the staging memory, and is there room for what comes back? */
static inline bool
gpu_edges_fit(const GpuScanStream *stream, size_t staging_bytes, const GpuRequest *r)
{
	return gpu_staging_has(staging_bytes, r->edges, sizeof(GpuEdges)) &&
		   r->cap <= (int64_t) (stream->piece_bytes / sizeof(GpudsEntry));
}

/* So many edges have been put on a list, or were too many for it. */
static inline void
gpu_edges_added(GpuEdgeList *list, uint32_t n)
{
	list->full |= n > list->room - list->n;
	list->n += list->full ? 0 : n;
}

/* Adds n edges in device memory to a list, or marks them; waits. */
static inline void
gpu_edges_add(GpuScanStream *stream, GpuEdgeList *list, const uint64_t *pairs, int64_t n)
{
	gpu_fill(&stream->stream, stream->uncounted, 0, sizeof(GpuUncounted));
	gpu_launch(&stream->stream, n, GpuEdgesAdd{ GpuEdgeAdder(stream, list), pairs });
	gpu_edges_added(list, gpu_scan_uncounted(stream).edges);
}

/* Does a request go through intervals from the first one on, none of which is a point? */
static inline bool
gpu_edges_of_intervals(const GpuRequest *r)
{
	return r->forward && !r->points && r->next == 0 && !r->inside;
}

/*
 * Notes what a scan of n intervals does not go through.  That is known only of all intervals of a request.
 */
template <class Probe>
static inline void
gpu_scan_note_gaps(GpuScanStream *stream, const GpudsView *view, const GpuScanEntries<Probe> &in,
				   const GpuRequest *r, int64_t n)
{
	if ((uint64_t) in.total == view->entries || !gpu_edges_of_intervals(r))
		return;
	gpu_launch(&stream->stream, n + 1,
			   GpuScanGaps<Probe>{ GpuScanHidden<Probe>(in, stream->edges->hidden),
								   (const GpudsInterval *) stream->input, n });
}

/* Are all entries that were no edges noted?  Then those that are not of the scan, are so many. */
static inline void
gpu_hidden_found(GpuHidden *hidden, const GpudsView *view, int64_t total, const GpuUncounted &uncounted)
{
	const int64_t noted = uncounted.taken;
	const int64_t gaps = noted - uncounted.others - uncounted.unseen;

	hidden->n = noted <= hidden->room && total + gaps == (int64_t) view->entries ? noted : -1;
}

/* Adds the edges of all entries, and finds those that are hidden. */
template <class Probe>
static inline GpuUncounted
gpu_scan_add_edges(GpuScanStream *stream, const GpudsView *view, const GpuScanEntries<Probe> &in,
				   const GpuRequest *r, int64_t n, const GpuEdges *edges)
{
	GpuEdgeList *list = stream->edges;
	GpuUncounted uncounted;

	gpu_fill(&stream->stream, stream->uncounted, 0, sizeof(GpuUncounted));
	gpu_launch(&stream->stream, in.threads(),
			   GpuScanEdgesAdd<Probe>{ GpuScanHidden<Probe>(in, list->hidden), *edges,
									   GpuEdgeAdder(stream, list) });
	gpu_scan_note_gaps<Probe>(stream, view, in, r, n);
	uncounted = gpu_scan_uncounted(stream);
	gpu_hidden_found(&list->hidden, view, in.total, uncounted);
	return uncounted;
}

template <class Probe>
static inline GpuUncounted gpu_scan_find_changes(GpuScanStream *stream, const GpudsView *view,
												 const GpuScanEntries<Probe> &in, const GpuRequest *r,
												 int64_t n, const GpuEdges *edges);

/*
 * Adds the edges of n intervals to stream->edges, and writes the others to staging memory if there is room
 * for them.  If only what may differ from known edges is wanted, that is done, or nothing.  Returns how many
 * others there are, or GPU_SCAN_UNKNOWN.
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
	list->changes.done = false;
	list->hidden.n = view->entries == 0 ? 0 : -1;
	if (total > 0)
	{
		const GpuScanEntries<Probe> in(stream, view, r, n, total, visible);

		uncounted = list->changes.wanted ? gpu_scan_find_changes<Probe>(stream, view, in, r, n, edges)
										 : gpu_scan_add_edges<Probe>(stream, view, in, r, n, edges);
	}
	if (list->changes.wanted && !list->changes.done)
		return 0;
	r->counted = total - uncounted.others - uncounted.unseen;
	r->filtered = uncounted.unseen;
	if (uncounted.others <= r->cap)
	{
		gpu_edges_added(list, uncounted.edges);
		gpu_copy_bus(s, staging + r->output, stream->output, (size_t) uncounted.others * sizeof(GpudsEntry));
	}
	return uncounted.others;
}

#endif /* GPU_SCAN_EDGES_H */
