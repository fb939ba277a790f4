/*-------------------------------------------------------------------------
 *
 * skiplist_apply_gpu.h
 *	  Applying a batch of operations to a skip list in device memory: the host's side.
 *
 * A batch is a round (skiplist_change_gpu.h), which is mostly all.  A small one is read from host memory,
 * takes two launches, and the host waits for it once; a larger one waits in between, to learn how many chunks
 * were replaced, for whose entries in the index there must be memory.
 *
 * Only operations that had to wait, because there were many on one chunk, are sorted.  Then those that
 * change nothing can be told, and the others are done in more rounds: first the deletes, of which a
 * chunk has no more than it has entries; then inserts, a few that are spread evenly among them
 * first, and in each round those in between, two for each that was there before.  So no chunk
 * has more than GPU_SKIPLIST_RUN of them in a round, wherever they are: there are as many rounds as a number
 * to the base 3 has digits.
 *
 * Without memory for an index the chunks that were replaced stay as they were, and what was changed in
 * place remains.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_APPLY_GPU_H
#define SKIPLIST_APPLY_GPU_H

#include "kernels/skiplist/skiplist_change_gpu.h"

/* Operations of a small batch, at most. */
#define GPU_SKIPLIST_SMALL 1024

/* Chunks of a level that a launch of its own is for, more than this; others are done by one block. */
#define GPU_SKIPLIST_BLOCK_LEVEL 2048

/* Evenly spread operations that a round begins with: two between each two entries of a chunk. */
#define GPU_SKIPLIST_SPREAD (2 * (GPU_SKIPLIST_PLACES + 1))

static_assert(sizeof(GpuSkiplistCounts) <= GPU_ZEROES_BYTES, "counts of a round are there");
static_assert(GPU_SKIPLIST_SPREAD + 1 <= GPU_SKIPLIST_RUN, "no operation of such a round has to wait");

/* What a round may touch, take and retire, at most. */
struct GpuSkiplistBounds
{
	uint64_t touched[GPU_SKIPLIST_MAX_HEIGHT];
	uint64_t all_touched;
	GpuDemand demand[GPU_SKIPLIST_KINDS];
};

/* Parts that so many chunks are divided into by so many new entries. */
static inline uint64_t
gpu_skiplist_most_parts(uint64_t chunks, uint64_t added)
{
	return ((GPU_SKIPLIST_PLACES + GPU_SKIPLIST_ROOMY - 1) * chunks + added) / GPU_SKIPLIST_ROOMY;
}

/* The bounds of the indexes, if so many chunks at most of level 1 are touched, and get so many entries. */
static inline void
gpu_skiplist_index_bounds(const GpuSkiplist *s, uint64_t touched, uint64_t added, GpuSkiplistBounds *b)
{
	GpuDemand *demand = &b->demand[GPU_SKIPLIST_INDEXES];

	/* a version's table */
	*demand = { 1, 1 };
	for (int level = 1; level < s->levels; level++)
	{
		touched = touched < s->level_n[level] ? touched : s->level_n[level];
		b->touched[level] = touched;
		added = gpu_skiplist_most_parts(touched, added);
		/* and what is made by joining */
		demand->take += added + touched;
		demand->retire += 3 * touched;
	}
	/* levels that come, and roots that go */
	demand->take += gpu_skiplist_index_chunks(added, GPU_SKIPLIST_ROOMY);
	demand->retire += (uint64_t) s->levels;
}

static inline void
gpu_skiplist_bounds(const GpuSkiplist *s, uint64_t n, GpuSkiplistBounds *b)
{
	uint64_t touched = n < s->level_n[0] ? n : s->level_n[0];
	uint64_t parts = gpu_skiplist_most_parts(touched, n);

	b->touched[0] = touched;
	b->demand[GPU_SKIPLIST_CHUNKS] = { parts + touched, 3 * touched };
	gpu_skiplist_index_bounds(s, touched, parts + touched, b);
	b->all_touched = 0;
	for (int level = 0; level < s->levels; level++)
		b->all_touched += b->touched[level];
}

