/*-------------------------------------------------------------------------
 *
 * granule.c
 *	  What an expression of a column is constant on.
 *
 * An expression is constant on the granules of a part of it if the column is nowhere else in it.  Parts with
 * granules are ascending functions (ascending.h), and of points in time those fields, formats and local times
 * that are listed here.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "custom/ascending.h"
#include "custom/granule.h"

/* Fields of a point in time, by what they are constant on. */
typedef struct Field
{
	const char *unit; /* of date_trunc */
	int field;
	int values;
} Field;

static const Field fields[] = {
	{ "minute", DTK_MINUTE, 60 }, { "hour", DTK_HOUR, 24 },      { "day", DTK_DAY, 31 },
	{ "day", DTK_DOW, 7 },        { "day", DTK_ISODOW, 7 },      { "day", DTK_DOY, 366 },
	{ "week", DTK_WEEK, 53 },     { "week", DTK_ISOYEAR, 0 },    { "month", DTK_MONTH, 12 },
	{ "month", DTK_QUARTER, 4 },  { "year", DTK_YEAR, 0 },       { "year", DTK_DECADE, 0 },
	{ "year", DTK_CENTURY, 0 },   { "year", DTK_MILLENNIUM, 0 },
};

/* What a format of to_char has of times of day, and of their zone. */
static const char *const parts_of_day[] = { "hh", "mi", "ss",  "ms",  "us", "ff",
											"am", "pm", "a.m", "p.m", "tz", "of" };

/* The table's field of a unit's name; NULL: it is none of these. */
static const Field *
field_of(const List *args)
{
	const Const *unit = linitial(args);
	int which;

	if (!IsA(unit, Const) || unit->constisnull)
		return NULL;
	which = gpuds_ascending_unit(args);
	for (int i = 0; i < (int) lengthof(fields); i++)
	{
		if (fields[i].field == which)
			return &fields[i];
	}
	return NULL;
}

/* Is a format the same all day long? */
static bool
is_of_days(const Const *format)
{
	char *codes;

	if (!IsA(format, Const) || format->constisnull)
		return false;
	codes = TextDatumGetCString(format->constvalue);
	codes = asc_tolower(codes, strlen(codes));
	for (int i = 0; i < (int) lengthof(parts_of_day); i++)
	{
		if (strstr(codes, parts_of_day[i]) != NULL)
			return false;
	}
	return true;
}

/* The zone of a name that cannot be taken for an abbreviation; NULL: there is none. */
static pg_tz *
zone_of(const Const *name)
{
	char *zone;

	if (!IsA(name, Const) || name->constisnull)
		return NULL;
	zone = TextDatumGetCString(name->constvalue);
	if (strchr(zone, '/') == NULL && pg_strcasecmp(zone, "UTC") != 0)
		return NULL;
	return pg_tzset(zone);
}

/* What a granule is looked for in. */
typedef struct Search
{
	const Var *column;
	GpudsGranule *granule;
} Search;

/*
 * Is an expression a point in time by the column: the column itself, or the local time of a zone?  The
 * granule of what is made of it depends on that zone, or on the session's.
 */
static bool
is_time(const Search *search, const Expr *expr, GpudsGranule *granule)
{
	const FuncExpr *function = (const FuncExpr *) expr;

	granule->zone = NULL;
	granule->zoned = search->column->vartype == TIMESTAMPTZOID;
	if (equal(expr, search->column))
		return search->column->vartype == TIMESTAMPOID || search->column->vartype == TIMESTAMPTZOID;
	if (!IsA(function, FuncExpr) || function->funcid != F_TIMEZONE_TEXT_TIMESTAMPTZ ||
		!equal(lsecond(function->args), search->column))
		return false;
	granule->zone = zone_of(linitial(function->args));
	return granule->zone != NULL;
}

/* date_trunc of a point in time. */
static const Expr *
truncated(const char *unit, const Expr *time)
{
	const Oid type = exprType((const Node *) time);
	const Oid function = type == TIMESTAMPOID ? F_DATE_TRUNC_TEXT_TIMESTAMP : F_DATE_TRUNC_TEXT_TIMESTAMPTZ;
	Const *name = makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1, CStringGetTextDatum(unit), false, false);

	return (const Expr *) makeFuncExpr(function, type, list_make2(name, copyObject((void *) time)),
									   InvalidOid, DEFAULT_COLLATION_OID, COERCE_EXPLICIT_CALL);
}

