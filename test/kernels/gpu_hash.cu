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

#define MOST 3000 /* entries of a table, operations of a batch */
#define BATCHES 30
#define SMALL_BATCHES 1 /* under a sanitizer */
#define HELD 3          /* versions that are read beside the newest */

static GpuPool pool;
static GpuChange change;
static GpuScanStream stream;
static unsigned char *staging; /* of input and output of requests */
static unsigned char *device_staging;
static int batches = BATCHES;
static int passed;

#define OUTPUT_AT ((size_t) 11 * MOST * sizeof(GpudsOp))
#define STAGING_BYTES (2 * OUTPUT_AT)

/* A version that is pinned. */
struct Held
{
	uint64_t version; /* 0: none */
	GpudsView view;
	Model model;
};

static void
verify(HashOnGpu *table)
{
	char why[200];

	if (table->verify(&change, why, sizeof(why)) != GPU_OK)
	{
		fprintf(stderr, "verify: %s %s\n", why, change.stream.why);
		exit(1);
	}
}

/* Does a scan of an interval return what the model has? */
static void
check_interval(const HashOnGpu *table, const GpudsView *view, const Model *m, const GpudsInterval *interval,
			   bool forward, int64_t cap)
{
	const GpudsEntry *out = (const GpudsEntry *) (staging + OUTPUT_AT);
	int64_t from = model_rank(m, &interval->lo);
	int64_t to = model_rank(m, &interval->hi);
	int64_t done = 0;
	GpuRequest r;

	if (to < m->n && entry_equal(&m->e[to], &interval->hi))
		to++;
	memset((void *) &r, 0, sizeof(r));
	memcpy(staging, interval, sizeof(*interval));
	r.kind = GPU_SCAN;
	r.forward = forward;
	r.output = OUTPUT_AT;
	r.n = 1;
	r.next = forward ? 0 : 1;
	r.cap = cap;
	do
	{
		CHECK(table->scan(&stream, view, staging, device_staging, &r) == GPU_OK);
		CHECK(r.found <= cap && done + r.found <= to - from);
		for (int64_t i = 0; i < r.found; i++)
			CHECK(entry_equal(&out[i], &m->e[forward ? from + done + i : to - 1 - done - i]));
		done += r.found;
	} while (r.found == cap);
	CHECK(done == to - from);
	passed++;
}

/* Is what readers of a view see the model? */
static void
check_view(const HashOnGpu *table, const GpudsView *view, const Model *m, int kind)
{
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };

	if (view->nwords == 1)
		all.hi.w1 = 0;
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

static GpuStatus
load(HashOnGpu *table, const Model *m, int nwords)
{
	GpuStatus status = table->load_begin(&change, (uint32_t) nwords, 90);

	for (int64_t i = 0; i < m->n && status == GPU_OK;)
	{
		int64_t n = 1 + (int64_t) test_below((uint64_t) (m->n - i));

		memcpy(staging, m->e + i, (size_t) n * sizeof(GpudsEntry));
		status = table->load_add(&change, (const GpudsEntry *) staging, n);
		i += n;
	}
	return status == GPU_OK ? table->load_end(&change) : status;
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
copy_model(Model *to, const Model *from)
{
	model_init(to, from->n);
	memcpy(to->e, from->e, (size_t) from->n * sizeof(GpudsEntry));
	to->n = from->n;
}

/* Applies to both; status of the device's. */
static GpuStatus
apply(HashOnGpu *table, Model *m, GpudsOp *ops, int64_t n)
{
	static GpudsOp scratch[MOST];
	int64_t inserted, deleted, there_inserted, there_deleted;
	GpuStatus status;

	memcpy(staging, ops, (size_t) n * sizeof(GpudsOp));
	status = table->apply(&change, (const GpudsOp *) staging, (const GpudsOp *) device_staging, n,
						  &there_inserted, &there_deleted);
	if (status != GPU_OK)
		return status;
	sort_ops(ops, scratch, n);
	n = sort_last_ops(ops, n);
	model_apply(m, ops, n, &inserted, &deleted);
	CHECK(inserted == there_inserted);
	CHECK(deleted == there_deleted);
	return status;
}

static void
drop(HashOnGpu *table)
{
	table->withdraw();
	CHECK(table->drop(&change) == GPU_OK);
	CHECK(table->bytes() == 0);
	CHECK(gpu_pool_used(&pool) == 0);
}

static void
hold(Held *held, const HashOnGpu *table, const Model *m)
{
	held->version = *table->version();
	CHECK(table->view(&pool, &held->view));
	copy_model(&held->model, m);
}

static void
test_random_changes(int kind, int nwords)
{
	static GpudsOp ops[MOST];
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	Held held[HELD] = {};
	Model m;

	model_fill(&m, (int64_t) test_below(MOST), kind, nwords, 2 * MOST);
	CHECK(load(&table, &m, nwords) == GPU_OK);
	check_table(&table, &m, kind);
	for (int i = 0; i < batches; i++)
	{
		Held *h = &held[test_below(HELD)];
		uint64_t oldest = UINT64_MAX;

		if (h->version != 0)
		{
			check_view(&table, &h->view, &h->model, kind);
			free(h->model.e);
		}
		hold(h, &table, &m);
		for (int k = 0; k < HELD; k++)
			oldest = held[k].version != 0 && held[k].version < oldest ? held[k].version : oldest;
		table.reclaim(&change, oldest);
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
	for (int64_t after = 0; status != GPU_OK; after++)
	{
		*fail = after;
		status = load(&table, &m, nwords);
		*fail = -1;
		CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
		if (status != GPU_OK)
		{
			CHECK(table.drop(&change) == GPU_OK);
			CHECK(gpu_pool_used(&pool) == 0);
		}
	}
	check_table(&table, &m, kind);
	n = make_batch(ops, &m, kind, nwords);
	status = GPU_NO_MEMORY;
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
	CHECK(load(&table, &m, nwords) == GPU_OK);
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
	CHECK(load(&table, &m, nwords) == GPU_OK);
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
	CHECK(load(&table, &m, nw) == GPU_OK);
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
	char why[200];

	if (small)
		batches = SMALL_BATCHES;
	test_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	gpu_load_all();
	if (!gpu_card(0, &card, why, sizeof(why)))
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	staging = (unsigned char *) gpu_host_alloc(STAGING_BYTES);
	CHECK(gpu_use(0) && gpu_pool_open(&pool, (size_t) 512 << 20) && staging != NULL);
	CHECK(gpu_change_open(&change, &pool, HashOnGpu::change_needs().report_bytes,
						  HashOnGpu::change_needs().memory_bytes));
	CHECK(gpu_scan_stream_open(&stream, OUTPUT_AT));
	device_staging = (unsigned char *) gpu_device_address(staging);
	for (int round = 0; round < rounds; round++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			for (int nwords = 1; nwords <= 2; nwords++)
			{
				test_random_changes(kind, nwords);
				if (round == 0 && !small)
				{
					test_no_memory(kind, nwords, &pool.fail_after);
					test_no_memory(kind, nwords, &pool.fail_list);
				}
			}
		}
	}
	for (int nwords = 1; nwords <= 2 && !small; nwords++)
	{
		test_popular(nwords, false);
		test_popular(nwords, true);
		test_compact(nwords);
	}
	test_too_large<1>();
	test_too_large<2>();
	gpu_scan_stream_close(&stream);
	gpu_change_close(&change);
	gpu_pool_close(&pool);
	gpu_host_free(staging);
	printf("%s, %d passed, 0 failed\n", card.name, passed);
	return 0;
}
