/*-------------------------------------------------------------------------
 *
 * sort.h
 *	  Sorting of entries, operations and words on the host.
 *
 * The time is linear in the input, whatever its distribution; input that is sorted
 * already costs one pass.  scratch has room for as many elements as a and must not
 * overlap it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_SORT_H
#define KERNELS_SORT_H

#include "kernels/core/entry.h"

#ifdef __cplusplus
extern "C"
{
#endif

/* Buckets of sort_split_words. */
#define SORT_SPLIT_BITS 8
#define SORT_SPLIT (1 << SORT_SPLIT_BITS)

/* The names are the library's own. */
#pragma GCC visibility push(hidden)

	/* Sorts entries. */
	extern void sort_entries(GpudsEntry *a, GpudsEntry *scratch, int64_t n);

	/* Sorts operations by entry, those of one entry by order. */
	extern void sort_ops(GpudsOp *a, GpudsOp *scratch, int64_t n);

	/* Sorts words, TIDs for instance. */
	extern void sort_u64(uint64_t *a, uint64_t *scratch, int64_t n);

	/*
 * Puts words in the order of their highest bits that vary, in place: bucket b is
 * from start[b] to start[b + 1].  For callers that sort more words than they have
 * scratch memory or patience for.  False: all words are equal.
 */
	extern bool sort_split_words(uint64_t *a, int64_t n, int64_t start[SORT_SPLIT + 1]);

	/* Of sorted entries keeps one of each; returns how many. */
	extern int64_t sort_unique_entries(GpudsEntry *a, int64_t n);

	/* Of sorted operations keeps the last on each entry; returns how many. */
	extern int64_t sort_last_ops(GpudsOp *a, int64_t n);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* KERNELS_SORT_H */
