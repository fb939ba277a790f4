/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  Scan requests on the GPU: large ones, one after the other on a lane's own
 *	  stream, and small ones of several sessions in one launch.
 *
 * Both kinds go the same way.  First each interval is located: where its
 * entries begin, and how many there are.  A sum over these numbers says
 * which interval and which of its entries is the request's i-th.  Then the
 * output is made, each thread finding its own entries: by their rank, or, if
 * all of an interval is in one leaf, in that leaf.  So the work is spread
 * evenly, whatever the lengths of the intervals are.
 *
 * A large request's input is copied to the device, and its output back, because the
 * bus is used best by copies.  A small one is read and written where it is, in
 * host memory; only its first interval, which usually is the only one, goes
 * with the launch.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_SCAN_H
#define GPU_SCAN_H

#include "kernels/gpu/machine.h"
#include "kernels/wbt_probe.h"
#ifndef GPU_EMULATED
#include "kernels/gpu/tile.h"
#endif

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
gpu_scan_locate(const WbtView *view, const GkInterval *interval, bool forward, const int nw, GpuStart *start)
{
	WbtPosition p;
	uint64_t count = wbt_locate(view, interval, &p, nw);
	uint64_t skip = forward || count == 0 ? 0 : count - 1;

	if (count == 0)
		*start = 0;
	else if ((uint64_t) p.place + count <= WBT_FANOUT &&
			 wbt_leaf_n(wbt_node(view->base, p.leaf), nw) >= p.place + (int) count)
		*start = (uint64_t) p.leaf << 32 | ((uint64_t) p.place + skip);
	else
		*start = p.rank + (uint64_t) p.place + skip;
	return count;
}

/* The position of the k-th entry of an interval, in the scan's direction. */
GPU_FN void
gpu_scan_position(const WbtView *view, GpuStart start, uint64_t k, bool forward, WbtPosition *p)
{
	WbtRef leaf = (WbtRef) (start >> 32);

	if (leaf == 0)
		wbt_select(view, forward ? start + k : start - k, p);
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
	GkEntry at;     /* ... and that entry */
};

struct GpuScanLane
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
	WbtView view;
	GkScan scan;
	bool forward;
	GpuStart *starts;
	uint64_t *counts;
	int64_t n;

	GPU_FN void operator()(int64_t i) const
	{
		GkInterval interval;
		GpuStart start = 0;
		uint64_t count = 0;

		if (i < n &&
			wbt_scan_interval(&scan, forward ? scan.next + i : scan.next - 1 - i, forward, &interval))
		{
			if (view.nwords == 1)
				count = gpu_scan_locate(&view, &interval, forward, 1, &start);
			else
				count = gpu_scan_locate(&view, &interval, forward, 2, &start);
		}
		if (i < n)
			starts[i] = start;
		counts[i] = count;
	}
};

/* Pass 2: entries i * stretch and what follows. */
template <int stretch, bool tids> struct GpuScanWrite
{
	WbtView view;
	bool forward;
	const GpuStart *starts;
	const uint64_t *offsets;
	int64_t n;
	int64_t found;
	bool full; /* found is the room that there is: say where the scan stops */
	GkEntry *entries;
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
			WbtPosition p;

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

	GPU_FN void write(const WbtPosition &p, int64_t o, int64_t at) const
	{
		const uint64_t *leaf = wbt_node(view.base, p.leaf);

		if (tids)
			sorted[o] = leaf[view.nwords * WBT_FANOUT + p.place] & GK_TID_MASK;
		else
			entries[o] = wbt_leaf_entry(leaf, p.place, view.nwords);
		if (full && o == found - 1)
		{
			summary->last = at;
			summary->at = wbt_leaf_entry(leaf, p.place, view.nwords);
		}
	}

	/* To the next entry of the same interval, which is there. */
	GPU_FN void step(WbtPosition *p) const
	{
		if (forward)
		{
			const uint64_t *leaf = wbt_node(view.base, p->leaf);

			p->place++;
			if (p->place == WBT_FANOUT || leaf[view.nwords * WBT_FANOUT + p->place] == UINT64_MAX)
				wbt_next_leaf(&view, p, p->place);
		}
		else
		{
			if (p->place == 0)
				wbt_previous_leaf(&view, p);
			p->place--;
		}
	}
};

