/*-------------------------------------------------------------------------
 *
 * device_hash.h
 *	  Benchmark of the hash table on a GPU, part of bench/device: entries of one word in device
 *	  memory, in no order.
 *
 * Times of batches that change the table are the host's, from the call to its return.  An empty table
 * is made for each round of inserts, so they have it grow at once.  A mixed batch looks up three of five
 * keys, and then inserts and deletes one of five each; an untimed batch undoes that.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_HASH_H
#define BENCH_DEVICE_HASH_H

#include "bench/device_common.h"
#include "bench/device_change.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"

/* Entries of the table, which use 80 % of its slots; and a prime number that puts them in no order. */
#define BENCH_HASH_ENTRIES 46900000
#define BENCH_HASH_PRIME UINT64_C(2654435761)

/* Of five neighbours the fourth is deleted by a mixed batch, the fifth inserted. */
enum BenchHashBatch
{
	BENCH_HASH_ALL,   /* insert all */
	BENCH_HASH_FIRST, /* insert what is there before a mixed batch */
	BENCH_HASH_MIXED, /* insert and delete */
	BENCH_HASH_UNDO
};

/* Entries of each five that a batch is about, and the first of them. */
static inline int
bench_hash_share(BenchHashBatch batch)
{
	return batch == BENCH_HASH_ALL ? 5 : batch == BENCH_HASH_FIRST ? 4 : 2;
}

struct BenchHashOps
{
	BenchHashBatch batch;
	int share;
	int64_t n; /* operations */
	const uint64_t *w0;
	const uint64_t *t;
	GpudsOp *ops;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t at = (uint64_t) i * BENCH_HASH_PRIME % (uint64_t) n;
		uint64_t part = at % (uint64_t) share + (share == 2 ? 3 : 0);
		uint64_t from = at / (uint64_t) share * 5 + part;
		bool deletes = (batch == BENCH_HASH_MIXED && part == 3) || (batch == BENCH_HASH_UNDO && part == 4);

		ops[i].e.w0 = w0[from];
		ops[i].e.w1 = 0;
		ops[i].e.t = t[from];
		ops[i].order = (uint64_t) i << 1 | deletes;
	}
};

struct BenchHashFind
{
	HashOnGpu::Probe::View view;
	const uint64_t *probes;
	uint64_t *answers;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsInterval interval = { { probes[i], 0, 0 }, { probes[i], 0, UINT64_MAX } };
		uint64_t answer = GPU_NOT_FOUND;
		HashOnGpu::Probe::Position p;
		GpuStart start;

		if (HashOnGpu::Probe::locate(view, &interval, true, &start) > 0)
		{
			HashOnGpu::Probe::position(view, start, 0, true, &p);
			answer = HashOnGpu::Probe::tid(view, p);
		}
		answers[i] = answer;
	}
};

/* Looks up n probes. */
static inline void
bench_hash_find(GpuStream *s, const GpuPool *pool, const HashOnGpu *table, const uint64_t *probes,
				uint64_t *answers, int64_t n)
{
	GpudsView view;

	BENCH_CHECK(table->view(pool, &view));
	gpu_launch(s, n, BenchHashFind{ HashOnGpu::Probe::open(view), probes, answers });
}

/* Applies a batch about n entries, the operations of which are made first; seconds that it takes. */
static inline double
bench_hash_apply(Bench *b, HashOnGpu *table, BenchHashBatch batch, const uint64_t *w0, const uint64_t *t,
				 int64_t n, GpudsOp *ops, const uint64_t *probes, uint64_t *answers)
{
	const int share = bench_hash_share(batch);
	const int64_t m = n / 5 * share;
	GpuStream *s = &b->change.stream;
	int64_t inserted, deleted;
	double start;

	gpu_launch(s, m, BenchHashOps{ batch, share, m, w0, t, ops });
	BENCH_CHECK(gpu_finish(s));
	start = bench_change_now();
	if (batch == BENCH_HASH_MIXED)
		bench_hash_find(s, &b->pool, table, probes, answers, n / 5 * 3);
	BENCH_CHECK(gpu_hash_apply_there(&b->change, &table->tree, ops, NULL, m, &inserted, &deleted) == GPU_OK);
	start = bench_change_now() - start;
	BENCH_CHECK(inserted == (share == 2 ? n / 5 : m) && deleted == (share == 2 ? n / 5 : 0));
	table->reclaim(&b->change, UINT64_MAX);
	return start;
}

