/*-------------------------------------------------------------------------
 *
 * percentile.h
 *	  Inside GpudsPercentile: ranks of percentiles, and values of ranks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_PERCENTILE_H
#define GPUDS_CUSTOM_PERCENTILE_H

#include "gpuds.h"

#include "nodes/primnodes.h"
#include "utils/array.h"

/* What a column of the scan tuple is. */
typedef enum GpudsPercentileKind
{
	GPUDS_PERCENTILE_OTHER,    /* an aggregate that another plan has */
	GPUDS_PERCENTILE_DISC,     /* percentile_disc */
	GPUDS_PERCENTILE_FLOAT8,   /* percentile_cont ... */
	GPUDS_PERCENTILE_INTERVAL, /* ... of intervals */
	GPUDS_PERCENTILE_FIRST,    /* min: the first value */
	GPUDS_PERCENTILE_LAST,     /* max: the last one */
	GPUDS_PERCENTILE_COUNT     /* how many rows there are */
} GpudsPercentileKind;

/* CustomScan.custom_private of the plan. */
enum
{
	PERCENTILE_KINDS,    /* GpudsPercentileKind of each column of the scan tuple */
	PERCENTILE_SCANS,    /* the plan below that has its rows */
	PERCENTILE_COLUMNS,  /* its column there */
	PERCENTILE_EXPECTED, /* rows of each scan below, about: Float */
	PERCENTILE_GROUPS,   /* NIL: all rows are one group; else as GpudsPercentileGroups */
	PERCENTILE_MERGING   /* of each scan below, what GpudsChildRows is told */
};

/* Rows that the other plan groups as they follow each other in the only scan, whose rows may be NULL. */
typedef enum GpudsPercentileGroups
{
	PERCENTILE_GROUP_ROWS,     /* the other plan's column that has the number of a group's rows */
	PERCENTILE_GROUP_NOT_NULL, /* the same, of those that are not NULL */
	PERCENTILE_NULLS_FIRST     /* 1: NULLs are the first of a group */
} GpudsPercentileGroups;

/* Its fractions are custom_exprs of the plan, one for each aggregate that has such. */
static inline bool
gpuds_percentile_has_fraction(GpudsPercentileKind kind)
{
	return kind == GPUDS_PERCENTILE_DISC || kind == GPUDS_PERCENTILE_FLOAT8 ||
		   kind == GPUDS_PERCENTILE_INTERVAL;
}

/* The type whose values have ranks. */
typedef struct GpudsRankedType
{
	Oid oid;
	int16 length;
	bool by_value;
	char align;
} GpudsRankedType;

/* Rows, ascending, by their ranks from 0 on. */
typedef struct GpudsRank
{
	int64 rank;
	Datum *values; /* of the scan's columns */
} GpudsRank;

typedef struct GpudsRanks
{
	int64 n;
	int64 size;
	GpudsRank *ranks; /* in the caller's memory context */
} GpudsRanks;

/* What a fraction asks for. */
typedef struct GpudsPick
{
	bool isnull;
	int64 first;
	int64 second; /* the same, or one beside it */
	double proportion;
} GpudsPick;

/* What an aggregate asks for. */
typedef struct GpudsPercentile
{
	GpudsPercentileKind kind;
	bool descends;    /* from the last row on; it has a fraction, or several */
	bool isnull;      /* its result is; else: */
	ArrayType *array; /* NULL: one fraction */
	int n;
	GpudsPick *picks;
} GpudsPercentile;

extern GpudsPercentileKind gpuds_percentile_kind(const Aggref *aggref);
extern bool gpuds_percentile_descends(const Aggref *aggref);
extern void gpuds_percentile_pick(Datum fraction, bool isnull, bool is_array, int64 rows,
								  GpudsPercentile *percentile);
extern void gpuds_percentile_pick_end(int64 rows, GpudsPercentile *percentile);
extern void gpuds_percentile_collect(const GpudsPercentile *percentile, GpudsRanks *ranks);
extern void gpuds_percentile_sort(GpudsRanks *ranks);
extern Datum gpuds_percentile_value(const GpudsPercentile *percentile, const GpudsRanks *ranks, int column,
									const GpudsRankedType *type);

#endif /* GPUDS_CUSTOM_PERCENTILE_H */
