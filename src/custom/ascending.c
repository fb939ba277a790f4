/*-------------------------------------------------------------------------
 *
 * ascending.c
 *	  Functions of a column that never descend as the column ascends.
 *
 * They are functions of PostgreSQL with constants for all arguments but one, and such functions of each
 * other.  Whether a function ascends may depend on its constants.  They must also be such that it
 * raises no error for a value of the column that no row has, because it may be evaluated for any, or
 * for any that is neither very low nor very high.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/scansup.h"
#include "utils/array.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "custom/ascending.h"

/* Thresholds of variable width that width_bucket may walk, one after the other. */
#define MOST_WALKED 64

/* What a function ascends over. */
typedef enum AscendingOver
{
	OVER_ALL,   /* all values */
	OVER_ROWS,  /* all values within gpuds_ascending_limits */
	OVER_OFFSET /* as OVER_ROWS, as long as the zone's offset from UTC stays the same */
} AscendingOver;

typedef struct AscendingFunction
{
	Oid oid;
	int argument; /* that it ascends with */
	AscendingOver over;
	/* Are the constants among its arguments what it takes?  NULL: any are that are not NULL. */
	bool (*is_fit)(const List *args);
} AscendingFunction;

static Datum
constant(const List *args, int at)
{
	return list_nth_node(Const, args, at)->constvalue;
}

/* The unit that the first argument, a constant, names (DTK_YEAR); -1: it names none. */
int
gpuds_ascending_unit(const List *args)
{
	text *unit = DatumGetTextPP(constant(args, 0));
	char *name = downcase_truncate_identifier(VARDATA_ANY(unit), VARSIZE_ANY_EXHDR(unit), false);
	int which;
	int type = DecodeUnits(0, name, &which);

	/* where extract looks as well */
	if (type == UNKNOWN_FIELD)
		type = DecodeSpecial(0, name, &which);
	return type == UNITS ? which : -1;
}

/* Is it a field of a date that is not a part of another one? */
static bool
is_year(const List *args)
{
	switch (gpuds_ascending_unit(args))
	{
		case DTK_YEAR:
		case DTK_DECADE:
		case DTK_CENTURY:
		case DTK_MILLENNIUM:
			return true;
		default:
			return false;
	}
}

/* Is it a unit of date_trunc that is made of days? */
static bool
is_unit_of_days(const List *args)
{
	switch (gpuds_ascending_unit(args))
	{
		case DTK_DAY:
		case DTK_WEEK:
		case DTK_MONTH:
		case DTK_QUARTER:
			return true;
		default:
			return is_year(args);
	}
}

/* Is it a unit of date_trunc? */
static bool
is_unit(const List *args)
{
	switch (gpuds_ascending_unit(args))
	{
		case DTK_MICROSEC:
		case DTK_MILLISEC:
		case DTK_SECOND:
		case DTK_MINUTE:
		case DTK_HOUR:
			return true;
		default:
			return is_unit_of_days(args);
	}
}

/* The same of arguments that may be anything. */
bool
gpuds_ascending_is_unit(const List *args)
{
	const Const *unit = linitial(args);

	return IsA(unit, Const) && !unit->constisnull && is_unit(args);
}

/* The width of date_bin's bins in microseconds. */
static int128
stride_of(const List *args)
{
	const Interval *stride = DatumGetIntervalP(constant(args, 0));

	return (int128) stride->day * USECS_PER_DAY + stride->time;
}

static Timestamp
origin_of(const List *args)
{
	return DatumGetTimestamp(constant(args, 2));
}

/* Are a stride and an origin those of bins? */
static bool
are_bins(const List *args)
{
	int128 stride = stride_of(args);

	return DatumGetIntervalP(constant(args, 0))->month == 0 && stride > 0 && stride <= PG_INT64_MAX &&
		   !TIMESTAMP_NOT_FINITE(origin_of(args));
}

static bool
is_positive_divisor(const List *args)
{
	switch (list_nth_node(Const, args, 1)->consttype)
	{
		case INT2OID:
			return DatumGetInt16(constant(args, 1)) > 0;
		case INT4OID:
			return DatumGetInt32(constant(args, 1)) > 0;
		default:
			return DatumGetInt64(constant(args, 1)) > 0;
	}
}

