/*-------------------------------------------------------------------------
 *
 * gpu_graph_walk.h
 *	  Goes through a graph in device memory, breadth first.
 *
 * Vertices are in a queue in the order in which they are reached, so those of a depth follow each other.  The
 * exclusive sums of their degrees say which edges each thread has: the work is spread over edges, whatever
 * the degrees are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_WALK_H
#define GPU_GRAPH_WALK_H

#include "kernels/graph/gpu_graph_build.h"

/* Edges that a thread follows. */
#define GPU_GRAPH_STRETCH 8

/* A request goes no further once it has followed so many edges. */
#define GPU_GRAPH_WALK_EDGES (INT64_C(1) << 28)

/* A walk's arrays, for the device. */
struct GpuGraphWalkView
{
	uint32_t *depth;
	uint32_t *parent;
	uint32_t *queue;
	uint32_t *count; /* of the queue */

	/* Reaches a vertex, unless it has been reached before; queued: edges are to be followed from there. */
	GPU_FN void reach(uint32_t vertex, uint32_t from, uint32_t at_depth, bool queued) const
	{
		if (gpu_fresh(&depth[vertex]) != GPU_NO_VERTEX ||
			gpu_atomic_swap_if(&depth[vertex], GPU_NO_VERTEX, at_depth) != GPU_NO_VERTEX || !queued)
			return;
		parent[vertex] = from;
		queue[gpu_atomic_next(count)] = vertex;
	}
};

/* Reaches vertices that a caller names. */
struct GpuGraphReach
{
	GpuGraphWalkView walk;
	const uint64_t *codes; /* of the graph's vertices */
	int64_t n;
	const uint64_t *named;
	bool queued;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t v = gpu_graph_find(codes, n, named[i]);

		if (v < n && codes[v] == named[i])
			walk.reach((uint32_t) v, (uint32_t) v, 0, queued);
	}
};

/* The degrees of some vertices of the queue; 0 behind them. */
struct GpuGraphDegrees
{
	const uint64_t *offsets;
	const uint32_t *vertices;
	uint64_t *degrees;
	int64_t n;

	GPU_FN void operator()(int64_t i) const
	{
		degrees[i] = i < n ? offsets[vertices[i] + 1] - offsets[vertices[i]] : 0;
	}
};

/* Follows the edges of some vertices of the queue. */
struct GpuGraphFollow
{
	GpuGraphWalkView walk;
	const uint64_t *offsets;
	const uint32_t *members;
	const uint32_t *vertices;
	const uint64_t *sums;
	int64_t n;
	int64_t total;
	uint32_t depth; /* that edges lead to */

	GPU_FN void operator()(int64_t i) const
	{
		int64_t o = i * GPU_GRAPH_STRETCH;
		const int64_t end = o + GPU_GRAPH_STRETCH < total ? o + GPU_GRAPH_STRETCH : total;

		while (o < end)
		{
			const int64_t at = gpu_scan_find(sums, n, (uint64_t) o);
			const int64_t stop = (int64_t) sums[at + 1] < end ? (int64_t) sums[at + 1] : end;
			const uint32_t from = vertices[at];
			const uint64_t begin = offsets[from] - sums[at];

			for (; o < stop; o++)
				walk.reach(members[begin + (uint64_t) o], from, depth, true);
		}
	}
};

/* Says what a caller wants to know of vertices of the queue. */
struct GpuGraphReached
{
	GpuGraphWalkView walk;
	const uint64_t *codes;
	const uint32_t *vertices;
	GpuReached *out;

	GPU_FN void operator()(int64_t i) const
	{
		const uint32_t v = vertices[i];

		out[i].vertex = codes[v];
		out[i].parent = codes[walk.parent[v]];
		out[i].depth = walk.depth[v];
	}
};

static inline GpuGraphWalkView
gpu_graph_walk_view(const GpuGraph *graph, uint32_t *count)
{
	return { graph->walk.depth.at(), graph->walk.parent.at(), graph->walk.queue.at(), count };
}

