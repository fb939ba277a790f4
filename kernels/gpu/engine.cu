/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  Requests, threads and versions: what ties trees, scans and changes
 *	  together behind engine.h.
 *
 * One thread, the changer, does all that changes trees.  A few others, the
 * scanners, do the scans that are too large to be merged; each has a stream and
 * buffers of its own.  Small scans are posted by the caller's thread to a resident
 * kernel (resident.h); the GPU itself marks them done, and their senders may use
 * them again from then on.  So nobody looks at a request that was handed to
 * the GPU but to answer it when the GPU is lost.
 *
 * Whoever reads a tree first pins its version (pins.h), then tests the guard,
 * then takes a view; and unpins when the GPU is through: a scanner after its
 * request, a slot when it has been acknowledged.  The changer frees what no pin
 * protects.
 *
 * Everything ends with the first CUDA error that is not about memory: then
 * every request is answered GPU_DEVICE_LOST until the engine is closed.
 *
 *-------------------------------------------------------------------------
 */
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kernels/gpu/change.h"
#include "kernels/gpu/engine.h"
#include "kernels/gpu/machine.h"
#include "kernels/gpu/pool.h"
#include "kernels/gpu/scan.h"
#include "kernels/gpu/resident.h"
#include "kernels/pins.h"

/* Large scans that run beside each other. */
#define SCANNERS 3

#define PINS (SCANNERS + GPU_RESIDENT_SLOTS)

/* Nanoseconds between two looks at pins that a change waits for. */
#define PIN_WAIT_NS 20000

/* Requests on their way to the threads of one kind. */
struct RequestQueue
{
	std::mutex mutex;
	std::condition_variable filled;
	std::deque<GpuRequest *> requests;
	bool closed = false;
};

struct GpuEngine
{
	GpuEngineOptions options;
	GpuCard card;
	std::atomic<size_t> memory{ 0 }; /* that trees can have, or could */
	unsigned char *staging_device = NULL;
	bool registered = false;
	GpuPool pool;
	GpuTree tree[GPU_MAX_TREES];
	GkPinSlot pin[PINS]; /* scanners', then slots' */
	RequestQueue changes;
	RequestQueue scans;
	std::thread changer;
	std::thread scanner[SCANNERS];
	GpuChange change;
	GpuEvent change_began;
	GpuEvent change_ended;
	GpuScanLane scan_lane[SCANNERS];
	GpuResident resident;
	GpuRequest *posted[GPU_RESIDENT_SLOTS]; /* what is in each slot */
	int wake_fd = -1;
	uint64_t launches = 0;
	uint64_t merged = 0;
	std::atomic<bool> lost{ false };
	std::atomic<bool> woken{ false };
	std::mutex why_mutex;
	char why[200] = "";
};

/* From the first error on there is nothing to be had from the device. */
static void
note_status(GpuEngine *engine, const GpuStream *stream)
{
	if (stream->status == GPU_OK || engine->lost)
		return;
	std::lock_guard<std::mutex> guard(engine->why_mutex);
	if (!engine->lost)
	{
		snprintf(engine->why, sizeof(engine->why), "%s", stream->why);
		engine->lost = true;
	}
}

/* The request is the sender's again. */
static void
answer(GpuRequest *request, uint32_t status)
{
	request->status = status;
	__atomic_store_n(&request->done, 1, __ATOMIC_RELEASE);
}

/* Makes wake_fd readable, if it is not since the last poll. */
static void
wake(GpuEngine *engine)
{
	uint64_t one = 1;

	if (!engine->woken.exchange(true) && write(engine->wake_fd, &one, sizeof(one)) < 0)
		engine->woken = false; /* cannot be: the counter is not full */
}

/*
 * The next request of a queue, waiting for one; NULL: the queue was closed.
 */
static GpuRequest *
next_request(RequestQueue *queue)
{
	std::unique_lock<std::mutex> lock(queue->mutex);
	GpuRequest *request;

	queue->filled.wait(lock, [queue] { return queue->closed || !queue->requests.empty(); });
	if (queue->closed)
		return NULL;
	request = queue->requests.front();
	queue->requests.pop_front();
	return request;
}

