/*-------------------------------------------------------------------------
 *
 * machine.h
 *	  The machine that the engine runs on: a GPU, or its emulation.
 *
 * Compiled by nvcc this is CUDA; compiled by a C++ compiler with GPU_EMULATED
 * defined it is the same on the CPU, where a launch is a loop that has ended
 * when the call returns.  This is the only file that knows the difference.
 *
 * All work goes to a GpuStream, in order.  Streams are independent of each
 * other; one thread uses a stream at a time.  Nothing here waits for the whole
 * device, and but for the functions named alloc and open nothing allocates.
 *
 * Errors stay with the stream: after the first one its status is not GPU_OK,
 * why says what happened, and everything else asked of it does nothing.  All
 * CUDA errors count as GPU_DEVICE_LOST: the context is lost for good, or a
 * program error shows.  What was asked before the error may go on: only gpu_quiet
 * tells, or the end of the context (gpu_reset).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_MACHINE_H
#define GPU_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef GPU_EMULATED
#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#else
#include <cuda_runtime.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <sched.h>
#endif

#include "kernels/core/entry.h"
#include "kernels/gpu/engine.h"

/* A member function that runs on the device (emulated: on the CPU). */
#ifdef GPU_EMULATED
#define GPU_FN inline
#else
#define GPU_FN __host__ __device__ __forceinline__
#endif

/* Threads of a block, if a launch does not say otherwise. */
#define GPU_BLOCK 256

/* Machine code is made for cards of this compute capability and later. */
#define GPU_LEAST_CAPABILITY 8

/* Items that one sort or scan can have. */
#define GPU_MAX_ITEMS INT32_MAX

struct GpuStream
{
#ifndef GPU_EMULATED
	cudaStream_t stream;
#endif
	uint32_t status; /* GpuStatus: GPU_OK or GPU_DEVICE_LOST */
	char why[200];   /* of the first error */
	void *temp;      /* device memory for sorts and scans: the owner
					   * sees to it that there is gpu_temp_bytes of it */
	size_t temp_bytes;
	int64_t temp_items; /* that temp_bytes are for, if the owner wants to know */
	uint32_t launches;  /* kernels since the owner set it to 0 */
	uint64_t bus_bytes; /* copied from and to the host, likewise */
};

struct GpuEvent
{
#ifdef GPU_EMULATED
	std::chrono::steady_clock::time_point at;
#else
	cudaEvent_t event;
#endif
};

/* What kind of card; fields as in GpuEngineInfo. */
struct GpuCard
{
	char name[128];
	int major;
	int minor;
	int driver;
	size_t memory_total;
	size_t memory_free;
	int multiprocessors;
	bool hopeless; /* there is none that could be used, now or later */
};

/*
 * Functions of one thread of a kernel.
 */

/* Add; returns what was there before. */
GPU_FN uint32_t
gpu_atomic_add(uint32_t *p, uint32_t v)
{
#ifdef __CUDA_ARCH__
	return atomicAdd(p, v);
#else
	return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}

GPU_FN uint32_t
gpu_atomic_or(uint32_t *p, uint32_t v)
{
#ifdef __CUDA_ARCH__
	return atomicOr(p, v);
#else
	return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
#endif
}

GPU_FN uint64_t
gpu_atomic_or64(uint64_t *p, uint64_t v)
{
#ifdef __CUDA_ARCH__
	return atomicOr((unsigned long long *) p, (unsigned long long) v);
#else
	return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
#endif
}

/* Add 1. */
GPU_FN void
gpu_atomic_count(uint32_t *p)
{
#ifdef __CUDA_ARCH__
	unsigned mask = __activemask();

	if ((threadIdx.x & 31) == (unsigned) __ffs((int) mask) - 1)
		atomicAdd(p, (uint32_t) __popc(mask));
#else
	__atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
#endif
}

/*
 * Is this the last of n threads of a launch to come here?  All of them must; what
 * they wrote before is seen by the last.
 */
