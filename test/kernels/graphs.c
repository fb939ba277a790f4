/*-------------------------------------------------------------------------
 *
 * graphs.c
 *	  Algorithms on graphs (kernels/graph), against plain ones on random graphs, with memory running out and
 *	  with a host that stops.
 *
 *	  graphs [ROUNDS [SEED]]
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "common.h"
#include "kernels/graph/graph_algorithms.h"

/* Pieces of memory at a time; there are fewer. */
#define PIECES 64

/* The host: which pieces of memory there are, and how many calls it lets succeed. */
typedef struct TestHost
{
	void *piece[PIECES];
	int64_t calls;
} TestHost;

/* The place of a piece, or a free one for NULL. */
static void **
find_piece(TestHost *host, const void *memory)
{
	for (int i = 0; i < PIECES; i++)
	{
		if (host->piece[i] == memory)
			return &host->piece[i];
	}
	CHECK(!"a piece is not the host's");
	return NULL;
}

static void *
host_resize(void *context, void *memory, size_t bytes)
{
	TestHost *host = context;
	void **piece = find_piece(host, memory);

	if (host->calls-- == 0)
		return NULL;
	*piece = realloc(memory, bytes);
	return *piece;
}

static void
host_release(void *context, void *memory)
{
	CHECK(memory != NULL);
	*find_piece(context, memory) = NULL;
	free(memory);
}

static bool
host_proceed(void *context)
{
	TestHost *host = context;

	return host->calls-- != 0;
}

static GraphHost
host_begin(TestHost *context, int64_t calls)
{
	memset(context, 0, sizeof(*context));
	context->calls = calls;
	return (GraphHost){ host_resize, host_release, host_proceed, context, GRAPH_OK };
}

/* Frees what is left; returns how many pieces that was. */
static int
host_end(TestHost *host)
{
	int left = 0;

	for (int i = 0; i < PIECES; i++)
	{
		left += host->piece[i] != NULL;
		free(host->piece[i]);
	}
	return left;
}

/* A random graph, by numbers of vertices, each of which has a code. */
typedef struct TestGraph
{
	uint32_t nvertices;
	uint64_t n; /* edges */
	uint32_t *a;
	uint32_t *b;
	uint64_t *codes;
	int words; /* of a code */
} TestGraph;

static int
compare_words(const void *x, const void *y)
{
	const uint64_t a = *(const uint64_t *) x;
	const uint64_t b = *(const uint64_t *) y;

	return a < b ? -1 : a > b;
}

/* Numbers the vertices that have edges without gaps. */
static void
renumber(TestGraph *g, uint32_t most)
{
	uint32_t *number = malloc(most * sizeof(uint32_t));

	memset(number, 0xFF, most * sizeof(uint32_t));
	g->nvertices = 0;
	for (uint64_t i = 0; i < 2 * g->n; i++)
	{
		uint32_t *vertex = i % 2 == 0 ? &g->a[i / 2] : &g->b[i / 2];

		if (number[*vertex] == UINT32_MAX)
			number[*vertex] = g->nvertices++;
		*vertex = number[*vertex];
	}
	free(number);
}

/* Some of most vertices have many edges. */
static TestGraph
make_graph(uint32_t most, uint64_t n, bool sorted)
{
	TestGraph g = { .n = n, .words = 1 + (int) test_below(2) };
	const uint32_t hubs = 1 + (uint32_t) test_below(most);
	uint64_t *pairs = malloc((n + 1) * sizeof(uint64_t));

	g.a = malloc((n + 1) * sizeof(uint32_t));
	g.b = malloc((n + 1) * sizeof(uint32_t));
	for (uint64_t i = 0; i < n; i++)
		pairs[i] = test_below(test_below(2) ? hubs : most) << 32 | test_below(test_below(2) ? hubs : most);
	if (sorted)
		qsort(pairs, n, sizeof(uint64_t), compare_words);
	for (uint64_t i = 0; i < n; i++)
	{
		g.a[i] = (uint32_t) (pairs[i] >> 32);
		g.b[i] = (uint32_t) pairs[i];
	}
	free(pairs);
	renumber(&g, most);
	g.codes = malloc((2 * (size_t) g.nvertices + 1) * sizeof(uint64_t));
	for (uint32_t i = 0; i < 2 * g.nvertices; i++)
		g.codes[i] = g.words == 2 && i % 2 == 0 ? test_below(3) : test_random();
	return g;
}

