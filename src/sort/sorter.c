/*-------------------------------------------------------------------------
 *
 * sorter.c
 *	  Sorts entries: in any order in, ascending and all different out.
 *
 * What does not fit in memory goes to runs in a temporary file.  Duplicates are removed first, and if few
 * entries are left, they stay in memory.  The memory grows with the input.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "sort/sorter.h"
#include "sort/runs.h"
#include "kernels/core/sort.h"

#define START_ENTRIES 1024

/* Entries of a run at most: sorting them cannot be interrupted. */
#define MAX_ENTRIES (4 * 1024 * 1024)

#define START_RUNS 16

struct GpudsSorter
{
	int nwords;
	Size memory;
	MemoryContext context;
	GpudsEntry *entries;
	int64 n;
	int64 at; /* next to give, if all of them fit in memory */
	int64 allocated;
	int64 capacity; /* of memory */
	bool sorted;
	BufFile *file; /* NULL: all of them fit in memory */
	int64 spilled;
	GpudsSortedRun *runs;
	int64 nruns;
	int64 runs_size;
	GpudsMerge *merge; /* NULL: there is no file, or the first has not been asked for */
};

/* Starts a sorter in the current memory context, which takes about so much memory. */
GpudsSorter *
gpuds_sorter_begin(int nwords, int kilobytes)
{
	GpudsSorter *sorter = palloc0(sizeof(GpudsSorter));
	int64 most;

	sorter->nwords = nwords;
	sorter->memory = (Size) kilobytes * 1024;
	sorter->context = CurrentMemoryContext;
	most = (int64) (sorter->memory / (2 * sizeof(GpudsEntry)));
	sorter->allocated = START_ENTRIES;
	sorter->capacity = Max(Min(most, MAX_ENTRIES), START_ENTRIES);
	sorter->entries = palloc(sorter->allocated * sizeof(GpudsEntry));
	return sorter;
}

static void
sort(GpudsSorter *sorter)
{
	GpudsEntry *scratch = MemoryContextAllocHuge(sorter->context, (sorter->n + 1) * sizeof(GpudsEntry));

	sort_entries(sorter->entries, scratch, sorter->n);
	sorter->n = sort_unique_entries(sorter->entries, sorter->n);
	pfree(scratch);
}

static void
add_run(GpudsSorter *sorter)
{
	if (sorter->nruns == sorter->runs_size)
	{
		sorter->runs_size = Max(START_RUNS, 2 * sorter->runs_size);
		if (sorter->runs)
			sorter->runs = repalloc_huge(sorter->runs, sorter->runs_size * sizeof(GpudsSortedRun));
		else
			sorter->runs = palloc(sorter->runs_size * sizeof(GpudsSortedRun));
	}
	sorter->runs[sorter->nruns].file = sorter->file;
	sorter->runs[sorter->nruns].first = sorter->spilled;
	sorter->runs[sorter->nruns++].count = sorter->n;
}

/* Writes what is in memory as a run. */
static void
spill(GpudsSorter *sorter)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);

	if (sorter->file == NULL)
		sorter->file = BufFileCreateTemp(false);
	gpuds_run_write(sorter->file, sorter->entries, sorter->n, sorter->nwords);
	add_run(sorter);
	sorter->spilled += sorter->n;
	sorter->n = 0;
	MemoryContextSwitchTo(old);
}

/* Adds an entry. */
void
gpuds_sorter_add(GpudsSorter *sorter, const GpudsEntry *entry)
{
	Assert(!sorter->sorted);
	if (sorter->n == sorter->capacity)
	{
		sort(sorter);
		if (sorter->n > sorter->capacity / 2)
			spill(sorter);
	}
	else if (sorter->n == sorter->allocated)
	{
		sorter->allocated = Min(2 * sorter->allocated, sorter->capacity);
		sorter->entries = repalloc_huge(sorter->entries, sorter->allocated * sizeof(GpudsEntry));
	}
	sorter->entries[sorter->n++] = *entry;
}

static void
begin_merge(GpudsSorter *sorter)
{
	sorter->merge = gpuds_merge_begin(sorter->nwords, sorter->memory / 4);
	for (int64 i = 0; i < sorter->nruns; i++)
		gpuds_merge_run(sorter->merge, &sorter->runs[i]);
	gpuds_merge_array(sorter->merge, sorter->entries, sorter->n);
}

/* Gives the next up to cap entries.  Returns their number, 0 at the end. */
int64
gpuds_sorter_next(GpudsSorter *sorter, GpudsEntry *out, int64 cap)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	int64 n;

	CHECK_FOR_INTERRUPTS();
	if (!sorter->sorted)
	{
		sort(sorter);
		sorter->sorted = true;
		if (sorter->file)
			begin_merge(sorter);
	}
	if (sorter->merge)
		n = gpuds_merge_next(sorter->merge, out, cap);
	else
	{
		n = Min(cap, sorter->n - sorter->at);
		memcpy(out, sorter->entries + sorter->at, n * sizeof(GpudsEntry));
		sorter->at += n;
	}
	MemoryContextSwitchTo(old);
	return n;
}

void
gpuds_sorter_end(GpudsSorter *sorter)
{
	if (sorter->merge)
		gpuds_merge_end(sorter->merge);
	if (sorter->file)
		BufFileClose(sorter->file);
	if (sorter->runs)
		pfree(sorter->runs);
	pfree(sorter->entries);
	pfree(sorter);
}