/* Working memory of a round; low bounds of index chunks come later in a large one. */
template <int nw>
static inline void
gpu_skiplist_round_layout(GpuScratch *scratch, GpuSkiplistRound<nw> *r, int64_t n, const GpuSkiplistBounds &b,
						  int height)
{
	r->copies = NULL;
	if (n <= GPU_SKIPLIST_SMALL)
		r->copies = gpu_scratch<GpudsOp>(scratch, n);
	r->next = gpu_scratch<uint32_t>(scratch, n);
	r->touched = gpu_scratch<GpuSkiplistTouched>(scratch, (int64_t) b.all_touched);
	r->path = gpu_scratch<GpuRef>(scratch, (int64_t) b.touched[0] * height);
	r->last = gpu_scratch<uint32_t>(scratch, (int64_t) b.touched[0]);
	r->low[GPU_SKIPLIST_CHUNKS] = gpu_scratch<GpudsEntry>(scratch, r->limit[GPU_SKIPLIST_CHUNKS]);
	r->low[GPU_SKIPLIST_INDEXES] = gpu_scratch<GpudsEntry>(scratch, r->limit[GPU_SKIPLIST_INDEXES]);
}

/* Device memory for small batches. */
static inline size_t
gpu_skiplist_small_bytes()
{
	GpuScratch scratch = { NULL, 0 };
	GpuSkiplistRound<1> r;
	GpuSkiplistBounds b;
	GpuSkiplist s;

	s.levels = GPU_SKIPLIST_MAX_HEIGHT;
	for (int level = 0; level < s.levels; level++)
		s.level_n[level] = UINT32_MAX;
	gpu_skiplist_bounds(&s, GPU_SKIPLIST_SMALL, &b);
	for (int kind = 0; kind < GPU_SKIPLIST_KINDS; kind++)
		r.limit[kind] = (uint32_t) b.demand[kind].take;
	gpu_skiplist_round_layout(&scratch, &r, GPU_SKIPLIST_SMALL, b, s.levels);
	return scratch.used_bytes;
}

/*
 * Kernels
 */

template <int nw> struct GpuSkiplistFind
{
	GpuSkiplistRound<nw> r;

	GPU_FN void operator()(int64_t i) const
	{
		r.find(i);
	}
};

/* Whole warps call it. */
template <int nw> struct GpuSkiplistLeaf
{
	GpuSkiplistRound<nw> r;

	GPU_FN void operator()(int64_t i) const
	{
		uint32_t inserted = 0;
		uint32_t deleted = 0;

		if (i < r.counts->touched[0])
			r.leaf((uint32_t) i, &inserted, &deleted);
		gpu_warp_add(&r.counts->inserted, inserted);
		gpu_warp_add(&r.counts->deleted, deleted);
	}
};

template <int nw> struct GpuSkiplistIndex
{
	GpuSkiplistRound<nw> r;
	int level;

	GPU_FN void operator()(int64_t i) const
	{
		if (i < r.counts->touched[level])
			r.index(r.from[level] + (uint32_t) i, level);
	}
};

/* The upper levels, and what remains to be done, by one block. */
template <int nw> struct GpuSkiplistFinish
{
	GpuSkiplistRound<nw> r;
	int level; /* the first that is to be done */
	GpuRef old;
	GpuSkiplistReport *report;

	GPU_FN void operator()(GpuBlock &block) const
	{
		for (int at = level; at < r.view.height; at++)
		{
			const volatile uint32_t *touched = &r.counts->touched[at];

			block.each(*touched, [&](int64_t i) { r.index(r.from[at] + (uint32_t) i, at); });
		}
		r.end(block, old, report);
	}
};

/* All of that by a cluster: what comes after the finding in a small round. */
template <int nw> struct GpuSkiplistSmall
{
	GpuSkiplistRound<nw> r;
	GpuRef old;
	GpuSkiplistReport *report;

	GPU_FN uint32_t touched(int level) const
	{
		return *(const volatile uint32_t *) &r.counts->touched[level];
	}

	GPU_FN void operator()(GpuCluster &cluster) const
	{
		const GpuSkiplistLeaf<nw> leaf = { r };

		cluster.each_in_warps(touched(0), leaf);
		for (int level = 1; level < r.view.height && touched(level) > 0; level++)
			cluster.each(touched(level), [&](int64_t i) { r.index(r.from[level] + (uint32_t) i, level); });
		if (gpu_cluster_thread() < gpu_block_threads())
		{
			GpuBlock block = { NULL, NULL };

			r.end(block, old, report);
		}
	}
};

