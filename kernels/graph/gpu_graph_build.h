/*-------------------------------------------------------------------------
 *
 * gpu_graph_build.h
 *	  Numbers for the vertices of a graph in device memory, and edges in rows.
 *
 * The codes of all edges are sorted, and each that differs from the one before is a vertex.  So numbers
 * ascend as codes do, and the number of a code is found by bisection.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_BUILD_H
#define GPU_GRAPH_BUILD_H

#include "kernels/graph/gpu_graph.h"

/* Sets the bits in which codes differ from the first one. */
struct GpuGraphDiffer
{
	const uint64_t *codes;
	uint64_t *bits;

	GPU_FN void operator()(int64_t i) const
	{
		bool first;
		uint64_t differ = gpu_warp_or(codes[i] ^ codes[0], &first);

		if (first && differ != 0)
			gpu_atomic_or64(bits, differ);
	}
};

/* 1 for each of n sorted words that differs from the one before, up to the last one; 0 behind them. */
struct GpuGraphFirsts
{
	const uint64_t *words;
	uint32_t *firsts;
	int64_t n;
	uint64_t last;

	GPU_FN void operator()(int64_t i) const
	{
		firsts[i] = i < n && words[i] <= last && (i == 0 || words[i] != words[i - 1]);
	}
};

/* Puts words that differ from the one before at the places that the exclusive sums say. */
struct GpuGraphCompact
{
	const uint64_t *words;
	const uint32_t *places;
	uint64_t *to;

	GPU_FN void operator()(int64_t i) const
	{
		if (places[i + 1] != places[i])
			to[places[i]] = words[i];
	}
};

/* Makes edges of pairs of codes; both: and those that lead back, behind them. */
struct GpuGraphNumber
{
	const uint64_t *pairs;
	const uint64_t *codes;
	int64_t ncodes;
	uint64_t *edges;
	int64_t n;
	bool both;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t source = (uint64_t) gpu_graph_find(codes, ncodes, pairs[2 * i]);
		uint64_t target = (uint64_t) gpu_graph_find(codes, ncodes, pairs[2 * i + 1]);

		edges[i] = source << 32 | target;
		if (both)
			edges[n + i] = target << 32 | source;
	}
};

/* Where the rows of sorted edges begin. */
struct GpuGraphOffsets
{
	const uint64_t *edges;
	int64_t n;
	uint64_t *offsets;

	GPU_FN void operator()(int64_t v) const
	{
		offsets[v] = (uint64_t) gpu_graph_find(edges, n, (uint64_t) v << 32);
	}
};

struct GpuGraphMembers
{
	const uint64_t *edges;
	uint32_t *members;

	GPU_FN void operator()(int64_t i) const
	{
		members[i] = (uint32_t) edges[i];
	}
};

/* Edges that lead back. */
struct GpuGraphReverse
{
	const uint64_t *edges;
	uint64_t *reversed;

	GPU_FN void operator()(int64_t i) const
	{
		reversed[i] = edges[i] << 32 | edges[i] >> 32;
	}
};

/* The weights of edges, in another order; both: edges that lead back have the same. */
struct GpuGraphPermute
{
	const uint64_t *from;
	const uint32_t *order;
	int64_t n; /* from has; an item behind is the one n before it */
	uint64_t *to;

	GPU_FN void operator()(int64_t i) const
	{
		to[i] = from[order[i] % n];
	}
};

/* Takes edges with weights that were sent apart. */
struct GpuGraphPutSent
{
	const uint64_t *edges; /* two codes and a weight each */
	uint64_t *pairs;
	uint64_t *weights;

	GPU_FN void operator()(int64_t i) const
	{
		pairs[2 * i] = edges[3 * i];
		pairs[2 * i + 1] = edges[3 * i + 1];
		weights[i] = edges[3 * i + 2];
	}
};

/* Sets each place to its number. */
struct GpuGraphNumbers
{
	uint32_t *numbers;

	GPU_FN void operator()(int64_t i) const
	{
		numbers[i] = (uint32_t) i;
	}
};

/* Bits that numbers below n have. */
static inline int
gpu_graph_bits(int64_t n)
{
	return n > 1 ? 64 - __builtin_clzll((unsigned long long) (n - 1)) : 1;
}

/*
 * Finds those of n sorted words that differ from the one before, up to the last one, and how many there are:
 * places is the exclusive sum of n + 1.
 */
