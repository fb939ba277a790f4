/*-------------------------------------------------------------------------
 *
 * persistent_kernel.h
 *	  The persistent kernel: answers small scan requests where they lie.
 *
 * Each block waits for the messages of its slot on the ring (request_ring.h).  A message
 * names a request and says all that is needed to begin with it; the block reads the
 * rest from the request's place in the staging memory, answers it there, and
 * acknowledges the slot.
 *
 * A block locates its request's intervals by tiles, or by a thread each if the probe knows no
 * tiles.  The exclusive sums of the numbers of their entries say which is the i-th, and each
 * thread writes some of them.  The view's structure chooses the probe (view.h) that it does so
 * with: all threads of a block go the same way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_PERSISTENT_KERNEL_H
#define GPU_PERSISTENT_KERNEL_H

#include "kernels/engine/request_ring.h"
#include "kernels/runtime/scan.h"
#include "kernels/runtime/view.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"

/* A block without posts for so long looks less often, after a pause each time. */
#define GPU_PERSISTENT_IDLE_NS 100000
#define GPU_PERSISTENT_PAUSE_NS 1000

/* Words of a message, and what they hold; offsets into the staging memory are in units of 8 bytes. */
enum GpuPersistentWord
{
	PERSISTENT_REQUEST, /* offset */
	PERSISTENT_INPUT,   /* offset */
	PERSISTENT_OUTPUT,  /* offset */
	PERSISTENT_ROOT,
	PERSISTENT_ENTRIES, /* of the tree */
	/* height | key words << 8 | forward << 16 | points << 17 | has first << 18 | structure << 24 */
	PERSISTENT_TREE,
	PERSISTENT_SCAN, /* n | next << 16 */
	PERSISTENT_CAP,  /* cap | batch << 16 */
	/* the first interval, if the tree has one key word; else it is in first[slot] */
	PERSISTENT_LO,                     /* w0, t, of two words each */
	PERSISTENT_HI = PERSISTENT_LO + 4, /* likewise */
	PERSISTENT_WORDS = PERSISTENT_HI + 4
};

static_assert(PERSISTENT_WORDS == GPU_RING_WORDS, "a message fills a slot");

#define GPU_PERSISTENT_FORWARD (1u << 16)
#define GPU_PERSISTENT_HAS_POINTS (1u << 17)
#define GPU_PERSISTENT_HAS_FIRST (1u << 18)

/* The ring, and what does not find room in a slot; in host memory. */
struct GpuPersistentRing
{
	GpuRing ring;
	/* the interval that the scan is at, less what it has seen of it; lo > hi: none */
	GpudsInterval first[GPU_RING_SLOTS];
};

/* A request as a block sees it; pointers are the device's. */
struct GpuPersistentItem
{
	GpudsView view;
	GpudsScan scan;
	GpudsInterval first;
	GpuRequest *request;
	GpudsEntry *out;
	int32_t cap;
	int32_t batch;
	bool forward;
};

/* Entry o of the output, which is the k-th of an interval. */
template <class Probe>
GPU_FN GpudsEntry
gpu_persistent_write(const typename Probe::View &view, const GpuPersistentItem &item, GpuStart start,
					 uint64_t k, int64_t o)
{
	typename Probe::Position p;
	GpudsEntry e;

	Probe::position(view, start, k, item.forward, &p);
	e = Probe::entry(view, p);
	item.out[o] = e;
	return e;
}

/* The request's answer but for done; at and last belong to the last entry of the output. */
GPU_FN void
gpu_persistent_answer(const GpuPersistentItem &item, int n, int64_t found, int last, const GpudsEntry &at,
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
	r->bus_bytes = PERSISTENT_WORDS * sizeof(uint64_t) +
				   (uint64_t) (n > 1 ? n : 0) *
					   (item.scan.points ? sizeof(uint64_t) : sizeof(GpudsInterval)) +
				   (uint64_t) found * sizeof(GpudsEntry);
	r->launches = 0;
	r->device_ns = ns;
	r->status = GPU_OK;
}

/* Intervals left of a scan. */
GPU_FN int
gpu_persistent_intervals(const GpuPersistentItem &item)
{
	if (item.view.height == 0)
		return 0;
	return (int) (item.forward ? item.scan.n - item.scan.next : item.scan.next);
}

