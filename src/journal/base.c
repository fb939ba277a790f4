/*-------------------------------------------------------------------------
 *
 * base.c
 *	  Writes a base: sorted entries in, a chain of full pages out.
 *
 * Pages are made in private memory and moved to shared buffers GROUP_PAGES at a time, with
 * one generic WAL record for all of them if pages are logged.  A page's link names the page
 * that comes next, so the first block of the following group is allocated ahead.  The same
 * record makes it an empty page of the new base: the free space map may give a block to two
 * backends, and the second one notices because the page no longer says that it is free.
 *
 * The participants of a parallel build write parts of one base, each to blocks of its own
 * that are known from the start.
 *
 * Until the metapage refers to the chain, only a sweep can find its pages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/smgr.h"
#include "utils/memdebug.h"

#include "journal/journal_internal.h"

/* The page taken ahead goes into the record as well. */
#define GROUP_PAGES (MAX_GENERIC_XLOG_PAGES - 1)

struct GpudsBaseWriter
{
	Relation index;
	int nwords;
	uint64 generation;
	bool log_pages;
	GpudsReserve *reserve;
	BlockNumber head;
	BlockNumber ahead; /* block taken for the first page of the group */
	BlockNumber place; /* of the group, if blocks are given; else invalid */
	BlockNumber end;   /* behind the last block of all parts, if they are */
	BlockNumber pages; /* written */
	uint64 records;    /* added */
	int npages;        /* in the group; the last may be filling up */
	int capacity;      /* records that still fit in it */
	char *next;        /* where the next one goes */
	PGAlignedBlock group[GROUP_PAGES];
};

/*
 * Starts writing a base of the given generation.  log_pages: WAL-log pages as
 * they are written and reuse free ones, those of the reserve first, if there is one (not NULL); otherwise
 * they go to the end of the file and the caller logs the whole index when it is done.
 */
GpudsBaseWriter *
gpuds_base_begin(Relation index, int nwords, uint64 generation, bool log_pages, GpudsReserve *reserve)
{
	GpudsBaseWriter *writer = palloc(sizeof(GpudsBaseWriter));

	memset(writer, 0, offsetof(GpudsBaseWriter, group));
	writer->index = index;
	writer->nwords = nwords;
	writer->generation = generation;
	writer->log_pages = log_pages;
	writer->reserve = reserve;
	writer->head = InvalidBlockNumber;
	writer->ahead = InvalidBlockNumber;
	writer->place = InvalidBlockNumber;
	return writer;
}

/*
 * Starts writing a part of a first base: to the blocks from first on, in a file
 * that reaches to end already, behind which there are no more parts.  All pages
 * but the part's last are filled up, so that each participant can work out
 * how many the others need.
 */
GpudsBaseWriter *
gpuds_base_begin_part(Relation index, int nwords, BlockNumber first, BlockNumber end, uint64 records_before,
					  bool log_pages)
{
	GpudsBaseWriter *writer = gpuds_base_begin(index, nwords, 1, log_pages, NULL);

	writer->place = first;
	writer->end = end;
	writer->records = records_before;
	return writer;
}

/* A locked page for the writer to fill. */
static Buffer
new_page(GpudsBaseWriter *writer)
{
	return writer->log_pages ? gpuds_page_new(writer->index, writer->reserve) : gpuds_extend(writer->index);
}

/* Ends the filling of the group's last page. */
static void
finish_page(GpudsBaseWriter *writer)
{
	if (writer->npages > 0)
	{
		Page page = (Page) writer->group[writer->npages - 1].data;

		((PageHeader) page)->pd_lower = writer->next - (char *) page;
		VALGRIND_CHECK_MEM_IS_DEFINED(page, BLCKSZ);
	}
}

/* Writes the group's pages to the blocks that they were given. */
static void
write_group_in_place(GpudsBaseWriter *writer)
{
	static GpudsIOBlock zeros;
	Buffer buffers[GROUP_PAGES];
	const int npages = writer->npages;

	for (int i = 0; i < npages; i++)
	{
		BlockNumber block = writer->place + i;

		/* that the disk is full had better come out now */
		smgrwrite(RelationGetSmgr(writer->index), MAIN_FORKNUM, block, zeros.data, true);
		buffers[i] = ReadBufferExtended(writer->index, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, NULL);
	}

	START_CRIT_SECTION();
	for (int i = 0; i < npages; i++)
	{
		Page image = (Page) writer->group[i].data;
		BlockNumber next = writer->place + i + 1;

		GpudsPageGetOpaque(image)->next = next < writer->end ? next : InvalidBlockNumber;
		memcpy(BufferGetPage(buffers[i]), image, BLCKSZ);
		if (!writer->log_pages)
			MarkBufferDirty(buffers[i]);
	}
	if (writer->log_pages)
		gpuds_log_pages(writer->index, InvalidBuffer, NULL, buffers, npages);
	END_CRIT_SECTION();

	for (int i = 0; i < npages; i++)
		UnlockReleaseBuffer(buffers[i]);
	writer->place += npages;
	writer->pages += npages;
	writer->npages = 0;
}

