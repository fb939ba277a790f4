/*-------------------------------------------------------------------------
 *
 * graph_triangles.c
 *	  Triangles of the undirected simple graph that the edges make.
 *
 * A triangle u < v < w is found once, for u: w is in the lists of u and of v, and v in that of u.
 *
 * Most of the work is with the vertices of the most edges.  The highest CORE_MOST ranks are the core: each
 * has its list as a row of bits, too, beside the others.  For v in the core, either the rest of u's list is
 * looked up in v's row, or if it is long, two rows are compared.  For others, the list of v is looked up in
 * a bitmap of u's.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "kernels/graph/graph_algorithms.h"

/* Vertices of the core at most: its rows of 512 bytes fit in a cache of 2 MB. */
#define CORE_MOST 4096

/* From as many vertices of a list on, rows are compared. */
#define LONG_LIST 24

typedef struct Triangles
{
	const GraphLists *lists;
	uint64_t *bitmap;  /* of one list, by rank */
	uint32_t core;     /* its lowest rank */
	uint32_t words;    /* of a row */
	uint64_t *rows;    /* of the core, and one more, for a list of others */
	uint64_t *of_rank; /* triangles by rank, or NULL */
	uint64_t total;
	int64_t steps;
} Triangles;

static inline uint64_t *
row_of(const Triangles *all, uint32_t rank)
{
	return all->rows + (uint64_t) (rank - all->core) * all->words;
}

static inline void
set_bit(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

static inline uint64_t
get_bit(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

/* How many bits two rows have in common. */
static inline __attribute__((always_inline)) uint64_t
count_common_of(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < words; i++)
		sum += (uint64_t) __builtin_popcountll(a[i] & b[i]);
	return sum;
}

static uint64_t
count_common_plain(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	return count_common_of(a, b, words);
}

#if defined(__x86_64__)
static __attribute__((target("popcnt"))) uint64_t
count_common_popcnt(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	return count_common_of(a, b, words);
}

static __attribute__((target("avx512f,avx512vpopcntdq"))) uint64_t
count_common_avx512(const uint64_t *a, const uint64_t *b, uint32_t words)
{
	return count_common_of(a, b, words);
}
#endif

typedef uint64_t (*CountCommon)(const uint64_t *a, const uint64_t *b, uint32_t words);

/* The best way for this machine. */
static CountCommon
choose_count(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512vpopcntdq"))
		return count_common_avx512;
	if (__builtin_cpu_supports("popcnt"))
		return count_common_popcnt;
#endif
	return count_common_plain;
}

/* The same, and each vertex that they have in common gets one triangle. */
static uint64_t
give_common(const uint64_t *a, const uint64_t *b, uint32_t words, uint64_t *of_rank)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < words; i++)
	{
		for (uint64_t bits = a[i] & b[i]; bits != 0; bits &= bits - 1)
		{
			of_rank[64 * (uint64_t) i + (uint64_t) __builtin_ctzll(bits)]++;
			sum++;
		}
	}
	return sum;
}

/* How many members have a bit, which base is the number of; each of them gets one triangle, if wanted. */
static uint64_t
count_members(const uint64_t *bits, uint32_t base, const uint32_t *members, uint64_t n, uint64_t *of_rank)
{
	uint64_t sum = 0;

	if (of_rank == NULL)
	{
		for (uint64_t i = 0; i < n; i++)
			sum += get_bit(bits, members[i] - base);
		return sum;
	}
	for (uint64_t i = 0; i < n; i++)
	{
		const uint64_t bit = get_bit(bits, members[i] - base);

		sum += bit;
		of_rank[members[i]] += bit;
	}
	return sum;
}

