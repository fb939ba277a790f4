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
 * Who lets others run and gets the CPU back only after so long has met somebody
 * who computes.  Then the next waits are sleeps: a process that wakes up goes
 * before those.
 */
#define KEPT_OFF_US 1000
#define SLEEPS_THEN 100
#define SPINS_PER_LOOK 16

/* A wait that must not be interrupted gives up after this. */
#define PATIENCE_MS 5000

/* How long a worker that starts is waited for. */
#define START_MS 20000

/* Pages that the driver can pin. */
#define STAGING_ALIGN 4096

bool gpuds_cuda_installed = false;
GpudsQueue *gpuds_queue = NULL;

static char *staging = NULL; /* mailboxes, then units */
static uint8 *units = NULL;

#ifdef GPUDS_STOP_POINTS
static int device_fault = FAULT_NONE;
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

static Size
queue_bytes(void)
{
	Size words = (MaxBackends + 63) / 64;

	return offsetof(GpudsQueue, bits) + 2 * words * sizeof(pg_atomic_uint64) + unit_count();
}

static Size
staging_bytes(void)
{
	return add_size(mailbox_bytes(), mul_size(unit_count(), GPUDS_UNIT_BYTES));
}

Size
gpuds_queue_shmem_size(void)
{
	if (!gpuds_cuda_installed)
		return 0;
	return add_size(MAXALIGN(queue_bytes()), add_size(staging_bytes(), STAGING_ALIGN));
}

void
gpuds_queue_shmem_init(void)
{
	bool found;
	char *memory;

	if (!gpuds_cuda_installed)
		return;
	gpuds_queue = ShmemInitStruct("gpuds queue", queue_bytes(), &found);
	memory = ShmemInitStruct("gpuds staging", add_size(staging_bytes(), STAGING_ALIGN), &found);
	staging = (char *) TYPEALIGN(STAGING_ALIGN, memory);
	if (!found)
	{
		memset(gpuds_queue, 0, queue_bytes());
		pg_atomic_init_u64(&gpuds_queue->serving, 0);
		pg_atomic_init_u32(&gpuds_queue->worker_asleep, 0);
		pg_atomic_init_u32(&gpuds_queue->crowded, 0);
		SpinLockInit(&gpuds_queue->info_mutex);
		gpuds_queue->info.state = CUDA_STARTING;
		gpuds_queue->info.since = GetCurrentTimestamp();
		ConditionVariableInit(&gpuds_queue->info_changed);
		SpinLockInit(&gpuds_queue->run_mutex);
		ConditionVariableInit(&gpuds_queue->run_freed);
		gpuds_queue->nunits = unit_count();
		gpuds_queue->nmailboxes = MaxBackends;
		gpuds_queue->nwords = (MaxBackends + 63) / 64;
		for (int i = 0; i < 2 * gpuds_queue->nwords; i++)
			pg_atomic_init_u64(&gpuds_queue->bits[i], 0);
		for (int i = 0; i < MaxBackends; i++)
		{
			memset(gpuds_mailbox(i), 0, offsetof(GpudsMailbox, data));
			pg_atomic_init_u32(&gpuds_mailbox(i)->state, MAILBOX_IDLE);
		}
	}
	units = (uint8 *) &gpuds_queue->bits[2 * gpuds_queue->nwords];
}

/* What is to be registered with the driver. */
char *
gpuds_staging_memory(size_t *bytes)
{
	*bytes = staging_bytes();
	return staging;
}

GpudsMailbox *
gpuds_mailbox(int i)
{
	return (GpudsMailbox *) staging + i;
}

uint64
gpuds_staging_offset(const void *p)
{
	return (const char *) p - staging;
}

void
gpuds_queue_info(GpudsCudaInfo *info)
{
	SpinLockAcquire(&gpuds_queue->info_mutex);
	*info = gpuds_queue->info;
	SpinLockRelease(&gpuds_queue->info_mutex);
}

uint64
gpuds_queue_wait_ready(void)
{
	uint64 epoch = gpuds_queue_epoch();

	if (epoch != 0 || gpuds_queue == NULL)
		return epoch;
	for (;;)
	{
		GpudsCudaInfo info;

		gpuds_queue_info(&info);
		epoch = gpuds_queue_epoch();
		if (epoch != 0 || info.state == CUDA_ABSENT ||
			TimestampDifferenceExceeds(info.since, GetCurrentTimestamp(), START_MS))
			break;
		(void) ConditionVariableTimedSleep(&gpuds_queue->info_changed, 1000,
										   GpudsWaitEvent("GpudsDeviceStart"));
	}
	ConditionVariableCancelSleep();
	return epoch;
}

