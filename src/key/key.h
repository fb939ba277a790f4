/*-------------------------------------------------------------------------
 *
 * key.h
 *	  Order-preserving encodings of index keys, and scan keys as intervals.
 *
 * A column's value becomes a code: a number with a fixed count of bits, compared as
 * unsigned, that orders and equals exactly as the type's btree operator class does.  For
 * DESC the bits are complemented.
 *
 * A key is a bit string.  For each column it has one NULL bit and the code, most significant
 * first.  Only in the key's last column the NULL bit follows the code, so that a key of one
 * column fills its words and has its NULL bit behind them.  A
 * NULL that sorts first has the NULL bit 0 and a code of zeros; a NULL that sorts last has
 * the NULL bit 1 and a code of ones.  A value has the opposite NULL bit.
 *
 * Included columns (INCLUDE) come behind the key's.  They are not searched, so their code need
 * not order anything: it is the value's bytes as the table has them, and their NULL bit
 * follows it, 1 for a NULL.  A type may change to one of the same bytes without the
 * index being built again, so a code must not depend on the type.
 *
 * Included columns for which a key has no bits left are side columns: the key has their NULL bits only.
 * Their values are the side values of the entry's row, up to GPUDS_SIDE_BYTES bytes one after the other as
 * the table has them (NULL: zeros), and are found by its TID (side/side.h).
 *
 * The string is left-aligned in 72 bits (w0 and the spill, the top byte of t), or, if it is
 * longer, in 136 bits (w0, w1 and the spill).  The bits behind it are zero.  Places in a
 * key are counted from the right end of these 72 or 136 bits: place 0 is the spill's
 * lowest bit.
 *
 * A column is lossy if several values may have one code: equal values have equal codes, but what is found by
 * a code is only a candidate, whose value must be looked at (reader/recheck.c).  An access method that does
 * not order has no use for an order of codes, and there a code may be a hash of the value (hash.c).  Where
 * there is an order, texts are lossy (text.h): of two values of one code, or of two that only their hashes
 * tell apart, the value says which comes first (reader/value_order.h).
 *
 * Limits: 8 columns, the included ones among them; 136 bits with all NULL bits, but without side columns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_KEY_H
#define GPUDS_KEY_H

#include "access/skey.h"
#include "access/stratnum.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "storage/itemptr.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/geo_decls.h"
#include "utils/inet.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/uuid.h"

#include "kernels/core/column_test.h"
#include "kernels/core/entry.h"
#include "kernels/core/partial_agg.h"

#define GPUDS_KEY_MAX_COLUMNS 8
#define GPUDS_KEY_MAX_BITS 136

/* The most bytes of a value of an included column. */
#define GPUDS_INCLUDED_BYTES 16

/* The most bytes of the side values of a row. */
#define GPUDS_SIDE_BYTES 32

/* A code of up to 128 bits, right-aligned.  palloc aligns to less than 16 bytes. */
typedef unsigned __int128 GpudsCode pg_attribute_aligned(MAXIMUM_ALIGNOF);

/*
 * How a type's values become codes.  Kinds of one group compare with each
 * other, as the members of btree's operator families do.
 */
typedef enum GpudsKeyKind
{
	GPUDS_KIND_NONE, /* not a type that we index */
	GPUDS_KIND_BOOL,
	GPUDS_KIND_CHAR,
	GPUDS_KIND_INT2,
	GPUDS_KIND_INT4,
	GPUDS_KIND_INT8,
	GPUDS_KIND_OID,
	GPUDS_KIND_FLOAT4,
	GPUDS_KIND_FLOAT8,
	GPUDS_KIND_DATE,
	GPUDS_KIND_TIME,
	GPUDS_KIND_TIMETZ,
	GPUDS_KIND_TIMESTAMP,
	GPUDS_KIND_TIMESTAMPTZ,
	GPUDS_KIND_INTERVAL,
	GPUDS_KIND_UUID,
	GPUDS_KIND_MACADDR,
	GPUDS_KIND_MACADDR8,
	GPUDS_KIND_ENUM,
	GPUDS_KIND_MONEY,
	GPUDS_KIND_PG_LSN,
	GPUDS_KIND_XID8,
	GPUDS_KIND_POINT,  /* Z-order; no order of values, and no equality (point.c) */
	GPUDS_KIND_TEXT,   /* the first bytes, in the order of bytes (text.h) */
	GPUDS_KIND_BPCHAR, /* the same without blanks at the end */
	GPUDS_KIND_NAME,   /* compares with texts */
	GPUDS_KIND_BYTEA,
	GPUDS_KIND_INCLUDED, /* its code is what the table has */
	GPUDS_KIND_HASHED,   /* its code is a hash of the value */
	GPUDS_KIND_NUMERIC,  /* a constant of any scale */
	GPUDS_KIND_SCALED    /* a column of numbers without digits behind the point; with n: n more than this */
} GpudsKeyKind;

