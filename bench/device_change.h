/*-------------------------------------------------------------------------
 *
 * device_change.h
 *	  Benchmark of building and changing a tree on a GPU, part of bench/device.
 *
 * Keys are random 64-bit numbers; t ascends in input order, as TIDs of a table do.
 * Each tree is compared in the end with a sorted array that the CPU has made.
 * Times are the host's medians, from the call to its return.  The input is in
 * device memory; that of small batches is in host memory.
 *
 * The extension builds by loading sorted pieces and applies batches from host
 * memory; "bulk build from unsorted" (build_unsorted.h) and the large batches, which
 * are in device memory already, show what the device could do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_CHANGE_H
#define BENCH_DEVICE_CHANGE_H

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "bench/build_unsorted.h"
#include "kernels/btree/btree_structure_gpu.h"
#include "kernels/btree/btree_probe.h"

/* Adds a line to the result; verified: the tree was what the CPU says. */
typedef void (*BenchChangeRow)(const char *work, double value, const char *unit, double to_reach,
							   bool verified);

struct BenchChange
{
	GpuPool *pool;
	GpuChange change;
	BenchChangeRow row;
	std::mt19937_64 random;
	std::vector<GpudsEntry> unsorted; /* as they go into the tree */
	std::vector<GpudsEntry> sorted;
	uint64_t *device_words; /* w0, then t */
	uint64_t next_t;
};

