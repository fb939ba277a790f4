/*-------------------------------------------------------------------------
 *
 * agg_column.c
 *	  Columns whose values can be added up or compared by what entries have of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"

#include "key/code.h"

/* Codes of signed integers are those of the integers, and half their range. */
static bool
is_signed(GpudsKeyKind kind)
{
	switch (kind)
	{
		case GPUDS_KIND_INT2:
		case GPUDS_KIND_INT4:
		case GPUDS_KIND_INT8:
		case GPUDS_KIND_DATE:
		case GPUDS_KIND_TIME:
		case GPUDS_KIND_TIMESTAMP:
		case GPUDS_KIND_TIMESTAMPTZ:
		case GPUDS_KIND_MONEY:
			return true;
		default:
			return gpuds_is_scaled(kind);
	}
}

static bool
is_float(GpudsKeyKind kind)
{
	return kind == GPUDS_KIND_FLOAT4 || kind == GPUDS_KIND_FLOAT8;
}

/*
 * Can a column of a type be aggregated, if entries have its values?  Then its values are numbers of 64
 * bits at most.  Not one of a type that has been accepted: layouts that were made before do not know that.
 */
bool
gpuds_key_can_aggregate(Oid type)
{
	GpudsKeyKind kind = gpuds_key_core_kind(type);

	return is_signed(kind) || is_float(kind) || kind == GPUDS_KIND_BOOL || kind == GPUDS_KIND_OID ||
		   kind == GPUDS_KIND_PG_LSN || kind == GPUDS_KIND_NUMERIC;
}

/* The same of a side column, in what agg_column_side_entry makes of its values: one word, and a NULL bit. */
static void
place_side(const GpudsKeyColumn *column, AggColumn *agg_column)
{
	agg_column->place = ENTRY_SPILL_BITS;
	agg_column->bits = 8 * column->bytes;
	agg_column->null_place = 0;
	agg_column->side_bytes = column->bytes;
	agg_column->side_offset = column->side_offset;
	agg_column->side_null = column->null_shift;
}

/*
 * Where a key's or an included column's values are in entries, for one that gpuds_key_can_aggregate.  Those
 * of side columns are in entries that agg_column_side_entry makes.
 */
void
gpuds_key_agg_column(const GpudsKeyLayout *layout, int i, AggColumn *agg_column)
{
	const GpudsKeyColumn *column = &layout->column[i];
	GpudsKeyKind kind = (GpudsKeyKind) column->values;
	bool included = i >= layout->nkeys;

	memset(agg_column, 0, sizeof(*agg_column));
	agg_column->kind = AGG_COLUMN_INTEGER;
	if (is_float(kind))
		agg_column->kind = kind == GPUDS_KIND_FLOAT4 ? AGG_COLUMN_FLOAT4 : AGG_COLUMN_FLOAT8;
	agg_column->place = column->shift;
	agg_column->bits = column->bits;
	agg_column->null_place = column->null_shift;
	agg_column->null_bit = (uint8) gpuds_null_bit(column);
	if (gpuds_key_is_side(column))
		place_side(column, agg_column);
	/* included numbers have codes that order */
	if (included && is_signed(kind) && !gpuds_is_scaled(kind))
		agg_column->flip = UINT64CONST(1) << (agg_column->bits - 1);
	else if (column->descending)
		agg_column->flip = (uint64) gpuds_ones(column->bits);
}

/* For counting values that are not NULL: what is aggregated of a column of any type are its NULL bits. */
void
gpuds_key_agg_column_nulls(const GpudsKeyLayout *layout, int i, AggColumn *agg_column)
{
	const GpudsKeyColumn *column = &layout->column[i];

	memset(agg_column, 0, sizeof(*agg_column));
	agg_column->kind = AGG_COLUMN_INTEGER;
	agg_column->place = agg_column->null_place = column->null_shift;
	agg_column->bits = 1;
	agg_column->null_bit = (uint8) gpuds_null_bit(column);
}

