/*-------------------------------------------------------------------------
 *
 * build_unsorted.h
 *	  Building a tree at once from unsorted entries that are in device memory.
 *
 * The extension adds sorted entries in batches (kernels/btree/btree_build_gpu.h); only
 * bench/device and test/kernels/gpu_change.cu build this way.  Words are sorted from
 * t to w0, each order stable; numbers say which entry a key belongs to.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_BUILD_UNSORTED_H
#define BENCH_BUILD_UNSORTED_H

#include "kernels/btree/btree_build_gpu.h"

/* Entries in an order given by numbers; a source as gpu_load_write wants it. */
struct BenchSource
{
	const uint64_t *w0; /* in order */
	const uint64_t *w1; /* to be looked up by number */
	const uint64_t *t;
	const uint32_t *number;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		GpudsEntry e;

		e.w0 = w0[i];
		e.w1 = nw == 2 ? w1[number[i]] : 0;
		e.t = t[number[i]];
		return e;
	}
};

/* The shape of unsorted entries. */
struct BenchFindShape
{
	const uint64_t *w0;
	const uint64_t *w1; /* NULL: one key word */
	const uint64_t *t;
	int64_t n;
	GpuShape *shape; /* disordered: t is not ascending */

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t varying[3] = { 0, 0, 0 };
		uint32_t disordered = 0;

		for (; i < n; i += GPU_SHAPE_THREADS)
		{
			varying[0] |= w0[i] ^ w0[0];
			varying[1] |= w1 ? w1[i] ^ w1[0] : 0;
			varying[2] |= t[i] ^ t[0];
			disordered |= i > 0 && t[i - 1] >= t[i] ? 1 : 0;
		}
		for (int w = 0; w < 3; w++)
			gpu_shape_add(&shape->varying[w], varying[w]);
		if (disordered)
			shape->disordered = 1;
	}
};

/* Words in the order of numbers; NULL: makes the numbers, too. */
struct BenchPickWords
{
	const uint64_t *words;
	const uint32_t *number;
	uint64_t *key;
	uint32_t *first;

	GPU_FN void operator()(int64_t i) const
	{
		if (number == NULL)
			first[i] = (uint32_t) i;
		key[i] = words[number ? number[i] : i];
	}
};

/* Puts the keys of short ties in order, and their numbers with them. */
struct BenchSortTies
{
	uint64_t *key;
	uint32_t *number;
	int64_t n;
	int shift;
	GpuShape *shape;

	GPU_FN void operator()(int64_t i) const
	{
		int64_t end = gpu_tie_end(key, n, i, shift, shape);

		for (int64_t j = i + 1; j < end; j++)
		{
			uint64_t x = key[j];
			uint32_t y = number[j];
			int64_t k = j;

			for (; k > i && key[k - 1] > x; k--)
			{
				key[k] = key[k - 1];
				number[k] = number[k - 1];
			}
			key[k] = x;
			number[k] = y;
		}
	}
};

/* The order of n unsorted entries, and their w0 in that order. */
static inline void
bench_sort_entries(GpuChange *c, GpuSort *sort, const uint64_t *w0, const uint64_t *w1, const uint64_t *t,
				   int64_t n)
{
	GpuStream *s = &c->stream;
	GpuShape *shape = &gpu_report(c)->shape;
	const uint64_t *words[] = { w0, w1, t };
	const uint32_t *number = NULL;
	int low, high, enough;

	gpu_fill(s, sort->shape, 0, sizeof(GpuShape));
	gpu_launch(s, n < GPU_SHAPE_THREADS ? n : GPU_SHAPE_THREADS, BenchFindShape{ w0, w1, t, n, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (!gpu_finish(s))
		return;
	for (int word = 2; word > 0; word--)
	{
		if (shape->varying[word] == 0 || (word == 2 && !shape->disordered))
			continue;
		gpu_launch(s, n, BenchPickWords{ words[word], number, sort->key, sort->number });
		gpu_bit_range(shape->varying[word], &low, &high);
		gpu_sort_by(s, sort, n, low, high);
		number = sort->number;
	}
	gpu_launch(s, n, BenchPickWords{ w0, number, sort->key, sort->number });
	gpu_bit_range(shape->varying[0], &low, &high);
	enough = gpu_enough_bits(n, low, high);
	gpu_sort_by(s, sort, n, enough, high);
	if (enough == low)
		return;
	gpu_launch(s, n, BenchSortTies{ sort->key, sort->number, n, enough, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (gpu_finish(s) && shape->long_tie)
	{
		/* a long tie was left in the order of the words before, so a stable sort still works */
		gpu_sort_by(s, sort, n, low, high);
	}
}

/* Working memory of a build. */
struct BenchBuild
{
	GpuSort sort;
	GpuLoadEnd end;
};

static inline void
bench_build_layout(GpuScratch *scratch, BenchBuild *b, GpuChange *c, const GpuTree *tree, int64_t n)
{
	gpu_sort_layout(scratch, &b->sort, n);
	gpu_scratch_temp(scratch, &c->stream, n);
	gpu_load_end_layout(scratch, &b->end, tree, (int64_t) tree->load.nodes);
}

/*
 * Builds a tree, which must not be there, of n different entries in device
 * memory, in any order.  w1 is NULL for one key word.
 */
static inline GpuStatus
bench_build_unsorted(GpuChange *c, GpuTree *tree, const uint64_t *w0, const uint64_t *w1, const uint64_t *t,
					 int64_t n, uint32_t fill_percent)
{
	GpuStatus status = gpu_btree_load_begin(c, tree, w1 ? 2 : 1, fill_percent);
	GpuScratch scratch = { NULL, 0 };
	GpuLoad *load = &tree->load;
	BenchBuild b;
	GpuSpan span;

	if (status != GPU_OK || n == 0)
		return status == GPU_OK ? gpu_btree_load_end(c, tree) : status;
	load->entries = (uint64_t) n;
	load->nodes = gpu_load_all_leaves(load, (uint64_t) n);
	if (n > GPU_MAX_ITEMS || !gpu_load_reserve(c, tree, load->nodes) ||
		!gpu_load_reserve_inners(c, tree, load->nodes))
	{
		gpu_tree_close(c, tree);
		return GPU_NO_MEMORY;
	}
	bench_build_layout(&scratch, &b, c, tree, n);
	if (!gpu_scratch_take(c->pool, &span, &scratch))
	{
		gpu_tree_close(c, tree);
		return GPU_NO_MEMORY;
	}
	bench_build_layout(&scratch, &b, c, tree, n);
	bench_sort_entries(c, &b.sort, w0, w1, t, n);

	BenchSource source = { b.sort.key, w1, t, b.sort.number };
	GpuLeaves leaves(tree, GpuLoaded(tree, b.end.chunks, 0), (uint64_t) n);

	gpu_load_send_chunks(c, tree, b.end.chunks, 0);
	gpu_load_write(c, tree, leaves, load->nodes, source);
	gpu_load_finish(c, tree, &b.end, leaves);
	gpu_span_give(c->pool, &span);
	if (gpu_change_ok(c))
		gpu_load_publish(c, tree);
	return gpu_change_status(c);
}

#endif /* BENCH_BUILD_UNSORTED_H */
