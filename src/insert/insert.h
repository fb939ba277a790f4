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
	bool unchecked; /* some have been appended, and it is not known whether that fails the transaction */

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

/* What a statement remembers in IndexInfo.ii_AmCache, so as not to search. */
typedef struct GpudsUniqueState GpudsUniqueState;
typedef struct GpudsInsertCache
{
	GpudsInsertBuffer *buffer;
	uint64 serial;            /* of its scope; 0: there was none */
	GpudsUniqueState *unique; /* of a unique index; NULL: there was none */
} GpudsInsertCache;

/* insert.c */
extern GpudsInsertCache *gpuds_insert_cache(IndexInfo *indexInfo);
extern void gpuds_insert_encode(Relation index, const Datum *values, const bool *isnull, ItemPointer tid,
								GpudsKeyLayout *layout, GpudsEntry *entry);
extern void gpuds_insert_now(Relation index, const GpudsKeyLayout *layout, const Datum *values,
							 const bool *isnull, const GpudsEntry *entry);
extern bool gpuds_insert(Relation index, const Datum *values, const bool *isnull, ItemPointer tid,
						 Relation heap, IndexInfo *indexInfo);
extern void gpuds_insert_flush(Relation index);
extern void gpuds_insert_flush_all(void);
extern void gpuds_insert_discard(Relation index);
extern void gpuds_insert_begin(GpudsInsertScope *scope, bool barrier);
extern void gpuds_insert_append(GpudsInsertScope *scope);
extern void gpuds_insert_end(GpudsInsertScope *scope);
extern void gpuds_insert_before_commit(SubTransactionId subid);
extern void gpuds_insert_after_end(SubTransactionId subid);

#endif /* GPUDS_INSERT_H */
