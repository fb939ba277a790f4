/*-------------------------------------------------------------------------
 *
 * hash_line_gpu.h
 *	  The hash table in device memory: its layout, and how a thread reads it.
 *
 * An entry is hidden before it comes to the table: its w0 is replaced by a hash of its key words,
 * from which w0 can be had back if w1 is known.  All that this structure stores is hidden, so the
 * order in it is that of hidden entries: by the hash first.  The entries of a key are neighbours in
 * that order, ascending by t.
 *
 * The highest bits of the hash are the number of an entry's bucket.  An array has the place of the
 * first line of each bucket, 0: it never had an entry.  A line is 128 bytes:
 *
 *	  word 0	version in which the bucket got this line << 8 | GPU_HASH_TREE | entries from this
 *				line on to the end of the bucket
 *	  word 1	the next line << 32 | in the first line: the bucket's first line before this version
 *	  words 2.. slots of 1 + nw words: w0, [w1,] t; 7 with one key word, 4 with two.  All lines of a
 *				bucket but the last are full.
 *
 * Lines are immutable.  A change of a bucket makes new lines, and then stores the place of the first
 * one in the array: one store of 32 bits.  A reader has a version.  It goes from the first line that
 * it finds back to the first one that is not newer than its version.  So readers see their version, while
 * the array is the same for all.  Lines that were replaced are freed when no version that may look for
 * them is pinned, and what is behind them nobody looks for.
 *
 * A bucket has at most GPU_HASH_MOST_LINES lines.  If it would have more, because a key has many entries
 * or because keys were chosen to have equal hashes, all its entries move to the overflow tree, an
 * ordered tree of hidden entries, and its line has GPU_HASH_TREE.  It stays so until the table grows: of the
 * buckets that it is divided into then, those that are not too full have lines again.
 *
 * What a version consists of is a GpuHashTable, in a node of a line's size; the view's root is its place.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_LINE_GPU_H
#define HASH_LINE_GPU_H

#include "kernels/runtime/gpu_versioned.h"

#define GPU_HASH_LINE_WORDS 16
#define GPU_HASH_LINE_UNITS ((uint32_t) (GPU_HASH_LINE_WORDS * sizeof(uint64_t) / GPU_UNIT_BYTES))
#define GPU_HASH_MOST_LINES 4

#define GPU_HASH_TREE UINT64_C(0x80)
#define GPU_HASH_N_MASK UINT64_C(0x7F)
#define GPU_HASH_VERSION_SHIFT 8

/* Bits of the number of a bucket. */
#define GPU_HASH_LEAST_BITS 6
#define GPU_HASH_MOST_BITS 30

static_assert((INT64_C(1) << GPU_HASH_MOST_BITS) + 1 <= GPU_MAX_ITEMS, "what buckets take can be summed up");

struct alignas(16) GpuHashTable
{
	uint64_t version;
	GpuRef buckets; /* where the array begins */
	uint32_t bits;  /* 2^bits buckets */
	/* the overflow tree */
	uint64_t entries;
	GpuRef root;
	int32_t height;
};

/* Slots of a line. */
GPU_FN int
gpu_hash_slots(const int nw)
{
	return nw == 1 ? 7 : 4;
}

/* Entries of a bucket, at most. */
GPU_FN int
gpu_hash_most(const int nw)
{
	return GPU_HASH_MOST_LINES * gpu_hash_slots(nw);
}

/* Lines of a bucket that has a line. */
GPU_FN uint32_t
gpu_hash_lines(uint32_t n, const int nw)
{
	const uint32_t slots = (uint32_t) gpu_hash_slots(nw);

	return n == 0 ? 1 : (n + slots - 1) / slots;
}

/* What is added to w0 before it is hashed. */
GPU_FN uint64_t
gpu_hash_second(uint64_t w1)
{
	return (w1 ^ w1 >> 32) * UINT64_C(0xC2B2AE3D27D4EB4F);
}

