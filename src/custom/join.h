/*-------------------------------------------------------------------------
 *
 * join.h
 *	  What the planner tells the executor of a GpudsJoin, and knows of its batches.
 *
 * The node's scan tuple (custom_scan_tlist) has first all columns of the outer plan, then columns of the
 * inner table, then parts of count(*) if the node counts its rows.  custom_exprs has four lists: the keys,
 * the quals of a pair of rows, for EXPLAIN and EvalPlanQual the conditions that became keys, and conditions
 * of the inner table that are tested in entries (filter.c).  custom_private has lists of integers, and of
 * OIDs.
 *
 * custom_plans has the outer plan.  If EvalPlanQual may have to make the join anew, there is a second
 * one behind it: a scan of the inner table that returns the inner columns of the scan tuple.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_CUSTOM_JOIN_H
#define GPUDS_CUSTOM_JOIN_H

/*
 * Outer rows of the first batch: few, for LIMIT.  How many times as many a batch has as the one before, up to
 * the most, whose probes are 6 MB: they are sorted and matched again and again, and should stay in the
 * processor's caches.  That number has not been measured.
 */
#define GPUDS_JOIN_FIRST_ROWS 64
#define GPUDS_JOIN_ROWS_GROWTH 8
#define GPUDS_JOIN_MOST_ROWS (256 * 1024)

/*
 * The same of a batch that a GPU may mark, which nobody sorts: as many as go by one request
 * (reader/membership.c).  What the GPU is told of inner rows is the same for each request.
 */
#define GPUDS_JOIN_MOST_MARKED_ROWS 1000000

/* Numbers of the lists of custom_exprs ... */
enum
{
	JOIN_KEYS,
	JOIN_QUALS,
	JOIN_CONDITIONS,
	JOIN_TESTED
};

/* ... and of custom_private. */
enum
{
	JOIN_FACTS, /* as below */
	/*
	 * of the inner table, for each entry of the scan tuple behind the outer columns; 0: of use only to
	 * EXPLAIN and EvalPlanQual, or tested in entries
	 */
	JOIN_COLUMNS,
	JOIN_OIDS /* of the index, of the function of shapes, or none, then of the keys' types */
};

enum
{
	FACT_TYPE,       /* JoinType */
	FACT_INNER,      /* the inner table's place among the plan's relations */
	FACT_OUTER,      /* columns of the outer plan */
	FACT_HEAP_FREE,  /* the index has all columns of the inner table that are wanted */
	FACT_KEEPS,      /* columns of the outer plan are wanted, not only keys that are made of them */
	FACT_RIGHT_SEMI, /* inner rows are given that have a match, each once; then the type is an inner join's */
	FACT_COUNTS      /* rows are only counted */
};

#endif /* GPUDS_CUSTOM_JOIN_H */
