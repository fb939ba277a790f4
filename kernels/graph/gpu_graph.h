/*-------------------------------------------------------------------------
 *
 * gpu_graph.h
 *	  A graph in device memory: its edges as they come, and then with numbers of vertices.
 *
 * Edges come as pairs of codes, in any order (scan_edges.h).  When all are there, vertices are numbered from
 * 0 on in the order of their codes, and an edge is one word, source << 32 | target.  From these the
 * algorithms make what they need, when it is needed first.
 *
 * Edges may have weights, which are integers.  Such edges are in order at once, equal ones by their weights.
 *
 * All functions queue their work on a stream; those that return a number or a GpuStatus wait for it.  After
 * an error of the stream nothing is known of the graph, which may only be closed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_H
#define GPU_GRAPH_H

#include "kernels/runtime/pool.h"
#include "kernels/runtime/primitives.h"
#include "kernels/runtime/scan.h"

/* No vertex has this number. */
#define GPU_NO_VERTEX UINT32_MAX

/* An array of a graph; its memory is a span of the pool. */
template <typename T> struct GpuGraphArray
{
	GpuSpan span;

	GPU_FN T *at() const
	{
		return (T *) span.at;
	}
};

/* Edges in rows: those of a vertex are at[offsets[v]] to at[offsets[v + 1] - 1]. */
struct GpuGraphRows
{
	GpuGraphArray<uint64_t> offsets;
	GpuGraphArray<uint32_t> members;
	GpuGraphArray<uint64_t> weights; /* of members, if edges have weights */
	int64_t n = 0;                   /* members; 0: there may be no arrays */
};

/* A walk, breadth first (gpu_graph_walk.h). */
struct GpuGraphWalk
{
	GpuGraphArray<uint32_t> depth;  /* of each vertex; GPU_NO_VERTEX: not reached */
	GpuGraphArray<uint32_t> parent; /* of each that was reached */
	GpuGraphArray<uint32_t> queue;  /* vertices that were reached, in order */
	GpuGraphArray<uint64_t> sums;   /* of the degrees of those of one depth */
	bool begun = false;
	int64_t first = 0;  /* of the queue, whose edges have not been followed */
	int64_t n = 0;      /* of the queue */
	int64_t total = -1; /* edges of those from first on; -1: their sums have not been made */
	uint32_t depths = 0;
};

/* Entries that are kept of those that were no edges, at most. */
#define GPU_GRAPH_HIDDEN (256 * 1024)

/* The scan that edges are of (K6). */
struct GpuGraphOrigin
{
	const void *structure = NULL; /* the tree's object */
	uint64_t serial = 0;          /* of the view */
	uint64_t noted = 0;           /* changes that the view has for sure (engine_change_log.h) */
	AggColumn vertex[2] = {};
	AggColumn weight = {};
	int64_t nhidden = -1; /* entries that were no edges; -1: some of the edges are not the scan's */
};

/* The least and the highest weight of some edges, and about the middle one. */
struct GpuGraphWeights
{
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;
	uint64_t middle = 0;
};

struct GpuRouteState;

/* A search for a path of least cost, from one end (gpu_graph_route.h). */
struct GpuGraphRouteSide
{
	GpuGraphArray<uint64_t> label;   /* of each vertex: what the best path to it costs */
	GpuGraphArray<uint32_t> queued;  /* ... the round that it was queued for last */
	GpuGraphArray<uint32_t> delayed; /* ... the bucket in which it was put off last */
	GpuGraphArray<uint32_t> parent;  /* ... the vertex before it; made at the end */
	GpuGraphArray<uint32_t> queue[2];
	GpuGraphArray<uint32_t> later[2];
};

/* The same from both ends. */
struct GpuGraphRoute
{
	GpuGraphRouteSide side[2];
	GpuGraphArray<GpuRouteState> state;
	bool begun = false;
	bool done = false;
	uint64_t most = 0;  /* that the path may cost */
	int64_t length = 0; /* vertices of the path; 0: there is none */
};

/* PageRank (gpu_graph_pagerank.h). */
struct GpuGraphRanks
{
	GpuGraphArray<double> rank; /* of each vertex */
	GpuGraphArray<double> share;
	GpuGraphArray<double> change;
	GpuGraphArray<double> parts;
	bool begun = false;
	double difference = 0; /* by how much the last iteration has changed all ranks together */
};

