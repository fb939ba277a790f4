/*-------------------------------------------------------------------------
 *
 * device.cu
 *	  The structure on a GPU without PostgreSQL, in one process: lookups,
 *	  ranges, counts, builds and changes, beside binary search in a sorted array;
 *	  and the engine's counts by a map of all-visible heap pages.
 *	  All answers of a run are compared with the CPU's.
 *
 *	  usage: device [--entries N] [--probes N] [--rounds N] [--seed N] RAW
 *
 * RAW gets a line for each row: work, value, unit, target, "most" or "least", ms,
 * bytes, answers checked; and lines of the runtime, which begin with #.
 *
 *-------------------------------------------------------------------------
 */
#include "bench/device_common.h"
#include "bench/device_change.h"
#include "bench/batch.h"
#define STRUCTURES_ON_GPU
#include "kernels/structures.h"
#include "bench/device_avl.h"
#include "bench/device_skiplist.h"
#include "kernels/btree/btree_structure_gpu.h"

/* Series of random numbers. */
enum
{
	KEYS,
	SECOND_WORDS,
	PROBES,
	PICKS,
	PAGES
};

/* The entries, ascending, in device memory and on the host. */
struct Entries
{
	int nw;
	int64_t n;
	uint64_t *w0;
	uint64_t *w1;
	uint64_t *t;
	std::vector<uint64_t> host_w0;
	std::vector<uint64_t> host_t;
	std::vector<uint32_t> first; /* of each value of w0's upper 24 bits, the first entry */
};

struct Make
{
	uint64_t seed;
	uint64_t *w0;
	uint32_t *number;

	GPU_FN void operator()(int64_t i) const
	{
		w0[i] = bench_random(seed + KEYS, (uint64_t) i);
		number[i] = (uint32_t) i;
	}
};

/* Rows of a heap page. */
#define PAGE_ROWS 185

/* The rest of an entry from its number before it was sorted: a row's TID. */
KERNEL_FN uint64_t
entry_t(uint32_t number)
{
	return (uint64_t) (number / PAGE_ROWS) << 16 | (number % PAGE_ROWS + 1);
}

KERNEL_FN uint32_t
entry_number(uint64_t t)
{
	return (uint32_t) (t >> 16) * PAGE_ROWS + (uint32_t) (t & 0xFFFF) - 1;
}

struct Complete
{
	uint64_t seed;
	const uint32_t *number;
	uint64_t *w1; /* NULL: entries of one word */
	uint64_t *t;

	GPU_FN void operator()(int64_t i) const
	{
		if (w1)
			w1[i] = bench_random(seed + SECOND_WORDS, number[i]);
		t[i] = entry_t(number[i]);
	}
};

static void
make_entries(Bench *b, Entries *e, int nw)
{
	int64_t n = b->entries;
	uint64_t *w0 = bench_alloc<uint64_t>(n);
	uint64_t *other = bench_alloc<uint64_t>(n);
	uint32_t *number = bench_alloc<uint32_t>(n);
	uint32_t *other_number = bench_alloc<uint32_t>(n);
	Make make = { b->seed, w0, number };

	e->nw = nw;
	e->n = n;
	e->w1 = nw == 2 ? bench_alloc<uint64_t>(n) : NULL;
	e->t = bench_alloc<uint64_t>(n);
	gpu_launch(&b->stream, n, make);
	gpu_sort_pairs(&b->stream, &w0, &other, &number, &other_number, n, 0, 64);
	gpu_launch(&b->stream, n, Complete{ b->seed, number, e->w1, e->t });
	e->w0 = w0;
	e->host_w0 = bench_host(b, w0, n);
	e->host_t = bench_host(b, e->t, n);
	bench_free(other, n);
	bench_free(number, n);
	bench_free(other_number, n);

	/* what the reference rests on: ascending, and each t belongs to its key */
	bench_parallel(n,
				   [&](int64_t i)
				   {
					   BENCH_CHECK(i == 0 || e->host_w0[(size_t) i - 1] < e->host_w0[(size_t) i]);
					   BENCH_CHECK(bench_random(b->seed + KEYS, entry_number(e->host_t[(size_t) i])) ==
								   e->host_w0[(size_t) i]);
				   });
	e->first.assign(((size_t) 1 << 24) + 1, (uint32_t) n);
	for (int64_t i = n - 1; i >= 0; i--)
		e->first[e->host_w0[(size_t) i] >> 40] = (uint32_t) i;
	for (size_t i = (size_t) 1 << 24; i-- > 0;)
		e->first[i] = std::min(e->first[i], e->first[i + 1]);
}

