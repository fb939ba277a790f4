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
#include <vector>

#include "common.h"
#include "kernels/engine/engine.cu"

#include "gpu_kept_graph_answers.h"
#include "gpu_kept_graph_bases.h"

#define PATIENCE_NS UINT64_C(60000000000)
#define STEPS 400 /* of one layout */
#define SMALL_STEPS 60

static int64_t by_changes = 0;
static int64_t based = 0;
static int64_t given_up = 0;
static int64_t laid_over = 0;

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