static void
free_graph(TestGraph *g)
{
	free(g->a);
	free(g->b);
	free(g->codes);
}

/* What is asked of a graph, and what came. */
typedef struct TestAnswers
{
	GraphDegrees degrees;
	GraphComponents components;
	GraphEdges edges[3];
	uint32_t *least;
	uint64_t *of_vertex;
	uint64_t total[2];
	double *rank;
	GraphPagerank pagerank;
} TestAnswers;

static bool
add_edges(GraphHost *host, const TestGraph *g, TestAnswers *answers)
{
	uint32_t n = 0;

	for (uint64_t i = 0; i < g->n;)
	{
		const uint64_t most = 1 + test_below(500);
		const int64_t k = (int64_t) (g->n - i < most ? g->n - i : most);

		for (uint64_t j = i; j < i + (uint64_t) k; j++)
		{
			n = g->a[j] < n ? n : g->a[j] + 1;
			n = g->b[j] < n ? n : g->b[j] + 1;
		}
		if (!graph_degrees_add(host, &answers->degrees, n, g->a + i, g->b + i, k) ||
			!graph_components_add(host, &answers->components, n, g->a + i, g->b + i, k))
			return false;
		for (int e = 0; e < 3; e++)
		{
			if (!graph_edges_add(host, &answers->edges[e], g->a + i, g->b + i, k))
				return false;
		}
		i += (uint64_t) k;
	}
	return true;
}

static bool
answer(GraphHost *host, const TestGraph *g, TestAnswers *answers)
{
	const uint32_t n = g->nvertices;

	memset(answers, 0, sizeof(*answers));
	answers->pagerank = (GraphPagerank){ .damping = 0.85, .tolerance = 1e-12, .most = 1000 };
	if (!add_edges(host, g, answers))
		return false;
	answers->least = graph_components_least(host, &answers->components, g->codes, g->words);
	answers->of_vertex = answers->least ? graph_allocate(host, n, sizeof(uint64_t), false) : NULL;
	if (answers->of_vertex == NULL ||
		!graph_triangles(host, n, &answers->edges[0], &answers->total[0], NULL) ||
		!graph_triangles(host, n, &answers->edges[1], &answers->total[1], answers->of_vertex))
		return false;
	answers->rank = graph_pagerank(host, n, &answers->edges[2], &answers->pagerank);
	return answers->rank != NULL;
}

static void
free_answers(GraphHost *host, TestAnswers *answers)
{
	void *pieces[] = { answers->degrees.out, answers->degrees.in, answers->components.parent,
					   answers->least,       answers->of_vertex,  answers->rank };

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
	{
		if (pieces[i])
			host->release(host->context, pieces[i]);
	}
}

static void
check_degrees(const TestGraph *g, const TestAnswers *answers)
{
	uint64_t *degree = calloc(2 * (size_t) g->nvertices + 1, sizeof(uint64_t));

	for (uint64_t i = 0; i < g->n; i++)
	{
		degree[2 * g->a[i]]++;
		degree[2 * g->b[i] + 1]++;
	}
	for (uint32_t v = 0; v < g->nvertices; v++)
		CHECK(answers->degrees.out[v] == degree[2 * v] && answers->degrees.in[v] == degree[2 * v + 1]);
	free(degree);
}

/* The one of two vertices that has the lesser code. */
static uint32_t
lesser(const TestGraph *g, uint32_t a, uint32_t b)
{
	for (int i = 0; i < g->words; i++)
	{
		const uint64_t x = g->codes[a * (size_t) g->words + (size_t) i];
		const uint64_t y = g->codes[b * (size_t) g->words + (size_t) i];

		if (x != y)
			return x < y ? a : b;
	}
	CHECK(a == b);
	return a;
}

/* By spreading the least vertex along edges until nothing changes. */
static void
check_components(const TestGraph *g, const TestAnswers *answers)
{
	uint32_t *least = malloc((g->nvertices + 1) * sizeof(uint32_t));
	bool changed = true;

	for (uint32_t v = 0; v < g->nvertices; v++)
		least[v] = v;
	while (changed)
	{
		changed = false;
		for (uint64_t i = 0; i < g->n; i++)
		{
			uint32_t *a = &least[g->a[i]];
			uint32_t *b = &least[g->b[i]];

			changed |= *a != *b;
			*a = *b = lesser(g, *a, *b);
		}
	}
	for (uint32_t v = 0; v < g->nvertices; v++)
		CHECK(answers->least[v] == least[v]);
	free(least);
}

