/*-------------------------------------------------------------------------
 *
 * device_skiplist.h
 *	  Benchmark of the skip list on a GPU, part of bench/device: entries of one word.
 *
 * Lookups are points in no order, in device memory, by tiles of 8 lanes that read the line of a chunk
 * together and work on several points at a time; and by a thread each through the list's probe, as scans
 * do.
 * Times of batches that change the list are the host's, from the call to its return; large ones are in device
 * memory, in no order, small ones in host memory.  Each is undone, untimed.  A mixed batch looks up eight of
 * ten keys, then inserts and deletes one of ten each.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_DEVICE_SKIPLIST_H
#define BENCH_DEVICE_SKIPLIST_H

#include "bench/batch.h"
#include "bench/device_common.h"
#include "bench/device_change.h"
#include "kernels/skiplist/skiplist_structure_gpu.h"

/* Entries of the smaller lists. */
#define BENCH_SKIPLIST_FEW 10000000

/* Puts the operations of a batch in no order. */
#define BENCH_SKIPLIST_PRIME UINT64_C(2654435761)

/* Points that a tile works on at a time. */
#define BENCH_SKIPLIST_POINTS 4

#define BENCH_SKIPLIST_SMALL_BATCHES 300

/* A chunk's line, as a tile has read it: the order word that its version has, the same in all lanes. */
__device__ __forceinline__ uint64_t
bench_skiplist_order(const ulonglong2 &line, uint64_t version)
{
	uint64_t other = __shfl_xor_sync(GPU_ALL_LANES, line.y, 1, GPU_TILE);
	int lane = gpu_tile_lane();
	bool mine = lane < 2 && line.y <= version &&
				(other > version || line.y > other || (line.y == other && lane == 0));
	unsigned from = __ballot_sync(GPU_ALL_LANES, mine) >> gpu_tile_shift() & 3;

	return __shfl_sync(GPU_ALL_LANES, line.x, from == 2 ? 1 : 0, GPU_TILE);
}

/* How many of its entries are before x, or, or_equal, equal to it. */
template <bool index, bool or_equal>
__device__ __forceinline__ int
bench_skiplist_rank(const uint64_t *chunk, const ulonglong2 &line, uint64_t order, uint64_t x)
{
	int slot = 2 * (gpu_tile_lane() - 2);
	bool before[2];

	for (int k = 0; k < 2; k++)
	{
		uint64_t w0 = k ? line.y : line.x;
		bool used = slot >= 0 && (gpu_skiplist_used(order) >> (slot + k) & 1) != 0;

		before[k] = used && w0 < x;
		/* x has no other word */
		if (or_equal && used && w0 == x)
			before[k] = chunk[gpu_skiplist_t(index) + slot + k] == 0;
	}
	return __popc(__ballot_sync(GPU_ALL_LANES, before[0]) >> gpu_tile_shift() & 0xFF) +
		   __popc(__ballot_sync(GPU_ALL_LANES, before[1]) >> gpu_tile_shift() & 0xFF);
}

/* The lowest t of a key by one thread: what scans do. */
GPU_FN uint64_t
bench_skiplist_find(const SkiplistProbe::View &view, uint64_t x)
{
	GpudsInterval interval = { { x, 0, 0 }, { x, 0, UINT64_MAX } };
	SkiplistProbe::Position p;
	GpuStart start;

	if (SkiplistProbe::locate(view, &interval, true, &start) == 0)
		return GPU_NOT_FOUND;
	SkiplistProbe::position(view, start, 0, true, &p);
	return SkiplistProbe::tid(view, p);
}

struct BenchSkiplistThreads
{
	SkiplistProbe::View view;
	const uint64_t *probes;
	uint64_t *answers;

	GPU_FN void operator()(int64_t i) const
	{
		answers[i] = bench_skiplist_find(view, probes[i]);
	}
};