static void
free_entries(Entries *e)
{
	bench_free(e->w0, e->n);
	bench_free(e->t, e->n);
	if (e->w1)
		bench_free(e->w1, e->n);
	*e = Entries();
}

/* The CPU's reference: how many keys are below x. */
static int64_t
rank_of(const Entries &e, uint64_t x)
{
	size_t from = e.first[x >> 40];
	size_t to = e.first[(x >> 40) + 1];

	return std::lower_bound(e.host_w0.begin() + (ptrdiff_t) from, e.host_w0.begin() + (ptrdiff_t) to, x) -
		   e.host_w0.begin();
}

/* A tree of the entries, filled to 90 %. */
static void
load(Bench *b, const Entries &e, GpuTree *tree)
{
	const int64_t piece = 1 << 20;
	GpudsEntry *buffer = (GpudsEntry *) gpu_host_alloc((size_t) piece * sizeof(GpudsEntry));

	BENCH_CHECK(buffer != NULL);
	BENCH_CHECK(gpu_btree_load_begin(&b->change, tree, (uint32_t) e.nw, 90) == GPU_OK);
	for (int64_t at = 0; at < e.n; at += piece)
	{
		int64_t n = std::min(piece, e.n - at);

		bench_parallel(n,
					   [&](int64_t i)
					   {
						   size_t k = (size_t) (at + i);

						   buffer[i].w0 = e.host_w0[k];
						   buffer[i].w1 = e.nw == 2 ? bench_random(b->seed + SECOND_WORDS,
																   entry_number(e.host_t[k]))
													: 0;
						   buffer[i].t = e.host_t[k];
					   });
		BENCH_CHECK(gpu_btree_load_add(&b->change, tree, buffer, n) == GPU_OK);
		BENCH_CHECK(gpu_finish(&b->change.stream));
	}
	BENCH_CHECK(gpu_btree_load_end(&b->change, tree) == GPU_OK);
	gpu_host_free(buffer);
}

/* Probe keys: all of the entries' or none of them (but by chance), with w1 if there is one. */
struct Probes
{
	uint64_t seed;
	bool hit;
	int64_t n; /* entries */
	const uint64_t *keys;
	const uint64_t *second;
	uint64_t *w0;
	uint64_t *w1;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t pick = bench_random(seed + PICKS, (uint64_t) i) % (uint64_t) n;

		w0[i] = hit ? keys[pick] : bench_random(seed + PROBES, (uint64_t) i);
		if (w1)
			w1[i] = second[pick];
	}
};

/* For comparison: binary search in the sorted keys. */
struct Search
{
	const uint64_t *keys;
	const uint64_t *t;
	int64_t n;
	const uint64_t *probes;
	uint64_t *answers;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t x = probes[i];
		int64_t lo = 0;
		int64_t hi = n;

		while (lo < hi)
		{
			int64_t middle = lo + (hi - lo) / 2;

			if (keys[middle] < x)
				lo = middle + 1;
			else
				hi = middle;
		}
		answers[i] = lo < n && keys[lo] == x ? t[lo] : GPU_NOT_FOUND;
	}
};

/* A thread for each probe: for probes that are nearly in order. */
struct Lookup
{
	GpudsView view;
	const uint64_t *probes;
	uint64_t *answers;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsEntry x = { probes[i], 0, 0 };
		const uint64_t *leaf;
		BtreePosition p;

		btree_lower_bound(&view, &x, &p, 1);
		leaf = btree_node(view.base, p.leaf);
		answers[i] = p.place < BTREE_FANOUT && leaf[p.place] == x.w0 ? leaf[BTREE_FANOUT + p.place]
																	 : GPU_NOT_FOUND;
	}
};