/* The request that a message is about. */
GPU_FN void
gpu_persistent_decode(GpuPersistentItem *item, const uint32_t *word, const GpudsInterval *first,
					  const unsigned char *base, unsigned char *device_staging)
{
	uint32_t tree = word[PERSISTENT_TREE];
	GpudsInterval *intervals = (GpudsInterval *) (device_staging + (size_t) word[PERSISTENT_INPUT] * 8);

	item->view.base = base;
	item->view.entries = word[PERSISTENT_ENTRIES];
	item->view.root = word[PERSISTENT_ROOT];
	item->view.height = (int) (tree & 0xFF);
	item->view.nwords = (int) (tree >> 8 & 0xFF);
	item->view.structure = tree >> 24;
	item->forward = (tree & GPU_PERSISTENT_FORWARD) != 0;
	item->scan.intervals = intervals;
	item->scan.points = tree & GPU_PERSISTENT_HAS_POINTS ? (const uint64_t *) (intervals + 1) : NULL;
	item->scan.n = word[PERSISTENT_SCAN] & 0xFFFF;
	item->scan.next = word[PERSISTENT_SCAN] >> 16;
	item->request = (GpuRequest *) (device_staging + (size_t) word[PERSISTENT_REQUEST] * 8);
	item->out = (GpudsEntry *) (device_staging + (size_t) word[PERSISTENT_OUTPUT] * 8);
	item->cap = (int32_t) (word[PERSISTENT_CAP] & 0xFFFF);
	item->batch = (int32_t) (word[PERSISTENT_CAP] >> 16);
	if (tree & GPU_PERSISTENT_HAS_FIRST)
	{
		item->first.lo.w0 = (uint64_t) word[PERSISTENT_LO] << 32 | word[PERSISTENT_LO + 1];
		item->first.lo.t = (uint64_t) word[PERSISTENT_LO + 2] << 32 | word[PERSISTENT_LO + 3];
		item->first.hi.w0 = (uint64_t) word[PERSISTENT_HI] << 32 | word[PERSISTENT_HI + 1];
		item->first.hi.t = (uint64_t) word[PERSISTENT_HI + 2] << 32 | word[PERSISTENT_HI + 3];
		item->first.lo.w1 = item->first.hi.w1 = 0;
	}
	else
		item->first = *first;
}

#ifdef GPU_EMULATED

/* Locate interval i of a small request, in scan order. */
template <class Probe>
static inline uint64_t
gpu_persistent_locate(const typename Probe::View &view, const GpuPersistentItem &item, int i, GpuStart *start)
{
	const GpudsScan *scan = &item.scan;
	GpudsInterval interval = item.first;

	*start = 0;
	if (i > 0)
		interval = entry_scan_interval(scan, item.forward ? scan->next + i : scan->next - 1 - i);
	return Probe::locate(view, &interval, item.forward, start);
}

template <class Probe>
static inline void
gpu_persistent_answer_with(const GpuPersistentItem &item)
{
	typename Probe::View view = Probe::open(item.view);
	int n = gpu_persistent_intervals(item);
	int64_t found = 0;
	int last = 0;
	GpudsEntry at = { 0, 0, 0 };

	for (int i = 0; i < n && found < item.cap; i++)
	{
		GpuStart start;
		uint64_t count = gpu_persistent_locate<Probe>(view, item, i, &start);

		for (uint64_t k = 0; k < count && found < item.cap; k++)
			at = gpu_persistent_write<Probe>(view, item, start, k, found++);
		last = i;
	}
	gpu_persistent_answer(item, n, found, last, at, 0);
	gpu_release_system(&item.request->done, 1);
}

static inline void
gpu_persistent_serve(const GpuPersistentItem &item)
{
	switch (item.view.structure)
	{
#define STRUCTURE_CASE(number, NAME, name, Name, title)       \
	case number:                                              \
		gpu_persistent_answer_with<Name##OnGpu::Probe>(item); \
		break;
		STRUCTURE_ROWS(STRUCTURE_CASE)
#undef STRUCTURE_CASE
	}
}

/*
 * One thread that does as all blocks, one after the other: each of them leaves when
 * it has found nothing.
 */
