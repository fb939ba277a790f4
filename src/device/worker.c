/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The process that owns a GPU: takes requests from mailboxes, hands them
 *	  to the engine, sees to it that they are answered.
 *
 * Each GPU has one.  Backends never touch CUDA.  Only workers load the engine's library, and
 * only a worker's main thread calls PostgreSQL; the engine's threads have all signals
 * blocked.
 *
 * However the process ends, worker_exit answers what is under way: first it says
 * that nobody serves, then it closes the engine, after which nothing writes to
 * staging memory any more, then it goes through the mailboxes.  (A process that
 * is killed cannot; then the postmaster restarts all of them.)
 *
 * A GPU that hangs holds nobody for longer than gpuds.device_timeout.  The main
 * thread sees that the GPU does not come to an end with a request (check_hung).
 * And if the main thread itself is held up, because a call of the engine does not
 * return, another thread, the watchdog, ends the process in its place.  PostgreSQL's
 * code knows no threads, but it does not mind which one runs it, as long as there is
 * only one: the watchdog takes over with one atomic exchange, which succeeds only
 * while the main thread is in the engine (enter_engine), and from which the main
 * thread does not return (leave_engine).
 *
 * Then the GPU is left to itself, and may go on writing until the process has
 * ended.  That is harmless (see queue.h).  The process must not run exit handlers
 * then, which wait for the GPU: end_at_once.  When shared memory has been left in
 * order the postmaster takes that for any other end with status 1, and starts
 * the worker again.
 *
 * A device that cannot be opened is tried again, by a process that has not
 * touched CUDA before: the driver remembers how it was at the first attempt.
 * Only where no GPU can be expected, the worker ends for good.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "storage/s_lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/ps_status.h"
#include "utils/timestamp.h"

#include "device/queue.h"
#include "kernels/structures.h"

#define ENGINE_LIBRARY "gpuds_cuda"

#define NANOS_PER_MS UINT64CONST(1000000)
#define NANOS_PER_S UINT64CONST(1000000000)

/* Stay awake for so long after the last request. */
#define LINGER_US 1000

/*
 * A yield this long means that another process is using the CPU.  For a while the
 * worker then sleeps whenever it is idle: the scheduler prefers a process that wakes up.
 */
#define CPU_LOST_US 1000
#define AVOID_US (100 * 1000)

/*
 * With fewer CPUs than this the worker gives way to others in every idle turn.
 * With more it does not: the process that got the CPU would keep it for a while, and all
 * sessions wait for the worker.
 */
#define CPUS_TO_HOLD_ONE 4

/*
 * Small requests are posted at once if few sessions send them.  If many do, they
 * share what posting costs: one request for every so many sessions is waited for,
 * but not for longer than this.
 */
#define SESSIONS_A_REQUEST 10
#define COLLECT_US 10

/* Turns of the main loop after which the sessions are counted anew. */
#define TURNS_A_COUNT 4096

/* A process that lost its GPU is started again after this. */
#define RESTART_SECONDS 1

/* Attempts to open a device that fail are this far apart in the end. */
#define MAX_DELAY_SECONDS 60

/* How long a driver may take to open a device, at least. */
#define OPEN_MS (60 * 1000)

/* How long the engine may wait for a GPU that is wanted no more; and until it must be back. */
#define CLOSE_MS (10 * 1000)
#define CLOSED_MS (CLOSE_MS + 5 * 1000)

/* Time between two looks of the watchdog; or at requests, while the worker sleeps. */
#define LOOK_MS 1000

/* A request that the GPU has had for so long may never end, nor may such a call of the driver. */
#define STALL_MS (2 * 1000)

/* How far a mailbox's request has come. */
typedef enum RequestStage
{
	STAGE_NONE,     /* the worker has not taken it */
	STAGE_WAITING,  /* it is to be posted to the persistent kernel, or a test holds it */
	STAGE_POSTED,   /* ... and has been */
	STAGE_SUBMITTED /* a thread of the engine does it */
} RequestStage;

/* The queue of this worker's card. */
static GpudsQueue *queue = NULL;

static const GpuEngineApi *api = NULL;
static GpuEngine *engine = NULL;

/* That the engine has, as in GpuEngineApi. */
static uint32 structures = 0;

/* Of each mailbox's request.  If it is not STAGE_NONE, its bit in the queue says that it is taken. */
static uint8 *stage = NULL;
static uint64 *watched = NULL; /* bits of those, the ones that wait for us */

/* Mailboxes of small requests that wait to be posted. */
static int *waiting = NULL;
static int nwaiting = 0;
static int nwanted = 0;          /* worth posting together */
static instr_time waiting_since; /* there have been any */

