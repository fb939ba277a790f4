/*-------------------------------------------------------------------------
 *
 * triangles.c
 *	  gpuds_triangles, gpuds_vertex_triangles: how many triangles there are, and at each vertex.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "graph/whole_graph.h"

PG_FUNCTION_INFO_V1(gpuds_triangles);
PG_FUNCTION_INFO_V1(gpuds_vertex_triangles);

static bool
count_on_device(const GpudsDeviceGraph *graph, int64 vertices, void *arg)
{
	return gpuds_device_triangles(graph, arg);
}

/*
 * gpuds_triangles(index regclass) returns bigint
 *
 * How many sets of three vertices there are that are connected with each other, by edges in any direction
 * that the snapshot sees.
 */
Datum
gpuds_triangles(PG_FUNCTION_ARGS)
{
	GpudsWholeGraph graph;
	GraphEdges edges = { 0 };
	uint64 total;

	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), InvalidOid);
	if (!gpuds_whole_graph_use_device(&graph, GPUDS_GRAPH_OF_ANY, count_on_device, &total))
	{
		gpuds_whole_graph_read(&graph, gpuds_whole_graph_add_edges, &edges);
		graph_triangles(&graph.host, graph.vertices.map.n, &edges, &total, NULL);
	}
	gpuds_whole_graph_end(&graph);
	PG_RETURN_INT64((int64) total);
}

/*
 * gpuds_vertex_triangles(index regclass, [vertex_type anyelement]) returns table (vertex anyelement,
 * triangles bigint)
 *
 * A row for each vertex of the edges that the snapshot sees, with the number of triangles that it is in.
 * Of vertex_type only the type counts.
 */
Datum
gpuds_vertex_triangles(PG_FUNCTION_ARGS)
{
	GpudsWholeGraph graph;
	GraphEdges edges = { 0 };
	uint64 *of_vertex;
	uint64 total;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), gpuds_whole_graph_type(fcinfo, 1));
	gpuds_whole_graph_read(&graph, gpuds_whole_graph_add_edges, &edges);
	of_vertex = graph_allocate(&graph.host, graph.vertices.map.n, sizeof(uint64), false);
	graph_triangles(&graph.host, graph.vertices.map.n, &edges, &total, of_vertex);
	for (uint32 v = 0; v < graph.vertices.map.n; v++)
	{
		GpudsKeyBytes bytes;
		Datum values[2];

		values[0] = gpuds_whole_graph_vertex(&graph, v, &bytes);
		values[1] = Int64GetDatum((int64) of_vertex[v]);
		gpuds_whole_graph_put(&graph, fcinfo, values);
	}
	gpuds_whole_graph_end(&graph);
	return (Datum) 0;
}
