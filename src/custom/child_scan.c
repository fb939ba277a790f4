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
	bool *ready;
	bool waits; /* for its keys to be evaluated */
} Parts;

static Parts
parts_of(PlanState *below)
{
	Parts parts;

	if (IsA(below, IndexOnlyScanState))
	{
		IndexOnlyScanState *state = (IndexOnlyScanState *) below;

		parts.index = state->ioss_RelationDesc;
		parts.keys = state->ioss_ScanKeys;
		parts.nkeys = state->ioss_NumScanKeys;
		parts.scan = &state->ioss_ScanDesc;
		parts.waits = state->ioss_NumRuntimeKeys != 0 && !state->ioss_RuntimeKeysReady;
	}
	else
	{
		IndexScanState *state = castNode(IndexScanState, below);

		parts.index = state->iss_RelationDesc;
		parts.keys = state->iss_ScanKeys;
		parts.nkeys = state->iss_NumScanKeys;
		parts.scan = &state->iss_ScanDesc;
		parts.waits = state->iss_NumRuntimeKeys != 0 && !state->iss_RuntimeKeysReady;
	}
	return parts;
}

/*
 * The scan with its keys set, at its beginning, after gpuds_below_start.  Core ends it with the state below.
 */
IndexScanDesc
gpuds_below_begin(PlanState *below)
{
	Parts parts = parts_of(below);

	if (*parts.scan == NULL)
	{
		*parts.scan = GpudsIndexBeginscanOf(below, parts.index, parts.nkeys);
		(*parts.scan)->xs_want_itup = IsA(below, IndexOnlyScanState);
		index_rescan(*parts.scan, parts.keys, parts.nkeys, NULL, 0);
	}
	return *parts.scan;
}

/*
 * A scan of the same index and snapshot that is never asked for anything: to visit the heap with, where
 * another process has asked.  The caller ends it.
 */
IndexScanDesc
gpuds_below_visitor(PlanState *below)
{
	return gpuds_begin_scan(((ScanState *) below)->ss_currentRelation, parts_of(below).index,
							below->state->es_snapshot, 0);
}

/*
 * What looks at rows where conditions are looked up by hashes; NULL: none, or the executor does.  For one
 * execution of the state below, in the current memory context.
 */
GpudsRecheck *
gpuds_below_recheck(PlanState *below)
{
	Parts parts = parts_of(below);

	if (below->chgParam != NULL || parts.waits)
		ExecReScan(below);
	return gpuds_recheck_begin(parts.index, &gpuds_index_info(parts.index)->layout, parts.keys, parts.nkeys);
}

/* Makes what the state below has of expressions heed a change of parameters. */
void
gpuds_below_refresh(PlanState *below)
{
	if (below->chgParam != NULL)
		ExecReScan(below);
}

/* For ReScan: the parameters that have changed are those of the node above. */
void
gpuds_below_rescan(PlanState *below, Bitmapset *changed)
{
	if (changed != NULL)
		UpdateChangedParamSet(below, changed);
	if (below->chgParam == NULL)
		ExecReScan(below);
}

/*
 * Around work that the state below would have done: EXPLAIN shows it there.  A change of parameters
 * ends a loop, so it comes first.
 */
void
gpuds_below_start(PlanState *below)
{
	if (below->chgParam != NULL || parts_of(below).waits)
		ExecReScan(below);
	if (below->instrument)
		InstrStartNode(below->instrument);
}

void
gpuds_below_stop(PlanState *below, int64 rows, int64 fetches)
{
	if (below->instrument == NULL)
		return;
	if (IsA(below, IndexOnlyScanState))
		below->instrument->ntuples2 += fetches;
	InstrStopNode(below->instrument, rows);
}

/* What the scan has done; nothing if it has not begun. */
GpudsScanFigures
gpuds_below_figures(PlanState *below)
{
	const IndexScanDesc scan = *parts_of(below).scan;

	return scan ? *gpuds_scan_figures(scan) : (GpudsScanFigures){ 0 };
}
