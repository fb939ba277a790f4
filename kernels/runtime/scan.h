/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  Scan requests on the GPU, one after the other on a stream of its own.
 *
 * First each interval is located: where its entries begin, and how many there
 * are.  The exclusive sums of these numbers say which interval and which of its entries
 * is the request's i-th.  Then the output is made, each thread finding its own
 * entries.  So the work is spread evenly, whatever the lengths of the intervals
 * are.  How entries are found is the structure's affair: its probe (view.h) is the
 * templates' parameter.  Scans that count (GPU_COUNT, scan_count.h) or add up
 * (GPU_AGGREGATE, scan_agg.h; GPU_GROUPS, scan_groups.h and scan_runs.h) or join (GPU_JOIN, scan_join.h)
 * or read edges (GPU_EDGES, scan_edges.h) begin in the same way.  Those for ranks (GPU_RANKED,
 * scan_ranked.h) need no more than that.
 *
 * The input is copied to the device, and the output back, because the bus is
 * used best by copies.  Small requests go another way (persistent.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_H
#define GPU_SCAN_H

#include "kernels/runtime/primitives.h"
#include "kernels/runtime/side_pages.h"
#include "kernels/runtime/view.h"

/* The answer of gpu_scan_large if an interval is GPU_TOO_FAR for its probe; not a GpuStatus. */
#define GPU_SCAN_TOO_FAR UINT32_MAX

/* Output entries that a thread makes if intervals are long. */
#define GPU_SCAN_STRETCH 8

/* The interval whose offset is the last not above o: empty ones are passed over. */
GPU_FN int64_t
gpu_scan_find(const uint64_t *offsets, int64_t n, uint64_t o)
{
	int64_t lo = 0;
	int64_t hi = n;

	while (hi - lo > 1)
	{
		int64_t middle = lo + (hi - lo) / 2;

		if (offsets[middle] <= o)
			lo = middle;
		else
			hi = middle;
	}
	return lo;
}

/*
 * Large requests.
 */

/* Entries that GPU_COUNT, GPU_AGGREGATE and GPU_GROUPS do not count. */
struct GpuUncounted
{
	uint32_t others;   /* they are handed back */
	uint32_t unseen;   /* their rows are known to be unseen */
	uint32_t filtered; /* they do not pass the filter */
	uint32_t left_out; /* of groups that are not wanted */
	uint32_t crowded;  /* of the others: there is no slot for their groups; GPU_EDGES: of too many entries */
	uint32_t taken;    /* slots that there are, or keys that are handed back; GPU_EDGES: hidden entries */
	uint32_t edges;    /* GPU_EDGES: that there are */
	uint32_t gone;     /* GPU_EDGES: of the known edges, that are not there any more */
	uint64_t joined;   /* GPU_JOIN: rows of the result */
};

/* What the device tells of a request, in host memory. */
struct GpuScanSummary
{
	uint64_t total; /* entries of all intervals */
	int64_t last;   /* interval of the last entry in the output, counted in scan order ... */
	GpudsEntry at;  /* ... and that entry */
	GpuUncounted uncounted;
};

/* Edges of a graph that is in device memory, in rows, which are looked for there (scan_edges.h). */
struct GpuKnownEdges
{
	const uint64_t *codes; /* of its vertices, ascending */
	int64_t n;
	const uint64_t *offsets; /* where each vertex's edges begin, and where the last one's end */
	const uint32_t *members; /* numbers of their targets, which ascend in a row */
	const uint64_t *weights; /* of edges, which ascend where targets are equal; NULL: they have none */
	uint32_t *marks;         /* of each edge: 1, if it was found; NULL: none is looked for */
	bool both;               /* its edges lead both ways */
};

/*
 * Entries of a structure of which a scan has made no edges, because it does not go through them, or it was
 * not known that their rows are seen; in device memory, in no order.
 */
struct GpuHidden
{
	GpudsEntry *entries;
	int64_t room;
	int64_t n; /* -1: there were more, or others that are not among them */
};

/*
 * What a scan's edges and those of a known graph may differ in, if the graph was made by another scan: the
 * edges of some entries, and of those that are hidden (scan_edge_changes.h).
 */
struct GpuEdgeChanges
{
	bool wanted;         /* the scan is to look at no other edges */
	bool done;           /* it has: gone and the list say how the edges differ */
	GpudsEntry *entries; /* these entries, with room behind them for those that are hidden */
	int64_t n;
	uint32_t *gone;   /* a bit for each place of the known edges, set if the scan has no such edge */
	uint32_t *places; /* these edges, of equal ones the first; room for two of each entry */
	int64_t ngone;
};

/* Edges in device memory: the codes of two vertices each. */
struct GpuEdgeList
{
	uint64_t *pairs;
	uint64_t *weights; /* NULL: they have none; else edges that differ in their weight are different ones */
	int64_t n;
	int64_t room;
	bool full;           /* there were more */
	GpuKnownEdges known; /* edges that are not added, but marked */
	GpuHidden hidden;    /* entries of the structure that were no edges */
	GpuEdgeChanges changes;
};

struct GpuScanStream;
struct GpuJoinKeys;

/* A structure that a scan's entries are joined with. */
struct GpuJoinSide
{
	/* Probes a version for keys: gpu_scan_join_probe with the structure's probe. */
	virtual void join(GpuScanStream *stream, const GpudsView *view, const GpuJoinKeys &keys) const = 0;

  protected:
	~GpuJoinSide() = default;
};

struct GpuScanStream
{
	GpuStream stream;
	GpuEvent started;
	GpuEvent stopped;
	size_t piece_bytes;   /* room in each of these, in device memory: */
	unsigned char *input; /* as in the staging memory; of those that count: map and rows behind it, as much */
	GpuStart *starts;     /* one an interval */
	uint64_t *offsets;    /* one an interval, and the total */
	unsigned char *output;   /* as it will be in the staging memory */
	unsigned char *other;    /* for sorting; results; GPU_GROUPS: the table */
	GpuUncounted *uncounted; /* one, as in the summary */
	void *memory;            /* all of it */
	size_t memory_bytes;
	GpuScanSummary *summary;        /* host memory ... */
	GpuScanSummary *device_summary; /* ... as the device sees it */
	const GpuJoinSide *joined;      /* of a request that joins, with the version */
	GpudsView joined_view;
	GpuEdgeList *edges; /* of a request that adds to it */
	uint64_t noted;     /* of such a request: changes that its view has for sure */
	GpuSide side;       /* the copy of side values that the request at hand names, without map */
};

/* Pass 1: locate interval i in scan order. */
template <class Probe> struct GpuScanLocate
{
	typename Probe::View view;
	GpudsScan scan;
	bool forward;
	GpuStart *starts;
	uint64_t *counts;
	int64_t n;
	bool once; /* neighbours may be equal, and only the first one counts */

	GPU_FN uint64_t locate(int64_t i, GpuStart *start) const
	{
		GpudsInterval interval;

		*start = 0;
		if (i >= n || (once && i > 0 && scan.points[i] == scan.points[i - 1]) ||
			!entry_scan_rest(&scan, forward ? scan.next + i : scan.next - 1 - i, forward, &interval))
			return 0;
		return Probe::locate(view, &interval, forward, start);
	}

	GPU_FN void operator()(int64_t i) const
	{
		GpuStart start;

		counts[i] = locate(i, &start);
		if (i < n)
			starts[i] = start;
	}
};

/* Pass 2: entries i * stretch and what follows. */
template <class Probe, int stretch, bool tids> struct GpuScanWrite
{
	typename Probe::View view;
	bool forward;
	const GpuStart *starts;
	const uint64_t *offsets;
	int64_t n;
	int64_t found;
	bool full; /* found is the room that there is: say where the scan stops */
	GpudsEntry *entries;
	uint64_t *sorted;
	GpuScanSummary *summary;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t o = i * stretch;
		int64_t end = o + stretch < found ? o + stretch : found;

		while (o < end)
		{
			int64_t at = gpu_scan_find(offsets, n, (uint64_t) o);
			int64_t stop = (int64_t) offsets[at + 1] < end ? (int64_t) offsets[at + 1] : end;
			typename Probe::Position p;

			Probe::position(view, starts[at], (uint64_t) o - offsets[at], forward, &p);
			for (;;)
			{
				write(p, o, at);
				if (++o == stop)
					break;
				Probe::step(view, &p, forward);
			}
		}
	}

	GPU_FN void write(const typename Probe::Position &p, int64_t o, int64_t at) const
	{
		if (tids)
			sorted[o] = Probe::tid(view, p);
		else
			entries[o] = Probe::entry(view, p);
		if (full && o == found - 1)
		{
			summary->last = at;
			summary->at = Probe::entry(view, p);
		}
	}
};

