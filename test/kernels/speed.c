/*-------------------------------------------------------------------------
 *
 * speed.c
 *	  How fast the kernels are on this machine.  Not a test.
 *
 *	  usage: speed [millions of entries]
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#define AVL_WAIT sched_yield

#include "structure_vtable.h"

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static void
report(const char *what, double ns, double per, const char *unit)
{
	printf("%-44s %9.1f ns %s  (%.1f ms)\n", what, ns / per, unit, ns / 1e6);
}

/* Counts all entries of some intervals, by a map that vouches for all, or by ranks. */
static int64_t
count_all(const GpudsView *view, const GpudsInterval *intervals, int64_t n, bool full)
{
	static unsigned char map[1 << 20];
	GpudsEntry others[CPU_COUNT_ROOM];
	GpudsScan scan = { intervals, n, 0, false, { 0, 0, 0 }, NULL };
	CpuCount count = {
		.map = map, .map_bytes = sizeof(map), .full = full, .others = others, .others_size = CPU_COUNT_ROOM
	};

	memset(map, 0xFF, sizeof(map));
	while (scan.next < n)
		cpu_btree_count(view, &scan, 64 * 1024, &count);
	return count.counted;
}

static void
probes(const GpudsView *view, const GpudsEntry *e, int64_t n, int64_t nprobes, const char *what)
{
	GpudsInterval *intervals = (GpudsInterval *) malloc((size_t) nprobes * sizeof(GpudsInterval));
	GpudsEntry *keys = (GpudsEntry *) malloc((size_t) nprobes * 2 * sizeof(GpudsEntry));
	GpudsEntry *out = (GpudsEntry *) malloc(4096 * sizeof(GpudsEntry));
	double best_scan = 1e18, best_count = 1e18, best_one = 1e18;
	char label[100];
	uint64_t sum = 0;

	for (int round = 0; round < 5; round++)
	{
		GpudsScan scan;
		double start;
		int64_t got;

		for (int64_t i = 0; i < nprobes; i++)
			keys[i] = e[test_below((uint64_t) n)];
		start = now();
		for (int64_t i = 0; i < nprobes; i++)
		{
			GpudsInterval one = { keys[i], keys[i] };
			GpudsScan s = { &one, 1, 0, false, { 0, 0, 0 }, NULL };

			one.lo.t = 0;
			one.hi.t = ENTRY_TID_MASK;
			sum += (uint64_t) cpu_btree_scan(view, &s, true, out, 1);
		}
		if (now() - start < best_one)
			best_one = now() - start;
		sort_entries(keys, keys + nprobes, nprobes);
		for (int64_t i = 0; i < nprobes; i++)
		{
			intervals[i].lo = intervals[i].hi = keys[i];
			intervals[i].lo.t = 0;
			intervals[i].hi.t = ENTRY_TID_MASK;
		}
		scan.intervals = intervals;
		scan.points = NULL;
		scan.n = nprobes;
		scan.next = 0;
		scan.inside = false;
		start = now();
		while ((got = cpu_btree_scan(view, &scan, true, out, 4096)) > 0)
			sum += (uint64_t) got;
		if (now() - start < best_scan)
			best_scan = now() - start;
		start = now();
		sum += (uint64_t) count_all(view, intervals, nprobes, round % 2 != 0);
		if (now() - start < best_count)
			best_count = now() - start;
	}
	snprintf(label, sizeof(label), "%s: single random lookups", what);
	report(label, best_one, (double) nprobes, "a lookup");
	snprintf(label, sizeof(label), "%s: scan, batch of %lld", what, (long long) nprobes);
	report(label, best_scan, (double) nprobes, "a probe");
	snprintf(label, sizeof(label), "%s: count, batch of %lld", what, (long long) nprobes);
	report(label, best_count, (double) nprobes, "a probe");
	if (sum == 0)
		printf("nothing found\n");
	free(intervals);
	free(keys);
	free(out);
}

