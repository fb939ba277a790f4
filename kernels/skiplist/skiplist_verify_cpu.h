/*-------------------------------------------------------------------------
 *
 * skiplist_verify_cpu.h
 *	  Checking everything that a skip list in an arena promises.
 *
 * Memory is accounted for as that of any tree (cpu_verify.h).  Of the list:
 *
 *	  - A level is one chain of chunks, none of which was replaced; each leads to the one before it, too.
 *	  - The order word of a chunk has slots that were used, each once, and no others.
 *	  - Entries ascend within a chunk, and lie between its bounds.
 *	  - An index has low bounds of chunks below, with the reference of that chunk.  The first entry of
 *		each of its chunks is the chunk's own low bound.
 *	  - There are as many entries as the list says.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SKIPLIST_VERIFY_CPU_H
#define SKIPLIST_VERIFY_CPU_H

#include "kernels/cpu/cpu_verify.h"
#include "kernels/skiplist/skiplist_list_cpu.h"

/* A chunk's order word. */
HOST_FN bool
skiplist_verify_order(CpuVerify *v, ArenaRef ref, uint64_t order)
{
	unsigned seen = 0;

	if (skiplist_n(order) > skiplist_used(order) || skiplist_used(order) > SKIPLIST_PLACES)
		return cpu_verify_wrong(v, "the chunk at unit %u says %d entries in %d slots", ref, skiplist_n(order),
								skiplist_used(order));
	for (int i = 0; i < SKIPLIST_PLACES; i++)
	{
		int slot = skiplist_slot(order, i);

		if (i >= skiplist_n(order) ? slot != SKIPLIST_NO_SLOT
								   : slot >= skiplist_used(order) || (seen >> slot & 1) != 0)
			return cpu_verify_wrong(v, "the chunk at unit %u has slot %d at place %d", ref, slot, i);
		seen |= 1u << slot;
	}
	return true;
}

/* A chunk's entries, which are from low on. */
HOST_FN bool
skiplist_verify_entries(CpuVerify *v, ArenaRef ref, const GpudsEntry *low, bool index)
{
	const int nw = (int) v->tree->nwords;
	const uint64_t *chunk = skiplist_at(v->arena, ref);
	const uint64_t order = chunk[SKIPLIST_ORDER];
	GpudsEntry last = *low;

	for (int i = 0; i < skiplist_n(order); i++)
	{
		GpudsEntry e = skiplist_entry(chunk, skiplist_slot(order, i), index, nw);

		if (i > 0 ? !entry_less(&last, &e) : entry_less(&e, &last))
			return cpu_verify_wrong(v, "entry %d of the chunk at unit %u is out of order", i, ref);
		last = e;
	}
	if (skiplist_next(chunk[SKIPLIST_LINK]) != 0)
	{
		GpudsEntry high = skiplist_high(chunk, index, nw);

		if (!entry_less(low, &high) || (skiplist_n(order) > 0 && !entry_less(&last, &high)))
			return cpu_verify_wrong(v, "the chunk at unit %u ends before an entry", ref);
	}
	if (index)
	{
		GpudsEntry first = skiplist_entry(chunk, skiplist_slot(order, 0), true, nw);

		if (skiplist_n(order) == 0 || !entry_equal(&first, low))
			return cpu_verify_wrong(v, "the index chunk at unit %u does not begin with its low bound", ref);
	}
	return true;
}

/* A chunk of a level, with everything that it says of itself. */
HOST_FN bool
skiplist_verify_chunk(CpuVerify *v, ArenaRef ref, ArenaRef before, const GpudsEntry *low, bool index)
{
	const int nw = (int) v->tree->nwords;
	const uint64_t *chunk = skiplist_at(v->arena, ref);

	if (!cpu_verify_mark(v, ref, skiplist_units(index, nw), index ? "index chunk" : "chunk"))
		return false;
	if (skiplist_is_replaced(chunk[SKIPLIST_LINK]))
		return cpu_verify_wrong(v, "the chunk at unit %u was replaced", ref);
	if (skiplist_before(chunk[SKIPLIST_LINK]) != before)
		return cpu_verify_wrong(v, "the chunk at unit %u is behind unit %u, not %u", ref, before,
								skiplist_before(chunk[SKIPLIST_LINK]));
	return skiplist_verify_order(v, ref, chunk[SKIPLIST_ORDER]) &&
		   skiplist_verify_entries(v, ref, low, index);
}