/* Compares answers with the CPU's; the probes are as the device had them.  gone: entries deleted since. */
static void
check_points(Bench *b, const Entries &e, const uint64_t *probes, const uint64_t *answers,
			 const std::vector<char> *gone = NULL)
{
	std::vector<uint64_t> asked = bench_host(b, probes, b->probes);
	std::vector<uint64_t> got = bench_host(b, answers, b->probes);
	std::atomic<uint64_t> wrong(0);

	bench_parallel(b->probes,
				   [&](int64_t i)
				   {
					   size_t rank = (size_t) rank_of(e, asked[(size_t) i]);
					   bool there = rank < e.host_w0.size() && e.host_w0[rank] == asked[(size_t) i];

					   if (there && gone && (*gone)[rank])
						   there = false;
					   if (got[(size_t) i] != (there ? e.host_t[rank] : GPU_NOT_FOUND))
						   wrong++;
				   });
	b->wrong += wrong;
}

/* All lookups of a batch. */
template <int nw>
static void
points(Bench *b, const GpudsView &view, const uint64_t *w0, const uint64_t *w1, uint64_t *answers)
{
	gpu_batch_points<nw, 6>
		<<<gpu_batch_blocks(b->probes, 6), GPU_BATCH_BLOCK, 0, b->stream.stream>>>(view, w0, w1, answers,
																				   b->probes);
	gpu_check(&b->stream, "launch", cudaGetLastError());
}

/* Lines that a lookup reads at the levels that do not fit into the caches: the leaf and the node above it. */
static double
point_bytes(int nw)
{
	return nw == 1 ? 2 * BTREE_LINE_BYTES + 16 : 2 * BTREE_LINE_BYTES + BTREE_UNIT_BYTES + 24;
}

static void
bench_points(Bench *b, const Entries &e, const GpudsView &view)
{
	int64_t m = b->probes;
	uint64_t *probes = bench_alloc<uint64_t>(m);
	uint64_t *second = e.nw == 2 ? bench_alloc<uint64_t>(m) : NULL;
	uint64_t *answers = bench_alloc<uint64_t>(m);

	for (int hit = 1; hit >= (e.nw == 1 ? 0 : 1); hit--)
	{
		std::string what = hit ? ", all hit" : ", all miss";
		double search = 0;
		double ms;

		gpu_launch(&b->stream, m, Probes{ b->seed, hit == 1, e.n, e.w0, e.w1, probes, second });
		if (e.nw == 1)
		{
			gpu_fill(&b->stream, answers, 0xA5, (size_t) m * sizeof(uint64_t));
			search = bench_time(b,
								[&] {
									gpu_launch(&b->stream, m, Search{ e.w0, e.t, e.n, probes, answers });
								});
			check_points(b, e, probes, answers);
			bench_rate(b, "binary search in a sorted array, unsorted batch" + what, m, search, 0, 0,
					   (uint64_t) m);
		}
		gpu_fill(&b->stream, answers, 0xA5, (size_t) m * sizeof(uint64_t));
		ms = bench_time(b,
						[&]
						{
							if (e.nw == 1)
								points<1>(b, view, probes, second, answers);
							else
								points<2>(b, view, probes, second, answers);
						});
		check_points(b, e, probes, answers);
		bench_rate(b,
				   e.nw == 1 ? "point lookup, unsorted batch" + what
							 : "point lookup, 128-bit keys, unsorted batch" + what,
				   m, ms, e.nw == 1 ? 8 : 4, point_bytes(e.nw) * (double) m, (uint64_t) m);
		if (e.nw == 1)
			bench_row(b, { "the same against binary search" + what, search / ms, "x", 2.2, false, 0, 0, 0 });
	}
	bench_free(probes, m);
	bench_free(answers, m);
	if (second)
		bench_free(second, m);
}

