/*-------------------------------------------------------------------------
 *
 * value_order.c
 *	  The order of an index scan's rows where entries do not tell it (value_order.h).
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "access/stratnum.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "reader/value_order.h"
#include "reader/value_run.h"

#define KEPT_RUNS 2

struct GpudsValueOrder
{
	GpudsRunRows *rows; /* NULL: there has been no run */
	GpudsValueRun *kept[KEPT_RUNS];
	bool valid[KEPT_RUNS];                  /* it has been read by the scan as it is */
	bool fixed[GPUDS_KEY_MAX_COLUMNS];      /* compared with one constant by equality */
	GpudsEntry bits[GPUDS_KEY_MAX_COLUMNS]; /* that entries of a run by a column have in common */

	int run;      /* that the scan stands in; -1: in none */
	bool aligned; /* R1 */
	int mark;     /* that the mark is in; -1: in none */
	bool mark_aligned;
};

static bool
is_equality(const ScanKeyData *key)
{
	return key->sk_strategy == BTEqualStrategyNumber &&
		   (key->sk_flags & (SK_SEARCHARRAY | SK_ISNULL | SK_ROW_HEADER)) == 0;
}

/* Is each text of a scan's rows compared with a constant by equality?  Notes which are. */
static bool
find_fixed(IndexScanDesc scan, const GpudsKeyLayout *layout, bool *fixed)
{
	bool all = true;

	memset(fixed, false, GPUDS_KEY_MAX_COLUMNS * sizeof(bool));
	for (int i = 0; i < scan->numberOfKeys; i++)
		fixed[scan->keyData[i].sk_attno - 1] |= is_equality(&scan->keyData[i]);
	for (int i = 0; i < layout->nkeys; i++)
		all &= fixed[i] || layout->column[i].hash == NULL;
	return all;
}

/* Must rows be put in order, with the keys that a scan has? */
bool
gpuds_value_order_is_needed(IndexScanDesc scan)
{
	const GpudsCursor *cursor = scan->opaque;
	const GpudsKeyLayout *layout = &cursor->info.layout;
	bool fixed[GPUDS_KEY_MAX_COLUMNS];

	return layout->lossy && layout->ordered && !scan->xs_want_itup && IsMVCCSnapshot(scan->xs_snapshot) &&
		   !find_fixed(scan, layout, fixed);
}

/* Makes the order of a scan. */
static GpudsValueOrder *
make_order(const GpudsCursor *cursor)
{
	const GpudsKeyLayout *layout = &cursor->info.layout;
	GpudsValueOrder *order = MemoryContextAllocZero(cursor->ref.delta.context, sizeof(GpudsValueOrder));

	for (int i = 0; i < layout->nkeys; i++)
	{
		if (layout->column[i].hash)
			gpuds_key_run_bits(layout, i, &order->bits[i]);
	}
	return order;
}

/* Prepares for the keys that a scan has got, if rows must be put in order. */
void
gpuds_value_order_restart(IndexScanDesc scan)
{
	GpudsCursor *cursor = scan->opaque;

	cursor->orders = gpuds_value_order_is_needed(scan);
	if (!cursor->orders)
		return;
	if (cursor->order == NULL)
		cursor->order = make_order(cursor);
	(void) find_fixed(scan, &cursor->info.layout, cursor->order->fixed);
	cursor->order->run = cursor->order->mark = -1;
	memset(cursor->order->valid, false, sizeof(cursor->order->valid));
}

/* Does the scan stand in a run? */
bool
gpuds_value_order_in_run(const GpudsCursor *cursor)
{
	return cursor->orders && cursor->order->run >= 0;
}

/* The column by which the current entry is in a run; -1: none. */
static int
run_column(const GpudsCursor *cursor)
{
	const GpudsKeyLayout *layout = &cursor->info.layout;
	int column = -1;

	do
		column = gpuds_key_next_run(layout, &cursor->current, column + 1);
	while (column >= 0 && cursor->order->fixed[column]);
	return column;
}

/* A kept run that has an entry by a column, and not the mark, which would be lost; -1: none. */
static int
find_kept(const GpudsValueOrder *order, int column, const GpudsEntry *entry)
{
	for (int i = 0; i < KEPT_RUNS; i++)
	{
		if (order->valid[i] && i != order->mark && gpuds_value_run_column(order->kept[i]) == column &&
			gpuds_value_run_has(order->kept[i], entry))
			return i;
	}
	return -1;
}

/* Enters a kept run from the side that a direction comes to first. */
static void
enter(GpudsValueOrder *order, int run, bool forward)
{
	gpuds_value_run_rewind(order->kept[run], forward);
	order->run = run;
	order->aligned = false;
}

/* Goes on behind the run. */
static void
leave(GpudsCursor *cursor, bool forward)
{
	GpudsValueOrder *order = cursor->order;

	cursor->current = gpuds_value_run_end_of(order->kept[order->run], forward);
	cursor->place = GPUDS_PLACE_ON;
	order->run = -1;
	if (!order->aligned || cursor->forward != forward)
		gpuds_cursor_from_place(cursor, forward);
}

