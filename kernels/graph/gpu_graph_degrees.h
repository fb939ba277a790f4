/*-------------------------------------------------------------------------
 *
 * gpu_graph_degrees.h
 *	  How many edges begin and end at each vertex of a graph in device memory.
 *
 * Equal edges count as often as they are there, so the graph must have been made without a base.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_DEGREES_H
#define GPU_GRAPH_DEGREES_H

#include "kernels/graph/gpu_graph_build.h"

struct GpuGraphCountTargets
{
	const uint32_t *members;
	uint32_t *counts;

	GPU_FN void operator()(int64_t i) const
	{
		(void) gpu_atomic_add(&counts[members[i]], 1);
	}
};

/* Writes of each vertex, from one on, its code and its degrees. */
struct GpuGraphTellDegrees
{
	GpuGraphCodes codes;
	const uint64_t *offsets;
	const uint32_t *in;
	int64_t first;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t v = first + i;

		out[3 * i] = codes.of(v);
		out[3 * i + 1] = offsets[v + 1] - offsets[v];
		out[3 * i + 2] = in[v];
	}
};

/* Counts the edges that end at each vertex, if that has not been done; those that begin there are its row. */
static inline uint32_t
gpu_graph_need_degrees(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	const uint32_t status = gpu_graph_need_rows(graph, stream);

	if (status != GPU_OK || graph->in_degrees.at() != NULL)
		return status;
	if (!gpu_graph_take(graph, &graph->in_degrees, graph->n))
		return GPU_NO_MEMORY;
	gpu_fill(s, graph->in_degrees.at(), 0, (size_t) graph->n * sizeof(uint32_t));
	gpu_launch(s, graph->m, GpuGraphCountTargets{ graph->rows.members.at(), graph->in_degrees.at() });
	return gpu_graph_status(s);
}

/* Writes the degrees of n vertices, from one on, to device memory, three words for each. */
static inline void
gpu_graph_tell_degrees(const GpuGraph *graph, GpuStream *s, int64_t first, int64_t n, uint64_t *out)
{
	gpu_launch(s, n,
			   GpuGraphTellDegrees{ gpu_graph_codes(graph), graph->rows.offsets.at(), graph->in_degrees.at(),
									first, out });
}

#endif /* GPU_GRAPH_DEGREES_H */
