/*-------------------------------------------------------------------------
 *
 * graph_lists.c
 *	  The undirected simple graph that the edges make, each edge at the lower of its vertices.
 *
 * Neither directions, nor edges of a vertex to itself, nor parallel edges count.  Vertices are ranked by
 * their number of edges, so the list of a vertex is short, at most about the square root of twice the
 * number of edges.
 *
 * Lists are sorted, and free of duplicates, without a sort: edges are put in lists of the higher vertex
 * first, and from these in ascending order into the lists of the lower one.
 *
 *-------------------------------------------------------------------------
 */
#include "kernels/core/sort.h"
#include "kernels/graph/graph_algorithms.h"

static inline uint32_t
lower(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t
higher(uint32_t a, uint32_t b)
{
	return a < b ? b : a;
}

/* Gives the lists' memory back. */
void
graph_lists_release(GraphHost *host, GraphLists *lists)
{
	host->release(host->context, lists->begin);
	host->release(host->context, lists->end);
	host->release(host->context, lists->members);
}

/* Room for lists whose lengths are in end; makes begin and end of it. */
static bool
begin_lists(GraphHost *host, uint32_t n, GraphLists *lists)
{
	uint64_t sum = 0;

	lists->begin = graph_allocate(host, n, sizeof(uint64_t), false);
	if (lists->begin == NULL)
		return false;
	for (uint32_t r = 0; r < n; r++)
	{
		lists->begin[r] = sum;
		sum += lists->end[r];
		lists->end[r] = lists->begin[r];
	}
	lists->members = graph_allocate(host, sum, sizeof(uint32_t), false);
	return lists->members != NULL;
}

/* Each vertex with the number of its edges in the high half, which may end at the most that this holds. */
static uint64_t *
count_edges(GraphHost *host, uint32_t n, const GraphEdges *edges)
{
	const uint64_t one = UINT64_C(1) << 32;
	uint64_t *words = graph_allocate(host, n, sizeof(uint64_t), false);

	if (words == NULL)
		return NULL;
	for (uint32_t v = 0; v < n; v++)
		words[v] = v;
	for (uint64_t row = 0; row < edges->nrows; row++)
	{
		const uint32_t source = edges->rows[row].source;

		for (uint64_t i = graph_row_begin(edges, row); i < edges->rows[row].end; i++)
		{
			const uint32_t target = edges->targets[i];

			if (words[source] < UINT32_MAX * one)
				words[source] += one;
			if (words[target] < UINT32_MAX * one)
				words[target] += one;
		}
	}
	return words;
}

/* The rank of each vertex, by number; NULL: no memory. */
uint32_t *
graph_rank_vertices(GraphHost *host, uint32_t n, const GraphEdges *edges)
{
	uint64_t *words = count_edges(host, n, edges);
	uint64_t *scratch = words ? graph_allocate(host, n, sizeof(uint64_t), false) : NULL;
	uint32_t *rank = scratch ? graph_allocate(host, n, sizeof(uint32_t), false) : NULL;

	if (rank == NULL)
		return NULL;
	sort_u64(words, scratch, n);
	for (uint32_t r = 0; r < n; r++)
		rank[(uint32_t) words[r]] = r;
	host->release(host->context, words);
	host->release(host->context, scratch);
	return rank;
}

/* GraphLists of lower neighbours, in no order and with duplicates. */
static bool
list_by_higher(GraphHost *host, uint32_t n, const GraphEdges *edges, const uint32_t *rank, GraphLists *lists)
{
	int64_t steps = 0;

	lists->end = graph_allocate(host, n, sizeof(uint64_t), true);
	if (lists->end == NULL)
		return false;
	for (int pass = 0; pass < 2; pass++)
	{
		for (uint64_t row = 0; row < edges->nrows; row++)
		{
			const uint64_t first = graph_row_begin(edges, row);
			const uint32_t a = rank[edges->rows[row].source];

			for (uint64_t i = first; i < edges->rows[row].end; i++)
			{
				const uint32_t b = rank[edges->targets[i]];

				if (a == b)
					continue;
				if (pass == 1)
					lists->members[lists->end[higher(a, b)]] = lower(a, b);
				lists->end[higher(a, b)]++;
			}
			if (!graph_step(host, &steps, (int64_t) (edges->rows[row].end - first)))
				return false;
		}
		if (pass == 0 && !begin_lists(host, n, lists))
			return false;
	}
	return true;
}

/* GraphLists of higher neighbours, ascending and without duplicates. */
static bool
list_by_lower(GraphHost *host, uint32_t n, const GraphLists *from, GraphLists *lists)
{
	int64_t steps = 0;

	lists->end = graph_allocate(host, n, sizeof(uint64_t), true);
	if (lists->end == NULL)
		return false;
	for (uint64_t i = 0; n > 0 && i < from->end[n - 1]; i++)
		lists->end[from->members[i]]++;
	if (!begin_lists(host, n, lists))
		return false;
	for (uint32_t r = 0; r < n; r++)
	{
		for (uint64_t i = from->begin[r]; i < from->end[r]; i++)
		{
			const uint32_t member = from->members[i];
			const uint64_t end = lists->end[member];

			if (end > lists->begin[member] && lists->members[end - 1] == r)
				continue;
			lists->members[end] = r;
			lists->end[member]++;
		}
		if (!graph_step(host, &steps, (int64_t) (from->end[r] - from->begin[r])))
			return false;
	}
	return true;
}

/*
 * Makes the lists of a graph's vertices by their ranks.  False: no memory, or stopped.  The edges are
 * released on the way, so that there are never more than two words of 32 bits for each of them.
 */
bool
graph_lists_make(GraphHost *host, uint32_t n, GraphEdges *edges, const uint32_t *rank, GraphLists *lists)
{
	GraphLists by_higher = { 0 };

	if (!list_by_higher(host, n, edges, rank, &by_higher))
		return false;
	graph_edges_release(host, edges);
	if (!list_by_lower(host, n, &by_higher, lists))
		return false;
	graph_lists_release(host, &by_higher);
	return true;
}
