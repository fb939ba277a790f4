/*-------------------------------------------------------------------------
 *
 * runtime.h
 *	  The runtime that the engine runs on: a GPU, or its emulation on the CPU.
 *
 * This is the interface; runtime_cuda.h implements it with CUDA, and
 * runtime_emulated.h on the CPU, where a launch is a loop that has ended when
 * the call returns.  A C++ compiler with GPU_EMULATED defined takes the
 * emulation, nvcc takes CUDA: the end of this file chooses.
 *
 *	  thread.h		what one thread of a kernel can do
 *	  block.h		what the threads of a block can do together
 *	  primitives.h	sorts and exclusive sums by the whole device
 *
 * All work goes to a GpuStream, in order.  Streams are independent of each
 * other; one thread uses a stream at a time.  Nothing here waits for the whole
 * device, and only the functions named alloc and open allocate.
 *
 * Errors stay with the stream.  After the first one its status is not GPU_OK,
 * why says what happened, and all further calls do nothing.  All CUDA errors
 * count as GPU_DEVICE_LOST: either the context is lost for good, or the program
 * is wrong.  Work that was queued before the error may still run; only gpu_quiet
 * tells, or the end of the context (gpu_reset).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RUNTIME_H
#define GPU_RUNTIME_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/entry.h"
#include "kernels/runtime/request.h"
#include "kernels/runtime/thread.h"

/* Threads of a block, if a launch does not say otherwise. */
#define GPU_LAUNCH_THREADS 256

/* Runtime code is made for cards of this compute capability and later. */
#define GPU_LEAST_CAPABILITY 8

/* CUDA's, which its headers call cudaStream_t and cudaEvent_t. */
struct CUstream_st;
struct CUevent_st;

struct GpuStream
{
	struct CUstream_st *stream; /* emulated: NULL */
	uint32_t status;            /* GpuStatus: GPU_OK or GPU_DEVICE_LOST */
	char why[200];              /* of the first error */
	/* Device memory for primitives.h; the owner provides gpu_temp_bytes of it. */
	void *temp;
	size_t temp_bytes;
	int64_t temp_items; /* that temp_bytes are for, if the owner wants to know */
	uint32_t launches;  /* kernels since the owner set it to 0 */
	uint64_t bus_bytes; /* copied from and to the host, likewise */
};

struct GpuEvent
{
	struct CUevent_st *event; /* emulated: NULL */
	int64_t at_ns;            /* emulated: when it happened */
};

/* What kind of card; fields as in GpuEngineInfo. */
struct GpuCard
{
	char name[128];
	int major;
	int minor;
	int driver;
	size_t memory_total;
	size_t memory_free;
	int multiprocessors;
	bool hopeless; /* there is none that could be used, now or later */
};

/*
 * Errors.
 */

/* False: the stream has met an error. */
static inline bool
gpu_ok(const GpuStream *s)
{
	return s->status == GPU_OK;
}

/* Note an error; what was being done, and what went wrong. */
static inline void
gpu_fail(GpuStream *s, const char *what, const char *error)
{
	if (s->status != GPU_OK)
		return;
	s->status = GPU_DEVICE_LOST;
	snprintf(s->why, sizeof(s->why), "%s: %s", what, error);
}

/*
 * The card.  Each thread that uses it calls gpu_use once.
 */

/*
 * To be called before anything else: loads all kernels at once, whatever the
 * environment says.  The driver otherwise loads a kernel at its first launch, and
 * waits then for all running kernels, which a persistent one would never let it.
 */
static inline void gpu_load_all(void);

/* Is there a card of this number?  If not, why says why not. */
static inline bool gpu_card(int ordinal, GpuCard *card, char *why, size_t whylen);

static inline bool gpu_use(int ordinal);

/*
 * Ends the thread's context, with all streams and memory of the device.  True:
 * nothing that was asked of it goes on.
 */
static inline bool gpu_reset(void);

/*
 * Streams and events.
 */