/* The drop of a tree that was left to us, the engine's while there is one under way. */
static GpuRequest dropping;
static bool is_dropping = false;

static int ncpus = 1;

/* What the main thread is at. */
typedef enum Phase
{
	OPENING,
	SERVING,
	CLOSING
} Phase;

/* For the watchdog, too; what it sees may be old, which costs it another look. */
static volatile Phase phase = OPENING;

/*
 * Odd while the main thread is in the engine, another number each time.  Only the
 * main thread changes it, but to TAKEN_OVER.
 */
static pg_atomic_uint64 crossing;

#define TAKEN_OVER UINT64_MAX

/* The process ends without exit handlers. */
static bool end_at_once = false;

/* Says of a message which GPU it is about. */
static void
name_card(void *arg)
{
	errcontext("GPU %d", gpuds_card_id[queue->card]);
}

static ErrorContextCallback naming_card = { .callback = name_card };

/* The engine lies beside this library, wherever dynamic_library_path has led to that. */
static void
engine_path(char *path, size_t size)
{
	char directory[MAXPGPATH];
	Dl_info library;

	if (dladdr((void *) engine_path, &library) != 0)
	{
		strlcpy(directory, library.dli_fname, sizeof(directory));
		get_parent_directory(directory);
	}
	else
		strlcpy(directory, pkglib_path, sizeof(directory));
	snprintf(path, size, "%s/%s%s", directory, ENGINE_LIBRARY, DLSUFFIX);
}

static void
register_worker(int card)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_PostmasterStart;
	worker.bgw_restart_time = RESTART_SECONDS;
	worker.bgw_main_arg = Int32GetDatum(card);
	strlcpy(worker.bgw_library_name, "gpuds", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "gpuds_worker_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "gpuds device worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "gpuds device worker", BGW_MAXLEN);
	if (gpuds_cards > 1)
		snprintf(worker.bgw_name, BGW_MAXLEN, "gpuds device worker for GPU %d", gpuds_card_id[card]);
	RegisterBackgroundWorker(&worker);
}

/*
 * Finds which cards there are, and registers a worker for the first.  Called when the library is preloaded.
 * Without the engine there is no worker and no staging memory.
 */
void
gpuds_worker_register(void)
{
	char path[MAXPGPATH];

	engine_path(path, sizeof(path));
	if (access(path, R_OK) != 0)
		return;
	gpuds_find_cards(gpuds_device_ids);
	register_worker(0);
}

/* Registers workers for the other cards, which may be more than there are slots for. */
void
gpuds_worker_register_others(void)
{
	for (int card = 1; card < gpuds_cards; card++)
		register_worker(card);
}

/* The taken bits of a word.  Nobody else changes them. */
static inline uint64
taken_bits(int word)
{
	return pg_atomic_read_u64(gpuds_queue_taken(queue, word * 64));
}

/* Sets or clears a mailbox's bit. */
static inline void
set_taken(int i, bool is_taken)
{
	const uint64 others = taken_bits(i / 64) & ~GpudsQueueBit(i);

	pg_atomic_write_u64(gpuds_queue_taken(queue, i), is_taken ? others | GpudsQueueBit(i) : others);
}

/* Says whether what is under way takes so long that the GPU may hang.  Also for the watchdog. */
static void
tell_stalls(bool stalls)
{
	if ((pg_atomic_read_u32(&queue->stalls) != 0) != stalls)
		pg_atomic_write_u32(&queue->stalls, stalls);
}

static inline void
enter_engine(void)
{
	/* pairs with the watchdog's exchange, which may make it the thread that goes on from here */
	pg_write_barrier();
	pg_atomic_write_u64(&crossing, pg_atomic_read_u64(&crossing) + 1);
}

/* Does not return if the watchdog has taken over. */
static inline void
leave_engine(void)
{
	uint64 inside = pg_atomic_read_u64(&crossing);

	while (inside == TAKEN_OVER || !pg_atomic_compare_exchange_u64(&crossing, &inside, inside + 1))
		pause();
}

static void
tell_state(GpudsCudaState state, int pid, const char *detail)
{
	GpudsCudaInfo *info = &queue->info;
	TimestampTz now = GetCurrentTimestamp();

	SpinLockAcquire(&queue->info_mutex);
	if (info->state != state)
		info->since = now;
	info->state = state;
	info->pid = pid;
	if (detail)
		strlcpy(info->detail, detail, sizeof(info->detail));
	if (state != CUDA_READY)
		info->memory_used = 0;
	SpinLockRelease(&queue->info_mutex);
	ConditionVariableBroadcast(&gpuds_queue(0)->info_changed);
}

