/*-------------------------------------------------------------------------
 *
 * engine_graphs.h
 *	  Graphs that the engine has between requests: one for an owner at most, and those that are kept.
 *
 * Scanners make them, and work on them.  An owner has one request at a time, so a graph is used by one
 * scanner at a time; the lock is for the lists of all.  A graph does not depend on the tree that its edges
 * came from: its owner gives it up, by a request or by beginning another one.
 *
 * A graph may then be kept as the base of others.  README.md says why they have the right edges (K1 to K11).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_ENGINE_GRAPHS_H
#define GPU_ENGINE_GRAPHS_H

#include "kernels/engine/engine_graph_steps.h"
#include "kernels/engine/engine_state.h"
#include "kernels/graph/gpu_graph_overlay.h"

/* Changes of a tree that are so few that a graph of it is had at little cost. */
#define GPU_GRAPH_FEW_CHANGES (64 * 1024)

/* A base is made anew when it differs from the newest graph by this part of its edges, or so many changes. */
#define GPU_GRAPH_RENEW_PART 1024

/* Kinds of graphs that are kept of a tree. */
#define GPU_GRAPH_KINDS 4

/* Of which kind a graph is: its edges lead one way or both, and have weights or not. */
static inline int
gpu_graph_kind(bool both, bool weighted)
{
	return (int) weighted << 1 | both;
}

/* Where a tree's graph of a kind is kept. */
static inline uint64_t
gpu_engine_kept_key(uint32_t number, int kind)
{
	return (uint64_t) number * GPU_GRAPH_KINDS + (uint64_t) kind;
}

/* Device memory that is in use, but for graphs that are kept: it is there for whoever needs it. */
static inline size_t
gpu_engine_memory_used(const GpuEngine *engine)
{
	const size_t used = gpu_pool_used(&engine->pool);
	const size_t kept = engine->kept_bytes;

	return used > kept ? used - kept : 0;
}

/* Keeps a graph no longer, whose place in the list is given.  The caller has the lock. */
static inline GpuGraph *
gpu_engine_take_kept(GpuEngine *engine, std::map<uint64_t, GpuGraph *>::iterator at)
{
	GpuGraph *graph = at->second;

	engine->kept.erase(at);
	graph->kept = false;
	if (graph->users == 0)
		engine->kept_bytes -= gpu_graph_bytes(graph);
	return graph;
}

/* Gives the memory of a graph back that is kept, the oldest that nobody uses; false: there is none. */
static inline bool
gpu_engine_give_kept(void *arg)
{
	GpuEngine *engine = (GpuEngine *) arg;
	GpuGraph *graph;

	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);
		auto oldest = engine->kept.end();

		for (auto at = engine->kept.begin(); at != engine->kept.end(); ++at)
		{
			if (at->second->users == 0 &&
				(oldest == engine->kept.end() || at->second->kept_at < oldest->second->kept_at))
				oldest = at;
		}
		if (oldest == engine->kept.end())
			return false;
		graph = gpu_engine_take_kept(engine, oldest);
	}
	gpu_graph_close(graph);
	return true;
}

/* Gives the memory of the graphs back that are kept of a tree, which has given way to another one. */
static inline void
gpu_engine_drop_kept(GpuEngine *engine, uint32_t number)
{
	for (int kind = 0; kind < GPU_GRAPH_KINDS; kind++)
	{
		GpuGraph *graph = NULL;

		{
			std::lock_guard<std::mutex> guard(engine->graphs_mutex);
			auto found = engine->kept.find(gpu_engine_kept_key(number, kind));

			if (found != engine->kept.end())
				graph = gpu_engine_take_kept(engine, found);
			/* the last of its users closes it */
			if (graph != NULL && graph->users > 0)
				graph = NULL;
		}
		if (graph != NULL)
			gpu_graph_close(graph);
	}
}

/* The graph of a kind that is kept of a tree, for one more user; NULL: there is none. */
static inline GpuGraph *
gpu_engine_use_kept(GpuEngine *engine, uint32_t number, int kind)
{
	std::lock_guard<std::mutex> guard(engine->graphs_mutex);
	auto found = engine->kept.find(gpu_engine_kept_key(number, kind));

	if (found == engine->kept.end())
		return NULL;
	if (found->second->users++ == 0)
		engine->kept_bytes -= gpu_graph_bytes(found->second);
	return found->second;
}

/* Uses a kept graph no more.  The caller has the lock.  true: nobody uses it, and it is to be closed. */
static inline bool
gpu_engine_leave_kept(GpuEngine *engine, GpuGraph *base)
{
	if (--base->users > 0)
		return false;
	if (!base->kept)
		return true;
	base->kept_at = gpu_engine_now_ns();
	engine->kept_bytes += gpu_graph_bytes(base);
	return false;
}

