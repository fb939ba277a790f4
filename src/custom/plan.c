/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Plans of paths whose nodes give expressions: aggregates and what they are grouped by.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/extensible.h"
#include "nodes/makefuncs.h"

#include "custom/custom.h"

/*
 * The plan of a path whose custom_private begins with three lists: the expressions that the node gives, its
 * quals, and what its executor is told.
 */
CustomScan *
gpuds_plan_of_path(const CustomPath *path, const struct CustomScanMethods *methods, List *tlist,
				   List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell *lc;

	scan->methods = methods;
	scan->flags = path->flags;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = lsecond(path->custom_private);
	scan->custom_plans = custom_plans;
	scan->custom_private = lthird(path->custom_private);
	foreach (lc, (List *) linitial(path->custom_private))
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1, NULL,
														  false));
	return scan;
}
