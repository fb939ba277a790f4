/*-------------------------------------------------------------------------
 *
 * entry.h
 *	  What every structure of kernels/ shares: entries, intervals, operations.
 *
 * The files of this folder know nothing of PostgreSQL.  They are written in
 * the common subset of C99 and CUDA C++: gcc makes loops of their functions,
 * nvcc makes kernels of them.
 *
 * An entry is a key of one or two 64-bit words and a tie word t:
 *
 *	  w0, w1	key bits, compared as unsigned numbers; w1 is 0 in structures
 *				of one key word
 *	  t			bits 63..56: the last (up to 8) bits of the key
 *				bits 55..48: zero
 *				bits 47..0: heap TID, block number << 16 | offset number
 *
 * Entries are ordered by (w0, w1, t), so that a key of up to 72 or 136 bits
 * and the TID behind it are one number.  Entries of a structure are unique.
 * t = UINT64_MAX never occurs in an entry: structures pad with it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_ENTRY_H
#define KERNELS_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * KERNEL_FN: a function of both runtimes.  KERNEL_INLINE: the same, always inlined, so
 * that a constant argument (the number of key words, the direction) makes a
 * version of its own.  HOST_FN, HOST_INLINE: the same two for functions that only
 * the CPU runs.
 */
#ifdef __CUDACC__
#define KERNEL_FN static __host__ __device__ inline
#define KERNEL_INLINE static __host__ __device__ __forceinline__
#else
#define KERNEL_FN static inline
#define KERNEL_INLINE static inline __attribute__((always_inline))
#endif
#define HOST_FN static inline
#define HOST_INLINE static inline __attribute__((always_inline))

/* What may go wrong in a kernel-side call; the caller turns it into words. */
typedef enum KernelStatus
{
	KERNEL_OK = 0,
	KERNEL_NO_MEMORY /* nothing was changed, or it may be done again */
} KernelStatus;

typedef struct GpudsEntry
{
	uint64_t w0;
	uint64_t w1;
	uint64_t t;
} GpudsEntry;

#define ENTRY_TID_MASK UINT64_C(0x0000FFFFFFFFFFFF)
#define ENTRY_SPILL_BITS 8
#define ENTRY_SPILL_SHIFT (64 - ENTRY_SPILL_BITS)

/* All entries e with lo <= e <= hi. */
typedef struct GpudsInterval
{
	GpudsEntry lo;
	GpudsEntry hi;
} GpudsInterval;

/* Of an interval, how many entries it has, and which of them has a rank that was asked for, from 0 on. */
typedef struct EntryRanked
{
	GpudsEntry entry; /* if there are more than its rank */
	uint64_t entries; /* UINT64_MAX: they are too many to be counted */
} EntryRanked;

/*
 * One change.  order = sequence number << 1 | is_delete: of several operations
 * on one entry the highest sequence number is the last word.
 */
typedef struct GpudsOp
{
	GpudsEntry e;
	uint64_t order;
} GpudsOp;

#define GPUDS_OP_INSERT UINT64_C(0)
#define GPUDS_OP_DELETE UINT64_C(1)

/*
 * A scan in progress over disjoint intervals in ascending order.  Forward, the
 * scan is about to enter interval next, backward it is about to enter interval
 * next - 1 (so a fresh backward scan has next == n).  If inside is set, the
 * interval has been entered already and the scan goes on strictly behind the
 * entry at.
 *
 * Many intervals of one shape, as equality with many keys makes them, need not
 * be spelled out: with points set, interval i is intervals[0] with points[i]
 * or'ed into w0 of both ends.
 */
typedef struct GpudsScan
{
	const GpudsInterval *intervals;
	int64_t n;
	int64_t next;
	bool inside;
	GpudsEntry at;
	const uint64_t *points; /* see above; usually NULL */
} GpudsScan;

