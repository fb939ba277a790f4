/*-------------------------------------------------------------------------
 *
 * gpu_hash.cu
 *	  Hash tables in device memory, against a sorted array: loads and batches of all kinds of
 *	  keys, few and many entries of a key, versions that are still read, memory running out
 *	  anywhere, buckets that come back from the overflow tree when a table grows.
 *	  Runs on a GPU, or compiled with GPU_EMULATED on the CPU.
 *
 *	  usage: gpu_hash [small | rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"
#include "gpu_versions.h"

#define MOST 3000 /* entries of a table, operations of a batch */
#define BATCHES 30
#define SMALL_BATCHES 1 /* under a sanitizer */
#define HELD 3          /* versions that are read beside the newest */

static int batches = BATCHES;

/* Is what readers of a view see the model? */
static void
check_view(const HashOnGpu *table, const GpudsView *view, const Model *m, int kind)
{
	const GpudsInterval all = all_entries(view->nwords);

	CHECK(view->entries == (uint64_t) m->n);
	check_interval(table, view, m, &all, true, 2 * MOST);
	check_interval(table, view, m, &all, false, 1 + m->n / 2);
	for (int i = 0; i < 40; i++)
	{
		GpudsInterval one;

		one.lo = m->n > 0 && test_below(2) ? m->e[test_below((uint64_t) m->n)]
										   : test_entry(kind, view->nwords, 2 * MOST);
		one.hi = one.lo;
		one.lo.t = test_below(2) ? 0 : one.lo.t;
		one.hi.t = test_below(2) ? UINT64_MAX : one.hi.t;
		check_interval(table, view, m, &one, i % 2 == 0, i % 3 == 0 ? 3 : MOST);
	}
}

static void
check_table(HashOnGpu *table, const Model *m, int kind)
{
	GpudsView view;

	verify(table);
	CHECK(table->view(&pool, &view));
	check_view(table, &view, m, kind);
}

/* A random batch; returns what becomes of the model in *next. */
static int64_t
make_batch(GpudsOp *ops, const Model *m, int kind, int nwords)
{
	int64_t n = 1 + (int64_t) test_below(test_below(2) ? 40 : MOST);
	uint64_t deletes = test_below(101);

	for (int64_t i = 0; i < n; i++)
	{
		bool there = m->n > 0 && test_below(2) == 0;

		ops[i].e = there ? m->e[test_below((uint64_t) m->n)] : test_entry(kind, nwords, 2 * MOST);
		ops[i].order = (uint64_t) i << 1 | (test_below(100) < deletes);
	}
	return n;
}

static void
test_random_changes(int kind, int nwords)
{
	static GpudsOp ops[MOST];
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	Held held[HELD] = {};
	Model m;

	model_fill(&m, (int64_t) test_below(MOST), kind, nwords, 2 * MOST);
	CHECK(load(&table, &m, nwords, 90) == GPU_OK);
	check_table(&table, &m, kind);
	for (int i = 0; i < batches; i++)
	{
		Held *h = &held[test_below(HELD)];

		if (h->version != 0)
		{
			check_view(&table, &h->view, &h->model, kind);
			free(h->model.e);
		}
		hold(h, &table, &m);
		table.reclaim(&change, oldest_of(held, HELD));
		CHECK(apply(&table, &m, ops, make_batch(ops, &m, kind, nwords)) == GPU_OK);
		check_table(&table, &m, kind);
	}
	for (int k = 0; k < HELD; k++)
		free(held[k].model.e);
	free(m.e);
	drop(&table);
}

/* All allocations of a load and a change fail in turn. */
static void
test_no_memory(int kind, int nwords, std::atomic<int64_t> *fail)
{
	static GpudsOp ops[MOST];
	static GpudsOp copy[MOST];
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	GpuStatus status = GPU_NO_MEMORY;
	int64_t n;
	Model m;

	model_fill(&m, MOST / 2, kind, nwords, 2 * MOST);
	load_without_memory(&table, &m, nwords, fail);
	check_table(&table, &m, kind);
	n = make_batch(ops, &m, kind, nwords);
	for (int64_t after = 0; status != GPU_OK; after++)
	{
		memcpy(copy, ops, (size_t) n * sizeof(GpudsOp));
		*fail = after;
		status = apply(&table, &m, copy, n);
		*fail = -1;
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		check_table(&table, &m, kind);
		table.reclaim(&change, UINT64_MAX);
	}
	free(m.e);
	drop(&table);
}

