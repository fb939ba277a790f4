/*-------------------------------------------------------------------------
 *
 * base_parts.h
 *	  The base of an index in parts that several processes write at once.
 *
 * A part is what lies between two entries in the merge of all runs.  No entry is in two
 * runs.  Therefore the number of its entries is known before it is merged, and with that
 * its place in the file and in the numbering of records.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_BASE_PARTS_H
#define GPUDS_BASE_PARTS_H

#include "gpuds.h"

#include "sort/runs.h"

/* Where a part begins; it ends where the next one begins. */
typedef struct GpudsPart
{
	GpudsEntry from;   /* its entries are not below this */
	uint64 before;     /* entries of all parts before it */
	BlockNumber block; /* its first one */
} GpudsPart;

extern void gpuds_base_parts_plan(const GpudsSortedRun *runs, int nruns, int nwords, BlockNumber block,
								  GpudsPart *parts, int nparts);
extern void gpuds_part_write(Relation index, const GpudsSortedRun *runs, int nruns, int nwords,
							 const GpudsPart *parts, int nparts, int i, bool log_pages, Size memory,
							 pg_atomic_uint64 *done);

#endif /* GPUDS_BASE_PARTS_H */
