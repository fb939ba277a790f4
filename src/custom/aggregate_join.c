/*-------------------------------------------------------------------------
 *
 * aggregate_join.c
 *	  Paths of aggregates of a table's rows that are joined with others: of a table of events, say, with one
 *	  of accounts.
 *
 * The table with the index, the fact, is aggregated before the join, by what it is joined by.  So only
 * groups are joined:
 *
 *	Finalize Aggregate, by what the query groups by
 *	  -> Hash Join
 *	       -> Custom Scan (GpudsAggregate), of PARTIAL aggregates by the join's columns
 *	       -> Seq Scan of the other table, or whatever core has for the others
 *
 * It is right because the rows of a group are joined with the same rows: each of the fact's columns that a
 * condition of the join names is one that rows are grouped by, and the condition is the equality of values
 * that groups are of.  If a group finds several rows, its aggregates count once for each, as its rows would.
 *
 * Core makes the paths of the join, for copies of its relations that have groups in the place of the fact.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/joininfo.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "custom/aggregate_path.h"
#include "custom/custom.h"
#include "custom/merge.h"

/* A join of a fact's groups. */
typedef struct GroupJoin
{
	PlannerInfo *root;
	RelOptInfo *input;       /* the join of rows that core has */
	SpecialJoinInfo *sjinfo; /* the outer join or semijoin whose left side the fact is; NULL: an inner join */
	List *others;            /* what groups are joined with, one after the other: RelOptInfo */
	List *clauses;           /* a list of the conditions for each: RestrictInfo */
	List *wanted_exprs;      /* what the grouped relation wants, with aggregates that are whole */
	PathTarget *target;      /* the same, with aggregates in parts */
	GpudsWanted wanted;      /* of the fact */
} GroupJoin;

/* Is the input of a grouped relation a join, and the query one whose groups may be joined? */
static bool
may_join_groups(PlannerInfo *root, const RelOptInfo *input, const GroupPathExtraData *extra)
{
	return input->reloptkind == RELOPT_JOINREL && !is_dummy_rel((RelOptInfo *) input) &&
		   gpuds_may_take_parts(root, extra) && !root->parse->hasTargetSRFs && !root->hasLateralRTEs &&
		   root->placeholder_list == NIL;
}

/* Might a table of a join be the fact? */
static bool
may_be_fact(PlannerInfo *root, RelOptInfo *rel)
{
	ListCell *lc;

	if (rel == NULL || rel->reloptkind != RELOPT_BASEREL || rel->rtekind != RTE_RELATION)
		return false;
	if (planner_rt_fetch(rel->relid, root)->inh)
		return true;
	foreach (lc, rel->indexlist)
	{
		if (gpuds_covering_is_ours(lfirst_node(IndexOptInfo, lc)))
			return gpuds_covering_is_table(root, rel);
	}
	return false;
}

/*
 * Finds out how the fact is joined; false: by an outer join or semijoin, without being all of its left side.
 * Joins among the others are core's.
 */
static bool
find_join_type(GroupJoin *join)
{
	const Relids fact = join->wanted.rel->relids;
	const Relids others = bms_difference(join->input->relids, fact);
	ListCell *lc;

	foreach (lc, join->root->join_info_list)
	{
		SpecialJoinInfo *sjinfo = lfirst_node(SpecialJoinInfo, lc);

		if (!bms_overlap(sjinfo->min_lefthand, fact) && !bms_overlap(sjinfo->min_righthand, fact) &&
			!bms_overlap(sjinfo->syn_righthand, fact))
			continue;
		if (join->sjinfo != NULL ||
			(sjinfo->jointype != JOIN_LEFT && sjinfo->jointype != JOIN_SEMI &&
			 sjinfo->jointype != JOIN_ANTI) ||
			!bms_equal(sjinfo->syn_lefthand, fact) ||
			!bms_equal(sjinfo->syn_righthand, bms_del_member(bms_copy(others), GpudsOuterJoinRelid(sjinfo))))
			return false;
		join->sjinfo = sjinfo;
	}
	return true;
}

/* What core has of these relations of the query; NULL: it does not join them. */
static RelOptInfo *
find_rel(PlannerInfo *root, Relids relids)
{
	int relid;
	RelOptInfo *rel = bms_get_singleton_member(relids, &relid) ? find_base_rel(root, relid)
															   : find_join_rel(root, relids);

	if (rel == NULL || rel->cheapest_total_path == NULL || rel->cheapest_total_path->param_info != NULL ||
		is_dummy_rel(rel))
		return NULL;
	return rel;
}

