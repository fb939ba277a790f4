/*-------------------------------------------------------------------------
 *
 * queue.c
 *	  Mailboxes and staging memory, as backends see them.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/s_lock.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include <sched.h>

#include "device/queue.h"
#include "kernels/structures.h"

/*
 * How a backend waits.  The answer to a small request takes some 10 us: less than
 * a sleep and a wake-up, and a wake-up costs the worker, for which all sessions
 * wait, more than a request does.  So it looks again and again, and soon lets
 * others run in between: sooner if there are more sessions than CPUs, for then
 * they have what to do.
 */
#define SPIN_US 10
#define SPIN_CROWDED_US 2
#define YIELD_US 1000

/*
 * A yield this long means that another process is using the CPU.  Then the next
 * waits are sleeps: the scheduler prefers a process that wakes up.
 */
#define CPU_LOST_US 1000
#define SLEEPS_THEN 100
#define SPINS_PER_LOOK 16

/* A wait that must not be interrupted gives up after this. */
#define PATIENCE_MS 5000

/* How long a worker that starts is waited for. */
#define START_MS 20000

/* Pages that the driver can pin. */
#define STAGING_ALIGN 4096

static char *queues = NULL;  /* of all cards */
static char *staging = NULL; /* of all cards: mailboxes, then units */

/* A card's part of both. */
static Size queue_size = 0;
static Size staging_region = 0;

/* Units of which one may be kept for long. */
#define KEEPABLE_SHARE 4

/* Fewer are not worth keeping. */
#define LEAST_KEPT_UNITS 4

#define NOBODY (-1)

#ifdef GPUDS_INJECTION_POINTS
static int device_fault = FAULT_NONE;
int gpuds_device_open_failures = 0;
int gpuds_device_lacks_structure = 0;
#endif

static size_t
mailbox_bytes(void)
{
	return TYPEALIGN(STAGING_ALIGN, MaxBackends * sizeof(GpudsMailbox));
}

static size_t
unit_count(void)
{
	return (size_t) gpuds_staging_memory_mb * 1024 * 1024 / GPUDS_UNIT_BYTES;
}

/* Of a card. */
static Size
queue_bytes(void)
{
	Size words = 3 * ((MaxBackends + 63) / 64) + (gpuds_max_mirrors + 63) / 64;

	return CACHELINEALIGN(offsetof(GpudsQueue, bits) + words * sizeof(pg_atomic_uint64) + unit_count());
}

/* Of a card, in whole pages. */
static Size
staging_bytes(void)
{
	return add_size(mailbox_bytes(), mul_size(unit_count(), GPUDS_UNIT_BYTES));
}

static Size
queues_size(void)
{
	return add_size(mul_size(gpuds_cards, queue_bytes()), PG_CACHE_LINE_SIZE);
}

static Size
staging_size(void)
{
	return add_size(mul_size(gpuds_cards, staging_bytes()), STAGING_ALIGN);
}

Size
gpuds_queue_shmem_size(void)
{
	if (gpuds_cards == 0)
		return 0;
	return add_size(queues_size(), staging_size());
}

/* The queue of a card, which is below gpuds_cards. */
GpudsQueue *
gpuds_queue(int card)
{
	return (GpudsQueue *) (queues + card * queue_size);
}

/* A byte for each unit of a card, 1 if it is taken. */
static uint8 *
units_of(GpudsQueue *queue)
{
	return (uint8 *) &queue->bits[3 * queue->nwords + queue->nleft_words];
}

/*
 * What workers said that ended for good; the postmaster's.  After a crash of the
 * server there is new shared memory, but no new worker to say it again.
 */
static GpudsCudaInfo absence[GPUDS_MOST_CARDS];

static void
remember_absence(int code, Datum arg)
{
	for (int card = 0; card < gpuds_cards; card++)
	{
		if (gpuds_queue(card)->info.state == CUDA_ABSENT)
			absence[card] = gpuds_queue(card)->info;
	}
}

