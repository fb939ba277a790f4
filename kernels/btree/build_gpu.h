/*-------------------------------------------------------------------------
 *
 * load.h
 *	  Building trees in device memory: from sorted entries that come in pieces,
 *	  and from unsorted ones in device memory.
 *
 * Leaf i of a load begins with entry btree_fill_start(i), and lies in the load's
 * chunks at place i: so nothing has to be noted about leaves until all are
 * there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BTREE_BUILD_GPU_H
#define BTREE_BUILD_GPU_H

#include "kernels/btree/tree_gpu.h"
#include "kernels/btree/build.h"

/* Entries or operations that are equal so far, and that one thread puts in order. */
#define GPU_SHORT_TIE 32

/* Bits to sort n random numbers by are those of n and so many. */
#define GPU_SPARE_BITS 8

/* Threads that look over entries or operations. */
#define GPU_SHAPE_THREADS (1 << 17)

/*
 * Inner levels.
 */

template <int nw> struct GpuBuildInner
{
	unsigned char *base;
	BtreeList children;
	BtreeList parents;
	BtreeFree free;
	uint32_t first; /* number of the level's first node among those taken */

	GPU_FN void operator()(int64_t i) const
	{
		int64_t node = i / BTREE_FANOUT;

		btree_build_inner(base, &children, &parents, node, (int) (i % BTREE_FANOUT),
						  btree_free_take(&free, first + (uint32_t) node), nw);
	}
};

/* Nodes of the inner levels above so many leaves. */
static inline int64_t
gpu_inner_nodes(int64_t leaves)
{
	int64_t sum = 0;

	while (leaves > 1)
		sum += leaves = btree_nodes(leaves);
	return sum;
}

/* Lists of the levels above n leaves. */
static inline int
gpu_scratch_levels(GpuScratch *scratch, BtreeList *levels, int64_t n, uint32_t nwords)
{
	int height = 1;

	while (n > 1)
	{
		n = btree_nodes(n);
		gpu_scratch_list(scratch, &levels[height++], n, nwords);
	}
	return height;
}

/*
 * Build the inner levels above levels[0], which is not empty; the nodes must be
 * free.  The root comes into the page; sets the tree's height and numbers of nodes, not its view.
 */
static inline void
gpu_build_inner(GpuChange *c, GpuTree *tree, BtreeList *levels, int height)
{
	uint32_t taken = 0;

	tree->level_n[0] = (uint32_t) levels[0].n;
	for (int level = 1; level < height; level++)
	{
		int64_t n = levels[level].n;
		BtreeFree free = gpu_nodes_free(&tree->inners);

		if (tree->nwords == 1)
		{
			GpuBuildInner<1> build = { c->pool->base, levels[level - 1], levels[level], free, taken };

			gpu_launch(&c->stream, n * BTREE_FANOUT, build);
		}
		else
		{
			GpuBuildInner<2> build = { c->pool->base, levels[level - 1], levels[level], free, taken };

			gpu_launch(&c->stream, n * BTREE_FANOUT, build);
		}
		tree->level_n[level] = (uint32_t) n;
		taken += (uint32_t) n;
	}
	for (int level = height; level < BTREE_MAX_HEIGHT; level++)
		tree->level_n[level] = 0;
	tree->inners.nfree -= taken;
	tree->inners.live = taken;
	tree->leaves.live = (uint32_t) levels[0].n;
	tree->height = height;
	gpu_copy_bus(&c->stream, &c->page->root, levels[height - 1].ref, sizeof(BtreeRef));
}

/*
 * Leaves.
 */

/* Entries, ascending: some that were left over, then a piece, or arrays in an order given by numbers. */
struct GpuSource
{
	const GpudsEntry *carry;
	uint64_t ncarry;
	const GpudsEntry *piece; /* NULL: see below */
	const uint64_t *w0;      /* in order */
	const uint64_t *w1;      /* to be looked up by number */
	const uint64_t *t;
	const uint32_t *number;

