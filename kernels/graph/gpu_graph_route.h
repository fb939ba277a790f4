/*-------------------------------------------------------------------------
 *
 * gpu_graph_route.h
 *	  Paths of least cost, in a graph in device memory whose edges have weights.
 *
 * A search goes from both ends.  Each side has a label for each vertex: what the best path costs that has
 * been found from its end.  Vertices whose labels are below a bound are queued, and a round follows the edges
 * of all that are; a vertex whose label becomes less is queued for the next round.  Others are put off.  When
 * none is queued, labels below the bound are final.  Then the bound goes up by a width, and those that were
 * put off are looked at again (delta-stepping).  So any width is right.
 *
 * No label that is not final yet is below a side's floor: the bound, or the least label that was put off.  A
 * vertex with labels of both sides is on a path.  A path that is not known yet costs at least both floors
 * together: behind the last vertex that is final on one side there is one that is not final there; if its
 * cost from the other end is below the other floor, that end has followed it, and both have met at it.  Sides
 * take turns when none of their vertices is queued, the one that has put fewer off first.
 *
 * The device itself says what the next launch does (GpuRouteControl), so the host asks for many rounds at
 * once.  What is left over when the search is done does nothing.
 *
 * Labels ascend along edges: where an edge may cost nothing, the low bits of a label count such edges.  So
 * the vertices before others on best paths are told from labels alone, once the search is done.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GRAPH_ROUTE_H
#define GPU_GRAPH_ROUTE_H

#include "kernels/graph/gpu_graph_overlay.h"
#include "kernels/graph/gpu_graph_walk.h"

/* The label of a vertex that has not been reached. */
#define GPU_NO_LABEL UINT64_MAX

/* Costs are below, so that they are the same as double precision; and labels are below. */
#define GPU_ROUTE_COST_BITS 53
#define GPU_ROUTE_LABEL_BITS 63

/* A bucket is so many times as wide as an edge in the middle costs. */
#define GPU_ROUTE_WIDTH 8

/* Threads of a round at most, and rounds that are asked for at once. */
#define GPU_ROUTE_THREADS (64 * 1024)
#define GPU_ROUTE_ROUNDS 32

/* Where one side is. */
struct GpuRouteQueue
{
	uint64_t before; /* the bound of the bucket before */
	uint64_t bound;  /* labels below are final, or their vertices are queued */
	uint64_t floor;  /* labels below are final */
	uint64_t least;  /* the least label that was put off since the bucket began; it may have become less */
	uint32_t queue;  /* which of both arrays has the round's vertices */
	uint32_t later;  /* ... those that were put off */
	uint32_t n;      /* vertices of the round */
	uint32_t next;   /* ... of the next one, which are in the other array */
	uint32_t nlater; /* ... that were put off */
	uint32_t nkept;  /* ... that stay so, which are in the other array */
	uint32_t round;
	uint32_t bucket;
};

struct GpuRouteState
{
	GpuRouteQueue side[2];
	uint64_t best;   /* paths that cost as much are not wanted: the cost of the best one, once there is one */
	uint32_t at;     /* the side whose turn it is */
	uint32_t splits; /* what was put off is to be looked at, in place of a round */
	uint32_t done;
	uint32_t over; /* some labels were too large, or would be */
	uint32_t met;
	uint32_t length[2]; /* edges of the path, from each end to where both have met */
};

/* What one side works on, for the device. */
struct GpuRouteSideView
{
	uint64_t *label;
	uint32_t *queued;
	uint32_t *delayed;
	uint32_t *parent;
	uint32_t *queue[2];
	uint32_t *later[2];
	GpuGraphEdgesView edges;
};

struct GpuRouteView
{
	GpuRouteSideView side[2];
	GpuRouteState *state;
	uint64_t limit; /* labels that are not below are too large */
	uint64_t width;
	int shift; /* low bits of a label, which count edges that cost nothing */
	int lanes; /* threads that follow the edges of a vertex together */
	int64_t threads;

	/* What an edge adds to a label; too much is the limit. */
	GPU_FN uint64_t add(uint64_t weight) const
	{
		if (weight >= limit >> shift)
			return limit;
		return weight == 0 ? 1 : weight << shift;
	}
};

/* Begins the search of a side, or, if none is named, sets all back. */
struct GpuRouteBegin
{
	GpuRouteView view;
	GpuGraphCodes codes;
	const uint64_t *named; /* two vertices */
	uint64_t best;

