/*-------------------------------------------------------------------------
 *
 * structure_vtable.h
 *	  Structures of the CPU device as src/ sees them: by their rows in the table.
 *
 * What a test does by these functions it does to every structure.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KERNELS_STRUCTURE_VTABLE_H
#define TEST_KERNELS_STRUCTURE_VTABLE_H

#include "common.h"

#include "device/cpu_dispatch.h"
#define STRUCTURES_ON_CPU
#include "kernels/structures.h"

/* A structure's row, and its functions but for those that gpuds_cpu_variants has. */
typedef struct Vtable
{
	int number;
	const char *name;
	CpuStructure cpu;
} Vtable;

#define VTABLE_ROW(row_number, NAME, prefix, Name, title) { (row_number), #prefix, CPU_STRUCTURE(prefix) },

static const Vtable vtables[] = { STRUCTURE_ROWS(VTABLE_ROW) };

#define VTABLES ((int) (sizeof(vtables) / sizeof(vtables[0])))

/* The structure with this number. */
static inline const Vtable *
vtable_of(int number)
{
	for (int d = 0; d < VTABLES; d++)
	{
		if (vtables[d].number == number)
			return &vtables[d];
	}
	CHECK(false);
	return NULL;
}

/*
 * Changes make new nodes, and readers see one version throughout.  All other structures are changed in place:
 * readers may meet them between two operations of a batch.
 */
static inline bool
vtable_copies(const Vtable *vtable)
{
	return vtable->number != GPUDS_STRUCTURE_SKIPLIST && vtable->number != GPUDS_STRUCTURE_AVL;
}

/* Room for a tree and for a load of any structure. */
typedef union VtableTree
{
	CpuTree common;
	char bytes[CPU_TREE_BYTES];
} VtableTree;

typedef union VtableBuild
{
	uint64_t alignment;
	char bytes[CPU_BUILD_BYTES];
} VtableBuild;

/* More distributions of keys. */
enum
{
	VTABLE_DUPLICATES = KEYS_KINDS, /* up to ten entries a key */
	VTABLE_KINDS
};

/* A random entry; bits 55..48 of t are zero, as in indexes. */
static inline GpudsEntry
vtable_entry(int kind, int nwords, uint64_t range)
{
	uint64_t k = test_below(range);
	GpudsEntry e = { 0, 0, 0 };

	switch (kind)
	{
		case VTABLE_DUPLICATES:
			e.w0 = k / 10 * UINT64_C(0x9E3779B97F4A7C15);
			e.w1 = nwords == 2 ? k / 20 : 0;
			e.t = k / 10 % 3 << ENTRY_SPILL_SHIFT | k % 10 << 16 | 1;
			break;
		default:
			e = test_entry(kind, nwords, range);
			e.t &= ENTRY_TID_MASK | UINT64_C(0xFF) << ENTRY_SPILL_SHIFT;
			break;
	}
	return e;
}

static inline int64_t
vtable_ops(GpudsOp *ops, int64_t n, int kind, int nwords, uint64_t range, int delete_percent)
{
	return test_ops_of(vtable_entry, ops, n, kind, nwords, range, delete_percent);
}

static inline void
vtable_fill(Model *m, int64_t n, int kind, int nwords, uint64_t range)
{
	model_fill_of(vtable_entry, m, n, kind, nwords, range);
}

/* Begins a tree's life in memory that is zero or was another tree's. */
static inline void
vtable_init(VtableTree *tree)
{
	uint64_t version = tree->common.version;

	memset(tree, 0, sizeof(*tree));
	tree->common.version = version;
	arena_space_init(&tree->common.space);
	cpu_tree_withdraw(&tree->common);
}

/* Builds a tree of a model's entries in pieces. */
static inline KernelStatus
vtable_build(const Vtable *vtable, Arena *arena, VtableTree *tree, const Model *m, int nwords,
			 int fill_percent)
{
	VtableBuild build;
	KernelStatus status = vtable->cpu.build_begin(arena, &tree->common, &build, nwords, fill_percent);

	if (status != KERNEL_OK)
		return status;
	for (int64_t i = 0; i < m->n && status == KERNEL_OK;)
	{
		int64_t k = 1 + (int64_t) test_below(1000);

		k = k < m->n - i ? k : m->n - i;
		status = vtable->cpu.build_add(&build, m->e + i, k);
		i += k;
	}
	if (status == KERNEL_OK)
		status = vtable->cpu.build_finish(&build);
	if (status != KERNEL_OK)
		vtable->cpu.build_cancel(&build);
	return status;
}

static inline void
vtable_drop(const Vtable *vtable, Arena *arena, VtableTree *tree)
{
	cpu_tree_withdraw(&tree->common);
	vtable->cpu.release(arena, &tree->common);
}

static inline void
vtable_verify(const Vtable *vtable, const Arena *arena, const VtableTree *tree)
{
	char why[200] = "";

	if (!vtable->cpu.verify(arena, &tree->common, why, sizeof(why)))
	{
		fprintf(stderr, "%s: verify: %s\n", vtable->name, why);
		exit(1);
	}
}

/* The interval of all entries that have the key of e. */
static inline GpudsInterval
vtable_key(const GpudsEntry *e)
{
	GpudsInterval key = { *e, *e };

	key.lo.t &= UINT64_C(0xFF) << ENTRY_SPILL_SHIFT;
	key.hi.t |= ENTRY_TID_MASK;
	return key;
}

/* The interval of all entries. */
static inline GpudsInterval
vtable_all(int nwords)
{
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };

	return all;
}

/* Turns entries round. */
static inline void
vtable_reverse(GpudsEntry *e, int64_t n)
{
	for (int64_t i = 0; i < n / 2; i++)
	{
		GpudsEntry other = e[n - 1 - i];

		e[n - 1 - i] = e[i];
		e[i] = other;
	}
}

#endif /* TEST_KERNELS_STRUCTURE_VTABLE_H */
