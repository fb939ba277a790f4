/*-------------------------------------------------------------------------
 *
 * gpu_graph_pagerank.h
 *	  PageRank of a graph in device memory, by power iteration.
 *
 * A warp adds up what a vertex receives, so each vertex is written once.  All sums have an order that depends
 * on the graph alone: the same graph has the same ranks.  As in graph_pagerank.c, equal edges count as often
 * as they are there, so the graph must have been made without a base, and a vertex without outgoing edges
 * gives its rank to all vertices alike.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_PAGERANK_H
#define GPU_GRAPH_PAGERANK_H

#include <math.h>
#include <string.h>

#include "kernels/graph/gpu_graph_build.h"

/* Edges that one request goes over, about, and iterations and threads of a vertex at most. */
#define GPU_RANK_EDGES (INT64_C(1) << 28)
#define GPU_RANK_ITERATIONS 1024
#define GPU_RANK_LANES 32

/* A sum of many is added up in so many parts, then in so many of these, and then of them. */
#define GPU_RANK_PARTS 16384
#define GPU_RANK_FEW_PARTS 128

/* What an iteration works on, for the device. */
struct GpuRankView
{
	const uint64_t *out;     /* where the rows of edges begin */
	const uint64_t *in;      /* ... of those that lead back */
	const uint32_t *sources; /* members of these */
	double *rank;
	double *share;  /* what each outgoing edge of a vertex is worth */
	double *change; /* what is to be added up: ranks of vertices without edges, or changes of ranks */
	double *sums;   /* of these: the first and the second */
	int64_t n;
	double damping;
};

struct GpuRankBegin
{
	double *rank;
	double first;

	GPU_FN void operator()(int64_t v) const
	{
		rank[v] = first;
	}
};

/* Divides a vertex's rank among its edges. */
struct GpuRankShare
{
	GpuRankView view;

	GPU_FN void operator()(int64_t v) const
	{
		const uint64_t degree = view.out[v + 1] - view.out[v];

		view.share[v] = degree > 0 ? view.rank[v] * (1.0 / (double) degree) : 0;
		view.change[v] = degree > 0 ? 0 : view.rank[v];
	}
};

/* Gives a vertex its new rank.  Whole warps call it. */
struct GpuRankReceive
{
	GpuRankView view;

	GPU_FN void set(int64_t v, double received) const
	{
		const double lost = view.damping * view.sums[0];
		const double rank = (1 - view.damping + lost) / (double) view.n + view.damping * received;
		const double change = rank - view.rank[v];

		view.change[v] = change < 0 ? -change : change;
		view.rank[v] = rank;
	}

	GPU_FN void operator()(int64_t i) const
	{
		const int64_t lanes = gpu_warp_threads();
		const int64_t v = i / lanes;
		double sum = 0;

		if (v >= view.n)
			return;
		for (uint64_t e = view.in[v] + (uint64_t) (i % lanes); e < view.in[v + 1]; e += (uint64_t) lanes)
			sum += view.share[view.sources[e]];
		sum = gpu_warp_inclusive_sum(sum);
		if (i % lanes == lanes - 1)
			set(v, sum);
	}
};

/* Adds up every so many-th of n numbers. */
struct GpuRankAdd
{
	const double *from;
	int64_t n;
	int64_t parts;
	double *to;

	GPU_FN void operator()(int64_t i) const
	{
		double sum = 0;

		for (int64_t at = i; at < n; at += parts)
			sum += from[at];
		to[i] = sum;
	}
};

/* Adds up what is in change, into one of the sums, which lie behind the parts. */
static inline void
gpu_rank_add_up(GpuStream *s, const GpuRankView &view, double *parts, double *sum)
{
	double *few = parts + GPU_RANK_PARTS;

	gpu_launch(s, GPU_RANK_PARTS, GpuRankAdd{ view.change, view.n, GPU_RANK_PARTS, parts });
	gpu_launch(s, GPU_RANK_FEW_PARTS, GpuRankAdd{ parts, GPU_RANK_PARTS, GPU_RANK_FEW_PARTS, few });
	gpu_launch(s, 1, GpuRankAdd{ few, GPU_RANK_FEW_PARTS, 1, sum });
}