GPU_FN GpudsEntry
gpu_hash_hide(GpudsEntry e)
{
	uint64_t h = e.w0 + gpu_hash_second(e.w1);

	h = (h ^ h >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	h = (h ^ h >> 29) * UINT64_C(0xA0761D6478BD642F);
	e.w0 = h ^ h >> 32;
	return e;
}

/* Undoes the steps of gpu_hash_hide. */
GPU_FN GpudsEntry
gpu_hash_show(GpudsEntry e)
{
	uint64_t h = e.w0 ^ e.w0 >> 32;

	h *= UINT64_C(0x939C72E4AF1E62CF);
	h = (h ^ h >> 29 ^ h >> 58) * UINT64_C(0xCFEE444D8B59A89B);
	e.w0 = (h ^ h >> 32) - gpu_hash_second(e.w1);
	return e;
}

/* The number of a hidden entry's bucket. */
GPU_FN uint64_t
gpu_hash_bucket(const GpudsEntry &e, uint32_t bits)
{
	return e.w0 >> (64 - bits);
}

GPU_FN const uint64_t *
gpu_hash_line(const unsigned char *base, GpuRef ref)
{
	return (const uint64_t *) (base + (size_t) ref * GPU_UNIT_BYTES);
}

/* Entries from a line on. */
GPU_FN uint32_t
gpu_hash_n(const uint64_t *line)
{
	return (uint32_t) (line[0] & GPU_HASH_N_MASK);
}

GPU_FN bool
gpu_hash_in_tree(const uint64_t *line)
{
	return (line[0] & GPU_HASH_TREE) != 0;
}

GPU_FN GpuRef
gpu_hash_next(const uint64_t *line)
{
	return (GpuRef) (line[1] >> 32);
}

GPU_FN GpudsEntry
gpu_hash_slot(const uint64_t *line, int i, const int nw)
{
	const uint64_t *slot = line + 2 + i * (1 + nw);
	GpudsEntry e = { slot[0], nw == 2 ? slot[1] : 0, slot[nw] };

	return e;
}

GPU_FN void
gpu_hash_set_slot(uint64_t *line, int i, const GpudsEntry &e, const int nw)
{
	uint64_t *slot = line + 2 + i * (1 + nw);

	slot[0] = e.w0;
	if (nw == 2)
		slot[1] = e.w1;
	slot[nw] = e.t;
}

/* Where the array has the first line of a bucket. */
GPU_FN const uint32_t *
gpu_hash_array(const unsigned char *base, const GpuHashTable &table, uint64_t bucket)
{
	return (const uint32_t *) gpu_hash_line(base, table.buckets) + bucket;
}

/*
 * The first line of a bucket in a version; 0: it had none.  A line that the array leads to may be newer
 * than all that this multiprocessor has in its cache, where its memory may have been another line.  One of
 * this version is older than the launch.
 */
GPU_FN GpuRef
gpu_hash_first(const unsigned char *base, const GpuHashTable &table, uint64_t bucket)
{
	GpuRef ref = gpu_fresh(gpu_hash_array(base, table, bucket));
	uint64_t head[2];

	for (; ref != 0; ref = (GpuRef) head[1])
	{
		gpu_fresh_pair(gpu_hash_line(base, ref), head);
		if (head[0] >> GPU_HASH_VERSION_SHIFT <= table.version)
			break;
	}
	return ref;
}

/* The overflow tree of a version. */
GPU_FN GpudsView
gpu_hash_overflow(const unsigned char *base, const GpuHashTable &table, int nwords)
{
	GpudsView view;

	view.base = base;
	view.entries = table.entries;
	view.root = table.root;
	view.height = table.height;
	view.nwords = nwords;
	return view;
}

/* A walk through the entries of a bucket that is not in the overflow tree. */
template <int nw> struct GpuHashCursor
{
	const unsigned char *base;
	const uint64_t *line;
	uint32_t left; /* entries from this one on */
	int at;        /* its place in the line */

	GPU_FN GpuHashCursor(const unsigned char *pool, GpuRef ref) : base(pool), line(NULL), left(0), at(0)
	{
		if (ref != 0)
		{
			line = gpu_hash_line(base, ref);
			left = gpu_hash_n(line);
		}
	}

	GPU_FN GpudsEntry entry() const
	{
		return gpu_hash_slot(line, at, nw);
	}

	GPU_FN void next()
	{
		left--;
		if (++at == gpu_hash_slots(nw) && left > 0)
		{
			line = gpu_hash_line(base, gpu_hash_next(line));
			at = 0;
		}
	}
};

#endif /* HASH_LINE_GPU_H */
