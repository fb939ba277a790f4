/*-------------------------------------------------------------------------
 *
 * change_gpu.h
 *	  What the thread that changes trees in device memory calls.
 *
 * One thread at a time uses a GpuChange and the trees that it changes; readers
 * are beside it (tree_gpu.h).  All calls return when the device has done what was
 * asked.
 *
 *	  tree_gpu.h	GpuTree, gpu_tree_view, gpu_tree_reclaim/withdraw/drop
 *	  build_gpu.h	gpu_tree_load_begin/add/end
 *	  apply_gpu.h	gpu_tree_change_open, gpu_tree_apply
 *	  compact_gpu.h	gpu_tree_compact
 *	  verify_gpu.h	gpu_tree_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_CHANGE_GPU_H
#define BTREE_CHANGE_GPU_H

#include "kernels/btree/tree_gpu.h"
#include "kernels/btree/build_gpu.h"
#include "kernels/btree/apply_gpu.h"
#include "kernels/btree/compact_gpu.h"
#include "kernels/btree/verify_gpu.h"

#endif /* BTREE_CHANGE_GPU_H */
