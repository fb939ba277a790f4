/*-------------------------------------------------------------------------
 *
 * unique.h
 *	  Unique indexes: no two live rows may have the same key.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_UNIQUE_H
#define GPUDS_UNIQUE_H

#include "access/genam.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/execnodes.h"

#include "key/key.h"

/* What makes two keys of an index the same: the equality of its operator classes. */
typedef struct GpudsUniqueKey
{
	int nkeys;
	StrategyNumber strategy; /* of equality */
	FmgrInfo equal[GPUDS_KEY_MAX_COLUMNS];
} GpudsUniqueKey;

/* What it takes to tell an index's key from a row of the table. */
typedef struct GpudsRowKey
{
	IndexInfo *info;
	EState *estate;
	ExprState *predicate;
	Datum values[INDEX_MAX_KEYS];
	bool isnull[INDEX_MAX_KEYS];
} GpudsRowKey;

/* row_key.c */
extern void gpuds_unique_key(Relation index, GpudsUniqueKey *key);
extern bool gpuds_unique_same(const GpudsUniqueKey *key, Relation index, const Datum *a, const bool *a_null,
							  const Datum *b, const bool *b_null);
extern void gpuds_row_key_begin(GpudsRowKey *row, Relation index);
extern bool gpuds_row_key_of(GpudsRowKey *row, TupleTableSlot *slot);
extern void gpuds_row_key_end(GpudsRowKey *row);

/* unique_insert.c */
extern bool gpuds_unique_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
								IndexUniqueCheck checkUnique, bool indexUnchanged, IndexInfo *indexInfo);
extern void gpuds_unique_cleanup(Relation index, IndexInfo *indexInfo);

/* unique_build.c */
typedef struct GpudsUniqueBuild GpudsUniqueBuild;

extern GpudsUniqueBuild *gpuds_unique_build_begin(Relation heap, Relation index, const IndexInfo *indexInfo);
extern void gpuds_unique_build_add(GpudsUniqueBuild *build, const GpudsEntry *entries, int64 n);
extern void gpuds_unique_build_end(GpudsUniqueBuild *build);

#endif /* GPUDS_UNIQUE_H */
