/*-------------------------------------------------------------------------
 *
 * aggregate.h
 *	  Inside GpudsAggregate: what its columns are, and its state.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_AGGREGATE_H
#define GPUDS_CUSTOM_AGGREGATE_H

#include "gpuds.h"

#include "custom/bucket.h"
#include "custom/custom.h"
#include "custom/filter.h"
#include "kernels/core/partial_agg.h"
#include "reader/entry_agg.h"

typedef enum GpudsAggregateKind
{
	GPUDS_GROUP_COLUMN, /* the value that all rows of a group have */
	GPUDS_GROUP_BUCKET, /* the value of a function of it (bucket.h) */
	GPUDS_COUNT_ROWS,
	GPUDS_COUNT,       /* of what is not NULL */
	GPUDS_SUM_INT8,    /* of integers */
	GPUDS_SUM_NUMERIC, /* of integers */
	GPUDS_SUM_FLOAT8,
	GPUDS_AVG_NUMERIC, /* of integers */
	GPUDS_AVG_FLOAT8,
	GPUDS_MIN,      /* bool_and, too */
	GPUDS_MAX,      /* bool_or, too */
	GPUDS_VARIANCE, /* and standard deviation, of integers; core makes it of parts */

	/*
	 * Of a part of the rows, what PostgreSQL's aggregate functions combine parts by, if that is not the
	 * result.
	 */
	GPUDS_PART_NUMERIC,    /* of sum and avg of bigints */
	GPUDS_PART_SCALED,     /* of sum and avg of numbers */
	GPUDS_PART_AVG_INT,    /* of avg of smaller integers */
	GPUDS_PART_AVG_FLOAT8, /* of avg of floating-point values */
	GPUDS_PART_VARIANCE    /* of variances */
} GpudsAggregateKind;

/* Are groups hashed, of the columns of GPUDS_GROUP_COLUMN, and buckets? */
typedef enum GpudsHashed
{
	GPUDS_NOT_HASHED,
	GPUDS_HASHED_PARTS, /* one may come several times */
	GPUDS_HASHED_WHOLE
} GpudsHashed;

/* CustomScan.custom_private of the plan. */
enum
{
	AGGREGATE_KINDS,     /* GpudsAggregateKind of each column of the scan tuple */
	AGGREGATE_COLUMNS,   /* of the index, from 0 on; -1: none */
	AGGREGATE_GROUPS,    /* leading columns of the index that are the same in a group; -1: all rows are one */
	AGGREGATE_HASHED,    /* GpudsHashed */
	AGGREGATE_EXPECTED,  /* entries of the scan below, and groups, about: Float */
	AGGREGATE_EQUALITIES /* what core's nodes would compare groups by; NIL: some node of core's does */
};

/* CASE WHEN condition THEN value ELSE other END, the argument of an aggregate. */
typedef struct GpudsAggregateCase
{
	const Expr *condition;
	Oid type;
	const Const *value; /* NULL: it is the column */
	const Var *column;
	const Const *other; /* NULL: it is NULL */
} GpudsAggregateCase;

/* A column of the scan tuple. */
typedef struct GpudsAggregateColumn
{
	GpudsAggregateKind kind;
	int column; /* of the index */
	/* that its value comes from; behind it are a variance's squares, or how many rows have ELSE's constant */
	int agg_column;
	List *filter;             /* conditions that all hold for rows of an aggregate; NIL: it has none */
	GpudsAggregateCase parts; /* of a CASE; zero: it is of none */
} GpudsAggregateColumn;

/* When groups are hashed: entries with one value for their buckets. */
typedef struct GpudsBucketRun
{
	Datum value;
	bool isnull;
	uint32 hash; /* of the value */
} GpudsBucketRun;

/* A group of a bucket's rows that has not been returned yet. */
typedef struct GpudsHeldGroup
{
	Datum value;
	bool isnull;
	int64 rows;
	PartialAgg *partial; /* as many as the node has */
} GpudsHeldGroup;

