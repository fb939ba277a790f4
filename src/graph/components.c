/*-------------------------------------------------------------------------
 *
 * components.c
 *	  gpuds_components: which vertices are connected.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "graph/whole_graph.h"

PG_FUNCTION_INFO_V1(gpuds_components);

static bool
add_edges(void *to, GraphHost *host, uint32 nvertices, const uint32 *src, const uint32 *dst, int64 n)
{
	return graph_components_add(host, to, nvertices, src, dst, n);
}

/*
 * gpuds_components(index regclass, [vertex_type anyelement]) returns table (vertex anyelement, component
 * anyelement)
 *
 * A row for each vertex of the edges that the snapshot sees, with the least vertex that is connected with
 * it by edges in either direction.  Of vertex_type only the type counts.
 */
Datum
gpuds_components(PG_FUNCTION_ARGS)
{
	GpudsWholeGraph graph;
	GraphComponents components = { 0 };
	uint32 *least;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), gpuds_whole_graph_type(fcinfo, 1));
	gpuds_whole_graph_read(&graph, add_edges, &components);
	least = graph_components_least(&graph.host, &components, graph.vertices.map.codes,
								   graph.vertices.map.words);
	for (uint32 v = 0; v < graph.vertices.map.n; v++)
	{
		GpudsKeyBytes bytes[2];
		Datum values[2];

		values[0] = gpuds_whole_graph_vertex(&graph, v, &bytes[0]);
		values[1] = gpuds_whole_graph_vertex(&graph, least[v], &bytes[1]);
		gpuds_whole_graph_put(&graph, fcinfo, values);
	}
	gpuds_whole_graph_end(&graph);
	return (Datum) 0;
}