	GPU_FN void put_off(int s) const
	{
		GpuRouteQueue *queue = &view.state->side[s];
		const int64_t v = codes.find(named[s]);

		*queue = GpuRouteQueue();
		queue->round = queue->bucket = 1;
		queue->least = v >= 0 ? 0 : GPU_NO_LABEL;
		if (v < 0)
			return;
		view.side[s].label[v] = 0;
		view.side[s].delayed[v] = 1;
		view.side[s].later[0][0] = (uint32_t) v;
		queue->nlater = 1;
	}

	GPU_FN void operator()(int64_t) const
	{
		GpuRouteState *state = view.state;

		put_off(0);
		put_off(1);
		state->best = best;
		state->at = state->splits = state->over = 0;
		state->met = GPU_NO_VERTEX;
		state->length[0] = state->length[1] = 0;
		state->done = state->side[0].nlater == 0 || state->side[1].nlater == 0;
	}
};

/* Decides what comes next, when a launch has done what was decided before. */
struct GpuRouteControl
{
	GpuRouteView view;

	GPU_FN void end_round(GpuRouteQueue *queue) const
	{
		queue->queue ^= 1;
		queue->n = queue->next;
		queue->next = 0;
		queue->round++;
	}

	GPU_FN void end_split(GpuRouteQueue *queue) const
	{
		queue->later ^= 1;
		queue->nlater = queue->nkept;
		queue->nkept = 0;
	}

	/* Does no path cost less than the best one that is not known yet? */
	GPU_FN bool is_done(const GpuRouteState *state) const
	{
		const uint64_t floor = state->side[0].floor;

		return floor >= state->best || state->side[1].floor >= state->best - floor;
	}

	GPU_FN void begin_bucket(GpuRouteQueue *queue) const
	{
		queue->before = queue->bound;
		queue->bound = queue->floor + view.width;
		queue->bucket++;
		queue->least = GPU_NO_LABEL;
	}

	GPU_FN void operator()(int64_t) const
	{
		GpuRouteState *state = view.state;
		GpuRouteQueue *queue = &state->side[state->at];

		if (state->done)
			return;
		if (state->splits)
			end_split(queue);
		else
			end_round(queue);
		state->splits = 0;
		if (queue->n > 0)
			return;
		queue->floor = queue->least > queue->bound ? queue->least : queue->bound;
		if (queue->nlater == 0)
			queue->floor = GPU_NO_LABEL;
		state->done = is_done(state);
		/* both sides end before any label is too large, if those of a path would be together */
		if (state->done && queue->floor != GPU_NO_LABEL)
			state->over = 1;
		state->at = state->side[1].nlater < state->side[0].nlater;
		state->splits = 1;
		begin_bucket(&state->side[state->at]);
	}
};

/* Does a round, or looks at what was put off. */
struct GpuRouteWork
{
	GpuRouteView view;

	/* Has a vertex of a new label followed in the next round, or puts it off. */
	GPU_FN void enqueue(const GpuRouteSideView &side, GpuRouteQueue *queue, uint32_t v, uint64_t label) const
	{
		if (label < queue->bound)
		{
			if (gpu_atomic_exchange(&side.queued[v], queue->round + 1) != queue->round + 1)
				side.queue[1 - queue->queue][gpu_atomic_next(&queue->next)] = v;
			return;
		}
		if (gpu_atomic_exchange(&side.delayed[v], queue->bucket) != queue->bucket)
			side.later[queue->later][gpu_atomic_next(&queue->nlater)] = v;
		if (label < gpu_glance(&queue->least))
			gpu_atomic_min64(&queue->least, label);
	}

	/* Labels a vertex, to which an edge leads. */
	GPU_FN void reach(uint32_t v, uint64_t from, uint64_t weight) const
	{
		GpuRouteState *state = view.state;
		const GpuRouteSideView &side = view.side[state->at];
		const uint64_t other = view.side[1 - state->at].label[v];
		const uint64_t label = from + view.add(weight);

		if (label >= view.limit)
			gpu_flag(&state->over);
		if (label >= gpu_glance(&state->best) || label >= gpu_glance(&side.label[v]))
			return;
		gpu_atomic_min64(&side.label[v], label);
		if (other != GPU_NO_LABEL)
			gpu_atomic_min64(&state->best, label + other);
		enqueue(side, &state->side[state->at], v, label);
	}

