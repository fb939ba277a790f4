/*-------------------------------------------------------------------------
 *
 * graph_degrees.c
 *	  How many edges begin and end at each vertex.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "kernels/graph/graph_algorithms.h"

/* The counters, new ones of which are 0, of n vertices at least; NULL: no memory. */
static uint64_t *
ensure_counters(GraphHost *host, uint64_t *counters, uint64_t *size, uint64_t n)
{
	const uint64_t before = *size;
	uint64_t *grown = graph_grow(host, counters, size, n, sizeof(uint64_t));

	if (grown != NULL && *size > before)
		memset(grown + before, 0, (*size - before) * sizeof(uint64_t));
	return grown;
}

/* Counts n edges of a graph that has this many vertices by now.  Fails if there is no memory. */
bool
graph_degrees_add(GraphHost *host, GraphDegrees *degrees, uint32_t nvertices, const uint32_t *src,
				  const uint32_t *dst, int64_t n)
{
	uint64_t *out = ensure_counters(host, degrees->out, &degrees->nout, nvertices);
	uint64_t *in;

	if (out == NULL)
		return n == 0;
	degrees->out = out;
	in = ensure_counters(host, degrees->in, &degrees->nin, nvertices);
	if (in == NULL)
		return false;
	degrees->in = in;
	for (int64_t i = 0; i < n; i++)
	{
		out[src[i]]++;
		in[dst[i]]++;
	}
	return true;
}
