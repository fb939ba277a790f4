/*-------------------------------------------------------------------------
 *
 * index_only.c
 *	  Index-only scans: rows made of entries, and the interlock with VACUUM.
 *
 * Core shows the row of an entry without a visit to the heap if the visibility map calls the
 * row's page all-visible.  That may be wrong for an entry whose row was dead when the scan
 * began: VACUUM removes the row between probe and look at the map, and calls the page
 * all-visible thereafter.  nbtree keeps VACUUM waiting for the scan's pin on a leaf.  Here nobody
 * waits.  VACUUM counts: the counter of bulk deletes moves when the row's tombstone has been appended
 * and before the page can become all-visible.  A scan reads the counter before its barrier,
 * looks at the map itself, and reads the counter again:
 *
 *	  I1	If the map calls a page all-visible, and then the counter is what it was before
 *			the barrier, then the row of each entry that the scan was given is visible to all.
 *
 *			Else the entry's row is gone or dead.  A page with such a row, or with what VACUUM's first
 *			pass leaves of it, is not all-visible; so VACUUM has been through with it.  Its
 *			bulk delete either counted after the barrier, which the second reading shows, or
 *			before the barrier, and then the entry's tombstone was there for the scan to find.
 *
 * All other entries are looked up in the heap here, with the scan's snapshot, and dropped if
 * it does not see them.  The look at the map that core takes later can do no harm: a row that an
 * MVCC snapshot sees is not removed, and its TID not given away, while the snapshot lives.
 *
 * On a standby nobody counts, and entries of the journal (mirror/fallback.c) may be older than
 * the barrier: there every row is looked up.  So it is where snapshots expire, and VACUUM removes
 * rows that they see.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/htup_details.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "journal/journal.h"

struct GpudsIndexOnly
{
	bool counts;         /* the counter means something */
	uint64 bulk_deletes; /* as of the barrier */
	Buffer map;          /* page of the visibility map, pinned, or invalid */
	TupleTableSlot *slot;
	IndexTuple full;       /* room for a row without NULLs, made again and again */
	Size full_data;        /* bytes of its columns */
	IndexTuple with_nulls; /* the last row that had some, or NULL */
	MemoryContext context; /* of both */
};

/* amcanreturn: is a column's value in the index? */
bool
gpuds_can_return(Relation index, int column)
{
	Oid type = index->rd_opcintype[column - 1];

	if (type == ANYENUMOID)
		type = TupleDescAttr(RelationGetDescr(index), column - 1)->atttypid;
	return gpuds_key_is_exact(type);
}

/*
 * For a scan that is to return rows, allocated in the current memory context.
 */
GpudsIndexOnly *
gpuds_index_only_begin(IndexScanDesc scan)
{
	GpudsIndexOnly *only = palloc0(sizeof(GpudsIndexOnly));

	only->map = InvalidBuffer;
	only->slot = table_slot_create(scan->heapRelation, NULL);
	only->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds index-only scan",
										  ALLOCSET_SMALL_SIZES);
	return only;
}

/* To be called before the scan's barrier. */
void
gpuds_index_only_before_barrier(GpudsIndexOnly *only, IndexScanDesc scan)
{
	only->counts = !RecoveryInProgress() && !GpudsSnapshotsExpire();
	only->bulk_deletes = gpuds_journal_bulk_deletes(scan->indexRelation);
}

/* I1 for the page of a TID: is its row visible to all? */
static bool
visible_to_all(GpudsIndexOnly *only, IndexScanDesc scan, ItemPointer tid)
{
	/* The entry was read before the map, the map before the counter. */
	pg_read_barrier();
	return VM_ALL_VISIBLE(scan->heapRelation, ItemPointerGetBlockNumber(tid), &only->map) &&
		   gpuds_journal_bulk_deletes(scan->indexRelation) == only->bulk_deletes;
}

/* Does the heap have a row at a TID that the scan's snapshot sees?  *dead: it is dead for everybody. */
static bool
seen_in_heap(GpudsIndexOnly *only, IndexScanDesc scan, ItemPointer tid, bool *dead)
{
	ItemPointerData at = *tid;
	bool again = false;
	bool seen = table_index_fetch_tuple(scan->xs_heapfetch, &at, scan->xs_snapshot, only->slot, &again, dead);

	/* An MVCC snapshot sees one row of a chain at most, and core asks for no other here. */
	ExecClearTuple(only->slot);
	return seen;
}

/*
 * Does the scan's snapshot see the row of scan->xs_heaptid, whatever core will find in the
 * visibility map?  from_mirror: the entry is not of the journal.  *dead: the row is dead for everybody.
 */
bool
gpuds_index_only_sees(GpudsIndexOnly *only, IndexScanDesc scan, bool from_mirror, bool *dead)
{
	*dead = false;
	if (only->counts && from_mirror && visible_to_all(only, scan, &scan->xs_heaptid))
		return true;
	CHECK_FOR_INTERRUPTS();
	return seen_in_heap(only, scan, &scan->xs_heaptid, dead);
}

/*
 * A row without NULLs.  All types that are keys have a fixed length, so all these rows have
 * the same size, and need no allocation.
 */
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

static IndexTuple
form_with_nulls(GpudsIndexOnly *only, TupleDesc desc, Datum *values, bool *isnull)
{
	MemoryContext old = MemoryContextSwitchTo(only->context);

	if (only->with_nulls)
		pfree(only->with_nulls);
	only->with_nulls = index_form_tuple(desc, values, isnull);
	MemoryContextSwitchTo(old);
	return only->with_nulls;
}

/* Sets scan->xs_itup to an entry's row, which lasts until the next one. */
void
gpuds_index_only_return(GpudsIndexOnly *only, IndexScanDesc scan, const GpudsKeyLayout *layout,
						const GpudsEntry *entry)
{
	GpudsKeyRoom rooms[GPUDS_KEY_MAX_COLUMNS];
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];
	bool has_nulls;

	has_nulls = gpuds_key_decode(layout, entry, rooms, values, isnull);
	scan->xs_itup = (has_nulls ? form_with_nulls : form_full)(only, scan->xs_itupdesc, values, isnull);
	scan->xs_itup->t_tid = scan->xs_heaptid;
}

/* Lets pages go. */
void
gpuds_index_only_reset(GpudsIndexOnly *only)
{
	if (BufferIsValid(only->map))
		ReleaseBuffer(only->map);
	only->map = InvalidBuffer;
}

void
gpuds_index_only_end(GpudsIndexOnly *only)
{
	gpuds_index_only_reset(only);
	ExecDropSingleTupleTableSlot(only->slot);
	MemoryContextDelete(only->context);
	pfree(only);
}
