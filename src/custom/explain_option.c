/*-------------------------------------------------------------------------
 *
 * explain_option.c
 *	  EXPLAIN (ANALYZE, GPUDS): what scans of indexes of gpuds have done; since 18.
 *
 * The option is shown of whatever node scans such an index: core's index scans, index-only scans and bitmap
 * index scans, whose counters are found in their scans, and nodes of ours, which show their own by
 * gpuds_explain_option.  The index scan below a node of ours is that node's scan, and shows nothing itself.
 *
 * Workers' scans of core's nodes are gone when EXPLAIN comes to them.  So these nodes show counters of the
 * leader alone, and say so.
 *
 * Without the option nothing is shown, whoever asks for the plan.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "executor/instrument.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"

#include "custom/custom.h"
#include "index/index.h"
#include "reader/reader.h"

#if GPUDS_EXPLAIN_HAS_OPTIONS

static int extension_id;
static explain_validate_options_hook_type prev_validate_options = NULL;
static explain_per_node_hook_type prev_per_node = NULL;

/* Is the option set? */
static bool
is_set(ExplainState *es)
{
	const bool *set = GetExplainExtensionState(es, extension_id);

	return set && *set;
}

static void
set_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	bool *set = palloc(sizeof(bool));

	*set = defGetBoolean(option);
	SetExplainExtensionState(es, extension_id, set);
}

static void
validate_options(ExplainState *es, List *options, ParseState *pstate)
{
	if (prev_validate_options)
		prev_validate_options(es, options, pstate);
	if (is_set(es) && !es->analyze)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("EXPLAIN option %s requires ANALYZE", "GPUDS")));
}

/* As lines of their own, which say what is not zero. */
static void
show_as_text(const GpudsScanCounters *counters, const char *devices, List *without, bool leader_alone,
			 ExplainState *es)
{
	ListCell *lc;

	ExplainIndentText(es);
	appendStringInfo(es->str,
					 "Gpuds: device=%s scans=" UINT64_FORMAT " probes=" UINT64_FORMAT " calls=" UINT64_FORMAT
					 " entries=" UINT64_FORMAT,
					 devices[0] ? devices : "none", counters->scans, counters->probes, counters->calls,
					 counters->entries);
	if (counters->notes.operations > 0)
		appendStringInfo(es->str, " memtable=" UINT64_FORMAT, counters->notes.operations);
	if (counters->bus_bytes > 0)
		appendStringInfo(es->str, " bus=" UINT64_FORMAT "kB", (counters->bus_bytes + 1023) / 1024);
	if (counters->bus_bytes > 0 && es->timing)
		appendStringInfo(es->str, " time=%.3f ms", counters->device_ns / 1e6);
	appendStringInfo(es->str, "%s\n", leader_alone ? " (leader alone)" : "");
	if (without == NIL)
		return;
	ExplainIndentText(es);
	appendStringInfo(es->str, "Gpuds Fallbacks: " UINT64_FORMAT " (", counters->notes.fallbacks);
	foreach (lc, without)
		appendStringInfo(es->str, "%s%s", foreach_current_index(lc) > 0 ? "; " : "", (char *) lfirst(lc));
	appendStringInfoString(es->str, ")\n");
}

/* Shows all counters. */
static void
show_as_group(const GpudsScanCounters *counters, const char *devices, List *without, bool leader_alone,
			  ExplainState *es)
{
	ExplainOpenGroup("Gpuds", "Gpuds", true, es);
	ExplainPropertyText("Device", devices, es);
	ExplainPropertyUInteger("Scans", NULL, counters->scans, es);
	ExplainPropertyUInteger("Probes", NULL, counters->probes, es);
	ExplainPropertyUInteger("Calls", NULL, counters->calls, es);
	ExplainPropertyUInteger("Entries", NULL, counters->entries, es);
	ExplainPropertyUInteger("Memtable Operations", NULL, counters->notes.operations, es);
	ExplainPropertyUInteger("Bus Bytes", NULL, counters->bus_bytes, es);
	if (es->timing)
		ExplainPropertyFloat("Device Time", "ms", counters->device_ns / 1e6, 3, es);
	ExplainPropertyUInteger("Fallbacks", NULL, counters->notes.fallbacks, es);
	ExplainPropertyList("Fallback Reasons", without, es);
	ExplainPropertyBool("Leader Alone", leader_alone, es);
	ExplainCloseGroup("Gpuds", "Gpuds", true, es);
}

static void
show(const GpudsScanCounters *counters, bool leader_alone, ExplainState *es)
{
	List *without = gpuds_counters_without(counters);
	StringInfoData devices;

	initStringInfo(&devices);
	gpuds_counters_devices(counters, &devices);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		show_as_text(counters, devices.data, without, leader_alone, es);
	else
		show_as_group(counters, devices.data, without, leader_alone, es);
}

/* Shows a node's counters, its own and those of workers, if the option is set. */
void
gpuds_explain_option(const GpudsScanCounters *counters, ExplainState *es)
{
	if (is_set(es))
		show(counters, false, es);
}

/* The scan of a node of core's, NULL if it has none, or none of ours. */
static IndexScanDesc
scan_of(const PlanState *node)
{
	IndexScanDesc scan;

	switch (nodeTag(node))
	{
		case T_IndexScanState:
			scan = ((const IndexScanState *) node)->iss_ScanDesc;
			break;
		case T_IndexOnlyScanState:
			scan = ((const IndexOnlyScanState *) node)->ioss_ScanDesc;
			break;
		case T_BitmapIndexScanState:
			scan = ((const BitmapIndexScanState *) node)->biss_ScanDesc;
			break;
		default:
			return NULL;
	}
	return scan && gpuds_is_ours(scan->indexRelation) ? scan : NULL;
}

/* Is a node's parent one of ours, which shows the scan as its own? */
static bool
is_child_ours(List *ancestors)
{
	const CustomScan *parent = ancestors ? linitial(ancestors) : NULL;

	return parent && IsA(parent, CustomScan) &&
		   (strcmp(parent->methods->CustomName, "GpudsScan") == 0 ||
			strcmp(parent->methods->CustomName, "GpudsAggregate") == 0);
}

/* Have workers run the node? */
static bool
has_workers(const PlanState *node)
{
	const WorkerNodeInstrumentation *workers = node->worker_instrument;

	for (int i = 0; workers && i < workers->num_workers; i++)
	{
		if (workers->instrument[i].nloops > 0)
			return true;
	}
	return false;
}

static void
per_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name, ExplainState *es)
{
	IndexScanDesc scan;

	if (prev_per_node)
		prev_per_node(node, ancestors, relationship, plan_name, es);
	if (!is_set(es) || is_child_ours(ancestors))
		return;
	scan = scan_of(node);
	if (scan && node->instrument && node->instrument->nloops > 0)
		show(gpuds_scan_counters(scan), has_workers(node), es);
}

/* Adds the option gpuds to EXPLAIN.  To be called once, when the library is preloaded. */
void
gpuds_explain_option_init(void)
{
	extension_id = GetExplainExtensionId("gpuds");
	GpudsRegisterExplainOption("gpuds", set_option);
	prev_validate_options = explain_validate_options_hook;
	explain_validate_options_hook = validate_options;
	prev_per_node = explain_per_node_hook;
	explain_per_node_hook = per_node;
}

#else

/* Does nothing: before 18 EXPLAIN has no options of extensions. */
void
gpuds_explain_option(const GpudsScanCounters *counters, ExplainState *es)
{
}

/* Likewise. */
void
gpuds_explain_option_init(void)
{
}

#endif /* GPUDS_EXPLAIN_HAS_OPTIONS */
