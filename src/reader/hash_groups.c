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

/* A group of the table: its place in the array. */
typedef struct TableEntry
{
	uint32 number;
	uint32 hash;
	char status;
} TableEntry;

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

/* A number below the number of groups means that group; this one the key that is looked for. */
#define LOOKED_FOR PG_UINT32_MAX

/* What the table's functions look a number up in. */
typedef struct Lookup
{
	const GpudsHashGroups *groups;
	const GpudsGroupKey *key; /* that is looked for */
} Lookup;

static inline const GpudsGroupKey *
key_of(const Lookup *lookup, uint32 number)
{
	return number == LOOKED_FOR ? lookup->key : &lookup->groups->groups[number].key;
}

#define SH_PREFIX groups
#define SH_ELEMENT_TYPE TableEntry
#define SH_KEY_TYPE uint32
#define SH_KEY number
#define SH_HASH_KEY(tb, number)                             \
	hash_key(((const Lookup *) (tb)->private_data)->groups, \
			 key_of((const Lookup *) (tb)->private_data, number))
#define SH_EQUAL(tb, a, b)                                                  \
	gpuds_hash_groups_equal(((const Lookup *) (tb)->private_data)->groups,  \
							key_of((const Lookup *) (tb)->private_data, a), \
							key_of((const Lookup *) (tb)->private_data, b))
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry) (entry)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Bytes that a group takes in the arrays and, at the table's lowest load, in the table. */
static size_t
bytes_of_group(int nagg)
{
	return sizeof(GpudsHashGroup) + nagg * sizeof(PartialAgg) + 4 * sizeof(TableEntry);
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

static void
make_table(GpudsHashGroups *groups, int64 size)
{
	Lookup *lookup = MemoryContextAlloc(groups->context, sizeof(Lookup));

	lookup->groups = groups;
	lookup->key = NULL;
	groups->table = groups_create(groups->context, (uint32) size, lookup);
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
	groups->most = Max(get_hash_memory_limit() / bytes_of_group(nagg), LEAST_GROUPS);
	groups->most = Min(groups->most, PG_INT32_MAX / 2);
	expected = Min(expected, (double) Min(groups->most, FIRST_GROUPS));
	groups->context = AllocSetContextCreate(CurrentMemoryContext, "gpuds groups", ALLOCSET_DEFAULT_SIZES);
	set_size(groups, (int64) Max(expected, LEAST_GROUPS));
	make_table(groups, groups->size);
}

/* The number of a key's group, whose hash is known. */
static int64
find(GpudsHashGroups *groups, const GpudsGroupKey *key, uint32 hash)
{
	TableEntry *entry;
	bool found;

	((Lookup *) groups->table->private_data)->key = key;
	entry = groups_lookup_hash(groups->table, LOOKED_FOR, hash);
	if (entry)
		return entry->number;
	if (groups->n == groups->most)
		return -1;
	if (groups->n == groups->size)
		set_size(groups, Min(2 * groups->size, groups->most));
	groups->groups[groups->n].key = *key;
	groups->groups[groups->n].rows = 0;
	for (int i = 0; i < groups->nagg; i++)
		groups->partial[groups->n * groups->nagg + i] = partial_agg_empty();
	(void) groups_insert_hash(groups->table, (uint32) groups->n, hash, &found);
	Assert(!found);
	return groups->n++;
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

/* Where a hash's group most likely is in the table. */
static inline const TableEntry *
home_of(const GpudsHashGroups *groups, uint32 hash)
{
	return &groups->table->data[hash & groups->table->sizemask];
}

/* Does a group of this hash lie there? */
static inline bool
is_home(const GpudsHashGroups *groups, uint32 hash)
{
	const TableEntry *home = home_of(groups, hash);

	return home->hash == hash && home->status == groups_SH_IN_USE;
}

/* The same as find, without a call if the group lies where it should. */
static inline int64
find_at_home(GpudsHashGroups *groups, const GpudsGroupKey *key, uint32 hash)
{
	if (is_home(groups, hash))
	{
		const uint32 number = home_of(groups, hash)->number;

		if (gpuds_hash_groups_equal(groups, key, &groups->groups[number].key))
			return number;
	}
	return find(groups, key, hash);
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
		__builtin_prefetch(home_of(groups, hashes[i]));
	}
	for (int i = 0; i < n; i++)
	{
		if (is_home(groups, hashes[i]))
			__builtin_prefetch(&groups->groups[home_of(groups, hashes[i])->number], 1);
	}
	for (int i = 0; i < n; i++)
	{
		const int64 number = find_at_home(groups, &keys[i], hashes[i]);

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
	groups_reset(groups->table);
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