static void
tell_memory(void)
{
	GpuEngineInfo now;

	api->info(engine, &now);
	SpinLockAcquire(&queue->info_mutex);
	strlcpy(queue->info.name, now.name, sizeof(queue->info.name));
	queue->info.memory_total = now.memory_total;
	queue->info.memory_used = now.memory_used;
	SpinLockRelease(&queue->info_mutex);
}

/*
 * Answers
 */

static void
answer_lost(GpudsMailbox *mailbox)
{
	mailbox->lost = true;
	__atomic_store_n(&mailbox->request.done, 1, __ATOMIC_RELEASE);
}

/* Wakes the mailbox's owner, if it sleeps; its state or its answer has changed. */
static void
wake(int i)
{
	/*
	 * Pairs with wait_until (queue.c), which sets the bit and then looks once more.  An exchange of the
	 * state does not order its store before this load on every machine.
	 */
	pg_memory_barrier();
	if (pg_atomic_read_u64(gpuds_queue_sleepers(queue, i)) & GpudsQueueBit(i))
	{
		pg_atomic_fetch_and_u64(gpuds_queue_sleepers(queue, i), ~GpudsQueueBit(i));
		SetLatch(&GetPGProcByNumber(gpuds_mailbox(queue->card, i)->procno)->procLatch);
	}
}

/* The mailbox's request need not wait for a slot any more. */
static void
forget_waiting(int i)
{
	int n = 0;

	for (int at = 0; at < nwaiting; at++)
	{
		if (waiting[at] != i)
			waiting[n++] = waiting[at];
	}
	nwaiting = n;
}

/* The mailbox's request was abandoned and is no longer the engine's. */
static void
clear_away(int i)
{
	GpudsMailbox *mailbox = gpuds_mailbox(queue->card, i);

	gpuds_staging_give(&mailbox->span);
	pg_memory_barrier();
	pg_atomic_write_u32(&mailbox->state, MAILBOX_IDLE);
	wake(i);
}

static bool
is_of_graph(const GpuRequest *request)
{
	return request->kind == GPU_GRAPH || (request->kind == GPU_SCAN && request->form == GPU_EDGES);
}

/*
 * Whoever abandons a request about its graph wants no graph, and may not wait until a drop can be posted: the
 * request becomes the drop.  False: it is none, or was that drop.
 */
static bool
drop_graph(int i)
{
	GpuRequest *request = &gpuds_mailbox(queue->card, i)->request;
	const uint64 owner = request->owner;

	if (!is_of_graph(request) || (request->form == GPU_GRAPH_DROP && stage[i] == STAGE_SUBMITTED))
		return false;
	if (stage[i] == STAGE_WAITING)
		forget_waiting(i);
	memset(request, 0, sizeof(*request));
	request->kind = GPU_GRAPH;
	request->form = GPU_GRAPH_DROP;
	request->owner = owner;
	stage[i] = STAGE_SUBMITTED;
	watched[i / 64] |= GpudsQueueBit(i);
	enter_engine();
	api->submit(engine, request);
	leave_engine();
	return true;
}

/*
 * Sees whether a taken request has come to its end.  True: it is no longer our
 * concern.
 */
static bool
finish(int i)
{
	GpudsMailbox *mailbox = gpuds_mailbox(queue->card, i);
	uint32 state = pg_atomic_read_u32(&mailbox->state);

	if (state == MAILBOX_RUNNING || state == MAILBOX_ABANDONED)
	{
		bool done = __atomic_load_n(&mailbox->request.done, __ATOMIC_ACQUIRE) != 0;

		if (!done && !(state == MAILBOX_ABANDONED && stage[i] == STAGE_WAITING))
			return false;
		if (stage[i] == STAGE_SUBMITTED && mailbox->request.kind != GPU_SCAN)
			tell_memory();
		if (state == MAILBOX_RUNNING && pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_DONE))
			wake(i);
		if (state == MAILBOX_ABANDONED && drop_graph(i))
			return false;
		if (state == MAILBOX_ABANDONED)
			clear_away(i);
	}
	/* Else the answer has been taken; there may even be a new request. */
	if (stage[i] == STAGE_WAITING)
		forget_waiting(i);
	stage[i] = STAGE_NONE;
	set_taken(i, false);
	watched[i / 64] &= ~GpudsQueueBit(i);
	return true;
}