GPU_FN bool
gpu_last_of(uint32_t *count, uint32_t n)
{
#ifdef __CUDA_ARCH__
	unsigned mask = __activemask();
	uint32_t here = (uint32_t) __popc(mask);
	bool last = false;

	__threadfence();
	__syncwarp(mask);
	if ((threadIdx.x & 31) == (unsigned) __ffs((int) mask) - 1)
		last = atomicAdd(count, here) + here == n;
	if (last)
		__threadfence();
	return last;
#else
	return __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL) == n;
#endif
}

/*
 * Bits of all threads that are here together, a warp at most; for one of them
 * (*first) on behalf of all.
 */
GPU_FN uint64_t
gpu_warp_or(uint64_t v, bool *first)
{
#ifdef __CUDA_ARCH__
	unsigned mask = __activemask();
	uint32_t low = __reduce_or_sync(mask, (uint32_t) v);
	uint32_t high = __reduce_or_sync(mask, (uint32_t) (v >> 32));

	*first = (threadIdx.x & 31) == (unsigned) __ffs((int) mask) - 1;
	return (uint64_t) high << 32 | low;
#else
	*first = true;
	return v;
#endif
}

/*
 * Bits of 8 neighbouring threads, the first of which has a number divisible by
 * 8; emulated, there is but one.
 */
GPU_FN unsigned
gpu_tile_or(unsigned v)
{
#ifdef __CUDA_ARCH__
	return __reduce_or_sync(0xFFu << (threadIdx.x & 24), v);
#else
	return v;
#endif
}

