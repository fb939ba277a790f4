/*-------------------------------------------------------------------------
 *
 * avl_structure_gpu.h
 *	  The AVL tree as a structure of the GPU: its functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef AVL_STRUCTURE_GPU_H
#define AVL_STRUCTURE_GPU_H

#include "kernels/avl/avl_apply_gpu.h"
#include "kernels/avl/avl_compact_gpu.h"
#include "kernels/avl/avl_probe_gpu.h"
#include "kernels/avl/avl_verify_gpu.h"

struct AvlOnGpu : GpuVersionedStructure<GpuTree>
{
	typedef AvlProbe Probe;

	explicit AvlOnGpu(uint32_t structure) : GpuVersionedStructure(structure)
	{
	}

	static GpuChangeNeeds change_needs()
	{
		return { sizeof(GpuAvlReport), gpu_avl_small_bytes() };
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
		return gpu_avl_load_begin(c, &tree, nwords, fill_percent);
	}

	GpuStatus load_add(GpuChange *c, const GpudsEntry *entries, int64_t n) override
	{
		return gpu_load_add<GpuAvlLayout>(c, &tree, entries, n);
	}

	GpuStatus load_end(GpuChange *c) override
	{
		return gpu_avl_load_end(c, &tree);
	}

	GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *there, int64_t n, int64_t *inserted,
					int64_t *deleted) override
	{
		return gpu_avl_apply(c, &tree, ops, there, n, inserted, deleted);
	}

	bool compact(GpuChange *c) override
	{
		return gpu_avl_compact(c, &tree);
	}

	GpuStatus verify(GpuChange *c, char *why, size_t whylen) override
	{
		return gpu_avl_verify(c, &tree, why, whylen);
	}
};

#endif /* AVL_STRUCTURE_GPU_H */
