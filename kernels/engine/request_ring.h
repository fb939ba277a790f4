/*-------------------------------------------------------------------------
 *
 * request_ring.h
 *	  The ring: how messages reach a kernel that stays on the GPU, and how one
 *	  such kernel follows another.
 *
 * The ring lies in host memory.  It has a slot for each block of the kernel;
 * one thread of the host, the poster, posts.
 *
 *	  post		The poster writes a message into a free slot.  A slot is 16 words of 8
 *				bytes; the upper half of each is the number of the post, the lower half
 *				a part of the message: as a word is written and read as one, a block that
 *				sees the new number in all words has the whole message, in one trip over
 *				the bus.
 *	  serve		The slot's block does what the message says.  It writes what the sender
 *				is to read first, and the answer last.
 *	  acknowledge	The block then writes the number on the ring: it has finished with
 *				everything that the message refers to, and the slot is free.
 *	  leave		A kernel has an end: when its life is over, which each block tests at
 *				every look at its slot, or when nothing was posted for a while or the
 *				host wants it to leave, which block 0 tests at every few looks, busy or not.
 *				A block that finds that says so to the host, then to the other blocks.  These
 *				see it at their next look, and leave what they have not begun.
 *	  follow	As soon as the poster reads that the last kernel it launched is leaving, and
 *				if anything is posted and not acknowledged, it launches the next one
 *				behind it, in the same stream: that one begins when the last block has left.
 *				Each block notes in device memory how many posts it has served, and its
 *				successor goes on there.  So a post is served once, and waits for
 *				no more than one look, one serving and one launch beside what is before it.
 *	  abandon	is not the ring's business: memory that a message refers to is in use
 *				until the answer is there, whether somebody waits for it or not.
 *	  close		The host asks the kernel to leave, and has the stream come to its end.
 *				After that nothing is written any more; posts may remain unserved.
 *
 * A block that leaves has seen that the kernel is leaving, which the host can see
 * before it can: so a post that it has not served is not forgotten, provided that
 * the poster keeps looking (gpu_ring_follow) while a slot is busy.
 *
 * The functions of a block are templates.  Their parameter is the runtime: a block
 * of threads of a GPU (persistent.h), or one thread that does as a block (the
 * emulation; test/kernels/request_ring.cu, for the thread sanitizer).  A runtime has:
 *
 *	  int slot()						number of the block
 *	  uint64_t now()					nanoseconds
 *	  bool agree(f)						what f() returns, in all of its threads; f is called
 *										by a few of them, together
 *	  void once(f)						f() in one thread
 *	  bool look(slot, number, leaving, kernel, *leaves)
 *										inside agree: is message number there?  If so
 *										the runtime has a copy.  *leaves: is *leaving
 *										kernel?
 *	  bool one_says(f)					inside agree: f() of one thread
 *	  uint64_t load(p), uint32_t load_host(p)
 *	  void store(p, uint64_t)			for other blocks
 *	  void store_host(p, uint32_t)		for the host, after all that the block did
 *	  void announce(p)					what was stored comes before what will be
 *	  void rest(ns)						inside agree: nothing was there for so long
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_RING_H
#define GPU_RING_H

#include <stdbool.h>
#include <stdint.h>

/* A function of a block. */
#ifdef GPU_EMULATED
#define GPU_BLOCK_FN inline
#else
#define GPU_BLOCK_FN __device__ __forceinline__
#endif

/* Posts that can be under way at a time; blocks of a kernel. */
#define GPU_RING_SLOTS 32

#define GPU_RING_WORDS 16

/* A kernel without posts for so long leaves, and any kernel that is so old. */
#define GPU_RING_IDLE_NS 1000000
#define GPU_RING_LIFETIME_NS 20000000

/* Looks after which block 0 asks whether that is so. */
#define GPU_RING_LOOKS 16

/* What host and device tell each other; in host memory. */
struct GpuRing
{
	uint64_t slot[GPU_RING_SLOTS][GPU_RING_WORDS]; /* number of the post << 32 | word */
	uint32_t acknowledged[GPU_RING_SLOTS];         /* last post that was served */
	uint32_t leaving;                              /* the last kernel that has decided to leave */
	uint32_t leave;                                /* not 0: the kernel is to leave */
};

/* What blocks tell each other and their successors; in device memory, at first all 0. */
struct GpuRingState
{
	uint32_t served[GPU_RING_SLOTS]; /* last post that was served; written by a block that leaves */
	uint64_t last;                   /* when the last one was */
	uint64_t leaving;                /* the last kernel that has decided to leave */
};

/* What the poster knows. */
struct GpuPoster
{
	GpuRing *ring;
	uint32_t posted[GPU_RING_SLOTS];
	uint32_t busy;   /* a bit a slot: posted, and not known to be acknowledged */
	uint32_t kernel; /* number of the last one launched */
};

/*
 * A block's side.
 */