#define POPULAR 50      /* keys that have many rows ... */
#define POPULAR_ROWS 40 /* ... so many */

/* Operations on rows of popular keys, from number first on. */
static void
popular_rows(GpudsOp *ops, int64_t first, int64_t n, int nwords, uint64_t order)
{
	for (int64_t i = 0; i < n; i++)
	{
		int64_t k = (first + i) / POPULAR_ROWS;

		ops[i].e = { (uint64_t) k * 7919, nwords == 2 ? (uint64_t) k << 40 : 0,
					 (uint64_t) ((first + i) % POPULAR_ROWS) << 16 | 1 };
		ops[i].order = order;
	}
}

/* Inserts rows of keys that have no other, from number first on. */
static void
single_rows(GpudsOp *ops, int64_t first, int64_t n, int nwords)
{
	for (int64_t i = 0; i < n; i++)
	{
		ops[i].e = { (uint64_t) (first + i) * 104729 + 3, nwords == 2 ? (uint64_t) i : 0, 77 };
		ops[i].order = (uint64_t) i << 1;
	}
}

/* Keys with many rows fill buckets of a small table; when it has grown, they are alone in the tree. */
static void
test_popular(int nwords, bool fails)
{
	static GpudsOp ops[MOST];
	static GpudsOp copy[MOST];
	const int64_t rows = (int64_t) POPULAR * POPULAR_ROWS;
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	Held held = {};
	Model m;

	model_init(&m, 0);
	CHECK(load(&table, &m, nwords, 90) == GPU_OK);
	for (int64_t first = 0; first < rows; first += POPULAR_ROWS)
	{
		popular_rows(ops, first, POPULAR_ROWS, nwords, GPUDS_OP_INSERT);
		CHECK(apply(&table, &m, ops, POPULAR_ROWS) == GPU_OK);
	}
	check_table(&table, &m, KEYS_DENSE);
	CHECK(table.tree.overflow.tree.entries == (uint64_t) rows);
	hold(&held, &table, &m);
	for (int64_t first = 0; first < 10 * MOST; first += MOST)
	{
		GpuStatus status = GPU_NO_MEMORY;

		single_rows(ops, first, MOST, nwords);
		for (int64_t after = 0; status != GPU_OK; after++)
		{
			memcpy(copy, ops, sizeof(ops));
			pool.fail_after = fails ? after : -1;
			status = apply(&table, &m, copy, MOST);
			pool.fail_after = -1;
			CHECK(status == GPU_OK || (fails && status == GPU_NO_MEMORY));
			table.reclaim(&change, held.version);
			if (fails)
				verify(&table);
		}
		check_view(&table, &held.view, &held.model, KEYS_DENSE);
	}
	check_table(&table, &m, KEYS_DENSE);
	/* one or two others for each that share its bucket */
	CHECK(table.tree.overflow.tree.entries >= (uint64_t) rows);
	CHECK(table.tree.overflow.tree.entries < (uint64_t) rows + POPULAR * 8);
	free(held.model.e);
	free(m.e);
	drop(&table);
}

