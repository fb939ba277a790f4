/*-------------------------------------------------------------------------
 *
 * graph_components.c
 *	  Weakly connected components by union-find.
 *
 * The edges are not kept.  Of two roots the one that arrived first stays one, and each search halves its
 * path.
 *
 *-------------------------------------------------------------------------
 */
#include "kernels/graph/graph_algorithms.h"

static inline uint32_t
find_root(uint32_t *parent, uint32_t vertex)
{
	while (parent[vertex] != vertex)
	{
		parent[vertex] = parent[parent[vertex]];
		vertex = parent[vertex];
	}
	return vertex;
}

/* Connects the vertices of n edges of a graph that has nvertices by now.  Fails if there is no memory. */
bool
graph_components_add(GraphHost *host, GraphComponents *components, uint32_t nvertices, const uint32_t *src,
					 const uint32_t *dst, int64_t n)
{
	uint32_t *parent = graph_grow(host, components->parent, &components->size, nvertices, sizeof(uint32_t));

	if (parent == NULL)
		return n == 0;
	components->parent = parent;
	for (; components->n < nvertices; components->n++)
		parent[components->n] = components->n;
	for (int64_t i = 0; i < n; i++)
	{
		const uint32_t a = find_root(parent, src[i]);
		const uint32_t b = find_root(parent, dst[i]);

		if (a < b)
			parent[b] = a;
		else
			parent[a] = b;
	}
	return true;
}

static inline bool
is_less(const uint64_t *codes, int words, uint32_t a, uint32_t b)
{
	const uint64_t *x = codes + (uint64_t) a * (uint64_t) words;
	const uint64_t *y = codes + (uint64_t) b * (uint64_t) words;

	return x[0] != y[0] || words == 1 ? x[0] < y[0] : x[1] < y[1];
}

/*
 * For each vertex, which one of its component has the least code.  codes: one or two words for each vertex.
 * NULL: no memory.
 */
uint32_t *
graph_components_least(GraphHost *host, GraphComponents *components, const uint64_t *codes, int words)
{
	const uint32_t n = components->n;
	uint32_t *parent = components->parent;
	uint32_t *least = graph_allocate(host, n, sizeof(uint32_t), false);

	if (least == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		least[i] = i;
	for (uint32_t i = 0; i < n; i++)
	{
		const uint32_t root = find_root(parent, i);

		if (is_less(codes, words, i, least[root]))
			least[root] = i;
	}
	for (uint32_t i = 0; i < n; i++)
		least[i] = least[find_root(parent, i)];
	return least;
}
