/*-------------------------------------------------------------------------
 *
 * gpu_graph_weights.h
 *	  Paths of least cost against a plain search: the part of gpu_graph.cu for edges with weights.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_GRAPH_WEIGHTS_H
#define TEST_GPU_GRAPH_WEIGHTS_H

/* Weights of edges, in one of the ranges that they may have: 0 and 1, small or with 0, or large ones. */
static std::vector<uint64_t>
random_weights(size_t n)
{
	const uint64_t kind = test_below(4);
	std::vector<uint64_t> weights(n);

	for (auto &weight : weights)
	{
		weight = kind == 0 ? test_below(2) : kind - 1 + test_below(100);
		if (kind == 3)
			weight = test_below(UINT64_C(1) << 30);
	}
	return weights;
}

/* Makes a graph with weights; its status. */
static uint32_t
make_weighted(const Edges &edges, const std::vector<uint64_t> &weights, bool both, GpuGraph **graph)
{
	const size_t n = edges.size();

	*graph = gpu_graph_open(&pool, 1, (int64_t) n, true);
	if (*graph == NULL)
		return GPU_NO_MEMORY;
	for (size_t i = 0; i < n; i++)
	{
		words[3 * i] = edges[i].first;
		words[3 * i + 1] = edges[i].second;
		words[3 * i + 2] = weights[i];
	}
	gpu_copy_bus(&stream.stream, stream.input, words, n * 3 * sizeof(uint64_t));
	gpu_edges_add(&stream, &(*graph)->list, (const uint64_t *) stream.input, (int64_t) n);
	return gpu_graph_end(*graph, &stream, both);
}

/* Searches for a path of least cost; its status. */
static uint32_t
route(GpuGraph *graph, uint64_t source, uint64_t target, uint64_t most)
{
	int64_t did = 1;
	uint32_t status;

	words[0] = source;
	words[1] = target;
	gpu_copy_bus(&stream.stream, stream.input, words, 2 * sizeof(uint64_t));
	status = gpu_route_begin(graph, &stream, (const uint64_t *) stream.input, most);
	while (status == GPU_OK && !graph->route.done)
		status = gpu_route_go_on(graph, &stream, 1, &did);
	return status;
}

static void
check_route(GpuGraph *graph, const Lists &vertices, const CostLists &lists)
{
	const uint64_t source = random_vertex(vertices);
	const uint64_t target = random_vertex(vertices);
	const std::map<uint64_t, uint64_t> costs = plain_costs(lists, source);
	const auto end = costs.find(target);
	const uint64_t cost = end != costs.end() ? end->second : 0;
	const uint64_t most = test_below(3) == 0 ? cost + test_below(3) - 1 : UINT64_MAX;
	const bool is = end != costs.end() && cost <= most;
	const uint64_t *path;
	int64_t n;

	if (source == target)
		return;
	CHECK(route(graph, source, target, most) == GPU_OK);
	n = graph->route.length;
	CHECK((n > 0) == is);
	if (n > 0)
		gpu_route_tell(graph, &stream.stream, (uint64_t *) stream.output);
	path = (const uint64_t *) fetch(stream.output, (size_t) n * 2 * sizeof(uint64_t));
	CHECK(n == 0 || (path[0] == source && path[1] == 0));
	CHECK(n == 0 || (path[2 * n - 2] == target && path[2 * n - 1] == cost));
	for (int64_t i = 1; i < n; i++)
	{
		const Costs &from = lists.at(path[2 * i - 2]);
		const std::pair<uint64_t, uint64_t> step = { path[2 * i], path[2 * i + 1] - path[2 * i - 1] };

		CHECK(std::count(from.begin(), from.end(), step) > 0);
	}
	passed++;
}

/* Paths of least cost in graphs with and without edges that cost nothing, and several of the same vertices */
static void
check_weighted(int64_t most)
{
	const Edges edges = random_edges(most);
	const std::vector<uint64_t> weights = random_weights(edges.size());
	const bool both = test_below(2) > 0;
	CostLists lists;
	GpuGraph *graph;

	for (size_t i = 0; i < edges.size(); i++)
	{
		lists[edges[i].first].push_back({ edges[i].second, weights[i] });
		if (both)
			lists[edges[i].second].push_back({ edges[i].first, weights[i] });
	}
	CHECK(make_weighted(edges, weights, both, &graph) == GPU_OK);
	for (int i = 0; i < 5; i++)
		check_route(graph, lists_of(edges, both), lists);
	gpu_graph_rest(graph);
	CHECK(gpu_graph_bytes(graph) == gpu_pool_used(&pool));
	check_route(graph, lists_of(edges, both), lists);
	gpu_graph_close(graph);
	CHECK(gpu_pool_used(&pool) == 0);
}

/* Weights that no path can have, and such that are too large */
static void
check_weights(void)
{
	const Edges edges = { { 1, 2 }, { 2, 3 }, { 3, 4 }, { 1, 4 } };
	const uint64_t large = UINT64_C(1) << 52;
	GpuGraph *graph;

	CHECK(make_weighted(edges, { 1, 2, GPU_NO_WEIGHT, 3 }, false, &graph) == GPU_WITHDRAWN);
	gpu_graph_close(graph);
	for (const uint64_t zero : { 0, 1 })
	{
		CHECK(make_weighted(edges, { zero, large, 2 * large, UINT64_MAX - 1 }, false, &graph) == GPU_OK);
		CHECK(route(graph, 1, 4, UINT64_MAX) == GPU_TOO_LARGE);
		CHECK(route(graph, 1, 4, large) == GPU_OK && graph->route.length == 0);
		CHECK(route(graph, 1, 3, UINT64_MAX) == GPU_OK && graph->route.length == 3);
		CHECK(route(graph, 1, 3, large + zero - 1) == GPU_OK && graph->route.length == 0);
		CHECK(route(graph, 4, 1, UINT64_MAX) == GPU_OK && graph->route.length == 0);
		gpu_graph_close(graph);
	}
	passed++;
}

/* Asks for a path of least cost, until something lacks memory. */
static uint32_t
use_weighted(const Edges &edges)
{
	GpuGraph *graph;
	uint32_t status = make_weighted(edges, random_weights(edges.size()), false, &graph);

	if (status == GPU_OK)
		status = route(graph, 1, 2, UINT64_MAX);
	CHECK(gpu_finish(&stream.stream));
	if (graph != NULL)
		gpu_graph_close(graph);
	return status;
}

static void
check_weighted_memory(const Edges &edges)
{
	int64_t fails = 0;

	do
	{
		pool.fail_after = fails++;
		CHECK(fails < 100);
	} while (use_weighted(edges) == GPU_NO_MEMORY);
	pool.fail_after = -1;
	CHECK(fails > 20 && gpu_pool_used(&pool) == 0);
	passed++;
}

#endif /* TEST_GPU_GRAPH_WEIGHTS_H */