static inline int64_t
gpu_graph_count_firsts(GpuScanStream *stream, const uint64_t *words, int64_t n, uint64_t last,
					   uint32_t *places)
{
	GpuStream *s = &stream->stream;

	gpu_launch(s, n + 1, GpuGraphFirsts{ words, places, n, last });
	gpu_exclusive_sum(s, places, places, n + 1);
	return gpu_graph_read_sum(stream, &places[n]);
}

/* Working memory for n words that are sorted, and of which equal ones are to become one. */
struct GpuGraphSort
{
	GpuGraphArray<uint64_t> words;
	GpuGraphArray<uint64_t> others;
	GpuGraphArray<uint32_t> places;
};

static inline bool
gpu_graph_sort_open(GpuGraph *graph, GpuStream *s, GpuGraphSort *sort, int64_t n)
{
	return gpu_graph_take(graph, &sort->words, n) && gpu_graph_take(graph, &sort->others, n) &&
		   gpu_graph_take(graph, &sort->places, n + 1) && gpu_graph_use_temp(graph, s, n + 1);
}

/* Gives the memory back; the stream is at rest. */
static inline void
gpu_graph_sort_close(GpuGraph *graph, GpuGraphSort *sort)
{
	gpu_graph_give(graph, &sort->words);
	gpu_graph_give(graph, &sort->others);
	gpu_graph_give(graph, &sort->places);
}

/*
 * Sorts words by numbers of vertices below n in both halves; the result is in words, or changes places with
 * it.
 */
static inline void
gpu_graph_sort_edges(GpuStream *s, GpuGraphArray<uint64_t> *words, GpuGraphArray<uint64_t> *others, int64_t m,
					 int64_t n)
{
	const int bits = gpu_graph_bits(n);
	uint64_t *sorted = words->at();
	uint64_t *other = others->at();

	gpu_sort_keys(s, &sorted, &other, m, 0, bits);
	gpu_sort_keys(s, &sorted, &other, m, 32, 32 + bits);
	if (sorted != words->at())
		std::swap(*words, *others);
}

/* Numbers vertices by n codes, which are in sort->words. */
static inline uint32_t
gpu_graph_make_codes(GpuGraph *graph, GpuScanStream *stream, GpuGraphSort *sort, int64_t n)
{
	GpuStream *s = &stream->stream;
	uint64_t *words = sort->words.at();
	uint64_t *others = sort->others.at();
	uint64_t differ;

	gpu_fill(s, others, 0, sizeof(uint64_t));
	gpu_launch(s, n, GpuGraphDiffer{ words, others });
	differ = gpu_graph_read(stream, others);
	gpu_sort_keys(s, &words, &others, n, 0, differ == 0 ? 0 : 64 - __builtin_clzll(differ));
	graph->n = gpu_graph_count_firsts(stream, words, n, UINT64_MAX, sort->places.at());
	if (!gpu_ok(s))
		return s->status;
	if (graph->n >= GPU_NO_VERTEX)
		return GPU_TOO_LARGE;
	if (!gpu_graph_take(graph, &graph->codes, graph->n))
		return GPU_NO_MEMORY;
	gpu_launch(s, n, GpuGraphCompact{ words, sort->places.at(), graph->codes.at() });
	return GPU_OK;
}

/* Makes edges of the list's pairs, once vertices have numbers; both: and those that lead back. */
static inline uint32_t
gpu_graph_make_edges(GpuGraph *graph, GpuStream *s, bool both)
{
	const int64_t n = graph->list.n;

	graph->m = both ? 2 * n : n;
	if (!gpu_graph_take(graph, &graph->edges, graph->m))
		return GPU_NO_MEMORY;
	gpu_launch(s, n,
			   GpuGraphNumber{ graph->list.pairs, graph->codes.at(), graph->n, graph->edges.at(), n, both });
	return GPU_OK;
}

/* Edges that are sorted with their weights: both are in the same order, of which a place is known. */
struct GpuGraphWeighing
{
	GpuGraphArray<uint64_t> words;
	GpuGraphArray<uint64_t> others;
	GpuGraphArray<uint32_t> order;
	GpuGraphArray<uint32_t> other_order;
};

static inline bool
gpu_graph_weigh_open(GpuGraph *graph, GpuStream *s, GpuGraphWeighing *sort, int64_t n)
{
	return gpu_graph_take(graph, &sort->words, n) && gpu_graph_take(graph, &sort->others, n) &&
		   gpu_graph_take(graph, &sort->order, n) && gpu_graph_take(graph, &sort->other_order, n) &&
		   gpu_graph_use_temp(graph, s, n + 1);
}