/* Sorting by the upper 16 bits first: answers come in the order of the sorted keys. */
static void
bench_sorted(Bench *b, const Entries &e, const GpudsView &view)
{
	int64_t m = b->probes;
	uint64_t *probes = bench_alloc<uint64_t>(m);
	uint64_t *keys = bench_alloc<uint64_t>(m);
	uint64_t *other = bench_alloc<uint64_t>(m);
	uint64_t *answers = bench_alloc<uint64_t>(m);
	double ms;

	gpu_launch(&b->stream, m, Probes{ b->seed + 100, true, e.n, e.w0, NULL, probes, NULL });
	for (int tree = 0; tree < 2; tree++)
	{
		gpu_fill(&b->stream, answers, 0xA5, (size_t) m * sizeof(uint64_t));
		ms = bench_time(b,
						[&]
						{
							gpu_copy(&b->stream, keys, probes, (size_t) m * sizeof(uint64_t));
							gpu_sort_keys(&b->stream, &keys, &other, m, 48, 64);
							if (tree)
								gpu_launch(&b->stream, m, Lookup{ view, keys, answers });
							else
								gpu_launch(&b->stream, m, Search{ e.w0, e.t, e.n, keys, answers });
						});
		check_points(b, e, keys, answers);
		bench_rate(b,
				   tree ? "point lookup, batch partially sorted, sort included"
						: "binary search, batch partially sorted, sort included",
				   m, ms, tree ? 12 : 0, 0, (uint64_t) m);
	}
	bench_free(probes, m);
	bench_free(keys, m);
	bench_free(other, m);
	bench_free(answers, m);
}

/* Ends of ranges: of length entries, or any two keys. */
struct Ranges
{
	uint64_t seed;
	int64_t length; /* 0: any */
	int64_t n;
	const uint64_t *keys;
	uint64_t *lo;
	uint64_t *hi;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t a = bench_random(seed + PICKS, (uint64_t) i);
		uint64_t b = bench_random(seed + PROBES, (uint64_t) i);

		if (length > 0)
		{
			a %= (uint64_t) (n - length + 1);
			lo[i] = keys[a];
			hi[i] = keys[a + (uint64_t) length - 1];
		}
		else
		{
			lo[i] = a < b ? a : b;
			hi[i] = a < b ? b : a;
		}
	}
};

static void
bench_counts(Bench *b, const Entries &e, const GpudsView &view)
{
	const int64_t lengths[] = { 32, 1000, 0 };
	int64_t m = b->probes;
	uint64_t *lo = bench_alloc<uint64_t>(m);
	uint64_t *hi = bench_alloc<uint64_t>(m);
	uint32_t *counts = bench_alloc<uint32_t>(m);

	for (int64_t length : lengths)
	{
		std::string what = length ? "ranges of " + std::to_string(length) : "ranges of any length";
		std::atomic<uint64_t> wrong(0);
		double ms;

		if (length > e.n)
			continue;
		gpu_launch(&b->stream, m, Ranges{ b->seed + 200 + (uint64_t) length, length, e.n, e.w0, lo, hi });
		gpu_fill(&b->stream, counts, 0xA5, (size_t) m * sizeof(uint32_t));
		ms = bench_time(b,
						[&]
						{
							gpu_batch_counts<2>
								<<<gpu_batch_blocks(m, 2), GPU_BATCH_BLOCK, 0, b->stream.stream>>>(view, lo,
																								   hi, counts,
																								   m);
							gpu_check(&b->stream, "launch", cudaGetLastError());
						});
		{
			std::vector<uint64_t> from = bench_host(b, lo, m);
			std::vector<uint64_t> to = bench_host(b, hi, m);
			std::vector<uint32_t> got = bench_host(b, counts, m);

			bench_parallel(m,
						   [&](int64_t i)
						   {
							   size_t k = (size_t) i;
							   int64_t end = to[k] == UINT64_MAX ? e.n : rank_of(e, to[k] + 1);

							   if ((int64_t) got[k] != end - rank_of(e, from[k]))
								   wrong++;
						   });
		}
		b->wrong += wrong;
		bench_rate(b, "count of entries, " + what, m, ms, 4,
				   (double) m * ((length && length <= 32 ? 3 : 4) * BTREE_LINE_BYTES + 20), (uint64_t) m);
	}
	bench_free(lo, m);
	bench_free(hi, m);
	bench_free(counts, m);
}

