/*-------------------------------------------------------------------------
 *
 * btree.h
 *	  Copy-on-write B+tree over GpudsEntry, changed in batches.
 *
 * Readers pin a version (pins.h), take a view of the tree and run over memory
 * that nobody changes.  One process at a time builds, changes or frees (the
 * caller holds a lock); what it does becomes visible in one step.
 *
 *	  btree_node.h		types, layout, search in a node
 *	  btree_probe.h		cpu_btree_view, cpu_btree_scan, cpu_btree_count
 *	  btree_build.h		cpu_btree_init, cpu_btree_build_*
 *	  btree_apply.h		cpu_btree_apply, cpu_btree_reclaim, cpu_btree_withdraw, cpu_btree_release
 *	  btree_verify.h	cpu_btree_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef CPU_BTREE_H
#define CPU_BTREE_H

#include "kernels/cpu/arena.h"
#include "kernels/core/entry.h"
#include "kernels/core/pins.h"

#include "kernels/btree/cpu_node.h"
#include "kernels/btree/cpu_probe.h"
#include "kernels/btree/cpu_build.h"
#include "kernels/btree/cpu_apply.h"
#include "kernels/btree/cpu_verify.h"

#endif /* CPU_BTREE_H */
