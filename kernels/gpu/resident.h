/*-------------------------------------------------------------------------
 *
 * resident.h
 *	  Small scan requests: answered by a resident kernel, where they lie.
 *
 * A launch takes longer than the lookup of a key, on both sides of the bus.  So
 * a kernel of a few blocks stays on the GPU while requests keep coming, each
 * block looking at a slot of its own on a board in host memory (board.h).  The host
 * posts a request by writing the slot; the block reads the rest from the request's
 * place in the staging memory, answers it there, and acknowledges the slot.
 *
 * No kernel stays for longer than GPU_BOARD_LIFE_NS: whatever waits for the whole
 * device waits no longer than two of them take, for the next one may be in the
 * stream already.
 *
 * A block locates its request's intervals by tiles (tile.h), a sum over the
 * numbers of their entries says which is the i-th, and each thread writes some
 * of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RESIDENT_H
#define GPU_RESIDENT_H

#include "kernels/gpu/board.h"
#include "kernels/gpu/scan.h"
#ifndef GPU_EMULATED
#include "kernels/btree/probe_tile.h"
#endif

/* A block without posts for so long looks less often. */
#define GPU_RESIDENT_DROWSY_NS 100000
#define GPU_RESIDENT_DOZE_NS 1000

/* The host asks the driver for errors at every so many polls. */
#define GPU_RESIDENT_POLLS 256

/* Words of a message, and what they hold; offsets into the staging memory are in units of 8 bytes. */
enum GpuResidentWord
{
	RESIDENT_REQUEST, /* offset */
	RESIDENT_INPUT,   /* offset */
	RESIDENT_OUTPUT,  /* offset */
	RESIDENT_ROOT,
	RESIDENT_ENTRIES, /* of the tree */
	RESIDENT_TREE,    /* height | key words << 8 | forward << 16 | words << 17 | spelled << 18 */
	RESIDENT_SCAN,    /* n | next << 16 */
	RESIDENT_ROOM,    /* cap | batch << 16 */
	/* if spelled, the first interval of a tree of one key word; else it is in first[slot] */
	RESIDENT_LO,                   /* w0, t, of two words each */
	RESIDENT_HI = RESIDENT_LO + 4, /* likewise */
	RESIDENT_WORDS = RESIDENT_HI + 4
};

static_assert(RESIDENT_WORDS == GPU_BOARD_WORDS, "a message fills a slot");

#define GPU_RESIDENT_FORWARD (1u << 16)
#define GPU_RESIDENT_HAS_WORDS (1u << 17)
#define GPU_RESIDENT_SPELLED (1u << 18)

/* The board, and what does not find room in a slot; in host memory. */
struct GpuResidentBoard
{
	GpuBoard board;
	GpudsInterval first[GPU_BOARD_SLOTS]; /* the interval that the scan is at, less what it has
										* seen of it; lo > hi: none */
};

struct GpuResident
{
	GpuStream stream;
	GpuPoster poster;
	GpuResidentBoard *board;       /* as the host sees it */
	GpuResidentBoard *board_there; /* ... and the device */
	GpuBoardState *state;          /* device memory */
	unsigned char *staging;        /* as the host sees it */
	unsigned char *there;          /* ... and the device */
	uint32_t polls;
};

/* A request as a block sees it; pointers are the device's. */
struct GpuResidentItem
{
	BtreeView view;
	GpudsScan scan;
	GpudsInterval first;
	GpuRequest *request;
	GpudsEntry *out;
	int32_t cap;
	int32_t batch;
	bool forward;
};

/* Entry o of the output, which is the k-th of an interval. */
GPU_FN GpudsEntry
gpu_resident_write(const GpuResidentItem &item, GpuStart start, uint64_t k, int64_t o)
{
	BtreePosition p;
	GpudsEntry e;

	gpu_scan_position(&item.view, start, k, item.forward, &p);
	e = btree_leaf_entry(btree_node(item.view.base, p.leaf), p.place, item.view.nwords);
	item.out[o] = e;
	return e;
}

