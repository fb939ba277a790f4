/*-------------------------------------------------------------------------
 *
 * am.h
 *	  The index access methods' shared declarations.
 *
 * Every access method of gpuds shares all files of this folder; handler.c
 * holds what differs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_AM_H
#define GPUDS_AM_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/tableam.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/resowner.h"

#include "gpuds.h"
#include "key/key.h"
#include "mirror/mirror.h"

/*
 * Strategy numbers are those of core's access methods, so that core's assumptions about them hold: btree's
 * where there is an order, else hash's.
 */
#define GPUDS_NSTRATEGIES 5
#define GPUDS_NHASH_STRATEGIES 1

#define GPUDS_DEFAULT_FILLFACTOR 90
#define GPUDS_MIN_FILLFACTOR 50

/* reloptions of an index */
typedef struct GpudsOptions
{
	int32 vl_len_;  /* varlena header (do not touch directly!) */
	int fillfactor; /* percent of a bulk-built node to fill */
} GpudsOptions;

#define GpudsGetFillfactor(index) \
	((index)->rd_options ? ((GpudsOptions *) (index)->rd_options)->fillfactor : GPUDS_DEFAULT_FILLFACTOR)

/*
 * What a backend remembers of an index in rd_amcache: derived from the catalogs
 * and from the metapage, both fixed for the life of a relation file.
 */
typedef struct GpudsIndexInfo
{
	GpudsKeyLayout layout;
	uint64 file_id; /* of the metapage */
} GpudsIndexInfo;

/*
 * While it is open, new entries may be collected in it (insert.c).  It lies on the
 * stack of the function that opens it; its fields are insert.c's.
 */
typedef struct GpudsInsertBuffer GpudsInsertBuffer;
typedef struct GpudsInsertScope
{
	struct GpudsInsertScope *outer;
	bool barred;            /* nothing is collected */
	uint64 serial;          /* names it */
	SubTransactionId subid; /* that opened it */
	ResourceOwner owner;    /* of locks and pins */
	MemoryContext context;  /* of buffers; NULL: there was none yet */
	GpudsInsertBuffer *buffers;

	/* the row whose entries came last */
	Oid row_heap; /* invalid: it is not known */
	ItemPointerData row;
	bool speculative;             /* it was */
	GpudsInsertBuffer *undecided; /* what has its entries, if it was */

	/* its page, pinned; invalid: none is */
	Buffer page;
	Oid page_heap;
	BlockNumber page_block;
	RelFileLocator page_locator;
} GpudsInsertScope;

/* info.c */
extern const GpudsIndexInfo *gpuds_index_info(Relation index);

/* size.c: what a new index takes */
typedef struct GpudsIndexSize
{
	double journal_bytes;
	double host_bytes;   /* of the structure on the CPU device */
	double device_bytes; /* and on a GPU */
} GpudsIndexSize;

extern void gpuds_index_size(double entries, double distinct, int nwords, uint8 structure,
							 GpudsIndexSize *size);

/* side_reader.c */
extern bool gpuds_side_file(Relation index, GpudsFile *file);

/* open.c */
extern bool gpuds_is_ours(Relation rel);
extern bool gpuds_is_our_method(Oid method);
extern void gpuds_check_is_index(Oid indexid);
extern Relation gpuds_open_index(Oid indexid, Relation *heap);
extern Relation gpuds_open_for_node(EState *estate, Index relid, Oid indexid, int eflags, Relation *index);
extern IndexScanDesc gpuds_begin_scan(Relation heap, Relation index, Snapshot snapshot, int nkeys);
extern TableScanDesc gpuds_begin_table_scan(Relation heap, Snapshot snapshot);

/* privileges.c */
extern void gpuds_check_execute(const void *expr);

/* build.c */
extern IndexBuildResult *gpuds_build(Relation heap, Relation index, IndexInfo *indexInfo, uint8 structure);
extern void gpuds_build_empty(Relation index, uint8 structure);
extern char *gpuds_build_phase_name(int64 phase);

