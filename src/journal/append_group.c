/*-------------------------------------------------------------------------
 *
 * append_group.c
 *	  Appends entries to several indexes by one record of WAL.
 *
 * A statement that changes few rows of a table appends few entries to each of its indexes.
 * A record of WAL for each index takes more than they do.  So the tails of up to
 * GPUDS_GROUP_INDEXES indexes are changed together.
 *
 * Only the plain case is done here: all entries of an index are of one stripe, this backend
 * remembers the stripe's tail, and the page has room.  In all other cases nothing is appended,
 * and the caller appends to one index after the other (append.c).
 *
 * No other code holds locks of several indexes' pages.  The pages are pinned before the first is
 * locked, and locked in the order of their buffers.  So two backends that do this never wait
 * for each other in a circle, and as long as a backend holds one of these locks it waits for
 * nothing but the others.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "journal/journal_internal.h"

StaticAssertDecl(GPUDS_GROUP_INDEXES <= MAX_GENERIC_XLOG_PAGES, "a record of WAL has a page of each index");

/* What is appended to one index. */
typedef struct Part
{
	const GpudsAppend *append;
	int stripe;
	Buffer tail;
	uint64 number; /* of the first record, in its stripe */
	char records[GPUDS_GROUP_ENTRIES * GpudsRecordSize(2)] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} Part;

/* Are all entries of one stripe?  *stripe: the first one's. */
static bool
is_one_stripe(const GpudsAppend *append, int *stripe)
{
	*stripe = gpuds_stripe_of(&append->entries[0]);
	for (int i = 1; i < append->n; i++)
	{
		if (gpuds_stripe_of(&append->entries[i]) != *stripe)
			return false;
	}
	return true;
}

/* Pins the page where this backend last saw the tail of the stripe; false: this is not the plain case. */
static bool
prepare(Part *part, const GpudsAppend *append)
{
	BlockNumber block;

	if (append->n > GPUDS_GROUP_ENTRIES || RelationUsesLocalBuffers(append->index) ||
		!RelationNeedsWAL(append->index) || !is_one_stripe(append, &part->stripe))
		return false;
	block = gpuds_tails_of(append->index)->tail[part->stripe];
	if (block == InvalidBlockNumber)
		return false;
	part->append = append;
	for (int i = 0; i < append->n; i++)
		gpuds_record_form((GpudsRecord *) (part->records + i * GpudsRecordSize(append->nwords)),
						  &append->entries[i], append->nwords, 0);
	part->tail = ReadBuffer(append->index, block);
	return true;
}

static int
compare_buffers(const void *a, const void *b)
{
	const Buffer left = (*(const Part *const *) a)->tail;
	const Buffer right = (*(const Part *const *) b)->tail;

	return (left > right) - (left < right);
}

/* Is the locked page the stripe's tail, with room for the part's records? */
static bool
is_tail_with_space(const Part *part)
{
	const int nwords = part->append->nwords;
	Page page = BufferGetPage(part->tail);
	GpudsPageOpaque opaque = GpudsPageGetOpaque(page);

	gpuds_page_check(part->append->index, part->tail, nwords);
	return opaque->kind == GPUDS_PAGE_STRIPE && opaque->stripe == part->stripe &&
		   opaque->next == InvalidBlockNumber &&
		   part->append->n <= GpudsPageCapacity(nwords) - GpudsPageCount(page, nwords);
}

/* Puts the parts' records into their pages, which are locked, and logs them. */
static void
change_pages(Part *const *parts, int n)
{
	GpudsPageDelta deltas[GPUDS_GROUP_INDEXES];
	Buffer tails[GPUDS_GROUP_INDEXES];

	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
	{
		Part *part = parts[i];
		const int nwords = part->append->nwords;
		Page page = BufferGetPage(part->tail);
		int lower = ((PageHeader) page)->pd_lower;

		part->number = GpudsPageGetOpaque(page)->first + GpudsPageCount(page, nwords);
		gpuds_page_store(page, part->records, part->append->n, nwords);
		deltas[i].length = 0;
		gpuds_page_delta_add(&deltas[i], page, offsetof(PageHeaderData, pd_lower), sizeof(LocationIndex));
		gpuds_page_delta_add(&deltas[i], page, lower, part->append->n * GpudsRecordSize(nwords));
		tails[i] = part->tail;
	}
	gpuds_log_group(tails, deltas, n);
	END_CRIT_SECTION();
}

/* Locks the pages and appends; false: one of them is not what it was, nothing has been appended. */
static bool
append_parts(Part *const *parts, int n)
{
	bool good = true;
	int locked = 0;

	while (good && locked < n)
	{
		LockBuffer(parts[locked]->tail, BUFFER_LOCK_EXCLUSIVE);
		good = is_tail_with_space(parts[locked++]);
	}
	if (good)
		change_pages(parts, n);
	while (locked > 0)
		LockBuffer(parts[--locked]->tail, BUFFER_LOCK_UNLOCK);
	return good;
}

/* Appends what is prepared; false: nothing has been appended. */
static bool
append_prepared(Part *parts, int n)
{
	Part *ordered[GPUDS_GROUP_INDEXES];
	RelFileLocator locators[GPUDS_GROUP_INDEXES];
	int most = 0;
	bool done;

	for (int i = 0; i < n; i++)
	{
		ordered[i] = &parts[i];
		locators[i] = RelationLocator(parts[i].append->index);
		most = Max(most, parts[i].append->n);
	}
	qsort(ordered, n, sizeof(Part *), compare_buffers);
	gpuds_memtable_begin(locators, n, most);
	done = append_parts(ordered, n);
	if (done)
	{
		gpuds_injection_point("append-paged");
		for (int i = 0; i < n; i++)
			gpuds_append_remember(i, parts[i].append->nwords, parts[i].stripe, parts[i].records,
								  parts[i].append->n, parts[i].number, BufferGetBlockNumber(parts[i].tail));
		for (int i = 0; i < n; i++)
			gpuds_journal_count_change(parts[i].append->index);
	}
	gpuds_memtable_end();
	return done;
}

/*
 * Appends entries to n indexes of different files, as inserts, with what gpuds_journal_append promises of
 * each.  False: nothing has been appended, for there are too many entries, or a page is full, or something
 * else is not as it mostly is.  There are GPUDS_GROUP_INDEXES of them at most: that is what a BufferGroup
 * (insert/insert.c) has room for before it is appended.
 */
bool
gpuds_journal_append_group(const GpudsAppend *appends, int n)
{
	Part parts[GPUDS_GROUP_INDEXES];
	int prepared = 0;
	bool done;

	Assert(n > 0 && n <= GPUDS_GROUP_INDEXES);
	while (prepared < n && prepare(&parts[prepared], &appends[prepared]))
		prepared++;
	done = prepared == n && append_prepared(parts, n);
	while (prepared > 0)
		ReleaseBuffer(parts[--prepared].tail);
	return done;
}