/* The same by tiles. */
template <int points>
__global__ void
__launch_bounds__(GPU_BATCH_BLOCK)
	bench_skiplist_tiles(SkiplistProbe::View view, const uint64_t *__restrict__ probes,
						 uint64_t *__restrict__ answers, int64_t n)
{
	const GpuSkiplistView v = SkiplistProbe::version(view);
	int64_t tile = ((int64_t) blockIdx.x * GPU_BATCH_BLOCK + threadIdx.x) / GPU_TILE;
	int64_t mine = tile * points + gpu_tile_lane();
	bool own = gpu_tile_lane() < points && mine < n;
	uint64_t key = own ? probes[mine] : 0;
	uint64_t answer = GPU_NOT_FOUND;
	uint64_t x[points];
	GpuRef ref[points];
	ulonglong2 line[points];

#pragma unroll
	for (int i = 0; i < points; i++)
	{
		x[i] = __shfl_sync(GPU_ALL_LANES, key, i, GPU_TILE);
		ref[i] = v.root;
	}
	for (int level = v.height - 1; level > 0; level--)
	{
#pragma unroll
		for (int i = 0; i < points; i++)
			line[i] = gpu_tile_load(v.base, ref[i]);
#pragma unroll
		for (int i = 0; i < points; i++)
		{
			const uint64_t *chunk = gpu_skiplist_chunk(v.base, ref[i]);
			uint64_t order = bench_skiplist_order(line[i], v.version);
			int rank = bench_skiplist_rank<true, true>(chunk, line[i], order, x[i]);

			ref[i] = gpu_skiplist_ref(chunk, gpu_skiplist_slot(order, rank > 0 ? rank - 1 : 0));
		}
	}
#pragma unroll
	for (int i = 0; i < points; i++)
		line[i] = gpu_tile_load(v.base, ref[i]);
#pragma unroll
	for (int i = 0; i < points; i++)
	{
		const uint64_t *chunk = gpu_skiplist_chunk(v.base, ref[i]);
		uint64_t order = bench_skiplist_order(line[i], v.version);
		int rank = bench_skiplist_rank<false, false>(chunk, line[i], order, x[i]);

		if (gpu_tile_lane() != i)
			continue;
		if (rank < gpu_skiplist_n(order))
		{
			int slot = gpu_skiplist_slot(order, rank);

			if (chunk[GPU_SKIPLIST_W0 + slot] == x[i])
				answer = chunk[gpu_skiplist_t(false) + slot] & ENTRY_TID_MASK;
		}
		else
			answer = bench_skiplist_find(view, x[i]);
	}
	if (own)
		answers[mine] = answer;
}

static inline void
bench_skiplist_lookups(GpuStream *s, const GpuPool *pool, const SkiplistOnGpu *list, const uint64_t *probes,
					   uint64_t *answers, int64_t n, bool tiles)
{
	SkiplistProbe::View probe;
	GpudsView view;

	BENCH_CHECK(list->view(pool, &view) && view.height > 0);
	probe = SkiplistProbe::open(view);
	if (!tiles)
	{
		gpu_launch(s, n, BenchSkiplistThreads{ probe, probes, answers });
		return;
	}
	bench_skiplist_tiles<BENCH_SKIPLIST_POINTS>
		<<<gpu_batch_blocks(n, BENCH_SKIPLIST_POINTS), GPU_BATCH_BLOCK, 0, s->stream>>>(probe, probes,
																						answers, n);
	gpu_check(s, "launch", cudaGetLastError());
}

/* Which entries of each so many neighbours a list or a batch has: those from .. to - 1. */
struct BenchSkiplistShare
{
	int of;
	int from;
	int to;
};

/* Operations on entries of a share, in no order. */
struct BenchSkiplistOps
{
	BenchSkiplistShare share;
	uint64_t deletes; /* place among the neighbours of those that are deleted; UINT64_MAX: none is */
	int64_t n;        /* operations */
	const uint64_t *w0;
	const uint64_t *t;
	GpudsOp *ops;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t at = (uint64_t) i * BENCH_SKIPLIST_PRIME % (uint64_t) n;
		uint64_t width = (uint64_t) (share.to - share.from);
		uint64_t place = at % width + (uint64_t) share.from;
		uint64_t entry = at / width * (uint64_t) share.of + place;

		ops[i].e = { w0[entry], 0, t[entry] };
		ops[i].order = (uint64_t) i << 1 | (place == deletes);
	}
};

