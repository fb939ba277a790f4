/*-------------------------------------------------------------------------
 *
 * whole_graph.c
 *	  Reads all edges of a graph for an algorithm, and bounds the memory that it takes.
 *
 * Edges become pairs of numbers of vertices as they are read.  What is kept of them is the algorithm's
 * business (kernels/graph): its memory and the vertices' are bounded together by work_mem and
 * hash_mem_multiplier, because nothing of it can go to disk.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "graph/whole_graph.h"

static size_t
chunk_space(void *memory)
{
	return memory ? GetMemoryChunkSpace(memory) : 0;
}

/* Bytes that the vertices take. */
static size_t
bytes_of_vertices(const GpudsVertices *vertices)
{
	return chunk_space(vertices->map.codes) + chunk_space(vertices->map.slots);
}

/* Raises an error if so many bytes more are too many. */
static void
check_memory(const GpudsWholeGraph *graph, size_t bytes)
{
	if (bytes_of_vertices(&graph->vertices) + graph->taken + bytes > graph->memory)
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("graph of index \"%s\" does not fit into %zu kB of memory",
							   RelationGetRelationName(graph->index.target.index), graph->memory / 1024),
						errhint("Increase \"work_mem\" or \"hash_mem_multiplier\".")));
}

static void *
resize(void *context, void *memory, size_t bytes)
{
	GpudsWholeGraph *graph = context;

	graph->taken -= chunk_space(memory);
	check_memory(graph, bytes);
	memory = memory ? repalloc_huge(memory, bytes) : MemoryContextAllocHuge(graph->context, bytes);
	graph->taken += chunk_space(memory);
	return memory;
}

static void
release(void *context, void *memory)
{
	GpudsWholeGraph *graph = context;

	graph->taken -= chunk_space(memory);
	pfree(memory);
}

static bool
proceed(void *context)
{
	CHECK_FOR_INTERRUPTS();
	return true;
}

/* May vertices be given as values of a type?  Integers may be given as wider ones. */
static bool
is_type_of(Oid vertices, Oid type)
{
	return vertices == type || (type == INT8OID && (vertices == INT2OID || vertices == INT4OID));
}

static void
check_type(const GpudsGraphIndex *index, Oid type)
{
	if (!OidIsValid(type) || is_type_of(index->type, type))
		return;
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("vertices of index \"%s\" cannot be returned as values of type %s",
						   RelationGetRelationName(index->target.index), format_type_be(type)),
					errdetail("They are of type %s.", format_type_be(index->type)),
					errhint("Call the function with the argument vertex_type => NULL::%s.",
							format_type_be(index->type))));
}

/*
 * The type of the vertices that a function returns.  Of each function there are two in SQL: one has a
 * second argument of that type, and the other one, with fewer arguments, returns bigint.
 */
Oid
gpuds_whole_graph_type(FunctionCallInfo fcinfo, int arguments)
{
	return PG_NARGS() == arguments ? INT8OID : get_fn_expr_argtype(fcinfo->flinfo, 1);
}

/*
 * Opens an index of edges, as gpuds_graph_open does, for an algorithm on all of them.  type: that of
 * vertices in the result, or InvalidOid if it has none.  Until gpuds_whole_graph_end, the current memory
 * context is one that is deleted then.
 *
 * Raises an error, beside those of gpuds_graph_open, if vertices cannot be of the type.
 */
void
gpuds_whole_graph_begin(GpudsWholeGraph *graph, Oid indexid, Oid type)
{
	memset(graph, 0, sizeof(*graph));
	graph->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds graph", ALLOCSET_DEFAULT_SIZES);
	graph->caller = MemoryContextSwitchTo(graph->context);
	graph->memory = get_hash_memory_limit();
	graph->host = (GraphHost){ .resize = resize, .release = release, .proceed = proceed, .context = graph };
	graph->type = type;
	gpuds_graph_open(indexid, NULL, &graph->index);
	check_type(&graph->index, type);
	gpuds_vertices_begin(&graph->vertices, graph->index.key.words, 0, NULL, graph->memory);
}

/*
 * Leaves the first of each run of equal sources in a piece, and sets the number of the run of each edge; how
 * many runs there are.
 */