static void
bench_ranges(Bench *b, const Entries &e, const GpudsView &view)
{
	const int length = 32;
	int64_t m = b->probes / 2;
	int64_t out = m * length;
	uint64_t *lo = bench_alloc<uint64_t>(m);
	uint64_t *hi = bench_alloc<uint64_t>(m);
	uint64_t *w0 = bench_alloc<uint64_t>(out);
	uint64_t *t = bench_alloc<uint64_t>(out);
	uint32_t *found = bench_alloc<uint32_t>(m);
	std::atomic<uint64_t> wrong(0);
	double ms;

	if (e.n >= length)
	{
		gpu_launch(&b->stream, m, Ranges{ b->seed + 300, length, e.n, e.w0, lo, hi });
		gpu_fill(&b->stream, w0, 0xA5, (size_t) out * sizeof(uint64_t));
		gpu_fill(&b->stream, t, 0xA5, (size_t) out * sizeof(uint64_t));
		ms = bench_time(
			b,
			[&]
			{
				gpu_batch_ranges<<<gpu_batch_blocks(m, 1), GPU_BATCH_BLOCK, 0, b->stream.stream>>>(view, lo,
																								   hi, length,
																								   w0, t,
																								   found, m);
				gpu_check(&b->stream, "launch", cudaGetLastError());
			});
		{
			std::vector<uint64_t> from = bench_host(b, lo, m);
			std::vector<uint32_t> n = bench_host(b, found, m);
			std::vector<uint64_t> got_w0 = bench_host(b, w0, out);
			std::vector<uint64_t> got_t = bench_host(b, t, out);

			bench_parallel(m,
						   [&](int64_t i)
						   {
							   size_t first = (size_t) rank_of(e, from[(size_t) i]);
							   bool same = n[(size_t) i] == length;

							   for (size_t k = 0; k < length && same; k++)
								   same = got_w0[(size_t) i * length + k] == e.host_w0[first + k] &&
										  got_t[(size_t) i * length + k] == e.host_t[first + k];
							   if (!same)
								   wrong++;
						   });
		}
		b->wrong += wrong;
		/* leaves that 32 entries of 7.2 a leaf lie in, the node above them, input, output */
		bench_rate(b, "range of 32 entries, entries returned", m, ms, 1,
				   (double) m * ((1 + 31 / 7.2 + 1) * BTREE_LINE_BYTES + 16 + 4 + length * 16),
				   (uint64_t) out);
	}
	bench_free(lo, m);
	bench_free(hi, m);
	bench_free(w0, out);
	bench_free(t, out);
	bench_free(found, m);
}

/* One request to count by a map, with the staging memory that it takes. */
struct CountCall
{
	GpuScanStream stream;
	GpudsView view;
	size_t piece;
	unsigned char *staging; /* input, then output */
	unsigned char *map;     /* behind the input */
	size_t map_bytes;
	GpuRequest request;
};

/* Sets the map: one in so many pages is not all-visible, 0: none. */
static void
make_map(Bench *b, CountCall *call, uint64_t one_in)
{
	memset(call->map, 0, call->map_bytes);
	for (uint64_t page = 0; page < call->map_bytes * 4; page++)
	{
		if (one_in == 0 || bench_random(b->seed + PAGES, page) % one_in != 0)
			call->map[page / 4] |= (unsigned char) (1 << page % 4 * 2);
	}
}

/* Sends the request a few times, compares the answer, and adds a row of so many things. */
static void
count_by_map(Bench *b, const Entries &e, CountCall *call, const std::string &work, int64_t things,
			 int64_t entries, int64_t step, double bytes)
{
	const uint64_t *got = (const uint64_t *) (call->staging + call->piece);
	std::vector<uint64_t> others;
	std::vector<double> ms;
	GpuRequest *r = &call->request;

	for (int i = 0; i <= b->rounds; i++)
	{
		r->next = 0;
		r->inside = false;
		BENCH_CHECK(gpu_scan_large<BtreeProbe>(&call->stream, &call->view, call->staging,
											   (unsigned char *) gpu_device_address(call->staging),
											   r) == GPU_OK);
		if (i > 0)
			ms.push_back((double) r->device_ns / 1e6);
	}
	for (int64_t i = 0; i < entries; i++)
	{
		uint64_t t = e.host_t[(size_t) (i * step)];
		uint64_t page = t >> 16;

		if ((call->map[page / 4] >> page % 4 * 2 & 1) == 0)
			others.push_back(t);
	}
	std::sort(others.begin(), others.end());
	if (r->found != (int64_t) others.size() || r->counted != entries - r->found ||
		(r->found <= r->cap && !std::equal(others.begin(), others.end(), got)))
		b->wrong++;
	bench_rate(b, work, things, bench_median(ms), 0, bytes, (uint64_t) entries);
}