/* Writes the group's pages; more: a further page will follow. */
static void
write_group(GpudsBaseWriter *writer, bool more)
{
	Buffer buffers[GROUP_PAGES + 1];
	const int npages = writer->npages;
	const int nbuffers = npages + (more ? 1 : 0);

	CHECK_FOR_INTERRUPTS();

	if (writer->place != InvalidBlockNumber)
	{
		write_group_in_place(writer);
		return;
	}
	for (int i = 0; i < nbuffers; i++)
	{
		if (i == 0 && writer->ahead != InvalidBlockNumber)
		{
			buffers[i] = ReadBuffer(writer->index, writer->ahead);
			LockBuffer(buffers[i], BUFFER_LOCK_EXCLUSIVE);
		}
		else
			buffers[i] = new_page(writer);
	}

	START_CRIT_SECTION();
	for (int i = 0; i < npages; i++)
	{
		Page image = (Page) writer->group[i].data;

		GpudsPageGetOpaque(image)->next = i + 1 < nbuffers ? BufferGetBlockNumber(buffers[i + 1])
														   : InvalidBlockNumber;
		memcpy(BufferGetPage(buffers[i]), image, BLCKSZ);
	}
	if (more)
		gpuds_page_init(BufferGetPage(buffers[npages]), GPUDS_PAGE_BASE, 0, writer->generation,
						writer->records);
	if (writer->log_pages)
		gpuds_log_pages(writer->index, InvalidBuffer, NULL, buffers, nbuffers);
	else
	{
		for (int i = 0; i < nbuffers; i++)
			MarkBufferDirty(buffers[i]);
	}
	END_CRIT_SECTION();

	if (writer->head == InvalidBlockNumber)
		writer->head = BufferGetBlockNumber(buffers[0]);
	writer->ahead = more ? BufferGetBlockNumber(buffers[npages]) : InvalidBlockNumber;
	for (int i = 0; i < nbuffers; i++)
		UnlockReleaseBuffer(buffers[i]);
	writer->pages += npages;
	writer->npages = 0;
}

/*
 * Adds entries: ascending, without duplicates, and above all that were added
 * before.
 */
void
gpuds_base_add(GpudsBaseWriter *writer, const GpudsEntry *entries, int64 n)
{
	const int nwords = writer->nwords;

	while (n > 0)
	{
		int here;

		if (writer->capacity == 0)
		{
			Page page;

			finish_page(writer);
			if (writer->npages == GROUP_PAGES)
				write_group(writer, true);
			page = (Page) writer->group[writer->npages++].data;
			gpuds_page_init(page, GPUDS_PAGE_BASE, 0, writer->generation, writer->records);
			writer->next = PageGetContents(page);
			writer->capacity = GpudsPageCapacity(nwords);
		}

		here = Min(n, writer->capacity);
		if (nwords == 1)
		{
			for (int i = 0; i < here; i++)
				gpuds_record_form((GpudsRecord *) (writer->next + i * GpudsRecordSize(1)), &entries[i], 1, 0);
		}
		else
		{
			for (int i = 0; i < here; i++)
				gpuds_record_form((GpudsRecord *) (writer->next + i * GpudsRecordSize(2)), &entries[i], 2, 0);
		}
		writer->next += here * GpudsRecordSize(nwords);
		writer->capacity -= here;
		writer->records += here;
		entries += here;
		n -= here;
	}
}

/*
 * Writes what is left and frees the writer.  *head is invalid and *pages 0 if
 * nothing was added; a part has no head of its own.
 */
void
gpuds_base_end(GpudsBaseWriter *writer, BlockNumber *head, BlockNumber *pages, uint64 *records)
{
	if (writer->npages > 0)
	{
		finish_page(writer);
		write_group(writer, false);
	}
	*head = writer->head;
	*pages = writer->pages;
	*records = writer->records;
	pfree(writer);
}