/* The table of some and those of others that conditions join it with, by way of one another. */
static Relids
connected(PlannerInfo *root, int first, Relids others)
{
	Relids found = bms_make_singleton(first);
	int relid = -1;

	/* Each that is found may lead to others, also to such as have been passed. */
	while ((relid = bms_next_member(others, relid)) >= 0)
	{
		int of = -1;

		while (!bms_is_member(relid, found) && (of = bms_next_member(found, of)) >= 0)
		{
			if (!have_relevant_joinclause(root, find_base_rel(root, of), find_base_rel(root, relid)))
				continue;
			found = bms_add_member(found, relid);
			relid = -1;
			break;
		}
	}
	return found;
}

/*
 * Finds the relations that the groups are to be joined with: all others in one if core joins them, else those
 * that are joined without the fact.  False: core does not join these.
 */
static bool
find_others(GroupJoin *join)
{
	PlannerInfo *root = join->root;
	Relids relids = bms_difference(join->input->relids, join->wanted.rel->relids);
	RelOptInfo *rel;

	if (join->sjinfo)
		relids = bms_del_member(relids, GpudsOuterJoinRelid(join->sjinfo));
	rel = find_rel(root, relids);
	if (rel != NULL || root->join_info_list != NIL)
	{
		join->others = list_make1(rel);
		return rel != NULL;
	}
	while (!bms_is_empty(relids))
	{
		Relids some = connected(root, bms_next_member(relids, -1), relids);

		rel = find_rel(root, some);
		if (rel == NULL)
			return false;
		join->others = lappend(join->others, rel);
		relids = bms_del_members(relids, some);
	}
	return true;
}

/* The relations that have been joined when the last of the others is one of them, or another one. */
static Relids
joined_relids(const GroupJoin *join, const RelOptInfo *left, const RelOptInfo *other)
{
	return other == llast(join->others) ? join->input->relids : bms_union(left->relids, other->relids);
}

/* Finds the conditions of each of the joins, as core does; false: there are some that none of them has. */
static bool
find_clauses(GroupJoin *join)
{
	RelOptInfo left = *join->wanted.rel;
	List *pending = list_copy(left.joininfo);
	ListCell *lc;

	foreach (lc, join->others)
	{
		RelOptInfo *other = lfirst(lc);
		Relids relids = joined_relids(join, &left, other);
		List *clauses = GpudsImpliedEqualities(join->root, relids, left.relids, other, join->sjinfo);
		ListCell *lc2;

		pending = list_union_ptr(pending, other->joininfo);
		foreach (lc2, pending)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (!bms_is_subset(rinfo->required_relids, relids))
				continue;
			clauses = lappend(clauses, rinfo);
			pending = foreach_delete_current(pending, lc2);
		}
		join->clauses = lappend(join->clauses, clauses);
		left.relids = relids;
	}
	return pending == NIL;
}

/* Adds a column that rows are to be grouped by, too; false: they are, but not by their type's equality. */
static bool
add_group(GpudsWanted *wanted, const Var *column)
{
	const Oid equality = lookup_type_cache(column->vartype, TYPECACHE_EQ_OPR)->eq_opr;
	ListCell *lc;
	ListCell *lc2;

	if (wanted->bucket && equal(column, wanted->bucket_column))
		return false;
	wanted->exprs = list_append_unique(wanted->exprs, (void *) column);
	forboth(lc, wanted->groups, lc2, wanted->operators)
	{
		if (equal(lfirst(lc), column))
			return lfirst_oid(lc2) == equality;
	}
	/* The column of a bucket stays the last. */
	wanted->groups = lcons((void *) column, wanted->groups);
	wanted->operators = lcons_oid(equality, wanted->operators);
	return OidIsValid(equality);
}

/*
 * The fact's column on one side of a condition: it is the equality of the column's type, or one of its
 * family, with something of others.  NULL: it is not.
 */
