/*-------------------------------------------------------------------------
 *
 * hash_groups.h
 *	  Groups of entries whose rows do not follow each other: a hash table, and what has been aggregated of
 *	  each group.
 *
 * A group's key is what its entries have in some columns, as the entries have it: the bits of their codes,
 * NULL bits, and side values.  So its columns are of types whose values are equal if and only if their codes
 * are.  Entries may also be told apart by the number of a run, which the caller gives.
 *
 * The table has room for as many groups as fit into hash_mem (work_mem times hash_mem_multiplier).  When it
 * is full, the caller takes the groups away and clears it.  So one group may come several times: what is
 * aggregated of it are parts, which core puts together, or the caller (group_parts.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUDS_HASH_GROUPS_H
#define GPUDS_HASH_GROUPS_H

#include "key/key.h"

/* Keys that are looked for together, at most. */
#define GPUDS_GROUP_KEYS 64

#define GPUDS_GROUP_SIDE_WORDS (GPUDS_SIDE_BYTES / (int) sizeof(uint64))

/* What rows of a group have in common; zeros elsewhere. */
typedef struct GpudsGroupKey
{
	GpudsEntry entry;
	uint64 run;
	uint64 side[GPUDS_GROUP_SIDE_WORDS];
} GpudsGroupKey;

typedef struct GpudsHashGroup
{
	int64 rows;
	GpudsGroupKey key;
} GpudsHashGroup;

typedef struct GpudsHashGroups
{
	GpudsGroupKey bits; /* ones where entries of one group agree */
	int nside;          /* words of side values that are part of the key, from the first on */
	int nagg;
	int64 most; /* groups */
	int64 n;
	int64 size; /* of the arrays */
	GpudsHashGroup *groups;
	PartialAgg *partial; /* nagg for each group */
	/* places, each 0 or a group's hash in the high half and its number + 1 in the low one */
	uint64 *table;
	uint32 mask;           /* places - 1; they are a power of two */
	MemoryContext context; /* of all */
} GpudsHashGroups;

extern void gpuds_hash_groups_begin(GpudsHashGroups *groups, const GpudsGroupKey *bits, int nagg,
									double expected);
extern int64 gpuds_hash_groups_most(int nagg);
extern uint32 gpuds_hash_groups_hash(const GpudsHashGroups *groups, const GpudsGroupKey *key);
extern int64 gpuds_hash_groups_find(GpudsHashGroups *groups, const GpudsGroupKey *key);
extern int gpuds_hash_groups_count(GpudsHashGroups *groups, const GpudsGroupKey *keys, int n,
								   uint32 *numbers);
extern void gpuds_hash_groups_clear(GpudsHashGroups *groups);
extern void gpuds_hash_groups_end(GpudsHashGroups *groups);

/* The key of an entry with its side values, which are only looked at if the key has some. */
static inline void
gpuds_hash_groups_key(const GpudsHashGroups *groups, const GpudsEntry *entry, const uint8 *side, uint64 run,
					  GpudsGroupKey *key)
{
	key->entry.w0 = entry->w0 & groups->bits.entry.w0;
	key->entry.w1 = entry->w1 & groups->bits.entry.w1;
	key->entry.t = entry->t & groups->bits.entry.t;
	for (int i = 0; i < groups->nside; i++)
	{
		memcpy(&key->side[i], side + i * sizeof(uint64), sizeof(uint64));
		key->side[i] &= groups->bits.side[i];
	}
	key->run = run;
}

/* Are the keys of one table equal? */
static inline bool
gpuds_hash_groups_equal(const GpudsHashGroups *groups, const GpudsGroupKey *a, const GpudsGroupKey *b)
{
	if (!entry_equal(&a->entry, &b->entry) || a->run != b->run)
		return false;
	for (int i = 0; i < groups->nside; i++)
	{
		if (a->side[i] != b->side[i])
			return false;
	}
	return true;
}

#endif /* GPUDS_HASH_GROUPS_H */
