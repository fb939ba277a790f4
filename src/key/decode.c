/*-------------------------------------------------------------------------
 *
 * decode.c
 *	  Column values from entries, the inverse of encode.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/code.h"

static void
decode_uuid(GpudsCode code, pg_uuid_t *uuid)
{
	uint64 words[2] = { pg_hton64((uint64) (code >> 64)), pg_hton64((uint64) code) };

	memcpy(uuid->data, words, sizeof(words));
}

static void
decode_macaddr(uint64 code, macaddr *m)
{
	m->a = code >> 40;
	m->b = code >> 32;
	m->c = code >> 24;
	m->d = code >> 16;
	m->e = code >> 8;
	m->f = code;
}

static void
decode_macaddr8(uint64 code, macaddr8 *m)
{
	m->a = code >> 56;
	m->b = code >> 48;
	m->c = code >> 40;
	m->d = code >> 32;
	m->e = code >> 24;
	m->f = code >> 16;
	m->g = code >> 8;
	m->h = code;
}

static void
decode_timetz(GpudsCode code, TimeTzADT *t)
{
	t->zone = (int32) ((uint32) code ^ (UINT32_C(1) << 31));
	t->time = gpuds_signed_value((uint64) (code >> 32)) - t->zone * USECS_PER_SEC;
}

/* The value of a code, in *bytes if it is passed by reference; only of exact kinds. */
static Datum
decode_value(GpudsKeyKind kind, GpudsCode code, GpudsKeyBytes *bytes)
{
	if (gpuds_is_scaled(kind))
		return gpuds_numeric_value(gpuds_scale(kind), (uint64) code, bytes);
	switch (kind)
	{
		case GPUDS_KIND_BOOL:
			return BoolGetDatum(code != 0);
		case GPUDS_KIND_CHAR:
			return CharGetDatum((char) code);
		case GPUDS_KIND_INT2:
			return Int16GetDatum((int16) ((uint16) code ^ (1 << 15)));
		case GPUDS_KIND_INT4:
			return Int32GetDatum((int32) ((uint32) code ^ (UINT32_C(1) << 31)));
		case GPUDS_KIND_DATE:
			return DateADTGetDatum((DateADT) ((uint32) code ^ (UINT32_C(1) << 31)));
		case GPUDS_KIND_INT8:
		case GPUDS_KIND_TIME:
		case GPUDS_KIND_TIMESTAMP:
		case GPUDS_KIND_TIMESTAMPTZ:
		case GPUDS_KIND_MONEY:
			return Int64GetDatum(gpuds_signed_value((uint64) code));
		case GPUDS_KIND_OID:
		case GPUDS_KIND_ENUM:
			return ObjectIdGetDatum((Oid) code);
		case GPUDS_KIND_PG_LSN:
			return LSNGetDatum((XLogRecPtr) code);
		case GPUDS_KIND_XID8:
			return FullTransactionIdGetDatum(FullTransactionIdFromU64((uint64) code));
		case GPUDS_KIND_UUID:
			decode_uuid(code, &bytes->uuid);
			return UUIDPGetDatum(&bytes->uuid);
		case GPUDS_KIND_MACADDR:
			decode_macaddr((uint64) code, &bytes->macaddr);
			return MacaddrPGetDatum(&bytes->macaddr);
		case GPUDS_KIND_MACADDR8:
			decode_macaddr8((uint64) code, &bytes->macaddr8);
			return Macaddr8PGetDatum(&bytes->macaddr8);
		case GPUDS_KIND_TIMETZ:
			decode_timetz(code, &bytes->timetz);
			return TimeTzADTPGetDatum(&bytes->timetz);
		case GPUDS_KIND_POINT:
			gpuds_point_value(code, &bytes->point);
			return PointPGetDatum(&bytes->point);
		case GPUDS_KIND_NONE:
		case GPUDS_KIND_FLOAT4:
		case GPUDS_KIND_FLOAT8:
		case GPUDS_KIND_INTERVAL:
		case GPUDS_KIND_TEXT:
		case GPUDS_KIND_BPCHAR:
		case GPUDS_KIND_NAME:
		case GPUDS_KIND_BYTEA:
		case GPUDS_KIND_INCLUDED:
		case GPUDS_KIND_HASHED:
		case GPUDS_KIND_NUMERIC:
		case GPUDS_KIND_SCALED:
			break;
	}
	elog(ERROR, "unrecognized kind of key: %d", (int) kind);
	pg_unreachable();
}

/* The value of an included column's code, in *bytes if it is passed by reference. */
static Datum
decode_included(const GpudsKeyColumn *column, GpudsCode code, GpudsKeyBytes *bytes)
{
	if (gpuds_is_scaled(column->values))
		return gpuds_numeric_value(gpuds_scale(column->values), (uint64) code, bytes);
	if (column->by_value)
	{
		uint64 value = (uint64) code;

		/* as fetch_att makes it of a row */
		switch (column->bytes)
		{
			case 1:
				return CharGetDatum((char) value);
			case 2:
				return Int16GetDatum((int16) value);
			case 4:
				return Int32GetDatum((int32) value);
			default:
				return (Datum) value;
		}
	}
	for (int i = column->bytes - 1; i >= 0; i--, code >>= 8)
		bytes->bytes[i] = (uint8) code;
	return PointerGetDatum(bytes->bytes);
}

/* Is a column of an entry's key, included ones left out, NULL? */
bool
gpuds_key_has_null(const GpudsKeyLayout *layout, const GpudsEntry *entry)
{
	GpudsKeyString key;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	for (int i = 0; i < layout->nkeys; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];

		if (gpuds_key_get(&key, column->null_shift, 1) == gpuds_null_bit(column))
			return true;
	}
	return false;
}

/*
 * The values of an entry's columns; NULL for those of a type that is not exact.  bytes, as
 * many as there are columns, is where values lie that are passed by reference.  side has the row's side
 * values; without them (NULL) the values of side columns are left out as NULL, too.  Allocates
 * nothing.  Returns whether any of them is NULL.
 */
bool
gpuds_key_decode(const GpudsKeyLayout *layout, const GpudsEntry *entry, const uint8 *side,
				 GpudsKeyBytes *bytes, Datum *values, bool *isnull)
{
	GpudsKeyString key;
	bool has_nulls = false;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	for (int i = 0; i < layout->ncolumns; i++)
	{
		const GpudsKeyColumn *column = &layout->column[i];
		GpudsCode code;

		values[i] = (Datum) 0;
		isnull[i] = !column->exact || gpuds_key_get(&key, column->null_shift, 1) == gpuds_null_bit(column);
		if (isnull[i])
		{
			has_nulls = true;
			continue;
		}
		if (gpuds_key_is_side(column))
		{
			isnull[i] = side == NULL;
			has_nulls |= isnull[i];
			if (side)
				values[i] = gpuds_key_side_get(column, side, &bytes[i]);
			continue;
		}
		code = gpuds_key_get(&key, column->shift, column->bits);
		if (column->descending)
			code ^= gpuds_ones(column->bits);
		values[i] = i < layout->nkeys ? decode_value(column->kind, code, &bytes[i])
									  : decode_included(column, code, &bytes[i]);
	}
	return has_nulls;
}
