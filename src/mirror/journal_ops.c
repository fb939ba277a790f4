/*-------------------------------------------------------------------------
 *
 * journal_ops.c
 *	  Records of the journal as operations on a mirror.
 *
 * They are collected in journal order.  A device that does not sort gets them
 * sorted by (entry, order) and reduced to the last word on each entry.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "kernels/core/sort.h"
#include "mirror/mirror_internal.h"

/* Operations in a large batch: at least, where maintenance_work_mem is small ... */
#define LEAST_LARGE (INT64CONST(1024) * 1024)

/* ... and at most: what is sorted in a moment, which nothing can interrupt. */
#define MOST_LARGE (INT64CONST(4) * 1024 * 1024)

/*
 * How many operations a large batch has: as many as maintenance_work_mem holds twice,
 * once to sort from and once to sort into, within limits.
 */
int64
gpuds_ops_large(void)
{
	int64 fitting = (int64) maintenance_work_mem * 1024 / (2 * (int64) sizeof(GpudsOp));

	return Min(Max(LEAST_LARGE, fitting), MOST_LARGE);
}

/*
 * An empty batch that is full when it has limit operations, or a page's worth
 * more.  Allocates in the current memory context.
 */
void
gpuds_ops_init(GpudsJournalOps *batch, int64 limit)
{
	batch->ops = NULL;
	batch->n = batch->size = 0;
	batch->limit = limit;
	batch->context = CurrentMemoryContext;
}

void
gpuds_ops_free(GpudsJournalOps *batch)
{
	if (batch->ops)
		pfree(batch->ops);
	batch->ops = NULL;
	batch->n = batch->size = 0;
}

/*
 * Adds the records of a page.  A record that VACUUM marked dead is ignored; its
 * tombstone comes later in the same stripe.
 */
static void
add_page(GpudsJournalOps *batch, const GpudsJournalPage *page)
{
	GpudsRecordIterator record = { .page = page };

	if (batch->n + page->nrecords > batch->size)
	{
		int64 size = Max(batch->size * 2, 1024);

		/* No more than a full batch and the page that fills it. */
		size = Min(size, batch->limit + GPUDS_MAX_RECORDS_PER_PAGE);
		size = Max(size, batch->n + page->nrecords);
		if (batch->ops == NULL)
			batch->ops = MemoryContextAllocHuge(batch->context, size * sizeof(GpudsOp));
		else
			batch->ops = repalloc_huge(batch->ops, size * sizeof(GpudsOp));
		batch->size = size;
	}
	while (gpuds_record_next(&record))
	{
		GpudsOp *op = &batch->ops[batch->n];

		if (record.flags & GPUDS_RECORD_DEAD)
			continue;
		op->e = record.entry;
		op->order = record.number << 1 |
					(record.flags & GPUDS_RECORD_TOMBSTONE ? GPUDS_OP_DELETE : GPUDS_OP_INSERT);
		batch->n++;
	}
}

/*
 * Reads on from the reader until its end or until the batch is full.  Returns
 * false if the journal was compacted away under the reader.
 */
bool
gpuds_ops_read(GpudsJournalOps *batch, GpudsJournalReader *reader, bool *end)
{
	GpudsJournalPage page;

	*end = false;
	while (batch->n < batch->limit)
	{
		switch (gpuds_reader_next(reader, &page))
		{
			case GPUDS_READ_PAGE:
				add_page(batch, &page);
				break;
			case GPUDS_READ_END:
				*end = true;
				return true;
			case GPUDS_READ_STALE:
				return false;
		}
		gpuds_make_way_check();
	}
	return true;
}

/* Sorts the batch and keeps the last word on each entry. */
void
gpuds_ops_sort(GpudsJournalOps *batch)
{
	GpudsOp *scratch;

	if (batch->n < 2)
		return;
	scratch = MemoryContextAllocHuge(batch->context, batch->n * sizeof(GpudsOp));
	sort_ops(batch->ops, scratch, batch->n);
	pfree(scratch);
	batch->n = sort_last_ops(batch->ops, batch->n);
}
