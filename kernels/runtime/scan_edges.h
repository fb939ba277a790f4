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
 * Entries that add no edge because their rows are not known to be seen are noted (GpuHidden).  If the known
 * graph was made by a scan of the same entries, and that hid the same ones, its edges are those that come,
 * and none of them is looked for.
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
	uint64_t *pairs; /* where the list's next one goes */
	int64_t room;
	uint32_t *count; /* of those that were put on the list, or for which there was no room */

	GpuEdgeAdder(const GpuScanStream *stream, const GpuEdgeList *list)
		: known(list->known), pairs(list->pairs + list->n * 2), room(list->room - list->n),
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

	/* Is an edge to a vertex at a place of a row, and none to that vertex before it? */
	GPU_FN bool is_at(const GpuKnownRow &row, uint64_t place, uint64_t target) const
	{
		return place < row.end && known.codes[known.members[place]] == target &&
			   (place == row.begin || known.members[place - 1] != known.members[place]);
	}

	/* The first place of a row whose edge does not lead to a lower vertex. */
	GPU_FN uint64_t bisect(const GpuKnownRow &row, uint64_t target) const
	{
		uint64_t lo = row.begin;
		uint64_t hi = row.end;

		while (lo < hi)
		{
			const uint64_t middle = lo + (hi - lo) / 2;

			if (known.codes[known.members[middle]] < target)
				lo = middle + 1;
			else
				hi = middle;
		}
		return lo;
	}

	/* Marks an edge, the first of equal ones; false: the graph does not have it. */
	GPU_FN bool mark(uint64_t source, uint64_t target, GpuKnownRow *row) const
	{
		if (row->end < row->begin || row->source != source)
			open(source, row);
		if (!is_at(*row, row->next, target))
			row->next = bisect(*row, target);
		if (!is_at(*row, row->next, target))
			return false;
		gpu_atomic_exchange(&known.marks[row->next++], 1);
		return true;
	}

	/* Marks an edge, or adds it; row: that of the edge before. */
	GPU_FN void add(uint64_t source, uint64_t target, GpuKnownRow *row) const
	{
		uint32_t at;

		if (known.marks != NULL && mark(source, target, row))
		{
			GpuKnownRow back;

			if (known.both)
				(void) mark(target, source, &back);
			return;
		}
		at = gpu_atomic_next(count);
		if (at >= room)
			return;
		pairs[(int64_t) at * 2] = source;
		pairs[(int64_t) at * 2 + 1] = target;
	}
};

/* Adds edges that the host has. */
struct GpuEdgesAdd
{
	GpuEdgeAdder to;
	const uint64_t *from;

	GPU_FN void operator()(int64_t i) const
	{
		GpuKnownRow row;

		to.add(from[2 * i], from[2 * i + 1], &row);
	}
};

/* Entries of a thread that only looks which are hidden. */
#define GPU_HIDDEN_STRETCH 32

/* Finds the entries whose rows are not known to be seen, and hands back or counts them as any scan does. */
template <class Probe> struct GpuScanHidden
{
	GpuScanEntries<Probe> in;
	uint64_t *tids;
	int64_t room;

	GpuScanHidden(const GpuScanEntries<Probe> &entries, const GpuHidden &hidden)
		: in(entries), tids(hidden.tids), room(hidden.room)
	{
	}

	GPU_FN bool is_seen(const GpudsEntry &e) const
	{
		uint32_t at;

		if (in.is_seen(e))
			return true;
		if (tids != NULL && (at = gpu_atomic_next(&in.uncounted->taken)) < room)
			tids[at] = e.t & ENTRY_TID_MASK;
		return false;
	}

	GPU_FN void operator()(int64_t i) const
	{
		in.of_thread(i,
					 [&](const GpudsEntry &e, int64_t, int64_t)
					 {
						 (void) is_seen(e);
						 return true;
					 });
	}
};