typedef struct GpudsAggregateState
{
	CustomScanState css;
	int ncolumns;
	GpudsAggregateColumn *columns;
	int ngroup_columns; /* AGGREGATE_GROUPS */
	bool aggregating;   /* between the first row and the last */
	bool done;          /* all rows have been returned */
	GpudsNodeCounters counters;
	int bucket_at; /* column of the scan tuple that is a bucket's value; -1: there is none */
	GpudsHashed hashed;
	double expected;       /* entries of the scan below, about */
	int64 stopped_fetches; /* of what has ended since gpuds_aggregate_start */
	double expected_groups;
	int64 least_rows; /* a group with fewer does not pass HAVING; 0: any may */

	/* filters, which are made anew when parameters change */
	MemoryContext filter_context;
	GpudsRowFilter *entry_filter; /* of all rows, by their entries; NULL: none */
	GpudsRowFilter *side_filter;  /* ... by side values; NULL: none */
	GpudsRowFilter **agg_filters; /* of each aggregated column, or NULL; NULL: none has one */
	GpudsEntryAggCase *agg_cases; /* of each that has */

	/* once the index is known */
	GpudsKeyLayout layout;
	GpudsKeyLayout decoded; /* the same without columns behind the last one that groups have */
	int nagg;
	AggColumn *agg_columns;
	int *agg_columns_of; /* of the index */
	GpudsEntryAgg agg;
	GpudsEntryAggGroup group;
	GpudsKeyBytes bytes[GPUDS_KEY_MAX_COLUMNS]; /* of the group's values */

	/* groups by buckets: those from next_held on are held, and the one before has been returned */
	GpudsBucket bucket;
	GpudsHeldGroup *held;
	int64 nheld;
	int64 held_size;
	int64 next_held;
	bool asked_device; /* to add up all groups */

	/* hashed groups: what their entries agree in, and the runs of buckets */
	GpudsGroupKey group_key;
	GpudsBucketRun *runs;
	int64 nruns;
	int64 runs_size;
	uint32 *run_table; /* by hashes, each run's number + 1; 0: there is none here, nor behind */
	int64 run_places;  /* a power of two, at least twice as many as there are runs */
} GpudsAggregateState;

/* aggregate.c: for a node that takes the groups of a GpudsAggregate itself */
extern void gpuds_aggregate_start(GpudsAggregateState *state);
extern void gpuds_aggregate_stop(GpudsAggregateState *state, int64 groups, int64 rows);
extern void gpuds_aggregate_begin(GpudsAggregateState *state, const GpudsKeyProbe *probe,
								  const GpudsEntry *probes, int64 n);
extern void gpuds_aggregate_end(GpudsAggregateState *state);
extern int gpuds_aggregate_leading_columns(const PlanState *node);
extern const GpudsEntry *gpuds_aggregate_group_entry(const PlanState *node);
extern const GpudsKeyLayout *gpuds_aggregate_layout(GpudsAggregateState *state);
extern Datum gpuds_aggregate_result(const GpudsAggregateState *state, const GpudsAggregateColumn *column,
									const PartialAgg *partial, bool *isnull);

/* aggregate_bucket.c */
extern void gpuds_aggregate_set_bucket(GpudsAggregateState *state);
extern bool gpuds_aggregate_next_bucket(GpudsAggregateState *state);
extern int64 gpuds_aggregate_bucket_run(void *state, const GpudsEntry *first, GpudsEntry *last);
extern void gpuds_aggregate_restart_runs(void *state);
extern bool gpuds_aggregate_bucket_parts(void *state, GpudsEntryAggParts *parts);

/* aggregate_case.c */
extern bool gpuds_aggregate_case(const Aggref *aggref, GpudsAggregateCase *parts);
extern bool gpuds_aggregate_adds_case(GpudsAggregateKind kind, const GpudsAggregateCase *parts);
extern uint64 gpuds_aggregate_bits(const AggColumn *column, const Const *value);

/* aggregate_value.c */
extern bool gpuds_aggregate_kind(Oid function, Oid input, GpudsAggregateKind *kind);
extern bool gpuds_aggregate_has_result(GpudsAggregateKind kind);
extern GpudsAggregateKind gpuds_aggregate_part(GpudsAggregateKind kind, Oid input);
extern Datum gpuds_aggregate_value(GpudsAggregateKind kind, uint8 values, const AggColumn *agg_column,
								   const PartialAgg *partial, bool *isnull);
extern Datum gpuds_aggregate_case_value(GpudsAggregateKind kind, const GpudsAggregateCase *parts,
										uint8 values, const AggColumn *agg_column, const PartialAgg *partial,
										bool *isnull);

#endif /* GPUDS_CUSTOM_AGGREGATE_H */
