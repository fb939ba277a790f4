/*-------------------------------------------------------------------------
 *
 * gpu_kept_graph_answers.h
 *	  Answers of an owner's graph against plain searches of the edges that it may have.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_GPU_KEPT_GRAPH_ANSWERS_H
#define TEST_GPU_KEPT_GRAPH_ANSWERS_H

#include "gpu_kept_graph_requests.h"
#include "plain_graph.h"

typedef std::map<uint64_t, std::set<uint64_t>> Lists;

static int64_t routes = 0;

static Lists
lists_of(const Edges &edges, bool both)
{
	return plain_lists<Lists>(edges, both);
}

static bool
has_odd(const Edges &edges)
{
	return std::any_of(edges.begin(), edges.end(),
					   [](const Edge &edge) { return edge.weight == GPU_NO_WEIGHT; });
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
	const std::map<uint64_t, uint64_t> depth = plain_walk(lists_of(of->may_be[0], of->both),
														  std::set<uint64_t>{ seed }, UINT64_MAX);

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
			  const std::map<uint64_t, uint64_t> depth = plain_walk(lists, std::set<uint64_t>{ source },
																	UINT64_MAX);
			  const auto end = depth.find(target);
			  bool is = length == (end == depth.end() ? 0 : (int64_t) end->second + 1);

			  for (int64_t i = 1; is && i < length; i++)
				  is = lists.at(words[i - 1]).count(words[i]) > 0;
			  return is;
		  });
}

static CostLists
cost_lists_of(const Edges &edges, bool both)
{
	CostLists lists;

	for (const Edge &edge : edges)
	{
		lists[edge.first].push_back({ edge.second, edge.weight });
		if (both)
			lists[edge.second].push_back({ edge.first, edge.weight });
	}
	return lists;
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
			  const std::map<uint64_t, uint64_t> cost = plain_costs(cost_lists_of(edges, of->both), source);
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
				  for (const auto &at : plain_walk(lists, std::set<uint64_t>{ vertex.first }, UINT64_MAX))
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

#endif /* TEST_GPU_KEPT_GRAPH_ANSWERS_H */
