/*-------------------------------------------------------------------------
 *
 * nearest_squares.c
 *	  Points by their distances from one, found in squares of Z-order.
 *
 * There is a heap of squares, by the distances that their points have at least, and of runs of points that
 * were found in small ones, by the distance of the next.  The first of the heap is a run: then its next
 * points are next of all.  Or it is a square: then it becomes a run, if it has few points, or its quarters
 * do.  So as many squares are looked at as it takes to come from that of all points to the nearest ones,
 * wherever these are, and no square farther away than the points that are given.
 *
 * For SERIALIZABLE, locks are needed on squares that become runs, those without points among them, and on no
 * others: what is in a square of many points is in its quarters.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xact.h"
#include "lib/pairingheap.h"
#include "miscadmin.h"
#include "utils/float.h"
#include "utils/memutils.h"

#include "custom/nearest_squares.h"
#include "reader/reader.h"
#include "reader/visible.h"

/* Points of a square that becomes a run, at most, if it has quarters. */
#define FEW_POINTS 256

/* No square has so many. */
#define ANY_NUMBER (PG_INT64_MAX / 2)

#define ST_SORT gpuds_near_points_sort
#define ST_ELEMENT_TYPE GpudsNearPoint
#define ST_COMPARE(a, b) float8_cmp_internal((a)->distance, (b)->distance)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE
#define ST_DEFINE
#include "lib/sort_template.h"

/* A square, or a run. */
typedef struct NearNode
{
	pairingheap_node heap;
	double distance; /* of its points, at least */
	GpudsNearSquare square;
	GpudsNearPoint *run; /* ascending; NULL: a square */
	int64 n;
	int64 at; /* the next point */
} NearNode;

struct GpudsSquares
{
	IndexScanDesc scan;
	const GpudsKeyLayout *layout;
	GpudsNear near;        /* the center; points up to inner have been given */
	MemoryContext context; /* of all that follows */
	pairingheap *heap;
	GpudsNearPoint *points; /* of the square that was read last, with room for size */
	int64 n;
	int64 size;
	GpudsNearPoint *given; /* the run that points were given of last, if no others are left of it; or NULL */
};

/* The first one of a pairing heap is the greatest. */
static int
compare_nodes(const pairingheap_node *a, const pairingheap_node *b, void *arg)
{
	return float8_cmp_internal(pairingheap_const_container(NearNode, heap, b)->distance,
							   pairingheap_const_container(NearNode, heap, a)->distance);
}

static void
add_node(GpudsSquares *squares, const NearNode *node)
{
	NearNode *added = MemoryContextAlloc(squares->context, sizeof(NearNode));

	*added = *node;
	pairingheap_add(squares->heap, &added->heap);
}

static void
add_square(GpudsSquares *squares, const GpudsNearSquare *square)
{
	const NearNode node = { .distance = gpuds_near_square_distance(&squares->near.center, square),
							.square = *square };

	add_node(squares, &node);
}

/*
 * Begins with all points of an index but those of rings before: near has the center, which is finite, and
 * inner.  scan and layout must live as long; the memory is a child of context.
 */