/* insert.c */
extern bool gpuds_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
						 IndexUniqueCheck checkUnique, bool indexUnchanged, IndexInfo *indexInfo);
extern void gpuds_insert_flush(Relation index);
extern void gpuds_insert_flush_all(void);
extern void gpuds_insert_discard(Relation index);
extern void gpuds_insert_begin(GpudsInsertScope *scope, bool barrier);
extern void gpuds_insert_append(GpudsInsertScope *scope);
extern void gpuds_insert_end(GpudsInsertScope *scope);
extern void gpuds_insert_before_commit(SubTransactionId subid);
extern void gpuds_insert_after_end(SubTransactionId subid);

/* scan.c */
extern IndexScanDesc gpuds_beginscan(Relation index, int nkeys, int norderbys);
extern void gpuds_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool gpuds_gettuple(IndexScanDesc scan, ScanDirection dir);
extern int64 gpuds_getbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void gpuds_markpos(IndexScanDesc scan);
extern void gpuds_restrpos(IndexScanDesc scan);
extern void gpuds_endscan(IndexScanDesc scan);

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
typedef struct GpudsScanFigures
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
	uint64 bus_bytes;   /* of probes on a CUDA device, and the time they took there */
	uint64 device_ns;
} GpudsScanFigures;

#define GpudsAnsweredBy(kind) (1u << (kind))
#define GPUDS_ANSWERED_BY_JOURNAL GpudsAnsweredBy(GPUDS_DEVICE_KINDS)

extern GpudsScanFigures *gpuds_scan_figures(IndexScanDesc scan);
extern void gpuds_scan_note_matches(IndexScanDesc scan, int64 n, int64 all_visible);

extern void gpuds_scan_set_probes(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries,
								  int64 n);
extern bool gpuds_scan_may_find_hits(IndexScanDesc scan, int64 n, int64 weight);
extern void gpuds_scan_begin_hits(IndexScanDesc scan, const GpudsKeyProbe *probe, const GpudsEntry *entries,
								  int64 n, int64 weight);
extern void gpuds_scan_begin_batches(IndexScanDesc scan, int64 weight);
extern void gpuds_scan_begin_rows(IndexScanDesc scan, double expected);
extern bool gpuds_scan_has_more(IndexScanDesc scan);
extern void gpuds_scan_next_batch(IndexScanDesc scan, int64 most, GpudsScanBatch *batch);
extern bool gpuds_scan_counts(IndexScanDesc scan);
extern bool gpuds_scan_measures(IndexScanDesc scan);
extern bool gpuds_scan_count_rest(IndexScanDesc scan, const GpudsCountSpec *spec, GpudsCounted *counted);
extern bool gpuds_scan_is_interval(IndexScanDesc scan, GpudsInterval *interval);
extern bool gpuds_scan_count_intervals(IndexScanDesc scan, const GpudsInterval *intervals, int64 n,
									   const GpudsCountSpec *spec, GpudsCounted *counted);
extern GpudsKillMark gpuds_scan_kill_mark(IndexScanDesc scan);
extern void gpuds_scan_skip_rest(IndexScanDesc scan, int64 n);

/* TIDs that a device is asked for first if they are those of a range, and how many times as many then. */
#define GPUDS_FIRST_TIDS (32 * 1024)
#define GPUDS_TIDS_GROWTH 4

extern void gpuds_scan_begin_tids(IndexScanDesc scan, int64 most);
extern bool gpuds_scan_in_order(IndexScanDesc scan);
extern void gpuds_scan_put_in_order(IndexScanDesc scan);
extern int64 gpuds_scan_turn(IndexScanDesc scan);
extern int64 gpuds_scan_intervals(IndexScanDesc scan);
extern bool gpuds_scan_gives_tids(IndexScanDesc scan);
extern bool gpuds_scan_fresh_tids(IndexScanDesc scan, uint64 **tids, int64 *n);
extern int64 gpuds_scan_next_tids(IndexScanDesc scan, uint64 *tids, int64 most);

