/*-------------------------------------------------------------------------
 *
 * journal_sort.c
 *	  The entries of a journal, ascending.
 *
 * The base is sorted already and is streamed, a page at a time.  The records of the stripes go through a
 * sorter, as operations.  All that the base says of an entry is older.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "journal/journal_internal.h"
#include "journal/journal_sort.h"
#include "sort/sorter.h"

struct GpudsJournalSort
{
	Relation index;
	GpudsJournalSelect select;
	GpudsJournalReader *base;
	GpudsSorter *sorter;
	bool stale;
	GpudsEntry page[GPUDS_MAX_RECORDS_PER_PAGE]; /* of the base */
};

/* Is the entry in one of the scan's intervals? */
static bool
is_in_intervals(const GpudsScan *scan, const GpudsEntry *entry)
{
	int64 found = entry_scan_find(scan, entry);
	GpudsInterval interval;

	if (found == scan->n)
		return false;
	interval = entry_scan_interval(scan, found);
	return !entry_less(entry, &interval.lo);
}

/* Moves on to the page's next record that is wanted; false: there is none. */
static inline bool
next_wanted(const GpudsJournalSelect *select, GpudsRecordIterator *record)
{
	while (gpuds_record_next(record))
	{
		if ((record->flags & GPUDS_RECORD_DEAD) && !select->dead)
			continue;
		if (select->only == NULL || is_in_intervals(select->only, &record->entry))
			return true;
	}
	return false;
}

static void
between_pages(const GpudsJournalSelect *select)
{
	CHECK_FOR_INTERRUPTS();
	if (select->between_pages)
		select->between_pages();
}

/* GpudsSourceNext of the base: the entries of its next page that are wanted. */
static int
next_of_base(void *arg, const GpudsEntry **entries)
{
	GpudsJournalSort *sort = arg;
	GpudsJournalPage page;
	int n = 0;

	while (n == 0 && !sort->stale)
	{
		GpudsRecordIterator record = { .page = &page };
		GpudsReadResult result;

		between_pages(&sort->select);
		result = gpuds_reader_next(sort->base, &page);
		sort->stale = result == GPUDS_READ_STALE;
		if (result != GPUDS_READ_PAGE || page.kind != GPUDS_PAGE_BASE)
			return 0;
		for (; next_wanted(&sort->select, &record); n++)
		{
			sort->page[n] = record.entry;
			if (record.flags & GPUDS_RECORD_DEAD)
				sort->page[n].t |= GPUDS_RUN_DEAD;
		}
	}
	*entries = sort->page;
	return n;
}

/*
 * Adds the wanted records of the reader's next pages to a sorter of operations, until there are no more
 * (GPUDS_READ_END) or the sorter holds select->most operations or more (GPUDS_READ_PAGE).  Calls
 * select->between_pages and may be interrupted where no lock is held.  Raises what gpuds_reader_next and
 * writing temporary files do.
 */
GpudsReadResult
gpuds_journal_collect(GpudsJournalReader *reader, const GpudsJournalSelect *select, GpudsSorter *sorter)
{
	GpudsJournalPage page;

	while (select->most == 0 || gpuds_sorter_held(sorter) < select->most)
	{
		GpudsRecordIterator record = { .page = &page };
		GpudsReadResult result = gpuds_reader_next(reader, &page);

		if (result != GPUDS_READ_PAGE)
			return result;
		if (select->most == 0)
			gpuds_sorter_reserve(sorter, page.nrecords);
		while (next_wanted(select, &record))
			gpuds_sorter_add_op(sorter, &record.entry, record.flags);
		between_pages(select);
	}
	return GPUDS_READ_PAGE;
}

/* Records that the stripes have between where they begin and a position. */
uint64
gpuds_journal_count_before(const GpudsMetaData *meta, const GpudsJournalPos *end)
{
	uint64 n = 0;

	for (int stripe = 0; stripe < GPUDS_STRIPES; stripe++)
		n += end->count[stripe] - Min(end->count[stripe], meta->stripe[stripe].first);
	return n;
}

/*
 * Prepares for sorting the wanted entries of an index, in so much memory, in bytes.  Reads nothing but the
 * metapage.  Allocates in the current memory context.
 */
GpudsJournalSort *
gpuds_journal_sort_begin(Relation index, Size memory, const GpudsJournalSelect *select)
{
	GpudsJournalSort *sort = palloc0(sizeof(GpudsJournalSort));

	sort->index = index;
	sort->select = *select;
	sort->base = gpuds_reader_open(index);
	sort->sorter = gpuds_sorter_begin_ops(gpuds_journal_sort_meta(sort)->nwords, memory, GPUDS_SORTER_MOMENT);
	gpuds_sorter_older(sort->sorter, next_of_base, sort);
	return sort;
}

/* The metapage by which the entries are read. */
const GpudsMetaData *
gpuds_journal_sort_meta(const GpudsJournalSort *sort)
{
	return gpuds_reader_meta(sort->base);
}

/*
 * Reads and sorts the records of the stripes, up to select->end if that is given.  Without it only the base
 * comes out.  pos, if not NULL: gets the position up to which the stripes were read, which is their end
 * unless select->most was reached.  False: a compaction came, or the position is not of this journal.
 */
bool
gpuds_journal_sort_stripes(GpudsJournalSort *sort, GpudsJournalPos *pos)
{
	const GpudsMetaData *meta = gpuds_journal_sort_meta(sort);
	const GpudsJournalPos *end = sort->select.end;
	GpudsJournalReader *reader;
	GpudsJournalPos start;

	/* records have been marked since whose tombstones nobody finds, or the base is ahead of the position */
	if (end && end->epoch != meta->epoch)
		return false;
	for (int stripe = 0; end && stripe < GPUDS_STRIPES; stripe++)
	{
		if (end->count[stripe] < meta->stripe[stripe].first)
			return false;
	}

	gpuds_journal_start(meta, &start);
	reader = gpuds_reader_open_after(sort->index, &start);
	if (end)
		gpuds_reader_stop_at(reader, end);
	sort->stale = gpuds_journal_collect(reader, &sort->select, sort->sorter) == GPUDS_READ_STALE;
	if (pos)
		gpuds_reader_position(reader, pos);
	gpuds_reader_close(reader);
	if (!sort->stale)
		gpuds_sorter_sort(sort->sorter);
	return !sort->stale;
}

/*
 * Copies the next up to cap entries to out.  Those that are marked dead, if they are wanted, have
 * GPUDS_RUN_DEAD in t.  Returns their number: 0 at the end, -1 if a compaction came.  Otherwise as
 * gpuds_journal_collect.
 */
int64
gpuds_journal_sort_next(GpudsJournalSort *sort, GpudsEntry *out, int64 cap)
{
	int64 n = gpuds_sorter_next(sort->sorter, out, cap);

	return sort->stale ? -1 : n;
}

/* Frees the sort and its files. */
void
gpuds_journal_sort_end(GpudsJournalSort *sort)
{
	gpuds_sorter_end(sort->sorter);
	gpuds_reader_close(sort->base);
	pfree(sort);
}