/* Takes a round back of which level 0 is done. */
template <int nw> struct GpuSkiplistUndo
{
	GpuSkiplistRound<nw> r;

	GPU_FN void operator()(int64_t i) const
	{
		if (i < r.counts->touched[0])
			r.undo(i);
		if (r.view.height > 1 && i < r.counts->touched[1])
			gpu_skiplist_notes(r.chunk(r.touched[r.from[1] + (uint32_t) i].ref), true)->head = 0;
	}
};

/* A first chunk, without entries: the node on top of the stack. */
struct GpuSkiplistMakeRoot
{
	unsigned char *base;
	const GpuRef *top;
	GpuSkiplistReport *report;

	GPU_FN void operator()(int64_t) const
	{
		/* no version is older than its pairs, and none needs them */
		gpu_skiplist_make(gpu_skiplist_chunk(base, *top), 0, 0, false);
		report->root = *top;
	}
};

/*
 * Rounds
 */

static inline GpuStatus
gpu_skiplist_need_root(GpuChange *c, GpuSkiplist *s)
{
	GpuNodes *nodes = gpu_skiplist_nodes(s, GPU_SKIPLIST_CHUNKS);
	GpuDemand demand[GPU_SKIPLIST_KINDS] = { { 1, 0 }, { 0, 0 } };

	if (s->levels > 0)
		return GPU_OK;
	if (!gpu_space_reserve(c, &s->space, demand))
		return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
	gpu_launch(&c->stream, 1,
			   GpuSkiplistMakeRoot{ c->pool->base, nodes->free.at + nodes->nfree - 1,
									(GpuSkiplistReport *) c->device_report });
	if (!gpu_finish(&c->stream))
		return gpu_change_status(c);
	gpu_nodes_take(nodes, 1);
	s->top = gpu_skiplist_report(c)->root;
	s->levels = 1;
	s->level_n[0] = 1;
	return GPU_OK;
}

/* What an apply has come to. */
struct GpuSkiplistSum
{
	int64_t inserted;
	int64_t deleted;
	uint32_t waiting; /* chunks whose operations wait */
};

/* Where a round finds the nodes that it may take, and puts retired ones; those are reserved. */
template <int nw>
static inline void
gpu_skiplist_round_nodes(GpuSkiplist *s, GpuSkiplistRound<nw> *r, int kind, const GpuDemand &demand)
{
	const GpuNodes *nodes = gpu_skiplist_nodes(s, kind);

	r->top[kind] = nodes->free.at + nodes->nfree - 1;
	r->retired[kind] = nodes->retired.at + nodes->retired_to;
	r->limit[kind] = (uint32_t) demand.take;
	if (kind == GPU_SKIPLIST_INDEXES && demand.take > 0)
	{
		/* the first one is for what the version consists of */
		r->table = r->top[kind]--;
		r->old_table = r->retired[kind];
		r->retired[kind] += s->root != 0;
		r->limit[kind]--;
	}
}

template <int nw>
static inline void
gpu_skiplist_round_init(GpuChange *c, GpuSkiplist *s, GpuSkiplistRound<nw> *r, const GpuSkiplistBounds &b)
{
	uint32_t from = 0;

	r->base = c->pool->base;
	r->view = gpu_skiplist_newest(c, s);
	r->stamp = s->version + 1;
	r->oldest = s->oldest;
	for (int level = 0; level < s->levels; level++)
	{
		r->from[level] = from;
		from += (uint32_t) b.touched[level];
	}
	r->counts = (GpuSkiplistCounts *) c->zeroes;
}

