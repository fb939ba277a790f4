/*-------------------------------------------------------------------------
 *
 * engine_state.h
 *	  What the engine is made of, how it is lost, and how a request is answered.
 *
 * The engine ends with the first CUDA error that is not about memory, and with an
 * exception that nobody expects.  From then on nothing is answered: what was asked of
 * the GPU before may still go on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_STATE_H
#define GPU_ENGINE_STATE_H

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <stdio.h>
#include <unistd.h>

#include "kernels/core/pins.h"
#include "kernels/engine/engine_change_log.h"
#include "kernels/engine/request_queue.h"
#include "kernels/engine/persistent.h"
#include "kernels/graph/gpu_graph_components.h"
#include "kernels/graph/gpu_graph_path.h"
#include "kernels/graph/gpu_graph_triangles.h"
#include "kernels/runtime/side_pages.h"
#include "kernels/runtime/space.h"
#include "kernels/runtime/gpu_structure.h"

/* Large scans that run beside each other. */
#define GPU_SCANNERS 3

/* The changer is the last of the threads. */
#define GPU_CHANGER GPU_SCANNERS
#define GPU_ENGINE_THREADS (GPU_SCANNERS + 1)

/* A scanner has two: the second one for what a scan is joined with. */
#define GPU_ENGINE_PINS (2 * GPU_SCANNERS + GPU_RING_SLOTS)

struct GpuEngine
{
	GpuEngineOptions options;
	GpuCard card;
	std::atomic<size_t> memory{ 0 }; /* that trees can have, or could */
	unsigned char *device_staging = NULL;
	bool registered = false;
	GpuPool pool;
	std::atomic<GpuStructure *> tree[GPU_MAX_TREES] = {}; /* NULL: nothing was ever loaded */
	/* the changer's: lists of objects, one for each structure that the tree has been of */
	GpuStructure *made[GPU_MAX_TREES] = {};
	std::atomic<GpuChangeLog *> log[GPU_MAX_TREES] = {};     /* of trees that have been loaded */
	std::atomic<GpuSideCopy *> side[GPU_MAX_TREES] = {};     /* copies of trees' side values */
	std::atomic<GpuSideCopy *> side_used[GPU_SCANNERS] = {}; /* that scanners read (engine_sides.h) */
	std::mutex graphs_mutex;
	std::map<uint64_t, GpuGraph *> graphs; /* by their owners */
	std::map<uint64_t, GpuGraph *> kept;   /* that have no owner, by their trees (gpu_engine_kept_key) */
	std::atomic<size_t> kept_bytes{ 0 };
	PinSlot pin[GPU_ENGINE_PINS]; /* scanners', their second ones, then slots' */
	GpuRequestQueue changes;
	GpuRequestQueue scans;
	std::thread thread[GPU_ENGINE_THREADS];
	std::atomic<int> running{ 0 };                   /* threads that have not ended */
	std::atomic<uint64_t> began[GPU_ENGINE_THREADS]; /* when each began its request, 0: it has none */
	GpuChange change;
	GpuEvent change_began;
	GpuEvent change_ended;
	GpuScanStream scan_stream[GPU_SCANNERS];
	GpuPersistent persistent;
	uint64_t posted_at[GPU_RING_SLOTS]; /* when what is in each slot was */
	int wake_fd = -1;
	std::atomic<bool> lost{ false };
	std::atomic<bool> closing{ false };
	std::atomic<bool> woken{ false };
	std::atomic<bool> hang{ false }; /* the next request does */
	uint32_t *hung_until = NULL;     /* host memory; never set */
	std::mutex why_mutex;
	char why[200] = "";
};

static inline uint64_t
gpu_engine_now_ns(void)
{
	return (uint64_t) std::chrono::duration_cast<std::chrono::nanoseconds>(
			   std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

/* From now on there is nothing to be had from the device. */
static inline void
gpu_engine_lose(GpuEngine *engine, const char *why)
{
	std::lock_guard<std::mutex> guard(engine->why_mutex);

	if (engine->lost)
		return;
	snprintf(engine->why, sizeof(engine->why), "%s", why);
	engine->lost = true;
}

/* Notes an error of a stream: the device is lost. */
static inline void
gpu_engine_note_status(GpuEngine *engine, const GpuStream *stream)
{
	if (stream->status != GPU_OK)
		gpu_engine_lose(engine, stream->why);
}

/* Calls f.  An exception loses the device: who knows what was left undone. */
template <typename F>
static inline void
gpu_engine_guarded(GpuEngine *engine, const F &f)
{
	try
	{
		f();
	}
	catch (const std::exception &error)
	{
		gpu_engine_lose(engine, error.what());
	}
	catch (...)
	{
		gpu_engine_lose(engine, "unknown exception");
	}
}

/* The request is the sender's again. */
static inline void
gpu_request_give_back(GpuRequest *request, uint32_t status)
{
	request->status = status;
	__atomic_store_n(&request->done, 1, __ATOMIC_RELEASE);
}

/*
 * Answers a request that a stream worked on, if all of the stream's work is known
 * to be done; else nobody knows when the request can be used again.
 */
static inline void
gpu_engine_answer(GpuEngine *engine, GpuStream *stream, GpuRequest *request, uint32_t status)
{
	if (gpu_finish(stream))
		gpu_request_give_back(request, status);
	else
		gpu_engine_note_status(engine, stream);
}

/* Makes wake_fd readable, if it is not since the last poll. */
static inline void
gpu_engine_wake(GpuEngine *engine)
{
	uint64_t one = 1;

	if (!engine->woken.exchange(true) && write(engine->wake_fd, &one, sizeof(one)) < 0)
		engine->woken = false; /* cannot be: the counter is not full */
}

#endif /* GPU_ENGINE_STATE_H */