/* Working memory for requests whose input and output are not longer than piece_bytes. */
static inline bool
gpu_scan_stream_open(GpuScanStream *stream, size_t piece_bytes)
{
	size_t piece = (piece_bytes + 255) / 256 * 256;
	int64_t n = (int64_t) (piece / sizeof(uint64_t));
	size_t temp;
	unsigned char *p;

	memset((void *) stream, 0, sizeof(*stream));
	if (!gpu_stream_open(&stream->stream, false) || !gpu_event_open(&stream->stream, &stream->started) ||
		!gpu_event_open(&stream->stream, &stream->stopped))
		return false;
	temp = (gpu_temp_bytes(n + 1) + 255) / 256 * 256;
	stream->piece_bytes = piece;
	stream->memory_bytes = 6 * piece + 512 + temp;
	stream->memory = gpu_alloc(stream->memory_bytes);
	stream->summary = (GpuScanSummary *) gpu_host_alloc(sizeof(GpuScanSummary));
	if (stream->memory == NULL || stream->summary == NULL)
		return false;
	stream->device_summary = (GpuScanSummary *) gpu_device_address(stream->summary);
	p = (unsigned char *) stream->memory;
	stream->input = p;
	stream->output = p += 2 * piece;
	stream->other = p += piece;
	stream->starts = (GpuStart *) (p += piece);
	stream->offsets = (uint64_t *) (p += piece);
	stream->uncounted = (GpuUncounted *) (p += piece + 256);
	stream->stream.temp = p + 256;
	stream->stream.temp_bytes = temp;
	return stream->device_summary != NULL;
}

