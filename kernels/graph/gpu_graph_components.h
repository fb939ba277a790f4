/*-------------------------------------------------------------------------
 *
 * gpu_graph_components.h
 *	  Weakly connected components of a graph in device memory.
 *
 * Each vertex has a root, which is itself at first.  An edge makes the greater of its vertices' roots a child
 * of the less.  A vertex is never the child of a greater one, so the root of a component is its least vertex.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_COMPONENTS_H
#define GPU_GRAPH_COMPONENTS_H

#include "kernels/graph/gpu_graph.h"

struct GpuGraphOwnRoot
{
	uint32_t *roots;

	GPU_FN void operator()(int64_t v) const
	{
		roots[v] = (uint32_t) v;
	}
};

/* The root of a vertex by now.  Those on the way become children of their grandparents. */
GPU_FN uint32_t
gpu_graph_root(uint32_t *roots, uint32_t vertex)
{
	uint32_t parent = gpu_fresh(&roots[vertex]);

	while (parent != vertex)
	{
		uint32_t next = gpu_fresh(&roots[parent]);

		/* Another thread may have set what is nearer to the root: this is an ancestor all the same. */
		if (next != parent)
			gpu_atomic_exchange(&roots[vertex], next);
		vertex = parent;
		parent = next;
	}
	return vertex;
}

/* The same, of a graph whose edges are connected: changes nothing. */
GPU_FN uint32_t
gpu_graph_last_root(const uint32_t *roots, uint32_t vertex)
{
	for (uint32_t parent; (parent = gpu_fresh(&roots[vertex])) != vertex;)
		vertex = parent;
	return vertex;
}

/* Connects the vertices of an edge. */
struct GpuGraphConnect
{
	const uint64_t *edges;
	uint32_t *roots;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t a = gpu_graph_root(roots, (uint32_t) (edges[i] >> 32));
		uint32_t b = gpu_graph_root(roots, (uint32_t) edges[i]);

		while (a != b)
		{
			const uint32_t greater = a > b ? a : b;
			const uint32_t less = a > b ? b : a;
			const uint32_t was = gpu_atomic_swap_if(&roots[greater], greater, less);

			if (was == greater)
				return;
			a = gpu_graph_root(roots, was);
			b = gpu_graph_root(roots, less);
		}
	}
};

/* Each thread sets its own vertex and no other: what it read of that may be older than what is there. */
struct GpuGraphFlatten
{
	uint32_t *roots;

	GPU_FN void operator()(int64_t v) const
	{
		gpu_atomic_exchange(&roots[v], gpu_graph_last_root(roots, (uint32_t) v));
	}
};

/* Says of vertices what component they are of. */
struct GpuGraphConnected
{
	const uint64_t *codes;
	const uint32_t *roots;
	int64_t first;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		out[2 * i] = codes[first + i];
		out[2 * i + 1] = codes[roots[first + i]];
	}
};

/* Vertices of a thread that counts those of components: neighbours are mostly of one. */
#define GPU_GRAPH_SIZE_STRETCH 32

/* Counts the vertices of each root. */
struct GpuGraphCountRoots
{
	const uint32_t *roots;
	int64_t n;
	uint32_t *counts;

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t end = (i + 1) * GPU_GRAPH_SIZE_STRETCH;
		uint32_t same = 0;

		for (int64_t v = i * GPU_GRAPH_SIZE_STRETCH; v < end && v < n; v++)
		{
			same++;
			if (v + 1 < end && v + 1 < n && roots[v + 1] == roots[v])
				continue;
			gpu_atomic_add(&counts[roots[v]], same);
			same = 0;
		}
	}
};

/* 1 for each vertex that is a root; 0 behind the last one. */
struct GpuGraphRoots
{
	const uint32_t *roots;
	int64_t n;
	uint32_t *places;

	GPU_FN void operator()(int64_t v) const
	{
		places[v] = v < n && roots[v] == v;
	}
};

/* Says of each component its least vertex, and how many it has. */
struct GpuGraphSizes
{
	const uint64_t *codes;
	const uint32_t *counts;
	const uint32_t *places;
	uint64_t *sizes;

	GPU_FN void operator()(int64_t v) const
	{
		if (places[v + 1] == places[v])
			return;
		sizes[2 * (int64_t) places[v]] = codes[v];
		sizes[2 * (int64_t) places[v] + 1] = counts[v];
	}
};

/* Finds the components, if that has not been done. */
static inline uint32_t
gpu_graph_connect(GpuGraph *graph, GpuStream *s)
{
	if (graph->connected)
		return GPU_OK;
	if (!gpu_graph_take(graph, &graph->roots, graph->n))
		return GPU_NO_MEMORY;
	gpu_launch(s, graph->n, GpuGraphOwnRoot{ graph->roots.at() });
	gpu_launch(s, graph->m, GpuGraphConnect{ graph->edges.at(), graph->roots.at() });
	gpu_launch(s, graph->n, GpuGraphFlatten{ graph->roots.at() });
	graph->connected = true;
	return GPU_OK;
}

/* Writes n vertices, from one on, with their components' least, to device memory. */
static inline void
gpu_graph_connected(GpuGraph *graph, GpuStream *s, int64_t first, int64_t n, uint64_t *out)
{
	gpu_launch(s, n, GpuGraphConnected{ graph->codes.at(), graph->roots.at(), first, out });
}

/* Counts the vertices of each component, which has its least vertex and their number in graph->sizes then. */
static inline uint32_t
gpu_graph_count_sizes(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	const int64_t n = graph->n;
	GpuGraphArray<uint32_t> counts;
	GpuGraphArray<uint32_t> places;
	uint32_t status = gpu_graph_connect(graph, s);

	if (status != GPU_OK || graph->nsizes >= 0)
		return status;
	status = GPU_NO_MEMORY;
	if (gpu_graph_take(graph, &counts, n) && gpu_graph_take(graph, &places, n + 1) &&
		gpu_graph_use_temp(graph, s, n + 1))
	{
		gpu_fill(s, counts.at(), 0, (size_t) n * sizeof(uint32_t));
		gpu_launch(s, (n + GPU_GRAPH_SIZE_STRETCH - 1) / GPU_GRAPH_SIZE_STRETCH,
				   GpuGraphCountRoots{ graph->roots.at(), n, counts.at() });
		gpu_launch(s, n + 1, GpuGraphRoots{ graph->roots.at(), n, places.at() });
		gpu_exclusive_sum(s, places.at(), places.at(), n + 1);
		graph->nsizes = gpu_graph_read_sum(stream, &places.at()[n]);
		if (gpu_graph_take(graph, &graph->sizes, 2 * graph->nsizes))
		{
			gpu_launch(s, n, GpuGraphSizes{ graph->codes.at(), counts.at(), places.at(), graph->sizes.at() });
			status = GPU_OK;
		}
	}
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_give(graph, &counts);
	gpu_graph_give(graph, &places);
	if (status != GPU_OK)
		graph->nsizes = -1;
	return status;
}

#endif /* GPU_GRAPH_COMPONENTS_H */
