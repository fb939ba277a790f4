/*-------------------------------------------------------------------------
 *
 * join_cost.c
 *	  What a GpudsJoin costs, and how many rows it gives.
 *
 * The node's work follows from its way of working (join_batch.c, join_match.c).  In each batch, outer rows
 * with equal keys are one group, which the index is asked about once, and each entry that it gives is
 * visited once for all rows of the group.  Where one match is enough, a row leaves its group with its first
 * match, and a group without rows has no further visits.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"

#include "am/am.h"
#include "custom/custom.h"
#include "custom/join.h"
#include "custom/join_plan.h"
#include "key/shapes.h"

/*
 * In units of cpu_operator_cost: keeping, sorting, probing and giving back an outer row, 45 to 175 ns by the
 * size of the index; an entry; and a pair of rows.
 */
#define ROW_OPERATORS 4
#define ENTRY_OPERATORS 1
#define PAIR_OPERATORS 1

/*
 * The same of making a shape's intervals and looking for them, beside the row, and how many entries there are
 * for one that is in it.
 */
#define SHAPE_OPERATORS 80
#define SHAPE_ENTRIES 3

/* Of these, reading a key that is sorted with all others; and writing it to a file, and merging it. */
#define KEY_OPERATORS 1
#define SPILL_OPERATORS 6

/* Memory that an outer row takes, beside what is kept of it (join_batch.c). */
#define ROW_BYTES (sizeof(bool) + 4 * sizeof(GpudsEntry))

/* What there is to do. */
typedef struct Work
{
	double rounds;  /* batches of the largest size */
	double batches; /* of any */
	double groups;  /* of the batches, added up; so are the others */
	double entries; /* that the index gives */
	double visits;  /* of entries' rows, in the heap if nothing else has them */
	double pairs;   /* that are looked at */
} Work;

/* A join whose work is worked out. */
typedef struct Costing
{
	const GpudsJoinPlan *plan;
	const GpudsJoinKeys *keys;
	Selectivity tested; /* share of the entries that pass what is tested in them */
	Selectivity passes; /* share of their pairs that pass the quals */
	bool settles;       /* one match is enough for an outer row */
	bool each;          /* quals look at the outer row, so that each row of a group has its own match */
	Work work;
} Costing;

/*
 * Visits of a group that so many entries are for: until all its rows have had a match.  Rows that need
 * matches of their own need as many as the one that has to wait longest.
 */
static double
group_visits(const Costing *costing, double entries, double rows)
{
	const double passes = Max(costing->passes, 1e-9);
	double visits;

	if (!costing->settles || entries <= 1)
		return entries;
	visits = -expm1(entries * log1p(-Min(passes, 1 - 1e-9))) / passes;
	if (costing->each)
		visits *= 1 + log(Max(rows, 1));
	return Min(visits, entries);
}

/* Pairs of such a group that are looked at. */
static double
group_pairs(const Costing *costing, double entries, double rows)
{
	Costing one = *costing;

	one.each = false;
	return rows * group_visits(&one, entries, 1);
}

/* Adds groups of a batch that have, if they have any, so many entries and rows each. */
static void
add_groups(Costing *costing, double groups, double found, double entries, double rows)
{
	Work *work = &costing->work;
	const double passing = entries * costing->tested;

	work->groups += groups;
	work->entries += groups * found * entries;
	work->visits += groups * found * group_visits(costing, passing, rows);
	work->pairs += groups * found * group_pairs(costing, passing, rows);
}

/*
 * Adds batches of a size.  The rows of a batch are taken to be any of all, so that of a key that r rows have,
 * none is in it with the r-th power of the share of rows that are not.
 */
static void
add_batches(Costing *costing, double size, double times)
{
	const GpudsJoinKeys *keys = costing->keys;
	const double others = keys->rows * keys->share;
	const double outside = Max(1 - size / keys->rows, 0);
	double groups;

	for (int i = 0; i < keys->ncommon; i++)
	{
		const GpudsJoinCommonKey *common = &keys->common[i];
		const double rows = keys->rows * common->share;

		groups = 1 - pow(outside, Max(rows, 1));
		add_groups(costing, times * groups, Min(common->matches, 1), Max(common->matches, 1),
				   size * common->share / Max(groups, 1e-9));
	}
	groups = keys->distinct * (1 - pow(outside, Max(others / keys->distinct, 1)));
	add_groups(costing, times * groups, keys->found, keys->matches / Max(keys->found, 1e-9),
			   size * keys->share / Max(groups, 1));
	costing->work.batches += times;
}

/* All batches: each is larger than the one before, until memory ends. */
static void
add_all_batches(Costing *costing, double most)
{
	double left = costing->keys->rows;
	double size = Min(GPUDS_JOIN_FIRST_ROWS, most);

	costing->work.rounds = ceil(left / most);
	while (left > 0)
	{
		const double times = size < most ? 1 : Max(floor(left / size), 1);

		add_batches(costing, Min(size, left), times);
		left -= size * times;
		size = Min(size * GPUDS_JOIN_ROWS_GROWTH, most);
	}
}

