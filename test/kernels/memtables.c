/*-------------------------------------------------------------------------
 *
 * memtables.c
 *	  Generations of a memtable: scans against a model, memory that runs out, and
 *	  many threads that insert while others scan and a flusher drops what is old.
 *
 *	  usage: memtable [rounds [seed [seconds]]]
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "common.h"

#include "kernels/core/pins.h"
#include "kernels/memtable/collect.h"

#define MOST 3000

/* What has been inserted: an operation, and the generation that it is in. */
typedef struct Inserted
{
	GpudsOp op;
	int generation;
} Inserted;

static int
compare_inserted(const void *a, const void *b)
{
	const GpudsOp *x = &((const Inserted *) a)->op;
	const GpudsOp *y = &((const Inserted *) b)->op;

	if (!entry_equal(&x->e, &y->e))
		return entry_less(&x->e, &y->e) ? -1 : 1;
	return x->order > y->order ? -1 : x->order < y->order;
}

static GpudsEntry
random_entry(uint64_t keys, int nwords)
{
	GpudsEntry e;

	e.w0 = test_below(keys) << (test_below(2) ? 0 : 40);
	e.w1 = nwords == 2 ? test_below(3) : 0;
	e.t = test_below(3) << 16 | (test_below(2) + 1);
	return e;
}

/* Ascending disjoint intervals: points of keys, or ranges between some of them. */
static int64_t
random_intervals(GpudsInterval *intervals, int64_t most, uint64_t keys)
{
	int64_t n = 0;
	uint64_t at = 0;

	while (n < most && at < keys)
	{
		uint64_t end = at + (test_below(3) == 0 ? test_below(20) : 0);

		memset(&intervals[n], 0, sizeof(*intervals));
		intervals[n].lo.w0 = at;
		intervals[n].hi.w0 = end;
		intervals[n].hi.w1 = UINT64_MAX;
		intervals[n].hi.t = ENTRY_TID_MASK;
		n++;
		at = end + 1 + test_below(4);
	}
	return n;
}

/* The model's answer: the last words on the entries of what is left of a scan. */
static int64_t
expect(const Inserted *sorted, int64_t n, const GpudsScan *scan, bool forward, GpudsOp *out)
{
	int64_t found = 0;

	for (int64_t i = 0; i < n; i++)
	{
		const Inserted *one = &sorted[forward ? i : n - 1 - i];
		GpudsInterval interval;
		int64_t at = entry_scan_find(scan, &one->op.e);

		/* the first of an entry's operations is the last word */
		if (one != sorted && entry_equal(&one[-1].op.e, &one->op.e))
			continue;
		if (at == scan->n || (forward ? at < scan->next : at >= scan->next) ||
			!entry_scan_rest(scan, at, forward, &interval) || !memtable_inside(&interval, &one->op.e))
			continue;
		out[found++] = one->op;
	}
	return found;
}

static void
check_scan(const Arena *arena, const Generation *const *newest_first, int ngenerations,
		   const Inserted *sorted, int64_t n, uint64_t keys)
{
	static GpudsInterval intervals[MOST];
	static GpudsOp expected[MOST];
	static GpudsOp got[MOST + 1];
	bool forward = test_below(2) != 0;
	int64_t most = 1 + (int64_t) test_below(test_below(2) ? 3 : 500);
	GpudsScan scan = { .intervals = intervals, .n = random_intervals(intervals, most, keys) };
	int64_t cap = test_below(3) == 0 ? 1 + (int64_t) test_below(5) : MOST;
	int64_t total;
	int64_t done = 0;

	scan.next = forward ? 0 : scan.n;
	total = expect(sorted, n, &scan, forward, expected);
	for (;;)
	{
		int64_t found = memtable_collect(arena, newest_first, ngenerations, &scan, forward, true, got, cap);
		int64_t some = found < cap ? found : cap;

		CHECK(found <= cap + 1);
		CHECK(done + some <= total);
		for (int64_t i = 0; i < some; i++)
		{
			CHECK(entry_equal(&got[i].e, &expected[done + i].e));
			CHECK(got[i].order == expected[done + i].order);
		}
		done += some;
		if (found <= cap)
			break;
		scan.at = got[some - 1].e;
		scan.inside = true;
		scan.next = entry_scan_find(&scan, &scan.at) + (forward ? 0 : 1);
	}
	CHECK(done == total);
}

