/*-------------------------------------------------------------------------
 *
 * value_run.h
 *	  A run of entries (key/text.h), put in the order of the values of their rows.
 *
 * The rows of a run's entries are looked up with the scan's snapshot, some at a time in the order of the
 * heap.  Those that it sees are sorted: by the text that the run is of, then by the columns behind it, of
 * which texts are compared as values and others by their codes, then by their entries.  PostgreSQL sorts
 * them, in work_mem and temporary files, unless they are few (short_run.h).  Rows that the snapshot does not
 * see are left out: the executor would not get them either.  So are those whose text is not in the range that
 * the scan asks for, which the executor would reject.
 *
 * A run can be read in both directions, and have a mark.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_VALUE_RUN_H
#define GPUDS_VALUE_RUN_H

#include "access/relscan.h"

#include "key/key.h"

typedef struct GpudsRunRows GpudsRunRows;
typedef struct GpudsValueRun GpudsValueRun;

extern GpudsRunRows *gpuds_run_rows_begin(IndexScanDesc scan, const GpudsKeyLayout *layout);
extern void gpuds_run_rows_end(GpudsRunRows *rows);

extern GpudsValueRun *gpuds_value_run_begin(GpudsRunRows *rows, int column);
extern void gpuds_value_run_clear(GpudsValueRun *run, const GpudsEntry *entry);
extern int gpuds_value_run_column(const GpudsValueRun *run);
extern bool gpuds_value_run_has(const GpudsValueRun *run, const GpudsEntry *entry);
extern void gpuds_value_run_add(GpudsValueRun *run, const GpudsEntry *entry);
extern void gpuds_value_run_sort(GpudsValueRun *run);
extern void gpuds_value_run_rewind(GpudsValueRun *run, bool forward);
extern bool gpuds_value_run_next(GpudsValueRun *run, bool forward, GpudsEntry *entry);
extern void gpuds_value_run_mark(GpudsValueRun *run);
extern void gpuds_value_run_restore(GpudsValueRun *run);
extern GpudsEntry gpuds_value_run_end_of(const GpudsValueRun *run, bool forward);
extern void gpuds_value_run_end(GpudsValueRun *run);

#endif /* GPUDS_VALUE_RUN_H */
