/*-------------------------------------------------------------------------
 *
 * btree_change_gpu.h
 *	  What the thread that changes trees in device memory calls.
 *
 * One thread at a time uses a GpuChange and the trees that it changes; readers
 * are beside it (kernels/runtime/gpu_versioned.h).  All calls return when the device has done what was
 * asked.
 *
 *	  btree_build_gpu.h	gpu_btree_load_begin/add/end
 *	  btree_apply_gpu.h	gpu_btree_change_open, gpu_btree_apply
 *	  btree_compact_gpu.h	gpu_btree_compact
 *	  btree_verify_gpu.h	gpu_btree_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_CHANGE_GPU_H
#define BTREE_CHANGE_GPU_H

#include "kernels/btree/btree_tree_gpu.h"
#include "kernels/btree/btree_build_gpu.h"
#include "kernels/btree/btree_apply_gpu.h"
#include "kernels/btree/btree_compact_gpu.h"
#include "kernels/btree/btree_verify_gpu.h"

#endif /* BTREE_CHANGE_GPU_H */
