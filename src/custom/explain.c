/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN ANALYZE shows of the scans of a custom scan.
 *
 * The index scan of a node keeps counters (am/am.h), which add up over rescans.  Workers hand theirs in when
 * their plan is shut down, in memory that they share with the leader.  The leader adds them to those of
 * workers before: when it starts workers anew, and when that memory goes, which is after they have ended.
 *
 * Core shares memory for parallel-aware nodes only.  A node of another kind that workers have run has
 * counters of one process; it shows none.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/parallel.h"
#include "commands/explain.h"
#include "executor/instrument.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "storage/dsm.h"

#include "custom/custom.h"
#include "reader/reader.h"

struct GpudsSharedCounters
{
	int nworkers;
	GpudsScanCounters of[FLEXIBLE_ARRAY_MEMBER];
};

/* Shared memory for the counters of workers: for EstimateDSMCustomScan. */
Size
gpuds_explain_size(const ParallelContext *context)
{
	return offsetof(GpudsSharedCounters, of) + context->nworkers * sizeof(GpudsScanCounters);
}

/* Adds what workers have handed in. */
static void
collect(GpudsNodeCounters *counters)
{
	GpudsSharedCounters *shared = counters->shared;

	for (int i = 0; i < shared->nworkers; i++)
		gpuds_counters_add(&counters->of_workers, &shared->of[i]);
	memset(shared->of, 0, shared->nworkers * sizeof(GpudsScanCounters));
}

static void
collect_at_detach(dsm_segment *segment, Datum counters)
{
	collect((GpudsNodeCounters *) DatumGetPointer(counters));
}

/* In the leader, for InitializeDSMCustomScan: workers will hand their counters in there. */
void
gpuds_explain_share(GpudsNodeCounters *counters, const ParallelContext *context, void *shared)
{
	counters->shared = shared;
	counters->shared->nworkers = context->nworkers;
	memset(counters->shared->of, 0, context->nworkers * sizeof(GpudsScanCounters));
	if (context->seg)
		on_dsm_detach(context->seg, collect_at_detach, PointerGetDatum(counters));
}

/* In the leader, for ReInitializeDSMCustomScan: other workers will do so. */
void
gpuds_explain_share_again(GpudsNodeCounters *counters)
{
	collect(counters);
}

/* In a worker, for InitializeWorkerCustomScan. */
void
gpuds_explain_attach(GpudsNodeCounters *counters, void *shared)
{
	counters->shared = shared;
}

/* For ShutdownCustomScan: a worker hands in its scan's counters, once or again. */
void
gpuds_explain_hand_in(GpudsNodeCounters *counters, const GpudsScanCounters *own)
{
	if (IsParallelWorker() && counters->shared)
		counters->shared->of[ParallelWorkerNumber] = *own;
}

/* Have workers run a node whose counters they do not share? */
static bool
lacks_workers(const GpudsNodeCounters *counters, const PlanState *node)
{
	const WorkerNodeInstrumentation *workers = node->worker_instrument;

	for (int i = 0; workers && !counters->shared && i < workers->num_workers; i++)
	{
		if (workers->instrument[i].nloops > 0)
			return true;
	}
	return false;
}

/* Shows who answered, and what a GPU has done for it. */
void
gpuds_explain_device(const GpudsScanCounters *counters, ExplainState *es)
{
	StringInfoData names;

	initStringInfo(&names);
	gpuds_counters_devices(counters, &names);
	if (names.len > 0)
		ExplainPropertyText("Device", names.data, es);
	pfree(names.data);
	if (counters->bus_bytes == 0)
		return;
	ExplainPropertyUInteger("Bus Bytes", NULL, counters->bus_bytes, es);
	if (es->timing)
		ExplainPropertyFloat("Device Time", "ms", counters->device_ns / 1e6, 3, es);
}

/*
 * For ExplainCustomScan: a node's counters, its own and those of workers; false: there are none to show.
 */
bool
gpuds_explain_sum(const GpudsNodeCounters *counters, const GpudsScanCounters *own, const PlanState *node,
				  const ExplainState *es, GpudsScanCounters *sum)
{
	if (!es->analyze || lacks_workers(counters, node))
		return false;
	*sum = *own;
	gpuds_counters_add(sum, &counters->of_workers);
	return true;
}

/* The same, and shows them. */
void
gpuds_explain_counters(const GpudsNodeCounters *counters, const GpudsScanCounters *own, const PlanState *node,
					   ExplainState *es)
{
	GpudsScanCounters all;

	if (!gpuds_explain_sum(counters, own, node, es, &all))
		return;
	ExplainPropertyUInteger("Batches", NULL, all.batches, es);
	ExplainPropertyUInteger("Probes", NULL, all.probes, es);
	ExplainPropertyUInteger("Matches", NULL, all.matches, es);
	if (es->verbose)
		ExplainPropertyUInteger("All-Visible Matches", NULL, all.all_visible, es);
	ExplainPropertyUInteger("Heap Fetches", NULL, all.fetches, es);
	if (all.page_states > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyUInteger("Page States", NULL, all.page_states, es);
	if (es->verbose)
		gpuds_explain_device(&all, es);
	gpuds_explain_option(&all, es);
}

/*
 * For ExplainCustomScan of a node above a scan that shows rows and heap fetches itself: its counters are for
 * VERBOSE, or for the option GPUDS.
 */
void
gpuds_explain_above_scan(const GpudsNodeCounters *counters, const GpudsScanCounters *own,
						 const PlanState *node, ExplainState *es)
{
	GpudsScanCounters sum;

	if (es->verbose)
		gpuds_explain_counters(counters, own, node, es);
	else if (gpuds_explain_sum(counters, own, node, es, &sum))
		gpuds_explain_option(&sum, es);
}