	/* Follows the edges of the round's vertices that are a thread's. */
	GPU_FN void follow(int64_t i) const
	{
		const GpuRouteSideView &side = view.side[view.state->at];
		const GpuRouteQueue &queue = view.state->side[view.state->at];

		for (int64_t q = i / view.lanes; q < queue.n; q += view.threads / view.lanes)
		{
			const uint32_t v = side.queue[queue.queue][q];
			const uint64_t label = gpu_glance(&side.label[v]);

			if (v >= side.edges.n)
				continue;
			for (uint64_t e = side.edges.offsets[v] + (uint64_t) (i % view.lanes);
				 e < side.edges.offsets[v + 1]; e += (uint64_t) view.lanes)
			{
				if (side.edges.has(e))
					reach(side.edges.members[e], label, side.edges.weights[e]);
			}
		}
	}

	/* Follows an edge that is in no row, if its source is of the round. */
	GPU_FN void follow_more(int64_t i) const
	{
		const GpuRouteSideView &side = view.side[view.state->at];
		const uint64_t edge = side.edges.back ? side.edges.more[i] << 32 | side.edges.more[i] >> 32
											  : side.edges.more[i];
		const uint32_t source = (uint32_t) (edge >> 32);

		/* one that is queued again by now is of the next round */
		if (gpu_fresh(&side.queued[source]) == view.state->side[view.state->at].round)
			reach((uint32_t) edge, gpu_glance(&side.label[source]), side.edges.more_weights[i]);
	}

	/* Queues what was put off and is below the bound now. */
	GPU_FN void split(int64_t i) const
	{
		const GpuRouteSideView &side = view.side[view.state->at];
		GpuRouteQueue *queue = &view.state->side[view.state->at];

		for (int64_t q = i; q < queue->nlater; q += view.threads)
		{
			const uint32_t v = side.later[queue->later][q];
			const uint64_t label = side.label[v];

			if (label < queue->before)
				continue;
			if (label < queue->bound)
			{
				side.queued[v] = queue->round;
				side.queue[queue->queue][gpu_atomic_next(&queue->n)] = v;
				continue;
			}
			side.delayed[v] = queue->bucket;
			side.later[1 - queue->later][gpu_atomic_next(&queue->nkept)] = v;
			if (label < gpu_glance(&queue->least))
				gpu_atomic_min64(&queue->least, label);
		}
	}

	GPU_FN void operator()(int64_t i) const
	{
		if (view.state->done)
			return;
		if (i >= view.threads && !view.state->splits)
			follow_more(i - view.threads);
		else if (i < view.threads && view.state->splits)
			split(i);
		else if (i < view.threads)
			follow(i);
	}
};

/* Finds where both sides have met on the best path. */
struct GpuRouteMeet
{
	GpuRouteView view;

	GPU_FN void operator()(int64_t v) const
	{
		const uint64_t a = view.side[0].label[v];
		const uint64_t b = view.side[1].label[v];

		if (a != GPU_NO_LABEL && b != GPU_NO_LABEL && a + b == view.state->best)
			gpu_atomic_exchange(&view.state->met, (uint32_t) v);
	}
};

/* Notes which vertices are before others on best paths. */
struct GpuRouteParents
{
	GpuRouteView view;
	int s;

	GPU_FN void note(uint32_t from, uint32_t to, uint64_t weight) const
	{
		const uint64_t *label = view.side[s].label;

		if (label[from] != GPU_NO_LABEL && label[from] + view.add(weight) == label[to])
			gpu_atomic_exchange(&view.side[s].parent[to], from);
	}

	GPU_FN void note_more(int64_t i) const
	{
		const GpuGraphEdgesView &edges = view.side[s].edges;
		const uint32_t source = (uint32_t) (edges.more[i] >> 32);
		const uint32_t target = (uint32_t) edges.more[i];

		note(edges.back ? target : source, edges.back ? source : target, edges.more_weights[i]);
	}

	GPU_FN void operator()(int64_t i) const
	{
		const GpuGraphEdgesView &edges = view.side[s].edges;
		const int64_t v = i / view.lanes;

		if (i < edges.nmore)
			note_more(i);
		if (v >= edges.n || view.side[s].label[v] >= view.state->best)
			return;
		for (uint64_t e = edges.offsets[v] + (uint64_t) (i % view.lanes); e < edges.offsets[v + 1];
			 e += (uint64_t) view.lanes)
		{
			if (edges.has(e))
				note((uint32_t) v, edges.members[e], edges.weights[e]);
		}
	}
};

