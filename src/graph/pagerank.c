/*-------------------------------------------------------------------------
 *
 * pagerank.c
 *	  gpuds_pagerank: how often a random walk comes by each vertex.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "utils/tuplestore.h"

#include "graph/whole_graph.h"

PG_FUNCTION_INFO_V1(gpuds_pagerank);

static void
check_argument(bool valid, const char *name, const char *detail)
{
	if (!valid)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid %s of PageRank", name),
						errdetail("%s", detail)));
}

/* The last three arguments. */
static GraphPagerank
get_parameters(FunctionCallInfo fcinfo)
{
	const int first = PG_NARGS() - 3;
	GraphPagerank parameters = { 0 };

	check_argument(!PG_ARGISNULL(first), "damping",
				   "It must not be null.  A type of vertices is given as \"vertex_type => NULL::TYPE\".");
	check_argument(!PG_ARGISNULL(first + 1), "tolerance", "It must not be null.");
	check_argument(!PG_ARGISNULL(first + 2), "number of iterations", "It must not be null.");
	parameters.damping = PG_GETARG_FLOAT8(first);
	parameters.tolerance = PG_GETARG_FLOAT8(first + 1);
	parameters.most = PG_GETARG_INT32(first + 2);
	check_argument(parameters.damping >= 0 && parameters.damping <= 1, "damping", "It must be from 0 to 1.");
	check_argument(parameters.tolerance >= 0, "tolerance", "It must not be negative.");
	check_argument(parameters.most >= 1, "number of iterations", "It must be at least 1.");
	return parameters;
}

/* Says how it went with so many vertices. */
static void
report(const GpudsWholeGraph *graph, const GraphPagerank *parameters, int64 vertices)
{
	const char *name = RelationGetRelationName(graph->index.target.index);

	elog(DEBUG1, "PageRank of index \"%s\": " INT64_FORMAT " iterations, the last one changed ranks by %g",
		 name, parameters->done, parameters->difference);
	if (vertices > 0 && parameters->difference > parameters->tolerance)
		ereport(NOTICE, (errmsg("PageRank of index \"%s\" has not converged", name),
						 errdetail("Iteration " INT64_FORMAT
								   " changed the ranks by %g, which is above the tolerance of %g.",
								   parameters->done, parameters->difference, parameters->tolerance)));
}

/* Where ranks go, and how they are found. */
typedef struct PagerankResult
{
	GpudsWholeGraph *graph;
	FunctionCallInfo fcinfo;
	GraphPagerank parameters;
} PagerankResult;

static void
put(const PagerankResult *result, const uint64 *vertex, double rank)
{
	GpudsKeyBytes bytes;
	Datum values[2];

	values[0] = gpuds_whole_graph_value(result->graph, vertex, &bytes);
	values[1] = Float8GetDatum(rank);
	gpuds_whole_graph_put(result->graph, result->fcinfo, values);
}

/* Puts vertices of a device, two words each. */
static void
put_items(void *arg, const void *items, int64 n)
{
	const uint64 *words = items;

	for (int64 i = 0; i < n; i++)
	{
		double rank;

		memcpy(&rank, &words[2 * i + 1], sizeof(rank));
		put(arg, &words[2 * i], rank);
	}
}

/* Has a device find the ranks; false: it has not, and there is no result. */
static bool
rank_on_device(const GpudsDeviceGraph *graph, int64 vertices, void *arg)
{
	PagerankResult *result = arg;
	GraphPagerank parameters = result->parameters;

	if (gpuds_device_pagerank(graph, &parameters, put_items, arg))
	{
		report(result->graph, &parameters, vertices);
		return true;
	}
	tuplestore_clear(((ReturnSetInfo *) result->fcinfo->resultinfo)->setResult);
	return false;
}

/* Finds the ranks here. */
static void
rank_here(PagerankResult *result)
{
	GpudsWholeGraph *graph = result->graph;
	GraphEdges edges = { 0 };
	double *rank;

	gpuds_whole_graph_read(graph, gpuds_whole_graph_add_edges, &edges);
	rank = graph_pagerank(&graph->host, graph->vertices.map.n, &edges, &result->parameters);
	report(graph, &result->parameters, graph->vertices.map.n);
	for (uint32 v = 0; v < graph->vertices.map.n; v++)
		put(result, gpuds_vertices_code(&graph->vertices, v), rank[v]);
}

/*
 * gpuds_pagerank(index regclass, [vertex_type anyelement,] damping double precision, tolerance double
 * precision, max_iterations integer) returns table (vertex anyelement, rank double precision)
 *
 * A row for each vertex of the edges that the snapshot sees, with its PageRank; the ranks' sum is 1.
 * Iterates until the ranks change by no more than the tolerance, all together.  Of vertex_type only the
 * type counts.
 */
Datum
gpuds_pagerank(PG_FUNCTION_ARGS)
{
	GpudsWholeGraph graph;
	PagerankResult result = { &graph, fcinfo };

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	result.parameters = get_parameters(fcinfo);
	gpuds_whole_graph_begin(&graph, PG_GETARG_OID(0), gpuds_whole_graph_type(fcinfo, 4));
	if (!gpuds_whole_graph_use_device(&graph, GPUDS_GRAPH_OF_ENTRIES, rank_on_device, &result))
		rank_here(&result);
	gpuds_whole_graph_end(&graph);
	return (Datum) 0;
}
