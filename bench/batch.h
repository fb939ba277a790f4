/*-------------------------------------------------------------------------
 *
 * batch.h
 *	  Batches of probes in any order, in device memory: points, ranges, counts.
 *	  For GPUs only.
 *
 * The extension never asks for such batches: only bench/device and
 * test/kernels/gpu_batch.cu call this.  Scan requests have probes in ascending order,
 * for which one thread each is best, because neighbours read the same lines.  Here
 * neighbours have nothing in common.  So a tile of 8 lanes (btree_probe_tile.h) reads each
 * node's line together, in few instructions.  A tile works on several probes at a
 * time, so that many lines are on their way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_BATCH_H
#define BENCH_BATCH_H

#include "kernels/btree/btree_probe_tile.h"

#define GPU_BATCH_BLOCK 256

/* Threads for n probes of which a warp does 4 * probes. */
static inline unsigned
gpu_batch_blocks(int64_t n, int probes)
{
	int64_t a_block = (int64_t) GPU_BATCH_BLOCK / GPU_TILE * probes;

	return (unsigned) ((n + a_block - 1) / a_block);
}

/* The low part of word i of the line's upper half: a link's ref. */
__device__ __forceinline__ uint32_t
gpu_tile_upper(const ulonglong2 &line, int i)
{
	return __shfl_sync(GPU_ALL_LANES, (uint32_t) ((i & 1) ? line.y : line.x), GPU_TILE / 2 + (i >> 1),
					   GPU_TILE);
}

/*
 * Descends with n probes of the tile, from ref[] to their leaves.  x[] are the
 * same in all lanes of a tile.  If sums, before[] gets the number of entries
 * before the leaves.
 */
template <int n, int nw, bool sums>
__device__ __forceinline__ void
gpu_tile_descend(const GpudsView &view, const GpudsEntry (&x)[n], BtreeRef (&ref)[n], uint32_t (&before)[n])
{
	bool highest = false;

#pragma unroll
	for (int i = 0; i < n; i++)
	{
		ref[i] = view.root;
		before[i] = 0;
		highest = highest || x[i].w0 == UINT64_MAX;
	}
	/* places that are not used look like separators of this w0 */
	highest = __any_sync(GPU_ALL_LANES, highest);
	for (int level = view.height - 1; level > 0; level--)
	{
		ulonglong2 line[n];
		uint32_t header = 0;
		bool details;

#pragma unroll
		for (int i = 0; i < n; i++)
			line[i] = gpu_tile_load(view.base, ref[i]);
#pragma unroll
		for (int i = 0; i < n; i++)
			header |= (uint32_t) line[i].x;
		details = highest || __any_sync(GPU_ALL_LANES, gpu_tile_lane() == 0 && header >> 8 != 0);
#pragma unroll
		for (int i = 0; i < n; i++)
		{
			int k = details ? btree_inner_rank(btree_node(view.base, ref[i]), &x[i], nw)
							: gpu_tile_rank(line[i], x[i].w0);

			if (sums)
			{
				uint64_t link = gpu_tile_upper64(line[i], k);

				ref[i] = btree_link_ref(link);
				before[i] += (uint32_t) btree_link_before(link);
			}
			else
				ref[i] = gpu_tile_upper(line[i], k);
		}
	}
}

/* What a point probe found: the first entry of a key. */
#define GPU_NOT_FOUND UINT64_MAX

/*
 * Points: the lowest t of each key (w0, w1), or GPU_NOT_FOUND; w1 only if nw is 2.
 */