/*
 * Staging memory
 */

/* Takes the first run of at least least units, up to most of them. */
static bool
take_units(GpudsRun *run, uint32 least, uint32 most)
{
	uint32 nunits = gpuds_queue->nunits;
	uint32 from = 0;

	SpinLockAcquire(&gpuds_queue->run_mutex);
	while (from + least <= nunits)
	{
		const uint8 *next = memchr(units + from, 0, nunits - from);
		uint32 n = 0;

		if (next == NULL)
			break;
		from = next - units;
		while (n < most && from + n < nunits && units[from + n] == 0)
			n++;
		if (n >= least)
		{
			memset(units + from, 1, n);
			SpinLockRelease(&gpuds_queue->run_mutex);
			run->first = from;
			run->n = n;
			return true;
		}
		from += n;
	}
	SpinLockRelease(&gpuds_queue->run_mutex);
	return false;
}

void
gpuds_run_take(GpudsRun *run, size_t least, size_t most)
{
	uint32 nmost = (most + GPUDS_UNIT_BYTES - 1) / GPUDS_UNIT_BYTES;
	uint32 nleast = (least + GPUDS_UNIT_BYTES - 1) / GPUDS_UNIT_BYTES;

	Assert(nleast > 0 && nleast <= gpuds_queue->nunits);
	nmost = Max(Min(nmost, GPUDS_RUN_UNITS), nleast);
	if (take_units(run, nleast, nmost))
		return;
	ConditionVariablePrepareToSleep(&gpuds_queue->run_freed);
	while (!take_units(run, nleast, nmost))
		ConditionVariableSleep(&gpuds_queue->run_freed, GpudsWaitEvent("GpudsStaging"));
	ConditionVariableCancelSleep();
}

/* Harmless for a run of none.  Also for the worker. */
void
gpuds_run_give(GpudsRun *run)
{
	if (run->n == 0)
		return;
	SpinLockAcquire(&gpuds_queue->run_mutex);
	memset(units + run->first, 0, run->n);
	SpinLockRelease(&gpuds_queue->run_mutex);
	run->n = 0;
	ConditionVariableBroadcast(&gpuds_queue->run_freed);
}

void
gpuds_run_shrink(GpudsRun *run, size_t bytes)
{
	uint32 n = (bytes + GPUDS_UNIT_BYTES - 1) / GPUDS_UNIT_BYTES;
	GpudsRun rest;

	if (n >= run->n)
		return;
	rest.first = run->first + n;
	rest.n = run->n - n;
	run->n = n;
	gpuds_run_give(&rest);
}

char *
gpuds_run_memory(const GpudsRun *run)
{
	return staging + mailbox_bytes() + (size_t) run->first * GPUDS_UNIT_BYTES;
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
wake_worker(void)
{
	pg_memory_barrier();
	if (pg_atomic_read_u32(&gpuds_queue->worker_asleep))
		SetLatch(&GetPGProcByNumber(gpuds_queue->worker_procno)->procLatch);
}

typedef struct Sent
{
	GpudsMailbox *mailbox;
	GpudsRun *run;
} Sent;

/*
 * Gives up a request that was sent.  Whoever has it last frees its run.
 */
static void
abandon(int code, Datum arg)
{
	Sent *sent = (Sent *) DatumGetPointer(arg);
	GpudsMailbox *mailbox = sent->mailbox;
	int me = GpudsMyBackendIndex();
	uint32 state = MAILBOX_POSTED;

	if (!pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_IDLE))
	{
		/* The worker looks sooner at those who are said to sleep. */
		pg_atomic_fetch_or_u64(gpuds_queue_sleepers(me), GpudsQueueBit(me));
		state = MAILBOX_RUNNING;
		if (pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_ABANDONED))
		{
			if (sent->run)
				sent->run->n = 0;
			wake_worker();
			return;
		}
		Assert(state == MAILBOX_DONE);
		pg_atomic_write_u32(&mailbox->state, MAILBOX_IDLE);
	}
	if (sent->run)
		gpuds_run_give(sent->run);
}

