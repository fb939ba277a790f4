/*-------------------------------------------------------------------------
 *
 * side_chunks.h
 *	  The memory of the stores of side values: chunks, which have numbers from 1 on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SIDE_CHUNKS_H
#define GPUDS_SIDE_CHUNKS_H

#include "port/atomics.h"

#define SIDE_CHUNK_BYTES (16 * 1024)

/* References to other chunks that one has room for; 0: there is none. */
#define SIDE_CHUNK_REFS (SIDE_CHUNK_BYTES / sizeof(pg_atomic_uint32))

extern Size gpuds_side_chunks_size(void);
extern void gpuds_side_chunks_init(char *at, bool found);
extern uint32 gpuds_side_chunks(void);
extern uint32 gpuds_side_chunks_taken(void);
extern char *gpuds_side_chunk(uint32 ref);
extern uint32 gpuds_side_take_chunk(void);
extern void gpuds_side_give_chunk(uint32 ref);
extern uint32 gpuds_side_follow(pg_atomic_uint32 *place, bool made);

#endif /* GPUDS_SIDE_CHUNKS_H */
