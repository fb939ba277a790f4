/*-------------------------------------------------------------------------
 *
 * hash_groups.c
 *	  Groups of entries whose rows do not follow each other.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "executor/nodeHash.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "reader/hash_groups.h"

/* Groups that there is room for at least, whatever hash_mem says, and at first at most. */
#define LEAST_GROUPS 256
#define FIRST_GROUPS (32 * 1024)

/* The table has so many places for each group, at least: few groups are where another one should be. */
#define PLACES_OF_GROUP 2

/* A word's part of a hash.  No part waits for another one. */
static inline uint64
mix(uint64 word, uint64 factor)
{
	return (word ^ word >> 32) * factor;
}

static inline uint32
hash_key(const GpudsHashGroups *groups, const GpudsGroupKey *key)
{
	uint64 hash = mix(key->run, UINT64CONST(0x9E3779B97F4A7C15)) +
				  mix(key->entry.w0, UINT64CONST(0xBF58476D1CE4E5B9)) +
				  mix(key->entry.w1, UINT64CONST(0x94D049BB133111EB)) +
				  mix(key->entry.t, UINT64CONST(0xD6E8FEB86659FD93));

	for (int i = 0; i < groups->nside; i++)
		hash = (hash ^ hash >> 32) * UINT64CONST(0x9E3779B97F4A7C15) + key->side[i];
	hash = (hash ^ hash >> 32) * UINT64CONST(0xff51afd7ed558ccd);
	return (uint32) (hash >> 32);
}

/* Bytes that a group takes in the arrays and, at the table's lowest load, in the table. */
static size_t
bytes_of_group(int nagg)
{
	return sizeof(GpudsHashGroup) + nagg * sizeof(PartialAgg) + 4 * sizeof(uint64);
}

static void
set_size(GpudsHashGroups *groups, int64 size)
{
	const size_t bytes = size * sizeof(GpudsHashGroup);
	const size_t partial_bytes = Max(size * groups->nagg * sizeof(PartialAgg), 1);

	if (groups->groups)
	{
		groups->groups = repalloc_huge(groups->groups, bytes);
		groups->partial = repalloc_huge(groups->partial, partial_bytes);
	}
	else
	{
		groups->groups = MemoryContextAllocHuge(groups->context, bytes);
		groups->partial = MemoryContextAllocHuge(groups->context, partial_bytes);
	}
	groups->size = size;
}

/* The place of a hash in the table, if no other group has it. */
static inline uint32
home_of(const GpudsHashGroups *groups, uint32 hash)
{
	return hash & groups->mask;
}

static inline uint32
next_place(const GpudsHashGroups *groups, uint32 place)
{
	return (place + 1) & groups->mask;
}

/* Puts a group into the table, which has room. */
static void
put(GpudsHashGroups *groups, uint64 slot)
{
	uint32 place = home_of(groups, slot >> 32);

	while (groups->table[place] != 0)
		place = next_place(groups, place);
	groups->table[place] = slot;
}

