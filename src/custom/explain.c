/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN ANALYZE shows of the scans of a custom scan.
 *
 * The index scan of a node keeps figures (am/am.h), which add up over rescans.  Workers hand theirs in when
 * their plan is shut down, in memory that they share with the leader.  The leader adds them to those of
 * workers before: when it starts workers anew, and when that memory goes, which is after they have ended.
 *
 * Core shares memory for parallel-aware nodes only.  A node of another kind that workers have run has
 * figures of one process; it shows none.
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

struct GpudsSharedFigures
{
	int nworkers;
	GpudsScanFigures of[FLEXIBLE_ARRAY_MEMBER];
};

/* Shared memory for the figures of workers: for EstimateDSMCustomScan. */
Size
gpuds_explain_size(const ParallelContext *context)
{
	return offsetof(GpudsSharedFigures, of) + context->nworkers * sizeof(GpudsScanFigures);
}

/* Adds what workers have handed in. */
static void
collect(GpudsNodeFigures *figures)
{
	GpudsSharedFigures *shared = figures->shared;

	for (int i = 0; i < shared->nworkers; i++)
		gpuds_figures_add(&figures->of_workers, &shared->of[i]);
	memset(shared->of, 0, shared->nworkers * sizeof(GpudsScanFigures));
}

static void
collect_at_detach(dsm_segment *segment, Datum figures)
{
	collect((GpudsNodeFigures *) DatumGetPointer(figures));
}

/* In the leader, for InitializeDSMCustomScan: workers will hand their figures in there. */
void
gpuds_explain_share(GpudsNodeFigures *figures, const ParallelContext *context, void *shared)
{
	figures->shared = shared;
	figures->shared->nworkers = context->nworkers;
	memset(figures->shared->of, 0, context->nworkers * sizeof(GpudsScanFigures));
	if (context->seg)
		on_dsm_detach(context->seg, collect_at_detach, PointerGetDatum(figures));
}

/* In the leader, for ReInitializeDSMCustomScan: other workers will do so. */
void
gpuds_explain_share_again(GpudsNodeFigures *figures)
{
	collect(figures);
}

/* In a worker, for InitializeWorkerCustomScan. */
void
gpuds_explain_attach(GpudsNodeFigures *figures, void *shared)
{
	figures->shared = shared;
}

/* For ShutdownCustomScan: a worker hands in its scan's figures, once or again. */
void
gpuds_explain_hand_in(GpudsNodeFigures *figures, const GpudsScanFigures *own)
{
	if (IsParallelWorker() && figures->shared)
		figures->shared->of[ParallelWorkerNumber] = *own;
}

/* Have workers run a node whose figures they do not share? */
static bool
lacks_workers(const GpudsNodeFigures *figures, const PlanState *node)
{
	const WorkerNodeInstrumentation *workers = node->worker_instrument;

	for (int i = 0; workers && !figures->shared && i < workers->num_workers; i++)
	{
		if (workers->instrument[i].nloops > 0)
			return true;
	}
	return false;
}

/* Shows who answered, and what a GPU has done for it. */
void
gpuds_explain_device(const GpudsScanFigures *figures, ExplainState *es)
{
	StringInfoData names;

	initStringInfo(&names);
	gpuds_figures_devices(figures, &names);
	if (names.len > 0)
		ExplainPropertyText("Device", names.data, es);
	pfree(names.data);
	if (figures->bus_bytes == 0)
		return;
	ExplainPropertyUInteger("Bus Bytes", NULL, figures->bus_bytes, es);
	if (es->timing)
		ExplainPropertyFloat("Device Time", "ms", figures->device_ns / 1e6, 3, es);
}

/*
 * For ExplainCustomScan: a node's figures, its own and those of workers; false: there are none to show.
 */
bool
gpuds_explain_sum(const GpudsNodeFigures *figures, const GpudsScanFigures *own, const PlanState *node,
				  const ExplainState *es, GpudsScanFigures *sum)
{
	if (!es->analyze || lacks_workers(figures, node))
		return false;
	*sum = *own;
	gpuds_figures_add(sum, &figures->of_workers);
	return true;
}

/* The same, and shows them. */
void
gpuds_explain_figures(const GpudsNodeFigures *figures, const GpudsScanFigures *own, const PlanState *node,
					  ExplainState *es)
{
	GpudsScanFigures all;

	if (!gpuds_explain_sum(figures, own, node, es, &all))
		return;
	ExplainPropertyUInteger("Batches", NULL, all.batches, es);
	ExplainPropertyUInteger("Probes", NULL, all.probes, es);
	ExplainPropertyUInteger("Matches", NULL, all.matches, es);
	if (es->verbose)
		ExplainPropertyUInteger("All-Visible Matches", NULL, all.all_visible, es);
	ExplainPropertyUInteger("Heap Fetches", NULL, all.fetches, es);
	if (es->verbose)
		gpuds_explain_device(&all, es);
	gpuds_explain_option(&all, es);
}
