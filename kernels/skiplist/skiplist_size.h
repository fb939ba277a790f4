/*-------------------------------------------------------------------------
 *
 * skiplist_size.h
 *	  The sizes of a skip list's chunks in device memory (skiplist_chunk_gpu.h), which the host wants to know,
 *	  too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_SIZE_H
#define SKIPLIST_SIZE_H

#include "kernels/core/entry.h"

/* Slots of a chunk. */
#define GPU_SKIPLIST_PLACES 12

#define GPU_SKIPLIST_UNIT_BYTES 64

/* Units that a chunk takes. */
KERNEL_INLINE uint32_t
gpu_skiplist_units(const bool index, const int nw)
{
	return index || nw == 2 ? 6 : 4;
}

/* Bytes that an entry of a large list takes that was just loaded. */
HOST_FN double
gpu_skiplist_entry_bytes(int nwords, int fill_percent)
{
	double entries = GPU_SKIPLIST_PLACES * fill_percent / 100.0;
	int children = GPU_SKIPLIST_PLACES * fill_percent / 100;

	/* of all indexes: 1 / children + 1 / children^2 + ... chunks for each of level 0 */
	return GPU_SKIPLIST_UNIT_BYTES *
		   (gpu_skiplist_units(false, nwords) + gpu_skiplist_units(true, nwords) / (children - 1.0)) /
		   entries;
}

#endif /* SKIPLIST_SIZE_H */
