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

#include "kernels/runtime/gpu_structure.h"
#include "kernels/hash/hash_apply_gpu.h"
#include "kernels/hash/hash_probe_gpu.h"
#include "kernels/hash/hash_verify_gpu.h"
#include "kernels/hash/hash_walk_gpu.h"

struct HashOnGpu : GpuStructure
{
	typedef HashProbe Probe;

	GpuHash hash;
	std::atomic<GpuPool *> pool{ NULL }; /* for walks */

	explicit HashOnGpu(uint32_t structure) : GpuStructure(structure)
	{
	}

	static GpuChangeNeeds change_needs()
	{
		return { sizeof(GpuHashReport), gpu_tree_small_bytes() };
	}

	const uint64_t *version() const override
	{
		return gpu_tree_version(&hash.table);
	}

	bool view(const GpuPool *from, GpuView *view) const override
	{
		BtreeView v;
		bool there = gpu_tree_view(&hash.table, from, &v);

		view->base = v.base;
		view->entries = v.entries;
		view->structure = number;
		view->root = v.root;
		view->height = v.height;
		view->nwords = v.nwords;
		return there;
	}

	uint32_t scan(GpuScanStream *stream, const GpuView *view, unsigned char *staging, unsigned char *there,
				  GpuRequest *request) const override
	{
		return gpu_hash_scan(pool, stream, view, staging, there, request);
	}

	bool small(const GpuView *view, const unsigned char *staging, const GpuRequest *request) const override
	{
		return gpu_hash_single_keys(view, staging, request);
	}

	uint64_t bytes() const override
	{
		return gpu_hash_bytes(&hash);
	}

	GpuStatus load_begin(GpuChange *c, uint32_t nwords, uint32_t fill_percent) override
	{
		if (hash.table.nwords != 0)
			return GPU_WITHDRAWN;
		pool = c->pool;
		if (!gpu_hash_open(c, &hash, nwords, fill_percent))
		{
			gpu_hash_close(c, &hash);
			return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
		}
		return GPU_OK;
	}

	GpuStatus load_add(GpuChange *c, const GpudsEntry *entries, int64_t n) override
	{
		int64_t inserted;
		int64_t deleted;

		if (!hash.table.loading)
			return GPU_WITHDRAWN;
		/* nobody sees what it replaces */
		gpu_hash_reclaim(c, &hash, UINT64_MAX);
		return gpu_hash_apply(c, &hash, NULL, entries, n, &inserted, &deleted);
	}

	GpuStatus load_end(GpuChange *c) override
	{
		if (!hash.table.loading)
			return GPU_WITHDRAWN;
		gpu_hash_reclaim(c, &hash, UINT64_MAX);
		hash.table.loading = false;
		gpu_tree_publish(&hash.table, hash.table.entries.load());
		return gpu_change_status(c);
	}

	GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *, int64_t n, int64_t *inserted,
					int64_t *deleted) override
	{
		*inserted = *deleted = 0;
		if (hash.table.nwords == 0 || hash.table.loading)
			return GPU_WITHDRAWN;
		return gpu_hash_apply(c, &hash, ops, NULL, n, inserted, deleted);
	}

	bool compact(GpuChange *c) override
	{
		return gpu_hash_compact(c, &hash);
	}

	void reclaim(GpuChange *c, uint64_t oldest) override
	{
		gpu_hash_reclaim(c, &hash, oldest);
	}

	void withdraw() override
	{
		gpu_tree_withdraw(&hash.table);
	}

	GpuStatus drop(GpuChange *c) override
	{
		gpu_hash_close(c, &hash);
		return gpu_change_status(c);
	}

	GpuStatus verify(GpuChange *c, char *why, size_t whylen) override
	{
		return gpu_hash_verify(c, &hash, why, whylen);
	}
};

#endif /* HASH_STRUCTURE_GPU_H */
