/*-------------------------------------------------------------------------
 *
 * whole_graph.h
 *	  What the functions share that look at all edges of a graph.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_WHOLE_GRAPH_H
#define GPUDS_WHOLE_GRAPH_H

#include "fmgr.h"
#include "funcapi.h"

#include "graph/graph.h"
#include "kernels/graph/graph_algorithms.h"

/* A graph whose edges are all read.  It must stay where it is. */
typedef struct GpudsWholeGraph
{
	GpudsGraphIndex index;
	GpudsVertices vertices;
	GraphHost host;        /* gives memory for algorithms, or raises an error */
	size_t memory;         /* bytes that all may take */
	size_t taken;          /* of these, by algorithms */
	MemoryContext context; /* of all that is allocated */
	MemoryContext caller;
	Oid type; /* of vertices in the result; InvalidOid: it has none */
} GpudsWholeGraph;

/* Takes n edges of a graph that has nvertices by now: graph_..._add with its first arguments exchanged. */
typedef bool (*GpudsAddEdges)(void *to, GraphHost *host, uint32 nvertices, const uint32 *src,
							  const uint32 *dst, int64 n);

extern Oid gpuds_whole_graph_type(FunctionCallInfo fcinfo, int arguments);
extern void gpuds_whole_graph_begin(GpudsWholeGraph *graph, Oid indexid, Oid type);
extern void gpuds_whole_graph_read(GpudsWholeGraph *graph, GpudsAddEdges add, void *to);
extern bool gpuds_whole_graph_use_device(GpudsWholeGraph *graph, GpudsGraphSource source, GpudsUseGraph use,
										 void *arg);
extern bool gpuds_whole_graph_add_edges(void *to, GraphHost *host, uint32 nvertices, const uint32 *src,
										const uint32 *dst, int64 n);
extern Datum gpuds_whole_graph_value(const GpudsWholeGraph *graph, const uint64 *code, GpudsKeyBytes *bytes);
extern Datum gpuds_whole_graph_vertex(const GpudsWholeGraph *graph, uint32 number, GpudsKeyBytes *bytes);
extern void gpuds_whole_graph_put(const GpudsWholeGraph *graph, FunctionCallInfo fcinfo, Datum *values);
extern void gpuds_whole_graph_end(GpudsWholeGraph *graph);

#endif /* GPUDS_WHOLE_GRAPH_H */
