/*-------------------------------------------------------------------------
 *
 * fallback.c
 *	  Answers a scan from the journal alone: reads it, sorts, and keeps the
 *	  result for as long as the scan may ask again.
 *
 * The first time that a scan asks, one pass over the journal keeps the wanted
 * entries nearest to the scan's position, as many as fit in work_mem: all of
 * them mostly, and enough for a LIMIT.  If the scan goes on behind these, turns
 * around or goes back, the next pass sorts all that it wants, in either
 * direction.  A scan that was started again and again (the inner side of a
 * nested loop) gets all entries of the index sorted, and no pass after that.
 * So a scan never takes more than a few passes.
 *
 * What is sorted stays right while the scan lives.  With an MVCC snapshot the
 * journal held all that the snapshot may see when it was read, at any time after
 * the snapshot was taken; for other snapshots nothing is kept over a rescan.
 * Positions are entries, not places: whoever asks may come from a mirror.
 *
 * Memory is bounded by work_mem.  Sorting follows compaction: lane records
 * are sorted in memory, in runs that go to a temporary file if they are many,
 * and merged with the base, which is sorted already.  The result lies in memory
 * or in a temporary file.  Files belong to the resource owner of the scan's
 * portal, everything else to the context in which the scan was begun.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "journal/runs.h"
#include "kernels/core/sort.h"
#include "mirror/mirror.h"

/* After so many passes the next one sorts all of the index, if that may be kept. */
#define PASSES_BEFORE_ALL 2

/* A sort takes at least this much memory, in bytes, whatever work_mem says. */
#define MIN_MEMORY (512 * 1024)

/* Operations sorted at a time: a moment's work. */
#define MAX_RUN (1024 * 1024)

/* What a run's reading takes in a merge, at least. */
#define RUN_READ_MEMORY (128 * sizeof(GpudsEntry))

/* Entries that a merge gives, and that are read from a file, at a time. */
#define BLOCK_ENTRIES 512

/* Which entries are at hand. */
typedef enum Extent
{
	EXTENT_NOTHING,
	EXTENT_NEAR, /* some of the scan's, ahead of where it left */
	EXTENT_SCAN, /* all of the scan's present intervals */
	EXTENT_ALL   /* all of the index */
} Extent;

/* Entries in order, in memory or in a file. */
typedef struct Sorted
{
	int nwords;
	int64 n;
	GpudsEntry *entries; /* if in memory */
	int64 size;          /* allocated */
	BufFile *file;       /* else records */
	int64 block;         /* of which entries are in buffer; -1: none */
	GpudsEntry *buffer;
	char *packed;
} Sorted;

struct GpudsFallback
{
	MemoryContext parent;
	MemoryContext context; /* of all that is at hand; NULL: not needed so far */
	Extent extent;
	Sorted sorted;
	int64 place;    /* in sorted, where the scan left */
	bool forward;   /* direction of the last call */
	GpudsScan left; /* the scan as that call left it */
	bool near_end;  /* EXTENT_NEAR: nothing is behind these in that direction */
	int passes;     /* over the journal for this scan */
};

/* The making of a sorted answer. */
typedef struct Sort
{
	const GpudsMirrorSource *source;
	const GpudsScan *only; /* entries in its intervals; NULL: all */
	Size memory;
	GpudsJournalReader *base;
	bool stale;

	/* what is older than the runs: the base, or a file with base and earlier runs */
	BufFile *older;
	int64 nolder;

	/* lane records: in memory, and in runs in the order of arrival */
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
	GpudsEntry block[BLOCK_ENTRIES];
} Sort;

static Size
sort_memory(void)
{
	return Max((Size) work_mem * 1024, MIN_MEMORY);
}

/*
 * Prepares for a scan, at next to no cost.  All memory comes from the current
 * memory context or children of it, files belong to the resource owner of the
 * call of gpuds_fallback_scan that makes them.
 */
GpudsFallback *
gpuds_fallback_begin(void)
{
	GpudsFallback *fallback = palloc0(sizeof(GpudsFallback));

	fallback->parent = CurrentMemoryContext;
	return fallback;
}

static void
drop_sorted(GpudsFallback *fallback)
{
	if (fallback->sorted.file)
		BufFileClose(fallback->sorted.file);
	memset(&fallback->sorted, 0, sizeof(Sorted));
	fallback->extent = EXTENT_NOTHING;
	fallback->place = 0;
	if (fallback->context)
		MemoryContextReset(fallback->context);
}