/* Lets others run.  True: for long. */
static bool
kept_off_by_yield(void)
{
	instr_time began;
	instr_time now;

	INSTR_TIME_SET_CURRENT(began);
	sched_yield();
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, began);
	return INSTR_TIME_GET_MICROSEC(now) >= KEPT_OFF_US;
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
	int me = GpudsMyBackendIndex();
	instr_time began;
	instr_time now;
	int spin;
	bool slept = false;
	bool there = false;

	if (is_there(mailbox))
		return true;
	spin = pg_atomic_read_u32(&gpuds_queue->crowded) ? SPIN_CROWDED_US : SPIN_US;
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
		if (kept_off_by_yield())
			sleeps = SLEEPS_THEN;
	}

	for (;;)
	{
		int events;

		pg_atomic_fetch_or_u64(gpuds_queue_sleepers(me), GpudsQueueBit(me));
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
	pg_atomic_fetch_and_u64(gpuds_queue_sleepers(me), ~GpudsQueueBit(me));
	/* What the latch was set for, beside our answer, has not been looked at. */
	if (slept && patient)
		SetLatch(MyLatch);
	return there;
}

GpudsMailbox *
gpuds_mailbox_open(uint64 epoch, bool patient)
{
	GpudsMailbox *mailbox;

	if (epoch == 0 || gpuds_queue_epoch() != epoch)
		return NULL;
	mailbox = gpuds_mailbox(GpudsMyBackendIndex());
	if (!wait_until(mailbox, is_idle, patient, give_nothing_up, (Datum) 0))
		return NULL;
	memset(&mailbox->request, 0, sizeof(GpuRequest));
	mailbox->run.n = 0;
	mailbox->fault = FAULT_NONE;
#ifdef GPUDS_STOP_POINTS
	/* Goes with one request, and not with one that cleans up. */
	if (device_fault != FAULT_NONE && !patient)
	{
		mailbox->fault = device_fault;
		device_fault = FAULT_NONE;
	}
#endif
	return mailbox;
}

bool
gpuds_mailbox_send(GpudsMailbox *mailbox, GpudsRun *run, uint64 epoch, bool patient)
{
	int me = GpudsMyBackendIndex();
	Sent sent = { mailbox, run };

	mailbox->procno = GpudsMyProcNumber();
	mailbox->epoch = epoch;
	if (run)
		mailbox->run = *run;
	mailbox->request.done = 0;
	pg_write_barrier();
	pg_atomic_write_u32(&mailbox->state, MAILBOX_POSTED);
	pg_atomic_fetch_or_u64(gpuds_queue_posted(me), GpudsQueueBit(me));
	if (gpuds_queue_epoch() != epoch)
	{
		uint32 state = MAILBOX_POSTED;

		if (pg_atomic_compare_exchange_u32(&mailbox->state, &state, MAILBOX_IDLE))
			return false;
		/* A worker has taken it, and will answer. */
	}
	wake_worker();
#ifdef GPUDS_STOP_POINTS
	if (!patient)
	{
		PG_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(&sent));
		{
			gpuds_stop_point("device-waiting");
		}
		PG_END_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(&sent));
	}
#endif
	if (wait_until(mailbox, is_answered, patient, abandon, PointerGetDatum(&sent)))
		return true;
	abandon(0, PointerGetDatum(&sent));
	return false;
}

void
gpuds_mailbox_close(GpudsMailbox *mailbox)
{
	/* The answer has been read before another request is written. */
	pg_memory_barrier();
	pg_atomic_write_u32(&mailbox->state, MAILBOX_IDLE);
}

#ifdef GPUDS_STOP_POINTS
static const struct config_enum_entry fault_options[] = { { "none", FAULT_NONE, false },
														  { "sticky", FAULT_STICKY, false },
														  { "no_memory", FAULT_NO_MEMORY, false },
														  { "hold", FAULT_HOLD, false },
														  { NULL, 0, false } };

/* Defines gpuds.device_fault; to be called once, when the library is loaded. */
void
gpuds_fault_define_guc(void)
{
	DefineCustomEnumVariable("gpuds.device_fault", "Fault that this session's next request to the GPU meets.",
							 "It then is \"none\" again.", &device_fault, FAULT_NONE, fault_options,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}
#endif