	template <int nw> GPU_FN GpudsEntry entry(uint64_t i) const
	{
		GpudsEntry e;

		if (i < ncarry)
			return carry[i];
		if (piece != NULL)
			return piece[i - ncarry];
		e.w0 = w0[i];
		e.w1 = nw == 2 ? w1[number[i]] : 0;
		e.t = t[number[i]];
		return e;
	}
};

/* The leaves of a load. */
struct GpuLeaves
{
	const uint32_t *chunks; /* from the one that has leaf first on */
	uint64_t first;
	uint64_t total; /* entries so far */
	uint32_t fill_percent;
	uint32_t per_chunk;
	uint32_t units;

	GPU_FN BtreeRef ref(uint64_t leaf) const
	{
		return chunks[leaf / per_chunk - first / per_chunk] * GPU_CHUNK_UNITS +
			   (uint32_t) (leaf % per_chunk) * units;
	}

	GPU_FN uint64_t start(uint64_t leaf) const
	{
		uint64_t at = btree_fill_start(leaf, fill_percent);

		return at < total ? at : total;
	}
};

template <int nw> struct GpuBuildLeaf
{
	unsigned char *base;
	GpuLeaves leaves;
	GpuSource source;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t leaf = leaves.first + (uint64_t) i / BTREE_FANOUT;
		int p = (int) (i % BTREE_FANOUT);
		uint64_t start = leaves.start(leaf);
		uint64_t *node = btree_node(base, leaves.ref(leaf));

		if (start + (uint64_t) p < leaves.start(leaf + 1))
		{
			GpudsEntry e = source.template entry<nw>(start - leaves.start(leaves.first) + (uint64_t) p);

			btree_leaf_set(node, p, &e, nw);
		}
		else
		{
			btree_leaf_clear(node, p, nw);
		}
	}
};

template <int nw> struct GpuListLeaf
{
	unsigned char *base;
	GpuLeaves leaves;
	BtreeList list;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsEntry separator = { 0, 0, 0 };
		BtreeRef ref = leaves.ref((uint64_t) i);

		if (i > 0)
			separator = btree_leaf_separator(base, leaves.ref((uint64_t) i - 1), ref, nw);
		btree_list_set_separator(&list, i, &separator, nw);
		list.ref[i] = ref;
		list.before[i] = (uint32_t) leaves.start((uint64_t) i);
		if (i == list.n - 1)
			list.before[i + 1] = (uint32_t) leaves.total;
	}
};

/* Leaves that the first total entries fill. */
static inline uint64_t
gpu_load_full_leaves(const GpuLoad *load, uint64_t total)
{
	uint64_t leaves = total * 100 / (BTREE_FANOUT * load->fill_percent);

	while (btree_fill_start(leaves + 1, load->fill_percent) <= total)
		leaves++;
	while (btree_fill_start(leaves, load->fill_percent) > total)
		leaves--;
	return leaves;
}

static inline GpuLeaves
gpu_load_leaves(const GpuTree *tree, const uint32_t *chunks, uint64_t first, uint64_t total)
{
	GpuLeaves leaves = {
		chunks, first, total, tree->load.fill_percent, gpu_nodes_per_chunk(&tree->leaves), tree->leaves.units
	};

	return leaves;
}

/* Chunks for so many leaves in all. */
static inline bool
gpu_load_reserve(GpuChange *c, GpuTree *tree, uint64_t leaves)
{
	std::vector<uint32_t> &chunks = tree->load.chunks;
	size_t had = chunks.size();
	size_t need = (size_t) ((leaves + gpu_nodes_per_chunk(&tree->leaves) - 1) /
							gpu_nodes_per_chunk(&tree->leaves));

	if (need >= c->pool->nchunks || (need > had && !gpu_pool_list(c->pool, &chunks, need - had)))
		return false;
	while (chunks.size() < need)
	{
		uint32_t chunk = gpu_pool_take(c->pool);

		if (chunk == 0)
		{
			while (chunks.size() > had)
			{
				gpu_pool_give(c->pool, chunks.back(), 1);
				chunks.pop_back();
			}
			return false;
		}
		chunks.push_back(chunk);
	}
	return true;
}

