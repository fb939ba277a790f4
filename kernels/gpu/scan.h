/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  Scan requests on the GPU, one after the other on a lane's own stream.
 *
 * First each interval is located: where its entries begin, and how many there
 * are.  The exclusive sums of these numbers say which interval and which of its entries
 * is the request's i-th.  Then the output is made, each thread finding its own
 * entries.  So the work is spread evenly, whatever the lengths of the intervals
 * are.  How entries are found is the structure's affair: its probe (view.h) is the
 * templates' parameter.
 *
 * The input is copied to the device, and the output back, because the bus is
 * used best by copies.  Small requests go another way (resident.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_H
#define GPU_SCAN_H

#include "kernels/gpu/primitives.h"
#include "kernels/gpu/view.h"

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

/* What the device tells of a request, in host memory. */
struct GpuScanSummary
{
	uint64_t total; /* entries of all intervals */
	int64_t last;   /* interval of the last entry in the output, counted in scan order ... */
	GpudsEntry at;  /* ... and that entry */
};

struct GpuScanStream
{
	GpuStream stream;
	GpuEvent started;
	GpuEvent stopped;
	size_t piece_bytes;    /* room in each of these, in device memory: */
	unsigned char *input;  /* as in the staging memory */
	GpuStart *starts;      /* one an interval */
	uint64_t *offsets;     /* one an interval, and the total */
	unsigned char *output; /* as it will be in the staging memory */
	unsigned char *other;  /* for sorting */
	void *memory;          /* all of it */
	size_t memory_bytes;
	GpuScanSummary *summary;       /* host memory ... */
	GpuScanSummary *summary_there; /* ... as the device sees it */
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

	GPU_FN uint64_t locate(int64_t i, GpuStart *start) const
	{
		GpudsInterval interval;

		*start = 0;
		if (i >= n ||
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
gpu_scan_stream_open(GpuScanStream *lane, size_t piece_bytes)
{
	size_t piece = (piece_bytes + 255) / 256 * 256;
	int64_t n = (int64_t) (piece / sizeof(uint64_t));
	size_t temp;
	unsigned char *p;

	memset((void *) lane, 0, sizeof(*lane));
	if (!gpu_stream_open(&lane->stream, false) || !gpu_event_open(&lane->stream, &lane->started) ||
		!gpu_event_open(&lane->stream, &lane->stopped))
		return false;
	temp = (gpu_temp_bytes(n + 1) + 255) / 256 * 256;
	lane->piece_bytes = piece;
	lane->memory_bytes = 5 * piece + 256 + temp;
	lane->memory = gpu_alloc(lane->memory_bytes);
	lane->summary = (GpuScanSummary *) gpu_host_alloc(sizeof(GpuScanSummary));
	if (lane->memory == NULL || lane->summary == NULL)
		return false;
	lane->summary_there = (GpuScanSummary *) gpu_device_address(lane->summary);
	p = (unsigned char *) lane->memory;
	lane->input = p;
	lane->output = p += piece;
	lane->other = p += piece;
	lane->starts = (GpuStart *) (p += piece);
	lane->offsets = (uint64_t *) (p += piece);
	lane->stream.temp = p + piece + 256;
	lane->stream.temp_bytes = temp;
	return lane->summary_there != NULL;
}

static inline void
gpu_scan_stream_close(GpuScanStream *lane)
{
	gpu_event_close(&lane->started);
	gpu_event_close(&lane->stopped);
	gpu_free(lane->memory, lane->memory_bytes);
	if (lane->summary)
		gpu_host_free(lane->summary);
	gpu_stream_close(&lane->stream);
	memset((void *) lane, 0, sizeof(*lane));
}

/* The part of the input that the rest of the scan needs; *scan then refers to device memory. */
static inline void
gpu_scan_copy_in(GpuScanStream *lane, const unsigned char *staging, const GpuRequest *r, GpudsScan *scan)
{
	const unsigned char *from = staging + r->input;
	int64_t first = r->forward ? r->next : 0;
	int64_t n = r->forward ? r->n - r->next : r->next;

	scan->intervals = (const GpudsInterval *) lane->input;
	scan->n = r->n;
	scan->next = r->next;
	scan->inside = r->inside;
	scan->at = r->at;
	scan->words = NULL;
	if (r->words)
	{
		size_t skip = sizeof(GpudsInterval) + (size_t) first * sizeof(uint64_t);

		scan->words = (const uint64_t *) (lane->input + sizeof(GpudsInterval));
		gpu_copy_bus(&lane->stream, lane->input, from, sizeof(GpudsInterval));
		gpu_copy_bus(&lane->stream, lane->input + skip, from + skip, (size_t) n * sizeof(uint64_t));
	}
	else
	{
		size_t skip = (size_t) first * sizeof(GpudsInterval);

		gpu_copy_bus(&lane->stream, lane->input + skip, from + skip, (size_t) n * sizeof(GpudsInterval));
	}
}

template <class Probe, bool tids>
static inline void
gpu_scan_write(GpuScanStream *lane, const GpuView *view, const GpuRequest *r, int64_t n, int64_t found)
{
	bool full = found == r->cap;
	GpudsEntry *entries = (GpudsEntry *) lane->output;
	uint64_t *sorted = (uint64_t *) lane->output;

	/* mostly single entries: a thread each; long intervals: fewer descents */
	if (found < 2 * n)
	{
		GpuScanWrite<Probe, 1, tids> write = {
			Probe::open(*view), r->forward, lane->starts, lane->offsets, n, found, full, entries, sorted,
			lane->summary_there
		};

		gpu_launch(&lane->stream, found, write);
	}
	else
	{
		GpuScanWrite<Probe, GPU_SCAN_STRETCH, tids> write = {
			Probe::open(*view), r->forward, lane->starts, lane->offsets, n, found, full, entries, sorted,
			lane->summary_there
		};

		gpu_launch(&lane->stream, (found + GPU_SCAN_STRETCH - 1) / GPU_SCAN_STRETCH, write);
	}
}

#ifdef GPU_EMULATED

template <class Probe, bool tids>
static inline bool
gpu_scan_block(GpuScanStream *, const GpuView *, unsigned char *, const GpuRequest *, int64_t, bool *)
{
	return false;
}

#else
#include "kernels/gpu/scan_block.h"
#endif

/*
 * Do a scan.  staging and there are the staging memory as host and device see it.
 * Sets everything of the request but status and done.  GPU_OK: all of it is there,
 * and the lane is at rest.  GPU_DEVICE_LOST: nothing is known of either.
 */
template <class Probe>
static inline uint32_t
gpu_scan_large(GpuScanStream *lane, const GpuView *view, unsigned char *staging, unsigned char *there,
			   GpuRequest *r)
{
	GpuStream *s = &lane->stream;
	int64_t n = r->forward ? r->n - r->next : r->next;
	int64_t found = 0;

	s->launches = 0;
	s->bus_bytes = 0;
	gpu_event_record(s, &lane->started);
	if (n > 0 && view->height > 0)
	{
		bool tids = r->form == GPU_SORTED_TIDS;
		bool written = false;

		if (!(tids ? gpu_scan_block<Probe, true>(lane, view, there, r, n, &written)
				   : gpu_scan_block<Probe, false>(lane, view, there, r, n, &written)))
		{
			GpuScanLocate<Probe> locate = { Probe::open(*view), GpudsScan(),   r->forward,
											lane->starts,       lane->offsets, n };

			gpu_scan_copy_in(lane, staging, r, &locate.scan);
			gpu_launch(s, n + 1, locate);
			gpu_exclusive_sum(s, lane->offsets, lane->offsets, n + 1);
			gpu_copy_bus(s, &lane->summary->total, &lane->offsets[n], sizeof(uint64_t));
			gpu_finish(s);
		}
		if (gpu_ok(s))
			found = lane->summary->total < (uint64_t) r->cap ? (int64_t) lane->summary->total : r->cap;
		if (written)
			s->bus_bytes += (size_t) found * (tids ? sizeof(uint64_t) : sizeof(GpudsEntry));
		else if (tids)
		{
			uint64_t *sorted = (uint64_t *) lane->output;
			uint64_t *other = (uint64_t *) lane->other;

			gpu_scan_write<Probe, true>(lane, view, r, n, found);
			gpu_sort_keys(s, &sorted, &other, found, 0, 48);
			gpu_copy_bus(s, staging + r->output, sorted, (size_t) found * sizeof(uint64_t));
		}
		else
		{
			gpu_scan_write<Probe, false>(lane, view, r, n, found);
			gpu_copy_bus(s, staging + r->output, lane->output, (size_t) found * sizeof(GpudsEntry));
		}
	}
	gpu_event_record(s, &lane->stopped);
	gpu_finish(s);
	r->device_ns = gpu_event_ns(s, &lane->started, &lane->stopped);
	r->launches = s->launches;
	r->batch = 1;
	r->bus_bytes = s->bus_bytes;
	if (!gpu_ok(s))
		return s->status;
	r->found = found;
	r->inside = found == r->cap;
	if (r->inside)
	{
		r->next += r->forward ? lane->summary->last : -lane->summary->last;
		r->at = lane->summary->at;
	}
	else
		r->next = r->forward ? r->n : 0;
	return GPU_OK;
}

#endif /* GPU_SCAN_H */
