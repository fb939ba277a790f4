/*-------------------------------------------------------------------------
 *
 * gpu_kept_graph.cu
 *	  Graphs that the engine keeps, as bases of others, beside changes of their tree: each graph has the edges
 *	  that a plain search finds in the same entries, whatever has come, gone, or been hidden since the base
 *	  was made.  TIDs are used again, edges are there several times, snapshots differ, trees are dropped and
 *	  loaded anew, and owners hold graphs for long.  Sometimes a change is under way while edges are read, and
 *	  sometimes there is no memory for one of the arrays: a graph is made without it, or not at all.
 *
 *	  usage: gpu_kept_graph [small | rounds [seed]]
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "common.h"
#include "kernels/engine/engine.cu"

#define PIECE ((size_t) 256 << 10)
#define PATIENCE_NS UINT64_C(60000000000)
#define STEPS 400 /* of one layout */
#define SMALL_STEPS 60
#define OWNERS 3
#define PAGES 40
#define PAGE_ROWS 12

struct Less
{
	bool operator()(const GpudsEntry &a, const GpudsEntry &b) const
	{
		return entry_less(&a, &b);
	}
};

typedef std::set<GpudsEntry, Less> Entries;

/* An edge; where weights do not matter, its weight is 0. */
struct Edge
{
	uint64_t first;
	uint64_t second;
	uint64_t weight = 0;

	bool operator<(const Edge &other) const
	{
		return std::tie(first, second, weight) < std::tie(other.first, other.second, other.weight);
	}
};

typedef std::set<Edge> Edges;
typedef std::map<uint64_t, std::set<uint64_t>> Lists;

struct Staging
{
	GpuRequest change;
	GpuRequest request;
	GpuEdges edges;
	unsigned char input[PIECE];
	unsigned char output[PIECE];
	unsigned char changes[PIECE];
	unsigned char map[PAGES / 4 + 1];
	uint32_t places[64];
	uint32_t pages[PAGES][2];
};

/* A session: what its graph may have, as far as is known. */
struct Owner
{
	bool has = false;
	bool both;
	bool weighted = false;
	std::vector<Edges> may_be;
};

static const GpuEngineApi *api;
static GpuEngine *engine;
static Staging *staging;
static Entries entries;
static Owner owner[OWNERS];
static int nw;
static AggColumn column[3]; /* source, target, weight */
static uint64_t odd;        /* one of so many entries has a weight that no path can have; 0: none has */
static int64_t given = -1;  /* the weight of an entry that is made; -1: any */
static PageRow row[PAGES][PAGE_ROWS];
static bool visible[PAGES];
static bool known[PAGES];
static int64_t passed = 0;
static int64_t by_changes = 0;
static int64_t based = 0;
static int64_t given_up = 0;
static int64_t routes = 0;
static int64_t laid_over = 0;

static uint64_t
offset(const void *p)
{
	return (uint64_t) ((const unsigned char *) p - (const unsigned char *) staging);
}

static void
await(const GpuRequest *r)
{
	char why[200];

	while (__atomic_load_n(&r->done, __ATOMIC_ACQUIRE) != 1)
	{
		api->poll(engine);
		CHECK(!api->lost(engine, why, sizeof(why)));
	}
}

/* Of weights: bits, and the code of 0. */
#define WEIGHT_BITS 5
#define WEIGHT_ZERO 16

/* Columns of a layout: two of 16 bits and others behind them, two of 32 bits, or two of 64; and a weight. */
static void
set_layout(int layout)
{
	const int bits[] = { 16, 32, 64 };

	nw = layout == 2 ? 2 : 1;
	for (int k = 0; k < 3; k++)
	{
		const int top = 64 * nw + ENTRY_SPILL_BITS - k * (bits[layout] + 1);
		const int its = k == 2 ? WEIGHT_BITS : bits[layout];

		column[k] = {};
		column[k].kind = AGG_COLUMN_INTEGER;
		column[k].bits = (uint8_t) its;
		column[k].null_place = (uint8_t) (top - 1);
		column[k].place = (uint8_t) (top - 1 - its);
		column[k].null_bit = (uint8_t) test_below(2);
		column[k].flip = test_below(2) ? UINT64_MAX >> (64 - its) : 0;
	}
}

static void
put_bit(GpudsEntry *e, int place, uint64_t bit)
{
	const int at = place - ENTRY_SPILL_BITS;

	if (at < 0)
		e->t |= bit << place << ENTRY_SPILL_SHIFT;
	else if (nw == 1 || at >= 64)
		e->w0 |= bit << at % 64;
	else
		e->w1 |= bit << at;
}

/* A weight that few others have, or, seldom, none. */
static void
put_weight(GpudsEntry *e)
{
	const bool is_odd = odd > 0 && test_below(odd) == 0;
	const bool null = is_odd && test_below(2);
	const uint64_t weight = given >= 0 ? (uint64_t) given : test_below(3) * test_below(4);
	const uint64_t code = is_odd ? test_below(WEIGHT_ZERO) : WEIGHT_ZERO + weight;
	const uint64_t bits = code ^ column[2].flip;

	for (int i = 0; i < WEIGHT_BITS && !null; i++)
		put_bit(e, column[2].place + i, bits >> i & 1);
	put_bit(e, column[2].null_place, null == (column[2].null_bit == 1));
}

/* An entry of an edge; null: one of the vertices is. */
static GpudsEntry
make_entry(uint64_t source, uint64_t target, int null, uint64_t tid)
{
	GpudsEntry e = { 0, 0, tid };

	for (int k = 0; k < 2; k++)
	{
		const uint64_t bits = (k == 0 ? source : target) ^ column[k].flip;

		for (int i = 0; i < column[k].bits && null != k; i++)
			put_bit(&e, column[k].place + i, bits >> i & 1);
		put_bit(&e, column[k].null_place, (null == k) == (column[k].null_bit == 1));
	}
	if (column[1].bits == 16)
		put_bit(&e, 3 + (int) test_below(20), test_below(2));
	put_weight(&e);
	return e;
}

