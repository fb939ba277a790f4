/*-------------------------------------------------------------------------
 *
 * hash_walk_cpu.h
 *	  Intervals of several keys: the whole table is gone through.
 *
 * A table has no order among its keys, so what is wanted of an interval is selected: those entries
 * that come first in the scan's direction are kept in a heap whose top is the last of them.
 * That takes one walk for each piece of a scan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_WALK_CPU_H
#define HASH_WALK_CPU_H

#include "kernels/hash/hash_probe_cpu.h"

/* Lines that are loaded ahead. */
#define HASH_WALK_AHEAD 8

/* The first entries of an interval, as far as they were met. */
typedef struct HashSelection
{
	GpudsInterval interval;
	bool forward;
	GpudsEntry *heap; /* no entry comes after its parent, (i - 1) / 2 */
	int64_t n;
	int64_t cap;
	bool more; /* there are others behind them */
} HashSelection;

/* Does an entry come after another in the direction of the scan? */
HOST_FN bool
hash_comes_after(const HashSelection *s, const GpudsEntry *a, const GpudsEntry *b)
{
	return s->forward ? entry_less(b, a) : entry_less(a, b);
}

/* Puts an entry at the top of the first n of a heap, and to its place. */
HOST_FN void
hash_heap_down(const HashSelection *s, int64_t n, GpudsEntry e)
{
	int64_t at = 0;

	for (;;)
	{
		int64_t child = 2 * at + 1;

		if (child + 1 < n && hash_comes_after(s, &s->heap[child + 1], &s->heap[child]))
			child++;
		if (child >= n || !hash_comes_after(s, &s->heap[child], &e))
			break;
		s->heap[at] = s->heap[child];
		at = child;
	}
	s->heap[at] = e;
}

/* Puts an entry at the end of a heap, and to its place. */
HOST_FN void
hash_heap_up(HashSelection *s, GpudsEntry e)
{
	int64_t at = s->n++;

	while (at > 0 && hash_comes_after(s, &e, &s->heap[(at - 1) / 2]))
	{
		s->heap[at] = s->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	s->heap[at] = e;
}

/* Takes note of an entry. */
HOST_FN void
hash_select(HashSelection *s, const GpudsEntry *e)
{
	if (entry_less(e, &s->interval.lo) || entry_less(&s->interval.hi, e))
		return;
	if (s->n < s->cap)
	{
		hash_heap_up(s, *e);
		return;
	}
	s->more = true;
	if (hash_comes_after(s, &s->heap[0], e))
		hash_heap_down(s, s->n, *e);
}

/* All entries of a home, as they were at one moment. */
HOST_FN int
hash_home_entries(const uint64_t *segment, int home, GpudsEntry *entries, int nw)
{
	const uint64_t *word = hash_home_word(segment, home);
	uint64_t before;
	int n;

	do
	{
		before = hash_load(word);
		n = 0;
		for (uint64_t bits = before & HASH_SLOTS_MASK; bits != 0; bits &= bits - 1)
		{
			entries[n] = hash_slot_entry(hash_slot(segment, home, __builtin_ctzll(bits), nw), nw);
			n += (entries[n].t & HASH_MARKER) == 0;
		}
	} while (hash_load(word) != before);
	return n;
}

/* Goes through the entries that the table itself has. */
HOST_FN void
hash_walk_table(const HashView *view, HashSelection *s, int nw)
{
	uint64_t hash = 0;

	/* A segment that is split meanwhile is gone through as it was, or in halves. */
	do
	{
		uint64_t link = hash_locate(view->arena, view->root, hash);
		const uint64_t *segment = hash_segment(view->arena, link);

		for (int home = 0; home < HASH_LINES; home++)
		{
			GpudsEntry entries[32];
			int n = hash_home_entries(segment, home, entries, nw);

			hash_prefetch_line(segment, home + HASH_WALK_AHEAD);
			for (int i = 0; i < n; i++)
				hash_select(s, &entries[i]);
		}
		hash += hash_link_bits(link) > 0 ? UINT64_C(1) << (64 - hash_link_bits(link)) : 0;
	} while (hash != 0);
}

/* Goes through the first entries that the overflow tree has of the interval. */
HOST_FN void
hash_walk_overflow(const HashView *view, HashSelection *s)
{
	GpudsScan scan = { &s->interval, 1, s->forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
	GpudsEntry entries[64];
	int64_t n;

	do
	{
		n = hash_overflow.scan(view->arena, view->overflow, &scan, s->forward, entries, 64);
		for (int64_t i = 0; i < n; i++)
			hash_select(s, &entries[i]);
	} while (n == 64 && !(s->more && hash_comes_after(s, &entries[63], &s->heap[0])));
}

/* Sorts what was selected, and drops what the table and the tree both had. */
HOST_FN void
hash_selection_sort(HashSelection *s)
{
	int64_t kept = 0;

	for (int64_t n = s->n - 1; n > 0; n--)
	{
		GpudsEntry last = s->heap[n];

		s->heap[n] = s->heap[0];
		hash_heap_down(s, n, last);
	}
	for (int64_t i = 0; i < s->n; i++)
	{
		if (kept == 0 || !entry_equal(&s->heap[kept - 1], &s->heap[i]))
			s->heap[kept++] = s->heap[i];
	}
	s->n = kept;
}

/* The first entries of an interval, at most cap, which is not 0; fewer: that is all it has. */
HOST_FN int64_t
hash_walk_emit(const GpudsInterval *interval, const HashView *view, GpudsEntry *out, int64_t cap,
			   const bool forward, int nw)
{
	HashSelection s = { *interval, forward, out, 0, cap, true };
	int64_t done = 0;

	/* Again if room was left by what was there twice. */
	while (s.more && done < cap)
	{
		s.heap = out + done;
		s.cap = cap - done;
		s.n = 0;
		s.more = false;
		hash_walk_table(view, &s, nw);
		hash_walk_overflow(view, &s);
		hash_selection_sort(&s);
		done += s.n;
		if (s.more && s.n > 0)
		{
			/* neither wraps: there are entries behind this one */
			if (forward)
				s.interval.lo = entry_behind(out[done - 1], nw);
			else
				s.interval.hi = entry_before(out[done - 1]);
		}
	}
	return done;
}

#endif /* HASH_WALK_CPU_H */
