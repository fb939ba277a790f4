/*-------------------------------------------------------------------------
 *
 * structure_vtable.h
 *	  Structures of the CPU device as src/ sees them: by their rows in the table.
 *
 * What a test does by these functions it does to every structure.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KERNELS_DOOR_H
#define TEST_KERNELS_DOOR_H

#include "common.h"

#include "device/cpu_dispatch.h"
#define STRUCTURES_ON_CPU
#include "kernels/structures.h"

/* A structure's row, and its functions but for those that gpuds_cpu_variants has. */
typedef struct Door
{
	int number;
	const char *name;
	CpuStructure cpu;
} Door;

#define DOOR_ROW(row_number, NAME, prefix, Name, title) { (row_number), #prefix, CPU_STRUCTURE(prefix) },

static const Door doors[] = { STRUCTURE_ROWS(DOOR_ROW) };

#define DOORS ((int) (sizeof(doors) / sizeof(doors[0])))

/* The structure with this number. */
static inline const Door *
door_of(int number)
{
	for (int d = 0; d < DOORS; d++)
	{
		if (doors[d].number == number)
			return &doors[d];
	}
	CHECK(false);
	return NULL;
}

/*
 * Changes make new nodes, and readers see one version throughout.  All other structures are changed in place:
 * readers may meet them between two operations of a batch.
 */
static inline bool
door_copies(const Door *door)
{
	return door->number != GPUDS_STRUCTURE_HASH && door->number != GPUDS_STRUCTURE_SKIPLIST;
}

/* Room for a tree and for a load of any structure. */
typedef union DoorTree
{
	CpuTree common;
	char room[CPU_TREE_BYTES];
} DoorTree;

typedef union DoorBuild
{
	uint64_t alignment;
	char room[CPU_BUILD_BYTES];
} DoorBuild;

/* More distributions of keys. */
enum
{
	DOOR_DUPLICATES = KEYS_KINDS, /* up to ten entries a key */
	DOOR_ALIKE,                   /* keys that a hash table puts into one line of a segment */
	DOOR_KINDS
};

/* Key k of those that are at home in the first lines of a segment. */
static inline uint64_t
door_alike(uint64_t k, int lines)
{
	GpudsEntry e = { 0, 0, 0 };

	for (e.w0 = k * 1000;; e.w0++)
	{
		if (hash_home(hash_of(&e)) < lines)
			return e.w0;
	}
}

/* A random entry; bits 55..48 of t are zero, as in indexes. */
static inline GpudsEntry
door_entry(int kind, int nwords, uint64_t range)
{
	uint64_t k = test_below(range);
	GpudsEntry e = { 0, 0, 0 };

	switch (kind)
	{
		case DOOR_DUPLICATES:
			e.w0 = k / 10 * UINT64_C(0x9E3779B97F4A7C15);
			e.w1 = nwords == 2 ? k / 20 : 0;
			e.t = k / 10 % 3 << ENTRY_SPILL_SHIFT | k % 10 << 16 | 1;
			break;
		case DOOR_ALIKE:
			e.w0 = door_alike(k / 2, 1);
			e.t = k % 2 << 16 | 1;
			break;
		default:
			e = test_entry(kind, nwords, range);
			e.t &= ENTRY_TID_MASK | UINT64_C(0xFF) << ENTRY_SPILL_SHIFT;
			break;
	}
	return e;
}

/* Up to n ascending random operations. */
static inline int64_t
door_ops(GpudsOp *ops, int64_t n, int kind, int nwords, uint64_t range, int delete_percent)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
	{
		ops[i].e = door_entry(kind, nwords, range);
		ops[i].order = (uint64_t) i << 1 | (test_below(100) < (uint64_t) delete_percent);
	}
	qsort(ops, (size_t) n, sizeof(GpudsOp), test_compare);
	for (int64_t i = 0; i < n; i++)
	{
		if (kept == 0 || !entry_equal(&ops[kept - 1].e, &ops[i].e))
			ops[kept++] = ops[i];
	}
	return kept;
}

/* Fill a model with up to n different random entries. */
static inline void
door_fill(Model *m, int64_t n, int kind, int nwords, uint64_t range)
{
	model_init(m, n);
	for (int64_t i = 0; i < n; i++)
		m->e[i] = door_entry(kind, nwords, range);
	qsort(m->e, (size_t) n, sizeof(GpudsEntry), test_compare);
	m->n = sort_unique_entries(m->e, n);
}

/* Begins a tree's life in memory that is zero or was another tree's. */
static inline void
door_init(DoorTree *tree)
{
	uint64_t version = tree->common.version;

	memset(tree, 0, sizeof(*tree));
	tree->common.version = version;
	arena_space_init(&tree->common.space);
	cpu_tree_withdraw(&tree->common);
}

/* Builds a tree of a model's entries in pieces. */
static inline KernelStatus
door_build(const Door *door, Arena *arena, DoorTree *tree, const Model *m, int nwords, int fill_percent)
{
	DoorBuild build;
	KernelStatus status = door->cpu.build_begin(arena, &tree->common, &build, nwords, fill_percent);

	if (status != KERNEL_OK)
		return status;
	for (int64_t i = 0; i < m->n && status == KERNEL_OK;)
	{
		int64_t k = 1 + (int64_t) test_below(1000);

		k = k < m->n - i ? k : m->n - i;
		status = door->cpu.build_add(&build, m->e + i, k);
		i += k;
	}
	if (status == KERNEL_OK)
		status = door->cpu.build_finish(&build);
	if (status != KERNEL_OK)
		door->cpu.build_cancel(&build);
	return status;
}

static inline void
door_drop(const Door *door, Arena *arena, DoorTree *tree)
{
	cpu_tree_withdraw(&tree->common);
	door->cpu.release(arena, &tree->common);
}

static inline void
door_verify(const Door *door, const Arena *arena, const DoorTree *tree)
{
	char why[200] = "";

	if (!door->cpu.verify(arena, &tree->common, why, sizeof(why)))
	{
		fprintf(stderr, "%s: verify: %s\n", door->name, why);
		exit(1);
	}
}

/* The interval of all entries that have the key of e. */
static inline GpudsInterval
door_key(const GpudsEntry *e)
{
	GpudsInterval key = { *e, *e };

	key.lo.t &= UINT64_C(0xFF) << ENTRY_SPILL_SHIFT;
	key.hi.t |= ENTRY_TID_MASK;
	return key;
}

/* The interval of all entries. */
static inline GpudsInterval
door_all(int nwords)
{
	GpudsInterval all = { { 0, 0, 0 }, { UINT64_MAX, nwords == 2 ? UINT64_MAX : 0, UINT64_MAX } };

	return all;
}

#endif /* TEST_KERNELS_DOOR_H */