GpudsSquares *
gpuds_squares_begin(IndexScanDesc scan, const GpudsKeyLayout *layout, const GpudsNear *near,
					MemoryContext context)
{
	const GpudsNearSquare all = { .bits = 64 };
	MemoryContext own = AllocSetContextCreate(context, "GpudsNearest squares", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(own);
	GpudsSquares *squares = palloc0(sizeof(GpudsSquares));

	squares->scan = scan;
	squares->layout = layout;
	squares->near = *near;
	squares->near.part = GPUDS_NEAR_SQUARE;
	squares->context = own;
	squares->heap = pairingheap_allocate(compare_nodes, NULL);
	squares->size = 2 * FEW_POINTS;
	squares->points = palloc(squares->size * sizeof(GpudsNearPoint));
	MemoryContextSwitchTo(old);
	add_square(squares, &all);
	return squares;
}

static void
add_point(GpudsSquares *squares, const GpudsEntry *entry)
{
	const double distance = gpuds_near_distance(&squares->near, squares->layout, entry);

	if (distance <= squares->near.inner)
		return;
	if (squares->n == squares->size)
	{
		squares->size *= 2;
		squares->points = repalloc_huge(squares->points, squares->size * sizeof(GpudsNearPoint));
	}
	squares->points[squares->n].distance = distance;
	squares->points[squares->n++].tid = entry->t & ENTRY_TID_MASK;
}

/* Reads the points of a square; false: there are more than so many. */
static bool
read_points(GpudsSquares *squares, const GpudsNearSquare *square, int64 most, bool hint)
{
	int64 read = 0;

	squares->n = 0;
	squares->near.square = *square;
	squares->near.hint = hint;
	gpuds_scan_set_near(squares->scan, squares->layout, &squares->near);
	/* One more at once says that there are too many, before a distance is computed */
	gpuds_scan_begin_skip(squares->scan, (double) (FEW_POINTS + 1), true);
	while (gpuds_scan_has_more(squares->scan))
	{
		GpudsScanBatch batch;

		gpuds_scan_next_batch(squares->scan, Min(most + 1 - read, GPUDS_PIECE_ENTRIES), &batch);
		read += batch.n;
		if (read > most)
			return false;
		for (int64 i = 0; i < batch.n; i++)
			add_point(squares, &batch.entries[i]);
	}
	return true;
}

/* Reads a square that is to become a run, with its locks; false: it has too many points. */
static bool
read_square(GpudsSquares *squares, const GpudsNearSquare *square)
{
	const int64 most = square->bits > 0 ? FEW_POINTS : ANY_NUMBER;
	const bool locks = IsolationIsSerializable();

	if (!read_points(squares, square, most, locks))
		return false;
	return !locks || read_points(squares, square, ANY_NUMBER, false);
}

/* Makes a run of the points that have been read. */
static void
add_run(GpudsSquares *squares)
{
	NearNode node = { .n = squares->n };

	if (squares->n == 0)
		return;
	gpuds_near_points_sort(squares->points, squares->n);
	node.run = MemoryContextAllocHuge(squares->context, squares->n * sizeof(GpudsNearPoint));
	memcpy(node.run, squares->points, squares->n * sizeof(GpudsNearPoint));
	node.distance = node.run[0].distance;
	add_node(squares, &node);
}

/* Puts what a square has in its place. */
static void
open_square(GpudsSquares *squares, const GpudsNearSquare *square)
{
	if (read_square(squares, square))
	{
		add_run(squares);
		return;
	}
	for (int i = 0; i < GPUDS_NEAR_QUARTERS; i++)
	{
		GpudsNearSquare quarter;

		gpuds_near_quarter(square, i, &quarter);
		add_square(squares, &quarter);
	}
}

/* Takes from a run, which is not in the heap, the points that are no farther than what else there is. */
static int64
take_points(GpudsSquares *squares, NearNode *node, const GpudsNearPoint **points)
{
	const int64 first = node->at;
	double bound = get_float8_nan(); /* beyond all */
	int64 n;

	if (!pairingheap_is_empty(squares->heap))
		bound = pairingheap_container(NearNode, heap, pairingheap_first(squares->heap))->distance;
	*points = &node->run[first];
	do
		node->at++;
	while (node->at < node->n && float8_cmp_internal(node->run[node->at].distance, bound) <= 0);
	n = node->at - first;
	if (node->at < node->n)
	{
		node->distance = node->run[node->at].distance;
		pairingheap_add(squares->heap, &node->heap);
	}
	else
	{
		squares->given = node->run;
		pfree(node);
	}
	return n;
}

/* The next points, ascending, of which there is one at least; returns how many, or 0 if there are no more. */
int64
gpuds_squares_next(GpudsSquares *squares, const GpudsNearPoint **points)
{
	if (squares->given)
		pfree(squares->given);
	squares->given = NULL;
	while (!pairingheap_is_empty(squares->heap))
	{
		NearNode *node = pairingheap_container(NearNode, heap, pairingheap_remove_first(squares->heap));

		CHECK_FOR_INTERRUPTS();
		if (node->run)
			return take_points(squares, node, points);
		open_square(squares, &node->square);
		pfree(node);
	}
	return 0;
}

void
gpuds_squares_end(GpudsSquares *squares)
{
	MemoryContextDelete(squares->context);
}