/* Of two streams with work waiting, the urgent one goes first. */
static inline bool gpu_stream_open(GpuStream *s, bool urgent);
static inline void gpu_stream_close(GpuStream *s);

/* Wait until all that was asked of the stream is done; false: an error. */
static inline bool gpu_finish(GpuStream *s);

/* Is all done?  An error is also an end. */
static inline bool gpu_finished(GpuStream *s);

/* Does nothing run any more, be it done or, after an error, given up by the device? */
static inline bool gpu_quiet(const GpuStream *s);

static inline bool gpu_event_open(GpuStream *s, GpuEvent *e);
static inline void gpu_event_close(GpuEvent *e);
static inline void gpu_event_record(GpuStream *s, GpuEvent *e);

/* Nanoseconds between two events that have happened. */
static inline uint64_t gpu_event_ns(GpuStream *s, const GpuEvent *from, const GpuEvent *to);

/*
 * Memory.
 */

/* Device memory, aligned to a page; NULL: there is not so much. */
static inline void *gpu_alloc(size_t bytes);
static inline void gpu_free(void *p, size_t bytes);

/* Host memory, set to 0, that the device can use, too; NULL: there is not so much. */
static inline void *gpu_host_alloc(size_t bytes);
static inline void gpu_host_free(void *p);

/* Make existing host memory, whole pages, usable by the device and fast to copy; false: why says why not. */
static inline bool gpu_register(void *p, size_t bytes, char *why, size_t whylen);
static inline void gpu_unregister(void *p);

/* Where the device sees registered or host-allocated memory; NULL: it does not. */
static inline void *gpu_device_address(void *host);

/* Copy between host memory and the device, either way.  The host's end must be registered. */
static inline void gpu_copy_bus(GpuStream *s, void *to, const void *from, size_t bytes);

/* Copy inside the device. */
static inline void gpu_copy(GpuStream *s, void *to, const void *from, size_t bytes);

/* Set all bytes. */
static inline void gpu_fill(GpuStream *s, void *to, int byte, size_t bytes);

/*
 * Launches.  f is copied to the device.
 */

/* So many threads in whole blocks: for what whole warps have to call. */
static inline int64_t
gpu_whole_blocks(int64_t n)
{
	return (n + GPU_LAUNCH_THREADS - 1) / GPU_LAUNCH_THREADS * GPU_LAUNCH_THREADS;
}

/* Calls f, a GPU_FN void operator()(int64_t i) const, for each i from 0 to n - 1, in any order. */
template <int threads = GPU_LAUNCH_THREADS, typename F>
static inline void gpu_launch(GpuStream *s, int64_t n, const F &f);

/*
 * Calls f, a GPU_FN void operator()(GpuBlock &block) const, in all threads of one
 * block, which go through it together (block.h).  threads is a multiple of 32, at
 * most GPU_BLOCK_THREADS, shared_bytes at most GPU_BLOCK_SHARED_BYTES.
 */
template <typename F>
static inline void gpu_launch_block(GpuStream *s, const F &f, int threads, size_t shared_bytes);

/*
 * Calls f, a GPU_FN void operator()(GpuCluster &cluster) const, in all threads of a cluster, which go through
 * it together: n threads, but at least a warp and at most GPU_CLUSTER_BLOCKS blocks.
 */
template <typename F> static inline void gpu_launch_cluster(GpuStream *s, int64_t n, const F &f);

/*
 * Faults, for tests.
 */

/* All calls of this card fail from now on. */
static inline void gpu_inject_fault(GpuStream *s);

/* A kernel that does not end before *end is set, in host memory. */
struct GpuHang
{
	const uint32_t *end;

	GPU_FN void operator()(int64_t) const
	{
		while (gpu_acquire_system(end) == 0)
			gpu_nap();
	}
};

#ifdef GPU_EMULATED
#include "kernels/runtime/runtime_emulated.h"
#else
#include "kernels/runtime/runtime_cuda.h"
#endif

#endif /* GPU_RUNTIME_H */
