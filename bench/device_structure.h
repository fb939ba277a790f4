/*-------------------------------------------------------------------------
 *
 * device_structure.h
 *	  Benchmark of a structure on a GPU beside the B+tree, part of bench/device: entries of one word.
 *
 * Lookups are points in no order, in device memory, by a thread each through the structure's probe, as scans
 * do, and by tiles if the structure has that.
 * Times of batches that change the structure are the host's, from the call to its return; large ones are in
 * device memory, in no order, small ones in host memory.  Each is undone, untimed.  A mixed batch looks up
 * eight of ten keys, then inserts and deletes one of ten each.
 *
 * A structure's class T has these functions:
 *
 *	  bench_lookups(stream, pool, const T *, probes, answers, n, tiles)
 *					the lowest t of each key, or GPU_NOT_FOUND
 *	  int64_t bench_apply_there(Bench *, T *, ops, n)
 *					applies operations in device memory; how many have changed something
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_STRUCTURE_H
#define BENCH_DEVICE_STRUCTURE_H

#include "bench/batch.h"
#include "bench/device_common.h"
#include "bench/device_change.h"

/* Entries of the smaller trees. */
#define BENCH_FEW 10000000

/* Puts the operations of a batch in no order. */
#define BENCH_PRIME UINT64_C(2654435761)

#define BENCH_SMALL_BATCHES 300

/* A structure, and targets of its rows; 0: there is none. */
struct BenchStructure
{
	const char *name;
	uint32_t number;
	bool tiles;   /* has lookups by tiles */
	double all;   /* lookups in all entries, G/s */
	double few;   /* in ten million */
	double small; /* microseconds of 1,000 operations */
	double mixed; /* G/s */
	double inserts;
};

/* The lowest t of a key by one thread: what scans do. */
template <class Probe>
GPU_FN uint64_t
bench_structure_find(const typename Probe::View &view, uint64_t x)
{
	GpudsInterval interval = { { x, 0, 0 }, { x, 0, UINT64_MAX } };
	typename Probe::Position p;
	GpuStart start;

	if (Probe::locate(view, &interval, true, &start) == 0)
		return GPU_NOT_FOUND;
	Probe::position(view, start, 0, true, &p);
	return Probe::tid(view, p);
}

template <class Probe> struct BenchThreads
{
	typename Probe::View view;
	const uint64_t *probes;
	uint64_t *answers;

	GPU_FN void operator()(int64_t i) const
	{
		answers[i] = bench_structure_find<Probe>(view, probes[i]);
	}
};

/* Which entries of each so many neighbours a tree or a batch has: those from .. to - 1. */
struct BenchShare
{
	int of;
	int from;
	int to;
};

/* Operations on entries of a share, in no order. */
struct BenchOps
{
	BenchShare share;
	uint64_t deletes; /* place among the neighbours of those that are deleted; UINT64_MAX: none is */
	int64_t n;        /* operations */
	const uint64_t *w0;
	const uint64_t *t;
	GpudsOp *ops;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t at = (uint64_t) i * BENCH_PRIME % (uint64_t) n;
		uint64_t width = (uint64_t) (share.to - share.from);
		uint64_t place = at % width + (uint64_t) share.from;
		uint64_t entry = at / width * (uint64_t) share.of + place;

		ops[i].e = { w0[entry], 0, t[entry] };
		ops[i].order = (uint64_t) i << 1 | (place == deletes);
	}
};

/* A tree of a share of the first n entries, filled to 90 %. */
template <class T>
static inline void
bench_structure_load(Bench *b, T *tree, const BenchShare &share, const uint64_t *w0, const uint64_t *t,
					 int64_t n)
{
	const int64_t piece = 1 << 20;
	GpudsEntry *buffer = (GpudsEntry *) gpu_host_alloc((size_t) piece * sizeof(GpudsEntry));
	int64_t kept = 0;

	BENCH_CHECK(buffer != NULL && tree->load_begin(&b->change, 1, 90) == GPU_OK);
	for (int64_t i = 0; i < n; i++)
	{
		int64_t place = i % share.of;

		if (place >= share.from && place < share.to)
			buffer[kept++] = { w0[i], 0, t[i] };
		if (kept == piece || i == n - 1)
		{
			BENCH_CHECK(tree->load_add(&b->change, buffer, kept) == GPU_OK);
			kept = 0;
		}
	}
	BENCH_CHECK(tree->load_end(&b->change) == GPU_OK);
	gpu_host_free(buffer);
}

