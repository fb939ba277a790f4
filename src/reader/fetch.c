/*-------------------------------------------------------------------------
 *
 * fetch.c
 *	  Visits the heap for an ascending list of TIDs, a page at a time.
 *
 * Most of the time goes into waiting for memory: the page's header, its line pointers, its tuples.  So
 * some pages are pinned before their turn, and what will be looked at there is asked for ahead: line
 * pointers when the page is pinned, tuples when it is halfway.  Line pointers are read without a lock
 * for that, because nothing but an address to ask for is made of them.
 *
 * A page that is not in shared buffers is asked of the system as far ahead as effective_io_concurrency says.
 * That takes a search in the buffer table for each page, so it rests while all pages are there.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/spccache.h"

#include "reader/fetch.h"

/* Bytes that the processor fetches of memory at a time; the second ones of a tuple are its columns'. */
#define CACHE_LINE 64

/* Pages in a row that were in the cache, after which none is asked for ahead. */
#define ALL_CACHED 64

/* Of all buffers, a list pins this share of its process' share at most. */
#define PIN_SHARE 8

/* The share of temporary buffers, of which there may be few: each cursor and each node has a list. */
#define TEMPORARY_SHARE 16

static inline BlockNumber
block_of(uint64 tid)
{
	return (BlockNumber) (tid >> 16);
}

static inline OffsetNumber
offset_of(uint64 tid)
{
	return (OffsetNumber) (tid & 0xFFFF);
}

/* Makes a fetch that has no list, and nothing to let go. */
void
gpuds_fetch_init(GpudsFetch *fetch)
{
	memset(fetch, 0, sizeof(GpudsFetch));
}

/* Are a table's rows looked up a page at a time? */
bool
gpuds_fetch_by_pages(Relation heap)
{
	return heap->rd_tableam == GetHeapamTableAmRoutine();
}

/* How many pages of a table, of the most that are wanted, may be pinned beside the one that is looked at? */
int
gpuds_fetch_pins(Relation heap, int most)
{
	int share = RelationUsesLocalBuffers(heap) ? num_temp_buffers / TEMPORARY_SHARE
											   : NBuffers / Max(MaxBackends, 1);

	return Min(most, share / PIN_SHARE);
}

/*
 * Begins to visit n TIDs, ascending and all different, which stay where they are until the last row has
 * been given.  Rows that do not pass recheck, unless that is NULL, are not given.  What was left of another
 * list is let go.
 */
void
gpuds_fetch_begin(GpudsFetch *fetch, IndexScanDesc scan, GpudsRecheck *recheck, const uint64 *tids, int64 n)
{
	Relation heap = scan->heapRelation;

	gpuds_fetch_reset(fetch);
	fetch->scan = scan;
	fetch->recheck = recheck;
	fetch->is_heap = gpuds_fetch_by_pages(heap);
	fetch->tids = tids;
	fetch->n = n;
	fetch->ahead = gpuds_fetch_pins(heap, GPUDS_PAGES_AHEAD);
	fetch->distance = get_tablespace_io_concurrency(heap->rd_rel->reltablespace);
}

/* Pages that were not found in the cache by this process so far. */
static inline int64
blocks_read(void)
{
	return pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;
}

/* Asks the system for pages behind the next one to pin. */
static void
read_ahead(GpudsFetch *fetch)
{
	const uint64 *tids = fetch->tids;

	if (fetch->cached >= ALL_CACHED)
		return;
	if (fetch->read_ahead <= fetch->next)
	{
		fetch->read_ahead = fetch->next + 1;
		fetch->reading = 0;
	}
	for (; fetch->reading < fetch->distance && fetch->read_ahead < fetch->n; fetch->read_ahead++)
	{
		BlockNumber block = block_of(tids[fetch->read_ahead]);

		if (block == block_of(tids[fetch->read_ahead - 1]))
			continue;
		PrefetchBuffer(fetch->scan->heapRelation, MAIN_FORKNUM, block);
		fetch->reading++;
	}
}