/* Send the numbers of the load's chunks, from chunk first on, to the device. */
static inline void
gpu_load_send_chunks(GpuChange *c, const GpuTree *tree, uint32_t *to, size_t first)
{
	size_t n = tree->load.chunks.size() - first;

	if (n == 0)
		return;
	memcpy(c->page->chunks, &tree->load.chunks[first], n * sizeof(uint32_t));
	gpu_copy_bus(&c->stream, to, c->page->chunks, n * sizeof(uint32_t));
}

/* Write leaves from number first on. */
static inline void
gpu_load_write(GpuChange *c, const GpuTree *tree, const GpuLeaves &leaves, uint64_t n,
			   const GpuSource &source)
{
	if (tree->nwords == 1)
	{
		GpuBuildLeaf<1> build = { c->pool->base, leaves, source };

		gpu_launch(&c->stream, (int64_t) n * BTREE_FANOUT, build);
	}
	else
	{
		GpuBuildLeaf<2> build = { c->pool->base, leaves, source };

		gpu_launch(&c->stream, (int64_t) n * BTREE_FANOUT, build);
	}
}

/*
 * Begin to load a tree, which must not be there.
 */
static inline GpuStatus
gpu_tree_load_begin(GpuChange *c, GpuTree *tree, uint32_t nwords, uint32_t fill_percent)
{
	if (tree->nwords != 0)
		return GPU_WITHDRAWN;
	if (!gpu_tree_init(c, tree, nwords) ||
		!gpu_span_take(c->pool, &tree->load.carry, BTREE_FANOUT * sizeof(GpudsEntry)))
	{
		gpu_tree_release(c, tree);
		return GPU_NO_MEMORY;
	}
	tree->loading = true;
	tree->load.fill_percent = fill_percent;
	return gpu_change_status(c);
}

/*
 * Add n entries, which lie in host memory that the device can use; all of a
 * load are strictly ascending.
 */
static inline GpuStatus
gpu_tree_load_add(GpuChange *c, GpuTree *tree, const GpudsEntry *entries, int64_t n)
{
	GpuLoad *load = &tree->load;
	uint64_t total = load->entries + (uint64_t) n;
	uint64_t first = load->leaves;
	uint64_t ncarry = load->entries - btree_fill_start(first, load->fill_percent);
	size_t bytes = (size_t) n * sizeof(GpudsEntry);
	uint64_t leaves;
	uint64_t left;
	size_t chunk;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	if (n <= 0)
		return gpu_change_status(c);
	if (total > GPU_MAX_ENTRIES)
		return GPU_TOO_LARGE;
	leaves = gpu_load_full_leaves(load, total);
	left = total - btree_fill_start(leaves, load->fill_percent);
	chunk = (size_t) first / gpu_nodes_per_chunk(&tree->leaves);
	if (!gpu_load_reserve(c, tree, leaves))
		return GPU_NO_MEMORY;
	bytes += (load->chunks.size() - chunk) * sizeof(uint32_t);
	if (bytes > gpu_span_bytes(&load->piece))
	{
		gpu_span_give(c->pool, &load->piece);
		if (!gpu_span_take(c->pool, &load->piece, bytes))
			return GPU_NO_MEMORY;
	}

	GpudsEntry *piece = (GpudsEntry *) load->piece.at;
	uint32_t *chunks = (uint32_t *) (piece + n);
	GpudsEntry *carry = (GpudsEntry *) load->carry.at;
	GpuSource source = { carry, ncarry, piece, NULL, NULL, NULL, NULL };

	gpu_load_send_chunks(c, tree, chunks, chunk);
	gpu_copy_bus(&c->stream, piece, entries, (size_t) n * sizeof(GpudsEntry));
	gpu_load_write(c, tree, gpu_load_leaves(tree, chunks, first, total), leaves - first, source);
	if (leaves == first)
		gpu_copy(&c->stream, carry + ncarry, piece, (size_t) n * sizeof(GpudsEntry));
	else
		gpu_copy(&c->stream, carry, piece + ((uint64_t) n - left), left * sizeof(GpudsEntry));
	gpu_finish(&c->stream);
	load->entries = total;
	load->leaves = leaves;
	return gpu_change_status(c);
}