template <class T>
static inline void
bench_structure_drop(Bench *b, T *tree)
{
	char why[200];

	if (tree->verify(&b->change, why, sizeof(why)) != GPU_OK)
	{
		fprintf(stderr, "verify: %s %s\n", why, b->change.stream.why);
		b->wrong++;
	}
	tree->withdraw();
	BENCH_CHECK(tree->drop(&b->change) == GPU_OK);
}

/* Seconds that a batch in device memory takes, after lookups that belong to it. */
template <class T>
static inline double
bench_structure_apply(Bench *b, T *tree, const BenchOps &batch, const uint64_t *probes, uint64_t *answers,
					  int64_t lookups)
{
	GpuStream *s = &b->change.stream;
	int64_t changed;
	double start;

	gpu_launch(s, batch.n, batch);
	BENCH_CHECK(gpu_finish(s));
	start = bench_change_now();
	if (lookups > 0)
		bench_lookups(s, &b->pool, tree, probes, answers, lookups, true);
	changed = bench_apply_there(b, tree, batch.ops, batch.n);
	start = bench_change_now() - start;
	BENCH_CHECK(changed == batch.n);
	tree->reclaim(&b->change, UINT64_MAX);
	return start;
}

/* Lookups in a tree of the first n entries. */
template <class T, typename MakeProbes, typename Check>
static inline void
bench_structure_points(Bench *b, const BenchStructure &is, T *tree, int64_t n, const char *size,
					   double target, const uint64_t *probes, uint64_t *answers,
					   const MakeProbes &make_probes, const Check &check)
{
	for (int tiles = is.tiles; tiles >= 0; tiles--)
	{
		double ms;

		make_probes(n);
		gpu_fill(&b->stream, answers, 0xA5, (size_t) b->probes * sizeof(uint64_t));
		ms = bench_time(b, [&]
						{ bench_lookups(&b->stream, &b->pool, tree, probes, answers, b->probes, tiles); });
		check(std::vector<char>());
		bench_rate(b,
				   std::string(is.name) + ": lookup, " + size +
					   (tiles ? ", unsorted batch" : ", a thread a probe"),
				   b->probes, ms, tiles == is.tiles ? target : 0, 0, (uint64_t) b->probes);
	}
}

/* Batches of n operations in host memory: three of four insert new keys, the others delete. */
template <class T>
static inline void
bench_structure_small(Bench *b, const BenchStructure &is, T *tree, const uint64_t *w0, const uint64_t *t,
					  int64_t entries, int n, double target)
{
	GpudsOp *ops = (GpudsOp *) gpu_host_alloc((size_t) n * sizeof(GpudsOp));
	const GpudsOp *there = ops != NULL ? (const GpudsOp *) gpu_device_address(ops) : NULL;
	std::mt19937_64 random(b->seed + (uint64_t) n);
	uint64_t will = tree->tree.entries;
	std::vector<double> seconds;

	BENCH_CHECK(there != NULL);
	for (int batch = 0; batch < BENCH_SMALL_BATCHES; batch++)
	{
		int64_t inserted, deleted;
		double start;

		for (int i = 0; i < n; i++)
		{
			size_t pick = random() % (uint64_t) entries;

			ops[i].e = { random(), 0, 1 };
			if (i % 4 == 3)
				ops[i].e = { w0[pick], 0, t[pick] };
			ops[i].order = (uint64_t) i << 1 | (i % 4 == 3);
		}
		start = bench_change_now();
		BENCH_CHECK(tree->apply(&b->change, ops, there, n, &inserted, &deleted) == GPU_OK);
		seconds.push_back(bench_change_now() - start);
		will += (uint64_t) (inserted - deleted);
		tree->reclaim(&b->change, UINT64_MAX);
	}
	BENCH_CHECK(will == tree->tree.entries);
	bench_row(b, { std::string(is.name) + ": apply " + std::to_string(n) +
					   (n == 1 ? " operation" : " operations"),
				   bench_median(seconds) * 1e6, "us", target, true, 0, 0, 0 });
	gpu_host_free(ops);
}

