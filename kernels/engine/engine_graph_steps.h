/*-------------------------------------------------------------------------
 *
 * engine_graph_steps.h
 *	  Steps on a graph that is whole: walks, paths, components, triangles, degrees, ranks.
 *
 * A scanner does a step of a request on the graph of its owner.  What a step answers goes to the staging
 * memory, in pieces that the request names.  Nothing here depends on where the graph came from, or whether it
 * is kept.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_GRAPH_STEPS_H
#define GPU_ENGINE_GRAPH_STEPS_H

#include "kernels/engine/engine_state.h"
#include "kernels/graph/gpu_graph_degrees.h"
#include "kernels/graph/gpu_graph_overlay.h"
#include "kernels/graph/gpu_graph_pagerank.h"
#include "kernels/graph/gpu_graph_route.h"

/* Copies a request's input of n items of so many words to the stream's memory; NULL: it is not in place. */
static inline const uint64_t *
gpu_graph_input(GpuEngine *engine, GpuScanStream *stream, const GpuRequest *r, int words)
{
	const uint64_t item = (uint64_t) words * sizeof(uint64_t);

	if (r->n < 0 || (uint64_t) r->n > stream->piece_bytes / item ||
		!gpu_staging_has(engine->options.staging_bytes, r->input, (uint64_t) r->n * item))
		return NULL;
	gpu_copy_bus(&stream->stream, stream->input, (unsigned char *) engine->options.staging + r->input,
				 (size_t) ((uint64_t) r->n * item));
	return (const uint64_t *) stream->input;
}

/*
 * Puts edges behind those of a graph's list, until it is known what the scan has found (K7).  If that is what
 * has changed, no edge may be marked: what is gone is not looked for among the marks.
 */
static inline void
gpu_graph_put_sent(GpuGraph *graph, GpuStream *s, const uint64_t *edges, int64_t n)
{
	GpuEdgeList *list = &graph->list;
	const int64_t at = list->n + graph->nsent;

	list->full |= n > list->room - at;
	if (list->full)
		return;
	if (graph->weighted)
		gpu_launch(s, n, GpuGraphPutSent{ edges, list->pairs + 2 * at, list->weights + at });
	else
		gpu_copy(s, list->pairs + 2 * at, edges, (size_t) n * 2 * sizeof(uint64_t));
	graph->nsent += n;
}

/* Adds edges that the sender has. */
static inline uint32_t
gpu_scanner_add_edges(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, const GpuRequest *r)
{
	const uint64_t *pairs = gpu_graph_input(engine, stream, r, graph->weighted ? 3 : 2);

	if (pairs == NULL)
		return GPU_NO_REQUEST;
	if (graph->weighted && graph->base != NULL && !graph->list.changes.done)
		return GPU_WITHDRAWN;
	if ((graph->base != NULL || graph->weighted) && (graph->origin.nhidden >= 0 || graph->list.changes.done))
		gpu_graph_put_sent(graph, &stream->stream, pairs, r->n);
	else if (r->n > 0)
	{
		if (graph->base != NULL && !gpu_graph_need_marks(graph, &stream->stream))
			return GPU_NO_MEMORY;
		graph->origin.nhidden = -1;
		graph->scans++;
		gpu_edges_add(stream, &graph->list, pairs, r->n);
	}
	return graph->list.full ? (uint32_t) GPU_TOO_LARGE : gpu_graph_status(&stream->stream);
}

/* Reaches what the sender names, in a walk that goes on, or in a new one. */
static inline uint32_t
gpu_scanner_reach(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint64_t *named = gpu_graph_input(engine, stream, r, 1);
	uint32_t status;

	if (named == NULL)
		return GPU_NO_REQUEST;
	if (r->form == GPU_GRAPH_START)
		status = gpu_graph_start(graph, stream, named, r->n);
	else
		status = gpu_graph_need_walk(graph, stream);
	if (status == GPU_OK && r->form == GPU_GRAPH_REACH)
		status = gpu_graph_reach(graph, stream, &graph->walk, named, r->n, r->each);
	r->found = graph->walk.n;
	return status;
}

/*
 * How many of n items, from r->next on, have room in a request's output of items of so many bytes; -1: none
 * has.
 */
static inline int64_t
gpu_graph_output(const GpuEngine *engine, const GpuScanStream *stream, const GpuRequest *r, int64_t n,
				 size_t item)
{
	if (r->next < 0 || r->next > n || r->cap < 0 || (uint64_t) r->cap > stream->piece_bytes / item ||
		!gpu_staging_has(engine->options.staging_bytes, r->output, (uint64_t) r->cap * item))
		return -1;
	return n - r->next < r->cap ? n - r->next : r->cap;
}

