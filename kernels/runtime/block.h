/*-------------------------------------------------------------------------
 *
 * block.h
 *	  What the threads of a block, or of a cluster of blocks, do together: loops, an exclusive sum, a sort.
 *
 * All threads of the block call these functions alike.  They are made by hand:
 * CUB's block primitives want the number of threads at compile time, which a
 * small batch chooses by its size, and neither CUB nor cooperative groups compile
 * for the emulation, where a block is one thread, and a cluster, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_BLOCK_H
#define GPU_BLOCK_H

#include "kernels/runtime/thread.h"

/* Threads of a block, at most, if it is launched with gpu_launch_block ... */
#define GPU_BLOCK_THREADS 512

/* ... and memory that they share. */
#define GPU_BLOCK_SHARED_BYTES 98304

/* Warps of a block, at most: that many words gpu_block_exclusive_sum works with. */
#define GPU_BLOCK_WARPS 32

/*
 * The sum of the values of the threads before this one; *total is the sum of
 * all.  The threads must wait for each other before warps is used again.
 */
template <typename T>
GPU_FN T
gpu_block_exclusive_sum(T value, T *warps, T *total)
{
	unsigned last = gpu_warp_threads() - 1;
	unsigned warp = gpu_block_thread() / gpu_warp_threads();
	T inclusive = gpu_warp_inclusive_sum(value);
	T before = 0;
	T sum = 0;

	if (gpu_block_thread() % gpu_warp_threads() == last)
		warps[warp] = inclusive;
	gpu_block_wait();
	for (unsigned w = 0; w < gpu_block_threads() / gpu_warp_threads(); w++)
	{
		if (w == warp)
			before = sum;
		sum += warps[w];
	}
	*total = sum;
	return before + inclusive - value;
}

/*
 * Sorts n things, a power of 2, by a bitonic network.  put(a, b, ascending)
 * exchanges things number a and b unless they are in that order.  All threads must
 * see the things before, and see them sorted afterwards.
 */
template <typename F>
GPU_FN void
gpu_block_sort(int n, const F &put)
{
	for (int size = 2; size <= n; size *= 2)
	{
		for (int distance = size / 2; distance > 0; distance /= 2)
		{
			for (int i = (int) gpu_block_thread(); i < n / 2; i += (int) gpu_block_threads())
			{
				/* size and distance are powers of 2 */
				int low = i & (distance - 1);
				int a = (i - low) * 2 + low;

				put(a, a + distance, (a & size) == 0);
			}
			gpu_block_wait();
		}
	}
}

/* A block that gpu_launch_block has launched. */
struct GpuBlock
{
	unsigned char *shared; /* as many bytes as the launch says */
	uint64_t *warps;       /* GPU_BLOCK_WARPS words */

	/* Calls g(i) for each i from 0 to n - 1, each in one of the threads, and waits for all. */
	template <typename G> GPU_FN void each(int64_t n, const G &g)
	{
		for (int64_t i = gpu_block_thread(); i < n; i += gpu_block_threads())
			g(i);
		gpu_block_wait();
	}

	/* Each of n numbers becomes the sum of those before it. */
	template <typename T> GPU_FN void exclusive_sum(T *at, int64_t n)
	{
		T before = 0;

		for (int64_t from = 0; from < n; from += gpu_block_threads())
		{
			int64_t i = from + gpu_block_thread();
			T value = i < n ? at[i] : 0;
			T total;
			T sum = gpu_block_exclusive_sum(value, (T *) warps, &total);

			if (i < n)
				at[i] = before + sum;
			before += total;
			gpu_block_wait();
		}
	}
};

/*
 * A cluster: a few blocks that run at the same time, so that all their threads can wait for each other.
 * gpu_launch_cluster launches one.
 */
#define GPU_CLUSTER_BLOCKS 8
#define GPU_CLUSTER_BLOCK_THREADS 128

struct GpuCluster
{
	/* Calls g(i) for each i from 0 to n - 1, each in one of the threads, and waits for all. */
	template <typename G> GPU_FN void each(int64_t n, const G &g)
	{
		for (int64_t i = gpu_cluster_thread(); i < n; i += gpu_cluster_threads())
			g(i);
		gpu_cluster_wait();
	}

	/* The same for whole warps: in the last one i reaches and exceeds n. */
	template <typename G> GPU_FN void each_in_warps(int64_t n, const G &g)
	{
		each((n + gpu_warp_threads() - 1) / gpu_warp_threads() * gpu_warp_threads(), g);
	}
};

#endif /* GPU_BLOCK_H */
