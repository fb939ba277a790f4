/*-------------------------------------------------------------------------
 *
 * neighbors.c
 *	  gpuds_neighbors: the edges that lead out of some vertices.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "graph/graph.h"

PG_FUNCTION_INFO_V1(gpuds_neighbors);

/* Puts the piece's edges. */
static void
put_edges(const GpudsEdges *edges, ReturnSetInfo *result)
{
	const GpudsGraphIndex *index = edges->index;
	const GpudsEdgeArrays *arrays = &edges->edges;

	for (int64 i = 0; i < edges->n; i++)
	{
		GpudsKeyBytes bytes[2];
		Datum values[3];
		bool isnull[3] = { false, false, true };

		CHECK_FOR_INTERRUPTS();
		values[0] = gpuds_graph_vertex(index, arrays->sources + i * index->key.words, &bytes[0]);
		values[1] = gpuds_graph_vertex(index, arrays->targets + i * index->key.words, &bytes[1]);
		values[2] = (Datum) 0;
		if (index->key.weighted && !arrays->unknown[i])
		{
			values[2] = Float8GetDatum(arrays->weights[i]);
			isnull[2] = false;
		}
		tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
	}
}

/* Finds the edges of vertices, the same one several times perhaps. */
static void
find_neighbors(const GpudsGraphIndex *index, ArrayType *array, ReturnSetInfo *result)
{
	const int words = index->key.words;
	GpudsVertices vertices;
	GpudsEdges edges;
	int64 n;
	uint64 *codes = gpuds_graph_vertices(index, array, &n);
	uint32 *numbers = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint32));

	gpuds_vertices_begin(&vertices, words, 0, NULL, MaxAllocHugeSize);
	gpuds_vertices_add(&vertices, codes, n, numbers);
	gpuds_edges_begin(&edges, index);
	for (int64 first = 0; first < vertices.map.n; first += GPUDS_MOST_SOURCES)
	{
		gpuds_edges_of(&edges, gpuds_vertices_code(&vertices, (uint32) first),
					   Min(vertices.map.n - first, GPUDS_MOST_SOURCES));
		while (gpuds_edges_next(&edges))
			put_edges(&edges, result);
	}
	gpuds_edges_end(&edges);
}

/*
 * gpuds_neighbors(index regclass, vertices anyarray, weight_column name) returns table (vertex anyelement,
 * neighbor anyelement, weight double precision)
 *
 * A row for each edge that the snapshot sees and that leads out of one of the vertices, which are a set.
 * weight is what the edge has in the column, or NULL if none is named.
 */
Datum
gpuds_neighbors(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds_neighbors",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	GpudsGraphIndex index;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	old = MemoryContextSwitchTo(context);
	gpuds_graph_open(PG_GETARG_OID(0), PG_ARGISNULL(2) ? NULL : NameStr(*PG_GETARG_NAME(2)), &index);
	find_neighbors(&index, PG_GETARG_ARRAYTYPE_P(1), (ReturnSetInfo *) fcinfo->resultinfo);
	gpuds_graph_close(&index);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}
