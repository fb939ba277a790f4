/*-------------------------------------------------------------------------
 *
 * gpu_graph_overlay.h
 *	  A graph that has its base's arrays, and beside them the few edges in which it differs.
 *
 * Edges that are gone are bits, by their places in the base's rows.  Those that are new are in no order.
 * Vertices that the base has not have the numbers behind its own, so numbers do not ascend as codes do.
 * Walks, searches for paths, and components know of this.  What does not know has the graph made anew first
 * (gpu_graph_unlay).
 *
 * A vertex of the base whose edges are all gone still has a number: no walk comes to it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_OVERLAY_H
#define GPU_GRAPH_OVERLAY_H

#include "kernels/graph/gpu_graph_update.h"

/* New edges that an overlay has at most: each depth of a walk looks at all of them. */
#define GPU_GRAPH_OVERLAY_MOST (256 * 1024)

/*
 * 1 for each of n sorted codes that is the first of equal ones, and no vertex's of the base; 0 behind them.
 */
struct GpuGraphNewCodes
{
	const uint64_t *words;
	int64_t n;
	GpuGraphCodes base;
	uint32_t *firsts;

	GPU_FN void operator()(int64_t i) const
	{
		firsts[i] = i < n && (i == 0 || words[i] != words[i - 1]) && base.find(words[i]) < 0;
	}
};

/*
 * The first place in ascending edges, those of equal vertices by their weights, whose edge is not less; n:
 * there is none.
 */
