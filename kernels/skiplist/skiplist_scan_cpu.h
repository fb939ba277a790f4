/*-------------------------------------------------------------------------
 *
 * skiplist_scan_cpu.h
 *	  Scans and counts of a skip list on a CPU, many intervals at a time.
 *
 * A walk goes through an interval, chunk by chunk in the direction of the scan.  Its place is a bound:
 * everything before it is done.  So it does not matter that a chunk that it comes to was split or
 * joined meanwhile: of each it takes what is behind its bound.  What a chunk has is what it had at
 * one moment (skiplist_chunk.h) after the walk began.
 *
 * A scan is resumed by value: its GpudsScan may be used with a newer version of the list.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_SCAN_CPU_H
#define SKIPLIST_SCAN_CPU_H

#include "kernels/skiplist/skiplist_list_cpu.h"

/* Entries of one chunk: those from place from to place to - 1 of its order word. */
typedef struct SkiplistPiece
{
	const uint64_t *chunk;
	uint64_t order;
	int from;
	int to;
} SkiplistPiece;

typedef struct SkiplistWalk
{
	GpudsInterval interval; /* forward, its low end is the bound */
	GpudsEntry bound;       /* backward: the high bound of what is left ... */
	ArenaRef ref;           /* the next chunk, 0: there is none */
	bool bounded;           /* ... if it has one */
	bool moved;             /* the bound is the low bound that the chunk at ref has, or had */
	bool empty;
} SkiplistWalk;

/* The interval that a scan is at, i intervals further on. */
HOST_INLINE void
skiplist_walk_init(SkiplistWalk *w, const GpudsScan *scan, int64_t i, const bool forward)
{
	w->empty = !entry_scan_rest(scan, forward ? scan->next + i : scan->next - 1 - i, forward, &w->interval);
	w->moved = w->bounded = false;
}

/* The next entries of a walk forward; false: there are no more. */
HOST_INLINE bool
skiplist_walk_forward(SkiplistWalk *w, const void *base, SkiplistPiece *p, const int nw)
{
	uint64_t link;
	uint64_t *chunk;
	bool last;

	if (w->ref == 0)
		return false;
	chunk = skiplist_at(base, w->ref);
	link = skiplist_load(chunk + SKIPLIST_LINK);
	/* the next chunk has the bound that the walk is at, unless another has taken its place */
	if (!w->moved || skiplist_is_replaced(link))
	{
		chunk = skiplist_seek(base, &w->ref, &w->interval.lo, &link, false, nw);
		w->moved = false;
	}
	w->ref = skiplist_next(link);
	last = w->ref == 0 || !skiplist_is_behind(chunk, &w->interval.hi, false, nw);
	if (!last)
		skiplist_prefetch(base, w->ref, false, nw);
	p->chunk = chunk;
	p->order = skiplist_load(chunk + SKIPLIST_ORDER);
	if (last && w->interval.lo.w0 == w->interval.hi.w0)
		skiplist_ranks(chunk, p->order, &w->interval, &p->from, &p->to, nw);
	else
	{
		p->from = w->moved ? 0 : skiplist_rank(chunk, p->order, &w->interval.lo, false, false, nw);
		p->to = last ? skiplist_rank(chunk, p->order, &w->interval.hi, true, false, nw)
					 : skiplist_n(p->order);
	}
	if (last)
		w->ref = 0;
	else
	{
		w->interval.lo = skiplist_high(chunk, false, nw);
		w->moved = true;
	}
	return true;
}

/* From *ref to the last chunk that has numbers below a bound; *link: its link word. */
HOST_INLINE uint64_t *
skiplist_seek_below(const void *base, ArenaRef *ref, const GpudsEntry *bound, uint64_t *link, const int nw)
{
	for (;;)
	{
		uint64_t *chunk = skiplist_at(base, *ref);

		*link = skiplist_load(chunk + SKIPLIST_LINK);
		if (!skiplist_is_replaced(*link))
		{
			GpudsEntry high;

			if (skiplist_next(*link) == 0)
				return chunk;
			high = skiplist_high(chunk, false, nw);
			if (!entry_less(&high, bound))
				return chunk;
		}
		*ref = skiplist_next(*link);
	}
}

/* The next entries of a walk backward, which are to be taken from the last one on; false: no more. */
HOST_INLINE bool
skiplist_walk_backward(SkiplistWalk *w, const void *base, SkiplistPiece *p, const int nw)
{
	uint64_t link;
	const uint64_t *chunk;

	if (w->ref == 0)
		return false;
	if (w->bounded)
		chunk = skiplist_seek_below(base, &w->ref, &w->bound, &link, nw);
	else
		chunk = skiplist_seek(base, &w->ref, &w->interval.hi, &link, false, nw);
	w->ref = skiplist_before(link);
	p->chunk = chunk;
	p->order = skiplist_load(chunk + SKIPLIST_ORDER);
	p->to = w->bounded ? skiplist_rank(chunk, p->order, &w->bound, false, false, nw)
					   : skiplist_rank(chunk, p->order, &w->interval.hi, true, false, nw);
	p->from = 0;
	if (w->ref != 0)
	{
		skiplist_prefetch(base, w->ref, false, nw);
		/* the chunk before has this one's low bound, whether it was replaced or not */
		w->bound = skiplist_high(skiplist_at(base, w->ref), false, nw);
		w->bounded = true;
	}
	if (w->ref == 0 || !entry_less(&w->interval.lo, &w->bound))
	{
		p->from = skiplist_rank(chunk, p->order, &w->interval.lo, false, false, nw);
		w->ref = 0;
	}
	return true;
}

