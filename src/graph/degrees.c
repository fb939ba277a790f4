/*-------------------------------------------------------------------------
 *
 * degrees.c
 *	  gpuds_degrees: how many edges begin and end at each vertex.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/tuplestore.h"

#include "graph/whole_graph.h"

PG_FUNCTION_INFO_V1(gpuds_degrees);

static bool
add_edges(void *to, GraphHost *host, uint32 nvertices, const uint32 *src, const uint32 *dst, int64 n)
{
	return graph_degrees_add(host, to, nvertices, src, dst, n);
}

/* Where vertices go. */
typedef struct DegreesResult
{
	GpudsWholeGraph *graph;
	FunctionCallInfo fcinfo;
} DegreesResult;

static void
put(const DegreesResult *result, const uint64 *vertex, uint64 out, uint64 in)
{
	GpudsKeyBytes bytes;
	Datum values[3];

	values[0] = gpuds_whole_graph_value(result->graph, vertex, &bytes);
	values[1] = Int64GetDatum((int64) out);
	values[2] = Int64GetDatum((int64) in);
	gpuds_whole_graph_put(result->graph, result->fcinfo, values);
}

/* Puts vertices of a device, three words each. */
static void
put_items(void *arg, const void *items, int64 n)
{
	const uint64 *words = items;

	for (int64 i = 0; i < n; i++)
		put(arg, &words[3 * i], words[3 * i + 1], words[3 * i + 2]);
}

/* Has a device count; false: it has not, and there is no result. */
static bool
count_on_device(const GpudsDeviceGraph *graph, int64 vertices, void *arg)
{
	const DegreesResult *result = arg;

	if (gpuds_device_degrees(graph, put_items, arg))
		return true;
	tuplestore_clear(((ReturnSetInfo *) result->fcinfo->resultinfo)->setResult);
	return false;
}

/* Counts here. */
static void
count_here(const DegreesResult *result)
{
	GpudsWholeGraph *graph = result->graph;
	GraphDegrees degrees = { 0 };

	gpuds_whole_graph_read(graph, add_edges, &degrees);
	for (uint32 v = 0; v < graph->vertices.map.n; v++)
		put(result, gpuds_vertices_code(&graph->vertices, v), degrees.out[v], degrees.in[v]);
}

/*
 * gpuds_degrees(index regclass, [vertex_type anyelement]) returns table (vertex anyelement, out_degree
 * bigint, in_degree bigint)
 *
 * A row for each vertex of the edges that the snapshot sees, with the number of edges that begin and that
 * end at it.  Of vertex_type only the type counts.
 */
Datum
gpuds_degrees(PG_FUNCTION_ARGS)
{
	GpudsWholeGraph graph;
	DegreesResult result = { &graph, fcinfo };

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), gpuds_whole_graph_type(fcinfo, 1));
	if (!gpuds_whole_graph_use_device(&graph, GPUDS_GRAPH_OF_ENTRIES, count_on_device, &result))
		count_here(&result);
	gpuds_whole_graph_end(&graph);
	return (Datum) 0;
}