/* For counting entries, whatever they have. */
void
gpuds_key_agg_column_rows(AggColumn *agg_column)
{
	memset(agg_column, 0, sizeof(*agg_column));
	agg_column->kind = AGG_COLUMN_INTEGER;
	agg_column->bits = 1;
	/* no bit is that */
	agg_column->null_bit = 2;
}

/* For adding up constants, which are integers of so many bytes, and not in entries. */
void
gpuds_key_agg_column_integers(int bytes, AggColumn *agg_column)
{
	memset(agg_column, 0, sizeof(*agg_column));
	agg_column->kind = AGG_COLUMN_INTEGER;
	agg_column->bits = (uint8) (8 * bytes);
	agg_column->flip = UINT64CONST(1) << (agg_column->bits - 1);
}

/*
 * What has to be added up beside a column's integers for their squares: columns for squares, of
 * GPUDS_KEY_SQUARES; returns how many.
 */
int
gpuds_key_agg_column_squares(const AggColumn *agg_column, AggColumn *squares)
{
	static const AggColumnKind of_64_bits[] = { AGG_COLUMN_HIGH_SQUARE, AGG_COLUMN_LOW_SQUARE,
												AGG_COLUMN_PRODUCT };
	StaticAssertDecl(lengthof(of_64_bits) == GPUDS_KEY_SQUARES, "columns of squares");
	const int n = agg_column->bits <= 32 ? 1 : GPUDS_KEY_SQUARES;

	for (int i = 0; i < n; i++)
	{
		squares[i] = *agg_column;
		squares[i].kind = n == 1 ? AGG_COLUMN_SQUARE : of_64_bits[i];
	}
	return n;
}

/* The sum of what a column of squares has. */
__int128
gpuds_key_squares_sum(const AggColumn *square, const PartialAgg *partial)
{
	__int128 sum = ((__int128) partial->high << 32) + partial->low;

	if (square->kind == AGG_COLUMN_PRODUCT)
		sum -= (__int128) partial->n << 63;
	return sum;
}

/* How many digits behind the point numbers of a kind have; 0: they are integers. */
int
gpuds_key_scale(uint8 values)
{
	return gpuds_is_scaled(values) ? gpuds_scale(values) : 0;
}

/* Was anything added up that is no number? */
bool
gpuds_key_has_nan(uint8 values, const PartialAgg *partial)
{
	return gpuds_is_scaled(values) && partial->max == GPUDS_NUMERIC_NAN;
}

/* The sum of the integers of a kind (GpudsKeyKind), or of numbers times 10^gpuds_key_scale, without NaN. */
__int128
gpuds_key_partial_agg_sum(uint8 values, const AggColumn *agg_column, const PartialAgg *partial)
{
	__int128 sum = ((__int128) partial->high << 32) + partial->low;

	if (is_signed((GpudsKeyKind) values))
		sum -= (__int128) partial->n << (agg_column->bits - 1);
	return sum;
}

/*
 * The value of a kind (GpudsKeyKind) that has a code, as min and max of PartialAgg are; in the current memory
 * context if it is passed by reference.
 */
Datum
gpuds_key_partial_agg_value(uint8 values, const AggColumn *agg_column, uint64 code)
{
	const GpudsKeyKind kind = (GpudsKeyKind) values;
	int64 value;

	if (gpuds_is_scaled(values))
		return gpuds_numeric_value(gpuds_scale(values), code, palloc(sizeof(GpudsKeyBytes)));

	if (is_float(kind))
	{
		double number = agg_column_value(agg_column, agg_column_code_bits(agg_column, code));

		return kind == GPUDS_KIND_FLOAT4 ? Float4GetDatum((float4) number) : Float8GetDatum(number);
	}
	value = (int64) (is_signed(kind) ? code - (UINT64CONST(1) << (agg_column->bits - 1)) : code);
	switch (kind)
	{
		case GPUDS_KIND_BOOL:
			return BoolGetDatum(value != 0);
		case GPUDS_KIND_OID:
			return ObjectIdGetDatum((Oid) value);
		case GPUDS_KIND_INT2:
			return Int16GetDatum((int16) value);
		case GPUDS_KIND_INT4:
		case GPUDS_KIND_DATE:
			return Int32GetDatum((int32) value);
		default:
			return Int64GetDatum(value);
	}
}

