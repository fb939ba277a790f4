/*-------------------------------------------------------------------------
 *
 * gpu_graph_path.h
 *	  Paths with the fewest edges, in a graph in device memory.
 *
 * A search for a path goes from both ends: from its beginning by the walk, from its end by another walk over
 * the edges that lead back.  Each step goes a depth from the end that has fewer edges to follow.  So the
 * walks have reached all vertices within a and b edges of the ends.  While no vertex has been reached by
 * both, any path has more than a + b edges.  Therefore the first vertex that both have reached is on a path
 * of a + b + 1 edges, and there is no shorter one.
 *
 * If there is no memory for the edges that lead back, the second walk has the end alone, and stays there.
 *
 * Paths from one vertex to many are read from a walk.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_PATH_H
#define GPU_GRAPH_PATH_H

#include "kernels/graph/gpu_graph_overlay.h"
#include "kernels/graph/gpu_graph_walk.h"

/* A walk that is to meet another one, for the device. */
struct GpuGraphSeekView
{
	GpuGraphWalkView walk;
	const uint32_t *other; /* depths in the other walk, which rests */
	uint32_t *met;         /* a vertex that both have reached */

	GPU_FN bool reach(uint32_t vertex, uint32_t from, uint32_t at_depth, bool queued) const
	{
		if (!walk.reach(vertex, from, at_depth, queued))
			return false;
		if (other[vertex] != GPU_NO_VERTEX)
			gpu_atomic_swap_if(met, GPU_NO_VERTEX, vertex);
		return true;
	}

	GPU_FN bool done() const
	{
		return gpu_fresh(met) != GPU_NO_VERTEX;
	}
};

/* Writes the path by which both walks have met: thread 0 the first part, thread 1 the rest. */
struct GpuGraphPath
{
	GpuGraphWalkView walk;
	GpuGraphWalkView back;
	GpuGraphCodes codes;
	uint32_t met;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t at = (int64_t) walk.depth[met];
		uint32_t v = met;

		if (i == 0)
		{
			for (out[at] = codes.of(v); at > 0; out[at] = codes.of(v))
			{
				v = walk.parent[v];
				at--;
			}
		}
		else
		{
			for (uint32_t left = back.depth[met]; left > 0; left--)
			{
				v = back.parent[v];
				out[++at] = codes.of(v);
			}
		}
	}
};

/* How many words it takes to say the paths to some vertices: the number of vertices, and these. */
struct GpuGraphPathWords
{
	GpuGraphWalkView walk;
	GpuGraphCodes codes;
	const uint64_t *named;
	int64_t nnamed;
	uint64_t *words; /* 0 behind the last one */

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t v = i < nnamed ? codes.find(named[i]) : -1;

		words[i] = i < nnamed;
		if (v >= 0 && walk.depth[v] != GPU_NO_VERTEX)
			words[i] += (uint64_t) walk.depth[v] + 1;
	}
};

/* Says the paths, as far as there is room; their places are the sums of their words. */
struct GpuGraphPaths
{
	GpuGraphWalkView walk;
	GpuGraphCodes codes;
	const uint64_t *named;
	const uint64_t *places;
	uint64_t room;
	uint64_t *out;
	uint32_t *said; /* how many are */

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t length = places[i + 1] - places[i] - 1;

		if (places[i + 1] > room)
			return;
		gpu_atomic_count(said);
		out[places[i]] = length;
		if (length == 0)
			return;
		uint32_t v = (uint32_t) codes.find(named[i]);

		for (uint64_t left = length; left > 0; left--)
		{
			out[places[i] + left] = codes.of(v);
			v = walk.parent[v];
		}
	}
};

/* Does the second walk go anywhere? */
static inline bool
gpu_graph_goes_back(const GpuGraph *graph)
{
	const GpuGraphOverlay *over = &graph->over;

	return graph->both || (graph->has_back && (over->ngone == 0 || over->back_gone.at() != NULL));
}

/* Begins a walk from n vertices, by their codes in device memory, in place of all others. */
static inline uint32_t
gpu_graph_start(GpuGraph *graph, GpuScanStream *stream, const uint64_t *named, int64_t n)
{
	uint32_t status = gpu_graph_need_rows(graph, stream);

	graph->met = GPU_NO_VERTEX;
	if (status == GPU_OK)
		status = gpu_graph_begin_walk(graph, &stream->stream, &graph->walk);
	if (status == GPU_OK)
		status = gpu_graph_reach(graph, stream, &graph->walk, named, n, true);
	return status;
}