/* Makes the table one of at least so many places, and a power of two, with the groups that it has. */
static void
set_places(GpudsHashGroups *groups, uint64 least)
{
	uint64 *old = groups->table;
	const uint64 nold = old ? (uint64) groups->mask + 1 : 0;
	const uint64 places = pg_nextpower2_64(least);

	groups->table = MemoryContextAllocExtended(groups->context, places * sizeof(uint64),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	groups->mask = (uint32) (places - 1);
	for (uint64 i = 0; i < nold; i++)
	{
		if (old[i] != 0)
			put(groups, old[i]);
	}
	if (old)
		pfree(old);
}

/* How many groups with so many partial aggregates each there is room for. */
int64
gpuds_hash_groups_most(int nagg)
{
	const int64 fit = get_hash_memory_limit() / bytes_of_group(nagg);

	return Min(Max(fit, LEAST_GROUPS), PG_INT32_MAX / 2);
}

/*
 * For groups whose entries agree where bits has ones, with nagg partial aggregates each; expected: how many
 * groups, about.  *groups must stay where it is.  Memory is in a context below the current one.
 */
void
gpuds_hash_groups_begin(GpudsHashGroups *groups, const GpudsGroupKey *bits, int nagg, double expected)
{
	memset(groups, 0, sizeof(*groups));
	groups->bits = *bits;
	for (int i = 0; i < GPUDS_GROUP_SIDE_WORDS; i++)
	{
		if (bits->side[i] != 0)
			groups->nside = i + 1;
	}
	groups->nagg = nagg;
	groups->most = gpuds_hash_groups_most(nagg);
	expected = Min(expected, (double) Min(groups->most, FIRST_GROUPS));
	groups->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds groups", ALLOCSET_DEFAULT_SIZES);
	set_size(groups, (int64) Max(expected, LEAST_GROUPS));
	set_places(groups, PLACES_OF_GROUP * groups->size);
}

/* A key's hash. */
uint32
gpuds_hash_groups_hash(const GpudsHashGroups *groups, const GpudsGroupKey *key)
{
	return hash_key(groups, key);
}

/* Makes a key's group, which there is none of; returns its number, or -1 if the table is full. */
static int64
make_group(GpudsHashGroups *groups, const GpudsGroupKey *key, uint32 hash)
{
	if (groups->n == groups->most)
		return -1;
	if (groups->n == groups->size)
		set_size(groups, Min(2 * groups->size, groups->most));
	if (PLACES_OF_GROUP * groups->n > groups->mask)
		set_places(groups, 2 * ((uint64) groups->mask + 1));
	groups->groups[groups->n].key = *key;
	groups->groups[groups->n].rows = 0;
	for (int i = 0; i < groups->nagg; i++)
		groups->partial[groups->n * groups->nagg + i] = partial_agg_empty();
	put(groups, (uint64) hash << 32 | (uint64) (groups->n + 1));
	return groups->n++;
}

/* The number of a key's group, whose hash is known. */
static inline int64
find(GpudsHashGroups *groups, const GpudsGroupKey *key, uint32 hash)
{
	for (uint32 place = home_of(groups, hash); groups->table[place] != 0; place = next_place(groups, place))
	{
		const uint64 slot = groups->table[place];
		const uint32 number = (uint32) slot - 1;

		if (slot >> 32 == hash && gpuds_hash_groups_equal(groups, key, &groups->groups[number].key))
			return number;
	}
	return make_group(groups, key, hash);
}

/*
 * The number of a key's group, which is made if there is none; it has the number groups->n before that.  -1:
 * there is none, and the table is full.
 */
int64
gpuds_hash_groups_find(GpudsHashGroups *groups, const GpudsGroupKey *key)
{
	return find(groups, key, hash_key(groups, key));
}

/* Are all keys one?  Often neighbours are of one group, and many follow each other. */
static bool
are_alike(const GpudsHashGroups *groups, const GpudsGroupKey *keys, int n)
{
	int i = n - 1;

	while (i > 0 && gpuds_hash_groups_equal(groups, &keys[i], &keys[0]))
		i--;
	return i == 0;
}

/* The same as gpuds_hash_groups_count for keys that are one. */
static int
count_alike(GpudsHashGroups *groups, const GpudsGroupKey *key, int n, uint32 *numbers)
{
	const int64 number = gpuds_hash_groups_find(groups, key);

	if (number < 0)
		return 0;
	for (int i = 0; i < n; i++)
		numbers[i] = (uint32) number;
	groups->groups[number].rows += n;
	return n;
}

/*
 * Counts a row for each of n keys, at most GPUDS_GROUP_KEYS, and sets the numbers of their groups, as
 * gpuds_hash_groups_find does.  Returns how many it did: fewer if the table is full.
 */
int
gpuds_hash_groups_count(GpudsHashGroups *groups, const GpudsGroupKey *keys, int n, uint32 *numbers)
{
	uint32 hashes[GPUDS_GROUP_KEYS];

	if (are_alike(groups, keys, n))
		return count_alike(groups, keys, n, numbers);
	/* The processor fetches the places of all while it goes on: first in the table, then the groups. */
	for (int i = 0; i < n; i++)
	{
		hashes[i] = hash_key(groups, &keys[i]);
		__builtin_prefetch(&groups->table[home_of(groups, hashes[i])]);
	}
	for (int i = 0; i < n; i++)
	{
		const uint64 slot = groups->table[home_of(groups, hashes[i])];

		if (slot != 0 && slot >> 32 == hashes[i])
			__builtin_prefetch(&groups->groups[(uint32) slot - 1], 1);
	}
	for (int i = 0; i < n; i++)
	{
		const int64 number = find(groups, &keys[i], hashes[i]);

		if (number < 0)
			return i;
		numbers[i] = (uint32) number;
		groups->groups[number].rows++;
	}
	return n;
}

/* Takes all groups away; the memory stays. */
void
gpuds_hash_groups_clear(GpudsHashGroups *groups)
{
	memset(groups->table, 0, ((size_t) groups->mask + 1) * sizeof(uint64));
	groups->n = 0;
}

/* Frees what *groups has; harmless before gpuds_hash_groups_begin, if it is zero. */
void
gpuds_hash_groups_end(GpudsHashGroups *groups)
{
	if (groups->context)
		MemoryContextDelete(groups->context);
	groups->context = NULL;
}
