/*-------------------------------------------------------------------------
 *
 * skiplist_structure_gpu.h
 *	  The skip list as a structure of the GPU.
 *
 *	  skiplist_chunk_gpu.h	the layout, and how it is read
 *	  skiplist_probe_gpu.h	intervals that a thread goes through alone
 *	  skiplist_pieces_gpu.h	longer intervals
 *	  skiplist_list_gpu.h	versions, memory
 *	  skiplist_build_gpu.h	loading
 *	  skiplist_change_gpu.h	what threads do in an apply
 *	  skiplist_apply_gpu.h	... and what the host does
 *	  skiplist_compact_gpu.h	building anew what deletes have left thin
 *	  skiplist_verify_gpu.h	checks
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_STRUCTURE_GPU_H
#define SKIPLIST_STRUCTURE_GPU_H

#include "kernels/skiplist/skiplist_apply_gpu.h"
#include "kernels/skiplist/skiplist_compact_gpu.h"
#include "kernels/skiplist/skiplist_probe_gpu.h"
#include "kernels/skiplist/skiplist_verify_gpu.h"

struct SkiplistOnGpu : GpuVersionedStructure<GpuSkiplist>
{
	typedef SkiplistProbe Probe;

	std::atomic<GpuPool *> pool{ NULL }; /* for long intervals */

	explicit SkiplistOnGpu(uint32_t structure) : GpuVersionedStructure(structure)
	{
	}

	static GpuChangeNeeds change_needs()
	{
		return { sizeof(GpuSkiplistReport), gpu_skiplist_small_bytes() };
	}

	uint32_t scan(GpuScanStream *stream, const GpudsView *view, unsigned char *staging, unsigned char *there,
				  GpuRequest *request) const override
	{
		return gpu_skiplist_scan(pool, stream, view, staging, there, request);
	}

	void join(GpuScanStream *stream, const GpudsView *view, const GpuJoinKeys &keys) const override
	{
		gpu_scan_join_probe<Probe>(stream, view, keys);
	}

	GpuStatus load_begin(GpuChange *c, uint32_t nwords, uint32_t fill_percent) override
	{
		pool = c->pool;
		return gpu_skiplist_load_begin(c, &tree, nwords, fill_percent);
	}

	GpuStatus load_add(GpuChange *c, const GpudsEntry *entries, int64_t n) override
	{
		return gpu_skiplist_load_add(c, &tree, entries, n);
	}

	GpuStatus load_end(GpuChange *c) override
	{
		return gpu_skiplist_load_end(c, &tree);
	}

	GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *there, int64_t n, int64_t *inserted,
					int64_t *deleted) override
	{
		*inserted = *deleted = 0;
		if (tree.nwords == 0 || tree.loading)
			return GPU_WITHDRAWN;
		return gpu_skiplist_apply(c, &tree, ops, there, n, inserted, deleted);
	}

	bool compact(GpuChange *c) override
	{
		return gpu_skiplist_compact(c, &tree);
	}

	void reclaim(GpuChange *c, uint64_t oldest) override
	{
		gpu_skiplist_reclaim(c, &tree, oldest);
	}

	GpuStatus drop(GpuChange *c) override
	{
		gpu_skiplist_close(c, &tree);
		return gpu_change_status(c);
	}

	GpuStatus verify(GpuChange *c, char *why, size_t whylen) override
	{
		return gpu_skiplist_verify(c, &tree, why, whylen);
	}
};

#endif /* SKIPLIST_STRUCTURE_GPU_H */
