/*-------------------------------------------------------------------------
 *
 * change.h
 *	  What the thread of the engine that changes trees calls.
 *
 * One thread at a time uses a GpuChange and the trees that it changes; readers
 * are beside it: they pin the tree's version (kernels/core/pins.h, gpu_tree_version),
 * take the view, and may use what it shows until they give up the pin.
 * All calls return when the device has done what was asked.
 *
 *	  tree.h	GpuTree, gpu_change_close, gpu_tree_view
 *	  load.h	gpu_tree_load_begin/add/end/cancel, gpu_tree_withdraw/drop
 *	  apply.h	gpu_change_open, gpu_tree_apply, gpu_tree_reclaim
 *	  verify.h	gpu_tree_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_CHANGE_GPU_H
#define BTREE_CHANGE_GPU_H

#include "kernels/btree/tree_gpu.h"
#include "kernels/btree/build_gpu.h"
#include "kernels/btree/apply_gpu.h"
#include "kernels/btree/verify_gpu.h"

#endif /* BTREE_CHANGE_GPU_H */