/* Begins a walk that has reached nothing, if none has begun. */
static inline uint32_t
gpu_graph_need_walk(GpuGraph *graph, GpuScanStream *stream)
{
	GpuGraphWalk *walk = &graph->walk;
	uint32_t status = gpu_graph_need_rows(graph, stream);

	if (status != GPU_OK || walk->begun)
		return status;
	if (!gpu_graph_take(graph, &walk->depth, graph->n) || !gpu_graph_take(graph, &walk->parent, graph->n) ||
		!gpu_graph_take(graph, &walk->queue, graph->n) || !gpu_graph_take(graph, &walk->sums, graph->n + 1))
		return GPU_NO_MEMORY;
	gpu_fill(&stream->stream, walk->depth.at(), 0xFF, (size_t) graph->n * sizeof(uint32_t));
	walk->begun = true;
	return GPU_OK;
}

/* Sets the device's count of the queue, and reads it when what was asked for since is done. */
static inline uint32_t *
gpu_graph_set_count(GpuScanStream *stream, int64_t n)
{
	stream->summary->total = (uint64_t) n;
	gpu_copy_bus(&stream->stream, stream->offsets, &stream->summary->total, sizeof(uint64_t));
	return (uint32_t *) stream->offsets;
}

/* Reaches n vertices, by their codes in device memory. */
static inline uint32_t
gpu_graph_reach(GpuGraph *graph, GpuScanStream *stream, const uint64_t *named, int64_t n, bool queued)
{
	uint32_t status = gpu_graph_need_walk(graph, stream);
	uint32_t *count;

	if (status != GPU_OK)
		return status;
	count = gpu_graph_set_count(stream, graph->walk.n);
	gpu_launch(&stream->stream, n,
			   GpuGraphReach{ gpu_graph_walk_view(graph, count), graph->codes.at(), graph->n, named,
							  queued });
	graph->walk.n = (int64_t) gpu_graph_read(stream, (uint64_t *) count);
	return gpu_graph_status(&stream->stream);
}

/* Follows the edges of all that is queued; how many edges that were. */
static inline int64_t
gpu_graph_walk_depth(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	GpuGraphWalk *walk = &graph->walk;
	const uint32_t *vertices = walk->queue.at() + walk->first;
	uint64_t *sums = walk->sums.at();
	const int64_t n = walk->n - walk->first;
	uint32_t *count;
	int64_t total;

	gpu_launch(s, n + 1, GpuGraphDegrees{ graph->rows.offsets.at(), vertices, sums, n });
	gpu_exclusive_sum(s, sums, sums, n + 1);
	total = (int64_t) gpu_graph_read(stream, &sums[n]);
	count = gpu_graph_set_count(stream, walk->n);
	gpu_launch(s, (total + GPU_GRAPH_STRETCH - 1) / GPU_GRAPH_STRETCH,
			   GpuGraphFollow{ gpu_graph_walk_view(graph, count), graph->rows.offsets.at(),
							   graph->rows.members.at(), vertices, sums, n, total, walk->depths + 1 });
	walk->first = walk->n;
	walk->n = (int64_t) gpu_graph_read(stream, (uint64_t *) count);
	walk->depths++;
	return total;
}

/* Goes on for so many depths at most. */
static inline uint32_t
gpu_graph_walk(GpuGraph *graph, GpuScanStream *stream, int64_t depths)
{
	GpuGraphWalk *walk = &graph->walk;
	int64_t followed = 0;

	if (!walk->begun)
		return GPU_WITHDRAWN;
	if (!gpu_graph_use_temp(graph, &stream->stream, graph->n + 1))
		return GPU_NO_MEMORY;
	for (int64_t i = 0; i < depths && walk->first < walk->n && followed < GPU_GRAPH_WALK_EDGES; i++)
	{
		followed += gpu_graph_walk_depth(graph, stream);
		if (!gpu_ok(&stream->stream))
			break;
	}
	return gpu_graph_status(&stream->stream);
}

/* Writes what is known of n vertices of the queue, from one on, to device memory. */
static inline void
gpu_graph_reached(GpuGraph *graph, GpuStream *s, int64_t first, int64_t n, GpuReached *out)
{
	gpu_launch(s, n,
			   GpuGraphReached{ gpu_graph_walk_view(graph, NULL), graph->codes.at(),
								graph->walk.queue.at() + first, out });
}

#endif /* GPU_GRAPH_WALK_H */