/* A version of a tree. */
struct GpuGraphVersion
{
	const void *structure = NULL; /* the tree's object; NULL: none */
	uint64_t serial = 0;          /* of the view */
};

/* How a graph differs from its base, whose arrays it has (gpu_graph_overlay.h). */
struct GpuGraphOverlay
{
	bool is = false;               /* there is one */
	GpuGraphArray<uint64_t> codes; /* of vertices that the base has not; their numbers follow the base's */
	int64_t n = 0;                 /* of these vertices */
	GpuGraphArray<uint64_t> edges; /* that the base has not, in no order */
	GpuGraphArray<uint64_t> weights;
	int64_t m = 0; /* of these edges */
	GpuGraphArray<uint32_t>
		gone; /* a bit for each of the base's edges, in rows: the graph has not this one */
	GpuGraphArray<uint32_t> back_gone; /* the same of those that lead back; no array: not made yet */
	GpuGraphArray<uint32_t> places;    /* of the edges that are gone, of equal ones the first */
	int64_t ngone = 0;
	GpuGraphArray<uint32_t> base_roots; /* of the base's components; no array: not found yet */
	GpuGraphArray<uint32_t> present;    /* of each vertex, if edges are gone, how many before it have one */
	GpuGraphArray<uint32_t> vertices;   /* that have an edge, if edges are gone */
	int64_t nvertices = 0;
};

struct GpuGraph
{
	GpuPool *pool;
	uint64_t owner;
	int64_t tree = -1;     /* number of the one whose entries its edges are of; -1: of none yet */
	GpuGraphVersion begun; /* of the tree that the owner named, when the graph was begun */
	GpuGraph *base = NULL; /* a kept one, whose edges are looked for, or whose arrays it has */
	int64_t users = 0;     /* of one that is kept: graphs whose base it is */
	bool kept = false;     /* it has no owner, and may be a base */
	uint64_t kept_at = 0;
	bool weighted = false;
	GpuGraphArray<uint64_t> pairs; /* until all are there */
	GpuGraphArray<uint64_t> pair_weights;
	GpuGraphArray<uint32_t> marks; /* likewise, if there is a base: of each of its edges, and one more */
	GpuEdgeList list = {};
	int64_t nsent = 0; /* edges behind the list's that the owner has sent, and that are not looked for yet */
	int64_t scans = 0; /* that have looked for edges, or listed them */
	bool all = false;  /* it has all edges of the base, marked or not */
	GpuGraphOrigin origin;
	GpuGraphArray<GpudsEntry> hidden;     /* entries of the origin that were no edges */
	GpuGraphArray<GpudsEntry> candidates; /* of the edges in which it may differ from its base */
	GpuGraphOverlay over;
	GpuGraphArray<uint64_t> codes; /* of the vertices, but for those of the overlay */
	int64_t n = 0;                 /* vertices */
	GpuGraphArray<uint64_t> edges;
	int64_t m = 0; /* edges, but for those of the overlay */
	GpuGraphWeights weights;
	GpuGraphRows rows;
	GpuGraphRows back; /* edges turned around, for graphs whose edges do not lead both ways */
	GpuGraphWalk walk;
	GpuGraphWalk back_walk;       /* of a search for a path, from its end (gpu_graph_path.h) */
	uint32_t met = GPU_NO_VERTEX; /* where both walks have met */
	GpuGraphRoute route;
	GpuGraphRanks ranks;
	GpuGraphArray<uint32_t> in_degrees; /* edges that end at each vertex; no array: not counted yet */
	GpuGraphArray<uint32_t> roots;      /* of the components */
	GpuGraphArray<uint64_t> sizes;   /* of each component the code of its least vertex, and how many it has */
	int64_t nsizes = -1;             /* components; -1: they have not been counted */
	GpuGraphRows lists;              /* of the undirected simple graph (gpu_graph_triangles.h) */
	GpuGraphArray<uint64_t> sources; /* edges of the lists, as words */
	GpuGraphArray<unsigned char> temp;
	int64_t temp_items = 0;
	bool both = false;     /* edges lead both ways */
	bool parallel = false; /* it has equal edges as often as they came */
	bool ended = false;
	bool has_rows = false;
	bool has_back = false;
	bool connected = false;
	bool has_lists = false;
};

/* The codes of a graph's vertices, for the device. */
struct GpuGraphCodes
{
	const uint64_t *codes; /* ascending */
	int64_t n;
	const uint64_t *more; /* of the overlay; ascending */
	int64_t nmore;

