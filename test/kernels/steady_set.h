/*-------------------------------------------------------------------------
 *
 * steady_set.h
 *	  A tree in which some entries stay while others come and go, and readers that must find them.
 *
 * Of each key some entries stay and others come and go, so that keys grow from none to many entries
 * and shrink again.  Readers look keys up, whole or from some entry on, and go through everything, forward or
 * backward.  They must find all entries that stay, in order, and no others than those.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KERNELS_STEADY_SET_H
#define TEST_KERNELS_STEADY_SET_H

#include "structure_vtable.h"

#define KEYS 600
#define LOOKUPS 40
#define TIDS 12 /* of a key, at most */

/* Distributions of keys. */
enum
{
	SCATTERED, /* all of them, far from each other */
	ONE_CHUNK, /* as many as one or two chunks of a skip list take */
	KINDS
};

static const Vtable *vtable;
static Arena *arena;
static VtableTree tree;
static uint64_t keys[KINDS][KEYS];
static int kind;

/* The tree's scan function, another at every call. */
static CpuScan scan_by(uint64_t *random);

static uint64_t
next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void
make_keys(void)
{
	for (int k = 0; k < KEYS; k++)
	{
		keys[SCATTERED][k] = (uint64_t) k * 1000003;
		keys[ONE_CHUNK][k] = (uint64_t) k;
	}
}

/* Keys of this distribution that are used. */
static int
nkeys(void)
{
	static const int numbers[KINDS] = { KEYS, 2 };

	return numbers[kind];
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

	for (int k = (int) (next_random(random) % (uint64_t) (nkeys() < 20 ? nkeys() : 20));
		 k < nkeys() && scan.n < LOOKUPS; k += 1 + (int) (next_random(random) % 20))
	{
		GpudsEntry e = entry(k, 0);

		chosen[scan.n] = k;
		after[scan.n] = (int) (next_random(random) % 3) * 4 - 1;
		intervals[scan.n] = vtable_key(&e);
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

/* Goes through everything, forward or backward.  False: the tree was withdrawn. */
static bool
walk(uint64_t *random)
{
	static const GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, 0, UINT64_MAX } };
	const bool forward = next_random(random) % 2 != 0;
	GpudsScan scan = { &all, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
	GpudsEntry out[KEYS * TIDS + 1];
	int64_t cap = 1 + (int64_t) (next_random(random) % (KEYS * TIDS));
	int64_t got = 0;
	int64_t n;
	int64_t at = 0;

	do
	{
		cap = cap < KEYS * TIDS + 1 - got ? cap : KEYS * TIDS + 1 - got;
		n = scan_by(random)(arena, &tree.common, &scan, forward, out + got, cap);
		if (n < 0)
			return false;
		got += n;
	} while (n == cap);
	if (!forward)
		vtable_reverse(out, got);
	for (int k = 0; k < nkeys(); k++)
		at += check_key(out + at, got - at, k, -1);
	CHECK(at == got);
	return true;
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
	CHECK(vtable_build(vtable, arena, &tree, &m, 1, 90) == KERNEL_OK);
	free(m.e);
}

/* Some operations on entries that do not stay; there: which of them are there. */
static int64_t
make_ops(GpudsOp *ops, bool there[KEYS][TIDS], uint64_t *random)
{
	/* few keys or all of them, mostly growing or mostly shrinking; most keys have few entries */
	uint64_t step = 1 + next_random(random) % (next_random(random) % 2 ? 3 : 200);
	uint64_t come = next_random(random) % 5 == 0 ? 4 : next_random(random) % 3 / 2;
	int64_t n = 0;

	for (uint64_t k = next_random(random) % (uint64_t) nkeys(); k < (uint64_t) nkeys(); k += step)
	{
		for (int i = 0; i < TIDS; i++)
		{
			bool comes = next_random(random) % 4 < come;

			if (stays((int) k, i) || comes == there[k][i] || next_random(random) % 2)
				continue;
			ops[n].e = entry((int) k, i);
			ops[n++].order = comes ? GPUDS_OP_INSERT : GPUDS_OP_DELETE;
			there[k][i] = comes;
		}
	}
	return n;
}

#endif /* TEST_KERNELS_STEADY_SET_H */
