/*-------------------------------------------------------------------------
 *
 * gpu_graph.cu
 *	  Graphs in device memory (kernels/graph/gpu_graph*.h), against plain searches of random graphs, with
 *	  memory running out.
 *
 *	  usage: gpu_graph [small | rounds [seed]]
 *
 * small is for compute-sanitizer, and for the emulation with several threads beside the thread sanitizer.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "common.h"
#include "kernels/graph/gpu_graph_components.h"
#include "kernels/graph/gpu_graph_triangles.h"
#include "kernels/graph/gpu_graph_walk.h"

#define PIECE ((size_t) 1 << 20)
#define POOL ((size_t) 256 << 20)
#define MOST_EDGES 20000

typedef std::vector<std::pair<uint64_t, uint64_t>> Edges;
typedef std::map<uint64_t, std::vector<uint64_t>> Lists;

static GpuPool pool;
static GpuScanStream stream;
static uint64_t *words; /* memory that both sides use */
static int passed = 0;

/* Codes of vertices, in one of the ranges that they may have. */
static uint64_t
random_code(int kind, uint64_t vertices)
{
	const uint64_t number = test_below(vertices) * test_below(vertices) / vertices;

	return kind == 0 ? number : kind == 1 ? UINT64_MAX - number : number * UINT64_C(0x9e3779b97f4a7c15);
}

/* A path, which is what components have most to do for. */
static Edges
path(int64_t most)
{
	Edges edges(test_below((uint64_t) most + 1));

	for (size_t i = 0; i < edges.size(); i++)
		edges[i] = { i, i + 1 };
	return edges;
}

static Edges
random_edges(int64_t most)
{
	if (test_below(4) == 0)
		return path(most);

	const uint64_t vertices = 1 + test_below(1 + test_below((uint64_t) most));
	const int kind = (int) test_below(3);
	Edges edges(test_below((uint64_t) most + 1));

	for (auto &edge : edges)
		edge = { random_code(kind, vertices), random_code(kind, vertices) };
	return edges;
}

static Lists
lists_of(const Edges &edges, bool both)
{
	Lists lists;

	for (const auto &edge : edges)
	{
		lists[edge.first].push_back(edge.second);
		lists[edge.second];
		if (both)
			lists[edge.second].push_back(edge.first);
	}
	return lists;
}

/* Makes a graph; its status.  *graph: NULL, if it has not even been begun. */
static uint32_t
make(const Edges &edges, bool both, GpuGraph **graph)
{
	*graph = gpu_graph_open(&pool, 1, (int64_t) edges.size());
	if (*graph == NULL)
		return GPU_NO_MEMORY;
	for (size_t i = 0; i < edges.size(); i++)
	{
		words[2 * i] = edges[i].first;
		words[2 * i + 1] = edges[i].second;
	}
	gpu_copy_bus(&stream.stream, (*graph)->list.pairs, words, edges.size() * 2 * sizeof(uint64_t));
	(*graph)->list.n = (int64_t) edges.size();
	return gpu_graph_end(*graph, &stream, both);
}

/* Copies n items of device memory to memory that the host sees. */
static const void *
fetch(const void *from, size_t bytes)
{
	CHECK(bytes <= PIECE);
	gpu_copy_bus(&stream.stream, words, from, bytes);
	CHECK(gpu_finish(&stream.stream));
	return words;
}

/* Depths of all vertices that can be reached, by a plain search. */
static std::map<uint64_t, uint64_t>
plain_walk(const Lists &lists, const std::vector<uint64_t> &seeds, uint64_t depths)
{
	std::map<uint64_t, uint64_t> depth;
	std::vector<uint64_t> queue;

	for (uint64_t seed : seeds)
	{
		if (lists.count(seed) && depth.emplace(seed, 0).second)
			queue.push_back(seed);
	}
	for (size_t i = 0; i < queue.size(); i++)
	{
		if (depth[queue[i]] == depths)
			break;
		for (uint64_t next : lists.at(queue[i]))
		{
			if (depth.emplace(next, depth[queue[i]] + 1).second)
				queue.push_back(next);
		}
	}
	return depth;
}

