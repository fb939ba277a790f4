/*-------------------------------------------------------------------------
 *
 * engine.cu
 *	  Requests, threads and versions: what ties trees, scans and changes
 *	  together behind engine.h.
 *
 * One thread, the changer, does all that changes trees.  A few others, the
 * scanners, do the scans that are not small; each has a stream and
 * buffers of its own.  Small scans are posted by the caller's thread to a resident
 * kernel (resident.h); the GPU itself marks them done, and their senders may use
 * them again from then on.  So nobody looks at a request that was handed to
 * the GPU.
 *
 * Whoever reads a tree first pins its version (pins.h), then tests the guard,
 * then takes a view; and unpins when the GPU is through: a scanner after its
 * request, a slot when it has been acknowledged.  The changer frees what no pin
 * protects.
 *
 * Everything ends with the first CUDA error that is not about memory, and with
 * an exception that nobody expects.  From then on nothing is answered: what was
 * asked of the GPU before may still go on.  Close waits for that, and ends the context;
 * only then the requests are their senders'.  If the GPU does not come to rest, close
 * leaves threads, memory and engine as they are to the end of the process.
 *
 * What may need memory of the process makes sure of it first (gpu_pool_list), and
 * requests wait in a list of their own links.
 *
 *-------------------------------------------------------------------------
 */
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kernels/btree/change_gpu.h"
#include "kernels/gpu/engine.h"
#include "kernels/gpu/machine.h"
#include "kernels/gpu/pool.h"
#include "kernels/gpu/scan.h"
#include "kernels/gpu/resident.h"
#include "kernels/gpu/structure.h"
#include "kernels/core/pins.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"

/* Large scans that run beside each other. */
#define SCANNERS 3

/* The changer is the last of the threads. */
#define CHANGER SCANNERS
#define THREADS (SCANNERS + 1)

#define PINS (SCANNERS + GPU_BOARD_SLOTS)

/* Nanoseconds between two looks at pins that a change waits for. */
#define PIN_WAIT_NS 20000

/* ... and between two at what closing waits for. */
#define CLOSE_WAIT_NS 20000

/* What a device may take to come to rest that could not be opened. */
#define OPEN_PATIENCE_NS UINT64_C(10000000000)

/* Requests on their way to the threads of one kind. */
struct RequestQueue
{
	std::mutex mutex;
	std::condition_variable filled;
	GpuRequest *first = NULL;
	GpuRequest *last = NULL;
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
	std::atomic<GpuStructure *> tree[GPU_MAX_TREES] = {}; /* NULL: nothing was ever loaded */
	GpuStructure *made[GPU_MAX_TREES] = {}; /* the changer's: trees of all structures that it has been of */
	PinSlot pin[PINS];                      /* scanners', then slots' */
	RequestQueue changes;
	RequestQueue scans;
	std::thread thread[THREADS];
	std::atomic<int> running{ 0 };        /* threads that have not ended */
	std::atomic<uint64_t> began[THREADS]; /* when each began its request, 0: it has none */
	GpuChange change;
	GpuEvent change_began;
	GpuEvent change_ended;
	GpuScanStream scan_stream[SCANNERS];
	GpuResident resident;
	uint64_t posted_at[GPU_BOARD_SLOTS]; /* when what is in each slot was */
	int wake_fd = -1;
	std::atomic<bool> lost{ false };
	std::atomic<bool> closing{ false };
	std::atomic<bool> woken{ false };
	std::atomic<bool> hang{ false }; /* the next request does */
	uint32_t *hung_until = NULL;     /* host memory; never set */
	std::mutex why_mutex;
	char why[200] = "";
};

static uint64_t
now_ns(void)
{
	return (uint64_t) std::chrono::duration_cast<std::chrono::nanoseconds>(
			   std::chrono::steady_clock::now().time_since_epoch())
		.count();
}

