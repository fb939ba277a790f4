/*-------------------------------------------------------------------------
 *
 * queue.h
 *	  How backends and the processes that own the GPUs hand requests to and fro.
 *
 * Each GPU, a card, has a process, a queue and staging memory of its own: what one
 * card that hangs may still write to is never used with another.
 *
 * Every backend has a mailbox for each card, and so one request at most under way to
 * each.  A mailbox holds the request and the data of a small one; larger data lie in a
 * span of staging units that goes with the request.  Both are staging memory,
 * which the GPU reads and writes itself.
 *
 *	  IDLE		the backend's: it may fill the mailbox
 *	  POSTED	filled; its bit in queue->posted tells the worker
 *	  RUNNING	the worker has taken it; request and span are the engine's
 *				until request.done is 1
 *	  DONE		the worker has seen that it is done
 *	  ABANDONED	the backend has lost interest in a RUNNING one: when it is done,
 *				the worker frees its span and makes the mailbox IDLE
 *
 *	  IDLE -> POSTED			backend
 *	  POSTED -> IDLE			backend takes it back: the worker never saw it
 *	  POSTED -> RUNNING			worker
 *	  RUNNING -> DONE			worker, compare and exchange
 *	  RUNNING -> ABANDONED		backend, compare and exchange
 *	  RUNNING, DONE -> IDLE		backend has taken the answer
 *	  ABANDONED -> IDLE			worker
 *
 * The answer to a scan is taken as soon as request.done is 1, which the GPU sets
 * itself; other answers when the state is DONE, for the worker accounts for
 * memory before that.
 *
 * Nobody waits for a worker that is not there.  queue->serving is the epoch of
 * the worker that takes requests, else 0.  An epoch says of which card it is
 * (GpudsEpochCard).  A backend posts, then looks at
 * serving; a worker that ends clears serving, then marks all that is posted
 * or running as lost.  One of them sees the other.  A new worker
 * has a new epoch; trees of an earlier epoch are gone.
 *
 * A GPU that hangs may write to the memory of its requests, to mailboxes as well as
 * to spans, until the worker's process has ended, although they are lost and their
 * backends have them back.  So nobody looks at a request that is lost, and nothing
 * is sent before there is another worker.
 *
 * Likewise for sleep: a backend sets its bit in queue->sleepers, then looks at
 * its request once more; the worker finishes a request, then looks at the bit
 * and sets the latch.  The worker sets queue->worker_asleep, then looks for
 * posted requests once more.
 *
 * The order in which requests of one tree reach the engine is that of their
 * posting: a backend that gives up (and lets another become applier) has
 * either taken its request back, or the worker had handed it over before.
 *
 * A backend that did not see the end of a drop in time leaves the tree to the worker:
 * it sets the tree's bit in queue->left.  The worker drops it as soon as the engine is
 * through with what came before, unless a load of another tree under the same number comes
 * first, which drops the former one itself.
 *
 * A request about the backend's graph that is ABANDONED becomes the drop of that graph before the mailbox is
 * IDLE, so no graph stays with a backend whose call has ended.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_QUEUE_H
#define GPUDS_QUEUE_H

#include "gpuds.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

#include "device/cards.h"
#include "kernels/engine/engine.h"

/* Staging memory is handed out in spans of such units. */
#define GPUDS_UNIT_BYTES (256 * 1024)

/* No request's input or output is longer; a span has room for both. */
#define GPUDS_PIECE_BYTES (8 * 1024 * 1024)
#define GPUDS_SPAN_UNITS (2 * GPUDS_PIECE_BYTES / GPUDS_UNIT_BYTES)

typedef enum GpudsMailboxState
{
	MAILBOX_IDLE,
	MAILBOX_POSTED,
	MAILBOX_RUNNING,
	MAILBOX_DONE,
	MAILBOX_ABANDONED
} GpudsMailboxState;

/* A span of a card's staging units; n = 0: none. */
typedef struct GpudsStagingSpan
{
	uint32 first;
	uint16 n;
	uint16 card;
} GpudsStagingSpan;

/* What a test makes go wrong with a request (GPUDS_INJECTION_POINTS builds). */
typedef enum GpudsFault
{
	FAULT_NONE,
	FAULT_STICKY,    /* the device is lost before the request gets there */
	FAULT_NO_MEMORY, /* the next allocation of tree memory fails */
	FAULT_BAD_ALLOC, /* the next allocation of the worker's memory for a tree fails */
	FAULT_HOLD,      /* the worker keeps the request until it is abandoned */
	FAULT_HOLD_DROP, /* the same with the next drop; no other request meets it */
	FAULT_HANG,      /* the GPU never comes to an end with the request */
	FAULT_STUCK      /* the worker is held up in a call of the engine */
} GpudsFault;

/*
 * A backend's place in the line for staging memory: between two others, named by
 * the numbers of their mailboxes, -1: none.  Under staging_mutex.
 */
typedef struct GpudsStagingWait
{
	bool in_line;
	int32 before;
	int32 after;
	int procno;
	uint32 least; /* units */
	uint32 most;
	GpudsStagingSpan span; /* what it was given when it came to its turn */
} GpudsStagingWait;

