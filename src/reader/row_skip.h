/*-------------------------------------------------------------------------
 *
 * row_skip.h
 *	  A scan that moves behind rows, which are counted and not given.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ROW_SKIP_H
#define GPUDS_ROW_SKIP_H

#include "reader/reader.h"
#include "reader/row_count.h"

/* Rows that are not worth the search for a part. */
#define GPUDS_SKIP_FEW_FOR_PART 2048

/* Parts that are counted, at most.  Where many entries are of dead rows, batches do. */
#define GPUDS_SKIP_MOST_PARTS 8

/* Intervals that are skipped as such. */
#define GPUDS_SKIP_MOST_INTERVALS 1024

/* Bits that intervals are cut in, for a device that counts all pieces at once, and for one that does not. */
#define GPUDS_SKIP_EACH_BITS 10
#define GPUDS_SKIP_HALF_BITS 1

typedef struct GpudsRowSkip
{
	IndexScanDesc scan;
	GpudsRowCount count;
	bool forward;
	int nwords;   /* of a key */
	int64 left;   /* rows to skip */
	int64 excess; /* rows that parts had more than they should */
	bool each;    /* the device counts many pieces at once; else: */
	GpudsPeek peek;
} GpudsRowSkip;

/* The i-th of n pieces that a scan comes to. */
static inline int64
gpuds_skip_turn(bool forward, int64 i, int64 n)
{
	return forward ? i : n - 1 - i;
}

extern void gpuds_skip_begin(GpudsRowSkip *skip, IndexScanDesc scan, bool forward, int64 n);
extern int64 gpuds_skip_end(GpudsRowSkip *skip);
extern int64 gpuds_skip_cut(const GpudsInterval *interval, int bits, int low, int nwords,
							GpudsInterval *pieces);
extern bool gpuds_skip_cut_off(const GpudsRowSkip *skip, const GpudsEntry *entry, GpudsInterval *interval);
extern bool gpuds_skip_count_entries(GpudsRowSkip *skip, const GpudsInterval *pieces, int64 n, int64 most,
									 int64 *entries);
extern int64 gpuds_skip_find_whole(GpudsRowSkip *skip, const GpudsInterval *intervals, int64 n, int64 *most);
extern bool gpuds_skip_find_part(GpudsRowSkip *skip, const GpudsInterval *interval, int64 most,
								 GpudsInterval *part);
extern bool gpuds_skip_count_part(GpudsRowSkip *skip, const GpudsInterval *intervals, int64 n, int64 *seen,
								  int64 *entries);
extern void gpuds_skip_ascend(const GpudsRowSkip *skip, GpudsInterval *intervals, int64 n);

#endif /* GPUDS_ROW_SKIP_H */
