/*-------------------------------------------------------------------------
 *
 * gpu_graph_update.h
 *	  A graph that has most of its edges in common with one that is there: its base.
 *
 * Edges that come are looked for in the base, and marked there; those that it does not have are put on a
 * list (scan_edges.h).  When all have come, the graph has the edges that are marked, and those of the list,
 * each once.  If these are the base's edges, it has the base's arrays.  Otherwise the two are merged: the
 * base's edges are not sorted again.  None of this is done of edges with weights.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_UPDATE_H
#define GPU_GRAPH_UPDATE_H

#include <algorithm>

#include "kernels/graph/gpu_graph_build.h"

/* Edges that a graph may have beside its base's: this part of them, or this many. */
#define GPU_GRAPH_UPDATE_PART 8
#define GPU_GRAPH_UPDATE_LEAST (INT64_C(1) << 20)

/* Sets 1 for the vertices of edges that are left of the base. */
struct GpuGraphUsed
{
	const uint64_t *edges;
	const uint32_t *places; /* exclusive sums of the marks */
	uint32_t *used;

	GPU_FN void use(uint32_t vertex) const
	{
		if (gpu_fresh(&used[vertex]) == 0)
			gpu_atomic_exchange(&used[vertex], 1);
	}

	GPU_FN void operator()(int64_t i) const
	{
		if (places[i + 1] == places[i])
			return;
		use((uint32_t) (edges[i] >> 32));
		use((uint32_t) edges[i]);
	}
};

/* The numbers that the base's vertices have now; any number for those that are not used. */
struct GpuGraphRenumber
{
	const uint64_t *old_codes;
	const uint64_t *codes;
	int64_t n;
	uint32_t *numbers;

	GPU_FN void operator()(int64_t v) const
	{
		numbers[v] = (uint32_t) gpu_graph_find(codes, n, old_codes[v]);
	}
};

/* Puts the edges that are left of the base behind those of the list that are less. */
struct GpuGraphLeft
{
	const uint64_t *edges;
	const uint32_t *places;
	const uint32_t *numbers;
	const uint64_t *added; /* ascending, none of them the base's */
	int64_t nadded;
	uint64_t *out;

	GPU_FN void operator()(int64_t i) const
	{
		uint64_t word;

		if (places[i + 1] == places[i])
			return;
		word = (uint64_t) numbers[edges[i] >> 32] << 32 | numbers[(uint32_t) edges[i]];
		out[places[i] + gpu_graph_find(added, nadded, word)] = word;
	}
};

/* Puts the list's edges behind those left of the base that are less. */
struct GpuGraphAdded
{
	const uint64_t *edges; /* the base's, ascending */
	const uint64_t *old_codes;
	int64_t n;
	const uint32_t *places;
	const uint64_t *added;
	const uint64_t *codes;
	uint64_t *out;

	GPU_FN bool is_less(uint64_t edge, uint64_t source, uint64_t target) const
	{
		const uint64_t its_source = old_codes[edge >> 32];

		return its_source < source || (its_source == source && old_codes[(uint32_t) edge] < target);
	}

	GPU_FN void operator()(int64_t i) const
	{
		const uint64_t source = codes[added[i] >> 32];
		const uint64_t target = codes[(uint32_t) added[i]];
		int64_t lo = 0;
		int64_t hi = n;

		while (lo < hi)
		{
			const int64_t middle = lo + (hi - lo) / 2;

			if (is_less(edges[middle], source, target))
				lo = middle + 1;
			else
				hi = middle;
		}
		out[i + places[lo]] = added[i];
	}
};

/*
 * Begins a graph whose edges are looked for in a base, which has rows, and stays; NULL: there is no memory.
 */
static inline GpuGraph *
gpu_graph_open_on(GpuPool *pool, uint64_t owner, GpuGraph *base)
{
	GpuGraph *graph = gpu_graph_open(pool, owner,
									 std::max(base->m / GPU_GRAPH_UPDATE_PART, GPU_GRAPH_UPDATE_LEAST),
									 base->weighted);

	if (graph == NULL)
		return NULL;
	graph->base = base;
	graph->both = base->both;
	graph->list.known = { base->codes.at(),
						  base->n,
						  base->rows.offsets.at(),
						  base->rows.members.at(),
						  base->rows.weights.at(),
						  NULL,
						  base->both };
	return graph;
}

/* Makes ready to mark the base's edges that come, if that has not been done; false: there is no memory. */
static inline bool
gpu_graph_need_marks(GpuGraph *graph, GpuStream *s)
{
	const int64_t n = graph->base->m + 1;

	if (graph->marks.at() != NULL)
		return true;
	if (!gpu_graph_take(graph, &graph->marks, n))
		return false;
	gpu_fill(s, graph->marks.at(), 0, (size_t) n * sizeof(uint32_t));
	graph->list.known.marks = graph->marks.at();
	return true;
}

