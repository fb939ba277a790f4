/*-------------------------------------------------------------------------
 *
 * row_rank.c
 *	  The entries of rows that have ranks in intervals of a scan, many at a time.
 *
 * The caller knows how many rows of each interval its snapshot sees.  Each of them has an entry, which is
 * there after the barrier, and no two have the same.  So if there are as many entries in the interval, these
 * are the entries of all rows, and of no others: the entry of a rank is that of the row of this rank, and no
 * row needs to be looked up.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/relscan.h"
#include "pgstat.h"
#include "utils/memutils.h"

#include "reader/cursor.h"
#include "reader/reader.h"

/* What of an interval the scan asks for; false: parts of it, or nothing. */
static bool
clamp(const GpudsScan *scan, GpudsInterval *interval)
{
	const int64 at = entry_scan_find(scan, &interval->lo);
	GpudsInterval asked;

	if (at == scan->n)
		return false;
	asked = entry_scan_interval(scan, at);
	if (entry_less(&interval->lo, &asked.lo))
		interval->lo = asked.lo;
	if (entry_less(&asked.hi, &interval->hi))
	{
		if (at + 1 < scan->n)
		{
			const GpudsInterval next = entry_scan_interval(scan, at + 1);

			if (!entry_less(&interval->hi, &next.lo))
				return false;
		}
		interval->hi = asked.hi;
	}
	return !entry_less(&interval->hi, &interval->lo);
}

/* Finds n rows, one at least, whose intervals are some that the scan asks for. */
static void
find_rows(GpudsCursor *cursor, GpudsRowRank *rows, int64 n)
{
	GpudsInterval *intervals = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(GpudsInterval));
	uint64 *ranks = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64));
	GpudsRanked *ranked = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(GpudsRanked));

	for (int64 i = 0; i < n; i++)
	{
		intervals[i] = rows[i].interval;
		ranks[i] = (uint64) rows[i].rank;
	}
	gpuds_probe_rank(&cursor->ref, intervals, ranks, n, ranked);
	for (int64 i = 0; i < n; i++)
	{
		rows[i].found = ranked[i].entries == (uint64) rows[i].rows && rows[i].rank < rows[i].rows;
		rows[i].entry = ranked[i].entry;
	}
	pfree(intervals);
	pfree(ranks);
	pfree(ranked);
}

/*
 * Finds the entries of n rows of a scan whose keys have been set, about expected rows, and sets what is found
 * of each.  The scan passes its barrier; it is asked for nothing else.  The rows' intervals ascend, or are
 * equal, and are cut to what the scan asks for; the rows of each have been counted with its snapshot, an MVCC
 * snapshot.  Returns how many are found.
 */
int64
gpuds_scan_rank(IndexScanDesc scan, double expected, GpudsRowRank *rows, int64 n)
{
	GpudsCursor *cursor = scan->opaque;
	const GpudsDeviceWork before = gpuds_device_work;
	int64 found = 0;

	for (int64 i = 0; i < n; i++)
		rows[i].found = false;
	(void) gpuds_scan_begin_rows(scan, expected);
	if (n == 0 || cursor->set.filter || !gpuds_scan_has_all(scan) || !gpuds_probe_ranks(&cursor->ref))
		return 0;
	for (int64 i = 0; i < n; i++)
	{
		if (!clamp(&cursor->scan, &rows[i].interval))
			rows[i].rows = 0;
	}
	find_rows(cursor, rows, n);
	for (int64 i = 0; i < n; i++)
		found += rows[i].found;
	gpuds_cursor_note_answer(cursor, &before, found);
	gpuds_cursor_check_snapshot(scan);
	pgstat_count_index_tuples(scan->indexRelation, found);
	return found;
}

/*
 * How many entries the structure has in each of n intervals, one at least, which ascend, and the entries of
 * ranks among these, which are read where there are so many.  The scan has passed its barrier.  False: the
 * structure has no ranks, or the memtable has something to say of them.
 */
static bool
find_ranked(IndexScanDesc scan, const GpudsInterval *intervals, const uint64 *ranks, int64 n,
			GpudsRanked *ranked)
{
	GpudsCursor *cursor = scan->opaque;
	const GpudsDeviceWork before = gpuds_device_work;
	bool known = gpuds_probe_ranks(&cursor->ref);

	if (!known)
		return false;
	gpuds_probe_rank(&cursor->ref, intervals, ranks, n, ranked);
	for (int64 i = 0; i < n; i++)
		known = known && ranked[i].entries != UINT64_MAX;
	gpuds_cursor_note_answer(cursor, &before, 0);
	gpuds_cursor_check_snapshot(scan);
	return known;
}

/* How many entries they are.  The scan has passed its barrier.  False: as above. */
bool
gpuds_scan_count_by_rank(IndexScanDesc scan, const GpudsInterval *intervals, int64 n, int64 *entries)
{
	uint64 *ranks = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(uint64));
	GpudsRanked *ranked = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(GpudsRanked));
	bool known;

	/* No interval has so many, and no entry is wanted. */
	for (int64 i = 0; i < n; i++)
		ranks[i] = UINT64_MAX;
	known = find_ranked(scan, intervals, ranks, n, ranked);
	for (int64 i = 0; known && i < n; i++)
		entries[i] = (int64) ranked[i].entries;
	pfree(ranks);
	pfree(ranked);
	return known;
}

/*
 * The entry that has a rank in an interval.  The scan has passed its barrier.  False: there are no more
 * entries than that, or as above.
 */
bool
gpuds_scan_find_rank(IndexScanDesc scan, const GpudsInterval *interval, int64 rank, GpudsEntry *entry)
{
	const uint64 wanted = (uint64) rank;
	GpudsRanked ranked;

	if (!find_ranked(scan, interval, &wanted, 1, &ranked) || ranked.entries <= wanted)
		return false;
	*entry = ranked.entry;
	return true;
}