/* Makes an owner's graph independent of its base: it has its own arrays, or is about to be closed. */
static inline void
gpu_engine_leave_base(GpuEngine *engine, GpuGraph *graph)
{
	GpuGraph *base = graph->base;
	bool last;

	if (base == NULL)
		return;
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);

		if (graph->ended)
			gpu_graph_lend(graph, base);
		gpu_graph_return_all(graph);
		graph->base = NULL;
		last = gpu_engine_leave_kept(engine, base);
	}
	if (last)
		gpu_graph_close(base);
}

/* Closes a graph that has no owner, and is not kept. */
static inline void
gpu_engine_close_graph(GpuEngine *engine, GpuGraph *graph)
{
	gpu_engine_leave_base(engine, graph);
	gpu_graph_close(graph);
}

/* Is a graph that is kept better than another one, because it is known what scan its edges are of (K7)? */
static inline bool
gpu_engine_keeps_better(const GpuGraph *kept, const GpuGraph *graph)
{
	return kept != NULL && kept->origin.nhidden >= 0 && graph->origin.nhidden < 0 &&
		   kept->origin.structure == graph->origin.structure && kept->origin.serial >= graph->origin.serial;
}

/*
 * Keeps a graph that has no owner and no base, in place of the one before, or closes it, unless it is a base
 * already.
 */
static inline void
gpu_engine_keep(GpuEngine *engine, GpuGraph *graph, GpuScanStream *stream)
{
	GpuGraph *other = graph;

	if (gpu_graph_need_rows(graph, stream) == GPU_OK)
	{
		gpu_graph_rest(graph);
		if (graph->origin.nhidden < 0)
			gpu_graph_give(graph, &graph->hidden);
		try
		{
			std::lock_guard<std::mutex> guard(engine->graphs_mutex);
			GpuGraph *&place = engine->kept[gpu_engine_kept_key(
				(uint32_t) graph->tree, gpu_graph_kind(graph->both, graph->weighted))];

			if (!gpu_engine_keeps_better(place, graph))
			{
				other = place;
				place = graph;
				graph->kept = true;
				graph->kept_at = gpu_engine_now_ns();
				engine->kept_bytes += graph->users == 0 ? gpu_graph_bytes(graph) : 0;
				if (other != NULL)
				{
					other->kept = false;
					engine->kept_bytes -= other->users == 0 ? gpu_graph_bytes(other) : 0;
					other = other->users == 0 ? other : NULL;
				}
			}
		}
		catch (const std::bad_alloc &)
		{
		}
	}
	if (other != NULL && other->users == 0)
		gpu_graph_close(other);
}

/* An owner's graph; NULL: it has none. */
static inline GpuGraph *
gpu_engine_graph(GpuEngine *engine, uint64_t owner)
{
	std::lock_guard<std::mutex> guard(engine->graphs_mutex);
	auto found = engine->graphs.find(owner);

	return found != engine->graphs.end() ? found->second : NULL;
}

/*
 * How many changes the log of a graph's tree has since the scan that its edges are of; -1: that is not known.
 */
static inline int64_t
gpu_engine_changes_since(GpuEngine *engine, uint32_t number, const GpuGraph *graph)
{
	GpuChangeLog *log = engine->log[number].load(std::memory_order_acquire);

	return log != NULL && graph->origin.nhidden >= 0 ? gpu_log_since(log, graph->origin.noted) : -1;
}

/*
 * Is a graph that lies over its base to take its place, because more and more differs?  Where edges have
 * weights, that costs a new graph, and comes later.
 */
static inline bool
gpu_engine_renews(GpuEngine *engine, const GpuGraph *graph)
{
	const GpuGraph *base = graph->base;
	const int64_t most = graph->weighted
							 ? GPU_GRAPH_FEW_CHANGES
							 : std::min(base->m / GPU_GRAPH_RENEW_PART, (int64_t) GPU_GRAPH_FEW_CHANGES);

	if (!graph->over.is || graph->origin.nhidden < 0 || graph->origin.serial < base->origin.serial)
		return false;
	return graph->over.ngone + graph->list.n > most ||
		   gpu_engine_changes_since(engine, (uint32_t) graph->tree, base) > most;
}

/* Keeps an owner's graph's base no longer. */
static inline void
gpu_engine_forget_base(GpuEngine *engine, const GpuGraph *graph)
{
	std::lock_guard<std::mutex> guard(engine->graphs_mutex);
	auto found = engine->kept.find(
		gpu_engine_kept_key((uint32_t) graph->base->tree, gpu_graph_kind(graph->both, graph->weighted)));

	if (found != engine->kept.end() && found->second == graph->base)
		(void) gpu_engine_take_kept(engine, found);
}

