/*-------------------------------------------------------------------------
 *
 * child_rows.c
 *	  The rows below a custom scan in an order, of which some are skipped.
 *
 * They are those of an index scan of core's making, or of several, one for each child of a table.  Then there
 * is an Append of core's above the scans, which knows what partitions may have rows.  It is not asked for
 * rows: the scans are, and their rows are merged by what the keys of the index have.  Where partitions are
 * in the order of the rows, one scan comes after the other.  Of rows that are equal in the order, those of
 * the scan with the lower number come first, so the order is the same whatever was skipped.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/executor.h"
#include "executor/instrument.h"

#include "custom/child_rows.h"

/* The scan whose row comes first is the greatest of the heap. */
static int
compare(Datum a, Datum b, void *arg)
{
	const GpudsChildRows *rows = arg;
	const int of_a = DatumGetInt32(a);
	const int of_b = DatumGetInt32(b);

	if (entry_less(&rows->keys[of_a], &rows->keys[of_b]))
		return 1;
	if (entry_less(&rows->keys[of_b], &rows->keys[of_a]))
		return -1;
	return of_b - of_a;
}

static bool
is_merged(const GpudsChildRows *rows)
{
	return rows->nscans > 1 && !rows->in_turn;
}

/* Forgets where the rows are. */
static void
reset(GpudsChildRows *rows)
{
	rows->position = rows->of_scan = 0;
	rows->at = 0;
	rows->merges = false;
	if (rows->heap)
		binaryheap_reset(rows->heap);
}

/*
 * For the state of a plan that gpuds_children_in_order has a path of, or of an index scan, before it has
 * given rows; allocated in the current memory context.
 */
void
gpuds_child_rows_begin(GpudsChildRows *rows, PlanState *below, const List *merging)
{
	*rows = (GpudsChildRows){ .below = below, .nscans = 1 };
	if (IsA(below, AppendState))
	{
		rows->nscans = ((AppendState *) below)->as_nplans;
		rows->scans = ((AppendState *) below)->appendplans;
	}
	else
	{
		rows->scans = palloc(sizeof(PlanState *));
		rows->scans[0] = below;
	}
	if (merging != NIL)
	{
		rows->ncolumns = list_nth_int(merging, ROWS_COLUMNS);
		rows->in_turn = list_nth_int(merging, ROWS_IN_TURN) != 0;
	}
	rows->counts = palloc(Max(rows->nscans, 1) * sizeof(int64));
	for (int i = 0; i < rows->nscans; i++)
		rows->counts[i] = -1;
	if (is_merged(rows))
	{
		rows->heap = binaryheap_allocate(rows->nscans, compare, rows);
		rows->slots = palloc0(rows->nscans * sizeof(TupleTableSlot *));
		rows->keys = palloc0(rows->nscans * sizeof(GpudsEntry));
	}
}

/* Has a scan give its next row for the heap; false: it has none. */
static bool
fetch(GpudsChildRows *rows, int i)
{
	rows->slots[i] = ExecProcNode(rows->scans[i]);
	if (TupIsNull(rows->slots[i]))
		return false;
	rows->keys[i] = gpuds_child_scan_key(rows->scans[i], rows->ncolumns);
	return true;
}

static TupleTableSlot *
next_merged(GpudsChildRows *rows)
{
	if (!rows->merges)
	{
		gpuds_child_scan_check_alike(rows->scans, rows->nscans, rows->ncolumns);
		rows->merges = true;
		for (int i = 0; i < rows->nscans; i++)
		{
			if (fetch(rows, i))
				binaryheap_add_unordered(rows->heap, Int32GetDatum(i));
		}
		binaryheap_build(rows->heap);
	}
	else if (!binaryheap_empty(rows->heap))
	{
		const int given = DatumGetInt32(binaryheap_first(rows->heap));

		if (fetch(rows, given))
			binaryheap_replace_first(rows->heap, Int32GetDatum(given));
		else
			(void) binaryheap_remove_first(rows->heap);
	}
	return binaryheap_empty(rows->heap) ? NULL : rows->slots[DatumGetInt32(binaryheap_first(rows->heap))];
}

static TupleTableSlot *
next_in_turn(GpudsChildRows *rows)
{
	for (; rows->at < rows->nscans; rows->at++, rows->of_scan = 0)
	{
		TupleTableSlot *slot = ExecProcNode(rows->scans[rows->at]);

		if (!TupIsNull(slot))
		{
			rows->of_scan++;
			return slot;
		}
	}
	return NULL;
}

