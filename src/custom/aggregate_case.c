/*-------------------------------------------------------------------------
 *
 * aggregate_case.c
 *	  Aggregates of CASE WHEN condition THEN value [ELSE constant] END, and of what says the same: what a
 *	  row adds depends on a condition.
 *
 * Without ELSE this is a FILTER: aggregates leave out NULLs.  With it, the rows that do not pass add the
 * constant.  PostgreSQL shows as many digits of a sum of numbers as the one of them has that has the most, so
 * these rows are counted, and the constant is added that many times to the sum of the others.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"

#include "custom/aggregate.h"

static bool
is_null(const Expr *expr)
{
	return expr == NULL || (IsA(expr, Const) && ((const Const *) expr)->constisnull);
}

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* Is an aggregate made of a sum of numbers, and of how many there are? */
static bool
adds_numbers(const Aggref *aggref)
{
	return aggref->aggfnoid == F_SUM_NUMERIC || aggref->aggfnoid == F_AVG_NUMERIC;
}

static bool
adds_floats(const Aggref *aggref)
{
	return aggref->aggfnoid == F_SUM_FLOAT8 || aggref->aggfnoid == F_AVG_FLOAT8 ||
		   aggref->aggfnoid == F_AVG_FLOAT4;
}

/* A constant is NULL or not that of a number, or it is finite. */
static bool
is_finite(const Const *constant)
{
	Numeric number;

	if (constant == NULL || constant->consttype != NUMERICOID)
		return true;
	number = DatumGetNumeric(constant->constvalue);
	return !numeric_is_nan(number) && !numeric_is_inf(number);
}

/* Can an aggregate add what rows have by the parts of a CASE, of which those that do not pass have NULL? */
static bool
can_add_values(const Aggref *aggref, const GpudsAggregateCase *parts)
{
	return parts->column || aggref->aggfnoid == F_COUNT_ANY || is_integer(parts->type) ||
		   (adds_numbers(aggref) && is_finite(parts->value));
}

/* The same if those have a constant. */
static bool
can_add_others(const Aggref *aggref, const GpudsAggregateCase *parts)
{
	if (aggref->aggfilter || aggref->aggfnoid == F_COUNT_ANY)
		return false;
	return is_integer(parts->type) || (adds_floats(aggref) && parts->column) ||
		   (adds_numbers(aggref) && is_finite(parts->value) && is_finite(parts->other));
}

/* Puts what is compared in the place where a simple CASE compares it. */
static Node *
compare(Node *node, void *arg)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, CaseTestExpr))
		return copyObject((Node *) arg);
	/* A CASE within the condition has comparisons of its own; none of these can be tested. */
	return IsA(node, CaseExpr) ? node : expression_tree_mutator(node, compare, arg);
}

/* CASE with one WHEN; CASE column WHEN value is CASE WHEN column = value. */
static bool
take_case(const CaseExpr *expr, GpudsAggregateCase *parts, const Expr **value, const Expr **other)
{
	const CaseWhen *when = linitial_node(CaseWhen, expr->args);

	parts->type = expr->casetype;
	parts->condition = expr->arg ? (Expr *) compare((Node *) when->expr, expr->arg) : when->expr;
	*value = when->result;
	*other = expr->defresult;
	return list_length(expr->args) == 1;
}

/* COALESCE(column, constant) is CASE WHEN column IS NOT NULL THEN column ELSE constant END. */
static bool
take_coalesce(const CoalesceExpr *expr, GpudsAggregateCase *parts, const Expr **value, const Expr **other)
{
	NullTest *test = makeNode(NullTest);

	test->arg = linitial(expr->args);
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	parts->type = expr->coalescetype;
	parts->condition = (Expr *) test;
	*value = linitial(expr->args);
	*other = llast(expr->args);
	return list_length(expr->args) == 2 && IsA(*value, Var);
}

/* NULLIF(column, constant) is CASE WHEN NOT column = constant THEN column END: NULLs are left out anyway. */
static bool
take_nullif(const NullIfExpr *expr, GpudsAggregateCase *parts, const Expr **value, const Expr **other)
{
	const Const *constant = lsecond(expr->args);
	Expr *equal = make_opclause(expr->opno, BOOLOID, false, linitial(expr->args), lsecond(expr->args),
								InvalidOid, expr->inputcollid);

	((OpExpr *) equal)->opfuncid = expr->opfuncid;
	parts->type = exprType(linitial(expr->args));
	parts->condition = make_notclause(equal);
	*value = linitial(expr->args);
	*other = NULL;
	return IsA(*value, Var) && IsA(constant, Const) && !constant->constisnull;
}

/* The same of any of them. */
static bool
take(const Expr *expr, GpudsAggregateCase *parts, const Expr **value, const Expr **other)
{
	switch (nodeTag(expr))
	{
		case T_CaseExpr:
			return take_case((const CaseExpr *) expr, parts, value, other);
		case T_CoalesceExpr:
			return take_coalesce((const CoalesceExpr *) expr, parts, value, other);
		case T_NullIfExpr:
			return take_nullif((const NullIfExpr *) expr, parts, value, other);
		default:
			return false;
	}
}

/*
 * What an aggregate's argument is if it is such a CASE; false: it is not.  The value is a constant or a
 * column.
 */
bool
gpuds_aggregate_case(const Aggref *aggref, GpudsAggregateCase *parts)
{
	const Expr *value;
	const Expr *other;

	memset(parts, 0, sizeof(*parts));
	if (list_length(aggref->args) != 1 ||
		!take(linitial_node(TargetEntry, aggref->args)->expr, parts, &value, &other))
		return false;
	if (IsA(value, Const) && !is_null(value))
		parts->value = (const Const *) value;
	else if (!IsA(value, Var))
		return false;
	else
		parts->column = (const Var *) value;
	if (is_null(other))
		return can_add_values(aggref, parts);
	parts->other = (const Const *) other;
	return IsA(other, Const) && can_add_others(aggref, parts);
}

/* Is an aggregate of a kind the sum or average of numbers of a CASE that has a constant? */
bool
gpuds_aggregate_adds_case(GpudsAggregateKind kind, const GpudsAggregateCase *parts)
{
	return parts->type == NUMERICOID && (parts->value || parts->other) && kind != GPUDS_COUNT;
}

static uint64
bits_of_float(const Const *value)
{
	union
	{
		float8 value;
		uint64 bits;
	} f8 = { 0 };
	union
	{
		float4 value;
		uint32 bits;
	} f4 = { 0 };

	if (value->consttype == FLOAT4OID)
	{
		f4.value = DatumGetFloat4(value->constvalue);
		return f4.bits;
	}
	f8.value = DatumGetFloat8(value->constvalue);
	return f8.bits;
}

/* The bits that a column has for an integer or a floating-point number of a type. */
uint64
gpuds_aggregate_bits(const AggColumn *column, const Const *value)
{
	uint64 code;

	if (agg_column_is_float(column))
		return bits_of_float(value);
	code = (uint64) gpuds_bucket_number(value->consttype, value->constvalue) +
		   (UINT64CONST(1) << (column->bits - 1));
	return (column->bits == 64 ? code : code & ((UINT64CONST(1) << column->bits) - 1)) ^ column->flip;
}
