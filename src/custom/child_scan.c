/*-------------------------------------------------------------------------
 *
 * child_scan.c
 *	  The index scan below a custom scan.
 *
 * Core has made it, as an index-only scan or as a plain one; both have the same parts.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "executor/executor.h"
#include "executor/instrument.h"

#include "custom/custom.h"
#include "index/index.h"
#include "reader/reader.h"

typedef struct Parts
{
	Relation index;
	ScanKey keys;
	int nkeys;
	IndexScanDesc *scan;
	bool waits; /* for its keys to be evaluated */
} Parts;

static Parts
parts_of(PlanState *child)
{
	Parts parts;

	if (IsA(child, IndexOnlyScanState))
	{
		IndexOnlyScanState *state = (IndexOnlyScanState *) child;

		parts.index = state->ioss_RelationDesc;
		parts.keys = state->ioss_ScanKeys;
		parts.nkeys = state->ioss_NumScanKeys;
		parts.scan = &state->ioss_ScanDesc;
		parts.waits = state->ioss_NumRuntimeKeys != 0 && !state->ioss_RuntimeKeysReady;
	}
	else
	{
		IndexScanState *state = castNode(IndexScanState, child);

		parts.index = state->iss_RelationDesc;
		parts.keys = state->iss_ScanKeys;
		parts.nkeys = state->iss_NumScanKeys;
		parts.scan = &state->iss_ScanDesc;
		parts.waits = state->iss_NumRuntimeKeys != 0 && !state->iss_RuntimeKeysReady;
	}
	return parts;
}

/*
 * The scan with its keys set, at its beginning, after gpuds_child_scan_start.  Core ends it with the state
 * below.
 */
IndexScanDesc
gpuds_child_scan_begin(PlanState *child)
{
	Parts parts = parts_of(child);

	if (*parts.scan == NULL)
	{
		*parts.scan = GpudsIndexBeginscanOf(child, parts.index, parts.nkeys);
		(*parts.scan)->xs_want_itup = IsA(child, IndexOnlyScanState);
		index_rescan(*parts.scan, parts.keys, parts.nkeys, NULL, 0);
	}
	return *parts.scan;
}

/* The same of a scan whose entries are all counted: each leads to a row that was asked for. */
static IndexScanDesc
begin_exact(PlanState *child)
{
	IndexScanDesc scan = gpuds_child_scan_begin(child);

	if (!gpuds_scan_is_exact(scan) || child->plan->qual != NIL)
		elog(ERROR, "conditions of index \"%s\" are not exact", RelationGetRelationName(scan->indexRelation));
	return scan;
}

/* The same of a scan whose entries come in the order of rows. */
static IndexScanDesc
begin_in_order(PlanState *child)
{
	IndexScanDesc scan = begin_exact(child);

	if (gpuds_index_info(scan->indexRelation)->layout.lossy)
		elog(ERROR, "entries of index \"%s\" are not in the order of rows",
			 RelationGetRelationName(scan->indexRelation));
	return scan;
}

/*
 * A scan of the same index and snapshot that is never asked for anything: to visit the heap with, where
 * another process has asked.  The caller ends it.
 */
IndexScanDesc
gpuds_child_scan_visitor(PlanState *child)
{
	return gpuds_begin_scan(((ScanState *) child)->ss_currentRelation, parts_of(child).index,
							child->state->es_snapshot, 0,
							GpudsQueryReadsOnly(child->state, ((Scan *) child->plan)->scanrelid));
}

/*
 * Another scan with the keys and the snapshot of the one below, after gpuds_child_scan_start.  The caller
 * ends it before the state below ends or gets other parameters.
 */
IndexScanDesc
gpuds_child_scan_like(PlanState *child)
{
	Parts parts = parts_of(child);
	IndexScanDesc scan = gpuds_begin_scan(((ScanState *) child)->ss_currentRelation, parts.index,
										  child->state->es_snapshot, parts.nkeys,
										  GpudsQueryReadsOnly(child->state,
															  ((Scan *) child->plan)->scanrelid));

	index_rescan(scan, parts.keys, parts.nkeys, NULL, 0);
	return scan;
}