/* Does a shift leave bits of the number? */
static bool
is_shift(const List *args)
{
	int32 shift = DatumGetInt32(constant(args, 1));

	return shift >= 0 && shift < get_typlen(exprType(linitial(args))) * BITS_PER_BYTE;
}

/* The number behind the last bucket must be an integer, too. */
static bool
is_count(const List *args)
{
	int32 count = DatumGetInt32(constant(args, 3));

	return count > 0 && count < PG_INT32_MAX;
}

/* Each step of the calculation is rounded, so it ascends as long as no product overflows. */
static bool
are_float8_bounds(const List *args)
{
	float8 lo = DatumGetFloat8(constant(args, 1));
	float8 hi = DatumGetFloat8(constant(args, 2));

	return is_count(args) && isfinite(lo) && isfinite(hi) && lo < hi &&
		   isfinite((hi - lo) * DatumGetInt32(constant(args, 3)));
}

static bool
is_finite(Datum number)
{
	return !numeric_is_nan(DatumGetNumeric(number)) && !numeric_is_inf(DatumGetNumeric(number));
}

static bool
are_numeric_bounds(const List *args)
{
	Datum lo = constant(args, 1);
	Datum hi = constant(args, 2);

	return is_count(args) && is_finite(lo) && is_finite(hi) &&
		   DatumGetBool(DirectFunctionCall2(numeric_lt, lo, hi));
}

static bool
is_sorted(TypeCacheEntry *type, const Datum *values, int n)
{
	for (int i = 1; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (DatumGetInt32(FunctionCall2(&type->cmp_proc_finfo, values[i - 1], values[i])) > 0)
			return false;
	}
	return true;
}

/* Is an array one of thresholds, ascending ones? */
static bool
are_thresholds(const List *args)
{
	ArrayType *array = DatumGetArrayTypeP(constant(args, 1));
	TypeCacheEntry *type = lookup_type_cache(ARR_ELEMTYPE(array), TYPECACHE_CMP_PROC_FINFO);
	Datum *values;
	int n;

	if (ARR_NDIM(array) > 1 || array_contains_nulls(array) || !OidIsValid(type->cmp_proc_finfo.fn_oid))
		return false;
	if (type->typlen < 0 && ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > MOST_WALKED)
		return false;
	deconstruct_array(array, type->type_id, type->typlen, type->typbyval, type->typalign, &values, NULL, &n);
	return is_sorted(type, values, n);
}

static const AscendingFunction functions[] = {
	{ F_DATE_TRUNC_TEXT_TIMESTAMP, 1, OVER_ROWS, is_unit },
	{ F_DATE_TRUNC_TEXT_TIMESTAMPTZ, 1, OVER_OFFSET, is_unit },
	{ F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP, 1, OVER_ROWS, are_bins },
	{ F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ, 1, OVER_ROWS, are_bins },
	{ F_DATE_TIMESTAMP, 0, OVER_ALL, NULL },
	{ F_DATE_TIMESTAMPTZ, 0, OVER_OFFSET, NULL },
	{ F_EXTRACT_TEXT_DATE, 1, OVER_ALL, is_year },
	{ F_EXTRACT_TEXT_TIMESTAMP, 1, OVER_ALL, is_year },
	{ F_EXTRACT_TEXT_TIMESTAMPTZ, 1, OVER_OFFSET, is_year },
	{ F_DATE_PART_TEXT_TIMESTAMP, 1, OVER_ALL, is_year },
	{ F_DATE_PART_TEXT_TIMESTAMPTZ, 1, OVER_OFFSET, is_year },
	{ F_INT2DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT24DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT28DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT4DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT42DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT48DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT8DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT82DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT84DIV, 0, OVER_ALL, is_positive_divisor },
	{ F_INT2SHR, 0, OVER_ALL, is_shift },
	{ F_INT4SHR, 0, OVER_ALL, is_shift },
	{ F_INT8SHR, 0, OVER_ALL, is_shift },
	{ F_WIDTH_BUCKET_FLOAT8_FLOAT8_FLOAT8_INT4, 0, OVER_ALL, are_float8_bounds },
	{ F_WIDTH_BUCKET_NUMERIC_NUMERIC_NUMERIC_INT4, 0, OVER_ALL, are_numeric_bounds },
	{ F_WIDTH_BUCKET_ANYCOMPATIBLE_ANYCOMPATIBLEARRAY, 0, OVER_ALL, are_thresholds },
};

