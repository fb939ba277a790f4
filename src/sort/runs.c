/*-------------------------------------------------------------------------
 *
 * runs.c
 *	  Runs in temporary files, and the merge of sorted sources (see runs.h).
 *
 * In a file, the entries of a run have the form of journal records, so a spilled entry
 * takes 16 or 24 bytes.  The runs of one sorter follow each other in one file.
 *
 * The merge is a tournament of losers.  Node i > 0 of the tree holds the source that lost
 * there, node 0 the overall winner; sources are the leaves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "sort/record.h"
#include "sort/runs.h"

/* Entries of a run that are read at a time, at most. */
#define MAX_READ_ENTRIES 8192

#define WRITE_RECORDS 512

typedef struct Source
{
	const GpudsEntry *at; /* the source's next entries */
	const GpudsEntry *end;
	GpudsSourceNext next; /* NULL: an array, or a run of file */
	void *arg;
	BufFile *file;
	int64 offset; /* of what is not read yet, in bytes */
	int64 left;   /* records not read yet */
	GpudsEntry *buffer;
} Source;

struct GpudsMerge
{
	int nwords;
	Size memory;
	bool keep_deleted;
	int nsources;
	int live; /* sources that are not at their end */
	int allocated;
	int read_entries;
	Source *sources;
	int *tree;    /* NULL until the merge has begun */
	char *packed; /* records as read from a file */
};

/* The flags of an entry's record. */
static inline uint8
flags_of(const GpudsEntry *entry)
{
	return (entry->t & GPUDS_RUN_DELETED ? GPUDS_RECORD_TOMBSTONE : 0) |
		   (entry->t & GPUDS_RUN_DEAD ? GPUDS_RECORD_DEAD : 0);
}

/* The same, the other way round. */
static inline uint64
marks_of(const GpudsRecord *record)
{
	return (record->flags & GPUDS_RECORD_TOMBSTONE ? GPUDS_RUN_DELETED : 0) |
		   (record->flags & GPUDS_RECORD_DEAD ? GPUDS_RUN_DEAD : 0);
}

/*
 * Writes n sorted entries of nwords key words to a temporary file, where it stands.  Interruptible.  Raises
 * what writing the file does.
 */
void
gpuds_run_write(BufFile *file, const GpudsEntry *entries, int64 n, int nwords)
{
	const int size = GpudsRecordSize(nwords);
	union
	{
		char bytes[WRITE_RECORDS * GpudsRecordSize(2)];
		uint64 align;
	} packed;

	while (n > 0)
	{
		int chunk = Min(n, WRITE_RECORDS);

		for (int i = 0; i < chunk; i++)
			gpuds_record_form((GpudsRecord *) (packed.bytes + i * size), &entries[i], nwords,
							  flags_of(&entries[i]));
		BufFileWrite(file, packed.bytes, (Size) chunk * size);
		entries += chunk;
		n -= chunk;
		CHECK_FOR_INTERRUPTS();
	}
}

