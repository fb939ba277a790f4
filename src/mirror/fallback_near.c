/*-------------------------------------------------------------------------
 *
 * fallback_near.c
 *	  The first pass of a journal scan: the entries nearest to the scan's position.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "kernels/core/sort.h"
#include "mirror/fallback.h"

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
		/* Base records are older than those of the stripes. */
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
 * Sorts into *sorted, which is empty, what comes next in the scan, as far as it
 * fits.  False: that is not all.  Allocates in the current memory context.
 */
bool
gpuds_fallback_near(const GpudsMirrorSource *source, const GpudsScan *scan, bool forward, GpudsSorted *sorted)
{
	Window window;

	window.forward = forward;
	window.size = Min(gpuds_fallback_memory_bytes() / (2 * sizeof(GpudsOp)), GPUDS_MAX_RUN_OPS);
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
	return !window.cut;
}