/* A list of a share of the first n entries, filled to 90 %. */
static inline void
bench_skiplist_load(Bench *b, SkiplistOnGpu *list, const BenchSkiplistShare &share, const uint64_t *w0,
					const uint64_t *t, int64_t n)
{
	const int64_t piece = 1 << 20;
	GpudsEntry *buffer = (GpudsEntry *) gpu_host_alloc((size_t) piece * sizeof(GpudsEntry));
	int64_t kept = 0;

	BENCH_CHECK(buffer != NULL && list->load_begin(&b->change, 1, 90) == GPU_OK);
	for (int64_t i = 0; i < n; i++)
	{
		int64_t place = i % share.of;

		if (place >= share.from && place < share.to)
			buffer[kept++] = { w0[i], 0, t[i] };
		if (kept == piece || i == n - 1)
		{
			BENCH_CHECK(list->load_add(&b->change, buffer, kept) == GPU_OK);
			kept = 0;
		}
	}
	BENCH_CHECK(list->load_end(&b->change) == GPU_OK);
	gpu_host_free(buffer);
}

static inline void
bench_skiplist_drop(Bench *b, SkiplistOnGpu *list)
{
	char why[200];

	if (list->verify(&b->change, why, sizeof(why)) != GPU_OK)
	{
		fprintf(stderr, "skip list: %s %s\n", why, b->change.stream.why);
		b->wrong++;
	}
	list->withdraw();
	BENCH_CHECK(list->drop(&b->change) == GPU_OK);
}

/* Seconds that a batch in device memory takes, after lookups that belong to it. */
static inline double
bench_skiplist_apply(Bench *b, SkiplistOnGpu *list, const BenchSkiplistOps &batch, const uint64_t *probes,
					 uint64_t *answers, int64_t lookups)
{
	GpuStream *s = &b->change.stream;
	GpuSkiplistSum sum = { 0, 0, 0 };
	double start;

	gpu_launch(s, batch.n, batch);
	BENCH_CHECK(gpu_finish(s));
	start = bench_change_now();
	if (lookups > 0)
		bench_skiplist_lookups(s, &b->pool, list, probes, answers, lookups, true);
	BENCH_CHECK(gpu_skiplist_apply_there<1>(&b->change, &list->tree, batch.ops, batch.n, &sum) == GPU_OK);
	start = bench_change_now() - start;
	BENCH_CHECK(sum.inserted + sum.deleted == batch.n);
	list->reclaim(&b->change, UINT64_MAX);
	return start;
}

/* Lookups in a list of the first n entries. */
template <typename MakeProbes, typename Check>
static inline void
bench_skiplist_points(Bench *b, SkiplistOnGpu *list, int64_t n, const char *size, double target,
					  const uint64_t *probes, uint64_t *answers, const MakeProbes &make_probes,
					  const Check &check)
{
	for (int tiles = 1; tiles >= 0; tiles--)
	{
		double ms;

		make_probes(n);
		gpu_fill(&b->stream, answers, 0xA5, (size_t) b->probes * sizeof(uint64_t));
		ms = bench_time(b,
						[&] {
							bench_skiplist_lookups(&b->stream, &b->pool, list, probes, answers, b->probes,
												   tiles);
						});
		check(std::vector<char>());
		bench_rate(b,
				   std::string("skip list: lookup, ") + size +
					   (tiles ? ", unsorted batch" : ", a thread a probe"),
				   b->probes, ms, tiles ? target : 0, 0, (uint64_t) b->probes);
	}
}

/* Batches of n operations in host memory: three of four insert new keys, the others delete. */
static inline void
bench_skiplist_small(Bench *b, SkiplistOnGpu *list, const uint64_t *w0, const uint64_t *t, int64_t entries,
					 int n, double target)
{
	GpudsOp *ops = (GpudsOp *) gpu_host_alloc((size_t) n * sizeof(GpudsOp));
	const GpudsOp *there = ops != NULL ? (const GpudsOp *) gpu_device_address(ops) : NULL;
	std::mt19937_64 random(b->seed + (uint64_t) n);
	uint64_t will = list->tree.entries;
	std::vector<double> seconds;

	BENCH_CHECK(there != NULL);
	for (int batch = 0; batch < BENCH_SKIPLIST_SMALL_BATCHES; batch++)
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
		BENCH_CHECK(list->apply(&b->change, ops, there, n, &inserted, &deleted) == GPU_OK);
		seconds.push_back(bench_change_now() - start);
		will += (uint64_t) (inserted - deleted);
		list->reclaim(&b->change, UINT64_MAX);
	}
	BENCH_CHECK(will == list->tree.entries);
	bench_row(b, { "skip list: apply " + std::to_string(n) + (n == 1 ? " operation" : " operations"),
				   bench_median(seconds) * 1e6, "us", target, true, 0, 0, 0 });
	gpu_host_free(ops);
}