/* Of a right semijoin, whose keys are all different, in batches that have each key once. */
static void
add_different_keys(Costing *costing, double most)
{
	const GpudsJoinKeys *keys = costing->keys;

	for (int i = 0; i < keys->ncommon; i++)
		add_groups(costing, 1, Min(keys->common[i].matches, 1), Max(keys->common[i].matches, 1), 1);
	add_groups(costing, keys->distinct, keys->found, keys->matches / Max(keys->found, 1e-9), 1);
	costing->work.batches = costing->work.rounds = ceil(costing->work.groups / most);
}

static bool
wants_one_match(const GpudsJoinPlan *plan)
{
	return plan->type == JOIN_SEMI || plan->type == JOIN_ANTI;
}

/* Does any of some conditions look at the outer side? */
static bool
look_at_outer(const List *conditions, const RelOptInfo *inner)
{
	const ListCell *lc;

	foreach (lc, conditions)
	{
		if (!bms_is_subset(lfirst_node(RestrictInfo, lc)->clause_relids, inner->relids))
			return true;
	}
	return false;
}

/* Quals that leave some of the pairs whose keys are equal, but for what is tested in entries. */
static List *
other_quals(const GpudsJoinPlan *plan)
{
	return list_difference_ptr(plan->quals, plan->conditions);
}

/* Do some of these pairs make no row? */
static bool
rejects_pairs(const GpudsJoinPlan *plan)
{
	return plan->tested != NIL || other_quals(plan) != NIL;
}

/*
 * Visits of the heap: of entries that have not all that is wanted, or that the visibility map does not
 * vouch for.
 */
static double
heap_visits(const Costing *costing)
{
	const GpudsJoinPlan *plan = costing->plan;
	const Work *work = &costing->work;
	const double entries = work->entries * costing->tested;
	const double per_group = entries / Max(work->groups, 1);
	double unmapped;

	if (!plan->heap_free)
		return work->visits;
	unmapped = gpuds_covering_unmapped(plan->index, plan->inner);
	/* One entry that the map vouches for settles a group, if nothing has to be looked at. */
	if (costing->settles && plan->quals == NIL)
		return work->visits * pow(unmapped, Max(per_group, 1));
	return entries * unmapped;
}

/* How often the join goes through the heap: what it knows of a page by its state, it keeps. */
static double
heap_rounds(const Costing *costing)
{
	const GpudsJoinPlan *plan = costing->plan;

	return plan->heap_free && gpuds_scan_uses_states(plan->index) ? 1 : costing->work.rounds;
}

/* The share of the outer rows whose key the inner table has. */
static double
share_found(const GpudsJoinKeys *keys)
{
	double share = keys->share * keys->found;

	for (int i = 0; i < keys->ncommon; i++)
		share += keys->common[i].share * Min(keys->common[i].matches, 1);
	return Min(share, 1);
}

/* Matches of all outer rows. */
static double
all_matches(const GpudsJoinKeys *keys)
{
	double matches = keys->share * keys->matches;

	for (int i = 0; i < keys->ncommon; i++)
		matches += keys->common[i].share * keys->common[i].matches;
	return keys->rows * matches;
}

/* The rows of the join, of so many by core's estimate. */
static double
join_rows(const Costing *costing, double by_core)
{
	const GpudsJoinPlan *plan = costing->plan;
	const GpudsJoinKeys *keys = costing->keys;
	const double scaled = by_core * all_matches(keys) / Max(keys->by_core, 1);
	const double found = keys->rows * share_found(keys);
	const double passes = costing->tested * costing->passes;

	if (!keys->known)
		return by_core;
	if (plan->right_semi)
		return costing->work.entries * passes;
	switch (plan->type)
	{
		case JOIN_LEFT:
			if (plan->others != NIL)
				return by_core;
			return all_matches(keys) * passes + keys->rows - found * passes;
		case JOIN_SEMI:
			return rejects_pairs(plan) ? Min(by_core, found) : found;
		case JOIN_ANTI:
			return rejects_pairs(plan) ? Max(by_core, keys->rows - found) : keys->rows - found;
		default:
			return scaled;
	}
}

/*
 * Where the index has said nothing, what core says of a semi- or antijoin's rows says how many find a match,
 * if keys are all that they are joined by.
 */
static void
guess_found(const GpudsJoinPlan *plan, double given, GpudsJoinKeys *keys)
{
	const double share = Min(given / keys->rows, 1);

	if (keys->known || !wants_one_match(plan) || rejects_pairs(plan))
		return;
	keys->found = Min(plan->type == JOIN_SEMI ? share : 1 - share, keys->matches);
}

/* What sorting the keys of a right semijoin's outer rows costs. */
static Cost
cost_keys(double rows)
{
	const double bytes = rows * sizeof(GpudsEntry);
	Cost cost = rows * KEY_OPERATORS * cpu_operator_cost;

	/* Runs are written and read. */
	if (2 * bytes > work_mem * 1024.0)
		cost += 2 * seq_page_cost * ceil(bytes / BLCKSZ) + rows * SPILL_OPERATORS * cpu_operator_cost;
	return cost;
}