/* Beginnings that many texts of a column have (stems.h). */
typedef struct GpudsStems GpudsStems;

typedef struct GpudsKeyColumn
{
	Oid type;         /* base type of the column (opclass input); of included ones what the table has */
	uint8 kind;       /* GpudsKeyKind of its codes */
	uint8 values;     /* GpudsKeyKind of its values, whatever the codes are */
	uint8 bits;       /* length of the code, 1..128; 0: a side column */
	uint8 shift;      /* place of the code's lowest bit */
	uint8 null_shift; /* place of the NULL bit */
	bool descending;
	bool nulls_first;
	bool exact; /* the value can be told from the code */
	/* of a lossy column; values are found among others by their hashes, whatever codes are */
	FmgrInfo *hash; /* of its type, of a cache or the current memory context; NULL: the column is not lossy */
	Oid family;     /* operator family, which has the functions for other types that it is compared with */
	Oid collation;
	/* of a column of texts, which is not encoded without; NULL: not known, where only catalogs are read */
	const GpudsStems *stems;
	/* of an included column */
	uint8 bytes;
	bool by_value;
	/* of a side column */
	uint8 side_offset; /* among the side values */
} GpudsKeyColumn;

/* Levels of a key's cells (cell.c), at most. */
#define GPUDS_CELL_LEVELS (GPUDS_KEY_MAX_BITS / 8 + GPUDS_KEY_MAX_COLUMNS)

typedef struct GpudsKeyLayout
{
	int nkeys;      /* columns of the key, which come first */
	int ncolumns;   /* the same, and included ones */
	int nwords;     /* GpudsKeyWords(nbits) */
	int nbits;      /* codes and NULL bits */
	bool ordered;   /* codes have the order of values; else equality is all that there is */
	bool lossy;     /* there are lossy columns */
	bool varying;   /* values of some columns differ in length */
	int side_bytes; /* of side values, rounded up to 8; 0: there are no side columns */
	int nlevels;
	uint8 level[GPUDS_CELL_LEVELS]; /* place of the lowest bit of keys that cells of a level have */
	GpudsKeyColumn column[GPUDS_KEY_MAX_COLUMNS]; /* gpuds_key_layout refuses an index that has more */
} GpudsKeyLayout;

/* Words that codes and NULL bits of so many bits take, beside the spill. */
#define GpudsKeyWords(nbits) ((nbits) <= 64 + ENTRY_SPILL_BITS ? 1 : 2)

/*
 * A condition on columns that the intervals do not express: the entry's codes
 * must be in given sets.
 */
typedef struct GpudsKeyFilter GpudsKeyFilter;

/*
 * What a set of scan keys asks for: entries in total disjoint, ascending intervals
 * that pass the filter (NULL: all do).  recheck: the answer may hold more than
 * was asked for, the executor must look again.  candidates: it holds rows of which somebody must look at the
 * values: whoever makes a GpudsRecheck of the keys, or else the executor.
 *
 * Arrays make many intervals, arrays on several columns their product, so only a
 * batch of them is at hand, of a size that work_mem allows: the intervals numbered
 * from first on.  gpuds_key_set_turn goes to another batch.
 *
 * Many points may come unsorted and with duplicates, all in one batch: sorting them
 * is a third of the work of making them, and a device may not need it.
 * gpuds_key_set_sort puts them right.
 *
 * A lone interval lies in single, so that it needs no allocation: a key set
 * must stay where it was filled in.
 */
typedef struct GpudsKeySet
{
	GpudsInterval *intervals; /* of the batch, as in GpudsScan */
	int64 nintervals;
	uint64 *points;
	bool sorted; /* else the points are as they came */
	GpudsKeyFilter *filter;
	bool recheck;
	bool candidates;
	int64 total;
	int64 first;
	int64 batch;                     /* most intervals of a batch */
	uint64 *all_points;              /* NULL, or the points of all batches */
	struct GpudsKeyProduct *product; /* makes the batches; NULL: there is one */
	GpudsInterval single;
} GpudsKeySet;

