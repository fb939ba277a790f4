/*-------------------------------------------------------------------------
 *
 * visible.c
 *	  Visibility of rows by the visibility map, and by the heap where the map is not enough.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/spccache.h"

#include "am/visible.h"
#include "journal/journal.h"
#include "kernels/core/sort.h"
#include "key/key.h"

/* Bytes of a page of the visibility map, and heap pages that it is about. */
#define MAP_PAGE_BYTES ((uint32) (BLCKSZ - MAXALIGN(SizeOfPageHeaderData)))
#define MAP_PAGE_BLOCKS (MAP_PAGE_BYTES * 4)

/* For a scan that may look at the heap; its memory is the current context's. */
void
gpuds_visible_begin(GpudsVisible *visible, IndexScanDesc scan)
{
	memset(visible, 0, sizeof(*visible));
	visible->scan = scan;
	visible->slot = table_slot_create(scan->heapRelation, NULL);
}

/* To be called before the scan's barrier. */
void
gpuds_visible_before_barrier(GpudsVisible *visible)
{
	visible->counts = !RecoveryInProgress() && !GpudsSnapshotsExpire();
	visible->bulk_deletes = gpuds_journal_bulk_deletes(visible->scan->indexRelation);
}

/* Is the counter what it was before the barrier?  To be asked after the map. */
static bool
still_counts(const GpudsVisible *visible)
{
	pg_read_barrier();
	return gpuds_journal_bulk_deletes(visible->scan->indexRelation) == visible->bulk_deletes;
}

/* The map's bits for a piece of the heap; NULL: it has none. */
static const unsigned char *
map_bits(GpudsVisible *visible, uint32 number)
{
	GpudsMapPage *page = &visible->map[number % GPUDS_MAP_PAGES];

	if (BufferIsValid(page->buffer) && page->number == number)
		return page->bits;
	/* Reads the map's page and pins it, in place of the one before. */
	(void) visibilitymap_get_status(visible->scan->heapRelation, number * MAP_PAGE_BLOCKS, &page->buffer);
	if (!BufferIsValid(page->buffer))
		return NULL;
	page->number = number;
	page->bits = (const unsigned char *) PageGetContents(BufferGetPage(page->buffer));
	return page->bits;
}

static inline bool
all_visible(const unsigned char *bits, uint32 block)
{
	return bits && (((const volatile unsigned char *) bits)[block / 4] >> (block % 4 * 2)) &
					   VISIBILITYMAP_ALL_VISIBLE;
}

/* I1 for the page of a TID: is its row visible to all? */
bool
gpuds_visible_to_all(GpudsVisible *visible, uint64 tid)
{
	uint32 block = (uint32) (tid >> 16);

	if (!visible->counts)
		return false;
	/* The entry was read before the map, the map before the counter. */
	pg_read_barrier();
	return all_visible(map_bits(visible, block / MAP_PAGE_BLOCKS), block % MAP_PAGE_BLOCKS) &&
		   still_counts(visible);
}

/*
 * I1 for n entries that the scan has just been given: which rows are visible to all?  from_mirror: they are
 * not of the journal.
 */
void
gpuds_visible_mark(GpudsVisible *visible, const GpudsEntry *entries, int64 n, bool from_mirror, bool *to_all)
{
	const unsigned char *bits = NULL;
	uint32 number = 0;

	if (!visible->counts || !from_mirror)
	{
		memset(to_all, false, n * sizeof(bool));
		return;
	}
	pg_read_barrier();
	for (int64 i = 0; i < n; i++)
	{
		uint32 block = (uint32) ((entries[i].t & ENTRY_TID_MASK) >> 16);

		if (bits == NULL || block / MAP_PAGE_BLOCKS != number)
		{
			number = block / MAP_PAGE_BLOCKS;
			bits = map_bits(visible, number);
		}
		to_all[i] = all_visible(bits, block % MAP_PAGE_BLOCKS);
	}
	if (!still_counts(visible))
		memset(to_all, false, n * sizeof(bool));
}

/*
 * A copy of the visibility map as it is now, without page headers, in palloc'd memory.
 */
unsigned char *
gpuds_visible_copy_map(GpudsVisible *visible, size_t *bytes)
{
	const BlockNumber blocks = RelationGetNumberOfBlocks(visible->scan->heapRelation);
	const uint32 pages = blocks / MAP_PAGE_BLOCKS + (blocks % MAP_PAGE_BLOCKS != 0);
	unsigned char *map;

	*bytes = (size_t) pages * MAP_PAGE_BYTES;
	map = MemoryContextAllocHuge(CurrentMemoryContext, Max(*bytes, 1));
	for (uint32 i = 0; i < pages; i++)
	{
		const unsigned char *bits = map_bits(visible, i);

		CHECK_FOR_INTERRUPTS();
		if (bits)
			memcpy(map + (size_t) i * MAP_PAGE_BYTES, bits, MAP_PAGE_BYTES);
		else
			memset(map + (size_t) i * MAP_PAGE_BYTES, 0, MAP_PAGE_BYTES);
	}
	pg_read_barrier();
	return map;
}

