/*-------------------------------------------------------------------------
 *
 * fallback_sort.c
 *	  Sorts the journal's entries for a scan, all that it wants.
 *
 * As a compaction does: stripe records are sorted in memory, in runs that go to a
 * temporary file if they are many, and merged with the base, which is sorted
 * already.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "sort/runs.h"
#include "kernels/core/sort.h"
#include "mirror/fallback.h"

/* A sort takes at least this much memory, whatever work_mem says. */
#define MIN_MEMORY_BYTES (512 * 1024)

/* What a run's reading takes in a merge, at least. */
#define RUN_READ_BYTES (128 * sizeof(GpudsEntry))

/* The making of a sorted answer. */
typedef struct JournalSort
{
	const GpudsMirrorSource *source;
	const GpudsScan *only; /* entries in its intervals; NULL: all */
	Size memory;
	GpudsJournalReader *base;
	bool stale;

	/* what is older than the runs: the base, or a file with base and earlier runs */
	BufFile *older;
	int64 nolder;

	/* stripe records: in memory, and in runs in the order of arrival */
	GpudsOp *ops;
	GpudsOp *scratch;
	int64 n;
	int64 size;
	BufFile *file;
	int64 written;
	GpudsSortedRun *runs;
	int nruns;
	int max_runs;

	GpudsEntry page[GPUDS_MAX_RECORDS_PER_PAGE];
	GpudsEntry block[GPUDS_SORTED_BLOCK];
} JournalSort;

/* Bytes that a sort for a scan may take. */
Size
gpuds_fallback_memory_bytes(void)
{
	return Max((Size) work_mem * 1024, MIN_MEMORY_BYTES);
}

/* Is the entry in one of the intervals? */
static bool
in_intervals(const GpudsScan *scan, const GpudsEntry *entry)
{
	int64 found = entry_scan_find(scan, entry);
	GpudsInterval interval;

	if (found == scan->n)
		return false;
	interval = entry_scan_interval(scan, found);
	return !entry_less(entry, &interval.lo);
}

/* GpudsSourceNext of the base: its next entries that are wanted. */
static int
next_of_base(void *arg, const GpudsEntry **entries)
{
	JournalSort *sort = arg;
	GpudsJournalPage page;
	int n = 0;

	while (n == 0 && !sort->stale)
	{
		GpudsReadResult result = gpuds_reader_next(sort->base, &page);
		GpudsRecordIterator record = { .page = &page };

		CHECK_FOR_INTERRUPTS();
		if (result == GPUDS_READ_STALE)
			sort->stale = true;
		if (result != GPUDS_READ_PAGE || page.kind != GPUDS_PAGE_BASE)
			return 0;
		while (gpuds_record_next(&record))
		{
			if (record.flags & GPUDS_RECORD_DEAD)
				continue;
			if (sort->only == NULL || in_intervals(sort->only, &record.entry))
				sort->page[n++] = record.entry;
		}
	}
	*entries = sort->page;
	return n;
}

/*
 * Sorts the operations in memory and turns them into entries in the scratch
 * memory, deletions marked.
 */
static const GpudsEntry *
sort_run(JournalSort *sort)
{
	GpudsEntry *entries = (GpudsEntry *) sort->scratch;

	sort_ops(sort->ops, sort->scratch, sort->n);
	sort->n = sort_last_ops(sort->ops, sort->n);
	for (int64 i = 0; i < sort->n; i++)
	{
		entries[i] = sort->ops[i].e;
		if ((sort->ops[i].order & 1) == GPUDS_OP_DELETE)
			entries[i].t |= GPUDS_RUN_DELETED;
	}
	return entries;
}