/*
 * Does a key find candidates by a lossy column, of which a GpudsRecheck knows how to look at the values?
 * Else the executor looks, where codes do not decide (GpudsKeySet).
 */
static inline bool
gpuds_key_finds_candidates(const GpudsKeyLayout *layout, const ScanKeyData *key)
{
	return layout->column[key->sk_attno - 1].hash != NULL &&
		   (key->sk_flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL)) == 0 &&
		   (!layout->ordered ||
			((key->sk_flags & SK_SEARCHARRAY) && key->sk_strategy == BTEqualStrategyNumber));
}

/* Is a column's value not in entries? */
static inline bool
gpuds_key_is_side(const GpudsKeyColumn *column)
{
	return column->bits == 0;
}

/* layout.c */
extern void gpuds_key_layout(Relation index, GpudsKeyLayout *layout);
extern GpudsKeyKind gpuds_key_kind(Oid type);
extern GpudsKeyKind gpuds_key_core_kind(Oid type);
extern bool gpuds_key_is_exact(Oid type);
extern bool gpuds_key_is_bytes(Oid type);
extern bool gpuds_key_is_text(Oid type);
extern bool gpuds_key_is_lossy(bool ordered, int nkeys, const Oid *families, const Oid *types, int column);
extern int gpuds_key_widened_bits(Oid type, int bits, int more);
extern int gpuds_key_column_bits(Oid type, int32 typmod);
extern int gpuds_key_included_bits(Oid type, int32 typmod);
extern void gpuds_key_check_numbers(Relation index, int from, int nkeys);
extern const char *gpuds_key_types_detail(Oid type, bool included);
extern bool gpuds_key_orders_alike(const GpudsKeyLayout *a, const GpudsKeyLayout *b, int ncolumns);
extern int gpuds_key_bits_behind(const GpudsKeyLayout *layout, int ncolumns);
extern GpudsEntry gpuds_key_ones_behind(const GpudsKeyLayout *layout, int ncolumns);
extern void gpuds_key_choose_side(int nkeys, int ncolumns, const int *bits, bool *side);

/* accepted.c */

/* The support function of an operator class that orders: of what type is the order (accepted.c)? */
#define GPUDS_ORDER_PROC 1
#define GPUDS_NORDER_PROCS 1

/* A type of PostgreSQL's that others may be like, and its comparison. */
typedef struct GpudsAlike
{
	Oid type;
	Oid comparison;
	GpudsKeyKind kind;
} GpudsAlike;

extern const GpudsAlike *gpuds_alike(int i);
extern const GpudsAlike *gpuds_alike_of(Oid comparison, Oid type);
extern GpudsKeyKind gpuds_accepted_by(const char *method, Oid type);
extern bool gpuds_is_as_long(Oid type, const GpudsAlike *alike);
extern bool gpuds_can_be_alike(Oid type);

/* What ANALYZE has of a column: common values with their shares of rows, and ascending bounds of buckets. */
typedef struct GpudsSample
{
	const Datum *common;
	const float4 *shares;
	int ncommon;
	const Datum *bounds;
	int nbounds;
	double bucket; /* the share of each */
} GpudsSample;

/* Shares of a column's rows: in the run of a row that is taken at random; in runs of two rows or more. */
typedef struct GpudsRunShares
{
	double of_one;
	double of_all;
} GpudsRunShares;

/* stems.c */
extern const GpudsStems gpuds_no_stems;
extern bool gpuds_key_may_have_stems(const GpudsKeyLayout *layout);
extern bool gpuds_stems_load(const GpudsKeyLayout *layout, const char *stored, Size size,
							 MemoryContext context, const GpudsStems *stems[GPUDS_KEY_MAX_COLUMNS]);
extern void gpuds_key_set_stems(GpudsKeyLayout *layout, const GpudsStems *const stems[GPUDS_KEY_MAX_COLUMNS]);

/* stem_sample.c */
typedef struct GpudsStemSample GpudsStemSample;

extern GpudsStemSample *gpuds_stem_sample_begin(const GpudsKeyLayout *layout, Size memory);
extern void gpuds_stem_sample_add(GpudsStemSample *sample, const Datum *values, const bool *isnull);
extern void gpuds_stem_sample_end(GpudsStemSample *sample, double share, StringInfo stored);