/* Begins a search for a path between two different vertices, whose codes are in device memory. */
static inline uint32_t
gpu_graph_seek_begin(GpuGraph *graph, GpuScanStream *stream, const uint64_t *named)
{
	uint32_t status = gpu_graph_start(graph, stream, named, 1);

	if (status == GPU_OK)
		status = gpu_graph_need_back_over(graph, stream);
	if (status == GPU_OK || status == GPU_NO_MEMORY)
		status = gpu_graph_begin_walk(graph, &stream->stream, &graph->back_walk);
	if (status == GPU_OK)
		status = gpu_graph_reach(graph, stream, &graph->back_walk, named + 1, 1, true);
	return status;
}

/* Can the search go on? */
static inline bool
gpu_graph_seeks(const GpuGraph *graph)
{
	return graph->met == GPU_NO_VERTEX && graph->walk.first < graph->walk.n &&
		   graph->back_walk.first < graph->back_walk.n;
}

/* Goes a depth from one end; how many edges that were. */
static inline int64_t
gpu_graph_seek_depth(GpuGraph *graph, GpuScanStream *stream)
{
	const GpuGraphEdgesView edges = gpu_graph_edges_view(graph, false);
	const GpuGraphEdgesView back = gpu_graph_edges_view(graph, !graph->both);
	const int64_t ahead = gpu_graph_sum_degrees(stream, edges, &graph->walk);
	const int64_t behind = gpu_graph_goes_back(graph) ? gpu_graph_sum_degrees(stream, back, &graph->back_walk)
													  : INT64_MAX;
	GpuGraphWalk *walk = ahead <= behind ? &graph->walk : &graph->back_walk;
	GpuGraphWalk *other = ahead <= behind ? &graph->back_walk : &graph->walk;
	uint64_t word = (uint64_t) walk->n | (uint64_t) GPU_NO_VERTEX << 32;
	uint32_t *count = gpu_graph_set_count(stream, (int64_t) word);

	graph->met = gpu_graph_follow(stream, ahead <= behind ? edges : back, walk,
								  GpuGraphSeekView{ gpu_graph_walk_view(walk, count), other->depth.at(),
													count + 1 },
								  (uint64_t *) count);
	return (ahead <= behind ? ahead : behind) + edges.nmore;
}

/* Goes on with the search for so many depths at most, of both ends together. */
static inline uint32_t
gpu_graph_seek(GpuGraph *graph, GpuScanStream *stream, int64_t depths)
{
	int64_t followed = 0;

	if (!graph->walk.begun || !graph->back_walk.begun)
		return GPU_WITHDRAWN;
	if (!gpu_graph_use_temp(graph, &stream->stream, graph->n + 1))
		return GPU_NO_MEMORY;
	for (int64_t i = 0; i < depths && gpu_graph_seeks(graph) && followed < GPU_GRAPH_WALK_EDGES; i++)
	{
		followed += gpu_graph_seek_depth(graph, stream);
		if (!gpu_ok(&stream->stream))
			break;
	}
	return gpu_graph_status(&stream->stream);
}

/* Vertices of the path that has been found; 0: none has. */
static inline int64_t
gpu_graph_path_length(const GpuGraph *graph)
{
	return graph->met == GPU_NO_VERTEX ? 0 : (int64_t) graph->walk.depths + graph->back_walk.depths + 1;
}

/* Writes the path that has been found to device memory. */
static inline void
gpu_graph_path(const GpuGraph *graph, GpuStream *s, uint64_t *out)
{
	gpu_launch(s, 2,
			   GpuGraphPath{ gpu_graph_walk_view(&graph->walk, NULL),
							 gpu_graph_walk_view(&graph->back_walk, NULL), gpu_graph_codes(graph), graph->met,
							 out });
}

/*
 * Says the paths from where the walk began to n vertices, by their codes in device memory, there: for each
 * the number of vertices on it, 0 if it was not reached, and these.  room: words, *words: how many are said.
 * Returns of how many vertices, the first ones, the paths had room.
 */
static inline int64_t
gpu_graph_paths(const GpuGraph *graph, GpuScanStream *stream, const uint64_t *named, int64_t n,
				uint64_t *sums, int64_t room, uint64_t *out, int64_t *words)
{
	GpuStream *s = &stream->stream;
	const GpuGraphWalkView walk = gpu_graph_walk_view(&graph->walk, NULL);
	const GpuGraphCodes codes = gpu_graph_codes(graph);
	uint32_t *said = gpu_graph_set_count(stream, 0);
	int64_t fit;

	gpu_launch(s, n + 1, GpuGraphPathWords{ walk, codes, named, n, sums });
	gpu_exclusive_sum(s, sums, sums, n + 1);
	gpu_launch(s, n, GpuGraphPaths{ walk, codes, named, sums, (uint64_t) room, out, said });
	fit = (int64_t) gpu_graph_read(stream, (uint64_t *) said);
	*words = (int64_t) gpu_graph_read(stream, &sums[fit]);
	return fit;
}

#endif /* GPU_GRAPH_PATH_H */