/* Many rows of a key are deleted: the overflow tree gives memory back, but not what is still read. */
static void
test_compact(int nwords)
{
	static GpudsOp ops[MOST];
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	const int64_t rows = 60 * MOST;
	Held held = {};
	uint64_t bytes;
	Model m;

	model_init(&m, 0);
	CHECK(load(&table, &m, nwords, 90) == GPU_OK);
	for (uint64_t order = GPUDS_OP_INSERT; order <= GPUDS_OP_DELETE; order++)
	{
		for (int64_t first = 0; first < rows; first += MOST)
		{
			for (int64_t i = 0; i < MOST; i++)
				ops[i] = { { 42, 0, (uint64_t) (first + i) << 16 | 1 }, order };
			/* some stay */
			CHECK(apply(&table, &m, ops, order == GPUDS_OP_INSERT ? MOST : MOST - 5) == GPU_OK);
			table.reclaim(&change, UINT64_MAX);
		}
		verify(&table);
	}
	check_table(&table, &m, KEYS_ONE);
	CHECK(table.tree.overflow.tree.entries == (uint64_t) rows / MOST * 5);
	bytes = table.bytes();
	hold(&held, &table, &m);
	CHECK(table.compact(&change));
	check_table(&table, &m, KEYS_ONE);
	table.reclaim(&change, held.version);
	CHECK(table.bytes() > bytes);
	check_view(&table, &held.view, &held.model, KEYS_ONE);
	table.reclaim(&change, UINT64_MAX);
	CHECK(table.bytes() < bytes);
	check_table(&table, &m, KEYS_ONE);
	CHECK(!table.compact(&change));
	free(held.model.e);
	free(m.e);
	drop(&table);
}

/* The table would have more entries than there may be, by operations in lines and in the tree together. */
template <int nw>
static void
test_too_large(void)
{
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	GpudsOp ops[POPULAR_ROWS];
	int64_t inserted, deleted;
	uint64_t entries;
	GpuSpan span;
	Model m;

	model_init(&m, 0);
	CHECK(load(&table, &m, nw, 90) == GPU_OK);
	popular_rows(ops, 0, POPULAR_ROWS, nw, GPUDS_OP_INSERT);
	CHECK(apply(&table, &m, ops, POPULAR_ROWS) == GPU_OK);
	entries = table.tree.entries;
	CHECK(table.tree.overflow.tree.entries == entries);
	popular_rows(ops, 0, 1, nw, GPUDS_OP_INSERT);
	ops[0].e.t++;
	single_rows(ops + 1, 0, 1, nw);
	CHECK(gpu_span_take(&pool, &span, sizeof(ops)));
	gpu_copy_bus(&change.stream, span.at, ops, 2 * sizeof(GpudsOp));
	gpu_launch(&change.stream, 2, GpuHashHide{ NULL, (GpudsOp *) span.at });
	/* room for one, then for both; not by gpu_hash_apply, which would have a table of so many grow */
	table.tree.entries = GPU_MAX_ENTRIES - 1;
	CHECK(gpu_hash_apply_hidden<nw>(&change, &table.tree, (const GpudsOp *) span.at, 2, &inserted,
									&deleted) == GPU_TOO_LARGE);
	table.tree.entries = entries;
	check_table(&table, &m, KEYS_DENSE);
	table.tree.entries = GPU_MAX_ENTRIES - 2;
	CHECK(gpu_hash_apply_hidden<nw>(&change, &table.tree, (const GpudsOp *) span.at, 2, &inserted,
									&deleted) == GPU_OK);
	CHECK(inserted == 2 && deleted == 0 && table.tree.entries == GPU_MAX_ENTRIES);
	table.tree.entries = entries + 2;
	verify(&table);
	gpu_span_give(&pool, &span);
	free(m.e);
	drop(&table);
}

int
main(int argc, char **argv)
{
	bool small = argc > 1 && strcmp(argv[1], "small") == 0;
	int rounds = small ? 1 : argc > 1 ? atoi(argv[1]) : 3;
	GpuCard card;

	if (small)
		batches = SMALL_BATCHES;
	test_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	if (!open_card<HashOnGpu>(&card, (size_t) 11 * MOST * sizeof(GpudsOp)))
		return 1;
	test_all_kinds(rounds, small, test_random_changes, test_no_memory);
	for (int nwords = 1; nwords <= 2 && !small; nwords++)
	{
		test_popular(nwords, false);
		test_popular(nwords, true);
		test_compact(nwords);
	}
	test_too_large<1>();
	test_too_large<2>();
	close_card();
	printf("%s, %d passed, 0 failed\n", card.name, passed);
	return 0;
}