/* Reaches the seeds, of which the last ones are to go on from, and goes on; its status. */
static uint32_t
walk(GpuGraph *graph, const std::vector<uint64_t> &seeds, int64_t depths, int64_t *nseeds)
{
	uint32_t status;

	std::copy(seeds.begin(), seeds.end(), words);
	gpu_copy_bus(&stream.stream, stream.input, words, seeds.size() * sizeof(uint64_t));
	status = gpu_graph_reach(graph, &stream, (const uint64_t *) stream.input, (int64_t) seeds.size(), true);
	*nseeds = graph->walk.n;
	for (int64_t i = 0; status == GPU_OK && i < depths; i += 2)
		status = gpu_graph_walk(graph, &stream, depths - i < 2 ? depths - i : 2);
	return status;
}

static void
check_walk(GpuGraph *graph, const Lists &lists)
{
	const int64_t depths = (int64_t) test_below(12);
	std::vector<uint64_t> seeds(1, 4711);
	std::map<uint64_t, uint64_t> depth;
	int64_t nseeds;

	for (const auto &vertex : lists)
	{
		if (test_below(lists.size()) < 3)
			seeds.push_back(vertex.first);
	}
	depth = plain_walk(lists, seeds, (uint64_t) depths);
	CHECK(walk(graph, seeds, depths, &nseeds) == GPU_OK);
	CHECK(nseeds == (int64_t) seeds.size() - 1 + (int64_t) lists.count(4711));
	CHECK(graph->walk.n == (int64_t) depth.size());
	gpu_graph_reached(graph, &stream.stream, 0, graph->walk.n, (GpuReached *) stream.output);
	const GpuReached *reached = (const GpuReached *) fetch(stream.output,
														   (size_t) graph->walk.n * sizeof(GpuReached));
	for (int64_t i = 0; i < graph->walk.n; i++)
	{
		const GpuReached &r = reached[i];

		CHECK(depth.count(r.vertex) && depth[r.vertex] == r.depth);
		CHECK(i == 0 || reached[i - 1].depth <= r.depth);
		if (r.depth == 0)
			continue;
		const std::vector<uint64_t> &from = lists.at(r.parent);

		CHECK(depth[r.parent] + 1 == r.depth && std::count(from.begin(), from.end(), r.vertex) > 0);
	}
	passed++;
}

static void
check_components(GpuGraph *graph, const Edges &edges)
{
	const Lists lists = lists_of(edges, true);
	const uint64_t *pairs;
	auto vertex = lists.begin();

	CHECK(gpu_graph_connect(graph, &stream.stream) == GPU_OK);
	gpu_graph_connected(graph, &stream.stream, 0, graph->n, (uint64_t *) stream.output);
	pairs = (const uint64_t *) fetch(stream.output, (size_t) graph->n * 2 * sizeof(uint64_t));
	CHECK(graph->n == (int64_t) lists.size());
	for (int64_t i = 0; i < graph->n; i++, ++vertex)
		CHECK(pairs[2 * i] == vertex->first);
	/* Vertices come in order, so the first one of a component that is met is its least one. */
	for (int64_t i = 0; i < graph->n; i++)
	{
		if (pairs[2 * i + 1] != pairs[2 * i])
			continue;
		int64_t n = 0;

		for (const auto &reached : plain_walk(lists, { pairs[2 * i] }, UINT64_MAX))
		{
			const auto place = (int64_t) std::distance(lists.begin(), lists.find(reached.first));

			CHECK(graph->n > 2000 || pairs[2 * place + 1] == pairs[2 * i]);
			CHECK(reached.first >= pairs[2 * i]);
			n++;
		}
		for (int64_t k = 0; k < graph->n; k++)
			n -= pairs[2 * k + 1] == pairs[2 * i];
		CHECK(n == 0);
		if (i > 200)
			break;
	}
	passed++;
}

static uint64_t
plain_triangles(const Edges &edges)
{
	std::map<uint64_t, std::set<uint64_t>> greater;
	uint64_t n = 0;

	for (const auto &edge : edges)
	{
		if (edge.first != edge.second)
			greater[std::min(edge.first, edge.second)].insert(std::max(edge.first, edge.second));
	}
	for (const auto &list : greater)
	{
		for (uint64_t b : list.second)
		{
			const auto others = greater.find(b);

			for (uint64_t c : others != greater.end() ? others->second : std::set<uint64_t>())
				n += list.second.count(c);
		}
	}
	return n;
}

