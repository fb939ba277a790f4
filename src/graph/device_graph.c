/*-------------------------------------------------------------------------
 *
 * device_graph.c
 *	  Graphs on the device that has an index's mirror: made of its entries there, and searched there.
 *
 * The device makes edges of the entries of whose rows it knows that the snapshot sees them; the others are
 * looked up here, and sent to it.  Whatever goes wrong, the caller reads the edges itself.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "miscadmin.h"
#include "storage/ipc.h"

#include "graph/graph.h"
#include "reader/reader.h"

/* Edges that a device counts triangles of at a time. */
#define TRIANGLE_EDGES (INT64CONST(1) << 23)

/* Takes a step; false: it was not done. */
bool
gpuds_device_step(const GpudsDeviceGraph *graph, GpudsGraphStep *step)
{
	CHECK_FOR_INTERRUPTS();
	return gpuds_device_graph_step(graph, step) == GPUDS_DEVICE_OK;
}

/* Weights whose integers are below are told from double precision. */
#define EXACT_WEIGHT 1e15

/* The integer of an edge's weight. */
static uint64
weight_word(const GpudsEdges *edges, int64 i)
{
	const double integer = edges->edges.weights[i] * edges->index->key.unit;

	if (edges->edges.unknown[i] || !(integer >= 0 && integer < EXACT_WEIGHT))
		return GPU_NO_WEIGHT;
	return (uint64) rint(integer);
}

/* Sends the piece's edges. */
static bool
send_piece(const GpudsEdges *edges, const GpudsDeviceGraph *graph, uint64 *words)
{
	const int width = graph->weighted ? 3 : 2;
	const int64 most = GPUDS_GRAPH_BYTES / (width * sizeof(uint64));

	for (int64 from = 0; from < edges->n; from += most)
	{
		const int64 n = Min(edges->n - from, most);
		GpudsGraphStep step = { .step = GPU_GRAPH_ADD, .n = n, .input = words };

		for (int64 i = 0; i < n; i++)
		{
			words[width * i] = edges->edges.sources[from + i];
			words[width * i + 1] = edges->edges.targets[from + i];
			if (graph->weighted)
				words[width * i + 2] = weight_word(edges, from + i);
		}
		step.input_bytes = n * width * sizeof(uint64);
		if (!gpuds_device_step(graph, &step))
			return false;
	}
	return true;
}

/* Looks up the rows of the others, and sends the edges of those that are seen. */
static bool
send_others(GpudsEdges *edges, const GpudsDeviceGraph *graph, const GpudsCounted *others)
{
	uint64 *pairs = MemoryContextAlloc(edges->context, GPUDS_GRAPH_BYTES);
	bool done = true;

	for (int64 from = 0; done && from < others->n; from += GPUDS_PIECE_ENTRIES)
	{
		gpuds_edges_look_up(edges, others->entries + from, Min(others->n - from, GPUDS_PIECE_ENTRIES));
		done = send_piece(edges, graph, pairs);
	}
	pfree(pairs);
	return done;
}

/*
 * Makes a graph of all edges, by a scan that has just started; based: on the one that was kept.  False: it
 * cannot be had, and the scan has not moved.
 */
static bool
make_graph(GpudsEdges *edges, bool both, bool based, GpudsDeviceGraph *graph, int64 *vertices)
{
	const GpudsEdgeKey *key = &edges->index->key;
	const GpudsCountEdges columns = { .vertex = { key->vertex[GPUDS_SOURCE].bits,
												  key->vertex[GPUDS_TARGET].bits },
									  .weight = key->weight.bits,
									  .zero = key->origin,
									  .weighted = key->weighted };
	GpudsCounted others;
	bool done = gpuds_seen_make_graph(&edges->seen, &columns, both, based, graph, &others) &&
				send_others(edges, graph, &others) &&
				gpuds_device_graph_end(graph, both, vertices) == GPUDS_DEVICE_OK;

	if (done)
		gpuds_seen_take_graph(&edges->seen, &others);
	gpuds_probe_free_counted(&others);
	CHECK_FOR_INTERRUPTS();
	return done;
}

/* How a graph was made, for messages. */
static const char *
origin(const GpudsDeviceGraph *graph)
{
	return !graph->based ? "made" : graph->differ > 0 ? "changed" : "kept";
}

/*
 * Takes the graph that was kept as a base.  False: none was, or so much has changed since that all entries
 * would have to be looked at: that does not pay for a search that has just begun.
 */
static bool
take_kept(GpudsEdges *edges, bool both, GpudsDeviceGraph *graph)
{
	const bool may_change = edges->kept == GPUDS_KEPT_CHANGED;

	edges->kept = GPUDS_KEPT_TAKEN;
	if (!gpuds_scan_keeps_graph(edges->scan, both, graph))
		return false;
	if (graph->near || may_change)
		return true;
	edges->kept = GPUDS_KEPT_CHANGED;
	return false;
}

