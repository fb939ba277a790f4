/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings, and whether the library was preloaded.
 *
 * A library that was not preloaded has no shared memory, so it defines only the
 * settings that need none, and every entry point refuses to work.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "utils/guc.h"

#include "device/cards.h"
#include "kernels/engine/engine.h"

int gpuds_device = GPUDS_CHOICE_AUTO;
char *gpuds_device_ids = NULL;
int gpuds_host_memory_mb = 1024;
int gpuds_device_memory_mb = 0;
int gpuds_staging_memory_mb = 64;
int gpuds_device_timeout_s = 60;
int gpuds_temp_memory_mb = 64;
int gpuds_max_mirrors = 16384;
int gpuds_memtable_memory_mb = 64;
int gpuds_include_memory_mb = 256;
int gpuds_visibility_memory_kb = 64 * 1024;
bool gpuds_enable_aggregate = true;
bool gpuds_enable_scan = true;
bool gpuds_enable_join = true;
bool gpuds_enable_nearest = true;

static const struct config_enum_entry device_options[] = { { "auto", GPUDS_CHOICE_AUTO, false },
														   { "cpu", GPUDS_CHOICE_CPU, false },
														   { "cuda", GPUDS_CHOICE_CUDA, false },
														   { NULL, 0, false } };

/* More has no links (GENERATION_MAX_CHUNKS). */
#define MAX_MEMTABLE_MEMORY_MB (32 * 1024)

/* A CPU device's memory is not larger than this (ARENA_MAX_CHUNKS). */
#define MAX_TEMP_MEMORY_MB (256 * 1024)

static bool preloaded = false;

/* Whether the server has loaded the library at its start. */
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
define_settings(void)
{
	DefineCustomEnumVariable("gpuds.device", "Device that answers index scans.",
							 "\"auto\" takes the best device there is.", &gpuds_device, GPUDS_CHOICE_AUTO,
							 device_options, PGC_USERSET, 0, NULL, NULL, NULL);

	DefineCustomBoolVariable("gpuds.enable_aggregate",
							 "Lets the planner count rows by GpudsAggregate, GpudsOffset and "
							 "GpudsPercentile nodes.",
							 NULL, &gpuds_enable_aggregate, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);

	DefineCustomBoolVariable("gpuds.enable_scan", "Lets the planner fetch rows of tables by GpudsScan nodes.",
							 NULL, &gpuds_enable_scan, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);

	DefineCustomBoolVariable("gpuds.enable_join", "Lets the planner join tables by GpudsJoin nodes.", NULL,
							 &gpuds_enable_join, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);

	DefineCustomBoolVariable("gpuds.enable_nearest",
							 "Lets the planner order rows by distances of points by GpudsNearest nodes.",
							 NULL, &gpuds_enable_nearest, true, PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);

	/* Without shared memory of ours there is nothing to size. */
	if (preloaded)
	{
		DefineCustomIntVariable("gpuds.host_memory",
								"Memory reserved for in-memory copies of indexes on the CPU device.",
								"Untouched pages of it cost nothing.", &gpuds_host_memory_mb, 1024, 8,
								MAX_KILOBYTES, PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);
		DefineCustomStringVariable("gpuds.device_ids",
								   "Numbers of the GPUs that are used, as CUDA counts them.",
								   "A list such as \"0,1\". Empty takes all that the server sees.",
								   &gpuds_device_ids, "", PGC_POSTMASTER, 0, gpuds_check_device_ids, NULL,
								   NULL);
		DefineCustomIntVariable("gpuds.device_memory", "Memory of each GPU for in-memory copies of indexes.",
								"0 takes three quarters of what is free when the first index is loaded.",
								&gpuds_device_memory_mb, 0, 0, MAX_KILOBYTES, PGC_POSTMASTER, GUC_UNIT_MB,
								NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.staging_memory",
								"Shared memory through which data go to a GPU and back, for each of them.",
								"It is only reserved where the device's library is installed.",
								&gpuds_staging_memory_mb, 64, 16, 4096, PGC_POSTMASTER, GUC_UNIT_MB, NULL,
								NULL, NULL);
		DefineCustomIntVariable("gpuds.device_timeout",
								"Time after which a CUDA device that does not answer is given up.",
								"0 waits for ever.", &gpuds_device_timeout_s, 60, 0, INT_MAX / 1000,
								PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.temp_memory",
								"Memory of each session for in-memory copies of its temporary indexes.",
								"It is taken when it is needed, and given back.", &gpuds_temp_memory_mb, 64,
								1, MAX_TEMP_MEMORY_MB, PGC_USERSET, GUC_UNIT_MB, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.memtable_memory",
								"Memory reserved for changes that are not in the in-memory copies yet.",
								"Scans find recent changes there. 0 makes scans bring in-memory copies up "
								"to date themselves. Untouched pages of it cost nothing.",
								&gpuds_memtable_memory_mb, 64, 0, MAX_MEMTABLE_MEMORY_MB, PGC_POSTMASTER,
								GUC_UNIT_MB, NULL, NULL, NULL);
		DefineCustomIntVariable(
			"gpuds.include_memory",
			"Memory reserved for values of included columns that indexes have no room for.",
			"Without it they are read from the tables. Untouched pages of it cost nothing.",
			&gpuds_include_memory_mb, 256, 0, MAX_KILOBYTES, PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.visibility_memory",
								"Memory reserved for what is known of the rows of pages that are not "
								"all-visible.",
								"With it, scans need not visit such rows in the tables. 0 makes them visit "
								"the rows. Untouched pages of it cost nothing.",
								&gpuds_visibility_memory_kb, 64 * 1024, 0, MAX_KILOBYTES, PGC_POSTMASTER,
								GUC_UNIT_KB, NULL, NULL, NULL);
		DefineCustomIntVariable("gpuds.max_mirrors",
								"In-memory copies of indexes that there can be at a time.",
								"An index has one on each device that it is used on. Those not used for long "
								"make room for others. Temporary indexes do not count.",
								&gpuds_max_mirrors, 16384, 16, GPU_MAX_TREES, PGC_POSTMASTER, 0, NULL, NULL,
								NULL);
	}
}