/* The request's answer but for done; at and last belong to the last entry of the output. */
GPU_FN void
gpu_resident_answer(const GpuResidentItem &item, int n, int64_t found, int last, const GpudsEntry &at,
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
	r->batch = (uint32_t) item.batch;
	r->bus_bytes = RESIDENT_WORDS * sizeof(uint64_t) +
				   (uint64_t) (n > 1 ? n : 0) * (item.scan.words ? sizeof(uint64_t) : sizeof(GpudsInterval)) +
				   (uint64_t) found * sizeof(GpudsEntry);
	r->launches = 0;
	r->device_ns = ns;
	r->status = GPU_OK;
}

/* Intervals left of a scan. */
GPU_FN int
gpu_resident_intervals(const GpuResidentItem &item)
{
	if (item.view.height == 0)
		return 0;
	return (int) (item.forward ? item.scan.n - item.scan.next : item.scan.next);
}

/* The request that a message is about. */
GPU_FN void
gpu_resident_decode(GpuResidentItem *item, const uint32_t *word, const GpudsInterval *first,
					const unsigned char *base, unsigned char *there)
{
	uint32_t tree = word[RESIDENT_TREE];
	GpudsInterval *intervals = (GpudsInterval *) (there + (size_t) word[RESIDENT_INPUT] * 8);

	item->view.base = base;
	item->view.entries = word[RESIDENT_ENTRIES];
	item->view.root = word[RESIDENT_ROOT];
	item->view.height = (int) (tree & 0xFF);
	item->view.nwords = (int) (tree >> 8 & 0xFF);
	item->forward = (tree & GPU_RESIDENT_FORWARD) != 0;
	item->scan.intervals = intervals;
	item->scan.words = tree & GPU_RESIDENT_HAS_WORDS ? (const uint64_t *) (intervals + 1) : NULL;
	item->scan.n = word[RESIDENT_SCAN] & 0xFFFF;
	item->scan.next = word[RESIDENT_SCAN] >> 16;
	item->request = (GpuRequest *) (there + (size_t) word[RESIDENT_REQUEST] * 8);
	item->out = (GpudsEntry *) (there + (size_t) word[RESIDENT_OUTPUT] * 8);
	item->cap = (int32_t) (word[RESIDENT_ROOM] & 0xFFFF);
	item->batch = (int32_t) (word[RESIDENT_ROOM] >> 16);
	if (tree & GPU_RESIDENT_SPELLED)
	{
		item->first.lo.w0 = (uint64_t) word[RESIDENT_LO] << 32 | word[RESIDENT_LO + 1];
		item->first.lo.t = (uint64_t) word[RESIDENT_LO + 2] << 32 | word[RESIDENT_LO + 3];
		item->first.hi.w0 = (uint64_t) word[RESIDENT_HI] << 32 | word[RESIDENT_HI + 1];
		item->first.hi.t = (uint64_t) word[RESIDENT_HI + 2] << 32 | word[RESIDENT_HI + 3];
		item->first.lo.w1 = item->first.hi.w1 = 0;
	}
	else
		item->first = *first;
}

/*
 * The message of a request (gpu_is_small).  first takes the interval that the scan
 * is at.
 */
