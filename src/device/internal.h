/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  The functions of device.h, one set for each device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_DEVICE_INTERNAL_H
#define GPUDS_DEVICE_INTERNAL_H

#include "device/device.h"

/* arena.c: both kinds of CPU devices */
extern Size gpuds_arena_shmem_size(void);
extern void gpuds_arena_shmem_init(void);
extern size_t gpuds_arena_memory_used(GpudsDeviceKind kind);
extern size_t gpuds_arena_memory_size(GpudsDeviceKind kind);
extern void gpuds_arena_init(GpudsDeviceTree *tree, uint64 number);
extern GpudsDeviceStatus gpuds_arena_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent);
extern GpudsDeviceStatus gpuds_arena_load_add(GpudsDeviceLoad *load, int64 n);
extern GpudsDeviceStatus gpuds_arena_load_end(GpudsDeviceLoad *load);
extern void gpuds_arena_load_cancel(GpudsDeviceLoad *load);
extern GpudsDeviceStatus gpuds_arena_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n);
extern int64 gpuds_arena_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected,
							  GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap);
extern void gpuds_arena_drop(GpudsDeviceTree *tree);
extern bool gpuds_arena_verify(const GpudsDeviceTree *tree, char *why, size_t whylen);

/* cuda.c */
extern size_t gpuds_cuda_memory_used(void);
extern size_t gpuds_cuda_memory_size(void);
extern void gpuds_cuda_init(GpudsDeviceTree *tree, uint64 number);
extern GpudsDeviceStatus gpuds_cuda_load_begin(GpudsDeviceLoad *load, int nwords, int fill_percent);
extern GpudsDeviceStatus gpuds_cuda_load_add(GpudsDeviceLoad *load, int64 n);
extern GpudsDeviceStatus gpuds_cuda_load_end(GpudsDeviceLoad *load);
extern void gpuds_cuda_load_cancel(GpudsDeviceLoad *load);
extern int64 gpuds_cuda_apply_size(void);
extern GpudsDeviceStatus gpuds_cuda_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n);
extern int64 gpuds_cuda_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected,
							 GpudsScan *scan, bool forward, GpudsEntry *out, int64 cap);
extern bool gpuds_cuda_scan_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected,
								 GpudsScan *scan, int64 cap, GpudsTids *tids);
extern bool gpuds_cuda_drop(GpudsDeviceTree *tree);
extern GpudsDeviceVerdict gpuds_cuda_verify(GpudsDeviceTree *tree, char *why, size_t whylen);

#endif /* GPUDS_DEVICE_INTERNAL_H */