static void
init_queue(GpudsQueue *queue, int card)
{
	memset(queue, 0, queue_bytes());
	queue->card = card;
	queue->epoch = card;
	pg_atomic_init_u64(&queue->serving, 0);
	pg_atomic_init_u32(&queue->worker_asleep, 0);
	pg_atomic_init_u32(&queue->crowded, 0);
	pg_atomic_init_u32(&queue->stalls, 0);
	SpinLockInit(&queue->info_mutex);
	queue->info.state = CUDA_STARTING;
	queue->info.since = GetCurrentTimestamp();
	if (absence[card].since != 0)
		queue->info = absence[card];
	ConditionVariableInit(&queue->info_changed);
	SpinLockInit(&queue->staging_mutex);
	queue->first_in_line = NOBODY;
	queue->last_in_line = NOBODY;
	queue->nunits = unit_count();
	queue->nkeepable = queue->nunits / KEEPABLE_SHARE;
	queue->nmailboxes = MaxBackends;
	queue->nwords = (MaxBackends + 63) / 64;
	queue->nleft_words = (gpuds_max_mirrors + 63) / 64;
	pg_atomic_init_u32(&queue->nleft, 0);
	for (int i = 0; i < 3 * queue->nwords + queue->nleft_words; i++)
		pg_atomic_init_u64(&queue->bits[i], 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		GpudsMailbox *mailbox = gpuds_mailbox(card, i);

		memset(mailbox, 0, offsetof(GpudsMailbox, data));
		mailbox->card = card;
		pg_atomic_init_u32(&mailbox->state, MAILBOX_IDLE);
	}
}

/*
 * Creates or finds the queues and staging memory of all cards, if there are any.  The caller holds
 * AddinShmemInitLock.
 */
void
gpuds_queue_shmem_init(void)
{
	bool found;

	if (gpuds_cards == 0)
		return;
	queues = (char *) CACHELINEALIGN(ShmemInitStruct("gpuds queue", queues_size(), &found));
	queue_size = queue_bytes();
	staging = (char *) TYPEALIGN(STAGING_ALIGN, ShmemInitStruct("gpuds staging", staging_size(), &found));
	staging_region = staging_bytes();
	if (found)
		return;
	on_shmem_exit(remember_absence, (Datum) 0);
	for (int card = 0; card < gpuds_cards; card++)
		init_queue(gpuds_queue(card), card);
}

/* What a card's worker is to register with the driver. */
char *
gpuds_staging_memory(int card, size_t *bytes)
{
	*bytes = staging_region;
	return staging + card * staging_region;
}

/* The mailbox for a card of the backend of index i, from 0 to MaxBackends - 1. */
GpudsMailbox *
gpuds_mailbox(int card, int i)
{
	return (GpudsMailbox *) (staging + card * staging_region) + i;
}

/* Bytes from the beginning of a card's staging memory to p, which lies in it: so a request names memory. */
uint64
gpuds_staging_offset(const void *p)
{
	return ((const char *) p - staging) % staging_region;
}

/* Copies what a card's worker says of itself.  Takes a spinlock. */
void
gpuds_queue_info(int card, GpudsCudaInfo *info)
{
	GpudsQueue *queue = gpuds_queue(card);

	SpinLockAcquire(&queue->info_mutex);
	*info = queue->info;
	SpinLockRelease(&queue->info_mutex);
}

int
gpuds_queue_length(int card)
{
	GpudsQueue *queue = gpuds_queue(card);
	int n = 0;

	for (int word = 0; word < queue->nwords; word++)
		n += __builtin_popcountll(pg_atomic_read_u64(gpuds_queue_posted(queue, word * 64)) |
								  pg_atomic_read_u64(gpuds_queue_taken(queue, word * 64)));
	return n;
}

/* Is a worker on its way, not longer than it may take? */
static bool
any_card_starts(void)
{
	for (int card = 0; card < gpuds_cards; card++)
	{
		GpudsCudaInfo info;

		gpuds_queue_info(card, &info);
		if (info.state != CUDA_ABSENT &&
			!TimestampDifferenceExceeds(info.since, GetCurrentTimestamp(), START_MS))
			return true;
	}
	return false;
}

bool
gpuds_queue_wait_ready(void)
{
	bool starts;

	if (gpuds_cards == 0 || gpuds_any_card_serves())
		return gpuds_cards > 0;
	do
	{
		starts = any_card_starts();
		if (gpuds_any_card_serves())
			break;
		if (starts)
			(void) ConditionVariableTimedSleep(&gpuds_queue(0)->info_changed, 1000,
											   GpudsWaitEvent("GpudsDeviceStart"));
	} while (starts);
	ConditionVariableCancelSleep();
	return gpuds_any_card_serves();
}

