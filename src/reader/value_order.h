/*-------------------------------------------------------------------------
 *
 * value_order.h
 *	  The order of an index scan's rows where entries do not tell it.
 *
 * Core relies on the order in which a scan of an ordered index gives rows.  Entries of texts that are longer
 * than their codes come in runs (key/text.h).  A run of two entries or more is read to its end, its rows are
 * sorted by their values (value_run.h), and the entries are given in that order.  A scan does so unless
 *
 *	  -	each text is compared with one constant by equality: all rows that pass have the same values;
 *	  - the snapshot is not an MVCC snapshot: whoever has one does not rely on the order;
 *	  - rows are made of entries: a text is never returned, and so no order by it is wanted.
 *
 *	  R1	While the scan stands in a run, the cursor's chunk is what follows the run in the direction in
 *			which it was read (aligned), or anything else.
 *	  R2	Behind a run, the scan goes on by value, from the entry that the index has last in the scan's
 *			direction.  So it may turn round, and stand in a run that was read long ago.
 *	  R3	The snapshot sees the same rows of a run whenever it is read.  So two runs are kept: the one
 *			that a mark is in, and another one, as a merge join goes back and forth between neighbours.
 *	  R4	A run is given as a whole, from one end to the other, be it of one entry only.  Entries that come
 *			to it later are passed over where the scan goes on by value: the snapshot sees none of their rows.
 *
 * In a parallel scan one participant reads all (am/index_scan.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_VALUE_ORDER_H
#define GPUDS_VALUE_ORDER_H

#include "reader/cursor.h"

/* Moves a cursor to its next entry that passes its filter; false: there is none. */
typedef bool (*GpudsNextEntry)(IndexScanDesc scan, GpudsCursor *cursor);

extern bool gpuds_value_order_is_needed(IndexScanDesc scan);
extern void gpuds_value_order_restart(IndexScanDesc scan);
extern bool gpuds_value_order_in_run(const GpudsCursor *cursor);
extern bool gpuds_value_order_next(IndexScanDesc scan, bool forward, GpudsNextEntry next);
extern void gpuds_value_order_mark(GpudsCursor *cursor);
extern bool gpuds_value_order_restore(GpudsCursor *cursor);
extern void gpuds_value_order_end(GpudsCursor *cursor);

#endif /* GPUDS_VALUE_ORDER_H */