static void
close_queue(RequestQueue *queue)
{
	std::lock_guard<std::mutex> guard(queue->mutex);

	queue->closed = true;
	queue->filled.notify_all();
}

/*
 * Pins the request's tree and takes a view of it.  False: it is not what the
 * sender expects.  The pin is the caller's to take back either way.
 */
static bool
pin_view(GpuEngine *engine, GkPinSlot *pin, const GpuRequest *request, WbtView *view)
{
	GpuTree *tree = &engine->tree[request->tree];

	gk_pin(pin, (uint64_t) request->tree + 1, gpu_tree_version(tree));
	if (request->guarded && __atomic_load_n(request->guard, __ATOMIC_ACQUIRE) != request->expected)
		return false;
	return gpu_tree_view(tree, &engine->pool, view);
}

static void
scan(GpuEngine *engine, int number, GpuRequest *request)
{
	GpuScanLane *lane = &engine->scan_lane[number];
	GkPinSlot *pin = &engine->pin[number];
	uint32_t status = GPU_WITHDRAWN;
	WbtView view;

	request->batch = 1;
	if (pin_view(engine, pin, request, &view))
		status = gpu_scan_large(lane, &view, (unsigned char *) engine->options.staging, request);
	gk_unpin(pin);
	note_status(engine, &lane->stream);
	answer(request, status);
}

/*
 * The pool is taken from the card when the first tree comes: a server that has
 * none leaves the card's memory to others.
 */
static bool
open_pool(GpuEngine *engine)
{
	GpuCard card;
	char why[200];

	if (engine->pool.base != NULL)
		return true;
	if (engine->options.memory == 0)
	{
		/* Others may have taken or left memory since the engine was opened. */
		if (!gpu_card(engine->options.ordinal, &card, why, sizeof(why)))
			return false;
		engine->memory = card.memory_free / 4 * 3;
	}
	if (!gpu_pool_open(&engine->pool, engine->memory))
		return false;
	engine->memory = gpu_pool_total(&engine->pool);
	return true;
}

static uint64_t
oldest_pin(GpuEngine *engine, uint32_t number)
{
	return gk_oldest_pin(engine->pin, PINS, (uint64_t) number + 1);
}

/* Takes a tree out of service, and its memory back when its readers are through. */
static void
drop_tree(GpuEngine *engine, uint32_t number)
{
	GpuTree *tree = &engine->tree[number];
	uint64_t version;

	gpu_tree_withdraw(tree);
	version = __atomic_load_n(gpu_tree_version(tree), __ATOMIC_SEQ_CST);
	while (oldest_pin(engine, number) < version && !engine->lost)
		std::this_thread::sleep_for(std::chrono::nanoseconds(PIN_WAIT_NS));
	gpu_tree_drop(&engine->change, tree);
}

static uint32_t
load_begin(GpuEngine *engine, GpuRequest *request)
{
	drop_tree(engine, request->tree);
	if (!open_pool(engine))
		return GPU_NO_MEMORY;
	return gpu_tree_load_begin(&engine->change, &engine->tree[request->tree], request->nwords,
							   request->fill_percent);
}

static uint32_t
apply(GpuEngine *engine, GpuRequest *request)
{
	GpuTree *tree = &engine->tree[request->tree];
	const GkOp *ops = (const GkOp *) ((const unsigned char *) engine->options.staging + request->input);

	gpu_tree_reclaim(&engine->change, tree, oldest_pin(engine, request->tree));
	return gpu_tree_apply(&engine->change, tree, ops, request->n, &request->found, &request->deleted);
}

/* Does what a request asks of a tree; returns its status. */
static uint32_t
dispatch(GpuEngine *engine, GpuRequest *request)
{
	GpuChange *c = &engine->change;
	GpuTree *tree = &engine->tree[request->tree];
	unsigned char *staging = (unsigned char *) engine->options.staging;

	switch (request->kind)
	{
		case GPU_LOAD_BEGIN:
			return load_begin(engine, request);
		case GPU_LOAD_ADD:
			return gpu_tree_load_add(c, tree, (const GkEntry *) (staging + request->input), request->n);
		case GPU_LOAD_END:
			return gpu_tree_load_end(c, tree);
		case GPU_LOAD_CANCEL:
			return gpu_tree_load_cancel(c, tree);
		case GPU_APPLY:
			return apply(engine, request);
		case GPU_VERIFY:
			return gpu_tree_verify(c, tree, (char *) staging + request->output, (size_t) request->cap);
		default:
			drop_tree(engine, request->tree);
			return GPU_OK;
	}
}