/*
 * Staging memory
 *
 * Spans are granted in request order.  A backend that must wait queues; one that
 * returns units serves the head of the queue, as often as there is enough for it.
 * No backend overtakes, so that one that needs a long span comes to its turn, and
 * none is woken up for nothing.
 *
 * A span is kept for no longer than a request takes, so the line moves on.  Loads,
 * which like to have one for their whole length, have a part of the memory of
 * their own, and do without if it is taken.
 */

/*
 * Takes the first span of at least least units, up to most of them, below unit end.  staging_mutex is
 * held.
 */
static bool
take_units(GpudsQueue *queue, GpudsStagingSpan *span, uint32 from, uint32 end, uint32 least, uint32 most)
{
	uint8 *units = units_of(queue);

	while (from + least <= end)
	{
		const uint8 *next = memchr(units + from, 0, end - from);
		uint32 n = 0;

		if (next == NULL)
			break;
		from = next - units;
		while (n < most && from + n < end && units[from + n] == 0)
			n++;
		if (n >= least)
		{
			memset(units + from, 1, n);
			span->first = from;
			span->n = n;
			span->card = queue->card;
			return true;
		}
		from += n;
	}
	return false;
}

/* The same anywhere; what others keep for long, last. */
static bool
take_any_units(GpudsQueue *queue, GpudsStagingSpan *span, uint32 least, uint32 most)
{
	return take_units(queue, span, queue->nkeepable, queue->nunits, least, most) ||
		   take_units(queue, span, 0, queue->nunits, least, most);
}

static GpudsStagingWait *
wait_of(GpudsQueue *queue, int i)
{
	return &gpuds_mailbox(queue->card, i)->wait;
}

/* staging_mutex is held. */
static void
join_line(GpudsQueue *queue, int i)
{
	GpudsStagingWait *wait = wait_of(queue, i);

	wait->in_line = true;
	wait->before = queue->last_in_line;
	wait->after = NOBODY;
	if (wait->before != NOBODY)
		wait_of(queue, wait->before)->after = i;
	else
		queue->first_in_line = i;
	queue->last_in_line = i;
}

/* staging_mutex is held. */
static void
leave_line(GpudsQueue *queue, int i)
{
	GpudsStagingWait *wait = wait_of(queue, i);

	wait->in_line = false;
	if (wait->before != NOBODY)
		wait_of(queue, wait->before)->after = wait->after;
	else
		queue->first_in_line = wait->after;
	if (wait->after != NOBODY)
		wait_of(queue, wait->after)->before = wait->before;
	else
		queue->last_in_line = wait->before;
}

/*
 * Serves the first in line, if that is possible; returns its procno, to be woken
 * up, or NOBODY.  staging_mutex is held.
 */
static int
serve_first(GpudsQueue *queue)
{
	int first = queue->first_in_line;
	GpudsStagingWait *wait;

	if (first == NOBODY)
		return NOBODY;
	wait = wait_of(queue, first);
	if (!take_any_units(queue, &wait->span, wait->least, wait->most))
		return NOBODY;
	leave_line(queue, first);
	return wait->procno;
}

/* Goes on serving the line, after procno was.  Releases staging_mutex. */
static void
serve_line(GpudsQueue *queue, int procno)
{
	SpinLockRelease(&queue->staging_mutex);
	while (procno != NOBODY)
	{
		SetLatch(&GetPGProcByNumber(procno)->procLatch);
		SpinLockAcquire(&queue->staging_mutex);
		procno = serve_first(queue);
		SpinLockRelease(&queue->staging_mutex);
	}
}

/* Takes the span that this backend was given in line.  False: it is not its turn yet. */
static bool
take_given(GpudsQueue *queue, GpudsStagingSpan *span)
{
	GpudsStagingWait *wait = wait_of(queue, GpudsMyBackendIndex());
	bool given;

	SpinLockAcquire(&queue->staging_mutex);
	given = !wait->in_line;
	if (given)
	{
		*span = wait->span;
		wait->span.n = 0;
	}
	SpinLockRelease(&queue->staging_mutex);
	return given;
}

/* Gives up waiting, also after the backend has come to its turn. */
static void
give_up_waiting(int code, Datum arg)
{
	GpudsQueue *queue = (GpudsQueue *) DatumGetPointer(arg);
	int me = GpudsMyBackendIndex();
	GpudsStagingSpan span;

	SpinLockAcquire(&queue->staging_mutex);
	if (wait_of(queue, me)->in_line)
	{
		leave_line(queue, me);
		/* The next in line may need less. */
		serve_line(queue, serve_first(queue));
		return;
	}
	SpinLockRelease(&queue->staging_mutex);
	if (take_given(queue, &span))
		gpuds_staging_give(&span);
}

