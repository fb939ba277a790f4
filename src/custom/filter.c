/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  Conditions of a query that can be tested in the entries of an index.
 *
 * The planner asks whether a condition can be tested, the executor makes the filter; both see it as a tree of
 * AND, OR and NOT above conditions on one column each.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "am/am.h"
#include "custom/filter.h"
#include "index/index.h"

/* A condition on one column, or on none. */
typedef struct Condition
{
	const Var *var; /* NULL: a constant */

	/* a comparison, if there is a value */
	const Expr *value; /* that the column is compared with; NULL: none */
	StrategyNumber strategy;
	Oid type; /* of the value, or of its elements */
	bool array;
	bool negated;

	/* else: what is true of any value, and of a NULL */
	bool values;
	bool null;
} Condition;

/* An expression without what makes the value of a domain one of the type below it. */
const Expr *
gpuds_below_domain(const Expr *expr)
{
	while (IsA(expr, RelabelType) &&
		   getBaseType(exprType((const Node *) ((const RelabelType *) expr)->arg)) ==
			   getBaseType(((const RelabelType *) expr)->resulttype))
		expr = ((const RelabelType *) expr)->arg;
	return expr;
}

/* The column that an expression is; NULL: it is none. */
static const Var *
column_of(const Node *expr)
{
	const Var *var = (const Var *) gpuds_below_domain((const Expr *) expr);

	return IsA(var, Var) && var->varlevelsup == 0 && var->varattno > 0 ? var : NULL;
}

/* Is an expression the same for all rows of a scan? */
static bool
is_same_for_all(const Node *expr)
{
	return !contain_var_clause((Node *) expr) && !contain_volatile_functions((Node *) expr) &&
		   !contain_subplans((Node *) expr) && !contain_agg_clause((Node *) expr);
}

/*
 * The strategy of an operator in the default operator class of a type; the strategy of its negator, and
 * *negated, if it has none itself.  InvalidStrategy: neither has one.
 */
static StrategyNumber
strategy_of(Oid operator, Oid type, bool *negated)
{
	const Oid family = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	StrategyNumber strategy;

	if (!OidIsValid(operator) || !OidIsValid(family))
		return InvalidStrategy;
	strategy = get_op_opfamily_strategy(operator, family);
	if (strategy != InvalidStrategy)
		return strategy;
	operator= get_negator(operator);
	if (!OidIsValid(operator) || get_op_opfamily_strategy(operator, family) != BTEqualStrategyNumber)
		return InvalidStrategy;
	*negated = !*negated;
	return BTEqualStrategyNumber;
}

/* A comparison of a column with a value by an operator whose left side the column is. */
static bool
match_comparison(const Node *column, Oid operator, const Node * value, Condition *condition)
{
	condition->var = column_of(column);
	condition->value = (const Expr *) value;
	if (condition->var == NULL || !is_same_for_all(value))
		return false;
	condition->strategy = strategy_of(operator, getBaseType(condition->var->vartype), &condition->negated);
	return condition->strategy != InvalidStrategy;
}

static bool
match_operator(const OpExpr *expr, Condition *condition)
{
	const Node *left;
	const Node *right;

	if (list_length(expr->args) != 2)
		return false;
	left = linitial(expr->args);
	right = lsecond(expr->args);
	condition->type = exprType(right);
	if (column_of(left) && match_comparison(left, expr->opno, right, condition))
		return true;
	condition->type = exprType(left);
	return match_comparison(right, get_commutator(expr->opno), left, condition);
}

/*
 * Comparisons with any element of an array, and with all: x <> ALL is NOT x = ANY, x < ALL is NOT x >= ANY.
 */
static bool
match_array(const ScalarArrayOpExpr *expr, Condition *condition)
{
	const Node *array = lsecond(expr->args);
	const Oid operator= expr->useOr ? expr->opno : get_negator(expr->opno);
	bool negated;

	if (!expr->useOr)
		condition->negated = !condition->negated;
	negated = condition->negated;
	condition->type = get_element_type(getBaseType(exprType(array)));
	condition->array = true;
	return OidIsValid(condition->type) &&
		   match_comparison(linitial(expr->args), operator, array, condition) &&
		   condition->negated == negated;
}

/* A boolean column that must have a value. */
static bool
match_boolean(const Node *column, bool value, Condition *condition)
{
	condition->var = column_of(column);
	condition->value = (const Expr *) makeBoolConst(value, false);
	condition->strategy = BTEqualStrategyNumber;
	condition->type = BOOLOID;
	return condition->var && getBaseType(condition->var->vartype) == BOOLOID;
}

/* IS TRUE and so on: never NULL, so of a NULL it is true exactly if it is not under NOT. */
static bool
match_boolean_test(const BooleanTest *test, Condition *condition)
{
	const BoolTestType type = test->booltesttype;
	const bool unknown = type == IS_UNKNOWN || type == IS_NOT_UNKNOWN;
	const bool is_not = type == IS_NOT_TRUE || type == IS_NOT_FALSE || type == IS_NOT_UNKNOWN;

	if (!match_boolean((const Node *) test->arg, type == IS_TRUE || type == IS_NOT_TRUE, condition))
		return false;
	condition->negated ^= is_not;
	condition->null = condition->negated;
	if (!unknown)
		return true;
	condition->value = NULL;
	condition->values = condition->negated;
	condition->null = !condition->negated;
	return true;
}