/* text_run.c */
extern int gpuds_key_next_run(const GpudsKeyLayout *layout, const GpudsEntry *entry, int from);
extern void gpuds_key_run_bits(const GpudsKeyLayout *layout, int i, GpudsEntry *bits);
extern bool gpuds_key_stored_code(const GpudsKeyLayout *layout, int i, const GpudsEntry *entry,
								  GpudsCode *code);
extern GpudsRunShares gpuds_key_run_shares(const GpudsKeyColumn *column, const GpudsSample *sample);
extern double gpuds_key_bound_share(const GpudsKeyColumn *column, const GpudsSample *sample, Oid type,
									Datum value);

/* point_operator.c */

/* Strategies of points beside btree's, with GiST's numbers: ~= point, and <@ box or circle. */
#define GPUDS_SAME_STRATEGY RTSameStrategyNumber
#define GPUDS_WITHIN_STRATEGY RTContainedByStrategyNumber

extern Oid gpuds_point_function(StrategyNumber strategy, Oid type);

/* hash.c */

/*
 * Support functions of operator classes that only know equality have the numbers of hash's: 1 is a hash of
 * 32 bits, which has no use here, and this is the one of 64 bits.
 */
#define GPUDS_LONG_HASH_PROC 2
#define GPUDS_NPROCS 2

extern uint64 gpuds_key_hash(FmgrInfo *hash, Oid collation, Datum value);
extern FmgrInfo *gpuds_key_sound_hash(FmgrInfo *hash, Oid collation);
extern FmgrInfo *gpuds_key_hash_for(const GpudsKeyColumn *column, Oid type);
extern Oid gpuds_key_unsound_part(Oid type, Oid collation);

/*
 * Memory for what hash functions leave behind, for values that come one after the other; zero at first.  It
 * is made in the memory context of its first use.
 */
typedef struct GpudsKeyScratch
{
	MemoryContext context;
	uint32 uses;
} GpudsKeyScratch;

#define GPUDS_SCRATCH_USES 64

/* Turns to the scratch if a key is lossy; returns the context to turn back to. */
static inline MemoryContext
gpuds_key_scratch_enter(GpudsKeyScratch *scratch, const GpudsKeyLayout *layout)
{
	if (!layout->lossy)
		return CurrentMemoryContext;
	if (scratch->context == NULL)
		scratch->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds hashes", ALLOCSET_SMALL_SIZES);
	else if (++scratch->uses % GPUDS_SCRATCH_USES == 0)
		MemoryContextReset(scratch->context);
	return MemoryContextSwitchTo(scratch->context);
}

static inline void
gpuds_key_scratch_end(GpudsKeyScratch *scratch)
{
	if (scratch->context)
		MemoryContextDelete(scratch->context);
	scratch->context = NULL;
}

/* encode.c */
extern void gpuds_key_encode(const GpudsKeyLayout *layout, const Datum *values, const bool *isnull,
							 ItemPointer tid, GpudsEntry *entry);

/* decode.c */

/* The most digits to the base of 10,000 of a number that has a code. */
#define GPUDS_NUMERIC_BASE_DIGITS 6

/* Where a value lies that is passed by reference. */
typedef union GpudsKeyBytes
{
	uint16 numeric[3 + GPUDS_NUMERIC_BASE_DIGITS]; /* its length takes two of these, the header one */
	pg_uuid_t uuid;
	macaddr macaddr;
	macaddr8 macaddr8;
	TimeTzADT timetz;
	Point point;
	uint8 bytes[GPUDS_INCLUDED_BYTES];
} GpudsKeyBytes;

extern bool gpuds_key_has_null(const GpudsKeyLayout *layout, const GpudsEntry *entry);
extern bool gpuds_key_decode(const GpudsKeyLayout *layout, const GpudsEntry *entry, const uint8 *side,
							 GpudsKeyBytes *bytes, Datum *values, bool *isnull);

/* side_values.c */
extern void gpuds_key_side_put(const GpudsKeyColumn *column, Datum value, bool isnull, uint8 *side);
extern Datum gpuds_key_side_get(const GpudsKeyColumn *column, const uint8 *side, GpudsKeyBytes *bytes);
extern void gpuds_key_side_encode(const GpudsKeyLayout *layout, const Datum *values, const bool *isnull,
								  uint8 *side);

/* probe_key.c */

