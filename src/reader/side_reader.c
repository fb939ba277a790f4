/*-------------------------------------------------------------------------
 *
 * side_reader.c
 *	  Side values of rows, from the index's store or from the heap.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/rel.h"

#include "index/index.h"
#include "reader/reader.h"
#include "reader/visible.h"
#include "side/side.h"

/* Rows that are asked for before the side lock is let go. */
#define ROWS_UNDER_LOCK 1024

/* Rows whose side values are on their way to the processor while others are copied. */
#define ROWS_AHEAD 12

/* Rows that are read from the heap before memory is asked for again, when there was none. */
#define ROWS_WITHOUT_MEMORY 4096

/* Rows that are asked for one by one before it is noted again that the store is read. */
#define ROWS_A_TOUCH 256

/* layout and visible must live as long as the reader.  Any index may have one. */
void
gpuds_side_reader_begin(GpudsSideReader *reader, GpudsVisible *visible, const GpudsKeyLayout *layout)
{
	const Relation heap = visible->scan->heapRelation;

	reader->visible = visible;
	reader->layout = layout;
	reader->absent = InvalidBlockNumber;
	reader->without_memory = 0;
	reader->asked = 0;
	reader->stored = layout->side_bytes > 0 && heap->rd_tableam == GetHeapamTableAmRoutine() &&
					 gpuds_side_file(visible->scan->indexRelation, &reader->file);
}

/*
 * May rows have their side values from the store?  Not where snapshots expire: the TID of a row that was seen
 * may be given away then.
 */
static bool
may_be_stored(const GpudsSideReader *reader)
{
	return reader->stored && reader->visible->counts;
}

/* Copies what the store has of a row; false: it has nothing. */
static bool
copy_stored(const GpudsSideRef *ref, uint64 tid, int bytes, uint8 *values)
{
	const uint8 *stored = gpuds_side_get(ref, tid);

	if (stored)
		memcpy(values, stored, bytes);
	return stored != NULL;
}

/*
 * The same for a single row; *ref becomes the store.  ahead: NULL, or an entry whose row's values are on
 * their way to the processor then.  *may_fill, if there are none: it would have the row if the row's page
 * were made present, or if there were a store.
 */
static bool
find_stored(GpudsSideReader *reader, uint64 tid, const GpudsEntry *ahead, GpudsSideRef *ref, uint8 *values,
			bool *may_fill)
{
	bool found;

	gpuds_side_enter();
	found = gpuds_side_find(&reader->file, false, ref) &&
			copy_stored(ref, tid, reader->layout->side_bytes, values);
	*may_fill = !found && (ref->slot < 0 || gpuds_side_has_place(ref, tid));
	if (ref->slot >= 0 && reader->asked++ % ROWS_A_TOUCH == 0)
		gpuds_side_touch(ref);
	if (ahead)
		gpuds_side_prefetch(ref, ahead->t & ENTRY_TID_MASK);
	gpuds_side_leave();
	return found;
}

/* Finds a store, or makes one; false: there is no memory. */
static bool
make_store(const GpudsSideReader *reader, GpudsSideRef *ref)
{
	const Relation heap = reader->visible->scan->heapRelation;
	const int bytes = reader->layout->side_bytes;

	return ref->slot >= 0 || gpuds_side_make(&reader->file, heap, bytes, ref) ||
		   (gpuds_side_free_memory(ref) && gpuds_side_make(&reader->file, heap, bytes, ref));
}

/* Has the row's page read into the store; false: it is not there then. */
static bool
fill_page(GpudsSideReader *reader, uint64 tid, GpudsSideRef *ref)
{
	const IndexScanDesc scan = reader->visible->scan;
	const BlockNumber block = (BlockNumber) (tid >> 16);
	GpudsSideFill answer;

	/* What was in vain just now is not tried for each row. */
	if (reader->without_memory > 0)
	{
		reader->without_memory--;
		return false;
	}
	if (block == reader->absent)
		return false;
	if (!make_store(reader, ref))
		answer = GPUDS_SIDE_NO_MEMORY;
	else
		answer = gpuds_side_fill(ref, scan->heapRelation, block, scan->indexRelation, reader->layout);
	if (answer == GPUDS_SIDE_NO_MEMORY)
		reader->without_memory = ROWS_WITHOUT_MEMORY;
	if (answer == GPUDS_SIDE_ABSENT)
		reader->absent = block;
	return answer == GPUDS_SIDE_FILLED;
}

/* The side values of a row as the heap has them. */
static void
read_row(const GpudsSideReader *reader, uint64 tid, uint8 *values)
{
	const IndexScanDesc scan = reader->visible->scan;
	HeapTuple tuple;
	bool copied;
	bool dead;

	if (!gpuds_visible_in_heap(reader->visible, tid, &dead))
		elog(ERROR, "the row at (%u,%u) that index \"%s\" leads to is gone", (uint32) (tid >> 16),
			 (uint32) (tid & 0xFFFF), RelationGetRelationName(scan->indexRelation));
	tuple = ExecFetchSlotHeapTuple(reader->visible->slot, false, &copied);
	gpuds_side_of_tuple(tuple, RelationGetDescr(scan->heapRelation), scan->indexRelation, reader->layout,
						values);
	if (copied)
		heap_freetuple(tuple);
}

