/*-------------------------------------------------------------------------
 *
 * shared_tids.h
 *	  The TIDs of one scan, shared by the participants of a parallel plan.
 *
 *	  T1	One participant asks the index: the first one that comes.  It asks for all TIDs before it
 *			visits any, and waits for no other participant meanwhile.
 *
 *			So others may wait for it.  Were it to ask for one piece, visit that, and ask for the next
 *			one, those who wait for the next one could hold it up for good: with Gather Merge, the
 *			leader reads no rows of a worker while it waits for those of another.
 *
 *	  T2	The first piece of TIDs (tids.c) is in the query's shared memory, and is given from when it
 *			is there.  All other pieces are in a temporary file, and are given when the last one is
 *			there.
 *
 *			So memory is bounded, however many TIDs there are, and participants begin as soon as in a
 *			serial scan.
 *
 *	  T3	A chunk of TIDs is given to one participant.  Chunks end where pages of the table do, so
 *			within a piece no page is visited twice.
 *
 *	  T4	What fetch.h says of the scan that found the TIDs holds for every process that visits them:
 *			rows that the snapshot sees stay as long as it does, and all participants have one snapshot,
 *			which the leader holds until the last worker has ended.  Only the process that asks passes a
 *			barrier, because what the others do depends on the TIDs and the snapshot alone.
 *
 * Errors need no care here.  An error in a worker, or its end, reaches the leader, also while it waits;
 * the leader's own ends the workers, also while they wait.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SHARED_TIDS_H
#define GPUDS_SHARED_TIDS_H

#include "access/parallel.h"
#include "storage/buffile.h"
#include "utils/dsa.h"

#include "reader/fetch.h"

typedef struct GpudsSharedTids GpudsSharedTids;

/* What a participant knows of them; zeroed to begin with. */
typedef struct GpudsTidShare
{
	GpudsSharedTids *shared; /* NULL: nobody else takes part */
	MemoryContext context;   /* of what follows */
	BufFile *file;           /* of pieces; NULL: it is not open here */
	uint64 *read;            /* of TIDs that were read there; NULL: there is none */
} GpudsTidShare;

typedef enum GpudsShareStep
{
	GPUDS_SHARE_ASK,   /* ask the index: gpuds_shared_tids_add for each piece, then gpuds_shared_tids_added */
	GPUDS_SHARE_CHUNK, /* there is a chunk to visit */
	GPUDS_SHARE_END    /* there are no more TIDs */
} GpudsShareStep;

typedef struct GpudsTidChunk
{
	const uint64 *tids; /* ascending, all different; they last until the next chunk */
	int64 n;
	bool recheck; /* the index's conditions are to be looked at again */
} GpudsTidChunk;

extern Size gpuds_shared_tids_size(void);
extern void gpuds_shared_tids_create(GpudsTidShare *share, const ParallelContext *context, void *shared);
extern void gpuds_shared_tids_attach(GpudsTidShare *share, void *shared);
extern void gpuds_shared_tids_renew(GpudsTidShare *share, dsa_area *area);
extern void gpuds_shared_tids_leave(GpudsTidShare *share);
extern int64 gpuds_shared_tids_most(const GpudsTidShare *share);
extern GpudsShareStep gpuds_shared_tids_next(GpudsTidShare *share, dsa_area *area, GpudsTidChunk *chunk);
extern void gpuds_shared_tids_add(GpudsTidShare *share, dsa_area *area, const GpudsTidList *piece);
extern void gpuds_shared_tids_added(GpudsTidShare *share);

#endif /* GPUDS_SHARED_TIDS_H */