/* Goes through what is under way: all of it, or what somebody waits for. */
static bool
finish_some(bool all)
{
	bool any = false;

	for (int word = 0; word < queue->nwords; word++)
	{
		uint64 look = taken_bits(word);

		if (look != 0 && !all)
			look &= watched[word] | pg_atomic_read_u64(gpuds_queue_sleepers(queue, word * 64));
		while (look != 0)
		{
			int i = word * 64 + __builtin_ctzll(look);

			look &= look - 1;
			any |= finish(i);
		}
	}
	return any;
}

/* Answers all that is posted or under way, now that nobody serves. */
static void
give_up_all(void)
{
	for (int i = 0; i < queue->nmailboxes; i++)
	{
		GpudsMailbox *mailbox = gpuds_mailbox(queue->card, i);
		uint32 state = MAILBOX_POSTED;

		(void) pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_RUNNING);
		state = pg_atomic_read_u32(&mailbox->state);
		if (state == MAILBOX_RUNNING)
		{
			if (__atomic_load_n(&mailbox->request.done, __ATOMIC_ACQUIRE) == 0)
				answer_lost(mailbox);
			if (pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_DONE))
				wake(i);
		}
		if (state == MAILBOX_ABANDONED)
			clear_away(i);
	}
}

static void
worker_exit(int code, Datum arg)
{
	pg_atomic_write_u64(&queue->serving, 0);
	/* pairs with gpuds_mailbox_send, which posts and then looks who serves */
	pg_memory_barrier();
	if (engine)
	{
		GpuEngine *closing = engine;

		engine = NULL;
		phase = CLOSING;
		enter_engine();
		end_at_once |= !api->close(closing, CLOSE_MS * NANOS_PER_MS);
		leave_engine();
	}
	give_up_all();
	tell_state(code == 0 ? CUDA_ABSENT : CUDA_STARTING, 0, NULL);
}

/* The last thing that proc_exit calls before exit handlers. */
static void
process_exit(int code, Datum arg)
{
	if (end_at_once)
		_exit(code);
}

/*
 * The device is lost: says so, and ends the process, whose successor may find it
 * again.  hangs: nothing is waited for.
 */
pg_noreturn static void
lose_device(const char *why, bool hangs)
{
	pg_atomic_write_u64(&queue->serving, 0);
	/* as in worker_exit, which comes too late if nothing is waited for */
	pg_memory_barrier();
	SpinLockAcquire(&queue->info_mutex);
	queue->info.losses++;
	SpinLockRelease(&queue->info_mutex);
	tell_state(CUDA_STARTING, 0, why);
	end_at_once = true;
	if (hangs)
	{
		engine = NULL;
		give_up_all();
	}
	ereport(LOG, (errmsg("gpuds lost its CUDA device: %s", why),
				  errdetail("The device worker is started again. Indexes on the device are loaded again when "
							"they are needed."),
				  errhint("The driver's log may say more.")));
	proc_exit(1);
}

/* For how long a call of the engine may last. */
static int64
call_limit_ms(void)
{
	int64 limit = gpuds_device_timeout_s > 0 ? (int64) gpuds_device_timeout_s * 1000 : PG_INT64_MAX;
	sigset_t pending;

	if (phase == OPENING)
		limit = Max(limit, OPEN_MS);
	/* A server that is stopped does not wait for a GPU.  While it is opened signals are blocked. */
	sigemptyset(&pending);
	(void) sigpending(&pending);
	if (phase == CLOSING || ShutdownRequestPending || sigismember(&pending, SIGTERM))
		limit = Min(limit, CLOSED_MS);
	return limit;
}

/*
 * The watchdog: a thread that looks whether the main thread comes back from the
 * engine, and else does what it would do if it did.  Or whether the main thread has
 * been left alone by a postmaster that died: then nothing is waited for, because as
 * long as we are there no other server can start.
 */
static void *
watch_main_thread(void *arg)
{
	uint64 seen = 0;
	bool stalled = false;
	instr_time since;

	INSTR_TIME_SET_CURRENT(since);
	for (;;)
	{
		uint64 now_at;
		instr_time elapsed;

		usleep(LOOK_MS * 1000);
		/* Asked directly: signals, by which it is known otherwise, may be blocked. */
		if (!PostmasterIsAliveInternal())
			_exit(1);
		now_at = pg_atomic_read_u64(&crossing);
		INSTR_TIME_SET_CURRENT(elapsed);
		if (now_at % 2 == 0 || now_at != seen)
		{
			if (stalled)
				tell_stalls(false);
			stalled = false;
			seen = now_at;
			since = elapsed;
			continue;
		}
		INSTR_TIME_SUBTRACT(elapsed, since);
		if (INSTR_TIME_GET_MILLISEC(elapsed) >= STALL_MS)
			tell_stalls(stalled = true);
		if ((int64) INSTR_TIME_GET_MILLISEC(elapsed) < call_limit_ms() ||
			!pg_atomic_compare_exchange_u64(&crossing, &seen, TAKEN_OVER))
			continue;

		/* From here on this thread is the one that runs PostgreSQL's code. */
		PG_exception_stack = NULL;
		error_context_stack = gpuds_cards > 1 ? &naming_card : NULL;
		lose_device("the driver does not come back from a call", true);
	}
	return NULL;
}