/* How values for leading columns become probes. */
typedef struct GpudsKeyProbe
{
	const GpudsKeyLayout *layout;
	int ncolumns;                          /* of the index's, so GPUDS_KEY_MAX_COLUMNS at most */
	uint8 kind[GPUDS_KEY_MAX_COLUMNS];     /* GpudsKeyKind of the values */
	FmgrInfo *hash[GPUDS_KEY_MAX_COLUMNS]; /* of the values; NULL: the column's codes are no hashes */
	GpudsEntry rest;                       /* ones in the bits of other columns, and in the TID's */
	bool words;                            /* probes differ in w0 only, and in their numbers */
	GpudsEntry zero;                       /* the probe of codes that are 0; NULL bits may be set */

	/*
	 * Of one column whose codes are integers less the least one (gpuds_key_probe_integer): bytes of a value,
	 * else 0; what makes the code of a value, and where it is in w0; the values that the column can hold.
	 */
	int integer_bytes;
	uint64 flip;
	uint64 ones;
	int shift;
	int64 least;
	int64 greatest;
} GpudsKeyProbe;

/*
 * The probe of an integer, if probe->integer_bytes is not 0, with a number as gpuds_key_probe has it; false:
 * the column cannot hold it.
 */
static inline bool
gpuds_key_probe_integer(const GpudsKeyProbe *probe, int64 value, uint64 number, GpudsEntry *entry)
{
	entry->w0 = probe->zero.w0 | (((uint64) value ^ probe->flip) & probe->ones) << probe->shift;
	entry->w1 = probe->zero.w1;
	entry->t = probe->zero.t | number;
	return value >= probe->least && value <= probe->greatest;
}

/* The integer that a Datum of a probe's type is; probe->integer_bytes is not 0. */
static inline int64
gpuds_key_probe_value(const GpudsKeyProbe *probe, Datum value)
{
	return probe->integer_bytes == sizeof(int64)   ? DatumGetInt64(value)
		   : probe->integer_bytes == sizeof(int32) ? DatumGetInt32(value)
												   : DatumGetInt16(value);
}

extern bool gpuds_key_probe_is_exact(Oid column, Oid type);
extern void gpuds_key_probe_init(GpudsKeyProbe *probe, const GpudsKeyLayout *layout, int ncolumns,
								 const Oid *types);
extern bool gpuds_key_probe(const GpudsKeyProbe *probe, const Datum *values, const bool *isnull,
							uint64 number, GpudsEntry *entry);
extern bool gpuds_key_probe_integers(const GpudsKeyProbe *probe, const char *values, int64 n, uint64 number,
									 GpudsEntry *entries, int64 *kept);
extern bool gpuds_key_probe_words(const GpudsKeyProbe *probe, const char *values, int64 n, uint64 *words);
extern void gpuds_key_set_of_points(const GpudsKeyProbe *probe, uint64 *points, int64 n, GpudsKeySet *set);
extern void gpuds_key_set_of_probes(const GpudsKeyProbe *probe, const GpudsEntry *entries, int64 n,
									GpudsKeySet *set);

/* All entries that a probe is equal to. */
static inline GpudsInterval
gpuds_key_probe_interval(const GpudsKeyProbe *probe, const GpudsEntry *entry)
{
	GpudsInterval interval;

	interval.lo.w0 = entry->w0 & ~probe->rest.w0;
	interval.lo.w1 = entry->w1 & ~probe->rest.w1;
	interval.lo.t = entry->t & ~probe->rest.t;
	interval.hi.w0 = entry->w0 | probe->rest.w0;
	interval.hi.w1 = entry->w1 | probe->rest.w1;
	interval.hi.t = entry->t | probe->rest.t;
	return interval;
}

/* Columns that add up the squares of an integer column. */
#define GPUDS_KEY_SQUARES 3

/* agg_column.c */
extern bool gpuds_key_can_aggregate(Oid type);
extern void gpuds_key_agg_column(const GpudsKeyLayout *layout, int i, AggColumn *agg_column);
extern void gpuds_key_agg_column_nulls(const GpudsKeyLayout *layout, int i, AggColumn *agg_column);
extern void gpuds_key_agg_column_rows(AggColumn *agg_column);
extern void gpuds_key_agg_column_integers(int bytes, AggColumn *agg_column);
extern int gpuds_key_agg_column_squares(const AggColumn *agg_column, AggColumn *squares);
extern __int128 gpuds_key_squares_sum(const AggColumn *square, const PartialAgg *partial);
extern __int128 gpuds_key_partial_agg_sum(uint8 values, const AggColumn *agg_column,
										  const PartialAgg *partial);
