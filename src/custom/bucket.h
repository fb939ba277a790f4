/*-------------------------------------------------------------------------
 *
 * bucket.h
 *	  Groups by a function of a key column that never descends: days of timestamps, thousands of numbers
 *	  (ascending.h).
 *
 * The rows of such a group have neighbouring keys, so it is enough to know its last one.  The function is
 * PostgreSQL's own.  It is evaluated for some values only: those that it takes to find the last.
 *
 * A function that depends on TimeZone ascends as long as the zone's offset from UTC stays the same.
 * Where clocks are put back it may descend, for a moment or for a day.  So a bucket ends there at the
 * latest, and buckets of one value that do not follow each other are to be put together by the caller.
 * That is enough to look at a few at a time: GPUDS_BUCKETS_HELD.
 *
 * Or rows are grouped by any expression of a column, whose groups' rows do not follow each other; then
 * buckets are what it is constant on (granule.h), and gpuds_bucket_result has its value.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_BUCKET_H
#define GPUDS_CUSTOM_BUCKET_H

#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "nodes/primnodes.h"

#include "custom/granule.h"
#include "key/key.h"

#define GPUDS_BUCKETS_HELD 8

/* An expression that is evaluated once for each bucket, and its type. */
typedef struct GpudsBucketResult
{
	ExprState *expr;
	FmgrInfo compare;
	FmgrInfo hash; /* fn_oid invalid: the type has none */
	Oid collation;
	int16 length;
	bool by_value;
} GpudsBucketResult;

/* Values of the column that are of one bucket: both, and those between. */
typedef struct GpudsBucketRange
{
	int64 first;
	int64 end; /* the bucket's last */
} GpudsBucketRange;

typedef struct GpudsBucket
{
	const GpudsKeyLayout *layout;
	int column;
	Oid type;
	AggColumn agg_column; /* of the column */
	int64 least;          /* the lowest value that the function is defined for; below: -infinity */
	int64 most;           /* the highest; above: infinity */
	ExprState *function;  /* NULL: each value is a bucket */
	ExprContext *context;
	TupleTableSlot *slot; /* of expressions: the column */
	GpudsKeyBytes bytes[GPUDS_KEY_MAX_COLUMNS];
	bool hashed;   /* see gpuds_bucket_begin */
	bool total;    /* no value from least to most raises an error in the expression */
	bool zoned;    /* depends on the offset of a zone */
	bool all_ends; /* ends are wanted even of buckets that may have a single value; */
	int64 nknown;  /* then, of buckets whose ends have been searched for, ascending: */
	int64 known_size;
	GpudsBucketRange *known;
	FmgrInfo compare; /* of the function's values */
	Oid collation;
	int16 length; /* of the function's values */
	bool by_value;
	MemoryContext values; /* that are passed by reference: until gpuds_bucket_restart; NULL: none are */
	pg_tz *zone;          /* if zoned; NULL: TimeZone */
	int64 fixed_width;    /* gpuds_ascending_width of the function */
	GpudsBucketResult result;

	/* values between which this zone's offset stays the same; NULL: none are known */
	pg_tz *offset_zone;
	int64 offset_first;
	int64 offset_last;

	/* the bucket that was found last */
	bool isnull;
	bool has_value;
	Datum value;

	/* the last bucket that begins with its own value and has fixed_width, and the zone by then */
	bool has_first;
	int64 first;
	pg_tz *first_zone;

	/* the bucket whose end was found last */
	bool has_end;
	int64 end;   /* its last value of the column, if has_end */
	int64 width; /* from the end of the one before; not above 0: not known */
} GpudsBucket;

extern void gpuds_bucket_begin(GpudsBucket *bucket, PlanState *parent, Expr *expr,
							   const GpudsKeyLayout *layout, int column, bool hashed);
extern void gpuds_bucket_restart(GpudsBucket *bucket);
extern void gpuds_bucket_find(void *bucket, const GpudsEntry *first, GpudsEntry *last);
extern void gpuds_bucket_begin_ends(GpudsBucket *bucket);
extern void gpuds_bucket_end_ends(GpudsBucket *bucket);
extern Datum gpuds_bucket_result(GpudsBucket *bucket, const GpudsEntry *first, bool *isnull);
extern Datum gpuds_bucket_keep(const GpudsBucket *bucket, Datum value, bool isnull);
extern int gpuds_bucket_compare_results(GpudsBucket *bucket, Datum a, bool a_null, Datum b, bool b_null);
extern uint32 gpuds_bucket_hash(GpudsBucket *bucket, Datum value, bool isnull);
extern bool gpuds_bucket_first(const GpudsBucket *bucket, const GpudsInterval *whole, uint64 code,
							   GpudsEntry *entry, int64 *value);
extern GpudsEntry gpuds_bucket_next(const GpudsBucket *bucket, const GpudsEntry *first);
extern bool gpuds_bucket_nulls_first(const GpudsBucket *bucket);
extern void gpuds_bucket_nulls(const GpudsBucket *bucket, const GpudsEntry *alike, GpudsInterval *nulls);
extern int gpuds_bucket_compare(GpudsBucket *bucket, Datum a, bool a_null, Datum b, bool b_null);
extern Datum gpuds_bucket_datum(Oid type, int64 value);
extern int64 gpuds_bucket_number(Oid type, Datum value);

/* bucket_width.c */
extern double gpuds_bucket_width(PlannerInfo *root, const GpudsGranule *granule, const Var *column,
								 int64 lowest, int64 highest);

#endif /* GPUDS_CUSTOM_BUCKET_H */