static void
change(GpuEngine *engine, GpuRequest *request)
{
	GpuStream *stream = &engine->change.stream;
	GpuTree *tree = &engine->tree[request->tree];
	uint32_t status;
	WbtView view;

	stream->launches = 0;
	stream->bus_bytes = 0;
	gpu_event_record(stream, &engine->change_began);
	status = dispatch(engine, request);
	gpu_event_record(stream, &engine->change_ended);
	gpu_finish(stream);
	note_status(engine, stream);
	request->batch = 1;
	request->entries = gpu_tree_view(tree, &engine->pool, &view) ? view.entries : 0;
	request->bytes = gpu_tree_bytes(tree);
	request->launches = stream->launches;
	request->device_ns = gpu_event_ns(stream, &engine->change_began, &engine->change_ended);
	request->bus_bytes = stream->bus_bytes;
	answer(request, engine->lost ? (uint32_t) GPU_DEVICE_LOST : status);
}

static void
run_changer(GpuEngine *engine)
{
	GpuRequest *request;

	gpu_use(engine->options.ordinal);
	while ((request = next_request(&engine->changes)) != NULL)
	{
		if (engine->lost)
			answer(request, GPU_DEVICE_LOST);
		else
			change(engine, request);
		wake(engine);
	}
}

static void
run_scanner(GpuEngine *engine, int number)
{
	GpuRequest *request;

	gpu_use(engine->options.ordinal);
	while ((request = next_request(&engine->scans)) != NULL)
	{
		if (engine->lost)
			answer(request, GPU_DEVICE_LOST);
		else
			scan(engine, number, request);
		wake(engine);
	}
}

static void
engine_submit(GpuEngine *engine, GpuRequest *request)
{
	RequestQueue *queue = request->kind == GPU_SCAN ? &engine->scans : &engine->changes;
	std::lock_guard<std::mutex> guard(queue->mutex);

	queue->requests.push_back(request);
	queue->filled.notify_one();
}

static int
engine_small(GpuEngine *engine, GpuRequest *const *requests, int n)
{
	GpuResident *resident = &engine->resident;
	int taken = 0;
	int slot;

	for (; taken < n && !engine->lost && (slot = gpu_resident_slot(resident)) >= 0; taken++)
	{
		GkPinSlot *pin = &engine->pin[SCANNERS + slot];
		WbtView view;

		if (pin_view(engine, pin, requests[taken], &view))
		{
			engine->posted[slot] = requests[taken];
			engine->merged++;
			gpu_resident_post(resident, slot, &view, requests[taken], n);
		}
		else
		{
			gk_unpin(pin);
			answer(requests[taken], GPU_WITHDRAWN);
		}
	}
	while (taken < n && engine->lost)
		answer(requests[taken++], GPU_DEVICE_LOST);
	if (taken > 0)
		engine->launches++;
	if (resident->busy != 0)
		gpu_resident_keep(resident, engine->pool.base);
	return taken;
}

/*
 * The GPU is lost, and may not have come to answer what is posted.  A sender that
 * had its answer and has sent the next request loses nothing by the same news.
 */
static void
give_up_posted(GpuEngine *engine)
{
	for (uint32_t left = engine->resident.busy; left != 0; left &= left - 1)
	{
		int slot = __builtin_ctz(left);

		gk_unpin(&engine->pin[SCANNERS + slot]);
		if (__atomic_load_n(&engine->posted[slot]->done, __ATOMIC_ACQUIRE) == 0)
			answer(engine->posted[slot], GPU_DEVICE_LOST);
	}
	engine->resident.busy = 0;
}

/* Ends the pins of requests that the GPU is through with. */
static void
free_slots(GpuEngine *engine)
{
	uint32_t ended = gpu_resident_poll(&engine->resident, engine->pool.base);

	for (; ended != 0; ended &= ended - 1)
		gk_unpin(&engine->pin[SCANNERS + __builtin_ctz(ended)]);
}