/* From now on there is nothing to be had from the device. */
static void
lose(GpuEngine *engine, const char *why)
{
	std::lock_guard<std::mutex> guard(engine->why_mutex);

	if (engine->lost)
		return;
	snprintf(engine->why, sizeof(engine->why), "%s", why);
	engine->lost = true;
}

static void
note_status(GpuEngine *engine, const GpuStream *stream)
{
	if (stream->status != GPU_OK)
		lose(engine, stream->why);
}

/* Calls f.  An exception loses the device: who knows what was left undone. */
template <typename F>
static void
guarded(GpuEngine *engine, const F &f)
{
	try
	{
		f();
	}
	catch (const std::exception &error)
	{
		lose(engine, error.what());
	}
	catch (...)
	{
		lose(engine, "unknown exception");
	}
}

/* The request is the sender's again. */
static void
give_back(GpuRequest *request, uint32_t status)
{
	request->status = status;
	__atomic_store_n(&request->done, 1, __ATOMIC_RELEASE);
}

/*
 * Answers a request that a stream worked on, if all of the stream's work is known
 * to be done; else nobody knows when the request can be used again.
 */
static void
answer(GpuEngine *engine, GpuStream *stream, GpuRequest *request, uint32_t status)
{
	if (gpu_finish(stream))
		give_back(request, status);
	else
		note_status(engine, stream);
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

	queue->filled.wait(lock, [queue] { return queue->closed || queue->first != NULL; });
	if (queue->closed)
		return NULL;
	request = queue->first;
	queue->first = request->next_queued;
	return request;
}

static void
append_request(RequestQueue *queue, GpuRequest *request)
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

static void
close_queue(RequestQueue *queue)
{
	std::lock_guard<std::mutex> guard(queue->mutex);

	queue->closed = true;
	queue->filled.notify_all();
}

/* A new object for trees of a structure, NULL: no memory, or there is no such structure. */
static GpuStructure *
new_tree(uint32_t structure)
{
	switch (structure)
	{
#define STRUCTURE_CASE(number, NAME, name, Name, capabilities) \
	case number:                                               \
		return new (std::nothrow) Name##OnGpu(structure);
		STRUCTURE_ROWS(STRUCTURE_CASE)
#undef STRUCTURE_CASE
	}
	return NULL;
}

static GpuStructure *
tree_of(GpuEngine *engine, const GpuRequest *request)
{
	return engine->tree[request->tree].load(std::memory_order_acquire);
}

/*
 * Makes the tree under the request's number one of the structure that is to be loaded;
 * there is no tree now.  NULL: out of memory.  A reader may still look at the object
 * that was there, so it stays until the engine is closed, unless it is used again.
 */
static GpuStructure *
choose_structure(GpuEngine *engine, const GpuRequest *request)
{
	GpuStructure **made = &engine->made[request->tree];
	GpuStructure *tree = *made;

	while (tree != NULL && tree->number != request->structure)
		tree = tree->other;
	if (tree == NULL)
	{
		tree = new_tree(request->structure);
		if (tree == NULL)
			return NULL;
		tree->other = *made;
		*made = tree;
	}
	engine->tree[request->tree].store(tree, std::memory_order_release);
	return tree;
}

/*
 * Pins the request's tree and takes a view of it.  NULL: it is not what the
 * sender expects.  The pin is the caller's to take back either way.
 */
static const GpuStructure *
pin_view(GpuEngine *engine, PinSlot *pin, const GpuRequest *request, GpuView *view)
{
	const GpuStructure *tree = tree_of(engine, request);

	if (tree == NULL)
		return NULL;
	pin_version(pin, (uint64_t) request->tree + 1, tree->version());
	if (request->guarded && __atomic_load_n(request->guard, __ATOMIC_ACQUIRE) != request->expected)
		return NULL;
	return tree->view(&engine->pool, view) ? tree : NULL;
}