static inline GpuRankView
gpu_rank_view(const GpuGraph *graph, double damping)
{
	const GpuGraphRanks *ranks = &graph->ranks;

	return { graph->rows.offsets.at(),
			 graph->back.offsets.at(),
			 graph->back.members.at(),
			 ranks->rank.at(),
			 ranks->share.at(),
			 ranks->change.at(),
			 ranks->parts.at() + GPU_RANK_PARTS + GPU_RANK_FEW_PARTS,
			 graph->n,
			 damping };
}

/* Begins: all vertices have the same rank. */
static inline uint32_t
gpu_graph_begin_ranks(GpuGraph *graph, GpuScanStream *stream)
{
	GpuGraphRanks *ranks = &graph->ranks;
	uint32_t status = gpu_graph_need_rows(graph, stream);

	ranks->begun = false;
	if (status == GPU_OK)
		status = gpu_graph_need_back(graph, stream);
	if (status != GPU_OK)
		return status;
	if (!gpu_graph_take(graph, &ranks->rank, graph->n) || !gpu_graph_take(graph, &ranks->share, graph->n) ||
		!gpu_graph_take(graph, &ranks->change, graph->n) ||
		!gpu_graph_take(graph, &ranks->parts, GPU_RANK_PARTS + GPU_RANK_FEW_PARTS + 2))
		return GPU_NO_MEMORY;
	gpu_launch(&stream->stream, graph->n, GpuRankBegin{ ranks->rank.at(), 1.0 / (double) graph->n });
	ranks->difference = HUGE_VAL;
	ranks->begun = true;
	return gpu_graph_status(&stream->stream);
}

/* One iteration; waits for what it has changed. */
static inline void
gpu_graph_iterate_ranks(GpuGraph *graph, GpuScanStream *stream, double damping)
{
	GpuStream *s = &stream->stream;
	const GpuRankView view = gpu_rank_view(graph, damping);
	double *parts = graph->ranks.parts.at();
	uint64_t word;

	gpu_launch(s, view.n, GpuRankShare{ view });
	gpu_rank_add_up(s, view, parts, &view.sums[0]);
	gpu_launch(s, view.n * GPU_RANK_LANES, GpuRankReceive{ view });
	gpu_rank_add_up(s, view, parts, &view.sums[1]);
	word = gpu_graph_read(stream, (const uint64_t *) &view.sums[1]);
	memcpy(&graph->ranks.difference, &word, sizeof(word));
}

/*
 * Goes on for some iterations at most, until one has changed ranks by no more than the tolerance, all
 * together; *did: how many.
 */
static inline uint32_t
gpu_graph_go_on_ranks(GpuGraph *graph, GpuScanStream *stream, double damping, double tolerance, int64_t most,
					  int64_t *did)
{
	const int64_t each = std::max(graph->m + graph->n, INT64_C(1));
	const int64_t some = std::min(GPU_RANK_EDGES / each + 1, (int64_t) GPU_RANK_ITERATIONS);

	if (!graph->ranks.begun)
		return GPU_WITHDRAWN;
	for (*did = 0; *did < std::min(most, some) && graph->ranks.difference > tolerance; (*did)++)
	{
		gpu_graph_iterate_ranks(graph, stream, damping);
		if (!gpu_ok(&stream->stream))
			return stream->stream.status;
	}
	return GPU_OK;
}

/* Writes of each vertex its code and its rank, in two words. */
struct GpuGraphTellRanks
{
	GpuGraphCodes codes;
	const double *rank;
	int64_t first;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		out[2 * i] = codes.of(first + i);
		memcpy(&out[2 * i + 1], &rank[first + i], sizeof(double));
	}
};

/* The same of n vertices, from one on, to device memory. */
static inline void
gpu_graph_tell_ranks(const GpuGraph *graph, GpuStream *s, int64_t first, int64_t n, uint64_t *out)
{
	gpu_launch(s, n, GpuGraphTellRanks{ gpu_graph_codes(graph), graph->ranks.rank.at(), first, out });
}

#endif /* GPU_GRAPH_PAGERANK_H */