/* Has the base's edges, in arrays that are not the graph's own. */
static inline void
gpu_graph_borrow_edges(GpuGraph *graph)
{
	const GpuGraph *base = graph->base;

	graph->codes = base->codes;
	graph->n = base->n;
	graph->edges = base->edges;
	graph->m = base->m;
	graph->weights = base->weights;
	graph->rows = base->rows;
	graph->has_rows = true;
	graph->has_back = base->has_back;
	if (base->has_back)
		graph->back = base->back;
	graph->ended = true;
}

/* Has what the base has, which has the same edges. */
static inline void
gpu_graph_borrow(GpuGraph *graph)
{
	const GpuGraph *base = graph->base;

	gpu_graph_borrow_edges(graph);
	graph->connected = base->connected;
	if (base->connected)
		graph->roots = base->roots;
	graph->has_lists = base->has_lists;
	if (base->has_lists)
	{
		graph->lists = base->lists;
		graph->sources = base->sources;
	}
}

/* Lets the base have what the graph has made of its arrays, which it has borrowed. */
static inline void
gpu_graph_lend(const GpuGraph *graph, GpuGraph *base)
{
	if (graph->has_back && !base->has_back)
	{
		base->back = graph->back;
		base->has_back = true;
	}
	if (graph->over.is)
	{
		if (graph->over.base_roots.at() != NULL && !base->connected)
		{
			base->roots = graph->over.base_roots;
			base->connected = true;
		}
		return;
	}
	if (graph->connected && !base->connected)
	{
		base->roots = graph->roots;
		base->connected = true;
	}
	if (graph->has_lists && !base->has_lists)
	{
		base->lists = graph->lists;
		base->sources = graph->sources;
		base->has_lists = true;
	}
}

/* Forgets an array that is the base's. */
template <typename T>
static inline void
gpu_graph_return(GpuGraphArray<T> *array, const GpuGraphArray<T> &of_base)
{
	if (array->at() == of_base.at())
		*array = {};
}

/* Forgets all that is the base's, so that the graph can only be closed. */
static inline void
gpu_graph_return_all(GpuGraph *graph)
{
	const GpuGraph *base = graph->base;

	gpu_graph_return(&graph->codes, base->codes);
	gpu_graph_return(&graph->edges, base->edges);
	gpu_graph_return(&graph->rows.offsets, base->rows.offsets);
	gpu_graph_return(&graph->rows.members, base->rows.members);
	gpu_graph_return(&graph->rows.weights, base->rows.weights);
	gpu_graph_return(&graph->back.offsets, base->back.offsets);
	gpu_graph_return(&graph->back.members, base->back.members);
	gpu_graph_return(&graph->back.weights, base->back.weights);
	gpu_graph_return(&graph->roots, base->roots);
	gpu_graph_return(&graph->over.base_roots, base->roots);
	gpu_graph_return(&graph->lists.offsets, base->lists.offsets);
	gpu_graph_return(&graph->lists.members, base->lists.members);
	gpu_graph_return(&graph->sources, base->sources);
}

/* What it takes to merge. */
struct GpuGraphMerge
{
	GpuGraphSort sort;
	GpuGraphArray<uint32_t> used;
	GpuGraphArray<uint32_t> numbers; /* of the base's vertices */
	GpuGraphArray<uint64_t> added;   /* edges of the list */
	int64_t nadded;
	int64_t left; /* edges of the base */
};

/* Writes the codes of the base's vertices that are used to the end of the words; returns how many. */
static inline int64_t
gpu_graph_used_codes(GpuGraph *graph, GpuScanStream *stream, GpuGraphMerge *merge, uint64_t *out)
{
	const GpuGraph *base = graph->base;
	GpuStream *s = &stream->stream;
	uint32_t *used = merge->used.at();

	if (merge->left == base->m)
	{
		gpu_copy(s, out, base->codes.at(), (size_t) base->n * sizeof(uint64_t));
		return base->n;
	}
	gpu_fill(s, used, 0, (size_t) (base->n + 1) * sizeof(uint32_t));
	gpu_launch(s, base->m, GpuGraphUsed{ base->edges.at(), graph->marks.at(), used });
	gpu_exclusive_sum(s, used, used, base->n + 1);
	gpu_launch(s, base->n, GpuGraphCompact{ base->codes.at(), used, out });
	return gpu_graph_read_sum(stream, &used[base->n]);
}

/* Numbers the vertices, of the list and of what is left of the base. */
static inline uint32_t
gpu_graph_merge_codes(GpuGraph *graph, GpuScanStream *stream, GpuGraphMerge *merge)
{
	const int64_t n = 2 * graph->list.n;
	uint64_t *words = merge->sort.words.at();

	gpu_copy(&stream->stream, words, graph->list.pairs, (size_t) n * sizeof(uint64_t));
	return gpu_graph_make_codes(graph, stream, &merge->sort,
								n + gpu_graph_used_codes(graph, stream, merge, words + n));
}

