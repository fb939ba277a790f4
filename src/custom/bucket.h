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
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_BUCKET_H
#define GPUDS_CUSTOM_BUCKET_H

#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

#include "key/key.h"

#define GPUDS_BUCKETS_HELD 8

typedef struct GpudsBucket
{
	const GpudsKeyLayout *layout;
	int column;
	Oid type;
	AggColumn agg_column; /* of the column */
	int64 least;          /* the lowest value that the function is defined for; below: -infinity */
	int64 most;           /* the highest; above: infinity */
	ExprState *function;
	ExprContext *context;
	FmgrInfo compare; /* of the function's values */
	Oid collation;
	int16 length;         /* of the function's values */
	MemoryContext values; /* that are passed by reference: until gpuds_bucket_restart; NULL: they are not */
	bool zoned;           /* depends on TimeZone */
	bool all_ends;        /* ends are wanted even of buckets that may have a single value */

	/* the bucket that was found last */
	bool isnull;
	bool has_value;
	Datum value;

	/* the bucket whose end was found last */
	bool has_end;
	int64 end;   /* its last value of the column, if has_end */
	int64 width; /* from the end of the one before; not above 0: not known */
} GpudsBucket;

extern void gpuds_bucket_begin(GpudsBucket *bucket, PlanState *parent, Expr *expr,
							   const GpudsKeyLayout *layout, int column);
extern void gpuds_bucket_restart(GpudsBucket *bucket);
extern void gpuds_bucket_find(void *bucket, const GpudsEntry *first, GpudsEntry *last);
extern bool gpuds_bucket_first(const GpudsBucket *bucket, const GpudsInterval *whole, uint64 code,
							   GpudsEntry *entry, int64 *value);
extern GpudsEntry gpuds_bucket_next(const GpudsBucket *bucket, const GpudsEntry *first);
extern bool gpuds_bucket_nulls_first(const GpudsBucket *bucket);
extern void gpuds_bucket_nulls(const GpudsBucket *bucket, const GpudsEntry *alike, GpudsInterval *nulls);
extern int gpuds_bucket_compare(GpudsBucket *bucket, Datum a, bool a_null, Datum b, bool b_null);

#endif /* GPUDS_CUSTOM_BUCKET_H */
