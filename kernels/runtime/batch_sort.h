/*-------------------------------------------------------------------------
 *
 * batch_sort.h
 *	  Sorting a batch of operations by entry, on the device.
 *
 * Of operations on one entry the one of the highest order comes first.  The
 * result is a list of the operations' numbers; the operations stay where they are.
 *
 * A first pass finds which bits differ at all, and whether the batch is in order
 * already.  If the highest key words differ, a radix sort by some of their bits is
 * nearly enough: it leaves a few short ties, which single threads put in order
 * (gpu_sort_batch).  Where a tie is too long for that, a radix sort by all words
 * that vary must follow (gpu_sort_batch_by_words).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_BATCH_SORT_H
#define GPU_BATCH_SORT_H

#include "kernels/runtime/scratch.h"

/* Things of a tie, at most, that one thread puts in order. */
#define GPU_SHORT_TIE 32

/* Bits more than n has that a sort of n random numbers looks at. */
#define GPU_SPARE_BITS 8

/* Threads that look over a batch. */
#define GPU_SHAPE_THREADS (1 << 17)

/* What the device finds out about a batch. */
struct GpuShape
{
	uint64_t varying[4]; /* bits of w0, w1, t, order that are not the same in all */
	uint32_t unsorted;   /* entries are not strictly ascending */
	uint32_t disordered; /* order is not ascending */
	uint32_t long_tie;   /* the sort left a tie of more than GPU_SHORT_TIE */
};

/* Working memory of a sort. */
struct GpuSort
{
	GpuShape *shape;
	uint64_t *key;
	uint64_t *other_key;
	uint32_t *number;
	uint32_t *other_number;
};

/* Lays the working memory of a sort of n operations out in scratch. */
static inline void
gpu_sort_layout(GpuScratch *scratch, GpuSort *sort, int64_t n)
{
	sort->shape = gpu_scratch<GpuShape>(scratch, 1);
	sort->key = gpu_scratch<uint64_t>(scratch, n);
	sort->other_key = gpu_scratch<uint64_t>(scratch, n);
	sort->number = gpu_scratch<uint32_t>(scratch, n);
	sort->other_number = gpu_scratch<uint32_t>(scratch, n);
}

/* Does operation x come before y? */
GPU_FN bool
gpu_op_less(const GpudsOp *x, const GpudsOp *y)
{
	return entry_less(&x->e, &y->e) || (entry_equal(&x->e, &y->e) && x->order > y->order);
}

/* Word 0 .. 3 of an operation: what it is sorted by, ascending. */
GPU_FN uint64_t
gpu_op_word(const GpudsOp *op, int word)
{
	return word == 0 ? op->e.w0 : word == 1 ? op->e.w1 : word == 2 ? op->e.t : ~op->order;
}

/* Add varying bits; an atomic only where that changes anything. */
GPU_FN void
gpu_shape_add(uint64_t *to, uint64_t bits)
{
	bool first;

	bits = gpu_warp_or(bits, &first);
	if (first && (bits & ~gpu_glance(to)) != 0)
		gpu_atomic_or64(to, bits);
}

/*
 * The end of the tie that begins with key i: of the keys that are equal from bit
 * shift on.  i, if none begins there or if it is too long, which the shape notes.
 */
GPU_FN int64_t
gpu_tie_end(const uint64_t *key, int64_t n, int64_t i, int shift, GpuShape *shape)
{
	uint64_t high = key[i] >> shift;
	int64_t end = i + 1;

	if (i > 0 && key[i - 1] >> shift == high)
		return i;
	while (end < n && key[end] >> shift == high)
	{
		if (end - i == GPU_SHORT_TIE)
		{
			gpu_flag(&shape->long_tie);
			return i;
		}
		end++;
	}
	return end;
}

/* The shape of a batch; and its keys, to be sorted by w0. */
struct GpuFindShape
{
	const GpudsOp *ops;
	int64_t n;
	uint64_t *key;
	uint32_t *number;
	GpuShape *shape;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t varying[4] = { 0, 0, 0, 0 };
		uint32_t unsorted = 0;
		uint32_t disordered = 0;
		GpudsOp first = ops[0];

		for (; i < n; i += GPU_SHAPE_THREADS)
		{
			GpudsOp op = ops[i];

			key[i] = op.e.w0;
			number[i] = (uint32_t) i;
			varying[0] |= op.e.w0 ^ first.e.w0;
			varying[1] |= op.e.w1 ^ first.e.w1;
			varying[2] |= op.e.t ^ first.e.t;
			varying[3] |= op.order ^ first.order;
			if (i > 0)
			{
				GpudsOp before = ops[i - 1];

				unsorted |= entry_less(&before.e, &op.e) ? 0 : 1;
				disordered |= before.order < op.order ? 0 : 1;
			}
		}
		for (int w = 0; w < 4; w++)
			gpu_shape_add(&shape->varying[w], varying[w]);
		if (unsorted)
			gpu_flag(&shape->unsorted);
		if (disordered)
			gpu_flag(&shape->disordered);
	}
};

