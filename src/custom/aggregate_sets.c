/*-------------------------------------------------------------------------
 *
 * aggregate_sets.c
 *	  Paths of grouping sets: GROUPING SETS, ROLLUP and CUBE.
 *
 * Rows are grouped by all columns that any of the sets has, and core puts these parts together for each set:
 *
 *	Custom Scan (GpudsCombine)
 *	  -> Finalize MixedAggregate
 *	       -> Custom Scan (GpudsAggregate), of PARTIAL aggregates
 *
 * Parts are few, so all sets are hashed.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/tlist.h"
#include "utils/selfuncs.h"

#include "custom/aggregate_path.h"
#include "custom/combine.h"

/* May aggregates of parts of the rows be put together? */
bool
gpuds_may_take_parts(const PlannerInfo *root, const GroupPathExtraData *extra)
{
	if (root->parse->groupingSets == NIL)
		return (extra->flags & GROUPING_CAN_PARTIAL_AGG) != 0;
	return root->parse->groupClause != NIL && !root->hasNonPartialAggs && !root->hasNonSerialAggs &&
		   grouping_is_hashable(root->parse->groupClause);
}

/* The clauses of a set of references. */
static List *
clauses_of(const PlannerInfo *root, const List *set)
{
	List *clauses = NIL;
	ListCell *lc;

	foreach (lc, set)
		clauses = lappend(clauses, get_sortgroupref_clause((Index) lfirst_int(lc), root->parse->groupClause));
	return clauses;
}

/* What core has to know to hash a set. */
static RollupData *
make_hashed(PlannerInfo *root, const List *set, const Path *parts)
{
	RollupData *rollup = makeNode(RollupData);
	List *columns = NIL;
	List *exprs;

	rollup->groupClause = clauses_of(root, set);
	for (int i = 0; i < list_length(set); i++)
		columns = lappend_int(columns, i);
	rollup->gsets = list_make1(columns);
	exprs = get_sortgrouplist_exprs(rollup->groupClause, root->processed_tlist);
	exprs = (List *) GpudsBelowGrouping(root, (Node *) exprs);
	rollup->numGroups = Min(estimate_num_groups(root, exprs, parts->rows, NULL, NULL), parts->rows);
	rollup->hashable = rollup->is_hashed = true;
	return rollup;
}

/* The same of sets without columns, each of which is one group of all rows. */
static RollupData *
make_empty(int n)
{
	RollupData *rollup = makeNode(RollupData);

	for (int i = 0; i < n; i++)
		rollup->gsets = lappend(rollup->gsets, NIL);
	rollup->numGroups = n;
	return rollup;
}

/* The sets of a query; NIL: none of them has columns. */
static List *
make_rollups(PlannerInfo *root, const Path *parts)
{
	List *rollups = NIL;
	int nempty = 0;
	ListCell *lc;

	foreach (lc, root->parse->groupingSets)
	{
		if (lfirst(lc) == NIL)
			nempty++;
		else
			rollups = lappend(rollups, make_hashed(root, lfirst(lc), parts));
	}
	if (rollups != NIL && nempty > 0)
		rollups = lappend(rollups, make_empty(nempty));
	return rollups;
}

/*
 * Core's path of rollups, each of them one set, or all sets without columns.  It costs what separate
 * aggregates of them would, but that parts come once.
 */
static Path *
make_path(PlannerInfo *root, RelOptInfo *output, Path *parts, List *rollups, Node *having)
{
	GroupingSetsPath *path = makeNode(GroupingSetsPath);
	AggClauseCosts costs = { 0 };
	ListCell *lc;

	gpuds_final_costs(root, &costs);
	path->path.pathtype = T_Agg;
	path->path.parent = output;
	path->path.pathtarget = output->reltarget;
	path->path.startup_cost = path->path.total_cost = parts->total_cost;
	GpudsAddDisabledNodes(&path->path, parts);
	path->subpath = parts;
	path->aggstrategy = AGG_HASHED;
	path->rollups = rollups;
	path->qual = (List *) having;
	path->transitionSpace = costs.transitionSpace;
	foreach (lc, rollups)
	{
		const RollupData *rollup = lfirst_node(RollupData, lc);
		const AggStrategy strategy = rollup->is_hashed ? AGG_HASHED : AGG_PLAIN;
		const AggPath *set = create_agg_path(root, output, parts, output->reltarget, strategy,
											 AGGSPLIT_FINAL_DESERIAL, rollup->groupClause, path->qual, &costs,
											 rollup->numGroups);

		if (!rollup->is_hashed)
			path->aggstrategy = AGG_MIXED;
		path->path.rows += set->path.rows;
		path->path.startup_cost += set->path.startup_cost - parts->total_cost;
		path->path.total_cost += set->path.total_cost - parts->total_cost;
		GpudsAddDisabledBetween(&path->path, &set->path, parts);
	}
	return &path->path;
}

/* Adds a path to the grouped relation output that puts parts together for each of the grouping sets. */
void
gpuds_add_sets_path(PlannerInfo *root, RelOptInfo *output, Path *parts, Node *having)
{
	GpudsCombined combined = { .finalize = true, .exprs = output->reltarget->exprs };
	List *rollups = make_rollups(root, parts);

	if (rollups == NIL)
		return;
	combined.paths = list_make1(make_path(root, output, parts, rollups, having));
	for (int i = 0; i < list_length(combined.exprs); i++)
	{
		combined.plans = lappend_int(combined.plans, 0);
		combined.columns = lappend_int(combined.columns, i);
	}
	add_path(output, gpuds_combine_path(&combined, output));
}