static inline void
bench_hash_check_table(Bench *b, HashOnGpu *table)
{
	char why[200];

	if (table->verify(&b->change, why, sizeof(why)) != GPU_OK)
	{
		fprintf(stderr, "hash table: %s\n", why);
		b->wrong++;
	}
}

static inline void
bench_hash_open(Bench *b, HashOnGpu *table)
{
	BENCH_CHECK(table->load_begin(&b->change, 1, 90) == GPU_OK && table->load_end(&b->change) == GPU_OK);
}

static inline void
bench_hash_drop(Bench *b, HashOnGpu *table)
{
	table->withdraw();
	BENCH_CHECK(table->drop(&b->change) == GPU_OK);
}

/*
 * All rows, of the first entries of a list that has at least five.  check compares the answers
 * of b->probes probes with the CPU's; without the entries of a list.
 */
template <typename Check>
static inline void
bench_hash(Bench *b, const uint64_t *w0, const uint64_t *t, int64_t n, const uint64_t *probes,
		   uint64_t *answers, const Check &check)
{
	const int64_t few = std::min<int64_t>(n, BENCH_HASH_ENTRIES) / 5 * 5;
	GpudsOp *ops = bench_alloc<GpudsOp>(few);
	HashOnGpu table(GPUDS_STRUCTURE_HASH);
	std::vector<char> gone((size_t) n, 0);
	std::vector<double> seconds;
	double ms;

	for (int64_t i = few; i < n; i++)
		gone[(size_t) i] = 1;
	for (int i = 0; i <= b->rounds; i++)
	{
		if (i > 0)
			bench_hash_drop(b, &table);
		bench_hash_open(b, &table);
		seconds.push_back(bench_hash_apply(b, &table, BENCH_HASH_ALL, w0, t, few, ops, NULL, NULL));
	}
	bench_hash_check_table(b, &table);
	bench_rate(b, "hash table: insert 47 M into an empty table", few, bench_median(seconds) * 1e3, 5, 0,
			   (uint64_t) few);
	ms = bench_time(b, [&] { bench_hash_find(&b->stream, &b->pool, &table, probes, answers, b->probes); });
	check(gone);
	bench_rate(b, "hash table: find, unsorted batch", b->probes, ms, 10, 0, (uint64_t) b->probes);
	bench_hash_drop(b, &table);
	bench_hash_open(b, &table);
	(void) bench_hash_apply(b, &table, BENCH_HASH_FIRST, w0, t, few, ops, NULL, NULL);
	seconds.clear();
	if (b->probes >= few / 5 * 3)
	{
		for (int i = 0; i <= b->rounds; i++)
		{
			if (i > 0)
				(void) bench_hash_apply(b, &table, BENCH_HASH_UNDO, w0, t, few, ops, NULL, NULL);
			seconds.push_back(
				bench_hash_apply(b, &table, BENCH_HASH_MIXED, w0, t, few, ops, probes, answers));
		}
		bench_hash_check_table(b, &table);
		for (int64_t i = 3; i < few; i += 5)
			gone[(size_t) i] = 1;
		bench_hash_find(&b->stream, &b->pool, &table, probes, answers, b->probes);
		check(gone);
		bench_rate(b, "hash table: 20 % insert, 20 % delete, 60 % find", few, bench_median(seconds) * 1e3, 3,
				   0, (uint64_t) b->probes);
	}
	bench_hash_drop(b, &table);
	bench_free(ops, few);
}

#endif /* BENCH_DEVICE_HASH_H */
