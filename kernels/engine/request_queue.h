/*-------------------------------------------------------------------------
 *
 * request_queue.h
 *	  Requests on their way to the threads of one kind.
 *
 * A request waits in a list of the requests' own links, so nothing is allocated.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_REQUEST_QUEUE_H
#define GPU_REQUEST_QUEUE_H

#include <condition_variable>
#include <mutex>

#include "kernels/engine/engine.h"

struct GpuRequestQueue
{
	std::mutex mutex;
	std::condition_variable filled;
	GpuRequest *first = NULL;
	GpuRequest *last = NULL;
	bool closed = false;
};

/*
 * The next request of a queue, waiting for one; NULL: the queue was closed.
 */
static inline GpuRequest *
gpu_queue_next(GpuRequestQueue *queue)
{
	std::unique_lock<std::mutex> lock(queue->mutex);
	GpuRequest *request;

	queue->filled.wait(lock, [queue] { return queue->closed || queue->first != NULL; });
	if (queue->closed)
		return NULL;
	request = queue->first;
	queue->first = request->next_queued;
	return request;
}

static inline void
gpu_queue_append(GpuRequestQueue *queue, GpuRequest *request)
{
	std::lock_guard<std::mutex> guard(queue->mutex);

	request->next_queued = NULL;
	if (queue->first == NULL)
		queue->first = request;
	else
		queue->last->next_queued = request;
	queue->last = request;
	queue->filled.notify_one();
}

/* Ends the waiting of all threads; requests that are left stay their senders'. */
static inline void
gpu_queue_close(GpuRequestQueue *queue)
{
	std::lock_guard<std::mutex> guard(queue->mutex);

	queue->closed = true;
	queue->filled.notify_all();
}

#endif /* GPU_REQUEST_QUEUE_H */
