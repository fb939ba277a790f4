/*-------------------------------------------------------------------------
 *
 * scan_edge_changes.h
 *	  What the edges of a scan and those of a known graph may differ in; part of scan.h.
 *
 * The known edges are those of another scan of the structure.  If an edge is in one of the two sets and not
 * in the other, an entry of that edge has come or gone since, or is hidden from one of the scans.  The sender
 * has the entries that have come or gone, and those that were hidden from the other scan (GpuEdgeChanges).
 * Here those are added that are hidden from this one.  Of each of these entries it is asked anew whether the
 * scan has an edge like it, by all entries that the structure has of that edge, and whether the known graph
 * has it.
 *
 * So an entry that is asked about in vain does no harm, nor does one that is no entry any more.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_EDGE_CHANGES_H
#define GPU_SCAN_EDGE_CHANGES_H

/* Entries of one edge that a thread looks at, in search of one that is seen. */
#define GPU_EDGE_COPIES 1024

/* Ones in a key from a place on, and in a word that is always 0. */
static inline GpudsEntry
gpu_edge_ones(int place, const int nw)
{
	const int last = place - ENTRY_SPILL_BITS;
	const int first = last - 64;
	GpudsEntry ones = { UINT64_MAX, UINT64_MAX, 0 };
	uint64_t *word = nw == 2 ? &ones.w1 : &ones.w0;

	if (last < 0)
		ones.t = UINT64_MAX << (ENTRY_SPILL_SHIFT + place);
	*word = last <= 0 ? UINT64_MAX : last < 64 ? UINT64_MAX << last : 0;
	if (nw == 2)
		ones.w0 = first <= 0 ? UINT64_MAX : UINT64_MAX << first;
	return ones;
}

/* Finds stretches of entries that have some whose rows are not known to be seen. */
template <class Probe> struct GpuScanStretches
{
	GpuScanEntries<Probe> in;
	uint32_t *stretches;
	uint32_t room;

	GPU_FN bool has_hidden(const uint64_t *tids) const
	{
		unsigned bits = in.visible.unmapped_of(tids);
		bool hidden = false;

		for (int k = 0; k < GPU_TIDS && bits != 0; k++)
			hidden |= (bits >> k & 1) != 0 && in.visible.row(tids[k]) != PAGE_ROW_SEEN;
		return hidden;
	}

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t end = (i + 1) * in.stretch < in.total ? (i + 1) * in.stretch : in.total;
		bool hidden = false;

		for (int64_t o = i * in.stretch; o < end;)
		{
			const int64_t at = gpu_scan_find(in.offsets, in.n, (uint64_t) o);
			const int64_t stop = (int64_t) in.offsets[at + 1] < end ? (int64_t) in.offsets[at + 1] : end;
			typename Probe::Position p;

			Probe::position(in.view, in.starts[at], (uint64_t) o - in.offsets[at], true, &p);
			while (o < stop)
			{
				uint64_t tids[GPU_TIDS];

				o += Probe::tids(in.view, &p, stop - o, tids);
				hidden |= has_hidden(tids);
			}
		}
		if (hidden)
		{
			const uint32_t at = gpu_atomic_next(&in.uncounted->filtered);

			if (at < room)
				stretches[at] = (uint32_t) i;
		}
	}
};

/* Notes the entries of such stretches that are hidden. */
template <class Probe> struct GpuScanHiddenOf
{
	GpuScanHidden<Probe> look;
	const uint32_t *stretches;

	GPU_FN void operator()(int64_t i) const
	{
		look.in.of_thread(stretches[i],
						  [&](const GpudsEntry &e, int64_t, int64_t)
						  {
							  (void) look.is_seen(e);
							  return true;
						  });
	}
};

/* Looks whether a scan finds edges. */
template <class Probe> struct GpuScanFindEdges
{
	typename Probe::View view;
	int nwords;
	GpuVisible visible;
	GpudsScan scan; /* its intervals, in device memory */
	GpuEdges edges;
	GpudsEntry ones; /* of the columns of the vertices */

	/* Is an entry of the structure one of the scan? */
	GPU_FN bool has(const GpudsEntry &e) const
	{
		const int64_t at = entry_scan_find(&scan, &e);

		return at < scan.n && !entry_less(&e, &scan.intervals[at].lo);
	}

	/* What all entries of an edge begin with, in the columns of the vertices. */
	GPU_FN GpudsEntry beginning(uint64_t source, uint64_t target) const
	{
		const int nw = nwords == 1 ? 1 : 2;
		GpudsEntry e = { 0, 0, 0 };

		for (int k = 0; k < 2; k++)
		{
			const AggColumn &column = edges.vertex[k];

			entry_put_bits(&e, nw, column.place, (k == 0 ? source : target) ^ column.flip);
			entry_put_bits(&e, nw, column.null_place, column.null_bit == 0);
		}
		return e;
	}

	/* Has the scan such an entry of a weight, whose row is seen?  *many: there are too many to say. */
	GPU_FN bool finds(const GpudsEntry &beginning, uint64_t weight, bool *many) const
	{
		const int nw = nwords == 1 ? 1 : 2;
		const GpudsInterval interval = { beginning, entry_last_alike(&beginning, &ones) };
		typename Probe::Position p;
		GpuStart start;
		const uint64_t n = Probe::locate(view, &interval, true, &start);

		if (n >= GPU_TOO_FAR)
			*many = true;
		if (n == 0 || n >= GPU_TOO_FAR)
			return false;
		Probe::position(view, start, 0, true, &p);
		for (uint64_t k = 0; k < GPU_EDGE_COPIES; k++)
		{
			const GpudsEntry e = Probe::entry(view, p);

			if (gpu_edge_weight(edges, e, nw) == weight &&
				visible.row(e.t & ENTRY_TID_MASK) == PAGE_ROW_SEEN && has(e))
				return true;
			if (k + 1 == n)
				return false;
			Probe::step(view, &p, true);
		}
		*many = true;
		return false;
	}
};

