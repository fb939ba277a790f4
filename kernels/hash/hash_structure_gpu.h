/*-------------------------------------------------------------------------
 *
 * hash_structure_gpu.h
 *	  The hash table as a structure of the GPU.
 *
 *	  hash_line_gpu.h	the layout
 *	  hash_probe_gpu.h	intervals of one key
 *	  hash_walk_gpu.h	intervals of several keys
 *	  hash_table_gpu.h	versions, growing, memory
 *	  hash_apply_gpu.h	operations; a load inserts its entries, too
 *	  hash_verify_gpu.h	checks
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_STRUCTURE_GPU_H
#define HASH_STRUCTURE_GPU_H

#include "kernels/hash/hash_apply_gpu.h"
#include "kernels/hash/hash_probe_gpu.h"
#include "kernels/hash/hash_verify_gpu.h"
#include "kernels/hash/hash_walk_gpu.h"

/*
 * Tree is the class of the structure that the overflow tree is of: a GpuVersionedStructure that keeps entries
 * in order and has ranks, with two functions more,
 *
 *	  GpuStatus apply_there(c, ops, n, inserted, deleted)
 *					apply of operations in device memory
 *	  bool wasteful()
 *					would compact build the tree anew?
 *
 * and three of its Probe:
 *
 *	  uint64_t rank(view, entry, nw)
 *					how many entries are before one
 *	  void select(view, rank, Position *)
 *					of the entry that has so many before it
 *	  GpuBound bound(view, entry)
 *					before the first entry that is not before another
 */
template <typename Tree> struct HashStructure : GpuVersionedStructure<GpuHash<Tree>>
{
	typedef GpuHashProbe<typename Tree::Probe> Probe;
	typedef GpuVersionedStructure<GpuHash<Tree>> Base;
	using Base::tree;

	std::atomic<GpuPool *> pool{ NULL }; /* for walks */

	explicit HashStructure(uint32_t structure) : Base(structure)
	{
	}

	static GpuChangeNeeds change_needs()
	{
		static_assert(sizeof(typename Tree::Report) <= GPU_HASH_REPORT_AT,
					  "the reports are beside each other");
		return { GPU_HASH_REPORT_AT + sizeof(GpuHashReport), Tree::change_needs().memory_bytes };
	}

	uint32_t scan(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, unsigned char *there,
				  GpuRequest *request) const override
	{
		return gpu_hash_scan<typename Tree::Probe>(pool, stream, view, staging, there, request);
	}

	void join(GpuScanStream *stream, const GpudsView *view, const GpuJoinKeys &keys) const override
	{
		gpu_scan_join_probe<Probe>(stream, view, keys);
	}

	bool small(const GpudsView *view, const unsigned char *staging, const GpuRequest *request) const override
	{
		return gpu_hash_single_keys(view, staging, request);
	}

	uint64_t bytes() const override
	{
		return gpu_hash_bytes(&tree);
	}

	GpuStatus load_begin(GpuChange *c, uint32_t nwords, uint32_t fill_percent) override
	{
		if (tree.nwords != 0)
			return GPU_WITHDRAWN;
		pool = c->pool;
		if (!gpu_hash_open(c, &tree, nwords, fill_percent))
		{
			gpu_hash_close(c, &tree);
			return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
		}
		return GPU_OK;
	}

	GpuStatus load_add(GpuChange *c, const GpudsEntry *entries, int64_t n) override
	{
		int64_t inserted;
		int64_t deleted;

		if (!tree.loading)
			return GPU_WITHDRAWN;
		/* nobody sees what it replaces */
		gpu_hash_reclaim(c, &tree, UINT64_MAX);
		return gpu_hash_apply(c, &tree, NULL, entries, n, &inserted, &deleted);
	}

	GpuStatus load_end(GpuChange *c) override
	{
		if (!tree.loading)
			return GPU_WITHDRAWN;
		gpu_hash_reclaim(c, &tree, UINT64_MAX);
		tree.loading = false;
		gpu_tree_publish(&tree, tree.entries.load());
		return gpu_change_status(c);
	}

	GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *, int64_t n, int64_t *inserted,
					int64_t *deleted) override
	{
		*inserted = *deleted = 0;
		if (tree.nwords == 0 || tree.loading)
			return GPU_WITHDRAWN;
		return gpu_hash_apply(c, &tree, ops, NULL, n, inserted, deleted);
	}

	bool compact(GpuChange *c) override
	{
		return gpu_hash_compact(c, &tree);
	}

	void reclaim(GpuChange *c, uint64_t oldest) override
	{
		gpu_hash_reclaim(c, &tree, oldest);
	}

	GpuStatus drop(GpuChange *c) override
	{
		gpu_hash_close(c, &tree);
		return gpu_change_status(c);
	}

	GpuStatus verify(GpuChange *c, char *why, size_t whylen) override
	{
		return gpu_hash_verify(c, &tree, why, whylen);
	}
};

#endif /* HASH_STRUCTURE_GPU_H */
