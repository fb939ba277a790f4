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

#include "reader/visible.h"
#include "gpuds.h"
#include "key/key.h"

/* index_access.c */

/* The index that a function is called for. */
typedef struct GpudsTarget
{
	Relation heap;
	Relation index;
	Snapshot snapshot;
	GpudsKeyLayout layout;
} GpudsTarget;

extern void gpuds_target_open(Oid indexid, bool wants_ctid, GpudsTarget *target);
extern void gpuds_target_check_column(const GpudsTarget *target, int column);
extern void gpuds_target_close(GpudsTarget *target);
extern Oid gpuds_target_key_type(const GpudsTarget *target, Oid type);

/* keys.c */

/*
 * The keys of an array, whose elements are numbered from 0 on.  A piece of it is read at a time, and
 * made into probes; NULLs, and what no value of the column is equal to, are not among them.  Then a
 * batch of these is sorted at a time, and those that are equal are one key.  In between, probes may be
 * taken out of the piece.
 */
typedef struct GpudsKeys
{
	GpudsKeyProbe probe;

	/* what is left of the array */
	const char *at;
	const uint8 *nulls; /* of all elements, as in an array; NULL: none is */
	int64 next;         /* number of the element at hand */
	int64 total;
	int16 length; /* of an element */
	bool by_value;
	char align;

	/* the piece */
	int64 most_read;  /* elements that there is room for */
	GpudsEntry *read; /* with numbers of elements, which ascend until a batch is sorted */
	int64 nread;
	int64 taken; /* of these, from the first on, have come in batches */
	/* in place of probes, if values and layout have a short way for that: the words of probes; else NULL */
	int64 most_words; /* elements that there is room for */
	uint64 *words;
	int64 first; /* number of the first one's element */
	int64 nwords;
	uint32 *left; /* which of them are to become probes ... */
	int64 nleft;
	int64 made; /* ... and how many have, from the first on */

	/* the batch */
	int64 most;          /* elements that there is room for */
	GpudsEntry *members; /* a part of the piece; those of a key follow each other */
	GpudsEntry *keys;    /* ascending, all different, without numbers */
	uint32 *ends;        /* of each key's members */
	int64 n;             /* keys */
} GpudsKeys;

extern void gpuds_keys_begin(GpudsKeys *keys, const GpudsKeyLayout *layout, Oid type, ArrayType *array,
							 bool large);
extern bool gpuds_keys_has_more(const GpudsKeys *keys);
extern bool gpuds_keys_read_words(GpudsKeys *keys);
extern void gpuds_keys_take_left(GpudsKeys *keys, int64 n);
extern bool gpuds_keys_read(GpudsKeys *keys);
extern bool gpuds_keys_next(GpudsKeys *keys);

/* The number of a probe's element. */
static inline int64
gpuds_keys_number(const GpudsEntry *probe)
{
	return (int64) (probe->t & ENTRY_TID_MASK);
}

/* Members of a batch's key: from this one to the one before that of the next key. */
static inline int64
gpuds_keys_first(const GpudsKeys *keys, int64 key)
{
	return key == 0 ? 0 : keys->ends[key - 1];
}

/* search.c */

/* What is done with a visible row that has the key of an element; the TID is the row's own. */
typedef void (*GpudsFound)(void *to, int64 number, ItemPointer tid);

extern void gpuds_search(const GpudsTarget *target, Oid type, ArrayType *array, GpudsFound found, void *to);
extern void gpuds_search_any(const GpudsTarget *target, Oid type, ArrayType *array, bool *answers);

/* search_hashes.c */
extern ScanKeyData gpuds_search_key(const GpudsTarget *target, StrategyNumber strategy, Oid type, int flags,
									Datum argument);
extern int64 gpuds_count_candidates(const GpudsTarget *target, IndexScanDesc scan, const ScanKeyData *keys,
									int nkeys);
extern void gpuds_search_hashes(const GpudsTarget *target, Oid type, ArrayType *array, bool once,
								GpudsFound found, void *to);

#endif /* GPUDS_FUNCTIONS_H */