/* Makes edges of the list, each once, in order. */
static inline void
gpu_graph_sort_added(GpuGraph *graph, GpuScanStream *stream, GpuGraphMerge *merge)
{
	GpuStream *s = &stream->stream;
	const int64_t n = graph->both ? 2 * graph->list.n : graph->list.n;
	GpuGraphSort *sort = &merge->sort;

	gpu_launch(s, graph->list.n,
			   GpuGraphNumber{ graph->list.pairs, graph->codes.at(), graph->n, sort->words.at(),
							   graph->list.n, graph->both });
	gpu_graph_sort_edges(s, &sort->words, &sort->others, n, graph->n);
	merge->nadded = gpu_graph_count_firsts(stream, sort->words.at(), n, UINT64_MAX, sort->places.at());
	gpu_launch(s, n, GpuGraphCompact{ sort->words.at(), sort->places.at(), merge->added.at() });
}

/* Merges what is left of the base with the list's edges, which are in order. */
static inline uint32_t
gpu_graph_merge_edges(GpuGraph *graph, GpuStream *s, GpuGraphMerge *merge)
{
	const GpuGraph *base = graph->base;

	graph->m = merge->left + merge->nadded;
	if (!gpu_graph_take(graph, &graph->edges, graph->m))
		return GPU_NO_MEMORY;
	gpu_launch(s, base->n,
			   GpuGraphRenumber{ base->codes.at(), graph->codes.at(), graph->n, merge->numbers.at() });
	gpu_launch(s, base->m,
			   GpuGraphLeft{ base->edges.at(), graph->marks.at(), merge->numbers.at(), merge->added.at(),
							 merge->nadded, graph->edges.at() });
	gpu_launch(s, merge->nadded,
			   GpuGraphAdded{ base->edges.at(), base->codes.at(), base->m, graph->marks.at(),
							  merge->added.at(), graph->codes.at(), graph->edges.at() });
	return gpu_graph_fill_rows(graph, s, graph->edges.at(), graph->m, &graph->rows);
}

/* Makes the graph's own arrays. */
static inline uint32_t
gpu_graph_merge(GpuGraph *graph, GpuScanStream *stream, GpuGraphMerge *merge)
{
	const int64_t vertices = graph->base->n;
	uint32_t status = GPU_NO_MEMORY;

	if (gpu_graph_take(graph, &merge->used, vertices + 1) &&
		gpu_graph_take(graph, &merge->numbers, vertices) &&
		gpu_graph_take(graph, &merge->added, 2 * graph->list.n))
		status = gpu_graph_merge_codes(graph, stream, merge);
	if (status != GPU_OK)
		return status;
	gpu_graph_sort_added(graph, stream, merge);
	status = gpu_graph_merge_edges(graph, &stream->stream, merge);
	graph->has_rows = status == GPU_OK;
	return status;
}

static inline void
gpu_graph_merge_close(GpuGraph *graph, GpuGraphMerge *merge)
{
	gpu_graph_sort_close(graph, &merge->sort);
	gpu_graph_give(graph, &merge->used);
	gpu_graph_give(graph, &merge->numbers);
	gpu_graph_give(graph, &merge->added);
}

/* Makes places of the marks of the base's edges; how many are left of these. */
static inline int64_t
gpu_graph_sum_marks(GpuGraph *graph, GpuScanStream *stream)
{
	const int64_t m = graph->base->m;
	uint32_t *marks = graph->marks.at();

	if (graph->all)
	{
		if (graph->list.n > 0)
			gpu_launch(&stream->stream, m + 1, GpuGraphNumbers{ marks });
		return m;
	}
	gpu_exclusive_sum(&stream->stream, marks, marks, m + 1);
	return gpu_graph_read_sum(stream, &marks[m]);
}

/*
 * There are no more edges; *differ: in how many the graph and its base differ.  If in none, the graph is to
 * borrow the base's arrays; otherwise it has its own, and does not need the base any more.  GPU_TOO_LARGE:
 * there were too many that the base does not have.  Edges that were sent stay behind those of the list, in
 * graph->pairs.
 */
static inline uint32_t
gpu_graph_update(GpuGraph *graph, GpuScanStream *stream, int64_t *differ)
{
	const GpuGraph *base = graph->base;
	const int64_t listed = graph->list.n;
	GpuStream *s = &stream->stream;
	GpuGraphMerge merge = {};
	uint32_t status = GPU_NO_MEMORY;

	if (!gpu_graph_need_marks(graph, s))
		return GPU_NO_MEMORY;
	if (graph->list.full || base->m + 2 * listed >= GPU_MAX_ITEMS)
		return GPU_TOO_LARGE;
	if (!gpu_graph_use_temp(graph, s, base->m + 1))
		return GPU_NO_MEMORY;
	merge.left = gpu_graph_sum_marks(graph, stream);
	*differ = base->m - merge.left + listed;
	if (*differ == 0)
		status = GPU_OK;
	else if (gpu_ok(s) && gpu_graph_sort_open(graph, s, &merge.sort, base->n + 2 * listed))
		status = gpu_graph_merge(graph, stream, &merge);
	if (!gpu_finish(s))
		return s->status;
	gpu_graph_merge_close(graph, &merge);
	if (graph->nsent == 0)
		gpu_graph_give(graph, &graph->pairs);
	gpu_graph_give(graph, &graph->marks);
	graph->list = {};
	graph->ended = status == GPU_OK && *differ > 0;
	return status;
}

#endif /* GPU_GRAPH_UPDATE_H */