static void
start_watchdog(void)
{
	pthread_t thread;
	sigset_t all;
	sigset_t old;
	int error;

	/* Signals are the main thread's business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, NULL, watch_main_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error != 0)
	{
		errno = error;
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES), errmsg("could not start a thread: %m")));
	}
}

/*
 * Requests
 */

#ifdef GPUDS_INJECTION_POINTS
static void
inject_fault(GpudsFault fault)
{
	enter_engine();
	if (fault == FAULT_STICKY)
		api->inject(engine, GPU_INJECT_STICKY);
	else if (fault == FAULT_NO_MEMORY)
		api->inject(engine, GPU_INJECT_NO_MEMORY);
	else if (fault == FAULT_BAD_ALLOC)
		api->inject(engine, GPU_INJECT_BAD_ALLOC);
	else if (fault == FAULT_HANG)
		api->inject(engine, GPU_INJECT_HANG);
	else if (fault == FAULT_STUCK)
	{
		for (;;)
			pause();
	}
	leave_engine();
}
#endif

/* Takes the request of a mailbox whose bit was set. */
static void
take(int i)
{
	GpudsMailbox *mailbox = gpuds_mailbox(queue->card, i);
	uint32 state = MAILBOX_POSTED;

	/* An earlier request of this mailbox must have been answered. */
	if (stage[i] != STAGE_NONE && !finish(i))
		return;
	if (!pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_RUNNING))
		return; /* taken back */
	set_taken(i, true);
	if (mailbox->epoch != queue->epoch)
	{
		/* Meant for an earlier worker, whose trees are gone. */
		answer_lost(mailbox);
		stage[i] = STAGE_SUBMITTED;
		(void) finish(i);
		return;
	}
#ifdef GPUDS_INJECTION_POINTS
	if (mailbox->fault == FAULT_HOLD || mailbox->fault == FAULT_HOLD_DROP)
	{
		stage[i] = STAGE_WAITING;
		return;
	}
	if (mailbox->fault != FAULT_NONE)
		inject_fault(mailbox->fault);
#endif
	if (gpu_is_small(&mailbox->request))
	{
		stage[i] = STAGE_WAITING;
		waiting[nwaiting++] = i;
	}
	else
	{
		stage[i] = STAGE_SUBMITTED;
		watched[i / 64] |= GpudsQueueBit(i);
		/* It drops what was there, and the tree that it begins is not to be dropped. */
		if (mailbox->request.kind == GPU_LOAD_BEGIN)
			(void) gpuds_queue_take_left(queue, mailbox->request.tree);
		enter_engine();
		api->submit(engine, &mailbox->request);
		leave_engine();
	}
}

/* Drops the next of the trees that were left to us; false: there is none. */
static bool
drop_next_left(void)
{
	for (uint32 word = 0; word < queue->nleft_words; word++)
	{
		uint64 left = pg_atomic_read_u64(gpuds_queue_left(queue, word * 64));
		uint32 tree;

		if (left == 0)
			continue;
		tree = word * 64 + __builtin_ctzll(left);
		(void) gpuds_queue_take_left(queue, tree);
		memset(&dropping, 0, sizeof(dropping));
		dropping.kind = GPU_DROP;
		dropping.tree = tree;
		is_dropping = true;
		enter_engine();
		api->submit(engine, &dropping);
		leave_engine();
		return true;
	}
	return false;
}

/* Goes on dropping trees that were left to us, one after the other.  True: something has happened. */
static bool
drop_left(void)
{
	bool any = false;

	if (is_dropping && __atomic_load_n(&dropping.done, __ATOMIC_ACQUIRE) != 0)
	{
		is_dropping = false;
		tell_memory();
		any = true;
	}
	if (!is_dropping && pg_atomic_read_u32(&queue->nleft) != 0)
		any |= drop_next_left();
	return any;
}