static inline uint32
units_for(size_t bytes)
{
	return (bytes + GPUDS_UNIT_BYTES - 1) / GPUDS_UNIT_BYTES;
}

/* Units of a span of up to so many bytes. */
static inline uint32
most_units(uint32 nleast, size_t most)
{
	return Max(Min(units_for(most), GPUDS_SPAN_UNITS), nleast);
}

/*
 * Takes a span of least to most bytes, in units, and no more than GPUDS_SPAN_UNITS unless least is more.
 * The backend has no other span.  Waits in line, interruptibly, for as long as there is not as much; an
 * error gives up the place, and what was given meanwhile.
 */
void
gpuds_staging_take(GpudsStagingSpan *span, uint64 epoch, size_t least, size_t most)
{
	GpudsQueue *queue = gpuds_queue(GpudsEpochCard(epoch));
	const uint32 nleast = units_for(least);
	const uint32 nmost = most_units(nleast, most);
	int me = GpudsMyBackendIndex();
	GpudsStagingWait *wait = wait_of(queue, me);
	bool taken;

	Assert(nleast > 0 && nleast <= queue->nunits - queue->nkeepable);

	SpinLockAcquire(&queue->staging_mutex);
	taken = queue->first_in_line == NOBODY && take_any_units(queue, span, nleast, nmost);
	if (!taken)
	{
		wait->procno = GpudsMyProcNumber();
		wait->least = nleast;
		wait->most = nmost;
		wait->span.n = 0;
		join_line(queue, me);
	}
	SpinLockRelease(&queue->staging_mutex);
	if (taken)
		return;

	PG_ENSURE_ERROR_CLEANUP(give_up_waiting, PointerGetDatum(queue));
	{
		while (!take_given(queue, span))
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH, -1, GpudsWaitEvent("GpudsStaging"));
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(give_up_waiting, PointerGetDatum(queue));
}

/* The same without waiting.  False: there is not as much, or somebody waits in line. */
bool
gpuds_staging_try(GpudsStagingSpan *span, uint64 epoch, size_t least, size_t most)
{
	GpudsQueue *queue = gpuds_queue(GpudsEpochCard(epoch));
	const uint32 nleast = units_for(least);
	bool taken;

	SpinLockAcquire(&queue->staging_mutex);
	taken = queue->first_in_line == NOBODY && take_any_units(queue, span, nleast, most_units(nleast, most));
	SpinLockRelease(&queue->staging_mutex);
	return taken;
}

/*
 * Takes, without waiting, up to most bytes of the part that may be kept.  False: LEAST_KEPT_UNITS in a row
 * are not free there, or somebody waits in line.
 */
bool
gpuds_staging_keep(GpudsStagingSpan *span, uint64 epoch, size_t most)
{
	GpudsQueue *queue = gpuds_queue(GpudsEpochCard(epoch));
	uint32 n = Min(most / GPUDS_UNIT_BYTES, GPUDS_SPAN_UNITS);
	bool taken;

	SpinLockAcquire(&queue->staging_mutex);
	taken = queue->first_in_line == NOBODY &&
			take_units(queue, span, 0, queue->nkeepable, LEAST_KEPT_UNITS, Max(n, LEAST_KEPT_UNITS));
	SpinLockRelease(&queue->staging_mutex);
	return taken;
}

/* Harmless for a span of none.  Also for the worker. */
void
gpuds_staging_give(GpudsStagingSpan *span)
{
	GpudsQueue *queue;

	if (span->n == 0)
		return;
	queue = gpuds_queue(span->card);
	SpinLockAcquire(&queue->staging_mutex);
	memset(units_of(queue) + span->first, 0, span->n);
	span->n = 0;
	serve_line(queue, serve_first(queue));
}

/* Bytes of a card's staging memory that are taken, mailboxes aside.  A look without lock, for the view. */
size_t
gpuds_staging_used(int card)
{
	GpudsQueue *queue = gpuds_queue(card);
	const uint8 *units = units_of(queue);
	size_t n = 0;

	for (uint32 i = 0; i < queue->nunits; i++)
		n += units[i];
	return n * GPUDS_UNIT_BYTES;
}

