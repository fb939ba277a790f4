/*-------------------------------------------------------------------------
 *
 * btree_structure_gpu.h
 *	  The B+tree as a structure of the GPU: its probe, and its functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_STRUCTURE_GPU_H
#define BTREE_STRUCTURE_GPU_H

#include "kernels/btree/btree_build_gpu.h"
#include "kernels/btree/btree_apply_gpu.h"
#include "kernels/btree/btree_compact_gpu.h"
#include "kernels/btree/btree_verify_gpu.h"
#include "kernels/btree/btree_probe.h"
#include "kernels/runtime/gpu_structure.h"
#ifndef GPU_EMULATED
#include "kernels/btree/btree_probe_tile.h"
#endif

/*
 * The start of an interval's entries: if all of them are in one leaf, its
 * ref << 32 | place.  Else the rank, which is less than 2^32.
 */
struct BtreeProbe
{
	typedef GpudsView View;
	typedef BtreePosition Position;

	static constexpr bool has_ranks = true;
	static constexpr bool by_tiles = true;

	static GPU_FN View open(const GpudsView &view)
	{
		return view;
	}

	static GPU_FN uint64_t locate_any(const View &view, const GpudsInterval *interval, bool forward,
									  const int nw, GpuStart *start)
	{
		BtreePosition p;
		uint64_t count = btree_locate(&view, interval, &p, nw);
		uint64_t skip = forward || count == 0 ? 0 : count - 1;

		if (count == 0)
			*start = 0;
		else if ((uint64_t) p.place + count <= BTREE_FANOUT &&
				 btree_leaf_n(btree_node(view.base, p.leaf), nw) >= p.place + (int) count)
			*start = (uint64_t) p.leaf << 32 | ((uint64_t) p.place + skip);
		else
			*start = p.rank + (uint64_t) p.place + skip;
		return count;
	}

	static GPU_FN uint64_t locate(const View &view, const GpudsInterval *interval, bool forward,
								  GpuStart *start)
	{
		if (view.nwords == 1)
			return locate_any(view, interval, forward, 1, start);
		return locate_any(view, interval, forward, 2, start);
	}

	static GPU_FN void position(const View &view, GpuStart start, uint64_t k, bool forward, Position *p)
	{
		BtreeRef leaf = (BtreeRef) (start >> 32);

		if (leaf == 0)
			btree_select(&view, forward ? start + k : start - k, p);
		else
		{
			p->rank = 0;
			p->parent = 0;
			p->at = 0;
			p->leaf = leaf;
			p->place = (int) ((uint32_t) start + (forward ? (uint32_t) k : -(uint32_t) k));
		}
	}

	static GPU_FN void step(const View &view, Position *p, bool forward)
	{
		if (forward)
		{
			const uint64_t *leaf = btree_node(view.base, p->leaf);

			p->place++;
			if (p->place == BTREE_FANOUT || leaf[view.nwords * BTREE_FANOUT + p->place] == UINT64_MAX)
				btree_next_leaf(&view, p, p->place);
		}
		else
		{
			if (p->place == 0)
				btree_previous_leaf(&view, p);
			p->place--;
		}
	}

	/* In a leaf. */
	static GPU_FN int together(const View &view, const Position &p)
	{
		return btree_leaf_n(btree_node(view.base, p.leaf), view.nwords) - p.place;
	}

	static GPU_FN void next(Position *p)
	{
		p->place++;
	}

	static GPU_FN GpudsEntry entry(const View &view, const Position &p)
	{
		return btree_leaf_entry(btree_node(view.base, p.leaf), p.place, view.nwords);
	}

	static GPU_FN uint64_t tid(const View &view, const Position &p)
	{
		return btree_node(view.base, p.leaf)[view.nwords * BTREE_FANOUT + p.place] & ENTRY_TID_MASK;
	}

	/* Two words of a leaf, which are one load. */
	struct alignas(16) Pair
	{
		uint64_t word[2];
	};

	/* Those in one leaf. */
	static GPU_FN int tids(const View &view, Position *p, int64_t n, uint64_t *tids)
	{
		const uint64_t *leaf = btree_node(view.base, p->leaf);
		const Pair *t = (const Pair *) (leaf + view.nwords * BTREE_FANOUT);
		int from = p->place;
		int to = n < BTREE_FANOUT - from ? from + (int) n : BTREE_FANOUT;
		int found = 0;

		for (int i = 0; i < BTREE_FANOUT; i += 2)
		{
			Pair pair = { { UINT64_MAX, UINT64_MAX } };

			if (i + 1 >= from && i < to)
				pair = t[i / 2];
			for (int k = 0; k < 2; k++)
			{
				bool there = i + k >= from && i + k < to && pair.word[k] != UINT64_MAX;

				tids[i + k] = there ? pair.word[k] & ENTRY_TID_MASK : GPU_NO_TID;
				found += there;
			}
		}
		if (found < n)
			btree_next_leaf(&view, p, from + found);
		return found;
	}

	static GPU_FN GpuStart start(const GpuBound *bounds, uint64_t skip)
	{
		if (bounds[0].node == bounds[1].node)
			return (uint64_t) bounds[0].node << 32 | ((uint64_t) bounds[0].place + skip);
		return bounds[0].rank + skip;
	}

#ifndef GPU_EMULATED
	/* A descent waits for one line a level. */
	static __device__ __forceinline__ GpuBound tile_bound(const View &view, const GpudsInterval &interval,
														  bool end)
	{
		GpudsEntry x = end ? entry_after(&interval.hi) : interval.lo;
		GpuBound bound;

		bound.rank = gpu_tile_lower_bound(view, x, &bound.node, &bound.place);
		return bound;
	}
#endif
};

static_assert(BTREE_FANOUT == GPU_TIDS, "a probe reads the TIDs of a leaf together");

struct BtreeOnGpu : GpuVersionedStructure<GpuTree>
{
	typedef BtreeProbe Probe;

	explicit BtreeOnGpu(uint32_t structure) : GpuVersionedStructure(structure)
	{
	}

	static GpuChangeNeeds change_needs()
	{
		return { sizeof(GpuBtreeReport), gpu_btree_small_bytes() };
	}

	uint32_t scan(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, unsigned char *there,
				  GpuRequest *request) const override
	{
		return gpu_scan_large<Probe>(stream, view, staging, there, request);
	}

	void join(GpuScanStream *stream, const GpudsView *view, const GpuJoinKeys &keys) const override
	{
		gpu_scan_join_probe<Probe>(stream, view, keys);
	}

	GpuStatus load_begin(GpuChange *c, uint32_t nwords, uint32_t fill_percent) override
	{
		return gpu_btree_load_begin(c, &tree, nwords, fill_percent);
	}

	GpuStatus load_add(GpuChange *c, const GpudsEntry *entries, int64_t n) override
	{
		return gpu_btree_load_add(c, &tree, entries, n);
	}

	GpuStatus load_end(GpuChange *c) override
	{
		return gpu_btree_load_end(c, &tree);
	}

	GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *there, int64_t n, int64_t *inserted,
					int64_t *deleted) override
	{
		return gpu_btree_apply(c, &tree, ops, there, n, inserted, deleted);
	}

	bool compact(GpuChange *c) override
	{
		return gpu_btree_compact(c, &tree);
	}

	GpuStatus verify(GpuChange *c, char *why, size_t whylen) override
	{
		return gpu_btree_verify(c, &tree, why, whylen);
	}
};

#endif /* BTREE_STRUCTURE_GPU_H */
