/*-------------------------------------------------------------------------
 *
 * seen_entries.h
 *	  The entries of a scan whose rows its snapshot sees, a piece at a time, with side values.
 *
 * Visibility is as in visible.h.  The rows themselves are not wanted, so most are not visited.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SEEN_ENTRIES_H
#define GPUDS_SEEN_ENTRIES_H

#include "reader/visible.h"

typedef struct GpudsSeenEntries
{
	IndexScanDesc scan;
	GpudsVisible visible;
	GpudsSideReader reader;
	int side_bytes; /* of side values that are wanted; 0: none are */
	MemoryContext context;

	/* the piece */
	GpudsEntry *entries;
	bool *seen;
	uint8 *side; /* of each; NULL: none are wanted */
	int64 n;
	int64 size;
	bool full; /* it was full enough for the next to be larger */
} GpudsSeenEntries;

extern void gpuds_seen_begin(GpudsSeenEntries *seen, IndexScanDesc scan, const GpudsKeyLayout *layout,
							 bool side);
extern void gpuds_seen_start(GpudsSeenEntries *seen, int64 weight);
extern bool gpuds_seen_next(GpudsSeenEntries *seen);
extern bool gpuds_seen_make_graph(GpudsSeenEntries *seen, const GpudsCountEdges *edges, bool both, bool based,
								  GpudsDeviceGraph *graph, GpudsCounted *others);
extern void gpuds_seen_take_graph(GpudsSeenEntries *seen, const GpudsCounted *others);
extern void gpuds_seen_look_up(GpudsSeenEntries *seen, const GpudsEntry *entries, int64 n);
extern void gpuds_seen_end(GpudsSeenEntries *seen);

#endif /* GPUDS_SEEN_ENTRIES_H */