/* Room for the input and then for the output of the largest small scan. */
#define GPUDS_INLINE_INPUT (GPU_SMALL_INTERVALS * sizeof(GpudsInterval))
#define GPUDS_INLINE_BYTES (GPUDS_INLINE_INPUT + GPU_SMALL_ENTRIES * sizeof(GpudsEntry))

typedef struct GpudsMailbox
{
	union
	{
		GpuRequest request;
		char pad_request[320];
	};
	/* not in the lines that the GPU writes */
	pg_atomic_uint32 state;
	int procno;            /* of the backend, for its latch */
	uint64 epoch;          /* of the worker that it was meant for */
	GpudsStagingSpan span; /* goes with the request */
	uint32 fault;          /* GpudsFault */
	bool lost;             /* the worker has ended: request is not to be looked at */
	uint8 card;            /* that it is for */
	char pad_state[64 - 32];
	GpudsStagingWait wait;
	char pad_wait[128 - sizeof(GpudsStagingWait)];
	char data[GPUDS_INLINE_BYTES];
} GpudsMailbox;

StaticAssertDecl(sizeof(GpudsMailbox) == 8192, "a mailbox has 8 kB");

typedef enum GpudsCudaState
{
	CUDA_ABSENT,   /* there is none, for good; detail says why */
	CUDA_STARTING, /* the worker is on its way, or will be started again */
	CUDA_READY
} GpudsCudaState;

/* What the worker says of itself; a copy is taken with gpuds_queue_info. */
typedef struct GpudsCudaInfo
{
	GpudsCudaState state;
	int pid;           /* 0: no worker */
	TimestampTz since; /* of the state */
	uint64 losses;     /* times that it was lost */
	char name[128];    /* of the card */
	char detail[256];  /* why it is absent or had to be restarted */
	size_t memory_total;
	size_t memory_used; /* by trees */
} GpudsCudaInfo;

typedef struct GpudsQueue
{
	pg_atomic_uint64 serving;       /* epoch of the worker that takes requests, else 0 */
	pg_atomic_uint32 worker_asleep; /* needs its latch set */
	int card;
	int worker_procno;        /* valid while serving */
	uint32 structures;        /* of its engine, as in GpuEngineApi; likewise ... */
	uint32 ranked;            /* ... and those with ranks */
	pg_atomic_uint32 crowded; /* more sessions send requests than there are CPUs */
	pg_atomic_uint32 stalls;  /* the GPU, or the driver, is at something for long: it may hang */

	slock_t info_mutex;
	GpudsCudaInfo info;
	uint64 epoch;                   /* last one given; the worker's */
	ConditionVariable info_changed; /* that of the first card is for all */

	uint32 open_failures; /* attempts to open the device, in a row; the worker's */

	slock_t staging_mutex;
	int32 first_in_line; /* who waits for staging memory: mailboxes, -1: nobody */
	int32 last_in_line;
	uint32 nunits;
	uint32 nkeepable; /* units, the first ones, that may be kept for long */
	uint32 nmailboxes;
	uint32 nwords;      /* of the bitmaps of mailboxes */
	uint32 nleft_words; /* of that of trees */

	pg_atomic_uint32 nleft; /* trees that the worker is to drop (queue.c) */

	/*
	 * A bit a mailbox: posted[nwords], sleepers[nwords], and taken[nwords], which the worker alone changes; a
	 * bit a tree: left; and a byte a unit, 1 if it is taken.
	 */
	pg_atomic_uint64 bits[FLEXIBLE_ARRAY_MEMBER];
} GpudsQueue;

/* A request that is under way. */
typedef struct GpudsSent
{
	GpudsMailbox *mailbox;  /* NULL: none is */
	GpudsStagingSpan *span; /* that goes with it, or NULL */
} GpudsSent;

/* for both sides */
extern Size gpuds_queue_shmem_size(void);
extern void gpuds_queue_shmem_init(void);
extern GpudsQueue *gpuds_queue(int card);
extern char *gpuds_staging_memory(int card, size_t *bytes);
extern GpudsMailbox *gpuds_mailbox(int card, int i);
extern void gpuds_staging_give(GpudsStagingSpan *span);
extern void gpuds_queue_info(int card, GpudsCudaInfo *info);
extern size_t gpuds_staging_used(int card);

static inline pg_atomic_uint64 *
gpuds_queue_posted(GpudsQueue *queue, int i)
{
	return &queue->bits[i / 64];
}

static inline pg_atomic_uint64 *
gpuds_queue_sleepers(GpudsQueue *queue, int i)
{
	return &queue->bits[queue->nwords + i / 64];
}

/* Of the requests that the worker has taken, and is not through with. */
static inline pg_atomic_uint64 *
gpuds_queue_taken(GpudsQueue *queue, int i)
{
	return &queue->bits[2 * queue->nwords + i / 64];
}

static inline pg_atomic_uint64 *
gpuds_queue_left(GpudsQueue *queue, uint32 tree)
{
	return &queue->bits[3 * queue->nwords + tree / 64];
}

