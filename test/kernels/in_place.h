/*-------------------------------------------------------------------------
 *
 * in_place.h
 *	  A structure of the CPU device that is changed in place, beside a model, and an applier that is killed
 *	  at any of its stores.
 *
 * A file that includes this has defined TESTED_SCAN, the structure's function for scans, and made stored()
 * what the structure calls after a store.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_IN_PLACE_H
#define TEST_IN_PLACE_H

#include <setjmp.h>
#include <stdbool.h>

static void stored(void);

#include "structure_vtable.h"

#define MOST 20000

static Arena *arena;
static VtableTree tree;
static const Vtable *vtable;
static int nwords;
static Model m;
static GpudsOp ops[MOST];

static __thread int64_t stores_left = INT64_MAX; /* until the applier is killed */
static jmp_buf killed;

static void
stored(void)
{
	if (--stores_left < 0)
		longjmp(killed, 1);
}

/* Entry number i; number 0 is the lowest that there is. */
static GpudsEntry
entry(uint64_t i)
{
	GpudsEntry e = { i / 3 * 1000, nwords == 2 ? i / 3 : 0, i % 3 << 16 };

	return e;
}

/* Entries number from, from + step, and so on as operations, n of them. */
static int64_t
make_ops(uint64_t from, uint64_t step, int64_t n, uint64_t order)
{
	for (int64_t i = 0; i < n; i++)
	{
		ops[i].e = entry(from + (uint64_t) i * step);
		ops[i].order = order;
	}
	return n;
}

/* Does a lookup find the entry, both ways? */
static bool
finds(const GpudsEntry *e)
{
	const GpudsInterval one = { *e, *e };
	GpudsEntry out[2];
	int64_t found[2];

	for (int forward = 0; forward < 2; forward++)
	{
		GpudsScan s = { &one, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };

		found[forward] = TESTED_SCAN(arena, &tree.common, &s, forward != 0, out, 2);
		CHECK(found[forward] <= 1);
	}
	CHECK(found[0] == found[1]);
	return found[0] == 1;
}

/* All that the tree has, forward or backward, in ascending order. */
static int64_t
scan(GpudsEntry *out, bool forward)
{
	const GpudsInterval all = vtable_all(nwords);
	GpudsScan s = { &all, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
	int64_t n = TESTED_SCAN(arena, &tree.common, &s, forward, out, MOST);

	CHECK(n >= 0 && n < MOST);
	if (!forward)
		vtable_reverse(out, n);
	return n;
}

/* The tree is sound, which no lock that was kept would be, and has what the model has. */
static void
check(void)
{
	static GpudsEntry out[MOST];

	vtable_verify(vtable, arena, &tree);
	CHECK(tree.common.entries == (uint64_t) m.n);
	for (int forward = 0; forward < 2; forward++)
	{
		CHECK(scan(out, forward != 0) == m.n);
		CHECK(memcmp(out, m.e, (size_t) m.n * sizeof(GpudsEntry)) == 0);
	}
}

static void
apply(int64_t n)
{
	int64_t inserted, deleted;

	CHECK(vtable->cpu.apply(arena, &tree.common, ops, n) == KERNEL_OK);
	model_apply(&m, ops, n, &inserted, &deleted);
	check();
}

/* A tree of n entries number 0, 2, 4 and so on. */
static void
begin(int64_t n, int fill_percent)
{
	vtable_init(&tree);
	model_init(&m, n);
	for (m.n = 0; m.n < n; m.n++)
		m.e[m.n] = entry(2 * (uint64_t) m.n);
	CHECK(vtable_build(vtable, arena, &tree, &m, nwords, fill_percent) == KERNEL_OK);
	check();
}

static void
end(void)
{
	vtable_drop(vtable, arena, &tree);
	CHECK(arena_used(arena) == 0);
	free(m.e);
}

/* Is an entry among ascending ones? */
static bool
is_in(const GpudsEntry *entries, int64_t n, const GpudsEntry *e)
{
	const Model there = { (GpudsEntry *) entries, n, n };
	int64_t at = model_rank(&there, e);

	return at < n && entry_equal(&entries[at], e);
}

/* An applier is killed at its k-th store: of what it was to change, readers find some as it was. */
static bool
kill_at(int64_t k, int64_t n)
{
	static GpudsEntry out[MOST];
	int64_t inserted, deleted;
	Model after;
	volatile bool done = false;

	model_init(&after, m.n);
	memcpy(after.e, m.e, (size_t) m.n * sizeof(GpudsEntry));
	after.n = m.n;
	model_apply(&after, ops, n, &inserted, &deleted);
	stores_left = k;
	if (setjmp(killed) == 0)
	{
		CHECK(vtable->cpu.apply(arena, &tree.common, ops, n) == KERNEL_OK);
		done = true;
	}
	stores_left = INT64_MAX;
	for (int forward = 0; forward < 2; forward++)
	{
		int64_t got = scan(out, forward != 0);

		for (int64_t i = 0; i < got; i++)
		{
			CHECK(i == 0 || entry_less(&out[i - 1], &out[i]));
			CHECK(is_in(m.e, m.n, &out[i]) || is_in(after.e, after.n, &out[i]));
		}
		for (int64_t i = 0; i < m.n; i++)
			CHECK(is_in(out, got, &m.e[i]) || !is_in(after.e, after.n, &m.e[i]));
	}
	for (int64_t i = 0; i < m.n; i++)
		CHECK(finds(&m.e[i]) || !is_in(after.e, after.n, &m.e[i]));
	free(after.e);
	return done;
}

#endif /* TEST_IN_PLACE_H */
