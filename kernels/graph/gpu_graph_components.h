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

#endif /* GPU_GRAPH_COMPONENTS_H */