/* Is a part of the map still all-visible where a copy of it says so? */
static bool
part_holds(const unsigned char *bits, const unsigned char *copy)
{
	const uint64 all_visible = UINT64CONST(0x0101010101010101) *
							   (VISIBILITYMAP_ALL_VISIBLE | VISIBILITYMAP_ALL_VISIBLE << 2 |
								VISIBILITYMAP_ALL_VISIBLE << 4 | VISIBILITYMAP_ALL_VISIBLE << 6);

	StaticAssertStmt(MAP_PAGE_BYTES % sizeof(uint64) == 0, "pages of the map are compared by words");
	for (uint32 i = 0; i < MAP_PAGE_BYTES; i += sizeof(uint64))
	{
		uint64 was;
		uint64 is;

		memcpy(&was, copy + i, sizeof(was));
		memcpy(&is, bits + i, sizeof(is));
		if ((was & ~is & all_visible) != 0)
			return false;
	}
	return true;
}

/* I2 for a copy of the map that was made after the barrier, and for all entries that were read since. */
bool
gpuds_visible_map_holds(GpudsVisible *visible, const unsigned char *map, size_t bytes)
{
	static const unsigned char nothing[MAP_PAGE_BYTES] = { 0 };

	pg_read_barrier();
	for (uint32 i = 0; i < bytes / MAP_PAGE_BYTES; i++)
	{
		const unsigned char *bits = map_bits(visible, i);

		if (!part_holds(bits ? bits : nothing, map + (size_t) i * MAP_PAGE_BYTES))
			return false;
	}
	return still_counts(visible);
}

/*
 * Does the heap have a row at a TID that the scan's snapshot sees?  It is in visible->slot then, until the
 * next one.  *dead: it is dead for everybody.
 *
 * An MVCC snapshot sees one row of a chain at most, so nobody asks for another.
 */
bool
gpuds_visible_in_heap(GpudsVisible *visible, uint64 tid, bool *dead)
{
	IndexScanDesc scan = visible->scan;
	ItemPointerData at;
	bool again = false;
	bool seen;

	CHECK_FOR_INTERRUPTS();
	ItemPointerSet(&at, (BlockNumber) (tid >> 16), (OffsetNumber) (tid & 0xFFFF));
	*dead = false;
	seen = table_index_fetch_tuple(scan->xs_heapfetch, &at, scan->xs_snapshot, visible->slot, &again, dead);
	visible->fetches++;
	if (seen)
		pgstat_count_heap_fetch(scan->indexRelation);
	return seen;
}

/*
 * Has pages read ahead for rows that will be looked up in the order of n words, whose high 48 bits are
 * TIDs shifted by shift: the i-th is next.
 */
void
gpuds_visible_read_ahead(GpudsVisible *visible, GpudsReadAhead *ahead, const uint64 *words, int64 n, int64 i,
						 int shift)
{
	Relation heap = visible->scan->heapRelation;
	const int block_shift = 16 + shift;

	if (i == 0)
	{
		ahead->distance = get_tablespace_io_concurrency(heap->rd_rel->reltablespace);
		ahead->next = ahead->pages = 0;
	}
	else if (words[i] >> block_shift != words[i - 1] >> block_shift)
		ahead->pages--;
	for (ahead->next = Max(ahead->next, i + 1); ahead->pages < ahead->distance && ahead->next < n;
		 ahead->next++)
	{
		if (words[ahead->next] >> block_shift == words[ahead->next - 1] >> block_shift)
			continue;
		PrefetchBuffer(heap, MAIN_FORKNUM, (BlockNumber) (words[ahead->next] >> block_shift));
		ahead->pages++;
	}
}

/*
 * How many of the rows at n TIDs does the scan's snapshot see?  Sorts the TIDs, so that each page is
 * visited once.
 */
int64
gpuds_visible_count_in_heap(GpudsVisible *visible, uint64 *tids, int64 n)
{
	GpudsReadAhead ahead;
	int64 seen = 0;
	uint64 *scratch;

	if (n == 0)
		return 0;
	scratch = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64));
	sort_u64(tids, scratch, n);
	pfree(scratch);
	for (int64 i = 0; i < n; i++)
	{
		bool dead;

		gpuds_visible_read_ahead(visible, &ahead, tids, n, i, 0);
		seen += gpuds_visible_in_heap(visible, tids[i], &dead);
	}
	ExecClearTuple(visible->slot);
	return seen;
}

/* Lets the map's pages go. */
void
gpuds_visible_reset(GpudsVisible *visible)
{
	for (int i = 0; i < GPUDS_MAP_PAGES; i++)
	{
		if (BufferIsValid(visible->map[i].buffer))
			ReleaseBuffer(visible->map[i].buffer);
		visible->map[i].buffer = InvalidBuffer;
	}
}

void
gpuds_visible_end(GpudsVisible *visible)
{
	gpuds_visible_reset(visible);
	ExecDropSingleTupleTableSlot(visible->slot);
}
