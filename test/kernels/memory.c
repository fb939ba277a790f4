/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  Running out of memory at every single allocation, and in small arenas; how much a
 *	  tree takes.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdbool.h>

static int64_t allocations_left = INT64_MAX;

static bool
allocation_fails(void)
{
	return allocations_left-- <= 0;
}

#define ARENA_ALLOC_FAILS allocation_fails

#include "common.h"
#include "kernels/btree/btree_structure_cpu.h"

/* The tree holds what the model does, and no memory is lost. */
static void
check_same(const Arena *arena, const CpuTree *tree, const Model *m, int nwords)
{
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };
	GpudsScan scan = { &all, 1, 0, false, { 0, 0, 0 }, NULL };
	GpudsEntry *out = (GpudsEntry *) malloc((size_t) (m->n + 1) * sizeof(GpudsEntry));
	GpudsView view;

	test_verify(arena, tree);
	CHECK(cpu_tree_view(arena, tree, &view));
	CHECK(cpu_btree_scan(&view, &scan, true, out, m->n + 1) == m->n);
	for (int64_t i = 0; i < m->n; i++)
		CHECK(entry_equal(&out[i], &m->e[i]));
	free(out);
}

/* A tree takes as many bytes as the first guess of a load says. */
static void
guessed_size(int nwords, int fill_percent, bool equal_keys)
{
	const int64_t n = 100000;
	double guess = (double) n * btree_cpu_entry_bytes(nwords, fill_percent, equal_keys, false);
	Arena *arena = test_arena((size_t) (2 * guess));
	GpudsEntry *e = (GpudsEntry *) malloc((size_t) n * sizeof(GpudsEntry));
	CpuTree tree;
	CpuBtreeBuild build;
	double bytes;

	for (int64_t i = 0; i < n; i++)
	{
		e[i].w0 = (uint64_t) (equal_keys ? i / 1000 : i);
		e[i].w1 = 0;
		e[i].t = (uint64_t) i << 16;
	}
	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	cpu_btree_build_begin(arena, &tree, &build, fill_percent);
	CHECK(btree_cpu_build_add(&build, e, n) == KERNEL_OK);
	CHECK(btree_cpu_build_finish(&build) == KERNEL_OK);
	bytes = (double) arena_space_bytes(&tree.space);
	CHECK(bytes < 1.02 * guess && bytes > 0.98 * guess);
	free(e);
	free(arena);
}

static void
fail_build(int kind, int nwords, int64_t size)
{
	Arena *arena = test_arena(64 * ARENA_CHUNK_BYTES);
	CpuTree tree;
	Model m;

	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	model_fill(&m, size, kind, nwords, (uint64_t) size * 3 + 1);
	for (int64_t k = 0;; k++)
	{
		KernelStatus status;
		Model empty = { NULL, 0, 0 };

		allocations_left = k;
		status = test_build(arena, &tree, &m, 80);
		allocations_left = INT64_MAX;
		if (status == KERNEL_OK)
			break;
		CHECK(status == KERNEL_NO_MEMORY && arena_used(arena) == 0 && tree.version == 1);
		check_same(arena, &tree, &empty, nwords);
	}
	check_same(arena, &tree, &m, nwords);
	free(m.e);
	free(arena);
}

static void
fail_apply(int kind, int nwords, int64_t size, int64_t nops, int delete_percent)
{
	Arena *arena = test_arena(64 * ARENA_CHUNK_BYTES);
	GpudsOp *ops = (GpudsOp *) malloc((size_t) nops * sizeof(GpudsOp));
	uint64_t range = (uint64_t) size * 2 + 10;
	CpuTree tree;
	Model m;

	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	model_fill(&m, size, kind, nwords, range);
	CHECK(test_build(arena, &tree, &m, 80) == KERNEL_OK);
	for (int round = 0; round < 3; round++)
	{
		int64_t n = test_ops(ops, nops, kind, nwords, range, delete_percent);
		int64_t inserted, deleted;
		uint64_t version = tree.version;

		for (int64_t k = 0;; k += 1 + k / 50)
		{
			KernelStatus status;

			allocations_left = k;
			status = cpu_btree_apply(arena, &tree, ops, n, &inserted, &deleted);
			allocations_left = INT64_MAX;
			if (status == KERNEL_OK)
				break;
			CHECK(status == KERNEL_NO_MEMORY && tree.version == version && inserted == 0 && deleted == 0);
			check_same(arena, &tree, &m, nwords);
		}
		model_apply(&m, ops, n, &inserted, &deleted);
		check_same(arena, &tree, &m, nwords);
		if (round == 1)
			cpu_tree_reclaim(arena, &tree, UINT64_MAX);
		check_same(arena, &tree, &m, nwords);
	}
	cpu_tree_withdraw(&tree);
	cpu_tree_release(arena, &tree);
	CHECK(arena_used(arena) == 0);
	free(m.e);
	free(ops);
	free(arena);
}