/*
 * What looks at rows where conditions are looked up by hashes; NULL: none, or the executor does.  For one
 * execution of the state below, in the current memory context.
 */
GpudsRecheck *
gpuds_child_scan_recheck(PlanState *child)
{
	Parts parts = parts_of(child);

	if (child->chgParam != NULL || parts.waits)
		ExecReScan(child);
	return gpuds_recheck_begin(parts.index, &gpuds_index_info(parts.index)->layout, parts.keys, parts.nkeys,
							   false);
}

/* Makes what the state below has of expressions heed a change of parameters. */
void
gpuds_child_scan_refresh(PlanState *child)
{
	if (child->chgParam != NULL)
		ExecReScan(child);
}

/* For ReScan: the parameters that have changed are those of the node above. */
void
gpuds_child_scan_rescan(PlanState *child, Bitmapset *changed)
{
	if (changed != NULL)
		UpdateChangedParamSet(child, changed);
	if (child->chgParam == NULL)
		ExecReScan(child);
}

/*
 * Around work that the state below would have done: EXPLAIN shows it there.  A change of parameters
 * ends a loop, so it comes first.
 */
void
gpuds_child_scan_start(PlanState *child)
{
	if (child->chgParam != NULL || parts_of(child).waits)
		ExecReScan(child);
	if (child->instrument)
		InstrStartNode(child->instrument);
}

/*
 * Ends what gpuds_child_scan_start began.  EXPLAIN shows rows and, of an index-only scan, fetches from the
 * heap at the state below.
 */
void
gpuds_child_scan_stop(PlanState *child, int64 rows, int64 fetches)
{
	if (child->instrument == NULL)
		return;
	if (IsA(child, IndexOnlyScanState))
		child->instrument->ntuples2 += fetches;
	InstrStopNode(child->instrument, rows);
}

/* Counts the rows of the scan from its beginning, about so many, and has it begin anew. */
int64
gpuds_child_scan_count(PlanState *child, double expected)
{
	Parts parts = parts_of(child);
	IndexScanDesc scan;
	int64 fetches;
	int64 rows;

	gpuds_child_scan_start(child);
	scan = begin_exact(child);
	rows = gpuds_scan_count(scan, expected, &fetches);
	index_rescan(scan, parts.keys, parts.nkeys, NULL, 0);
	gpuds_child_scan_stop(child, 0, fetches);
	return rows;
}

static bool
goes_forward(const Plan *scan)
{
	Assert(IsA(scan, IndexOnlyScan) || IsA(scan, IndexScan));
	return !ScanDirectionIsBackward(IsA(scan, IndexOnlyScan) ? ((const IndexOnlyScan *) scan)->indexorderdir
															 : ((const IndexScan *) scan)->indexorderdir);
}

/* Is the state below an index-only scan in the index's own order? */
bool
gpuds_child_scan_is_forward(const PlanState *child)
{
	return IsA(child, IndexOnlyScanState) && goes_forward(child->plan);
}

/*
 * Moves the scan from its beginning, or from the row that the state below has given last, behind n rows or
 * some less, about all of them; returns how many.
 */
int64
gpuds_child_scan_skip(PlanState *child, int64 n)
{
	int64 fetches;
	int64 skipped;

	gpuds_child_scan_start(child);
	skipped = gpuds_scan_skip(begin_in_order(child), goes_forward(child->plan), n, &fetches);
	gpuds_child_scan_stop(child, 0, fetches);
	return skipped;
}

/* Has the scan begin anew, if it has begun, with the keys that it has. */
void
gpuds_child_scan_restart(PlanState *child)
{
	Parts parts = parts_of(child);

	if (*parts.scan != NULL)
		index_rescan(*parts.scan, parts.keys, parts.nkeys, NULL, 0);
}

