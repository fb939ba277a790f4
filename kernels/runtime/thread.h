/*-------------------------------------------------------------------------
 *
 * thread.h
 *	  What one thread of a kernel can do: atomics, fences, and what its warp
 *	  and its block know together.
 *
 * Functions marked GPU_FN run on the device.  The same source is compiled for the
 * CPU, where the emulation runs a kernel with one thread a block, so a warp and
 * a block have one thread there.  nvcc compiles it for its host, too, but never
 * calls it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_THREAD_H
#define GPU_THREAD_H

#include <stdint.h>

#ifdef __CUDACC__
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#define GPU_FN __host__ __device__ __forceinline__
#else
#define GPU_FN inline
#endif

/* Goes before a loop whose turns are to be written one after the other, so that an array can be registers. */
#ifdef __CUDA_ARCH__
#define GPU_UNROLL _Pragma("unroll")
#else
#include <unistd.h>
#define GPU_UNROLL
#endif

/* Code for this architecture and later ones: the blocks of a cluster are a cluster, whose barrier is fast. */
#define GPU_CLUSTER_ARCH 900

/* Add; returns what was there before. */
GPU_FN uint32_t gpu_atomic_add(uint32_t *p, uint32_t v);

/* Add, or take the lower or the higher. */
GPU_FN void gpu_atomic_add64(uint64_t *p, uint64_t v);
GPU_FN void gpu_atomic_add_double(double *p, double v);
GPU_FN void gpu_atomic_min64(uint64_t *p, uint64_t v);
GPU_FN void gpu_atomic_max64(uint64_t *p, uint64_t v);

/*
 * Add the values of all threads of the warp, which call it together.  Returns what was
 * there before, with the values of the threads before this one.
 */
GPU_FN uint32_t gpu_warp_add(uint32_t *p, uint32_t v);

/* Add the values of all threads of the warp, which call it together. */
GPU_FN void gpu_warp_add64(uint64_t *p, uint64_t v);

/* Set bits; returns what was there before. */
GPU_FN uint32_t gpu_atomic_or(uint32_t *p, uint32_t v);
GPU_FN uint64_t gpu_atomic_or64(uint64_t *p, uint64_t v);

/* Store, or take the higher; the first returns what was there before. */
GPU_FN uint32_t gpu_atomic_exchange(uint32_t *p, uint32_t v);
GPU_FN void gpu_atomic_max(uint32_t *p, uint32_t v);

/* Store v if what is there is as expected; returns what was there before. */
GPU_FN uint32_t gpu_atomic_swap_if(uint32_t *p, uint32_t expected, uint32_t v);

/* Set to 1 what other threads may be setting, too. */
GPU_FN void gpu_flag(uint32_t *p);

/*
 * Add 1 to a word that is the same one for all threads that are here together; the second returns what was
 * there before, with those of the others.
 */
GPU_FN void gpu_atomic_count(uint32_t *p);
GPU_FN uint32_t gpu_atomic_next(uint32_t *p);

/*
 * Is this the last of n threads of a launch to come here?  All of them must; the
 * last one sees what they wrote before.
 */
GPU_FN bool gpu_last_of(uint32_t *count, uint32_t n);

/* The same of a counter that other threads of the warp may not be coming to. */
GPU_FN bool gpu_arrive(uint32_t *count, uint32_t n);

/*
 * The bits of all threads that are here together, a warp at most.  One of them
 * gets *first, and acts for all.
 */
GPU_FN uint64_t gpu_warp_or(uint64_t v, bool *first);

/*
 * The bits of 8 neighbouring threads, the first of which has a number divisible
 * by 8; emulated, there is one.
 */
GPU_FN unsigned gpu_tile_or(unsigned v);

/* The sum of the warp's values up to and with this thread's.  All threads of the warp call it. */
template <typename T> GPU_FN T gpu_warp_inclusive_sum(T value);

/*
 * The value of the thread so many behind this one in the warp, or any, if there is none.  All threads of the
 * warp call it.
 */
template <typename T> GPU_FN T gpu_warp_behind(T value, unsigned distance);

/* This thread's number in its block, and how many there are in a block and in a warp. */
GPU_FN unsigned gpu_block_thread(void);
GPU_FN unsigned gpu_block_threads(void);
GPU_FN unsigned gpu_warp_threads(void);

/* Wait for all threads of the block, and see what they wrote. */
GPU_FN void gpu_block_wait(void);

/* This thread's number among those of a launch by gpu_launch_cluster, and how many there are. */
GPU_FN unsigned gpu_cluster_thread(void);
GPU_FN unsigned gpu_cluster_threads(void);

/* Wait for all threads of such a launch, and see what they wrote. */
GPU_FN void gpu_cluster_wait(void);

