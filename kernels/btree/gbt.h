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
 *	  btree_probe.h		gbt_view, gbt_scan, gbt_count
 *	  btree_build.h		gbt_init, gbt_build_*
 *	  btree_apply.h		gbt_apply, gbt_reclaim, gbt_withdraw, gbt_release
 *	  btree_verify.h	gbt_verify
 *
 *-------------------------------------------------------------------------
 */
#ifndef GBT_H
#define GBT_H

#include "kernels/cpu/arena.h"
#include "kernels/core/entry.h"
#include "kernels/core/pins.h"

#include "kernels/btree/gbt_node.h"
#include "kernels/btree/gbt_probe.h"
#include "kernels/btree/gbt_build.h"
#include "kernels/btree/gbt_apply.h"
#include "kernels/btree/gbt_verify.h"

#endif /* GBT_H */