/* For each pair of neighbours of each vertex: are they neighbours? */
static void
check_triangles(const TestGraph *g, const TestAnswers *answers)
{
	const uint64_t n = g->nvertices;
	uint8_t *joined = calloc(n + 1, n + 1);
	uint64_t total = 0;

	for (uint64_t i = 0; i < g->n; i++)
		joined[g->a[i] * n + g->b[i]] = joined[g->b[i] * n + g->a[i]] = g->a[i] != g->b[i];
	for (uint64_t u = 0; u < n; u++)
	{
		uint32_t *list = malloc(n * sizeof(uint32_t));
		uint64_t found = 0;
		uint32_t k = 0;

		for (uint64_t v = 0; v < n; v++)
		{
			if (joined[u * n + v])
				list[k++] = (uint32_t) v;
		}
		for (uint32_t x = 0; x < k; x++)
		{
			for (uint32_t y = 0; y < x; y++)
				found += joined[list[x] * n + list[y]];
		}
		CHECK(answers->of_vertex[u] == found);
		total += found;
		free(list);
	}
	CHECK(answers->total[0] == total / 3 && answers->total[1] == total / 3);
	free(joined);
}

/* The ranks are what one more iteration, over the edges as they are, makes of them. */
static void
check_pagerank(const TestGraph *g, const TestAnswers *answers)
{
	const uint32_t n = g->nvertices;
	double *next = calloc((size_t) n + 1, sizeof(double));
	double sum = 0;
	double lost = 0;

	CHECK(n == 0 ? answers->pagerank.done < 2 : answers->pagerank.difference <= 1e-12);
	for (uint64_t i = 0; i < g->n; i++)
	{
		const uint32_t a = g->a[i];

		next[g->b[i]] += answers->rank[a] / (double) answers->degrees.out[a];
	}
	for (uint32_t v = 0; v < n; v++)
	{
		sum += answers->rank[v];
		lost += answers->degrees.out[v] == 0 ? answers->rank[v] : 0;
	}
	CHECK(n == 0 || fabs(sum - 1) < 1e-9);
	for (uint32_t v = 0; v < n; v++)
		CHECK(fabs(0.15 / n + 0.85 * (next[v] + lost / n) - answers->rank[v]) < 1e-11);
	free(next);
}

static void
check(const TestGraph *g)
{
	TestHost context;
	GraphHost host = host_begin(&context, -1);
	TestAnswers answers;

	CHECK(answer(&host, g, &answers));
	check_degrees(g, &answers);
	check_components(g, &answers);
	check_triangles(g, &answers);
	check_pagerank(g, &answers);
	free_answers(&host, &answers);
	CHECK(host_end(&context) == 0);
}

/* A host that fails at one call after the other: there is a reason, and never an answer. */
static void
check_failing(const TestGraph *g)
{
	for (int64_t calls = 0;; calls++)
	{
		TestHost context;
		GraphHost host = host_begin(&context, calls);
		TestAnswers answers;
		const bool done = answer(&host, g, &answers);

		CHECK(done == (context.calls >= 0));
		CHECK(done == (host.status == GRAPH_OK));
		host_end(&context);
		if (done)
			return;
	}
}

int
main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1;

	test_seed = argc > 2 ? (uint64_t) atoll(argv[2]) : 1;
	for (int round = 0; round < 60 * rounds; round++)
	{
		TestGraph g = make_graph(1 + (uint32_t) test_below(150), test_below(test_below(2) ? 30 : 4000),
								 test_below(4) != 0);

		check(&g);
		if (round % 20 == 0)
			check_failing(&g);
		free_graph(&g);
	}
	for (int round = 0; round < rounds; round++)
	{
		/* more vertices than the core of triangles has, and lists that are compared as rows */
		TestGraph g = make_graph(6000, 120000, true);

		check(&g);
		free_graph(&g);
	}
	printf("%d graphs\n", 61 * rounds);
	return 0;
}