/* Begin to bring the 128 bytes at p, where they begin, nearer to the multiprocessors; waits for nothing. */
GPU_FN void gpu_prefetch(const void *p);

/* Store into host memory; a reader that sees v sees what this thread wrote before. */
GPU_FN void gpu_release_system(uint32_t *p, uint32_t v);

/* Load what gpu_release_system stores, or what the host has released. */
GPU_FN uint32_t gpu_acquire_system(const uint32_t *p);

/* The same between threads of the device, of which one may be in another launch. */
GPU_FN void gpu_release(uint32_t *p, uint32_t v);
GPU_FN uint32_t gpu_acquire(const uint32_t *p);

/*
 * Load what gpu_release stored, and two words at a place that was computed of it (16 bytes, as their
 * boundary): they are as gpu_release's thread left them, or newer.  Both read what all multiprocessors share,
 * and the second cannot begin before the first has ended.  gpu_acquire would say this of all loads, and
 * empties the multiprocessor's cache for it.
 */
GPU_FN uint32_t gpu_fresh(const uint32_t *p);
GPU_FN void gpu_fresh_pair(const uint64_t *p, uint64_t pair[2]);

/* Loads a word that threads of this launch change by gpu_atomic_*64: as it was at some moment since then. */
GPU_FN uint64_t gpu_glance(const uint64_t *p);

/*
 * Load, or store, two words (16 bytes, as their boundary) that another launch may be storing, or loading, at
 * the same time.  Each is what it was at one moment, since this launch began or later; nothing is said about
 * the order, nor of one word to the other.  The load is satisfied with what the multiprocessor has in its
 * cache.
 */
GPU_FN void gpu_load_pair(const uint64_t *p, uint64_t pair[2]);
GPU_FN void gpu_store_pair(uint64_t *p, uint64_t first, uint64_t second);

/* Bits that are set. */
GPU_FN int gpu_popcount(uint32_t v);

/* Do nothing for about a microsecond (emulated: a millisecond). */
GPU_FN void gpu_nap(void);

#ifdef __CUDA_ARCH__

GPU_FN uint32_t
gpu_atomic_add(uint32_t *p, uint32_t v)
{
	return atomicAdd(p, v);
}

GPU_FN void
gpu_atomic_add64(uint64_t *p, uint64_t v)
{
	atomicAdd((unsigned long long *) p, (unsigned long long) v);
}

GPU_FN void
gpu_atomic_add_double(double *p, double v)
{
	atomicAdd(p, v);
}

GPU_FN void
gpu_atomic_min64(uint64_t *p, uint64_t v)
{
	atomicMin((unsigned long long *) p, (unsigned long long) v);
}

GPU_FN void
gpu_atomic_max64(uint64_t *p, uint64_t v)
{
	atomicMax((unsigned long long *) p, (unsigned long long) v);
}

GPU_FN uint32_t
gpu_atomic_or(uint32_t *p, uint32_t v)
{
	return atomicOr(p, v);
}

GPU_FN uint64_t
gpu_atomic_or64(uint64_t *p, uint64_t v)
{
	return atomicOr((unsigned long long *) p, (unsigned long long) v);
}

GPU_FN uint32_t
gpu_atomic_exchange(uint32_t *p, uint32_t v)
{
	return atomicExch(p, v);
}

GPU_FN void
gpu_atomic_max(uint32_t *p, uint32_t v)
{
	atomicMax(p, v);
}

GPU_FN void
gpu_flag(uint32_t *p)
{
	*(volatile uint32_t *) p = 1;
}

GPU_FN void
gpu_atomic_count(uint32_t *p)
{
	unsigned mask = __activemask();

	if ((threadIdx.x & 31) == (unsigned) __ffs((int) mask) - 1)
		atomicAdd(p, (uint32_t) __popc(mask));
}

GPU_FN uint32_t
gpu_atomic_swap_if(uint32_t *p, uint32_t expected, uint32_t v)
{
	return atomicCAS(p, expected, v);
}

GPU_FN uint32_t
gpu_atomic_next(uint32_t *p)
{
	unsigned mask = __activemask();
	unsigned leader = (unsigned) __ffs((int) mask) - 1;
	unsigned lane = threadIdx.x & 31;
	uint32_t first = 0;

	if (lane == leader)
		first = atomicAdd(p, (uint32_t) __popc(mask));
	return __shfl_sync(mask, first, (int) leader) + (uint32_t) __popc(mask & ((1u << lane) - 1));
}

GPU_FN bool
gpu_last_of(uint32_t *count, uint32_t n)
{
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
}

