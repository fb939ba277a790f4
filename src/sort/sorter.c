/*-------------------------------------------------------------------------
 *
 * sorter.c
 *	  Collects entries or operations, spills them as runs, merges the runs (see sorter.h).
 *
 * Half of the memory holds what is collected, and half is there to sort it.  When memory is full, the
 * sorter sorts and removes repetitions.  If few elements are left, they stay, else they become a run in a
 * temporary file.
 *
 * A merge takes a read buffer for each run.  When there are as many runs as a quarter of the memory has
 * read buffers for, the sorter merges the latest of them into a run of a higher level.  Runs are in the
 * order in which their elements were added, and the levels do not rise in this order: runs of one level
 * are neighbours, in a file of their own.  A shared sorter leaves its runs as they are.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "kernels/core/sort.h"
#include "sort/record.h"
#include "sort/sorter.h"

/* A sorter has memory for so many elements at least, which is more than the records of a page. */
#define LEAST_ELEMENTS 1024

/* Runs before an early merge, at least. */
#define LEAST_RUNS 32

#define START_RUNS 16

/* Levels of runs.  Runs of the highest level are merged into one of the same level. */
#define LEVELS 4

/* Entries that come out of a merge at a time. */
#define BLOCK_ENTRIES 2048

/* GpudsOp.order: sequence number, record flags.  GPUDS_RECORD_TOMBSTONE is GPUDS_OP_DELETE. */
#define ORDER_FLAGS_BITS 2

typedef struct Level
{
	BufFile *file; /* NULL: there are no runs of the level */
	int64 records; /* in the file */
} Level;

struct GpudsSorter
{
	int nwords;
	bool of_ops;
	Size memory; /* bytes */
	MemoryContext context;

	/* what is in memory: GpudsOp before the sort of a sorter of operations, else GpudsEntry */
	void *elements;
	int64 n;
	int64 allocated; /* elements */
	int64 capacity;  /* elements that memory has room for */
	void *scratch;   /* NULL: there is none */
	int64 scratch_size;
	uint64 sequence; /* of the next operation */

	/* runs, oldest first */
	SharedFileSet *fileset; /* NULL: files are private */
	char name[MAXPGPATH];   /* of the file in it */
	Level level[LEVELS];
	GpudsSortedRun *runs;
	int *run_level;
	int64 nruns;
	int64 runs_size;
	int64 most_runs;

	/* the output */
	GpudsSourceNext older; /* NULL: there is none */
	void *older_arg;
	bool sorted;
	int64 at;          /* next to give, where nothing is merged */
	GpudsMerge *merge; /* NULL: nothing is merged, or has been asked for */
	GpudsEntry *block; /* NULL: has not been asked for */
};

static Size
element_size(const GpudsSorter *sorter)
{
	return sorter->of_ops ? sizeof(GpudsOp) : sizeof(GpudsEntry);
}

static GpudsSorter *
begin(int nwords, Size memory, int64 longest, bool of_ops)
{
	GpudsSorter *sorter = palloc0(sizeof(GpudsSorter));

	sorter->nwords = nwords;
	sorter->of_ops = of_ops;
	sorter->memory = memory;
	sorter->context = CurrentMemoryContext;
	sorter->capacity = (int64) (memory / (2 * element_size(sorter)));
	sorter->capacity = Max(Min(sorter->capacity, longest), LEAST_ELEMENTS);
	sorter->most_runs = Max(memory / 4 / GPUDS_RUN_READ_BYTES, LEAST_RUNS);
	return sorter;
}

/*
 * Starts a sorter of entries with nwords key words.  memory, in bytes, is for collecting and sorting; a
 * merge takes a quarter of it more.  A run has longest entries at most, unless the caller adds more without
 * a reserve.  Allocates in the current memory context.  Files belong to the resource owner of the call that
 * makes them.
 */
GpudsSorter *
gpuds_sorter_begin(int nwords, Size memory, int64 longest)
{
	return begin(nwords, memory, longest, false);
}

/* The same for operations. */
GpudsSorter *
gpuds_sorter_begin_ops(int nwords, Size memory, int64 longest)
{
	return begin(nwords, memory, longest, true);
}

/*
 * Makes the sorter, to which nothing has been added, write its runs to a file of that name in a file set.
 * gpuds_sorter_export hands them to others.
 */
void
gpuds_sorter_share(GpudsSorter *sorter, SharedFileSet *fileset, const char *name)
{
	sorter->fileset = fileset;
	strlcpy(sorter->name, name, MAXPGPATH);
}

