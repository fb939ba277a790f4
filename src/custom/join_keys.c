/*-------------------------------------------------------------------------
 *
 * join_keys.c
 *	  How many inner rows the keys of a GpudsJoin's outer rows find.
 *
 * Core's estimate knows how many different keys each side has, and the most common ones of each.  It does not
 * know which keys of one side the other has.  The index does: where ANALYZE has seen the outer side's keys,
 * the index is asked about the most common of them, and about the bounds of their histogram, which are a
 * sample of the others.  That is not done for few outer rows, whose join costs little more than asking.
 *
 * A bound may be one of few keys with very many inner rows.  Then it stands for none of its neighbours, so no
 * bound counts for more than a multiple of what most have.
 *
 * Core considers the same keys again and again, for each order of joins.  What the index has said is kept
 * until the end of planning.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_statistic.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

#include "am/am.h"
#include "custom/custom.h"
#include "custom/join_plan.h"
#include "key/key.h"

/* Of fewer outer rows, nothing is asked. */
#define FEW_ROWS 256

/* Common keys, and bounds of the histogram, that the index is asked about at most; some 0.3 us each. */
#define MOST_COMMON 100
#define MOST_BOUNDS 100

/* How many times the median of what bounds find one of them may count for. */
#define MOST_MEDIANS 100

/* Of fewer bounds that find something, it is not known how much others find. */
#define FEW_FOUND 3

/* What an index has said of the keys of an outer side, kept in the planner's memory context. */
typedef struct Answer
{
	const PlannerInfo *root; /* whose numbers of relations the keys have */
	Oid index;
	List *keys; /* of the leading columns that it was asked about */
	bool known; /* else it had nothing to say */
	int ncommon;
	GpudsJoinCommonKey *common;
	double share; /* as in GpudsJoinKeys */
	double found;
	double matches; /* -1: not known, because hardly any bound finds something */
} Answer;

/* The answers of the planner run in progress whose memory context this is. */
static MemoryContext answers_context = NULL;
static List *answers = NIL;

static void
forget_answers(void *context)
{
	if (answers_context == context)
	{
		answers_context = NULL;
		answers = NIL;
	}
}

/* The answers of this planner run; those of one that was interrupted by it are asked for again. */
static List *
known_answers(const PlannerInfo *root)
{
	if (answers_context != root->planner_cxt)
	{
		MemoryContextCallback *callback = MemoryContextAlloc(root->planner_cxt, sizeof(*callback));

		callback->func = forget_answers;
		callback->arg = root->planner_cxt;
		MemoryContextRegisterResetCallback(root->planner_cxt, callback);
		answers_context = root->planner_cxt;
		answers = NIL;
	}
	return answers;
}

/*
 * How many leading keys the index can be asked about: constants, and one behind them that is none.
 * 0: none.
 */
static int
keys_to_ask(const GpudsJoinPlan *plan)
{
	ListCell *lc;

	foreach (lc, plan->keys)
	{
		if (!IsA(lfirst(lc), Const))
			return foreach_current_index(lc) + 1;
	}
	return 0;
}

/* Asks the index about keys, of which it has the last column's values here and there. */
typedef struct Asking
{
	GpudsEstimate estimate;
	GpudsKeyProbe probe;
	int ncolumns;
	Datum values[GPUDS_KEY_MAX_COLUMNS];
	bool isnull[GPUDS_KEY_MAX_COLUMNS];
} Asking;

static bool
begin_asking(Asking *asking, const GpudsJoinPlan *plan, int ncolumns)
{
	Oid types[GPUDS_KEY_MAX_COLUMNS]; /* an index has no more columns */

	if (!gpuds_estimate_begin(plan->index, &asking->estimate))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		const Const *key = list_nth(plan->keys, i);

		types[i] = list_nth_oid(plan->types, i);
		if (IsA(key, Const))
		{
			asking->values[i] = key->constvalue;
			asking->isnull[i] = key->constisnull;
		}
	}
	asking->ncolumns = ncolumns;
	asking->isnull[ncolumns - 1] = false;
	gpuds_key_probe_init(&asking->probe, &asking->estimate.layout, ncolumns, types);
	return true;
}

/* How many inner rows have a value in the last column; -1: it cannot be said. */
static double
ask(Asking *asking, Datum value)
{
	GpudsEntry key;

	asking->values[asking->ncolumns - 1] = value;
	if (!gpuds_key_probe(&asking->probe, asking->values, asking->isnull, 0, &key))
		return 0;
	return gpuds_estimate_probe(&asking->estimate, &asking->probe, &key);
}

