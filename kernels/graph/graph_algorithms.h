/*-------------------------------------------------------------------------
 *
 * graph_algorithms.h
 *	  Algorithms on a whole graph: degrees, components, triangles, PageRank.
 *
 * A caller gives the edges of a directed graph, as pairs of numbers of vertices, in batches, and then asks
 * for an answer.  Vertices are numbered from 0 on, without gaps; there are fewer than 2^32 - 1 of them.
 * Edges may come in any order; those of one source had better follow each other.
 *
 * All memory comes from the caller's GraphHost, and nothing else is held: so its functions may leave by
 * longjmp if the caller frees the memory itself.  A function that returns false or NULL has put the reason
 * into host->status; what it was called for is of no more use then, and what it has allocated is the
 * caller's to free.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_GRAPH_ALGORITHMS_H
#define KERNELS_GRAPH_ALGORITHMS_H

#include "kernels/core/entry.h"

/* The names are the library's own. */
#pragma GCC visibility push(hidden)

typedef enum GraphStatus
{
	GRAPH_OK = 0,
	GRAPH_NO_MEMORY, /* the host gave none */
	GRAPH_STOPPED    /* the host wants no answer any more */
} GraphStatus;

/* What a caller provides. */
typedef struct GraphHost
{
	/* Changes the size of a piece of memory, or makes one of NULL; NULL: the old piece stays. */
	void *(*resize)(void *context, void *memory, size_t bytes);
	void (*release)(void *context, void *memory);
	/* Called every few milliseconds; false: stop. */
	bool (*proceed)(void *context);
	void *context;
	GraphStatus status;
} GraphHost;

/* Steps of an algorithm, an edge looked at for example, between two calls of proceed. */
#define GRAPH_STEPS (INT64_C(1) << 21)

/* graph_memory.c */
extern void *graph_grow(GraphHost *host, void *array, uint64_t *size, uint64_t n, size_t width);
extern void *graph_allocate(GraphHost *host, uint64_t n, size_t width, bool zeroed);
extern bool graph_step(GraphHost *host, int64_t *steps, int64_t done);

/* graph_degrees.c */

/* How many edges begin and end at each vertex.  An edge to its own source does both. */
typedef struct GraphDegrees
{
	uint64_t *out; /* by number */
	uint64_t *in;
	uint64_t nout; /* elements that there are */
	uint64_t nin;
} GraphDegrees;

extern bool graph_degrees_add(GraphHost *host, GraphDegrees *degrees, uint32_t nvertices, const uint32_t *src,
							  const uint32_t *dst, int64_t n);

/* graph_components.c */

/* Weakly connected components: a forest, in which the vertices of a tree are connected. */
typedef struct GraphComponents
{
	uint32_t *parent; /* by number; a root is its own */
	uint64_t size;    /* elements that there is room for */
	uint32_t n;       /* elements that there are */
} GraphComponents;

extern bool graph_components_add(GraphHost *host, GraphComponents *components, uint32_t nvertices,
								 const uint32_t *src, const uint32_t *dst, int64_t n);

extern uint32_t *graph_components_least(GraphHost *host, GraphComponents *components, const uint64_t *codes,
										int words);

/* graph_edges.c */

/* Edges in rows of one source. */
typedef struct GraphRow
{
	uint64_t end; /* of its edges; they begin where those of the row before end */
	uint32_t source;
} GraphRow;

typedef struct GraphEdges
{
	uint32_t *targets; /* of all edges, in the order of their arrival */
	uint64_t n;
	uint64_t size; /* targets that there is room for */
	GraphRow *rows;
	uint64_t nrows;
	uint64_t rows_size;
} GraphEdges;

extern bool graph_edges_add(GraphHost *host, GraphEdges *edges, const uint32_t *src, const uint32_t *dst,
							int64_t n);
extern void graph_edges_release(GraphHost *host, GraphEdges *edges);

/* The row's first edge. */
static inline uint64_t
graph_row_begin(const GraphEdges *edges, uint64_t row)
{
	return row == 0 ? 0 : edges->rows[row - 1].end;
}

/* graph_lists.c */

/*
 * The undirected simple graph: vertices are ranks, from 0 on, and that of r has an edge to each of
 * members[begin[r]] to members[end[r] - 1], which ascend and are greater than r.
 */
typedef struct GraphLists
{
	uint64_t *begin;
	uint64_t *end;
	uint32_t *members;
} GraphLists;

extern uint32_t *graph_rank_vertices(GraphHost *host, uint32_t n, const GraphEdges *edges);
extern bool graph_lists_make(GraphHost *host, uint32_t n, GraphEdges *edges, const uint32_t *rank,
							 GraphLists *lists);
extern void graph_lists_release(GraphHost *host, GraphLists *lists);

/* graph_triangles.c */
extern bool graph_triangles(GraphHost *host, uint32_t nvertices, GraphEdges *edges, uint64_t *total,
							uint64_t *of_vertex);

/* graph_pagerank.c */

typedef struct GraphPagerank
{
	double damping;    /* from 0 to 1 */
	double tolerance;  /* sum of differences at which to stop */
	int64_t most;      /* iterations */
	int64_t done;      /* iterations that were made */
	double difference; /* of the last one */
} GraphPagerank;

extern double *graph_pagerank(GraphHost *host, uint32_t nvertices, GraphEdges *edges,
							  GraphPagerank *parameters);

#pragma GCC visibility pop

#endif /* KERNELS_GRAPH_ALGORITHMS_H */