/* Where the core begins among the members of a list, from begin to end. */
static uint64_t
find_core(const Triangles *all, uint64_t begin, uint64_t end)
{
	while (begin < end)
	{
		const uint64_t middle = begin + (end - begin) / 2;

		if (all->lists->members[middle] < all->core)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

/* The row of u's members in the core; for a vertex outside, it is made for the time being. */
static const uint64_t *
row_for(const Triangles *all, uint32_t u, uint64_t core_begin)
{
	uint64_t *row = row_of(all, u);

	if (u >= all->core)
		return row;
	row = all->rows + (uint64_t) all->words * 64 * all->words;
	memset(row, 0, all->words * sizeof(uint64_t));
	for (uint64_t i = core_begin; i < all->lists->end[u]; i++)
		set_bit(row, all->lists->members[i] - all->core);
	return row;
}

static inline void
add(Triangles *all, uint32_t u, uint32_t v, uint64_t found)
{
	all->total += found;
	if (all->of_rank)
	{
		all->of_rank[u] += found;
		all->of_rank[v] += found;
	}
}

/* Triangles of u and two members of its list that are in the core. */
static bool
count_in_core(GraphHost *host, Triangles *all, uint32_t u, uint64_t core_begin, CountCommon count_common)
{
	const GraphLists *lists = all->lists;
	const uint64_t end = lists->end[u];
	const uint64_t *row = end - core_begin > LONG_LIST ? row_for(all, u, core_begin) : NULL;

	for (uint64_t i = core_begin; i + 1 < end; i++)
	{
		const uint32_t v = lists->members[i];
		const uint64_t rest = end - i - 1;
		const uint32_t skip = (v - all->core) / 64;
		uint64_t found;

		if (row == NULL || rest < LONG_LIST)
			found = count_members(row_of(all, v), all->core, lists->members + i + 1, rest, all->of_rank);
		else if (all->of_rank)
			found = give_common(row + skip, row_of(all, v) + skip, all->words - skip,
								all->of_rank + all->core + 64 * skip);
		else
			found = count_common(row + skip, row_of(all, v) + skip, all->words - skip);
		add(all, u, v, found);
		if (!graph_step(host, &all->steps, LONG_LIST))
			return false;
	}
	return true;
}

/* Triangles of u and a member of its list that is not in the core. */
static bool
count_outside(GraphHost *host, Triangles *all, uint32_t u, uint64_t core_begin)
{
	const GraphLists *lists = all->lists;
	const uint64_t begin = lists->begin[u];
	const uint64_t end = lists->end[u];

	for (uint64_t i = begin; i < end; i++)
		set_bit(all->bitmap, lists->members[i]);
	for (uint64_t i = begin; i < core_begin; i++)
	{
		const uint32_t v = lists->members[i];
		const uint64_t n = lists->end[v] - lists->begin[v];

		add(all, u, v, count_members(all->bitmap, 0, lists->members + lists->begin[v], n, all->of_rank));
		if (!graph_step(host, &all->steps, (int64_t) n))
			return false;
	}
	for (uint64_t i = begin; i < end; i++)
		all->bitmap[lists->members[i] / 64] = 0;
	return true;
}

static bool
count_all(GraphHost *host, Triangles *all, uint32_t n)
{
	const CountCommon count_common = choose_count();

	for (uint32_t u = 0; u < n; u++)
	{
		const uint64_t begin = all->lists->begin[u];
		const uint64_t end = all->lists->end[u];
		const uint64_t core_begin = find_core(all, begin, end);

		if (end - begin < 2)
			continue;
		if (core_begin > begin && !count_outside(host, all, u, core_begin))
			return false;
		if (!count_in_core(host, all, u, core_begin, count_common))
			return false;
	}
	return true;
}

/* Makes the core's rows. */
static bool
begin_core(GraphHost *host, Triangles *all, uint32_t n)
{
	const uint32_t most = n < CORE_MOST ? n : CORE_MOST;

	all->core = n - most;
	all->words = (most + 63) / 64;
	all->rows = graph_allocate(host, (uint64_t) all->words * (64 * all->words + 1), sizeof(uint64_t), true);
	if (all->rows == NULL)
		return false;
	for (uint32_t r = all->core; r < n; r++)
	{
		for (uint64_t i = all->lists->begin[r]; i < all->lists->end[r]; i++)
			set_bit(row_of(all, r), all->lists->members[i] - all->core);
	}
	return true;
}

/* The triangles of lists; of_rank: zeros to begin with, or NULL. */
static bool
count(GraphHost *host, uint32_t n, const GraphLists *lists, uint64_t *total, uint64_t *of_rank)
{
	Triangles all = { .lists = lists, .of_rank = of_rank };

	if (!begin_core(host, &all, n))
		return false;
	all.bitmap = graph_allocate(host, (uint64_t) n / 64 + 1, sizeof(uint64_t), true);
	if (all.bitmap == NULL || !count_all(host, &all, n))
		return false;
	host->release(host->context, all.bitmap);
	host->release(host->context, all.rows);
	*total = all.total;
	return true;
}

/*
 * How many triangles there are, and if of_vertex is not NULL, how many each vertex is in, by number.
 * False: no memory, or stopped.  The edges are released.
 */
bool
graph_triangles(GraphHost *host, uint32_t nvertices, GraphEdges *edges, uint64_t *total, uint64_t *of_vertex)
{
	uint32_t *rank = graph_rank_vertices(host, nvertices, edges);
	uint64_t *of_rank = of_vertex ? graph_allocate(host, nvertices, sizeof(uint64_t), true) : NULL;
	GraphLists lists = { 0 };

	if (rank == NULL || (of_vertex && of_rank == NULL) ||
		!graph_lists_make(host, nvertices, edges, rank, &lists) ||
		!count(host, nvertices, &lists, total, of_rank))
		return false;
	graph_lists_release(host, &lists);
	if (of_vertex)
	{
		for (uint32_t v = 0; v < nvertices; v++)
			of_vertex[v] = of_rank[rank[v]];
		host->release(host->context, of_rank);
	}
	host->release(host->context, rank);
	return true;
}