/* The device is through with a round: what has come of it is a draft of the next version. */
static inline void
gpu_skiplist_round_end(GpuSkiplist *s, const GpuSkiplistReport *report, GpuSkiplistSum *sum)
{
	const GpuSkiplistCounts *counts = &report->counts;

	sum->inserted += counts->inserted;
	sum->deleted += counts->deleted;
	sum->waiting += counts->waiting;
	if (counts->inserted == 0 && counts->deleted == 0)
		return;
	for (int kind = 0; kind < GPU_SKIPLIST_KINDS; kind++)
	{
		uint32_t taken = counts->short_at[kind] != 0 ? ~counts->short_at[kind] : counts->taken[kind];
		uint32_t retired = counts->retired[kind];

		if (kind == GPU_SKIPLIST_INDEXES)
		{
			taken++;
			retired += s->root != 0;
		}
		gpu_nodes_take(gpu_skiplist_nodes(s, kind), taken);
		gpu_nodes_retire(gpu_skiplist_nodes(s, kind), retired);
	}
	for (int level = 0; level < GPU_SKIPLIST_MAX_HEIGHT; level++)
		s->level_n[level] += counts->level_add[level];
	s->top = report->root;
	s->levels = report->height;
	s->root = report->table;
	s->draft = true;
}

/* Waits for the end of a round, of which the last launch is under way. */
static inline GpuStatus
gpu_skiplist_round_wait(GpuChange *c, GpuSkiplist *s, GpuSkiplistSum *sum)
{
	if (gpu_change_ok(c))
		gpu_report_wait(c);
	if (gpu_change_ok(c) && gpu_skiplist_report(c)->counts.failed != 0)
		gpu_fail(&c->stream, "skip list", "no node for an index");
	if (gpu_change_ok(c))
		gpu_skiplist_round_end(s, gpu_skiplist_report(c), sum);
	return gpu_change_status(c);
}

/* The steps of a round that come after level 0. */
template <int nw>
static inline GpuStatus
gpu_skiplist_round_finish(GpuChange *c, GpuSkiplist *s, const GpuSkiplistRound<nw> &r,
						  const GpuSkiplistBounds &b, GpuSkiplistSum *sum)
{
	GpuSkiplistReport *report = (GpuSkiplistReport *) c->device_report;
	uint64_t most = 32;
	int level = 1;

	gpu_report(c)->done = 0;
	for (; level < s->levels && b.touched[level] > GPU_SKIPLIST_BLOCK_LEVEL; level++)
		gpu_launch<64>(&c->stream, (int64_t) b.touched[level], GpuSkiplistIndex<nw>{ r, level });
	for (int at = level; at < s->levels; at++)
		most = b.touched[at] > most ? b.touched[at] : most;
	most = (most + 31) / 32 * 32;
	gpu_launch_block(&c->stream, GpuSkiplistFinish<nw>{ r, level, s->root, report },
					 most < GPU_BLOCK_THREADS ? (int) most : GPU_BLOCK_THREADS, 0);
	return gpu_skiplist_round_wait(c, s, sum);
}

/* The steps of a small round that come after the finding. */
template <int nw>
static inline GpuStatus
gpu_skiplist_round_small(GpuChange *c, GpuSkiplist *s, const GpuSkiplistRound<nw> &r,
						 const GpuSkiplistBounds &b, GpuSkiplistSum *sum)
{
	gpu_report(c)->done = 0;
	gpu_launch_cluster(&c->stream, (int64_t) b.touched[0],
					   GpuSkiplistSmall<nw>{ r, s->root, (GpuSkiplistReport *) c->device_report });
	return gpu_skiplist_round_wait(c, s, sum);
}

/*
 * The second half of a round for which not all memory was there: the indexes.  Without memory for them the
 * round is taken back.
 */