/*
 * Takes an owner's graph away, if it has one.  keep: as the base of others, if it has all edges.  *left, if
 * that is not NULL: a graph that is to become a base when nobody waits (gpu_engine_renew).
 */
static inline void
gpu_engine_drop_graph(GpuEngine *engine, uint64_t owner, bool keep, GpuScanStream *stream, GpuGraph **left)
{
	GpuGraph *graph = gpu_engine_graph(engine, owner);

	if (graph == NULL)
		return;
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);
		engine->graphs.erase(owner);
	}
	if (keep && graph->ended && graph->base == NULL && graph->tree >= 0 &&
		(!graph->weighted || graph->origin.nhidden >= 0))
		gpu_engine_keep(engine, graph, stream);
	else if (keep && left != NULL && graph->base != NULL && gpu_engine_renews(engine, graph))
	{
		if (!graph->weighted)
		{
			*left = graph;
			return;
		}
		gpu_engine_forget_base(engine, graph);
		gpu_engine_close_graph(engine, graph);
	}
	else
		gpu_engine_close_graph(engine, graph);
}

/* Gives a graph to its owner, who has none; it may be NULL if there was no memory for it. */
static inline uint32_t
gpu_engine_own_graph(GpuEngine *engine, GpuGraph *graph)
{
	if (graph == NULL)
		return GPU_NO_MEMORY;
	try
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);
		engine->graphs[graph->owner] = graph;
		return GPU_OK;
	}
	catch (const std::bad_alloc &)
	{
	}
	gpu_engine_close_graph(engine, graph);
	return GPU_NO_MEMORY;
}

/* The version that a tree has now. */
static inline GpuGraphVersion
gpu_engine_version_now(const GpuEngine *engine, uint32_t number)
{
	const GpuStructure *tree = engine->tree[number].load(std::memory_order_acquire);
	GpudsView view;

	if (tree == NULL || !tree->view(&engine->pool, &view))
		return {};
	return { tree, view.serial };
}

/* Notes what version a graph's tree has as it begins; NULL: there is no graph. */
static inline GpuGraph *
gpu_graph_begun(const GpuEngine *engine, uint32_t number, GpuGraph *graph)
{
	if (graph != NULL)
		graph->begun = gpu_engine_version_now(engine, number);
	return graph;
}

/* Begins an owner's graph with room for so many edges. */
static inline uint32_t
gpu_engine_begin_graph(GpuEngine *engine, GpuScanStream *stream, const GpuRequest *r)
{
	gpu_engine_drop_graph(engine, r->owner, true, stream, NULL);
	if (2 * r->n >= GPU_MAX_ITEMS)
		return GPU_TOO_LARGE;
	return gpu_engine_own_graph(engine,
								gpu_graph_begun(engine, r->tree,
												gpu_graph_open(&engine->pool, r->owner, r->n, r->each)));
}

/*
 * Gives an owner, who has none, a graph on a base that counts him among its users.  NULL: there is no memory
 * for it, and the base has one user less.
 */
static inline GpuGraph *
gpu_engine_own_graph_on(GpuEngine *engine, uint64_t owner, GpuGraph *base)
{
	GpuGraph *graph = gpu_graph_open_on(&engine->pool, owner, base);
	bool last;

	if (graph != NULL)
		return gpu_engine_own_graph(engine, graph) == GPU_OK ? graph : NULL;
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);
		last = gpu_engine_leave_kept(engine, base);
	}
	if (last)
		gpu_graph_close(base);
	return NULL;
}

/* Has a tree changed little since the scan that a kept graph's edges are of? */
static inline bool
gpu_graph_is_near(GpuEngine *engine, uint32_t number, const GpuGraph *kept)
{
	const GpuStructure *tree = engine->tree[number].load(std::memory_order_acquire);
	const int64_t changes = gpu_engine_changes_since(engine, number, kept);

	return tree != NULL && tree == kept->origin.structure && changes >= 0 && changes <= GPU_GRAPH_FEW_CHANGES;
}

/*
 * Begins an owner's graph whose base is the one that is kept of a tree; found: whether the tree has changed
 * little since, so that what is asked of it will probably cost little.
 */
static inline uint32_t
gpu_engine_begin_on_kept(GpuEngine *engine, GpuScanStream *stream, GpuRequest *r)
{
	GpuGraph *base;

	gpu_engine_drop_graph(engine, r->owner, true, stream, NULL);
	base = gpu_engine_use_kept(engine, r->tree, gpu_graph_kind(r->each, r->n != 0));
	if (base == NULL)
		return GPU_WITHDRAWN;
	r->found = gpu_graph_is_near(engine, r->tree, base);
	return gpu_graph_begun(engine, r->tree, gpu_engine_own_graph_on(engine, r->owner, base)) != NULL
			   ? GPU_OK
			   : GPU_NO_MEMORY;
}