/* A run by a column that can be filled, with an entry as its first one. */
static int
empty_run(IndexScanDesc scan, GpudsCursor *cursor, int column, const GpudsEntry *first)
{
	GpudsValueOrder *order = cursor->order;
	const int i = order->mark == 0 || (order->valid[0] && !order->valid[1] && order->mark != 1) ? 1 : 0;

	order->valid[i] = false;
	if (order->kept[i] && gpuds_value_run_column(order->kept[i]) != column)
	{
		gpuds_value_run_end(order->kept[i]);
		order->kept[i] = NULL;
	}
	if (order->kept[i] == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(cursor->ref.delta.context);

		if (order->rows == NULL)
			order->rows = gpuds_run_rows_begin(scan, &cursor->info.layout);
		order->kept[i] = gpuds_value_run_begin(order->rows, column);
		MemoryContextSwitchTo(old);
	}
	gpuds_value_run_clear(order->kept[i], first);
	return i;
}

/* Is the current entry of the run that another one is in by a column? */
static inline bool
is_alike(const GpudsCursor *cursor, int column, const GpudsEntry *other)
{
	const GpudsEntry *bits = &cursor->order->bits[column];

	return ((cursor->current.w0 ^ other->w0) & bits->w0) == 0 &&
		   ((cursor->current.w1 ^ other->w1) & bits->w1) == 0 &&
		   ((cursor->current.t ^ other->t) & bits->t) == 0 && run_column(cursor) == column;
}

/* Moves to the next entry if it is of the run that another one is in; else the cursor stays where it is. */
static bool
next_alike(IndexScanDesc scan, GpudsCursor *cursor, int column, const GpudsEntry *other, GpudsNextEntry next)
{
	const GpudsEntry current = cursor->current;

	if (next(scan, cursor))
	{
		if (is_alike(cursor, column, other))
			return true;
		cursor->at--;
	}
	cursor->current = current;
	cursor->place = GPUDS_PLACE_ON;
	return false;
}

/*
 * Moves to the next entry that is not of the run that the scan has just given: what such a run has got since
 * then, no snapshot of ours sees (R4).
 */
static bool
next_other(IndexScanDesc scan, GpudsCursor *cursor, GpudsNextEntry next)
{
	const int column = cursor->place == GPUDS_PLACE_ON ? run_column(cursor) : -1;
	const GpudsEntry given = cursor->current;

	do
	{
		if (!next(scan, cursor))
			return false;
	} while (column >= 0 && is_alike(cursor, column, &given));
	return true;
}

/* Reads the run of an entry by a column, the second one of which is the current entry, and sorts it. */
static void
read_run(IndexScanDesc scan, GpudsCursor *cursor, int column, const GpudsEntry *first, GpudsNextEntry next)
{
	GpudsValueOrder *order = cursor->order;
	const int i = empty_run(scan, cursor, column, first);
	GpudsValueRun *run = order->kept[i];

	gpuds_value_run_add(run, first);
	do
	{
		CHECK_FOR_INTERRUPTS();
		gpuds_value_run_add(run, &cursor->current);
	} while (next_alike(scan, cursor, column, first, next));
	gpuds_value_run_sort(run);
	order->valid[i] = true;
	enter(order, i, cursor->forward);
	order->aligned = true;
}

/*
 * Moves a scan to the entry of its next row in a direction, which is the cursor's unless the scan stands in a
 * run; false: there is none.  next: by which the cursor moves.
 */
bool
gpuds_value_order_next(IndexScanDesc scan, bool forward, GpudsNextEntry next)
{
	GpudsCursor *cursor = scan->opaque;
	GpudsValueOrder *order = cursor->order;

	for (;;)
	{
		GpudsEntry first;
		int column;
		int kept;

		if (order->run >= 0)
		{
			if (gpuds_value_run_next(order->kept[order->run], forward, &cursor->current))
			{
				cursor->place = GPUDS_PLACE_ON;
				return true;
			}
			leave(cursor, forward);
		}
		if (!next_other(scan, cursor, next))
			return false;
		column = run_column(cursor);
		if (column < 0)
			return true;
		kept = find_kept(order, column, &cursor->current);
		first = cursor->current;
		if (kept >= 0)
			enter(order, kept, forward);
		else if (next_alike(scan, cursor, column, &first, next))
			read_run(scan, cursor, column, &first, next);
		else
			return true;
	}
}

/* Notes the scan's place in a run, if it is in one. */
void
gpuds_value_order_mark(GpudsCursor *cursor)
{
	GpudsValueOrder *order = cursor->order;

	if (!cursor->orders)
		return;
	order->mark = order->run;
	order->mark_aligned = order->aligned;
	if (order->run >= 0)
		gpuds_value_run_mark(order->kept[order->run]);
}

/*
 * Goes back to the mark, if that is in a run; false: it is in none.  The cursor has its chunk and its place
 * in it if the chunk is the one that it had then.
 */
bool
gpuds_value_order_restore(GpudsCursor *cursor)
{
	GpudsValueOrder *order = cursor->order;

	if (!cursor->orders)
		return false;
	order->run = order->mark;
	if (order->run < 0)
		return false;
	gpuds_value_run_restore(order->kept[order->run]);
	order->aligned = order->mark_aligned && cursor->mark.chunk_serial == cursor->chunk_serial &&
					 cursor->nchunk > 0;
	if (order->aligned)
		cursor->at = cursor->mark.at;
	return true;
}

/* Frees what the scan's memory context does not. */
void
gpuds_value_order_end(GpudsCursor *cursor)
{
	GpudsValueOrder *order = cursor->order;

	if (order == NULL)
		return;
	for (int i = 0; i < KEPT_RUNS; i++)
	{
		if (order->kept[i])
			gpuds_value_run_end(order->kept[i]);
	}
	if (order->rows)
		gpuds_run_rows_end(order->rows);
	cursor->order = NULL;
}
