/*-------------------------------------------------------------------------
 *
 * device_common.h
 *	  What the parts of bench/device.cu share: random entries that host and
 *	  device can make alike, timing, and the rows of the result.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "kernels/btree/btree_structure_gpu.h"

/* A line of the result. */
struct BenchRow
{
	std::string work;
	double value;
	std::string unit;
	double target;    /* 0: none */
	bool at_most;     /* of the target: a bound from above */
	double ms;        /* one run, median; 0: not a time */
	double bytes;     /* that one run must move at least: each line read once a probe, input, output */
	uint64_t checked; /* answers compared with the CPU's */
};

struct Bench
{
	int64_t entries;
	int64_t probes;
	int rounds;
	uint64_t seed;
	GpuCard card;
	GpuStream stream;
	GpuEvent start;
	GpuEvent stop;
	GpuPool pool;
	GpuChange change;
	std::vector<BenchRow> rows;
	uint64_t wrong; /* answers that were not the CPU's */
};

#define BENCH_CHECK(condition)                                              \
	do                                                                      \
	{                                                                       \
		if (!(condition))                                                   \
		{                                                                   \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                        \
		}                                                                   \
	} while (0)

/* Random numbers: number i of a series, no two alike within one. */
KERNEL_FN uint64_t
bench_random(uint64_t series, uint64_t i)
{
	uint64_t z = series * UINT64_C(0xD1342543DE82EF95) + i * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Calls f(i) on the host for i from 0 to n - 1, by all processors. */
template <typename F>
static inline void
bench_parallel(int64_t n, const F &f)
{
	int threads = (int) std::thread::hardware_concurrency();
	std::vector<std::thread> pool;

	threads = threads < 1 ? 1 : threads;
	for (int t = 0; t < threads; t++)
	{
		pool.emplace_back(
			[&, t]
			{
				for (int64_t i = n * t / threads; i < n * (t + 1) / threads; i++)
					f(i);
			});
	}
	for (std::thread &thread : pool)
		thread.join();
}

/* Device memory of n items. */
template <typename T>
static inline T *
bench_alloc(int64_t n)
{
	T *p = (T *) gpu_alloc((size_t) n * sizeof(T));

	BENCH_CHECK(p != NULL);
	return p;
}

template <typename T>
static inline void
bench_free(T *p, int64_t n)
{
	gpu_free((void *) p, (size_t) n * sizeof(T));
}

template <typename T>
static inline std::vector<T>
bench_host(Bench *b, const T *device, int64_t n)
{
	std::vector<T> host((size_t) n);

	gpu_copy_bus(&b->stream, host.data(), device, (size_t) n * sizeof(T));
	BENCH_CHECK(gpu_finish(&b->stream));
	return host;
}

static inline double
bench_median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v.empty() ? 0 : v[v.size() / 2];
}

/* Milliseconds on the device of what f asks of the stream, median; one run more comes first. */
template <typename F>
static inline double
bench_time(Bench *b, const F &f)
{
	std::vector<double> ms;

	for (int i = 0; i <= b->rounds; i++)
	{
		gpu_event_record(&b->stream, &b->start);
		f();
		gpu_event_record(&b->stream, &b->stop);
		if (!gpu_finish(&b->stream))
		{
			fprintf(stderr, "%s\n", b->stream.why);
			exit(1);
		}
		if (i > 0)
			ms.push_back((double) gpu_event_ns(&b->stream, &b->start, &b->stop) / 1e6);
	}
	return bench_median(ms);
}

static inline void
bench_row(Bench *b, const BenchRow &row)
{
	b->rows.push_back(row);
	fprintf(stderr, "%-64s %9.3f %s\n", row.work.c_str(), row.value, row.unit.c_str());
}

/* A row of n things done in ms. */
static inline void
bench_rate(Bench *b, const std::string &work, int64_t n, double ms, double target, double bytes,
		   uint64_t checked)
{
	bench_row(b, { work, (double) n / ms / 1e6, "G/s", target, false, ms, bytes, checked });
}

#endif /* BENCH_DEVICE_H */
