/*-------------------------------------------------------------------------
 *
 * engine_scans.h
 *	  Scans as the engine does them: large ones by a scanner, small ones by the persistent
 *	  kernel.
 *
 * A scanner is a thread with a stream and buffers of its own.  Small scans are posted
 * by the caller's thread to the persistent kernel (persistent.h); the GPU itself marks them
 * done, and their senders may use them again from then on.  So nobody looks at a
 * request that was handed to the GPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_SCANS_H
#define GPU_ENGINE_SCANS_H

#include "kernels/engine/engine_graphs.h"
#include "kernels/engine/engine_trees.h"

/* Do the parts of a scan that say what its rows are lie where they may? */
static inline bool
gpu_scanner_takes(const GpuEngine *engine, const GpuScanStream *stream, const GpuRequest *request)
{
	if (request->form == GPU_GROUPS &&
		!gpu_groups_fit(stream, (const unsigned char *) engine->options.staging,
						engine->options.staging_bytes, request))
		return false;
	if (request->form == GPU_JOIN && !gpu_join_fits(stream, (const unsigned char *) engine->options.staging,
													engine->options.staging_bytes, request))
		return false;
	if (request->form == GPU_EDGES && !gpu_edges_fit(stream, engine->options.staging_bytes, request))
		return false;
	if (request->form == GPU_RANKED && !gpu_ranked_fits(stream, engine->options.staging_bytes, request))
		return false;
	if (request->unsorted && !gpu_scan_may_be_unsorted(request))
		return false;
	if (request->bits && (request->form != GPU_AGGREGATE || !request->each || request->nagg > 0))
		return false;
	return !gpu_form_counts(request->form) ||
		   gpu_visible_fits(stream, engine->options.staging_bytes, request);
}

/* Pins what a scan is joined with, and takes a view of it; false: it is not what the sender expects. */
static inline bool
gpu_scanner_pin_joined(GpuEngine *engine, int number, const GpuRequest *request)
{
	GpuScanStream *stream = &engine->scan_stream[number];
	const GpuJoin *join = (const GpuJoin *) ((unsigned char *) engine->options.staging + request->join);

	stream->joined = gpu_engine_pin_tree(engine, &engine->pin[GPU_SCANNERS + number], join->tree, join->guard,
										 join->expected, &stream->joined_view);
	return stream->joined != NULL;
}

/* Does a scan whose tree is pinned; its status. */
static inline uint32_t
gpu_scanner_scan(GpuEngine *engine, int number, const GpuStructure *tree, const GpudsView *view,
				 GpuRequest *request)
{
	GpuScanStream *stream = &engine->scan_stream[number];

	if (!gpu_scanner_use_side(engine, number, request))
		return GPU_WITHDRAWN;
	if (!gpu_scanner_takes(engine, stream, request))
		return GPU_NO_REQUEST;
	if (request->form == GPU_JOIN && !gpu_scanner_pin_joined(engine, number, request))
		return GPU_WITHDRAWN;
	if (request->form == GPU_EDGES)
		return gpu_scanner_scan_edges(engine, stream, tree, view, request);
	return tree->scan(stream, view, (unsigned char *) engine->options.staging, engine->device_staging,
					  request);
}

/* Answers a scan request as the scanner of that number. */
static inline void
gpu_scanner_do_scan(GpuEngine *engine, int number, GpuRequest *request)
{
	GpuScanStream *stream = &engine->scan_stream[number];
	PinSlot *pin = &engine->pin[number];
	uint32_t status = GPU_WITHDRAWN;
	const GpuStructure *tree;
	GpudsView view;

	request->batch = 1;
	/* before the view is taken: engine_change_log.h says why */
	if (request->form == GPU_EDGES)
		stream->noted = gpu_engine_noted(engine, request->tree);
	tree = gpu_engine_pin_view(engine, pin, request, &view);
	if (tree != NULL)
		status = gpu_scanner_scan(engine, number, tree, &view, request);
	if (gpu_ok(&stream->stream))
	{
		gpu_scanner_leave_side(engine, number);
		pin_release(pin);
		pin_release(&engine->pin[GPU_SCANNERS + number]);
	}
	gpu_engine_answer(engine, &stream->stream, request, status);
}

/* Answers a request as the scanner of that number. */
static inline void
gpu_scanner_do(GpuEngine *engine, int number, GpuRequest *request)
{
	if (request->kind == GPU_GRAPH)
		gpu_scanner_do_graph(engine, &engine->scan_stream[number], request);
	else
		gpu_scanner_do_scan(engine, number, request);
}

/* Posts the first ones of some small scans, as many as there are slots for now; how many. */
static inline int
gpu_engine_post_small(GpuEngine *engine, GpuRequest *const *requests, int n)
{
	GpuPersistent *persistent = &engine->persistent;
	uint64_t now = gpu_engine_now_ns();
	int taken = 0;
	int slot;

	for (; taken < n && !engine->lost && (slot = gpu_persistent_slot(persistent)) >= 0; taken++)
	{
		PinSlot *pin = &engine->pin[2 * GPU_SCANNERS + slot];
		GpudsView view;
		const GpuStructure *tree = gpu_engine_pin_view(engine, pin, requests[taken], &view);

		if (tree == NULL)
		{
			pin_release(pin);
			gpu_request_give_back(requests[taken], GPU_WITHDRAWN);
			continue;
		}
		engine->posted_at[slot] = now;
		if (engine->hang.load(std::memory_order_relaxed) && engine->hang.exchange(false))
			gpu_ring_lose(&persistent->poster, slot);
		else
			gpu_persistent_post(persistent, slot, &view, requests[taken], n);
	}
	if (persistent->poster.busy != 0)
		gpu_persistent_keep(persistent, engine->pool.base);
	return taken;
}

/* Ends the pins of requests that the GPU is through with. */
static inline void
gpu_engine_free_slots(GpuEngine *engine)
{
	uint32_t ended = gpu_persistent_poll(&engine->persistent, engine->pool.base);

	for (; ended != 0; ended &= ended - 1)
		pin_release(&engine->pin[2 * GPU_SCANNERS + __builtin_ctz(ended)]);
}

/* Small scans whose slots are not free yet. */
static inline int
gpu_engine_small_in_flight(GpuEngine *engine)
{
	return __builtin_popcount(engine->persistent.poster.busy);
}

#endif /* GPU_ENGINE_SCANS_H */