/*
 * Adds a source of sorted entries to the output.  They count as added before everything else.  The source
 * is read when the output is.
 */
void
gpuds_sorter_older(GpudsSorter *sorter, GpudsSourceNext next, void *arg)
{
	Assert(sorter->older == NULL && sorter->merge == NULL);
	sorter->older = next;
	sorter->older_arg = arg;
}

/*
 * Sorting what is in memory
 */

/* Sorts what is in memory, with scratch memory for so many elements, and removes repetitions. */
static void
sort(GpudsSorter *sorter, int64 scratch_size)
{
	if (sorter->n == 0)
		return;
	if (sorter->scratch_size < sorter->n)
	{
		if (sorter->scratch)
			pfree(sorter->scratch);
		sorter->scratch = MemoryContextAllocHuge(sorter->context, scratch_size * element_size(sorter));
		sorter->scratch_size = scratch_size;
	}
	if (sorter->of_ops)
	{
		sort_ops(sorter->elements, sorter->scratch, sorter->n);
		sorter->n = sort_last_ops(sorter->elements, sorter->n);
	}
	else
	{
		sort_entries(sorter->elements, sorter->scratch, sorter->n);
		sorter->n = sort_unique_entries(sorter->elements, sorter->n);
	}
}

/* Turns sorted operations into entries, in place: an entry is shorter than an operation. */
static void
make_entries(GpudsSorter *sorter)
{
	const GpudsOp *ops = sorter->elements;
	GpudsEntry *entries = sorter->elements;

	if (!sorter->of_ops)
		return;
	for (int64 i = 0; i < sorter->n; i++)
	{
		const GpudsOp op = ops[i];

		entries[i] = op.e;
		if (op.order & GPUDS_RECORD_TOMBSTONE)
			entries[i].t |= GPUDS_RUN_DELETED;
		if (op.order & GPUDS_RECORD_DEAD)
			entries[i].t |= GPUDS_RUN_DEAD;
	}
}

static void
drop_scratch(GpudsSorter *sorter)
{
	if (sorter->scratch)
		pfree(sorter->scratch);
	sorter->scratch = NULL;
	sorter->scratch_size = 0;
}

/*
 * Runs
 */

/* Notes a run of so many records, which are at the end of its level's file. */
static void
note_run(GpudsSorter *sorter, int level, int64 count)
{
	Level *at = &sorter->level[level];

	if (sorter->nruns == sorter->runs_size)
	{
		int64 size = Max(START_RUNS, 2 * sorter->runs_size);

		if (sorter->runs == NULL)
		{
			sorter->runs = palloc(size * sizeof(GpudsSortedRun));
			sorter->run_level = palloc(size * sizeof(int));
		}
		else
		{
			sorter->runs = repalloc_huge(sorter->runs, size * sizeof(GpudsSortedRun));
			sorter->run_level = repalloc_huge(sorter->run_level, size * sizeof(int));
		}
		sorter->runs_size = size;
	}
	sorter->run_level[sorter->nruns] = level;
	sorter->runs[sorter->nruns++] = (GpudsSortedRun){ at->file, at->records, count };
	at->records += count;
}

/*
 * Merges the latest runs: all of the lowest level, and of the ones above it until that is half of those
 * that there may be.
 */
static void
merge_early(GpudsSorter *sorter)
{
	GpudsMerge *merge = gpuds_merge_begin(sorter->nwords, sorter->memory / 4, true);
	GpudsEntry *block = palloc(BLOCK_ENTRIES * sizeof(GpudsEntry));
	int64 first = sorter->nruns;
	int64 count = 0;
	Level output = { 0 };
	int from;
	int to;
	int64 n;

	do
	{
		from = sorter->run_level[first - 1];
		while (first > 0 && sorter->run_level[first - 1] == from)
			first--;
	} while (first > 0 && sorter->nruns - first < sorter->most_runs / 2);
	to = Min(from + 1, LEVELS - 1);
	if (to > from)
		output = sorter->level[to];
	if (output.file == NULL)
		output.file = BufFileCreateTemp(false);

	for (int64 i = first; i < sorter->nruns; i++)
		gpuds_merge_run(merge, &sorter->runs[i]);
	for (; (n = gpuds_merge_next(merge, block, BLOCK_ENTRIES)) > 0; count += n)
		gpuds_run_write(output.file, block, n, sorter->nwords);
	gpuds_merge_end(merge);
	pfree(block);

	for (int level = 0; level <= from; level++)
	{
		if (sorter->level[level].file)
			BufFileClose(sorter->level[level].file);
		sorter->level[level] = (Level){ 0 };
	}
	sorter->level[to] = output;
	sorter->nruns = first;
	note_run(sorter, to, count);
}