GPU_FN int64_t
gpu_graph_find_weighted(const uint64_t *edges, const uint64_t *weights, int64_t n, uint64_t edge,
						uint64_t weight)
{
	int64_t lo = 0;
	int64_t hi = n;

	while (lo < hi)
	{
		const int64_t middle = lo + (hi - lo) / 2;

		if (edges[middle] < edge || (edges[middle] == edge && weights[middle] < weight))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

/* Makes edges of pairs of codes, of which the base's that are not gone are left out. */
struct GpuGraphNewEdges
{
	const uint64_t *pairs;
	const uint64_t *weights; /* NULL: edges have none */
	GpuGraphCodes codes;
	const uint64_t *base; /* edges, ascending */
	const uint64_t *base_weights;
	int64_t m;
	const uint32_t *gone;
	bool both;
	uint64_t *out;
	uint64_t *out_weights;
	uint32_t *count;

	GPU_FN int64_t find(uint64_t edge, uint64_t weight) const
	{
		int64_t at;

		if (weights == NULL)
			at = gpu_graph_find(base, m, edge);
		else
			at = gpu_graph_find_weighted(base, base_weights, m, edge, weight);
		return at < m && base[at] == edge && (weights == NULL || base_weights[at] == weight) ? at : -1;
	}

	GPU_FN void put(uint64_t edge, uint64_t weight) const
	{
		const uint32_t at = gpu_atomic_next(count);

		out[at] = edge;
		if (weights != NULL)
			out_weights[at] = weight;
	}

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t source = (uint64_t) codes.find(pairs[2 * i]);
		const uint64_t target = (uint64_t) codes.find(pairs[2 * i + 1]);
		const uint64_t weight = weights == NULL ? 0 : weights[i];
		const int64_t at = find(source << 32 | target, weight);

		if (at >= 0 && (gone[at / 32] >> at % 32 & 1) == 0)
			return;
		put(source << 32 | target, weight);
		if (both)
			put(target << 32 | source, weight);
	}
};

/* Finds the least and the highest of some weights. */
struct GpuGraphFindRange
{
	const uint64_t *weights;
	uint64_t *range;

	GPU_FN void operator()(int64_t i) const
	{
		gpu_atomic_min64(&range[0], weights[i]);
		gpu_atomic_max64(&range[1], weights[i]);
	}
};

/* Sets the bits of edges that lead back, for those of the base that are gone. */
struct GpuGraphBackGone
{
	const uint64_t *edges;
	const uint64_t *edge_weights; /* NULL: they have none */
	const uint32_t *places;
	const uint64_t *offsets;
	const uint32_t *members;
	const uint64_t *weights;
	uint32_t *gone;

	GPU_FN bool is_less(uint64_t at, uint32_t source, uint64_t weight) const
	{
		return members[at] < source ||
			   (edge_weights != NULL && members[at] == source && weights[at] < weight);
	}

	GPU_FN bool is(uint64_t at, uint32_t source, uint64_t weight) const
	{
		return members[at] == source && (edge_weights == NULL || weights[at] == weight);
	}

	GPU_FN void operator()(int64_t i) const
	{
		const uint32_t source = (uint32_t) (edges[places[i]] >> 32);
		const uint32_t target = (uint32_t) edges[places[i]];
		const uint64_t weight = edge_weights == NULL ? 0 : edge_weights[places[i]];
		const uint64_t end = offsets[target + 1];
		uint64_t lo = offsets[target];
		uint64_t hi = end;

		while (lo < hi)
		{
			const uint64_t middle = lo + (hi - lo) / 2;

			if (is_less(middle, source, weight))
				lo = middle + 1;
			else
				hi = middle;
		}
		for (; lo < end && is(lo, source, weight); lo++)
			(void) gpu_atomic_or(&gone[lo / 32], UINT32_C(1) << lo % 32);
	}
};

/* 1 for each edge of the base that is not gone; 0 behind them. */
struct GpuGraphMarkLeft
{
	const uint32_t *gone;
	int64_t m;
	uint32_t *marks;

	GPU_FN void operator()(int64_t i) const
	{
		marks[i] = i < m && (gone[i / 32] >> i % 32 & 1) == 0;
	}
};

/* Words of a bit for each of n edges. */
static inline int64_t
gpu_graph_bit_words(int64_t n)
{
	return n / 32 + 1;
}

/* Takes bits for n edges, none of which is set; false: there is no memory. */
static inline bool
gpu_graph_take_bits(GpuGraph *graph, GpuStream *s, GpuGraphArray<uint32_t> *bits, int64_t n)
{
	if (!gpu_graph_take(graph, bits, gpu_graph_bit_words(n)))
		return false;
	gpu_fill(s, bits->at(), 0, (size_t) gpu_graph_bit_words(n) * sizeof(uint32_t));
	return true;
}

/*
 * Makes ready to learn in which edges a graph and its base differ, from n entries that are to come, and as
 * many as a scan may hide; false: there is no memory.
 */
static inline bool
gpu_graph_begin_changes(GpuGraph *graph, GpuStream *s, int64_t n)
{
	const int64_t room = n + GPU_GRAPH_HIDDEN;
	GpuEdgeList *list = &graph->list;

	if (!gpu_graph_take(graph, &graph->candidates, room) ||
		!gpu_graph_take(graph, &graph->over.places, 2 * room) ||
		!gpu_graph_take_bits(graph, s, &graph->over.gone, graph->base->m))
		return false;
	list->hidden = { graph->candidates.at() + n, GPU_GRAPH_HIDDEN, -1 };
	list->changes = { true, false, graph->candidates.at(), n, graph->over.gone.at(), graph->over.places.at(),
					  0 };
	return true;
}

/* They have not been learned: forgets what was made for that. */
static inline void
gpu_graph_end_changes(GpuGraph *graph)
{
	graph->list.changes = {};
	graph->list.hidden = {};
	gpu_graph_give(graph, &graph->candidates);
	gpu_graph_end_overlay(graph);
}

/* Numbers the vertices of the list, and of what was sent, that the base has not. */
static inline uint32_t
gpu_graph_new_codes(GpuGraph *graph, GpuScanStream *stream, GpuGraphSort *sort, int64_t n)
{
	GpuStream *s = &stream->stream;
	GpuGraphOverlay *over = &graph->over;
	const GpuGraphCodes base = { graph->base->codes.at(), graph->base->n, NULL, 0 };
	uint64_t *words = sort->words.at();
	uint64_t *others = sort->others.at();
	uint32_t *places = sort->places.at();

	gpu_copy(s, words, graph->list.pairs, (size_t) n * sizeof(uint64_t));
	gpu_sort_keys(s, &words, &others, n, 0, 64);
	gpu_launch(s, n + 1, GpuGraphNewCodes{ words, n, base, places });
	gpu_exclusive_sum(s, places, places, n + 1);
	over->n = gpu_graph_read_sum(stream, &places[n]);
	if (!gpu_ok(s))
		return s->status;
	if (base.n + over->n >= GPU_NO_VERTEX)
		return GPU_TOO_LARGE;
	if (!gpu_graph_take(graph, &over->codes, over->n))
		return GPU_NO_MEMORY;
	gpu_launch(s, n, GpuGraphCompact{ words, places, over->codes.at() });
	return GPU_OK;
}

/* Makes edges of n pairs of the list, and of what was sent. */
static inline uint32_t
gpu_graph_new_edges(GpuGraph *graph, GpuScanStream *stream, int64_t n)
{
	const GpuGraph *base = graph->base;
	GpuGraphOverlay *over = &graph->over;
	uint32_t *count = (uint32_t *) stream->offsets;

	if (!gpu_graph_take(graph, &over->edges, 2 * n) ||
		(graph->weighted && !gpu_graph_take(graph, &over->weights, 2 * n)))
		return GPU_NO_MEMORY;
	gpu_fill(&stream->stream, stream->offsets, 0, sizeof(uint64_t));
	gpu_launch(&stream->stream, n,
			   GpuGraphNewEdges{ graph->list.pairs,
								 graph->list.weights,
								 { base->codes.at(), base->n, over->codes.at(), over->n },
								 base->edges.at(),
								 base->rows.weights.at(),
								 base->m,
								 over->gone.at(),
								 base->both,
								 over->edges.at(),
								 over->weights.at(),
								 count });
	over->m = (int64_t) gpu_graph_read(stream, stream->offsets);
	return gpu_graph_status(&stream->stream);
}

/* Learns the range of new edges' weights.  GPU_WITHDRAWN: one has none that a path can have. */
static inline uint32_t
gpu_graph_new_range(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	uint64_t *range = stream->offsets;

	gpu_fill(s, &range[0], 0xFF, sizeof(uint64_t));
	gpu_fill(s, &range[1], 0, sizeof(uint64_t));
	gpu_launch(s, graph->over.m, GpuGraphFindRange{ graph->over.weights.at(), range });
	graph->weights.least = gpu_graph_read(stream, &range[0]);
	graph->weights.most = gpu_graph_read(stream, &range[1]);
	if (!gpu_ok(s))
		return s->status;
	return graph->over.m > 0 && graph->weights.most == GPU_NO_WEIGHT ? GPU_WITHDRAWN : GPU_OK;
}

/*
 * What may differ from the base is known, and all edges that were sent have come: makes the differences of
 * them.  *differ: how many these are.  Unless there is none, the graph is to borrow the base's arrays with
 * them.
 */
static inline uint32_t
gpu_graph_lay_over(GpuGraph *graph, GpuScanStream *stream, int64_t *differ)
{
	const int64_t n = graph->list.n + graph->nsent;
	GpuStream *s = &stream->stream;
	uint32_t status = GPU_OK;
	GpuGraphSort sort;

	graph->over.ngone = graph->list.changes.ngone;
	if (n > 0)
	{
		status = GPU_NO_MEMORY;
		if (gpu_graph_sort_open(graph, s, &sort, 2 * n))
			status = gpu_graph_new_codes(graph, stream, &sort, 2 * n);
		if (status == GPU_OK)
			status = gpu_graph_new_edges(graph, stream, n);
		if (status == GPU_OK && graph->weighted)
			status = gpu_graph_new_range(graph, stream);
	}
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_sort_close(graph, &sort);
	*differ = graph->over.ngone + graph->over.m;
	return status;
}

/* Has the base's arrays, and the differences beside them. */
static inline void
gpu_graph_borrow_over(GpuGraph *graph)
{
	const GpuGraphWeights added = graph->weights;

	gpu_graph_borrow_edges(graph);
	graph->weights.least = std::min(graph->weights.least, added.least);
	graph->weights.most = std::max(graph->weights.most, added.most);
	if (graph->base->connected)
		graph->over.base_roots = graph->base->roots;
	graph->over.is = true;
	graph->n += graph->over.n;
}

/* Makes marks of the edges of the base that are left, of a graph that knows how it differs. */
static inline uint32_t
gpu_graph_mark_left(GpuGraph *graph, GpuStream *s)
{
	const int64_t m = graph->base->m;

	if (!gpu_graph_need_marks(graph, s))
		return GPU_NO_MEMORY;
	gpu_launch(s, m + 1, GpuGraphMarkLeft{ graph->over.gone.at(), m, graph->marks.at() });
	(void) gpu_finish(s);
	gpu_graph_give(graph, &graph->candidates);
	gpu_graph_end_overlay(graph);
	graph->list.changes = {};
	return gpu_graph_status(s);
}

/*
 * An overlay becomes a graph whose edges have come, and is yet to be made (gpu_graph_update).  What the base
 * can use of it has been lent, and what is the base's has been returned.
 */
static inline uint32_t
gpu_graph_unlay(GpuGraph *graph, GpuStream *s)
{
	gpu_graph_rest(graph);
	gpu_graph_give(graph, &graph->back.offsets);
	gpu_graph_give(graph, &graph->back.members);
	gpu_graph_give(graph, &graph->roots);
	graph->n = graph->m = 0;
	graph->has_rows = graph->has_back = graph->connected = graph->ended = false;
	return gpu_graph_mark_left(graph, s);
}

/* Puts the edges that lead back in rows, and says which of them are gone, if that has not been done. */
static inline uint32_t
gpu_graph_need_back_over(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	GpuGraphOverlay *over = &graph->over;
	const uint32_t status = gpu_graph_need_back(graph, stream);

	if (status != GPU_OK || graph->both || over->ngone == 0 || over->back_gone.at() != NULL)
		return status;
	if (!gpu_graph_take_bits(graph, s, &over->back_gone, graph->m))
		return GPU_NO_MEMORY;
	gpu_launch(s, over->ngone,
			   GpuGraphBackGone{ graph->edges.at(), graph->rows.weights.at(), over->places.at(),
								 graph->back.offsets.at(), graph->back.members.at(), graph->back.weights.at(),
								 over->back_gone.at() });
	return gpu_graph_status(s);
}

#endif /* GPU_GRAPH_OVERLAY_H */