static void
scan(GpuEngine *engine, int number, GpuRequest *request)
{
	GpuScanStream *stream = &engine->scan_stream[number];
	PinSlot *pin = &engine->pin[number];
	uint32_t status = GPU_WITHDRAWN;
	const GpuStructure *tree;
	GpuView view;

	request->batch = 1;
	tree = pin_view(engine, pin, request, &view);
	if (tree != NULL)
		status = tree->scan(stream, &view, (unsigned char *) engine->options.staging, engine->staging_device,
							request);
	if (gpu_ok(&stream->stream))
		pin_release(pin);
	answer(engine, &stream->stream, request, status);
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
	return pin_oldest(engine->pin, PINS, (uint64_t) number + 1);
}

/*
 * Takes a tree out of service, and its memory back when its readers are through.
 * False: the engine came to its end before they were.
 */
static bool
drop_tree(GpuEngine *engine, uint32_t number)
{
	GpuStructure *tree = engine->tree[number];
	uint64_t version;

	if (tree == NULL)
		return true;
	tree->withdraw();
	version = __atomic_load_n(tree->version(), __ATOMIC_SEQ_CST);
	while (oldest_pin(engine, number) < version)
	{
		/* who closes does not poll, so some pins may stay */
		if (engine->lost || engine->closing)
			return false;
		std::this_thread::sleep_for(std::chrono::nanoseconds(PIN_WAIT_NS));
	}
	(void) tree->drop(&engine->change);
	return true;
}