/* Writes the sorted entries in memory as a run. */
static void
spill(GpudsSorter *sorter)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	Level *level = &sorter->level[0];

	if (sorter->nruns >= sorter->most_runs && sorter->fileset == NULL)
		merge_early(sorter);
	if (level->file == NULL)
		level->file = sorter->fileset ? BufFileCreateFileSet(&sorter->fileset->fs, sorter->name)
									  : BufFileCreateTemp(false);
	gpuds_run_write(level->file, sorter->elements, sorter->n, sorter->nwords);
	note_run(sorter, 0, sorter->n);
	sorter->n = 0;
	MemoryContextSwitchTo(old);
}

/*
 * Adding
 */

/* Makes the memory larger, to so many elements at least. */
static void
grow(GpudsSorter *sorter, int64 least)
{
	int64 size = Max(Min(2 * sorter->allocated, sorter->capacity), least);

	size = Max(size, LEAST_ELEMENTS);
	if (sorter->elements)
		sorter->elements = repalloc_huge(sorter->elements, size * element_size(sorter));
	else
		sorter->elements = MemoryContextAllocHuge(sorter->context, size * element_size(sorter));
	sorter->allocated = size;
}

/*
 * Makes room for n elements, which go into one run if nothing is reserved before they are added.  Only this
 * function spills, so what is added without it goes into the run of what is there, and the memory grows if
 * need be.  Before anything is added, it allocates memory for n elements at once.
 *
 * Raises what writing temporary files does.  Cannot be interrupted while it sorts.
 */
void
gpuds_sorter_reserve(GpudsSorter *sorter, int64 n)
{
	Assert(!sorter->sorted);
	if (sorter->n + n <= sorter->allocated)
		return;
	if (sorter->n > 0 && sorter->n + n > sorter->capacity)
	{
		sort(sorter, sorter->allocated);
		if (sorter->n > sorter->capacity / 2 || sorter->n + n > sorter->capacity)
		{
			make_entries(sorter);
			spill(sorter);
		}
	}
	if (sorter->n + n > sorter->allocated)
		grow(sorter, sorter->n + n);
}

/* Adds an entry that the caller fills in at once.  Does not spill. */
GpudsEntry *
gpuds_sorter_slot(GpudsSorter *sorter)
{
	Assert(!sorter->sorted && !sorter->of_ops);
	if (sorter->n == sorter->allocated)
		grow(sorter, sorter->n + 1);
	return (GpudsEntry *) sorter->elements + sorter->n++;
}

/* Adds an entry.  Spills if memory is full. */
void
gpuds_sorter_add(GpudsSorter *sorter, const GpudsEntry *entry)
{
	gpuds_sorter_reserve(sorter, 1);
	*gpuds_sorter_slot(sorter) = *entry;
}

/* Adds the operation that a record with these flags is.  Does not spill. */
void
gpuds_sorter_add_op(GpudsSorter *sorter, const GpudsEntry *entry, uint8 flags)
{
	GpudsOp *op;

	Assert(!sorter->sorted && sorter->of_ops);
	if (sorter->n == sorter->allocated)
		grow(sorter, sorter->n + 1);
	op = (GpudsOp *) sorter->elements + sorter->n++;
	op->e = *entry;
	op->order = sorter->sequence++ << ORDER_FLAGS_BITS | flags;
}

/* Elements in memory. */
int64
gpuds_sorter_held(const GpudsSorter *sorter)
{
	return sorter->n;
}

/*
 * The output
 */

/* Sorts what is in memory.  Nothing can be added any more.  Cannot be interrupted. */
void
gpuds_sorter_sort(GpudsSorter *sorter)
{
	if (sorter->sorted)
		return;
	sort(sorter, sorter->n);
	make_entries(sorter);
	drop_scratch(sorter);
	sorter->sorted = true;
}

/* Elements in runs and in memory, repetitions and deletions included. */
int64
gpuds_sorter_total(const GpudsSorter *sorter)
{
	int64 total = sorter->n;

	for (int level = 0; level < LEVELS; level++)
		total += sorter->level[level].records;
	return total;
}