template <int nw>
static inline GpuStatus
gpu_skiplist_round_indexes(GpuChange *c, GpuSkiplist *s, GpuSkiplistRound<nw> *r, GpuSkiplistBounds *b,
						   GpuSkiplistSum *sum)
{
	const GpuSkiplistCounts *counts = &gpu_skiplist_report(c)->counts;
	const uint64_t touched = s->levels > 1 ? counts->touched[1] : 0;
	const uint32_t pieces = counts->short_at[0] != 0 ? ~counts->short_at[0] : counts->taken[0];
	GpuDemand demand[GPU_SKIPLIST_KINDS] = {};
	GpuStatus status;
	GpuSpan span;
	bool room;

	gpu_skiplist_index_bounds(s, touched, pieces, b);
	demand[GPU_SKIPLIST_INDEXES] = b->demand[GPU_SKIPLIST_INDEXES];
	room = gpu_span_take(c->pool, &span, demand[GPU_SKIPLIST_INDEXES].take * sizeof(GpudsEntry)) &&
		   gpu_space_reserve(c, &s->space, demand);
	if (!room)
	{
		gpu_launch(&c->stream, (int64_t) b->touched[0], GpuSkiplistUndo<nw>{ *r });
		gpu_fill(&c->stream, r->counts, 0, sizeof(GpuSkiplistCounts));
		gpu_finish(&c->stream);
		gpu_span_give(c->pool, &span);
		return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
	}
	r->low[GPU_SKIPLIST_INDEXES] = (GpudsEntry *) span.at;
	gpu_skiplist_round_nodes(s, r, GPU_SKIPLIST_INDEXES, demand[GPU_SKIPLIST_INDEXES]);
	status = gpu_skiplist_round_finish(c, s, *r, *b, sum);
	gpu_change_give(c, &span);
	return status;
}

/*
 * A round.  If it is to be done at once, all memory that it may need is there before, so that none of its
 * operations has to wait for some.  GPU_NO_MEMORY: it was not done at all.
 */
template <int nw>
static inline GpuStatus
gpu_skiplist_round(GpuChange *c, GpuSkiplist *s, const GpuSkiplistSource &source, int64_t n, bool at_once,
				   GpuSkiplistSum *sum)
{
	GpuScratch scratch = { NULL, 0 };
	GpuSkiplistRound<nw> r;
	GpuSkiplistBounds b;
	GpuDemand *demand = &b.demand[GPU_SKIPLIST_CHUNKS];
	uint64_t likely = (uint64_t) n / 3;
	GpuStatus status;
	GpuSpan span;

	gpu_skiplist_bounds(s, (uint64_t) n, &b);
	if (!at_once)
	{
		/* most operations need no new chunk; those that find none are done again */
		likely = (b.touched[0] / 2 > likely ? b.touched[0] / 2 : likely) + GPU_SKIPLIST_SMALL;
		demand->take = likely < demand->take ? likely : demand->take;
		b.demand[GPU_SKIPLIST_INDEXES] = { 0, 0 };
	}
	if (b.demand[0].take > UINT32_MAX || b.demand[1].take > UINT32_MAX ||
		!gpu_space_reserve(c, &s->space, b.demand))
		return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
	for (int kind = 0; kind < GPU_SKIPLIST_KINDS; kind++)
		gpu_skiplist_round_nodes(s, &r, kind, b.demand[kind]);
	gpu_skiplist_round_layout(&scratch, &r, n, b, s->levels);
	if (scratch.used_bytes <= c->memory_bytes)
		scratch = { c->memory, 0 };
	else if (!gpu_scratch_take(c->pool, &span, &scratch))
		return GPU_NO_MEMORY;
	gpu_skiplist_round_layout(&scratch, &r, n, b, s->levels);
	gpu_skiplist_round_init(c, s, &r, b);
	r.source = source;
	if (at_once && n <= GPU_SKIPLIST_SMALL)
	{
		gpu_launch<32>(&c->stream, n, GpuSkiplistFind<nw>{ r });
		status = gpu_skiplist_round_small<nw>(c, s, r, b, sum);
		gpu_change_give(c, &span);
		return status;
	}
	gpu_launch<64>(&c->stream, n, GpuSkiplistFind<nw>{ r });
	gpu_launch<64>(&c->stream, ((int64_t) b.touched[0] + 63) / 64 * 64, GpuSkiplistLeaf<nw>{ r });
	if (at_once)
		status = gpu_skiplist_round_finish(c, s, r, b, sum);
	else
	{
		gpu_copy_bus(&c->stream, &gpu_skiplist_report(c)->counts, r.counts, sizeof(GpuSkiplistCounts));
		status = gpu_finish(&c->stream) ? gpu_skiplist_round_indexes<nw>(c, s, &r, &b, sum)
										: gpu_change_status(c);
	}
	gpu_change_give(c, &span);
	return status;
}

/*
 * Operations that wait.
 */