/* Writes what is in memory as a run. */
static void
write_run(JournalSort *sort)
{
	int nwords = sort->source->layout->nwords;
	const GpudsEntry *entries = sort_run(sort);
	GpudsSortedRun *run = &sort->runs[sort->nruns++];

	if (sort->file == NULL)
		sort->file = BufFileCreateTemp(false);
	else if (BufFileSeek(sort->file, 0, sort->written * GpudsRecordSize(nwords), SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in temporary file: %m")));
	gpuds_run_write(sort->file, entries, sort->n, nwords);
	run->file = sort->file;
	run->first = sort->written;
	run->count = sort->n;
	sort->written += sort->n;
	sort->n = 0;
}

/* Merges what is older, the runs and what is in memory, and adds it to the output. */
static void
merge_runs(JournalSort *sort, GpudsSorted *output, Size read_memory, Size output_memory)
{
	GpudsMerge *merge = gpuds_merge_begin(sort->source->layout->nwords, read_memory);
	int64 n;

	if (sort->older)
	{
		GpudsSortedRun older = { sort->older, 0, sort->nolder };

		gpuds_merge_run(merge, &older);
	}
	else
		gpuds_merge_source(merge, next_of_base, sort);
	for (int i = 0; i < sort->nruns; i++)
		gpuds_merge_run(merge, &sort->runs[i]);
	if (sort->n > 0)
	{
		const GpudsEntry *entries = sort_run(sort);

		gpuds_merge_array(merge, entries, sort->n);
	}

	while ((n = gpuds_merge_next(merge, sort->block, GPUDS_SORTED_BLOCK)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		gpuds_sorted_add(output, sort->block, n, output_memory);
	}
	gpuds_merge_end(merge);

	if (sort->older)
		BufFileClose(sort->older);
	if (sort->file)
		BufFileClose(sort->file);
	sort->older = sort->file = NULL;
	sort->written = 0;
	sort->nruns = 0;
	sort->n = 0;
}

/* There are as many runs as a merge can read within its memory: merges all that was read. */
static void
merge_early(JournalSort *sort)
{
	GpudsSorted output = { .nwords = sort->source->layout->nwords };

	merge_runs(sort, &output, sort->memory / 2, 0);
	sort->older = output.file;
	sort->nolder = output.n;
	if (output.file)
	{
		pfree(output.buffer);
		pfree(output.packed);
	}
	else
		sort->older = BufFileCreateTemp(false);
}

/* Reads the stripes from where the base's metapage has them start. */
static void
read_stripes(JournalSort *sort)
{
	const GpudsMetaData *meta = gpuds_reader_meta(sort->base);
	GpudsJournalReader *reader;
	GpudsJournalPos start;
	GpudsJournalPage page;
	GpudsReadResult result;

	gpuds_journal_start(meta, &start);
	reader = gpuds_reader_open_after(sort->source->index, &start);
	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		GpudsRecordIterator record = { .page = &page };

		CHECK_FOR_INTERRUPTS();
		if (sort->n + page.nrecords > sort->size)
		{
			if (sort->nruns == sort->max_runs)
				merge_early(sort);
			else
				write_run(sort);
		}
		while (gpuds_record_next(&record))
		{
			GpudsOp *op = &sort->ops[sort->n];

			if (record.flags & GPUDS_RECORD_DEAD)
				continue;
			if (sort->only && !in_intervals(sort->only, &record.entry))
				continue;
			op->e = record.entry;
			/* of records of one entry the later comes behind the earlier, in memory and by runs */
			op->order = (uint64) sort->n << 1 |
						(record.flags & GPUDS_RECORD_TOMBSTONE ? GPUDS_OP_DELETE : GPUDS_OP_INSERT);
			sort->n++;
		}
	}
	if (result == GPUDS_READ_STALE)
		sort->stale = true;
	gpuds_reader_close(reader);
}

/*
 * Sorts the entries in the scan's intervals (NULL: all) into *sorted, which is empty,
 * in one pass over the journal.  False: a compaction was in the way, and *sorted is
 * to be dropped.  Allocates in the current memory context.
 */
bool
gpuds_fallback_sort(const GpudsMirrorSource *source, const GpudsScan *only, GpudsSorted *sorted)
{
	JournalSort *sort = palloc0(sizeof(JournalSort));
	Size memory = gpuds_fallback_memory_bytes();
	bool stale;

	sort->source = source;
	sort->only = only;
	sort->memory = memory;
	/* half of the memory each for the operations and their sort, and for a merge */
	sort->size = Max(Min(memory / 4 / sizeof(GpudsOp), GPUDS_MAX_RUN_OPS), GPUDS_MAX_RECORDS_PER_PAGE);
	sort->ops = MemoryContextAllocHuge(CurrentMemoryContext, sort->size * sizeof(GpudsOp));
	sort->scratch = MemoryContextAllocHuge(CurrentMemoryContext, sort->size * sizeof(GpudsOp));
	sort->max_runs = memory / 4 / RUN_READ_BYTES;
	sort->runs = palloc(sort->max_runs * sizeof(GpudsSortedRun));
	sort->base = gpuds_reader_open(source->index);

	read_stripes(sort);
	gpuds_injection_point("journal-scan-stripes");
	if (!sort->stale)
	{
		sorted->nwords = source->layout->nwords;
		if (sort->older || sort->nruns > 0)
		{
			if (sort->nruns == sort->max_runs)
				merge_early(sort);
			else
				write_run(sort);
			pfree(sort->ops);
			pfree(sort->scratch);
			sort->ops = sort->scratch = NULL;
		}
		merge_runs(sort, sorted, memory / 4, memory / 2);
	}

	stale = sort->stale;
	gpuds_reader_close(sort->base);
	if (sort->older)
		BufFileClose(sort->older);
	if (sort->file)
		BufFileClose(sort->file);
	pfree(sort->runs);
	if (sort->ops)
	{
		pfree(sort->ops);
		pfree(sort->scratch);
	}
	pfree(sort);
	return !stale;
}
