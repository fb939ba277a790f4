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

static inline uint64
mix(uint64 hash, uint64 word)
{
	hash = (hash ^ word) * UINT64CONST(0x9E3779B97F4A7C15);
	return hash ^ hash >> 32;
}

static inline uint32
hash_key(const GpudsHashGroups *groups, const GpudsGroupKey *key)
{
	uint64 hash = mix(mix(mix(key->run, key->entry.w0), key->entry.w1), key->entry.t);

	for (int i = 0; i < groups->nside; i++)
		hash = mix(hash, key->side[i]);
	return (uint32) (hash * UINT64CONST(0xff51afd7ed558ccd) >> 32);
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

/*
 * The number of a key's group, which is made if there is none; it has the number groups->n before that.  -1:
 * there is none, and the table is full.
 */
int64
gpuds_hash_groups_find(GpudsHashGroups *groups, const GpudsGroupKey *key)
{
	const uint32 hash = hash_key(groups, key);
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
