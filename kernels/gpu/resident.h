/*-------------------------------------------------------------------------
 *
 * resident.h
 *	  Small scan requests: answered by a resident kernel, where they lie.
 *
 * A launch takes longer than the lookup of a key, on both sides of the bus.  So
 * a kernel of a few blocks stays on the GPU while requests keep coming, each
 * block looking at a slot of its own on a board in host memory.  The host posts
 * a request by writing the slot; the block reads the rest from the request's
 * place in the staging memory, answers it there, and acknowledges the slot.
 *
 * A slot is 16 words of 8 bytes.  The upper half of each word is the number of
 * the post, the lower half a part of the message: as a word is written and read
 * as one, a block that sees the new number in all words has the whole message,
 * in one trip over the bus.
 *
 * The kernel leaves when nothing was posted for GPU_RESIDENT_IDLE_NS, and after
 * GPU_RESIDENT_LIFE_NS in any case: whatever waits for the whole device waits no
 * longer than that.  Its last block says so on the board; the host then launches
 * the next one if a post has not been acknowledged.  Blocks count the posts that
 * they have served in device memory, so the next one goes on where this one ended.
 *
 * A block locates its request's intervals by tiles (tile.h), a sum over the
 * numbers of their entries says which is the i-th, and each thread writes some
 * of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RESIDENT_H
#define GPU_RESIDENT_H

#include "kernels/gpu/scan.h"
#ifndef GPU_EMULATED
#include "kernels/gpu/tile.h"
#endif

/* Requests that can be under way at a time. */
#define GPU_RESIDENT_SLOTS 32

#define GPU_RESIDENT_IDLE_NS 1000000
#define GPU_RESIDENT_LIFE_NS 20000000

/* A block without posts for so long looks less often. */
#define GPU_RESIDENT_DROWSY_NS 100000
#define GPU_RESIDENT_DOZE_NS 1000

/* A block asks whether the kernel is to leave at every so many looks at its slot. */
#define GPU_RESIDENT_LOOKS 16

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

#define GPU_RESIDENT_FORWARD (1u << 16)
#define GPU_RESIDENT_HAS_WORDS (1u << 17)
#define GPU_RESIDENT_SPELLED (1u << 18)

/* What host and device tell each other; in host memory. */
struct GpuResidentBoard
{
	uint64_t slot[GPU_RESIDENT_SLOTS][RESIDENT_WORDS]; /* number of the post << 32 | word */
	GkInterval first[GPU_RESIDENT_SLOTS];              /* the interval that the scan is at, less what it has
												  * seen of it; lo > hi: none */
	uint32_t acknowledged[GPU_RESIDENT_SLOTS];         /* last post that was served */
	uint32_t gone;                                     /* the last kernel that has left */
	uint32_t leave;                                    /* not 0: the kernel is to leave */
};

/* What blocks tell each other; in device memory. */
struct GpuResidentState
{
	uint32_t served[GPU_RESIDENT_SLOTS]; /* last post that was served */
	uint64_t last;                       /* when */
	uint32_t leaving;                    /* the kernel that is leaving */
	uint32_t left;                       /* its blocks that have left */
};

struct GpuResident
{
	GpuStream stream;
	GpuResidentBoard *board;       /* as the host sees it */
	GpuResidentBoard *board_there; /* ... and the device */
	GpuResidentState *state;       /* device memory */
	unsigned char *staging;        /* as the host sees it */
	unsigned char *there;          /* ... and the device */
	uint32_t posted[GPU_RESIDENT_SLOTS];
	uint32_t busy;   /* a bit a slot: posted, and not known to be acknowledged */
	uint32_t kernel; /* number of the last one launched */
	uint32_t polls;
};

/* A request as a block sees it; pointers are the device's. */
struct GpuResidentItem
{
	WbtView view;
	GkScan scan;
	GkInterval first;
	GpuRequest *request;
	GkEntry *out;
	int32_t cap;
	int32_t batch;
	bool forward;
};