/* Counts of entries on all-visible heap pages, copies and waits of the engine included. */
static void
bench_visible(Bench *b, const Entries &e, const GpudsView &view)
{
	const int64_t points = std::min<int64_t>(800000, e.n);
	const GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, 0, UINT64_MAX } };
	const GpudsInterval frame = { { 0, 0, 0 }, { 0, 0, UINT64_MAX } };
	const size_t input_bytes = sizeof(GpudsInterval) + (size_t) points * sizeof(uint64_t);
	/* the words t of the leaves */
	const double leaf_bytes = (double) e.n / 7.2 * BTREE_UNIT_BYTES;
	CountCall call = CountCall();
	uint64_t *words;

	call.piece = (size_t) 8 << 20;
	call.map_bytes = ((size_t) e.n / PAGE_ROWS / 4 + 8) / 8 * 8;
	if (input_bytes + call.map_bytes > call.piece)
		return;
	BENCH_CHECK(gpu_scan_stream_open(&call.stream, call.piece));
	call.staging = (unsigned char *) gpu_host_alloc(2 * call.piece);
	BENCH_CHECK(call.staging != NULL);
	call.map = call.staging + input_bytes;
	call.view.base = view.base;
	call.view.entries = view.entries;
	call.view.root = view.root;
	call.view.height = view.height;
	call.view.nwords = view.nwords;
	call.request.kind = GPU_SCAN;
	call.request.form = GPU_COUNT;
	call.request.forward = true;
	call.request.output = call.piece;
	call.request.cap = (int64_t) (call.piece / sizeof(uint64_t));
	call.request.map = input_bytes;
	call.request.map_bytes = call.map_bytes;
	for (uint64_t one_in : { 0, 1000 })
	{
		std::string what = one_in ? ", 1 page in 1,000 not all-visible" : ", all pages all-visible";

		make_map(b, &call, one_in);
		memcpy(call.staging, &all, sizeof(all));
		call.request.points = false;
		call.request.n = 1;
		count_by_map(b, e, &call, "count by visibility map, one interval" + what, e.n, e.n, 1,
					 leaf_bytes + (double) call.map_bytes);
		memcpy(call.staging, &frame, sizeof(frame));
		words = (uint64_t *) (call.staging + sizeof(frame));
		for (int64_t i = 0; i < points; i++)
			words[i] = e.host_w0[(size_t) (i * (e.n / points))];
		call.request.points = true;
		call.request.n = points;
		count_by_map(b, e, &call, "count by visibility map, 800,000 sorted keys" + what, points, points,
					 e.n / points, 0);
	}
	gpu_scan_stream_close(&call.stream);
	gpu_host_free(call.staging);
}

/*
 * What it costs to hold a version while the tree changes: the same changes to the
 * same tree, once with every version's memory used again, once with all kept.
 */