/* A large batch on a list of ten million entries, and what undoes it; NULL: a load. */
static inline void
bench_skiplist_batch(Bench *b, SkiplistOnGpu *list, const char *work, double target,
					 const BenchSkiplistShare &loaded, const BenchSkiplistOps &batch,
					 const BenchSkiplistOps *undo, int64_t lookups, const uint64_t *host_w0,
					 const uint64_t *host_t, const uint64_t *probes, uint64_t *answers)
{
	const int64_t neighbours = batch.n / (batch.share.to - batch.share.from);
	std::vector<double> seconds;

	for (int i = 0; i <= b->rounds; i++)
	{
		double took;

		if (i == 0)
			bench_skiplist_load(b, list, loaded, host_w0, host_t, neighbours * loaded.of);
		took = bench_skiplist_apply(b, list, batch, probes, answers, lookups);
		if (i > 0)
			seconds.push_back(took);
		if (undo == NULL)
		{
			/* a list that was loaded has other chunks than one that entries were deleted of */
			bench_skiplist_drop(b, list);
			bench_skiplist_load(b, list, loaded, host_w0, host_t, neighbours * loaded.of);
		}
		else
			(void) bench_skiplist_apply(b, list, *undo, probes, answers, 0);
	}
	bench_rate(b, work, batch.n + lookups, bench_median(seconds) * 1e3, target, 0, (uint64_t) batch.n);
	bench_skiplist_drop(b, list);
}

/*
 * All rows, of n entries, which the host has, too.  make_probes makes probes that hit the first so many
 * entries; check compares the answers with the CPU's.
 */
template <typename MakeProbes, typename Check>
static inline void
bench_skiplist(Bench *b, const uint64_t *w0, const uint64_t *t, const uint64_t *host_w0,
			   const uint64_t *host_t, int64_t n, const uint64_t *probes, uint64_t *answers,
			   const MakeProbes &make_probes, const Check &check)
{
	const int64_t few = std::min<int64_t>(n / 2, BENCH_SKIPLIST_FEW);
	GpudsOp *ops = bench_alloc<GpudsOp>(few);
	SkiplistOnGpu list(GPUDS_STRUCTURE_SKIPLIST);
	const int64_t tens = few / 11;

	bench_skiplist_load(b, &list, { 1, 0, 1 }, host_w0, host_t, n);
	bench_row(b, { "skip list: device memory an entry", (double) list.bytes() / (double) n, "bytes", 0, true,
				   0, 0, 0 });
	bench_skiplist_points(b, &list, n, "all entries", 2, probes, answers, make_probes, check);
	bench_skiplist_small(b, &list, host_w0, host_t, n, 1, 0);
	bench_skiplist_small(b, &list, host_w0, host_t, n, 100, 0);
	bench_skiplist_small(b, &list, host_w0, host_t, n, 1000, 25);
	bench_skiplist_drop(b, &list);
	bench_skiplist_load(b, &list, { 1, 0, 1 }, host_w0, host_t, few);
	bench_skiplist_points(b, &list, few, "10 M", 3, probes, answers, make_probes, check);
	bench_skiplist_drop(b, &list);
	/* of eleven neighbours the tenth is deleted, the last inserted */
	const BenchSkiplistOps mixed = { { 11, 9, 11 }, 9, 2 * tens, w0, t, ops };
	const BenchSkiplistOps undo = { { 11, 9, 11 }, 10, 2 * tens, w0, t, ops };
	const BenchSkiplistOps inserts = { { 2, 1, 2 }, UINT64_MAX, few, w0, t, ops };

	make_probes(few);
	bench_skiplist_batch(b, &list, "skip list: 10 % insert, 10 % delete, 80 % lookup, 10 M", 1, { 11, 0, 10 },
						 mixed, &undo, std::min(8 * tens, b->probes), host_w0, host_t, probes, answers);
	bench_skiplist_batch(b, &list, "skip list: insert 10 M into 10 M", 0.5, { 2, 0, 1 }, inserts, NULL, 0,
						 host_w0, host_t, probes, answers);
	bench_free(ops, few);
}

#endif /* BENCH_DEVICE_SKIPLIST_H */
