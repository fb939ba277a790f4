/*-------------------------------------------------------------------------
 *
 * file_internal.h
 *	  The directory of index files in shared memory, for the files of this directory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_FILE_INTERNAL_H
#define GPUDS_FILE_INTERNAL_H

#include "file/file.h"

/* Files of one hash value. */
typedef struct GpudsFileChain
{
	pg_atomic_uint64 moves; /* changes of its entries; never 0 */
	int first;              /* slot, under the lock */
} GpudsFileChain;

/* A file that has something.  All under the lock. */
typedef struct GpudsFileSlot
{
	GpudsFile file;
	uint64 facet[GPUDS_FACETS];
	int next; /* of the chain */
} GpudsFileSlot;

typedef struct GpudsFileDirectory
{
	uint64 last_count; /* of serials; under the lock */
	GpudsFileChain chain[FLEXIBLE_ARRAY_MEMBER];
} GpudsFileDirectory;

/* Of this process. */
extern GpudsFacetKeeper gpuds_facet_keepers[GPUDS_FACETS];

#endif /* GPUDS_FILE_INTERNAL_H */