static void
bench_snapshot(Bench *b, const Entries &e)
{
	const int batches = 4;
	const int64_t n = std::min<int64_t>(1000000, e.n / 10 + 1);
	int64_t m = b->probes;
	GpudsOp *ops = (GpudsOp *) gpu_host_alloc((size_t) n * sizeof(GpudsOp));
	const GpudsOp *there = (const GpudsOp *) gpu_device_address(ops);
	uint64_t *probes = bench_alloc<uint64_t>(m);
	uint64_t *answers = bench_alloc<uint64_t>(m);
	double ms[3] = { 0, 0, 0 };

	BENCH_CHECK(ops != NULL && there != NULL);
	gpu_launch(&b->stream, m, Probes{ b->seed + 400, true, e.n, e.w0, NULL, probes, NULL });
	for (int held = 0; held < 2; held++)
	{
		std::vector<char> gone((size_t) e.n, 0);
		GpuTree *tree = new GpuTree;
		GpudsView first, now;

		load(b, e, tree);
		BENCH_CHECK(gpu_tree_view(tree, &b->pool, &first));
		for (int batch = 0; batch < batches; batch++)
		{
			uint64_t series = b->seed + 500 + (uint64_t) batch;
			int64_t inserted, deleted;

			/* half of them delete what is there, half insert new keys */
			for (int64_t i = 0; i < n; i++)
			{
				size_t pick = bench_random(series, (uint64_t) i) % (uint64_t) e.n;

				ops[i].e.w0 = i & 1 ? e.host_w0[pick] : bench_random(series + 100, (uint64_t) i);
				ops[i].e.w1 = 0;
				ops[i].e.t = i & 1 ? e.host_t[pick] : 1;
				ops[i].order = (uint64_t) i << 1 | (i & 1);
				if (i & 1)
					gone[pick] = 1;
			}
			BENCH_CHECK(gpu_btree_apply(&b->change, tree, ops, there, n, &inserted, &deleted) == GPU_OK);
			if (!held)
				gpu_tree_reclaim(&b->change, tree, UINT64_MAX);
		}
		BENCH_CHECK(gpu_tree_view(tree, &b->pool, &now) && now.root != first.root);
		for (int old = 0; old <= held; old++)
		{
			const GpudsView *view = old ? &first : &now;

			gpu_fill(&b->stream, answers, 0xA5, (size_t) m * sizeof(uint64_t));
			ms[held + old] = bench_time(b, [&] { points<1>(b, *view, probes, NULL, answers); });
			check_points(b, e, probes, answers, old ? NULL : &gone);
		}
		gpu_tree_withdraw(tree);
		BENCH_CHECK(gpu_tree_drop(&b->change, tree) == GPU_OK);
		delete tree;
	}
	bench_rate(b, "point lookup after 4 batches of 1 M changes, no snapshot held", m, ms[0], 0, 0,
			   (uint64_t) m);
	bench_rate(b, "the same with a snapshot held from before them", m, ms[1], 0, 0, (uint64_t) m);
	bench_rate(b, "point lookup in that snapshot", m, ms[2], 0, 0, (uint64_t) m);
	bench_row(b, { "price of a held snapshot on lookups", 100 * (ms[1] / ms[0] - 1), "%", 3, true, 0, 0, 0 });
	gpu_host_free(ops);
	bench_free(probes, m);
	bench_free(answers, m);
}

/* What a copy inside the device gets: bytes read and written. */
static double
copy_bandwidth(Bench *b)
{
	const size_t bytes = (size_t) 2 << 30;
	unsigned char *p = bench_alloc<unsigned char>((int64_t) bytes * 2);
	double ms = bench_time(b, [&] { gpu_copy(&b->stream, p, p + bytes, bytes); });

	bench_free(p, (int64_t) bytes * 2);
	return 2 * (double) bytes / ms / 1e9;
}

/* A row of the part about changes. */
static Bench *rows_of;

/* Another structure, of the same entries. */
template <class T>
static void
bench_other(Bench *b, const BenchStructure &is, const Entries &e)
{
	uint64_t *probes = bench_alloc<uint64_t>(b->probes);
	uint64_t *answers = bench_alloc<uint64_t>(b->probes);

	bench_structure<T>(
		b, is, e.w0, e.t, e.host_w0.data(), e.host_t.data(), e.n, probes, answers,
		[&](int64_t n) {
			gpu_launch(&b->stream, b->probes, Probes{ b->seed + 700, true, n, e.w0, NULL, probes, NULL });
		},
		[&](const std::vector<char> &) { check_points(b, e, probes, answers); });
	bench_free(probes, b->probes);
	bench_free(answers, b->probes);
}

static void
change_row(const char *work, double value, const char *unit, double target, bool verified)
{
	bool at_most = strcmp(unit, "G/s") != 0;

	bench_row(rows_of, { work, value, unit, target, at_most, 0, 0, 0 });
	if (!verified)
		rows_of->wrong++;
}

