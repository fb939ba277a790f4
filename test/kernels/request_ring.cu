/*-------------------------------------------------------------------------
 *
 * request_ring.cu
 *	  The ring (kernels/engine/request_ring.h) with threads for blocks: the protocol of the
 *	  persistent kernel, where the thread sanitizer has its eye on it.
 *
 *	  usage: ring [rounds [seed]]
 *
 * Senders have a mailbox each, as sessions have.  A poster posts what they send,
 * launches kernels and gives abandoned mailboxes back; a stream runs one kernel
 * after the other.  Everybody is held up now and then.  A round ends in the middle
 * of everything: the ring is closed and freed.
 *
 * What must hold:
 *	  - a request is served once, all of one message, and answered right; or it was
 *		given up at the end, and then nobody has touched it
 *	  - a mailbox is its sender's as soon as its answer is there, a tree is nobody's
 *		when the post is acknowledged, nor the ring's memory when the stream is at
 *		rest: the sanitizer sees who does not keep to that
 *	  - a block finds what was posted at its next look, but for a kernel that leaves
 *	  - a block of a kernel that leaves serves one request at most, which it had found
 *		before; and no kernel outlives its life, however busy its blocks are
 *	  - requests go on being answered
 *
 * Time is counted, not measured: each time that somebody asks what time it is, it
 * has become a little later.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_EMULATED
#define GPU_EMULATED
#endif

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <unistd.h>

#include "common.h"
#include "kernels/engine/request_ring.h"

#define BLOCKS 5
#define SENDERS 8
#define WORDS 6        /* of a request and of its answer */
#define REQUESTS 20000 /* answered in a round, at least */

/* What passes between two questions for the time. */
#define LEAST_NS 20000
#define MOST_NS 100000

/* Questions for the time that a kernel may be asked before it has to know that its life is over. */
#define MOST_QUESTIONS (GPU_RING_LIFETIME_NS / LEAST_NS)

/* Without an answer for so long everything hangs. */
#define HANGS_SECONDS 60

enum
{
	IDLE,
	POSTED,
	RUNNING,
	ABANDONED
};

struct Mailbox
{
	std::atomic<int> state;
	uint32_t done; /* atomic; set last */
	uint64_t id;
	uint64_t input[WORDS];
	uint64_t output[WORDS];
	uint32_t serves;
};

static Mailbox mailbox[SENDERS];
static GpuRing *ring;
static GpuRingState *state;
static GpuPoster poster;
static std::atomic<uint32_t> complete[BLOCKS]; /* the last number of which all words are written */
static uint64_t node[BLOCKS]; /* what a slot's message refers to beside the mailbox: a tree, pinned */
static std::atomic<bool> stopping;
static std::atomic<bool> closed;
static std::atomic<uint64_t> the_time;
static std::atomic<uint64_t> ids;
static std::atomic<uint64_t> answered;
static std::atomic<uint64_t> abandoned;
static std::atomic<uint64_t> given_up;
static std::atomic<uint64_t> left_unserved;

/* Of the kernel that runs. */
static std::atomic<bool> announced;
static std::atomic<uint64_t> questions;

static thread_local uint64_t seed;

