/*-------------------------------------------------------------------------
 *
 * beside.c
 *	  Readers beside an applier, with every structure of the table: for the thread sanitizer, and
 *	  for entries that are missed, come twice, or never were.
 *
 * Of each key some entries stay and others come and go, so that keys grow from none to many entries
 * and shrink again, and a table of them does, too.  Readers look keys up, whole or from some entry on,
 * and go through everything.  They must find all entries that stay, in order.
 *
 *	  usage: beside [seconds for each structure and distribution of keys]
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "door.h"

#define READERS 4
#define KEYS 600
#define LOOKUPS 40
#define TIDS 12 /* of a key, at most */
#define OWNER 1

/* Distributions of keys. */
enum
{
	SCATTERED, /* most stay, and a table is split while they are read */
	ALIKE,     /* all in one line of a hash table and those after it */
	KINDS
};

static const Door *door;
static Arena *arena;
static DoorTree tree;
static PinSlot pins[READERS];
static uint64_t keys[KINDS][KEYS];
static int kind;
static int stop;
static uint64_t answers;

static uint64_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* The scan function of one of the instruction sets of this machine, another at every call. */
static CpuScan
scan_by(uint64_t *random)
{
	int n;
	const GpudsCpuKernels *const *variants = gpuds_cpu_variants(&n);

	return variants[next_random(random) % (uint64_t) n]->scan[door->number];
}

/* Keys of this distribution that are used. */
static int
nkeys(void)
{
	return kind == ALIKE ? 24 : KEYS;
}

/* Entry i of key k. */
static GpudsEntry
entry(int k, int i)
{
	GpudsEntry e = { keys[kind][k], 0, (uint64_t) i << 16 | 1 };

	return e;
}

/* Does an entry stay?  Two of most keys do, one of some, none of others, many of a few. */
static bool
stays(int k, int i)
{
	static const int stay[] = { 2, 1, 2, 0, 2, 3, 1, 9 };

	return i * 5 % TIDS < stay[k % 8];
}

/* An answer to a scan of key k behind entry after: ascending, with all that stays. */
static int64_t
check_key(const GpudsEntry *out, int64_t n, int k, int after)
{
	int64_t at = 0;

	for (int i = after + 1; i < TIDS; i++)
	{
		GpudsEntry e = entry(k, i);
		bool there = at < n && entry_equal(&out[at], &e);

		CHECK(there || !stays(k, i));
		at += there;
	}
	return at;
}

/* Looks some keys up, all entries of each or those behind some.  False: the tree was withdrawn. */
static bool
look_up(uint64_t *random)
{
	GpudsInterval intervals[LOOKUPS];
	int chosen[LOOKUPS];
	int after[LOOKUPS];
	GpudsEntry out[LOOKUPS * TIDS + 1];
	GpudsScan scan = { intervals, 0, 0, false, { 0, 0, 0 }, NULL };
	int64_t got = 0;
	int64_t at = 0;

	for (int k = (int) (next_random(random) % 20); k < nkeys() && scan.n < LOOKUPS;
		 k += 1 + (int) (next_random(random) % 20))
	{
		GpudsEntry e = entry(k, 0);

		chosen[scan.n] = k;
		after[scan.n] = (int) (next_random(random) % 3) * 4 - 1;
		intervals[scan.n] = door_key(&e);
		if (after[scan.n] >= 0)
			intervals[scan.n].lo.t = entry(k, after[scan.n]).t + 1;
		scan.n++;
	}
	/* in one piece, or in small ones: what is behind the last entry may have changed then */
	do
	{
		int64_t cap = next_random(random) % 2 ? LOOKUPS * TIDS + 1 - got : 3;
		int64_t n = scan_by(random)(arena, &tree.common, &scan, true, out + got, cap);

		if (n < 0)
			return false;
		got += n;
		if (n < cap)
			break;
	} while (got + 3 <= LOOKUPS * TIDS + 1);
	for (int64_t i = 0; i < scan.n; i++)
		at += check_key(out + at, got - at, chosen[i], after[i]);
	CHECK(at == got);
	return true;
}