extern int gpuds_key_scale(uint8 values);
extern bool gpuds_key_has_nan(uint8 values, const PartialAgg *partial);
extern Datum gpuds_key_partial_agg_value(uint8 values, const AggColumn *agg_column, uint64 code);
extern void gpuds_key_set_partial_agg(const AggColumn *agg_column, int nwords, uint64 code,
									  GpudsEntry *entry);
extern void gpuds_key_null_interval(const GpudsKeyLayout *layout, int i, const GpudsEntry *alike,
									GpudsInterval *nulls);
extern void gpuds_key_not_null(const GpudsKeyLayout *layout, int i, const GpudsEntry *null,
							   GpudsEntry *entry);
extern void gpuds_key_prefix_bits(const GpudsKeyLayout *layout, int ncolumns, GpudsEntry *bits);
extern void gpuds_key_column_bits_of(const GpudsKeyLayout *layout, int i, GpudsEntry *bits, uint8 *side);

/*
 * The number of the probe that an entry is equal to, among n ascending ones with zeros in place of
 * numbers, from one on; n: none is.  An entry's probe is not before that of the entry before it.
 */
static inline int64
gpuds_key_probe_find(const GpudsKeyProbe *probe, const GpudsEntry *probes, int64 n, int64 from,
					 const GpudsEntry *entry)
{
	GpudsEntry key;

	key.w0 = entry->w0 & ~probe->rest.w0;
	key.w1 = entry->w1 & ~probe->rest.w1;
	key.t = entry->t & ~probe->rest.t;
	while (from < n && entry_less(&probes[from], &key))
		from++;
	return from < n && entry_equal(&probes[from], &key) ? from : n;
}

/* array.c */
extern ArrayType *gpuds_key_array(Datum value, bool *copied);

/* bounds.c */
extern void gpuds_key_set(Relation index, const GpudsKeyLayout *layout, ScanKey keys, int nkeys,
						  GpudsKeySet *set);
extern void gpuds_key_set_sort(GpudsKeySet *set);
extern bool gpuds_key_set_turn(GpudsKeySet *set, int64 number);
extern int64 gpuds_key_set_find(const GpudsKeySet *set, const GpudsEntry *entry);

/* condition_test.c */

/* A condition on a column: it is compared with a constant, or with any element of an array. */
typedef struct GpudsKeyCondition
{
	StrategyNumber strategy; /* btree's */
	Oid type;                /* of the constant, or of elements */
	bool array;
	bool negated; /* under NOT */
	bool isnull;
	Datum value;
} GpudsKeyCondition;

extern bool gpuds_key_can_test(Oid column, bool included, Oid constant);
extern void gpuds_key_test_compare(const GpudsKeyLayout *layout, int i, const GpudsKeyCondition *condition,
								   ColumnTest *test);
extern void gpuds_key_test_null(const GpudsKeyLayout *layout, int i, bool values, bool null,
								ColumnTest *test);

/* cell.c */

/* Cells of an interval, at most. */
#define GPUDS_INTERVAL_CELLS 8

/* Numbers of cells are those of blocks: InvalidBlockNumber is none of them. */
#define GPUDS_CELL_MASK 0x7FFFFFFF

extern void gpuds_key_set_levels(GpudsKeyLayout *layout);
extern uint32 gpuds_key_cell(const GpudsKeyLayout *layout, int level, const GpudsEntry *entry);
extern int gpuds_key_interval_cells(const GpudsKeyLayout *layout, const GpudsInterval *interval,
									uint32 *cells);

/* key_filter.c */
extern bool gpuds_key_filter_pass(const GpudsKeyFilter *filter, const GpudsEntry *entry);

static inline void
gpuds_entry_tid(const GpudsEntry *entry, ItemPointer tid)
{
	uint64 bits = entry->t & ENTRY_TID_MASK;

	ItemPointerSet(tid, (BlockNumber) (bits >> 16), (OffsetNumber) (bits & 0xFFFF));
}

static inline uint64
gpuds_tid_bits(ItemPointer tid)
{
	return (uint64) ItemPointerGetBlockNumber(tid) << 16 | ItemPointerGetOffsetNumber(tid);
}

#endif /* GPUDS_KEY_H */