static void
engine_poll(GpuEngine *engine)
{
	uint64_t count;

	/* Emptied before woken is: a wake in between is not lost. */
	if (engine->woken && read(engine->wake_fd, &count, sizeof(count)) > 0)
		engine->woken = false;
	/* What is posted is about a tree, so there is a pool. */
	if (engine->resident.busy != 0)
		free_slots(engine);
	note_status(engine, &engine->resident.stream);
	if (engine->lost)
		give_up_posted(engine);
}

static int
engine_in_flight(GpuEngine *engine)
{
	return __builtin_popcount(engine->resident.busy);
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
	info->memory_used = gpu_pool_used(&engine->pool);
	info->launches = engine->launches;
	info->merged = engine->merged;
}

/* A fault has happened when this returns: on a stream of the caller's thread. */
static void
engine_inject(GpuEngine *engine, GpuInjection what)
{
	GpuStream *stream = &engine->resident.stream;

	if (!engine->options.emulate_failures)
		return;
	if (what == GPU_INJECT_NO_MEMORY)
		engine->pool.fail_after = 0;
	else
	{
		gpu_inject_fault(stream);
		note_status(engine, stream);
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
		engine->changer = std::thread(run_changer, engine);
		for (int i = 0; i < SCANNERS; i++)
			engine->scanner[i] = std::thread(run_scanner, engine, i);
	}
	catch (const std::system_error &error)
	{
		snprintf(why, whylen, "could not start a thread: %s", error.what());
		started = false;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static void
engine_close(GpuEngine *engine)
{
	close_queue(&engine->changes);
	close_queue(&engine->scans);
	if (engine->changer.joinable())
		engine->changer.join();
	for (int i = 0; i < SCANNERS; i++)
	{
		if (engine->scanner[i].joinable())
			engine->scanner[i].join();
		gpu_scan_lane_close(&engine->scan_lane[i]);
	}
	gpu_resident_close(&engine->resident);
	gpu_event_close(&engine->change_began);
	gpu_event_close(&engine->change_ended);
	gpu_change_close(&engine->change);
	gpu_pool_close(&engine->pool);
	if (engine->registered)
		gpu_unregister(engine->options.staging);
	if (engine->wake_fd >= 0)
		close(engine->wake_fd);
	delete engine;
}

/* What must be there before the first request.  On failure, why says what is missing. */
static bool
prepare(GpuEngine *engine, char *why, size_t whylen)
{
	bool ok;

	if (!gpu_card(engine->options.ordinal, &engine->card, why, whylen))
		return false;
	engine->memory = engine->options.memory > 0 ? engine->options.memory : engine->card.memory_free / 4 * 3;
	if (!gpu_register(engine->options.staging, engine->options.staging_bytes, why, whylen))
		return false;
	engine->registered = true;
	engine->staging_device = (unsigned char *) gpu_device_address(engine->options.staging);
	engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (engine->wake_fd < 0)
	{
		snprintf(why, whylen, "could not make an event counter: %s", strerror(errno));
		return false;
	}
	ok = engine->staging_device != NULL && gpu_change_open(&engine->change, &engine->pool) &&
		 gpu_event_open(&engine->change.stream, &engine->change_began) &&
		 gpu_event_open(&engine->change.stream, &engine->change_ended);
	for (int i = 0; i < SCANNERS; i++)
		ok = ok && gpu_scan_lane_open(&engine->scan_lane[i], engine->options.piece_bytes);
	ok = ok && gpu_resident_open(&engine->resident, (unsigned char *) engine->options.staging,
								 engine->staging_device);
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

	*hopeless = false;
	if (engine == NULL)
	{
		snprintf(why, whylen, "out of memory");
		return NULL;
	}
	engine->options = *options;
	if (!prepare(engine, why, whylen))
	{
		*hopeless = engine->card.hopeless;
		engine_close(engine);
		return NULL;
	}
	return engine;
}

extern "C" __attribute__((visibility("default"))) const GpuEngineApi *
gpuds_gpu_engine(void)
{
	static const GpuEngineApi api = { GPU_ENGINE_ABI,   engine_open,   engine_close, engine_info,
									  engine_wake_fd,   engine_submit, engine_small, engine_poll,
									  engine_in_flight, engine_lost,   engine_inject };

	return &api;
}
