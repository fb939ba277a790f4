/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  The engine's threads, its life, and the functions that engine.h promises.
 *
 * One thread, the changer, does all that changes trees (engine_changes.h).  A few
 * others, the scanners, do the scans that are not small (engine_scans.h).
 *
 * When the engine is lost (engine_state.h), close waits for what was asked of the GPU
 * before, and ends the context; only then the requests are their senders'.  If the GPU
 * does not come to rest, close leaves threads, memory and engine as they are to the end
 * of the process.
 *
 * What may need memory of the process makes sure of it first (gpu_pool_list).
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "kernels/engine/engine_changes.h"
#include "kernels/engine/engine_scans.h"
#include "kernels/engine/engine_state.h"

/* Nanoseconds between two looks at what closing waits for. */
#define CLOSE_WAIT_NS 20000

/* What a device may take to come to rest that could not be opened. */
#define OPEN_PATIENCE_NS UINT64_C(10000000000)

/* What each of the threads does. */
static void
run_thread(GpuEngine *engine, int number)
{
	GpuRequestQueue *queue = number == GPU_CHANGER ? &engine->changes : &engine->scans;
	GpuStream *stream = number == GPU_CHANGER ? &engine->change.stream : &engine->scan_stream[number].stream;
	GpuRequest *request;

	gpu_use(engine->options.ordinal);
	while ((request = gpu_queue_next(queue)) != NULL)
	{
		if (engine->lost)
			continue;
		engine->began[number] = gpu_engine_now_ns();
		if (engine->hang.exchange(false))
			gpu_launch(stream, 1, GpuHang{ (uint32_t *) gpu_device_address(engine->hung_until) });
		if (number == GPU_CHANGER)
			gpu_changer_do(engine, request);
		else
			gpu_scanner_do(engine, number, request);
		engine->began[number] = 0;
		gpu_engine_wake(engine);
	}
}

static void
thread_main(GpuEngine *engine, int number)
{
	gpu_engine_guarded(engine, [&] { run_thread(engine, number); });
	if (engine->lost)
		gpu_engine_wake(engine);
	engine->running--;
}

static void
engine_submit(GpuEngine *engine, GpuRequest *request)
{
	gpu_engine_guarded(engine,
					   [&]
					   {
						   bool scans = request->kind == GPU_SCAN || request->kind == GPU_GRAPH;

						   gpu_queue_append(scans ? &engine->scans : &engine->changes, request);
					   });
}

static void
engine_poll(GpuEngine *engine)
{
	uint64_t count;

	/* Emptied before woken is: a wake in between is not lost. */
	if (engine->woken && read(engine->wake_fd, &count, sizeof(count)) > 0)
		engine->woken = false;
	/* What is posted is about a tree, so there is a pool. */
	if (engine->persistent.poster.busy != 0)
		gpu_engine_free_slots(engine);
	gpu_engine_note_status(engine, &engine->persistent.stream);
}

static uint64_t
engine_oldest_ns(GpuEngine *engine)
{
	uint64_t now = gpu_engine_now_ns();
	uint64_t oldest = now;

	for (int i = 0; i < GPU_ENGINE_THREADS; i++)
	{
		uint64_t began = engine->began[i];

		if (began != 0 && began < oldest)
			oldest = began;
	}
	for (uint32_t left = engine->persistent.poster.busy; left != 0; left &= left - 1)
	{
		int slot = __builtin_ctz(left);

		if (engine->posted_at[slot] < oldest && !gpu_ring_acknowledged(&engine->persistent.poster, slot))
			oldest = engine->posted_at[slot];
	}
	return now - oldest;
}

static int
engine_wake_fd(GpuEngine *engine)
{
	return engine->wake_fd;
}

static bool
engine_lost(GpuEngine *engine, char *why, size_t whylen)
{
	if (!engine->lost)
		return false;
	std::lock_guard<std::mutex> guard(engine->why_mutex);
	snprintf(why, whylen, "%s", engine->why);
	return true;
}

static void
engine_info(GpuEngine *engine, GpuEngineInfo *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%s", engine->card.name);
	info->major = engine->card.major;
	info->minor = engine->card.minor;
	info->driver = engine->card.driver;
	info->memory_total = engine->memory;
	info->memory_used = gpu_engine_memory_used(engine);
}

/* A fault has happened when this returns: on a stream of the caller's thread. */
static void
engine_inject(GpuEngine *engine, GpuInjection what)
{
	GpuStream *stream = &engine->persistent.stream;

	if (!engine->options.emulate_failures)
		return;
	switch (what)
	{
		case GPU_INJECT_STICKY:
			gpu_inject_fault(stream);
			gpu_engine_note_status(engine, stream);
			break;
		case GPU_INJECT_NO_MEMORY:
			engine->pool.fail_after = 0;
			break;
		case GPU_INJECT_BAD_ALLOC:
			engine->pool.fail_list = 0;
			break;
		case GPU_INJECT_HANG:
			engine->hang = true;
			break;
	}
}