static int64
find_runs(const GpudsEdges *edges, uint32 *runs)
{
	const int words = edges->index->key.words;
	uint64 *codes = edges->edges.sources;
	int64 n = 0;

	for (int64 i = 0; i < edges->n; i++)
	{
		const uint64 *code = codes + i * words;
		const uint64 *last = codes + Max(n - 1, 0) * words;

		if (n == 0 || code[0] != last[0] || code[words - 1] != last[words - 1])
			memmove(codes + n++ * words, code, words * sizeof(uint64));
		runs[i] = (uint32) (n - 1);
	}
	return n;
}

/* Gives a piece's edges their vertices' numbers; those of one source follow each other. */
static void
number_edges(GpudsWholeGraph *graph, const GpudsEdges *edges, uint32 *src, uint32 *dst)
{
	graph->vertices.others = Min(graph->taken, graph->memory);
	gpuds_vertices_add(&graph->vertices, edges->edges.sources, find_runs(edges, src), dst);
	for (int64 i = 0; i < edges->n; i++)
		src[i] = dst[src[i]];
	gpuds_vertices_add(&graph->vertices, edges->edges.targets, edges->n, dst);
}

/*
 * Reads all edges that the snapshot sees, and has them added to something.  Raises an error if they do not
 * fit into the memory.
 */
void
gpuds_whole_graph_read(GpudsWholeGraph *graph, GpudsAddEdges add, void *to)
{
	GpudsEdges edges;
	uint32 *numbers = NULL;
	int64 size = 0;
	int64 n = 0;

	gpuds_edges_begin(&edges, &graph->index);
	gpuds_edges_of_all(&edges);
	while (gpuds_edges_next(&edges))
	{
		CHECK_FOR_INTERRUPTS();
		if (edges.n > size)
		{
			size = edges.size;
			numbers = numbers ? repalloc_huge(numbers, 2 * size * sizeof(uint32))
							  : palloc_extended(2 * size * sizeof(uint32), MCXT_ALLOC_HUGE);
		}
		number_edges(graph, &edges, numbers, numbers + size);
		add(to, &graph->host, graph->vertices.map.n, numbers, numbers + size, edges.n);
		n += edges.n;
	}
	gpuds_edges_end(&edges);
	if (numbers)
		pfree(numbers);
	elog(DEBUG1, "graph of index \"%s\": " INT64_FORMAT " edges, %u vertices",
		 RelationGetRelationName(graph->index.target.index), n, graph->vertices.map.n);
}

/* A GpudsAddEdges that keeps the edges; to: a GraphEdges. */
bool
gpuds_whole_graph_add_edges(void *to, GraphHost *host, uint32 nvertices, const uint32 *src, const uint32 *dst,
							int64 n)
{
	return graph_edges_add(host, to, src, dst, n);
}

/* Has a device use all edges that the snapshot sees, as gpuds_edges_use_device. */
bool
gpuds_whole_graph_use_device(GpudsWholeGraph *graph, GpudsGraphSource source, GpudsUseGraph use, void *arg)
{
	GpudsEdges edges;
	bool done;

	gpuds_edges_begin(&edges, &graph->index);
	done = gpuds_edges_use_device(&edges, false, source, use, arg);
	gpuds_edges_end(&edges);
	return done;
}

/* The vertex of a code as a value of the result's type, which may be in *bytes. */
Datum
gpuds_whole_graph_value(const GpudsWholeGraph *graph, const uint64 *code, GpudsKeyBytes *bytes)
{
	const Datum value = gpuds_graph_vertex(&graph->index, code, bytes);

	if (graph->type == graph->index.type)
		return value;
	return Int64GetDatum(graph->index.type == INT2OID ? DatumGetInt16(value) : DatumGetInt32(value));
}

/* The same of the vertex of a number. */
Datum
gpuds_whole_graph_vertex(const GpudsWholeGraph *graph, uint32 number, GpudsKeyBytes *bytes)
{
	return gpuds_whole_graph_value(graph, gpuds_vertices_code(&graph->vertices, number), bytes);
}

/* Puts a row without NULLs into the result. */
void
gpuds_whole_graph_put(const GpudsWholeGraph *graph, FunctionCallInfo fcinfo, Datum *values)
{
	static bool isnull[3] = { false, false, false };
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	CHECK_FOR_INTERRUPTS();
	Assert(result->setDesc->natts <= lengthof(isnull));
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

/* Closes the index, and frees all memory. */
void
gpuds_whole_graph_end(GpudsWholeGraph *graph)
{
	gpuds_graph_close(&graph->index);
	MemoryContextSwitchTo(graph->caller);
	MemoryContextDelete(graph->context);
}
