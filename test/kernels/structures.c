/*-------------------------------------------------------------------------
 *
 * structures.c
 *	  Every structure of the table against a sorted array, as src/ uses it: builds, batches, scans of
 *	  keys and of ranges, counts, and memory that runs out at every single allocation.
 *
 *	  usage: structures [rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include <stdbool.h>
#include <stdint.h>

static int64_t allocations_left = INT64_MAX;

static bool
allocation_fails(void)
{
	return allocations_left-- <= 0;
}

#define ARENA_ALLOC_FAILS allocation_fails

#include "loops.h"
#include "structure_vtable.h"
#include "tree.h"

/* Intervals of a test, and entries of an answer. */
#define INTERVALS 200

/* A tree, and what it must have. */
typedef struct Subject
{
	const Vtable *vtable;
	Arena *arena;
	VtableTree tree;
	Model m;
	int nwords;
	int kind;
	uint64_t range;
} Subject;

/*
 * All intervals, in pieces of up to most entries, forward and backward.  With points the scan gets these
 * and the frame instead of the intervals, which say the same.
 */
static void
check_scan(const Subject *s, const GpudsInterval *intervals, int64_t n, int64_t most,
		   const GpudsInterval *frame, const uint64_t *points)
{
	GpudsEntry *out = (GpudsEntry *) malloc((size_t) most * sizeof(GpudsEntry));

	CHECK(out != NULL);
	for (int forward = 0; forward < 2; forward++)
	{
		GpudsScan scan = { points ? frame : intervals, n, forward ? 0 : n, false, { 0, 0, 0 }, points };
		int64_t cap = 0;
		int64_t got = 0;
		int64_t at = 0;

		for (int64_t i = 0; i < n; i++)
		{
			int64_t from;
			int64_t inside = test_inside(&s->m, &intervals[forward ? i : n - 1 - i], &from);

			for (int64_t k = 0; k < inside; k++)
			{
				if (at == got)
				{
					CHECK(got == cap);
					cap = 1 + (int64_t) test_below((uint64_t) most);
					got = test_kernels()->scan[s->vtable->number](s->arena, &s->tree.common, &scan, forward,
																  out, cap);
					at = 0;
					CHECK(got > 0);
				}
				CHECK(entry_equal(&out[at], &s->m.e[forward ? from + k : from + inside - 1 - k]));
				at++;
			}
		}
		CHECK(at == got);
		CHECK(test_kernels()->scan[s->vtable->number](s->arena, &s->tree.common, &scan, forward, out, most) ==
			  0);
		CHECK(scan.next == (forward ? n : 0) && !scan.inside);
	}
	free(out);
}

/* Counts intervals in pieces, by a map and rows. */
static void
check_count(const Subject *s, const GpudsInterval *intervals, int64_t n, int64_t most)
{
	static uint32_t places[TEST_ROW_SLOTS];
	static uint32_t pages[TEST_ROW_SLOTS * (1 + TEST_ROW_WORDS)];
	unsigned char map[64];
	GpudsEntry others[CPU_COUNT_ROOM + 50];
	CpuCount count = { .map = map, .map_bytes = test_map(map, sizeof(map)), .others = others };
	GpudsScan scan = { intervals, n, 0, false, { 0, 0, 0 }, NULL };
	int64_t at = 0;
	int64_t counted = 0;

	count.rows = test_rows(places, pages, sizeof(places) + sizeof(pages), &s->m);
	count.full = test_below(2) == 0;
	count.others_size = CPU_COUNT_ROOM + (int64_t) test_below(51);
	for (int64_t i = 0; i < n; i++)
	{
		int64_t from;
		int64_t inside = test_inside(&s->m, &intervals[i], &from);

		for (int64_t k = from; k < from + inside; k++)
		{
			PageRow row = count.full ? PAGE_ROW_SEEN
									 : test_row(&s->m.e[k], map, count.map_bytes, &count.rows);

			counted += row == PAGE_ROW_SEEN;
			if (!test_goes_back(row))
				continue;
			while (at == count.nothers)
			{
				CHECK(scan.next < n);
				count.nothers = at = 0;
				CHECK(test_kernels()->count[s->vtable->number](s->arena, &s->tree.common, &scan,
															   1 + (int64_t) test_below((uint64_t) most),
															   &count));
				CHECK(count.nothers <= count.others_size);
			}
			CHECK(entry_equal(&others[at], &s->m.e[k]));
			at++;
		}
	}
	CHECK(at == count.nothers);
	while (scan.next < n)
	{
		count.nothers = 0;
		CHECK(test_kernels()->count[s->vtable->number](s->arena, &s->tree.common, &scan, most, &count));
		CHECK(count.nothers == 0);
	}
	CHECK(count.counted == counted);
}