/* Casts that keep the order of all integers, though not all distances.  They make no groups of their own. */
static const AscendingFunction casts[] = {
	{ F_INT4_INT2, 0, OVER_ALL, NULL },    { F_INT8_INT2, 0, OVER_ALL, NULL },
	{ F_INT8_INT4, 0, OVER_ALL, NULL },    { F_FLOAT4_INT2, 0, OVER_ALL, NULL },
	{ F_FLOAT4_INT4, 0, OVER_ALL, NULL },  { F_FLOAT4_INT8, 0, OVER_ALL, NULL },
	{ F_FLOAT8_INT2, 0, OVER_ALL, NULL },  { F_FLOAT8_INT4, 0, OVER_ALL, NULL },
	{ F_FLOAT8_INT8, 0, OVER_ALL, NULL },  { F_NUMERIC_INT2, 0, OVER_ALL, NULL },
	{ F_NUMERIC_INT4, 0, OVER_ALL, NULL }, { F_NUMERIC_INT8, 0, OVER_ALL, NULL },
};

static const AscendingFunction *
find_in(const AscendingFunction *table, int n, Oid oid)
{
	for (int i = 0; i < n; i++)
	{
		if (table[i].oid == oid)
			return &table[i];
	}
	return NULL;
}

static Oid
function_of(const Expr *expr)
{
	if (IsA(expr, FuncExpr))
		return ((const FuncExpr *) expr)->funcid;
	return IsA(expr, OpExpr) ? get_opcode(((const OpExpr *) expr)->opno) : InvalidOid;
}

/* The arguments of an expression's function, which it has. */
static const List *
args_of(const Expr *expr)
{
	return IsA(expr, FuncExpr) ? ((const FuncExpr *) expr)->args : ((const OpExpr *) expr)->args;
}

/* An expression's function, if it is in the tables above; else NULL. */
static const AscendingFunction *
find(const Expr *expr)
{
	Oid oid = function_of(expr);
	const AscendingFunction *function = find_in(functions, lengthof(functions), oid);

	return function ? function : find_in(casts, lengthof(casts), oid);
}

/* What such a function is of. */
static const Expr *
argument_of(const Expr *expr, const AscendingFunction *function)
{
	return list_nth(args_of(expr), function->argument);
}

static bool
has_fit_constants(const AscendingFunction *function, const List *args)
{
	const ListCell *lc;

	foreach (lc, args)
	{
		const Const *arg = lfirst(lc);

		if (foreach_current_index(lc) != function->argument && (!IsA(arg, Const) || arg->constisnull))
			return false;
	}
	return function->is_fit == NULL || function->is_fit(args);
}

/* Columns whose values are integers, or are kept as such. */
static bool
is_of_integers(const Var *var)
{
	switch (var->vartype)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return true;
		default:
			return false;
	}
}

/*
 * Is it the date of what date_trunc has left of a timestamp with time zone, a number of whole days?
 * Both find midnight by the offset that the zone has by then.  So the date is that of the day, and
 * ascends as long as date_trunc does.
 */
static bool
is_date_of_days(const Expr *expr)
{
	const Expr *argument = linitial(args_of(expr));

	return function_of(expr) == F_DATE_TIMESTAMPTZ &&
		   function_of(argument) == F_DATE_TRUNC_TEXT_TIMESTAMPTZ &&
		   IsA(linitial(args_of(argument)), Const) && !linitial_node(Const, args_of(argument))->constisnull &&
		   is_unit_of_days(args_of(argument));
}

/* The column that a function in the tables, or a function of such a function, is of; NULL as below. */
static const Var *
column_of(const Expr *expr)
{
	const AscendingFunction *function = find(expr);
	const Expr *argument;
	const Var *column = NULL;

	if (function == NULL)
		return NULL;
	argument = argument_of(expr, function);
	if (IsA(argument, Var))
		column = is_of_integers((const Var *) argument) ? (const Var *) argument : NULL;
	else if (function->over == OVER_ALL || is_date_of_days(expr))
		column = column_of(argument);
	return column && has_fit_constants(function, args_of(expr)) ? column : NULL;
}

