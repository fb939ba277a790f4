/*-------------------------------------------------------------------------
 *
 * btree.h
 *	  Copy-on-write B+tree over GkEntry, changed in batches.   (API contract;
 *	  the kernels room fills it in)
 *
 *-------------------------------------------------------------------------
 */
#ifndef GK_BTREE_H
#define GK_BTREE_H

#include "kernels/arena.h"
#include "kernels/gk.h"
#include "kernels/pins.h"

/*
 * arena.h: memory that many trees share, mapped at one address in every process.
 *	 GkArena			header at the start of the memory; lock-free chunk stack
 *	 GK_CHUNK_BYTES		65536; GK_UNIT_BYTES 64; a GkRef is a 32-bit unit index, 0 = none
 *	 void gk_arena_init(GkArena *arena, size_t bytes)    bytes include the header; touches little
 *	 size_t gk_arena_used(const GkArena *), gk_arena_size(const GkArena *)   bytes
 *	 GkSpace			one tree's chunks, bump pointer, free lists by size class
 *	 GkRef gk_alloc(GkArena *, GkSpace *, int units)     0: out of memory
 *	 void gk_free(GkArena *, GkSpace *, GkRef, int units)
 *	 void gk_space_init(GkSpace *), gk_space_release(GkArena *, GkSpace *)    (all chunks go back)
 *	 size_t gk_space_bytes(const GkSpace *)
 *
 * pins.h: who still reads which version.
 *	 GkPinSlot			64 bytes, one a reader thread or backend
 *	 uint64_t gk_pin(GkPinSlot *slot, uint64_t owner, const uint64_t *version)
 *	 void gk_unpin(GkPinSlot *slot)
 *	 uint64_t gk_oldest_pin(const GkPinSlot *slots, int n, uint64_t owner)   UINT64_MAX: none
 *
 * The tree.  Position-independent, lives in shared memory, zero is not valid.
 *
 *	 void gbt_init(GbtTree *tree, int nwords)             empty, version 1, no memory held
 *	 bool gbt_view(const GkArena *, const GbtTree *, GbtView *view)
 *			call with a pin held on &tree->version; false: the tree was withdrawn
 *	 bulk build, streaming, entries strictly ascending over all calls:
 *	   GkStatus gbt_build_begin(GkArena *, GbtTree *, GbtBuild *, int fill_percent)
 *	   GkStatus gbt_build_add(GbtBuild *, const GkEntry *, int64_t n)
 *	   GkStatus gbt_build_finish(GbtBuild *)              publishes
 *	   void gbt_build_cancel(GbtBuild *)                   (also after GK_NO_MEMORY) gives everything back
 *	 GkStatus gbt_apply(GkArena *, GbtTree *, const GkOp *ops, int64_t n, int64_t *inserted, int64_t *deleted)
 *			ops strictly ascending by entry; inserting what is there and deleting what is not are no-ops;
 *			builds new nodes along touched paths, publishes a new version, queues replaced nodes;
 *			GK_NO_MEMORY: the tree is as it was and the new nodes are given back
 *	 void gbt_reclaim(GkArena *, GbtTree *, uint64_t oldest_pin)    frees nodes no pin can reach
 *	 void gbt_withdraw(GbtTree *)     publishes "nothing here": later gbt_view says false.  After the
 *			last older pin is gone gbt_release(GkArena *, GbtTree *) gives all memory back.
 *	 int64_t gbt_scan(const GbtView *, GkScan *, bool forward, GkEntry *out, int64_t cap)
 *			next entries in order; fewer than cap: the scan is at its end
 *	 uint64_t gbt_count(const GbtView *, const GkInterval *, int64_t n)     by subtree counts
 *	 bool gbt_verify(const GkArena *, const GbtTree *, char *why, size_t whylen)
 *			order, occupancy, counts, reachability, no node leaked or used twice
 *
 * sort.h:
 *	 void gk_sort_entries(GkEntry *a, GkEntry *scratch, int64_t n)
 *	 void gk_sort_ops(GkOp *a, GkOp *scratch, int64_t n)                    by (entry, order)
 *	 int64_t gk_unique_entries(GkEntry *a, int64_t n)
 *	 int64_t gk_last_ops(GkOp *a, int64_t n)          of equal entries keep the highest order
 *	 void gk_sort_u64(uint64_t *a, uint64_t *scratch, int64_t n)
 */
#endif							/* GK_BTREE_H */
