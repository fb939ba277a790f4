/*-------------------------------------------------------------------------
 *
 * gpu_graph_triangles.h
 *	  Counts the triangles of a graph in device memory.
 *
 * The graph is made undirected and simple.  Each edge then leads from its vertex of lower degree to the other
 * one, so that no list of edges is long.  A triangle is an edge and a vertex that is in the lists of both its
 * ends: the members of the shorter list are searched for in the longer one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_TRIANGLES_H
#define GPU_GRAPH_TRIANGLES_H

#include "kernels/graph/gpu_graph_build.h"

/* Is no edge: that of a vertex to itself. */
#define GPU_GRAPH_LOOP UINT64_MAX

/* An edge without its direction. */
struct GpuGraphUndirected
{
	const uint64_t *edges;
	uint64_t *words;

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t a = edges[i] >> 32;
		const uint64_t b = (uint32_t) edges[i];

		words[i] = a == b ? GPU_GRAPH_LOOP : a < b ? a << 32 | b : b << 32 | a;
	}
};

struct GpuGraphCountDegrees
{
	const uint64_t *words;
	uint32_t *degrees;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_atomic_add(&degrees[words[i] >> 32], 1);
		gpu_atomic_add(&degrees[(uint32_t) words[i]], 1);
	}
};

/* Turns an edge to its vertex of higher degree. */
struct GpuGraphTurn
{
	const uint64_t *words;
	const uint32_t *degrees;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t a = words[i] >> 32;
		const uint64_t b = (uint32_t) words[i];

		out[i] = degrees[a] <= degrees[b] ? words[i] : b << 32 | a;
	}
};

/* Counts the triangles of edges from the first on.  Whole warps call it. */
struct GpuGraphTriangles
{
	const uint64_t *sources;
	const uint64_t *offsets;
	const uint32_t *members;
	int64_t first;
	int64_t end;
	uint64_t *total;

	/* Is a vertex in a list from lo to hi - 1?  If not, *lo is where it would be: later ones are behind. */
	GPU_FN bool has(uint64_t *lo, uint64_t hi, uint32_t vertex) const
	{
		const uint64_t stop = hi;

		while (*lo < hi)
		{
			const uint64_t middle = *lo + (hi - *lo) / 2;

			if (members[middle] < vertex)
				*lo = middle + 1;
			else
				hi = middle;
		}
		return *lo < stop && members[*lo] == vertex;
	}

	GPU_FN uint64_t count(uint64_t edge) const
	{
		const uint32_t a = (uint32_t) (edge >> 32);
		const uint32_t b = (uint32_t) edge;
		const bool a_is_shorter = offsets[a + 1] - offsets[a] < offsets[b + 1] - offsets[b];
		const uint32_t shorter = a_is_shorter ? a : b;
		const uint32_t longer = a_is_shorter ? b : a;
		uint64_t lo = offsets[longer];
		uint64_t found = 0;

		for (uint64_t i = offsets[shorter]; i < offsets[shorter + 1]; i++)
			found += has(&lo, offsets[longer + 1], members[i]);
		return found;
	}

	GPU_FN void operator()(int64_t i) const
	{
		gpu_warp_add64(total, first + i < end ? count(sources[first + i]) : 0);
	}
};

/* Makes the undirected simple graph's edges, in *sort; how many. */
static inline int64_t
gpu_graph_make_simple(GpuGraph *graph, GpuScanStream *stream, GpuGraphSort *sort)
{
	GpuStream *s = &stream->stream;
	int64_t n;

	gpu_launch(s, graph->m, GpuGraphUndirected{ graph->edges.at(), sort->words.at() });
	gpu_graph_sort_edges(s, &sort->words, &sort->others, graph->m, graph->n);
	n = gpu_graph_count_firsts(stream, sort->words.at(), graph->m, GPU_GRAPH_LOOP - 1, sort->places.at());
	gpu_launch(s, graph->m, GpuGraphCompact{ sort->words.at(), sort->places.at(), sort->others.at() });
	std::swap(sort->words, sort->others);
	return n;
}

/* Turns the simple graph's n edges, and puts them in rows. */
static inline uint32_t
gpu_graph_make_lists(GpuGraph *graph, GpuStream *s, GpuGraphSort *sort, int64_t n,
					 GpuGraphArray<uint32_t> *degrees)
{
	if (!gpu_graph_take(graph, degrees, graph->n))
		return GPU_NO_MEMORY;
	gpu_fill(s, degrees->at(), 0, (size_t) graph->n * sizeof(uint32_t));
	gpu_launch(s, n, GpuGraphCountDegrees{ sort->words.at(), degrees->at() });
	gpu_launch(s, n, GpuGraphTurn{ sort->words.at(), degrees->at(), sort->others.at() });
	gpu_graph_sort_edges(s, &sort->others, &sort->words, n, graph->n);
	std::swap(sort->others, graph->sources);
	return gpu_graph_fill_rows(graph, s, graph->sources.at(), n, &graph->lists);
}

/* Makes the lists, if that has not been done. */
static inline uint32_t
gpu_graph_need_lists(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	GpuGraphArray<uint32_t> degrees;
	uint32_t status = GPU_NO_MEMORY;
	GpuGraphSort sort;

	if (graph->has_lists)
		return GPU_OK;
	if (gpu_graph_sort_open(graph, s, &sort, graph->m))
	{
		const int64_t n = gpu_graph_make_simple(graph, stream, &sort);

		status = gpu_graph_make_lists(graph, s, &sort, n, &degrees);
	}
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_sort_close(graph, &sort);
	gpu_graph_give(graph, &degrees);
	graph->has_lists = status == GPU_OK;
	if (!graph->has_lists)
	{
		gpu_graph_give(graph, &graph->sources);
		gpu_graph_give(graph, &graph->lists.offsets);
		gpu_graph_give(graph, &graph->lists.members);
	}
	return status;
}

/* Counts the triangles of n edges of the lists, from one on. */
static inline uint64_t
gpu_graph_count_triangles(GpuGraph *graph, GpuScanStream *stream, int64_t first, int64_t n)
{
	GpuStream *s = &stream->stream;
	uint64_t *total = stream->offsets;

	gpu_fill(s, total, 0, sizeof(uint64_t));
	gpu_launch(s, gpu_whole_blocks(n),
			   GpuGraphTriangles{ graph->sources.at(), graph->lists.offsets.at(), graph->lists.members.at(),
								  first, first + n, total });
	return gpu_graph_read(stream, total);
}

#endif /* GPU_GRAPH_TRIANGLES_H */