static uint64_t
random_vertex(void)
{
	const uint64_t number = test_below(6) * test_below(20);

	return column[0].bits == 64 && test_below(2) ? UINT64_MAX - number : number;
}

static GpudsEntry
random_entry(void)
{
	const uint64_t tid = test_below(PAGES) << 16 | (1 + test_below(PAGE_ROWS + 1));

	return make_entry(random_vertex(), random_vertex(), test_below(20) == 0 ? (int) test_below(2) : 2, tid);
}

static PageRow
row_of(const GpudsEntry &e)
{
	const uint64_t tid = e.t & ENTRY_TID_MASK;
	const uint64_t at = (tid & 0xFFFF) - 1;

	if (visible[tid >> 16])
		return PAGE_ROW_SEEN;
	return known[tid >> 16] && at < PAGE_ROWS ? row[tid >> 16][at] : PAGE_ROW_UNKNOWN;
}

/* Another snapshot; little: one that differs little. */
static void
change_rows(uint64_t part)
{
	for (int p = 0; p < PAGES; p++)
	{
		if (test_below(part) == 0)
			visible[p] = test_below(2);
		if (test_below(part) == 0)
			known[p] = test_below(8) > 0;
		for (int i = 0; i < PAGE_ROWS; i++)
		{
			if (test_below(part) == 0)
				row[p][i] = test_below(6) > 0 ? PAGE_ROW_SEEN : (PageRow) test_below(4);
		}
	}
}

/* Rows that everybody sees, as VACUUM leaves them */
static void
see_all(void)
{
	for (int p = 0; p < PAGES; p++)
		visible[p] = true;
}

static void
tell_rows(GpuRequest *r)
{
	uint32_t npages = 0;

	memset(staging->map, 0, sizeof(staging->map));
	memset(staging->places, 0, sizeof(staging->places));
	for (int p = 0; p < PAGES; p++)
	{
		if (visible[p])
			staging->map[p / 4] |= (unsigned char) (1 << p % 4 * 2);
		if (!known[p])
			continue;
		staging->pages[npages][0] = (uint32_t) p + 1;
		staging->pages[npages][1] = 0;
		for (int i = 0; i < PAGE_ROWS; i++)
			staging->pages[npages][1] |= (uint32_t) row[p][i] << 2 * i;
		staging->places[p] = ++npages;
	}
	r->map = offset(staging->map);
	r->map_bytes = sizeof(staging->map);
	r->row_places = offset(staging->places);
	r->row_pages = offset(staging->pages);
	r->row_slots = 64;
	r->row_words = 1;
	r->row_npages = npages;
}

static void
submit_change(GpuRequestKind kind, int64_t n)
{
	GpuRequest *r = &staging->change;

	memset((void *) r, 0, sizeof(*r));
	r->kind = kind;
	r->structure = test_below(2) ? GPUDS_STRUCTURE_BTREE : GPUDS_STRUCTURE_SKIPLIST;
	r->nwords = (uint32_t) nw;
	r->fill_percent = 50 + (uint32_t) test_below(51);
	r->input = offset(staging->changes);
	r->n = n;
	api->submit(engine, r);
}

static void
await_change(void)
{
	await(&staging->change);
	CHECK(staging->change.status == GPU_OK);
}

static void
load_entries(void)
{
	GpudsEntry *e = (GpudsEntry *) staging->changes;

	submit_change(GPU_LOAD_BEGIN, 0);
	await_change();
	std::copy(entries.begin(), entries.end(), e);
	submit_change(GPU_LOAD_ADD, (int64_t) entries.size());
	await_change();
	submit_change(GPU_LOAD_END, 0);
	await_change();
}

static void
load(void)
{
	entries.clear();
	for (uint64_t n = test_below(1500); n > 0; n--)
		entries.insert(random_entry());
	load_entries();
}

/* Begins a change, whose result is in entries. */
static void
start_apply(void)
{
	GpudsOp *ops = (GpudsOp *) staging->changes;
	const int64_t n = 1 + (int64_t) test_below(test_below(5) == 0 ? 400 : 12);
	const uint64_t deletes = test_below(4);

	for (int64_t i = 0; i < n; i++)
	{
		const bool is_delete = test_below(4) < deletes;
		GpudsEntry e = random_entry();

		if (test_below(2) && !entries.empty())
		{
			const auto near = entries.lower_bound(e);

			e = near == entries.end() ? *entries.begin() : *near;
			/* the same edge again, by another row */
			if (!is_delete)
				e.t = (e.t & ~ENTRY_TID_MASK) | (random_entry().t & ENTRY_TID_MASK);
		}
		ops[i] = { e, (uint64_t) i << 1 | is_delete };
		if (is_delete)
			entries.erase(e);
		else
			entries.insert(e);
	}
	submit_change(GPU_APPLY, n);
}

/* Begins a change that no graph is to differ by until its rows are seen. */
static void
start_unseen(void)
{
	GpudsOp *ops = (GpudsOp *) staging->changes;
	int64_t n = 0;

	for (int tries = 0; tries < 20 && n < 3; tries++)
	{
		const GpudsEntry e = random_entry();

		if (row_of(e) == PAGE_ROW_SEEN)
			continue;
		ops[n] = { e, (uint64_t) n << 1 };
		entries.insert(e);
		n++;
	}
	if (n == 0)
		start_apply();
	else
		submit_change(GPU_APPLY, n);
}

/*
 * Sometimes has an allocation of the request that comes fail, for which no kept graph makes room, mostly that
 * of a number; but none of a change.
 */
static void
maybe_run_out(int64_t number)
{
	if (__atomic_load_n(&staging->change.done, __ATOMIC_ACQUIRE) != 1 || engine->pool.fail_after >= 0 ||
		test_below(10) > 0)
		return;
	while (gpu_engine_give_kept(engine))
		;
	engine->pool.fail_after = test_below(2) ? number : (int64_t) test_below(8);
}

