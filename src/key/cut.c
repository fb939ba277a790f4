/*-------------------------------------------------------------------------
 *
 * cut.c
 *	  Where constants of any comparable type fall among a column's codes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/int.h"
#include "pgtime.h"

#include "key/code.h"
#include "key/text.h"

/*
 * Local time of one zone runs ahead of UTC by amounts that differ by 26 hours
 * at most (a change of sides of the date line), so two days are safe.
 */
#define FUZZ_DAYS 2

static void
cut_exact(GpudsCut *cut, GpudsCode code)
{
	cut->code = code;
	cut->exact = true;
}

static int64
integer_value(GpudsKeyKind kind, Datum value)
{
	switch (kind)
	{
		case GPUDS_KIND_INT2:
			return DatumGetInt16(value);
		case GPUDS_KIND_INT4:
			return DatumGetInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

static void
cut_integer(GpudsKeyKind column, int64 value, GpudsCut *cut)
{
	int bits = gpuds_kind_bits(column);
	int64 max = (int64) gpuds_ones(bits - 1);

	if (value > max)
		cut->above = true;
	else if (value >= -max - 1)
		cut_exact(cut, (uint64) value + (UINT64_C(1) << (bits - 1)));
}

/* A real column and a double precision constant. */
static void
cut_float4_at_float8(float8 value, GpudsCut *cut)
{
	/* rounds to nearest, to an infinity if need be */
	float4 nearest = (float4) value;

	cut->code = gpuds_float4_code(nearest);
	if (isnan(value) || (float8) nearest == value)
		cut->exact = true;
	else if ((float8) nearest < value)
		cut->code++;
}

static void
cut_timestamp(int64 value, GpudsCut *cut)
{
	cut_exact(cut, gpuds_signed_code(value));
}

static uint32
date_code(int32 date)
{
	return (uint32) date ^ (UINT32_C(1) << 31);
}

static int64
floor_days(int64 time)
{
	int64 days = time / USECS_PER_DAY;

	return time % USECS_PER_DAY < 0 ? days - 1 : days;
}

/* A date column and a timestamp constant: dates are their midnights. */
static void
cut_date_at_timestamp(Timestamp value, GpudsCut *cut)
{
	if (TIMESTAMP_IS_NOBEGIN(value))
		cut_exact(cut, date_code(DATEVAL_NOBEGIN));
	else if (TIMESTAMP_IS_NOEND(value))
		cut_exact(cut, date_code(DATEVAL_NOEND));
	else
	{
		int64 days = floor_days(value);

		cut->exact = value % USECS_PER_DAY == 0;
		cut->code = date_code(cut->exact ? days : days + 1);
	}
}

/*
 * A timestamp (with time zone or not) column and a date or timestamp constant
 * that was converted to the column's type.  Past the end it is above all
 * finite values, yet below infinity.
 */
static void
cut_converted(int64 value, int overflow, GpudsCut *cut)
{
	if (overflow > 0)
		cut->code = gpuds_signed_code(DT_NOEND);
	else if (overflow < 0)
		cut->code = gpuds_signed_code(DT_NOBEGIN + 1);
	else
		cut_timestamp(value, cut);
}

/*
 * A date or timestamp column and a timestamp with time zone constant: core
 * compares in UTC, what the column's value is there depends on TimeZone, and
 * the order may be another where clocks are put back.
 */
static void
cut_local_at_timestamptz(GpudsKeyKind column, TimestampTz value, GpudsCut *cut)
{
	struct pg_tm tm;
	fsec_t fsec;
	int zone;
	int64 local;

	if (TIMESTAMP_NOT_FINITE(value))
	{
		if (column == GPUDS_KIND_DATE)
			cut_date_at_timestamp(value, cut);
		else
			cut_timestamp(value, cut);
		return;
	}

	cut->fuzzy = true;
	if (timestamp2tm(value, &zone, &tm, &fsec, NULL, NULL) != 0)
	{
		cut->last = gpuds_ones(gpuds_kind_bits(column));
		return;
	}

	/* zones are less than a week from UTC, int64 ends eight days behind the last timestamp */
	local = value - zone * USECS_PER_SEC;
	if (column == GPUDS_KIND_DATE)
	{
		int64 days = floor_days(local);

		/* dates that no timestamp reaches are above all finite ones */
		cut->code = date_code(Min(days - FUZZ_DAYS, TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE));
		cut->last = date_code(days + FUZZ_DAYS + 1);
	}
	else
	{
		int64 last;

		if (pg_add_s64_overflow(local, FUZZ_DAYS * USECS_PER_DAY, &last))
			last = DT_NOEND;
		cut->code = gpuds_signed_code(local - FUZZ_DAYS * USECS_PER_DAY);
		cut->last = gpuds_signed_code(last);
	}
}

/*
 * Finds where a constant falls among the codes of a column of another kind or
 * of the same one.  The kinds must be comparable.  Depends on TimeZone if one
 * is timestamptz and the other is not.  Allocates nothing that it does not free.
 */
void
gpuds_cut(GpudsKeyKind column, GpudsKeyKind constant, Datum value, GpudsCut *cut)
{
	int overflow = 0;
	int64 converted;

	memset(cut, 0, sizeof(*cut));
	if (gpuds_is_scaled(column))
	{
		uint64 code;

		cut->exact = gpuds_numeric_cut(gpuds_scale(column), value, &code);
		cut->code = code;
		return;
	}
	if (column == constant)
	{
		cut_exact(cut, gpuds_code(column, value));
		return;
	}

	switch (column)
	{
		case GPUDS_KIND_INT2:
		case GPUDS_KIND_INT4:
		case GPUDS_KIND_INT8:
			cut_integer(column, integer_value(constant, value), cut);
			return;
		case GPUDS_KIND_FLOAT4:
			cut_float4_at_float8(DatumGetFloat8(value), cut);
			return;
		case GPUDS_KIND_FLOAT8:
			cut_exact(cut, gpuds_float8_code((float8) DatumGetFloat4(value)));
			return;
		case GPUDS_KIND_DATE:
			if (constant == GPUDS_KIND_TIMESTAMP)
				cut_date_at_timestamp(DatumGetTimestamp(value), cut);
			else
				cut_local_at_timestamptz(column, DatumGetTimestampTz(value), cut);
			return;
		case GPUDS_KIND_TIMESTAMP:
			if (constant == GPUDS_KIND_DATE)
			{
				converted = GpudsConvert(date2timestamp, DatumGetDateADT(value), &overflow);
				cut_converted(converted, overflow, cut);
			}
			else
				cut_local_at_timestamptz(column, DatumGetTimestampTz(value), cut);
			return;
		case GPUDS_KIND_TIMESTAMPTZ:
			if (constant == GPUDS_KIND_DATE)
				converted = GpudsConvert(date2timestamptz, DatumGetDateADT(value), &overflow);
			else
				converted = GpudsConvert(timestamp2timestamptz, DatumGetTimestamp(value), &overflow);
			cut_converted(converted, overflow, cut);
			return;
		default:
			elog(ERROR, "kinds of key %d and %d do not compare", (int) column, (int) constant);
	}
}

/*
 * The same for a column whose codes are no hashes, with its bits.  A long text may leave something in the
 * current memory context.
 */
void
gpuds_column_cut(const GpudsKeyColumn *column, GpudsKeyKind constant, Datum value, GpudsCut *cut)
{
	if (gpuds_is_text(column->kind))
		gpuds_text_cut(column, constant, value, cut);
	else
		gpuds_cut(column->kind, constant, value, cut);
}
