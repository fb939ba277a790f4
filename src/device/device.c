/*-------------------------------------------------------------------------
 *
 * device.c
 *	  Passes what is asked of a tree on to the device that has it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "device/internal.h"

/* Operations applied at a time on a CPU: bounds the nodes that exist twice. */
#define CPU_APPLY_SIZE (128 * 1024)

GpudsDeviceWork gpuds_device_work;

Size
gpuds_device_shmem_size(void)
{
	return add_size(gpuds_arena_shmem_size(), gpuds_queue_shmem_size());
}

void
gpuds_device_shmem_init(void)
{
	gpuds_arena_shmem_init();
	gpuds_queue_shmem_init();
}

size_t
gpuds_device_memory_used(GpudsDeviceKind kind)
{
	return kind == GPUDS_ON_CUDA ? gpuds_cuda_memory_used() : gpuds_arena_memory_used(kind);
}

size_t
gpuds_device_memory_size(GpudsDeviceKind kind)
{
	return kind == GPUDS_ON_CUDA ? gpuds_cuda_memory_size() : gpuds_arena_memory_size(kind);
}

void
gpuds_device_init(GpudsDeviceTree *tree, GpudsDeviceKind kind, uint64 number)
{
	tree->kind = kind;
	gpuds_arena_init(tree, number);
	gpuds_cuda_init(tree, number);
}

/* Nodes of both kinds of trees count the entries below a child in 32 bits. */
uint64
gpuds_device_max_entries(GpudsDeviceKind kind)
{
	return kind == GPUDS_ON_CUDA ? GPU_MAX_ENTRIES : UINT32_MAX;
}

GpudsDeviceKind
gpuds_device_wanted(void)
{
	return gpuds_device != GPUDS_CHOICE_CPU && gpuds_queue_epoch() != 0 ? GPUDS_ON_CUDA : GPUDS_ON_CPU;
}

GpudsDeviceStatus
gpuds_device_load_begin(GpudsDeviceTree *tree, GpudsDeviceLoad *load, int nwords, int fill_percent)
{
	load->tree = tree;
	return tree->kind == GPUDS_ON_CUDA ? gpuds_cuda_load_begin(load, nwords, fill_percent)
									   : gpuds_arena_load_begin(load, nwords, fill_percent);
}

GpudsDeviceStatus
gpuds_device_load_add(GpudsDeviceLoad *load, int64 n)
{
	Assert(n <= load->room_size);
	return load->tree->kind == GPUDS_ON_CUDA ? gpuds_cuda_load_add(load, n) : gpuds_arena_load_add(load, n);
}

GpudsDeviceStatus
gpuds_device_load_end(GpudsDeviceLoad *load)
{
	return load->tree->kind == GPUDS_ON_CUDA ? gpuds_cuda_load_end(load) : gpuds_arena_load_end(load);
}

void
gpuds_device_load_cancel(GpudsDeviceLoad *load)
{
	if (load->tree == NULL)
		return;
	if (load->tree->kind == GPUDS_ON_CUDA)
		gpuds_cuda_load_cancel(load);
	else
		gpuds_arena_load_cancel(load);
}

bool
gpuds_device_sorts(const GpudsDeviceTree *tree)
{
	return tree->kind == GPUDS_ON_CUDA;
}

int64
gpuds_device_apply_size(const GpudsDeviceTree *tree)
{
	return tree->kind == GPUDS_ON_CUDA ? gpuds_cuda_apply_size() : CPU_APPLY_SIZE;
}

GpudsDeviceStatus
gpuds_device_apply(GpudsDeviceTree *tree, const GpudsOp *ops, int64 n)
{
	return tree->kind == GPUDS_ON_CUDA ? gpuds_cuda_apply(tree, ops, n) : gpuds_arena_apply(tree, ops, n);
}

int64
gpuds_device_scan(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected, GpudsScan *scan,
				  bool forward, GpudsEntry *out, int64 cap)
{
	/* Read once: the slot may be given to a mirror of another kind. */
	return tree->kind == GPUDS_ON_CUDA ? gpuds_cuda_scan(tree, serial, expected, scan, forward, out, cap)
									   : gpuds_arena_scan(tree, serial, expected, scan, forward, out, cap);
}

bool
gpuds_device_scan_tids(GpudsDeviceTree *tree, pg_atomic_uint64 *serial, uint64 expected, GpudsScan *scan,
					   int64 cap, GpudsTids *tids)
{
	return gpuds_cuda_scan_tids(tree, serial, expected, scan, cap, tids);
}

void
gpuds_device_free_tids(GpudsTids *tids)
{
	gpuds_staging_give(&tids->span);
}

bool
gpuds_device_drop(GpudsDeviceTree *tree)
{
	if (tree->kind == GPUDS_ON_CUDA)
		return gpuds_cuda_drop(tree);
	gpuds_arena_drop(tree);
	return true;
}

size_t
gpuds_device_bytes(GpudsDeviceTree *tree)
{
	if (tree->kind == GPUDS_ON_CUDA)
		return gpuds_device_usable(tree) ? pg_atomic_read_u64(&tree->cuda.bytes) : 0;
	return arena_space_bytes(&tree->tree.space);
}

uint64
gpuds_device_entries(GpudsDeviceTree *tree)
{
	if (tree->kind == GPUDS_ON_CUDA)
		return pg_atomic_read_u64(&tree->cuda.entries);
	return cpu_btree_entries(&tree->tree);
}

GpudsDeviceVerdict
gpuds_device_verify(GpudsDeviceTree *tree, char *why, size_t whylen)
{
	if (tree->kind == GPUDS_ON_CUDA)
		return gpuds_cuda_verify(tree, why, whylen);
	return gpuds_arena_verify(tree, why, whylen) ? GPUDS_TREE_GOOD : GPUDS_TREE_DAMAGED;
}
