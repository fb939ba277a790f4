/*-------------------------------------------------------------------------
 *
 * path_side.c
 *	  Labels of vertices in a search for a shortest path, from one of its ends.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "graph/path.h"
#include "kernels/graph/cost_heap.h"

/* Vertices of a round that there is room for at first. */
#define FIRST_ROUND 64

/*
 * For searches from one end, by edges of these indexes, two at most.  Labels above max_cost are not wanted.
 * memory: what may be kept of vertices.  Allocates in the current memory context.
 */
void
gpuds_path_side_begin(GpudsPathSide *side, const GpudsGraphIndex *index, int nindexes,
					  const GpudsGraphIndex *const *indexes, double max_cost, size_t memory)
{
	static const int widths[PATH_ARRAYS] = {
		[PATH_PARENT] = sizeof(uint32), [PATH_COST] = sizeof(double), [PATH_STEP] = sizeof(double),
		[PATH_PLACE] = sizeof(uint32),  [PATH_HEAP] = sizeof(uint32),
	};

	memset(side, 0, sizeof(*side));
	side->index = index;
	side->weighted = index->key.weighted;
	side->max_cost = max_cost;
	side->nindexes = nindexes;
	for (int i = 0; i < nindexes; i++)
		gpuds_edges_begin(&side->edges[i], indexes[i]);
	gpuds_vertices_begin(&side->vertices, index->key.words, side->weighted ? PATH_ARRAYS : PATH_STEP, widths,
						 memory);
	if (nindexes == 0)
		return;
	side->numbers = palloc(GPUDS_PIECE_ENTRIES * sizeof(uint32));
	side->improved = palloc(GPUDS_PIECE_ENTRIES * sizeof(uint32));
}

/* The heap, until vertices are added. */
static CostHeap
heap_of(GpudsPathSide *side)
{
	CostHeap heap = { side->vertices.array[PATH_HEAP], side->vertices.array[PATH_PLACE],
					  gpuds_path_costs(side), side->nheap };

	return heap;
}

/* Sets what is kept of new vertices: they have no label. */
static void
label_new(GpudsPathSide *side)
{
	const uint32 n = side->vertices.map.n;
	double *costs = gpuds_path_costs(side);

	for (uint32 i = side->labelled; i < n; i++)
	{
		((uint32 *) side->vertices.array[PATH_PARENT])[i] = VERTEX_NONE;
		costs[i] = INFINITY;
		if (side->weighted)
			((uint32 *) side->vertices.array[PATH_PLACE])[i] = COST_HEAP_OUTSIDE;
	}
	side->labelled = n;
}

/* Begins at a vertex, and forgets all others. */
void
gpuds_path_side_start(GpudsPathSide *side, const uint64 *code)
{
	uint32 number;

	gpuds_vertices_reset(&side->vertices);
	side->labelled = side->next = side->nheap = 0;
	side->broken = false;
	gpuds_vertices_add(&side->vertices, code, 1, &number);
	label_new(side);
	gpuds_path_costs(side)[number] = 0;
	if (side->weighted)
	{
		CostHeap heap = heap_of(side);

		cost_heap_add(&heap, number);
		side->nheap = heap.n;
	}
}

/* Makes room for another vertex of the round. */
static void
ensure_round(GpudsPathSide *side)
{
	if (side->nround < side->most_round)
		return;
	side->most_round = Max(FIRST_ROUND, 2 * side->most_round);
	if (side->round)
		side->round = repalloc(side->round, side->most_round * sizeof(uint32));
	else
		side->round = palloc(side->most_round * sizeof(uint32));
}

/* Takes vertices with labels up to a bound off the queue. */
static void
take_round(GpudsPathSide *side, double bound)
{
	CostHeap heap = heap_of(side);

	side->nround = 0;
	while (gpuds_path_queued(side) > 0 && gpuds_path_least(side) <= bound &&
		   side->nround < GPUDS_MOST_SOURCES)
	{
		ensure_round(side);
		side->round[side->nround++] = side->weighted ? cost_heap_take(&heap) : side->next++;
		side->nheap = heap.n;
	}
}

/*
 * How much more than the least label those of a round may be: what an edge costs on the average, divided by
 * how many lead out of a vertex, so that few vertices are queued again.
 */