/* figures.c */
extern void gpuds_figures_add(GpudsScanFigures *figures, const GpudsScanFigures *others);
extern void gpuds_figures_devices(const GpudsScanFigures *figures, StringInfo names);
extern List *gpuds_figures_without(const GpudsScanFigures *figures);

/* count.c */
extern int64 gpuds_scan_count(IndexScanDesc scan, double expected, int64 *fetches);

/* index_only.c */
typedef struct GpudsIndexOnly GpudsIndexOnly;
extern bool gpuds_can_return(Relation index, int column);
extern GpudsIndexOnly *gpuds_index_only_begin(IndexScanDesc scan, const GpudsKeyLayout *layout);
extern void gpuds_index_only_before_barrier(GpudsIndexOnly *only);
extern bool gpuds_index_only_sees(GpudsIndexOnly *only, IndexScanDesc scan, bool from_mirror, bool *dead);
extern void gpuds_index_only_return(GpudsIndexOnly *only, IndexScanDesc scan, const GpudsKeyLayout *layout,
									const GpudsEntry *entry, bool seen);
extern void gpuds_index_only_reset(GpudsIndexOnly *only);
extern void gpuds_index_only_end(GpudsIndexOnly *only);

/* vacuum.c */
extern IndexBulkDeleteResult *gpuds_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *gpuds_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* classes.c */
extern bool gpuds_index_orders(const IndexOptInfo *index);
extern bool gpuds_index_has_equality(const IndexOptInfo *index, int column, Oid op);
extern bool gpuds_index_hashes(const IndexOptInfo *index, int column);

/* cost.c */
extern Cost gpuds_scan_start_cost(const IndexOptInfo *index, double keys);
extern double gpuds_scan_entries(PlannerInfo *root, IndexPath *path, int *nfilters);
extern double gpuds_scan_correlation(PlannerInfo *root, IndexOptInfo *index);
extern bool gpuds_scan_uses_map(const IndexOptInfo *index);
extern Cost gpuds_scan_look_up_cost(double rows);
extern int gpuds_scan_side_bytes(const IndexOptInfo *index, const List *columns);
extern Cost gpuds_scan_side_cost(PlannerInfo *root, const IndexOptInfo *index, int bytes, double rows,
								 double visited);
extern void gpuds_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup,
								Cost *total, Selectivity *selectivity, double *correlation, double *pages);

/* estimate.c: what an index itself says of its rows */
typedef struct GpudsEstimate
{
	Relation index;
	GpudsKeyLayout layout;
	GpudsPeek peek;
	double scale; /* rows that the planner expects for an entry of the structure */
} GpudsEstimate;

extern bool gpuds_estimate_begin(const IndexOptInfo *index, GpudsEstimate *estimate);
extern double gpuds_estimate_probe(GpudsEstimate *estimate, const GpudsKeyProbe *probe,
								   const GpudsEntry *key);
/* Where the first column begins and ends. */
typedef struct GpudsColumnEnds
{
	Measure measure; /* of codes */
	uint64 least;    /* codes */
	uint64 greatest;
	GpudsEntry first; /* some entry that has a value */
} GpudsColumnEnds;

extern bool gpuds_estimate_ends(GpudsEstimate *estimate, GpudsColumnEnds *ends);
extern double gpuds_estimate_between(GpudsEstimate *estimate, const GpudsColumnEnds *ends, uint64 from,
									 uint64 to);
extern void gpuds_estimate_end(GpudsEstimate *estimate);

/* options.c */
extern void gpuds_define_reloptions(void);
extern bytea *gpuds_options(Datum reloptions, bool validate);

/* validate.c */
extern bool gpuds_validate(Oid opclassoid);

#endif /* GPUDS_AM_H */