/*
 * Raises an error unless n scans, which have begun or not, have the first columns of their keys in one order.
 */
void
gpuds_child_scan_check_alike(PlanState **children, int n, int ncolumns)
{
	const Relation first = parts_of(children[0]).index;

	for (int i = 1; i < n; i++)
	{
		const Relation index = parts_of(children[i]).index;

		if (goes_forward(children[i]->plan) != goes_forward(children[0]->plan) ||
			!gpuds_key_orders_alike(&gpuds_index_info(first)->layout, &gpuds_index_info(index)->layout,
									ncolumns))
			elog(ERROR, "indexes \"%s\" and \"%s\" have different orders", RelationGetRelationName(first),
				 RelationGetRelationName(index));
	}
}

/*
 * Moves n scans from their beginnings behind so many rows or some less, in the order that the first columns
 * of all keys have (gpuds_scan_skip_merged); returns how many.
 */
int64
gpuds_child_scan_skip_merged(PlanState **children, int n, int ncolumns, int64 rows)
{
	IndexScanDesc *scans = palloc(n * sizeof(IndexScanDesc));
	int64 *fetches = palloc(n * sizeof(int64));
	int64 skipped;

	for (int i = 0; i < n; i++)
	{
		gpuds_child_scan_start(children[i]);
		scans[i] = begin_in_order(children[i]);
	}
	skipped = gpuds_scan_skip_merged(scans, n, ncolumns, goes_forward(children[0]->plan), rows, fetches);
	for (int i = 0; i < n; i++)
		gpuds_child_scan_stop(children[i], 0, fetches[i]);
	pfree(scans);
	pfree(fetches);
	return skipped;
}

/*
 * The first columns of the key of the row that the state below has given last, as a number that is the lower
 * the sooner such rows come.
 */
GpudsEntry
gpuds_child_scan_key(PlanState *child, int ncolumns)
{
	const IndexScanDesc scan = *parts_of(child).scan;
	const GpudsKeyLayout *layout = &gpuds_index_info(scan->indexRelation)->layout;
	const GpudsEntry ones = gpuds_key_ones_behind(layout, ncolumns);
	const uint64 flip = goes_forward(child->plan) ? 0 : UINT64_MAX;
	GpudsEntry key = *gpuds_scan_current(scan);

	key.w0 = (key.w0 ^ flip) & ~ones.w0;
	key.w1 = (key.w1 ^ flip) & ~ones.w1;
	key.t = (key.t ^ flip) & ~ones.t;
	return key;
}

/* What the scan has done; nothing if it has not begun. */
GpudsScanCounters
gpuds_child_scan_counters(PlanState *child)
{
	const IndexScanDesc scan = *parts_of(child).scan;

	return scan ? *gpuds_scan_counters(scan) : (GpudsScanCounters){ 0 };
}

/*
 * What the state below, an index-only scan, would return of the row of an entry, as far as it needs no other
 * columns than those of layout, the index's layout or its first columns.  The slot lasts until the next row,
 * and so do values in *bytes, of which there are as many as columns.
 */
TupleTableSlot *
gpuds_child_scan_row(PlanState *child, const GpudsEntry *entry, const GpudsKeyLayout *layout,
					 GpudsKeyBytes *bytes)
{
	ScanState *state = (ScanState *) castNode(IndexOnlyScanState, child);
	ExprContext *context = state->ps.ps_ExprContext;
	TupleTableSlot *slot = state->ss_ScanTupleSlot;

	ExecClearTuple(slot);
	ResetExprContext(context);
	(void) gpuds_key_decode(layout, entry, NULL, bytes, slot->tts_values, slot->tts_isnull);
	for (int i = layout->ncolumns; i < slot->tts_tupleDescriptor->natts; i++)
		slot->tts_isnull[i] = true;
	ExecStoreVirtualTuple(slot);
	context->ecxt_scantuple = slot;
	return state->ps.ps_ProjInfo ? ExecProject(state->ps.ps_ProjInfo) : slot;
}
