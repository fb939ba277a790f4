/*-------------------------------------------------------------------------
 *
 * aggregate_value.c
 *	  PostgreSQL's aggregate functions, and their results from partial aggregates.
 *
 * Results are those of PostgreSQL's functions, exactly; but sums of double precision depend on the
 * order of their rows in the last digits, as they do in parallel plans; and avg does not fail for
 * values above 1e154, where PostgreSQL's fails for the sake of squares that it adds up as well.  For
 * the same reason sum(real) is not here: PostgreSQL adds up in single precision.
 *
 * If rows are added up in parts, a part's value is the state that PostgreSQL's function would have, as
 * it hands it on to its combine function.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/numeric.h"

#include "custom/aggregate.h"
#include "key/key.h"

/* Digits of a 128-bit integer, with its sign, a point and its end. */
#define INT128_CHARS 43

typedef struct AggregateFunction
{
	Oid oid;
	Oid input;
	GpudsAggregateKind kind;
} AggregateFunction;

static const AggregateFunction functions[] = {
	{ F_SUM_INT2, INT2OID, GPUDS_SUM_INT8 },
	{ F_SUM_INT4, INT4OID, GPUDS_SUM_INT8 },
	{ F_SUM_INT8, INT8OID, GPUDS_SUM_NUMERIC },
	{ F_SUM_NUMERIC, NUMERICOID, GPUDS_SUM_NUMERIC },
	{ F_SUM_FLOAT8, FLOAT8OID, GPUDS_SUM_FLOAT8 },
	{ F_AVG_INT2, INT2OID, GPUDS_AVG_NUMERIC },
	{ F_AVG_INT4, INT4OID, GPUDS_AVG_NUMERIC },
	{ F_AVG_INT8, INT8OID, GPUDS_AVG_NUMERIC },
	{ F_AVG_NUMERIC, NUMERICOID, GPUDS_AVG_NUMERIC },
	{ F_AVG_FLOAT4, FLOAT4OID, GPUDS_AVG_FLOAT8 },
	{ F_AVG_FLOAT8, FLOAT8OID, GPUDS_AVG_FLOAT8 },
	{ F_MIN_INT2, INT2OID, GPUDS_MIN },
	{ F_MIN_INT4, INT4OID, GPUDS_MIN },
	{ F_MIN_INT8, INT8OID, GPUDS_MIN },
	{ F_MIN_NUMERIC, NUMERICOID, GPUDS_MIN },
	{ F_MIN_OID, OIDOID, GPUDS_MIN },
	{ F_MIN_FLOAT4, FLOAT4OID, GPUDS_MIN },
	{ F_MIN_FLOAT8, FLOAT8OID, GPUDS_MIN },
	{ F_MIN_DATE, DATEOID, GPUDS_MIN },
	{ F_MIN_TIME, TIMEOID, GPUDS_MIN },
	{ F_MIN_TIMESTAMP, TIMESTAMPOID, GPUDS_MIN },
	{ F_MIN_TIMESTAMPTZ, TIMESTAMPTZOID, GPUDS_MIN },
	{ F_MIN_MONEY, MONEYOID, GPUDS_MIN },
	{ F_MIN_PG_LSN, PG_LSNOID, GPUDS_MIN },
	{ F_MAX_INT2, INT2OID, GPUDS_MAX },
	{ F_MAX_INT4, INT4OID, GPUDS_MAX },
	{ F_MAX_INT8, INT8OID, GPUDS_MAX },
	{ F_MAX_NUMERIC, NUMERICOID, GPUDS_MAX },
	{ F_MAX_OID, OIDOID, GPUDS_MAX },
	{ F_MAX_FLOAT4, FLOAT4OID, GPUDS_MAX },
	{ F_MAX_FLOAT8, FLOAT8OID, GPUDS_MAX },
	{ F_MAX_DATE, DATEOID, GPUDS_MAX },
	{ F_MAX_TIME, TIMEOID, GPUDS_MAX },
	{ F_MAX_TIMESTAMP, TIMESTAMPOID, GPUDS_MAX },
	{ F_MAX_TIMESTAMPTZ, TIMESTAMPTZOID, GPUDS_MAX },
	{ F_MAX_MONEY, MONEYOID, GPUDS_MAX },
	{ F_MAX_PG_LSN, PG_LSNOID, GPUDS_MAX },
	{ F_STDDEV_INT2, INT2OID, GPUDS_VARIANCE },
	{ F_STDDEV_INT4, INT4OID, GPUDS_VARIANCE },
	{ F_STDDEV_INT8, INT8OID, GPUDS_VARIANCE },
	{ F_STDDEV_POP_INT2, INT2OID, GPUDS_VARIANCE },
	{ F_STDDEV_POP_INT4, INT4OID, GPUDS_VARIANCE },
	{ F_STDDEV_POP_INT8, INT8OID, GPUDS_VARIANCE },
	{ F_STDDEV_SAMP_INT2, INT2OID, GPUDS_VARIANCE },
	{ F_STDDEV_SAMP_INT4, INT4OID, GPUDS_VARIANCE },
	{ F_STDDEV_SAMP_INT8, INT8OID, GPUDS_VARIANCE },
	{ F_VARIANCE_INT2, INT2OID, GPUDS_VARIANCE },
	{ F_VARIANCE_INT4, INT4OID, GPUDS_VARIANCE },
	{ F_VARIANCE_INT8, INT8OID, GPUDS_VARIANCE },
	{ F_VAR_POP_INT2, INT2OID, GPUDS_VARIANCE },
	{ F_VAR_POP_INT4, INT4OID, GPUDS_VARIANCE },
	{ F_VAR_POP_INT8, INT8OID, GPUDS_VARIANCE },
	{ F_VAR_SAMP_INT2, INT2OID, GPUDS_VARIANCE },
	{ F_VAR_SAMP_INT4, INT4OID, GPUDS_VARIANCE },
	{ F_VAR_SAMP_INT8, INT8OID, GPUDS_VARIANCE },
	{ F_BOOL_AND, BOOLOID, GPUDS_MIN },
	{ F_EVERY, BOOLOID, GPUDS_MIN },
	{ F_BOOL_OR, BOOLOID, GPUDS_MAX },
};

