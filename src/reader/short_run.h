/*-------------------------------------------------------------------------
 *
 * short_run.h
 *	  The rows of a short run of texts, in the order of their values, in memory.
 *
 * Most runs have a few rows, for which PostgreSQL's sort would take longer than their pages.  So their texts
 * are copied side by side.  The texts of a run compare as bytes (key/text.h).  Rows of one text are in the
 * order of their entries, which have the columns behind the text; so none of these may be a text.  That is
 * the order that value_run.c has for longer runs, too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_SHORT_RUN_H
#define GPUDS_SHORT_RUN_H

#include "key/key.h"

/* Rows, and bytes of texts, of a short run at most. */
#define GPUDS_SHORT_ROWS 256
#define GPUDS_SHORT_BYTES (32 * 1024)

typedef struct GpudsShortRun GpudsShortRun;

extern GpudsShortRun *gpuds_short_run_begin(const GpudsKeyColumn *column);
extern void gpuds_short_run_clear(GpudsShortRun *run);
extern bool gpuds_short_run_add(GpudsShortRun *run, const GpudsEntry *entry, Datum value);
extern void gpuds_short_run_sort(GpudsShortRun *run);
extern void gpuds_short_run_rewind(GpudsShortRun *run, bool forward);
extern bool gpuds_short_run_next(GpudsShortRun *run, bool forward, GpudsEntry *entry);
extern void gpuds_short_run_mark(GpudsShortRun *run);
extern void gpuds_short_run_restore(GpudsShortRun *run);

#endif /* GPUDS_SHORT_RUN_H */
