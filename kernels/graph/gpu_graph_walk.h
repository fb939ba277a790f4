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

	/*
	 * Reaches a vertex, unless it has been reached before; queued: edges are to be followed from there.
	 * True: it is queued now.
	 */
	GPU_FN bool reach(uint32_t vertex, uint32_t from, uint32_t at_depth, bool queued) const
	{
		if (gpu_fresh(&depth[vertex]) != GPU_NO_VERTEX ||
			gpu_atomic_swap_if(&depth[vertex], GPU_NO_VERTEX, at_depth) != GPU_NO_VERTEX || !queued)
			return false;
		parent[vertex] = from;
		queue[gpu_atomic_next(count)] = vertex;
		return true;
	}

	/* Is there nothing more to be found? */
	GPU_FN bool done() const
	{
		return false;
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
template <class Walk> struct GpuGraphFollow
{
	Walk walk;
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

		while (o < end && !walk.done())
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
gpu_graph_walk_view(const GpuGraphWalk *walk, uint32_t *count)
{
	return { walk->depth.at(), walk->parent.at(), walk->queue.at(), count };
}

/* Begins a walk that has reached nothing, in place of what it was. */
static inline uint32_t
gpu_graph_begin_walk(GpuGraph *graph, GpuStream *s, GpuGraphWalk *walk)
{
	if (!walk->begun &&
		(!gpu_graph_take(graph, &walk->depth, graph->n) || !gpu_graph_take(graph, &walk->parent, graph->n) ||
		 !gpu_graph_take(graph, &walk->queue, graph->n) || !gpu_graph_take(graph, &walk->sums, graph->n + 1)))
		return GPU_NO_MEMORY;
	gpu_fill(s, walk->depth.at(), 0xFF, (size_t) graph->n * sizeof(uint32_t));
	walk->begun = true;
	walk->first = walk->n = 0;
	walk->total = -1;
	walk->depths = 0;
	return GPU_OK;
}

/* Begins a walk over the edges in rows, if none has begun. */
static inline uint32_t
gpu_graph_need_walk(GpuGraph *graph, GpuScanStream *stream)
{
	const uint32_t status = gpu_graph_need_rows(graph, stream);

	if (status != GPU_OK || graph->walk.begun)
		return status;
	return gpu_graph_begin_walk(graph, &stream->stream, &graph->walk);
}

/* Sets the device's count of the queue, and reads it when what was asked for since is done. */
static inline uint32_t *
gpu_graph_set_count(GpuScanStream *stream, int64_t n)
{
	stream->summary->total = (uint64_t) n;
	gpu_copy_bus(&stream->stream, stream->offsets, &stream->summary->total, sizeof(uint64_t));
	return (uint32_t *) stream->offsets;
}

/* Has a walk reach n vertices, by their codes in device memory. */
static inline uint32_t
gpu_graph_reach(const GpuGraph *graph, GpuScanStream *stream, GpuGraphWalk *walk, const uint64_t *named,
				int64_t n, bool queued)
{
	uint32_t *count = gpu_graph_set_count(stream, walk->n);

	gpu_launch(&stream->stream, n,
			   GpuGraphReach{ gpu_graph_walk_view(walk, count), graph->codes.at(), graph->n, named, queued });
	walk->n = (int64_t) gpu_graph_read(stream, (uint64_t *) count);
	walk->total = -1;
	return gpu_graph_status(&stream->stream);
}

/* How many edges lead out of what is queued, which is known once the sums are. */
static inline int64_t
gpu_graph_sum_degrees(GpuScanStream *stream, const GpuGraphRows *rows, GpuGraphWalk *walk)
{
	GpuStream *s = &stream->stream;
	const uint32_t *vertices = walk->queue.at() + walk->first;
	const int64_t n = walk->n - walk->first;
	uint64_t *sums = walk->sums.at();

	if (walk->total >= 0)
		return walk->total;
	gpu_launch(s, n + 1, GpuGraphDegrees{ rows->offsets.at(), vertices, sums, n });
	gpu_exclusive_sum(s, sums, sums, n + 1);
	walk->total = (int64_t) gpu_graph_read(stream, &sums[n]);
	return walk->total;
}

/*
 * Follows the edges of all that is queued, whose degrees have been summed up.  view: what reaches vertices;
 * count: of the queue, which it adds to; what is behind that comes back.
 */
template <class Walk>
static inline uint32_t
gpu_graph_follow(GpuScanStream *stream, const GpuGraphRows *rows, GpuGraphWalk *walk, const Walk &view,
				 uint64_t *count)
{
	const int64_t n = walk->n - walk->first;
	uint64_t found;

	gpu_launch(&stream->stream, (walk->total + GPU_GRAPH_STRETCH - 1) / GPU_GRAPH_STRETCH,
			   GpuGraphFollow<Walk>{ view, rows->offsets.at(), rows->members.at(),
									 walk->queue.at() + walk->first, walk->sums.at(), n, walk->total,
									 walk->depths + 1 });
	found = gpu_graph_read(stream, count);
	walk->first = walk->n;
	walk->n = (int64_t) (uint32_t) found;
	walk->total = -1;
	walk->depths++;
	return (uint32_t) (found >> 32);
}

/* Goes a depth; how many edges have been followed. */
static inline int64_t
gpu_graph_walk_depth(GpuGraph *graph, GpuScanStream *stream)
{
	GpuGraphWalk *walk = &graph->walk;
	const int64_t total = gpu_graph_sum_degrees(stream, &graph->rows, walk);
	uint32_t *count = gpu_graph_set_count(stream, walk->n);

	(void) gpu_graph_follow(stream, &graph->rows, walk, gpu_graph_walk_view(walk, count), (uint64_t *) count);
	return total;
}

/*
 * Goes on for so many depths at most.  reached: for how many vertices are reached then, after each depth; or
 * NULL.
 */
static inline uint32_t
gpu_graph_walk(GpuGraph *graph, GpuScanStream *stream, int64_t depths, uint64_t *reached)
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
		if (reached != NULL)
			reached[i] = (uint64_t) walk->n;
	}
	return gpu_graph_status(&stream->stream);
}

/* Writes what is known of n vertices of the queue, from one on, to device memory. */
static inline void
gpu_graph_reached(GpuGraph *graph, GpuStream *s, int64_t first, int64_t n, GpuReached *out)
{
	gpu_launch(s, n,
			   GpuGraphReached{ gpu_graph_walk_view(&graph->walk, NULL), graph->codes.at(),
								graph->walk.queue.at() + first, out });
}

#endif /* GPU_GRAPH_WALK_H */