GPU_FN bool
gpu_arrive(uint32_t *count, uint32_t n)
{
	bool last;

	__threadfence();
	last = atomicAdd(count, 1) + 1 == n;
	if (last)
		__threadfence();
	return last;
}

GPU_FN uint64_t
gpu_warp_or(uint64_t v, bool *first)
{
	unsigned mask = __activemask();
	uint32_t low = __reduce_or_sync(mask, (uint32_t) v);
	uint32_t high = __reduce_or_sync(mask, (uint32_t) (v >> 32));

	*first = (threadIdx.x & 31) == (unsigned) __ffs((int) mask) - 1;
	return (uint64_t) high << 32 | low;
}

GPU_FN unsigned
gpu_tile_or(unsigned v)
{
	return __reduce_or_sync(0xFFu << (threadIdx.x & 24), v);
}

template <typename T>
GPU_FN T
gpu_warp_inclusive_sum(T value)
{
	unsigned lane = threadIdx.x & 31;

	for (int distance = 1; distance < 32; distance *= 2)
	{
		T before = __shfl_up_sync(0xFFFFFFFFu, value, distance);

		if (lane >= (unsigned) distance)
			value += before;
	}
	return value;
}

template <typename T>
GPU_FN T
gpu_warp_behind(T value, unsigned distance)
{
	return __shfl_down_sync(0xFFFFFFFFu, value, distance);
}

GPU_FN uint32_t
gpu_warp_add(uint32_t *p, uint32_t v)
{
	uint32_t sum = gpu_warp_inclusive_sum(v);
	uint32_t first = 0;

	if ((threadIdx.x & 31) == 31 && sum > 0)
		first = atomicAdd(p, sum);
	return __shfl_sync(0xFFFFFFFFu, first, 31) + sum - v;
}

GPU_FN void
gpu_warp_add64(uint64_t *p, uint64_t v)
{
	uint64_t sum = gpu_warp_inclusive_sum(v);

	if ((threadIdx.x & 31) == 31 && sum > 0)
		gpu_atomic_add64(p, sum);
}

GPU_FN unsigned
gpu_block_thread(void)
{
	return threadIdx.x;
}

GPU_FN unsigned
gpu_block_threads(void)
{
	return blockDim.x;
}

GPU_FN unsigned
gpu_warp_threads(void)
{
	return 32;
}

GPU_FN void
gpu_block_wait(void)
{
	__syncthreads();
}

GPU_FN unsigned
gpu_cluster_thread(void)
{
	return blockIdx.x * blockDim.x + threadIdx.x;
}

GPU_FN unsigned
gpu_cluster_threads(void)
{
	return gridDim.x * blockDim.x;
}

GPU_FN void
gpu_cluster_wait(void)
{
#if __CUDA_ARCH__ >= GPU_CLUSTER_ARCH
	cooperative_groups::this_cluster().sync();
#else
	cooperative_groups::this_grid().sync();
#endif
}

GPU_FN void
gpu_prefetch(const void *p)
{
	asm volatile("prefetch.global.L2 [%0];" : : "l"(p));
}

GPU_FN void
gpu_release_system(uint32_t *p, uint32_t v)
{
	__threadfence_system();
	*(volatile uint32_t *) p = v;
}

GPU_FN uint32_t
gpu_acquire_system(const uint32_t *p)
{
	uint32_t v = *(const volatile uint32_t *) p;

	__threadfence_system();
	return v;
}

GPU_FN void
gpu_release(uint32_t *p, uint32_t v)
{
	asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(p), "r"(v) : "memory");
}

GPU_FN uint32_t
gpu_acquire(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
	return v;
}

GPU_FN uint32_t
gpu_fresh(const uint32_t *p)
{
	uint32_t v;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
	return v;
}

GPU_FN void
gpu_fresh_pair(const uint64_t *p, uint64_t pair[2])
{
	asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(pair[0]), "=l"(pair[1]) : "l"(p));
}

GPU_FN uint64_t
gpu_glance(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p));
	return v;
}

GPU_FN void
gpu_load_pair(const uint64_t *p, uint64_t pair[2])
{
	asm volatile("ld.relaxed.cta.global.v2.u64 {%0, %1}, [%2];" : "=l"(pair[0]), "=l"(pair[1]) : "l"(p));
}

GPU_FN void
gpu_store_pair(uint64_t *p, uint64_t first, uint64_t second)
{
	asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
				 :
				 : "l"(p), "l"(first), "l"(second)
				 : "memory");
}

GPU_FN int
gpu_popcount(uint32_t v)
{
	return __popc(v);
}

GPU_FN void
gpu_nap(void)
{
	__nanosleep(1000);
}

#else

