/*-------------------------------------------------------------------------
 *
 * index_only.c
 *	  Index-only scans: rows made of entries.
 *
 * Core shows the row of an entry without a visit to the heap if the visibility map calls the
 * row's page all-visible.  So the scan gives core only entries whose rows it knows the snapshot
 * to see, whatever the map says thereafter (visible.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "utils/memutils.h"

#include "reader/cursor.h"
#include "reader/reader.h"
#include "reader/visible.h"

/* Entries whose rows' side values are on their way to the processor while other rows are made. */
#define ENTRIES_AHEAD 4

struct GpudsIndexOnly
{
	GpudsVisible visible;
	GpudsSideReader side;
	IndexTuple full;  /* room for a row without NULLs of fixed size, made again and again */
	Size full_data;   /* bytes of its columns */
	IndexTuple other; /* room for any row, as large as those so far; NULL: there were none */
	Size other_size;
	MemoryContext context; /* of both */
};

/* amcanreturn: is a column's value in the index? */
bool
gpuds_can_return(Relation index, int column)
{
	const int nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	Oid type;

	if (column > nkeys)
		return true;
	if (gpuds_key_is_lossy(index->rd_indam->amcanorder, nkeys, index->rd_opfamily, index->rd_opcintype,
						   column - 1))
		return false;
	type = index->rd_opcintype[column - 1];
	if (type == ANYENUMOID)
		type = TupleDescAttr(RelationGetDescr(index), column - 1)->atttypid;
	return gpuds_key_is_exact(type);
}

/*
 * For a scan that is to return rows, allocated in the current memory context.  layout must live as long.
 */
static GpudsIndexOnly *
index_only_begin(IndexScanDesc scan, const GpudsKeyLayout *layout)
{
	GpudsIndexOnly *only = palloc0(sizeof(GpudsIndexOnly));

	gpuds_visible_begin(&only->visible, scan);
	gpuds_side_reader_begin(&only->side, &only->visible, layout);
	only->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds index-only scan",
										  ALLOCSET_SMALL_SIZES);
	return only;
}

/* Before the barrier of a scan that gives entries one by one: it may have to return rows. */
void
gpuds_index_only_prepare(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	if (!scan->xs_want_itup)
		return;
	if (cursor->only == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(cursor->ref.delta.context);

		cursor->only = index_only_begin(scan, &cursor->info.layout);
		MemoryContextSwitchTo(old);
	}
	gpuds_visible_before_barrier(&cursor->only->visible);
}

/*
 * Does the scan's snapshot see the row of scan->xs_heaptid, whatever core will find in the
 * visibility map?  from_mirror: the entry is not of the journal.  *dead: the row is dead for everybody.
 */
bool
gpuds_index_only_sees(GpudsIndexOnly *only, IndexScanDesc scan, bool from_mirror, bool *dead)
{
	uint64 tid = gpuds_tid_bits(&scan->xs_heaptid);
	bool seen;

	*dead = false;
	if (from_mirror && gpuds_visible_to_all(&only->visible, tid))
		return true;
	if (gpuds_visible_is_known(&only->visible, tid, &seen, dead))
		return seen;
	seen = gpuds_visible_in_heap(&only->visible, tid, dead);
	gpuds_visible_forget_row(&only->visible);
	return seen;
}

/* A row without NULLs whose columns have types of fixed length: all of them have the same size. */
static IndexTuple
form_full(GpudsIndexOnly *only, TupleDesc desc, Datum *values, bool *isnull)
{
	const Size offset = IndexInfoFindDataOffset(0);
	uint16 mask = 0;

	if (only->full == NULL)
	{
		only->full_data = heap_compute_data_size(desc, values, isnull);
		only->full = MemoryContextAllocZero(only->context, MAXALIGN(offset + only->full_data));
		only->full->t_info = MAXALIGN(offset + only->full_data);
	}
	heap_fill_tuple(desc, values, isnull, (char *) only->full + offset, only->full_data, &mask, NULL);
	return only->full;
}

/* Makes room for a row that is not such. */
static void
ensure_capacity(GpudsIndexOnly *only, Size size)
{
	if (size <= only->other_size)
		return;
	if (only->other)
		pfree(only->other);
	only->other = MemoryContextAlloc(only->context, size);
	only->other_size = size;
}

/* Any other row, as index_form_tuple forms it: values are none that it would compress. */
static IndexTuple
form_other(GpudsIndexOnly *only, TupleDesc desc, Datum *values, bool *isnull, bool has_nulls)
{
	const unsigned short info = has_nulls ? INDEX_NULL_MASK : 0;
	const Size offset = IndexInfoFindDataOffset(info);
	const Size data = heap_compute_data_size(desc, values, isnull);
	const Size size = MAXALIGN(offset + data);
	uint16 mask = 0;
	char *row;

	ensure_capacity(only, size);
	row = (char *) only->other;
	memset(row, 0, size);
	heap_fill_tuple(desc, values, isnull, row + offset, data, &mask,
					has_nulls ? (uint8 *) row + sizeof(IndexTupleData) : NULL);
	only->other->t_info = (unsigned short) size | info | (mask & HEAP_HASVARWIDTH ? INDEX_VAR_MASK : 0);
	return only->other;
}

/* An entry of the chunk at hand that comes soon; NULL: it has none. */
static const GpudsEntry *
entry_ahead(IndexScanDesc scan)
{
	const GpudsCursor *cursor = scan->opaque;

	return cursor->at + ENTRIES_AHEAD < cursor->nchunk ? &cursor->chunk[cursor->at + ENTRIES_AHEAD] : NULL;
}

/*
 * Sets scan->xs_itup to an entry's row, which lasts until the next one.  seen: the scan's snapshot sees the
 * row; if it may not, side columns are left out.
 */
void
gpuds_index_only_return(GpudsIndexOnly *only, IndexScanDesc scan, const GpudsKeyLayout *layout,
						const GpudsEntry *entry, bool seen)
{
	const uint8 *side = seen ? gpuds_side_reader_row(&only->side, entry, entry_ahead(scan)) : NULL;
	GpudsKeyBytes bytes[GPUDS_KEY_MAX_COLUMNS];
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];
	bool has_nulls;

	has_nulls = gpuds_key_decode(layout, entry, side, bytes, values, isnull);
	scan->xs_itup = has_nulls || layout->varying
						? form_other(only, scan->xs_itupdesc, values, isnull, has_nulls)
						: form_full(only, scan->xs_itupdesc, values, isnull);
	scan->xs_itup->t_tid = scan->xs_heaptid;
	gpuds_visible_forget_row(&only->visible);
}

/* Lets pages go. */
void
gpuds_index_only_reset(GpudsIndexOnly *only)
{
	gpuds_visible_reset(&only->visible);
}

/* Frees all, and releases the pages of the visibility map. */
void
gpuds_index_only_end(GpudsIndexOnly *only)
{
	gpuds_visible_end(&only->visible);
	MemoryContextDelete(only->context);
	pfree(only);
}