static double
width_of_round(const GpudsPathSide *side)
{
	double width;

	if (side->nedges == 0)
		return 0;
	width = side->weights / side->nedges * side->nsources / side->nedges;
	return isfinite(width) ? width : 0;
}

/*
 * Begins a round from the vertices of least cost; there are some queued.  bound: those that cost more are not
 * worth it.  gpuds_path_side_next follows the edges.
 */
void
gpuds_path_side_round(GpudsPathSide *side, double bound)
{
	const int words = side->vertices.map.words;

	side->least = gpuds_path_least(side);
	take_round(side, Max(side->least, Min(side->least + width_of_round(side), bound)));
	if (side->codes)
		pfree(side->codes);
	side->codes = palloc(side->nround * words * sizeof(uint64));
	for (int64 i = 0; i < side->nround; i++)
		memcpy(side->codes + i * words, gpuds_vertices_code(&side->vertices, side->round[i]),
			   words * sizeof(uint64));
	side->nsources += (double) side->nround;
	for (int i = 0; i < side->nindexes; i++)
		gpuds_edges_of(&side->edges[i], side->codes, side->nround);
}

static char *
name_of(const GpudsPathSide *side, const uint64 *code)
{
	GpudsKeyBytes bytes;
	Oid output;
	bool varies;

	getTypeOutputInfo(side->index->type, &output, &varies);
	return OidOutputFunctionCall(output, gpuds_graph_vertex(side->index, code, &bytes));
}

/* Raises an error for the weight of an edge, which costs less than nothing, or nobody knows what. */
static void
reject_weight(const GpudsPathSide *side, const GpudsEdges *edges, int64 i)
{
	const int words = side->vertices.map.words;
	const char *what = "negative";

	if (edges->edges.unknown[i])
		what = "null";
	else if (isnan(edges->edges.weights[i]))
		what = "not a number";
	ereport(ERROR,
			(errcode(ERRCODE_DATA_EXCEPTION),
			 errmsg("weight of an edge in index \"%s\" is %s",
					RelationGetRelationName(edges->index->target.index), what),
			 errdetail("The edge is between %s and %s.", name_of(side, edges->edges.sources + i * words),
					   name_of(side, edges->edges.targets + i * words))));
}

/* Raises an error if an edge of the piece has a weight that no path can have, and notes their sum. */
static void
check_weights(GpudsPathSide *side, const GpudsEdges *edges)
{
	for (int64 i = 0; i < edges->n; i++)
	{
		if (unlikely(edges->edges.unknown[i] || !(edges->edges.weights[i] >= 0)))
			reject_weight(side, edges, i);
		side->weights += edges->edges.weights[i];
	}
}

/* Labels the targets of the piece's edges. */
static void
label_targets(GpudsPathSide *side, const GpudsEdges *edges)
{
	double *costs = gpuds_path_costs(side);
	uint32 *parents = side->vertices.array[PATH_PARENT];
	double *steps = side->vertices.array[PATH_STEP];
	CostHeap heap = heap_of(side);

	for (int64 i = 0; i < edges->n; i++)
	{
		const uint32 source = side->round[edges->edges.from[i]];
		const uint32 target = side->numbers[i];
		const double step = side->weighted ? edges->edges.weights[i] : 1;
		const double cost = costs[source] + step;

		if (!(cost < costs[target]) || cost > side->max_cost)
			continue;
		costs[target] = cost;
		parents[target] = source;
		side->improved[side->nimproved++] = target;
		if (!side->weighted)
			continue;
		steps[target] = step;
		cost_heap_add(&heap, target);
	}
	side->nheap = heap.n;
}

/* Follows the round's next edges; false: it has no more. */
bool
gpuds_path_side_next(GpudsPathSide *side)
{
	for (int i = 0; i < side->nindexes; i++)
	{
		GpudsEdges *edges = &side->edges[i];

		if (!gpuds_edges_next(edges))
			continue;
		side->nimproved = 0;
		if (side->weighted)
			check_weights(side, edges);
		side->nedges += (double) edges->n;
		gpuds_vertices_add(&side->vertices, edges->edges.targets, edges->n, side->numbers);
		label_new(side);
		label_targets(side, edges);
		return true;
	}
	return false;
}

/* Ends the searches. */
void
gpuds_path_side_end(GpudsPathSide *side)
{
	for (int i = 0; i < side->nindexes; i++)
		gpuds_edges_end(&side->edges[i]);
}