/* Store into host memory; what this thread wrote before is seen by whoever sees v. */
GPU_FN void
gpu_release_system(uint32_t *p, uint32_t v)
{
#ifdef __CUDA_ARCH__
	__threadfence_system();
	*(volatile uint32_t *) p = v;
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

/* Load on the host what gpu_release_system stores. */
static inline uint32_t
gpu_acquire_system(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/*
 * Errors.
 */

static inline bool
gpu_ok(const GpuStream *s)
{
	return s->status == GPU_OK;
}

static inline void
gpu_fail(GpuStream *s, const char *what, const char *error)
{
	if (s->status != GPU_OK)
		return;
	s->status = GPU_DEVICE_LOST;
	snprintf(s->why, sizeof(s->why), "%s: %s", what, error);
}

#ifdef GPU_EMULATED

/* Set by gpu_inject_fault: all calls fail from then on, as after a sticky error. */
static std::atomic<bool> gpu_emulated_lost(false);

static inline bool
gpu_usable(GpuStream *s)
{
	if (gpu_emulated_lost)
		gpu_fail(s, "kernel", "an illegal memory access was encountered (emulated)");
	return gpu_ok(s);
}

#else

static inline bool
gpu_check(GpuStream *s, const char *what, cudaError_t error)
{
	if (error != cudaSuccess)
		gpu_fail(s, what, cudaGetErrorString(error));
	return gpu_ok(s);
}

#endif

/*
 * The card.  Each thread that uses it calls gpu_use once.
 */

/*
 * To be called before anything else.  The driver loads a kernel when it is first
 * launched, if it is let, and waits for kernels that are running then: for one
 * that stays.  So all are loaded at once, whatever the environment says.
 */
static inline void
gpu_load_all(void)
{
#ifndef GPU_EMULATED
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
#endif
}

/* Is there a card of this number?  If not, why says why not. */
static inline bool
gpu_card(int ordinal, GpuCard *card, char *why, size_t whylen)
{
	memset(card, 0, sizeof(*card));
#ifdef GPU_EMULATED
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	(void) ordinal;
	if (visible && *visible == '\0')
	{
		snprintf(why, whylen, "no CUDA-capable device is detected (emulated)");
		card->hopeless = true;
		return false;
	}
	snprintf(card->name, sizeof(card->name), "emulated GPU");
	card->memory_total = card->memory_free = (size_t) 1 << 30;
	card->multiprocessors = 1;
	return true;
#else
	cudaDeviceProp prop;
	cudaError_t error;
	int n = 0;

	error = cudaGetDeviceCount(&n);
	if (error == cudaSuccess && ordinal >= n)
		error = cudaErrorNoDevice;
	if (error == cudaSuccess)
		error = cudaSetDevice(ordinal);
	if (error == cudaSuccess)
		error = cudaGetDeviceProperties(&prop, ordinal);
	if (error == cudaSuccess)
		error = cudaDriverGetVersion(&card->driver);
	if (error == cudaSuccess)
		error = cudaMemGetInfo(&card->memory_free, &card->memory_total);
	if (error != cudaSuccess)
	{
		snprintf(why, whylen, "%s", cudaGetErrorString(error));
		card->hopeless = error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
						 error == cudaErrorStubLibrary;
		return false;
	}
	if (prop.major < GPU_LEAST_CAPABILITY)
	{
		snprintf(why, whylen, "%s has compute capability %d.%d, %d.0 is needed", prop.name, prop.major,
				 prop.minor, GPU_LEAST_CAPABILITY);
		card->hopeless = true;
		return false;
	}
	memcpy(card->name, prop.name, sizeof(card->name) - 1);
	card->major = prop.major;
	card->minor = prop.minor;
	card->multiprocessors = prop.multiProcessorCount;
	return true;
#endif
}

static inline bool
gpu_use(int ordinal)
{
#ifdef GPU_EMULATED
	(void) ordinal;
	return !gpu_emulated_lost;
#else
	return cudaSetDevice(ordinal) == cudaSuccess;
#endif
}

/*
 * Streams.  Of two streams with work waiting, the one that is urgent goes first.
 */

static inline bool
gpu_stream_open(GpuStream *s, bool urgent)
{
	memset((void *) s, 0, sizeof(*s));
	s->status = GPU_OK;
#ifdef GPU_EMULATED
	(void) urgent;
	return gpu_usable(s);
#else
	int least = 0;
	int greatest = 0;

	return gpu_check(s, "stream priorities", cudaDeviceGetStreamPriorityRange(&least, &greatest)) &&
		   gpu_check(s, "stream",
					 cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking,
												  urgent ? greatest : least));
#endif
}

static inline void
gpu_stream_close(GpuStream *s)
{
#ifndef GPU_EMULATED
	if (s->stream)
		cudaStreamDestroy(s->stream);
#endif
	memset((void *) s, 0, sizeof(*s));
}

/* Wait until all that was asked of the stream is done. */
static inline bool
gpu_finish(GpuStream *s)
{
#ifdef GPU_EMULATED
	return gpu_usable(s);
#else
	return gpu_ok(s) && gpu_check(s, "kernel", cudaStreamSynchronize(s->stream));
#endif
}

/* Is all done?  An error is also an end. */
static inline bool
gpu_finished(GpuStream *s)
{
#ifdef GPU_EMULATED
	gpu_usable(s);
	return true;
#else
	cudaError_t error;

	if (!gpu_ok(s))
		return true;
	error = cudaStreamQuery(s->stream);
	if (error == cudaErrorNotReady)
		return false;
	gpu_check(s, "kernel", error);
	return true;
#endif
}

/* Is nothing under way any more, be it done or, after an error, given up by the device? */
static inline bool
gpu_quiet(const GpuStream *s)
{
#ifdef GPU_EMULATED
	(void) s;
	return true;
#else
	return s->stream == NULL || cudaStreamQuery(s->stream) != cudaErrorNotReady;
#endif
}

/*
 * Ends the thread's context, with all streams and memory of the device.  True:
 * nothing that was asked of it goes on.
 */
static inline bool
gpu_reset(void)
{
#ifdef GPU_EMULATED
	gpu_emulated_lost = false;
	return true;
#else
	return cudaDeviceReset() == cudaSuccess;
#endif
}

static inline bool
gpu_event_open(GpuStream *s, GpuEvent *e)
{
#ifdef GPU_EMULATED
	*e = GpuEvent();
	return gpu_usable(s);
#else
	return gpu_ok(s) && gpu_check(s, "event", cudaEventCreate(&e->event));
#endif
}

static inline void
gpu_event_close(GpuEvent *e)
{
#ifdef GPU_EMULATED
	(void) e;
#else
	if (e->event)
		cudaEventDestroy(e->event);
	e->event = NULL;
#endif
}

static inline void
gpu_event_record(GpuStream *s, GpuEvent *e)
{
#ifdef GPU_EMULATED
	if (gpu_usable(s))
		e->at = std::chrono::steady_clock::now();
#else
	if (gpu_ok(s))
		gpu_check(s, "event", cudaEventRecord(e->event, s->stream));
#endif
}

/* Nanoseconds between two events that have happened. */
static inline uint64_t
gpu_event_ns(GpuStream *s, const GpuEvent *from, const GpuEvent *to)
{
#ifdef GPU_EMULATED
	return gpu_usable(s)
			   ? (uint64_t) std::chrono::duration_cast<std::chrono::nanoseconds>(to->at - from->at).count()
			   : 0;
#else
	float ms = 0;

	if (gpu_ok(s))
		gpu_check(s, "event", cudaEventElapsedTime(&ms, from->event, to->event));
	return (uint64_t) ((double) ms * 1e6);
#endif
}

/*
 * Memory.
 */

/* Device memory, aligned to a page; NULL: there is not so much. */
static inline void *
gpu_alloc(size_t bytes)
{
#ifdef GPU_EMULATED
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
#else
	void *p = NULL;

	if (cudaMalloc(&p, bytes) != cudaSuccess)
	{
		/* not a sticky error: forget it */
		(void) cudaGetLastError();
		return NULL;
	}
	return p;
#endif
}

static inline void
gpu_free(void *p, size_t bytes)
{
	if (p == NULL)
		return;
#ifdef GPU_EMULATED
	munmap(p, bytes);
#else
	(void) bytes;
	cudaFree(p);
#endif
}

/* Host memory that the device can use, too; NULL: there is not so much. */
static inline void *
gpu_host_alloc(size_t bytes)
{
#ifdef GPU_EMULATED
	return calloc(1, bytes);
#else
	void *p = NULL;

	if (cudaHostAlloc(&p, bytes, cudaHostAllocMapped | cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return NULL;
	}
	memset(p, 0, bytes);
	return p;
#endif
}

static inline void
gpu_host_free(void *p)
{
#ifdef GPU_EMULATED
	free(p);
#else
	if (p)
		cudaFreeHost(p);
#endif
}

/* Make existing host memory, whole pages, usable by the device and fast to copy. */
static inline bool
gpu_register(void *p, size_t bytes, char *why, size_t whylen)
{
#ifdef GPU_EMULATED
	(void) p;
	(void) bytes;
	(void) why;
	(void) whylen;
	return true;
#else
	cudaError_t error = cudaHostRegister(p, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);

	if (error != cudaSuccess)
	{
		snprintf(why, whylen, "%s", cudaGetErrorString(error));
		(void) cudaGetLastError();
	}
	return error == cudaSuccess;
#endif
}

static inline void
gpu_unregister(void *p)
{
#ifdef GPU_EMULATED
	(void) p;
#else
	cudaHostUnregister(p);
#endif
}

/* Where the device sees registered or host-allocated memory; NULL: it does not. */
static inline void *
gpu_device_address(void *host)
{
#ifdef GPU_EMULATED
	return host;
#else
	void *p = NULL;

	if (cudaHostGetDevicePointer(&p, host, 0) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return NULL;
	}
	return p;
#endif
}

/* Copies between host memory and the device, either way.  The host's end must be registered. */
static inline void
gpu_copy_bus(GpuStream *s, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return;
#ifdef GPU_EMULATED
	if (gpu_usable(s))
		memcpy(to, from, bytes);
#else
	if (gpu_ok(s))
		gpu_check(s, "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s->stream));
#endif
	s->bus_bytes += bytes;
}

/* Copies inside the device. */
static inline void
gpu_copy(GpuStream *s, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return;
#ifdef GPU_EMULATED
	if (gpu_usable(s))
		memcpy(to, from, bytes);
#else
	if (gpu_ok(s))
		gpu_check(s, "copy", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s->stream));
#endif
}

/* Sets all bytes. */
static inline void
gpu_fill(GpuStream *s, void *to, int byte, size_t bytes)
{
	if (bytes == 0)
		return;
#ifdef GPU_EMULATED
	if (gpu_usable(s))
		memset(to, byte, bytes);
#else
	if (gpu_ok(s))
		gpu_check(s, "fill", cudaMemsetAsync(to, byte, bytes, s->stream));
#endif
}

/*
 * Launches.  f is an object with a GPU_FN void operator()(int64_t i) const; it
 * is copied to the device.  It is called once for each i from 0 to n - 1, in
 * any order.
 */

#ifndef GPU_EMULATED
template <typename F, int block>
__global__ void
__launch_bounds__(block) gpu_kernel(const F f, int64_t n)
{
	int64_t i = (int64_t) blockIdx.x * block + threadIdx.x;

	if (i < n)
		f(i);
}
#endif

template <int block = GPU_BLOCK, typename F>
static inline void
gpu_launch(GpuStream *s, int64_t n, const F &f)
{
	if (n <= 0)
		return;
	s->launches++;
#ifdef GPU_EMULATED
	if (!gpu_usable(s))
		return;
	for (int64_t i = 0; i < n; i++)
		f(i);
#else
	if (!gpu_ok(s))
		return;
	gpu_kernel<F, block><<<(unsigned) ((n + block - 1) / block), block, 0, s->stream>>>(f, n);
	gpu_check(s, "launch", cudaGetLastError());
#endif
}

/*
 * A launch of one block, whose threads go through a function together.  f is an
 * object with a GPU_FN void operator()(GpuBlock &block) const.
 */
#define GPU_BLOCK_THREADS 512

struct GpuBlock
{
	unsigned char *shared; /* as many bytes as the launch says */
	uint64_t *sums;        /* 32 words for scan */

	/* Calls g(i) for each i from 0 to n - 1, each in one of the threads, and waits for all. */
	template <typename G> GPU_FN void each(int64_t n, const G &g)
	{
#ifdef __CUDA_ARCH__
		for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
			g(i);
		__syncthreads();
#else
		for (int64_t i = 0; i < n; i++)
			g(i);
#endif
	}

	/* at[i] = sum of at[0 .. i - 1] */
	template <typename T> GPU_FN void scan(T *at, int64_t n)
	{
		T sum = 0;

#ifdef __CUDA_ARCH__
		T *warps = (T *) sums;
		unsigned lane = threadIdx.x & 31;
		unsigned warp = threadIdx.x / 32;

		for (int64_t from = 0; from < n; from += blockDim.x)
		{
			int64_t i = from + threadIdx.x;
			T v = i < n ? at[i] : 0;
			T up = v;
			T before = 0;

			for (int step = 1; step < 32; step *= 2)
			{
				T other = __shfl_up_sync(0xFFFFFFFFu, up, step);

				if (lane >= (unsigned) step)
					up += other;
			}
			if (lane == 31)
				warps[warp] = up;
			__syncthreads();
			for (unsigned w = 0; w < blockDim.x / 32; w++)
			{
				if (w == warp)
					before = sum;
				sum += warps[w];
			}
			if (i < n)
				at[i] = before + up - v;
			__syncthreads();
		}
#else
		for (int64_t i = 0; i < n; i++)
		{
			T v = at[i];

			at[i] = sum;
			sum += v;
		}
#endif
	}
};

#ifndef GPU_EMULATED
template <typename F>
__global__ void
__launch_bounds__(GPU_BLOCK_THREADS) gpu_block_kernel(const F f)
{
	extern __shared__ __align__(16) unsigned char shared[];
	__shared__ uint64_t sums[32];
	GpuBlock block = { shared, sums };

	f(block);
}
#endif

/* threads: a multiple of 32, at most GPU_BLOCK_THREADS; shared memory: at most GPU_BLOCK_SHARED. */
#define GPU_BLOCK_SHARED 98304

template <typename F>
static inline void
gpu_launch_block(GpuStream *s, const F &f, int threads, size_t shared)
{
	s->launches++;
#ifdef GPU_EMULATED
	GpuBlock block = { (unsigned char *) calloc(shared + 1, 1), NULL };

	(void) threads;
	if (block.shared == NULL)
		gpu_fail(s, "launch", "out of memory");
	if (gpu_usable(s))
		f(block);
	free(block.shared);
#else
	if (!gpu_ok(s))
		return;
	/* beyond 48 kB a kernel has to be told */
	if (shared > 49152 &&
		!gpu_check(s, "shared memory",
				   cudaFuncSetAttribute(gpu_block_kernel<F>, cudaFuncAttributeMaxDynamicSharedMemorySize,
										GPU_BLOCK_SHARED)))
		return;
	gpu_block_kernel<F><<<1, (unsigned) threads, shared, s->stream>>>(f);
	gpu_check(s, "launch", cudaGetLastError());
#endif
}

/* A kernel that faults: all that is asked of this card from now on fails. */
#ifndef GPU_EMULATED
struct GpuFault
{
	uint32_t *nowhere;

	GPU_FN void operator()(int64_t) const
	{
		*nowhere = 1;
	}
};
#endif

static inline void
gpu_inject_fault(GpuStream *s)
{
#ifdef GPU_EMULATED
	gpu_emulated_lost = true;
	gpu_usable(s);
#else
	GpuFault fault = { (uint32_t *) 64 };

	gpu_launch(s, 1, fault);
	gpu_finish(s);
#endif
}

/* A kernel that does not come to an end before *end is set, in host memory. */
struct GpuHang
{
	const uint32_t *end;

	GPU_FN void operator()(int64_t) const
	{
#ifdef __CUDA_ARCH__
		while (*(const volatile uint32_t *) end == 0)
			__nanosleep(1000);
#elif defined(GPU_EMULATED)
		while (__atomic_load_n(end, __ATOMIC_ACQUIRE) == 0)
			usleep(1000);
#endif
	}
};

/*
 * Sorts and scans of up to GPU_MAX_ITEMS items.  All of them take
 * their working memory from s->temp.
 */

#ifdef GPU_EMULATED

static inline size_t
gpu_temp_bytes(int64_t n)
{
	return 256 + (size_t) n * sizeof(uint32_t);
}

#else

/* Each is called with temp NULL to learn how much working memory it takes. */
static inline cudaError_t
gpu_cub_sort_pairs(void *temp, size_t *bytes, cub::DoubleBuffer<uint64_t> *keys,
				   cub::DoubleBuffer<uint32_t> *values, int64_t n, int low, int high, cudaStream_t stream)
{
	return cub::DeviceRadixSort::SortPairs(temp, *bytes, *keys, *values, (int) n, low, high, stream);
}

static inline cudaError_t
gpu_cub_sort(void *temp, size_t *bytes, cub::DoubleBuffer<uint64_t> *keys, int64_t n, int low, int high,
			 cudaStream_t stream)
{
	return cub::DeviceRadixSort::SortKeys(temp, *bytes, *keys, (int) n, low, high, stream);
}

template <typename T>
static inline cudaError_t
gpu_cub_scan(void *temp, size_t *bytes, const T *in, T *out, int64_t n, cudaStream_t stream)
{
	return cub::DeviceScan::ExclusiveSum(temp, *bytes, in, out, (int) n, stream);
}

/* How much working memory n items take at most. */
static inline size_t
gpu_temp_bytes(int64_t n)
{
	cub::DoubleBuffer<uint64_t> keys(NULL, NULL);
	cub::DoubleBuffer<uint32_t> values(NULL, NULL);
	size_t most = 256;
	size_t bytes[4] = { 0, 0, 0, 0 };

	gpu_cub_sort_pairs(NULL, &bytes[0], &keys, &values, n, 0, 64, NULL);
	gpu_cub_sort(NULL, &bytes[1], &keys, n, 0, 64, NULL);
	gpu_cub_scan(NULL, &bytes[2], (const uint32_t *) NULL, (uint32_t *) NULL, n, NULL);
	gpu_cub_scan(NULL, &bytes[3], (const uint64_t *) NULL, (uint64_t *) NULL, n, NULL);
	for (int i = 0; i < 4; i++)
		most = bytes[i] > most ? bytes[i] : most;
	return most;
}

#endif

/*
 * Sort by bits low .. high - 1 of the keys, each value going with its key;
 * equal keys stay in order.  The result is in *keys and *values, which are
 * exchanged with the others as needed.
 */
static inline void
gpu_sort_pairs(GpuStream *s, uint64_t **keys, uint64_t **other_keys, uint32_t **values,
			   uint32_t **other_values, int64_t n, int low, int high)
{
	if (n <= 1 || low >= high)
		return;
	s->launches++;
#ifdef GPU_EMULATED
	if (!gpu_usable(s))
		return;

	uint64_t mask = (high - low >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (high - low)) - 1) << low;
	uint32_t *order = (uint32_t *) s->temp;

	for (int64_t i = 0; i < n; i++)
		order[i] = (uint32_t) i;
	std::stable_sort(order, order + n,
					 [&](uint32_t a, uint32_t b) { return ((*keys)[a] & mask) < ((*keys)[b] & mask); });
	for (int64_t i = 0; i < n; i++)
	{
		(*other_keys)[i] = (*keys)[order[i]];
		(*other_values)[i] = (*values)[order[i]];
	}
	std::swap(*keys, *other_keys);
	std::swap(*values, *other_values);
#else
	cub::DoubleBuffer<uint64_t> k(*keys, *other_keys);
	cub::DoubleBuffer<uint32_t> v(*values, *other_values);

	if (!gpu_ok(s) ||
		!gpu_check(s, "sort", gpu_cub_sort_pairs(s->temp, &s->temp_bytes, &k, &v, n, low, high, s->stream)))
		return;
	*keys = k.Current();
	*other_keys = k.Alternate();
	*values = v.Current();
	*other_values = v.Alternate();
#endif
}

/* The same without values. */
static inline void
gpu_sort_keys(GpuStream *s, uint64_t **keys, uint64_t **other_keys, int64_t n, int low, int high)
{
	if (n <= 1 || low >= high)
		return;
	s->launches++;
#ifdef GPU_EMULATED
	if (!gpu_usable(s))
		return;

	uint64_t mask = (high - low >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (high - low)) - 1) << low;

	(void) other_keys;
	std::stable_sort(*keys, *keys + n, [&](uint64_t a, uint64_t b) { return (a & mask) < (b & mask); });
#else
	cub::DoubleBuffer<uint64_t> k(*keys, *other_keys);

	if (!gpu_ok(s) ||
		!gpu_check(s, "sort", gpu_cub_sort(s->temp, &s->temp_bytes, &k, n, low, high, s->stream)))
		return;
	*keys = k.Current();
	*other_keys = k.Alternate();
#endif
}

/* out[i] = sum of in[0 .. i - 1]; T is uint32_t or uint64_t, out may be in. */
template <typename T>
static inline void
gpu_scan(GpuStream *s, const T *in, T *out, int64_t n)
{
	if (n <= 0)
		return;
	s->launches++;
#ifdef GPU_EMULATED
	if (!gpu_usable(s))
		return;

	T sum = 0;

	for (int64_t i = 0; i < n; i++)
	{
		T v = in[i];

		out[i] = sum;
		sum += v;
	}
#else
	if (gpu_ok(s))
		gpu_check(s, "scan", gpu_cub_scan(s->temp, &s->temp_bytes, in, out, n, s->stream));
#endif
}

#endif /* GPU_MACHINE_H */