/* Gives the memory back; the stream is at rest. */
static inline void
gpu_graph_weigh_close(GpuGraph *graph, GpuGraphWeighing *sort)
{
	gpu_graph_give(graph, &sort->words);
	gpu_graph_give(graph, &sort->others);
	gpu_graph_give(graph, &sort->order);
	gpu_graph_give(graph, &sort->other_order);
}

/* Sorts n words, which are in sort->words, by bits low to high - 1; the order goes with them. */
static inline void
gpu_graph_weigh_sort(GpuStream *s, GpuGraphWeighing *sort, int64_t n, int low, int high)
{
	uint64_t *words = sort->words.at();
	uint64_t *others = sort->others.at();
	uint32_t *order = sort->order.at();
	uint32_t *other_order = sort->other_order.at();

	gpu_sort_pairs(s, &words, &others, &order, &other_order, n, low, high);
	if (words != sort->words.at())
		std::swap(sort->words, sort->others);
	if (order != sort->order.at())
		std::swap(sort->order, sort->other_order);
}

/* Learns the range of n weights, which are sorted. */
static inline void
gpu_graph_range(GpuScanStream *stream, const uint64_t *sorted, int64_t n, GpuGraphWeights *range)
{
	*range = {};
	if (n == 0)
		return;
	range->least = gpu_graph_read(stream, &sorted[0]);
	range->most = gpu_graph_read(stream, &sorted[n - 1]);
	range->middle = gpu_graph_read(stream, &sorted[n / 2]);
}

/*
 * Puts edges in order, those of equal vertices by their weights, and makes weights in that order.
 * GPU_WITHDRAWN: an edge has none that a path can have.
 */
static inline uint32_t
gpu_graph_weigh(GpuGraph *graph, GpuScanStream *stream, GpuGraphWeighing *sort)
{
	GpuStream *s = &stream->stream;
	const int bits = gpu_graph_bits(graph->n);
	const int64_t n = graph->list.n;
	const int64_t m = graph->m;

	gpu_launch(s, m, GpuGraphNumbers{ sort->order.at() });
	gpu_launch(s, m, GpuGraphPermute{ graph->list.weights, sort->order.at(), n, sort->words.at() });
	gpu_graph_weigh_sort(s, sort, m, 0, 64);
	gpu_graph_range(stream, sort->words.at(), m, &graph->weights);
	if (!gpu_ok(s))
		return s->status;
	if (m > 0 && graph->weights.most == GPU_NO_WEIGHT)
		return GPU_WITHDRAWN;
	gpu_launch(s, m, GpuGraphPermute{ graph->edges.at(), sort->order.at(), m, sort->words.at() });
	gpu_graph_weigh_sort(s, sort, m, 0, bits);
	gpu_graph_weigh_sort(s, sort, m, 32, 32 + bits);
	if (!gpu_graph_take(graph, &graph->rows.weights, m))
		return GPU_NO_MEMORY;
	gpu_launch(s, m, GpuGraphPermute{ graph->list.weights, sort->order.at(), n, graph->rows.weights.at() });
	std::swap(graph->edges, sort->words);
	return GPU_OK;
}

static inline uint32_t gpu_graph_fill_rows(GpuGraph *graph, GpuStream *s, const uint64_t *edges, int64_t m,
										   GpuGraphRows *rows);

/* Puts the edges in rows, with their weights. */
static inline uint32_t
gpu_graph_make_weighted_rows(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	GpuGraphWeighing sort;
	uint32_t status = GPU_NO_MEMORY;

	if (gpu_graph_weigh_open(graph, s, &sort, graph->m))
		status = gpu_graph_weigh(graph, stream, &sort);
	if (status == GPU_OK)
		status = gpu_graph_fill_rows(graph, s, graph->edges.at(), graph->m, &graph->rows);
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_weigh_close(graph, &sort);
	graph->has_rows = status == GPU_OK;
	return status;
}

/* There are no more edges.  GPU_TOO_LARGE: there were too many. */
static inline uint32_t
gpu_graph_end(GpuGraph *graph, GpuScanStream *stream, bool both)
{
	GpuGraphSort sort;
	uint32_t status = GPU_NO_MEMORY;

	if (graph->list.full || 2 * graph->list.n >= GPU_MAX_ITEMS)
		return GPU_TOO_LARGE;
	if (gpu_graph_sort_open(graph, &stream->stream, &sort, 2 * graph->list.n))
	{
		gpu_copy(&stream->stream, sort.words.at(), graph->list.pairs,
				 (size_t) graph->list.n * 2 * sizeof(uint64_t));
		status = gpu_graph_make_codes(graph, stream, &sort, 2 * graph->list.n);
	}
	if (status == GPU_OK)
		status = gpu_graph_make_edges(graph, &stream->stream, both);
	if (!gpu_finish(&stream->stream))
		return stream->stream.status;
	gpu_graph_sort_close(graph, &sort);
	if (status == GPU_OK && graph->weighted)
		status = gpu_graph_make_weighted_rows(graph, stream);
	gpu_graph_give(graph, &graph->pairs);
	gpu_graph_give(graph, &graph->pair_weights);
	graph->ended = status == GPU_OK;
	graph->both = both;
	return status;
}