/* The same intervals in another order find the same. */
static void
check_unsorted(const Arena *arena, const Generation *const *newest_first, int ngenerations,
			   const Inserted *sorted, int64_t n, uint64_t keys)
{
	static GpudsInterval intervals[MOST];
	static GpudsOp expected[MOST];
	static GpudsOp got[MOST];
	static Inserted again[MOST];
	GpudsScan scan = { .intervals = intervals, .n = random_intervals(intervals, 100, keys) };
	int64_t total = expect(sorted, n, &scan, true, expected);
	int64_t found;

	for (int64_t i = 0; i < scan.n; i++)
	{
		int64_t j = (int64_t) test_below((uint64_t) scan.n);
		GpudsInterval swap = intervals[i];

		intervals[i] = intervals[j];
		intervals[j] = swap;
	}
	found = memtable_collect(arena, newest_first, ngenerations, &scan, true, false, got, MOST);
	CHECK(found == total);
	for (int64_t i = 0; i < found; i++)
		again[i].op = got[i];
	qsort(again, (size_t) found, sizeof(Inserted), compare_inserted);
	for (int64_t i = 0; i < found; i++)
		CHECK(entry_equal(&again[i].op.e, &expected[i].e) && again[i].op.order == expected[i].order);
}

static void
model_round(void)
{
	static Inserted inserted[MOST];
	Arena *arena = test_arena(8 << 20);
	Generation generations[MEMTABLE_GENERATIONS];
	const Generation *newest_first[MEMTABLE_GENERATIONS];
	int ngenerations = 1 + (int) test_below(MEMTABLE_GENERATIONS);
	int nwords = 1 + (int) test_below(2);
	uint64_t keys = test_below(2) ? 50 : 5000;
	int64_t n = (int64_t) test_below(test_below(4) ? MOST : 5);
	uint64_t others;

	for (int g = 0; g < ngenerations; g++)
	{
		CHECK(generation_begin(arena, &generations[g]) == KERNEL_OK);
		newest_first[ngenerations - 1 - g] = &generations[g];
	}
	for (int64_t i = 0; i < n; i++)
	{
		Inserted *one = &inserted[i];

		one->op.e = random_entry(keys, nwords);
		one->op.order = (uint64_t) i << 1 | test_below(2);
		one->generation = (int) (i * ngenerations / (n + 1));
		CHECK(generation_insert(arena, &generations[one->generation], &one->op.e, one->op.order, &others) ==
			  KERNEL_OK);
		CHECK(generation_filter_pass(arena, &generations[one->generation], one->op.e.w0));
	}
	qsort(inserted, (size_t) n, sizeof(Inserted), compare_inserted);
	for (int i = 0; i < 50; i++)
	{
		check_scan(arena, newest_first, ngenerations, inserted, n, keys);
		check_unsorted(arena, newest_first, ngenerations, inserted, n, keys);
	}
	for (int g = 0; g < ngenerations; g++)
		generation_drop(arena, &generations[g]);
	CHECK(arena_used(arena) == 0);
	free(arena);
}

/* Without memory an insert fails and changes nothing. */
static void
memory_round(void)
{
	Arena *arena = test_arena(6 * ARENA_CHUNK_BYTES);
	Generation generation;
	GpudsEntry e = { 0, 0, 1 };
	uint64_t others;
	uint64_t n = 0;
	uint64_t counted = 0;

	CHECK(generation_begin(arena, &generation) == KERNEL_OK);
	for (; generation_insert(arena, &generation, &e, e.w0, &others) == KERNEL_OK; e.w0++)
		CHECK(others == n++);
	for (uint32_t link = generation_first(&generation); link != 0; link = generation_next(arena, link))
		CHECK(generation_node(arena, link)->entry.w0 == counted++);
	CHECK(counted == n && generation_entries(&generation) == n && n > 0);
	generation_drop(arena, &generation);
	CHECK(arena_used(arena) == 0);
	free(arena);

	arena = test_arena(ARENA_CHUNK_BYTES);
	CHECK(generation_begin(arena, &generation) == KERNEL_NO_MEMORY);
	free(arena);
}

/*
 * Threads.  A writer inserts keys of its own, ascending, and says how far it has come.  The flusher
 * begins a new generation now and then, and drops the oldest after noting what is in it.  A
 * reader finds each key that was said to be there before it pinned, in the memtable or
 * below what drained[] notes.
 */
#define WRITERS 4
#define READERS 4
#define GENERATIONS 4

static Arena *arena;
static Generation generations[GENERATIONS];
static uint64_t newest = 1;
static uint64_t oldest = 1;
static uint64_t version = 1;
static PinSlot pins[READERS];
static PinSlot inserting[WRITERS];
static uint64_t written[WRITERS];
static uint64_t drained[WRITERS];
static int stop;

