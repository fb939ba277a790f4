/*-------------------------------------------------------------------------
 *
 * sorted.c
 *	  Entries in order, in memory or in a temporary file.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "journal/journal.h"
#include "sort/runs.h"
#include "mirror/sorted.h"

/* Reads the block of the file that entry i is in. */
void
gpuds_sorted_read(GpudsSorted *sorted, int64 i)
{
	const int size = GpudsRecordSize(sorted->nwords);
	int64 block = i / GPUDS_SORTED_BLOCK;
	int64 first = block * GPUDS_SORTED_BLOCK;
	int n = Min(GPUDS_SORTED_BLOCK, sorted->n - first);

	CHECK_FOR_INTERRUPTS();
	sorted->block = -1;
	if (BufFileSeek(sorted->file, 0, first * size, SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in temporary file: %m")));
	gpuds_buffile_read(sorted->file, sorted->packed, (Size) n * size);
	for (int j = 0; j < n; j++)
		gpuds_record_entry((const GpudsRecord *) (sorted->packed + j * size), sorted->nwords,
						   &sorted->buffer[j]);
	sorted->block = block;
}

/* Adds entries behind all others; goes over to a file when memory, in bytes, is full. */
void
gpuds_sorted_add(GpudsSorted *sorted, const GpudsEntry *entries, int64 n, Size memory)
{
	if (sorted->file == NULL && (sorted->n + n) * sizeof(GpudsEntry) > memory)
	{
		sorted->file = BufFileCreateTemp(false);
		gpuds_run_write(sorted->file, sorted->entries, sorted->n, sorted->nwords);
		if (sorted->entries)
			pfree(sorted->entries);
		sorted->entries = NULL;
		sorted->block = -1;
		sorted->buffer = palloc(GPUDS_SORTED_BLOCK * sizeof(GpudsEntry));
		sorted->packed = palloc(GPUDS_SORTED_BLOCK * GpudsRecordSize(sorted->nwords));
	}
	if (sorted->file)
		gpuds_run_write(sorted->file, entries, n, sorted->nwords);
	else
	{
		if (sorted->entries == NULL || sorted->n + n > sorted->size)
		{
			int64 size = Max(Min(sorted->size * 2, (int64) (memory / sizeof(GpudsEntry))), sorted->n + n);

			if (sorted->entries)
				sorted->entries = repalloc_huge(sorted->entries, size * sizeof(GpudsEntry));
			else
				sorted->entries = palloc(size * sizeof(GpudsEntry));
			sorted->size = size;
		}
		memcpy(sorted->entries + sorted->n, entries, n * sizeof(GpudsEntry));
	}
	sorted->n += n;
}

static inline bool
comes_before(GpudsSorted *sorted, int64 i, const GpudsEntry *bound, bool through)
{
	const GpudsEntry *entry = gpuds_sorted_entry(sorted, i);

	return through ? !entry_less(bound, entry) : entry_less(entry, bound);
}

/*
 * How many entries lie before the bound; with through, how many do not lie
 * behind it.  Looks around near first, a place from 0 to n.
 */
int64
gpuds_sorted_find(GpudsSorted *sorted, int64 near, const GpudsEntry *bound, bool through)
{
	int64 lo = 0;
	int64 hi = sorted->n;
	int64 step = 1;

	if (near < hi && comes_before(sorted, near, bound, through))
	{
		lo = near + 1;
		while (lo + step <= hi && comes_before(sorted, lo + step - 1, bound, through))
		{
			lo += step;
			step *= 2;
		}
		hi = Min(hi, lo + step - 1);
	}
	else
	{
		hi = near;
		while (hi - step >= 0 && !comes_before(sorted, hi - step, bound, through))
		{
			hi -= step;
			step *= 2;
		}
		lo = Max(lo, hi - step + 1);
	}
	while (lo < hi)
	{
		int64 middle = lo + (hi - lo) / 2;

		if (comes_before(sorted, middle, bound, through))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}
