/*-------------------------------------------------------------------------
 *
 * base_parts.c
 *	  Cuts the base of an index into parts and writes one of them.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "build/base_parts.h"
#include "journal/journal.h"
#include "kernels/core/sort.h"

/* Entries looked at for each part: it comes out within some percent of its share. */
#define SAMPLES 256

/* Entries that go from the merge to the base writer at a time. */
#define MERGE_ENTRIES 2048

/* Takes an entry of every step of them; returns how many. */
static int64
sample(const GpudsSortedRun *runs, int nruns, int nwords, int64 step, GpudsEntry *samples, int64 most)
{
	int64 n = 0;

	for (int r = 0; r < nruns; r++)
	{
		for (int64 i = step / 2; i < runs[r].count && n < most; i += step)
			gpuds_run_entry(&runs[r], i, nwords, &samples[n++]);
		CHECK_FOR_INTERRUPTS();
	}
	return n;
}

/*
 * Cuts the merge of the runs into nparts parts of about the same size, from a block on.  Fills nparts + 1
 * elements: the last says where the whole ends.  Interruptible.  Raises what reading the runs' files does.
 */
void
gpuds_base_parts_plan(const GpudsSortedRun *runs, int nruns, int nwords, BlockNumber block, GpudsPart *parts,
					  int nparts)
{
	const int capacity = GpudsPageCapacity(nwords);
	uint64 total = 0;
	int64 nsamples;
	int64 most;
	GpudsEntry *samples;

	for (int r = 0; r < nruns; r++)
		total += runs[r].count;
	most = (int64) nparts * SAMPLES + nruns;
	samples = palloc(2 * most * sizeof(GpudsEntry));
	nsamples = sample(runs, nruns, nwords, Max(total / ((uint64) nparts * SAMPLES), 1), samples, most);
	sort_entries(samples, samples + most, nsamples);

	memset(parts, 0, (nparts + 1) * sizeof(GpudsPart));
	parts[nparts].before = total;
	for (int p = 1; p < nparts; p++)
	{
		if (nsamples > 0)
			parts[p].from = samples[p * nsamples / nparts];
		for (int r = 0; r < nruns; r++)
			parts[p].before += gpuds_run_below(&runs[r], nwords, &parts[p].from);
		CHECK_FOR_INTERRUPTS();
	}
	for (int p = 0; p <= nparts; p++)
	{
		parts[p].block = block;
		if (p < nparts)
			block += (parts[p + 1].before - parts[p].before + capacity - 1) / capacity;
	}
	pfree(samples);
}

/*
 * Writes the part of the merge that begins at parts[i]; the file must reach to the last part's end.  memory,
 * in bytes, is for reading.  *done counts entries as they are written.  Interruptible.  Raises what reading
 * the runs' files and writing pages do.
 */
void
gpuds_part_write(Relation index, const GpudsSortedRun *runs, int nruns, int nwords, const GpudsPart *parts,
				 int nparts, int i, bool log_pages, Size memory, pg_atomic_uint64 *done)
{
	GpudsBaseWriter *writer = gpuds_base_begin_part(index, nwords, parts[i].block, parts[nparts].block,
													parts[i].before, log_pages);
	GpudsMerge *merge = gpuds_merge_begin(nwords, memory, false);
	GpudsEntry *entries = palloc(MERGE_ENTRIES * sizeof(GpudsEntry));
	BlockNumber head;
	BlockNumber pages;
	uint64 records;
	int64 n;

	for (int r = 0; r < nruns; r++)
	{
		GpudsSortedRun run = runs[r];
		int64 below = i > 0 ? gpuds_run_below(&run, nwords, &parts[i].from) : 0;

		if (i < nparts - 1)
			run.count = gpuds_run_below(&run, nwords, &parts[i + 1].from);
		run.first += below;
		run.count -= below;
		if (run.count > 0)
			gpuds_merge_run(merge, &run);
	}
	while ((n = gpuds_merge_next(merge, entries, MERGE_ENTRIES)) > 0)
	{
		gpuds_base_add(writer, entries, n);
		pg_atomic_fetch_add_u64(done, n);
	}
	gpuds_merge_end(merge);
	gpuds_base_end(writer, &head, &pages, &records);
	if (records != parts[i + 1].before || parts[i].block + pages != parts[i + 1].block)
		elog(ERROR, "part %d of the base ends at record " UINT64_FORMAT " instead of " UINT64_FORMAT, i,
			 records, parts[i + 1].before);
	pfree(entries);
}
