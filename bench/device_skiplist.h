/*-------------------------------------------------------------------------
 *
 * device_skiplist.h
 *	  The skip list for device_structure.h: lookups also by tiles of 8 lanes that read the line of a chunk
 *	  together and work on several points at a time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_SKIPLIST_H
#define BENCH_DEVICE_SKIPLIST_H

#include "bench/device_structure.h"
#include "kernels/skiplist/skiplist_structure_gpu.h"

/* Points that a tile works on at a time. */
#define BENCH_SKIPLIST_POINTS 4

/* A chunk's line, as a tile has read it: the order word that its version has, the same in all lanes. */
__device__ __forceinline__ uint64_t
bench_skiplist_order(const ulonglong2 &line, uint64_t version)
{
	uint64_t other = __shfl_xor_sync(GPU_ALL_LANES, line.y, 1, GPU_TILE);
	int lane = gpu_tile_lane();
	bool mine = lane < 2 && line.y <= version &&
				(other > version || line.y > other || (line.y == other && lane == 0));
	unsigned from = __ballot_sync(GPU_ALL_LANES, mine) >> gpu_tile_shift() & 3;

	return __shfl_sync(GPU_ALL_LANES, line.x, from == 2 ? 1 : 0, GPU_TILE);
}

/* How many of its entries are before x, or, or_equal, equal to it. */
template <bool index, bool or_equal>
__device__ __forceinline__ int
bench_skiplist_rank(const uint64_t *chunk, const ulonglong2 &line, uint64_t order, uint64_t x)
{
	int slot = 2 * (gpu_tile_lane() - 2);
	bool before[2];

	for (int k = 0; k < 2; k++)
	{
		uint64_t w0 = k ? line.y : line.x;
		bool used = slot >= 0 && (gpu_skiplist_used(order) >> (slot + k) & 1) != 0;

		before[k] = used && w0 < x;
		/* x has no other word */
		if (or_equal && used && w0 == x)
			before[k] = chunk[gpu_skiplist_t(index) + slot + k] == 0;
	}
	return __popc(__ballot_sync(GPU_ALL_LANES, before[0]) >> gpu_tile_shift() & 0xFF) +
		   __popc(__ballot_sync(GPU_ALL_LANES, before[1]) >> gpu_tile_shift() & 0xFF);
}

/* Lookups by tiles. */
template <int points>
__global__ void
__launch_bounds__(GPU_BATCH_BLOCK)
	bench_skiplist_tiles(SkiplistProbe::View view, const uint64_t *__restrict__ probes,
						 uint64_t *__restrict__ answers, int64_t n)
{
	const GpuSkiplistView v = SkiplistProbe::version(view);
	int64_t tile = ((int64_t) blockIdx.x * GPU_BATCH_BLOCK + threadIdx.x) / GPU_TILE;
	int64_t mine = tile * points + gpu_tile_lane();
	bool own = gpu_tile_lane() < points && mine < n;
	uint64_t key = own ? probes[mine] : 0;
	uint64_t answer = GPU_NOT_FOUND;
	uint64_t x[points];
	GpuRef ref[points];
	ulonglong2 line[points];

#pragma unroll
	for (int i = 0; i < points; i++)
	{
		x[i] = __shfl_sync(GPU_ALL_LANES, key, i, GPU_TILE);
		ref[i] = v.root;
	}
	for (int level = v.height - 1; level > 0; level--)
	{
#pragma unroll
		for (int i = 0; i < points; i++)
			line[i] = gpu_tile_load(v.base, ref[i]);
#pragma unroll
		for (int i = 0; i < points; i++)
		{
			const uint64_t *chunk = gpu_skiplist_chunk(v.base, ref[i]);
			uint64_t order = bench_skiplist_order(line[i], v.version);
			int rank = bench_skiplist_rank<true, true>(chunk, line[i], order, x[i]);

			ref[i] = gpu_skiplist_ref(chunk, gpu_skiplist_slot(order, rank > 0 ? rank - 1 : 0));
		}
	}
#pragma unroll
	for (int i = 0; i < points; i++)
		line[i] = gpu_tile_load(v.base, ref[i]);
#pragma unroll
	for (int i = 0; i < points; i++)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(v.base, ref[i]);
		uint64_t order = bench_skiplist_order(line[i], v.version);
		int rank = bench_skiplist_rank<false, false>(chunk, line[i], order, x[i]);

		if (gpu_tile_lane() != i)
			continue;
		if (rank < gpu_skiplist_n(order))
		{
			int slot = gpu_skiplist_slot(order, rank);

			if (chunk[GPU_SKIPLIST_W0 + slot] == x[i])
				answer = chunk[gpu_skiplist_t(false) + slot] & ENTRY_TID_MASK;
		}
		else
			answer = bench_structure_find<SkiplistProbe>(view, x[i]);
	}
	if (own)
		answers[mine] = answer;
}

static inline void
bench_lookups(GpuStream *s, const GpuPool *pool, const SkiplistOnGpu *list, const uint64_t *probes,
			  uint64_t *answers, int64_t n, bool tiles)
{
	SkiplistProbe::View probe;
	GpudsView view;

	BENCH_CHECK(list->view(pool, &view) && view.height > 0);
	probe = SkiplistProbe::open(view);
	if (!tiles)
	{
		gpu_launch(s, n, BenchThreads<SkiplistProbe>{ probe, probes, answers });
		return;
	}
	bench_skiplist_tiles<BENCH_SKIPLIST_POINTS>
		<<<gpu_batch_blocks(n, BENCH_SKIPLIST_POINTS), GPU_BATCH_BLOCK, 0, s->stream>>>(probe, probes,
																						answers, n);
	gpu_check(s, "launch", cudaGetLastError());
}

static inline int64_t
bench_apply_there(Bench *b, SkiplistOnGpu *list, const GpudsOp *ops, int64_t n)
{
	GpuSkiplistSum sum = { 0, 0, 0 };

	BENCH_CHECK(gpu_skiplist_apply_there<1>(&b->change, &list->tree, ops, n, &sum) == GPU_OK);
	return sum.inserted + sum.deleted;
}

static const BenchStructure bench_skiplist = {
	"skip list", GPUDS_STRUCTURE_SKIPLIST, true, 2, 3, 25, 1, 0.5
};

#endif /* BENCH_DEVICE_SKIPLIST_H */
