/*-------------------------------------------------------------------------
 *
 * peek.c
 *	  What a structure on the CPU device has, for the planner.
 *
 * A peek passes no barrier, loads nothing, and waits for nobody: what it says is as old as the structure,
 * and there may be none.  It takes the file's number for the index's identity and reads no page, so that
 * planning does not fail because an index is damaged.
 *
 * Structures on a GPU are not asked.  Planning must not wait for a device that is busy, or that hangs.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "access/xlog.h"

#include "mirror/mirror_internal.h"

/*
 * Entries that a structure without ranks may go through for all counts of a peek, 3 ns each.  One with ranks
 * counts an interval by two searches, whatever it has.
 */
#define PEEK_ENTRIES (16 * 1024)

/* Has the structure all that was appended until some milliseconds ago?  Nobody knows on a standby. */
static bool
is_current(Relation index, GpudsMirror *mirror)
{
	if (RecoveryInProgress())
		return false;
	return pg_atomic_read_u64(&mirror->synced) > gpuds_journal_changes(index) ||
		   gpuds_memtable_is_complete(pg_atomic_read_u64(&mirror->attached));
}

/*
 * Looks for the structure of an index, which the caller has open and locked; false: there is none to peek at.
 * Temporary indexes have none.
 */
bool
gpuds_peek_begin(Relation index, GpudsPeek *peek)
{
	GpudsMirror *mirror;

	if (!gpuds_is_preloaded() || RelationUsesLocalBuffers(index))
		return false;
	mirror = gpuds_mirror_find(RelationLocator(index), GPUDS_MIRROR_ON_CPU);
	if (mirror == NULL || !mirror->loaded)
		return false;
	peek->mirror = mirror;
	peek->serial = pg_atomic_read_u64(&mirror->guard);
	/* Whose guard this is: the slot may have gone to another file since it was found. */
	pg_read_barrier();
	if (peek->serial == 0 || pg_atomic_read_u64(&mirror->serial) != peek->serial ||
		mirror->tree.kind != GPUDS_ON_CPU ||
		!RelFileLocatorEquals(mirror->file.locator, RelationLocator(index)))
		return false;
	peek->entries = (double) gpuds_device_entries(&mirror->tree);
	peek->current = is_current(index, mirror);
	peek->budget = PEEK_ENTRIES;
	return true;
}

/*
 * How many entries the structure has in an interval; -1: it is gone, or it would have to go through too many
 * of them.
 */
int64
gpuds_peek_count(GpudsPeek *peek, const GpudsInterval *interval)
{
	static const GpudsCountSpec spec = { .full = true, .partial = true };
	GpudsDeviceTree *tree = &peek->mirror->tree;
	GpudsScan scan = { .intervals = interval, .n = 1 };
	int64 counted = 0;

	while (scan.next < scan.n)
	{
		GpudsCount count = { 0 };

		if (peek->budget <= 0 || gpuds_device_count(tree, &peek->mirror->guard, peek->serial, &scan, &spec,
													&count) != GPUDS_COUNT_OK)
			return -1;
		counted += count.counted;
		if (!gpuds_device_has_ranks(tree))
			peek->budget -= count.counted;
	}
	return counted;
}

/* The first or the last entry of an interval; false: it has none, or the structure is gone. */
bool
gpuds_peek_end_of(GpudsPeek *peek, const GpudsInterval *interval, bool last, GpudsEntry *entry)
{
	GpudsScan scan = { .intervals = interval, .n = 1, .next = last ? 1 : 0 };

	return gpuds_device_scan(&peek->mirror->tree, &peek->mirror->guard, peek->serial, &scan, !last, entry,
							 1) == 1;
}