/* Deletes the graphs of an engine that nobody uses any more; the pool's memory is gone. */
static inline void
gpu_engine_delete_graphs(GpuEngine *engine)
{
	for (const auto &owned : engine->graphs)
	{
		GpuGraph *base = owned.second->base;

		if (base != NULL && gpu_engine_leave_kept(engine, base))
			delete base;
		delete owned.second;
	}
	for (const auto &kept : engine->kept)
		delete kept.second;
}

/*
 * A graph's own scan has found its base's edges.  Unless somebody else uses the base, it is of that scan from
 * now on, and what was hidden from the scan is the base's.
 */
static inline void
gpu_engine_move_origin(GpuEngine *engine, GpuGraph *graph)
{
	std::lock_guard<std::mutex> guard(engine->graphs_mutex);
	GpuGraph *base = graph->base;

	if (graph->origin.nhidden < 0 || base->users > 1)
		return;
	base->origin = graph->origin;
	std::swap(base->hidden, graph->hidden);
	graph->origin.nhidden = -1;
}

/* A graph has the edges of its base, as it turned out: it borrows them. */
static inline void
gpu_engine_borrow(GpuEngine *engine, GpuGraph *graph)
{
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);

		gpu_graph_borrow(graph);
	}
	gpu_engine_move_origin(engine, graph);
}

/* All edges have come that are looked for: makes a graph of them and its base (K2); differ: by how many. */
static inline uint32_t
gpu_scanner_update_graph(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, int64_t *differ)
{
	const uint32_t status = gpu_graph_update(graph, stream, differ);

	if (status != GPU_OK)
		return status;
	if (*differ > 0)
		gpu_engine_leave_base(engine, graph);
	else
		gpu_engine_borrow(engine, graph);
	return GPU_OK;
}

/*
 * Makes a graph that has all edges the base of another one of its owner's, and its own base if it has one;
 * NULL: there is no memory for the other one, and the owner has none any more.
 */
static inline GpuGraph *
gpu_engine_go_on_from(GpuEngine *engine, GpuScanStream *stream, GpuGraph *part)
{
	const GpuGraphOrigin origin = part->origin;
	const int64_t tree = part->tree;
	const uint64_t owner = part->owner;
	GpuGraph *base = part->base != NULL ? part->base : part;
	GpuGraph *graph;

	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);

		engine->graphs.erase(owner);
		base->users++;
	}
	if (part->base != NULL)
		gpu_engine_close_graph(engine, part);
	else
		gpu_engine_keep(engine, part, stream);
	graph = gpu_engine_own_graph_on(engine, owner, base);
	if (graph == NULL)
		return NULL;
	graph->tree = tree;
	graph->origin = origin;
	graph->origin.nhidden = -1;
	graph->all = true;
	return graph;
}

/* Adds the edges that a graph's owner has sent, which are in pairs, to what its scan has found (K7). */
static inline uint32_t
gpu_scanner_add_sent(GpuEngine *engine, GpuScanStream *stream, GpuGraph **graph, const uint64_t *pairs,
					 int64_t n, int64_t *differ)
{
	int64_t more = 0;
	uint32_t status;

	*graph = gpu_engine_go_on_from(engine, stream, *graph);
	if (*graph == NULL || !gpu_graph_need_marks(*graph, &stream->stream))
		return GPU_NO_MEMORY;
	gpu_edges_add(stream, &(*graph)->list, pairs, n);
	status = gpu_scanner_update_graph(engine, stream, *graph, &more);
	*differ += more;
	return status;
}

/*
 * All edges have come: makes a graph of them, and of what its owner has sent.  *differ: in how many it and
 * its base differ.
 */
static inline uint32_t
gpu_scanner_make_anew(GpuEngine *engine, GpuScanStream *stream, GpuGraph **graph, int64_t *differ)
{
	const int64_t listed = (*graph)->list.n;
	const int64_t sent = (*graph)->nsent;
	GpuGraphArray<uint64_t> pairs;
	uint32_t status = gpu_scanner_update_graph(engine, stream, *graph, differ);

	if (status != GPU_OK || sent == 0)
		return status;
	(*graph)->nsent = 0;
	std::swap(pairs, (*graph)->pairs);
	status = gpu_scanner_add_sent(engine, stream, graph, pairs.at() + 2 * listed, sent, differ);
	(void) gpu_finish(&stream->stream);
	gpu_span_give(&engine->pool, &pairs.span);
	return status;
}

