/*-------------------------------------------------------------------------
 *
 * probe_count.c
 *	  Counts a scan's entries on a device that can, instead of fetching them.
 *
 * The memtable has the last word on what it has entries of.  These entries are left out of the
 * scan that the device is asked for, whatever the mirror has of them by then, and those that
 * are not deleted are added here.
 *
 *-------------------------------------------------------------------------
 */
#include "gpuds.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "mirror/internal.h"

/* May gpuds_probe_count have an answer? */
bool
gpuds_probe_counts(const GpudsMirrorRef *ref)
{
	return ref->mirror && gpuds_device_counts(&ref->mirror->tree);
}

static void
add_tids(GpudsCounted *counted, const uint64 *tids, int64 n)
{
	if (counted->n + n > counted->size)
	{
		counted->size = Max(counted->n + n, 2 * counted->size);
		if (counted->tids)
			counted->tids = repalloc_huge(counted->tids, counted->size * sizeof(uint64));
		else
			counted->tids = MemoryContextAllocHuge(CurrentMemoryContext, counted->size * sizeof(uint64));
	}
	if (n > 0)
		memcpy(counted->tids + counted->n, tids, n * sizeof(uint64));
	counted->n += n;
}

static void
free_count(int code, Datum arg)
{
	gpuds_device_free_count((GpudsCount *) DatumGetPointer(arg));
}

/* Counts what the mirror has of a scan; false: the device does not do it. */
static bool
count_in_mirror(GpudsMirrorRef *ref, GpudsScan *scan, const unsigned char *map, size_t map_bytes,
				GpudsCounted *counted)
{
	GpudsMirror *mirror = ref->mirror;
	GpudsCountStatus status = GPUDS_COUNT_OK;

	while (scan->next < scan->n && status == GPUDS_COUNT_OK)
	{
		GpudsCount count;

		CHECK_FOR_INTERRUPTS();
		memset(&count, 0, sizeof(count));
		PG_ENSURE_ERROR_CLEANUP(free_count, PointerGetDatum(&count));
		{
			status = gpuds_device_count(&mirror->tree, &mirror->guard, ref->serial, scan, map, map_bytes,
										&count);
			if (status == GPUDS_COUNT_OK)
			{
				add_tids(counted, count.tids, count.n);
				counted->counted += count.counted;
				gpuds_mirror_count(ref, 0, 1, 0, count.counted + count.n);
			}
		}
		PG_END_ENSURE_ERROR_CLEANUP(free_count, PointerGetDatum(&count));
		gpuds_device_free_count(&count);
	}
	return status == GPUDS_COUNT_OK;
}

/* A scan without some entries: intervals of the one shape, and of the other. */
typedef struct Remains
{
	GpudsScan as_it_is; /* what has none of them */
	GpudsScan split;    /* intervals between them */
} Remains;

/* The entry before another one. */
static GpudsEntry
entry_before(GpudsEntry e)
{
	if (e.t-- == 0 && e.w1-- == 0)
		e.w0--;
	return e;
}

/* Adds what an interval has on both sides of some entries, which are all in it; returns how many pieces. */
static int64
split_interval(const GpudsInterval *interval, const GpudsOp *ops, int64 n, GpudsInterval *out)
{
	GpudsInterval piece = *interval;
	int64 pieces = 0;

	for (int64 i = 0; i < n; i++)
	{
		piece.hi = entry_before(ops[i].e);
		/* An entry is not less than the interval's begin, so nothing wraps that is used. */
		if (!entry_less(&ops[i].e, &piece.lo) && !entry_equal(&ops[i].e, &piece.lo))
			out[pieces++] = piece;
		piece.lo = ops[i].e;
		piece.lo.t++;
	}
	piece.hi = interval->hi;
	if (!entry_less(&piece.hi, &piece.lo))
		out[pieces++] = piece;
	return pieces;
}

/*
 * What remains of a scan without the entries of some operations, ascending, all of the rest of the scan.
 */
