/*-------------------------------------------------------------------------
 *
 * collect.h
 *	  What a memtable's generations say to a scan.
 *
 * A memtable is some generations, each newer than the one before: of the nodes of one
 * entry, those of a newer generation have the higher orders.  So the last word on an
 * entry is the first node of the newest generation that has it.
 *
 * Where there are few intervals, each is looked up.  Where there are many, the
 * smaller side is searched in the larger one: from entry to entry, skipping to the
 * next interval that may hold one, and from there to the next entry.
 *
 * Writers may insert meanwhile.  A scan gets all that was inserted before it began,
 * and of the rest perhaps some.
 *
 *-------------------------------------------------------------------------
 */
#ifndef KERNELS_COLLECT_H
#define KERNELS_COLLECT_H

#include "kernels/memtable/generation.h"

/* Generations of a memtable, at most. */
#define MEMTABLE_GENERATIONS 4

/* Entries that are gone through rather than look one more interval up. */
#define MEMTABLE_ENTRIES_A_SEARCH 8

/* Generations that a reader has pinned, the newest first, each with its place. */
typedef struct MemtableCursor
{
	const Arena *arena;
	int n;
	bool forward;
	const Generation *generation[MEMTABLE_GENERATIONS];
	uint32_t at[MEMTABLE_GENERATIONS]; /* first node of an entry; 0: at the end */
} MemtableCursor;

/* The first node of the entry that a generation's node is of; 0 stays 0. */
HOST_FN uint32_t
memtable_first_of_entry(const MemtableCursor *cursor, int i, uint32_t link)
{
	if (link != 0)
		(void) generation_find(cursor->arena, cursor->generation[i],
							   &generation_node(cursor->arena, link)->entry, &link);
	return link;
}

/* Places a generation's cursor on the first entry not before x, backward the last not behind it. */
HOST_FN void
memtable_seek_one(MemtableCursor *cursor, int i, const GpudsEntry *x)
{
	const Generation *generation = cursor->generation[i];
	uint32_t next;
	uint32_t before = generation_find(cursor->arena, generation, x, &next);

	if (cursor->forward || (next != 0 && entry_equal(&generation_node(cursor->arena, next)->entry, x)))
		cursor->at[i] = next;
	else
		cursor->at[i] = memtable_first_of_entry(cursor, i, before);
}

HOST_FN void
memtable_seek(MemtableCursor *cursor, const GpudsEntry *x)
{
	for (int i = 0; i < cursor->n; i++)
		memtable_seek_one(cursor, i, x);
}

/* Moves a generation's cursor on to the next entry. */
HOST_FN void
memtable_step(MemtableCursor *cursor, int i)
{
	const GpudsEntry *entry = &generation_node(cursor->arena, cursor->at[i])->entry;
	uint32_t next;

	if (!cursor->forward)
	{
		uint32_t before = generation_find(cursor->arena, cursor->generation[i], entry, &next);

		cursor->at[i] = memtable_first_of_entry(cursor, i, before);
		return;
	}
	next = cursor->at[i];
	do
		next = generation_next(cursor->arena, next);
	while (next != 0 && entry_equal(&generation_node(cursor->arena, next)->entry, entry));
	cursor->at[i] = next;
}

/* The node with the last word on the nearest entry; NULL: there is none. */
HOST_FN const GenerationNode *
memtable_nearest(const MemtableCursor *cursor)
{
	const GenerationNode *nearest = NULL;

	for (int i = 0; i < cursor->n; i++)
	{
		const GenerationNode *node = generation_node(cursor->arena, cursor->at[i]);

		if (cursor->at[i] != 0 &&
			(nearest == NULL || (cursor->forward ? entry_less(&node->entry, &nearest->entry)
												 : entry_less(&nearest->entry, &node->entry))))
			nearest = node;
	}
	return nearest;
}

/* Moves all cursors that are on an entry on to the next one. */
HOST_FN void
memtable_pass(MemtableCursor *cursor, const GpudsEntry *entry)
{
	for (int i = 0; i < cursor->n; i++)
	{
		if (cursor->at[i] != 0 && entry_equal(&generation_node(cursor->arena, cursor->at[i])->entry, entry))
			memtable_step(cursor, i);
	}
}

/* Takes the last word on the nearest entry, and moves on. */
HOST_FN void
memtable_take(MemtableCursor *cursor, const GenerationNode *node, GpudsOp *out)
{
	out->e = node->entry;
	out->order = node->order;
	memtable_pass(cursor, &node->entry);
}

