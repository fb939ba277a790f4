/*-------------------------------------------------------------------------
 *
 * engine_graphs.h
 *	  Graphs that the engine keeps between requests: one for an owner at most.
 *
 * Scanners make them, and work on them.  An owner has one request at a time, so a graph is used by one
 * scanner at a time; the lock is for the list of all.  A graph does not depend on the tree that its edges
 * came from: its owner gives it up, by a request or by beginning another one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_GRAPHS_H
#define GPU_ENGINE_GRAPHS_H

#include "kernels/engine/engine_state.h"

/* An owner's graph; NULL: it has none. */
static inline GpuGraph *
gpu_engine_graph(GpuEngine *engine, uint64_t owner)
{
	std::lock_guard<std::mutex> guard(engine->graphs_mutex);
	auto found = engine->graphs.find(owner);

	return found != engine->graphs.end() ? found->second : NULL;
}

/* Takes an owner's graph away, if it has one. */
static inline void
gpu_engine_drop_graph(GpuEngine *engine, uint64_t owner)
{
	GpuGraph *graph = gpu_engine_graph(engine, owner);

	if (graph == NULL)
		return;
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);
		engine->graphs.erase(owner);
	}
	gpu_graph_close(graph);
}

/* Begins an owner's graph with room for so many edges. */
static inline uint32_t
gpu_engine_begin_graph(GpuEngine *engine, uint64_t owner, int64_t edges)
{
	GpuGraph *graph;

	gpu_engine_drop_graph(engine, owner);
	if (2 * edges >= GPU_MAX_ITEMS)
		return GPU_TOO_LARGE;
	graph = gpu_graph_open(&engine->pool, owner, edges);
	if (graph == NULL)
		return GPU_NO_MEMORY;
	try
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);
		engine->graphs[owner] = graph;
	}
	catch (const std::bad_alloc &)
	{
		gpu_graph_close(graph);
		return GPU_NO_MEMORY;
	}
	return GPU_OK;
}

/* Deletes the graphs of an engine that nobody uses any more; the pool's memory is gone. */
static inline void
gpu_engine_delete_graphs(GpuEngine *engine)
{
	for (const auto &owned : engine->graphs)
		delete owned.second;
}

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

/* Adds edges that the sender has. */
static inline uint32_t
gpu_scanner_add_edges(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, const GpuRequest *r)
{
	GpuEdgeList *list = &graph->list;
	const uint64_t *pairs = gpu_graph_input(engine, stream, r, 2);

	if (pairs == NULL)
		return GPU_NO_REQUEST;
	list->full |= r->n > list->room - list->n;
	if (list->full)
		return GPU_TOO_LARGE;
	gpu_copy(&stream->stream, list->pairs + 2 * list->n, pairs, (size_t) r->n * 2 * sizeof(uint64_t));
	list->n += r->n;
	return GPU_OK;
}

static inline uint32_t
gpu_scanner_reach(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint64_t *named = gpu_graph_input(engine, stream, r, 1);
	uint32_t status;

	if (named == NULL)
		return GPU_NO_REQUEST;
	status = gpu_graph_reach(graph, stream, named, r->n, r->each);
	r->found = graph->walk.n;
	return status;
}

static inline uint32_t
gpu_scanner_walk(GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const uint32_t before = graph->walk.depths;
	const uint32_t status = gpu_graph_walk(graph, stream, r->n);

	r->found = graph->walk.n;
	r->counted = graph->walk.depths - before;
	r->taken = graph->walk.n - graph->walk.first;
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
gpu_scanner_tell_connected(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	const size_t item = 2 * sizeof(uint64_t);
	const int64_t n = gpu_graph_output(engine, stream, r, graph->n, item);

	if (n < 0)
		return GPU_NO_REQUEST;
	if (!graph->connected)
		return GPU_WITHDRAWN;
	gpu_graph_connected(graph, &stream->stream, r->next, n, (uint64_t *) stream->output);
	gpu_copy_bus(&stream->stream, (unsigned char *) engine->options.staging + r->output, stream->output,
				 (size_t) n * item);
	r->found = n;
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

/* A step on a graph whose edges are not all there yet; or, with them, the first. */
static inline uint32_t
gpu_scanner_make_graph(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	uint32_t status;

	if (r->form == GPU_GRAPH_ADD)
		return gpu_scanner_add_edges(engine, stream, graph, r);
	if (r->form != GPU_GRAPH_END)
		return GPU_NO_REQUEST;
	status = gpu_graph_end(graph, stream, r->each);
	r->found = graph->n;
	return status;
}

/* A step on a graph that has all edges. */
static inline uint32_t
gpu_scanner_use_graph(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	switch (r->form)
	{
		case GPU_GRAPH_REACH:
			return gpu_scanner_reach(engine, stream, graph, r);
		case GPU_GRAPH_WALK:
			return gpu_scanner_walk(stream, graph, r);
		case GPU_GRAPH_REACHED:
			return gpu_scanner_tell_reached(engine, stream, graph, r);
		case GPU_GRAPH_CONNECT:
			return gpu_graph_connect(graph, &stream->stream);
		case GPU_GRAPH_CONNECTED:
			return gpu_scanner_tell_connected(engine, stream, graph, r);
		case GPU_GRAPH_TRIANGLES:
			return gpu_scanner_triangles(stream, graph, r);
		default:
			return GPU_NO_REQUEST;
	}
}

/* Does a step; its status. */
static inline uint32_t
gpu_scanner_step(GpuEngine *engine, GpuScanStream *stream, GpuRequest *r)
{
	GpuGraph *graph;

	if (r->form == GPU_GRAPH_BEGIN)
		return r->n >= 0 ? gpu_engine_begin_graph(engine, r->owner, r->n) : (uint32_t) GPU_NO_REQUEST;
	if (r->form == GPU_GRAPH_DROP)
	{
		gpu_engine_drop_graph(engine, r->owner);
		return GPU_OK;
	}
	graph = gpu_engine_graph(engine, r->owner);
	if (graph == NULL)
		return GPU_WITHDRAWN;
	return graph->ended ? gpu_scanner_use_graph(engine, stream, graph, r)
						: gpu_scanner_make_graph(engine, stream, graph, r);
}

/* Answers a request that is about a graph. */
static inline void
gpu_scanner_do_graph(GpuEngine *engine, GpuScanStream *stream, GpuRequest *request)
{
	GpuStream *s = &stream->stream;
	void *temp = s->temp;
	const size_t temp_bytes = s->temp_bytes;
	uint32_t status;

	s->launches = 0;
	s->bus_bytes = 0;
	request->batch = 1;
	gpu_event_record(s, &stream->started);
	status = gpu_scanner_step(engine, stream, request);
	gpu_event_record(s, &stream->stopped);
	gpu_finish(s);
	s->temp = temp;
	s->temp_bytes = temp_bytes;
	request->device_ns = gpu_event_ns(s, &stream->started, &stream->stopped);
	request->launches = s->launches;
	request->bus_bytes = s->bus_bytes;
	gpu_engine_answer(engine, s, request, status);
}

/* Lets a scanner's stream add to the graph that its request names; false: there is none that takes edges. */
static inline bool
gpu_scanner_use_edges(GpuEngine *engine, GpuScanStream *stream, const GpuRequest *request)
{
	GpuGraph *graph = request->form == GPU_EDGES ? gpu_engine_graph(engine, request->owner) : NULL;

	stream->edges = graph != NULL && !graph->ended ? &graph->list : NULL;
	return request->form != GPU_EDGES || stream->edges != NULL;
}

#endif /* GPU_ENGINE_GRAPHS_H */