/* All settings but those of builds for tests. */
static const char *const names[] = {
	"gpuds.device",           "gpuds.device_ids",     "gpuds.device_memory",    "gpuds.device_timeout",
	"gpuds.enable_aggregate", "gpuds.enable_join",    "gpuds.enable_nearest",   "gpuds.enable_scan",
	"gpuds.host_memory",      "gpuds.include_memory", "gpuds.max_mirrors",      "gpuds.memtable_memory",
	"gpuds.staging_memory",   "gpuds.temp_memory",    "gpuds.visibility_memory"
};

/*
 * Defines the settings; to be called once, when the library is loaded.
 *
 * A value that was set before a setting is defined, and is not one that it may have, becomes the default with
 * a WARNING: memory of 1 MB would be 1 GB.  So the server, when it starts, is given an error instead.
 */
void
gpuds_settings_define(void)
{
	char *configured[lengthof(names)] = { NULL };

	preloaded = process_shared_preload_libraries_in_progress;
	for (size_t i = 0; i < lengthof(names) && preloaded; i++)
	{
		const char *value = GetConfigOption(names[i], true, false);

		configured[i] = value ? pstrdup(value) : NULL;
	}
	define_settings();
	for (size_t i = 0; i < lengthof(names) && preloaded; i++)
	{
		if (configured[i] == NULL)
			continue;
		/* As from the configuration file: there is no user yet, whom core asks for of other sources. */
		(void) set_config_option(names[i], configured[i], PGC_POSTMASTER, PGC_S_FILE, GUC_ACTION_SET, false,
								 ERROR, false);
		pfree(configured[i]);
	}
}
