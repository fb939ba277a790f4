/*-------------------------------------------------------------------------
 *
 * graph.h
 *	  Graphs whose edges are rows of a table: what the functions over them share.
 *
 * An index on (source, target) has the edges that lead out of a vertex side by side.  A row is an edge if
 * neither is NULL; equal rows are several edges.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_GRAPH_H
#define GPUDS_GRAPH_H

#include "utils/array.h"

#include "functions/functions.h"
#include "gpuds.h"
#include "kernels/graph/graph_algorithms.h"
#include "kernels/graph/vertex_map.h"
#include "key/edge_key.h"
#include "reader/seen_entries.h"

/* graph_index.c */

/* An index on edges.  It must stay where it is while it is open. */
typedef struct GpudsGraphIndex
{
	GpudsTarget target;
	GpudsEdgeKey key;
	Oid type; /* of vertices */
} GpudsGraphIndex;

extern void gpuds_graph_open(Oid indexid, const char *weight, GpudsGraphIndex *index);
extern void gpuds_graph_open_reverse(Oid indexid, const char *weight, const GpudsGraphIndex *forward,
									 GpudsGraphIndex *index);
extern void gpuds_graph_close(GpudsGraphIndex *index);
extern void gpuds_graph_check_type(const GpudsGraphIndex *index, Oid type);
extern void gpuds_graph_need_reverse(const GpudsGraphIndex *index);
extern uint64 *gpuds_graph_vertices(const GpudsGraphIndex *index, ArrayType *array, int64 *n);

/* The value of a vertex, in *bytes if it is passed by reference. */
static inline Datum
gpuds_graph_vertex(const GpudsGraphIndex *index, const uint64 *code, GpudsKeyBytes *bytes)
{
	return gpuds_vertex_value(index->key.kind, code, bytes);
}

/* edges.c */

/* Vertices whose edges are read at a time, at most. */
#define GPUDS_MOST_SOURCES (64 * 1024)

/* Edges that the snapshot sees, read from an index a piece at a time. */
/* What a search knows of the graph that a device has kept. */
typedef enum GpudsKeptGraph
{
	GPUDS_KEPT_UNKNOWN, /* it has not asked yet */
	GPUDS_KEPT_CHANGED, /* entries have changed since it was made, and it is asked for once more */
	GPUDS_KEPT_TAKEN,   /* it is not to be asked for again */
} GpudsKeptGraph;

typedef struct GpudsEdges
{
	const GpudsGraphIndex *index;
	IndexScanDesc scan;
	GpudsSeenEntries seen;
	MemoryContext context;

	/* the piece */
	GpudsEdgeArrays edges; /* from: places of the sources among the vertices that were asked for */
	uint32 *places;
	int64 n;
	int64 size;

	/* vertices that edges are read of, in the order of the index */
	GpudsKeyProbe probe;
	GpudsEntry *probes; /* with places in place of TIDs */
	GpudsEntry *scratch;
	int64 nprobes; /* -1: all edges are read */
	int64 most_probes;
	int64 at; /* probe of the last entry */

	GpudsKeptGraph kept;
	bool made;      /* a graph has been made of all edges, or it was tried */
	int64 followed; /* by the search at hand */
} GpudsEdges;

extern void gpuds_edges_begin(GpudsEdges *edges, const GpudsGraphIndex *index);
extern void gpuds_edges_of_all(GpudsEdges *edges);
extern void gpuds_edges_of(GpudsEdges *edges, const uint64 *codes, int64 n);
extern bool gpuds_edges_next(GpudsEdges *edges);
extern void gpuds_edges_look_up(GpudsEdges *edges, const GpudsEntry *entries, int64 n);
extern int64 gpuds_edges_in_mirror(const GpudsEdges *edges);
extern bool gpuds_edges_may_take_graph(const GpudsEdges *edges, int64 followed);
extern bool gpuds_edges_may_make_graph(GpudsEdges *edges, int64 followed);
extern void gpuds_edges_begin_graph(GpudsEdges *edges);
extern void gpuds_edges_end(GpudsEdges *edges);

/* device_graph.c */

/* What a graph on a device may be made of. */
typedef enum GpudsGraphSource
{
	GPUDS_GRAPH_OF_KEPT,   /* one that was kept, only */
	GPUDS_GRAPH_OF_ANY,    /* that, or all edges */
	GPUDS_GRAPH_OF_ENTRIES /* all edges, so that equal ones are there as often as in the table */
} GpudsGraphSource;