/* Works out what there is to do for the rows of an outer path. */
static void
work_out(PlannerInfo *root, Costing *costing, const Path *outer)
{
	const GpudsJoinPlan *plan = costing->plan;
	const double memory = work_mem * 1024.0;
	List *quals = other_quals(plan);
	SpecialJoinInfo all_pairs = { .type = T_SpecialJoinInfo, .jointype = JOIN_INNER };

	all_pairs.min_lefthand = all_pairs.syn_lefthand = outer->parent->relids;
	all_pairs.min_righthand = all_pairs.syn_righthand = plan->inner->relids;
	costing->passes = quals ? clauselist_selectivity(root, quals, 0, JOIN_INNER, &all_pairs) : 1;
	costing->tested = clauselist_selectivity(root, plan->tested, 0, JOIN_INNER, NULL);
	costing->settles = wants_one_match(plan);
	costing->each = look_at_outer(quals, plan->inner);
	if (plan->right_semi)
		add_different_keys(costing, Max(memory / (2 * sizeof(GpudsEntry)), GPUDS_JOIN_FIRST_ROWS));
	else
	{
		const double row = ROW_BYTES + (plan->keeps ? MAXALIGN(outer->pathtarget->width) : 0) +
						   (OidIsValid(plan->shape) ? GPUDS_SHAPE_BYTES : 0);

		add_all_batches(costing, Max(Min(memory / row, GPUDS_JOIN_MOST_ROWS), 1));
	}
	costing->work.entries = Min(costing->work.entries, costing->work.rounds * Max(plan->inner->tuples, 1));
	costing->work.visits = Min(costing->work.visits, costing->work.entries);
}

/* What outer rows cost with their probes or shapes, and entries that are looked at. */
static Cost
cost_looking(const GpudsJoinPlan *plan, const Work *work, double rows)
{
	const bool shapes = OidIsValid(plan->shape);
	const double entries = shapes ? Min(SHAPE_ENTRIES * work->entries,
										Max(work->entries, work->rounds * plan->inner->tuples))
								  : work->entries;

	return (rows * (ROW_OPERATORS + (shapes ? SHAPE_OPERATORS : 0)) +
			entries * (ENTRY_OPERATORS + plan->ntests)) *
		   cpu_operator_cost;
}

/*
 * Sets the costs and the rows of a path, for one process; path->rows comes with core's estimate.  False: the
 * index would have to be read from its journal again and again.
 *
 * What giving a row costs is taken for as many rows as core's paths of the join have: paths are to be
 * compared by what is different about them.
 */
bool
gpuds_join_cost(PlannerInfo *root, CustomPath *path, const GpudsJoinPlan *plan, const Path *outer)
{
	const double rows = Max(outer->rows, 1);
	GpudsJoinKeys keys;
	Costing costing = { .plan = plan, .keys = &keys };
	const Work *work = &costing.work;
	const double given = path->path.rows;
	double visits;
	QualCost quals;
	QualCost key_cost;
	Cost start;
	Cost sorting = 0;
	Cost run;

	gpuds_join_keys(root, plan, outer->parent, rows, &keys);
	guess_found(plan, given, &keys);
	work_out(root, &costing, outer);
	cost_qual_eval(&quals, plan->quals, root);
	cost_qual_eval(&key_cost, list_concat(list_copy(plan->keys), extract_actual_clauses(plan->others, false)),
				   root);
	start = gpuds_scan_start_cost(plan->index, rows);
	if (start < 0)
		return false;
	if (plan->right_semi)
		sorting = cost_keys(rows);
	visits = heap_visits(&costing);
	run = work->batches * start + key_cost.startup + quals.startup;
	run += cost_looking(plan, work, plan->right_semi ? work->groups : rows);
	run += (plan->right_semi ? work->groups : rows) * key_cost.per_tuple;
	run += work->pairs * (PAIR_OPERATORS * cpu_operator_cost + quals.per_tuple);
	/* Of pages each process counts all that it needs, as core has it: so does a parallel sequential scan. */
	run += gpuds_covering_heap_cost(root, plan->inner, visits, heap_rounds(&costing));
	if (plan->side_bytes > 0)
		run += gpuds_scan_side_cost(root, plan->index, plan->side_bytes, work->visits, visits, 0);
	run += given * (cpu_tuple_cost + path->path.pathtarget->cost.per_tuple);
	path->path.rows = clamp_row_est(join_rows(&costing, given));
	path->path.startup_cost = outer->startup_cost + start + path->path.pathtarget->cost.startup;
	path->path.total_cost = path->path.startup_cost + (outer->total_cost - outer->startup_cost) + sorting +
							run;
	/* No row comes before all keys are known. */
	if (plan->right_semi)
		path->path.startup_cost += outer->total_cost - outer->startup_cost + sorting;
	GpudsAddDisabledNodes(&path->path, outer);
	return true;
}