static bool
match_null_test(const NullTest *test, Condition *condition)
{
	condition->var = column_of((const Node *) test->arg);
	condition->null = (test->nulltesttype == IS_NULL) != condition->negated;
	condition->values = !condition->null;
	return condition->var && !test->argisrow;
}

/* A condition that is true for all rows, or for none. */
static bool
match_constant(const Const *expr, Condition *condition)
{
	condition->values = condition->null = !expr->constisnull &&
										  DatumGetBool(expr->constvalue) != condition->negated;
	return expr->consttype == BOOLOID;
}

/* What a condition below AND, OR and NOT asks; false: not what can be tested. */
static bool
match_condition(const Node *expr, bool negated, Condition *condition)
{
	memset(condition, 0, sizeof(*condition));
	condition->negated = negated;
	switch (nodeTag(expr))
	{
		case T_OpExpr:
			return match_operator((const OpExpr *) expr, condition);
		case T_ScalarArrayOpExpr:
			return match_array((const ScalarArrayOpExpr *) expr, condition);
		case T_NullTest:
			return match_null_test((const NullTest *) expr, condition);
		case T_BooleanTest:
			return match_boolean_test((const BooleanTest *) expr, condition);
		case T_Const:
			return match_constant((const Const *) expr, condition);
		default:
			return match_boolean(expr, true, condition);
	}
}

/* Can an index's column be tested as a condition asks? */
static bool
index_can_test(const IndexOptInfo *index, Index relid, const Condition *condition, List **columns)
{
	const Var *var = condition->var;

	if (var == NULL)
		return true;
	for (int i = 0; var->varno == relid && i < index->ncolumns; i++)
	{
		const bool included = i >= index->nkeycolumns;

		if (index->indexkeys[i] != var->varattno)
			continue;
		*columns = lappend_int(*columns, condition->value ? i : -1);
		if (gpuds_index_is_lossy(index, i) && condition->value)
			return false;
		if (condition->value == NULL)
			return true;
		/* an included column's type is what the table has, so a domain is none that can be tested */
		if (included)
			return gpuds_key_can_test(var->vartype, true, condition->type);
		/* an operator class of a type that the column's can be cast to may order otherwise */
		return index->opcintype[i] == getBaseType(var->vartype) &&
			   gpuds_key_can_test(index->opcintype[i], false, condition->type);
	}
	return false;
}

/*
 * Can a condition be tested in the entries of an index of a table?  Adds the columns of the index whose
 * values are tested to a list, and -1 for a test of NULLs, which all entries have bits of.
 */
bool
gpuds_filter_can_test(const IndexOptInfo *index, Index relid, const Expr *condition, List **columns)
{
	const BoolExpr *expr = (const BoolExpr *) condition;
	Condition one;
	ListCell *lc;

	check_stack_depth();
	if (!IsA(expr, BoolExpr))
		return match_condition((const Node *) condition, false, &one) &&
			   index_can_test(index, relid, &one, columns);
	foreach (lc, expr->args)
	{
		if (!gpuds_filter_can_test(index, relid, lfirst(lc), columns))
			return false;
	}
	return true;
}

/*
 * Those of a table's clauses, RestrictInfos, that can be tested in the entries of an index without side
 * values.  *ntests: how many tests of a column they are.
 */
List *
gpuds_filter_of_entries(const IndexOptInfo *index, const List *clauses, int *ntests)
{
	List *tested = NIL;
	ListCell *lc;

	*ntests = 0;
	foreach (lc, clauses)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		List *columns = NIL;

		if (rinfo->pseudoconstant ||
			!gpuds_filter_can_test(index, index->rel->relid, rinfo->clause, &columns) ||
			gpuds_scan_side_bytes(index, columns) > 0)
			continue;
		tested = lappend(tested, lfirst(lc));
		*ntests += list_length(columns);
	}
	return tested;
}

static bool
collect_params(Node *node, void *arg)
{
	List **params = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Param))
	{
		*params = list_append_unique(*params, node);
		return false;
	}
	return expression_tree_walker(node, collect_params, arg);
}

/* The parameters that an expression depends on. */
List *
gpuds_filter_params(const Expr *expr)
{
	List *params = NIL;

	(void) collect_params((Node *) expr, &params);
	return params;
}

/* What filters are made for. */
typedef struct Maker
{
	const GpudsKeyLayout *layout;
	Relation index;
	PlanState *parent;
	/* TargetEntries that conditions have columns of; NIL: the table, or an index that is scanned alone */
	const List *tuple;
} Maker;

