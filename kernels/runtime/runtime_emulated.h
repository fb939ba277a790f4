/*-------------------------------------------------------------------------
 *
 * runtime_emulated.h
 *	  A GPU emulated on the CPU; part of runtime.h, which says what the functions
 *	  do.
 *
 * The thread that asks does the work, and has done it when the call returns.
 * Device memory is other memory of the process, so that the sanitizers watch it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RUNTIME_EMULATED_H
#define GPU_RUNTIME_EMULATED_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

#include "kernels/runtime/block.h"

/* Threads that run a launch; more than one for tests of what a launch's threads do to each other. */
#ifndef GPU_EMULATED_THREADS
#define GPU_EMULATED_THREADS 1
#endif

/* Set by gpu_inject_fault: all calls fail from then on, as after a sticky error. */
static std::atomic<bool> gpu_emulated_lost(false);

/* Notes that the card is lost, if it is; false: nothing more is to be done. */
static inline bool
gpu_usable(GpuStream *s)
{
	if (gpu_emulated_lost)
		gpu_fail(s, "kernel", "an illegal memory access was encountered (emulated)");
	return gpu_ok(s);
}

static inline void
gpu_load_all(void)
{
}

/* Is there a card of that number?  As many as CUDA would see by the variable; without it, any number. */
static inline bool
gpu_emulated_has(int ordinal)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int n = visible && *visible != '\0';

	for (; visible && *visible != '\0'; visible++)
		n += *visible == ',';
	return visible == NULL || ordinal < n;
}

static inline bool
gpu_card(int ordinal, GpuCard *card, char *why, size_t whylen)
{
	memset(card, 0, sizeof(*card));
	if (!gpu_emulated_has(ordinal))
	{
		snprintf(why, whylen, "no CUDA-capable device is detected (emulated)");
		card->hopeless = true;
		return false;
	}
	snprintf(card->name, sizeof(card->name), "emulated GPU");
	card->memory_total = card->memory_free = (size_t) 1 << 30;
	card->multiprocessors = 1;
	return true;
}

static inline bool
gpu_use(int ordinal)
{
	(void) ordinal;
	return !gpu_emulated_lost;
}

static inline bool
gpu_reset(void)
{
	gpu_emulated_lost = false;
	return true;
}

static inline bool
gpu_stream_open(GpuStream *s, bool urgent)
{
	(void) urgent;
	memset((void *) s, 0, sizeof(*s));
	s->status = GPU_OK;
	return gpu_usable(s);
}

static inline void
gpu_stream_close(GpuStream *s)
{
	memset((void *) s, 0, sizeof(*s));
}

static inline bool
gpu_finish(GpuStream *s)
{
	return gpu_usable(s);
}

static inline bool
gpu_finished(GpuStream *s)
{
	gpu_usable(s);
	return true;
}

static inline bool
gpu_quiet(const GpuStream *s)
{
	(void) s;
	return true;
}

static inline bool
gpu_event_open(GpuStream *s, GpuEvent *e)
{
	*e = GpuEvent();
	return gpu_usable(s);
}

static inline void
gpu_event_close(GpuEvent *e)
{
	(void) e;
}

static inline void
gpu_event_record(GpuStream *s, GpuEvent *e)
{
	std::chrono::steady_clock::duration now = std::chrono::steady_clock::now().time_since_epoch();

	if (gpu_usable(s))
		e->at_ns = (int64_t) std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

static inline uint64_t
gpu_event_ns(GpuStream *s, const GpuEvent *from, const GpuEvent *to)
{
	return gpu_usable(s) ? (uint64_t) (to->at_ns - from->at_ns) : 0;
}

static inline void *
gpu_alloc(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static inline void
gpu_free(void *p, size_t bytes)
{
	if (p != NULL)
		munmap(p, bytes);
}

static inline void *
gpu_host_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

static inline void
gpu_host_free(void *p)
{
	free(p);
}

static inline bool
gpu_register(void *p, size_t bytes, char *why, size_t whylen)
{
	(void) p;
	(void) bytes;
	(void) why;
	(void) whylen;
	return true;
}

static inline void
gpu_unregister(void *p)
{
	(void) p;
}

static inline void *
gpu_device_address(void *host)
{
	return host;
}

static inline void
gpu_copy_bus(GpuStream *s, void *to, const void *from, size_t bytes)
{
	if (bytes == 0)
		return;
	if (gpu_usable(s))
		memcpy(to, from, bytes);
	s->bus_bytes += bytes;
}

static inline void
gpu_copy(GpuStream *s, void *to, const void *from, size_t bytes)
{
	if (bytes > 0 && gpu_usable(s))
		memcpy(to, from, bytes);
}

static inline void
gpu_fill(GpuStream *s, void *to, int byte, size_t bytes)
{
	if (bytes > 0 && gpu_usable(s))
		memset(to, byte, bytes);
}

/*
 * Runs a launch.  Its threads have no order: the last comes first, which is the least like what somebody may
 * take for granted.
 */
template <typename F>
static inline void
gpu_emulated_run(int64_t n, const F &f)
{
	const int64_t step = std::clamp<int64_t>(n / 2, 1, GPU_EMULATED_THREADS);
	std::vector<std::thread> others;
	const auto run = [&](int64_t first)
	{
		for (int64_t i = first; i >= 0; i -= step)
			f(i);
	};

	for (int64_t k = 1; k < step; k++)
		others.emplace_back(run, n - 1 - k);
	run(n - 1);
	for (std::thread &other : others)
		other.join();
}

template <int threads, typename F>
static inline void
gpu_launch(GpuStream *s, int64_t n, const F &f)
{
	if (n <= 0)
		return;
	s->launches++;
	if (!gpu_usable(s))
		return;
	gpu_emulated_run(n, f);
}

template <typename F>
static inline void
gpu_launch_block(GpuStream *s, const F &f, int threads, size_t shared_bytes)
{
	uint64_t warps[1];
	GpuBlock block = { (unsigned char *) calloc(shared_bytes + 1, 1), warps };

	(void) threads;
	s->launches++;
	if (block.shared == NULL)
		gpu_fail(s, "launch", "out of memory");
	if (gpu_usable(s))
		f(block);
	free(block.shared);
}

template <typename F>
static inline void
gpu_launch_cluster(GpuStream *s, int64_t n, const F &f)
{
	GpuCluster cluster;

	(void) n;
	s->launches++;
	if (gpu_usable(s))
		f(cluster);
}

static inline void
gpu_inject_fault(GpuStream *s)
{
	gpu_emulated_lost = true;
	gpu_usable(s);
}

#endif /* GPU_RUNTIME_EMULATED_H */
