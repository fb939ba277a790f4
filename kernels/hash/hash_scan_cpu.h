/*-------------------------------------------------------------------------
 *
 * hash_scan_cpu.h
 *	  Scans and counts of a hash table on a CPU.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HASH_SCAN_CPU_H
#define HASH_SCAN_CPU_H

#include "kernels/hash/hash_probe_cpu.h"
#include "kernels/hash/hash_walk_cpu.h"

HOST_INLINE int64_t
hash_scan_any(const HashView *view, GpudsScan *scan, GpudsEntry *out, int64_t cap, const bool forward,
			  const int nw)
{
	HashProbe probes[HASH_INTERLEAVED];
	int64_t done = 0;

	while (done < cap)
	{
		int64_t left = forward ? scan->n - scan->next : scan->next;
		int together = HASH_INTERLEAVED;

		if (left > cap - done)
			left = cap - done;
		if (together > left)
			together = (int) left;
		if (together == 0)
			break;
		for (int i = 0; i < together; i++)
			hash_probe_init(&probes[i], view, scan, i, forward);
		for (int i = 0; i < together; i++)
			hash_probe_lines(&probes[i], nw);
		for (int i = 0; i < together; i++)
		{
			const HashProbe *p = &probes[i];

			if (p->one_key)
				done += hash_probe_emit(p, view, out + done, cap - done, forward, nw);
			else if (!p->empty)
				done += hash_walk_emit(&p->interval, view, out + done, cap - done, forward, nw);
			if (cpu_scan_is_full(scan, out, done, cap, forward))
				break;
		}
	}
	return done;
}

/* As CpuScan, of a table that a reader has. */
HOST_FN int64_t
hash_scan(const HashView *view, GpudsScan *scan, bool forward, GpudsEntry *out, int64_t cap)
{
	return CPU_SCAN_EACH(hash_scan_any, view, scan, out, cap, forward);
}

/* Entries that a count looks at in one go. */
#define HASH_COUNT_ENTRIES 256

/* As CpuCounter, of a table that a reader has. */
HOST_FN void
hash_count(const HashView *view, GpudsScan *scan, int64_t most, CpuCount *count)
{
	GpudsEntry entries[HASH_COUNT_ENTRIES];

	while (most > 0 && scan->next < scan->n && count->nothers < count->others_size)
	{
		int64_t room = count->others_size - count->nothers;
		int64_t cap = room < HASH_COUNT_ENTRIES ? room : HASH_COUNT_ENTRIES;
		int64_t n = hash_scan(view, scan, true, entries, cap < most ? cap : most);

		most -= n;
		for (int64_t i = 0; i < n; i++)
		{
			PageRow row = count->full ? PAGE_ROW_SEEN : cpu_count_row(count, entries[i].t);

			count->counted += row == PAGE_ROW_SEEN;
			if (page_row_goes_back(row))
				count->others[count->nothers++] = entries[i];
		}
	}
}

#endif /* HASH_SCAN_CPU_H */