/* A large batch on a tree of ten million entries, and what undoes it; NULL: a load. */
template <class T>
static inline void
bench_structure_batch(Bench *b, const BenchStructure &is, T *tree, const char *work, double target,
					  const BenchShare &loaded, const BenchOps &batch, const BenchOps *undo, int64_t lookups,
					  const uint64_t *host_w0, const uint64_t *host_t, const uint64_t *probes,
					  uint64_t *answers)
{
	const int64_t neighbours = batch.n / (batch.share.to - batch.share.from);
	std::vector<double> seconds;

	for (int i = 0; i <= b->rounds; i++)
	{
		double took;

		if (i == 0)
			bench_structure_load(b, tree, loaded, host_w0, host_t, neighbours * loaded.of);
		took = bench_structure_apply(b, tree, batch, probes, answers, lookups);
		if (i > 0)
			seconds.push_back(took);
		if (undo == NULL)
		{
			/* one that was loaded has other nodes than one that entries were deleted of */
			bench_structure_drop(b, tree);
			bench_structure_load(b, tree, loaded, host_w0, host_t, neighbours * loaded.of);
		}
		else
			(void) bench_structure_apply(b, tree, *undo, probes, answers, 0);
	}
	bench_rate(b, std::string(is.name) + work, batch.n + lookups, bench_median(seconds) * 1e3, target, 0,
			   (uint64_t) batch.n);
	bench_structure_drop(b, tree);
}

/*
 * All rows, of n entries, which the host has, too.  make_probes makes probes that hit the first so many
 * entries; check compares the answers with the CPU's.
 */
template <class T, typename MakeProbes, typename Check>
static inline void
bench_structure(Bench *b, const BenchStructure &is, const uint64_t *w0, const uint64_t *t,
				const uint64_t *host_w0, const uint64_t *host_t, int64_t n, const uint64_t *probes,
				uint64_t *answers, const MakeProbes &make_probes, const Check &check)
{
	const int64_t few = std::min<int64_t>(n / 2, BENCH_FEW);
	GpudsOp *ops = bench_alloc<GpudsOp>(few);
	T tree(is.number);
	const int64_t tens = few / 11;

	bench_structure_load(b, &tree, { 1, 0, 1 }, host_w0, host_t, n);
	bench_row(b, { std::string(is.name) + ": device memory an entry", (double) tree.bytes() / (double) n,
				   "bytes", 0, true, 0, 0, 0 });
	bench_structure_points(b, is, &tree, n, "all entries", is.all, probes, answers, make_probes, check);
	bench_structure_small(b, is, &tree, host_w0, host_t, n, 1, 0);
	bench_structure_small(b, is, &tree, host_w0, host_t, n, 100, 0);
	bench_structure_small(b, is, &tree, host_w0, host_t, n, 1000, is.small);
	bench_structure_drop(b, &tree);
	bench_structure_load(b, &tree, { 1, 0, 1 }, host_w0, host_t, few);
	bench_structure_points(b, is, &tree, few, "10 M", is.few, probes, answers, make_probes, check);
	bench_structure_drop(b, &tree);
	/* of eleven neighbours the tenth is deleted, the last inserted */
	const BenchOps mixed = { { 11, 9, 11 }, 9, 2 * tens, w0, t, ops };
	const BenchOps undo = { { 11, 9, 11 }, 10, 2 * tens, w0, t, ops };
	const BenchOps inserts = { { 2, 1, 2 }, UINT64_MAX, few, w0, t, ops };

	make_probes(few);
	bench_structure_batch(b, is, &tree, ": 10 % insert, 10 % delete, 80 % lookup, 10 M", is.mixed,
						  { 11, 0, 10 }, mixed, &undo, std::min(8 * tens, b->probes), host_w0, host_t, probes,
						  answers);
	bench_structure_batch(b, is, &tree, ": insert 10 M into 10 M", is.inserts, { 2, 0, 1 }, inserts, NULL, 0,
						  host_w0, host_t, probes, answers);
	bench_free(ops, few);
}

#endif /* BENCH_DEVICE_STRUCTURE_H */