static void *
writer(void *arg)
{
	uint64_t me = (uint64_t) (uintptr_t) arg;
	uint64_t others;

	for (uint64_t i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
	{
		GpudsEntry e = { i << 8 | me, 0, me + 1 };
		uint64_t g = pin_version(&inserting[me], 1, &newest);

		/* without memory it waits for the flusher */
		while (generation_insert(arena, &generations[g % GENERATIONS], &e, i << 1, &others) != KERNEL_OK)
		{
			if (__atomic_load_n(&stop, __ATOMIC_RELAXED))
			{
				pin_release(&inserting[me]);
				return NULL;
			}
			sched_yield();
			pin_release(&inserting[me]);
			g = pin_version(&inserting[me], 1, &newest);
		}
		__atomic_store_n(&written[me], i, __ATOMIC_RELEASE);
		pin_release(&inserting[me]);
	}
	return NULL;
}

static void *
reader(void *arg)
{
	int me = (int) (intptr_t) arg;
	uint64_t random = (uint64_t) me + 1;
	uint64_t answers = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
	{
		const Generation *newest_first[GENERATIONS];
		uint64_t w = (random = random * 6364136223846793005u + 1442695040888963407u) >> 33;
		uint64_t key;
		uint64_t from;
		uint64_t to;
		int n = 0;
		GpudsInterval interval;
		GpudsScan scan = { .intervals = &interval, .n = 1 };
		GpudsOp out[2];
		int64_t found;

		w %= WRITERS;
		key = __atomic_load_n(&written[w], __ATOMIC_ACQUIRE);
		if (key == 0)
			continue;
		key -= random % (key < 100 ? key : 100);
		memset(&interval, 0, sizeof(interval));
		interval.lo.w0 = interval.hi.w0 = key << 8 | w;
		interval.hi.t = ENTRY_TID_MASK;
		pin_version(&pins[me], 1, &version);
		to = __atomic_load_n(&newest, __ATOMIC_SEQ_CST);
		from = __atomic_load_n(&oldest, __ATOMIC_SEQ_CST);
		for (uint64_t g = to; g >= from; g--)
			newest_first[n++] = &generations[g % GENERATIONS];
		found = memtable_collect(arena, newest_first, n, &scan, true, true, out, 2);
		pin_release(&pins[me]);
		CHECK(found == 1 || key <= __atomic_load_n(&drained[w], __ATOMIC_ACQUIRE));
		answers++;
	}
	return (void *) (uintptr_t) answers;
}

/* Waits until nobody inserts into a generation, then notes what is in it and drops it. */
static void
drain(uint64_t g)
{
	Generation *generation = &generations[g % GENERATIONS];
	uint64_t gone;

	while (pin_oldest(inserting, WRITERS, 1) <= g)
		sched_yield();
	for (uint32_t link = generation_first(generation); link != 0; link = generation_next(arena, link))
	{
		uint64_t w0 = generation_node(arena, link)->entry.w0;

		if (drained[w0 & 255] < w0 >> 8)
			__atomic_store_n(&drained[w0 & 255], w0 >> 8, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&oldest, g + 1, __ATOMIC_SEQ_CST);
	gone = __atomic_add_fetch(&version, 1, __ATOMIC_SEQ_CST);
	while (pin_oldest(pins, READERS, 1) < gone)
		sched_yield();
	generation_drop(arena, generation);
}

static void
threads(int seconds)
{
	pthread_t writers[WRITERS];
	pthread_t readers[READERS];
	time_t end = time(NULL) + seconds;
	uint64_t drops = 0;
	uint64_t answers = 0;

	arena = test_arena(4 << 20);
	CHECK(generation_begin(arena, &generations[1]) == KERNEL_OK);
	for (uintptr_t i = 0; i < WRITERS; i++)
		CHECK(pthread_create(&writers[i], NULL, writer, (void *) i) == 0);
	for (uintptr_t i = 0; i < READERS; i++)
		CHECK(pthread_create(&readers[i], NULL, reader, (void *) i) == 0);
	while (time(NULL) < end)
	{
		uint64_t next = newest + 1;

		while (generation_entries(&generations[newest % GENERATIONS]) < 5000 && time(NULL) < end)
			sched_yield();
		if (generation_begin(arena, &generations[next % GENERATIONS]) != KERNEL_OK)
			continue;
		__atomic_store_n(&newest, next, __ATOMIC_SEQ_CST);
		drain(next - 1);
		drops++;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	for (int i = 0; i < READERS; i++)
	{
		void *n;

		pthread_join(readers[i], &n);
		answers += (uint64_t) (uintptr_t) n;
	}
	CHECK(drops > 0 && answers > 0);
	generation_drop(arena, &generations[newest % GENERATIONS]);
	CHECK(arena_used(arena) == 0);
	free(arena);
	printf("%llu answers, %llu generations drained\n", (unsigned long long) answers,
		   (unsigned long long) drops);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3;
	int seconds = argc > 3 ? atoi(argv[3]) : 2;

	test_seed = argc > 2 ? (uint64_t) atoll(argv[2]) : 1;
	for (int i = 0; i < 20 * rounds; i++)
		model_round();
	memory_round();
	threads(seconds);
	return 0;
}