/* Threads of ours leave all signals to the process's main thread. */
static bool
start_threads(GpuEngine *engine, char *why, size_t whylen)
{
	sigset_t all;
	sigset_t before;
	bool started = true;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	try
	{
		for (int i = 0; i < GPU_ENGINE_THREADS; i++)
		{
			engine->thread[i] = std::thread(thread_main, engine, i);
			engine->running++;
		}
	}
	catch (const std::exception &error)
	{
		snprintf(why, whylen, "could not start a thread: %s", error.what());
		started = false;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

/* Have all threads ended, and all streams come to rest? */
static bool
at_rest(GpuEngine *engine)
{
	bool quiet = engine->running == 0;

	/* a stream is its thread's as long as there is the thread */
	for (int i = 0; i < GPU_SCANNERS && quiet; i++)
		quiet = gpu_quiet(&engine->scan_stream[i].stream);
	return quiet && gpu_quiet(&engine->change.stream) && gpu_quiet(&engine->persistent.stream);
}

/* Ends an engine whose device is at rest. */
static void
release(GpuEngine *engine)
{
	for (int i = 0; i < GPU_SCANNERS; i++)
		gpu_scan_stream_close(&engine->scan_stream[i]);
	gpu_persistent_close(&engine->persistent);
	gpu_changer_close(engine);
	gpu_pool_close(&engine->pool);
	gpu_engine_delete_trees(engine);
	gpu_engine_delete_sides(engine);
	gpu_engine_delete_graphs(engine);
	gpu_host_free(engine->hung_until);
	if (engine->registered)
		gpu_unregister(engine->options.staging);
}

static bool
engine_close(GpuEngine *engine, uint64_t patience_ns)
{
	uint64_t began = gpu_engine_now_ns();
	bool quiet;

	engine->closing = true;
	gpu_queue_close(&engine->changes);
	gpu_queue_close(&engine->scans);
	gpu_persistent_end(&engine->persistent);
	while (!(quiet = at_rest(engine)) && gpu_engine_now_ns() - began < patience_ns)
		std::this_thread::sleep_for(std::chrono::nanoseconds(CLOSE_WAIT_NS));
	for (int i = 0; i < GPU_ENGINE_THREADS; i++)
	{
		if (engine->thread[i].joinable() && quiet)
			engine->thread[i].join();
		else if (engine->thread[i].joinable())
			engine->thread[i].detach();
	}
	if (!quiet)
		return false;
	release(engine);
	/* What an error has left under way ends with the context. */
	if (engine->lost && !gpu_reset())
		return false;
	if (engine->wake_fd >= 0)
		close(engine->wake_fd);
	delete engine;
	return true;
}

/* What must be there before the first request.  On failure, why says what is missing. */
static bool
prepare(GpuEngine *engine, char *why, size_t whylen)
{
	bool ok;

	gpu_load_all();
	if (!gpu_card(engine->options.ordinal, &engine->card, why, whylen))
		return false;
	engine->memory = engine->options.memory > 0 ? engine->options.memory : engine->card.memory_free / 4 * 3;
	if (!gpu_register(engine->options.staging, engine->options.staging_bytes, why, whylen))
		return false;
	engine->registered = true;
	engine->device_staging = (unsigned char *) gpu_device_address(engine->options.staging);
	engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (engine->wake_fd < 0)
	{
		snprintf(why, whylen, "could not make an event counter: %s", strerror(errno));
		return false;
	}
	engine->pool.spare = gpu_engine_give_kept;
	engine->pool.spare_arg = engine;
	engine->hung_until = (uint32_t *) gpu_host_alloc(sizeof(uint32_t));
	ok = engine->device_staging != NULL && engine->hung_until != NULL && gpu_changer_open(engine);
	for (int i = 0; i < GPU_SCANNERS; i++)
		ok = ok && gpu_scan_stream_open(&engine->scan_stream[i], engine->options.piece_bytes);
	ok = ok && gpu_persistent_open(&engine->persistent, (unsigned char *) engine->options.staging,
								   engine->device_staging);
	if (!ok)
	{
		snprintf(why, whylen, "not enough memory on %s for buffers", engine->card.name);
		return false;
	}
	return start_threads(engine, why, whylen);
}

static GpuEngine *
engine_open(const GpuEngineOptions *options, bool *hopeless, char *why, size_t whylen)
{
	GpuEngine *engine = new (std::nothrow) GpuEngine();
	bool ready = false;

	*hopeless = false;
	if (engine == NULL)
	{
		snprintf(why, whylen, "out of memory");
		return NULL;
	}
	engine->options = *options;
	gpu_engine_guarded(engine, [&] { ready = prepare(engine, why, whylen); });
	if (!ready)
	{
		(void) engine_lost(engine, why, whylen);
		*hopeless = engine->card.hopeless;
		(void) engine_close(engine, OPEN_PATIENCE_NS);
		return NULL;
	}
	return engine;
}

extern "C" __attribute__((visibility("default"))) const GpuEngineApi *
gpuds_gpu_engine(void)
{
	static const GpuEngineApi api = { GPU_ENGINE_ABI,
									  STRUCTURE_BITS,
									  gpu_engine_ranked(),
									  engine_open,
									  engine_close,
									  engine_info,
									  engine_wake_fd,
									  engine_submit,
									  gpu_engine_post_small,
									  engine_poll,
									  gpu_engine_small_in_flight,
									  engine_lost,
									  engine_oldest_ns,
									  engine_inject };

	return &api;
}