/* Working memory for requests whose input and output are not longer than piece_bytes. */
static inline bool
gpu_scan_lane_open(GpuScanLane *lane, size_t piece_bytes)
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
gpu_scan_lane_close(GpuScanLane *lane)
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
gpu_scan_copy_in(GpuScanLane *lane, const unsigned char *staging, const GpuRequest *r, GkScan *scan)
{
	const unsigned char *from = staging + r->input;
	int64_t first = r->forward ? r->next : 0;
	int64_t n = r->forward ? r->n - r->next : r->next;

	scan->intervals = (const GkInterval *) lane->input;
	scan->n = r->n;
	scan->next = r->next;
	scan->inside = r->inside;
	scan->at = r->at;
	scan->words = NULL;
	if (r->words)
	{
		size_t skip = sizeof(GkInterval) + (size_t) first * sizeof(uint64_t);

		scan->words = (const uint64_t *) (lane->input + sizeof(GkInterval));
		gpu_copy_bus(&lane->stream, lane->input, from, sizeof(GkInterval));
		gpu_copy_bus(&lane->stream, lane->input + skip, from + skip, (size_t) n * sizeof(uint64_t));
	}
	else
	{
		size_t skip = (size_t) first * sizeof(GkInterval);

		gpu_copy_bus(&lane->stream, lane->input + skip, from + skip, (size_t) n * sizeof(GkInterval));
	}
}