/* The index's column that a column of a plan is. */
static int
column_of_plan(const Maker *maker, const Var *var)
{
	const Form_pg_index form = maker->index->rd_index;

	if (maker->tuple != NIL)
		var = castNode(Var, list_nth_node(TargetEntry, maker->tuple, var->varattno - 1)->expr);
	/* An index-only scan has the index's columns. */
	if (var->varno == INDEX_VAR)
		return var->varattno - 1;
	for (int i = 0; i < form->indnatts; i++)
	{
		if (form->indkey.values[i] == var->varattno)
			return i;
	}
	elog(ERROR, "index \"%s\" has no column %d of its table", RelationGetRelationName(maker->index),
		 var->varattno);
}

/* A test that is made later. */
typedef struct LaterTest
{
	Maker maker;
	Condition condition;
} LaterTest;

/* Evaluates what a column is compared with, and makes the test. */
static void
make_test(GpudsRowFilter *filter)
{
	const LaterTest *later = filter->arg;
	const Maker *maker = &later->maker;
	const Condition *condition = &later->condition;
	GpudsKeyCondition comparison = { .strategy = condition->strategy,
									 .type = condition->type,
									 .array = condition->array,
									 .negated = condition->negated };
	ExprState *value;

	if (condition->value == NULL)
	{
		gpuds_key_test_null(maker->layout, filter->column, condition->values, condition->null, &filter->test);
		return;
	}
	/* Without a parent it is not compiled: it is evaluated once. */
	value = ExecInitExprWithParams((Expr *) condition->value, maker->parent->state->es_param_list_info);
	comparison.value = ExecEvalExpr(value, maker->parent->ps_ExprContext, &comparison.isnull);
	gpuds_key_test_compare(maker->layout, filter->column, &comparison, &filter->test);
	if (condition->null)
		filter->test.null = true;
}

/* Is the value of an expression at hand, so that no error can come of it? */
static bool
is_at_hand(const Node *value)
{
	return value == NULL || IsA(value, Const) ||
		   (IsA(value, Param) && ((const Param *) value)->paramkind == PARAM_EXTERN);
}

static GpudsRowFilter *
make_test_later(const Maker *maker, const Condition *condition)
{
	const int column = column_of_plan(maker, condition->var);
	const bool side = condition->value != NULL && gpuds_key_is_side(&maker->layout->column[column]);
	LaterTest *later = palloc(sizeof(LaterTest));

	later->maker = *maker;
	later->condition = *condition;
	return gpuds_row_filter_test(column, side, is_at_hand((const Node *) condition->value), make_test, later);
}

static GpudsRowFilter *
make_condition(const Maker *maker, const Node *expr, bool negated)
{
	Condition condition;

	if (!match_condition(expr, negated, &condition))
		elog(ERROR, "a condition of type %d cannot be tested in entries", (int) nodeTag(expr));
	if (condition.var == NULL)
		return gpuds_row_filter_join(condition.values ? GPUDS_FILTER_AND : GPUDS_FILTER_OR, NIL);
	return make_test_later(maker, &condition);
}

static GpudsRowFilter *make_filter(const Maker *maker, const Node *expr, bool negated);

/* AND or OR of a list; under NOT, the one becomes the other. */
static GpudsRowFilter *
make_join(const Maker *maker, const List *conditions, bool all, bool negated)
{
	List *filters = NIL;
	ListCell *lc;

	foreach (lc, conditions)
		filters = lappend(filters, make_filter(maker, lfirst(lc), negated));
	return gpuds_row_filter_join(all != negated ? GPUDS_FILTER_AND : GPUDS_FILTER_OR, filters);
}

static GpudsRowFilter *
make_filter(const Maker *maker, const Node *expr, bool negated)
{
	const BoolExpr *join = (const BoolExpr *) expr;

	check_stack_depth();
	if (IsA(expr, List))
		return make_join(maker, (const List *) expr, true, negated);
	if (!IsA(expr, BoolExpr))
		return make_condition(maker, expr, negated);
	if (join->boolop == NOT_EXPR)
		return make_filter(maker, linitial(join->args), !negated);
	return make_join(maker, join->args, join->boolop == AND_EXPR, negated);
}

/*
 * The filter of a condition, or of a list of conditions that must all hold, in the current memory context:
 * what gpuds_filter_can_test has seen of a plan's quals or aggregates.  When entries come, it evaluates what
 * columns are compared with, by the parameters that the plan state has then.
 */
GpudsRowFilter *
gpuds_filter_make(const Node *condition, const GpudsKeyLayout *layout, Relation index, PlanState *parent)
{
	const Maker maker = { .layout = layout, .index = index, .parent = parent };

	return make_filter(&maker, condition, false);
}

/* The same of conditions that have the table's columns from a scan tuple, by its target list. */
GpudsRowFilter *
gpuds_filter_make_of_tuple(const Node *condition, const List *tuple, const GpudsKeyLayout *layout,
						   Relation index, PlanState *parent)
{
	const Maker maker = { .layout = layout, .index = index, .parent = parent, .tuple = tuple };

	return make_filter(&maker, condition, false);
}