static uint32_t
load_begin(GpuEngine *engine, GpuRequest *request)
{
	GpuStructure *tree;

	if (request->n > 0 && (uint64_t) request->n > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	if (!drop_tree(engine, request->tree))
		return GPU_DEVICE_LOST;
	if (!open_pool(engine))
		return GPU_NO_MEMORY;
	tree = choose_structure(engine, request);
	if (tree == NULL)
		return GPU_NO_MEMORY;
	return tree->load_begin(&engine->change, request->nwords, request->fill_percent);
}

static uint32_t
apply(GpuEngine *engine, GpuStructure *tree, GpuRequest *request)
{
	const GpudsOp *ops = (const GpudsOp *) ((const unsigned char *) engine->options.staging + request->input);
	const GpudsOp *there = (const GpudsOp *) (engine->staging_device + request->input);
	uint32_t status;

	tree->reclaim(&engine->change, oldest_pin(engine, request->tree));
	status = tree->apply(&engine->change, ops, there, request->n, &request->found, &request->deleted);
	if (status == GPU_OK && tree->compact(&engine->change))
		tree->reclaim(&engine->change, oldest_pin(engine, request->tree));
	return status;
}

/* Does what a request asks of a tree; returns its status. */
static uint32_t
dispatch(GpuEngine *engine, GpuRequest *request)
{
	GpuChange *c = &engine->change;
	GpuStructure *tree = tree_of(engine, request);
	unsigned char *staging = (unsigned char *) engine->options.staging;

	if (request->kind == GPU_LOAD_BEGIN)
		return load_begin(engine, request);
	if (request->kind == GPU_DROP)
		return drop_tree(engine, request->tree) ? GPU_OK : GPU_DEVICE_LOST;
	if (tree == NULL)
		return GPU_WITHDRAWN;
	switch (request->kind)
	{
		case GPU_LOAD_ADD:
			return tree->load_add(c, (const GpudsEntry *) (staging + request->input), request->n);
		case GPU_LOAD_END:
			return tree->load_end(c);
		case GPU_LOAD_CANCEL:
			return tree->load_cancel(c);
		case GPU_APPLY:
			return apply(engine, tree, request);
		default:
			return tree->verify(c, (char *) staging + request->output, (size_t) request->cap);
	}
}

static void
change(GpuEngine *engine, GpuRequest *request)
{
	GpuStream *stream = &engine->change.stream;
	const GpuStructure *tree;
	uint32_t status;
	GpuView view;

	stream->launches = 0;
	stream->bus_bytes = 0;
	gpu_event_record(stream, &engine->change_began);
	status = dispatch(engine, request);
	gpu_event_record(stream, &engine->change_ended);
	/* nobody knows how far a lost device came; and what was given up is not answered */
	if (!gpu_finish(stream) || status == GPU_DEVICE_LOST)
	{
		note_status(engine, stream);
		return;
	}
	request->batch = 1;
	tree = tree_of(engine, request);
	request->entries = tree && tree->view(&engine->pool, &view) ? view.entries : 0;
	request->bytes = tree ? tree->bytes() : 0;
	request->launches = stream->launches;
	request->device_ns = gpu_event_ns(stream, &engine->change_began, &engine->change_ended);
	request->bus_bytes = stream->bus_bytes;
	answer(engine, stream, request, status);
}

/* What each of the threads does. */
static void
run_thread(GpuEngine *engine, int number)
{
	RequestQueue *queue = number == CHANGER ? &engine->changes : &engine->scans;
	GpuStream *stream = number == CHANGER ? &engine->change.stream : &engine->scan_stream[number].stream;
	GpuRequest *request;

	gpu_use(engine->options.ordinal);
	while ((request = next_request(queue)) != NULL)
	{
		if (engine->lost)
			continue;
		engine->began[number] = now_ns();
		if (engine->hang.exchange(false))
			gpu_launch(stream, 1, GpuHang{ (uint32_t *) gpu_device_address(engine->hung_until) });
		if (number == CHANGER)
			change(engine, request);
		else
			scan(engine, number, request);
		engine->began[number] = 0;
		wake(engine);
	}
}

static void
thread_main(GpuEngine *engine, int number)
{
	guarded(engine, [&] { run_thread(engine, number); });
	if (engine->lost)
		wake(engine);
	engine->running--;
}

static void
engine_submit(GpuEngine *engine, GpuRequest *request)
{
	guarded(engine,
			[&] { append_request(request->kind == GPU_SCAN ? &engine->scans : &engine->changes, request); });
}

static int
engine_small(GpuEngine *engine, GpuRequest *const *requests, int n)
{
	GpuResident *resident = &engine->resident;
	uint64_t now = now_ns();
	int taken = 0;
	int slot;

	for (; taken < n && !engine->lost && (slot = gpu_resident_slot(resident)) >= 0; taken++)
	{
		PinSlot *pin = &engine->pin[SCANNERS + slot];
		GpuView view;

		if (pin_view(engine, pin, requests[taken], &view) == NULL)
		{
			pin_release(pin);
			give_back(requests[taken], GPU_WITHDRAWN);
			continue;
		}
		engine->posted_at[slot] = now;
		if (engine->hang.load(std::memory_order_relaxed) && engine->hang.exchange(false))
			gpu_board_lose(&resident->poster, slot);
		else
			gpu_resident_post(resident, slot, &view, requests[taken], n);
	}
	if (resident->poster.busy != 0)
		gpu_resident_keep(resident, engine->pool.base);
	return taken;
}

/* Ends the pins of requests that the GPU is through with. */
static void
free_slots(GpuEngine *engine)
{
	uint32_t ended = gpu_resident_poll(&engine->resident, engine->pool.base);

	for (; ended != 0; ended &= ended - 1)
		pin_release(&engine->pin[SCANNERS + __builtin_ctz(ended)]);
}

static void
engine_poll(GpuEngine *engine)
{
	uint64_t count;

	/* Emptied before woken is: a wake in between is not lost. */
	if (engine->woken && read(engine->wake_fd, &count, sizeof(count)) > 0)
		engine->woken = false;
	/* What is posted is about a tree, so there is a pool. */
	if (engine->resident.poster.busy != 0)
		free_slots(engine);
	note_status(engine, &engine->resident.stream);
}

static int
engine_in_flight(GpuEngine *engine)
{
	return __builtin_popcount(engine->resident.poster.busy);
}

static uint64_t
engine_oldest_ns(GpuEngine *engine)
{
	uint64_t now = now_ns();
	uint64_t oldest = now;

	for (int i = 0; i < THREADS; i++)
	{
		uint64_t began = engine->began[i];

		if (began != 0 && began < oldest)
			oldest = began;
	}
	for (uint32_t left = engine->resident.poster.busy; left != 0; left &= left - 1)
	{
		int slot = __builtin_ctz(left);

		if (engine->posted_at[slot] < oldest && !gpu_board_acknowledged(&engine->resident.poster, slot))
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
	info->memory_used = gpu_pool_used(&engine->pool);
}

/* A fault has happened when this returns: on a stream of the caller's thread. */
static void
engine_inject(GpuEngine *engine, GpuInjection what)
{
	GpuStream *stream = &engine->resident.stream;

	if (!engine->options.emulate_failures)
		return;
	switch (what)
	{
		case GPU_INJECT_STICKY:
			gpu_inject_fault(stream);
			note_status(engine, stream);
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
		for (int i = 0; i < THREADS; i++)
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
	for (int i = 0; i < SCANNERS && quiet; i++)
		quiet = gpu_quiet(&engine->scan_stream[i].stream);
	return quiet && gpu_quiet(&engine->change.stream) && gpu_quiet(&engine->resident.stream);
}

/* Ends an engine whose device is at rest. */
static void
release(GpuEngine *engine)
{
	for (int i = 0; i < SCANNERS; i++)
		gpu_scan_stream_close(&engine->scan_stream[i]);
	gpu_resident_close(&engine->resident);
	gpu_event_close(&engine->change_began);
	gpu_event_close(&engine->change_ended);
	gpu_change_close(&engine->change);
	gpu_pool_close(&engine->pool);
	for (GpuStructure *tree : engine->made)
	{
		while (tree != NULL)
		{
			GpuStructure *other = tree->other;

			delete tree;
			tree = other;
		}
	}
	gpu_host_free(engine->hung_until);
	if (engine->registered)
		gpu_unregister(engine->options.staging);
}

static bool
engine_close(GpuEngine *engine, uint64_t patience_ns)
{
	uint64_t began = now_ns();
	bool quiet;

	engine->closing = true;
	close_queue(&engine->changes);
	close_queue(&engine->scans);
	gpu_resident_end(&engine->resident);
	while (!(quiet = at_rest(engine)) && now_ns() - began < patience_ns)
		std::this_thread::sleep_for(std::chrono::nanoseconds(CLOSE_WAIT_NS));
	for (int i = 0; i < THREADS; i++)
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
	engine->staging_device = (unsigned char *) gpu_device_address(engine->options.staging);
	engine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (engine->wake_fd < 0)
	{
		snprintf(why, whylen, "could not make an event counter: %s", strerror(errno));
		return false;
	}
	engine->hung_until = (uint32_t *) gpu_host_alloc(sizeof(uint32_t));
	ok = engine->staging_device != NULL && engine->hung_until != NULL &&
		 gpu_tree_change_open(&engine->change, &engine->pool) &&
		 gpu_event_open(&engine->change.stream, &engine->change_began) &&
		 gpu_event_open(&engine->change.stream, &engine->change_ended);
	for (int i = 0; i < SCANNERS; i++)
		ok = ok && gpu_scan_stream_open(&engine->scan_stream[i], engine->options.piece_bytes);
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
	bool ready = false;

	*hopeless = false;
	if (engine == NULL)
	{
		snprintf(why, whylen, "out of memory");
		return NULL;
	}
	engine->options = *options;
	guarded(engine, [&] { ready = prepare(engine, why, whylen); });
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
	static const GpuEngineApi api = { GPU_ENGINE_ABI,   engine_open,   engine_close,     engine_info,
									  engine_wake_fd,   engine_submit, engine_small,     engine_poll,
									  engine_in_flight, engine_lost,   engine_oldest_ns, engine_inject };

	return &api;
}