/* Seeks an interval, but only in generations that may have something of it; false: none has. */
HOST_FN bool
memtable_enter(MemtableCursor *cursor, const GpudsInterval *interval)
{
	bool any = false;

	for (int i = 0; i < cursor->n; i++)
	{
		cursor->at[i] = 0;
		if (interval->lo.w0 == interval->hi.w0 &&
			!generation_filter_pass(cursor->arena, cursor->generation[i], interval->lo.w0))
			continue;
		memtable_seek_one(cursor, i, cursor->forward ? &interval->lo : &interval->hi);
		any = any || cursor->at[i] != 0;
	}
	return any;
}

HOST_FN bool
memtable_inside(const GpudsInterval *interval, const GpudsEntry *entry)
{
	return !entry_less(entry, &interval->lo) && !entry_less(&interval->hi, entry);
}

/* Each interval looked up, in any order that they are in. */
HOST_FN int64_t
memtable_collect_intervals(MemtableCursor *cursor, const GpudsScan *scan, GpudsOp *out, int64_t cap)
{
	const int64_t step = cursor->forward ? 1 : -1;
	int64_t n = 0;

	for (int64_t i = cursor->forward ? scan->next : scan->next - 1; i >= 0 && i < scan->n; i += step)
	{
		const GenerationNode *node;
		GpudsInterval interval;

		if (!entry_scan_rest(scan, i, cursor->forward, &interval) || !memtable_enter(cursor, &interval))
			continue;
		while ((node = memtable_nearest(cursor)) != NULL && memtable_inside(&interval, &node->entry))
		{
			if (n == cap)
				return n + 1;
			memtable_take(cursor, node, &out[n++]);
		}
	}
	return n;
}

/* The interval, at i or further on, that an entry is in or that comes next behind it; n or -1: none. */
HOST_FN int64_t
memtable_interval_of(const MemtableCursor *cursor, const GpudsScan *scan, const GpudsEntry *entry)
{
	int64_t i = entry_scan_find(scan, entry);
	GpudsInterval interval;

	if (cursor->forward)
		return i;
	if (i < scan->n)
	{
		interval = entry_scan_interval(scan, i);
		if (!entry_less(entry, &interval.lo))
			return i;
	}
	return i - 1;
}

/* From entry to entry; the intervals are ascending. */
HOST_FN int64_t
memtable_collect_entries(MemtableCursor *cursor, const GpudsScan *scan, GpudsOp *out, int64_t cap)
{
	const bool forward = cursor->forward;
	int64_t i = forward ? scan->next : scan->next - 1;
	int64_t n = 0;
	const GenerationNode *node;
	GpudsInterval interval;

	while (i >= 0 && i < scan->n && !entry_scan_rest(scan, i, forward, &interval))
		i += forward ? 1 : -1;
	if (i < 0 || i >= scan->n)
		return 0;
	memtable_seek(cursor, forward ? &interval.lo : &interval.hi);
	while ((node = memtable_nearest(cursor)) != NULL)
	{
		i = memtable_interval_of(cursor, scan, &node->entry);
		if (i < 0 || i >= scan->n)
			break;
		interval = entry_scan_interval(scan, i);
		if (!memtable_inside(&interval, &node->entry))
		{
			memtable_seek(cursor, forward ? &interval.lo : &interval.hi);
			continue;
		}
		if (n == cap)
			return n + 1;
		memtable_take(cursor, node, &out[n++]);
	}
	return n;
}

/*
 * The last words on the entries that are left of a scan: at most cap, in the scan's
 * direction if its intervals are ascending (else sorted is false, and they come
 * interval by interval).  cap + 1: there are more than fit.  The generations are
 * pinned.
 */
HOST_FN int64_t
memtable_collect(const Arena *arena, const Generation *const *newest_first, int ngenerations,
				 const GpudsScan *scan, bool forward, bool sorted, GpudsOp *out, int64_t cap)
{
	MemtableCursor cursor = { .arena = arena, .forward = forward };
	int64_t intervals = forward ? scan->n - scan->next : scan->next;
	uint64_t entries = 0;

	for (int i = 0; i < ngenerations; i++)
	{
		if (generation_first(newest_first[i]) == 0)
			continue;
		cursor.generation[cursor.n++] = newest_first[i];
		entries += generation_entries(newest_first[i]);
	}
	if (cursor.n == 0)
		return 0;
	if (sorted && (uint64_t) intervals > entries / MEMTABLE_ENTRIES_A_SEARCH)
		return memtable_collect_entries(&cursor, scan, out, cap);
	return memtable_collect_intervals(&cursor, scan, out, cap);
}

#endif /* KERNELS_COLLECT_H */
