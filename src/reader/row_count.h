/*-------------------------------------------------------------------------
 *
 * row_count.h
 *	  A count of the rows of a scan that its snapshot sees, by pieces.
 *
 * begin; then batches, each with at most as many entries as there is room for, in_heap as soon as a piece is
 * half full, and others of what a device has counted; and in_heap once more at the end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ROW_COUNT_H
#define GPUDS_ROW_COUNT_H

#include "reader/visible.h"

typedef struct GpudsRowCount
{
	GpudsVisible visible;

	/* entries of the piece whose rows are to be looked up */
	GpudsEntry *entries;
	int64 n;
	int64 size;

	bool *to_all; /* of a batch */
	int64 batch_size;
} GpudsRowCount;

/* Entries that a batch may have. */
static inline int64
gpuds_row_count_room(const GpudsRowCount *count)
{
	return GPUDS_PIECE_ENTRIES - count->n;
}

static inline bool
gpuds_row_count_is_half_full(const GpudsRowCount *count)
{
	return count->n >= GPUDS_PIECE_ENTRIES / 2;
}

extern void gpuds_row_count_begin(GpudsRowCount *count, IndexScanDesc scan);
extern int64 gpuds_row_count_batch(GpudsRowCount *count, const GpudsScanBatch *batch);
extern int64 gpuds_row_count_in_heap(GpudsRowCount *count);
extern int64 gpuds_row_count_others(GpudsRowCount *count, const GpudsCounted *counted);
extern int64 gpuds_row_count_end(GpudsRowCount *count);

#endif /* GPUDS_ROW_COUNT_H */
