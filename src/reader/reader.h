/*-------------------------------------------------------------------------
 *
 * reader.h
 *	  Entries of a scan in batches, for plan nodes and functions: fetched, counted,
 *	  aggregated, or as TIDs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_READER_H
#define GPUDS_READER_H

#include "access/genam.h"
#include "access/tableam.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"

#include "index/index.h"
#include "key/near.h"
#include "key/shapes.h"
#include "mirror/mirror.h"

/* open.c */
extern bool gpuds_is_ours(Relation rel);
extern bool gpuds_is_our_method(Oid method);
extern void gpuds_check_is_index(Oid indexid);
extern Relation gpuds_open_index(Oid indexid, Relation *heap);
extern Relation gpuds_open_for_node(EState *estate, Index relid, Oid indexid, int eflags, Relation *index);
extern IndexScanDesc gpuds_begin_scan(Relation heap, Relation index, Snapshot snapshot, int nkeys,
									  bool reads_only);
extern TableScanDesc gpuds_begin_table_scan(Relation heap, Snapshot snapshot);

/* privileges.c */
extern void gpuds_check_execute(const void *expr);

/* Entries that a scan has given; they last until the next batch. */
typedef struct GpudsScanBatch
{
	const GpudsEntry *entries; /* in order */
	int64 n;
	bool from_mirror; /* they are not of the journal */
	GpudsKillMark kill_mark;
} GpudsScanBatch;

/*
 * What a scan has done since it was begun, rescans included.  It counts batches, probes, what answered
 * them, and the device's work; the node or function that reads its entries counts the rest.
 */
typedef struct GpudsScanCounters
{
	uint32 answered_by; /* bits of GpudsAnsweredBy, and of the journal */
	uint64 scans;       /* barriers passed */
	uint64 calls;       /* of a device, or of the journal, that answered ... */
	uint64 entries;     /* ... with so many entries, or counted them */
	GpudsMirrorNotes notes;
	uint64 batches; /* of probes */
	uint64 probes;
	uint64 matches;     /* entries that were looked at: ... */
	uint64 all_visible; /* ... the visibility map vouched for the row */
	uint64 fetches;     /* ... the row was looked up in the heap */
	uint64 page_states; /* pages whose state said what is seen of them */
	uint64 bus_bytes;   /* of probes on a CUDA device, and the time they took there */
	uint64 device_ns;
} GpudsScanCounters;

#define GpudsAnsweredBy(kind) (1u << (kind))
#define GPUDS_ANSWERED_BY_JOURNAL GpudsAnsweredBy(GPUDS_DEVICE_KINDS)

/* A bit more if it was a device of several cards. */
#define GpudsAnsweredByCards(cards) ((cards) *GpudsAnsweredBy(GPUDS_DEVICE_KINDS + 1))

extern GpudsScanCounters *gpuds_scan_counters(IndexScanDesc scan);
extern void gpuds_scan_note_matches(IndexScanDesc scan, int64 n, int64 all_visible);

extern bool gpuds_scan_is_exact(IndexScanDesc scan);
extern void gpuds_scan_set_probes(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries,
								  int64 n);
extern void gpuds_scan_set_shapes(IndexScanDesc scan, const GpudsKeyLayout *layout, GpudsShapes *shapes);
extern void gpuds_scan_set_near(IndexScanDesc scan, const GpudsKeyLayout *layout, const GpudsNear *near);
extern bool gpuds_scan_may_test_membership(IndexScanDesc scan, int64 n, int64 weight);
extern void gpuds_scan_begin_membership(IndexScanDesc scan, const GpudsKeyProbe *probe,
										const GpudsEntry *entries, int64 n, int64 weight);
extern uint64 *gpuds_scan_alloc_points(IndexScanDesc scan, int64 n);
extern void gpuds_scan_begin_points(IndexScanDesc scan, const GpudsKeyProbe *probe, uint64 *points, int64 n,
									int64 weight);
extern void gpuds_scan_begin_batches(IndexScanDesc scan, int64 weight);
extern double gpuds_scan_begin_rows(IndexScanDesc scan, double expected);
extern double gpuds_scan_begin_sums(IndexScanDesc scan, double expected);
extern void gpuds_scan_begin_skip(IndexScanDesc scan, double expected, bool forward);
extern int64 gpuds_scan_rest(IndexScanDesc scan, int64 most, GpudsInterval *intervals, bool *aggregates);
extern bool gpuds_scan_has_all(IndexScanDesc scan);
extern const GpudsEntry *gpuds_scan_current(IndexScanDesc scan);
extern void gpuds_scan_move_to(IndexScanDesc scan, const GpudsEntry *entry, int64 n);
extern void gpuds_scan_end_skip(IndexScanDesc scan);
extern bool gpuds_scan_has_more(IndexScanDesc scan);
extern void gpuds_scan_next_batch(IndexScanDesc scan, int64 most, GpudsScanBatch *batch);
extern void gpuds_scan_kill(IndexScanDesc scan, const GpudsEntry *entries, int n);
extern bool gpuds_scan_counts(IndexScanDesc scan);
/* Entries that a device counts, adds up or gives in the time that it finds a key. */
#define GPUDS_ENTRIES_OF_KEY 16

