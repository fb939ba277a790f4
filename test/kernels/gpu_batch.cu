/*-------------------------------------------------------------------------
 *
 * gpu_batch.cu
 *	  Batches of unsorted probes (points, counts, ranges) on a GPU, against a
 *	  sorted array.
 *
 *	  usage: gpu_batch [small | rounds [seed]]
 *
 * small is for compute-sanitizer.
 *
 *-------------------------------------------------------------------------
 */
#include "bench/batch.h"
#include "kernels/runtime/runtime.h"
#include "tree.h"

#define PROBES 3000
#define CAP 40

/* Memory that both sides use. */
template <typename T>
static T *
shared(size_t n)
{
	T *p = (T *) gpu_host_alloc(n * sizeof(T));

	CHECK(p != NULL);
	memset((void *) p, 0xA5, n * sizeof(T));
	return p;
}

static GpuStream stream;
static uint64_t *lo, *hi, *w0, *t;
static uint32_t *found;
static int passed = 0;

static void
finish(void)
{
	gpu_check(&stream, "launch", cudaGetLastError());
	if (!gpu_finish(&stream))
		fprintf(stderr, "%s\n", stream.why);
	CHECK(gpu_ok(&stream));
	passed++;
}

template <int nw, int tile_probes>
static void
check_points(const GpudsView &view, const Model *m, int kind, uint64_t range)
{
	int64_t n = 1 + (int64_t) test_below(PROBES);

	for (int64_t i = 0; i < n; i++)
	{
		GpudsEntry e = test_bound(m, kind, nw, range);

		lo[i] = e.w0;
		hi[i] = e.w1;
		t[i] = 0;
	}
	gpu_batch_points<nw, tile_probes>
		<<<gpu_batch_blocks(n, tile_probes), GPU_BATCH_BLOCK, 0, stream.stream>>>(view, lo, hi, t, n);
	finish();
	for (int64_t i = 0; i < n; i++)
	{
		GpudsEntry e = { lo[i], nw == 2 ? hi[i] : 0, 0 };
		int64_t rank = model_rank(m, &e);
		bool there = rank < m->n && m->e[rank].w0 == e.w0 && m->e[rank].w1 == e.w1;

		CHECK(t[i] == (there ? m->e[rank].t : GPU_NOT_FOUND));
	}
}

/* Random ranges of the first key word, a few of them empty or of all. */
static void
make_ranges(const Model *m, int kind, uint64_t range, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
	{
		GpudsEntry a = test_bound(m, kind, 1, range);
		GpudsEntry b = test_below(3) ? test_bound(m, kind, 1, range) : a;
		bool ordered = a.w0 <= b.w0 || test_below(20) == 0;

		lo[i] = ordered ? a.w0 : b.w0;
		hi[i] = ordered ? b.w0 : a.w0;
		if (test_below(50) == 0)
			lo[i] = 0;
		if (test_below(50) == 0)
			hi[i] = UINT64_MAX;
	}
}

/* Entries of range i in the model. */
static int64_t
inside(const Model *m, int64_t i, int64_t *first)
{
	GpudsInterval interval = { { lo[i], 0, 0 }, { hi[i], 0, UINT64_MAX } };

	return test_inside(m, &interval, first);
}

template <int tile_ranges>
static void
check_counts(const GpudsView &view, const Model *m, int kind, uint64_t range)
{
	int64_t n = 1 + (int64_t) test_below(PROBES);

	make_ranges(m, kind, range, n);
	memset(found, 0xA5, (size_t) n * sizeof(uint32_t));
	gpu_batch_counts<tile_ranges>
		<<<gpu_batch_blocks(n, tile_ranges), GPU_BATCH_BLOCK, 0, stream.stream>>>(view, lo, hi, found, n);
	finish();
	for (int64_t i = 0; i < n; i++)
	{
		int64_t first;

		CHECK(found[i] == inside(m, i, &first));
	}
}

static void
check_ranges(const GpudsView &view, const Model *m, int kind, uint64_t range)
{
	int64_t n = 1 + (int64_t) test_below(PROBES);
	int cap = 1 + (int) test_below(CAP);

	make_ranges(m, kind, range, n);
	memset(w0, 0xA5, PROBES * CAP * sizeof(uint64_t));
	memset(t, 0xA5, PROBES * CAP * sizeof(uint64_t));
	gpu_batch_ranges<<<gpu_batch_blocks(n, 1), GPU_BATCH_BLOCK, 0, stream.stream>>>(view, lo, hi, cap, w0, t,
																					found, n);
	finish();
	for (int64_t i = 0; i < n; i++)
	{
		int64_t first;
		int64_t all = inside(m, i, &first);

		CHECK(found[i] == (all < cap ? all : cap));
		for (int64_t k = 0; k < cap; k++)
		{
			bool there = k < all;

			CHECK(w0[i * cap + k] == (there ? m->e[first + k].w0 : UINT64_C(0xA5A5A5A5A5A5A5A5)));
			CHECK(t[i * cap + k] == (there ? m->e[first + k].t : UINT64_C(0xA5A5A5A5A5A5A5A5)));
		}
	}
}

static void
run(int kind, int nwords, int64_t size)
{
	uint64_t range = (uint64_t) size * 2 + 10;
	GpudsView view;
	Model m;
	size_t bytes;
	unsigned char *there;

	model_fill(&m, size, kind, nwords, range);
	bytes = (size_t) (m.n * 10 + 64) * 4 * BTREE_UNIT_BYTES;
	there = (unsigned char *) gpu_alloc(bytes);
	CHECK(there != NULL);
	test_tree(&view, &m, nwords, test_below(2));
	gpu_copy_bus(&stream, there, view.base, bytes);
	CHECK(gpu_finish(&stream));
	free((void *) view.base);
	view.base = there;
	if (nwords == 1)
	{
		check_points<1, 6>(view, &m, kind, range);
		check_points<1, 8>(view, &m, kind, range);
		check_counts<2>(view, &m, kind, range);
		check_counts<4>(view, &m, kind, range);
		check_ranges(view, &m, kind, range);
	}
	else
	{
		check_points<2, 6>(view, &m, kind, range);
		check_points<2, 8>(view, &m, kind, range);
	}
	gpu_free(there, bytes);
	free(m.e);
}

int
main(int argc, char **argv)
{
	const int64_t sizes[] = { 0, 1, 8, 9, 60, 500, 3000, 20000 };
	bool few = argc > 1 && strcmp(argv[1], "small") == 0;
	int rounds = argc > 1 && !few ? atoi(argv[1]) : few ? 1 : 5;
	char why[200] = "";
	GpuCard card;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	if (!gpu_card(0, &card, why, sizeof(why)))
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	CHECK(gpu_stream_open(&stream, false));
	lo = shared<uint64_t>(PROBES);
	hi = shared<uint64_t>(PROBES);
	w0 = shared<uint64_t>(PROBES * CAP);
	t = shared<uint64_t>(PROBES * CAP);
	found = shared<uint32_t>(PROBES);
	for (int r = 0; r < rounds; r++)
	{
		for (int kind = few ? KEYS_DENSE : 0; kind < (few ? KEYS_FEW + 1 : KEYS_KINDS); kind++)
		{
			for (int nwords = 1; nwords <= 2; nwords++)
			{
				for (int64_t size : sizes)
				{
					if (!few || size <= 500)
						run(kind, nwords, size);
				}
			}
		}
	}
	printf("%s\n%d passed, 0 failed\n", card.name, passed);
	return 0;
}
