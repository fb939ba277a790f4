/*-------------------------------------------------------------------------
 *
 * gpu_kept_graph_bases.h
 *	  Which graph is a base, of what scan, and what is known of one that is made on it: cases of few edges.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_KEPT_GRAPH_BASES_H
#define TEST_GPU_KEPT_GRAPH_BASES_H

#include "gpu_kept_graph_requests.h"

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
 * One of two edges is gone that differ in their weights, and then there is a third one.  Each is found from
 * its end, since the search has put off more vertices from its beginning.
 */
static void
check_parallel(void)
{
	static const uint64_t costs[] = { 18, 24, 19 };
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
	for (int changes = 0; changes < 3; changes++)
	{
		const bool based = changes > 0;

		CHECK(step(0, based ? GPU_GRAPH_TAKE : GPU_GRAPH_BEGIN, !based, based ? 1 : 100, 0, 0) == GPU_OK);
		engine->pool.fail_after = INT64_MAX;
		CHECK(scan_edges(0, {}, 100) == GPU_OK && staging->request.found == 0);
		CHECK(step(0, GPU_GRAPH_END, false, 0, 0, 0) == GPU_OK && staging->request.counted == changes);
		words[0] = 1;
		words[1] = 2;
		words[2] = UINT64_MAX;
		CHECK(step(0, GPU_GRAPH_SEEK, false, 3, 100, 0) == GPU_OK && staging->request.found == 3);
		CHECK(step(0, GPU_GRAPH_PATH, false, 0, 0, 3) == GPU_OK);
		CHECK(((uint64_t *) staging->output)[2] == 6 && ((uint64_t *) staging->output)[5] == costs[changes]);
		CHECK(step(0, GPU_GRAPH_DROP, !based, 0, 0, 0) == GPU_OK);
		ops[0] = { changes == 0 ? gone : weighted_entry(6, 2, 10, 13), changes == 0 };
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

#endif /* TEST_GPU_KEPT_GRAPH_BASES_H */
