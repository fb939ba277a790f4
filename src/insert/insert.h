/*-------------------------------------------------------------------------
 *
 * insert.h
 *	  New entries, collected in backend memory until their statement ends or somebody
 *	  scans the index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_INSERT_H
#define GPUDS_INSERT_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/resowner.h"

#include "gpuds.h"
#include "key/key.h"

/*
 * While it is open, new entries may be collected in it (insert.c).  It lies on the
 * stack of the function that opens it; its fields are insert.c's.
 */
typedef struct GpudsInsertBuffer GpudsInsertBuffer;
typedef struct GpudsInsertScope
{
	struct GpudsInsertScope *outer;
	bool barred;            /* nothing is collected */
	uint64 serial;          /* names it */
	SubTransactionId subid; /* that opened it */
	ResourceOwner owner;    /* of locks and pins */
	MemoryContext context;  /* of buffers; NULL: there was none yet */
	GpudsInsertBuffer *buffers;
	GpudsInsertBuffer *last_buffer;
	bool unchecked; /* some have been appended, and it is not known whether that fails the transaction */

	/* who runs the statement */
	Oid user;
	int security;

	/* the row whose entries came last */
	Oid row_heap; /* invalid: it is not known */
	ItemPointerData row;
	bool speculative;             /* it was */
	GpudsInsertBuffer *undecided; /* what has its entries, if it was */

	/* its page, pinned; invalid: none is */
	Buffer page;
	Oid page_heap;
	BlockNumber page_block;
	RelFileLocator page_locator;
} GpudsInsertScope;

/*
 * What collected entries of a unique index pass before they are appended (unique/unique_batch.c).
 *
 * check moves those that cannot be appended yet to the front, and returns how many there are; their order,
 * and that of the others, stays.  The first *nagain entries have been appended, and are looked at again;
 * *nagain is set to how many of those have not passed.  decide: all must pass, so it raises an error in place
 * of that. It keeps its locks until end is called, when the others have been appended.
 */
typedef struct GpudsInsertCheck
{
	int (*check)(Relation index, GpudsEntry *entries, int n, int *nagain, bool decide, void **state);
	void (*end)(void *state);
} GpudsInsertCheck;

/* What a statement remembers in IndexInfo.ii_AmCache, so as not to search. */
typedef struct GpudsUniqueState GpudsUniqueState;
typedef struct GpudsInsertCache
{
	GpudsInsertBuffer *buffer;
	uint64 serial;            /* of its scope; 0: there was none */
	uint64 searches;          /* of the index, and one more, when its last row came; 0: there was none */
	GpudsUniqueState *unique; /* of a unique index; NULL: there was none */
} GpudsInsertCache;

/* insert.c */
extern GpudsInsertCache *gpuds_insert_cache(IndexInfo *indexInfo);
extern void gpuds_insert_encode(Relation index, const Datum *values, const bool *isnull, ItemPointer tid,
								GpudsKeyLayout *layout, GpudsEntry *entry);
extern void gpuds_insert_now(Relation index, const GpudsKeyLayout *layout, const Datum *values,
							 const bool *isnull, const GpudsEntry *entry);
extern bool gpuds_insert(Relation index, const Datum *values, const bool *isnull, ItemPointer tid,
						 Relation heap, IndexInfo *indexInfo, const GpudsInsertCheck *check);
extern bool gpuds_insert_collects(Relation heap, const IndexInfo *indexInfo);
extern bool gpuds_insert_is_first(Relation index, IndexInfo *indexInfo);
extern bool gpuds_insert_hold(bool hold);
extern void gpuds_insert_flush(Relation index);
extern void gpuds_insert_before_search(Relation index, Snapshot snapshot);
extern void gpuds_insert_flush_all(void);
extern void gpuds_insert_discard(Relation index);
extern void gpuds_insert_begin(GpudsInsertScope *scope, bool barrier);
extern void gpuds_insert_append(GpudsInsertScope *scope);
extern void gpuds_insert_end(GpudsInsertScope *scope);
extern void gpuds_insert_before_commit(SubTransactionId subid);
extern void gpuds_insert_after_end(SubTransactionId subid);

#endif /* GPUDS_INSERT_H */
