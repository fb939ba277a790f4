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

#include "insert/insert.h"
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

/* Keys of rows that are all different, and the memory that they take. */
typedef struct GpudsKnownKeys
{
	MemoryContext context;
	List *keys;
} GpudsKnownKeys;

/* row_key.c */
extern void gpuds_unique_key(Relation index, GpudsUniqueKey *key);
extern bool gpuds_unique_same(const GpudsUniqueKey *key, Relation index, const Datum *a, const bool *a_null,
							  const Datum *b, const bool *b_null);
extern void gpuds_row_key_begin(GpudsRowKey *row, Relation index);
extern bool gpuds_row_key_of(GpudsRowKey *row, TupleTableSlot *slot);
extern void gpuds_row_key_end(GpudsRowKey *row);
extern void gpuds_known_keys_begin(GpudsKnownKeys *known);
extern bool gpuds_known_keys_have(const GpudsKnownKeys *known, const GpudsUniqueKey *key, Relation index,
								  const GpudsRowKey *row);
extern void gpuds_known_keys_add(GpudsKnownKeys *known, const GpudsUniqueKey *key, Relation index,
								 const GpudsRowKey *row);
extern void gpuds_known_keys_forget(GpudsKnownKeys *known);

/* key_lock.c */

/* Keys that are locked one by one, at most; more are locked with all others of the index. */
#define GPUDS_MAX_KEY_LOCKS 16

/* Locks on keys (U1): ascending, all different; none stand for all keys of the index. */
typedef struct GpudsKeyLocks
{
	int n;
	BlockNumber lock[GPUDS_MAX_KEY_LOCKS];
} GpudsKeyLocks;

/* A transaction that may have made or removed a row of a new row's key. */
typedef struct GpudsUniqueWait
{
	TransactionId xid;   /* invalid: there is none */
	uint32 token;        /* of its speculative insertion; 0: there is none */
	ItemPointerData tid; /* of the new row */
} GpudsUniqueWait;

extern BlockNumber gpuds_key_lock_of(const GpudsKeyLayout *layout, const GpudsEntry *entry);
extern void gpuds_lock_keys(Relation index, const GpudsKeyLocks *locks);
extern void gpuds_unlock_keys(Relation index, const GpudsKeyLocks *locks);
extern GpudsUniqueWait gpuds_unique_in_progress(const SnapshotData *dirty, const ItemPointerData *tid);
extern void gpuds_unique_wait(Relation index, const GpudsUniqueWait *wait);
pg_noreturn extern void gpuds_unique_report(Relation heap, Relation index, const GpudsEntry *entry,
											Datum *values, bool *isnull);

/* unique_insert.c */
extern bool gpuds_unique_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
								IndexUniqueCheck checkUnique, bool indexUnchanged, IndexInfo *indexInfo);
extern void gpuds_unique_cleanup(Relation index, IndexInfo *indexInfo);

/* unique_batch.c */
extern const GpudsInsertCheck gpuds_unique_check;

/* unique_build.c */
typedef struct GpudsUniqueBuild GpudsUniqueBuild;

extern GpudsUniqueBuild *gpuds_unique_build_begin(Relation heap, Relation index, const IndexInfo *indexInfo);
extern void gpuds_unique_build_add(GpudsUniqueBuild *build, const GpudsEntry *entries, int64 n);
extern void gpuds_unique_build_end(GpudsUniqueBuild *build);

#endif /* GPUDS_UNIQUE_H */
