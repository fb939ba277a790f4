/*-------------------------------------------------------------------------
 *
 * hash_probe_cpu.h
 *	  Scans of a hash table on a CPU: intervals of one key, many at a time.
 *
 * A probe is one interval.  Probes of several intervals take each step together, so that they wait
 * for memory together: where is the home line, in which other lines are entries of the home, what
 * does the home have of the key, what has the overflow tree of it.
 *
 * What the table and the tree have of a key is merged in the order of TIDs.  An entry that is moved
 * from the one to the other meanwhile is in both and is returned once.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_PROBE_CPU_H
#define HASH_PROBE_CPU_H

#include "kernels/hash/hash_table_cpu.h"

/* Probes that are interleaved. */
#define HASH_INTERLEAVED 32

typedef struct HashProbe
{
	GpudsInterval interval;
	bool empty;
	bool one_key; /* else the interval has several, and hash_walk_cpu.h answers */
	int home;
	const uint64_t *segment;
} HashProbe;

/* First step: the home line of a scan's interval i intervals further on. */
HOST_INLINE void
hash_probe_init(HashProbe *p, const HashView *view, const GpudsScan *scan, int64_t i, const bool forward)
{
	p->empty = !entry_scan_rest(scan, forward ? scan->next + i : scan->next - 1 - i, forward, &p->interval);
	p->one_key = !p->empty && hash_same_key(&p->interval.lo, &p->interval.hi);
	if (p->one_key)
	{
		uint64_t hash = hash_of(&p->interval.lo);

		p->home = hash_home(hash);
		p->segment = hash_segment(view->arena, hash_locate(view->arena, view->root, hash));
		hash_prefetch_line(p->segment, p->home);
	}
}

/* Second step: the other lines that have entries of the home. */
HOST_INLINE void
hash_probe_lines(const HashProbe *p, const int nw)
{
	uint64_t word;

	if (!p->one_key)
		return;
	word = hash_load(hash_home_word(p->segment, p->home));
	for (int l = 1; l < HASH_REACH; l++)
	{
		if (word & hash_line_bits(l, nw))
			hash_prefetch_line(p->segment, p->home + l);
	}
}

/* The first entries of an interval that the overflow tree has, in the order of the scan. */
HOST_INLINE int64_t
hash_overflow_scan(const HashView *view, const GpudsInterval *interval, GpudsEntry *out, int64_t cap,
				   const bool forward)
{
	GpudsScan scan = { interval, 1, forward ? 0 : 1, false, { 0, 0, 0 }, NULL };
	int64_t n = hash_overflow.scan(view->arena, view->overflow, &scan, forward, out, cap);

	return n < 0 ? 0 : n;
}

/* Last step: the first entries of the interval, at most cap; fewer: that is all it has. */
HOST_INLINE int64_t
hash_probe_emit(const HashProbe *p, const HashView *view, GpudsEntry *out, int64_t cap, const bool forward,
				const int nw)
{
	GpudsEntry e = p->interval.lo;
	HashFound found;
	int64_t n = 0;

	hash_find(p->segment, p->home, &e, &found, nw);
	/* the tree after the table: entries move in this direction */
	if (hash_found_overflow(&found))
		n = hash_overflow_scan(view, &p->interval, out, cap, forward);
	for (int i = 0; i < found.n; i++)
	{
		e.t = found.t[i];
		if (e.t >= p->interval.lo.t && e.t <= p->interval.hi.t)
			n = hash_merge_entry(out, n, cap, &e, forward);
	}
	return n;
}

#endif /* HASH_PROBE_CPU_H */
