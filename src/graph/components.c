/*-------------------------------------------------------------------------
 *
 * components.c
 *	  gpuds_components: which vertices are connected; gpuds_component_sizes: how many.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/tuplestore.h"

#include "graph/whole_graph.h"

PG_FUNCTION_INFO_V1(gpuds_components);
PG_FUNCTION_INFO_V1(gpuds_component_sizes);

static bool
add_edges(void *to, GraphHost *host, uint32 nvertices, const uint32 *src, const uint32 *dst, int64 n)
{
	return graph_components_add(host, to, nvertices, src, dst, n);
}

/* Where vertices or components go. */
typedef struct ComponentsResult
{
	GpudsWholeGraph *graph;
	FunctionCallInfo fcinfo;
	bool sizes; /* of components, without their vertices */
} ComponentsResult;

static void
put(const ComponentsResult *result, const uint64 *vertex, const uint64 *least)
{
	GpudsKeyBytes bytes[2];
	Datum values[2];

	values[0] = gpuds_whole_graph_value(result->graph, vertex, &bytes[0]);
	values[1] = gpuds_whole_graph_value(result->graph, least, &bytes[1]);
	gpuds_whole_graph_put(result->graph, result->fcinfo, values);
}

static void
put_size(const ComponentsResult *result, const uint64 *least, uint64 vertices)
{
	GpudsKeyBytes bytes;
	Datum values[2];

	values[0] = gpuds_whole_graph_value(result->graph, least, &bytes);
	values[1] = Int64GetDatum((int64) vertices);
	gpuds_whole_graph_put(result->graph, result->fcinfo, values);
}

/* Puts pairs of a vertex and the least one of its component, which are words. */
static void
put_pairs(void *arg, const void *items, int64 n)
{
	const uint64 *pairs = items;

	for (int64 i = 0; i < n; i++)
		put(arg, &pairs[2 * i], &pairs[2 * i + 1]);
}

/* Puts pairs of the least vertex of a component and the number of its vertices. */
static void
put_sizes(void *arg, const void *items, int64 n)
{
	const uint64 *pairs = items;

	for (int64 i = 0; i < n; i++)
		put_size(arg, &pairs[2 * i], pairs[2 * i + 1]);
}

/* Has a device find the components; false: it has not, and there is no result. */
static bool
find_on_device(const GpudsDeviceGraph *graph, int64 vertices, void *arg)
{
	const ComponentsResult *result = arg;

	if (result->sizes ? gpuds_device_component_sizes(graph, put_sizes, arg)
					  : gpuds_device_components(graph, put_pairs, arg))
		return true;
	tuplestore_clear(((ReturnSetInfo *) result->fcinfo->resultinfo)->setResult);
	return false;
}

/* Puts the components, by the least vertex of each one's. */
static void
put_sizes_of(const ComponentsResult *result, const uint32 *least)
{
	GpudsWholeGraph *graph = result->graph;
	const uint32 n = graph->vertices.map.n;
	uint32 *sizes = graph->host.resize(graph->host.context, NULL, Max(n, 1) * sizeof(uint32));

	memset(sizes, 0, n * sizeof(uint32));
	for (uint32 v = 0; v < n; v++)
		sizes[least[v]]++;
	for (uint32 v = 0; v < n; v++)
	{
		if (sizes[v] > 0)
			put_size(result, gpuds_vertices_code(&graph->vertices, v), sizes[v]);
	}
}

/* Finds the components here. */
static void
find_here(const ComponentsResult *result)
{
	GpudsWholeGraph *graph = result->graph;
	GraphComponents components = { 0 };
	uint32 *least;

	gpuds_whole_graph_read(graph, add_edges, &components);
	least = graph_components_least(&graph->host, &components, graph->vertices.map.codes,
								   graph->vertices.map.words);
	if (result->sizes)
	{
		put_sizes_of(result, least);
		return;
	}
	for (uint32 v = 0; v < graph->vertices.map.n; v++)
		put(result, gpuds_vertices_code(&graph->vertices, v),
			gpuds_vertices_code(&graph->vertices, least[v]));
}

static Datum
do_components(FunctionCallInfo fcinfo, bool sizes)
{
	GpudsWholeGraph graph;
	ComponentsResult result = { &graph, fcinfo, sizes };

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), gpuds_whole_graph_type(fcinfo, 1));
	if (!gpuds_whole_graph_use_device(&graph, GPUDS_GRAPH_OF_ANY, find_on_device, &result))
		find_here(&result);
	gpuds_whole_graph_end(&graph);
	return (Datum) 0;
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
	return do_components(fcinfo, false);
}

/*
 * gpuds_component_sizes(the same) returns table (component anyelement, vertices bigint)
 *
 * A row for each component, with the number of rows that gpuds_components has of it.
 */
Datum
gpuds_component_sizes(PG_FUNCTION_ARGS)
{
	return do_components(fcinfo, true);
}
