/*-------------------------------------------------------------------------
 *
 * bfs.c
 *	  gpuds_bfs: the vertices that can be reached from some, breadth first; gpuds_bfs_counts: how many.
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
PG_FUNCTION_INFO_V1(gpuds_bfs_counts);

/* Arguments. */
enum
{
	BFS_INDEX,
	BFS_SEEDS,
	BFS_MAX_DEPTH,
	BFS_REVERSE_INDEX,
	BFS_DIRECTED
};

/* What is kept of a vertex beside its code, if not only counts are wanted: the number of that before it. */
#define PARENT 0

typedef struct Bfs
{
	GpudsGraphIndex index[2];
	GpudsEdges edges[2];
	int nindexes;
	GpudsVertices vertices;
	uint32 *numbers;     /* of the piece's targets */
	int64 followed;      /* edges */
	bool may_make_graph; /* on a device */
	bool counts;         /* only how many vertices each depth has is wanted */
	bool device_has_put; /* what a device has reached is in the result, or a part of it */
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

/* Gives a vertex; parent: NULL, if it is a seed. */
static void
put_vertex(const Bfs *bfs, const uint64 *vertex, int32 depth, const uint64 *parent)
{
	const GpudsGraphIndex *index = &bfs->index[0];
	bool isnull[3] = { false, false, parent == NULL };
	GpudsKeyBytes bytes[2];
	Datum values[3];

	CHECK_FOR_INTERRUPTS();
	values[0] = gpuds_graph_vertex(index, vertex, &bytes[0]);
	values[1] = Int32GetDatum(depth);
	values[2] = parent ? gpuds_graph_vertex(index, parent, &bytes[1]) : (Datum) 0;
	tuplestore_putvalues(bfs->result->setResult, bfs->result->setDesc, values, isnull);
}

/* Gives how many vertices have a depth, if any have. */
static void
put_count(const Bfs *bfs, int32 depth, int64 n)
{
	bool isnull[2] = { false, false };
	Datum values[2] = { Int32GetDatum(depth), Int64GetDatum(n) };

	if (n > 0)
		tuplestore_putvalues(bfs->result->setResult, bfs->result->setDesc, values, isnull);
}

/* Gives the vertices from one on, which have a depth. */
static void
put_vertices(const Bfs *bfs, uint32 first, int32 depth)
{
	const uint32 *parents = bfs->vertices.array[PARENT];

	if (bfs->counts)
	{
		put_count(bfs, depth, (int64) bfs->vertices.map.n - first);
		return;
	}
	for (uint32 i = first; i < bfs->vertices.map.n; i++)
		put_vertex(bfs, gpuds_vertices_code(&bfs->vertices, i), depth,
				   parents[i] == VERTEX_NONE ? NULL : gpuds_vertices_code(&bfs->vertices, parents[i]));
}

/*
 * Sets the parents of those that have come as targets of the piece's edges, from one on; first: of the
 * sources.
 */
static void
set_parents(Bfs *bfs, const GpudsEdges *edges, uint32 next, uint32 first)
{
	uint32 *parents = bfs->vertices.array[PARENT];

	if (bfs->counts)
		return;
	/* They are numbered in the order of the edges. */
	for (int64 i = 0; next < bfs->vertices.map.n; i++)
	{
		if (bfs->numbers[i] == next)
			parents[next++] = first + edges->edges.from[i];
	}
}

/* Have so many edges been followed that a device may use the graph that it has kept, or make one? */
static bool
may_take(const Bfs *bfs)
{
	return gpuds_edges_may_take_graph(&bfs->edges[0], bfs->followed);
}

static bool
may_make(Bfs *bfs)
{
	return bfs->may_make_graph && gpuds_edges_may_make_graph(&bfs->edges[0], bfs->followed);
}

/* Follows the edges of one index from n vertices, from one on; false: a device may go on from this depth. */
static bool
follow(Bfs *bfs, GpudsEdges *edges, uint32 first, uint32 n)
{
	gpuds_edges_of(edges, gpuds_vertices_code(&bfs->vertices, first), n);
	while (gpuds_edges_next(edges))
	{
		const uint32 next = bfs->vertices.map.n;

		gpuds_vertices_add(&bfs->vertices, edges->edges.targets, edges->n, bfs->numbers);
		set_parents(bfs, edges, next, first);
		bfs->followed += edges->n;
		if (may_take(bfs) || may_make(bfs))
			return false;
	}
	return true;
}

/* What a device goes on with. */
typedef struct DeviceWalk
{
	Bfs *bfs;
	uint32 first; /* of the vertices of the last depth that is complete */
	uint32 end;
	int32 depth;
	int32 max_depth;
} DeviceWalk;

static void
put_reached(void *arg, const void *items, int64 n)
{
	const DeviceWalk *walk = arg;
	const GpuReached *reached = items;

	walk->bfs->device_has_put = true;
	for (int64 i = 0; i < n; i++)
		put_vertex(walk->bfs, &reached[i].vertex, walk->depth + (int32) reached[i].depth, &reached[i].parent);
}

static void
put_counts(void *arg, const void *items, int64 n)
{
	DeviceWalk *walk = arg;
	const uint64 *counts = items;

	walk->bfs->device_has_put = true;
	for (int64 i = 0; i < n; i++)
		put_count(walk->bfs, ++walk->depth, (int64) counts[i]);
}

static bool
go_on(const GpudsDeviceGraph *graph, int64 vertices, void *arg)
{
	const DeviceWalk *walk = arg;
	const int64 depths = walk->max_depth - walk->depth;
	const GpudsWalkStart start = { .codes = walk->bfs->vertices.map.codes,
								   .n = walk->end,
								   .first = walk->first };

	if (walk->bfs->counts)
		return gpuds_device_count_walk(graph, &start, depths, put_counts, arg);
	return gpuds_device_walk(graph, &start, depths, put_reached, arg);
}

/* Has a device go on from a depth, if that is worth it; false: it has not done it. */
static bool
go_on_by_device(Bfs *bfs, uint32 first, uint32 end, int32 depth, int32 max_depth)
{
	DeviceWalk walk = { bfs, first, end, depth, max_depth };
	const bool make = may_make(bfs);

	if (!make && !may_take(bfs))
		return false;
	bfs->may_make_graph &= !make;
	return gpuds_edges_use_device(&bfs->edges[0], bfs->nindexes == 2,
								  make ? GPUDS_GRAPH_OF_ANY : GPUDS_GRAPH_OF_KEPT, go_on, &walk);
}

/* Follows all edges of n vertices, from one on; false: a device may go on from this depth. */
static bool
follow_all(Bfs *bfs, uint32 first, uint32 n)
{
	for (int i = 0; i < bfs->nindexes; i++)
	{
		if (!follow(bfs, &bfs->edges[i], first, n))
			return false;
	}
	return true;
}

/*
 * Goes from depth to depth, as far as the limit.  False: a device has put something into the result, and then
 * come to its end.  A device is asked within a depth, too: a few vertices may have most of the edges.  What
 * the depth has reached by then is reached again, on the device or here.
 */
static bool
search(Bfs *bfs, int32 max_depth)
{
	uint32 first = 0;
	uint32 end = bfs->vertices.map.n;

	for (int32 depth = 0; depth < max_depth && first < end; depth++)
	{
		for (uint32 at = first; at < end;)
		{
			const uint32 n = Min(end - at, GPUDS_MOST_SOURCES);

			if (go_on_by_device(bfs, first, end, depth, max_depth))
				return true;
			if (bfs->device_has_put)
				return false;
			if (follow_all(bfs, at, n))
				at += n;
		}
		put_vertices(bfs, end, depth + 1);
		first = end;
		end = bfs->vertices.map.n;
	}
	return true;
}

/* Reaches the seeds. */
static void
add_seeds(Bfs *bfs, ArrayType *array)
{
	int64 n;
	uint64 *codes = gpuds_graph_vertices(&bfs->index[0], array, &n);
	uint32 *numbers = MemoryContextAllocHuge(CurrentMemoryContext, Max(n, 1) * sizeof(uint32));

	gpuds_vertices_add(&bfs->vertices, codes, n, numbers);
	for (uint32 i = 0; i < bfs->vertices.map.n && !bfs->counts; i++)
		((uint32 *) bfs->vertices.array[PARENT])[i] = VERTEX_NONE;
	pfree(codes);
	pfree(numbers);
	put_vertices(bfs, 0, 0);
}

/* Reaches the seeds, and all that is to be reached from there. */
static void
reach(Bfs *bfs, ArrayType *seeds, int32 max_depth)
{
	add_seeds(bfs, seeds);
	if (search(bfs, max_depth))
		return;
	tuplestore_clear(bfs->result->setResult);
	gpuds_vertices_reset(&bfs->vertices);
	bfs->device_has_put = bfs->may_make_graph = false;
	add_seeds(bfs, seeds);
	(void) search(bfs, max_depth); /* without a device, so to the end */
}

/* Does what a call asks for; counts: that is counts. */
static Datum
do_bfs(FunctionCallInfo fcinfo, bool counts)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "gpuds_bfs", ALLOCSET_DEFAULT_SIZES);
	const int width = sizeof(uint32);
	MemoryContext old;
	Bfs bfs;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(BFS_INDEX) || PG_ARGISNULL(BFS_SEEDS))
		return (Datum) 0;
	old = MemoryContextSwitchTo(context);
	bfs.result = (ReturnSetInfo *) fcinfo->resultinfo;
	bfs.followed = 0;
	bfs.may_make_graph = true;
	bfs.device_has_put = false;
	bfs.counts = counts;
	open_indexes(&bfs, fcinfo);
	gpuds_vertices_begin(&bfs.vertices, bfs.index[0].key.words, counts ? 0 : 1, &width,
						 get_hash_memory_limit());
	bfs.numbers = palloc(GPUDS_PIECE_ENTRIES * sizeof(uint32));
	for (int i = 0; i < bfs.nindexes; i++)
		gpuds_edges_begin(&bfs.edges[i], &bfs.index[i]);
	reach(&bfs, PG_GETARG_ARRAYTYPE_P(BFS_SEEDS),
		  PG_ARGISNULL(BFS_MAX_DEPTH) ? PG_INT32_MAX : PG_GETARG_INT32(BFS_MAX_DEPTH));
	for (int i = 0; i < bfs.nindexes; i++)
	{
		gpuds_edges_end(&bfs.edges[i]);
		gpuds_graph_close(&bfs.index[i]);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
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
	return do_bfs(fcinfo, false);
}

/*
 * gpuds_bfs_counts(the same) returns table (depth integer, vertices bigint)
 *
 * How many rows of each depth gpuds_bfs would return.
 */
Datum
gpuds_bfs_counts(PG_FUNCTION_ARGS)
{
	return do_bfs(fcinfo, true);
}
