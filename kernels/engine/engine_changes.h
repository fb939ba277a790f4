/*-------------------------------------------------------------------------
 *
 * engine_changes.h
 *	  What the changer does: requests that change trees or their copies of side values, or check trees.
 *
 * The changer is one thread, so changes are done one after the other, in the order of
 * submission.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_CHANGES_H
#define GPU_ENGINE_CHANGES_H

#include <algorithm>

#include "kernels/engine/engine_graphs.h"
#include "kernels/engine/engine_trees.h"

static inline uint32_t
gpu_changer_load_begin(GpuEngine *engine, GpuRequest *request)
{
	GpuStructure *tree;

	if (request->n > 0 && (uint64_t) request->n > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	if (!gpu_engine_has_structure(engine, request->structure))
		return GPU_NO_STRUCTURE;
	if (!gpu_engine_drop_tree(engine, request->tree))
		return GPU_DEVICE_LOST;
	if (!gpu_engine_open_pool(engine))
		return GPU_NO_MEMORY;
	tree = gpu_engine_choose_structure(engine, request);
	if (tree == NULL)
		return GPU_NO_MEMORY;
	return tree->load_begin(&engine->change, request->nwords, request->fill_percent);
}

static inline uint32_t
gpu_changer_apply(GpuEngine *engine, GpuStructure *tree, GpuRequest *request)
{
	const GpudsOp *ops = (const GpudsOp *) ((const unsigned char *) engine->options.staging + request->input);
	const GpudsOp *device_ops = (const GpudsOp *) (engine->device_staging + request->input);
	GpuChangeLog *log = engine->log[request->tree].load(std::memory_order_relaxed);
	uint32_t status;

	tree->reclaim(&engine->change, gpu_engine_oldest_pin(engine, request->tree));
	if (log != NULL)
		gpu_log_note(log, ops, request->n);
	status = tree->apply(&engine->change, ops, device_ops, request->n, &request->found, &request->deleted);
	if (log != NULL)
		gpu_log_applied(log);
	if (status == GPU_OK && tree->compact(&engine->change))
		tree->reclaim(&engine->change, gpu_engine_oldest_pin(engine, request->tree));
	return status;
}

/* Does what a request asks of a tree; returns its status. */
static inline uint32_t
gpu_changer_dispatch(GpuEngine *engine, GpuRequest *request)
{
	GpuChange *c = &engine->change;
	GpuStructure *tree = gpu_engine_tree(engine, request->tree);
	unsigned char *staging = (unsigned char *) engine->options.staging;

	if (request->kind == GPU_LOAD_BEGIN)
		return gpu_changer_load_begin(engine, request);
	if (request->kind == GPU_DROP)
		return gpu_engine_drop_tree(engine, request->tree) ? GPU_OK : GPU_DEVICE_LOST;
	if (tree == NULL)
		return GPU_WITHDRAWN;
	switch (request->kind)
	{
		case GPU_LOAD_ADD:
			return tree->load_add(c, (const GpudsEntry *) (staging + request->input), request->n);
		case GPU_LOAD_END:
			return tree->load_end(c);
		case GPU_APPLY:
			return gpu_changer_apply(engine, tree, request);
		case GPU_SIDE_BEGIN:
			return gpu_changer_begin_side(engine, request);
		case GPU_SIDE_PUT:
			return gpu_changer_put_side(engine, request);
		case GPU_SIDE_DROP:
			return gpu_engine_drop_side(engine, request->tree) ? GPU_OK : GPU_DEVICE_LOST;
		case GPU_VERIFY:
			return tree->verify(c, (char *) staging + request->output, (size_t) request->cap);
		default:
			return GPU_NO_REQUEST;
	}
}

/* Does what a request asks for, and answers it. */
static inline void
gpu_changer_do(GpuEngine *engine, GpuRequest *request)
{
	GpuStream *stream = &engine->change.stream;
	const GpuStructure *tree;
	uint32_t status;
	GpudsView view;

	stream->launches = 0;
	stream->bus_bytes = 0;
	gpu_event_record(stream, &engine->change_began);
	status = gpu_changer_dispatch(engine, request);
	if (request->kind == GPU_LOAD_BEGIN || request->kind == GPU_DROP)
	{
		gpu_engine_begin_log(engine, request->tree, request->kind == GPU_DROP);
		gpu_engine_drop_kept(engine, request->tree);
	}
	gpu_event_record(stream, &engine->change_ended);
	/* nobody knows how far a lost device came; and what was given up is not answered */
	if (!gpu_finish(stream) || status == GPU_DEVICE_LOST)
	{
		gpu_engine_note_status(engine, stream);
		return;
	}
	request->batch = 1;
	tree = gpu_engine_tree(engine, request->tree);
	request->entries = tree && tree->view(&engine->pool, &view) ? view.entries : 0;
	if (request->kind == GPU_SIDE_BEGIN || request->kind == GPU_SIDE_PUT || request->kind == GPU_SIDE_DROP)
		request->bytes = gpu_engine_side_bytes(engine, request->tree);
	else
		request->bytes = tree ? tree->bytes() : 0;
	request->launches = stream->launches;
	request->device_ns = gpu_event_ns(stream, &engine->change_began, &engine->change_ended);
	request->bus_bytes = stream->bus_bytes;
	gpu_engine_answer(engine, stream, request, status);
}

/* Opens what the changer works with, large enough for every structure; false: no memory. */
static inline bool
gpu_changer_open(GpuEngine *engine)
{
	GpuChangeNeeds most = { 0, 0 };

#define STRUCTURE_NEEDS(number, NAME, name, Name, title)                                       \
	most.report_bytes = std::max(most.report_bytes, Name##OnGpu::change_needs().report_bytes); \
	most.memory_bytes = std::max(most.memory_bytes, Name##OnGpu::change_needs().memory_bytes);
	STRUCTURE_ROWS(STRUCTURE_NEEDS)
#undef STRUCTURE_NEEDS
	return gpu_change_open(&engine->change, &engine->pool, most.report_bytes, most.memory_bytes) &&
		   gpu_event_open(&engine->change.stream, &engine->change_began) &&
		   gpu_event_open(&engine->change.stream, &engine->change_ended);
}

/* Closes what gpu_changer_open has opened, all of it or a part; the stream is at rest. */
static inline void
gpu_changer_close(GpuEngine *engine)
{
	gpu_event_close(&engine->change_began);
	gpu_event_close(&engine->change_ended);
	gpu_change_close(&engine->change);
}

#endif /* GPU_ENGINE_CHANGES_H */
