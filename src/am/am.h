/*-------------------------------------------------------------------------
 *
 * am.h
 *	  What core calls of an index access method, and what the planner is told.
 *
 * Every access method of gpuds shares all files of this directory; the rows of methods.h hold
 * what differs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_AM_H
#define GPUDS_AM_H

#include "access/amapi.h"
#include "access/genam.h"
#include "nodes/pathnodes.h"

#include "index/index.h"
#include "mirror/mirror.h"

/* index_scan.c */
extern IndexScanDesc gpuds_beginscan(Relation index, int nkeys, int norderbys);
extern void gpuds_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool gpuds_gettuple(IndexScanDesc scan, ScanDirection dir);
extern int64 gpuds_getbitmap(IndexScanDesc scan, TIDBitmap *tbm);
extern void gpuds_markpos(IndexScanDesc scan);
extern void gpuds_restrpos(IndexScanDesc scan);
extern void gpuds_endscan(IndexScanDesc scan);

/* vacuum.c */
extern IndexBulkDeleteResult *gpuds_bulk_delete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												IndexBulkDeleteCallback callback, void *state);
extern IndexBulkDeleteResult *gpuds_vacuum_cleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);

/* cost.c */
extern Cost gpuds_scan_start_cost(const IndexOptInfo *index, double keys);
extern bool gpuds_scan_is_remote(const IndexOptInfo *index, double rows);
extern double gpuds_scan_entries(PlannerInfo *root, IndexPath *path, int *nfilters);
extern double gpuds_scan_correlation(PlannerInfo *root, IndexOptInfo *index);
extern bool gpuds_scan_uses_map(const IndexOptInfo *index);
extern bool gpuds_scan_uses_states(const IndexOptInfo *index);
extern Cost gpuds_scan_look_up_cost(double rows);
extern void gpuds_scan_layout(const IndexOptInfo *index, GpudsKeyLayout *layout);
extern int gpuds_scan_side_bytes(const IndexOptInfo *index, const List *columns);
extern Cost gpuds_scan_side_cost(PlannerInfo *root, const IndexOptInfo *index, int bytes, double rows,
								 double visited, double correlation);
extern Cost gpuds_scan_added_side_cost(PlannerInfo *root, const IndexOptInfo *index, int bytes, double rows,
									   double visited, double correlation);
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
	AggColumn agg_column; /* of codes */
	uint64 least;         /* codes */
	uint64 greatest;
	GpudsEntry first; /* some entry that has a value */
} GpudsColumnEnds;

extern bool gpuds_estimate_ends(GpudsEstimate *estimate, GpudsColumnEnds *ends);
extern double gpuds_estimate_between(GpudsEstimate *estimate, const GpudsColumnEnds *ends, uint64 from,
									 uint64 to);
extern void gpuds_estimate_end(GpudsEstimate *estimate);

/* validate.c */
extern bool gpuds_validate(Oid opclassoid);

#endif /* GPUDS_AM_H */
