/*-------------------------------------------------------------------------
 *
 * threads.c
 *	  Readers against writers, for the thread sanitizer and for answers that
 *	  mix versions.
 *
 * Two writers, each with a tree of its own in a common arena, apply batches,
 * reclaim, and now and then withdraw their tree and build it anew.  A batch
 * puts in or takes out all GROUP entries of a key, so that a reader must find
 * all of them or none; and the number of keys in the tree is told by a single
 * entry at the end.
 *
 *	  usage: threads [seconds]
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "loops.h"

#define READERS 8
#define TREES 2
#define KEYS 500
#define GROUP 10
#define LAST_KEY UINT64_C(1000000)

static Arena *arena;
static CpuTree trees[TREES];
static PinSlot pins[READERS];
static int stop;
static uint64_t answers;

static uint64_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* How many entries some intervals have, by looking at each or by ranks. */
static int64_t
count_all(const GpudsCpuKernels *kernels, const GpudsView *view, const GpudsInterval *intervals, int64_t n,
		  bool full)
{
	GpudsScan scan = { intervals, n, 0, false, { 0, 0, 0 }, NULL };
	GpudsEntry others[CPU_COUNT_ROOM + 20];
	CpuCount count = { .full = full, .others = others, .others_size = CPU_COUNT_ROOM + 20 };
	int64_t handed_back = 0;

	while (scan.next < n)
	{
		count.nothers = 0;
		test_count(kernels, view, &scan, 1000, &count);
		handed_back += count.nothers;
	}
	return count.counted + handed_back;
}

