/*-------------------------------------------------------------------------
 *
 * aggregate_group.c
 *	  Adds paths to grouped relations: of a table, or of one with children, by what their indexes have.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/prep.h"

#include "custom/aggregate_path.h"
#include "custom/custom.h"

/* Adds a path that puts parts together; parts are of one group each. */
static void
add_final_path(PlannerInfo *root, RelOptInfo *output, Path *parts, double ngroups, AggStrategy strategy,
			   Node *having)
{
	AggClauseCosts costs = { 0 };

	gpuds_final_costs(root, &costs);
	/* without keys, all rows are of one group */
	if (strategy == AGG_SORTED && GpudsGroupPathkeys(root) != NIL)
		parts = (Path *) create_sort_path(root, output, parts, GpudsGroupPathkeys(root), -1.0);
	add_path(output, (Path *) create_agg_path(root, output, parts, output->reltarget, strategy,
											  AGGSPLIT_FINAL_DESERIAL, GpudsGroupClause(root),
											  (List *) having, &costs, ngroups));
}

/* Adds paths to the grouped relation output that put the parts of so many groups together. */
void
gpuds_add_final_paths(PlannerInfo *root, RelOptInfo *output, Path *parts, double ngroups,
					  const GroupPathExtraData *extra)
{
	const bool grouped = root->parse->groupClause != NIL;

	if (root->parse->groupingSets != NIL)
	{
		gpuds_add_sets_path(root, output, parts, extra->havingQual);
		return;
	}
	if (!grouped)
		add_final_path(root, output, parts, 1, AGG_PLAIN, extra->havingQual);
	if (grouped && (extra->flags & GROUPING_CAN_USE_HASH))
		add_final_path(root, output, parts, ngroups, AGG_HASHED, extra->havingQual);
	if (grouped && (extra->flags & GROUPING_CAN_USE_SORT))
		add_final_path(root, output, parts, ngroups, AGG_SORTED, extra->havingQual);
}

/* The same of what is wanted of a table. */
static void
add_final_paths(const GpudsWanted *wanted, RelOptInfo *output, Path *parts, const GroupPathExtraData *extra)
{
	const double ngroups = wanted->groups != NIL ? gpuds_wanted_groups(wanted, wanted->rel->rows) : 1;

	gpuds_add_final_paths(wanted->root, output, parts, ngroups, extra);
}

/* Adds paths if some aggregates are of a column's distinct values. */
static void
add_distinct_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output, const GroupPathExtraData *extra)
{
	GpudsWanted wanted = { .root = root, .rel = input };
	double ngroups;
	Path *values;

	if (root->parse->groupingSets != NIL ||
		(root->parse->groupClause != NIL && (extra->flags & GROUPING_CAN_USE_SORT) == 0))
		return;
	if (!gpuds_wanted_collect_distinct(&wanted, output, extra->havingQual, &ngroups))
	{
		gpuds_add_separate_path(root, input, output, gpuds_aggregate_paths, extra);
		return;
	}
	values = gpuds_wanted_groups_path(&wanted, false);
	/* If there is an order that rows have to come in, core has prepared its aggregates for it. */
	if (values != NULL)
		gpuds_add_distinct_path(root, output, values, root->group_pathkeys, extra->havingQual, ngroups);
}

/*
 * Adds paths to the grouped relation output if input is a table, or one with children, and indexes have all
 * that is wanted of its rows.
 */
void
gpuds_aggregate_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
					  const GroupPathExtraData *extra)
{
	const bool single = gpuds_covering_is_table(root, input);
	GpudsWanted wanted = { .root = root, .rel = input };
	CustomPath *path = NULL;
	CustomPath *hashed = NULL;
	Path *parts = NULL;
	bool whole;
	bool other = false;

	if (extra->patype == PARTITIONWISE_AGGREGATE_PARTIAL ||
		(!single && !gpuds_aggregate_is_parent(root, input)))
		return;
	if (!gpuds_wanted_collect(&wanted, output, extra->havingQual))
	{
		add_distinct_paths(root, input, output, extra);
		return;
	}
	whole = single && root->parse->groupingSets == NIL && !gpuds_wanted_needs_parts(&wanted);
	if (whole)
	{
		path = gpuds_wanted_path(&wanted, output, output->reltarget, extra->havingQual);
		/* By another index, conditions that this one tests may bound the scan. */
		other = wanted.groups != NIL &&
				(path == NULL || !gpuds_covering_is_bounded(root, linitial(path->custom_paths)));
		if (other)
			hashed = gpuds_wanted_hashed_path(&wanted, output, output->reltarget, extra->havingQual);
	}
	if (gpuds_may_take_parts(root, extra) && (!whole || (other && hashed == NULL)))
		parts = gpuds_wanted_groups_path(&wanted, whole);
	if (parts != NULL)
		add_final_paths(&wanted, output, parts, extra);
	if (hashed != NULL)
		add_path(output, &hashed->path);
	if (path != NULL)
		add_path(output, &path->path);
}