/* Working memory of the end of a load. */
struct GpuLoadEnd
{
	uint32_t *chunks;
	BtreeList levels[BTREE_MAX_HEIGHT];
	int height;
};

static inline void
gpu_load_end_layout(GpuScratch *scratch, GpuLoadEnd *end, const GpuTree *tree, int64_t leaves)
{
	end->chunks = gpu_scratch<uint32_t>(scratch, (int64_t) tree->load.chunks.size());
	gpu_scratch_list(scratch, &end->levels[0], leaves, tree->nwords);
	end->height = gpu_scratch_levels(scratch, end->levels, leaves, tree->nwords);
}

/* Levels above leaves that are all written, and what remains of their chunks. */
static inline void
gpu_load_finish(GpuChange *c, GpuTree *tree, GpuLoadEnd *end, const GpuLeaves &leaves)
{
	uint32_t per_chunk = gpu_nodes_per_chunk(&tree->leaves);
	uint32_t nchunks = (uint32_t) tree->load.chunks.size();
	uint32_t n = (uint32_t) end->levels[0].n;

	if (tree->nwords == 1)
	{
		GpuListLeaf<1> list = { c->pool->base, leaves, end->levels[0] };

		gpu_launch(&c->stream, n, list);
	}
	else
	{
		GpuListLeaf<2> list = { c->pool->base, leaves, end->levels[0] };

		gpu_launch(&c->stream, n, list);
	}
	gpu_build_inner(c, tree, end->levels, end->height);
	gpu_finish(&c->stream);
	/* the page has the chunks of the inner nodes in between */
	memcpy(c->page->chunks, tree->load.chunks.data(), nchunks * sizeof(uint32_t));
	gpu_nodes_push(c, &tree->leaves, 0, nchunks, nchunks * per_chunk - n);
	gpu_finish(&c->stream);
	tree->root = c->page->root;
}

static inline void
gpu_load_publish(GpuChange *c, GpuTree *tree)
{
	GpuLoad *load = &tree->load;

	/* a tree that is being loaded has no other leaves */
	tree->leaves.chunks.swap(load->chunks);
	gpu_span_give(c->pool, &load->carry);
	tree->loading = false;
	gpu_tree_publish(tree, load->entries);
}

/* All entries are there: publish the tree. */
static inline GpuStatus
gpu_tree_load_end(GpuChange *c, GpuTree *tree)
{
	GpuLoad *load = &tree->load;
	uint64_t total = load->entries;
	uint64_t leaves = load->leaves;
	uint64_t ncarry = total - btree_fill_start(leaves, load->fill_percent);
	GpuSpan run;

	if (!tree->loading)
		return GPU_WITHDRAWN;
	gpu_span_give(c->pool, &load->piece);
	if (ncarry > 0)
		leaves++;
	if (leaves > 0)
	{
		GpuScratch scratch = { NULL, 0 };
		GpuSource source = { (const GpudsEntry *) load->carry.at, ncarry, NULL, NULL, NULL, NULL, NULL };
		GpuLoadEnd end;

		if (!gpu_load_reserve(c, tree, leaves) ||
			!gpu_tree_reserve(c, tree, 0, (uint64_t) gpu_inner_nodes((int64_t) leaves), 0, 0))
			return GPU_NO_MEMORY;
		gpu_load_end_layout(&scratch, &end, tree, (int64_t) leaves);
		if (!gpu_scratch_take(c->pool, &run, &scratch))
			return GPU_NO_MEMORY;
		gpu_load_end_layout(&scratch, &end, tree, (int64_t) leaves);
		gpu_finish(&c->stream);
		gpu_load_send_chunks(c, tree, end.chunks, 0);
		if (ncarry > 0)
		{
			size_t chunk = (size_t) load->leaves / gpu_nodes_per_chunk(&tree->leaves);

			gpu_load_write(c, tree, gpu_load_leaves(tree, end.chunks + chunk, load->leaves, total), 1,
						   source);
		}
		gpu_load_finish(c, tree, &end, gpu_load_leaves(tree, end.chunks, 0, total));
		gpu_span_give(c->pool, &run);
	}
	if (!gpu_change_ok(c))
		return gpu_change_status(c);
	gpu_load_publish(c, tree);
	return GPU_OK;
}

