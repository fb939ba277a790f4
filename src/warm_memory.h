/*-------------------------------------------------------------------------
 *
 * warm_memory.h
 *	  Memory that a process keeps between its batches.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_WARM_MEMORY_H
#define GPUDS_WARM_MEMORY_H

extern void gpuds_keep_warm_memory(void);

#endif /* GPUDS_WARM_MEMORY_H */
