/*-------------------------------------------------------------------------
 *
 * entries.c
 *	  The entries of a journal as one ascending stream.
 *
 * The base is sorted already and is read once, a page at a time.  The records of the stripes
 * are sorted in memory, in windows of maintenance_work_mem.  If they do not fit into one
 * window, the stripes are read once for each.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "admin/admin.h"
#include "kernels/core/sort.h"

/*
 * GpudsOp.order here: position << 2 | dead << 1 | delete.  The highest one is the
 * last word on an entry, as everywhere.
 */
#define ORDER_DEAD UINT64CONST(2)
#define ORDER_SHIFT 2

#define MIN_WINDOW 1024

struct GpudsEntries
{
	Relation index;
	int nwords;
	bool stale;

	/* the base */
	GpudsJournalReader *base;
	bool base_done;
	GpudsJournalPage page; /* in base's memory */
	int at_record;

	/* the stripes, from start to end */
	GpudsJournalPos start;
	GpudsJournalPos end;
	bool begun;
	bool has_lower; /* entries up to lower are done with */
	GpudsEntry lower;
	bool cut; /* the window ends at bound, there is more */
	GpudsEntry bound;
	int64 size;
	int64 n;
	int64 at;
	GpudsOp *ops;
	GpudsOp *scratch;
};

/*
 * Starts a stream of the entries as of a position, or of now if end is NULL.
 * Allocates in the current memory context.
 */
GpudsEntries *
gpuds_entries_open(Relation index, const GpudsJournalPos *end)
{
	GpudsEntries *stream = palloc0(sizeof(GpudsEntries));
	const GpudsMetaData *meta;
	int64 total = 0;
	int64 most;

	stream->index = index;
	stream->base = gpuds_reader_open(index);
	meta = gpuds_reader_meta(stream->base);
	stream->nwords = meta->nwords;
	if (end)
		stream->end = *end;
	else
		gpuds_journal_end(index, meta, &stream->end);

	gpuds_journal_start(meta, &stream->start);
	/* Records have been marked since whose tombstones nobody finds. */
	stream->stale = stream->end.epoch != meta->epoch;
	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
	{
		/* The base is ahead of the position. */
		if (stream->end.count[stripe] < meta->stripe[stripe].first)
			stream->stale = true;
		else
			total += stream->end.count[stripe] - meta->stripe[stripe].first;
	}
	most = (int64) maintenance_work_mem * 1024 / (2 * sizeof(GpudsOp));
	stream->size = Max(Min(total + 1, most), MIN_WINDOW);
	stream->ops = MemoryContextAllocHuge(CurrentMemoryContext, stream->size * sizeof(GpudsOp));
	stream->scratch = MemoryContextAllocHuge(CurrentMemoryContext, stream->size * sizeof(GpudsOp));
	return stream;
}

void
gpuds_entries_close(GpudsEntries *stream)
{
	gpuds_reader_close(stream->base);
	pfree(stream->ops);
	pfree(stream->scratch);
	pfree(stream);
}

static void
sort_window(GpudsEntries *stream)
{
	sort_ops(stream->ops, stream->scratch, stream->n);
	stream->n = sort_last_ops(stream->ops, stream->n);
}

/* Makes room in a full window: half of it stays, unless it had repetitions. */
static void
cut_window(GpudsEntries *stream)
{
	sort_window(stream);
	if (stream->n > stream->size / 2)
	{
		stream->n = stream->size / 2;
		stream->bound = stream->ops[stream->n - 1].e;
		stream->cut = true;
	}
}

/* Reads the stripes' next window. */
static void
read_window(GpudsEntries *stream)
{
	GpudsJournalReader *reader = gpuds_reader_open_after(stream->index, &stream->start);
	GpudsJournalPage page;
	GpudsReadResult result;

	gpuds_reader_stop_at(reader, &stream->end);
	stream->begun = true;
	stream->n = stream->at = 0;
	stream->cut = false;
	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		GpudsRecordIterator record = { .page = &page };

		CHECK_FOR_INTERRUPTS();
		while (gpuds_record_next(&record))
		{
			GpudsOp *op = &stream->ops[stream->n];

			if (stream->has_lower && !entry_less(&stream->lower, &record.entry))
				continue;
			if (stream->cut && entry_less(&stream->bound, &record.entry))
				continue;
			op->e = record.entry;
			op->order = record.number << ORDER_SHIFT;
			if (record.flags & GPUDS_RECORD_TOMBSTONE)
				op->order |= GPUDS_OP_DELETE;
			if (record.flags & GPUDS_RECORD_DEAD)
				op->order |= ORDER_DEAD;
			if (++stream->n == stream->size)
				cut_window(stream);
		}
	}
	gpuds_reader_close(reader);
	if (result == GPUDS_READ_STALE)
		stream->stale = true;
	sort_window(stream);
}

/* Makes the base's next record available; NULL if there is none. */
static const GpudsRecord *
base_record(GpudsEntries *stream)
{
	while (!stream->base_done && stream->at_record == stream->page.nrecords)
	{
		stream->at_record = 0;
		stream->page.nrecords = 0;
		switch (gpuds_reader_next(stream->base, &stream->page))
		{
			case GPUDS_READ_PAGE:
				if (stream->page.kind == GPUDS_PAGE_BASE)
					break;
				pg_fallthrough;
			case GPUDS_READ_END:
				stream->base_done = true;
				break;
			case GPUDS_READ_STALE:
				stream->base_done = true;
				stream->stale = true;
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	if (stream->base_done)
		return NULL;
	return (const GpudsRecord *) (stream->page.records + stream->at_record * GpudsRecordSize(stream->nwords));
}

/* Gives the next entry. */
GpudsEntriesResult
gpuds_entries_next(GpudsEntries *stream, GpudsEntry *entry, bool *doubtful)
{
	for (;;)
	{
		const GpudsRecord *record;
		const GpudsOp *op;
		GpudsEntry from_base;

		if (!stream->begun && !stream->stale)
			read_window(stream);
		record = base_record(stream);
		if (stream->stale)
			return GPUDS_ENTRIES_STALE;
		if (record)
			gpuds_record_entry(record, stream->nwords, &from_base);

		if (stream->at == stream->n && stream->cut && (!record || entry_less(&stream->bound, &from_base)))
		{
			stream->has_lower = true;
			stream->lower = stream->bound;
			read_window(stream);
			continue;
		}

		op = stream->at < stream->n ? &stream->ops[stream->at] : NULL;
		if (op && (!record || !entry_less(&from_base, &op->e)))
		{
			/* Whatever the base says of the entry, the stripes say it later. */
			if (record && entry_equal(&from_base, &op->e))
				stream->at_record++;
			stream->at++;
			if (op->order & GPUDS_OP_DELETE)
				continue;
			*entry = op->e;
			*doubtful = (op->order & ORDER_DEAD) != 0;
			return GPUDS_ENTRIES_NEXT;
		}
		if (!record)
			return GPUDS_ENTRIES_END;
		stream->at_record++;
		*entry = from_base;
		*doubtful = (record->flags & GPUDS_RECORD_DEAD) != 0;
		return GPUDS_ENTRIES_NEXT;
	}
}