static inline void
gpu_resident_encode(const GpuResident *resident, const BtreeView *view, const GpuRequest *r, int batch,
					uint32_t *word, GpudsInterval *first)
{
	const GpudsInterval *intervals = (const GpudsInterval *) (resident->staging + r->input);
	GpudsScan scan;

	memset(first, 0, sizeof(*first));
	scan.intervals = intervals;
	scan.words = r->words ? (const uint64_t *) (intervals + 1) : NULL;
	scan.n = r->n;
	scan.next = r->next;
	scan.inside = r->inside;
	scan.at = r->at;
	if (r->forward ? r->next < r->n : r->next > 0)
	{
		if (!btree_scan_interval(&scan, r->forward ? r->next : r->next - 1, r->forward, first))
		{
			first->lo.w0 = first->lo.w1 = first->lo.t = UINT64_MAX;
			first->hi.w0 = first->hi.w1 = first->hi.t = 0;
		}
	}
	word[RESIDENT_REQUEST] = (uint32_t) ((size_t) ((const unsigned char *) r - resident->staging) / 8);
	word[RESIDENT_INPUT] = (uint32_t) (r->input / 8);
	word[RESIDENT_OUTPUT] = (uint32_t) (r->output / 8);
	word[RESIDENT_ROOT] = view->root;
	word[RESIDENT_ENTRIES] = (uint32_t) view->entries;
	word[RESIDENT_TREE] = (uint32_t) view->height | (uint32_t) view->nwords << 8 |
						  (r->forward ? GPU_RESIDENT_FORWARD : 0) | (r->words ? GPU_RESIDENT_HAS_WORDS : 0) |
						  (view->nwords == 1 ? GPU_RESIDENT_SPELLED : 0);
	word[RESIDENT_SCAN] = (uint32_t) r->n | (uint32_t) r->next << 16;
	word[RESIDENT_ROOM] = (uint32_t) r->cap | (uint32_t) batch << 16;
	word[RESIDENT_LO] = (uint32_t) (first->lo.w0 >> 32);
	word[RESIDENT_LO + 1] = (uint32_t) first->lo.w0;
	word[RESIDENT_LO + 2] = (uint32_t) (first->lo.t >> 32);
	word[RESIDENT_LO + 3] = (uint32_t) first->lo.t;
	word[RESIDENT_HI] = (uint32_t) (first->hi.w0 >> 32);
	word[RESIDENT_HI + 1] = (uint32_t) first->hi.w0;
	word[RESIDENT_HI + 2] = (uint32_t) (first->hi.t >> 32);
	word[RESIDENT_HI + 3] = (uint32_t) first->hi.t;
}

#ifdef GPU_EMULATED

/* Locate interval i of a small request, in scan order. */
static inline uint64_t
gpu_resident_locate(const GpuResidentItem &item, int i, GpuStart *start)
{
	const GpudsScan *scan = &item.scan;
	GpudsInterval interval = item.first;

	*start = 0;
	if (i > 0)
		interval = entry_scan_interval(scan, item.forward ? scan->next + i : scan->next - 1 - i);
	if (item.view.nwords == 1)
		return gpu_scan_locate(&item.view, &interval, item.forward, 1, start);
	return gpu_scan_locate(&item.view, &interval, item.forward, 2, start);
}

static inline void
gpu_resident_serve(const GpuResidentItem &item)
{
	int n = gpu_resident_intervals(item);
	int64_t found = 0;
	int last = 0;
	GpudsEntry at = { 0, 0, 0 };

	for (int i = 0; i < n && found < item.cap; i++)
	{
		GpuStart start;
		uint64_t count = gpu_resident_locate(item, i, &start);

		for (uint64_t k = 0; k < count && found < item.cap; k++)
			at = gpu_resident_write(item, start, k, found++);
		last = i;
	}
	gpu_resident_answer(item, n, found, last, at, 0);
	gpu_release_system(&item.request->done, 1);
}

/*
 * One thread that does as all blocks, one after the other: each of them leaves when
 * it has found nothing.
 */
struct GpuResidentVisit
{
	int number;
	uint32_t word[GPU_BOARD_WORDS];
	bool idle;

	int slot() const
	{
		return number;
	}

	uint64_t now() const
	{
		return idle ? UINT64_MAX : 0;
	}

	template <typename F> bool agree(const F &f) const
	{
		return f();
	}

	template <typename F> void once(const F &f) const
	{
		f();
	}

	template <typename F> bool one_says(const F &f) const
	{
		return f();
	}

	bool look(const uint64_t *slot, uint32_t post, const uint64_t *, uint32_t, bool *leaves)
	{
		/* a block before this one may have said so */
		*leaves = false;
		idle = false;
		for (int i = 0; i < GPU_BOARD_WORDS; i++)
		{
			idle |= slot[i] >> 32 != post;
			word[i] = (uint32_t) slot[i];
		}
		return !idle;
	}

	uint64_t load(const uint64_t *p) const
	{
		return *p;
	}

	uint32_t load_host(const uint32_t *p) const
	{
		return *p;
	}

	void store(uint64_t *p, uint64_t v) const
	{
		*p = v;
	}

	void store_host(uint32_t *p, uint32_t v) const
	{
		*p = v;
	}

	void announce() const
	{
	}

	void rest(uint64_t) const
	{
	}
};