template <int nw, int probes>
__global__ void
__launch_bounds__(GPU_BATCH_BLOCK)
	gpu_batch_points(GpudsView view, const uint64_t *__restrict__ w0, const uint64_t *__restrict__ w1,
					 uint64_t *__restrict__ t, int64_t n)
{
	int64_t tile = ((int64_t) blockIdx.x * GPU_BATCH_BLOCK + threadIdx.x) / GPU_TILE;
	int lane = gpu_tile_lane();
	int shift = gpu_tile_shift();
	int64_t mine = tile * probes + lane;
	bool own = lane < probes && mine < n;
	uint64_t k0 = own ? w0[mine] : 0;
	uint64_t k1 = own && nw == 2 ? w1[mine] : 0;
	uint64_t answer = GPU_NOT_FOUND;
	GpudsEntry x[probes];
	BtreeRef ref[probes];
	uint32_t before[probes];
	ulonglong2 line[probes];

#pragma unroll
	for (int i = 0; i < probes; i++)
	{
		x[i].w0 = __shfl_sync(GPU_ALL_LANES, k0, i, GPU_TILE);
		x[i].w1 = nw == 2 ? __shfl_sync(GPU_ALL_LANES, k1, i, GPU_TILE) : 0;
		x[i].t = 0;
	}
	if (view.height == 0)
	{
		if (own)
			t[mine] = GPU_NOT_FOUND;
		return;
	}
	gpu_tile_descend<probes, nw, false>(view, x, ref, before);
#pragma unroll
	for (int i = 0; i < probes; i++)
		line[i] = gpu_tile_load(view.base, ref[i]);
#pragma unroll
	for (int i = 0; i < probes; i++)
	{
		unsigned even, odd;

		if (nw == 1)
		{
			even = __ballot_sync(GPU_ALL_LANES, line[i].x == x[i].w0) >> shift & 0xF;
			odd = __ballot_sync(GPU_ALL_LANES, line[i].y == x[i].w0) >> shift & 0xF;
		}
		else
		{
			/* the upper half is w1 */
			uint64_t w = lane < GPU_TILE / 2 ? x[i].w0 : x[i].w1;

			even = __ballot_sync(GPU_ALL_LANES, line[i].x == w) >> shift & 0xFF;
			odd = __ballot_sync(GPU_ALL_LANES, line[i].y == w) >> shift & 0xFF;
			even &= even >> 4;
			odd &= odd >> 4;
		}
		/* the first of them, of places 0 to 7 in the order even 0, odd 0, even 1, ... */
		{
			int e = __ffs((int) even | 1 << 8) - 1;
			int o = __ffs((int) odd | 1 << 8) - 1;
			int place = e <= o ? 2 * e : 2 * o + 1;
			bool found = (even | odd) != 0;

			if (nw == 1)
			{
				uint64_t v = gpu_tile_upper64(line[i], found ? place : 0);

				if (lane == i && found)
					answer = v;
			}
			else if (lane == i && found)
				answer = (uint64_t) ref[i] << 8 | (unsigned) place;
		}
	}
	if (nw == 2 && answer != GPU_NOT_FOUND)
		answer = btree_node(view.base, (BtreeRef) (answer >> 8))[2 * BTREE_FANOUT + (answer & 0xFF)];
	/* unused places are of the highest number, and have the highest t */
	if (own)
		t[mine] = answer;
}

/*
 * Counts: how many entries have lo <= w0 <= hi.  A tile has two probes for each.
 */
template <int ranges>
__global__ void
__launch_bounds__(GPU_BATCH_BLOCK)
	gpu_batch_counts(GpudsView view, const uint64_t *__restrict__ lo, const uint64_t *__restrict__ hi,
					 uint32_t *__restrict__ count, int64_t n)
{
	int64_t tile = ((int64_t) blockIdx.x * GPU_BATCH_BLOCK + threadIdx.x) / GPU_TILE;
	int lane = gpu_tile_lane();
	int shift = gpu_tile_shift();
	int64_t mine = tile * ranges + lane;
	bool own = lane < ranges && mine < n;
	uint64_t a = own ? lo[mine] : 0;
	uint64_t b = own ? hi[mine] : 0;
	bool highest = __any_sync(GPU_ALL_LANES, b == UINT64_MAX);
	GpudsEntry x[2 * ranges];
	BtreeRef ref[2 * ranges];
	uint32_t before[2 * ranges];
	ulonglong2 line[2 * ranges];
	uint32_t answer = 0;

#pragma unroll
	for (int i = 0; i < ranges; i++)
	{
		x[2 * i].w0 = __shfl_sync(GPU_ALL_LANES, a, i, GPU_TILE);
		x[2 * i].w1 = x[2 * i].t = 0;
		x[2 * i + 1].w0 = __shfl_sync(GPU_ALL_LANES, b, i, GPU_TILE);
		x[2 * i + 1].w1 = x[2 * i + 1].t = UINT64_MAX;
	}
	if (view.height > 0)
	{
		gpu_tile_descend<2 * ranges, 1, true>(view, x, ref, before);
#pragma unroll
		for (int i = 0; i < 2 * ranges; i++)
			line[i] = gpu_tile_load(view.base, ref[i]);
#pragma unroll
		for (int i = 0; i < ranges; i++)
		{
			unsigned lo_even = __ballot_sync(GPU_ALL_LANES, line[2 * i].x < x[2 * i].w0) >> shift & 0xF;
			unsigned lo_odd = __ballot_sync(GPU_ALL_LANES, line[2 * i].y < x[2 * i].w0) >> shift & 0xF;
			unsigned hi_even = __ballot_sync(GPU_ALL_LANES, line[2 * i + 1].x <= x[2 * i + 1].w0) >> shift &
							   0xF;
			unsigned hi_odd = __ballot_sync(GPU_ALL_LANES, line[2 * i + 1].y <= x[2 * i + 1].w0) >> shift &
							  0xF;
			int to = __popc(hi_even << 4 | hi_odd);

			/* places that are not used have this w0, too */
			if (highest)
				to = btree_leaf_rank(btree_node(view.base, ref[2 * i + 1]), &x[2 * i + 1], 1);
			if (lane == i)
				answer = before[2 * i + 1] - before[2 * i] + (uint32_t) to -
						 (uint32_t) __popc(lo_even << 4 | lo_odd);
		}
	}
	if (own)
		count[mine] = a <= b ? answer : 0;
}

