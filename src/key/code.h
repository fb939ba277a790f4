/*-------------------------------------------------------------------------
 *
 * code.h
 *	  Inside the key directory: the codes of values, their places in a key, and cuts.
 *
 * A cut is where a constant falls among the codes of a column.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_CODE_H
#define GPUDS_KEY_CODE_H

#include "postgres.h"

#include <math.h>

#include "datatype/timestamp.h"
#include "port/pg_bswap.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/xid8.h"

#include "key/enum.h"
#include "key/key.h"
#include "key/numeric.h"
#include "key/point.h"

extern GpudsKeyKind gpuds_accepted_kind(Oid type);

/* Bits of an interval's code: |days| < 2^36.1 times 8.64e10 plus |time| < 2^63. */
#define GPUDS_INTERVAL_BITS 74

/*
 * Where a constant falls among the codes of a column, whose type may be
 * another than the constant's.  Codes are ascending ones here, DESC or not.
 */
typedef struct GpudsCut
{
	GpudsCode code; /* lowest code whose value is >= the constant */
	GpudsCode last; /* fuzzy: highest code that may be equal */
	bool above;     /* all values are < the constant */
	bool exact;     /* code's value = the constant */
	bool fuzzy;     /* codes in code..last may be on either side */
	bool hashed;    /* fuzzy: only the code equal can have values that are equal */
	GpudsCode equal;
} GpudsCut;

/* Codes lo..hi, lo <= hi. */
typedef struct GpudsCodeRange
{
	GpudsCode lo;
	GpudsCode hi;
} GpudsCodeRange;

/* A key without its TID: high is w0, or w0 and w1. */
typedef struct GpudsKeyString
{
	GpudsCode high;
	uint64 spill;
} GpudsKeyString;

/* layout.c */
extern int gpuds_kind_bits(GpudsKeyKind kind);
extern bool gpuds_kinds_compare(GpudsKeyKind a, GpudsKeyKind b);

/* cut.c */
extern void gpuds_cut(GpudsKeyKind column, GpudsKeyKind constant, Datum value, GpudsCut *cut);
extern void gpuds_column_cut(const GpudsKeyColumn *column, GpudsKeyKind constant, Datum value, GpudsCut *cut);

static inline GpudsCode
gpuds_ones(int bits)
{
	return bits >= 128 ? ~(GpudsCode) 0 : ((GpudsCode) 1 << bits) - 1;
}

static inline uint64
gpuds_signed_code(int64 value)
{
	return (uint64) value ^ (UINT64_C(1) << 63);
}

static inline int64
gpuds_signed_value(uint64 code)
{
	return (int64) (code ^ (UINT64_C(1) << 63));
}

/*
 * IEEE numbers: setting the sign bit of what is not negative and complementing
 * what is makes them ascend as unsigned numbers.  -0 equals 0, and NaN is
 * equal to itself and above all else.
 */
