/*-------------------------------------------------------------------------
 *
 * btree_probe_tile.h
 *	  Searching a tree by tiles: 8 lanes of a warp read a node's line together, 16
 *	  bytes a lane.  For GPUs only.
 *
 * Lanes 0 to 3 then have the separators, or w0 of a leaf.  Lanes 4 to 7 have the
 * links, or t of a leaf (w1, if there are two key words).  All lanes of a warp take
 * part in every call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_PROBE_TILE_H
#define BTREE_PROBE_TILE_H

#include <cuda_runtime.h>

#include "kernels/btree/btree_probe.h"
#include "kernels/runtime/view.h"

__device__ __forceinline__ int
gpu_tile_lane(void)
{
	return (int) (threadIdx.x % GPU_TILE);
}

/* Where the tile's lanes are in a ballot. */
__device__ __forceinline__ int
gpu_tile_shift(void)
{
	return (int) (threadIdx.x & (32 - GPU_TILE));
}

/*
 * This lane's 16 bytes of the line at ref.  It must be an ordinary load, because a
 * persistent kernel may find new nodes where it has read old ones.
 */
__device__ __forceinline__ ulonglong2
gpu_tile_load(const unsigned char *base, BtreeRef ref)
{
	return ((const ulonglong2 *) (base + (size_t) ref * BTREE_UNIT_BYTES))[gpu_tile_lane()];
}

/* Word i of the line's upper half. */
__device__ __forceinline__ uint64_t
gpu_tile_upper64(const ulonglong2 &line, int i)
{
	return __shfl_sync(GPU_ALL_LANES, (i & 1) ? line.y : line.x, GPU_TILE / 2 + (i >> 1), GPU_TILE);
}

/* How many of the separators 1 .. 7 of an inner node's line have w0 <= this: the child, unless w0 ties. */
__device__ __forceinline__ int
gpu_tile_rank(const ulonglong2 &line, uint64_t w0)
{
	unsigned even = __ballot_sync(GPU_ALL_LANES, line.x <= w0) >> gpu_tile_shift() & 0xE;
	unsigned odd = __ballot_sync(GPU_ALL_LANES, line.y <= w0) >> gpu_tile_shift() & 0xF;

	return __popc(even << 4 | odd);
}

/* The child in which x is or would be; line is the node's at ref. */
__device__ __forceinline__ int
gpu_tile_inner_rank(const GpudsView &view, BtreeRef ref, const ulonglong2 &line, const GpudsEntry &x)
{
	/* separators of more than w0, and places that are not used but look like one */
	bool tie = (gpu_tile_lane() == 0 && (uint32_t) line.x >> 8 != 0) || x.w0 == UINT64_MAX;
	int k = gpu_tile_rank(line, x.w0);

	if (__any_sync(GPU_ALL_LANES, tie))
	{
		const uint64_t *node = btree_node(view.base, ref);

		k = view.nwords == 1 ? btree_inner_rank(node, &x, 1) : btree_inner_rank(node, &x, 2);
	}
	return k;
}

/* One bit for each place of a node's half whose word is before, or is, this. */
__device__ __forceinline__ void
gpu_tile_compare(const ulonglong2 &line, uint64_t word, unsigned *lt, unsigned *eq)
{
	int shift = gpu_tile_shift();
	unsigned lt_even = __ballot_sync(GPU_ALL_LANES, line.x < word) >> shift & 0xFF;
	unsigned lt_odd = __ballot_sync(GPU_ALL_LANES, line.y < word) >> shift & 0xFF;
	unsigned eq_even = __ballot_sync(GPU_ALL_LANES, line.x == word) >> shift & 0xFF;
	unsigned eq_odd = __ballot_sync(GPU_ALL_LANES, line.y == word) >> shift & 0xFF;

	/* bits 0..3 and 8..11: even and odd places of the lower half; 4..7, 12..15: of the upper one */
	*lt = lt_even | lt_odd << 8;
	*eq = eq_even | eq_odd << 8;
}

/* How many entries of the leaf at ref are before x. */
__device__ __forceinline__ int
gpu_tile_leaf_rank(const GpudsView &view, BtreeRef ref, const GpudsEntry &x)
{
	bool upper = gpu_tile_lane() >= GPU_TILE / 2;
	ulonglong2 line = gpu_tile_load(view.base, ref);
	unsigned lt, eq;

	if (view.nwords == 1)
	{
		gpu_tile_compare(line, upper ? x.t : x.w0, &lt, &eq);
		lt |= eq & lt >> 4;
	}
	else
	{
		ulonglong2 more = line;
		unsigned tlt, teq;

		if (!upper)
			more = gpu_tile_load(view.base, ref + GPU_TILE * sizeof(line) / BTREE_UNIT_BYTES);
		gpu_tile_compare(line, upper ? x.w1 : x.w0, &lt, &eq);
		gpu_tile_compare(more, x.t, &tlt, &teq);
		lt |= eq & (lt >> 4 | (eq >> 4 & tlt));
	}
	return __popc(lt & 0x0F0F);
}

/*
 * How many entries of the tree are before x, and the leaf in which it is or would be; the tree is not
 * empty.
 */
__device__ __forceinline__ uint64_t
gpu_tile_lower_bound(const GpudsView &view, const GpudsEntry &x, BtreeRef *leaf, int *place)
{
	uint64_t rank = 0;
	BtreeRef ref = view.root;

	for (int level = view.height - 1; level > 0; level--)
	{
		ulonglong2 line = gpu_tile_load(view.base, ref);
		uint64_t link = gpu_tile_upper64(line, gpu_tile_inner_rank(view, ref, line, x));

		ref = btree_link_ref(link);
		rank += btree_link_before(link);
	}
	*leaf = ref;
	*place = gpu_tile_leaf_rank(view, ref, x);
	return rank + (uint64_t) *place;
}

#endif /* BTREE_PROBE_TILE_H */