static const Var *
column_of_side(const RelOptInfo *fact, const RestrictInfo *rinfo, const Expr *side, Relids relids,
			   Relids other)
{
	const Var *column = gpuds_wanted_column(fact, side);
	Oid family;

	if (column == NULL || !bms_equal(relids, fact->relids) || bms_overlap(other, fact->relids))
		return NULL;
	family = lookup_type_cache(column->vartype, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	return list_member_oid(rinfo->mergeopfamilies, family) ? column : NULL;
}

/* Groups rows by the fact's column in a join's condition, too; false: it is no such condition. */
static bool
take_clause(GroupJoin *join, RestrictInfo *rinfo)
{
	const RelOptInfo *fact = join->wanted.rel;
	const OpExpr *expr = (const OpExpr *) rinfo->clause;
	const Var *column;

	if (contain_volatile_functions((Node *) rinfo) || GpudsHasClones(rinfo))
		return false;
	if (!bms_overlap(rinfo->clause_relids, fact->relids))
		return true;
	if (!IsA(expr, OpExpr) || list_length(expr->args) != 2)
		return false;
	column = column_of_side(fact, rinfo, linitial(expr->args), rinfo->left_relids, rinfo->right_relids);
	if (column == NULL)
		column = column_of_side(fact, rinfo, lsecond(expr->args), rinfo->right_relids, rinfo->left_relids);
	return column != NULL && add_group(&join->wanted, column);
}

static bool
take_clauses(GroupJoin *join)
{
	ListCell *lc;
	ListCell *lc2;

	foreach (lc, join->clauses)
	{
		foreach (lc2, (List *) lfirst(lc))
		{
			if (!take_clause(join, lfirst_node(RestrictInfo, lc2)))
				return false;
		}
	}
	return true;
}

/* How many members of an equivalence class name the fact; *column: one of them, if that is a column. */
static int
count_members(const RelOptInfo *fact, const EquivalenceClass *ec, const Var **column)
{
	int n = 0;
	ListCell *lc;

	foreach (lc, ec->ec_members)
	{
		const EquivalenceMember *member = lfirst_node(EquivalenceMember, lc);

		if (member->em_is_child || !bms_overlap(member->em_relids, fact->relids))
			continue;
		n++;
		if (gpuds_wanted_column(fact, member->em_expr))
			*column = gpuds_wanted_column(fact, member->em_expr);
	}
	return n;
}

/*
 * Looks at the columns of the fact that are equal to something else; false: two of them are equal to
 * something of the others, and a scan of these might ask for the one that rows are not grouped by.  If rows
 * are grouped by none, a column that is the same in all of them is taken: without a group there is no row
 * then, as the query groups by something.
 */
static bool
take_classes(GroupJoin *join)
{
	const RelOptInfo *fact = join->wanted.rel;
	const Var *constant = NULL;
	ListCell *lc;

	foreach (lc, join->root->eq_classes)
	{
		const EquivalenceClass *ec = lfirst_node(EquivalenceClass, lc);
		const Var *column = NULL;
		int n;

		if (!bms_overlap(ec->ec_relids, fact->relids))
			continue;
		n = count_members(fact, ec, &column);
		if (ec->ec_has_const)
			constant = constant ? constant : column;
		else if (n > 1 && !bms_is_subset(ec->ec_relids, fact->relids))
			return false;
	}
	if (join->wanted.groups != NIL || join->root->parse->groupClause == NIL)
		return true;
	return constant != NULL && add_group(&join->wanted, constant);
}

/* Adds what an expression above the groups wants to wanted_exprs, where the query's groups are already. */
static bool
collect_expr(Node *node, void *arg)
{
	GroupJoin *join = arg;

	if (node == NULL || list_member(join->wanted_exprs, node))
		return false;
	if (IsA(node, Aggref) || IsA(node, Var))
	{
		join->wanted_exprs = lappend(join->wanted_exprs, node);
		return false;
	}
	/* Core's node that has the grouping sets knows which of them a row is of. */
	if (IsA(node, GroupingFunc))
		return join->root->parse->groupingSets == NIL;
	if (IsA(node, PlaceHolderVar) || IsA(node, WindowFunc))
		return true;
	return expression_tree_walker(node, collect_expr, arg);
}

/* Finds out what the grouped relation wants of the join; false: something that groups have not. */
static bool
make_target(GroupJoin *join, const RelOptInfo *output, Node *having)
{
	PlannerInfo *root = join->root;
	ListCell *lc;

	join->target = create_empty_pathtarget();
	foreach (lc, GpudsGroupClause(root))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Expr *expr = (Expr *) GpudsBelowGrouping(root,
												 get_sortgroupclause_expr(clause, root->processed_tlist));

		add_column_to_pathtarget(join->target, expr, clause->tleSortGroupRef);
		join->wanted_exprs = lappend(join->wanted_exprs, expr);
	}
	if (collect_expr(GpudsBelowGrouping(root, (Node *) output->reltarget->exprs), join) ||
		collect_expr(GpudsBelowGrouping(root, having), join) ||
		contain_volatile_functions((Node *) join->wanted_exprs))
		return false;
	foreach (lc, join->wanted_exprs)
	{
		Expr *expr = lfirst(lc);

		if (IsA(expr, Aggref))
			expr = gpuds_aggregate_part_of((const Aggref *) expr);
		add_new_column_to_pathtarget(join->target, expr);
	}
	set_pathtarget_cost_width(root, join->target);
	return true;
}

