/*-------------------------------------------------------------------------
 *
 * degrees.c
 *	  gpuds_degrees: how many edges begin and end at each vertex.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "graph/whole_graph.h"

PG_FUNCTION_INFO_V1(gpuds_degrees);

static bool
add_edges(void *to, GraphHost *host, uint32 nvertices, const uint32 *src, const uint32 *dst, int64 n)
{
	return graph_degrees_add(host, to, nvertices, src, dst, n);
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
	GraphDegrees degrees = { 0 };

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), gpuds_whole_graph_type(fcinfo, 1));
	gpuds_whole_graph_read(&graph, add_edges, &degrees);
	for (uint32 v = 0; v < graph.vertices.map.n; v++)
	{
		GpudsKeyBytes bytes;
		Datum values[3];

		values[0] = gpuds_whole_graph_vertex(&graph, v, &bytes);
		values[1] = Int64GetDatum((int64) degrees.out[v]);
		values[2] = Int64GetDatum((int64) degrees.in[v]);
		gpuds_whole_graph_put(&graph, fcinfo, values);
	}
	gpuds_whole_graph_end(&graph);
	return (Datum) 0;
}