/* Asks for the page's header and line pointers. */
static inline void
ask_for_pointers(const GpudsFetch *fetch, const GpudsHeapPage *page)
{
	const char *at = BufferGetPage(page->buffer);

	__builtin_prefetch(at);
	for (int64 i = page->first; i < page->end; i++)
		__builtin_prefetch(at + SizeOfPageHeaderData + offset_of(fetch->tids[i]) * sizeof(ItemIdData));
}

/* Asks for the page's tuples. */
static inline void
ask_for_tuples(const GpudsFetch *fetch, const GpudsHeapPage *page)
{
	const char *at = BufferGetPage(page->buffer);

	for (int64 i = page->first; i < page->end; i++)
	{
		OffsetNumber offset = offset_of(fetch->tids[i]);
		ItemIdData id;

		if (offset < FirstOffsetNumber || offset > MaxHeapTuplesPerPage)
			continue;
		id = *(const volatile ItemIdData *) PageGetItemId((Page) at, offset);
		__builtin_prefetch(at + id.lp_off % BLCKSZ);
		__builtin_prefetch(at + (id.lp_off + CACHE_LINE) % BLCKSZ);
	}
}

/* Pins the page of the next TIDs. */
static void
pin_next(GpudsFetch *fetch)
{
	GpudsHeapPage *page = &fetch->pages[(fetch->page + fetch->npages) % lengthof(fetch->pages)];
	const BlockNumber block = block_of(fetch->tids[fetch->next]);
	const int64 before = blocks_read();

	read_ahead(fetch);
	page->buffer = ReadBuffer(fetch->scan->heapRelation, block);
	fetch->npages++;
	fetch->reading -= fetch->reading > 0;
	fetch->cached = blocks_read() == before ? Min(fetch->cached + 1, ALL_CACHED) : 0;
	page->first = fetch->next;
	while (fetch->next < fetch->n && block_of(fetch->tids[fetch->next]) == block)
		fetch->next++;
	page->end = fetch->next;
	ask_for_pointers(fetch, page);
}

/* The page at a place behind the first one's. */
static inline GpudsHeapPage *
page_at(GpudsFetch *fetch, int place)
{
	return &fetch->pages[(fetch->page + place) % lengthof(fetch->pages)];
}

static void
unpin_first(GpudsFetch *fetch)
{
	ReleaseBuffer(page_at(fetch, 0)->buffer);
	fetch->page = (fetch->page + 1) % lengthof(fetch->pages);
	fetch->npages--;
	fetch->row = fetch->nrows = 0;
}

/*
 * Finds the rows of the first page that the snapshot sees.  As long as the page is pinned, they stay
 * where they are.
 */
static void
search_page(GpudsFetch *fetch)
{
	const GpudsHeapPage *page = page_at(fetch, 0);
	Relation heap = fetch->scan->heapRelation;
	const BlockNumber block = block_of(fetch->tids[page->first]);

	GpudsPrunePage(fetch->scan, page->buffer);
	LockBuffer(page->buffer, BUFFER_LOCK_SHARE);
	for (int64 i = page->first; i < page->end; i++)
	{
		ItemPointerData tid;
		HeapTupleData tuple;
		bool dead = false;

		ItemPointerSet(&tid, block, offset_of(fetch->tids[i]));
		if (!heap_hot_search_buffer(&tid, heap, page->buffer, fetch->scan->xs_snapshot, &tuple,
									fetch->tell_dead ? &dead : NULL, true))
		{
			if (dead)
				fetch->tell_dead(fetch->tell_arg, i);
			continue;
		}
		/* TIDs that rows are seen at differ, and so do these rows: there are no more than a page has. */
		if (fetch->nrows == MaxHeapTuplesPerPage)
			elog(ERROR, "too many rows of one page of table \"%s\"", RelationGetRelationName(heap));
		fetch->rows[fetch->nrows] = ItemPointerGetOffsetNumber(&tid);
		fetch->places[fetch->nrows++] = i;
	}
	LockBuffer(page->buffer, BUFFER_LOCK_UNLOCK);
	fetch->searched += page->end - page->first;
	fetch->visited++;
}

/* Counts rows that are looked up, as many as an index scan would. */
static void
count_rows(const GpudsFetch *fetch, int n)
{
	for (int i = 0; i < n; i++)
		pgstat_count_heap_fetch(fetch->scan->indexRelation);
}

