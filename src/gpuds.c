/*-------------------------------------------------------------------------
 *
 * gpuds.c
 *	  Library start: settings, shared memory, hooks.
 *
 * Each directory says what shared memory, settings and hooks it needs, and none calls this file.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "commands/extension.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "custom/custom.h"
#include "device/device.h"
#include "file/file.h"
#include "index/index.h"
#include "journal/journal.h"
#include "memtable/memtable.h"
#include "mirror/mirror.h"
#include "side/side.h"
#include "states/states.h"
#include "structure.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	RequestAddinShmemSpace(gpuds_journal_shmem_size());
	RequestAddinShmemSpace(gpuds_file_shmem_size());
	RequestAddinShmemSpace(gpuds_memtable_shmem_size());
	RequestAddinShmemSpace(gpuds_side_shmem_size());
	RequestAddinShmemSpace(gpuds_states_shmem_size());
	RequestAddinShmemSpace(gpuds_mirror_shmem_size());
	RequestAddinShmemSpace(gpuds_device_shmem_size());
	RequestNamedLWLockTranche("gpuds_files", 1);
	RequestNamedLWLockTranche("gpuds_memory_claims", 1);
	RequestNamedLWLockTranche("gpuds_side", GPUDS_SIDE_LOCKS);
}

static void
shmem_startup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	gpuds_journal_shmem_init();
	gpuds_file_shmem_init();
	gpuds_memtable_shmem_init();
	gpuds_side_shmem_init();
	gpuds_states_shmem_init();
	gpuds_device_shmem_init();
	gpuds_mirror_shmem_init();
	gpuds_memory_shmem_init();
	LWLockRelease(AddinShmemInitLock);
}

/* Its objects can be made all the same.  While a script of an extension is run, NOTICEs are not shown. */
static void
warn_not_preloaded(void)
{
	ereport(WARNING,
			(errmsg("gpuds is not in shared_preload_libraries"),
			 errdetail("Indexes of gpuds cannot be made or used until it is."),
			 errhint("Add gpuds to shared_preload_libraries in postgresql.conf and restart the server.")));
}

void
_PG_init(void)
{
	gpuds_settings_define();
#ifdef GPUDS_INJECTION_POINTS
	gpuds_injection_define_guc();
	gpuds_structure_define_guc();
	gpuds_fault_define_guc();
#endif
	gpuds_define_reloptions();

	if (!gpuds_is_preloaded())
	{
		if (creating_extension)
			warn_not_preloaded();
		return;
	}

	MarkGUCPrefixReserved("gpuds");

	/* In this order: there may be fewer slots for workers than GPUs. */
	gpuds_worker_register();
	gpuds_flusher_register();
	gpuds_worker_register_others();
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;

	gpuds_stats_register();
	gpuds_hooks_init();
	gpuds_custom_init();
}