/* Keeps the first bytes of a span, in whole units, and gives back the others. */
void
gpuds_staging_shrink(GpudsStagingSpan *span, size_t bytes)
{
	uint32 n = units_for(bytes);
	GpudsStagingSpan rest;

	if (n >= span->n)
		return;
	rest.first = span->first + n;
	rest.n = span->n - n;
	rest.card = span->card;
	span->n = n;
	gpuds_staging_give(&rest);
}

/* Where a span begins in this process's memory. */
char *
gpuds_staging_at(const GpudsStagingSpan *span)
{
	return staging + span->card * staging_region + mailbox_bytes() + (size_t) span->first * GPUDS_UNIT_BYTES;
}

/*
 * Waiting
 */

static bool
is_idle(const GpudsMailbox *mailbox)
{
	if (pg_atomic_read_u32((pg_atomic_uint32 *) &mailbox->state) != MAILBOX_IDLE)
		return false;
	pg_read_barrier();
	return true;
}

static bool
is_answered(const GpudsMailbox *mailbox)
{
	if (mailbox->request.kind == GPU_SCAN)
		return __atomic_load_n(&mailbox->request.done, __ATOMIC_ACQUIRE) != 0;
	if (pg_atomic_read_u32((pg_atomic_uint32 *) &mailbox->state) != MAILBOX_DONE)
		return false;
	pg_read_barrier();
	return true;
}

/* After a change that the worker has to see: it may sleep. */
static void
wake_worker(GpudsQueue *queue)
{
	pg_memory_barrier();
	if (pg_atomic_read_u32(&queue->worker_asleep))
		SetLatch(&GetPGProcByNumber(queue->worker_procno)->procLatch);
}

/*
 * Gives up a request that was sent.  Backend or worker, the last that has it frees its span.
 */
static void
abandon(int code, Datum arg)
{
	GpudsSent *sent = (GpudsSent *) DatumGetPointer(arg);
	GpudsMailbox *mailbox = sent->mailbox;
	GpudsQueue *queue = gpuds_queue(mailbox->card);
	int me = GpudsMyBackendIndex();
	uint32 state = MAILBOX_POSTED;

	sent->mailbox = NULL;

	if (!pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_IDLE))
	{
		/* The worker looks sooner at backends that are said to sleep. */
		pg_atomic_fetch_or_u64(gpuds_queue_sleepers(queue, me), GpudsQueueBit(me));
		state = MAILBOX_RUNNING;
		if (pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_ABANDONED))
		{
			if (sent->span)
				sent->span->n = 0;
			wake_worker(queue);
			return;
		}
		Assert(state == MAILBOX_DONE);
		pg_atomic_write_u32(&mailbox->state, MAILBOX_IDLE);
	}
	if (sent->span)
		gpuds_staging_give(sent->span);
}

/* Requests that one process has sent to different cards. */
typedef struct Sents
{
	GpudsSent **sent;
	int n;
} Sents;

static void
abandon_all(int code, Datum arg)
{
	const Sents *all = (const Sents *) DatumGetPointer(arg);

	for (int i = 0; i < all->n; i++)
	{
		if (all->sent[i]->mailbox)
			abandon(code, PointerGetDatum(all->sent[i]));
		else if (all->sent[i]->span)
			gpuds_staging_give(all->sent[i]->span);
	}
}

/* Lets other processes run.  True: for long. */
static bool
lost_cpu_by_yield(void)
{
	instr_time began;
	instr_time now;

	INSTR_TIME_SET_CURRENT(began);
	sched_yield();
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, began);
	return INSTR_TIME_GET_MICROSEC(now) >= CPU_LOST_US;
}

static void
give_nothing_up(int code, Datum arg)
{
}

/*
 * Waits until is_there(mailbox).  False: patience ended.  If an interrupt raises
 * an error, give_up is called first.
 */