/* All lines that a small request makes us look at are in other CPUs' caches. */
static void
prefetch_mailbox(int i)
{
	const GpudsMailbox *mailbox = gpuds_mailbox(queue->card, i);

	__builtin_prefetch(&mailbox->state, 1);
	__builtin_prefetch(mailbox);
	__builtin_prefetch((const char *) mailbox + 64);
	__builtin_prefetch((const char *) mailbox + 128);
	__builtin_prefetch(mailbox->data);
}

static bool
take_posted(void)
{
	bool any = false;

	for (int word = 0; word < queue->nwords; word++)
	{
		uint64 posted;

		if (pg_atomic_read_u64(gpuds_queue_posted(queue, word * 64)) == 0)
			continue;
		any = true;
		posted = pg_atomic_exchange_u64(gpuds_queue_posted(queue, word * 64), 0);
		for (uint64 ahead = posted; ahead != 0; ahead &= ahead - 1)
			prefetch_mailbox(word * 64 + __builtin_ctzll(ahead));
		while (posted != 0)
		{
			take(word * 64 + __builtin_ctzll(posted));
			posted &= posted - 1;
		}
	}
	return any;
}

/*
 * Hands over the small requests that have come together, as many as there is
 * room for.
 */
static void
post_waiting(void)
{
	int done = 0;
	bool polled = false;

	while (done < nwaiting)
	{
		GpuRequest *requests[GPU_SMALL_BATCH];
		int n = Min(nwaiting - done, GPU_SMALL_BATCH);
		int took;

		for (int i = 0; i < n; i++)
			requests[i] = &gpuds_mailbox(queue->card, waiting[done + i])->request;
		enter_engine();
		took = api->small(engine, requests, n);
		leave_engine();
		for (int i = 0; i < took; i++)
			stage[waiting[done + i]] = STAGE_POSTED;
		done += took;
		if (took < n)
		{
			if (polled)
				break;
			enter_engine();
			api->poll(engine);
			leave_engine();
			polled = true;
		}
	}
	nwaiting -= done;
	if (nwaiting > 0)
		memmove(waiting, waiting + done, nwaiting * sizeof(int));
}

/*
 * Start and end
 */

static void
handle_signals(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ShutdownRequestPending)
	{
		/* Not 0: if only we were asked to end, the postmaster starts another. */
		tell_state(CUDA_STARTING, 0, "it was shut down");
		proc_exit(1);
	}
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/* Says why there is no device, and ends for good. */
static void
no_device(const char *why)
{
	tell_state(CUDA_ABSENT, 0, why);
	ereport(LOG, (errmsg("gpuds found no CUDA device it can use: %s", why),
				  errdetail("Index scans use the CPU device.")));
	proc_exit(0);
}

/* The device could not be opened now.  Ends the process; its successor tries again. */
static void
open_failed(const char *why)
{
	GpudsCudaInfo info;

	queue->open_failures++;
	gpuds_queue_info(queue->card, &info);
	tell_state(CUDA_STARTING, 0, why);
	/* Once for each reason: it may be tried for hours. */
	if (strcmp(info.detail, why) != 0)
		ereport(LOG, (errmsg("gpuds could not open its CUDA device: %s", why),
					  errdetail("It is tried again, every minute in the end. Index scans use the CPU device "
								"meanwhile.")));
	proc_exit(1);
}

/* Attempts that fail follow each other after 1, 2, 4 ... seconds, or when settings are read again. */
static void
wait_for_attempt(void)
{
	uint32 failures = queue->open_failures;
	TimestampTz until;
	long left;

	if (failures < 2)
		return; /* the postmaster has waited */
	until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
										1000 * (Min(1 << Min(failures - 1, 16), MAX_DELAY_SECONDS) -
												RESTART_SECONDS));
	while (!ConfigReloadPending && (left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), until)) > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, left,
						 GpudsWaitEvent("GpudsWorkerDelay"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ShutdownRequestPending)
			proc_exit(1);
	}
	handle_signals();
}