static inline uint32_t
gpu_scanner_walk(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint32_t before = graph->walk.depths;
	uint64_t *reached = NULL;
	uint32_t status;

	if (r->cap != 0)
	{
		reached = (uint64_t *) ((unsigned char *) engine->options.staging + r->output);
		if (r->next != 0 || r->n < 0 || gpu_graph_output(engine, stream, r, r->n, sizeof(uint64_t)) != r->n)
			return GPU_NO_REQUEST;
	}
	status = gpu_graph_walk(graph, stream, r->n, reached);
	r->found = graph->walk.n;
	r->counted = graph->walk.depths - before;
	r->taken = graph->walk.n - graph->walk.first;
	return status;
}

static inline uint32_t
gpu_scanner_tell_reached(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const int64_t n = gpu_graph_output(engine, stream, r, graph->walk.n, sizeof(GpuReached));

	if (n < 0)
		return GPU_NO_REQUEST;
	gpu_graph_reached(graph, &stream->stream, r->next, n, (GpuReached *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) n * sizeof(GpuReached));
	r->found = n;
	return GPU_OK;
}

static inline uint32_t
gpu_scanner_connect(GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint32_t status = gpu_graph_connect(graph, stream);

	r->found = gpu_graph_nconnected(graph);
	return status;
}

static inline uint32_t
gpu_scanner_tell_connected(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const size_t item = 2 * sizeof(uint64_t);
	const int64_t n = gpu_graph_output(engine, stream, r, gpu_graph_nconnected(graph), item);

	if (!graph->connected)
		return GPU_WITHDRAWN;
	if (n < 0)
		return GPU_NO_REQUEST;
	gpu_graph_connected(graph, &stream->stream, r->next, n, (uint64_t *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) n * item);
	r->found = n;
	return GPU_OK;
}

static inline uint32_t
gpu_scanner_measure(GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint32_t status = gpu_graph_count_sizes(graph, stream);

	r->found = graph->nsizes;
	return status;
}

static inline uint32_t
gpu_scanner_tell_sizes(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const size_t item = 2 * sizeof(uint64_t);
	const int64_t n = gpu_graph_output(engine, stream, r, graph->nsizes, item);

	if (graph->nsizes < 0)
		return GPU_WITHDRAWN;
	if (n < 0)
		return GPU_NO_REQUEST;
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output,
				 graph->sizes.at() + 2 * r->next, (size_t) n * item);
	r->found = n;
	return GPU_OK;
}

/* Says the paths to vertices of the input. */
static inline uint32_t
gpu_scanner_tell_paths(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint64_t *named = gpu_graph_input(engine, stream, r, 1);

	/* The sums have room for one more. */
	if (named == NULL || (uint64_t) r->n >= stream->piece_bytes / sizeof(uint64_t) || r->next != 0 ||
		gpu_graph_output(engine, stream, r, r->cap, sizeof(uint64_t)) < 0)
		return GPU_NO_REQUEST;
	if (!graph->walk.begun)
		return GPU_WITHDRAWN;
	r->taken = gpu_graph_paths(graph, stream, named, r->n, (uint64_t *) stream->other, r->cap,
							   (uint64_t *) stream->output, &r->found);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) r->found * sizeof(uint64_t));
	return gpu_graph_status(&stream->stream);
}

/* Begins a search for a path of least cost, or goes on with it. */
static inline uint32_t
gpu_scanner_route(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint64_t *named = gpu_graph_input(engine, stream, r, 1);
	const uint64_t *words = (const uint64_t *) ((unsigned char *) engine->options.staging + r->input);
	uint32_t status = GPU_OK;

	if (named == NULL || (r->n != 0 && (r->n != 3 || words[0] == words[1])))
		return GPU_NO_REQUEST;
	if (r->n != 0)
		status = gpu_route_begin(graph, stream, named, words[2]);
	r->counted = 0;
	if (status == GPU_OK)
		status = gpu_route_go_on(graph, stream, r->next, &r->counted);
	r->found = graph->route.length;
	r->taken = !graph->route.done;
	return status;
}

static inline uint32_t
gpu_scanner_tell_route(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const size_t item = 2 * sizeof(uint64_t);
	const int64_t length = graph->route.length;

	if (r->next != 0 || gpu_graph_output(engine, stream, r, length, item) != length)
		return GPU_NO_REQUEST;
	if (length == 0)
		return GPU_WITHDRAWN;
	gpu_route_tell(graph, &stream->stream, (uint64_t *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) length * item);
	r->found = length;
	return GPU_OK;
}