static uint64_t
random_below(uint64_t n)
{
	uint64_t z = (seed += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (z ^ (z >> 31)) % n;
}

/* Anybody may be held up anywhere. */
static void
may_pause(void)
{
	switch (random_below(200))
	{
		case 0:
			usleep((useconds_t) random_below(300));
			break;
		case 1:
		case 2:
		case 3:
			sched_yield();
			break;
		default:
			break;
	}
}

static uint64_t
mix(uint64_t id, uint64_t k)
{
	return (id * UINT64_C(0xD1B54A32D192ED03) ^ k) * UINT64_C(0x9E3779B97F4A7C15);
}

/*
 * One thread as a block.
 */
struct Runtime
{
	int number;
	uint32_t word[GPU_RING_WORDS];
	int served_late; /* of this kernel, since it was known to leave */

	int slot() const
	{
		return number;
	}

	uint64_t now() const
	{
		may_pause();
		CHECK(announced || ++questions <= MOST_QUESTIONS + 2 * BLOCKS);
		return the_time += LEAST_NS + random_below(MOST_NS - LEAST_NS);
	}

	template <typename F> bool agree(const F &f) const
	{
		return f();
	}

	template <typename F> void once(const F &f) const
	{
		may_pause();
		f();
	}

	template <typename F> bool one_says(const F &f) const
	{
		return f();
	}

	bool look(const uint64_t *slot, uint32_t post, const uint64_t *leaving, uint32_t kernel, bool *leaves)
	{
		bool must = complete[number] == post;
		bool posted = true;

		may_pause();
		for (int i = 0; i < GPU_RING_WORDS; i++)
		{
			uint64_t v = __atomic_load_n(&slot[i], __ATOMIC_ACQUIRE);

			posted &= (uint32_t) (v >> 32) == post;
			word[i] = (uint32_t) v;
			if (i % 5 == 0)
				may_pause();
		}
		*leaves = __atomic_load_n(leaving, __ATOMIC_ACQUIRE) == kernel;
		CHECK(posted || !must);
		left_unserved += posted && *leaves;
		return posted;
	}

	uint64_t load(const uint64_t *p) const
	{
		return __atomic_load_n(p, __ATOMIC_ACQUIRE);
	}

	uint32_t load_host(const uint32_t *p) const
	{
		return __atomic_load_n(p, __ATOMIC_ACQUIRE);
	}

	void store(uint64_t *p, uint64_t v) const
	{
		may_pause();
		__atomic_store_n(p, v, __ATOMIC_RELEASE);
		if (p == &state->leaving)
			announced = true;
	}

	void store_host(uint32_t *p, uint32_t v) const
	{
		may_pause();
		__atomic_store_n(p, v, __ATOMIC_RELEASE);
	}

	void announce() const
	{
		may_pause();
	}

	void rest(uint64_t) const
	{
		sched_yield();
	}

	/* The message: number of the mailbox, then what belongs to its request. */
	void serve()
	{
		Mailbox *m = &mailbox[word[0]];

		served_late += announced;
		CHECK(served_late <= 1);
		for (uint32_t k = 1; k < GPU_RING_WORDS; k++)
			CHECK(word[k] == (uint32_t) mix(m->id, k));
		for (int i = 0; i < WORDS; i++)
		{
			may_pause();
			CHECK(node[number] == m->id);
			m->output[i] = mix(m->input[i], m->id);
		}
		m->serves++;
		__atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
		may_pause();
	}
};

/*
 * The stream: one kernel after the other, each of BLOCKS threads that are there all the time.
 */
struct Stream
{
	std::mutex mutex;
	std::condition_variable changed;
	uint32_t launched = 0;
	uint32_t running = 0; /* kernel */
	int left = 0;         /* blocks that have not left it */
	bool ended = false;
};

static void
run_block(Stream *stream, int number, uint64_t my_seed)
{
	uint32_t last = 0;

	seed = my_seed;
	for (;;)
	{
		Runtime runtime = { number, {}, 0 };
		uint32_t kernel;

		{
			std::unique_lock<std::mutex> lock(stream->mutex);

			stream->changed.wait(lock, [&] { return stream->running != last || stream->ended; });
			if (stream->running == last)
				return;
			kernel = last = stream->running;
		}
		may_pause();
		gpu_ring_residency(runtime, ring, state, kernel, [&] { runtime.serve(); });
		{
			std::lock_guard<std::mutex> guard(stream->mutex);

			stream->left--;
			stream->changed.notify_all();
		}
	}
}

static void
run_stream(Stream *stream)
{
	std::unique_lock<std::mutex> lock(stream->mutex);

	for (;;)
	{
		stream->changed.wait(
			lock, [&] { return stream->left == 0 && (stream->running < stream->launched || stream->ended); });
		if (stream->running == stream->launched)
			return;
		announced = false;
		questions = 0;
		stream->left = BLOCKS;
		stream->running++;
		stream->changed.notify_all();
	}
}

static void
launch(Stream *stream, uint32_t kernel)
{
	std::lock_guard<std::mutex> guard(stream->mutex);

	/* no more than one waits behind the one that runs */
	CHECK(kernel == stream->launched + 1 && stream->launched - stream->running <= 1);
	stream->launched = kernel;
	stream->changed.notify_all();
}

/*
 * The poster.
 */

/* A mailbox is given back: whoever still uses it is found out. */
static void
wipe(Mailbox *m)
{
	m->id = 0;
	memset(m->input, 0xA5, sizeof(m->input));
	memset(m->output, 0xA5, sizeof(m->output));
	m->serves = 1000;
}

static bool
post(int i)
{
	int slot = gpu_ring_slot(&poster);
	uint32_t word[GPU_RING_WORDS];
	int expected = POSTED;

	if (slot < 0 || slot >= BLOCKS || !mailbox[i].state.compare_exchange_strong(expected, RUNNING))
		return false;
	word[0] = (uint32_t) i;
	for (uint32_t k = 1; k < GPU_RING_WORDS; k++)
		word[k] = (uint32_t) mix(mailbox[i].id, k);
	node[slot] = mailbox[i].id;
	may_pause();
	gpu_ring_post(&poster, slot, word);
	complete[slot] = poster.posted[slot];
	return true;
}

static void
run_poster(Stream *stream, uint64_t my_seed)
{
	seed = my_seed;
	while (!stopping)
	{
		bool any = false;
		uint32_t ended;

		for (int i = 0; i < SENDERS; i++)
		{
			if (mailbox[i].state == POSTED)
				any |= post(i);
			else if (mailbox[i].state == ABANDONED && __atomic_load_n(&mailbox[i].done, __ATOMIC_ACQUIRE))
			{
				CHECK(mailbox[i].serves == 1);
				wipe(&mailbox[i]);
				mailbox[i].state = IDLE;
			}
		}
		may_pause();
		if (gpu_ring_follow(&poster))
			launch(stream, poster.kernel);
		ended = gpu_ring_collect(&poster);
		if (ended == 0 && !any)
			sched_yield();
		for (; ended != 0; ended &= ended - 1)
			node[__builtin_ctz(ended)] = 0;
	}
}

/*
 * A sender.
 */

/* Gives its request up: true, if it was not too late. */
static bool
abandon(Mailbox *m)
{
	int expected = POSTED;

	if (m->state.compare_exchange_strong(expected, IDLE))
		return true;
	expected = RUNNING;
	return m->state.compare_exchange_strong(expected, ABANDONED);
}

/* When all is over: what has no answer was not touched. */
static void
check_given_up(const Mailbox *m)
{
	CHECK(m->serves == 0);
	for (int k = 0; k < WORDS; k++)
		CHECK(m->output[k] == 0);
	given_up++;
}

static void
run_sender(int i, uint64_t my_seed)
{
	Mailbox *m = &mailbox[i];

	seed = my_seed;
	while (!stopping)
	{
		bool wants = random_below(10) != 0;

		/* from time to time nobody has anything to send */
		if (answered % 500 > 450)
			usleep(100);
		while (m->state != IDLE && !closed)
			sched_yield();
		if (m->state != IDLE)
			break;
		m->id = ++ids;
		for (int k = 0; k < WORDS; k++)
		{
			m->input[k] = random_below(UINT64_MAX);
			m->output[k] = 0;
		}
		m->serves = 0;
		__atomic_store_n(&m->done, 0, __ATOMIC_RELAXED);
		m->state = POSTED;
		may_pause();
		if (!wants && abandon(m))
		{
			abandoned++;
			continue;
		}
		while (!__atomic_load_n(&m->done, __ATOMIC_ACQUIRE) && !closed)
			sched_yield();
		if (!__atomic_load_n(&m->done, __ATOMIC_ACQUIRE))
			break;
		CHECK(m->serves == 1);
		for (int k = 0; k < WORDS; k++)
			CHECK(m->output[k] == mix(m->input[k], m->id));
		wipe(m);
		answered++;
		alarm(HANGS_SECONDS);
		m->state = IDLE;
	}
	while (!closed)
		sched_yield();
	if (m->state != IDLE && !__atomic_load_n(&m->done, __ATOMIC_ACQUIRE))
		check_given_up(m);
}

static void
hangs(int)
{
	static const char message[] = "no answer for a minute: everything hangs\n";

	(void) !write(STDERR_FILENO, message, sizeof(message) - 1);
	_exit(1);
}

/* Returns how many kernels there were. */
static uint32_t
run_round(void)
{
	std::thread block[BLOCKS];
	std::thread sender[SENDERS];
	std::thread streamer;
	std::thread posting;
	Stream stream;
	uint64_t goal = answered + REQUESTS + test_below(REQUESTS / 10);

	ring = (GpuRing *) calloc(1, sizeof(GpuRing));
	state = (GpuRingState *) calloc(1, sizeof(GpuRingState));
	CHECK(ring != NULL && state != NULL);
	memset(&poster, 0, sizeof(poster));
	poster.ring = ring;
	stopping = closed = false;
	for (int i = 0; i < SENDERS; i++)
		mailbox[i].state = IDLE;
	for (int i = 0; i < BLOCKS; i++)
	{
		complete[i] = 0;
		block[i] = std::thread(run_block, &stream, i, test_random());
	}
	streamer = std::thread(run_stream, &stream);
	posting = std::thread(run_poster, &stream, test_random());
	for (int i = 0; i < SENDERS; i++)
		sender[i] = std::thread(run_sender, i, test_random());
	while (answered < goal)
		usleep(200);

	/* as the engine is closed */
	stopping = true;
	posting.join();
	gpu_ring_end(ring);
	{
		std::unique_lock<std::mutex> lock(stream.mutex);

		stream.changed.wait(lock, [&] { return stream.left == 0 && stream.running == stream.launched; });
		stream.ended = true;
		stream.changed.notify_all();
	}
	memset(ring, 0xA5, sizeof(GpuRing));
	free(ring);
	closed = true;
	for (int i = 0; i < SENDERS; i++)
		sender[i].join();
	for (int i = 0; i < BLOCKS; i++)
		block[i].join();
	streamer.join();
	free(state);
	return stream.launched;
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3;
	uint64_t kernels = 0;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	signal(SIGALRM, hangs);
	alarm(HANGS_SECONDS);
	for (int round = 0; round < rounds; round++)
		kernels += run_round();
	/* what is to be tested has happened */
	CHECK(kernels > (uint64_t) rounds * 10 && abandoned > 0 && left_unserved > 0);
	printf("%llu kernels, %llu messages left to the next, %llu requests abandoned, %llu given up at an end\n"
		   "%llu passed, 0 failed\n",
		   (unsigned long long) kernels, (unsigned long long) left_unserved, (unsigned long long) abandoned,
		   (unsigned long long) given_up, (unsigned long long) answered);
	return 0;
}
