/*-------------------------------------------------------------------------
 *
 * gpuds.h
 *	  What every directory of src/ may use: settings, errors, injection points.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_H
#define GPUDS_H

#include "postgres.h"

#include "compat.h"
#include "kernels/core/entry.h"

/* gpuds.device (the settings are in settings.c) */
typedef enum GpudsDeviceChoice
{
	GPUDS_CHOICE_AUTO, /* CUDA if there is one, else the CPU */
	GPUDS_CHOICE_CPU,
	GPUDS_CHOICE_CUDA
} GpudsDeviceChoice;

extern int gpuds_device;
extern char *gpuds_device_ids; /* empty: all */
extern int gpuds_host_memory_mb;
extern int gpuds_device_memory_mb; /* 0: as much as is there */
extern int gpuds_staging_memory_mb;
extern int gpuds_device_timeout_s; /* seconds, 0: none */
extern int gpuds_temp_memory_mb;
extern int gpuds_max_mirrors;
extern int gpuds_memtable_memory_mb; /* 0: no memtables */
extern int gpuds_include_memory_mb;
extern int gpuds_visibility_memory_kb; /* 0: no page states */
extern bool gpuds_enable_aggregate;
extern bool gpuds_enable_scan;
extern bool gpuds_enable_join;
extern bool gpuds_enable_nearest;

/*
 * Errors out with a HINT unless the library was preloaded.  Every entry point
 * that a user can reach calls it before it touches shared memory.
 */
extern void gpuds_require_preload(void);
extern bool gpuds_is_preloaded(void);

extern void gpuds_settings_define(void);

/* hooks.c */
extern void gpuds_hooks_init(void);

/*
 * Injection points: in builds with GPUDS_INJECTION_POINTS a test can hold a backend at a
 * named place (see injection.c).  Never reached under a lock that the test
 * itself needs; elsewhere they compile to nothing.
 */
#ifdef GPUDS_INJECTION_POINTS
extern void gpuds_injection_point(const char *name);
extern void gpuds_injection_point_of(const char *name, Oid database);
extern void gpuds_injection_define_guc(void);

/* gpuds.test_without_memtables: the session puts nothing into memtables, and reads none */
extern bool gpuds_without_memtables;

/* gpuds.test_parts: into how many parts indexes on GPUs are divided, at least, if there are as many GPUs */
extern int gpuds_test_parts;

/* gpuds.test_disk_full: indexes of the session do not grow.  Raises the error that says so. */
extern void gpuds_injection_extend(Relation index);
#else
#define gpuds_without_memtables false
#define gpuds_test_parts 1
#define gpuds_injection_point(name) ((void) 0)
#define gpuds_injection_point_of(name, database) ((void) 0)
#define gpuds_injection_extend(index) ((void) 0)
#endif

#endif /* GPUDS_H */