/* The next row; NULL: there is none.  The slot is that of a scan, and lasts until the next call. */
TupleTableSlot *
gpuds_child_rows_next(GpudsChildRows *rows)
{
	TupleTableSlot *slot;

	if (!IsA(rows->below, AppendState))
		return ExecProcNode(rows->below);
	gpuds_child_scan_refresh(rows->below);
	if (rows->below->instrument)
		InstrStartNode(rows->below->instrument);
	slot = is_merged(rows) ? next_merged(rows) : next_in_turn(rows);
	if (rows->below->instrument)
		InstrStopNode(rows->below->instrument, TupIsNull(slot) ? 0 : 1);
	rows->position += !TupIsNull(slot);
	return slot;
}

/* Rows of the scan that is at hand, as many as are left of it. */
static int64
left_in_scan(GpudsChildRows *rows)
{
	int64 *count = &rows->counts[rows->at];

	/* A count has the scan begin anew. */
	if (*count < 0)
		*count = gpuds_child_scan_count(rows->scans[rows->at], rows->scans[rows->at]->plan->plan_rows);
	return *count - rows->of_scan;
}

/* Skips whole scans, and rows of the one behind them. */
static int64
skip_in_turn(GpudsChildRows *rows, int64 n)
{
	int64 left = n;

	while (left > GPUDS_SKIP_FEW && rows->at < rows->nscans)
	{
		const bool counts = rows->nscans > 1 && (rows->of_scan == 0 || rows->counts[rows->at] >= 0);
		const int64 in_scan = counts ? left_in_scan(rows) : PG_INT64_MAX;

		if (in_scan > left)
		{
			const int64 skipped = gpuds_child_scan_skip(rows->scans[rows->at], left);

			rows->of_scan += skipped;
			return n - left + skipped;
		}
		left -= in_scan;
		rows->at++;
		rows->of_scan = 0;
	}
	return n - left;
}

/* Skips rows that are merged; as scans have given some already, they begin anew. */
static int64
skip_merged(GpudsChildRows *rows, int64 n)
{
	const int64 before = rows->merges ? rows->position : 0;

	if (n <= GPUDS_SKIP_FEW_MERGED)
		return 0;
	gpuds_child_scan_check_alike(rows->scans, rows->nscans, rows->ncolumns);
	if (rows->merges)
	{
		for (int i = 0; i < rows->nscans; i++)
			gpuds_child_scan_restart(rows->scans[i]);
		reset(rows);
		rows->position = before;
	}
	return gpuds_child_scan_skip_merged(rows->scans, rows->nscans, rows->ncolumns, before + n) - before;
}

/*
 * Moves behind n of the next rows, or some less, about all of them; returns how many.  The result may be
 * negative: as many rows are given once more.
 */
int64
gpuds_child_rows_skip(GpudsChildRows *rows, int64 n)
{
	int64 skipped;

	gpuds_child_scan_refresh(rows->below);
	if (!IsA(rows->below, AppendState))
		return gpuds_child_scan_skip(rows->below, n);
	skipped = is_merged(rows) ? skip_merged(rows, n) : skip_in_turn(rows, n);
	rows->position += skipped;
	return skipped;
}

/* Counts all rows, about so many, and begins anew. */
int64
gpuds_child_rows_count(GpudsChildRows *rows, double expected)
{
	int64 sum = 0;

	gpuds_child_scan_refresh(rows->below);
	reset(rows);
	for (int i = 0; i < rows->nscans; i++)
	{
		rows->counts[i] = gpuds_child_scan_count(rows->scans[i], expected / rows->nscans);
		sum += rows->counts[i];
	}
	return sum;
}

/* For ReScan, as gpuds_child_scan_rescan. */
void
gpuds_child_rows_rescan(GpudsChildRows *rows, Bitmapset *changed)
{
	gpuds_child_scan_rescan(rows->below, changed);
	reset(rows);
	for (int i = 0; i < rows->nscans; i++)
		rows->counts[i] = -1;
}

/* What all scans have done. */
GpudsScanCounters
gpuds_child_rows_counters(const GpudsChildRows *rows)
{
	GpudsScanCounters all = { 0 };

	for (int i = 0; i < rows->nscans; i++)
	{
		const GpudsScanCounters of_scan = gpuds_child_scan_counters(rows->scans[i]);

		gpuds_counters_add(&all, &of_scan);
	}
	return all;
}