/* Where the check of a level's references is: at an entry of a chunk of the index above. */
typedef struct SkiplistVerifyAbove
{
	ArenaRef ref; /* 0: there are no more, or there is no level above */
	int at;
} SkiplistVerifyAbove;

/* If an index leads to a chunk, or should because it has the chunk's low bound: goes on to its next entry. */
HOST_FN bool
skiplist_verify_raised(CpuVerify *v, SkiplistVerifyAbove *above, ArenaRef ref, const GpudsEntry *low)
{
	const int nw = (int) v->tree->nwords;
	const uint64_t *chunk = skiplist_at(v->arena, above->ref);
	GpudsEntry e;
	int slot;

	if (above->ref == 0)
		return true;
	slot = skiplist_slot(chunk[SKIPLIST_ORDER], above->at);
	e = skiplist_entry(chunk, slot, true, nw);
	if ((skiplist_ref(chunk, slot) == ref) != entry_equal(&e, low))
		return cpu_verify_wrong(v, "entry %d of the index chunk at unit %u leads to unit %u", above->at,
								above->ref, skiplist_ref(chunk, slot));
	if (skiplist_ref(chunk, slot) == ref && ++above->at == skiplist_n(chunk[SKIPLIST_ORDER]))
	{
		above->ref = skiplist_next(chunk[SKIPLIST_LINK]);
		above->at = 0;
	}
	return true;
}

/* A level from its first chunk on; *entries: how many it has. */
HOST_FN bool
skiplist_verify_level(CpuVerify *v, ArenaRef first, ArenaRef above_first, bool index, uint64_t *entries)
{
	const int nw = (int) v->tree->nwords;
	SkiplistVerifyAbove above = { above_first, 0 };
	GpudsEntry low = { 0, 0, 0 };
	ArenaRef before = 0;

	*entries = 0;
	for (ArenaRef ref = first; ref != 0;)
	{
		const uint64_t *chunk = skiplist_at(v->arena, ref);

		if (!skiplist_verify_chunk(v, ref, before, &low, index) ||
			!skiplist_verify_raised(v, &above, ref, &low))
			return false;
		*entries += (uint64_t) skiplist_n(chunk[SKIPLIST_ORDER]);
		before = ref;
		ref = skiplist_next(chunk[SKIPLIST_LINK]);
		if (ref != 0)
			low = skiplist_high(chunk, index, nw);
	}
	if (above.ref != 0)
		return cpu_verify_wrong(v, "entry %d of the index chunk at unit %u leads to no chunk", above.at,
								above.ref);
	return true;
}

/* A list that was not withdrawn. */
HOST_FN bool
skiplist_verify_list(CpuVerify *v)
{
	const uint64_t head = v->tree->head;
	ArenaRef first = head_root(head);
	ArenaRef above = 0;
	uint64_t entries = 0;

	if (v->tree->nwords < 1 || v->tree->nwords > 2 || head_height(head) < 1 ||
		head_height(head) > SKIPLIST_MAX_HEIGHT || (uint32_t) head_nwords(head) != v->tree->nwords)
		return cpu_verify_wrong(v, "the head does not fit the list");
	for (int level = head_height(head) - 1; level >= 0; level--)
	{
		if (!skiplist_verify_level(v, first, above, level > 0, &entries))
			return false;
		above = first;
		if (level > 0)
		{
			const uint64_t *chunk = skiplist_at(v->arena, first);

			first = skiplist_ref(chunk, skiplist_slot(chunk[SKIPLIST_ORDER], 0));
		}
	}
	if (entries != cpu_tree_entries(v->tree))
		return cpu_verify_wrong(v, "%llu entries, but the list says %llu", (unsigned long long) entries,
								(unsigned long long) cpu_tree_entries(v->tree));
	return true;
}

/* Checks a list; the caller keeps others from changing it. */
HOST_FN bool
skiplist_cpu_verify(const Arena *arena, const CpuTree *tree, char *why, size_t whylen)
{
	CpuVerify v;

	return cpu_verify(&v, arena, tree, skiplist_verify_list, why, whylen);
}

#endif /* SKIPLIST_VERIFY_CPU_H */