struct GpuPersistentVisit
{
	int number;
	uint32_t word[GPU_RING_WORDS];
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
		for (int i = 0; i < GPU_RING_WORDS; i++)
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

/*
 * Launch the kernel of a number.  ring, state and base, which is the pool's, are as
 * the device sees them.  Emulated, it serves all that is posted.
 */
static inline void
gpu_persistent_launch(GpuStream *s, GpuPersistentRing *ring, GpuRingState *state, const unsigned char *base,
					  unsigned char *device_staging, uint32_t kernel)
{
	for (int i = 0; i < GPU_RING_SLOTS && gpu_usable(s); i++)
	{
		GpuPersistentVisit visit = { i, {}, false };

		gpu_ring_residency(visit, &ring->ring, state, kernel,
						   [&]
						   {
							   GpuPersistentItem item;

							   gpu_persistent_decode(&item, visit.word, &ring->first[i], base,
													 device_staging);
							   gpu_persistent_serve(item);
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
gpu_persistent_load(const uint64_t *p)
{
	uint64_t word;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
	return word;
}

/* Threads of a request; a pair of tiles locates an interval. */
#define GPU_PERSISTENT_BLOCK 128
#define GPU_PERSISTENT_PAIRS (GPU_PERSISTENT_BLOCK / GPU_TILE / 2)

/* What the threads of a block share. */
struct GpuPersistentShared
{
	GpuPersistentItem item;
	uint32_t word[GPU_RING_WORDS];
	bool agreed;
	GpuBound bounds[GPU_SMALL_INTERVALS][2];
	uint64_t offsets[GPU_SMALL_INTERVALS + 1];
	GpuStart starts[GPU_SMALL_INTERVALS];
};

/*
 * Both ends of the intervals of a small request, by all threads of a block, in
 * their order of being scanned.
 */
template <class Probe>
__device__ __forceinline__ void
gpu_persistent_bounds(const typename Probe::View &view, const GpuPersistentItem &item, int n,
					  GpuBound (*bounds)[2])
{
	int pair = (int) threadIdx.x / GPU_TILE / 2;
	int end = (int) threadIdx.x / GPU_TILE % 2;

	for (int first = 0; first < n; first += GPU_PERSISTENT_PAIRS)
	{
		int i = first + pair;
		GpudsInterval interval = item.first;
		GpuBound bound;

		if (i > 0 && i < n)
			interval = entry_scan_interval(&item.scan,
										   item.forward ? item.scan.next + i : item.scan.next - 1 - i);
		bound = Probe::tile_bound(view, interval, end != 0);
		/* an interval that ends before it begins has no entries */
		if (end && entry_less(&interval.hi, &interval.lo))
			bound.rank = 0;
		if (i < n && threadIdx.x % GPU_TILE == 0)
			bounds[i][end] = bound;
	}
}

/* The number of an interval's entries, and where they are. */
template <class Probe>
__device__ __forceinline__ uint64_t
gpu_persistent_count(const GpuBound *bounds, bool forward, GpuStart *start)
{
	uint64_t count;

	if (bounds[0].rank >= bounds[1].rank)
		return 0;
	count = bounds[1].rank - bounds[0].rank;
	*start = Probe::start(bounds, forward ? 0 : count - 1);
	return count;
}

/* The same of interval i, in scan order, by a thread alone. */
template <class Probe>
__device__ __forceinline__ uint64_t
gpu_persistent_locate(const typename Probe::View &view, const GpuPersistentItem &item, int i, GpuStart *start)
{
	GpudsInterval interval = item.first;

	if (i > 0)
		interval = entry_scan_interval(&item.scan,
									   item.forward ? item.scan.next + i : item.scan.next - 1 - i);
	return Probe::locate(view, &interval, item.forward, start);
}

/* Where the entries of each interval are, and how many are before them in the output; by a warp. */
template <class Probe>
__device__ __forceinline__ void
gpu_persistent_offsets(const typename Probe::View &view, const GpuPersistentItem &item, int n,
					   GpuPersistentShared *shared)
{
	int i = (int) threadIdx.x;
	uint64_t count = 0;

	if constexpr (Probe::by_tiles)
		count = i < n ? gpu_persistent_count<Probe>(shared->bounds[i], item.forward, &shared->starts[i]) : 0;
	else
		count = i < n ? gpu_persistent_locate<Probe>(view, item, i, &shared->starts[i]) : 0;
	shared->offsets[i + 1] = gpu_warp_inclusive_sum(count);
	if (i == 0)
		shared->offsets[0] = 0;
}

/* Answer a request, by all threads of a block. */
template <class Probe>
__device__ __forceinline__ void
gpu_persistent_answer_with(GpuPersistentShared *shared, uint64_t began)
{
	const GpuPersistentItem &item = shared->item;
	typename Probe::View view = Probe::open(item.view);
	int thread = (int) threadIdx.x;
	int n = gpu_persistent_intervals(item);
	uint64_t total = 0;
	GpuStart start = 0;
	int64_t found;
	int last = 0;
	GpudsEntry at = { 0, 0, 0 };

	if constexpr (Probe::by_tiles)
	{
		gpu_persistent_bounds<Probe>(view, item, n, shared->bounds);
		__syncthreads();
		if (n == 1)
			total = gpu_persistent_count<Probe>(shared->bounds[0], item.forward, &start);
	}
	if (n > 1 || (n == 1 && !Probe::by_tiles))
	{
		if (thread < GPU_SMALL_INTERVALS)
			gpu_persistent_offsets<Probe>(view, item, n, shared);
		__syncthreads();
		total = shared->offsets[GPU_SMALL_INTERVALS];
		start = shared->starts[0];
	}
	found = total < (uint64_t) item.cap ? (int64_t) total : item.cap;
	for (int64_t o = thread; o < found; o += GPU_PERSISTENT_BLOCK)
	{
		uint64_t k = (uint64_t) o;

		if (n > 1)
		{
			last = (int) gpu_scan_find(shared->offsets, n, k);
			start = shared->starts[last];
			k -= shared->offsets[last];
		}
		at = gpu_persistent_write<Probe>(view, item, start, k, o);
	}
	__syncthreads();
	/* the thread that wrote the last entry knows it */
	if (thread == (found > 0 ? (int) ((found - 1) % GPU_PERSISTENT_BLOCK) : 0))
	{
		gpu_persistent_answer(item, n, found, last, at, gpu_nanoseconds() - began);
		gpu_release_system(&item.request->done, 1);
	}
}

__device__ __forceinline__ void
gpu_persistent_serve(GpuPersistentShared *shared, uint64_t began)
{
	switch (shared->item.view.structure)
	{
#define STRUCTURE_CASE(number, NAME, name, Name, title)                \
	case number:                                                       \
		gpu_persistent_answer_with<Name##OnGpu::Probe>(shared, began); \
		break;
		STRUCTURE_ROWS(STRUCTURE_CASE)
#undef STRUCTURE_CASE
	}
}

/* A block as request_ring.h wants it; its first warp looks at the ring, and agrees for all. */
struct GpuPersistentRuntime
{
	GpuPersistentShared *shared;

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

		if (lane <= GPU_RING_WORDS)
			word = gpu_persistent_load(lane < GPU_RING_WORDS ? &slot[lane] : leaving);
		*leaves = __any_sync(GPU_ALL_LANES, lane == GPU_RING_WORDS && word == kernel) != 0;
		if (!__all_sync(GPU_ALL_LANES, lane >= GPU_RING_WORDS || (uint32_t) (word >> 32) == number))
			return false;
		if (lane < GPU_RING_WORDS)
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
		if (blockIdx.x > 0 && ns > GPU_PERSISTENT_IDLE_NS)
			__nanosleep(GPU_PERSISTENT_PAUSE_NS);
	}
};

/* A block for each slot. */
__global__ void
__launch_bounds__(GPU_PERSISTENT_BLOCK)
	gpu_persistent_kernel(GpuPersistentRing *ring, GpuRingState *state, const unsigned char *base,
						  unsigned char *device_staging, uint32_t kernel)
{
	__shared__ GpuPersistentShared shared;
	GpuPersistentRuntime runtime = { &shared };

	gpu_ring_residency(runtime, &ring->ring, state, kernel,
					   [&]
					   {
						   if (threadIdx.x == 0)
							   gpu_persistent_decode(&shared.item, shared.word, &ring->first[blockIdx.x],
													 base, device_staging);
						   __syncthreads();
						   gpu_persistent_serve(&shared, gpu_nanoseconds());
						   __syncthreads();
					   });
}

static inline void
gpu_persistent_launch(GpuStream *s, GpuPersistentRing *ring, GpuRingState *state, const unsigned char *base,
					  unsigned char *device_staging, uint32_t kernel)
{
	if (!gpu_ok(s))
		return;
	gpu_persistent_kernel<<<GPU_RING_SLOTS, GPU_PERSISTENT_BLOCK, 0, s->stream>>>(ring, state, base,
																				  device_staging, kernel);
	gpu_check(s, "launch", cudaGetLastError());
}

#endif

#endif /* GPU_PERSISTENT_KERNEL_H */