/* The column that an expression is an ascending function of; NULL: it is none that is known here. */
const Var *
gpuds_ascending_column(const Expr *expr)
{
	return find_in(casts, lengthof(casts), function_of(expr)) ? NULL : column_of(expr);
}

/* The function of the column itself, in an expression that gpuds_ascending_column finds one in. */
static const Expr *
innermost(const Expr *expr)
{
	const Expr *argument = argument_of(expr, find(expr));

	return IsA(argument, Var) ? expr : innermost(argument);
}

/* Does such an expression depend on TimeZone? */
bool
gpuds_ascending_is_zoned(const Expr *expr)
{
	return find(innermost(expr))->over == OVER_OFFSET;
}

/*
 * How many values of the column have one result, if that is the same for all results, and a result is the
 * first of its own values as long as the zone's offset from UTC stays the same; 0: it is not known to be so.
 */
int64
gpuds_ascending_width(const Expr *expr)
{
	switch (function_of(expr))
	{
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			break;
		default:
			return 0;
	}
	if (!gpuds_ascending_is_unit(args_of(expr)) || !IsA(lsecond(args_of(expr)), Var))
		return 0;
	switch (gpuds_ascending_unit(args_of(expr)))
	{
		case DTK_MILLISEC:
			return USECS_PER_SEC / 1000;
		case DTK_SECOND:
			return USECS_PER_SEC;
		case DTK_MINUTE:
			return USECS_PER_MINUTE;
		case DTK_HOUR:
			return USECS_PER_HOUR;
		case DTK_DAY:
			return USECS_PER_DAY;
		default:
			return 0;
	}
}

/*
 * The lowest value of the column that such an expression surely has a result for, of values from least
 * on.  Results are below the values by up to a unit or a stride, and date_bin subtracts its origin.
 */
static int64
least_of(const Expr *expr, int64 least)
{
	const Expr *inner = innermost(expr);
	int128 from;

	switch (function_of(inner))
	{
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_TIMESTAMPTZ:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			return least + GPUDS_LONGEST_UNIT;
		case F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP:
		case F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ:
			from = Max((int128) least, (int128) PG_INT64_MIN + origin_of(args_of(inner))) +
				   stride_of(args_of(inner));
			return (int64) Min(from, (int128) PG_INT64_MAX);
		default:
			return least;
	}
}

/*
 * The highest value of the column that such an expression has a result for, of values up to most.
 * date_bin subtracts its origin, its last argument.
 */
static int64
most_of(const Expr *expr, int64 most)
{
	const Expr *inner = innermost(expr);
	Oid function = function_of(inner);
	int64 origin;

	if (function != F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP &&
		function != F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ)
		return most;
	origin = origin_of(args_of(inner));
	return origin < 0 ? Min(most, PG_INT64_MAX + origin) : most;
}

/*
 * Sets the range of column values with neighbours: no infinities and, for simplicity, not the lowest
 * number.
 */
static void
set_range(Oid type, int64 *least, int64 *most)
{
	switch (type)
	{
		case INT2OID:
			*least = PG_INT16_MIN;
			*most = PG_INT16_MAX;
			break;
		case INT4OID:
			*least = PG_INT32_MIN;
			*most = PG_INT32_MAX;
			break;
		case INT8OID:
			*least = PG_INT64_MIN + 1;
			*most = PG_INT64_MAX;
			break;
		case DATEOID:
			*least = DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE;
			*most = DATE_END_JULIAN - POSTGRES_EPOCH_JDATE - 1;
			break;
		default:
			*least = MIN_TIMESTAMP;
			*most = END_TIMESTAMP - 1;
			break;
	}
}

/* The lowest and the highest value of a column of a type that an ascending function may be asked about. */
void
gpuds_ascending_limits(const Expr *expr, Oid type, int64 *least, int64 *most)
{
	set_range(type, least, most);
	*least = least_of(expr, *least);
	*most = most_of(expr, *most);
}