/* Does a come before b?  Entries are ordered by their key words, then by t. */
KERNEL_FN bool
entry_less(const GpudsEntry *a, const GpudsEntry *b)
{
	if (a->w0 != b->w0)
		return a->w0 < b->w0;
	if (a->w1 != b->w1)
		return a->w1 < b->w1;
	return a->t < b->t;
}

/* Do two entries have the same key and the same t? */
KERNEL_FN bool
entry_equal(const GpudsEntry *a, const GpudsEntry *b)
{
	return a->w0 == b->w0 && a->w1 == b->w1 && a->t == b->t;
}

/* The lowest number above an entry of a structure of nw key words, which is not the highest. */
KERNEL_FN GpudsEntry
entry_behind(GpudsEntry e, const int nw)
{
	if (++e.t == 0 && (nw == 1 || ++e.w1 == 0))
		e.w0++;
	return e;
}

/* The highest number below an entry, which is not the lowest. */
KERNEL_FN GpudsEntry
entry_before(GpudsEntry e)
{
	if (e.t-- == 0 && e.w1-- == 0)
		e.w0--;
	return e;
}

/* x as the lowest number above it; entries never have the highest t. */
KERNEL_INLINE GpudsEntry
entry_after(const GpudsEntry *x)
{
	GpudsEntry after = *x;

	if (after.t != UINT64_MAX)
		after.t++;
	return after;
}

/* What separates two neighbours: no more of the right one than it takes. */
KERNEL_INLINE GpudsEntry
entry_between(const GpudsEntry *left, const GpudsEntry *right)
{
	GpudsEntry e = *right;

	if (left->w0 != right->w0)
		e.w1 = 0;
	if (left->w0 != right->w0 || left->w1 != right->w1)
		e.t = 0;
	return e;
}

/* The highest number that has an entry's bits where there are ones. */
KERNEL_FN GpudsEntry
entry_last_alike(const GpudsEntry *e, const GpudsEntry *ones)
{
	GpudsEntry last = { e->w0 | ~ones->w0, e->w1 | ~ones->w1, e->t | ~ones->t };

	return last;
}

/* The lowest one. */
KERNEL_FN GpudsEntry
entry_first_alike(const GpudsEntry *e, const GpudsEntry *ones)
{
	GpudsEntry first = { e->w0 & ones->w0, e->w1 & ones->w1, e->t & ones->t };

	return first;
}

/* Interval i of a scan. */
KERNEL_FN GpudsInterval
entry_scan_interval(const GpudsScan *scan, int64_t i)
{
	GpudsInterval interval = scan->intervals[scan->points ? 0 : i];

	if (scan->points)
	{
		interval.lo.w0 |= scan->points[i];
		interval.hi.w0 |= scan->points[i];
	}
	return interval;
}

/*
 * Interval i of a scan, less what the scan has been through of it already;
 * false: nothing is left of it.  first is the interval that the scan enters
 * first: next forward, next - 1 backward.
 */
KERNEL_INLINE bool
entry_scan_rest(const GpudsScan *scan, int64_t i, bool forward, GpudsInterval *interval)
{
	*interval = entry_scan_interval(scan, i);
	if (scan->inside && i == (forward ? scan->next : scan->next - 1))
	{
		if (forward)
		{
			/* entries never have the highest t */
			interval->lo = scan->at;
			interval->lo.t++;
		}
		else
		{
			/* one less than at, which may borrow from the key words */
			interval->hi = scan->at;
			if (interval->hi.t-- == 0 && interval->hi.w1-- == 0 && interval->hi.w0-- == 0)
				return false;
		}
	}
	return !entry_less(&interval->hi, &interval->lo);
}

/* Number of the first interval of a scan that does not end before e; n: none. */
KERNEL_FN int64_t
entry_scan_find(const GpudsScan *scan, const GpudsEntry *e)
{
	int64_t lo = 0;
	int64_t hi = scan->n;

	while (lo < hi)
	{
		int64_t middle = lo + (hi - lo) / 2;
		GpudsInterval interval = entry_scan_interval(scan, middle);

		if (entry_less(&interval.hi, e))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

#endif /* KERNELS_ENTRY_H */
