/*-------------------------------------------------------------------------
 *
 * device.cu
 *	  Everything that runs on a GPU compiles for one: a lookup, a range and a
 *	  count a thread, by the functions that the CPU uses.
 *
 *-------------------------------------------------------------------------
 */
#include "kernels/btree/cpu.h"
#include "kernels/core/sort.h"

/* One entry for each interval; found[i] is 0 or 1. */
__global__ void
lookup(CpuBtreeView view, const GpudsInterval *intervals, int64_t n, GpudsEntry *out, int64_t *found)
{
	int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
	{
		GpudsScan scan = { intervals + i, 1, 0, false, { 0, 0, 0 }, NULL };

		found[i] = cpu_btree_scan(&view, &scan, true, out + i, 1);
	}
}

/* Up to cap entries of each interval, in the direction asked for. */
__global__ void
range(CpuBtreeView view, const GpudsInterval *intervals, int64_t n, bool forward, GpudsEntry *out, int64_t cap,
	  int64_t *found)
{
	int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
	{
		GpudsScan scan = { intervals + i, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };

		found[i] = cpu_btree_scan(&view, &scan, forward, out + i * cap, cap);
	}
}

/* How many entries each interval holds. */
__global__ void
count(CpuBtreeView view, const GpudsInterval *intervals, int64_t n, uint64_t *counts)
{
	int64_t i = (int64_t) blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		counts[i] = cpu_btree_count(&view, intervals + i, 1);
}

/* The host's part of the headers is used too, so that the compiler looks at all of it. */
bool
host_part(Arena *arena, CpuBtree *tree, PinSlot *slot, GpudsEntry *entries, GpudsOp *ops, int64_t n)
{
	CpuBtreeBuild build;
	CpuBtreeView view;
	char why[100];
	int64_t inserted, deleted;
	bool ok;

	sort_entries(entries, entries + n, n);
	sort_ops(ops, ops + n, n);
	sort_u64(&entries->w0, &entries->w0 + n, n);
	cpu_btree_init(tree, 1);
	ok = cpu_btree_build_begin(arena, tree, &build, 90) == KERNEL_OK &&
		 cpu_btree_build_add(&build, entries, sort_unique_entries(entries, n)) == KERNEL_OK &&
		 cpu_btree_build_finish(&build) == KERNEL_OK;
	if (!ok)
		cpu_btree_build_cancel(&build);
	ok = ok && cpu_btree_apply(arena, tree, ops, sort_last_ops(ops, n), &inserted, &deleted) == KERNEL_OK;
	pin_version(slot, 1, &tree->version);
	ok = ok && cpu_btree_view(arena, tree, &view) && cpu_btree_verify(arena, tree, why, sizeof(why));
	pin_release(slot);
	cpu_btree_reclaim(arena, tree, pin_oldest(slot, 1, 1));
	cpu_btree_withdraw(tree);
	cpu_btree_release(arena, tree);
	return ok && cpu_btree_entries(tree) == 0 && arena_used(arena) <= arena_size(arena);
}