/* Prepares the output.  If there are no runs and no older source, nothing needs to be merged. */
static void
begin_output(GpudsSorter *sorter)
{
	MemoryContext old;

	gpuds_sorter_sort(sorter);
	if (sorter->merge || (sorter->nruns == 0 && sorter->older == NULL && !sorter->of_ops))
		return;
	old = MemoryContextSwitchTo(sorter->context);
	sorter->merge = gpuds_merge_begin(sorter->nwords, sorter->memory / 4, false);
	if (sorter->older)
		gpuds_merge_source(sorter->merge, sorter->older, sorter->older_arg);
	for (int64 i = 0; i < sorter->nruns; i++)
		gpuds_merge_run(sorter->merge, &sorter->runs[i]);
	gpuds_merge_array(sorter->merge, sorter->elements, sorter->n);
	MemoryContextSwitchTo(old);
}

/*
 * Copies the next up to cap entries to out.  Returns their number, 0 at the end.  Interruptible.  Raises
 * what reading temporary files, and the older source, do.
 */
int64
gpuds_sorter_next(GpudsSorter *sorter, GpudsEntry *out, int64 cap)
{
	MemoryContext old = MemoryContextSwitchTo(sorter->context);
	int64 n;

	CHECK_FOR_INTERRUPTS();
	begin_output(sorter);
	if (sorter->merge)
		n = gpuds_merge_next(sorter->merge, out, cap);
	else
	{
		n = Min(cap, sorter->n - sorter->at);
		if (n > 0)
			memcpy(out, (GpudsEntry *) sorter->elements + sorter->at, n * sizeof(GpudsEntry));
		sorter->at += n;
	}
	MemoryContextSwitchTo(old);
	return n;
}

/*
 * Points *entries at the next entries, which stay until the next call, and returns how many there are, 0 at
 * the end.  Where nothing is merged, they are not copied.  Otherwise as gpuds_sorter_next.
 */
int64
gpuds_sorter_block(GpudsSorter *sorter, const GpudsEntry **entries)
{
	int64 n;

	begin_output(sorter);
	if (sorter->merge)
	{
		if (sorter->block == NULL)
			sorter->block = MemoryContextAlloc(sorter->context, BLOCK_ENTRIES * sizeof(GpudsEntry));
		*entries = sorter->block;
		return gpuds_sorter_next(sorter, sorter->block, BLOCK_ENTRIES);
	}
	CHECK_FOR_INTERRUPTS();
	n = Min(BLOCK_ENTRIES, sorter->n - sorter->at);
	*entries = (GpudsEntry *) sorter->elements + sorter->at;
	sorter->at += n;
	return n;
}

/*
 * The operations in memory, *n of them, in place of the output: sorted and the last one on each entry, or
 * as they were added.  The caller has reserved nothing, so there are no others.  They stay until something
 * is added.
 */
GpudsOp *
gpuds_sorter_ops(GpudsSorter *sorter, bool sorted, int64 *n)
{
	Assert(sorter->of_ops && !sorter->sorted && sorter->nruns == 0);
	if (sorted)
	{
		sort(sorter, sorter->n);
		drop_scratch(sorter);
	}
	*n = sorter->n;
	return sorter->elements;
}

/* Forgets what is in memory, but keeps the memory.  There are no runs. */
void
gpuds_sorter_clear(GpudsSorter *sorter)
{
	Assert(!sorter->sorted && sorter->nruns == 0);
	sorter->n = 0;
}

/*
 * Spills what is left in memory and leaves the file, if there is one, to those who open it with
 * gpuds_runs_open.  Returns the number of runs.  The sorter has no output of its own then.
 */
int
gpuds_sorter_export(GpudsSorter *sorter)
{
	gpuds_sorter_sort(sorter);
	if (sorter->n > 0)
		spill(sorter);
	if (sorter->level[0].file)
		gpuds_runs_export(sorter->level[0].file, sorter->runs, sorter->nruns);
	sorter->level[0].file = NULL;
	return sorter->nruns;
}

/* Frees the sorter and its files. */
void
gpuds_sorter_end(GpudsSorter *sorter)
{
	if (sorter->merge)
		gpuds_merge_end(sorter->merge);
	for (int level = 0; level < LEVELS; level++)
	{
		if (sorter->level[level].file)
			BufFileClose(sorter->level[level].file);
	}
	if (sorter->runs)
	{
		pfree(sorter->runs);
		pfree(sorter->run_level);
	}
	drop_scratch(sorter);
	if (sorter->elements)
		pfree(sorter->elements);
	if (sorter->block)
		pfree(sorter->block);
	pfree(sorter);
}