/* Finds an entry of each interval by its rank, if the structure has ranks. */
static void
check_ranks(const Subject *s, const GpudsInterval *intervals, int64_t n)
{
	uint64_t ranks[INTERVALS] = { 0 };
	EntryRanked ranked[INTERVALS];

	if (s->vtable->cpu.rank == NULL)
		return;
	CHECK(n <= INTERVALS);
	for (int64_t i = 0; i < n; i++)
		ranks[i] = test_below(4) == 0 ? test_below((uint64_t) s->m.n + 2) : test_below(4);
	CHECK(s->vtable->cpu.rank(s->arena, &s->tree.common, intervals, ranks, n, ranked));
	for (int64_t i = 0; i < n; i++)
	{
		int64_t from;
		int64_t inside = test_inside(&s->m, &intervals[i], &from);

		CHECK(ranked[i].entries == (uint64_t) inside);
		if (ranks[i] < (uint64_t) inside)
			CHECK(entry_equal(&ranked[i].entry, &s->m.e[from + (int64_t) ranks[i]]));
	}
}

/* Keys that are there and others, all of them or from some TID on. */
static void
check_keys(const Subject *s)
{
	GpudsInterval intervals[INTERVALS];
	uint64_t points[INTERVALS];
	GpudsInterval frame = { { 0, 0, 0 }, { 0, 0, ENTRY_TID_MASK } };
	int64_t n = 0;

	for (int i = 0; i < INTERVALS; i++)
	{
		GpudsEntry e = s->m.n > 0 && test_below(4) != 0 ? s->m.e[test_below((uint64_t) s->m.n)]
														: vtable_entry(s->kind, s->nwords, s->range);

		intervals[i] = vtable_key(&e);
		if (test_below(4) == 0)
			intervals[i].lo = e;
		if (test_below(8) == 0)
			intervals[i].hi = e;
	}
	qsort(intervals, INTERVALS, sizeof(GpudsInterval), test_compare);
	for (int i = 0; i < INTERVALS; i++)
	{
		if (n == 0 || entry_less(&intervals[n - 1].hi, &intervals[i].lo))
			intervals[n++] = intervals[i];
	}
	check_scan(s, intervals, n, 100, NULL, NULL);
	check_count(s, intervals, n, 200);
	check_ranks(s, intervals, n);

	/* as points: keys without more than a first word */
	n = 0;
	for (int i = 0; i < INTERVALS; i++)
	{
		uint64_t w0 = s->m.n > 0 ? s->m.e[test_below((uint64_t) s->m.n)].w0 : (uint64_t) i;

		points[i] = w0;
		intervals[i] = frame;
		intervals[i].lo.w0 = intervals[i].hi.w0 = w0;
	}
	qsort(intervals, INTERVALS, sizeof(GpudsInterval), test_compare);
	for (int i = 0; i < INTERVALS; i++)
	{
		if (n == 0 || entry_less(&intervals[n - 1].hi, &intervals[i].lo))
		{
			points[n] = intervals[i].lo.w0;
			intervals[n++] = intervals[i];
		}
	}
	check_scan(s, intervals, n, 100, &frame, points);
}

/* Intervals of several keys, and everything; some intervals end where they begin, or are empty. */
static void
check_ranges(const Subject *s)
{
	GpudsInterval intervals[2 * 20];
	GpudsInterval all = vtable_all(s->nwords);
	int64_t n = test_intervals(&s->m, intervals, 1 + (int64_t) test_below(20), KEYS_RANDOM, s->nwords,
							   s->range);

	check_scan(s, intervals, n, 10 + s->m.n / 5, NULL, NULL);
	check_count(s, intervals, n, 10 + s->m.n);
	check_count(s, &all, 1, 10 + s->m.n);
	check_ranks(s, intervals, n);
	check_ranks(s, &all, 1);
}

/* Everything, in a few pieces. */
static void
check_all(const Subject *s)
{
	GpudsInterval all = vtable_all(s->nwords);

	vtable_verify(s->vtable, s->arena, &s->tree);
	CHECK(s->tree.common.entries == (uint64_t) s->m.n);
	check_scan(s, &all, 1, 10 + s->m.n, NULL, NULL);
}

static void
check(const Subject *s)
{
	check_all(s);
	check_keys(s);
	check_ranges(s);
}

static void
begin(Subject *s, const Vtable *vtable, int kind, int nwords, int64_t size)
{
	memset(s, 0, sizeof(*s));
	s->vtable = vtable;
	s->arena = test_arena((size_t) (64 + size / 20) * ARENA_CHUNK_BYTES);
	s->nwords = nwords;
	s->kind = kind;
	s->range = (uint64_t) size * 2 + 10;
	vtable_init(&s->tree);
	vtable_fill(&s->m, size, kind, nwords, s->range);
}

