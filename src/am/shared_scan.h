/*-------------------------------------------------------------------------
 *
 * shared_scan.h
 *	  An index scan whose entries the participants of a parallel plan divide among themselves.
 *
 *	  P1	The participants share a place, the last entry that any of them has read.  One that needs
 *			entries takes the place, reads a chunk behind it, and puts the chunk's last entry in its stead.
 *
 *			So each entry is read by one participant, and each of them reads in the scan's order.
 *
 *	  P2	Each participant has passed its own barrier before it takes the place, and reads its own version
 *			of a mirror, or the journal.
 *
 *			Versions differ, but each has all entries of rows that the snapshot sees.  The place only moves
 *			in the scan's direction, so those entries are read once; the heap rejects whatever else a
 *			version has.
 *
 *	  P3	The holder of the place reads entries, and does nothing else: it visits no rows.
 *
 *			So it does not wait for another participant, and others may wait for it.
 *
 * An error needs no care here: it ends all participants, those that wait as well.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_AM_SHARED_SCAN_H
#define GPUDS_AM_SHARED_SCAN_H

#include "access/genam.h"

#include "kernels/core/entry.h"

/* Entries of a chunk at most: participants are to be through at about the same time. */
#define GPUDS_SHARED_CHUNK 2048

typedef enum GpudsSharedPlace
{
	GPUDS_SHARED_START, /* before the first entry */
	GPUDS_SHARED_ON,    /* on an entry */
	GPUDS_SHARED_END    /* behind the last entry */
} GpudsSharedPlace;

extern Size gpuds_shared_scan_size(GpudsEstimateParallelScanParams);
extern void gpuds_shared_scan_init(void *target);
extern void gpuds_shared_scan_rescan(IndexScanDesc scan);
extern GpudsSharedPlace gpuds_shared_scan_take(IndexScanDesc scan, GpudsEntry *at);
extern void gpuds_shared_scan_put(IndexScanDesc scan, GpudsSharedPlace place, const GpudsEntry *at);

#endif /* GPUDS_AM_SHARED_SCAN_H */