/* Groups the fact's rows by what the query groups by; false: something is of the fact and of others. */
static bool
take_groups(GroupJoin *join)
{
	PlannerInfo *root = join->root;
	const Relids fact = join->wanted.rel->relids;
	List *clauses = NIL;
	ListCell *lc;

	foreach (lc, GpudsGroupClause(root))
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		Relids relids = pull_varnos(
			root, GpudsBelowGrouping(root, get_sortgroupclause_expr(clause, root->processed_tlist)));

		if (!bms_overlap(relids, fact))
			continue;
		if (!bms_equal(relids, fact))
			return false;
		clauses = lappend(clauses, clause);
	}
	return gpuds_wanted_collect_groups(&join->wanted, clauses);
}

/* Adds aggregates and columns that are wanted of the fact; false: an aggregate is of others, too. */
static bool
take_exprs(GroupJoin *join)
{
	GpudsWanted *wanted = &join->wanted;
	ListCell *lc;

	foreach (lc, join->wanted_exprs)
	{
		Node *expr = lfirst(lc);
		Relids relids = pull_varnos(join->root, expr);

		if (IsA(expr, Aggref))
		{
			const Aggref *aggref = (const Aggref *) expr;

			if (!bms_is_subset(relids, wanted->rel->relids) || aggref->aggdistinct != NIL ||
				aggref->aggorder != NIL)
				return false;
			wanted->exprs = lappend(wanted->exprs, expr);
		}
		else if (!bms_overlap(relids, wanted->rel->relids) || (wanted->bucket && equal(expr, wanted->bucket)))
			continue;
		else if (list_member(wanted->groups, expr))
			wanted->exprs = list_append_unique(wanted->exprs, expr);
		else if (!IsA(expr, Var) || !add_group(wanted, (const Var *) expr))
			return false;
	}
	return true;
}

/* The path of the fact's groups, and parts of aggregates; NULL: no index has all that is wanted. */
static Path *
groups_path(const GroupJoin *join)
{
	GpudsWanted wanted = join->wanted;
	PathTarget *target = create_empty_pathtarget();
	ListCell *lc;

	foreach (lc, wanted.exprs)
	{
		Expr *expr = lfirst(lc);

		if (IsA(expr, Aggref))
			expr = gpuds_aggregate_part_of((const Aggref *) expr);
		add_column_to_pathtarget(target, expr, 0);
	}
	set_pathtarget_cost_width(join->root, target);
	wanted.exprs = target->exprs;
	return wanted.exprs != NIL ? gpuds_wanted_parts_path(&wanted, target) : NULL;
}

/* A relation like another one, with nothing but what the caller gives it. */
static RelOptInfo *
make_rel(const RelOptInfo *like, Relids relids, PathTarget *target)
{
	RelOptInfo *rel = makeNode(RelOptInfo);

	*rel = *like;
	rel->relids = relids;
	rel->reltarget = target;
	rel->pathlist = rel->partial_pathlist = rel->ppilist = NIL;
	rel->indexlist = rel->unique_for_rels = rel->non_unique_for_rels = NIL;
	rel->cheapest_startup_path = rel->cheapest_total_path = NULL;
	rel->cheapest_parameterized_paths = NIL;
	rel->consider_parallel = false;
	rel->consider_partitionwise_join = false;
	rel->fdwroutine = NULL;
	return rel;
}

/* The relation of the fact's groups. */
static RelOptInfo *
make_groups(const GroupJoin *join, Path *path)
{
	RelOptInfo *rel = make_rel(join->wanted.rel, join->wanted.rel->relids, path->pathtarget);

	path->parent = rel;
	rel->rows = path->rows;
	add_path(rel, path);
	set_cheapest(rel);
	return rel;
}