/* The chunk of level 0 that has an entry. */
template <int nw>
GPU_FN uint64_t *
gpu_skiplist_chunk_of(const GpuSkiplistView &view, const GpudsEntry &e, uint64_t *order)
{
	GpuSkiplistPosition p;

	gpu_skiplist_descend(view, e, &p, nw);
	*order = p.order;
	return gpu_skiplist_chunk(view.base, p.ref);
}

/* Finds operations that wait; with out, copies them. */
template <int nw> struct GpuSkiplistCollect
{
	GpuSkiplistView view;
	const GpudsOp *ops;
	GpudsOp *out;
	uint32_t *n;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsOp op = ops[i];
		uint64_t order;
		uint32_t at;

		if (gpu_skiplist_notes(gpu_skiplist_chunk_of<nw>(view, op.e, &order), false)->waits == 0)
			return;
		at = gpu_atomic_add(n, 1);
		if (out)
			out[at] = op;
	}
};

/* No operation waits any more. */
template <int nw> struct GpuSkiplistWaitNoMore
{
	GpuSkiplistView view;
	const GpudsOp *ops;

	GPU_FN void operator()(int64_t i) const
	{
		GpudsOp op = ops[i];
		uint64_t order;

		gpu_skiplist_notes(gpu_skiplist_chunk_of<nw>(view, op.e, &order), false)->waits = 0;
	}
};

/* Of sorted operations, those that change something: deletes and inserts apart. */
template <int nw> struct GpuSkiplistEffects
{
	GpuSkiplistView view;
	const GpudsOp *ops;
	const uint32_t *number; /* NULL: they are in order as they are */
	int64_t n;
	uint32_t *place[2]; /* of inserts and deletes, and one more: how many are before */
	GpudsOp *out[2];    /* NULL: they are to be found */

	GPU_FN GpudsOp op(int64_t i) const
	{
		return ops[number ? number[i] : i];
	}

	GPU_FN bool effective(int64_t i) const
	{
		GpudsOp o = op(i);
		const uint64_t *chunk;
		uint64_t order;
		int rank;

		if (i > 0)
		{
			GpudsOp before = op(i - 1);

			/* the one before it has the last word */
			if (entry_equal(&before.e, &o.e))
				return false;
		}
		chunk = gpu_skiplist_chunk_of<nw>(view, o.e, &order);
		rank = gpu_skiplist_rank(chunk, order, o.e, false, false, nw);
		if (rank < gpu_skiplist_n(order))
		{
			GpudsEntry e = gpu_skiplist_entry(chunk, gpu_skiplist_slot(order, rank), false, nw);

			if (entry_equal(&e, &o.e))
				return (o.order & GPUDS_OP_DELETE) != 0;
		}
		return (o.order & GPUDS_OP_DELETE) == 0;
	}

	GPU_FN void operator()(int64_t i) const
	{
		bool counts = out[0] == NULL && i < n && effective(i);

		for (uint64_t deletes = 0; deletes < 2; deletes++)
		{
			if (out[0] == NULL)
			{
				bool mine = false;

				if (counts)
				{
					GpudsOp o = op(i);

					mine = (o.order & GPUDS_OP_DELETE) == deletes;
				}
				place[deletes][i] = mine;
			}
			else if (i < n && place[deletes][i] != place[deletes][i + 1])
				out[deletes][place[deletes][i]] = op(i);
		}
	}
};

/* Does operations that change something, each on another entry. */
template <int nw>
static inline GpuStatus
gpu_skiplist_rounds(GpuChange *c, GpuSkiplist *s, const GpudsOp *inserts, int64_t ninserts,
					const GpudsOp *deletes, int64_t ndeletes, GpuSkiplistSum *sum)
{
	GpuStatus status = GPU_OK;
	int64_t stride = 1;

	if (ndeletes > 0)
		status = gpu_skiplist_round<nw>(c, s, { deletes, 1, false }, ndeletes, true, sum);
	while (ninserts / stride > GPU_SKIPLIST_SPREAD)
		stride *= 3;
	for (bool between = false; stride > 0 && ninserts > 0 && status == GPU_OK; between = true, stride /= 3)
	{
		int64_t most = (ninserts - 1) / stride;
		int64_t n = between ? most - most / 3 : most + 1;

		status = gpu_skiplist_need_root(c, s);
		if (status == GPU_OK && n > 0)
			status = gpu_skiplist_round<nw>(c, s, { inserts, stride, between }, n, true, sum);
	}
	if (status == GPU_OK && sum->waiting != 0)
	{
		gpu_fail(&c->stream, "skip list", "operations were left undone");
		status = gpu_change_status(c);
	}
	return status;
}

