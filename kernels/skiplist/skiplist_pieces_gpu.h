/*-------------------------------------------------------------------------
 *
 * skiplist_pieces_gpu.h
 *	  Scans of intervals that are too far for one thread: from a list of chunks.
 *
 * All chunks of level 0 that have entries between the lowest beginning and the highest end of a scan's
 * intervals are listed, level by level from the root down: the upper levels by one block, each other one by
 * as many threads as it has chunks there.  The numbers of entries before them are summed up.  So the list
 * has ranks, and is scanned as an array is; the output is divided evenly, whatever the chunks have.  A list
 * takes 8 bytes a chunk of the pool, and 4 for each of the level above.
 *
 * A scan for entries stops at the request's capacity, so its list does, too: it has the first chunks, or
 * backward the last ones, so many that they should do.  If they do not, the scan is done again with a
 * longer list.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_PIECES_GPU_H
#define SKIPLIST_PIECES_GPU_H

#include "kernels/runtime/scratch.h"
#include "kernels/skiplist/skiplist_probe_gpu.h"

/* A list for a scan that stops has a chunk for so many entries of the request's capacity, and some more. */
#define GPU_SKIPLIST_LIST_SHARE 4
#define GPU_SKIPLIST_LIST_MORE 64

/* What the next list is longer by, if one was too short. */
#define GPU_SKIPLIST_LIST_GROWTH 8

/* Neighbouring chunks of level 0, in device memory. */
struct GpuSkiplistPieces
{
	GpuSkiplistView view;
	const GpuRef *ref;
	const uint32_t *before; /* entries before each; one more */
	int64_t n;
	int nwords;
};

/* The probe of a list; a view's root is where a GpuSkiplistPieces is, in units of the pool. */
struct GpuSkiplistPiecesProbe
{
	typedef GpuSkiplistPieces View;

	struct Position
	{
		int64_t at; /* chunk of the list */
		GpuRef ref;
		int place;
		uint64_t order;
	};

	static GPU_FN View open(const GpudsView &view)
	{
		/* by the host, from its own memory */
		return *(const GpuSkiplistPieces *) view.base;
	}

	static GPU_FN void enter(const View &view, int64_t at, Position *p)
	{
		p->at = at;
		p->ref = view.ref[at];
		p->order = gpu_skiplist_order(gpu_skiplist_chunk(view.view.base, p->ref), view.view.version);
	}

	static GPU_FN int chunk_rank(const View &view, const Position &p, const GpudsEntry &e, bool or_equal)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(view.view.base, p.ref);

