/*-------------------------------------------------------------------------
 *
 * functions.h
 *	  SQL functions that look keys up in an index, in batches.
 *
 * They read an index as a query of its table would, with the active snapshot.  So they see what
 * the statement sees that they are called in, and need the privileges that the query needs.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_FUNCTIONS_H
#define GPUDS_FUNCTIONS_H

#include "utils/array.h"

#include "am/am.h"
#include "gpuds.h"
#include "key/key.h"

/* target.c */

/* The index that a function is called for. */
typedef struct GpudsTarget
{
	Relation heap;
	Relation index;
	Snapshot snapshot;
	GpudsKeyLayout layout;
} GpudsTarget;

extern void gpuds_target_open(Oid indexid, bool wants_ctid, GpudsTarget *target);
extern void gpuds_target_close(GpudsTarget *target);
extern Oid gpuds_target_key_type(const GpudsTarget *target, Oid type);

/* keys.c */

/*
 * The keys of an array, a batch of them at a time.  Its elements are numbered from 0 on.  A batch's
 * elements are sorted, and those that are equal are one key; NULLs, and what no value of the column is equal
 * to, are not in it.
 */
typedef struct GpudsKeys
{
	GpudsKeyProbe probe;

	/* what is left of the array */
	const char *at;
	const bits8 *nulls; /* of all elements, as in an array; NULL: none is */
	int64 next;         /* number of the element at hand */
	int64 total;
	int16 length; /* of an element */
	bool by_value;
	char align;

	/* the batch */
	int64 most;          /* elements that there is room for */
	GpudsEntry *members; /* with numbers of elements; those of a key follow each other */
	GpudsEntry *keys;    /* ascending, all different, without numbers */
	uint32 *ends;        /* of each key's members */
	int64 n;             /* keys */
} GpudsKeys;

extern void gpuds_keys_begin(GpudsKeys *keys, const GpudsKeyLayout *layout, Oid type, ArrayType *array);
extern bool gpuds_keys_next(GpudsKeys *keys);

/* Members of a batch's key: from this one to the one before that of the next key. */
static inline int64
gpuds_keys_first(const GpudsKeys *keys, int64 key)
{
	return key == 0 ? 0 : keys->ends[key - 1];
}

static inline int64
gpuds_keys_number(const GpudsKeys *keys, int64 member)
{
	return (int64) (keys->members[member].t & ENTRY_TID_MASK);
}

/* search.c */

/* What is done with a visible row of a batch's key; the TID is the row's own, or NULL. */
typedef void (*GpudsFound)(void *to, const GpudsKeys *keys, int64 key, ItemPointer tid);

extern void gpuds_search(const GpudsTarget *target, Oid type, ArrayType *array, bool any, GpudsFound found,
						 void *to);

#endif /* GPUDS_FUNCTIONS_H */