/* Working memory for sorting operations that wait. */
struct GpuSkiplistRest
{
	GpudsOp *ops;
	GpudsOp *out[2];
	uint32_t *place[2];
	GpuSort sort;
};

static inline void
gpu_skiplist_rest_layout(GpuScratch *scratch, GpuSkiplistRest *rest, GpuChange *c, int64_t n)
{
	rest->ops = gpu_scratch<GpudsOp>(scratch, n);
	for (int i = 0; i < 2; i++)
	{
		rest->out[i] = gpu_scratch<GpudsOp>(scratch, n);
		rest->place[i] = gpu_scratch<uint32_t>(scratch, n + 1);
	}
	gpu_sort_layout(scratch, &rest->sort, n);
	gpu_scratch_temp(scratch, &c->stream, n + 1);
}

/* Sorts operations, finds out which of them change something, and does them. */
template <int nw>
static inline GpuStatus
gpu_skiplist_apply_sorted(GpuChange *c, GpuSkiplist *s, GpuSkiplistRest *rest, int64_t n, GpuSkiplistSum *sum)
{
	GpuShape *shape = &gpu_report(c)->shape;
	GpuSkiplistReport *report = gpu_skiplist_report(c);
	GpuStream *stream = &c->stream;
	GpuSkiplistEffects<nw> effects;

	effects.number = gpu_sort_batch(stream, &rest->sort, rest->ops, n, shape);
	gpu_copy_bus(stream, shape, rest->sort.shape, sizeof(GpuShape));
	if (gpu_finish(stream) && shape->long_tie)
		effects.number = gpu_sort_batch_by_words(stream, &rest->sort, rest->ops, n, shape);
	effects.view = gpu_skiplist_newest(c, s);
	effects.ops = rest->ops;
	effects.n = n;
	effects.out[0] = effects.out[1] = NULL;
	for (int i = 0; i < 2; i++)
		effects.place[i] = rest->place[i];
	gpu_launch(stream, n + 1, effects);
	for (int i = 0; i < 2; i++)
	{
		gpu_exclusive_sum(stream, rest->place[i], rest->place[i], n + 1);
		gpu_copy_bus(stream, &report->n[i], rest->place[i] + n, sizeof(uint32_t));
		effects.out[i] = rest->out[i];
	}
	gpu_launch(stream, n + 1, effects);
	if (!gpu_finish(stream))
		return gpu_change_status(c);
	return gpu_skiplist_rounds<nw>(c, s, rest->out[0], report->n[0], rest->out[1], report->n[1], sum);
}

/* How many of some operations wait; with out, copies them there. */
template <int nw>
static inline int64_t
gpu_skiplist_collect(GpuChange *c, GpuSkiplist *s, const GpudsOp *ops, int64_t n, GpudsOp *out)
{
	uint32_t *count = (uint32_t *) c->memory;

	gpu_fill(&c->stream, count, 0, sizeof(uint32_t));
	gpu_launch(&c->stream, n, GpuSkiplistCollect<nw>{ gpu_skiplist_newest(c, s), ops, out, count });
	gpu_copy_bus(&c->stream, &gpu_skiplist_report(c)->n[0], count, sizeof(uint32_t));
	return gpu_finish(&c->stream) ? gpu_skiplist_report(c)->n[0] : 0;
}

