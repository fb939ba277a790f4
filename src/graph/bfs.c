/*-------------------------------------------------------------------------
 *
 * bfs.c
 *	  gpuds_bfs: the vertices that can be reached from some, breadth first.
 *
 * Vertices are numbered as they are reached, so those of a depth follow each other.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/nodeHash.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "graph/graph.h"

PG_FUNCTION_INFO_V1(gpuds_bfs);

/* Arguments. */
enum
{
	BFS_INDEX,
	BFS_SEEDS,
	BFS_MAX_DEPTH,
	BFS_REVERSE_INDEX,
	BFS_DIRECTED
};

/* What is kept of a vertex beside its code: the number of the one that it was reached from. */
#define PARENT 0

typedef struct Bfs
{
	GpudsGraphIndex index[2];
	GpudsEdges edges[2];
	int nindexes;
	GpudsVertices vertices;
	uint32 *numbers; /* of the piece's targets */
	ReturnSetInfo *result;
} Bfs;

static void
open_indexes(Bfs *bfs, FunctionCallInfo fcinfo)
{
	gpuds_graph_open(PG_GETARG_OID(BFS_INDEX), NULL, &bfs->index[0]);
	bfs->nindexes = 1;
	if (PG_ARGISNULL(BFS_DIRECTED) || PG_GETARG_BOOL(BFS_DIRECTED))
		return;
	if (PG_ARGISNULL(BFS_REVERSE_INDEX))
		gpuds_graph_need_reverse(&bfs->index[0]);
	gpuds_graph_open_reverse(PG_GETARG_OID(BFS_REVERSE_INDEX), NULL, &bfs->index[0], &bfs->index[1]);
	bfs->nindexes = 2;
}

/* Gives the vertices from one on, which have a depth. */
static void
put_vertices(const Bfs *bfs, uint32 first, int32 depth)
{
	const GpudsGraphIndex *index = &bfs->index[0];
	const uint32 *parents = bfs->vertices.array[PARENT];

	for (uint32 i = first; i < bfs->vertices.map.n; i++)
	{
		GpudsKeyBytes bytes[2];
		bool isnull[3] = { false, false, parents[i] == VERTEX_NONE };
		Datum values[3];

		CHECK_FOR_INTERRUPTS();
		values[0] = gpuds_graph_vertex(index, gpuds_vertices_code(&bfs->vertices, i), &bytes[0]);
		values[1] = Int32GetDatum(depth);
		values[2] = (Datum) 0;
		if (!isnull[2])
			values[2] = gpuds_graph_vertex(index, gpuds_vertices_code(&bfs->vertices, parents[i]), &bytes[1]);
		tuplestore_putvalues(bfs->result->setResult, bfs->result->setDesc, values, isnull);
	}
}

/*
 * Sets the parents of those that have come as targets of the piece's edges, from one on; first: of the
 * sources.
 */
static void
set_parents(Bfs *bfs, const GpudsEdges *edges, uint32 next, uint32 first)
{
	uint32 *parents = bfs->vertices.array[PARENT];

	/* They are numbered in the order of the edges. */
	for (int64 i = 0; next < bfs->vertices.map.n; i++)
	{
		if (bfs->numbers[i] == next)
			parents[next++] = first + edges->edges.from[i];
	}
}

/* Follows the edges of one index from n vertices, from one on. */
static void
follow(Bfs *bfs, GpudsEdges *edges, uint32 first, uint32 n)
{
	gpuds_edges_of(edges, gpuds_vertices_code(&bfs->vertices, first), n);
	while (gpuds_edges_next(edges))
	{
		const uint32 next = bfs->vertices.map.n;

		gpuds_vertices_add(&bfs->vertices, edges->edges.targets, edges->n, bfs->numbers);
		set_parents(bfs, edges, next, first);
	}
}

/* Goes from depth to depth, as far as the limit. */
static void
search(Bfs *bfs, int32 max_depth)
{
	uint32 first = 0;
	uint32 end = bfs->vertices.map.n;

	for (int32 depth = 0; depth < max_depth && first < end; depth++)
	{
		for (; first < end; first += Min(end - first, GPUDS_MOST_SOURCES))
		{
			for (int i = 0; i < bfs->nindexes; i++)
				follow(bfs, &bfs->edges[i], first, Min(end - first, GPUDS_MOST_SOURCES));
		}
		put_vertices(bfs, end, depth + 1);
		end = bfs->vertices.map.n;
	}
}

/* Reaches the seeds. */
static void
add_seeds(Bfs *bfs, ArrayType *array)
{
	const int width = sizeof(uint32);
	int64 n;
	uint64 *codes = gpuds_graph_vertices(&bfs->index[0], array, &n);
	uint32 *numbers = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint32));

	gpuds_vertices_begin(&bfs->vertices, bfs->index[0].key.words, 1, &width, get_hash_memory_limit());
	gpuds_vertices_add(&bfs->vertices, codes, n, numbers);
	for (uint32 i = 0; i < bfs->vertices.map.n; i++)
		((uint32 *) bfs->vertices.array[PARENT])[i] = VERTEX_NONE;
	pfree(codes);
	pfree(numbers);
	put_vertices(bfs, 0, 0);
}

/*
 * gpuds_bfs(index regclass, seeds anyarray, max_depth integer, reverse_index regclass, directed boolean)
 * returns table (vertex anyelement, depth integer, parent anyelement)
 *
 * Each vertex that can be reached from a seed, once, with the least number of edges that it takes, and a
 * vertex that is the last but one on such a path, or NULL for a seed.  max_depth: the number of edges at
 * most, or NULL. If not directed, edges are followed both ways, which takes the index that has them by their
 * targets.
 */
Datum
gpuds_bfs(PG_FUNCTION_ARGS)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds_bfs", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	Bfs bfs;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(BFS_INDEX) || PG_ARGISNULL(BFS_SEEDS))
		return (Datum) 0;
	old = MemoryContextSwitchTo(context);
	bfs.result = (ReturnSetInfo *) fcinfo->resultinfo;
	open_indexes(&bfs, fcinfo);
	add_seeds(&bfs, PG_GETARG_ARRAYTYPE_P(BFS_SEEDS));
	bfs.numbers = palloc(GPUDS_PIECE_ENTRIES * sizeof(uint32));
	for (int i = 0; i < bfs.nindexes; i++)
		gpuds_edges_begin(&bfs.edges[i], &bfs.index[i]);
	search(&bfs, PG_ARGISNULL(BFS_MAX_DEPTH) ? PG_INT32_MAX : PG_GETARG_INT32(BFS_MAX_DEPTH));
	for (int i = 0; i < bfs.nindexes; i++)
	{
		gpuds_edges_end(&bfs.edges[i]);
		gpuds_graph_close(&bfs.index[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}