static void
check_triangles(GpuGraph *graph, const Edges &edges)
{
	const int64_t step = 1 + (int64_t) test_below(edges.size() + 10);
	uint64_t n = 0;

	CHECK(gpu_graph_need_lists(graph, &stream) == GPU_OK);
	for (int64_t i = 0; i < graph->lists.n; i += step)
		n += gpu_graph_count_triangles(graph, &stream, i, std::min(step, graph->lists.n - i));
	CHECK(n == plain_triangles(edges));
	passed++;
}

/* Asks for everything, until something lacks memory. */
static uint32_t
use_all(const Edges &edges)
{
	GpuGraph *graph;
	int64_t nseeds;
	uint32_t status = make(edges, false, &graph);

	if (status == GPU_OK)
		status = walk(graph, { 1, 2, 3 }, 3, &nseeds);
	if (status == GPU_OK)
		status = gpu_graph_connect(graph, &stream.stream);
	if (status == GPU_OK)
		status = gpu_graph_need_lists(graph, &stream);
	CHECK(gpu_finish(&stream.stream));
	if (graph != NULL)
		gpu_graph_close(graph);
	return status;
}

/* Each allocation fails once; all memory is given back. */
static void
check_memory(const Edges &edges)
{
	int64_t fails = 0;

	do
	{
		pool.fail_after = fails++;
		CHECK(fails < 100);
	} while (use_all(edges) == GPU_NO_MEMORY);
	pool.fail_after = -1;
	CHECK(fails > 10 && gpu_pool_used(&pool) == 0);
	passed++;
}

static void
check_graph(int64_t most)
{
	const Edges edges = random_edges(most);
	const bool both = test_below(2) > 0;
	void *temp = stream.stream.temp;
	const size_t temp_bytes = stream.stream.temp_bytes;
	GpuGraph *graph;

	CHECK(make(edges, both, &graph) == GPU_OK);
	check_components(graph, edges);
	check_walk(graph, lists_of(edges, both));
	check_triangles(graph, edges);
	/* as the next owner of a graph that is kept finds it */
	gpu_graph_rest(graph);
	CHECK(gpu_graph_bytes(graph) == gpu_pool_used(&pool));
	check_walk(graph, lists_of(edges, both));
	check_components(graph, edges);
	check_triangles(graph, edges);
	gpu_graph_close(graph);
	CHECK(gpu_pool_used(&pool) == 0);
	stream.stream.temp = temp;
	stream.stream.temp_bytes = temp_bytes;
}

#ifdef GPU_EMULATED

/* A thread of the last launch for components sets the root of its own vertex only. */
static void
check_flatten(void)
{
	std::vector<uint32_t> roots = { 0, 0, 1, 2, 3, 4 };
	const std::vector<uint32_t> after = { 0, 0, 1, 2, 0, 4 };

	GpuGraphFlatten{ roots.data() }(4);
	CHECK(roots == after);
	passed++;
}

#else

static void
check_flatten(void)
{
}

#endif

int
main(int argc, char **argv)
{
	const bool small = argc > 1 && strcmp(argv[1], "small") == 0;
	const int rounds = small ? 2 : argc > 1 ? atoi(argv[1]) : 3;
	GpuCard card;
	char why[200];

	if (argc > 2)
		test_seed = strtoull(argv[2], NULL, 10);
	gpu_load_all();
	if (!gpu_card(0, &card, why, sizeof(why)) || !gpu_use(0))
	{
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	CHECK(gpu_pool_open(&pool, POOL));
	CHECK(gpu_scan_stream_open(&stream, PIECE));
	words = (uint64_t *) gpu_host_alloc(PIECE);
	CHECK(words != NULL);
	check_flatten();
	for (int round = 0; round < rounds; round++)
	{
		for (int i = 0; i < 20; i++)
			check_graph(small ? 300 : i % 2 == 0 ? 100 : MOST_EDGES);
		check_memory(random_edges(100));
	}
	CHECK(gpu_pool_used(&pool) == 0);
	gpu_scan_stream_close(&stream);
	gpu_pool_close(&pool);
	gpu_host_free(words);
	printf("%s\n%d passed, 0 failed\n", card.name, passed);
	return 0;
}
