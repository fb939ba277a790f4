/*-------------------------------------------------------------------------
 *
 * gpu_graph_components.h
 *	  Weakly connected components of a graph in device memory.
 *
 * Each vertex has a root, which is itself at first.  An edge makes the greater of its vertices' roots a child
 * of the less, by their codes.  A vertex is never the child of a greater one, so the root of a component is
 * its least vertex.
 *
 * A graph that lies over its base begins with the base's roots, if no edge is gone, and connects the edges
 * that are new.  If any are gone, it connects all others anew, and leaves out vertices that have no edge any
 * more.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_COMPONENTS_H
#define GPU_GRAPH_COMPONENTS_H

#include "kernels/graph/gpu_graph.h"

/* Makes vertices their own roots, from one on. */
struct GpuGraphOwnRoot
{
	uint32_t *roots;
	int64_t first;

	GPU_FN void operator()(int64_t v) const
	{
		roots[first + v] = (uint32_t) (first + v);
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

/* Vertices whose numbers ascend as their codes do. */
struct GpuGraphByNumber
{
	GPU_FN bool is_less(uint32_t a, uint32_t b) const
	{
		return a < b;
	}
};

/* Any vertices. */
struct GpuGraphByCode
{
	GpuGraphCodes codes;

	GPU_FN bool is_less(uint32_t a, uint32_t b) const
	{
		return codes.of(a) < codes.of(b);
	}
};

/* Connects two vertices. */
template <class Order>
GPU_FN void
gpu_graph_connect_two(uint32_t *roots, const Order &order, uint32_t a, uint32_t b)
{
	a = gpu_graph_root(roots, a);
	b = gpu_graph_root(roots, b);
	while (a != b)
	{
		const bool is_less = order.is_less(a, b);
		const uint32_t greater = is_less ? b : a;
		const uint32_t less = is_less ? a : b;
		const uint32_t was = gpu_atomic_swap_if(&roots[greater], greater, less);

		if (was == greater)
			return;
		a = gpu_graph_root(roots, was);
		b = gpu_graph_root(roots, less);
	}
}

/* Connects the vertices of an edge. */
template <class Order> struct GpuGraphConnect
{
	const uint64_t *edges;
	uint32_t *roots;
	Order order;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_graph_connect_two(roots, order, (uint32_t) (edges[i] >> 32), (uint32_t) edges[i]);
	}
};

/* The same of an edge that is not gone, and notes that they have one.  gone: NULL, if none of them is. */
template <class Order> struct GpuGraphConnectLeft
{
	const uint64_t *edges;
	const uint32_t *gone;
	uint32_t *roots;
	Order order;
	uint32_t *has;

	GPU_FN void note(uint32_t v) const
	{
		if (gpu_fresh(&has[v]) == 0)
			gpu_atomic_exchange(&has[v], 1);
	}

	GPU_FN void operator()(int64_t i) const
	{
		const uint32_t source = (uint32_t) (edges[i] >> 32);
		const uint32_t target = (uint32_t) edges[i];

		if (gone != NULL && (gone[i / 32] >> i % 32 & 1) != 0)
			return;
		note(source);
		note(target);
		gpu_graph_connect_two(roots, order, source, target);
	}
};

/* Lists the vertices that have an edge. */
struct GpuGraphPresent
{
	const uint32_t *places;
	uint32_t *out;

