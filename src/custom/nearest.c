/*-------------------------------------------------------------------------
 *
 * nearest.c
 *	  GpudsNearest: rows of a table by the distances of their points from one.
 *
 * The node asks the index for the points of a circle, and then of one ring around it after the other.  Each
 * point is in one of them, by its distance as core computes it: so those of a ring are sorted, and given,
 * before the next ring is asked for.  The last ring has no end.  Behind it are NULLs, whose distance is one.
 * A ring of too many points is asked for once more, with an end among those that it has given.
 *
 * The first circle is as large as it has to be for as many points as are likely to be wanted, by those that
 * are next to the center in Z-order.  Rings become larger, and the more so the fewer points there were.
 *
 * If there are none in the first circle, or few of the entries near a ring are in it, points are not where
 * those next to the center in Z-order say.  Then the others are found in squares (nearest_squares.c), which
 * takes more requests for near points, but not for far ones.
 *
 * Rows are looked up one by one, when they are wanted.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <float.h>
#include <math.h>

#include "access/relscan.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "pgstat.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "custom/custom.h"
#include "custom/nearest.h"
#include "custom/nearest_squares.h"
#include "index/index.h"
#include "reader/reader.h"
#include "reader/visible.h"

/* Rings beyond this have no end. */
#define FARTHEST 1e300

/* So many times the radius of what is within it has a ring, by how many points are still wanted. */
#define LEAST_GROWTH 1.5
#define MOST_GROWTH 4.0

/* Where none of the first points is near, the first circle is so many times smaller than they say. */
#define FAR_SHARE 64

/* Of fewer points it is chance how near they are; more say nothing new. */
#define LEAST_SAMPLE 4
#define MOST_SAMPLE 256

/* Points of a ring, at most, for each that is wanted, and at least. */
#define MOST_OF_WANTED 4
#define LEAST_OF_RING 4096

/* Entries that are read, at most, for so few points of a ring.  Most of its squares is elsewhere then. */
#define MOST_READ 4

/* Later rings may have more, up to this or what work_mem holds. */
#define MOST_OF_RING (1024 * 1024)

typedef enum NearestStage
{
	NEAREST_BEGIN,   /* nothing has been asked */
	NEAREST_RINGS,   /* the next ring, then its points */
	NEAREST_SQUARES, /* the next points in squares of Z-order */
	NEAREST_NULLS,   /* those that are NULL */
	NEAREST_END      /* the last points */
} NearestStage;

typedef struct GpudsNearestState
{
	CustomScanState css;
	ExprState *center;
	Oid index_oid;
	int64 wanted;
	Relation index;     /* NULL: nothing will be executed */
	IndexScanDesc scan; /* NULL: no row has been asked for */
	GpudsKeyLayout layout;
	NearestStage stage;
	GpudsNear near; /* the center, and the ring at hand or the next one */
	bool is_null;   /* there is no center: all distances are NULL */
	int64 found;    /* points in the rings before */
	double growth;  /* of the radius; of empty rings it is squared each time */

	GpudsNearPoint *items; /* the ring's, with room for size */
	int64 most;            /* of those that differ in their distances */
	int64 size;
	GpudsSquares *squares; /* NULL: none are asked for */

	const GpudsNearPoint *points; /* the ring's, sorted, or some of the squares' */
	int64 n;
	int64 at; /* point to look up */

	uint64 fetches; /* rows that were looked up, over rescans */
	GpudsNodeCounters counters;
} GpudsNearestState;

/* The distance of an entry's point; 0 if there is no center. */
static double
distance_of(const GpudsNearestState *state, const GpudsEntry *entry)
{
	return state->is_null ? 0 : gpuds_near_distance(&state->near, &state->layout, entry);
}

static void
add_item(GpudsNearestState *state, double distance, const GpudsEntry *entry)
{
	if (state->n == state->size)
	{
		state->size = Max(2 * state->size, 1024);
		if (state->items)
			state->items = repalloc_huge(state->items, state->size * sizeof(GpudsNearPoint));
		else
			state->items = MemoryContextAllocHuge(state->css.ss.ps.state->es_query_cxt,
												  state->size * sizeof(GpudsNearPoint));
	}
	state->items[state->n].distance = distance;
	state->items[state->n++].tid = entry->t & ENTRY_TID_MASK;
}