		return view.nwords == 1 ? gpu_skiplist_rank(chunk, p.order, e, or_equal, false, 1)
								: gpu_skiplist_rank(chunk, p.order, e, or_equal, false, 2);
	}

	/* How many entries of the list are before e; or_equal: or equal to it. */
	static GPU_FN uint64_t rank(const View &view, const GpudsEntry &e, bool or_equal)
	{
		int64_t lo = 0;
		int64_t hi = view.n;
		Position p;

		/* the last chunk that has an entry before e */
		while (lo < hi)
		{
			int64_t middle = lo + (hi - lo) / 2;

			enter(view, middle, &p);
			if (chunk_rank(view, p, e, or_equal) > 0)
				lo = middle + 1;
			else
				hi = middle;
		}
		if (lo == 0)
			return 0;
		enter(view, lo - 1, &p);
		return view.before[lo - 1] + (uint64_t) chunk_rank(view, p, e, or_equal);
	}

	static GPU_FN uint64_t locate(const View &view, const GpudsInterval *interval, bool forward,
								  GpuStart *start)
	{
		uint64_t from = rank(view, interval->lo, false);
		uint64_t to = rank(view, interval->hi, true);

		*start = 0;
		if (from >= to)
			return 0;
		*start = forward ? from : to - 1;
		return to - from;
	}

	static GPU_FN void position(const View &view, GpuStart start, uint64_t k, bool forward, Position *p)
	{
		uint64_t rank = forward ? start + k : start - k;
		int64_t lo = 0;
		int64_t hi = view.n;

		while (hi - lo > 1)
		{
			int64_t middle = lo + (hi - lo) / 2;

			if (view.before[middle] <= rank)
				lo = middle;
			else
				hi = middle;
		}
		enter(view, lo, p);
		p->place = (int) (rank - view.before[lo]);
	}

	static GPU_FN void step(const View &view, Position *p, bool forward)
	{
		if (forward ? p->place + 1 < gpu_skiplist_n(p->order) : p->place > 0)
			p->place += forward ? 1 : -1;
		else if (forward ? p->at + 1 < view.n : p->at > 0)
		{
			enter(view, p->at + (forward ? 1 : -1), p);
			p->place = forward ? 0 : gpu_skiplist_n(p->order) - 1;
		}
	}

	/* In a chunk. */
	static GPU_FN int together(const View &, const Position &p)
	{
		return gpu_skiplist_n(p.order) - p.place;
	}

	static GPU_FN void next(Position *p)
	{
		p->place++;
	}

	static GPU_FN GpudsEntry entry(const View &view, const Position &p)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(view.view.base, p.ref);
		int slot = gpu_skiplist_slot(p.order, p.place);

		return view.nwords == 1 ? gpu_skiplist_entry(chunk, slot, false, 1)
								: gpu_skiplist_entry(chunk, slot, false, 2);
	}

	static GPU_FN uint64_t tid(const View &view, const Position &p)
	{
		const uint64_t *t = gpu_skiplist_chunk(view.view.base, p.ref) + gpu_skiplist_t(false);

		return t[gpu_skiplist_slot(p.order, p.place)] & ENTRY_TID_MASK;
	}

	/* Those in one chunk. */
	static GPU_FN int tids(const View &view, Position *p, int64_t n, uint64_t *tids)
	{
		const uint64_t *t = gpu_skiplist_chunk(view.view.base, p->ref) + gpu_skiplist_t(false);
		int left = gpu_skiplist_n(p->order) - p->place;
		int found = left < GPU_TIDS ? left : GPU_TIDS;

		found = n < found ? (int) n : found;
		for (int i = 0; i < GPU_TIDS; i++)
		{
			tids[i] = GPU_NO_TID;
			if (i < found)
				tids[i] = t[gpu_skiplist_slot(p->order, p->place + i)] & ENTRY_TID_MASK;
		}
		if (found < n)
		{
			p->place += found - 1;
			step(view, p, true);
		}
		return found;
	}
};

/* The children of listed index chunks that may have something of an interval. */
template <int nw> struct GpuSkiplistOpen
{
	GpuSkiplistView view;
	GpudsInterval interval;
	const GpuRef *list;
	int64_t n;
	uint32_t *start; /* children before each; one more.  First only counted */
	GpuRef *children;
	int64_t skip; /* of the children: those before this one are left out, ... */
	int64_t most; /* ... and those from so many on */

	/* The first child that has something, and how many there are. */
	GPU_FN int range(const uint64_t *chunk, uint64_t order, int *count) const
	{
		int from = gpu_skiplist_child(chunk, order, interval.lo, nw);
		int to = gpu_skiplist_child(chunk, order, interval.hi, nw);

		*count = to - from + 1;
		return from;
	}

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t *chunk;
		uint64_t order;
		int count = 0;
		int from = 0;

		if (i < n)
		{
			chunk = gpu_skiplist_chunk(view.base, list[i]);
			order = gpu_skiplist_order(chunk, view.version);
			from = range(chunk, order, &count);
			for (int k = 0; k < count && children; k++)
			{
				int64_t to = (int64_t) start[i] + k - skip;

				if (to >= 0 && to < most)
					children[to] = gpu_skiplist_ref(chunk, gpu_skiplist_slot(order, from + k));
			}
		}
		if (children == NULL)
			start[i] = (uint32_t) count;
	}
};

/* How many entries listed chunks have. */
struct GpuSkiplistSizes
{
	GpuSkiplistView view;
	const GpuRef *list;
	int64_t n;
	uint32_t *size;

