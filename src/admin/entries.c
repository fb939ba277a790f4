/*-------------------------------------------------------------------------
 *
 * entries.c
 *	  The entries of a journal as of a position, one by one.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"

#include "admin/admin.h"
#include "journal/journal_sort.h"

#define BLOCK_ENTRIES 512

struct GpudsEntries
{
	GpudsJournalPos end;
	GpudsJournalSort *sort;
	bool stale;
	int64 n; /* in block */
	int64 at;
	GpudsEntry block[BLOCK_ENTRIES];
};

/*
 * Starts a stream of the entries as of a position, or of now if end is NULL.  Sorts in maintenance_work_mem.
 * Allocates in the current memory context.  Raises what reading the journal and writing temporary files do.
 */
GpudsEntries *
gpuds_entries_open(Relation index, const GpudsJournalPos *end)
{
	GpudsEntries *stream = palloc0(sizeof(GpudsEntries));
	const GpudsJournalSelect select = { .dead = true, .end = &stream->end };

	stream->sort = gpuds_journal_sort_begin(index, (Size) maintenance_work_mem * 1024, &select);
	if (end)
		stream->end = *end;
	else
		gpuds_journal_end(index, gpuds_journal_sort_meta(stream->sort), &stream->end);
	stream->stale = !gpuds_journal_sort_stripes(stream->sort, NULL);
	return stream;
}

/* Frees the stream. */
void
gpuds_entries_close(GpudsEntries *stream)
{
	gpuds_journal_sort_end(stream->sort);
	pfree(stream);
}

/* Gives the next entry.  Raises what reading the journal and temporary files do. */
GpudsEntriesResult
gpuds_entries_next(GpudsEntries *stream, GpudsEntry *entry, bool *doubtful)
{
	if (stream->at == stream->n && !stream->stale)
	{
		stream->n = gpuds_journal_sort_next(stream->sort, stream->block, BLOCK_ENTRIES);
		stream->at = 0;
		stream->stale = stream->n < 0;
	}
	if (stream->stale)
		return GPUDS_ENTRIES_STALE;
	if (stream->n == 0)
		return GPUDS_ENTRIES_END;
	*entry = stream->block[stream->at++];
	*doubtful = (entry->t & GPUDS_RUN_DEAD) != 0;
	entry->t &= ~GPUDS_RUN_MARKS;
	return GPUDS_ENTRIES_NEXT;
}