/* The scan asks for other intervals from now on. */
void
gpuds_fallback_next_keys(GpudsFallback *fallback)
{
	if (fallback->extent == EXTENT_NEAR || fallback->extent == EXTENT_SCAN)
		drop_sorted(fallback);
}

/* The scan begins anew and has to see what is in the journal now. */
void
gpuds_fallback_reset(GpudsFallback *fallback)
{
	if (fallback->extent != EXTENT_NOTHING)
		drop_sorted(fallback);
	fallback->passes = 0;
}

/* Are all entries of the index at hand, whatever the scan asks for? */
bool
gpuds_fallback_has_all(const GpudsFallback *fallback)
{
	return fallback->extent == EXTENT_ALL;
}

/* Frees what the scan has taken. */
void
gpuds_fallback_end(GpudsFallback *fallback)
{
	drop_sorted(fallback);
	if (fallback->context)
		MemoryContextDelete(fallback->context);
	pfree(fallback);
}

/* Entry i of those at hand; valid until the next call. */
static inline const GpudsEntry *
sorted_entry(Sorted *sorted, int64 i)
{
	const int size = GpudsRecordSize(sorted->nwords);
	int64 block = i / BLOCK_ENTRIES;

	if (sorted->file == NULL)
		return &sorted->entries[i];
	if (block != sorted->block)
	{
		int64 first = block * BLOCK_ENTRIES;
		int n = Min(BLOCK_ENTRIES, sorted->n - first);

		CHECK_FOR_INTERRUPTS();
		sorted->block = -1;
		if (BufFileSeek(sorted->file, 0, first * size, SEEK_SET) != 0)
			ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in a temporary file: %m")));
		gpuds_buffile_read(sorted->file, sorted->packed, (Size) n * size);
		for (int j = 0; j < n; j++)
			gpuds_record_entry((const GpudsRecord *) (sorted->packed + j * size), sorted->nwords,
							   &sorted->buffer[j]);
		sorted->block = block;
	}
	return &sorted->buffer[i % BLOCK_ENTRIES];
}