	GPU_FN void operator()(int64_t i) const
	{
		size[i] = 0;
		if (i < n)
			size[i] = (uint32_t) gpu_skiplist_n(
				gpu_skiplist_order(gpu_skiplist_chunk(view.base, list[i]), view.version));
	}
};

/* Chunks of a level that one block lists, at most. */
#define GPU_SKIPLIST_BLOCK_LIST 2048

/* Lists of the upper levels, by one block: down to level 0, or as long as they are short. */
template <int nw> struct GpuSkiplistUpper
{
	const unsigned char *base;
	const GpuSkiplistTable *table;
	GpuSkiplistOpen<nw> open; /* its list, its children in turn, and start have room for so many */
	bool forward;
	int64_t most;
	/* total: version; uncounted.others: chunks; last: level * 4 + cut * 2 + which list */
	GpuScanSummary *summary;

	GPU_FN void operator()(GpuBlock &block) const
	{
		GpuSkiplistOpen<nw> o = open;
		GpuRef *list[2] = { (GpuRef *) open.list, open.children };
		int level = table->height - 1;
		int64_t cut = 0;
		int64_t n = 1;
		int which = 0;

		o.view = { base, table->version, table->root, table->height };
		block.each(1, [&](int64_t) { list[0][0] = table->root; });
		for (; level > 0 && n * GPU_SKIPLIST_PLACES <= GPU_SKIPLIST_BLOCK_LIST; level--, which ^= 1)
		{
			const volatile uint32_t *total = &o.start[n];
			int64_t all;

			o.list = list[which];
			o.n = n;
			o.children = NULL;
			block.each(n + 1, [&](int64_t i) { o(i); });
			block.exclusive_sum(o.start, n + 1);
			all = *total;
			o.most = all < most ? all : most;
			o.skip = forward ? 0 : all - o.most;
			o.children = list[which ^ 1];
			cut |= o.most < all;
			block.each(n, [&](int64_t i) { o(i); });
			n = o.most;
		}
		block.each(1,
				   [&](int64_t)
				   {
					   summary->total = table->version;
					   summary->uncounted.others = (uint32_t) n;
					   summary->last = level * 4 + cut * 2 + which;
				   });
	}
};

/* A list that is being made. */
struct GpuSkiplistListing
{
	GpuPool *pool;
	GpuStream *s;
	GpuScanSummary *summary;        /* host memory ... */
	GpuScanSummary *device_summary; /* ... as the device sees it */
	GpudsInterval interval;
	bool forward;
	int64_t most; /* chunks */
	bool cut;     /* there are more */
	GpuSpan list;
	GpuSpan start;
	GpuSkiplistPieces pieces;
};

static inline void
gpu_skiplist_list_close(GpuSkiplistListing *l)
{
	gpu_finish(l->s);
	gpu_span_give(l->pool, &l->list);
	gpu_span_give(l->pool, &l->start);
}

/* Takes a span with room for n + 1 numbers and for their sum; false: there is none. */
static inline bool
gpu_skiplist_list_starts(GpuSkiplistListing *l, int64_t n)
{
	GpuScratch scratch = { NULL, 0 };
	size_t temp = gpu_temp_bytes(n + 1);

	(void) gpu_scratch<uint32_t>(&scratch, n + 1);
	(void) gpu_scratch<unsigned char>(&scratch, (int64_t) temp);
	if (scratch.used_bytes > gpu_span_bytes(&l->start))
	{
		gpu_finish(l->s);
		gpu_span_give(l->pool, &l->start);
		if (!gpu_scratch_take(l->pool, &l->start, &scratch))
			return false;
	}
	scratch = { (unsigned char *) l->start.at, 0 };
	l->pieces.before = gpu_scratch<uint32_t>(&scratch, n + 1);
	l->s->temp_bytes = temp;
	l->s->temp = gpu_scratch<unsigned char>(&scratch, (int64_t) temp);
	return true;
}

/* Sums up n + 1 numbers; their total. */
static inline int64_t
gpu_skiplist_list_sum(GpuSkiplistListing *l, int64_t n)
{
	uint32_t *numbers = (uint32_t *) l->start.at;

	gpu_exclusive_sum(l->s, numbers, numbers, n + 1);
	gpu_copy_bus(l->s, &l->summary->uncounted.others, numbers + n, sizeof(uint32_t));
	return gpu_finish(l->s) ? l->summary->uncounted.others : 0;
}

