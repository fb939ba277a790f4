/*-------------------------------------------------------------------------
 *
 * view.h
 *	  One version of a structure in device memory, for code that does not know the
 *	  structure.
 *
 * A view (GpudsView) has height 0 if there are no entries; else its root and height are the structure's
 * affair. Scans (scan.h, scan_block.h) and the persistent kernel know of a structure only its probe, a class
 * of functions without data that is the parameter of their templates:
 *
 *	  View			one version, as the structure sees it
 *	  Position		of an entry; steps lead to its neighbours
 *
 *	  View open(const GpudsView &)
 *	  uint64_t locate(view, const GpudsInterval *, forward, GpuStart *)
 *					how many entries an interval has, and where the first one of
 *					them is in the scan's direction; GPU_TOO_FAR: more than
 *					GPU_SMALL_ENTRIES, and too many for a thread to count.  The first
 *					GPU_SMALL_ENTRIES of them can be had all the same
 *	  void position(view, GpuStart, k, forward, Position *)
 *					of the k-th entry of an interval, in the scan's direction
 *	  void step(view, Position *, forward)
 *					to the next entry of the interval, which is there
 *	  int together(view, const Position &)
 *					how many entries lie together from one on, forward, at least one
 *	  void next(Position *)
 *					to the next of these
 *	  GpudsEntry entry(view, const Position &)
 *	  uint64_t tid(view, const Position &)
 *					the entry's t & ENTRY_TID_MASK
 *	  int tids(view, Position *, n, uint64_t *tids)
 *					the same of the next entries, forward, of which an interval has n:
 *					of as many as are read best together, at least one; how many.  They
 *					are in any of GPU_TIDS places, the others are GPU_NO_TID.  If there
 *					are more, steps to the first of them
 *
 *	  bool has_ranks	a constant: does locate count any interval without going through it?
 *	  bool by_tiles	a constant: are these there?
 *
 * and for the persistent kernel, in which a tile of GPU_TILE lanes does the work of a
 * thread, so that their loads are one (all lanes of a warp call it):
 *
 *	  GpuBound tile_bound(view, const GpudsInterval &, bool end)
 *					before the interval's first entry, or behind its last one; the
 *					structure is not empty
 *	  GpuStart start(const GpuBound *bounds, skip)
 *					of the entry that has so many of the interval's before it
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_VIEW_H
#define GPU_VIEW_H

#include "kernels/core/version.h"

/* Where an entry is, as one number. */
typedef uint64_t GpuStart;

/* More entries than there can be; sums of so many do not overflow. */
#define GPU_TOO_FAR (UINT64_C(1) << 40)

/* A place between entries. */
struct GpuBound
{
	uint64_t rank; /* entries before it */
	uint32_t node; /* of the structure ... */
	int place;     /* ... and the place in it */
};

/* Places for TIDs that a probe reads together, and what is in those that it does not use. */
#define GPU_TIDS 8
#define GPU_NO_TID UINT64_MAX

/* Lanes of a tile. */
#define GPU_TILE 8

#define GPU_ALL_LANES 0xFFFFFFFFu

#endif /* GPU_VIEW_H */