/* Frees all that gpu_scan_stream_open took, also if it failed. */
static inline void
gpu_scan_stream_close(GpuScanStream *stream)
{
	gpu_event_close(&stream->started);
	gpu_event_close(&stream->stopped);
	gpu_free(stream->memory, stream->memory_bytes);
	if (stream->summary)
		gpu_host_free(stream->summary);
	gpu_stream_close(&stream->stream);
	memset((void *) stream, 0, sizeof(*stream));
}

/* Bytes of a request's intervals or points. */
static inline size_t
gpu_scan_input_bytes(const GpuRequest *r)
{
	return r->points ? sizeof(GpudsInterval) + (size_t) r->n * sizeof(uint64_t)
					 : (size_t) r->n * sizeof(GpudsInterval);
}

/* The part of the input that the rest of the scan needs; *scan then refers to device memory. */
static inline void
gpu_scan_copy_in(GpuScanStream *stream, const unsigned char *staging, const GpuRequest *r, GpudsScan *scan)
{
	const unsigned char *from = staging + r->input;
	int64_t first = r->forward ? r->next : 0;
	int64_t n = r->forward ? r->n - r->next : r->next;

	scan->intervals = (const GpudsInterval *) stream->input;
	scan->n = r->n;
	scan->next = r->next;
	scan->inside = r->inside;
	scan->at = r->at;
	scan->points = NULL;
	if (r->points)
	{
		size_t skip = sizeof(GpudsInterval) + (size_t) first * sizeof(uint64_t);

		scan->points = (const uint64_t *) (stream->input + sizeof(GpudsInterval));
		gpu_copy_bus(&stream->stream, stream->input, from, sizeof(GpudsInterval));
		gpu_copy_bus(&stream->stream, stream->input + skip, from + skip, (size_t) n * sizeof(uint64_t));
	}
	else
	{
		size_t skip = (size_t) first * sizeof(GpudsInterval);

		gpu_copy_bus(&stream->stream, stream->input + skip, from + skip, (size_t) n * sizeof(GpudsInterval));
	}
}

/* How many entries or others are not known: an interval is too far. */
#define GPU_SCAN_UNKNOWN INT64_C(-1)

/* The total that a request's intervals have, once that is known here; 0 after an error. */
static inline int64_t
gpu_scan_total(const GpuScanStream *stream)
{
	if (!gpu_ok(&stream->stream))
		return 0;
	return stream->summary->total >= GPU_TOO_FAR ? GPU_SCAN_UNKNOWN : (int64_t) stream->summary->total;
}