/* A kernel that a block belongs to. */
struct GpuRingResidency
{
	GpuRing *ring;
	GpuRingState *state;
	uint32_t kernel;
	uint32_t looks;
	uint64_t began;
};

/* By one thread: is the kernel to leave?  If so all are told. */
template <typename Runtime>
GPU_BLOCK_FN bool
gpu_ring_ends(Runtime &runtime, const GpuRingResidency &stay)
{
	uint64_t now = runtime.now();
	bool ends = now - stay.began > GPU_RING_LIFETIME_NS;

	if (!ends && runtime.slot() == 0 && stay.looks % GPU_RING_LOOKS == 0)
	{
		uint64_t last = runtime.load(&stay.state->last);
		uint64_t since = last > stay.began ? last : stay.began;

		ends = (now > since && now - since > GPU_RING_IDLE_NS) || runtime.load_host(&stay.ring->leave) != 0;
	}
	if (ends)
	{
		/* The host first: no block may leave before it can know. */
		runtime.store_host(&stay.ring->leaving, stay.kernel);
		runtime.announce();
		runtime.store(&stay.state->leaving, stay.kernel);
	}
	return ends;
}

/* Inside agree: wait for message number; false: the kernel leaves. */
template <typename Runtime>
GPU_BLOCK_FN bool
gpu_ring_await(Runtime &runtime, GpuRingResidency &stay, uint32_t number)
{
	uint64_t since = runtime.now();

	for (;;)
	{
		bool leaves;
		bool posted = runtime.look(stay.ring->slot[runtime.slot()], number, &stay.state->leaving, stay.kernel,
								   &leaves);

		stay.looks++;
		if (leaves || runtime.one_says([&] { return gpu_ring_ends(runtime, stay); }))
			return false;
		if (posted)
			return true;
		runtime.rest(runtime.now() - since);
	}
}

/* What a block does from its beginning to its end; serve() serves the message that was looked at. */
template <typename Runtime, typename Serve>
GPU_BLOCK_FN void
gpu_ring_residency(Runtime &runtime, GpuRing *ring, GpuRingState *state, uint32_t kernel, const Serve &serve)
{
	uint32_t number = state->served[runtime.slot()];
	GpuRingResidency stay = { ring, state, kernel, 0, runtime.now() };

	while (runtime.agree([&] { return gpu_ring_await(runtime, stay, number + 1); }))
	{
		serve();
		number++;
		runtime.once(
			[&]
			{
				runtime.store(&state->last, runtime.now());
				runtime.store_host(&ring->acknowledged[runtime.slot()], number);
			});
	}
	runtime.once([&] { state->served[runtime.slot()] = number; });
}

/*
 * The host's side.
 */

/* A free slot, -1: there is none. */
static inline int
gpu_ring_slot(const GpuPoster *poster)
{
	return poster->busy == UINT32_MAX ? -1 : __builtin_ctz(~poster->busy);
}

/*
 * Post a message in a free slot; what it refers to has been written.  When all are
 * posted, gpu_ring_follow must be called.
 */
static inline void
gpu_ring_post(GpuPoster *poster, int slot, const uint32_t *word)
{
	uint64_t number = ++poster->posted[slot];

	for (int i = 0; i < GPU_RING_WORDS; i++)
		__atomic_store_n(&poster->ring->slot[slot][i], number << 32 | word[i], __ATOMIC_RELEASE);
	poster->busy |= 1u << slot;
}

/* For tests of what is never acknowledged: takes the slot, and posts nothing. */
static inline void
gpu_ring_lose(GpuPoster *poster, int slot)
{
	poster->posted[slot]++;
	poster->busy |= 1u << slot;
}

/* Is the next kernel, of number poster->kernel then, to be launched now?  To be asked while busy is not 0. */
static inline bool
gpu_ring_follow(GpuPoster *poster)
{
	if (poster->busy == 0 || __atomic_load_n(&poster->ring->leaving, __ATOMIC_ACQUIRE) != poster->kernel)
		return false;
	poster->kernel++;
	return true;
}

/* Has the slot's post been acknowledged? */
static inline bool
gpu_ring_acknowledged(const GpuPoster *poster, int slot)
{
	return __atomic_load_n(&poster->ring->acknowledged[slot], __ATOMIC_ACQUIRE) == poster->posted[slot];
}

/* Returns a bit for each slot that has become free. */
static inline uint32_t
gpu_ring_collect(GpuPoster *poster)
{
	uint32_t ended = 0;

	for (uint32_t left = poster->busy; left != 0; left &= left - 1)
	{
		int slot = __builtin_ctz(left);

		if (gpu_ring_acknowledged(poster, slot))
			ended |= 1u << slot;
	}
	poster->busy &= ~ended;
	return ended;
}

/* Ask the kernel, and any that follows, to leave. */
static inline void
gpu_ring_end(GpuRing *ring)
{
	__atomic_store_n(&ring->leave, 1, __ATOMIC_RELEASE);
}

#endif /* GPU_RING_H */