/* Give up a load. */
static inline GpuStatus
gpu_tree_load_cancel(GpuChange *c, GpuTree *tree)
{
	if (!tree->loading)
		return GPU_WITHDRAWN;
	gpu_tree_release(c, tree);
	return gpu_change_status(c);
}

/*
 * Building at once.
 */

GPU_FN void
gpu_shape_add(uint64_t *to, uint64_t bits)
{
	bool first;

	bits = gpu_warp_or(bits, &first);
	if (first && (bits & ~*(volatile uint64_t *) to) != 0)
		gpu_atomic_or64(to, bits);
}

/* What is known of unsorted entries. */
struct GpuFindArrays
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

/* Words in the order of numbers; NULL: make the numbers, too. */
struct GpuPickWords
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

/* Put entries whose keys are equal from bit shift on in order, where they are few. */
struct GpuSortEqualKeys
{
	uint64_t *key;
	uint32_t *number;
	int64_t n;
	int shift;
	GpuShape *shape;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t high = key[i] >> shift;
		int64_t end = i + 1;

		if (i > 0 && key[i - 1] >> shift == high)
			return;
		while (end < n && key[end] >> shift == high)
		{
			if (end - i == GPU_SHORT_TIE)
			{
				shape->long_tie = 1;
				return;
			}
			end++;
		}
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

/* Working memory of a sort. */
struct GpuSort
{
	GpuShape *shape;
	uint64_t *key;
	uint64_t *other_key;
	uint32_t *number;
	uint32_t *other_number;
};

static inline void
gpu_sort_layout(GpuScratch *scratch, GpuSort *sort, int64_t n)
{
	sort->shape = gpu_scratch<GpuShape>(scratch, 1);
	sort->key = gpu_scratch<uint64_t>(scratch, n);
	sort->other_key = gpu_scratch<uint64_t>(scratch, n);
	sort->number = gpu_scratch<uint32_t>(scratch, n);
	sort->other_number = gpu_scratch<uint32_t>(scratch, n);
}

/* Lowest and highest bit that are set, + 1; none: both 0. */
static inline void
gpu_bit_range(uint64_t bits, int *low, int *high)
{
	*low = bits ? __builtin_ctzll(bits) : 0;
	*high = bits ? 64 - __builtin_clzll(bits) : 0;
}

/*
 * Of the bits low .. high - 1 that tell n numbers apart, the lowest to sort by
 * if what is equal from there on can be put in order afterwards: so many that
 * few of random numbers are.
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

/* The order of n unsorted entries, and their w0 in that order. */
static inline void
gpu_build_sort(GpuChange *c, GpuSort *sort, const uint64_t *w0, const uint64_t *w1, const uint64_t *t,
			   int64_t n)
{
	GpuStream *s = &c->stream;
	GpuShape *shape = &c->page->shape;
	const uint64_t *words[] = { w0, w1, t };
	const uint32_t *number = NULL;
	int low, high, enough;

	gpu_fill(s, sort->shape, 0, sizeof(GpuShape));
	gpu_launch(s, n < GPU_SHAPE_THREADS ? n : GPU_SHAPE_THREADS, GpuFindArrays{ w0, w1, t, n, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (!gpu_finish(s))
		return;
	for (int word = 2; word > 0; word--)
	{
		if (shape->varying[word] == 0 || (word == 2 && !shape->disordered))
			continue;
		gpu_launch(s, n, GpuPickWords{ words[word], number, sort->key, sort->number });
		gpu_bit_range(shape->varying[word], &low, &high);
		gpu_sort_by(s, sort, n, low, high);
		number = sort->number;
	}
	gpu_launch(s, n, GpuPickWords{ w0, number, sort->key, sort->number });
	gpu_bit_range(shape->varying[0], &low, &high);
	enough = gpu_enough_bits(n, low, high);
	gpu_sort_by(s, sort, n, enough, high);
	if (enough == low)
		return;
	gpu_launch(s, n, GpuSortEqualKeys{ sort->key, sort->number, n, enough, sort->shape });
	gpu_copy_bus(s, shape, sort->shape, sizeof(GpuShape));
	if (gpu_finish(s) && shape->long_tie)
	{
		/* where that was not done the keys are still in the order of the words before */
		gpu_sort_by(s, sort, n, low, high);
	}
}

/*
 * Build a tree, which must not be there, of n different entries in device
 * memory, in any order.  w1 is NULL for one key word.
 */
static inline GpuStatus
gpu_tree_build(GpuChange *c, GpuTree *tree, const uint64_t *w0, const uint64_t *w1, const uint64_t *t,
			   int64_t n, uint32_t fill_percent)
{
	GpuStatus status = gpu_tree_load_begin(c, tree, w1 ? 2 : 1, fill_percent);
	GpuScratch scratch = { NULL, 0 };
	GpuLoad *load = &tree->load;
	GpuLoadEnd end;
	GpuSort sort;
	GpuSpan run;

	if (status != GPU_OK || n == 0)
		return status == GPU_OK ? gpu_tree_load_end(c, tree) : status;
	load->entries = (uint64_t) n;
	load->leaves = gpu_load_full_leaves(load, (uint64_t) n);
	if (btree_fill_start(load->leaves, fill_percent) < (uint64_t) n)
		load->leaves++;
	if (n > GPU_MAX_ITEMS || !gpu_load_reserve(c, tree, load->leaves) ||
		!gpu_tree_reserve(c, tree, 0, (uint64_t) gpu_inner_nodes((int64_t) load->leaves), 0, 0))
	{
		gpu_tree_release(c, tree);
		return GPU_NO_MEMORY;
	}
	gpu_sort_layout(&scratch, &sort, n);
	gpu_scratch_temp(&scratch, &c->stream, n);
	gpu_load_end_layout(&scratch, &end, tree, (int64_t) load->leaves);
	if (!gpu_scratch_take(c->pool, &run, &scratch))
	{
		gpu_tree_release(c, tree);
		return GPU_NO_MEMORY;
	}
	gpu_sort_layout(&scratch, &sort, n);
	gpu_scratch_temp(&scratch, &c->stream, n);
	gpu_load_end_layout(&scratch, &end, tree, (int64_t) load->leaves);
	gpu_build_sort(c, &sort, w0, w1, t, n);

	GpuSource source = { NULL, 0, NULL, sort.key, w1, t, sort.number };
	GpuLeaves leaves = gpu_load_leaves(tree, end.chunks, 0, (uint64_t) n);

	gpu_load_send_chunks(c, tree, end.chunks, 0);
	gpu_load_write(c, tree, leaves, load->leaves, source);
	gpu_load_finish(c, tree, &end, leaves);
	gpu_span_give(c->pool, &run);
	if (gpu_change_ok(c))
		gpu_load_publish(c, tree);
	return gpu_change_status(c);
}

/* Readers find no tree any more; those that pinned it go on. */
static inline void
gpu_tree_withdraw(GpuTree *tree)
{
	gpu_tree_set_head(tree, 0, 0);
}

/* Give all memory of a tree back that was withdrawn, and that nobody pins. */
static inline GpuStatus
gpu_tree_drop(GpuChange *c, GpuTree *tree)
{
	gpu_tree_release(c, tree);
	return gpu_change_status(c);
}

#endif /* BTREE_BUILD_GPU_H */