/* Puts the vertices' edges, which are sorted, in rows; the overlay's have none. */
static inline uint32_t
gpu_graph_fill_rows(GpuGraph *graph, GpuStream *s, const uint64_t *edges, int64_t m, GpuGraphRows *rows)
{
	const int64_t n = gpu_graph_base_n(graph);

	if (!gpu_graph_take(graph, &rows->offsets, n + 1) || !gpu_graph_take(graph, &rows->members, m))
		return GPU_NO_MEMORY;
	rows->n = m;
	gpu_launch(s, n + 1, GpuGraphOffsets{ edges, m, rows->offsets.at() });
	gpu_launch(s, m, GpuGraphMembers{ edges, rows->members.at() });
	return GPU_OK;
}

/* Puts all edges in rows, if that has not been done. */
static inline uint32_t
gpu_graph_need_rows(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	GpuGraphArray<uint64_t> others;
	uint32_t status = GPU_NO_MEMORY;

	if (graph->has_rows)
		return GPU_OK;
	if (gpu_graph_take(graph, &others, graph->m) && gpu_graph_use_temp(graph, s, graph->m))
	{
		gpu_graph_sort_edges(s, &graph->edges, &others, graph->m, graph->n);
		status = gpu_graph_fill_rows(graph, s, graph->edges.at(), graph->m, &graph->rows);
	}
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_give(graph, &others);
	graph->has_rows = status == GPU_OK;
	return status;
}

/* Puts the edges that lead back in rows, in order. */
static inline uint32_t
gpu_graph_make_back(GpuGraph *graph, GpuStream *s, GpuGraphWeighing *sort)
{
	if (!gpu_graph_take(graph, &sort->words, graph->m) || !gpu_graph_take(graph, &sort->others, graph->m) ||
		!gpu_graph_use_temp(graph, s, graph->m))
		return GPU_NO_MEMORY;
	gpu_launch(s, graph->m, GpuGraphReverse{ graph->edges.at(), sort->words.at() });
	gpu_graph_sort_edges(s, &sort->words, &sort->others, graph->m, graph->n);
	return gpu_graph_fill_rows(graph, s, sort->words.at(), graph->m, &graph->back);
}

/* The same of edges with weights, which stay in order where vertices are equal. */
static inline uint32_t
gpu_graph_make_weighted_back(GpuGraph *graph, GpuStream *s, GpuGraphWeighing *sort)
{
	const int bits = gpu_graph_bits(gpu_graph_base_n(graph));
	const int64_t m = graph->m;

	if (!gpu_graph_weigh_open(graph, s, sort, m) || !gpu_graph_take(graph, &graph->back.weights, m))
		return GPU_NO_MEMORY;
	gpu_launch(s, m, GpuGraphReverse{ graph->edges.at(), sort->words.at() });
	gpu_launch(s, m, GpuGraphNumbers{ sort->order.at() });
	gpu_graph_weigh_sort(s, sort, m, 0, bits);
	gpu_graph_weigh_sort(s, sort, m, 32, 32 + bits);
	gpu_launch(s, m,
			   GpuGraphPermute{ graph->rows.weights.at(), sort->order.at(), m, graph->back.weights.at() });
	return gpu_graph_fill_rows(graph, s, sort->words.at(), m, &graph->back);
}

/*
 * Puts the edges that lead back in rows, if that has not been done.  A graph whose edges lead both ways needs
 * none.
 */
static inline uint32_t
gpu_graph_need_back(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	GpuGraphWeighing sort;
	uint32_t status;

	if (graph->both || graph->has_back)
		return GPU_OK;
	status = graph->weighted ? gpu_graph_make_weighted_back(graph, s, &sort)
							 : gpu_graph_make_back(graph, s, &sort);
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_weigh_close(graph, &sort);
	graph->has_back = status == GPU_OK;
	if (!graph->has_back)
		gpu_graph_give_rows(graph, &graph->back);
	return status;
}

#endif /* GPU_GRAPH_BUILD_H */