/* May the points of a request be in no order? */
static inline bool
gpu_scan_may_be_unsorted(const GpuRequest *r)
{
	return r->points && r->forward && r->next == 0 && !r->inside &&
		   (r->form == GPU_COUNT || (r->form == GPU_AGGREGATE && !r->each));
}

/* Puts n points, which have been copied in, in order by the bits that their frame leaves them. */
static inline void
gpu_scan_sort_points(GpuScanStream *stream, const unsigned char *staging, const GpuRequest *r, int64_t n,
					 GpudsScan *scan)
{
	const GpudsInterval *frame = (const GpudsInterval *) (staging + r->input);
	const uint64_t rest = frame->lo.w0 ^ frame->hi.w0;
	uint64_t *points = (uint64_t *) (stream->input + sizeof(GpudsInterval));
	uint64_t *other = (uint64_t *) stream->output;

	gpu_sort_keys(&stream->stream, &points, &other, n, rest == UINT64_MAX ? 64 : __builtin_ctzll(~rest), 64);
	scan->points = points;
}

/* Pass 1 for all n intervals.  How many entries they have (gpu_scan_total). */
template <class Probe>
static inline int64_t
gpu_scan_locate(GpuScanStream *stream, const GpudsView *view, const unsigned char *staging,
				const GpuRequest *r, int64_t n)
{
	GpuStream *s = &stream->stream;
	GpuScanLocate<Probe> locate = { Probe::open(*view), GpudsScan(), r->forward, stream->starts,
									stream->offsets,    n,           r->unsorted };

	gpu_scan_copy_in(stream, staging, r, &locate.scan);
	if (r->unsorted)
		gpu_scan_sort_points(stream, staging, r, n, &locate.scan);
	gpu_launch(s, n + 1, locate);
	gpu_exclusive_sum(s, stream->offsets, stream->offsets, n + 1);
	gpu_copy_bus(s, &stream->summary->total, &stream->offsets[n], sizeof(uint64_t));
	gpu_finish(s);
	return gpu_scan_total(stream);
}

/* Pass 2, each thread making stretch entries. */
template <class Probe, int stretch, bool tids>
static inline void
gpu_scan_write_stretches(GpuScanStream *stream, const GpudsView *view, const GpuRequest *r, int64_t n,
						 int64_t found)
{
	GpuScanWrite<Probe, stretch, tids> write;

	write.view = Probe::open(*view);
	write.forward = r->forward;
	write.starts = stream->starts;
	write.offsets = stream->offsets;
	write.n = n;
	write.found = found;
	write.full = found == r->cap;
	write.entries = (GpudsEntry *) stream->output;
	write.sorted = (uint64_t *) stream->output;
	write.summary = stream->device_summary;
	gpu_launch(&stream->stream, (found + stretch - 1) / stretch, write);
}

template <class Probe, bool tids>
static inline void
gpu_scan_write(GpuScanStream *stream, const GpudsView *view, const GpuRequest *r, int64_t n, int64_t found)
{
	/* mostly single entries: a thread each; long intervals: fewer descents */
	if (found < 2 * n)
		gpu_scan_write_stretches<Probe, 1, tids>(stream, view, r, n, found);
	else
		gpu_scan_write_stretches<Probe, GPU_SCAN_STRETCH, tids>(stream, view, r, n, found);
}

#ifdef GPU_EMULATED

template <class Probe, bool tids>
static inline bool
gpu_scan_block(GpuScanStream *, const GpudsView *, unsigned char *, const GpuRequest *, int64_t, bool *)
{
	return false;
}

#else
#include "kernels/runtime/scan_block.h"
#endif

#include "kernels/runtime/scan_visible.h"
#include "kernels/runtime/scan_count.h"
#include "kernels/runtime/scan_entries.h"
#include "kernels/runtime/scan_agg.h"
#include "kernels/runtime/scan_groups.h"
#include "kernels/runtime/scan_runs.h"
#include "kernels/runtime/scan_join.h"
#include "kernels/runtime/scan_edges.h"
#include "kernels/runtime/scan_edge_changes.h"
#include "kernels/runtime/scan_ranked.h"

/*
 * Writes the output of n intervals to staging memory, up to r->cap entries or TIDs;
 * how many, or GPU_SCAN_UNKNOWN.
 */
