/*-------------------------------------------------------------------------
 *
 * gpu_latency.cu
 *	  How long small scans take through the engine, from several threads at once, and
 *	  how long the first changes beside them take.  For a GPU: emulated, it says
 *	  nothing.
 *
 *	  usage: gpu_latency [small | senders [seconds [entries]]]
 *
 * Senders look up single keys of one tree, one after the other; the main thread does
 * as the device worker.  Prints the distribution of their waits.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"
#include "kernels/engine/engine.cu"

#define MOST_SENDERS 64
#define PIECE ((size_t) 1 << 20)
#define MOST_US 100000 /* what takes longer counts as this */

struct Mailbox
{
	GpuRequest request;
	GpudsInterval input;
	GpudsEntry output[4];
	uint32_t posted; /* atomic */
	uint64_t wrong;
	uint32_t waits[MOST_US + 1]; /* a count for each microsecond */
};

struct Staging
{
	Mailbox scan[MOST_SENDERS];
	GpuRequest change;
	unsigned char piece[PIECE];
};

static Staging *staging;
static const GpuEngineApi *api;
static GpuEngine *engine;
static uint64_t entries = 10000000;
static int senders = 16;
static std::atomic<bool> stopping(false);

static uint64_t
offset(const void *p)
{
	return (uint64_t) ((const unsigned char *) p - (const unsigned char *) staging);
}

static bool
is_done(const GpuRequest *r)
{
	return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE) == 1;
}

static void
run_sender(int number)
{
	Mailbox *m = &staging->scan[number];
	uint64_t seed = (uint64_t) number + 1;

	while (!stopping)
	{
		GpuRequest *r = &m->request;
		uint64_t key;
		uint64_t began;
		uint64_t us;

		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		key = (seed >> 20) % entries;
		memset((void *) r, 0, sizeof(*r));
		m->input.lo = { key, 0, 0 };
		m->input.hi = { key, 0, UINT64_MAX };
		r->kind = GPU_SCAN;
		r->form = GPU_ENTRIES;
		r->forward = true;
		r->input = offset(&m->input);
		r->output = offset(m->output);
		r->n = 1;
		r->cap = 4;
		began = gpu_engine_now_ns();
		__atomic_store_n(&m->posted, 1, __ATOMIC_RELEASE);
		while (!is_done(r) && !stopping)
			;
		if (!is_done(r))
			break;
		us = (gpu_engine_now_ns() - began) / 1000;
		m->waits[us < MOST_US ? us : MOST_US]++;
		m->wrong += r->status != GPU_OK || r->found != 1 || m->output[0].w0 != key;
	}
}

/* One turn of the worker. */
static void
turn(void)
{
	static GpuRequest *kept[MOST_SENDERS];
	static int nkept = 0;
	int took;

	for (int i = 0; i < senders; i++)
	{
		if (__atomic_load_n(&staging->scan[i].posted, __ATOMIC_ACQUIRE))
		{
			__atomic_store_n(&staging->scan[i].posted, 0, __ATOMIC_RELAXED);
			kept[nkept++] = &staging->scan[i].request;
		}
	}
	took = nkept > 0 ? api->small(engine, kept, nkept < GPU_SMALL_BATCH ? nkept : GPU_SMALL_BATCH) : 0;
	nkept -= took;
	memmove(kept, kept + took, (size_t) nkept * sizeof(kept[0]));
	api->poll(engine);
}

/* Submits a change and goes on with the turns; microseconds until it was done. */
static double
change_us(GpuRequestKind kind, int64_t n)
{
	GpuRequest *r = &staging->change;
	uint64_t began = gpu_engine_now_ns();

	memset((void *) r, 0, sizeof(*r));
	r->kind = kind;
	r->structure = GPUDS_STRUCTURE_BTREE;
	r->nwords = 1;
	r->fill_percent = 90;
	r->input = r->output = offset(staging->piece);
	r->n = n;
	r->cap = (int64_t) PIECE;
	api->submit(engine, r);
	while (!is_done(r))
	{
		char why[200];

		turn();
		if (api->lost(engine, why, sizeof(why)))
		{
			fprintf(stderr, "lost: %s\n", why);
			exit(1);
		}
	}
	CHECK(r->status == GPU_OK);
	return (double) (gpu_engine_now_ns() - began) / 1000;
}

/* New entries beside those that are looked for. */
static double
apply_us(int64_t n)
{
	static uint64_t next = 0;
	GpudsOp *ops = (GpudsOp *) staging->piece;

	for (int64_t i = 0; i < n; i++)
		ops[i] = { { UINT64_C(1) << 40 | next++, 0, 1 }, (uint64_t) i << 1 };
	return change_us(GPU_APPLY, n);
}

static void
load(void)
{
	GpudsEntry *e = (GpudsEntry *) staging->piece;
	uint64_t room = PIECE / sizeof(GpudsEntry);

	(void) change_us(GPU_LOAD_BEGIN, 0);
	for (uint64_t at = 0; at < entries; at += room)
	{
		uint64_t n = entries - at < room ? entries - at : room;

		for (uint64_t i = 0; i < n; i++)
			e[i] = { at + i, 0, at + i };
		(void) change_us(GPU_LOAD_ADD, (int64_t) n);
	}
	(void) change_us(GPU_LOAD_END, 0);
}

