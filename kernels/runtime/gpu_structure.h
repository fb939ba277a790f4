/*-------------------------------------------------------------------------
 *
 * gpu_structure.h
 *	  What a structure is on a GPU.
 *
 * A structure is a class NameOnGpu, derived from GpuStructure, with its type Probe
 * (view.h) and a function of the class that says what changes need:
 *
 *	  static GpuChangeNeeds change_needs()
 *
 * An object of the class is one tree; it is made with the structure's number.
 *
 * One thread, the engine's changer, calls what changes a tree.  These functions return
 * when the device is through.  Other threads call view and scan beside it, and have
 * pinned the version (pins.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_STRUCTURE_H
#define GPU_STRUCTURE_H

#include "kernels/runtime/request.h"
#include "kernels/runtime/pool.h"
#include "kernels/runtime/scan.h"
#include "kernels/runtime/view.h"

struct GpuChange;

/* What a structure needs of the changing thread (GpuChange), at most. */
struct GpuChangeNeeds
{
	size_t report_bytes; /* that the device tells the host of a change */
	size_t memory_bytes; /* of the device: working memory of a small batch */
};

struct GpuStructure : GpuJoinSide
{
	const uint32_t number; /* in kernels/structures.h */
	GpuStructure *other;   /* tree of another structure under the same number; the engine's */

	explicit GpuStructure(uint32_t structure) : number(structure), other(NULL)
	{
	}

	virtual ~GpuStructure()
	{
	}

	/* What readers pin.  It only ever rises, over all loads and drops. */
	virtual const uint64_t *version() const = 0;

	/* The version's view; false: there is no tree. */
	virtual bool view(const GpuPool *pool, GpudsView *view) const = 0;

	/* Answers a scan request: gpu_scan_large with the structure's probe. */
	virtual uint32_t scan(GpuScanStream *stream, const GpudsView *view, unsigned char *staging,
						  unsigned char *device_staging, GpuRequest *request) const = 0;

	/* Bytes of device memory that the tree holds. */
	virtual uint64_t bytes() const = 0;

	/*
	 * A load: entries lie in host memory that the device can use, all of them strictly
	 * ascending.  What is not loaded to its end is dropped.
	 */
	virtual GpuStatus load_begin(GpuChange *c, uint32_t nwords, uint32_t fill_percent) = 0;
	virtual GpuStatus load_add(GpuChange *c, const GpudsEntry *entries, int64_t n) = 0;
	virtual GpuStatus load_end(GpuChange *c) = 0;

	/*
	 * Applies operations in any order, which the device sees at there, and publishes a
	 * version.  GPU_NO_MEMORY, GPU_TOO_LARGE: nothing was changed; or, GPU_NO_MEMORY of a structure
	 * that is changed in place, some operations were done, and all may be done again.
	 */
	virtual GpuStatus apply(GpuChange *c, const GpudsOp *ops, const GpudsOp *there, int64_t n,
							int64_t *inserted, int64_t *deleted) = 0;

	/*
	 * After an apply: if deletes have left much memory unused, builds the tree anew
	 * with less and publishes that as a version.  True: it did, so reclaim may give
	 * memory back.
	 */
	virtual bool compact(GpuChange *)
	{
		return false;
	}

	/* Uses again what versions have replaced, if no version older than oldest is pinned. */
	virtual void reclaim(GpuChange *c, uint64_t oldest) = 0;

	/* Readers find no tree any more, if there was one; those that pinned it go on. */
	virtual void withdraw() = 0;

	/* Gives all memory of a withdrawn tree back that nobody pins, also if it was being loaded. */
	virtual GpuStatus drop(GpuChange *c) = 0;

	/* GPU_DAMAGED: why says what is wrong with the newest version. */
	virtual GpuStatus verify(GpuChange *c, char *why, size_t whylen) = 0;
};

#endif /* GPU_STRUCTURE_H */