/* The same of a graph that lies over its base (K9). */
static inline uint32_t
gpu_scanner_unlay(GpuEngine *engine, GpuScanStream *stream, GpuGraph **graph)
{
	int64_t differ = 0;
	uint32_t status;

	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);

		gpu_graph_lend(*graph, (*graph)->base);
		gpu_graph_return_all(*graph);
	}
	status = gpu_graph_unlay(*graph, &stream->stream);
	return status == GPU_OK ? gpu_scanner_make_anew(engine, stream, graph, &differ) : status;
}

/*
 * Makes a graph that has lain over its base, and has no owner any more, a base in its place: of what the scan
 * has found alone (K7).
 */
static inline void
gpu_engine_renew(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph)
{
	graph->nsent = 0;
	if (gpu_scanner_unlay(engine, stream, &graph) == GPU_OK && graph->base == NULL)
		gpu_engine_keep(engine, graph, stream);
	else
		gpu_engine_close_graph(engine, graph);
}

/* All edges have come that may differ from the base's, and those that were sent (K8). */
static inline uint32_t
gpu_scanner_lay_over(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, int64_t *differ)
{
	const bool same = graph->list.n == 0 && graph->list.changes.ngone == 0;
	const uint32_t status = gpu_graph_lay_over(graph, stream, differ);

	if (status != GPU_OK)
		return status;
	if (*differ == 0)
	{
		gpu_engine_borrow(engine, graph);
		return GPU_OK;
	}
	{
		std::lock_guard<std::mutex> guard(engine->graphs_mutex);

		gpu_graph_borrow_over(graph);
	}
	if (same)
		gpu_engine_move_origin(engine, graph);
	return GPU_OK;
}

/* All edges have come. */
static inline uint32_t
gpu_scanner_end_on_base(GpuEngine *engine, GpuScanStream *stream, GpuGraph **graph, GpuRequest *r)
{
	GpuGraph *made = *graph;

	if (made->both != r->each)
		return GPU_WITHDRAWN;
	r->taken = made->list.changes.done;
	if (!made->list.changes.done)
		return made->weighted ? (uint32_t) GPU_WITHDRAWN
							  : gpu_scanner_make_anew(engine, stream, graph, &r->counted);
	if (!made->list.full && made->list.n + made->nsent <= GPU_GRAPH_OVERLAY_MOST)
		return gpu_scanner_lay_over(engine, stream, made, &r->counted);
	if (made->weighted)
		return GPU_WITHDRAWN;
	const uint32_t status = gpu_graph_mark_left(made, &stream->stream);

	return status == GPU_OK ? gpu_scanner_make_anew(engine, stream, graph, &r->counted) : status;
}

/*
 * The edges of a scan with weights have become a graph of that scan alone: makes it the base of its owner's,
 * which has those that were sent beside it (K7).
 */
static inline uint32_t
gpu_scanner_lay_sent(GpuEngine *engine, GpuScanStream *stream, GpuGraph **owned, const uint64_t *pairs,
					 const uint64_t *weights, int64_t n)
{
	GpuStream *s = &stream->stream;
	GpuGraph *graph = *owned = gpu_engine_go_on_from(engine, stream, *owned);
	int64_t differ;

	if (graph == NULL || !gpu_graph_begin_changes(graph, s, 0))
		return GPU_NO_MEMORY;
	gpu_copy(s, graph->list.pairs, pairs, (size_t) n * 2 * sizeof(uint64_t));
	gpu_copy(s, graph->list.weights, weights, (size_t) n * sizeof(uint64_t));
	graph->list.changes.done = true;
	graph->list.hidden = {};
	graph->nsent = n;
	return gpu_scanner_lay_over(engine, stream, graph, &differ);
}

/* All edges of a graph with weights have come, which has no base. */
static inline uint32_t
gpu_scanner_end_weighted(GpuEngine *engine, GpuScanStream *stream, GpuGraph **owned, bool both)
{
	GpuGraph *graph = *owned;
	GpuGraphArray<uint64_t> pairs;
	GpuGraphArray<uint64_t> weights;
	uint32_t status;

	/* too many to be laid over it: the graph is no base of others then */
	if (graph->nsent > GPU_GRAPH_OVERLAY_MOST)
	{
		graph->origin.nhidden = -1;
		graph->list.n += graph->nsent;
		graph->nsent = 0;
	}
	const int64_t listed = graph->list.n;
	const int64_t sent = graph->nsent;

	graph->nsent = 0;
	std::swap(pairs, graph->pairs);
	std::swap(weights, graph->pair_weights);
	status = gpu_graph_end(graph, stream, both);
	if (status == GPU_OK && sent > 0)
		status = gpu_scanner_lay_sent(engine, stream, owned, pairs.at() + 2 * listed, weights.at() + listed,
									  sent);
	(void) gpu_finish(&stream->stream);
	gpu_span_give(&engine->pool, &pairs.span);
	gpu_span_give(&engine->pool, &weights.span);
	return status;
}

