/*-------------------------------------------------------------------------
 *
 * btree.h
 *	  Copy-on-write B+tree over GkEntry, changed in batches.
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
#ifndef GK_BTREE_H
#define GK_BTREE_H

#include "kernels/arena.h"
#include "kernels/gk.h"
#include "kernels/pins.h"

#include "kernels/btree_node.h"
#include "kernels/btree_probe.h"
#include "kernels/btree_build.h"
#include "kernels/btree_apply.h"
#include "kernels/btree_verify.h"

#endif /* GK_BTREE_H */