/* The granules of a function of a point in time that is listed here. */
static bool
find_of_time(const Search *search, const FuncExpr *expr, GpudsGranule *granule)
{
	const Field *field;

	granule->least = MIN_TIMESTAMP + GPUDS_LONGEST_UNIT;
	granule->most = END_TIMESTAMP - GPUDS_LONGEST_UNIT;
	switch (expr->funcid)
	{
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			field = field_of(expr->args);
			if (field == NULL || !is_time(search, lsecond(expr->args), granule))
				return false;
			granule->function = truncated(field->unit, lsecond(expr->args));
			granule->values = field->values;
			return true;
		case F_TO_CHAR_TIMESTAMP_TEXT:
		case F_TO_CHAR_TIMESTAMPTZ_TEXT:
			if (!is_of_days(lsecond(expr->args)) || !is_time(search, linitial(expr->args), granule))
				return false;
			granule->function = truncated("day", linitial(expr->args));
			return true;
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
			granule->function = (const Expr *) expr;
			return gpuds_ascending_is_unit(expr->args) && is_time(search, lsecond(expr->args), granule);
		case F_DATE_TIMESTAMP:
			granule->function = (const Expr *) expr;
			return is_time(search, linitial(expr->args), granule);
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT:
			granule->function = (const Expr *) expr;
			if (!gpuds_ascending_is_unit(expr->args) || !equal(lsecond(expr->args), search->column))
				return false;
			granule->zoned = true;
			granule->zone = zone_of(lthird(expr->args));
			return granule->zone != NULL;
		default:
			return false;
	}
}

/* The granules of an expression that has some of its own. */
static bool
find_own(const Search *search, const Expr *expr, GpudsGranule *granule)
{
	const Var *column = gpuds_ascending_column(expr);

	memset(granule, 0, sizeof(*granule));
	if (column == NULL)
		return IsA(expr, FuncExpr) && find_of_time(search, (const FuncExpr *) expr, granule);
	granule->function = expr;
	granule->zoned = gpuds_ascending_is_zoned(expr);
	gpuds_ascending_limits(expr, getBaseType(column->vartype), &granule->least, &granule->most);
	return equal(column, search->column);
}

/* True: the column is in a part of an expression without granules, or parts have different ones. */
static bool
is_finer(Node *node, void *arg)
{
	const Search *search = arg;
	GpudsGranule own;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return true;
	if (!find_own(search, (const Expr *) node, &own))
		return expression_tree_walker(node, is_finer, arg);
	if (search->granule->function == NULL)
		*search->granule = own;
	return !equal(search->granule->function, own.function);
}

/* The granules of an expression of a column. */
void
gpuds_granule_find(const Expr *expr, const Var *column, GpudsGranule *granule)
{
	const Search search = { .column = column, .granule = granule };
	GpudsGranule own;

	memset(granule, 0, sizeof(*granule));
	if (is_finer((Node *) expr, (void *) &search))
		memset(granule, 0, sizeof(*granule));
	granule->whole = granule->function && find_own(&search, expr, &own);
}

/* *arg: the only column in an expression. */
static bool
has_another(Node *node, void *arg)
{
	const Var **column = arg;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		if (*column == NULL)
			*column = (const Var *) node;
		return !equal(*column, node);
	}
	return expression_tree_walker(node, has_another, arg);
}

/*
 * The column that an expression is of, if it depends on nothing else that differs among rows; NULL: it does,
 * or it is of none.
 */
const Var *
gpuds_granule_column(const Expr *expr)
{
	const Var *column = NULL;

	if (has_another((Node *) expr, &column) || column == NULL || column->varlevelsup != 0 ||
		contain_volatile_functions((Node *) expr) || contain_subplans((Node *) expr) ||
		contain_agg_clause((Node *) expr) || expression_returns_set((Node *) expr))
		return NULL;
	return column;
}

/* What takes a column's place. */
typedef struct Replacement
{
	const Var *column;
	const Node *by;
} Replacement;

static Node *
replace(Node *node, void *arg)
{
	const Replacement *replacement = arg;

	if (node == NULL)
		return NULL;
	if (equal(node, replacement->column))
		return copyObject((Node *) replacement->by);
	return expression_tree_mutator(node, replace, arg);
}

/* A copy of an expression of a column with something else in the column's place. */
Node *
gpuds_granule_replace(const Node *expr, const Var *column, const Node *by)
{
	Replacement replacement = { .column = column, .by = by };

	return replace((Node *) expr, &replacement);
}
