/*-------------------------------------------------------------------------
 *
 * beside.c
 *	  Readers beside an applier, with every structure of the table: for the thread sanitizer, and
 *	  for entries that are missed, come twice, or never were.
 *
 *	  usage: beside [seconds for each structure and distribution of keys]
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "steady_set.h"

#define READERS 4
#define OWNER 1

static PinSlot pins[READERS];
static int stop;
static uint64_t answers;

/* That of one of the instruction sets of this machine. */
static CpuScan
scan_by(uint64_t *random)
{
	int n;
	const GpudsCpuKernels *const *variants = gpuds_cpu_variants(&n);

	return variants[next_random(random) % (uint64_t) n]->scan[vtable->number];
}

static void *
reader(void *arg)
{
	int me = (int) (intptr_t) arg;
	uint64_t random = (uint64_t) me * 77 + 1;
	uint64_t done = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		pin_version(&pins[me], OWNER, &tree.common.version);
		done += next_random(&random) % 20 == 0 ? walk(&random) : look_up(&random);
		pin_release(&pins[me]);
	}
	__atomic_fetch_add(&answers, done, __ATOMIC_RELAXED);
	return NULL;
}

static void *
applier(void *arg)
{
	static bool there[KEYS][TIDS];
	static GpudsOp ops[KEYS * TIDS];
	uint64_t random = 5;
	GpudsEntry packed = { 0, 0, 0 };
	int64_t units;

	(void) arg;
	memset(there, 0, sizeof(there));
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		int64_t n = make_ops(ops, there, &random);

		CHECK(vtable->cpu.apply(arena, &tree.common, ops, n) == KERNEL_OK);
		CHECK(vtable->cpu.pack(arena, &tree.common, &packed, 100, &units) == KERNEL_OK);
		vtable->cpu.reclaim(arena, &tree.common, pin_oldest(pins, READERS, OWNER));
		if (next_random(&random) % 50 == 0)
			vtable_verify(vtable, arena, &tree);
		if (next_random(&random) % 200 == 0)
		{
			uint64_t version;

			cpu_tree_withdraw(&tree.common);
			version = tree.common.version;
			while (pin_oldest(pins, READERS, OWNER) < version)
				sched_yield();
			vtable->cpu.release(arena, &tree.common);
			CHECK(arena_used(arena) == 0);
			memset(there, 0, sizeof(there));
			build();
		}
	}
	return NULL;
}

static void
run(double seconds)
{
	struct timespec pause = { (time_t) seconds, (long) ((seconds - (double) (time_t) seconds) * 1e9) };
	pthread_t threads[READERS + 1];

	stop = 0;
	answers = 0;
	memset(&tree, 0, sizeof(tree));
	vtable_init(&tree);
	build();
	CHECK(pthread_create(&threads[READERS], NULL, applier, NULL) == 0);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&threads[i], NULL, reader, (void *) (intptr_t) i) == 0);
	nanosleep(&pause, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i <= READERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(answers > 0);
	vtable->cpu.reclaim(arena, &tree.common, UINT64_MAX);
	vtable_verify(vtable, arena, &tree);
	vtable_drop(vtable, arena, &tree);
	CHECK(arena_used(arena) == 0);
	printf(" %s %llu answers,", vtable->name, (unsigned long long) answers);
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;

	arena = test_arena((size_t) 32 << 20);
	(void) gpuds_cpu_kernels();
	make_keys();
	printf("beside:");
	for (int d = 0; d < VTABLES; d++)
	{
		vtable = &vtables[d];
		for (kind = 0; kind < KINDS; kind++)
			run(seconds);
	}
	printf(" ok\n");
	free(arena);
	return 0;
}