/* What an aggregate function of values of a type is; false: none of ours. */
bool
gpuds_aggregate_kind(Oid function, Oid input, GpudsAggregateKind *kind)
{
	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		if (functions[i].oid == function)
		{
			*kind = functions[i].kind;
			return functions[i].input == input;
		}
	}
	return false;
}

/* What a part of the rows has in place of an aggregate's result, for PostgreSQL to combine. */
GpudsAggregateKind
gpuds_aggregate_part(GpudsAggregateKind kind, Oid input)
{
	switch (kind)
	{
		case GPUDS_SUM_NUMERIC:
			return input == NUMERICOID ? GPUDS_PART_SCALED : GPUDS_PART_NUMERIC;
		case GPUDS_AVG_NUMERIC:
			if (input == NUMERICOID)
				return GPUDS_PART_SCALED;
			return input == INT8OID ? GPUDS_PART_NUMERIC : GPUDS_PART_AVG_INT;
		case GPUDS_AVG_FLOAT8:
			return GPUDS_PART_AVG_FLOAT8;
		case GPUDS_VARIANCE:
			return GPUDS_PART_VARIANCE;
		default:
			return kind;
	}
}

/* Has an aggregate a result of its own, or one that core makes of parts only? */
bool
gpuds_aggregate_has_result(GpudsAggregateKind kind)
{
	return kind != GPUDS_VARIANCE;
}

/* An integer, of which so many digits stand behind the point. */
static Numeric
number_of(__int128 value, int scale)
{
	char text[INT128_CHARS];
	char *at = text + sizeof(text) - 1;
	unsigned __int128 rest = value < 0 ? -(unsigned __int128) value : (unsigned __int128) value;

	if (scale == 0 && value >= PG_INT64_MIN && value <= PG_INT64_MAX)
		return int64_to_numeric((int64) value);
	*at = '\0';
	for (int digits = 0; rest != 0 || digits <= scale; rest /= 10)
	{
		if (digits++ == scale && scale > 0)
			*--at = '.';
		*--at = (char) ('0' + (int) (rest % 10));
	}
	if (value < 0)
		*--at = '-';
	return DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(at), ObjectIdGetDatum(InvalidOid),
											   Int32GetDatum(-1)));
}

