/*-------------------------------------------------------------------------
 *
 * aggregate_case.c
 *	  Aggregates of CASE WHEN condition THEN value [ELSE constant] END: what a row adds depends on a
 *	  condition.
 *
 * Without ELSE this is a FILTER: aggregates leave out NULLs.  With it, the rows that do not pass add the
 * constant.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"

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

/*
 * What an aggregate's argument is if it is such a CASE; false: it is not.  The value is a constant or a
 * column, an integer unless values are only counted.
 */
bool
gpuds_aggregate_case(const Aggref *aggref, GpudsAggregateCase *parts)
{
	const CaseExpr *expr;
	const CaseWhen *when;

	memset(parts, 0, sizeof(*parts));
	if (list_length(aggref->args) != 1)
		return false;
	expr = (const CaseExpr *) linitial_node(TargetEntry, aggref->args)->expr;
	if (!IsA(expr, CaseExpr) || expr->arg != NULL || list_length(expr->args) != 1)
		return false;
	when = linitial_node(CaseWhen, expr->args);
	parts->condition = when->expr;
	parts->type = expr->casetype;
	if (IsA(when->result, Const) && !is_null(when->result))
		parts->value = (const Const *) when->result;
	else if (!IsA(when->result, Var))
		return false;
	else
		parts->column = (const Var *) when->result;
	/* Digits behind the point are shown of a number's column, and of a constant as many as it has. */
	if (is_null(expr->defresult))
		return aggref->aggfnoid == F_COUNT_ANY || is_integer(parts->type) ||
			   (parts->type == NUMERICOID && parts->column);
	if (!IsA(expr->defresult, Const) || aggref->aggfilter || aggref->aggfnoid == F_COUNT_ANY)
		return false;
	parts->other = (const Const *) expr->defresult;
	return is_integer(parts->type);
}

/* The bits that a column has for an integer of a type. */
uint64
gpuds_aggregate_bits(const AggColumn *column, const Const *value)
{
	const uint64 code = (uint64) gpuds_bucket_number(value->consttype, value->constvalue) +
						(UINT64CONST(1) << (column->bits - 1));

	return (column->bits == 64 ? code : code & ((UINT64CONST(1) << column->bits) - 1)) ^ column->flip;
}