static void
end(Subject *s)
{
	vtable_drop(s->vtable, s->arena, &s->tree);
	CHECK(arena_used(s->arena) == 0 && arena_space_bytes(&s->tree.common.space) == 0);
	free(s->m.e);
	free(s->arena);
}

/* A tree that is built and changed, and at last loses all entries. */
static void
run(const Vtable *vtable, int kind, int nwords, int64_t size, int batches)
{
	static const int percents[] = { 0, 10, 50, 90, 100 };
	GpudsOp *ops = (GpudsOp *) malloc((size_t) (size + 2000) * 2 * sizeof(GpudsOp));
	GpudsEntry packed = { 0, 0, 0 };
	int64_t inserted, deleted, units;
	Subject s;

	CHECK(ops != NULL);
	begin(&s, vtable, kind, nwords, size);
	CHECK(vtable_build(vtable, s.arena, &s.tree, &s.m, nwords, 50 + (int) test_below(51)) == KERNEL_OK);
	check(&s);
	for (int b = 0; b < batches; b++)
	{
		int64_t limits[] = { 1, 3, 20, 200, size + 1000 };
		int64_t n = 1 + (int64_t) test_below((uint64_t) limits[test_below(5)]);

		n = vtable_ops(ops, n, kind, nwords, s.range, percents[test_below(5)]);
		CHECK(vtable->cpu.apply(s.arena, &s.tree.common, ops, n) == KERNEL_OK);
		model_apply(&s.m, ops, n, &inserted, &deleted);
		if (test_below(3) == 0)
			CHECK(vtable->cpu.pack(s.arena, &s.tree.common, &packed,
								   1 + (int64_t) test_below(limits[test_below(5)]), &units) == KERNEL_OK &&
				  units >= 0);
		if (test_below(2))
			vtable->cpu.reclaim(s.arena, &s.tree.common, UINT64_MAX);
		check(&s);
	}
	for (int64_t i = 0; i < s.m.n; i++)
	{
		ops[i].e = s.m.e[i];
		ops[i].order = GPUDS_OP_DELETE;
	}
	CHECK(vtable->cpu.apply(s.arena, &s.tree.common, ops, s.m.n) == KERNEL_OK);
	s.m.n = 0;
	check(&s);
	end(&s);
	free(ops);
}

/* A tree that grows a lot. */
static void
grow(const Vtable *vtable, int nwords, int64_t size)
{
	GpudsOp *ops = (GpudsOp *) malloc((size_t) size * sizeof(GpudsOp));
	int64_t inserted, deleted;
	Subject s;

	CHECK(ops != NULL);
	begin(&s, vtable, KEYS_RANDOM, nwords, size);
	CHECK(vtable_build(vtable, s.arena, &s.tree, &s.m, nwords, 90) == KERNEL_OK);
	for (int b = 0; b < 4; b++)
	{
		int64_t n = vtable_ops(ops, size / 2, KEYS_RANDOM, nwords, s.range, 10);

		CHECK(vtable->cpu.apply(s.arena, &s.tree.common, ops, n) == KERNEL_OK);
		vtable->cpu.reclaim(s.arena, &s.tree.common, UINT64_MAX);
		model_apply(&s.m, ops, n, &inserted, &deleted);
		vtable_verify(vtable, s.arena, &s.tree);
		CHECK(s.tree.common.entries == (uint64_t) s.m.n);
		check_keys(&s);
	}
	end(&s);
	free(ops);
}

/* Memory runs out in a build: nothing is left of it. */
static void
fail_build(const Vtable *vtable, int kind, int nwords, int64_t size)
{
	Subject s;

	begin(&s, vtable, kind, nwords, size);
	for (int64_t k = 0;; k++)
	{
		KernelStatus status;

		allocations_left = k;
		status = vtable_build(vtable, s.arena, &s.tree, &s.m, nwords, 80);
		allocations_left = INT64_MAX;
		if (status == KERNEL_OK)
			break;
		CHECK(status == KERNEL_NO_MEMORY && arena_used(s.arena) == 0 && s.tree.common.head == 0);
	}
	check(&s);
	end(&s);
}

/* Has the model an entry? */
static bool
has(const Model *m, const GpudsEntry *e)
{
	int64_t at = model_rank(m, e);

	return at < m->n && entry_equal(&m->e[at], e);
}

/*
 * A batch was applied in part.  What the tree has is what it had before or is to have, and all that
 * is in both; that is the model from now on.
 */
static void
take_between(Subject *s, const Model *after)
{
	GpudsInterval all = vtable_all(s->nwords);
	GpudsScan scan = { &all, 1, 0, false, { 0, 0, 0 }, NULL };
	Model there;

	model_init(&there, s->m.n + after->n + 1);
	there.n = test_kernels()->scan[s->vtable->number](s->arena, &s->tree.common, &scan, true, there.e,
													  there.cap);
	CHECK(there.n < there.cap);
	for (int64_t i = 0; i < there.n; i++)
		CHECK(has(&s->m, &there.e[i]) || has(after, &there.e[i]));
	for (int64_t i = 0; i < s->m.n; i++)
		CHECK(!has(after, &s->m.e[i]) || has(&there, &s->m.e[i]));
	free(s->m.e);
	s->m = there;
}