/* Counts the edges of the path, from each end to where both sides have met. */
struct GpuRouteLength
{
	GpuRouteView view;

	GPU_FN void operator()(int64_t s) const
	{
		uint32_t n = 0;

		if (view.state->met == GPU_NO_VERTEX)
			return;
		for (uint32_t v = view.state->met; view.side[s].label[v] != 0; v = view.side[s].parent[v])
			n++;
		view.state->length[s] = n;
	}
};

/* Writes the vertices of the path, and what the path to each costs. */
struct GpuRouteTell
{
	GpuRouteView view;
	GpuGraphCodes codes;
	uint64_t *out;

	GPU_FN void put(int64_t at, uint32_t v, uint64_t label) const
	{
		out[2 * at] = codes.of(v);
		out[2 * at + 1] = label >> view.shift;
	}

	GPU_FN void operator()(int64_t s) const
	{
		const GpuRouteState *state = view.state;
		int64_t at = (int64_t) state->length[0];
		uint32_t v = state->met;

		if (s == 0)
			put(at, v, view.side[0].label[v]);
		for (uint32_t left = state->length[s]; left > 0; left--)
		{
			v = view.side[s].parent[v];
			at += s == 0 ? -1 : 1;
			put(at, v, s == 0 ? view.side[0].label[v] : state->best - view.side[1].label[v]);
		}
	}
};

/* Takes memory for the search of one side, n vertices. */
static inline bool
gpu_route_take_side(GpuGraph *graph, GpuGraphRouteSide *side)
{
	const int64_t n = graph->n;

	return gpu_graph_take(graph, &side->label, n) && gpu_graph_take(graph, &side->queued, n) &&
		   gpu_graph_take(graph, &side->delayed, n) && gpu_graph_take(graph, &side->parent, n) &&
		   gpu_graph_take(graph, &side->queue[0], n) && gpu_graph_take(graph, &side->queue[1], n) &&
		   gpu_graph_take(graph, &side->later[0], n) && gpu_graph_take(graph, &side->later[1], n);
}

static inline bool
gpu_route_take(GpuGraph *graph)
{
	GpuGraphRoute *route = &graph->route;

	if (!route->begun)
		route->begun = gpu_route_take_side(graph, &route->side[0]) &&
					   gpu_route_take_side(graph, &route->side[1]) && gpu_graph_take(graph, &route->state, 1);
	return route->begun;
}

static inline GpuRouteSideView
gpu_route_side_view(const GpuGraph *graph, int s)
{
	const GpuGraphRouteSide *side = &graph->route.side[s];

	return { side->label.at(),
			 side->queued.at(),
			 side->delayed.at(),
			 side->parent.at(),
			 { side->queue[0].at(), side->queue[1].at() },
			 { side->later[0].at(), side->later[1].at() },
			 gpu_graph_edges_view(graph, s == 1 && !graph->both) };
}

/* Low bits of labels: as many edges as a path may have that cost nothing. */
static inline int
gpu_route_shift(const GpuGraph *graph)
{
	return graph->weights.least == 0 ? gpu_graph_bits(graph->n) : 0;
}

static inline uint64_t
gpu_route_limit(const GpuGraph *graph)
{
	return UINT64_C(1) << std::min(GPU_ROUTE_COST_BITS + gpu_route_shift(graph), GPU_ROUTE_LABEL_BITS);
}

static inline uint64_t
gpu_route_width(const GpuGraph *graph)
{
	const uint64_t most = (gpu_route_limit(graph) >> gpu_route_shift(graph)) / GPU_ROUTE_WIDTH;
	const uint64_t middle = std::max(graph->weights.middle, UINT64_C(1));

	return (std::min(middle, most) << gpu_route_shift(graph)) * GPU_ROUTE_WIDTH;
}

/* Threads that follow the edges of a vertex together: a power of 2 near the mean degree. */
static inline int
gpu_route_lanes(const GpuGraph *graph)
{
	int lanes = 4;

	while (lanes < 32 && (int64_t) lanes * graph->n < graph->m)
		lanes *= 2;
	return lanes;
}