/*
 * A tree of half full nodes, of as many entries as m has: every other one is there at first, then the
 * others.
 */
static void
build_thin(Arena *arena, CpuTree *tree, const Model *m)
{
	GpudsOp *ops = (GpudsOp *) malloc((size_t) m->n * sizeof(GpudsOp));
	Model half;
	int64_t inserted, deleted;
	int64_t n = 0;

	model_init(&half, m->n);
	for (int64_t i = 0; i < m->n; i++)
	{
		if (i % 4 == 0)
			ops[n++] = (GpudsOp){ m->e[i], GPUDS_OP_INSERT };
		else
			half.e[half.n++] = m->e[i];
	}
	CHECK(test_build(arena, tree, &half, 90) == KERNEL_OK);
	/* a few at a time, so that leaves are split one by one */
	for (int64_t i = 0; i < n; i += 10)
	{
		CHECK(cpu_btree_apply(arena, tree, ops + i, n - i < 10 ? n - i : 10, &inserted, &deleted) ==
			  KERNEL_OK);
		cpu_tree_reclaim(arena, tree, UINT64_MAX);
	}
	free(half.e);
	free(ops);
}

/* Units that a tree's nodes take, and are not free. */
static int64_t
units_used(Arena *arena, const CpuTree *tree)
{
	const ArenaSpace *space = &tree->space;
	int64_t units = (int64_t) space->nchunks * ARENA_CHUNK_UNITS - (space->bump_end - space->bump);

	for (int size = 0; size <= ARENA_MAX_UNITS; size++)
	{
		for (ArenaRef ref = space->free[size]; ref != 0; ref = *(ArenaRef *) arena_at(arena, ref))
			units -= size == 0 ? ARENA_CHUNK_UNITS : size;
	}
	return units;
}

/*
 * Packed in pieces, a tree takes as much as a loaded one, and says how much it has gained; where memory
 * runs out it stays as it is.
 */
static void
pack_all(int kind, int nwords, int64_t size, int64_t most)
{
	Arena *arena = test_arena((size_t) (64 + size / 40) * ARENA_CHUNK_BYTES);
	GpudsEntry at = { 0, 0, 0 };
	int64_t gained = 0;
	int64_t before;
	int64_t rounds = 0;
	double guess;
	CpuTree tree;
	Model m;

	memset(&tree, 0, sizeof(tree));
	cpu_btree_init(&tree, nwords);
	model_fill(&m, size, kind, nwords, (uint64_t) size * 10);
	build_thin(arena, &tree, &m);
	before = units_used(arena, &tree);
	do
	{
		GpudsEntry from = at;
		uint64_t version = tree.version;
		int64_t units;
		KernelStatus status;

		for (int64_t k = 0;; k += 1 + k / 4)
		{
			allocations_left = k;
			status = btree_cpu_pack(arena, &tree, &at, most, &units);
			allocations_left = INT64_MAX;
			if (status == KERNEL_OK)
				break;
			CHECK(status == KERNEL_NO_MEMORY && tree.version == version && units == 0 &&
				  entry_equal(&at, &from));
		}
		CHECK(tree.version == version + (units > 0));
		check_same(arena, &tree, &m, nwords);
		cpu_tree_reclaim(arena, &tree, UINT64_MAX);
		CHECK(tree.retired.head == 0);
		check_same(arena, &tree, &m, nwords);
		gained += units;
		CHECK(units_used(arena, &tree) == before - gained);
		CHECK(entry_less(&from, &at) || at.t == 0);
		rounds++;
	} while (at.w0 != 0 || at.w1 != 0 || at.t != 0);
	CHECK(rounds >= size / most / 2);
	guess = (double) m.n * btree_cpu_entry_bytes(nwords, CPU_BTREE_PACKED, kind == KEYS_ONE, false) /
			ARENA_UNIT_BYTES;
	if (kind == KEYS_RANDOM && most >= 200)
	{
		CHECK((double) before > 1.25 * guess);
		CHECK((double) units_used(arena, &tree) < 1.08 * guess);
	}
	/* and once more, with all of it in one piece */
	do
	{
		int64_t units;

		CHECK(btree_cpu_pack(arena, &tree, &at, size, &units) == KERNEL_OK && units >= 0);
		cpu_tree_reclaim(arena, &tree, UINT64_MAX);
	} while (at.w0 != 0 || at.w1 != 0 || at.t != 0);
	check_same(arena, &tree, &m, nwords);
	cpu_tree_withdraw(&tree);
	cpu_tree_release(arena, &tree);
	CHECK(arena_used(arena) == 0);
	free(m.e);
	free(arena);
}