	GPU_FN uint64_t of(int64_t v) const
	{
		return v < n ? codes[v] : more[v - n];
	}

	/* The number of the vertex of a code; -1: there is none. */
	GPU_FN int64_t find(uint64_t code) const
	{
		int64_t v = gpu_graph_find(codes, n, code);

		if (v < n && codes[v] == code)
			return v;
		v = gpu_graph_find(more, nmore, code);
		return v < nmore && more[v] == code ? n + v : -1;
	}
};

/* Vertices that are not the overlay's. */
static inline int64_t
gpu_graph_base_n(const GpuGraph *graph)
{
	return graph->n - graph->over.n;
}

static inline GpuGraphCodes
gpu_graph_codes(const GpuGraph *graph)
{
	return { graph->codes.at(), gpu_graph_base_n(graph), graph->over.codes.at(), graph->over.n };
}

/* Takes memory for n items, in place of what the array has; false: there is none. */
template <typename T>
static inline bool
gpu_graph_take(GpuGraph *graph, GpuGraphArray<T> *array, int64_t n)
{
	gpu_span_give(graph->pool, &array->span);
	return gpu_span_take(graph->pool, &array->span, (size_t) (n > 0 ? n : 1) * sizeof(T));
}

template <typename T>
static inline void
gpu_graph_give(GpuGraph *graph, GpuGraphArray<T> *array)
{
	gpu_span_give(graph->pool, &array->span);
}

/* Gives the stream working memory for sorts and sums of so many items; false: there is none. */
static inline bool
gpu_graph_use_temp(GpuGraph *graph, GpuStream *s, int64_t items)
{
	if (items > GPU_MAX_ITEMS)
		return false;
	if (items > graph->temp_items)
	{
		graph->temp_items = 0;
		if (!gpu_graph_take(graph, &graph->temp, (int64_t) gpu_temp_bytes(items)))
			return false;
		graph->temp_items = items;
	}
	s->temp = graph->temp.at();
	s->temp_bytes = gpu_span_bytes(&graph->temp.span);
	return true;
}

/*
 * A word of device memory as the host sees it, once all is done that was asked for before; 0 after an error.
 */
static inline uint64_t
gpu_graph_read(GpuScanStream *stream, const uint64_t *word)
{
	gpu_copy_bus(&stream->stream, &stream->summary->total, word, sizeof(uint64_t));
	return gpu_finish(&stream->stream) ? stream->summary->total : 0;
}

/* The same of the last one of some sums. */
static inline int64_t
gpu_graph_read_sum(GpuScanStream *stream, const uint32_t *sum)
{
	stream->summary->total = 0;
	gpu_copy_bus(&stream->stream, &stream->summary->total, sum, sizeof(uint32_t));
	return gpu_finish(&stream->stream) ? (int64_t) stream->summary->total : 0;
}

/* GPU_OK, or that an error of the stream has come between. */
static inline uint32_t
gpu_graph_status(const GpuStream *s)
{
	return gpu_ok(s) ? (uint32_t) GPU_OK : s->status;
}

/* Begins a graph with room for so many edges, with weights or not; NULL: there is not so much memory. */
static inline GpuGraph *
gpu_graph_open(GpuPool *pool, uint64_t owner, int64_t edges, bool weighted)
{
	GpuGraph *graph = new (std::nothrow) GpuGraph();

	if (graph == NULL)
		return NULL;
	graph->pool = pool;
	graph->owner = owner;
	graph->weighted = weighted;
	if (!gpu_graph_take(graph, &graph->pairs, 2 * edges) ||
		(weighted && !gpu_graph_take(graph, &graph->pair_weights, edges)))
	{
		gpu_graph_give(graph, &graph->pairs);
		delete graph;
		return NULL;
	}
	graph->list.pairs = graph->pairs.at();
	graph->list.weights = graph->pair_weights.at();
	graph->list.room = edges;
	return graph;
}

/* Forgets a walk. */
static inline void
gpu_graph_end_walk(GpuGraph *graph, GpuGraphWalk *walk)
{
	gpu_graph_give(graph, &walk->depth);
	gpu_graph_give(graph, &walk->parent);
	gpu_graph_give(graph, &walk->queue);
	gpu_graph_give(graph, &walk->sums);
	*walk = GpuGraphWalk();
}

