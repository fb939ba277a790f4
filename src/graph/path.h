/*-------------------------------------------------------------------------
 *
 * path.h
 *	  Labels of vertices in a search for a shortest path, from one of its ends.
 *
 * A label is the cost of the best path that has been found between the end and the vertex.  It is final if it
 * is less than that of all vertices that are still queued.  A round takes vertices of about the same cost off
 * the queue and follows the edges of all of them; one whose label becomes less later on is queued again.  So
 * a round may be of any size, which only matters for the time.
 *
 * If each edge costs 1, labels come in ascending order: the queue is the vertices in the order of their
 * numbers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_GRAPH_PATH_H
#define GPUDS_GRAPH_PATH_H

#include "graph/graph.h"

/* Arrays that are kept of vertices beside their codes; the last three if edges have weights. */
typedef enum GpudsPathArray
{
	PATH_PARENT, /* the vertex before it on the path, seen from the end; VERTEX_NONE: it is the end */
	PATH_COST,
	PATH_STEP,  /* cost of the edge between both */
	PATH_PLACE, /* in the heap */
	PATH_HEAP,
	PATH_ARRAYS
} GpudsPathArray;

/* A search from one end. */
typedef struct GpudsPathSide
{
	const GpudsGraphIndex *index; /* whose key vertices and weights are of */
	bool weighted;
	GpudsEdges edges[2];
	int nindexes; /* that edges are followed by; 0: none are */
	double max_cost;
	GpudsVertices vertices;
	uint32 labelled; /* vertices whose arrays are set */
	bool broken;     /* a round was not ended: nothing is to be followed any more */

	/* the queue */
	uint32 next;  /* each edge costs 1: the first vertex of it */
	uint32 nheap; /* else */

	/* the round */
	double least; /* the least label of it */
	uint32 *round;
	uint64 *codes;
	int64 nround;
	int64 most_round;

	/* for its width: edges that have been followed, their weights together, and from how many vertices */
	double nedges;
	double weights;
	double nsources;

	/* the piece of edges */
	uint32 *numbers;
	uint32 *improved; /* vertices whose label has become less; several times perhaps */
	int64 nimproved;
} GpudsPathSide;

extern void gpuds_path_side_begin(GpudsPathSide *side, const GpudsGraphIndex *index, int nindexes,
								  const GpudsGraphIndex *const *indexes, double max_cost, size_t memory);
extern void gpuds_path_side_start(GpudsPathSide *side, const uint64 *code);
extern void gpuds_path_side_round(GpudsPathSide *side, double bound);
extern bool gpuds_path_side_next(GpudsPathSide *side);
extern void gpuds_path_side_end(GpudsPathSide *side);

static inline double *
gpuds_path_costs(const GpudsPathSide *side)
{
	return side->vertices.array[PATH_COST];
}

/* What the edge to a vertex from the one before it costs. */
static inline double
gpuds_path_step(const GpudsPathSide *side, uint32 vertex)
{
	return side->weighted ? ((const double *) side->vertices.array[PATH_STEP])[vertex] : 1;
}

/* How many vertices are queued. */
static inline uint32
gpuds_path_queued(const GpudsPathSide *side)
{
	return side->weighted ? side->nheap : side->labelled - side->next;
}

/* The least label of those that are queued; there are some. */
static inline double
gpuds_path_least(const GpudsPathSide *side)
{
	const uint32 first = side->weighted ? ((const uint32 *) side->vertices.array[PATH_HEAP])[0] : side->next;

	return gpuds_path_costs(side)[first];
}

#endif /* GPUDS_GRAPH_PATH_H */