/* A step on a graph whose edges are not all there yet; or, with them, the first. */
static inline uint32_t
gpu_scanner_make_graph(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	uint32_t status;

	if (r->form == GPU_GRAPH_ADD)
		return gpu_scanner_add_edges(engine, stream, graph, r);
	if (r->form != GPU_GRAPH_END)
		return GPU_NO_REQUEST;
	r->counted = r->taken = 0;
	if (graph->base != NULL)
		status = gpu_scanner_end_on_base(engine, stream, &graph, r);
	else if (graph->weighted)
		status = gpu_scanner_end_weighted(engine, stream, &graph, r->each);
	else
	{
		status = gpu_graph_end(graph, stream, r->each);
		graph->parallel = status == GPU_OK;
	}
	r->found = status == GPU_OK ? graph->n : 0;
	return status;
}

/* Does a step take a graph that has all edges in arrays of its own? */
static inline bool
gpu_step_needs_arrays(uint32_t step)
{
	return step == GPU_GRAPH_TRIANGLES;
}

/* A step on a graph with weights that has all edges. */
static inline uint32_t
gpu_scanner_use_weighted(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	switch (r->form)
	{
		case GPU_GRAPH_END:
			r->found = graph->n;
			r->counted = r->taken = 0;
			return graph->both == r->each ? GPU_OK : GPU_WITHDRAWN;
		case GPU_GRAPH_SEEK:
			return gpu_scanner_route(engine, stream, graph, r);
		case GPU_GRAPH_PATH:
			return gpu_scanner_tell_route(engine, stream, graph, r);
		default:
			return GPU_NO_REQUEST;
	}
}

/* A step on a graph that has all edges, and equal ones as often as they are there. */
static inline uint32_t
gpu_scanner_use_parallel(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	if (r->form == GPU_GRAPH_COUNT)
		return gpu_scanner_count_degrees(stream, graph, r);
	if (r->form == GPU_GRAPH_DEGREES)
		return gpu_scanner_tell_degrees(engine, stream, graph, r);
	if (r->form == GPU_GRAPH_RANK)
		return gpu_scanner_rank(engine, stream, graph, r);
	return gpu_scanner_tell_ranks(engine, stream, graph, r);
}

/* A step on a graph that has all edges. */
static inline uint32_t
gpu_scanner_use_graph(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, GpuRequest *r)
{
	if (graph->over.is && gpu_step_needs_arrays(r->form))
	{
		const uint32_t status = gpu_scanner_unlay(engine, stream, &graph);

		if (status != GPU_OK)
			return status;
	}
	switch (r->form)
	{
		case GPU_GRAPH_END:
			r->found = graph->n;
			r->counted = r->taken = 0;
			return graph->both == r->each ? GPU_OK : GPU_WITHDRAWN;
		case GPU_GRAPH_REACH:
		case GPU_GRAPH_START:
			return gpu_scanner_reach(engine, stream, graph, r);
		case GPU_GRAPH_WALK:
			return gpu_scanner_walk(engine, stream, graph, r);
		case GPU_GRAPH_REACHED:
			return gpu_scanner_tell_reached(engine, stream, graph, r);
		case GPU_GRAPH_PATHS:
			return gpu_scanner_tell_paths(engine, stream, graph, r);
		case GPU_GRAPH_SEEK:
			return gpu_scanner_seek(engine, stream, graph, r);
		case GPU_GRAPH_PATH:
			return gpu_scanner_tell_path(engine, stream, graph, r);
		case GPU_GRAPH_CONNECT:
			return gpu_scanner_connect(stream, graph, r);
		case GPU_GRAPH_CONNECTED:
			return gpu_scanner_tell_connected(engine, stream, graph, r);
		case GPU_GRAPH_MEASURE:
			return gpu_scanner_measure(stream, graph, r);
		case GPU_GRAPH_SIZES:
			return gpu_scanner_tell_sizes(engine, stream, graph, r);
		case GPU_GRAPH_TRIANGLES:
			return gpu_scanner_triangles(stream, graph, r);
		case GPU_GRAPH_COUNT:
		case GPU_GRAPH_DEGREES:
		case GPU_GRAPH_RANK:
		case GPU_GRAPH_RANKED:
			return gpu_scanner_use_parallel(engine, stream, graph, r);
		default:
			return GPU_NO_REQUEST;
	}
}