/* Goes through everything.  False: the tree was withdrawn. */
static bool
walk(uint64_t *random)
{
	static const GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, 0, UINT64_MAX } };
	GpudsScan scan = { &all, 1, 0, false, { 0, 0, 0 }, NULL };
	GpudsEntry out[KEYS * TIDS + 1];
	int64_t cap = 1 + (int64_t) (next_random(random) % (KEYS * TIDS));
	int64_t got = 0;
	int64_t n;
	int64_t at = 0;

	do
	{
		cap = cap < KEYS * TIDS + 1 - got ? cap : KEYS * TIDS + 1 - got;
		n = scan_by(random)(arena, &tree.common, &scan, true, out + got, cap);
		if (n < 0)
			return false;
		got += n;
	} while (n == cap);
	for (int k = 0; k < nkeys(); k++)
		at += check_key(out + at, got - at, k, -1);
	CHECK(at == got);
	return true;
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

/* What stays, as a new tree. */
static void
build(void)
{
	Model m;

	model_init(&m, KEYS * TIDS);
	for (int k = 0; k < nkeys(); k++)
	{
		for (int i = 0; i < TIDS; i++)
		{
			if (stays(k, i))
				m.e[m.n++] = entry(k, i);
		}
	}
	CHECK(door_build(door, arena, &tree, &m, 1, 90) == KERNEL_OK);
	free(m.e);
}

static void *
applier(void *arg)
{
	static bool there[KEYS][TIDS];
	static GpudsOp ops[KEYS * TIDS];
	uint64_t random = 5;

	(void) arg;
	memset(there, 0, sizeof(there));
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		/* few keys or all of them, mostly growing or mostly shrinking */
		uint64_t step = 1 + next_random(&random) % (next_random(&random) % 2 ? 3 : 200);
		uint64_t come = next_random(&random) % 5;
		int64_t n = 0;

		for (uint64_t k = next_random(&random) % (uint64_t) nkeys(); k < (uint64_t) nkeys(); k += step)
		{
			for (int i = 0; i < TIDS; i++)
			{
				bool comes = next_random(&random) % 4 < come;

				if (stays((int) k, i) || comes == there[k][i] || next_random(&random) % 2)
					continue;
				ops[n].e = entry((int) k, i);
				ops[n++].order = comes ? GPUDS_OP_INSERT : GPUDS_OP_DELETE;
				there[k][i] = comes;
			}
		}
		CHECK(door->cpu.apply(arena, &tree.common, ops, n) == KERNEL_OK);
		door->cpu.reclaim(arena, &tree.common, pin_oldest(pins, READERS, OWNER));
		if (next_random(&random) % 50 == 0)
			door_verify(door, arena, &tree);
		if (next_random(&random) % 200 == 0)
		{
			uint64_t version;

			cpu_tree_withdraw(&tree.common);
			version = tree.common.version;
			while (pin_oldest(pins, READERS, OWNER) < version)
				sched_yield();
			door->cpu.release(arena, &tree.common);
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
	door_init(&tree);
	build();
	CHECK(pthread_create(&threads[READERS], NULL, applier, NULL) == 0);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&threads[i], NULL, reader, (void *) (intptr_t) i) == 0);
	nanosleep(&pause, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i <= READERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(answers > 0);
	door->cpu.reclaim(arena, &tree.common, UINT64_MAX);
	door_verify(door, arena, &tree);
	door_drop(door, arena, &tree);
	CHECK(arena_used(arena) == 0);
	printf(" %s %llu answers,", door->name, (unsigned long long) answers);
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;

	arena = test_arena((size_t) 32 << 20);
	(void) gpuds_cpu_kernels();
	for (int k = 0; k < KEYS; k++)
	{
		keys[SCATTERED][k] = (uint64_t) k * 1000003;
		keys[ALIKE][k] = door_alike((uint64_t) k);
	}
	printf("beside:");
	for (int d = 0; d < DOORS; d++)
	{
		door = &doors[d];
		for (kind = 0; kind < KINDS; kind++)
			run(seconds);
	}
	printf(" ok\n");
	free(arena);
	return 0;
}