static void
leave_out(const GpudsScan *scan, const GpudsOp *ops, int64 n, Remains *remains)
{
	const int64 rest = scan->n - scan->next;
	GpudsInterval *split;
	GpudsInterval *intervals = NULL;
	uint64 *points = NULL;
	int64 kept = 0;
	int64 nsplit = 0;
	int64 i = 0;

	/* Points stay points, if nothing is taken out of them. */
	if (scan->points)
		points = MemoryContextAllocHuge(CurrentMemoryContext, Max(rest, 1) * sizeof(uint64));
	else
		intervals = MemoryContextAllocHuge(CurrentMemoryContext, Max(rest, 1) * sizeof(GpudsInterval));
	/* Each operation adds a piece at most, to those of the interval that it is in. */
	split = MemoryContextAllocHuge(CurrentMemoryContext, (2 * n + 2) * sizeof(GpudsInterval));
	for (int64 number = scan->next; number < scan->n; number++)
	{
		GpudsInterval interval;
		int64 inside = 0;

		if ((number & 0xFFFF) == 0)
			CHECK_FOR_INTERRUPTS();
		if (!entry_scan_rest(scan, number, true, &interval))
			continue;
		while (i + inside < n && !entry_less(&interval.hi, &ops[i + inside].e))
			inside++;
		if (inside > 0 || (scan->points && scan->inside && number == scan->next))
			nsplit += split_interval(&interval, ops + i, inside, split + nsplit);
		else if (scan->points)
			points[kept++] = scan->points[number];
		else
			intervals[kept++] = interval;
		i += inside;
	}
	memset(remains, 0, sizeof(*remains));
	remains->as_it_is.intervals = scan->points ? scan->intervals : intervals;
	remains->as_it_is.points = points;
	remains->as_it_is.n = kept;
	remains->split.intervals = split;
	remains->split.n = nsplit;
}

/* Frees what leave_out has made. */
static void
free_remains(Remains *remains)
{
	if (remains->as_it_is.points)
		pfree((void *) remains->as_it_is.points);
	else
		pfree((void *) remains->as_it_is.intervals);
	pfree((void *) remains->split.intervals);
}

/* Counts what the mirror and its memtable have of a scan together. */
static bool
count_both(GpudsMirrorRef *ref, const GpudsScan *scan, const unsigned char *map, size_t map_bytes,
		   GpudsCounted *counted)
{
	const GpudsFresh *fresh = &ref->fresh;
	Remains remains;
	const GpudsOp *ops;
	int64 n;
	bool done;

	if (!gpuds_probe_ask_memtable(ref, scan, true, true) || !fresh->all)
		return false;
	gpuds_injection_point("memtable-collected");
	ops = fresh->ops + gpuds_probe_first_ahead(fresh, scan);
	n = fresh->ops + fresh->n - ops;
	leave_out(scan, ops, n, &remains);
	done = count_in_mirror(ref, &remains.as_it_is, map, map_bytes, counted) &&
		   count_in_mirror(ref, &remains.split, map, map_bytes, counted);
	free_remains(&remains);
	for (int64 i = 0; done && i < n; i++)
	{
		uint64 tid = ops[i].e.t & ENTRY_TID_MASK;

		if ((ops[i].order & GPUDS_OP_DELETE) == 0)
			add_tids(counted, &tid, 1);
	}
	return done && gpuds_probe_still_joined(ref);
}

/*
 * Counts the rest of a forward scan, whose intervals are ascending.  map is a visibility map as
 * gpuds_device_count takes it.  False: the entries have to be fetched, and *counted says nothing; what it has in
 * memory is the caller's in any case.
 */
bool
gpuds_probe_count(GpudsMirrorRef *ref, const GpudsScan *scan, const unsigned char *map, size_t map_bytes,
				  GpudsCounted *counted)
{
	GpudsScan rest = *scan;
	bool done;

	memset(counted, 0, sizeof(*counted));
	if (!gpuds_probe_counts(ref))
		return false;
	if (ref->memtable != 0)
		done = count_both(ref, scan, map, map_bytes, counted);
	else
		done = count_in_mirror(ref, &rest, map, map_bytes, counted);
	gpuds_mirror_touch(ref->mirror);
	return done;
}