static void
read_at(BufFile *file, int64 offset, void *data, Size size)
{
	if (BufFileSeek(file, 0, offset, SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in temporary file: %m")));
	gpuds_buffile_read(file, data, size);
}

/*
 * Leaves a file of a file set, which has these runs and nothing else, to other processes, and closes it.  The
 * lengths of the runs go behind their records.
 */
void
gpuds_runs_export(BufFile *file, const GpudsSortedRun *runs, int64 n)
{
	for (int64 i = 0; i < n; i++)
		BufFileWrite(file, (void *) &runs[i].count, sizeof(int64));
	BufFileExportFileSet(file);
	BufFileClose(file);
}

/*
 * Opens an exported file of n runs that have so many records together, and fills in the runs.  Raises what
 * reading the file does.
 */
BufFile *
gpuds_runs_open(SharedFileSet *fileset, const char *name, int nwords, int64 records, GpudsSortedRun *runs,
				int64 n)
{
	BufFile *file = BufFileOpenFileSet(&fileset->fs, name, O_RDONLY, false);
	int64 first = 0;

	if (BufFileSeek(file, 0, records * GpudsRecordSize(nwords), SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in temporary file: %m")));
	for (int64 i = 0; i < n; i++)
	{
		runs[i].file = file;
		runs[i].first = first;
		gpuds_buffile_read(file, &runs[i].count, sizeof(int64));
		first += runs[i].count;
	}
	return file;
}

/* Reads the entry of a run at position i, which counts from 0. */
void
gpuds_run_entry(const GpudsSortedRun *run, int64 i, int nwords, GpudsEntry *entry)
{
	const int size = GpudsRecordSize(nwords);
	union
	{
		char bytes[GpudsRecordSize(2)];
		uint64 align;
	} packed;

	Assert(i >= 0 && i < run->count);
	read_at(run->file, (run->first + i) * size, packed.bytes, size);
	gpuds_record_entry((const GpudsRecord *) packed.bytes, nwords, entry);
}

/*
 * How many entries of the run are below the bound.  Reads some entries.  Raises what reading the file does.
 */
int64
gpuds_run_below(const GpudsSortedRun *run, int nwords, const GpudsEntry *bound)
{
	int64 lo = 0;
	int64 hi = run->count;

	while (lo < hi)
	{
		int64 middle = (lo + hi) / 2;
		GpudsEntry entry;

		gpuds_run_entry(run, middle, nwords, &entry);
		if (entry_less(&entry, bound))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/*
 * Starts a merge, in the current memory context.  memory, in bytes, is what its read buffers may take; each
 * gets GPUDS_RUN_READ_BYTES anyway.  keep_deleted: deleted entries come out, too.
 */
GpudsMerge *
gpuds_merge_begin(int nwords, Size memory, bool keep_deleted)
{
	GpudsMerge *merge = palloc0(sizeof(GpudsMerge));

	merge->nwords = nwords;
	merge->memory = memory;
	merge->keep_deleted = keep_deleted;
	merge->allocated = 16;
	merge->sources = palloc(merge->allocated * sizeof(Source));
	return merge;
}

static Source *
add_source(GpudsMerge *merge)
{
	Source *source;

	Assert(merge->tree == NULL);
	if (merge->nsources == merge->allocated)
	{
		merge->allocated *= 2;
		merge->sources = repalloc_huge(merge->sources, (Size) merge->allocated * sizeof(Source));
	}
	source = &merge->sources[merge->nsources++];
	memset(source, 0, sizeof(*source));
	return source;
}

/* Adds a source that a function gives, which is called with arg. */
void
gpuds_merge_source(GpudsMerge *merge, GpudsSourceNext next, void *arg)
{
	Source *source = add_source(merge);

	source->next = next;
	source->arg = arg;
}

/* Adds a sorted array, which must live as long as the merge. */
void
gpuds_merge_array(GpudsMerge *merge, const GpudsEntry *entries, int64 n)
{
	Source *source = add_source(merge);

	source->at = entries;
	source->end = entries + n;
}

/* Adds a run, or a part of one, whose file must stay open as long as the merge. */
void
gpuds_merge_run(GpudsMerge *merge, const GpudsSortedRun *run)
{
	Source *source = add_source(merge);

	source->file = run->file;
	source->offset = run->first * GpudsRecordSize(merge->nwords);
	source->left = run->count;
}

/* Makes the source's next entry available; false if there is none. */
static bool
refill(GpudsMerge *merge, Source *source)
{
	const int nwords = merge->nwords;
	const int size = GpudsRecordSize(nwords);
	int n;

	if (source->next)
	{
		n = source->next(source->arg, &source->at);
		source->end = source->at + n;
		return n > 0;
	}
	if (source->left == 0)
		return false;

	n = Min(source->left, merge->read_entries);
	if (source->buffer == NULL)
		source->buffer = palloc(merge->read_entries * sizeof(GpudsEntry));
	read_at(source->file, source->offset, merge->packed, (Size) n * size);
	for (int i = 0; i < n; i++)
	{
		const GpudsRecord *record = (const GpudsRecord *) (merge->packed + (Size) i * size);

		gpuds_record_entry(record, nwords, &source->buffer[i]);
		source->buffer[i].t |= marks_of(record);
	}
	source->at = source->buffer;
	source->end = source->buffer + n;
	source->offset += (int64) n * size;
	source->left -= n;
	CHECK_FOR_INTERRUPTS();
	return true;
}

static inline bool
same_entry(const GpudsEntry *a, const GpudsEntry *b)
{
	return a->w0 == b->w0 && a->w1 == b->w1 && ((a->t ^ b->t) & ~GPUDS_RUN_MARKS) == 0;
}

/* Does source a come before source b?  A source at its end comes last. */
static inline bool
comes_before(const GpudsMerge *merge, int a, int b)
{
	const GpudsEntry *ea = merge->sources[a].at;
	const GpudsEntry *eb = merge->sources[b].at;
	uint64 ta;
	uint64 tb;

	if (ea == merge->sources[a].end || eb == merge->sources[b].end)
		return ea != merge->sources[a].end || (eb == merge->sources[b].end && a < b);
	if (ea->w0 != eb->w0)
		return ea->w0 < eb->w0;
	if (ea->w1 != eb->w1)
		return ea->w1 < eb->w1;
	ta = ea->t & ~GPUDS_RUN_MARKS;
	tb = eb->t & ~GPUDS_RUN_MARKS;
	return ta != tb ? ta < tb : a < b;
}

/* Plays the first round below a node; returns the winner. */
static int
play(GpudsMerge *merge, int node)
{
	int left;
	int right;

	if (node >= merge->nsources)
		return node - merge->nsources;
	left = play(merge, 2 * node);
	right = play(merge, 2 * node + 1);
	if (comes_before(merge, left, right))
	{
		merge->tree[node] = right;
		return left;
	}
	merge->tree[node] = left;
	return right;
}

static void
start_merge(GpudsMerge *merge)
{
	Size entries = merge->memory / sizeof(GpudsEntry) / Max(merge->nsources, 1);

	merge->read_entries = Min(Max(entries, GPUDS_RUN_READ_ENTRIES), MAX_READ_ENTRIES);
	merge->packed = palloc((Size) merge->read_entries * GpudsRecordSize(merge->nwords));
	for (int i = 0; i < merge->nsources; i++)
	{
		if (merge->sources[i].at < merge->sources[i].end || refill(merge, &merge->sources[i]))
			merge->live++;
	}
	merge->tree = palloc((merge->nsources + 1) * sizeof(int));
	merge->tree[0] = merge->nsources > 1 ? play(merge, 1) : 0;
}

/* Takes the winner's entry away and finds the next winner. */
static inline void
advance(GpudsMerge *merge)
{
	int winner = merge->tree[0];
	Source *source = &merge->sources[winner];

	if (++source->at == source->end && !refill(merge, source))
		merge->live--;
	for (int node = (winner + merge->nsources) / 2; node > 0; node /= 2)
	{
		int loser = merge->tree[node];

		if (comes_before(merge, loser, winner))
		{
			merge->tree[node] = winner;
			winner = loser;
		}
	}
	merge->tree[0] = winner;
}

/* Takes up to cap entries of the one source that is left, as far as they are at hand. */
static int64
take_alone(GpudsMerge *merge, GpudsEntry *out, int64 cap)
{
	Source *source = &merge->sources[merge->tree[0]];
	const GpudsEntry *end = source->at + Min(cap, source->end - source->at);
	int64 n = 0;

	for (; source->at < end; source->at++)
	{
		if (merge->keep_deleted || !(source->at->t & GPUDS_RUN_DELETED))
			out[n++] = *source->at;
	}
	if (source->at == source->end && !refill(merge, source))
		merge->live--;
	return n;
}

/*
 * Copies the next up to cap entries of the merge to out, ascending, without duplicates and deleted ones.
 * Returns their number, 0 at the end.  Interruptible.  Raises what reading files and sources does.
 */
int64
gpuds_merge_next(GpudsMerge *merge, GpudsEntry *out, int64 cap)
{
	int64 n = 0;

	if (merge->nsources == 0)
		return 0;
	if (merge->tree == NULL)
		start_merge(merge);

	while (n < cap && merge->live > 0)
	{
		const Source *source = &merge->sources[merge->tree[0]];
		GpudsEntry entry;

		if (merge->live == 1)
		{
			n += take_alone(merge, out + n, cap - n);
			continue;
		}
		entry = *source->at;
		advance(merge);
		for (;;)
		{
			source = &merge->sources[merge->tree[0]];
			if (source->at == source->end || !same_entry(source->at, &entry))
				break;
			entry = *source->at;
			advance(merge);
		}
		if (merge->keep_deleted || !(entry.t & GPUDS_RUN_DELETED))
			out[n++] = entry;
	}
	return n;
}

/* Frees the merge.  Files and arrays are the caller's. */
void
gpuds_merge_end(GpudsMerge *merge)
{
	for (int i = 0; i < merge->nsources; i++)
	{
		if (merge->sources[i].buffer)
			pfree(merge->sources[i].buffer);
	}
	pfree(merge->sources);
	if (merge->tree)
	{
		pfree(merge->tree);
		pfree(merge->packed);
	}
	pfree(merge);
}