static bool
wait_until(GpudsMailbox *mailbox, bool (*is_there)(const GpudsMailbox *), bool patient,
		   pg_on_exit_callback give_up, Datum arg)
{
	static int sleeps = 0;
	GpudsQueue *queue = gpuds_queue(mailbox->card);
	int me = GpudsMyBackendIndex();
	instr_time began;
	instr_time now;
	int spin;
	bool slept = false;
	bool there = false;

	if (is_there(mailbox))
		return true;
	spin = pg_atomic_read_u32(&queue->crowded) ? SPIN_CROWDED_US : SPIN_US;
	INSTR_TIME_SET_CURRENT(began);
	for (;;)
	{
		for (int i = 0; i < SPINS_PER_LOOK; i++)
		{
			if (is_there(mailbox))
				return true;
			SPIN_DELAY();
		}
		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, began);
		if (INSTR_TIME_GET_MICROSEC(now) > YIELD_US)
			break;
		if (INSTR_TIME_GET_MICROSEC(now) <= spin)
			continue;
		if (sleeps > 0)
		{
			sleeps--;
			break;
		}
		if (lost_cpu_by_yield())
			sleeps = SLEEPS_THEN;
	}

	for (;;)
	{
		int events;

		pg_atomic_fetch_or_u64(gpuds_queue_sleepers(queue, me), GpudsQueueBit(me));
		there = is_there(mailbox);
		if (there)
			break;
		if (patient)
		{
			INSTR_TIME_SET_CURRENT(now);
			INSTR_TIME_SUBTRACT(now, began);
			if (INSTR_TIME_GET_MILLISEC(now) > PATIENCE_MS)
				break;
		}
		else if (INTERRUPTS_PENDING_CONDITION())
		{
			PG_ENSURE_ERROR_CLEANUP(give_up, arg);
			{
				CHECK_FOR_INTERRUPTS();
			}
			PG_END_ENSURE_ERROR_CLEANUP(give_up, arg);
			continue;
		}
		events = WaitLatch(MyLatch,
						   WL_LATCH_SET | (patient ? WL_POSTMASTER_DEATH | WL_TIMEOUT : WL_EXIT_ON_PM_DEATH),
						   patient ? 100 : -1, GpudsWaitEvent("GpudsDevice"));
		slept = true;
		if (events & WL_POSTMASTER_DEATH)
			break;
		ResetLatch(MyLatch);
	}
	pg_atomic_fetch_and_u64(gpuds_queue_sleepers(queue, me), ~GpudsQueueBit(me));
	/* What the latch was set for, beside our answer, has not been looked at. */
	if (slept && patient)
		SetLatch(MyLatch);
	return there;
}

GpudsMailbox *
gpuds_mailbox_open(uint64 epoch, bool patient)
{
	GpudsMailbox *mailbox;

	if (!gpuds_epoch_is_served(epoch))
		return NULL;
	mailbox = gpuds_mailbox(GpudsEpochCard(epoch), GpudsMyBackendIndex());
	/* What is to be waited for may be another process's, which has ended. */
	mailbox->procno = GpudsMyProcNumber();
	if (!wait_until(mailbox, is_idle, patient, give_nothing_up, (Datum) 0))
		return NULL;
	memset(&mailbox->request, 0, sizeof(GpuRequest));
	mailbox->span.n = 0;
	mailbox->fault = FAULT_NONE;
	mailbox->lost = false;
#ifdef GPUDS_INJECTION_POINTS
	/* Goes with one request, and not with one that cleans up, unless it is meant for that. */
	if (device_fault != FAULT_NONE && patient == (device_fault == FAULT_HOLD_DROP))
	{
		mailbox->fault = device_fault;
		device_fault = FAULT_NONE;
	}
#endif
	return mailbox;
}

/* Posts a request (queue.h).  False: the worker is gone.  Raises no errors. */
bool
gpuds_mailbox_post(GpudsMailbox *mailbox, const GpudsStagingSpan *span, uint64 epoch)
{
	GpudsQueue *queue = gpuds_queue(mailbox->card);
	int me = GpudsMyBackendIndex();

	mailbox->epoch = epoch;
	if (span)
		mailbox->span = *span;
	mailbox->request.done = 0;
	pg_write_barrier();
	pg_atomic_write_u32(&mailbox->state, MAILBOX_POSTED);
	pg_atomic_fetch_or_u64(gpuds_queue_posted(queue, me), GpudsQueueBit(me));
	if (!gpuds_epoch_is_served(epoch))
	{
		uint32 state = MAILBOX_POSTED;

		if (pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_IDLE))
			return false;
		/* A worker has taken it, and will answer. */
	}
	wake_worker(queue);
	return true;
}

/* Has a request that was answered not been lost?  Else its mailbox is closed. */
static bool
is_kept(GpudsMailbox *mailbox)
{
	if (!mailbox->lost)
		return true;
	gpuds_mailbox_close(mailbox);
	return false;
}

