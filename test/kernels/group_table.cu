/*-------------------------------------------------------------------------
 *
 * group_table.cu
 *	  The table of groups (kernels/runtime/group_table.h) with threads for those of a launch, where the
 *	  thread sanitizer has its eye on it.
 *
 *	  usage: group_table [rounds [seed]]
 *
 * Threads look for few and many groups at once, at one place of the table and at many, and add to them.
 * What must hold: what all slots of a group have together is what was added, no thread has waited for a slot
 * for ever, and only a table without free slots nearby has no room.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_EMULATED
#define GPU_EMULATED
#endif

#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common.h"
#include "kernels/runtime/group_table.h"

#define THREADS 8
#define ADDED 4000 /* by each thread */

static const AggColumn integer_column = { AGG_COLUMN_INTEGER, ENTRY_SPILL_BITS, 64, 0, 1, 0, 0, 0, 0 };

/* What a thread has added, and what it had no room for. */
struct Share
{
	std::map<std::pair<uint64_t, uint32_t>, std::pair<uint64_t, uint64_t>> groups; /* rows and sum */
	uint64_t without_slot;
};

static void
add(const GpuGroupTable *table, uint64_t seed, uint64_t keys, int thread, Share *share)
{
	for (int i = 0; i < ADDED; i++)
	{
		uint64_t random = seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		uint64_t number = (random >> 33) % keys;
		GpudsEntry key = { number * UINT64_C(0x9E3779B97F4A7C15), number, number << ENTRY_SPILL_SHIFT };
		uint32_t label = (uint32_t) (random >> 20) & 1;
		const uint64_t name = key.w0;
		uint64_t side[GROUP_SIDE_WORDS] = {};
		uint64_t *slot;
		PartialAgg sum = partial_agg_empty();

		/* groups that the key does not tell apart are told apart by the last word of side values */
		if (table->nside > 0)
		{
			side[table->nside - 1] = name;
			key = { 0, 0, 0 };
		}
		slot = table->find(key, label, side, (uint64_t) thread + (random >> 40));
		share->without_slot += slot == NULL;
		if (slot == NULL)
			continue;
		partial_agg_add_bits(&sum, &integer_column, random >> 8);
		gpu_atomic_add64(&slot[GROUP_ROWS], 1);
		GpuGroupTable::add(&slot[GROUP_PARTIAL], integer_column, sum);
		share->groups[{ name, label }].first++;
		share->groups[{ name, label }].second += random >> 8;
	}
}

/* Takes what slots have from what was added; how many are taken. */
static uint32_t
check(const GpuGroupTable *table, std::vector<Share> *shares)
{
	std::map<std::pair<uint64_t, uint32_t>, std::pair<uint64_t, uint64_t>> groups;
	std::vector<uint64_t> copies((size_t) table->slots * group_slot_words(table->nterms, table->nside));
	uint32_t taken = 0;
	GpuGroupTake take = { *table, copies.data(), &taken };

	for (const Share &share : *shares)
	{
		for (const auto &group : share.groups)
		{
			groups[group.first].first += group.second.first;
			groups[group.first].second += group.second.second;
		}
	}
	for (uint32_t i = 0; i < table->slots; i++)
		take(i);
	for (uint32_t i = 0; i < taken; i++)
	{
		const uint64_t *slot = &copies[i * group_slot_words(table->nterms, table->nside)];
		uint64_t number = slot[table->nside == 0 ? (size_t) GROUP_W0 : group_slot_side(1) + table->nside - 1];
		auto &group = groups[{ number, (uint32_t) slot[GROUP_LABEL] }];
		PartialAgg sum;

		memcpy(&sum, &slot[GROUP_PARTIAL], sizeof(sum));
		CHECK(sum.n == slot[GROUP_ROWS] && sum.min <= sum.max && sum.n > 0);
		group.first -= sum.n;
		group.second -= (sum.high << 32) + sum.low;
	}
	for (const auto &group : groups)
		CHECK(group.second.first == 0 && group.second.second == 0);
	return taken;
}

static void
run(uint64_t keys, uint32_t slots, uint32_t spread)
{
	const uint32_t nside = (uint32_t) test_below(GROUP_SIDE_WORDS + 1);
	std::vector<uint64_t> words((size_t) slots * group_slot_words(1, nside));
	GpuGroupTable table = { words.data(), slots, spread, 1, nside };
	std::vector<Share> shares(THREADS);
	std::vector<std::thread> threads;
	uint64_t without_slot = 0;
	uint32_t taken;

	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(add, &table, test_random(), keys, i, &shares[(size_t) i]);
	for (std::thread &thread : threads)
		thread.join();
	taken = check(&table, &shares);
	for (const Share &share : shares)
		without_slot += share.without_slot;
	CHECK(taken <= slots &&
		  (without_slot == 0 || taken >= (slots < GPU_GROUP_LOOKS ? slots : GPU_GROUP_LOOKS)));
	CHECK(2 * keys * spread > slots / 2 || without_slot == 0);
}

int
main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3;
	int passed = 0;

	test_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (int r = 0; r < rounds; r++)
	{
		for (uint64_t keys = 1; keys <= 4096; keys *= 8)
		{
			for (uint32_t spread = 1; spread <= 64; spread *= 8)
			{
				run(keys, 64, spread);
				run(keys, 4096, spread);
				passed += 2;
			}
		}
	}
	printf("%d passed, 0 failed\n", passed);
	return 0;
}