template <class Probe>
static inline int64_t
gpu_scan_output(GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
				unsigned char *device_staging, const GpuRequest *r, int64_t n)
{
	GpuStream *s = &stream->stream;
	bool tids = r->form == GPU_SORTED_TIDS;
	bool written = false;
	int64_t found;

	if (tids ? gpu_scan_block<Probe, true>(stream, view, device_staging, r, n, &written)
			 : gpu_scan_block<Probe, false>(stream, view, device_staging, r, n, &written))
		found = gpu_scan_total(stream);
	else
		found = gpu_scan_locate<Probe>(stream, view, staging, r, n);
	if (found == GPU_SCAN_UNKNOWN)
		return found;
	if (found > r->cap)
		found = r->cap;
	if (written)
		s->bus_bytes += (size_t) found * (tids ? sizeof(uint64_t) : sizeof(GpudsEntry));
	else if (tids)
	{
		uint64_t *sorted = (uint64_t *) stream->output;
		uint64_t *other = (uint64_t *) stream->other;

		gpu_scan_write<Probe, true>(stream, view, r, n, found);
		gpu_sort_keys(s, &sorted, &other, found, 0, 48);
		gpu_copy_bus(s, staging + r->output, sorted, (size_t) found * sizeof(uint64_t));
	}
	else
	{
		gpu_scan_write<Probe, false>(stream, view, r, n, found);
		gpu_copy_bus(s, staging + r->output, stream->output, (size_t) found * sizeof(GpudsEntry));
	}
	return found;
}

/*
 * Do a scan.  staging and device_staging are the staging memory as host and device see it.
 * Sets everything of the request but status and done.  GPU_OK: all of it is there,
 * and the stream is at rest.  GPU_DEVICE_LOST: nothing is known of either.  GPU_SCAN_TOO_FAR: nothing
 * is answered, and the scan has not moved.
 */
template <class Probe>
static inline uint32_t
gpu_scan_large(GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
			   unsigned char *device_staging, GpuRequest *r)
{
	GpuStream *s = &stream->stream;
	int64_t n = r->forward ? r->n - r->next : r->next;
	int64_t found = 0;
	bool counts = gpu_form_counts(r->form);
	bool stopped = false;

	s->launches = 0;
	s->bus_bytes = 0;
	r->counted = 0;
	gpu_event_record(s, &stream->started);
	if (r->form == GPU_AGGREGATE)
		found = gpu_scan_aggregate<Probe>(stream, view, staging, r, n);
	else if (r->form == GPU_GROUPS && ((const GroupSpec *) (staging + r->groups))->most > 0)
		found = gpu_scan_runs<Probe>(stream, view, staging, r, n, &stopped);
	else if (r->form == GPU_GROUPS)
		found = gpu_scan_groups<Probe>(stream, view, staging, r, n);
	else if (r->form == GPU_JOIN)
		found = gpu_scan_join<Probe>(stream, view, staging, r, n);
	else if (r->form == GPU_RANKED)
		found = gpu_scan_ranked<Probe>(stream, view, staging, r);
	else if (r->form == GPU_EDGES)
		found = gpu_scan_edges<Probe>(stream, view, staging, r, n);
	else if (n > 0 && view->height > 0)
		found = counts ? gpu_scan_count<Probe>(stream, view, staging, r, n)
					   : gpu_scan_output<Probe>(stream, view, staging, device_staging, r, n);
	gpu_event_record(s, &stream->stopped);
	gpu_finish(s);
	r->device_ns = gpu_event_ns(s, &stream->started, &stream->stopped);
	r->launches = s->launches;
	r->batch = 1;
	r->bus_bytes = s->bus_bytes;
	if (!gpu_ok(s))
		return s->status;
	if (found == GPU_SCAN_UNKNOWN)
		return GPU_SCAN_TOO_FAR;
	r->found = found;
	/* what is not counted as a whole is not counted at all */
	if (counts && found > r->cap)
		return GPU_OK;
	r->inside = counts ? stopped : found == r->cap;
	if (r->inside)
	{
		r->next += r->forward ? stream->summary->last : -stream->summary->last;
		r->at = stream->summary->at;
	}
	else
		r->next = r->forward ? r->n : 0;
	return GPU_OK;
}

#endif /* GPU_SCAN_H */
