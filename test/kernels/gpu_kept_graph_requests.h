/*-------------------------------------------------------------------------
 *
 * gpu_kept_graph_requests.h
 *	  What the engine is asked for: loads and changes of the tree, and steps of graphs of several owners.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_KEPT_GRAPH_REQUESTS_H
#define TEST_GPU_KEPT_GRAPH_REQUESTS_H

#include "gpu_kept_graph_entries.h"

#define PIECE ((size_t) 256 << 10)
#define OWNERS 3

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
static Owner owner[OWNERS];
static int64_t passed = 0;

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

#endif /* TEST_GPU_KEPT_GRAPH_REQUESTS_H */