static void
run_for(double seconds)
{
	uint64_t end = gpu_engine_now_ns() + (uint64_t) (seconds * 1e9);

	while (gpu_engine_now_ns() < end)
		turn();
}

/* Prints what the senders waited since the last time. */
static void
print_waits(const char *name)
{
	const double part[] = { 0.5, 0.99, 0.999, 0.9999 };
	static uint64_t waits[MOST_US + 1];
	uint64_t n = 0, sum = 0, below = 0, wrong = 0;
	uint64_t over[4] = { 0, 0, 0, 0 };
	uint64_t most = 0;
	int at = 0;

	memset(waits, 0, sizeof(waits));
	for (int i = 0; i < senders; i++)
	{
		for (int us = 0; us <= MOST_US; us++)
			waits[us] += __atomic_exchange_n(&staging->scan[i].waits[us], 0, __ATOMIC_RELAXED);
		wrong += staging->scan[i].wrong;
	}
	for (uint64_t us = 0; us <= MOST_US; us++)
	{
		n += waits[us];
		sum += us * waits[us];
		if (waits[us])
			most = us;
		over[0] += us >= 50 ? waits[us] : 0;
		over[1] += us >= 100 ? waits[us] : 0;
		over[2] += us >= 500 ? waits[us] : 0;
		over[3] += us >= 1000 ? waits[us] : 0;
	}
	CHECK(n > 0 && wrong == 0);
	printf("%s: %llu requests of %d senders, mean %.2f us", name, (unsigned long long) n, senders,
		   (double) sum / (double) n);
	for (uint64_t us = 0; us <= MOST_US && at < 4; us++)
	{
		below += waits[us];
		while (at < 4 && (double) below >= part[at] * (double) n)
			printf(", %g %%: %llu us", part[at++] * 100, (unsigned long long) us);
	}
	printf(", most %llu us; 50 us and more: %llu, 100: %llu, 500: %llu, 1000: %llu; %u kernels so far\n",
		   (unsigned long long) most, (unsigned long long) over[0], (unsigned long long) over[1],
		   (unsigned long long) over[2], (unsigned long long) over[3], engine->persistent.poster.kernel);
}

/* In a thread of its own: the senders go on, and would wait for the main thread. */
static void
report(const char *name)
{
	std::atomic<bool> printed(false);
	std::thread printer(
		[&]
		{
			print_waits(name);
			printed = true;
		});

	while (!printed)
		turn();
	printer.join();
}

int
main(int argc, char **argv)
{
	bool few = argc > 1 && strcmp(argv[1], "small") == 0;
	double seconds = few ? 0.1 : argc > 2 ? atof(argv[2]) : 4;
	std::thread sender[MOST_SENDERS];
	GpuEngineOptions options;
	char why[200] = "";
	bool hopeless;
	double first;

	senders = few ? 2 : argc > 1 ? atoi(argv[1]) : senders;
	entries = few ? 10000 : argc > 3 ? strtoull(argv[3], NULL, 10) : entries;
	CHECK(senders > 0 && senders <= MOST_SENDERS && entries > 0);
	staging = (Staging *) aligned_alloc(4096, (sizeof(Staging) + 4095) / 4096 * 4096);
	CHECK(staging != NULL);
	memset((void *) staging, 0, sizeof(Staging));
	memset(&options, 0, sizeof(options));
	options.memory = (size_t) 1 << 30;
	options.staging = staging;
	options.staging_bytes = (sizeof(Staging) + 4095) / 4096 * 4096;
	options.piece_bytes = PIECE;
	api = gpuds_gpu_engine();
	engine = api->open(&options, &hopeless, why, sizeof(why));
	if (engine == NULL)
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	load();
	for (int i = 0; i < senders; i++)
		sender[i] = std::thread(run_sender, i);
	run_for(seconds);
	report("lookups alone");
	first = apply_us(100);
	printf("first apply of 100 beside lookups: %.0f us, second: %.0f\n", first, apply_us(100));
	first = apply_us(1000);
	printf("first apply of 1000: %.0f us, second: %.0f\n", first, apply_us(1000));
	first = apply_us(20000);
	printf("first apply of 20000: %.0f us, second: %.0f\n", first, apply_us(20000));
	first = change_us(GPU_VERIFY, 0);
	printf("first check of the tree: %.0f us, second: %.0f\n", first, change_us(GPU_VERIFY, 0));
	report("lookups beside these");
	for (uint64_t end = gpu_engine_now_ns() + (uint64_t) (seconds * 1e9); gpu_engine_now_ns() < end;)
		(void) apply_us(100);
	report("lookups beside applies of 100");
	stopping = true;
	for (int i = 0; i < senders; i++)
		sender[i].join();
	CHECK(api->close(engine, UINT64_C(10000000000)));
	return 0;
}