static inline double
bench_change_now(void)
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static inline double
bench_change_median(std::vector<double> &times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

static inline bool
bench_change_less(const GpudsEntry &a, const GpudsEntry &b)
{
	return entry_less(&a, &b);
}

/* Sort on all cores. */
static inline void
bench_change_sort(std::vector<GpudsEntry> *entries)
{
	size_t n = entries->size();
	size_t parts = 16;
	GpudsEntry *e = entries->data();
	std::vector<std::thread> threads;

	for (size_t i = 0; i < parts; i++)
		threads.emplace_back([=]
							 { std::sort(e + n * i / parts, e + n * (i + 1) / parts, bench_change_less); });
	for (std::thread &thread : threads)
		thread.join();
	for (; parts > 1; parts /= 2)
	{
		threads.clear();
		for (size_t i = 0; i < parts; i += 2)
			threads.emplace_back(
				[=]
				{
					std::inplace_merge(e + n * i / parts, e + n * (i + 1) / parts, e + n * (i + 2) / parts,
									   bench_change_less);
				});
		for (std::thread &thread : threads)
			thread.join();
	}
}

static inline GpudsEntry
bench_change_entry(BenchChange *b)
{
	GpudsEntry e = { b->random(), 0, b->next_t++ << 16 | 1 };

	return e;
}

/* The entry of each rank. */
struct BenchChangeRead
{
	GpudsView view;
	GpudsEntry *out;
	int64_t first;

	GPU_FN void operator()(int64_t i) const
	{
		BtreePosition p;

		btree_select(&view, (uint64_t) (first + i), &p);
		out[i] = btree_leaf_entry(btree_node(view.base, p.leaf), p.place, view.nwords);
	}
};

/* Is the tree what the CPU says? */
static inline bool
bench_change_verify(BenchChange *b, const GpuTree *tree)
{
	const int64_t piece = 1 << 22;
	int64_t n = (int64_t) b->sorted.size();
	GpudsEntry *host = (GpudsEntry *) gpu_host_alloc((size_t) piece * sizeof(GpudsEntry));
	GpudsEntry *device = (GpudsEntry *) gpu_alloc((size_t) piece * sizeof(GpudsEntry));
	bool same = host != NULL && device != NULL;
	GpudsView view;

	same = same && gpu_tree_view(tree, b->pool, &view) && view.entries == (uint64_t) n;
	for (int64_t first = 0; first < n && same; first += piece)
	{
		int64_t k = n - first < piece ? n - first : piece;

		gpu_launch(&b->change.stream, k, BenchChangeRead{ view, device, first });
		gpu_copy_bus(&b->change.stream, host, device, (size_t) k * sizeof(GpudsEntry));
		same = gpu_finish(&b->change.stream) &&
			   memcmp(host, &b->sorted[(size_t) first], (size_t) k * sizeof(GpudsEntry)) == 0;
	}
	gpu_free(device, (size_t) piece * sizeof(GpudsEntry));
	gpu_host_free(host);
	return same;
}

static inline bool
bench_change_build(BenchChange *b, GpuTree *tree)
{
	int64_t n = (int64_t) b->unsorted.size();

	if (tree->nwords != 0)
	{
		gpu_tree_withdraw(tree);
		gpu_tree_drop(&b->change, tree);
	}
	return bench_build_unsorted(&b->change, tree, b->device_words, NULL, b->device_words + n, n, 90) ==
		   GPU_OK;
}

static inline bool
bench_change_builds(BenchChange *b, GpuTree *tree)
{
	size_t n = b->unsorted.size();
	std::vector<uint64_t> words(2 * n);
	std::vector<double> times;
	bool same;

	for (size_t i = 0; i < n; i++)
	{
		words[i] = b->unsorted[i].w0;
		words[n + i] = b->unsorted[i].t;
	}
	b->device_words = (uint64_t *) gpu_alloc(2 * n * sizeof(uint64_t));
	if (b->device_words == NULL)
		return false;
	gpu_copy_bus(&b->change.stream, b->device_words, words.data(), 2 * n * sizeof(uint64_t));
	gpu_finish(&b->change.stream);
	for (int i = 0; i < 6; i++)
	{
		double start;

		if (tree->nwords != 0)
		{
			gpu_tree_withdraw(tree);
			gpu_tree_drop(&b->change, tree);
		}
		start = bench_change_now();
		if (!bench_change_build(b, tree))
			return false;
		if (i > 0)
			times.push_back(bench_change_now() - start);
	}
	same = bench_change_verify(b, tree);
	b->row("bulk build from unsorted", bench_change_median(times) * 1e3, "ms", 25, same);
	b->row("device memory an entry", (double) gpu_tree_bytes(tree) / (double) n, "bytes", 24, same);
	return same;
}

/* Adds new entries to the sorted array and takes others out, both sorted. */
static inline void
bench_change_model(BenchChange *b, const std::vector<GpudsEntry> &come, const std::vector<GpudsEntry> &go)
{
	std::vector<GpudsEntry> left;
	std::vector<GpudsEntry> all;

	left.reserve(b->sorted.size());
	std::set_difference(b->sorted.begin(), b->sorted.end(), go.begin(), go.end(), std::back_inserter(left),
						bench_change_less);
	all.resize(left.size() + come.size());
	std::merge(left.begin(), left.end(), come.begin(), come.end(), all.begin(), bench_change_less);
	b->sorted.swap(all);
}

/* One large batch, a few times, each time on the tree as built. */
static inline bool
bench_change_large(BenchChange *b, GpuTree *tree, const char *work, size_t n, int delete_percent,
				   double to_reach)
{
	std::vector<GpudsEntry> before = b->sorted;
	std::vector<GpudsEntry> come;
	std::vector<GpudsEntry> go;
	std::vector<GpudsOp> ops(n);
	std::vector<double> times;
	GpudsOp *device = (GpudsOp *) gpu_alloc(n * sizeof(GpudsOp));
	bool same = device != NULL;

	for (size_t i = 0; i < n; i++)
	{
		bool deletes = b->random() % 100 < (uint64_t) delete_percent;

		ops[i].order = (uint64_t) i << 1 | deletes;
		if (deletes)
		{
			ops[i].e = b->sorted[b->random() % b->sorted.size()];
			go.push_back(ops[i].e);
		}
		else
		{
			ops[i].e = bench_change_entry(b);
			come.push_back(ops[i].e);
		}
	}
	bench_change_sort(&come);
	bench_change_sort(&go);
	gpu_copy_bus(&b->change.stream, device, ops.data(), n * sizeof(GpudsOp));
	same = same && gpu_finish(&b->change.stream);
	for (int i = 0; i < 6 && same; i++)
	{
		int64_t inserted, deleted;
		double start;

		same = bench_change_build(b, tree);
		start = bench_change_now();
		same = same &&
			   gpu_btree_apply_large(&b->change, tree, device, (int64_t) n, &inserted, &deleted) == GPU_OK;
		if (i > 0)
			times.push_back(bench_change_now() - start);
	}
	if (same)
	{
		bench_change_model(b, come, go);
		same = bench_change_verify(b, tree);
		b->row(work, (double) n / bench_change_median(times) / 1e9, "G/s", to_reach, same);
	}
	b->sorted.swap(before);
	gpu_free(device, n * sizeof(GpudsOp));
	return same;
}

/* Many small batches, one after the other. */
static inline bool
bench_change_small(BenchChange *b, GpuTree *tree, const char *work, size_t n, size_t batches, double to_reach)
{
	std::vector<GpudsEntry> before = b->sorted;
	std::vector<GpudsEntry> come;
	std::vector<GpudsEntry> go;
	std::vector<double> times;
	GpudsOp *ops = (GpudsOp *) gpu_host_alloc(n * sizeof(GpudsOp));
	const GpudsOp *there = ops != NULL ? (const GpudsOp *) gpu_device_address(ops) : NULL;
	bool same = there != NULL && bench_change_build(b, tree);

	for (size_t batch = 0; batch < batches && same; batch++)
	{
		int64_t inserted, deleted;
		double start;

		for (size_t i = 0; i < n; i++)
		{
			bool deletes = i % 4 == 3;

			ops[i].order = (uint64_t) i << 1 | deletes;
			if (deletes)
			{
				ops[i].e = b->sorted[b->random() % b->sorted.size()];
				go.push_back(ops[i].e);
			}
			else
			{
				ops[i].e = bench_change_entry(b);
				come.push_back(ops[i].e);
			}
		}
		start = bench_change_now();
		same = gpu_btree_apply(&b->change, tree, ops, there, (int64_t) n, &inserted, &deleted) == GPU_OK;
		times.push_back(bench_change_now() - start);
		gpu_tree_reclaim(&b->change, tree, UINT64_MAX);
	}
	if (same)
	{
		bench_change_sort(&come);
		bench_change_sort(&go);
		bench_change_model(b, come, go);
		same = bench_change_verify(b, tree);
		b->row(work, bench_change_median(times) * 1e6, "us", to_reach, same);
	}
	b->sorted.swap(before);
	gpu_host_free(ops);
	return same;
}

/* All rows for a tree of n entries; false: a result was wrong, or something failed. */
static inline bool
bench_change(GpuPool *pool, int64_t n, uint64_t seed, BenchChangeRow row)
{
	BenchChange *b = new BenchChange();
	GpuTree tree;
	bool same;

	b->pool = pool;
	b->row = row;
	b->random.seed(seed);
	b->next_t = 1;
	if (!gpu_btree_change_open(&b->change, pool))
		return false;
	b->unsorted.reserve((size_t) n);
	for (int64_t i = 0; i < n; i++)
		b->unsorted.push_back(bench_change_entry(b));
	b->sorted = b->unsorted;
	bench_change_sort(&b->sorted);
	same = bench_change_builds(b, &tree);
	same = same && bench_change_large(b, &tree, "apply 10 M random inserts", (size_t) n / 10, 0, 2);
	same = same && bench_change_large(b, &tree, "apply 1 M mixed", (size_t) n / 100, 50, 0.7);
	same = same && bench_change_small(b, &tree, "apply 1 operation", 1, 2000, 20);
	same = same && bench_change_small(b, &tree, "apply 100 operations", 100, 1000, 25);
	same = same && bench_change_small(b, &tree, "apply 1,000 operations", 1000, 500, 40);
	if (!gpu_ok(&b->change.stream))
		fprintf(stderr, "%s\n", b->change.stream.why);
	gpu_tree_withdraw(&tree);
	gpu_tree_drop(&b->change, &tree);
	gpu_free(b->device_words, 2 * (size_t) n * sizeof(uint64_t));
	gpu_change_close(&b->change);
	delete b;
	return same;
}

#endif /* BENCH_DEVICE_CHANGE_H */