/*
 * Makes a graph of all edges, of what it may be made of.  A scan of all edges locks all of the index where
 * transactions are serializable, so it does not begin if no graph can come of it.
 */
static bool
have_graph(GpudsEdges *edges, bool both, GpudsGraphSource source, GpudsDeviceGraph *graph, int64 *vertices)
{
	if (source != GPUDS_GRAPH_OF_KEPT)
	{
		edges->kept = GPUDS_KEPT_TAKEN;
		gpuds_edges_begin_graph(edges);
	}
	else if (!take_kept(edges, both, graph))
		return false;
	gpuds_edges_of_all(edges);
	return (source != GPUDS_GRAPH_OF_ENTRIES && make_graph(edges, both, true, graph, vertices)) ||
		   (source != GPUDS_GRAPH_OF_KEPT && make_graph(edges, both, false, graph, vertices));
}

static void
drop_graph(int code, Datum arg)
{
	gpuds_device_graph_drop((GpudsDeviceGraph *) DatumGetPointer(arg), false);
}

/*
 * Makes a graph of all edges on the device that has them, if one has, and has it used.  both: edges lead
 * both ways.  False: there is none, or it was not used to the end; nothing is known of the edges then.
 * Raises whatever use raises.
 */
bool
gpuds_edges_use_device(GpudsEdges *edges, bool both, GpudsGraphSource source, GpudsUseGraph use, void *arg)
{
	GpudsDeviceGraph graph = { .weighted = edges->index->key.weighted };
	int64 vertices = 0;
	const char *how;
	bool done = false;

	if (!gpuds_edges_fit_device(edges))
		return false;
	PG_ENSURE_ERROR_CLEANUP(drop_graph, PointerGetDatum(&graph));
	{
		done = have_graph(edges, both, source, &graph, &vertices) && use(&graph, vertices, arg);
	}
	PG_END_ENSURE_ERROR_CLEANUP(drop_graph, PointerGetDatum(&graph));
	how = origin(&graph);
	gpuds_device_graph_drop(&graph, done);
	if (done || source != GPUDS_GRAPH_OF_KEPT)
		elog(DEBUG1, "graph of index \"%s\" on a device: " INT64_FORMAT " vertices, %s, %s%s",
			 RelationGetRelationName(edges->index->target.index), vertices, how, done ? "used" : "not used",
			 graph.by_changes ? ", by changes alone" : "");
	return done;
}

/* Tells the device what a walk has reached by now: the vertices from first to end - 1. */
static bool
reach(const GpudsDeviceGraph *graph, const GpudsWalkStart *start, int64 first, int64 end, bool queued,
	  int64 *found)
{
	const int64 most = GPUDS_GRAPH_BYTES / sizeof(uint64);

	for (; first < end; first += most)
	{
		const int64 n = Min(end - first, most);
		GpudsGraphStep step = { .step = GPU_GRAPH_REACH,
								.each = queued,
								.n = n,
								.input = start->codes + first,
								.input_bytes = n * sizeof(uint64) };

		if (!gpuds_device_step(graph, &step))
			return false;
		*found = step.found;
	}
	return true;
}

/* Goes so many depths; *found: vertices that have been reached then. */
static bool
walk(const GpudsDeviceGraph *graph, int64 depths, int64 *found)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_WALK, .taken = 1 };

	for (; depths > 0 && step.taken > 0; depths -= step.counted)
	{
		step.n = Min(depths, GPUDS_WALK_DEPTHS);
		if (!gpuds_device_step(graph, &step))
			return false;
		*found = step.found;
	}
	return true;
}

/* The same, and hands on how many vertices it has reached in each depth. */
static bool
count_depths(const GpudsDeviceGraph *graph, int64 depths, int64 found, GpudsPutItems put, void *arg)
{
	uint64 reached[GPUDS_WALK_DEPTHS];
	GpudsGraphStep step = {
		.step = GPU_GRAPH_WALK, .taken = 1, .output = reached, .item_bytes = sizeof(uint64)
	};

	for (; depths > 0 && step.taken > 0; depths -= step.counted)
	{
		step.n = step.cap = Min(depths, GPUDS_WALK_DEPTHS);
		if (!gpuds_device_step(graph, &step))
			return false;
		for (int64 i = step.counted - 1; i > 0; i--)
			reached[i] -= reached[i - 1];
		if (step.counted > 0)
			reached[0] -= found;
		found = step.found;
		put(arg, reached, step.counted);
	}
	return true;
}

