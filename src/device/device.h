/*-------------------------------------------------------------------------
 *
 * device.h
 *	  What a mirror asks of the device that holds its structure.
 *
 * A device keeps one GpudsDeviceTree per mirror.  The functions that change
 * the tree (load_*, apply, withdraw, release) are called by one process at a
 * time, the mirror's applier; scan, count and verify by anybody at any time,
 * also while a change is under way: they see the version that was published
 * last.  None of them raises an error or checks for interrupts, so that a pin
 * is never held over a longjmp.
 *
 * The CPU device runs everything in the calling backend, on an arena in the
 * main shared memory segment, or in private memory for temporary indexes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_DEVICE_H
#define GPUDS_DEVICE_H

#include "gpuds.h"
#include "kernels/btree.h"

typedef enum GpudsDeviceKind
{
	GPUDS_ON_CPU,        /* shared arena */
	GPUDS_ON_CPU_PRIVATE /* this backend's own arena */
} GpudsDeviceKind;

typedef struct GpudsDeviceTree
{
	GpudsDeviceKind kind;
	GbtTree tree;
} GpudsDeviceTree;

/* shared memory (arena.c) */
extern Size gpuds_device_shmem_size(void);
extern void gpuds_device_shmem_init(void);
extern size_t gpuds_device_memory_used(GpudsDeviceKind kind);
extern size_t gpuds_device_memory_size(GpudsDeviceKind kind);

/*
 * A tree in zeroed memory starts out withdrawn.  The owner number names the
 * tree among pins; it is unique among live trees of a kind and not 0.
 */
extern void gpuds_device_init(GpudsDeviceTree *tree, GpudsDeviceKind kind);

/* Bulk load: entries strictly ascending over all calls.  The tree is withdrawn. */
typedef struct GpudsDeviceLoad
{
	GpudsDeviceTree *tree;
	GbtBuild build;
} GpudsDeviceLoad;

extern GkStatus gpuds_device_load_begin(GpudsDeviceTree *tree, GpudsDeviceLoad *load, int nwords,
										int fill_percent);
extern GkStatus gpuds_device_load_add(GpudsDeviceLoad *load, const GkEntry *entries, int64 n);
extern GkStatus gpuds_device_load_end(GpudsDeviceLoad *load);
extern void gpuds_device_load_cancel(GpudsDeviceLoad *load);

/* Operations strictly ascending by entry. */
extern GkStatus gpuds_device_apply(GpudsDeviceTree *tree, uint64 owner, const GkOp *ops, int64 n);

/*
 * The next entries of a scan, at most cap; fewer: the scan is at its end.
 * -1: the tree was withdrawn or, at the time of the pin, *serial was not what
 * was expected (the tree is incomplete, or serves another index by now).
 */
extern int64 gpuds_device_scan(const GpudsDeviceTree *tree, uint64 owner, pg_atomic_uint64 *serial,
							   uint64 expected, GkScan *scan, bool forward, GkEntry *out, int64 cap);

/*
 * Takes the tree out of service and gives its memory back, after waiting for
 * the readers that still have it pinned (they are never slow).
 */
extern void gpuds_device_drop(GpudsDeviceTree *tree, uint64 owner);

extern size_t gpuds_device_bytes(const GpudsDeviceTree *tree);
extern uint64 gpuds_device_entries(const GpudsDeviceTree *tree);

/* Checks the structure's invariants; the caller is the applier. */
extern bool gpuds_device_verify(const GpudsDeviceTree *tree, char *why, size_t whylen);

#endif /* GPUDS_DEVICE_H */