static Numeric
numeric_of(__int128 value)
{
	return number_of(value, 0);
}

/* The sum of integers or numbers. */
static Numeric
sum_of(uint8 values, const AggColumn *agg_column, const PartialAgg *partial)
{
	__int128 sum;

	if (gpuds_key_has_nan(values, partial))
		return DatumGetNumeric(gpuds_key_partial_agg_value(values, agg_column, partial->max));
	sum = gpuds_key_partial_agg_sum(values, agg_column, partial);
	/* A sum that a column has room for is made as one of its values, in a fraction of the time. */
	if (gpuds_key_scale(values) > 0 && sum > PG_INT64_MIN && sum < PG_INT64_MAX)
		return DatumGetNumeric(
			gpuds_key_partial_agg_value(values, agg_column, (uint64) sum + (UINT64CONST(1) << 63)));
	return number_of(sum, gpuds_key_scale(values));
}

/*
 * Was an overflow met by an infinity, perhaps one that came of another overflow?  Else the sum is not a
 * number.
 */
static bool
lost_overflow(const AggColumn *agg_column, const PartialAgg *partial)
{
	const double least = agg_column_value(agg_column, agg_column_code_bits(agg_column, partial->min));
	const double most = agg_column_value(agg_column, agg_column_code_bits(agg_column, partial->max));

	return isnan(partial->sum) && partial->max != UINT64_MAX &&
		   !(isinf(least) && isinf(most) && least != most);
}

/* Has any of the floating-point values no bound? */
static bool
has_infinity(uint8 values, const AggColumn *agg_column, const PartialAgg *partial)
{
	Datum min = gpuds_key_partial_agg_value(values, agg_column, partial->min);
	Datum max = gpuds_key_partial_agg_value(values, agg_column, partial->max);

	if (agg_column->kind == AGG_COLUMN_FLOAT4)
		return isinf(DatumGetFloat4(min)) || isinf(DatumGetFloat4(max));
	return isinf(DatumGetFloat8(min)) || isinf(DatumGetFloat8(max));
}

/* The sum of floating-point values.  Raises ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE. */
static float8
float_sum(uint8 values, const AggColumn *agg_column, const PartialAgg *partial)
{
	if (isinf(partial->sum) ? !has_infinity(values, agg_column, partial) : lost_overflow(agg_column, partial))
		float_overflow_error();
	return partial->sum;
}

/* A number has the fields of numeric_send, of which the first four take 32 bits each. */
static void
send_number(StringInfo part, Numeric sum)
{
	StringInfoData number;
	bytea *sent = DatumGetByteaPP(DirectFunctionCall1(numeric_send, NumericGetDatum(sum)));

	number.data = VARDATA_ANY(sent);
	number.len = number.maxlen = VARSIZE_ANY_EXHDR(sent);
	number.cursor = 0;
	for (int i = 0; i < 4; i++)
		pq_sendint32(part, (int16) pq_getmsgint(&number, sizeof(int16)));
	pq_sendbytes(part, number.data + number.cursor, number.len - number.cursor);
}

/* A sum of integers in the state of a function that adds them up as such. */
static void
send_sum(StringInfo part, __int128 sum)
{
	if (GPUDS_SUM_IS_INT128)
	{
		pq_sendint64(part, (uint64) (sum >> 64));
		pq_sendint64(part, (uint64) sum);
	}
	else
		send_number(part, numeric_of(sum));
}

/* The state of sum and avg of bigints, as int8_avg_serialize writes it: how many, and the sum. */
static Datum
numeric_part(int64 n, __int128 sum)
{
	StringInfoData part;

	pq_begintypsend(&part);
	pq_sendint64(&part, n);
	send_sum(&part, sum);
	return PointerGetDatum(pq_endtypsend(&part));
}

static Numeric
call_numeric(PGFunction function, Numeric a, Numeric b)
{
	return DatumGetNumeric(DirectFunctionCall2(function, NumericGetDatum(a), NumericGetDatum(b)));
}