/*
 * Memory runs out in an apply.  A structure that is not changed in place is as it was.  Another
 * has done some of the operations, and the same ones come again.
 */
static void
fail_apply(const Vtable *vtable, int kind, int nwords, int64_t size, int64_t nops, int delete_percent)
{
	GpudsOp *ops = (GpudsOp *) malloc((size_t) nops * sizeof(GpudsOp));
	int64_t inserted, deleted;
	Subject s;

	CHECK(ops != NULL);
	begin(&s, vtable, kind, nwords, size);
	CHECK(vtable_build(vtable, s.arena, &s.tree, &s.m, nwords, 80) == KERNEL_OK);
	for (int round = 0; round < 3; round++)
	{
		int64_t n = vtable_ops(ops, nops, kind, nwords, s.range, delete_percent);
		Model after;

		model_init(&after, s.m.n);
		memcpy(after.e, s.m.e, (size_t) s.m.n * sizeof(GpudsEntry));
		after.n = s.m.n;
		model_apply(&after, ops, n, &inserted, &deleted);
		for (int64_t k = 0;; k += 1 + k / 10)
		{
			KernelStatus status;

			allocations_left = k;
			status = vtable->cpu.apply(s.arena, &s.tree.common, ops, n);
			allocations_left = INT64_MAX;
			if (status == KERNEL_OK)
				break;
			CHECK(status == KERNEL_NO_MEMORY);
			if (!vtable_copies(vtable))
				take_between(&s, &after);
			check_all(&s);
		}
		free(s.m.e);
		s.m = after;
		check(&s);
		if (round == 1)
			vtable->cpu.reclaim(s.arena, &s.tree.common, UINT64_MAX);
		check(&s);
	}
	end(&s);
	free(ops);
}

/* A tree takes as many bytes as the first guess of a load says, or less. */
static void
guessed_size(const Vtable *vtable, int nwords, int64_t n, bool equal_keys)
{
	double guess = (double) n * vtable->cpu.entry_bytes(nwords, 90, equal_keys, false);
	double bytes;
	Subject s;

	begin(&s, vtable, KEYS_RANDOM, nwords, 10);
	free(s.arena);
	free(s.m.e);
	s.arena = test_arena((size_t) (2 * guess) + (1 << 20));
	model_init(&s.m, n);
	for (int64_t i = 0; i < n; i++)
	{
		s.m.e[i].w0 = (uint64_t) (equal_keys ? i / 1000 : i);
		s.m.e[i].w1 = 0;
		s.m.e[i].t = (uint64_t) i << 16;
	}
	s.m.n = n;
	CHECK(vtable_build(vtable, s.arena, &s.tree, &s.m, nwords, 90) == KERNEL_OK);
	bytes = (double) arena_space_bytes(&s.tree.common.space);
	CHECK(bytes < 1.02 * guess + 4 * ARENA_CHUNK_BYTES);
	CHECK(bytes > 0.45 * guess);
	end(&s);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (int d = 0; d < VTABLES; d++)
	{
		for (int nwords = 1; nwords <= 2; nwords++)
		{
			for (int kind = 0; kind < VTABLE_KINDS; kind++)
			{
				for (int r = 0; r < rounds; r++)
				{
					for (int64_t size = 0; size < 20; size += 1 + size / 5)
						run(&vtables[d], kind, nwords, size, 5);
					run(&vtables[d], kind, nwords, 100 + (int64_t) test_below(300), 20);
					run(&vtables[d], kind, nwords, 3000, 10);
				}
				fail_build(&vtables[d], kind, nwords, 300);
				fail_apply(&vtables[d], kind, nwords, 0, 40, 0);
				fail_apply(&vtables[d], kind, nwords, 300, 60, 50);
				fail_apply(&vtables[d], kind, nwords, 300, 900, 20);
				fail_apply(&vtables[d], kind, nwords, 900, 900, 95);
			}
			run(&vtables[d], KEYS_RANDOM, nwords, 15000, 2);
			run(&vtables[d], VTABLE_DUPLICATES, nwords, 15000, 2);
			grow(&vtables[d], nwords, 120000);
			for (int64_t n = 50000; n < 100000; n += 10000)
			{
				guessed_size(&vtables[d], nwords, n, false);
				guessed_size(&vtables[d], nwords, n, true);
			}
		}
	}
	printf("structures: ok,");
	for (int d = 0; d < VTABLES; d++)
		printf(" %s", vtables[d].name);
	printf("\n");
	return 0;
}