static void
tree(int64_t n, int nwords, const char *what, bool few)
{
	Arena *arena = test_arena((size_t) n * 80 + (64 << 20));
	GpudsEntry *e = (GpudsEntry *) malloc((size_t) n * 2 * sizeof(GpudsEntry));
	GpudsEntry *out = (GpudsEntry *) malloc(4096 * sizeof(GpudsEntry));
	GpudsOp *ops = (GpudsOp *) malloc((size_t) n * sizeof(GpudsOp));
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	GpudsScan scan = { &all, 1, 0, false, { 0, 0, 0 }, NULL };
	CpuTree t;
	GpudsView view;
	CpuBtreeBuild build;
	int64_t inserted, deleted, got;
	double start;
	char label[100];

	if (nwords == 1)
		all.hi.w1 = 0;
	for (int64_t i = 0; i < n; i++)
	{
		e[i].w0 = few ? test_below(5) : test_random();
		e[i].w1 = nwords == 2 ? test_random() : 0;
		e[i].t = (uint64_t) (i / 100) << 16 | (uint64_t) (i % 100 + 1);
	}
	start = now();
	sort_entries(e, e + n, n);
	snprintf(label, sizeof(label), "%s: sort entries", what);
	report(label, now() - start, (double) n, "an entry");
	memset(&t, 0, sizeof(t));
	for (int round = 0; round < 2; round++)
	{
		if (round == 1)
		{
			cpu_tree_withdraw(&t);
			cpu_tree_release(arena, &t);
		}
		cpu_btree_init(&t, nwords);
		start = now();
		cpu_btree_build_begin(arena, &t, &build, 90);
		CHECK(btree_cpu_build_add(&build, e, n) == KERNEL_OK);
		CHECK(btree_cpu_build_finish(&build) == KERNEL_OK);
		snprintf(label, sizeof(label), "%s: bulk build%s", what, round == 0 ? ", memory untouched" : "");
		report(label, now() - start, (double) n, "an entry");
	}
	printf("%-44s %9.1f bytes an entry, height %d\n", what, (double) arena_space_bytes(&t.space) / (double) n,
		   (int) head_height(t.head));
	cpu_tree_view(arena, &t, &view);
	if (!few)
	{
		probes(&view, e, n, 100000, what);
		probes(&view, e, n, 1000, what);
	}
	start = now();
	while ((got = cpu_btree_scan(&view, &scan, true, out, 4096)) == 4096)
		;
	snprintf(label, sizeof(label), "%s: scan of everything", what);
	report(label, now() - start, (double) n, "an entry");
	for (int full = 0; full < 2; full++)
	{
		start = now();
		CHECK(count_all(&view, &all, 1, full) == n);
		snprintf(label, sizeof(label), "%s: count of everything%s", what, full ? ", by ranks" : "");
		report(label, now() - start, (double) n, "an entry");
	}
	for (int64_t size = 1; size <= n / 10; size *= size < 10000 ? 100 : 10)
	{
		int rounds = size == 1 ? 20000 : size == 100 ? 500 : 4;
		double total = 0;

		for (int r = 0; r < rounds; r++)
		{
			for (int64_t i = 0; i < size; i++)
			{
				ops[i].e = e[test_below((uint64_t) n)];
				ops[i].e.t ^= 1 << 10;
				ops[i].order = GPUDS_OP_INSERT;
			}
			sort_ops(ops, (GpudsOp *) (e + n), size);
			got = sort_last_ops(ops, size);
			start = now();
			CHECK(cpu_btree_apply(arena, &t, ops, got, &inserted, &deleted) == KERNEL_OK);
			cpu_tree_reclaim(arena, &t, UINT64_MAX);
			total += now() - start;
		}
		snprintf(label, sizeof(label), "%s: apply %lld random inserts", what, (long long) size);
		report(label, total / rounds, (double) size, "an op");
	}
	start = now();
	for (int r = 0; r < 100000; r++)
	{
		ops[0].e.w0 = ops[0].e.w1 = UINT64_MAX;
		if (nwords == 1)
			ops[0].e.w1 = 0;
		ops[0].e.t = (uint64_t) r;
		ops[0].order = GPUDS_OP_INSERT;
		CHECK(cpu_btree_apply(arena, &t, ops, 1, &inserted, &deleted) == KERNEL_OK);
		cpu_tree_reclaim(arena, &t, UINT64_MAX);
	}
	snprintf(label, sizeof(label), "%s: apply 1 ascending insert", what);
	report(label, (now() - start) / 1, 100000, "an op");
	start = now();
	for (int64_t i = 0; i < n / 5; i++)
	{
		ops[i].e = e[i * 5];
		ops[i].order = GPUDS_OP_DELETE;
	}
	start = now();
	CHECK(cpu_btree_apply(arena, &t, ops, n / 5, &inserted, &deleted) == KERNEL_OK);
	snprintf(label, sizeof(label), "%s: apply deletes of every fifth", what);
	report(label, now() - start, (double) (n / 5), "an op");
	start = now();
	test_verify(arena, &t);
	snprintf(label, sizeof(label), "%s: verify", what);
	report(label, now() - start, (double) n, "an entry");
	free(arena);
	free(e);
	free(out);
	free(ops);
}