/* The tile's leaf with the entry of this rank; *parent is the line above it. */
__device__ __forceinline__ BtreeRef
gpu_tile_select(const GpudsView &view, uint32_t rank, uint32_t *before, ulonglong2 *parent, int *at)
{
	BtreeRef ref = view.root;

	*before = 0;
	for (int level = view.height - 1; level > 0; level--)
	{
		ulonglong2 line = gpu_tile_load(view.base, ref);
		uint32_t r = rank - *before;
		unsigned even = __ballot_sync(GPU_ALL_LANES, line.x != 0 && (uint32_t) (line.x >> 32) <= r) >>
							gpu_tile_shift() &
						0xF0;
		unsigned odd = __ballot_sync(GPU_ALL_LANES, line.y != 0 && (uint32_t) (line.y >> 32) <= r) >>
						   gpu_tile_shift() &
					   0xF0;
		uint64_t link;

		*at = __popc(even | odd >> 4) - 1;
		link = gpu_tile_upper64(line, *at);
		*parent = line;
		ref = btree_link_ref(link);
		*before += (uint32_t) btree_link_before(link);
	}
	return ref;
}

/*
 * Ranges: the entries with lo <= w0 <= hi of a tree of one key word, at most cap
 * each, at i * cap of w0 and t; their number in found.  A tile a range.
 */
static __global__ void
__launch_bounds__(GPU_BATCH_BLOCK)
	gpu_batch_ranges(GpudsView view, const uint64_t *__restrict__ lo, const uint64_t *__restrict__ hi,
					 int cap, uint64_t *__restrict__ w0, uint64_t *__restrict__ t,
					 uint32_t *__restrict__ found, int64_t n)
{
	int64_t mine = ((int64_t) blockIdx.x * GPU_BATCH_BLOCK + threadIdx.x) / GPU_TILE;
	int lane = gpu_tile_lane();
	int shift = gpu_tile_shift();
	bool active = mine < n && view.height > 0;
	GpudsEntry x = { active ? lo[mine] : 0, 0, 0 };
	uint64_t last = active ? hi[mine] : 0;
	uint64_t *out = (lane < GPU_TILE / 2 ? w0 : t) + mine * cap;
	ulonglong2 line, parent = { 0, 0 };
	uint32_t before = 0;
	int done = 0;
	int at = 0;
	int from;
	BtreeRef ref = view.root;

	active = active && x.w0 <= last;
	if (view.height > 0)
	{
		for (int level = view.height - 1; level > 0; level--)
		{
			uint64_t link;
			bool tie;

			parent = gpu_tile_load(view.base, ref);
			at = gpu_tile_rank(parent, x.w0);
			tie = (lane == 0 && (uint32_t) parent.x >> 8 != 0) || x.w0 == UINT64_MAX;
			if (__any_sync(GPU_ALL_LANES, tie))
				at = btree_inner_rank(btree_node(view.base, ref), &x, 1);
			link = gpu_tile_upper64(parent, at);
			ref = btree_link_ref(link);
			before += (uint32_t) btree_link_before(link);
		}
		line = gpu_tile_load(view.base, ref);
		{
			unsigned even = __ballot_sync(GPU_ALL_LANES, line.x < x.w0) >> shift & 0xF;
			unsigned odd = __ballot_sync(GPU_ALL_LANES, line.y < x.w0) >> shift & 0xF;

			from = __popc(even << 4 | odd);
		}
		while (__any_sync(GPU_ALL_LANES, active))
		{
			ulonglong2 here = line;
			bool upper = lane >= GPU_TILE / 2;
			/* the lower half says what is not above the range, the upper half which places are used */
			unsigned even = __ballot_sync(GPU_ALL_LANES, upper ? here.x != UINT64_MAX : here.x <= last) >>
							shift;
			unsigned odd = __ballot_sync(GPU_ALL_LANES, upper ? here.y != UINT64_MAX : here.y <= last) >>
						   shift;
			int used = __popc(even & 0xF0 | (odd & 0xF0) >> 4);
			int to = __popc(even & even >> 4 & 0xF) + __popc(odd & odd >> 4 & 0xF);
			bool more = active && to == used && done + to - from < cap &&
						before + (uint32_t) used < view.entries;
			uint64_t link = gpu_tile_upper64(parent, at < 7 ? at + 1 : 7);
			bool cross = at == 7 || link == 0;
			int p = 2 * (lane % (GPU_TILE / 2)) - from + done;

			before += (uint32_t) used;
			ref = btree_link_ref(link);
			at++;
			if (__any_sync(GPU_ALL_LANES, more && cross))
			{
				ulonglong2 other;
				uint32_t start;
				int place = 0;
				BtreeRef leaf = gpu_tile_select(view, more ? before : 0, &start, &other, &place);

				if (cross)
				{
					ref = leaf;
					parent = other;
					at = place;
				}
			}
			if (more)
				line = gpu_tile_load(view.base, ref);
			if (active)
			{
				int end = to - from + done < cap ? to - from + done : cap;

				if (p >= done && p < end)
					out[p] = here.x;
				if (p + 1 >= done && p + 1 < end)
					out[p + 1] = here.y;
				done = end > done ? end : done;
			}
			from = 0;
			active = more;
		}
	}
	if (mine < n && lane == 0)
		found[mine] = (uint32_t) done;
}

#endif /* BENCH_BATCH_H */