/* A real end of memory: two trees in an arena of a few chunks. */
static void
small_arena(int nwords)
{
	Arena *arena = test_arena(6 * ARENA_CHUNK_BYTES + 100);
	CpuTree trees[2];
	Model models[2];
	GpudsOp ops[500];
	int failures = 0;

	CHECK(arena_size(arena) == 5 * ARENA_CHUNK_BYTES);
	memset(trees, 0, sizeof(trees));
	for (int i = 0; i < 2; i++)
	{
		cpu_btree_init(&trees[i], nwords);
		model_init(&models[i], 0);
	}
	for (int round = 0; round < 400; round++)
	{
		int i = (int) test_below(2);
		int64_t n = test_ops(ops, 1 + (int64_t) test_below(500), round % 2 ? KEYS_RANDOM : KEYS_ONE, nwords,
							 20000, failures % 3 == 2 ? 80 : 10);
		int64_t inserted, deleted;
		KernelStatus status = cpu_btree_apply(arena, &trees[i], ops, n, &inserted, &deleted);

		if (status == KERNEL_OK)
			model_apply(&models[i], ops, n, &inserted, &deleted);
		else
		{
			failures++;
			cpu_tree_reclaim(arena, &trees[i], UINT64_MAX);
		}
		check_same(arena, &trees[i], &models[i], nwords);
		if (status != KERNEL_OK && failures % 10 == 9)
		{
			/* the other one leaves */
			cpu_tree_withdraw(&trees[1 - i]);
			cpu_tree_release(arena, &trees[1 - i]);
			cpu_btree_init(&trees[1 - i], nwords);
			models[1 - i].n = 0;
			CHECK(arena_used(arena) == arena_space_bytes(&trees[i].space));
		}
	}
	CHECK(failures > 10);
	for (int i = 0; i < 2; i++)
	{
		cpu_tree_withdraw(&trees[i]);
		cpu_tree_release(arena, &trees[i]);
		free(models[i].e);
	}
	CHECK(arena_used(arena) == 0);
	free(arena);
}

/* Runs of neighbouring chunks are all of a space's chunks, and no others. */
static void
runs(void)
{
	enum
	{
		CHUNKS = 200
	};
	Arena *arena = test_arena((CHUNKS + 1) * ARENA_CHUNK_BYTES);
	ArenaSpace spaces[3];
	unsigned char owner[CHUNKS + 2];
	unsigned longest = 0;

	memset(owner, 0, sizeof(owner));
	for (int s = 0; s < 3; s++)
		arena_space_init(&spaces[s]);
	for (int round = 0; round < 200; round++)
	{
		int s = (int) test_below(3);
		int n = (int) test_below(40);

		/* whole chunks, in whatever order they come back in */
		for (int i = 0; i < n * (ARENA_CHUNK_UNITS / ARENA_MAX_UNITS); i++)
		{
			ArenaRef ref = arena_alloc(arena, &spaces[s], ARENA_MAX_UNITS);

			if (ref == 0)
				break;
			owner[ref / ARENA_CHUNK_UNITS] = (unsigned char) (s + 1);
		}
		for (int t = 0; t < 3; t++)
		{
			uint32_t at = spaces[t].chunks;
			uint32_t first;
			uint32_t length;
			uint32_t total = 0;

			while ((length = arena_space_stretch(arena, &at, &first)) > 0)
			{
				for (uint32_t i = 0; i < length; i++)
					CHECK(owner[first + i] == t + 1);
				longest = length > longest ? length : longest;
				total += length;
			}
			CHECK(total == spaces[t].nchunks);
		}
		s = (int) test_below(3);
		if (test_below(2))
		{
			arena_space_release(arena, &spaces[s]);
			for (int i = 0; i < CHUNKS + 2; i++)
				owner[i] = owner[i] == s + 1 ? 0 : owner[i];
		}
	}
	CHECK(longest > 10);
	free(arena);
}

int
main(void)
{
	runs();
	for (int nwords = 1; nwords <= 2; nwords++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			fail_build(kind, nwords, 300);
			fail_apply(kind, nwords, 0, 40, 0);
			fail_apply(kind, nwords, 300, 1, 50);
			fail_apply(kind, nwords, 300, 60, 50);
			fail_apply(kind, nwords, 300, 900, 95);
		}
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			pack_all(kind, nwords, 2000, 10);
			pack_all(kind, nwords, 6000, 700);
		}
		pack_all(KEYS_RANDOM, nwords, 6, 100);
		small_arena(nwords);
		for (int fill_percent = 50; fill_percent <= 100; fill_percent += 10)
		{
			guessed_size(nwords, fill_percent, false);
			guessed_size(nwords, fill_percent, true);
		}
	}
	printf("memory: ok\n");
	return 0;
}
