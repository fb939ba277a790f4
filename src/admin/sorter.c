/*-------------------------------------------------------------------------
 *
 * sorter.c
 *	  Sorts entries: in any order in, ascending out.
 *
 * Sorts in maintenance_work_mem.  What does not fit goes to runs in a temporary file.  The
 * memory grows with the input.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "admin/admin.h"
#include "journal/runs.h"
#include "kernels/core/sort.h"

#define START_ENTRIES 4096

/* Entries of a run at most: sorting them cannot be interrupted. */
#define MAX_ENTRIES (4 * 1024 * 1024)

struct GpudsSorter
{
	int nwords;
	GpudsEntry *entries;
	int64 n;
	int64 allocated;
	int64 capacity; /* of memory, and entries of a run */
	BufFile *file;  /* NULL: all of them fit in memory */
	int64 spilled;
	GpudsMerge *merge; /* NULL until the first is asked for */
};

/* Starts a sorter in the current memory context. */
GpudsSorter *
gpuds_sorter_begin(int nwords)
{
	GpudsSorter *sorter = palloc0(sizeof(GpudsSorter));
	int64 most = (int64) maintenance_work_mem * 1024 / (2 * sizeof(GpudsEntry));

	sorter->nwords = nwords;
	sorter->allocated = START_ENTRIES;
	sorter->capacity = Max(Min(most, MAX_ENTRIES), START_ENTRIES);
	sorter->entries = palloc(sorter->allocated * sizeof(GpudsEntry));
	return sorter;
}

static void
sort(GpudsSorter *sorter)
{
	GpudsEntry *scratch = MemoryContextAllocHuge(CurrentMemoryContext, (sorter->n + 1) * sizeof(GpudsEntry));

	sort_entries(sorter->entries, scratch, sorter->n);
	pfree(scratch);
}

/* Adds an entry. */
void
gpuds_sorter_add(GpudsSorter *sorter, const GpudsEntry *entry)
{
	Assert(sorter->merge == NULL);
	if (sorter->n == sorter->capacity)
	{
		if (sorter->file == NULL)
			sorter->file = BufFileCreateTemp(false);
		sort(sorter);
		gpuds_run_write(sorter->file, sorter->entries, sorter->n, sorter->nwords);
		sorter->spilled += sorter->n;
		sorter->n = 0;
	}
	else if (sorter->n == sorter->allocated)
	{
		sorter->allocated = Min(2 * sorter->allocated, sorter->capacity);
		sorter->entries = repalloc_huge(sorter->entries, sorter->allocated * sizeof(GpudsEntry));
	}
	sorter->entries[sorter->n++] = *entry;
}

/* Gives the next up to cap entries, without duplicates.  Returns their number, 0 at the end. */
int64
gpuds_sorter_next(GpudsSorter *sorter, GpudsEntry *out, int64 cap)
{
	CHECK_FOR_INTERRUPTS();
	if (sorter->merge == NULL)
	{
		sort(sorter);
		sorter->merge = gpuds_merge_begin(sorter->nwords, (Size) maintenance_work_mem * 1024 / 4);
		if (sorter->file)
			gpuds_merge_runs(sorter->merge, sorter->file, sorter->spilled, sorter->capacity);
		gpuds_merge_array(sorter->merge, sorter->entries, sorter->n);
	}
	return gpuds_merge_next(sorter->merge, out, cap);
}

void
gpuds_sorter_end(GpudsSorter *sorter)
{
	if (sorter->merge)
		gpuds_merge_end(sorter->merge);
	if (sorter->file)
		BufFileClose(sorter->file);
	pfree(sorter->entries);
	pfree(sorter);
}