/* Adds the points next to the center in Z-order, on one side. */
static void
add_side(GpudsNearestState *state, GpudsNearPart part)
{
	const bool forward = (part == GPUDS_NEAR_FROM) != state->layout.column[0].descending;
	const int64 most = Min(state->wanted, MOST_SAMPLE);
	const int64 end = state->n + most;

	state->near.part = part;
	state->near.hint = true;
	gpuds_scan_set_near(state->scan, &state->layout, &state->near);
	gpuds_scan_begin_skip(state->scan, (double) most, forward);
	while (state->n < end && gpuds_scan_has_more(state->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(state->scan, end - state->n, &batch);
		for (int64 i = 0; i < batch.n; i++)
			add_item(state, distance_of(state, &batch.entries[i]), &batch.entries[i]);
	}
}

/*
 * A first circle, in which there should be as many points as are wanted.  Those next to the center in Z-order
 * are some of the points near it: so many of them within a distance say that there are as many at least.
 */
static double
first_radius(GpudsNearestState *state)
{
	double radius = get_float8_infinity();

	add_side(state, GPUDS_NEAR_FROM);
	add_side(state, GPUDS_NEAR_UP_TO);
	gpuds_near_points_sort(state->items, state->n);
	for (int64 i = Min(LEAST_SAMPLE, state->n) - 1; i >= 0 && i < Min(state->wanted, state->n); i++)
	{
		const double distance = state->items[i].distance;

		if (!isnan(distance))
			radius = Min(radius, distance * sqrt((double) state->wanted / (double) (i + 1)));
	}
	/* Across the bounds of large squares of Z-order there may be others that are much nearer. */
	if (state->n > 0 && state->items[0].distance > radius / 2)
		radius /= FAR_SHARE;
	state->n = 0;
	return radius;
}

/* Forgets the squares, if there are some. */
static void
end_squares(GpudsNearestState *state)
{
	if (state->squares)
		gpuds_squares_end(state->squares);
	state->squares = NULL;
}

/* Goes on with squares of Z-order, behind the rings that have been given. */
static void
begin_squares(GpudsNearestState *state)
{
	state->squares = gpuds_squares_begin(state->scan, &state->layout, &state->near,
										 state->css.ss.ps.state->es_query_cxt);
	state->n = 0;
	state->stage = NEAREST_SQUARES;
}

/* Has a center distances from points that are finite? */
static bool
has_squares(const GpudsNearestState *state)
{
	return !state->is_null && isfinite(state->near.center.x) && isfinite(state->near.center.y);
}

/*
 * Begins with the center as it is, and finds the first circle.  For SERIALIZABLE there are squares from the
 * beginning: it takes locks on a few of them, and a ring is more than that.
 */
static void
begin_rings(GpudsNearestState *state)
{
	ExprContext *context = state->css.ss.ps.ps_ExprContext;
	Datum center;

	ResetExprContext(context);
	center = ExecEvalExprSwitchContext(state->center, context, &state->is_null);
	state->near.inner = -1;
	state->near.outer = get_float8_infinity();
	state->found = 0;
	state->growth = LEAST_GROWTH;
	state->stage = NEAREST_RINGS;
	state->n = state->at = 0;
	end_squares(state);
	state->most = Max(MOST_OF_WANTED * state->wanted, LEAST_OF_RING);
	memset(&state->near.center, 0, sizeof(Point));
	if (state->is_null)
		return;
	state->near.center = *DatumGetPointP(center);
	if (!has_squares(state))
		return;
	if (IsolationIsSerializable())
		begin_squares(state);
	else
		state->near.outer = first_radius(state);
}

/* What a later ring may have after one that was too large. */
static int64
next_most(const GpudsNearestState *state)
{
	const int64 held = (int64) work_mem * 1024 / (int64) sizeof(GpudsNearPoint);

	return Max(state->most, Min(2 * state->most, Max(held, MOST_OF_RING)));
}

/*
 * Has a ring of too many points end where there should be enough of them; false: it cannot, as they are
 * equally far.
 */
static bool
shrink_ring(GpudsNearestState *state)
{
	double outer;

	gpuds_near_points_sort(state->items, state->n);
	outer = state->items[state->n / MOST_OF_WANTED].distance;
	if (!isfinite(outer) || outer == state->items[state->n - 1].distance)
		return false;
	state->near.outer = outer;
	return true;
}

/* Adds an entry if it is in the part at hand. */
static void
add_if_within(GpudsNearestState *state, const GpudsEntry *entry)
{
	double distance;

	if (state->near.part == GPUDS_NEAR_NULL)
	{
		add_item(state, 0, entry);
		return;
	}
	distance = distance_of(state, entry);
	/* NaN is beyond all, and within the ring that has no end */
	if (!(distance <= state->near.inner) && (isinf(state->near.outer) || distance <= state->near.outer))
		add_item(state, distance, entry);
}

/*
 * Gets the points of the part at hand, or begins with squares, if most entries are of other points; false: it
 * has become smaller.
 */
static bool
read_part(GpudsNearestState *state)
{
	int64 read = 0;

	state->n = state->at = 0;
	state->near.hint = false;
	gpuds_scan_set_near(state->scan, &state->layout, &state->near);
	gpuds_scan_begin_batches(state->scan, 0);
	while (gpuds_scan_has_more(state->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(state->scan, GPUDS_PIECE_ENTRIES, &batch);
		for (int64 i = 0; i < batch.n; i++)
		{
			add_if_within(state, &batch.entries[i]);
			if (state->n < state->most)
				continue;
			if (shrink_ring(state))
				return false;
			state->most *= 2;
		}
		read += batch.n;
		if (read > MOST_READ * state->most && state->near.part == GPUDS_NEAR_RING && has_squares(state))
		{
			begin_squares(state);
			return true;
		}
	}
	return true;
}

/* Gets the points of a part of the index, in their order. */
static void
collect(GpudsNearestState *state, GpudsNearPart part)
{
	const double outer = state->near.outer;

	state->near.part = part;
	while (!read_part(state))
		;
	gpuds_near_points_sort(state->items, state->n);
	state->points = state->items;
	if (state->near.outer < outer)
		state->most = next_most(state);
	gpuds_scan_note_matches(state->scan, state->n, 0);
}

/* How far the next ring goes: farther than the one at hand. */
static double
next_radius(GpudsNearestState *state)
{
	const GpudsNear *near = &state->near;
	const double least = (fabs(near->center.x) + fabs(near->center.y)) * DBL_EPSILON + DBL_MIN;
	double radius;

	if (state->n == 0)
		state->growth *= state->growth;
	else
		state->growth = Max(LEAST_GROWTH,
							Min(MOST_GROWTH, sqrt((double) state->wanted / (double) state->found)));
	radius = near->outer * state->growth;
	radius = Max(radius, near->outer < least ? LEAST_GROWTH * least : 0);
	return radius <= FARTHEST ? radius : get_float8_infinity();
}

/* Goes on to the ring around those so far. */
static void
next_ring(GpudsNearestState *state)
{
	GpudsNear *near = &state->near;
	double radius;

	if (isinf(near->outer))
	{
		state->stage = NEAREST_NULLS;
		return;
	}
	state->found += state->n;
	if (state->found == 0 && has_squares(state))
	{
		begin_squares(state);
		return;
	}
	radius = next_radius(state);
	near->inner = near->outer;
	near->outer = radius;
}

/* Gets the next points in squares. */
static void
collect_of_squares(GpudsNearestState *state)
{
	state->at = 0;
	state->n = gpuds_squares_next(state->squares, &state->points);
	if (state->n == 0)
		state->stage = NEAREST_NULLS;
	gpuds_scan_note_matches(state->scan, state->n, 0);
}

/* Gets the next points; false: there are no more. */
static bool
get_items(GpudsNearestState *state)
{
	switch (state->stage)
	{
		case NEAREST_BEGIN:
			begin_rings(state);
			return true;
		case NEAREST_RINGS:
			collect(state, GPUDS_NEAR_RING);
			if (state->stage == NEAREST_RINGS)
				next_ring(state);
			return true;
		case NEAREST_SQUARES:
			collect_of_squares(state);
			return true;
		case NEAREST_NULLS:
			collect(state, GPUDS_NEAR_NULL);
			state->stage = NEAREST_END;
			return true;
		case NEAREST_END:
			break;
	}
	return false;
}

/* Does the snapshot see a row at a TID?  It is in the slot then. */
static bool
look_up(GpudsNearestState *state, uint64 tid, TupleTableSlot *slot)
{
	IndexScanDesc scan = state->scan;
	ItemPointerData at;
	bool again = false;

	CHECK_FOR_INTERRUPTS();
	ItemPointerSet(&at, (BlockNumber) (tid >> 16), (OffsetNumber) (tid & 0xFFFF));
	state->fetches++;
	if (!table_index_fetch_tuple(scan->xs_heapfetch, &at, scan->xs_snapshot, slot, &again, NULL))
		return false;
	pgstat_count_heap_fetch(scan->indexRelation);
	return true;
}

/* Begins the scan, if nobody has.  Only then, as in core's nodes, there are locks for SERIALIZABLE. */
static void
begin_scan(GpudsNearestState *state)
{
	EState *estate = state->css.ss.ps.state;
	MemoryContext old;

	if (state->scan)
		return;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	state->scan = gpuds_begin_scan(state->css.ss.ss_currentRelation, state->index, estate->es_snapshot, 0,
								   GpudsQueryReadsOnly(estate, ((Scan *) state->css.ss.ps.plan)->scanrelid));
	MemoryContextSwitchTo(old);
}

static TupleTableSlot *
next(ScanState *ss)
{
	GpudsNearestState *state = (GpudsNearestState *) ss;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;

	begin_scan(state);
	do
	{
		while (state->at < state->n)
		{
			if (look_up(state, state->points[state->at++].tid, slot))
				return slot;
		}
		CHECK_FOR_INTERRUPTS();
	} while (get_items(state));
	table_index_fetch_reset(state->scan->xs_heapfetch);
	return ExecClearTuple(slot);
}

/* A row that a statement looks at once more is one that the node has given: it has no conditions. */
static bool
recheck(ScanState *ss, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec(CustomScanState *css)
{
	return ExecScan(&css->ss, next, recheck);
}

static void
begin(CustomScanState *css, EState *estate, int eflags)
{
	GpudsNearestState *state = (GpudsNearestState *) css;
	const CustomScan *plan = (const CustomScan *) css->ss.ps.plan;

	gpuds_use_slot_of_table(css, estate);
	/* Core would evaluate the distance, and ask first. */
	gpuds_check_execute(list_nth(plan->custom_exprs, NEAREST_DISTANCE));
	state->center = ExecInitExpr(list_nth(plan->custom_exprs, NEAREST_CENTER), &css->ss.ps);
	state->index_oid = linitial_oid(list_nth(plan->custom_private, NEAREST_INDEX));
	state->wanted = linitial_int(list_nth(plan->custom_private, NEAREST_WANTED));
	(void) gpuds_open_for_node(estate, plan->scan.scanrelid, state->index_oid, eflags, &state->index);
	if (state->index)
		state->layout = gpuds_index_info(state->index)->layout;
}

static void
end(CustomScanState *css)
{
	GpudsNearestState *state = (GpudsNearestState *) css;

	end_squares(state);
	if (state->scan)
		index_endscan(state->scan);
	if (state->index)
		index_close(state->index, NoLock);
}

static void
rescan(CustomScanState *css)
{
	GpudsNearestState *state = (GpudsNearestState *) css;

	state->stage = NEAREST_BEGIN;
	state->n = state->at = 0;
	if (state->scan)
		table_index_fetch_reset(state->scan->xs_heapfetch);
	ExecScanReScan(&css->ss);
}

static void
explain(CustomScanState *css, List *ancestors, ExplainState *es)
{
	const GpudsNearestState *state = (const GpudsNearestState *) css;
	CustomScan *plan = (CustomScan *) css->ss.ps.plan;
	List *context = set_deparse_context_plan(es->deparse_cxt, &plan->scan.plan, ancestors);

	ExplainPropertyText("Index Name", get_rel_name(state->index_oid), es);
	ExplainPropertyText("Order By",
						deparse_expression(list_nth(plan->custom_exprs, NEAREST_DISTANCE), context,
										   es->verbose, false),
						es);
	if (es->analyze)
	{
		GpudsScanCounters own = { 0 };

		if (state->scan)
			own = *gpuds_scan_counters(state->scan);
		own.fetches = state->fetches;
		gpuds_explain_counters(&state->counters, &own, &css->ss.ps, es);
	}
}

static const CustomExecMethods exec_methods = {
	.CustomName = "GpudsNearest",
	.BeginCustomScan = begin,
	.ExecCustomScan = exec,
	.EndCustomScan = end,
	.ReScanCustomScan = rescan,
	.ExplainCustomScan = explain,
};

static Node *
create_state(CustomScan *plan)
{
	GpudsNearestState *state = (GpudsNearestState *) newNode(sizeof(GpudsNearestState), T_CustomScanState);

	state->css.methods = &exec_methods;
	return (Node *) state;
}

const CustomScanMethods gpuds_nearest_methods = {
	.CustomName = "GpudsNearest",
	.CreateCustomScanState = create_state,
};
