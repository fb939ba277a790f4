/*-------------------------------------------------------------------------
 *
 * numeric.c
 *	  Values of numeric(p, s) as integers, scaled by 10^s.
 *
 * PostgreSQL keeps the layout of a numeric to itself, but cannot change what tables have on disk: a header of
 * two bytes, which says what is special, or the sign, the weight and how many digits are shown behind the
 * point; or, where these do not fit, one of four; then digits to the base of 10,000 without zeros at either
 * end.  The weight is the exponent of the first of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

#include "compat.h"
#include "key/numeric.h"

#define BASE 10000
#define BASE_DIGITS 4 /* decimal digits of one to that base */

/* The header's first two bytes. */
#define FORM_BITS 0xC000
#define FORM_NEGATIVE 0x4000 /* of those with four bytes */
#define FORM_SHORT 0x8000
#define FORM_SPECIAL 0xC000
#define SPECIAL_BITS 0xF000
#define SPECIAL_NAN 0xC000
#define SPECIAL_PLUS_INFINITY 0xD000
#define SHORT_NEGATIVE 0x2000
#define SHORT_SCALE_SHIFT 7
#define SHORT_SCALE_BITS 0x3F
#define LONG_SCALE_BITS 0x3FFF
#define SHORT_WEIGHT_NEGATIVE 0x0040
#define SHORT_WEIGHT_BITS 0x003F

/* The least integer that no value of a column has. */
#define TOO_LARGE INT64CONST(1000000000000000000)
StaticAssertDecl(GPUDS_NUMERIC_DIGITS == 18, "integers of a column");

#define SIGN_BIT (UINT64_C(1) << 63)

/* A number's integer at some scale, without its sign. */
typedef struct Scaled
{
	bool nan;
	bool negative;
	bool rest;   /* digits follow that the integer does not have */
	int shown;   /* digits behind the point that are shown, zeros too; of what is no number, or infinite: 0 */
	int64 value; /* TOO_LARGE: or more, infinity too */
} Scaled;

static uint16
read_16(const char *at)
{
	uint16 bits;

	memcpy(&bits, at, sizeof(bits));
	return bits;
}

static int64
power_of_ten(int exponent)
{
	int64 power = 1;

	while (exponent-- > 0)
		power *= 10;
	return power;
}

/* Adds a digit of the base to an integer whose unit is 10^-shift of the digit's. */
static void
add_digit(int digit, int shift, Scaled *scaled)
{
	__int128 value;

	if (digit == 0)
		return;
	if (shift > GPUDS_NUMERIC_DIGITS)
	{
		scaled->value = TOO_LARGE;
		return;
	}
	if (shift >= 0)
		value = (__int128) digit * power_of_ten(shift);
	else
	{
		const int divisor = shift > -BASE_DIGITS ? (int) power_of_ten(-shift) : BASE;

		value = digit / divisor;
		scaled->rest |= digit % divisor != 0;
	}
	scaled->value = (int64) Min(scaled->value + value, TOO_LARGE);
}

/* A number as it lies in a table, without the length before it. */
static void
scale_number(const char *number, Size length, int scale, Scaled *scaled)
{
	const uint16 header = read_16(number);
	const char *end = number + length;
	int weight;

	memset(scaled, 0, sizeof(*scaled));
	switch (header & FORM_BITS)
	{
		case FORM_SPECIAL:
			scaled->nan = (header & SPECIAL_BITS) == SPECIAL_NAN;
			scaled->negative = !scaled->nan && (header & SPECIAL_BITS) != SPECIAL_PLUS_INFINITY;
			scaled->value = TOO_LARGE;
			return;
		case FORM_SHORT:
			scaled->negative = (header & SHORT_NEGATIVE) != 0;
			scaled->shown = header >> SHORT_SCALE_SHIFT & SHORT_SCALE_BITS;
			weight = header & SHORT_WEIGHT_BITS;
			if (header & SHORT_WEIGHT_NEGATIVE)
				weight -= SHORT_WEIGHT_BITS + 1;
			number += sizeof(uint16);
			break;
		default:
			scaled->negative = (header & FORM_BITS) == FORM_NEGATIVE;
			scaled->shown = header & LONG_SCALE_BITS;
			weight = (int16) read_16(number + sizeof(uint16));
			number += 2 * sizeof(uint16);
			break;
	}
	for (; number < end && scaled->value < TOO_LARGE && !scaled->rest; number += sizeof(uint16))
		add_digit(read_16(number), BASE_DIGITS * weight-- + scale, scaled);
}

static void
scale_datum(Datum value, int scale, Scaled *scaled)
{
	struct varlena *number = PG_DETOAST_DATUM_PACKED(value);

	scale_number(VARDATA_ANY(number), VARSIZE_ANY_EXHDR(number), scale, scaled);
	if ((Pointer) number != DatumGetPointer(value))
		pfree(number);
}

/*
 * The kind of the values of a type that is numeric or a domain over it, in a column or an expression with a
 * typmod; GPUDS_KIND_NONE: they have not at most GPUDS_NUMERIC_DIGITS digits, as many of them behind the
 * point in all values.
 */