	GPU_FN void operator()(int64_t v) const
	{
		if (places[v + 1] != places[v])
			out[places[v]] = (uint32_t) v;
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
	GpuGraphCodes codes;
	const uint32_t *roots;
	const uint32_t *vertices; /* NULL: all */
	int64_t first;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t v = vertices != NULL ? (int64_t) vertices[first + i] : first + i;

		out[2 * i] = codes.of(v);
		out[2 * i + 1] = codes.of(roots[v]);
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

/* 1 for each vertex that is a root, and has an edge; 0 behind the last one. */
struct GpuGraphRoots
{
	const uint32_t *roots;
	const uint32_t *present; /* NULL: all have one */
	int64_t n;
	uint32_t *places;

	GPU_FN void operator()(int64_t v) const
	{
		places[v] = v < n && roots[v] == v && (present == NULL || present[v + 1] != present[v]);
	}
};

/* Says of each component its least vertex, and how many it has. */
struct GpuGraphSizes
{
	GpuGraphCodes codes;
	const uint32_t *counts;
	const uint32_t *places;
	uint64_t *sizes;

	GPU_FN void operator()(int64_t v) const
	{
		if (places[v + 1] == places[v])
			return;
		sizes[2 * (int64_t) places[v]] = codes.of(v);
		sizes[2 * (int64_t) places[v] + 1] = counts[v];
	}
};

/* Finds the roots of vertices, by edges whose order of numbers is that of codes. */
static inline void
gpu_graph_find_roots(GpuStream *s, int64_t n, const uint64_t *edges, int64_t m, uint32_t *roots)
{
	gpu_launch(s, n, GpuGraphOwnRoot{ roots, 0 });
	gpu_launch(s, m, GpuGraphConnect<GpuGraphByNumber>{ edges, roots, {} });
	gpu_launch(s, n, GpuGraphFlatten{ roots });
}

/* Connects the edges that a graph has beside its base's, none of which is gone. */
static inline uint32_t
gpu_graph_connect_more(GpuGraph *graph, GpuStream *s)
{
	GpuGraphOverlay *over = &graph->over;
	const int64_t n = gpu_graph_base_n(graph);
	uint32_t *roots = graph->roots.at();

	if (over->base_roots.at() == NULL)
	{
		if (!gpu_graph_take(graph, &over->base_roots, n))
			return GPU_NO_MEMORY;
		gpu_graph_find_roots(s, n, graph->edges.at(), graph->m, over->base_roots.at());
	}
	gpu_copy(s, roots, over->base_roots.at(), (size_t) n * sizeof(uint32_t));
	gpu_launch(s, over->n, GpuGraphOwnRoot{ roots, n });
	gpu_launch(s, over->m,
			   GpuGraphConnect<GpuGraphByCode>{ over->edges.at(), roots, { gpu_graph_codes(graph) } });
	gpu_launch(s, graph->n, GpuGraphFlatten{ roots });
	return GPU_OK;
}

/* Lists the vertices that have an edge; their marks become places. */
static inline uint32_t
gpu_graph_list_present(GpuGraph *graph, GpuScanStream *stream)
{
	GpuGraphOverlay *over = &graph->over;
	GpuStream *s = &stream->stream;
	uint32_t *present = over->present.at();

	gpu_exclusive_sum(s, present, present, graph->n + 1);
	over->nvertices = gpu_graph_read_sum(stream, &present[graph->n]);
	if (!gpu_ok(s))
		return s->status;
	if (!gpu_graph_take(graph, &over->vertices, over->nvertices))
		return GPU_NO_MEMORY;
	gpu_launch(s, graph->n, GpuGraphPresent{ present, over->vertices.at() });
	return GPU_OK;
}

/* Connects the edges of a graph and its base, some of which are gone. */
static inline uint32_t
gpu_graph_connect_left(GpuGraph *graph, GpuScanStream *stream)
{
	GpuGraphOverlay *over = &graph->over;
	GpuStream *s = &stream->stream;
	uint32_t *roots = graph->roots.at();

	if (!gpu_graph_take(graph, &over->present, graph->n + 1) || !gpu_graph_use_temp(graph, s, graph->n + 1))
		return GPU_NO_MEMORY;
	gpu_fill(s, over->present.at(), 0, (size_t) (graph->n + 1) * sizeof(uint32_t));
	gpu_launch(s, graph->n, GpuGraphOwnRoot{ roots, 0 });
	gpu_launch(s, graph->m,
			   GpuGraphConnectLeft<GpuGraphByNumber>{
				   graph->edges.at(), over->gone.at(), roots, {}, over->present.at() });
	gpu_launch(s, over->m,
			   GpuGraphConnectLeft<GpuGraphByCode>{
				   over->edges.at(), NULL, roots, { gpu_graph_codes(graph) }, over->present.at() });
	gpu_launch(s, graph->n, GpuGraphFlatten{ roots });
	return gpu_graph_list_present(graph, stream);
}

/* Finds the components, if that has not been done. */
static inline uint32_t
gpu_graph_connect(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	uint32_t status = GPU_OK;

	if (graph->connected)
		return GPU_OK;
	if (!gpu_graph_take(graph, &graph->roots, graph->n))
		return GPU_NO_MEMORY;
	if (!graph->over.is)
		gpu_graph_find_roots(s, graph->n, graph->edges.at(), graph->m, graph->roots.at());
	else if (graph->over.ngone == 0)
		status = gpu_graph_connect_more(graph, s);
	else
		status = gpu_graph_connect_left(graph, stream);
	graph->connected = status == GPU_OK;
	return status;
}

/* How many vertices have a component, once these have been found. */
static inline int64_t
gpu_graph_nconnected(const GpuGraph *graph)
{
	return graph->over.ngone > 0 ? graph->over.nvertices : graph->n;
}

/* Writes n vertices, from one on, with their components' least, to device memory. */
static inline void
gpu_graph_connected(GpuGraph *graph, GpuStream *s, int64_t first, int64_t n, uint64_t *out)
{
	gpu_launch(s, n,
			   GpuGraphConnected{ gpu_graph_codes(graph), graph->roots.at(), graph->over.vertices.at(), first,
								  out });
}

/* Counts the vertices of each component, which has its least vertex and their number in graph->sizes then. */
static inline uint32_t
gpu_graph_count_sizes(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	const int64_t n = graph->n;
	GpuGraphArray<uint32_t> counts;
	GpuGraphArray<uint32_t> places;
	uint32_t status = gpu_graph_connect(graph, stream);

	if (status != GPU_OK || graph->nsizes >= 0)
		return status;
	status = GPU_NO_MEMORY;
	if (gpu_graph_take(graph, &counts, n) && gpu_graph_take(graph, &places, n + 1) &&
		gpu_graph_use_temp(graph, s, n + 1))
	{
		gpu_fill(s, counts.at(), 0, (size_t) n * sizeof(uint32_t));
		gpu_launch(s, (n + GPU_GRAPH_SIZE_STRETCH - 1) / GPU_GRAPH_SIZE_STRETCH,
				   GpuGraphCountRoots{ graph->roots.at(), n, counts.at() });
		gpu_launch(s, n + 1, GpuGraphRoots{ graph->roots.at(), graph->over.present.at(), n, places.at() });
		gpu_exclusive_sum(s, places.at(), places.at(), n + 1);
		graph->nsizes = gpu_graph_read_sum(stream, &places.at()[n]);
		if (gpu_graph_take(graph, &graph->sizes, 2 * graph->nsizes))
		{
			gpu_launch(s, n,
					   GpuGraphSizes{ gpu_graph_codes(graph), counts.at(), places.at(), graph->sizes.at() });
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