/* Has a device edges of an index in entries alone, whose vertices are words, and whose weights integers? */
static inline bool
gpuds_edges_fit_device(const GpudsEdges *edges)
{
	const GpudsEdgeKey *key = &edges->index->key;

	return key->words == 1 && !key->side && (!key->weighted || !agg_column_is_float(&key->weight.bits));
}

/* Depths that a device goes at a time. */
#define GPUDS_WALK_DEPTHS 256

/* Uses a graph on a device, which has so many vertices; false: the device has not done what was wanted. */
typedef bool (*GpudsUseGraph)(const GpudsDeviceGraph *graph, int64 vertices, void *arg);

/* Receives what a device has found, a piece at a time; interrupts are the caller's to check. */
typedef void (*GpudsPutItems)(void *arg, const void *items, int64 n);

/* Where a walk is to go on: the codes of vertices that have been reached. */
typedef struct GpudsWalkStart
{
	const uint64 *codes;
	int64 n;
	int64 first; /* edges are to be followed from this one on */
} GpudsWalkStart;

extern bool gpuds_edges_use_device(GpudsEdges *edges, bool both, GpudsGraphSource source, GpudsUseGraph use,
								   void *arg);
extern bool gpuds_device_step(const GpudsDeviceGraph *graph, GpudsGraphStep *step);
extern bool gpuds_device_walk(const GpudsDeviceGraph *graph, const GpudsWalkStart *start, int64 depths,
							  GpudsPutItems put, void *arg);
extern bool gpuds_device_count_walk(const GpudsDeviceGraph *graph, const GpudsWalkStart *start, int64 depths,
									GpudsPutItems put, void *arg);
extern bool gpuds_device_components(const GpudsDeviceGraph *graph, GpudsPutItems put, void *arg);
extern bool gpuds_device_component_sizes(const GpudsDeviceGraph *graph, GpudsPutItems put, void *arg);
extern bool gpuds_device_triangles(const GpudsDeviceGraph *graph, uint64 *total);
extern bool gpuds_device_degrees(const GpudsDeviceGraph *graph, GpudsPutItems put, void *arg);
extern bool gpuds_device_pagerank(const GpudsDeviceGraph *graph, GraphPagerank *parameters, GpudsPutItems put,
								  void *arg);

/* device_path.c */

/* What paths may cost whose cost has no bound. */
#define GPUDS_ANY_COST PG_UINT64_MAX

/*
 * Receives the i-th path: the codes of its vertices, or none if there is no path.  Where edges have weights,
 * there are two words for a vertex: its code, and the integer of what the path to it costs.
 */
typedef void (*GpudsPutPath)(void *arg, int64 i, const uint64 *codes, int64 n);

extern bool gpuds_device_path(const GpudsDeviceGraph *graph, uint64 source, uint64 target, int64 most,
							  GpudsPutPath put, void *arg);
extern bool gpuds_device_route(const GpudsDeviceGraph *graph, uint64 source, uint64 target, uint64 most,
							   GpudsPutPath put, void *arg);
extern bool gpuds_device_paths(const GpudsDeviceGraph *graph, uint64 source, const uint64 *targets, int64 n,
							   int64 most, GpudsPutPath put, void *arg);

/* vertices.c */

/* What is kept of each vertex beside its code, in arrays. */
#define GPUDS_VERTEX_ARRAYS 5

/* The vertices that have been come to, and what is kept of them. */
typedef struct GpudsVertices
{
	VertexMap map;
	int narrays;
	int width[GPUDS_VERTEX_ARRAYS];   /* bytes that each array has of a vertex */
	void *array[GPUDS_VERTEX_ARRAYS]; /* moves when vertices are added */
	size_t memory;                    /* bytes that all may take */
	size_t others;                    /* of these, by what the caller keeps besides */
	MemoryContext context;
} GpudsVertices;

extern void gpuds_vertices_begin(GpudsVertices *vertices, int words, int narrays, const int *width,
								 size_t memory);
extern void gpuds_vertices_add(GpudsVertices *vertices, const uint64 *codes, int64 n, uint32 *numbers);
extern void gpuds_vertices_reset(GpudsVertices *vertices);

static inline const uint64 *
gpuds_vertices_code(const GpudsVertices *vertices, uint32 number)
{
	return vertices->map.codes + number * (size_t) vertices->map.words;
}

#endif /* GPUDS_GRAPH_H */