/* What core has to know of an inner join of two relations. */
static SpecialJoinInfo *
inner_join(const RelOptInfo *left, const RelOptInfo *right)
{
	SpecialJoinInfo *sjinfo = makeNode(SpecialJoinInfo);

	sjinfo->min_lefthand = sjinfo->syn_lefthand = left->relids;
	sjinfo->min_righthand = sjinfo->syn_righthand = right->relids;
	sjinfo->jointype = JOIN_INNER;
	return sjinfo;
}

/* What the next join has of the ones before, if it is not the last one. */
static PathTarget *
intermediate_target(PlannerInfo *root, const RelOptInfo *left, const RelOptInfo *right)
{
	PathTarget *target = copy_pathtarget(left->reltarget);

	add_new_columns_to_pathtarget(target, right->reltarget->exprs);
	return set_pathtarget_cost_width(root, target);
}

/* Joins groups with another relation; NULL: core has no way. */
static RelOptInfo *
join_with(const GroupJoin *join, RelOptInfo *left, RelOptInfo *right, List *clauses)
{
	PlannerInfo *root = join->root;
	SpecialJoinInfo *sjinfo = join->sjinfo ? join->sjinfo : inner_join(left, right);
	PathTarget *target = right == llast(join->others) ? join->target : intermediate_target(root, left, right);
	RelOptInfo *joined = make_rel(join->input, joined_relids(join, left, right), target);

	set_joinrel_size_estimates(root, joined, left, right, sjinfo, clauses);
	add_paths_to_joinrel(root, joined, left, right, sjinfo->jointype, sjinfo, clauses);
	if (sjinfo->jointype == JOIN_INNER || sjinfo->jointype == JOIN_LEFT)
		add_paths_to_joinrel(root, joined, right, left,
							 sjinfo->jointype == JOIN_LEFT ? JOIN_RIGHT : JOIN_INNER, sjinfo, clauses);
	if (joined->pathlist == NIL)
		return NULL;
	set_cheapest(joined);
	/* A path with parameters of tables that are joined later would not have all their conditions. */
	return joined->cheapest_total_path->param_info == NULL ? joined : NULL;
}

/* Adds paths that join groups and put their parts together, beginning with a path of the fact's groups. */
static void
add_paths(const GroupJoin *join, Path *groups, RelOptInfo *output, const GroupPathExtraData *extra)
{
	PlannerInfo *root = join->root;
	RelOptInfo *rel = make_groups(join, groups);
	List *exprs = get_sortgrouplist_exprs(GpudsGroupClause(root), root->processed_tlist);
	ListCell *lc;
	ListCell *lc2;

	forboth(lc, join->others, lc2, join->clauses)
	{
		rel = join_with(join, rel, lfirst(lc), lfirst(lc2));
		if (rel == NULL)
			return;
	}
	gpuds_add_final_paths(root, output, rel->cheapest_total_path,
						  estimate_num_groups(root, exprs, join->input->rows, NULL, NULL), extra);
}

/* Adds paths with a table of the join as the fact, if it may be that. */
static void
add_fact_paths(PlannerInfo *root, RelOptInfo *fact, RelOptInfo *input, RelOptInfo *output,
			   const GroupPathExtraData *extra)
{
	GroupJoin join = { .root = root,
					   .input = input,
					   .wanted = { .root = root, .rel = fact, .distinct = true } };
	Path *groups;

	if (!find_join_type(&join) || !find_others(&join) || !find_clauses(&join))
		return;
	if (list_length(join.others) == 1 && root->parse->groupingSets == NIL)
		gpuds_merge_paths(root, fact, linitial(join.others), join.sjinfo, linitial(join.clauses), input->rows,
						  output, extra);
	if (!make_target(&join, output, extra->havingQual) || !take_groups(&join) || !take_exprs(&join) ||
		!take_clauses(&join) || !take_classes(&join))
		return;
	groups = groups_path(&join);
	if (groups != NULL)
		add_paths(&join, groups, output, extra);
}

/*
 * Adds paths to the grouped relation output if input is a join, and an index has all that is wanted of one of
 * its tables: the columns that it is joined by, conditions, and all aggregates.
 */
void
gpuds_aggregate_join_paths(PlannerInfo *root, RelOptInfo *input, RelOptInfo *output,
						   const GroupPathExtraData *extra)
{
	int relid = -1;

	if (!may_join_groups(root, input, extra))
		return;
	while ((relid = bms_next_member(input->relids, relid)) >= 0)
	{
		RelOptInfo *rel = root->simple_rel_array[relid];

		if (may_be_fact(root, rel))
			add_fact_paths(root, rel, input, output, extra);
	}
}
