/*-------------------------------------------------------------------------
 *
 * graph_pagerank.c
 *	  PageRank by power iteration.
 *
 * Edges are turned around first, so that an iteration reads what a vertex receives and writes it once.
 * Parallel edges count as often as they are there.  A vertex without outgoing edges gives its rank to all
 * vertices alike.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "kernels/graph/graph_algorithms.h"

/* Edges by target: those that end at v begin at sources[begin[v]] to sources[begin[v + 1] - 1]. */
typedef struct Incoming
{
	uint64_t *begin;
	uint32_t *sources;
} Incoming;

typedef struct Ranks
{
	double *rank;
	double *share;    /* what each outgoing edge of a vertex is worth */
	double *per_edge; /* 1 / outgoing edges, or 0 */
} Ranks;

/*
 * Turns the edges around, by counting.  While they are put in their places, begin[v + 1] is where the next
 * one goes that ends at v.
 */
static bool
turn_around(GraphHost *host, uint32_t nvertices, const GraphEdges *edges, Incoming *incoming)
{
	uint64_t *begin = graph_allocate(host, (uint64_t) nvertices + 2, sizeof(uint64_t), true);
	int64_t steps = 0;

	incoming->begin = begin;
	incoming->sources = begin ? graph_allocate(host, edges->n, sizeof(uint32_t), false) : NULL;
	if (incoming->sources == NULL)
		return false;
	for (uint64_t i = 0; i < edges->n; i++)
		begin[edges->targets[i] + 2]++;
	for (uint32_t v = 0; v < nvertices; v++)
		begin[v + 2] += begin[v + 1];
	for (uint64_t row = 0; row < edges->nrows; row++)
	{
		const uint64_t first = graph_row_begin(edges, row);
		const uint64_t end = edges->rows[row].end;

		for (uint64_t i = first; i < end; i++)
			incoming->sources[begin[edges->targets[i] + 1]++] = edges->rows[row].source;
		if (!graph_step(host, &steps, (int64_t) (end - first)))
			return false;
	}
	return true;
}

static bool
begin_ranks(GraphHost *host, uint32_t nvertices, const GraphEdges *edges, Ranks *ranks)
{
	ranks->rank = graph_allocate(host, nvertices, sizeof(double), false);
	ranks->share = ranks->rank ? graph_allocate(host, nvertices, sizeof(double), false) : NULL;
	ranks->per_edge = ranks->share ? graph_allocate(host, nvertices, sizeof(double), true) : NULL;
	if (ranks->per_edge == NULL)
		return false;
	for (uint64_t row = 0; row < edges->nrows; row++)
		ranks->per_edge[edges->rows[row].source] += (double) (edges->rows[row].end -
															  graph_row_begin(edges, row));
	for (uint32_t v = 0; v < nvertices; v++)
	{
		ranks->rank[v] = 1.0 / nvertices;
		if (ranks->per_edge[v] > 0)
			ranks->per_edge[v] = 1.0 / ranks->per_edge[v];
	}
	return true;
}

/* Divides each vertex's rank among its edges; returns the rank of those that have none. */
static double
divide(const Ranks *ranks, uint32_t nvertices)
{
	double dangling = 0;

	for (uint32_t v = 0; v < nvertices; v++)
	{
		ranks->share[v] = ranks->rank[v] * ranks->per_edge[v];
		if (ranks->per_edge[v] == 0)
			dangling += ranks->rank[v];
	}
	return dangling;
}

/* What a vertex receives, in four sums, so that an addition need not wait for the one before. */
static inline double
receive(const double *share, const uint32_t *sources, uint64_t n)
{
	double sum[4] = { 0, 0, 0, 0 };
	uint64_t i = 0;

	for (; i + 4 <= n; i += 4)
	{
		for (int j = 0; j < 4; j++)
			sum[j] += share[sources[i + j]];
	}
	for (; i < n; i++)
		sum[0] += share[sources[i]];
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

/* One iteration; *difference: the sum of what ranks have changed by. */
static bool
iterate(GraphHost *host, uint32_t nvertices, const Incoming *incoming, const Ranks *ranks, double damping,
		double *difference)
{
	const double dangling = divide(ranks, nvertices);
	const double base = (1 - damping) / nvertices + damping * dangling / nvertices;
	int64_t steps = 0;

	*difference = 0;
	for (uint32_t v = 0; v < nvertices; v++)
	{
		const uint64_t first = incoming->begin[v];
		const uint64_t n = incoming->begin[v + 1] - first;
		const double rank = base + damping * receive(ranks->share, incoming->sources + first, n);

		*difference += fabs(rank - ranks->rank[v]);
		ranks->rank[v] = rank;
		if (!graph_step(host, &steps, (int64_t) n + 1))
			return false;
	}
	return graph_step(host, &steps, GRAPH_STEPS);
}

/*
 * The ranks of all vertices by number, whose sum is 1; NULL: no memory, or stopped.  Iterates until the
 * difference is at most the tolerance, or as often as the parameters say.  The edges are released.
 */
double *
graph_pagerank(GraphHost *host, uint32_t nvertices, GraphEdges *edges, GraphPagerank *parameters)
{
	Incoming incoming;
	Ranks ranks;

	if (!begin_ranks(host, nvertices, edges, &ranks) || !turn_around(host, nvertices, edges, &incoming))
		return NULL;
	graph_edges_release(host, edges);
	parameters->difference = INFINITY;
	for (parameters->done = 0;
		 parameters->done < parameters->most && parameters->difference > parameters->tolerance;
		 parameters->done++)
	{
		if (!iterate(host, nvertices, &incoming, &ranks, parameters->damping, &parameters->difference))
			return NULL;
	}
	host->release(host->context, incoming.begin);
	host->release(host->context, incoming.sources);
	host->release(host->context, ranks.share);
	host->release(host->context, ranks.per_edge);
	return ranks.rank;
}
