/*-------------------------------------------------------------------------
 *
 * graph_search.c
 *	  What searches of graphs keep (kernels/graph): numbers of vertices and a heap of costs, against plain
 *	  arrays.
 *
 *	  graph_search [ROUNDS [SEED]]
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"
#include "kernels/graph/cost_heap.h"
#include "kernels/graph/vertex_map.h"

#define MOST 3000

/* A random code, of few; wide: they differ in more than their low 32 bits, and are often alike in these. */
static void
random_code(int words, bool wide, uint64_t *code)
{
	const uint64_t value = test_below(MOST / 2);

	for (int i = 0; i < words; i++)
		code[i] = UINT64_C(1) << 63;
	code[words - 1] |= wide ? value % 8 | value / 8 << 32 : value;
	if (wide && words == 2)
		code[0] += test_below(3);
}

/* The number of a code among n; n: it has none. */
static uint32_t
find_plain(const uint64_t *codes, uint32_t n, const uint64_t *code, int words)
{
	for (uint32_t i = 0; i < n; i++)
	{
		if (memcmp(codes + i * words, code, words * sizeof(uint64_t)) == 0)
			return i;
	}
	return n;
}

/* Gives a map that is full more memory, or a new one its first. */
static void
grow(VertexMap *map)
{
	map->most = map->most * 3 / 2 + 5;
	map->nslots = map->most + map->most / 3 + 1;
	map->codes = realloc(map->codes, map->most * map->words * sizeof(uint64_t));
	free(map->slots);
	map->slots = malloc(map->nslots * sizeof(uint64_t));
	CHECK(map->codes && map->slots);
	vertex_map_rebuild(map);
}

/* Numbers n codes, some of them in one call, and compares each. */
static void
check_numbers(VertexMap *map, const uint64_t *codes, int64_t n)
{
	uint64_t *plain = malloc(n * map->words * sizeof(uint64_t) + 1);
	uint32_t *numbers = malloc(n * sizeof(uint32_t) + 1);
	uint32_t nplain = 0;
	int64_t done = 0;

	CHECK(plain && numbers);
	while (done < n)
	{
		const int64_t some = 1 + (int64_t) test_below((uint64_t) (n - done));
		const int64_t added = vertex_map_add(map, codes + done * map->words, some, numbers + done);

		if (added < some)
			grow(map);
		done += added;
	}
	for (int64_t i = 0; i < n; i++)
	{
		const uint32_t number = find_plain(plain, nplain, codes + i * map->words, map->words);

		CHECK(numbers[i] == number);
		if (number == nplain)
			memcpy(plain + nplain++ * map->words, codes + i * map->words, map->words * sizeof(uint64_t));
	}
	CHECK(map->n == nplain);
	for (int i = 0; i < 100; i++)
	{
		uint64_t code[2];
		uint32_t number;
		uint32_t right;

		random_code(map->words, test_below(2), code);
		right = find_plain(plain, nplain, code, map->words);
		vertex_map_find(map, code, 1, &number);
		CHECK(number == (right < nplain ? right : VERTEX_NONE));
	}
	free(plain);
	free(numbers);
}

/* A map is used, cleared and used again. */
static void
check_map(void)
{
	VertexMap map = { .words = 1 + (int) test_below(2) };
	uint64_t *codes = malloc((size_t) MOST * map.words * sizeof(uint64_t));

	CHECK(codes != NULL);
	grow(&map);
	for (int round = 0; round < 5; round++)
	{
		const int64_t n = (int64_t) test_below(test_below(2) ? 20 : MOST);
		const int64_t narrow = test_below(2) ? n : (int64_t) test_below((uint64_t) n + 1);

		for (int64_t i = 0; i < n; i++)
			random_code(map.words, i >= narrow, codes + i * map.words);
		check_numbers(&map, codes, n);
		vertex_map_clear(&map);
		CHECK(map.n == 0);
		for (uint64_t i = 0; i < map.nslots; i++)
			CHECK(map.slots[i] == UINT64_MAX);
	}
	free(codes);
	free(map.codes);
	free(map.slots);
}

/* Vertices come and go, and become cheaper; the one that is taken is always the cheapest. */
static void
check_heap(void)
{
	static double costs[MOST];
	static uint32_t places[MOST];
	static uint32_t numbers[MOST];
	CostHeap heap = { numbers, places, costs, 0 };
	const uint32_t n = 1 + (uint32_t) test_below(50);

	for (uint32_t i = 0; i < n; i++)
	{
		places[i] = COST_HEAP_OUTSIDE;
		costs[i] = 1000;
	}
	for (int step = 0; step < 500; step++)
	{
		const uint32_t vertex = (uint32_t) test_below(n);

		if (heap.n > 0 && test_below(3) == 0)
		{
			const uint32_t least = cost_heap_take(&heap);

			CHECK(places[least] == COST_HEAP_OUTSIDE);
			for (uint32_t i = 0; i < heap.n; i++)
				CHECK(costs[numbers[i]] >= costs[least]);
			continue;
		}
		costs[vertex] -= (double) test_below(30);
		cost_heap_add(&heap, vertex);
		for (uint32_t i = 0; i < heap.n; i++)
			CHECK(places[numbers[i]] == i);
	}
}

int
main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1;

	test_seed = argc > 2 ? (uint64_t) atoll(argv[2]) : 1;
	for (int round = 0; round < 30 * rounds; round++)
	{
		check_map();
		check_heap();
	}
	printf("%d maps and heaps\n", 30 * rounds);
	return 0;
}