/* Forgets a search for a path of least cost. */
static inline void
gpu_graph_end_route(GpuGraph *graph)
{
	for (GpuGraphRouteSide &side : graph->route.side)
	{
		gpu_graph_give(graph, &side.label);
		gpu_graph_give(graph, &side.queued);
		gpu_graph_give(graph, &side.delayed);
		gpu_graph_give(graph, &side.parent);
		for (int i = 0; i < 2; i++)
		{
			gpu_graph_give(graph, &side.queue[i]);
			gpu_graph_give(graph, &side.later[i]);
		}
	}
	gpu_graph_give(graph, &graph->route.state);
	graph->route = GpuGraphRoute();
}

/* Forgets ranks. */
static inline void
gpu_graph_end_ranks(GpuGraph *graph)
{
	gpu_graph_give(graph, &graph->ranks.rank);
	gpu_graph_give(graph, &graph->ranks.share);
	gpu_graph_give(graph, &graph->ranks.change);
	gpu_graph_give(graph, &graph->ranks.parts);
	graph->ranks = GpuGraphRanks();
}

/* Gives the memory of rows back. */
static inline void
gpu_graph_give_rows(GpuGraph *graph, GpuGraphRows *rows)
{
	gpu_graph_give(graph, &rows->offsets);
	gpu_graph_give(graph, &rows->members);
	gpu_graph_give(graph, &rows->weights);
}

static inline size_t
gpu_graph_rows_bytes(const GpuGraphRows *rows)
{
	return gpu_span_bytes(&rows->offsets.span) + gpu_span_bytes(&rows->members.span) +
		   gpu_span_bytes(&rows->weights.span);
}

/* Forgets what was found for the owner, and gives back what only that needs; what other graphs use stays. */
static inline void
gpu_graph_rest(GpuGraph *graph)
{
	gpu_graph_end_walk(graph, &graph->walk);
	gpu_graph_end_walk(graph, &graph->back_walk);
	graph->met = GPU_NO_VERTEX;
	gpu_graph_end_route(graph);
	gpu_graph_end_ranks(graph);
	gpu_graph_give(graph, &graph->in_degrees);
	gpu_graph_give(graph, &graph->sizes);
	graph->nsizes = -1;
	gpu_graph_give(graph, &graph->temp);
	graph->temp_items = 0;
}

/* Device memory that a graph holds which has no owner. */
static inline size_t
gpu_graph_bytes(const GpuGraph *graph)
{
	return gpu_span_bytes(&graph->codes.span) + gpu_span_bytes(&graph->edges.span) +
		   gpu_graph_rows_bytes(&graph->rows) + gpu_graph_rows_bytes(&graph->back) +
		   gpu_span_bytes(&graph->roots.span) + gpu_graph_rows_bytes(&graph->lists) +
		   gpu_span_bytes(&graph->sources.span) + gpu_span_bytes(&graph->hidden.span);
}

/* Forgets how a graph differs from its base. */
static inline void
gpu_graph_end_overlay(GpuGraph *graph)
{
	GpuGraphOverlay *over = &graph->over;

	gpu_graph_give(graph, &over->codes);
	gpu_graph_give(graph, &over->edges);
	gpu_graph_give(graph, &over->weights);
	gpu_graph_give(graph, &over->gone);
	gpu_graph_give(graph, &over->back_gone);
	gpu_graph_give(graph, &over->places);
	gpu_graph_give(graph, &over->base_roots);
	gpu_graph_give(graph, &over->present);
	gpu_graph_give(graph, &over->vertices);
	*over = GpuGraphOverlay();
}

/* Gives all memory of a graph back, which nothing on the device uses any more. */
static inline void
gpu_graph_close(GpuGraph *graph)
{
	gpu_graph_give(graph, &graph->pairs);
	gpu_graph_give(graph, &graph->pair_weights);
	gpu_graph_give(graph, &graph->marks);
	gpu_graph_give(graph, &graph->hidden);
	gpu_graph_give(graph, &graph->candidates);
	gpu_graph_end_overlay(graph);
	gpu_graph_give(graph, &graph->codes);
	gpu_graph_give(graph, &graph->edges);
	gpu_graph_give_rows(graph, &graph->rows);
	gpu_graph_give_rows(graph, &graph->back);
	gpu_graph_give(graph, &graph->roots);
	gpu_graph_give_rows(graph, &graph->lists);
	gpu_graph_give(graph, &graph->sources);
	gpu_graph_rest(graph);
	delete graph;
}

#endif /* GPU_GRAPH_H */