/* The kernel's visit: everything that is posted. */
static inline void
gpu_resident_start(GpuResident *r, const unsigned char *base)
{
	GpuResidentBoard *board = r->board_there;

	for (int i = 0; i < GPU_BOARD_SLOTS && gpu_usable(&r->stream); i++)
	{
		GpuResidentVisit visit = { i, {}, false };

		gpu_board_stay(visit, &board->board, r->state, r->poster.kernel,
					   [&]
					   {
						   GpuResidentItem item;

						   gpu_resident_decode(&item, visit.word, &board->first[i], base, r->there);
						   gpu_resident_serve(item);
					   });
	}
}

#else

__device__ __forceinline__ uint64_t
gpu_nanoseconds(void)
{
	uint64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/*
 * Load a word of host memory, and from then on see what the host wrote before it,
 * and nodes that other kernels made before that.  A fence after an ordinary load
 * would do the same, but takes a microsecond.
 */
__device__ __forceinline__ uint64_t
gpu_resident_load(const uint64_t *p)
{
	uint64_t word;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
	return word;
}

/* Threads of a request; a pair of tiles locates an interval. */
#define GPU_RESIDENT_BLOCK 128
#define GPU_RESIDENT_PAIRS (GPU_RESIDENT_BLOCK / GPU_TILE / 2)

/* A place between entries, as a tile finds it. */
struct GpuResidentBound
{
	uint64_t rank;
	BtreeRef leaf;
	int place;
};

/* What the threads of a block share. */
struct GpuResidentShared
{
	GpuResidentItem item;
	uint32_t word[GPU_BOARD_WORDS];
	bool agreed;
	GpuResidentBound bounds[GPU_SMALL_INTERVALS][2];
	uint64_t offsets[GPU_SMALL_INTERVALS + 1];
	GpuStart starts[GPU_SMALL_INTERVALS];
};

/*
 * Both ends of the intervals of a small request, by all threads of a block, in
 * their order of being scanned.  A descent waits for one line a level.
 */
__device__ __forceinline__ void
gpu_resident_bounds(const GpuResidentItem &item, int n, GpuResidentBound (*bounds)[2])
{
	int pair = (int) threadIdx.x / GPU_TILE / 2;
	int end = (int) threadIdx.x / GPU_TILE % 2;

	for (int first = 0; first < n; first += GPU_RESIDENT_PAIRS)
	{
		int i = first + pair;
		GpudsInterval interval = item.first;
		GpuResidentBound bound;
		GpudsEntry x;

		if (i > 0 && i < n)
			interval = entry_scan_interval(&item.scan,
										   item.forward ? item.scan.next + i : item.scan.next - 1 - i);
		x = end ? btree_after(&interval.hi) : interval.lo;
		bound.rank = gpu_tile_lower_bound(item.view, x, &bound.leaf, &bound.place);
		/* an interval that ends before it begins has no entries */
		if (end && entry_less(&interval.hi, &interval.lo))
			bound.rank = 0;
		if (i < n && gpu_tile_lane() == 0)
			bounds[i][end] = bound;
	}
}

/* The number of an interval's entries, and where they are. */
__device__ __forceinline__ uint64_t
gpu_resident_count(const GpuResidentBound *bounds, bool forward, GpuStart *start)
{
	uint64_t count;
	uint64_t skip;

	if (bounds[0].rank >= bounds[1].rank)
		return 0;
	count = bounds[1].rank - bounds[0].rank;
	skip = forward ? 0 : count - 1;
	if (bounds[0].leaf == bounds[1].leaf)
		*start = (uint64_t) bounds[0].leaf << 32 | ((uint64_t) bounds[0].place + skip);
	else
		*start = bounds[0].rank + skip;
	return count;
}

/* Where the entries of each interval are, and how many are before them in the output; by a warp. */
__device__ __forceinline__ void
gpu_resident_offsets(const GpuResidentItem &item, int n, GpuResidentShared *shared)
{
	int i = (int) threadIdx.x;
	uint64_t count = i < n ? gpu_resident_count(shared->bounds[i], item.forward, &shared->starts[i]) : 0;

	shared->offsets[i + 1] = gpu_warp_inclusive_sum(count);
	if (i == 0)
		shared->offsets[0] = 0;
}

/* Answer a request, by all threads of a block. */
__device__ __forceinline__ void
gpu_resident_serve(GpuResidentShared *shared, uint64_t began)
{
	const GpuResidentItem &item = shared->item;
	int thread = (int) threadIdx.x;
	int n = gpu_resident_intervals(item);
	uint64_t total = 0;
	GpuStart start = 0;
	int64_t found;
	int last = 0;
	GpudsEntry at = { 0, 0, 0 };

	gpu_resident_bounds(item, n, shared->bounds);
	__syncthreads();
	if (n == 1)
		total = gpu_resident_count(shared->bounds[0], item.forward, &start);
	else if (n > 1)
	{
		if (thread < GPU_SMALL_INTERVALS)
			gpu_resident_offsets(item, n, shared);
		__syncthreads();
		total = shared->offsets[GPU_SMALL_INTERVALS];
	}
	found = total < (uint64_t) item.cap ? (int64_t) total : item.cap;
	for (int64_t o = thread; o < found; o += GPU_RESIDENT_BLOCK)
	{
		uint64_t k = (uint64_t) o;

		if (n > 1)
		{
			last = (int) gpu_scan_find(shared->offsets, n, k);
			start = shared->starts[last];
			k -= shared->offsets[last];
		}
		at = gpu_resident_write(item, start, k, o);
	}
	__syncthreads();
	/* the thread that wrote the last entry knows it */
	if (thread == (found > 0 ? (int) ((found - 1) % GPU_RESIDENT_BLOCK) : 0))
	{
		gpu_resident_answer(item, n, found, last, at, gpu_nanoseconds() - began);
		gpu_release_system(&item.request->done, 1);
	}
}

/* A block as board.h wants it; its first warp looks at the board, and agrees for all. */
struct GpuResidentMachine
{
	GpuResidentShared *shared;

	__device__ __forceinline__ int slot() const
	{
		return (int) blockIdx.x;
	}

	__device__ __forceinline__ uint64_t now() const
	{
		return gpu_nanoseconds();
	}

	template <typename F> __device__ __forceinline__ bool agree(const F &f) const
	{
		if (threadIdx.x < 32)
		{
			bool answer = f();

			if (threadIdx.x == 0)
				shared->agreed = answer;
		}
		__syncthreads();
		return shared->agreed;
	}

	template <typename F> __device__ __forceinline__ void once(const F &f) const
	{
		if (threadIdx.x == 0)
			f();
	}

	template <typename F> __device__ __forceinline__ bool one_says(const F &f) const
	{
		return __any_sync(GPU_ALL_LANES, threadIdx.x == 0 && f()) != 0;
	}

	/* A lane a word, and one for *leaving: all of them wait together. */
	__device__ __forceinline__ bool look(const uint64_t *slot, uint32_t number, const uint64_t *leaving,
										 uint32_t kernel, bool *leaves) const
	{
		int lane = (int) threadIdx.x;
		uint64_t word = 0;

		if (lane <= GPU_BOARD_WORDS)
			word = gpu_resident_load(lane < GPU_BOARD_WORDS ? &slot[lane] : leaving);
		*leaves = __any_sync(GPU_ALL_LANES, lane == GPU_BOARD_WORDS && word == kernel) != 0;
		if (!__all_sync(GPU_ALL_LANES, lane >= GPU_BOARD_WORDS || (uint32_t) (word >> 32) == number))
			return false;
		if (lane < GPU_BOARD_WORDS)
			shared->word[lane] = (uint32_t) word;
		return true;
	}

	__device__ __forceinline__ uint64_t load(const uint64_t *p) const
	{
		return *(const volatile uint64_t *) p;
	}

	__device__ __forceinline__ uint32_t load_host(const uint32_t *p) const
	{
		return *(const volatile uint32_t *) p;
	}

	__device__ __forceinline__ void store(uint64_t *p, uint64_t v) const
	{
		*(volatile uint64_t *) p = v;
	}

	/*
	 * No fence: what the host is to see before it was written before the answer's
	 * (gpu_release_system), and what the block has read it has used.
	 */
	__device__ __forceinline__ void store_host(uint32_t *p, uint32_t v) const
	{
		*(volatile uint32_t *) p = v;
	}

	__device__ __forceinline__ void announce() const
	{
		__threadfence_system();
	}

	__device__ __forceinline__ void rest(uint64_t ns) const
	{
		if (blockIdx.x > 0 && ns > GPU_RESIDENT_DROWSY_NS)
			__nanosleep(GPU_RESIDENT_DOZE_NS);
	}
};

/* A block for each slot. */
__global__ void
__launch_bounds__(GPU_RESIDENT_BLOCK)
	gpu_resident_kernel(GpuResidentBoard *board, GpuBoardState *state, const unsigned char *base,
						unsigned char *there, uint32_t kernel)
{
	__shared__ GpuResidentShared shared;
	GpuResidentMachine machine = { &shared };

	gpu_board_stay(machine, &board->board, state, kernel,
				   [&]
				   {
					   if (threadIdx.x == 0)
						   gpu_resident_decode(&shared.item, shared.word, &board->first[blockIdx.x], base,
											   there);
					   __syncthreads();
					   gpu_resident_serve(&shared, gpu_nanoseconds());
					   __syncthreads();
				   });
}

static inline void
gpu_resident_start(GpuResident *r, const unsigned char *base)
{
	if (!gpu_ok(&r->stream))
		return;
	gpu_resident_kernel<<<GPU_BOARD_SLOTS, GPU_RESIDENT_BLOCK, 0, r->stream.stream>>>(r->board_there,
																					  r->state, base,
																					  r->there,
																					  r->poster.kernel);
	gpu_check(&r->stream, "launch", cudaGetLastError());
}

#endif

/* staging and there are the staging memory as host and device see it, in which all requests lie. */
static inline bool
gpu_resident_open(GpuResident *r, unsigned char *staging, unsigned char *there)
{
	memset((void *) r, 0, sizeof(*r));
	if (!gpu_stream_open(&r->stream, true))
		return false;
	r->staging = staging;
	r->there = there;
	r->board = (GpuResidentBoard *) gpu_host_alloc(sizeof(GpuResidentBoard));
	r->board_there = r->board ? (GpuResidentBoard *) gpu_device_address(r->board) : NULL;
	r->state = (GpuBoardState *) gpu_alloc(sizeof(GpuBoardState));
	if (r->board_there == NULL || r->state == NULL)
		return false;
	r->poster.board = &r->board->board;
	gpu_fill(&r->stream, r->state, 0, sizeof(GpuBoardState));
	return gpu_finish(&r->stream);
}

/* Asks the kernel to leave; its stream comes to an end then. */
static inline void
gpu_resident_end(GpuResident *r)
{
	if (r->board)
		gpu_board_end(&r->board->board);
}

/* The kernel has left (gpu_quiet), or there was none. */
static inline void
gpu_resident_close(GpuResident *r)
{
	gpu_free(r->state, sizeof(GpuBoardState));
	gpu_host_free(r->board);
	gpu_stream_close(&r->stream);
	memset((void *) r, 0, sizeof(*r));
}

/* A slot for a request, -1: none is free. */
static inline int
gpu_resident_slot(const GpuResident *r)
{
	return gpu_board_slot(&r->poster);
}

/* Post a request, one of batch, in a free slot.  When all are posted, gpu_resident_keep must follow. */
static inline void
gpu_resident_post(GpuResident *resident, int slot, const BtreeView *view, const GpuRequest *r, int batch)
{
	uint32_t word[GPU_BOARD_WORDS];

	gpu_resident_encode(resident, view, r, batch, word, &resident->board->first[slot]);
	gpu_board_post(&resident->poster, slot, word);
}

/* Sees to it that a kernel serves what is posted; base is the pool's. */
static inline void
gpu_resident_keep(GpuResident *r, const unsigned char *base)
{
	if (gpu_board_follow(&r->poster))
		gpu_resident_start(r, base);
}

/*
 * Returns a bit for each slot that has become free.  If the device is lost,
 * stream.status says so.
 */
static inline uint32_t
gpu_resident_poll(GpuResident *r, const unsigned char *base)
{
	uint32_t ended;

	gpu_resident_keep(r, base);
	ended = gpu_board_collect(&r->poster);
	if (r->poster.busy != 0 && ++r->polls % GPU_RESIDENT_POLLS == 0)
		gpu_finished(&r->stream);
	return ended;
}

#endif /* GPU_RESIDENT_H */
