/*-------------------------------------------------------------------------
 *
 * device_ops.h
 *	  What a kind of device is: a row of properties and functions.
 *
 * device.c passes every function of device.h on through this table, and nobody
 * else asks of which kind a tree is.  device.h says what the functions promise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_DEVICE_INTERNAL_H
#define GPUDS_DEVICE_INTERNAL_H

#include "device/device.h"

typedef struct GpudsDeviceOps
{
	/* properties */
	const char *name;
	bool remote;        /* another process does the work: a call costs a round trip */
	bool private;       /* its trees are this backend's own */
	bool sorts;         /* apply takes operations in any order; there are scan_tids */
	bool agg_columns;   /* count adds up what entries have, of each interval if that is wanted */
	bool joins;         /* count joins entries with those of another tree */
	uint64 max_entries; /* of a tree */
	int64 apply_ops;    /* of one apply, at most */
	size_t slack_bytes; /* that a tree may hold without using them */

	/* of the device */
	bool (*chosen)(bool by_name);
	bool (*has_structure)(int structure);
	int (*cards)(void);       /* NULL: it is one, and that is there */
	bool (*serves)(int card); /* likewise */
	size_t (*memory_used)(int card);
	size_t (*memory_size)(int card);

	/* of a tree */
	bool (*usable)(GpudsDeviceTree *tree);
	size_t (*bytes)(GpudsDeviceTree *tree);
	uint64 (*entries)(GpudsDeviceTree *tree);
	size_t (*bytes_on)(GpudsDeviceTree *tree, int card); /* NULL: there is one card */
	GpudsDeviceStatus (*load_begin)(GpudsDeviceLoad *load, int nwords, int fill_percent, uint64 entries);
	GpudsDeviceStatus (*load_add)(GpudsDeviceLoad *load, int64 n);
	GpudsDeviceStatus (*load_end)(GpudsDeviceLoad *load);
	void (*load_cancel)(GpudsDeviceLoad *load);
	GpudsDeviceStatus (*apply)(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n);
	/* NULL: the device packs by itself */
	bool (*pack)(GpudsDeviceTree *tree, size_t *bytes);
	int64 (*scan)(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
				  bool forward, GpudsEntry *out, int64 cap);
	bool (*has_ranks)(int structure);
	/* of structures that have ranks */
	bool (*rank)(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
				 const GpudsInterval *intervals, const uint64 *ranks, int64 n, GpudsRanked *ranked);
	/* NULL unless the device sorts */
	bool (*scan_tids)(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected, GpudsScan *scan,
					  int64 cap, GpudsTids *tids);
	/* *count is zero */
	GpudsCountStatus (*count)(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
							  GpudsScan *scan, const GpudsCountSpec *spec, GpudsCount *count);
	/* NULL: count takes ascending intervals only */
	int64 (*most_unsorted)(const GpudsCountSpec *spec);
	bool (*drop)(GpudsDeviceTree *tree);
	/* NULL: the device keeps no copies of side values */
	GpudsDeviceStatus (*side_begin)(GpudsDeviceTree *tree, pg_atomic_uint64 *guard, uint64 expected,
									uint64 name, int rows, int row_bytes);
	GpudsDeviceStatus (*side_put)(GpudsDeviceTree *tree, uint64 name, const GpudsSidePut *put);
	bool (*side_drop)(GpudsDeviceTree *tree);
	/* NULL: the device keeps no graphs.  patient: raises no errors */
	GpudsDeviceStatus (*step_graph)(uint64 epoch, GpudsGraphStep *step, bool patient);
	GpudsDeviceVerdict (*verify)(GpudsDeviceTree *tree, char *why, size_t whylen);
} GpudsDeviceOps;

/* cpu_device.c: both kinds of CPU devices */
extern const GpudsDeviceOps gpuds_shared_cpu_device;
extern const GpudsDeviceOps gpuds_private_cpu_device;
extern Size gpuds_arena_shmem_size(void);
extern void gpuds_arena_shmem_init(void);
extern void gpuds_arena_init(GpudsDeviceTree *tree, uint64 number);

/* cuda_layout.c */
extern Size gpuds_cuda_parts_shmem_size(void);
extern void gpuds_cuda_parts_shmem_init(void);

/* cuda.c */
extern const GpudsDeviceOps gpuds_cuda_device;
extern void gpuds_cuda_init(GpudsDeviceTree *tree, uint64 number);

#endif /* GPUDS_DEVICE_INTERNAL_H */