/* Waits for the answers to requests that were posted (queue.h).  An error gives up all of them. */
void
gpuds_mailbox_collect(GpudsSent **sent, int n)
{
	Sents all = { sent, n };

#ifdef GPUDS_INJECTION_POINTS
	PG_ENSURE_ERROR_CLEANUP(abandon_all, PointerGetDatum(&all));
	{
		gpuds_injection_point("device-waiting");
	}
	PG_END_ENSURE_ERROR_CLEANUP(abandon_all, PointerGetDatum(&all));
#endif
	for (int i = 0; i < n; i++)
	{
		(void) wait_until(sent[i]->mailbox, is_answered, false, abandon_all, PointerGetDatum(&all));
		if (!is_kept(sent[i]->mailbox))
			sent[i]->mailbox = NULL;
	}
}

/*
 * Posts the request and waits for the answer (queue.h).  True: the answer is in the mailbox until
 * gpuds_mailbox_close.  False: the worker is gone, or patience has ended.  Raises errors only if patient is
 * false.
 */
bool
gpuds_mailbox_send(GpudsMailbox *mailbox, GpudsStagingSpan *span, uint64 epoch, bool patient)
{
	GpudsSent sent = { mailbox, span };
	GpudsSent *one = &sent;

	if (!gpuds_mailbox_post(mailbox, span, epoch))
		return false;
	if (!patient)
	{
		gpuds_mailbox_collect(&one, 1);
		return sent.mailbox != NULL;
	}
	if (!wait_until(mailbox, is_answered, true, abandon, PointerGetDatum(&sent)))
	{
		abandon(0, PointerGetDatum(&sent));
		return false;
	}
	return is_kept(mailbox);
}

/* Ends the use of an answer that has been read; the mailbox may be opened again. */
void
gpuds_mailbox_close(GpudsMailbox *mailbox)
{
	/* The answer has been read before another request is written. */
	pg_memory_barrier();
	pg_atomic_write_u32(&mailbox->state, MAILBOX_IDLE);
}

/*
 * Trees that are left to the worker.  A bit is set or cleared, then counted: the count differs
 * from their number for moments only, and after the last of them it is right.
 */

void
gpuds_queue_leave(uint64 epoch, uint32 tree)
{
	GpudsQueue *queue = gpuds_queue(GpudsEpochCard(epoch));

	if (pg_atomic_fetch_or_u64(gpuds_queue_left(queue, tree), GpudsQueueBit(tree)) & GpudsQueueBit(tree))
		return;
	pg_atomic_fetch_add_u32(&queue->nleft, 1);
	wake_worker(queue);
}

bool
gpuds_queue_take_left(GpudsQueue *queue, uint32 tree)
{
	if (!(pg_atomic_fetch_and_u64(gpuds_queue_left(queue, tree), ~GpudsQueueBit(tree)) & GpudsQueueBit(tree)))
		return false;
	pg_atomic_fetch_sub_u32(&queue->nleft, 1);
	return true;
}

#ifdef GPUDS_INJECTION_POINTS
static const struct config_enum_entry fault_options[] = { { "none", FAULT_NONE, false },
														  { "sticky", FAULT_STICKY, false },
														  { "no_memory", FAULT_NO_MEMORY, false },
														  { "bad_alloc", FAULT_BAD_ALLOC, false },
														  { "hold", FAULT_HOLD, false },
														  { "hold_drop", FAULT_HOLD_DROP, false },
														  { "hang", FAULT_HANG, false },
														  { "stuck", FAULT_STUCK, false },
														  { NULL, 0, false } };

/* Defines gpuds.device_fault; to be called once, when the library is loaded. */
void
gpuds_fault_define_guc(void)
{
	DefineCustomEnumVariable("gpuds.device_fault", "Fault that this session's next request to the GPU meets.",
							 "It then is \"none\" again.", &device_fault, FAULT_NONE, fault_options,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuds.device_open_failures", "Attempts in a row to open the GPU that fail.",
							"Counted from the last time that it was there.", &gpuds_device_open_failures, 0,
							0, 1000, PGC_SIGHUP, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomIntVariable("gpuds.device_lacks_structure",
							"Structure that the engine does without, 0: none.",
							"As if the engine's library were of another build.",
							&gpuds_device_lacks_structure, 0, 0, STRUCTURE_NUMBERS - 1, PGC_SIGHUP,
							GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}
#endif