/* Asks about the most common keys; false: it cannot be said.  Takes their shares from answer->share. */
static bool
ask_common(Asking *asking, const AttStatsSlot *slot, Answer *answer)
{
	const int n = Min(Min(slot->nvalues, slot->nnumbers), MOST_COMMON);

	answer->common = MemoryContextAlloc(answers_context, Max(n, 1) * sizeof(GpudsJoinCommonKey));
	for (int i = 0; i < n; i++)
	{
		GpudsJoinCommonKey *common = &answer->common[answer->ncommon++];

		common->share = slot->numbers[i];
		common->matches = ask(asking, slot->values[i]);
		if (common->matches < 0)
			return false;
		answer->share -= common->share;
	}
	answer->share = Max(answer->share, 0);
	return true;
}

static int
compare_numbers(const void *a, const void *b)
{
	const double x = *(const double *) a;
	const double y = *(const double *) b;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* Asks about bounds of the histogram, evenly over all of it; false: it cannot be said. */
static bool
ask_bounds(Asking *asking, const AttStatsSlot *slot, Answer *answer)
{
	double matches[MOST_BOUNDS];
	const int n = Min(slot->nvalues, MOST_BOUNDS);
	int found = 0;
	double sum = 0;

	for (int i = 0; i < n; i++)
	{
		const double has = ask(asking, slot->values[(int64) i * slot->nvalues / n]);

		if (has < 0)
			return false;
		if (has > 0)
			matches[found++] = has;
	}
	qsort(matches, found, sizeof(double), compare_numbers);
	for (int i = 0; i < found; i++)
		sum += Min(matches[i], MOST_MEDIANS * matches[(found - 1) / 2]);
	/* That all of a sample have something does not say that none lacks it, nor the other way round. */
	answer->found = Min(Max(found, 0.5), n - 0.5) / n;
	answer->matches = found < FEW_FOUND ? -1 : sum / n;
	return true;
}

/*
 * Asks the index about the keys that ANALYZE has seen; false: it cannot be said.  Without a histogram, the
 * common keys must be all that there are.
 */
static bool
ask_statistics(Asking *asking, const VariableStatData *variable, Oid type, Answer *answer)
{
	const Form_pg_statistic statistics = (Form_pg_statistic) GETSTRUCT(variable->statsTuple);
	AttStatsSlot common = { 0 };
	AttStatsSlot bounds = { 0 };
	bool known = false;

	answer->share = 1 - statistics->stanullfrac;
	(void) get_attstatsslot(&common, variable->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
							ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	(void) get_attstatsslot(&bounds, variable->statsTuple, STATISTIC_KIND_HISTOGRAM, InvalidOid,
							ATTSTATSSLOT_VALUES);
	if ((common.nvalues == 0 || IsBinaryCoercible(common.valuetype, type)) &&
		(bounds.nvalues == 0 || IsBinaryCoercible(bounds.valuetype, type)) &&
		ask_common(asking, &common, answer))
	{
		if (bounds.nvalues > 0)
			known = ask_bounds(asking, &bounds, answer);
		else
			known = common.nvalues > 0 && common.nvalues == answer->ncommon;
	}
	free_attstatsslot(&common);
	free_attstatsslot(&bounds);
	return known;
}

/* Asks the index about the first ncolumns keys of a join. */
static void
ask_index(PlannerInfo *root, const GpudsJoinPlan *plan, int ncolumns, Answer *answer)
{
	VariableStatData variable;
	Asking asking;

	examine_variable(root, list_nth(plan->keys, ncolumns - 1), 0, &variable);
	/* As core, which compares the values that ANALYZE has seen only for those who may see them. */
	if (HeapTupleIsValid(variable.statsTuple) && variable.acl_ok && begin_asking(&asking, plan, ncolumns))
	{
		answer->known = ask_statistics(&asking, &variable, list_nth_oid(plan->types, ncolumns - 1), answer);
		gpuds_estimate_end(&asking.estimate);
	}
	ReleaseVariableStats(variable);
}

/* What the index says of a join's keys. */
static const Answer *
answer_of(PlannerInfo *root, const GpudsJoinPlan *plan, int ncolumns)
{
	List *keys = list_truncate(list_copy(plan->keys), ncolumns);
	MemoryContext scratch;
	MemoryContext old;
	Answer *answer;
	ListCell *lc;

	foreach (lc, known_answers(root))
	{
		answer = lfirst(lc);
		if (answer->root == root && answer->index == plan->index->indexoid && equal(answer->keys, keys))
			return answer;
	}
	scratch = AllocSetContextCreate(CurrentMemoryContext, "gpuds join keys", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(answers_context);
	answer = palloc0(sizeof(Answer));
	answer->root = root;
	answer->index = plan->index->indexoid;
	answer->keys = copyObject(keys);
	answers = lappend(answers, answer);
	MemoryContextSwitchTo(scratch);
	ask_index(root, plan, ncolumns, answer);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(scratch);
	return answer;
}

/* The share of an index's matches that conditions leave which it was not asked about. */
static Selectivity
share_of_others(PlannerInfo *root, const GpudsJoinPlan *plan, int ncolumns, SpecialJoinInfo *all_pairs)
{
	List *others = list_copy_tail(plan->conditions, ncolumns);

	return others ? clauselist_selectivity(root, others, 0, JOIN_INNER, all_pairs) : 1;
}

/* The keys that are of the outer side: those that tell its rows apart. */
static List *
outer_keys(const GpudsJoinPlan *plan)
{
	List *keys = NIL;
	ListCell *lc;

	foreach (lc, plan->keys)
	{
		if (!IsA(lfirst(lc), Const))
			keys = lappend(keys, lfirst(lc));
	}
	return keys;
}

/* Puts what the index says in the place of core's estimate; others: the share that other conditions leave. */
static void
take_answer(const Answer *answer, Selectivity others, GpudsJoinKeys *keys)
{
	GpudsJoinCommonKey *common = palloc(Max(answer->ncommon, 1) * sizeof(GpudsJoinCommonKey));

	for (int i = 0; i < answer->ncommon; i++)
	{
		common[i].share = answer->common[i].share;
		common[i].matches = answer->common[i].matches * others;
	}
	keys->common = common;
	keys->ncommon = answer->ncommon;
	keys->share = answer->share;
	keys->distinct = Max(keys->distinct - answer->ncommon, 1);
	if (answer->matches >= 0)
		keys->matches = answer->matches * others;
	keys->found = Min(answer->found, keys->matches);
	keys->known = true;
}

/* Each key comes once. */
static void
make_unique(GpudsJoinKeys *keys)
{
	GpudsJoinCommonKey *common = palloc(Max(keys->ncommon, 1) * sizeof(GpudsJoinCommonKey));

	for (int i = 0; i < keys->ncommon; i++)
	{
		common[i].share = 1 / keys->rows;
		common[i].matches = keys->common[i].matches;
	}
	keys->common = common;
	keys->distinct = Max(keys->rows - keys->ncommon, 1);
	keys->share = keys->distinct / Max(keys->rows, 1);
}

/*
 * Works out what the keys of so many outer rows find, which may be a part of all, for a worker.
 */
void
gpuds_join_keys(PlannerInfo *root, const GpudsJoinPlan *plan, const RelOptInfo *outer, double rows,
				GpudsJoinKeys *keys)
{
	SpecialJoinInfo all_pairs = { .type = T_SpecialJoinInfo, .jointype = JOIN_INNER };
	const int ncolumns = keys_to_ask(plan);
	const Answer *answer;
	Selectivity selectivity;

	/* Matches are counted as for an inner join, whatever the join is. */
	all_pairs.min_lefthand = all_pairs.syn_lefthand = outer->relids;
	all_pairs.min_righthand = all_pairs.syn_righthand = plan->inner->relids;
	selectivity = clauselist_selectivity(root, plan->conditions, 0, JOIN_INNER, &all_pairs);
	memset(keys, 0, sizeof(*keys));
	keys->rows = rows;
	keys->by_core = clamp_row_est(rows * selectivity * Max(plan->index->tuples, 1));
	keys->share = 1;
	keys->distinct = estimate_num_groups(root, outer_keys(plan), rows, NULL, NULL);
	keys->matches = keys->by_core / rows;
	keys->found = Min(keys->matches, 1);
	/* Nobody knows how many shapes are equal. */
	if (OidIsValid(plan->shape))
		keys->distinct = rows;
	if (outer->rows < FEW_ROWS || ncolumns == 0 || OidIsValid(plan->shape))
		return;
	answer = answer_of(root, plan, ncolumns);
	if (!answer->known)
		return;
	take_answer(answer, share_of_others(root, plan, ncolumns, &all_pairs), keys);
	if (plan->unique)
		make_unique(keys);
}