static void
open_engine(void)
{
	char path[MAXPGPATH];
	char why[256] = "";
	bool hopeless = false;
	const GpuEngineApi *(*get_api)(void);
	GpuEngineOptions options;
	void *library;
	sigset_t all;
	sigset_t old;

	engine_path(path, sizeof(path));
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		no_device(dlerror());
	get_api = (const GpuEngineApi *(*) (void) ) dlsym(library, "gpuds_gpu_engine");
	api = get_api ? get_api() : NULL;
	if (api == NULL || api->abi != GPU_ENGINE_ABI)
	{
		snprintf(why, sizeof(why), "\"%s\" is of another version", path);
		no_device(why);
	}

	memset(&options, 0, sizeof(options));
	options.memory = (size_t) gpuds_device_memory_mb * 1024 * 1024;
	options.staging = gpuds_staging_memory(queue->card, &options.staging_bytes);
	options.piece_bytes = GPUDS_PIECE_BYTES;
	options.ordinal = gpuds_card_id[queue->card];
#ifdef GPUDS_INJECTION_POINTS
	options.emulate_failures = true;
	options.lacking = (UINT32_C(1) << gpuds_device_lacks_structure) & ~UINT32_C(1);
	if (queue->open_failures < gpuds_device_open_failures)
		open_failed("an attempt that was to fail");
#endif
	structures = api->structures & ~options.lacking;
	/* Signals are this thread's business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	enter_engine();
	engine = api->open(&options, &hopeless, why, sizeof(why));
	leave_engine();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (engine == NULL)
	{
		/* Where there was a card before, there may be one again. */
		if (hopeless && queue->epoch < GPUDS_MOST_CARDS)
			no_device(why);
		else
			open_failed(why);
	}
}

/*
 * Says so if the engine lacks structures of this library.  Indexes with others use the
 * device all the same.
 */
static void
compare_structures(void)
{
#define STRUCTURE_LACKS(number, NAME, name, Name, title) \
	if ((lacking >> (number) &1) != 0)                   \
		appendStringInfo(&names, "%s\"%s\"", names.len > 0 ? ", " : "", title);
	uint32 lacking = STRUCTURE_BITS & ~structures;
	StringInfoData names;

	if (lacking == 0)
		return;
	initStringInfo(&names);
	STRUCTURE_ROWS(STRUCTURE_LACKS)
#undef STRUCTURE_LACKS
	ereport(LOG, (errmsg("library \"%s\" lacks structures of gpuds: %s", ENGINE_LIBRARY, names.data),
				  errdetail("The libraries are of different builds. Indexes with these structures use the "
							"CPU device."),
				  errhint("Install both libraries from the same build and restart the server.")));
	pfree(names.data);
}

static void
start_serving(void)
{
	GpuEngineInfo info;

	api->info(engine, &info);
	tell_memory();
	tell_state(CUDA_READY, MyProcPid, "");
	queue->worker_procno = GpudsMyProcNumber();
	queue->structures = structures;
	queue->ranked = api->ranked;
	queue->epoch += GPUDS_MOST_CARDS;
	queue->open_failures = 0;
	phase = SERVING;
	pg_atomic_write_u32(&queue->worker_asleep, 0);
	pg_memory_barrier();
	pg_atomic_write_u64(&queue->serving, queue->epoch);
	ConditionVariableBroadcast(&gpuds_queue(0)->info_changed);
	ereport(LOG,
			(errmsg("gpuds uses %s (compute capability %d.%d, driver for CUDA %d.%d, %zu MB for indexes)",
					info.name, info.major, info.minor, info.driver / 1000, info.driver % 1000 / 10,
					info.memory_total / (1024 * 1024))));
	compare_structures();
}

static void
check_lost(void)
{
	char why[256] = "";

	if (api->lost(engine, why, sizeof(why)))
		lose_device(why, false);
}

static void
check_hung(void)
{
	const uint64 oldest_ns = api->oldest_ns(engine);
	char why[256];

	tell_stalls(oldest_ns >= STALL_MS * NANOS_PER_MS);
	if (gpuds_device_timeout_s == 0 || oldest_ns < gpuds_device_timeout_s * NANOS_PER_S)
		return;
	snprintf(why, sizeof(why), "it did not come to an end with a request within gpuds.device_timeout (%d s)",
			 gpuds_device_timeout_s);
	lose_device(why, true);
}

/* Is anything under way that must come to an end? */
static bool
any_taken(void)
{
	for (int word = 0; word < queue->nwords; word++)
	{
		if (taken_bits(word) != 0)
			return true;
	}
	return false;
}

/* Sleeps until there is something to do. */
static void
sleep_until_called(WaitEventSet *set)
{
	WaitEvent events[3];
	bool called;

	pg_atomic_write_u32(&queue->worker_asleep, 1);
	pg_memory_barrier();
	called = finish_some(true);
	called |= drop_left();
	for (int word = 0; word < queue->nwords; word++)
		called |= pg_atomic_read_u64(gpuds_queue_posted(queue, word * 64)) != 0;
	if (!called)
	{
		(void) WaitEventSetWait(set, any_taken() || is_dropping ? LOOK_MS : -1, events, lengthof(events),
								GpudsWaitEvent("GpudsWorkerMain"));
		ResetLatch(MyLatch);
	}
	pg_atomic_write_u32(&queue->worker_asleep, 0);
}

