/*-------------------------------------------------------------------------
 *
 * predicate.c
 *	  Predicate locks of SERIALIZABLE transactions on an index.
 *
 * A scan locks cells of the key space (key/cell.c) as if they were pages of the index: their numbers take
 * the place of block numbers, and need not be those of blocks.  A scan of many cells locks the index as a
 * whole.  Core makes one lock on the index of many on its pages, and moves all to the table when the index
 * is dropped or built anew; it does not ask whether there is such a page.
 *
 *	  L1	A scan takes its locks before its barrier, and a writer looks for locks when its entries have been
 *			appended.  Either the writer finds the scan's lock, or the scan finds the writer's entry.
 *
 *			A scan that finds the entry also looks at the row, unless the row is settled for all snapshots,
 *			and core notes the conflict there.
 *
 *	  L2	Who deletes or updates a row that a scan has given finds the lock on the row, on its page or on
 *			the table: locks on the index are for rows that are not there yet.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xact.h"
#include "storage/predicate.h"

#include "index/index.h"

/* Cells that a scan locks, at most.  Core locks the whole index for a transaction that has some 30. */
#define SCAN_CELLS 16

/* The numbers of the cells that a set has; -1: there are more than SCAN_CELLS. */
static int
cells_of_set(const GpudsKeyLayout *layout, const GpudsKeySet *set, BlockNumber *cells)
{
	const GpudsScan scan = { .intervals = set->intervals, .points = set->points };
	int n = 0;

	if (set->total > SCAN_CELLS || set->nintervals < set->total)
		return -1;
	for (int64 i = 0; i < set->total; i++)
	{
		const GpudsInterval interval = entry_scan_interval(&scan, i);
		uint32 of_interval[GPUDS_INTERVAL_CELLS];
		const int ncells = gpuds_key_interval_cells(layout, &interval, of_interval);

		if (ncells == 0 || n + ncells > SCAN_CELLS)
			return -1;
		memcpy(cells + n, of_interval, ncells * sizeof(uint32));
		n += ncells;
	}
	return n;
}

/*
 * Locks what a scan's key set has of an index, whose layout it is, for the scan's snapshot (L1).  Returns
 * whether the index is locked as a whole.  The transaction is SERIALIZABLE.
 */
bool
gpuds_index_lock_keys(Relation index, const GpudsKeyLayout *layout, const GpudsKeySet *set, Snapshot snapshot)
{
	BlockNumber cells[SCAN_CELLS];
	const int n = cells_of_set(layout, set, cells);

	if (n < 0)
		PredicateLockRelation(index, snapshot);
	for (int i = 0; i < n; i++)
		PredicateLockPage(index, cells[i], snapshot);
	return n < 0;
}

/*
 * Looks for locks on the keys of n entries, which are in the index's journal (L1).  Raises a serialization
 * failure if the transaction cannot go on.  Does nothing unless it is SERIALIZABLE.
 */
void
gpuds_index_check_keys(Relation index, const GpudsKeyLayout *layout, const GpudsEntry *entries, int n)
{
	BlockNumber last[GPUDS_CELL_LEVELS];

	if (!IsolationIsSerializable())
		return;
	for (int i = 0; i < n; i++)
	{
		for (int level = 0; level < layout->nlevels; level++)
		{
			const BlockNumber cell = gpuds_key_cell(layout, level, &entries[i]);

			if (i > 0 && cell == last[level])
				continue;
			last[level] = cell;
			CheckForSerializableConflictIn(index, NULL, cell);
		}
	}
}
