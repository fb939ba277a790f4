/*-------------------------------------------------------------------------
 *
 * graph_edges.c
 *	  Edges that an algorithm looks at more than once.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "kernels/graph/graph_algorithms.h"

/* Puts the sources of n edges into rows: a new one where the source changes. */
static void
put_rows(GraphEdges *edges, const uint32_t *src, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
	{
		if (edges->nrows == 0 || edges->rows[edges->nrows - 1].source != src[i])
			edges->rows[edges->nrows++].source = src[i];
		edges->rows[edges->nrows - 1].end = edges->n + (uint64_t) i + 1;
	}
}

/* Keeps n edges.  Fails if there is no memory. */
bool
graph_edges_add(GraphHost *host, GraphEdges *edges, const uint32_t *src, const uint32_t *dst, int64_t n)
{
	const uint64_t count = (uint64_t) n;
	uint32_t *targets;
	GraphRow *rows;

	if (n == 0)
		return true;
	targets = graph_grow(host, edges->targets, &edges->size, edges->n + count, sizeof(uint32_t));
	if (targets == NULL)
		return false;
	edges->targets = targets;
	rows = graph_grow(host, edges->rows, &edges->rows_size, edges->nrows + count, sizeof(GraphRow));
	if (rows == NULL)
		return false;
	edges->rows = rows;
	put_rows(edges, src, n);
	memcpy(targets + edges->n, dst, count * sizeof(uint32_t));
	edges->n += count;
	return true;
}

/* Gives the edges' memory back. */
void
graph_edges_release(GraphHost *host, GraphEdges *edges)
{
	if (edges->targets)
		host->release(host->context, edges->targets);
	if (edges->rows)
		host->release(host->context, edges->rows);
	memset(edges, 0, sizeof(*edges));
}