/* Does a step; its status.  *left: as gpu_engine_drop_graph. */
static inline uint32_t
gpu_scanner_step(GpuEngine *engine, GpuScanStream *stream, GpuRequest *r, GpuGraph **left)
{
	GpuGraph *graph;

	if ((r->form == GPU_GRAPH_BEGIN && r->n < 0) || r->tree >= GPU_MAX_TREES)
		return GPU_NO_REQUEST;
	if (r->form == GPU_GRAPH_BEGIN)
		return gpu_engine_begin_graph(engine, stream, r);
	if (r->form == GPU_GRAPH_TAKE)
		return gpu_engine_begin_on_kept(engine, stream, r);
	if (r->form == GPU_GRAPH_DROP)
	{
		gpu_engine_drop_graph(engine, r->owner, r->each, stream, left);
		return GPU_OK;
	}
	graph = gpu_engine_graph(engine, r->owner);
	if (graph == NULL)
		return GPU_WITHDRAWN;
	if (!graph->ended)
		return gpu_scanner_make_graph(engine, stream, graph, r);
	return graph->weighted ? gpu_scanner_use_weighted(engine, stream, graph, r)
						   : gpu_scanner_use_graph(engine, stream, graph, r);
}

/* Answers a request that is about a graph. */
static inline void
gpu_scanner_do_graph(GpuEngine *engine, GpuScanStream *stream, GpuRequest *request)
{
	GpuStream *s = &stream->stream;
	void *temp = s->temp;
	const size_t temp_bytes = s->temp_bytes;
	GpuGraph *left = NULL;
	uint32_t status;

	s->launches = 0;
	s->bus_bytes = 0;
	request->batch = 1;
	gpu_event_record(s, &stream->started);
	status = gpu_scanner_step(engine, stream, request, &left);
	gpu_event_record(s, &stream->stopped);
	gpu_finish(s);
	s->temp = temp;
	s->temp_bytes = temp_bytes;
	request->device_ns = gpu_event_ns(s, &stream->started, &stream->stopped);
	request->launches = s->launches;
	request->bus_bytes = s->bus_bytes;
	gpu_engine_answer(engine, s, request, status);
	if (left == NULL)
		return;
	gpu_engine_wake(engine);
	gpu_engine_renew(engine, stream, left);
	(void) gpu_finish(s);
	gpu_engine_note_status(engine, s);
	s->temp = temp;
	s->temp_bytes = temp_bytes;
}

/* How many changes of a tree a view has at least that is taken now. */
static inline uint64_t
gpu_engine_noted(GpuEngine *engine, uint32_t number)
{
	GpuChangeLog *log = engine->log[number].load(std::memory_order_acquire);

	return log != NULL ? gpu_log_begin(log) : GPU_LOG_NONE;
}

/* Are a graph's edges those of a former scan of a structure alone, by the same columns? */
static inline bool
gpu_graph_is_of(const GpuGraph *graph, const GpuStructure *tree, const GpudsView *view, const GpuEdges *edges)
{
	const GpuGraphOrigin *origin = &graph->origin;

	return origin->nhidden >= 0 && origin->structure == tree && origin->serial <= view->serial &&
		   memcmp(origin->vertex, edges->vertex, sizeof(origin->vertex)) == 0 &&
		   (!graph->weighted || memcmp(&origin->weight, &edges->weight, sizeof(origin->weight)) == 0);
}

/* What a request says of its edges. */
static inline const GpuEdges *
gpu_request_edges(const GpuEngine *engine, const GpuRequest *request)
{
	return (const GpuEdges *) ((unsigned char *) engine->options.staging + request->edges);
}

/*
 * Makes ready to learn in which edges a graph and its base differ, by what has changed since the base's scan
 * (K8); false: that is not to be had.
 */
static inline bool
gpu_graph_have_changes(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, const GpuStructure *tree,
					   const GpudsView *view, const GpuRequest *request)
{
	const GpuEdges *edges = gpu_request_edges(engine, request);
	const GpuGraph *base = graph->base;
	GpuStream *s = &stream->stream;
	int64_t since;

	if (base == NULL || graph->scans > 0 || graph->all || !gpu_edges_of_intervals(request) ||
		!gpu_graph_is_of(base, tree, view, edges))
		return false;
	since = gpu_engine_changes_since(engine, request->tree, base);
	if (since < 0 || !gpu_graph_begin_changes(graph, s, base->origin.nhidden + since))
		return false;
	/* There may be more by now, but the view has been taken: it has none of them. */
	if (!gpu_log_copy(engine->log[request->tree], s, base->origin.noted,
					  graph->candidates.at() + base->origin.nhidden, since))
		return false;
	gpu_copy(s, graph->candidates.at(), base->hidden.at(),
			 (size_t) base->origin.nhidden * sizeof(GpudsEntry));
	return true;
}