/* Adds the edges of a thread's entries. */
template <class Probe> struct GpuScanEdgesAdd
{
	GpuScanHidden<Probe> look;
	AggColumn vertex[2];
	GpuEdgeAdder to;

	GPU_FN bool code(const AggColumn &column, const GpudsEntry &e, uint64_t *code) const
	{
		const int nw = look.in.nwords == 1 ? 1 : 2;

		*code = agg_column_code(&column, agg_column_bits(&e, nw, column.place, column.bits));
		return !agg_column_is_null(&column, &e, nw);
	}

	GPU_FN void operator()(int64_t i) const
	{
		GpuKnownRow row;

		look.in.of_thread(i,
						  [&](const GpudsEntry &e, int64_t, int64_t)
						  {
							  uint64_t source;
							  uint64_t target;

							  if (look.is_seen(e) && code(vertex[0], e, &source) &&
								  code(vertex[1], e, &target))
								  to.add(source, target, &row);
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

/* Is each of some words as another one? */
struct GpuWordsDiffer
{
	const uint64_t *words;
	const uint64_t *others;
	uint32_t *differ; /* how many do */

	GPU_FN void operator()(int64_t i) const
	{
		if (words[i] != others[i])
			gpu_atomic_count(differ);
	}
};

/* So many entries are hidden: puts their TIDs in order, if they are there. */
static inline void
gpu_hidden_found(GpuScanStream *stream, GpuHidden *hidden, int64_t n)
{
	GpuStream *s = &stream->stream;
	uint64_t *sorted = hidden->tids;
	uint64_t *other = (uint64_t *) stream->other;

	hidden->n = hidden->tids != NULL && n <= hidden->room ? n : -1;
	if (hidden->n <= 0)
		return;
	gpu_sort_keys(s, &sorted, &other, n, 0, 48);
	if (sorted != hidden->tids)
		gpu_copy(s, hidden->tids, sorted, (size_t) n * sizeof(uint64_t));
}

/* Are they those that were hidden from the scan that the known edges are of?  Waits. */
static inline bool
gpu_hidden_same(GpuScanStream *stream, const GpuHidden *hidden)
{
	GpuStream *s = &stream->stream;
	uint32_t *differ = &stream->uncounted->taken;

	if (hidden->n != hidden->nkept)
		return false;
	if (hidden->n == 0)
		return true;
	gpu_fill(s, differ, 0, sizeof(uint32_t));
	gpu_launch(s, hidden->n, GpuWordsDiffer{ hidden->tids, hidden->kept, differ });
	return gpu_scan_uncounted(stream).taken == 0 && gpu_ok(s);
}

/*
 * Looks whether a scan of all entries hides the same ones as that of the known edges: then it finds the same
 * edges.  full: it hides none.  What is to be handed back is in stream->output in any case.
 */
template <class Probe>
static inline bool
gpu_scan_is_same(GpuScanStream *stream, GpuScanEntries<Probe> in, bool full, GpuUncounted *uncounted)
{
	GpuHidden *hidden = &stream->edges->hidden;

	if (full)
		hidden->n = 0;
	else
	{
		in.stretch = GPU_HIDDEN_STRETCH;
		gpu_launch(&stream->stream, in.threads(), GpuScanHidden<Probe>(in, *hidden));
		*uncounted = gpu_scan_uncounted(stream);
		gpu_hidden_found(stream, hidden, (int64_t) uncounted->others + uncounted->unseen);
	}
	return gpu_hidden_same(stream, hidden);
}

/* Adds the edges of so many entries, and finds those that are hidden. */
template <class Probe>
static inline GpuUncounted
gpu_scan_add_edges(GpuScanStream *stream, const GpuScanEntries<Probe> &in, const GpuEdges *edges)
{
	GpuEdgeList *list = stream->edges;
	GpuUncounted uncounted;

	gpu_fill(&stream->stream, stream->uncounted, 0, sizeof(GpuUncounted));
	gpu_launch(&stream->stream, in.threads(),
			   GpuScanEdgesAdd<Probe>{ GpuScanHidden<Probe>(in, list->hidden),
									   { edges->vertex[0], edges->vertex[1] },
									   GpuEdgeAdder(stream, list) });
	uncounted = gpu_scan_uncounted(stream);
	gpu_hidden_found(stream, &list->hidden, (int64_t) uncounted.others + uncounted.unseen);
	return uncounted;
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
	list->hidden.same = false;
	list->hidden.n = 0;
	if (total > 0)
	{
		const GpuScanEntries<Probe> in(stream, view, r, n, total, visible);

		list->hidden.same = list->hidden.nkept >= 0 && (uint64_t) total == view->entries &&
							gpu_scan_is_same(stream, in, edges->full, &uncounted);
		if (!list->hidden.same)
			uncounted = gpu_scan_add_edges(stream, in, edges);
	}
	if ((uint64_t) total != view->entries)
		list->hidden.n = -1;
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