HOST_INLINE bool
skiplist_walk_on(SkiplistWalk *w, const void *base, SkiplistPiece *p, const bool forward, const int nw)
{
	return forward ? skiplist_walk_forward(w, base, p, nw) : skiplist_walk_backward(w, base, p, nw);
}

/* How many of a scan's next intervals are walked through together; left: those that it has. */
HOST_INLINE int
skiplist_together(int64_t left)
{
	return left < SKIPLIST_INTERLEAVED ? (int) left : SKIPLIST_INTERLEAVED;
}

/* Takes the walks through a scan's next intervals to where they begin. */
HOST_INLINE void
skiplist_walks_down(const GpudsView *view, SkiplistWalk *walks, int together, const GpudsScan *scan,
					const bool forward, const int nw)
{
	const GpudsEntry *x[SKIPLIST_INTERLEAVED];
	SkiplistWay ways[SKIPLIST_INTERLEAVED];

	for (int i = 0; i < together; i++)
	{
		skiplist_walk_init(&walks[i], scan, i, forward);
		x[i] = forward ? &walks[i].interval.lo : &walks[i].interval.hi;
	}
	skiplist_descend(view, x, ways, together, nw);
	for (int i = 0; i < together; i++)
		walks[i].ref = walks[i].empty ? 0 : ways[i].at[0];
}

HOST_INLINE int64_t
skiplist_scan_any(const GpudsView *view, GpudsScan *scan, GpudsEntry *out, int64_t cap, const bool forward,
				  const int nw)
{
	SkiplistWalk walks[SKIPLIST_INTERLEAVED];
	int64_t done = 0;

	while (done < cap)
	{
		int64_t left = forward ? scan->n - scan->next : scan->next;
		int together = skiplist_together(left < cap - done ? left : cap - done);

		if (together == 0)
			break;
		skiplist_walks_down(view, walks, together, scan, forward, nw);
		for (int i = 0; i < together; i++)
		{
			SkiplistPiece p;

			while (done < cap && skiplist_walk_on(&walks[i], view->base, &p, forward, nw))
			{
				int64_t n = p.to - p.from < cap - done ? p.to - p.from : cap - done;

				for (int64_t k = 0; k < n; k++)
					out[done++] = skiplist_entry(p.chunk,
												 skiplist_slot(p.order,
															   (int) (forward ? p.from + k : p.to - 1 - k)),
												 false, nw);
			}
			if (cpu_scan_is_full(scan, out, done, cap, forward))
				break;
		}
	}
	return done;
}

HOST_FN int64_t
skiplist_cpu_scan(const Arena *arena, const CpuTree *tree, GpudsScan *scan, bool forward, GpudsEntry *out,
				  int64_t cap)
{
	GpudsView view;

	if (!cpu_tree_view(arena, tree, &view))
		return -1;
	return CPU_SCAN_EACH(skiplist_scan_any, &view, scan, out, cap, forward);
}

/* Counts a piece, as far as there is room for its others.  Returns how many entries were looked at. */
HOST_INLINE int
skiplist_count_piece(const SkiplistPiece *p, CpuCount *count, const int nw)
{
	int at = p->from;

	if (count->full)
	{
		count->counted += p->to - p->from;
		return p->to - p->from;
	}
	for (; at < p->to; at++)
	{
		int slot = skiplist_slot(p->order, at);
		PageRow row = cpu_count_row(count, p->chunk[skiplist_t(false, nw) + slot]);

		if (page_row_goes_back(row) && count->nothers == count->others_size)
			break;
		count->counted += row == PAGE_ROW_SEEN;
		if (page_row_goes_back(row))
			count->others[count->nothers++] = skiplist_entry(p->chunk, slot, false, nw);
	}
	return at - p->from;
}

HOST_INLINE void
skiplist_count_any(const GpudsView *view, GpudsScan *scan, int64_t most, CpuCount *count, const int nw)
{
	SkiplistWalk walks[SKIPLIST_INTERLEAVED];
	int64_t left = most;

	while (scan->next < scan->n && left > 0)
	{
		int together = skiplist_together(scan->n - scan->next);

		skiplist_walks_down(view, walks, together, scan, true, nw);
		for (int i = 0; i < together && left > 0; i++)
		{
			SkiplistPiece p;

			while (skiplist_walk_forward(&walks[i], view->base, &p, nw))
			{
				int n = skiplist_count_piece(&p, count, nw);

				left -= 1 + n;
				if (n > 0)
				{
					scan->inside = true;
					scan->at = skiplist_entry(p.chunk, skiplist_slot(p.order, p.from + n - 1), false, nw);
				}
				if (n < p.to - p.from || (left <= 0 && n > 0))
					return;
			}
			scan->inside = false;
			scan->next++;
		}
	}
}

HOST_FN bool
skiplist_cpu_count(const Arena *arena, const CpuTree *tree, GpudsScan *scan, int64_t most, CpuCount *count)
{
	GpudsView view;

	if (!cpu_tree_view(arena, tree, &view))
		return false;
	if (view.nwords == 1)
		skiplist_count_any(&view, scan, most, count, 1);
	else
		skiplist_count_any(&view, scan, most, count, 2);
	return true;
}

#endif /* SKIPLIST_SCAN_CPU_H */