template <bool tids>
static inline void
gpu_scan_write(GpuScanLane *lane, const WbtView *view, const GpuRequest *r, int64_t n, int64_t found)
{
	bool full = found == r->cap;
	GkEntry *entries = (GkEntry *) lane->output;
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

/*
 * Do a scan.  staging is the staging memory as the host sees it.  Sets
 * everything of the request but status and done; all of it is there when this
 * returns, with GPU_OK or GPU_DEVICE_LOST.
 */
static inline uint32_t
gpu_scan_large(GpuScanLane *lane, const WbtView *view, unsigned char *staging, GpuRequest *r)
{
	GpuStream *s = &lane->stream;
	int64_t n = r->forward ? r->n - r->next : r->next;
	int64_t found = 0;

	s->launches = 0;
	s->bus_bytes = 0;
	gpu_event_record(s, &lane->started);
	if (n > 0 && view->height > 0)
	{
		GpuScanLocate locate = { *view, GkScan(), r->forward, lane->starts, lane->offsets, n };

		gpu_scan_copy_in(lane, staging, r, &locate.scan);
		gpu_launch(s, n + 1, locate);
		gpu_scan(s, lane->offsets, lane->offsets, n + 1);
		gpu_copy_bus(s, &lane->summary->total, &lane->offsets[n], sizeof(uint64_t));
		if (gpu_finish(s))
		{
			found = lane->summary->total < (uint64_t) r->cap ? (int64_t) lane->summary->total : r->cap;
			if (r->form == GPU_SORTED_TIDS)
			{
				uint64_t *tids = (uint64_t *) lane->output;
				uint64_t *other = (uint64_t *) lane->other;

				gpu_scan_write<true>(lane, view, r, n, found);
				gpu_sort_keys(s, &tids, &other, found, 0, 48);
				gpu_copy_bus(s, staging + r->output, tids, (size_t) found * sizeof(uint64_t));
			}
			else
			{
				gpu_scan_write<false>(lane, view, r, n, found);
				gpu_copy_bus(s, staging + r->output, lane->output, (size_t) found * sizeof(GkEntry));
			}
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

/*
 * Small requests.
 */

/* A request of a small launch; pointers are the device's. */
struct GpuSmallItem
{
	WbtView view;
	GkScan scan;
	GkInterval first; /* the interval that the scan is at, less what it has seen of it; lo > hi: none */
	GpuRequest *request;
	GkEntry *out;
	int32_t cap;
	bool forward;
};

template <int n> struct GpuSmallItems
{
	GpuSmallItem item[n];
};

struct GpuSmallLane
{
	GpuStream stream;
};

static inline bool
gpu_small_open(GpuSmallLane *lane)
{
	return gpu_stream_open(&lane->stream, true);
}

static inline void
gpu_small_close(GpuSmallLane *lane)
{
	gpu_stream_close(&lane->stream);
}

/* Has all of the lane's last launch happened?  Errors are in lane->stream.status. */
static inline bool
gpu_small_finished(GpuSmallLane *lane)
{
	return gpu_finished(&lane->stream);
}

/* Entry o of the output, which is the k-th of an interval. */
GPU_FN GkEntry
gpu_small_write(const GpuSmallItem &item, GpuStart start, uint64_t k, int64_t o)
{
	WbtPosition p;
	GkEntry e;

	gpu_scan_position(&item.view, start, k, item.forward, &p);
	e = wbt_leaf_entry(wbt_node(item.view.base, p.leaf), p.place, item.view.nwords);
	item.out[o] = e;
	return e;
}

/* The request's answer but for done; at and last belong to the last entry of the output. */
GPU_FN void
gpu_small_answer(const GpuSmallItem &item, int n, int64_t found, int last, const GkEntry &at, int batch,
				 uint64_t ns)
{
	GpuRequest *r = item.request;

	r->inside = found == item.cap;
	if (found == item.cap)
	{
		r->next = item.forward ? item.scan.next + last : item.scan.next - last;
		r->at = at;
	}
	else
		r->next = item.forward ? item.scan.n : 0;
	r->found = found;
	r->batch = (uint32_t) batch;
	r->bus_bytes = (uint64_t) (n > 1 ? n : 0) * (item.scan.words ? sizeof(uint64_t) : sizeof(GkInterval)) +
				   (uint64_t) found * sizeof(GkEntry);
	r->launches = 0;
	r->device_ns = ns;
	r->status = GPU_OK;
}

/* Intervals left of a scan. */
GPU_FN int
gpu_small_intervals(const GpuSmallItem &item)
{
	if (item.view.height == 0)
		return 0;
	return (int) (item.forward ? item.scan.n - item.scan.next : item.scan.next);
}

#ifdef GPU_EMULATED

/* Locate interval i of a small request, in scan order. */
static inline uint64_t
gpu_small_locate(const GpuSmallItem &item, int i, GpuStart *start)
{
	const GkScan *scan = &item.scan;
	GkInterval interval = item.first;

	*start = 0;
	if (i > 0)
		interval = gk_scan_interval(scan, item.forward ? scan->next + i : scan->next - 1 - i);
	if (item.view.nwords == 1)
		return gpu_scan_locate(&item.view, &interval, item.forward, 1, start);
	return gpu_scan_locate(&item.view, &interval, item.forward, 2, start);
}

static inline void
gpu_small_run(const GpuSmallItem &item, int batch)
{
	int n = gpu_small_intervals(item);
	int64_t found = 0;
	int last = 0;
	GkEntry at = { 0, 0, 0 };

	for (int i = 0; i < n && found < item.cap; i++)
	{
		GpuStart start;
		uint64_t count = gpu_small_locate(item, i, &start);

		for (uint64_t k = 0; k < count && found < item.cap; k++)
			at = gpu_small_write(item, start, k, found++);
		last = i;
	}
	gpu_small_answer(item, n, found, last, at, batch, 0);
	gpu_release_system(&item.request->done, 1);
}

template <int max>
static inline void
gpu_small_start(GpuSmallLane *lane, const GpuSmallItem *items, int n)
{
	if (!gpu_usable(&lane->stream))
		return;
	for (int i = 0; i < n; i++)
		gpu_small_run(items[i], n);
}

#else

__device__ __forceinline__ uint64_t
gpu_nanoseconds(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Threads of a request; a pair of tiles locates an interval. */
#define GPU_SMALL_BLOCK 128
#define GPU_SMALL_PAIRS (GPU_SMALL_BLOCK / GPU_TILE / 2)

/* A place between entries, as a tile finds it. */
struct GpuSmallBound
{
	uint64_t rank;
	WbtRef leaf;
	int place;
};

/*
 * Both ends of the intervals of a small request, by all threads of a block, in
 * their order of being scanned.  A descent waits for one line a level.
 */
__device__ __forceinline__ void
gpu_small_bounds(const GpuSmallItem &item, int n, GpuSmallBound (*bounds)[2])
{
	int pair = (int) threadIdx.x / GPU_TILE / 2;
	int end = (int) threadIdx.x / GPU_TILE % 2;

	for (int first = 0; first < n; first += GPU_SMALL_PAIRS)
	{
		int i = first + pair;
		GkInterval interval = item.first;
		GpuSmallBound bound;
		GkEntry x;

		if (i > 0 && i < n)
			interval = gk_scan_interval(&item.scan,
										item.forward ? item.scan.next + i : item.scan.next - 1 - i);
		x = end ? wbt_after(&interval.hi) : interval.lo;
		bound.rank = gpu_tile_lower_bound(item.view, x, &bound.leaf, &bound.place);
		/* an interval that ends before it begins has no entries */
		if (end && gk_less(&interval.hi, &interval.lo))
			bound.rank = 0;
		if (i < n && gpu_tile_lane() == 0)
			bounds[i][end] = bound;
	}
}

/* A block for each request: tiles locate its intervals, then each thread writes entries. */
template <int max>
__global__ void
__launch_bounds__(GPU_SMALL_BLOCK) gpu_small_kernel(const __grid_constant__ GpuSmallItems<max> items)
{
	const GpuSmallItem &item = items.item[blockIdx.x];
	__shared__ GpuSmallBound bounds[GPU_SMALL_INTERVALS][2];
	__shared__ uint64_t offsets[GPU_SMALL_INTERVALS + 1];
	__shared__ GpuStart starts[GPU_SMALL_INTERVALS];
	uint64_t ns = gpu_nanoseconds();
	int thread = (int) threadIdx.x;
	int n = gpu_small_intervals(item);
	int64_t found;
	int last = 0;
	GkEntry at = { 0, 0, 0 };

	gpu_small_bounds(item, n, bounds);
	__syncthreads();
	if (thread < GPU_SMALL_INTERVALS)
	{
		uint64_t count = 0;

		if (thread < n && bounds[thread][0].rank < bounds[thread][1].rank)
		{
			const GpuSmallBound *b = bounds[thread];
			uint64_t skip;

			count = b[1].rank - b[0].rank;
			skip = item.forward ? 0 : count - 1;
			if (b[0].leaf == b[1].leaf)
				starts[thread] = (uint64_t) b[0].leaf << 32 | ((uint64_t) b[0].place + skip);
			else
				starts[thread] = b[0].rank + skip;
		}
		for (int d = 1; d < 32; d *= 2)
		{
			uint64_t before = __shfl_up_sync(GPU_ALL_LANES, count, d);

			if (thread >= d)
				count += before;
		}
		offsets[thread + 1] = count;
		if (thread == 0)
			offsets[0] = 0;
	}
	__syncthreads();
	found = offsets[GPU_SMALL_INTERVALS] < (uint64_t) item.cap ? (int64_t) offsets[GPU_SMALL_INTERVALS]
															   : item.cap;
	for (int64_t o = thread; o < found; o += GPU_SMALL_BLOCK)
	{
		last = (int) gpu_scan_find(offsets, n, (uint64_t) o);
		at = gpu_small_write(item, starts[last], (uint64_t) o - offsets[last], o);
	}
	__syncthreads();
	/* the thread that wrote the last entry knows it */
	if (thread == (found > 0 ? (int) ((found - 1) % GPU_SMALL_BLOCK) : 0))
	{
		gpu_small_answer(item, n, found, last, at, (int) gridDim.x, gpu_nanoseconds() - ns);
		gpu_release_system(&item.request->done, 1);
	}
}

template <int max>
static inline void
gpu_small_start(GpuSmallLane *lane, const GpuSmallItem *items, int n)
{
	GpuSmallItems<max> copy;

	memcpy(copy.item, items, (size_t) n * sizeof(GpuSmallItem));
	gpu_small_kernel<max><<<(unsigned) n, GPU_SMALL_BLOCK, 0, lane->stream.stream>>>(copy);
	gpu_check(&lane->stream, "launch", cudaGetLastError());
}

#endif

/*
 * Start the requests (gpu_is_small), n at most GPU_SMALL_BATCH.  requests are as the
 * host sees them; staging and there are the staging memory as host and device see
 * it, in which the requests lie as well as their input and output.
 */
static inline void
gpu_small_launch(GpuSmallLane *lane, const WbtView *views, GpuRequest *const *requests, int n,
				 const unsigned char *staging, unsigned char *there)
{
	GpuSmallItem items[GPU_SMALL_BATCH];

	if (!gpu_ok(&lane->stream))
		return;
	for (int i = 0; i < n; i++)
	{
		const GpuRequest *r = requests[i];
		const GkInterval *intervals = (const GkInterval *) (staging + r->input);
		GpuSmallItem *item = &items[i];

		item->view = views[i];
		item->scan.intervals = intervals;
		item->scan.words = r->words ? (const uint64_t *) (intervals + 1) : NULL;
		item->scan.n = r->n;
		item->scan.next = r->next;
		item->scan.inside = r->inside;
		item->scan.at = r->at;
		item->cap = (int32_t) r->cap;
		item->forward = r->forward;
		item->request = (GpuRequest *) (there + ((const unsigned char *) r - staging));
		item->out = (GkEntry *) (there + r->output);
		if (r->forward ? r->next < r->n : r->next > 0)
		{
			if (!wbt_scan_interval(&item->scan, r->forward ? r->next : r->next - 1, r->forward, &item->first))
			{
				item->first.lo.w0 = item->first.lo.w1 = item->first.lo.t = UINT64_MAX;
				item->first.hi.w0 = item->first.hi.w1 = item->first.hi.t = 0;
			}
		}
		item->scan.intervals = (const GkInterval *) (there + r->input);
		if (r->words)
			item->scan.words = (const uint64_t *) (item->scan.intervals + 1);
	}
	if (n == 1)
		gpu_small_start<1>(lane, items, n);
	else if (n <= 8)
		gpu_small_start<8>(lane, items, n);
	else
		gpu_small_start<GPU_SMALL_BATCH>(lane, items, n);
}

#endif /* GPU_SCAN_H */