/* Leaves the rows of the first page that pass, if they can be looked at together. */
static void
check_page(GpudsFetch *fetch)
{
	const int n = fetch->nrows;

	fetch->checked = fetch->recheck == NULL || gpuds_recheck_takes_pages(fetch->recheck);
	if (!fetch->checked || fetch->recheck == NULL)
		return;
	fetch->nrows = gpuds_recheck_page(fetch->recheck, RelationGetDescr(fetch->scan->heapRelation),
									  BufferGetPage(page_at(fetch, 0)->buffer), fetch->rows, n);
	fetch->removed += n - fetch->nrows;
	count_rows(fetch, n - fetch->nrows);
}

/* Goes on to the next page; false: there is none. */
static bool
turn_page(GpudsFetch *fetch)
{
	CHECK_FOR_INTERRUPTS();
	if (fetch->npages > 0)
		unpin_first(fetch);
	while (fetch->npages <= fetch->ahead && fetch->next < fetch->n)
		pin_next(fetch);
	if (fetch->npages == 0)
		return false;
	if (fetch->npages > 1)
		ask_for_tuples(fetch, page_at(fetch, fetch->npages / 2));
	search_page(fetch);
	check_page(fetch);
	return true;
}

/* The row of the first page to give next. */
static void
give_row(GpudsFetch *fetch, TupleTableSlot *slot)
{
	const GpudsHeapPage *first = page_at(fetch, 0);
	HeapTuple tuple = &((BufferHeapTupleTableSlot *) slot)->base.tupdata;
	OffsetNumber offset = fetch->rows[fetch->row++];
	Page page = BufferGetPage(first->buffer);
	ItemId id = PageGetItemId(page, offset);

	tuple->t_data = (HeapTupleHeader) PageGetItem(page, id);
	tuple->t_len = ItemIdGetLength(id);
	tuple->t_tableOid = RelationGetRelid(fetch->scan->heapRelation);
	ItemPointerSet(&tuple->t_self, block_of(fetch->tids[first->first]), offset);
	ExecStoreBufferHeapTuple(tuple, slot, first->buffer);
}

/* As gpuds_fetch_next, from a table of another access method than heap. */
static bool
look_up(GpudsFetch *fetch, TupleTableSlot *slot)
{
	IndexScanDesc scan = fetch->scan;

	while (fetch->next < fetch->n)
	{
		const uint64 tid = fetch->tids[fetch->next++];
		ItemPointerData at;
		bool again = false;

		CHECK_FOR_INTERRUPTS();
		ItemPointerSet(&at, block_of(tid), offset_of(tid));
		fetch->visited++;
		if (table_index_fetch_tuple(scan->xs_heapfetch, &at, scan->xs_snapshot, slot, &again, NULL))
			return true;
	}
	return false;
}

/* The next row that the snapshot sees; false: there is none. */
static bool
next_row(GpudsFetch *fetch, TupleTableSlot *slot)
{
	if (!fetch->is_heap)
		return look_up(fetch, slot);
	while (fetch->row == fetch->nrows)
	{
		if (!turn_page(fetch))
			return false;
	}
	give_row(fetch, slot);
	return true;
}

/*
 * The next row that the scan's snapshot sees, and that passes, in the order of the heap, put into a slot of
 * the table's own kind, which holds it until it gets another.  False: there are no more.
 */
bool
gpuds_fetch_next(GpudsFetch *fetch, TupleTableSlot *slot)
{
	while (next_row(fetch, slot))
	{
		count_rows(fetch, 1);
		if (fetch->is_heap ? fetch->checked : fetch->recheck == NULL)
			return true;
		if (gpuds_recheck_row(fetch->recheck, slot))
			return true;
		fetch->removed++;
	}
	return false;
}

/* Lets the list and its pages go; what has been counted stays. */
void
gpuds_fetch_reset(GpudsFetch *fetch)
{
	while (fetch->npages > 0)
		unpin_first(fetch);
	fetch->tids = NULL;
	fetch->n = fetch->next = fetch->read_ahead = 0;
	fetch->reading = 0;
}