static void *
reader(void *arg)
{
	int me = (int) (intptr_t) arg;
	uint64_t random = (uint64_t) me * 77 + 1;
	int nvariants;
	const GpudsCpuKernels *const *variants = gpuds_cpu_variants(&nvariants);
	GpudsEntry out[KEYS * GROUP + 2];
	GpudsInterval intervals[KEYS];
	uint64_t done = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		int t = (int) (next_random(&random) % TREES);
		const GpudsCpuKernels *kernels = variants[next_random(&random) % (uint64_t) nvariants];
		bool forward = next_random(&random) % 2 != 0;
		GpudsView view;

		pin_version(&pins[me], (uint64_t) t + 1, &trees[t].version);
		if (cpu_tree_view(arena, &trees[t], &view))
		{
			GpudsInterval all = { { 0, 0, 0 },
								  { UINT64_MAX, view.nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };
			GpudsScan scan = { &all, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
			int64_t n = 0, got;
			int nkeys = 0;

			/* everything, in pieces */
			do
			{
				got = test_scan(kernels, &view, &scan, forward, out + n, 300);
				n += got;
			} while (got == 300);
			CHECK(count_all(kernels, &view, &all, 1, forward) == n);
			if (n > 0)
			{
				const GpudsEntry *last = &out[forward ? n - 1 : 0];

				CHECK(n % GROUP == 1 && last->w0 == LAST_KEY && last->t == (uint64_t) n / GROUP);
			}
			for (int64_t i = 1; i < n; i++)
				CHECK(forward ? entry_less(&out[i - 1], &out[i]) : entry_less(&out[i], &out[i - 1]));

			/* keys */
			for (uint64_t key = next_random(&random) % 20; key < KEYS; key += 1 + next_random(&random) % 20)
			{
				intervals[nkeys].lo.w0 = intervals[nkeys].hi.w0 = key;
				intervals[nkeys].lo.w1 = 0;
				intervals[nkeys].hi.w1 = view.nwords == 2 ? UINT64_MAX : 0;
				intervals[nkeys].lo.t = 0;
				intervals[nkeys].hi.t = UINT64_MAX;
				nkeys++;
			}
			scan.intervals = intervals;
			scan.points = NULL;
			scan.n = nkeys;
			scan.next = forward ? 0 : nkeys;
			scan.inside = false;
			got = test_scan(kernels, &view, &scan, forward, out, KEYS * GROUP + 1);
			CHECK(got % GROUP == 0);
			for (int64_t i = 0; i < got; i += GROUP)
				CHECK(out[i].w0 == out[i + GROUP - 1].w0);
			CHECK(count_all(kernels, &view, intervals, nkeys, forward) == got);
			done++;
		}
		pin_release(&pins[me]);
	}
	__atomic_fetch_add(&answers, done, __ATOMIC_RELAXED);
	return NULL;
}

/* All entries of a key, or the single entry that counts the keys. */
static int64_t
key_ops(GpudsOp *ops, uint64_t key, int nwords, bool delete)
{
	for (uint64_t i = 0; i < GROUP; i++)
	{
		ops[i].e.w0 = key;
		ops[i].e.w1 = nwords == 2 ? i % 3 : 0;
		ops[i].e.t = i / (nwords == 2 ? 3 : 1) * 7;
		ops[i].order = delete;
	}
	qsort(ops, GROUP, sizeof(GpudsOp), test_compare);
	return GROUP;
}

static void *
writer(void *arg)
{
	int t = (int) (intptr_t) arg;
	CpuTree *tree = &trees[t];
	uint64_t random = (uint64_t) t * 1001 + 5;
	static GpudsOp all_ops[TREES][KEYS * GROUP + 4];
	GpudsOp *ops = all_ops[t];
	bool there[KEYS] = { false };
	uint64_t nkeys = 0;
	int nwords = (int) tree->nwords;
	GpudsEntry packed = { 0, 0, 0 };
	int64_t inserted, deleted, units;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		int64_t n = 0;
		uint64_t before = nkeys;
		uint64_t step = 1 + next_random(&random) % (next_random(&random) % 2 ? 5 : 200);

		if (next_random(&random) % 50 == 0)
		{
			uint64_t version = cpu_tree_withdraw(tree);

			while (pin_oldest(pins, READERS, (uint64_t) t + 1) < version)
				sched_yield();
			cpu_tree_release(arena, tree);
			nwords = 3 - nwords;
			cpu_btree_init(tree, nwords);
			memset(there, 0, sizeof(there));
			before = nkeys = 0;
		}
		for (uint64_t key = next_random(&random) % KEYS; key < KEYS; key += step)
		{
			n += key_ops(ops + n, key, nwords, there[key]);
			there[key] = !there[key];
			nkeys += there[key] ? 1 : UINT64_MAX;
		}
		for (int i = 0; i < 2; i++)
		{
			uint64_t which = (i == 0) == (before < nkeys) ? before : nkeys;

			if (before == nkeys)
				continue;
			ops[n].e.w0 = LAST_KEY;
			ops[n].e.w1 = 0;
			ops[n].e.t = which;
			ops[n].order = which == before;
			n++;
		}
		CHECK(cpu_btree_apply(arena, tree, ops, n, &inserted, &deleted) == KERNEL_OK);
		CHECK(btree_cpu_pack(arena, tree, &packed, 100, &units) == KERNEL_OK);
		cpu_tree_reclaim(arena, tree, pin_oldest(pins, READERS, (uint64_t) t + 1));
		if (next_random(&random) % 20 == 0)
			test_verify(arena, tree);
	}
	return NULL;
}

int
main(int argc, char **argv)
{
	struct timespec pause = { argc > 1 ? atoi(argv[1]) : 5, 0 };
	pthread_t threads[READERS + TREES];
	int n = 0;

	arena = test_arena((size_t) 32 << 20);
	(void) gpuds_cpu_kernels();
	for (int t = 0; t < TREES; t++)
		cpu_btree_init(&trees[t], 1 + t);
	for (int i = 0; i < TREES; i++)
		CHECK(pthread_create(&threads[n++], NULL, writer, (void *) (intptr_t) i) == 0);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&threads[n++], NULL, reader, (void *) (intptr_t) i) == 0);
	nanosleep(&pause, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(answers > 0);
	for (int t = 0; t < TREES; t++)
	{
		CHECK(pin_oldest(pins, READERS, (uint64_t) t + 1) == UINT64_MAX);
		cpu_tree_reclaim(arena, &trees[t], UINT64_MAX);
		test_verify(arena, &trees[t]);
		cpu_tree_withdraw(&trees[t]);
		cpu_tree_release(arena, &trees[t]);
	}
	CHECK(arena_used(arena) == 0);
	printf("threads: ok, %llu answers\n", (unsigned long long) answers);
	free(arena);
	return 0;
}