/* Replaces a list of index chunks by that of their children. */
template <int nw>
static inline bool
gpu_skiplist_list_open(GpuSkiplistListing *l)
{
	const int64_t n = l->pieces.n;
	GpuSkiplistOpen<nw> open = { l->pieces.view, l->interval, l->pieces.ref, n, NULL, NULL, 0, 0 };
	GpuSpan children;
	int64_t total;

	if (n >= GPU_MAX_ITEMS || !gpu_skiplist_list_starts(l, n))
		return false;
	open.start = (uint32_t *) l->start.at;
	gpu_launch(l->s, n + 1, open);
	total = gpu_skiplist_list_sum(l, n);
	if (!gpu_ok(l->s))
		return false;
	open.most = total < l->most ? total : l->most;
	open.skip = l->forward ? 0 : total - open.most;
	l->cut = l->cut || open.most < total;
	if (!gpu_span_take(l->pool, &children, (size_t) open.most * sizeof(GpuRef)))
		return false;
	open.children = (GpuRef *) children.at;
	gpu_launch(l->s, n, open);
	gpu_finish(l->s);
	gpu_span_give(l->pool, &l->list);
	l->list = children;
	l->pieces.ref = open.children;
	l->pieces.n = open.most;
	return gpu_ok(l->s);
}

/* Lists the upper levels; the level that the list is of then, -1: out of memory, or the device is lost. */
template <int nw>
static inline int
gpu_skiplist_list_upper(GpuSkiplistListing *l, const GpudsView *view)
{
	const GpuScanSummary *summary = l->summary;
	GpuSkiplistUpper<nw> upper = {};
	GpuRef *at;

	if (!gpu_span_take(l->pool, &l->list, (3 * GPU_SKIPLIST_BLOCK_LIST + 1) * sizeof(GpuRef)))
		return -1;
	at = (GpuRef *) l->list.at;
	upper.base = view->base;
	upper.table = (const GpuSkiplistTable *) gpu_skiplist_chunk(view->base, view->root);
	upper.open.interval = l->interval;
	upper.open.list = at;
	upper.open.children = at + GPU_SKIPLIST_BLOCK_LIST;
	upper.open.start = at + 2 * GPU_SKIPLIST_BLOCK_LIST;
	upper.forward = l->forward;
	upper.most = l->most;
	upper.summary = l->device_summary;
	gpu_launch_block(l->s, upper, GPU_BLOCK_THREADS, 0);
	if (!gpu_finish(l->s))
		return -1;
	l->cut = (summary->last & 2) != 0;
	l->pieces.view = { view->base, summary->total, 0, 0 };
	l->pieces.ref = at + (summary->last & 1) * GPU_SKIPLIST_BLOCK_LIST;
	l->pieces.n = summary->uncounted.others;
	l->pieces.nwords = view->nwords;
	return (int) (summary->last / 4);
}

static inline bool
gpu_skiplist_list_levels(GpuSkiplistListing *l, const GpudsView *view)
{
	int level = view->nwords == 1 ? gpu_skiplist_list_upper<1>(l, view) : gpu_skiplist_list_upper<2>(l, view);

	for (; level > 0; level--)
	{
		if (!(view->nwords == 1 ? gpu_skiplist_list_open<1>(l) : gpu_skiplist_list_open<2>(l)))
			return false;
	}
	if (level < 0 || l->pieces.n >= GPU_MAX_ITEMS || !gpu_skiplist_list_starts(l, l->pieces.n))
		return false;
	gpu_launch(l->s, l->pieces.n + 1,
			   GpuSkiplistSizes{ l->pieces.view, l->pieces.ref, l->pieces.n, (uint32_t *) l->start.at });
	(void) gpu_skiplist_list_sum(l, l->pieces.n);
	return gpu_ok(l->s);
}

/*
 * Makes the list of the chunks of level 0, at most l->most; gpu_skiplist_list_close must follow.  False: out
 * of memory, or the device is lost.
 */
