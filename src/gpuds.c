/*-------------------------------------------------------------------------
 *
 * gpuds.c
 *	  Library start: settings, shared memory, hooks.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "am/am.h"
#include "device/device.h"
#include "journal/journal.h"
#include "mirror/mirror.h"
#include "structure.h"

PG_MODULE_MAGIC;

void _PG_init(void);

int gpuds_device = GPUDS_CHOICE_AUTO;
int gpuds_host_memory = 1024;
int gpuds_device_memory_mb = 0;
int gpuds_staging_memory_mb = 64;
int gpuds_device_timeout = 60;
int gpuds_temp_memory = 64;
int gpuds_max_mirrors = 16384;

static const struct config_enum_entry device_options[] = { { "auto", GPUDS_CHOICE_AUTO, false },
														   { "cpu", GPUDS_CHOICE_CPU, false },
														   { "cuda", GPUDS_CHOICE_CUDA, false },
														   { NULL, 0, false } };

/* A CPU device's memory is not larger than this (ARENA_MAX_CHUNKS), in megabytes. */
#define MAX_TEMP_MEMORY (256 * 1024)

static bool preloaded = false;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

bool
gpuds_is_preloaded(void)
{
	return preloaded;
}

void
gpuds_require_preload(void)
{
	if (!preloaded)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("gpuds must be loaded via shared_preload_libraries"),
				 errhint(
					 "Add gpuds to shared_preload_libraries in postgresql.conf and restart the server.")));
}

static void
shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(gpuds_journal_shmem_size());
	RequestAddinShmemSpace(gpuds_mirror_shmem_size());
	RequestAddinShmemSpace(gpuds_device_shmem_size());
	RequestNamedLWLockTranche("gpuds_registry", 1);
	RequestNamedLWLockTranche("gpuds_room", 1);
}

static void
shmem_startup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	gpuds_journal_shmem_init();
	gpuds_device_shmem_init();
	gpuds_mirror_shmem_init();
	LWLockRelease(AddinShmemInitLock);
}

static void
define_settings(void)
{
	DefineCustomEnumVariable("gpuds.device", "Device that answers index scans.",
							 "\"auto\" takes the best device there is.", &gpuds_device, GPUDS_CHOICE_AUTO,
							 device_options, PGC_USERSET, 0, NULL, NULL, NULL);

	/* Without shared memory of ours there is nothing to size. */
	if (preloaded)
	{
		DefineCustomIntVariable("gpuds.host_memory", "Memory reserved for mirrors on the CPU device.",
								"Untouched pages of it cost nothing.", &gpuds_host_memory, 1024, 8,
								MAX_KILOBYTES, PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.device_memory", "GPU memory for mirrors on the CUDA device.",
								"0 takes three quarters of what is free when the first index is loaded.",
								&gpuds_device_memory_mb, 0, 0, MAX_KILOBYTES, PGC_POSTMASTER, GUC_UNIT_MB,
								NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.staging_memory",
								"Shared memory through which data go to the CUDA device and back.",
								"It is only reserved where the device's library is installed.",
								&gpuds_staging_memory_mb, 64, 16, 4096, PGC_POSTMASTER, GUC_UNIT_MB, NULL,
								NULL, NULL);
		DefineCustomIntVariable("gpuds.device_timeout",
								"Time after which a CUDA device that does not answer is given up.",
								"0 waits for ever.", &gpuds_device_timeout, 60, 0, INT_MAX / 1000, PGC_SIGHUP,
								GUC_UNIT_S, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.temp_memory",
								"Memory of each session for mirrors of its temporary indexes.",
								"It is taken when it is needed, and given back.", &gpuds_temp_memory, 64, 1,
								MAX_TEMP_MEMORY, PGC_USERSET, GUC_UNIT_MB, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.max_mirrors", "Mirrors that there can be at a time.",
								"An index has one on each device that it is used on. Those not used for long "
								"make room for others. Temporary indexes do not count.",
								&gpuds_max_mirrors, 16384, 16, GPU_MAX_TREES, PGC_POSTMASTER, 0, NULL, NULL,
								NULL);
	}
#ifdef GPUDS_INJECTION_POINTS
	gpuds_injection_define_guc();
	gpuds_structure_define_guc();
	gpuds_fault_define_guc();
#endif
	if (preloaded)
		MarkGUCPrefixReserved("gpuds");
}

void
_PG_init(void)
{
	preloaded = process_shared_preload_libraries_in_progress;

	define_settings();
	gpuds_define_reloptions();

	if (!preloaded)
		return;

	gpuds_worker_register();
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;

	gpuds_hooks_init();
}