static void
write_rows(const Bench &b, double bandwidth, const char *name)
{
	FILE *raw = fopen(name, "w");

	BENCH_CHECK(raw != NULL);
	fprintf(raw, "#card\t%s\n#driver\t%d.%d\n#runtime\t%d.%d\n", b.card.name, b.card.driver / 1000,
			b.card.driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
	fprintf(raw, "#entries\t%lld\n#probes\t%lld\n#rounds\t%d\n#seed\t%llu\n#copy_tb_s\t%.3f\n",
			(long long) b.entries, (long long) b.probes, b.rounds, (unsigned long long) b.seed, bandwidth);
	for (const BenchRow &row : b.rows)
		fprintf(raw, "%s\t%.6g\t%s\t%.6g\t%s\t%.6g\t%.6g\t%llu\n", row.work.c_str(), row.value,
				row.unit.c_str(), row.target, row.at_most ? "most" : "least", row.ms, row.bytes,
				(unsigned long long) row.checked);
	BENCH_CHECK(fclose(raw) == 0);
}

static int
usage(void)
{
	fprintf(stderr, "usage: device [--entries N] [--probes N] [--rounds N] [--seed N] RAW\n");
	return 2;
}

int
main(int argc, char **argv)
{
	static Bench bench;
	Bench *b = &bench;
	const char *out = NULL;
	char why[200] = "";
	double bandwidth;
	size_t temp;

	b->entries = 100000000;
	b->probes = 50000000;
	b->rounds = 5;
	b->seed = (uint64_t) std::chrono::system_clock::now().time_since_epoch().count();
	for (int i = 1; i < argc; i++)
	{
		std::string option = argv[i];

		if (option.compare(0, 2, "--") != 0)
			out = argv[i];
		else if (i + 1 == argc)
			return usage();
		else if (option == "--entries")
			b->entries = atoll(argv[++i]);
		else if (option == "--probes")
			b->probes = atoll(argv[++i]);
		else if (option == "--rounds")
			b->rounds = atoi(argv[++i]);
		else if (option == "--seed")
			b->seed = strtoull(argv[++i], NULL, 10);
		else
			return usage();
	}
	if (out == NULL || b->entries < 1 || b->entries > INT32_MAX / 2 || b->probes < 2 || b->rounds < 1)
		return usage();
	if (!gpu_card(0, &b->card, why, sizeof(why)))
	{
		fprintf(stderr, "no GPU: %s\n", why);
		return 1;
	}
	BENCH_CHECK(gpu_stream_open(&b->stream, false) && gpu_event_open(&b->stream, &b->start) &&
				gpu_event_open(&b->stream, &b->stop));
	temp = gpu_temp_bytes(std::max(b->entries, b->probes) + 1);
	b->stream.temp = bench_alloc<unsigned char>((int64_t) temp);
	b->stream.temp_bytes = temp;
	BENCH_CHECK(gpu_pool_open(&b->pool, (size_t) b->entries * 200 + ((size_t) 1 << 30)));
	BENCH_CHECK(gpu_change_open(
		&b->change, &b->pool,
		std::max(BtreeOnGpu::change_needs().report_bytes, SkiplistOnGpu::change_needs().report_bytes),
		std::max(BtreeOnGpu::change_needs().memory_bytes, SkiplistOnGpu::change_needs().memory_bytes)));
	bandwidth = copy_bandwidth(b);
	for (int nw = 1; nw <= 2; nw++)
	{
		Entries e;
		GpuTree *tree = new GpuTree;
		GpudsView view;

		make_entries(b, &e, nw);
		load(b, e, tree);
		BENCH_CHECK(gpu_tree_view(tree, &b->pool, &view) && view.entries == (uint64_t) e.n);
		bench_points(b, e, view);
		if (nw == 1)
		{
			bench_sorted(b, e, view);
			bench_ranges(b, e, view);
			bench_counts(b, e, view);
			bench_visible(b, e, view);
		}
		gpu_tree_withdraw(tree);
		BENCH_CHECK(gpu_tree_drop(&b->change, tree) == GPU_OK);
		delete tree;
		if (nw == 1)
		{
			bench_snapshot(b, e);
			bench_other<SkiplistOnGpu>(b, bench_skiplist, e);
			bench_other<AvlOnGpu>(b, bench_avl, e);
		}
		free_entries(&e);
	}
	rows_of = b;
	if (!bench_change(&b->pool, b->entries, b->seed + 1000, change_row))
	{
		fprintf(stderr, "building or changing a tree failed\n");
		b->wrong++;
	}
	write_rows(*b, bandwidth, out);
	if (b->wrong > 0)
	{
		fprintf(stderr, "%llu answers are wrong\n", (unsigned long long) b->wrong);
		return 1;
	}
	return 0;
}