GPU_FN uint32_t
gpu_atomic_add(uint32_t *p, uint32_t v)
{
	return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

GPU_FN void
gpu_atomic_add64(uint64_t *p, uint64_t v)
{
	__atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

GPU_FN void
gpu_atomic_add_double(double *p, double v)
{
	double is;
	double sum;

	__atomic_load(p, &is, __ATOMIC_RELAXED);
	do
		sum = is + v;
	while (!__atomic_compare_exchange(p, &is, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

GPU_FN void
gpu_atomic_min64(uint64_t *p, uint64_t v)
{
	uint64_t is = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (v < is && !__atomic_compare_exchange_n(p, &is, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

GPU_FN void
gpu_atomic_max64(uint64_t *p, uint64_t v)
{
	uint64_t is = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (v > is && !__atomic_compare_exchange_n(p, &is, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

GPU_FN uint32_t
gpu_atomic_or(uint32_t *p, uint32_t v)
{
	return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}

GPU_FN uint64_t
gpu_atomic_or64(uint64_t *p, uint64_t v)
{
	return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}

GPU_FN uint32_t
gpu_atomic_exchange(uint32_t *p, uint32_t v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_RELAXED);
}

GPU_FN void
gpu_atomic_max(uint32_t *p, uint32_t v)
{
	uint32_t is = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (v > is && !__atomic_compare_exchange_n(p, &is, v, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

GPU_FN void
gpu_flag(uint32_t *p)
{
	__atomic_store_n(p, 1, __ATOMIC_RELAXED);
}

GPU_FN void
gpu_atomic_count(uint32_t *p)
{
	__atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
}

GPU_FN uint32_t
gpu_atomic_swap_if(uint32_t *p, uint32_t expected, uint32_t v)
{
	__atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return expected;
}

GPU_FN uint32_t
gpu_atomic_next(uint32_t *p)
{
	return gpu_atomic_add(p, 1);
}

GPU_FN bool
gpu_last_of(uint32_t *count, uint32_t n)
{
	return __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL) == n;
}

GPU_FN bool
gpu_arrive(uint32_t *count, uint32_t n)
{
	return gpu_last_of(count, n);
}

GPU_FN uint64_t
gpu_warp_or(uint64_t v, bool *first)
{
	*first = true;
	return v;
}

GPU_FN unsigned
gpu_tile_or(unsigned v)
{
	return v;
}

template <typename T>
GPU_FN T
gpu_warp_inclusive_sum(T value)
{
	return value;
}

template <typename T>
GPU_FN T
gpu_warp_behind(T value, unsigned)
{
	return value;
}

GPU_FN uint32_t
gpu_warp_add(uint32_t *p, uint32_t v)
{
	return gpu_atomic_add(p, v);
}

GPU_FN void
gpu_warp_add64(uint64_t *p, uint64_t v)
{
	gpu_atomic_add64(p, v);
}

GPU_FN unsigned
gpu_block_thread(void)
{
	return 0;
}

GPU_FN unsigned
gpu_block_threads(void)
{
	return 1;
}

GPU_FN unsigned
gpu_warp_threads(void)
{
	return 1;
}

GPU_FN void
gpu_block_wait(void)
{
}

GPU_FN unsigned
gpu_cluster_thread(void)
{
	return 0;
}

GPU_FN unsigned
gpu_cluster_threads(void)
{
	return 1;
}

GPU_FN void
gpu_cluster_wait(void)
{
}

GPU_FN void
gpu_prefetch(const void *p)
{
	(void) p;
}

GPU_FN void
gpu_release_system(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

GPU_FN uint32_t
gpu_acquire_system(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

GPU_FN void
gpu_release(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

GPU_FN uint32_t
gpu_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

GPU_FN uint32_t
gpu_fresh(const uint32_t *p)
{
	return gpu_acquire(p);
}

GPU_FN void
gpu_fresh_pair(const uint64_t *p, uint64_t pair[2])
{
	pair[0] = p[0];
	pair[1] = p[1];
}

GPU_FN uint64_t
gpu_glance(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

GPU_FN void
gpu_load_pair(const uint64_t *p, uint64_t pair[2])
{
	pair[0] = __atomic_load_n(&p[0], __ATOMIC_RELAXED);
	pair[1] = __atomic_load_n(&p[1], __ATOMIC_RELAXED);
}

GPU_FN void
gpu_store_pair(uint64_t *p, uint64_t first, uint64_t second)
{
	__atomic_store_n(&p[0], first, __ATOMIC_RELAXED);
	__atomic_store_n(&p[1], second, __ATOMIC_RELAXED);
}

GPU_FN int
gpu_popcount(uint32_t v)
{
	return __builtin_popcount(v);
}

GPU_FN void
gpu_nap(void)
{
	usleep(1000);
}

#endif

#endif /* GPU_THREAD_H */