/* Numbers to be sorted, and the word to sort by; backward: the last operation first. */
struct GpuSortFirst
{
	const GpudsOp *ops;
	int64_t n;
	uint64_t *key;
	uint32_t *number;
	int word;
	bool backward;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t j = backward ? n - 1 - i : i;

		number[i] = (uint32_t) j;
		key[i] = gpu_op_word(&ops[j], word);
	}
};

/* The next word to sort by. */
struct GpuSortNext
{
	const GpudsOp *ops;
	uint64_t *key;
	const uint32_t *number;
	int word;

	GPU_FN void operator()(int64_t i) const
	{
		key[i] = gpu_op_word(&ops[number[i]], word);
	}
};

/* Puts the operations of short ties in order. */
struct GpuSortTies
{
	const GpudsOp *ops;
	int64_t n;
	const uint64_t *key;
	int shift;
	uint32_t *number;
	GpuShape *shape;

	GPU_FN bool less(uint32_t a, uint32_t b) const
	{
		GpudsOp x = ops[a];
		GpudsOp y = ops[b];

		return gpu_op_less(&x, &y);
	}

	GPU_FN void operator()(int64_t i) const
	{
		int64_t end = gpu_tie_end(key, n, i, shift, shape);

		for (int64_t j = i + 1; j < end; j++)
		{
			uint32_t x = number[j];
			int64_t k = j;

			for (; k > i && less(x, number[k - 1]); k--)
				number[k] = number[k - 1];
			number[k] = x;
		}
	}
};

/* Lowest and highest bit that are set, + 1; none: both 0. */
static inline void
gpu_bit_range(uint64_t bits, int *low, int *high)
{
	*low = bits ? __builtin_ctzll(bits) : 0;
	*high = bits ? 64 - __builtin_clzll(bits) : 0;
}

/*
 * Lowest bit the radix sort must include, of the bits low .. high - 1 that differ
 * among n keys: few random keys still tie above it, and a later pass orders those.
 */
static inline int
gpu_enough_bits(int64_t n, int low, int high)
{
	int bits = (64 - __builtin_clzll((uint64_t) n) + GPU_SPARE_BITS + 7) / 8 * 8;

	return high - bits > low ? high - bits : low;
}

static inline void
gpu_sort_by(GpuStream *s, GpuSort *sort, int64_t n, int low, int high)
{
	gpu_sort_pairs(s, &sort->key, &sort->other_key, &sort->number, &sort->other_number, n, low, high);
}

/*
 * Sorts by all words that vary, and returns the numbers.  If order ascends, the
 * operations are numbered backward instead of being sorted by it, so that the last
 * one on an entry comes first.
 */
static inline const uint32_t *
gpu_sort_batch_by_words(GpuStream *s, GpuSort *sort, const GpudsOp *ops, int64_t n, const GpuShape *shape)
{
	bool first = true;

	for (int word = shape->disordered ? 3 : 2; word >= 0; word--)
	{
		int low, high;

		if (shape->varying[word] == 0 && word > 0)
			continue;
		if (first)
			gpu_launch(s, n, GpuSortFirst{ ops, n, sort->key, sort->number, word, !shape->disordered });
		else
			gpu_launch(s, n, GpuSortNext{ ops, sort->key, sort->number, word });
		first = false;
		gpu_bit_range(shape->varying[word], &low, &high);
		gpu_sort_by(s, sort, n, low, high);
	}
	return sort->number;
}

/*
 * Sorts n operations in device memory, and returns the numbers of them in order;
 * NULL: they are in order as they are.  Waits for the device once, to learn the
 * batch's shape, which comes into *shape, in host memory.  When the device is done,
 * sort->shape says whether there are long ties: gpu_sort_batch_by_words must follow
 * then.
 */
static inline const uint32_t *
gpu_sort_batch(GpuStream *s, GpuSort *sort, const GpudsOp *ops, int64_t n, GpuShape *shape)
{
	int low, high, enough;

	gpu_fill(s, sort->shape, 0, sizeof(GpuShape));
	gpu_launch(s, n < GPU_SHAPE_THREADS ? n : GPU_SHAPE_THREADS,
			   GpuFindShape{ ops, n, sort->key, sort->number, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (!gpu_finish(s) || !shape->unsorted)
		return NULL;
	gpu_bit_range(shape->varying[0], &low, &high);
	if (low == high)
		return gpu_sort_batch_by_words(s, sort, ops, n, shape);
	enough = gpu_enough_bits(n, low, high);
	gpu_sort_by(s, sort, n, enough, high);
	gpu_launch(s, n, GpuSortTies{ ops, n, sort->key, enough, sort->number, sort->shape });
	return sort->number;
}

#endif /* GPU_BATCH_SORT_H */