/* Looks random keys up, ascending in batches of a size, through the structure's row. */
static void
look_up(const Vtable *vtable, const Arena *arena, const VtableTree *t, const GpudsEntry *e, int64_t n,
		int64_t size)
{
	const int64_t keys = 100000;
	GpudsInterval *intervals = (GpudsInterval *) malloc((size_t) keys * sizeof(GpudsInterval));
	GpudsEntry out[4096];
	double best = 1e18;
	char label[100];

	for (int round = 0; round < 5; round++)
	{
		double start;
		int64_t found = 0;

		for (int64_t i = 0; i < keys; i++)
			intervals[i] = vtable_key(&e[test_below((uint64_t) n)]);
		for (int64_t i = 0; i < keys; i += size)
			qsort(intervals + i, (size_t) (size < keys - i ? size : keys - i), sizeof(GpudsInterval),
				  test_compare);
		start = now();
		for (int64_t i = 0; i < keys; i += size)
		{
			GpudsScan scan = {
				intervals + i, size < keys - i ? size : keys - i, 0, false, { 0, 0, 0 }, NULL
			};

			while (scan.next < scan.n)
				found += gpuds_cpu_kernels()->scan[vtable->number](arena, &t->common, &scan, true, out, 4096);
		}
		if (now() - start < best)
			best = now() - start;
		CHECK(found >= keys);
	}
	snprintf(label, sizeof(label), "%s: lookups in batches of %lld", vtable->name, (long long) size);
	report(label, best, (double) keys, "a key");
	free(intervals);
}