/* Begins a search for a path, or goes on with it. */
static inline uint32_t
gpu_scanner_seek(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint64_t *named = gpu_graph_input(engine, stream, r, 1);
	const uint64_t *codes = (const uint64_t *) ((unsigned char *) engine->options.staging + r->input);
	uint32_t status = GPU_OK;
	int64_t before;

	if (named == NULL || (r->n != 0 && (r->n != 2 || codes[0] == codes[1])))
		return GPU_NO_REQUEST;
	if (r->n != 0)
		status = gpu_graph_seek_begin(graph, stream, named);
	before = (int64_t) graph->walk.depths + graph->back_walk.depths;
	if (status == GPU_OK)
		status = gpu_graph_seek(graph, stream, r->next);
	r->found = gpu_graph_path_length(graph);
	r->counted = (int64_t) graph->walk.depths + graph->back_walk.depths - before;
	r->taken = gpu_graph_seeks(graph);
	return status;
}

static inline uint32_t
gpu_scanner_tell_path(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const int64_t length = gpu_graph_path_length(graph);

	if (r->next != 0 || gpu_graph_output(engine, stream, r, length, sizeof(uint64_t)) != length)
		return GPU_NO_REQUEST;
	if (length == 0)
		return GPU_WITHDRAWN;
	gpu_graph_path(graph, &stream->stream, (uint64_t *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) length * sizeof(uint64_t));
	r->found = length;
	return GPU_OK;
}

static inline uint32_t
gpu_scanner_triangles(GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint32_t status = gpu_graph_need_lists(graph, stream);
	int64_t n;

	if (status != GPU_OK)
		return status;
	n = graph->lists.n - r->next;
	if (r->next < 0 || n < 0 || r->n < 0)
		return GPU_NO_REQUEST;
	n = n < r->n ? n : r->n;
	r->joined = gpu_graph_count_triangles(graph, stream, r->next, n);
	r->found = graph->lists.n - r->next - n;
	return gpu_graph_status(&stream->stream);
}

/* Counts the edges at each vertex. */
static inline uint32_t
gpu_scanner_count_degrees(GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	r->found = graph->n;
	return graph->parallel && !graph->both ? gpu_graph_need_degrees(graph, stream) : (uint32_t) GPU_WITHDRAWN;
}

static inline uint32_t
gpu_scanner_tell_degrees(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const size_t item = 3 * sizeof(uint64_t);
	const int64_t n = gpu_graph_output(engine, stream, r, graph->n, item);

	if (graph->in_degrees.at() == NULL)
		return GPU_WITHDRAWN;
	if (n < 0)
		return GPU_NO_REQUEST;
	gpu_graph_tell_degrees(graph, &stream->stream, r->next, n, (uint64_t *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) n * item);
	r->found = n;
	return GPU_OK;
}

/* Begins PageRank, or goes on with it. */
static inline uint32_t
gpu_scanner_rank(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	uint32_t status = GPU_OK;
	double input[2];

	if (r->n != 2 || r->next < 0 || !gpu_staging_has(engine->options.staging_bytes, r->input, sizeof(input)))
		return GPU_NO_REQUEST;
	if (!graph->parallel || graph->both)
		return GPU_WITHDRAWN;
	memcpy(input, (unsigned char *) engine->options.staging + r->input, sizeof(input));
	if (r->each)
		status = gpu_graph_begin_ranks(graph, stream);
	r->counted = 0;
	if (status == GPU_OK)
		status = gpu_graph_go_on_ranks(graph, stream, input[0], input[1], r->next, &r->counted);
	r->found = graph->n;
	memcpy(&r->joined, &graph->ranks.difference, sizeof(r->joined));
	return status;
}

static inline uint32_t
gpu_scanner_tell_ranks(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const size_t item = 2 * sizeof(uint64_t);
	const int64_t n = gpu_graph_output(engine, stream, r, graph->n, item);

	if (!graph->ranks.begun)
		return GPU_WITHDRAWN;
	if (n < 0)
		return GPU_NO_REQUEST;
	gpu_graph_tell_ranks(graph, &stream->stream, r->next, n, (uint64_t *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) n * item);
	r->found = n;
	return GPU_OK;
}

#endif /* GPU_ENGINE_GRAPH_STEPS_H */