static inline bool
gpu_skiplist_list_make(GpuSkiplistListing *l, const GpudsView *view)
{
	void *temp = l->s->temp;
	size_t temp_bytes = l->s->temp_bytes;
	bool made = gpu_skiplist_list_levels(l, view);

	l->s->temp = temp;
	l->s->temp_bytes = temp_bytes;
	return made;
}

/* From the lowest beginning to the highest end of what a request has left; *ascending: in order. */
static inline GpudsInterval
gpu_skiplist_span_of(const unsigned char *staging, const GpuRequest *r, bool *ascending)
{
	const GpudsInterval *intervals = (const GpudsInterval *) (staging + r->input);
	const uint64_t *points = r->points ? (const uint64_t *) (intervals + 1) : NULL;
	const GpudsScan scan = { intervals, r->n, r->next, r->inside, r->at, points };
	const int64_t n = r->forward ? r->n - r->next : r->next;
	GpudsInterval span = { { UINT64_MAX, UINT64_MAX, UINT64_MAX }, { 0, 0, 0 } };
	GpudsEntry last = { 0, 0, 0 };
	bool first = true;

	*ascending = true;
	for (int64_t i = 0; i < n; i++)
	{
		int64_t number = r->forward ? r->next + i : r->next - 1 - i;
		GpudsInterval interval;

		if (!entry_scan_rest(&scan, number, r->forward, &interval))
			continue;
		if (!first && (r->forward ? entry_less(&interval.lo, &last) : entry_less(&last, &interval.hi)))
			*ascending = false;
		last = r->forward ? interval.hi : interval.lo;
		first = false;
		if (entry_less(&interval.lo, &span.lo))
			span.lo = interval.lo;
		if (entry_less(&span.hi, &interval.hi))
			span.hi = interval.hi;
	}
	return span;
}

/* Answers a scan from a list of at most so many chunks; *again: they did not do. */
static inline uint32_t
gpu_skiplist_scan_list(GpuSkiplistListing *l, GpuScanStream *stream, const GpudsView *view,
					   unsigned char *staging, unsigned char *device_staging, GpuRequest *r, bool *again)
{
	const GpuRequest before = *r;
	uint32_t status = GPU_NO_MEMORY;
	GpudsView list = *view;

	*again = false;
	if (gpu_skiplist_list_make(l, view))
	{
		list.base = (const unsigned char *) &l->pieces;
		status = gpu_scan_large<GpuSkiplistPiecesProbe>(stream, &list, staging, device_staging, r);
		*again = status == GPU_OK && l->cut && r->found < r->cap;
		if (*again)
			*r = before;
	}
	gpu_skiplist_list_close(l);
	return gpu_ok(l->s) ? status : l->s->status;
}

/* Answers a scan, from lists if it must; as gpu_scan_large.  GPU_NO_MEMORY: nothing of the request is set. */
static inline uint32_t
gpu_skiplist_scan(GpuPool *pool, GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
				  unsigned char *device_staging, GpuRequest *r)
{
	GpuSkiplistListing l = {};
	uint32_t status = gpu_scan_large<SkiplistProbe>(stream, view, staging, device_staging, r);
	bool again = true;
	bool ascending;

	if (status != GPU_SCAN_TOO_FAR)
		return status;
	l.pool = pool;
	l.s = &stream->stream;
	l.summary = stream->summary;
	l.device_summary = stream->device_summary;
	l.forward = r->forward;
	l.interval = gpu_skiplist_span_of(staging, r, &ascending);
	l.most = r->cap / GPU_SKIPLIST_LIST_SHARE + GPU_SKIPLIST_LIST_MORE;
	if (gpu_form_counts(r->form) || !ascending)
		l.most = INT64_MAX;
	while (again)
	{
		status = gpu_skiplist_scan_list(&l, stream, view, staging, device_staging, r, &again);
		if (again && l.most <= (int64_t) GPU_MAX_ENTRIES)
			l.most *= GPU_SKIPLIST_LIST_GROWTH;
	}
	return status;
}

#endif /* SKIPLIST_PIECES_GPU_H */