static inline uint64
gpuds_float8_code(float8 value)
{
	uint64 bits;

	if (unlikely(isnan(value)))
		return UINT64_MAX;
	if (value == 0)
		value = 0;
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline uint32
gpuds_float4_code(float4 value)
{
	uint32 bits;

	if (unlikely(isnan(value)))
		return PG_UINT32_MAX;
	if (value == 0)
		value = 0;
	memcpy(&bits, &value, sizeof(bits));
	return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

/* Is a kind that of numbers with a scale? */
static inline bool
gpuds_is_scaled(uint8 kind)
{
	return kind >= GPUDS_KIND_SCALED;
}

static inline int
gpuds_scale(uint8 kind)
{
	return kind - GPUDS_KIND_SCALED;
}

/* Is a kind that of texts, whose codes are text.h's? */
static inline bool
gpuds_is_text(uint8 kind)
{
	return kind == GPUDS_KIND_TEXT || kind == GPUDS_KIND_BPCHAR || kind == GPUDS_KIND_NAME ||
		   kind == GPUDS_KIND_BYTEA;
}

/*
 * The code of a value.  Raises ERRCODE_FEATURE_NOT_SUPPORTED for an enum label
 * that does not sort by its OID, and what gpuds_numeric_code does.
 */
static inline GpudsCode
gpuds_code(GpudsKeyKind kind, Datum value)
{
	if (gpuds_is_scaled(kind))
		return gpuds_numeric_code(gpuds_scale(kind), value);
	switch (kind)
	{
		case GPUDS_KIND_BOOL:
			return DatumGetBool(value);
		case GPUDS_KIND_CHAR:
			return (uint8) DatumGetChar(value);
		case GPUDS_KIND_INT2:
			return (uint16) DatumGetInt16(value) ^ (1 << 15);
		case GPUDS_KIND_INT4:
			return (uint32) DatumGetInt32(value) ^ (UINT32_C(1) << 31);
		case GPUDS_KIND_DATE:
			return (uint32) DatumGetDateADT(value) ^ (UINT32_C(1) << 31);
		case GPUDS_KIND_INT8:
		case GPUDS_KIND_TIME:
		case GPUDS_KIND_TIMESTAMP:
		case GPUDS_KIND_TIMESTAMPTZ:
		case GPUDS_KIND_MONEY:
			return gpuds_signed_code(DatumGetInt64(value));
		case GPUDS_KIND_OID:
			return DatumGetObjectId(value);
		case GPUDS_KIND_FLOAT4:
			return gpuds_float4_code(DatumGetFloat4(value));
		case GPUDS_KIND_FLOAT8:
			return gpuds_float8_code(DatumGetFloat8(value));
		case GPUDS_KIND_TIMETZ:
		{
			/* by GMT, equal ones by zone */
			const TimeTzADT *t = DatumGetTimeTzADTP(value);
			int64 gmt = t->time + t->zone * USECS_PER_SEC;

			return (GpudsCode) gpuds_signed_code(gmt) << 32 | ((uint32) t->zone ^ (UINT32_C(1) << 31));
		}
		case GPUDS_KIND_INTERVAL:
		{
			/* the length, a month taken as 30 days */
			const Interval *i = DatumGetIntervalP(value);
			__int128 days = (__int128) i->month * DAYS_PER_MONTH + i->day;

			return (GpudsCode) (days * USECS_PER_DAY + i->time + ((__int128) 1 << (GPUDS_INTERVAL_BITS - 1)));
		}
		case GPUDS_KIND_UUID:
		{
			uint64 words[2];

			memcpy(words, DatumGetUUIDP(value)->data, sizeof(words));
			return (GpudsCode) pg_ntoh64(words[0]) << 64 | pg_ntoh64(words[1]);
		}
		case GPUDS_KIND_MACADDR:
		{
			const macaddr *m = DatumGetMacaddrP(value);

			return (uint64) m->a << 40 | (uint64) m->b << 32 | (uint64) m->c << 24 | (uint64) m->d << 16 |
				   (uint64) m->e << 8 | (uint64) m->f;
		}
		case GPUDS_KIND_MACADDR8:
		{
			const macaddr8 *m = DatumGetMacaddr8P(value);

			return (uint64) m->a << 56 | (uint64) m->b << 48 | (uint64) m->c << 40 | (uint64) m->d << 32 |
				   (uint64) m->e << 24 | (uint64) m->f << 16 | (uint64) m->g << 8 | (uint64) m->h;
		}
		case GPUDS_KIND_ENUM:
			if (unlikely(!GPUDS_ENUM_LABEL_SORTS(DatumGetObjectId(value))))
				gpuds_enum_reject_label(DatumGetObjectId(value));
			return DatumGetObjectId(value);
		case GPUDS_KIND_PG_LSN:
			return DatumGetLSN(value);
		case GPUDS_KIND_XID8:
			return U64FromFullTransactionId(DatumGetFullTransactionId(value));
		case GPUDS_KIND_POINT:
			return gpuds_point_code(DatumGetPointP(value));
		case GPUDS_KIND_NONE:
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

/* The code of a value by its hash: the column has the hash's upper bits. */
static inline GpudsCode
gpuds_hashed_code(const GpudsKeyColumn *column, FmgrInfo *hash, Datum value)
{
	return gpuds_key_hash(hash, column->collation, value) >> (64 - column->bits);
}

/* The code of an included column's value. */
static inline GpudsCode
gpuds_included_code(const GpudsKeyColumn *column, Datum value)
{
	GpudsCode code = 0;

	if (gpuds_is_scaled(column->values))
		return gpuds_numeric_code(gpuds_scale(column->values), value);
	/* what is shorter than a Datum may have been widened either way */
	if (column->by_value)
		return (uint64) value & gpuds_ones(8 * column->bytes);
	for (int i = 0; i < column->bytes; i++)
		code = code << 8 | ((const uint8 *) DatumGetPointer(value))[i];
	return code;
}

/*
 * Bytes of a constant that is an integer whose code in the column is the value plus half of the codes
 * there are, if the column can hold it; 0: it is not of that sort.
 */
static inline int
gpuds_integer_bytes(const GpudsKeyColumn *column, GpudsKeyKind constant)
{
	switch (constant)
	{
		case GPUDS_KIND_INT2:
			return sizeof(int16);
		case GPUDS_KIND_INT4:
			return sizeof(int32);
		case GPUDS_KIND_INT8:
			return sizeof(int64);
		case GPUDS_KIND_DATE:
			return column->kind == constant ? sizeof(int32) : 0;
		case GPUDS_KIND_TIME:
		case GPUDS_KIND_TIMESTAMP:
		case GPUDS_KIND_TIMESTAMPTZ:
		case GPUDS_KIND_MONEY:
			return column->kind == constant ? sizeof(int64) : 0;
		default:
			return 0;
	}
}

/* Puts bits in at a place, which were zero. */
static inline void
gpuds_key_put(GpudsKeyString *key, GpudsCode bits, int place)
{
	if (place >= ENTRY_SPILL_BITS)
		key->high |= bits << (place - ENTRY_SPILL_BITS);
	else
	{
		key->high |= bits >> (ENTRY_SPILL_BITS - place);
		key->spill |= (uint64) (bits << place) & ((1 << ENTRY_SPILL_BITS) - 1);
	}
}

/* Takes nbits bits from a place. */
static inline GpudsCode
gpuds_key_get(const GpudsKeyString *key, int place, int nbits)
{
	GpudsCode bits;

	if (place >= ENTRY_SPILL_BITS)
		bits = key->high >> (place - ENTRY_SPILL_BITS);
	else
		bits = key->high << (ENTRY_SPILL_BITS - place) | key->spill >> place;
	return bits & gpuds_ones(nbits);
}

/* Where a column's code begins in w0; negative: not all of it is there. */
static inline int
gpuds_first_word_shift(const GpudsKeyLayout *layout, const GpudsKeyColumn *column)
{
	return column->shift - ENTRY_SPILL_BITS - 64 * (layout->nwords - 1);
}

static inline bool
gpuds_in_first_word(const GpudsKeyLayout *layout, const GpudsKeyColumn *column)
{
	return gpuds_first_word_shift(layout, column) >= 0;
}

/* The NULL bit of a column's NULLs; its values have the opposite. */
static inline GpudsCode
gpuds_null_bit(const GpudsKeyColumn *column)
{
	return column->nulls_first ? 0 : 1;
}

/* Puts a column's value in, code being the one stored (complemented if DESC). */
static inline void
gpuds_key_put_code(GpudsKeyString *key, const GpudsKeyColumn *column, GpudsCode code)
{
	gpuds_key_put(key, code, column->shift);
	gpuds_key_put(key, 1 - gpuds_null_bit(column), column->null_shift);
}

static inline void
gpuds_key_put_null(GpudsKeyString *key, const GpudsKeyColumn *column)
{
	if (!column->nulls_first)
	{
		gpuds_key_put(key, gpuds_ones(column->bits), column->shift);
		gpuds_key_put(key, 1, column->null_shift);
	}
}

static inline void
gpuds_key_to_entry(const GpudsKeyString *key, int nwords, uint64 tid, GpudsEntry *entry)
{
	if (nwords == 1)
	{
		entry->w0 = (uint64) key->high;
		entry->w1 = 0;
	}
	else
	{
		entry->w0 = (uint64) (key->high >> 64);
		entry->w1 = (uint64) key->high;
	}
	entry->t = key->spill << ENTRY_SPILL_SHIFT | tid;
}

static inline void
gpuds_key_from_entry(const GpudsEntry *entry, int nwords, GpudsKeyString *key)
{
	key->high = entry->w0;
	if (nwords == 2)
		key->high = key->high << 64 | entry->w1;
	key->spill = entry->t >> ENTRY_SPILL_SHIFT;
}

/* The code of an entry's first column, ascending, if that is not NULL. */
static inline GpudsCode
gpuds_first_code(const GpudsKeyLayout *layout, const GpudsEntry *entry)
{
	const GpudsKeyColumn *column = &layout->column[0];
	GpudsKeyString key;
	GpudsCode code;

	gpuds_key_from_entry(entry, layout->nwords, &key);
	code = gpuds_key_get(&key, column->shift, column->bits);
	return column->descending ? code ^ gpuds_ones(column->bits) : code;
}

#endif /* GPUDS_KEY_CODE_H */