/* Compares a scan with a known graph in the edges of some entries. */
template <class Probe> struct GpuScanCompare
{
	GpuScanFindEdges<Probe> scan;
	GpuEdgeAdder to;
	GpuUncounted *uncounted;
	const GpudsEntry *entries;
	uint32_t *gone;
	uint32_t *places;

	/* Notes that an edge is gone, which the known graph has, maybe more than once. */
	GPU_FN void remove(uint64_t source, uint64_t target, uint64_t weight) const
	{
		GpuKnownRow row;
		uint64_t at;

		if (!to.find(source, target, weight, &row))
			return;
		at = row.next;
		if (gpu_atomic_or(&gone[at / 32], UINT32_C(1) << at % 32) >> at % 32 & 1)
			return;
		places[gpu_atomic_next(&uncounted->gone)] = (uint32_t) at;
		for (uint64_t next = at + 1; next < row.end && to.are_equal(at, next); next++)
			(void) gpu_atomic_or(&gone[next / 32], UINT32_C(1) << next % 32);
	}

	GPU_FN void compare(uint64_t source, uint64_t target, uint64_t weight, bool finds) const
	{
		GpuKnownRow row;

		if (to.find(source, target, weight, &row) == finds)
			return;
		if (finds)
			to.put(source, target, weight);
		else
		{
			remove(source, target, weight);
			if (to.known.both)
				remove(target, source, weight);
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		const int nw = scan.nwords == 1 ? 1 : 2;
		const GpudsEntry e = entries[i];
		uint64_t source;
		uint64_t target;
		bool many = false;
		bool finds;

		if (!gpu_edge_code(scan.edges.vertex[0], e, nw, &source) ||
			!gpu_edge_code(scan.edges.vertex[1], e, nw, &target))
			return;
		const uint64_t weight = gpu_edge_weight(scan.edges, e, nw);
		const GpudsEntry beginning = scan.beginning(source, target);
		const GpudsEntry is = entry_first_alike(&e, &scan.ones);

		finds = scan.finds(beginning, weight, &many);
		if (!finds && to.known.both && source != target)
			finds = scan.finds(scan.beginning(target, source), weight, &many);
		if (!entry_equal(&beginning, &is) || (many && !finds))
			gpu_atomic_count(&uncounted->crowded);
		else
			compare(source, target, weight, finds);
	}
};

/* Finds all entries that are hidden from a scan; full: of those that it goes through, none is. */
template <class Probe>
static inline GpuUncounted
gpu_scan_find_hidden(GpuScanStream *stream, const GpudsView *view, GpuScanEntries<Probe> in,
					 const GpuRequest *r, int64_t n, bool full)
{
	GpuStream *s = &stream->stream;
	GpuHidden *hidden = &stream->edges->hidden;
	uint32_t *stretches = (uint32_t *) stream->other;
	const int64_t room = (int64_t) (stream->piece_bytes / sizeof(uint32_t));
	GpuUncounted uncounted = {};

	in.stretch = GPU_COUNT_STRETCH;
	if (!full)
	{
		gpu_launch(s, in.threads(), GpuScanStretches<Probe>{ in, stretches, (uint32_t) room });
		uncounted = gpu_scan_uncounted(stream);
	}
	if (uncounted.filtered > room)
		return uncounted;
	gpu_launch(s, uncounted.filtered, GpuScanHiddenOf<Probe>{ GpuScanHidden<Probe>(in, *hidden), stretches });
	gpu_scan_note_gaps<Probe>(stream, view, in, r, n);
	if (uncounted.filtered > 0 || (uint64_t) in.total != view->entries)
		uncounted = gpu_scan_uncounted(stream);
	gpu_hidden_found(hidden, view, in.total, uncounted);
	return uncounted;
}

/*
 * Says how the edges of all entries of a scan differ from the known ones, by those that may.  What is not
 * known to be seen of these entries is to be handed back.  Unless changes.done is set then, nothing is said.
 */
template <class Probe>
static inline GpuUncounted
gpu_scan_find_changes(GpuScanStream *stream, const GpudsView *view, const GpuScanEntries<Probe> &in,
					  const GpuRequest *r, int64_t n, const GpuEdges *edges)
{
	GpuEdgeList *list = stream->edges;
	GpuEdgeChanges *changes = &list->changes;
	GpuUncounted uncounted = gpu_scan_find_hidden<Probe>(stream, view, in, r, n, edges->full);
	const AggColumn *vertex = edges->vertex;
	const int place = vertex[1].place < vertex[1].null_place ? vertex[1].place : vertex[1].null_place;
	const GpudsScan scan = { (const GpudsInterval *) stream->input, n, 0, false, { 0, 0, 0 }, NULL };

	if (list->hidden.n < 0)
		return uncounted;
	if (changes->n + list->hidden.n > 0)
	{
		gpu_launch(&stream->stream, changes->n + list->hidden.n,
				   GpuScanCompare<Probe>{
					   { in.view, in.nwords, in.visible, scan, *edges, gpu_edge_ones(place, in.nwords) },
					   GpuEdgeAdder(stream, list),
					   stream->uncounted,
					   changes->entries,
					   changes->gone,
					   changes->places });
		uncounted = gpu_scan_uncounted(stream);
	}
	changes->ngone = uncounted.gone;
	changes->done = gpu_ok(&stream->stream) && uncounted.crowded == 0 &&
					(int64_t) uncounted.edges <= list->room - list->n;
	return uncounted;
}

#endif /* GPU_SCAN_EDGE_CHANGES_H */