/* The sum of squares of bigints, which 128 bits have no room for. */
static Numeric
sum_of_squares(const AggColumn *squares, const PartialAgg *partial)
{
	const Numeric high = numeric_of(gpuds_key_squares_sum(&squares[0], &partial[0]));
	const Numeric low = numeric_of(gpuds_key_squares_sum(&squares[1], &partial[1]));
	const Numeric product = numeric_of(gpuds_key_squares_sum(&squares[2], &partial[2]));
	const Numeric upper = call_numeric(numeric_mul, high, numeric_of((__int128) 1 << 64));
	const Numeric middle = call_numeric(numeric_mul, product, numeric_of((__int128) 1 << 33));

	return call_numeric(numeric_add, call_numeric(numeric_add, upper, middle), low);
}

/*
 * The state of variances, as numeric_poly_serialize writes it, and numeric_serialize that of bigints: how
 * many, the sum, and the sum of squares; and of bigints, which are numbers without digits behind the point,
 * how many such digits there are at most, and in how many numbers, and how many are no numbers or infinite.
 */
static Datum
variance_part(uint8 values, const AggColumn *agg_column, const PartialAgg *partial)
{
	const bool bigint = agg_column->bits > 32;
	const __int128 sum = gpuds_key_partial_agg_sum(values, agg_column, partial);
	const int64 n = (int64) partial->n;
	StringInfoData part;

	pq_begintypsend(&part);
	pq_sendint64(&part, n);
	if (!bigint)
	{
		send_sum(&part, sum);
		send_sum(&part, gpuds_key_squares_sum(agg_column + 1, partial + 1));
		return PointerGetDatum(pq_endtypsend(&part));
	}
	send_number(&part, numeric_of(sum));
	send_number(&part, sum_of_squares(agg_column + 1, partial + 1));
	pq_sendint32(&part, 0);
	pq_sendint64(&part, n);
	for (int i = 0; i < 3; i++)
		pq_sendint64(&part, 0);
	return PointerGetDatum(pq_endtypsend(&part));
}

/*
 * The state of sum and avg of so many numbers, as numeric_avg_serialize writes it: how many, the sum, how
 * many digits are shown behind the point, and in how many numbers, and how many are no numbers or infinite.
 * Of those it is known that there are some, and PostgreSQL asks for no more.
 */
static Datum
scaled_part(int64 n, Numeric sum)
{
	const bool nan = numeric_is_nan(sum);
	StringInfoData part;

	if (nan)
	{
		n = 0;
		sum = numeric_of(0);
	}
	pq_begintypsend(&part);
	pq_sendint64(&part, n);
	send_number(&part, sum);
	pq_sendint32(&part, DatumGetInt32(DirectFunctionCall1(numeric_scale, NumericGetDatum(sum))));
	pq_sendint64(&part, n);
	pq_sendint64(&part, nan);
	for (int i = 0; i < 2; i++)
		pq_sendint64(&part, 0);
	return PointerGetDatum(pq_endtypsend(&part));
}