/* Entry o of the output, which is the k-th of an interval. */
GPU_FN GkEntry
gpu_resident_write(const GpuResidentItem &item, GpuStart start, uint64_t k, int64_t o)
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
gpu_resident_answer(const GpuResidentItem &item, int n, int64_t found, int last, const GkEntry &at,
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
				   (uint64_t) (n > 1 ? n : 0) * (item.scan.words ? sizeof(uint64_t) : sizeof(GkInterval)) +
				   (uint64_t) found * sizeof(GkEntry);
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
gpu_resident_decode(GpuResidentItem *item, const uint32_t *word, const GkInterval *first,
					const unsigned char *base, unsigned char *there)
{
	uint32_t tree = word[RESIDENT_TREE];
	GkInterval *intervals = (GkInterval *) (there + (size_t) word[RESIDENT_INPUT] * 8);

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
	item->out = (GkEntry *) (there + (size_t) word[RESIDENT_OUTPUT] * 8);
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
gpu_resident_encode(const GpuResident *resident, const WbtView *view, const GpuRequest *r, int batch,
					uint32_t *word, GkInterval *first)
{
	const GkInterval *intervals = (const GkInterval *) (resident->staging + r->input);
	GkScan scan;

	memset(first, 0, sizeof(*first));
	scan.intervals = intervals;
	scan.words = r->words ? (const uint64_t *) (intervals + 1) : NULL;
	scan.n = r->n;
	scan.next = r->next;
	scan.inside = r->inside;
	scan.at = r->at;
	if (r->forward ? r->next < r->n : r->next > 0)
	{
		if (!wbt_scan_interval(&scan, r->forward ? r->next : r->next - 1, r->forward, first))
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
gpu_resident_serve(const GpuResidentItem &item)
{
	int n = gpu_resident_intervals(item);
	int64_t found = 0;
	int last = 0;
	GkEntry at = { 0, 0, 0 };

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

/* The kernel's visit: everything that is posted. */
static inline void
gpu_resident_start(GpuResident *r, const unsigned char *base)
{
	GpuResidentBoard *board = r->board_there;

	for (int i = 0; i < GPU_RESIDENT_SLOTS && gpu_usable(&r->stream); i++)
	{
		uint32_t word[RESIDENT_WORDS];
		GpuResidentItem item;

		if (board->slot[i][0] >> 32 == r->state->served[i])
			continue;
		for (int k = 0; k < RESIDENT_WORDS; k++)
			word[k] = (uint32_t) board->slot[i][k];
		gpu_resident_decode(&item, word, &board->first[i], base, r->there);
		gpu_resident_serve(item);
		board->acknowledged[i] = ++r->state->served[i];
	}
	board->gone = r->kernel;
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
	WbtRef leaf;
	int place;
};

/* What the threads of a block share. */
struct GpuResidentShared
{
	GpuResidentItem item;
	uint32_t word[RESIDENT_WORDS];
	bool posted;
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
		GkInterval interval = item.first;
		GpuResidentBound bound;
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

	for (int d = 1; d < 32; d *= 2)
	{
		uint64_t before = __shfl_up_sync(GPU_ALL_LANES, count, d);

		if (i >= d)
			count += before;
	}
	shared->offsets[i + 1] = count;
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
	GkEntry at = { 0, 0, 0 };

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

/* Is the kernel to leave?  Block 0 decides. */
__device__ __forceinline__ bool
gpu_resident_leaves(const GpuResidentBoard *board, GpuResidentState *state, uint32_t kernel, uint64_t began)
{
	if (blockIdx.x == 0)
	{
		uint64_t now = gpu_nanoseconds();
		uint64_t last = *(volatile uint64_t *) &state->last;
		uint64_t since = last > began ? last : began;

		if (now - began > GPU_RESIDENT_LIFE_NS || (now > since && now - since > GPU_RESIDENT_IDLE_NS) ||
			*(const volatile uint32_t *) &board->leave != 0)
			*(volatile uint32_t *) &state->leaving = kernel;
	}
	return *(volatile uint32_t *) &state->leaving == kernel;
}

/* Wait for the block's next message, by a warp; false: the kernel leaves. */
__device__ __forceinline__ bool
gpu_resident_await(const GpuResidentBoard *board, GpuResidentState *state, uint32_t number, uint32_t kernel,
				   uint64_t began, GpuResidentShared *shared)
{
	int lane = (int) threadIdx.x;
	const uint64_t *slot = board->slot[blockIdx.x];
	uint64_t since = gpu_nanoseconds();

	for (unsigned looks = 1;; looks++)
	{
		uint64_t word = lane < RESIDENT_WORDS ? gpu_resident_load(&slot[lane]) : (uint64_t) number << 32;

		if (__all_sync(GPU_ALL_LANES, (uint32_t) (word >> 32) == number))
		{
			if (lane < RESIDENT_WORDS)
				shared->word[lane] = (uint32_t) word;
			return true;
		}
		if (looks % GPU_RESIDENT_LOOKS == 0 &&
			__any_sync(GPU_ALL_LANES, lane == 0 && gpu_resident_leaves(board, state, kernel, began)))
			return false;
		if (blockIdx.x > 0 && gpu_nanoseconds() - since > GPU_RESIDENT_DROWSY_NS)
			__nanosleep(GPU_RESIDENT_DOZE_NS);
	}
}

/* A block for each slot. */
__global__ void
__launch_bounds__(GPU_RESIDENT_BLOCK)
	gpu_resident_kernel(GpuResidentBoard *board, GpuResidentState *state, const unsigned char *base,
						unsigned char *there, uint32_t kernel)
{
	__shared__ GpuResidentShared shared;
	uint32_t number = state->served[blockIdx.x];
	uint64_t began = gpu_nanoseconds();

	for (;;)
	{
		if (threadIdx.x < 32)
		{
			bool posted = gpu_resident_await(board, state, number + 1, kernel, began, &shared);

			if (threadIdx.x == 0)
				shared.posted = posted;
		}
		__syncthreads();
		if (!shared.posted)
			break;
		if (threadIdx.x == 0)
			gpu_resident_decode(&shared.item, shared.word, &board->first[blockIdx.x], base, there);
		__syncthreads();
		gpu_resident_serve(&shared, gpu_nanoseconds());
		__syncthreads();
		number++;
		if (threadIdx.x == 0)
		{
			*(volatile uint64_t *) &state->last = gpu_nanoseconds();
			*(volatile uint32_t *) &board->acknowledged[blockIdx.x] = number;
		}
	}
	if (threadIdx.x == 0)
	{
		state->served[blockIdx.x] = number;
		__threadfence();
		if (atomicAdd(&state->left, 1) == gridDim.x - 1)
		{
			state->left = 0;
			gpu_release_system(&board->gone, kernel);
		}
	}
}

static inline void
gpu_resident_start(GpuResident *r, const unsigned char *base)
{
	if (!gpu_ok(&r->stream))
		return;
	gpu_resident_kernel<<<GPU_RESIDENT_SLOTS, GPU_RESIDENT_BLOCK, 0, r->stream.stream>>>(r->board_there,
																						 r->state, base,
																						 r->there, r->kernel);
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
	r->state = (GpuResidentState *) gpu_alloc(sizeof(GpuResidentState));
	if (r->board_there == NULL || r->state == NULL)
		return false;
	gpu_fill(&r->stream, r->state, 0, sizeof(GpuResidentState));
	return gpu_finish(&r->stream);
}

/* Ends the kernel first: nothing writes to the staging memory after this. */
static inline void
gpu_resident_close(GpuResident *r)
{
	if (r->board)
		__atomic_store_n(&r->board->leave, 1, __ATOMIC_RELEASE);
	gpu_finish(&r->stream);
	gpu_free(r->state, sizeof(GpuResidentState));
	gpu_host_free(r->board);
	gpu_stream_close(&r->stream);
	memset((void *) r, 0, sizeof(*r));
}

/* A slot for a request, -1: none is free. */
static inline int
gpu_resident_slot(const GpuResident *r)
{
	return r->busy == UINT32_MAX ? -1 : __builtin_ctz(~r->busy);
}

/* Post a request, one of batch, in a free slot.  When all are posted, gpu_resident_keep must follow. */
static inline void
gpu_resident_post(GpuResident *resident, int slot, const WbtView *view, const GpuRequest *r, int batch)
{
	uint64_t number = ++resident->posted[slot];
	uint32_t word[RESIDENT_WORDS];

	gpu_resident_encode(resident, view, r, batch, word, &resident->board->first[slot]);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (int i = 0; i < RESIDENT_WORDS; i++)
		__atomic_store_n(&resident->board->slot[slot][i], number << 32 | word[i], __ATOMIC_RELAXED);
	resident->busy |= 1u << slot;
}

/* Sees to it that a kernel serves what is posted; base is the pool's. */
static inline void
gpu_resident_keep(GpuResident *r, const unsigned char *base)
{
	if (r->busy != 0 && gpu_acquire_system(&r->board->gone) == r->kernel)
	{
		r->kernel++;
		gpu_resident_start(r, base);
	}
}

/*
 * Returns a bit for each slot that has become free.  If the device is lost,
 * stream.status says so, and busy which slots had no answer.
 */
static inline uint32_t
gpu_resident_poll(GpuResident *r, const unsigned char *base)
{
	uint32_t ended = 0;

	gpu_resident_keep(r, base);
	for (uint32_t left = r->busy; left != 0; left &= left - 1)
	{
		int slot = __builtin_ctz(left);

		if (gpu_acquire_system(&r->board->acknowledged[slot]) == r->posted[slot])
			ended |= 1u << slot;
	}
	r->busy &= ~ended;
	if (r->busy != 0 && ++r->polls % GPU_RESIDENT_POLLS == 0)
		gpu_finished(&r->stream);
	return ended;
}

#endif /* GPU_RESIDENT_H */