extern bool gpuds_scan_joins(IndexScanDesc scan);
extern bool gpuds_scan_aggregates(IndexScanDesc scan);
extern int64 gpuds_scan_mirror_entries(IndexScanDesc scan);
extern pg_atomic_uint64 *gpuds_scan_followed(IndexScanDesc scan);
extern bool gpuds_scan_may_be_on_gpu(IndexScanDesc scan);
extern bool gpuds_scan_is_on_gpu(IndexScanDesc scan);
extern bool gpuds_scan_keeps_graph(IndexScanDesc scan, bool both, GpudsDeviceGraph *graph);
extern bool gpuds_scan_copy_side(IndexScanDesc scan, const GpudsFile *file, GpudsCountSide *side);
extern bool gpuds_scan_count_rest(IndexScanDesc scan, const GpudsCountSpec *spec, GpudsCounted *counted);
extern int64 gpuds_scan_all_intervals(IndexScanDesc scan, int64 most, GpudsInterval *intervals);
extern bool gpuds_scan_count_intervals(IndexScanDesc scan, const GpudsInterval *intervals, int64 n,
									   const GpudsCountSpec *spec, GpudsCounted *counted);
extern GpudsKillMark gpuds_scan_kill_mark(IndexScanDesc scan);
extern void gpuds_scan_skip_rest(IndexScanDesc scan, int64 n);
extern void gpuds_scan_skip_to(IndexScanDesc scan, const GpudsScan *rest, int64 n);

/* TIDs that a device is asked for first if they are those of a range, and how many times as many then. */
#define GPUDS_FIRST_TIDS (32 * 1024)
#define GPUDS_TIDS_GROWTH 4

extern void gpuds_scan_begin_tids(IndexScanDesc scan, int64 most);
extern bool gpuds_scan_in_order(IndexScanDesc scan);
extern void gpuds_scan_put_in_order(IndexScanDesc scan);
extern int64 gpuds_scan_turn(IndexScanDesc scan);
extern int64 gpuds_scan_intervals(IndexScanDesc scan);
extern bool gpuds_scan_gives_tids(IndexScanDesc scan);
extern bool gpuds_scan_delta_tids(IndexScanDesc scan, uint64 **tids, int64 *n);
extern int64 gpuds_scan_next_tids(IndexScanDesc scan, uint64 *tids, int64 most);

/* scan_counters.c */
extern void gpuds_counters_add(GpudsScanCounters *counters, const GpudsScanCounters *others);
extern void gpuds_counters_devices(const GpudsScanCounters *counters, StringInfo names);
extern List *gpuds_counters_without(const GpudsScanCounters *counters);

/* row_count.c */
extern int64 gpuds_scan_count(IndexScanDesc scan, double expected, int64 *fetches);

/* row_skip.c */
/* Rows that are not worth counting: the caller of gpuds_scan_skip has them one by one. */
#define GPUDS_SKIP_FEW 64

extern int64 gpuds_scan_skip(IndexScanDesc scan, bool forward, int64 n, int64 *fetches);

/* row_rank.c */

/* One of the rows of an interval that a snapshot sees. */
typedef struct GpudsRowRank
{
	GpudsInterval interval;
	int64 rows;       /* of the interval */
	int64 rank;       /* from 0 on, below that */
	bool found;       /* else who knows? */
	GpudsEntry entry; /* the row's, if it is found */
} GpudsRowRank;

extern int64 gpuds_scan_rank(IndexScanDesc scan, double expected, GpudsRowRank *rows, int64 n);
extern bool gpuds_scan_count_by_rank(IndexScanDesc scan, const GpudsInterval *intervals, int64 n,
									 int64 *entries);
extern bool gpuds_scan_find_rank(IndexScanDesc scan, const GpudsInterval *interval, int64 rank,
								 GpudsEntry *entry);

/* merge_skip.c */
/* The same for gpuds_scan_skip_merged. */
#define GPUDS_SKIP_FEW_MERGED 2048

extern int64 gpuds_scan_skip_merged(IndexScanDesc *scans, int n, int ncolumns, bool forward, int64 rows,
									int64 *fetches);

/* index_only.c */
typedef struct GpudsIndexOnly GpudsIndexOnly;
extern bool gpuds_can_return(Relation index, int column);
extern void gpuds_index_only_prepare(IndexScanDesc scan);
extern bool gpuds_index_only_sees(GpudsIndexOnly *only, IndexScanDesc scan, bool from_mirror, bool *dead);
extern void gpuds_index_only_return(GpudsIndexOnly *only, IndexScanDesc scan, const GpudsKeyLayout *layout,
									const GpudsEntry *entry, bool seen);
extern void gpuds_index_only_reset(GpudsIndexOnly *only);
extern void gpuds_index_only_end(GpudsIndexOnly *only);

#endif /* GPUDS_READER_H */