GpudsKeyKind
gpuds_numeric_kind(Oid type, int32 typmod)
{
	int precision;
	int scale;

	(void) getBaseTypeAndTypmod(type, &typmod);
	if (typmod < (int32) VARHDRSZ)
		return GPUDS_KIND_NONE;
	precision = ((typmod - VARHDRSZ) >> 16) & 0xFFFF;
	/* 11 bits with a sign */
	scale = (((typmod - VARHDRSZ) & 0x7FF) ^ 0x400) - 0x400;
	return precision <= GPUDS_NUMERIC_DIGITS && scale >= 0 && scale <= GPUDS_NUMERIC_DIGITS
			   ? (GpudsKeyKind) (GPUDS_KIND_SCALED + scale)
			   : GPUDS_KIND_NONE;
}

/*
 * The code of a value of a column.  Raises ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE for one that the column's type
 * does not have.  A cast's function that is told the typmod, or one that returns rows, may give such values
 * to a table.  Those that only show other digits, as 1.5 in numeric(12,2), are refused too: an index would
 * give them back as the equal value that the type has, and the table would say something else.
 */
uint64
gpuds_numeric_code(int scale, Datum value)
{
	Scaled scaled;

	scale_datum(value, scale, &scaled);
	if (scaled.nan)
		return GPUDS_NUMERIC_NAN;
	if (scaled.rest || scaled.value >= TOO_LARGE || scaled.shown != scale)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("value %s does not fit into an index of numbers with %d digits behind the point",
						DatumGetCString(DirectFunctionCall1(numeric_out, value)), scale),
				 errdetail("A value of the column's type has as many, and no more digits than it allows."),
				 errhint("Cast the value to the column's type, or drop the index.")));
	return (uint64) (scaled.negative ? -scaled.value : scaled.value) ^ SIGN_BIT;
}

/*
 * Where a constant falls among the codes of a column of numbers with a scale: the lowest code whose value is
 * not less.  Is it the constant's own?
 */
bool
gpuds_numeric_cut(int scale, Datum value, uint64 *code)
{
	Scaled scaled;

	scale_datum(value, scale, &scaled);
	if (scaled.nan)
		*code = GPUDS_NUMERIC_NAN;
	else if (scaled.value >= TOO_LARGE)
		*code = scaled.negative ? 0 : GPUDS_NUMERIC_NAN;
	else
		*code = (uint64) (scaled.negative ? -scaled.value : scaled.value + scaled.rest) ^ SIGN_BIT;
	return scaled.nan || (scaled.value < TOO_LARGE && !scaled.rest);
}

/*
 * The digits of a number in the base, the lowest one first, but for zeros before that, each of which adds 1
 * to the weight.
 */
static int
base_digits(unsigned __int128 rest, uint16 *digits, int *weight)
{
	int n = 0;

	/* Most numbers have 64 bits, which take a tenth of the time. */
	while (rest != 0)
	{
		const bool is_short = rest >> 64 == 0;
		const uint16 digit = (uint16) (is_short ? (uint64) rest % BASE : rest % BASE);

		rest = is_short ? (uint64) rest / BASE : rest / BASE;
		if (n > 0 || digit != 0)
			digits[n++] = digit;
		else
			(*weight)++;
	}
	return n;
}

/*
 * The value of a code, in *bytes, as PostgreSQL would have made it.  Codes that no value has, such as that of
 * a column that a group's entry leaves out, have a value, too.
 */
Datum
gpuds_numeric_value(int scale, uint64 code, GpudsKeyBytes *bytes)
{
	const int64 value = (int64) (code ^ SIGN_BIT);
	const int pad = (BASE_DIGITS - scale % BASE_DIGITS) % BASE_DIGITS; /* zeros behind the last digit */
	const uint64 magnitude = value < 0 ? -(uint64) value : (uint64) value;
	int weight = -(scale + pad) / BASE_DIGITS; /* of the last digit of the base that is not zero */
	uint16 digits[GPUDS_NUMERIC_BASE_DIGITS];
	int n;
	uint16 *out = bytes->numeric + 2;

	if (code == GPUDS_NUMERIC_NAN)
	{
		bytes->numeric[2] = SPECIAL_NAN;
		SET_VARSIZE(bytes->numeric, VARHDRSZ + sizeof(uint16));
		return PointerGetDatum(bytes->numeric);
	}
	n = base_digits((unsigned __int128) magnitude * (uint64) power_of_ten(pad), digits, &weight);
	weight = n > 0 ? weight + n - 1 : 0;
	*out++ = (uint16) (FORM_SHORT | (value < 0 ? SHORT_NEGATIVE : 0) | scale << SHORT_SCALE_SHIFT |
					   (weight < 0 ? SHORT_WEIGHT_NEGATIVE : 0) | (weight & SHORT_WEIGHT_BITS));
	while (n > 0)
		*out++ = digits[--n];
	SET_VARSIZE(bytes->numeric, (char *) out - (char *) bytes->numeric);
	return PointerGetDatum(bytes->numeric);
}