/* Gives a column of an entry another value, by its code. */
void
gpuds_key_set_partial_agg(const AggColumn *agg_column, int nwords, uint64 code, GpudsEntry *entry)
{
	GpudsKeyString taken = { 0, 0 };
	GpudsKeyString key;

	gpuds_key_put(&taken, gpuds_ones(agg_column->bits), agg_column->place);
	gpuds_key_from_entry(entry, nwords, &key);
	key.high &= ~taken.high;
	key.spill &= ~taken.spill;
	gpuds_key_put(&key, code ^ agg_column->flip, agg_column->place);
	gpuds_key_to_entry(&key, nwords, entry->t & ENTRY_TID_MASK, entry);
}

/* The entries whose column i is NULL, of those that agree with one in the columns before. */
void
gpuds_key_null_interval(const GpudsKeyLayout *layout, int i, const GpudsEntry *alike, GpudsInterval *nulls)
{
	GpudsKeyString key = { 0, 0 };
	GpudsEntry before;
	GpudsEntry upto;
	GpudsEntry null;

	gpuds_key_prefix_bits(layout, i, &before);
	gpuds_key_prefix_bits(layout, i + 1, &upto);
	gpuds_key_put_null(&key, &layout->column[i]);
	gpuds_key_to_entry(&key, layout->nwords, 0, &null);
	nulls->lo = entry_first_alike(alike, &before);
	nulls->lo.w0 |= null.w0;
	nulls->lo.w1 |= null.w1;
	nulls->lo.t |= null.t;
	nulls->hi = entry_last_alike(&nulls->lo, &upto);
}

/*
 * The first entry with a value in column i that agrees with one, whose column i is NULL, in the columns
 * before.
 */
void
gpuds_key_not_null(const GpudsKeyLayout *layout, int i, const GpudsEntry *null, GpudsEntry *entry)
{
	GpudsKeyString key = { 0, 0 };
	GpudsEntry before;
	GpudsEntry first;

	gpuds_key_prefix_bits(layout, i, &before);
	gpuds_key_put_code(&key, &layout->column[i], 0);
	gpuds_key_to_entry(&key, layout->nwords, 0, &first);
	*entry = entry_first_alike(null, &before);
	entry->w0 |= first.w0;
	entry->w1 |= first.w1;
	entry->t |= first.t;
}

/* Puts ones in where a column has its code, if it has one, and its NULL bit. */
static void
take_column(const GpudsKeyColumn *column, GpudsKeyString *taken)
{
	if (!gpuds_key_is_side(column))
		gpuds_key_put(taken, gpuds_ones(column->bits), column->shift);
	gpuds_key_put(taken, 1, column->null_shift);
}

/* Ones in the bits of a key's first ncolumns columns, and in a word that the key does not have. */
void
gpuds_key_prefix_bits(const GpudsKeyLayout *layout, int ncolumns, GpudsEntry *bits)
{
	GpudsKeyString taken = { 0, 0 };

	for (int i = 0; i < ncolumns; i++)
		take_column(&layout->column[i], &taken);
	gpuds_key_to_entry(&taken, layout->nwords, 0, bits);
	if (layout->nwords == 1)
		bits->w1 = UINT64_MAX;
}

/* Sets ones in the bits of a key that a column takes, and in its side values, of GPUDS_SIDE_BYTES. */
void
gpuds_key_column_bits_of(const GpudsKeyLayout *layout, int i, GpudsEntry *bits, uint8 *side)
{
	const GpudsKeyColumn *column = &layout->column[i];
	GpudsKeyString taken = { 0, 0 };
	GpudsEntry own;

	if (gpuds_key_is_side(column))
		memset(side + column->side_offset, 0xFF, column->bytes);
	take_column(column, &taken);
	gpuds_key_to_entry(&taken, layout->nwords, 0, &own);
	bits->w0 |= own.w0;
	bits->w1 |= own.w1;
	bits->t |= own.t;
}
