/*-------------------------------------------------------------------------
 *
 * fill.c
 *	  Makes pages of a table present in a store of side values.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"

#include "side/side.h"

/* A page of the table that is read. */
typedef struct SidePage
{
	Relation heap;
	Relation index;
	const GpudsKeyLayout *layout;
	Page page;
	BlockNumber block;
} SidePage;

/* The side values of a row of a table, of one version of it. */
void
gpuds_side_of_tuple(HeapTuple tuple, TupleDesc desc, Relation index, const GpudsKeyLayout *layout,
					uint8 *values)
{
	memset(values, 0, layout->side_bytes);
	for (int i = layout->nkeys; i < layout->ncolumns; i++)
	{
		bool isnull;
		Datum value;

		if (!gpuds_key_is_side(&layout->column[i]))
			continue;
		value = heap_getattr(tuple, index->rd_index->indkey.values[i], desc, &isnull);
		gpuds_key_side_put(&layout->column[i], value, isnull, values);
	}
}

/* The version at an offset, if there is one. */
static bool
version_at(const SidePage *page, OffsetNumber offset, HeapTuple tuple)
{
	ItemId item;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page->page))
		return false;
	item = PageGetItemId(page->page, offset);
	if (!ItemIdIsNormal(item))
		return false;
	tuple->t_data = (HeapTupleHeader) PageGetItem(page->page, item);
	tuple->t_len = ItemIdGetLength(item);
	tuple->t_tableOid = RelationGetRelid(page->heap);
	ItemPointerSet(&tuple->t_self, page->block, offset);
	return true;
}

/*
 * The side values of the rows of a chain that begins at an offset; false: its versions differ (S2).  What a
 * chain without versions has is zeros.
 */
static bool
values_of_chain(const SidePage *page, OffsetNumber offset, uint8 *values)
{
	TransactionId updater = InvalidTransactionId;
	bool first = true;
	HeapTupleData tuple;

	memset(values, 0, page->layout->side_bytes);
	while (version_at(page, offset, &tuple))
	{
		uint8 others[GPUDS_SIDE_BYTES];

		/* Another row may have the place of a version that is gone. */
		if (TransactionIdIsValid(updater) &&
			!TransactionIdEquals(updater, HeapTupleHeaderGetXmin(tuple.t_data)))
			break;
		gpuds_side_of_tuple(&tuple, RelationGetDescr(page->heap), page->index, page->layout,
							first ? values : others);
		if (!first && memcmp(values, others, page->layout->side_bytes) != 0)
			return false;
		if (!HeapTupleHeaderIsHotUpdated(tuple.t_data))
			break;
		first = false;
		updater = HeapTupleHeaderGetUpdateXid(tuple.t_data);
		offset = ItemPointerGetOffsetNumber(&tuple.t_data->t_ctid);
	}
	return true;
}

/* Where the chain begins that an entry with this offset leads to; 0: there can be no entry. */
static OffsetNumber
beginning_of_chain(const SidePage *page, OffsetNumber offset)
{
	ItemId item = PageGetItemId(page->page, offset);

	if (ItemIdIsRedirected(item))
		return ItemIdGetRedirect(item);
	if (!ItemIdIsNormal(item) || HeapTupleHeaderIsHeapOnly((HeapTupleHeader) PageGetItem(page->page, item)))
		return InvalidOffsetNumber;
	return offset;
}

/* The side values of all rows at offsets up to most; false: the page must stay absent. */
static bool
values_of_page(const SidePage *page, int most, uint8 *values)
{
	const int last = Min(most, (int) PageGetMaxOffsetNumber(page->page));

	for (OffsetNumber offset = FirstOffsetNumber; (int) offset <= last; offset++)
	{
		OffsetNumber begin = beginning_of_chain(page, offset);

		if (begin != InvalidOffsetNumber &&
			!values_of_chain(page, begin, values + (offset - FirstOffsetNumber) * page->layout->side_bytes))
			return false;
	}
	return true;
}

/* Is there memory for a page?  *per_page: rows that it has room for. */
static GpudsSideFill
has_capacity(const GpudsSideRef *ref, BlockNumber block, int *per_page)
{
	GpudsSidePlace place = { 0 };
	GpudsSideFill answer;

	gpuds_side_enter();
	answer = gpuds_side_make_page(ref, block, &place);
	gpuds_side_leave();
	*per_page = place.per_page;
	return answer;
}

/* Puts the values of a page in and makes it present.  The caller holds its buffer's lock. */
static GpudsSideFill
put_page(const GpudsSideRef *ref, BlockNumber block, const uint8 *values, int bytes)
{
	GpudsSidePlace place;
	GpudsSideFill answer;

	gpuds_side_enter();
	answer = gpuds_side_make_page(ref, block, &place);
	if (answer == GPUDS_SIDE_FILLED)
	{
		memcpy(place.values, values, (size_t) place.per_page * bytes);
		gpuds_side_set_present(&place);
	}
	gpuds_side_leave();
	return answer;
}

/*
 * Makes a page of the table present in a store of its index.  Reads the page, and takes its lock in shared
 * mode.  The caller has not entered.
 */
GpudsSideFill
gpuds_side_fill(const GpudsSideRef *ref, Relation heap, BlockNumber block, Relation index,
				const GpudsKeyLayout *layout)
{
	SidePage page = { .heap = heap, .index = index, .layout = layout, .block = block };
	uint8 values[MaxHeapTuplesPerPage * GPUDS_SIDE_BYTES]; /* a store has room for no more rows (store.c) */
	GpudsSideFill answer;
	Buffer buffer;
	int per_page;

	answer = has_capacity(ref, block, &per_page);
	if (answer == GPUDS_SIDE_NO_MEMORY && gpuds_side_free_memory(ref))
		answer = has_capacity(ref, block, &per_page);
	if (answer != GPUDS_SIDE_FILLED)
		return answer;
	memset(values, 0, (size_t) per_page * layout->side_bytes);
	buffer = ReadBuffer(heap, block);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page.page = BufferGetPage(buffer);
	answer = values_of_page(&page, per_page, values) ? put_page(ref, block, values, layout->side_bytes)
													 : GPUDS_SIDE_ABSENT;
	UnlockReleaseBuffer(buffer);
	return answer;
}