#define GpudsQueueBit(i) (UINT64CONST(1) << ((i) % 64))

/* The card of an epoch, which is not 0. */
#define GpudsEpochCard(epoch) ((int) ((epoch) % GPUDS_MOST_CARDS))

/* The epoch that a card serves, 0: none. */
static inline uint64
gpuds_card_epoch(int card)
{
	uint64 epoch = pg_atomic_read_u64(&gpuds_queue(card)->serving);

	/* pairs with that of start_serving: what the worker has said of itself is seen */
	pg_read_barrier();
	return epoch;
}

/* Is the epoch being served? */
static inline bool
gpuds_epoch_is_served(uint64 epoch)
{
	return epoch != 0 && gpuds_card_epoch(GpudsEpochCard(epoch)) == epoch;
}

/* Does any card serve? */
static inline bool
gpuds_any_card_serves(void)
{
	for (int card = 0; card < gpuds_cards; card++)
	{
		if (gpuds_card_epoch(card) != 0)
			return true;
	}
	return false;
}

/* Does the card seem to hang?  Says nothing of one that is lost. */
static inline bool
gpuds_queue_stalls(int card)
{
	return pg_atomic_read_u32(&gpuds_queue(card)->stalls) != 0;
}

/* Requests that a card has or is to take, about. */
extern int gpuds_queue_length(int card);

/*
 * For backends.  In the order of their use:
 *
 * gpuds_mailbox_open gives this backend's mailbox, after waiting for a request
 * that was abandoned; the request's fields are zero.  NULL: epoch is not being
 * served.
 *
 * gpuds_staging_take takes from least to most bytes of the staging memory of an epoch's card, waiting for
 * as long as there is not as much; requests are served in their order.  Only while the
 * backend holds no span, and not for longer than a request and the reading of its answer
 * take.  gpuds_staging_shrink leaves the first so many bytes of it.  gpuds_staging_keep
 * takes, without waiting, up to so many bytes that may be kept for as long as
 * one likes; false: there are none.
 *
 * gpuds_mailbox_send posts the request and waits for the answer.  False: it did
 * not get there (GPU_DEVICE_LOST is possible as an answer, too).  Then the mailbox
 * is closed.  The span stays the caller's, except if an error is raised: then it
 * has been taken care of, and span->n is 0.
 *
 * gpuds_mailbox_post and gpuds_mailbox_collect are the two halves of gpuds_mailbox_send, for requests to
 * several cards, whose mailboxes have all been opened before one is posted, and nothing raises an error
 * between the halves.  collect leaves the mailbox NULL of each that did not get there.  An error that
 * it raises gives up all requests; each span has been taken care of then, as above.  gpuds_staging_try is
 * gpuds_staging_take without waiting, which is allowed while other spans are held; false: not now.
 *
 * gpuds_mailbox_close ends the use of the answer.  No error may be raised
 * between send and close.
 *
 * Waits check for interrupts, and so may raise errors, if patient is false.  With
 * patient set they do not, but give up after some seconds: for cleanup.
 */
extern GpudsMailbox *gpuds_mailbox_open(uint64 epoch, bool patient);
extern void gpuds_staging_take(GpudsStagingSpan *span, uint64 epoch, size_t least, size_t most);
extern bool gpuds_staging_try(GpudsStagingSpan *span, uint64 epoch, size_t least, size_t most);
extern bool gpuds_staging_keep(GpudsStagingSpan *span, uint64 epoch, size_t most);
extern void gpuds_staging_shrink(GpudsStagingSpan *span, size_t bytes);
extern char *gpuds_staging_at(const GpudsStagingSpan *span);
extern uint64 gpuds_staging_offset(const void *p);
extern bool gpuds_mailbox_post(GpudsMailbox *mailbox, const GpudsStagingSpan *span, uint64 epoch);
extern void gpuds_mailbox_collect(GpudsSent **sent, int n);
extern bool gpuds_mailbox_send(GpudsMailbox *mailbox, GpudsStagingSpan *span, uint64 epoch, bool patient);
extern void gpuds_mailbox_close(GpudsMailbox *mailbox);

/*
 * Has the worker of an epoch's card drop a tree whose GPU_DROP was given up.  The caller is the one process
 * that may change the tree.  No harm if another worker serves by now.
 */
extern void gpuds_queue_leave(uint64 epoch, uint32 tree);

/* For the worker: takes the tree's bit; false: it is not set. */
extern bool gpuds_queue_take_left(GpudsQueue *queue, uint32 tree);

/*
 * Does a card serve?  Waits a little for workers that are just starting, if none does.
 */
extern bool gpuds_queue_wait_ready(void);

/* worker.c */
extern void gpuds_worker_register(void);
extern void gpuds_worker_register_others(void);
extern PGDLLEXPORT void gpuds_worker_main(Datum arg);

#ifdef GPUDS_INJECTION_POINTS
extern int gpuds_device_open_failures;   /* that many attempts in a row fail */
extern int gpuds_device_lacks_structure; /* number of a structure that the engine does without */
extern void gpuds_fault_define_guc(void);
#endif

#endif /* GPUDS_QUEUE_H */