static inline GpuRouteView
gpu_route_view(const GpuGraph *graph)
{
	const int lanes = gpu_route_lanes(graph);
	const int64_t threads = std::min(graph->n * lanes, (int64_t) GPU_ROUTE_THREADS);

	return { { gpu_route_side_view(graph, 0), gpu_route_side_view(graph, 1) },
			 graph->route.state.at(),
			 gpu_route_limit(graph),
			 gpu_route_width(graph),
			 gpu_route_shift(graph),
			 lanes,
			 threads };
}

/* What paths cost less than whose cost is up to most, as a label. */
static inline uint64_t
gpu_route_bound(const GpuGraph *graph, uint64_t most)
{
	const uint64_t limit = gpu_route_limit(graph);

	return most < limit >> gpu_route_shift(graph) ? (most + 1) << gpu_route_shift(graph) : limit;
}

/*
 * Begins a search for a path between two different vertices, whose codes are in device memory, of up to some
 * cost.
 */
static inline uint32_t
gpu_route_begin(GpuGraph *graph, GpuScanStream *stream, const uint64_t *named, uint64_t most)
{
	GpuStream *s = &stream->stream;
	const uint32_t status = gpu_graph_need_back_over(graph, stream);

	if (status != GPU_OK)
		return status;
	if (!gpu_route_take(graph))
		return GPU_NO_MEMORY;
	for (const GpuGraphRouteSide &side : graph->route.side)
	{
		gpu_fill(s, side.label.at(), 0xFF, (size_t) graph->n * sizeof(uint64_t));
		gpu_fill(s, side.queued.at(), 0, (size_t) graph->n * sizeof(uint32_t));
		gpu_fill(s, side.delayed.at(), 0, (size_t) graph->n * sizeof(uint32_t));
	}
	graph->route.done = false;
	graph->route.length = 0;
	graph->route.most = most;
	gpu_launch(s, 1,
			   GpuRouteBegin{ gpu_route_view(graph), gpu_graph_codes(graph), named,
							  gpu_route_bound(graph, most) });
	return gpu_graph_status(s);
}

/* Learns what the search, which is done, has found.  GPU_TOO_LARGE: it has left out what costs too much. */
static inline uint32_t
gpu_route_end(GpuGraph *graph, GpuScanStream *stream)
{
	GpuStream *s = &stream->stream;
	const GpuRouteView view = gpu_route_view(graph);
	const uint64_t best = gpu_graph_read(stream, &view.state->best);
	const bool over = gpu_graph_read_sum(stream, &view.state->over) != 0;

	if (!gpu_ok(s))
		return s->status;
	graph->route.done = true;
	if (best == gpu_route_bound(graph, graph->route.most))
		return over && best == view.limit ? GPU_TOO_LARGE : GPU_OK;
	gpu_launch(s, graph->n, GpuRouteMeet{ view });
	for (int side = 0; side < 2; side++)
		gpu_launch(s, std::max(graph->n * view.lanes, view.side[side].edges.nmore),
				   GpuRouteParents{ view, side });
	gpu_launch(s, 2, GpuRouteLength{ view });
	graph->route.length = 1;
	for (int side = 0; side < 2; side++)
		graph->route.length += gpu_graph_read_sum(stream, &view.state->length[side]);
	return gpu_graph_status(s);
}

/* Goes on with the search for so many rounds at most; *did: how many. */
static inline uint32_t
gpu_route_go_on(GpuGraph *graph, GpuScanStream *stream, int64_t rounds, int64_t *did)
{
	GpuStream *s = &stream->stream;
	const GpuRouteView view = gpu_route_view(graph);

	if (!graph->route.begun)
		return GPU_WITHDRAWN;
	for (*did = 0; *did < rounds && !graph->route.done; *did += GPU_ROUTE_ROUNDS)
	{
		for (int i = 0; i < GPU_ROUTE_ROUNDS; i++)
		{
			gpu_launch(s, 1, GpuRouteControl{ view });
			gpu_launch(s, view.threads + view.side[0].edges.nmore, GpuRouteWork{ view });
		}
		if (gpu_graph_read_sum(stream, &view.state->done) != 0)
			return gpu_route_end(graph, stream);
		if (!gpu_ok(s))
			return s->status;
	}
	return GPU_OK;
}

/* Writes the path that has been found to device memory, two words for a vertex. */
static inline void
gpu_route_tell(const GpuGraph *graph, GpuStream *s, uint64_t *out)
{
	gpu_launch(s, 2, GpuRouteTell{ gpu_route_view(graph), gpu_graph_codes(graph), out });
}

#endif /* GPU_GRAPH_ROUTE_H */
