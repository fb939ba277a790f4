/*-------------------------------------------------------------------------
 *
 * sorted.h
 *	  Entries in order, in memory or in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SORTED_H
#define GPUDS_SORTED_H

#include "storage/buffile.h"

#include "gpuds.h"

/* Entries that a merge gives, and that are read from a file, at a time. */
#define GPUDS_SORTED_BLOCK 512

/* Entries in order, in memory or in a file. */
typedef struct GpudsSorted
{
	int nwords;
	int64 n;
	GpudsEntry *entries; /* if in memory */
	int64 size;          /* allocated */
	BufFile *file;       /* else records */
	int64 block;         /* of which entries are in buffer; -1: none */
	GpudsEntry *buffer;
	char *packed;
} GpudsSorted;

extern void gpuds_sorted_read(GpudsSorted *sorted, int64 i);
extern void gpuds_sorted_add(GpudsSorted *sorted, const GpudsEntry *entries, int64 n, Size memory);
extern int64 gpuds_sorted_find(GpudsSorted *sorted, int64 near, const GpudsEntry *bound, bool through);

/* Entry i of those at hand; valid until the next call. */
static inline const GpudsEntry *
gpuds_sorted_entry(GpudsSorted *sorted, int64 i)
{
	if (sorted->file == NULL)
		return &sorted->entries[i];
	if (i / GPUDS_SORTED_BLOCK != sorted->block)
		gpuds_sorted_read(sorted, i);
	return &sorted->buffer[i % GPUDS_SORTED_BLOCK];
}

#endif /* GPUDS_SORTED_H */
