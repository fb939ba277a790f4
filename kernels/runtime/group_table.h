/*-------------------------------------------------------------------------
 *
 * group_table.h
 *	  A table of groups in device memory, which all threads of a launch add to.
 *
 * A slot (group_spec.h) is empty, claimed or ready.  The thread that claims it writes the key and makes it
 * ready; threads that come meanwhile wait for that, since they may look for the same key.  Slots are never
 * emptied, so what was found stays.
 *
 * Threads that add to one word come one after the other.  So where there are few groups, a group may have
 * several slots: threads begin to look for it at different ones, which are equally far apart.  Whoever
 * finds the key on the way takes its slot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPU_GROUP_TABLE_H
#define GPU_GROUP_TABLE_H

#include "kernels/core/group_spec.h"
#include "kernels/runtime/thread.h"

/* Slots that are looked at before a group goes without. */
#define GPU_GROUP_LOOKS 64

/* States of a slot; an empty one has 0. */
#define GPU_GROUP_CLAIMED 1u
#define GPU_GROUP_READY 2u

struct GpuGroupTable
{
	uint64_t *words; /* of all slots, zeros at first */
	uint32_t slots;
	uint32_t spread;
	uint32_t nterms;
	uint32_t nside;

	GPU_FN uint64_t *slot(uint32_t number) const
	{
		return words + (size_t) number * group_slot_words(nterms, nside);
	}

	GPU_FN static uint32_t *state(uint64_t *slot)
	{
		return (uint32_t *) &slot[GROUP_STATE];
	}

	GPU_FN static uint64_t mix(uint64_t hash, uint64_t word)
	{
		hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		return hash ^ hash >> 32;
	}

	/* Is a slot the group's?  as: its state, ready; the place is computed of it, for gpu_fresh_pair. */
	GPU_FN bool has(const uint64_t *slot, uint32_t as, const GpudsEntry &key, uint32_t label,
					const uint64_t *side) const
	{
		uint64_t words[2];
		uint64_t rest[2];

		slot += as ^ (GPU_GROUP_CLAIMED | GPU_GROUP_READY);
		gpu_fresh_pair(&slot[GROUP_W0], words);
		gpu_fresh_pair(&slot[GROUP_T], rest);
		if (words[0] != key.w0 || words[1] != key.w1 || rest[0] != key.t || rest[1] != label)
			return false;
		for (uint32_t k = 0; k < nside; k += 2)
		{
			gpu_fresh_pair(&slot[group_slot_side(nterms) + k], words);
			if (words[0] != side[k] || words[1] != side[k + 1])
				return false;
		}
		return true;
	}

	/* Makes a claimed slot that of a group of which nothing has been added up. */
	GPU_FN void make(uint64_t *slot, const GpudsEntry &key, uint32_t label, const uint64_t *side) const
	{
		slot[GROUP_W0] = key.w0;
		slot[GROUP_W1] = key.w1;
		slot[GROUP_T] = key.t;
		slot[GROUP_LABEL] = label;
		for (uint32_t k = 0; k < nterms; k++)
		{
			PartialAgg nothing = partial_agg_empty();

			memcpy(&slot[GROUP_PARTIAL + k * GROUP_PARTIAL_WORDS], &nothing, sizeof(PartialAgg));
		}
		for (uint32_t k = 0; k < (nside + 1) / 2 * 2; k++)
			slot[group_slot_side(nterms) + k] = side[k];
		gpu_release(state(slot), GPU_GROUP_CLAIMED | GPU_GROUP_READY);
	}

	GPU_FN uint64_t hash_group(const GpudsEntry &key, uint32_t label, const uint64_t *side) const
	{
		uint64_t hash = mix(mix(mix(mix(0, key.w0), key.w1), key.t), label);

		for (uint32_t k = 0; k < nside; k++)
			hash = mix(hash, side[k]);
		return hash;
	}

	/*
	 * The slot of a group, made if there is none; NULL: there is no room.  side: what the group has in side
	 * values, an even number of words of which those from nside on are 0; NULL if nside is 0.
	 */
	GPU_FN uint64_t *find(const GpudsEntry &key, uint32_t label, const uint64_t *side, uint64_t thread) const
	{
		uint64_t hash = hash_group(key, label, side);
		uint32_t at = (uint32_t) (hash >> 20) + (uint32_t) (thread & (spread - 1)) * (slots / spread);

		for (int i = 0; i < GPU_GROUP_LOOKS; i++)
		{
			uint64_t *found = slot((at + (uint32_t) i) & (slots - 1));
			uint32_t as;

			if (gpu_fresh(state(found)) == 0 && gpu_atomic_or(state(found), GPU_GROUP_CLAIMED) == 0)
			{
				make(found, key, label, side);
				return found;
			}
			while (!((as = gpu_fresh(state(found))) & GPU_GROUP_READY))
				gpu_nap();
			if (has(found, as, key, label, side))
				return found;
		}
		return NULL;
	}

	/* Adds a part of a term to that of a slot. */
	GPU_FN static void add(uint64_t *to, const AggColumn &column, const PartialAgg &sum)
	{
		PartialAgg *partial = (PartialAgg *) to;

		gpu_atomic_add64(&partial->n, sum.n);
		/* Most values are within the bounds already, and reading costs less than adding. */
		if (sum.min < gpu_glance(&partial->min))
			gpu_atomic_min64(&partial->min, sum.min);
		if (sum.max > gpu_glance(&partial->max))
			gpu_atomic_max64(&partial->max, sum.max);
		if (!agg_column_is_float(&column))
		{
			gpu_atomic_add64(&partial->low, sum.low);
			if (sum.high > 0)
				gpu_atomic_add64(&partial->high, sum.high);
		}
		else
			gpu_atomic_add_double(&partial->sum, sum.sum);
	}
};

/* Copies slot i, if it is taken, behind those that have been copied. */
struct GpuGroupTake
{
	GpuGroupTable table;
	uint64_t *to;
	uint32_t *taken;

	GPU_FN void operator()(int64_t i) const
	{
		const size_t words = group_slot_words(table.nterms, table.nside);
		uint64_t *slot = table.slot((uint32_t) i);
		uint64_t *copy;

		if (*GpuGroupTable::state(slot) == 0)
			return;
		copy = to + gpu_atomic_add(taken, 1) * words;
		for (size_t k = 0; k < words; k++)
			copy[k] = slot[k];
	}
};

#endif /* GPU_GROUP_TABLE_H */
