/*-------------------------------------------------------------------------
 *
 * common.h
 *	  What the kernel tests share: an arena, random entries, and a model of a
 *	  tree, which is a sorted array.
 *
 * A failed CHECK says where and ends the program with status 1.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_KERNELS_COMMON_H
#define TEST_KERNELS_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/btree/btree_structure_cpu.h"
#include "kernels/core/page_rows.h"
#include "kernels/core/pins.h"
#include "kernels/core/sort.h"

#define CHECK(condition)                                                    \
	do                                                                      \
	{                                                                       \
		if (!(condition))                                                   \
		{                                                                   \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                        \
		}                                                                   \
	} while (0)

static uint64_t test_seed = 1;

static inline uint64_t
test_random(void)
{
	uint64_t z = (test_seed += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static inline uint64_t
test_below(uint64_t n)
{
	return test_random() % n;
}

static inline Arena *
test_arena(size_t bytes)
{
	void *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	CHECK(memory != NULL);
	arena_init((Arena *) memory, bytes);
	return (Arena *) memory;
}

/* Distributions of keys. */
enum
{
	KEYS_RANDOM,
	KEYS_DENSE,
	KEYS_FEW,
	KEYS_ONE,
	KEYS_CLUSTERED,
	KEYS_EDGES,
	KEYS_KINDS
};

/* A maker of random entries: of a distribution, so many key words, out of about range different ones. */
typedef GpudsEntry (*TestEntry)(int kind, int nwords, uint64_t range);

static inline GpudsEntry
test_entry(int kind, int nwords, uint64_t range)
{
	uint64_t k = test_below(range);
	GpudsEntry e = { 0, 0, 0 };

	switch (kind)
	{
		case KEYS_RANDOM:
			e.w0 = k * UINT64_C(0x9E3779B97F4A7C15);
			e.w1 = k * UINT64_C(0xD1B54A32D192ED03);
			e.t = k;
			break;
		case KEYS_DENSE:
			e.w0 = k;
			e.w1 = UINT64_C(1) << 63 | k;
			e.t = k << 16 | 1;
			break;
		case KEYS_FEW:
			e.w0 = k % 5 << 60;
			e.w1 = k % 2;
			e.t = k;
			break;
		case KEYS_ONE:
			e.w0 = 42;
			e.t = k;
			break;
		case KEYS_CLUSTERED:
			e.w0 = (k % 17) * UINT64_C(0x0101010101010101) + k % 1000;
			e.w1 = k / 1000 % 7 << 40;
			e.t = (k & 1) << 60 | k;
			break;
		default:
			e.w0 = k % 3 == 0 ? 0 : k % 3 == 1 ? UINT64_MAX : UINT64_MAX - k;
			e.w1 = k % 2 ? UINT64_MAX : 0;
			e.t = k % 5 == 0 ? UINT64_MAX - 1 - k : k / 15;
			break;
	}
	if (nwords == 1)
		e.w1 = 0;
	return e;
}

static inline int
test_compare(const void *a, const void *b)
{
	return entry_less((const GpudsEntry *) a, (const GpudsEntry *) b)
			   ? -1
			   : entry_less((const GpudsEntry *) b, (const GpudsEntry *) a);
}

/* A set of entries as an array. */
typedef struct Model
{
	GpudsEntry *e;
	int64_t n;
	int64_t cap;
} Model;

static inline void
model_init(Model *m, int64_t cap)
{
	m->e = (GpudsEntry *) malloc((size_t) (cap > 0 ? cap : 1) * sizeof(GpudsEntry));
	CHECK(m->e != NULL);
	m->n = 0;
	m->cap = cap;
}

