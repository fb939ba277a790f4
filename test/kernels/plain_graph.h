/*-------------------------------------------------------------------------
 *
 * plain_graph.h
 *	  Plain searches of a graph, which answers are compared with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TEST_PLAIN_GRAPH_H
#define TEST_PLAIN_GRAPH_H

#include <map>
#include <queue>
#include <vector>

/* The neighbours of each vertex, in containers of Lists's: edges have a first and a second vertex. */
template <class Lists, class Edges>
static Lists
plain_lists(const Edges &edges, bool both)
{
	Lists lists;

	for (const auto &edge : edges)
	{
		auto &next = lists[edge.first];
		auto &back = lists[edge.second];

		next.insert(next.end(), edge.second);
		if (both)
			back.insert(back.end(), edge.first);
	}
	return lists;
}

/* Depths of the seeds, whether the graph has them or not, and of all vertices that they lead to. */
template <class Lists, class Seeds>
static std::map<uint64_t, uint64_t>
plain_walk(const Lists &lists, const Seeds &seeds, uint64_t depths)
{
	std::map<uint64_t, uint64_t> depth;
	std::vector<uint64_t> queue;

	for (uint64_t seed : seeds)
	{
		if (depth.emplace(seed, 0).second)
			queue.push_back(seed);
	}
	for (size_t i = 0; i < queue.size() && depth[queue[i]] < depths; i++)
	{
		const auto list = lists.find(queue[i]);

		if (list == lists.end())
			continue;
		for (uint64_t next : list->second)
		{
			if (depth.emplace(next, depth[queue[i]] + 1).second)
				queue.push_back(next);
		}
	}
	return depth;
}

typedef std::vector<std::pair<uint64_t, uint64_t>> Costs; /* of edges from a vertex: target and weight */
typedef std::map<uint64_t, Costs> CostLists;

/* What the best paths from a vertex cost. */
static std::map<uint64_t, uint64_t>
plain_costs(const CostLists &lists, uint64_t source)
{
	typedef std::pair<uint64_t, uint64_t> Next; /* cost and vertex */
	std::priority_queue<Next, std::vector<Next>, std::greater<Next>> queue;
	std::map<uint64_t, uint64_t> cost;

	for (queue.push({ 0, source }); !queue.empty();)
	{
		const Next next = queue.top();
		const auto list = lists.find(next.second);

		queue.pop();
		if (!cost.emplace(next.second, next.first).second || list == lists.end())
			continue;
		for (const auto &to : list->second)
		{
			if (!cost.count(to.first))
				queue.push({ next.first + to.second, to.first });
		}
	}
	return cost;
}

#endif /* TEST_PLAIN_GRAPH_H */