/* Goes through everything, through the structure's row. */
static void
walk(const Vtable *vtable, const Arena *arena, const VtableTree *t, int64_t n, bool forward)
{
	const GpudsInterval all = vtable_all(1);
	GpudsScan scan = { &all, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
	GpudsEntry out[4096];
	double start = now();
	int64_t found = 0;
	char label[100];

	while (scan.next == (forward ? 0 : 1))
		found += gpuds_cpu_kernels()->scan[vtable->number](arena, &t->common, &scan, forward, out, 4096);
	CHECK(found == n);
	snprintf(label, sizeof(label), "%s: scan of everything %s", vtable->name,
			 forward ? "forward" : "backward");
	report(label, now() - start, (double) n, "an entry");
}

/* Deletes and inserts random entries, some of which are chosen twice, size at a time. */
static void
scattered(const Vtable *vtable, Arena *arena, VtableTree *t, const GpudsEntry *e, int64_t n, int64_t size)
{
	const int64_t rounds = size < 100000 ? 100000 / size : 1;
	GpudsOp *ops = (GpudsOp *) malloc((size_t) size * 2 * sizeof(GpudsOp));
	char label[100];

	for (int deletes = 1; deletes >= 0; deletes--)
	{
		uint64_t seed = test_seed;
		double total = 0;
		int64_t done = 0;

		for (int64_t r = 0; r < rounds; r++)
		{
			double start;
			int64_t got;

			for (int64_t i = 0; i < size; i++)
			{
				ops[i].e = e[test_below((uint64_t) n)];
				ops[i].order = (uint64_t) deletes;
			}
			sort_ops(ops, ops + size, size);
			got = sort_last_ops(ops, size);
			start = now();
			CHECK(vtable->cpu.apply(arena, &t->common, ops, got) == KERNEL_OK);
			vtable->cpu.reclaim(arena, &t->common, UINT64_MAX);
			total += now() - start;
			done += got;
		}
		snprintf(label, sizeof(label), "%s: apply %lld random %s at a time", vtable->name, (long long) size,
				 deletes ? "deletes" : "inserts");
		report(label, total, (double) done, "an op");
		/* the same entries come again */
		if (deletes)
			test_seed = seed;
	}
	free(ops);
}

/* One thread's share of a batch. */
typedef struct Share
{
	pthread_t thread;
	Arena *arena;
	AvlWorker w;
	const GpudsOp *ops;
	int64_t n;
} Share;

static void *
work(void *arg)
{
	Share *share = (Share *) arg;

	CHECK(avl_worker_apply(&share->w, share->arena, NULL, share->ops, share->n) == share->n);
	return NULL;
}

/*
 * Ascending operations on an AVL tree by so many threads, each with a stretch of them.  Returns their
 * nanoseconds.
 */
static double
share_out(Arena *arena, CpuTree *t, const GpudsOp *ops, int64_t n, int nthreads)
{
	Share shares[8];
	double start;
	int64_t change = 0;

	for (int k = 0; k < nthreads; k++)
	{
		shares[k] = (Share){ .arena = arena, .ops = ops + n * k / nthreads };
		shares[k].n = ops + n * (k + 1) / nthreads - shares[k].ops;
		avl_worker_init(&shares[k].w, arena, t);
		CHECK(avl_worker_take(&shares[k].w, arena, t, shares[k].n));
	}
	start = now();
	for (int k = 0; k < nthreads; k++)
		CHECK(pthread_create(&shares[k].thread, NULL, work, &shares[k]) == 0);
	for (int k = 0; k < nthreads; k++)
		CHECK(pthread_join(shares[k].thread, NULL) == 0);
	start = now() - start;
	for (int k = 0; k < nthreads; k++)
	{
		change += shares[k].w.change;
		avl_worker_end(&shares[k].w, arena, (avl_cpu_tree *) t);
	}
	cpu_tree_publish(t, t->head, (uint64_t) ((int64_t) t->entries + change));
	avl_cpu_reclaim(arena, t, UINT64_MAX);
	return start;
}

/* Half of some random entries of an AVL tree go and come, by one thread and by two. */
static void
by_threads(Arena *arena, VtableTree *t, const GpudsEntry *e, int64_t n, int64_t size)
{
	GpudsOp *ops = (GpudsOp *) malloc((size_t) size * 2 * sizeof(GpudsOp));
	char label[100];

	for (int nthreads = 1; nthreads <= 2; nthreads++)
	{
		double total = 0;
		int64_t done = 0;

		for (int round = 0; round < 6; round++)
		{
			int64_t got;

			for (int64_t i = 0; i < size; i++)
			{
				uint64_t k = test_below((uint64_t) n);

				ops[i].e = e[k];
				ops[i].order = (uint64_t) round << 1 | (k + (uint64_t) round) % 2;
			}
			sort_ops(ops, ops + size, size);
			got = sort_last_ops(ops, size);
			total += share_out(arena, &t->common, ops, got, nthreads);
			done += got;
		}
		snprintf(label, sizeof(label), "avl: %lld mixed at a time by %d threads", (long long) size, nthreads);
		report(label, total, (double) done, "an op");
	}
	free(ops);
}

/* Every structure, as src/ uses it, with n entries of keys that have per_key entries each. */
static void
structure(const Vtable *vtable, int64_t n, int64_t per_key)
{
	Arena *arena = test_arena((size_t) n * 100 + (64 << 20));
	GpudsOp *ops = (GpudsOp *) malloc((size_t) n / 5 * sizeof(GpudsOp));
	VtableTree t;
	Model m;
	double start;
	char label[100];

	model_init(&m, n);
	for (int64_t i = 0; i < n; i++)
	{
		m.e[i].w0 = (uint64_t) (i / per_key) * UINT64_C(0x9E3779B97F4A7C15);
		m.e[i].w1 = 0;
		m.e[i].t = (uint64_t) i << 16 | 1;
	}
	m.n = n;
	qsort(m.e, (size_t) n, sizeof(GpudsEntry), test_compare);
	printf("%s, %lld entries a key\n", vtable->name, (long long) per_key);
	memset(&t, 0, sizeof(t));
	vtable_init(&t);
	start = now();
	CHECK(vtable_build(vtable, arena, &t, &m, 1, 90) == KERNEL_OK);
	snprintf(label, sizeof(label), "%s: build", vtable->name);
	report(label, now() - start, (double) n, "an entry");
	printf("%-44s %9.1f bytes an entry\n", vtable->name,
		   (double) arena_space_bytes(&t.common.space) / (double) n);
	for (int64_t size = 1; size <= 100000 && per_key < 100; size = size == 1    ? 16
																   : size == 16 ? 100000
																				: size + 1)
		look_up(vtable, arena, &t, m.e, n, size);
	for (int forward = 1; forward >= 0; forward--)
		walk(vtable, arena, &t, n, forward);
	for (int64_t size = 1; size <= 1000000; size *= 100)
		scattered(vtable, arena, &t, m.e, n, size);
	for (int deletes = 1; deletes >= 0; deletes--)
	{
		start = now();
		for (int64_t i = 0; i < n / 5; i++)
		{
			ops[i].e = m.e[i * 5];
			ops[i].order = (uint64_t) deletes;
		}
		for (int64_t i = 0; i < n / 5; i += 1000)
		{
			CHECK(vtable->cpu.apply(arena, &t.common, ops + i, n / 5 - i < 1000 ? n / 5 - i : 1000) ==
				  KERNEL_OK);
			vtable->cpu.reclaim(arena, &t.common, UINT64_MAX);
		}
		snprintf(label, sizeof(label), "%s: apply 1000 %s at a time", vtable->name,
				 deletes ? "deletes" : "inserts");
		report(label, now() - start, (double) (n / 5), "an op");
	}
	if (vtable->number == GPUDS_STRUCTURE_AVL)
	{
		for (int64_t size = 10000; size <= 1000000; size *= 100)
			by_threads(arena, &t, m.e, n, size);
	}
	vtable_verify(vtable, arena, &t);
	free(m.e);
	free(ops);
	free(arena);
}

int
main(int argc, char **argv)
{
	int64_t n = (int64_t) (1e6 * (argc > 1 ? atof(argv[1]) : 5));
	uint64_t *a = (uint64_t *) malloc((size_t) n * 2 * sizeof(uint64_t));
	double start;

	for (int64_t i = 0; i < n; i++)
		a[i] = test_random() & ENTRY_TID_MASK;
	start = now();
	sort_u64(a, a + n, n);
	report("sort words", now() - start, (double) n, "a word");
	free(a);
	tree(n, 1, "one word", false);
	tree(n, 2, "two words", false);
	tree(n, 1, "five keys", true);
	for (int64_t per_key = 1; per_key <= n; per_key = per_key == 1 ? 4 : per_key == 4 ? n / 5 : n + 1)
	{
		for (int d = 0; d < VTABLES; d++)
			structure(&vtables[d], n, per_key);
	}
	return 0;
}