/* The state of avg of smaller integers, which int4_avg_combine combines. */
static Datum
avg_int_part(int64 n, int64 sum)
{
	Datum state[] = { Int64GetDatum(n), Int64GetDatum(sum) };

	return PointerGetDatum(
		construct_array(state, lengthof(state), INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * The state of avg of floating-point values, which float8_combine combines.  The sum of squares is not
 * a number: avg does not look at it, and so it cannot overflow.
 */
static Datum
avg_float8_part(int64 n, float8 sum)
{
	Datum state[] = { Float8GetDatum((float8) n), Float8GetDatum(sum), Float8GetDatum(get_float8_nan()) };

	return PointerGetDatum(
		construct_array(state, lengthof(state), FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

static Datum
average(int64 n, Numeric sum)
{
	return DirectFunctionCall2(numeric_div, NumericGetDatum(sum), NumericGetDatum(int64_to_numeric(n)));
}

/* A number, so many times; NULL: none, if it is no times. */
static Numeric
multiple(const Const *number, int64 times)
{
	if (times == 0)
		return NULL;
	return call_numeric(numeric_mul, DatumGetNumeric(number->constvalue), int64_to_numeric(times));
}

/*
 * The result of an aggregate that gpuds_aggregate_adds_case is true of, with its aggregated columns and what
 * has been aggregated of them: of the index's column, if the CASE has one, and of ones of the rows that have
 * the constant behind ELSE.  Else as gpuds_aggregate_value.
 */
Datum
gpuds_aggregate_case_value(GpudsAggregateKind kind, const GpudsAggregateCase *parts, uint8 values,
						   const AggColumn *agg_column, const PartialAgg *partial, bool *isnull)
{
	const int ones = parts->column != NULL;
	const int64 nother = (int64) gpuds_key_partial_agg_sum(GPUDS_KIND_INT2, &agg_column[ones],
														   &partial[ones]);
	const int64 n = parts->column ? (int64) partial->n : (int64) partial->n - nother;
	Numeric sum = NULL;
	Numeric others;

	*isnull = n + nother == 0;
	if (*isnull)
		return (Datum) 0;
	if (n > 0)
		sum = parts->column ? sum_of(values, agg_column, partial) : multiple(parts->value, n);
	others = multiple(parts->other, nother);
	if (sum == NULL || others == NULL)
		sum = sum ? sum : others;
	else
		sum = call_numeric(numeric_add, sum, others);
	if (kind == GPUDS_PART_SCALED)
		return scaled_part(n + nother, sum);
	return kind == GPUDS_AVG_NUMERIC ? average(n + nother, sum) : NumericGetDatum(sum);
}

/*
 * The result of an aggregate of a column of a kind (GpudsKeyKind), with its column and what has been
 * aggregated of it; a variance's squares follow each.  Allocated in the current memory context if it is
 * passed by reference.
 */
Datum
gpuds_aggregate_value(GpudsAggregateKind kind, uint8 values, const AggColumn *agg_column,
					  const PartialAgg *partial, bool *isnull)
{
	const int64 n = (int64) partial->n;

	*isnull = n == 0 && kind != GPUDS_COUNT;
	if (*isnull)
		return (Datum) 0;
	switch (kind)
	{
		case GPUDS_COUNT:
			return Int64GetDatum(n);
		case GPUDS_SUM_INT8:
			return Int64GetDatum((int64) gpuds_key_partial_agg_sum(values, agg_column, partial));
		case GPUDS_SUM_NUMERIC:
			return NumericGetDatum(sum_of(values, agg_column, partial));
		case GPUDS_SUM_FLOAT8:
			return Float8GetDatum(float_sum(values, agg_column, partial));
		case GPUDS_AVG_NUMERIC:
			return average(n, sum_of(values, agg_column, partial));
		case GPUDS_AVG_FLOAT8:
			/* PostgreSQL begins with 0 here */
			return Float8GetDatum((float_sum(values, agg_column, partial) + 0.0) / (float8) n);
		case GPUDS_MIN:
			return gpuds_key_partial_agg_value(values, agg_column, partial->min);
		case GPUDS_MAX:
			return gpuds_key_partial_agg_value(values, agg_column, partial->max);
		case GPUDS_PART_NUMERIC:
			return numeric_part(n, gpuds_key_partial_agg_sum(values, agg_column, partial));
		case GPUDS_PART_SCALED:
			return scaled_part(n, sum_of(values, agg_column, partial));
		case GPUDS_PART_AVG_INT:
			return avg_int_part(n, (int64) gpuds_key_partial_agg_sum(values, agg_column, partial));
		case GPUDS_PART_AVG_FLOAT8:
			return avg_float8_part(n, float_sum(values, agg_column, partial) + 0.0);
		case GPUDS_PART_VARIANCE:
			return variance_part(values, agg_column, partial);
		case GPUDS_VARIANCE:
		case GPUDS_GROUP_COLUMN:
		case GPUDS_GROUP_BUCKET:
		case GPUDS_COUNT_ROWS:
			break;
	}
	elog(ERROR, "unrecognized kind of aggregate: %d", (int) kind);
	pg_unreachable();
}