static void
values_of_row(GpudsSideReader *reader, uint64 tid, const GpudsEntry *ahead, uint8 *values)
{
	GpudsSideRef ref;
	bool may_fill;

	if (may_be_stored(reader))
	{
		if (find_stored(reader, tid, ahead, &ref, values, &may_fill))
			return;
		/* The table's pages may have become fuller. */
		if (!may_fill && gpuds_side_is_outgrown(&ref, reader->visible->scan->heapRelation))
		{
			(void) gpuds_side_drop(&reader->file);
			ref.slot = -1;
			may_fill = true;
		}
		if (may_fill && fill_page(reader, tid, &ref) &&
			find_stored(reader, tid, NULL, &ref, values, &may_fill))
			return;
	}
	read_row(reader, tid, values);
}

/*
 * The side values of the row that an entry leads to, until the next one; NULL: the index has no side columns.
 * The scan's snapshot must see the row.  ahead: NULL, or an entry that will be asked about soon.  May read a
 * page of the heap.
 */
const uint8 *
gpuds_side_reader_row(GpudsSideReader *reader, const GpudsEntry *entry, const GpudsEntry *ahead)
{
	if (reader->layout->side_bytes == 0)
		return NULL;
	values_of_row(reader, entry->t & ENTRY_TID_MASK, ahead, reader->values);
	return reader->values;
}

/* A page of the table in the store. */
typedef struct SidePage
{
	BlockNumber block;
	const uint8 *values; /* of the first offset on; NULL: the page is not there */
	int rows;            /* that there is room for */
} SidePage;

/* Is an entry's row on the page that another row is on? */
static inline bool
entry_is_of(const GpudsEntry *entry, uint64 tid)
{
	return (entry->t & ENTRY_TID_MASK) >> 16 == tid >> 16;
}

/* Copies what the store has of a row, which often is on the page of the one before; false: it has nothing. */
static inline bool
copy_of_page(SidePage *page, const GpudsSideRef *ref, uint64 tid, int bytes, uint8 *values)
{
	const BlockNumber block = (BlockNumber) (tid >> 16);
	const int offset = (int) (tid & 0xFFFF);
	const uint8 *from;

	if (block != page->block)
	{
		page->block = block;
		page->values = gpuds_side_page(ref, block, &page->rows);
	}
	if (page->values == NULL || offset > page->rows)
		return false;
	from = page->values + (offset - 1) * bytes;
	/* so few words need no call */
	for (int at = 0; at < bytes; at += sizeof(uint64))
		memcpy(values + at, from + at, sizeof(uint64));
	return true;
}

/* Copies what the store has of n rows, and puts those that it has nothing of in the order of the heap. */
static void
copy_piece(const GpudsSideReader *reader, const GpudsEntry *entries, int64 n, uint8 *values)
{
	const int bytes = reader->layout->side_bytes;
	GpudsSideRef ref;

	for (int64 first = 0; first < n; first += ROWS_UNDER_LOCK)
	{
		const int64 end = Min(first + ROWS_UNDER_LOCK, n);
		bool missing[ROWS_UNDER_LOCK];
		SidePage page = { .block = InvalidBlockNumber };
		bool found;

		CHECK_FOR_INTERRUPTS();
		gpuds_side_enter();
		found = gpuds_side_find(&reader->file, false, &ref);
		for (int64 i = first; i < end; i++)
		{
			const uint64 tid = entries[i].t & ENTRY_TID_MASK;

			/* Neighbours are often of one page, which the processor has by then. */
			if (found && i + ROWS_AHEAD < n && !entry_is_of(&entries[i + ROWS_AHEAD], tid))
				gpuds_side_prefetch(&ref, entries[i + ROWS_AHEAD].t & ENTRY_TID_MASK);
			missing[i - first] = !found || !copy_of_page(&page, &ref, tid, bytes, values + i * bytes);
		}
		if (found && first == 0)
			gpuds_side_touch(&ref);
		gpuds_side_leave();
		for (int64 i = first; i < end; i++)
		{
			if (missing[i - first])
				gpuds_visible_order(reader->visible, entries[i].t & ENTRY_TID_MASK, i);
		}
	}
}

/*
 * The same of n entries, at most GPUDS_PIECE_ENTRIES: values[i * side_bytes] on are those of the i-th.
 * Nothing may be in order to be looked up (visible.h).  Reads pages of the heap in their order.
 */
void
gpuds_side_reader_piece(GpudsSideReader *reader, const GpudsEntry *entries, int64 n, uint8 *values)
{
	GpudsVisible *visible = reader->visible;
	const int bytes = reader->layout->side_bytes;

	visible->norder = 0;
	if (may_be_stored(reader))
		copy_piece(reader, entries, n, values);
	else
	{
		for (int64 i = 0; i < n; i++)
			gpuds_visible_order(visible, entries[i].t & ENTRY_TID_MASK, i);
	}
	gpuds_visible_sort_order(visible);
	for (int64 place = 0; place < visible->norder; place++)
	{
		const int64 i = gpuds_visible_at(visible, place);

		gpuds_visible_read_ahead(visible, place);
		values_of_row(reader, entries[i].t & ENTRY_TID_MASK, NULL, values + i * bytes);
	}
	visible->norder = 0;
	gpuds_visible_forget_row(visible);
}
