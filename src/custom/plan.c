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
#include "optimizer/cost.h"

#include "custom/custom.h"

static Cost
cost_of(PlannerInfo *root, Node *qual)
{
	QualCost cost;

	cost_qual_eval_node(&cost, qual, root);
	return cost.per_tuple;
}

/* Quals in the order in which core evaluates HAVING: the cheaper ones first, to keep rows off others. */
static List *
in_order_of_cost(PlannerInfo *root, const List *quals)
{
	List *ordered = NIL;
	ListCell *lc;

	foreach (lc, quals)
	{
		const Cost cost = cost_of(root, lfirst(lc));
		int at = list_length(ordered);

		while (at > 0 && cost_of(root, list_nth(ordered, at - 1)) > cost)
			at--;
		ordered = list_insert_nth(ordered, at, lfirst(lc));
	}
	return ordered;
}

/*
 * The plan of a path whose custom_private begins with three lists: the expressions that the node gives, its
 * quals, and what its executor is told.
 */
CustomScan *
gpuds_plan_of_path(PlannerInfo *root, const CustomPath *path, const struct CustomScanMethods *methods,
				   List *tlist, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell *lc;

	scan->methods = methods;
	scan->flags = path->flags;
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = in_order_of_cost(root, lsecond(path->custom_private));
	scan->custom_plans = custom_plans;
	scan->custom_private = lthird(path->custom_private);
	foreach (lc, (List *) linitial(path->custom_private))
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(lfirst(lc), foreach_current_index(lc) + 1, NULL,
														  false));
	return scan;
}