/* A scan has been answered: notes what it was of.  complete: what it found has been handed back. */
static inline void
gpu_graph_end_scan(GpuGraph *graph, uint64_t noted, const GpuStructure *tree, const GpudsView *view,
				   const GpuEdges *edges, bool complete)
{
	GpuGraphOrigin *origin = &graph->origin;

	graph->scans++;
	origin->structure = tree;
	origin->serial = view->serial;
	origin->noted = noted;
	memcpy(origin->vertex, edges->vertex, sizeof(origin->vertex));
	origin->weight = edges->weight;
	origin->nhidden = graph->scans == 1 && complete ? graph->list.hidden.n : -1;
}

/* Keeps the entries that a scan has hidden, which are behind others. */
static inline void
gpu_graph_keep_hidden(GpuGraph *graph, GpuStream *s)
{
	const GpuHidden *hidden = &graph->list.hidden;

	if (hidden->n > 0 && gpu_graph_take(graph, &graph->hidden, hidden->n))
		gpu_copy(s, graph->hidden.at(), hidden->entries, (size_t) hidden->n * sizeof(GpudsEntry));
	else if (hidden->n > 0)
		graph->origin.nhidden = -1;
}

/*
 * Does a scan that says how its edges differ from those of the base, if they can be had; *done: it has.  Its
 * status, if so.
 */
static inline uint32_t
gpu_scanner_scan_changes(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph, const GpuStructure *tree,
						 const GpudsView *view, GpuRequest *request, bool *done)
{
	unsigned char *staging = (unsigned char *) engine->options.staging;
	const GpuEdges *edges = (const GpuEdges *) (staging + request->edges);
	uint32_t status = GPU_OK;

	*done = gpu_graph_have_changes(engine, stream, graph, tree, view, request);
	if (*done)
	{
		status = tree->scan(stream, view, staging, engine->device_staging, request);
		*done = status != GPU_OK || graph->list.changes.done;
	}
	if (*done && status == GPU_OK && request->found <= request->cap)
	{
		gpu_graph_end_scan(graph, stream->noted, tree, view, edges, true);
		gpu_graph_keep_hidden(graph, &stream->stream);
		return status;
	}
	(void) gpu_finish(&stream->stream);
	gpu_graph_end_changes(graph);
	/* as a scan from the first interval on that has not begun */
	if (!*done)
	{
		request->next = 0;
		request->inside = false;
	}
	return status;
}

/* Does a scan all of whose edges are looked for in the base, or listed. */
static inline uint32_t
gpu_scanner_scan_all_edges(GpuEngine *engine, GpuScanStream *stream, GpuGraph *graph,
						   const GpuStructure *tree, const GpudsView *view, GpuRequest *request)
{
	unsigned char *staging = (unsigned char *) engine->options.staging;
	const GpuEdges *edges = (const GpuEdges *) (staging + request->edges);
	uint32_t status;

	/* weights are not merged */
	if (graph->base != NULL && graph->weighted)
		return GPU_WITHDRAWN;
	if (graph->base != NULL && !gpu_graph_need_marks(graph, &stream->stream))
		return GPU_NO_MEMORY;
	if (graph->hidden.at() == NULL)
		(void) gpu_graph_take(graph, &graph->hidden, GPU_GRAPH_HIDDEN);
	graph->list.hidden = { graph->hidden.at(), graph->hidden.at() != NULL ? GPU_GRAPH_HIDDEN : 0, -1 };
	status = tree->scan(stream, view, staging, engine->device_staging, request);
	if (status == GPU_OK)
		gpu_graph_end_scan(graph, stream->noted, tree, view, edges, request->found <= request->cap);
	return status;
}

/* Does a scan whose entries become edges of the graph that its request names; its status. */
static inline uint32_t
gpu_scanner_scan_edges(GpuEngine *engine, GpuScanStream *stream, const GpuStructure *tree,
					   const GpudsView *view, GpuRequest *request)
{
	GpuGraph *graph = gpu_engine_graph(engine, request->owner);
	uint32_t status;
	bool done;

	if (graph == NULL || graph->ended || graph->nsent > 0 || graph->list.changes.done ||
		graph->weighted != gpu_request_edges(engine, request)->weighted)
		return GPU_WITHDRAWN;
	graph->tree = request->tree;
	stream->edges = &graph->list;
	status = gpu_scanner_scan_changes(engine, stream, graph, tree, view, request, &done);
	if (!done)
		status = gpu_scanner_scan_all_edges(engine, stream, graph, tree, view, request);
	stream->edges = NULL;
	request->same = graph->begun.structure == tree && graph->begun.serial == view->serial;
	return status;
}

#endif /* GPU_ENGINE_GRAPHS_H */