/* Reads items of so many bytes, from one to end - 1, and hands them on. */
static bool
read_items(const GpudsDeviceGraph *graph, GpuGraphStep step, int64 first, int64 end, size_t item_bytes,
		   GpudsPutItems put, void *arg)
{
	const int64 most = Min(GPUDS_GRAPH_BYTES / item_bytes, Max(end - first, 1));
	void *items = palloc(most * item_bytes);
	GpudsGraphStep next = { .step = step, .output = items, .item_bytes = item_bytes };
	bool done = true;

	for (; done && first < end; first += next.found)
	{
		next.next = first;
		next.cap = Min(end - first, most);
		done = gpuds_device_step(graph, &next) && next.found == next.cap;
		if (done)
			put(arg, items, next.found);
	}
	pfree(items);
	return done;
}

/* Tells the device where a walk is to go on; *found: vertices that have been reached. */
static bool
begin_walk(const GpudsDeviceGraph *graph, const GpudsWalkStart *start, int64 *found)
{
	*found = 0;
	return reach(graph, start, 0, start->first, false, found) &&
		   reach(graph, start, start->first, start->n, true, found);
}

/*
 * Goes on with a walk, breadth first, for so many depths at most, and hands on what it reaches, in the order
 * of depths, which are counted from there.  False: the device has not done it; something may have been handed
 * on.
 */
bool
gpuds_device_walk(const GpudsDeviceGraph *graph, const GpudsWalkStart *start, int64 depths, GpudsPutItems put,
				  void *arg)
{
	int64 reached;
	int64 found;

	if (!begin_walk(graph, start, &reached))
		return false;
	found = reached;
	return walk(graph, depths, &found) &&
		   read_items(graph, GPU_GRAPH_REACHED, reached, found, sizeof(GpuReached), put, arg);
}

/* The same, but hands on how many vertices it reaches in each depth, which are words. */
bool
gpuds_device_count_walk(const GpudsDeviceGraph *graph, const GpudsWalkStart *start, int64 depths,
						GpudsPutItems put, void *arg)
{
	int64 reached;

	return begin_walk(graph, start, &reached) && count_depths(graph, depths, reached, put, arg);
}

/* Hands on all vertices, each with the least one of its component; false: as above. */
bool
gpuds_device_components(const GpudsDeviceGraph *graph, GpudsPutItems put, void *arg)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_CONNECT };

	return gpuds_device_step(graph, &step) &&
		   read_items(graph, GPU_GRAPH_CONNECTED, 0, step.found, 2 * sizeof(uint64), put, arg);
}

/* Hands on the components, each as its least vertex and the number of its vertices; false: as above. */
bool
gpuds_device_component_sizes(const GpudsDeviceGraph *graph, GpudsPutItems put, void *arg)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_MEASURE };

	return gpuds_device_step(graph, &step) &&
		   read_items(graph, GPU_GRAPH_SIZES, 0, step.found, 2 * sizeof(uint64), put, arg);
}

/* Counts the triangles; false: the device has not done it. */
bool
gpuds_device_triangles(const GpudsDeviceGraph *graph, uint64 *total)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_TRIANGLES, .n = TRIANGLE_EDGES, .found = 1 };

	for (*total = 0; step.found > 0; step.next += TRIANGLE_EDGES)
	{
		if (!gpuds_device_step(graph, &step))
			return false;
		*total += step.joined;
	}
	return true;
}

/* Hands on all vertices, each with the numbers of edges that begin and that end there; false: as above. */
bool
gpuds_device_degrees(const GpudsDeviceGraph *graph, GpudsPutItems put, void *arg)
{
	GpudsGraphStep step = { .step = GPU_GRAPH_COUNT };

	return gpuds_device_step(graph, &step) &&
		   read_items(graph, GPU_GRAPH_DEGREES, 0, step.found, 3 * sizeof(uint64), put, arg);
}

/* Hands on all vertices, each with its rank, which is in double precision; false: as above. */
bool
gpuds_device_pagerank(const GpudsDeviceGraph *graph, GraphPagerank *parameters, GpudsPutItems put, void *arg)
{
	const double input[2] = { parameters->damping, parameters->tolerance };
	GpudsGraphStep step = {
		.step = GPU_GRAPH_RANK, .each = true, .n = 2, .input = input, .input_bytes = sizeof(input)
	};

	parameters->done = 0;
	do
	{
		step.next = parameters->most - parameters->done;
		if (!gpuds_device_step(graph, &step))
			return false;
		parameters->done += step.counted;
		memcpy(&parameters->difference, &step.joined, sizeof(step.joined));
		step.each = false;
	} while (parameters->done < parameters->most && parameters->difference > parameters->tolerance);
	return read_items(graph, GPU_GRAPH_RANKED, 0, step.found, 2 * sizeof(uint64), put, arg);
}