/* How many entries are before e. */
static inline int64_t
model_rank(const Model *m, const GpudsEntry *e)
{
	int64_t lo = 0;
	int64_t hi = m->n;

	while (lo < hi)
	{
		int64_t mid = (lo + hi) / 2;

		if (entry_less(&m->e[mid], e))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Apply ascending operations. */
static inline void
model_apply(Model *m, const GpudsOp *ops, int64_t n, int64_t *inserted, int64_t *deleted)
{
	Model to;
	int64_t i = 0;

	model_init(&to, m->n + n);
	*inserted = *deleted = 0;
	for (int64_t o = 0; o < n; o++)
	{
		bool there;

		while (i < m->n && entry_less(&m->e[i], &ops[o].e))
			to.e[to.n++] = m->e[i++];
		there = i < m->n && entry_equal(&m->e[i], &ops[o].e);
		if (ops[o].order & 1)
		{
			i += there;
			*deleted += there;
		}
		else
		{
			if (!there)
				to.e[to.n++] = ops[o].e;
			*inserted += !there;
		}
	}
	while (i < m->n)
		to.e[to.n++] = m->e[i++];
	free(m->e);
	*m = to;
}

/* Fill with up to n different random entries. */
static inline void
model_fill_of(TestEntry entry, Model *m, int64_t n, int kind, int nwords, uint64_t range)
{
	model_init(m, n);
	for (int64_t i = 0; i < n; i++)
		m->e[i] = entry(kind, nwords, range);
	qsort(m->e, (size_t) n, sizeof(GpudsEntry), test_compare);
	m->n = sort_unique_entries(m->e, n);
}

static inline void
model_fill(Model *m, int64_t n, int kind, int nwords, uint64_t range)
{
	model_fill_of(test_entry, m, n, kind, nwords, range);
}

/* Is the entry's heap page all-visible, by two bits a page of which the lower one says so? */
static inline bool
test_visible(const GpudsEntry *e, const unsigned char *map, uint64_t bytes)
{
	uint64_t page = (e->t & ENTRY_TID_MASK) >> 16;

	return page / 4 < bytes && (map[page / 4] >> (page % 4 * 2) & 1) != 0;
}

/* A map of random length and density: none, few, many or all of the pages are all-visible. */
static inline uint64_t
test_map(unsigned char *map, uint64_t most)
{
	uint64_t bytes = test_below(6) == 0 ? 0 : test_below(most + 1);
	uint64_t percent = test_below(2) ? test_below(101) : test_below(2) * 100;

	for (uint64_t i = 0; i < bytes * 8; i++)
	{
		bool set = i % 2 == 0 ? test_below(100) < percent : test_below(2) == 0;

		map[i / 8] = (unsigned char) ((i % 8 == 0 ? 0 : map[i / 8]) | set << i % 8);
	}
	return bytes;
}

/* What tables of rows have at most. */
#define TEST_ROW_SLOTS 64
#define TEST_ROW_WORDS 200

/*
 * A random table of rows, for which places and pages have room, of most bytes at most: no table; slots for
 * some or all of the pages that a model's entries are on; words for some or all of their offsets.
 */
static inline PageRows
test_rows(uint32_t *places, uint32_t *pages, size_t most, const Model *m)
{
	PageRows rows = { places, pages, 0, (uint32_t) test_below(test_below(2) ? 5 : TEST_ROW_WORDS + 1), 0 };
	uint64_t state = test_below(6);

	if (test_below(4) == 0)
		return rows;
	rows.slots = UINT32_C(1) << test_below(7);
	while (page_rows_bytes(rows.slots, rows.slots, rows.words) > most)
		rows.slots /= 2;
	memset(places, 0, rows.slots * sizeof(uint32_t));
	for (uint64_t i = 0; i < 3 * (uint64_t) rows.slots; i++)
	{
		uint64_t block = m->n > 0 ? (m->e[test_below((uint64_t) m->n)].t & ENTRY_TID_MASK) >> 16 : i;
		uint32_t *place = &places[block % rows.slots];

		if (*place == 0)
			*place = ++rows.npages;
		pages[(*place - 1) * (1 + rows.words)] = test_below(20) == 0 ? 0 : (uint32_t) block + 1;
	}
	for (uint64_t i = 0; i < (uint64_t) rows.npages * (1 + rows.words); i++)
	{
		uint32_t word = (uint32_t) test_random();

		if (i % (1 + rows.words) == 0)
			continue;
		/* all of one state, or some of each */
		pages[i] = state < 3 ? UINT32_C(0x55555555) * (uint32_t) state
							 : word & ~((word & word >> 1 & UINT32_C(0x55555555)) * 3);
	}
	return rows;
}

/* What map and rows say of an entry's row. */
static inline PageRow
test_row(const GpudsEntry *e, const unsigned char *map, uint64_t map_bytes, const PageRows *rows)
{
	uint64_t page = (e->t & ENTRY_TID_MASK) >> 16;
	uint64_t offset = e->t & 0xFFFF;
	uint32_t place = rows->slots > 0 ? rows->places[page % rows->slots] : 0;
	const uint32_t *at = place > 0 ? rows->pages + (uint64_t) (place - 1) * (1 + rows->words) : NULL;

	if (test_visible(e, map, map_bytes))
		return PAGE_ROW_SEEN;
	if (at == NULL || at[0] == 0 || at[0] - 1 != page || offset < 1 || offset > 16 * (uint64_t) rows->words)
		return PAGE_ROW_UNKNOWN;
	offset--;
	return (PageRow) (at[1 + offset / 16] >> 2 * (offset % 16) & 3);
}

/* Is the entry of such a row handed back where entries are? */
static inline bool
test_goes_back(PageRow row)
{
	return row != PAGE_ROW_SEEN && row != PAGE_ROW_UNSEEN;
}

/* Up to n ascending random operations on such entries. */
static inline int64_t
test_ops_of(TestEntry entry, GpudsOp *ops, int64_t n, int kind, int nwords, uint64_t range,
			int delete_percent)
{
	int64_t kept = 0;

	for (int64_t i = 0; i < n; i++)
	{
		ops[i].e = entry(kind, nwords, range);
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

static inline int64_t
test_ops(GpudsOp *ops, int64_t n, int kind, int nwords, uint64_t range, int delete_percent)
{
	return test_ops_of(test_entry, ops, n, kind, nwords, range, delete_percent);
}

static inline void
test_verify(const Arena *arena, const CpuTree *tree)
{
	char why[200] = "";

	if (!btree_cpu_verify(arena, tree, why, sizeof(why)))
	{
		fprintf(stderr, "verify: %s\n", why);
		exit(1);
	}
}

/* Bulk build of a model's entries in pieces. */
static inline KernelStatus
test_build(Arena *arena, CpuTree *tree, const Model *m, int fill)
{
	CpuBtreeBuild build;
	KernelStatus status = cpu_btree_build_begin(arena, tree, &build, fill);

	for (int64_t i = 0; i < m->n && status == KERNEL_OK;)
	{
		int64_t k = 1 + (int64_t) test_below(1000);

		k = k < m->n - i ? k : m->n - i;
		status = btree_cpu_build_add(&build, m->e + i, k);
		i += k;
	}
	if (status == KERNEL_OK)
		status = btree_cpu_build_finish(&build);
	if (status != KERNEL_OK)
		btree_cpu_build_cancel(&build);
	return status;
}

#endif /* TEST_KERNELS_COMMON_H */
