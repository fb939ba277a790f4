/*-------------------------------------------------------------------------
 *
 * gpu_graph_walk.h
 *	  Goes through a graph in device memory, breadth first.
 *
 * Vertices are in a queue in the order in which they are reached, so those of a depth follow each other.  The
 * exclusive sums of their degrees say which edges each thread has: the work is spread over edges, whatever
 * the degrees are.
 *
 * Edges of an overlay are in no rows: all of them are looked at in each depth, by threads of their own.
 * Those are followed whose source has the depth that the walk goes on from.
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

/* The depth of vertices from which nothing is to be followed. */
#define GPU_GRAPH_BEFORE (GPU_NO_VERTEX - 1)

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
	GpuGraphCodes codes;
	const uint64_t *named;
	bool queued;

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t v = codes.find(named[i]);

		if (v >= 0)
			walk.reach((uint32_t) v, (uint32_t) v, queued ? 0 : GPU_GRAPH_BEFORE, queued);
	}
};

/* A graph's edges as a walk follows them, for the device. */
struct GpuGraphEdgesView
{
	const uint64_t *offsets;
	const uint32_t *members;
	const uint64_t *weights; /* of members; NULL: they have none */
	int64_t n;               /* vertices that have rows */
	const uint32_t *gone;    /* bits of members that are not there; NULL: all are */
	const uint64_t *more;    /* edges that are in no rows */
	const uint64_t *more_weights;
	int64_t nmore;
	bool back; /* they are followed from target to source */

	GPU_FN uint64_t degree(uint32_t vertex) const
	{
		return vertex < n ? offsets[vertex + 1] - offsets[vertex] : 0;
	}

	GPU_FN bool has(uint64_t at) const
	{
		return gone == NULL || (gone[at / 32] >> at % 32 & 1) == 0;
	}
};

/* The degrees of some vertices of the queue; 0 behind them. */
struct GpuGraphDegrees
{
	GpuGraphEdgesView edges;
	const uint32_t *vertices;
	uint64_t *degrees;
	int64_t n;

	GPU_FN void operator()(int64_t i) const
	{
		degrees[i] = i < n ? edges.degree(vertices[i]) : 0;
	}
};

/* Follows the edges of some vertices of the queue: the first threads those that are in no rows. */
template <class Walk> struct GpuGraphFollow
{
	Walk walk;
	GpuGraphEdgesView edges;
	const uint32_t *depths; /* of vertices */
	const uint32_t *vertices;
	const uint64_t *sums;
	int64_t n;
	int64_t total;
	uint32_t depth; /* that edges lead to */

	GPU_FN void follow_more(uint64_t edge) const
	{
		const uint32_t source = (uint32_t) (edges.back ? edge : edge >> 32);
		const uint32_t target = (uint32_t) (edges.back ? edge >> 32 : edge);

		/* a vertex that is reached now has the next depth */
		if (!walk.done() && gpu_fresh(&depths[source]) == depth - 1)
			walk.reach(target, source, depth, true);
	}

	GPU_FN void follow_rows(int64_t i) const
	{
		int64_t o = i * GPU_GRAPH_STRETCH;
		const int64_t end = o + GPU_GRAPH_STRETCH < total ? o + GPU_GRAPH_STRETCH : total;

		while (o < end && !walk.done())
		{
			const int64_t at = gpu_scan_find(sums, n, (uint64_t) o);
			const int64_t stop = (int64_t) sums[at + 1] < end ? (int64_t) sums[at + 1] : end;
			const uint32_t from = vertices[at];
			const uint64_t begin = edges.offsets[from] - sums[at];

			for (; o < stop; o++)
			{
				if (edges.has(begin + (uint64_t) o))
					walk.reach(edges.members[begin + (uint64_t) o], from, depth, true);
			}
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		if (i < edges.nmore)
			follow_more(edges.more[i]);
		else
			follow_rows(i - edges.nmore);
	}
};

/* Says what a caller wants to know of vertices of the queue. */
struct GpuGraphReached
{
	GpuGraphWalkView walk;
	GpuGraphCodes codes;
	const uint32_t *vertices;
	GpuReached *out;

	GPU_FN void operator()(int64_t i) const
	{
		const uint32_t v = vertices[i];

		out[i].vertex = codes.of(v);
		out[i].parent = codes.of(walk.parent[v]);
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
			   GpuGraphReach{ gpu_graph_walk_view(walk, count), gpu_graph_codes(graph), named, queued });
	walk->n = (int64_t) gpu_graph_read(stream, (uint64_t *) count);
	walk->total = -1;
	return gpu_graph_status(&stream->stream);
}

/* A graph's edges, or those that lead back. */
static inline GpuGraphEdgesView
gpu_graph_edges_view(const GpuGraph *graph, bool back)
{
	const GpuGraphRows *rows = back ? &graph->back : &graph->rows;
	const GpuGraphOverlay *over = &graph->over;
	const uint32_t *gone = over->ngone == 0 ? NULL : back ? over->back_gone.at() : over->gone.at();

	return { rows->offsets.at(),
			 rows->members.at(),
			 rows->weights.at(),
			 gpu_graph_base_n(graph),
			 gone,
			 over->edges.at(),
			 over->weights.at(),
			 over->m,
			 back };
}

/* How many edges lead out of what is queued, but for those in no rows; known once the sums are. */
static inline int64_t
gpu_graph_sum_degrees(GpuScanStream *stream, const GpuGraphEdgesView &edges, GpuGraphWalk *walk)
{
	GpuStream *s = &stream->stream;
	const uint32_t *vertices = walk->queue.at() + walk->first;
	const int64_t n = walk->n - walk->first;
	uint64_t *sums = walk->sums.at();

	if (walk->total >= 0)
		return walk->total;
	gpu_launch(s, n + 1, GpuGraphDegrees{ edges, vertices, sums, n });
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
gpu_graph_follow(GpuScanStream *stream, const GpuGraphEdgesView &edges, GpuGraphWalk *walk, const Walk &view,
				 uint64_t *count)
{
	const int64_t n = walk->n - walk->first;
	const int64_t stretches = (walk->total + GPU_GRAPH_STRETCH - 1) / GPU_GRAPH_STRETCH;
	uint64_t found;

	gpu_launch(&stream->stream, edges.nmore + stretches,
			   GpuGraphFollow<Walk>{ view, edges, walk->depth.at(), walk->queue.at() + walk->first,
									 walk->sums.at(), n, walk->total, walk->depths + 1 });
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
	const GpuGraphEdgesView edges = gpu_graph_edges_view(graph, false);
	const int64_t total = gpu_graph_sum_degrees(stream, edges, walk);
	uint32_t *count = gpu_graph_set_count(stream, walk->n);

	(void) gpu_graph_follow(stream, edges, walk, gpu_graph_walk_view(walk, count), (uint64_t *) count);
	return total + edges.nmore;
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
			   GpuGraphReached{ gpu_graph_walk_view(&graph->walk, NULL), gpu_graph_codes(graph),
								graph->walk.queue.at() + first, out });
}

#endif /* GPU_GRAPH_WALK_H */
