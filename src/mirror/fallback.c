/*-------------------------------------------------------------------------
 *
 * fallback.c
 *	  Answers a scan by reading the whole journal.
 *
 * Memory is bounded: each call reads the journal once and keeps the operations
 * on the entries nearest behind the scan's position, so a scan of many entries
 * takes several passes.  Correct always, fast never.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "kernels/sort.h"
#include "mirror/mirror.h"

typedef struct Window
{
	GkOp *ops;
	GkOp *scratch;
	int64 n;
	int64 size; /* of both arrays */
	int64 keep; /* operations to keep when full */
	bool forward;
	bool cut;      /* operations beyond bound were dropped */
	GkEntry bound; /* last entry known completely */
} Window;

/* Sorts, keeps the last word on each entry, and drops what is too far away. */
static void
window_reduce(Window *window)
{
	gk_sort_ops(window->ops, window->scratch, window->n);
	window->n = gk_last_ops(window->ops, window->n);
	if (window->n <= window->keep)
		return;
	if (window->forward)
		window->bound = window->ops[window->keep - 1].e;
	else
	{
		int64 drop = window->n - window->keep;

		memmove(window->ops, window->ops + drop, window->keep * sizeof(GkOp));
		window->bound = window->ops[0].e;
	}
	window->n = window->keep;
	window->cut = true;
}

static bool
window_wants(const Window *window, const GkEntry *entry)
{
	if (!window->cut)
		return true;
	return window->forward ? !gk_less(&window->bound, entry) : !gk_less(entry, &window->bound);
}

/* The interval that holds the entry, or -1. */
static int64
interval_of(const GkScan *scan, const GkEntry *entry)
{
	int64 found = gk_scan_find(scan, entry);
	GkInterval interval;

	if (found == scan->n)
		return -1;
	interval = gk_scan_interval(scan, found);
	return gk_less(entry, &interval.lo) ? -1 : found;
}

/* Is the entry still to come in the scan? */
static bool
scan_wants(const GkScan *scan, bool forward, const GkEntry *entry)
{
	int64 interval = interval_of(scan, entry);

	if (interval < 0)
		return false;
	if (scan->inside)
		return forward ? gk_less(&scan->at, entry) : gk_less(entry, &scan->at);
	return forward ? interval >= scan->next : interval < scan->next;
}

static void
read_window(const GpudsMirrorSource *source, const GkScan *scan, Window *window)
{
	int nwords = source->layout->nwords;
	GpudsJournalReader *reader;
	GpudsJournalPage page;
	GpudsReadResult result;

restart:
	window->n = 0;
	window->cut = false;
	reader = gpuds_reader_open(source->index);
	while ((result = gpuds_reader_next(reader, &page)) == GPUDS_READ_PAGE)
	{
		/* Base records are older than those of the lanes. */
		uint64 age = page.kind == GPUDS_PAGE_BASE ? 0 : page.first + 1;
		const char *at = page.records;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < page.nrecords; i++, at += GpudsRecordSize(nwords))
		{
			const GpudsRecord *record = (const GpudsRecord *) at;
			GkOp *op = &window->ops[window->n];

			if (record->flags & GPUDS_RECORD_DEAD)
				continue;
			gpuds_record_entry(record, nwords, &op->e);
			if (!window_wants(window, &op->e) || !scan_wants(scan, window->forward, &op->e))
				continue;
			op->order = (page.kind == GPUDS_PAGE_BASE ? 0 : age + i) << 1 |
						(record->flags & GPUDS_RECORD_TOMBSTONE ? GK_OP_DELETE : GK_OP_INSERT);
			if (++window->n == window->size)
				window_reduce(window);
		}
	}
	gpuds_reader_close(reader);
	if (result == GPUDS_READ_STALE)
		goto restart;
	window_reduce(window);
}

/*
 * Fetches the next entries of a scan into out[cap] and moves the scan behind
 * them, as gpuds_device_scan does.  *end: there are no more.
 */
int64
gpuds_journal_scan(const GpudsMirrorSource *source, GkScan *scan, bool forward, GkEntry *out, int64 cap,
				   bool *end)
{
	Window window;
	int64 n = 0;
	bool full = false;

	window.forward = forward;
	window.keep = Max(cap, 1024) * 2;
	window.size = window.keep * 2;
	window.ops = MemoryContextAllocHuge(CurrentMemoryContext, window.size * sizeof(GkOp));
	window.scratch = MemoryContextAllocHuge(CurrentMemoryContext, window.size * sizeof(GkOp));

	*end = false;
	while (n == 0 && !*end)
	{
		read_window(source, scan, &window);
		for (int64 i = 0; i < window.n; i++)
		{
			const GkOp *op = &window.ops[forward ? i : window.n - 1 - i];

			if ((op->order & 1) == GK_OP_DELETE)
				continue;
			if (n == cap)
			{
				full = true;
				break;
			}
			out[n++] = op->e;
		}
		*end = !full && !window.cut;
		if (!*end)
		{
			/* Behind the last entry given out, or known to be deleted. */
			scan->at = full ? out[n - 1] : window.bound;
			scan->inside = true;
			scan->next = interval_of(scan, &scan->at) + (forward ? 0 : 1);
		}
	}
	pfree(window.ops);
	pfree(window.scratch);
	return n;
}
