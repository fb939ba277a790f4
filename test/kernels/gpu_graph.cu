/*-------------------------------------------------------------------------
 *
 * gpu_graph.cu
 *	  Graphs in device memory (kernels/graph/gpu_graph*.h), new ones and such that are based on others,
 *	  against plain searches of random graphs, with memory running out.
 *
 *	  usage: gpu_graph [small | rounds [seed]]
 *
 * small is for compute-sanitizer, and for the emulation with several threads beside the thread sanitizer.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "common.h"
#include "kernels/graph/gpu_graph_components.h"
#include "kernels/graph/gpu_graph_degrees.h"
#include "kernels/graph/gpu_graph_pagerank.h"
#include "kernels/graph/gpu_graph_path.h"
#include "kernels/graph/gpu_graph_route.h"
#include "kernels/graph/gpu_graph_triangles.h"
#include "kernels/graph/gpu_graph_update.h"
#include "plain_graph.h"

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
	return plain_lists<Lists>(edges, both);
}

/* Makes a graph; its status.  *graph: NULL, if it has not even been begun. */
static uint32_t
make(const Edges &edges, bool both, GpuGraph **graph)
{
	*graph = gpu_graph_open(&pool, 1, (int64_t) edges.size(), false);
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

/* Depths of all vertices that can be reached, of which seeds that the graph does not have are none. */
static std::map<uint64_t, uint64_t>
depths_of(const Lists &lists, const std::vector<uint64_t> &seeds, uint64_t depths)
{
	std::vector<uint64_t> there;

	std::copy_if(seeds.begin(), seeds.end(), std::back_inserter(there),
				 [&](uint64_t seed) { return lists.count(seed) > 0; });
	return plain_walk(lists, there, depths);
}

/* Reaches the seeds, of which the last ones are to go on from, and goes on; its status. */
static uint32_t
walk(GpuGraph *graph, const std::vector<uint64_t> &seeds, int64_t depths, int64_t *nseeds)
{
	uint32_t status;

	std::copy(seeds.begin(), seeds.end(), words);
	gpu_copy_bus(&stream.stream, stream.input, words, seeds.size() * sizeof(uint64_t));
	status = gpu_graph_start(graph, &stream, (const uint64_t *) stream.input, (int64_t) seeds.size());
	*nseeds = graph->walk.n;
	for (int64_t i = 0; status == GPU_OK && i < depths && graph->walk.first < graph->walk.n; i += 2)
		status = gpu_graph_walk(graph, &stream, depths - i < 2 ? depths - i : 2, NULL);
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
	depth = depths_of(lists, seeds, (uint64_t) depths);
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

/* How many vertices a walk has reached after each of its depths */
static void
check_counts(GpuGraph *graph, const Lists &lists)
{
	const std::vector<uint64_t> seeds(1, lists.empty() ? 0 : lists.begin()->first);
	const std::map<uint64_t, uint64_t> depth = depths_of(lists, seeds, UINT64_MAX);
	uint64_t reached[100];
	int64_t nseeds;

	CHECK(walk(graph, seeds, 0, &nseeds) == GPU_OK);
	CHECK(gpu_graph_walk(graph, &stream, 100, reached) == GPU_OK);
	for (uint64_t d = 1; d <= graph->walk.depths; d++)
	{
		uint64_t n = 0;

		for (const auto &vertex : depth)
			n += vertex.second <= d;
		CHECK(reached[d - 1] == n);
	}
	passed++;
}

/* A path is one of the graph, and as long as the walk says. */
static void
check_path(const uint64_t *path, uint64_t n, const Lists &lists, std::map<uint64_t, uint64_t> &depth,
		   uint64_t source, uint64_t target)
{
	CHECK(n == (depth.count(target) ? depth[target] + 1 : 0));
	CHECK(n == 0 || (path[0] == source && path[n - 1] == target));
	for (uint64_t i = 1; i < n; i++)
	{
		const std::vector<uint64_t> &from = lists.at(path[i - 1]);

		CHECK(std::count(from.begin(), from.end(), path[i]) > 0);
	}
}

/* A vertex, or, seldom, what is none */
static uint64_t
random_vertex(const Lists &lists)
{
	if (test_below(10) == 0 || lists.empty())
		return 4711;
	return std::next(lists.begin(), (long) test_below(lists.size()))->first;
}

/* A search from both ends.  none: there is no memory for the edges that lead back. */
static void
check_seek(GpuGraph *graph, const Lists &lists, bool none)
{
	const uint64_t source = random_vertex(lists);
	const uint64_t target = random_vertex(lists);
	std::map<uint64_t, uint64_t> depth = depths_of(lists, { source }, UINT64_MAX);
	int64_t n;

	if (source == target)
		return;
	words[0] = source;
	words[1] = target;
	gpu_copy_bus(&stream.stream, stream.input, words, 2 * sizeof(uint64_t));
	pool.fail_after = none && !graph->both ? (int64_t) test_below(4) : -1;
	CHECK(gpu_graph_seek_begin(graph, &stream, (const uint64_t *) stream.input) == GPU_OK);
	pool.fail_after = -1;
	while (gpu_graph_seeks(graph))
		CHECK(gpu_graph_seek(graph, &stream, 1 + (int64_t) test_below(3)) == GPU_OK);
	CHECK(!none || graph->both || graph->back_walk.depths == 0);
	n = gpu_graph_path_length(graph);
	if (n > 0)
		gpu_graph_path(graph, &stream.stream, (uint64_t *) stream.output);
	check_path((const uint64_t *) fetch(stream.output, (size_t) n * sizeof(uint64_t)), (uint64_t) n, lists,
			   depth, source, target);
	passed++;
}

/* Paths from one vertex to many, read from a walk a piece at a time */
static void
check_paths(GpuGraph *graph, const Lists &lists)
{
	const uint64_t source = random_vertex(lists);
	std::map<uint64_t, uint64_t> depth = depths_of(lists, { source }, UINT64_MAX);
	std::vector<uint64_t> targets(1 + test_below(200));
	const int64_t room = 300 + (int64_t) lists.size();
	int64_t nseeds;
	int64_t said;

	for (auto &target : targets)
		target = random_vertex(lists);
	CHECK(walk(graph, { source }, INT64_MAX - 2, &nseeds) == GPU_OK);
	for (size_t done = 0; done < targets.size(); done += (size_t) said)
	{
		const int64_t left = (int64_t) (targets.size() - done);
		const uint64_t *at;
		int64_t n;

		std::copy(targets.begin() + (long) done, targets.end(), words);
		gpu_copy_bus(&stream.stream, stream.input, words, (size_t) left * sizeof(uint64_t));
		said = gpu_graph_paths(graph, &stream, (const uint64_t *) stream.input, left,
							   (uint64_t *) stream.other, room, (uint64_t *) stream.output, &n);
		CHECK(said > 0 && n <= room);
		at = (const uint64_t *) fetch(stream.output, (size_t) n * sizeof(uint64_t));
		for (int64_t i = 0; i < said; at += 1 + *at, i++)
			check_path(at + 1, *at, lists, depth, source, targets[done + (size_t) i]);
		CHECK(at == words + n);
	}
	passed++;
}

/* The number of vertices of each component is that of the vertices that say so. */
static void
check_sizes(GpuGraph *graph, const uint64_t *pairs)
{
	std::map<uint64_t, uint64_t> sizes;
	const uint64_t *found;

	for (int64_t i = 0; i < graph->n; i++)
		sizes[pairs[2 * i + 1]]++;
	CHECK(gpu_graph_count_sizes(graph, &stream) == GPU_OK);
	CHECK(graph->nsizes == (int64_t) sizes.size());
	found = (const uint64_t *) fetch(graph->sizes.at(), sizes.size() * 2 * sizeof(uint64_t));
	for (const auto &size : sizes)
	{
		CHECK(found[0] == size.first && found[1] == size.second);
		found += 2;
	}
	passed++;
}

static void
check_components(GpuGraph *graph, const Edges &edges)
{
	const Lists lists = lists_of(edges, true);
	const uint64_t *pairs;
	auto vertex = lists.begin();

	CHECK(gpu_graph_connect(graph, &stream) == GPU_OK);
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

		for (const auto &reached : depths_of(lists, { pairs[2 * i] }, UINT64_MAX))
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
	check_sizes(graph, pairs);
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

/* Edges like some others, in another order: some are missing, some are new, and some come twice. */
static Edges
edges_like(const Edges &edges)
{
	static const uint64_t parts[] = { 1, 2, 5, 1000 };
	const uint64_t part = parts[test_below(4)];
	Edges like;

	for (const auto &edge : edges)
	{
		if (test_below(part) > 0 || part == 1)
			like.push_back(edge);
		if (test_below(part) == 0 && part > 1)
			like.push_back({ edge.second, edges[test_below(edges.size())].first });
		if (test_below(part) == 1)
			like.push_back({ edge.first, edge.second + test_below(2) });
	}
	if (part == 1000 && test_below(2) == 0)
		like.clear();
	/* as a scan finds them, by several threads, or in no order */
	if (test_below(2) == 0)
		std::sort(like.begin(), like.end());
	else
		std::shuffle(like.begin(), like.end(), std::mt19937((unsigned) test_below(1000)));
	return like;
}

static int64_t
set_difference(const Edges &edges, const Edges &others)
{
	const std::set<std::pair<uint64_t, uint64_t>> a(edges.begin(), edges.end());
	const std::set<std::pair<uint64_t, uint64_t>> b(others.begin(), others.end());

	return std::count_if(a.begin(), a.end(), [&](const auto &edge) { return b.count(edge) == 0; });
}

/* Makes a graph on the base of another one, which the caller has, or of all its edges and more. */
static uint32_t
make_on(GpuGraph *base, const Edges &edges, bool all, GpuGraph **graph, int64_t *differ)
{
	uint32_t status;

	*graph = gpu_graph_open_on(&pool, 1, base);
	if (*graph == NULL || !gpu_graph_need_marks(*graph, &stream.stream))
		return GPU_NO_MEMORY;
	(*graph)->all = all;
	for (size_t i = 0; i < edges.size();)
	{
		const size_t n = std::min(edges.size() - i, (size_t) (1 + test_below(10000)));

		for (size_t k = 0; k < n; k++)
		{
			words[2 * k] = edges[i + k].first;
			words[2 * k + 1] = edges[i + k].second;
		}
		gpu_copy_bus(&stream.stream, stream.input, words, n * 2 * sizeof(uint64_t));
		gpu_edges_add(&stream, &(*graph)->list, (const uint64_t *) stream.input, (int64_t) n);
		i += n;
	}
	status = gpu_graph_update(*graph, &stream, differ);
	if (status == GPU_OK && *differ == 0)
		gpu_graph_borrow(*graph);
	return status;
}

static void
close_on(GpuGraph *graph)
{
	gpu_graph_return_all(graph);
	gpu_graph_close(graph);
}

/* Asks for everything, until something lacks memory. */
static uint32_t
use_all(const Edges &edges, const Edges &others)
{
	GpuGraph *graph;
	GpuGraph *other = NULL;
	int64_t n;
	uint32_t status = make(edges, false, &graph);

	if (status == GPU_OK)
		status = walk(graph, { 1, 2, 3 }, 3, &n);
	if (status == GPU_OK)
		status = gpu_graph_count_sizes(graph, &stream);
	if (status == GPU_OK)
		status = gpu_graph_need_back(graph, &stream);
	if (status == GPU_OK)
		status = gpu_graph_seek_begin(graph, &stream, (const uint64_t *) stream.input);
	if (status == GPU_OK)
		status = gpu_graph_need_lists(graph, &stream);
	if (status == GPU_OK)
		status = gpu_graph_need_degrees(graph, &stream);
	if (status == GPU_OK)
		status = gpu_graph_begin_ranks(graph, &stream);
	if (status == GPU_OK)
		status = make_on(graph, others, false, &other, &n);
	CHECK(gpu_finish(&stream.stream));
	if (other != NULL)
		close_on(other);
	if (graph != NULL)
		gpu_graph_close(graph);
	return status;
}

/* A graph on the base of another one that has been used; what it makes of the base's arrays is the base's. */
static void
check_update(GpuGraph *base, const Edges &edges)
{
	const bool both = base->both;
	const bool all = test_below(2) == 0;
	const Edges come = edges_like(edges);
	const size_t used = gpu_pool_used(&pool);
	Edges others = come;
	GpuGraph *graph;
	int64_t differ;

	if (all)
		others.insert(others.end(), edges.begin(), edges.end());
	CHECK(make_on(base, come, all, &graph, &differ) == GPU_OK);
	if (all && !both)
		CHECK((differ == 0) == (set_difference(come, edges) == 0));
	if (!all && !both)
		CHECK((differ == 0) ==
			  (set_difference(edges, others) + set_difference(others, edges) == 0 &&
			   (size_t) base->m == std::set<Edges::value_type>(edges.begin(), edges.end()).size()));
	check_walk(graph, lists_of(others, both));
	check_components(graph, others);
	check_triangles(graph, others);
	for (int i = 0; i < 3; i++)
		check_seek(graph, lists_of(others, both), false);
	gpu_graph_rest(graph);
	CHECK(differ == 0 || gpu_pool_used(&pool) == used + gpu_graph_bytes(graph));
	if (differ == 0)
		gpu_graph_lend(graph, base);
	close_on(graph);
	CHECK(gpu_graph_bytes(base) == gpu_pool_used(&pool));
}

/* Lists for which there is no memory leave none taken. */
static void
check_no_lists(const Edges &edges)
{
	uint32_t status = GPU_NO_MEMORY;
	GpuGraph *graph;
	size_t used;

	CHECK(make(edges, false, &graph) == GPU_OK);
	gpu_graph_rest(graph);
	used = gpu_pool_used(&pool);
	for (int64_t fails = 0; status == GPU_NO_MEMORY; fails++)
	{
		pool.fail_after = fails;
		status = gpu_graph_need_lists(graph, &stream);
		pool.fail_after = -1;
		gpu_graph_rest(graph);
		CHECK(fails > 4 || status == GPU_NO_MEMORY);
		CHECK(status == GPU_OK || gpu_pool_used(&pool) == used);
	}
	CHECK(status == GPU_OK);
	gpu_graph_close(graph);
	passed++;
}

#include "gpu_graph_weights.h"

/* Each allocation fails once; all memory is given back. */
static void
check_memory(const Edges &edges)
{
	const Edges others = random_edges(100);
	int64_t fails = 0;

	do
	{
		pool.fail_after = fails++;
		CHECK(fails < 100);
	} while (use_all(edges, others) == GPU_NO_MEMORY);
	pool.fail_after = -1;
	CHECK(fails > 20 && gpu_pool_used(&pool) == 0);
	passed++;
}

/* The degrees of a graph, which has equal edges as often as they are there. */
static void
check_degrees(GpuGraph *graph, const Edges &edges)
{
	std::map<uint64_t, std::pair<uint64_t, uint64_t>> degrees;
	const uint64_t *told;

	for (const auto &edge : edges)
	{
		degrees[edge.first].first++;
		degrees[edge.second].second++;
	}
	CHECK(graph->n == (int64_t) degrees.size());
	CHECK(gpu_graph_need_degrees(graph, &stream) == GPU_OK);
	gpu_graph_tell_degrees(graph, &stream.stream, 0, graph->n, (uint64_t *) stream.output);
	told = (const uint64_t *) fetch(stream.output, (size_t) graph->n * 3 * sizeof(uint64_t));
	for (int64_t i = 0; i < graph->n; i++)
	{
		const auto &is = degrees.at(told[3 * i]);

		CHECK(told[3 * i + 1] == is.first && told[3 * i + 2] == is.second);
	}
	passed++;
}

/* Ranks by as many iterations of the plain sums. */
static std::map<uint64_t, double>
plain_ranks(const Edges &edges, double damping, int64_t iterations)
{
	std::map<uint64_t, double> rank;
	std::map<uint64_t, uint64_t> out;

	for (const auto &edge : edges)
	{
		rank[edge.first] = rank[edge.second] = 0;
		out[edge.first]++;
	}
	for (auto &vertex : rank)
		vertex.second = 1.0 / (double) rank.size();
	for (; iterations > 0; iterations--)
	{
		double lost = 0;
		std::map<uint64_t, double> next;

		for (const auto &vertex : rank)
			lost += out.count(vertex.first) ? 0 : vertex.second;
		for (const auto &vertex : rank)
			next[vertex.first] = (1 - damping + damping * lost) / (double) rank.size();
		for (const auto &edge : edges)
			next[edge.second] += damping * rank[edge.first] / (double) out[edge.first];
		rank = next;
	}
	return rank;
}

static void
check_ranks(GpuGraph *graph, const Edges &edges)
{
	const double damping = (double) test_below(101) / 100;
	const double tolerance = test_below(2) ? 0 : 1e-3;
	const int64_t most = 1 + (int64_t) test_below(5);
	int64_t all = 0;
	int64_t did = 1;
	double difference = 0; /* of the last two iterations */
	const uint64_t *told;

	CHECK(gpu_graph_begin_ranks(graph, &stream) == GPU_OK);
	while (did > 0)
	{
		CHECK(gpu_graph_go_on_ranks(graph, &stream, damping, tolerance, std::min(most - all, (int64_t) 2),
									&did) == GPU_OK);
		all += did;
	}
	CHECK(all == most || graph->ranks.difference <= tolerance);
	const std::map<uint64_t, double> ranks = plain_ranks(edges, damping, all);
	for (const auto &before : plain_ranks(edges, damping, all - 1))
		difference += fabs(ranks.at(before.first) - before.second);
	CHECK(fabs(difference - graph->ranks.difference) < 1e-9);
	gpu_graph_tell_ranks(graph, &stream.stream, 0, graph->n, (uint64_t *) stream.output);
	told = (const uint64_t *) fetch(stream.output, (size_t) graph->n * 2 * sizeof(uint64_t));
	for (int64_t i = 0; i < graph->n; i++)
	{
		double rank;

		memcpy(&rank, &told[2 * i + 1], sizeof(rank));
		CHECK(fabs(rank - ranks.at(told[2 * i])) < 1e-12);
	}
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
	CHECK(gpu_graph_need_walk(graph, &stream) == GPU_OK);
	check_seek(graph, lists_of(edges, both), true);
	gpu_graph_rest(graph);
	if (!both)
	{
		check_degrees(graph, edges);
		check_ranks(graph, edges);
		gpu_graph_rest(graph);
	}
	check_update(graph, edges);
	check_components(graph, edges);
	check_walk(graph, lists_of(edges, both));
	check_triangles(graph, edges);
	for (int i = 0; i < 10; i++)
		check_seek(graph, lists_of(edges, both), false);
	check_paths(graph, lists_of(edges, both));
	check_counts(graph, lists_of(edges, both));
	/* as the next owner of a graph that is kept finds it */
	gpu_graph_rest(graph);
	CHECK(gpu_graph_bytes(graph) == gpu_pool_used(&pool));
	check_walk(graph, lists_of(edges, both));
	check_components(graph, edges);
	check_triangles(graph, edges);
	gpu_graph_rest(graph);
	check_update(graph, edges);
	check_update(graph, edges);
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
	const int rounds = small ? 1 : argc > 1 ? atoi(argv[1]) : 3;
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
		for (int i = 0; i < (small ? 10 : 20); i++)
		{
			check_graph(small ? 300 : i % 2 == 0 ? 100 : MOST_EDGES);
			check_weighted(small ? 300 : i % 2 == 0 ? 100 : MOST_EDGES);
		}
		check_weights();
		check_weighted_memory(random_edges(100));
		check_memory(random_edges(100));
		check_no_lists(random_edges(100));
	}
	CHECK(gpu_pool_used(&pool) == 0);
	gpu_scan_stream_close(&stream);
	gpu_pool_close(&pool);
	gpu_host_free(words);
	printf("%s\n%d passed, 0 failed\n", card.name, passed);
	return 0;
}
