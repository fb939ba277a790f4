/*-------------------------------------------------------------------------
 *
 * admin.h
 *	  What the administrative functions share: their target, and the journal's
 *	  entries as a sorted stream.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_ADMIN_H
#define GPUDS_ADMIN_H

#include "access/tableam.h"

#include "gpuds.h"
#include "journal/journal.h"
#include "mirror/mirror.h"

/* index_argument.c */
extern Relation gpuds_admin_open(Oid indexid, Relation *heap);
extern void gpuds_admin_close(Relation index, Relation heap);
extern Relation gpuds_admin_open_table(Oid relid, const List *names, AttrNumber *columns);
extern bool gpuds_admin_has_file(Relation index);
extern bool gpuds_admin_may_see(Oid indexid);

/* check_journal.c */
extern void gpuds_check_journal(Relation index, const GpudsKeyLayout *layout);

/* check_mirror.c */
extern void gpuds_check_mirror(Relation heap, const GpudsMirrorSource *source);

/* check_heap.c */
extern void gpuds_check_scan(Relation heap, Relation index, Snapshot snapshot, IndexBuildCallback take,
							 void *arg);
extern void gpuds_check_heap(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot);

/* check_entries.c */
extern void gpuds_check_entries(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot);

/* check_hashes.c */
extern void gpuds_check_hashes(Relation heap, const GpudsMirrorSource *source, Snapshot snapshot);

/*
 * The entries that a journal holds, ascending (entries.c).
 *
 * A doubtful entry has been marked dead by VACUUM, but its tombstone lies behind
 * the stream's end: a mirror of that position may have it or not.
 */
typedef struct GpudsEntries GpudsEntries;

typedef enum GpudsEntriesResult
{
	GPUDS_ENTRIES_NEXT,
	GPUDS_ENTRIES_END,
	GPUDS_ENTRIES_STALE /* a compaction came, or the epoch was raised: start again */
} GpudsEntriesResult;

extern GpudsEntries *gpuds_entries_open(Relation index, const GpudsJournalPos *end);
extern GpudsEntriesResult gpuds_entries_next(GpudsEntries *stream, GpudsEntry *entry, bool *doubtful);
extern void gpuds_entries_close(GpudsEntries *stream);

#endif /* GPUDS_ADMIN_H */
