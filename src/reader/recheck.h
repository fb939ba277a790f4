/*-------------------------------------------------------------------------
 *
 * recheck.h
 *	  The values of rows that an index has found by hashes.
 *
 * Where codes are hashes, an index gives candidates.  The executor would look at the condition again for each
 * of them (xs_recheck).  That is right for one constant.  With an array that the planner does not know it is
 * a search through the whole array for each row, so values are looked up among the elements here
 * (elements.h).
 *
 * With a dirty snapshot core looks at the conditions of unique and exclusion constraints again, but takes a
 * NULL for no match.  A subscription that finds a row by its replica identity looks at nothing again.  So
 * with such a snapshot all conditions are looked at here where the index is unique or a NULL is asked for
 * (all).
 *
 * It needs the rows that a snapshot sees: the scan visits the heap for them (gpuds_recheck_tid), or its
 * caller has them, one (gpuds_recheck_row) or those of a page, which wait for memory together
 * (gpuds_recheck_page).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_RECHECK_H
#define GPUDS_RECHECK_H

#include "access/skey.h"
#include "executor/tuptable.h"
#include "storage/bufpage.h"

#include "reader/elements.h"

typedef struct GpudsRecheck GpudsRecheck;

extern bool gpuds_recheck_is_needed(const GpudsKeyLayout *layout, const ScanKeyData *keys, int nkeys);
extern bool gpuds_recheck_can_all(Relation index, const ScanKeyData *keys, int nkeys);
extern GpudsRecheck *gpuds_recheck_begin(Relation index, const GpudsKeyLayout *layout,
										 const ScanKeyData *keys, int nkeys, bool all);
extern bool gpuds_recheck_row(GpudsRecheck *recheck, TupleTableSlot *slot);
extern bool gpuds_recheck_takes_pages(const GpudsRecheck *recheck);
extern int gpuds_recheck_page(GpudsRecheck *recheck, TupleDesc desc, Page page, OffsetNumber *rows, int n);
extern void gpuds_recheck_find(GpudsRecheck *recheck, TupleTableSlot *slot, bool once,
							   GpudsElementFound found, void *to);
extern bool gpuds_recheck_tid(GpudsRecheck *recheck, Snapshot snapshot, uint64 tid);
extern void gpuds_recheck_unpin(GpudsRecheck *recheck);
extern void gpuds_recheck_end(GpudsRecheck *recheck);

#endif /* GPUDS_RECHECK_H */