/* Does a step of an owner's; its status. */
static uint32_t
step(int who, GpuGraphStep form, bool each, int64_t n, int64_t next, int64_t cap)
{
	GpuRequest *r = &staging->request;

	memset((void *) r, 0, sizeof(*r));
	r->kind = GPU_GRAPH;
	r->form = form;
	r->owner = (uint64_t) who + 1;
	r->each = each;
	r->n = n;
	r->next = next;
	r->cap = cap;
	r->input = offset(staging->input);
	r->output = offset(staging->output);
	api->submit(engine, r);
	await(r);
	engine->pool.fail_after = -1;
	return r->status;
}

/* The intervals of a scan without some entries, of which there may be none; how many. */
static int64_t
leave_out(const Entries &without)
{
	GpudsInterval *intervals = (GpudsInterval *) staging->input;
	GpudsInterval piece = { { 0, 0, 0 }, { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
	int64_t n = 0;

	for (const GpudsEntry &e : without)
	{
		piece.hi = entry_before(e);
		if (!entry_less(&e, &piece.lo) && !entry_equal(&e, &piece.lo))
			intervals[n++] = piece;
		piece.lo = e;
		piece.lo.t++;
	}
	piece.hi = { UINT64_MAX, UINT64_MAX, UINT64_MAX };
	intervals[n++] = piece;
	return n;
}

static bool
edge_of(const GpudsEntry &e, bool weighted, Edge *edge)
{
	const uint64_t code = agg_column_code(&column[2],
										  agg_column_bits(&e, nw, column[2].place, column[2].bits));
	const bool is_odd = agg_column_is_null(&column[2], &e, nw) || code < WEIGHT_ZERO;

	edge->weight = !weighted ? 0 : is_odd ? GPU_NO_WEIGHT : code - WEIGHT_ZERO;
	edge->first = agg_column_code(&column[0], agg_column_bits(&e, nw, column[0].place, column[0].bits));
	edge->second = agg_column_code(&column[1], agg_column_bits(&e, nw, column[1].place, column[1].bits));
	return !agg_column_is_null(&column[0], &e, nw) && !agg_column_is_null(&column[1], &e, nw);
}

/* The edges of entries without some whose rows are seen, and the entries that must come back. */
static void
plain_scan(const Entries &of, const Entries &without, bool weighted, Edges *edges, Entries *others)
{
	Edge edge;

	for (const GpudsEntry &e : of)
	{
		if (without.count(e))
			continue;
		if (row_of(e) == PAGE_ROW_SEEN && edge_of(e, weighted, &edge))
			edges->insert(edge);
		if (page_row_goes_back(row_of(e)))
			others->insert(e);
	}
}

/* Has the device read edges; its status. */
static uint32_t
scan_edges(int who, const Entries &without, int64_t cap)
{
	GpuRequest *r = &staging->request;
	bool full = true;

	for (int p = 0; p < PAGES; p++)
		full &= visible[p];
	memset((void *) r, 0, sizeof(*r));
	r->kind = GPU_SCAN;
	r->form = GPU_EDGES;
	r->owner = (uint64_t) who + 1;
	r->forward = true;
	r->input = offset(staging->input);
	r->output = offset(staging->output);
	r->n = leave_out(without);
	r->cap = cap;
	tell_rows(r);
	staging->edges = { { column[0], column[1] }, column[2], WEIGHT_ZERO, owner[who].weighted, full };
	r->edges = offset(&staging->edges);
	/* that of what has been hidden */
	maybe_run_out(3);
	api->submit(engine, r);
	await(r);
	engine->pool.fail_after = -1;
	return r->status;
}

/* Has a part of a graph been made?  If not, there was no memory for it. */
static bool
is_done(uint32_t status)
{
	CHECK(status == GPU_OK || status == GPU_NO_MEMORY);
	return status == GPU_OK;
}

/*
 * Sends edges of entries that came back, those that the snapshot is said to see, and some more; false: there
 * is no memory for them.
 */
static bool
send(int who, const Entries &others, Edges *to)
{
	uint64_t *words = (uint64_t *) staging->input;
	Edges &sent = *to;
	int64_t n = 0;
	Edge edge;

	for (const GpudsEntry &e : others)
	{
		if (test_below(2) && edge_of(e, owner[who].weighted, &edge))
			sent.insert(edge);
	}
	for (uint64_t i = test_below(3) == 0 ? test_below(10) : 0; i > 0; i--)
		sent.insert({ random_vertex(), random_vertex(), owner[who].weighted ? test_below(9) : 0 });
	for (const Edge &of : sent)
	{
		words[n++] = of.first;
		words[n++] = of.second;
		if (owner[who].weighted)
			words[n++] = of.weight;
	}
	if (n == 0 && test_below(2))
		return true;
	maybe_run_out(0);
	return is_done(step(who, GPU_GRAPH_ADD, false, (int64_t) sent.size(), 0, 0));
}

static void
begin(int who)
{
	Owner *of = &owner[who];

	of->both = test_below(2);
	of->weighted = test_below(3) == 0;
	if (test_below(10) > 0 && step(who, GPU_GRAPH_TAKE, of->both, of->weighted, 0, 0) == GPU_OK)
		based++;
	else
		CHECK(step(who, GPU_GRAPH_BEGIN, of->weighted, 20000, 0, 0) == GPU_OK);
}

/* Has all edges read; its status.  Edges with weights are not looked for in a base, one by one. */
static uint32_t
scan_all(int who, const Entries &without, bool *anew)
{
	const uint32_t status = scan_edges(who, without, 10000);

	*anew = status == GPU_WITHDRAWN && owner[who].weighted;
	if (!*anew)
		return status;
	CHECK(step(who, GPU_GRAPH_BEGIN, true, 20000, 0, 0) == GPU_OK);
	return scan_edges(who, without, 10000);
}

static bool
has_odd(const Edges &edges)
{
	return std::any_of(edges.begin(), edges.end(),
					   [](const Edge &edge) { return edge.weight == GPU_NO_WEIGHT; });
}

/* Has a graph be made of all that has come; false: there was no memory for it, or an edge has no weight. */
static bool
end(int who)
{
	const std::vector<Edges> &may_be = owner[who].may_be;
	const uint32_t status = step(who, GPU_GRAPH_END, owner[who].both, 0, 0, 0);

	if (status == GPU_WITHDRAWN)
	{
		CHECK(std::any_of(may_be.begin(), may_be.end(), has_odd));
		return false;
	}
	if (owner[who].weighted && status == GPU_OK)
		CHECK(!std::all_of(may_be.begin(), may_be.end(), has_odd));
	laid_over += owner[who].weighted && status == GPU_OK && staging->request.counted > 0;
	return is_done(status);
}

/* Takes back a graph that there was no memory for. */
static void
give_up(int who)
{
	CHECK(step(who, GPU_GRAPH_DROP, test_below(2), 0, 0, 0) == GPU_OK);
	given_up++;
}

/* Makes a graph, maybe while the tree changes; false: there was no memory for it. */
static bool
make_any(int who)
{
	Entries before = entries;
	const bool beside = test_below(5) == 0;
	const bool between = test_below(8) == 0;
	bool changed = false;
	bool anew;
	Owner *of = &owner[who];
	Entries without;
	Entries others;
	Edges sent;

	begin(who);
	if (between)
	{
		start_apply();
		await(&staging->change);
		changed = entries.size() != before.size();
		before = entries;
	}
	for (uint64_t i = test_below(3) == 0 ? test_below(20) : 0; i > 0; i--)
	{
		const auto near = entries.lower_bound(random_entry());

		without.insert(near == entries.end() || test_below(2) ? random_entry() : *near);
	}
	if (beside)
		start_apply();
	else
		staging->change.done = 1;
	/* Marks stay if a request is repeated; the host makes sure that no edge has gone meanwhile (K3). */
	if (!beside && test_below(8) == 0 && scan_edges(who, without, 3) == GPU_OK && staging->request.found <= 3)
	{
		/* it has been done, and what comes now is another graph */
		(void) step(who, GPU_GRAPH_DROP, test_below(2), 0, 0, 0);
		begin(who);
		changed = false;
	}
	if (!is_done(scan_all(who, without, &anew)))
		return false;
	changed &= !anew;
	CHECK(staging->request.found <= 10000);
	/* of the version that there was when the graph was begun, unless that has gone */
	CHECK(beside || between || staging->request.same);
	CHECK(!changed || !staging->request.same);
	for (int64_t i = 0; i < staging->request.found; i++)
		others.insert(((GpudsEntry *) staging->output)[i]);
	CHECK((int64_t) others.size() == staging->request.found);
	of->may_be.clear();
	for (const Entries *may_be : { (const Entries *) &before, (const Entries *) &entries })
	{
		Entries back;
		Edges edges;

		plain_scan(*may_be, without, of->weighted, &edges, &back);
		if (std::equal(back.begin(), back.end(), others.begin(), others.end(),
					   [](const GpudsEntry &a, const GpudsEntry &b) { return entry_equal(&a, &b); }))
			of->may_be.push_back(edges);
	}
	CHECK(!of->may_be.empty());
	if (!send(who, others, &sent))
		return false;
	for (Edges &edges : of->may_be)
		edges.insert(sent.begin(), sent.end());
	if (test_below(2))
		await(&staging->change);
	maybe_run_out(0);
	if (!end(who))
		return false;
	by_changes += staging->request.taken;
	return true;
}

static void
make(int who)
{
	owner[who].has = make_any(who);
	if (!owner[who].has)
		give_up(who);
	await(&staging->change);
	CHECK(staging->change.status == GPU_OK);
}

static Lists
lists_of(const Edges &edges, bool both)
{
	Lists lists;

	for (const Edge &edge : edges)
	{
		lists[edge.first].insert(edge.second);
		lists[edge.second];
		if (both)
			lists[edge.second].insert(edge.first);
	}
	return lists;
}

static std::map<uint64_t, uint64_t>
plain_walk(const Lists &lists, const std::set<uint64_t> &seeds, uint64_t depths)
{
	std::map<uint64_t, uint64_t> depth;
	std::vector<uint64_t> queue;

	for (uint64_t seed : seeds)
	{
		depth.emplace(seed, 0);
		queue.push_back(seed);
	}
	for (size_t i = 0; i < queue.size() && depth[queue[i]] < depths; i++)
	{
		const auto list = lists.find(queue[i]);

		for (uint64_t next : list != lists.end() ? list->second : std::set<uint64_t>())
		{
			if (depth.emplace(next, depth[queue[i]] + 1).second)
				queue.push_back(next);
		}
	}
	return depth;
}

/* Leaves of what a graph may have what agrees with an answer. */
template <class F>
static void
agree(Owner *of, const F &f)
{
	auto last = std::remove_if(of->may_be.begin(), of->may_be.end(),
							   [&](const Edges &edges) { return !f(edges); });

	of->may_be.erase(last, of->may_be.end());
	CHECK(!of->may_be.empty());
	passed++;
}

/* A walk from some vertices, which may go on from where the host has come to. */
static void
check_walk(int who)
{
	Owner *of = &owner[who];
	const uint64_t depths = 1 + test_below(6);
	uint64_t *words = (uint64_t *) staging->input;
	std::map<uint64_t, GpuReached> reached;
	std::set<uint64_t> seeds;
	int64_t told;

	for (uint64_t i = 1 + test_below(3); i > 0; i--)
		seeds.insert(random_vertex());
	std::copy(seeds.begin(), seeds.end(), words);
	CHECK(step(who, GPU_GRAPH_START, false, (int64_t) seeds.size(), 0, 0) == GPU_OK);
	told = staging->request.found;
	CHECK(step(who, GPU_GRAPH_WALK, false, (int64_t) depths, 0, 0) == GPU_OK);
	const int64_t n = staging->request.found;

	CHECK(step(who, GPU_GRAPH_REACHED, false, 0, 0, n) == GPU_OK && staging->request.found == n);
	for (int64_t i = 0; i < n; i++)
	{
		const GpuReached r = ((GpuReached *) staging->output)[i];

		CHECK(i >= told || r.depth == 0);
		CHECK(reached.emplace(r.vertex, r).second);
	}
	agree(of,
		  [&](const Edges &edges)
		  {
			  const Lists lists = lists_of(edges, of->both);
			  std::map<uint64_t, uint64_t> depth = plain_walk(lists, seeds, depths);

			  for (uint64_t seed : seeds)
			  {
				  if (!reached.count(seed) && !lists.count(seed))
					  depth.erase(seed);
			  }
			  if (depth.size() != reached.size())
				  return false;
			  for (const auto &at : reached)
			  {
				  const auto found = depth.find(at.first);

				  if (found == depth.end() || found->second != at.second.depth)
					  return false;
				  if (found->second > 0 && (!lists.at(at.second.parent).count(at.first) ||
											depth.at(at.second.parent) + 1 != found->second))
					  return false;
			  }
			  return true;
		  });
}

/* A walk that goes on from what the host has found, of whose last depth the edges are to be followed. */
static void
check_counts(int who)
{
	Owner *of = &owner[who];
	uint64_t *words = (uint64_t *) staging->input;
	const uint64_t seed = random_vertex();
	const uint64_t first = test_below(3);
	int64_t n = 0;
	int64_t found = 0;

	if (of->may_be.size() > 1)
		return;
	const std::map<uint64_t, uint64_t> depth = plain_walk(lists_of(of->may_be[0], of->both), { seed },
														  UINT64_MAX);

	if (step(who, GPU_GRAPH_START, false, 0, 0, 0) != GPU_OK)
		CHECK(false);
	for (const bool queued : { false, true })
	{
		n = 0;
		for (const auto &at : depth)
		{
			if (queued ? at.second == first : at.second < first)
				words[n++] = at.first;
		}
		CHECK(step(who, GPU_GRAPH_REACH, queued, n, 0, 0) == GPU_OK);
		found = staging->request.found;
	}
	CHECK(step(who, GPU_GRAPH_WALK, false, 50, 0, 50) == GPU_OK);
	for (int64_t d = 0; d < staging->request.counted; d++)
	{
		const int64_t now = (int64_t) ((uint64_t *) staging->output)[d];
		int64_t there = 0;

		for (const auto &at : depth)
			there += at.second == first + (uint64_t) d + 1;
		CHECK(now - found == there);
		found = now;
	}
	passed++;
}

static void
check_path(int who)
{
	Owner *of = &owner[who];
	uint64_t *words = (uint64_t *) staging->input;
	const uint64_t source = words[0] = random_vertex();
	const uint64_t target = words[1] = random_vertex();
	int64_t length;

	if (source == target)
		return;
	CHECK(step(who, GPU_GRAPH_SEEK, false, 2, 2, 0) == GPU_OK);
	while (staging->request.taken != 0)
		CHECK(step(who, GPU_GRAPH_SEEK, false, 0, 1 + (int64_t) test_below(3), 0) == GPU_OK);
	length = staging->request.found;
	if (length > 0)
		CHECK(step(who, GPU_GRAPH_PATH, false, 0, 0, length) == GPU_OK);
	words = (uint64_t *) staging->output;
	CHECK(length == 0 || (words[0] == source && words[length - 1] == target));
	agree(of,
		  [&](const Edges &edges)
		  {
			  const Lists lists = lists_of(edges, of->both);
			  const std::map<uint64_t, uint64_t> depth = plain_walk(lists, { source }, UINT64_MAX);
			  const auto end = depth.find(target);
			  bool is = length == (end == depth.end() ? 0 : (int64_t) end->second + 1);

			  for (int64_t i = 1; is && i < length; i++)
				  is = lists.at(words[i - 1]).count(words[i]) > 0;
			  return is;
		  });
}

/* What the best paths from a vertex cost, by a plain search. */
static std::map<uint64_t, uint64_t>
plain_costs(const Edges &edges, bool both, uint64_t source)
{
	std::map<uint64_t, std::vector<std::pair<uint64_t, uint64_t>>> lists;
	std::priority_queue<std::pair<uint64_t, uint64_t>, std::vector<std::pair<uint64_t, uint64_t>>,
						std::greater<std::pair<uint64_t, uint64_t>>>
		queue;
	std::map<uint64_t, uint64_t> cost;

	for (const Edge &edge : edges)
	{
		lists[edge.first].push_back({ edge.second, edge.weight });
		if (both)
			lists[edge.second].push_back({ edge.first, edge.weight });
	}
	for (queue.push({ 0, source }); !queue.empty();)
	{
		const auto next = queue.top();

		queue.pop();
		if (!cost.emplace(next.second, next.first).second)
			continue;
		for (const auto &to : lists[next.second])
			queue.push({ next.first + to.second, to.first });
	}
	return cost;
}

/* A path of least cost, which may be no more than some cost. */
static void
check_route(int who)
{
	Owner *of = &owner[who];
	uint64_t *words = (uint64_t *) staging->input;
	const uint64_t source = words[0] = random_vertex();
	const uint64_t target = words[1] = random_vertex();
	const uint64_t most = words[2] = test_below(3) == 0 ? test_below(8) : UINT64_MAX;
	int64_t n;

	if (source == target)
		return;
	CHECK(step(who, GPU_GRAPH_SEEK, false, 3, 1, 0) == GPU_OK);
	while (staging->request.taken != 0)
		CHECK(step(who, GPU_GRAPH_SEEK, false, 0, 1, 0) == GPU_OK);
	n = staging->request.found;
	if (n > 0)
		CHECK(step(who, GPU_GRAPH_PATH, false, 0, 0, n) == GPU_OK && staging->request.found == n);
	words = (uint64_t *) staging->output;
	CHECK(n == 0 || (n > 1 && words[0] == source && words[1] == 0 && words[2 * n - 2] == target));
	routes += n > 0;
	agree(of,
		  [&](const Edges &edges)
		  {
			  const std::map<uint64_t, uint64_t> cost = plain_costs(edges, of->both, source);
			  const auto end = cost.find(target);
			  bool is = has_odd(edges) || end == cost.end() || end->second > most
							? n == 0
							: n > 0 && words[2 * n - 1] == end->second;

			  for (int64_t i = 1; is && i < n; i++)
			  {
				  const uint64_t from = words[2 * i - 2];
				  const uint64_t step = words[2 * i + 1] - words[2 * i - 1];

				  is = edges.count({ from, words[2 * i], step }) > 0 ||
					   (of->both && edges.count({ words[2 * i], from, step }) > 0);
			  }
			  return is;
		  });
}

static void
check_components(int who)
{
	Owner *of = &owner[who];
	std::map<uint64_t, uint64_t> least;
	std::map<uint64_t, uint64_t> sizes;
	int64_t n;

	CHECK(step(who, GPU_GRAPH_CONNECT, false, 0, 0, 0) == GPU_OK);
	n = staging->request.found;
	CHECK(step(who, GPU_GRAPH_CONNECTED, false, 0, 0, n) == GPU_OK && staging->request.found == n);
	for (int64_t i = 0; i < n; i++)
	{
		const uint64_t *pair = (uint64_t *) staging->output + 2 * i;

		CHECK(least.emplace(pair[0], pair[1]).second);
		sizes[pair[1]]++;
	}
	agree(of,
		  [&](const Edges &edges)
		  {
			  const Lists lists = lists_of(edges, true);
			  std::map<uint64_t, uint64_t> is;

			  for (const auto &vertex : lists)
			  {
				  if (is.count(vertex.first))
					  continue;
				  for (const auto &at : plain_walk(lists, { vertex.first }, UINT64_MAX))
					  is[at.first] = vertex.first;
			  }
			  return is == least;
		  });
	CHECK(step(who, GPU_GRAPH_MEASURE, false, 0, 0, 0) == GPU_OK);
	n = staging->request.found;
	CHECK(n == (int64_t) sizes.size());
	CHECK(step(who, GPU_GRAPH_SIZES, false, 0, 0, n) == GPU_OK);
	for (int64_t i = 0; i < n; i++)
	{
		const uint64_t *pair = (uint64_t *) staging->output + 2 * i;

		CHECK(sizes.count(pair[0]) && sizes[pair[0]] == pair[1]);
	}
}

static void
check_triangles(int who)
{
	Owner *of = &owner[who];

	CHECK(step(who, GPU_GRAPH_TRIANGLES, false, 1000000, 0, 0) == GPU_OK);
	agree(of,
		  [&](const Edges &edges)
		  {
			  const Lists lists = lists_of(edges, true);
			  uint64_t n = 0;

			  for (const auto &a : lists)
			  {
				  for (uint64_t b : a.second)
				  {
					  for (uint64_t c : lists.at(b))
						  n += a.first < b && b < c && a.second.count(c);
				  }
			  }
			  return n == staging->request.joined;
		  });
}

static void
use(int who)
{
	for (uint64_t i = 1 + test_below(4); i > 0; i--)
	{
		if (owner[who].weighted)
		{
			check_route(who);
			continue;
		}
		switch (test_below(8))
		{
			case 0:
				check_components(who);
				break;
			case 1:
				check_triangles(who);
				break;
			case 2:
				check_counts(who);
				break;
			case 3:
			case 4:
				check_path(who);
				break;
			default:
				check_walk(who);
		}
	}
}

/* What an owner does next. */
static void
go_on(int who)
{
	Owner *of = &owner[who];

	if (!of->has)
		make(who);
	else if (test_below(3) == 0)
		use(who);
	else
	{
		use(who);
		CHECK(step(who, GPU_GRAPH_DROP, test_below(2), 0, 0, 0) == GPU_OK);
		of->has = false;
	}
}

/* An edge that changes take away, and that the owner sends, when what has been hidden cannot be kept. */
static void
check_sent(void)
{
	uint64_t *words = (uint64_t *) staging->input;

	set_layout(1);
	see_all();
	known[0] = false;
	entries = { make_entry(1, 2, 2, 1), make_entry(3, 4, 2, UINT64_C(1) << 16 | 1) };
	load_entries();
	CHECK(step(0, GPU_GRAPH_BEGIN, false, 100, 0, 0) == GPU_OK);
	engine->pool.fail_after = INT64_MAX;
	CHECK(scan_edges(0, {}, 100) == GPU_OK && staging->request.found == 0);
	CHECK(step(0, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK);
	CHECK(step(0, GPU_GRAPH_DROP, true, 0, 0, 0) == GPU_OK);
	visible[0] = false;
	CHECK(step(0, GPU_GRAPH_TAKE, false, 0, 0, 0) == GPU_OK);
	engine->pool.fail_after = 3;
	CHECK(scan_edges(0, {}, 100) == GPU_OK && staging->request.found == 1);
	words[0] = 1;
	words[1] = 2;
	CHECK(step(0, GPU_GRAPH_ADD, false, 1, 0, 0) == GPU_OK);
	CHECK(step(0, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK && staging->request.taken == 1);
	CHECK(step(0, GPU_GRAPH_START, false, 1, 0, 0) == GPU_OK);
	CHECK(step(0, GPU_GRAPH_WALK, false, 1, 0, 0) == GPU_OK && staging->request.found == 2);
	CHECK(step(0, GPU_GRAPH_DROP, false, 0, 0, 0) == GPU_OK);
	passed++;
}

/* Has an owner make a graph of all edges, on a base or without; it has all that come. */
static void
make_all(int who, bool based)
{
	CHECK(step(who, based ? GPU_GRAPH_TAKE : GPU_GRAPH_BEGIN, false, based ? 0 : 100, 0, 0) == GPU_OK);
	engine->pool.fail_after = INT64_MAX;
	CHECK(scan_edges(who, {}, 100) == GPU_OK && staging->request.found == 0);
}

static void
end_and_keep(int who)
{
	CHECK(step(who, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK);
	CHECK(step(who, GPU_GRAPH_DROP, true, 0, 0, 0) == GPU_OK);
}

/* Applies an entry of an edge that is there already. */
static void
add_row(uint64_t tid)
{
	GpudsOp *ops = (GpudsOp *) staging->changes;

	ops[0] = { make_entry(1, 2, 2, tid), 0 };
	entries.insert(ops[0].e);
	submit_change(GPU_APPLY, 1);
	await_change();
}

static const GpuGraph *
kept_graph(void)
{
	return engine->kept[gpu_engine_kept_key(0, gpu_graph_kind(false, false))];
}

/* A base is of a later scan that finds the same edges only if nobody else uses it. */
static void
check_moves(void)
{
	const GpuGraph *base;
	uint64_t noted;

	make_all(0, false);
	end_and_keep(0);
	base = kept_graph();
	noted = base->origin.noted;
	add_row(3);
	CHECK(step(1, GPU_GRAPH_TAKE, false, 0, 0, 0) == GPU_OK);
	make_all(0, true);
	end_and_keep(0);
	CHECK(kept_graph() == base && base->origin.noted == noted);
	CHECK(step(1, GPU_GRAPH_DROP, false, 0, 0, 0) == GPU_OK);
	make_all(0, true);
	end_and_keep(0);
	CHECK(kept_graph() == base && base->origin.noted > noted);
	passed++;
}

/* A graph that has edges which were sent takes the place of a base of the same version no more than that. */
static void
check_place(void)
{
	uint64_t *words = (uint64_t *) staging->input;
	const GpuGraph *base = kept_graph();

	for (int changed = 0; changed < 2; changed++)
	{
		if (changed)
			add_row(4);
		make_all(0, false);
		words[0] = 5;
		words[1] = 6;
		CHECK(step(0, GPU_GRAPH_ADD, false, 1, 0, 0) == GPU_OK);
		end_and_keep(0);
		CHECK((kept_graph() == base) == !changed);
	}
	passed++;
}

/* How many rows an edge has is only known of a graph that was made without a base. */
static void
check_equal(void)
{
	const double input[2] = { 0.85, 0 };
	const double endless[2] = { 0.85, -1 };
	const uint64_t *words = (uint64_t *) staging->output;

	make_all(0, false);
	CHECK(step(0, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK && staging->request.found == 4);
	CHECK(step(0, GPU_GRAPH_DEGREES, false, 0, 0, 4) == GPU_WITHDRAWN);
	CHECK(step(0, GPU_GRAPH_RANKED, false, 0, 0, 4) == GPU_WITHDRAWN);
	CHECK(step(0, GPU_GRAPH_COUNT, false, 0, 0, 0) == GPU_OK && staging->request.found == 4);
	CHECK(step(0, GPU_GRAPH_DEGREES, false, 0, 1, 2) == GPU_OK && staging->request.found == 2);
	CHECK(words[0] == 2 && words[1] == 0 && words[2] == 3 && words[3] == 3 && words[4] == 1 && words[5] == 0);
	CHECK(step(0, GPU_GRAPH_DEGREES, false, 0, 5, 2) == GPU_NO_REQUEST);
	memcpy(staging->input, input, sizeof(input));
	CHECK(step(0, GPU_GRAPH_RANK, false, 2, 3, 0) == GPU_WITHDRAWN);
	CHECK(step(0, GPU_GRAPH_RANK, true, 1, 3, 0) == GPU_NO_REQUEST);
	CHECK(step(0, GPU_GRAPH_RANK, true, 2, 3, 0) == GPU_OK && staging->request.counted == 3);
	CHECK(step(0, GPU_GRAPH_RANKED, false, 0, 0, 4) == GPU_OK && words[0] == 1 && words[6] == 4);
	CHECK(words[1] == words[5] && words[3] == words[7] && words[3] > words[1]);
	/* a request is soon done, whatever it asks for */
	memcpy(staging->input, endless, sizeof(endless));
	CHECK(step(0, GPU_GRAPH_RANK, true, 2, 2 * GPU_RANK_ITERATIONS, 0) == GPU_OK);
	CHECK(staging->request.counted == GPU_RANK_ITERATIONS);
	end_and_keep(0);
	make_all(0, true);
	CHECK(step(0, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK && staging->request.counted == 0);
	CHECK(step(0, GPU_GRAPH_COUNT, false, 0, 0, 0) == GPU_WITHDRAWN);
	CHECK(step(0, GPU_GRAPH_RANK, true, 2, 3, 0) == GPU_WITHDRAWN);
	CHECK(step(0, GPU_GRAPH_DROP, false, 0, 0, 0) == GPU_OK);
	passed++;
}

static GpudsEntry
weighted_entry(uint64_t source, uint64_t target, int64_t weight, uint64_t tid)
{
	GpudsEntry e;

	given = weight;
	e = make_entry(source, target, 2, tid);
	given = -1;
	return e;
}

/*
 * One of two edges is gone that differ in their weights; the other one is found from its end, since the
 * search has put off more vertices from its beginning.
 */
static void
check_parallel(void)
{
	uint64_t *words = (uint64_t *) staging->input;
	GpudsOp *ops = (GpudsOp *) staging->changes;
	GpudsEntry gone;

	set_layout(1);
	see_all();
	gone = weighted_entry(6, 2, 9, 1);
	entries = { gone, weighted_entry(6, 2, 15, 2), weighted_entry(1, 6, 9, 3), weighted_entry(1, 3, 9, 4),
				weighted_entry(1, 4, 9, 12) };
	for (uint64_t i = 5; i < 12; i++)
		entries.insert(weighted_entry(20 + i, 40 + i, 1, i));
	load_entries();
	owner[0].weighted = true;
	for (int based = 0; based < 2; based++)
	{
		CHECK(step(0, based ? GPU_GRAPH_TAKE : GPU_GRAPH_BEGIN, !based, based ? 1 : 100, 0, 0) == GPU_OK);
		engine->pool.fail_after = INT64_MAX;
		CHECK(scan_edges(0, {}, 100) == GPU_OK && staging->request.found == 0);
		CHECK(step(0, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK && staging->request.counted == based);
		words[0] = 1;
		words[1] = 2;
		words[2] = UINT64_MAX;
		CHECK(step(0, GPU_GRAPH_SEEK, false, 3, 100, 0) == GPU_OK && staging->request.found == 3);
		CHECK(step(0, GPU_GRAPH_PATH, false, 0, 0, 3) == GPU_OK);
		CHECK(((uint64_t *) staging->output)[5] == (based ? 24 : 18));
		CHECK(step(0, GPU_GRAPH_DROP, !based, 0, 0, 0) == GPU_OK);
		ops[0] = { gone, 1 };
		submit_change(GPU_APPLY, 1);
		await_change();
	}
	owner[0].weighted = false;
	passed++;
}

/* Which graph is a base, and of what scan */
static void
check_bases(void)
{
	set_layout(1);
	see_all();
	entries = { make_entry(1, 2, 2, 1), make_entry(3, 4, 2, 2) };
	load_entries();
	check_moves();
	check_place();
	check_equal();
	check_parallel();
}

static void
run(int layout, int steps)
{
	odd = test_below(3) == 0 ? 2000 : 0;
	set_layout(layout);
	change_rows(1);
	load();
	for (int i = 0; i < steps; i++)
	{
		if (test_below(4) == 0)
		{
			test_below(2) ? start_apply() : start_unseen();
			await_change();
		}
		if (test_below(60) == 0)
			load();
		if (test_below(30) == 0)
			see_all();
		else if (test_below(4) == 0)
			change_rows(test_below(20) == 0 ? 1 : 200);
		go_on((int) test_below(OWNERS));
	}
	for (int i = 0; i < OWNERS; i++)
	{
		CHECK(step(i, GPU_GRAPH_DROP, true, 0, 0, 0) == GPU_OK);
		owner[i].has = false;
	}
	submit_change(GPU_DROP, 0);
	await_change();
}

/* The log has the entries from a number on, if they are not too many, and of the same tree. */
static void
check_log(GpuStream *s)
{
	std::vector<GpudsOp> ops(GPU_LOG_ENTRIES);
	GpudsEntry *copy = (GpudsEntry *) gpu_host_alloc(GPU_LOG_ENTRIES * sizeof(GpudsEntry));
	GpuChangeLog log;

	CHECK(copy != NULL);
	gpu_log_note(&log, ops.data(), 3);
	/* what is under way has no part in a view, and no entry in a log that begins now */
	CHECK(gpu_log_begin(&log) == 0 && gpu_log_since(&log, 0) < 0);
	gpu_log_applied(&log);
	CHECK(gpu_log_begin(&log) == 3 && gpu_log_since(&log, 3) == 0);
	for (size_t i = 0; i < ops.size(); i++)
		ops[i].e.t = i;
	gpu_log_note(&log, ops.data(), 5);
	CHECK(gpu_log_begin(&log) == 3 && gpu_log_since(&log, 3) == 5);
	gpu_log_applied(&log);
	CHECK(gpu_log_begin(&log) == 8);
	gpu_log_note(&log, ops.data(), GPU_LOG_ENTRIES);
	CHECK(gpu_log_since(&log, 7) < 0 && gpu_log_since(&log, 8) == GPU_LOG_ENTRIES);
	CHECK(!gpu_log_copy(&log, s, 7, copy, GPU_LOG_ENTRIES));
	CHECK(gpu_log_copy(&log, s, 8, copy, GPU_LOG_ENTRIES));
	for (size_t i = 0; i < ops.size(); i++)
		CHECK(copy[i].t == i);
	gpu_log_applied(&log);
	const uint64_t before = gpu_log_begin(&log);

	gpu_log_forget(&log, false);
	CHECK(gpu_log_since(&log, before) < 0 && gpu_log_since(&log, gpu_log_begin(&log)) == 0);
	gpu_log_forget(&log, true);
	gpu_host_free(copy);
	passed++;
}

int
main(int argc, char **argv)
{
	const bool small = argc > 1 && strcmp(argv[1], "small") == 0;
	const int rounds = small ? 1 : argc > 1 ? atoi(argv[1]) : 3;
	GpuEngineOptions options = {};
	GpuEngineInfo info;
	char why[200];
	bool hopeless;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	staging = (Staging *) aligned_alloc(4096, (sizeof(Staging) + 4095) / 4096 * 4096);
	CHECK(staging != NULL);
	memset((void *) staging, 0, sizeof(Staging));
	options.memory = (size_t) 512 << 20;
	options.staging = staging;
	options.staging_bytes = (sizeof(Staging) + 4095) / 4096 * 4096;
	options.piece_bytes = PIECE;
	options.emulate_failures = true;
	api = gpuds_gpu_engine();
	engine = api->open(&options, &hopeless, why, sizeof(why));
	if (engine == NULL)
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	check_log(&engine->change.stream);
	check_sent();
	check_bases();
	for (int round = 0; round < rounds; round++)
	{
		for (int layout = 0; layout < 3; layout++)
			run(layout, small ? SMALL_STEPS : STEPS);
	}
	/* A base may be made anew yet, of a graph that was given up. */
	do
		api->info(engine, &info);
	while (info.memory_used > 0);
	CHECK(by_changes > based / 5);
	CHECK(small || (routes > 50 && laid_over > 20));
	CHECK(api->close(engine, PATIENCE_NS));
	printf("%s, %lld graphs on others, %lld of them by changes, %lld given up\n%lld passed, 0 failed\n",
		   info.name, (long long) based, (long long) by_changes, (long long) given_up, (long long) passed);
	free(staging);
	return 0;
}