/* CPUs for each worker. */
static int
count_cpus(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? Max(CPU_COUNT(&cpus) / gpuds_cards, 1) : 1;
}

/*
 * Counts the sessions that have sent requests since the last time, to know how
 * to serve as many.
 */
static void
count_sessions(void)
{
	int sessions = 0;

	for (int word = 0; word < queue->nwords; word++)
		sessions += __builtin_popcountll(taken_bits(word));
	(void) finish_some(true);
	nwanted = sessions / SESSIONS_A_REQUEST;
	pg_atomic_write_u32(&queue->crowded, ncpus < CPUS_TO_HOLD_ONE || sessions > ncpus);
}

/* Have enough small requests come together, or waited for long enough? */
static bool
collected(void)
{
	instr_time now;

	if (nwaiting >= nwanted)
		return true;
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, waiting_since);
	return INSTR_TIME_GET_MICROSEC(now) >= COLLECT_US;
}

static void
serve(void)
{
	WaitEventSet *set = GpudsCreateWaitEventSet(3);
	instr_time last; /* time when there was work to do */
	instr_time now;
	instr_time idle_turn;
	instr_time cpu_lost; /* time when somebody else had the CPU for long */
	instr_time elapsed;
	uint32 turn = 0;

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, api->wake_fd(engine), NULL, NULL);

	count_sessions();
	INSTR_TIME_SET_CURRENT(last);
	INSTR_TIME_SET_ZERO(cpu_lost);
	for (;;)
	{
		bool none_waited = nwaiting == 0;
		bool busy = take_posted();

		if (nwaiting > 0)
		{
			if (none_waited)
				INSTR_TIME_SET_CURRENT(waiting_since);
			if (collected())
				post_waiting();
		}
		/* Also when nothing is under way: it empties what woke us. */
		if (!busy)
		{
			enter_engine();
			api->poll(engine);
			leave_engine();
		}
		busy |= finish_some(false);
		busy |= drop_left();
		check_lost();
		if (InterruptPending || ShutdownRequestPending || ConfigReloadPending)
			handle_signals();
		if (++turn % TURNS_A_COUNT == 0)
		{
			count_sessions();
			check_hung();
		}
		if (busy)
		{
			INSTR_TIME_SET_CURRENT(last);
			continue;
		}
		INSTR_TIME_SET_CURRENT(idle_turn);
		if (ncpus < CPUS_TO_HOLD_ONE)
			sched_yield();
		else
			SPIN_DELAY();
		INSTR_TIME_SET_CURRENT(now);
		elapsed = now;
		INSTR_TIME_SUBTRACT(elapsed, idle_turn);
		if (INSTR_TIME_GET_MICROSEC(elapsed) >= CPU_LOST_US)
			cpu_lost = now;
		if (api->in_flight(engine) > 0 || nwaiting > 0)
			continue;
		elapsed = now;
		INSTR_TIME_SUBTRACT(elapsed, cpu_lost);
		if (INSTR_TIME_GET_MICROSEC(elapsed) >= AVOID_US)
		{
			INSTR_TIME_SUBTRACT(now, last);
			if (INSTR_TIME_GET_MICROSEC(now) < LINGER_US)
				continue;
		}
		count_sessions();
		check_hung();
		sleep_until_called(set);
	}
}

/*
 * The main function of a card's worker.  It is attached to shared memory, but to no database, and runs no
 * transaction.  It ends with status 0 only where no GPU can be expected, and the postmaster lets it be; with
 * status 1 after a loss, and another process opens the device anew.
 */
void
gpuds_worker_main(Datum arg)
{
	queue = gpuds_queue(DatumGetInt32(arg));
	if (gpuds_cards > 1)
		error_context_stack = &naming_card;
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();

	pg_atomic_init_u64(&crossing, 0);
	tell_state(CUDA_STARTING, MyProcPid, NULL);
	on_proc_exit(process_exit, (Datum) 0);
	before_shmem_exit(worker_exit, (Datum) 0);
	/* Bits of requests that the last worker answered at its end. */
	give_up_all();

	stage = MemoryContextAllocZero(TopMemoryContext, queue->nmailboxes);
	for (int word = 0; word < queue->nwords; word++)
		pg_atomic_write_u64(gpuds_queue_taken(queue, word * 64), 0);
	tell_stalls(false);
	watched = MemoryContextAllocZero(TopMemoryContext, queue->nwords * sizeof(uint64));
	waiting = MemoryContextAllocZero(TopMemoryContext, queue->nmailboxes * sizeof(int));

	ncpus = count_cpus();
	wait_for_attempt();
	start_watchdog();
	open_engine();
	start_serving();
	serve();
}