/* Adds entries behind all others; goes over to a file when memory, in bytes, is full. */
static void
sorted_add(Sorted *sorted, const GpudsEntry *entries, int64 n, Size memory)
{
	if (sorted->file == NULL && (sorted->n + n) * sizeof(GpudsEntry) > memory)
	{
		sorted->file = BufFileCreateTemp(false);
		gpuds_run_write(sorted->file, sorted->entries, sorted->n, sorted->nwords);
		if (sorted->entries)
			pfree(sorted->entries);
		sorted->entries = NULL;
		sorted->block = -1;
		sorted->buffer = palloc(BLOCK_ENTRIES * sizeof(GpudsEntry));
		sorted->packed = palloc(BLOCK_ENTRIES * GpudsRecordSize(sorted->nwords));
	}
	if (sorted->file)
		gpuds_run_write(sorted->file, entries, n, sorted->nwords);
	else
	{
		if (sorted->entries == NULL || sorted->n + n > sorted->size)
		{
			int64 size = Max(sorted->size * 2, sorted->n + n);

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
comes_before(Sorted *sorted, int64 i, const GpudsEntry *bound, bool through)
{
	const GpudsEntry *entry = sorted_entry(sorted, i);

	return through ? !entry_less(bound, entry) : entry_less(entry, bound);
}

/*
 * How many entries lie before the bound; with through, how many do not lie
 * behind it.  Looks around near first, a place from 0 to n.
 */
static int64
find_place(Sorted *sorted, int64 near, const GpudsEntry *bound, bool through)
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

/* Where the scan goes on: the place of the next entry that it may want, or -1 or n. */
static int64
next_place(Sorted *sorted, int64 near, const GpudsScan *scan, bool forward)
{
	GpudsInterval interval;

	if (scan->inside)
		return forward ? find_place(sorted, near, &scan->at, true)
					   : find_place(sorted, near, &scan->at, false) - 1;
	if (forward ? scan->next >= scan->n : scan->next <= 0)
		return forward ? sorted->n : -1;
	interval = entry_scan_interval(scan, forward ? scan->next : scan->next - 1);
	return forward ? find_place(sorted, near, &interval.lo, false)
				   : find_place(sorted, near, &interval.hi, true) - 1;
}

/* Number of the first interval that does not end before the entry, hint being likely. */
static int64
find_interval(const GpudsScan *scan, int64 hint, const GpudsEntry *entry)
{
	if (hint >= 0 && hint < scan->n)
	{
		GpudsInterval interval = entry_scan_interval(scan, hint);

		if (!entry_less(entry, &interval.lo) && !entry_less(&interval.hi, entry))
			return hint;
	}
	return entry_scan_find(scan, entry);
}

/*
 * Fetches the next entries of the scan from those at hand and moves the scan
 * behind them.
 */
static int64
take_entries(GpudsFallback *fallback, GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap)
{
	Sorted *sorted = &fallback->sorted;
	int64 place = next_place(sorted, Min(fallback->place, sorted->n), scan, forward);
	int64 current = -1; /* interval that was looked at last */
	int64 last = 0;     /* interval of the last entry taken */
	int64 n = 0;
	GpudsInterval interval = { { 0 } };

	while (n < cap && place >= 0 && place < sorted->n)
	{
		const GpudsEntry *entry = sorted_entry(sorted, place);

		if (current < 0 || entry_less(entry, &interval.lo) || entry_less(&interval.hi, entry))
		{
			int64 found = find_interval(scan, current < 0 ? -1 : current + (forward ? 1 : -1), entry);
			bool within = found < scan->n;

			CHECK_FOR_INTERRUPTS();
			if (within)
			{
				interval = entry_scan_interval(scan, found);
				within = !entry_less(entry, &interval.lo);
			}
			if (!within)
			{
				/* on to where the next interval begins */
				if (!forward)
					found--;
				if (found < 0 || found >= scan->n)
				{
					place = forward ? sorted->n : -1;
					break;
				}
				interval = entry_scan_interval(scan, found);
				place = forward ? find_place(sorted, place, &interval.lo, false)
								: find_place(sorted, place, &interval.hi, true) - 1;
				current = found;
				continue;
			}
			current = found;
		}
		out[n++] = *entry;
		last = current;
		place += forward ? 1 : -1;
	}
	if (n > 0)
	{
		scan->inside = true;
		scan->at = out[n - 1];
		scan->next = last + (forward ? 0 : 1);
	}
	fallback->place = Max(place, 0);
	fallback->forward = forward;
	fallback->left = *scan;
	return n;
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

/*
 * The sort of all that is wanted
 */

/* GpudsSourceNext of the base: its next entries that are wanted. */
static int
next_of_base(void *arg, const GpudsEntry **entries)
{
	Sort *sort = arg;
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
sort_run(Sort *sort)
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
write_run(Sort *sort)
{
	int nwords = sort->source->layout->nwords;
	const GpudsEntry *entries = sort_run(sort);
	GpudsSortedRun *run = &sort->runs[sort->nruns++];

	if (sort->file == NULL)
		sort->file = BufFileCreateTemp(false);
	else if (BufFileSeek(sort->file, 0, sort->written * GpudsRecordSize(nwords), SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in a temporary file: %m")));
	gpuds_run_write(sort->file, entries, sort->n, nwords);
	run->file = sort->file;
	run->first = sort->written;
	run->count = sort->n;
	sort->written += sort->n;
	sort->n = 0;
}

/* Merges what is older, the runs and what is in memory, and adds it to the output. */
static void
merge_runs(Sort *sort, Sorted *output, Size read_memory, Size output_memory)
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

	while ((n = gpuds_merge_next(merge, sort->block, BLOCK_ENTRIES)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		sorted_add(output, sort->block, n, output_memory);
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
merge_early(Sort *sort)
{
	Sorted output = { .nwords = sort->source->layout->nwords };

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

/* Reads the lanes from where the base's metapage has them start. */
static void
read_lanes(Sort *sort)
{
	const GpudsMetaData *meta = gpuds_reader_meta(sort->base);
	GpudsJournalReader *reader;
	GpudsJournalPos start;
	GpudsJournalPage page;
	GpudsReadResult result;

	for (int lane = 0; lane < GPUDS_LANES; lane++)
	{
		start.count[lane] = meta->lane[lane].first;
		start.block[lane] = meta->lane[lane].head;
	}
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
 * Sorts the entries in the scan's intervals (NULL: all) in one pass over the
 * journal.  False: a compaction was in the way, nothing is at hand.
 */
static bool
sort_once(GpudsFallback *fallback, const GpudsMirrorSource *source, const GpudsScan *only)
{
	Sort *sort = palloc0(sizeof(Sort));
	Size memory = sort_memory();
	bool stale;

	sort->source = source;
	sort->only = only;
	sort->memory = memory;
	/* half of the memory each for the operations and their sort, and for a merge */
	sort->size = Max(Min(memory / 4 / sizeof(GpudsOp), MAX_RUN), GPUDS_MAX_RECORDS_PER_PAGE);
	sort->ops = MemoryContextAllocHuge(CurrentMemoryContext, sort->size * sizeof(GpudsOp));
	sort->scratch = MemoryContextAllocHuge(CurrentMemoryContext, sort->size * sizeof(GpudsOp));
	sort->max_runs = memory / 4 / RUN_READ_MEMORY;
	sort->runs = palloc(sort->max_runs * sizeof(GpudsSortedRun));
	sort->base = gpuds_reader_open(source->index);

	read_lanes(sort);
	gpuds_injection_point("journal-scan-lanes");
	if (!sort->stale)
	{
		memset(&fallback->sorted, 0, sizeof(Sorted));
		fallback->sorted.nwords = source->layout->nwords;
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
		merge_runs(sort, &fallback->sorted, memory / 4, memory / 2);
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

static void
sort_all(GpudsFallback *fallback, const GpudsMirrorSource *source, const GpudsScan *only)
{
	do
		drop_sorted(fallback);
	while (!sort_once(fallback, source, only));
	fallback->extent = only ? EXTENT_SCAN : EXTENT_ALL;
	fallback->passes++;
}

/*
 * The first pass: entries near the scan's position
 */

/* The operations nearest to the scan's position. */
typedef struct Window
{
	GpudsOp *ops;
	GpudsOp *scratch;
	int64 n;
	int64 size; /* of both arrays */
	int64 keep; /* operations to keep when full */
	bool forward;
	bool cut;         /* operations beyond bound were dropped */
	GpudsEntry bound; /* last entry known completely */
} Window;

/* Sorts, keeps the last word on each entry, and drops what is too far away. */
static void
window_reduce(Window *window)
{
	sort_ops(window->ops, window->scratch, window->n);
	window->n = sort_last_ops(window->ops, window->n);
	if (window->n <= window->keep)
		return;
	if (window->forward)
		window->bound = window->ops[window->keep - 1].e;
	else
	{
		int64 drop = window->n - window->keep;

		memmove(window->ops, window->ops + drop, window->keep * sizeof(GpudsOp));
		window->bound = window->ops[0].e;
	}
	window->n = window->keep;
	window->cut = true;
}

static bool
window_wants(const Window *window, const GpudsEntry *entry)
{
	if (!window->cut)
		return true;
	return window->forward ? !entry_less(&window->bound, entry) : !entry_less(entry, &window->bound);
}

/* Is the entry still to come in the scan? */
static bool
scan_wants(const GpudsScan *scan, bool forward, const GpudsEntry *entry)
{
	int64 found = entry_scan_find(scan, entry);
	GpudsInterval interval;

	if (found == scan->n)
		return false;
	interval = entry_scan_interval(scan, found);
	if (entry_less(entry, &interval.lo))
		return false;
	if (scan->inside)
		return forward ? entry_less(&scan->at, entry) : entry_less(entry, &scan->at);
	return forward ? found >= scan->next : found < scan->next;
}

/* False: a compaction was in the way. */
static bool
read_window(const GpudsMirrorSource *source, const GpudsScan *scan, Window *window)
{
	GpudsJournalReader *reader = gpuds_reader_open(source->index);
	GpudsJournalPage page;
	GpudsReadResult result;

	window->n = 0;
	window->cut = false;
	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		/* Base records are older than those of the lanes. */
		bool base = page.kind == GPUDS_PAGE_BASE;
		GpudsRecordIterator record = { .page = &page };

		CHECK_FOR_INTERRUPTS();
		while (gpuds_record_next(&record))
		{
			GpudsOp *op = &window->ops[window->n];

			if (record.flags & GPUDS_RECORD_DEAD)
				continue;
			if (!window_wants(window, &record.entry) || !scan_wants(scan, window->forward, &record.entry))
				continue;
			op->e = record.entry;
			op->order = (base ? 0 : record.number + 1) << 1 |
						(record.flags & GPUDS_RECORD_TOMBSTONE ? GPUDS_OP_DELETE : GPUDS_OP_INSERT);
			if (++window->n == window->size)
				window_reduce(window);
		}
	}
	gpuds_reader_close(reader);
	window_reduce(window);
	return result == GPUDS_READ_END;
}

/*
 * Fetches what comes next in the scan, as far as it fits.  All that the scan wants
 * is at hand then if it came fresh and nothing was cut.
 */
static void
sort_near(GpudsFallback *fallback, const GpudsMirrorSource *source, const GpudsScan *scan, bool forward)
{
	bool fresh = !scan->inside && scan->next == (forward ? 0 : scan->n);
	Sorted *sorted = &fallback->sorted;
	Window window;

	drop_sorted(fallback);
	window.forward = forward;
	window.size = Min(sort_memory() / (2 * sizeof(GpudsOp)), MAX_RUN);
	window.keep = window.size / 2;
	window.ops = MemoryContextAllocHuge(CurrentMemoryContext, window.size * sizeof(GpudsOp));
	window.scratch = MemoryContextAllocHuge(CurrentMemoryContext, window.size * sizeof(GpudsOp));
	while (!read_window(source, scan, &window))
		;

	/* an entry is shorter than an operation: it overwrites only what was read */
	pfree(window.scratch);
	sorted->nwords = source->layout->nwords;
	sorted->entries = (GpudsEntry *) window.ops;
	for (int64 i = 0; i < window.n; i++)
	{
		GpudsOp op = window.ops[i];

		if ((op.order & 1) == GPUDS_OP_INSERT)
			sorted->entries[sorted->n++] = op.e;
	}
	sorted->entries = repalloc_huge(sorted->entries, Max(sorted->n, 1) * sizeof(GpudsEntry));
	fallback->forward = forward;
	fallback->left = *scan;
	fallback->place = forward ? 0 : sorted->n;
	fallback->extent = fresh && !window.cut ? EXTENT_SCAN : EXTENT_NEAR;
	fallback->near_end = !window.cut;
	fallback->passes++;
}

/* Is the scan where the last call for it left it? */
static bool
is_where_left(const GpudsFallback *fallback, const GpudsScan *scan, bool forward)
{
	const GpudsScan *left = &fallback->left;

	return forward == fallback->forward && scan->next == left->next && scan->inside == left->inside &&
		   (!scan->inside || entry_equal(&scan->at, &left->at));
}

/*
 * Fetches the next entries of a scan into out[cap] and moves the scan behind
 * them, as gpuds_device_scan does; fewer than cap do not mean the end.  *end:
 * there are no more.  The index must be the same in every call.
 *
 * Interruptible; raises what reading the journal and temporary files do.  Holds no lock or pin between calls.
 */
int64
gpuds_fallback_scan(GpudsFallback *fallback, const GpudsMirrorSource *source, GpudsScan *scan, bool forward,
					GpudsEntry *out, int64 cap, bool *end)
{
	MemoryContext old;
	int64 n = 0;

	if (fallback->context == NULL)
		fallback->context = AllocSetContextCreate(fallback->parent, "gpuds journal scan",
												  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(fallback->context);
	if (fallback->extent == EXTENT_NOTHING)
	{
		if (fallback->passes < PASSES_BEFORE_ALL)
			sort_near(fallback, source, scan, forward);
		else
			sort_all(fallback, source, NULL);
	}
	if (fallback->extent == EXTENT_NEAR && is_where_left(fallback, scan, forward))
		n = take_entries(fallback, scan, forward, out, cap);
	if (fallback->extent == EXTENT_NEAR && n == 0 &&
		!(fallback->near_end && is_where_left(fallback, scan, forward)))
		sort_all(fallback, source, fallback->passes < PASSES_BEFORE_ALL ? scan : NULL);
	if (fallback->extent > EXTENT_NEAR)
		n = take_entries(fallback, scan, forward, out, cap);
	*end = n < cap && (fallback->extent > EXTENT_NEAR || fallback->near_end);
	MemoryContextSwitchTo(old);
	return n;
}