/* Does those of a batch that had to wait; also if they cannot be done, they do not wait any more. */
template <int nw>
static inline GpuStatus
gpu_skiplist_apply_rest(GpuChange *c, GpuSkiplist *s, const GpudsOp *ops, int64_t n, GpuSkiplistSum *sum)
{
	GpuScratch scratch = { NULL, 0 };
	int64_t waiting = gpu_skiplist_collect<nw>(c, s, ops, n, NULL);
	GpuSkiplistRest rest;
	GpuStatus status;
	GpuSpan span;
	bool there;

	gpu_skiplist_rest_layout(&scratch, &rest, c, waiting);
	there = gpu_change_ok(c) && gpu_scratch_take(c->pool, &span, &scratch);
	if (there)
	{
		gpu_skiplist_rest_layout(&scratch, &rest, c, waiting);
		(void) gpu_skiplist_collect<nw>(c, s, ops, n, rest.ops);
	}
	gpu_launch(&c->stream, n, GpuSkiplistWaitNoMore<nw>{ gpu_skiplist_newest(c, s), ops });
	if (!there)
	{
		gpu_finish(&c->stream);
		return gpu_change_ok(c) ? GPU_NO_MEMORY : gpu_change_status(c);
	}
	sum->waiting = 0;
	status = gpu_skiplist_apply_sorted<nw>(c, s, &rest, waiting, sum);
	gpu_change_give(c, &span);
	return status;
}

/* Applies operations that the device can read, in any order. */
template <int nw>
static inline GpuStatus
gpu_skiplist_apply_there(GpuChange *c, GpuSkiplist *s, const GpudsOp *ops, int64_t n, GpuSkiplistSum *sum)
{
	GpuStatus status = gpu_skiplist_need_root(c, s);

	if (status != GPU_OK)
		return status;
	status = gpu_skiplist_round<nw>(c, s, { ops, 1, false }, n, n <= GPU_SKIPLIST_SMALL, sum);
	if (status == GPU_OK && sum->waiting != 0)
		status = gpu_skiplist_apply_rest<nw>(c, s, ops, n, sum);
	/* what was done of it, if that is not all */
	if (gpu_change_ok(c) && s->draft)
	{
		gpu_skiplist_publish(s, s->entries.load() + (uint64_t) (sum->inserted - sum->deleted));
		gpu_space_note(&s->space, s->version);
	}
	return gpu_change_ok(c) ? status : gpu_change_status(c);
}

/* Would a batch make the list too large? */
static inline bool
gpu_skiplist_too_large(const GpuSkiplist *s, const GpudsOp *ops, int64_t n)
{
	uint64_t entries = s->entries.load();

	if (entries + (uint64_t) n <= GPU_MAX_ENTRIES)
		return false;
	for (int64_t i = 0; i < n; i++)
		entries += (ops[i].order & GPUDS_OP_DELETE) == 0;
	return entries > GPU_MAX_ENTRIES;
}

/*
 * Applies operations in any order: of several on one entry the one of the highest order counts.  They are in
 * host memory that the device can use, at ops, which the device sees at there.  GPU_TOO_LARGE: nothing was
 * changed.  GPU_NO_MEMORY: some have been applied, and all may be applied again.
 */
static inline GpuStatus
gpu_skiplist_apply(GpuChange *c, GpuSkiplist *s, const GpudsOp *ops, const GpudsOp *there, int64_t n,
				   int64_t *inserted, int64_t *deleted)
{
	GpuSkiplistSum sum = { 0, 0, 0 };
	GpuSpan span;
	GpuStatus status;

	*inserted = *deleted = 0;
	if (n <= 0)
		return gpu_change_status(c);
	if (n >= GPU_MAX_ITEMS)
		return GPU_NO_MEMORY;
	if (gpu_skiplist_too_large(s, ops, n))
		return GPU_TOO_LARGE;
	if (n > GPU_SKIPLIST_SMALL)
	{
		if (!gpu_span_take(c->pool, &span, (size_t) n * sizeof(GpudsOp)))
			return GPU_NO_MEMORY;
		gpu_copy_bus(&c->stream, span.at, ops, (size_t) n * sizeof(GpudsOp));
		there = (const GpudsOp *) span.at;
	}
	else
		c->stream.bus_bytes += (uint64_t) n * sizeof(GpudsOp);
	status = s->nwords == 1 ? gpu_skiplist_apply_there<1>(c, s, there, n, &sum)
							: gpu_skiplist_apply_there<2>(c, s, there, n, &sum);
	gpu_change_give(c, &span);
	gpu_rest(&s->compact_rest, (uint64_t) (sum.inserted + sum.deleted));
	s->changes += (uint64_t) (sum.inserted + sum.deleted);
	*inserted = sum.inserted;
	*deleted = sum.deleted;
	return status;
}

#endif /* SKIPLIST_APPLY_GPU_H */
