/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  Scan requests on the GPU, one after the other on a lane's own stream.
 *
 * First each interval is located: where its entries begin, and how many there
 * are.  A sum over these numbers says which interval and which of its entries
 * is the request's i-th.  Then the output is made, each thread finding its own
 * entries: by their rank, or, if all of an interval is in one leaf, in that
 * leaf.  So the work is spread evenly, whatever the lengths of the intervals
 * are.
 *
 * The input is copied to the device, and the output back, because the bus is
 * used best by copies.  Small requests go another way (resident.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_H
#define GPU_SCAN_H

#include "kernels/gpu/primitives.h"
#include "kernels/btree/probe.h"

/*
 * Where the entries of an interval are, as one number.  If all of them are in
 * one leaf: its ref << 32 | place.  Else the rank, which is less than 2^32.
 * Of the first entry, or backward of the last one.
 */
typedef uint64_t GpuStart;

/* Output entries that a thread makes if intervals are long. */
#define GPU_SCAN_STRETCH 8

/* Locate an interval; returns the number of its entries. */
GPU_FN uint64_t
gpu_scan_locate(const BtreeView *view, const GpudsInterval *interval, bool forward, const int nw,
				GpuStart *start)
{
	BtreePosition p;
	uint64_t count = btree_locate(view, interval, &p, nw);
	uint64_t skip = forward || count == 0 ? 0 : count - 1;

	if (count == 0)
		*start = 0;
	else if ((uint64_t) p.place + count <= BTREE_FANOUT &&
			 btree_leaf_n(btree_node(view->base, p.leaf), nw) >= p.place + (int) count)
		*start = (uint64_t) p.leaf << 32 | ((uint64_t) p.place + skip);
	else
		*start = p.rank + (uint64_t) p.place + skip;
	return count;
}

/* The position of the k-th entry of an interval, in the scan's direction. */
GPU_FN void
gpu_scan_position(const BtreeView *view, GpuStart start, uint64_t k, bool forward, BtreePosition *p)
{
	BtreeRef leaf = (BtreeRef) (start >> 32);

	if (leaf == 0)
		btree_select(view, forward ? start + k : start - k, p);
	else
	{
		p->rank = 0;
		p->parent = 0;
		p->at = 0;
		p->leaf = leaf;
		p->place = (int) ((uint32_t) start + (forward ? (uint32_t) k : -(uint32_t) k));
	}
}

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
struct GpuScanLocate
{
	BtreeView view;
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
			!btree_scan_interval(&scan, forward ? scan.next + i : scan.next - 1 - i, forward, &interval))
			return 0;
		if (view.nwords == 1)
			return gpu_scan_locate(&view, &interval, forward, 1, start);
		return gpu_scan_locate(&view, &interval, forward, 2, start);
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
template <int stretch, bool tids> struct GpuScanWrite
{
	BtreeView view;
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
			BtreePosition p;

			gpu_scan_position(&view, starts[at], (uint64_t) o - offsets[at], forward, &p);
			for (;;)
			{
				write(p, o, at);
				if (++o == stop)
					break;
				step(&p);
			}
		}
	}

	GPU_FN void write(const BtreePosition &p, int64_t o, int64_t at) const
	{
		const uint64_t *leaf = btree_node(view.base, p.leaf);

		if (tids)
			sorted[o] = leaf[view.nwords * BTREE_FANOUT + p.place] & ENTRY_TID_MASK;
		else
			entries[o] = btree_leaf_entry(leaf, p.place, view.nwords);
		if (full && o == found - 1)
		{
			summary->last = at;
			summary->at = btree_leaf_entry(leaf, p.place, view.nwords);
		}
	}

	/* To the next entry of the same interval, which is there. */
	GPU_FN void step(BtreePosition *p) const
	{
		if (forward)
		{
			const uint64_t *leaf = btree_node(view.base, p->leaf);

			p->place++;
			if (p->place == BTREE_FANOUT || leaf[view.nwords * BTREE_FANOUT + p->place] == UINT64_MAX)
				btree_next_leaf(&view, p, p->place);
		}
		else
		{
			if (p->place == 0)
				btree_previous_leaf(&view, p);
			p->place--;
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

template <bool tids>
static inline void
gpu_scan_write(GpuScanStream *lane, const BtreeView *view, const GpuRequest *r, int64_t n, int64_t found)
{
	bool full = found == r->cap;
	GpudsEntry *entries = (GpudsEntry *) lane->output;
	uint64_t *sorted = (uint64_t *) lane->output;

	/* mostly single entries: a thread each; long intervals: fewer descents */
	if (found < 2 * n)
	{
		GpuScanWrite<1, tids> write = { *view, r->forward, lane->starts, lane->offsets, n,
										found, full,       entries,      sorted,        lane->summary_there };

		gpu_launch(&lane->stream, found, write);
	}
	else
	{
		GpuScanWrite<GPU_SCAN_STRETCH, tids> write = {
			*view, r->forward, lane->starts, lane->offsets, n,
			found, full,       entries,      sorted,        lane->summary_there
		};

		gpu_launch(&lane->stream, (found + GPU_SCAN_STRETCH - 1) / GPU_SCAN_STRETCH, write);
	}
}

#ifdef GPU_EMULATED

template <bool tids>
static inline bool
gpu_scan_block(GpuScanStream *, const BtreeView *, unsigned char *, const GpuRequest *, int64_t, bool *)
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
static inline uint32_t
gpu_scan_large(GpuScanStream *lane, const BtreeView *view, unsigned char *staging, unsigned char *there,
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

		if (!(tids ? gpu_scan_block<true>(lane, view, there, r, n, &written)
				   : gpu_scan_block<false>(lane, view, there, r, n, &written)))
		{
			GpuScanLocate locate = { *view, GpudsScan(), r->forward, lane->starts, lane->offsets, n };

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

			gpu_scan_write<true>(lane, view, r, n, found);
			gpu_sort_keys(s, &sorted, &other, found, 0, 48);
			gpu_copy_bus(s, staging + r->output, sorted, (size_t) found * sizeof(uint64_t));
		}
		else
		{
			gpu_scan_write<false>(lane, view, r, n, found);
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
